//! The thread that owns the order of writes: it drains what waits, writes it, syncs once, and
//! answers. It moves the high-water mark, and stops for ever at the first error.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::counters::Meters;
use crate::log::backend::{LogBackend, LogError, Mark, MarkStore, MetaKey};
use crate::log::record::{Ballot, Kind, Position, encode_entry, encode_small};
use crate::log::sled::panic_text;
use crate::log::store::Inner;
use crate::types::Entry;

/// The mark follows the log by at most this while entries come in.
const MARK_EVERY: Duration = Duration::from_millis(100);
const BATCH_OPS: usize = 512;
const BATCH_BYTES: usize = 8 << 20;
/// Writes that may wait for the thread.
pub(crate) const QUEUE: usize = 4096;

/// Told once, after the write is durable or has failed.
pub(crate) type Done = Box<dyn FnOnce(Result<(), io::Error>) + Send>;

/// One write.
pub(crate) enum Op {
    Append { entries: Vec<Entry>, done: Done },
    Vote { ballot: Ballot, done: Done },
    Truncate { from: u64, keep: Option<Position>, done: Done },
    Purge { upto: Position },
    Close { done: Done },
}

/// What the thread works on.
pub(crate) struct Writer {
    pub(crate) backend: Arc<dyn LogBackend>,
    pub(crate) marks: Box<dyn MarkStore>,
    pub(crate) inner: Arc<Mutex<Inner>>,
    pub(crate) meters: Arc<Meters>,
    pub(crate) mark: Mark,
    /// The last entry in the backend.
    pub(crate) tail: Option<Position>,
    pub(crate) freed: SyncSender<u64>,
    /// Told the first error.
    pub(crate) failed: Box<dyn Fn(String) + Send>,
    pub(crate) marked_at: Instant,
}

impl Writer {
    /// Runs until it is closed, all senders are gone, or a write fails.
    pub(crate) fn run(mut self, mut ops: mpsc::Receiver<Op>) {
        let Ok(clock) = tokio::runtime::Builder::new_current_thread().enable_time().build() else {
            (self.failed)("no clock for the log thread".into());
            return;
        };
        loop {
            let waited = clock.block_on(async {
                if self.is_settled() {
                    return Ok(ops.recv().await);
                }
                tokio::time::timeout(MARK_EVERY, ops.recv()).await
            });
            let outcome = match waited {
                Ok(Some(first)) => self.batch(first, &mut ops),
                Ok(None) => self.guard(Self::settle).map(|()| true),
                Err(_) => self.guard(Self::settle).map(|()| false),
            };
            match outcome {
                Ok(false) => {}
                Ok(true) => return,
                Err(error) => {
                    ops.close();
                    while let Some(op) = clock.block_on(ops.recv()) {
                        answer(op, Err(io::Error::other(error.clone())));
                    }
                    return;
                }
            }
        }
    }

    /// Handles what waits; true when it was the last batch.
    fn batch(&mut self, first: Op, ops: &mut mpsc::Receiver<Op>) -> Result<bool, String> {
        let mut batch = vec![first];
        let mut bytes = 0;
        while batch.len() < BATCH_OPS && bytes < BATCH_BYTES {
            let Ok(op) = ops.try_recv() else { break };
            bytes += weight(&op);
            batch.push(op);
        }
        let last = batch.iter().any(|op| matches!(op, Op::Close { .. }));
        let result = self.guard(|writer| writer.write(&batch));
        for op in batch {
            answer(op, result.clone().map_err(io::Error::other));
        }
        result?;
        if self.marked_at.elapsed() >= MARK_EVERY && self.mark.position != self.tail {
            self.guard(|writer| writer.move_mark(None))?;
        }
        Ok(last)
    }

    fn write(&mut self, batch: &[Op]) -> Result<(), LogError> {
        let mut ballot = None;
        let mut purged = None;
        let mut close = false;
        for op in batch {
            match op {
                Op::Append { entries, .. } => self.append(entries)?,
                Op::Vote { ballot: vote, .. } => {
                    self.backend.save_meta(MetaKey::Vote, &encode_small(Kind::BALLOT, vote))?;
                    ballot = Some(*vote);
                }
                Op::Truncate { from, keep, .. } => self.truncate(*from, *keep)?,
                Op::Purge { upto } => {
                    let record = encode_small(Kind::POSITION, upto);
                    self.backend.save_meta(MetaKey::Purged, &record)?;
                    if self.tail.is_none_or(|tail| tail.index < upto.index) {
                        self.tail = Some(*upto);
                    }
                    purged = Some(upto.index);
                }
                Op::Close { .. } => close = true,
            }
        }
        self.save_committed()?;
        self.sync()?;
        if ballot.is_some() || purged.is_some() || close {
            self.move_mark(ballot)?;
        }
        if let Some(index) = purged {
            // A full queue is fine: a later purge frees this room too.
            let _ = self.freed.try_send(index);
        }
        Ok(())
    }

