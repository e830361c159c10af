//! How long groups were without a lease after the last fault, compared with the bound of the specification (L1).
//!
//! Votes can be split again and again, so no bound holds for every run: of a thousand runs 999 are to stay within L1,
//! and all of them within three times as long. Runs are set up differently and have different bounds, so shares of them
//! are counted, in hundredths.

use std::collections::BTreeMap;

use doyen_core::time::Span;

/// The waits of many runs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Waits {
    /// How many runs waited for how many hundredths of L1, rounded up.
    runs: BTreeMap<u64, u64>,
    worst: Option<Wait>,
}

/// The wait of one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// The run.
    pub run: u64,
    /// The length of the wait.
    pub lasted: Span,
    /// L1.
    pub bound: Span,
}

impl Wait {
    /// How many hundredths of L1 that is, rounded up.
    pub fn share(&self) -> u64 {
        let (lasted, bound) = (self.lasted.as_nanos(), self.bound.as_nanos().max(1));
        u64::try_from((u128::from(lasted) * 100).div_ceil(u128::from(bound))).unwrap_or(u64::MAX)
    }
}

impl Waits {
    pub(super) fn add(&mut self, wait: Wait) {
        *self.runs.entry(wait.share()).or_default() += 1;
        self.consider(wait);
    }

    /// Of two that are equally bad the first counts.
    fn consider(&mut self, wait: Wait) {
        let rank = |wait: &Wait| (wait.share(), std::cmp::Reverse(wait.run));
        if self.worst.is_none_or(|worst| rank(&wait) > rank(&worst)) {
            self.worst = Some(wait);
        }
    }

    /// The longest wait, as a share of L1.
    pub fn worst(&self) -> Option<Wait> {
        self.worst
    }

    /// The hundredths of L1 that were enough for this many runs of a thousand.
    pub fn enough_for(&self, permille: u64) -> u64 {
        let total: u64 = self.runs.values().sum();
        let wanted = (total * permille).div_ceil(1000);
        let mut sum = 0;
        let mut shares = self.runs.iter().skip_while(|&(_, runs)| {
            sum += runs;
            sum < wanted
        });
        shares.next().map_or(0, |(&share, _)| share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(run: u64, millis: u64) -> Wait {
        Wait { run, lasted: Span::from_millis(millis), bound: Span::from_millis(100) }
    }

    #[test]
    fn shares_add_up_and_the_worst_is_named() {
        let mut waits = Waits::default();
        (1..=999).for_each(|run| waits.add(wait(run, run / 10)));
        waits.add(wait(1000, 250));
        assert_eq!((waits.enough_for(500), waits.enough_for(999)), (50, 99));
        assert_eq!((waits.enough_for(1000), waits.worst()), (250, Some(wait(1000, 250))));
        assert_eq!(Waits::default().enough_for(999), 0);
    }
}
