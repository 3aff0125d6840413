//! The only file that reads the system clock. Log time is derived here; nothing else in the server
//! may. `Timestamp` (log time, ms) and `Instant` (local) never mix outside this file.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use state::epoch::Timestamp;

/// Local monotonic time, and the log time a leader stamps.
///
/// A stamp is `base + monotonic time since the leadership began`, with
/// `base = max(log time, wall clock)` at that moment: it never runs backwards and never stalls on a
/// wall clock that was set back.
#[derive(Debug)]
pub struct Clock {
    origin: Instant,
    /// Log time at `origin`, in milliseconds; moved forward only.
    base_ms: AtomicU64,
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock {
    /// A clock whose log time starts at the wall clock.
    #[must_use]
    pub fn new() -> Self {
        Self { origin: Instant::now(), base_ms: AtomicU64::new(wall_ms()) }
    }

    /// Milliseconds since this process made the clock. Monotonic, local.
    #[must_use]
    pub fn local_ms(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// A leadership begins: from now on stamps are at least `log_now` and at least the wall clock.
    pub fn lead_from(&self, log_now: Timestamp) {
        let base = log_now.0.max(wall_ms()).saturating_sub(self.local_ms());
        self.base_ms.fetch_max(base, Ordering::AcqRel);
    }

    /// The stamp for an entry proposed now.
    #[must_use]
    pub fn stamp(&self) -> Timestamp {
        Timestamp(self.base_ms.load(Ordering::Acquire).saturating_add(self.local_ms()))
    }

    /// How long until log time reaches `due`; zero when it has.
    #[must_use]
    pub fn until(&self, due: Timestamp) -> Duration {
        Duration::from_millis(due.since(self.stamp()))
    }
}

/// The wall clock in milliseconds since the Unix epoch; 0 when it is set before 1970.
#[must_use]
pub fn wall_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| u64::try_from(since.as_millis()).ok())
        .unwrap_or(0)
}
