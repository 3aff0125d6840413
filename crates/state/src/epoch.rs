//! Numbers that order things: revision, epochs, terms, log time. Ordered, and moved on only by
//! `next`. No record and no clock lives here. Revision and everything made from one is `generation
//! (16 high bits) | count (48 bits)` (ruling 4).

use core::fmt;

use serde::{Deserialize, Serialize};

const COUNT_BITS: u32 = 48;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

/// Shows `7`, or `g2.7` in a restored group.
fn show(f: &mut fmt::Formatter<'_>, raw: u64) -> fmt::Result {
    match raw >> COUNT_BITS {
        0 => write!(f, "{raw}"),
        generation => write!(f, "g{generation}.{}", raw & COUNT_MASK),
    }
}

/// Counts accepted commands, with the generation of the group in the 16 high bits.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Revision(pub u64);

impl Revision {
    /// The revision of an empty state of this generation.
    #[must_use]
    pub const fn first(generation: u16) -> Self {
        // Widening; `From` is not const.
        #[expect(clippy::as_conversions, reason = "u16 to u64 loses nothing")]
        Self((generation as u64) << COUNT_BITS)
    }

    /// The next one, or `None` when 2^48 commands were accepted.
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        if self.count() == COUNT_MASK { None } else { Some(Self(self.0.saturating_add(1))) }
    }

    /// How often the group was restored from a backup.
    #[must_use]
    pub fn generation(self) -> u16 {
        u16::try_from(self.0 >> COUNT_BITS).unwrap_or(u16::MAX)
    }

    /// Accepted commands in this generation and its predecessors.
    #[must_use]
    pub const fn count(self) -> u64 {
        self.0 & COUNT_MASK
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, self.0)
    }
}

macro_rules! made_from_revision {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
        #[derive(Serialize, Deserialize)]
        pub struct $name(pub u64);

        impl $name {
            /// The number that the command at this revision hands out.
            #[must_use]
            pub const fn at(revision: Revision) -> Self {
                Self(revision.0)
            }

            /// The revision of the command that handed it out.
            #[must_use]
            pub const fn revision(self) -> Revision {
                Revision(self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($prefix)?;
                show(f, self.0)
            }
        }
    };
}

made_from_revision!(
    /// Epoch of a session: the revision that registered it.
    NodeEpoch, "e"
);
made_from_revision!(
    /// Term of a channel: the revision of the command that last changed its owner.
    ChannelTerm, "t"
);
made_from_revision!(
    /// Number of a directive: the revision of the command that created it.
    Op, "op"
);

/// A Raft term.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Term(pub u64);

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Log time: milliseconds since the Unix epoch as stamped by leaders, never running backwards.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// This much later; stops at the end of time.
    #[must_use]
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this; 0 when it is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}
