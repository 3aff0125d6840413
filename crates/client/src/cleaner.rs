//! The cleaner agent: registers a cleaner, is told by the leader what former owners left behind,
//! has it cleaned, and says so until it is recorded. The loop is in cleaner/engine.rs, what waits
//! in cleaner/book.rs. Called by programs that are cleaners, and by `quorate worker`.

mod book;
mod engine;
mod event;

use std::future::Future;
use std::time::Duration;

pub use event::{CleanerEvent, CleanerObserver};
use tokio_util::sync::CancellationToken;

use crate::endpoints::Endpoints;
use crate::error::Error;
use crate::operator::Options;
use crate::proto;

/// What one former owner of one channel left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleanup {
    /// Name of the channel.
    pub channel: String,
    /// Node id of the session that owned it.
    pub node_id: u64,
    /// Epoch of that session.
    pub node_epoch: u64,
    /// Name of that worker; empty if the node is no longer known.
    pub node_name: String,
    /// The term under which it owned the channel.
    pub term: u64,
    /// The subscription under which it consumed the channel.
    pub subscription: String,
    /// The physical channel; empty if the channel was removed meanwhile.
    pub pchannel: String,
}

/// Why something could not be cleaned up now; it is tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleanFailure {
    /// In words.
    pub reason: String,
}

/// Removes what former owners left behind.
pub trait Cleaner: Send + Sync + 'static {
    /// Removes the traces of one former owner, the subscription above all. Must be idempotent: the
    /// same clean-up comes again after a failure, a change of leaders, or a restart of either side,
    /// and other cleaners are told of it too. The former owner may still run for a moment.
    fn clean(&self, cleanup: Cleanup) -> impl Future<Output = Result<(), CleanFailure>> + Send;
}

/// Who this cleaner is, and how it behaves.
#[derive(Debug, Clone)]
pub struct CleanerOptions {
    /// Coordinators to ask; any may be named, the leader is followed.
    pub endpoints: Endpoints,
    /// Stable; 1 to 128 bytes. Processes may share one: each is told everything.
    pub name: String,
    /// Clean-ups under way at a time, at least 1.
    pub parallel: usize,
    /// First pause after a failure; doubles, with jitter.
    pub retry_min: Duration,
    /// Longest such pause.
    pub retry_max: Duration,
    /// A stream without any message for this long counts as dead.
    pub idle_timeout: Duration,
    /// Timeouts and pauses of calls.
    pub calls: Options,
    /// Told what happens, in order. Must return at once.
    pub observer: CleanerObserver,
}

impl CleanerOptions {
    /// Options with defaults for all but who the cleaner is and whom it asks.
    pub fn new(endpoints: Endpoints, name: impl Into<String>) -> Self {
        let name = name.into();
        let calls = Options { actor: format!("cleaner:{name}"), ..Options::default() };
        Self {
            endpoints,
            name,
            parallel: 16,
            retry_min: Duration::from_millis(100),
            retry_max: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(15),
            calls,
            observer: CleanerObserver::default(),
        }
    }
}

/// Registers the cleaner and cleans until `stop` is cancelled. It stays registered then, so that
/// what comes meanwhile waits for its return; `Operator::deregister_cleaner` ends that.
///
/// Lost coordinators are asked again without end. An error means that the group will not have this
/// cleaner: its level is too low, the name is refused, or somebody deregistered it.
pub async fn run<C: Cleaner>(
    options: CleanerOptions,
    cleaner: C,
    stop: CancellationToken,
) -> Result<(), Error> {
    let engine = engine::Engine::new(options, cleaner);
    tokio::select! {
        () = stop.cancelled() => Ok(()),
        ended = engine.run() => ended,
    }
}

impl From<proto::Cleanup> for Cleanup {
    fn from(cleanup: proto::Cleanup) -> Self {
        let owner = cleanup.former_owner.unwrap_or_default();
        Self {
            channel: cleanup.channel,
            node_id: owner.node_id,
            node_epoch: owner.node_epoch,
            node_name: owner.node_name,
            term: cleanup.term,
            subscription: cleanup.subscription,
            pchannel: cleanup.pchannel,
        }
    }
}

impl Cleanup {
    /// As CompleteCleanup wants it.
    pub fn claim(&self) -> proto::OwnerClaim {
        proto::OwnerClaim { node_id: self.node_id, node_epoch: self.node_epoch, term: self.term }
    }
}
