//! The settings of a quorum: timing, profiles, and the arithmetic that makes them safe.
//!
//! A leader's lease must end before the vote leases that it rests on, by any two clocks within the drift ρ of real time:
//! `Λ_L = Λ_F·(1−ρ)/(1+ρ) − ε`, where ε is the granularity of timers. The lease is computed here, never configured. The rest
//! is liveness: a lease must outlast three heartbeats and a round trip, or one lost datagram ends it. [`Settings::check`]
//! rejects settings that break either, and names the inequality.

use std::fmt;
use std::str::FromStr;

use crate::config::Timing;
use crate::map::SortedMap;
use crate::members::{Members, NodeId, PeerSet};
use crate::time::Span;

use super::rules::{Rule, Rules};

/// The longest vote lease: a heartbeat that asks for more is ignored, because a vote lease cannot be taken back.
pub const MAX_VOTE_LEASE: Span = Span::from_millis(60_000);

/// What the members of a quorum agree on, in addition to what all algorithms need.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The timing of all members.
    pub pace: Pace,
    /// Members with a different timing. Members with different timings are safe together.
    pub paces: SortedMap<NodeId, Pace>,
    /// `J`: the random part of the wait before an election.
    pub jitter: Span,
    /// How much longer a member waits for each higher-ranked one, so that the highest-ranked campaigns first.
    pub stagger: Span,
    /// `K`: how often a member lets a higher-ranked one go first that then does not win.
    pub deferrals: u8,
    /// When a higher-ranked member takes over.
    pub preemption: Preemption,
    /// By how much its attribute must be higher for that. With a margin, an attribute that falls because its member leads
    /// does not move leadership forever; without one, the id decides between equal attributes.
    pub margin: u64,
    /// `T_ten`: how long a leader stays before a higher-ranked member may take over.
    pub tenure: Span,
    /// How long the penalty for a failure as leader lasts, the first time; doubled each time.
    pub penalty_decay: Span,
    /// How often members that do not lead probe each other; never without it.
    pub probe: Option<Span>,
    /// The members that vote and never lead, by configuration.
    pub witnesses: PeerSet,
    /// The members that never lead, by their own choice; the others need not know.
    pub reluctant: PeerSet,
    /// Whether members remember the term in which they saw each other, to detect a disk that was restored from a copy.
    pub remembers: bool,
    /// The rules in force: all of them, except in tests of the checks.
    pub rules: Rules,
    /// The cluster's identifier: with the voters and their kinds it identifies the configuration.
    pub cluster: u64,
}

/// The timing of a member.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pace {
    /// `h`: the interval of its heartbeats while it leads.
    pub heartbeat: Span,
    /// `Λ_F`: the length of the vote leases that it asks for.
    pub vote_lease: Span,
    /// `ρ`: the drift of any clock, in thousandths.
    pub drift: u32,
    /// `ε`: the granularity of its timers.
    pub grain: Span,
}

/// When a higher-ranked member takes over from a working leader.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Preemption {
    /// Never: the leader stays.
    Never,
    /// When it has been available for a while, and the leader has led for a while.
    #[default]
    Delayed,
    /// As soon as the leader knows of it.
    Immediate,
}

impl Pace {
    /// `Λ_L = Λ_F·(1−ρ)/(1+ρ) − ε`: the length of a lease, from the sending of the heartbeat that it rests on.
    pub fn lease(&self) -> Span {
        let drift = u128::from(self.drift.min(1000));
        let shortened = u128::from(self.vote_lease.as_nanos()) * (1000 - drift) / (1000 + drift);
        Span::from_nanos((shortened as u64).saturating_sub(self.grain.as_nanos()))
    }

    /// The same lease for clocks with a drift of `drift` thousandths: the vote lease changes. A drift for which no vote lease
    /// is long enough leaves it as it is, for [`Settings::check`] to reject.
    fn with_drift(self, drift: u32) -> Self {
        if drift == self.drift || drift >= 1000 {
            return Self { drift, ..self };
        }
        Self { drift, vote_lease: vote_lease_for(self.lease() + self.grain, drift), ..self }
    }
}

