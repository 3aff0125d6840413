//! A whole state as sections of about 1 MiB, in a fixed order, each in an envelope of its own.
//! Written from a clone off the apply path; the digest is recomputed from all records on the way
//! (ruling 9). Files, checksums of files and transport are not here.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::channel::{Channel, Dropped};
use crate::codec::{self, CodecError, Kind};
use crate::digest::{Digest, Sum, Table, Witness};
use crate::epoch::{Revision, Timestamp};
use crate::ids::{ChannelName, NodeId, NodeName, RequestId, Text};
use crate::invariants;
use crate::level;
use crate::limits;
use crate::node::Node;
use crate::state::{Mark, Remembered, Scalars, State, Tables};

/// Scalars and witness; the first section.
pub const HEAD: u16 = 1;
/// Sessions by id.
pub const NODES: u16 = 2;
/// Frozen workers by name.
pub const FROZEN: u16 = 3;
/// Channels by name.
pub const CHANNELS: u16 = 4;
/// Removed channels by name.
pub const DROPS: u16 = 5;
/// Remembered requests by id.
pub const REQUESTS: u16 = 6;
/// Counts and digest; the last section.
pub const FOOT: u16 = 7;
/// Policies chosen, by setting.
pub const CHOICES: u16 = 8;
/// Cleaners by name.
pub const CLEANERS: u16 = 9;
/// When things happened of which only the time is remembered.
pub const MARKS: u16 = 10;
/// Sections with this bit may be skipped by a program that does not know them.
pub const OPTIONAL: u16 = 0x8000;

/// The digest kept along the way is not that of the records: a fault of this replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the digest kept is {kept}, that of the records is {recomputed}")]
pub struct DigestMismatch {
    /// Kept by evolve.
    pub kept: Digest,
    /// Of the records written.
    pub recomputed: Digest,
}

#[derive(Serialize, Deserialize)]
struct Head {
    scalars: Scalars,
    witness: Witness,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Counts {
    nodes: u64,
    frozen: u64,
    channels: u64,
    drops: u64,
    requests: u64,
}

#[derive(Serialize, Deserialize)]
struct Foot {
    counts: Counts,
    digest: Digest,
}

/// Takes a section: its kind and its bytes.
pub type Out<'a, E> = dyn FnMut(u16, &[u8]) -> Result<(), E> + 'a;

/// Hands out all sections in order.
///
/// # Errors
/// What `out` returns, or [`DigestMismatch`] before the last section.
pub fn write<E: From<DigestMismatch>>(state: &State, out: &mut Out<'_, E>) -> Result<(), E> {
    let head = Head { scalars: state.scalars().clone(), witness: state.witness() };
    out(HEAD, &codec::seal(Kind::Section, |bytes| codec::append(bytes, &head)))?;
    let mut sum = Sum::default();
    let counts = Counts {
        nodes: table(out, NODES, &mut sum, Table::Nodes, state.node_records())?,
        frozen: table(out, FROZEN, &mut sum, Table::Frozen, state.frozen())?,
        channels: table(out, CHANNELS, &mut sum, Table::Channels, state.channel_records())?,
        drops: table(out, DROPS, &mut sum, Table::Drops, state.drops())?,
        requests: table(out, REQUESTS, &mut sum, Table::Requests, state.requests())?,
    };
    // Younger than the counts of the foot: what is missing here shows in the digest.
    table(out, CHOICES, &mut sum, Table::Choices, state.choice_records())?;
    table(out, CLEANERS, &mut sum, Table::Cleaners, state.cleaners())?;
    table(out, MARKS, &mut sum, Table::Marks, state.mark_records())?;
    let (kept, recomputed) = (state.digest(), sum.with_scalars(state.scalars()));
    if kept != recomputed {
        return Err(DigestMismatch { kept, recomputed }.into());
    }
    let foot = Foot { counts, digest: recomputed };
    out(FOOT, &codec::seal(Kind::Section, |bytes| codec::append(bytes, &foot)))
}

/// Writes one table in as many sections as it needs; none if it is empty. Returns the number of
/// records.
fn table<E, T: Serialize>(
    out: &mut Out<'_, E>,
    kind: u16,
    sum: &mut Sum,
    table: Table,
    records: impl Iterator<Item = T>,
) -> Result<u64, E> {
    let mut records = records.peekable();
    let mut count: u64 = 0;
    while records.peek().is_some() {
        let section = codec::seal(Kind::Section, |bytes| {
            while bytes.len() < limits::SECTION_BYTES_AIM {
                let Some(record) = records.next() else { break };
                sum.add(table, &record);
                codec::append(bytes, &record);
                count = count.saturating_add(1);
            }
        });
        out(kind, &section)?;
    }
    Ok(count)
}

/// Builds a state from sections.
#[derive(Default)]
pub struct Restore {
    head: Option<Head>,
    foot: Option<Foot>,
    last_kind: Option<u16>,
    nodes: Vec<(NodeId, Node)>,
    frozen: Vec<(NodeName, Revision)>,
    channels: Vec<(ChannelName, Channel)>,
    drops: Vec<(ChannelName, Dropped)>,
    requests: Vec<(RequestId, Remembered)>,
    choices: Vec<(Text, Text)>,
    cleaners: Vec<(NodeName, Revision)>,
    marks: Vec<(Mark, Timestamp)>,
}

impl Restore {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next section.
    ///
    /// # Errors
    /// [`CodecError`] if it is damaged, unknown and not optional, or out of order.
    pub fn section(&mut self, kind: u16, bytes: &[u8]) -> Result<(), CodecError> {
        let payload = codec::open(Kind::Section, bytes)?;
        if kind & OPTIONAL != 0 {
            return Ok(());
        }
        if !(HEAD..=MARKS).contains(&kind) {
            return Err(not_a_state(format!("section kind {kind} is not known")));
        }
        if let Some(last) = self.last_kind
            && (place(kind) < place(last) || (kind == last && matches!(kind, HEAD | FOOT)))
        {
            return Err(not_a_state(format!("section {kind} after section {last}")));
        }
        if self.head.is_none() && kind != HEAD {
            return Err(not_a_state(format!("section {kind} before the head")));
        }
        self.last_kind = Some(kind);
        match kind {
            HEAD => self.head = Some(single(payload)?),
            NODES => records(payload, &mut self.nodes)?,
            FROZEN => records(payload, &mut self.frozen)?,
            CHANNELS => records(payload, &mut self.channels)?,
            DROPS => records(payload, &mut self.drops)?,
            REQUESTS => records(payload, &mut self.requests)?,
            CHOICES => records(payload, &mut self.choices)?,
            CLEANERS => records(payload, &mut self.cleaners)?,
            MARKS => records(payload, &mut self.marks)?,
            _ => self.foot = Some(single(payload)?),
        }
        Ok(())
    }

