//! Durable state in words: snapshots and logs of a stopped member. Reads only; refuses a directory
//! in use. Called by `quorate snapshot inspect|verify` and `quorate log inspect`.

use std::path::{Path, PathBuf};

use raft::offline::{LogBody, inspect_log, list_snapshots, open_snapshot};
use raft::{OfflineError, RestoreError};
use serde::Serialize;
use state::State;
use state::channel::{Channel, Dropped, Phase};
use state::node::Node;

use crate::machine::read_state;

/// Why a file cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory or file cannot be opened.
    #[error(transparent)]
    Open(#[from] OfflineError),
    /// The state in a snapshot cannot be read.
    #[error("{}: {source}", .path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// Why.
        source: RestoreError,
    },
    /// The directory has no snapshot.
    #[error("{}: no snapshot file is there", .dir.display())]
    NoSnapshot {
        /// The directory.
        dir: PathBuf,
    },
}

impl Error {
    /// Whether what is there is damaged, as opposed to not there or in use.
    #[must_use]
    pub fn is_integrity(&self) -> bool {
        matches!(self, Self::Open(OfflineError::Damaged { .. }) | Self::State { .. })
    }

    /// Whether what was named does not exist.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        match self {
            Self::Open(OfflineError::Io { source, .. }) => {
                source.kind() == std::io::ErrorKind::NotFound
            }
            Self::NoSnapshot { .. } => true,
            Self::Open(_) | Self::State { .. } => false,
        }
    }
}

/// One snapshot file in words.
#[derive(Debug, Clone, Serialize)]
pub struct SnapshotReport {
    /// The file.
    pub path: PathBuf,
    /// Format of the file.
    pub format: u16,
    /// Newest log entry inside, and its term.
    pub index: u64,
    /// Term of that entry.
    pub term: u64,
    /// The group.
    pub cluster_id: String,
    /// Members at that entry.
    pub members: Vec<String>,
    /// Digest in the header, in hex.
    pub digest: String,
    /// Witness in the header, in hex.
    pub witness: String,
    /// Accepted commands.
    pub revision: u64,
    /// Log time in milliseconds.
    pub now_ms: u64,
    /// Behaviour version.
    pub level: u32,
    /// Number of records.
    pub nodes: usize,
    /// Number of channels.
    pub channels: usize,
    /// Whether the digest of the records is the one in the header.
    pub digest_equal: bool,
    /// Broken invariants, one line each.
    pub violations: Vec<String>,
    /// Every record, one line each.
    pub records: Vec<String>,
}

/// A log in words.
#[derive(Debug, Clone, Serialize)]
pub struct LogReport {
    /// The member it belongs to.
    pub member: u64,
    /// The group it belongs to.
    pub cluster_id: Option<String>,
    /// Format of the directory.
    pub format: u32,
    /// Newest term voted in, and for whom.
    pub vote: Option<(u64, u64)>,
    /// Newest entry saved as committed.
    pub committed: Option<u64>,
    /// Newest entry no longer in the log.
    pub purged: Option<u64>,
    /// First and last entry.
    pub range: Option<(u64, u64)>,
    /// The mark outside the log.
    pub high_water: Option<u64>,
    /// Every entry.
    pub entries: Vec<LogLine>,
}

/// One log entry in words.
#[derive(Debug, Clone, Serialize)]
pub struct LogLine {
    /// Position.
    pub index: u64,
    /// Term of its leader.
    pub term: u64,
    /// blank, commands, or members.
    pub kind: &'static str,
    /// Stamp of the leader in milliseconds; none for blank and membership entries.
    pub stamp_ms: Option<u64>,
    /// The earlier index whose witness it attests.
    pub attests: Option<u64>,
    /// One line for each command or member.
    pub lines: Vec<String>,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The newest readable snapshot file when `path` is a data directory, else the file itself.
fn snapshot_file(path: &Path) -> Result<PathBuf, Error> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let files = list_snapshots(path)?;
    let newest = files.into_iter().next().map(|(file, _)| file);
    newest.ok_or_else(|| Error::NoSnapshot { dir: path.to_owned() })
}

/// Reads a snapshot whole: checksums, records, digest, invariants.
///
/// # Errors
/// When the file cannot be read or is damaged. A digest or invariant that does not hold is in the
/// report.
pub fn snapshot_inspect(path: &Path) -> Result<SnapshotReport, Error> {
    let path = snapshot_file(path)?;
    let mut open = open_snapshot(&path)?;
    let state =
        read_state(&mut open).map_err(|source| Error::State { path: path.clone(), source })?;
    let header = &open.header;
    Ok(SnapshotReport {
        format: header.version,
        index: header.index,
        term: header.term,
        cluster_id: header.cluster_id.clone(),
        members: header.members.iter().map(ToString::to_string).collect(),
        digest: hex(&header.digest),
        witness: hex(&header.witness),
        revision: state.revision().0,
        now_ms: state.now().0,
        level: state.level(),
        nodes: state.nodes().count(),
        channels: state.channel_count(),
        digest_equal: state.recompute_digest().0 == header.digest
            && state.witness().0 == header.witness,
        violations: state::check(&state).iter().map(ToString::to_string).collect(),
        records: records(&state),
        path,
    })
}

