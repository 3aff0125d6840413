//! Why a coordinator did not start, or had to stop.

use std::net::SocketAddr;
use std::path::PathBuf;

use raft::{Fault, StartError};

/// Why a coordinator did not start, or had to stop.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address cannot be listened on.
    #[error("{field} = {address}: cannot listen there: {source}")]
    Listen {
        /// The setting.
        field: &'static str,
        /// Its value.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The Raft group of this member cannot be started.
    #[error(transparent)]
    Start(StartError),
    /// A file or directory beside the Raft data.
    #[error("{}: {source}", .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// This member had to stop by itself.
    #[error("stopped by itself: {0}")]
    Fault(Fault),
}

impl Error {
    /// Whether data may be damaged or unequal, as opposed to a refusal to start or a lost resource.
    #[must_use]
    pub fn is_integrity(&self) -> bool {
        match self {
            Self::Fault(fault) => fault.is_integrity(),
            Self::Start(StartError::Damaged { .. }) => true,
            Self::Start(StartError::Fault(fault)) => fault.is_integrity(),
            Self::Listen { .. } | Self::Start(_) | Self::Io { .. } => false,
        }
    }
}
