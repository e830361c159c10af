//! A run that violates a property, as a readable file.
//!
//! ```toml
//! # A counterexample: in this run A3 does not hold.
//! # doyen replay FILE        shows it, and says why
//! doyen = "counterexample"
//! version = 2
//! property = "A3"
//! path = [
//!     "deliver ELECTION from 1 to 2 #5c02b1f9",
//!     "crash 2",
//! ]
//! cycle = []
//!
//! [scenario]
//! algorithm = "bully"
//! members = 3
//!
//! [rules]
//! budget = { crashes = 1 }
//! timers = "bounded"
//! tick = "1ms"
//! detection = 2
//! fifo = true
//!
//! # The end of the counterexample.
//! ```
//!
//! There are two forms. A file with a `path` is a *schedule* that a check has found: the steps from the initial scene to the
//! violation, one a line (see `model/step.rs`), and those that then repeat forever. With `from` among the rules, the
//! scenario is simulated up to that time first; with `part`, the schedule is about that part of the quorum. A file without a
//! `path` is a *timed run* of the simulator that a campaign has found: the scenario holds the faults and the seed.
//!
//! A file is read as strictly as a scenario: an unknown or missing key is rejected, with the line. The last line marks the
//! end: a file without it is incomplete.

use std::fmt::Write;

use doyen_core::time::Span;
use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeTable, Deserializer};

use super::budget::{ANY, Budget, MAX};
use super::part::Scope;
use super::property::Property;
use crate::explore::Violation;
use crate::model::step::StepText;
use crate::rules::{MAX_MEMBERS, Rules};
use crate::timers::Timers;
use doyen_sim::document;
use doyen_sim::scenario::{Case, Scenario, ScenarioError};
use doyen_sim::time::Time;

/// The version of the file format.
const VERSION: i64 = 2;

/// The mark of a counterexample.
const KIND: &str = "counterexample";

/// How it ends.
const END: &str = "# The end of the counterexample.";

/// A run that breaks a property.
#[derive(Clone, PartialEq, Debug)]
pub struct Counterexample {
    /// The property.
    pub property: Property,
    /// Where it begins.
    pub scenario: Scenario,
    /// Its steps, or its simulation.
    pub course: Course,
    source: Option<Source>,
}

/// The form of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Course {
    /// Step by step, as a check explores it.
    Schedule {
        /// What can happen.
        rules: Rules,
        /// The steps to where the property is broken.
        path: Vec<StepText>,
        /// The steps that then repeat forever; none if nothing is left to do.
        cycle: Vec<StepText>,
    },
    /// By the clock, as the simulator runs it: the scenario says everything.
    Timed,
}

/// Where a counterexample was read from, for errors.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Source {
    name: String,
    text: String,
    /// On which line each step stands, those of the cycle behind those of the path.
    lines: Vec<usize>,
}

impl Counterexample {
    /// What a check of `scenario` under `rules` has found.
    pub fn new(scenario: Scenario, rules: &Rules, violation: Violation) -> Self {
        let Violation { property, path, cycle } = violation;
        let rules = Rules { properties: vec![property], ..rules.clone() };
        let course = Course::Schedule { rules, path, cycle };
        Self { property, scenario, course, source: None }
    }

    /// A timed run of `scenario` that breaks `property`.
    pub fn timed(scenario: Scenario, property: Property) -> Self {
        Self { property, scenario, course: Course::Timed, source: None }
    }

    /// The scenario, checked.
    pub fn case(&self) -> Result<Case, String> {
        let case = self.scenario.resolve().map_err(|error| self.in_scenario(&error))?;
        let count = case.members().len();
        if matches!(self.course, Course::Schedule { .. }) && count > MAX_MEMBERS {
            let problem =
                format!("{count} members are too many for a check, which takes {MAX_MEMBERS}");
            return Err(self.in_scenario(&ScenarioError::new("members", problem)));
        }
        Ok(case)
    }

    fn in_scenario(&self, error: &ScenarioError) -> String {
        let error = ScenarioError::new(format!("scenario.{}", error.key), error.problem.clone());
        match &self.source {
            Some(source) => error.in_file(&source.name, &source.text),
            None => error.to_string(),
        }
    }

