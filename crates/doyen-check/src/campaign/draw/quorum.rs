//! Faults for a quorum.
//!
//! A quorum tolerates more than the other algorithms, so there are more faults: messages take far longer than vote leases
//! last, a third of them is lost, all messages of a kind are delayed, and operators give commands at the worst moments.
//! Clocks are wrong from the beginning, up to the drift that members assume and never beyond, because leases need not
//! survive that. Times are drawn in proportion to the vote lease: shorter and longer times exercise different rules.
//!
//! In the end all members are up, or enough for a majority. In some runs members lose their disks, repeatedly but never two
//! at the same time, and then all members come up: such a member needs an answer from all others. Some members restart with
//! another timing than before, and some attributes keep changing.
//!
//! Half of the runs have sessions. In those some members restart at another address, and where disks are lost, machines are
//! replaced: the old process continues to run beside its replacement, or hangs and resumes, perhaps on the other side of a
//! partition. A disk that is restored from a copy is detected if members with later data are reachable, so this happens when
//! everything is healed and all members are up. Clones and members that are founded a second time are left to scenarios.

use doyen_core::config::quorum::{Pace, Preemption};
use doyen_core::members::NodeId;
use doyen_core::protocol::{AdminCommand, Kind};
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;

use super::generator::{Comeback, FaultGenerator};
use super::{DUPLICATIONS, STEP, draw_attributes, fixed, pick, share, time, uniform};
use doyen_sim::fault::{Action, Disk, Fault, Guardian, LinkOverride, PaceOverride, Place};
use doyen_sim::network::DelayModel;
use doyen_sim::random::Random;
use doyen_sim::scenario::{Case, Initiators, MemberList, QuorumOptions, Scenario, ScenarioError};

/// How long faults happen, in vote leases.
const LENGTHS: [u64; 3] = [2, 5, 12];
/// The maximum number of faults, besides what follows from them.
const MAX_FAULTS: u64 = 20;
/// Delays in calm: `D` is a millisecond.
pub(super) const BOUND: Span = Span::from_millis(1);
const DELAYS: [DelayModel; 4] = [fixed(100), fixed(1_000), uniform(50, 300), uniform(200, 1_000)];
const PREEMPTIONS: [Preemption; 4] =
    [Preemption::Never, Preemption::Delayed, Preemption::Delayed, Preemption::Immediate];
/// The share of messages that an override affects, if it does not affect all.
const SHARES: [f64; 3] = [0.05, 0.2, 0.4];
/// How long messages take at most where an override delays them, in quarters of a vote lease.
const STRAYING: [u64; 4] = [1, 3, 6, 16];
const LOSSES: [f64; 4] = [0.02, 0.1, 0.3, 1.0];
/// In steps.
const HEARTBEATS: [u64; 3] = [20, 40, 80];
/// The drift ρ, in thousandths.
const DRIFTS: [u32; 4] = [10, 100, 100, 300];
/// By how much vote leases are longer than they must be, in tenths.
const GENEROSITIES: [u64; 4] = [10, 10, 15, 25];

/// Completes `scenario`, whose members are known; returns the faults.
pub(super) fn draw(
    scenario: &mut Scenario,
    mut random: Random,
) -> Result<Vec<Fault>, ScenarioError> {
    if let Some(MemberList::Count(count)) = scenario.members {
        draw_attributes(scenario, count, &mut random);
    }
    draw_network(scenario, &mut random);
    let paces_vary = scenario.quorum.is_none();
    draw_settings(scenario, &mut random)?;
    scenario.seed.get_or_insert(random.between(1, 999_999_999));
    // Beside an old process of its member, a client of a lock would be two.
    scenario.sessions |= random.happens(0.5) && scenario.algorithm == Some(Algorithm::Quorum);
    let case = scenario.resolve()?;
    let mut generator = QuorumGenerator::new(&case, paces_vary, random);
    generator.draw_beginning(scenario);
    generator.draw_clocks();
    generator.draw_link_override();
    generator.inject(&case.kinds());
    generator.heal();
    generator.restore_a_disk();
    Ok(generator.base.into_faults())
}

pub(super) fn draw_network(scenario: &mut Scenario, random: &mut Random) {
    let delay = pick(&DELAYS, random);
    if scenario.delay.is_none() {
        scenario.delay = Some(delay);
        scenario.bound.get_or_insert(BOUND);
    }
    if random.happens(0.2) {
        scenario.processing.get_or_insert(time(1));
    }
    if random.happens(0.3) {
        let duplicate = share(pick(&DUPLICATIONS, random));
        scenario.duplicate = scenario.duplicate.or(duplicate);
    }
}

