//! What a check says at the end.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use doyen_check::budget::{ANY, Budget};
use doyen_check::fingerprint::chance_of_omission;
use doyen_check::minimize::Minimized;
use doyen_check::part::Scope;
use doyen_check::property::Property;
use doyen_check::search::{Limit, Plan, Progress};
use doyen_check::{Report, Rules, Violation};
use doyen_sim::scenario::Case;
use serde_json::{Value, json};

use super::asked::Asked;
use crate::cli::Answer;

/// What was checked, and how far it got.
pub(super) struct Subject {
    case: Case,
    rules: Rules,
    asked: Asked,
    plan: Plan,
    progress: Progress,
    limit: Option<Limit>,
    /// Whether runs that never end were looked for.
    sought_endless: bool,
}

impl Subject {
    pub(super) fn new(case: &Case, rules: &Rules, asked: Asked, plan: &Plan) -> Self {
        Self {
            case: case.clone(),
            rules: rules.clone(),
            asked,
            plan: plan.clone(),
            progress: Progress::default(),
            limit: None,
            sought_endless: true,
        }
    }

    /// Takes over what was found; gives back what it broke.
    pub(super) fn add(&mut self, found: &Report) -> Option<Violation> {
        (self.progress, self.limit) = (found.progress, found.limit);
        self.sought_endless = found.sought_endless;
        found.violation.clone()
    }

    /// What the command comes to, with or without a violation.
    pub(super) fn answer(&self, is_violated: bool) -> Answer {
        match self.limit {
            _ if is_violated => Answer::No,
            Some(Limit::Interrupt) => Answer::Interrupted,
            Some(_) => Answer::Limit,
            None => Answer::Yes,
        }
    }

    fn states_per_second(&self) -> f64 {
        self.progress.states as f64 / self.progress.elapsed.as_secs_f64().max(1e-9)
    }

    /// Prints it for people.
    pub(super) fn print(&self, least: Option<&Minimized>, out: &Path) -> Result<()> {
        let mut text = String::new();
        self.write_what(&mut text)?;
        self.write_how_far(&mut text)?;
        match least {
            Some(least) => write_violation(&mut text, least, out)?,
            None => self.write_verdict(&mut text)?,
        }
        io::stdout().write_all(text.as_bytes())?;
        Ok(())
    }

    fn write_what(&self, text: &mut String) -> Result<()> {
        let Self { case, rules, .. } = self;
        let order = if rules.fifo { "keep the order" } else { "do not keep the order" };
        writeln!(text, "{}, {}, {} members", case.algorithm, case.mode(), case.members().len())?;
        if let Some(scope) = rules.scope {
            writeln!(text, "  part               {scope}")?;
        }
        writeln!(text, "  what may go wrong  {}", rules.budget)?;
        writeln!(text, "  timers             {}", rules.timers)?;
        writeln!(text, "  links              {order}")?;
        Ok(())
    }

    fn write_how_far(&self, text: &mut String) -> Result<()> {
        let Progress { states, generated, depth, memory, elapsed, stranded, .. } = self.progress;
        writeln!(
            text,
            "  explored           {} by {}, {depth} deep, in {:.2} s ({:.0} states/s), {:.1} MB",
            count(states, "state"),
            count(generated, "step"),
            elapsed.as_secs_f64(),
            self.states_per_second(),
            memory as f64 / 1e6,
        )?;
        if stranded > 0 {
            writeln!(
                text,
                "  not followed       {} in which a timer was armed that had expired often enough",
                count(stranded, "state")
            )?;
        }
        Ok(())
    }

    fn write_verdict(&self, text: &mut String) -> Result<()> {
        writeln!(text)?;
        match self.limit {
            Some(limit) => self.write_partial_verdict(text, limit)?,
            None => {
                writeln!(text, "Holds in every run:")?;
                write_properties(text, self.asked.judged.iter())?;
            }
        }
        text.push_str(&self.asked.left_out_in_words());
        Ok(())
    }

    /// What can be said if not everything was seen.
    fn write_partial_verdict(&self, text: &mut String, limit: Limit) -> Result<()> {
        let stopped = match limit {
            Limit::Interrupt => "Interrupted".to_owned(),
            _ => format!("Stopped at the limit of {}", limit_name(limit)),
        };
        let (unfinished, were) = match self.progress.frontier {
            1 => ("1 state".to_owned(), "was"),
            frontier => (format!("{frontier} states"), "were"),
        };
        writeln!(text, "{stopped}: {unfinished} {were} seen whose steps were not all tried.")?;
        let judged = self.asked.judged.iter();
        let (always, at_the_end): (Vec<&Property>, Vec<&Property>) =
            judged.partition(|property| property.is_safety());
        if !always.is_empty() {
            writeln!(text, "Not violated in the others:")?;
            write_properties(text, always.into_iter())?;
        }
        if !at_the_end.is_empty() {
            writeln!(
                text,
                "Not violated in those of the others in which nothing is left to do; runs that never end were not looked for:"
            )?;
            write_properties(text, at_the_end.into_iter())?;
        }
        Ok(())
    }

