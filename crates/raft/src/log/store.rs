//! What openraft sees of the log. Reads come from the cache or the backend, writes go to the
//! writer thread; an entry can be read as soon as `append` returns, durable or not.

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use openraft::storage::{IOFlushed, LogState, RaftLogStorage};
use openraft::{OptionalSend, RaftLogReader};
use tokio::sync::{mpsc, oneshot};

use crate::counters::{Counter, Meters};
use crate::log::backend::{LogBackend, MarkStore};
use crate::log::cache::Cache;
use crate::log::open::Opened;
use crate::log::record::{Ballot, Position, decode_entry, entry_bytes};
use crate::log::writer::{Done, Op, QUEUE, Writer, spawn_cleaner};
use crate::types::{Entry, LogId, TypeConfig, Vote};

/// Bytes of entries in one append message between members.
const APPEND_BYTES: usize = 4 << 20;

/// The state of the log in memory.
pub(crate) struct Inner {
    vote: Option<Ballot>,
    purged: Option<Position>,
    last: Option<Position>,
    /// Where a log begins from which nothing was purged.
    begin: u64,
    pub(crate) committed: Option<Position>,
    pub(crate) committed_dirty: bool,
    pub(crate) cache: Cache,
}

/// The log; clones share it.
#[derive(Clone)]
pub(crate) struct LogStore {
    shared: Arc<Shared>,
}

struct Shared {
    backend: Arc<dyn LogBackend>,
    inner: Arc<Mutex<Inner>>,
    ops: mpsc::Sender<Op>,
    grown_bytes: Counter,
}

impl LogStore {
    /// Starts the threads of a log that was judged good. `failed` is told the first error.
    pub(crate) fn start(
        opened: Opened,
        backend: Arc<dyn LogBackend>,
        marks: Box<dyn MarkStore>,
        meters: Arc<Meters>,
        failed: impl Fn(String) + Send + Clone + 'static,
    ) -> io::Result<Self> {
        let inner = Arc::new(Mutex::new(Inner {
            vote: opened.vote,
            purged: opened.purged,
            last: opened.last,
            begin: 0,
            committed: opened.committed,
            committed_dirty: false,
            cache: opened.cache,
        }));
        let (ops, queue) = mpsc::channel(QUEUE);
        let freed = spawn_cleaner(Arc::clone(&backend), failed.clone())?;
        let writer = Writer {
            backend: Arc::clone(&backend),
            marks,
            inner: Arc::clone(&inner),
            meters,
            mark: opened.mark,
            tail: opened.last,
            freed,
            failed: Box::new(failed),
            marked_at: Instant::now(),
        };
        std::thread::Builder::new().name("raft-log".into()).spawn(move || writer.run(queue))?;
        let grown_bytes = Counter::default();
        Ok(Self { shared: Arc::new(Shared { backend, inner, ops, grown_bytes }) })
    }

    /// Bytes of entries appended since the last call of `forget_growth`.
    pub(crate) fn grown_bytes(&self) -> u64 {
        self.shared.grown_bytes.get()
    }

    /// Starts counting anew, after a snapshot.
    pub(crate) fn forget_growth(&self) {
        self.shared.grown_bytes.set(0);
    }

    /// True when there is a vote, an entry, or room where entries were.
    pub(crate) fn holds_data(&self) -> bool {
        let inner = self.lock();
        inner.vote.is_some() || inner.last.is_some()
    }

