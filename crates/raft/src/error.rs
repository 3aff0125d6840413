//! The errors of this crate: what a caller may do about each, in its documentation.
//! `Fault` is the only one that stops the member.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::member::{Member, hex};

/// A proposal has no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// Not tried here: try the hint.
    #[error("this member does not lead{}", hint_text(.hint))]
    NotLeader {
        /// The leader, when one is known.
        hint: Option<Member>,
    },
    /// Proposed without an answer: it may still commit.
    #[error("the outcome is unknown: the proposal may still commit")]
    Unknown,
    /// Too many proposals are under way here.
    #[error("too many proposals are under way")]
    Overloaded,
    /// The disk is nearly full.
    #[error("the disk is nearly full")]
    DiskLow,
    /// The body is over the limit.
    #[error("a body of {bytes} bytes is over the limit of {limit}")]
    TooLarge {
        /// Size of the body.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The member has stopped or is stopping.
    #[error("this member has stopped")]
    Stopped,
}

fn hint_text(hint: &Option<Member>) -> String {
    hint.as_ref().map(|leader| format!("; {leader} does")).unwrap_or_default()
}

/// A read could not be made linearizable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// No leader is known.
    #[error("no leader is known")]
    NoLeader,
    /// The leader, or a quorum behind it, did not answer in time.
    #[error("no quorum answered in time")]
    Timeout,
    /// The member has stopped or is stopping.
    #[error("this member has stopped")]
    Stopped,
}

/// The member must stop. The process that hosts it ends with a code of its own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The state differs from that of the others.
    #[error(
        "this member diverged at entry {index}: it has {}, the group has {}{}",
        hex(.mine), hex(.theirs), file_text(.diagnosis)
    )]
    Diverged {
        /// Entry after which the states differ.
        index: u64,
        /// Own witness or digest.
        mine: [u8; 16],
        /// That of the others.
        theirs: [u8; 16],
        /// The file that holds the details.
        diagnosis: Option<PathBuf>,
    },
    /// The log cannot be written or read back.
    #[error("the log failed: {0}")]
    Log(String),
    /// An entry cannot be decoded or applied.
    #[error("entry {index} cannot be applied: {detail}")]
    Entry {
        /// The entry.
        index: u64,
        /// Why.
        detail: String,
    },
    /// The machine panicked.
    #[error("the machine panicked at entry {index}: {detail}")]
    Panicked {
        /// The entry.
        index: u64,
        /// Message of the panic.
        detail: String,
    },
    /// A snapshot could not be written, or one just received could not be restored.
    #[error("the snapshot failed: {0}")]
    Snapshot(String),
    /// The machine found itself in a state that must not exist.
    #[error("the machine is broken: {0}")]
    Machine(String),
}

impl Fault {
    /// True when the state or the stored bytes cannot be trusted any more.
    pub fn is_integrity(&self) -> bool {
        !matches!(self, Self::Log(_) | Self::Snapshot(_))
    }
}

fn file_text(file: &Option<PathBuf>) -> String {
    file.as_ref().map(|path| format!("; see {}", path.display())).unwrap_or_default()
}

