//! Putting records into the tables and taking them out: keeps indexes and digest in step with each.
//! No rule and no event lives here. Called by `evolve`, and by `snapshot` for a whole state.

use alloc::sync::Arc;
use alloc::vec::Vec;

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use super::{Leader, Mark, Remembered, State};
use crate::channel::{Channel, Dropped};
use crate::digest::{Sum, Table, Witness};
use crate::epoch::{Revision, Term, Timestamp};
use crate::ids::{ChannelName, MemberId, NodeId, NodeName, RequestId, Text};
use crate::index::Index;
use crate::level;
use crate::node::Node;
use crate::policy::Policy;

/// What is not in a table. Encoded in snapshots and hashed into the digest as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Scalars {
    pub(crate) revision: Revision,
    pub(crate) now: Timestamp,
    pub(crate) level: u32,
    pub(crate) leader: Leader,
    pub(crate) policy: Policy,
    /// Id of the next session.
    pub(crate) next_node: u64,
    pub(crate) last_activity: Timestamp,
    pub(crate) first_registered: Option<Timestamp>,
    pub(crate) first_placed: Option<Revision>,
}

/// Records of a whole state, each table ascending by key.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) nodes: Vec<(NodeId, Node)>,
    pub(crate) frozen: Vec<(NodeName, Revision)>,
    pub(crate) channels: Vec<(ChannelName, Channel)>,
    pub(crate) drops: Vec<(ChannelName, Dropped)>,
    pub(crate) requests: Vec<(RequestId, Remembered)>,
    pub(crate) choices: Vec<(Text, Text)>,
    pub(crate) cleaners: Vec<(NodeName, Revision)>,
    pub(crate) marks: Vec<(Mark, Timestamp)>,
}

impl State {
    /// An empty state of this generation.
    #[must_use]
    pub fn new(generation: u16) -> Self {
        let scalars = Scalars {
            revision: Revision::first(generation),
            now: Timestamp::default(),
            level: level::FIRST,
            leader: Leader {
                term: Term::default(),
                member: MemberId(0),
                started_at: Timestamp::default(),
                observed_seq: 0,
            },
            policy: Policy::of_level_1(),
            next_node: 1,
            last_activity: Timestamp::default(),
            first_registered: None,
            first_placed: None,
        };
        Self::from_tables(scalars, Witness::default(), Tables::default())
    }

    /// A state of these records, indexes and digest computed from them.
    pub(crate) fn from_tables(scalars: Scalars, witness: Witness, tables: Tables) -> Self {
        let mut state = Self {
            scalars,
            witness,
            nodes: shared(tables.nodes),
            frozen: tables.frozen.into_iter().collect::<OrdMap<_, _>>(),
            channels: shared(tables.channels),
            drops: shared(tables.drops),
            requests: tables.requests.into_iter().collect::<OrdMap<_, _>>(),
            choices: tables.choices.into_iter().collect::<OrdMap<_, _>>(),
            cleaners: tables.cleaners.into_iter().collect::<OrdMap<_, _>>(),
            marks: tables.marks.into_iter().collect::<OrdMap<_, _>>(),
            index: Index::default(),
            sum: Sum::default(),
            #[cfg(test)]
            poison: crate::tests::poison::Poison::None,
        };
        state.index = state.index_of_records();
        state.sum = state.sum_of_records();
        state
    }

    /// The indexes as they must be.
    pub(crate) fn index_of_records(&self) -> Index {
        let mut index = Index::default();
        self.nodes.values().for_each(|node| index.node(node, true));
        self.channels.values().for_each(|channel| index.channel(channel, true));
        self.drops.iter().for_each(|(name, dropped)| index.dropped(name, dropped, true));
        for (request_id, remembered) in &self.requests {
            index.request(*request_id, remembered.issued_at, true);
        }
        index
    }

    /// The sum of all records as it must be.
    pub(crate) fn sum_of_records(&self) -> Sum {
        let mut sum = Sum::default();
        self.nodes.iter().for_each(|record| sum.add(Table::Nodes, &record));
        self.frozen.iter().for_each(|record| sum.add(Table::Frozen, &record));
        self.channels.iter().for_each(|record| sum.add(Table::Channels, &record));
        self.drops.iter().for_each(|record| sum.add(Table::Drops, &record));
        self.requests.iter().for_each(|record| sum.add(Table::Requests, &record));
        self.choices.iter().for_each(|record| sum.add(Table::Choices, &record));
        self.cleaners.iter().for_each(|record| sum.add(Table::Cleaners, &record));
        self.marks.iter().for_each(|record| sum.add(Table::Marks, &record));
        sum
    }

    /// Moves the clock; never backwards. The one change that needs no event (ruling 2).
    pub(crate) fn advance(&mut self, now: Timestamp) {
        self.scalars.now = self.scalars.now.max(now);
    }

    /// Takes the revision of the command whose first event follows.
    pub(crate) fn begin(&mut self, revision: Revision) {
        self.scalars.revision = revision;
    }

    pub(crate) fn witnessed(&mut self, witness: Witness) {
        self.witness = witness;
    }

    pub(super) fn scalars_mut(&mut self) -> &mut Scalars {
        &mut self.scalars
    }

