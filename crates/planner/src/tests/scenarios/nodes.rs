//! nodes join, stop, freeze, leave and come back.

use alloc::collections::BTreeMap;
use alloc::vec;

use state::channel::{AckResult, Phase};
use state::command::Command;
use state::event::Event;
use state::ids::{Address, Incarnation, NodeName, Text};
use state::node::{DownCause, NodeStatus, Registration};

use super::*;
use crate::report::Why;

fn worker(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}

fn loads(world: &Fixture, nodes: &[&str]) -> Vec<u32> {
    nodes.iter().map(|node| world.load(world.node(node).node)).collect()
}

/// Channels that lost their owner in these events, in order.
fn unassigned(events: &[Event]) -> Vec<String> {
    let one = |event: &Event| match event {
        Event::ChannelUnassigned { channel, .. } => Some(channel.to_string()),
        _ => None,
    };
    events.iter().filter_map(one).collect()
}

#[test]
fn a33_the_channels_of_an_expired_node_are_spread_in_one_decision() {
    let mut world = with_nodes(&["D1", "D2", "D3"]);
    world.watched("D1", &["a", "b", "c"]);
    world.watched("D2", &["x"]);
    world.watched("D3", &["y"]);
    let revision = world.state.revision().count();
    let events = world.expire(world.node("D1"));
    assert_eq!(world.state.revision().count(), revision + 2, "silence, and one entry");
    assert_eq!(unassigned(&events), ["a", "b", "c"]);
    assert_eq!(world.plan_and_apply(), "a->2 b->3 c->2");
    assert_eq!(loads(&world, &["D2", "D3"]), [3, 2]);
}

#[test]
fn a34_without_another_node_channels_wait_over_leaders_and_snapshots() {
    let mut world = with_nodes(&["D1"]);
    world.watched("D1", &["a"]);
    world.expire(world.node("D1"));
    assert_eq!(world.at("a"), "Buffered");
    world.lead(2);
    let restored = world.restored();
    assert_eq!(restored.digest(), world.state.digest());
    world.state = restored;
    assert_eq!(world.at("a"), "Buffered");
    assert_eq!(world.plan().decision, None);
    world.register("D2", Role::Data);
    assert_eq!(world.settle(), 1);
    assert_eq!(world.at("a"), "D2 Watched");
}

#[test]
fn a35_a_node_without_channels_leaves_no_trace() {
    let mut world = with_nodes(&["D1", "D2"]);
    world.watched("D2", &["a"]);
    let node = world.node("D1");
    let events = world.events(Command::Revoke { node });
    assert!(events.iter().all(|event| event.channel().is_none()), "{events:?}");
    assert_eq!(world.state.node(node.node), None);
    assert_eq!(world.at("a"), "D2 Watched");
}

#[test]
fn a36_the_end_of_an_old_session_leaves_its_successor_alone() {
    let mut world = with_nodes(&["D1"]);
    let old = world.node("D1");
    let new = world.register("D1", Role::Data);
    world.watched("D1", &["a"]);
    let unknown = NodeRef { node: state::ids::NodeId(99), epoch: old.epoch };
    let mixed = NodeRef { node: new.node, epoch: old.epoch };
    let leader_term = world.term;
    for node in [old, unknown, mixed] {
        world.rejects(Command::Revoke { node }, "STALE_NODE");
        world.rejects(Command::ExpireSession { node, leader_term }, "STALE_NODE");
        world.rejects(Command::SetStopping { node }, "STALE_NODE");
    }
    assert_eq!(world.state.live(new).unwrap().status, NodeStatus::Up);
    assert_eq!(world.at("a"), "D1 Watched");
}

/// A worker on the host of another one: the same address under its own name.
fn replacement(address: &str) -> Registration {
    Registration {
        name: worker("D2"),
        address: Address::new(address).unwrap(),
        role: Role::Data,
        version: Text::default(),
        labels: BTreeMap::new(),
        incarnation: Incarnation::new("second").unwrap(),
    }
}

#[test]
fn a37_a_replacement_whose_watches_fail_for_a_while_gets_everything_soon_after() {
    let mut world = with_nodes(&["D1"]);
    world.watched("D1", &["a", "b"]);
    let dead = world.node("D1");
    let events = world.events(Command::RegisterSession(replacement("D1:1")));
    let replaced = Event::NodeWentDown { node: dead, cause: DownCause::Replaced };
    assert!(events.contains(&replaced), "{events:?}");
    assert_eq!(unassigned(&events), ["a", "b"], "in the same entry");

    let (start, returns) = (world.now, world.now.plus_ms(20_000));
    let mut retried_at = start;
    while world.state.counts().watched < 2 {
        assert!(world.now <= returns.plus_ms(10_000), "{} is too late", world.now);
        let plan = world.plan();
        if let Some(decision) = plan.decision.clone() {
            assert!(world.now.since(retried_at) <= 5_000, "retried every 5 s at least");
            retried_at = world.now;
            for chosen in &decision.moves {
                assert_ne!(chosen.action, state::decision::Action::Assign { to: dead });
            }
            assert_eq!(world.carry_out(&plan), vec![]);
            let result = if world.now < returns { AckResult::FailedStopped } else { AckResult::Ok };
            for channel in ["a", "b"] {
                world.ack(channel, result);
            }
        }
        world.later(100);
    }
    assert_eq!((world.at("a").as_str(), world.at("b").as_str()), ("D2 Watched", "D2 Watched"));
}

