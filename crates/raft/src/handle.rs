//! The handle on a running member: everything a server may ask of it. It holds no state of its own
//! and decides nothing; the work is in the files it calls.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use openraft::async_runtime::watch::WatchReceiver;
use openraft::error::{ClientWriteError, RaftError};
use openraft::{Instant, ServerState};
use tokio::sync::watch;

use crate::bootstrap;
use crate::error::{
    BootstrapError, Fault, MembershipError, ProposeError, ReadError, TakeSnapshotError,
    TransferError,
};
use crate::log::record::Position;
use crate::machine::Reply;
use crate::member::{ClusterId, Member};
use crate::operate;
use crate::proposal::{Attestation, Proposal};
use crate::replica::Replica;
use crate::status::{
    Leadership, MemberState, MemberWitness, PeerStatus, Place, SnapshotInfo, Status,
};
use crate::types::{Body, Metrics, TypeConfig, term_of};

const HAND_OVER: Duration = Duration::from_secs(1);
const SERVICE_END: Duration = Duration::from_millis(500);

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
    replica: Arc<Replica>,
    peer_address: SocketAddr,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").field("peer_address", &self.peer_address).finish_non_exhaustive()
    }
}

impl Handle {
    pub(crate) fn new(replica: Arc<Replica>, peer_address: SocketAddr) -> Self {
        Self { replica, peer_address }
    }

    /// Proposes one body and waits until it was applied here.
    ///
    /// # Errors
    /// See [`ProposeError`]; only `Unknown` leaves open whether it commits.
    pub async fn propose(&self, stamp_ms: u64, body: Bytes) -> Result<Committed, ProposeError> {
        let refused = |error| {
            self.replica.meters.proposals_refused.add(1);
            Err(error)
        };
        let (bytes, limit) = (body.len(), self.replica.options.body_max_bytes);
        if bytes > limit {
            return refused(ProposeError::TooLarge { bytes, limit });
        }
        if self.replica.disk.is_low() {
            return refused(ProposeError::DiskLow);
        }
        let Ok(_one) = self.replica.proposals.try_acquire() else {
            return refused(ProposeError::Overloaded);
        };
        if self.replica.stopping.load(Ordering::Relaxed) || self.replica.sight.is_faulted() {
            return Err(ProposeError::Stopped);
        }
        let Some(raft) = self.replica.raft() else { return Err(ProposeError::Stopped) };
        let attest = self.attestation();
        let proposal = Proposal { stamp_ms, attest, body };
        self.replica.meters.proposals.add(1);
        let write = raft.client_write(Body(proposal.encode()));
        let written = tokio::time::timeout(self.replica.options.propose_timeout, write)
            .await
            .map_err(|_| ProposeError::Unknown)?;
        let written = written.map_err(|error| self.propose_error(error))?;
        let Position { index, term } = Position::of(&written.log_id);
        let reply = written.data.0.ok_or(ProposeError::Unknown)?;
        Ok(Committed { index, term, reply })
    }

    /// What this member has, for the others to compare while they apply.
    fn attestation(&self) -> Option<Attestation> {
        let ring = self.replica.sight.ring();
        let newest = ring.newest()?;
        let fresh = ring.newest_digest().filter(|(at, _)| *at > self.replica.attested.get());
        if let Some((at, _)) = fresh {
            self.replica.attested.set(at);
        }
        Some(Attestation {
            member: self.replica.me.member,
            index: newest.index,
            witness: newest.witness,
            digest: fresh,
        })
    }

    fn propose_error(
        &self,
        error: RaftError<TypeConfig, ClientWriteError<TypeConfig>>,
    ) -> ProposeError {
        match error {
            RaftError::APIError(ClientWriteError::ForwardToLeader(forward)) => {
                let known = forward.leader_id.and_then(|id| self.replica.sight.member(id));
                ProposeError::NotLeader { hint: known.or(forward.leader_node) }
            }
            RaftError::APIError(_) | RaftError::Fatal(_) => ProposeError::Unknown,
        }
    }

