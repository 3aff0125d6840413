//! What openraft sees of the machine: it hands batches to the applier's thread, lets the court
//! judge attestations that do not match, and makes and installs snapshots.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use futures::{Stream, StreamExt};
use openraft::storage::{EntryResponder, RaftStateMachine};
use openraft::{OptionalSend, RaftSnapshotBuilder, Snapshot};
use tokio::sync::{mpsc, oneshot};

use crate::applier::{Frozen, Progress, Task, Work};
use crate::counters::Meters;
use crate::data_dir::DataDir;
use crate::disk::DiskWatch;
use crate::diverge::Court;
use crate::error::Fault;
use crate::log::store::LogStore;
use crate::machine::{RestoreError, SnapshotError};
use crate::sight::Sight;
use crate::snapshot_file::SnapshotFile;
use crate::snapshot_store::SnapshotStore;
use crate::types::{LogId, SnapshotMeta, StoredMembership, TypeConfig};
use crate::wire::MetaRecord;

/// Entries handed to the thread at once.
const BATCH: usize = 512;

/// A snapshot with its meta data, as openraft passes it around.
pub(crate) type RaftSnapshot = openraft::alias::SnapshotOf<TypeConfig, SnapshotFile>;

/// See the head of the file; clones share everything.
#[derive(Clone)]
pub(crate) struct StateMachine {
    pub(crate) tasks: mpsc::Sender<Task>,
    pub(crate) snapshots: Arc<SnapshotStore>,
    pub(crate) sight: Arc<Sight>,
    pub(crate) court: Arc<Court>,
    pub(crate) meters: Arc<Meters>,
    pub(crate) dir: Arc<DataDir>,
    pub(crate) log: LogStore,
    pub(crate) disk: Arc<DiskWatch>,
}

impl StateMachine {
    /// Replaces the state by that of a file.
    pub(crate) async fn restore(&self, file: SnapshotFile) -> Result<(), RestoreError> {
        restore(&self.tasks, file).await
    }

    async fn batch(&self, mut work: Vec<Work>) -> Result<(), io::Error> {
        loop {
            let (done, progress) = oneshot::channel();
            self.tasks.send(Task::Apply { work, done }).await.map_err(|_| ended())?;
            match progress.await.map_err(|_| ended())? {
                Progress::Done => return Ok(()),
                Progress::Stopped => return Err(self.fault()),
                Progress::Suspicious(suspicion, rest) => {
                    if !self.court.resolve(&suspicion).await {
                        return Err(self.fault());
                    }
                    work = rest;
                }
            }
        }
    }

    fn fault(&self) -> io::Error {
        let fault = self.sight.fault.borrow().clone();
        io::Error::other(fault.map_or_else(|| "stopped".to_owned(), |fault| fault.to_string()))
    }

    async fn freeze(&self) -> Option<Frozen> {
        let (done, frozen) = oneshot::channel();
        self.tasks.send(Task::Freeze { done }).await.ok()?;
        frozen.await.ok()
    }
}

/// Asks the applier's thread to replace the state by that of a file.
pub(crate) async fn restore(
    tasks: &mpsc::Sender<Task>,
    file: SnapshotFile,
) -> Result<(), RestoreError> {
    let (done, restored) = oneshot::channel();
    tasks.send(Task::Restore { file, done }).await.map_err(|_| ended())?;
    restored.await.map_err(|_| ended())?
}

fn ended() -> io::Error {
    io::Error::other("the machine's thread has ended")
}

impl RaftStateMachine<TypeConfig> for StateMachine {
    type SnapshotData = SnapshotFile;
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), io::Error> {
        let (done, state) = oneshot::channel();
        self.tasks.send(Task::State { done }).await.map_err(|_| ended())?;
        state.await.map_err(|_| ended())
    }

    async fn apply<Strm>(&mut self, mut entries: Strm) -> Result<(), io::Error>
    where
        Strm: Stream<Item = Result<EntryResponder<TypeConfig>, io::Error>> + Unpin + OptionalSend,
    {
        let mut work = Vec::new();
        while let Some(next) = entries.next().await {
            work.push(next?);
            if work.len() == BATCH {
                self.batch(std::mem::take(&mut work)).await?;
            }
        }
        if work.is_empty() { Ok(()) } else { self.batch(work).await }
    }

    async fn try_create_snapshot_builder(&mut self, force: bool) -> Option<Builder> {
        // A snapshot needs room; the watermark comes before the disk is full.
        if !force && self.disk.is_low() {
            return None;
        }
        // Before the first entry there is nothing to write; only a forced one must be there.
        let frozen = self.freeze().await.filter(|frozen| force || frozen.last.is_some())?;
        Some(Builder { frozen: Mutex::new(Some(frozen)), machine: self.clone() })
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        Builder { frozen: Mutex::new(self.freeze().await), machine: self.clone() }
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta,
        snapshot: SnapshotFile,
    ) -> Result<(), io::Error> {
        if snapshot.head.meta != MetaRecord::of(meta) {
            return Err(io::Error::other("the snapshot is not the one that was announced"));
        }
        let snapshots = Arc::clone(&self.snapshots);
        let kept = tokio::task::spawn_blocking(move || snapshots.keep(snapshot))
            .await
            .map_err(io::Error::other)??;
        if let Err(error) = self.restore(kept).await {
            self.sight.raise(Fault::Snapshot(error.to_string()));
            return Err(io::Error::other(error.to_string()));
        }
        self.log.forget_growth();
        self.meters.snapshots_installed.add(1);
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<RaftSnapshot>, io::Error> {
        self.snapshots.newest().map(raft_snapshot).transpose()
    }
}

/// A file as openraft wants it.
pub(crate) fn raft_snapshot(file: SnapshotFile) -> Result<RaftSnapshot, io::Error> {
    let meta = file.head.meta.meta().map_err(|error| io::Error::other(error.to_string()))?;
    Ok(Snapshot { meta, snapshot: file })
}

/// Writes one snapshot on a thread for blocking work.
pub(crate) struct Builder {
    frozen: Mutex<Option<Frozen>>,
    machine: StateMachine,
}

impl RaftSnapshotBuilder<TypeConfig> for Builder {
    type SnapshotData = SnapshotFile;

    async fn build_snapshot(&mut self) -> Result<RaftSnapshot, io::Error> {
        let frozen = self
            .frozen
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
            .ok_or_else(|| io::Error::other("nothing to write"))?;
        let Frozen { last, membership, job } = frozen;
        let meta = SnapshotMeta { last_log_id: last, last_membership: membership };
        let cluster = self.machine.dir.cluster().map(|id| id.to_string()).unwrap_or_default();
        let snapshots = Arc::clone(&self.machine.snapshots);
        let record = MetaRecord::of(&meta);
        let written = tokio::task::spawn_blocking(move || snapshots.write(&cluster, record, job))
            .await
            .unwrap_or_else(|error| Err(SnapshotError::Encode(error.to_string())));
        match written {
            Ok(file) => {
                self.machine.log.forget_growth();
                self.machine.meters.snapshots_written.add(1);
                raft_snapshot(file)
            }
            Err(error) => {
                let fault = match &error {
                    SnapshotError::Inconsistent(detail) => Fault::Machine(detail.clone()),
                    other => Fault::Snapshot(other.to_string()),
                };
                self.machine.sight.raise(fault);
                Err(io::Error::other(error.to_string()))
            }
        }
    }
}
