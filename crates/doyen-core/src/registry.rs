//! Every algorithm by name, with what it guarantees and what it costs: one table, which the help, the documentation and the
//! lab show. And every algorithm as a state machine: [`AnyProtocol`] is the one that a configuration names.

mod any;

use std::fmt;
use std::str::FromStr;

use crate::algorithm::{
    bank, bully, chang_roberts, leader_tracker, modified_bully, quorum, ring_active_list,
    ring_all_ids, ring_list, sequencer,
};
use crate::config::{Mode, Variant};
use crate::exclusion::{
    centralised, lamport, maekawa, raymond, ricart_agrawala, suzuki_kasami, token_recovery,
    token_ring, voting,
};
use crate::protocol::RuleText;
use crate::{session, snapshot};

pub use any::{AnyConfig, AnyDurable, AnyMessage, AnyProtocol, AnyTimer, EarlierMessage};

/// The algorithms.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Algorithm {
    /// [`bully`].
    Bully,
    /// [`modified_bully`].
    ModifiedBully,
    /// [`ring_list`].
    RingList,
    /// [`ring_active_list`].
    RingActiveList,
    /// [`ring_all_ids`].
    RingAllIds,
    /// [`chang_roberts`].
    ChangRoberts,
    /// [`ring_resilient`](crate::algorithm::ring_resilient).
    RingResilient,
    /// [`quorum`].
    Quorum,
    /// [`centralised`].
    Centralised,
    /// [`voting`].
    Voting,
    /// [`lamport`].
    Lamport,
    /// [`ricart_agrawala`].
    RicartAgrawala,
    /// [`token_ring`].
    TokenRing,
    /// [`maekawa`].
    Maekawa,
    /// [`raymond`].
    Raymond,
    /// [`suzuki_kasami`].
    SuzukiKasami,
    /// [`token_recovery`].
    TokenRecovery,
    /// [`bank`].
    Bank,
    /// [`sequencer`].
    Sequencer,
}

impl Algorithm {
    /// Every algorithm, in the order of the specification.
    pub const ALL: [Self; 19] = [
        Self::Bully,
        Self::ModifiedBully,
        Self::RingList,
        Self::RingActiveList,
        Self::RingAllIds,
        Self::ChangRoberts,
        Self::RingResilient,
        Self::Quorum,
        Self::Centralised,
        Self::Voting,
        Self::Lamport,
        Self::RicartAgrawala,
        Self::TokenRing,
        Self::Maekawa,
        Self::Raymond,
        Self::SuzukiKasami,
        Self::TokenRecovery,
        Self::Bank,
        Self::Sequencer,
    ];

    /// The algorithms that elect a leader.
    pub const ELECTIONS: [Self; 8] = [
        Self::Bully,
        Self::ModifiedBully,
        Self::RingList,
        Self::RingActiveList,
        Self::RingAllIds,
        Self::ChangRoberts,
        Self::RingResilient,
        Self::Quorum,
    ];

    /// The algorithms that let one member at a time into the critical section.
    pub const EXCLUSIONS: [Self; 9] = [
        Self::Centralised,
        Self::Voting,
        Self::Lamport,
        Self::RicartAgrawala,
        Self::TokenRing,
        Self::Maekawa,
        Self::Raymond,
        Self::SuzukiKasami,
        Self::TokenRecovery,
    ];

    /// The sources' elections, which have a textbook mode and a hardened one.
    pub const OF_SOURCES: [Self; 7] = [
        Self::Bully,
        Self::ModifiedBully,
        Self::RingList,
        Self::RingActiveList,
        Self::RingAllIds,
        Self::ChangRoberts,
        Self::RingResilient,
    ];

    /// What it does for its members. Whatever is about leaders or about the critical section only asks this first.
    pub fn purpose(self) -> Purpose {
        match self {
            Self::Bank => Purpose::Records,
            Self::Sequencer => Purpose::Serves,
            _ if Self::EXCLUSIONS.contains(&self) => Purpose::Excludes,
            _ => Purpose::Elects,
        }
    }

