//! Reads the files of a stopped member. Never changes them, and refuses a directory in use.
//! Called by the offline commands of the operator.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::data_dir;
use crate::error::OfflineError;
use crate::log::backend::{LogBackend, LogError, MetaKey};
use crate::log::high_water::HighWater;
use crate::log::record::{
    Ballot, Kind, MembershipRecord, Position, RecordError, decode_entry, decode_small,
};
use crate::log::sled::SledLog;
use crate::machine::{RestoreError, SectionReader};
use crate::member::{Member, hex};
use crate::proposal::Proposal;
use crate::snapshot_file::{Sections, SnapshotFile};
use crate::snapshot_store::SnapshotStore;
use crate::status::SnapshotInfo;
use crate::types::{Entry, Payload};

/// What an entry of the log holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogBody {
    /// The first entry of a leader.
    Blank,
    /// A body for the machine.
    Proposal {
        /// Time stamp of the proposer, in milliseconds.
        stamp_ms: u64,
        /// The index and witness that the proposer attested.
        attested: Option<(u64, [u8; 16])>,
        /// The body.
        body: Vec<u8>,
    },
    /// The members from here on.
    Membership(Vec<Member>),
}

/// One entry of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Position.
    pub index: u64,
    /// Term of the leader that proposed it.
    pub term: u64,
    /// What it holds.
    pub body: LogBody,
}

/// What a data directory holds.
#[derive(Clone, Debug)]
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
    /// Newest entry that is no longer in the log.
    pub purged: Option<u64>,
    /// First and last entry.
    pub range: Option<(u64, u64)>,
    /// The mark outside the log: the log must reach it.
    pub high_water: Option<u64>,
    /// All entries, oldest first.
    pub entries: Vec<LogEntry>,
}

/// Head of a snapshot file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotHeader {
    /// Format of the file.
    pub version: u16,
    /// Newest entry inside.
    pub index: u64,
    /// Term of that entry.
    pub term: u64,
    /// The group.
    pub cluster_id: String,
    /// Members at that entry.
    pub members: Vec<Member>,
    /// Digest of the state.
    pub digest: [u8; 16],
    /// Witness of the state.
    pub witness: [u8; 16],
}

/// A snapshot file: what it holds, or why it cannot be used.
pub type FoundSnapshot = (PathBuf, Result<SnapshotInfo, String>);

/// An open snapshot file; its sections come in order.
pub struct OpenSnapshot {
    /// Its head.
    pub header: SnapshotHeader,
    sections: Sections,
}

impl SectionReader for OpenSnapshot {
    fn section(&mut self) -> Result<Option<(u16, Vec<u8>)>, RestoreError> {
        self.sections.section()
    }
}

/// Reads the whole log of a stopped member. It works on a copy, because opening a store writes.
///
/// # Errors
/// When the directory is in use, cannot be read, or is damaged.
pub fn inspect_log(dir: &Path) -> Result<LogReport, OfflineError> {
    refuse_locked(dir)?;
    let format = data_dir::read_format(dir)
        .map_err(|error| damaged(dir, error.to_string()))?
        .ok_or_else(|| damaged(dir, "it has no FORMAT file: not a data directory".into()))?;
    let mark_file = data_dir::mark_file(dir);
    let mark = HighWater::peek(&mark_file).map_err(|error| log_error(&mark_file, error))?;
    let mut report = LogReport {
        member: format.member,
        cluster_id: format.cluster.map(|cluster| cluster.to_string()),
        format: format.version,
        vote: None,
        committed: None,
        purged: None,
        range: None,
        high_water: mark.and_then(|mark| mark.position).map(|at| at.index),
        entries: Vec::new(),
    };
    let log_dir = data_dir::log_dir(dir);
    if log_dir.exists() {
        let copy = Copy::of(&log_dir)?;
        let log = SledLog::open(&copy.path).map_err(|error| log_error(&log_dir, error))?;
        read_log(&log, &mut report).map_err(|error| log_error(&log_dir, error))?;
    }
    Ok(report)
}