impl fmt::Display for Preemption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Never => "never",
            Self::Delayed => "delayed",
            Self::Immediate => "immediate",
        })
    }
}

impl FromStr for Preemption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "never" => Ok(Self::Never),
            "delayed" => Ok(Self::Delayed),
            "immediate" => Ok(Self::Immediate),
            _ => Err(format!("unknown policy `{text}`; use never, delayed or immediate")),
        }
    }
}

/// The three sets of values that are known to work together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Profile {
    /// One rack, or one machine: a new leader within 30 ms.
    Fast,
    /// One site: within 340 ms.
    #[default]
    Lan,
    /// Sites that are far from each other: within 4 s.
    Wan,
}

impl Profile {
    /// Every profile, the fastest first.
    pub const ALL: [Self; 3] = [Self::Fast, Self::Lan, Self::Wan];

    /// Its name in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Lan => "lan",
            Self::Wan => "wan",
        }
    }

    /// The timing of the network that it is made for, with the heartbeat and the patience with a lower-ranked leader.
    pub fn timing(self) -> Timing {
        // D, p, h, T_pre
        let [transmission, processing, heartbeat, preempt] = match self {
            Self::Fast => [1_500, 1_000, 5_000, 1_000_000],
            Self::Lan => [10_000, 5_000, 50_000, 10_000_000],
            Self::Wan => [250_000, 100_000, 500_000, 30_000_000],
        }
        .map(Span::from_micros);
        Timing { transmission, processing, window: Span::ZERO, heartbeat, preempt }
    }

    /// `G`: how long a member leads a group on one answer ([`group`](crate::group)). As long as possible: a failover of the
    /// quorum's leader should fit into it, and the time until the groups of a dead member are led again, by the slowest clock
    /// `G·(1+ρ)/(1−ρ)² + D + p`, must be within L1 ([`Settings::recovery`]).
    pub fn group_lease(self) -> Span {
        Span::from_millis(match self {
            Self::Fast => 58,
            Self::Lan => 550,
            Self::Wan => 7_000,
        })
    }

    /// Its settings, for clocks with a drift of a tenth.
    pub fn settings(self) -> Settings {
        self.settings_for(USUAL_DRIFT)
    }

    /// Its settings, for clocks with a drift of `drift` thousandths: leases are as long as usual, and the vote leases that
    /// they rest on are longer as needed.
    pub fn settings_for(self, drift: u32) -> Settings {
        // Λ_F, ε, J, stagger, T_ten
        let [vote_lease, grain, jitter, stagger, tenure] = match self {
            Self::Fast => [25_000, 200, 1_000, 2_000, 3_000_000],
            Self::Lan => [280_000, 1_000, 10_000, 15_000, 30_000_000],
            Self::Wan => [3_000_000, 5_000, 100_000, 300_000, 60_000_000],
        }
        .map(Span::from_micros);
        let heartbeat = self.timing().heartbeat;
        let usual = Pace { heartbeat, vote_lease, drift: USUAL_DRIFT, grain };
        Settings {
            pace: usual.with_drift(drift),
            paces: SortedMap::new(),
            jitter,
            stagger,
            deferrals: 2,
            preemption: Preemption::Delayed,
            margin: 0,
            tenure,
            penalty_decay: tenure * 2,
            probe: Some(heartbeat * 20),
            witnesses: PeerSet::new(),
            reluctant: PeerSet::new(),
            remembers: true,
            rules: Rules::default(),
            cluster: 0,
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|profile| profile.name() == text)
            .ok_or_else(|| format!("unknown profile `{text}`; use fast, lan or wan"))
    }
}

/// Why settings are rejected: an inequality that they break.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unsafe {
    /// The inequality, in the letters of the specification.
    pub inequality: &'static str,
    /// The same with the numbers.
    pub numbers: String,
    /// What to change.
    pub remedy: &'static str,
}

