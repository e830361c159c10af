//! From the written form to the case: every check of a scenario.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use doyen_core::config::quorum::Settings;
use doyen_core::config::{Announce, Config, Mode, Timing, Variant};
use doyen_core::exclusion::lock_service::lock_config;
use doyen_core::layers::{self, Layers};
use doyen_core::link::LinkConfig;
use doyen_core::members::{Members, MembersError, NodeId};
use doyen_core::protocol::Kind;
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;
use serde::Serialize;

use super::parse::{Result, bounded, kind, member, named, parse_range};
use super::{Initiators, MemberList, RingOrder, Scenario, ScenarioError};
use crate::fault::{self, Chaos, ChaosKind, Fault, Trigger};
use crate::initiators;
use crate::message::MessageChange;
use crate::network::{DelayModel, NetworkModel};
use crate::random::Random;
use crate::text::Share;
use crate::time::Time;
use crate::world::Requests;

/// A valid scenario: what [`run`](crate::run::run) runs.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its title, for readers; may be empty.
    pub title: String,
    /// What it shows, for readers.
    pub about: String,
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The members that the counts are about.
    pub convention: Convention,
    /// Members, timing, mode.
    pub config: Config,
    /// The order of the ring, as requested.
    pub ring: RingOrder,
    /// Who is dead from the beginning.
    pub dead: Vec<NodeId>,
    /// Whether the members contact dead members, because they do not know that these are dead.
    pub contact_dead: bool,
    /// Who leads at the beginning.
    pub leader: Option<NodeId>,
    /// Who notices that the coordinator is gone, and when.
    pub initiators: initiators::Initiators,
    /// Who asks to enter the critical section, where there is one.
    pub requests: Option<Requests>,
    /// The model of the network.
    pub network: NetworkModel,
    /// The rank of each kind of message among those of one instant.
    pub ranks: Vec<u8>,
    /// The bound on the delay of a single transmission. The members' `D` is longer if messages are retransmitted.
    pub bare_bound: Span,
    /// The failure detector's period, if it is on.
    pub detector: Option<Span>,
    /// Whether messages go over the reliable link.
    pub reliable: bool,
    /// Whether processes of a member are told apart by sessions.
    pub sessions: bool,
    /// Whether a snapshot is taken.
    pub snapshot: bool,
    /// Whether members tell each other something outside the algorithm.
    pub tells: bool,
    /// The fault schedule, without the initiators.
    pub faults: Vec<Fault>,
    /// The changes of single messages.
    pub changes: Vec<MessageChange>,
    /// How long it takes to stop what runs under the lease of a retiring leader.
    pub retire: Span,
    /// Random faults.
    pub chaos: Option<Chaos>,
    /// The seed.
    pub seed: u64,
    /// When the run ends at the latest.
    pub until: Time,
    /// After how many election messages it ends at the latest.
    pub message_limit: u64,
    /// After how many events it ends at the latest. No scenario sets this: a host that runs scenarios of strangers does.
    pub event_limit: u64,
    /// The expected result.
    pub expect: Option<super::Expect>,
}

/// Which members a count is about: the sources mix two conventions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Convention {
    /// P: n is the number of live members; the crashed coordinator is not one of them and is not contacted.
    #[default]
    Live,
    /// Q: N includes the crashed coordinator, which is the highest member.
    Configured,
}

impl fmt::Display for Convention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Live => "live",
            Self::Configured => "configured",
        })
    }
}

impl FromStr for Convention {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "live" => Ok(Self::Live),
            "configured" => Ok(Self::Configured),
            _ => Err(format!("unknown convention `{text}`; use live or configured")),
        }
    }
}

impl Case {
    /// The members.
    pub fn members(&self) -> &Members {
        &self.config.members
    }

    /// The mode.
    pub fn mode(&self) -> Mode {
        self.config.mode
    }

