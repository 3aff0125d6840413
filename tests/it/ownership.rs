//! Goal: whoever asks whether a claim holds, and whoever commits under it, gets the same answer
//! with the present facts. Method: one table of claims against both calls, before and after a
//! change of owner, a drop and a removal; what is refused leaves the witness as it was.

use std::collections::BTreeMap;

use bytes::Bytes;
use client::{Error, node_named, proto as v1};
use tests::harness::{Group, wait_for};
use tonic::Code;

use crate::cluster::{all_watched, worker};

type Facts = BTreeMap<String, String>;

fn claim(node_id: u64, node_epoch: u64, term: u64) -> v1::OwnerClaim {
    v1::OwnerClaim { node_id, node_epoch, term }
}

fn claim_of(channel: &v1::Channel) -> v1::OwnerClaim {
    let owner = channel.owner.as_ref().unwrap();
    claim(owner.node_id, owner.node_epoch, channel.term)
}

async fn check(
    group: &Group,
    name: &str,
    claim: Option<v1::OwnerClaim>,
    consistency: v1::Consistency,
) -> Result<v1::CheckOwnerResponse, Error> {
    let read = Some(v1::ReadOptions { consistency: consistency.into(), min_revision: 0 });
    let request = v1::CheckOwnerRequest { read, name: name.to_owned(), claim };
    group.operator().check_owner(request).await
}

async fn commit(group: &Group, name: &str, claim: Option<v1::OwnerClaim>) -> Result<(), Error> {
    let positions = Bytes::from_static(b"p");
    let request = v1::CommitMetaRequest { write: None, name: name.to_owned(), claim, positions };
    group.operator().commit_meta(request).await.map(drop)
}

fn said(error: &Error) -> (Code, String, Facts) {
    let refused = error.refused().unwrap_or_else(|| panic!("not an answer: {error}"));
    (refused.code, refused.reason.clone(), refused.metadata.clone())
}

/// Both calls refuse with this reason, and alike.
async fn refused(
    group: &Group,
    name: &str,
    claim: Option<v1::OwnerClaim>,
    reason: &str,
) -> (Code, Facts) {
    let committed = said(&commit(group, name, claim).await.unwrap_err());
    assert_eq!(committed.1, reason, "{name} {claim:?}");
    for consistency in [v1::Consistency::Unspecified, v1::Consistency::Leader] {
        let checked = check(group, name, claim, consistency).await.unwrap_err();
        assert_eq!(said(&checked), committed, "{name} {claim:?}");
    }
    (committed.0, committed.2)
}

async fn describe(group: &Group, name: &str) -> v1::Channel {
    let request = v1::DescribeChannelRequest { read: None, name: name.to_owned() };
    group.operator().describe_channel(request).await.unwrap().channel.unwrap()
}

async fn witness(group: &Group) -> Bytes {
    let asked = group.operator().get_witness(v1::GetWitnessRequest { index: 0 }).await.unwrap();
    asked.witnesses[0].witness.clone()
}