    /// `problem` with the step at `index`, which counts on from the path to the cycle.
    pub(super) fn at_step(&self, index: usize, problem: &str) -> String {
        match &self.source {
            Some(source) => format!("{}:{}: {problem}", source.name, source.lines[index]),
            None => format!("step {}: {problem}", index + 1),
        }
    }

    /// Whether `text` says that it is a counterexample.
    pub fn is_one(text: &str) -> bool {
        text.lines().any(is_kind)
    }

    /// Reads a counterexample. `name` is what errors call the text; they name the line as well.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        if !Self::is_one(text) {
            return Err(no_counterexample(name));
        }
        let is_whole = text.trim_end().lines().next_back() == Some(END);
        let damaged = |error: toml::de::Error| match is_whole {
            true => document::mistake(name, text, &error),
            false => lost_end(name),
        };
        check_stamp(name, text, &toml::from_str(text).map_err(damaged)?)?;
        let (document, scenario) = Document::read(text).map_err(damaged)?;
        if !is_whole {
            return Err(lost_end(name));
        }
        let property = document.property.get_ref().parse().map_err(|problem| {
            let line = document::line(text, document.property.span().start);
            format!("{name}:{line}: {problem}")
        })?;
        let steps = [&document.path, &document.cycle].map(|steps| steps.as_deref().unwrap_or(&[]));
        let read = |step: &Spanned<String>| {
            (StepText::new(step.get_ref()), document::line(text, step.span().start))
        };
        let (mut path, lines): (Vec<StepText>, Vec<usize>) =
            steps.concat().iter().map(read).unzip();
        let course = match (&document.path, document.rules) {
            (Some(_), Some(rules)) => {
                let cycle = path.split_off(steps[0].len());
                let rules = rules.read(property).map_err(|error| error.in_file(name, text))?;
                Course::Schedule { rules, path, cycle }
            }
            (None, None) if document.cycle.is_none() => Course::Timed,
            _ => {
                return Err(format!(
                    "{name}: `path`, `cycle` and [rules] belong together: the file is damaged; copy it again or \
                     check again"
                ));
            }
        };
        let source = Some(Source { name: name.to_owned(), text: text.to_owned(), lines });
        let read = Self { property, scenario, course, source };
        read.case().map(|_| read)
    }

    /// The file's text.
    pub fn to_toml(&self) -> String {
        let property = self.property;
        let mut text = format!(
            "# A counterexample: in this run {property} does not hold.\n\
             # {}\n\
             # doyen replay FILE        shows it, and says why\n\
             doyen = \"{KIND}\"\nversion = {VERSION}\nproperty = \"{property}\"\n",
            property.words()
        );
        if let Course::Schedule { path, cycle, .. } = &self.course {
            for (key, steps) in [("path", path), ("cycle", cycle)] {
                let _ = writeln!(text, "{key} = {}", list(steps));
            }
        }
        let scenario = toml::Value::Table(self.scenario.to_table());
        let scenario = toml::Table::from_iter([("scenario".to_owned(), scenario)]);
        let _ = write!(text, "\n{scenario}");
        if let Course::Schedule { rules, .. } = &self.course {
            let _ = write!(text, "\n{}", RulesEntry::new(rules).to_toml());
        }
        text + "\n" + END + "\n"
    }
}

/// The file as it stands, without the scenario.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(rename = "doyen")]
    _kind: String,
    #[serde(rename = "version")]
    _version: i64,
    property: Spanned<String>,
    path: Option<Vec<Spanned<String>>>,
    cycle: Option<Vec<Spanned<String>>>,
    rules: Option<RulesEntry>,
}

impl Document {
    fn read(text: &str) -> Result<(Self, Scenario), toml::de::Error> {
        let mut table = DeTable::parse(text)?;
        let scenario = match table.get_mut().remove("scenario") {
            Some(scenario) => Scenario::from_value(scenario)?,
            None => return Err(toml::de::Error::custom("missing field `scenario`")),
        };
        Ok((Self::deserialize(Deserializer::from(table))?, scenario))
    }
}

/// The rules as they stand.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesEntry {
    #[serde(skip_serializing)]
    budget: Budget,
    timers: String,
    expiries: Option<u8>,
    tick: Option<String>,
    detection: Option<u8>,
    drift: Option<f64>,
    fifo: bool,
    from: Option<String>,
    part: Option<String>,
    terms: Option<u64>,
    mixed: Option<bool>,
    without: Option<String>,
}

