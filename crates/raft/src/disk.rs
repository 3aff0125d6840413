//! Watches the free space of the disk under the data directory. Proposals and snapshots ask before
//! they need room, so that the log never meets a full disk.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Looks at most once a second.
pub(crate) struct DiskWatch {
    dir: PathBuf,
    low_bytes: u64,
    began: Instant,
    next_look_ms: AtomicU64,
    low: AtomicBool,
}

impl DiskWatch {
    pub(crate) fn new(dir: PathBuf, low_bytes: u64) -> Self {
        let next_look_ms = AtomicU64::new(0);
        Self { dir, low_bytes, began: Instant::now(), next_look_ms, low: AtomicBool::new(false) }
    }

    /// True while less room is left than the watermark asks for.
    pub(crate) fn is_low(&self) -> bool {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        if now >= self.next_look_ms.load(Ordering::Relaxed) {
            let pause = u64::try_from(LOOK_EVERY.as_millis()).unwrap_or(u64::MAX);
            self.next_look_ms.store(now.saturating_add(pause), Ordering::Relaxed);
            if let Ok(stat) = rustix::fs::statvfs(&self.dir) {
                let free = stat.f_bavail.saturating_mul(stat.f_frsize);
                self.low.store(free < self.low_bytes, Ordering::Relaxed);
            }
        }
        self.low.load(Ordering::Relaxed)
    }
}
