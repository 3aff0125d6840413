//! Candidates (C4) with their counts, kept in order of count while a plan grows.
//! Which of them a channel may not have is decided here; which one it gets, in the stages.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use state::channel::{Channel, Phase};
use state::epoch::Timestamp;
use state::ids::NodeId;
use state::node::{Node, NodeRef, NodeStatus, Role};

use crate::pchannel::Row;
use crate::view::View;

/// Position in the list of candidates, which is ascending by node id.
pub(crate) type Position = usize;

/// Why a node may not get a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constraint {
    /// It serves queries and consumes no data channels.
    Role,
    /// Its session is over.
    Down,
    /// It is being emptied.
    Stopping,
    /// Its name is frozen.
    Frozen,
    /// A watch of this channel failed there not long ago.
    CoolingDown {
        /// It may get it again from then on.
        until: Timestamp,
    },
    /// It released the channel last, and another node can take it.
    Avoided,
}

/// One candidate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) node: NodeRef,
    /// Channels in ToWatch and Watched, on the way to it, and chosen for it in this plan.
    pub(crate) count: u32,
}

/// All candidates.
#[derive(Debug)]
pub(crate) struct Targets {
    list: Vec<Target>,
    by_count: BTreeSet<(u32, Position)>,
}

/// What bars a node from every channel.
pub(crate) fn node_constraint(view: &View<'_>, node: &Node) -> Option<Constraint> {
    match node.status {
        NodeStatus::Down => Some(Constraint::Down),
        _ if node.registration.role != Role::Data => Some(Constraint::Role),
        NodeStatus::Stopping => Some(Constraint::Stopping),
        NodeStatus::Up if view.state.is_frozen(&node.registration.name) => Some(Constraint::Frozen),
        NodeStatus::Up => None,
    }
}

/// End of the cool-down of this node for this channel, if it has not passed.
pub(crate) fn cools_until(channel: &Channel, node: NodeId, now: Timestamp) -> Option<Timestamp> {
    channel.cooldowns.get(&node).copied().filter(|until| *until > now)
}

impl Targets {
    /// Candidates with what they have and what is on its way to them.
    pub(crate) fn new(view: &View<'_>) -> Self {
        let mut list = Vec::new();
        let mut leaving = Vec::new();
        for node in view.state.nodes() {
            let counts = view.state.counts_of(node.node);
            if counts.to_release > 0 {
                leaving.push(node.node);
            }
            if node_constraint(view, node).is_none() {
                let count = counts.to_watch.saturating_add(counts.watched);
                list.push(Target { node: node.node_ref(), count });
            }
        }
        let by_count = list.iter().enumerate().map(|(at, target)| (target.count, at)).collect();
        let mut targets = Self { list, by_count };
        for node in leaving {
            targets.promise(view, node);
        }
        targets
    }

