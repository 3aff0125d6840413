//! What a program implements to be a worker: watch a channel, release it, stop it.
//! Sessions, acknowledgements, terms and fencing are the agent's business (agent.rs).
//! Implemented by users of this crate and by demo.rs.

use std::future::Future;

use bytes::Bytes;

use crate::agent::SessionHandle;

/// A channel this worker shall consume, under this term only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// Name of the channel.
    pub channel: String,
    /// Rises with every change of owner; every commit must carry it.
    pub term: u64,
    /// Collection the channel belongs to.
    pub collection: u64,
    /// The physical channel behind it.
    pub pchannel: String,
    /// Where to start: as announced with the channel, or as last committed.
    pub positions: Bytes,
    /// Reference to the schema.
    pub schema_ref: String,
    /// Under which to consume the channel in this term. A clean-up removes exactly this one if the
    /// owner goes away without a word.
    pub subscription: String,
}

/// Why a watch failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchFailure {
    /// In words; at most 256 bytes reach the coordinator.
    pub reason: String,
    /// Nothing of it runs any more. If false, the agent calls `stop` before it reports.
    pub stopped: bool,
}

/// Why a channel could not be released or stopped; something of it may still run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseFailure {
    /// In words; at most 256 bytes reach the coordinator.
    pub reason: String,
}

/// Consumes channels. The agent calls at most one of these at a time for one channel.
///
/// A future returned here is dropped when it is no longer wanted: when the channel is taken away
/// during a watch, and when the session ends. `stop` or `stop_all` follows, and must end what
/// the dropped call left behind.
pub trait Worker: Send + Sync + 'static {
    /// Starts to consume a channel; done once it is being consumed. What runs afterwards must ask
    /// `session.may_commit()` before every effect, and commit through `session`.
    fn watch(
        &self,
        assignment: Assignment,
        session: SessionHandle,
    ) -> impl Future<Output = Result<(), WatchFailure>> + Send;

    /// Gives a channel up in good order: flushes, commits, stops. It still belongs to this worker.
    fn release(
        &self,
        channel: &str,
        term: u64,
    ) -> impl Future<Output = Result<(), ReleaseFailure>> + Send;

    /// Ends whatever runs for a channel under this term, in any stage; its ownership may be over.
    fn stop(
        &self,
        channel: &str,
        term: u64,
    ) -> impl Future<Output = Result<(), ReleaseFailure>> + Send;

    /// Ends everything, at once: the session is over. Nothing may run once this returns.
    fn stop_all(&self) -> impl Future<Output = ()> + Send;

    /// A number that grows while a watch makes progress, so that a slow one is not timed out.
    fn progress(&self, channel: &str, term: u64) -> Option<u64> {
        let _ = (channel, term);
        None
    }
}
