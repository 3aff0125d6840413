//! The thread that owns the machine. It compares attestations, applies entries in order, fills the
//! ring, and answers; so applying never holds up the core of raft or the network.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use openraft::storage::ApplyResponder;
use tokio::sync::{mpsc, oneshot};

use crate::counters::Meters;
use crate::error::Fault;
use crate::log::record::{Position, encode_entry};
use crate::log::sled::panic_text;
use crate::machine::{EntryMeta, Machine, Reply, RestoreError, SnapshotJob};
use crate::member::hex;
use crate::proposal::{Attestation, Proposal};
use crate::sight::Sight;
use crate::snapshot_file::SnapshotFile;
use crate::types::{Answer, Body, Entry, LogId, Payload, StoredMembership, TypeConfig};
use crate::verdict::Verdicts;
use crate::witness::Seen;

/// An entry and who waits for its answer.
pub(crate) type Work = (Entry, Option<ApplyResponder<TypeConfig>>);

/// An attestation that does not match what this member had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Suspicion {
    pub(crate) entry: Position,
    pub(crate) attester: u64,
    pub(crate) attested: u64,
    pub(crate) mine: [u8; 16],
    pub(crate) theirs: [u8; 16],
    /// True when digests differ, false when witnesses do.
    pub(crate) by_digest: bool,
}

/// How far a batch got.
pub(crate) enum Progress {
    Done,
    /// The rest begins with the entry whose attestation does not match.
    Suspicious(Suspicion, Vec<Work>),
    /// The member must stop.
    Stopped,
}

/// A state frozen for a snapshot, and where it is.
pub(crate) struct Frozen {
    pub(crate) last: Option<LogId>,
    pub(crate) membership: StoredMembership,
    pub(crate) job: Box<dyn SnapshotJob>,
}

/// What the thread is asked.
pub(crate) enum Task {
    Apply { work: Vec<Work>, done: oneshot::Sender<Progress> },
    Freeze { done: oneshot::Sender<Frozen> },
    Restore { file: SnapshotFile, done: oneshot::Sender<Result<(), RestoreError>> },
    State { done: oneshot::Sender<(Option<LogId>, StoredMembership)> },
}

/// Tasks that may wait for the thread.
pub(crate) const QUEUE: usize = 64;

/// The machine and what surrounds it.
pub(crate) struct Applier {
    pub(crate) machine: Box<dyn Machine>,
    pub(crate) sight: Arc<Sight>,
    pub(crate) meters: Arc<Meters>,
    pub(crate) verdicts: Arc<Verdicts>,
    pub(crate) last: Option<LogId>,
    pub(crate) membership: StoredMembership,
}

impl Applier {
    /// Runs until all senders are gone.
    pub(crate) fn run(mut self, mut tasks: mpsc::Receiver<Task>) {
        while let Some(task) = tasks.blocking_recv() {
            match task {
                Task::Apply { work, done } => {
                    let progress = self.apply(work);
                    let _ = done.send(progress);
                }
                Task::Freeze { done } => {
                    let (last, membership) = (self.last, self.membership.clone());
                    let job = self.machine.snapshot();
                    let _ = done.send(Frozen { last, membership, job });
                }
                Task::Restore { file, done } => {
                    let _ = done.send(self.restore(&file));
                }
                Task::State { done } => {
                    let _ = done.send((self.last, self.membership.clone()));
                }
            }
        }
    }

    fn apply(&mut self, work: Vec<Work>) -> Progress {
        let mut answers = Vec::with_capacity(work.len());
        let mut work = work.into_iter();
        let mut suspicious = None;
        while let Some((entry, responder)) = work.next() {
            if self.sight.is_faulted() {
                return Progress::Stopped;
            }
            let reply = match self.one(&entry) {
                Ok(reply) => reply,
                Err(Stop::Suspicion(suspicion)) => {
                    let rest = std::iter::once((entry, responder)).chain(work).collect();
                    suspicious = Some((suspicion, rest));
                    break;
                }
                Err(Stop::Fault(fault)) => {
                    self.sight.raise(fault);
                    return Progress::Stopped;
                }
            };
            if let Some(responder) = responder {
                answers.push((responder, reply));
            }
        }
        self.publish();
        for (responder, reply) in answers {
            responder.send(Answer(reply));
        }
        match suspicious {
            Some((suspicion, rest)) => Progress::Suspicious(suspicion, rest),
            None => Progress::Done,
        }
    }

    /// Views first, then waiters: who was answered finds its own write.
    fn publish(&mut self) {
        let Some(last) = self.last.as_ref().map(Position::of) else { return };
        if self.sight.applied() == Some(last) {
            return;
        }
        self.machine.applied(last.index, last.term);
        self.sight.applied.send_replace(Some(last));
    }

