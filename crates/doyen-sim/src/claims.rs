//! What the literature prints, put to the test.
//!
//! The seeds make statements about elections: formulas for messages, numbers of stages, lengths of time, examples with
//! their outcome. Here each of them stands with its trials, which are cases for which it says what must come out.
//! The trials are simulated on the spot, message by message, and the [`Verdict`] follows from what they come to:
//!
//! - every trial comes out as printed: it **holds**;
//! - every trial that meets a condition does, and some other does not: it **holds only if** that condition is met;
//! - otherwise it is **wrong**. Where it is known what would be right, the trials have to bear that out as well.
//!
//! So no verdict is written down anywhere; the words for a condition or a correction are, and appear only if the
//! numbers ask for them.
//!
//! [`tables`] has the same for every algorithm's best, worst and average case: formula beside measurement.
//!
//! Simulations are independent of each other. Whoever asks brings a [`Runner`], which measures a list of cases in any
//! way it likes, on several threads for example; [`one_by_one`] is the simplest. Neither statements about mutual
//! exclusion nor those without a number or an outcome in them are here.
//!
//! ```no_run
//! use doyen_sim::claims;
//!
//! for claim in claims::claims(&claims::one_by_one) {
//!     println!("{} {}: {}", claim.source, claim.statement, claim.verdict);
//! }
//! ```

mod kordafshari;
mod lectures;
mod setting;
mod tables;

use std::fmt;

use serde::Serialize;

use crate::run;
use crate::scenario::Case;
use setting::Setting;
pub use tables::{Row, Table, tables};

/// Measures cases, each on its own, in the order given.
pub type Runner<'a> = &'a dyn Fn(&[Case]) -> Vec<Measured>;

/// The simplest [`Runner`].
pub fn one_by_one(cases: &[Case]) -> Vec<Measured> {
    cases.iter().map(measure).collect()
}

/// Every statement of the seeds with its verdict and the evidence for it.
pub fn claims(runner: Runner<'_>) -> Vec<Claim> {
    let statements: Vec<Statement> =
        lectures::statements().into_iter().chain(kordafshari::statements()).collect();
    let trials = || statements.iter().flat_map(|statement| &statement.trials);
    let cases: Vec<Case> = trials().flat_map(Trial::cases).collect();
    let mut measured = runner(&cases).into_iter();
    let mut claims: Vec<Claim> =
        (statements.iter()).map(|statement| statement.judge(&mut measured)).collect();
    claims.sort_by_key(|claim| claim.id);
    claims
}

/// A statement of a seed, and what became of it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Claim {
    /// A name for it.
    pub id: &'static str,
    /// Which seed it comes from, and where it stands there.
    pub source: &'static str,
    /// As it is printed.
    pub statement: &'static str,
    /// What is to be said about it.
    pub verdict: Verdict,
    /// Why.
    pub evidence: Vec<Evidence>,
}

/// What is to be said about a statement.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "is", content = "because", rename_all = "kebab-case")]
pub enum Verdict {
    /// It is true.
    Holds,
    /// It is true under this condition, which is not printed with it.
    HoldsOnlyIf(String),
    /// It is not true; this is.
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

