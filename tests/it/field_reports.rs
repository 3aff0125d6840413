//! Goal: field reports of sessions that need the wire hold. Method: many watchers that do not read,
//! and reads of one number while the leadership moves, against groups of real coordinators. The
//! scale of each is in its test.

use client::WatchItem;
use client::proto as v1;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tests::harness::{Group, PATIENCE};
use tokio::time::timeout;

use crate::cluster::{quick_sessions, worker};

/// FR-002: 20 watchers that do not read while 2,000 commands (of 10,000) change 10,000 channels.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fr002_watchers_that_fall_behind_end_where_the_leader_is() {
    let group = Group::start(3).await;
    let options = || client::WatchOptions { from_revision: Some(0), ..Default::default() };
    let mut watches: Vec<_> = (0..20).map(|_| group.operator().watch_events(options())).collect();
    for watch in &mut watches {
        timeout(PATIENCE, watch.next()).await.unwrap().unwrap();
    }
    let announce = |at: usize| {
        let group = &group;
        async move {
            let names: Vec<String> = (0..5).map(|n| format!("c{at:04}-{n}")).collect();
            group.watch(&names.iter().map(String::as_str).collect::<Vec<_>>()).await
        }
    };
    let mut last = 0;
    for round in 0..20 {
        let mut writes: FuturesUnordered<_> =
            (0..100).map(|at| announce(round * 100 + at)).collect();
        while let Some(revision) = writes.next().await {
            last = last.max(revision);
        }
    }
    for watch in &mut watches {
        let (mut seen, mut resyncs) = (0, 0);
        while seen < last {
            match timeout(PATIENCE, watch.next()).await.unwrap().unwrap() {
                Some(WatchItem::Record(record)) => seen = record.revision,
                Some(_) => resyncs += 1,
                None => panic!("a watch never ends for its position"),
            }
        }
        assert!(resyncs <= 1, "{resyncs} times from the start");
    }
    group.check().await;
    group.end().await;
}

/// FR-014: what is told of a silent session stays in range while the leadership moves 5 times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fr014_the_silence_told_is_in_range_or_the_answer_is_retriable() {
    let group = Group::start(3).await;
    quick_sessions(&group).await;
    let (lives, dies) = (worker(&group, "lives"), worker(&group, "dies"));
    group.watch(&["c1", "c2"]).await;
    crate::cluster::all_watched(&group, 2).await;
    dies.die();
    // The ttl and the grace of the settings, and one step of the meter.
    let most = 1_500 + 2_000 + 600;
    let mut reads = 0;
    for round in 0..5_usize {
        let leader = group.leader().await;
        let to = u64::try_from((leader + 1) % 3 + 1).unwrap();
        let pinned = group.pinned(leader);
        let moving =
            tokio::spawn(
                async move { pinned.transfer_leader(v1::TransferLeaderRequest { to }).await },
            );
        for at in (0..3).cycle().take(200) {
            let read = v1::ReadOptions { min_revision: 0, consistency: 2 };
            let request = v1::ListNodesRequest { read: Some(read), ..Default::default() };
            match group.pinned(at).list_nodes(request).await {
                Ok(answer) => {
                    reads += 1;
                    for node in answer.nodes {
                        assert!(node.silent_ms <= most, "{} ms in round {round}", node.silent_ms);
                    }
                }
                Err(error) => {
                    let reason = error.reason().unwrap_or_default().to_owned();
                    assert!(["NOT_LEADER", "NO_LEADER"].contains(&reason.as_str()), "{error}");
                }
            }
        }
        moving.await.unwrap().unwrap();
    }
    assert!(reads >= 100, "{reads} reads were answered");
    lives.die();
    group.check().await;
    group.end().await;
}
