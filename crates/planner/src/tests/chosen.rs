//! Policies chosen by name: each does what its worked example says, within the rules that hold for
//! all, and every mixture of them comes to rest.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use proptest::prelude::*;
use state::channel::AckResult;
use state::choices::{CHOICES, Choice};
use state::command::Command;
use state::node::Role;

use super::fixture::Fixture;
use crate::{Why, balance_due};

/// Nodes n1, n2... that watch these channels each; nothing has changed for long enough.
fn group(nodes: &[&[&str]]) -> Fixture {
    let mut fixture = Fixture::new();
    for (at, channels) in nodes.iter().enumerate() {
        let node = format!("n{}", at + 1);
        fixture.register(&node, Role::Data);
        fixture.watched(&node, channels);
    }
    fixture.later(300_000);
    fixture
}

fn choose(fixture: &mut Fixture, choice: Choice, name: &str) {
    fixture.policy(choice.name(), name);
    assert_eq!(fixture.state.choice(choice), name);
}

#[test]
fn new_channels_are_placed_by_the_assign_policy() {
    for (policy, expected) in [
        ("balanced", "a->2 b->1 c->3 d->2"),
        ("average", "a->2 b->1 c->3 d->2"),
        ("by_count", "a->2 b->1 c->3 d->2"),
    ] {
        let mut fixture = group(&[&["y"], &[], &["x"]]);
        choose(&mut fixture, Choice::Assign, policy);
        fixture.buffer(&["a", "b", "c", "d"]);
        assert_eq!(fixture.shown(), expected, "{policy}");
    }
    // It fixes beforehand who is below the mean, and fills those above it; our own does not.
    for (policy, expected) in
        [("by_count", "a->1 b->3 c->1 d->3"), ("balanced", "a->1 b->3 c->1 d->1")]
    {
        let mut fixture = group(&[&[], &["x", "y", "z"], &["u", "v"]]);
        choose(&mut fixture, Choice::Assign, policy);
        fixture.buffer(&["a", "b", "c", "d"]);
        assert_eq!(fixture.shown(), expected, "{policy}");
    }
    let mut fixture = group(&[&[], &[], &[]]);
    choose(&mut fixture, Choice::Assign, "consistent_hash");
    fixture.buffer(&["ch-1", "ch-2", "ch-3", "ch-4", "ch-5", "ch-6"]);
    assert_eq!(fixture.shown(), "ch-1->3 ch-2->2 ch-3->2 ch-4->1 ch-5->3 ch-6->3");
}

#[test]
fn released_channels_are_placed_by_the_reassign_policy() {
    for (policy, expected) in [
        ("balanced", "a->4 b->3"),
        ("round_robin", "a->4 b->3"),
        ("round_robin_unsorted", "a->2 b->3"),
        ("average", "a->4 b->4"),
        ("by_count", "a->4 b->3"),
        ("none", "a->1 b->1"),
    ] {
        let mut fixture = group(&[&["a", "b"], &["p", "q", "r"], &["s"], &[]]);
        choose(&mut fixture, Choice::Reassign, policy);
        for channel in ["a", "b"] {
            fixture.release(channel);
            fixture.ack(channel, AckResult::Ok);
        }
        assert_eq!(fixture.shown(), expected, "{policy}");
    }
}

#[test]
fn channels_of_a_lost_node_are_placed_by_the_deregister_policy() {
    for (policy, expected) in
        [("balanced", "a->2 b->3 c->2"), ("average", "a->2 b->3 c->2"), ("none", "a->2 b->3 c->2")]
    {
        let mut fixture = group(&[&["a", "b", "c"], &["x"], &["y"]]);
        choose(&mut fixture, Choice::Deregister, policy);
        fixture.accept(Command::Revoke { node: fixture.node("n1") });
        assert_eq!(fixture.shown(), expected, "{policy}");
    }
    let mut fixture = group(&[&[], &[], &["ch-1", "ch-5", "ch-6"]]);
    choose(&mut fixture, Choice::Deregister, "consistent_hash");
    fixture.accept(Command::Revoke { node: fixture.node("n3") });
    assert_eq!(fixture.shown(), "ch-1->1 ch-5->1 ch-6->2");
}

#[test]
fn what_waited_goes_to_the_first_that_joined() {
    for (policy, expected) in [("none", "c1->1 c2->2"), ("buffer_assign", "c1->1 c2->1")] {
        let mut fixture = group(&[]);
        choose(&mut fixture, Choice::Register, policy);
        fixture.buffer(&["c1", "c2"]);
        fixture.register("n1", Role::Data);
        fixture.register("n2", Role::Data);
        assert_eq!(fixture.shown(), expected, "{policy}");
    }
}