impl RulesEntry {
    fn new(rules: &Rules) -> Self {
        let (budget, fifo) = (rules.budget, rules.fifo);
        let (timers, expiries, tick, detection, drift) = match rules.timers {
            Timers::Free { expiries } => ("free", Some(expiries), None, None, None),
            Timers::Bounded { tick, detection } => {
                ("bounded", None, Some(tick.to_string()), Some(detection), None)
            }
            Timers::Clocked { tick, drift } => {
                let drift = (drift > 0).then_some(f64::from(drift) / 1000.0);
                ("clocked", None, Some(tick.to_string()), None, drift)
            }
        };
        let from = rules.from.map(|at| at.to_string());
        let timers = timers.to_owned();
        let scope = rules.scope;
        Self {
            budget,
            timers,
            expiries,
            tick,
            detection,
            drift,
            fifo,
            from,
            part: scope.map(|scope| scope.part.to_string()),
            terms: scope.map(|scope| scope.terms),
            mixed: scope.and_then(|scope| scope.mixed.then_some(true)),
            without: scope.and_then(|scope| scope.without).map(|rule| rule.to_string()),
        }
    }

    fn read_timers(&self) -> Result<Timers, ScenarioError> {
        let parse_tick = |text: &String| match text.parse::<Span>() {
            Ok(Span::ZERO) => Err(wrong("tick", "must be above zero")),
            Ok(tick) => Ok(tick),
            Err(problem) => Err(wrong("tick", problem)),
        };
        let parse_drift = |drift: f64| match (0.0..1.0).contains(&drift) {
            true => Ok((drift * 1000.0).round() as u32),
            false => Err(wrong("drift", format!("{drift} is not at least 0 and below 1"))),
        };
        let Self { expiries, tick, detection, drift, .. } = self;
        match (self.timers.as_str(), expiries, tick, detection, drift) {
            ("free", &Some(expiries), None, None, None) => Ok(Timers::Free { expiries }),
            ("bounded", None, Some(tick), &Some(detection), None) => {
                Ok(Timers::Bounded { tick: parse_tick(tick)?, detection })
            }
            ("clocked", None, Some(tick), None, drift) => {
                let drift = parse_drift(drift.unwrap_or(0.0))?;
                Ok(Timers::Clocked { tick: parse_tick(tick)?, drift })
            }
            _ => {
                let problem = "timers are either \"free\", with `expiries`, or \"bounded\", with `tick` and \
                               `detection`, or \"clocked\", with `tick` and perhaps `drift`";
                Err(wrong("timers", problem))
            }
        }
    }

    fn read(self, property: Property) -> Result<Rules, ScenarioError> {
        let timers = self.read_timers()?;
        if let Some((name, count)) = self.budget.items().into_iter().find(|item| item.1 > ANY) {
            let most = format!("at most {MAX}, or {ANY} for any number");
            return Err(wrong("budget", format!("{count} {name} are too many; {most}")));
        }
        let from = self.from.as_ref().map(|text| text.parse::<Span>()).transpose();
        let from = from.map_err(|problem| wrong("from", problem))?.map(|span| Time::ZERO + span);
        let scope = self.read_scope()?;
        if scope.is_some() && from.is_some() {
            return Err(wrong("from", "a part of the quorum is explored from its beginning"));
        }
        let (budget, fifo, properties) = (self.budget, self.fifo, vec![property]);
        Ok(Rules { budget, timers, fifo, properties, from, scope })
    }

    fn read_scope(&self) -> Result<Option<Scope>, ScenarioError> {
        let Self { part, terms, mixed, without, .. } = self;
        match (part, terms) {
            (Some(part), &Some(terms)) => {
                let part = part.parse().map_err(|problem| wrong("part", problem))?;
                let without = without.as_ref().map(|rule| rule.parse()).transpose();
                let without = without.map_err(|problem| wrong("without", problem))?;
                Ok(Some(Scope { part, terms, mixed: mixed.unwrap_or(false), without }))
            }
            (None, None) if mixed.is_none() && without.is_none() => Ok(None),
            _ => {
                let problem =
                    "`part` and `terms` belong together, and `mixed` and `without` to them";
                Err(wrong("part", problem))
            }
        }
    }

