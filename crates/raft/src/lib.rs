//! One member of a Raft group that replicates opaque bytes for a [`Machine`].
//! It knows no domain: what the bytes mean, who sends them and why is the server's business.
//! [`start`] and [`Handle`] are the way in; [`offline`] reads the files of a stopped member.

mod error;
mod faults;
mod handle;
mod log;
mod machine;
mod member;
pub mod offline;
mod options;
mod status;

pub use error::{
    BootstrapError, Fault, MembershipError, OfflineError, ProposeError, ReadError, StartError,
    TakeSnapshotError, TransferError,
};
pub use faults::Faults;
pub use handle::{Committed, Handle, start};
pub use log::memory::MemoryDisk;
pub use machine::{
    EntryMeta, Machine, Reply, RestoreError, SectionReader, SectionWriter, SnapshotError,
    SnapshotJob,
};
pub use member::{ClusterId, Member};
pub use options::{BackendKind, Options, Timers};
pub use status::{
    Counters, Leadership, MemberState, MemberWitness, PeerStatus, Place, SnapshotInfo, Status,
};
