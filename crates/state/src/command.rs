//! Commands: what may stand in the log. Observations, intents, decisions, housekeeping (ADR 0001).
//! Variants are only ever appended (D8, D9). Handlers live in the file of their concern.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::channel::{AckResult, ChannelSpec};
use crate::decision::Decision;
use crate::epoch::{ChannelTerm, Op, Term, Timestamp};
use crate::ids::{ChannelName, MemberId, NodeName, RequestId, Text};
use crate::node::{NodeRef, Registration};

/// Whom a node says it is when it speaks of a channel: node, session, term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerClaim {
    /// Which node and session.
    pub node: NodeRef,
    /// Which term of the channel.
    pub term: ChannelTerm,
}

/// The five things an acknowledgement names, and what it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeAck {
    /// Who, and under which session.
    pub node: NodeRef,
    /// Which channel.
    pub channel: ChannelName,
    /// Which term.
    pub term: ChannelTerm,
    /// Which directive.
    pub op: Op,
    /// What happened.
    pub result: AckResult,
    /// In the words of the node.
    pub reason: Text,
}

/// What a command asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// A leader of this Raft term starts to act.
    LeaderStart {
        /// Its Raft term.
        term: Term,
        /// Which member.
        member: MemberId,
    },
    /// A worker asks for a session.
    RegisterSession(Registration),
    /// Silence of sessions, as the leader measured it since its last report (ruling 6).
    SessionsObserved {
        /// Term of the leader that measured.
        leader_term: Term,
        /// Rises with each report of this leader, so that a retry never counts twice.
        seq: u64,
        /// Sessions that were silent, with the milliseconds to add.
        silent: Vec<(NodeRef, u64)>,
        /// Sessions that came back.
        renewed: Vec<NodeRef>,
    },
    /// A node is to be emptied: it will stop, or an operator drains it.
    SetStopping {
        /// Which session.
        node: NodeRef,
    },
    /// A node is no longer to be emptied.
    UnsetStopping {
        /// Which session.
        node: NodeRef,
    },
    /// A session ends now.
    Revoke {
        /// Which session.
        node: NodeRef,
    },
    /// A session was silent for ttl and grace.
    ExpireSession {
        /// Which session.
        node: NodeRef,
        /// Term of the leader that judged.
        leader_term: Term,
    },
    /// Channels are announced, all or none.
    WatchChannels(Vec<ChannelSpec>),
    /// A channel is to be dropped: released, then removed.
    MarkDropped {
        /// Which channel.
        channel: ChannelName,
        /// Set when an owner asks; none: an operator.
        claim: Option<OwnerClaim>,
    },
    /// A channel is removed now, whatever its phase.
    RemoveChannel {
        /// Which channel.
        channel: ChannelName,
    },
    /// A channel is taken from its owner.
    Release {
        /// Which channel.
        channel: ChannelName,
        /// The term the caller means.
        term: ChannelTerm,
    },
    /// A node acknowledges a directive.
    NodeAck(NodeAck),
    /// A directive was not acknowledged in time.
    OpTimeout {
        /// Which channel.
        channel: ChannelName,
        /// Which term.
        term: ChannelTerm,
        /// Which directive.
        op: Op,
    },
    /// A watch makes progress.
    ExtendDeadline {
        /// Which channel.
        channel: ChannelName,
        /// Which term.
        term: ChannelTerm,
        /// Which directive.
        op: Op,
        /// As reported by the node; not above the last one is no progress and no change.
        progress: u64,
    },
    /// An owner records positions.
    CommitMeta {
        /// Which channel.
        channel: ChannelName,
        /// Whom the caller says it is.
        claim: OwnerClaim,
        /// Opaque; at most [`crate::limits::POSITIONS_BYTES_MAX`] bytes.
        #[serde(with = "crate::octets")]
        positions: Vec<u8>,
    },
    /// The traces of a former owner were cleaned up.
    EffectDone {
        /// Which channel.
        channel: ChannelName,
        /// The former owner and its term.
        former: OwnerClaim,
    },
    /// The planner chose.
    Place(Decision),
    /// A worker name gets nothing new and is emptied.
    Freeze {
        /// Which worker.
        name: NodeName,
    },
    /// Ends a freeze.
    Thaw {
        /// Which worker.
        name: NodeName,
    },
    /// Settings change, all or none; each key is a field of [`crate::policy::Policy`].
    SetPolicy {
        /// Setting and new value, as text.
        values: BTreeMap<Text, Text>,
    },
    /// Raises the behaviour version.
    SetLevel {
        /// Must be above the present one and known to this binary.
        level: u32,
    },
    /// Moves the clock.
    Tick,
    /// A process that removes the traces of former owners is announced; level 2.
    RegisterCleaner {
        /// Its name.
        name: NodeName,
    },
    /// A cleaner is taken away; without any, traces count as removed at once.
    DeregisterCleaner {
        /// Its name.
        name: NodeName,
    },
}

/// The request id of a client and when it was made (ruling 12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// Which request.
    pub request_id: RequestId,
    /// Log time at which the client made it.
    pub issued_at: Timestamp,
}

/// A command with who asked for it. One log entry holds a batch of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Who asked, for the history.
    pub actor: Text,
    /// Set by clients that may retry.
    pub retry: Option<Retry>,
    /// What.
    pub command: Command,
}