    /// The condition, or what is right; empty if it holds.
    pub fn because(&self) -> &str {
        match self {
            Self::Holds => "",
            Self::HoldsOnlyIf(because) | Self::Wrong(because) => because,
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
    /// What comes out by the statement.
    pub printed: String,
    /// What came out.
    pub measured: String,
    /// Whether that is the same.
    pub agrees: bool,
    /// Whether the case meets the condition under which the statement holds.
    pub meets_condition: bool,
}

/// What one case came to: an [`Outcome`](crate::account::Outcome) without what is kept for each member.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// Election messages, those to dead members included.
    messages: u64,
    to_dead: u64,
    by_kind: Vec<(&'static str, u64)>,
    stages: u32,
    elections: u64,
    /// Times in units of D.
    turnaround: f64,
    informed: f64,
    /// The leader on which all live members agree and which is alive.
    leader: Option<u32>,
}

/// Simulates one case and says what it came to.
pub fn measure(case: &Case) -> Measured {
    let outcome = run::run(case, None);
    let unit = case.config.timing.transmission.as_nanos() as f64;
    Measured {
        messages: outcome.messages.total,
        to_dead: outcome.messages.to_dead,
        by_kind: outcome.messages.by_kind,
        stages: outcome.stages,
        elections: outcome.elections,
        turnaround: outcome.turnaround.as_nanos() as f64 / unit,
        informed: outcome.informed.as_nanos() as f64 / unit,
        leader: outcome.leader.filter(|_| outcome.agreed).map(|id| id.0),
    }
}

/// What is said of a statement that is wrong for no known reason.
const UNEXPLAINED: &str = "it is not what comes out";

/// A statement and how to try it.
struct Statement {
    id: &'static str,
    source: &'static str,
    text: &'static str,
    /// Under what condition it is true, as far as is known.
    condition: Option<&'static str>,
    /// What is right instead, as far as is known.
    correction: Option<&'static str>,
    trials: Vec<Trial>,
}

impl Statement {
    fn new(id: &'static str, source: &'static str, text: &'static str) -> Self {
        Self { id, source, text, condition: None, correction: None, trials: Vec::new() }
    }

    /// The statement is true only if …
    fn only_if(mut self, condition: &'static str) -> Self {
        self.condition = Some(condition);
        self
    }

    /// The statement is wrong; right is …
    fn rather(mut self, correction: &'static str) -> Self {
        self.correction = Some(correction);
        self
    }

    fn tried(mut self, trials: impl IntoIterator<Item = Trial>) -> Self {
        self.trials.extend(trials);
        self
    }

    /// The verdict, from what its trials came to.
    fn judge(&self, measured: &mut impl Iterator<Item = Measured>) -> Claim {
        let values: Vec<f64> = (self.trials.iter())
            .map(|trial| trial.value(measured.by_ref().take(trial.settings.len())))
            .collect();
        let tried = || self.trials.iter().zip(&values);
        let holds = tried().all(|(trial, &value)| trial.printed.admits(value));
        let holds_within =
            tried().all(|(trial, &value)| trial.outside || trial.printed.admits(value));
        let right =
            tried().all(|(trial, &value)| trial.corrected.is_none_or(|right| same(right, value)));
        let verdict = match (self.condition, self.correction) {
            _ if holds => Verdict::Holds,
            (Some(condition), _) if holds_within => Verdict::HoldsOnlyIf(condition.to_owned()),
            (_, Some(correction)) if right => Verdict::Wrong(correction.to_owned()),
            _ => Verdict::Wrong(UNEXPLAINED.to_owned()),
        };
        let evidence = tried().map(|(trial, &value)| trial.evidence(value)).collect();
        let Self { id, source, text, .. } = *self;
        Claim { id, source, statement: text, verdict, evidence }
    }
}

/// What a statement says about one case, or about several together.
struct Trial {
    settings: Vec<Setting>,
    together: Together,
    quantity: Quantity,
    printed: Printed,
    /// What the corrected statement says.
    corrected: Option<f64>,
    /// The case does not meet the condition.
    outside: bool,
    /// What the settings do not tell by themselves.
    note: &'static str,
}

/// How several cases make one number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Together {
    Lowest,
    /// The first less the second.
    Difference,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq)]
enum Quantity {
    Messages,
    /// Messages whose receiver is alive.
    ToLiving,
    /// Messages of one kind.
    Kind(&'static str),
    Elections,
    Stages,
    /// From the first election to the last receipt, in D.
    Turnaround,
    /// From so many D after the first election until everybody knows the leader, in D.
    Informed {
        since: f64,
    },
    /// Who leads; -1 if nobody does, or not everybody follows.
    Leader,
}

/// What is printed about it.
#[derive(Clone, Copy, PartialEq)]
enum Printed {
    Exactly(f64),
    AtMost(f64),
    AtLeast(f64),
    /// Half of it to twice as much.
    Order(f64),
}

impl Trial {
    fn new(setting: Setting, quantity: Quantity, printed: Printed) -> Self {
        Self::over(vec![setting], Together::Lowest, quantity, printed)
    }

    fn over(
        settings: Vec<Setting>,
        together: Together,
        quantity: Quantity,
        printed: Printed,
    ) -> Self {
        let (corrected, outside, note) = (None, false, "");
        Self { settings, together, quantity, printed, corrected, outside, note }
    }

