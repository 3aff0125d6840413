//! Balance policies (12.2, 12.3, 16.5): channels leave full nodes. Called when nothing moved for a
//! while; whether it is time, and how many may move, is for the stage to say.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use state::ids::{CollectionId, NodeId};

use crate::policy::layout::{Holding, Layout, Name};
use crate::policy::named;
use crate::policy::op::{Op, Ops, Owner};
use crate::policy::pchannel_count_fair;
use crate::policy::vchannel_fair::{self, Terms, Unit};

/// How load is evened out. Our own default, `spread`, is a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balance {
    /// Nodes with more than one channel above the mean let go what is above that (12.2).
    Average,
    /// Nodes let go what is above the mean; as many as there is remainder keep one more (12.3).
    AverageV2,
    /// Even counts, with as few moves as that takes. Names the new owners too.
    PchannelCountFair,
    /// Even counts, and channels of one collection apart. Names the new owners too.
    VchannelFair,
    /// Nothing.
    None,
}

named!(
    Balance:
    Average = "average",
    AverageV2 = "average_v2",
    PchannelCountFair = "pchannel_count_fair",
    VchannelFair = "vchannel_fair",
    None = "none",
);

/// What a balance policy may want to know of a channel beside its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// Its collection.
    pub collection: CollectionId,
    /// It did not move a short while ago.
    pub movable: bool,
}

impl Balance {
    /// What leaves which node. The fair policies answer with a release and a watch of the same
    /// channel: the node that lets it go and the one that is to get it. `about` is asked by
    /// `VchannelFair` only; the others choose by count and leave the pick of movable ones open.
    #[must_use]
    pub fn run<C: Name>(self, layout: &Layout<C>, about: impl Fn(C) -> About) -> Vec<Op<C>> {
        match self {
            Self::Average => average(layout),
            Self::AverageV2 => average_v2(layout),
            Self::PchannelCountFair => {
                let nodes: Vec<NodeId> = layout.nodes().iter().map(Holding::node).collect();
                let present: Vec<(C, Option<NodeId>)> =
                    placed(layout).map(|(channel, node)| (channel, Some(node))).collect();
                let wanted = pchannel_count_fair::plan(&nodes, &present);
                difference(layout, &wanted.unwrap_or_default())
            }
            Self::VchannelFair => {
                let nodes: Vec<NodeId> = layout.nodes().iter().map(Holding::node).collect();
                let unit = |(name, node)| {
                    let About { collection, movable } = about(name);
                    Unit { name, collections: alloc::vec![collection], at: Some(node), movable }
                };
                let units: Vec<Unit<C>> = placed(layout).map(unit).collect();
                let plan = vchannel_fair::plan(&nodes, units, &Terms::default());
                difference(layout, &plan.map(|plan| plan.assignment).unwrap_or_default())
            }
            Self::None => Vec::new(),
        }
    }
}

fn placed<C: Name>(layout: &Layout<C>) -> impl Iterator<Item = (C, NodeId)> {
    let of = |held: &Holding<C>| (held.node(), held.channels().to_vec());
    let nodes = layout.nodes().iter().map(of);
    nodes.flat_map(|(node, channels)| channels.into_iter().map(move |channel| (channel, node)))
}

fn mean<C: Name>(layout: &Layout<C>) -> Option<(usize, usize)> {
    let (total, nodes) = (layout.total(), layout.nodes().len());
    total.checked_div(nodes).zip(total.checked_rem(nodes))
}

fn average<C: Name>(layout: &Layout<C>) -> Vec<Op<C>> {
    let mut ops = Ops::new();
    let Some((mean, _)) = mean(layout) else { return ops.finish() };
    for held in layout.nodes() {
        let beyond = held.count().saturating_sub(mean.saturating_add(1));
        ops.release(held.node(), held.channels().get(..beyond).unwrap_or_default());
    }
    ops.finish()
}

/// The fullest nodes keep the remainder (C13); nothing is let go that is not above the mean (C10).
fn average_v2<C: Name>(layout: &Layout<C>) -> Vec<Op<C>> {
    let mut ops = Ops::new();
    let Some((mean, mut remainder)) = mean(layout) else { return ops.finish() };
    for held in layout.fullest(|_| true) {
        let mut keep = mean;
        if remainder > 0 && held.count() > mean {
            remainder = remainder.saturating_sub(1);
            keep = mean.saturating_add(1);
        }
        let beyond = held.count().saturating_sub(keep);
        ops.release(held.node(), held.channels().get(..beyond).unwrap_or_default());
    }
    ops.finish()
}

fn difference<C: Name>(layout: &Layout<C>, wanted: &BTreeMap<C, NodeId>) -> Vec<Op<C>> {
    let mut ops = Ops::new();
    for (channel, from) in placed(layout) {
        if let Some(to) = wanted.get(&channel).filter(|to| **to != from) {
            ops.release(from, &[channel]);
            ops.watch(Owner::Node(*to), &[channel]);
        }
    }
    ops.finish()
}
