//! Everything a running member consists of, shared by its tasks, its service and its handle.
//! It only holds; who acts is said in each file that uses it.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use openraft::async_runtime::watch::WatchReceiver;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::counters::{Counter, Meters};
use crate::data_dir::DataDir;
use crate::disk::DiskWatch;
use crate::diverge::Court;
use crate::evidence::{Heard, Transfers};
use crate::log::store::LogStore;
use crate::member::Member;
use crate::options::Options;
use crate::peers::Peers;
use crate::reads::Rounds;
use crate::sight::Sight;
use crate::snapshot_store::SnapshotStore;
use crate::status::Leadership;
use crate::types::{Metrics, Raft};

/// See the head of the file.
pub(crate) struct Replica {
    pub(crate) options: Options,
    /// This member as it tells others.
    pub(crate) me: Member,
    pub(crate) dir: Arc<DataDir>,
    pub(crate) raft: OnceLock<Raft>,
    pub(crate) log: LogStore,
    pub(crate) snapshots: Arc<SnapshotStore>,
    pub(crate) sight: Arc<Sight>,
    pub(crate) court: Arc<Court>,
    pub(crate) peers: Arc<Peers>,
    pub(crate) meters: Arc<Meters>,
    pub(crate) disk: Arc<DiskWatch>,
    pub(crate) leadership: watch::Sender<Leadership>,
    pub(crate) transfers: Transfers,
    pub(crate) heard: Heard,
    /// True once all that was committed when this member started is applied.
    pub(crate) caught_up: AtomicBool,
    /// Rounds of this leader, and rounds asked from another one.
    pub(crate) local_reads: OnceLock<Rounds>,
    pub(crate) remote_reads: OnceLock<Rounds>,
    pub(crate) proposals: Semaphore,
    /// Newest entry whose digest this member attested.
    pub(crate) attested: Counter,
    pub(crate) restored_from: Option<u64>,
    /// One snapshot is received at a time.
    pub(crate) receiving: Semaphore,
    /// One change of the members at a time.
    pub(crate) changing: Semaphore,
    pub(crate) stopping: AtomicBool,
    /// Ends the tasks, then the listener.
    pub(crate) tasks_end: CancellationToken,
    pub(crate) service_end: CancellationToken,
    pub(crate) service_ended: watch::Sender<bool>,
}

impl Replica {
    /// The core of raft, once it runs.
    pub(crate) fn raft(&self) -> Option<&Raft> {
        self.raft.get()
    }

    /// What the core told last, cloned: the original may not be held.
    pub(crate) fn metrics(&self) -> Option<Metrics> {
        let metrics = self.raft()?.metrics();
        let now = metrics.borrow_watched().clone();
        Some(now)
    }

    /// The leader this member knows, itself included.
    pub(crate) fn leader(&self) -> Option<Member> {
        match &*self.leadership.borrow() {
            Leadership::Leader { .. } => Some(self.me.clone()),
            Leadership::Follower { leader, .. } => Some(leader.clone()),
            Leadership::Unknown { .. } => None,
        }
    }

    /// Other members, and which of all vote.
    pub(crate) fn others(&self) -> (Vec<Member>, BTreeSet<u64>) {
        let seats = self.sight.seats();
        let voters =
            seats.iter().filter(|seat| seat.voter).map(|seat| seat.member.member).collect();
        let others = seats
            .into_iter()
            .map(|seat| seat.member)
            .filter(|member| member.member != self.me.member)
            .collect();
        (others, voters)
    }
}
