//! the life of one channel.

use alloc::vec;

use state::channel::{AckResult, FormerOwner, PhaseKind};
use state::command::Command;
use state::event::Event;
use state::outcome::{Outcome, Rejection};
use state::{DirectiveKind, subscription_name};

use super::*;
use crate::report::Why;

/// One announced channel and no node.
fn alone() -> Fixture {
    let mut world = Fixture::new();
    world.buffer(&["c"]);
    world
}

#[test]
fn a01_without_a_node_a_channel_is_buffered() {
    let mut world = Fixture::new();
    let events = world.events(Command::WatchChannels(vec![spec("c")]));
    let [Event::ChannelAdded { term, .. }] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((world.at("c").as_str(), world.term("c")), ("Buffered", *term));
    assert_eq!(world.state.nodes().count(), 0, "nobody to be told anything");
    assert_eq!(world.plan().decision, None);
}

#[test]
fn a02_the_first_node_gets_what_waits_without_any_further_event() {
    let mut world = alone();
    let before = world.term("c");
    world.register("D1", Role::Data);
    assert_eq!(world.plan_and_apply(), "c->1");
    let (term, op) = world.in_force("c");
    assert_eq!(world.at("c"), "D1 ToWatch");
    assert!(term > before);
    assert_eq!(world.desired("D1"), [format!("c watch {term} {op}")]);
}

#[test]
fn a03_three_commands_bring_a_channel_to_its_node() {
    let mut world = with_nodes(&["D1"]);
    let start = world.state.revision().count();
    let mut activity = world.state.last_activity();
    for (step, expected) in ["Buffered", "D1 ToWatch", "D1 Watched"].into_iter().enumerate() {
        world.later(10);
        match step {
            0 => world.buffer(&["c"]),
            1 => assert_eq!(world.plan_and_apply(), "c->1"),
            _ => world.ack("c", AckResult::Ok),
        }
        assert_eq!(world.at("c"), expected);
        assert!(world.state.last_activity() > activity, "{expected}");
        activity = world.state.last_activity();
    }
    assert_eq!(world.state.revision().count(), start + 3);
    assert_eq!(world.plan().decision, None);
}

#[test]
fn a04_announcing_again_is_no_change() {
    let mut world = watched(&["D1"]);
    let (before, revision) = (world.channel("c"), world.state.revision());
    world.no_change(Command::WatchChannels(vec![spec("c")]));
    assert_eq!(world.state.revision(), revision);
    assert_eq!(world.channel("c"), before, "owner and term stand as they were");
}

#[test]
fn a05_other_content_is_a_conflict() {
    let mut world = watched(&["D1"]);
    let mut other = spec("c");
    other.collection = state::ids::CollectionId(2);
    let outcome = world.apply(Command::WatchChannels(vec![other]));
    let expected = Rejection::Conflict { channel: name("c"), field: "collection" };
    assert_eq!(outcome, Outcome::Rejected(expected));
}

#[test]
fn a06_a_failed_watch_cools_its_node_down() {
    let mut world = to_watch(&["D1", "D2"]);
    let before = world.term("c");
    world.ack("c", AckResult::FailedStopped);
    assert_buffered(&world, "c", before);
    let cooled = world.now.plus_ms(world.state.policy().cooldown_base_ms);
    assert_eq!(world.channel("c").cooldowns[&world.node("D1").node], cooled);
    assert_eq!(world.shown(), "c->2", "D1 has as few channels and the lower id");
    // Not even when it is the only node.
    let node = world.node("D2");
    world.accept(Command::Revoke { node });
    while world.now < cooled {
        let plan = world.plan();
        assert_eq!((plan.decision, plan.wake_at), (None, Some(cooled)));
        world.later(100);
    }
    assert_eq!(world.shown(), "c->1");
}

