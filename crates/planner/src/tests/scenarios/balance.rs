//! channels move only to even out load.

use alloc::collections::BTreeMap;

use state::channel::AckResult;
use state::command::Command;
use state::decision::{Action, Cause};
use state::event::Event;
use state::ids::NodeName;
use state::outcome::Outcome;

use super::*;
use crate::{balance_due, moves};

/// D1.. with as many watched channels each, and the silent time has passed.
fn quiet(counts: &[usize]) -> Fixture {
    let mut world = Fixture::new();
    world.policy("auto_balance", "true");
    for (node, count) in (1..).zip(counts) {
        let node = format!("D{node}");
        world.register(&node, Role::Data);
        let names: Vec<String> = (0..*count).map(|n| format!("{node}-{n}")).collect();
        world.watched(&node, &names.iter().map(String::as_str).collect::<Vec<_>>());
    }
    world.later(world.state.policy().balance_silent_ms);
    world
}

fn loads(world: &Fixture) -> Vec<u32> {
    world.state.nodes().map(|node| world.load(node.node)).collect()
}

/// Nodes that lose a channel in this plan, once for each.
fn donors(world: &Fixture) -> Vec<u64> {
    let one = |chosen: &state::decision::Move| match chosen.action {
        Action::Move { from, .. } | Action::Release { from } => Some(from.node.0),
        Action::Assign { .. } => None,
    };
    moves(&world.plan()).iter().filter_map(one).collect()
}

/// Channels that were told to release, and how often.
fn releases(world: &Fixture) -> BTreeMap<String, usize> {
    let mut state = State::new(0);
    let mut found = BTreeMap::new();
    for (context, request) in &world.log {
        let Outcome::Accepted(receipt) = state.apply(context, request) else { continue };
        for event in &receipt.record.events {
            if let Event::ReleaseStarted { channel, .. } = event {
                *found.entry(channel.to_string()).or_default() += 1;
            }
        }
    }
    found
}

#[test]
fn a38_a_node_that_joins_gets_its_share_after_the_silent_time() {
    let mut world = quiet(&[4]);
    world.register("D2", Role::Data);
    world.buffer(&["n"]);
    world.settle();
    assert_eq!(releases(&world).len(), 0, "no release at the join");
    let due = balance_due(&world.state).unwrap();
    assert_eq!(due, world.state.last_activity().plus_ms(300_000));
    assert_eq!(world.plan().wake_at, Some(due));
    world.later(299_999);
    assert_eq!(world.plan().decision, None);
    world.now = due;
    assert_eq!(donors(&world), [1]);
    world.settle();
    assert_eq!(loads(&world), [3, 2]);
}

#[test]
fn a38_without_other_work_exactly_two_of_four_move() {
    let mut world = quiet(&[4]);
    world.register("D2", Role::Data);
    let plan = world.plan();
    assert_eq!(moves(&plan).len(), 2, "registering is no activity of a channel");
    assert_eq!(world.carry_out(&plan), vec![]);
    world.settle();
    assert_eq!((releases(&world).len(), loads(&world)), (2, vec![2, 2]));
}

#[test]
fn a67_one_move_evens_two_and_none_then_nothing() {
    let mut world = quiet(&[2, 0]);
    assert_eq!(moves(&world.plan())[0].cause, Cause::Balance);
    assert_eq!(world.plan_and_apply(), "D1-0:1->2");
    world.settle();
    for _ in 0..100 {
        world.later(world.state.policy().balance_interval_ms);
        assert_eq!(world.plan().decision, None);
    }
    assert_eq!(releases(&world).len(), 1);
}

#[test]
fn a68_four_one_none_takes_two_moves() {
    let mut world = quiet(&[4, 1, 0]);
    let plan = world.plan();
    assert_eq!(moves(&plan).len(), 2);
    assert_eq!(world.carry_out(&plan), vec![]);
    world.settle();
    world.later(world.state.policy().balance_interval_ms);
    assert_eq!(world.plan().decision, None);
    let mut loads = loads(&world);
    loads.sort_unstable();
    assert_eq!(loads, [1, 2, 2]);
}

#[test]
fn a69_among_equally_full_nodes_the_higher_id_gives() {
    let mut world = quiet(&[3, 3, 1]);
    assert_eq!(donors(&world), [2]);
    assert_eq!(world.plan_and_apply(), "D2-0:2->3");
    world.settle();
    assert_eq!(loads(&world), [3, 2, 2]);
}

