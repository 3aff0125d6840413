//! Canonical encoding of what is stored or sent: an envelope with magic, kind, version, length and
//! checksum around bincode (standard, limited). Never panics on hostile bytes; refuses what it does
//! not know. Called by the log (batches), event files (records) and snapshots (sections).

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use bincode::config;
use bincode::enc::write::Writer;
use bincode::error::EncodeError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::checksum::crc32c;
use crate::command::Request;
use crate::event::EventRecord;
use crate::limits;

/// Version of every encoding in this module; raised when a type it covers changes.
pub const FORMAT: u16 = 1;

const MAGIC: [u8; 4] = *b"QRMS";
const HEAD_BYTES: usize = 12;
const ENVELOPE_BYTES: usize = HEAD_BYTES + 4;

/// What an envelope holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Requests of one log entry.
    Batch,
    /// Events of one accepted command.
    Record,
    /// Part of a snapshot.
    Section,
}

impl Kind {
    const fn tag(self) -> u8 {
        match self {
            Self::Batch => 1,
            Self::Record => 2,
            Self::Section => 3,
        }
    }

    const fn bytes_max(self) -> usize {
        match self {
            Self::Batch => limits::BATCH_BYTES_MAX,
            Self::Record => limits::RECORD_BYTES_MAX,
            Self::Section => limits::SECTION_BYTES_MAX,
        }
    }
}

/// Why bytes are not what they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// Too short, or no envelope of ours.
    #[error("not an envelope of this program ({bytes} bytes)")]
    NotOurs {
        /// How many bytes there were.
        bytes: usize,
    },
    /// An envelope of another kind.
    #[error("an envelope of kind {found} where kind {wanted} is expected")]
    Kind {
        /// Wanted.
        wanted: u8,
        /// Found.
        found: u8,
    },
    /// Written by a newer program.
    #[error("format {found} is not known; this program knows up to {known}")]
    Version {
        /// Found.
        found: u16,
        /// The newest known.
        known: u16,
    },
    /// Flags that this program does not know.
    #[error("flags {found:#04x} are not known")]
    Flags {
        /// Found.
        found: u8,
    },
    /// Length does not fit the bytes, or is beyond the bound of its kind.
    #[error("length {claimed} with {found} bytes present; at most {max} are allowed")]
    Length {
        /// By the head.
        claimed: u64,
        /// Present.
        found: usize,
        /// Allowed.
        max: usize,
    },
    /// The checksum does not fit.
    #[error("checksum {found:#010x} instead of {wanted:#010x}: the bytes are damaged")]
    Checksum {
        /// By the envelope.
        wanted: u32,
        /// Computed.
        found: u32,
    },
    /// The payload is not of the expected type.
    #[error("the payload does not decode: {problem}")]
    Payload {
        /// In the words of the decoder.
        problem: String,
    },
    /// Bytes after the payload.
    #[error("{bytes} bytes after the payload")]
    Trailing {
        /// How many.
        bytes: usize,
    },
    /// Well encoded, but not a state: an order, a count, a digest or an invariant does not hold.
    #[error("not a state: {problem}")]
    NotAState {
        /// What does not hold.
        problem: String,
    },
}

struct Sink<'a>(&'a mut Vec<u8>);

impl Writer for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// Appends the canonical encoding. Our types have no form that does not encode, and memory takes
/// any bytes: should it fail after all, a mark that decodes to nothing follows, the same on every
/// replica.
pub(crate) fn append<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    if bincode::serde::encode_into_writer(value, Sink(out), config::standard()).is_err() {
        out.extend_from_slice(&[u8::MAX; 16]);
    }
}

/// Decodes a value at the start of `bytes`; returns it with the number of bytes read.
pub(crate) fn take<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, usize), CodecError> {
    // Nothing is longer than the longest payload; what claims to be is refused before it is
    // allocated.
    let limited = config::standard().with_limit::<{ limits::RECORD_BYTES_MAX }>();
    bincode::serde::decode_from_slice(bytes, limited)
        .map_err(|error| CodecError::Payload { problem: error.to_string() })
}

/// Puts an envelope around what `fill` appends.
pub(crate) fn seal(kind: Kind, fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    out.resize(ENVELOPE_BYTES, 0);
    fill(&mut out);
    let payload = out.get(ENVELOPE_BYTES..).unwrap_or_default();
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let [version_low, version_high] = FORMAT.to_le_bytes();
    let [a, b, c, d] = length.to_le_bytes();
    let [m0, m1, m2, m3] = MAGIC;
    let head = [m0, m1, m2, m3, kind.tag(), version_low, version_high, 0, a, b, c, d];
    let check = crc32c(&[&head, payload]);
    for (place, byte) in out.iter_mut().zip(head.into_iter().chain(check.to_le_bytes())) {
        *place = byte;
    }
    out
}

/// Checks the envelope and returns the payload.
pub(crate) fn open(kind: Kind, bytes: &[u8]) -> Result<&[u8], CodecError> {
    let not_ours = || CodecError::NotOurs { bytes: bytes.len() };
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES).ok_or_else(not_ours)?;
    let (check, payload) = rest.split_first_chunk::<4>().ok_or_else(not_ours)?;
    let &[m0, m1, m2, m3, tag, version_low, version_high, flags, a, b, c, d] = head else {
        return Err(not_ours());
    };
    if [m0, m1, m2, m3] != MAGIC {
        return Err(not_ours());
    }
    let version = u16::from_le_bytes([version_low, version_high]);
    if version != FORMAT {
        return Err(CodecError::Version { found: version, known: FORMAT });
    }
    if tag != kind.tag() {
        return Err(CodecError::Kind { wanted: kind.tag(), found: tag });
    }
    if flags != 0 {
        return Err(CodecError::Flags { found: flags });
    }
    let claimed = u64::from(u32::from_le_bytes([a, b, c, d]));
    let max = kind.bytes_max();
    if payload.len() > max || u64::try_from(payload.len()) != Ok(claimed) {
        return Err(CodecError::Length { claimed, found: payload.len(), max });
    }
    let (wanted, found) = (u32::from_le_bytes(*check), crc32c(&[head, payload]));
    if wanted != found {
        return Err(CodecError::Checksum { wanted, found });
    }
    Ok(payload)
}

fn decode<T: DeserializeOwned>(kind: Kind, bytes: &[u8]) -> Result<T, CodecError> {
    let payload = open(kind, bytes)?;
    let (value, read) = take(payload)?;
    match payload.len().saturating_sub(read) {
        0 => Ok(value),
        bytes => Err(CodecError::Trailing { bytes }),
    }
}

/// The body of one log entry. The caller keeps the sum below [`limits::BATCH_BYTES_MAX`]: a longer
/// body is refused by [`decode_batch`].
#[must_use]
pub fn encode_batch(requests: &[Request]) -> Vec<u8> {
    seal(Kind::Batch, |out| append(out, requests))
}

/// The requests of one log entry.
///
/// # Errors
/// [`CodecError`] if the bytes are damaged, of another kind or version, or if anything follows.
pub fn decode_batch(bytes: &[u8]) -> Result<Vec<Request>, CodecError> {
    decode(Kind::Batch, bytes)
}

/// An event record for files and streams.
#[must_use]
pub fn encode_record(record: &EventRecord) -> Vec<u8> {
    seal(Kind::Record, |out| append(out, record))
}

/// The event record in these bytes.
///
/// # Errors
/// As [`decode_batch`].
pub fn decode_record(bytes: &[u8]) -> Result<EventRecord, CodecError> {
    decode(Kind::Record, bytes)
}
