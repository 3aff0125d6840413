//! Stage 1: channels without an owner. Planned targets first, then channels that not every
//! candidate may get, then the rest by 11.7 A. How channels are dealt is in `deal`, how paths are
//! evened in `level`. Called by `plan`.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Reverse;

use state::channel::{Channel, Phase, PhaseKind};
use state::decision::{Action, Cause, Guard, Move};
use state::limits;

use crate::chosen;
use crate::deal::deal;
use crate::level::level;
use crate::pchannel::{Pchannels, RowId};
use crate::report::{Choice, Report, Stage, Why};
use crate::targets::{Excluded, Position, Targets};
use crate::view::View;

/// A channel that gets an owner in this plan.
#[derive(Debug)]
pub(crate) struct Item<'a> {
    pub(crate) channel: &'a Arc<Channel>,
    /// Candidates it may not get, ascending.
    pub(crate) excluded: Vec<Position>,
    pub(crate) cause: Cause,
    pub(crate) at: Option<Position>,
    /// An earlier decision promised it, or a policy chosen by name gave it.
    pub(crate) fixed: bool,
    row: RowId,
}

/// Gives buffered channels an owner, at most `moves_max` of them.
pub(crate) fn repair(
    view: &View<'_>,
    targets: &mut Targets,
    moves_max: usize,
    report: &mut Report,
) -> Vec<Move> {
    let total = u64::from(view.state.counts().buffered);
    if total == 0 {
        return Vec::new();
    }
    if let Some(until) = view.settles_until() {
        report.all_wait(Stage::Repair, None, total, Why::Settling { until });
        return Vec::new();
    }
    if targets.is_empty() {
        report.all_wait(Stage::Repair, None, total, Why::NoNode);
        return Vec::new();
    }
    let had: Vec<u32> = targets.all().iter().map(|target| target.count).collect();
    let mut pchannels = Pchannels::default();
    let mut items = collect(view, targets, &mut pchannels, moves_max, report);
    pchannels.count_placed(view, targets);
    take_planned(&items, targets, &mut pchannels);
    chosen::place(view, &mut items, targets);
    place_bound(&mut items, targets, &mut pchannels);
    place_free(&mut items, targets, &mut pchannels);
    level(targets, &mut items);
    items.iter().filter_map(|item| chosen(item, targets, &had, report)).collect()
}

/// The channels that can be placed now, in name order (C1), with what is barred for each.
fn collect<'a>(
    view: &View<'a>,
    targets: &Targets,
    pchannels: &mut Pchannels<'a>,
    moves_max: usize,
    report: &mut Report,
) -> Vec<Item<'a>> {
    let total = usize::try_from(view.state.counts().buffered).unwrap_or(usize::MAX);
    let mut items = crate::list_for(total, moves_max);
    let now = view.time();
    let mut seen = 0_u64;
    for channel in view.state.buffered().filter_map(|name| view.state.channel(name)) {
        if items.len() >= moves_max {
            let left = u64::from(view.state.counts().buffered).saturating_sub(seen);
            report.all_wait(Stage::Repair, None, left, Why::Deferred { moves_max });
            break;
        }
        seen = seen.saturating_add(1);
        if channel.former_owners.len() >= limits::FORMER_OWNERS_MAX {
            report.waits(Stage::Repair, &channel.spec.name, Why::FormerOwners);
            continue;
        }
        let Some(excluded) = Excluded::of(channel, targets, now) else {
            let until = targets.cooled_at(channel, now).unwrap_or(now);
            report.waits(Stage::Repair, &channel.spec.name, Why::CoolingDown { until });
            continue;
        };
        let planned = planned(channel, targets).filter(|at| {
            let cooling = targets.cooling(channel, now);
            cooling.binary_search(at).is_err()
        });
        let cause = match (planned, excluded.given_back) {
            (Some(_), _) => Cause::Planned,
            (None, true) => Cause::GivenBack,
            (None, false) => Cause::Unassigned,
        };
        let row = pchannels.row_of(channel);
        let (at, fixed) = (planned, planned.is_some());
        items.push(Item { channel, excluded: excluded.positions, cause, at, fixed, row });
    }
    items
}

fn planned(channel: &Channel, targets: &Targets) -> Option<Position> {
    match channel.phase {
        Phase::Buffered { planned: Some(to) } => targets.find(to),
        _ => None,
    }
}

fn take_planned(items: &[Item<'_>], targets: &mut Targets, pchannels: &mut Pchannels<'_>) {
    for item in items {
        if let Some(at) = item.at {
            targets.add(at);
            pchannels.add(item.row, at);
        }
    }
}

/// Channels that some candidate may not get: the least free first, while every node is still open.
fn place_bound(items: &mut [Item<'_>], targets: &mut Targets, pchannels: &mut Pchannels<'_>) {
    let mut bound: Vec<&mut Item<'_>> =
        items.iter_mut().filter(|item| item.at.is_none() && !item.excluded.is_empty()).collect();
    bound.sort_by_key(|item| Reverse(item.excluded.len()));
    for item in bound {
        item.at = targets.least(&item.excluded, pchannels.row(item.row));
        if let Some(at) = item.at {
            targets.add(at);
            pchannels.add(item.row, at);
        }
    }
}

/// Channels that every candidate may get.
fn place_free(items: &mut [Item<'_>], targets: &mut Targets, pchannels: &mut Pchannels<'_>) {
    let free = |item: &&mut Item<'_>| item.at.is_none() && item.excluded.is_empty();
    let rows: Vec<RowId> = items.iter_mut().filter(free).map(|item| item.row).collect();
    let dealt = deal(targets, &rows, pchannels);
    for (item, at) in items.iter_mut().filter(free).zip(dealt) {
        item.at = Some(at);
    }
}

fn chosen(item: &Item<'_>, targets: &Targets, had: &[u32], report: &mut Report) -> Option<Move> {
    let at = item.at?;
    let to = targets.node(at)?;
    let channel = item.channel.spec.name.clone();
    let candidates = targets.len().saturating_sub(item.excluded.len());
    report.chose(Choice {
        channel: channel.clone(),
        from: None,
        to,
        cause: item.cause,
        had: had.get(at).copied().unwrap_or(0),
        candidates: u32::try_from(candidates).unwrap_or(u32::MAX),
    });
    let guard = Guard { term: item.channel.term, phase: PhaseKind::Buffered };
    Some(Move { channel, guard, action: Action::Assign { to }, cause: item.cause })
}