    /// The kinds of messages that faults can name: with sessions those of all layers, else those of the algorithm, and
    /// markers if a snapshot is taken.
    pub fn kinds(&self) -> Cow<'static, [Kind]> {
        kinds(self.algorithm, self.sessions, self.snapshot, self.tells)
    }

    /// Whether there is a layer between the algorithm and the network: a link, a detector or, in hardened mode, the
    /// filter that distinguishes incarnations.
    pub fn is_layered(&self) -> bool {
        self.reliable
            || self.detector.is_some()
            || self.config.hardened()
            || self.algorithm.has_leases()
            || self.sessions
    }

    /// By how much single messages are delayed at most.
    pub(crate) fn longest_change(&self) -> Span {
        self.changes.iter().map(|it| it.change.delay()).max().unwrap_or_default()
    }

    /// L1: how long it takes until a member has a lease, once all faults are over; by the slowest timings that members
    /// have had.
    pub fn recovery(&self) -> Span {
        let longest = fault::longest_paces(&self.config.quorum, &self.faults);
        let meeting = if self.sessions { MEETING } else { Span::ZERO };
        let waiting = meeting + fault::longest_pause(&self.faults);
        longest.recovery(&self.config.timing, self.members())
            + fault::stretched(waiting, fault::slowest_clock(&self.faults))
    }

    /// How long members may need to settle after the last fault: penalties decay, and the best member takes over.
    pub fn settling(&self) -> Span {
        let longest = fault::longest_paces(&self.config.quorum, &self.faults);
        let meeting = if self.sessions { SESSIONS_CALM } else { Span::ZERO };
        let pause = fault::longest_pause(&self.faults);
        let settling = quorum_calm(&longest) + self.config.timing.preempt * 5 + meeting + pause;
        fault::stretched(settling, fault::slowest_clock(&self.faults))
    }

    /// The time of the last fault whose time is known beforehand; commands of operators are no faults.
    pub fn last_fault(&self) -> Time {
        fault::breakage_ends(&self.faults)
    }

    /// When all faults that are known beforehand are over.
    pub fn calm(&self) -> Time {
        fault::calm_begins(&self.faults)
    }

    /// The members alive at the beginning, lowest key first.
    pub fn live_by_rank(&self) -> Vec<NodeId> {
        let by_rank = (0..self.members().len()).map(|rank| self.members().by_rank(rank));
        by_rank.filter(|id| !self.dead.contains(id)).collect()
    }

    /// Roughly how many bytes a run needs at its peak: state, and messages in flight at once.
    pub fn memory_estimate(&self) -> u64 {
        let n = self.members().len() as u64;
        let first = self.initiators.iter().map(|(id, _)| self.members().rank(id) as u64).min();
        let above = n - first.unwrap_or(n);
        let starts = self.initiators.len() as u64;
        let requesters = self.requests.as_ref().map_or(0, |requests| requests.who.len() as u64);
        let in_flight = match self.algorithm {
            // Without the guard every ELECTION that is received starts an election, so their number doubles.
            Algorithm::Bully if self.config.reads(Variant::NoGuard) => 1 << above.min(60),
            Algorithm::Bully => above.saturating_mul(above) / 2 + n,
            Algorithm::ModifiedBully => starts.saturating_mul(above).saturating_add(n),
            // A list of n keys for each initiator; one message in flight for each member.
            Algorithm::RingList | Algorithm::RingResilient => starts.saturating_mul(n) / 4 + n,
            Algorithm::RingActiveList | Algorithm::RingAllIds => n.saturating_mul(n) / 4 + n,
            Algorithm::ChangRoberts | Algorithm::Quorum => n,
            Algorithm::Bank | Algorithm::Sequencer => n.saturating_mul(4),
            // A member that asks sends to all others, or to its share of them.
            Algorithm::Lamport | Algorithm::RicartAgrawala | Algorithm::SuzukiKasami => {
                requesters.saturating_mul(n)
            }
            Algorithm::Centralised
            | Algorithm::Voting
            | Algorithm::TokenRing
            | Algorithm::TokenRecovery
            | Algorithm::LockService
            | Algorithm::Maekawa
            | Algorithm::Raymond => requesters.saturating_mul(n.isqrt() * 2) + n,
        };
        let markers = if self.snapshot { n.saturating_mul(n) } else { 0 };
        let in_flight = in_flight.saturating_add(markers);
        // A detector keeps state for each peer; a link keeps messages until they are acknowledged.
        let pairs = if self.detector.is_some() { n.saturating_mul(n) } else { 0 };
        let message = if self.reliable { 2_000 } else { 80 };
        let state = match self.algorithm {
            Algorithm::RingActiveList | Algorithm::RingAllIds => n.saturating_mul(n) * 16,
            Algorithm::Lamport | Algorithm::RicartAgrawala | Algorithm::SuzukiKasami => {
                n.saturating_mul(n) * 16 + n * 160
            }
            _ => n * 160,
        };
        let in_flight = in_flight.saturating_mul(message);
        in_flight.saturating_add(pairs.saturating_mul(450)).saturating_add(state)
    }
}

