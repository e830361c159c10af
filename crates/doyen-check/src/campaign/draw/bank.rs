//! Payments of a bank, and a snapshot during them. There are no faults, but payments and markers take any time: a snapshot
//! must be consistent on channels that lose nothing and keep the order.

use doyen_core::members::NodeId;
use doyen_core::protocol::AdminCommand;

use super::{fixed, pick, requests, time, uniform};
use doyen_sim::fault::{Action, Fault};
use doyen_sim::network::DelayModel;
use doyen_sim::random::Random;
use doyen_sim::scenario::{Scenario, ScenarioError};
use doyen_sim::time::Time;

/// How long members keep paying, in steps.
const LENGTHS: [u64; 3] = [10, 40, 150];
/// The maximum number of payments.
const MOST_PAYMENTS: u64 = 30;
const DELAYS: [DelayModel; 3] = [fixed(1_000), uniform(100, 1_000), uniform(10, 5_000)];

/// Completes `scenario`, whose members are known; the snapshot comes back.
pub(super) fn draw(
    scenario: &mut Scenario,
    mut random: Random,
) -> Result<Vec<Fault>, ScenarioError> {
    scenario.delay.get_or_insert(pick(&DELAYS, &mut random));
    scenario.seed.get_or_insert(random.between(1, 999_999_999));
    let members: Vec<NodeId> = scenario.resolve()?.members().iter().collect();
    let end = pick(&LENGTHS, &mut random);
    let payments = random.between(1, MOST_PAYMENTS);
    let drawn = requests(&members, payments, end, &mut random);
    scenario.requests.get_or_insert(drawn);
    let member = pick(&members, &mut random);
    let at = Time::ZERO + time(random.between(0, end));
    Ok(vec![Fault::at(at, Action::Command { member, command: AdminCommand::Snapshot })])
}
