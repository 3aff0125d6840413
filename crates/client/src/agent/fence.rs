//! When this worker must stop by itself: ttl - margin after the send time of the last renewal
//! that was acknowledged, on the monotonic clock. Time is always passed in.
//! Called by engine.rs; handle.rs reads the guard before every commit.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Sent renewals remembered; at four in one ttl this covers any real delay.
const REMEMBERED_MAX: usize = 4_096;

/// How long the session is certain to live.
#[derive(Debug)]
pub(crate) struct Lease {
    lifetime: Duration,
    confirmed_at: Instant,
    sent: VecDeque<(u64, Instant)>,
}

impl Lease {
    /// A session whose registration, sent at `sent_at`, was acknowledged.
    pub(crate) fn new(ttl: Duration, margin: Duration, sent_at: Instant) -> Self {
        let lifetime = ttl.saturating_sub(margin);
        Self { lifetime, confirmed_at: sent_at, sent: VecDeque::new() }
    }

    /// The group's settings changed while the session went on.
    pub(crate) fn set_lifetime(&mut self, ttl: Duration, margin: Duration) {
        self.lifetime = ttl.saturating_sub(margin);
    }

    /// A renewal goes out.
    pub(crate) fn sent(&mut self, seq: u64, at: Instant) {
        if self.sent.len() >= REMEMBERED_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back((seq, at));
    }

    /// The renewal with this seq was acknowledged; so are all before it.
    pub(crate) fn confirmed(&mut self, seq: u64) {
        while let Some((oldest, at)) = self.sent.front().copied() {
            if oldest > seq {
                return;
            }
            if oldest == seq {
                self.confirmed_at = self.confirmed_at.max(at);
            }
            self.sent.pop_front();
        }
    }

    /// The stream of the open renewals broke: they will not be answered.
    pub(crate) fn forget_sent(&mut self) {
        self.sent.clear();
    }

    /// Send time of the oldest renewal without answer.
    pub(crate) fn unanswered_since(&self) -> Option<Instant> {
        self.sent.front().map(|(_, at)| *at)
    }

    /// From then on nothing may run.
    pub(crate) fn fence_at(&self) -> Instant {
        self.confirmed_at + self.lifetime
    }

    pub(crate) fn is_over(&self, now: Instant) -> bool {
        now >= self.fence_at()
    }
}

/// The session as seen by the worker's own tasks, which may run while the agent does not.
#[derive(Debug, Default)]
pub(crate) struct Guard(Mutex<Option<Validity>>);

#[derive(Debug, Clone, Copy)]
struct Validity {
    node: (u64, u64),
    fence_at: Instant,
}

impl Guard {
    /// The session (node id, epoch) is certain to live until `fence_at`.
    pub(crate) fn open(&self, node: (u64, u64), fence_at: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Validity { node, fence_at });
    }

    /// No session.
    pub(crate) fn close(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// How long this very session is certain to live from `now` on; none if it is not.
    pub(crate) fn left(&self, node: (u64, u64), now: Instant) -> Option<Duration> {
        let validity = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let validity = validity.filter(|validity| validity.node == node)?;
        validity.fence_at.checked_duration_since(now).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn the_lease_counts_from_the_send_time_of_what_was_acknowledged() {
        let start = Instant::now();
        let mut lease = Lease::new(ms(3_000), ms(1_000), start);
        assert_eq!(lease.fence_at(), start + ms(2_000));
        lease.sent(1, start + ms(750));
        lease.sent(2, start + ms(1_500));
        assert_eq!(lease.unanswered_since(), Some(start + ms(750)));
        lease.confirmed(1);
        assert_eq!(lease.fence_at(), start + ms(2_750));
        assert!(!lease.is_over(start + ms(2_749)));
        assert!(lease.is_over(start + ms(2_750)));
        lease.confirmed(2);
        assert_eq!(lease.fence_at(), start + ms(3_500));
        assert_eq!(lease.unanswered_since(), None);
    }

    #[test]
    fn an_answer_to_nothing_confirms_nothing() {
        let start = Instant::now();
        let mut lease = Lease::new(ms(3_000), ms(1_000), start);
        lease.sent(5, start + ms(750));
        lease.forget_sent();
        lease.confirmed(5);
        lease.confirmed(9);
        assert_eq!(lease.fence_at(), start + ms(2_000));
    }

    #[test]
    fn a_margin_above_the_ttl_leaves_no_time() {
        let start = Instant::now();
        assert!(Lease::new(ms(1_000), ms(2_000), start).is_over(start));
    }

    #[test]
    fn the_guard_knows_its_session_and_its_end() {
        let (guard, now) = (Guard::default(), Instant::now());
        assert_eq!(guard.left((1, 2), now), None);
        guard.open((1, 2), now + ms(10));
        assert_eq!(guard.left((1, 2), now), Some(ms(10)));
        assert_eq!(guard.left((1, 3), now), None, "another epoch");
        assert_eq!(guard.left((1, 2), now + ms(10)), None, "its end");
        guard.close();
        assert_eq!(guard.left((1, 2), now), None);
    }
}