fn kinds(
    algorithm: Algorithm,
    sessions: bool,
    snapshot: bool,
    tells: bool,
) -> Cow<'static, [Kind]> {
    match (sessions, snapshot) {
        (false, false) if tells => layers::kinds_with_tells(algorithm).into(),
        (true, _) => layers::kinds(algorithm).into(),
        (false, true) => layers::kinds_with_snapshot(algorithm).into(),
        (false, false) => algorithm.kinds().into(),
    }
}

impl Scenario {
    /// Checks everything, and makes the case.
    pub fn resolve(&self) -> Result<Case> {
        let algorithm = self.resolve_algorithm()?;
        let mode = self.resolve_mode(algorithm)?;
        self.check_purpose(algorithm)?;
        let seed = self.seed.unwrap_or(1);
        let ring = self.ring.clone().unwrap_or_default();
        let members = self.resolve_members(&ring, seed)?;
        let convention = self.convention.unwrap_or_default();
        let leader = self.resolve_leader(&members)?;
        let dead = self.resolve_dead(&members, convention, leader)?;
        let sessions = self.has_sessions();
        let snapshot = self.resolve_snapshot(sessions)?;
        let tells = self.resolve_tells(algorithm)?;
        let kinds = &kinds(algorithm, sessions, snapshot, tells)[..];
        let network = self.resolve_network(algorithm, &members, kinds)?;
        let bare_bound = Span::from_nanos(network.delay.bound());
        let timing = self.resolve_timing(&network, bare_bound)?;
        let announce = match self.announce.as_deref() {
            None | Some("lower") => Announce::Lower,
            Some("all") => Announce::All,
            Some(other) => {
                return Err(ScenarioError::new("announce", format!("`{other}`; use lower or all")));
            }
        };
        check_period("detector", self.detector, &timing)?;
        let (initiators, requests) = match algorithm.elects() {
            true => (self.resolve_initiators(&members, &dead)?, None),
            false => {
                let requests = self.resolve_requests(&members, &dead, timing.transmission)?;
                (initiators::Initiators::default(), Some(requests))
            }
        };
        let ranks = self.resolve_order(algorithm, &network, kinds)?;
        let quorum = self.resolve_quorum(&timing, &members)?;
        let faults = self.resolve_faults(algorithm, &members, kinds, &quorum, &timing)?;
        self.check_chaos()?;
        let named = match snapshot {
            true => layers::kinds_with_snapshot(algorithm),
            false if tells => kinds.to_vec(),
            false => layers::kinds(algorithm),
        };
        let changes = self.resolve_changes(&members, &named)?;
        let exclusion = self.resolve_exclusion(&members, leader.filter(|_| !algorithm.elects()))?;
        let count = members.len() as u64;
        let longest = fault::longest_paces(&quorum, &faults);
        let config = Config { members, timing, mode, announce, quorum, exclusion };
        let until = match self.until {
            Some(until) => Time::ZERO + until,
            None => {
                let bare = Timing { transmission: bare_bound, ..timing };
                let link = LinkConfig::for_round_trip(bare.reply());
                let link = if self.reliable { link.patience() * 2 } else { Span::ZERO };
                let mut calm = calm(&timing, count) + self.detector.unwrap_or_default() * 20 + link;
                if algorithm.has_leases() {
                    calm = calm + quorum_calm(&longest);
                }
                if sessions {
                    calm = calm + SESSIONS_CALM;
                }
                if let Some(requests) = &requests {
                    calm = calm + requests_calm(requests, &timing, count);
                    if algorithm == Algorithm::LockService {
                        // A member that has crashed holds a lock for one grant, and a new leader waits as long.
                        let crashes = faults.len() as u64 + 2;
                        calm = calm + lock_config(&config).expiry() * (requests.count() + crashes);
                    }
                }
                let late = changes.iter().map(|it| it.change.delay());
                let who = requests.as_ref().map_or(&initiators, |requests| &requests.who);
                end_of_faults(who, &faults, self.chaos.as_ref())
                    + late.fold(Span::ZERO, |sum, delay| sum + delay)
                    + fault::stretched(calm, fault::slowest_clock(&faults))
            }
        };
        Ok(Case {
            title: self.title.trim().replace('\n', " "),
            about: self.about.trim().to_owned(),
            algorithm,
            convention,
            config,
            ring,
            dead,
            contact_dead: self.contact_dead,
            leader,
            initiators,
            requests,
            network,
            ranks,
            bare_bound,
            detector: self.detector,
            reliable: self.reliable,
            sessions,
            snapshot,
            tells,
            faults,
            changes,
            retire: self.quorum.as_ref().and_then(|options| options.retire).unwrap_or_default(),
            chaos: self.chaos.clone(),
            seed,
            until,
            message_limit: self.resolve_message_limit()?,
            event_limit: u64::MAX,
            expect: self.expect.clone(),
        })
    }

