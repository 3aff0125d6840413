//! 11.7: the policy by count, in both forms: channels to be placed (A), or nothing to be placed and
//! full nodes give some away (B). `assign` and `reassign` call A under a name.

use alloc::vec::Vec;

use state::ids::NodeId;

use crate::policy::layout::{Holding, Layout, Name, set};
use crate::policy::op::{Op, Ops, Owner};

/// A target and how many channels it has.
pub(crate) type Filled = (usize, NodeId);

/// Form A: the channels leave `origin` for the targets below the mean. `exclusive` nodes get none.
///
/// Who is below the mean is decided once, before dealing, so a target can end above it.
#[must_use]
pub fn place<C: Name>(
    layout: &Layout<C>,
    origin: Owner,
    channels: &[C],
    exclusive: &[NodeId],
) -> Vec<Op<C>> {
    let mut targets =
        targets(layout, |node| Owner::Node(node) != origin && !exclusive.contains(&node));
    let mut ops = Ops::new();
    deal(&mut targets, origin, &set(channels.to_vec()), &mut ops);
    ops.finish()
}

/// The nodes that pass with their counts.
pub(crate) fn targets<C: Name>(layout: &Layout<C>, keep: impl Fn(NodeId) -> bool) -> Vec<Filled> {
    layout.emptiest(keep).into_iter().map(|held| (held.count(), held.node())).collect()
}

/// Deals channels of one origin and counts them for who got them.
pub(crate) fn deal<C: Name>(
    targets: &mut [Filled],
    origin: Owner,
    channels: &[C],
    ops: &mut Ops<C>,
) {
    let sum: usize = targets.iter().map(|(count, _)| count).sum();
    let Some(per) = sum.saturating_add(channels.len()).checked_div(targets.len()) else { return };
    targets.sort_unstable();
    let lacking = match targets.partition_point(|(count, _)| *count < per) {
        0 => targets.len(),
        some => some,
    };
    let (lacking, _) = targets.split_at_mut(lacking);
    let nodes: Vec<NodeId> = lacking.iter().map(|(_, node)| *node).collect();
    ops.delete(origin, channels);
    ops.round_robin(channels, &nodes);
    let (each, rest) = (channels.len().checked_div(nodes.len()), channels.len());
    let rest = rest.checked_rem(nodes.len()).unwrap_or(0);
    for (turn, (count, _)) in lacking.iter_mut().enumerate() {
        let extra = usize::from(turn < rest);
        *count = count.saturating_add(each.unwrap_or(0)).saturating_add(extra);
    }
}

/// Form B: nodes with more than the mean let the channels beyond it go, if there is an empty node
/// for them. Those of an `exclusive` node go to the buffer at once.
#[must_use]
pub fn spread<C: Name>(layout: &Layout<C>, exclusive: &[NodeId]) -> Vec<Op<C>> {
    let from = layout.nodes().iter().filter(|held| held.count() > 0);
    let empty = layout.nodes().iter().filter(|held| held.count() == 0);
    let empty = empty.filter(|held| !exclusive.contains(&held.node())).count();
    let members = from.clone().count().saturating_add(empty);
    let per = layout.total().checked_div(members).unwrap_or(0);
    let mut ops = Ops::new();
    if empty == 0 || per == 0 {
        return ops.finish();
    }
    for held in from {
        let beyond = held.channels().get(per..).unwrap_or_default();
        if exclusive.contains(&held.node()) {
            ops.delete(Owner::Node(held.node()), beyond);
            ops.watch(Owner::Buffer, beyond);
        } else {
            ops.release(held.node(), beyond);
        }
    }
    ops.finish()
}

/// Whether this holding is one of those named.
pub(crate) fn named_in<C: Name>(list: &[Holding<C>], node: NodeId) -> bool {
    list.iter().any(|held| held.node() == node)
}
