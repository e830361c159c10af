//! Decides which lines are logged, so that their cause can fill neither the log nor the memory.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::clock::Moment;

/// How often a line about the same topic is logged.
const REPEAT: Duration = Duration::from_secs(60);

/// How many topics are logged within [`REPEAT`]: a sender may have many addresses, or forge them.
const TOPICS: usize = 64;

/// What was logged lately.
#[derive(Debug)]
pub(crate) struct Throttle<T>(BTreeMap<T, Moment>);

impl<T: Ord> Throttle<T> {
    pub(crate) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Whether a line about `topic` may be logged now. If so, it counts as logged.
    pub(crate) fn is_due(&mut self, topic: T) -> bool {
        self.is_due_at(topic, Moment::now())
    }

    fn is_due_at(&mut self, topic: T, now: Moment) -> bool {
        self.0.retain(|_, last| now.since(*last) < REPEAT);
        let is_due = self.0.len() < TOPICS && !self.0.contains_key(&topic);
        if is_due {
            self.0.insert(topic, now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_logged_once_a_minute_and_many_topics_are_not() {
        let at = |seconds: u64| Moment::from_nanos(seconds * 1_000_000_000);
        let mut throttle = Throttle::new();
        assert!(throttle.is_due_at(0, at(100)));
        assert!(!throttle.is_due_at(0, at(159)));
        assert!(throttle.is_due_at(0, at(160)));
        let logged = (1..1000).filter(|&topic| throttle.is_due_at(topic, at(161))).count();
        assert_eq!(logged, TOPICS - 1);
        assert!(throttle.is_due_at(1000, at(222)), "later, expired ones make room");
    }
}
