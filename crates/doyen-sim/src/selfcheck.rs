//! Proves that a run is deterministic: the same case twice, one fingerprint.

use crate::run::run;
use crate::scenario::Case;
use crate::trace::{Observer, TraceEvent};

/// What two runs of a case came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Both runs were the same.
    Same {
        /// Their fingerprint.
        digest: u64,
        /// How many events each had.
        events: u64,
    },
    /// They were not.
    Different(Difference),
}

/// Where two runs part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The number of the first record that differs, from zero.
    pub index: usize,
    /// What the first run has there, if it goes on.
    pub first: Option<TraceEvent>,
    /// What the second run has there, if it goes on.
    pub second: Option<TraceEvent>,
}

/// Runs `case` twice and compares.
pub fn check(case: &Case) -> Verdict {
    compare(case, case)
}

/// Runs two cases and says where they part.
pub fn compare(first: &Case, second: &Case) -> Verdict {
    let (a, b) = (run(first, None), run(second, None));
    if a.digest == b.digest && a == b {
        return Verdict::Same { digest: a.digest, events: a.events };
    }
    let mut records = Vec::new();
    run(first, Some(&mut records));
    let mut rest = Comparison { expected: records.into_iter(), index: 0, found: None };
    run(second, Some(&mut rest));
    Verdict::Different(rest.finish())
}

/// Watches a run and compares it with the records of another.
struct Comparison {
    expected: std::vec::IntoIter<TraceEvent>,
    index: usize,
    found: Option<Difference>,
}

impl Comparison {
    fn finish(mut self) -> Difference {
        let first = self.expected.next();
        self.found.unwrap_or(Difference { index: self.index, first, second: None })
    }
}

impl Observer for Comparison {
    fn observe(&mut self, record: &TraceEvent) {
        if self.found.is_some() {
            return;
        }
        let first = self.expected.next();
        if first.as_ref() == Some(record) {
            self.index += 1;
        } else {
            let (index, second) = (self.index, Some(record.clone()));
            self.found = Some(Difference { index, first, second });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    fn case(seed: u64) -> Case {
        let text = format!(
            "algorithm = \"bully\"\nmode = \"hardened\"\nmembers = 6\nseed = {seed}\n\
             delay = \"exp:1ms\"\nloss = 0.1\nuntil = \"300ms\""
        );
        Scenario::from_toml("test", &text).unwrap()
    }

    #[test]
    fn the_same_case_gives_the_same_run() {
        assert!(matches!(check(&case(1)), Verdict::Same { events: 1.., .. }));
    }

    #[test]
    fn the_first_difference_is_found() {
        let Verdict::Different(difference) = compare(&case(1), &case(2)) else {
            panic!("another seed, the same run")
        };
        assert_ne!(difference.first, difference.second);
        assert!(difference.first.is_some());
    }
}
