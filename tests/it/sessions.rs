//! Goal: the scenarios of sessions and of leader changes that need the wire. Method: hand-driven
//! worker streams and real agents against groups of real coordinators, in one process.

use std::time::Duration;

use bytes::Bytes;
use client::proto as v1;
use client::proto::channel_service_client::ChannelServiceClient;
use client::proto::session_response::Body as Down;
use client::{CancellationToken, agent};
use tests::harness::{Group, wait_for};
use tokio::time::Instant;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::api::{Raw, ack, connect, reason, registration};
use crate::cluster::{Running, all_watched, owners, quick_sessions, worker};
use crate::history::page;

async fn set(group: &Group, values: &[(&str, &str)]) {
    let values = values.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    group.operator().set_settings(v1::SetSettingsRequest { write: None, values }).await.unwrap();
}

async fn describe(group: &Group, name: &str) -> v1::Channel {
    let request = v1::DescribeChannelRequest { read: None, name: name.to_owned() };
    group.operator().describe_channel(request).await.unwrap().channel.unwrap()
}

fn report(me: &v1::Registered) -> v1::Report {
    v1::Report { node_id: me.node_id, node_epoch: me.node_epoch, ..Default::default() }
}

fn commit(name: &str, me: &v1::Registered, term: u64) -> v1::CommitMetaRequest {
    let claim = v1::OwnerClaim { node_id: me.node_id, node_epoch: me.node_epoch, term };
    v1::CommitMetaRequest {
        write: None,
        name: name.to_owned(),
        claim: Some(claim),
        positions: Bytes::from_static(b"late"),
    }
}

async fn commits(wire: &Channel, name: &str, me: &v1::Registered, term: u64) -> Status {
    let mut channels = ChannelServiceClient::new(wire.clone());
    channels.commit_meta(commit(name, me, term)).await.unwrap_err()
}

