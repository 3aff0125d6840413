//! Exact scores (C3): ratios of integers, and the scale on which scores of one plan are integers.
//! What is scored is in `seats`.

use core::fmt;

/// Weights and tolerances are given in millionths.
pub const MILLION: i128 = 1_000_000;

/// Above this the scale of pairs stops growing, and their costs are rounded down.
const PAIR_SCALE_MAX: i128 = 10_000_000_000_000_000;

/// A ratio in lowest terms, with a positive denominator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio {
    numerator: i128,
    denominator: i128,
}

impl Ratio {
    /// A denominator below 1 counts as 1.
    #[must_use]
    pub const fn new(numerator: i128, denominator: i128) -> Self {
        let denominator = if denominator < 1 { 1 } else { denominator };
        let by = divisor(numerator.saturating_abs(), denominator);
        let (Some(numerator), Some(denominator)) =
            (numerator.checked_div(by), denominator.checked_div(by))
        else {
            return Self { numerator, denominator };
        };
        Self { numerator, denominator }
    }

    /// What stands above the line.
    #[must_use]
    pub const fn numerator(self) -> i128 {
        self.numerator
    }

    /// What stands below the line, at least 1.
    #[must_use]
    pub const fn denominator(self) -> i128 {
        self.denominator
    }
}

/// Factors that turn the parts of a score into integers with one denominator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scale {
    /// For squares over the number of channels squared.
    pub(crate) channels: i128,
    /// For squares over the number of virtual channels squared.
    pub(crate) vchannels: i128,
    /// For costs of pairs on the scale `pair`.
    pub(crate) pairs: i128,
    /// A pair that costs 1 costs this.
    pub(crate) pair: i128,
    /// All scores are over this.
    pub(crate) denominator: i128,
}

impl Scale {
    /// For this many channels and virtual channels, of which two never have more than
    /// `distinct_max` different collections.
    pub(crate) fn new(channels: usize, vchannels: usize, distinct_max: usize) -> Self {
        let (channels, vchannels) = (square(channels), square(vchannels));
        let base = multiple(channels, vchannels);
        let pair = (2..=wide(distinct_max)).fold(1, |scale, number| {
            let next = multiple(scale, number);
            if next > PAIR_SCALE_MAX { scale } else { next }
        });
        let over = |part: i128| base.checked_div(part).unwrap_or(0).saturating_mul(pair);
        let denominator = base.saturating_mul(pair).saturating_mul(MILLION);
        Self {
            channels: over(channels),
            vchannels: over(vchannels),
            pairs: base,
            pair,
            denominator,
        }
    }
}

/// As wide as scores are.
pub(crate) fn wide(number: usize) -> i128 {
    i128::try_from(number).unwrap_or(i128::MAX)
}

fn square(number: usize) -> i128 {
    wide(number).saturating_mul(wide(number)).max(1)
}

const fn divisor(mut a: i128, mut b: i128) -> i128 {
    while let Some(rest) = a.checked_rem(b) {
        (a, b) = (b, rest);
    }
    if a < 1 { 1 } else { a }
}

fn multiple(a: i128, b: i128) -> i128 {
    a.checked_div(divisor(a, b)).unwrap_or(1).saturating_mul(b)
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.denominator {
            1 => self.numerator.fmt(f),
            denominator => write!(f, "{}/{denominator}", self.numerator),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn ratios_are_in_lowest_terms() {
        let rows = [((6, 4), "3/2"), ((0, 7), "0"), ((-2, 6), "-1/3"), ((5, 0), "5")];
        for ((numerator, denominator), shown) in rows {
            assert_eq!(Ratio::new(numerator, denominator).to_string(), shown);
        }
    }

    #[test]
    fn the_scale_divides_by_everything_it_meets() {
        let scale = Scale::new(10, 8, 6);
        assert_eq!(scale.pair, 60);
        assert_eq!(scale.denominator, 1_600 * 60 * MILLION);
        assert_eq!((scale.channels, scale.vchannels, scale.pairs), (960, 1_500, 1_600));
        assert!(Scale::new(1, 1, 500).pair <= PAIR_SCALE_MAX);
    }
}
