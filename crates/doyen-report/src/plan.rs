//! A plan: many runs, and the charts to draw of them, as a user writes it in TOML.
//!
//! ```toml
//! title = "Does the number of messages depend on who notices?"
//! seed = 1                                  # everything random comes from it
//!
//! [base]                                    # what all runs share: the keys of a scenario
//! members = 1000
//!
//! [[sweep]]                                 # every combination of these is run
//! name = "detector"
//! algorithms = ["bully", "modified-bully"]  # or "all"
//! initiator = "1..1000 step 111"            # the r-th lowest live member notices
//!
//! [[report]]
//! title = "Messages against the detector's number"
//! x = "initiator"
//! y = "messages"
//! series = "algorithm"
//! scale = "log-y"
//! ```
//!
//! These keys can be swept. A value is a number, a text, a list of them, or, for numbers, a range: `"1..10"`, `"5..50
//! step 5"`; both ends are included.
//!
//! | key | values |
//! |---|---|
//! | `algorithms` | names, or `all` elections, or `exclusions` |
//! | `modes` | `textbook` (default), `hardened`, literal variants; one that an algorithm does not have is left out |
//! | `members` | how many members |
//! | `initiator` | the member that detects the crash: r for the r-th lowest live member, or `lowest`, `middle`, `highest`, `random` |
//! | `initiators` | how many detect the crash at once, drawn at random; or `all`, `none` |
//! | `faults` | names of `[faults.NAME]` tables, each with `fault` and `chaos` as in a scenario; or `none` |
//! | `seeds` | how many seeds, derived from the plan's; or a range of seeds to take as they are |
//! | `delay`, `processing`, `bound`, `loss`, `duplicate`, `fifo`, `reliable` | as in a scenario |
//! | `window`, `heartbeat`, `preempt`, `detector` | as in a scenario |
//! | `convention`, `contact_dead`, `ring`, `announce` | as in a scenario |
//! | `requests`, `repeat`, `hold`, `think`, `sets`, `tree` | as in a scenario, for mutual exclusion |
//!
//! The k-th seed of a plan is the same in every sweep and for every algorithm: so runs can be compared, and two rows
//! differ only in the swept values.
//!
//! A report is a line chart of the rows of one `sweep` (or of all) that have the values of `only`
//! (`{ mode = "hardened", agreed = true }`), a colour for each `series`: the median of `y` at each `x`, with the 5th to
//! 95th percentile where there are several; with `formula = true` the closed form as a thin line.

pub(crate) mod axis;
mod chart;
mod draft;

use std::collections::BTreeMap;

use doyen_core::config::Mode;
use doyen_core::registry::Algorithm;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use toml::{Table, Value};

use doyen_sim::document;
use doyen_sim::random::splitmix;
use doyen_sim::scenario::{Case, Scenario, ScenarioError};

use axis::Axis;
pub use chart::Report;

type Result<T> = std::result::Result<T, ScenarioError>;

/// All independent mistakes of a plan, or of a part of it.
type Mistakes = Vec<ScenarioError>;

/// The result, if there is one; otherwise the mistake is added to the others.
fn gather<T>(mistakes: &mut Mistakes, result: Result<T>) -> Option<T> {
    result.map_err(|mistake| mistakes.push(mistake)).ok()
}

/// The default plan.
pub const DEFAULT_PLAN: &str = include_str!("../plans/default.toml");

/// Its name in errors.
pub const DEFAULT_PLAN_NAME: &str = "default.toml";

/// The same for mutual exclusion.
pub const EXCLUSION_PLAN: &str = include_str!("../../../plans/exclusion.toml");

/// The name of that plan in errors.
pub const EXCLUSION_PLAN_NAME: &str = "exclusion.toml";

/// The default message limit of a plan, because that of a scenario would be too high for many runs.
const MESSAGE_LIMIT: i64 = 20_000_000;

/// More seeds than any distribution needs.
const MAX_SEEDS: u64 = 100_000;

