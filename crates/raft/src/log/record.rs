//! Records on disk and between members: framed, versioned, with a checksum, of our own layout.
//! No type of openraft is ever stored; this file converts. Used by the log, snapshots and peers.

use std::collections::BTreeMap;

use bytes::{Buf, BufMut, Bytes};
use serde::{Deserialize, Serialize};

use crate::member::Member;
use crate::types::{Body, Entry, LogId, Membership, Payload, Vote, log_id, term_of, vote};

/// Bytes in front of every payload: magic 4, kind 1, version 2, flags 1, length 4, checksum 4.
pub(crate) const HEADER: usize = 16;
const MAGIC: [u8; 4] = *b"QRR1";
const CHECKED: usize = 12;

/// Largest payload of an entry.
pub(crate) const ENTRY_MAX: usize = 48 << 20;
const COUNT_LIMIT: u64 = 1 << 60;
const SMALL_MAX: usize = 64 << 10;
const MEMBERSHIP_MAX: usize = 1 << 20;

/// What a record holds; the number is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind(pub(crate) u8);

impl Kind {
    pub(crate) const ENTRY: Self = Self(1);
    pub(crate) const BALLOT: Self = Self(2);
    pub(crate) const POSITION: Self = Self(3);
    pub(crate) const PROPOSAL: Self = Self(4);
    pub(crate) const MARK: Self = Self(5);
    pub(crate) const VERDICT: Self = Self(6);
    pub(crate) const SNAPSHOT_HEAD: Self = Self(10);
    pub(crate) const SNAPSHOT_SECTION: Self = Self(11);
    pub(crate) const SNAPSHOT_FOOT: Self = Self(12);
    pub(crate) const APPEND: Self = Self(20);
    pub(crate) const APPEND_REPLY: Self = Self(21);
    pub(crate) const VOTE: Self = Self(22);
    pub(crate) const VOTE_REPLY: Self = Self(23);
    pub(crate) const TRANSFER: Self = Self(24);
    pub(crate) const SNAPSHOT_META: Self = Self(25);
}

/// Bytes are not the record they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RecordError {
    #[error("{0} bytes are too few for a record")]
    Short(usize),
    #[error("not a record")]
    Magic,
    #[error("a record of kind {found}, not {wanted}")]
    Kind { found: u8, wanted: u8 },
    #[error("version {found} is newer than {known}")]
    Newer { found: u16, known: u16 },
    #[error("a length of {0} is over the limit or not that of the record")]
    Length(usize),
    #[error("the checksum does not hold")]
    Checksum,
    #[error("malformed: {0}")]
    Malformed(&'static str),
}

impl From<bytes::TryGetError> for RecordError {
    fn from(_: bytes::TryGetError) -> Self {
        Self::Malformed("it ends too early")
    }
}

/// Starts a record: room for the header, which `seal` fills.
pub(crate) fn begin(capacity: usize) -> Vec<u8> {
    let mut record = Vec::with_capacity(HEADER + capacity);
    record.resize(HEADER, 0);
    record
}

/// Fills the header of a record made by `begin`. Version 1 of every kind.
pub(crate) fn seal(kind: Kind, mut record: Vec<u8>) -> Vec<u8> {
    let length = u32::try_from(record.len().saturating_sub(HEADER)).unwrap_or(u32::MAX);
    let mut head = Vec::with_capacity(HEADER);
    head.put_slice(&MAGIC);
    head.put_u8(kind.0);
    head.put_u16_le(1);
    head.put_u8(0);
    head.put_u32_le(length);
    let mut sum = crc32fast::Hasher::new();
    sum.update(&head);
    sum.update(record.get(HEADER..).unwrap_or_default());
    head.put_u32_le(sum.finalize());
    if let Some(room) = record.get_mut(..HEADER) {
        room.copy_from_slice(&head);
    }
    record
}

/// What the header of a record says; nothing is checked against the payload yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) length: usize,
    sum: u32,
}

