//! Replays a counterexample, records it, and explains why its property does not hold.
//!
//! A schedule is executed on the model that the check explored: each step must be possible in its state. The run is judged
//! again, so a file whose run no longer breaks its property is noticed. A timed run is run by the simulator.
//!
//! # Times
//!
//! A schedule has no clock but ticks. With bounded timers a tick is as long as the rules say and the steps of one tick
//! follow each other closely, so that pictures show their order; with free timers every step takes `D`.
//!
//! # The explanation
//!
//! [`Replay::facts`] contradict the property, and [`Replay::past`] is what led to them: everything that happened before the
//! members concerned came to their present views. If a member waits forever, nothing that it did explains it: then the past
//! is everything that it knows of, and the crashes that it does not know of.

mod execute;
mod past;
mod recorder;
mod timed;

use std::collections::BTreeSet;

use doyen_core::layers::Stack;
use doyen_core::members::{Members, NodeId};
use doyen_core::protocol::Protocol as _;
use doyen_core::time::Span;
use doyen_sim::scenario::Case;
use doyen_sim::time::Time;
use doyen_sim::trace::{EventKind, TraceEvent};

use crate::counterexample::{Counterexample, Course};
use crate::ending::Ending;
use crate::explore::with_model;
use crate::model::Model;
use crate::model::step::{Act, Step, StepText};
use crate::property::{Fact, Property, Seen, belief};
use crate::rules::Rules;
use crate::scene::{Scene, trace_until};
use crate::search::space::{Claim, Space};
use recorder::Recorder;

/// The steps of one tick are spread as if there were at least this many.
const STEPS_A_TICK: u64 = 20;

/// The result of a replay.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The case of the run.
    pub case: Case,
    /// The property of the file.
    pub property: Property,
    /// Whether the property is broken.
    pub broken: bool,
    /// The facts that contradict the property.
    pub facts: Vec<Fact>,
    /// How it ends.
    pub ending: Ending,
    /// Why a schedule that breaks nothing proves nothing: it is not a complete run.
    pub gap: Option<String>,
    /// The moment of the simulated run from which a schedule continues; none for the initial scene.
    pub from: Option<Time>,
    /// Whether it is a run of the simulator, which has no steps.
    pub is_timed: bool,
    /// The steps of a schedule.
    pub steps: Vec<Played>,
    /// The trace of the run.
    pub records: Vec<TraceEvent>,
    /// The indices of the records that led to the facts.
    pub past: BTreeSet<usize>,
}

/// A step that was taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Played {
    /// The step.
    pub step: StepText,
    /// When.
    pub at: Time,
    /// The rules that fired.
    pub rules: Vec<String>,
    /// Whether it repeats forever.
    pub repeated: bool,
}

impl Replay {
    /// The record from which on everything repeats forever.
    pub fn repeats_from(&self) -> Option<usize> {
        match self.ending {
            Ending::Cycle(first) => Some(first),
            _ => None,
        }
    }

    /// Whether the property could not be judged: the schedule is not a complete run, or the property is about rest and the
    /// run did not come to rest.
    pub fn is_undecided(&self) -> bool {
        let is_restless = self.ending == Ending::Limit && self.property.is_about_the_end();
        !self.broken && (self.gap.is_some() || is_restless)
    }

    /// The verdict in a few words.
    pub fn verdict(&self) -> String {
        let property = self.property;
        if self.broken {
            let facts: Vec<String> = self.facts.iter().map(ToString::to_string).collect();
            return format!("{property} does not hold: {}", facts.join("; "));
        }
        let how = if self.is_undecided() { "was not judged" } else { "holds" };
        format!("{property} {how}")
    }

    /// The verdict with its reason, a few lines of text.
    pub fn why(&self) -> String {
        let property = self.property;
        let words = property.words();
        if let (false, Some(gap)) = (self.broken, &self.gap) {
            return format!(
                "{property} was NOT JUDGED: the run of this file breaks nothing, but {gap}.\n  {words}\n\
                 Steps are missing, or the file belongs to another version of the algorithm: run the check again to make a new file.\n"
            );
        }
        if !self.broken {
            let judged = match self.is_undecided() {
                true => "was not judged: the run was still busy when its limit was reached, and",
                false => "HOLDS in this run:",
            };
            return format!(
                "{property} {judged} the violation that the file was written for does not happen any more.\n  {words}\n",
            );
        }
        let mut text = format!("{property} does not hold in this run.\n  {words}\nBut:\n");
        for fact in &self.facts {
            text.push_str(&format!("  {fact}\n"));
        }
        if let Some(words) = self.ending.words() {
            text.push_str(&format!("{words}.\n"));
        }
        text
    }
}

impl Counterexample {
    /// Replays it. An error describes the problem of the file in one line.
    pub fn replay(&self) -> Result<Replay, String> {
        let case = self.case()?;
        match &self.course {
            Course::Timed => Ok(timed::replay(case, self.property)),
            Course::Schedule { rules, path, cycle } => {
                let schedule = Schedule { file: self, rules, path, cycle };
                with_model(&case, rules, |case, model| schedule.replay(case, model))
            }
        }
    }
}

/// The schedule of a file.
struct Schedule<'f> {
    file: &'f Counterexample,
    rules: &'f Rules,
    path: &'f [StepText],
    cycle: &'f [StepText],
}

