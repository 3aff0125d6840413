//! What one member is started with. Everything here is local to the machine and never replicated.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::faults::Faults;
use crate::log::memory::MemoryDisk;

/// Where the log lives.
#[derive(Clone, Debug, Default)]
pub enum BackendKind {
    /// sled under the data directory: the default.
    #[default]
    Sled,
    /// Memory that outlives the member, for simulations; loses what was not synced on a crash.
    Memory(MemoryDisk),
}

/// Timers of the election, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    /// Interval of the leader's heartbeats.
    pub heartbeat_ms: u64,
    /// Shortest election timeout.
    pub election_min_ms: u64,
    /// Longest election timeout; also the leader's lease.
    pub election_max_ms: u64,
}

impl Default for Timers {
    fn default() -> Self {
        Self { heartbeat_ms: 100, election_min_ms: 400, election_max_ms: 800 }
    }
}

/// Options of [`crate::start`].
#[derive(Clone, Debug)]
pub struct Options {
    /// Directory of this member alone.
    pub data_dir: PathBuf,
    /// Number of this member.
    pub member: u64,
    /// Where to listen for the other members; port 0 picks one.
    pub peer_listen: SocketAddr,
    /// Address told to the other members; empty: the address listened on.
    pub peer_address: String,
    /// Address told to clients.
    pub client_address: String,
    /// Where the log lives.
    pub backend: BackendKind,
    /// Timers of the election.
    pub timers: Timers,
    /// A snapshot is taken after that many entries.
    pub snapshot_every_entries: u64,
    /// A snapshot is taken after that many bytes of entries.
    pub snapshot_every_bytes: u64,
    /// Entries kept in the log after a snapshot, for followers that lag.
    pub keep_log_entries: u64,
    /// Free space in bytes below which proposals are refused.
    pub disk_low_bytes: u64,
    /// Bytes of entries kept in memory.
    pub cache_bytes: usize,
    /// Proposals that may be under way at once on this member.
    pub proposals_max: usize,
    /// Largest body of one proposal in bytes.
    pub body_max_bytes: usize,
    /// How long a proposal may take before its outcome is called unknown.
    pub propose_timeout: Duration,
    /// How long a member whose state was called wrong waits for others to ask.
    pub suspect_timeout: Duration,
    /// Cuts links on purpose, for tests.
    pub faults: Faults,
}

impl Options {
    /// Options with the defaults of the product.
    pub fn new(data_dir: impl Into<PathBuf>, member: u64, peer_listen: SocketAddr) -> Self {
        Self {
            data_dir: data_dir.into(),
            member,
            peer_listen,
            peer_address: String::new(),
            client_address: String::new(),
            backend: BackendKind::default(),
            timers: Timers::default(),
            snapshot_every_entries: 50_000,
            snapshot_every_bytes: 64 << 20,
            keep_log_entries: 10_000,
            disk_low_bytes: 256 << 20,
            cache_bytes: 32 << 20,
            proposals_max: 8192,
            body_max_bytes: 16 << 20,
            propose_timeout: Duration::from_secs(10),
            suspect_timeout: Duration::from_secs(10),
            faults: Faults::default(),
        }
    }
}