/// A valid plan.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Its title.
    pub title: String,
    /// A description, for readers.
    pub about: String,
    /// The charts.
    pub reports: Vec<Report>,
    base: Table,
    faults: BTreeMap<String, Table>,
    sweeps: Vec<Sweep>,
    size: Size,
}

/// How much a plan asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// How many runs.
    pub runs: u64,
    /// Roughly how many bytes the largest run needs.
    pub peak_bytes: u64,
}

/// How much a plan may ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// How many runs.
    pub runs: u64,
    /// The most bytes for all runs that are simulated at once.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { runs: 200_000, bytes: 4 << 30 }
    }
}

/// A plan as it is written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    title: String,
    about: String,
    seed: Option<u64>,
    /// Read by itself ([`document::read_beside`]).
    #[serde(deserialize_with = "leave_out")]
    base: Scenario,
    faults: BTreeMap<String, Table>,
    sweep: Vec<BTreeMap<String, Axis>>,
    report: Vec<chart::Entry>,
}

fn leave_out<'de, D: Deserializer<'de>>(base: D) -> std::result::Result<Scenario, D::Error> {
    IgnoredAny::deserialize(base).map(|_| Scenario::default())
}

/// One sweep: every combination of what its keys run through.
#[derive(Clone, Debug)]
struct Sweep {
    name: String,
    machines: Vec<(Algorithm, Mode)>,
    axes: Vec<(&'static str, Vec<Value>)>,
    seeds: Vec<u64>,
    /// How many runs all sweeps before this one have.
    before: u64,
    runs: u64,
}

/// One run of a plan.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its number, from 1.
    pub run: u64,
    /// The name of its sweep.
    pub sweep: String,
    /// The name of its set of faults; `none` if there are none.
    pub faults: String,
    /// The run itself, in which only what its seed decides is random: written to a file it is a scenario.
    pub scenario: Scenario,
    /// The same, resolved.
    pub case: Case,
}

impl Plan {
    /// Reads a plan from TOML. `name` is what errors call the text; they name the line as well. Every combination is
    /// checked: a plan that is read can be run.
    pub fn from_toml(name: &str, text: &str, limits: &Limits) -> std::result::Result<Self, String> {
        document::read_beside(name, text, "base", Scenario::from_value, |written, base| {
            Written { base: base.unwrap_or_default(), ..written }.resolve(limits)
        })
    }

    /// How much it asks for.
    pub fn size(&self) -> Size {
        self.size
    }

    /// The run of this number, from 1.
    pub fn job(&self, run: u64) -> Result<Job> {
        let sweep =
            self.sweeps.iter().find(|sweep| run > sweep.before && run - sweep.before <= sweep.runs);
        let sweep = sweep.ok_or_else(|| {
            ScenarioError::new(
                "run",
                format!("there is no run {run}; the plan has {}", self.size.runs),
            )
        })?;
        self.job_of(sweep, run)
    }

    /// The combination that `run` stands for: algorithms change most slowly, seeds fastest.
    fn job_of(&self, sweep: &Sweep, run: u64) -> Result<Job> {
        let mut rest = run - sweep.before - 1;
        let mut digit = |base: usize| {
            let digit = rest % base as u64;
            rest /= base as u64;
            digit as usize
        };
        let seed = sweep.seeds[digit(sweep.seeds.len())];
        let mut settings: Vec<(&str, &Value)> = (sweep.axes.iter().rev())
            .map(|(key, values)| (*key, &values[digit(values.len())]))
            .collect();
        settings.reverse();
        let (algorithm, mode) = sweep.machines[digit(sweep.machines.len())];

        let mut draft = draft::Draft::new(&self.base, algorithm.name(), &mode.to_string(), seed);
        for (key, value) in settings {
            draft.set(key, value)?;
        }
        if let Some(set) = self.faults.get(&draft.faults) {
            draft.add_faults(set);
        }
        let (faults, scenario, case) = draft.finish()?;
        Ok(Job { run, sweep: sweep.name.clone(), faults, scenario, case })
    }
}

