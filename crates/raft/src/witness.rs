//! The ring of what this member had after each of its last entries. `applier.rs` fills it,
//! `service.rs` answers from it, `diverge.rs` compares.

use std::collections::VecDeque;

/// Entries that the ring remembers.
const RING: usize = 4096;
/// The digest of every entry whose index is a multiple of this is attested.
const DIGEST_EVERY: u64 = 1024;

/// What a member had after one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) index: u64,
    pub(crate) witness: [u8; 16],
    pub(crate) digest: [u8; 16],
}

/// Consecutive entries, the newest ones.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    seen: VecDeque<Seen>,
}

impl Ring {
    /// Remembers one more entry. One that does not follow the last starts the ring anew.
    pub(crate) fn push(&mut self, seen: Seen) {
        if self.newest().is_some_and(|last| last.index.saturating_add(1) != seen.index) {
            self.seen.clear();
        }
        if self.seen.len() == RING {
            self.seen.pop_front();
        }
        self.seen.push_back(seen);
    }

    /// Starts anew, as after a restore.
    pub(crate) fn restart(&mut self, seen: Seen) {
        self.seen.clear();
        self.seen.push_back(seen);
    }

    /// The newest entry.
    pub(crate) fn newest(&self) -> Option<Seen> {
        self.seen.back().copied()
    }

    /// What was there at an index, when it is still known.
    pub(crate) fn at(&self, index: u64) -> Option<Seen> {
        let first = self.seen.front()?.index;
        let place = usize::try_from(index.checked_sub(first)?).ok()?;
        self.seen.get(place).copied()
    }

    /// The newest digest that is due to be attested, and its entry.
    pub(crate) fn newest_digest(&self) -> Option<(u64, [u8; 16])> {
        let newest = self.newest()?;
        let seen = self.at(newest.index / DIGEST_EVERY * DIGEST_EVERY)?;
        Some((seen.index, seen.digest))
    }

    /// The last entries, for a diagnosis.
    pub(crate) fn last(&self, count: usize) -> impl Iterator<Item = &Seen> {
        self.seen.iter().skip(self.seen.len().saturating_sub(count))
    }
}
