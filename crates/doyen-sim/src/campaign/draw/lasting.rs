//! Faults that last, for a quorum: members that stay down and links that stay cut, one way or both, so that some members
//! hear each other and others do not (see [`super::super::premise`]).
//!
//! A majority with a member that can lead is left alone: all of it is up and connected both ways. Everything else may be
//! broken, in any combination, and stays so. Clocks are wrong for good, by as much as they may be. Where no member takes
//! over from a leader that does its work, attributes go on changing.

use doyen_core::algorithm::quorum::settings::Preemption;
use doyen_core::members::NodeId;

use super::quorum::{self, Tempest};
use super::{draw_attributes, pick, time};
use crate::random::Random;
use crate::scenario::{Case, FaultEntry, MemberList, Scenario, ScenarioError};

const DELAYS: [&str; 3] = ["0.1ms", "uniform:0.05ms..0.3ms", "uniform:0.2ms..0.7ms"];
/// How many of the links that may be cut are.
const CUT_SHARES: [f64; 3] = [0.2, 0.5, 0.8];

/// Completes `scenario`, whose members are known; what is broken and stays so comes back.
pub(super) fn draw(
    scenario: &mut Scenario,
    mut random: Random,
) -> Result<Vec<FaultEntry>, ScenarioError> {
    if let Some(MemberList::Count(count)) = scenario.members {
        draw_attributes(scenario, count, &mut random);
    }
    // A fast clock counts D too soon; here clocks stay wrong, so messages must be faster than that.
    if scenario.delay.is_none() {
        scenario.delay = Some(pick(&DELAYS, &mut random).to_owned());
        scenario.bound.get_or_insert_with(|| quorum::BOUND.to_owned());
    }
    quorum::draw_network(scenario, &mut random);
    let is_drawn = scenario.quorum.is_none();
    quorum::draw_settings(scenario, &mut random)?;
    if let (true, Some(entry)) = (is_drawn, &mut scenario.quorum) {
        // Penalties double up to eight times: with long ones a run would be about little else.
        entry.forgiveness = Some(time(pick(&[5, 20], &mut random)));
        entry.tenure = Some(time(pick(&[0, 50], &mut random)));
    }
    scenario.seed.get_or_insert(random.between(1, 999_999_999));
    let case = scenario.resolve()?;
    let mut tempest = Tempest::new(&case, false, random);
    tempest.draw_beginning(scenario);
    tempest.draw_clocks();
    let at = tempest.storm.random.between(1, tempest.storm.lasts);
    let dead = scenario.dead.iter().copied().map(NodeId).collect();
    tempest.break_for_good(&case, dead, at);
    let until = tempest.end(at);
    scenario.until.get_or_insert_with(|| time(until));
    if case.config.quorum.preemption == Preemption::Never && tempest.storm.random.happens(0.5) {
        let member = Some(tempest.storm.anybody().0);
        let (lasting, every) = (Some(time(until)), Some(time((until / 200).max(1))));
        let order = Some("attribute".to_owned());
        let values = (0..3).map(|_| tempest.storm.random.between(0, 9) as i64).collect();
        let change = FaultEntry { order, member, values, every, lasting, ..FaultEntry::default() };
        tempest.storm.fault(1, change);
    }
    Ok(tempest.storm.into_faults())
}

impl Tempest<'_> {
    /// Members die and links are cut at `at`, all but those of a majority.
    fn break_for_good(&mut self, case: &Case, mut dead: Vec<NodeId>, at: u64) {
        let whole = self.majority(case, &dead);
        let storm = &mut self.storm;
        for id in case.members().iter().filter(|id| !whole.contains(id)) {
            if !dead.contains(&id) && storm.random.happens(0.3) {
                storm.crash(id, at);
                dead.push(id);
            }
        }
        let share = pick(&CUT_SHARES, &mut storm.random);
        for from in case.members().iter().filter(|id| !dead.contains(id)) {
            for to in case.members().iter().filter(|id| !dead.contains(id)) {
                let is_whole = whole.contains(&from) && whole.contains(&to);
                if from != to && !is_whole && storm.random.happens(share) {
                    let cut = Some([from.0, to.0]);
                    storm.fault(at, FaultEntry { cut, ..FaultEntry::default() });
                }
            }
        }
    }

    /// Members that stay up and connected: a majority or more, the survivor among them.
    fn majority(&mut self, case: &Case, dead: &[NodeId]) -> Vec<NodeId> {
        let storm = &mut self.storm;
        let is_other = |id: &NodeId| *id != storm.survivor && !dead.contains(id);
        let mut others: Vec<NodeId> = case.members().iter().filter(is_other).collect();
        storm.random.shuffle(&mut others);
        let least = case.members().len() / 2;
        let count = storm.random.between(least as u64, others.len().max(least) as u64);
        others.truncate(count as usize);
        others.push(storm.survivor);
        others
    }

    /// When a run ends whose faults have been there since `at`, in steps.
    fn end(&self, at: u64) -> u64 {
        let settling = self.case.settling().as_nanos().div_ceil(super::STEP.as_nanos());
        at + settling * 2
    }
}
