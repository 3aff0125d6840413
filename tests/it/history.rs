//! Goal: what happened can be asked for, from any position, and "why" has an answer. Method: one
//! real coordinator with a worker; watches from the start, from the past, from nowhere; explain;
//! HTTP pages.

use client::WatchItem;
use client::proto as v1;
use client::proto::event_service_client::EventServiceClient;
use client::proto::watch_response::Body;
use tests::harness::{Group, wait_for};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::transport::Channel;

use crate::cluster::{all_watched, worker};

async fn events(group: &Group, at: usize) -> EventServiceClient<Channel> {
    let uri = format!("http://{}", group.client_address(at));
    EventServiceClient::new(Channel::from_shared(uri).unwrap().connect().await.unwrap())
}

async fn records(group: &Group, at: usize, from: u64) -> (Vec<v1::EventRecord>, bool) {
    let request =
        v1::WatchRequest { from_revision: Some(from), channel: String::new(), until_present: true };
    let mut stream = events(group, at).await.watch(request).await.unwrap().into_inner();
    let (mut found, mut state) = (Vec::new(), false);
    while let Some(response) = stream.message().await.unwrap() {
        match response.body {
            Some(Body::Record(record)) => found.push(record),
            Some(Body::State(_)) => state = true,
            Some(Body::Idle(_)) | None => {}
        }
    }
    (found, state)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_starts_anywhere_and_never_ends_for_its_position() {
    let mut group = Group::start(1).await;
    group.watch(&["c1", "c2"]).await;
    group.watch(&["c3"]).await;
    let (all, state) = records(&group, 0, 0).await;
    assert!(!state);
    let revisions: Vec<u64> = all.iter().map(|record| record.revision).collect();
    let expected: Vec<u64> = (1..=u64::try_from(all.len()).unwrap()).collect();
    assert_eq!(revisions, expected, "contiguous from the first");
    let added = |record: &&v1::EventRecord| record.events.iter().any(|e| e.kind == "ChannelAdded");
    assert_eq!(all.iter().filter(added).count(), 2);
    assert!(all.iter().any(|record| record.actor == "test"));

    let (last, _) = records(&group, 0, revisions[revisions.len() - 2]).await;
    assert_eq!(last.len(), 1);
    let (none, state) = records(&group, 0, 1_000_000).await;
    assert!(none.is_empty() && state, "a position of another history gets the present state");

    // History survives a restart through the log and the event files.
    group.operator().take_snapshot(v1::TakeSnapshotRequest {}).await.unwrap();
    group.stop(0).await;
    group.restart(0).await;
    group.leader().await;
    let (again, state) = records(&group, 0, 0).await;
    assert!(!state, "kept");
    assert_eq!(again[..all.len()], all[..]);
    // Without the files a position before the snapshot gets the present state.
    group.stop(0).await;
    std::fs::remove_dir_all(group.data_dir(0).join("events")).unwrap();
    group.restart(0).await;
    group.leader().await;
    let (after, state) = records(&group, 0, 1).await;
    assert!(state || after.first().is_some_and(|first| first.revision == 2));
    group.check().await;
    group.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_goes_on_over_a_failover() {
    let mut group = Group::start(3).await;
    let options = client::WatchOptions { from_revision: Some(0), ..Default::default() };
    let mut watch = group.operator().watch_events(options);
    group.watch(&["c1"]).await;
    let leader = group.leader().await;
    group.stop(leader).await;
    group.watch(&["c2"]).await;
    let (mut seen, mut last) = (Vec::new(), 0);
    while seen.len() < 2 {
        let next = tokio::time::timeout(tests::harness::PATIENCE, watch.next()).await.unwrap();
        let Some(WatchItem::Record(record)) = next.unwrap() else { continue };
        assert_eq!(record.revision, last + 1, "no record is missed or repeated");
        last = record.revision;
        for event in record.events.iter().filter(|event| event.kind == "ChannelAdded") {
            seen.push(event.channel.clone());
        }
    }
    assert_eq!(seen, ["c1", "c2"]);
    group.check().await;
    group.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_names_the_decision_its_revision_and_its_cause() {
    let group = Group::start(1).await;
    group.watch(&["c1"]).await;
    let ask = |name: &str| v1::ExplainChannelRequest { read: None, name: name.to_owned() };
    let waiting = group.operator().explain_channel(ask("c1")).await.unwrap();
    assert!(!waiting.waiting_for.is_empty() && !waiting.unblocked_by.is_empty(), "{waiting:?}");
    let worker = worker(&group, "w");
    let watched = all_watched(&group, 1).await;
    let placed = wait_for("the history of the placement", || async {
        let answer = group.operator().explain_channel(ask("c1")).await.ok()?;
        answer.decision.clone().map(|decision| (answer, decision))
    })
    .await;
    let (answer, decision) = placed;
    assert_eq!(decision.revision, watched[0].placed_by);
    assert!(answer.summary.contains("unassigned"), "{}", answer.summary);
    assert!(decision.actor.starts_with("planner"), "{decision:?}");
    assert!(answer.history.iter().any(|step| step.event.contains("WatchCompleted")));
    assert_eq!(answer.candidates.len(), 1);
    worker.die();
    group.check().await;
    group.end().await;
}

pub(crate) async fn page(group: &Group, at: usize, path: &str) -> String {
    let mut stream = TcpStream::connect(group.http_address(at)).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_http_port_tells_readiness_and_numbers() {
    let group = Group::waiting(1, |_| {}).await;
    assert!(page(&group, 0, "/livez").await.starts_with("HTTP/1.1 200"));
    assert!(page(&group, 0, "/readyz").await.starts_with("HTTP/1.1 503"));
    group.end().await;
    let group = Group::start(1).await;
    wait_for("ready", || async {
        page(&group, 0, "/readyz").await.starts_with("HTTP/1.1 200").then_some(())
    })
    .await;
    group.watch(&["c1", "c2"]).await;
    let metrics = page(&group, 0, "/metrics").await;
    for line in ["quorate_raft_is_leader 1", "quorate_channels{phase=\"buffered\"} 2"] {
        assert!(metrics.contains(line), "{line} is missing in {metrics}");
    }
    assert!(page(&group, 0, "/nothing").await.starts_with("HTTP/1.1 404"));
    group.end().await;
}
