//! Faults that last, for a quorum: members that stay down and links that stay cut, one way or both, so that some members
//! reach each other and others do not (see [`super::super::premise`]).
//!
//! A majority with a member that can lead has no faults: all of it is up and connected both ways. Everything else may
//! fail, in any combination, and is not repaired. Clocks stay wrong, by as much as the drift allows. Where no member
//! takes over from a working leader, because of the policy or the margin, attributes keep changing.

use doyen_core::config::quorum::Preemption;
use doyen_core::members::NodeId;

use super::quorum::{self, QuorumGenerator};
use super::{draw_attributes, fixed, pick, time, uniform};
use doyen_sim::fault::{Action, Fault};
use doyen_sim::network::DelayModel;
use doyen_sim::random::Random;
use doyen_sim::scenario::{Case, MemberList, Scenario, ScenarioError};

const DELAYS: [DelayModel; 3] = [fixed(100), uniform(50, 300), uniform(200, 700)];
/// How many of the links that may be cut are.
const CUT_SHARES: [f64; 3] = [0.2, 0.5, 0.8];
/// Attributes change between zero and this.
const HIGHEST_ATTRIBUTE: u64 = 9;
/// With this margin no member outranks another by its attribute.
const WIDE_MARGIN: u64 = 1000;

/// Completes `scenario`, whose members are known; returns the lasting faults.
pub(super) fn draw(
    scenario: &mut Scenario,
    mut random: Random,
) -> Result<Vec<Fault>, ScenarioError> {
    if let Some(MemberList::Count(count)) = scenario.members {
        draw_attributes(scenario, count, &mut random);
    }
    // A fast clock counts D too soon; here clocks stay wrong, so messages must be faster than that.
    if scenario.delay.is_none() {
        scenario.delay = Some(pick(&DELAYS, &mut random));
        scenario.bound.get_or_insert(quorum::BOUND);
    }
    quorum::draw_network(scenario, &mut random);
    let is_drawn = scenario.quorum.is_none();
    quorum::draw_settings(scenario, &mut random)?;
    if let (true, Some(options)) = (is_drawn, &mut scenario.quorum) {
        // Penalties double up to eight times: with long ones a run would be about little else.
        options.penalty_decay = Some(time(pick(&[5, 20], &mut random)));
        options.tenure = Some(time(pick(&[0, 50], &mut random)));
        if random.happens(0.3) {
            options.margin = Some(WIDE_MARGIN);
        }
    }
    scenario.seed.get_or_insert(random.between(1, 999_999_999));
    let case = scenario.resolve()?;
    let mut generator = QuorumGenerator::new(&case, false, random);
    generator.draw_beginning(scenario);
    generator.draw_clocks();
    let at = generator.base.random.between(1, generator.base.end);
    let dead = scenario.dead.iter().copied().map(NodeId).collect();
    generator.break_for_good(&case, dead, at);
    let until = generator.end(at);
    scenario.until.get_or_insert(time(until));
    let base = &mut generator.base;
    let settings = &case.config.quorum;
    let is_steady = settings.preemption == Preemption::Never || settings.margin == WIDE_MARGIN;
    if is_steady && base.random.happens(0.5) {
        let member = base.any_member();
        let (lasting, every) = (time(until), time((until / 200).max(1)));
        let values = (0..3).map(|_| base.random.between(0, HIGHEST_ATTRIBUTE) as i64).collect();
        base.add(1, Action::Attributes { member, values, every, lasting });
    }
    Ok(generator.base.into_faults())
}

impl QuorumGenerator<'_> {
    /// Members die and links are cut at `at`, all but those of a majority.
    fn break_for_good(&mut self, case: &Case, mut dead: Vec<NodeId>, at: u64) {
        let whole = self.majority(case, &dead);
        let base = &mut self.base;
        for id in case.members().iter().filter(|id| !whole.contains(id)) {
            if !dead.contains(&id) && base.random.happens(0.3) {
                base.crash(id, at);
                dead.push(id);
            }
        }
        let share = pick(&CUT_SHARES, &mut base.random);
        for from in case.members().iter().filter(|id| !dead.contains(id)) {
            for to in case.members().iter().filter(|id| !dead.contains(id)) {
                let is_whole = whole.contains(&from) && whole.contains(&to);
                if from != to && !is_whole && base.random.happens(share) {
                    base.add(at, Action::Cut { from, to });
                }
            }
        }
    }

    /// Members that stay up and connected: a majority or more, the survivor among them.
    fn majority(&mut self, case: &Case, dead: &[NodeId]) -> Vec<NodeId> {
        let base = &mut self.base;
        let is_other = |id: &NodeId| *id != base.survivor && !dead.contains(id);
        let mut others: Vec<NodeId> = case.members().iter().filter(is_other).collect();
        base.random.shuffle(&mut others);
        let least = case.members().len() / 2;
        let count = base.random.between(least as u64, others.len().max(least) as u64);
        others.truncate(count as usize);
        others.push(base.survivor);
        others
    }

    /// When a run ends whose faults have been there since `at`, in steps.
    fn end(&self, at: u64) -> u64 {
        let settling = self.case.settling().as_nanos().div_ceil(super::STEP.as_nanos());
        at + settling * 2
    }
}
