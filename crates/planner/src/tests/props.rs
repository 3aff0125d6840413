//! Properties over histories: what apply accepts, fixed points, convergence, evenness, determinism.
//! A history is a list of abstract actions made concrete against the state they meet.

use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;
use state::channel::{AckResult, Channel, Phase, PhaseKind};
use state::command::Command;
use state::decision::{Action, Cause};
use state::ids::NodeName;
use state::node::{NodeRef, NodeStatus, Role};

use super::fixture::Fixture;
use crate::{Plan, moves};

#[derive(Debug, Clone)]
enum Act {
    Register(u8),
    Revoke(usize),
    Stop(usize),
    Resume(usize),
    Freeze(u8),
    Thaw(u8),
    Announce(u8),
    Release(usize),
    Drop(usize),
    Ack(usize, AckResult),
    Later(u16),
    Plan(u8),
}

fn act() -> impl Strategy<Value = Act> {
    let result = prop_oneof![
        4 => Just(AckResult::Ok),
        2 => Just(AckResult::FailedStopped),
        1 => Just(AckResult::Failed),
        1 => Just(AckResult::Conflict),
    ];
    prop_oneof![
        3 => (0..6_u8).prop_map(Act::Register),
        1 => any::<usize>().prop_map(Act::Revoke),
        1 => any::<usize>().prop_map(Act::Stop),
        1 => any::<usize>().prop_map(Act::Resume),
        1 => (0..6_u8).prop_map(Act::Freeze),
        1 => (0..6_u8).prop_map(Act::Thaw),
        4 => any::<u8>().prop_map(Act::Announce),
        2 => any::<usize>().prop_map(Act::Release),
        1 => any::<usize>().prop_map(Act::Drop),
        8 => (any::<usize>(), result).prop_map(|(at, result)| Act::Ack(at, result)),
        2 => (0..3_000_u16).prop_map(Act::Later),
        4 => (1..40_u8).prop_map(Act::Plan),
    ]
}

fn pick<T: Clone>(items: &[T], at: usize) -> Option<T> {
    (!items.is_empty()).then(|| items[at % items.len()].clone())
}

fn live(fixture: &Fixture) -> Vec<NodeRef> {
    let nodes = fixture.state.nodes().filter(|node| node.status != NodeStatus::Down);
    nodes.map(|node| node.node_ref()).collect()
}

fn owned(
    fixture: &Fixture,
    at: usize,
    want: impl Fn(&Channel) -> bool,
) -> Option<alloc::string::String> {
    let channels = fixture.state.channels().filter(|channel| want(channel));
    let names: Vec<_> = channels.map(|channel| channel.spec.name.to_string()).collect();
    pick(&names, at)
}

fn perform(fixture: &mut Fixture, act: &Act) {
    let node_name = |at: u8| NodeName::new(&format!("w{at}")).unwrap();
    match act {
        Act::Register(at) => {
            fixture.register(&format!("w{at}"), Role::Data);
        }
        Act::Revoke(at) => {
            if let Some(node) = pick(&live(fixture), *at) {
                fixture.accept(Command::Revoke { node });
            }
        }
        Act::Stop(at) => {
            if let Some(node) = pick(&live(fixture), *at) {
                fixture.apply(Command::SetStopping { node });
            }
        }
        Act::Resume(at) => {
            if let Some(node) = pick(&live(fixture), *at) {
                fixture.apply(Command::UnsetStopping { node });
            }
        }
        Act::Freeze(at) => {
            fixture.apply(Command::Freeze { name: node_name(*at) });
        }
        Act::Thaw(at) => {
            fixture.apply(Command::Thaw { name: node_name(*at) });
        }
        Act::Announce(at) => {
            let channel = format!("c{:03}", at % 48);
            if fixture.state.channel(&super::fixture::name(&channel)).is_none() {
                fixture.announce(&[&channel], |_| format!("p{}", at % 5));
            }
        }
        Act::Release(at) => {
            let watched = |c: &Channel| c.phase.kind() == PhaseKind::Watched;
            if let Some(channel) = owned(fixture, *at, watched) {
                fixture.release(&channel);
            }
        }
        Act::Drop(at) => {
            if let Some(channel) = owned(fixture, *at, |c| !c.dropping()) {
                let channel = super::fixture::name(&channel);
                fixture.apply(Command::MarkDropped { channel, claim: None });
            }
        }
        Act::Ack(at, result) => answer(fixture, *at, *result),
        Act::Later(ms) => fixture.later(u64::from(*ms)),
        Act::Plan(moves_max) => {
            let plan = fixture.plan_at_most(usize::from(*moves_max));
            assert!(fixture.carry_out(&plan).is_empty());
        }
    }
}

fn answer(fixture: &mut Fixture, at: usize, result: AckResult) {
    let waits = |c: &Channel| matches!(c.phase.kind(), PhaseKind::ToWatch | PhaseKind::ToRelease);
    let Some(channel) = owned(fixture, at, waits) else { return };
    let record = fixture.state.channel(&super::fixture::name(&channel)).unwrap();
    let releasing = record.phase.kind() == PhaseKind::ToRelease;
    fixture.ack(
        &channel,
        if releasing && result != AckResult::Failed { AckResult::Ok } else { result },
    );
}

