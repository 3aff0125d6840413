//! Stage 3: which channels move to even out counts, when, and that it ends.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use proptest::prelude::*;
use state::channel::AckResult;
use state::node::Role;

use super::fixture::{Fixture, show};
use crate::{Stage, Why, balance_due};

/// Nodes n1, n2... that watch as many channels each; nothing has changed for long enough.
fn quiet(counts: &[usize]) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.policy("auto_balance", "true");
    for (node, count) in counts.iter().enumerate() {
        let node = format!("n{}", node + 1);
        fixture.register(&node, Role::Data);
        let names: Vec<String> = (0..*count).map(|n| format!("{node}-c{n}")).collect();
        fixture.watched(&node, &names.iter().map(String::as_str).collect::<Vec<_>>());
    }
    fixture.later(300_000);
    fixture
}

fn loads(fixture: &Fixture) -> Vec<u32> {
    fixture.state.nodes().map(|node| fixture.load(node.node)).collect()
}

/// Plans and carries out until a round leaves nothing to do; returns the moves made.
fn settle(fixture: &mut Fixture) -> usize {
    let mut moved = 0;
    for _ in 0..1_000 {
        let plan = fixture.plan();
        let balance = plan.report.choices.iter().filter(|choice| choice.from.is_some()).count();
        moved += balance;
        assert!(fixture.carry_out(&plan).is_empty());
        let answered = fixture.answer_all();
        if plan.decision.is_none() && !answered {
            let Some(due) = balance_due(&fixture.state).filter(|due| *due > fixture.now) else {
                return moved;
            };
            fixture.now = due;
        }
    }
    panic!("it does not come to rest: {:?}", loads(fixture));
}

#[test]
fn counts_end_at_most_one_apart_with_the_fewest_moves() {
    for (counts, moves) in [
        (&[2, 0][..], 1),
        (&[4, 1, 0], 2),
        (&[3, 3, 1], 1),
        (&[0, 1, 5], 3),
        (&[2, 2, 2], 0),
        (&[3, 2], 0),
        (&[7], 0),
        (&[20, 0, 0, 0], 15),
    ] {
        let mut fixture = quiet(counts);
        assert_eq!(settle(&mut fixture), moves, "{counts:?}");
        let loads = loads(&fixture);
        let spread = loads.iter().max().unwrap() - loads.iter().min().unwrap();
        assert!(spread <= 1, "{counts:?} ended as {loads:?}");
    }
}

#[test]
fn among_equally_full_nodes_the_higher_id_gives() {
    assert_eq!(quiet(&[3, 3, 1]).shown(), "n2-c0:2->3");
    assert_eq!(quiet(&[4, 1, 0]).shown(), "n1-c0:1->3 n1-c1:1->2");
}

#[test]
fn it_waits_for_silence_to_the_millisecond() {
    let mut fixture = quiet(&[2, 0]);
    fixture.now = fixture.state.last_activity().plus_ms(299_999);
    let plan = fixture.plan();
    assert_eq!(show(&plan), "");
    let until = fixture.state.last_activity().plus_ms(300_000);
    assert_eq!(plan.wake_at, Some(until));
    assert_eq!(balance_due(&fixture.state), Some(until));
    fixture.now = until;
    assert_eq!(fixture.shown(), "n1-c0:1->2");
}

#[test]
fn it_waits_for_running_operations_and_for_the_switch() {
    let mut fixture = quiet(&[3, 0]);
    fixture.release("n1-c2");
    fixture.later(300_000);
    let plan = fixture.plan();
    assert_eq!(show(&plan), "");
    assert!(balance_due(&fixture.state).is_none());
    fixture.ack("n1-c2", AckResult::Ok);
    fixture.policy("auto_balance", "false");
    let plan = fixture.plan();
    assert_eq!(show(&plan), "n1-c2->2", "what has no owner is placed all the same");
    assert!(plan.report.waiting.iter().all(|waiting| waiting.stage != Stage::Balance));
}

#[test]
fn what_was_moved_lately_rests() {
    let mut fixture = quiet(&[4, 0]);
    fixture.policy("balance_silent_ms", "0");
    fixture.policy("min_move_interval_ms", "600000");
    let plan = fixture.plan();
    assert_eq!(show(&plan), "");
    let until = fixture.state.channels().map(|c| c.placed_at).min().unwrap().plus_ms(600_000);
    let waits = plan.report.waiting.iter().map(|waiting| waiting.why).collect::<Vec<_>>();
    assert_eq!(waits, [Why::MovedLately { until }]);
    assert_eq!(plan.wake_at, Some(until));
    fixture.now = until;
    assert_eq!(fixture.shown(), "n1-c0:1->2 n1-c1:1->2");
}

#[test]
fn rounds_keep_their_distance() {
    let mut fixture = quiet(&[6, 0]);
    fixture.policy("balance_moves_max", "1");
    fixture.policy("balance_silent_ms", "0");
    let first = fixture.plan();
    assert_eq!(show(&first), "n1-c0:1->2");
    fixture.carry_out(&first);
    let began = fixture.now;
    while fixture.answer_all() {
        let plan = fixture.plan();
        fixture.carry_out(&plan);
    }
    assert_eq!(fixture.shown(), "");
    assert_eq!(fixture.plan().wake_at, Some(began.plus_ms(360_000)));
    fixture.now = began.plus_ms(360_000);
    assert_eq!(fixture.shown(), "n1-c1:1->2");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// It ends; the counts are at most one apart; no more moved than had to.
    #[test]
    fn any_counts_come_to_rest(counts in prop::collection::vec(0_usize..12, 1..7)) {
        let mut fixture = quiet(&counts);
        let total: usize = counts.iter().sum();
        let (average, mut above) = (total / counts.len(), total % counts.len());
        let mut sorted = counts.clone();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        let needed: usize = sorted.iter().map(|count| {
            let more = usize::from(*count > average && above > 0);
            above -= more;
            count.saturating_sub(average + more)
        }).sum();
        let moved = settle(&mut fixture);
        prop_assert_eq!(moved, needed);
        let loads = loads(&fixture);
        prop_assert!(loads.iter().max().unwrap() - loads.iter().min().unwrap() <= 1);
    }
}
