//! How many channels of one physical channel each candidate has: the tie-break of 18.6.
//! Counts only physical channels of which a channel is to be placed; the stages ask and update.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Ordering;

use state::channel::{Channel, Phase};
use state::ids::Text;

use crate::targets::{Position, Targets};
use crate::view::View;

/// Above this many channels the ones already placed are not looked at: the tie-break is not worth
/// reading a large state for each plan. What the plan itself chooses still counts.
const SCANNED_MAX: usize = 50_000;

/// Counts of one physical channel, ascending by position; zeros are left out.
#[derive(Debug, Default, Clone)]
pub(crate) struct Row(Vec<(Position, u32)>);

impl Row {
    /// Reads counts at ascending positions in one pass.
    pub(crate) fn cursor(&self) -> Cursor<'_> {
        Cursor(&self.0)
    }

    fn change(&mut self, at: Position, change: impl Fn(u32) -> u32) {
        match self.0.binary_search_by_key(&at, |(position, _)| *position) {
            Ok(slot) => {
                if let Some((_, count)) = self.0.get_mut(slot) {
                    *count = change(*count);
                }
            }
            Err(slot) => self.0.insert(slot, (at, change(0))),
        }
    }

    /// The index in `pool` (ascending positions) with the fewest, the first among equals.
    pub(crate) fn fewest(&self, pool: &[Position]) -> Option<usize> {
        let mut cursor = self.cursor();
        let mut best: Option<(u32, usize)> = None;
        for (slot, at) in pool.iter().enumerate() {
            let same = cursor.get(*at);
            if same == 0 {
                return Some(slot);
            }
            if best.is_none_or(|(fewest, _)| same < fewest) {
                best = Some((same, slot));
            }
        }
        best.map(|(_, slot)| slot)
    }
}

/// The part of a row that was not passed yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'r>(&'r [(Position, u32)]);

impl Cursor<'_> {
    /// How many this candidate has; positions must not descend.
    pub(crate) fn get(&mut self, at: Position) -> u32 {
        while let Some(((position, count), rest)) = self.0.split_first() {
            match (*position).cmp(&at) {
                Ordering::Less => self.0 = rest,
                Ordering::Equal => return *count,
                Ordering::Greater => return 0,
            }
        }
        0
    }
}

/// Which row belongs to a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowId(usize);

/// The rows of the physical channels that matter for this plan.
#[derive(Debug, Default)]
pub(crate) struct Pchannels<'a> {
    ids: BTreeMap<&'a Text, RowId>,
    rows: Vec<Row>,
}

impl<'a> Pchannels<'a> {
    /// The row of this channel's physical channel, made if it is new.
    pub(crate) fn row_of(&mut self, channel: &'a Channel) -> RowId {
        let next = RowId(self.rows.len());
        let row = *self.ids.entry(&channel.spec.pchannel).or_insert(next);
        if row == next {
            self.rows.push(Row::default());
        }
        row
    }

    /// Counts what the candidates have already, as far as a row for it exists.
    pub(crate) fn count_placed(&mut self, view: &View<'a>, targets: &Targets) {
        if view.state.channel_count() > SCANNED_MAX || self.rows.is_empty() {
            return;
        }
        for channel in view.state.channels() {
            let (Phase::ToWatch { owner, .. } | Phase::Watched { owner, .. }) = channel.phase
            else {
                continue;
            };
            if let Some(row) = self.ids.get(&channel.spec.pchannel).copied()
                && let Some(at) = targets.position(owner.node)
            {
                self.add(row, at);
            }
        }
    }

    pub(crate) fn row(&self, row: RowId) -> Option<&Row> {
        self.rows.get(row.0)
    }

    pub(crate) fn add(&mut self, row: RowId, at: Position) {
        if let Some(row) = self.rows.get_mut(row.0) {
            row.change(at, |count| count.saturating_add(1));
        }
    }
}
