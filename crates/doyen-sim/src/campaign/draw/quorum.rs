//! Storms for a quorum.
//!
//! Its members bear more than those of the seeds' algorithms, so more goes wrong: messages take far longer than the
//! promises last, a third of them gets lost, whole kinds of them stray, and operators give orders at the worst of times.
//! Clocks are wrong from the beginning, by as much as they may be and never by more, for nobody promises that leases
//! survive that. Times are drawn in proportion to the promise: what is shorter than it and what is longer meets other
//! rules.
//!
//! In the end everybody is up, or enough are for a majority. In some runs members lose their disks, again and again but
//! never two at the same time, and then nobody stays dead: such a member needs an answer from all others. Some members
//! restart with another pace than before, and some attributes go on changing.
//!
//! Half of the runs have sessions. In those some members restart at another address, and where disks are lost, machines are
//! replaced: the old process runs on beside its replacement, or hangs and wakes up, perhaps on the other side of a
//! partition. A disk that is restored from a copy is found where members that know better are reachable: so that happens when
//! the storm is over and everybody is up. Clones and members that are founded a second time are left to scenarios.

use doyen_core::algorithm::quorum::settings::Pace;
use doyen_core::members::NodeId;
use doyen_core::protocol::Kind;
use doyen_core::time::Span;

use super::storm::Storm;
use super::{DUPLICATIONS, STEP, draw_attributes, pick, time};
use crate::random::Random;
use crate::scenario::{
    COPY, Case, DiskEntry, FaultEntry, Initiators, LOST_UNLESS_ANOTHER, LinkException, MemberList,
    NEW, PaceEntry, QuorumEntry, Scenario, ScenarioError, Share, UNNAMED,
};

/// How long a storm lasts, in promises.
const STORMS: [u64; 3] = [2, 5, 12];
const MOST_TROUBLES: u64 = 20;
/// Delays in calm: `D` is a millisecond.
pub(super) const BOUND: &str = "1ms";
const DELAYS: [&str; 4] = ["0.1ms", "1ms", "uniform:0.05ms..0.3ms", "uniform:0.2ms..1ms"];
/// How many messages stray where not all of them do.
const SHARES: [f64; 3] = [0.05, 0.2, 0.4];
/// How long messages take at most while the weather is bad, in quarters of a promise.
const STRAYING: [u64; 4] = [1, 3, 6, 16];
const LOSSES: [f64; 4] = [0.02, 0.1, 0.3, 1.0];
/// In steps.
const HEARTBEATS: [u64; 3] = [20, 40, 80];
/// ρ, in thousandths.
const DRIFTS: [u32; 4] = [10, 100, 100, 300];
/// Promises are so much longer than they must be, in tenths.
const GENEROSITIES: [u64; 4] = [10, 10, 15, 25];

/// Completes `scenario`, whose members are known; what goes wrong comes back.
pub(super) fn draw(
    scenario: &mut Scenario,
    mut random: Random,
) -> Result<Vec<FaultEntry>, ScenarioError> {
    if let Some(MemberList::Count(count)) = scenario.members {
        draw_attributes(scenario, count, &mut random);
    }
    draw_network(scenario, &mut random);
    let paces_vary = scenario.quorum.is_none();
    draw_settings(scenario, &mut random)?;
    scenario.seed.get_or_insert(random.between(1, 999_999_999));
    scenario.sessions |= random.happens(0.5);
    let case = scenario.resolve()?;
    let mut tempest = Tempest::new(&case, paces_vary, random);
    tempest.draw_beginning(scenario);
    tempest.draw_clocks();
    tempest.draw_weather();
    tempest.rage(&case.kinds());
    tempest.abate();
    tempest.restore_a_disk();
    Ok(tempest.storm.into_faults())
}

pub(super) fn draw_network(scenario: &mut Scenario, random: &mut Random) {
    let delay = pick(&DELAYS, random);
    if scenario.delay.is_none() {
        scenario.delay = Some(delay.to_owned());
        scenario.bound.get_or_insert_with(|| BOUND.to_owned());
    }
    if random.happens(0.2) {
        scenario.processing.get_or_insert_with(|| "0.1ms".to_owned());
    }
    if random.happens(0.3) {
        scenario.duplicate.get_or_insert(Share::Fraction(pick(&DUPLICATIONS, random)));
    }
}

