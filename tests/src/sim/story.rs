//! How a run ended: well, with a story, or with a failure that its seed reproduces.

use std::fmt;

use super::coverage::Coverage;
use super::oracle::Violation;

/// A run that went well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Story {
    /// What happened in it.
    pub coverage: Coverage,
    /// Entries in the log.
    pub entries: usize,
    /// Virtual milliseconds until everything was at rest.
    pub end_ms: u64,
    /// Digest of the last state.
    pub digest: String,
}

/// A run that went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Reproduces it.
    pub seed: u64,
    /// Virtual milliseconds from the start.
    pub at_ms: u64,
    /// What was seen.
    pub violation: Violation,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { rule, detail } = &self.violation;
        write!(f, "seed {} at {} ms: {rule}: {detail}", self.seed, self.at_ms)
    }
}
