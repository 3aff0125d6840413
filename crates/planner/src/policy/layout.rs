//! Who holds what: the only thing most policies look at. Leaves out what a policy must not count:
//! whoever builds it lists candidates only (C4) and no channel that is leaving (C12).

use alloc::vec::Vec;
use core::cmp::Reverse;

use state::ids::{ChannelName, NodeId};

use crate::policy::op::Owner;

/// A channel as policies see it: something cheap to copy, ordered as its text is bytewise.
pub trait Name: Copy + Ord {
    /// The name of the channel.
    fn text(&self) -> &str;
}

impl Name for &str {
    fn text(&self) -> &str {
        self
    }
}

impl Name for &ChannelName {
    fn text(&self) -> &str {
        self.as_str()
    }
}

/// One node and its channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding<C> {
    node: NodeId,
    channels: Vec<C>,
}

/// All nodes with their channels, and the channels that have no node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout<C> {
    nodes: Vec<Holding<C>>,
    buffer: Vec<C>,
}

impl<C: Name> Holding<C> {
    /// The channels in any order; repeated ones count once (C1).
    #[must_use]
    pub fn new(node: NodeId, channels: Vec<C>) -> Self {
        Self { node, channels: set(channels) }
    }

    /// Whose channels these are.
    #[must_use]
    pub const fn node(&self) -> NodeId {
        self.node
    }

    /// The channels, ascending by name.
    #[must_use]
    pub fn channels(&self) -> &[C] {
        &self.channels
    }

    /// How many channels the node has.
    #[must_use]
    pub fn count(&self) -> usize {
        self.channels.len()
    }
}

impl<C: Name> Layout<C> {
    /// Nodes in any order, each at most once; the buffer in any order.
    #[must_use]
    pub fn new(mut nodes: Vec<Holding<C>>, buffer: Vec<C>) -> Self {
        nodes.sort_by_key(Holding::node);
        nodes.dedup_by_key(|holding| holding.node);
        Self { nodes, buffer: set(buffer) }
    }

    /// The nodes, ascending by id.
    #[must_use]
    pub fn nodes(&self) -> &[Holding<C>] {
        &self.nodes
    }

    /// Channels without a node, ascending by name.
    #[must_use]
    pub fn buffer(&self) -> &[C] {
        &self.buffer
    }

    /// What this node has; none: it is not in the layout.
    #[must_use]
    pub fn holding(&self, node: NodeId) -> Option<&Holding<C>> {
        let at = self.nodes.binary_search_by_key(&node, Holding::node).ok()?;
        self.nodes.get(at)
    }

    /// Channels that have a node.
    #[must_use]
    pub fn total(&self) -> usize {
        self.nodes.iter().map(Holding::count).sum()
    }

    /// The owner of the buffer and its channels, then each node with its own.
    pub fn owners(&self) -> impl Iterator<Item = (Owner, &[C])> {
        let nodes = self.nodes.iter().map(|held| (Owner::Node(held.node), held.channels()));
        core::iter::once((Owner::Buffer, self.buffer())).chain(nodes)
    }

    /// The nodes that pass, ascending by (count, id) (C2).
    pub(crate) fn emptiest(&self, keep: impl Fn(NodeId) -> bool) -> Vec<&Holding<C>> {
        let mut nodes: Vec<_> = self.nodes.iter().filter(|held| keep(held.node)).collect();
        nodes.sort_by_key(|held| (held.count(), held.node));
        nodes
    }

    /// The nodes that pass, descending by count, ascending by id among equals (C2).
    pub(crate) fn fullest(&self, keep: impl Fn(NodeId) -> bool) -> Vec<&Holding<C>> {
        let mut nodes: Vec<_> = self.nodes.iter().filter(|held| keep(held.node)).collect();
        nodes.sort_by_key(|held| (Reverse(held.count()), held.node));
        nodes
    }

    /// The given channels that nobody has, the buffer included, ascending (C5).
    #[must_use]
    pub fn unknown(&self, given: &[C]) -> Vec<C> {
        let given = set(given.to_vec());
        let mut known: Vec<bool> = given.iter().map(|_| false).collect();
        for channel in self.owners().flat_map(|(_, channels)| channels) {
            let at = given.binary_search(channel).ok();
            if let Some(mark) = at.and_then(|at| known.get_mut(at)) {
                *mark = true;
            }
        }
        given.into_iter().zip(known).filter(|(_, known)| !known).map(|(name, _)| name).collect()
    }
}

/// Ascending, each once.
pub(crate) fn set<C: Ord>(mut channels: Vec<C>) -> Vec<C> {
    channels.sort_unstable();
    channels.dedup();
    channels
}
