//! Assign policies (11.4, 11.7 A): new channels get a node. Called when channels wait.

use alloc::vec::Vec;

use state::ids::NodeId;

use crate::policy::by_count;
use crate::policy::layout::{Holding, Layout, Name};
use crate::policy::named;
use crate::policy::op::{Op, Ops, Owner};
use crate::policy::ring::Ring;

/// How new channels are placed. Our own default, `balanced`, is the repair stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assign {
    /// In turn over the nodes, the emptiest first.
    Average,
    /// In turn over the nodes below the mean; takes the channels out of the buffer.
    ByCount,
    /// To the owner on the ring.
    ConsistentHash,
}

named!(Assign: Average = "average", ByCount = "by_count", ConsistentHash = "consistent_hash");

impl Assign {
    /// Places the given channels. `Average` and `ConsistentHash` leave out those that anybody has,
    /// the buffer included (C5), and put the others into the buffer when there is no node (C9).
    #[must_use]
    pub fn run<C: Name>(self, layout: &Layout<C>, channels: &[C]) -> Vec<Op<C>> {
        match self {
            Self::Average => average(layout, channels),
            Self::ByCount => by_count::place(layout, Owner::Buffer, channels, &[]),
            Self::ConsistentHash => consistent_hash(layout, channels),
        }
    }
}

fn average<C: Name>(layout: &Layout<C>, channels: &[C]) -> Vec<Op<C>> {
    let new = layout.unknown(channels);
    let targets: Vec<NodeId> = layout.emptiest(|_| true).into_iter().map(Holding::node).collect();
    let mut ops = Ops::new();
    if targets.is_empty() {
        ops.watch(Owner::Buffer, &new);
    }
    ops.round_robin(&new, &targets);
    ops.finish()
}

fn consistent_hash<C: Name>(layout: &Layout<C>, channels: &[C]) -> Vec<Op<C>> {
    let ring = Ring::new(layout.nodes().iter().map(Holding::node));
    let mut ops = Ops::new();
    for channel in layout.unknown(channels) {
        let owner = ring.owner(channel.text()).map_or(Owner::Buffer, Owner::Node);
        ops.watch(owner, &[channel]);
    }
    ops.finish()
}
