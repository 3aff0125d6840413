//! The ends of sessions: silence, a stopped process, a word of the coordinator.
//! Times are real but short; the clock is moved only to play a stopped process.
//! Run by `cargo test -p client`.

use std::time::Duration;

use client::agent::{AgentEvent, FenceCause};
use client::proto::session_response::Body as Down;
use client::proto::*;
use client::{Error, proto};
use tokio::time::Instant;
use tonic::Code;

use crate::fake::{Fake, Stance, directive, status};
use crate::worker::Running;

const NODE: (u64, u64) = (1, 2);

fn watch(channel: &str, term: u64) -> Directive {
    directive(channel, term, term, DirectiveKind::Watch)
}

impl Running {
    async fn fenced(&mut self) -> (FenceCause, usize) {
        self.event(|event| match event {
            AgentEvent::Fenced { cause, stopped, node_id: 1, node_epoch: 2 } => {
                Some((cause.clone(), *stopped))
            }
            _ => None,
        })
        .await
    }
}

/// The agent begins anew: another incarnation, nothing running, no set.
async fn begins_anew(leader: &mut Fake, agent: &Running, before: &Register) {
    let mut session = leader.session().await;
    let (_, register) = session.register().await;
    assert_ne!(register.incarnation, before.incarnation);
    assert!(register.running.is_empty() && register.desired_digest.is_empty());
    assert_eq!(agent.calls.all().last().map(String::as_str), Some("stop all"), "stopped first");
}

#[tokio::test]
async fn silence_fences_ttl_minus_margin_after_the_last_acknowledged_renewal_was_sent() {
    let mut leader = Fake::start(Stance::Leads).await;
    let mut agent = Running::start(&[&leader]);
    let mut session = leader.session().await;
    let begun = Instant::now();
    let register = session.begin(NODE, 600).await;
    session.full(vec![watch("c", 5)]).await;
    agent.watching("c").await;
    let handle = agent.session().await;
    assert!(handle.may_commit());
    // Answers stop; the stream stays open, and others say that nobody leads.
    leader.set(Stance::Follows(None));
    let (cause, stopped) = agent.fenced().await;
    let took = begun.elapsed();
    assert_eq!((cause, stopped), (FenceCause::Silence, 1));
    assert!(took >= Duration::from_millis(400), "too early: {took:?}");
    assert!(!handle.may_commit());
    let refused = handle.commit_meta("c", 5, bytes::Bytes::new()).await;
    assert!(matches!(refused, Err(Error::Fenced)), "{refused:?}");
    assert!(leader.writes().is_empty(), "nothing was sent");
    leader.set(Stance::Leads);
    begins_anew(&mut leader, &agent, &register).await;
}

#[tokio::test]
async fn a44_after_a_process_was_stopped_the_clock_is_asked_before_anything_is_done() {
    let mut leader = Fake::start(Stance::Leads).await;
    let mut agent = Running::start(&[&leader]);
    let mut session = leader.session().await;
    let register = session.begin(NODE, 60_000).await;
    session.full(vec![watch("c", 5)]).await;
    agent.watching("c").await;
    let handle = agent.session().await;
    // Messages wait for the process when it goes on: they must not be obeyed any more.
    tokio::time::pause();
    session.delta(vec![watch("d", 9)], &[]).await;
    tokio::time::advance(Duration::from_secs(50)).await;
    tokio::time::resume();
    assert!(!handle.may_commit(), "also before the agent itself has run");
    assert_eq!(agent.fenced().await, (FenceCause::Silence, 1));
    assert_eq!(agent.calls.all(), ["watch c 5", "stop all"]);
    begins_anew(&mut leader, &agent, &register).await;
}

#[tokio::test]
async fn renewals_keep_the_session_for_longer_than_its_ttl() {
    let mut leader = Fake::start(Stance::Leads).await;
    let mut agent = Running::start(&[&leader]);
    let mut session = leader.session().await;
    session.begin(NODE, 400).await;
    session.full(vec![watch("c", 5)]).await;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(1_200) {
        let (seq, report) = session.report().await;
        let acks: Vec<&Ack> = report.acks.iter().collect();
        session.renewed(seq, &acks).await;
    }
    assert!(agent.session().await.may_commit());
    assert_eq!(agent.calls.all(), ["watch c 5"]);
}

#[tokio::test]
async fn a_told_fence_stops_everything_also_what_is_under_way() {
    let mut leader = Fake::start(Stance::Leads).await;
    let mut agent = Running::start(&[&leader]);
    let mut session = leader.session().await;
    let register = session.begin(NODE, 60_000).await;
    session.full(vec![watch("hang", 5), watch("c", 5)]).await;
    agent.watching("c").await;
    let reason = "revoked".to_owned();
    session.send(0, Down::Fence(proto::Fence { reason: reason.clone() })).await;
    assert_eq!(agent.fenced().await, (FenceCause::Told(reason), 2));
    begins_anew(&mut leader, &agent, &register).await;
}

