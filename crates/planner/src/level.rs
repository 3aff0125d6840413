//! Evens out what a plan has chosen so far where cool-downs and avoided nodes made it uneven: moves
//! choices along paths from a full target to an empty one. It never touches channels with an owner.
//! Called by `repair` as its last step.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;

use crate::repair::Item;
use crate::targets::{Position, Targets};

/// Choices looked at in one plan. Reached only by states in which thousands of channels cool down
/// on many nodes each; the plan then is valid but may be less even than it could be.
const VISITS_MAX: usize = 100_000;

/// One choice that goes to another target.
#[derive(Debug, Clone, Copy)]
struct Step {
    item: usize,
    from: Position,
    to: Position,
}

/// Changes choices until no chain of changes makes counts more even.
pub(crate) fn level(targets: &mut Targets, items: &mut [Item<'_>]) {
    // Dealing alone is as even as can be.
    if items.iter().all(|item| item.excluded.is_empty()) {
        return;
    }
    let mut held = held_by_target(targets, items);
    let mut visits = VISITS_MAX;
    while let Some(path) = find(targets, items, &held, &mut visits) {
        for step in path {
            if let Some(item) = items.get_mut(step.item) {
                item.at = Some(step.to);
            }
            targets.remove(step.from);
            targets.add(step.to);
            if let Some(list) = held.get_mut(step.from) {
                list.retain(|item| *item != step.item);
            }
            if let Some(list) = held.get_mut(step.to) {
                list.push(step.item);
            }
        }
    }
}

/// Choices of this plan by target, without those that are fixed.
fn held_by_target(targets: &Targets, items: &[Item<'_>]) -> Vec<Vec<usize>> {
    let mut held = vec![Vec::new(); targets.len()];
    for (index, item) in items.iter().enumerate() {
        let list = item.at.and_then(|at| held.get_mut(at));
        if let (Some(list), true) = (list, !item.fixed) {
            list.push(index);
        }
    }
    held
}

fn find(
    targets: &Targets,
    items: &[Item<'_>],
    held: &[Vec<usize>],
    visits: &mut usize,
) -> Option<Vec<Step>> {
    let (lowest, _) = targets.by_count().next()?;
    let full = targets.by_count().rev().take_while(|(count, _)| *count > lowest.saturating_add(1));
    let mut full = full.filter(|(_, at)| held.get(*at).is_some_and(|list| !list.is_empty()));
    full.find_map(|(count, from)| path(targets, items, held, from, count, visits))
}

/// The shortest chain of changes from `start` to a target at least two below it.
fn path(
    targets: &Targets,
    items: &[Item<'_>],
    held: &[Vec<usize>],
    start: Position,
    count: u32,
    visits: &mut usize,
) -> Option<Vec<Step>> {
    let mut came: BTreeMap<Position, Step> = BTreeMap::new();
    let mut unseen: Vec<Position> = (0..targets.len()).filter(|at| *at != start).collect();
    let mut queue = VecDeque::from([start]);
    while let Some(from) = queue.pop_front() {
        for item in held.get(from).map_or(&[][..], Vec::as_slice) {
            *visits = visits.checked_sub(1)?;
            let excluded = items.get(*item).map_or(&[][..], |item| item.excluded.as_slice());
            let fresh = queue.len();
            unseen.retain(|to| {
                let barred = excluded.binary_search(to).is_ok();
                if !barred {
                    came.insert(*to, Step { item: *item, from, to: *to });
                    queue.push_back(*to);
                }
                barred
            });
            let low = |at: &&Position| targets.count(**at).saturating_add(1) < count;
            if let Some(end) = queue.iter().skip(fresh).find(low) {
                return Some(walk_back(&came, start, *end));
            }
        }
    }
    None
}

fn walk_back(came: &BTreeMap<Position, Step>, start: Position, end: Position) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut at = end;
    while let Some(step) = came.get(&at).filter(|_| at != start) {
        steps.push(*step);
        at = step.from;
    }
    steps
}
