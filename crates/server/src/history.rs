//! The recent event records in memory, contiguous by revision. Older ones are in the event files
//! (`history_files`). Pushed by the machine, read by watches, dispatch and explain. Never blocks
//! apply.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use state::epoch::Revision;
use state::event::EventRecord;

use crate::limits;

/// An event record and the log entry that held its command.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Log index of the entry.
    pub index: u64,
    /// What happened.
    pub record: Arc<EventRecord>,
}

/// What a reader gets that asks for the records after a revision.
#[derive(Debug, Clone)]
pub enum After {
    /// The next ones, oldest first; empty: there are none yet.
    Records(Vec<Recorded>),
    /// The next ones are no longer in memory; the oldest kept is this one.
    Gone {
        /// First revision in memory.
        oldest: Revision,
    },
}

#[derive(Debug, Default)]
struct Ring {
    records: VecDeque<Recorded>,
    /// The last revision that was pushed or restored.
    last: Revision,
}

/// The last records of this member.
#[derive(Debug, Default)]
pub struct History {
    ring: Mutex<Ring>,
}

impl History {
    fn ring(&self) -> MutexGuard<'_, Ring> {
        // A poisoned ring is still a ring: no code that holds the lock leaves it half changed.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in the record of a command that was just applied.
    pub fn push(&self, index: u64, record: Arc<EventRecord>) {
        let mut ring = self.ring();
        if ring.last.next() != Some(record.revision) {
            ring.records.clear();
        }
        ring.last = record.revision;
        if ring.records.len() >= limits::HISTORY_RECORDS_MAX {
            ring.records.pop_front();
        }
        ring.records.push_back(Recorded { index, record });
    }

    /// The state was replaced by a snapshot at this revision: what came before is not here.
    pub fn restored(&self, revision: Revision) {
        let mut ring = self.ring();
        ring.records.clear();
        ring.last = revision;
    }

    /// The newest revision, and the oldest whose record is in memory.
    #[must_use]
    pub fn bounds(&self) -> (Revision, Option<Revision>) {
        let ring = self.ring();
        (ring.last, ring.records.front().map(|first| first.record.revision))
    }

    /// Up to `most` records that follow `revision`.
    #[must_use]
    pub fn after(&self, revision: Revision, most: usize) -> After {
        let ring = self.ring();
        if revision >= ring.last {
            return After::Records(Vec::new());
        }
        let Some(first) = ring.records.front().map(|first| first.record.revision) else {
            return After::Gone { oldest: ring.last };
        };
        // Revisions in the ring are contiguous, so the position is a difference.
        let Some(skip) = (revision.0 + 1).checked_sub(first.0) else {
            return After::Gone { oldest: first };
        };
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        After::Records(ring.records.iter().skip(skip).take(most).cloned().collect())
    }

    /// The record of this revision, if it is in memory.
    #[must_use]
    pub fn get(&self, revision: Revision) -> Option<Recorded> {
        let ring = self.ring();
        let first = ring.records.front()?.record.revision;
        let at = usize::try_from(revision.0.checked_sub(first.0)?).ok()?;
        ring.records.get(at).cloned()
    }

    /// The newest `most` records that `wanted` accepts, newest first.
    #[must_use]
    pub fn newest(&self, most: usize, wanted: impl Fn(&EventRecord) -> bool) -> Vec<Recorded> {
        let ring = self.ring();
        ring.records
            .iter()
            .rev()
            .filter(|entry| wanted(&entry.record))
            .take(most)
            .cloned()
            .collect()
    }
}