fn build(acts: &[Act]) -> Fixture {
    let mut fixture = Fixture::new();
    for act in acts {
        perform(&mut fixture, act);
    }
    fixture
}

/// No chosen channel could go to a node with at least two channels less.
fn assert_even(fixture: &Fixture, plan: &Plan) {
    let candidates: Vec<_> = live(fixture);
    for chosen in moves(plan) {
        let Action::Assign { to } = chosen.action else { continue };
        if chosen.cause == Cause::Planned {
            continue;
        }
        let channel = fixture.state.channel(&chosen.channel).unwrap();
        for other in &candidates {
            let node = fixture.state.live(*other).unwrap();
            let bars = channel.avoid == Some(other.node) && chosen.cause != Cause::GivenBack;
            let may = fixture.state.is_candidate(channel, node, fixture.now).is_ok();
            if may && !bars {
                let (has, could) = (after(fixture, plan, to), after(fixture, plan, *other));
                assert!(has <= could + 1, "{}: {has} at {to}, {could} at {other}", chosen.channel);
            }
        }
    }
}

/// Channels of a node once the assignments of the plan are done and promised ones have arrived.
fn after(fixture: &Fixture, plan: &Plan, node: NodeRef) -> u32 {
    let gets = |action: &Action| matches!(action, Action::Assign { to } if *to == node);
    let chosen = moves(plan).iter().filter(|chosen| gets(&chosen.action)).count();
    let promised = fixture.state.channels().filter(|channel| match channel.phase {
        Phase::ToRelease { planned, dropping, .. } => planned == Some(node) && !dropping,
        _ => false,
    });
    fixture.load(node.node) + u32::try_from(chosen + promised.count()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Every move of a plan is accepted on the state it was made for, in any history.
    #[test]
    fn apply_accepts_every_move(acts in prop::collection::vec(act(), 1..120)) {
        let mut fixture = build(&acts);
        let plan = fixture.plan();
        prop_assert_eq!(&plan, &fixture.plan(), "equal views give equal plans");
        assert_even(&fixture, &plan);
        prop_assert!(fixture.carry_out(&plan).is_empty());
    }

    /// What is not chosen has a reason, and time bounds it where only time is missing.
    #[test]
    fn every_buffered_channel_is_accounted_for(acts in prop::collection::vec(act(), 1..120)) {
        let fixture = build(&acts);
        let plan = fixture.plan();
        let report = &plan.report;
        let assigned = report.choices.iter().filter(|choice| choice.from.is_none()).count();
        let waiting: u64 = report.waiting.iter()
            .filter(|waiting| waiting.stage == crate::Stage::Repair)
            .map(|waiting| waiting.channels)
            .sum();
        let total = u64::try_from(assigned).unwrap() + waiting;
        prop_assert_eq!(total, u64::from(fixture.state.counts().buffered));
        prop_assert_eq!(moves(&plan).len(), report.choices.len());
        if let Some(wake_at) = plan.wake_at {
            prop_assert!(wake_at > fixture.now);
        }
    }

    /// Once nodes answer and one can take channels, a bounded number of rounds leads to a state in
    /// which every channel is watched or stands on a node that nobody can relieve, and the plan is
    /// empty.
    #[test]
    fn converges_to_an_empty_plan(acts in prop::collection::vec(act(), 1..120)) {
        let mut fixture = build(&acts);
        fixture.register("w9", Role::Data);
        fixture.later(200_000);
        let rounds = fixture.state.channel_count() + 8;
        let mut quiet = false;
        for _ in 0..rounds {
            let plan = fixture.plan();
            fixture.carry_out(&plan);
            quiet = !fixture.answer_all() && plan.decision.is_none();
            if quiet {
                break;
            }
        }
        prop_assert!(quiet, "no fixed point within {rounds} rounds");
        let counts = fixture.state.counts();
        prop_assert_eq!((counts.buffered, counts.to_watch, counts.to_release), (0, 0, 0));
        for node in fixture.state.nodes() {
            let up = node.status == NodeStatus::Up
                && !fixture.state.is_frozen(&node.registration.name);
            prop_assert!(up || fixture.load(node.node) == 0, "{} is not empty", node.node);
        }
    }

    /// Channels that are placed from nothing end within one of each other.
    #[test]
    fn a_fresh_group_is_even(nodes in 1..12_usize, channels in 1..90_usize, budget in 1..50_usize) {
        let mut fixture = Fixture::new();
        for node in 0..nodes {
            fixture.register(&format!("w{node}"), Role::Data);
        }
        for channel in 0..channels {
            fixture.announce(&[&format!("c{channel:03}")], |_| format!("p{}", channel % 7));
        }
        while fixture.plan().decision.is_some() {
            let plan = fixture.plan_at_most(budget);
            fixture.carry_out(&plan);
            fixture.answer_all();
        }
        let loads: Vec<u32> = live(&fixture).iter().map(|node| fixture.load(node.node)).collect();
        let (low, high) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
        prop_assert!(high - low <= 1, "{loads:?}");
    }
}
