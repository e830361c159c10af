//! One run of a sweep as one flat row: everything that went in, everything that came out.
//!
//! A row is what a CSV or JSON file of a sweep consists of; the names of its fields are stable. [`FIELDS`] names what
//! a report can draw and filter by.

use doyen_core::time::Span;
use serde::{Deserialize, Serialize};

use crate::account::Outcome;
use crate::formula::Formula;
use crate::network::DelayModel;
use crate::scenario::Case;
use crate::summary;
use crate::time::Time;

/// What must be said beside every count.
pub const CONVENTIONS: &str = "messages: election messages sent, those to dead members (to_dead) included; \
    link and detector traffic apart. convention live: the members are the live ones, the crashed coordinator stands \
    outside; configured: the highest member is the crashed coordinator. Times: virtual nanoseconds.";

/// A run. Times are virtual nanoseconds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The run's number in its plan, from 1.
    pub run: u64,
    /// The sweep it belongs to.
    pub sweep: String,
    /// The algorithm's name.
    pub algorithm: String,
    /// `textbook`, `hardened` or a literal variant.
    pub mode: String,
    /// Which members the counts are about: `live` or `configured`.
    pub convention: String,
    /// How many members are configured.
    pub members: u64,
    /// How many of them are alive at the beginning.
    pub live: u64,
    /// Whether the dead are contacted in vain.
    pub contact_dead: bool,
    /// The clockwise order: `ascending`, `descending`, `random` or `listed`.
    pub ring: String,
    /// How many members notice that the coordinator is gone.
    pub initiators: u64,
    /// r: the lowest of them is the r-th lowest live member.
    pub initiator: Option<u64>,
    /// How long a message takes.
    pub delay: String,
    /// D, which the members' time-outs are made from.
    pub bound: u64,
    /// p, how long a reply takes at most.
    pub processing: u64,
    /// W, a modified bully's window.
    pub window: u64,
    /// The probability that a message is lost.
    pub loss: f64,
    /// The probability that a message arrives twice.
    pub duplicate: f64,
    /// Whether messages go over the reliable link.
    pub reliable: bool,
    /// The period of the failure detector, if it is on.
    pub detector: Option<u64>,
    /// The name of what goes wrong; `none` if nothing does.
    pub faults: String,
    /// The seed of everything random.
    pub seed: u64,

    /// The leader on which all live members agree, if they do.
    pub leader: Option<u32>,
    /// Whether all live members follow the same live member.
    pub agreed: bool,
    /// Election messages, those to the dead included.
    pub messages: u64,
    /// The same by kind: `ELECTION=3 OK=3 COORDINATOR=2`.
    pub by_kind: String,
    /// Election messages that found their receiver dead.
    pub to_dead: u64,
    /// Election messages that the network lost.
    pub lost: u64,
    /// Acknowledgements and retransmissions.
    pub link_messages: u64,
    /// Heartbeats.
    pub detector_messages: u64,
    /// The bytes of all of them.
    pub bytes: u64,
    /// The longest chain of election messages.
    pub stages: u32,
    /// From the first election to the last receipt of an election message.
    pub turnaround: u64,
    /// From the first election until the last member knew its leader.
    pub informed: u64,
    /// How many members sent an election message.
    pub involved: u32,
    /// Elections called.
    pub elections: u64,
    /// How often the leader changed.
    pub leader_changes: u32,
    /// How long nobody led.
    pub no_leader: u64,
    /// How long more than one led.
    pub two_leaders: u64,
    /// `quiet`, `time limit` or `message limit`.
    pub ended: String,
    /// When it ended.
    pub end: u64,
    /// The closed form for this case, where there is one.
    pub formula: Option<String>,
    /// What it gives.
    pub formula_value: Option<u64>,
    /// Whether that is what was counted.
    pub formula_matches: Option<bool>,
    /// The run's fingerprint: the same on every machine.
    pub digest: String,
}

/// Where in its plan a run stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The run's number, from 1.
    pub run: u64,
    /// The sweep's name.
    pub sweep: String,
    /// The name of what goes wrong.
    pub faults: String,
}

