//! Where a log lives, behind two small traits. No rule of Raft is known here; `writer.rs` orders
//! the calls and `open.rs` judges what is found.

use std::io;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::log::record::{Ballot, Position};

/// A log cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("damaged: {0}")]
    Damaged(String),
    #[error("the last owner has not let go of it yet")]
    Busy,
    #[error("the store panicked: {0}")]
    Panicked(String),
}

impl From<LogError> for io::Error {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Io(error) => error,
            other => Self::other(other.to_string()),
        }
    }
}

/// Small values beside the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MetaKey {
    Vote,
    Committed,
    Purged,
}

impl MetaKey {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Vote => "vote",
            Self::Committed => "committed",
            Self::Purged => "purged",
        }
    }
}

/// Visits one stored entry: its index and its record.
pub(crate) type Visit<'a> = dyn FnMut(u64, Bytes) -> Result<(), LogError> + 'a;

/// Storage of entries and of a few small values.
///
/// A write is readable at once and durable after the next `sync`, which covers all writes before
/// it in the order in which they were made: a crash keeps a prefix of them.
pub(crate) trait LogBackend: Send + Sync + 'static {
    fn read_meta(&self, key: MetaKey) -> Result<Option<Vec<u8>>, LogError>;
    fn save_meta(&self, key: MetaKey, record: &[u8]) -> Result<(), LogError>;
    /// Appends records in ascending order of index.
    fn append(&self, records: &[(u64, Vec<u8>)]) -> Result<(), LogError>;
    /// The records from `from` on and before `to`, at least one, then up to `max_bytes`.
    fn read(&self, from: u64, to: u64, max_bytes: usize) -> Result<Vec<(u64, Bytes)>, LogError>;
    /// Removes the records at `from` and behind it, the last one first.
    fn truncate(&self, from: u64) -> Result<(), LogError>;
    /// Frees room of records up to and including `index`; some of them may stay.
    fn free(&self, index: u64) -> Result<(), LogError>;
    /// Visits all records from `from` on in ascending order.
    fn scan(&self, from: u64, visit: &mut Visit<'_>) -> Result<(), LogError>;
    fn sync(&self) -> Result<(), LogError>;
    fn size_bytes(&self) -> u64;
}

/// What must be found at the next open, kept outside the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// Rises with every write of the mark.
    pub(crate) sequence: u64,
    /// The log, or a snapshot, must reach this.
    pub(crate) position: Option<Position>,
    /// The vote must not be older than this.
    pub(crate) ballot: Option<Ballot>,
}

/// Storage of the mark; a write is durable when it returns.
pub(crate) trait MarkStore: Send + 'static {
    fn read(&mut self) -> Result<Option<Mark>, LogError>;
    fn write(&mut self, mark: &Mark) -> Result<(), LogError>;
}
