//! One line for everything: log text, golden text and admin output at once.
//! Words of the small enums are here; commands, events, outcomes and records have a file each.

mod command;
mod event;
mod outcome;
mod record;

use core::fmt;

use crate::channel::{AckResult, ReleaseCause, UnassignCause};
use crate::directive::DirectiveKind;
use crate::node::{DownCause, NodeStatus, Role};
use crate::state::NotCandidate;

macro_rules! words {
    ($($name:ident { $($variant:ident => $word:literal),+ $(,)? })+) => {$(
        impl $name {
            /// The word for it in texts and on the wire.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }
    )+};
}

words! {
    AckResult {
        Ok => "ok",
        FailedStopped => "failed_stopped",
        Failed => "failed",
        Conflict => "conflict",
    }
    ReleaseCause {
        Requested => "requested",
        WatchFailed => "watch_failed",
        WatchTimeout => "watch_timeout",
        Conflict => "conflict",
        Balance => "balance",
        Drain => "drain",
        Drop => "drop",
    }
    UnassignCause {
        Released => "released",
        ReleaseFailed => "release_failed",
        ReleaseTimeout => "release_timeout",
        Stopped => "stopped",
        NodeDown => "node_down",
    }
    DownCause {
        Expired => "expired",
        Revoked => "revoked",
        Replaced => "replaced",
    }
    NodeStatus {
        Up => "Up",
        Stopping => "Stopping",
        Down => "Down",
    }
    Role {
        Data => "data",
        Query => "query",
    }
    DirectiveKind {
        Watch => "watch",
        Release => "release",
    }
}

impl fmt::Display for NotCandidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotUp => f.write_str("not up"),
            Self::WrongRole => f.write_str("not a data node"),
            Self::Frozen => f.write_str("frozen"),
            Self::CoolingDown { until } => write!(f, "cooling down until {until}"),
        }
    }
}

/// Shows `word value` for what is there, and nothing for what is not.
struct Tail<T>(&'static str, Option<T>);

impl<T: fmt::Display> fmt::Display for Tail<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.1 {
            Some(value) => write!(f, "{}{value}", self.0),
            None => Ok(()),
        }
    }
}

/// Shows `word [a, b]`, and nothing for an empty list.
struct Listed<'a, T>(&'static str, &'a [T]);

impl<T: fmt::Display> fmt::Display for Listed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, rest)) = self.1.split_first() else { return Ok(()) };
        write!(f, "{}[{first}", self.0)?;
        rest.iter().try_for_each(|item| write!(f, ", {item}"))?;
        f.write_str("]")
    }
}
