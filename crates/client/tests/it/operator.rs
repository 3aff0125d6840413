//! The operator client against fakes: who is asked, how often, with which request id, how long.
//! What answers mean is tested beside error.rs; the order of addresses beside route.rs.
//! Run by `cargo test -p client`.

use std::time::{Duration, Instant};

use client::proto::*;
use client::{Endpoints, Error, ErrorKind, Operator, Options, node_named};
use tonic::Code;

use crate::fake::{Fake, Stance};

fn operator(addresses: &[&str]) -> Operator {
    with_options(addresses, Options { actor: "tester".to_owned(), ..Options::default() })
}

fn with_options(addresses: &[&str], options: Options) -> Operator {
    let endpoints = Endpoints::from_addresses(addresses).expect("well formed");
    Operator::connect(&endpoints, options)
}

fn drain() -> DrainNodeRequest {
    DrainNodeRequest { write: None, node: Some(node_named("w1")) }
}

/// An address where nobody listens: its port was free a moment ago.
async fn dead_address() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    listener.local_addr().expect("bound").to_string()
}

#[tokio::test]
async fn a_hint_is_followed_and_the_leader_remembered() {
    let leader = Fake::start(Stance::Leads).await;
    let follower = Fake::start(Stance::Follows(Some(leader.address.clone()))).await;
    let operator = operator(&[&follower.address]);
    for _ in 0..3 {
        operator.drain_node(drain()).await.expect("the leader takes it");
    }
    assert_eq!(follower.writes().len(), 1, "asked once, then known to follow");
    assert_eq!(leader.writes().len(), 3);
    assert_eq!(operator.preferred().as_deref(), Some(leader.address.as_str()));
    assert!(leader.writes().iter().all(|write| write.actor == "tester"));
}

#[tokio::test]
async fn a_retry_after_an_unknown_outcome_carries_the_same_request_id() {
    let first = Fake::start(Stance::Forgets).await;
    let second = Fake::start(Stance::Leads).await;
    let operator = operator(&[&first.address, &second.address]);
    operator.drain_node(drain()).await.expect("taken by the second");
    let (before, after) = (first.writes(), second.writes());
    assert_eq!(before, after, "one attempt each, alike");
    assert_eq!(before[0].request_id.len(), 16);
    assert!(before[0].issued_ms > 0);
    operator.drain_node(drain()).await.expect("taken by the second");
    assert_ne!(second.writes()[1].request_id, before[0].request_id, "another request, another id");
}

#[tokio::test]
async fn a_dead_coordinator_costs_no_pause() {
    let leader = Fake::start(Stance::Leads).await;
    let dead = [dead_address().await, dead_address().await];
    let operator = operator(&[&dead[0], &dead[1], &leader.address]);
    let begun = Instant::now();
    operator.find_owner(FindOwnerRequest::default()).await.expect("the third answers");
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn what_may_not_be_repeated_goes_on_only_if_it_was_never_sent() {
    let other = Fake::start(Stance::Leads).await;
    let dead = dead_address().await;
    let transfer = TransferLeaderRequest::default();
    let pinned = operator(&[&dead]).pinned(&dead).expect("well formed");
    let error = pinned.transfer_leader(transfer).await.expect_err("nobody there");
    assert!(matches!(error, Error::Unreachable { sent: false, .. }), "{error:?}");
    // The fake has no such service: that it says so shows that it was asked.
    let error = operator(&[&dead, &other.address]).transfer_leader(transfer).await;
    let error = error.expect_err("no such service");
    assert_eq!(error.refused().map(|refused| refused.code), Some(Code::Unimplemented));
}

#[tokio::test]
async fn a_leader_that_dies_is_followed_to_the_next_one() {
    let first = Fake::start(Stance::Leads).await;
    let second = Fake::start(Stance::Follows(Some(first.address.clone()))).await;
    let operator = operator(&[&first.address, &second.address]);
    operator.drain_node(drain()).await.expect("the first leads");
    let call = tokio::spawn({
        first.set(Stance::Hangs);
        let operator = operator.clone();
        async move { operator.drain_node(drain()).await }
    });
    while first.writes().len() < 2 {
        tokio::task::yield_now().await;
    }
    let id = first.writes()[1].request_id.clone();
    // The second goes on naming the dead one for a while.
    drop(first);
    while second.writes().len() < 2 {
        tokio::task::yield_now().await;
    }
    second.set(Stance::Leads);
    call.await.expect("no panic").expect("the second leads now");
    assert!(second.writes().iter().all(|write| write.request_id == id));
}

#[tokio::test]
async fn a_coordinator_that_hangs_is_left_for_another() {
    let hung = Fake::start(Stance::Hangs).await;
    let other = Fake::start(Stance::Leads).await;
    let attempt_timeout = Duration::from_millis(50);
    let options = Options { attempt_timeout, ..Options::default() };
    let operator = with_options(&[&hung.address, &other.address], options);
    operator.drain_node(drain()).await.expect("the other answers");
    assert_eq!(hung.writes(), other.writes());
}

#[tokio::test]
async fn without_a_leader_the_deadline_ends_it_and_says_what_it_met() {
    let fakes = [Fake::start(Stance::Follows(None)).await, Fake::start(Stance::Hangs).await];
    let options = Options {
        deadline: Duration::from_millis(400),
        attempt_timeout: Duration::from_millis(50),
        ..Options::default()
    };
    let operator = with_options(&[&fakes[0].address, &fakes[1].address], options);
    let begun = Instant::now();
    let error = operator.drain_node(drain()).await.expect_err("nobody leads");
    assert!(begun.elapsed() >= Duration::from_millis(400));
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.to_string().contains("within 400 ms; the last attempt met"), "{error}");
    assert!(fakes[0].writes().len() < 60, "pauses between rounds: {}", fakes[0].writes().len());
    let ids: std::collections::BTreeSet<_> =
        fakes.iter().flat_map(Fake::writes).map(|write| write.request_id).collect();
    assert_eq!(ids.len(), 1);
}

