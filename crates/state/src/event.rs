//! Events: what happened, in past tense. Only `evolve` turns one into a change of state. They are
//! recomputed on replay, hashed into the witness, shown to watchers. Variants are only appended.

use alloc::sync::Arc;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::channel::{ChannelSpec, FormerOwner, LastDone, PlacedBy, ReleaseCause, UnassignCause};
use crate::epoch::{ChannelTerm, Op, Revision, Term, Timestamp};
use crate::ids::{ChannelName, MemberId, NodeId, NodeName, RequestId, Text};
use crate::node::{DownCause, NodeRef, Registration};
use crate::policy::Policy;

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// A leader took over.
    LeaderStarted {
        /// Its Raft term.
        term: Term,
        /// Which member.
        member: MemberId,
    },
    /// A session began.
    NodeCameUp {
        /// Node and session.
        node: NodeRef,
        /// As registered.
        registration: Registration,
    },
    /// A node is to be emptied.
    NodeBeganStopping {
        /// Which session.
        node: NodeRef,
    },
    /// A node is in full service again.
    NodeStoppedStopping {
        /// Which session.
        node: NodeRef,
    },
    /// A session ended.
    NodeWentDown {
        /// Which session.
        node: NodeRef,
        /// Why.
        cause: DownCause,
    },
    /// The last channel that named a Down node as former owner was cleaned up.
    NodeForgotten {
        /// Which session.
        node: NodeRef,
    },
    /// The accounted silence of a session changed.
    SessionSilenceChanged {
        /// Which session.
        node: NodeRef,
        /// New value in milliseconds.
        silent_ms: u64,
    },
    /// A report of silence was counted.
    SilenceReported {
        /// Its number.
        seq: u64,
    },
    /// A worker name was frozen.
    NodeFroze {
        /// Which.
        name: NodeName,
    },
    /// A worker name was thawed.
    NodeThawed {
        /// Which.
        name: NodeName,
    },
    /// A channel is known from now on.
    ChannelAdded {
        /// Its content.
        spec: Arc<ChannelSpec>,
        /// Its first term.
        term: ChannelTerm,
        /// Former owners taken over from an earlier channel of this name.
        former_owners: Vec<FormerOwner>,
    },
    /// A channel got an owner.
    ChannelPlaced {
        /// Which channel.
        channel: ChannelName,
        /// The owner.
        to: NodeRef,
        /// The new term.
        term: ChannelTerm,
        /// The directive.
        op: Op,
        /// The decision.
        placed_by: PlacedBy,
    },
    /// The owner watches.
    WatchCompleted {
        /// Which channel.
        channel: ChannelName,
        /// The acknowledgement.
        done: LastDone,
    },
    /// The deadline of a watch was moved by progress.
    WatchDeadlineExtended {
        /// Which channel.
        channel: ChannelName,
        /// The progress.
        progress: u64,
    },
    /// A watch failed: the node cools down for the channel.
    WatchFailed {
        /// Which channel.
        channel: ChannelName,
        /// Where.
        node: NodeRef,
        /// Failed watches in a row.
        attempts: u32,
        /// The node may get it again from then on.
        cooldown_until: Timestamp,
        /// In the words of the node, or what was missed.
        reason: Text,
        /// The acknowledgement that said so; none after a timeout.
        done: Option<LastDone>,
    },
    /// The owner is told to release.
    ReleaseStarted {
        /// Which channel.
        channel: ChannelName,
        /// The directive.
        op: Op,
        /// Why.
        cause: ReleaseCause,
        /// Where the planner wants it next.
        planned: Option<NodeRef>,
        /// The acknowledgement that led to it, if one did and no other event carries it.
        done: Option<LastDone>,
    },
    /// A channel lost its owner.
    ChannelUnassigned {
        /// Which channel.
        channel: ChannelName,
        /// Who owned it.
        from: NodeRef,
        /// The new term.
        term: ChannelTerm,
        /// Why.
        cause: UnassignCause,
        /// Whether `from` is kept as a former owner until it is cleaned up.
        former: bool,
        /// Where it should go next, if anywhere.
        planned: Option<NodeRef>,
        /// Set when `from` may not get it again before a time: it did not release as told.
        cooldown_until: Option<Timestamp>,
        /// The acknowledgement that said so, if one did.
        done: Option<LastDone>,
    },
    /// A channel is to be removed once released.
    ChannelMarkedDropped {
        /// Which channel.
        channel: ChannelName,
    },
    /// A channel is gone.
    ChannelRemoved {
        /// Which channel.
        channel: ChannelName,
        /// Its last term.
        last_term: ChannelTerm,
        /// Former owners still to be cleaned up.
        former_owners: Vec<FormerOwner>,
    },
    /// The traces of a former owner were cleaned up.
    FormerOwnerCleared {
        /// Which channel, known or removed.
        channel: ChannelName,
        /// Who.
        former: FormerOwner,
    },
    /// An owner recorded positions.
    MetaCommitted {
        /// Which channel.
        channel: ChannelName,
        /// Under which term.
        term: ChannelTerm,
        /// Opaque.
        #[serde(with = "crate::octets")]
        positions: Vec<u8>,
    },
    /// Settings changed.
    PolicyChanged {
        /// All of them, as they are now.
        policy: Policy,
    },
    /// The behaviour version rose.
    LevelRaised {
        /// Now.
        level: u32,
    },
    /// The outcome of a request is remembered.
    RequestRemembered {
        /// Which.
        request_id: RequestId,
        /// When the client made it.
        issued_at: Timestamp,
    },
    /// A cool-down of a node that left was removed with it.
    CooldownCleared {
        /// Which channel.
        channel: ChannelName,
        /// Which node.
        node: NodeId,
    },
    /// Another policy was chosen.
    ChoiceChanged {
        /// Which setting.
        setting: Text,
        /// The name of the policy that holds now.
        value: Text,
    },
    /// A cleaner is known from now on.
    CleanerRegistered {
        /// Its name.
        name: NodeName,
    },
    /// A cleaner is gone.
    CleanerDeregistered {
        /// Its name.
        name: NodeName,
    },
}

/// The events of one accepted command, with what caused them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRecord {
    /// Revision of the command.
    pub revision: Revision,
    /// Log time.
    pub at: Timestamp,
    /// Raft term of the entry.
    pub term: Term,
    /// The command in words.
    pub caused_by: Text,
    /// Who asked.
    pub actor: Text,
    /// The request, if the client named it.
    pub request_id: Option<RequestId>,
    /// At least one.
    pub events: Vec<Event>,
}
