//! The trials of a statement: runs, and what the statement says about them.

use doyen_core::registry::Algorithm;
use doyen_core::time::Span;
use serde::Deserialize;
use toml::{Table, Value};

use super::{Evidence, same};
use crate::expression::{Variables, evaluate};
use crate::plan::axis::{Axis, text};
use doyen_sim::metrics::Outcome;
use doyen_sim::metrics::sections::Exclusion;
use doyen_sim::scenario::{Case, Scenario};

/// One name or several.
pub(super) type Names = Axis;

/// D in every trial.
const D: f64 = 1e6;

/// A trial as it is written: one for each of its algorithms and values of n and r.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    algorithm: Option<Names>,
    n: Option<Axis>,
    r: Option<Axis>,
    #[serde(default)]
    with: Table,
    less: Option<Table>,
    #[serde(default)]
    measure: Measure,
    #[serde(default)]
    since: u32,
    is: Option<Value>,
    at_most: Option<Value>,
    at_least: Option<Value>,
    about: Option<Value>,
    corrected: Option<Value>,
    #[serde(default)]
    outside: bool,
    #[serde(default)]
    note: String,
}

/// The prediction of a statement for one case, or for the difference between two.
pub(super) struct Trial {
    case: Case,
    less: Option<Case>,
    /// A description of the cases, for readers.
    description: String,
    measure: Measure,
    since: f64,
    relation: Relation,
    printed: f64,
    /// What the corrected statement says.
    pub(super) corrected: Option<f64>,
    /// The case does not meet the condition.
    pub(super) outside: bool,
}

/// What is measured.
#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Measure {
    #[default]
    Messages,
    /// Messages whose receiver is alive.
    ToLiving,
    Elections,
    Stages,
    /// From the first election to the last receipt, in D.
    Turnaround,
    /// From the first election until all members know the leader, in D.
    Informed,
    /// The leader; -1 if they do not agree.
    Leader,
    /// Messages for each entry into the critical section.
    PerEntry,
    /// The most messages that were sent while a member left.
    AtExit,
    /// The longest time from a request to its entry, in D.
    Wait,
    /// The longest time from an exit to the next entry of a member that was waiting, in D.
    SyncDelay,
    /// Messages of one kind.
    #[serde(untagged)]
    Kind(String),
}

/// The relation between the measured and the printed value.
#[derive(Clone, Copy, PartialEq)]
enum Relation {
    Is,
    AtMost,
    AtLeast,
    /// Half of it to twice as much.
    About,
}

impl Entry {
    pub(super) fn trials(&self, of_claim: Option<&Names>) -> Vec<Trial> {
        let algorithms = self.algorithm.as_ref().or(of_claim).map(Axis::texts).unwrap_or_default();
        let sizes = self.n.as_ref().map_or_else(|| vec![0], sizes);
        let mut trials = Vec::new();
        for algorithm in &algorithms {
            for &n in &sizes {
                for r in ranks(self.r.as_ref(), n) {
                    trials.push(self.trial(algorithm, n, r));
                }
            }
        }
        trials
    }

    fn trial(&self, algorithm: &str, n: u32, r: Option<u32>) -> Trial {
        let table = scenario(algorithm, n, r, &self.with);
        let case = resolve(&table);
        let mut description = describe(&table);
        let less = self.less.as_ref().map(|less| {
            let mut second = table.clone();
            second.extend(less.clone());
            description = format!("{description}; less {}", describe(&second));
            resolve(&second)
        });
        if !self.note.is_empty() {
            description = format!("{description}: {}", self.note);
        }
        let variables = variables(n, &case);
        let value = |value: &Value| evaluated(&text(value), &variables);
        let (relation, printed) = [
            (Relation::Is, &self.is),
            (Relation::AtMost, &self.at_most),
            (Relation::AtLeast, &self.at_least),
            (Relation::About, &self.about),
        ]
        .into_iter()
        .find_map(|(relation, printed)| Some((relation, value(printed.as_ref()?))))
        .expect("a trial of the embedded table says what must come out");
        Trial {
            case,
            less,
            description,
            measure: self.measure.clone(),
            since: f64::from(self.since),
            relation,
            printed,
            corrected: self.corrected.as_ref().map(value),
            outside: self.outside,
        }
    }
}

