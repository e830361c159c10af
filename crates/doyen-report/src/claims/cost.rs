//! Every algorithm's best, worst and average case.

use doyen_core::registry::Algorithm;
use doyen_core::time::Span;
use serde::{Deserialize, Serialize};
use toml::Value;

use super::trial::{evaluated, ranks, resolve, scenario, sizes, variables};
use super::{Literature, measure, same};
use crate::plan::axis::Axis;
use doyen_sim::metrics::Outcome;
use doyen_sim::scenario::{Case, Convention};

/// The costs of one algorithm.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Table {
    /// The algorithm's name.
    pub algorithm: &'static str,
    /// One row a case and size.
    pub rows: Vec<Row>,
}

/// Theory and measurement of one case at one size.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// `best`, `worst`, `average` or another word.
    pub case: String,
    /// What makes it that case.
    pub about: String,
    /// `textbook`, `hardened` or a literal variant.
    pub mode: String,
    /// Which members n counts.
    pub convention: Convention,
    /// Whether crashed members are contacted, because no member knows that they crashed.
    pub contact_dead: bool,
    /// The number of members that the convention counts.
    pub n: u32,
    /// How many messages it takes, in terms of n.
    pub formula: String,
    /// The value of the formula.
    pub expected: f64,
    /// The messages counted; their mean, if it is an average.
    pub messages: f64,
    /// Whether the two are the same; for a sample, whether they are within five percent of each other.
    pub matches: bool,
    /// How many runs were made.
    pub runs: usize,
    /// Whether these are all runs that the case consists of.
    pub exhaustive: bool,
    /// The longest chain of messages, each sent because of the one before; the mean, if it is an average.
    pub stages: f64,
    /// From the first election to the last receipt in units of D; the mean, if it is an average.
    pub turnaround_d: f64,
    /// From the first election until all members know the leader, in units of D; the mean, if it is an average.
    pub informed_d: f64,
}

impl Row {
    /// Whether two rows differ in their size alone.
    pub fn is_same_case(&self, other: &Self) -> bool {
        let case = |row: &Self| (row.convention, row.contact_dead);
        let texts =
            |row: &Self| [&row.case, &row.about, &row.mode, &row.formula].map(String::clone);
        case(self) == case(other) && texts(self) == texts(other)
    }
}

/// A case of an algorithm as it is written.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    case: String,
    about: String,
    formula: String,
    n: Option<Axis>,
    hardened: Option<Axis>,
    r: Option<Axis>,
    #[serde(default)]
    with: toml::Table,
    #[serde(default)]
    rings: bool,
    seeds: Option<u32>,
}

/// The costs of every algorithm.
pub fn tables() -> Vec<Table> {
    let mut written = Literature::read().cost;
    let lines: Vec<(&str, Vec<Line>)> = (Algorithm::OF_SOURCES.iter())
        .map(|algorithm| {
            let entries = written.remove(algorithm.name()).unwrap_or_default();
            (algorithm.name(), entries.iter().flat_map(|e| e.lines(algorithm.name())).collect())
        })
        .collect();
    let all = lines.iter().flat_map(|(_, lines)| lines).flat_map(|line| &line.cases);
    let cases: Vec<Case> = all.cloned().collect();
    let mut outcomes = measure(&cases).into_iter();
    let table = |(algorithm, lines): (&'static str, Vec<Line>)| Table {
        algorithm,
        rows: lines.into_iter().map(|line| line.row(&mut outcomes)).collect(),
    };
    lines.into_iter().map(table).collect()
}

/// One row in the making.
struct Line {
    entry: Entry,
    n: u32,
    cases: Vec<Case>,
}

impl Entry {
    fn lines(&self, algorithm: &str) -> Vec<Line> {
        let modes = [(&self.n, None), (&self.hardened, Some("hardened"))];
        let lines = modes.into_iter().flat_map(|(axis, mode)| {
            let sizes = axis.as_ref().map(sizes).unwrap_or_default();
            sizes.into_iter().map(move |n| self.line(algorithm, n, mode))
        });
        lines.collect()
    }

    fn line(&self, algorithm: &str, n: u32, mode: Option<&str>) -> Line {
        let mut with = self.with.clone();
        with.extend(mode.map(|mode| ("mode".to_owned(), mode.into())));
        let mut cases = Vec::new();
        for r in ranks(self.r.as_ref(), n) {
            let table = scenario(algorithm, n, r, &with);
            let with = |key: &str, value: Value| {
                let mut table = table.clone();
                table.insert(key.to_owned(), value);
                resolve(&table)
            };
            match self.seeds {
                Some(seeds) => {
                    cases.extend((1..=seeds).map(|seed| with("seed", i64::from(seed).into())));
                }
                None if self.rings => {
                    cases.extend(rings(n).into_iter().map(|ring| with("ring", ring.into())));
                }
                None => cases.push(resolve(&table)),
            }
        }
        Line { entry: self.clone(), n, cases }
    }
}

impl Line {
    fn row(self, outcomes: &mut impl Iterator<Item = Outcome>) -> Row {
        let Self { entry, n, cases } = self;
        let outcomes: Vec<Outcome> = outcomes.take(cases.len()).collect();
        let mean = |of: &dyn Fn(&Outcome) -> f64| {
            outcomes.iter().map(of).sum::<f64>() / outcomes.len() as f64
        };
        let case = &cases[0];
        let d = case.config.timing.transmission.as_nanos() as f64;
        let in_d = |span: Span| span.as_nanos() as f64 / d;
        let messages = mean(&|outcome| outcome.messages.total as f64);
        let expected = evaluated(&entry.formula, &variables(n, case));
        let exhaustive = entry.seeds.is_none();
        Row {
            mode: case.mode().to_string(),
            convention: case.convention,
            contact_dead: case.contact_dead,
            n,
            expected,
            messages,
            matches: match exhaustive {
                true => same(messages, expected),
                false => (messages / expected - 1.0).abs() < 0.05,
            },
            runs: outcomes.len(),
            exhaustive,
            stages: mean(&|outcome| f64::from(outcome.stages)),
            turnaround_d: mean(&|outcome| in_d(outcome.turnaround)),
            informed_d: mean(&|outcome| outcome.informed.map_or(f64::NAN, in_d)),
            case: entry.case,
            about: entry.about,
            formula: entry.formula,
        }
    }
}

/// All rings of `1..=n`: n first, and the others in every order.
fn rings(n: u32) -> Vec<Vec<u32>> {
    let mut rings = vec![vec![n]];
    for next in 1..n {
        let insert = |ring: &Vec<u32>| {
            let ring = ring.clone();
            (1..=ring.len()).map(move |place| {
                let mut longer = ring.clone();
                longer.insert(place, next);
                longer
            })
        };
        rings = rings.iter().flat_map(insert).collect();
    }
    rings
}
