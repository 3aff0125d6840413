//! Records of the state in one line: nodes, channels, removed channels.

use core::fmt;

use crate::channel::{Channel, Dropped, Phase};
use crate::node::Node;

use super::{Listed, Tail};

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind())?;
        if let (Some(owner), Some(op)) = (self.owner(), self.op()) {
            write!(f, " {owner} {op}")?;
        }
        match self {
            Self::Buffered { planned } => write!(f, "{}", Tail(" planned ", *planned)),
            Self::ToWatch { started_at, progress, .. } => {
                let progress = (*progress != 0).then_some(progress);
                write!(f, " since {started_at}{}", Tail(" progress ", progress))
            }
            Self::Watched { .. } => Ok(()),
            Self::ToRelease { started_at, cause, planned, dropping, .. } => {
                let dropping = if *dropping { " dropping" } else { "" };
                let planned = Tail(" planned ", *planned);
                write!(f, " since {started_at} {cause}{dropping}{planned}")
            }
        }
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.spec.name, self.term, self.phase)?;
        let attempts = (self.attempts != 0).then_some(self.attempts);
        write!(f, "{}{}", Tail(" attempts ", attempts), Tail(" avoid ", self.avoid))?;
        let mut cooldowns = self.cooldowns.iter();
        cooldowns.try_for_each(|(node, until)| write!(f, " {node} cools until {until}"))?;
        write!(f, "{}", Listed(" former ", &self.former_owners))?;
        let committed = self.committed.as_ref().map(|committed| committed.revision);
        write!(f, "{}", Tail(" committed at ", committed))
    }
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let former = Listed(" former ", &self.former_owners);
        write!(f, "removed at {} {}{former}", self.removed, self.last_term)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.node_ref(), self.registration, self.status)?;
        let silent_ms = (self.silent_ms != 0).then_some(self.silent_ms);
        write!(f, "{}", Tail(" silent ms ", silent_ms))
    }
}
