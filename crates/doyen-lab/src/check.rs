//! `check`: explores every run of a scenario within a fault budget, and records one that breaks a property.

use std::sync::Mutex;

use doyen_check::budget::{Budget, MAX};
use doyen_check::counterexample::Counterexample;
use doyen_check::minimize::{Minimized, minimize};
use doyen_check::part::Scope;
use doyen_check::property::Property;
use doyen_check::replay::Replay;
use doyen_check::search::{Limit, Limits, Plan, Progress as Explored};
use doyen_check::selection::{Selection, Wanted};
use doyen_check::{Report, Rules, Timers};
use doyen_core::registry::Purpose;
use doyen_sim::fault::Action;
use doyen_sim::scenario::{Case, Expect, Scenario};
use doyen_sim::words::grouped;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::problem::Problem;
use crate::recorded::Run;
use crate::source::Source;
use crate::{Progress, limits, schedule, words};

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    source: Source,
    #[serde(default)]
    property: Option<String>,
    #[serde(default)]
    budget: Budget,
    #[serde(default)]
    max_states: Option<u64>,
}

/// The result of an exploration.
#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    verdict: &'static str,
    text: String,
    property: Option<&'static str>,
    explored: Extent,
    not_covered: String,
    /// Whether the scenario has faults of its own, which were not tried.
    faults_replaced: bool,
    run: Option<Box<Run>>,
    source: Option<Source>,
    command: String,
}

/// The suggested check of a scenario: at first the property that it is known to violate, with a budget for its faults.
#[derive(Debug, Serialize)]
pub(crate) struct Suggestion {
    property: &'static str,
    budget: Budget,
    /// The properties that mean something to its algorithm, by name.
    properties: Vec<&'static str>,
    /// The faults that mean something to it.
    faults: Vec<&'static str>,
}

impl Suggestion {
    pub(crate) fn of(scenario: &Scenario, case: &Case) -> Self {
        let algorithm = case.algorithm;
        let expects = |is: fn(&Expect) -> bool| scenario.expect.as_ref().is_some_and(is);
        let never_rests = expects(|expect| expect.quiet == Some(false));
        let timers = Timers::usual(case);
        // With clocked timers the ends of runs are not checked.
        let is_endless = matches!(timers, Timers::Clocked { .. });
        let lets_two_in = expects(|expect| expect.two_inside == Some(true)) || is_endless;
        let property = match algorithm.purpose() {
            Purpose::Excludes if lets_two_in => Property::OneInside,
            Purpose::Excludes => Property::Served,
            Purpose::Records => Property::ConsistentCut,
            Purpose::Serves => Property::DeliveriesStay,
            // The members of a quorum may campaign for as long as a fault lasts.
            Purpose::Elects if never_rests && !algorithm.has_leases() => Property::Termination,
            Purpose::Elects => Property::Agreement,
        };
        let takes_snapshots = algorithm.purpose() == Purpose::Records;
        let has = |is_such: fn(&Action) -> bool| {
            scenario.fault.iter().filter(|fault| is_such(&fault.what)).count()
        };
        // A larger budget would take too long for a page.
        let few = |count: usize| count.min(2) as u8;
        let budget = Budget {
            crashes: few(has(|action| matches!(action, Action::Crash { .. }))),
            restarts: few(has(|action| matches!(action, Action::Restart { .. }))),
            campaigns: few(has(|action| matches!(action, Action::Campaign(_)))),
            losses: few(scenario.drop.len()),
            duplications: few(scenario.twice.len()),
            snapshots: u8::from(takes_snapshots),
            ..Budget::default()
        };
        let fifo = case.network.fifo;
        let properties = Property::ALL.into_iter().filter(|property| {
            property.means_nothing_to(algorithm, fifo).is_none()
                && property.is_explorable(timers)
                && (property.is_safety() || !is_endless)
                && (*property != Property::ConsistentCut || takes_snapshots)
                && *property != Property::CausalOrder
        });
        let means_something = |&(fault, _): &(&str, u8)| match fault {
            _ if algorithm.elects() => true,
            "crashes" | "restarts" | "losses" | "duplications" => true,
            _ if algorithm.has_leases() => false,
            "suspicions" => algorithm.heeds_reports(case.mode()),
            "campaigns" => algorithm.heeds_campaigns(),
            _ => true,
        };
        let faults = budget.items().into_iter().filter(means_something).map(|(fault, _)| fault);
        Self {
            property: property.name(),
            budget,
            properties: properties.map(Property::name).collect(),
            faults: faults.collect(),
        }
    }
}