fn records(state: &State) -> Vec<String> {
    let leader = state.leader();
    let mut lines = vec![format!(
        "leader: member {} term {} since {}",
        leader.member, leader.term, leader.started_at
    )];
    lines.extend(
        state
            .settings()
            .into_iter()
            .map(|setting| format!("setting {} = {}", setting.name, setting.value)),
    );
    lines.extend(state.nodes().map(|node| node_line(node)));
    lines.extend(state.frozen_names().map(|name| format!("frozen {name}")));
    lines.extend(state.cleaners().map(|(name, since)| format!("cleaner {name} since {since}")));
    lines.extend(state.channels().map(|channel| channel_line(state, channel)));
    lines.extend(state.drops().map(|(name, dropped)| dropped_line(name.as_str(), dropped)));
    lines.extend(state.requests().map(|(id, remembered)| {
        format!(
            "request {id} issued at {} decided at revision {}",
            remembered.issued_at, remembered.revision
        )
    }));
    lines
}

fn node_line(node: &Node) -> String {
    let about = &node.registration;
    format!(
        "node {} {} name {} at {} role {:?} version {} incarnation {} {:?} registered at {} \
         silent {} ms",
        node.node,
        node.epoch,
        about.name,
        about.address,
        about.role,
        about.version,
        about.incarnation,
        node.status,
        node.registered_at,
        node.silent_ms
    )
}

fn channel_line(state: &State, channel: &Channel) -> String {
    let spec = &channel.spec;
    let place = match &channel.phase {
        Phase::Buffered { planned: None } => String::from("Buffered"),
        Phase::Buffered { planned: Some(to) } => format!("Buffered, to go to {to}"),
        Phase::ToWatch { owner, op, .. } => format!("ToWatch by {owner} {op}"),
        Phase::Watched { owner, op } => format!("Watched by {owner} {op}"),
        Phase::ToRelease { owner, op, cause, .. } => {
            format!("ToRelease by {owner} {op} because {cause}")
        }
    };
    let mut line = format!(
        "channel {} {} of {} {place} {} added at revision {}",
        spec.name, spec.pchannel, spec.collection, channel.term, channel.added
    );
    if let Some(due) = state.deadline(channel) {
        line.push_str(&format!(" deadline {due}"));
    }
    if let Some(placed) = &channel.placed_by {
        line.push_str(&format!(" placed by revision {} cause {}", placed.revision, placed.cause));
    }
    for former in &channel.former_owners {
        line.push_str(&format!(" former owner {former}"));
    }
    if let Some(committed) = &channel.committed {
        let bytes = committed.positions.len();
        line.push_str(&format!(" committed {bytes} bytes at revision {}", committed.revision));
    }
    line
}

fn dropped_line(name: &str, dropped: &Dropped) -> String {
    let mut line =
        format!("dropped {name} {} removed at revision {}", dropped.last_term, dropped.removed);
    for former in &dropped.former_owners {
        line.push_str(&format!(" former owner {former}"));
    }
    line
}

/// Reads a log whole.
///
/// # Errors
/// When the directory is in use, cannot be read, or is damaged.
pub fn log_inspect(dir: &Path) -> Result<LogReport, Error> {
    let log = inspect_log(dir)?;
    let entries = log.entries.into_iter().map(|entry| {
        let mut line = LogLine {
            index: entry.index,
            term: entry.term,
            kind: "blank",
            stamp_ms: None,
            attests: None,
            lines: Vec::new(),
        };
        match entry.body {
            LogBody::Blank => {}
            LogBody::Membership(members) => {
                line.kind = "members";
                line.lines = members.iter().map(ToString::to_string).collect();
            }
            LogBody::Proposal { stamp_ms, attested, body } => {
                line.kind = "commands";
                line.stamp_ms = Some(stamp_ms);
                line.attests = attested.map(|(index, _)| index);
                line.lines = commands(&body);
            }
        }
        line
    });
    Ok(LogReport {
        member: log.member,
        cluster_id: log.cluster_id,
        format: log.format,
        vote: log.vote,
        committed: log.committed,
        purged: log.purged,
        range: log.range,
        high_water: log.high_water,
        entries: entries.collect(),
    })
}

fn commands(body: &[u8]) -> Vec<String> {
    match state::codec::decode_batch(body) {
        Ok(batch) => batch
            .iter()
            .map(|request| match request.actor.as_str() {
                "" => request.command.to_string(),
                actor => format!("{} (by {actor})", request.command),
            })
            .collect(),
        Err(error) => vec![format!("{} bytes that cannot be read: {error}", body.len())],
    }
}
