//! Fair placement of channels by count, by virtual channels, and by collections that should be
//! apart (16.5), in exact integers. `balance` calls it; costs are in `seats`.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use state::ids::{CollectionId, NodeId};

use crate::policy::affinity::Profile;
use crate::policy::layout::{Name, set};
use crate::policy::score::{MILLION, Ratio, Scale};
use crate::policy::seats::{Item, Passenger, Position, Rules, Seats};

/// Channels taken up again in one plan, whatever the terms say: the search grows with the power.
const STEPS_MAX: usize = 5;

/// A channel to be placed as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit<C> {
    /// Its name.
    pub name: C,
    /// One for each of its virtual channels, in any order.
    pub collections: Vec<CollectionId>,
    /// Where it is.
    pub at: Option<NodeId>,
    /// It may be moved although it has a node.
    pub movable: bool,
}

/// What is weighed against what, in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Weight of the number of channels.
    pub channels: u32,
    /// Weight of the number of virtual channels.
    pub vchannels: u32,
    /// Weight of pairs on one node that share collections.
    pub anti_affinity: u32,
    /// Channels that one plan moves at most; values above 5 count as 5.
    pub moves_max: usize,
    /// Nothing moves unless the total falls by more than this.
    pub tolerance: u32,
}

/// Where each channel should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FairPlan<C> {
    /// A node for each channel.
    pub assignment: BTreeMap<C, NodeId>,
    /// The total with every channel kept or placed, before any is moved.
    pub before: Ratio,
    /// The total of the assignment.
    pub after: Ratio,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            channels: 400_000,
            vchannels: 300_000,
            anti_affinity: 10_000,
            moves_max: 3,
            tolerance: 10_000,
        }
    }
}

/// Keeps channels where they are, places those without a node where the total grows least, and
/// moves up to `moves_max` if the total falls by more than the tolerance. None: there is no node.
#[must_use]
pub fn plan<C: Name>(
    nodes: &[NodeId],
    mut units: Vec<Unit<C>>,
    terms: &Terms,
) -> Option<FairPlan<C>> {
    let nodes = set(nodes.to_vec());
    if nodes.is_empty() {
        return None;
    }
    units.sort_by_key(|unit| unit.name);
    units.dedup_by_key(|unit| unit.name);
    let passengers: Vec<Passenger> = units.iter().map(passenger).collect();
    let vchannels = passengers.iter().map(|one| one.vchannels).sum();
    let distinct = passengers.iter().map(|one| one.profile.distinct()).max().unwrap_or(0);
    let scale = Scale::new(units.len(), vchannels, distinct.saturating_mul(2));
    let rules = Rules { terms, scale, nodes: nodes.len(), channels: units.len(), vchannels };
    let mut seats = Seats::new(&nodes, passengers, rules);
    let mut places = place(&nodes, &units, &mut seats);
    let before = seats.total();
    if let Some(moves) = improve(&units, &places, &mut seats, terms, scale) {
        for (item, at) in moves {
            if let Some(place) = places.get_mut(item) {
                *place = at;
            }
        }
    }
    let named = units.iter().zip(&places);
    let assignment = named.filter_map(|(unit, at)| Some((unit.name, seats.node(*at)?))).collect();
    let score = |total| Ratio::new(total, scale.denominator);
    Some(FairPlan { assignment, before: score(before), after: score(seats.total()) })
}

fn passenger<C>(unit: &Unit<C>) -> Passenger {
    let profile = Profile::new(&unit.collections);
    Passenger { vchannels: unit.collections.len(), profile }
}

