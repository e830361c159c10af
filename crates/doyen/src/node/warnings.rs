//! Warnings for the operator: logged at once, and not again for a while.

use std::net::SocketAddr;
use std::time::Duration;

use doyen_core::members::NodeId;

use super::log::LogLine;
use super::network::{Dropped, OwnDatagrams, canonical};
use super::status::{CONFIGURATION_DIFFERS, Status};
use super::wire::Rejection;
use crate::clock::{Moment, with_unit};
use crate::config::Settings;
use crate::throttle::Throttle;

/// How often a node that rejoins logs which members have not answered.
const REPEAT_REJOINING: Duration = Duration::from_secs(5);

/// How long a node reaches no other member before it warns.
const ISOLATED: Duration = Duration::from_secs(10);

/// How many greetings must have come faster than they are answered until they are taken for replayed ones. Members that
/// start do not greet that much.
const REPLAYED: u64 = 100;

/// What a warning is about, apart from dropped datagrams.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Topic {
    ConfigMismatch(NodeId),
    AddressUnresolved(NodeId),
    Isolated,
    LoopDelayed,
}

/// Decides which warnings are logged.
#[derive(Debug)]
pub(super) struct Warnings {
    logged: Throttle<Topic>,
    /// The senders and reasons of dropped datagrams that were logged, and whether they were a member's own. Source addresses
    /// can be forged, so they have a limit of their own, and suppress no other warning.
    dropped: Throttle<(SocketAddr, Rejection, bool)>,
    /// When it was last logged that the node rejoins.
    last_rejoining: Option<Moment>,
    /// When another member was last reachable.
    last_contact: Moment,
    /// How many greetings had come faster than they are answered by then.
    limited_before: u64,
}

impl Warnings {
    pub(super) fn new() -> Self {
        Self {
            logged: Throttle::new(),
            dropped: Throttle::new(),
            last_rejoining: None,
            last_contact: Moment::now(),
            limited_before: 0,
        }
    }

    /// `member` has another configuration.
    pub(super) fn config_mismatch(&mut self, member: NodeId, name: &str) -> Option<LogLine> {
        self.logged.is_due(Topic::ConfigMismatch(member)).then(|| {
            let text = format!("ignoring {name}, which {CONFIGURATION_DIFFERS}");
            LogLine { member: Some(name.to_owned()), ..LogLine::warning("config-mismatch", text) }
        })
    }

    /// The address of `member` cannot be resolved, or cannot be reached from `listen`.
    pub(super) fn address_unresolved(&mut self, member: NodeId, name: &str) -> Option<LogLine> {
        self.logged.is_due(Topic::AddressUnresolved(member)).then(|| {
            let text = format!(
                "cannot resolve the address of {name}, or cannot reach it from the `listen` address"
            );
            let line = LogLine::warning("address-unresolved", text);
            LogLine { member: Some(name.to_owned()), ..line }
        })
    }

    /// `reaches_others`: whether any other member is reachable, or there is none. `limited`: how many greetings have come
    /// faster than they are answered.
    pub(super) fn isolation(&mut self, reaches_others: bool, limited: u64) -> Option<LogLine> {
        if reaches_others {
            (self.last_contact, self.limited_before) = (Moment::now(), limited);
        }
        let is_isolated = Moment::now().since(self.last_contact) >= ISOLATED;
        (is_isolated && self.logged.is_due(Topic::Isolated)).then(|| {
            let text = "reaches no other member; check that they run, and the network, the addresses and the keys";
            let replayed = match limited.saturating_sub(self.limited_before) {
                greetings @ REPLAYED.. => format!(
                    ". {greetings} greetings came faster than they are answered: recorded ones are being replayed, which \
                     delays answers to the members. Find their sender and block it"
                ),
                _ => String::new(),
            };
            LogLine::warning("isolated", format!("{text}{replayed}"))
        })
    }