    fn append(&mut self, entries: &[Entry]) -> Result<(), LogError> {
        let records: Vec<(u64, Vec<u8>)> =
            entries.iter().map(|entry| (entry.log_id.index, encode_entry(entry))).collect();
        let bytes: usize = records.iter().map(|(_, record)| record.len()).sum();
        self.backend.append(&records)?;
        self.meters.log_written_bytes.add(u64::try_from(bytes).unwrap_or(u64::MAX));
        if let Some(last) = entries.last() {
            self.tail = Some(Position::of(&last.log_id));
            let next = last.log_id.index.saturating_add(1);
            self.inner.lock().unwrap_or_else(PoisonError::into_inner).cache.written(next);
        }
        Ok(())
    }

    /// The mark goes down, durably, before any entry vanishes: else a crash in between would
    /// leave a log that ends below its mark.
    fn truncate(&mut self, from: u64, keep: Option<Position>) -> Result<(), LogError> {
        if self.mark.position.is_some_and(|at| at.index >= from) {
            self.write_mark(Mark { position: keep, ..self.mark })?;
        }
        self.backend.truncate(from)?;
        if self.tail.is_some_and(|tail| tail.index >= from) {
            self.tail = keep;
        }
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).cache.truncate(from);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), LogError> {
        let begun = Instant::now();
        self.backend.sync()?;
        let took = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.meters.log_syncs.add(1);
        self.meters.sync_max_us.max(took);
        Ok(())
    }

    fn save_committed(&mut self) -> Result<(), LogError> {
        let dirty = {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut inner.committed_dirty).then_some(inner.committed).flatten()
        };
        // An entry that is not in the backend yet must not be called committed there.
        let known = dirty.filter(|at| self.tail.is_some_and(|tail| tail.index >= at.index));
        if let Some(position) = known {
            let record = encode_small(Kind::POSITION, &position);
            self.backend.save_meta(MetaKey::Committed, &record)?;
        } else if dirty.is_some() {
            self.inner.lock().unwrap_or_else(PoisonError::into_inner).committed_dirty = true;
        }
        Ok(())
    }

    /// Nothing is left to do when no write comes.
    fn is_settled(&self) -> bool {
        let dirty = self.inner.lock().unwrap_or_else(PoisonError::into_inner).committed_dirty;
        self.mark.position == self.tail && !dirty
    }

    fn settle(&mut self) -> Result<(), LogError> {
        if self.inner.lock().unwrap_or_else(PoisonError::into_inner).committed_dirty {
            self.save_committed()?;
            self.sync()?;
        }
        if self.mark.position != self.tail { self.move_mark(None) } else { Ok(()) }
    }

    fn move_mark(&mut self, ballot: Option<Ballot>) -> Result<(), LogError> {
        let ballot = ballot.or(self.mark.ballot);
        self.write_mark(Mark { position: self.tail, ballot, ..self.mark })
    }

    fn write_mark(&mut self, mark: Mark) -> Result<(), LogError> {
        let mark = Mark { sequence: mark.sequence.saturating_add(1), ..mark };
        self.marks.write(&mark)?;
        self.mark = mark;
        self.marked_at = Instant::now();
        Ok(())
    }

    /// Turns panics of the store and errors into the one failure that ends the thread.
    fn guard<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, LogError>,
    ) -> Result<T, String> {
        let done = catch_unwind(AssertUnwindSafe(|| work(self)))
            .unwrap_or_else(|panic| Err(LogError::Panicked(panic_text(panic.as_ref()))));
        done.map_err(|error| {
            let text = error.to_string();
            (self.failed)(text.clone());
            text
        })
    }
}

fn weight(op: &Op) -> usize {
    match op {
        Op::Append { entries, .. } => {
            entries.iter().map(crate::log::record::entry_bytes).sum::<usize>()
        }
        _ => 64,
    }
}

fn answer(op: Op, result: Result<(), io::Error>) {
    match op {
        Op::Append { done, .. }
        | Op::Vote { done, .. }
        | Op::Truncate { done, .. }
        | Op::Close { done } => done(result),
        Op::Purge { .. } => {}
    }
}

/// Frees room in a thread of its own: dropping trees must not delay a sync.
pub(crate) fn spawn_cleaner(
    backend: Arc<dyn LogBackend>,
    failed: impl Fn(String) + Send + 'static,
) -> io::Result<SyncSender<u64>> {
    let (sender, receiver) = std::sync::mpsc::sync_channel::<u64>(16);
    std::thread::Builder::new().name("raft-log-free".into()).spawn(move || {
        while let Ok(index) = receiver.recv() {
            let freed = catch_unwind(AssertUnwindSafe(|| backend.free(index)))
                .unwrap_or_else(|panic| Err(LogError::Panicked(panic_text(panic.as_ref()))));
            if let Err(error) = freed {
                failed(error.to_string());
                return;
            }
        }
    })?;
    Ok(sender)
}
