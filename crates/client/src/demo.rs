//! A worker that consumes nothing real: settable times, memory and faults, for `quorate worker`.
//! It commits a rising count as the position of every channel, so that lost work would show.
//! Used by the command line, the drills and the tests.

mod cleaner;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
pub use cleaner::DemoCleaner;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use crate::agent::SessionHandle;
use crate::error::Error;
use crate::proto;
use crate::worker::{Assignment, ReleaseFailure, WatchFailure, Worker};

/// Steps in which a demo watch makes progress.
const WATCH_STEPS: u32 = 10;

/// What the demo worker does wrong, on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DemoFault {
    /// Nothing.
    #[default]
    None,
    /// No watch ever ends.
    HangWatch,
    /// No release ever ends; a stop does.
    HangRelease,
    /// Every watch fails and leaves something behind.
    FailWatch,
    /// Every release fails.
    FailRelease,
    /// Says that it watches at once, and that it released, while it goes on committing under the
    /// claim it once had. The coordinator must refuse all of that.
    Lie,
}

/// How the demo worker behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoOptions {
    /// Time until a watched channel is being consumed.
    pub watch: Duration,
    /// Time to release one.
    pub release: Duration,
    /// A commit of every consumed channel this often; zero: none.
    pub commit_every: Duration,
    /// Memory held for each channel, in bytes.
    pub channel_bytes: usize,
    /// Every n-th watch fails; 0: none.
    pub fail_every: u64,
    /// What else goes wrong.
    pub fault: DemoFault,
}

impl Default for DemoOptions {
    fn default() -> Self {
        Self {
            watch: Duration::from_millis(100),
            release: Duration::from_millis(50),
            commit_every: Duration::ZERO,
            channel_bytes: 0,
            fail_every: 0,
            fault: DemoFault::None,
        }
    }
}

/// What happened to a commit of the demo worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DemoEvent {
    /// The coordinator recorded the position.
    Committed {
        /// Name of the channel.
        channel: String,
        /// Term of the claim.
        term: u64,
        /// The position.
        count: u64,
    },
    /// The coordinator refused the claim, or the worker's own session forbids it.
    CommitRefused {
        /// Name of the channel.
        channel: String,
        /// Term of the claim.
        term: u64,
        /// Stable reason, such as `NOT_OWNER`; `FENCED` if nothing was sent.
        reason: String,
    },
}

impl fmt::Display for DemoEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Committed { channel, term, count } => {
                write!(f, "committed {channel} t{term} at {count}")
            }
            Self::CommitRefused { channel, term, reason } => {
                write!(f, "commit refused {channel} t{term}: {reason}")
            }
        }
    }
}

type Observe = Arc<dyn Fn(&DemoEvent) + Send + Sync>;

/// The demo worker.
pub struct DemoWorker {
    options: DemoOptions,
    observe: Observe,
    watches: AtomicU64,
    progress: Mutex<BTreeMap<(String, u64), u64>>,
    consumers: Mutex<BTreeMap<String, Consumer>>,
}

/// What runs for one channel.
struct Consumer {
    term: u64,
    cancel: CancellationToken,
    _memory: Vec<u8>,
}

impl DemoWorker {
    /// A worker that tells `observe` about each commit; that must return at once.
    pub fn new(options: DemoOptions, observe: impl Fn(&DemoEvent) + Send + Sync + 'static) -> Self {
        Self {
            options,
            observe: Arc::new(observe),
            watches: AtomicU64::new(0),
            progress: Mutex::default(),
            consumers: Mutex::default(),
        }
    }

    /// Channels being consumed, with their terms.
    pub fn consumed(&self) -> BTreeMap<String, u64> {
        let consumers = self.consumers.lock().unwrap_or_else(PoisonError::into_inner);
        consumers.iter().map(|(channel, consumer)| (channel.clone(), consumer.term)).collect()
    }

    async fn load(&self, channel: &str, term: u64) {
        let key = (channel.to_owned(), term);
        for step in 1..=WATCH_STEPS {
            sleep(self.options.watch / WATCH_STEPS).await;
            let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
            progress.insert(key.clone(), u64::from(step));
        }
    }

