//! Drains waiting commands into log entries and matches outcomes to waiters. The batch is the group
//! commit: no delay is added, what waits while entries are in flight goes into the next one (ADR
//! 0006). Whether this member may write is decided by `leader`; fences are in the commands.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::stream::{FuturesUnordered, StreamExt};
use raft::ProposeError;
use state::command::Request;
use state::outcome::Outcome;
use tokio::sync::{mpsc, oneshot};

use crate::clock::Clock;
use crate::limits;
use crate::machine::Outcomes;

/// The outcomes of a submission, and the log entry that carried it.
#[derive(Debug)]
pub struct Done {
    /// Log index of the entry.
    pub index: u64,
    /// One for each command, in order.
    pub outcomes: Vec<Outcome>,
}

struct Submission {
    requests: Vec<Request>,
    done: oneshot::Sender<Result<Done, ProposeError>>,
}

/// Counters of the proposer, for metrics.
#[derive(Debug, Default)]
pub struct Counters {
    /// Entries proposed.
    pub entries: AtomicU64,
    /// Commands proposed.
    pub commands: AtomicU64,
    /// Entries that ended without an outcome.
    pub failed: AtomicU64,
}

/// Where commands are handed in.
#[derive(Debug, Clone)]
pub struct Proposer {
    queue: mpsc::Sender<Submission>,
    counters: Arc<Counters>,
}

impl std::fmt::Debug for Submission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} commands", self.requests.len())
    }
}

impl Proposer {
    /// Starts the task that proposes; it ends when every handle is dropped.
    #[must_use]
    pub fn start(raft: raft::Handle, clock: Arc<Clock>) -> Self {
        let (queue, waiting) = mpsc::channel(limits::SUBMISSIONS_MAX);
        let counters = Arc::new(Counters::default());
        tokio::spawn(run(waiting, raft, clock, Arc::clone(&counters)));
        Self { queue, counters }
    }

    /// Counters since the start.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Proposes these commands, in order, in one entry, and waits for their outcomes.
    ///
    /// # Errors
    /// [`ProposeError::Overloaded`] when too many wait; else what the raft crate says. After
    /// [`ProposeError::Unknown`] the commands may still take effect.
    pub async fn submit(&self, requests: Vec<Request>) -> Result<Done, ProposeError> {
        let (done, outcome) = oneshot::channel();
        match self.queue.try_send(Submission { requests, done }) {
            Ok(()) => outcome.await.unwrap_or(Err(ProposeError::Stopped)),
            Err(mpsc::error::TrySendError::Full(_)) => Err(ProposeError::Overloaded),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(ProposeError::Stopped),
        }
    }
}

struct Entry {
    body: Bytes,
    waiters: Vec<(usize, oneshot::Sender<Result<Done, ProposeError>>)>,
}

/// Takes what waits, up to the bounds of one entry.
fn collect(first: Submission, waiting: &mut mpsc::Receiver<Submission>) -> (Entry, u64) {
    let mut requests = Vec::new();
    let mut waiters = Vec::new();
    let mut weight = 0;
    let mut next = Some(first);
    while let Some(submission) = next {
        weight += submission.requests.iter().map(weigh).sum::<usize>();
        waiters.push((submission.requests.len(), submission.done));
        requests.extend(submission.requests);
        let full =
            requests.len() >= limits::BATCH_COMMANDS_MAX || weight >= limits::BATCH_BYTES_MAX;
        next = if full { None } else { waiting.try_recv().ok() };
    }
    let commands = u64::try_from(requests.len()).unwrap_or(u64::MAX);
    let body = Bytes::from(state::codec::encode_batch(&requests));
    (Entry { body, waiters }, commands)
}

/// Roughly the encoded size of a command, in bytes.
fn weigh(request: &Request) -> usize {
    use state::command::Command;
    64 + match &request.command {
        Command::CommitMeta { positions, .. } => positions.len(),
        Command::WatchChannels(specs) => {
            specs.iter().map(|spec| 96 + spec.positions.len()).sum::<usize>()
        }
        Command::Place(decision) => decision.moves.len() * 96,
        Command::SessionsObserved { silent, renewed, .. } => (silent.len() + renewed.len()) * 24,
        _ => 0,
    }
}

async fn run(
    mut waiting: mpsc::Receiver<Submission>,
    raft: raft::Handle,
    clock: Arc<Clock>,
    counters: Arc<Counters>,
) {
    let mut in_flight = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some(()) = in_flight.next(), if !in_flight.is_empty() => {}
            next = waiting.recv(), if in_flight.len() < limits::ENTRIES_IN_FLIGHT_MAX => {
                let Some(first) = next else { break };
                let (entry, commands) = collect(first, &mut waiting);
                counters.entries.fetch_add(1, Ordering::Relaxed);
                counters.commands.fetch_add(commands, Ordering::Relaxed);
                let stamp_ms = clock.stamp().0;
                in_flight.push(propose(entry, raft.clone(), stamp_ms, Arc::clone(&counters)));
            }
        }
    }
    while in_flight.next().await.is_some() {}
}

async fn propose(entry: Entry, raft: raft::Handle, stamp_ms: u64, counters: Arc<Counters>) {
    let committed = match raft.propose(stamp_ms, entry.body).await {
        Ok(committed) => committed,
        Err(error) => {
            counters.failed.fetch_add(1, Ordering::Relaxed);
            for (_, done) in entry.waiters {
                // A waiter that gave up is no fault.
                let _ = done.send(Err(error.clone()));
            }
            return;
        }
    };
    let outcomes = committed.reply.0.downcast_ref::<Outcomes>();
    let mut rest = outcomes.map_or(&[][..], |outcomes| &outcomes.0);
    for (count, done) in entry.waiters {
        let (mine, others) = rest.split_at(count.min(rest.len()));
        rest = others;
        let _ = done.send(Ok(Done { index: committed.index, outcomes: mine.to_vec() }));
    }
}
