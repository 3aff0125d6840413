//! Goal: what former owners leave behind is told to cleaners until somebody says that it is gone,
//! over any loss of leaders and cleaners, and counts once. Method: real groups, workers whose
//! sessions are revoked, raw streams and the cleaner agent; the history says who cleaned what.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use client::cleaner::{CleanFailure, Cleaner, CleanerObserver, CleanerOptions, Cleanup};
use client::demo::DemoCleaner;
use client::proto as v1;
use client::proto::channel_service_client::ChannelServiceClient;
use client::{CancellationToken, node_named};
use tests::harness::{Group, PATIENCE, wait_for};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};
use tonic_types::StatusExt;

use crate::cluster::{Running, all_watched, worker};
use crate::history::page;

async fn connect(group: &Group, at: usize) -> ChannelServiceClient<Channel> {
    let uri = format!("http://{}", group.client_address(at));
    ChannelServiceClient::new(Channel::from_shared(uri).unwrap().connect().await.unwrap())
}

async fn quick(group: &Group) {
    let values = [("settle_ms".to_owned(), "0".to_owned())].into();
    group.operator().set_settings(v1::SetSettingsRequest { write: None, values }).await.unwrap();
}

async fn register(group: &Group, name: &str) -> v1::WriteReceipt {
    let request = v1::RegisterCleanerRequest { write: None, name: name.to_owned() };
    group.operator().register_cleaner(request).await.unwrap().receipt.unwrap()
}

async fn deregister(group: &Group, name: &str) {
    let request = v1::DeregisterCleanerRequest { write: None, name: name.to_owned() };
    group.operator().deregister_cleaner(request).await.unwrap();
}

/// A raw stream of a cleaner at one member, and what it was told to wait so far.
struct Stream {
    messages: Streaming<v1::WatchCleanupsResponse>,
    waiting: BTreeMap<String, v1::Cleanup>,
    complete: bool,
}

impl Stream {
    async fn open(group: &Group, at: usize, name: &str) -> Result<Self, Status> {
        let request = v1::WatchCleanupsRequest { name: name.to_owned() };
        let messages = connect(group, at).await.watch_cleanups(request).await?.into_inner();
        Ok(Self { messages, waiting: BTreeMap::new(), complete: false })
    }

    /// Takes in one message; the end of the stream is an error.
    async fn next(&mut self) -> Result<(), Status> {
        let message = timeout(PATIENCE, self.messages.message()).await.expect("in time")?;
        let message = message.expect("a stream ends with a reason");
        for cleanup in message.added {
            self.waiting.insert(cleanup.channel.clone(), cleanup);
        }
        for cleanup in message.gone {
            assert!(self.waiting.remove(&cleanup.channel).is_some(), "{cleanup:?} was not told");
        }
        self.complete |= message.full && message.last_chunk;
        Ok(())
    }

    async fn until(&mut self, count: usize) -> Vec<v1::Cleanup> {
        while !self.complete || self.waiting.len() != count {
            self.next().await.unwrap();
        }
        self.waiting.values().cloned().collect()
    }

    /// The reason for which it ends.
    async fn ends(&mut self) -> String {
        loop {
            if let Err(status) = self.next().await {
                return status.get_details_error_info().map(|it| it.reason).unwrap_or_default();
            }
        }
    }
}

/// A worker that had these channels loses them all at once and comes back as another session.
async fn revoke(group: &Group, name: &str) {
    let node = Some(node_named(name));
    group.operator().revoke_node(v1::RevokeNodeRequest { write: None, node }).await.unwrap();
}

async fn complete(group: &Group, cleanup: &v1::Cleanup) -> Result<(), client::Error> {
    let owner = cleanup.former_owner.clone().unwrap();
    let claim =
        v1::OwnerClaim { node_id: owner.node_id, node_epoch: owner.node_epoch, term: cleanup.term };
    let (name, former_owner) = (cleanup.channel.clone(), Some(claim));
    let request = v1::CompleteCleanupRequest { write: None, name, former_owner };
    group.operator().complete_cleanup(request).await.map(drop)
}

async fn waiting(group: &Group) -> v1::ListCleanersResponse {
    let read = Some(v1::ReadOptions { consistency: 2, min_revision: 0 });
    group.operator().list_cleaners(v1::ListCleanersRequest { read }).await.unwrap()
}

