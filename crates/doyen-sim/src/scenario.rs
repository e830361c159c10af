//! A scenario: one run, as a user writes it in TOML or on the command line.
//!
//! [`Scenario`] is the written form: every value is typed, and a key that is left out has no value. [`Scenario::resolve`]
//! makes a [`Case`] of it, in which every name is a member, every default is filled in and nothing is contradictory. The
//! command line fills in the same struct from its flags, so there is one set of rules and one set of errors.

mod changes;
mod exclusion;
mod expect;
mod faults;
mod parse;
mod quorum;
mod resolve;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use doyen_core::config::Mode;
use doyen_core::config::exclusion::{Sets, Tree};
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;
use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeValue, ValueDeserializer};

use crate::document;
use crate::fault::{Chaos, Fault, LinkOverride};
use crate::message::{Late, MessageName, Twice};
use crate::network::DelayModel;
use crate::text::{self, Share};

pub use quorum::QuorumOptions;
pub use resolve::{Case, Convention};

/// A scenario as it is written.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// Its title, at most a line, as a heading.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// What it shows and where it comes from, for readers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// The algorithm.
    #[serde(with = "text")]
    pub algorithm: Option<Algorithm>,
    /// `textbook` (default), `hardened` or a literal variant.
    #[serde(with = "text")]
    pub mode: Option<Mode>,
    /// `live` (default): the members are the live ones, without the crashed coordinator. `configured`: the highest
    /// member is the crashed coordinator.
    #[serde(with = "text")]
    pub convention: Option<Convention>,
    /// How many, or which: `8`, `"0..7"`, `[17, 24, 33]`.
    pub members: Option<MemberList>,
    /// Election attributes by member; without one, the id is the attribute.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attr: BTreeMap<String, i64>,
    /// The clockwise order: `ascending` (default), `descending`, `random` or the ids.
    pub ring: Option<RingOrder>,
    /// The members that are dead from the beginning.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dead: Vec<u32>,
    /// Whether the members do not know which members are dead, and contact those too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub contact_dead: bool,
    /// The live member that leads at the beginning. For mutual exclusion, the coordinator, or the member that has the
    /// token at the beginning.
    pub leader: Option<u32>,
    /// The members that detect the failure of the coordinator, and when: `"all"`, `"none"`, `[2, 5]`, `[{ member = 2,
    /// at = "1ms" }]`. By default the lowest live member does so at once, unless a member leads.
    pub initiators: Option<Initiators>,
    /// The members that ask to enter the critical section, or for another service of the algorithm, and when; written
    /// like `initiators`. By default the lowest live member asks once.
    pub requests: Option<Initiators>,
    /// How long a member stays inside, written like `delay`; D by default.
    #[serde(with = "text")]
    pub hold: Option<DelayModel>,
    /// How often each of these members asks; once by default.
    pub repeat: Option<u32>,
    /// How long it waits before it asks again; by default it asks at once.
    #[serde(with = "text")]
    pub think: Option<DelayModel>,
    /// The voting sets of maekawa: `cyclic` (default), `grid`, `plane` or `majority`.
    #[serde(with = "text")]
    pub sets: Option<Sets>,
    /// The tree of raymond: `star` (default), `line`, `binary`, or its edges: `"1-2,1-3,3-4"`.
    #[serde(with = "text")]
    pub tree: Option<Tree>,
    /// The number of members that vote in `voting`, the highest ones; all by default.
    pub voters: Option<u32>,
    /// How many votes let a member in; a majority of the voters by default.
    pub votes: Option<u32>,
    /// Whether a member asks all voters, and not only as many as the votes that it needs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ask_all: bool,
    /// How long it waits after too few votes, written like `delay`; by default from D/2 to 4 D.
    #[serde(with = "text")]
    pub back_off: Option<DelayModel>,
    /// How long a grant of the lock service lasts; as long as three vote leases by default.
    #[serde(with = "text")]
    pub grant: Option<Span>,
    /// The members to which a bully announces itself: `lower` (default) or `all`.
    pub announce: Option<String>,
    /// The seed of everything random; 1 by default.
    pub seed: Option<u64>,
    /// When the run ends at the latest.
    #[serde(with = "text")]
    pub until: Option<Span>,
    /// After how many election messages it ends at the latest.
    pub message_limit: Option<u64>,
    /// `1ms` (default), `uniform:1ms..2ms` or `exp:1ms`.
    #[serde(with = "text")]
    pub delay: Option<DelayModel>,
    /// How long a member takes to reply, at most.
    #[serde(with = "text")]
    pub processing: Option<Span>,
    /// `D`, the bound on delays that the members' time-outs are made from; by default the longest delay (for `exp` ten
    /// times the mean, and seven times as long if lost messages are retransmitted).
    #[serde(with = "text")]
    pub bound: Option<Span>,
    /// How many messages are lost: `5%` or `0.05`.
    pub loss: Option<Share>,
    /// How many messages arrive twice.
    pub duplicate: Option<Share>,
    /// Whether links keep the order of messages; by default where the algorithm needs it.
    pub fifo: Option<bool>,
    /// Which kinds of messages are handled first when they arrive at the same instant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// `W`, a modified bully's collection window.
    #[serde(with = "text")]
    pub window: Option<Span>,
    /// `h`, a hardened leader's heartbeat.
    #[serde(with = "text")]
    pub heartbeat: Option<Span>,
    /// How long a hardened member tolerates a lower leader.
    #[serde(with = "text")]
    pub preempt: Option<Span>,
    /// The period of the heartbeat failure detector; off without it.
    #[serde(with = "text")]
    pub detector: Option<Span>,
    /// Whether messages go over the reliable link.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reliable: bool,
    /// Whether sessions distinguish the processes of a member, as in real nodes; faults that only sessions tolerate imply
    /// it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sessions: bool,
    /// Single messages that are lost.
    #[serde(with = "text::list", skip_serializing_if = "Vec::is_empty")]
    pub drop: Vec<MessageName>,
    /// Single messages that arrive later.
    #[serde(with = "text::list", skip_serializing_if = "Vec::is_empty")]
    pub late: Vec<Late>,
    /// Single messages that arrive twice.
    #[serde(with = "text::list", skip_serializing_if = "Vec::is_empty")]
    pub twice: Vec<Twice>,
    /// The settings of a quorum's members.
    pub quorum: Option<QuorumOptions>,
    /// Overrides for some links or kinds of messages: the first that matches decides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub link: Vec<LinkOverride>,
    /// The fault schedule.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fault: Vec<Fault>,
    /// Random faults.
    pub chaos: Option<Chaos>,
    /// The expected result.
    pub expect: Option<Expect>,
}

