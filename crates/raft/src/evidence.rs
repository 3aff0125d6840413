//! What a member knows about a leader that is gone: its connection broke and its address refuses
//! a new one. `failover.rs` acts on it, `service.rs` lets it count when others ask for votes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::TcpStream;

use crate::member::Member;

/// How long a leader that said it hands over is believed.
const TRANSFER_LASTS: Duration = Duration::from_secs(2);
const LOOK_DEADLINE: Duration = Duration::from_millis(50);

/// What a try to reach a member tells.
pub(crate) enum Look {
    /// It is there.
    Reached(TcpStream),
    /// Nobody listens: the process is gone. A timeout would not tell that.
    Refused,
    /// Anything else: nothing is known.
    Unclear,
}

/// Tries to reach a member.
pub(crate) async fn look(member: &Member, deadline: Duration) -> Look {
    let reached = TcpStream::connect(member.peer_address.as_str());
    match tokio::time::timeout(deadline, reached).await {
        Ok(Ok(stream)) => Look::Reached(stream),
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => Look::Refused,
        Ok(Err(_)) | Err(_) => Look::Unclear,
    }
}

/// True when a member's address refuses a connection right now.
pub(crate) async fn is_gone(member: &Member) -> bool {
    matches!(look(member, LOOK_DEADLINE).await, Look::Refused)
}

/// When this member heard from a leader last.
pub(crate) struct Heard {
    began: Instant,
    at_ms: AtomicU64,
}

impl Default for Heard {
    fn default() -> Self {
        Self { began: Instant::now(), at_ms: AtomicU64::new(u64::MAX) }
    }
}

impl Heard {
    /// A leader spoke just now.
    pub(crate) fn now(&self) {
        self.at_ms.store(self.elapsed_ms(), Ordering::Relaxed);
    }

    /// Time since then; `None` before the first time.
    pub(crate) fn age(&self) -> Option<Duration> {
        let at = Some(self.at_ms.load(Ordering::Relaxed)).filter(|at| *at != u64::MAX)?;
        Some(Duration::from_millis(self.elapsed_ms().saturating_sub(at)))
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(0)
    }
}

/// Leaders that said they hand over.
#[derive(Default)]
pub(crate) struct Transfers {
    begun: Mutex<Option<(u64, Instant)>>,
}

impl Transfers {
    /// The leader of a term hands over.
    pub(crate) fn begin(&self, term: u64) {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        *begun = Some((term, Instant::now()));
    }

    /// True while the leader of that term hands over.
    pub(crate) fn is_on(&self, term: u64) -> bool {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.is_some_and(|(of, at)| of == term && at.elapsed() < TRANSFER_LASTS)
    }
}