#[test]
fn a07_a_failed_watch_that_may_still_run_is_released_first() {
    let mut world = to_watch(&["D1", "D2"]);
    let (term, op) = world.in_force("c");
    world.ack("c", AckResult::Failed);
    let (same, release) = world.in_force("c");
    assert_eq!(world.at("c"), "D1 ToRelease");
    assert_eq!(same, term);
    assert!(release > op);
    assert_eq!(world.desired("D1"), [format!("c release {term} {release}")]);
    world.ack("c", AckResult::Ok);
    assert_buffered(&world, "c", term);
    assert_eq!(world.plan_and_apply(), "c->2");
}

/// `c@D1/TW` with a watch timeout of 5 s, and no grace of a leader that has just started.
fn impatient() -> Fixture {
    let mut world = with_nodes(&["D1"]);
    world.policy("watch_timeout_ms", "5000");
    world.later(60_000);
    world.buffer(&["c"]);
    world.place("c", "D1");
    world
}

fn progress(world: &Fixture, progress: u64) -> Command {
    let (term, op) = world.in_force("c");
    Command::ExtendDeadline { channel: name("c"), term, op, progress }
}

#[test]
fn a08_a_watch_without_an_answer_is_given_up_once() {
    let mut world = impatient();
    let (term, timeout) = (world.term("c"), world.timeout("c"));
    assert_eq!(world.state.next_deadline(), Some(world.now.plus_ms(5_000)));
    world.later(4_999);
    assert_eq!(world.state.due(world.now, 10), vec![]);
    world.rejects(timeout.clone(), "NOT_DUE");
    world.later(1);
    assert_eq!(world.state.due(world.now, 10), vec![timeout.clone()]);
    world.accept(timeout.clone());
    world.rejects(timeout, "STALE");
    assert_eq!((world.at("c").as_str(), world.term("c")), ("D1 ToRelease", term));
    assert_eq!(world.channel("c").attempts, 1);
}

#[test]
fn a09_progress_keeps_a_long_watch_alive() {
    let mut world = impatient();
    let half = world.state.policy().watch_timeout_ms / 2;
    let (term, mut told_at, mut entries) = (world.term("c"), world.now, 0);
    for step in 1..=30 {
        world.later(2_000);
        assert_eq!(world.state.due(world.now, 10), vec![], "no timeout after {step} steps");
        // The leader tells the log at most twice per timeout (18.4).
        if world.now.since(told_at) >= half {
            let command = progress(&world, step);
            world.accept(command);
            (told_at, entries) = (world.now, entries + 1);
        }
    }
    world.ack("c", AckResult::Ok);
    assert_eq!((world.at("c").as_str(), world.term("c")), ("D1 Watched", term));
    assert!(entries <= 24, "{entries}");
    assert_eq!(world.channel("c").attempts, 0);
}

#[test]
fn a10_the_same_progress_again_is_silence() {
    let mut world = impatient();
    let (timeout, command) = (world.timeout("c"), progress(&world, 7));
    world.accept(command.clone());
    for _ in 0..2 {
        world.later(2_000);
        world.no_change(command.clone());
    }
    world.later(999);
    assert_eq!(world.state.due(world.now, 10), vec![]);
    world.later(1);
    assert_eq!(world.state.due(world.now, 10), vec![timeout.clone()], "5 s after it moved last");
    world.accept(timeout);
    assert_eq!(world.at("c"), "D1 ToRelease");
}

#[test]
fn a10_progress_that_falls_is_silence() {
    let mut world = impatient();
    let timeout = world.timeout("c");
    let command = progress(&world, 7);
    world.accept(command);
    for lower in [6, 7, 0, 5] {
        world.later(1_000);
        let command = progress(&world, lower);
        world.no_change(command);
    }
    world.later(1_000);
    assert_eq!(world.state.due(world.now, 10), vec![timeout]);
    let command = progress(&world, 8);
    world.accept(command);
    assert_eq!(world.state.due(world.now, 10), vec![]);
}