/// How much was explored.
#[derive(Clone, Copy, Debug, Serialize)]
struct Extent {
    states: u64,
    steps: u64,
    depth: u32,
}

impl From<Explored> for Extent {
    fn from(explored: Explored) -> Self {
        Self { states: explored.states, steps: explored.generated, depth: explored.depth }
    }
}

/// A valid request.
struct Question {
    scenario: Scenario,
    case: Case,
    rules: Rules,
    selection: Selection,
    plan: Plan,
    had_faults: bool,
}

pub(crate) fn check(request: &Request, progress: Progress<'_>) -> Result<Answer, Problem> {
    let question = Question::new(request)?;
    let command = command(request);
    let reporter = Mutex::new(Reporter { progress, found: None, states: 0, since: 0 });
    let watch =
        |explored: &Explored| reporter.lock().is_ok_and(|mut reporter| reporter.report(explored));
    let Question { case, rules, plan, .. } = &question;
    let found = doyen_check::check(case, rules, plan, &watch);
    let explored = found.progress.into();
    let (not_covered, faults_replaced) = (question.not_covered(), question.had_faults);
    let Some(violation) = found.violation.clone() else {
        let verdict = if found.limit.is_none() { "holds" } else { "stopped" };
        let text = question.verdict(&found);
        let property = request.property.as_ref().map(|_| rules.properties[0].name());
        let (run, source) = (None, None);
        return Ok(Answer {
            verdict,
            text,
            property,
            explored,
            not_covered,
            faults_replaced,
            run,
            source,
            command,
        });
    };
    // Smaller cases have fewer states, and there is no clock to stop an attempt that finds nothing.
    let states = Some(found.progress.states * 2 + 10_000);
    let plan = Plan { limits: Limits { states, ..plan.limits }, ..plan.clone() };
    if let Ok(mut reporter) = reporter.lock() {
        reporter.found = Some(found.progress);
    }
    let Minimized { mut scenario, rules, violation, .. } =
        minimize(&question.scenario, rules, violation, &plan, &watch);
    // This run differs from the one that the scenario was written for.
    scenario.title = format!("{} does not hold", violation.property);
    scenario.about = violation.property.words().to_owned();
    let property = Some(violation.property.name());
    let steps = violation.path.len() + violation.cycle.len();
    let file = Counterexample::new(scenario, &rules, violation);
    let toml = file.to_toml();
    let replay = schedule::replay(&file)?;
    let source = Source { toml: Some(toml.clone()), ..Source::default() };
    let run = schedule::record_replay(source.clone(), toml, &replay);
    Ok(Answer {
        verdict: "violated",
        text: violated(&replay, steps),
        property,
        explored,
        not_covered,
        faults_replaced,
        run: Some(Box::new(run)),
        source: Some(source),
        command,
    })
}

/// How many states are explored between two reports of progress.
const REPORT_EVERY: u64 = 2_000;

/// Reports progress from time to time, counted in states.
struct Reporter<'p> {
    progress: Progress<'p>,
    /// What was explored until a violation was found, while the violation is minimized.
    found: Option<Explored>,
    /// The states of the search that is under way.
    states: u64,
    /// The states since the last report.
    since: u64,
}

impl Reporter<'_> {
    fn report(&mut self, explored: &Explored) -> bool {
        // The next search begins at zero.
        self.since += explored.states.checked_sub(self.states).unwrap_or(explored.states);
        self.states = explored.states;
        if self.since < REPORT_EVERY {
            return true;
        }
        self.since = 0;
        let shown = self.found.as_ref().unwrap_or(explored);
        let mut report = json!(Extent::from(*shown));
        report["frontier"] = shown.frontier.into();
        report["minimizing"] = self.found.is_some().into();
        (self.progress)(&report.to_string())
    }
}

