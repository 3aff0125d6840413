//! The configuration of one coordinator, as a plain validated struct. What apply or the planner
//! reads is replicated policy and not here; bounds are in `limits`. Built by `cli` from file,
//! environment and flags through `Layers`.

mod error;
mod keys;
mod layers;

use std::net::SocketAddr;
use std::path::PathBuf;

pub use error::ConfigError;
pub use keys::{KEYS, Key};
pub use layers::{Layers, Origin, Setting};

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One line of text for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Where the Raft log is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// On disk, synced before it is acknowledged.
    Sled,
    /// In memory: everything is lost with the process. For experiments only.
    Memory,
}

/// Timers and snapshot cadence of this member. The timers must be alike on all members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RaftConfig {
    /// Time between two heartbeats of a leader, in milliseconds.
    pub heartbeat_ms: u64,
    /// Shortest silence of the leader before an election, in milliseconds.
    pub election_min_ms: u64,
    /// Longest silence of the leader before an election, in milliseconds.
    pub election_max_ms: u64,
    /// A snapshot is built after this many entries.
    pub snapshot_every_entries: u64,
    /// A snapshot is built after this many bytes of log.
    pub snapshot_every_bytes: u64,
    /// Where the log is kept.
    pub backend: Backend,
}

/// Logging of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// How lines are written.
    pub format: LogFormat,
    /// Which lines are written, such as `info,raft=debug`.
    pub filter: String,
}

/// The configuration of one coordinator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Number of this member in its group, at least 1.
    pub member: u64,
    /// Directory of log, snapshots and history. Used by one process at a time.
    pub data_dir: PathBuf,
    /// Where clients and workers connect; port 0 takes a free one.
    pub client_listen: SocketAddr,
    /// Where the other members connect; port 0 takes a free one.
    pub peer_listen: SocketAddr,
    /// Metrics and health; port 0 takes a free one.
    pub http_listen: SocketAddr,
    /// `host:port` told to clients; unset: the bound address.
    pub advertise_client: Option<String>,
    /// `host:port` told to the other members; unset: the bound address.
    pub advertise_peer: Option<String>,
    /// Whether listening outside loopback without encryption is accepted.
    pub insecure: bool,
    /// The bound addresses are written here as JSON once all listeners are up; unset: nowhere.
    pub port_file: Option<PathBuf>,
    /// Logging.
    pub log: LogConfig,
    /// Raft.
    pub raft: RaftConfig,
}

impl Config {
    /// Builds the configuration out of `layers`.
    ///
    /// # Errors
    /// The first value that is missing, malformed or does not fit another one.
    pub fn from_layers(layers: &Layers) -> Result<Self, ConfigError> {
        let config = Self {
            member: layers.number("member")?,
            data_dir: PathBuf::from(layers.text("data_dir")?),
            client_listen: layers.socket("client_listen")?,
            peer_listen: layers.socket("peer_listen")?,
            http_listen: layers.socket("http_listen")?,
            advertise_client: layers.optional("advertise_client")?,
            advertise_peer: layers.optional("advertise_peer")?,
            insecure: layers.switch("insecure")?,
            port_file: layers.optional("port_file")?.map(PathBuf::from),
            log: LogConfig {
                format: match layers.text("log.format")?.as_str() {
                    "json" => LogFormat::Json,
                    _ => LogFormat::Text,
                },
                filter: layers.text("log.filter")?,
            },
            raft: RaftConfig {
                heartbeat_ms: layers.number("raft.heartbeat_ms")?,
                election_min_ms: layers.number("raft.election_min_ms")?,
                election_max_ms: layers.number("raft.election_max_ms")?,
                snapshot_every_entries: layers.number("raft.snapshot_every_entries")?,
                snapshot_every_bytes: layers.number("raft.snapshot_every_bytes")?,
                backend: match layers.text("raft.backend")?.as_str() {
                    "memory" => Backend::Memory,
                    _ => Backend::Sled,
                },
            },
        };
        config.check_timers(layers)?;
        config.check_listeners(layers)?;
        Ok(config)
    }

    fn check_timers(&self, layers: &Layers) -> Result<(), ConfigError> {
        let raft = &self.raft;
        if raft.election_min_ms < raft.heartbeat_ms.saturating_mul(2) {
            let least = raft.heartbeat_ms.saturating_mul(2);
            let allowed = format!("at least twice raft.heartbeat_ms, here {least}");
            return Err(layers.bad("raft.election_min_ms", allowed));
        }
        if raft.election_max_ms <= raft.election_min_ms {
            let allowed = format!("more than raft.election_min_ms, here {}", raft.election_min_ms);
            return Err(layers.bad("raft.election_max_ms", allowed));
        }
        Ok(())
    }

    fn check_listeners(&self, layers: &Layers) -> Result<(), ConfigError> {
        let listeners = [
            (
                "client_listen",
                self.client_listen,
                Some(("advertise_client", &self.advertise_client)),
            ),
            ("peer_listen", self.peer_listen, Some(("advertise_peer", &self.advertise_peer))),
            ("http_listen", self.http_listen, None),
        ];
        let mut seen: Vec<(&str, SocketAddr)> = Vec::new();
        for (key, address, advertised) in listeners {
            if !self.insecure && !address.ip().is_loopback() {
                let allowed = "a loopback address, or any with insecure = true (--insecure): \
                               there is no encryption yet";
                return Err(layers.bad(key, allowed.to_owned()));
            }
            if let Some((name, None)) = advertised
                && address.ip().is_unspecified()
            {
                let allowed =
                    format!("one address that others can reach, or any together with {name}");
                return Err(layers.bad(key, allowed));
            }
            if address.port() != 0
                && let Some((other, _)) = seen.iter().find(|(_, taken)| *taken == address)
            {
                return Err(layers.bad(key, format!("an address other than that of {other}")));
            }
            seen.push((key, address));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
