//! Every algorithm by name, with what it guarantees and what it costs: one table, which the help, the documentation and the
//! lab show. And every algorithm as a state machine: [`AnyProtocol`] is the one that a configuration names.

mod any;
mod table;

use std::fmt;
use std::str::FromStr;

use crate::algorithm::{leader_tracker, quorum};
use crate::config::{Mode, Variant};
use crate::exclusion::token_ring;
use crate::protocol::RuleText;
use crate::{session, snapshot};

use table::{Entry, TABLE, Trait};

pub use any::{AnyConfig, AnyDurable, AnyMessage, AnyProtocol, AnyTimer, EarlierMessage};

/// Declares the enum by the list of all algorithms.
macro_rules! algorithms {
    ($($name:ident: $root:tt::$folder:ident::$file:ident::$protocol:ident,)*) => {
        /// The algorithms.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Algorithm {
            $(
                #[doc = concat!(
                    "[`", stringify!($file), "`](crate::", stringify!($folder), "::", stringify!($file), ")."
                )]
                $name,
            )*
        }
    };
}

any::with_algorithms!([algorithms]);

impl Algorithm {
    /// Every algorithm, in the order of the specification.
    pub const ALL: [Self; TABLE.len()] =
        listed(&[Purpose::Elects, Purpose::Excludes, Purpose::Records, Purpose::Serves]);

    /// The algorithms that elect a leader.
    pub const ELECTIONS: [Self; 8] = listed(&[Purpose::Elects]);

    /// The algorithms that let one member at a time into the critical section.
    pub const EXCLUSIONS: [Self; 10] = listed(&[Purpose::Excludes]);

    /// The sources' elections, which have a textbook mode and a hardened one: all but the last.
    pub const OF_SOURCES: [Self; Self::ELECTIONS.len() - 1] = {
        assert!(matches!(Self::ELECTIONS.last(), Some(Self::Quorum)), "the quorum is the last");
        *Self::ELECTIONS.first_chunk().unwrap()
    };

    fn entry(self) -> &'static Entry {
        &TABLE[self as usize]
    }

    fn has(self, wanted: Trait) -> bool {
        self.entry().traits.contains(&wanted)
    }

    /// What it does for its members. Whatever is about leaders or about the critical section only asks this first.
    pub fn purpose(self) -> Purpose {
        self.entry().purpose
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
            Purpose::Excludes if self == Self::LockService => Err(format!(
                "{self} is no algorithm of its own on a node: every node with `algorithm = \"quorum\"` serves locks, to `doyen lock`. \
                 `doyen sim --algorithm {self}` simulates them"
            )),
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
        self.entry().name
    }

    /// Its name as people write it.
    pub fn title(self) -> &'static str {
        self.entry().title
    }

    /// One line about it.
    pub fn summary(self) -> &'static str {
        self.entry().summary
    }

    /// Where it comes from: the sources, and the section of the specification.
    pub fn source(self) -> &'static str {
        self.entry().source
    }

    /// Whether messages go round a ring.
    pub fn is_ring(self) -> bool {
        self.has(Trait::Ring)
    }

    /// Whether it is correct only if links keep the order of messages.
    pub fn needs_fifo(self) -> bool {
        self.has(Trait::NeedsFifo)
    }

    /// How often one member may enter the critical section while another one waits, if the algorithm bounds that. `fifo`:
    /// links keep the order of messages.
    pub fn most_overtaking(self, fifo: bool) -> Option<u32> {
        self.entry().traits.iter().find_map(|it| match *it {
            Trait::Overtaken(most) => Some(most),
            Trait::OvertakenIfFifo(most) => fifo.then_some(most),
            _ => None,
        })
    }

    /// Whether an algorithm that elects no leader heeds failure reports in this mode.
    pub fn heeds_reports(self, mode: Mode) -> bool {
        self.has(Trait::HeedsReports) || mode == Mode::Literal(Variant::DownReplies)
    }

    /// Whether a member may campaign: of an election, or for what its coordinator does.
    pub fn heeds_campaigns(self) -> bool {
        self.elects() || self.has(Trait::HeedsCampaigns)
    }

    /// Whether of two requests the one that happened before the other enters first. `fifo`: links keep the order of messages.
    pub fn orders_requests(self, fifo: bool) -> bool {
        fifo && self.has(Trait::OrdersRequests)
    }

    /// Whether a token lets its holder enter the critical section.
    pub fn has_token(self) -> bool {
        self.has(Trait::Token)
    }

    /// The literal readings that apply to it.
    pub fn variants(self) -> &'static [Variant] {
        self.entry().variants
    }

    /// Whether it has this mode: it guarantees something there, or the mode is one of its literal readings.
    pub fn reads(self, mode: Mode) -> bool {
        match mode {
            Mode::Literal(variant) => self.variants().contains(&variant),
            Mode::Textbook | Mode::Hardened => {
                let hardened = mode == Mode::Hardened;
                self.guarantees().iter().any(|guarantee| guarantee.hardened == hardened)
            }
        }
    }

    /// Its default mode.
    pub fn usual_mode(self) -> Mode {
        if self.reads(Mode::Textbook) { Mode::Textbook } else { Mode::Hardened }
    }

    /// Whether its leaders have leases, so that there is at most one at any instant.
    pub fn has_leases(self) -> bool {
        self.has(Trait::Leases)
    }

    /// Its rules in words: its own, then those of hardened mode that all algorithms of the sources share, of the ring, of
    /// sessions and of snapshots. Every rule that a run notes is among them.
    pub fn rules(self) -> impl Iterator<Item = &'static RuleText> {
        let own = self.entry().rules;
        let hardened: &[_] = match self.elects() && !self.has_leases() {
            true => leader_tracker::rules::RULES,
            false => &[],
        };
        let beneath: &[_] = match self {
            Self::TokenRecovery => token_ring::rules::RULES,
            Self::LockService => quorum::rules::RULES,
            _ => &[],
        };
        let ring: &[_] = if self.is_ring() { &[FORWARDS] } else { &[] };
        // Only members of an election have sessions.
        let has_sessions = self.elects() || self.has_leases();
        let sessions: &[_] = if has_sessions { session::rules::RULES } else { &[] };
        [own, beneath, hardened, ring, sessions, snapshot::rules::RULES].into_iter().flatten()
    }

    /// What the crash of one member does to the others, for people.
    pub fn one_crash(self) -> &'static str {
        self.entry().one_crash
    }

    /// What it guarantees in each of its modes.
    pub fn guarantees(self) -> &'static [Guarantee] {
        self.entry().guarantees
    }
}