    /// The loop woke `delay` later than it wanted to. Shorter delays than a heartbeat interval do not matter.
    pub(super) fn loop_delay(&mut self, delay: Duration, heartbeat: Duration) -> Option<LogLine> {
        let matters = delay >= heartbeat;
        (matters && self.logged.is_due(Topic::LoopDelayed)).then(|| {
            let text = format!(
                "event loop delayed by {} (heartbeat interval {}): the machine is overloaded, or it or this process was suspended. A leader that \
                 is delayed for too long loses its lease; a slower `timing.profile` tolerates longer delays",
                with_unit(delay),
                with_unit(heartbeat)
            );
            LogLine::warning("loop-delayed", text)
        })
    }

    /// The node starts to rejoin. It warns of missing answers later.
    pub(super) fn rejoin_started(&mut self) -> LogLine {
        self.last_rejoining = Some(Moment::now());
        let text = "rejoining: asking every other member for what it has stored about this member";
        LogLine::info("rejoin-started", text)
    }

    /// The node rejoins, and members that are unreachable have not answered.
    pub(super) fn rejoining(&mut self, status: &Status) -> Option<LogLine> {
        let now = Moment::now();
        let is_recent = |last: Moment| now.since(last) < REPEAT_REJOINING;
        let awaited = status.members.iter().filter(|member| !member.reachable);
        let names: Vec<&str> = awaited.map(|member| &*member.name).collect();
        if names.is_empty() || self.last_rejoining.is_some_and(is_recent) {
            return None;
        }
        self.last_rejoining = Some(now);
        let text = format!(
            "rejoining: waiting for an answer from {}; every other member must answer",
            status.unanswered()
        );
        Some(LogLine { member: Some(names.join(", ")), ..LogLine::warning("rejoin-waiting", text) })
    }

    /// A datagram was dropped. Only reasons that hint at a mistake of an operator are logged.
    pub(super) fn dropped(&mut self, settings: &Settings, dropped: Dropped) -> Option<LogLine> {
        let Dropped { source, member, all_known, reason, stranger } = dropped;
        let own = member.map_or(OwnDatagrams::Missing, |(_, own)| own);
        let arrive = own == OwnDatagrams::Arrive && stranger.is_none();
        let hint = match stranger {
            Some(stranger) => stranger_hint(settings, stranger),
            None if own == OwnDatagrams::Undecided => return None,
            None if arrive => hint_of_others(reason)?.to_owned(),
            None => hint(reason)?.to_owned(),
        };
        self.dropped.is_due((source, reason, arrive)).then(|| {
            let address = canonical(source);
            let member = member.map(|(member, _)| settings.name_of(member).to_owned());
            let from = match &member {
                Some(name) if arrive => {
                    format!("{address}, the address of {name}, whose own datagrams arrive")
                }
                Some(name) => format!("{name} ({address})"),
                None if stranger.is_some() || !all_known => address.clone(),
                None => format!("{address}, at which no other member is configured"),
            };
            let member = member.filter(|_| !arrive);
            LogLine {
                member,
                address: Some(address),
                reason: Some(reason.name().to_owned()),
                ..LogLine::warning(
                    "datagrams-dropped",
                    format!("dropping datagrams from {from}: {hint}"),
                )
            }
        })
    }
}

/// What is wrong with a datagram of a node that has the key and is not another member.
fn stranger_hint(settings: &Settings, id: NodeId) -> String {
    if id == settings.me {
        return format!("the sender has id {id}, which is this node's. Give every node its own id");
    }
    let members = settings.members.len();
    format!(
        "the sender has id {id}, and no member of the {members} on this node's list has. Compare the member lists"
    )
}

/// What is wrong with a dropped datagram and what to do, if an operator can do something.
fn hint(reason: Rejection) -> Option<&'static str> {
    match reason {
        Rejection::Version => {
            Some("unsupported protocol version. Finish the upgrade of all members")
        }
        Rejection::Cluster => Some("another cluster. Compare the cluster names and the addresses"),
        Rejection::Key => Some("unknown key. Compare the key files"),
        Rejection::Forged => Some("authentication failed. They were altered in transit, or forged"),
        // A mismatch of configurations is reported by member, which is known then.
        Rejection::Configuration
        | Rejection::Size
        | Rejection::Foreign
        | Rejection::Malformed
        | Rejection::Stranger
        | Rejection::Misdirected
        | Rejection::Session
        | Rejection::Replayed
        | Rejection::Limited => None,
    }
}

