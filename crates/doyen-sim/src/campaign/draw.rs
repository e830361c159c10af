//! Draws the scenario of one run.
//!
//! Everything is counted in `D`, a millisecond, and in tenths of it. Loss makes `D` longer, by as much as two
//! retransmissions take, so a lossy network is drawn faster. Storms are of different density: as many faults within
//! twenty milliseconds meet each other's elections as within two hundred meet what came of them.

use doyen_core::algorithm::Algorithm;
use doyen_core::members::{Members, NodeId};
use doyen_core::protocol::Kind;
use doyen_core::time::Span;

use super::Campaign;
use crate::random::{Random, splitmix};
use crate::run;
use crate::scenario::{
    After, Case, FaultEntry, Initiator, Initiators, MemberList, RingOrder, Scenario, ScenarioError,
    Share,
};

/// Times are drawn in these steps.
const STEP: Span = Span::from_micros(100);
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
const DUPLICATIONS: [f64; 3] = [0.01, 0.05, 0.2];
/// Periods of the failure detector and of a leader's own heartbeat.
const PERIODS: [&str; 3] = ["10ms", "20ms", "30ms"];

/// The scenario of run number `number` of `campaign`.
pub(super) fn scenario(campaign: &Campaign, number: u64) -> Result<Scenario, ScenarioError> {
    let mut random = Random::new(splitmix(campaign.seed).wrapping_add(number));
    let mut scenario = campaign.base.clone();
    if scenario.algorithm.is_empty() {
        let turn = number.wrapping_sub(1) % Algorithm::SEEDS.len() as u64;
        scenario.algorithm = Algorithm::SEEDS[turn as usize].to_string();
    }
    scenario.mode.get_or_insert_with(|| "hardened".to_owned());
    draw_members(&mut scenario, &campaign.members, &mut random);
    draw_network(&mut scenario, &mut random);
    scenario.seed.get_or_insert(random.between(1, 999_999_999));
    // Whether everything said so far makes sense, and who takes part.
    let case = scenario.resolve()?;
    // Where somebody is named who notices, somebody of them is left to do so.
    let noticing = case.initiators.iter().map(|(id, _)| id);
    let noticing = if scenario.initiators.is_some() { noticing.collect() } else { Vec::new() };
    let mut storm = Storm::new(&case, &noticing, random);
    storm.draw_beginning(&mut scenario);
    storm.rage(run::kinds(case.algorithm));
    storm.abate();
    scenario.fault.extend(storm.into_faults());
    Ok(scenario)
}

fn draw_members(
    scenario: &mut Scenario,
    range: &std::ops::RangeInclusive<u32>,
    random: &mut Random,
) {
    let drawn = random.between(u64::from(*range.start()), u64::from(*range.end()));
    let members = scenario.members.get_or_insert(MemberList::Count(drawn));
    let &mut MemberList::Count(count) = members else { return };
    let mut order: Vec<u32> = (1..=count as u32).collect();
    random.shuffle(&mut order);
    if scenario.ring.is_none() && random.happens(0.7) {
        scenario.ring = Some(RingOrder::Listed(order));
    }
    // Few values, so that some members have the same and the id decides.
    if scenario.attr.is_empty() && random.happens(0.25) {
        let attr = |id: u32| (id.to_string(), random.between(0, 3) as i64);
        scenario.attr = (1..=count as u32).map(attr).collect();
    }
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

fn pick<T: Copy>(choices: &[T], random: &mut Random) -> T {
    choices[random.between(0, choices.len() as u64 - 1) as usize]
}

/// A storm while it is drawn. Times are in steps.
struct Storm<'m> {
    members: &'m Members,
    random: Random,
    /// Everything goes wrong, or only what a textbook algorithm is made for.
    full: bool,
    lasts: u64,
    /// Comes up again whatever happens, so that somebody does, and is the one that has noticed if anybody must.
    survivor: NodeId,
    /// Until when a member is down.
    down: Vec<(NodeId, u64)>,
    /// Whose clock runs wrong.
    wrong_clocks: Vec<NodeId>,
    faults: Vec<(u64, FaultEntry)>,
}

impl<'m> Storm<'m> {
    fn new(case: &'m Case, noticing: &[NodeId], mut random: Random) -> Self {
        let (members, full) = (case.members(), case.config.hardened());
        let lasts = pick(&STORMS, &mut random);
        let alive: Vec<NodeId> = members.iter().filter(|id| !case.dead.contains(id)).collect();
        let survivor = pick(if noticing.is_empty() { &alive } else { noticing }, &mut random);
        let down = case.dead.iter().map(|&id| (id, u64::MAX)).collect();
        let (wrong_clocks, faults) = (Vec::new(), Vec::new());
        Self { members, random, full, lasts, survivor, down, wrong_clocks, faults }
    }

