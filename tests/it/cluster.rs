//! Goal: three real coordinators act as one. Method: an in-process group on real disks; leaders are
//! stopped, members restarted and left behind; each test ends with equal witnesses and no
//! violation.

use std::collections::BTreeSet;
use std::time::Duration;

use client::demo::{DemoOptions, DemoWorker};
use client::proto as v1;
use client::{CancellationToken, agent};
use tests::harness::{Group, wait_for};
use tokio::task::JoinHandle;

/// A demo worker in this process.
pub(crate) struct Running {
    stop: CancellationToken,
    task: JoinHandle<Result<(), client::Error>>,
}

pub(crate) fn worker(group: &Group, name: &str) -> Running {
    let stop = CancellationToken::new();
    let options = agent::AgentOptions::new(group.endpoints(), name, v1::Role::Data);
    let demo =
        DemoOptions { watch: Duration::ZERO, release: Duration::ZERO, ..DemoOptions::default() };
    let task = tokio::spawn(agent::run(options, DemoWorker::new(demo, |_| {}), stop.clone()));
    Running { stop, task }
}

impl Running {
    /// Stops in order: drained, then gone.
    pub(crate) async fn leave(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }

    /// Dies: nobody is told.
    pub(crate) fn die(self) {
        self.task.abort();
    }
}

pub(crate) async fn all_watched(group: &Group, count: usize) -> Vec<v1::Channel> {
    wait_for(&format!("{count} channels watched"), || async {
        let channels = group.channels().await;
        let watched = channels.iter().filter(|c| c.phase() == v1::ChannelPhase::Watched).count();
        (watched == count && channels.len() == count).then_some(channels)
    })
    .await
}

pub(crate) fn owners(channels: &[v1::Channel]) -> Vec<(String, u64, u64)> {
    channels
        .iter()
        .map(|channel| {
            let owner = channel.owner.as_ref().unwrap();
            (channel.spec.as_ref().unwrap().name.clone(), owner.node_id, channel.term)
        })
        .collect()
}

pub(crate) async fn quick_sessions(group: &Group) {
    let values = [("ttl_ms", "1500"), ("settle_ms", "50"), ("margin_ms", "300")];
    let values = values.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    group.operator().set_settings(v1::SetSettingsRequest { write: None, values }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn channels_are_watched_and_survive_the_loss_of_the_leader() {
    let mut group = Group::start(3).await;
    quick_sessions(&group).await;
    let workers = [worker(&group, "a"), worker(&group, "b")];
    group.watch(&["c1", "c2", "c3", "c4"]).await;
    let before = all_watched(&group, 4).await;
    let nodes: BTreeSet<u64> = owners(&before).iter().map(|(_, node, _)| *node).collect();
    assert_eq!(nodes.len(), 2, "both workers got some");

    let leader = group.leader().await;
    group.stop(leader).await;
    let revision = group.watch(&["c5"]).await;
    let after = all_watched(&group, 5).await;
    let kept: Vec<_> = owners(&after).into_iter().filter(|(name, ..)| name != "c5").collect();
    assert_eq!(kept, owners(&before), "a failover moves nothing");

    group.restart(leader).await;
    let read = v1::ReadOptions { min_revision: revision, consistency: 3 };
    let request = v1::DescribeChannelRequest { read: Some(read), name: String::from("c5") };
    wait_for("the restarted member serves what it missed", || async {
        group.pinned(leader).describe_channel(request.clone()).await.ok()
    })
    .await;
    group.check().await;
    for worker in workers {
        worker.die();
    }
    group.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_worker_gives_up_its_channels_and_its_claims_are_refused() {
    let group = Group::start(3).await;
    quick_sessions(&group).await;
    let (stays, dies) = (worker(&group, "stays"), worker(&group, "dies"));
    group.watch(&["c1", "c2", "c3", "c4"]).await;
    let before = all_watched(&group, 4).await;
    let lost = before
        .iter()
        .find(|channel| channel.owner.as_ref().unwrap().node_name == "dies")
        .unwrap()
        .clone();
    dies.die();
    let name = lost.spec.as_ref().unwrap().name.clone();
    wait_for("the channels of the dead worker move", || async {
        let channels = group.channels().await;
        channels
            .iter()
            .all(|c| {
                c.phase() == v1::ChannelPhase::Watched
                    && c.owner.as_ref().is_some_and(|owner| owner.node_name == "stays")
            })
            .then_some(())
    })
    .await;
    let claim = v1::OwnerClaim {
        node_id: lost.owner.as_ref().unwrap().node_id,
        node_epoch: lost.owner.as_ref().unwrap().node_epoch,
        term: lost.term,
    };
    let commit = v1::CommitMetaRequest {
        write: None,
        name,
        claim: Some(claim),
        positions: bytes::Bytes::from_static(b"late"),
    };
    let refused = group.operator().commit_meta(commit).await.unwrap_err();
    assert_eq!(refused.reason(), Some("NOT_OWNER"), "{refused}");
    group.check().await;
    stays.die();
    group.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drained_worker_leaves_without_a_gap_in_ownership() {
    let group = Group::start(1).await;
    quick_sessions(&group).await;
    let (stays, leaves) = (worker(&group, "stays"), worker(&group, "leaves"));
    group.watch(&["c1", "c2", "c3", "c4"]).await;
    all_watched(&group, 4).await;
    leaves.leave().await;
    let after = all_watched(&group, 4).await;
    assert!(after.iter().all(|c| c.owner.as_ref().unwrap().node_name == "stays"));
    let nodes = group.operator().all_nodes(None).await.unwrap();
    let up: Vec<_> = nodes.iter().filter(|n| n.status() == v1::NodeStatus::Up).collect();
    assert_eq!(up.len(), 1, "{nodes:?}");
    group.check().await;
    stays.die();
    group.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_was_away_for_long_comes_back_through_a_snapshot() {
    let mut group = Group::start_with(3, |config| {
        config.raft.snapshot_every_entries = 50;
    })
    .await;
    let leader = group.leader().await;
    let away = (leader + 1) % 3;
    group.stop(away).await;
    for round in 0..40 {
        let names: Vec<String> = (0..5).map(|at| format!("c{round}-{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        group.watch(&names).await;
    }
    group.operator().take_snapshot(v1::TakeSnapshotRequest {}).await.unwrap();
    group.restart(away).await;
    group.check().await;
    group.stop(away).await;
    group.restart(away).await;
    group.check().await;
    assert_eq!(group.channels().await.len(), 200);
    group.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_members_stopped_and_started_again_know_everything() {
    let mut group = Group::start(3).await;
    group.watch(&["c1", "c2", "c3"]).await;
    for at in 0..3 {
        group.stop(at).await;
    }
    for at in 0..3 {
        group.restart(at).await;
    }
    let names: Vec<String> =
        group.channels().await.into_iter().map(|c| c.spec.unwrap().name).collect();
    assert_eq!(names, ["c1", "c2", "c3"]);
    group.check().await;
    group.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leadership_is_handed_over_on_request_and_writers_go_on() {
    let group = Group::start(3).await;
    let before = group.leader().await;
    let to = v1::TransferLeaderRequest { to: u64::try_from((before + 1) % 3 + 1).unwrap() };
    let moved = group.pinned(before).transfer_leader(to).await.unwrap();
    assert_eq!(moved.leader, to.to);
    group.watch(&["c1"]).await;
    group.check().await;
    group.end().await;
}
