//! Power fails at every step of append, vote, truncate, purge and install. What was acknowledged
//! must be there at the next open, and the open must not refuse.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use openraft::storage::{RaftLogStorage, RaftLogStorageExt};

use crate::counters::Meters;
use crate::log::backend::{LogBackend, LogError, Mark, MarkStore, MetaKey, Visit};
use crate::log::memory::MemoryDisk;
use crate::log::open::{Opened, open_log};
use crate::log::record::{Ballot, Position};
use crate::log::store::LogStore;
use crate::types::{Body, Entry, Payload, log_id, vote};

/// A disk that stops working after some steps.
#[derive(Clone)]
struct Cut {
    disk: MemoryDisk,
    left: Arc<AtomicI64>,
}

impl Cut {
    fn step(&self) -> Result<(), LogError> {
        if self.left.fetch_sub(1, Ordering::SeqCst) > 0 {
            return Ok(());
        }
        Err(std::io::Error::other("the power failed").into())
    }
}

impl LogBackend for Cut {
    fn read_meta(&self, key: MetaKey) -> Result<Option<Vec<u8>>, LogError> {
        self.disk.read_meta(key)
    }
    fn save_meta(&self, key: MetaKey, record: &[u8]) -> Result<(), LogError> {
        self.step()?;
        self.disk.save_meta(key, record)
    }
    fn append(&self, records: &[(u64, Vec<u8>)]) -> Result<(), LogError> {
        self.step()?;
        self.disk.append(records)
    }
    fn read(&self, from: u64, to: u64, max: usize) -> Result<Vec<(u64, Bytes)>, LogError> {
        self.disk.read(from, to, max)
    }
    fn truncate(&self, from: u64) -> Result<(), LogError> {
        self.step()?;
        self.disk.truncate(from)
    }
    fn free(&self, index: u64) -> Result<(), LogError> {
        self.disk.free(index)
    }
    fn scan(&self, from: u64, visit: &mut Visit<'_>) -> Result<(), LogError> {
        self.disk.scan(from, visit)
    }
    fn sync(&self) -> Result<(), LogError> {
        self.step()?;
        self.disk.sync()
    }
    fn size_bytes(&self) -> u64 {
        0
    }
}

impl MarkStore for Cut {
    fn read(&mut self) -> Result<Option<Mark>, LogError> {
        MarkStore::read(&mut self.disk)
    }
    fn write(&mut self, mark: &Mark) -> Result<(), LogError> {
        self.step()?;
        MarkStore::write(&mut self.disk, mark)
    }
}

#[derive(Clone, Copy)]
enum Step {
    Append {
        from: u64,
        to: u64,
        term: u64,
    },
    Vote {
        term: u64,
    },
    Truncate {
        keep: u64,
        term: u64,
    },
    /// A snapshot is on disk from here on.
    Snapshot {
        index: u64,
        term: u64,
    },
    Purge {
        index: u64,
        term: u64,
    },
}

const SCRIPT: &[Step] = &[
    Step::Vote { term: 1 },
    Step::Append { from: 0, to: 5, term: 1 },
    Step::Append { from: 5, to: 10, term: 1 },
    Step::Vote { term: 2 },
    Step::Truncate { keep: 6, term: 1 },
    Step::Append { from: 7, to: 12, term: 2 },
    Step::Snapshot { index: 8, term: 2 },
    Step::Purge { index: 8, term: 2 },
    Step::Append { from: 12, to: 14, term: 2 },
    // A leader's snapshot ahead of the log arrives.
    Step::Vote { term: 3 },
    Step::Truncate { keep: 12, term: 2 },
    Step::Snapshot { index: 30, term: 3 },
    Step::Purge { index: 30, term: 3 },
    Step::Append { from: 31, to: 33, term: 3 },
];

/// What was acknowledged.
#[derive(Clone, Default)]
struct Known {
    log: Vec<Position>,
    vote: Option<Ballot>,
    snapshot: Option<Position>,
}

fn entries(from: u64, to: u64, term: u64) -> Vec<Entry> {
    let body = || Payload::Normal(Body(Bytes::from_static(b"body")));
    (from..to).map(|index| Entry { log_id: log_id(index, term), payload: body() }).collect()
}

async fn play(log: &mut LogStore, step: Step, known: &mut Known) -> bool {
    let done = match step {
        Step::Append { from, to, term } => {
            log.blocking_append(entries(from, to, term)).await.is_ok()
        }
        Step::Vote { term } => log.save_vote(&vote(term, 1, true)).await.is_ok(),
        Step::Truncate { keep, term } => log.truncate_after(Some(log_id(keep, term))).await.is_ok(),
        Step::Purge { index, term } => {
            let sent = log.purge(log_id(index, term)).await.is_ok();
            // A vote behind it tells that it was written.
            sent && log.save_vote(&vote(term, 1, true)).await.is_ok()
        }
        Step::Snapshot { .. } => true,
    };
    if done || matches!(step, Step::Snapshot { .. }) {
        note(step, known);
    }
    done
}