/// How the members are set, unless the base says anything about it.
pub(super) fn draw_settings(
    scenario: &mut Scenario,
    random: &mut Random,
) -> Result<(), ScenarioError> {
    let heartbeat = pick(&HEARTBEATS, random);
    if scenario.quorum.is_some() {
        return Ok(());
    }
    scenario.heartbeat.get_or_insert_with(|| time(heartbeat));
    scenario.preempt.get_or_insert_with(|| time(pick(&[20, 100, 300], random)));
    // Who takes part, and how long an answer takes.
    let case = scenario.resolve()?;
    let drift = pick(&DRIFTS, random);
    let mut entry = QuorumEntry {
        drift: Some(f64::from(drift) / 1000.0),
        promise: Some(promise(&case, case.config.timing.heartbeat, drift, random)),
        jitter: Some(time(pick(&[1, 10, 40], random))),
        stagger: random.happens(0.3).then(|| time(pick(&[0, 5, 40], random))),
        preemption: Some(pick(&["never", "delayed", "delayed", "immediate"], random).to_owned()),
        tenure: Some(time(pick(&[0, 50, 300], random))),
        forgiveness: Some(time(pick(&[20, 80, 200], random))),
        probe: random.happens(0.4).then(|| time(pick(&[50, 200], random))),
        retire: random.happens(0.5).then(|| time(pick(&[5, 50], random))),
        ..QuorumEntry::default()
    };
    let mut ids: Vec<NodeId> = case.members().iter().collect();
    random.shuffle(&mut ids);
    let other_paces = pick(&[0, 0, 1, 2], random);
    for id in ids.iter().take(other_paces) {
        entry.pace.insert(id.to_string(), draw_pace(&case, drift, random));
    }
    // Somebody must be able to lead.
    random.shuffle(&mut ids);
    ids.pop();
    let mut some = |probability| match random.happens(probability) {
        true => (0..random.between(1, 2)).filter_map(|_| ids.pop()).map(|id| id.0).collect(),
        false => Vec::new(),
    };
    (entry.witnesses, entry.reluctant) = (some(0.4), some(0.2));
    scenario.quorum = Some(entry);
    Ok(())
}

/// A heartbeat, and a vote lease that suits it.
fn draw_pace(case: &Case, drift: u32, random: &mut Random) -> PaceEntry {
    let heartbeat = STEP * pick(&HEARTBEATS, random);
    let promise = promise(case, heartbeat, drift, random);
    PaceEntry { heartbeat: Some(heartbeat.to_string()), promise: Some(promise) }
}

/// A promise that suits the heartbeat: the shortest, or a more generous one.
fn promise(case: &Case, heartbeat: Span, drift: u32, random: &mut Random) -> String {
    let lease = heartbeat * 3 + case.config.timing.reply();
    let generosity = pick(&GENEROSITIES, random);
    let wanted = u128::from(lease.as_nanos()) * u128::from(1000 + drift) * u128::from(generosity)
        / (u128::from(1000 - drift) * 10);
    let mut promise = Span::from_nanos(u64::try_from(wanted).unwrap_or(u64::MAX));
    let grain = Span::ZERO;
    while (Pace { heartbeat, vote_lease: promise, drift, grain }).lease() < lease {
        promise = promise + Span::from_nanos(1);
    }
    promise.to_string()
}

/// A storm, and what must be remembered of it to end it well.
pub(super) struct Tempest<'m> {
    pub(super) case: &'m Case,
    pub(super) storm: Storm<'m>,
    /// Whether members may restart with another pace.
    paces_vary: bool,
    /// The usual promise, in steps.
    promise: u64,
    /// By how much clocks may be wrong, in thousandths.
    drift: u64,
    /// Whether members may lose their disks.
    forgets: bool,
    /// Whether machines of members may be replaced while they run.
    replaces: bool,
    /// Whose machines have been replaced.
    replaced: Vec<NodeId>,
    /// Whose configured name leads elsewhere: one at most, for two of them might never find each other. Nobody else is
    /// replaced then: a replacement cannot know where this one is, nor this one where the replacement is.
    unnamed: Option<NodeId>,
    /// So many more may stay dead.
    expendable: usize,
    drained: Vec<NodeId>,
}

