//! What a member tells about itself: plain values for operators, readiness and metrics.
//! Filled by `handle.rs`; nothing here acts.

use std::path::PathBuf;
use std::time::Duration;

use crate::member::{ClusterId, Member};

/// Who leads, as this member sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// This member leads, and has applied the first entry of its own term.
    Leader {
        /// Term of the leadership.
        term: u64,
    },
    /// Another member leads.
    Follower {
        /// Term of that leader.
        term: u64,
        /// The leader.
        leader: Member,
    },
    /// Nobody is known to lead.
    Unknown {
        /// Newest term seen.
        term: u64,
    },
}

/// What a member is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// It belongs to no group yet: waits for a bootstrap, or to be added under a new number.
    Waiting,
    /// It reads its log and its snapshot.
    Starting,
    /// It follows a leader.
    Follower,
    /// It asks for votes.
    Candidate,
    /// It leads.
    Leader,
    /// It receives entries and does not vote.
    Learner,
    /// Another member says that its state is wrong; it asks the others.
    Suspect,
    /// It has stopped.
    Stopped,
}

impl MemberState {
    /// Lower case word for logs, metrics and operators.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Starting => "starting",
            Self::Follower => "follower",
            Self::Candidate => "candidate",
            Self::Leader => "leader",
            Self::Learner => "learner",
            Self::Suspect => "suspect",
            Self::Stopped => "stopped",
        }
    }
}

/// One member of the group, as the asked member sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerStatus {
    /// The member.
    pub member: Member,
    /// True when it votes.
    pub voter: bool,
    /// Newest entry it is known to hold; only a leader knows.
    pub matched: Option<u64>,
    /// Milliseconds since it answered last; only a leader knows.
    pub silent_ms: Option<u64>,
}

/// Counters since the start of the member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Entries applied.
    pub applied_entries: u64,
    /// Syncs of the log.
    pub log_syncs: u64,
    /// Longest sync in microseconds.
    pub sync_max_us: u64,
    /// Bytes of entries written to the log.
    pub log_written_bytes: u64,
    /// Proposals made here.
    pub proposals: u64,
    /// Proposals refused because of load or of the disk.
    pub proposals_refused: u64,
    /// Rounds that confirmed the leadership for readers.
    pub read_rounds: u64,
    /// Readers served by those rounds.
    pub reads: u64,
    /// Attestations compared.
    pub attestations_checked: u64,
    /// Attestations older than the ring or the snapshot.
    pub attestations_skipped: u64,
    /// Snapshots written.
    pub snapshots_written: u64,
    /// Snapshots received from a leader and installed.
    pub snapshots_installed: u64,
    /// Elections called because the leader's process was gone.
    pub fast_elections: u64,
}

/// The state of a member at one moment.
#[derive(Clone, Debug)]
pub struct Status {
    /// Number of this member.
    pub member: u64,
    /// The group it belongs to.
    pub cluster_id: Option<ClusterId>,
    /// What it is doing.
    pub state: MemberState,
    /// Newest term seen.
    pub term: u64,
    /// The leader it knows.
    pub leader: Option<Member>,
    /// Newest entry in the log.
    pub last_log: Option<u64>,
    /// Newest entry known to be committed.
    pub committed: Option<u64>,
    /// Newest entry applied.
    pub applied: Option<u64>,
    /// Newest entry that is no longer in the log.
    pub purged: Option<u64>,
    /// Newest entry inside a snapshot.
    pub snapshot: Option<u64>,
    /// Entry of the snapshot from which this member started.
    pub restored_from: Option<u64>,
    /// All members of the group.
    pub members: Vec<PeerStatus>,
    /// Bytes of the log on disk.
    pub log_bytes: u64,
    /// True while proposals are refused because the disk is nearly full.
    pub disk_low: bool,
    /// Counters.
    pub counters: Counters,
}

/// A snapshot file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// Newest entry inside.
    pub index: u64,
    /// Term of that entry.
    pub term: u64,
    /// Where the file is.
    pub path: PathBuf,
    /// Size of the file.
    pub bytes: u64,
    /// Digest of the state inside.
    pub digest: [u8; 16],
}

/// What one member has at an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberWitness {
    /// The member.
    pub member: u64,
    /// The index asked about.
    pub index: u64,
    /// Its witness there, when it still knows.
    pub witness: Option<[u8; 16]>,
    /// Its digest there, when it still knows.
    pub digest: Option<[u8; 16]>,
    /// Newest entry it applied.
    pub applied: Option<u64>,
    /// Why it did not answer.
    pub error: Option<String>,
}

/// Where this member stands in its group: what accompanies every answer to a reader. Cheap to get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The group it belongs to.
    pub cluster_id: Option<ClusterId>,
    /// Number of this member.
    pub member: u64,
    /// Newest term seen.
    pub term: u64,
    /// Number of the leader it knows.
    pub leader: Option<u64>,
    /// Time since it last heard from that leader; zero while it leads and a quorum answers.
    pub leader_age: Option<Duration>,
}