/// The settings of the members, unless the base has any.
pub(super) fn draw_settings(
    scenario: &mut Scenario,
    random: &mut Random,
) -> Result<(), ScenarioError> {
    let heartbeat = pick(&HEARTBEATS, random);
    if scenario.quorum.is_some() {
        return Ok(());
    }
    scenario.heartbeat.get_or_insert(time(heartbeat));
    scenario.preempt.get_or_insert_with(|| time(pick(&[20, 100, 300], random)));
    // The members, and how long an answer takes.
    let case = scenario.resolve()?;
    let drift = pick(&DRIFTS, random);
    let mut options = QuorumOptions {
        drift: Some(f64::from(drift) / 1000.0),
        vote_lease: Some(vote_lease(&case, case.config.timing.heartbeat, drift, random)),
        jitter: Some(time(pick(&[1, 10, 40], random))),
        stagger: random.happens(0.3).then(|| time(pick(&[0, 5, 40], random))),
        preemption: Some(pick(&PREEMPTIONS, random)),
        tenure: Some(time(pick(&[0, 50, 300], random))),
        penalty_decay: Some(time(pick(&[20, 80, 200], random))),
        probe: random.happens(0.4).then(|| time(pick(&[50, 200], random))),
        retire: random.happens(0.5).then(|| time(pick(&[5, 50], random))),
        ..QuorumOptions::default()
    };
    let mut ids: Vec<NodeId> = case.members().iter().collect();
    random.shuffle(&mut ids);
    let other_paces = pick(&[0, 0, 1, 2], random);
    for id in ids.iter().take(other_paces) {
        options.pace.insert(id.to_string(), draw_pace(&case, drift, random));
    }
    // At least one member must be able to lead.
    random.shuffle(&mut ids);
    ids.pop();
    let mut some = |probability| match random.happens(probability) {
        true => (0..random.between(1, 2)).filter_map(|_| ids.pop()).map(|id| id.0).collect(),
        false => Vec::new(),
    };
    (options.witnesses, options.reluctant) = (some(0.4), some(0.2));
    scenario.quorum = Some(options);
    Ok(())
}

/// A heartbeat, and a vote lease that suits it.
fn draw_pace(case: &Case, drift: u32, random: &mut Random) -> PaceOverride {
    let heartbeat = STEP * pick(&HEARTBEATS, random);
    let vote_lease = vote_lease(case, heartbeat, drift, random);
    PaceOverride { heartbeat: Some(heartbeat), vote_lease: Some(vote_lease) }
}

/// A vote lease that suits the heartbeat: the shortest, or a more generous one.
fn vote_lease(case: &Case, heartbeat: Span, drift: u32, random: &mut Random) -> Span {
    let lease = heartbeat * 3 + case.config.timing.reply();
    let generosity = pick(&GENEROSITIES, random);
    let wanted = u128::from(lease.as_nanos()) * u128::from(1000 + drift) * u128::from(generosity)
        / (u128::from(1000 - drift) * 10);
    let mut vote_lease = Span::from_nanos(u64::try_from(wanted).unwrap_or(u64::MAX));
    let grain = Span::ZERO;
    while (Pace { heartbeat, vote_lease, drift, grain }).lease() < lease {
        vote_lease = vote_lease + Span::from_nanos(1);
    }
    vote_lease
}

/// A fault schedule that is being generated, and what is needed to end it well.
pub(super) struct QuorumGenerator<'m> {
    pub(super) case: &'m Case,
    pub(super) base: FaultGenerator<'m>,
    /// Whether members may restart with another timing.
    paces_vary: bool,
    /// The usual vote lease, in steps.
    vote_lease: u64,
    /// By how much clocks may be wrong, in thousandths.
    drift: u64,
    /// Whether members may lose their disks.
    forgets: bool,
    /// Whether machines of members may be replaced while they run.
    replaces: bool,
    /// The members whose machines have been replaced.
    replaced: Vec<NodeId>,
    /// The member whose configured name resolves elsewhere. Two such members might never find each other, so there is at
    /// most one, and no other member is replaced, because neither could find the other.
    unnamed: Option<NodeId>,
    /// This many more members may stay dead.
    expendable: usize,
    drained: Vec<NodeId>,
}

