//! The nodes of a plan of `vchannel_fair` with what sits on them, and what each costs.
//! Costs are recomputed from counts, never added up from differences.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use state::ids::{CollectionId, NodeId};

use crate::policy::affinity::Profile;
use crate::policy::score::{Scale, wide};
use crate::policy::vchannel_fair::Terms;

/// Position of a channel in the plan, which is ascending by name.
pub(crate) type Item = usize;

/// Position of a node in the plan, which is ascending by id.
pub(crate) type Position = usize;

/// What a cost depends on beside the seats.
#[derive(Debug)]
pub(crate) struct Rules<'t> {
    pub(crate) terms: &'t Terms,
    pub(crate) scale: Scale,
    pub(crate) nodes: usize,
    pub(crate) channels: usize,
    pub(crate) vchannels: usize,
}

/// A channel with what matters for its cost.
#[derive(Debug)]
pub(crate) struct Passenger {
    pub(crate) vchannels: usize,
    pub(crate) profile: Profile,
}

/// One node.
#[derive(Debug, Clone)]
struct Seat {
    node: NodeId,
    items: BTreeSet<Item>,
    vchannels: usize,
    /// Cost of all pairs, on the scale of pairs.
    pairs: i128,
    by_collection: BTreeMap<CollectionId, BTreeSet<Item>>,
    /// Those that repeat a collection in themselves: they cost something beside anything.
    repeating: BTreeSet<Item>,
}

/// All nodes.
#[derive(Debug)]
pub(crate) struct Seats<'t> {
    rules: Rules<'t>,
    passengers: Vec<Passenger>,
    seats: Vec<Seat>,
}

impl<'t> Seats<'t> {
    pub(crate) fn new(nodes: &[NodeId], passengers: Vec<Passenger>, rules: Rules<'t>) -> Self {
        let empty = |node: &NodeId| Seat {
            node: *node,
            items: BTreeSet::new(),
            vchannels: 0,
            pairs: 0,
            by_collection: BTreeMap::new(),
            repeating: BTreeSet::new(),
        };
        Self { rules, passengers, seats: nodes.iter().map(empty).collect() }
    }

    pub(crate) fn node(&self, at: Position) -> Option<NodeId> {
        self.seats.get(at).map(|seat| seat.node)
    }

    pub(crate) fn total(&self) -> i128 {
        let costs = self
            .seats
            .iter()
            .map(|seat| self.rules.cost(seat.items.len(), seat.vchannels, seat.pairs));
        costs.fold(0, i128::saturating_add)
    }

    pub(crate) fn put(&mut self, item: Item, at: Position) {
        self.change(item, at, true);
    }

    pub(crate) fn take(&mut self, item: Item, at: Position) {
        self.change(item, at, false);
    }

    /// How much more the total is with this channel at this node.
    pub(crate) fn price(&self, item: Item, at: Position) -> i128 {
        self.step(item, at, true)
    }

    /// How much less the total is without this channel at this node; below 0 when it is more.
    pub(crate) fn relief(&self, item: Item, at: Position) -> i128 {
        self.step(item, at, false)
    }

    /// Nodes by what the channel costs there, the lowest first, then by id.
    pub(crate) fn cheapest(&self, item: Item) -> Vec<(i128, Position)> {
        let seats = self.seats.iter().enumerate();
        let mut prices: Vec<_> = seats.map(|(at, _)| (self.price(item, at), at)).collect();
        prices.sort_unstable();
        prices
    }

    fn step(&self, item: Item, at: Position, put: bool) -> i128 {
        let (Some(seat), Some(passenger)) = (self.seats.get(at), self.passengers.get(item)) else {
            return 0;
        };
        let now = self.rules.cost(seat.items.len(), seat.vchannels, seat.pairs);
        let pairs = self.pairs_of(item, passenger, seat);
        let (items, vchannels) = (seat.items.len(), seat.vchannels);
        if put {
            let vchannels = vchannels.saturating_add(passenger.vchannels);
            let pairs = seat.pairs.saturating_add(pairs);
            let then = self.rules.cost(items.saturating_add(1), vchannels, pairs);
            then.saturating_sub(now)
        } else {
            let vchannels = vchannels.saturating_sub(passenger.vchannels);
            let pairs = seat.pairs.saturating_sub(pairs);
            let then = self.rules.cost(items.saturating_sub(1), vchannels, pairs);
            now.saturating_sub(then)
        }
    }