#[test]
fn a39_a_stopping_node_is_emptied_and_gets_nothing_new() {
    let mut world = with_nodes(&["D1", "D2"]);
    world.watched("D1", &["a", "b"]);
    let node = world.node("D1");
    world.accept(Command::SetStopping { node });
    world.buffer(&["n"]);
    assert_eq!(world.plan_and_apply(), "a:1->2 b:1->2 n->2");
    let moving = |world: &Fixture| world.state.counts_of(node.node).to_release;
    assert_eq!(moving(&world), 2);
    world.settle();
    assert_eq!(loads(&world, &["D1", "D2"]), [0, 3]);
    let left = world.state.counts_of(node.node);
    assert_eq!((left.to_watch, left.watched, left.to_release), (0, 0, 0), "drained");
    assert_eq!(world.state.live(node).unwrap().status, NodeStatus::Stopping);
    assert_eq!(world.plan().report.waiting.len(), 0);
}

#[test]
fn a40_a_stopping_node_keeps_what_no_other_can_take() {
    let mut world = with_nodes(&["D1"]);
    world.watched("D1", &["a", "b"]);
    let node = world.node("D1");
    world.accept(Command::SetStopping { node });
    let plan = world.plan();
    assert_eq!(plan.decision, None);
    let waiting = &plan.report.waiting[0];
    assert_eq!((waiting.channels, waiting.why), (2, Why::NoTarget));
    assert_eq!((world.at("a").as_str(), world.at("b").as_str()), ("D1 Watched", "D1 Watched"));
    world.register("D2", Role::Data);
    assert_eq!(world.plan_and_apply(), "a:1->2 b:1->2");
}

#[test]
fn a41_a_freeze_survives_the_leader() {
    let mut world = with_nodes(&["D1", "D2"]);
    world.accept(Command::Freeze { name: worker("D1") });
    world.lead(2);
    world.state = world.restored();
    assert!(world.state.is_frozen(&worker("D1")));
    world.buffer(&["a", "b", "c"]);
    assert_eq!(world.plan_and_apply(), "a->2 b->2 c->2");
    // Over the sessions of the name, too.
    world.register("D1", Role::Data);
    world.buffer(&["d"]);
    assert_eq!(world.plan_and_apply(), "d->2");
}

#[test]
fn a42_a_cold_start_waits_once_and_spreads_evenly() {
    let mut world = Fixture::new();
    world.policy("settle_ms", "1000");
    let channels: Vec<String> = (0..100).map(|n| format!("c{n:03}")).collect();
    world.buffer(&channels.iter().map(String::as_str).collect::<Vec<_>>());
    let settled = world.now.plus_ms(1_000);
    for node in ["n1", "n2", "n3", "n4"] {
        world.register(node, Role::Data);
        let plan = world.plan();
        assert_eq!((plan.decision, plan.wake_at), (None, Some(settled)));
        world.later(200);
    }
    world.now = settled;
    let first = world.plan();
    assert_eq!(crate::moves(&first).len(), 100);
    assert_eq!(world.carry_out(&first), vec![]);
    for load in loads(&world, &["n1", "n2", "n3", "n4"]) {
        assert!((24..=26).contains(&load), "{load}");
    }
    assert_eq!(world.settle(), 0, "moves after that");
    let most = world.state.channels().map(|c| c.placed_by.is_some()).filter(|placed| *placed);
    assert_eq!(most.count(), 100);
}

#[test]
fn a43_node_1_is_not_node_10_nor_100() {
    let mut world = Fixture::new();
    for node in 1..=100 {
        world.register(&format!("{node}"), Role::Data);
    }
    for (node, channel) in [("1", "a"), ("10", "b"), ("100", "c")] {
        assert_eq!(world.node(node).node.0.to_string(), node);
        world.watched(node, &[channel]);
    }
    let (ten, hundred) = (world.channel("b"), world.channel("c"));
    let events = world.expire(world.node("1"));
    assert_eq!(unassigned(&events), ["a"]);
    assert_eq!((world.channel("b"), world.channel("c")), (ten, hundred));
}

#[test]
fn a44_the_old_session_of_a_living_process_has_no_say() {
    let mut world = with_nodes(&["D1", "D2"]);
    world.watched("D1", &["a"]);
    let (old, claim, at) = (world.node("D1"), world.claim("a"), world.in_force("a"));
    world.expire(old);
    assert_eq!(world.settle(), 1);
    world.rejects(said(old, "a", at, AckResult::Ok), "STALE_NODE");
    world.rejects(commits("a", claim, b"paused"), "NOT_OWNER");
    let new = world.register("D1", Role::Data);
    assert!(new.node > old.node && new.epoch > old.epoch);
    assert!(world.desired("D1").is_empty(), "it begins with nothing");
    world.rejects(commits("a", claim, b"paused"), "NOT_OWNER");
}

#[test]
fn a46_equal_histories_choose_equally() {
    let build = |order: &[&str]| {
        let mut world = with_nodes(&["D1", "D2"]);
        world.buffer(order);
        world
    };
    let mut world = build(&["a", "b", "c"]);
    assert_eq!(world.shown(), "a->1 b->2 c->1");
    assert_eq!(build(&["c", "b", "a"]).shown(), world.shown(), "not by order of announcement");
    let mut replica = with_nodes(&[]);
    (replica.state, replica.now) = (world.replayed(), world.now);
    assert_eq!(replica.state.digest(), world.state.digest());
    assert_eq!(replica.plan(), world.plan());
    assert_eq!(world.plan_and_apply(), "a->1 b->2 c->1");
    assert_eq!(world.replayed().witness(), world.state.witness());
    assert!(matches!(world.channel("a").phase, Phase::ToWatch { .. }));
}
