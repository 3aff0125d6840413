//! The seam to the replicated machine: opaque bytes in, opaque replies out. No rule of any domain.
//! The adapter in the server implements these traits; `applier.rs` is the only caller.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::error::Fault;

/// What a machine may know about the entry it applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryMeta {
    /// Position in the log; the first entry of a group is 0.
    pub index: u64,
    /// Raft term in which the entry was proposed.
    pub term: u64,
    /// Time stamp of the proposer, in milliseconds.
    pub stamp_ms: u64,
}

/// What a machine answers to one entry. Only the member that proposed the entry looks at it.
#[derive(Clone)]
pub struct Reply(pub Arc<dyn Any + Send + Sync>);

impl Reply {
    /// Wraps a value.
    pub fn new<T: Any + Send + Sync>(value: T) -> Self {
        Self(Arc::new(value))
    }

    /// The value, when it is of that type.
    pub fn downcast<T: Any + Send + Sync>(self) -> Option<Arc<T>> {
        self.0.downcast().ok()
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}

/// A deterministic machine. It is owned by one thread; no method is called concurrently.
pub trait Machine: Send + 'static {
    /// Applies the body of one committed entry.
    ///
    /// # Errors
    /// A [`Fault`] stops this member. Whatever a caller did wrong belongs into the reply.
    fn apply(&mut self, meta: &EntryMeta, body: &[u8]) -> Result<Reply, Fault>;

    /// Called after each batch, also when it held no body: the place to publish views.
    fn applied(&mut self, index: u64, term: u64);

    /// Running hash of all decisions so far. Read after every entry, so it must be cheap.
    fn witness(&self) -> [u8; 16];

    /// Hash of the present records. Read after every entry, so it must be cheap.
    fn digest(&self) -> [u8; 16];

    /// A cheap handle on the present state; its bytes are made on another thread.
    fn snapshot(&self) -> Box<dyn SnapshotJob>;

    /// Replaces the whole state by that of a snapshot taken at `index`.
    ///
    /// # Errors
    /// When the sections cannot be decoded. The caller may then try an older snapshot.
    fn restore(
        &mut self,
        index: u64,
        term: u64,
        sections: &mut dyn SectionReader,
    ) -> Result<(), RestoreError>;
}

/// A state frozen for a snapshot.
pub trait SnapshotJob: Send {
    /// Writes the state, section by section.
    ///
    /// # Errors
    /// When the writer fails, or when the state does not hash to its own digest.
    fn write(self: Box<Self>, out: &mut dyn SectionWriter) -> Result<(), SnapshotError>;

    /// Digest of the frozen state.
    fn digest(&self) -> [u8; 16];

    /// Witness of the frozen state.
    fn witness(&self) -> [u8; 16];
}

/// Takes the sections of a snapshot in order.
pub trait SectionWriter {
    /// Appends one section; 1-4 MiB are a good size, more than 64 MiB are refused.
    ///
    /// # Errors
    /// When the file cannot be written.
    fn section(&mut self, kind: u16, bytes: &[u8]) -> Result<(), SnapshotError>;
}

/// Gives the sections of a snapshot in the order in which they were written.
pub trait SectionReader {
    /// The next section, `None` after the last one.
    ///
    /// # Errors
    /// When the file cannot be read or a checksum does not hold.
    fn section(&mut self) -> Result<Option<(u16, Vec<u8>)>, RestoreError>;
}

/// A snapshot could not be written.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The file could not be written.
    #[error("cannot write the snapshot: {0}")]
    Io(#[from] std::io::Error),
    /// A section is too large.
    #[error("a section of {0} bytes is over the limit")]
    TooLarge(usize),
    /// The state is not what its digest says: this member must stop.
    #[error("the state does not hash to its digest: {0}")]
    Inconsistent(String),
    /// The machine could not encode itself.
    #[error("cannot encode the state: {0}")]
    Encode(String),
}

/// A snapshot could not be read back.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The file could not be read.
    #[error("cannot read the snapshot: {0}")]
    Io(#[from] std::io::Error),
    /// Bytes are not what was written.
    #[error("the snapshot is damaged: {0}")]
    Damaged(String),
    /// The machine does not understand or does not accept the sections.
    #[error("the snapshot cannot be restored: {0}")]
    Refused(String),
}