    /// The section of a file. The budget is an inline table.
    fn to_toml(&self) -> String {
        let counts = self.budget.items().into_iter().filter(|&(_, count)| count > 0);
        let budget: Vec<String> = counts.map(|(name, count)| format!("{name} = {count}")).collect();
        let budget = match budget.is_empty() {
            true => "{}".to_owned(),
            false => format!("{{ {} }}", budget.join(", ")),
        };
        let rest = toml::to_string(self).expect("rules can always be written");
        format!("[rules]\nbudget = {budget}\n{rest}")
    }
}

/// A problem of a key in the rules.
fn wrong(key: &str, problem: impl Into<String>) -> ScenarioError {
    ScenarioError::new(format!("rules.{key}"), problem.into())
}

/// What must be right before anything else of the file means anything.
#[derive(Deserialize)]
struct Stamp {
    doyen: Option<String>,
    version: Option<Spanned<i64>>,
}

fn check_stamp(name: &str, text: &str, stamp: &Stamp) -> Result<(), String> {
    if stamp.doyen.as_deref() != Some(KIND) {
        return Err(no_counterexample(name));
    }
    let Some(version) = &stamp.version else {
        return Err(format!("{name}: version is missing; this doyen reads version {VERSION}"));
    };
    if *version.get_ref() != VERSION {
        return Err(format!(
            "{name}:{}: the file has version {}, this doyen reads version {VERSION}; run the check again to make a new \
             file, or replay this one with the doyen that wrote it",
            document::line(text, version.span().start),
            version.get_ref()
        ));
    }
    Ok(())
}

/// Whether a line has the mark of a counterexample.
fn is_kind(line: &str) -> bool {
    let said = line.split_once('=').filter(|(key, _)| key.trim() == "doyen");
    said.is_some_and(|(_, kind)| kind.contains(KIND))
}

fn no_counterexample(name: &str) -> String {
    format!(
        "{name} is not a counterexample, which has a line doyen = \"{KIND}\", nor the trace of a node; `doyen check` and \
         `doyen node --trace` write them, `doyen sim` runs scenarios"
    )
}

fn lost_end(name: &str) -> String {
    format!(
        "{name}: the file is damaged or cut short: its last line should be `{END}`; copy it again or check again"
    )
}