    /// The state, after all sections.
    ///
    /// # Errors
    /// [`CodecError::NotAState`] if something is missing, the digest differs, an invariant does
    /// not hold, or the level is beyond what this program knows.
    pub fn finish(self) -> Result<State, CodecError> {
        let missing = |what: &str| not_a_state(format!("the {what} is missing"));
        let Foot { counts, digest } = self.foot.ok_or_else(|| missing("foot"))?;
        let Head { scalars, witness } = self.head.ok_or_else(|| missing("head"))?;
        if scalars.level > level::KNOWN {
            let (level, known) = (scalars.level, level::KNOWN);
            return Err(not_a_state(format!("level {level}; this program knows up to {known}")));
        }
        let number = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
        let found = Counts {
            nodes: number(self.nodes.len()),
            frozen: number(self.frozen.len()),
            channels: number(self.channels.len()),
            drops: number(self.drops.len()),
            requests: number(self.requests.len()),
        };
        if found != counts {
            return Err(not_a_state(format!("{found:?}, but the foot says {counts:?}")));
        }
        let tables = Tables {
            nodes: self.nodes,
            frozen: self.frozen,
            channels: self.channels,
            drops: self.drops,
            requests: self.requests,
            choices: self.choices,
            cleaners: self.cleaners,
            marks: self.marks,
        };
        let state = State::from_tables(scalars, witness, tables);
        if state.digest() != digest {
            let found = state.digest();
            return Err(not_a_state(format!("digest {found}, but the foot says {digest}")));
        }
        match invariants::check_records(&state).first() {
            Some(violation) => Err(not_a_state(violation.to_string())),
            None => Ok(state),
        }
    }
}

/// Where a section stands: the foot is last, whatever its number.
const fn place(kind: u16) -> u16 {
    if kind == FOOT { u16::MAX } else { kind }
}

fn not_a_state(problem: alloc::string::String) -> CodecError {
    CodecError::NotAState { problem }
}

fn single<T: DeserializeOwned>(payload: &[u8]) -> Result<T, CodecError> {
    let (value, read) = codec::take(payload)?;
    match payload.len().saturating_sub(read) {
        0 => Ok(value),
        bytes => Err(CodecError::Trailing { bytes }),
    }
}

/// Decodes records to the end of the section; keys must ascend over all sections of a table.
fn records<K: DeserializeOwned + Ord, V: DeserializeOwned>(
    mut payload: &[u8],
    into: &mut Vec<(K, V)>,
) -> Result<(), CodecError> {
    while !payload.is_empty() {
        let ((key, value), read) = codec::take::<(K, V)>(payload)?;
        if into.last().is_some_and(|(last, _)| *last >= key) {
            let problem = "records are not in the order of their keys".to_string();
            return Err(CodecError::NotAState { problem });
        }
        into.push((key, value));
        payload = payload.get(read..).unwrap_or_default();
    }
    Ok(())
}
