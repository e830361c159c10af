//! The report of an exploration, as text and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use doyen_check::budget::{ANY, Budget};
use doyen_check::fingerprint::chance_of_omission;
use doyen_check::minimize::Minimized;
use doyen_check::property::Property;
use doyen_check::search::{Limit, Plan, Progress};
use doyen_check::selection::Selection;
use doyen_check::{Report as Found, Rules, Scene, Timers, Violation};
use doyen_core::members::NodeId;
use doyen_sim::scenario::Case;
use serde_json::{Value, json};

use crate::cli::Answer;
use crate::cli::terminal::count;

pub(super) struct Report<'a> {
    pub(super) case: Case,
    pub(super) rules: Rules,
    pub(super) selection: Selection,
    pub(super) plan: Plan,
    pub(super) found: Found,
    /// The shrunk counterexample and its file.
    pub(super) least: Option<(&'a Minimized, &'a Path)>,
}

impl Report<'_> {
    pub(super) fn print(&self, json: bool) -> Result<Answer> {
        let text = if json { format!("{}\n", self.as_json()) } else { self.as_text()? };
        io::stdout().write_all(text.as_bytes())?;
        Ok(match (&self.least, self.found.limit) {
            (Some(_), _) => Answer::No,
            (None, Some(Limit::Interrupt)) => Answer::Interrupted,
            (None, Some(_)) => Answer::Limit,
            (None, None) => Answer::Yes,
        })
    }

    fn as_text(&self) -> Result<String> {
        let Self { case, rules, found, .. } = self;
        let Progress { states, generated, depth, memory, elapsed, stranded, .. } = found.progress;
        let mut text = String::new();
        let members = count(case.members().len() as u64, "member");
        writeln!(text, "{}, {}, {members}", case.algorithm, case.mode())?;
        if let Some(scope) = rules.scope {
            writeln!(text, "  part          {scope}")?;
        }
        let requests = self.requests();
        if !requests.is_empty() {
            let each: Vec<String> =
                requests.iter().map(|(id, times)| times_of(*id, *times)).collect();
            writeln!(text, "  requests      {}", each.join(", "))?;
        }
        writeln!(text, "  fault budget  {}", rules.budget)?;
        match rules.timers {
            Timers::Free { expiries: 0 } => {
                writeln!(text, "  timers        no timers in this model")?;
            }
            timers => writeln!(text, "  timers        {timers}")?,
        }
        writeln!(text, "  links         {}", if rules.fifo { "FIFO" } else { "unordered" })?;
        writeln!(
            text,
            "  explored      {}, {}, depth {depth}, in {:.2} s ({:.0} states/s), {:.1} MB",
            count(states, "state"),
            count(generated, "step"),
            elapsed.as_secs_f64(),
            states_per_second(&found.progress),
            memory as f64 / 1e6,
        )?;
        if stranded > 0 {
            let states = count(stranded, "state");
            writeln!(
                text,
                "  cut off       {states} with an armed timer that reached its expiry limit"
            )?;
        }
        writeln!(text)?;
        match (&self.least, found.limit) {
            (Some((least, file)), _) => write_violation(&mut text, &least.violation, file)?,
            (None, Some(limit)) => self.write_partial_verdict(&mut text, limit)?,
            (None, None) => {
                write!(text, "Holds in every run:\n{}", list_properties(&self.selection.checked))?;
            }
        }
        if self.least.is_none() {
            text += &self.selection.describe_skipped();
        }
        Ok(text)
    }

    /// How often each member may ask to enter the critical section.
    fn requests(&self) -> BTreeMap<NodeId, u8> {
        Scene::of(&self.case).requests
    }

    fn write_partial_verdict(&self, text: &mut String, limit: Limit) -> Result<()> {
        let stopped = match limit {
            Limit::Interrupt => "Interrupted".to_owned(),
            _ => format!("Stopped at the {} limit", limit_name(limit)),
        };
        let frontier = count(self.found.progress.frontier, "state");
        writeln!(text, "{stopped}: {frontier} reached but not fully expanded.")?;
        let (always, at_the_end): (Vec<_>, Vec<_>) =
            self.selection.checked.iter().partition(|property| property.is_safety());
        if !always.is_empty() {
            write!(text, "Not violated in the expanded states:\n{}", list_properties(always))?;
        }
        if !at_the_end.is_empty() {
            let properties = list_properties(at_the_end);
            writeln!(
                text,
                "Not violated in expanded states where nothing is left to do (no search for endless runs):"
            )?;
            text.push_str(&properties);
        }
        Ok(())
    }

    fn as_json(&self) -> Value {
        let Self { case, rules, plan, selection, found, .. } = self;
        let progress = &found.progress;
        let scope = rules.scope;
        json!({
            "verdict": match (self.least, found.limit) {
                (Some(_), _) => "violated",
                (None, Some(_)) => "limit",
                (None, None) => "holds",
            },
            "property": self.least.map(|(least, _)| least.violation.property.name()),
            "properties": selection.checked.iter().map(|it| it.name()).collect::<Vec<_>>(),
            "not_judged": selection.skipped.iter().map(skipped_json).collect::<Vec<_>>(),
            "algorithm": case.algorithm.name(),
            "mode": case.mode().to_string(),
            "members": case.members().len(),
            "part": scope.map(|scope| scope.part.name()),
            "terms": scope.map(|scope| scope.terms),
            "mixed_timings": scope.map(|scope| scope.mixed),
            "without": scope.and_then(|scope| scope.without).map(|rule| rule.to_string()),
            "requests": case.requests.as_ref().map(|_| self.requests()),
            "budget": budget_json(rules.budget),
            "timers": rules.timers.to_string(),
            "fifo": rules.fifo,
            "reduction": plan.reduce,
            "threads": plan.threads,
            "states": progress.states,
            "generated": progress.generated,
            "depth": progress.depth,
            "complete": self.least.is_none() && found.limit.is_none(),
            "endless_runs_sought": found.sought_endless,
            "limit": found.limit.map(limit_name),
            "frontier": progress.frontier,
            "stranded": progress.stranded,
            "chance_of_omission": chance_of_omission(progress.states),
            "memory": progress.memory,
            "seconds": progress.elapsed.as_secs_f64(),
            "counterexample": self.least.map(|(least, file)| counterexample_json(least, file)),
        })
    }
}

