//! Requests to enter a critical section, in groups of any shape, on links of any speed.
//!
//! The faults are those that the algorithm claims to tolerate ([`Case::is_tolerated`]): members are slow everywhere, because
//! no algorithm relies on time; a member that is not needed crashes; and in hardened mode messages arrive twice.

use doyen_core::config::Mode;
use doyen_core::config::exclusion::{Sets, Tree};
use doyen_core::members::NodeId;
use doyen_core::protocol::AdminCommand;
use doyen_core::registry::Algorithm;

use super::generator::FaultGenerator;
use super::{DUPLICATIONS, fixed, pick, requests, share, time, uniform};
use doyen_sim::fault::{Action, Fault, Trigger};
use doyen_sim::network::DelayModel;
use doyen_sim::random::Random;
use doyen_sim::scenario::{Case, MemberList, RingOrder, Scenario, ScenarioError};

/// How long members keep asking, in steps.
const LENGTHS: [u64; 4] = [10, 50, 200, 1_000];
/// The maximum number of requests of all members together, of pauses, and of messages outside the algorithm.
const MOST_REQUESTS: u64 = 15;
const MOST_PAUSES: u64 = 4;
const MOST_TELLS: u64 = 30;
const DELAYS: [DelayModel; 4] =
    [fixed(1_000), uniform(200, 1_000), uniform(10, 1_000), uniform(900, 1_000)];
const STAYS: [DelayModel; 4] = [fixed(0), fixed(1_000), uniform(100, 3_000), fixed(10_000)];
/// The period of the failure detector, in steps.
const PERIOD: u64 = 20;
/// The sets that there are for every number of members.
const SETS: [Sets; 3] = [Sets::Cyclic, Sets::Grid, Sets::Majority];

/// Completes `scenario`, whose members are known; returns the faults, and what members tell each other if the order of
/// requests is checked.
pub(super) fn draw(
    scenario: &mut Scenario,
    tells: bool,
    mut random: Random,
) -> Result<Vec<Fault>, ScenarioError> {
    draw_group(scenario, &mut random);
    scenario.delay.get_or_insert(pick(&DELAYS, &mut random));
    scenario.hold.get_or_insert(pick(&STAYS, &mut random));
    scenario.think.get_or_insert(pick(&STAYS, &mut random));
    scenario.seed.get_or_insert(random.between(1, 999_999_999));
    // A copy may overtake what was sent before, and the order of requests needs links that keep it.
    if scenario.mode == Some(Mode::Hardened) && random.happens(0.6) && !tells {
        let duplicate = share(pick(&DUPLICATIONS, &mut random));
        scenario.duplicate = scenario.duplicate.or(duplicate);
    }
    let end = pick(&LENGTHS, &mut random);
    draw_requests(scenario, end, &mut random)?;
    let case = scenario.resolve()?;
    let survivor = case.members().at(0);
    let mut generator = FaultGenerator::new(case.members(), &case.dead, survivor, end, random);
    if case.detector.is_none() {
        for at in generator.times(MOST_PAUSES) {
            if generator.random.happens(0.5) {
                generator.pause(at);
            }
        }
    }
    crash_some(&case, &mut generator);
    if tells && case.detector.is_none() && !case.reliable {
        draw_tells(&case, &mut generator);
    }
    Ok(generator.into_faults())
}

/// The ring, the tree, the voting sets, where the token or the coordinator is, and whether links keep the order.
fn draw_group(scenario: &mut Scenario, random: &mut Random) {
    let (Some(algorithm), Some(MemberList::Count(count))) = (scenario.algorithm, &scenario.members)
    else {
        return;
    };
    let mut order: Vec<u32> = (1..=*count as u32).collect();
    random.shuffle(&mut order);
    if !algorithm.needs_fifo() && random.happens(0.3) {
        scenario.fifo.get_or_insert(true);
    }
    match algorithm {
        Algorithm::Maekawa => drop(scenario.sets.get_or_insert(pick(&SETS, random))),
        Algorithm::Raymond => {
            let shape = pick(&Tree::SHAPES.each_ref(), random);
            scenario.tree.get_or_insert_with(|| shape.clone());
        }
        // Random waits eventually let one member in; how long that takes grows with the number of members that ask.
        Algorithm::Voting => scenario.ask_all |= random.happens(0.5),
        Algorithm::TokenRecovery => drop(scenario.detector.get_or_insert(time(PERIOD))),
        _ => {}
    }
    let has_first =
        matches!(algorithm, Algorithm::Centralised | Algorithm::Raymond | Algorithm::SuzukiKasami);
    if has_first && random.happens(0.5) {
        scenario.leader.get_or_insert(order[0]);
    }
    if algorithm.is_ring() && scenario.ring.is_none() && random.happens(0.7) {
        scenario.ring = Some(RingOrder::Listed(order));
    }
}

/// Some members ask, at any time until `end`, perhaps repeatedly; the others never do.
fn draw_requests(
    scenario: &mut Scenario,
    end: u64,
    random: &mut Random,
) -> Result<(), ScenarioError> {
    let mut asking: Vec<NodeId> = scenario.resolve()?.members().iter().collect();
    random.shuffle(&mut asking);
    asking.truncate(random.between(1, asking.len() as u64) as usize);
    let count = random.between(1, MOST_REQUESTS);
    let drawn = requests(&asking, count, end, random);
    scenario.requests.get_or_insert(drawn);
    if random.happens(0.3) {
        scenario.repeat.get_or_insert(random.between(1, 4) as u32);
    }
    Ok(())
}

/// Members tell each other something, at any time or as soon as they have learned of a request.
fn draw_tells(case: &Case, generator: &mut FaultGenerator<'_>) {
    let has_requests = case.kinds().iter().any(|kind| kind.name == "REQUEST");
    for at in generator.times(MOST_TELLS) {
        let (member, to) = (generator.any_member(), generator.any_member());
        if member == to {
            continue;
        }
        let what = Action::Command { member, command: AdminCommand::Tell { to } };
        if has_requests && generator.random.happens(0.5) {
            let count = generator.random.between(1, 4) as u32;
            let kind = "REQUEST".to_owned();
            let when = Trigger::Message { member, sent: false, kind, count };
            generator.add_when(when, what);
        } else {
            generator.add(at, what);
        }
    }
}

/// Members crash that the others do not need.
fn crash_some(case: &Case, generator: &mut FaultGenerator<'_>) {
    let spare = case.members().iter().filter(|&id| case.tolerates_crash_of(id));
    let mut spare: Vec<NodeId> = spare.collect();
    generator.random.shuffle(&mut spare);
    let most = match case.algorithm {
        Algorithm::Voting => {
            let voters = case.config.exclusion.asked_voters(case.members()).count();
            voters - case.config.exclusion.votes(case.members())
        }
        _ => spare.len().min(case.members().len() - 1),
    };
    let count = generator.random.between(0, most as u64) as usize;
    for victim in spare.into_iter().take(count) {
        let at = generator.random.between(1, generator.end);
        generator.crash(victim, at);
    }
}
