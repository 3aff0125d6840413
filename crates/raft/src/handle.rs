//! The handle on a running member: everything a server may ask of it. It holds no state of its own.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;

use crate::error::{
    BootstrapError, Fault, MembershipError, ProposeError, ReadError, TakeSnapshotError,
    TransferError,
};
use crate::machine::Reply;
use crate::member::{ClusterId, Member};
use crate::options::Options;
use crate::status::{Leadership, MemberWitness, Place, SnapshotInfo, Status};

/// A proposal that was committed and applied here.
#[derive(Clone, Debug)]
pub struct Committed {
    /// Its position in the log.
    pub index: u64,
    /// Its term.
    pub term: u64,
    /// What the machine answered.
    pub reply: Reply,
}

/// A running member. Clones share it.
#[derive(Clone)]
pub struct Handle {
    leadership: watch::Sender<Leadership>,
    fault: watch::Sender<Option<Fault>>,
    peer_address: SocketAddr,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").field("peer_address", &self.peer_address).finish_non_exhaustive()
    }
}

/// Starts a member.
///
/// # Errors
/// See [`StartError`].
pub async fn start(
    options: Options,
    _machine: Box<dyn crate::machine::Machine>,
) -> Result<Handle, crate::error::StartError> {
    Ok(Handle {
        leadership: watch::Sender::new(Leadership::Unknown { term: 0 }),
        fault: watch::Sender::new(None),
        peer_address: options.peer_listen,
    })
}

impl Handle {
    /// Proposes one body and waits until it was applied here.
    ///
    /// # Errors
    /// See [`ProposeError`]; only `Unknown` leaves open whether it commits.
    pub async fn propose(&self, _stamp_ms: u64, _body: Bytes) -> Result<Committed, ProposeError> {
        Err(ProposeError::Stopped)
    }

    /// An index that a linearizable read must have applied; returns once it was applied here.
    /// Works on every member; calls at the same time share one round.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn read_index(&self) -> Result<u64, ReadError> {
        Err(ReadError::Stopped)
    }

    /// Waits until an index was applied here.
    ///
    /// # Errors
    /// When the member stops before.
    pub async fn wait_applied(&self, _index: u64) -> Result<(), ReadError> {
        Err(ReadError::Stopped)
    }

    /// Who leads.
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.leadership.subscribe()
    }

    /// On the leader: time since a quorum last answered.
    pub fn quorum_age(&self) -> Option<Duration> {
        None
    }

    /// The state of this member.
    pub fn status(&self) -> Status {
        Status {
            member: 0,
            cluster_id: None,
            state: crate::status::MemberState::Waiting,
            term: 0,
            leader: None,
            last_log: None,
            committed: None,
            applied: None,
            purged: None,
            snapshot: None,
            restored_from: None,
            members: Vec::new(),
            log_bytes: 0,
            disk_low: false,
            counters: crate::status::Counters::default(),
        }
    }

    /// Where this member stands in its group. Called for every read: no lock is held, nothing waits.
    pub fn place(&self) -> Place {
        let status = self.status();
        Place {
            cluster_id: status.cluster_id,
            member: status.member,
            term: status.term,
            leader: status.leader.map(|leader| leader.member),
            leader_age: None,
        }
    }

    /// True once everything that was committed when this member started is applied, and the member
    /// belongs to a group and is not a suspect: it may serve reads.
    pub fn caught_up(&self) -> bool {
        false
    }

    /// Founds a group of the listed members, this one among them.
    ///
    /// # Errors
    /// When any listed member cannot be reached, holds data, or belongs to a group.
    pub async fn bootstrap(&self, _members: Vec<Member>) -> Result<ClusterId, BootstrapError> {
        Err(BootstrapError::Members(String::new()))
    }

    /// Hands the leadership over, to the given member or to the one that holds most.
    /// Returns the new leader and its term.
    ///
    /// # Errors
    /// See [`TransferError`].
    pub async fn transfer_leader(&self, _to: Option<u64>) -> Result<(u64, u64), TransferError> {
        Err(TransferError::Stopped)
    }

    /// Adds a member under a number that was never used; it becomes a voter once it holds the log.
    /// It must run already, empty and waiting.
    ///
    /// # Errors
    /// See [`MembershipError`].
    pub async fn add_member(&self, _member: Member) -> Result<(), MembershipError> {
        Err(MembershipError::NotLeader { hint: None })
    }

    /// Removes a member for ever.
    ///
    /// # Errors
    /// See [`MembershipError`].
    pub async fn remove_member(&self, _member: u64) -> Result<(), MembershipError> {
        Err(MembershipError::NotLeader { hint: None })
    }

    /// Writes a snapshot of the applied state now.
    ///
    /// # Errors
    /// See [`TakeSnapshotError`].
    pub async fn take_snapshot(&self) -> Result<SnapshotInfo, TakeSnapshotError> {
        Err(TakeSnapshotError::Stopped)
    }

    /// The newest snapshot file.
    pub fn latest_snapshot(&self) -> Option<SnapshotInfo> {
        None
    }

    /// What each member has at an index; 0 asks for the newest that all have applied.
    pub async fn witnesses(&self, _index: u64) -> Vec<MemberWitness> {
        Vec::new()
    }

    /// Set once when this member must stop.
    pub fn fault(&self) -> watch::Receiver<Option<Fault>> {
        self.fault.subscribe()
    }

    /// The address on which this member listens for the others.
    pub fn peer_address(&self) -> SocketAddr {
        self.peer_address
    }

    /// Hands the leadership over when it leads, makes the log durable, and stops.
    pub async fn shutdown(&self) {}
}