    /// Whether it elects a leader.
    pub fn elects(self) -> bool {
        self.purpose() == Purpose::Elects
    }

    /// Reads the name of an algorithm for a node, which runs elections only.
    pub fn for_node(name: &str) -> Result<Self, String> {
        let algorithm: Self = name.parse()?;
        algorithm.suits_node().map(|()| algorithm)
    }

    /// Why a node refuses to run it, if it does.
    pub fn suits_node(self) -> Result<(), String> {
        match self.purpose() {
            Purpose::Elects => Ok(()),
            Purpose::Excludes => Err(format!(
                "{self} elects no leader: it excludes members from a critical section, and one member that \
                 crashes can block all others; a node runs elections only. `doyen sim --algorithm {self}` simulates it"
            )),
            Purpose::Records => Err(format!(
                "{self} elects no leader: it is an application of which snapshots are taken; a node runs elections only. \
                 `doyen sim --algorithm {self} --snapshot 1@0` simulates it"
            )),
            Purpose::Serves => Err(format!(
                "{self} elects no leader: it shows what a coordinator serves, and what is lost when it fails; a node runs \
                 elections only. `doyen sim --algorithm {self}` simulates it"
            )),
        }
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bully => "bully",
            Self::ModifiedBully => "modified-bully",
            Self::RingList => "ring-list",
            Self::RingActiveList => "ring-active-list",
            Self::RingAllIds => "ring-all-ids",
            Self::ChangRoberts => "chang-roberts",
            Self::RingResilient => "ring-resilient",
            Self::Quorum => "quorum",
            Self::Centralised => "centralised",
            Self::Voting => "voting",
            Self::Lamport => "lamport",
            Self::RicartAgrawala => "ricart-agrawala",
            Self::TokenRing => "token-ring",
            Self::Maekawa => "maekawa",
            Self::Raymond => "raymond",
            Self::SuzukiKasami => "suzuki-kasami",
            Self::TokenRecovery => "token-recovery",
            Self::Bank => "bank",
            Self::Sequencer => "sequencer",
        }
    }

    /// One line about it.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Bully => {
                "asks every higher member; a member that gets no answer wins (Garcia-Molina 1982)"
            }
            Self::ModifiedBully => {
                "asks every higher member; the asker grants the highest that answers (Kordafshari et al.)"
            }
            Self::RingList => {
                "a list of the live members circulates, then the result (cs677, the notes' example)"
            }
            Self::RingActiveList => {
                "every member's number circulates; each decides for itself (notes)"
            }
            Self::RingAllIds => {
                "every member's \"elect me\" circulates the whole ring (os-textbook)"
            }
            Self::ChangRoberts => {
                "only the highest \"elect me\" completes the circle (os-textbook refined, cs425)"
            }
            Self::RingResilient => {
                "a list circulates past dead members, and the winner is confirmed (cs425)"
            }
            Self::Quorum => {
                "a majority elects the best member, which leads under a lease that the majority renews"
            }
            Self::Centralised => "a coordinator lets one member in after the other (cs677)",
            Self::Voting => "a member enters with the votes of a majority of voters (cs677)",
            Self::Lamport => "every member keeps the same queue of requests (Lamport 1978)",
            Self::RicartAgrawala => {
                "a member enters when all others have replied (Ricart and Agrawala 1981)"
            }
            Self::TokenRing => "a token goes round; its holder may enter (cs677)",
            Self::Maekawa => {
                "a member enters with the votes of its arbiters; any two sets of them meet (Maekawa 1985)"
            }
            Self::Raymond => "the token moves along the edges of a tree (Raymond 1989)",
            Self::SuzukiKasami => "asks all others for the token (Suzuki and Kasami 1985)",
            Self::TokenRecovery => "a token goes round, and a lost one is replaced (os-textbook)",
            Self::Bank => "members move money, and a snapshot records who has how much (cs425)",
            Self::Sequencer => {
                "the leader numbers the messages of all members, which deliver them in this order (cs425)"
            }
        }
    }

    /// Where it comes from: the sources, and the section of the specification.
    pub fn source(self) -> &'static str {
        match self {
            Self::Bully => "cs677, notes, kordafshari, os-textbook, cs425",
            Self::ModifiedBully => "kordafshari",
            Self::RingList => "cs677, notes",
            Self::RingActiveList => "notes",
            Self::RingAllIds | Self::TokenRecovery => "os-textbook",
            Self::ChangRoberts => "os-textbook, cs425",
            Self::RingResilient => "cs425",
            Self::Quorum | Self::SuzukiKasami => "beyond the sources",
            Self::Centralised | Self::Voting | Self::TokenRing => "cs677",
            Self::RicartAgrawala => "cs677, cs425",
            Self::Lamport | Self::Maekawa | Self::Raymond | Self::Bank | Self::Sequencer => "cs425",
        }
    }

    /// Whether messages go round a ring.
    pub fn is_ring(self) -> bool {
        match self {
            Self::RingList
            | Self::RingActiveList
            | Self::RingAllIds
            | Self::ChangRoberts
            | Self::RingResilient
            | Self::TokenRing
            | Self::TokenRecovery => true,
            Self::Bully
            | Self::ModifiedBully
            | Self::Quorum
            | Self::Centralised
            | Self::Voting
            | Self::Lamport
            | Self::RicartAgrawala
            | Self::Maekawa
            | Self::Raymond
            | Self::SuzukiKasami
            | Self::Bank
            | Self::Sequencer => false,
        }
    }

    /// Whether it is correct only if links keep the order of messages.
    pub fn needs_fifo(self) -> bool {
        matches!(
            self,
            Self::RingActiveList
                | Self::RingAllIds
                | Self::Lamport
                | Self::Maekawa
                | Self::Sequencer
        )
    }

    /// The literal readings that apply to it.
    pub fn variants(self) -> &'static [Variant] {
        match self {
            Self::Bully => &[
                Variant::NoGuard,
                Variant::NoT2,
                Variant::OneTimer,
                Variant::Eager,
                Variant::Serial,
                Variant::NaiveOk,
            ],
            Self::ModifiedBully => &[Variant::Figure4, Variant::LiteralTimers, Variant::Eager],
            Self::RingAllIds => &[Variant::Absorb],
            Self::ChangRoberts => &[Variant::NoSwallow],
            Self::Centralised => &[Variant::Deny],
            Self::Voting => &[Variant::Serial],
            Self::Lamport => &[Variant::SavedReplies],
            Self::Maekawa => &[Variant::Original, Variant::Plain],
            Self::Sequencer => &[Variant::CollectsMajority],
            Self::RingList
            | Self::RingActiveList
            | Self::RingResilient
            | Self::Quorum
            | Self::RicartAgrawala
            | Self::TokenRing
            | Self::Raymond
            | Self::SuzukiKasami
            | Self::TokenRecovery
            | Self::Bank => &[],
        }
    }

    /// Whether it has this mode.
    pub fn reads(self, mode: Mode) -> bool {
        match mode {
            // Of the exclusions, one has a hardened form of its own; what tolerates crashes is a lock service.
            Mode::Hardened => {
                self.elects() || matches!(self, Self::RicartAgrawala | Self::Sequencer)
            }
            Mode::Textbook => self != Self::Quorum,
            Mode::Literal(variant) => self.variants().contains(&variant),
        }
    }

    /// Its default mode.
    pub fn usual_mode(self) -> Mode {
        if self.reads(Mode::Textbook) { Mode::Textbook } else { Mode::Hardened }
    }

    /// Whether its leaders have leases, so that there is at most one at any instant.
    pub fn has_leases(self) -> bool {
        self == Self::Quorum
    }

    /// Its rules in words: its own, then those of hardened mode that all algorithms of the sources share, of the ring, of
    /// sessions and of snapshots. Every rule that a run notes is among them.
    pub fn rules(self) -> impl Iterator<Item = &'static RuleText> {
        let own = match self {
            Self::Bully => bully::rules::RULES,
            Self::ModifiedBully => modified_bully::rules::RULES,
            Self::RingList | Self::RingResilient => ring_list::rules::RULES,
            Self::RingActiveList => ring_active_list::rules::RULES,
            Self::RingAllIds => ring_all_ids::rules::RULES,
            Self::ChangRoberts => chang_roberts::rules::RULES,
            Self::Quorum => quorum::rules::RULES,
            Self::Bank => bank::rules::RULES,
            Self::Sequencer => sequencer::rules::RULES,
            Self::Centralised => centralised::rules::RULES,
            Self::Voting => voting::rules::RULES,
            Self::Lamport => lamport::rules::RULES,
            Self::RicartAgrawala => ricart_agrawala::rules::RULES,
            Self::TokenRing => token_ring::rules::RULES,
            Self::Maekawa => maekawa::rules::RULES,
            Self::Raymond => raymond::rules::RULES,
            Self::SuzukiKasami => suzuki_kasami::rules::RULES,
            Self::TokenRecovery => token_recovery::rules::RULES,
        };
        let hardened: &[_] = match self.elects() && !self.has_leases() {
            true => leader_tracker::rules::RULES,
            false => &[],
        };
        let of_ring: &[_] = match self {
            Self::TokenRecovery => token_ring::rules::RULES,
            _ => &[],
        };
        let ring: &[_] = if self.is_ring() { &[FORWARDS] } else { &[] };
        // Only members of an election have sessions.
        let sessions: &[_] = if self.elects() { session::rules::RULES } else { &[] };
        [own, of_ring, hardened, ring, sessions, snapshot::rules::RULES].into_iter().flatten()
    }

    /// What the crash of one member does to the others, for people.
    pub fn one_crash(self) -> &'static str {
        match self {
            Self::Bully => "no harm: a member that waits too long starts another election",
            Self::ModifiedBully => {
                "the granted member or the initiator: textbook ends without a leader, hardened elects again"
            }
            Self::RingList => {
                "the initiator: in textbook mode its list goes round forever; hardened elects again"
            }
            Self::RingActiveList | Self::RingAllIds | Self::ChangRoberts => {
                "the member that has the message: textbook stops without a result, hardened elects again"
            }
            Self::RingResilient => "no harm, unless the winner crashes after it is confirmed",
            Self::Quorum => "no harm while a majority is up: another member leads after the lease",
            Self::Centralised => {
                "the coordinator or the member inside: all block; any other one: no harm"
            }
            Self::Voting => {
                "a voter: no harm while enough are up; if it restarts and has forgotten its vote, two may enter"
            }
            Self::Lamport | Self::RicartAgrawala => {
                "any member, even one that wants nothing: all block"
            }
            Self::TokenRing => {
                "any member: the token is lost at the latest when it comes by, and all block"
            }
            Self::Maekawa => {
                "an arbiter: those that have it in their voting set block, under load all do"
            }
            Self::Raymond => {
                "the holder of the token or an inner member: all that it cuts off from the token block"
            }
            Self::SuzukiKasami => {
                "the holder of the token: all block; any other one: no harm until the token is sent there"
            }
            Self::TokenRecovery => "no harm once it is reported: a lost token is replaced",
            Self::Bank => "the snapshot is never complete",
            Self::Sequencer => {
                "the leader: another one is elected; an eager one may have delivered what the others never do"
            }
        }
    }

    /// What it guarantees in each of its modes.
    pub fn guarantees(self) -> impl Iterator<Item = &'static Guarantee> {
        GUARANTEES.iter().filter(move |guarantee| guarantee.algorithm == self)
    }
}