fn note(step: Step, known: &mut Known) {
    match step {
        Step::Append { from, to, term } => {
            known.log.extend((from..to).map(|index| Position { index, term }));
        }
        Step::Vote { term } => {
            known.vote = Some(Ballot { term, member: 1, committed: true });
        }
        Step::Truncate { keep, .. } => known.log.retain(|at| at.index <= keep),
        Step::Snapshot { index, term } => known.snapshot = Some(Position { index, term }),
        Step::Purge { index, .. } => known.log.retain(|at| at.index > index),
    }
}

fn reopen(disk: &MemoryDisk, known: &Known) -> Opened {
    let mut marks = disk.clone();
    open_log(Path::new("memory"), disk, &mut marks, known.snapshot, 1 << 20)
        .unwrap_or_else(|error| panic!("refused: {error}"))
}

fn stored(disk: &MemoryDisk, opened: &Opened) -> Vec<Position> {
    let from = opened.purged.map_or(0, |at| at.index + 1);
    let mut found = Vec::new();
    disk.scan(from, &mut |_, record| {
        let entry = crate::log::record::decode_entry(&record).unwrap();
        found.push(Position::of(&entry.log_id));
        Ok(())
    })
    .unwrap();
    found
}

/// Runs the script until the power fails, and judges what is left. False when it did not fail.
async fn cut_at(step: i64, kept: usize) -> bool {
    let disk = MemoryDisk::default();
    let mut known = Known::default();
    let left = Arc::new(AtomicI64::new(i64::MAX));
    let cut = Cut { disk: disk.clone(), left: Arc::clone(&left) };
    let mut marks = cut.clone();
    let opened = open_log(Path::new("memory"), &cut, &mut marks, None, 1 << 20).unwrap();
    let backend: Arc<dyn LogBackend> = Arc::new(cut.clone());
    let meters = Arc::new(Meters::default());
    let mut log = LogStore::start(opened, backend, Box::new(marks), meters, |_| {}).unwrap();
    left.store(step, Ordering::SeqCst);
    let mut in_flight = None;
    for step in SCRIPT {
        if !play(&mut log, *step, &mut known).await {
            in_flight = Some(*step);
            break;
        }
    }
    log.close().await;
    drop(log);
    disk.crash_keeping(kept);
    let opened = reopen(&disk, &known);
    let found = stored(&disk, &opened);
    let vote = opened.vote;
    assert!(
        known.vote.is_none_or(|known| vote.is_some_and(|vote| vote.covers(known))),
        "step {step}: a vote is lost"
    );
    let may_go = |at: &Position| match in_flight {
        Some(Step::Truncate { keep, .. }) => at.index > keep,
        _ => known.snapshot.is_some_and(|snapshot| at.index <= snapshot.index),
    };
    for at in known.log.iter().filter(|at| !may_go(at)) {
        let snapshot_covers = opened.purged.is_some_and(|purged| purged.index >= at.index);
        assert!(found.contains(at) || snapshot_covers, "step {step}: {at:?} is lost");
    }
    // A second open finds the same: what the first one finished stays finished.
    let again = reopen(&disk, &known);
    assert_eq!(stored(&disk, &again), found);
    in_flight.is_some()
}

#[test]
fn nothing_acknowledged_is_lost_wherever_the_power_fails() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut cuts = 0;
    for kept in [0, 1, 2, 3, usize::MAX] {
        for step in 0.. {
            if !runtime.block_on(cut_at(step, kept)) {
                break;
            }
            cuts += 1;
        }
    }
    assert!(cuts > 100, "only {cuts} cuts");
}

#[test]
fn a_log_below_its_mark_is_refused() {
    let disk = MemoryDisk::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut marks = disk.clone();
        let opened = open_log(Path::new("m"), &disk, &mut marks, None, 1 << 20).unwrap();
        let backend: Arc<dyn LogBackend> = Arc::new(disk.clone());
        let meters = Arc::new(Meters::default());
        let mut log = LogStore::start(opened, backend, Box::new(marks), meters, |_| {}).unwrap();
        let mut known = Known::default();
        for step in &SCRIPT[..2] {
            assert!(play(&mut log, *step, &mut known).await);
        }
        log.close().await;
    });
    disk.truncate(3).unwrap();
    disk.sync().unwrap();
    let mut marks = disk.clone();
    let refused = open_log(Path::new("m"), &disk, &mut marks, None, 1 << 20).err().unwrap();
    let text = refused.to_string();
    assert!(text.contains("entry 4") && text.contains("Replace or repair"), "{text}");
    let snapshot = Some(Position { index: 9, term: 1 });
    assert!(open_log(Path::new("m"), &disk, &mut marks, snapshot, 1 << 20).is_ok());
}