/// `2` or `2 three times`.
fn times_of(id: NodeId, times: u8) -> String {
    match times {
        1 => id.to_string(),
        2 => format!("{id} twice"),
        _ => format!("{id} {times} times"),
    }
}

fn counterexample_json(least: &Minimized, file: &Path) -> Value {
    let steps = |moves: &[_]| moves.iter().map(ToString::to_string).collect::<Vec<String>>();
    json!({
        "file": file.display().to_string(),
        "members": least.scenario.members,
        "budget": budget_json(least.rules.budget),
        "path": steps(&least.violation.path),
        "cycle": steps(&least.violation.cycle),
    })
}

fn budget_json(budget: Budget) -> Value {
    let number = |(name, number): (&str, u8)| {
        (name.to_owned(), if number == ANY { json!("any") } else { json!(number) })
    };
    Value::Object(budget.items().into_iter().map(number).collect())
}

pub(super) fn skipped_json((property, why): &(Property, &str)) -> Value {
    json!({ "property": property.name(), "why": why })
}

/// One line for each.
pub(super) fn list_properties<'p>(properties: impl IntoIterator<Item = &'p Property>) -> String {
    let line = |property: &Property| format!("  {:20} {}\n", property.name(), property.words());
    properties.into_iter().map(line).collect()
}

fn limit_name(limit: Limit) -> &'static str {
    match limit {
        Limit::States => "states",
        Limit::Time => "time",
        Limit::Memory => "memory",
        Limit::Depth => "depth",
        Limit::Interrupt => "interrupt",
    }
}

fn write_violation(text: &mut String, violation: &Violation, file: &Path) -> Result<()> {
    let Violation { property, path, cycle } = violation;
    writeln!(text, "Violated: {property}, {}\n", property.words())?;
    for (number, step) in path.iter().chain(cycle).enumerate() {
        if number == path.len() {
            writeln!(text, "  then repeatedly:")?;
        }
        writeln!(text, "  {:>3}  {step}", number + 1)?;
    }
    writeln!(text, "\n{}", written_to(file))?;
    Ok(())
}

pub(super) fn written_to(file: &Path) -> String {
    format!("Written to {0}; `doyen replay {0}` shows and explains it.", file.display())
}

fn states_per_second(progress: &Progress) -> f64 {
    progress.states as f64 / progress.elapsed.as_secs_f64().max(1e-9)
}

pub(super) fn progress_line(progress: &Progress) -> String {
    let Progress { states, depth, frontier, memory, .. } = *progress;
    format!(
        "{}, {:.0}/s, depth {depth}, {frontier} to expand, {:.0} MB",
        count(states, "state"),
        states_per_second(progress),
        memory as f64 / 1e6
    )
}