    /// Whether processes of a member are told apart by sessions.
    pub fn has_sessions(&self) -> bool {
        self.sessions || self.fault.iter().any(Fault::needs_sessions)
    }

    /// Whether a snapshot is taken. The group of which it is taken must be closed, and its channels keep the order unless the
    /// scenario says otherwise.
    fn resolve_snapshot(&self, sessions: bool) -> Result<bool> {
        match self.fault.iter().position(Fault::is_snapshot) {
            Some(index) if sessions => {
                let problem = "a snapshot needs a fixed set of processes and channels, and with sessions processes are \
                               replaced; leave out sessions, replacements, clones and new addresses";
                Err(ScenarioError::new(format!("fault[{index}].snapshot"), problem))
            }
            found => Ok(found.is_some()),
        }
    }

    fn resolve_message_limit(&self) -> Result<u64> {
        match self.message_limit {
            Some(0) => Err(ScenarioError::new("message_limit", "must be at least 1")),
            limit => Ok(limit.unwrap_or(1_000_000_000)),
        }
    }

    fn resolve_algorithm(&self) -> Result<Algorithm> {
        let missing = "is missing; `doyen algorithms` lists them, for example bully";
        self.algorithm.ok_or_else(|| ScenarioError::new("algorithm", missing))
    }

    fn resolve_mode(&self, algorithm: Algorithm) -> Result<Mode> {
        let mode = self.mode.unwrap_or(algorithm.usual_mode());
        if algorithm.reads(mode) {
            return Ok(mode);
        }
        let variants = algorithm.variants().iter().map(|&variant| Mode::Literal(variant));
        let all = [Mode::Textbook, Mode::Hardened].into_iter().chain(variants);
        let modes: Vec<String> =
            all.filter(|&mode| algorithm.reads(mode)).map(|mode| mode.to_string()).collect();
        let reason = match mode {
            Mode::Hardened => ": what tolerates crashes is a lock service above a quorum",
            _ => "",
        };
        let problem =
            format!("{algorithm} has no variant `{mode}`{reason}; use one of {}", modes.join(", "));
        Err(ScenarioError::new("mode", problem))
    }