/// The algorithms with one of these purposes, in the order of the table.
const fn listed<const N: usize>(purposes: &[Purpose]) -> [Algorithm; N] {
    let mut list = [Algorithm::Bully; N];
    let (mut place, mut row) = (0, 0);
    while row < TABLE.len() {
        let mut each = 0;
        while each < purposes.len() {
            if TABLE[row].purpose as u8 == purposes[each] as u8 {
                list[place] = TABLE[row].algorithm;
                place += 1;
            }
            each += 1;
        }
        row += 1;
    }
    assert!(place == N, "the list is as long as it is declared");
    list
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
    const fn textbook(texts: [&'static str; 4]) -> Self {
        Self::new(false, texts)
    }

    const fn hardened(texts: [&'static str; 4]) -> Self {
        Self::new(true, texts)
    }

    const fn new(hardened: bool, [safety, liveness, partition, cost]: [&'static str; 4]) -> Self {
        Self { hardened, safety, liveness, partition, cost }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::protocol::Family;

    #[test]
    fn every_algorithm_is_parsed_from_its_name_and_has_its_guarantees() {
        for (place, algorithm) in Algorithm::ALL.into_iter().enumerate() {
            assert_eq!(algorithm as usize, place, "the table has the order of the enum");
            assert_eq!(algorithm.name().parse(), Ok(algorithm));
            let promised = algorithm.guarantees();
            assert!(
                promised.is_sorted_by(|one, next| !one.hardened && next.hardened)
                    && !promised.is_empty()
            );
            let lists = [&Algorithm::ELECTIONS[..], &Algorithm::EXCLUSIONS[..]];
            let listed = lists.map(|list| list.contains(&algorithm));
            let excludes = algorithm.purpose() == Purpose::Excludes;
            assert_eq!(listed, [algorithm.elects(), excludes]);
            assert_eq!(Algorithm::for_node(algorithm.name()).is_ok(), algorithm.elects());
        }
        assert!("buly".parse::<Algorithm>().unwrap_err().contains("use one of bully"));
    }

    /// The modes follow from the guarantees: one that is written in the wrong place would open a mode.
    #[test]
    fn which_algorithms_have_which_mode() {
        let having = |mode: Mode| -> BTreeSet<Algorithm> {
            Algorithm::ALL.into_iter().filter(|algorithm| algorithm.reads(mode)).collect()
        };
        let only_hardened = [Algorithm::Quorum, Algorithm::LockService];
        let both = [Algorithm::RicartAgrawala, Algorithm::Sequencer];
        let both = Algorithm::OF_SOURCES.into_iter().chain(both);
        assert_eq!(having(Mode::Hardened), both.chain(only_hardened).collect());
        let others = Algorithm::ALL.into_iter().filter(|it| !only_hardened.contains(it));
        assert_eq!(having(Mode::Textbook), others.collect());
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
