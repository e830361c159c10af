//! Storms for the seeds' algorithms.
//!
//! Loss makes `D` longer, by as much as two retransmissions take, so a lossy network is drawn faster. Storms are of
//! different density: as many faults within twenty milliseconds meet each other's elections as within two hundred meet
//! what came of them.

use doyen_core::members::NodeId;
use doyen_core::protocol::Kind;

use super::storm::Storm;
use super::{DUPLICATIONS, draw_attributes, pick, time};
use crate::random::Random;
use crate::scenario::{
    DiskEntry, FaultEntry, Initiator, Initiators, MemberList, RingOrder, Scenario, ScenarioError,
    Share,
};

/// How long a storm lasts, in steps.
const STORMS: [u64; 4] = [150, 400, 1_000, 2_500];
/// At most so many troubles to a storm.
const MOST_TROUBLES: u64 = 10;
/// Rates of clocks that run wrong.
const RATES: [f64; 6] = [0.5, 0.8, 0.95, 1.05, 1.25, 2.0];
/// Delays and the rate of loss that goes with them.
const SOUND_DELAYS: [&str; 4] = ["1ms", "uniform:0.2ms..1ms", "uniform:0.9ms..1ms", "exp:0.1ms"];
const LOSSY_DELAYS: [&str; 3] = ["0.15ms", "uniform:0.05ms..0.15ms", "uniform:0.14ms..0.15ms"];
const LOSSES: [f64; 4] = [0.01, 0.02, 0.05, 0.1];
/// Periods of the failure detector and of a leader's own heartbeat.
const PERIODS: [&str; 3] = ["10ms", "20ms", "30ms"];