async fn all_cleaned(group: &Group) {
    wait_for("nothing to wait", || async { (waiting(group).await.waiting == 0).then_some(()) })
        .await;
}

/// Who cleared each former owner, with the event in words; each is cleared once.
async fn cleared(group: &Group) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut request = v1::ListEventsRequest { page_size: 1000, ..Default::default() };
    loop {
        let answer = group.operator().list_events(request.clone()).await.unwrap();
        for record in answer.records {
            for event in record.events.iter().filter(|it| it.kind == "FormerOwnerCleared") {
                let before = found.insert(event.text.clone(), record.actor.clone());
                assert_eq!(before, None, "{} came twice", event.text);
            }
        }
        request.from_revision = answer.next_revision;
        if request.from_revision == 0 {
            return found;
        }
    }
}

async fn start(members: u64, channels: &[&str]) -> (Group, Running) {
    let group = Group::start(members).await;
    quick(&group).await;
    let worker = worker(&group, "a");
    group.watch(channels).await;
    all_watched(&group, channels.len()).await;
    (group, worker)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_leader_tells_it_again_and_it_counts_once() {
    let (mut group, worker) = start(3, &["c_1", "c_2"]).await;
    register(&group, "k").await;
    let mut leader = group.leader().await;
    let mut stream = Stream::open(&group, leader, "k").await.unwrap();
    assert!(stream.until(0).await.is_empty());
    revoke(&group, "a").await;
    let told = stream.until(2).await;
    for (cleanup, name) in told.iter().zip(["c_1", "c_2"]) {
        let owner = cleanup.former_owner.as_ref().unwrap();
        assert_eq!((cleanup.channel.as_str(), owner.node_name.as_str()), (name, "a"));
        assert_eq!(cleanup.subscription, format!("quorate-{}-{name}", cleanup.term));
        assert_eq!(cleanup.pchannel, "c");
        let request = v1::DescribeChannelRequest { read: None, name: name.to_owned() };
        let channel = group.operator().describe_channel(request).await.unwrap().channel.unwrap();
        assert_eq!(channel.former_owners[0].owner.as_ref(), Some(owner), "it shows");
        assert_eq!(channel.former_owners[0].term, cleanup.term);
    }
    let metrics = page_of(&group, leader).await;
    for line in ["quorate_cleaners 1", "quorate_cleaner_streams 1", "quorate_cleanups_waiting 2"] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }

    group.stop(leader).await;
    assert!(["STOPPING", "NOT_LEADER", "NO_LEADER"].contains(&stream.ends().await.as_str()));
    leader = group.leader().await;
    let mut stream = Stream::open(&group, leader, "k").await.unwrap();
    assert_eq!(stream.until(2).await, told, "the same, by the new leader");
    let listed = waiting(&group).await;
    assert_eq!((listed.waiting, listed.cleaners[0].streams), (2, 1));
    assert_eq!(listed.cleanups, told);

    complete(&group, &told[0]).await.unwrap();
    assert_eq!(stream.until(1).await, told[1..]);
    let error = complete(&group, &told[0]).await.unwrap_err();
    assert_eq!(error.reason(), Some("NOT_FORMER_OWNER"));
    complete(&group, &told[1]).await.unwrap();
    stream.until(0).await;
    assert_eq!(cleared(&group).await.len(), 2);
    let metrics = page_of(&group, leader).await;
    assert!(metrics.contains("quorate_cleanups_done_total{how=\"told\"} 2"), "{metrics}");
    worker.die();
    group.check().await;
    group.end().await;
}

async fn page_of(group: &Group, at: usize) -> String {
    page(group, at, "/metrics").await
}