impl fmt::Display for Unsafe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { inequality, numbers, remedy } = self;
        write!(f, "{inequality} does not hold: {numbers}; {remedy}")
    }
}

impl std::error::Error for Unsafe {}

impl Default for Settings {
    fn default() -> Self {
        Profile::default().settings()
    }
}

impl Settings {
    /// The settings that follow from a network's timing and the heartbeat, for clocks with a drift of a tenth.
    pub fn for_timing(timing: &Timing) -> Self {
        Self::for_clocks(timing, USUAL_DRIFT)
    }

    /// The settings that follow from a network's timing, the heartbeat and the drift in thousandths: the shortest vote lease
    /// that is safe and lets a lease outlast three heartbeats and a round trip.
    pub fn for_clocks(timing: &Timing, drift: u32) -> Self {
        let usual = Self::default();
        let lease = timing.heartbeat * 3 + timing.reply();
        // Rounded up to a multiple of D, so that the lease computed from it is not shorter.
        let shortest = vote_lease_for(lease, drift.min(999)).as_nanos();
        let rounded = shortest.checked_next_multiple_of(timing.transmission.as_nanos().max(1));
        let vote_lease = Span::from_nanos(rounded.unwrap_or(u64::MAX));
        Self {
            pace: Pace { heartbeat: timing.heartbeat, vote_lease, drift, grain: Span::ZERO },
            jitter: timing.transmission,
            stagger: timing.reply(),
            tenure: timing.preempt * 3,
            penalty_decay: timing.preempt * 6,
            probe: None,
            ..usual
        }
    }

    #[inline]
    pub(crate) fn keeps(&self, rule: Rule) -> bool {
        self.rules.keeps(rule)
    }

    /// Whether it matters how long a leader has led: a tenure protects it, and ends the streak of one that failed before.
    pub(crate) fn counts_tenures(&self) -> bool {
        self.preemption == Preemption::Delayed || self.penalty_decay > Span::ZERO
    }

    pub(crate) fn majority(&self, members: usize) -> usize {
        self.rules.majority(members)
    }

    /// The timing of `id`.
    pub fn pace_of(&self, id: NodeId) -> Pace {
        self.paces.get(&id).copied().unwrap_or(self.pace)
    }

    /// L1, `Λ_F/(1−ρ) + J + T_c + K·(T_c + 2h) + 2·RTT + (2h + T_c)`: the time until a member has a lease, once a majority is
    /// connected and messages keep `D`; a little longer where members with different timings wait for each other. The last
    /// part is the time for which a leader whose lease has lapsed tries to renew it. Votes can be split, so L1 is not always
    /// enough.
    pub fn recovery(&self, timing: &Timing, members: &Members) -> Span {
        let paces = || members.iter().map(|id| self.pace_of(id));
        let vote_lease = |pace: Pace| {
            let drift = u128::from(pace.drift.min(999));
            let real = u128::from(pace.vote_lease.as_nanos()) * 1000 / (1000 - drift);
            Span::from_nanos(u64::try_from(real).unwrap_or(u64::MAX))
        };
        let longest = paces().map(vote_lease).max().unwrap_or_default();
        let heartbeat = paces().map(|pace| pace.heartbeat).max().unwrap_or_default();
        let collection = timing.reply();
        let deferral = collection + heartbeat * 2;
        let election = collection + deferral * u64::from(self.deferrals) + collection * 2;
        longest + self.jitter + election + self.gap_limit(timing, heartbeat)
    }

    /// `2h + T_c`: how long a leader with this heartbeat whose lease has lapsed tries to renew it.
    pub fn gap_limit(&self, timing: &Timing, heartbeat: Span) -> Span {
        heartbeat * 2 + timing.reply()
    }

