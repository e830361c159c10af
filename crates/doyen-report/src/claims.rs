//! What the literature prints, put to the test.
//!
//! The sources make statements about elections: formulas for messages, numbers of stages, lengths of time, examples
//! with their outcome. `claims.toml` has each of them with its trials: runs for which it says what the result must be.
//! The trials are simulated when the verdict is needed, message by message, and the [`Verdict`] follows from their
//! results:
//!
//! - every trial comes out as printed: it **holds**;
//! - every trial that meets a condition does, and some other does not: it **holds only if** that condition is met;
//! - otherwise it is **wrong**. If the right statement is known, the trials must show that as well.
//!
//! So no verdict is written down anywhere; only the words for a condition or a correction are, and they appear only if
//! the numbers require them. [`tables`] has each election's best, worst and average case: formula beside measurement;
//! [`entry_tables`] what an entry into the critical section costs.
//!
//! ```no_run
//! use doyen_report::claims;
//!
//! use doyen_core::registry::Purpose;
//!
//! for claim in claims::claims(Purpose::Elects) {
//!     println!("{} {}: {}", claim.source, claim.text, claim.verdict);
//! }
//! ```

mod cost;
mod entry;
mod trial;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use cost::{Row, Table, tables};
use doyen_core::registry::Purpose;
use doyen_sim::metrics::{Outcome, Views};
use doyen_sim::scenario::Case;
use doyen_sim::{parallel, run};
pub use entry::{EntryRow, EntryTable, Selection, entry_tables};
use trial::{Entry, Trial};

/// The statements and the costs, as they are written.
const LITERATURE: &str = include_str!("claims.toml");

/// Simulates cases on all processors, and returns their outcomes in the same order, without the data of single members.
fn measure(cases: &[Case]) -> Vec<Outcome> {
    parallel::map(parallel::processors(), cases, |case| {
        let outcome = run::run(case, None);
        Outcome { by_member: Vec::new(), views: Views::default(), ..outcome }
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Literature {
    claim: Vec<Statement>,
    cost: BTreeMap<String, Vec<cost::Entry>>,
    entry: BTreeMap<String, Vec<entry::Written>>,
}

impl Literature {
    fn read() -> Self {
        toml::from_str(LITERATURE).expect("the embedded table is read by a test")
    }
}

/// Every statement about elections or about mutual exclusion, with its verdict and the evidence for it, source by source.
pub fn claims(purpose: Purpose) -> Vec<Claim> {
    let is_about = |(_, trials): &(Statement, Vec<Trial>)| {
        trials.iter().flat_map(Trial::cases).all(|case| case.algorithm.purpose() == purpose)
    };
    let tried = Literature::read().claim.into_iter().map(|statement| {
        let trials = statement.trials();
        (statement, trials)
    });
    let (statements, trials): (Vec<Statement>, Vec<Vec<Trial>>) = tried.filter(is_about).unzip();
    let cases: Vec<Case> = trials.iter().flatten().flat_map(Trial::cases).cloned().collect();
    let mut outcomes = measure(&cases).into_iter();
    let judge = |(statement, trials): (Statement, Vec<Trial>)| {
        let values: Vec<f64> = trials.iter().map(|trial| trial.value(&mut outcomes)).collect();
        statement.judge(&trials, &values)
    };
    statements.into_iter().zip(trials).map(judge).collect()
}

/// A statement of a source, and its verdict.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Claim {
    /// A name for it.
    pub id: String,
    /// The source that it comes from, and its place there.
    pub source: String,
    /// As it is printed.
    pub text: String,
    /// What the simulation says about it.
    pub verdict: Verdict,
    /// The evidence.
    pub evidence: Vec<Evidence>,
}

/// What the simulation says about a statement.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "is", content = "because", rename_all = "kebab-case")]
pub enum Verdict {
    /// It is true.
    Holds,
    /// It is true under this condition, which is not printed with it.
    HoldsOnlyIf(String),
    /// It is not true; this statement is.
    Wrong(String),
}

impl Verdict {
    /// `holds`, `holds only if` or `wrong`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::HoldsOnlyIf(_) => "holds only if",
            Self::Wrong(_) => "wrong",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Holds => f.write_str(self.word()),
            Self::HoldsOnlyIf(condition) => write!(f, "{} {condition}", self.word()),
            Self::Wrong(right) => write!(f, "{}: {right}", self.word()),
        }
    }
}

