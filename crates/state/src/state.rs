//! The replicated state: private tables, read accessors. Only `apply` changes it, through `evolve`.
//! The large tables are persistent maps: a clone costs microseconds, so readers, the planner and
//! snapshots never block apply.

mod evolve;
mod tables;

use alloc::sync::Arc;
use core::ops::Bound;

use imbl::OrdMap;

use crate::channel::{Channel, Dropped, FormerOwner, Phase};
use crate::digest::{Digest, Sum, Witness};
use crate::epoch::{Revision, Term, Timestamp};
use crate::ids::{ChannelName, CollectionId, MemberId, NodeId, NodeName, RequestId, Text};
use crate::index::{Index, PhaseCounts};
use crate::node::{Node, NodeRef, NodeStatus, Role};
use crate::policy::Policy;

pub(crate) use evolve::keep_former;
pub(crate) use tables::{Scalars, Tables};

/// The leader that acts, as the log knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Leader {
    /// Its Raft term; 0: none has acted yet.
    pub term: Term,
    /// Which member.
    pub member: MemberId,
    /// Log time at which it started.
    pub started_at: Timestamp,
    /// Number of its last counted report of silence.
    pub observed_seq: u64,
}

/// A remembered request (ruling 12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Remembered {
    /// When the client made it.
    pub issued_at: Timestamp,
    /// Revision of its outcome.
    pub revision: Revision,
}

/// Something of which only the time is remembered.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub(crate) enum Mark {
    /// The last decision that moved a channel only to even out load.
    Balanced,
}

/// Why a node may not get a channel (C4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotCandidate {
    /// Down, or stopping.
    NotUp,
    /// Not a data node.
    WrongRole,
    /// Its name is frozen.
    Frozen,
    /// It cools down for this channel.
    CoolingDown {
        /// Log time at which that ends.
        until: Timestamp,
    },
}

/// Everything the group agrees on.
#[derive(Debug, Clone)]
pub struct State {
    scalars: Scalars,
    nodes: OrdMap<NodeId, Arc<Node>>,
    frozen: OrdMap<NodeName, Revision>,
    channels: OrdMap<ChannelName, Arc<Channel>>,
    drops: OrdMap<ChannelName, Arc<Dropped>>,
    requests: OrdMap<RequestId, Remembered>,
    choices: OrdMap<Text, Text>,
    cleaners: OrdMap<NodeName, Revision>,
    marks: OrdMap<Mark, Timestamp>,
    index: Index,
    sum: Sum,
    witness: Witness,
    #[cfg(test)]
    pub(crate) poison: crate::tests::poison::Poison,
}

/// Scalars.
impl State {
    /// Revision of the last accepted command.
    #[must_use]
    pub const fn revision(&self) -> Revision {
        self.scalars.revision
    }

    /// Log time.
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        self.scalars.now
    }

    /// Behaviour version.
    #[must_use]
    pub const fn level(&self) -> u32 {
        self.scalars.level
    }

    /// The leader as the log knows it.
    #[must_use]
    pub const fn leader(&self) -> Leader {
        self.scalars.leader
    }

    /// Replicated settings.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.scalars.policy
    }

    /// Log time of the last event that changed an owner or a phase.
    #[must_use]
    pub const fn last_activity(&self) -> Timestamp {
        self.scalars.last_activity
    }

    /// Log time at which the first session ever was registered.
    #[must_use]
    pub const fn first_registered(&self) -> Option<Timestamp> {
        self.scalars.first_registered
    }

    /// Whether no channel ever had an owner.
    #[must_use]
    pub const fn cold(&self) -> bool {
        self.scalars.first_placed.is_none()
    }

    /// Log time of the last move that was made only to even out load; none before level 2.
    #[must_use]
    pub fn balanced_at(&self) -> Option<Timestamp> {
        self.marks.get(&Mark::Balanced).copied()
    }

    /// Revision at which this cleaner was registered, if it is.
    #[must_use]
    pub fn cleaner(&self, name: &NodeName) -> Option<Revision> {
        self.cleaners.get(name).copied()
    }

    /// All registered cleaners, in name order, each with the revision that registered it.
    pub fn cleaners(&self) -> impl Iterator<Item = (&NodeName, &Revision)> {
        self.cleaners.iter()
    }

    /// Hash over everything decided so far.
    #[must_use]
    pub const fn witness(&self) -> Witness {
        self.witness
    }

    /// Hash over everything as it is now; O(1).
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.sum.with_scalars(&self.scalars)
    }

    /// The same, from all records; O(n).
    #[must_use]
    pub fn recompute_digest(&self) -> Digest {
        self.sum_of_records().with_scalars(&self.scalars)
    }
}