    /// How long a member that is refused by members with a leader may wait before it asks again, if it lets others go first
    /// for `turn`: L1 must still hold if it is the only member that can lead. It may have asked just before the others became
    /// free, and have waited `T_c` for their answers. What L1 allows for deferrals is left for that:
    /// `K·(T_c + 2h) − T_c − turn`, and at least the usual `2h`.
    pub fn longest_retry(&self, timing: &Timing, heartbeat: Span, turn: Span) -> Span {
        let collection = timing.reply();
        let deferrals = (collection + heartbeat * 2) * u64::from(self.deferrals);
        let spent = collection + turn;
        let left = deferrals.as_nanos().saturating_sub(spent.as_nanos());
        Span::from_nanos(left).max(heartbeat * 2)
    }

    /// Whether these settings are safe, and a leader can keep its lease, on a network with this timing.
    pub fn check(&self, timing: &Timing, members: &Members) -> Result<(), Unsafe> {
        for pace in members.iter().map(|id| self.pace_of(id)) {
            pace.check(timing)?;
        }
        let may_lead = |id| !self.witnesses.contains(id) && !self.reluctant.contains(id);
        if !members.iter().any(may_lead) {
            return Err(Unsafe {
                inequality: "some member may lead",
                numbers: format!("none of {} may", members.len()),
                remedy: "let at least one member be neither a witness nor reluctant",
            });
        }
        Ok(())
    }

    /// The identifier of this configuration: equal if the cluster, its voters and their kinds are. Members whose identifiers
    /// differ ignore each other.
    pub fn config_id(&self, members: &Members) -> u32 {
        let kind = |id| u64::from(self.witnesses.contains(id));
        let voters = members.iter().map(|id| u64::from(id.0) << 1 | kind(id));
        let words = [PROTOCOL_VERSION, self.cluster].into_iter().chain(voters);
        // FNV-1a: it must be the same on every machine and in every version, and need not be secret.
        let bytes = words.flat_map(u64::to_le_bytes);
        bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    }
}

/// ρ, in thousandths: clock discipline may slew a clock by 8 %.
const USUAL_DRIFT: u32 = 100;

