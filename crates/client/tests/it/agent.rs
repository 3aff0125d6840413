//! The agent over its stream: registration, directives, acknowledgements, reconnects, leaving.
//! The ends of sessions are in fencing.rs; the decisions are tested beside ledger.rs.
//! Run by `cargo test -p client`.

use client::agent::AgentEvent;
use client::proto::session_request::Body as Up;
use client::proto::session_response::Body as Down;
use client::proto::*;
use tonic::Code;

use crate::fake::{Fake, Stance, directive, not_leader};
use crate::worker::Running;

const TTL_MS: u64 = 60_000;
const NODE: (u64, u64) = (1, 2);

fn watch(channel: &str, term: u64) -> Directive {
    directive(channel, term, term, DirectiveKind::Watch)
}

fn running(report: &[client::proto::Running]) -> Vec<(&str, u64)> {
    report.iter().map(|one| (one.channel.as_str(), one.term)).collect()
}

#[tokio::test]
async fn the_hint_is_followed_and_an_ack_repeated_until_it_is_recorded() {
    let mut leader = Fake::start(Stance::Leads).await;
    let follower = Fake::start(Stance::Follows(Some(leader.address.clone()))).await;
    let mut agent = Running::start(&[&follower]);
    let mut session = leader.session().await;
    let (seq, register) = session.register().await;
    assert_eq!((register.name.as_str(), register.role()), ("w1", Role::Data));
    assert!(!register.incarnation.is_empty() && register.incarnation.len() <= 64);
    assert!(register.running.is_empty() && register.desired_digest.is_empty());
    session.registered(seq, NODE, 400).await;
    session.full(vec![watch("c", 5)]).await;
    let (first, ack) = session.report_with_ack().await;
    assert_eq!((ack.channel.as_str(), ack.term, ack.op), ("c", 5, 5));
    assert_eq!(ack.result(), AckResult::Ok);
    // Renewed, but no verdict yet: it comes again.
    session.renewed(first, &[]).await;
    let (second, again) = session.report_with_ack().await;
    assert!(second > first);
    assert_eq!(again, ack);
    session.renewed(second, &[&ack]).await;
    agent
        .event(|event| match event {
            AgentEvent::AckSettled { recorded: true, term: 5, .. } => Some(()),
            _ => None,
        })
        .await;
    let (_, report) = session.report().await;
    assert!(report.acks.is_empty(), "recorded: not repeated");
    assert_eq!(agent.calls.all(), ["watch c 5"]);
}

#[tokio::test]
async fn pieces_deltas_and_releases_are_carried_out() {
    let mut leader = Fake::start(Stance::Leads).await;
    let mut agent = Running::start(&[&leader]);
    let mut session = leader.session().await;
    session.begin(NODE, TTL_MS).await;
    let piece = |set: Vec<Directive>, last_chunk| {
        Down::Directives(Directives { full: true, last_chunk, set, ..Directives::default() })
    };
    session.send(0, piece(vec![watch("a", 5)], false)).await;
    session.send(0, piece(vec![watch("b", 5)], true)).await;
    agent.watching("a").await;
    agent.watching("b").await;
    let release = directive("a", 5, 8, DirectiveKind::Release);
    session.delta(vec![release, watch("c", 9)], &["b"]).await;
    agent.watching("c").await;
    let mut released = None;
    while released.is_none() {
        let (seq, report) = session.report().await;
        released = report.acks.into_iter().find(|ack| ack.channel == "a" && ack.op == 8);
        session.renewed(seq, &[]).await;
    }
    assert_eq!(released.map(|ack| (ack.term, ack.result())), Some((5, AckResult::Ok)));
    let calls = agent.calls.all();
    for call in ["release a 5", "stop b 5", "watch c 9"] {
        assert!(calls.iter().any(|made| made == call), "{call} in {calls:?}");
    }
}

#[tokio::test]
async fn a58_a_lower_term_is_refused_and_a_higher_one_starts_after_a_stop() {
    let mut leader = Fake::start(Stance::Leads).await;
    let mut agent = Running::start(&[&leader]);
    let mut session = leader.session().await;
    session.begin(NODE, TTL_MS).await;
    session.full(vec![watch("c", 7)]).await;
    agent.watching("c").await;
    session.delta(vec![directive("c", 5, 5, DirectiveKind::Release)], &[]).await;
    agent
        .event(|event| match event {
            AgentEvent::LowerTermRefused { term: 5, highest: 7, .. } => Some(()),
            _ => None,
        })
        .await;
    session.delta(vec![watch("c", 9)], &[]).await;
    assert_eq!(agent.watching("c").await, 9);
    assert_eq!(agent.calls.all(), ["watch c 7", "stop c 7", "watch c 9"]);
}

#[tokio::test]
async fn failures_are_undone_first_and_a_panic_is_a_failure() {
    let mut leader = Fake::start(Stance::Leads).await;
    let agent = Running::start(&[&leader]);
    for (channel, node) in [("fail", NODE), ("panic", (3, 4))] {
        let mut session = leader.session().await;
        session.begin(node, TTL_MS).await;
        session.full(vec![watch(channel, 5)]).await;
        let (_, ack) = session.report_with_ack().await;
        assert_eq!((ack.channel.as_str(), ack.result()), (channel, AckResult::FailedStopped));
        assert!(agent.calls.all().contains(&format!("stop {channel} 5")));
        session.send(0, Down::Fence(Fence::default())).await;
    }
}

