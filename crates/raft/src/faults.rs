//! Cuts links between members on purpose. Only tests and simulations cut; a default value cuts
//! nothing. Asked by `network.rs` and `failover.rs` before each call and while a stream runs.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

/// Links that are cut; clones share them.
#[derive(Clone, Debug)]
pub struct Faults {
    cuts: Arc<Mutex<BTreeSet<(u64, u64)>>>,
    changed: watch::Sender<u64>,
}

impl Default for Faults {
    fn default() -> Self {
        Self { cuts: Arc::default(), changed: watch::Sender::new(0) }
    }
}

impl Faults {
    /// Lets nothing through from one member to another; the other way stays open.
    pub fn cut(&self, from: u64, to: u64) {
        self.edit(|cuts| {
            cuts.insert((from, to));
        });
    }

    /// Cuts a member from all others, both ways.
    pub fn isolate(&self, member: u64, others: &[u64]) {
        self.edit(|cuts| {
            for &other in others.iter().filter(|&&other| other != member) {
                cuts.insert((member, other));
                cuts.insert((other, member));
            }
        });
    }

    /// Opens all links.
    pub fn heal(&self) {
        self.edit(BTreeSet::clear);
    }

    pub(crate) fn is_cut(&self, from: u64, to: u64) -> bool {
        self.cuts.lock().unwrap_or_else(PoisonError::into_inner).contains(&(from, to))
    }

    /// Ends when the link is cut.
    pub(crate) async fn cut_of(&self, from: u64, to: u64) {
        let mut changed = self.changed.subscribe();
        while !self.is_cut(from, to) {
            if changed.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn edit(&self, change: impl FnOnce(&mut BTreeSet<(u64, u64)>)) {
        change(&mut self.cuts.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.send_modify(|version| *version = version.wrapping_add(1));
    }
}
