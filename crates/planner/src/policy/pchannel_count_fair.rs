//! Count-fair placement of whole channels (16.5): every node ends with the mean or one more, and as
//! few channels move as that takes. `balance` calls it for channels that have a node.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cmp::Reverse;

use state::ids::NodeId;

use crate::policy::layout::{Name, set};

/// A node for every channel. A channel on a node that is not listed counts as without one.
/// None: there is no node.
///
/// Unlike its model, no channel is left without a node when all nodes have reached the mean.
#[must_use]
pub fn plan<C: Name>(
    nodes: &[NodeId],
    channels: &[(C, Option<NodeId>)],
) -> Option<BTreeMap<C, NodeId>> {
    let nodes = set(nodes.to_vec());
    let present: BTreeMap<C, Option<NodeId>> = channels.iter().copied().collect();
    let mean = present.len().checked_div(nodes.len())?;
    let mut remainder = present.len().checked_rem(nodes.len())?;
    let mut held: BTreeMap<NodeId, Vec<C>> = nodes.iter().map(|node| (*node, Vec::new())).collect();
    let mut rest = Vec::new();
    for (channel, at) in present {
        match at.and_then(|node| held.get_mut(&node)) {
            Some(channels) => channels.push(channel),
            None => rest.push(channel),
        }
    }
    let mut assignment = BTreeMap::new();
    let mut fullest: Vec<(NodeId, Vec<C>)> = held.into_iter().collect();
    fullest.sort_by_key(|(node, channels)| (Reverse(channels.len()), *node));
    let mut counts = BTreeSet::new();
    for (node, mut channels) in fullest {
        let above = usize::from(remainder > 0 && channels.len() > mean);
        remainder = remainder.saturating_sub(above);
        let keep = channels.len().min(mean.saturating_add(above));
        rest.extend(channels.split_off(keep));
        counts.insert((keep, node));
        assignment.extend(channels.into_iter().map(|channel| (channel, node)));
    }
    rest.sort_unstable();
    for channel in rest {
        let (count, node) = counts.pop_first()?;
        counts.insert((count.saturating_add(1), node));
        assignment.insert(channel, node);
    }
    Some(assignment)
}