/// How many members, or which.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "`members` is a number such as 5, a range such as \"0..7\" or a list of ids"
)]
pub enum MemberList {
    /// `1..=n`.
    Count(u64),
    /// `"0..7"`, both ends included.
    Range(String),
    /// The ids.
    Listed(Vec<u32>),
}

impl FromStr for MemberList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains("..") {
            return Ok(Self::Range(text.to_owned()));
        }
        if text.contains(',') {
            return parse::ids(text).map(Self::Listed);
        }
        text.trim().parse().map(Self::Count).map_err(|_| {
            format!("`{text}` is neither a number, a range such as 0..7 nor a list of ids")
        })
    }
}

/// The clockwise order of the ring.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(
    rename_all = "lowercase",
    expecting = "`ring` is ascending, descending, random or a list of ids"
)]
pub enum RingOrder {
    /// By ascending ids.
    #[default]
    Ascending,
    /// By descending ids.
    Descending,
    /// Drawn from the random seed.
    Random,
    /// These ids.
    #[serde(untagged)]
    Listed(Vec<u32>),
}

impl RingOrder {
    /// Its name; `listed` if it names the ids.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ascending => "ascending",
            Self::Descending => "descending",
            Self::Random => "random",
            Self::Listed(_) => "listed",
        }
    }
}

impl FromStr for RingOrder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "ascending" => Ok(Self::Ascending),
            "descending" => Ok(Self::Descending),
            "random" => Ok(Self::Random),
            ids if ids.contains(|c: char| c.is_ascii_digit()) => parse::ids(ids).map(Self::Listed),
            _ => Err(format!("`{text}`; use ascending, descending, random or the ids clockwise")),
        }
    }
}

/// The members that detect the failure of the coordinator.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(
    rename_all = "lowercase",
    expecting = "`initiators` is all, none or a list such as [2, 5] or [{ member = 2, at = \"1ms\" }]"
)]
pub enum Initiators {
    /// Every live member, at once.
    All,
    /// No member.
    None,
    /// Some of them.
    #[serde(untagged)]
    Listed(Vec<Initiator>),
}