    /// Who leads, who is dead and who has noticed.
    fn draw_beginning(&mut self, scenario: &mut Scenario) {
        if scenario.dead.is_empty() && self.random.happens(0.15) {
            let dead = self.anybody();
            let must_live = dead == self.survivor || scenario.leader == Some(dead.0);
            if !must_live && !names(scenario, dead) {
                scenario.dead = vec![dead.0];
                scenario.contact_dead = self.random.happens(0.5);
                self.down.push((dead, u64::MAX));
                if self.random.happens(0.5) {
                    let at = self.random.between(1, self.lasts);
                    self.restart(dead, at);
                }
            }
        }
        // Where nobody is to notice that there is no leader, there must be one.
        let nobody = Some(Initiators::Named("none".to_owned()));
        let needs_leader = scenario.initiators == nobody;
        let may_have_leader = needs_leader || scenario.initiators.is_none();
        if scenario.leader.is_none()
            && may_have_leader
            && (needs_leader || self.random.happens(0.6))
        {
            let leader =
                if self.random.happens(0.7) { self.best_up(0) } else { self.anybody_up(0) };
            scenario.leader = Some(leader.0);
        }
        if scenario.initiators.is_some() || scenario.leader.is_some() {
            return;
        }
        let mut listed = vec![Initiator::AtOnce(self.survivor.0)];
        for id in self.members.iter() {
            if id == self.survivor || !self.is_up(id, 0) || self.random.happens(0.5) {
                continue;
            }
            listed.push(match self.random.between(0, 50) {
                0..=20 => Initiator::AtOnce(id.0),
                steps => Initiator::At { member: id.0, at: time(steps - 20) },
            });
        }
        scenario.initiators = Some(Initiators::Listed(listed));
    }

    fn rage(&mut self, kinds: &[Kind]) {
        let count = self.random.between(1, MOST_TROUBLES);
        let mut times: Vec<u64> = (0..count).map(|_| self.random.between(1, self.lasts)).collect();
        times.sort_unstable();
        for at in times {
            match self.random.between(0, 99) {
                0..=34 => self.crash(at),
                35..=44 => {
                    let campaign = Some(self.anybody().0);
                    self.fault(at, FaultEntry { campaign, ..FaultEntry::default() });
                }
                _ if !self.full => self.crash(at),
                45..=59 => self.pause(at),
                60..=67 => self.upset_clock(at),
                68..=81 => self.cut(at),
                82..=91 => self.partition(at),
                _ => self.crash_in_the_middle(kinds),
            }
        }
    }

    /// What was broken is mended: then it is calm.
    fn abate(&mut self) {
        for id in std::mem::take(&mut self.wrong_clocks) {
            let (clock, rate) = (Some(id.0), Some(1.0));
            self.fault(self.lasts, FaultEntry { clock, rate, ..FaultEntry::default() });
        }
        let breaks =
            |(_, fault): &(u64, FaultEntry)| fault.cut.is_some() || fault.partition.is_some();
        if self.faults.iter().any(breaks) {
            self.fault(self.lasts, FaultEntry { heal: true, ..FaultEntry::default() });
        }
        // Without a detector somebody must notice a crash by using what is no longer there.
        if !self.full {
            let campaign = Some(self.survivor.0);
            self.fault(self.lasts + 1, FaultEntry { campaign, ..FaultEntry::default() });
        }
    }

    fn into_faults(mut self) -> impl Iterator<Item = FaultEntry> {
        self.faults.sort_by_key(|&(at, _)| at);
        self.faults.into_iter().map(|(at, fault)| match fault.when {
            Some(_) => fault,
            None => FaultEntry { at: Some(time(at)), ..fault },
        })
    }

    fn fault(&mut self, at: u64, fault: FaultEntry) {
        self.faults.push((at, fault));
    }

    fn crash(&mut self, at: u64) {
        let victim = if self.random.happens(0.5) { self.best_up(at) } else { self.anybody_up(at) };
        self.fault(at, FaultEntry { crash: Some(victim.0), ..FaultEntry::default() });
        self.down.push((victim, u64::MAX));
        if !self.full && self.random.happens(0.8) {
            // Somebody uses what is no longer there.
            let campaign = Some(self.anybody().0);
            let at = at + self.random.between(1, 50);
            self.fault(at.min(self.lasts), FaultEntry { campaign, ..FaultEntry::default() });
        }
        if victim == self.survivor || self.random.happens(0.7) {
            let after = self.some_time();
            self.restart(victim, (at + after).min(self.lasts));
        }
    }

