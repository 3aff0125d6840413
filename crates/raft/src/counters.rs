//! Counters of a running member. Everybody adds, `handle.rs` reads; nothing decides by them.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::status::Counters;

/// One number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    pub(crate) fn max(&self, value: u64) {
        self.0.fetch_max(value, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// All counters.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    pub(crate) applied_entries: Counter,
    pub(crate) log_syncs: Counter,
    pub(crate) sync_max_us: Counter,
    pub(crate) log_written_bytes: Counter,
    pub(crate) proposals: Counter,
    pub(crate) proposals_refused: Counter,
    pub(crate) read_rounds: Counter,
    pub(crate) reads: Counter,
    pub(crate) attestations_checked: Counter,
    pub(crate) attestations_skipped: Counter,
    pub(crate) snapshots_written: Counter,
    pub(crate) snapshots_installed: Counter,
    pub(crate) fast_elections: Counter,
}

impl Meters {
    pub(crate) fn read(&self) -> Counters {
        Counters {
            applied_entries: self.applied_entries.get(),
            log_syncs: self.log_syncs.get(),
            sync_max_us: self.sync_max_us.get(),
            log_written_bytes: self.log_written_bytes.get(),
            proposals: self.proposals.get(),
            proposals_refused: self.proposals_refused.get(),
            read_rounds: self.read_rounds.get(),
            reads: self.reads.get(),
            attestations_checked: self.attestations_checked.get(),
            attestations_skipped: self.attestations_skipped.get(),
            snapshots_written: self.snapshots_written.get(),
            snapshots_installed: self.snapshots_installed.get(),
            fast_elections: self.fast_elections.get(),
        }
    }
}
