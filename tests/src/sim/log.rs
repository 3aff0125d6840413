//! The committed log: what Raft guarantees, as a list. Entries hold encoded batches, as on disk.
//! How an entry gets committed is in `world`; who applies it, in `replica`.

use state::codec;
use state::command::Request;
use state::epoch::{Term, Timestamp};

/// A committed entry.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) term: Term,
    pub(super) stamp: Timestamp,
    pub(super) body: Vec<u8>,
}

/// All committed entries; the index is the position.
#[derive(Debug, Default)]
pub(super) struct Log {
    entries: Vec<Entry>,
}

impl Log {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, index: usize) -> &Entry {
        &self.entries[index]
    }

    /// Appends a batch; returns its index.
    pub(super) fn push(&mut self, term: Term, stamp: Timestamp, batch: &[Request]) -> usize {
        let body = codec::encode_batch(batch);
        self.entries.push(Entry { term, stamp, body });
        self.entries.len() - 1
    }
}

impl Entry {
    pub(super) fn requests(&self) -> Vec<Request> {
        codec::decode_batch(&self.body).expect("what was encoded decodes")
    }
}
