//! what comes late, twice, or in the wrong order.

use alloc::vec;

use state::channel::{AckResult, FormerOwner};
use state::command::Command;
use state::decision::{Action, Basis, Cause, Decision, Guard, Move};
use state::event::Event;
use state::outcome::{Facts, Outcome, Refusal, RefusedMove};
use state::{desired_digest, directives_for};

use super::*;

/// The deadline of c passes.
fn give_up(world: &mut Fixture) {
    world.now = world.state.next_deadline().unwrap();
    let timeout = world.timeout("c");
    world.accept(timeout);
}

/// `c@D2/TW`, and what D1 was told before: its watch and its release, both given up.
fn taken_over() -> (Fixture, (ChannelTerm, Op), (ChannelTerm, Op)) {
    let mut world = to_watch(&["D1", "D2"]);
    let watch = world.in_force("c");
    give_up(&mut world);
    let release = world.in_force("c");
    give_up(&mut world);
    assert_eq!(world.plan_and_apply(), "c->2");
    world.later(1_000);
    (world, watch, release)
}

#[test]
fn a47_a_late_failure_of_the_former_owner_has_no_effect() {
    let (mut world, watch, _) = taken_over();
    let before = world.channel("c");
    let node = world.node("D1");
    for result in [AckResult::Failed, AckResult::FailedStopped, AckResult::Conflict] {
        world.rejects(said(node, "c", watch, result), "STALE");
    }
    assert_eq!(world.channel("c"), before, "phase, deadline and cool-downs of D2 stand");
}

#[test]
fn a48_a_late_release_of_the_former_owner_has_no_effect() {
    let (mut world, _, release) = taken_over();
    let before = world.channel("c");
    let node = world.node("D1");
    let deadline = world.state.deadline(&before);
    world.rejects(said(node, "c", release, AckResult::Ok), "STALE");
    assert_eq!(world.channel("c"), before);
    assert_eq!(before.former_owners, [FormerOwner { node, term: release.0 }]);
    let former = OwnerClaim { node, term: release.0 };
    world.accept(Command::EffectDone { channel: name("c"), former });
    let after = world.channel("c");
    assert_eq!((after.former_owners.len(), &after.phase), (0, &before.phase));
    assert_eq!(world.state.deadline(&after), deadline);
}

#[test]
fn a49_a_late_watch_does_not_end_a_release() {
    let mut world = to_watch(&["D1", "D2"]);
    let (node, watch) = (world.node("D1"), world.in_force("c"));
    give_up(&mut world);
    let before = world.channel("c");
    world.rejects(said(node, "c", watch, AckResult::Ok), "STALE");
    assert_eq!((world.at("c").as_str(), world.channel("c")), ("D1 ToRelease", before));
}

#[test]
fn a50_a_late_release_does_not_end_the_next_term_of_the_same_node() {
    let mut world = to_release(&["D1"]);
    let (node, release) = (world.node("D1"), world.in_force("c"));
    let late = said(node, "c", release, AckResult::Ok);
    world.accept(late.clone());
    assert_eq!(world.plan_and_apply(), "c->1");
    let before = world.channel("c");
    // the last one that was recorded is known to be recorded, and has no effect.
    world.no_change(late.clone());
    assert_eq!(world.channel("c"), before);
    world.rejects(said(node, "c", release, AckResult::FailedStopped), "STALE");
    world.ack("c", AckResult::Ok);
    world.rejects(late, "STALE");
    assert_eq!(world.at("c"), "D1 Watched");
}

#[test]
fn a51_progress_of_a_former_owner_extends_nothing() {
    let (mut world, (term, op), _) = taken_over();
    let due = world.state.next_deadline();
    world.rejects(Command::ExtendDeadline { channel: name("c"), term, op, progress: 9 }, "STALE");
    assert_eq!(world.state.next_deadline(), due);
}

/// A due timeout and an acknowledgement of the same directive.
fn race(mut world: Fixture) -> (Fixture, Command, Command) {
    let ack = said(world.node("D1"), "c", world.in_force("c"), AckResult::Ok);
    let timeout = world.timeout("c");
    world.now = world.state.next_deadline().unwrap();
    (world, ack, timeout)
}

#[test]
fn a52_a_watch_and_its_timeout_in_both_orders() {
    let (mut world, ack, timeout) = race(to_watch(&["D1", "D2"]));
    world.accept(ack);
    world.rejects(timeout, "STALE");
    assert_eq!(world.at("c"), "D1 Watched");

    let (mut world, ack, timeout) = race(to_watch(&["D1", "D2"]));
    world.accept(timeout);
    world.rejects(ack, "STALE");
    assert_eq!(world.at("c"), "D1 ToRelease");
    let (term, op) = world.in_force("c");
    assert_eq!(world.desired("D1"), [format!("c release {term} {op}")], "so D1 releases");
}

#[test]
fn a53_a_release_and_its_timeout_in_both_orders() {
    for ack_first in [true, false] {
        let (mut world, ack, timeout) = race(to_release(&["D1", "D2"]));
        let (first, second) = if ack_first { (ack, timeout) } else { (timeout, ack) };
        let before = world.term("c");
        let events = world.events(first);
        let freed = |event: &&Event| matches!(event, Event::ChannelUnassigned { .. });
        assert_eq!(events.iter().filter(freed).count(), 1);
        let term = world.term("c");
        assert!(term > before);
        world.rejects(second, "STALE");
        assert_eq!((world.at("c").as_str(), world.term("c")), ("Buffered", term));
    }
}

