//! Faults put into one replica on purpose, to see that the others notice.

use crate::event::Event;
use crate::ids::ChannelName;

/// What is wrong with this replica.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Poison {
    #[default]
    None,
    /// `evolve` forgets events of this kind.
    Drop(&'static str),
    /// The handler of a leaving node goes through its channels backwards.
    SortBackwards,
}

impl Poison {
    pub(crate) fn drops(self, event: &Event) -> bool {
        matches!(self, Self::Drop(kind) if kind == event.kind())
    }

    pub(crate) fn sort(self, names: &mut [ChannelName]) {
        if self == Self::SortBackwards {
            names.reverse();
        }
    }
}
