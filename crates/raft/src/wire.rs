//! Messages between members as records of ours. `network.rs` and `service.rs` send and read them;
//! the frame refuses what is damaged, cut short or newer.

use bytes::{Buf, BufMut, Bytes};
use serde::{Deserialize, Serialize};

use openraft::raft::StreamAppendError;

use crate::log::record::{
    self, Ballot, HEADER, Kind, MembershipRecord, Position, RecordError, decode_small, encode_small,
};
use crate::types::{
    AppendRequest, AppendResult, LogId, SnapshotMeta, StoredMembership, TransferRequest, Vote,
    VoteRequest, VoteResponse, log_id, term_of, vote,
};

/// Largest message between members.
pub(crate) const MESSAGE_MAX: usize = 64 << 20;

fn put_vote(out: &mut Vec<u8>, vote: &Vote) {
    let ballot = Ballot::of(vote);
    out.put_u64_le(ballot.term);
    out.put_u64_le(ballot.member);
    out.put_u8(u8::from(ballot.committed));
}

fn get_vote(at: &mut Bytes) -> Result<Vote, RecordError> {
    let (term, member) = (record::get_count(at)?, at.try_get_u64_le()?);
    match at.try_get_u8()? {
        flag @ (0 | 1) => Ok(vote(term, member, flag == 1)),
        _ => Err(RecordError::Malformed("not a vote")),
    }
}

fn put_id(out: &mut Vec<u8>, id: Option<&LogId>) {
    out.put_u8(u8::from(id.is_some()));
    if let Some(id) = id {
        out.put_u64_le(id.index);
        out.put_u64_le(term_of(id));
    }
}

fn get_id(at: &mut Bytes) -> Result<Option<LogId>, RecordError> {
    match at.try_get_u8()? {
        0 => Ok(None),
        1 => {
            let (index, term) = (record::get_count(at)?, record::get_count(at)?);
            Ok(Some(log_id(index, term)))
        }
        _ => Err(RecordError::Malformed("not a log position")),
    }
}

/// An append request.
pub(crate) fn encode_append(request: &AppendRequest) -> Bytes {
    let size: usize = request.entries.iter().map(|entry| record::entry_bytes(entry) + 4).sum();
    let mut out = record::begin(64 + size);
    put_vote(&mut out, &request.vote);
    put_id(&mut out, request.prev_log_id.as_ref());
    put_id(&mut out, request.leader_commit.as_ref());
    let mut one = Vec::new();
    for entry in &request.entries {
        one.clear();
        record::put_entry(&mut one, entry);
        out.put_u32_le(u32::try_from(one.len()).unwrap_or(u32::MAX));
        out.put_slice(&one);
    }
    record::seal(Kind::APPEND, out).into()
}

/// Reads an append request; the entries must follow each other and the position before them.
pub(crate) fn decode_append(bytes: &Bytes) -> Result<AppendRequest, RecordError> {
    record::open(Kind::APPEND, MESSAGE_MAX, bytes)?;
    let mut at = bytes.slice(HEADER..);
    let vote = get_vote(&mut at)?;
    let prev_log_id = get_id(&mut at)?;
    let leader_commit = get_id(&mut at)?;
    let mut next = prev_log_id.as_ref().map_or(0, |id| id.index.saturating_add(1));
    let mut entries = Vec::new();
    while !at.is_empty() {
        let length = usize::try_from(at.try_get_u32_le()?).unwrap_or(usize::MAX);
        if length > at.len() {
            return Err(RecordError::Malformed("an entry ends too early"));
        }
        let entry = record::get_entry(at.split_to(length))?;
        if entry.log_id.index != next {
            return Err(RecordError::Malformed("entries do not follow each other"));
        }
        next = next.saturating_add(1);
        entries.push(entry);
    }
    Ok(AppendRequest { vote, prev_log_id, entries, leader_commit })
}

/// An answer to an append request.
pub(crate) fn encode_append_result(result: &AppendResult) -> Bytes {
    let mut out = record::begin(32);
    match result {
        Ok(matched) => {
            out.put_u8(0);
            put_id(&mut out, matched.as_ref());
        }
        Err(StreamAppendError::Conflict(at)) => {
            out.put_u8(1);
            put_id(&mut out, Some(at));
        }
        Err(StreamAppendError::HigherVote(vote)) => {
            out.put_u8(2);
            put_vote(&mut out, vote);
        }
    }
    record::seal(Kind::APPEND_REPLY, out).into()
}

/// Reads an answer to an append request.
pub(crate) fn decode_append_result(bytes: &Bytes) -> Result<AppendResult, RecordError> {
    record::open_small(Kind::APPEND_REPLY, bytes)?;
    let mut at = bytes.slice(HEADER..);
    let result = match at.try_get_u8()? {
        0 => Ok(get_id(&mut at)?),
        1 => {
            let id = get_id(&mut at)?.ok_or(RecordError::Malformed("a conflict nowhere"))?;
            Err(StreamAppendError::Conflict(id))
        }
        2 => Err(StreamAppendError::HigherVote(get_vote(&mut at)?)),
        _ => return Err(RecordError::Malformed("unknown answer")),
    };
    finished(&at).map(|()| result)
}

