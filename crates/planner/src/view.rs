//! What a plan is computed from and what it results in. The rules are in the stages.
//! The leader's planning loop and the simulator build these.

use alloc::sync::Arc;

use state::State;
use state::decision::Decision;
use state::epoch::{Term, Timestamp};
use state::node::{Node, NodeStatus, Role};

use crate::report::Report;

/// What the planner may know of the world.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// An applied state.
    pub state: &'a State,
    /// Raft term of the leader that plans (F1).
    pub term: Term,
    /// The leader's stamp clock; not before the log time of the state.
    pub now: Timestamp,
}

/// How much one plan may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Moves in one decision; [`state::limits::MOVES_MAX`] bounds it too.
    pub moves_max: usize,
}

/// What is to be done, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// To be proposed as it is; none: there is nothing to do.
    pub decision: Option<Decision>,
    /// Every choice and every non-choice.
    pub report: Report,
    /// The earliest time at which a plan on the same state would differ because a cool-down or the
    /// settle window ended.
    pub wake_at: Option<Timestamp>,
}

impl View<'_> {
    /// The time the stages judge by: never before the log time.
    pub(crate) fn time(&self) -> Timestamp {
        self.now.max(self.state.now())
    }

    /// End of the settle window of a cold start, if it has not passed. Cold is also a group
    /// that comes back after all its nodes were away: the first of them must not get everything
    /// (FR-028).
    pub(crate) fn settles_until(&self) -> Option<Timestamp> {
        let counts = self.state.counts();
        if counts.to_watch > 0 || counts.watched > 0 || counts.to_release > 0 {
            return None;
        }
        let here = |node: &&Arc<Node>| {
            node.status != NodeStatus::Down && node.registration.role == Role::Data
        };
        let first = self.state.nodes().filter(here).map(|node| node.registered_at).min()?;
        let end = first.plus_ms(self.state.policy().settle_ms);
        (end > self.time()).then_some(end)
    }
}
