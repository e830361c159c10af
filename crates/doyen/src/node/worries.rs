//! What an operator should look at: told in the log at once, and not again for a while.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use doyen_core::members::NodeId;
use doyen_core::time::Span;

use super::clock::Moment;
use super::journal::Line;
use super::network::Dropped;
use super::wire::Rejection;
use crate::config::Settings;

/// How often the same is told.
const REPEAT: Duration = Duration::from_secs(60);

/// For how long nobody is heard before that is told.
const LONELY: Duration = Duration::from_secs(10);

/// Of so many senders and reasons it is told within a while that something was dropped: whoever forges addresses shall
/// fill neither the log nor the memory.
const SENDERS: usize = 64;

/// Something to be told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Worry {
    /// A member is configured otherwise.
    Configuration(NodeId),
    /// A member has no address that can be found.
    Address(NodeId),
    /// Nobody is heard.
    Silence,
    /// It does not wake when it wants to.
    Lateness,
    /// Datagrams from there were dropped for this reason.
    Dropped(SocketAddr, Rejection),
}

/// What has been told, and when.
#[derive(Debug)]
pub(super) struct Worries {
    told: BTreeMap<Worry, Moment>,
    /// When somebody was last heard.
    heard: Moment,
    /// For how many more senders and reasons there is room.
    room: usize,
    /// When it was last looked whether there is more.
    swept: Moment,
}

impl Worries {
    /// Nothing yet.
    pub(super) fn none() -> Self {
        let now = Moment::now();
        Self { told: BTreeMap::new(), heard: now, room: SENDERS, swept: now }
    }

    /// Whether it is time to tell of this. Whoever asks does.
    pub(super) fn is_due(&mut self, worry: Worry) -> bool {
        let now = Moment::now();
        let due = match self.told.get(&worry) {
            Some(&last) => now.since(last) >= REPEAT,
            None => !matches!(worry, Worry::Dropped(..)) || self.takes_room(now),
        };
        if due {
            self.told.insert(worry, now);
        }
        due
    }

    /// Whether one more sender and reason can be remembered; takes the room for it.
    fn takes_room(&mut self, now: Moment) -> bool {
        // Looking through all of them at every datagram of a flood would cost more than it is worth.
        if self.room == 0 && now.since(self.swept) >= REPEAT {
            self.swept = now;
            self.told.retain(|_, last| now.since(*last) < REPEAT);
            let kept = self.told.keys().filter(|worry| matches!(worry, Worry::Dropped(..))).count();
            self.room = SENDERS - kept;
        }
        let has_room = self.room > 0;
        self.room = self.room.saturating_sub(1);
        has_room
    }

    /// Whether it is time to tell that nobody is heard. `somebody`: whether that is not so.
    pub(super) fn is_lonely(&mut self, somebody: bool) -> bool {
        if somebody {
            self.heard = Moment::now();
        }
        Moment::now().since(self.heard) >= LONELY && self.is_due(Worry::Silence)
    }

    /// What there is to say of waking so late, if that is as long as a heartbeat and it is time to.
    pub(super) fn of_lateness(&mut self, late: Duration, heartbeat: Span) -> Option<Line> {
        let matters = late >= Duration::from_nanos(heartbeat.as_nanos());
        (matters && self.is_due(Worry::Lateness)).then(|| {
            let millis = late.as_millis();
            Line::Warning(format!(
                "woke {millis} ms late: this machine slept or kept it waiting for longer than a heartbeat ({heartbeat}), and \
                 a leader that waits too long loses its office; a slower `timing.profile` stands more"
            ))
        })
    }

    /// What there is to say of a datagram that was dropped, if anything is and it is time to.
    pub(super) fn of_dropped(&mut self, settings: &Settings, dropped: Dropped) -> Option<Line> {
        let Dropped { source, member, reason } = dropped;
        let hint = hint(reason)?;
        self.is_due(Worry::Dropped(source, reason)).then(|| {
            let member = member.map(|member| format!(", where {} is", settings.name_of(member)));
            let (from, member) = (plain(source), member.unwrap_or_default());
            let reason = reason.name();
            Line::Warning(format!("drops datagrams from {from}{member}: {hint} ({reason})"))
        })
    }
}

