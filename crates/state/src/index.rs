//! Derived indexes: everything here can be recomputed from the tables, and is after a restore
//! (I-7). Holds no rule. `state::tables` keeps it in step with each record put or taken out.

use imbl::{OrdMap, OrdSet};

use crate::channel::{Channel, Dropped, Phase, PhaseKind, ReleaseCause};
use crate::epoch::{Revision, Timestamp};
use crate::ids::{Address, ChannelName, CollectionId, NodeId, NodeName, RequestId};
use crate::node::{Node, NodeStatus};

/// How many channels are in each phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PhaseCounts {
    /// Without owner; 0 in the counts of a node.
    pub buffered: u32,
    /// Told to watch.
    pub to_watch: u32,
    /// Watched.
    pub watched: u32,
    /// Told to release.
    pub to_release: u32,
}

impl PhaseCounts {
    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u32 {
        self.buffered
            .saturating_add(self.to_watch)
            .saturating_add(self.watched)
            .saturating_add(self.to_release)
    }

    const fn of(&mut self, kind: PhaseKind) -> &mut u32 {
        match kind {
            PhaseKind::Buffered => &mut self.buffered,
            PhaseKind::ToWatch => &mut self.to_watch,
            PhaseKind::Watched => &mut self.watched,
            PhaseKind::ToRelease => &mut self.to_release,
        }
    }

    fn step(&mut self, kind: PhaseKind, put: bool) {
        let count = self.of(kind);
        *count = if put { count.saturating_add(1) } else { count.saturating_sub(1) };
    }
}

/// What one node owns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) channels: OrdSet<ChannelName>,
    pub(crate) counts: PhaseCounts,
}

/// All derived indexes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Index {
    pub(crate) by_name: OrdMap<NodeName, NodeId>,
    pub(crate) by_address: OrdMap<Address, NodeId>,
    pub(crate) by_node: OrdMap<NodeId, Load>,
    pub(crate) by_collection: OrdMap<CollectionId, OrdSet<ChannelName>>,
    pub(crate) buffered: OrdSet<ChannelName>,
    pub(crate) counts: PhaseCounts,
    /// ToWatch by the time its deadline runs from: independent of settings and leader grace.
    pub(crate) watching: OrdSet<(Timestamp, ChannelName)>,
    /// ToRelease, the same.
    pub(crate) releasing: OrdSet<(Timestamp, ChannelName)>,
    pub(crate) moving: u32,
    /// Channels for which a node cools down.
    pub(crate) cooling: OrdMap<NodeId, OrdSet<ChannelName>>,
    /// Names, known or removed, with former owners.
    pub(crate) uncleaned: OrdSet<ChannelName>,
    /// How often a node is named as former owner.
    pub(crate) former: OrdMap<NodeId, u32>,
    /// Removed channels with former owners.
    pub(crate) drops_waiting: u32,
    /// Removed channels without, oldest first.
    pub(crate) drops_done: OrdSet<(Revision, ChannelName)>,
    /// Remembered requests, oldest first.
    pub(crate) requests: OrdSet<(Timestamp, RequestId)>,
}

impl Index {
    pub(crate) fn node(&mut self, node: &Node, put: bool) {
        if node.status == NodeStatus::Down {
            return;
        }
        let registration = &node.registration;
        if put {
            self.by_name.insert(registration.name.clone(), node.node);
            self.by_address.insert(registration.address.clone(), node.node);
        } else {
            self.by_name.remove(&registration.name);
            self.by_address.remove(&registration.address);
        }
    }

    pub(crate) fn channel(&mut self, channel: &Channel, put: bool) {
        let name = &channel.spec.name;
        member(&mut self.by_collection, channel.spec.collection, name, put);
        self.phase(name, &channel.phase, put);
        for node in channel.cooldowns.keys() {
            member(&mut self.cooling, *node, name, put);
        }
        let former = channel.former_owners.iter().map(|former| former.node.node);
        self.former_owners(name, former, put);
    }

