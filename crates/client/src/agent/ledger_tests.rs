//! Tests of the ledger: every rule of the node protocol that it decides.
//! No tasks and no clock: desired sets in, actions and acknowledgements out.
//! Run by `cargo test -p client`.

use super::*;
use crate::proto::{Ack, Directives, Verdict};

struct World {
    desired: Desired,
    ledger: Ledger,
    seq: u64,
}

fn directive(channel: &str, term: u64, op: u64, kind: DirectiveKind) -> Directive {
    let (channel, kind) = (channel.to_owned(), kind.into());
    Directive { channel, term, op, kind, ..Directive::default() }
}

fn watch(term: u64, op: u64) -> Directive {
    directive("c", term, op, DirectiveKind::Watch)
}

fn release(term: u64, op: u64) -> Directive {
    directive("c", term, op, DirectiveKind::Release)
}

fn failed(reason: &str, stopped: bool) -> Outcome {
    Outcome::Failed { reason: reason.to_owned(), stopped }
}

impl World {
    fn new() -> Self {
        let mut desired = Desired::default();
        desired.take(Directives { full: true, last_chunk: true, ..Directives::default() });
        Self { desired, ledger: Ledger::default(), seq: 0 }
    }

    /// The coordinator wants this of channel c, or nothing.
    fn want(&mut self, want: Option<Directive>) -> Option<Action> {
        let gone = if want.is_none() { vec!["c".to_owned()] } else { Vec::new() };
        let set = want.into_iter().collect();
        self.desired.take(Directives { last_chunk: true, set, gone, ..Directives::default() });
        self.ledger.reconcile("c", &self.desired)
    }

    fn finish(&mut self, action: Option<&Action>, outcome: Outcome) -> Option<Action> {
        let serial = match action.expect("an action") {
            Action::Watch { serial, .. }
            | Action::Release { serial, .. }
            | Action::Stop { serial, .. } => *serial,
        };
        self.ledger.finished("c", serial, outcome, &self.desired).1
    }

    /// What the next report carries of channel c: (term, op, result).
    fn acked(&mut self) -> Option<(u64, u64, AckResult)> {
        self.seq += 1;
        let acks: Vec<Ack> = self.ledger.acks.report(self.seq);
        assert!(acks.len() <= 1);
        acks.first().map(|ack| (ack.term, ack.op, ack.result()))
    }

    fn recorded(&mut self, term: u64, op: u64) -> bool {
        let verdict = Verdict::Recorded.into();
        let verdict = AckVerdict { channel: "c".to_owned(), term, op, verdict };
        self.ledger.verdict(self.seq, &verdict, &self.desired)
    }

    /// Channel c is watched under this term and the coordinator knows.
    fn watched(term: u64) -> Self {
        let mut world = Self::new();
        let action = world.want(Some(watch(term, term)));
        world.finish(action.as_ref(), Outcome::Done);
        assert_eq!(world.acked(), Some((term, term, AckResult::Ok)));
        assert!(world.recorded(term, term));
        assert_eq!(world.acked(), None);
        world
    }
}

fn is_watch(action: Option<&Action>, of: u64) -> bool {
    matches!(action, Some(Action::Watch { directive, .. }) if directive.term == of)
}

fn is_stop(action: Option<&Action>, of: u64) -> bool {
    matches!(action, Some(Action::Stop { term, .. }) if *term == of)
}

fn is_release(action: Option<&Action>, of: u64) -> bool {
    matches!(action, Some(Action::Release { term, .. }) if *term == of)
}

#[test]
fn the_life_of_a_channel() {
    let mut world = World::watched(5);
    assert_eq!(world.want(Some(watch(5, 5))), None, "level-triggered: keep");
    let action = world.want(Some(release(5, 7)));
    assert!(is_release(action.as_ref(), 5));
    world.finish(action.as_ref(), Outcome::Done);
    assert_eq!(world.acked(), Some((5, 7, AckResult::Ok)));
    assert!(!world.ledger.is_idle(), "not recorded yet");
    assert_eq!(world.want(None), None);
    assert_eq!(world.acked(), Some((5, 7, AckResult::Ok)), "repeated");
    assert!(world.recorded(5, 7));
    assert!(world.ledger.is_idle());
}

