//! A scenario: one run, as a person writes it down in TOML or on the command line.
//!
//! [`Scenario`] is the text as it stands, checked for unknown keys only. [`Scenario::resolve`] turns it into a
//! [`Case`], in which every name is a member, every time a number and nothing contradicts anything: parse once, then
//! trust. The command line fills in the same struct from its flags, so there is one set of rules and one set of
//! errors.

mod parse;
mod quorum;
mod resolve;
mod trouble;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use quorum::{PaceEntry, QuorumEntry};
pub use resolve::{Case, Convention};

/// A scenario as it is written.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// What it shows and where it comes from, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// The algorithm's name.
    pub algorithm: String,
    /// `textbook` (default), `hardened` or a literal variant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// `live` (default): the members are the live ones; the crashed coordinator stands outside. `configured`: the
    /// highest member is the crashed coordinator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub convention: Option<String>,
    /// How many, or which: `8`, `"0..7"`, `[17, 24, 33]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<MemberList>,
    /// Election attributes by member; without one, the id is the attribute.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attr: BTreeMap<String, i64>,
    /// The clockwise order: `ascending` (default), `descending`, `random` or the ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ring: Option<RingOrder>,
    /// Who is dead from the beginning.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dead: Vec<u32>,
    /// Whether the members do not know who is dead, and contact them in vain.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub contact_dead: bool,
    /// Who leads at the beginning, alive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<u32>,
    /// Who notices that the coordinator is gone, and when: `"all"`, `"none"`, `[2, 5]`, `[{ member = 2, at = "1ms" }]`.
    /// By default the lowest live member does at once, unless somebody leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initiators: Option<Initiators>,
    /// To whom a bully announces itself: `lower` (default) or `all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub announce: Option<String>,
    /// The seed of everything random; 1 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// When the run ends at the latest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// After how many election messages it ends at the latest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_limit: Option<u64>,
    /// `1ms` (default), `uniform:1ms..2ms` or `exp:1ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<String>,
    /// How long a member takes to reply, at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processing: Option<String>,
    /// `D`, the bound on delays that the members' time-outs are made from; by default the longest delay (for `exp` ten
    /// times the mean, and seven times as long if lost messages are retransmitted).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<String>,
    /// How many messages are lost: `5%` or `0.05`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Share>,
    /// How many messages arrive twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<Share>,
    /// Whether links keep the order of messages; by default where the algorithm needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fifo: Option<bool>,
    /// Which kinds of messages are handled first when they arrive at the same instant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// `W`, a modified bully's collection window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// `h`, a hardened leader's heartbeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<String>,
    /// How long a hardened member bears a lower leader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preempt: Option<String>,
    /// The period of the heartbeat failure detector; off without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detector: Option<String>,
    /// Whether messages go over the reliable link.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reliable: bool,
    /// Whether processes of a member are told apart by sessions, as real nodes do it; what only sessions bear implies it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sessions: bool,
    /// What a quorum's members are set to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quorum: Option<QuorumEntry>,
    /// Exceptions for some links or kinds of messages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub link: Vec<LinkException>,
    /// What goes wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fault: Vec<FaultEntry>,
    /// What goes wrong at random.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chaos: Option<ChaosEntry>,
    /// What must come out.
    #[serde(skip_serializing_if = "Option::is_none")]
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

/// The clockwise order of the ring.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged, expecting = "`ring` is ascending, descending, random or a list of ids")]
pub enum RingOrder {
    /// `ascending`, `descending` or `random`.
    Named(String),
    /// The ids.
    Listed(Vec<u32>),
}

/// Who notices that the coordinator is gone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "`initiators` is all, none or a list such as [2, 5] or [{ member = 2, at = \"1ms\" }]"
)]
pub enum Initiators {
    /// `all` or `none`.
    Named(String),
    /// Some of them.
    Listed(Vec<Initiator>),
}

/// One that notices.
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
        at: String,
    },
}

/// A share of something: `5%` or `0.05`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged, expecting = "a share is written \"5%\" or 0.05")]
pub enum Share {
    /// A fraction.
    Fraction(f64),
    /// A percentage, or a fraction as text.
    Text(String),
}