    /// A channel that is being released for a planned target counts there already: without that,
    /// each round of a long drain would choose the same emptiest node again.
    fn promise(&mut self, view: &View<'_>, node: NodeId) {
        for name in view.state.channels_of(node) {
            let Some(channel) = view.state.channel(name) else { continue };
            if let Phase::ToRelease { planned: Some(to), dropping: false, .. } = channel.phase
                && let Some(at) = self.find(to)
            {
                self.add(at);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn node(&self, at: Position) -> Option<NodeRef> {
        self.list.get(at).map(|target| target.node)
    }

    pub(crate) fn count(&self, at: Position) -> u32 {
        self.list.get(at).map_or(0, |target| target.count)
    }

    /// Channels of all candidates.
    pub(crate) fn total(&self) -> u64 {
        self.list.iter().map(|target| u64::from(target.count)).sum()
    }

    pub(crate) fn all(&self) -> &[Target] {
        &self.list
    }

    /// Where this node stands, whatever its session.
    pub(crate) fn position(&self, node: NodeId) -> Option<Position> {
        self.list.binary_search_by_key(&node, |target| target.node.node).ok()
    }

    /// Where exactly this session stands.
    pub(crate) fn find(&self, node: NodeRef) -> Option<Position> {
        self.position(node.node).filter(|at| self.node(*at) == Some(node))
    }

    /// One more channel for this candidate.
    pub(crate) fn add(&mut self, at: Position) {
        self.recount(at, |count| count.saturating_add(1));
    }

    /// One channel less for this candidate.
    pub(crate) fn remove(&mut self, at: Position) {
        self.recount(at, |count| count.saturating_sub(1));
    }

    fn recount(&mut self, at: Position, change: impl Fn(u32) -> u32) {
        if let Some(target) = self.list.get_mut(at) {
            self.by_count.remove(&(target.count, at));
            target.count = change(target.count);
            self.by_count.insert((target.count, at));
        }
    }

    /// Positions in ascending order of (count, node id), or descending from the back.
    pub(crate) fn by_count(&self) -> impl DoubleEndedIterator<Item = (u32, Position)> + '_ {
        self.by_count.iter().copied()
    }

    /// The candidates that cool down for this channel, ascending.
    pub(crate) fn cooling(&self, channel: &Channel, now: Timestamp) -> Vec<Position> {
        let running = channel.cooldowns.iter().filter(|(_, until)| **until > now);
        running.filter_map(|(node, _)| self.position(*node)).collect()
    }

    /// The earliest end of a cool-down of a candidate for this channel.
    pub(crate) fn cooled_at(&self, channel: &Channel, now: Timestamp) -> Option<Timestamp> {
        let running = channel.cooldowns.iter().filter(|(_, until)| **until > now);
        running.filter(|(node, _)| self.position(**node).is_some()).map(|(_, until)| *until).min()
    }

    /// The candidate with the lowest count; among equals the one with the fewest channels of the
    /// same physical channel, then the lowest id (18.6). `excluded` is ascending.
    pub(crate) fn least(&self, excluded: &[Position], row: Option<&Row>) -> Option<Position> {
        let mut best: Option<(u32, u32, Position)> = None;
        let mut cursor = row.map(Row::cursor);
        let mut class = None;
        for (count, at) in self.by_count() {
            if best.is_some_and(|(lowest, same, _)| count > lowest || same == 0) {
                break;
            }
            if excluded.binary_search(&at).is_ok() {
                continue;
            }
            // Positions ascend inside a class of equal counts and start anew in the next.
            if class.replace(count) != Some(count) {
                cursor = row.map(Row::cursor);
            }
            let same = cursor.as_mut().map_or(0, |cursor| cursor.get(at));
            if best.is_none_or(|(_, fewest, _)| same < fewest) {
                best = Some((count, same, at));
            }
        }
        best.map(|(_, _, at)| at)
    }
}

/// The nodes a channel may not get, and whether its avoided node takes it back.
#[derive(Debug)]
pub(crate) struct Excluded {
    /// Ascending.
    pub(crate) positions: Vec<Position>,
    /// The node that released it is the only candidate.
    pub(crate) given_back: bool,
}

impl Excluded {
    /// Excludes nodes that cool down for the channel, and the avoided node unless only it is left.
    /// None: no candidate is left at all.
    pub(crate) fn of(channel: &Arc<Channel>, targets: &Targets, now: Timestamp) -> Option<Self> {
        let mut positions = targets.cooling(channel, now);
        let left = targets.len().saturating_sub(positions.len());
        let avoid = channel.avoid.and_then(|node| targets.position(node));
        let avoid = avoid.filter(|at| positions.binary_search(at).is_err());
        match (left, avoid) {
            (0, _) => None,
            (1, Some(_)) => Some(Self { positions, given_back: true }),
            (_, None) => Some(Self { positions, given_back: false }),
            (_, Some(at)) => {
                let slot = positions.partition_point(|other| *other < at);
                positions.insert(slot, at);
                Some(Self { positions, given_back: false })
            }
        }
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Role => f.write_str("is not a data node"),
            Self::Down => f.write_str("is down"),
            Self::Stopping => f.write_str("is stopping"),
            Self::Frozen => f.write_str("is frozen"),
            Self::CoolingDown { until } => {
                write!(f, "cools down for this channel until {until}")
            }
            Self::Avoided => {
                f.write_str("released this channel last, and another node can take it")
            }
        }
    }
}
