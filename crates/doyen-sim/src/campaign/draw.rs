//! Draws the scenario of one run.
//!
//! Everything is counted in `D`, a millisecond, and in tenths of it. What the algorithms bear differs, and so do their
//! storms: those of the seeds' algorithms are drawn in [`seeds`], those of a quorum in [`quorum`], from what goes wrong
//! everywhere ([`storm`]). What a quorum bears for good is drawn in [`lasting`].

mod lasting;
mod quorum;
mod seeds;
mod storm;

use doyen_core::registry::Algorithm;
use doyen_core::time::Span;

use super::Campaign;
use crate::random::{Random, splitmix};
use crate::scenario::{MemberList, Scenario, ScenarioError};

/// Times are drawn in these steps.
const STEP: Span = Span::from_micros(100);
const DUPLICATIONS: [f64; 3] = [0.01, 0.05, 0.2];

/// The scenario of run number `number` of `campaign`.
pub(super) fn scenario(campaign: &Campaign, number: u64) -> Result<Scenario, ScenarioError> {
    let mut random = Random::new(splitmix(campaign.seed).wrapping_add(number));
    let mut scenario = campaign.base.clone();
    if scenario.algorithm.is_empty() && campaign.lasting {
        scenario.algorithm = Algorithm::Quorum.to_string();
    }
    if scenario.algorithm.is_empty() {
        scenario.algorithm = whose_turn(&scenario, number).to_string();
    }
    scenario.mode.get_or_insert_with(|| "hardened".to_owned());
    let drawn =
        random.between(u64::from(*campaign.members.start()), u64::from(*campaign.members.end()));
    scenario.members.get_or_insert(MemberList::Count(drawn));
    let storm = match scenario.algorithm.parse() {
        Ok(Algorithm::Quorum) if campaign.lasting => lasting::draw(&mut scenario, random)?,
        Ok(Algorithm::Quorum) => quorum::draw(&mut scenario, random)?,
        _ if campaign.lasting => {
            let problem = "only a quorum bears faults that last";
            return Err(ScenarioError::new("algorithm", problem));
        }
        _ => seeds::draw(&mut scenario, random)?,
    };
    scenario.fault.extend(storm);
    Ok(scenario)
}

/// All algorithms take turns, or all that have the mode which is asked for: not all have a textbook to follow.
fn whose_turn(scenario: &Scenario, number: u64) -> Algorithm {
    let turn = |count: usize| (number.wrapping_sub(1) % count as u64) as usize;
    match scenario.mode.as_deref() {
        None | Some("hardened") => Algorithm::ALL[turn(Algorithm::ALL.len())],
        Some(_) => Algorithm::SEEDS[turn(Algorithm::SEEDS.len())],
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

/// So many steps, as they are written in a scenario.
fn time(steps: u64) -> String {
    (STEP * steps).to_string()
}
