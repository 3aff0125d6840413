//! What operators do to a running group: hand over the leadership, change the members, take a
//! snapshot, compare witnesses. `handle.rs` exposes it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use openraft::ChangeMembers;
use openraft::error::{ClientWriteError, RaftError};

use crate::error::{MembershipError, TakeSnapshotError, TransferError};
use crate::member::Member;
use crate::replica::Replica;
use crate::status::{Leadership, MemberWitness, SnapshotInfo};
use crate::types::TypeConfig;

const TRANSFER_DEADLINE: Duration = Duration::from_secs(5);
const SNAPSHOT_DEADLINE: Duration = Duration::from_secs(120);
const JOIN_DEADLINE: Duration = Duration::from_secs(120);
const PROBE_DEADLINE: Duration = Duration::from_secs(2);
const WITNESS_DEADLINE: Duration = Duration::from_millis(400);

/// See `Handle::transfer_leader`.
pub(crate) async fn transfer(
    replica: &Replica,
    to: Option<u64>,
    deadline: Duration,
) -> Result<(u64, u64), TransferError> {
    let raft = replica.raft().ok_or(TransferError::Stopped)?;
    let metrics = replica.metrics().ok_or(TransferError::Stopped)?;
    let mut leadership = replica.leadership.subscribe();
    let term = match &*leadership.borrow() {
        Leadership::Leader { term } => *term,
        _ => return Err(TransferError::NotLeader { hint: replica.leader() }),
    };
    let me = replica.me.member;
    if to == Some(me) {
        return Ok((me, term));
    }
    let (_, voters) = replica.others();
    let matched = metrics.replication.unwrap_or_default();
    let best = || {
        let voting = matched.iter().filter(|(member, _)| voters.contains(member));
        let others = voting.filter(|(member, _)| **member != me);
        others
            .max_by_key(|(member, at)| (at.map(|at| at.index), std::cmp::Reverse(**member)))
            .map(|(member, _)| *member)
    };
    let to = to.or_else(best).ok_or_else(|| TransferError::NoTarget("it is alone".into()))?;
    if !voters.contains(&to) {
        return Err(TransferError::NoTarget(format!("member {to} does not vote")));
    }
    replica.transfers.begin(term);
    raft.trigger().transfer_leader(to).await.map_err(|_| TransferError::Stopped)?;
    let changed = leadership.wait_for(|now| match now {
        Leadership::Follower { term: newer, .. } | Leadership::Leader { term: newer } => {
            *newer > term
        }
        Leadership::Unknown { .. } => false,
    });
    let now = tokio::time::timeout(deadline, changed)
        .await
        .map_err(|_| TransferError::Timeout { to })?
        .map_err(|_| TransferError::Stopped)?;
    match &*now {
        Leadership::Follower { term, leader } => Ok((leader.member, *term)),
        Leadership::Leader { term } | Leadership::Unknown { term } => Ok((me, *term)),
    }
}

/// The same with the deadline for operators.
pub(crate) async fn transfer_leader(
    replica: &Replica,
    to: Option<u64>,
) -> Result<(u64, u64), TransferError> {
    transfer(replica, to, TRANSFER_DEADLINE).await
}

/// See `Handle::add_member`.
pub(crate) async fn add(replica: &Replica, member: Member) -> Result<(), MembershipError> {
    let refused = |what: &str| Err(MembershipError::Refused(what.to_owned()));
    let Ok(_one) = replica.changing.try_acquire() else {
        return refused("another change is under way");
    };
    if !matches!(&*replica.leadership.borrow(), Leadership::Leader { .. }) {
        return Err(MembershipError::NotLeader { hint: replica.leader() });
    }
    let raft = replica.raft().ok_or(MembershipError::NotLeader { hint: None })?;
    let known = replica.sight.member(member.member);
    if known.as_ref().is_some_and(|known| *known != member) {
        return refused("the number is taken; a lost member rejoins under a new one");
    }
    let cluster = replica.dir.cluster().ok_or(MembershipError::NotLeader { hint: None })?;
    if known.is_none() {
        let answer = replica.peers.probe(&member, Some(&cluster), PROBE_DEADLINE).await;
        let answer = answer.map_err(|status| MembershipError::Join(status.message().to_owned()))?;
        if answer.cluster_id != cluster.as_str() || answer.has_data {
            return Err(MembershipError::Join("it is not empty".into()));
        }
    }
    let change = async {
        raft.add_learner(member.member, member.clone(), true).await.map_err(change_error)?;
        let voters = ChangeMembers::AddVoterIds(BTreeSet::from([member.member]));
        raft.change_membership(voters, true).await.map_err(change_error)?;
        Ok(())
    };
    tokio::time::timeout(JOIN_DEADLINE, change)
        .await
        .unwrap_or_else(|_| Err(MembershipError::Unknown("it takes too long".into())))
}

