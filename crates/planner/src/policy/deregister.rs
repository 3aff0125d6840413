//! Deregister policies (11.5): where the channels of a node that left go.
//! Called when a session ends.

use alloc::vec::Vec;

use state::ids::NodeId;

use crate::policy::layout::{Holding, Layout, Name};
use crate::policy::named;
use crate::policy::op::{Op, Ops, Owner};
use crate::policy::ring::Ring;

/// What happens to the channels of a node that is gone. Our own default, `balanced`, is the repair
/// stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deregister {
    /// In turn over the others, the emptiest first.
    Average,
    /// Each to its owner on the ring of the others.
    ConsistentHash,
    /// Nothing.
    None,
}

named!(Deregister: Average = "average", ConsistentHash = "consistent_hash", None = "none");

impl Deregister {
    /// `leaving` may still be in the layout; nothing is done when it is not, or has no channel.
    /// The channels go to the buffer when there is no other node.
    #[must_use]
    pub fn run<C: Name>(self, layout: &Layout<C>, leaving: NodeId) -> Vec<Op<C>> {
        let mut ops = Ops::new();
        let channels = match (self, layout.holding(leaving)) {
            (Self::None, _) | (_, None) => return ops.finish(),
            (_, Some(held)) => held.channels(),
        };
        ops.delete(Owner::Node(leaving), channels);
        let others = layout.emptiest(|node| node != leaving);
        let others: Vec<NodeId> = others.into_iter().map(Holding::node).collect();
        if others.is_empty() {
            ops.watch(Owner::Buffer, channels);
        } else if self == Self::Average {
            ops.round_robin(channels, &others);
        } else {
            let ring = Ring::new(others);
            for channel in channels {
                let owner = ring.owner(channel.text()).map_or(Owner::Buffer, Owner::Node);
                ops.watch(owner, &[*channel]);
            }
        }
        ops.finish()
    }
}