/// The shortest vote lease on which a lease of this length can rest, for clocks with a drift of `drift` thousandths.
fn vote_lease_for(lease: Span, drift: u32) -> Span {
    let nanos = u128::from(lease.as_nanos()) * u128::from(1000 + drift);
    let nanos = nanos.div_ceil(u128::from(1000 - drift));
    Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Changed when members of different versions would misunderstand each other.
const PROTOCOL_VERSION: u64 = 1;

impl Pace {
    fn check(&self, timing: &Timing) -> Result<(), Unsafe> {
        let Self { heartbeat, vote_lease, drift, grain } = *self;
        if drift >= 1000 {
            return Err(Unsafe {
                inequality: "ρ < 1",
                numbers: format!("ρ = {}", f64::from(drift) / 1000.0),
                remedy: "a clock that may stand still measures nothing; 0.1 is usual",
            });
        }
        if vote_lease > MAX_VOTE_LEASE {
            return Err(Unsafe {
                inequality: "Λ_F ≤ 60s",
                numbers: format!("Λ_F = {vote_lease}"),
                remedy: "shorten the vote lease: no member can be elected while it runs",
            });
        }
        let (lease, round_trip) = (self.lease(), timing.reply());
        if heartbeat == Span::ZERO || heartbeat * 3 + round_trip > lease {
            return Err(Unsafe {
                inequality: "0 < h ≤ (Λ_L − (2D + p)) / 3",
                numbers: format!(
                    "h = {heartbeat}, 2D + p = {round_trip}, Λ_L = {} from Λ_F = {vote_lease}, ρ = {}, ε = {grain}",
                    lease.rounded(),
                    f64::from(drift) / 1000.0
                ),
                remedy: "send heartbeats more often or lengthen the vote lease",
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_is_safe() {
        let members = Members::range(1, 5).unwrap();
        for profile in Profile::ALL {
            assert_eq!(profile.settings().check(&profile.timing(), &members), Ok(()));
            assert_eq!(profile.name().parse(), Ok(profile));
        }
        let lan = Profile::Lan.settings().pace;
        assert_eq!(lan.lease(), Span::from_nanos(228_090_909));
        for drift in [0, 1, 10, 50, 200, 500, 900] {
            let pace = Profile::Lan.settings_for(drift).pace;
            assert!(pace.drift == drift && pace.lease().as_nanos().abs_diff(228_090_909) <= 2);
        }
        for micros in [1, 7, 1_000, 123_457] {
            let timing = Timing::for_transmission(Span::from_micros(micros));
            for drift in [0, 10, 100, 200, 900] {
                assert_eq!(Settings::for_clocks(&timing, drift).check(&timing, &members), Ok(()));
            }
        }
    }

    /// A pre-vote just before the others become free, its answers, the wait and the turn take no longer than L1 has left after
    /// vote leases, jitter, the last pre-vote and the vote.
    #[test]
    fn a_refused_member_asks_again_within_l1() {
        let members = Members::range(1, 5).unwrap();
        for profile in Profile::ALL {
            let (settings, timing) = (profile.settings(), profile.timing());
            let Pace { vote_lease, heartbeat, drift, .. } = settings.pace;
            for turn in (0..3).map(|before| settings.stagger * before) {
                let retry = settings.longest_retry(&timing, heartbeat, turn);
                assert!(retry >= heartbeat * 2, "{retry}");
                let bound =
                    Span::from_nanos(vote_lease.as_nanos() * 1000 / u64::from(1000 - drift));
                let election = timing.reply() * 3;
                let wait = bound + timing.reply() + retry + turn + settings.jitter + election;
                assert!(wait <= settings.recovery(&timing, &members), "{}: {wait}", profile.name());
            }
        }
    }

    #[test]
    fn unsafe_settings_are_rejected_with_the_inequality() {
        let members = Members::range(1, 3).unwrap();
        let rejection = |change: fn(&mut Settings)| {
            let mut settings = Settings::default();
            change(&mut settings);
            settings.check(&Profile::Lan.timing(), &members).unwrap_err().to_string()
        };
        assert_eq!(
            rejection(|s| s.pace.heartbeat = Span::from_millis(80)),
            "0 < h ≤ (Λ_L − (2D + p)) / 3 does not hold: h = 80ms, 2D + p = 25ms, Λ_L = 228.09ms from Λ_F = 280ms, \
             ρ = 0.1, ε = 1ms; send heartbeats more often or lengthen the vote lease"
        );
        assert!(rejection(|s| s.pace.drift = 1000).starts_with("ρ < 1 does not hold: ρ = 1;"));
        assert!(rejection(|s| s.pace.vote_lease = MAX_VOTE_LEASE * 2).starts_with("Λ_F ≤ 60s"));
        let slow = Pace { heartbeat: Span::ZERO, ..Settings::default().pace };
        let mut mixed = Settings::default();
        mixed.paces.insert(NodeId(2), slow);
        assert!(mixed.check(&Profile::Lan.timing(), &members).is_err());
        assert!(rejection(|s| s.witnesses = (1..=3).map(NodeId).collect()).contains("may lead"));
    }

    #[test]
    fn the_configuration_is_its_voters_and_their_kinds() {
        let settings = Settings::default();
        let (three, four) = (Members::range(1, 3).unwrap(), Members::range(1, 4).unwrap());
        assert_ne!(settings.config_id(&three), settings.config_id(&four));
        let witness = Settings { witnesses: [NodeId(2)].into_iter().collect(), ..settings.clone() };
        assert_ne!(settings.config_id(&three), witness.config_id(&three));
        let better = three.clone().with_attrs([(NodeId(1), 9)]).unwrap();
        let slower = Settings { jitter: Span::from_millis(9), ..settings.clone() };
        assert_eq!(settings.config_id(&three), slower.config_id(&better));
        let other = Settings { cluster: 1, ..settings.clone() };
        assert_ne!(settings.config_id(&three), other.config_id(&three));
    }
}