/// Nodes.
impl State {
    /// A session by its id, Down ones included while they are kept.
    #[must_use]
    pub fn node(&self, node: NodeId) -> Option<&Arc<Node>> {
        self.nodes.get(&node)
    }

    /// All sessions, ascending.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = &Arc<Node>> {
        self.nodes.values()
    }

    /// The sessions after this one, ascending; all for `None`.
    pub fn nodes_after(&self, node: Option<NodeId>) -> impl Iterator<Item = &Arc<Node>> {
        let start = node.map_or(Bound::Unbounded, Bound::Excluded);
        self.nodes.range((start, Bound::Unbounded)).map(|(_, node)| node)
    }

    /// Exactly this session, if it is Up or Stopping.
    #[must_use]
    pub fn live(&self, node: NodeRef) -> Option<&Arc<Node>> {
        let found = self.nodes.get(&node.node)?;
        (found.epoch == node.epoch && found.status != NodeStatus::Down).then_some(found)
    }

    /// Accounted silence at which a session may be expired: its own ttl and the grace of the
    /// policy, in milliseconds.
    #[must_use]
    pub const fn expires_after_ms(&self, node: &Node) -> u64 {
        node.ttl_ms.saturating_add(self.policy().expiry_grace_ms)
    }

    /// The live session of this worker.
    #[must_use]
    pub fn node_by_name(&self, name: &NodeName) -> Option<&Arc<Node>> {
        self.nodes.get(self.index.by_name.get(name)?)
    }

    /// Whether this worker gets nothing new and is emptied.
    #[must_use]
    pub fn is_frozen(&self, name: &NodeName) -> bool {
        self.frozen.contains_key(name)
    }

    /// All frozen workers, in name order.
    pub fn frozen_names(&self) -> impl Iterator<Item = &NodeName> {
        self.frozen.keys()
    }

    /// Channels this node owns, in name order.
    pub fn channels_of(&self, node: NodeId) -> impl Iterator<Item = &ChannelName> {
        self.index.by_node.get(&node).into_iter().flat_map(|load| load.channels.iter())
    }

    /// How many channels this node owns, by phase.
    #[must_use]
    pub fn counts_of(&self, node: NodeId) -> PhaseCounts {
        self.index.by_node.get(&node).map(|load| load.counts).unwrap_or_default()
    }
}

/// Channels.
impl State {
    /// A channel by its name.
    #[must_use]
    pub fn channel(&self, name: &ChannelName) -> Option<&Arc<Channel>> {
        self.channels.get(name)
    }

    /// All channels, in name order.
    pub fn channels(&self) -> impl DoubleEndedIterator<Item = &Arc<Channel>> {
        self.channels.values()
    }

    /// The channels after this name, in name order; all for `None`.
    pub fn channels_after(
        &self,
        name: Option<&ChannelName>,
    ) -> impl Iterator<Item = &Arc<Channel>> {
        let start = name.map_or(Bound::Unbounded, |name| Bound::Excluded(name.clone()));
        self.channels.range((start, Bound::Unbounded)).map(|(_, channel)| channel)
    }

    /// How many channels are known.
    #[must_use]
    pub fn channel_count(&self) -> usize {
        self.channels.len()
    }

    /// Channels of this collection, in name order.
    pub fn channels_in(&self, collection: CollectionId) -> impl Iterator<Item = &ChannelName> {
        self.index.by_collection.get(&collection).into_iter().flat_map(|names| names.iter())
    }

    /// What is remembered of a removed channel.
    #[must_use]
    pub fn dropped(&self, name: &ChannelName) -> Option<&Arc<Dropped>> {
        self.drops.get(name)
    }

    /// All removed channels that are remembered, in name order.
    pub fn drops(&self) -> impl Iterator<Item = (&ChannelName, &Arc<Dropped>)> {
        self.drops.iter()
    }

