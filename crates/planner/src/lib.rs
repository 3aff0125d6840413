//! Quorate's planner: a pure function from a state to a decision, run by the leader outside the
//! log. Stages in order: [`repair`] (channels without an owner), [`drain`] (nodes to be emptied),
//! [`balance`] (counts are evened out).
#![no_std]
#![warn(missing_docs)]
#![warn(clippy::expect_used, clippy::float_arithmetic, clippy::indexing_slicing)]

extern crate alloc;

mod balance;
mod chosen;
mod deal;
mod drain;
mod explain;
mod forecast;
mod holdings;
mod join;
mod level;
mod pchannel;
pub mod policy;
mod quiet;
mod repair;
mod report;
mod spread;
mod targets;
mod view;

#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use state::decision::{Action, Basis, Decision, Move};
use state::ids::NodeId;
use state::limits;

pub use crate::explain::{Considered, Explanation, Standing, Wait, WaitFor, explain};
pub use crate::forecast::{Emptying, Forecast, Stay, Step, emptying, forecast_drain};
pub use crate::quiet::{balance_due, moves_at_join};
pub use crate::report::{Choice, Report, Stage, Waiting, Why};
pub use crate::targets::Constraint;
pub use crate::view::{Budget, Plan, View};

use crate::targets::Targets;

/// Chooses what is to be done next on this state.
///
/// Pure: equal views and budgets give equal plans. Every move of the decision is accepted by
/// `State::apply` as long as nothing else is applied in between. Nothing to do is no decision (C6).
#[must_use]
pub fn plan(view: &View<'_>, budget: &Budget) -> Plan {
    let mut report = Report::new(view);
    let mut targets = Targets::new(view);
    let moves_max = budget.moves_max.min(limits::MOVES_MAX);
    let mut moves = repair::repair(view, &mut targets, moves_max, &mut report);
    let room = moves_max.saturating_sub(moves.len());
    moves.extend(drain::drain(view, &mut targets, room, &mut report));
    let room = drain::room(view).min(moves_max).saturating_sub(moves.len());
    moves.extend(join::join(view, &mut targets, room, &mut report));
    let room = drain::room(view).min(moves_max);
    let evened = balance::balance(view, &mut targets, room, moves.len(), &mut report);
    moves.extend(evened);
    moves.sort_by(|a, b| (rank(a), &a.channel).cmp(&(rank(b), &b.channel)));
    let basis = Basis { term: view.term, revision: view.state.revision() };
    let decision = (!moves.is_empty()).then_some(Decision { basis, moves, atomic: false });
    let wake_at = report.wake_at();
    Plan { decision, report, wake_at }
}

/// Result order (C7): what gets an owner first, then what loses one; by node, then by name.
fn rank(chosen: &Move) -> (u8, NodeId) {
    match chosen.action {
        Action::Assign { to } => (0, to.node),
        Action::Move { from, .. } | Action::Release { from } => (1, from.node),
    }
}

/// The moves of a plan, empty when it has no decision.
#[must_use]
pub fn moves(plan: &Plan) -> &[Move] {
    plan.decision.as_ref().map_or(&[], |decision| &decision.moves)
}

/// An empty list that will hold at most `len` and `max` items.
fn list_for<T>(len: usize, max: usize) -> Vec<T> {
    Vec::with_capacity(len.min(max))
}