    /// An index that a linearizable read must have applied; returns once it was applied here.
    /// Works on every member; calls at the same time share one round.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn read_index(&self) -> Result<u64, ReadError> {
        let index = crate::reads::read_index(&self.replica).await?;
        self.wait_applied(index).await?;
        Ok(index)
    }

    /// Waits until an index was applied here.
    ///
    /// # Errors
    /// When the member stops before.
    pub async fn wait_applied(&self, index: u64) -> Result<(), ReadError> {
        let mut applied = self.replica.sight.applied.subscribe();
        let mut fault = self.replica.sight.fault.subscribe();
        tokio::select! {
            biased;
            reached = applied.wait_for(|at| at.is_some_and(|at| at.index >= index)) => {
                reached.map(|_| ()).map_err(|_| ReadError::Stopped)
            }
            _ = fault.wait_for(Option::is_some) => Err(ReadError::Stopped),
            () = self.replica.tasks_end.cancelled() => Err(ReadError::Stopped),
        }
    }

    /// Who leads.
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.replica.leadership.subscribe()
    }

    /// On the leader: time since a quorum last answered.
    pub fn quorum_age(&self) -> Option<Duration> {
        let metrics = self.replica.raft()?.metrics();
        let now = metrics.borrow_watched();
        if now.state != ServerState::Leader {
            return None;
        }
        if now.membership_config.voter_ids().count() <= 1 {
            return Some(Duration::ZERO);
        }
        now.last_quorum_acked.map(|at| at.elapsed())
    }

    /// The state of this member.
    pub fn status(&self) -> Status {
        let replica = &self.replica;
        let metrics = replica.metrics();
        let applied = replica.sight.applied().map(|at| at.index);
        let mut status = Status {
            member: replica.me.member,
            cluster_id: replica.dir.cluster(),
            state: self.state(metrics.as_ref()),
            term: 0,
            leader: replica.leader(),
            last_log: None,
            committed: None,
            applied,
            purged: None,
            snapshot: replica.snapshots.newest().map(|file| file.info.index),
            restored_from: replica.restored_from,
            members: self.members(metrics.as_ref()),
            log_bytes: replica.log.size_bytes(),
            disk_low: replica.disk.is_low(),
            counters: replica.meters.read(),
        };
        if let Some(metrics) = metrics {
            status.term = metrics.current_term;
            status.last_log = metrics.last_log_index;
            status.committed = metrics.local_committed.map(|at| at.index);
            status.purged = metrics.purged.map(|at| at.index);
            debug_assert!(metrics.last_applied.is_none_or(|at| term_of(&at) <= status.term));
        }
        status
    }

    fn state(&self, metrics: Option<&Metrics>) -> MemberState {
        let replica = &self.replica;
        if replica.sight.is_faulted() || replica.stopping.load(Ordering::Relaxed) {
            return MemberState::Stopped;
        }
        if replica.sight.is_suspect() {
            return MemberState::Suspect;
        }
        let Some(metrics) = metrics else { return MemberState::Starting };
        if metrics.membership_config.nodes().next().is_none() {
            return MemberState::Waiting;
        }
        match metrics.state {
            ServerState::Leader => MemberState::Leader,
            ServerState::Candidate => MemberState::Candidate,
            ServerState::Follower => MemberState::Follower,
            ServerState::Learner => MemberState::Learner,
            ServerState::Shutdown => MemberState::Stopped,
        }
    }

    fn members(&self, metrics: Option<&Metrics>) -> Vec<PeerStatus> {
        let me = self.replica.me.member;
        let replication = metrics.and_then(|metrics| metrics.replication.as_ref());
        let heartbeat = metrics.and_then(|metrics| metrics.heartbeat.as_ref());
        let status = |seat: crate::sight::Seat| {
            let member = seat.member.member;
            let matched = replication.and_then(|matched| *matched.get(&member)?);
            let answered = heartbeat.and_then(|answered| *answered.get(&member)?);
            PeerStatus {
                voter: seat.voter,
                matched: matched.map(|at| at.index),
                silent_ms: answered
                    .filter(|_| member != me)
                    .map(|at| u64::try_from(at.elapsed().as_millis()).unwrap_or(u64::MAX)),
                member: seat.member,
            }
        };
        self.replica.sight.seats().into_iter().map(status).collect()
    }

    /// Where this member stands in its group. Cheap: it is called for every read.
    pub fn place(&self) -> Place {
        let replica = &self.replica;
        let leadership = replica.leadership.borrow().clone();
        let me = replica.me.member;
        let (term, leader, leader_age) = match leadership {
            Leadership::Leader { term } => (term, Some(me), self.quorum_age()),
            Leadership::Follower { term, leader } => {
                (term, Some(leader.member), replica.heard.age())
            }
            Leadership::Unknown { term } => (term, None, None),
        };
        Place { cluster_id: replica.dir.cluster(), member: me, term, leader, leader_age }
    }

    /// True once everything that was committed when this member started is applied, and the member
    /// belongs to a group and is not a suspect: it may serve reads.
    pub fn caught_up(&self) -> bool {
        let replica = &self.replica;
        replica.caught_up.load(Ordering::Relaxed)
            && !replica.sight.is_suspect()
            && !replica.sight.is_faulted()
    }

    /// Founds a group of the listed members, this one among them.
    ///
    /// # Errors
    /// When any listed member cannot be reached, holds data, or belongs to a group.
    pub async fn bootstrap(&self, members: Vec<Member>) -> Result<ClusterId, BootstrapError> {
        bootstrap::bootstrap(&self.replica, members).await
    }

    /// Hands the leadership over, to the given member or to the one that holds most.
    /// Returns the new leader and its term.
    ///
    /// # Errors
    /// See [`TransferError`].
    pub async fn transfer_leader(&self, to: Option<u64>) -> Result<(u64, u64), TransferError> {
        operate::transfer_leader(&self.replica, to).await
    }

    /// Adds a member under a number that was never used; it becomes a voter once it holds the log.
    /// It must run already, empty and waiting.
    ///
    /// # Errors
    /// See [`MembershipError`].
    pub async fn add_member(&self, member: Member) -> Result<(), MembershipError> {
        operate::add(&self.replica, member).await
    }

    /// Removes a member for ever.
    ///
    /// # Errors
    /// See [`MembershipError`].
    pub async fn remove_member(&self, member: u64) -> Result<(), MembershipError> {
        operate::remove(&self.replica, member).await
    }

    /// Writes a snapshot of the applied state now.
    ///
    /// # Errors
    /// See [`TakeSnapshotError`].
    pub async fn take_snapshot(&self) -> Result<SnapshotInfo, TakeSnapshotError> {
        operate::take_snapshot(&self.replica).await
    }

    /// The newest snapshot file.
    pub fn latest_snapshot(&self) -> Option<SnapshotInfo> {
        self.replica.snapshots.newest().map(|file| file.info)
    }

    /// What each member has at an index; 0 asks for the newest that all have applied.
    pub async fn witnesses(&self, index: u64) -> Vec<MemberWitness> {
        operate::witnesses(&self.replica, index).await
    }

    /// Set once when this member must stop.
    pub fn fault(&self) -> watch::Receiver<Option<Fault>> {
        self.replica.sight.fault.subscribe()
    }

    /// The address on which this member listens for the others.
    pub fn peer_address(&self) -> SocketAddr {
        self.peer_address
    }

    /// Hands the leadership over when it leads, makes the log durable, and stops. The directory
    /// is free again once all handles are dropped.
    pub async fn shutdown(&self) {
        let replica = &self.replica;
        if replica.stopping.load(Ordering::Relaxed) && replica.tasks_end.is_cancelled() {
            return;
        }
        let _ = operate::transfer(replica, None, HAND_OVER).await;
        replica.stopping.store(true, Ordering::Relaxed);
        replica.tasks_end.cancel();
        if let Some(raft) = replica.raft() {
            let _ = raft.shutdown().await;
        }
        replica.log.close().await;
        replica.service_end.cancel();
        let mut ended = replica.service_ended.subscribe();
        let _ = tokio::time::timeout(SERVICE_END, ended.wait_for(|ended| *ended)).await;
    }
}
