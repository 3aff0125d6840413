//! A worker node: one session of one worker. The record; handlers of session commands are in
//! `session`.

use alloc::collections::BTreeMap;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::epoch::{NodeEpoch, Timestamp};
use crate::ids::{Address, Incarnation, NodeId, NodeName, Text};

/// What a worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Role {
    /// Consumes data channels.
    Data,
    /// Serves segments and query channels.
    Query,
}

/// Where a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum NodeStatus {
    /// Renewed, or not silent for long enough to be expired.
    Up,
    /// Up, gets nothing new, and is emptied.
    Stopping,
    /// Over. Kept only while a channel names it as a former owner.
    Down,
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DownCause {
    /// Silent for ttl and grace.
    Expired,
    /// Ended on request of the worker or an operator.
    Revoked,
    /// Another incarnation registered under its name or address.
    Replaced,
}

/// What a worker says of itself when it registers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// Stable and unique.
    pub name: NodeName,
    /// Where others reach it.
    pub address: Address,
    /// What it does.
    pub role: Role,
    /// Version of its software, as text.
    pub version: Text,
    /// At most [`crate::limits::LABELS_MAX`].
    pub labels: BTreeMap<Text, Text>,
    /// New for each session, kept over retries.
    pub incarnation: Incarnation,
}

/// One session of one worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Never reused.
    pub node: NodeId,
    /// Revision that registered it.
    pub epoch: NodeEpoch,
    /// As registered.
    pub registration: Registration,
    /// Up, Stopping or Down.
    pub status: NodeStatus,
    /// Log time of registration.
    pub registered_at: Timestamp,
    /// Ttl granted to this session, in milliseconds: the policy's at registration. Later changes of
    /// the policy do not touch it, since the node fences itself by what it was told.
    pub ttl_ms: u64,
    /// Silence accounted in the log (ruling 6), in milliseconds.
    pub silent_ms: u64,
}

/// A node and the session that is meant: the guard against a later session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeRef {
    /// Which node.
    pub node: NodeId,
    /// Which session.
    pub epoch: NodeEpoch,
}

impl fmt::Display for NodeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.node, self.epoch)
    }
}

impl Node {
    /// The node with its epoch.
    #[must_use]
    pub fn node_ref(&self) -> NodeRef {
        NodeRef { node: self.node, epoch: self.epoch }
    }
}
