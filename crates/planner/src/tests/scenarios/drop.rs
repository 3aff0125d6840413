//! a channel is dropped or removed.

use alloc::vec;

use state::channel::AckResult;
use state::command::Command;
use state::decision::{Action, Basis, Cause, Decision, Guard, Move};
use state::event::Event;
use state::outcome::{Facts, Outcome, Refusal};

use super::*;

/// A decision of one move, as a planner of this moment would make it.
fn decision(world: &Fixture, channel: &str, action: Action, cause: Cause) -> Command {
    let record = world.channel(channel);
    let guard = Guard { term: record.term, phase: record.phase.kind() };
    let basis = Basis { term: world.term, revision: world.state.revision() };
    let moves = vec![Move { channel: name(channel), guard, action, cause }];
    Command::Place(Decision { basis, moves, atomic: false })
}

/// `c@D1/TR`, on its way to D2 to even out load.
fn moving() -> Fixture {
    let mut world = watched(&["D1", "D2"]);
    let action = Action::Move { from: world.node("D1"), to: world.node("D2") };
    let command = decision(&world, "c", action, Cause::Balance);
    world.accept(command);
    world
}

fn assert_gone(world: &Fixture, channel: &str) {
    assert_eq!(world.at(channel), "unknown");
    assert!(world.state.dropped(&name(channel)).is_some());
    assert_eq!(world.state.next_deadline(), None);
    assert_eq!(world.plan().decision, None);
}

#[test]
fn a22_an_owner_drops_its_channel() {
    let mut world = watched(&["D1", "D2"]);
    let (term, claim) = (world.term("c"), world.claim("c"));
    let command = world.drop_command("c", Some(claim));
    world.accept(command);
    assert_eq!((world.at("c").as_str(), world.term("c")), ("D1 ToRelease", term));
    assert!(world.channel("c").dropping());
    assert_eq!(world.plan().decision, None);
    let to = world.node("D2");
    let place = decision(&world, "c", Action::Assign { to }, Cause::Unassigned);
    let Outcome::NoChange(Facts::AllRefused(refused)) = world.apply(place) else { panic!() };
    assert_eq!(refused[0].refusal, Refusal::Dropping);
    let placed = world.channel("c").placed_by.clone();
    world.ack("c", AckResult::Ok);
    assert_gone(&world, "c");
    let placements = world.log.iter().filter(|(_, r)| matches!(r.command, Command::Place(_)));
    assert_eq!(placements.count(), 2, "the first one and the refused one");
    assert!(placed.is_some());
}

#[test]
fn a23_a_drop_wins_over_a_planned_move() {
    let mut world = moving();
    let command = world.drop_command("c", None);
    world.accept(command);
    world.ack("c", AckResult::Ok);
    assert_gone(&world, "c");
    assert!(world.desired("D2").is_empty());
}

#[test]
fn a24_a_drop_under_an_old_term_is_repeated_by_the_new_owner() {
    let mut world = moving();
    let old = world.claim("c");
    world.ack("c", AckResult::Ok);
    let command = world.drop_command("c", Some(old));
    world.rejects(command, "NOT_OWNER");
    assert_eq!(world.plan_and_apply(), "c->2");
    let command = world.drop_command("c", Some(old));
    world.rejects(command, "NOT_OWNER");
    let command = world.drop_command("c", Some(world.claim("c")));
    world.accept(command);
    world.ack("c", AckResult::Ok);
    assert_gone(&world, "c");
}

#[test]
fn a24_an_operator_drops_in_any_phase() {
    let buffered = || {
        let mut world = Fixture::new();
        world.buffer(&["c"]);
        world
    };
    for mut world in [buffered(), to_watch(&["D1"]), watched(&["D1"]), to_release(&["D1"])] {
        let phase = world.at("c");
        let command = world.drop_command("c", None);
        world.accept(command);
        if phase != "Buffered" {
            assert!(world.channel("c").dropping(), "{phase}");
            world.ack("c", AckResult::Ok);
        }
        assert_gone(&world, "c");
    }
}

#[test]
fn a25_a_buffered_channel_is_dropped_at_once() {
    let mut world = Fixture::new();
    world.buffer(&["c"]);
    let command = world.drop_command("c", None);
    let events = world.events(command);
    assert!(matches!(events.as_slice(), [Event::ChannelRemoved { .. }]), "{events:?}");
    assert_gone(&world, "c");
}

#[test]
fn a26_a_removed_channel_is_not_given_to_a_node_that_joins() {
    let mut world = Fixture::new();
    world.buffer(&["c"]);
    world.accept(Command::RemoveChannel { channel: name("c") });
    assert_gone(&world, "c");
    world.register("D1", Role::Data);
    assert_gone(&world, "c");
    assert!(world.desired("D1").is_empty());
}

