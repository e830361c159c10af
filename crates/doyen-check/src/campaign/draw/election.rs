//! Faults for the algorithms that elect without a quorum.
//!
//! Loss makes `D` longer, by as much as two retransmissions take, so a lossy network is drawn faster. Schedules have
//! different densities: within twenty milliseconds faults meet each other's elections, and within two hundred as many
//! faults meet the results of those.

use doyen_core::config::Mode;
use doyen_core::members::NodeId;
use doyen_core::protocol::Kind;
use doyen_core::time::Span;

use super::generator::{Comeback, FaultGenerator};
use super::{DUPLICATIONS, draw_attributes, fixed, pick, share, time, uniform};
use doyen_sim::fault::{Action, Disk, Fault};
use doyen_sim::network::DelayModel;
use doyen_sim::random::Random;
use doyen_sim::scenario::{Initiator, Initiators, MemberList, RingOrder, Scenario, ScenarioError};

/// How long faults happen, in steps.
const LENGTHS: [u64; 4] = [150, 400, 1_000, 2_500];
/// The maximum number of faults, besides what follows from them.
const MAX_FAULTS: u64 = 10;
/// Rates of clocks that run wrong, in parts per million.
const RATES: [u32; 6] = [500_000, 800_000, 950_000, 1_050_000, 1_250_000, 2_000_000];
/// Delays and the rate of loss that goes with them.
const SOUND_DELAYS: [DelayModel; 4] = [
    fixed(1_000),
    uniform(200, 1_000),
    uniform(900, 1_000),
    DelayModel::Exponential { mean: 100_000 },
];
const LOSSY_DELAYS: [DelayModel; 3] = [fixed(150), uniform(50, 150), uniform(140, 150)];
const LOSSES: [f64; 4] = [0.01, 0.02, 0.05, 0.1];
/// Periods of the failure detector and of a leader's own heartbeat, in steps.
const PERIODS: [u64; 3] = [100, 200, 300];

/// Completes `scenario`, whose members are known; returns the faults.
pub(super) fn draw(
    scenario: &mut Scenario,
    mut random: Random,
) -> Result<Vec<Fault>, ScenarioError> {
    draw_members(scenario, &mut random);
    draw_network(scenario, &mut random);
    scenario.seed.get_or_insert(random.between(1, 999_999_999));
    // Checks that everything so far makes sense, and finds the members.
    let case = scenario.resolve()?;
    // If initiators are named, at least one of them stays up.
    let noticing = case.initiators.iter().map(|(id, _)| id);
    let noticing: Vec<NodeId> =
        if scenario.initiators.is_some() { noticing.collect() } else { Vec::new() };
    let end = pick(&LENGTHS, &mut random);
    let alive: Vec<NodeId> = case.members().iter().filter(|id| !case.dead.contains(id)).collect();
    let survivor = pick(if noticing.is_empty() { &alive } else { &noticing }, &mut random);
    let mut generator = FaultGenerator::new(case.members(), &case.dead, survivor, end, random);
    let full = case.config.hardened();
    draw_beginning(&mut generator, scenario);
    inject(&mut generator, full, case.algorithm.kinds());
    generator.heal();
    // Without a detector a member must notice a crash by a request that is not answered.
    if !full {
        generator.add(end + 1, Action::Campaign(survivor));
    }
    Ok(generator.into_faults())
}

fn draw_members(scenario: &mut Scenario, random: &mut Random) {
    let Some(MemberList::Count(count)) = scenario.members else { return };
    let mut order: Vec<u32> = (1..=count as u32).collect();
    random.shuffle(&mut order);
    if scenario.ring.is_none() && random.happens(0.7) {
        scenario.ring = Some(RingOrder::Listed(order));
    }
    draw_attributes(scenario, count, random);
}

/// Only hardened members have what a network that loses messages requires: a detector and a reliable link.
fn draw_network(scenario: &mut Scenario, random: &mut Random) {
    let hardened = scenario.mode == Some(Mode::Hardened);
    let lossy = hardened && random.happens(0.4);
    let delay = if lossy { pick(&LOSSY_DELAYS, random) } else { pick(&SOUND_DELAYS, random) };
    scenario.delay.get_or_insert(delay);
    if random.happens(0.2) {
        scenario.processing.get_or_insert(time(1));
    }
    if !hardened {
        return;
    }
    scenario.reliable = true;
    let (detector, heartbeat) = (pick(&PERIODS, random), pick(&PERIODS, random));
    scenario.detector.get_or_insert(time(detector));
    scenario.heartbeat.get_or_insert(time(heartbeat));
    if lossy {
        let loss = share(pick(&LOSSES, random));
        scenario.loss = scenario.loss.or(loss);
    }
    if random.happens(0.3) {
        let duplicate = share(pick(&DUPLICATIONS, random));
        scenario.duplicate = scenario.duplicate.or(duplicate);
    }
}

