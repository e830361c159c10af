//! Draws the scenario of one run.
//!
//! Everything is counted in `D`, a millisecond, and in tenths of it. What the algorithms tolerate differs, and so do their
//! faults: those for a quorum come from [`quorum`], those for all other elections from [`election`], both made with one
//! [`generator`]. What a quorum tolerates for good comes from [`lasting`]. A [`bank`] makes payments and takes a snapshot;
//! of a [`sequencer`] the leader crashes.

mod bank;
mod election;
mod generator;
mod lasting;
mod quorum;
mod sequencer;

use doyen_core::config::Mode;
use doyen_core::members::NodeId;
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;

use super::Campaign;
use crate::rules::only_elections;
use doyen_sim::network::DelayModel;
use doyen_sim::random::{Random, splitmix};
use doyen_sim::scenario::{Initiator, Initiators, MemberList, Scenario, ScenarioError};
use doyen_sim::text::Share;

/// Times are drawn in these steps.
const STEP: Span = Span::from_micros(100);
const DUPLICATIONS: [f64; 3] = [0.01, 0.05, 0.2];

/// The scenario of run number `number` of `campaign`.
pub(super) fn scenario(campaign: &Campaign, number: u64) -> Result<Scenario, ScenarioError> {
    let mut random = Random::new(splitmix(campaign.seed).wrapping_add(number));
    let mut scenario = campaign.base.clone();
    let algorithm = scenario.algorithm.unwrap_or_else(|| match campaign.lasting {
        true => Algorithm::Quorum,
        false => whose_turn(scenario.mode, number),
    });
    scenario.algorithm = Some(algorithm);
    let usual = if algorithm.reads(Mode::Hardened) { Mode::Hardened } else { Mode::Textbook };
    scenario.mode.get_or_insert(usual);
    let drawn =
        random.between(u64::from(*campaign.members.start()), u64::from(*campaign.members.end()));
    scenario.members.get_or_insert(MemberList::Count(drawn));
    let faults = match algorithm {
        Algorithm::Quorum if campaign.lasting => lasting::draw(&mut scenario, random)?,
        Algorithm::Quorum => quorum::draw(&mut scenario, random)?,
        _ if campaign.lasting => {
            let problem = "only a quorum tolerates faults that last";
            return Err(ScenarioError::new("algorithm", problem));
        }
        Algorithm::Bank => bank::draw(&mut scenario, random)?,
        Algorithm::Sequencer => sequencer::draw(&mut scenario, random)?,
        _ if !algorithm.elects() => {
            return Err(ScenarioError::new("algorithm", only_elections(algorithm)));
        }
        _ => election::draw(&mut scenario, random)?,
    };
    scenario.fault.extend(faults);
    Ok(scenario)
}

/// All elections take turns, or all that have the mode which is asked for: not all have a textbook to follow.
fn whose_turn(mode: Option<Mode>, number: u64) -> Algorithm {
    let turn = |count: usize| (number.wrapping_sub(1) % count as u64) as usize;
    match mode {
        None | Some(Mode::Hardened) => Algorithm::ELECTIONS[turn(Algorithm::ELECTIONS.len())],
        Some(_) => Algorithm::OF_SOURCES[turn(Algorithm::OF_SOURCES.len())],
    }
}

/// Attributes of few values, now and then, so that some members have the same and the id decides.
fn draw_attributes(scenario: &mut Scenario, count: u64, random: &mut Random) {
    if scenario.attr.is_empty() && random.happens(0.25) {
        let attr = |id: u32| (id.to_string(), random.between(0, 3) as i64);
        scenario.attr = (1..=count as u32).map(attr).collect();
    }
}

fn pick<T: Copy>(choices: &[T], random: &mut Random) -> T {
    choices[random.between(0, choices.len() as u64 - 1) as usize]
}

/// So many requests of any members, at any time until `end`.
fn requests(members: &[NodeId], count: u64, end: u64, random: &mut Random) -> Initiators {
    let mut drawn: Vec<(u64, NodeId)> =
        (0..count).map(|_| (random.between(0, end), pick(members, random))).collect();
    drawn.sort_unstable();
    let request = |(at, member): (u64, NodeId)| Initiator::At { member: member.0, at: time(at) };
    Initiators::Listed(drawn.into_iter().map(request).collect())
}

/// So many steps.
fn time(steps: u64) -> Span {
    STEP * steps
}

/// A fixed delay in microseconds.
const fn fixed(micros: u64) -> DelayModel {
    DelayModel::Fixed(micros * 1_000)
}

/// A delay from `min` to `max` microseconds.
const fn uniform(min: u64, max: u64) -> DelayModel {
    DelayModel::Uniform { min: min * 1_000, max: max * 1_000 }
}

/// A share that this module names.
fn share(fraction: f64) -> Option<Share> {
    Share::new(fraction).ok()
}
