//! What waits to be cleaned up, as far as this cleaner was told, and when each is due: pure
//! bookkeeping, no IO. It follows the coordinator: what is gone there is dropped here.
//! Called by engine.rs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use backon::ExponentialBackoff;
use tokio::time::Instant;

use crate::call::pauses;
use crate::cleaner::Cleanup;
use crate::proto;

/// Channel, node, epoch, term.
pub(super) type Key = (String, u64, u64, u64);

/// One clean-up with its attempts.
pub(super) struct Job {
    pub(super) cleanup: Cleanup,
    /// Only to be said, not to be done again.
    pub(super) cleaned: bool,
    due: Instant,
    pauses: ExponentialBackoff,
}

/// What waits, and what is under way.
pub(super) struct Book {
    retry: (Duration, Duration),
    waiting: BTreeMap<Key, Job>,
    under_way: BTreeSet<Key>,
    /// Named by the pieces of a full set so far.
    named: BTreeSet<Key>,
}

impl Cleanup {
    pub(super) fn key(&self) -> Key {
        (self.channel.clone(), self.node_id, self.node_epoch, self.term)
    }
}

impl Book {
    pub(super) fn new(retry_min: Duration, retry_max: Duration) -> Self {
        Self {
            retry: (retry_min, retry_max),
            waiting: BTreeMap::new(),
            under_way: BTreeSet::new(),
            named: BTreeSet::new(),
        }
    }

    /// A stream begins: the pieces of a full set follow.
    pub(super) fn begin(&mut self) {
        self.named.clear();
    }

    /// Takes a message in.
    pub(super) fn take(&mut self, message: proto::WatchCleanupsResponse, now: Instant) {
        for added in message.added {
            let cleanup = Cleanup::from(added);
            let key = cleanup.key();
            if message.full {
                self.named.insert(key.clone());
            }
            if !self.under_way.contains(&key) {
                let pauses = pauses(self.retry.0, self.retry.1);
                let new = || Job { cleanup, cleaned: false, due: now, pauses };
                self.waiting.entry(key).or_insert_with(new);
            }
        }
        for gone in message.gone {
            self.waiting.remove(&Cleanup::from(gone).key());
        }
        if message.full && message.last_chunk {
            let named = std::mem::take(&mut self.named);
            self.waiting.retain(|key, _| named.contains(key));
        }
    }

    /// The job that is due for longest; it counts as under way until it is finished or put back.
    pub(super) fn next(&mut self, now: Instant) -> Option<Job> {
        let due = self.waiting.iter().filter(|(_, job)| job.due <= now);
        let key = due.min_by_key(|(_, job)| job.due).map(|(key, _)| key.clone())?;
        let job = self.waiting.remove(&key)?;
        self.under_way.insert(key);
        Some(job)
    }

    /// When the next one is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.waiting.values().map(|job| job.due).min()
    }

    /// Done, here or by somebody else.
    pub(super) fn finished(&mut self, key: &Key) {
        self.under_way.remove(key);
    }

    /// Failed: tried again after a pause.
    pub(super) fn put_back(&mut self, mut job: Job, now: Instant) {
        let key = job.cleanup.key();
        job.due = now + job.pauses.next().unwrap_or(self.retry.1);
        self.under_way.remove(&key);
        self.waiting.insert(key, job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleanup(channel: &str) -> proto::Cleanup {
        let owner = proto::Owner { node_id: 1, node_epoch: 2, ..Default::default() };
        let former_owner = Some(owner);
        proto::Cleanup { channel: channel.to_owned(), former_owner, term: 5, ..Default::default() }
    }

    fn told(
        full: bool,
        last_chunk: bool,
        added: &[&str],
        gone: &[&str],
    ) -> proto::WatchCleanupsResponse {
        let all = |names: &[&str]| names.iter().map(|name| cleanup(name)).collect();
        let (added, gone) = (all(added), all(gone));
        proto::WatchCleanupsResponse { full, last_chunk, added, gone, ..Default::default() }
    }

    fn book() -> (Book, Instant) {
        (Book::new(Duration::from_millis(10), Duration::from_secs(1)), Instant::now())
    }

    fn channel(job: Option<Job>) -> Option<String> {
        job.map(|job| job.cleanup.channel)
    }

    #[tokio::test]
    async fn each_is_given_out_once() {
        let (mut book, now) = book();
        book.take(told(true, true, &["a", "b"], &[]), now);
        book.take(told(false, true, &["b"], &[]), now);
        let first = book.next(now).unwrap();
        assert_eq!(channel(book.next(now)), Some("b".to_owned()));
        assert_eq!(channel(book.next(now)), None);
        book.take(told(true, true, &["a", "b"], &[]), now);
        assert_eq!(channel(book.next(now)), None, "under way");
        book.finished(&first.cleanup.key());
        book.take(told(true, true, &["a"], &[]), now);
        assert_eq!(channel(book.next(now)), Some("a".to_owned()), "the coordinator knows better");
    }

    #[tokio::test]
    async fn what_is_gone_or_not_in_the_full_set_is_dropped() {
        let (mut book, now) = book();
        book.take(told(true, true, &["a", "b", "c"], &[]), now);
        book.take(told(false, true, &[], &["a"]), now);
        book.begin();
        book.take(told(true, false, &["c"], &[]), now);
        book.take(told(true, true, &["d"], &[]), now);
        assert_eq!(channel(book.next(now)), Some("c".to_owned()));
        assert_eq!(channel(book.next(now)), Some("d".to_owned()));
        assert_eq!(channel(book.next(now)), None);
    }

    #[tokio::test]
    async fn a_failure_waits_and_lets_others_go_first() {
        let (mut book, now) = book();
        book.take(told(true, true, &["a", "b"], &[]), now);
        let mut failed = book.next(now).unwrap();
        failed.cleaned = true;
        book.put_back(failed, now);
        assert_eq!(channel(book.next(now)), Some("b".to_owned()));
        assert_eq!(channel(book.next(now)), None);
        let due = book.due().unwrap();
        assert!(due > now);
        let again = book.next(due).unwrap();
        assert!(again.cleaned, "what was done is not done again");
        book.put_back(again, due);
        assert!(book.due().unwrap() >= due + Duration::from_millis(20), "longer each time");
    }
}