/// Steps as a list in TOML, one a line.
fn list(steps: &[StepText]) -> String {
    if steps.is_empty() {
        return "[]".to_owned();
    }
    let quoted =
        |step: &StepText| format!("    {},\n", toml::Value::String(step.line().to_owned()));
    format!("[\n{}]", steps.iter().map(quoted).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Counterexample {
        let scenario = Scenario::parse("test", "algorithm = \"bully\"\nmembers = 3").unwrap();
        let rules = Rules {
            budget: Budget { crashes: 2, losses: 1, ..Budget::default() },
            timers: Timers::Bounded { tick: Span::from_millis(1), detection: 2 },
            fifo: true,
            properties: vec![Property::Agreement, Property::Termination],
            from: None,
            scope: None,
        };
        let steps = |lines: &[&str]| lines.iter().copied().map(StepText::new).collect();
        let path =
            steps(&["deliver ELECTION from 1 to 2, crash after 1 #0badcafe", "wait 2 ticks"]);
        let cycle = steps(&["expire Reply at 1"]);
        let property = Property::Termination;
        Counterexample::new(scenario, &rules, Violation { property, path, cycle })
    }

    fn refused(text: &str) -> String {
        Counterexample::parse("file.toml", text).unwrap_err()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let written = example();
        let text = written.to_toml();
        let read = Counterexample::parse("file.toml", &text).unwrap();
        assert_eq!(Counterexample { source: None, ..read.clone() }, written);
        assert_eq!(read.to_toml(), text);
        let expected = "\
# A counterexample: in this run A3 does not hold.
# termination: every run comes to rest; no election is open and every live member knows a leader
# doyen replay FILE        shows it, and says why
doyen = \"counterexample\"
version = 2
property = \"A3\"
path = [
    \"deliver ELECTION from 1 to 2, crash after 1 #0badcafe\",
    \"wait 2 ticks\",
]
cycle = [
    \"expire Reply at 1\",
]

[scenario]
algorithm = \"bully\"
members = 3

[rules]
budget = { crashes = 2, losses = 1 }
timers = \"bounded\"
tick = \"1ms\"
detection = 2
fifo = true

# The end of the counterexample.
";
        assert_eq!(text, expected);
    }

    #[test]
    fn free_timers_and_no_faults_are_written_as_well() {
        let mut free = example();
        if let Course::Schedule { rules, .. } = &mut free.course {
            rules.timers = Timers::Free { expiries: 3 };
            rules.budget = Budget::default();
            rules.from = Some(Time(1_500_000));
        }
        let text = free.to_toml();
        assert!(
            text.contains(
                "budget = {}\ntimers = \"free\"\nexpiries = 3\nfifo = true\nfrom = \"1.5ms\"\n"
            ),
            "{text}"
        );
        let read = Counterexample::parse("file.toml", &text).unwrap();
        assert_eq!(read.course, free.course);
    }

    #[test]
    fn wrong_clocks_and_any_number_of_faults_are_written_as_well() {
        let mut clocked = example();
        if let Course::Schedule { rules, .. } = &mut clocked.course {
            rules.timers = Timers::Clocked { tick: Span::from_millis(2), drift: 125 };
            rules.budget = Budget { losses: ANY, ..Budget::default() };
        }
        let text = clocked.to_toml();
        let expected =
            "budget = { losses = 15 }\ntimers = \"clocked\"\ntick = \"2ms\"\ndrift = 0.125\n";
        assert!(text.contains(expected), "{text}");
        let read = Counterexample::parse("file.toml", &text).unwrap();
        assert_eq!(read.course, clocked.course);
    }

    #[test]
    fn a_timed_run_is_its_scenario() {
        let text =
            "algorithm = \"bully\"\nmembers = 3\nseed = 7\n[[fault]]\nat = \"1ms\"\ncrash = 3";
        let scenario = Scenario::parse("test", text).unwrap();
        let written = Counterexample::timed(scenario, Property::Agreement);
        let text = written.to_toml();
        assert!(text.contains("[[scenario.fault]]\nat = \"1ms\"\ncrash = 3\n"), "{text}");
        let read = Counterexample::parse("file.toml", &text).unwrap();
        assert_eq!(Counterexample { source: None, ..read }, written);
    }

    #[test]
    fn a_file_cut_short_anywhere_is_refused() {
        let timed = Counterexample::timed(example().scenario, Property::Agreement);
        for text in [example().to_toml(), timed.to_toml()] {
            for end in 0..text.len() - 1 {
                let cut = &text[..end];
                assert!(Counterexample::parse("file.toml", cut).is_err(), "{cut}");
            }
        }
    }

    #[test]
    fn whatever_is_wrong_is_named_with_its_line() {
        let text = example().to_toml();
        for (from, to, expected) in [
            ("version = 2", "version = 1", "file.toml:5: the file has version 1, this doyen reads"),
            ("version = 2\n", "", "file.toml: version is missing"),
            ("\"counterexample\"", "\"recipe\"", "file.toml is not a counterexample"),
            ("\"A3\"", "\"A9\"", "file.toml:6: unknown property `A9`; there are A1, A2"),
            ("fifo = true", "fifo = true\nlifo = true", "file.toml:25: lifo: there is no such key"),
            ("version = 2", "version = 2\nspeed = 3", "file.toml:6: speed: there is no such key"),
            ("crashes = 2", "crashes = 16", "file.toml:20: rules.budget: 16 crashes are too many"),
            ("tick = \"1ms\"", "tick = \"0\"", "file.toml:22: rules.tick: must be above zero"),
            ("tick = \"1ms\"", "tick = \"1 day\"", "file.toml:22: rules.tick: `1 day` is not a"),
            ("tick = \"1ms\"\n", "", "file.toml:21: rules.timers: timers are either"),
            ("\"bully\"", "\"buly\"", "file.toml:16: unknown algorithm `buly`"),
            ("members = 3", "members = 99", "file.toml:17: scenario.members: 99 members are too"),
            ("members = 3\n", "", "scenario.members: is missing"),
            ("# The end", "# An end", "file.toml: the file is damaged or cut short"),
        ] {
            assert!(text.contains(from), "{from}");
            let problem = refused(&text.replacen(from, to, 1));
            assert!(problem.contains(expected), "{problem}");
            assert!(!problem.contains('\n'), "{problem}");
        }
        let (head, rules) = text.split_once("[rules]").unwrap();
        let end = rules.split_once("\n\n").unwrap().1;
        assert!(refused(&format!("{head}{end}")).contains("belong together"));
    }
}