/// The values of `n`.
pub(super) fn sizes(axis: &Axis) -> Vec<u32> {
    axis.values().iter().filter_map(Value::as_integer).map(|n| n as u32).collect()
}

/// The values of `r` for a group of `n`, each once; none is the default of a scenario.
pub(super) fn ranks(axis: Option<&Axis>, n: u32) -> Vec<Option<u32>> {
    let Some(axis) = axis else { return vec![None] };
    if axis.texts() == ["all"] {
        return (1..=n).map(Some).collect();
    }
    let variables = Variables { n: f64::from(n), ..Variables::default() };
    let mut ranks = Vec::new();
    for text in axis.texts() {
        let rank = Some(evaluated(&text, &variables) as u32);
        if !ranks.contains(&rank) {
            ranks.push(rank);
        }
    }
    ranks
}

/// What the letters of a formula stand for: n as the statement counts the members, and the initiators of the case.
pub(super) fn variables(n: u32, case: &Case) -> Variables {
    Variables {
        n: f64::from(n),
        configured: f64::from(n),
        voting_set: voting_set(case),
        ranks: case.initiators.iter().map(|(id, _)| f64::from(id.0)).collect(),
        ..Variables::default()
    }
}

/// How many members the voting set of the first member has.
fn voting_set(case: &Case) -> f64 {
    if case.algorithm != Algorithm::Maekawa {
        return f64::NAN;
    }
    let members = case.members();
    case.config.exclusion.sets.of(members.at(0), members).len() as f64
}

pub(super) fn evaluated(formula: &str, variables: &Variables) -> f64 {
    evaluate(formula, variables).unwrap_or_else(|error| panic!("in the embedded table: {error}"))
}

/// A scenario as a table, with formulas replaced by their values.
pub(super) fn scenario(algorithm: &str, n: u32, r: Option<u32>, with: &Table) -> Table {
    let integer = |number: u32| Value::Integer(i64::from(number));
    let mut table = Table::new();
    table.insert("algorithm".to_owned(), algorithm.into());
    if n > 0 {
        table.insert("members".to_owned(), integer(n));
    }
    table.extend(r.map(|r| ("initiators".to_owned(), Value::Array(vec![integer(r)]))));
    table.extend(with.clone());
    let variables = Variables { n: f64::from(n), ..Variables::default() };
    table.iter_mut().for_each(|(_, value)| fill_in(value, &variables));
    table
}

/// Replaces `{n-0.5}` in texts; a text that is nothing else becomes a number.
fn fill_in(value: &mut Value, variables: &Variables) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| fill_in(value, variables)),
        Value::Table(table) => table.iter_mut().for_each(|(_, value)| fill_in(value, variables)),
        Value::String(text) => {
            let Some((before, rest)) = text.split_once('{') else { return };
            let Some((formula, after)) = rest.split_once('}') else { return };
            let number = evaluated(formula, variables);
            *value = match before.is_empty() && after.is_empty() {
                true => Value::Integer(number as i64),
                false => Value::String(format!("{before}{number}{after}")),
            };
        }
        _ => {}
    }
}

pub(super) fn resolve(table: &Table) -> Case {
    let scenario = Scenario::from_table(table);
    let scenario = scenario.unwrap_or_else(|error| panic!("{table}: {error}"));
    scenario.resolve().unwrap_or_else(|error| panic!("{table}: {error}"))
}

/// `bully eager, n=6, initiators 1 6`; N counts the crashed coordinator.
fn describe(table: &Table) -> String {
    let mut description = text(&table["algorithm"]);
    if let Some(mode) = table.get("mode") {
        description = format!("{description} {}", text(mode));
    }
    match table.get("members") {
        Some(Value::Integer(n)) if table.contains_key("convention") => {
            description = format!("{description}, N={n}");
        }
        Some(Value::Integer(n)) => description = format!("{description}, n={n}"),
        Some(other) => description = format!("{description}, {}", in_words("members", other)),
        None => {}
    }
    for (key, value) in table {
        if !["algorithm", "mode", "members", "convention"].contains(&key.as_str()) {
            description = format!("{description}, {}", in_words(key, value));
        }
    }
    description
}