    fn consume(&self, assignment: &Assignment, session: SessionHandle) {
        let cancel = CancellationToken::new();
        if !self.options.commit_every.is_zero() {
            let work = Commits {
                channel: assignment.channel.clone(),
                term: assignment.term,
                count: count_of(&assignment.positions),
                session,
                every: self.options.commit_every,
                lies: self.options.fault == DemoFault::Lie,
                observe: Arc::clone(&self.observe),
            };
            let cancelled = cancel.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = cancelled.cancelled() => {}
                    () = work.run() => {}
                }
            });
        }
        let memory = vec![1; self.options.channel_bytes];
        let consumer = Consumer { term: assignment.term, cancel, _memory: memory };
        let mut consumers = self.consumers.lock().unwrap_or_else(PoisonError::into_inner);
        consumers.insert(assignment.channel.clone(), consumer);
    }

    fn end(&self, channel: &str, term: u64) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.remove(&(channel.to_owned(), term));
        drop(progress);
        if self.options.fault == DemoFault::Lie {
            return;
        }
        let mut consumers = self.consumers.lock().unwrap_or_else(PoisonError::into_inner);
        if consumers.get(channel).is_some_and(|consumer| consumer.term == term)
            && let Some(consumer) = consumers.remove(channel)
        {
            consumer.cancel.cancel();
        }
    }
}

impl Worker for DemoWorker {
    async fn watch(
        &self,
        assignment: Assignment,
        session: SessionHandle,
    ) -> Result<(), WatchFailure> {
        let number = self.watches.fetch_add(1, Ordering::Relaxed) + 1;
        match self.options.fault {
            DemoFault::HangWatch => std::future::pending().await,
            DemoFault::Lie => {}
            _ => self.load(&assignment.channel, assignment.term).await,
        }
        let fails =
            |reason: &str, stopped| Err(WatchFailure { reason: reason.to_owned(), stopped });
        if self.options.fail_every > 0 && number.is_multiple_of(self.options.fail_every) {
            return fails("asked to fail now and then", true);
        }
        self.consume(&assignment, session);
        if self.options.fault == DemoFault::FailWatch {
            return fails("asked to fail always", false);
        }
        Ok(())
    }

    async fn release(&self, channel: &str, term: u64) -> Result<(), ReleaseFailure> {
        match self.options.fault {
            DemoFault::HangRelease => std::future::pending().await,
            DemoFault::FailRelease => {
                return Err(ReleaseFailure { reason: "asked to fail".to_owned() });
            }
            _ => sleep(self.options.release).await,
        }
        self.end(channel, term);
        Ok(())
    }

    async fn stop(&self, channel: &str, term: u64) -> Result<(), ReleaseFailure> {
        self.end(channel, term);
        Ok(())
    }

    async fn stop_all(&self) {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).clear();
        if self.options.fault == DemoFault::Lie {
            return;
        }
        let mut consumers = self.consumers.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *consumers).values().for_each(|consumer| consumer.cancel.cancel());
    }

    fn progress(&self, channel: &str, term: u64) -> Option<u64> {
        let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.get(&(channel.to_owned(), term)).copied()
    }
}

/// The commits of one consumed channel.
struct Commits {
    channel: String,
    term: u64,
    count: u64,
    session: SessionHandle,
    every: Duration,
    lies: bool,
    observe: Observe,
}

impl Commits {
    async fn run(mut self) {
        let mut ticks = interval(self.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let (channel, term, count) = (self.channel.clone(), self.term, self.count + 1);
            match self.commit(count).await {
                Ok(()) => {
                    self.count = count;
                    (self.observe)(&DemoEvent::Committed { channel, term, count });
                }
                // Not refused, only not possible now: the same position is tried again.
                Err(error) if error.is_passing() => {}
                Err(error) => {
                    let reason = match &error {
                        Error::Fenced => "FENCED",
                        other => other.reason().unwrap_or("OTHER"),
                    };
                    let reason = reason.to_owned();
                    (self.observe)(&DemoEvent::CommitRefused { channel, term, reason });
                    if !self.lies {
                        return;
                    }
                }
            }
        }
    }

    async fn commit(&self, count: u64) -> Result<(), Error> {
        let positions = Bytes::copy_from_slice(&count.to_be_bytes());
        if !self.lies {
            return self.session.commit_meta(&self.channel, self.term, positions).await.map(drop);
        }
        // An honest worker asks its session first; this one does not.
        let request = proto::CommitMetaRequest {
            write: None,
            name: self.channel.clone(),
            claim: Some(self.session.claim(self.term)),
            positions,
        };
        self.session.operator.commit_meta(request).await.map(drop)
    }
}

/// The count a former owner committed; 0 for positions of another kind.
fn count_of(positions: &Bytes) -> u64 {
    <[u8; 8]>::try_from(positions.as_ref()).map(u64::from_be_bytes).unwrap_or_default()
}
