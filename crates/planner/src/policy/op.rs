//! What a policy answers: operations on pairs of owner and channels, in the order of C7.
//! What becomes of them in a decision is for the stages to say.

use alloc::vec::Vec;
use core::fmt;

use state::ids::NodeId;

/// Who holds a channel. The buffer comes first in every order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// Nobody: the channel waits.
    Buffer,
    /// This node.
    Node(NodeId),
}

/// What is done to the channels of an operation. In the order of results (C7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OpKind {
    /// They are no longer this owner's, at once.
    Delete,
    /// They become this owner's.
    Watch,
    /// This owner is asked to let them go, and they have no owner after that.
    Release,
}

/// One operation: at most one for each kind and owner (C8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Op<C> {
    /// What is done.
    pub kind: OpKind,
    /// Whose channels they are, or become.
    pub owner: Owner,
    /// Ascending by name, never empty.
    pub channels: Vec<C>,
}

/// Collects single steps and makes operations of them.
#[derive(Debug)]
pub(crate) struct Ops<C>(Vec<(OpKind, Owner, C)>);

impl<C: Copy + Ord> Ops<C> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn delete(&mut self, owner: Owner, channels: &[C]) {
        self.add(OpKind::Delete, owner, channels);
    }

    pub(crate) fn watch(&mut self, owner: Owner, channels: &[C]) {
        self.add(OpKind::Watch, owner, channels);
    }

    pub(crate) fn release(&mut self, node: NodeId, channels: &[C]) {
        self.add(OpKind::Release, Owner::Node(node), channels);
    }

    fn add(&mut self, kind: OpKind, owner: Owner, channels: &[C]) {
        self.0.extend(channels.iter().map(|channel| (kind, owner, *channel)));
    }

    /// Deals the channels to the targets in turn, in the order of both.
    pub(crate) fn round_robin(&mut self, channels: &[C], targets: &[NodeId]) {
        for (channel, target) in channels.iter().zip(targets.iter().cycle()) {
            self.0.push((OpKind::Watch, Owner::Node(*target), *channel));
        }
    }

    /// Ordered and merged (C7, C8).
    pub(crate) fn finish(mut self) -> Vec<Op<C>> {
        self.0.sort_unstable();
        self.0.dedup();
        let chunks = self.0.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1));
        let op = |chunk: &[(OpKind, Owner, C)]| {
            let (kind, owner, _) = *chunk.first()?;
            let channels = chunk.iter().map(|(_, _, channel)| *channel).collect();
            Some(Op { kind, owner, channels })
        };
        chunks.filter_map(op).collect()
    }
}

/// Merges and orders operations that were written down in any other way (C6, C7, C8).
#[must_use]
pub fn canonical<C: Copy + Ord>(ops: &[Op<C>]) -> Vec<Op<C>> {
    let mut all = Ops::new();
    for op in ops {
        all.add(op.kind, op.owner, &op.channels);
    }
    all.finish()
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Buffer => f.write_str("buffer"),
            Self::Node(node) => node.fmt(f),
        }
    }
}

impl fmt::Display for OpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Delete => "delete",
            Self::Watch => "watch",
            Self::Release => "release",
        })
    }
}
