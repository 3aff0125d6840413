//! Watching events over streams that break.
//! The server's side of a watch is tested with the server.
//! Run by `cargo test -p client`.

use std::time::Duration;

use client::proto::watch_response::Body;
use client::proto::*;
use client::{Endpoints, ErrorKind, EventWatch, Operator, Options, WatchItem, WatchOptions};
use tokio::time::timeout;
use tonic::Status;

use crate::fake::{Fake, PATIENCE, Stance, not_leader};

fn operator(fakes: &[&Fake], deadline: Duration) -> Operator {
    let addresses = fakes.iter().map(|fake| fake.address.as_str());
    let endpoints = Endpoints::from_addresses(addresses).expect("well formed");
    Operator::connect(&endpoints, Options { deadline, ..Options::default() })
}

fn record(revision: u64) -> Result<WatchResponse, Status> {
    let body = Body::Record(EventRecord { revision, ..EventRecord::default() });
    Ok(WatchResponse { revision, body: Some(body) })
}

fn idle(revision: u64) -> Result<WatchResponse, Status> {
    Ok(WatchResponse { revision, body: Some(Body::Idle(Idle {})) })
}

fn state(at_revision: u64, channel: &str, last_chunk: bool) -> Result<WatchResponse, Status> {
    let spec = ChannelSpec { name: channel.to_owned(), ..ChannelSpec::default() };
    let channels = vec![Channel { spec: Some(spec), ..Channel::default() }];
    let state = PresentState { at_revision, channels, last_chunk, ..PresentState::default() };
    Ok(WatchResponse { revision: at_revision, body: Some(Body::State(state)) })
}

async fn next(watch: &mut EventWatch) -> Option<WatchItem> {
    timeout(PATIENCE, watch.next()).await.expect("in time").expect("no error")
}

async fn revision(watch: &mut EventWatch) -> u64 {
    match next(watch).await {
        Some(WatchItem::Record(record)) => record.revision,
        other => panic!("expected a record, got {other:?}"),
    }
}

#[tokio::test]
async fn a_watch_goes_on_elsewhere_from_its_last_revision_without_repeats() {
    let mut first = Fake::start(Stance::Leads).await;
    let mut second = Fake::start(Stance::Leads).await;
    let operator = operator(&[&first, &second], PATIENCE);
    let options = WatchOptions { from_revision: Some(0), ..WatchOptions::default() };
    let mut watch = operator.watch_events(options);
    let script = async {
        let stream = first.stream().await;
        for message in [record(1), record(2)] {
            stream.send(message).await.expect("read");
        }
        drop(stream);
        // Broke off: asked last.
        let stream = second.stream().await;
        for message in [record(2), record(3), idle(9)] {
            stream.send(message).await.expect("read");
        }
        stream.send(Err(not_leader(Some(&first.address)))).await.expect("read");
        let stream = first.stream().await;
        stream.send(record(10)).await.expect("read");
        stream
    };
    let seen = async {
        let mut seen = Vec::new();
        while seen.len() < 4 {
            seen.push(revision(&mut watch).await);
        }
        seen
    };
    let (seen, _stream) = tokio::join!(seen, script);
    assert_eq!(seen, [1, 2, 3, 10]);
    let asked = |fake: &Fake| -> Vec<Option<u64>> {
        fake.watches().iter().map(|request| request.from_revision).collect()
    };
    assert_eq!(asked(&first), [Some(0), Some(9)]);
    assert_eq!(asked(&second), [Some(2)]);
    assert_eq!(watch.position(), Some(10));
}

#[tokio::test]
async fn a_present_state_in_pieces_is_delivered_whole_also_after_a_break() {
    let mut member = Fake::start(Stance::Leads).await;
    let operator = operator(&[&member], PATIENCE);
    let mut watch =
        operator.watch_events(WatchOptions { from_revision: Some(5), ..WatchOptions::default() });
    let script = async {
        let stream = member.stream().await;
        stream.send(state(90, "half", false)).await.expect("read");
        drop(stream);
        let stream = member.stream().await;
        for message in [state(100, "a", false), state(100, "b", true), record(101)] {
            stream.send(message).await.expect("read");
        }
        stream
    };
    let seen = async { (next(&mut watch).await, next(&mut watch).await) };
    let ((first, second), _stream) = tokio::join!(seen, script);
    let Some(WatchItem::State(state)) = first else { panic!("expected a state, got {first:?}") };
    assert_eq!((state.at_revision, state.channels.len(), state.last_chunk), (100, 2, true));
    assert!(matches!(second, Some(WatchItem::Record(record)) if record.revision == 101));
}

#[tokio::test]
async fn a_watch_until_present_ends() {
    let mut member = Fake::start(Stance::Leads).await;
    let operator = operator(&[&member], PATIENCE);
    let options = WatchOptions { until_present: true, ..WatchOptions::default() };
    let mut watch = operator.watch_events(options);
    let script = async { member.stream().await.send(record(1)).await.expect("read") };
    let (seen, ()) = tokio::join!(revision(&mut watch), script);
    assert_eq!(seen, 1);
    assert_eq!(next(&mut watch).await, None);
    assert_eq!(next(&mut watch).await, None);
}

#[tokio::test]
async fn a_silent_stream_counts_as_dead() {
    let mut hung = Fake::start(Stance::Leads).await;
    let mut other = Fake::start(Stance::Leads).await;
    let operator = operator(&[&hung, &other], PATIENCE);
    let idle_timeout = Duration::from_millis(50);
    let mut watch = operator.watch_events(WatchOptions { idle_timeout, ..WatchOptions::default() });
    let script = async {
        let silent = hung.stream().await;
        other.stream().await.send(record(4)).await.expect("read");
        silent
    };
    let (seen, _silent) = tokio::join!(revision(&mut watch), script);
    assert_eq!(seen, 4);
}

#[tokio::test]
async fn a_watch_fails_once_nobody_serves_it_for_the_deadline() {
    let member = Fake::start(Stance::Follows(None)).await;
    let operator = operator(&[&member], Duration::from_millis(200));
    let mut watch = operator.watch_events(WatchOptions::default());
    let error = watch.next().await.expect_err("nobody serves");
    assert_eq!((error.kind(), error.reason()), (ErrorKind::Timeout, Some("NO_LEADER")));
}