    fn resolve_members(&self, ring: &RingOrder, seed: u64) -> Result<Members> {
        let wrong = |key: &'static str| {
            move |error: MembersError| ScenarioError::new(key, error.to_string())
        };
        let members = match &self.members {
            None => {
                return Err(ScenarioError::new(
                    "members",
                    "is missing; say how many there are, for example 5",
                ));
            }
            Some(MemberList::Count(count)) => Members::range(1, bounded(*count)?),
            Some(MemberList::Range(range)) => {
                let (first, last) = parse_range(range)?;
                Members::range(first, bounded(u64::from(last) + 1 - u64::from(first))?)
            }
            Some(MemberList::Listed(ids)) => {
                Members::listed(ids.iter().copied().map(NodeId).collect())
            }
        };
        let mut members = members.map_err(wrong("members"))?;
        if !self.attr.is_empty() {
            let attrs = (self.attr.iter())
                .map(|(id, &attr)| Ok((named(&members, "attr", id)?, attr)))
                .collect::<Result<Vec<_>>>()?;
            members = members.with_attrs(attrs).map_err(wrong("attr"))?;
        }
        let order = match ring {
            RingOrder::Ascending => return Ok(members),
            RingOrder::Descending => members.iter().rev().collect(),
            RingOrder::Random => {
                let mut order: Vec<NodeId> = members.iter().collect();
                // A separate random stream: the ring does not change if something else is drawn.
                Random::new(!seed).shuffle(&mut order);
                order
            }
            RingOrder::Listed(ids) => ids.iter().copied().map(NodeId).collect(),
        };
        members.with_ring(order).map_err(wrong("ring"))
    }

    fn resolve_leader(&self, members: &Members) -> Result<Option<NodeId>> {
        self.leader.map(|id| member(members, "leader", id)).transpose()
    }

    fn resolve_dead(
        &self,
        members: &Members,
        convention: Convention,
        leader: Option<NodeId>,
    ) -> Result<Vec<NodeId>> {
        let mut dead = Vec::new();
        for (index, &id) in self.dead.iter().enumerate() {
            let key = format!("dead[{index}]");
            let id = member(members, &key, id)?;
            if dead.contains(&id) {
                return Err(ScenarioError::new(key, format!("member {id} is named twice")));
            }
            if Some(id) == leader {
                let problem =
                    format!("{id} leads at the beginning; let it crash by a fault instead");
                return Err(ScenarioError::new(key, problem));
            }
            dead.push(id);
        }
        let highest = members.highest();
        if convention == Convention::Configured && leader.is_none() && !dead.contains(&highest) {
            dead.push(highest);
        }
        if dead.len() == members.len() {
            return Err(ScenarioError::new(
                "dead",
                "no member is left alive; leave at least one out",
            ));
        }
        dead.sort_unstable();
        Ok(dead)
    }

    fn resolve_initiators(
        &self,
        members: &Members,
        dead: &[NodeId],
    ) -> Result<initiators::Initiators> {
        let live = || members.iter().filter(|id| dead.binary_search(id).is_err());
        let listed = match &self.initiators {
            // There is a leader: a member that misses it later learns that from the detector or from a fault.
            None if self.leader.is_some() => return Ok(initiators::Initiators::default()),
            None => {
                let lowest = live().min_by_key(|&id| members.key(id));
                return Ok(initiators::Initiators::at_once(lowest));
            }
            Some(Initiators::None) => return Ok(initiators::Initiators::default()),
            Some(Initiators::All) => return Ok(initiators::Initiators::at_once(live())),
            Some(Initiators::Listed(listed)) => listed,
        };
        let mut initiators: Vec<(NodeId, Time)> = Vec::with_capacity(listed.len());
        for (index, initiator) in listed.iter().enumerate() {
            let key = format!("initiators[{index}]");
            let id = member(members, &key, initiator.member())?;
            if dead.binary_search(&id).is_ok() {
                let problem = format!("{id} is dead from the beginning and cannot notice anything");
                return Err(ScenarioError::new(key, problem));
            }
            let at = Time::ZERO + initiator.at();
            if initiators.contains(&(id, at)) {
                return Err(ScenarioError::new(key, format!("member {id} is named twice")));
            }
            initiators.push((id, at));
        }
        Ok(initiators.into_iter().collect())
    }

    fn resolve_network(
        &self,
        algorithm: Algorithm,
        members: &Members,
        kinds: &[Kind],
    ) -> Result<NetworkModel> {
        let share = |share: Option<Share>| share.map_or(0.0, f64::from);
        Ok(NetworkModel {
            delay: self.delay.unwrap_or(DelayModel::Fixed(1_000_000)),
            processing: self.processing.unwrap_or_default().as_nanos(),
            loss: share(self.loss),
            duplication: share(self.duplicate),
            fifo: self
                .fifo
                .unwrap_or(algorithm.needs_fifo() || self.fault.iter().any(Fault::is_snapshot)),
            links: self.resolve_links(members, kinds)?,
        })
    }

    fn resolve_timing(&self, network: &NetworkModel, bare_bound: Span) -> Result<Timing> {
        let bound = match self.bound {
            Some(bound) => bound,
            None => {
                let processing = Span::from_nanos(network.processing);
                let bare = Timing { processing, ..Timing::for_transmission(bare_bound) };
                let (lossy, link) = (network.loss > 0.0, self.reliable);
                Layers { bare, lossy, link, detector: None }.transmission()
            }
        };
        let mut timing = Timing::for_transmission(bound);
        timing.processing = Span::from_nanos(network.processing);
        if let Some(profile) = self.profile() {
            // The assumptions about the network are part of a profile.
            timing = profile.timing();
        }
        timing.window = self.window.unwrap_or(timing.window);
        check_period("heartbeat", self.heartbeat, &timing)?;
        timing.heartbeat = self.heartbeat.unwrap_or(timing.heartbeat);
        // If there were no delay at all, a heartbeat would have no period.
        timing.heartbeat = timing.heartbeat.max(Span::from_nanos(1));
        timing.preempt = self.preempt.unwrap_or(timing.preempt);
        Ok(timing)
    }

    fn resolve_order(
        &self,
        algorithm: Algorithm,
        network: &NetworkModel,
        kinds: &[Kind],
    ) -> Result<Vec<u8>> {
        if self.order.is_empty() {
            // On a ring or a FIFO link messages keep the order in which they were sent, and so they do in mutual
            // exclusion, where the order of arrival decides which member enters.
            let sent_order = algorithm.is_ring() || network.fifo || !algorithm.elects();
            return Ok((0..kinds.len() as u8)
                .map(|rank| if sent_order { 0 } else { rank })
                .collect());
        }
        let mut ranks = vec![self.order.len() as u8; kinds.len()];
        for (rank, name) in self.order.iter().enumerate() {
            if self.order[..rank].contains(name) {
                return Err(ScenarioError::new("order", format!("{name} is named twice")));
            }
            ranks[kind(kinds, "order", name)?] = rank as u8;
        }
        Ok(ranks)
    }
}

