//! Every key a coordinator's configuration may have: default, what is allowed, what it is for.
//! Environment variables and flags are derived from the names. Read by `layers` and `config show`.

use std::net::SocketAddr;

use tracing_subscriber::EnvFilter;

/// What values a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Number { min: u64, max: u64 },
    Socket,
    Address,
    Path,
    Switch,
    Choice(&'static [&'static str]),
    Filter,
}

/// One key.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Name with its section, such as `raft.heartbeat_ms`.
    pub name: &'static str,
    /// The default; empty: none.
    pub default: &'static str,
    /// Whether a coordinator can start without a value.
    pub optional: bool,
    /// What it is for, in one line.
    pub about: &'static str,
    pub(super) kind: Kind,
}

const fn key(name: &'static str, kind: Kind, default: &'static str, about: &'static str) -> Key {
    Key { name, default, optional: false, about, kind }
}

const fn optional(name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key { name, default: "", optional: true, about, kind }
}

const MEMBER_MAX: u64 = 4_294_967_295;
const MS: Kind = Kind::Number { min: 10, max: 60_000 };

/// All keys, in the order in which they are shown.
pub const KEYS: &[Key] = &[
    key("member", Kind::Number { min: 1, max: MEMBER_MAX }, "", "number of this member"),
    key("data_dir", Kind::Path, "", "directory of log, snapshots and history"),
    key("client_listen", Kind::Socket, "127.0.0.1:7420", "where clients and workers connect"),
    key("peer_listen", Kind::Socket, "127.0.0.1:7421", "where the other members connect"),
    key("http_listen", Kind::Socket, "127.0.0.1:7422", "metrics and health"),
    optional("advertise_client", Kind::Address, "address told to clients; unset: the bound one"),
    optional("advertise_peer", Kind::Address, "address told to members; unset: the bound one"),
    key("insecure", Kind::Switch, "false", "accept listening outside loopback, unencrypted"),
    optional("port_file", Kind::Path, "file that gets the bound addresses as JSON"),
    key("log.format", Kind::Choice(&["text", "json"]), "text", "how log lines are written"),
    key("log.filter", Kind::Filter, "info,openraft=error", "which log lines are written"),
    key("raft.heartbeat_ms", MS, "100", "time between heartbeats of a leader"),
    key("raft.election_min_ms", MS, "400", "shortest silence before an election"),
    key("raft.election_max_ms", MS, "800", "longest silence before an election"),
    key(
        "raft.snapshot_every_entries",
        Kind::Number { min: 100, max: 100_000_000 },
        "100000",
        "entries between two snapshots",
    ),
    key(
        "raft.snapshot_every_bytes",
        Kind::Number { min: 65_536, max: 1_099_511_627_776 },
        "268435456",
        "bytes of log between two snapshots",
    ),
    key(
        "raft.backend",
        Kind::Choice(&["sled", "memory"]),
        "sled",
        "where the log is kept; memory loses everything with the process",
    ),
];

impl Key {
    /// The key of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Key> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// Its environment variable, such as `QUORATE_RAFT__HEARTBEAT_MS`.
    #[must_use]
    pub fn env(&self) -> String {
        format!("QUORATE_{}", self.name.replace('.', "__").to_uppercase())
    }

    /// Its flag, such as `--raft-heartbeat-ms`.
    #[must_use]
    pub fn flag(&self) -> String {
        format!("--{}", self.name.replace(['.', '_'], "-"))
    }

    /// What is allowed, in words.
    #[must_use]
    pub fn allowed(&self) -> String {
        match self.kind {
            Kind::Number { min, max } => format!("a whole number from {min} to {max}"),
            Kind::Socket => "an IP address and port, such as 127.0.0.1:7420".to_owned(),
            Kind::Address => "host:port, at most 256 bytes".to_owned(),
            Kind::Path => "a path".to_owned(),
            Kind::Switch => "true or false".to_owned(),
            Kind::Choice(choices) => choices.join(" or "),
            Kind::Filter => "a log filter, such as info or info,raft=debug".to_owned(),
        }
    }

    pub(super) fn accepts(&self, value: &str) -> bool {
        match self.kind {
            Kind::Number { min, max } => {
                value.parse::<u64>().is_ok_and(|number| (min..=max).contains(&number))
            }
            Kind::Socket => value.parse::<SocketAddr>().is_ok(),
            Kind::Address => is_address(value),
            Kind::Path => !value.is_empty(),
            Kind::Switch => matches!(value, "true" | "false"),
            Kind::Choice(choices) => choices.contains(&value),
            Kind::Filter => !value.is_empty() && EnvFilter::try_new(value).is_ok(),
        }
    }
}

fn is_address(value: &str) -> bool {
    let Some((host, port)) = value.rsplit_once(':') else { return false };
    let host_fits = !host.is_empty()
        && host.chars().all(|char| char.is_ascii_graphic() && !matches!(char, '/' | '@' | ','));
    value.len() <= 256 && host_fits && port.parse::<u16>().is_ok_and(|port| port != 0)
}