    /// Bytes on disk.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.shared.backend.size_bytes()
    }

    /// Makes everything durable and ends the writer. Later writes fail.
    pub(crate) async fn close(&self) {
        let (done, closed) = done();
        if self.shared.ops.send(Op::Close { done }).await.is_ok() {
            let _ = closed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.shared.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn send(&self, op: Op) -> Result<(), io::Error> {
        self.shared.ops.send(op).await.map_err(|_| stopped())
    }

    async fn read(&self, from: u64, to: u64, max_bytes: usize) -> Result<Vec<Entry>, io::Error> {
        let mut found = Vec::new();
        let (from, to, cached) = {
            let inner = self.lock();
            let first = inner.purged.map_or(inner.begin, |at| at.index.saturating_add(1));
            let end = inner.last.map_or(0, |at| at.index.saturating_add(1));
            let (from, to) = (from.max(first), to.min(end));
            let cached = inner.cache.first().unwrap_or(end);
            if from >= cached {
                inner.cache.read(from, to, max_bytes, &mut found);
                return Ok(found);
            }
            (from, to, cached)
        };
        if from >= to {
            return Ok(found);
        }
        let backend = Arc::clone(&self.shared.backend);
        let until = to.min(cached);
        let records = tokio::task::spawn_blocking(move || backend.read(from, until, max_bytes))
            .await
            .map_err(|error| io::Error::other(format!("reading the log panicked: {error}")))??;
        let mut bytes = 0_usize;
        for (index, record) in records {
            let entry = decode_entry(&record)
                .map_err(|error| io::Error::other(format!("entry {index}: {error}")))?;
            let wanted = from.saturating_add(u64::try_from(found.len()).unwrap_or(u64::MAX));
            if entry.log_id.index != wanted {
                return Err(io::Error::other(format!("entry {wanted} is missing")));
            }
            bytes = bytes.saturating_add(entry_bytes(&entry));
            found.push(entry);
        }
        let complete = u64::try_from(found.len()).ok() == Some(until - from);
        if complete && until < to && bytes < max_bytes {
            self.lock().cache.read(until, to, max_bytes - bytes, &mut found);
        }
        Ok(found)
    }
}

fn stopped() -> io::Error {
    io::Error::other("the log thread has stopped")
}

fn done() -> (Done, oneshot::Receiver<Result<(), io::Error>>) {
    let (sender, receiver) = oneshot::channel();
    let done: Done = Box::new(move |result| {
        let _ = sender.send(result);
    });
    (done, receiver)
}

impl RaftLogReader<TypeConfig> for LogStore {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry>, io::Error> {
        let from = match range.start_bound() {
            Bound::Included(from) => *from,
            Bound::Excluded(before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let to = match range.end_bound() {
            Bound::Included(last) => last.saturating_add(1),
            Bound::Excluded(to) => *to,
            Bound::Unbounded => u64::MAX,
        };
        self.read(from, to, usize::MAX).await
    }

    async fn limited_get_log_entries(
        &mut self,
        start: u64,
        end: u64,
    ) -> Result<Vec<Entry>, io::Error> {
        self.read(start, end, APPEND_BYTES).await
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        Ok(self.lock().vote.map(Ballot::vote))
    }
}

impl RaftLogStorage<TypeConfig> for LogStore {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<TypeConfig>, io::Error> {
        let inner = self.lock();
        Ok(LogState {
            last_purged_log_id: inner.purged.map(Position::log_id),
            last_log_id: inner.last.map(Position::log_id),
        })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        let ballot = Ballot::of(vote);
        let (done, saved) = done();
        self.send(Op::Vote { ballot, done }).await?;
        saved.await.map_err(|_| stopped())??;
        self.lock().vote = Some(ballot);
        Ok(())
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), io::Error> {
        let mut inner = self.lock();
        inner.committed = committed.as_ref().map(Position::of);
        inner.committed_dirty = true;
        Ok(())
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, io::Error> {
        Ok(self.lock().committed.map(Position::log_id))
    }

    async fn append<I>(
        &mut self,
        entries: I,
        callback: IOFlushed<TypeConfig>,
    ) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries: Vec<Entry> = entries.into_iter().collect();
        let bytes: usize = entries.iter().map(entry_bytes).sum();
        {
            let mut inner = self.lock();
            if let Some(first) = entries.first().filter(|_| inner.last.is_none()) {
                inner.begin = first.log_id.index;
            }
            for entry in &entries {
                inner.cache.push(entry.clone());
            }
            if let Some(last) = entries.last() {
                inner.last = Some(Position::of(&last.log_id));
            }
        }
        self.shared.grown_bytes.add(u64::try_from(bytes).unwrap_or(u64::MAX));
        let done: Done = Box::new(move |result| callback.io_completed(result));
        self.send(Op::Append { entries, done }).await
    }

    async fn truncate_after(&mut self, last_log_id: Option<LogId>) -> Result<(), io::Error> {
        let keep = last_log_id.as_ref().map(Position::of);
        let from = keep.map_or(0, |at| at.index.saturating_add(1));
        if self.lock().last.is_none_or(|last| last.index < from) {
            return Ok(());
        }
        let (done, truncated) = done();
        self.send(Op::Truncate { from, keep, done }).await?;
        truncated.await.map_err(|_| stopped())??;
        self.lock().last = keep;
        Ok(())
    }

    async fn purge(&mut self, log_id: LogId) -> Result<(), io::Error> {
        let upto = Position::of(&log_id);
        {
            let mut inner = self.lock();
            if inner.purged.is_some_and(|purged| purged.index >= upto.index) {
                return Ok(());
            }
            inner.purged = Some(upto);
            inner.cache.forget(upto.index);
            if inner.last.is_none_or(|last| last.index < upto.index) {
                inner.last = Some(upto);
            }
        }
        self.send(Op::Purge { upto }).await
    }
}