impl<'m> QuorumGenerator<'m> {
    pub(super) fn new(case: &'m Case, paces_vary: bool, mut random: Random) -> Self {
        let settings = &case.config.quorum;
        let never = |id: NodeId| settings.witnesses.contains(id) || settings.reluctant.contains(id);
        let may_lead = |id: &NodeId| !never(*id) && !case.dead.contains(id);
        let able: Vec<NodeId> = case.members().iter().filter(may_lead).collect();
        let vote_lease = settings.pace.vote_lease.as_nanos().div_ceil(STEP.as_nanos());
        let end = vote_lease * pick(&LENGTHS, &mut random);
        let survivor =
            if able.is_empty() { case.members().highest() } else { pick(&able, &mut random) };
        let forgets = case.dead.is_empty() && random.happens(0.3);
        let mut base = FaultGenerator::new(case.members(), &case.dead, survivor, end, random);
        base.spells = [5, (vote_lease / 4).max(1), vote_lease, end];
        let spare = (case.members().len() - 1) / 2;
        let expendable = if forgets { 0 } else { spare.saturating_sub(case.dead.len()) };
        let drift = u64::from(settings.pace.drift);
        // With two members no rule can distinguish an old process of the other member from the present one.
        let replaces = case.sessions && forgets && case.members().len() > 2;
        let (drained, replaced, unnamed) = (Vec::new(), Vec::new(), None);
        Self {
            case,
            base,
            paces_vary,
            vote_lease,
            drift,
            forgets,
            replaces,
            replaced,
            unnamed,
            expendable,
            drained,
        }
    }

    /// The leader and the dead members. Members watch their leader by themselves, so no initiator is needed.
    pub(super) fn draw_beginning(&mut self, scenario: &mut Scenario) {
        let base = &mut self.base;
        if scenario.dead.is_empty() && self.expendable > 0 && base.random.happens(0.1) {
            let dead = base.any_member();
            if dead != base.survivor && scenario.leader != Some(dead.0) {
                scenario.dead = vec![dead.0];
                base.mark_down(dead);
                self.expendable -= 1;
            }
        }
        let base = &mut self.base;
        if scenario.leader.is_none() && scenario.initiators.is_none() && base.random.happens(0.5) {
            scenario.leader = Some(base.survivor.0);
        }
        if self.case.algorithm.elects() {
            scenario.initiators.get_or_insert(Initiators::None);
        }
    }

    /// Clocks are wrong from the beginning, mostly as wrong as they may be.
    pub(super) fn draw_clocks(&mut self) {
        for id in self.base.members.iter() {
            if self.base.random.happens(0.7) {
                self.upset_clock(id, 0);
            }
        }
    }

    /// In most runs an override affects some messages from the beginning.
    fn draw_link_override(&mut self) {
        if self.base.random.happens(0.6) {
            let share = share(pick(&SHARES, &mut self.base.random));
            let delay = Some(self.long_delay());
            let link = LinkOverride { share, delay, ..LinkOverride::default() };
            self.base.add(0, Action::LinkOverride(link));
        }
    }

    fn long_delay(&mut self) -> DelayModel {
        let longest = self.vote_lease * pick(&STRAYING, &mut self.base.random) / 4;
        let (min, max) = (time(1).as_nanos(), time(longest.max(2)).as_nanos());
        DelayModel::Uniform { min, max }
    }

    fn upset_clock(&mut self, id: NodeId, at: u64) {
        let (slowest, fastest) = (1000 - self.drift, 1000 + self.drift);
        let random = &mut self.base.random;
        let any = random.between(slowest, fastest);
        let rate = pick(&[slowest, fastest, any], random);
        self.base.upset_clock(id, at, rate as u32 * 1000, Span::ZERO);
    }

    fn inject(&mut self, kinds: &[Kind]) {
        for at in self.base.times(MAX_FAULTS) {
            if self.replaces && self.base.random.happens(0.2) {
                self.replace(at);
                continue;
            }
            match self.base.random.between(0, 99) {
                0..=21 => self.crash(at),
                22..=29 => self.crash_in_the_middle(kinds),
                30..=41 => self.base.pause(at),
                42..=48 => {
                    let id = self.base.any_member();
                    self.upset_clock(id, at);
                }
                49..=59 => self.base.cut(at),
                60..=67 => self.partition(at),
                68..=81 => self.link_override(at, kinds),
                _ => self.command(at),
            }
        }
    }

