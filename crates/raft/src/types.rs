//! The type configuration of openraft and the aliases the rest of the crate uses.
//! Nothing else names its generics. None of these types is ever stored; see `log/record.rs`.

use std::fmt;

use bytes::Bytes;

use crate::machine::Reply;
use crate::member::Member;
use crate::state_machine::StateMachine;

/// An encoded proposal: what a normal entry holds. See `proposal.rs`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Body(pub(crate) Bytes);

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl fmt::Display for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// What an applied entry answers; nothing for blank and membership entries.
#[derive(Clone, Debug)]
pub(crate) struct Answer(pub(crate) Option<Reply>);

// One leader a term: a raft term is what the planner's decisions are fenced with.
openraft::declare_raft_types!(
    pub(crate) TypeConfig:
        D = Body,
        R = Answer,
        NodeId = u64,
        Node = Member,
        Term = u64,
        LeaderId = openraft::impls::leader_id_std::LeaderId<u64, u64>,
);

pub(crate) type Raft = openraft::Raft<TypeConfig, StateMachine>;
pub(crate) type Entry = openraft::alias::EntryOf<TypeConfig>;
pub(crate) type Payload = openraft::alias::PayloadOf<TypeConfig>;
pub(crate) type LogId = openraft::alias::LogIdOf<TypeConfig>;
pub(crate) type Vote = openraft::alias::VoteOf<TypeConfig>;
pub(crate) type Membership = openraft::Membership<u64, Member>;
pub(crate) type StoredMembership = openraft::alias::StoredMembershipOf<TypeConfig>;
pub(crate) type SnapshotMeta = openraft::alias::SnapshotMetaOf<TypeConfig>;
pub(crate) type AppendRequest = openraft::raft::AppendEntriesRequest<TypeConfig>;
pub(crate) type AppendResult = openraft::raft::StreamAppendResult<TypeConfig>;
pub(crate) type VoteRequest = openraft::raft::VoteRequest<TypeConfig>;
pub(crate) type VoteResponse = openraft::raft::VoteResponse<TypeConfig>;
pub(crate) type TransferRequest = openraft::raft::TransferLeaderRequest<TypeConfig>;
pub(crate) type RpcError = openraft::error::RPCError<TypeConfig>;
pub(crate) type Metrics = openraft::RaftMetrics<TypeConfig>;

/// The log id of an index and a term.
pub(crate) fn log_id(index: u64, term: u64) -> LogId {
    LogId { leader_id: term.into(), index }
}

/// The term of a log id.
pub(crate) fn term_of(id: &LogId) -> u64 {
    *id.leader_id
}

/// A vote from its parts.
pub(crate) fn vote(term: u64, member: u64, committed: bool) -> Vote {
    if committed { Vote::new_committed(term, member) } else { Vote::new(term, member) }
}
