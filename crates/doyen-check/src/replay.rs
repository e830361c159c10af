//! Plays a counterexample again, records it, and says why its property does not hold.
//!
//! A schedule is executed on the very machine that the check explored: each step must be possible where it stands.
//! What comes out is judged anew, so a file whose run no longer breaks its property is found out. A timed run is run
//! by the simulator.
//!
//! # Times
//!
//! A schedule has no clock but ticks. Where timers are bounded, a tick is as long as the rules say and the steps of
//! one tick follow each other closely, so that pictures show their order; where timers are free, every step takes
//! `D`.
//!
//! # Why
//!
//! [`Replay::facts`] are what contradicts the property, and [`Replay::past`] is what led to it: everything that
//! happened before the members concerned came to believe what they do. If somebody waits for ever, nothing that it
//! did explains it; then it is everything it knows of, and the crashes of which it does not.

mod past;
mod recorder;
mod timed;
mod walk;

use std::collections::BTreeSet;

use doyen_core::algorithm::quorum::voter::Voter;
use doyen_core::members::{Members, NodeId};
use doyen_core::node::Node;
use doyen_core::protocol::View;
use doyen_core::registry::AnyProtocol;
use doyen_core::session::Session;
use doyen_core::time::Span;

use super::counterexample::{Counterexample, Course};
use super::machine::{Act, Explorable, Machine, Step};
use super::part::{self, Part};
use super::property::{Fact, Property, belief};
use super::schedule::StepText;
use super::space::{Claim, Space};
use super::{Rules, Scene, machine, part_of, scoped};
use doyen_sim::run;
use doyen_sim::scenario::Case;
use doyen_sim::time::Time;
use doyen_sim::trace::{EventKind, TraceEvent};
use recorder::Recorder;

/// The steps of one tick are so many to a tick, at least.
const STEPS_A_TICK: u64 = 20;

/// A counterexample, played again.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Where it begins.
    pub case: Case,
    /// What it is about.
    pub property: Property,
    /// Whether the property is broken.
    pub broken: bool,
    /// What contradicts the property.
    pub facts: Vec<Fact>,
    /// How it ends.
    pub ending: Ending,
    /// Why a schedule that breaks nothing tells nothing either: it is not a whole run.
    pub gap: Option<String>,
    /// From which moment of the simulation of the case a schedule goes on; from the scene of its beginning without it.
    pub from: Option<Time>,
    /// Whether it is a run by the clock, which has no steps.
    pub is_timed: bool,
    /// The steps of a schedule.
    pub steps: Vec<Played>,
    /// Everything that happened.
    pub records: Vec<TraceEvent>,
    /// Which of the records led to what contradicts the property.
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
    /// Whether it is repeated for ever.
    pub repeated: bool,
}

/// How a run ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Nothing is left to do.
    Rest,
    /// Everything from this record on is repeated for ever.
    Cycle(usize),
    /// The property is broken there and then, whatever follows.
    There,
    /// The simulation was stopped by its limit of time or of messages, and was still busy.
    Limit,
    /// The schedule was, and broke nothing until then.
    Early,
}

impl Ending {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rest => "rest",
            Self::Cycle(_) => "cycle",
            Self::There => "there",
            Self::Limit => "limit",
            Self::Early => "early",
        }
    }

    /// What it adds to the facts that contradict a property, if anything.
    pub fn words(self) -> Option<&'static str> {
        match self {
            Self::Rest => Some("and nothing is left to do that could change it"),
            Self::Cycle(_) => Some("and this goes on for ever"),
            Self::There | Self::Early => None,
            Self::Limit => Some("and the run was still busy when its limit was reached"),
        }
    }
}

impl Replay {
    /// The record from which on everything is repeated for ever.
    pub fn repeats_from(&self) -> Option<usize> {
        match self.ending {
            Ending::Cycle(first) => Some(first),
            _ => None,
        }
    }

