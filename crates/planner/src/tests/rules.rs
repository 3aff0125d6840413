//! One test for each rule: C1 to C13 as far as they apply to placing and draining, 11.7 A, 18.6,
//! A-42.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use state::channel::{AckResult, Phase};
use state::command::Command;
use state::decision::{Action, Cause};
use state::ids::{NodeName, Text};
use state::node::Role;

use super::fixture::{Fixture, name, show};
use crate::report::Why;
use crate::{Stage, moves};

/// Nodes n1.. with these watched channels, and these buffered.
fn layout(nodes: &[&[&str]], buffered: &[&str]) -> Fixture {
    let mut fixture = Fixture::new();
    for (at, channels) in nodes.iter().enumerate() {
        let node = format!("n{}", at + 1);
        fixture.register(&node, Role::Data);
        fixture.watched(&node, channels);
    }
    if !buffered.is_empty() {
        fixture.buffer(buffered);
    }
    fixture
}

/// Watched channels of each node, buffered channels, the moves.
type Case = (&'static [&'static [&'static str]], &'static [&'static str], &'static str);

/// 11.7 A: the examples of the specification and the overshoot it documents.
#[test]
fn deals_round_robin_over_lacking_targets() {
    let cases: [Case; 9] = [
        (&[&["a", "b", "c"], &[], &["z"]], &["p", "q", "r"], "p->2 q->3 r->2"),
        (&[&["x"], &["y"]], &["a", "b", "c"], "a->1 b->2 c->1"),
        (&[&["x"], &[]], &["a", "b"], "a->2 b->2"),
        (&[&[], &["x"]], &["a", "b"], "a->1 b->1"),
        (&[&[], &["1", "2", "3"], &["4", "5"]], &["a", "b", "c", "d"], "a->1 b->3 c->1 d->1"),
        (&[&["1", "2", "3", "4", "5"], &[], &[]], &["a"], "a->2"),
        (&[&["1"], &["2"]], &["a"], "a->1"),
        (&[&[], &["1", "2"], &["3", "4"]], &["a", "b", "c", "d"], "a->1 b->1 c->1 d->2"),
        (&[&[], &[], &[]], &["a", "b", "c", "d"], "a->1 b->2 c->3 d->1"),
    ];
    for (nodes, buffered, expected) in cases {
        assert_eq!(layout(nodes, buffered).shown(), expected, "{nodes:?} {buffered:?}");
    }
}

/// A-33: the channels of a node that left are spread by C1 and C2.
#[test]
fn spreads_what_a_lost_node_had() {
    let mut fixture = layout(&[&["a", "b", "c"], &["x"], &["y"]], &[]);
    let node = fixture.node("n1");
    fixture.accept(Command::Revoke { node });
    assert_eq!(fixture.shown(), "a->2 b->3 c->2");
}

/// C1, C2: input order does not matter; names go ascending, ties to the lower id.
#[test]
fn order_of_announcement_does_not_matter() {
    let forward = layout(&[&[], &[]], &["a", "b", "c"]);
    let mut backward = layout(&[&[], &[]], &[]);
    for channel in ["c", "b", "a"] {
        backward.buffer(&[channel]);
    }
    assert_eq!(forward.shown(), "a->1 b->2 c->1");
    assert_eq!(backward.shown(), forward.shown());
}

/// C4: only live data nodes that are not stopping, not frozen and not cooling down are candidates.
#[test]
fn only_candidates_get_channels() {
    let mut fixture = Fixture::new();
    fixture.register("query", Role::Query);
    let down = fixture.register("down", Role::Data);
    let stopping = fixture.register("stopping", Role::Data);
    fixture.register("frozen", Role::Data);
    fixture.register("cools", Role::Data);
    fixture.buffer(&["a"]);
    fixture.place("a", "cools");
    fixture.ack("a", AckResult::FailedStopped);
    fixture.accept(Command::Revoke { node: down });
    fixture.accept(Command::SetStopping { node: stopping });
    fixture.accept(Command::Freeze { name: NodeName::new("frozen").unwrap() });
    let until = fixture.now.plus_ms(fixture.state.policy().cooldown_base_ms);
    let plan = fixture.plan();
    assert_eq!(plan.decision, None);
    assert_eq!(plan.wake_at, Some(until));
    assert_eq!(plan.report.waiting[0].why, Why::CoolingDown { until });
    fixture.buffer(&["b"]);
    assert_eq!(fixture.shown(), "b->5", "the cool-down bars one channel only");
    fixture.now = until;
    assert_eq!(fixture.shown(), "a->5 b->5", "it ends at its time, not after");
}

/// All cool down: the channel waits for the first one to end, never longer.
#[test]
fn waits_for_the_first_cool_down() {
    let mut fixture = layout(&[&[], &[]], &["a"]);
    for node in ["n1", "n2"] {
        fixture.place("a", node);
        fixture.later(100);
        fixture.ack("a", AckResult::FailedStopped);
    }
    let plan = fixture.plan();
    let first = fixture.state.channel(&name("a")).unwrap().cooldowns.values().min().copied();
    assert_eq!((plan.decision.clone(), plan.wake_at), (None, first));
    fixture.now = first.unwrap();
    assert_eq!(fixture.shown(), "a->1");
}

/// C5: what has an owner, also one that is releasing it, is never placed a second time.
#[test]
fn owned_channels_are_left_alone() {
    let mut fixture = layout(&[&["a", "b"], &[]], &["c"]);
    fixture.place("c", "n1");
    fixture.release("b");
    assert_eq!(fixture.plan().decision, None);
}

/// C6: nothing to do is no decision.
#[test]
fn nothing_to_do_is_no_decision() {
    assert_eq!(Fixture::new().plan().decision, None);
    let plan = layout(&[&["a"], &["b"]], &[]).plan();
    assert_eq!(plan.decision, None);
    assert_eq!((plan.report.choices.len(), plan.report.waiting.len()), (0, 0));
    assert_eq!(plan.wake_at, None);
}

/// C7, C8: owners first, then releases; by node, then by name; one move for a channel.
#[test]
fn moves_stand_in_result_order() {
    let mut fixture = layout(&[&["y", "x"], &[], &[]], &["d", "c", "b", "a"]);
    let node = fixture.node("n1");
    fixture.accept(Command::SetStopping { node });
    let plan = fixture.plan();
    let order: Vec<String> = moves(&plan).iter().map(ToString::to_string).collect();
    let order: Vec<&str> = order.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(order, ["a", "c", "b", "d", "x", "y"]);
    assert!(matches!(moves(&plan)[5].action, Action::Move { .. }));
}

/// C9: without a node everything stays buffered, and the report says so.
#[test]
fn without_nodes_channels_wait() {
    let mut fixture = Fixture::new();
    fixture.buffer(&["a", "b"]);
    let plan = fixture.plan();
    assert_eq!(plan.decision, None);
    let waiting = &plan.report.waiting[0];
    assert_eq!((waiting.channels, waiting.why), (2, Why::NoNode));
    assert_eq!(plan.wake_at, None, "time does not bring a node");
}

/// C10, C12: only watched channels are released, each once; what leaves does not count for its
/// owner.
#[test]
fn what_leaves_is_neither_picked_again_nor_counted() {
    let mut fixture = layout(&[&["a", "b", "c"], &["x", "y"]], &[]);
    for channel in ["a", "b"] {
        fixture.release(channel);
    }
    fixture.buffer(&["p"]);
    assert_eq!(fixture.shown(), "p->1", "n1 counts one channel, not three");
    let node = fixture.node("n1");
    fixture.accept(Command::SetStopping { node });
    assert_eq!(fixture.shown(), "c:1->2 p->2");
    let plan = fixture.plan();
    assert!(fixture.carry_out(&plan).is_empty());
    assert_eq!(fixture.plan().decision, None);
}

/// 18.6: a planned target that is still a candidate is taken, also when it is not the emptiest.
#[test]
fn planned_targets_are_taken() {
    let mut fixture = layout(&[&["a"], &["x"], &[]], &[]);
    let node = fixture.node("n1");
    fixture.accept(Command::SetStopping { node });
    let plan = fixture.plan();
    assert_eq!(show(&plan), "a:1->3");
    assert!(fixture.carry_out(&plan).is_empty());
    fixture.watched("n3", &["k", "l"]);
    fixture.ack("a", AckResult::Ok);
    let plan = fixture.plan();
    assert_eq!((show(&plan).as_str(), moves(&plan)[0].cause), ("a->3", Cause::Planned));
}

/// 18.6: a planned target that left, or is of another session, is not.
#[test]
fn planned_targets_that_left_are_not_taken() {
    let mut fixture = layout(&[&["a"], &["x", "y"], &[]], &[]);
    let node = fixture.node("n1");
    fixture.accept(Command::SetStopping { node });
    let plan = fixture.plan();
    assert_eq!(show(&plan), "a:1->3");
    fixture.carry_out(&plan);
    fixture.register("n3", Role::Data);
    fixture.watched("n3", &["k", "l", "m"]);
    fixture.ack("a", AckResult::Ok);
    let plan = fixture.plan();
    assert_eq!((show(&plan).as_str(), moves(&plan)[0].cause), ("a->2", Cause::Unassigned));
}

/// A-12, A-13: the node that released it gets it back only if it is the only candidate.
#[test]
fn the_avoided_node_is_the_last_resort() {
    let mut fixture = layout(&[&["a"], &["x", "y", "z"]], &[]);
    fixture.release("a");
    fixture.ack("a", AckResult::Ok);
    assert_eq!(fixture.shown(), "a->2", "although n1 has nothing");
    let node = fixture.node("n2");
    fixture.accept(Command::SetStopping { node });
    let plan = fixture.plan();
    assert_eq!(show(&plan), "a->1 x:2->1 y:2->1 z:2->1");
    assert_eq!(moves(&plan)[0].cause, Cause::GivenBack);
}

/// 18.6: equal counts go to the node with fewer channels of the same physical channel.
#[test]
fn physical_channels_are_spread() {
    let mut fixture = Fixture::new();
    for node in ["n1", "n2"] {
        fixture.register(node, Role::Data);
    }
    fixture.announce(&["a1", "b1"], |channel| channel[..1].to_string());
    fixture.place("a1", "n1");
    fixture.place("b1", "n2");
    fixture.announce(&["a2", "b2"], |channel| channel[..1].to_string());
    assert_eq!(fixture.shown(), "a2->2 b2->1");
    fixture.announce(&["a0"], |channel| channel[..1].to_string());
    assert_eq!(fixture.shown(), "a0->2 a2->1 b2->1", "count comes first");
}

/// Drained: at most `balance_moves_max` on the move, evened over the others, until nothing is left.
#[test]
fn drains_a_few_at_a_time() {
    let mut fixture = layout(&[&["a", "b", "c", "d", "e"], &[], &["x"]], &[]);
    fixture.policy("balance_moves_max", "2");
    fixture.accept(Command::Freeze { name: NodeName::new("n1").unwrap() });
    let plan = fixture.plan();
    assert_eq!(show(&plan), "a:1->2 b:1->2");
    let waiting = &plan.report.waiting[0];
    assert_eq!((waiting.stage, waiting.channels), (Stage::Drain, 3));
    assert_eq!(waiting.why, Why::MovesInFlight { max: 2 });
    assert!(fixture.carry_out(&plan).is_empty());
    assert_eq!(fixture.plan().decision, None, "both moves are in flight");
    fixture.ack("a", AckResult::Ok);
    let plan = fixture.plan();
    assert_eq!(show(&plan), "a->2 c:1->3", "what is on its way counts at its target");
    for _ in 0..10 {
        let plan = fixture.plan();
        assert!(fixture.carry_out(&plan).is_empty());
        fixture.answer_all();
    }
    let loads: Vec<u32> = ["n1", "n2", "n3"].map(|n| fixture.load(fixture.node(n).node)).into();
    assert_eq!(loads, [0, 3, 3]);
    assert_eq!(fixture.plan().decision, None);
}

/// A-40: a node is emptied only while another can take its channels.
#[test]
fn does_not_drain_into_nothing() {
    let mut fixture = layout(&[&["a"]], &[]);
    let node = fixture.node("n1");
    fixture.accept(Command::SetStopping { node });
    let plan = fixture.plan();
    assert_eq!(plan.decision, None);
    assert_eq!(plan.report.waiting[0].why, Why::NoTarget);
    fixture.register("n2", Role::Data);
    assert_eq!(fixture.shown(), "a:1->2");
}

/// A-42: a cold start waits for the settle window once, then spreads evenly.
#[test]
fn a_cold_start_settles() {
    let mut fixture = Fixture::new();
    fixture.policy("settle_ms", "1000");
    let channels: Vec<String> = (0..100).map(|n| format!("c{n:03}")).collect();
    fixture.buffer(&channels.iter().map(String::as_str).collect::<Vec<_>>());
    let start = fixture.now;
    for node in ["n1", "n2", "n3", "n4"] {
        fixture.register(node, Role::Data);
        let plan = fixture.plan();
        assert_eq!((plan.decision.is_none(), plan.wake_at), (true, Some(start.plus_ms(1_000))));
        fixture.later(200);
    }
    fixture.later(200);
    let plan = fixture.plan();
    assert!(fixture.carry_out(&plan).is_empty());
    for node in ["n1", "n2", "n3", "n4"] {
        assert_eq!(fixture.load(fixture.node(node).node), 25);
    }
    let node = fixture.register("n5", Role::Data);
    assert_eq!((fixture.load(node.node), fixture.plan().decision), (0, None), "joins move nothing");
}

/// A dropped channel is not given to its planned target (A-23).
#[test]
fn dropping_channels_are_left_alone() {
    let mut fixture = layout(&[&["a"], &[]], &[]);
    fixture.release("a");
    fixture.accept(Command::MarkDropped { channel: name("a"), claim: None });
    assert_eq!(fixture.plan().decision, None);
    fixture.ack("a", AckResult::Ok);
    assert_eq!(fixture.plan().decision, None);
}

/// The budget bounds a decision; what is left is counted and planned next.
#[test]
fn the_budget_bounds_a_decision() {
    let mut fixture = layout(&[&[], &[]], &["a", "b", "c", "d", "e"]);
    let plan = fixture.plan_at_most(2);
    assert_eq!(show(&plan), "a->1 b->2");
    let waiting = &plan.report.waiting[0];
    assert_eq!((waiting.channels, waiting.why), (3, Why::Deferred { moves_max: 2 }));
    fixture.carry_out(&plan);
    assert_eq!(fixture.shown(), "c->1 d->2 e->1");
}

/// Where cool-downs bar the even choice for one channel, another channel makes room.
#[test]
fn cool_downs_do_not_make_counts_uneven() {
    let mut fixture = layout(&[&[], &[], &[], &[]], &["x", "y", "z"]);
    let failed = [("x", "n3"), ("x", "n4"), ("y", "n1"), ("y", "n2"), ("z", "n2"), ("z", "n4")];
    fixture.policy("cooldown_max_ms", "600000");
    fixture.policy("cooldown_base_ms", "600000");
    for (channel, node) in failed {
        fixture.place(channel, node);
        fixture.ack(channel, AckResult::FailedStopped);
    }
    let plan = fixture.plan();
    let mut taken: Vec<u64> = moves(&plan).iter().map(|m| to(&m.action)).collect();
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken.len(), 3, "{}", show(&plan));
}

fn to(action: &Action) -> u64 {
    match action {
        Action::Assign { to } | Action::Move { to, .. } => to.node.0,
        Action::Release { .. } => 0,
    }
}

/// The report says each choice and each non-choice in words.
#[test]
fn the_report_reads_as_words() {
    let mut fixture = layout(&[&["x", "y", "z"], &[]], &["a"]);
    fixture.policy("balance_moves_max", "1");
    let node = fixture.node("n1");
    fixture.accept(Command::SetStopping { node });
    let report = fixture.plan().report.to_string();
    let lines: Vec<&str> = report.lines().skip(1).collect();
    let (one, two) = (fixture.node("n1"), fixture.node("n2"));
    assert_eq!(
        lines,
        [
            format!("a -> {two}: unassigned, it had 0 channels, it is the only candidate"),
            format!("x {one} -> {two}: drain, it had 1 channels, it is the only candidate"),
            format!("2 channels of {one} wait in drain: at most 1 channels move at a time"),
        ]
    );
}

/// The text of a failure is kept for people only: it does not change a choice.
#[test]
fn failures_count_for_their_channel_only() {
    let mut fixture = layout(&[&[], &[]], &["a"]);
    fixture.place("a", "n1");
    fixture.ack("a", AckResult::FailedStopped);
    let channel = fixture.state.channel(&name("a")).unwrap();
    assert!(matches!(channel.phase, Phase::Buffered { planned: None }));
    assert_eq!(channel.last_failure, Text::new("said so").unwrap());
    assert_eq!(fixture.shown(), "a->2");
    fixture.buffer(&["b"]);
    assert_eq!(fixture.shown(), "a->2 b->1");
}