    fn crash(&mut self, at: u64) {
        let victim = self.likely_leader(at);
        let guardian = self.base.random.happens(0.4).then(|| self.draw_guardian());
        self.base.add(at, Action::Crash { member: victim, forwards: false, guardian });
        self.base.mark_down(victim);
        if victim != self.base.survivor && self.expendable > 0 && self.base.random.happens(0.3) {
            self.expendable -= 1;
            return;
        }
        let after = self.base.some_time();
        self.restart(victim, (at + after).min(self.base.end));
    }

    /// A guardian that must end a job, and wait for a permit.
    fn draw_guardian(&mut self) -> Guardian {
        let random = &mut self.base.random;
        let [job, permit] = [[0, 5, 50], [0, 20, 200]].map(|times| time(pick(&times, random)));
        Guardian { job, permit }
    }

    fn restart(&mut self, id: NodeId, at: u64) {
        let random = &mut self.base.random;
        let lost = self.forgets && random.happens(0.4);
        let disk = if lost { Disk::LostUnlessAnother } else { Disk::Kept };
        let slower = self.paces_vary && random.happens(0.2);
        let pace = slower.then(|| draw_pace(self.case, self.drift as u32, random));
        let moves = self.case.sessions && random.happens(0.2);
        let place = if moves { self.another_place(id) } else { Place::Same };
        self.base.restart(id, at, Comeback { disk, pace, place });
    }

    /// Another address, to which the configured name resolves or not.
    fn another_place(&mut self, id: NodeId) -> Place {
        let is_only = |ids: &[NodeId]| ids.iter().all(|&other| other == id);
        let may_be_unnamed =
            self.unnamed.is_none_or(|unnamed| unnamed == id) && is_only(&self.replaced);
        match may_be_unnamed && self.base.random.happens(0.3) {
            true => {
                self.unnamed = Some(id);
                Place::Unnamed
            }
            false => Place::New,
        }
    }

    /// The machine of a member is replaced. The old one continues to run, or hangs and resumes later.
    fn replace(&mut self, at: u64) {
        let id = self.unnamed.unwrap_or(self.likely_leader(at));
        self.replaced.push(id);
        let left = (self.base.end - at).max(1);
        let hangs = self.base.random.happens(0.7);
        let hung = if hangs { time(self.base.some_time().clamp(1, left)) } else { Span::ZERO };
        let (disk, place) = (Disk::LostUnlessAnother, self.another_place(id));
        self.base.restart_by(id, at, Action::Replace { member: id, disk, hung, place });
        if self.base.random.happens(0.4) {
            self.strand(id, at);
        }
    }

    /// Some time after `id` was replaced, its old process and those on its side, of which some restart, are cut off from its
    /// present one.
    fn strand(&mut self, id: NodeId, at: u64) {
        let parted = (at + self.base.some_time()).min(self.base.end);
        let (mut one, mut other) = (vec![id], Vec::new());
        for member in self.base.members.iter().filter(|&member| member != id) {
            if self.base.random.happens(0.5) { one.push(member) } else { other.push(member) }
        }
        for &member in &other {
            if self.base.random.happens(0.4) {
                self.base.crash(member, parted);
                let back = (parted + self.base.some_time() / 4).min(self.base.end);
                self.restart(member, back);
            }
        }
        let (groups, old) = (vec![one, other], vec![Vec::new(), vec![id]]);
        self.base.add(parted, Action::Partition { groups, old });
    }

    /// The network is partitioned; old processes may be on any side.
    fn partition(&mut self, at: u64) {
        let mut old = vec![Vec::new(), Vec::new()];
        let mut replaced = self.replaced.clone();
        replaced.sort_unstable();
        replaced.dedup();
        for id in replaced {
            old[usize::from(self.base.random.happens(0.5))].push(id);
        }
        let old = if self.replaced.is_empty() { Vec::new() } else { old };
        self.base.partition(at, old);
    }

    /// When that happens is not known, so it counts as if its victim stayed dead even if it is restarted in the end.
    fn crash_in_the_middle(&mut self, kinds: &[Kind]) {
        let victim = self.base.any_member();
        if victim == self.base.survivor || self.expendable == 0 {
            return;
        }
        self.expendable -= 1;
        let kind = pick(kinds, &mut self.base.random).name;
        self.base.crash_in_the_middle(victim, kind);
        for _ in 0..self.base.random.between(0, 2) {
            let at = self.base.random.between(1, self.base.end);
            self.base.restart(victim, at, Comeback::default());
        }
    }