impl<'m> Tempest<'m> {
    pub(super) fn new(case: &'m Case, paces_vary: bool, mut random: Random) -> Self {
        let settings = &case.config.quorum;
        let never = |id: NodeId| settings.witnesses.contains(id) || settings.reluctant.contains(id);
        let may_lead = |id: &NodeId| !never(*id) && !case.dead.contains(id);
        let able: Vec<NodeId> = case.members().iter().filter(may_lead).collect();
        let promise = settings.pace.vote_lease.as_nanos().div_ceil(STEP.as_nanos());
        let lasts = promise * pick(&STORMS, &mut random);
        let survivor =
            if able.is_empty() { case.members().highest() } else { pick(&able, &mut random) };
        let forgets = case.dead.is_empty() && random.happens(0.3);
        let mut storm = Storm::new(case.members(), &case.dead, survivor, lasts, random);
        storm.spells = [5, (promise / 4).max(1), promise, lasts];
        let spare = (case.members().len() - 1) / 2;
        let expendable = if forgets { 0 } else { spare.saturating_sub(case.dead.len()) };
        let drift = u64::from(settings.pace.drift);
        // With two members no rule can tell whose old process one has found.
        let replaces = case.sessions && forgets && case.members().len() > 2;
        let (drained, replaced, unnamed) = (Vec::new(), Vec::new(), None);
        Self {
            case,
            storm,
            paces_vary,
            promise,
            drift,
            forgets,
            replaces,
            replaced,
            unnamed,
            expendable,
            drained,
        }
    }

    /// Who leads, and who is dead. Nobody needs to notice anything: members watch over their leader themselves.
    pub(super) fn draw_beginning(&mut self, scenario: &mut Scenario) {
        let storm = &mut self.storm;
        if scenario.dead.is_empty() && self.expendable > 0 && storm.random.happens(0.1) {
            let dead = storm.anybody();
            if dead != storm.survivor && scenario.leader != Some(dead.0) {
                scenario.dead = vec![dead.0];
                storm.is_dead(dead);
                self.expendable -= 1;
            }
        }
        let storm = &mut self.storm;
        if scenario.leader.is_none() && scenario.initiators.is_none() && storm.random.happens(0.5) {
            scenario.leader = Some(storm.survivor.0);
        }
        scenario.initiators.get_or_insert_with(|| Initiators::Named("none".to_owned()));
    }

    /// Clocks are wrong from the beginning, mostly as wrong as they may be.
    pub(super) fn draw_clocks(&mut self) {
        for id in self.storm.members.iter() {
            if self.storm.random.happens(0.7) {
                self.upset_clock(id, 0);
            }
        }
    }

    /// Mostly some messages stray from the beginning.
    fn draw_weather(&mut self) {
        if self.storm.random.happens(0.6) {
            let weather = LinkException {
                share: Some(Share::Fraction(pick(&SHARES, &mut self.storm.random))),
                delay: Some(self.long_delay()),
                ..LinkException::default()
            };
            self.storm.fault(0, FaultEntry { weather: Some(weather), ..FaultEntry::default() });
        }
    }

    fn long_delay(&mut self) -> String {
        let longest = self.promise * pick(&STRAYING, &mut self.storm.random) / 4;
        format!("uniform:{}..{}", time(1), time(longest.max(2)))
    }

    fn upset_clock(&mut self, id: NodeId, at: u64) {
        let (slowest, fastest) = (1000 - self.drift, 1000 + self.drift);
        let random = &mut self.storm.random;
        let any = random.between(slowest, fastest);
        let rate = pick(&[slowest, fastest, any], random);
        self.storm.upset_clock(id, at, rate as f64 / 1000.0, None);
    }

    fn rage(&mut self, kinds: &[Kind]) {
        for at in self.storm.times(MOST_TROUBLES) {
            if self.replaces && self.storm.random.happens(0.2) {
                self.replace(at);
                continue;
            }
            match self.storm.random.between(0, 99) {
                0..=21 => self.crash(at),
                22..=29 => self.crash_in_the_middle(kinds),
                30..=41 => self.storm.pause(at),
                42..=48 => {
                    let id = self.storm.anybody();
                    self.upset_clock(id, at);
                }
                49..=59 => self.storm.cut(at),
                60..=67 => self.partition(at),
                68..=81 => self.disturb(at, kinds),
                _ => self.order(at),
            }
        }
    }

    fn crash(&mut self, at: u64) {
        let victim = self.likely_leader(at);
        self.storm.crash(victim, at);
        if victim != self.storm.survivor && self.expendable > 0 && self.storm.random.happens(0.3) {
            self.expendable -= 1;
            return;
        }
        let after = self.storm.some_time();
        self.restart(victim, (at + after).min(self.storm.lasts));
    }

