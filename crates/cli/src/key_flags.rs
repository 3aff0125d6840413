//! Flags for every configuration key of a coordinator, and the layering of file, environment and
//! flags. What the keys mean is in `server::config`. Used by `serve` and `config show`.

use std::path::PathBuf;

use clap::Args;
use server::config::{ConfigError, Key, Layers};

/// The configuration of a coordinator: defaults < file < environment < flags.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct KeyFlags {
    /// Configuration file (TOML).
    #[arg(long, env = "QUORATE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Number of this member.
    #[arg(long, value_name = "N")]
    member: Option<String>,
    /// Directory of log, snapshots and history.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// Where clients and workers connect.
    #[arg(long, value_name = "IP:PORT")]
    client_listen: Option<String>,
    /// Where the other members connect.
    #[arg(long, value_name = "IP:PORT")]
    peer_listen: Option<String>,
    /// Metrics and health.
    #[arg(long, value_name = "IP:PORT")]
    http_listen: Option<String>,
    /// Address told to clients.
    #[arg(long, value_name = "HOST:PORT")]
    advertise_client: Option<String>,
    /// Address told to the other members.
    #[arg(long, value_name = "HOST:PORT")]
    advertise_peer: Option<String>,
    /// Accept listening outside loopback, unencrypted.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    insecure: Option<String>,
    /// File that gets the bound addresses as JSON.
    #[arg(long, value_name = "FILE")]
    port_file: Option<String>,
    /// How log lines are written: text or json.
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    /// Which log lines are written, such as info,raft=debug.
    #[arg(long, value_name = "FILTER")]
    log_filter: Option<String>,
    /// Time between heartbeats of a leader.
    #[arg(long, value_name = "MS")]
    raft_heartbeat_ms: Option<String>,
    /// Shortest silence before an election.
    #[arg(long, value_name = "MS")]
    raft_election_min_ms: Option<String>,
    /// Longest silence before an election.
    #[arg(long, value_name = "MS")]
    raft_election_max_ms: Option<String>,
    /// Entries between two snapshots.
    #[arg(long, value_name = "N")]
    raft_snapshot_every_entries: Option<String>,
    /// Bytes of log between two snapshots.
    #[arg(long, value_name = "BYTES")]
    raft_snapshot_every_bytes: Option<String>,
    /// Where the log is kept: sled or memory.
    #[arg(long, value_name = "BACKEND")]
    raft_backend: Option<String>,
}

impl KeyFlags {
    /// Layers defaults, file, environment and flags.
    pub(crate) fn layers(&self) -> Result<Layers, ConfigError> {
        let mut layers = Layers::default();
        if let Some(path) = &self.config {
            layers.file(path)?;
        }
        layers.environment(environment())?;
        for (name, value) in self.given() {
            let flag = Key::named(name).map_or_else(|| name.to_owned(), Key::flag);
            layers.flag(name, &flag, value)?;
        }
        Ok(layers)
    }

    fn given(&self) -> impl Iterator<Item = (&'static str, String)> {
        let flags = [
            ("member", &self.member),
            ("data_dir", &self.data_dir),
            ("client_listen", &self.client_listen),
            ("peer_listen", &self.peer_listen),
            ("http_listen", &self.http_listen),
            ("advertise_client", &self.advertise_client),
            ("advertise_peer", &self.advertise_peer),
            ("insecure", &self.insecure),
            ("port_file", &self.port_file),
            ("log.format", &self.log_format),
            ("log.filter", &self.log_filter),
            ("raft.heartbeat_ms", &self.raft_heartbeat_ms),
            ("raft.election_min_ms", &self.raft_election_min_ms),
            ("raft.election_max_ms", &self.raft_election_max_ms),
            ("raft.snapshot_every_entries", &self.raft_snapshot_every_entries),
            ("raft.snapshot_every_bytes", &self.raft_snapshot_every_bytes),
            ("raft.backend", &self.raft_backend),
        ];
        flags.into_iter().filter_map(|(name, value)| Some((name, value.clone()?)))
    }
}

/// Variables that are not text cannot be ours: every key takes text.
fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use server::config::KEYS;

    use crate::args::Arguments;

    #[test]
    fn every_key_has_its_flag() {
        let command = Arguments::command();
        let serve = command.find_subcommand("serve").expect("serve is a command");
        for key in KEYS {
            let flag = key.flag();
            let long = flag.trim_start_matches("--");
            let found = serve.get_arguments().any(|argument| argument.get_long() == Some(long));
            assert!(found, "{flag} is missing");
        }
    }
}
