//! The newest entries in memory, bounded by bytes. What is not written yet is never dropped, so
//! an entry can be read as soon as it was appended. Owned by `store.rs`.

use std::collections::VecDeque;

use crate::log::record::entry_bytes;
use crate::types::Entry;

/// Consecutive entries, the newest of the log.
pub(crate) struct Cache {
    entries: VecDeque<Entry>,
    bytes: usize,
    budget: usize,
    /// First index that the backend does not hold yet.
    unwritten: u64,
}

impl Cache {
    pub(crate) fn new(budget: usize) -> Self {
        Self { entries: VecDeque::new(), bytes: 0, budget, unwritten: 0 }
    }

    /// First index held here.
    pub(crate) fn first(&self) -> Option<u64> {
        self.entries.front().map(|entry| entry.log_id.index)
    }

    /// Appends; an entry that does not follow the last one starts the cache anew.
    pub(crate) fn push(&mut self, entry: Entry) {
        let follows = self
            .entries
            .back()
            .is_none_or(|last| last.log_id.index.saturating_add(1) == entry.log_id.index);
        if !follows {
            self.entries.clear();
            self.bytes = 0;
        }
        self.bytes += entry_bytes(&entry);
        self.entries.push_back(entry);
    }

    /// Forgets the entries at `from` and behind it.
    pub(crate) fn truncate(&mut self, from: u64) {
        while self.entries.back().is_some_and(|last| last.log_id.index >= from) {
            if let Some(entry) = self.entries.pop_back() {
                self.bytes -= entry_bytes(&entry);
            }
        }
        self.unwritten = self.unwritten.min(from);
    }

    /// Forgets the entries up to and including `index`.
    pub(crate) fn forget(&mut self, index: u64) {
        while self.first().is_some_and(|first| first <= index) {
            self.drop_first();
        }
    }

    /// The backend holds everything before `next`: what is over the budget may go.
    pub(crate) fn written(&mut self, next: u64) {
        self.unwritten = self.unwritten.max(next);
        while self.bytes > self.budget && self.first().is_some_and(|first| first < self.unwritten) {
            self.drop_first();
        }
    }

    /// Clones the entries from `from` on and before `to` until `max_bytes` are reached.
    pub(crate) fn read(&self, from: u64, to: u64, max_bytes: usize, out: &mut Vec<Entry>) {
        let Some(first) = self.first() else { return };
        let skip = usize::try_from(from.saturating_sub(first)).unwrap_or(usize::MAX);
        let mut bytes = 0_usize;
        for entry in self.entries.range(skip.min(self.entries.len())..) {
            bytes = bytes.saturating_add(entry_bytes(entry));
            if entry.log_id.index >= to || (bytes > max_bytes && !out.is_empty()) {
                break;
            }
            out.push(entry.clone());
        }
    }

    fn drop_first(&mut self) {
        if let Some(entry) = self.entries.pop_front() {
            self.bytes -= entry_bytes(&entry);
        }
    }
}