    fn restart(&mut self, id: NodeId, at: u64) {
        let disk = self.random.happens(0.25).then_some(false);
        self.fault(at, FaultEntry { restart: Some(id.0), disk, ..FaultEntry::default() });
        self.down.retain(|&(down, _)| down != id);
        self.down.push((id, at));
    }

    /// A member dies between two of the messages that it sends at once, or as soon as it has heard of something.
    fn crash_in_the_middle(&mut self, kinds: &[Kind]) {
        let victim = self.anybody();
        if victim == self.survivor {
            return;
        }
        let when = After {
            member: victim.0,
            has: if self.random.happens(0.7) { "sent" } else { "received" }.to_owned(),
            kind: pick(kinds, &mut self.random).name.to_owned(),
            count: self.random.between(1, 4) as u32,
        };
        let crash = Some(victim.0);
        self.fault(0, FaultEntry { when: Some(when), crash, ..FaultEntry::default() });
        if self.random.happens(0.7) {
            self.restart(victim, self.lasts);
        }
    }

    fn pause(&mut self, at: u64) {
        let pause = Some(self.anybody().0);
        let lasting = Some(time(self.some_time().min(self.lasts - at).max(1)));
        self.fault(at, FaultEntry { pause, lasting, ..FaultEntry::default() });
    }

    fn upset_clock(&mut self, at: u64) {
        let id = self.anybody();
        let (clock, rate) = (Some(id.0), Some(pick(&RATES, &mut self.random)));
        let skew = self.random.happens(0.3).then(|| time(self.random.between(1, 100)));
        self.fault(at, FaultEntry { clock, rate, skew, ..FaultEntry::default() });
        if !self.wrong_clocks.contains(&id) {
            self.wrong_clocks.push(id);
        }
    }

    fn cut(&mut self, at: u64) {
        let (from, to) = (self.anybody(), self.anybody());
        if from == to {
            return;
        }
        let link = Some([from.0, to.0]);
        self.fault(at, FaultEntry { cut: link, ..FaultEntry::default() });
        if self.random.happens(0.5) {
            let mended = (at + self.some_time()).min(self.lasts);
            self.fault(mended, FaultEntry { mend: link, ..FaultEntry::default() });
        }
    }

    fn partition(&mut self, at: u64) {
        let (mut one, mut other) = (Vec::new(), Vec::new());
        for id in self.members.iter() {
            if self.random.happens(0.5) { one.push(id.0) } else { other.push(id.0) }
        }
        if one.is_empty() || other.is_empty() {
            return;
        }
        let partition = Some(vec![one, other]);
        self.fault(at, FaultEntry { partition, ..FaultEntry::default() });
        if self.random.happens(0.5) {
            let healed = (at + self.some_time()).min(self.lasts);
            self.fault(healed, FaultEntry { heal: true, ..FaultEntry::default() });
        }
    }

    /// Short times are as likely as long ones.
    fn some_time(&mut self) -> u64 {
        let longest = pick(&[5, 50, 400, self.lasts], &mut self.random);
        self.random.between(1, longest)
    }

    fn anybody(&mut self) -> NodeId {
        self.members.at(self.random.between(0, self.members.len() as u64 - 1) as usize)
    }

    fn is_up(&self, id: NodeId, at: u64) -> bool {
        self.down.iter().all(|&(down, until)| down != id || until <= at)
    }

    fn up(&self, at: u64) -> impl Iterator<Item = NodeId> {
        self.members.iter().filter(move |&id| self.is_up(id, at))
    }

    fn anybody_up(&mut self, at: u64) -> NodeId {
        let up: Vec<NodeId> = self.up(at).collect();
        if up.is_empty() { self.survivor } else { pick(&up, &mut self.random) }
    }

    fn best_up(&self, at: u64) -> NodeId {
        self.up(at).max_by_key(|&id| self.members.key(id)).unwrap_or(self.survivor)
    }
}

/// Whether `scenario` says of `id` that it notices something.
fn names(scenario: &Scenario, id: NodeId) -> bool {
    let Some(Initiators::Listed(listed)) = &scenario.initiators else { return false };
    listed.iter().any(|initiator| match *initiator {
        Initiator::AtOnce(who) | Initiator::At { member: who, .. } => who == id.0,
    })
}

/// So many steps, as they are written in a scenario.
fn time(steps: u64) -> String {
    (STEP * steps).to_string()
}
