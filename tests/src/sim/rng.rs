//! The one source of chance of a run: a seed gives the same run for ever.

/// SplitMix64: small, seedable with any number, good enough to choose faults.
#[derive(Debug, Clone)]
pub(super) struct Rng(u64);

impl Rng {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed ^ 0x5175_6f72_6174_6521)
    }

    pub(super) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From `low` to `high`, both included.
    pub(super) const fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// True this often in a thousand.
    pub(super) const fn permille(&mut self, chance: u64) -> bool {
        self.next() % 1_000 < chance
    }

    /// An index below `len`, which must not be 0.
    pub(super) fn index(&mut self, len: usize) -> usize {
        let len = u64::try_from(len).expect("a usize fits");
        usize::try_from(self.next() % len).expect("it is below a usize")
    }

    pub(super) fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        if items.is_empty() { None } else { items.get(self.index(items.len())) }
    }
}