/// What is wrong with a datagram and what to do, of those reasons to drop one that hint at a mistake of an operator's.
fn hint(reason: Rejection) -> Option<&'static str> {
    match reason {
        Rejection::Version => {
            Some("they are of a release with another protocol; finish the upgrade")
        }
        Rejection::Cluster => Some("they are of another cluster; compare names and addresses"),
        Rejection::Key => {
            Some("they are sealed with a key that this node does not have; compare the key files")
        }
        Rejection::Forged => Some("they do not open, and were altered on the way, or forged"),
        Rejection::Size
        | Rejection::Foreign
        | Rejection::Malformed
        | Rejection::Stranger
        | Rejection::Misdirected
        | Rejection::Session
        | Rejection::Replayed
        | Rejection::Limited => None,
        // That is told of the member, which is known then.
        Rejection::Configuration => None,
    }
}

/// An address as people write it: one of IPv4 may have come in by its other name.
pub(super) fn plain(address: SocketAddr) -> String {
    SocketAddr::new(address.ip().to_canonical(), address.port()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Configuration;

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
    fn waking_late_is_told_if_it_matters() {
        let mut worries = Worries::none();
        let mut told =
            |millis| worries.of_lateness(Duration::from_millis(millis), Span::from_millis(50));
        assert!(told(49).is_none());
        let warning = told(81);
        assert!(
            matches!(&warning, Some(Line::Warning(text)) if text.starts_with("woke 81 ms late: ")),
            "{warning:?}"
        );
        assert!(told(81).is_none(), "not so soon again");
    }

    fn dropped(port: u16, member: Option<u32>, reason: Rejection) -> Dropped {
        let source = SocketAddr::from(([0, 0, 0, 0, 0, 0xffff, 0x7f00, 1], port));
        Dropped { source, member: member.map(NodeId), reason }
    }

    #[test]
    fn what_is_dropped_is_told_once_for_each_sender_and_reason() {
        let text = "cluster = \"x\"\nid = 1\nstate_dir = \"s\"\n\
            [[member]]\nid = 1\nname = \"one\"\naddress = \"127.0.0.1:7400\"\n\
            [[member]]\nid = 2\nname = \"two\"\naddress = \"127.0.0.1:7401\"\n";
        let settings = Configuration::parse("a test", text).expect("it is sound").settings;
        let mut worries = Worries::none();
        let mut told = |dropped| match worries.of_dropped(&settings, dropped) {
            Some(Line::Warning(text)) => Some(text),
            None => None,
            other => panic!("{other:?}"),
        };
        let from_two = "drops datagrams from 127.0.0.1:7401, where two is: they are sealed with a key that this node \
                        does not have; compare the key files (key)";
        assert_eq!(told(dropped(7401, Some(2), Rejection::Key)).as_deref(), Some(from_two));
        assert_eq!(told(dropped(7401, Some(2), Rejection::Key)), None, "not so soon again");
        let forged = told(dropped(7401, Some(2), Rejection::Forged));
        assert!(forged.is_some_and(|text| text.contains("(forged)")));
        let stranger = told(dropped(9, None, Rejection::Key)).expect("another sender");
        assert!(stranger.starts_with("drops datagrams from 127.0.0.1:9: they"), "{stranger}");
        assert_eq!(told(dropped(10, None, Rejection::Foreign)), None, "that says nothing");
    }

    #[test]
    fn forged_addresses_fill_neither_the_log_nor_the_memory() {
        let mut worries = Worries::none();
        let worry = |port| Worry::Dropped(SocketAddr::from(([192, 0, 2, 1], port)), Rejection::Key);
        let told = (1..=1000).filter(|&port| worries.is_due(worry(port))).count();
        assert_eq!((told, worries.told.len()), (SENDERS, SENDERS));
        assert!(worries.is_due(Worry::Silence), "of everything else is told as ever");
        // A while later those that have gone make room.
        worries.told.values_mut().for_each(|last| *last = Moment::default());
        worries.swept = Moment::default();
        assert!(worries.is_due(worry(2000)));
        assert_eq!(worries.told.len(), 1);
    }
}
