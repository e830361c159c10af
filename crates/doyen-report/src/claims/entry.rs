//! What an entry into the critical section costs: the table of cs677 and the history of cs425, and what these leave out.
//!
//! A case is `idle`, where one member asks, or `saturated`, where all ask again as soon as they have left. Messages are for
//! each entry. A saturated run begins and ends, so where a formula is about the middle of it the two are compared within
//! five percent (`about`).

use doyen_core::registry::Algorithm;
use doyen_core::time::Span;
use serde::{Deserialize, Serialize};

use super::trial::{evaluated, resolve, scenario, sizes, variables};
use super::{Literature, measure, same};
use crate::plan::axis::Axis;
use doyen_sim::metrics::Outcome;
use doyen_sim::scenario::Case;

/// What entries cost with one algorithm.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EntryTable {
    /// The algorithm's name.
    pub algorithm: &'static str,
    /// What the crash of one member does.
    pub one_crash: &'static str,
    /// One row a case and size.
    pub rows: Vec<EntryRow>,
}

/// Theory and measurement of one case at one size. Times are in units of D.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EntryRow {
    /// `idle`, `saturated` or another word.
    pub case: String,
    /// What makes it that case.
    pub about: String,
    /// `textbook`, `hardened` or a literal variant.
    pub mode: String,
    /// N, how many members.
    pub n: u32,
    /// How many messages an entry takes.
    pub formula: String,
    /// The value of the formula.
    pub expected: f64,
    /// The messages counted, for each entry.
    pub per_entry: f64,
    /// Whether the two are the same, or within five percent of each other if the formula is about the middle of a run.
    pub matches: bool,
    /// Whether the formula is about every run of this case, from its beginning to its end.
    pub exact: bool,
    /// The messages that were sent while a member left: the mean.
    pub at_exit: f64,
    /// The most of them.
    pub at_exit_most: u64,
    /// The longest wait of a member that found no other one waiting or inside, where no member ever waits for another.
    pub client_delay_d: Option<f64>,
    /// From an exit to the next entry of a member that was waiting already: the median.
    pub sync_delay_d: Option<f64>,
    /// Entries for each D until the last exit.
    pub entries_per_d: f64,
}

impl EntryRow {
    /// Whether two rows differ in their size alone.
    pub fn is_same_case(&self, other: &Self) -> bool {
        let texts =
            |row: &Self| [&row.case, &row.about, &row.mode, &row.formula].map(String::clone);
        texts(self) == texts(other)
    }
}

/// A case as it is written.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    case: String,
    about: String,
    formula: String,
    n: Axis,
    #[serde(default)]
    with: toml::Table,
    /// The formula is about the middle of the run.
    #[serde(default)]
    middle: bool,
    /// The smallest group that the case is about.
    #[serde(default)]
    at_least: u32,
}

/// Which cases are measured, and at which sizes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Selection {
    /// The sizes; those of the literature's tables, if there are none.
    pub members: Vec<u32>,
    /// The names of the cases; all of them, if there are none.
    pub cases: Vec<&'static str>,
}

/// What an entry costs with every algorithm. A size that a case does not suit is left out.
pub fn entry_tables(selection: &Selection) -> Vec<EntryTable> {
    let mut written = Literature::read().entry;
    let is_wanted = |case: &&Written| {
        selection.cases.is_empty() || selection.cases.contains(&case.case.as_str())
    };
    let lines: Vec<(Algorithm, Vec<Line>)> = (Algorithm::EXCLUSIONS.into_iter())
        .map(|algorithm| {
            let cases = written.remove(algorithm.name()).unwrap_or_default();
            let wanted = cases.iter().filter(is_wanted);
            (algorithm, wanted.flat_map(|case| case.lines(algorithm, &selection.members)).collect())
        })
        .collect();
    let all = lines.iter().flat_map(|(_, lines)| lines).map(|line| line.case.clone());
    let mut outcomes = measure(&all.collect::<Vec<_>>()).into_iter();
    let table = |(algorithm, lines): (Algorithm, Vec<Line>)| EntryTable {
        algorithm: algorithm.name(),
        one_crash: algorithm.one_crash(),
        rows: lines.into_iter().zip(&mut outcomes).map(|(line, it)| line.row(&it)).collect(),
    };
    lines.into_iter().map(table).collect()
}

/// One row in the making.
struct Line {
    written: Written,
    n: u32,
    case: Case,
}

impl Written {
    fn lines(&self, algorithm: Algorithm, members: &[u32]) -> Vec<Line> {
        let table = |n| scenario(algorithm.name(), n, None, &self.with);
        let line = |n, case| Line { written: self.clone(), n, case };
        let sizes = match members.is_empty() {
            true => sizes(&self.n),
            false => members.iter().copied().filter(|&n| n >= self.at_least).collect(),
        };
        sizes.into_iter().map(|n| line(n, resolve(&table(n)))).collect()
    }
}

impl Line {
    fn row(self, outcome: &Outcome) -> EntryRow {
        let Self { written, n, case } = self;
        let run = outcome.exclusion.as_ref().expect("the algorithm lets members in");
        let d = case.config.timing.transmission.as_nanos() as f64;
        let in_d = |span: Span| span.as_nanos() as f64 / d;
        let per_entry = messages_of(&case, outcome) as f64 / run.entries.len() as f64;
        let expected = evaluated(&written.formula, &variables(n, &case));
        let at_exit: u64 = run.at_exit.iter().sum();
        let length = run.last_exit().map_or(f64::NAN, |at| at.0 as f64 / d);
        EntryRow {
            mode: case.mode().to_string(),
            n,
            expected,
            per_entry,
            matches: match written.middle {
                true => (per_entry / expected - 1.0).abs() < 0.05,
                false => same(per_entry, expected),
            },
            exact: !written.middle,
            at_exit: at_exit as f64 / run.at_exit.len() as f64,
            at_exit_most: run.at_exit.iter().copied().max().unwrap_or_default(),
            client_delay_d: run.client_delay().filter(|_| run.sync_delays.is_empty()).map(in_d),
            sync_delay_d: run.sync_delay().map(|delay| in_d(delay.median)),
            entries_per_d: run.entries.len() as f64 / length,
            case: written.case,
            about: written.about,
            formula: written.formula,
        }
    }
}

/// The messages that the algorithm sends for entries: for a lock service, those of the quorum below do not count.
fn messages_of(case: &Case, outcome: &Outcome) -> u64 {
    if !case.algorithm.has_leases() {
        return outcome.messages.total;
    }
    let of_quorum = |name: &str| Algorithm::Quorum.kinds().iter().any(|kind| kind.name == name);
    let own = outcome.messages.by_kind.iter().filter(|(name, _)| !of_quorum(name));
    own.map(|&(_, count)| count).sum()
}
