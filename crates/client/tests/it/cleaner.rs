//! The cleaner agent over streams that break, and refusals that are final.
//! What a real coordinator tells it is tested in the workspace's integration tests.
//! Run by `cargo test -p client`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use client::cleaner::{
    CleanFailure, Cleaner, CleanerEvent, CleanerObserver, CleanerOptions, Cleanup, run,
};
use client::proto::{self, WatchCleanupsResponse};
use client::{CancellationToken, Endpoints, Error};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tonic::{Code, Status};

use crate::fake::{Fake, PATIENCE, Stance, not_leader, status};

/// Fails the first attempts, in one way or another.
struct Clumsy {
    attempts: AtomicUsize,
}

impl Cleaner for Clumsy {
    async fn clean(&self, _cleanup: Cleanup) -> Result<(), CleanFailure> {
        match self.attempts.fetch_add(1, Ordering::Relaxed) {
            0 => Err(CleanFailure { reason: String::from("not now") }),
            1 => panic!("on purpose"),
            _ => Ok(()),
        }
    }
}

struct Running {
    events: mpsc::Receiver<CleanerEvent>,
    task: JoinHandle<Result<(), Error>>,
    stop: CancellationToken,
}

fn start(fakes: &[&Fake], attempts: usize) -> Running {
    let addresses = fakes.iter().map(|fake| fake.address.as_str());
    let endpoints = Endpoints::from_addresses(addresses).expect("well formed");
    let mut options = CleanerOptions::new(endpoints, "k");
    options.retry_min = Duration::from_millis(1);
    let (sender, events) = mpsc::channel(256);
    options.observer = CleanerObserver::new(move |event| {
        sender.try_send(event.clone()).expect("the test reads its events");
    });
    let stop = CancellationToken::new();
    let cleaner = Clumsy { attempts: AtomicUsize::new(attempts) };
    let task = tokio::spawn(run(options, cleaner, stop.clone()));
    Running { events, task, stop }
}

impl Running {
    async fn until(&mut self, wanted: impl Fn(&CleanerEvent) -> bool) -> CleanerEvent {
        loop {
            let event = timeout(PATIENCE, self.events.recv()).await.expect("in time");
            let event = event.expect("it runs");
            if wanted(&event) {
                return event;
            }
        }
    }

    async fn error(self) -> Error {
        timeout(PATIENCE, self.task).await.expect("in time").expect("no panic").expect_err("final")
    }
}

fn told(channels: &[&str]) -> Result<WatchCleanupsResponse, Status> {
    let cleanup = |name: &&str| proto::Cleanup {
        channel: (*name).to_owned(),
        former_owner: Some(proto::Owner { node_id: 3, node_epoch: 4, ..Default::default() }),
        term: 5,
        subscription: format!("s-{name}"),
        ..Default::default()
    };
    let added = channels.iter().map(cleanup).collect();
    Ok(WatchCleanupsResponse { full: true, last_chunk: true, added, ..Default::default() })
}

#[tokio::test]
async fn a_failed_or_panicking_clean_up_is_tried_again_and_then_recorded() {
    let mut leader = Fake::start(Stance::Leads).await;
    let mut cleaner = start(&[&leader], 0);
    let stream = leader.cleaner().await;
    stream.send(told(&["c"])).await.expect("read");
    for reason in ["not now", "panic"] {
        let event = cleaner.until(|event| matches!(event, CleanerEvent::Failed { .. })).await;
        assert!(event.to_string().contains(reason), "{event}");
    }
    cleaner.until(|event| matches!(event, CleanerEvent::Cleaned(_))).await;
    let completed = leader.completed();
    let claim = proto::OwnerClaim { node_id: 3, node_epoch: 4, term: 5 };
    assert_eq!(completed.len(), 1);
    assert_eq!((completed[0].name.as_str(), completed[0].former_owner), ("c", Some(claim)));
    assert!(leader.writes().iter().all(|write| write.actor == "cleaner:k"));
    cleaner.stop.cancel();
    timeout(PATIENCE, cleaner.task).await.expect("in time").expect("no panic").expect("no error");
}

#[tokio::test]
async fn what_was_done_and_could_not_be_told_is_told_to_the_next_leader() {
    let mut first = Fake::start(Stance::Leads).await;
    let mut second = Fake::start(Stance::Follows(Some(first.address.clone()))).await;
    let mut cleaner = start(&[&first, &second], 2);
    let stream = first.cleaner().await;
    // The leadership moves while the cleaner works.
    first.set(Stance::Follows(Some(second.address.clone())));
    second.set(Stance::Leads);
    stream.send(told(&["c", "d"])).await.expect("read");
    stream.send(Err(not_leader(Some(&second.address)))).await.expect("read");
    let stream = second.cleaner().await;
    stream.send(told(&["c", "d"])).await.expect("read");
    let mut done = Vec::new();
    while done.len() < 2 {
        let event = cleaner.until(|event| matches!(event, CleanerEvent::Cleaned(_))).await;
        let CleanerEvent::Cleaned(cleanup) = event else { panic!("{event}") };
        done.push(cleanup.channel);
    }
    done.sort();
    assert_eq!(done, ["c", "d"]);
    cleaner.stop.cancel();
}

#[tokio::test]
async fn what_somebody_else_completed_is_done() {
    let mut leader = Fake::start(Stance::Leads).await;
    let mut cleaner = start(&[&leader], 2);
    let stream = leader.cleaner().await;
    leader.set(Stance::Refuses(Code::FailedPrecondition, "NOT_FORMER_OWNER"));
    stream.send(told(&["c"])).await.expect("read");
    cleaner.until(|event| matches!(event, CleanerEvent::AlreadyDone(_))).await;
    cleaner.stop.cancel();
}

#[tokio::test]
async fn refusals_of_the_cleaner_itself_are_final() {
    let low = Fake::start(Stance::Refuses(Code::FailedPrecondition, "LEVEL_TOO_LOW")).await;
    assert_eq!(start(&[&low], 2).error().await.reason(), Some("LEVEL_TOO_LOW"));

    let mut leader = Fake::start(Stance::Leads).await;
    let cleaner = start(&[&leader], 2);
    let stream = leader.cleaner().await;
    let deregistered = status(Code::NotFound, "UNKNOWN_CLEANER", &[]);
    stream.send(Err(deregistered)).await.expect("read");
    assert_eq!(cleaner.error().await.reason(), Some("UNKNOWN_CLEANER"));
}