#[tokio::test]
async fn a_refusal_is_final() {
    let leader = Fake::start(Stance::Refuses(Code::FailedPrecondition, "NOT_OWNER")).await;
    let other = Fake::start(Stance::Leads).await;
    let operator = operator(&[&leader.address, &other.address]);
    let error = operator.drain_node(drain()).await.expect_err("refused");
    assert_eq!((error.kind(), error.reason()), (ErrorKind::Precondition, Some("NOT_OWNER")));
    assert_eq!((leader.writes().len(), other.writes().len()), (1, 0));
}

#[tokio::test]
async fn a29_a_commit_for_a_dropped_channel_is_not_tried_again() {
    for reason in ["DROPPED", "NOT_OWNER", "UNKNOWN_CHANNEL"] {
        let leader = Fake::start(Stance::Refuses(Code::NotFound, reason)).await;
        let other = Fake::start(Stance::Leads).await;
        let operator = operator(&[&leader.address, &other.address]);
        let commit = CommitMetaRequest { name: "c".to_owned(), ..CommitMetaRequest::default() };
        let error = operator.commit_meta(commit).await.expect_err("refused");
        assert_eq!(error.reason(), Some(reason), "{error}");
        assert_eq!((leader.writes().len(), other.writes().len()), (1, 0), "one call");
    }
}

#[tokio::test]
async fn a_pinned_client_asks_one_coordinator_once() {
    let leader = Fake::start(Stance::Leads).await;
    let follower = Fake::start(Stance::Follows(Some(leader.address.clone()))).await;
    let operator = operator(&[&leader.address]);
    let pinned = operator.pinned(&follower.address).expect("well formed");
    let error = pinned.find_owner(FindOwnerRequest::default()).await.expect_err("it follows");
    assert_eq!(error.reason(), Some("NOT_LEADER"));
    assert_eq!((follower.reads().len(), leader.reads().len()), (1, 0));
    let error = operator.pinned("nowhere").expect_err("no port");
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn reads_carry_the_consistency_of_the_client_unless_they_say_otherwise() {
    let member = Fake::start(Stance::Leads).await;
    let stale = ReadOptions { consistency: Consistency::Stale.into(), min_revision: 7 };
    let operator = with_options(&[&member.address], Options { read: stale, ..Options::default() });
    operator.find_owner(FindOwnerRequest::default()).await.expect("answers");
    let own = ReadOptions { consistency: Consistency::Leader.into(), min_revision: 9 };
    let request = ListNodesRequest { read: Some(own), ..ListNodesRequest::default() };
    operator.list_nodes(request).await.expect("answers");
    assert_eq!(member.reads(), [stale, own]);
}