/// The same for datagrams from the address of a member that has not sent them.
fn hint_of_others(reason: Rejection) -> Option<&'static str> {
    match reason {
        // A member greets in its own version, and in the earliest that others may speak.
        Rejection::Version => Some(
            "unsupported protocol version. They are forged, from another process, or greetings in a newer version",
        ),
        Rejection::Cluster => Some("another cluster. They are forged, or from another process"),
        Rejection::Key => Some("unknown key. They are forged, or from another process"),
        reason => hint(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Configuration;

    #[test]
    fn the_same_warning_is_not_logged_twice_at_once() {
        let mut warnings = Warnings::new();
        assert!(warnings.address_unresolved(NodeId(1), "n1").is_some());
        assert!(warnings.address_unresolved(NodeId(1), "n1").is_none());
        assert!(warnings.address_unresolved(NodeId(2), "n2").is_some());
        assert!(warnings.config_mismatch(NodeId(1), "n1").is_some());
    }

    #[test]
    fn a_node_that_has_just_started_is_not_isolated() {
        assert!(Warnings::new().isolation(false, 0).is_none());
        let long_ago = || Warnings { last_contact: Moment::default(), ..Warnings::new() };
        let mut isolated = long_ago();
        assert!(isolated.isolation(false, 0).is_some());
        assert!(isolated.isolation(false, 0).is_none(), "it has been logged");
        assert!(long_ago().isolation(true, 0).is_none());
    }

    #[test]
    fn a_node_that_is_isolated_by_replayed_greetings_says_so() {
        let isolated = |before, limited| {
            let mut warnings = Warnings::new();
            assert!(warnings.isolation(true, before).is_none());
            warnings.last_contact = Moment::default();
            warnings.isolation(false, limited).expect("a warning").text
        };
        let text = isolated(7, 1007);
        assert!(text.contains(". 1000 greetings came faster than they are answered: "), "{text}");
        for few in [isolated(0, 99), isolated(5_000, 5_000)] {
            assert!(few.ends_with("the addresses and the keys"), "{few}");
        }
    }

    #[test]
    fn a_delay_is_logged_if_it_is_as_long_as_a_heartbeat_interval() {
        let mut warnings = Warnings::new();
        let mut delayed =
            |millis| warnings.loop_delay(Duration::from_millis(millis), Duration::from_millis(50));
        assert!(delayed(49).is_none());
        let line = delayed(81).expect("a warning");
        let start = "event loop delayed by 81 ms (heartbeat interval 50 ms): ";
        assert!(line.text.starts_with(start), "{line:?}");
        assert!(delayed(81).is_none(), "not again so soon");
        let delay = Duration::from_secs(8 * 3600);
        let line = Warnings::new().loop_delay(delay, Duration::from_millis(50)).expect("a warning");
        assert!(line.text.starts_with("event loop delayed by 8h ("), "{line:?}");
    }

    fn dropped(port: u16, member: Option<u32>, reason: Rejection) -> Dropped {
        let source = SocketAddr::from(([0, 0, 0, 0, 0, 0xffff, 0x7f00, 1], port));
        let member = member.map(|member| (NodeId(member), OwnDatagrams::Missing));
        Dropped { source, member, all_known: true, reason, stranger: None }
    }

    fn settings() -> Settings {
        let text = "cluster = \"x\"\nid = 1\nstate_dir = \"s\"\n\
            [[member]]\nid = 1\nname = \"one\"\naddress = \"127.0.0.1:7400\"\n\
            [[member]]\nid = 2\nname = \"two\"\naddress = \"127.0.0.1:7401\"\n";
        Configuration::parse("a test", text).expect("it is sound").settings
    }

    #[test]
    fn dropped_datagrams_are_logged_once_for_each_sender_and_reason() {
        let settings = settings();
        let mut warnings = Warnings::new();
        let mut warn = |dropped| warnings.dropped(&settings, dropped);
        let key = warn(dropped(7401, Some(2), Rejection::Key)).expect("a warning");
        let text =
            "dropping datagrams from two (127.0.0.1:7401): unknown key. Compare the key files";
        assert_eq!(key.text, text);
        assert_eq!((key.member.as_deref(), key.reason.as_deref()), (Some("two"), Some("key")));
        assert_eq!(warn(dropped(7401, Some(2), Rejection::Key)), None, "not again so soon");
        let forged = warn(dropped(7401, Some(2), Rejection::Forged)).expect("another reason");
        assert_eq!(forged.reason.as_deref(), Some("forged"));
        let stranger = warn(dropped(9, None, Rejection::Key)).expect("another sender");
        let text = "dropping datagrams from 127.0.0.1:9, at which no other member is configured: ";
        assert!(stranger.text.starts_with(text), "{stranger:?}");
        let early = Dropped { all_known: false, ..dropped(8, None, Rejection::Key) };
        let text = "dropping datagrams from 127.0.0.1:8: unknown key. Compare the key files";
        assert_eq!(warn(early).expect("another sender").text, text, "it may be a member's");
        assert_eq!(warn(dropped(10, None, Rejection::Foreign)), None, "no operator can help");
        let claims = |port, id| Dropped {
            stranger: Some(NodeId(id)),
            ..dropped(port, None, Rejection::Stranger)
        };
        let stranger = warn(claims(11, 4)).expect("a warning");
        let text = "dropping datagrams from 127.0.0.1:11: the sender has id 4, and no member of the 2 on this node's list \
            has. Compare the member lists";
        assert_eq!(stranger.text, text);
        assert_eq!(warn(claims(11, 4)), None, "not again so soon");
        let own = warn(claims(12, 1)).expect("a warning").text;
        assert!(own.contains("the sender has id 1, which is this node's"), "{own}");
    }

    #[test]
    fn a_member_whose_datagrams_arrive_is_not_blamed_for_others_from_its_address() {
        let settings = settings();
        let mut warnings = Warnings::new();
        let mut warn = |own, reason| {
            let member = Some((NodeId(2), own));
            warnings.dropped(&settings, Dropped { member, ..dropped(7401, None, reason) })
        };
        assert_eq!(warn(OwnDatagrams::Undecided, Rejection::Version), None);
        let line = warn(OwnDatagrams::Arrive, Rejection::Version).expect("a warning");
        let text = "dropping datagrams from 127.0.0.1:7401, the address of two, whose own datagrams arrive: unsupported \
            protocol version. They are forged, from another process, or greetings in a newer version";
        assert_eq!((line.text.as_str(), line.member), (text, None));
        let key = warn(OwnDatagrams::Arrive, Rejection::Key).expect("a warning").text;
        assert!(key.ends_with("unknown key. They are forged, or from another process"), "{key}");
        assert_eq!(warn(OwnDatagrams::Arrive, Rejection::Key), None, "not again so soon");
        let own = warn(OwnDatagrams::Missing, Rejection::Version).expect("its own, later").text;
        assert!(own.contains("from two (127.0.0.1:7401): ") && own.contains("Finish the"), "{own}");
    }

    #[test]
    fn forged_addresses_fill_neither_the_log_nor_the_memory() {
        let mut warnings = Warnings::new();
        let sender = |port| (SocketAddr::from(([192, 0, 2, 1], port)), Rejection::Key, false);
        let logged = (1..=1000).filter(|&port| warnings.dropped.is_due(sender(port))).count();
        assert_eq!(logged, 64);
        let other = warnings.address_unresolved(NodeId(1), "n1");
        assert!(other.is_some(), "other warnings are not suppressed");
    }
}