    /// Replaces `old` by `new`, touching only what differs: most changes leave most indexes as they
    /// are.
    pub(crate) fn channel_changed(&mut self, old: &Channel, new: &Channel) {
        let name = &new.spec.name;
        if old.spec.collection != new.spec.collection {
            member(&mut self.by_collection, old.spec.collection, name, false);
            member(&mut self.by_collection, new.spec.collection, name, true);
        }
        if old.phase != new.phase {
            self.phase(name, &old.phase, false);
            self.phase(name, &new.phase, true);
        }
        if old.cooldowns != new.cooldowns {
            for node in old.cooldowns.keys() {
                member(&mut self.cooling, *node, name, false);
            }
            for node in new.cooldowns.keys() {
                member(&mut self.cooling, *node, name, true);
            }
        }
        if old.former_owners != new.former_owners {
            let former = old.former_owners.iter().map(|former| former.node.node);
            self.former_owners(name, former, false);
            let former = new.former_owners.iter().map(|former| former.node.node);
            self.former_owners(name, former, true);
        }
    }

    fn phase(&mut self, name: &ChannelName, phase: &Phase, put: bool) {
        self.counts.step(phase.kind(), put);
        if let Some(owner) = phase.owner() {
            self.owned(owner.node, name, phase.kind(), put);
        }
        match phase {
            Phase::Buffered { .. } => set(&mut self.buffered, name.clone(), put),
            Phase::ToWatch { started_at, .. } => {
                set(&mut self.watching, (*started_at, name.clone()), put);
            }
            Phase::Watched { .. } => {}
            Phase::ToRelease { started_at, cause, .. } => {
                set(&mut self.releasing, (*started_at, name.clone()), put);
                if moves(*cause) {
                    count(&mut self.moving, put);
                }
            }
        }
    }

    fn owned(&mut self, node: NodeId, name: &ChannelName, kind: PhaseKind, put: bool) {
        if put {
            let load = self.by_node.entry(node).or_default();
            load.channels.insert(name.clone());
            load.counts.step(kind, true);
            return;
        }
        let Some(load) = self.by_node.get_mut(&node) else { return };
        load.channels.remove(name);
        load.counts.step(kind, false);
        if load.channels.is_empty() {
            self.by_node.remove(&node);
        }
    }

    fn former_owners(
        &mut self,
        name: &ChannelName,
        nodes: impl Iterator<Item = NodeId>,
        put: bool,
    ) {
        let mut any = false;
        for node in nodes {
            any = true;
            let mut times = self.former.remove(&node).unwrap_or_default();
            count(&mut times, put);
            if times > 0 {
                self.former.insert(node, times);
            }
        }
        if any {
            set(&mut self.uncleaned, name.clone(), put);
        }
    }

    pub(crate) fn dropped(&mut self, name: &ChannelName, dropped: &Dropped, put: bool) {
        let former = dropped.former_owners.iter().map(|former| former.node.node);
        self.former_owners(name, former, put);
        if dropped.former_owners.is_empty() {
            set(&mut self.drops_done, (dropped.removed, name.clone()), put);
        } else {
            count(&mut self.drops_waiting, put);
        }
    }

    pub(crate) fn request(&mut self, request_id: RequestId, issued_at: Timestamp, put: bool) {
        set(&mut self.requests, (issued_at, request_id), put);
    }
}

/// Whether a release of this cause counts against the limit of moves.
pub(crate) const fn moves(cause: ReleaseCause) -> bool {
    matches!(cause, ReleaseCause::Balance | ReleaseCause::Drain)
}

fn count(number: &mut u32, put: bool) {
    *number = if put { number.saturating_add(1) } else { number.saturating_sub(1) };
}

fn set<T: Ord + Clone>(values: &mut OrdSet<T>, value: T, put: bool) {
    if put {
        values.insert(value);
    } else {
        values.remove(&value);
    }
}

fn member<K: Ord + Clone>(
    map: &mut OrdMap<K, OrdSet<ChannelName>>,
    key: K,
    name: &ChannelName,
    put: bool,
) {
    if put {
        map.entry(key).or_default().insert(name.clone());
        return;
    }
    let Some(names) = map.get_mut(&key) else { return };
    names.remove(name);
    if names.is_empty() {
        map.remove(&key);
    }
}
