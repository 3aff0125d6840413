//! A decision of the planner as data: moves, each with the guard it was computed under.
//! The handler that judges it (fences F1 to F6) is `place`.

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::channel::PhaseKind;
use crate::epoch::{ChannelTerm, Revision, Term};
use crate::ids::ChannelName;
use crate::node::NodeRef;

/// What a decision was computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Basis {
    /// Raft term of the leader that planned (F1).
    pub term: Term,
    /// Revision of the state it planned on (F2).
    pub revision: Revision,
}

/// Why the planner wants a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Cause {
    /// The channel had no owner.
    Unassigned,
    /// It goes where an earlier release wanted it.
    Planned,
    /// Only the node it was released from can take it.
    GivenBack,
    /// Its node is stopping or frozen.
    Drain,
    /// Load is uneven.
    Balance,
}

/// What is to happen with the channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Action {
    /// A buffered channel gets this owner.
    Assign {
        /// Target with its session (F4).
        to: NodeRef,
    },
    /// A watched channel is released, to go to this node next.
    Move {
        /// Present owner.
        from: NodeRef,
        /// Target with its session (F4).
        to: NodeRef,
    },
    /// A watched channel is released.
    Release {
        /// Present owner.
        from: NodeRef,
    },
}

/// What must still hold for a move (F3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Guard {
    /// Term of the channel.
    pub term: ChannelTerm,
    /// Phase of the channel.
    pub phase: PhaseKind,
}

/// One choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// Which channel.
    pub channel: ChannelName,
    /// Under which condition.
    pub guard: Guard,
    /// What.
    pub action: Action,
    /// Why.
    pub cause: Cause,
}

/// What the planner chose in one round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// What it was computed from.
    pub basis: Basis,
    /// At most [`crate::limits::MOVES_MAX`].
    pub moves: Vec<Move>,
    /// All or none.
    pub atomic: bool,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unassigned => "unassigned",
            Self::Planned => "planned",
            Self::GivenBack => "given_back",
            Self::Drain => "drain",
            Self::Balance => "balance",
        })
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.channel, self.guard.term, self.action)
    }
}