/// Completes `scenario`, whose members are known; what goes wrong comes back.
pub(super) fn draw(
    scenario: &mut Scenario,
    mut random: Random,
) -> Result<Vec<FaultEntry>, ScenarioError> {
    draw_members(scenario, &mut random);
    draw_network(scenario, &mut random);
    scenario.seed.get_or_insert(random.between(1, 999_999_999));
    // Whether everything said so far makes sense, and who takes part.
    let case = scenario.resolve()?;
    // Where somebody is named who notices, somebody of them is left to do so.
    let noticing = case.initiators.iter().map(|(id, _)| id);
    let noticing: Vec<NodeId> =
        if scenario.initiators.is_some() { noticing.collect() } else { Vec::new() };
    let lasts = pick(&STORMS, &mut random);
    let alive: Vec<NodeId> = case.members().iter().filter(|id| !case.dead.contains(id)).collect();
    let survivor = pick(if noticing.is_empty() { &alive } else { &noticing }, &mut random);
    let mut storm = Storm::new(case.members(), &case.dead, survivor, lasts, random);
    let full = case.config.hardened();
    draw_beginning(&mut storm, scenario);
    rage(&mut storm, full, case.algorithm.kinds());
    storm.abate();
    // Without a detector somebody must notice a crash by using what is no longer there.
    if !full {
        let campaign = Some(survivor.0);
        storm.fault(lasts + 1, FaultEntry { campaign, ..FaultEntry::default() });
    }
    Ok(storm.into_faults())
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

/// Only hardened members have what a network that loses messages asks of them: a detector and a reliable link.
fn draw_network(scenario: &mut Scenario, random: &mut Random) {
    let hardened = scenario.mode.as_deref() == Some("hardened");
    let lossy = hardened && random.happens(0.4);
    let delay = if lossy { pick(&LOSSY_DELAYS, random) } else { pick(&SOUND_DELAYS, random) };
    scenario.delay.get_or_insert_with(|| delay.to_owned());
    if random.happens(0.2) {
        scenario.processing.get_or_insert_with(|| "0.1ms".to_owned());
    }
    if !hardened {
        return;
    }
    scenario.reliable = true;
    let (detector, heartbeat) = (pick(&PERIODS, random), pick(&PERIODS, random));
    scenario.detector.get_or_insert_with(|| detector.to_owned());
    scenario.heartbeat.get_or_insert_with(|| heartbeat.to_owned());
    if lossy {
        scenario.loss.get_or_insert(Share::Fraction(pick(&LOSSES, random)));
    }
    if random.happens(0.3) {
        scenario.duplicate.get_or_insert(Share::Fraction(pick(&DUPLICATIONS, random)));
    }
}

/// Who leads, who is dead and who has noticed.
fn draw_beginning(storm: &mut Storm<'_>, scenario: &mut Scenario) {
    if scenario.dead.is_empty() && storm.random.happens(0.15) {
        let dead = storm.anybody();
        let must_live = dead == storm.survivor || scenario.leader == Some(dead.0);
        if !must_live && !names(scenario, dead) {
            scenario.dead = vec![dead.0];
            scenario.contact_dead = storm.random.happens(0.5);
            storm.is_dead(dead);
            if storm.random.happens(0.5) {
                let at = storm.random.between(1, storm.lasts);
                restart(storm, dead, at);
            }
        }
    }
    // Where nobody is to notice that there is no leader, there must be one.
    let nobody = Some(Initiators::Named("none".to_owned()));
    let needs_leader = scenario.initiators == nobody;
    let may_have_leader = needs_leader || scenario.initiators.is_none();
    if scenario.leader.is_none() && may_have_leader && (needs_leader || storm.random.happens(0.6)) {
        let leader = if storm.random.happens(0.7) { storm.best_up(0) } else { storm.anybody_up(0) };
        scenario.leader = Some(leader.0);
    }
    if scenario.initiators.is_some() || scenario.leader.is_some() {
        return;
    }
    let mut listed = vec![Initiator::AtOnce(storm.survivor.0)];
    for id in storm.members.iter() {
        if id == storm.survivor || !storm.is_up(id, 0) || storm.random.happens(0.5) {
            continue;
        }
        listed.push(match storm.random.between(0, 50) {
            0..=20 => Initiator::AtOnce(id.0),
            steps => Initiator::At { member: id.0, at: time(steps - 20) },
        });
    }
    scenario.initiators = Some(Initiators::Listed(listed));
}

/// Everything goes wrong, or only what a textbook algorithm is made for.
fn rage(storm: &mut Storm<'_>, full: bool, kinds: &[Kind]) {
    for at in storm.times(MOST_TROUBLES) {
        match storm.random.between(0, 99) {
            0..=34 => crash(storm, at, full),
            35..=44 => {
                let campaign = Some(storm.anybody().0);
                storm.fault(at, FaultEntry { campaign, ..FaultEntry::default() });
            }
            _ if !full => crash(storm, at, full),
            45..=59 => storm.pause(at),
            60..=67 => upset_clock(storm, at),
            68..=81 => storm.cut(at),
            82..=91 => storm.partition(at, Vec::new()),
            _ => crash_in_the_middle(storm, kinds),
        }
    }
}

fn crash(storm: &mut Storm<'_>, at: u64, full: bool) {
    let victim = if storm.random.happens(0.5) { storm.best_up(at) } else { storm.anybody_up(at) };
    storm.crash(victim, at);
    if !full && storm.random.happens(0.8) {
        // Somebody uses what is no longer there.
        let campaign = Some(storm.anybody().0);
        let at = at + storm.random.between(1, 50);
        storm.fault(at.min(storm.lasts), FaultEntry { campaign, ..FaultEntry::default() });
    }
    if victim == storm.survivor || storm.random.happens(0.7) {
        let after = storm.some_time();
        restart(storm, victim, (at + after).min(storm.lasts));
    }
}

fn restart(storm: &mut Storm<'_>, id: NodeId, at: u64) {
    let disk = storm.random.happens(0.25).then_some(DiskEntry::Kept(false));
    storm.restart(id, at, FaultEntry { disk, ..FaultEntry::default() });
}

fn crash_in_the_middle(storm: &mut Storm<'_>, kinds: &[Kind]) {
    let victim = storm.anybody();
    if victim == storm.survivor {
        return;
    }
    let kind = pick(kinds, &mut storm.random).name;
    storm.crash_in_the_middle(victim, kind);
    if storm.random.happens(0.7) {
        restart(storm, victim, storm.lasts);
    }
}

fn upset_clock(storm: &mut Storm<'_>, at: u64) {
    let id = storm.anybody();
    let rate = pick(&RATES, &mut storm.random);
    let skew = storm.random.happens(0.3).then(|| time(storm.random.between(1, 100)));
    storm.upset_clock(id, at, rate, skew);
}

/// Whether `scenario` says of `id` that it notices something.
fn names(scenario: &Scenario, id: NodeId) -> bool {
    let Some(Initiators::Listed(listed)) = &scenario.initiators else { return false };
    listed.iter().any(|initiator| match *initiator {
        Initiator::AtOnce(who) | Initiator::At { member: who, .. } => who == id.0,
    })
}