#[test]
fn a70_a_running_operation_anywhere_holds_balance_back() {
    let mut world = quiet(&[4, 0]);
    world.buffer(&["n"]);
    world.place("n", "D1");
    world.later(299_000);
    assert!(world.state.policy().watch_timeout_ms > 299_000, "it is still waiting");
    world.later(world.state.policy().balance_silent_ms);
    assert_eq!((world.plan().decision, balance_due(&world.state)), (None, None));
    world.ack("n", AckResult::Ok);
    world.later(world.state.policy().balance_silent_ms);
    assert_eq!(donors(&world), [1, 1]);
}

#[test]
fn a71_balance_waits_for_300_s_of_silence() {
    let mut world = quiet(&[2, 0]);
    let last = world.state.last_activity();
    world.now = last.plus_ms(299_000);
    let plan = world.plan();
    assert_eq!((plan.decision, plan.wake_at), (None, Some(last.plus_ms(300_000))));
    world.now = last.plus_ms(300_000);
    assert_eq!(world.shown(), "D1-0:1->2");
}

#[test]
fn a72_a_balanced_cluster_is_left_in_peace() {
    let mut world = quiet(&[3, 2, 3]);
    let (last, revision) = (world.state.last_activity(), world.state.revision());
    for _ in 0..10 {
        world.later(world.state.policy().balance_interval_ms);
        let plan = world.plan();
        assert_eq!(plan.decision, None, "no command is proposed");
    }
    assert_eq!((world.state.last_activity(), world.state.revision()), (last, revision));
}

#[test]
fn a73_the_switch_stops_balance_only() {
    let mut world = quiet(&[4, 0]);
    world.policy("auto_balance", "false");
    world.later(world.state.policy().balance_silent_ms);
    assert_eq!((world.plan().decision, balance_due(&world.state)), (None, None));
    world.buffer(&["n"]);
    assert_eq!(world.plan_and_apply(), "n->2");
    world.ack("n", AckResult::Ok);
    world.accept(Command::Freeze { name: NodeName::new("D1").unwrap() });
    world.settle();
    assert_eq!(loads(&world), [0, 5]);
}

#[test]
fn a74_what_is_being_released_is_neither_picked_nor_counted() {
    let mut world = quiet(&[8, 2]);
    for channel in ["D1-0", "D1-1", "D1-2"] {
        world.release(channel);
    }
    world.later(world.state.policy().balance_silent_ms);
    assert_eq!(loads(&world), [5, 2], "not counted for D1");
    assert_eq!(world.plan().decision, None, "not picked again, nor anything else yet");
    world.settle();
    assert_eq!(loads(&world), [5, 5]);
    world.later(world.state.policy().balance_silent_ms);
    assert_eq!(world.plan().decision, None, "counting them would have moved three more");
    assert!(releases(&world).values().all(|times| *times == 1));
}

#[test]
fn a75_only_nodes_above_the_average_give() {
    let mut world = quiet(&[0, 1, 5]);
    assert_eq!(donors(&world), [3, 3, 3]);
    world.settle();
    assert_eq!(loads(&world), [2, 2, 2]);
}

#[test]
fn a76_a_channel_that_was_moved_lately_rests() {
    let mut world = quiet(&[0, 3]);
    world.policy("balance_silent_ms", "0");
    world.policy("min_move_interval_ms", "300000");
    // Lately: one more channel comes to D2. Its name is the first in order.
    world.watched("D2", &["A"]);
    world.later(60_000);
    assert_eq!(world.shown(), "D2-0:2->1 D2-1:2->1");
    world.later(240_000);
    assert_eq!(world.shown(), "A:2->1 D2-0:2->1");
}

#[test]
fn a77_a_balance_goes_on_under_another_leader() {
    let mut world = quiet(&[12, 0]);
    world.policy("balance_moves_max", "3");
    let whole = world.plan();
    assert_eq!(moves(&whole).len(), 3);
    assert_eq!(world.carry_out(&whole), vec![]);
    let first: Vec<String> = releases(&world).into_keys().collect();
    assert_eq!(first.len(), 3);
    // A second decision of the old leader is in flight when the new one takes over.
    let late = moves(&whole).to_vec();
    let basis = state::decision::Basis { term: world.term, revision: world.state.revision() };
    world.lead(2);
    let decision = state::decision::Decision { basis, moves: late, atomic: false };
    world.rejects(Command::Place(decision), "STALE_TERM");
    world.settle();
    assert_eq!(loads(&world), [9, 3], "the accepted ones are finished");
    while let Some(due) = balance_due(&world.state).filter(|_| loads(&world) != [6, 6]) {
        world.now = world.now.max(due);
        world.settle();
    }
    assert_eq!(loads(&world), [6, 6], "the rest was planned anew");
    let releases = releases(&world);
    assert_eq!((releases.len(), releases.values().max()), (6, Some(&1)));
}