#[test]
fn nothing_is_done_before_a_set_is_known() {
    let mut ledger = Ledger::default();
    assert_eq!(ledger.reconcile("c", &Desired::default()), None);
}

#[test]
fn a_higher_term_starts_only_after_the_lower_one_stopped() {
    let mut world = World::watched(5);
    let stop = world.want(Some(watch(9, 9)));
    assert!(is_stop(stop.as_ref(), 5));
    assert_eq!(world.want(Some(watch(9, 9))), None, "under way");
    let start = world.finish(stop.as_ref(), Outcome::Done);
    assert!(is_watch(start.as_ref(), 9));
    assert_eq!(world.acked(), None, "nobody asked for the old term");
}

#[test]
fn a_watch_under_way_is_stopped_for_a_higher_term_and_its_result_is_ignored() {
    let mut world = World::new();
    let old = world.want(Some(watch(5, 5)));
    let stop = world.want(Some(watch(9, 9)));
    assert!(is_stop(stop.as_ref(), 5));
    assert_eq!(world.finish(old.as_ref(), Outcome::Done), None);
    assert_eq!(world.acked(), None);
    let start = world.finish(stop.as_ref(), Outcome::Done);
    assert!(is_watch(start.as_ref(), 9));
}

#[test]
fn what_is_not_desired_is_stopped_without_an_ack() {
    let mut world = World::watched(5);
    let stop = world.want(None);
    assert!(is_stop(stop.as_ref(), 5));
    assert_eq!(world.finish(stop.as_ref(), Outcome::Done), None);
    assert_eq!(world.acked(), None);
    assert!(world.ledger.is_idle());
}

#[test]
fn a_failed_watch_that_left_something_is_undone_before_it_is_reported() {
    let mut world = World::new();
    let start = world.want(Some(watch(5, 5)));
    let undo = world.finish(start.as_ref(), failed("broken", false));
    assert!(is_stop(undo.as_ref(), 5));
    assert_eq!(world.acked(), None, "not before it is undone");
    world.finish(undo.as_ref(), Outcome::Done);
    assert_eq!(world.acked(), Some((5, 5, AckResult::FailedStopped)));
    assert_eq!(world.want(Some(watch(5, 5))), None, "not again under this term");
    assert!(is_watch(world.want(Some(watch(8, 8))).as_ref(), 8));
}

#[test]
fn a_failed_watch_that_cannot_be_undone_says_so() {
    let mut world = World::new();
    let start = world.want(Some(watch(5, 5)));
    let undo = world.finish(start.as_ref(), failed("broken", false));
    assert_eq!(world.finish(undo.as_ref(), failed("hangs", false)), None);
    assert_eq!(world.acked(), Some((5, 5, AckResult::Failed)));
    assert_eq!(world.ledger.len(), 1, "something may still run");
    let stop = world.want(Some(release(5, 6)));
    assert!(is_stop(stop.as_ref(), 5));
    world.finish(stop.as_ref(), Outcome::Done);
    assert_eq!(world.acked(), Some((5, 6, AckResult::Ok)));
}

#[test]
fn a_failed_watch_that_stopped_is_reported_at_once() {
    let mut world = World::new();
    let start = world.want(Some(watch(5, 5)));
    assert_eq!(world.finish(start.as_ref(), failed("no", true)), None);
    assert_eq!(world.acked(), Some((5, 5, AckResult::FailedStopped)));
}

#[test]
fn a_release_during_a_watch_ends_the_watch_and_answers_the_release() {
    let mut world = World::new();
    let _ = world.want(Some(watch(5, 5)));
    let stop = world.want(Some(release(5, 6)));
    assert!(is_stop(stop.as_ref(), 5));
    world.finish(stop.as_ref(), Outcome::Done);
    assert_eq!(world.acked(), Some((5, 6, AckResult::Ok)));
}

#[test]
fn a_release_of_what_does_not_run_is_done() {
    let mut world = World::new();
    assert_eq!(world.want(Some(release(5, 6))), None);
    assert_eq!(world.acked(), Some((5, 6, AckResult::Ok)));
}