impl Row {
    /// The row of a run.
    pub fn new(place: Place, case: &Case, outcome: &Outcome, formula: Option<&Formula>) -> Self {
        let (messages, timing) = (&outcome.messages, &case.config.timing);
        let by_kind = messages.by_kind.iter().map(|(kind, count)| format!("{kind}={count}"));
        Self {
            run: place.run,
            sweep: place.sweep,
            algorithm: case.algorithm.to_string(),
            mode: case.mode().to_string(),
            convention: case.convention.to_string(),
            members: case.members().len() as u64,
            live: (case.members().len() - case.dead.len()) as u64,
            contact_dead: case.contact_dead,
            ring: case.ring.name().to_owned(),
            initiators: case.initiators.len() as u64,
            initiator: lowest_initiator(case),
            delay: delay_name(case.network.delay),
            bound: timing.transmission.as_nanos(),
            processing: timing.processing.as_nanos(),
            window: timing.window.as_nanos(),
            loss: case.network.loss,
            duplicate: case.network.duplication,
            reliable: case.reliable,
            detector: case.detector.map(Span::as_nanos),
            faults: place.faults,
            seed: case.seed,
            leader: outcome.leader.map(|id| id.0),
            agreed: outcome.agreed,
            messages: messages.total,
            by_kind: by_kind.collect::<Vec<_>>().join(" "),
            to_dead: messages.to_dead,
            lost: messages.lost,
            link_messages: messages.link,
            detector_messages: messages.detector,
            bytes: messages.bytes,
            stages: outcome.stages,
            turnaround: outcome.turnaround.as_nanos(),
            informed: outcome.informed.as_nanos(),
            involved: outcome.involved,
            elections: outcome.elections,
            leader_changes: outcome.leader_changes,
            no_leader: outcome.no_leader.as_nanos(),
            two_leaders: outcome.two_leaders.as_nanos(),
            ended: summary::ended(outcome.ended).to_owned(),
            end: outcome.end.0,
            formula: formula.map(|formula| formula.name.clone()),
            formula_value: formula.map(|formula| formula.value),
            formula_matches: formula.map(|formula| formula.value == messages.total),
            digest: format!("{:016x}", outcome.digest),
        }
    }

    /// `time` in units of D; nothing, if D is zero.
    fn in_d(&self, time: u64) -> Option<f64> {
        (self.bound > 0).then(|| time as f64 / self.bound as f64)
    }
}

/// A delay as a row writes it: the same, however it was written in the plan.
pub(crate) fn delay_name(delay: DelayModel) -> String {
    match delay {
        DelayModel::Fixed(delay) => Time(delay).to_string(),
        DelayModel::Uniform { min, max } => format!("uniform:{}..{}", Time(min), Time(max)),
        DelayModel::Exponential { mean } => format!("exp:{}", Time(mean)),
    }
}

/// Which of the live members, counted from the lowest, is the lowest of those who notice.
fn lowest_initiator(case: &Case) -> Option<u64> {
    let members = case.members();
    let rank = case.initiators.iter().map(|(id, _)| members.rank(id)).min()?;
    let dead_below = case.dead.iter().filter(|&&id| members.rank(id) < rank).count();
    Some((rank - dead_below) as u64 + 1)
}

/// What a field's numbers are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Words: it has no numbers.
    Words,
    /// How many of something.
    Count,
    /// Nanoseconds.
    Time,
    /// Multiples of D.
    D,
    /// A share from 0 to 1.
    Share,
    /// Yes, which is 1, or no, which is 0.
    Flag,
}

/// Something about a run that a report can draw or filter by.
#[derive(Clone, Copy)]
pub struct Field {
    /// Its name in a plan.
    pub name: &'static str,
    /// Its name on an axis.
    pub title: &'static str,
    /// What its numbers are.
    pub unit: Unit,
    read: fn(&Row) -> Cell,
}

/// What a row has in a field.
#[derive(Clone, PartialEq, Debug)]
enum Cell {
    Words(String),
    Number(f64),
    Nothing,
}

impl Field {
    /// The field of this name.
    pub fn named(name: &str) -> Result<&'static Self, String> {
        FIELDS.iter().find(|field| field.name == name).ok_or_else(|| {
            let names: Vec<&str> = FIELDS.iter().map(|field| field.name).collect();
            format!("a run has no `{name}`; use one of {}", names.join(", "))
        })
    }

    /// What `row` has there as a number, if it has one.
    pub fn number(&self, row: &Row) -> Option<f64> {
        match (self.read)(row) {
            Cell::Number(number) => Some(number),
            Cell::Words(_) | Cell::Nothing => None,
        }
    }

    /// What `row` has there, for people.
    pub fn text(&self, row: &Row) -> String {
        match (self.read)(row) {
            Cell::Words(words) => words,
            Cell::Nothing => "none".to_owned(),
            Cell::Number(number) => self.unit.show(number),
        }
    }

    /// Reads a value to compare with: `10ms`, `5%`, `true`, `100`.
    pub(crate) fn parse(&self, text: &str) -> Result<f64, String> {
        let plain = || text.parse::<f64>().ok().filter(|number| number.is_finite());
        let wrong = |example: &str| {
            format!("`{text}` is no value for {}; write for example {example}", self.name)
        };
        match self.unit {
            Unit::Words => Err(format!("{} has no numbers to compare with", self.name)),
            Unit::Time => text.parse::<Span>().map(|span| span.as_nanos() as f64),
            Unit::Share => match text.strip_suffix('%').map(str::trim) {
                None => plain().ok_or_else(|| wrong("5%")),
                Some(number) => number.parse::<f64>().map(|n| n / 100.0).map_err(|_| wrong("5%")),
            },
            Unit::Flag => match text {
                "true" => Ok(1.0),
                "false" => Ok(0.0),
                _ => Err(wrong("true")),
            },
            Unit::Count | Unit::D => plain().ok_or_else(|| wrong("100")),
        }
    }
}