/// One trial of a statement.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Evidence {
    /// What was simulated.
    pub case: String,
    /// The result by the statement.
    pub printed: String,
    /// The result of the simulation.
    pub measured: String,
    /// Whether the two are the same.
    pub agrees: bool,
    /// Whether the case meets the condition under which the statement holds.
    pub meets_condition: bool,
}

/// What is said of a statement that is wrong for no known reason.
const UNEXPLAINED: &str = "it is not what comes out";

/// A statement and its trials, as they are written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    id: String,
    source: String,
    text: String,
    condition: Option<String>,
    correction: Option<String>,
    algorithm: Option<trial::Names>,
    trial: Vec<Entry>,
}

impl Statement {
    fn trials(&self) -> Vec<Trial> {
        self.trial.iter().flat_map(|entry| entry.trials(self.algorithm.as_ref())).collect()
    }

    /// The verdict, from what the trials came to.
    fn judge(self, trials: &[Trial], values: &[f64]) -> Claim {
        let tried = || trials.iter().zip(values);
        let holds = tried().all(|(trial, &value)| trial.admits(value));
        let holds_within = tried().all(|(trial, &value)| trial.outside || trial.admits(value));
        let right =
            tried().all(|(trial, &value)| trial.corrected.is_none_or(|right| same(right, value)));
        let verdict = match (self.condition, self.correction) {
            _ if holds => Verdict::Holds,
            (Some(condition), _) if holds_within => Verdict::HoldsOnlyIf(condition),
            (_, Some(correction)) if right => Verdict::Wrong(correction),
            _ => Verdict::Wrong(UNEXPLAINED.to_owned()),
        };
        let evidence = tried().map(|(trial, &value)| trial.evidence(value)).collect();
        Claim { id: self.id, source: self.source, text: self.text, verdict, evidence }
    }
}