/// Reads a header.
pub(crate) fn head(kind: Kind, max: usize, bytes: &[u8]) -> Result<Head, RecordError> {
    let mut at = bytes.get(..HEADER).ok_or(RecordError::Short(bytes.len()))?;
    let mut magic = [0_u8; 4];
    at.try_copy_to_slice(&mut magic)?;
    if magic != MAGIC {
        return Err(RecordError::Magic);
    }
    let found = at.try_get_u8()?;
    if found != kind.0 {
        return Err(RecordError::Kind { found, wanted: kind.0 });
    }
    let version = at.try_get_u16_le()?;
    if version != 1 {
        return Err(RecordError::Newer { found: version, known: 1 });
    }
    at.try_get_u8()?;
    let length = usize::try_from(at.try_get_u32_le()?).unwrap_or(usize::MAX);
    if length > max {
        return Err(RecordError::Length(length));
    }
    Ok(Head { length, sum: at.try_get_u32_le()? })
}

/// The payload of a record; bytes behind it are refused.
pub(crate) fn open(kind: Kind, max: usize, bytes: &[u8]) -> Result<&[u8], RecordError> {
    let head = head(kind, max, bytes)?;
    let payload = bytes.get(HEADER..).unwrap_or_default();
    if payload.len() != head.length {
        return Err(RecordError::Length(head.length));
    }
    let mut sum = crc32fast::Hasher::new();
    sum.update(bytes.get(..CHECKED).unwrap_or_default());
    sum.update(payload);
    if sum.finalize() != head.sum {
        return Err(RecordError::Checksum);
    }
    Ok(payload)
}

/// Encodes a small value of ours in one record.
pub(crate) fn encode_small<T: Serialize>(kind: Kind, value: &T) -> Vec<u8> {
    let payload =
        bincode::serde::encode_to_vec(value, bincode::config::standard()).unwrap_or_default();
    let mut record = begin(payload.len());
    record.extend_from_slice(&payload);
    seal(kind, record)
}

/// Decodes a small value of ours.
pub(crate) fn decode_small<T: for<'a> Deserialize<'a>>(
    kind: Kind,
    bytes: &[u8],
) -> Result<T, RecordError> {
    unpack(open(kind, MEMBERSHIP_MAX, bytes)?)
}

fn unpack<T: for<'a> Deserialize<'a>>(payload: &[u8]) -> Result<T, RecordError> {
    let limits = bincode::config::standard().with_limit::<MEMBERSHIP_MAX>();
    let (value, used) = bincode::serde::decode_from_slice(payload, limits)
        .map_err(|_| RecordError::Malformed("not the value it should be"))?;
    if used == payload.len() { Ok(value) } else { Err(RecordError::Malformed("bytes behind it")) }
}

/// A place in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    pub(crate) index: u64,
    pub(crate) term: u64,
}

impl Position {
    pub(crate) fn of(id: &LogId) -> Self {
        Self { index: id.index, term: term_of(id) }
    }

    pub(crate) fn log_id(self) -> LogId {
        log_id(self.index, self.term)
    }
}

/// A vote as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ballot {
    pub(crate) term: u64,
    pub(crate) member: u64,
    pub(crate) committed: bool,
}

impl Ballot {
    pub(crate) fn of(vote: &Vote) -> Self {
        let leader = vote.leader_id;
        Self { term: leader.term, member: leader.voted_for, committed: vote.committed }
    }

    pub(crate) fn vote(self) -> Vote {
        vote(self.term, self.member, self.committed)
    }

    /// True when this vote is not older than the other one.
    pub(crate) fn covers(self, other: Self) -> bool {
        (self.term, self.committed) >= (other.term, other.committed)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SeatRecord {
    seat: u64,
    member: u64,
    peer_address: String,
    client_address: String,
}

/// The members of a group as they are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MembershipRecord {
    voters: Vec<Vec<u64>>,
    seats: Vec<SeatRecord>,
}

impl MembershipRecord {
    pub(crate) fn of(membership: &Membership) -> Self {
        let voters = membership.get_joint_config();
        Self {
            voters: voters.iter().map(|set| set.iter().copied().collect()).collect(),
            seats: membership
                .nodes()
                .map(|(id, node)| SeatRecord {
                    seat: *id,
                    member: node.member,
                    peer_address: node.peer_address.clone(),
                    client_address: node.client_address.clone(),
                })
                .collect(),
        }
    }