async fn start() -> Group {
    let group = Group::start(1).await;
    let values = [("settle_ms".to_owned(), "0".to_owned())].into();
    group.operator().set_settings(v1::SetSettingsRequest { write: None, values }).await.unwrap();
    group
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_is_checked_as_a_commit_under_it_is_judged() {
    let group = start().await;
    let worker = worker(&group, "a");
    group.watch(&["c1"]).await;
    let watched = all_watched(&group, 1).await.remove(0);
    let good = claim_of(&watched);
    for consistency in
        [v1::Consistency::Unspecified, v1::Consistency::Leader, v1::Consistency::Stale]
    {
        let answer = check(&group, "c1", Some(good), consistency).await.unwrap();
        assert_eq!(answer.phase(), v1::ChannelPhase::Watched);
        assert_eq!((&answer.owner, answer.term), (&watched.owner, watched.term));
    }
    commit(&group, "c1", Some(good)).await.unwrap();

    let before = witness(&group).await;
    let v1::OwnerClaim { node_id: node, node_epoch: epoch, term } = good;
    let others = [
        ("a term of the past", claim(node, epoch, term - 1)),
        ("the next term", claim(node, epoch, term + 1)),
        ("a term of the far future", claim(node, epoch, u64::MAX)),
        ("a session of the past", claim(node, epoch - 1, term)),
        ("a session of the future", claim(node, epoch + 1, term)),
        ("another node", claim(node + 1, epoch, term)),
    ];
    for (what, other) in others {
        let (code, facts) = refused(&group, "c1", Some(other), "NOT_OWNER").await;
        assert_eq!(code, Code::FailedPrecondition, "{what}");
        let expected = [
            ("owner_node", node.to_string()),
            ("owner_epoch", epoch.to_string()),
            ("owner_name", String::from("a")),
            ("owner_address", String::from("a")),
            ("term", term.to_string()),
        ];
        let expected: Facts =
            expected.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        assert_eq!(facts, expected, "{what}");
    }
    let incomplete = [claim(0, epoch, term), claim(node, 0, term), claim(node, epoch, 0)];
    for claim in incomplete.into_iter().map(Some).chain([None]) {
        let (code, _) = refused(&group, "c1", claim, "INVALID_ARGUMENT").await;
        assert_eq!(code, Code::InvalidArgument);
    }
    for name in [String::new(), "x".repeat(257), String::from("tab\t")] {
        refused(&group, &name, Some(good), "INVALID_ARGUMENT").await;
    }
    let (code, _) = refused(&group, "never", Some(good), "UNKNOWN_CHANNEL").await;
    assert_eq!(code, Code::NotFound);
    let odd = v1::ReadOptions { consistency: 9, min_revision: 0 };
    let request =
        v1::CheckOwnerRequest { read: Some(odd), name: String::from("c1"), claim: Some(good) };
    let error = group.operator().check_owner(request).await.unwrap_err();
    assert_eq!(error.reason(), Some("INVALID_ARGUMENT"), "{error}");
    assert_eq!(witness(&group).await, before, "nothing of it changed anything");
    worker.die();
    group.check().await;
    group.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_ends_with_the_ownership() {
    let group = start().await;
    let first = worker(&group, "a");
    group.watch(&["c1"]).await;
    let old = claim_of(&all_watched(&group, 1).await[0]);
    // Nobody is there to take it: the channel has no owner, only a term.
    first.die();
    let node = Some(node_named("a"));
    group.operator().revoke_node(v1::RevokeNodeRequest { write: None, node }).await.unwrap();
    let buffered = describe(&group, "c1").await;
    let (_, facts) = refused(&group, "c1", Some(old), "NOT_OWNER").await;
    assert_eq!(facts, Facts::from([("term".to_owned(), buffered.term.to_string())]));

    let second = worker(&group, "b");
    let new = claim_of(&all_watched(&group, 1).await[0]);
    let (_, facts) = refused(&group, "c1", Some(old), "NOT_OWNER").await;
    assert_eq!(facts["owner_name"], "b");
    assert_eq!(facts["term"], new.term.to_string());
    check(&group, "c1", Some(new), v1::Consistency::Unspecified).await.unwrap();

    let drop = v1::DropChannelRequest { write: None, name: String::from("c1"), claim: Some(old) };
    let error = group.operator().drop_channel(drop.clone()).await.unwrap_err();
    assert_eq!(error.reason(), Some("NOT_OWNER"), "an owner's drop is judged alike");
    let drop = v1::DropChannelRequest { claim: Some(new), ..drop };
    group.operator().drop_channel(drop).await.unwrap();
    wait_for("the channel to be removed", || async {
        group.channels().await.is_empty().then_some(())
    })
    .await;
    for claim in [old, new] {
        let (code, facts) = refused(&group, "c1", Some(claim), "DROPPED").await;
        assert_eq!(code, Code::NotFound);
        assert_eq!(facts, Facts::from([("term".to_owned(), new.term.to_string())]));
    }
    // The name comes back with a higher term: the old claims stay refused.
    group.watch(&["c1"]).await;
    let again = all_watched(&group, 1).await.remove(0);
    assert!(again.term > new.term);
    refused(&group, "c1", Some(new), "NOT_OWNER").await;
    second.die();
    group.check().await;
    group.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_member_answers_and_a_lagging_one_asks_the_quorum() {
    let group = Group::start(3).await;
    let worker = worker(&group, "a");
    group.watch(&["c1"]).await;
    let good = claim_of(&all_watched(&group, 1).await[0]);
    for at in group.running() {
        for consistency in [v1::Consistency::Unspecified, v1::Consistency::Stale] {
            let read = Some(v1::ReadOptions { consistency: consistency.into(), min_revision: 0 });
            let request =
                v1::CheckOwnerRequest { read, name: String::from("c1"), claim: Some(good) };
            let answer = group.pinned(at).check_owner(request).await;
            assert!(answer.is_ok(), "member {at}, {consistency:?}: {answer:?}");
        }
    }
    worker.die();
    group.check().await;
    group.end().await;
}
