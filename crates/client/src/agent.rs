//! The worker agent: keeps a session, runs what is desired, fences itself (rules N-1 to N-9).
//! The loop is in agent/engine.rs; what a worker does with a channel is the `Worker`'s business.
//! Called by programs that are workers, and by the command line's demo worker.

mod acks;
mod desired;
mod dialer;
mod engine;
mod event;
mod fence;
mod handle;
mod incoming;
mod ledger;
mod operations;
mod session;

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

pub use event::{AgentEvent, FenceCause, Observer};
pub use handle::SessionHandle;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::endpoints::Endpoints;
use crate::error::Error;
use crate::operator::Options;
use crate::proto;
use crate::worker::Worker;

/// Who this worker is, and how it behaves.
#[derive(Debug, Clone)]
pub struct AgentOptions {
    /// Coordinators to ask; any may be named, the leader is followed.
    pub endpoints: Endpoints,
    /// Stable and unique; 1 to 128 bytes.
    pub name: String,
    /// Where others reach this worker; 1 to 256 bytes.
    pub address: String,
    /// What it serves.
    pub role: proto::Role,
    /// Version of its program.
    pub version: String,
    /// Free labels.
    pub labels: BTreeMap<String, String>,
    /// On a graceful stop: how long to wait until everything was moved elsewhere.
    pub drain_timeout: Duration,
    /// Timeouts and pauses; also for the worker's commits.
    pub calls: Options,
    /// Told what happens, in order. Must return at once.
    pub observer: Observer,
}

impl AgentOptions {
    /// Options with defaults for all but who the worker is and whom it asks.
    pub fn new(endpoints: Endpoints, name: impl Into<String>, role: proto::Role) -> Self {
        let name = name.into();
        let calls = Options { actor: format!("worker:{name}"), ..Options::default() };
        Self {
            endpoints,
            address: name.clone(),
            name,
            role,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            labels: BTreeMap::new(),
            drain_timeout: Duration::from_secs(30),
            calls,
            observer: Observer::default(),
        }
    }
}

/// Runs the worker until `stop` is cancelled and everything was moved elsewhere or the time for
/// that is over. Lost coordinators are asked again without end; an error means that the group
/// will never accept this worker as it is, such as a name it refuses.
pub async fn run<W: Worker>(
    options: AgentOptions,
    worker: W,
    stop: CancellationToken,
) -> Result<(), Error> {
    engine::Engine::new(options, worker, Handle::current())?.run(stop).await
}

/// The same with the session on a thread of its own: work that keeps this runtime busy delays the
/// worker's calls, which still run here, but not its renewals (FR-007). Dropping the future ends
/// the session's thread as well.
pub async fn run_apart<W: Worker>(
    options: AgentOptions,
    worker: W,
    stop: CancellationToken,
) -> Result<(), Error> {
    let engine = engine::Engine::new(options, worker, Handle::current())?;
    let runtime = Builder::new_current_thread().enable_all().build().map_err(no_thread)?;
    let (mut done, ended) = oneshot::channel();
    let session = move || {
        runtime.block_on(async {
            tokio::select! {
                result = engine.run(stop) => {
                    // Nobody waits any more when the future was dropped.
                    let _ = done.send(result);
                }
                () = done.closed() => {}
            }
        });
    };
    thread::Builder::new().name("quorate-session".to_owned()).spawn(session).map_err(no_thread)?;
    ended.await.unwrap_or_else(|_| Err(Error::Thread("it ended early".to_owned())))
}

fn no_thread(error: std::io::Error) -> Error {
    Error::Thread(error.to_string())
}
