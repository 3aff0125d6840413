//! Outcomes and refusals in one line. Rejections have theirs where they are defined.

use core::fmt;

use crate::outcome::{Facts, Outcome, Refusal, RefusedMove};

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AssignmentChanged => "AssignmentChanged",
            Self::NodeChanged => "NodeChanged",
            Self::Gone => "Gone",
            Self::Capacity => "Capacity",
            Self::CoolingDown => "CoolingDown",
            Self::Dropping => "Dropping",
            Self::Atomic => "Atomic",
        })
    }
}

impl fmt::Display for RefusedMove {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} refused: {}", self.chosen, self.refusal)
    }
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Already => f.write_str("already so"),
            Self::Session(node) => write!(f, "session {node}"),
            Self::Repeated(revision) => write!(f, "applied at {revision}"),
            Self::AllRefused(refused) => {
                f.write_str("all moves refused:")?;
                refused.iter().try_for_each(|refused| write!(f, " {refused};"))
            }
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accepted(receipt) => {
                write!(f, "Accepted {}", receipt.record)?;
                receipt.refused.iter().try_for_each(|refused| write!(f, " {refused};"))
            }
            Self::NoChange(facts) => write!(f, "NoChange {facts}"),
            Self::Rejected(rejection) => write!(f, "Rejected {}: {rejection}", rejection.reason()),
        }
    }
}