impl FromStr for Initiators {
    type Err = String;

    /// Reads `all`, `none` and `2,5@1.5ms`.
    fn from_str(text: &str) -> Result<Self, String> {
        let one = |text: &str| match text.split_once('@') {
            None => parse::id(text).map(Initiator::AtOnce),
            Some((id, at)) => Ok(Initiator::At { member: parse::id(id)?, at: at.parse()? }),
        };
        match text {
            "all" => Ok(Self::All),
            "none" => Ok(Self::None),
            ids if ids.contains(|c: char| c.is_ascii_digit()) => {
                ids.split(',').map(one).collect::<Result<_, _>>().map(Self::Listed)
            }
            _ => Err(format!("`{text}`; use all, none or a list of members")),
        }
    }
}

/// One member that detects it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Initiator {
    /// At once.
    AtOnce(u32),
    /// At a time.
    At {
        /// Who.
        member: u32,
        /// When.
        #[serde(with = "text::required")]
        at: Span,
    },
}

impl Initiator {
    /// The member.
    pub fn member(&self) -> u32 {
        match *self {
            Self::AtOnce(member) | Self::At { member, .. } => member,
        }
    }

    /// When.
    pub fn at(&self) -> Span {
        match *self {
            Self::AtOnce(_) => Span::ZERO,
            Self::At { at, .. } => at,
        }
    }
}

/// The expected result of a run. A field that is absent is not checked.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// The leader on which all live members agree.
    pub leader: Option<u32>,
    /// Whether all live members follow the same live member.
    pub agreed: Option<bool>,
    /// The leader that each of these members follows; `0` does not mean "no leader", so leave such members out and use
    /// `leaderless`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub follows: BTreeMap<String, u32>,
    /// These members know no leader.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leaderless: Vec<u32>,
    /// Election messages, those to the dead included.
    pub messages: Option<u64>,
    /// At least so many election messages.
    pub messages_at_least: Option<u64>,
    /// Election messages by kind.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_kind: BTreeMap<String, u64>,
    /// Election messages that found their receiver dead.
    pub to_dead: Option<u64>,
    /// The longest chain of messages.
    pub stages: Option<u32>,
    /// From the first election to the last receipt.
    #[serde(with = "text")]
    pub turnaround: Option<Span>,
    /// From the first election until every member knows the leader.
    #[serde(with = "text")]
    pub informed: Option<Span>,
    /// Elections called.
    pub elections: Option<u64>,
    /// At least so many elections called.
    pub elections_at_least: Option<u64>,
    /// How often the leader changed.
    pub leader_changes: Option<u32>,
    /// Whether two members led at once at any time.
    pub two_leaders: Option<bool>,
    /// What the snapshot says that each of these members held.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub recorded: BTreeMap<String, u64>,
    /// What the snapshot says that these channels carried; they are named as `"2>1"`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub under_way: BTreeMap<String, u64>,
    /// What the snapshot says that members held and channels carried together.
    pub total: Option<u64>,
    /// Markers sent.
    pub markers: Option<u64>,
    /// Whether the snapshot is complete and consistent.
    pub consistent: Option<bool>,
    /// What each of these members has delivered, in order: `{ 1 = ["3.1", "2.1"] }`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub delivered: BTreeMap<String, Vec<String>>,
    /// What a member that is down has delivered, and no live member has.
    pub lost: Option<Vec<String>>,
    /// How often the program of a member had to take over the state of the others.
    pub resets: Option<u32>,
    /// These members are down at the end, and no others are.
    pub down: Option<Vec<u32>>,
    /// How many old processes of members run at the end.
    pub old_processes: Option<u32>,
    /// How often a member entered the critical section.
    pub entries: Option<u64>,
    /// Whether two members were inside at once at any time.
    pub two_inside: Option<bool>,
    /// Whether requests entered in the order in which they happened, where members tell each other something.
    pub in_order: Option<bool>,
    /// How many writes of earlier holders the resource refused, by their fences.
    pub refused_writes: Option<u32>,
    /// How many stays ended because the grant was over, before the program left.
    pub lost_grants: Option<u32>,
    /// These members wait at the end, and no others do.
    pub waiting: Option<Vec<u32>>,
    /// The members in the order in which they entered.
    pub order: Option<Vec<u32>>,
    /// The longest time from a request to its entry.
    #[serde(with = "text")]
    pub longest_wait: Option<Span>,
    /// Whether the run became quiet.
    pub quiet: Option<bool>,
    /// Whether the closed form of this case gives the messages counted.
    pub formula_matches: Option<bool>,
}