#[test]
fn a_node_that_joins_gets_what_the_register_policy_says() {
    for (policy, expected) in [("none", ""), ("buffer_assign", ""), ("avg_assign", "a:1->4 e:2->4")]
    {
        let mut fixture = group(&[&["a", "b", "c", "d"], &["e", "f", "g"], &["h"]]);
        choose(&mut fixture, Choice::Balance, "none");
        choose(&mut fixture, Choice::Register, policy);
        fixture.register("n4", Role::Data);
        assert_eq!(fixture.shown(), expected, "{policy}");
    }
    let mut fixture = group(&[&["ch-1", "ch-4", "ch-5"], &["ch-2", "ch-3", "ch-6"], &[]]);
    choose(&mut fixture, Choice::Balance, "none");
    choose(&mut fixture, Choice::Register, "consistent_hash");
    assert_eq!(fixture.shown(), "ch-1:1->3 ch-5:1->3 ch-6:2->3");
}

#[test]
fn load_is_evened_out_by_the_balance_policy() {
    for (policy, expected) in [
        ("spread", "a:1->2"),
        ("average", "a:1->2"),
        ("average_v2", "a:1->2"),
        ("pchannel_count_fair", "c:1->2"),
        ("none", ""),
    ] {
        let mut fixture = group(&[&["a", "b", "c"], &[]]);
        choose(&mut fixture, Choice::Balance, policy);
        assert_eq!(fixture.shown(), expected, "{policy}");
    }
    let mut fixture = group(&[&["a", "b"], &[]]);
    choose(&mut fixture, Choice::Balance, "average");
    assert_eq!(fixture.shown(), "", "two on one of two nodes stay");
    choose(&mut fixture, Choice::Balance, "average_v2");
    assert_eq!(fixture.shown(), "a:1->2");
    choose(&mut fixture, Choice::Balance, "none");
    let plan = fixture.plan();
    assert!(plan.report.waiting.iter().any(|waiting| waiting.why == Why::BalanceOff));
}

/// No policy gives a channel to a node that cools down for it.
#[test]
fn cool_downs_hold_for_every_policy() {
    for policy in Choice::Assign.allowed() {
        let mut fixture = group(&[&[], &[], &[]]);
        choose(&mut fixture, Choice::Assign, policy);
        choose(&mut fixture, Choice::Reassign, "none");
        fixture.buffer(&["ch-1"]);
        fixture.place("ch-1", "n3");
        fixture.ack("ch-1", AckResult::FailedStopped);
        assert_ne!(fixture.shown(), "ch-1->3", "{policy}");
        let plan = fixture.plan();
        assert!(fixture.carry_out(&plan).is_empty(), "{policy}");
    }
}

fn any_choice() -> impl Strategy<Value = Vec<&'static str>> {
    let one = |choice: Choice| prop::sample::select(choice.allowed().to_vec());
    CHOICES.into_iter().map(one).collect::<Vec<_>>()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]
    /// Whatever is chosen: every move is taken, every channel ends up watched, and it ends.
    #[test]
    fn every_mixture_comes_to_rest(
        names in any_choice(),
        counts in prop::collection::vec(0_usize..8, 1..6),
        lost in any::<prop::sample::Index>(),
        joins in 1_usize..3,
    ) {
        let held: Vec<Vec<String>> = counts
            .iter()
            .enumerate()
            .map(|(node, count)| (0..*count).map(|n| format!("ch-{node}-{n}")).collect())
            .collect();
        let held: Vec<Vec<&str>> =
            held.iter().map(|names| names.iter().map(String::as_str).collect()).collect();
        let held: Vec<&[&str]> = held.iter().map(Vec::as_slice).collect();
        let mut fixture = group(&held);
        let ring_and_even = names[3] == "consistent_hash" && names[4] != "none";
        let before = fixture.state.revision();
        let settings = CHOICES.map(Choice::name).into_iter().zip(names.clone());
        fixture.policies(&settings.collect::<Vec<_>>());
        prop_assert!(!ring_and_even || fixture.state.revision() == before, "would go on for ever");
        let lost = format!("n{}", lost.index(counts.len()) + 1);
        fixture.buffer(&["new-1", "new-2"]);
        fixture.accept(Command::Revoke { node: fixture.node(&lost) });
        for at in 0..joins {
            fixture.register(&format!("joined{at}"), Role::Data);
        }
        let mut rounds = 0;
        loop {
            rounds += 1;
            prop_assert!(rounds < 500, "{:?} goes on", names);
            let plan = fixture.plan();
            let refused = fixture.carry_out(&plan);
            prop_assert!(refused.is_empty(), "{:?}", refused);
            let answered = fixture.answer_all();
            if plan.decision.is_some() || answered {
                continue;
            }
            match plan.wake_at.or_else(|| balance_due(&fixture.state)) {
                Some(at) if at > fixture.now => fixture.now = at,
                _ => break,
            }
        }
        let counts = fixture.state.counts();
        prop_assert_eq!(counts.total(), counts.watched, "{:?}", names);
        // A plan without a time to wake at is the same for ever.
        fixture.later(86_400_000);
        prop_assert_eq!(fixture.shown(), "", "{:?}", names);
    }
}
