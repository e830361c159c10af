//! Requests for a lock under all faults that a quorum tolerates. Under any of these, no two members are inside and fences
//! rise; when the faults are over, every member that waits enters.

use doyen_core::members::NodeId;
use doyen_core::time::Span;

use super::{STEP, fixed, pick, quorum, requests, uniform};
use doyen_sim::fault::Fault;
use doyen_sim::network::DelayModel;
use doyen_sim::random::Random;
use doyen_sim::scenario::{Scenario, ScenarioError};
use doyen_sim::time::Time;

/// The maximum number of requests of all members together.
const MOST_REQUESTS: u64 = 12;
const STAYS: [DelayModel; 4] = [fixed(0), fixed(5_000), uniform(100, 60_000), fixed(100_000)];
/// How long a grant lasts, in quarters of a vote lease.
const GRANTS: [u64; 4] = [2, 4, 12, 12];

/// Completes `scenario`, whose members are known; returns the faults.
pub(super) fn draw(
    scenario: &mut Scenario,
    mut random: Random,
) -> Result<Vec<Fault>, ScenarioError> {
    let of_quorum = Random::new(random.between(0, u64::MAX - 1));
    let faults = quorum::draw(scenario, of_quorum)?;
    let case = scenario.resolve()?;
    let quarter = case.config.quorum.pace.vote_lease.as_nanos() / 4;
    let grant = Span::from_nanos(quarter * pick(&GRANTS, &mut random));
    scenario.grant.get_or_insert(grant);
    scenario.hold.get_or_insert(pick(&STAYS, &mut random));
    scenario.think.get_or_insert(pick(&STAYS, &mut random));
    let members: Vec<NodeId> = case.members().iter().filter(|id| !case.dead.contains(id)).collect();
    let last = faults.iter().filter_map(Fault::time).max().unwrap_or(Time::ZERO);
    let end = (last - Time::ZERO).as_nanos() / STEP.as_nanos();
    let count = random.between(1, MOST_REQUESTS);
    let drawn = requests(&members, count, end.max(1), &mut random);
    scenario.requests.get_or_insert(drawn);
    Ok(faults)
}