fn read_log(log: &SledLog, report: &mut LogReport) -> Result<(), LogError> {
    let bad = |error: RecordError| LogError::Damaged(error.to_string());
    if let Some(record) = log.read_meta(MetaKey::Vote)? {
        let ballot: Ballot = decode_small(Kind::BALLOT, &record).map_err(bad)?;
        report.vote = Some((ballot.term, ballot.member));
    }
    for key in [MetaKey::Committed, MetaKey::Purged] {
        let Some(record) = log.read_meta(key)? else { continue };
        let position: Position = decode_small(Kind::POSITION, &record).map_err(bad)?;
        match key {
            MetaKey::Purged => report.purged = Some(position.index),
            MetaKey::Committed | MetaKey::Vote => report.committed = Some(position.index),
        }
    }
    let from = report.purged.map_or(0, |purged| purged.saturating_add(1));
    log.scan(from, &mut |index, record| {
        let entry = decode_entry(&record)
            .map_err(|error| LogError::Damaged(format!("entry {index}: {error}")))?;
        report.entries.push(log_entry(&entry)?);
        Ok(())
    })?;
    let first = report.entries.first().map(|entry| entry.index);
    report.range = first.zip(report.entries.last().map(|entry| entry.index));
    Ok(())
}

fn log_entry(entry: &Entry) -> Result<LogEntry, LogError> {
    let Position { index, term } = Position::of(&entry.log_id);
    let body = match &entry.payload {
        Payload::Blank => LogBody::Blank,
        Payload::Membership(membership) => {
            LogBody::Membership(MembershipRecord::of(membership).members())
        }
        Payload::Normal(bytes) => {
            let proposal = Proposal::decode(&bytes.0)
                .map_err(|error| LogError::Damaged(format!("entry {index}: {error}")))?;
            LogBody::Proposal {
                stamp_ms: proposal.stamp_ms,
                attested: proposal.attest.map(|attest| (attest.index, attest.witness)),
                body: proposal.body.to_vec(),
            }
        }
    };
    Ok(LogEntry { index, term, body })
}

/// A copy of a directory that is removed when it is dropped.
struct Copy {
    path: PathBuf,
}

impl Copy {
    fn of(dir: &Path) -> Result<Self, OfflineError> {
        let mut random = [0_u8; 8];
        let failed = |source| OfflineError::Io { file: dir.to_owned(), source };
        getrandom::fill(&mut random).map_err(|error| failed(io::Error::other(error)))?;
        let path = std::env::temp_dir().join(format!("quorate-inspect-{}", hex(&random)));
        let copy = Self { path };
        copy_all(dir, &copy.path).map_err(failed)?;
        Ok(copy)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // What stays is a file in the directory for temporary files; nobody relies on it.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_all(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// The snapshot files of a data directory, newest first; a damaged one comes with the reason.
///
/// # Errors
/// When the directory is in use or cannot be read.
pub fn list_snapshots(dir: &Path) -> Result<Vec<FoundSnapshot>, OfflineError> {
    refuse_locked(dir)?;
    let place = data_dir::snapshot_dir(dir);
    let files = match SnapshotStore::files(&place) {
        Ok(files) => files,
        Err(error) if error.kind() == io::ErrorKind::NotFound && dir.exists() => Vec::new(),
        Err(source) => return Err(OfflineError::Io { file: place, source }),
    };
    Ok(files
        .into_iter()
        .map(|(path, file)| (path, file.map(|file| file.info).map_err(|error| error.to_string())))
        .collect())
}

/// Opens one snapshot file after all its checksums were compared.
///
/// # Errors
/// When the file cannot be read or is damaged.
pub fn open_snapshot(path: &Path) -> Result<OpenSnapshot, OfflineError> {
    let fail = |error| match error {
        RestoreError::Io(source) => OfflineError::Io { file: path.to_owned(), source },
        other => damaged(path, other.to_string()),
    };
    let file = SnapshotFile::open(path).map_err(fail)?;
    let header = SnapshotHeader {
        version: 1,
        index: file.info.index,
        term: file.info.term,
        cluster_id: file.head.cluster.clone(),
        members: file.head.meta.membership.members(),
        digest: file.head.digest,
        witness: file.head.witness,
    };
    let sections = file.sections().map_err(fail)?;
    Ok(OpenSnapshot { header, sections })
}

fn refuse_locked(dir: &Path) -> Result<(), OfflineError> {
    if data_dir::is_locked(dir) {
        return Err(OfflineError::Locked { dir: dir.to_owned() });
    }
    Ok(())
}

fn damaged(file: &Path, detail: String) -> OfflineError {
    OfflineError::Damaged { file: file.to_owned(), detail }
}

fn log_error(file: &Path, error: LogError) -> OfflineError {
    match error {
        LogError::Io(source) => OfflineError::Io { file: file.to_owned(), source },
        other => damaged(file, other.to_string()),
    }
}