/// An exception for some links or kinds of messages: the first that fits decides.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkException {
    /// Only messages from this member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u32>,
    /// Only messages to this member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<u32>,
    /// Only messages of this kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// How long they take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<String>,
    /// How many are lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Share>,
    /// Only such a share of these messages, at random; all of them without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
}

/// One thing that goes wrong, or that an operator wants: exactly one of `crash`, `restart`, `replace`, `clone`, `copy`,
/// `pause`, `clock`, `cut`, `mend`, `partition`, `weather`, `heal`, `campaign` and `order`, and one of `at` and `when`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultEntry {
    /// At which time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// After which message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<After>,
    /// This member crashes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crash: Option<u32>,
    /// With `crash`: its control part still forwards (003).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub forwards: bool,
    /// This member comes up again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart: Option<u32>,
    /// With `restart`: whether it still has its disk, which it does by default; `"copy"` for the copy that was made
    /// last, `"lost-unless-another"` for one that is lost unless another member is rejoining, `"new"` for an empty one
    /// of which nobody says that it was lost. With `replace`: `"lost-unless-another"`, if another member that is
    /// rejoining is to keep it from happening.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskEntry>,
    /// With `restart`, `replace` and `clone`: `"new"` for another address than before, to which the configured name of
    /// the member leads from now on; `"unnamed"` if the name leads to where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// A second process of this member starts elsewhere, without a disk; the first runs on as an old process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replace: Option<u32>,
    /// A second process of this member starts elsewhere from a copy of its disk as it is now; the first runs on as an
    /// old process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clone: Option<u32>,
    /// With `replace` and `clone`: for how long the old process hangs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hung: Option<String>,
    /// With `restart`: with which pace it comes up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace: Option<PaceEntry>,
    /// A copy of this member's disk is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy: Option<u32>,
    /// This member does nothing for a while.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<u32>,
    /// With `pause`, and with the orders drain and prefer: for how long.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasting: Option<String>,
    /// This member's clock changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<u32>,
    /// With `clock`: its new rate; 1.0 is right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// With `clock`: by how much it jumps ahead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skew: Option<String>,
    /// Nothing gets from the first to the second any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<[u32; 2]>,
    /// That is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mend: Option<[u32; 2]>,
    /// Only members of the same group hear each other; who is not named is in a group with the others not named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<Vec<Vec<u32>>>,
    /// With `partition`: the members whose old processes are in each group; the others are where their members are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub old: Vec<Vec<u32>>,
    /// Some messages take longer from now on, or are lost more often: an exception that comes before all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weather: Option<LinkException>,
    /// Every cut and partition is over, and so is bad weather.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub heal: bool,
    /// This member notices that the coordinator is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub campaign: Option<u32>,
    /// An operator's order, to a quorum: `resign`, `transfer`, `drain`, `undrain`, `prefer` or `attribute`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// With `order`: to which member it is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<u32>,
    /// With the orders transfer and prefer: to whom, or whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<u32>,
    /// With the order attribute: the new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<i64>,
    /// With the order attribute: values that take turns, instead of one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<i64>,
    /// With `values`: how often it changes; `for` says for how long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
}

/// The disk of a member that loses it unless another member is rejoining.
pub const LOST_UNLESS_ANOTHER: &str = "lost-unless-another";
/// The disk of a member that is restored from a copy.
pub const COPY: &str = "copy";
/// The disk of a member that is founded a second time.
pub const NEW: &str = "new";
/// An address to which the configured name does not lead.
pub const UNNAMED: &str = "unnamed";

/// What becomes of the disk of a member that restarts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "`disk` is true, false, \"copy\", \"new\" or \"lost-unless-another\""
)]
pub enum DiskEntry {
    /// Whether it is there.
    Kept(bool),
    /// `copy`, `new` or `lost-unless-another`.
    Named(String),
}

/// After a message: "when 3 has sent its second OK".
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct After {
    /// Whose message.
    pub member: u32,
    /// `sent` or `received`.
    pub has: String,
    /// Of which kind.
    pub kind: String,
    /// How many.
    #[serde(default = "one")]
    pub count: u32,
}

fn one() -> u32 {
    1
}