fn in_words(key: &str, value: &Value) -> String {
    let words = |value: &Value| match value {
        Value::Table(table) => {
            let parts: Vec<String> =
                table.iter().map(|(key, value)| in_words(key, value)).collect();
            format!("({})", parts.join(", "))
        }
        other => text(other),
    };
    match value {
        Value::Boolean(true) => key.to_owned(),
        Value::Array(values) => {
            format!("{key} {}", values.iter().map(words).collect::<Vec<_>>().join(" "))
        }
        other => format!("{key} {}", words(other)),
    }
}

impl Trial {
    pub(super) fn cases(&self) -> impl Iterator<Item = &Case> {
        std::iter::once(&self.case).chain(&self.less)
    }

    /// The result of the runs of this trial.
    pub(super) fn value(&self, outcomes: &mut impl Iterator<Item = Outcome>) -> f64 {
        let mut next = || outcomes.next().map_or(f64::NAN, |outcome| self.measure.of(&outcome));
        let value = next() - self.since;
        if self.less.is_some() { value - next() } else { value }
    }

    pub(super) fn admits(&self, value: f64) -> bool {
        let printed = self.printed;
        match self.relation {
            Relation::Is => same(value, printed),
            Relation::AtMost => value <= printed,
            Relation::AtLeast => value >= printed,
            Relation::About => (printed / 2.0..=printed * 2.0).contains(&value),
        }
    }

    pub(super) fn evidence(&self, value: f64) -> Evidence {
        let relation = match self.relation {
            Relation::Is => "",
            Relation::AtMost => "at most ",
            Relation::AtLeast => "at least ",
            Relation::About => "about ",
        };
        Evidence {
            case: self.description.clone(),
            printed: format!("{relation}{}", self.measure.text(self.printed)),
            measured: self.measure.text(value),
            agrees: self.admits(value),
            meets_condition: !self.outside,
        }
    }
}

impl Measure {
    fn of(&self, outcome: &Outcome) -> f64 {
        let in_d = |span: Span| span.as_nanos() as f64 / D;
        let (messages, run) = (&outcome.messages, outcome.exclusion.as_ref());
        match self {
            Self::Messages => messages.total as f64,
            Self::ToLiving => (messages.total - messages.to_dead) as f64,
            Self::Kind(name) => {
                let of_kind = messages.by_kind.iter().filter(|(kind, _)| kind == name);
                of_kind.map(|&(_, count)| count as f64).sum()
            }
            Self::Elections => outcome.elections as f64,
            Self::Stages => f64::from(outcome.stages),
            Self::Turnaround => in_d(outcome.turnaround),
            Self::Informed => outcome.informed.map_or(f64::NAN, in_d),
            Self::PerEntry => {
                let entries = run.map_or(0, |run| run.entries.len());
                messages.total as f64 / entries as f64
            }
            Self::AtExit => {
                run.and_then(|run| run.at_exit.iter().max()).map_or(f64::NAN, |&most| most as f64)
            }
            Self::Wait => run.and_then(Exclusion::wait).map_or(f64::NAN, |it| in_d(it.max)),
            Self::SyncDelay => {
                run.and_then(Exclusion::sync_delay).map_or(f64::NAN, |it| in_d(it.max))
            }
            Self::Leader => {
                outcome.leader.filter(|_| outcome.agreed).map_or(-1.0, |id| f64::from(id.0))
            }
        }
    }

    /// A value in words, with four decimals at most.
    fn text(&self, value: f64) -> String {
        let plural = if value == 1.0 { "" } else { "s" };
        let value = (value * 1e4).round() / 1e4;
        match self {
            Self::Messages => format!("{value} message{plural}"),
            Self::ToLiving => format!("{value} message{plural} to the living"),
            Self::Kind(kind) => format!("{value} {kind}"),
            Self::Elections => format!("{value} election{plural}"),
            Self::Stages => format!("{value} stage{plural}"),
            Self::Turnaround | Self::Informed | Self::Wait | Self::SyncDelay => {
                format!("{value} D")
            }
            Self::PerEntry => format!("{value} message{plural} per entry"),
            Self::AtExit => format!("{value} message{plural} at exit"),
            Self::Leader if value < 0.0 => "no agreement".to_owned(),
            Self::Leader => format!("{value} leads"),
        }
    }
}
