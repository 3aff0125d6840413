//! What a cleaner tells its observer: one value per thing that happened, one line of text each.
//! Nothing is decided from these.
//! Read by the command line's output, the drills and the tests.

use std::fmt;

use crate::cleaner::Cleanup;
use crate::listener::Listener;

/// Something that happened to a cleaner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CleanerEvent {
    /// The group knows the cleaner from this revision on.
    Registered {
        /// Its name.
        name: String,
        /// Revision at which that holds.
        revision: u64,
    },
    /// A coordinator tells what is to be cleaned up.
    Connected {
        /// Which one.
        coordinator: String,
    },
    /// The stream broke; it is opened again.
    Disconnected {
        /// What happened.
        error: String,
    },
    /// A clean-up was begun.
    Cleaning(Cleanup),
    /// A clean-up failed, and is tried again.
    Failed {
        /// Which one.
        cleanup: Cleanup,
        /// Why.
        reason: String,
    },
    /// A clean-up is done, and recorded.
    Cleaned(Cleanup),
    /// A clean-up is done, and somebody else had said so before.
    AlreadyDone(Cleanup),
}

/// Told what happens to a cleaner.
pub type CleanerObserver = Listener<CleanerEvent>;

impl fmt::Display for Cleanup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { channel, term, node_id, subscription, .. } = self;
        write!(f, "{channel} t{term} after n{node_id}")?;
        if !self.node_name.is_empty() {
            write!(f, " ({})", self.node_name)?;
        }
        write!(f, ", subscription {subscription}")
    }
}

impl fmt::Display for CleanerEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registered { name, revision } => {
                write!(f, "cleaner {name} is registered at revision {revision}")
            }
            Self::Connected { coordinator } => write!(f, "told what to clean up by {coordinator}"),
            Self::Disconnected { error } => write!(f, "no longer told what to clean up: {error}"),
            Self::Cleaning(cleanup) => write!(f, "cleaning up {cleanup}"),
            Self::Failed { cleanup, reason } => write!(f, "cannot clean up {cleanup}: {reason}"),
            Self::Cleaned(cleanup) => write!(f, "cleaned up {cleanup}"),
            Self::AlreadyDone(cleanup) => write!(f, "was cleaned up before: {cleanup}"),
        }
    }
}