#[tokio::test]
async fn a92_a_broken_stream_goes_on_elsewhere_with_the_same_session() {
    let mut first = Fake::start(Stance::Leads).await;
    let mut second = Fake::start(Stance::Follows(None)).await;
    let mut agent = Running::start(&[&first, &second]);
    let mut session = first.session().await;
    session.leader_term = 3;
    let register = session.begin(NODE, TTL_MS).await;
    session.full(vec![watch("c", 5)]).await;
    let (_, ack) = session.report_with_ack().await;
    second.set(Stance::Leads);
    drop(session);
    drop(first);
    let mut session = second.session().await;
    session.leader_term = 4;
    let (seq, again) = session.register().await;
    assert_eq!(again.incarnation, register.incarnation, "the same session");
    assert_eq!(again.desired_digest.len(), 16);
    assert_eq!(running(&again.running), [("c", 5)]);
    session.registered(seq, NODE, TTL_MS).await;
    let (seq, report) = session.report().await;
    assert_eq!(report.acks, std::slice::from_ref(&ack), "not recorded yet: said again at once");
    assert_eq!(running(&report.running), [("c", 5)]);
    session.renewed(seq, &[&ack]).await;
    // The digest was equal: no full set comes, the next delta is to the set we hold.
    session.delta(vec![watch("d", 9)], &[]).await;
    agent.watching("d").await;
    assert_eq!(agent.calls.all(), ["watch c 5", "watch d 9"]);
}

#[tokio::test]
async fn a_leader_that_resigns_is_left_for_the_one_it_names() {
    let mut first = Fake::start(Stance::Leads).await;
    let mut second = Fake::start(Stance::Leads).await;
    let mut agent = Running::start(&[&first]);
    let mut session = first.session().await;
    session.begin(NODE, TTL_MS).await;
    session.fail(not_leader(Some(&second.address))).await;
    second.session().await.begin(NODE, TTL_MS).await;
    let coordinator = agent
        .event(|event| match event {
            AgentEvent::Reconnected { coordinator, .. } => Some(coordinator.clone()),
            _ => None,
        })
        .await;
    assert_eq!(coordinator, second.address);
}

#[tokio::test]
async fn a94_a_deposed_leader_is_not_obeyed() {
    let mut first = Fake::start(Stance::Leads).await;
    let mut agent = Running::start(&[&first]);
    let mut session = first.session().await;
    session.leader_term = 5;
    session.begin(NODE, TTL_MS).await;
    session.full(vec![watch("c", 5)]).await;
    agent.watching("c").await;
    session.leader_term = 4;
    session.send(0, Down::Fence(Fence::default())).await;
    let refused = agent
        .event(|event| match event {
            AgentEvent::DeposedLeaderRefused { leader_term, highest, .. } => {
                Some((*leader_term, *highest))
            }
            _ => None,
        })
        .await;
    assert_eq!(refused, (4, 5));
    let mut session = first.session().await;
    session.leader_term = 6;
    let (_, again) = session.register().await;
    assert_eq!(running(&again.running), [("c", 5)], "nothing was stopped");
}

#[tokio::test]
async fn a_graceful_stop_waits_until_everything_is_elsewhere() {
    let mut leader = Fake::start(Stance::Leads).await;
    let mut agent = Running::start(&[&leader]);
    let mut session = leader.session().await;
    session.begin(NODE, TTL_MS).await;
    session.full(vec![watch("c", 5)]).await;
    let (seq, ack) = session.report_with_ack().await;
    session.renewed(seq, &[&ack]).await;
    agent.stop.cancel();
    let seq = loop {
        let (seq, report) = session.report().await;
        if report.stopping {
            break seq;
        }
        session.renewed(seq, &[]).await;
    };
    session.renewed(seq, &[]).await;
    session.delta(vec![directive("c", 5, 8, DirectiveKind::Release)], &[]).await;
    let (seq, ack) = session.report_with_ack().await;
    assert_eq!((ack.op, ack.result()), (8, AckResult::Ok));
    session.renewed(seq, &[&ack]).await;
    session.delta(Vec::new(), &["c"]).await;
    let goodbye = loop {
        match session.next().await {
            Some((_, Up::Goodbye(goodbye))) => break goodbye,
            Some((seq, Up::Report(_))) => session.renewed(seq, &[]).await,
            other => panic!("expected a goodbye, got {other:?}"),
        }
    };
    assert_eq!((goodbye.node_id, goodbye.node_epoch), NODE);
    drop(session);
    agent.agent.await.expect("no panic").expect("left");
    let left = agent.events.recv().await;
    let mut last = left;
    while let Some(event) = agent.events.recv().await {
        last = Some(event);
    }
    assert_eq!(last, Some(AgentEvent::Left { drained: true }));
}

#[tokio::test]
async fn a_stop_that_nobody_drains_ends_by_itself() {
    let mut leader = Fake::start(Stance::Leads).await;
    let mut agent = Running::start(&[&leader]);
    let mut session = leader.session().await;
    session.begin(NODE, TTL_MS).await;
    session.full(vec![watch("c", 5)]).await;
    agent.watching("c").await;
    agent.stop.cancel();
    loop {
        match session.next().await {
            Some((_, Up::Goodbye(_))) => break,
            Some((seq, _)) => session.renewed(seq, &[]).await,
            None => panic!("left without a goodbye"),
        }
    }
    assert!(agent.calls.all().contains(&"stop all".to_owned()), "stopped before the goodbye");
    drop(session);
    let drained = agent
        .event(|event| match event {
            AgentEvent::Left { drained } => Some(*drained),
            _ => None,
        })
        .await;
    assert!(!drained);
}

#[tokio::test]
async fn a_registration_that_is_refused_for_good_ends_the_agent() {
    let leader = Fake::start(Stance::Refuses(Code::InvalidArgument, "INVALID_ARGUMENT")).await;
    let agent = Running::start(&[&leader]);
    let error = agent.agent.await.expect("no panic").expect_err("refused");
    assert_eq!(error.reason(), Some("INVALID_ARGUMENT"));
}