#[test]
fn a11_a_release_leaves_the_owner_the_right_to_commit() {
    let mut world = watched(&["D1", "D2"]);
    let (term, claim) = (world.term("c"), world.claim("c"));
    world.later(60_000);
    world.release("c");
    assert_eq!((world.at("c").as_str(), world.term("c")), ("D1 ToRelease", term));
    let deadline = world.now.plus_ms(world.state.policy().release_timeout_ms);
    assert_eq!(world.state.deadline(&world.channel("c")), Some(deadline));
    assert_eq!(world.state.next_deadline(), Some(deadline));
    world.accept(commits("c", claim, b"last flush"));
}

#[test]
fn a12_a_released_channel_goes_to_another_node() {
    let mut world = to_release(&["D1", "D2"]);
    let term = world.term("c");
    world.ack("c", AckResult::Ok);
    assert_buffered(&world, "c", term);
    assert_eq!(world.plan_and_apply(), "c->2");
    assert_eq!(world.at("c"), "D2 ToWatch");
    assert!(world.desired("D1").is_empty());
}

#[test]
fn a13_a_released_channel_is_given_back_when_nobody_else_is_there() {
    let mut world = to_release(&["D1"]);
    let (old, claim) = (world.in_force("c"), world.claim("c"));
    let node = world.node("D1");
    world.ack("c", AckResult::Ok);
    assert_buffered(&world, "c", old.0);
    let plan = world.plan();
    assert_eq!(crate::moves(&plan)[0].cause, state::decision::Cause::GivenBack);
    assert_eq!(world.plan_and_apply(), "c->1");
    assert_eq!(world.at("c"), "D1 ToWatch");
    assert!(world.term("c") > old.0);
    for result in [AckResult::Failed, AckResult::FailedStopped, AckResult::Conflict] {
        world.rejects(said(node, "c", old, result), "STALE");
    }
    world.rejects(commits("c", claim, b"late"), "NOT_OWNER");
    let (term, op) = old;
    let stale = Command::ExtendDeadline { channel: name("c"), term, op, progress: 1 };
    world.rejects(stale, "STALE");
    assert_eq!(world.at("c"), "D1 ToWatch");
}

/// What follows from a release that failed or was not answered.
fn assert_former(world: &mut Fixture, former: FormerOwner) {
    assert_buffered(world, "c", former.term);
    assert_eq!(world.channel("c").former_owners, [former]);
    let effects: Vec<_> = world.state.effects().map(|(name, f)| (name.clone(), f)).collect();
    assert_eq!(effects, [(name("c"), former)], "one clean-up, derived from the state");
    assert_eq!(world.plan_and_apply(), "c->2");
    assert_eq!(world.at("c"), "D2 ToWatch");
}

/// The same session may own the channel again while its earlier term waits for clean-up.
#[test]
fn a14_a_late_clean_up_leaves_the_subscription_of_the_present_term_alone() {
    let mut world = to_release(&["D1"]);
    let former = FormerOwner { node: world.node("D1"), term: world.term("c") };
    world.ack("c", AckResult::Failed);
    world.later(60_000);
    assert_eq!(world.plan_and_apply(), "c->1");
    assert_eq!(world.state.former_owners(&name("c")), [former]);
    let (old, present) = (former.term, world.term("c"));
    assert_eq!(world.state.channel(&name("c")).unwrap().phase.owner(), Some(former.node));
    assert_ne!(subscription_name(&name("c"), old), subscription_name(&name("c"), present));
}

#[test]
fn a14_a_failed_release_leaves_a_former_owner_to_clean_up() {
    let mut world = to_release(&["D1", "D2"]);
    let former = FormerOwner { node: world.node("D1"), term: world.term("c") };
    assert_eq!(world.state.effects().count(), 0);
    world.ack("c", AckResult::Failed);
    assert_former(&mut world, former);
    // One function names what is to be cleaned up, by channel and term: not by collection (B-08).
    let subscription = |channel: &str, term| subscription_name(&name(channel), term);
    assert_eq!(subscription("c", former.term), format!("quorate-{}-c", former.term.0));
    assert_ne!(subscription("c", former.term), subscription("d", former.term));
    let done = Command::EffectDone {
        channel: name("c"),
        former: OwnerClaim { node: former.node, term: former.term },
    };
    world.accept(done);
    assert_eq!(world.state.effects().count(), 0);
}