    /// From `at` on some messages take long, or get lost: on a link, of a kind, from one member, or all of them.
    fn link_override(&mut self, at: u64, kinds: &[Kind]) {
        let mut link = LinkOverride::default();
        let (one, other) = (self.base.any_member(), self.base.any_member());
        match self.base.random.between(0, 5) {
            0 => link.from = Some(one),
            1 => link.to = Some(one),
            2 if one != other => (link.from, link.to) = (Some(one), Some(other)),
            3 => link.kind = Some(pick(kinds, &mut self.base.random).name.to_owned()),
            _ => {}
        }
        if self.base.random.happens(0.7) {
            link.delay = Some(self.long_delay());
        } else {
            link.loss = share(pick(&LOSSES, &mut self.base.random));
        }
        if self.base.random.happens(0.5) {
            link.share = share(pick(&SHARES, &mut self.base.random));
        }
        self.base.add(at, Action::LinkOverride(link));
        if self.base.random.happens(0.6) {
            let healed = (at + self.base.some_time()).min(self.base.end);
            self.base.add(healed, Action::Heal);
        }
    }

    /// An operator gives a command.
    fn command(&mut self, at: u64) {
        let member = self.likely_leader(at);
        let (other, lasting) = (self.base.any_member(), time(self.base.some_time()));
        let command = match self.base.random.between(0, 9) {
            9 => AdminCommand::Resume,
            8 => AdminCommand::Pause { lasting },
            7 => {
                let what = self.changing_attribute(member, at);
                return self.base.add(at, what);
            }
            0 => AdminCommand::Resign,
            1 => AdminCommand::Transfer { to: other },
            2 => AdminCommand::Prefer { member: other, lasting },
            3 => {
                let highest = self.base.members.len() as u64 + 2;
                AdminCommand::Attribute(self.base.random.between(0, highest) as i64)
            }
            4 => AdminCommand::Undrain,
            drain => {
                self.drained.push(member);
                AdminCommand::Drain { lasting: (drain == 5).then_some(lasting), never: false }
            }
        };
        self.base.add(at, Action::Command { member, command });
    }

    /// An attribute that keeps changing, by a little or by much, until everything is repaired or earlier.
    fn changing_attribute(&mut self, member: NodeId, at: u64) -> Action {
        let left = self.base.end - at;
        let lasting = self.base.some_time().min(left).max(1);
        let every = pick(&[1, 10, self.vote_lease / 4, self.vote_lease], &mut self.base.random);
        let every = every.max(lasting / 50).max(1);
        let count = self.base.random.between(2, 4);
        let highest = self.base.members.len() as u64 + 2;
        let value = |_| self.base.random.between(0, highest) as i64;
        let values = (0..count).map(value).collect();
        Action::Attributes { member, values, every: time(every), lasting: time(lasting) }
    }

    /// All faults are repaired. Some members stay drained, but never the one that may be needed as leader.
    fn heal(&mut self) {
        self.base.heal();
        let mut drained = std::mem::take(&mut self.drained);
        drained.sort_unstable();
        drained.dedup();
        for member in drained {
            if member == self.base.survivor || self.base.random.happens(0.7) {
                self.base
                    .add(self.base.end, Action::Command { member, command: AdminCommand::Undrain });
            }
        }
    }

    /// In the time without faults, a member restarts with an earlier copy of its disk. All other members are up, and
    /// tell it if the copy is old.
    fn restore_a_disk(&mut self) {
        let base = &mut self.base;
        let end = base.end;
        let all_are_up = base.members.iter().all(|id| base.is_up(id, end));
        let is_suitable = self.case.sessions && base.members.len() > 2 && all_are_up;
        if !is_suitable || self.forgets || base.has_untimed() || !base.random.happens(0.3) {
            return;
        }
        let victim = base.any_member();
        if victim == base.survivor {
            return;
        }
        let copied = base.random.between(1, end);
        base.add(copied, Action::CopyDisk(victim));
        // By then no earlier message is in flight.
        let calm = end + self.vote_lease * 5;
        base.crash(victim, calm);
        let after = base.some_time();
        base.restart(
            victim,
            calm + after,
            Comeback { disk: Disk::Restored, ..Comeback::default() },
        );
    }

    /// As long as there are no faults the best member leads, if any.
    fn likely_leader(&mut self, at: u64) -> NodeId {
        if self.base.random.happens(0.5) {
            self.base.best_up(at)
        } else {
            self.base.any_member_up(at)
        }
    }
}