/// The leader, the dead members and the initiators.
fn draw_beginning(generator: &mut FaultGenerator<'_>, scenario: &mut Scenario) {
    if scenario.dead.is_empty() && generator.random.happens(0.15) {
        let dead = generator.any_member();
        let must_live = dead == generator.survivor || scenario.leader == Some(dead.0);
        if !must_live && !names(scenario, dead) {
            scenario.dead = vec![dead.0];
            scenario.contact_dead = generator.random.happens(0.5);
            generator.mark_down(dead);
            if generator.random.happens(0.5) {
                let at = generator.random.between(1, generator.end);
                restart(generator, dead, at);
            }
        }
    }
    // Without initiators there must be a leader.
    let needs_leader = scenario.initiators == Some(Initiators::None);
    let may_have_leader = needs_leader || scenario.initiators.is_none();
    if scenario.leader.is_none()
        && may_have_leader
        && (needs_leader || generator.random.happens(0.6))
    {
        let leader = if generator.random.happens(0.7) {
            generator.best_up(0)
        } else {
            generator.any_member_up(0)
        };
        scenario.leader = Some(leader.0);
    }
    if scenario.initiators.is_some() || scenario.leader.is_some() {
        return;
    }
    let mut listed = vec![Initiator::AtOnce(generator.survivor.0)];
    for id in generator.members.iter() {
        if id == generator.survivor || !generator.is_up(id, 0) || generator.random.happens(0.5) {
            continue;
        }
        listed.push(match generator.random.between(0, 50) {
            0..=20 => Initiator::AtOnce(id.0),
            steps => Initiator::At { member: id.0, at: time(steps - 20) },
        });
    }
    scenario.initiators = Some(Initiators::Listed(listed));
}

/// All kinds of faults, or only those that a textbook algorithm is made for.
fn inject(generator: &mut FaultGenerator<'_>, full: bool, kinds: &[Kind]) {
    for at in generator.times(MAX_FAULTS) {
        match generator.random.between(0, 99) {
            0..=34 => crash(generator, at, full),
            35..=44 => {
                let member = generator.any_member();
                generator.add(at, Action::Campaign(member));
            }
            _ if !full => crash(generator, at, full),
            45..=59 => generator.pause(at),
            60..=67 => upset_clock(generator, at),
            68..=81 => generator.cut(at),
            82..=91 => generator.partition(at, Vec::new()),
            _ => crash_in_the_middle(generator, kinds),
        }
    }
}

fn crash(generator: &mut FaultGenerator<'_>, at: u64, full: bool) {
    let victim = if generator.random.happens(0.5) {
        generator.best_up(at)
    } else {
        generator.any_member_up(at)
    };
    generator.crash(victim, at);
    if !full && generator.random.happens(0.8) {
        // A member makes a request to the crashed leader.
        let member = generator.any_member();
        let at = at + generator.random.between(1, 50);
        generator.add(at.min(generator.end), Action::Campaign(member));
    }
    if victim == generator.survivor || generator.random.happens(0.7) {
        let after = generator.some_time();
        restart(generator, victim, (at + after).min(generator.end));
    }
}

fn restart(generator: &mut FaultGenerator<'_>, id: NodeId, at: u64) {
    let disk = if generator.random.happens(0.25) { Disk::Lost } else { Disk::Kept };
    generator.restart(id, at, Comeback { disk, ..Comeback::default() });
}

fn crash_in_the_middle(generator: &mut FaultGenerator<'_>, kinds: &[Kind]) {
    let victim = generator.any_member();
    if victim == generator.survivor {
        return;
    }
    let kind = pick(kinds, &mut generator.random).name;
    generator.crash_in_the_middle(victim, kind);
    if generator.random.happens(0.7) {
        restart(generator, victim, generator.end);
    }
}

fn upset_clock(generator: &mut FaultGenerator<'_>, at: u64) {
    let id = generator.any_member();
    let rate = pick(&RATES, &mut generator.random);
    let jumps = generator.random.happens(0.3);
    let jump = if jumps { time(generator.random.between(1, 100)) } else { Span::ZERO };
    generator.upset_clock(id, at, rate, jump);
}

/// Whether `id` is an initiator in `scenario`.
fn names(scenario: &Scenario, id: NodeId) -> bool {
    let Some(Initiators::Listed(listed)) = &scenario.initiators else { return false };
    listed.iter().any(|initiator| match *initiator {
        Initiator::AtOnce(who) | Initiator::At { member: who, .. } => who == id.0,
    })
}