/// See `Handle::remove_member`.
pub(crate) async fn remove(replica: &Replica, member: u64) -> Result<(), MembershipError> {
    let refused = |what: &str| Err(MembershipError::Refused(what.to_owned()));
    let Ok(_one) = replica.changing.try_acquire() else {
        return refused("another change is under way");
    };
    if !matches!(&*replica.leadership.borrow(), Leadership::Leader { .. }) {
        return Err(MembershipError::NotLeader { hint: replica.leader() });
    }
    let raft = replica.raft().ok_or(MembershipError::NotLeader { hint: None })?;
    let seats = replica.sight.seats();
    let Some(seat) = seats.iter().find(|seat| seat.member.member == member) else {
        return refused("there is no such member");
    };
    if seats.iter().filter(|seat| seat.voter).count() <= 1 && seat.voter {
        return refused("it is the last one");
    }
    let change = async {
        if seat.voter {
            let voters = ChangeMembers::RemoveVoters(BTreeSet::from([member]));
            raft.change_membership(voters, false).await.map_err(change_error)?;
        } else {
            let nodes = ChangeMembers::RemoveNodes(BTreeSet::from([member]));
            raft.change_membership(nodes, false).await.map_err(change_error)?;
        }
        Ok(())
    };
    tokio::time::timeout(JOIN_DEADLINE, change)
        .await
        .unwrap_or_else(|_| Err(MembershipError::Unknown("it takes too long".into())))
}

fn change_error(error: RaftError<TypeConfig, ClientWriteError<TypeConfig>>) -> MembershipError {
    match error {
        RaftError::APIError(ClientWriteError::ForwardToLeader(forward)) => {
            MembershipError::NotLeader { hint: forward.leader_node }
        }
        RaftError::APIError(ClientWriteError::ChangeMembershipError(error)) => {
            MembershipError::Refused(error.to_string())
        }
        RaftError::APIError(ClientWriteError::PreconditionFailed(error)) => {
            MembershipError::Refused(error.to_string())
        }
        RaftError::APIError(ClientWriteError::LogEntryDiscarded(_)) => {
            MembershipError::Unknown("the leader changed".into())
        }
        RaftError::Fatal(error) => MembershipError::Unknown(error.to_string()),
    }
}

/// See `Handle::take_snapshot`.
pub(crate) async fn take_snapshot(replica: &Replica) -> Result<SnapshotInfo, TakeSnapshotError> {
    let raft = replica.raft().ok_or(TakeSnapshotError::Stopped)?;
    let applied = replica.sight.applied().ok_or(TakeSnapshotError::Empty)?;
    let newest = || replica.snapshots.newest().filter(|file| file.info.index >= applied.index);
    if let Some(file) = newest() {
        return Ok(file.info);
    }
    if replica.disk.is_low() {
        return Err(TakeSnapshotError::DiskLow);
    }
    raft.trigger().snapshot().await.map_err(|_| TakeSnapshotError::Stopped)?;
    let waiting = raft.wait(Some(SNAPSHOT_DEADLINE));
    let snapshotted = waiting.metrics(
        |metrics| metrics.snapshot.as_ref().is_some_and(|at| at.index >= applied.index),
        "a snapshot",
    );
    snapshotted.await.map_err(|_| TakeSnapshotError::Timeout)?;
    newest().map(|file| file.info).ok_or(TakeSnapshotError::Timeout)
}

/// See `Handle::witnesses`.
pub(crate) async fn witnesses(replica: &Arc<Replica>, index: u64) -> Vec<MemberWitness> {
    let newest = ask_all(replica, index).await;
    if index != 0 {
        return newest;
    }
    let answered = newest.iter().filter(|answer| answer.error.is_none());
    match answered.filter_map(|answer| answer.applied).min() {
        Some(common) if common > 0 => ask_all(replica, common).await,
        _ => newest,
    }
}

async fn ask_all(replica: &Arc<Replica>, index: u64) -> Vec<MemberWitness> {
    let seats: BTreeMap<u64, Member> =
        replica.sight.seats().into_iter().map(|seat| (seat.member.member, seat.member)).collect();
    let asked = seats.into_values().map(|member| async move {
        if member.member == replica.me.member {
            own(replica, index)
        } else {
            ask_one(replica, &member, index).await
        }
    });
    join_all(asked).await
}

fn own(replica: &Replica, index: u64) -> MemberWitness {
    let applied = replica.sight.applied().map(|at| at.index);
    let ring = replica.sight.ring();
    let seen = if index == 0 { ring.newest() } else { ring.at(index) };
    MemberWitness {
        member: replica.me.member,
        index: seen.map_or(index, |seen| seen.index),
        witness: seen.map(|seen| seen.witness),
        digest: seen.map(|seen| seen.digest),
        applied,
        error: None,
    }
}

async fn ask_one(replica: &Replica, member: &Member, index: u64) -> MemberWitness {
    let mut found = MemberWitness {
        member: member.member,
        index,
        witness: None,
        digest: None,
        applied: None,
        error: None,
    };
    match replica.peers.witness(member, index, Vec::new(), WITNESS_DEADLINE).await {
        Ok(answer) => {
            found.applied = Some(answer.applied_index);
            if answer.known {
                found.index = answer.index;
                found.witness = answer.witness.as_ref().try_into().ok();
                found.digest = answer.digest.as_ref().try_into().ok();
            }
        }
        Err(status) => found.error = Some(status.message().to_owned()),
    }
    found
}