fn place(world: &Fixture, moves: Vec<Move>) -> Command {
    let basis = Basis { term: world.term, revision: world.state.revision() };
    Command::Place(Decision { basis, moves, atomic: false })
}

fn assign(world: &Fixture, channel: &str, to: NodeRef) -> Move {
    let record = world.channel(channel);
    let guard = Guard { term: record.term, phase: record.phase.kind() };
    let action = Action::Assign { to };
    Move { channel: name(channel), guard, action, cause: Cause::Unassigned }
}

fn refusals(outcome: Outcome) -> Vec<(String, Refusal)> {
    let show = |refused: Vec<RefusedMove>| {
        refused.iter().map(|each| (each.chosen.channel.to_string(), each.refusal)).collect()
    };
    match outcome {
        Outcome::Accepted(receipt) => show(receipt.refused),
        Outcome::NoChange(Facts::AllRefused(refused)) => show(refused),
        other => panic!("{other}"),
    }
}

/// c and d are buffered and a decision gives both to D2.
fn planned() -> (Fixture, Command) {
    let mut world = with_nodes(&["D1", "D2"]);
    world.buffer(&["c", "d"]);
    let to = world.node("D2");
    let decision = place(&world, vec![assign(&world, "c", to), assign(&world, "d", to)]);
    (world, decision)
}

#[test]
fn a54_a_move_computed_from_an_older_term_is_refused_alone() {
    let (mut world, decision) = planned();
    world.place("c", "D1");
    world.ack("c", AckResult::Ok);
    let refused = refusals(world.apply(decision));
    assert_eq!(refused, [(String::from("c"), Refusal::AssignmentChanged)]);
    assert_eq!((world.at("c").as_str(), world.at("d").as_str()), ("D1 Watched", "D2 ToWatch"));
}

#[test]
fn a55_a_move_to_a_node_that_restarted_is_refused() {
    let (mut world, decision) = planned();
    world.register("D2", Role::Data);
    let refused = refusals(world.apply(decision));
    let changed = |channel: &str| (String::from(channel), Refusal::NodeChanged);
    assert_eq!(refused, [changed("c"), changed("d")]);
    assert_eq!((world.at("c").as_str(), world.at("d").as_str()), ("Buffered", "Buffered"));
}

#[test]
fn a56_a_move_of_a_removed_channel_is_refused() {
    let (mut world, decision) = planned();
    world.accept(Command::RemoveChannel { channel: name("c") });
    let refused = refusals(world.apply(decision));
    assert_eq!(refused, [(String::from("c"), Refusal::Gone)]);
    assert_eq!((world.at("c").as_str(), world.at("d").as_str()), ("unknown", "D2 ToWatch"));
}

#[test]
fn a57_of_two_decisions_in_flight_one_is_accepted() {
    // Of two leaders: the old one's comes in an entry of the new one's term, or before it.
    let (mut world, old) = planned();
    world.lead(2);
    let new = place(&world, vec![assign(&world, "c", world.node("D1"))]);
    world.rejects(old.clone(), "STALE_TERM");
    world.accept(new);
    world.rejects(old, "STALE_TERM");
    assert_eq!(world.at("c"), "D1 ToWatch");

    // Of one leader: the second finds another term of the channel.
    let (mut world, first) = planned();
    let second = place(&world, vec![assign(&world, "c", world.node("D1"))]);
    world.accept(first);
    let refused = refusals(world.apply(second));
    assert_eq!(refused, [(String::from("c"), Refusal::AssignmentChanged)]);
    assert_eq!(world.at("c"), "D2 ToWatch");
}

#[test]
fn a59_directives_and_acknowledgements_may_be_repeated_for_ever() {
    let mut world = to_watch(&["D1", "D2"]);
    let (term, node) = (world.term("c"), world.node("D1"));
    let desired = directives_for(&world.state, node.node);
    for _ in 0..10 {
        world.later(1_000);
        let again = directives_for(&world.state, node.node);
        assert_eq!(desired_digest(&again), desired_digest(&desired), "the same is sent again");
    }
    let ack = said(node, "c", world.in_force("c"), AckResult::Ok);
    world.accept(ack.clone());
    for _ in 0..10 {
        world.no_change(ack.clone());
    }
    assert_eq!((world.at("c").as_str(), world.term("c")), ("D1 Watched", term), "one term");
}

#[test]
fn a60_a_conflict_takes_one_round() {
    for nodes in [&["D1", "D2"][..], &["D1"]] {
        let mut world = to_watch(nodes);
        let term = world.term("c");
        world.ack("c", AckResult::Conflict);
        assert_eq!((world.at("c").as_str(), world.term("c")), ("D1 ToRelease", term));
        // Logged: another leader knows it, and sends the same.
        let desired = world.desired("D1");
        world.lead(2);
        assert_eq!(world.desired("D1"), desired);
        assert!(desired[0].starts_with("c release"), "{desired:?}");
        world.ack("c", AckResult::Ok);
        assert!(world.settle() <= 1);
        let owner = if nodes.len() == 2 { "D2 Watched" } else { "D1 Watched" };
        assert_eq!(world.at("c"), owner);
        assert!(world.term("c") > term);
    }
}