    fn restart(&mut self, id: NodeId, at: u64) {
        let random = &mut self.storm.random;
        let lost = self.forgets && random.happens(0.4);
        let disk = lost.then(|| DiskEntry::Named(LOST_UNLESS_ANOTHER.to_owned()));
        let slower = self.paces_vary && random.happens(0.2);
        let pace = slower.then(|| draw_pace(self.case, self.drift as u32, random));
        let moves = self.case.sessions && random.happens(0.2);
        let address = moves.then(|| self.address(id));
        self.storm.restart(id, at, FaultEntry { disk, pace, address, ..FaultEntry::default() });
    }

    /// Another address, to which the configured name leads or not.
    fn address(&mut self, id: NodeId) -> String {
        let is_only = |ids: &[NodeId]| ids.iter().all(|&other| other == id);
        let may_be_unnamed =
            self.unnamed.is_none_or(|unnamed| unnamed == id) && is_only(&self.replaced);
        match may_be_unnamed && self.storm.random.happens(0.3) {
            true => {
                self.unnamed = Some(id);
                UNNAMED.to_owned()
            }
            false => NEW.to_owned(),
        }
    }

    /// The machine of a member is replaced. The old one runs on, or hangs and wakes up later.
    fn replace(&mut self, at: u64) {
        let id = self.unnamed.unwrap_or(self.likely_leader(at));
        self.replaced.push(id);
        let left = (self.storm.lasts - at).max(1);
        let hangs = self.storm.random.happens(0.7);
        let hung = hangs.then(|| time(self.storm.some_time().clamp(1, left)));
        let (disk, address) = (LOST_UNLESS_ANOTHER.to_owned(), self.address(id));
        let replace = FaultEntry {
            replace: Some(id.0),
            disk: Some(DiskEntry::Named(disk)),
            address: Some(address),
            hung,
            ..FaultEntry::default()
        };
        self.storm.restart_by(id, at, replace);
        if self.storm.random.happens(0.4) {
            self.strand(id, at);
        }
    }

    /// Some time after `id` was replaced, its old process and those on its side, of which some restart, are cut off from its
    /// present one.
    fn strand(&mut self, id: NodeId, at: u64) {
        let parted = (at + self.storm.some_time()).min(self.storm.lasts);
        let (mut one, mut other) = (vec![id.0], Vec::new());
        for member in self.storm.members.iter().filter(|&member| member != id) {
            if self.storm.random.happens(0.5) { one.push(member.0) } else { other.push(member.0) }
        }
        for &member in &other {
            if self.storm.random.happens(0.4) {
                self.storm.crash(NodeId(member), parted);
                let back = (parted + self.storm.some_time() / 4).min(self.storm.lasts);
                self.restart(NodeId(member), back);
            }
        }
        let (partition, old) = (Some(vec![one, other]), vec![Vec::new(), vec![id.0]]);
        self.storm.fault(parted, FaultEntry { partition, old, ..FaultEntry::default() });
    }

    /// The network falls apart; old processes may be anywhere.
    fn partition(&mut self, at: u64) {
        let mut old = vec![Vec::new(), Vec::new()];
        let mut replaced = self.replaced.clone();
        replaced.sort_unstable();
        replaced.dedup();
        for id in replaced {
            old[usize::from(self.storm.random.happens(0.5))].push(id.0);
        }
        let old = if self.replaced.is_empty() { Vec::new() } else { old };
        self.storm.partition(at, old);
    }

    /// When that happens is not known, so it counts as if its victim stayed dead even if it is restarted in the end.
    fn crash_in_the_middle(&mut self, kinds: &[Kind]) {
        let victim = self.storm.anybody();
        if victim == self.storm.survivor || self.expendable == 0 {
            return;
        }
        self.expendable -= 1;
        let kind = pick(kinds, &mut self.storm.random).name;
        self.storm.crash_in_the_middle(victim, kind);
        for _ in 0..self.storm.random.between(0, 2) {
            let at = self.storm.random.between(1, self.storm.lasts);
            self.storm.restart(victim, at, FaultEntry::default());
        }
    }

    /// From `at` on some messages take long, or get lost: on a link, of a kind, from somebody, or all of them.
    fn disturb(&mut self, at: u64, kinds: &[Kind]) {
        let mut weather = LinkException::default();
        let (one, other) = (self.storm.anybody().0, self.storm.anybody().0);
        match self.storm.random.between(0, 5) {
            0 => weather.from = Some(one),
            1 => weather.to = Some(one),
            2 if one != other => (weather.from, weather.to) = (Some(one), Some(other)),
            3 => weather.kind = Some(pick(kinds, &mut self.storm.random).name.to_owned()),
            _ => {}
        }
        if self.storm.random.happens(0.7) {
            weather.delay = Some(self.long_delay());
        } else {
            weather.loss = Some(Share::Fraction(pick(&LOSSES, &mut self.storm.random)));
        }
        let random = &mut self.storm.random;
        weather.share = random.happens(0.5).then(|| Share::Fraction(pick(&SHARES, random)));
        self.storm.fault(at, FaultEntry { weather: Some(weather), ..FaultEntry::default() });
        if self.storm.random.happens(0.6) {
            let healed = (at + self.storm.some_time()).min(self.storm.lasts);
            self.storm.fault(healed, FaultEntry { heal: true, ..FaultEntry::default() });
        }
    }

