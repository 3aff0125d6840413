//! How well two channels go together on one node (16.5): 1 when they share no collection, less the
//! more they share. `vchannel_fair` weighs what is missing to 1.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;

use state::ids::CollectionId;

use crate::policy::score::Ratio;

/// The collections of the virtual channels of one channel, with how often each occurs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile(Vec<(CollectionId, u32)>);

/// What two profiles share: `repeated` of what occurs belongs to collections that occur more than
/// once, out of `distinct` collections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shared {
    /// Occurrences of collections that occur more than once.
    pub repeated: u32,
    /// Different collections.
    pub distinct: u32,
}

impl Profile {
    /// One collection for each virtual channel, in any order.
    #[must_use]
    pub fn new(collections: &[CollectionId]) -> Self {
        let mut counts = BTreeMap::new();
        for collection in collections {
            let count: &mut u32 = counts.entry(*collection).or_default();
            *count = count.saturating_add(1);
        }
        Self(counts.into_iter().collect())
    }

    /// The different collections, ascending.
    pub fn collections(&self) -> impl Iterator<Item = CollectionId> + '_ {
        self.0.iter().map(|(collection, _)| *collection)
    }

    /// How many different collections there are.
    #[must_use]
    pub fn distinct(&self) -> usize {
        self.0.len()
    }

    /// A collection occurs more than once in this channel alone.
    #[must_use]
    pub fn repeats(&self) -> bool {
        self.0.iter().any(|(_, count)| *count > 1)
    }

    /// What the two have in common.
    #[must_use]
    pub fn shared(&self, other: &Self) -> Shared {
        let mut shared = Shared::default();
        let mut count = |occurrences: u32| {
            shared.distinct = shared.distinct.saturating_add(1);
            if occurrences > 1 {
                shared.repeated = shared.repeated.saturating_add(occurrences);
            }
        };
        let mut others = other.0.iter().peekable();
        for (collection, mine) in &self.0 {
            while let Some((_, alone)) = others.next_if(|(theirs, _)| theirs < collection) {
                count(*alone);
            }
            let both = others.next_if(|(theirs, _)| theirs == collection);
            count(both.map_or(*mine, |(_, theirs)| mine.saturating_add(*theirs)));
        }
        others.for_each(|(_, alone)| count(*alone));
        shared
    }
}

impl Shared {
    /// The affinity: at most 1, and below 0 when more is repeated than is different.
    #[must_use]
    pub fn affinity(self) -> Ratio {
        let (distinct, repeated) = (i128::from(self.distinct), i128::from(self.repeated));
        match self.distinct {
            0 => Ratio::new(1, 1),
            _ => Ratio::new(distinct.saturating_sub(repeated), distinct),
        }
    }
}

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} repeated, {} different", self.repeated, self.distinct)
    }
}
