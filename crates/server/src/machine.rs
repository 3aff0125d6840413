//! The state as a machine of the raft crate: decode, apply, publish.
//! No rule of the domain and no IO lives here. Called by the raft crate's apply thread only.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use raft::{
    EntryMeta, Fault, Machine, Reply, RestoreError, SectionReader, SectionWriter, SnapshotError,
    SnapshotJob,
};
use state::command::Request;
use state::epoch::{Term, Timestamp};
use state::outcome::Outcome;
use state::snapshot::DigestMismatch;
use state::{Context, State};

use crate::history::History;
use crate::view::Publisher;

/// The outcomes of one entry, one for each command, in order.
#[derive(Debug)]
pub(crate) struct Outcomes(pub(crate) Vec<Outcome>);

/// Applies entries to the state and publishes what came of them.
#[derive(Debug)]
pub(crate) struct StateMachine {
    state: State,
    changed: bool,
    publisher: Publisher,
    history: Arc<History>,
}

impl StateMachine {
    /// A machine with this state, publishing to the given places.
    #[must_use]
    pub(crate) fn new(state: State, publisher: Publisher, history: Arc<History>) -> Self {
        Self { state, changed: false, publisher, history }
    }

    fn run(&mut self, meta: &EntryMeta, batch: &[Request]) -> Vec<Outcome> {
        let context = Context { term: Term(meta.term), now: Timestamp(meta.stamp_ms) };
        let mut outcomes = Vec::with_capacity(batch.len());
        for request in batch {
            let outcome = self.state.apply(&context, request);
            if let Outcome::Accepted(receipt) = &outcome {
                self.history.push(meta.index, Arc::clone(&receipt.record));
            }
            outcomes.push(outcome);
        }
        outcomes
    }
}

impl Machine for StateMachine {
    fn apply(&mut self, meta: &EntryMeta, body: &[u8]) -> Result<Reply, Fault> {
        let batch = state::codec::decode_batch(body)
            .map_err(|error| Fault::Entry { index: meta.index, detail: error.to_string() })?;
        // Apply is total; should it panic all the same, every member would at this index (D11).
        let outcomes = catch_unwind(AssertUnwindSafe(|| self.run(meta, &batch))).map_err(|_| {
            let detail = format!("while applying {} commands", batch.len());
            Fault::Panicked { index: meta.index, detail }
        })?;
        self.changed = true;
        Ok(Reply(Arc::new(Outcomes(outcomes))))
    }

    fn applied(&mut self, index: u64, term: u64) {
        if std::mem::take(&mut self.changed) {
            self.publisher.publish(self.state.clone(), index, term);
        } else {
            self.publisher.advance(index, term);
        }
    }

    fn witness(&self) -> [u8; 16] {
        self.state.witness().0
    }

    fn digest(&self) -> [u8; 16] {
        self.state.digest().0
    }

    fn snapshot(&self) -> Box<dyn SnapshotJob> {
        Box::new(Job { state: self.state.clone() })
    }

    fn restore(
        &mut self,
        index: u64,
        term: u64,
        sections: &mut dyn SectionReader,
    ) -> Result<(), RestoreError> {
        self.state = read_state(sections)?;
        self.history.restored(self.state.revision());
        self.publisher.publish(self.state.clone(), index, term);
        Ok(())
    }
}

/// Reads a whole state, section by section.
///
/// # Errors
/// [`RestoreError`] when a section cannot be read, or the state in them is not sound.
pub(crate) fn read_state(sections: &mut dyn SectionReader) -> Result<State, RestoreError> {
    let mut restore = state::snapshot::Restore::new();
    while let Some((kind, bytes)) = sections.section()? {
        restore.section(kind, &bytes).map_err(|error| RestoreError::Refused(error.to_string()))?;
    }
    restore.finish().map_err(|error| RestoreError::Refused(error.to_string()))
}

/// Joins what can go wrong on the side of the state with what can on the side of the file.
struct Unwritten(SnapshotError);

impl From<SnapshotError> for Unwritten {
    fn from(error: SnapshotError) -> Self {
        Self(error)
    }
}

impl From<DigestMismatch> for Unwritten {
    fn from(error: DigestMismatch) -> Self {
        Self(SnapshotError::Inconsistent(error.to_string()))
    }
}

struct Job {
    state: State,
}

impl SnapshotJob for Job {
    fn write(self: Box<Self>, out: &mut dyn SectionWriter) -> Result<(), SnapshotError> {
        let written: Result<(), Unwritten> =
            state::snapshot::write(&self.state, &mut |kind, bytes| Ok(out.section(kind, bytes)?));
        written.map_err(|unwritten| unwritten.0)
    }

    fn digest(&self) -> [u8; 16] {
        self.state.digest().0
    }

    fn witness(&self) -> [u8; 16] {
        self.state.witness().0
    }
}
