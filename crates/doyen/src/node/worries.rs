//! What an operator should look at: told in the log at once, and not again for a while.

use std::collections::BTreeMap;
use std::time::Duration;

use doyen_core::members::NodeId;

use super::clock::Moment;
use super::status::Counters;
use super::wire::Rejection;

/// How often the same is told.
const REPEAT: Duration = Duration::from_secs(60);

/// For how long nobody is heard before that is told.
const LONELY: Duration = Duration::from_secs(10);

/// Reasons to reject a datagram that hint at a mistake in somebody's configuration.
const TELLING: [Rejection; 4] =
    [Rejection::Version, Rejection::Cluster, Rejection::Key, Rejection::Forged];

/// Something to be told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Worry {
    /// A member is configured otherwise.
    Configuration(NodeId),
    /// A member has no address that can be found.
    Address(NodeId),
    /// Nobody is heard.
    Silence,
    /// Datagrams were rejected.
    Rejections,
}

/// What has been told, and when.
#[derive(Debug)]
pub(super) struct Worries {
    told: BTreeMap<Worry, Moment>,
    /// When somebody was last heard.
    heard: Moment,
    /// How many datagrams had been rejected, for each telling reason, when that was last told.
    rejected: [u64; TELLING.len()],
}

impl Worries {
    /// Nothing yet.
    pub(super) fn none() -> Self {
        Self { told: BTreeMap::new(), heard: Moment::now(), rejected: [0; TELLING.len()] }
    }

    /// Whether it is time to tell of this. Whoever asks does.
    pub(super) fn is_due(&mut self, worry: Worry) -> bool {
        let now = Moment::now();
        let due = self.told.get(&worry).is_none_or(|&last| now.since(last) >= REPEAT);
        if due {
            self.told.insert(worry, now);
        }
        due
    }

    /// Whether it is time to tell that nobody is heard. `somebody`: whether that is not so.
    pub(super) fn is_lonely(&mut self, somebody: bool) -> bool {
        if somebody {
            self.heard = Moment::now();
        }
        Moment::now().since(self.heard) >= LONELY && self.is_due(Worry::Silence)
    }

    /// What has been rejected for telling reasons since that was last told, if it is time to tell it.
    pub(super) fn rejections(&mut self, counters: &Counters) -> Option<String> {
        let counts = TELLING.map(|reason| Counters::read(&counters.rejected[reason as usize]));
        if counts == self.rejected || !self.is_due(Worry::Rejections) {
            return None;
        }
        let told = std::mem::replace(&mut self.rejected, counts);
        let new = TELLING.iter().zip(counts).zip(told).filter(|((_, count), told)| count > told);
        let words =
            new.map(|((reason, count), told)| format!("{} {}", count - told, reason.name()));
        Some(words.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_not_told_twice_at_once() {
        let mut worries = Worries::none();
        assert!(worries.is_due(Worry::Address(NodeId(1))));
        assert!(!worries.is_due(Worry::Address(NodeId(1))));
        assert!(worries.is_due(Worry::Address(NodeId(2))));
        assert!(worries.is_due(Worry::Configuration(NodeId(1))));
    }

    #[test]
    fn who_has_just_started_is_not_lonely() {
        assert!(!Worries::none().is_lonely(false));
        let mut alone = Worries { heard: Moment::default(), ..Worries::none() };
        assert!(alone.is_lonely(false));
        assert!(!alone.is_lonely(false), "it has been told");
        let mut heard = Worries { heard: Moment::default(), ..Worries::none() };
        assert!(!heard.is_lonely(true));
    }

    #[test]
    fn what_was_rejected_is_told_by_reason_and_in_numbers() {
        let (mut worries, counters) = (Worries::none(), Counters::default());
        assert_eq!(worries.rejections(&counters), None);
        Counters::add(&counters.rejected[Rejection::Key as usize], 3);
        Counters::add(&counters.rejected[Rejection::Replayed as usize], 5);
        assert_eq!(worries.rejections(&counters).as_deref(), Some("3 key"));
        Counters::add(&counters.rejected[Rejection::Key as usize], 1);
        assert_eq!(worries.rejections(&counters), None, "not so soon again");
    }
}
