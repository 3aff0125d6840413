//! Calls of the worker that are under way, one task per channel.
//! Which call to make is decided in ledger.rs; results go back to engine.rs as messages.
//! Called by engine.rs.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::agent::handle::SessionHandle;
use crate::agent::ledger::{Action, Outcome};
use crate::proto::Directive;
use crate::worker::{Assignment, ReleaseFailure, WatchFailure, Worker};

/// Results waiting for the engine; tasks wait for room.
const RESULTS: usize = 1_024;

/// The end of one call.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) channel: String,
    pub(crate) term: u64,
    pub(crate) serial: u64,
    pub(crate) outcome: Outcome,
}

struct Task {
    serial: u64,
    cancel: CancellationToken,
    handle: JoinHandle<()>,
}

/// Everything under way.
pub(crate) struct Operations<W> {
    worker: Arc<W>,
    /// Where the worker's calls run.
    home: Handle,
    tasks: BTreeMap<String, Task>,
    sender: mpsc::Sender<Finished>,
    receiver: mpsc::Receiver<Finished>,
}

impl<W: Worker> Operations<W> {
    pub(crate) fn new(worker: Arc<W>, home: Handle) -> Self {
        let (sender, receiver) = mpsc::channel(RESULTS);
        Self { worker, home, tasks: BTreeMap::new(), sender, receiver }
    }

    /// The next call that ended. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> Option<Finished> {
        let finished = self.receiver.recv().await?;
        let current = self.tasks.get(&finished.channel).map(|task| task.serial);
        if current == Some(finished.serial) {
            self.tasks.remove(&finished.channel);
        }
        Some(finished)
    }

    /// Carries an action out. Whatever is under way for the channel is ended first.
    pub(crate) fn begin(&mut self, action: Action, session: SessionHandle) {
        let worker = Arc::clone(&self.worker);
        match action {
            Action::Watch { serial, directive } => {
                let (channel, term) = (directive.channel.clone(), directive.term);
                let assignment = assignment(directive);
                let work = async move { watched(worker.watch(assignment, session).await) };
                self.spawn(serial, channel, term, work);
            }
            Action::Release { serial, channel, term } => {
                let name = channel.clone();
                let work = async move { ended(worker.release(&name, term).await) };
                self.spawn(serial, channel, term, work);
            }
            Action::Stop { serial, channel, term } => {
                let name = channel.clone();
                let work = async move { ended(worker.stop(&name, term).await) };
                self.spawn(serial, channel, term, work);
            }
        }
    }

    /// Ends all calls, then everything the worker runs. Nothing runs once this returns.
    pub(crate) async fn stop_all(&mut self) {
        let tasks = std::mem::take(&mut self.tasks);
        for task in tasks.values() {
            task.cancel.cancel();
        }
        for task in tasks.into_values() {
            // A task that panicked is over as well.
            let _ = task.handle.await;
        }
        self.worker.stop_all().await;
        while self.receiver.try_recv().is_ok() {}
    }

    pub(crate) fn progress(&self, channel: &str, term: u64) -> Option<u64> {
        self.worker.progress(channel, term)
    }

    fn spawn(
        &mut self,
        serial: u64,
        channel: String,
        term: u64,
        work: impl Future<Output = Outcome> + Send + 'static,
    ) {
        let before = self.tasks.remove(&channel);
        let cancel = CancellationToken::new();
        let (sender, name, cancelled) = (self.sender.clone(), channel.clone(), cancel.clone());
        let task = async move {
            if let Some(before) = before {
                before.cancel.cancel();
                let _ = before.handle.await;
            }
            let work = AssertUnwindSafe(work).catch_unwind();
            let outcome = tokio::select! {
                biased;
                () = cancelled.cancelled() => return,
                outcome = work => outcome.unwrap_or_else(|_| Outcome::Failed {
                    reason: "the worker panicked".to_owned(),
                    stopped: false,
                }),
            };
            let finished = Finished { channel: name, term, serial, outcome };
            tokio::select! {
                () = cancelled.cancelled() => {}
                // Fails only when the engine is gone.
                _ = sender.send(finished) => {}
            }
        };
        let handle = self.home.spawn(task);
        self.tasks.insert(channel, Task { serial, cancel, handle });
    }
}

impl<W> Drop for Operations<W> {
    fn drop(&mut self) {
        self.tasks.values().for_each(|task| task.cancel.cancel());
    }
}

fn assignment(directive: Directive) -> Assignment {
    Assignment {
        channel: directive.channel,
        term: directive.term,
        collection: directive.collection,
        pchannel: directive.pchannel,
        positions: directive.positions,
        schema_ref: directive.schema_ref,
        subscription: directive.subscription,
    }
}

fn watched(result: Result<(), WatchFailure>) -> Outcome {
    match result {
        Ok(()) => Outcome::Done,
        Err(WatchFailure { reason, stopped }) => Outcome::Failed { reason, stopped },
    }
}

fn ended(result: Result<(), ReleaseFailure>) -> Outcome {
    match result {
        Ok(()) => Outcome::Done,
        Err(ReleaseFailure { reason }) => Outcome::Failed { reason, stopped: false },
    }
}