#[tokio::test]
async fn an_unknown_session_is_over() {
    let mut leader = Fake::start(Stance::Leads).await;
    let mut agent = Running::start(&[&leader]);
    let mut session = leader.session().await;
    let register = session.begin(NODE, 60_000).await;
    session.fail(status(Code::FailedPrecondition, "STALE_NODE", &[])).await;
    assert!(matches!(agent.fenced().await.0, FenceCause::Told(_)));
    begins_anew(&mut leader, &agent, &register).await;
}

#[tokio::test]
async fn a_session_that_comes_back_under_another_id_is_over() {
    let mut leader = Fake::start(Stance::Leads).await;
    let mut agent = Running::start(&[&leader]);
    let mut session = leader.session().await;
    let register = session.begin(NODE, 60_000).await;
    session.full(vec![watch("c", 5)]).await;
    agent.watching("c").await;
    drop(session);
    let mut session = leader.session().await;
    let (seq, again) = session.register().await;
    assert_eq!(again.incarnation, register.incarnation);
    session.registered(seq, (7, 8), 60_000).await;
    assert_eq!(agent.fenced().await.1, 1);
    begins_anew(&mut leader, &agent, &register).await;
}

#[tokio::test]
async fn a_reconnect_alone_does_not_renew() {
    let mut leader = Fake::start(Stance::Leads).await;
    let mut agent = Running::start(&[&leader]);
    let mut session = leader.session().await;
    session.begin(NODE, 900).await;
    session.full(vec![watch("c", 5)]).await;
    agent.watching("c").await;
    // Every reconnect is answered, no report is.
    let reconnects = async {
        loop {
            let mut session = leader.session().await;
            let (seq, _) = session.register().await;
            session.registered(seq, NODE, 900).await;
            while session.next().await.is_some() {}
        }
    };
    drop(session);
    tokio::select! {
        (cause, _) = agent.fenced() => assert_eq!(cause, FenceCause::Silence),
        () = reconnects => {}
    }
}

#[tokio::test]
async fn a_dead_consumer_is_reported_and_commits_carry_the_claim() {
    let mut leader = Fake::start(Stance::Leads).await;
    let mut agent = Running::start(&[&leader]);
    let mut session = leader.session().await;
    session.begin(NODE, 60_000).await;
    session.full(vec![watch("c", 5)]).await;
    let (seq, ack) = session.report_with_ack().await;
    session.renewed(seq, &[&ack]).await;
    let handle = agent.session().await;
    assert_eq!((handle.node_id(), handle.node_epoch()), NODE);
    let claim = handle.claim(5);
    assert_eq!((claim.node_id, claim.node_epoch, claim.term), (1, 2, 5));
    handle.commit_meta("c", 5, bytes::Bytes::from_static(b"p")).await.expect("taken");
    assert_eq!(leader.writes().len(), 1);
    assert_eq!(leader.writes()[0].actor, "worker:w1");
    handle.consumer_died("c", 5, "out of memory").await;
    let (_, ack) = session.report_with_ack().await;
    assert_eq!((ack.op, ack.result()), (5, AckResult::FailedStopped));
    assert_eq!(ack.reason, "out of memory");
}

/// FR-007, scaled to a ttl of 1 s: 32 busy tasks on two threads do not delay a renewal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fr007_a_busy_runtime_does_not_starve_the_session() {
    const TTL_MS: u64 = 1_000;
    let mut leader = Fake::start(Stance::Leads).await;
    let mut agent = Running::start_apart(&[&leader]);
    let mut session = leader.session().await;
    session.begin(NODE, TTL_MS).await;
    session.full(vec![watch("c", 5)]).await;
    agent.watching("c").await;
    let handle = agent.session().await;
    let until = std::time::Instant::now() + Duration::from_secs(3);
    let busy: Vec<_> = (0..32)
        .map(|_| tokio::spawn(async move { while std::time::Instant::now() < until {} }))
        .collect();
    let (mut last, mut worst) = (std::time::Instant::now(), Duration::ZERO);
    while std::time::Instant::now() < until {
        let (seq, report) = session.report().await;
        let acks: Vec<&Ack> = report.acks.iter().collect();
        session.renewed(seq, &acks).await;
        worst = worst.max(last.elapsed());
        last = std::time::Instant::now();
        assert!(handle.may_commit());
    }
    assert!(worst < Duration::from_millis(TTL_MS / 2), "{worst:?} between two renewals");
    for task in busy {
        task.await.expect("no panic");
    }
    assert_eq!(agent.calls.all(), ["watch c 5"], "never fenced");
}
