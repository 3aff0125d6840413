//! Who holds what, as the policies of the catalogue want to see it: candidates only (C4), with what
//! they watch, are to watch, and were promised (C12). Used by the stages that ask a policy by name.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use state::channel::{Phase, PhaseKind};
use state::ids::{ChannelName, NodeId};

use crate::policy::{Holding, Layout, Op, OpKind, Owner};
use crate::targets::Targets;
use crate::view::View;

/// The candidates with their channels; nothing is buffered in it: what is to be placed is given to
/// a policy as such.
pub(crate) fn layout<'a>(view: &View<'a>, targets: &Targets) -> Layout<&'a ChannelName> {
    let state = view.state;
    let mut held: Vec<Vec<&ChannelName>> = targets.all().iter().map(|_| Vec::new()).collect();
    for node in state.nodes() {
        for name in state.channels_of(node.node) {
            let Some(channel) = state.channel(name) else { continue };
            let at = match channel.phase {
                Phase::ToRelease { planned: Some(to), dropping: false, .. } => targets.find(to),
                _ if channel.phase.kind() == PhaseKind::ToRelease => None,
                _ => targets.position(node.node),
            };
            if let Some(list) = at.and_then(|at| held.get_mut(at)) {
                list.push(name);
            }
        }
    }
    let nodes = targets.all().iter().zip(held);
    let nodes = nodes.map(|(target, names)| Holding::new(target.node.node, names)).collect();
    Layout::new(nodes, Vec::new())
}

/// Who gets what by the answer of a policy; the buffer gets nothing, it is where the channels are.
pub(crate) fn new_owners<'a>(ops: &[Op<&'a ChannelName>]) -> BTreeMap<&'a ChannelName, NodeId> {
    let mut owners = BTreeMap::new();
    for op in ops.iter().filter(|op| op.kind == OpKind::Watch) {
        if let Owner::Node(node) = op.owner {
            owners.extend(op.channels.iter().map(|name| (*name, node)));
        }
    }
    owners
}