#[test]
fn a_failed_release_is_reported_and_tried_again_once_it_is_not_desired() {
    let mut world = World::watched(5);
    let action = world.want(Some(release(5, 6)));
    world.finish(action.as_ref(), failed("disk", false));
    assert_eq!(world.acked(), Some((5, 6, AckResult::Failed)));
    assert_eq!(world.want(Some(release(5, 6))), None);
    let stop = world.want(None);
    assert!(is_stop(stop.as_ref(), 5));
    world.finish(stop.as_ref(), failed("disk", false));
    let again = world.ledger.retry_stuck(&world.desired);
    assert!(is_stop(again.first(), 5));
    world.finish(again.first(), Outcome::Done);
    assert_eq!(world.ledger.len(), 0);
}

#[test]
fn a60_an_old_term_that_cannot_be_stopped_is_a_conflict() {
    let mut world = World::watched(5);
    let stop = world.want(Some(watch(9, 9)));
    assert_eq!(world.finish(stop.as_ref(), failed("hangs", false)), None);
    assert_eq!(world.acked(), Some((9, 9, AckResult::Conflict)));
    let again = world.ledger.retry_stuck(&world.desired);
    assert!(is_stop(again.first(), 5));
    let next = world.want(Some(release(9, 11)));
    assert_eq!(next, None, "being stopped");
    assert_eq!(world.finish(again.first(), Outcome::Done), None);
    assert_eq!(world.acked(), Some((9, 11, AckResult::Ok)), "nothing runs any more");
}

#[test]
fn a58_a_release_of_an_earlier_term_is_ignored() {
    let mut world = World::watched(7);
    for late in [release(5, 6), watch(5, 5), release(6, 6)] {
        assert_eq!(world.want(Some(late)), None);
        assert_eq!(world.acked(), None, "nor is it answered");
    }
    let running = world.ledger.running();
    assert_eq!(running.first().map(|one| one.term), Some(7));
    let action = world.want(Some(release(7, 9)));
    assert!(is_release(action.as_ref(), 7), "its own release is carried out");
}

#[test]
fn a60_after_the_old_term_is_stopped_the_present_one_starts() {
    let mut world = World::watched(5);
    let stop = world.want(Some(watch(9, 9)));
    assert!(is_stop(stop.as_ref(), 5));
    let start = world.finish(stop.as_ref(), Outcome::Done);
    assert!(is_watch(start.as_ref(), 9));
    world.finish(start.as_ref(), Outcome::Done);
    assert_eq!(world.acked(), Some((9, 9, AckResult::Ok)));
}

#[test]
fn a59_an_acknowledgement_is_said_until_it_is_recorded() {
    let mut world = World::new();
    let start = world.want(Some(watch(5, 5)));
    for _ in 0..10 {
        assert_eq!(world.want(Some(watch(5, 5))), None, "told again while it starts");
    }
    world.finish(start.as_ref(), Outcome::Done);
    for _ in 0..10 {
        assert_eq!(world.acked(), Some((5, 5, AckResult::Ok)));
        assert_eq!(world.want(Some(watch(5, 5))), None, "told again while it runs");
    }
    assert!(world.recorded(5, 5));
    assert_eq!(world.acked(), None);
}

#[test]
fn a_dead_consumer_is_reported_under_the_op_of_its_watch() {
    let mut world = World::watched(5);
    assert!(!world.ledger.died("c", 4, "another term"));
    assert!(world.ledger.died("c", 5, "out of memory"));
    assert!(!world.ledger.died("c", 5, "twice"));
    assert_eq!(world.acked(), Some((5, 5, AckResult::FailedStopped)));
    assert_eq!(world.want(Some(watch(5, 5))), None, "not started again by itself");
}

#[test]
fn running_and_progress_name_what_runs() {
    let mut world = World::new();
    let start = world.want(Some(watch(5, 5)));
    let progress = world.ledger.progress(|_, term| Some(term * 10));
    assert_eq!(progress.first().map(|one| (one.op, one.progress)), Some((5, 50)));
    world.finish(start.as_ref(), Outcome::Done);
    assert!(world.ledger.progress(|_, _| Some(1)).is_empty());
    let running = world.ledger.running();
    assert_eq!(running.first().map(|one| (one.channel.as_str(), one.term)), Some(("c", 5)));
}