/// A request for a vote, or for what a vote would be.
pub(crate) fn encode_vote(request: &VoteRequest) -> Bytes {
    let mut out = record::begin(40);
    put_vote(&mut out, &request.vote);
    put_id(&mut out, request.last_log_id.as_ref());
    out.put_u8(u8::from(request.leadership_transfer));
    record::seal(Kind::VOTE, out).into()
}

/// Reads a request for a vote.
pub(crate) fn decode_vote(bytes: &Bytes) -> Result<VoteRequest, RecordError> {
    record::open_small(Kind::VOTE, bytes)?;
    let mut at = bytes.slice(HEADER..);
    let mut request = VoteRequest::new(get_vote(&mut at)?, get_id(&mut at)?);
    request.leadership_transfer = at.try_get_u8()? == 1;
    finished(&at).map(|()| request)
}

/// An answer to a request for a vote.
pub(crate) fn encode_vote_reply(reply: &VoteResponse) -> Bytes {
    let mut out = record::begin(40);
    put_vote(&mut out, &reply.vote);
    put_id(&mut out, reply.last_log_id.as_ref());
    out.put_u8(u8::from(reply.vote_granted));
    record::seal(Kind::VOTE_REPLY, out).into()
}

/// Reads an answer to a request for a vote.
pub(crate) fn decode_vote_reply(bytes: &Bytes) -> Result<VoteResponse, RecordError> {
    record::open_small(Kind::VOTE_REPLY, bytes)?;
    let mut at = bytes.slice(HEADER..);
    let (vote, last) = (get_vote(&mut at)?, get_id(&mut at)?);
    let granted = at.try_get_u8()? == 1;
    finished(&at).map(|()| VoteResponse::new(vote, last, granted))
}

/// A leader's wish to hand over.
pub(crate) fn encode_transfer(request: &TransferRequest) -> Bytes {
    let mut out = record::begin(48);
    put_vote(&mut out, request.from_leader());
    out.put_u64_le(*request.to_node_id());
    put_id(&mut out, request.last_log_id());
    record::seal(Kind::TRANSFER, out).into()
}

/// Reads a leader's wish to hand over.
pub(crate) fn decode_transfer(bytes: &Bytes) -> Result<TransferRequest, RecordError> {
    record::open_small(Kind::TRANSFER, bytes)?;
    let mut at = bytes.slice(HEADER..);
    let (from, to) = (get_vote(&mut at)?, at.try_get_u64_le()?);
    let last = get_id(&mut at)?;
    finished(&at).map(|()| TransferRequest::new(from, to, last))
}

/// A vote alone.
pub(crate) fn encode_ballot(vote: &Vote) -> Bytes {
    encode_small(Kind::BALLOT, &Ballot::of(vote)).into()
}

/// Reads a vote alone.
pub(crate) fn decode_ballot(bytes: &[u8]) -> Result<Vote, RecordError> {
    decode_small::<Ballot>(Kind::BALLOT, bytes).map(Ballot::vote)
}

/// The position of a snapshot and the members there, as stored and sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MetaRecord {
    pub(crate) last: Option<Position>,
    pub(crate) membership_at: Option<Position>,
    pub(crate) membership: MembershipRecord,
}

impl MetaRecord {
    pub(crate) fn of(meta: &SnapshotMeta) -> Self {
        Self {
            last: meta.last_log_id.as_ref().map(Position::of),
            membership_at: meta.last_membership.log_id().as_ref().map(Position::of),
            membership: MembershipRecord::of(meta.last_membership.membership()),
        }
    }

    pub(crate) fn meta(&self) -> Result<SnapshotMeta, RecordError> {
        let at = self.membership_at.map(Position::log_id);
        Ok(SnapshotMeta {
            last_log_id: self.last.map(Position::log_id),
            last_membership: StoredMembership::new(at, self.membership.membership()?),
        })
    }
}

/// The meta data of a snapshot.
pub(crate) fn encode_meta(meta: &SnapshotMeta) -> Bytes {
    encode_small(Kind::SNAPSHOT_META, &MetaRecord::of(meta)).into()
}

/// Reads the meta data of a snapshot.
pub(crate) fn decode_meta(bytes: &[u8]) -> Result<SnapshotMeta, RecordError> {
    decode_small::<MetaRecord>(Kind::SNAPSHOT_META, bytes)?.meta()
}

fn finished(at: &Bytes) -> Result<(), RecordError> {
    if at.is_empty() { Ok(()) } else { Err(RecordError::Malformed("bytes behind it")) }
}
