//! The replicated state: private tables, read accessors. `apply` and `evolve` are the only ways to change it.
//! The large tables are persistent maps: a clone costs microseconds, so readers, the planner and snapshots
//! never block apply.

use alloc::sync::Arc;

use imbl::OrdMap;

use crate::channel::{Channel, Dropped};
use crate::digest::{Digest, Witness};
use crate::epoch::{Revision, Term, Timestamp};
use crate::ids::{ChannelName, MemberId, NodeId, NodeName, RequestId};
use crate::index::Index;
use crate::node::Node;
use crate::policy::Policy;

/// The leader that acts, as the log knows it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Leader {
    /// Its Raft term; 0: none has acted yet.
    pub term: Term,
    /// Which member.
    pub member: u64,
    /// Log time at which it started.
    pub started_at: Timestamp,
    /// Number of its last counted report of silence.
    pub observed_seq: u64,
}

/// A remembered request (design.md ruling 12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Remembered {
    /// When the client made it.
    pub issued_at: Timestamp,
    /// Revision of its outcome.
    pub revision: Revision,
}

/// Everything the group agrees on.
#[derive(Debug, Clone)]
pub struct State {
    pub(crate) revision: Revision,
    pub(crate) now: Timestamp,
    pub(crate) level: u32,
    pub(crate) leader: Leader,
    pub(crate) policy: Policy,
    pub(crate) next_node: u64,
    pub(crate) last_activity: Timestamp,
    pub(crate) first_registered: Option<Timestamp>,
    pub(crate) nodes: OrdMap<NodeId, Arc<Node>>,
    pub(crate) frozen: OrdMap<NodeName, Revision>,
    pub(crate) channels: OrdMap<ChannelName, Arc<Channel>>,
    pub(crate) drops: OrdMap<ChannelName, Arc<Dropped>>,
    pub(crate) requests: OrdMap<RequestId, Remembered>,
    pub(crate) index: Index,
    pub(crate) witness: Witness,
    pub(crate) digest: Digest,
}

impl State {
    /// An empty state of this generation.
    #[must_use]
    pub fn new(generation: u16) -> Self {
        todo!()
    }

    /// Accepted commands.
    #[must_use]
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// Log time.
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// The leader as the log knows it.
    #[must_use]
    pub const fn leader(&self) -> Leader {
        self.leader
    }
}