    /// Prints it for programs.
    pub(super) fn print_json(&self, least: Option<&Minimized>, out: &Path) -> Result<()> {
        let Self { case, rules, plan, progress, .. } = self;
        let verdict = match (least, self.limit) {
            (Some(_), _) => "violated",
            (None, Some(_)) => "limit",
            (None, None) => "holds",
        };
        let judged: Vec<&str> = rules.properties.iter().map(|property| property.name()).collect();
        let object = json!({
            "verdict": verdict,
            "property": least.map(|least| least.violation.property.name()),
            "properties": judged,
            "not_judged": self.asked.left_out_as_json(),
            "algorithm": case.algorithm.name(),
            "mode": case.mode().to_string(),
            "members": case.members().len(),
            "part": rules.scope.map(|scope| scope.part.name()),
            "terms": rules.scope.map(|scope| scope.terms),
            "mixed_timings": rules.scope.map(|scope| scope.mixed),
            "without": rules.scope.and_then(|scope| scope.without).map(|rule| rule.to_string()),
            "budget": budget_json(rules.budget),
            "timers": rules.timers.to_string(),
            "fifo": rules.fifo,
            "reduction": plan.reduce,
            "search": if self.rules.scope.is_some_and(Scope::is_deep) { "depth first" } else { "breadth first" },
            "threads": plan.threads,
            "states": progress.states,
            "generated": progress.generated,
            "depth": progress.depth,
            "complete": least.is_none() && self.limit.is_none(),
            "endless_runs_sought": self.sought_endless,
            "limit": self.limit.map(limit_name),
            "frontier": progress.frontier,
            "stranded": progress.stranded,
            "chance_of_omission": chance_of_omission(progress.states),
            "memory": progress.memory,
            "seconds": progress.elapsed.as_secs_f64(),
            "counterexample": least.map(|least| counterexample_json(least, out)),
        });
        writeln!(io::stdout(), "{object}")?;
        Ok(())
    }
}

fn counterexample_json(least: &Minimized, out: &Path) -> Value {
    let steps = |moves: &[_]| moves.iter().map(ToString::to_string).collect::<Vec<String>>();
    json!({
        "file": out.display().to_string(),
        "members": least.scenario.members,
        "budget": budget_json(least.rules.budget),
        "path": steps(&least.violation.path),
        "cycle": steps(&least.violation.cycle),
    })
}

/// A number for each thing that may go wrong, or `any`.
fn budget_json(budget: Budget) -> Value {
    let number = |(name, number): (&str, u8)| {
        (name.to_owned(), if number == ANY { json!("any") } else { json!(number) })
    };
    Value::Object(budget.items().into_iter().map(number).collect())
}

/// `1 state`, `2 states`.
pub(super) fn count(number: u64, name: &str) -> String {
    format!("{number} {name}{}", if number == 1 { "" } else { "s" })
}

/// A line for each property.
fn write_properties<'p>(
    text: &mut String,
    properties: impl Iterator<Item = &'p Property>,
) -> Result<()> {
    for property in properties {
        writeln!(text, "  {:20} {}", property.name(), property.words())?;
    }
    Ok(())
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

fn write_violation(text: &mut String, least: &Minimized, out: &Path) -> Result<()> {
    let Violation { property, path, cycle } = &least.violation;
    writeln!(text)?;
    writeln!(text, "Violated: {property}, {}", Property::words(*property))?;
    writeln!(text)?;
    for (number, step) in path.iter().enumerate() {
        writeln!(text, "  {:>3}  {step}", number + 1)?;
    }
    if !cycle.is_empty() {
        writeln!(text, "  and then for ever:")?;
        for (number, step) in cycle.iter().enumerate() {
            writeln!(text, "  {:>3}  {step}", path.len() + number + 1)?;
        }
    }
    writeln!(text)?;
    writeln!(text, "Written to {0}; `doyen replay {0}` shows it and says why.", out.display())?;
    Ok(())
}

/// How far a check is, on one line.
pub(super) fn progress_line(progress: &Progress) -> String {
    let Progress { states, depth, frontier, memory, elapsed, .. } = *progress;
    let rate = states as f64 / elapsed.as_secs_f64().max(1e-9);
    format!(
        "{}, {rate:.0}/s, {depth} deep, {frontier} to go, {:.0} MB",
        count(states, "state"),
        memory as f64 / 1e6
    )
}