    /// The messages of one case are exactly so many.
    fn messages(setting: Setting, printed: u64) -> Self {
        Self::new(setting, Quantity::Messages, Printed::Exactly(printed as f64))
    }

    /// All follow this one.
    fn elects(setting: Setting, leader: u32) -> Self {
        Self::new(setting, Quantity::Leader, Printed::Exactly(f64::from(leader)))
    }

    /// Everybody knows the leader after exactly so many D.
    fn lasts(setting: Setting, printed: f64) -> Self {
        Self::new(setting, Quantity::Informed { since: 0.0 }, Printed::Exactly(printed))
    }

    fn rather(mut self, corrected: u64) -> Self {
        self.corrected = Some(corrected as f64);
        self
    }

    fn outside(mut self) -> Self {
        self.outside = true;
        self
    }

    fn note(mut self, note: &'static str) -> Self {
        self.note = note;
        self
    }

    fn cases(&self) -> impl Iterator<Item = Case> {
        self.settings.iter().map(Setting::case)
    }

    fn value(&self, measured: impl Iterator<Item = Measured>) -> f64 {
        let values: Vec<f64> = measured.map(|one| self.quantity.of(&one)).collect();
        self.together.of(&values)
    }

    fn evidence(&self, value: f64) -> Evidence {
        let settings: Vec<String> = self.settings.iter().map(Setting::to_string).collect();
        let mut case = match (self.together, settings.as_slice()) {
            (Together::Difference, [first, second]) => format!("{first}; less {second}"),
            (_, [one]) => one.clone(),
            (_, []) => String::new(),
            (_, [first, .., last]) => {
                format!("{} runs from ({first}) to ({last})", settings.len())
            }
        };
        if !self.note.is_empty() {
            case = format!("{case}: {}", self.note);
        }
        Evidence {
            case,
            printed: self.quantity.text(&self.printed.to_string()),
            measured: self.quantity.text(&number(value)),
            agrees: self.printed.admits(value),
            meets_condition: !self.outside,
        }
    }
}

impl Together {
    fn of(self, values: &[f64]) -> f64 {
        match (self, values) {
            (Self::Lowest, _) => values.iter().copied().fold(f64::INFINITY, f64::min),
            (Self::Difference, [first, second]) => first - second,
            (Self::Difference, _) => f64::NAN,
        }
    }
}

impl Quantity {
    fn of(self, measured: &Measured) -> f64 {
        match self {
            Self::Messages => measured.messages as f64,
            Self::ToLiving => (measured.messages - measured.to_dead) as f64,
            Self::Kind(name) => {
                let of_kind = measured.by_kind.iter().filter(|(kind, _)| *kind == name);
                of_kind.map(|&(_, count)| count as f64).sum()
            }
            Self::Elections => measured.elections as f64,
            Self::Stages => f64::from(measured.stages),
            Self::Turnaround => measured.turnaround,
            Self::Informed { since } => measured.informed - since,
            Self::Leader => measured.leader.map_or(-1.0, f64::from),
        }
    }

    /// A value in words.
    fn text(self, value: &str) -> String {
        let plural = if value == "1" || value.ends_with(" 1") { "" } else { "s" };
        match self {
            Self::Messages => format!("{value} message{plural}"),
            Self::ToLiving => format!("{value} message{plural} to the living"),
            Self::Kind(kind) => format!("{value} {kind}"),
            Self::Elections => format!("{value} election{plural}"),
            Self::Stages => format!("{value} stage{plural}"),
            Self::Turnaround | Self::Informed { .. } => format!("{value} D"),
            Self::Leader if value == "-1" => "no agreement".to_owned(),
            Self::Leader => format!("{value} leads"),
        }
    }
}

impl Printed {
    fn admits(self, value: f64) -> bool {
        match self {
            Self::Exactly(printed) => same(value, printed),
            Self::AtMost(printed) => value <= printed,
            Self::AtLeast(printed) => value >= printed,
            Self::Order(printed) => (printed / 2.0..=printed * 2.0).contains(&value),
        }
    }
}

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(printed) => f.write_str(&number(*printed)),
            Self::AtMost(printed) => write!(f, "at most {}", number(*printed)),
            Self::AtLeast(printed) => write!(f, "at least {}", number(*printed)),
            Self::Order(printed) => write!(f, "about {}", number(*printed)),
        }
    }
}