/// What an algorithm does for its members.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Purpose {
    /// It elects a leader, which all members follow.
    Elects,
    /// It lets at most one member at a time into a critical section.
    Excludes,
    /// It does something of which a snapshot can be taken.
    Records,
    /// Its leader does something for the other members, and is replaced when it fails.
    Serves,
}

impl Purpose {
    /// One word that says it, the verb of a sentence about an algorithm.
    pub fn name(self) -> &'static str {
        match self {
            Self::Elects => "elects",
            Self::Excludes => "excludes",
            Self::Records => "records",
            Self::Serves => "serves",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == text).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|algorithm| algorithm.name()).collect();
            format!("unknown algorithm `{text}`; use one of {}", names.join(", "))
        })
    }
}

/// What hosts note for a dead member whose control part still works.
const FORWARDS: RuleText = RuleText::new(
    "forwards",
    "its control part forwards",
    "{m} is down, but its control part still passes each message on to the next member.",
);

/// What an algorithm guarantees in a mode, and under which conditions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Guarantee {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Hardened, or textbook.
    pub hardened: bool,
    /// What "all follow the best live member" needs, or "at most one member is inside".
    pub safety: &'static str,
    /// What "every election ends" needs, or "every member that waits enters".
    pub liveness: &'static str,
    /// What happens in a partition.
    pub partition: &'static str,
    /// What it costs without failures: for an election with n live members, the r-th lowest or any one of them detects; for
    /// an entry into the critical section, with N members.
    pub cost: &'static str,
}

