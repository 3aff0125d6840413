//! Register policies (11.3): what a node that joins gets. Called when a session begins.

use alloc::vec::Vec;
use core::iter;

use state::ids::NodeId;

use crate::policy::layout::{Holding, Layout, Name};
use crate::policy::named;
use crate::policy::op::{Op, Ops, Owner};
use crate::policy::ring::Ring;

/// What happens when a node joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Register {
    /// Nothing.
    None,
    /// It gets the whole buffer.
    BufferAssign,
    /// It gets the whole buffer; if that is empty, the fullest nodes let go its share.
    AvgAssign,
    /// It gets the whole buffer; if that is empty, what the ring gives to another node is let go.
    ConsistentHash,
}

named!(
    Register:
    None = "none",
    BufferAssign = "buffer_assign",
    AvgAssign = "avg_assign",
    ConsistentHash = "consistent_hash",
);

/// How `ConsistentHash` takes a channel from its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handover {
    /// The owner lets it go first, and it is placed after that.
    Release,
    /// At once, as the first generation did it.
    Direct,
}

impl Register {
    /// What is done for `joining`, which may be in the layout already.
    #[must_use]
    pub fn run<C: Name>(
        self,
        layout: &Layout<C>,
        joining: NodeId,
        handover: Handover,
    ) -> Vec<Op<C>> {
        let mut ops = Ops::new();
        if self != Self::None && !layout.buffer().is_empty() {
            ops.delete(Owner::Buffer, layout.buffer());
            ops.watch(Owner::Node(joining), layout.buffer());
            return ops.finish();
        }
        match self {
            Self::None | Self::BufferAssign => {}
            Self::AvgAssign => share(layout, joining, &mut ops),
            Self::ConsistentHash => follow_ring(layout, joining, handover, &mut ops),
        }
        ops.finish()
    }
}

/// Takes the share of the new node from the others in turn, the fullest first. A turn in which an
/// owner has nothing left takes nothing.
fn share<C: Name>(layout: &Layout<C>, joining: NodeId, ops: &mut Ops<C>) {
    let others = layout.fullest(|node| node != joining);
    let total: usize = others.iter().map(|held| held.count()).sum();
    let per = total.checked_div(others.len().saturating_add(1)).unwrap_or(0);
    let turns = (0_usize..).flat_map(|depth| others.iter().map(move |held| (depth, held)));
    // Without others `per` is 0, and nothing is taken from a sequence that has no end.
    for (depth, held) in turns.take(per) {
        if let Some(channel) = held.channels().get(depth) {
            ops.release(held.node(), &[*channel]);
        }
    }
}

fn follow_ring<C: Name>(layout: &Layout<C>, joining: NodeId, handover: Handover, ops: &mut Ops<C>) {
    let ring = Ring::new(layout.nodes().iter().map(Holding::node).chain(iter::once(joining)));
    for held in layout.nodes() {
        for channel in held.channels() {
            let Some(owner) = ring.owner(channel.text()).filter(|owner| *owner != held.node())
            else {
                continue;
            };
            match handover {
                Handover::Release => ops.release(held.node(), &[*channel]),
                Handover::Direct => {
                    ops.delete(Owner::Node(held.node()), &[*channel]);
                    ops.watch(Owner::Node(owner), &[*channel]);
                }
            }
        }
    }
}