    /// Whether nothing can be said: the steps of the file are no whole run, or the property is about rest, to which the
    /// run did not come.
    pub fn is_undecided(&self) -> bool {
        let is_restless = self.ending == Ending::Limit && self.property.is_about_the_end();
        !self.broken && (self.gap.is_some() || is_restless)
    }

    /// What became of the property, in a few words.
    pub fn verdict(&self) -> String {
        let property = self.property;
        if self.broken {
            let facts: Vec<String> = self.facts.iter().map(ToString::to_string).collect();
            return format!("{property} does not hold: {}", facts.join("; "));
        }
        let how = if self.is_undecided() { "was not judged" } else { "holds" };
        format!("{property} {how}")
    }

    /// Why the property does not hold, or that it does, a few lines of text.
    pub fn why(&self) -> String {
        let property = self.property;
        let words = property.words();
        if let (false, Some(gap)) = (self.broken, &self.gap) {
            return format!(
                "{property} was NOT JUDGED: the run of this file breaks nothing as far as it goes, but {gap}.\n  {words}\n\
                 Steps are missing, or the file belongs to another version of the algorithm; check again.\n"
            );
        }
        if !self.broken {
            let judged = match self.is_undecided() {
                true => "was not judged: the run was still busy when its limit was reached, and",
                false => "HOLDS in this run:",
            };
            return format!(
                "{property} {judged} what the file was written for does not happen any more.\n  {words}\n",
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
    /// Plays it again. What is wrong with the file is said in one line.
    pub fn replay(&self) -> Result<Replay, String> {
        let case = self.case()?;
        match &self.course {
            Course::Timed => Ok(timed::replay(case, self.property)),
            Course::Schedule { rules, path, cycle } => {
                let schedule = Schedule { file: self, rules, path, cycle };
                let case = &scoped(&case, rules);
                let fresh = || Scene::of(case);
                match part_of(rules) {
                    Some(Part::Votes) => {
                        let machine = Machine::<Voter>::new(&case.config, &fresh(), rules.clone());
                        play(machine, case, &schedule)
                    }
                    Some(Part::Sessions) => {
                        let config = part::session_config(case);
                        let machine =
                            Machine::<Session<Voter>>::new(&config, &fresh(), rules.clone());
                        play(machine, case, &schedule)
                    }
                    None if case.is_layered() => {
                        let config = run::node_config(case);
                        play(machine::<Node<AnyProtocol>>(case, &config, rules), case, &schedule)
                    }
                    Some(Part::Leases | Part::Whole) | None => {
                        let config = run::any_config(case);
                        play(machine::<AnyProtocol>(case, &config, rules), case, &schedule)
                    }
                }
            }
        }
    }
}

/// What is to be played.
struct Schedule<'f> {
    file: &'f Counterexample,
    rules: &'f Rules,
    path: &'f [StepText],
    cycle: &'f [StepText],
}

fn play<P: Explorable>(
    mut machine: Machine<'_, P>,
    case: &Case,
    schedule: &Schedule<'_>,
) -> Result<Replay, String> {
    let &Schedule { file, rules, path, cycle } = schedule;
    // As the search that found it sees it: what does not matter any more does not keep a loop from closing.
    machine.canonical = true;
    let mut hand = machine.hand();
    let schedule = [path, cycle].concat();
    let walk = walk::follow(&machine, &mut hand, &schedule)
        .map_err(|(index, problem)| file.at_step(index, &problem))?;
    let broken = walk::breaks(&machine, &mut hand, &walk, path.len(), file.property);
    let gap = match broken {
        true => None,
        false => walk::gap(&machine, &mut hand, &walk, path.len()),
    };

    let transmission = case.config.timing.transmission;
    let mut recorder = match rules.from {
        // Everybody has met everybody already.
        None if P::has_sessions() => {
            Recorder::resume(&machine, Vec::new(), Time::ZERO, transmission)
        }
        None => Recorder::new(&machine, &Scene::of(case), transmission),
        Some(at) => Recorder::resume(&machine, before(case, at), at, transmission),
    };
    let mut steps = Vec::new();
    let mut first_repeated = 0;
    for (index, at) in times(&walk.steps, rules, transmission).into_iter().enumerate() {
        if index == path.len() {
            first_repeated = recorder.len();
        }
        let fired = recorder.play(&walk.states[index], walk.steps[index], at);
        let (step, repeated) = (schedule[index].clone(), index >= path.len());
        steps.push(Played { step, at, rules: fired, repeated });
    }
    let views: Vec<_> = walk.states.iter().map(|state| machine.views(&hand, state)).collect();
    let (records, missteps) = recorder.finish(walk.state());
    let ending = match file.property.claim() {
        _ if gap.is_some() => Ending::Early,
        Claim::Always | Claim::NoStep => Ending::There,
        _ if cycle.is_empty() => Ending::Rest,
        _ => Ending::Cycle(first_repeated),
    };
    let facts = match broken {
        false => Vec::new(),
        true => facts(file.property, case.members(), &views, path.len(), missteps),
    };
    let past = past_of(file.property, &records, &facts);
    let property = file.property;
    let (case, from) = (case.clone(), rules.from);
    let is_timed = false;
    Ok(Replay { case, property, broken, facts, ending, gap, from, is_timed, steps, records, past })
}

/// What the simulation of `case` records up to a moment.
fn before(case: &Case, at: Time) -> Vec<TraceEvent> {
    let mut records: Vec<TraceEvent> = Vec::new();
    run::run(case, Some(&mut records));
    records.retain(|record| record.at <= at);
    records
}

/// When each step is taken.
fn times(steps: &[Step], rules: &Rules, transmission: Span) -> Vec<Time> {
    let mut begun = rules.from.unwrap_or(Time::ZERO);
    let Some(tick) = rules.timers.tick() else {
        return (1..=steps.len() as u64).map(|step| begun + transmission * step).collect();
    };
    let waits = |step: &Step| matches!(step.act, Act::Wait(_));
    let mut times = Vec::with_capacity(steps.len());
    // The scene takes the first place of the first tick, a wait that of each later one.
    for (number, run) in steps.split_inclusive(waits).enumerate() {
        let first = u64::from(number == 0);
        let apart = tick.as_nanos() / STEPS_A_TICK.max(run.len() as u64 + 1);
        let after = |place: usize| begun + Span::from_nanos(apart) * (place as u64 + first);
        times.extend((0..run.len()).map(after));
        if let (Some(Step { act: Act::Wait(ticks), .. }), Some(last)) =
            (run.last(), times.last_mut())
        {
            begun = begun + tick * u64::from(*ticks);
            *last = begun;
        }
    }
    times
}

/// What contradicts `property`. `views` are what the members believed at first and after each step, and everything from
/// `home` on is repeated for ever.
fn facts(
    property: Property,
    members: &Members,
    views: &[Vec<Option<View>>],
    home: usize,
    missteps: Vec<(Property, Fact)>,
) -> Vec<Fact> {
    let about = |(broken, _): &(Property, Fact)| *broken == property;
    let missteps = missteps.into_iter().filter(about).map(|(_, fact)| fact);
    match property.claim() {
        Claim::NoStep => missteps.collect(),
        Claim::Always => {
            let broken = views.iter().find(|views| !property.holds(members, views));
            let evidence = broken.map(|views| property.evidence(members, views));
            evidence.unwrap_or_else(|| missteps.collect())
        }
        Claim::AtRest | Claim::Rests | Claim::Eventually => {
            let changing = changing(members, &views[home..]);
            if changing.is_empty() { property.evidence(members, &views[home]) } else { changing }
        }
    }
}

/// Who keeps changing its mind.
fn changing(members: &Members, views: &[Vec<Option<View>>]) -> Vec<Fact> {
    let mut facts = Vec::new();
    for member in 0..members.len() {
        let mut beliefs: Vec<String> =
            views.iter().filter_map(|views| views[member]).map(belief).collect();
        beliefs.dedup();
        if beliefs.len() > 1 {
            facts.push(Fact::new(members.at(member), beliefs.join(", then ")));
        }
    }
    facts
}

/// Which records led to `facts`.
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
