//! Dealing channels that any candidate may get: 11.7 A (round robin over the lacking targets),
//! with a quota for each target so that the documented overshoot cannot happen.
//! Called by `repair`.

use alloc::vec::Vec;

use crate::pchannel::{Pchannels, RowId};
use crate::targets::{Position, Targets};

/// What a target may still take.
#[derive(Debug, Clone, Copy)]
struct Hand {
    at: Position,
    /// Count before dealing: the order of 11.7.
    count: u32,
    /// Up to the level that all filled targets reach.
    quota: u32,
    /// It took one of the channels that are left over above that level.
    extra: bool,
}

/// Deals `rows.len()` channels, in order; returns the target of each.
///
/// The result is as even as counts can get: a target that receives ends at most one above the
/// lowest. Empty when there is no target.
pub(crate) fn deal(
    targets: &mut Targets,
    rows: &[RowId],
    pchannels: &mut Pchannels<'_>,
) -> Vec<Position> {
    let mut dealt = crate::list_for(rows.len(), rows.len());
    let (mut hands, extras) = hands(targets, rows.len());
    let mut dealer = Dealer { rows: rows.iter().copied(), extras, pchannels, dealt: &mut dealt };
    let per = average(targets, rows.len());
    let lacking = hands.partition_point(|hand| u64::from(hand.count) < per);
    let others = hands.split_off(lacking);
    dealer.rounds(hands);
    dealer.rounds(others);
    for at in &dealt {
        targets.add(*at);
    }
    dealt
}

/// `per` of 11.7: the floor of the mean after dealing.
fn average(targets: &Targets, channels: usize) -> u64 {
    let sum: u64 = targets.all().iter().map(|target| u64::from(target.count)).sum();
    let total = sum.saturating_add(u64::try_from(channels).unwrap_or(u64::MAX));
    total.checked_div(u64::try_from(targets.len()).unwrap_or(u64::MAX)).unwrap_or(0)
}

/// Targets ascending by (count, id) with their quotas, and how many channels are left over.
fn hands(targets: &Targets, channels: usize) -> (Vec<Hand>, u32) {
    let ascending: Vec<(u32, Position)> = targets.by_count().collect();
    let channels = u64::try_from(channels).unwrap_or(u64::MAX);
    let (mut sum, mut filled, mut total) = (0_u64, 0_u64, channels);
    for (count, _) in &ascending {
        let (with, next) = (sum.saturating_add(u64::from(*count)), filled.saturating_add(1));
        if u64::from(*count).saturating_mul(next) > with.saturating_add(channels) {
            break;
        }
        (sum, filled, total) = (with, next, with.saturating_add(channels));
    }
    let level = total.checked_div(filled).unwrap_or(0);
    let extras = total.checked_rem(filled).unwrap_or(0);
    let hand = |(count, at): &(u32, Position)| {
        let quota = u32::try_from(level.saturating_sub(u64::from(*count))).unwrap_or(u32::MAX);
        Hand { at: *at, count: *count, quota, extra: u64::from(*count) > level }
    };
    (ascending.iter().map(hand).collect(), u32::try_from(extras).unwrap_or(u32::MAX))
}

struct Dealer<'d, 'p, I> {
    rows: I,
    extras: u32,
    pchannels: &'d mut Pchannels<'p>,
    dealt: &'d mut Vec<Position>,
}

impl<I: ExactSizeIterator<Item = RowId>> Dealer<'_, '_, I> {
    /// Round robin over these targets until nothing is left to deal or none may take more.
    fn rounds(&mut self, mut hands: Vec<Hand>) {
        while self.rows.len() > 0 {
            hands.retain(|hand| self.may_take(hand));
            if hands.is_empty() {
                return;
            }
            for class in hands.chunk_by_mut(|a, b| a.count == b.count) {
                self.class(class);
            }
        }
    }

    fn may_take(&self, hand: &Hand) -> bool {
        hand.quota > 0 || (self.extras > 0 && !hand.extra)
    }

    /// One channel for each target of this class: equal count, so the tie-break decides who is
    /// next.
    fn class(&mut self, class: &mut [Hand]) {
        let mut pool: Vec<Position> = class.iter().map(|hand| hand.at).collect();
        // Whether a target in the pool may have lost its claim: what was left over is dealt out.
        let mut recheck = true;
        while self.rows.len() > 0 {
            if recheck {
                pool.retain(|at| hand_of(class, *at).is_some_and(|hand| self.may_take(hand)));
                recheck = false;
            }
            if pool.is_empty() {
                return;
            }
            let Some(row) = self.rows.next() else { return };
            let slot = self.pchannels.row(row).and_then(|row| row.fewest(&pool)).unwrap_or(0);
            let at = pool.remove(slot);
            let hand = class.binary_search_by_key(&at, |hand| hand.at).ok();
            if let Some(hand) = hand.and_then(|slot| class.get_mut(slot)) {
                recheck = self.take(hand);
            }
            self.pchannels.add(row, at);
            self.dealt.push(at);
        }
    }

    /// True: this was the last channel above the level.
    fn take(&mut self, hand: &mut Hand) -> bool {
        if hand.quota > 0 {
            hand.quota = hand.quota.saturating_sub(1);
            return false;
        }
        hand.extra = true;
        self.extras = self.extras.saturating_sub(1);
        self.extras == 0
    }
}

/// Positions of a class are ascending: equal counts are ordered by id.
fn hand_of(class: &[Hand], at: Position) -> Option<&Hand> {
    class.binary_search_by_key(&at, |hand| hand.at).ok().and_then(|slot| class.get(slot))
}