    pub(crate) fn membership(&self) -> Result<Membership, RecordError> {
        let voters = self.voters.iter().map(|set| set.iter().copied().collect()).collect();
        let seats = self.seats.iter().map(|record| record.seat);
        let nodes: BTreeMap<u64, Member> = seats.zip(self.members()).collect();
        if self.voters.is_empty() && nodes.is_empty() {
            return Ok(Membership::default());
        }
        Membership::new(voters, nodes).map_err(|_| RecordError::Malformed("not a membership"))
    }

    pub(crate) fn members(&self) -> Vec<Member> {
        let member = |record: &SeatRecord| Member {
            member: record.member,
            peer_address: record.peer_address.clone(),
            client_address: record.client_address.clone(),
        };
        self.seats.iter().map(member).collect()
    }
}

const TAG_BLANK: u8 = 0;
const TAG_NORMAL: u8 = 1;
const TAG_MEMBERSHIP: u8 = 2;

/// Appends an entry without a frame.
pub(crate) fn put_entry(out: &mut Vec<u8>, entry: &Entry) {
    out.put_u64_le(entry.log_id.index);
    out.put_u64_le(term_of(&entry.log_id));
    match &entry.payload {
        Payload::Blank => out.put_u8(TAG_BLANK),
        Payload::Normal(body) => {
            out.put_u8(TAG_NORMAL);
            out.put_slice(&body.0);
        }
        Payload::Membership(membership) => {
            out.put_u8(TAG_MEMBERSHIP);
            let record = MembershipRecord::of(membership);
            let packed = bincode::serde::encode_to_vec(&record, bincode::config::standard());
            out.put_slice(&packed.unwrap_or_default());
        }
    }
}

/// Takes a number that counts entries or terms; what no group can reach is refused, so that
/// nobody can make arithmetic overflow with a message.
pub(crate) fn get_count(at: &mut Bytes) -> Result<u64, RecordError> {
    let count = at.try_get_u64_le()?;
    if count < COUNT_LIMIT { Ok(count) } else { Err(RecordError::Malformed("absurd number")) }
}

/// Reads an entry without a frame.
pub(crate) fn get_entry(mut bytes: Bytes) -> Result<Entry, RecordError> {
    let index = get_count(&mut bytes)?;
    let term = get_count(&mut bytes)?;
    let payload = match bytes.try_get_u8()? {
        TAG_BLANK if bytes.is_empty() => Payload::Blank,
        TAG_NORMAL => Payload::Normal(Body(bytes)),
        TAG_MEMBERSHIP => Payload::Membership(unpack::<MembershipRecord>(&bytes)?.membership()?),
        _ => return Err(RecordError::Malformed("unknown kind of entry")),
    };
    Ok(Entry { log_id: log_id(index, term), payload })
}

/// Bytes that an entry takes without its frame, nearly.
pub(crate) fn entry_bytes(entry: &Entry) -> usize {
    match &entry.payload {
        Payload::Normal(body) => 64 + body.0.len(),
        Payload::Blank | Payload::Membership(_) => 256,
    }
}

/// An entry as one record.
pub(crate) fn encode_entry(entry: &Entry) -> Vec<u8> {
    let mut record = begin(entry_bytes(entry));
    put_entry(&mut record, entry);
    seal(Kind::ENTRY, record)
}

/// The entry of a record.
pub(crate) fn decode_entry(record: &Bytes) -> Result<Entry, RecordError> {
    open(Kind::ENTRY, ENTRY_MAX, record)?;
    get_entry(record.slice(HEADER..))
}

/// A record of fixed small size, such as a mark.
pub(crate) fn open_small(kind: Kind, bytes: &[u8]) -> Result<&[u8], RecordError> {
    open(kind, SMALL_MAX, bytes)
}
