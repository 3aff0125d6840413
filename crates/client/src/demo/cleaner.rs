//! A cleaner that has nothing real to clean: settable time and faults, for `quorate worker`.
//! Used by the command line and the tests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::sleep;

use crate::cleaner::{CleanFailure, Cleaner, Cleanup};

/// The demo cleaner.
#[derive(Debug, Default)]
pub struct DemoCleaner {
    /// Time for one clean-up.
    pub takes: Duration,
    /// Every n-th clean-up fails; 0: none.
    pub fail_every: u64,
    begun: AtomicU64,
}

impl DemoCleaner {
    /// A cleaner that needs so long for one, and fails at every n-th; 0: never.
    pub fn new(takes: Duration, fail_every: u64) -> Self {
        Self { takes, fail_every, begun: AtomicU64::new(0) }
    }
}

impl Cleaner for DemoCleaner {
    async fn clean(&self, _cleanup: Cleanup) -> Result<(), CleanFailure> {
        let number = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
        sleep(self.takes).await;
        if self.fail_every > 0 && number.is_multiple_of(self.fail_every) {
            return Err(CleanFailure { reason: String::from("asked to fail now and then") });
        }
        Ok(())
    }
}