/// Rejects heartbeats that are so frequent that a run would consist of nothing else.
fn check_period(key: &str, period: Option<Span>, timing: &Timing) -> Result<()> {
    let shortest = Span::from_nanos((timing.transmission.as_nanos() / 1000).max(1));
    match period {
        Some(period) if period < shortest => {
            let problem =
                format!("{period} is less than a thousandth of D; use {shortest} or more");
            Err(ScenarioError::new(key, problem))
        }
        _ => Ok(()),
    }
}

/// How long a run may take after the last fault: long enough for every run that ends, and to show that the others do
/// not end.
fn calm(timing: &Timing, count: u64) -> Span {
    let hop = timing.reply() + timing.transmission;
    hop * 20 * (count + 50) + timing.preempt * 5 + timing.heartbeat * 20
}

/// The same for members that ask to enter a critical section: each entry may take a round of the ring.
fn requests_calm(requests: &Requests, timing: &Timing, count: u64) -> Span {
    let longest = |model: DelayModel| match model {
        DelayModel::Exponential { mean } => Span::from_nanos(mean) * LONGEST_DRAW,
        bounded => Span::from_nanos(bounded.bound()),
    };
    let entry = longest(requests.hold) + longest(requests.think) + timing.reply() * (count + 4);
    entry * requests.count()
}

/// The same for a quorum, whose members have penalties and wait until vote leases are over.
fn quorum_calm(settings: &Settings) -> Span {
    let longest = settings
        .paces
        .values()
        .map(|pace| pace.vote_lease)
        .fold(settings.pace.vote_lease, Span::max);
    longest * 20 + settings.tenure * 4 + settings.penalty_decay * 260
}

/// How long members with sessions may take to meet once they can: a question is repeated every second.
const MEETING: Span = Span::from_millis(1_000);

/// How much longer it takes until members with sessions have met: they greet each other every second at least, in both
/// rounds of a rejoin.
const SESSIONS_CALM: Span = Span::from_millis(10_000);

/// An exponential length of time is never longer than this many times its mean: the fraction from which it is drawn has
/// 53 bits, and 53 ln 2 < 37.
const LONGEST_DRAW: u64 = 37;

/// When all faults that are known beforehand have happened and are over.
fn end_of_faults(
    initiators: &initiators::Initiators,
    faults: &[Fault],
    chaos: Option<&Chaos>,
) -> Time {
    // A fault that waits for a message may come at any time: its length is added at the end.
    let (mut end, mut added) = (Time::ZERO, Span::ZERO);
    for fault in faults {
        match fault.when {
            Trigger::At(at) => end = end.max(at + fault.lasting()),
            Trigger::Message { .. } => added = added + fault.lasting(),
        }
    }
    if let Some(chaos) = chaos {
        let longest = ChaosKind::ALL.into_iter().filter_map(|kind| chaos.rate(kind));
        let longest = longest.map(|(_, lasting)| lasting).max().unwrap_or_default();
        end = end.max(Time::ZERO + chaos.until.unwrap_or_default() + longest * LONGEST_DRAW);
    }
    initiators.iter().map(|(_, at)| at).fold(end, Time::max) + added
}
