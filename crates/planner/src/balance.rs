//! Stage 3: counts are evened out by moving watched channels, each with its next owner, once
//! nothing has changed for a while (12.4). When that is, is in `quiet`. Called by `plan`.

use alloc::vec::Vec;

use state::channel::{Channel, PhaseKind};
use state::choices::Choice;
use state::decision::{Action, Cause, Guard, Move};
use state::epoch::Timestamp;

use crate::quiet::{self, Waits};
use crate::report::{self, Report, Stage, Why};
use crate::targets::{Position, Targets};
use crate::view::View;

/// A channel that may be moved for balance.
struct Pick {
    donor: Position,
    to: Position,
    chosen: Move,
}

/// Moves channels from the fullest candidates to the emptiest, at most `room` of them.
pub(crate) fn balance(
    view: &View<'_>,
    targets: &mut Targets,
    room: usize,
    earlier: usize,
    report: &mut Report,
) -> Vec<Move> {
    let surplus = surplus(targets);
    if surplus == 0 {
        return Vec::new();
    }
    if let Some(why) = holds_back(view, earlier) {
        report.all_wait(Stage::Balance, None, surplus, why);
        return Vec::new();
    }
    let mut spread = Spread::new(view, targets.len());
    let mut moves = Vec::new();
    while moves.len() < room {
        let Some(pick) = spread.next(targets) else { break };
        report.chose(report::Choice {
            channel: pick.chosen.channel.clone(),
            from: targets.node(pick.donor),
            to: match targets.node(pick.to) {
                Some(to) => to,
                None => break,
            },
            cause: Cause::Balance,
            had: targets.count(pick.to),
            candidates: u32::try_from(targets.len().saturating_sub(1)).unwrap_or(u32::MAX),
        });
        targets.remove(pick.donor);
        targets.add(pick.to);
        moves.push(pick.chosen);
    }
    let left = self::surplus(targets);
    if left > 0 {
        let why = match spread.movable_at {
            _ if moves.len() >= room => {
                Why::MovesInFlight { max: view.state.policy().balance_moves_max }
            }
            Some(until) => Why::MovedLately { until },
            None => Why::NoBetterNode,
        };
        report.all_wait(Stage::Balance, None, left, why);
    }
    moves
}

/// Why nothing may be moved for balance now, if so.
fn holds_back(view: &View<'_>, earlier: usize) -> Option<Why> {
    if view.state.choice(Choice::Balance) == "none" {
        return Some(Why::BalanceOff);
    }
    match quiet::waits(view.state) {
        Waits::Off => Some(Why::BalanceOff),
        Waits::Busy { channels } => Some(Why::Busy { channels }),
        _ if earlier > 0 => {
            Some(Why::Busy { channels: u32::try_from(earlier).unwrap_or(u32::MAX) })
        }
        Waits::Until(until) if until > view.time() => Some(Why::Quiet { until }),
        Waits::Until(_) => None,
    }
}

/// How many channels have to move until no candidate has two more than another.
pub(crate) fn surplus(targets: &Targets) -> u64 {
    let (Ok(nodes), total) = (u32::try_from(targets.len()), targets.total()) else { return 0 };
    let nodes = u64::from(nodes);
    if nodes == 0 {
        return 0;
    }
    let (average, mut above) = (total / nodes, total % nodes);
    // The fullest keep the remainder (C13).
    let mut surplus = 0_u64;
    for (count, _) in targets.by_count().rev() {
        let mut keep = average;
        if above > 0 && u64::from(count) > average {
            above = above.saturating_sub(1);
            keep = average.saturating_add(1);
        }
        surplus = surplus.saturating_add(u64::from(count).saturating_sub(keep));
    }
    surplus
}

/// Takes channels from the fullest candidate, each only once.
struct Spread<'a> {
    view: View<'a>,
    /// Channels of each candidate that were not looked at yet, in name order.
    unseen: Vec<Option<Vec<&'a Channel>>>,
    /// When the first of the channels that were moved too lately may be moved again.
    movable_at: Option<Timestamp>,
}

impl<'a> Spread<'a> {
    fn new(view: &View<'a>, candidates: usize) -> Self {
        Self { view: *view, unseen: alloc::vec![None; candidates], movable_at: None }
    }

    /// The next move that lowers the difference between the fullest and the emptiest; among equally
    /// full ones the highest id gives (C13).
    fn next(&mut self, targets: &Targets) -> Option<Pick> {
        let (lowest, _) = targets.by_count().next()?;
        let full = targets.by_count().rev();
        let mut full = full.take_while(|(count, _)| *count > lowest.saturating_add(1));
        full.find_map(|(count, donor)| self.from(targets, donor, count))
    }

    fn from(&mut self, targets: &Targets, donor: Position, count: u32) -> Option<Pick> {
        let from = targets.node(donor)?;
        let now = self.view.time();
        self.load(targets, donor);
        while let Some(channel) = self.unseen.get_mut(donor)?.as_mut()?.pop() {
            let free_at = channel.placed_at.plus_ms(self.view.state.policy().min_move_interval_ms);
            if free_at > now {
                let earliest = self.movable_at.map_or(free_at, |at| at.min(free_at));
                self.movable_at = Some(earliest);
                continue;
            }
            let barred = targets.cooling(channel, now);
            let Some(to) = targets.least(&barred, None) else { continue };
            if targets.count(to).saturating_add(1) >= count {
                continue;
            }
            let name = channel.spec.name.clone();
            let guard = Guard { term: channel.term, phase: PhaseKind::Watched };
            let action = Action::Move { from, to: targets.node(to)? };
            let chosen = Move { channel: name, guard, action, cause: Cause::Balance };
            return Some(Pick { donor, to, chosen });
        }
        None
    }

    fn load(&mut self, targets: &Targets, donor: Position) {
        let (Some(slot), Some(node)) = (self.unseen.get_mut(donor), targets.node(donor)) else {
            return;
        };
        if slot.is_none() {
            let state = self.view.state;
            let watched = state
                .channels_of(node.node)
                .filter_map(|name| state.channel(name))
                .map(AsRef::as_ref)
                .filter(|channel: &&Channel| channel.phase.kind() == PhaseKind::Watched);
            let mut watched: Vec<&Channel> = watched.collect();
            watched.reverse();
            *slot = Some(watched);
        }
    }
}