impl Written {
    fn resolve(self, limits: &Limits) -> std::result::Result<Plan, Mistakes> {
        let mut mistakes = self.check_base();
        let sweeps = self.resolve_sweeps(limits, &mut mistakes);
        let named = self.sweep.iter().enumerate();
        let names: Vec<String> = named.map(|(index, entry)| name_of(index, entry)).collect();
        let reports = self.report.iter().enumerate().filter_map(|(index, entry)| {
            let wrong = |found: Mistakes| {
                mistakes.extend(found.into_iter().map(|error| at("report", index, error)));
            };
            entry.resolve(&names).map_err(wrong).ok()
        });
        let reports = reports.collect();
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let mut base = self.base.to_table();
        base.entry("message_limit").or_insert(Value::Integer(MESSAGE_LIMIT));
        let runs = sweeps.iter().map(|sweep| sweep.runs).sum();
        let mut plan = Plan {
            title: self.title.trim().to_owned(),
            about: self.about.trim().to_owned(),
            reports,
            base,
            faults: self.faults,
            sweeps,
            size: Size { runs, peak_bytes: 0 },
        };
        plan.size.peak_bytes = plan.check_every_combination(limits)?;
        Ok(plan)
    }

    fn check_base(&self) -> Mistakes {
        let mut mistakes = Vec::new();
        let mut wrong = |key: String, problem: &str| {
            mistakes.push(ScenarioError::new(key, problem));
        };
        if self.base.seed.is_some() {
            let problem = "write the seed at the head of the plan, or seeds in a sweep";
            wrong("base.seed".to_owned(), problem);
        }
        if self.base.expect.is_some() {
            let problem = "a plan has many runs; expectations belong to a scenario";
            wrong("base.expect".to_owned(), problem);
        }
        for (name, set) in &self.faults {
            for key in set.keys().filter(|&key| key != "fault" && key != "chaos") {
                let problem = "a set of faults has `fault` and `chaos` only";
                wrong(format!("faults.{name}.{key}"), problem);
            }
        }
        if self.sweep.is_empty() {
            wrong("sweep".to_owned(), "is missing; add a [[sweep]] with what to run through");
        }
        mistakes
    }

    /// The valid sweeps.
    fn resolve_sweeps(&self, limits: &Limits, mistakes: &mut Mistakes) -> Vec<Sweep> {
        let mut sweeps: Vec<Sweep> = Vec::with_capacity(self.sweep.len());
        let mut before = 0_u64;
        for (index, entry) in self.sweep.iter().enumerate() {
            let mut wrong = |error| mistakes.push(at("sweep", index, error));
            let sweep = match self.resolve_sweep(index, entry, before) {
                Ok(sweep) => sweep,
                Err(found) => {
                    found.into_iter().for_each(wrong);
                    continue;
                }
            };
            let runs = before.saturating_add(sweep.runs);
            if before <= limits.runs && runs > limits.runs {
                let problem =
                    format!("makes {runs} runs or more; at most {}. Sweep less", limits.runs);
                wrong(ScenarioError::new("name", problem));
            }
            before = runs;
            if sweeps.iter().any(|other| other.name == sweep.name) {
                let problem =
                    format!("there are two sweeps `{}`; give each a name of its own", sweep.name);
                wrong(ScenarioError::new("name", problem));
            }
            sweeps.push(sweep);
        }
        sweeps
    }