impl Guarantee {
    const fn new(
        algorithm: Algorithm,
        hardened: bool,
        [safety, liveness, partition, cost]: [&'static str; 4],
    ) -> Self {
        Self { algorithm, hardened, safety, liveness, partition, cost }
    }
}

const SYNCHRONOUS: &str =
    "no message later than D, no false suspicion, no member returns in between";
const NO_FAILURE: &str = "no member fails during the election";
const CALM: &str = "the network is stable from some moment on";
const RETRIES: &str = "D holds from some moment on";
const TWO_LEADERS: &str = "a leader on each side, also after it heals";
const STOPS: &str = "the message is lost; no member is elected";
const LINKS: &str = "links lose and duplicate nothing";
const FIFO_LINKS: &str = "links lose and duplicate nothing, and keep the order of messages";
const NO_CRASH: &str = "no member crashes, and every stay inside ends";
const WAITS: &str = "members wait until it heals";
const MEETS: &str = "a leader on each side, one after it heals; no fencing token";

/// The table of guarantees. None of the sources' algorithms has "at most one leader at any instant" outside the synchronous
/// model: that needs a majority.
pub const GUARANTEES: &[Guarantee] = &[
    Guarantee::new(
        Algorithm::Bully,
        false,
        [SYNCHRONOUS, "D holds", TWO_LEADERS, "(n−r+1)(n−r)+n−1; at most n²−1"],
    ),
    Guarantee::new(Algorithm::Bully, true, [CALM, RETRIES, MEETS, "the same"]),
    Guarantee::new(
        Algorithm::ModifiedBully,
        false,
        [
            "as bully, and no member fails or returns during the election",
            NO_FAILURE,
            TWO_LEADERS,
            "2(n−r)+n; at most 3n−2 for one detector",
        ],
    ),
    Guarantee::new(Algorithm::ModifiedBully, true, [CALM, RETRIES, MEETS, "the same"]),
    Guarantee::new(
        Algorithm::RingList,
        false,
        [NO_FAILURE, "no initiator fails", TWO_LEADERS, "2n for each initiator"],
    ),
    Guarantee::new(Algorithm::RingList, true, [CALM, RETRIES, MEETS, "the same"]),
    Guarantee::new(
        Algorithm::RingActiveList,
        false,
        ["FIFO links, no member fails", NO_FAILURE, STOPS, "n², however many initiators"],
    ),
    Guarantee::new(Algorithm::RingActiveList, true, [CALM, RETRIES, MEETS, "n², and n−1 ALIVE"]),
    Guarantee::new(
        Algorithm::RingAllIds,
        false,
        ["FIFO links; failed members still forward", NO_FAILURE, STOPS, "n²+n for one initiator"],
    ),
    Guarantee::new(Algorithm::RingAllIds, true, [CALM, RETRIES, MEETS, "the same"]),
    Guarantee::new(
        Algorithm::ChangRoberts,
        false,
        [NO_FAILURE, "no member fails, nothing is lost", STOPS, "at most 3n−1 for one initiator"],
    ),
    Guarantee::new(Algorithm::ChangRoberts, true, [CALM, RETRIES, MEETS, "the same"]),
    Guarantee::new(
        Algorithm::RingResilient,
        false,
        [
            "the winner survives after it is confirmed",
            "a member that saw the election survives",
            TWO_LEADERS,
            "2n for each initiator; about 2n more for each winner that dies",
        ],
    ),
    Guarantee::new(Algorithm::RingResilient, true, [CALM, RETRIES, MEETS, "the same"]),
    Guarantee::new(
        Algorithm::Quorum,
        true,
        [
            "a majority is connected and stable; at most one leads at any instant while no clock is off by more than the drift",
            "a majority is connected, and D holds from some moment on",
            "the side with a majority has the leader, with a fencing token; the other has none",
            "6(N−1) for one candidate, then 2(N−1) every heartbeat",
        ],
    ),
    Guarantee::new(
        Algorithm::Centralised,
        false,
        [
            LINKS,
            "neither the coordinator nor a holder crashes, and every stay inside ends",
            WAITS,
            "3; none at the coordinator",
        ],
    ),
    Guarantee::new(
        Algorithm::Voting,
        false,
        [
            "links lose and duplicate nothing, and no voter restarts",
            "never certain: a member may be overtaken any number of times",
            "the side with enough voters goes on, the other waits",
            "2mk+m to 3mk−(k−1) in k attempts for m votes",
        ],
    ),
    Guarantee::new(Algorithm::Lamport, false, [FIFO_LINKS, NO_CRASH, WAITS, "3(N−1)"]),
    Guarantee::new(Algorithm::RicartAgrawala, false, [LINKS, NO_CRASH, WAITS, "2(N−1)"]),
    Guarantee::new(
        Algorithm::RicartAgrawala,
        true,
        [
            "any links: messages may be late, lost or arrive twice",
            "links lose nothing, no member crashes, and every stay inside ends",
            WAITS,
            "the same",
        ],
    ),
    Guarantee::new(
        Algorithm::TokenRing,
        false,
        [
            LINKS,
            NO_CRASH,
            "the token is lost at the edge",
            "1 if all want to enter; no bound if none does",
        ],
    ),
    Guarantee::new(
        Algorithm::Maekawa,
        false,
        [
            FIFO_LINKS,
            "no arbiter crashes, and every stay inside ends",
            WAITS,
            "3(K−1) idle, 4(K−1) saturated, for sets of K members",
        ],
    ),
    Guarantee::new(
        Algorithm::Raymond,
        false,
        [LINKS, NO_CRASH, WAITS, "2d idle, for a token d hops away; 4(N−1)/N saturated"],
    ),
    Guarantee::new(
        Algorithm::SuzukiKasami,
        false,
        [
            LINKS,
            "the holder of the token does not crash, and every stay inside ends",
            WAITS,
            "N; none with the token",
        ],
    ),
    Guarantee::new(
        Algorithm::TokenRecovery,
        false,
        [
            "links duplicate nothing, and only dead members are reported down",
            "every crash is reported, and every stay inside ends",
            "the token is not recovered while a member is silent",
            "1 if all want to enter; 3N to look for the token",
        ],
    ),
    Guarantee::new(
        Algorithm::Bank,
        false,
        [
            "links lose nothing and keep the order",
            "no member fails during the snapshot",
            "markers are lost; the snapshot stays incomplete",
            "N(N−1) markers",
        ],
    ),
    Guarantee::new(
        Algorithm::Sequencer,
        false,
        [
            "one order among the members that live on; what a crashed member has delivered may be lost",
            "every crash is reported, and no live member is",
            "each side may order; one side is reset afterwards",
            "N for each multicast",
        ],
    ),
    Guarantee::new(
        Algorithm::Sequencer,
        true,
        [
            "one order, and nothing is lost that any member has delivered: a replicated log in all but name",
            "a majority is connected, and every crash is reported",
            "the side with a majority orders",
            "3N−2 for each multicast",
        ],
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::protocol::Family;

    #[test]
    fn every_algorithm_is_parsed_from_its_name_and_has_its_guarantees() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.name().parse(), Ok(algorithm));
            let modes = [Mode::Textbook, Mode::Hardened];
            let promised: Vec<bool> = algorithm.guarantees().map(|p| p.hardened).collect();
            let read = modes.into_iter().filter(|&mode| algorithm.reads(mode));
            assert_eq!(promised, read.map(|mode| mode == Mode::Hardened).collect::<Vec<_>>());
            let lists = [&Algorithm::ELECTIONS[..], &Algorithm::EXCLUSIONS[..]];
            let listed = lists.map(|list| list.contains(&algorithm));
            let excludes = algorithm.purpose() == Purpose::Excludes;
            assert_eq!(listed, [algorithm.elects(), excludes]);
            assert_eq!(Algorithm::for_node(algorithm.name()).is_ok(), algorithm.elects());
        }
        assert!("buly".parse::<Algorithm>().unwrap_err().contains("use one of bully"));
    }

    #[test]
    fn every_rule_of_an_algorithm_has_words_of_its_own() {
        for algorithm in Algorithm::ALL {
            let mut ids = BTreeSet::new();
            for rule in algorithm.rules() {
                assert!(ids.insert(rule.id), "{algorithm} has two rules {}", rule.id);
                assert!(rule.title.chars().count() <= 40, "{rule:?}");
                assert!(rule.text.ends_with('.') && rule.text.chars().count() <= 200, "{rule:?}");
                let placeholders = rule.text.replace("{m}", "");
                assert!(!placeholders.contains(['{', '}']), "{rule:?}");
            }
        }
    }

    /// The ids in the sources of this crate, without those of parts that only explorers run.
    fn noted() -> BTreeSet<String> {
        let mut noted = BTreeSet::new();
        let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if path.is_dir() {
                    folders.extend((name != "explore").then_some(path));
                } else if !["rules.rs", "tests.rs", "registry.rs"].contains(&name.as_str()) {
                    let text = fs::read_to_string(&path).unwrap();
                    let quoted = text.split('"').skip(1).step_by(2);
                    noted.extend(quoted.filter(|word| is_rule(word)).map(str::to_owned));
                }
            }
        }
        noted
    }

    /// Whether `word` looks like `R3`, `AL10`, `Q1a` or `M9'`.
    fn is_rule(word: &str) -> bool {
        let number = word.trim_start_matches(|c: char| c.is_ascii_uppercase());
        let rest = number.trim_start_matches(|c: char| c.is_ascii_digit());
        let letters = word.len() - number.len();
        (1..=2).contains(&letters) && number != rest && ["", "a", "b", "c", "'"].contains(&rest)
    }

    #[test]
    fn every_rule_that_handlers_note_has_words_and_every_rule_with_words_is_noted() {
        let described: BTreeSet<String> = Algorithm::ALL
            .into_iter()
            .flat_map(Algorithm::rules)
            .map(|rule| rule.id.to_owned())
            .filter(|id| id != FORWARDS.id)
            .collect();
        assert_eq!(noted(), described);
    }

    #[test]
    fn kinds_of_the_same_name_are_of_the_same_family_everywhere() {
        let mut families = BTreeMap::new();
        for kind in Algorithm::ALL.into_iter().flat_map(crate::layers::kinds) {
            let family = *families.entry(kind.name).or_insert(kind.family);
            assert_eq!(family, kind.family, "{}", kind.name);
            assert!(!kind.meaning.is_empty(), "{}", kind.name);
        }
        assert_eq!(families["ELECTION"], Family::Ask);
        assert_eq!(crate::layers::family_of("TIMEOUT-NOW"), Some(Family::HandOver));
        assert_eq!(crate::layers::family_of("GREETING"), Some(Family::Upkeep));
    }

    #[test]
    fn every_variant_belongs_to_an_algorithm() {
        for variant in Variant::ALL {
            let owned = |algorithm: &Algorithm| algorithm.variants().contains(&variant);
            assert!(Algorithm::ALL.iter().any(owned), "{variant:?}");
        }
    }
}