/// Whether two numbers are equal but for what the last digits of a mean may lose.
fn same(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9 * one.abs().max(1.0)
}

/// A number with as many decimals as it needs, four at most.
fn number(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use doyen_core::registry::Algorithm::{self, Bully};

    #[test]
    fn every_statement_has_its_verdict() {
        let claims = claims(&one_by_one);
        let verdicts: Vec<(&str, &str)> =
            claims.iter().map(|claim| (claim.id, claim.verdict.word())).collect();
        let expected = [
            ("000-consistent", "holds"),
            ("000-no-harm", "holds only if"),
            ("000-order", "holds only if"),
            ("001-example", "holds"),
            ("001-one-interval", "holds only if"),
            ("002-1", "holds only if"),
            ("002-2", "wrong"),
            ("002-3", "holds only if"),
            ("002-4", "holds"),
            ("002-5", "holds only if"),
            ("002-6", "holds only if"),
            ("002-after-grant", "wrong"),
            ("002-answerers", "holds only if"),
            ("002-bully-always", "wrong"),
            ("002-bully-stages", "holds"),
            ("002-example", "holds only if"),
            ("002-fewer-messages", "holds only if"),
            ("002-fewer-stages", "holds only if"),
            ("002-figure-2", "holds only if"),
            ("002-modified-after-four", "holds only if"),
            ("002-modified-stages", "holds"),
            ("002-order", "holds only if"),
            ("003-maximum", "holds only if"),
            ("003-order", "holds"),
            ("003-parallel", "holds"),
            ("003-time", "holds"),
            ("004-best-attribute", "holds"),
            ("004-best-messages", "holds only if"),
            ("004-best-time", "holds only if"),
            ("004-failure", "holds"),
            ("004-no-failures", "holds"),
            ("004-repeated", "holds only if"),
            ("004-whoever-calls", "holds"),
            ("004-worst-elections", "holds only if"),
            ("004-worst-messages", "holds"),
            ("004-worst-ring", "holds only if"),
            ("004-worst-time", "holds only if"),
        ];
        assert_eq!(verdicts, expected);
        for Claim { id, verdict, evidence, .. } in &claims {
            // A condition must be needed, and a correction must be known.
            let needed = evidence.iter().all(|one| one.agrees == one.meets_condition);
            assert!(needed || verdict.word() != "holds only if", "{id}: {evidence:#?}");
            assert_ne!(verdict.because(), UNEXPLAINED, "{id}");
        }
    }

    #[test]
    fn a_verdict_follows_from_the_numbers_and_not_from_what_is_written_down() {
        let judged = |statement: Statement| {
            let cases: Vec<Case> = statement.trials.iter().flat_map(Trial::cases).collect();
            statement.judge(&mut one_by_one(&cases).into_iter()).verdict
        };
        let trial = |printed| Trial::messages(Setting::live(Bully, 5), printed);
        let statement = || Statement::new("", "", "").only_if("so").rather("thus");
        let (so, thus) = ("so".to_owned(), "thus".to_owned());
        assert_eq!(judged(statement().tried([trial(24)])), Verdict::Holds);
        let outside = [trial(24), trial(25).outside()];
        assert_eq!(judged(statement().tried(outside)), Verdict::HoldsOnlyIf(so));
        assert_eq!(judged(statement().tried([trial(25).rather(24)])), Verdict::Wrong(thus));
        let unexplained = Verdict::Wrong(UNEXPLAINED.to_owned());
        assert_eq!(judged(statement().tried([trial(25).rather(23)])), unexplained);
    }

    #[test]
    fn every_row_of_every_table_matches_its_formula() {
        let tables = tables(&one_by_one);
        let names: Vec<&str> = tables.iter().map(|table| table.algorithm).collect();
        assert_eq!(names, Algorithm::SEEDS.map(Algorithm::name));
        for table in &tables {
            for row in &table.rows {
                assert!(row.matches, "{}: {row:#?}", table.algorithm);
            }
        }
    }
}