    fn resolve_sweep(
        &self,
        index: usize,
        entry: &BTreeMap<String, Axis>,
        before: u64,
    ) -> std::result::Result<Sweep, Mistakes> {
        let mut mistakes = Vec::new();
        let name = name_of(index, entry);
        let machines =
            self.resolve_machines(entry.get("algorithms"), entry.get("modes"), &mut mistakes);
        let seeds =
            gather(&mut mistakes, self.resolve_seeds(entry.get("seeds"))).unwrap_or_default();
        let mut axes = Vec::new();
        for &key in draft::KEYS {
            let values =
                entry.get(key).and_then(|axis| gather(&mut mistakes, draft::values(key, axis)));
            axes.extend(values.map(|values| (key, values)));
        }
        let known: Vec<&str> =
            ["name", "algorithms", "modes", "seeds"].iter().chain(draft::KEYS).copied().collect();
        for unknown in entry.keys().filter(|key| !known.contains(&key.as_str())) {
            let problem = format!("cannot be swept; {}", document::suggestion(unknown, &known));
            mistakes.push(ScenarioError::new(unknown, problem));
        }
        gather(&mut mistakes, self.check_fault_names(&axes));
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let counts =
            axes.iter().map(|(_, values)| values.len()).chain([machines.len(), seeds.len()]);
        let runs = counts.fold(1, |runs: u64, count| runs.saturating_mul(count as u64));
        Ok(Sweep { name, machines, axes, seeds, before, runs })
    }

    /// Every algorithm in every mode that it has.
    fn resolve_machines(
        &self,
        algorithms: Option<&Axis>,
        modes: Option<&Axis>,
        mistakes: &mut Mistakes,
    ) -> Vec<(Algorithm, Mode)> {
        let names = |axis: Option<&Axis>, base: Option<String>| -> Vec<String> {
            axis.map_or_else(|| base.into_iter().collect(), Axis::texts)
        };
        let base = self.base.algorithm.map(|algorithm| algorithm.to_string());
        let algorithms = match names(algorithms, base).as_slice() {
            [] => {
                let problem = "is missing; name some, or write \"all\"";
                mistakes.push(ScenarioError::new("algorithms", problem));
                Vec::new()
            }
            [all] if all == "all" => Algorithm::ELECTIONS.to_vec(),
            [all] if all == "exclusions" => Algorithm::EXCLUSIONS.to_vec(),
            some => parse_names(some, "algorithms", mistakes),
        };
        let modes: Vec<Mode> =
            match names(modes, self.base.mode.map(|mode| mode.to_string())).as_slice() {
                [] => vec![Mode::Textbook],
                some => parse_names(some, "modes", mistakes),
            };
        if !mistakes.is_empty() {
            return Vec::new();
        }
        for mode in modes.iter().filter(|&&mode| !algorithms.iter().any(|a| a.reads(mode))) {
            let problem = format!("none of these algorithms has `{mode}`");
            mistakes.push(ScenarioError::new("modes", problem));
        }
        let all = algorithms
            .iter()
            .flat_map(|&algorithm| modes.iter().map(move |&mode| (algorithm, mode)));
        all.filter(|(algorithm, mode)| algorithm.reads(*mode)).collect()
    }

    fn resolve_seeds(&self, axis: Option<&Axis>) -> Result<Vec<u64>> {
        let derived = |count: u64| {
            (0..count).map(|index| derive_seed(self.seed.unwrap_or(1), index)).collect()
        };
        let Some(axis) = axis else { return Ok(derived(1)) };
        let wrong = |problem: String| ScenarioError::new("seeds", problem);
        let numbers = axis.numbers(&[]).map_err(wrong)?;
        let numbers: Vec<u64> =
            numbers.iter().filter_map(Value::as_integer).map(|number| number as u64).collect();
        match axis.values() {
            [Value::Integer(0)] => Err(wrong("no seed, no run; give at least 1".to_owned())),
            [Value::Integer(_)] if numbers[0] > MAX_SEEDS => {
                Err(wrong(format!("{} are too many; at most {MAX_SEEDS}", numbers[0])))
            }
            [Value::Integer(_)] => Ok(derived(numbers[0])),
            _ => Ok(numbers),
        }
    }