/// Why a scenario is rejected. Nothing has run in this case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScenarioError {
    /// The key at fault, as in the file.
    pub key: String,
    /// What is wrong with it and how to correct it.
    pub problem: String,
}

impl ScenarioError {
    /// `key` is wrong because of `problem`.
    pub fn new(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into() }
    }
}

impl fmt::Display for ScenarioError {
    /// `fault[1].crash` is the key `crash` of "fault 2", because people count from 1. The text of the problem says which
    /// item of a list of values is wrong.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut key = self.key.as_str();
        while let Some((name, rest)) = key.split_once('[') {
            let (index, rest) = rest.split_once(']').unwrap_or((rest, ""));
            f.write_str(name)?;
            key = match (rest.strip_prefix('.'), index.parse::<usize>()) {
                (Some(rest), Ok(index)) => {
                    write!(f, " {}, ", index + 1)?;
                    rest
                }
                _ => "",
            };
        }
        write!(f, "{key}: {}", self.problem)
    }
}

impl std::error::Error for ScenarioError {}

impl ScenarioError {
    /// The flag of `doyen sim` that sets the key at fault.
    pub fn flag(&self) -> String {
        let key = match self.key.split_once('[') {
            Some((list, rest)) => rest.split_once('.').map_or(list, |(_, key)| key),
            None => self.key.as_str(),
        };
        let flag = match key {
            "for" => "pause",
            "rate" | "skew" => "clock",
            key if key.starts_with("chaos.") => "chaos",
            key => key,
        };
        flag.replace('_', "-")
    }

    /// The error as one of the file called `name` with this `text`, with the line if the key is in it.
    pub fn in_file(&self, name: &str, text: &str) -> String {
        document::located(name, text, self)
    }

    /// Whether the key is wrong because it is missing.
    pub(crate) fn is_missing(&self) -> bool {
        self.problem.starts_with("is missing")
    }
}

impl Scenario {
    /// Removes all faults; returns whether there were any.
    pub fn drop_faults(&mut self) -> bool {
        let calm = Self {
            link: Vec::new(),
            fault: Vec::new(),
            chaos: None,
            drop: Vec::new(),
            late: Vec::new(),
            twice: Vec::new(),
            ..self.clone()
        };
        let had_faults = calm != *self;
        *self = calm;
        had_faults
    }

    /// Reads a scenario from TOML as it is written. `name` is what errors call the text; they name the line as well.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        document::read(name, text).map_err(|mistakes| mistakes_or_plan(name, text, mistakes))
    }

    /// The same, and checks it, with what it expects.
    pub fn read(name: &str, text: &str) -> Result<(Self, Case), String> {
        let check = |scenario: Self| {
            let case = scenario.resolve()?;
            expect::check(&case)?;
            Ok((scenario, case))
        };
        document::read_checked(name, text, check)
            .map_err(|mistakes| mistakes_or_plan(name, text, mistakes))
    }

    /// Reads a scenario that is a part of another document.
    pub fn from_value(value: Spanned<DeValue<'_>>) -> Result<Self, toml::de::Error> {
        Self::deserialize(ValueDeserializer::from(value))
    }

    /// Reads a scenario from a table that a program has made.
    pub fn from_table(table: &toml::Table) -> Result<Self, toml::de::Error> {
        toml::from_str(&table.to_string())
    }

    /// The scenario as TOML.
    pub fn to_toml(&self) -> String {
        self.to_table().to_string()
    }

    /// The scenario as a table in TOML. All code that writes or reads a scenario uses a function of this file, so that
    /// serde's code for this many keys is compiled only once.
    pub fn to_table(&self) -> toml::Table {
        toml::Table::try_from(self).expect("a scenario can always be written")
    }

    /// Reads a scenario from TOML and checks it.
    pub fn from_toml(name: &str, text: &str) -> Result<Case, String> {
        Self::read(name, text).map(|(_, case)| case)
    }
}

fn mistakes_or_plan(name: &str, text: &str, mistakes: String) -> String {
    match text.lines().any(|line| line.trim() == "[[sweep]]") {
        true => {
            format!("{name}: this is a plan, not a scenario; `doyen compare --plan {name}` runs it")
        }
        false => mistakes,
    }
}