    /// An operator wants something.
    fn order(&mut self, at: u64) {
        let member = self.likely_leader(at);
        let (other, lasting) = (self.storm.anybody(), time(self.storm.some_time()));
        let told = |order: &str| FaultEntry {
            order: Some(order.to_owned()),
            member: Some(member.0),
            ..FaultEntry::default()
        };
        let fault = match self.storm.random.between(0, 7) {
            7 => FaultEntry { member: Some(member.0), ..self.changing_attribute(at) },
            0 => told("resign"),
            1 => FaultEntry { to: Some(other.0), ..told("transfer") },
            2 => FaultEntry { to: Some(other.0), lasting: Some(lasting), ..told("prefer") },
            3 => {
                let value = self.storm.random.between(0, self.storm.members.len() as u64 + 2);
                FaultEntry { value: Some(value as i64), ..told("attribute") }
            }
            4 => told("undrain"),
            drain => {
                self.drained.push(member);
                let lasting = (drain == 5).then_some(lasting);
                FaultEntry { lasting, ..told("drain") }
            }
        };
        self.storm.fault(at, fault);
    }

    /// An attribute that goes on changing, by a little or by much, until the storm is over or before.
    fn changing_attribute(&mut self, at: u64) -> FaultEntry {
        let left = self.storm.lasts - at;
        let lasting = self.storm.some_time().min(left).max(1);
        let every = pick(&[1, 10, self.promise / 4, self.promise], &mut self.storm.random);
        let every = every.max(lasting / 50).max(1);
        let count = self.storm.random.between(2, 4);
        let highest = self.storm.members.len() as u64 + 2;
        let value = |_| self.storm.random.between(0, highest) as i64;
        FaultEntry {
            order: Some("attribute".to_owned()),
            values: (0..count).map(value).collect(),
            every: Some(time(every)),
            lasting: Some(time(lasting)),
            ..FaultEntry::default()
        }
    }

    /// What was broken is mended. Some stay drained, but never the one on which all may depend.
    fn abate(&mut self) {
        self.storm.abate();
        let mut drained = std::mem::take(&mut self.drained);
        drained.sort_unstable();
        drained.dedup();
        for id in drained {
            if id == self.storm.survivor || self.storm.random.happens(0.7) {
                let (order, member) = (Some("undrain".to_owned()), Some(id.0));
                let undrain = FaultEntry { order, member, ..FaultEntry::default() };
                self.storm.fault(self.storm.lasts, undrain);
            }
        }
    }

    /// In calm, a member comes up with a copy of its disk that was made in the storm. Everybody else is up, and tells it if
    /// that is an old one.
    fn restore_a_disk(&mut self) {
        let storm = &mut self.storm;
        let lasts = storm.lasts;
        let all_are_up = storm.members.iter().all(|id| storm.is_up(id, lasts));
        let is_suitable = self.case.sessions && storm.members.len() > 2 && all_are_up;
        if !is_suitable || self.forgets || storm.has_untimed() || !storm.random.happens(0.3) {
            return;
        }
        let victim = storm.anybody();
        if victim == storm.survivor {
            return;
        }
        let copied = storm.random.between(1, lasts);
        storm.fault(copied, FaultEntry { copy: Some(victim.0), ..FaultEntry::default() });
        // By then nothing that was said in the storm is under way.
        let calm = lasts + self.promise * 5;
        storm.crash(victim, calm);
        let (disk, after) = (DiskEntry::Named(COPY.to_owned()), storm.some_time());
        let disk = Some(disk);
        storm.restart(victim, calm + after, FaultEntry { disk, ..FaultEntry::default() });
    }

    /// The best leads if anybody does, as long as nothing goes wrong.
    fn likely_leader(&mut self, at: u64) -> NodeId {
        if self.storm.random.happens(0.5) {
            self.storm.best_up(at)
        } else {
            self.storm.anybody_up(at)
        }
    }
}
