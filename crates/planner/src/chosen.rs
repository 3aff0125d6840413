//! Channels without owner that are placed by a policy chosen by name (11.3 to 11.7): new ones by
//! assign, released ones by reassign, those of a node that left by deregister. What a policy leaves
//! or gives to a node that may not have it, is placed by our own rule. Called by `repair`.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use state::channel::{AckResult, Channel};
use state::choices::Choice;
use state::decision::Cause;
use state::epoch::NodeEpoch;
use state::ids::{ChannelName, NodeId};

use crate::holdings::{self, new_owners};
use crate::policy::{Assign, Deregister, Holding, Layout, Reassign, Register};
use crate::repair::Item;
use crate::targets::{Position, Targets};
use crate::view::View;

/// Stands for the nodes that left: no node has this id.
const GONE: NodeId = NodeId(0);

type Names<'a> = Vec<&'a ChannelName>;

/// How a channel came to be without owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    New,
    Left(NodeId),
    Orphaned,
}

/// The policies that are chosen beside our own rule.
#[derive(Debug, Clone, Copy)]
struct Chosen {
    assign: Option<Assign>,
    reassign: Option<Reassign>,
    deregister: Option<Deregister>,
    to_newcomers: bool,
}

impl Chosen {
    fn of(view: &View<'_>) -> Option<Self> {
        let name = |choice| view.state.choice(choice);
        let register = Register::from_name(name(Choice::Register));
        let chosen = Self {
            assign: Assign::from_name(name(Choice::Assign)),
            reassign: Reassign::from_name(name(Choice::Reassign)),
            deregister: Deregister::from_name(name(Choice::Deregister)),
            to_newcomers: register.is_some_and(|policy| policy != Register::None),
        };
        let any = chosen.assign.is_some()
            || chosen.reassign.is_some()
            || chosen.deregister.is_some()
            || chosen.to_newcomers;
        any.then_some(chosen)
    }
}

/// Gives nodes to those items that a chosen policy is responsible for.
pub(crate) fn place<'a>(view: &View<'a>, items: &mut [Item<'a>], targets: &mut Targets) {
    let Some(chosen) = Chosen::of(view) else { return };
    if chosen.to_newcomers {
        to_newcomers(view, items, targets);
    }
    let layout = with_promises(view, items, targets);
    let mut new = Vec::new();
    let mut left: BTreeMap<NodeId, Names<'_>> = BTreeMap::new();
    let mut orphaned = Vec::new();
    for item in items.iter().filter(|item| item.at.is_none()) {
        let channel: &'a Channel = item.channel;
        let name = &channel.spec.name;
        match way(channel) {
            Way::New => new.push(name),
            Way::Left(node) => left.entry(node).or_default().push(name),
            Way::Orphaned => orphaned.push(name),
        }
    }
    let mut placed = BTreeMap::new();
    if let Some(policy) = chosen.deregister.filter(|_| !orphaned.is_empty()) {
        placed.extend(new_owners(&policy.run(&with(&layout, GONE, orphaned), GONE)));
    }
    if let Some(policy) = chosen.reassign.filter(|_| !left.is_empty()) {
        placed.extend(reassign(policy, &layout, left));
    }
    if let Some(policy) = chosen.assign.filter(|_| !new.is_empty()) {
        placed.extend(new_owners(&policy.run(&layout, &new)));
    }
    give(view, items, targets, &placed);
}

/// A channel that waited before a node joined goes to the first that joined after it began to wait.
fn to_newcomers(view: &View<'_>, items: &mut [Item<'_>], targets: &mut Targets) {
    let mut joined: Vec<(NodeEpoch, Position)> =
        targets.all().iter().enumerate().map(|(at, target)| (target.node.epoch, at)).collect();
    joined.sort_unstable();
    for item in items.iter_mut().filter(|item| item.at.is_none()) {
        let first = joined.partition_point(|(epoch, _)| epoch.0 <= item.channel.term.0);
        let Some((_, at)) = joined.get(first).copied() else { continue };
        if may_have(view, targets, item.channel, at) {
            (item.at, item.fixed) = (Some(at), true);
            targets.add(at);
        }
    }
}

fn way(channel: &Channel) -> Way {
    if channel.placed_by.is_none() {
        return Way::New;
    }
    if let Some(node) = channel.avoid {
        return Way::Left(node);
    }
    match channel.last_done {
        Some(done) if done.result == AckResult::FailedStopped => Way::Left(done.node.node),
        _ => Way::Orphaned,
    }
}

fn reassign<'a>(
    policy: Reassign,
    layout: &Layout<&'a ChannelName>,
    left: BTreeMap<NodeId, Names<'a>>,
) -> Vec<(&'a ChannelName, NodeId)> {
    if policy == Reassign::None {
        let back = |(node, names): (NodeId, Names<'a>)| names.into_iter().map(move |n| (n, node));
        return left.into_iter().flat_map(back).collect();
    }
    let leaving: Vec<Holding<&ChannelName>> =
        left.into_iter().map(|(node, names)| Holding::new(node, names)).collect();
    new_owners(&policy.run(layout, &leaving)).into_iter().collect()
}

/// The layout, and a node beside it that holds these.
fn with<'a>(
    layout: &Layout<&'a ChannelName>,
    node: NodeId,
    names: Names<'a>,
) -> Layout<&'a ChannelName> {
    let mut nodes = layout.nodes().to_vec();
    nodes.push(Holding::new(node, names));
    Layout::new(nodes, Vec::new())
}

/// The layout with what this plan has given already.
fn with_promises<'a>(
    view: &View<'a>,
    items: &[Item<'a>],
    targets: &Targets,
) -> Layout<&'a ChannelName> {
    let layout = holdings::layout(view, targets);
    let mut given: BTreeMap<NodeId, Names<'a>> = BTreeMap::new();
    for item in items {
        if let Some(node) = item.at.and_then(|at| targets.node(at)) {
            let channel: &'a Channel = item.channel;
            given.entry(node.node).or_default().push(&channel.spec.name);
        }
    }
    let nodes = layout.nodes().iter().map(|held| {
        let mut names = held.channels().to_vec();
        names.extend(given.remove(&held.node()).unwrap_or_default());
        Holding::new(held.node(), names)
    });
    Layout::new(nodes.collect(), Vec::new())
}

fn may_have(view: &View<'_>, targets: &Targets, channel: &Channel, at: Position) -> bool {
    targets.cooling(channel, view.time()).binary_search(&at).is_err()
}

fn give(
    view: &View<'_>,
    items: &mut [Item<'_>],
    targets: &mut Targets,
    placed: &BTreeMap<&ChannelName, NodeId>,
) {
    for item in items.iter_mut().filter(|item| item.at.is_none()) {
        let Some(node) = placed.get(&item.channel.spec.name) else { continue };
        let Some(at) = targets.position(*node) else { continue };
        if may_have(view, targets, item.channel, at) {
            if item.channel.avoid == Some(*node) {
                item.cause = Cause::GivenBack;
            }
            (item.at, item.fixed) = (Some(at), true);
            targets.add(at);
        }
    }
}