    /// Cost of the pairs that this channel makes with the others at a node.
    fn pairs_of(&self, item: Item, passenger: &Passenger, seat: &Seat) -> i128 {
        let mut sum = 0_i128;
        let mut add = |other: Item| {
            if let Some(with) = self.passengers.get(other).filter(|_| other != item) {
                sum = sum.saturating_add(self.rules.pair(&passenger.profile, &with.profile));
            }
        };
        if passenger.profile.repeats() {
            seat.items.iter().for_each(|other| add(*other));
            return sum;
        }
        let mut collections = passenger.profile.collections();
        let (Some(first), second) = (collections.next(), collections.next()) else {
            seat.repeating.iter().for_each(|other| add(*other));
            return sum;
        };
        let sharing = |collection: CollectionId| seat.by_collection.get(&collection);
        if second.is_none() && seat.repeating.is_empty() {
            sharing(first).into_iter().flatten().for_each(|other| add(*other));
            return sum;
        }
        let others = passenger.profile.collections().filter_map(sharing).flatten();
        let others: BTreeSet<Item> = others.chain(&seat.repeating).copied().collect();
        others.into_iter().for_each(add);
        sum
    }

    fn change(&mut self, item: Item, at: Position, put: bool) {
        let (Some(seat), Some(passenger)) = (self.seats.get(at), self.passengers.get(item)) else {
            return;
        };
        let pairs = self.pairs_of(item, passenger, seat);
        let Some(seat) = self.seats.get_mut(at) else { return };
        let toggle = |items: &mut BTreeSet<Item>| {
            if put {
                items.insert(item)
            } else {
                items.remove(&item)
            };
        };
        if put {
            seat.pairs = seat.pairs.saturating_add(pairs);
            seat.vchannels = seat.vchannels.saturating_add(passenger.vchannels);
        } else {
            seat.pairs = seat.pairs.saturating_sub(pairs);
            seat.vchannels = seat.vchannels.saturating_sub(passenger.vchannels);
        }
        toggle(&mut seat.items);
        if passenger.profile.repeats() {
            toggle(&mut seat.repeating);
        }
        for collection in passenger.profile.collections() {
            toggle(seat.by_collection.entry(collection).or_default());
        }
    }
}

impl Rules<'_> {
    /// Terms whose mean is 0 are left out.
    fn cost(&self, items: usize, vchannels: usize, pairs: i128) -> i128 {
        let terms = self.terms;
        let channels = self.excess(items, self.channels, self.scale.channels);
        let vchannels = self.excess(vchannels, self.vchannels, self.scale.vchannels);
        let pairs = pairs.saturating_mul(self.scale.pairs);
        i128::from(terms.channels)
            .saturating_mul(channels)
            .saturating_add(i128::from(terms.vchannels).saturating_mul(vchannels))
            .saturating_add(i128::from(terms.anti_affinity).saturating_mul(pairs))
    }

    /// The square of how far a count is from the mean, in means.
    fn excess(&self, count: usize, total: usize, factor: i128) -> i128 {
        if total == 0 {
            return 0;
        }
        let off = wide(count).saturating_mul(wide(self.nodes)).saturating_sub(wide(total));
        off.saturating_mul(off).saturating_mul(factor)
    }

    fn pair(&self, a: &Profile, b: &Profile) -> i128 {
        let shared = a.shared(b);
        let repeated = i128::from(shared.repeated).saturating_mul(self.scale.pair);
        repeated.checked_div(i128::from(shared.distinct)).unwrap_or(0)
    }
}