#[test]
fn a27_removal_takes_the_deadline_with_it() {
    let mut world = to_watch(&["D1"]);
    let (timeout, term) = (world.timeout("c"), world.term("c"));
    world.accept(Command::RemoveChannel { channel: name("c") });
    assert_gone(&world, "c");
    assert!(world.desired("D1").is_empty(), "so D1 stops it");
    world.later(world.state.policy().watch_timeout_ms);
    assert_eq!(world.state.due(world.now, 10), vec![]);
    world.rejects(timeout, "DROPPED");
    let owner = OwnerClaim { node: world.node("D1"), term };
    let kept = &world.state.dropped(&name("c")).unwrap().former_owners;
    assert_eq!((kept[0].node, kept[0].term), (owner.node, owner.term), "D1 was not asked");
}

/// The steps of a drop, with a leader that changes before one of them.
fn drop_with_a_crash_at(at: usize, answers: bool) -> Fixture {
    let mut world = watched(&["D1", "D2"]);
    for step in 0..3 {
        if step == at {
            world.lead(7);
        }
        match step {
            0 => {
                let command = world.drop_command("c", None);
                world.accept(command);
            }
            1 if answers => world.ack("c", AckResult::Ok),
            1 => {
                // The new leader derives the deadline, its grace included.
                let due = world.state.next_deadline().unwrap();
                world.now = due;
                let timeouts = world.state.due(due, 10);
                assert_eq!(timeouts.len(), 1);
                world.accept(timeouts[0].clone());
            }
            _ => assert_gone(&world, "c"),
        }
    }
    world
}

#[test]
fn a28_any_leader_finishes_a_drop_and_leaves_no_mark() {
    for at in 0..=3 {
        for answers in [true, false] {
            let mut world = drop_with_a_crash_at(at, answers);
            assert_gone(&world, "c");
            world.buffer(&["c"]);
            assert!(!world.channel("c").dropping(), "a later channel of the name is not dropped");
            world.settle();
            assert!(world.at("c").ends_with("Watched"), "{}", world.at("c"));
        }
    }
}

#[test]
fn a29_a_late_checkpoint_is_told_that_the_channel_was_dropped() {
    let mut world = watched(&["D1"]);
    let claim = world.claim("c");
    while world.state.revision().count() < 49 {
        world.watched("D1", &[&format!("x{}", world.state.revision())]);
    }
    world.accept(Command::RemoveChannel { channel: name("c") });
    let removed = world.state.dropped(&name("c")).unwrap().removed;
    assert!(removed.count() >= 50, "{removed}");
    for _ in 0..3 {
        world.rejects(commits("c", claim, b"late"), "DROPPED");
    }
    world.rejects(commits("never", claim, b"late"), "UNKNOWN_CHANNEL");
}

#[test]
fn a30_a_new_channel_of_the_name_has_a_larger_term() {
    let mut world = watched(&["D1"]);
    let (node, old) = (world.node("D1"), world.in_force("c"));
    world.accept(Command::RemoveChannel { channel: name("c") });
    let last = world.state.dropped(&name("c")).unwrap().last_term;
    world.buffer(&["c"]);
    assert!(world.term("c") > last);
    for result in [AckResult::Ok, AckResult::FailedStopped, AckResult::Failed] {
        world.rejects(said(node, "c", old, result), "STALE");
    }
    assert_eq!(world.plan_and_apply(), "c->1");
    for result in [AckResult::Ok, AckResult::FailedStopped, AckResult::Failed] {
        world.rejects(said(node, "c", old, result), "STALE");
    }
    assert_eq!(world.at("c"), "D1 ToWatch");
}

#[test]
fn a31_removing_what_is_not_there_is_no_change() {
    let mut world = watched(&["D1"]);
    world.accept(Command::RemoveChannel { channel: name("c") });
    world.no_change(Command::RemoveChannel { channel: name("c") });
    world.no_change(Command::RemoveChannel { channel: name("never") });
}

#[test]
fn a32_a_dropping_channel_goes_with_its_owner() {
    let mut world = watched(&["D1", "D2"]);
    let command = world.drop_command("c", None);
    world.accept(command);
    let events = world.expire(world.node("D1"));
    let down = events.iter().any(|event| matches!(event, Event::NodeWentDown { .. }));
    let removed = events.iter().any(|event| matches!(event, Event::ChannelRemoved { .. }));
    assert!(down && removed, "one entry: {events:?}");
    assert_gone(&world, "c");
}