impl Unit {
    /// A number of this unit, for people.
    pub fn show(self, number: f64) -> String {
        match self {
            Self::Time => Span::from_nanos(number as u64).to_string(),
            Self::Share => format!("{}%", rounded(number * 100.0)),
            Self::Flag => (number != 0.0).to_string(),
            Self::D => format!("{}D", rounded(number)),
            Self::Words | Self::Count => rounded(number).to_string(),
        }
    }
}

/// Without the dust of binary fractions.
fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

impl PartialEq for Field {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl std::fmt::Debug for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

const fn words(name: &'static str, title: &'static str, read: fn(&Row) -> Cell) -> Field {
    Field { name, title, unit: Unit::Words, read }
}

const fn count(name: &'static str, title: &'static str, read: fn(&Row) -> Cell) -> Field {
    Field { name, title, unit: Unit::Count, read }
}

const fn time(name: &'static str, title: &'static str, read: fn(&Row) -> Cell) -> Field {
    Field { name, title, unit: Unit::Time, read }
}

const fn flag(name: &'static str, title: &'static str, read: fn(&Row) -> Cell) -> Field {
    Field { name, title, unit: Unit::Flag, read }
}

/// Everything that a report can draw or filter by.
pub const FIELDS: &[Field] = &[
    words("sweep", "sweep", |row| row.sweep.as_str().into()),
    words("algorithm", "algorithm", |row| row.algorithm.as_str().into()),
    words("mode", "mode", |row| row.mode.as_str().into()),
    words("convention", "convention", |row| row.convention.as_str().into()),
    words("ring", "order of the ring", |row| row.ring.as_str().into()),
    words("delay", "delay of a message", |row| row.delay.as_str().into()),
    words("faults", "faults", |row| row.faults.as_str().into()),
    words("ended", "how the run ended", |row| row.ended.as_str().into()),
    words("formula", "closed form", |row| row.formula.as_deref().unwrap_or("none").into()),
    count("members", "members", |row| row.members.into()),
    count("live", "live members", |row| row.live.into()),
    count("initiator", "number r of the detecting member", |row| row.initiator.into()),
    count("initiators", "members that detect at once", |row| row.initiators.into()),
    Field { name: "loss", title: "messages lost", unit: Unit::Share, read: |row| row.loss.into() },
    Field {
        name: "duplicate",
        title: "messages doubled",
        unit: Unit::Share,
        read: |row| row.duplicate.into(),
    },
    time("bound", "D", |row| row.bound.into()),
    time("processing", "processing time", |row| row.processing.into()),
    time("window", "window W", |row| row.window.into()),
    time("detector", "period of the failure detector", |row| row.detector.into()),
    flag("contact_dead", "the dead are contacted", |row| row.contact_dead.into()),
    flag("reliable", "over the reliable link", |row| row.reliable.into()),
    count("seed", "seed", |row| row.seed.into()),
    flag("agreed", "all agree", |row| row.agreed.into()),
    count("messages", "election messages", |row| row.messages.into()),
    count("formula_value", "messages by the closed form", |row| row.formula_value.into()),
    flag("formula_matches", "the closed form is right", |row| row.formula_matches.into()),
    count("to_dead", "messages to the dead", |row| row.to_dead.into()),
    count("lost", "messages lost", |row| row.lost.into()),
    count("link_messages", "link messages", |row| row.link_messages.into()),
    count("detector_messages", "heartbeats", |row| row.detector_messages.into()),
    count("bytes", "bytes sent", |row| row.bytes.into()),
    count("stages", "stages", |row| u64::from(row.stages).into()),
    time("turnaround", "turnaround", |row| row.turnaround.into()),
    Field {
        name: "turnaround_d",
        title: "turnaround in D",
        unit: Unit::D,
        read: |row| row.in_d(row.turnaround).into(),
    },
    time("informed", "time until all are informed", |row| row.informed.into()),
    Field {
        name: "informed_d",
        title: "time until all are informed, in D",
        unit: Unit::D,
        read: |row| row.in_d(row.informed).into(),
    },
    count("involved", "members that sent", |row| u64::from(row.involved).into()),
    count("elections", "elections called", |row| row.elections.into()),
    count("leader_changes", "changes of leader", |row| u64::from(row.leader_changes).into()),
    time("no_leader", "time without a leader", |row| row.no_leader.into()),
    time("two_leaders", "time with two leaders", |row| row.two_leaders.into()),
    time("end", "length of the run", |row| row.end.into()),
];

impl From<&str> for Cell {
    fn from(words: &str) -> Self {
        Self::Words(words.to_owned())
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        Self::Number(number as f64)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Cell {
    fn from(flag: bool) -> Self {
        Self::Number(f64::from(u8::from(flag)))
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Nothing, Into::into)
    }
}
