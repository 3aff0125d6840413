//! Reads the files of a stopped member. Never writes, and refuses a directory in use.
//! Called by the offline commands of the operator.

use std::path::{Path, PathBuf};

use crate::error::OfflineError;
use crate::machine::{RestoreError, SectionReader};
use crate::member::Member;
use crate::status::SnapshotInfo;

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

/// An open snapshot file.
pub struct OpenSnapshot {
    /// Its head.
    pub header: SnapshotHeader,
}

impl SectionReader for OpenSnapshot {
    fn section(&mut self) -> Result<Option<(u16, Vec<u8>)>, RestoreError> {
        Ok(None)
    }
}

/// Reads the whole log of a stopped member.
///
/// # Errors
/// When the directory is in use, cannot be read, or is damaged.
pub fn inspect_log(dir: &Path) -> Result<LogReport, OfflineError> {
    Err(OfflineError::Locked { dir: dir.to_owned() })
}

/// The snapshot files of a directory, newest first; files that are damaged come with the reason.
///
/// # Errors
/// When the directory cannot be read.
pub fn list_snapshots(
    dir: &Path,
) -> Result<Vec<(PathBuf, Result<SnapshotInfo, String>)>, OfflineError> {
    Err(OfflineError::Locked { dir: dir.to_owned() })
}

/// Opens one snapshot file after its checksums were compared.
///
/// # Errors
/// When the file cannot be read or is damaged.
pub fn open_snapshot(path: &Path) -> Result<OpenSnapshot, OfflineError> {
    Err(OfflineError::Locked { dir: path.to_owned() })
}