fn agent<C: Cleaner>(
    group: &Group,
    name: &str,
    cleaner: C,
) -> (JoinHandle<Result<(), client::Error>>, CancellationToken) {
    let mut options = CleanerOptions::new(group.endpoints(), name);
    options.retry_min = Duration::from_millis(10);
    options.observer = CleanerObserver::default();
    let stop = CancellationToken::new();
    (tokio::spawn(client::cleaner::run(options, cleaner, stop.clone())), stop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cleaner_agent_cleans_everything_once_while_leaders_change() {
    let channels = ["c1", "c2", "c3", "c4", "c5", "c6"];
    let (mut group, worker) = start(3, &channels).await;
    let (cleaner, stop) = agent(&group, "k", DemoCleaner::new(Duration::from_millis(20), 3));
    wait_for("the cleaner to be connected", || async {
        waiting(&group).await.cleaners.first().is_some_and(|it| it.streams == 1).then_some(())
    })
    .await;
    for _ in 0..3 {
        all_watched(&group, channels.len()).await;
        revoke(&group, "a").await;
        let leader = group.leader().await;
        group.stop(leader).await;
        all_watched(&group, channels.len()).await;
        group.restart(leader).await;
    }
    all_cleaned(&group).await;
    let cleared = cleared(&group).await;
    assert_eq!(cleared.len(), 3 * channels.len());
    assert!(cleared.values().all(|actor| actor == "cleaner:k"), "{cleared:?}");
    let nodes = group.operator().all_nodes(None).await.unwrap();
    assert_eq!(nodes.len(), 1, "those that were kept for it are forgotten: {nodes:?}");
    stop.cancel();
    cleaner.await.unwrap().unwrap();
    worker.die();
    group.check().await;
    group.end().await;
}

/// Never ends a clean-up.
struct Stuck;

impl Cleaner for Stuck {
    async fn clean(&self, _cleanup: Cleanup) -> Result<(), CleanFailure> {
        std::future::pending().await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cleaner_that_dies_in_the_middle_is_told_again_when_it_is_back() {
    let (group, worker) = start(1, &["c1", "c2"]).await;
    let (stuck, _) = agent(&group, "k", Stuck);
    wait_for("the cleaner to be connected", || async {
        waiting(&group).await.cleaners.first().is_some_and(|it| it.streams == 1).then_some(())
    })
    .await;
    revoke(&group, "a").await;
    all_watched(&group, 2).await;
    stuck.abort();
    wait_for("its stream to be gone", || async {
        (waiting(&group).await.cleaners[0].streams == 0).then_some(())
    })
    .await;
    assert_eq!(waiting(&group).await.waiting, 2, "registered, so nobody else does it");
    let (cleaner, stop) = agent(&group, "k", DemoCleaner::default());
    all_cleaned(&group).await;
    // It is told to stop, and stays registered.
    stop.cancel();
    cleaner.await.unwrap().unwrap();
    revoke(&group, "a").await;
    all_watched(&group, 2).await;
    assert_eq!(waiting(&group).await.waiting, 2);
    worker.die();
    group.check().await;
    group.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_cleaners_the_first_counts_and_without_any_all_is_released() {
    let (group, worker) = start(1, &["c1", "c2", "c3"]).await;
    register(&group, "k").await;
    register(&group, "l").await;
    let mut first = Stream::open(&group, 0, "k").await.unwrap();
    let mut second = Stream::open(&group, 0, "l").await.unwrap();
    revoke(&group, "a").await;
    let told = first.until(3).await;
    assert_eq!(second.until(3).await, told, "each is told everything");
    complete(&group, &told[0]).await.unwrap();
    assert_eq!(first.until(2).await, second.until(2).await);

    deregister(&group, "k").await;
    assert_eq!(first.ends().await, "UNKNOWN_CLEANER");
    let gone = Stream::open(&group, 0, "k").await.err().unwrap();
    assert_eq!(gone.code(), Code::NotFound);
    assert_eq!(waiting(&group).await.waiting, 2, "the other is still there");
    deregister(&group, "l").await;
    all_cleaned(&group).await;
    let cleared = cleared(&group).await;
    let by_leader = cleared.values().filter(|actor| actor.starts_with("effects:")).count();
    assert_eq!((cleared.len(), by_leader), (3, 2), "{cleared:?}");
    worker.die();
    group.check().await;
    group.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_without_a_quorum_and_a_follower_tell_nothing() {
    let mut group = Group::start(3).await;
    register(&group, "k").await;
    let leader = group.leader().await;
    let others: Vec<usize> = (0..3).filter(|at| *at != leader).collect();
    let status = Stream::open(&group, others[0], "k").await.err().unwrap();
    let info = status.get_details_error_info().unwrap();
    assert_eq!(info.reason, "NOT_LEADER");
    assert_eq!(info.metadata["leader_address"], group.client_address(leader));
    let mut stream = Stream::open(&group, leader, "k").await.unwrap();
    stream.until(0).await;
    for other in &others {
        group.stop(*other).await;
    }
    assert_eq!(stream.ends().await, "NO_LEADER");
    for other in others {
        group.restart(other).await;
    }
    group.leader().await;
    group.check().await;
    group.end().await;
}

async fn witness(group: &Group) -> Bytes {
    let asked = group.operator().get_witness(v1::GetWitnessRequest { index: 0 }).await.unwrap();
    asked.witnesses[0].witness.clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_names_and_false_completions_change_nothing() {
    let (group, worker) = start(1, &["c1"]).await;
    assert_eq!(register(&group, "k").await.outcome(), v1::WriteOutcome::Accepted);
    assert_eq!(register(&group, "k").await.outcome(), v1::WriteOutcome::NoChange);
    let mut stream = Stream::open(&group, 0, "k").await.unwrap();
    revoke(&group, "a").await;
    let told = stream.until(1).await.remove(0);
    // The worker dies, so that nothing else happens.
    worker.die();
    let before = witness(&group).await;
    let wrong = |change: fn(&mut v1::Cleanup, &mut v1::Owner)| {
        let (mut cleanup, mut owner) = (told.clone(), told.former_owner.clone().unwrap());
        change(&mut cleanup, &mut owner);
        v1::Cleanup { former_owner: Some(owner), ..cleanup }
    };
    let cases = [
        (wrong(|it, _| it.term -= 1), "NOT_FORMER_OWNER"),
        (wrong(|it, _| it.term += 100), "NOT_FORMER_OWNER"),
        (wrong(|it, _| it.term = u64::MAX), "NOT_FORMER_OWNER"),
        (wrong(|_, owner| owner.node_id += 1), "NOT_FORMER_OWNER"),
        (wrong(|_, owner| owner.node_epoch += 1), "NOT_FORMER_OWNER"),
        (wrong(|it, _| it.channel = String::from("nobody")), "UNKNOWN_CHANNEL"),
        (wrong(|it, _| it.channel = String::new()), "INVALID_ARGUMENT"),
        (wrong(|it, _| it.channel = "x".repeat(257)), "INVALID_ARGUMENT"),
        (wrong(|it, _| it.term = 0), "INVALID_ARGUMENT"),
        (wrong(|_, owner| owner.node_id = 0), "INVALID_ARGUMENT"),
        (wrong(|_, owner| owner.node_epoch = 0), "INVALID_ARGUMENT"),
    ];
    for (cleanup, reason) in cases {
        let error = complete(&group, &cleanup).await.unwrap_err();
        assert_eq!(error.reason(), Some(reason), "{cleanup:?}: {error}");
    }
    let mut channels = connect(&group, 0).await;
    for name in ["", &"x".repeat(129), "new\nline"] {
        let (write, name) = (None, name.to_owned());
        let request = v1::RegisterCleanerRequest { write: write.clone(), name: name.clone() };
        let status = channels.register_cleaner(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        let request = v1::DeregisterCleanerRequest { write, name: name.clone() };
        let status = channels.deregister_cleaner(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        let status = Stream::open(&group, 0, &name).await.err().unwrap();
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    }
    let request = v1::DeregisterCleanerRequest { write: None, name: String::from("nobody") };
    let status = channels.deregister_cleaner(request).await.unwrap_err();
    assert_eq!(status.get_details_error_info().unwrap().reason, "UNKNOWN_CLEANER");
    let write = Some(v1::WriteOptions { validate_only: true, ..Default::default() });
    let dry = v1::RegisterCleanerRequest { write, name: String::from("dry") };
    channels.register_cleaner(dry).await.unwrap();
    assert_eq!(witness(&group).await, before, "nothing was changed");

    for number in 2..=16 {
        register(&group, &format!("k{number}")).await;
    }
    let request = v1::RegisterCleanerRequest { write: None, name: String::from("k17") };
    let error = group.operator().register_cleaner(request).await.unwrap_err();
    assert_eq!(error.reason(), Some("LIMIT"), "{error}");
    assert_eq!(waiting(&group).await.cleaners.len(), 16);
    group.check().await;
    group.end().await;
}