/// What goes wrong at random. Times are means, exponentially distributed.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChaosEntry {
    /// Between two crashes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crash_every: Option<String>,
    /// From a crash to the restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down_for: Option<String>,
    /// Between two pauses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_every: Option<String>,
    /// The length of a pause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_for: Option<String>,
    /// Between two one-way cuts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_every: Option<String>,
    /// From a cut to its mending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_for: Option<String>,
    /// When nothing new goes wrong any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// What must come out of a run. What is not said is not checked.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// The leader on which all live members agree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<u32>,
    /// Whether all live members follow the same live member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreed: Option<bool>,
    /// Whom each of these members follows; `0` cannot stand for nobody, so leave such members out and use `leaderless`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub follows: BTreeMap<String, u32>,
    /// These members know no leader.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leaderless: Vec<u32>,
    /// Election messages, those to the dead included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// At least so many election messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages_at_least: Option<u64>,
    /// Election messages by kind.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_kind: BTreeMap<String, u64>,
    /// Election messages that found their receiver dead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_dead: Option<u64>,
    /// The longest chain of messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stages: Option<u32>,
    /// From the first election to the last receipt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turnaround: Option<String>,
    /// From the first election until everybody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub informed: Option<String>,
    /// Elections called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elections: Option<u64>,
    /// At least so many elections called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elections_at_least: Option<u64>,
    /// How often the leader changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader_changes: Option<u32>,
    /// Whether two led at once at any time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub two_leaders: Option<bool>,
    /// These members are down at the end, and no others are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down: Option<Vec<u32>>,
    /// How many old processes of members run at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_processes: Option<u32>,
    /// Whether the run became quiet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet: Option<bool>,
    /// Whether the closed form of this case gives the messages counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formula_matches: Option<bool>,
}

/// Why a scenario is refused. Nothing has run then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScenarioError {
    /// The key at fault, as in the file.
    pub key: String,
    /// What is wrong with it and how to mend it.
    pub problem: String,
}

impl ScenarioError {
    /// `key` is wrong because of `problem`.
    pub fn new(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into() }
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.problem)
    }
}

impl std::error::Error for ScenarioError {}

impl ScenarioError {
    /// The error as one of the file called `name` with this `text`: with the line, if the key stands in it.
    pub fn in_file(&self, name: &str, text: &str) -> String {
        match line_of(text, &self.key) {
            Some(line) => format!("{name}:{line}: {self}"),
            None => format!("{name}: {self}"),
        }
    }
}

impl Scenario {
    /// Reads a scenario from TOML as it is written. `name` is what errors call the text; they name the line as well.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| toml_error(name, text, &error))
    }

    /// Reads a scenario from TOML and checks it.
    pub fn from_toml(name: &str, text: &str) -> Result<Case, String> {
        Self::parse(name, text)?.resolve().map_err(|error| error.in_file(name, text))
    }
}

/// `file:line: message`, on one line.
pub(crate) fn toml_error(name: &str, text: &str, error: &toml::de::Error) -> String {
    let before = error.span().map_or("", |span| &text[..span.start.min(text.len())]);
    let line = before.matches('\n').count() + 1;
    let message = error.message().replace('\n', " ");
    match text.lines().nth(line - 1).map(str::trim).filter(|source| !source.is_empty()) {
        Some(source) if error.span().is_some() => {
            format!("{name}:{line}: {message}, in `{source}`")
        }
        _ => format!("{name}:{line}: {message}"),
    }
}

/// The line on which a key is set: `loss`, or `fault[1].crash` for one in the second `[[fault]]`.
pub(crate) fn line_of(text: &str, key: &str) -> Option<usize> {
    let (table, key) = key.rsplit_once('.').map_or((None, key), |(table, key)| (Some(table), key));
    let mut start = 0;
    if let Some(table) = table {
        let (name, nth) = match table.split_once('[') {
            None => (table, 0),
            Some((name, index)) => (name, index.trim_end_matches(']').parse().ok()?),
        };
        let is_head = |line: &str| line.trim().trim_matches(['[', ']']) == name;
        start = (text.lines().enumerate().filter(|(_, line)| is_head(line))).nth(nth)?.0;
    }
    let sets = |line: &str| {
        line.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    let found = text.lines().enumerate().skip(start).find(|(_, line)| sets(line));
    found.map(|(line, _)| line + 1).or(table.map(|_| start + 1))
}