impl Schedule<'_> {
    fn replay(self, case: &Case, mut model: Model<'_, Stack>) -> Result<Replay, String> {
        let Schedule { file, rules, path, cycle } = self;
        let (property, home) = (file.property, path.len());
        // As the search saw it: what all detectors know does not keep a loop from closing.
        model.reductions.settled = true;
        let mut worker = model.worker();
        let schedule = [path, cycle].concat();
        let run = execute::execute(&model, &mut worker, &schedule)
            .map_err(|(index, problem)| file.at_step(index, &problem))?;
        let broken = execute::breaks(&model, &mut worker, &run, home, property);
        let gap = match broken {
            true => None,
            false => execute::gap(&model, &mut worker, &run, home),
        };

        let transmission = case.config.timing.transmission;
        let mut recorder = match rules.from {
            // All members have met already.
            None if Stack::has_sessions(model.context.config) => {
                Recorder::resume(&model, Vec::new(), Time::ZERO, transmission)
            }
            None => Recorder::new(&model, &Scene::of(case), transmission),
            Some(at) => Recorder::resume(&model, trace_until(case, at), at, transmission),
        };
        let mut steps = Vec::new();
        let mut first_repeated = 0;
        for (index, at) in times(&run.steps, rules, transmission).into_iter().enumerate() {
            if index == home {
                first_repeated = recorder.len();
            }
            let fired = recorder.play(&run.states[index], run.steps[index], at);
            let (step, repeated) = (schedule[index].clone(), index >= home);
            steps.push(Played { step, at, rules: fired, repeated });
        }
        let records = recorder.finish(run.state());
        let seen: Vec<_> = run.states.iter().map(|state| model.seen(&worker, state)).collect();
        let ending = match property.claim() {
            _ if gap.is_some() => Ending::Early,
            Claim::Always | Claim::NoStep => Ending::There,
            _ if cycle.is_empty() => Ending::Rest,
            _ => Ending::Cycle(first_repeated),
        };
        let facts = match broken {
            true => facts(property, case.members(), &seen, home, run.breach.unwrap_or_default()),
            false => Vec::new(),
        };
        let past = past_of(property, &records, &facts);
        let (case, from, is_timed) = (case.clone(), rules.from, false);
        Ok(Replay {
            case,
            property,
            broken,
            facts,
            ending,
            gap,
            from,
            is_timed,
            steps,
            records,
            past,
        })
    }
}

/// The time of each step.
fn times(steps: &[Step], rules: &Rules, transmission: Span) -> Vec<Time> {
    let mut begun = rules.from.unwrap_or(Time::ZERO);
    let Some(tick) = rules.timers.clock().map(|clock| clock.tick) else {
        return (1..=steps.len() as u64).map(|step| begun + transmission * step).collect();
    };
    let waits = |step: &Step| matches!(step.act, Act::Wait { .. });
    let mut times = Vec::with_capacity(steps.len());
    // The scene takes the first place of the first tick, a wait that of each later one.
    for (number, run) in steps.split_inclusive(waits).enumerate() {
        let first = u64::from(number == 0);
        let apart = tick.as_nanos() / STEPS_A_TICK.max(run.len() as u64 + 1);
        let after = |place: usize| begun + Span::from_nanos(apart) * (place as u64 + first);
        times.extend((0..run.len()).map(after));
        if let (Some(Step { act: Act::Wait { ticks }, .. }), Some(last)) =
            (run.last(), times.last_mut())
        {
            begun = begun + tick * u64::from(*ticks);
            *last = begun;
        }
    }
    times
}

/// The facts that contradict `property`. `seen` is what claims see at first and after each step; everything from `home` on
/// repeats forever.
fn facts(
    property: Property,
    members: &Members,
    seen: &[Seen],
    home: usize,
    breach: Vec<Fact>,
) -> Vec<Fact> {
    match property.claim() {
        Claim::NoStep => breach,
        Claim::Always => {
            let broken = seen.iter().find(|seen| !property.holds(members, seen));
            let evidence = broken.map(|seen| property.evidence(members, seen));
            evidence.unwrap_or(breach)
        }
        Claim::AtRest | Claim::Rests => {
            let changing = changing(members, &seen[home..]);
            if changing.is_empty() { property.evidence(members, &seen[home]) } else { changing }
        }
    }
}

/// The members whose views keep changing.
fn changing(members: &Members, seen: &[Seen]) -> Vec<Fact> {
    let mut facts = Vec::new();
    for member in 0..members.len() {
        let mut beliefs: Vec<String> =
            seen.iter().filter_map(|seen| seen.views[member]).map(belief).collect();
        beliefs.dedup();
        if beliefs.len() > 1 {
            facts.push(Fact::new(members.at(member), beliefs.join(", then ")));
        }
    }
    facts
}

/// The records that led to `facts`.
fn past_of(property: Property, records: &[TraceEvent], facts: &[Fact]) -> BTreeSet<usize> {
    let last = |member: NodeId, matters: &dyn Fn(&EventKind) -> bool| {
        let is =
            |record: &TraceEvent| record.kind.member() == Some(member) && matters(&record.kind);
        records.iter().rposition(is)
    };
    let turns = |what: &EventKind| {
        matches!(
            what,
            EventKind::View { .. } | EventKind::Crashed { .. } | EventKind::Restarted { .. }
        )
    };
    let anything = |what: &EventKind| !matches!(what, EventKind::Missed { .. });
    let waits = property.claim() == Claim::Rests;
    let mut ends: Vec<usize> = Vec::new();
    for fact in facts {
        let turn = last(fact.member, &turns).filter(|_| !waits);
        ends.extend(turn.or_else(|| last(fact.member, &anything)));
    }
    if waits && !ends.is_empty() {
        let crashed = |record: &TraceEvent| matches!(record.kind, EventKind::Crashed { .. });
        ends.extend((0..records.len()).filter(|&index| crashed(&records[index])));
    }
    past::causal_past(records, &ends)
}

#[cfg(test)]
mod tests;