/// A hand-driven worker that watches c1.
async fn watching(group: &Group, wire: &Channel, name: &str) -> (Raw, v1::Registered, u64) {
    let mut raw = Raw::open(wire).await;
    let me = raw.register(name).await.unwrap();
    group.watch(&["c1"]).await;
    let directive = raw.directive().await;
    let acks = vec![ack(&directive)];
    raw.report(v1::Report { acks, ..report(&me) }).await.unwrap();
    (raw, me, directive.term)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a29_a_late_checkpoint_gets_a_final_answer() {
    let group = Group::start(1).await;
    let wire = connect(&group).await;
    let (_raw, me, term) = watching(&group, &wire, "d1").await;
    let request = v1::RemoveChannelRequest { write: None, name: String::from("c1") };
    group.operator().remove_channel(request).await.unwrap();
    let status = commits(&wire, "c1", &me, term).await;
    assert_eq!((status.code(), reason(&status).as_str()), (Code::NotFound, "DROPPED"));
    let status = commits(&wire, "never", &me, term).await;
    assert_eq!((status.code(), reason(&status).as_str()), (Code::NotFound, "UNKNOWN_CHANNEL"));
    let refused = group.operator().commit_meta(commit("c1", &me, term)).await.unwrap_err();
    assert_eq!(refused.reason(), Some("DROPPED"), "and the client does not try again");
    group.check().await;
    group.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a44_a_process_that_was_paused_begins_anew() {
    let group = Group::start(1).await;
    set(&group, &[("ttl_ms", "1000"), ("margin_ms", "300"), ("expiry_grace_ms", "600")]).await;
    let wire = connect(&group).await;
    let (mut paused, old, term) = watching(&group, &wire, "paused").await;
    let other = worker(&group, "other");
    wait_for("the channel is taken over", || async {
        let channel = describe(&group, "c1").await;
        let owner = channel.owner.as_ref().map(|owner| owner.node_name.clone());
        (owner.as_deref() == Some("other")).then_some(())
    })
    .await;
    let reason_of_end = paused.expect(|body| match body {
        Down::Fence(fence) => Some(fence.reason),
        _ => None,
    });
    assert!(reason_of_end.await.unwrap().contains("is over"), "told to register again");
    let status = commits(&wire, "c1", &old, term).await;
    assert_eq!((status.code(), reason(&status).as_str()), (Code::FailedPrecondition, "NOT_OWNER"));
    let mut again = Raw::open(&wire).await;
    let status = again.report(report(&old)).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "register comes first: {status}");
    let mut anew = Raw::open(&wire).await;
    let register = v1::Register { incarnation: String::from("i2"), ..registration("paused") };
    let new = anew.register_as(register).await.unwrap();
    assert!(new.node_id > old.node_id && new.node_epoch > old.node_epoch);
    assert_eq!(reason(&commits(&wire, "c1", &old, term).await), "NOT_OWNER");
    other.die();
    group.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a45_what_is_not_desired_is_told_to_stop_at_each_report() {
    let group = Group::start(1).await;
    set(&group, &[("release_timeout_ms", "100"), ("leader_grace_ms", "0")]).await;
    let wire = connect(&group).await;
    let (mut five, me, term) = watching(&group, &wire, "five").await;
    let two = worker(&group, "two");
    wait_for("the second worker is there", || async {
        let nodes = group.operator().all_nodes(None).await.ok()?;
        (nodes.len() == 2).then_some(())
    })
    .await;
    let release = v1::ReleaseChannelRequest { write: None, name: String::from("c1"), term: 0 };
    group.operator().release_channel(release).await.unwrap();
    let taken = wait_for("the channel moves on", || async {
        let channel = describe(&group, "c1").await;
        let owner = channel.owner.as_ref().map(|owner| owner.node_name.clone());
        (owner.as_deref() == Some("two")).then_some(channel)
    })
    .await;
    assert!(taken.term > term);
    let gone = |body| match body {
        Down::Directives(piece) if !piece.gone.is_empty() => Some(piece.gone),
        _ => None,
    };
    // The first word of it may be lost on a node that does not listen; each report brings another.
    assert_eq!(five.expect(gone).await.unwrap(), ["c1"]);
    let running = vec![v1::Running { channel: String::from("c1"), term }];
    for _ in 0..5 {
        let said = v1::Report { running: running.clone(), running_complete: true, ..report(&me) };
        five.report(said).await.unwrap();
        assert_eq!(five.expect(gone).await.unwrap(), ["c1"]);
    }
    let metrics = page(&group, 0, "/metrics").await;
    assert!(metrics.contains("quorate_session_strays_total 5"), "{metrics}");
    five.report(report(&me)).await.unwrap();
    two.die();
    group.check().await;
    group.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a59_lost_directives_and_lost_acknowledgements_cost_nothing() {
    let group = Group::start(1).await;
    let wire = connect(&group).await;
    group.watch(&["c1"]).await;
    let mut told = Vec::new();
    for _ in 0..10 {
        let mut raw = Raw::open(&wire).await;
        let me = raw.register("d1").await.unwrap();
        told.push((me, raw.directive().await));
        // The directive is lost: this stream ends here.
    }
    let (me, directive) = told[0].clone();
    assert!(told.iter().all(|again| *again == (me, directive.clone())), "{told:?}");
    let said = v1::Report { acks: vec![ack(&directive)], ..report(&me) };
    for _ in 0..10 {
        let mut raw = Raw::open(&wire).await;
        raw.register("d1").await.unwrap();
        raw.send(v1::session_request::Body::Report(said.clone())).await;
        // The answer is lost.
    }
    let mut raw = Raw::open(&wire).await;
    raw.register("d1").await.unwrap();
    let answer = raw.report(said).await.unwrap();
    assert_eq!(answer.acks[0].verdict(), v1::Verdict::Recorded);
    let channel = describe(&group, "c1").await;
    assert_eq!((channel.phase(), channel.term), (v1::ChannelPhase::Watched, directive.term));
    group.check().await;
    group.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a65_followers_never_tell_of_the_old_owner() {
    let group = Group::start(3).await;
    quick_sessions(&group).await;
    let workers = [worker(&group, "a"), worker(&group, "b")];
    wait_for("both workers", || async {
        (group.operator().all_nodes(None).await.ok()?.len() == 2).then_some(())
    })
    .await;
    group.watch(&["c1"]).await;
    let mut before = all_watched(&group, 1).await.remove(0);
    let leader = group.leader().await;
    let request = v1::FindOwnerRequest { read: None, name: String::from("c1") };
    for _ in 0..10 {
        let release = v1::ReleaseChannelRequest { write: None, name: String::from("c1"), term: 0 };
        group.operator().release_channel(release).await.unwrap();
        let after = wait_for("it moves", || async {
            let read = v1::ReadOptions { min_revision: 0, consistency: 2 };
            let request = v1::DescribeChannelRequest { read: Some(read), name: String::from("c1") };
            let channel = group.pinned(leader).describe_channel(request).await.ok()?.channel?;
            (channel.phase() == v1::ChannelPhase::Watched && channel.term > before.term)
                .then_some(channel)
        })
        .await;
        for follower in (0..3).filter(|at| *at != leader) {
            match group.pinned(follower).find_owner(request.clone()).await {
                Ok(found) => {
                    assert_eq!(found.term, after.term);
                    assert_eq!(found.owner, after.owner, "the new owner");
                }
                Err(error) => assert_eq!(error.reason(), Some("NOT_LEADER"), "{error}"),
            }
        }
        before = after;
    }
    workers.into_iter().for_each(Running::die);
    group.check().await;
    group.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a66_buffered_unknown_and_dropped_are_told_apart() {
    let group = Group::start(1).await;
    group.watch(&["waits", "goes"]).await;
    let request = v1::RemoveChannelRequest { write: None, name: String::from("goes") };
    group.operator().remove_channel(request).await.unwrap();
    let find = |name: &str| {
        group.operator().find_owner(v1::FindOwnerRequest { read: None, name: name.to_owned() })
    };
    let waits = find("waits").await.unwrap();
    assert_eq!((waits.phase(), waits.dropped), (v1::ChannelPhase::Buffered, false));
    assert!(waits.owner.is_none() && waits.term > 0);
    let goes = find("goes").await.unwrap();
    assert_eq!((goes.phase(), goes.dropped), (v1::ChannelPhase::Unspecified, true));
    assert_eq!(find("never").await.unwrap_err().reason(), Some("UNKNOWN_CHANNEL"));
    group.end().await;
}

/// An agent that was told of one coordinator only.
fn worker_at(group: &Group, at: usize, name: &str) -> CancellationToken {
    let stop = CancellationToken::new();
    let endpoints = group.client_address(at).parse().unwrap();
    let options = agent::AgentOptions::new(endpoints, name, v1::Role::Data);
    let demo = client::demo::DemoOptions {
        watch: Duration::ZERO,
        release: Duration::ZERO,
        ..Default::default()
    };
    let demo = client::demo::DemoWorker::new(demo, |_| {});
    tokio::spawn(agent::run(options, demo, stop.clone()));
    stop
}

/// Three times the ttl of `quick_sessions` pass.
async fn outlive(group: &Group) {
    let until = Instant::now() + Duration::from_millis(3 * 1_500);
    wait_for("three times the ttl", || async {
        group.channels().await;
        (Instant::now() >= until).then_some(())
    })
    .await;
}

/// FR-021, with 3 times the ttl in place of a minute.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a84_a_worker_that_knows_only_a_follower_keeps_its_session() {
    let mut group = Group::start(3).await;
    quick_sessions(&group).await;
    let leader = group.leader().await;
    let follower = (leader + 1) % 3;
    let stop = worker_at(&group, follower, "w");
    group.watch(&["c1"]).await;
    let before = owners(&all_watched(&group, 1).await);
    // A renewal on a follower is answered with the leader, never swallowed.
    let uri = format!("http://{}", group.client_address(follower));
    let wire = Channel::from_shared(uri).unwrap().connect().await.unwrap();
    let status = Raw::open(&wire).await.register("other").await.unwrap_err();
    assert_eq!(reason(&status), "NOT_LEADER");
    outlive(&group).await;
    assert_eq!(owners(&all_watched(&group, 1).await), before);
    group.stop(leader).await;
    group.leader().await;
    group.restart(leader).await;
    outlive(&group).await;
    assert_eq!(owners(&all_watched(&group, 1).await), before, "never expired");
    stop.cancel();
    group.check().await;
    group.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a87_a_session_of_a_later_version_does_not_hide_the_others() {
    use prost::Message;
    let group = Group::start(1).await;
    let wire = connect(&group).await;
    Raw::open(&wire).await.register("old").await.unwrap();
    let mut register = registration("new");
    register.version = String::from("99.0.0-next");
    register.labels.insert(String::from("unheard"), String::from("of"));
    // A field that this version does not know is passed over.
    let mut bytes = register.encode_to_vec();
    bytes.extend_from_slice(&[0xfa, 0x3f, 0x01, 0x07]);
    let decoded = v1::Register::decode(bytes.as_slice()).unwrap();
    assert_eq!(decoded, register);
    Raw::open(&wire).await.register_as(decoded).await.unwrap();
    let nodes = group.operator().all_nodes(None).await.unwrap();
    let versions: Vec<_> = nodes.iter().map(|node| node.version.as_str()).collect();
    assert_eq!(versions, ["", "99.0.0-next"]);
    group.check().await;
    group.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a89_whoever_leads_registers_and_expires() {
    let mut group = Group::start(3).await;
    quick_sessions(&group).await;
    // The leader goes while a worker registers: the proposal fails or its outcome is unknown.
    let leader = group.leader().await;
    let stays = worker(&group, "stays");
    let dies = worker(&group, "dies");
    group.stop(leader).await;
    wait_for("both are registered", || async {
        (group.operator().all_nodes(None).await.ok()?.len() == 2).then_some(())
    })
    .await;
    group.restart(leader).await;
    group.watch(&["c1", "c2"]).await;
    all_watched(&group, 2).await;
    // The leader goes while a dead worker is to be expired.
    dies.die();
    let leader = group.leader().await;
    group.stop(leader).await;
    wait_for("the dead one is expired by the next leader", || async {
        let channels = group.operator().all_channels(v1::ListChannelsRequest::default()).await;
        let here = |c: &v1::Channel| {
            c.phase() == v1::ChannelPhase::Watched
                && c.owner.as_ref().is_some_and(|owner| owner.node_name == "stays")
        };
        channels.ok()?.iter().all(here).then_some(())
    })
    .await;
    group.restart(leader).await;
    group.check().await;
    stays.die();
    group.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a95_a_restart_of_all_coordinators_moves_nothing() {
    let mut group = Group::start(3).await;
    // The last of three takes seconds to stop, since nobody takes its leadership over: the sessions
    // have to outlive that on a busy machine, too.
    set(&group, &[("settle_ms", "50"), ("ttl_ms", "60000")]).await;
    let workers = [worker(&group, "a"), worker(&group, "b")];
    wait_for("both workers", || async {
        (group.operator().all_nodes(None).await.ok()?.len() == 2).then_some(())
    })
    .await;
    group.watch(&["c1", "c2", "c3", "c4"]).await;
    let before = owners(&all_watched(&group, 4).await);
    for at in 0..3 {
        group.stop(at).await;
    }
    for at in 0..3 {
        group.restart(at).await;
    }
    // New channels reach both workers: both have found the group again.
    group.watch(&["n1", "n2", "n3", "n4"]).await;
    let after = owners(&all_watched(&group, 8).await);
    let old: Vec<_> = after.iter().filter(|(name, ..)| name.starts_with('c')).cloned().collect();
    assert_eq!(old, before, "no channel moved, no session ended");
    assert_eq!(group.operator().all_nodes(None).await.unwrap().len(), 2);
    workers.into_iter().for_each(Running::die);
    group.check().await;
    group.end().await;
}
