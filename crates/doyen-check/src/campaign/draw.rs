//! Draws the scenario of one run.
//!
//! All times are in `D`, a millisecond, and in tenths of it. Algorithms tolerate different faults: those for a quorum come
//! from [`quorum`], those for all other elections from [`election`], both made with one [`generator`]. Lasting faults,
//! which a quorum tolerates, come from [`lasting`]. Members of an [`exclusion`] ask to enter their critical section, those
//! of a [`lock_service`] under the faults of a quorum. A [`bank`] makes payments and takes a snapshot; of a [`sequencer`]
//! the leader crashes.

mod bank;
mod election;
mod exclusion;
mod generator;
mod lasting;
mod lock_service;
mod quorum;
mod sequencer;

use doyen_core::config::Mode;
use doyen_core::members::NodeId;
use doyen_core::registry::{Algorithm, Purpose};
use doyen_core::time::Span;

use super::Campaign;
use crate::property::Property;
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
    scenario.mode = Some(campaign.mode_of(algorithm));
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
        Algorithm::LockService => lock_service::draw(&mut scenario, random)?,
        _ if algorithm.purpose() == Purpose::Excludes => {
            let is_named = |it: &Vec<Property>| it.contains(&Property::CausalOrder);
            let named = campaign.properties.as_ref().map(is_named);
            let tells = named.unwrap_or(algorithm.orders_requests(true));
            exclusion::draw(&mut scenario, tells, random)?
        }
        _ => election::draw(&mut scenario, random)?,
    };
    scenario.fault.extend(faults);
    Ok(scenario)
}

/// All algorithms take turns, or all that have the mode which is asked for.
fn whose_turn(mode: Option<Mode>, number: u64) -> Algorithm {
    let all = || Algorithm::ALL.into_iter().filter(|it| mode.is_none_or(|mode| it.reads(mode)));
    let count = all().count().max(1) as u64;
    let mut turns = all().skip((number.wrapping_sub(1) % count) as usize);
    turns.next().unwrap_or(Algorithm::Bully)
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

/// This many requests of any members, at any time until `end`.
fn requests(members: &[NodeId], count: u64, end: u64, random: &mut Random) -> Initiators {
    let mut drawn: Vec<(u64, NodeId)> =
        (0..count).map(|_| (random.between(0, end), pick(members, random))).collect();
    drawn.sort_unstable();
    let request = |(at, member): (u64, NodeId)| Initiator::At { member: member.0, at: time(at) };
    Initiators::Listed(drawn.into_iter().map(request).collect())
}

/// This many steps.
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
