//! Reassign policies (11.6, 11.7 A): channels leave nodes that stay.
//! Called after a release or a failed watch, and for channels that balance took away.

use alloc::vec::Vec;

use state::ids::NodeId;

use crate::policy::by_count::{self, Filled, named_in};
use crate::policy::layout::{Holding, Layout, Name};
use crate::policy::named;
use crate::policy::op::{Op, Ops, Owner};

/// Where channels go that leave their nodes. Our own default, `balanced`, is the repair stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reassign {
    /// Each to the first node below the mean: the emptiest node is filled before the next.
    Average,
    /// In turn over the others, the emptiest first.
    RoundRobin,
    /// In turn over the others, by id, whatever they have.
    RoundRobinUnsorted,
    /// In turn over the nodes below the mean.
    ByCount,
    /// Nowhere: they stay where they are.
    None,
}

named!(
    Reassign:
    Average = "average",
    RoundRobin = "round_robin",
    RoundRobinUnsorted = "round_robin_unsorted",
    ByCount = "by_count",
    None = "none",
);

impl Reassign {
    /// Moves the listed channels away. No node of the list gets any; nothing is done when there is
    /// no other. Entries are taken ascending by node (C1).
    #[must_use]
    pub fn run<C: Name>(self, layout: &Layout<C>, leaving: &[Holding<C>]) -> Vec<Op<C>> {
        let mut entries: Vec<&Holding<C>> = leaving.iter().collect();
        entries.sort_by_key(|entry| entry.node());
        let mut targets = by_count::targets(layout, |node| !named_in(leaving, node));
        if self == Self::RoundRobinUnsorted {
            targets.sort_unstable_by_key(|(_, node)| *node);
        }
        let mut ops = Ops::new();
        if targets.is_empty() || self == Self::None {
            return ops.finish();
        }
        if self == Self::ByCount {
            for entry in entries {
                let origin = Owner::Node(entry.node());
                by_count::deal(&mut targets, origin, entry.channels(), &mut ops);
            }
            return ops.finish();
        }
        let mut channels = Vec::new();
        for entry in entries {
            ops.delete(Owner::Node(entry.node()), entry.channels());
            channels.extend_from_slice(entry.channels());
        }
        match self {
            Self::Average => fill(&channels, &targets, &mut ops),
            _ => {
                let nodes: Vec<NodeId> = targets.iter().map(|(_, node)| *node).collect();
                ops.round_robin(&channels, &nodes);
            }
        }
        ops.finish()
    }
}

/// Fills one target after the other up to the mean, rounded up.
fn fill<C: Name>(channels: &[C], targets: &[Filled], ops: &mut Ops<C>) {
    let sum: usize = targets.iter().map(|(count, _)| count).sum();
    let mean = sum.saturating_add(channels.len()).div_ceil(targets.len().max(1));
    let mut rest = channels;
    for (count, node) in targets {
        let (taken, left) = rest.split_at(mean.saturating_sub(*count).min(rest.len()));
        ops.watch(Owner::Node(*node), taken);
        rest = left;
    }
}