    fn check_fault_names(&self, axes: &[(&str, Vec<Value>)]) -> Result<()> {
        let names = axes.iter().filter(|(key, _)| *key == "faults").flat_map(|(_, values)| values);
        for name in names.map(axis::text) {
            if name != "none" && !self.faults.contains_key(&name) {
                let problem = format!("there is no table [faults.{name}]");
                return Err(ScenarioError::new("faults", problem));
            }
        }
        Ok(())
    }
}

impl Plan {
    /// Resolves each combination once, with its first seed, and returns how many bytes the largest needs; or the first
    /// mistake of each sweep.
    fn check_every_combination(&self, limits: &Limits) -> std::result::Result<u64, Mistakes> {
        let (mut peak, mut mistakes) = (0, Vec::new());
        for (index, sweep) in self.sweeps.iter().enumerate() {
            let bytes = self.check_combinations(sweep, limits);
            let bytes = bytes.map_err(|error| self.locate(index, error));
            peak = peak.max(gather(&mut mistakes, bytes).unwrap_or_default());
        }
        // What is wrong with the base is wrong in every sweep.
        mistakes.dedup();
        if mistakes.is_empty() { Ok(peak) } else { Err(mistakes) }
    }

    fn check_combinations(&self, sweep: &Sweep, limits: &Limits) -> Result<u64> {
        let mut peak = 0;
        for offset in (0..sweep.runs).step_by(sweep.seeds.len()) {
            let job = self.job_of(sweep, sweep.before + offset + 1)?;
            let bytes = job.case.memory_estimate();
            if bytes > limits.bytes {
                let problem = format!(
                    "{} with {} members needs about {} MB; at most {} MB",
                    job.case.algorithm,
                    job.case.members().len(),
                    bytes >> 20,
                    limits.bytes >> 20
                );
                return Err(ScenarioError::new("members", problem));
            }
            peak = peak.max(bytes);
        }
        Ok(peak)
    }

    /// Whether an invalid key is in the sweep, in its faults or in the base.
    fn locate(&self, index: usize, error: ScenarioError) -> ScenarioError {
        let swept = |name: &str| self.sweeps[index].axes.iter().any(|(key, _)| *key == name);
        let head = error.key.split(['[', '.']).next().unwrap_or_default().to_owned();
        let in_base = || self.base.contains_key(&head);
        match head.as_str() {
            "algorithm" => at("sweep", index, ScenarioError::new("algorithms", error.problem)),
            "mode" => at("sweep", index, ScenarioError::new("modes", error.problem)),
            "initiators" if swept("initiator") => {
                at("sweep", index, ScenarioError::new("initiator", error.problem))
            }
            "fault" | "chaos" if swept("faults") => {
                at("sweep", index, ScenarioError::new("faults", error.to_string()))
            }
            key if !swept(key) && in_base() => {
                ScenarioError::new(format!("base.{}", error.key), error.problem)
            }
            _ => at("sweep", index, error),
        }
    }
}

/// The name of a sweep; without one, its number.
fn name_of(index: usize, sweep: &BTreeMap<String, Axis>) -> String {
    sweep.get("name").map_or_else(|| format!("sweep-{}", index + 1), |name| name.texts().join(" "))
}

fn parse_names<T: std::str::FromStr<Err = String>>(
    names: &[String],
    key: &str,
    mistakes: &mut Mistakes,
) -> Vec<T> {
    let parse =
        |name: &String| name.parse().map_err(|problem: String| ScenarioError::new(key, problem));
    names.iter().filter_map(|name| gather(mistakes, parse(name))).collect()
}

/// The error in the `index`-th table of an array of tables.
fn at(table: &str, index: usize, error: ScenarioError) -> ScenarioError {
    ScenarioError::new(format!("{table}[{index}].{}", error.key), error.problem)
}

/// The `index`-th seed of a plan. It has 32 bits, so that spreadsheets can hold it.
fn derive_seed(plan: u64, index: u64) -> u64 {
    splitmix(splitmix(plan) ^ index) >> 32
}

#[cfg(test)]
mod tests;