/// A member could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another process uses the directory.
    #[error("{dir} is in use by another process")]
    Locked {
        /// The directory.
        dir: PathBuf,
    },
    /// The directory cannot be written.
    #[error("{dir} cannot be written: {source}")]
    ReadOnly {
        /// The directory.
        dir: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The directory belongs to another member.
    #[error("{dir} belongs to member {found}, not to member {wanted}")]
    OtherMember {
        /// The directory.
        dir: PathBuf,
        /// Who it belongs to.
        found: u64,
        /// Who asked.
        wanted: u64,
    },
    /// A file belongs to another group.
    #[error("{file} belongs to group {found}, not to group {wanted}")]
    OtherCluster {
        /// The file.
        file: PathBuf,
        /// The group of the file.
        found: String,
        /// The group of the directory.
        wanted: String,
    },
    /// A newer version of this program wrote the directory.
    #[error("{file} has format {found}; this program knows formats up to {known}")]
    NewerFormat {
        /// The file.
        file: PathBuf,
        /// Format of the file.
        found: u32,
        /// Newest format known here.
        known: u32,
    },
    /// Stored bytes are damaged or missing.
    #[error("{file} is damaged: {detail}. {}", repair_text())]
    Damaged {
        /// What is damaged.
        file: PathBuf,
        /// What was found.
        detail: String,
    },
    /// The address is taken.
    #[error("{address} is in use")]
    AddressInUse {
        /// The address.
        address: SocketAddr,
    },
    /// The options contradict each other.
    #[error("bad options: {0}")]
    Options(String),
    /// The state of this member is not that of its group.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// Anything else of the operating system.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

fn repair_text() -> &'static str {
    "Do not repair it by hand: keep a copy of the directory, and see \"Replace or repair\" in \
     docs/operations.md before anything is emptied"
}

impl StartError {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

/// A group could not be founded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BootstrapError {
    /// The list is wrong.
    #[error("bad list of members: {0}")]
    Members(String),
    /// A member cannot be reached.
    #[error("member {member} cannot be reached: {detail}")]
    Unreachable {
        /// The member.
        member: Member,
        /// Why.
        detail: String,
    },
    /// A member belongs to a group already.
    #[error("member {member} already belongs to group {cluster_id}")]
    HasCluster {
        /// The member.
        member: Member,
        /// Its group.
        cluster_id: String,
    },
    /// A member holds data.
    #[error("member {member} already holds data")]
    HasData {
        /// The member.
        member: Member,
    },
    /// Somebody else answers at that address.
    #[error("at {address} member {found} answers, not member {wanted}")]
    OtherMember {
        /// The address.
        address: String,
        /// Who answered.
        found: u64,
        /// Who was listed.
        wanted: u64,
    },
    /// This member could not write the founding record or the first entry.
    #[error("cannot found the group: {0}")]
    Failed(String),
}

/// The leadership was not handed over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransferError {
    /// Only the leader can.
    #[error("this member does not lead{}", hint_text(.hint))]
    NotLeader {
        /// The leader, when one is known.
        hint: Option<Member>,
    },
    /// There is nobody to hand it to.
    #[error("no other member can lead: {0}")]
    NoTarget(String),
    /// The other member did not take over in time.
    #[error("member {to} did not take over in time")]
    Timeout {
        /// The other member.
        to: u64,
    },
    /// The member has stopped or is stopping.
    #[error("this member has stopped")]
    Stopped,
}

/// No snapshot was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TakeSnapshotError {
    /// Nothing was applied yet.
    #[error("there is nothing to write yet")]
    Empty,
    /// The disk is nearly full.
    #[error("the disk is nearly full")]
    DiskLow,
    /// It was not written in time.
    #[error("the snapshot was not written in time")]
    Timeout,
    /// The member has stopped or is stopping.
    #[error("this member has stopped")]
    Stopped,
}

/// The members were not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MembershipError {
    /// Only the leader can.
    #[error("this member does not lead{}", hint_text(.hint))]
    NotLeader {
        /// The leader, when one is known.
        hint: Option<Member>,
    },
    /// The change makes no sense in this group.
    #[error("refused: {0}")]
    Refused(String),
    /// The new member did not take part.
    #[error("the new member cannot join: {0}")]
    Join(String),
    /// The change may still happen.
    #[error("the outcome is unknown: {0}")]
    Unknown(String),
}

/// A file or a directory of a stopped member could not be read.
#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    /// A running member uses the directory.
    #[error("{dir} is in use by a running member")]
    Locked {
        /// The directory.
        dir: PathBuf,
    },
    /// It cannot be read.
    #[error("{file} cannot be read: {source}")]
    Io {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Its bytes are not what was written.
    #[error("{file} is damaged: {detail}")]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What was found.
        detail: String,
    },
}
