//! One member of a Raft group that replicates opaque bytes for a [`Machine`].
//! It knows no domain: what the bytes mean, who sends them and why is the server's business.
//! [`start`] and [`Handle`] are the way in; [`offline`] reads the files of a stopped member.

mod applier;
mod bootstrap;
mod counters;
mod data_dir;
mod disk;
mod diverge;
mod error;
mod evidence;
mod failover;
mod faults;
mod handle;
mod leadership;
mod log;
mod machine;
mod member;
mod network;
pub mod offline;
mod operate;
mod options;
mod peers;
mod proposal;
mod reads;
mod receive;
mod replica;
mod service;
mod sight;
mod snapshot_file;
mod snapshot_store;
mod start;
mod state_machine;
mod status;
mod tend;
#[cfg(test)]
mod tests;
mod types;
mod verdict;
mod wire;
mod witness;

pub use error::{
    BootstrapError, Fault, MembershipError, OfflineError, ProposeError, ReadError, StartError,
    TakeSnapshotError, TransferError,
};
pub use faults::Faults;
pub use handle::{Committed, Handle};
pub use log::memory::MemoryDisk;
pub use machine::{
    EntryMeta, Machine, Reply, RestoreError, SectionReader, SectionWriter, SnapshotError,
    SnapshotJob,
};
pub use member::{ClusterId, Member};
pub use options::{BackendKind, Options, Timers};
pub use start::start;
pub use status::{
    Counters, Leadership, MemberState, MemberWitness, PeerStatus, Place, SnapshotInfo, Status,
};