    fn one(&mut self, entry: &Entry) -> Result<Option<Reply>, Stop> {
        let position = Position::of(&entry.log_id);
        let reply = match &entry.payload {
            Payload::Blank => None,
            Payload::Membership(membership) => {
                self.membership = StoredMembership::new(Some(entry.log_id), membership.clone());
                self.sight.learn(&self.membership);
                None
            }
            Payload::Normal(Body(bytes)) => {
                let proposal = Proposal::decode(bytes).map_err(|error| Fault::Entry {
                    index: position.index,
                    detail: error.to_string(),
                })?;
                if let Some(attest) = &proposal.attest {
                    self.compare(position, attest)?;
                }
                Some(self.body(position, &proposal, entry)?)
            }
        };
        self.last = Some(entry.log_id);
        self.meters.applied_entries.add(1);
        let seen = Seen {
            index: position.index,
            witness: self.machine.witness(),
            digest: self.machine.digest(),
        };
        self.sight.ring().push(seen);
        Ok(reply)
    }

    fn compare(&self, entry: Position, attest: &Attestation) -> Result<(), Stop> {
        if attest.index >= entry.index {
            let detail = format!("it attests entry {}, which is not before it", attest.index);
            return Err(Fault::Entry { index: entry.index, detail }.into());
        }
        if self.verdicts.excuses(entry) {
            return Ok(());
        }
        let suspicion = |attested, mine, theirs, by_digest| {
            let attester = attest.member;
            Stop::Suspicion(Suspicion { entry, attester, attested, mine, theirs, by_digest })
        };
        let ring = self.sight.ring();
        match ring.at(attest.index) {
            None => self.meters.attestations_skipped.add(1),
            Some(seen) if seen.witness == attest.witness => self.meters.attestations_checked.add(1),
            Some(seen) => {
                return Err(suspicion(attest.index, seen.witness, attest.witness, false));
            }
        }
        let Some((index, theirs)) = attest.digest else { return Ok(()) };
        match ring.at(index).map(|seen| seen.digest) {
            Some(mine) if mine != theirs => Err(suspicion(index, mine, theirs, true)),
            Some(_) => Ok(()),
            None => {
                self.meters.attestations_skipped.add(1);
                Ok(())
            }
        }
    }

    fn body(
        &mut self,
        position: Position,
        proposal: &Proposal,
        entry: &Entry,
    ) -> Result<Reply, Stop> {
        let Position { index, term } = position;
        let meta = EntryMeta { index, term, stamp_ms: proposal.stamp_ms };
        let machine = &mut self.machine;
        let applied = catch_unwind(AssertUnwindSafe(|| machine.apply(&meta, &proposal.body)));
        let fault = match applied {
            Ok(Ok(reply)) => return Ok(reply),
            Ok(Err(fault)) => fault,
            Err(panic) => Fault::Panicked { index, detail: panic_text(panic.as_ref()) },
        };
        let record = hex(&encode_entry(entry));
        let text = format!("{fault}\nentry {index} of term {term}, as a record:\n{record}\n");
        self.verdicts.diagnose(&format!("diagnosis-{index}.txt"), &text);
        Err(fault.into())
    }

    fn restore(&mut self, file: &SnapshotFile) -> Result<(), RestoreError> {
        let meta = file.head.meta.meta()?;
        let last = meta.last_log_id.ok_or_else(|| RestoreError::Damaged("no position".into()))?;
        let mut sections = file.sections()?;
        let (index, term) = (file.info.index, file.info.term);
        let machine = &mut self.machine;
        let restored =
            catch_unwind(AssertUnwindSafe(|| machine.restore(index, term, &mut sections)));
        restored.unwrap_or_else(|panic| {
            Err(RestoreError::Refused(format!("it panicked: {}", panic_text(panic.as_ref()))))
        })?;
        let (witness, digest) = (self.machine.witness(), self.machine.digest());
        if witness != file.head.witness || digest != file.head.digest {
            return Err(RestoreError::Refused(format!(
                "the state has digest {} and witness {}, the file says {} and {}",
                hex(&digest),
                hex(&witness),
                hex(&file.head.digest),
                hex(&file.head.witness)
            )));
        }
        self.last = Some(last);
        self.membership = meta.last_membership;
        self.sight.learn(&self.membership);
        self.sight.ring().restart(Seen { index, witness, digest });
        self.publish();
        Ok(())
    }
}

enum Stop {
    Suspicion(Suspicion),
    Fault(Fault),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}