#[test]
fn a15_a_failed_release_with_one_node_waits_for_the_hard_cool_down() {
    let mut world = to_release(&["D1"]);
    let term = world.term("c");
    assert_eq!(world.state.effects().count(), 0, "nothing to clean up before it is committed");
    world.ack("c", AckResult::Failed);
    assert_buffered(&world, "c", term);
    assert_eq!(world.state.effects().count(), 1);
    let until = world.now.plus_ms(world.state.policy().cooldown_max_ms);
    let plan = world.plan();
    assert_eq!((plan.decision, plan.wake_at), (None, Some(until)));
    assert_eq!(plan.report.waiting[0].why, Why::CoolingDown { until });
    world.now = until;
    assert_eq!(world.plan_and_apply(), "c->1");
    assert_eq!(world.at("c"), "D1 ToWatch");
}

#[test]
fn a16_a_release_without_an_answer_ends_at_its_deadline() {
    let mut world = to_release(&["D1", "D2"]);
    let former = FormerOwner { node: world.node("D1"), term: world.term("c") };
    let timeout = world.timeout("c");
    world.later(world.state.policy().release_timeout_ms - 1);
    world.rejects(timeout.clone(), "NOT_DUE");
    world.later(1);
    assert_eq!(world.state.due(world.now, 10), vec![timeout.clone()]);
    world.accept(timeout);
    assert_former(&mut world, former);
}

#[test]
fn a17_releasing_twice_is_one_release() {
    let mut world = to_release(&["D1", "D2"]);
    let (before, desired) = (world.channel("c"), world.desired("D1"));
    world.later(1_000);
    world.no_change(Command::Release { channel: name("c"), term: before.term });
    assert_eq!(world.channel("c"), before, "op and deadline as they were");
    assert_eq!(world.desired("D1"), desired, "no second directive");
}

#[test]
fn a18_what_nobody_owns_cannot_be_released() {
    let mut world = alone();
    let release = Command::Release { channel: name("c"), term: world.term("c") };
    world.rejects(release, "NOT_OWNED");
}

#[test]
fn a19_a_release_names_a_known_channel_and_its_term() {
    let mut world = watched(&["D1"]);
    let term = world.term("c");
    world.rejects(Command::Release { channel: name("x"), term }, "UNKNOWN_CHANNEL");
    for wrong in [ChannelTerm(term.0 - 1), ChannelTerm(term.0 + 100)] {
        world.rejects(Command::Release { channel: name("c"), term: wrong }, "TERM_CHANGED");
    }
    assert_eq!(world.at("c"), "D1 Watched");
}

#[test]
fn a20_a_consumer_that_died_is_replaced_after_a_short_cool_down() {
    let mut world = watched(&["D1"]);
    let term = world.term("c");
    world.ack("c", AckResult::FailedStopped);
    assert_buffered(&world, "c", term);
    let until = world.now.plus_ms(world.state.policy().cooldown_base_ms);
    assert_eq!(world.plan().wake_at, Some(until));
    world.now = until;
    assert_eq!(world.plan_and_apply(), "c->1");
    world.ack("c", AckResult::Ok);
    assert_eq!(world.at("c"), "D1 Watched");
}

#[test]
fn a21_the_same_acknowledgement_again_is_no_change() {
    let mut world = to_watch(&["D1"]);
    let ack = said(world.node("D1"), "c", world.in_force("c"), AckResult::Ok);
    world.accept(ack.clone());
    let revision = world.state.revision();
    world.no_change(ack);
    assert_eq!(world.state.revision(), revision);
    assert_eq!(world.desired("D1").len(), 1);
    assert_eq!(world.directives("D1")[0].kind, DirectiveKind::Watch);
    assert_eq!(world.channel("c").phase.kind(), PhaseKind::Watched);
}
