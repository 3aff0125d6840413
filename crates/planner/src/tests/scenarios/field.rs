//! Field reports of sessions and channel states that no scenario covers; docs/field-reports.md has
//! all of them. A worker is a data node, what it has loaded is a channel it watches.

use alloc::vec;

use state::channel::AckResult;
use state::command::Command;
use state::decision::Action;
use state::outcome::{Facts, Outcome, Refusal};

use super::*;
use crate::moves;
use crate::report::Why;

fn loads(world: &Fixture, nodes: &[&str]) -> Vec<u32> {
    nodes.iter().map(|node| world.load(world.node(node).node)).collect()
}

fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{prefix}{n:02}")).collect()
}

fn refs(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// FR-015: work follows from the state, whichever comes first after the return.
#[test]
fn fr015_a_node_that_returns_after_20_minutes_gets_work() {
    for registers_first in [true, false] {
        let mut world = with_nodes(&["D1", "D2"]);
        world.watched("D1", &["s1", "s2", "s3"]);
        let node = world.node("D2");
        world.accept(Command::Revoke { node });
        world.expire(world.node("D1"));
        world.later(1_200_000);
        if !registers_first {
            // Somebody looked before: nothing to do, and nothing is remembered of it.
            assert_eq!(world.plan().decision, None);
            world.lead(2);
        }
        let before = world.now;
        world.register("D1", Role::Data);
        assert_eq!(world.settle(), 3);
        assert_eq!(loads(&world, &["D1"]), [3]);
        assert!(world.now.since(before) <= 10_000);
    }
}

/// FR-017: nothing moves from one dead node to another.
#[test]
fn fr017_of_two_nodes_that_die_together_all_goes_to_the_third() {
    for more_on_the_third in [0, 2] {
        two_deaths(&names("x", more_on_the_third));
    }
}

fn two_deaths(more: &[String]) {
    let mut world = with_nodes(&["Q1", "Q2", "Q3"]);
    world.watched("Q1", &["s1", "s2"]);
    world.watched("Q2", &["s3"]);
    world.watched("Q3", &refs(more));
    let (one, two) = (world.node("Q1"), world.node("Q2"));
    world.expire(one);
    // Planned on a half updated view, committed after the second death.
    let early = world.plan();
    let to_two = moves(&early).iter().filter(|m| m.action == Action::Assign { to: two }).count();
    assert_eq!(to_two > 0, !more.is_empty());
    world.expire(two);
    let refused = match world.apply(Command::Place(early.decision.unwrap())) {
        Outcome::Accepted(receipt) => receipt.refused,
        Outcome::NoChange(Facts::AllRefused(refused)) => refused,
        other => panic!("{other}"),
    };
    assert_eq!(refused.len(), to_two);
    assert!(refused.iter().all(|refused| refused.refusal == Refusal::NodeChanged));
    world.settle();
    assert_eq!(loads(&world, &["Q3"]), [3 + u32::try_from(more.len()).unwrap()]);
    let placed = world.state.channels().map(|channel| channel.phase.owner().unwrap().node);
    assert!(placed.into_iter().all(|node| node == world.node("Q3").node));
}

/// FR-018: without any node nothing is released and nothing is decided; people can see why.
#[test]
fn fr018_without_any_node_nothing_is_decided() {
    let mut world = with_nodes(&["Q1", "Q2"]);
    world.watched("Q1", &["s1"]);
    world.watched("Q2", &["s2"]);
    world.expire(world.node("Q1"));
    world.expire(world.node("Q2"));
    for _ in 0..600 {
        world.later(1_000);
        let plan = world.plan();
        assert_eq!(plan.decision, None);
        let waiting = &plan.report.waiting[0];
        assert_eq!((waiting.channels, waiting.why), (2, Why::NoNode));
    }
    let before = world.state.revision().count();
    world.register("Q1", Role::Data);
    world.register("Q2", Role::Data);
    assert_eq!(world.settle(), 2);
    assert_eq!(loads(&world, &["Q1", "Q2"]), [1, 1]);
    assert_eq!(world.state.revision().count(), before + 2 + 1 + 2, "one decision, two acks");
}

/// FR-019: a move that was interrupted leaves one copy.
#[test]
fn fr019_a_flap_during_a_move_leaves_one_owner() {
    let mut world = with_nodes(&["Q1", "Q2", "Q3"]);
    world.watched("Q1", &["s1"]);
    let node = world.node("Q1");
    world.accept(Command::SetStopping { node });
    world.plan_and_apply();
    assert_eq!(world.at("s1"), "Q1 ToRelease");
    world.expire(node);
    let back = world.register("Q1", Role::Data);
    world.settle();
    let holds = |node: &&&str| !world.desired(node).is_empty();
    assert_eq!(["Q1", "Q2", "Q3"].iter().filter(holds).count(), 1);
    assert_eq!(world.at("s1"), "Q2 Watched", "where it was planned to go");
    assert!(directives_for(&world.state, back.node).is_empty());
}

/// FR-023: nothing names a node that is gone for good.
#[test]
fn fr023_nothing_refers_to_a_node_that_left() {
    let mut world = Fixture::new();
    for other in 1..=77 {
        let node = world.register(&format!("w{other}"), Role::Data);
        world.accept(Command::Revoke { node });
    }
    let gone = world.register("Q78", Role::Data);
    assert_eq!(gone.node.0, 78);
    world.register("Q79", Role::Data);
    world.watched("Q78", &["s1", "s2"]);
    // Tasks of every kind: released, cooling down, failed, planned, frozen.
    world.buffer(&["t1", "t2", "t3"]);
    for (channel, result) in [("t1", AckResult::FailedStopped), ("t2", AckResult::Failed)] {
        world.place(channel, "Q78");
        world.ack(channel, result);
    }
    world.release("s2");
    world.expire(gone);
    world.register("Q100", Role::Data);
    for (channel, former) in world.state.clone().effects() {
        let former = OwnerClaim { node: former.node, term: former.term };
        world.accept(Command::EffectDone { channel: channel.clone(), former });
    }
    world.settle();
    assert_eq!(world.state.node(gone.node), None);
    let everything = format!("{:?}", world.state);
    assert!(everything.contains("NodeId(79)"), "this looks at everything");
    assert!(!everything.contains("NodeId(78)"), "{everything}");
}

/// FR-026 with its numbers: 180 s of recovery, 60 s of timeout, progress every 5 s, of which the
/// log hears every 30 s.
#[test]
fn fr026_a_long_recovery_is_left_alone_and_a_stalled_one_is_not() {
    let recovery = |stops_at: u64| {
        let mut world = with_nodes(&["D1", "D2"]);
        world.policy("watch_timeout_ms", "60000");
        world.later(60_000);
        world.buffer(&["ch1"]);
        world.place("ch1", "D1");
        let (start, mut told_at) = (world.now, world.now);
        for second in 1..=180_u64 {
            world.later(1_000);
            if let Some(timeout) = world.state.due(world.now, 10).pop() {
                world.accept(timeout);
                return (world, Some(second));
            }
            let late = world.now.since(told_at) >= 30_000;
            if second % 5 == 0 && second <= stops_at && late {
                let (term, op) = world.in_force("ch1");
                let channel = name("ch1");
                world.accept(Command::ExtendDeadline { channel, term, op, progress: second });
                told_at = world.now;
            }
        }
        assert_eq!(world.now.since(start), 180_000);
        world.ack("ch1", AckResult::Ok);
        (world, None)
    };
    let (world, given_up) = recovery(180);
    assert_eq!((given_up, world.at("ch1").as_str()), (None, "D1 Watched"));
    assert_eq!(world.channel("ch1").attempts, 0);
    let (mut world, given_up) = recovery(90);
    assert!((150..=155).contains(&given_up.unwrap()), "60 to 65 s after the last progress");
    world.settle();
    assert_eq!(world.at("ch1"), "D2 Watched", "one reassignment");
}

/// FR-028: all workers restart, one of them 3 s before the others.
#[test]
fn fr028_a_restart_of_all_ends_even_without_a_second_release() {
    let nodes = ["D1", "D2", "D3", "D4"];
    let start = || {
        let mut world = with_nodes(&nodes);
        world.policy("auto_balance", "true");
        for node in &nodes {
            world.watched(node, &refs(&names(&format!("{node}-"), 8)));
        }
        world
    };
    let ends_even = |world: &mut Fixture| {
        world.settle();
        assert_eq!(loads(world, &nodes), [8, 8, 8, 8]);
        let releases = world.log.iter().filter(|(_, request)| {
            matches!(&request.command, Command::Place(decision)
                if decision.moves.iter().any(|m| !matches!(m.action, Action::Assign { .. })))
        });
        assert_eq!(releases.count(), 0, "nobody was told to release");
    };
    // Within the ttl: each takes up what its own session had.
    let mut world = start();
    world.register("D1", Role::Data);
    world.settle();
    world.later(3_000);
    for node in &nodes[1..] {
        world.register(node, Role::Data);
    }
    ends_even(&mut world);
    // After everybody was expired: the settle window keeps the first from taking everything.
    let mut world = start();
    world.policy("settle_ms", "5000");
    nodes.iter().for_each(|node| drop(world.expire(world.node(node))));
    world.register("D1", Role::Data);
    let settled = world.now.plus_ms(5_000);
    let plan = world.plan();
    assert_eq!((plan.decision, plan.wake_at), (None, Some(settled)));
    world.later(3_000);
    for node in &nodes[1..] {
        world.register(node, Role::Data);
    }
    world.now = settled;
    ends_even(&mut world);
}

/// FR-033: a thousand announcements of one channel are one channel.
#[test]
fn fr033_a_thousand_announcements_are_one_channel() {
    let mut world = with_nodes(&["D1"]);
    world.buffer(&["ch1"]);
    let revision = world.state.revision();
    for _ in 0..999 {
        world.no_change(Command::WatchChannels(vec![spec("ch1")]));
    }
    assert_eq!(world.state.revision(), revision);
    world.state = world.restored();
    world.lead(2);
    assert_eq!(world.state.channel_count(), 1);
    assert_eq!(world.settle(), 1);
}
