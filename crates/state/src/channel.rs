//! A data channel: its content, its phase, its owner. The record; handlers are in `watch`, `ack`,
//! `release`. Phases carry exactly what they need, so that an owner without a deadline or a
//! buffered channel with one cannot be written down (I-1, I-6).

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::epoch::{ChannelTerm, Op, Revision, Timestamp};
use crate::ids::{ChannelName, CollectionId, NodeId, Text};
use crate::node::NodeRef;

/// What a channel is, as announced. Equal content announced again is no change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelSpec {
    /// Its name.
    pub name: ChannelName,
    /// The collection it feeds.
    pub collection: CollectionId,
    /// The physical channel it is part of.
    pub pchannel: Text,
    /// Opaque start positions; at most [`crate::limits::POSITIONS_BYTES_MAX`] bytes.
    #[serde(with = "crate::octets")]
    pub positions: Vec<u8>,
    /// Reference to a schema kept elsewhere.
    pub schema_ref: Text,
}

/// Why a release was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ReleaseCause {
    /// An operator asked.
    Requested,
    /// The watch failed and something may still run.
    WatchFailed,
    /// The watch was not acknowledged in time.
    WatchTimeout,
    /// The owner runs another term.
    Conflict,
    /// The planner evens out load.
    Balance,
    /// The planner empties a node.
    Drain,
    /// The channel is dropped.
    Drop,
}

/// Why a channel lost its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum UnassignCause {
    /// The owner released it.
    Released,
    /// The owner failed to release it.
    ReleaseFailed,
    /// The owner did not say in time that it released it.
    ReleaseTimeout,
    /// The owner said that nothing of it runs any more.
    Stopped,
    /// The owner's session ended.
    NodeDown,
}

/// Where a channel stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// No owner. `planned` is where a move wanted it to go.
    Buffered {
        /// Taken if it is still a candidate.
        planned: Option<NodeRef>,
    },
    /// The owner is told to watch and has not acknowledged.
    ToWatch {
        /// Who.
        owner: NodeRef,
        /// Which directive.
        op: Op,
        /// Log time from which the deadline runs: placement or last progress.
        started_at: Timestamp,
        /// Last progress that extended the deadline.
        progress: u64,
    },
    /// The owner consumes it.
    Watched {
        /// Who.
        owner: NodeRef,
        /// The directive it acknowledged.
        op: Op,
    },
    /// The owner is told to release and has not acknowledged.
    ToRelease {
        /// Who.
        owner: NodeRef,
        /// Which directive.
        op: Op,
        /// Log time from which the deadline runs.
        started_at: Timestamp,
        /// Why.
        cause: ReleaseCause,
        /// Where the planner wants it next.
        planned: Option<NodeRef>,
        /// Removed once released (I-5).
        dropping: bool,
    },
}

/// The four phases without their content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PhaseKind {
    /// See [`Phase::Buffered`].
    Buffered,
    /// See [`Phase::ToWatch`].
    ToWatch,
    /// See [`Phase::Watched`].
    Watched,
    /// See [`Phase::ToRelease`].
    ToRelease,
}

impl Phase {
    /// Which of the four.
    #[must_use]
    pub const fn kind(&self) -> PhaseKind {
        match self {
            Self::Buffered { .. } => PhaseKind::Buffered,
            Self::ToWatch { .. } => PhaseKind::ToWatch,
            Self::Watched { .. } => PhaseKind::Watched,
            Self::ToRelease { .. } => PhaseKind::ToRelease,
        }
    }

    /// The owner; none while buffered.
    #[must_use]
    pub const fn owner(&self) -> Option<NodeRef> {
        match self {
            Self::Buffered { .. } => None,
            Self::ToWatch { owner, .. }
            | Self::Watched { owner, .. }
            | Self::ToRelease { owner, .. } => Some(*owner),
        }
    }

    /// The directive in force; none while buffered.
    #[must_use]
    pub const fn op(&self) -> Option<Op> {
        match self {
            Self::Buffered { .. } => None,
            Self::ToWatch { op, .. } | Self::Watched { op, .. } | Self::ToRelease { op, .. } => {
                Some(*op)
            }
        }
    }
}

/// A node that owned the channel and whose traces are not yet cleaned up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FormerOwner {
    /// Who.
    pub node: NodeRef,
    /// Under which term.
    pub term: ChannelTerm,
}

/// What a node says of a directive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AckResult {
    /// Done.
    Ok,
    /// Failed, and nothing of it runs any more (N-5).
    FailedStopped,
    /// Failed, and something may still run.
    Failed,
    /// Another term of the channel runs there.
    Conflict,
}

/// The last acknowledgement that had an effect, so that its repetition is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastDone {
    /// Who acknowledged.
    pub node: NodeRef,
    /// The term it named.
    pub term: ChannelTerm,
    /// The directive it named.
    pub op: Op,
    /// What it said.
    pub result: AckResult,
}

/// The decision that gave the channel its owner (ruling 16).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedBy {
    /// Revision of the Place.
    pub revision: Revision,
    /// Revision of the state it was computed from.
    pub basis: Revision,
    /// The planner's reason.
    pub cause: crate::decision::Cause,
}

/// Positions as last committed by an owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Committed {
    /// Opaque.
    #[serde(with = "crate::octets")]
    pub positions: Vec<u8>,
    /// Revision of the commit.
    pub revision: Revision,
    /// Term it was made under.
    pub term: ChannelTerm,
}

/// One data channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    /// As announced.
    pub spec: Arc<ChannelSpec>,
    /// Revision that announced it.
    pub added: Revision,
    /// Phase with owner, directive, deadline.
    pub phase: Phase,
    /// Rises with every change of owner.
    pub term: ChannelTerm,
    /// Watches that failed since one last succeeded.
    pub attempts: u32,
    /// What the last failed operation said; empty: none failed.
    pub last_failure: Text,
    /// Nodes that may not get it before a time.
    pub cooldowns: BTreeMap<NodeId, Timestamp>,
    /// The node that last released it: taken only if it is the only candidate.
    pub avoid: Option<NodeId>,
    /// Ascending.
    pub former_owners: Vec<FormerOwner>,
    /// Log time of the last placement.
    pub placed_at: Timestamp,
    /// The decision that placed it last.
    pub placed_by: Option<PlacedBy>,
    /// The last acknowledgement with an effect.
    pub last_done: Option<LastDone>,
    /// Positions as last committed.
    pub committed: Option<Arc<Committed>>,
}

/// A removed channel, remembered to answer "dropped" instead of "unknown".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// Revision that removed it.
    pub removed: Revision,
    /// Its last term.
    pub last_term: ChannelTerm,
    /// Former owners not yet cleaned up; taken over if the name is announced again.
    pub former_owners: Vec<FormerOwner>,
}

impl fmt::Display for PhaseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Buffered => "Buffered",
            Self::ToWatch => "ToWatch",
            Self::Watched => "Watched",
            Self::ToRelease => "ToRelease",
        })
    }
}

impl fmt::Display for FormerOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.node, self.term)
    }
}

impl Channel {
    /// Whether it is removed once its owner has released it.
    #[must_use]
    pub const fn dropping(&self) -> bool {
        matches!(self.phase, Phase::ToRelease { dropping: true, .. })
    }

    /// The positions a new owner starts from: as last committed, else as announced.
    #[must_use]
    pub fn positions(&self) -> &[u8] {
        self.committed.as_ref().map_or(&self.spec.positions, |committed| &committed.positions)
    }
}