/// Whether two numbers are equal, except for rounding in the last digits of a mean.
fn same(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9 * one.abs().max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use doyen_core::registry::Algorithm;

    #[test]
    fn every_statement_has_its_verdict() {
        let claims = claims(Purpose::Elects);
        let verdicts: Vec<(&str, &str)> =
            claims.iter().map(|claim| (claim.id.as_str(), claim.verdict.word())).collect();
        let expected = [
            ("cs677-consistent", "holds"),
            ("cs677-no-harm", "holds only if"),
            ("cs677-order", "holds only if"),
            ("notes-example", "holds"),
            ("notes-one-interval", "holds only if"),
            ("kordafshari-1", "holds only if"),
            ("kordafshari-2", "wrong"),
            ("kordafshari-3", "holds only if"),
            ("kordafshari-4", "holds"),
            ("kordafshari-5", "holds only if"),
            ("kordafshari-6", "holds only if"),
            ("kordafshari-after-grant", "wrong"),
            ("kordafshari-answerers", "holds only if"),
            ("kordafshari-bully-always", "wrong"),
            ("kordafshari-bully-stages", "holds"),
            ("kordafshari-example", "holds only if"),
            ("kordafshari-fewer-messages", "holds only if"),
            ("kordafshari-fewer-stages", "holds only if"),
            ("kordafshari-figure-2", "holds only if"),
            ("kordafshari-modified-after-four", "holds only if"),
            ("kordafshari-modified-stages", "holds"),
            ("kordafshari-order", "holds only if"),
            ("os-textbook-maximum", "holds only if"),
            ("os-textbook-order", "holds"),
            ("os-textbook-parallel", "holds"),
            ("os-textbook-time", "holds"),
            ("cs425-best-attribute", "holds"),
            ("cs425-best-messages", "holds only if"),
            ("cs425-best-time", "holds only if"),
            ("cs425-failure", "holds"),
            ("cs425-no-failures", "holds"),
            ("cs425-repeated", "holds only if"),
            ("cs425-whoever-calls", "holds"),
            ("cs425-worst-elections", "holds only if"),
            ("cs425-worst-messages", "holds"),
            ("cs425-worst-ring", "holds only if"),
            ("cs425-worst-time", "holds only if"),
        ];
        assert_eq!(verdicts, expected);
        assert_conditions_are_needed(&claims);
    }

    /// A condition must be needed, and a correction must be known.
    fn assert_conditions_are_needed(claims: &[Claim]) {
        for Claim { id, verdict, evidence, .. } in claims {
            let needed = evidence.iter().all(|one| one.agrees == one.meets_condition);
            assert!(needed || verdict.word() != "holds only if", "{id}: {evidence:#?}");
            assert_ne!(*verdict, Verdict::Wrong(UNEXPLAINED.to_owned()), "{id}: {evidence:#?}");
        }
    }

    #[test]
    fn every_figure_about_exclusion_has_its_verdict() {
        let claims = claims(Purpose::Excludes);
        let verdicts: Vec<(&str, &str)> =
            claims.iter().map(|claim| (claim.id.as_str(), claim.verdict.word())).collect();
        let expected = [
            ("cs677-centralised-messages", "holds only if"),
            ("cs677-centralised-delay", "holds only if"),
            ("cs677-decentralised-messages", "holds only if"),
            ("cs677-decentralised-delay", "holds only if"),
            ("cs677-distributed-messages", "holds"),
            ("cs677-distributed-delay", "holds only if"),
            ("cs677-token-ring-messages", "holds"),
            ("cs677-token-ring-delay", "wrong"),
            ("cs425-ricart-agrawala-messages", "wrong"),
            ("cs425-maekawa-messages", "wrong"),
            ("cs425-maekawa-delay", "holds only if"),
            ("cs425-raymond-exit", "wrong"),
            ("cs425-raymond-star", "wrong"),
        ];
        assert_eq!(verdicts, expected);
        assert_conditions_are_needed(&claims);
    }

    #[test]
    fn every_entry_costs_what_its_formula_says() {
        let tables = entry_tables(&Selection::default());
        let names: Vec<&str> = tables.iter().map(|table| table.algorithm).collect();
        assert_eq!(names, Algorithm::EXCLUSIONS.map(Algorithm::name));
        for table in &tables {
            // What the recovery of a token costs beside the ring is no cost of an entry.
            let is_recovery = table.algorithm == Algorithm::TokenRecovery.name();
            assert_eq!(table.rows.is_empty(), is_recovery, "{}", table.algorithm);
            for row in &table.rows {
                assert!(row.matches, "{}: {row:#?}", table.algorithm);
            }
        }
    }

    #[test]
    fn an_entry_costs_what_its_formula_says_at_any_size() {
        let selection =
            Selection { members: (3..=31).step_by(2).collect(), cases: vec!["idle", "saturated"] };
        for table in entry_tables(&selection) {
            for row in &table.rows {
                assert!(row.matches, "{}: {row:#?}", table.algorithm);
                assert!(selection.cases.contains(&row.case.as_str()));
            }
        }
    }

    #[test]
    fn a_verdict_follows_from_the_numbers_and_not_from_what_is_written_down() {
        // Five bullies of which the lowest starts send 24 messages.
        let judged = |trials: &str| {
            let text = format!(
                "id = ''\nsource = ''\ntext = ''\ncondition = 'so'\ncorrection = 'thus'\n\
                 algorithm = 'bully'\ntrial = [{trials}]"
            );
            let statement: Statement = toml::from_str(&text).unwrap();
            let trials = statement.trials();
            let cases: Vec<Case> = trials.iter().flat_map(Trial::cases).cloned().collect();
            let mut outcomes = measure(&cases).into_iter();
            let values: Vec<f64> = trials.iter().map(|trial| trial.value(&mut outcomes)).collect();
            statement.judge(&trials, &values).verdict
        };
        let (so, thus) = ("so".to_owned(), "thus".to_owned());
        assert_eq!(judged("{ n = 5, is = 24 }"), Verdict::Holds);
        let outside = "{ n = 5, is = 24 }, { n = 5, is = 25, outside = true }";
        assert_eq!(judged(outside), Verdict::HoldsOnlyIf(so));
        assert_eq!(judged("{ n = 5, is = 25, corrected = 24 }"), Verdict::Wrong(thus));
        let unexplained = Verdict::Wrong(UNEXPLAINED.to_owned());
        assert_eq!(judged("{ n = 5, is = 25, corrected = 23 }"), unexplained);
    }

    #[test]
    fn every_row_of_every_table_matches_its_formula() {
        let tables = tables();
        let names: Vec<&str> = tables.iter().map(|table| table.algorithm).collect();
        assert_eq!(names, Algorithm::OF_SOURCES.map(Algorithm::name));
        for table in &tables {
            assert!(!table.rows.is_empty(), "{}", table.algorithm);
            for row in &table.rows {
                assert!(row.matches, "{}: {row:#?}", table.algorithm);
            }
        }
    }
}