impl Question {
    fn new(request: &Request) -> Result<Self, Problem> {
        let mut scenario = request.source.open()?.scenario;
        let had_faults = scenario.drop_faults();
        scenario.expect = None;
        let budget = request.budget;
        if budget.snapshots > 0 {
            scenario.fifo.get_or_insert(true);
        }
        let case = scenario.resolve()?;
        if let Some((name, _)) = budget.items().into_iter().find(|&(_, count)| count > MAX) {
            let detail = format!("{name}: use at most {MAX}");
            return Err(Problem::of_scenario(name, detail));
        }
        let wanted = request.property.as_ref().map(|name| name.parse::<Wanted>());
        let wanted = wanted.transpose().map_err(|it| Problem::of_scenario("property", it))?;
        let timers = Timers::usual(&case);
        let selection = Selection::explorable(wanted.as_slice(), &case, budget, timers)?;
        let rules = Rules {
            budget,
            timers,
            fifo: case.network.fifo,
            properties: selection.checked.clone(),
            from: None,
            scope: Scope::of(&case),
        };
        rules.suit(&case)?;
        let states = request.max_states.unwrap_or(limits::USUAL_STATES).clamp(1, limits::STATES);
        let limits =
            Limits { states: Some(states), memory: Some(limits::MEMORY), ..Limits::default() };
        let plan = Plan { reduce: true, threads: 1, limits };
        Ok(Self { scenario, case, rules, selection, plan, had_faults })
    }

    /// The result if nothing is violated, as a sentence.
    fn verdict(&self, found: &Report) -> String {
        let states = grouped(found.progress.states);
        let scope = self.scope();
        match found.limit {
            None if self.had_faults => format!(
                "Holds in all {states} states, but the scenario's own faults are not among them: {scope}."
            ),
            None => format!("Holds in all {states} states: {scope}."),
            Some(Limit::Interrupt) => {
                format!("Stopped after {states} states without a violation: {scope}.")
            }
            Some(Limit::Memory) => {
                format!("Not violated in {states} states; there is no memory for more: {scope}.")
            }
            Some(_) => format!("Not violated in the first {states} states: {scope}."),
        }
    }

    /// `hardened, 3 members of which 3 is down, at most 1 restart`.
    fn scope(&self) -> String {
        let case = &self.case;
        let mut text =
            format!("{}, {}, {} members", case.algorithm, case.mode(), case.members().len());
        if !case.dead.is_empty() {
            let verb = if case.dead.len() == 1 { "is" } else { "are" };
            text += &format!(" of which {} {verb} down", words::ids(&case.dead));
        }
        match self.rules.budget == Budget::default() {
            true => text + ", no faults",
            false => text + &format!(", at most {}", self.rules.budget),
        }
    }

    /// What the exploration does not cover.
    fn not_covered(&self) -> String {
        let mut open = Vec::new();
        if self.had_faults {
            open.push("the faults of the scenario, which the budget replaces".to_owned());
        }
        open.push("more faults than the budget allows".to_owned());
        open.push(match self.rules.timers {
            Timers::Bounded { tick, .. } => format!("messages that take longer than D, {tick}"),
            Timers::Free { .. } | Timers::Clocked { .. } => {
                "time: steps happen in any order".to_owned()
            }
        });
        open.push("larger groups".to_owned());
        let skipped = self.selection.skipped.iter();
        open.extend(skipped.map(|(property, why)| format!("{property} ({why})")));
        format!("Not covered: {}.", open.join("; "))
    }
}

/// What is wrong, as a sentence: `After 7 steps 1 follows 2 and 3 leads, and nothing is left to do that could change that.`
fn violated(replay: &Replay, steps: usize) -> String {
    let facts: Vec<String> = replay.facts.iter().map(ToString::to_string).collect();
    let ending = replay.ending.words().map_or_else(String::new, |words| format!(", {words}"));
    let steps = words::count(steps as u64, "step");
    match facts.is_empty() {
        true => format!("After {steps}: {}{ending}.", replay.property.words()),
        false => format!("After {steps} {}{ending}.", facts.join(" and ")),
    }
}

/// The command that makes the same check.
fn command(request: &Request) -> String {
    let mut command = request.source.command_of("check");
    for (name, count) in request.budget.items().into_iter().filter(|&(_, count)| count > 0) {
        command += &format!(" --{name} {count}");
    }
    if let Some(property) = request.property.as_ref().and_then(|it| it.parse::<Property>().ok()) {
        command += &format!(" --property {property}");
    }
    command
}