/// Steps 1 and 2: keep, then place those with most virtual channels first.
fn place<C: Name>(nodes: &[NodeId], units: &[Unit<C>], seats: &mut Seats<'_>) -> Vec<Position> {
    let mut places: Vec<Position> = Vec::with_capacity(units.len());
    let mut open: Vec<Item> = Vec::new();
    for (item, unit) in units.iter().enumerate() {
        let kept = unit.at.and_then(|node| nodes.binary_search(&node).ok());
        match kept {
            Some(at) => seats.put(item, at),
            None => open.push(item),
        }
        places.push(kept.unwrap_or_default());
    }
    open.sort_by_key(|item| (Reverse(units.get(*item).map(|unit| unit.collections.len())), *item));
    for item in open {
        let Some((_, at)) = seats.cheapest(item).first().copied() else { continue };
        seats.put(item, at);
        if let Some(place) = places.get_mut(item) {
            *place = at;
        }
    }
    places
}

/// Steps 4 and 5: takes up the channels whose absence helps most and looks for the best places for
/// them. Leaves the seats as the result says; none: nothing is worth it.
fn improve<C: Name>(
    units: &[Unit<C>],
    places: &[Position],
    seats: &mut Seats<'_>,
    terms: &Terms,
    scale: Scale,
) -> Option<Vec<(Item, Position)>> {
    let before = seats.total();
    let mut taken: Vec<(Item, Position)> = Vec::new();
    for _ in 0..terms.moves_max.min(STEPS_MAX) {
        let mut best: Option<(i128, Item, Position)> = None;
        for (item, (unit, at)) in units.iter().zip(places).enumerate() {
            if !unit.movable || taken.iter().any(|(other, _)| *other == item) {
                continue;
            }
            let relief = seats.relief(item, *at);
            if best.is_none_or(|(most, _, _)| relief > most) {
                best = Some((relief, item, *at));
            }
        }
        let Some((_, item, at)) = best else { break };
        seats.take(item, at);
        taken.push((item, at));
    }
    taken.sort_unstable();
    let items: Vec<Item> = taken.iter().map(|(item, _)| *item).collect();
    let mut search = Search::new(seats, &items);
    search.descend(0);
    let found = search.best;
    let tolerance = scale.denominator.checked_div(MILLION).unwrap_or(0);
    let tolerance = tolerance.saturating_mul(i128::from(terms.tolerance));
    let worth = before.saturating_sub(tolerance);
    let found = found.filter(|(total, _)| *total < worth).map(|(_, chosen)| chosen);
    let moves: Vec<(Item, Position)> = match &found {
        Some(chosen) => items.iter().copied().zip(chosen.iter().copied()).collect(),
        None => taken,
    };
    moves.iter().for_each(|(item, at)| seats.put(*item, *at));
    found.map(|_| moves)
}

/// Depth-first search over the places of the channels taken up; the first of equals wins.
///
/// For `k` channels only the `k` cheapest nodes of each are tried. That loses nothing: what two
/// channels cost on one node is at least the sum of what each costs there alone, so a channel that
/// sits elsewhere can change to that one of its `k` cheapest nodes that no other one has.
struct Search<'a, 't> {
    seats: &'a mut Seats<'t>,
    /// Each with the places to try, ascending.
    items: Vec<(Item, Vec<Position>)>,
    chosen: Vec<Position>,
    best: Option<(i128, Vec<Position>)>,
}

impl<'a, 't> Search<'a, 't> {
    fn new(seats: &'a mut Seats<'t>, items: &[Item]) -> Self {
        let places = |item: &Item| {
            let cheapest = seats.cheapest(*item).into_iter().take(items.len());
            (*item, set(cheapest.map(|(_, at)| at).collect()))
        };
        let items = items.iter().map(places).collect();
        Self { seats, items, chosen: Vec::new(), best: None }
    }

    fn descend(&mut self, depth: usize) {
        let Some((item, places)) = self.items.get(depth).cloned() else {
            let total = self.seats.total();
            if self.best.as_ref().is_none_or(|(least, _)| total < *least) {
                self.best = Some((total, self.chosen.clone()));
            }
            return;
        };
        for at in places {
            self.seats.put(item, at);
            self.chosen.push(at);
            self.descend(depth.saturating_add(1));
            self.chosen.pop();
            self.seats.take(item, at);
        }
    }
}
