//! The gRPC surface: one file a service, shared ways to read, to write and to fail beside them.
//! Handlers check shape and call inwards; rules are in the state, leader work in `leader`.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::history::History;
use crate::history_files::HistoryFiles;
use crate::leader::effects::Counters;
use crate::view::Views;

pub mod admin;
pub mod channels;
pub mod cleaners;
pub mod convert;
pub mod drains;
pub mod events;
pub mod explain;
pub mod nodes;
pub mod outbox;
pub mod read;
pub mod reigning;
pub mod session;
pub mod status;
pub mod strays;
pub mod write;

/// What every service reaches.
#[derive(Debug)]
pub struct Surface {
    /// Reads.
    pub reads: read::Reads,
    /// Writes.
    pub writes: write::Writes,
    /// The group.
    pub raft: raft::Handle,
    /// What is applied.
    pub views: Views,
    /// Recent events.
    pub history: Arc<History>,
    /// Older events.
    pub files: Arc<HistoryFiles>,
    /// Time.
    pub clock: Arc<Clock>,
    /// Clean-ups completed here.
    pub cleanups: Arc<Counters>,
    /// Renewals are acknowledged only while a quorum answered within this time (ruling
    /// 7).
    pub quorum_fresh: Duration,
    /// How often workers said that they run what they are not told to.
    pub strays: AtomicU64,
    /// Sessions ended because another process registered under their name or address.
    pub replaced: AtomicU64,
    /// Cancelled when this coordinator stops.
    pub stop: CancellationToken,
    /// Wall clock at the start of this process, in milliseconds.
    pub started_ms: u64,
}
