//! Multicasts while sequencers crash: at any moment, or between two of the messages with which they order one. A majority
//! stays up, and a failure detector reports every crash and no live member.

use doyen_core::members::NodeId;

use super::generator::FaultGenerator;
use super::{fixed, pick, requests, time, uniform};
use doyen_sim::fault::Fault;
use doyen_sim::network::DelayModel;
use doyen_sim::random::Random;
use doyen_sim::scenario::{Scenario, ScenarioError};

/// How long members keep multicasting, in steps.
const LENGTHS: [u64; 3] = [20, 60, 200];
/// The maximum number of multicasts of all members together.
const MOST_MULTICASTS: u64 = 12;
const DELAYS: [DelayModel; 3] = [fixed(1_000), uniform(200, 1_000), uniform(10, 1_000)];
/// The period of the failure detector, in steps.
const PERIOD: u64 = 20;
/// The messages after which a sequencer crashes.
const KINDS: [&str; 3] = ["ORDER", "COLLECT", "INSTALL"];

/// Completes `scenario`, whose members are known; the crashes come back. The lowest live member leads, so they crash in turn.
pub(super) fn draw(
    scenario: &mut Scenario,
    mut random: Random,
) -> Result<Vec<Fault>, ScenarioError> {
    scenario.delay.get_or_insert(pick(&DELAYS, &mut random));
    scenario.detector.get_or_insert(time(PERIOD));
    scenario.seed.get_or_insert(random.between(1, 999_999_999));
    let case = scenario.resolve()?;
    let members: Vec<NodeId> = case.members().iter().collect();
    let end = pick(&LENGTHS, &mut random);
    let multicasts = random.between(2, MOST_MULTICASTS);
    let drawn = requests(&members, multicasts, end, &mut random);
    scenario.requests.get_or_insert(drawn);
    let minority = (members.len() - 1) / 2;
    let crashes = random.between(1, minority.max(1) as u64).min(minority as u64) as usize;
    let survivor = members[members.len() - 1];
    let mut generator = FaultGenerator::new(case.members(), &case.dead, survivor, end, random);
    for (place, &victim) in members[..crashes].iter().enumerate() {
        if generator.random.happens(0.6) {
            let kind = if place == 0 { KINDS[0] } else { pick(&KINDS, &mut generator.random) };
            generator.crash_in_the_middle(victim, kind);
        } else {
            let at = generator.random.between(1, end);
            generator.crash(victim, at);
        }
    }
    Ok(generator.into_faults())
}