    /// Channels without owner, in name order.
    pub fn buffered(&self) -> impl Iterator<Item = &ChannelName> {
        self.index.buffered.iter()
    }

    /// How many channels are in each phase.
    #[must_use]
    pub const fn counts(&self) -> PhaseCounts {
        self.index.counts
    }

    /// Channels that are being released because of drain or balance.
    #[must_use]
    pub const fn moving(&self) -> u32 {
        self.index.moving
    }

    /// Former owners that wait for `EffectDone`, of known and removed channels, in name order.
    pub fn effects(&self) -> impl Iterator<Item = (&ChannelName, FormerOwner)> {
        self.index
            .uncleaned
            .iter()
            .flat_map(|name| self.former_owners(name).iter().map(move |former| (name, *former)))
    }

    /// Former owners of this name, known or removed; ascending.
    #[must_use]
    pub fn former_owners(&self, name: &ChannelName) -> &[FormerOwner] {
        if let Some(channel) = self.channels.get(name) {
            return &channel.former_owners;
        }
        self.drops.get(name).map_or(&[], |dropped| &dropped.former_owners)
    }

    /// Whether the node may get the channel at this log time.
    ///
    /// # Errors
    /// The first of the conditions that does not hold.
    pub fn is_candidate(
        &self,
        channel: &Channel,
        node: &Node,
        now: Timestamp,
    ) -> Result<(), NotCandidate> {
        if node.status != NodeStatus::Up {
            return Err(NotCandidate::NotUp);
        }
        if node.registration.role != Role::Data {
            return Err(NotCandidate::WrongRole);
        }
        if self.is_frozen(&node.registration.name) {
            return Err(NotCandidate::Frozen);
        }
        match channel.cooldowns.get(&node.node) {
            Some(until) if now < *until => Err(NotCandidate::CoolingDown { until: *until }),
            _ => Ok(()),
        }
    }

    /// When the running operation of a channel is given up, leader grace included; none without
    /// one.
    #[must_use]
    pub fn deadline(&self, channel: &Channel) -> Option<Timestamp> {
        let policy = self.policy();
        let timeout_ends = match channel.phase {
            Phase::Buffered { .. } | Phase::Watched { .. } => return None,
            Phase::ToWatch { started_at, .. } => started_at.plus_ms(policy.watch_timeout_ms),
            Phase::ToRelease { started_at, .. } => started_at.plus_ms(policy.release_timeout_ms),
        };
        Some(timeout_ends.max(self.grace_until()))
    }
}

/// What only this crate reads.
impl State {
    /// No operation is given up before that: a new leader has to hear of it first.
    pub(crate) const fn grace_until(&self) -> Timestamp {
        self.leader().started_at.plus_ms(self.policy().leader_grace_ms)
    }

    pub(crate) const fn index(&self) -> &Index {
        &self.index
    }

    pub(crate) const fn scalars(&self) -> &Scalars {
        &self.scalars
    }

    pub(crate) fn remembered(&self, request_id: &RequestId) -> Option<Remembered> {
        self.requests.get(request_id).copied()
    }

    /// Remembered requests, by id (ruling 12).
    pub fn requests(&self) -> impl Iterator<Item = (&RequestId, &Remembered)> {
        self.requests.iter()
    }

    /// The name set for a choice; none: its default holds.
    pub(crate) fn chosen(&self, setting: &str) -> Option<&Text> {
        self.choices.get(&Text::cut(setting))
    }

    pub(crate) fn choice_records(&self) -> impl Iterator<Item = (&Text, &Text)> {
        self.choices.iter()
    }

    pub(crate) fn mark_records(&self) -> impl Iterator<Item = (&Mark, &Timestamp)> {
        self.marks.iter()
    }

    pub(crate) fn node_records(&self) -> impl Iterator<Item = (&NodeId, &Arc<Node>)> {
        self.nodes.iter()
    }

    pub(crate) fn channel_records(&self) -> impl Iterator<Item = (&ChannelName, &Arc<Channel>)> {
        self.channels.iter()
    }

    pub(crate) fn frozen(&self) -> impl Iterator<Item = (&NodeName, &Revision)> {
        self.frozen.iter()
    }

    pub(crate) fn frozen_count(&self) -> usize {
        self.frozen.len()
    }

    pub(crate) fn node_count(&self) -> usize {
        self.nodes.len()
    }
}