    pub(super) fn put_node(&mut self, node: Node) {
        self.take_node(node.node);
        let record = (node.node, Arc::new(node));
        self.sum.add(Table::Nodes, &record);
        self.index.node(&record.1, true);
        self.nodes.insert(record.0, record.1);
    }

    pub(super) fn take_node(&mut self, node: NodeId) {
        if let Some(old) = self.nodes.remove(&node) {
            self.sum.take(Table::Nodes, &(node, &old));
            self.index.node(&old, false);
        }
    }

    pub(super) fn put_frozen(&mut self, name: &NodeName) {
        self.take_frozen(name);
        let revision = self.revision();
        self.sum.add(Table::Frozen, &(name, revision));
        self.frozen.insert(name.clone(), revision);
    }

    pub(super) fn take_frozen(&mut self, name: &NodeName) {
        if let Some(revision) = self.frozen.remove(name) {
            self.sum.take(Table::Frozen, &(name, revision));
        }
    }

    pub(super) fn put_choice(&mut self, setting: &Text, value: &Text) {
        if let Some(old) = self.choices.insert(setting.clone(), value.clone()) {
            self.sum.take(Table::Choices, &(setting, old));
        }
        self.sum.add(Table::Choices, &(setting, value));
    }

    pub(super) fn put_cleaner(&mut self, name: &NodeName) {
        self.take_cleaner(name);
        let revision = self.revision();
        self.sum.add(Table::Cleaners, &(name, revision));
        self.cleaners.insert(name.clone(), revision);
    }

    pub(super) fn take_cleaner(&mut self, name: &NodeName) {
        if let Some(revision) = self.cleaners.remove(name) {
            self.sum.take(Table::Cleaners, &(name, revision));
        }
    }

    /// Remembers that it happened now.
    pub(super) fn put_mark(&mut self, mark: Mark) {
        let now = self.now();
        if let Some(old) = self.marks.insert(mark, now) {
            self.sum.take(Table::Marks, &(mark, old));
        }
        self.sum.add(Table::Marks, &(mark, now));
    }

    pub(super) fn put_channel(&mut self, channel: Channel) {
        let name = channel.spec.name.clone();
        self.sum.add(Table::Channels, &(&name, &channel));
        let channel = Arc::new(channel);
        match self.channels.insert(name.clone(), Arc::clone(&channel)) {
            Some(old) => {
                self.sum.take(Table::Channels, &(&name, &old));
                self.index.channel_changed(&old, &channel);
            }
            None => self.index.channel(&channel, true),
        }
    }

    pub(super) fn take_channel(&mut self, name: &ChannelName) {
        if let Some(old) = self.channels.remove(name) {
            self.sum.take(Table::Channels, &(name, &old));
            self.index.channel(&old, false);
        }
    }

    pub(super) fn put_drop(&mut self, name: &ChannelName, dropped: Dropped) {
        self.take_drop(name);
        let dropped = Arc::new(dropped);
        self.sum.add(Table::Drops, &(name, &dropped));
        self.index.dropped(name, &dropped, true);
        self.drops.insert(name.clone(), dropped);
    }

    pub(super) fn take_drop(&mut self, name: &ChannelName) {
        if let Some(old) = self.drops.remove(name) {
            self.sum.take(Table::Drops, &(name, &old));
            self.index.dropped(name, &old, false);
        }
    }

    pub(super) fn put_request(&mut self, request_id: RequestId, remembered: Remembered) {
        self.take_request(request_id);
        self.sum.add(Table::Requests, &(request_id, remembered));
        self.index.request(request_id, remembered.issued_at, true);
        self.requests.insert(request_id, remembered);
    }

    pub(super) fn take_request(&mut self, request_id: RequestId) {
        if let Some(old) = self.requests.remove(&request_id) {
            self.sum.take(Table::Requests, &(request_id, old));
            self.index.request(request_id, old.issued_at, false);
        }
    }
}

/// For tests of the invariants: what commands cannot break.
#[cfg(test)]
impl State {
    pub(crate) const fn index_mut(&mut self) -> &mut Index {
        &mut self.index
    }

    pub(crate) const fn sum_mut(&mut self) -> &mut Sum {
        &mut self.sum
    }

    /// All records, to build another state from.
    pub(crate) fn to_tables(&self) -> Tables {
        let nodes = self.nodes.iter().map(|(key, node)| (*key, Node::clone(node)));
        let channels = self.channels.iter();
        let drops = self.drops.iter();
        Tables {
            nodes: nodes.collect(),
            frozen: self.frozen.iter().map(|(name, at)| (name.clone(), *at)).collect(),
            channels: channels.map(|(name, c)| (name.clone(), Channel::clone(c))).collect(),
            drops: drops.map(|(name, d)| (name.clone(), Dropped::clone(d))).collect(),
            requests: self.requests.iter().map(|(key, value)| (*key, *value)).collect(),
            choices: self.choices.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
            cleaners: self.cleaners.iter().map(|(name, at)| (name.clone(), *at)).collect(),
            marks: self.marks.iter().map(|(mark, at)| (*mark, *at)).collect(),
        }
    }
}

fn shared<K: Ord + Clone, V>(records: Vec<(K, V)>) -> OrdMap<K, Arc<V>> {
    records.into_iter().map(|(key, record)| (key, Arc::new(record))).collect::<OrdMap<_, _>>()
}
