//! One coordinator's copy of the state: applies the log with a lag, snapshots, restarts, restores,
//! and replays in other batch splits. Compares itself with the oracle's record at every index.

use std::rc::Rc;

use state::command::Request;
use state::outcome::Outcome;
use state::{Context, Digest, State, Witness, codec, snapshot};

use super::log::Log;
use super::rng::Rng;

/// What one entry led to, the same on every replica.
#[derive(Debug, Clone)]
pub(super) struct Applied {
    pub(super) witness: Witness,
    pub(super) digest: Digest,
    pub(super) outcomes: Vec<Rc<Outcome>>,
}

/// A snapshot as its sections.
#[derive(Debug, Clone)]
pub(super) struct Snapshot {
    /// Entries in it.
    pub(super) applied: usize,
    sections: Vec<(u16, Vec<u8>)>,
}

#[derive(Debug)]
pub(super) struct Replica {
    pub(super) state: State,
    /// Entries applied: the index of the next one.
    pub(super) applied: usize,
    pub(super) snapshot: Option<Snapshot>,
    /// Set by a test of the tests: this replica leaves out a request.
    pub(super) skips_requests: bool,
}

/// Applies the entry at `index` to `state`.
pub(super) fn apply(state: &mut State, log: &Log, index: usize) -> Vec<Rc<Outcome>> {
    let entry = log.get(index);
    let context = Context { term: entry.term, now: entry.stamp };
    let requests = entry.requests();
    requests.iter().map(|request| Rc::new(state.apply(&context, request))).collect()
}

impl Replica {
    pub(super) fn new() -> Self {
        let state = State::new(0);
        Self { state, applied: 0, snapshot: None, skips_requests: false }
    }

    /// Applies the next entry and compares with what it led to elsewhere.
    pub(super) fn apply_next(&mut self, log: &Log, record: &[Applied]) -> Result<(), String> {
        let index = self.applied;
        let outcomes = if self.skips_requests && index % 97 == 96 {
            Vec::new()
        } else {
            apply(&mut self.state, log, index)
        };
        self.applied += 1;
        let expected = &record[index];
        let same = outcomes == expected.outcomes || self.skips_requests;
        self.compare(index, same, expected)
    }

    fn compare(&self, index: usize, same: bool, expected: &Applied) -> Result<(), String> {
        let mine = (self.state.witness(), self.state.digest());
        if same && mine == (expected.witness, expected.digest) {
            return Ok(());
        }
        Err(format!(
            "at index {index}: witness {} and digest {} against {} and {}; outcomes equal: {same}",
            mine.0, mine.1, expected.witness, expected.digest
        ))
    }

    pub(super) fn take_snapshot(&mut self) {
        let mut sections = Vec::new();
        let mut keep = |kind: u16, bytes: &[u8]| -> Result<(), snapshot::DigestMismatch> {
            sections.push((kind, bytes.to_vec()));
            Ok(())
        };
        snapshot::write(&self.state, &mut keep).expect("the digest is that of the records");
        self.snapshot = Some(Snapshot { applied: self.applied, sections });
    }

    /// Starts again from this snapshot, or from nothing.
    pub(super) fn restart(&mut self, from: Option<Snapshot>) -> Result<(), String> {
        let (state, applied) = match &from {
            None => (State::new(0), 0),
            Some(snapshot) => (snapshot.restore()?, snapshot.applied),
        };
        self.state = state;
        self.applied = applied;
        self.snapshot = from;
        Ok(())
    }

    /// Catches up with entries of the same term and stamp joined and split anew: batches are a
    /// matter of transport, not of meaning.
    pub(super) fn replay_resplit(
        &mut self,
        log: &Log,
        to: usize,
        record: &[Applied],
        rng: &mut Rng,
    ) -> Result<(), String> {
        while self.applied < to {
            let first = log.get(self.applied);
            let context = Context { term: first.term, now: first.stamp };
            let mut requests: Vec<Request> = Vec::new();
            while self.applied < to {
                let entry = log.get(self.applied);
                if (entry.term, entry.stamp) != (context.term, context.now) {
                    break;
                }
                requests.extend(entry.requests());
                self.applied += 1;
            }
            let mut rest = requests.as_slice();
            while !rest.is_empty() {
                let (batch, left) = rest.split_at(1 + rng.index(rest.len()));
                let bytes = codec::encode_batch(batch);
                let batch = codec::decode_batch(&bytes).map_err(|error| error.to_string())?;
                for request in &batch {
                    self.state.apply(&context, request);
                }
                rest = left;
            }
            self.compare(self.applied - 1, true, &record[self.applied - 1])?;
        }
        Ok(())
    }
}

impl Snapshot {
    fn restore(&self) -> Result<State, String> {
        let mut restore = snapshot::Restore::new();
        for (kind, bytes) in &self.sections {
            restore.section(*kind, bytes).map_err(|error| error.to_string())?;
        }
        restore.finish().map_err(|error| error.to_string())
    }
}
