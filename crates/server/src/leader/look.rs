//! When the leader plans: pure, so that the simulator goes by the same rule. What becomes of a plan
//! is in `planning`.

use planner::{balance_due, moves_at_join};
use state::State;
use state::epoch::{Revision, Timestamp};
use state::node::NodeStatus;

/// While nothing else is to be done, a changed state is looked at for uneven load, and for nodes
/// that joined, this often.
const LOOK_MS: u64 = 100;

/// The last plan that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Revision of the state it was made on.
    pub revision: Revision,
    /// When it was made.
    pub at: Timestamp,
    /// When time alone makes the next one differ.
    pub wake_at: Option<Timestamp>,
}

/// When to plan on this state: at once if that time has come; none: not before the state changes.
/// Cheap, asked at every change: a steady stream of commits does not make it plan each time.
#[must_use]
pub fn plan_at(state: &State, looked: Option<Look>) -> Option<Timestamp> {
    if let Some(look) = looked.filter(|look| look.revision == state.revision()) {
        return look.wake_at;
    }
    if has_work(state) {
        return Some(state.now());
    }
    let due = if moves_at_join(state) { state.now() } else { balance_due(state)? };
    Some(looked.map_or(due, |look| due.max(look.at.plus_ms(LOOK_MS))))
}

/// Whether the planner could have anything urgent to do.
fn has_work(state: &State) -> bool {
    state.buffered().next().is_some()
        || state.frozen_names().next().is_some()
        || state.nodes().any(|node| node.status == NodeStatus::Stopping)
}
