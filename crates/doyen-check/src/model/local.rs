//! One process as the checker sees it: its state machine, its disk, its armed timers, and what its failure detector has
//! reported. [`handle`] is a pure function of this and of the event.

use std::fmt;
use std::hash::{Hash, Hasher};

use doyen_core::explore::Explore;
use doyen_core::handover::last_messages;
use doyen_core::host::{self, Host};
use doyen_core::ledger::{Contradiction, Entry, Stored, Tenure};
use doyen_core::members::{Incarnation, Members, NodeId, SessionId, Term};
use doyen_core::protocol::{
    AdminCommand, Bonds, Boot, Deliveries, Durable, EffectOf, Effects, Event, Message, Notice,
    Origin, Pledge, Protocol, Role, Section, View,
};
use doyen_core::session::PLAUSIBLE_TIMES;
use doyen_core::time::{Delay, Span};
use doyen_sim::world::Frozen;

use super::step::Act;
use crate::budget::{ANY, Item};
use crate::timers::Clock;

/// A process, up or down.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Local<P: Explore> {
    /// The member whose process it is.
    pub(crate) id: NodeId,
    /// Nothing while it is down.
    pub(crate) state: Option<P>,
    pub(crate) disk: Option<P::Durable>,
    /// The number of starts, if the protocol depends on it. A process with sessions finds its incarnation out by itself
    /// after it has lost its disk; this is then the incarnation that its host stored last.
    pub(crate) incarnation: Incarnation,
    /// Which of the member's processes it is, counted from zero. A process that restarts keeps its number.
    pub(crate) process: u8,
    /// The number of starts, for protocols with sessions.
    pub(crate) starts: u8,
    /// In order of their tags.
    pub(crate) timers: Vec<Armed<P::Timer>>,
    /// The peers that its failure detector has reported down and not up since, a bit for each position.
    pub(crate) reported: u64,
    /// How many more of its timers may expire, with free timers.
    pub(crate) expiries: u8,
    /// For how many ticks clients may act on its last lease, even after the process has died. Zero without a lease.
    pub(crate) published: u32,
    /// The term of that lease, while clients may act on it.
    pub(crate) lease_term: Term,
    /// The timer that ends that lease, while it is armed: it runs by the same clock as the clients.
    pub(crate) publisher: Option<P::Timer>,
    /// The last vote lease that it gave, whatever it remembers of that itself. Not kept once it is over, or if no property
    /// is about it.
    pub(crate) vote_lease: Option<Tenure<Ticks>>,
    /// The last vote that was lost with its disk, and the term of that vote.
    pub(crate) lost_vote: Option<(Term, NodeId)>,
    /// It has lost its disk and has stored nothing since: it can only start as a member that rejoins.
    pub(crate) disk_lost: bool,
    /// The ticks since it crashed, started or received a false report, up to the time by which all detectors have noticed.
    pub(crate) settled: u8,
    /// How often its client may still ask to enter the critical section. A client that is gone with its process is replaced
    /// by one that asks as often as is left.
    pub(crate) requests: Requests,
    /// What its last process had delivered, while it is down.
    pub(crate) delivered: LastDelivered,
}

/// What a process of a multicast had delivered; nothing leaves no trace in a fingerprint, as with [`Requests`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct LastDelivered(Option<Deliveries>);

impl Hash for LastDelivered {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if let Some(delivered) = &self.0 {
            delivered.hash(state);
        }
    }
}

/// A number of requests. None, as in every election, leaves no trace in a fingerprint: which of several counterexamples of the
/// same length is shown depends on fingerprints, and should not change for what has no critical section.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Requests(pub(crate) u8);

impl Hash for Requests {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if self.0 > 0 {
            self.0.hash(state);
        }
    }
}

/// The latest tick at which a timer expires that need not expire.
const NEVER: u32 = u32::MAX;

/// An armed timer. It expires in `earliest` to `latest` ticks; both are zero with free timers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Armed<T> {
    pub(crate) timer: T,
    pub(crate) earliest: u32,
    pub(crate) latest: u32,
}

/// What happens to a process, with the sender and the message or the timer itself.
pub(crate) type Input<P> = Act<(NodeId, <P as Protocol>::Message), <P as Protocol>::Timer>;

/// The result of [`handle`].
#[derive(Debug)]
pub(crate) struct Handled<P: Explore> {
    pub(crate) local: Local<P>,
    /// The effects that were applied, in order.
    pub(crate) effects: Vec<EffectOf<P>>,
    /// The rules that fired.
    pub(crate) rules: Vec<&'static str>,
    /// The number of messages and writes: the process may crash between any two.
    pub(crate) outputs: u32,
    /// Which of them was the last write, counted from one; zero without one.
    pub(crate) last_write: u32,
    /// The rules of the ledger that the process broke by itself.
    pub(crate) contradictions: Vec<Contradiction>,
}

/// What all processes have in common.
#[derive(Debug)]
pub(crate) struct Context<'c, P: Explore> {
    pub(crate) config: &'c P::Config,
    pub(crate) members: &'c Members,
    /// How time passes; nothing with free timers.
    pub(crate) clock: Option<Clock>,
    /// Whether a property is about [vote leases](Local::vote_lease).
    pub(crate) tracks_vote_leases: bool,
    /// The commands of an operator, and what each takes from the budget.
    pub(crate) commands: Vec<(Item, AdminCommand)>,
    /// Whether a guardian releases a lease only after everything that relied on it is over.
    pub(crate) guardians_confirm: bool,
}

impl<P: Explore> Context<'_, P> {
    /// The ticks that detectors take at most; zero if the protocol ignores them, or if nothing bounds them.
    pub(crate) fn detection(&self) -> u8 {
        let heeded = self.clock.filter(|_| P::heeds_detector(self.config));
        heeded.and_then(|clock| clock.detection).unwrap_or(0)
    }

    /// Whether time waits for detectors.
    pub(crate) fn awaits_detectors(&self) -> bool {
        P::heeds_detector(self.config) && self.clock.is_some_and(|clock| clock.detection.is_some())
    }

    /// The bit of a member.
    pub(crate) fn bit(&self, id: NodeId) -> u64 {
        self.members.position(id).map_or(0, |position| 1 << position)
    }
}

/// The commands that operators give to the `members` of a quorum, of which a preference and a pause hold for a few heartbeats;
/// and behind them what any member is told to do: to start a snapshot, or to tell another one something.
pub(crate) fn commands(members: &Members, clock: Option<Clock>) -> Vec<(Item, AdminCommand)> {
    let lasting = clock.map_or(Span::ZERO, |clock| clock.tick * 4);
    let transfers = members.iter().map(|to| AdminCommand::Transfer { to });
    let transfers = transfers.chain([AdminCommand::Resign]).map(|it| (Item::Transfer, it));
    let others = members.iter().map(|member| AdminCommand::Prefer { member, lasting });
    let others = others
        .chain([AdminCommand::Drain { lasting: None, never: false }, AdminCommand::Undrain])
        .chain([AdminCommand::Pause { lasting }, AdminCommand::Resume])
        .map(|it| (Item::Command, it));
    let tells = members.iter().map(|to| (Item::Tell, AdminCommand::Tell { to }));
    transfers.chain(others).chain([(Item::Snapshot, AdminCommand::Snapshot)]).chain(tells).collect()
}

impl<P: Explore> Local<P> {
    pub(crate) fn is_up(&self) -> bool {
        self.state.is_some()
    }

    /// A process that has not been started.
    pub(crate) fn unborn(id: NodeId, expiries: u8) -> Self {
        Self {
            id,
            state: None,
            disk: None,
            incarnation: Incarnation::default(),
            process: 0,
            starts: 0,
            timers: Vec::new(),
            reported: 0,
            expiries,
            published: 0,
            lease_term: Term::default(),
            publisher: None,
            vote_lease: None,
            lost_vote: None,
            disk_lost: false,
            settled: u8::MAX,
            requests: Requests::default(),
            delivered: LastDelivered::default(),
        }
    }

    /// A slot without a process.
    pub(crate) fn vacant() -> Self {
        Self::unborn(NodeId(u32::MAX), 0)
    }

    /// Another process of the same member.
    fn new_process(&self, process: u8) -> Self {
        Self { process, ..Self::unborn(self.id, self.expiries) }
    }

    /// A process as it was in the middle of a simulation.
    pub(crate) fn thaw(
        id: NodeId,
        frozen: Frozen<P>,
        expiries: u8,
        context: &Context<'_, P>,
    ) -> Self {
        let Frozen { state, disk, incarnation, timers } = frozen;
        // About a process that is up there is nothing to notice.
        let settled = if state.is_some() { context.detection() } else { 0 };
        let mut local = Self { state, disk, incarnation, settled, ..Self::unborn(id, expiries) };
        for (timer, left) in timers {
            local.arm(timer, Delay::exactly(left), context.clock);
        }
        local
    }

    /// Where it is with respect to the critical section. A process that is down is outside.
    pub(crate) fn section(&self) -> Section {
        self.state.as_ref().map_or(Section::Outside, |state| state.view().section)
    }

    /// What it has delivered, if its protocol is a multicast.
    pub(crate) fn deliveries(&self) -> Option<&Deliveries> {
        match &self.state {
            Some(state) => state.deliveries(),
            None => self.delivered.0.as_ref(),
        }
    }

    /// Its state machine starts.
    fn boot(&mut self, context: &Context<'_, P>, origin: Origin, out: &mut Effects<P>) {
        self.delivered = LastDelivered::default();
        self.raise_incarnation(context.config, origin);
        let rejoins = self.disk.as_ref().is_some_and(Durable::is_rejoining);
        let origin = if rejoins { Origin::Rejoining } else { origin };
        let mut boot = Boot::new(self.incarnation, self.disk.clone(), origin);
        if P::has_sessions(context.config) {
            self.starts += 1;
            boot.session = SessionId::from_random(self.start().into());
            boot.time_of_day = PLAUSIBLE_TIMES.start;
        }
        self.state = Some(P::start(self.id, context.config, boot, out));
    }

    /// The number of its last start among all starts of the member; zero without sessions.
    pub(crate) fn start(&self) -> u16 {
        u16::from(self.process) << 8 | u16::from(self.starts)
    }

    /// The incarnation that it takes when it starts, as far as its host knows.
    fn raise_incarnation(&mut self, config: &P::Config, origin: Origin) {
        let last = self.incarnation.0;
        self.incarnation = Incarnation(match (P::has_sessions(config), &self.disk) {
            // The process finds it out.
            (true, None) if origin == Origin::Rejoining => 1,
            (true, disk) => {
                let stored = disk.as_ref().and_then(Durable::incarnation).unwrap_or_default();
                last.max(stored.0) + 1
            }
            (false, _) if P::heeds_incarnation(config) || origin == Origin::Rejoining => last + 1,
            (false, _) => last.max(1),
        });
    }

    /// Its canonical form: without what makes no difference any more to what it will do.
    pub(crate) fn canonical(&self, config: &P::Config) -> Self {
        let mut canonical = self.clone();
        if let Some(state) = &self.state {
            canonical.state = Some(state.canonical(config));
            let timers = canonical.timers.iter_mut().map(|armed| &mut armed.timer);
            for timer in timers.chain(&mut canonical.publisher) {
                *timer = state.canonical_timer(config, *timer);
            }
            canonical.timers.sort_unstable_by_key(|armed| armed.timer);
        }
        canonical
    }

    /// The same with other names of the members. Reports of detectors are left as they are: protocols whose members can be
    /// renamed ignore them.
    pub(crate) fn renamed(&self, names: &dyn Fn(NodeId) -> NodeId) -> Self {
        Self {
            id: names(self.id),
            state: self.state.as_ref().map(|state| state.renamed(names)),
            disk: self.disk.as_ref().map(|disk| P::renamed_durable(disk, names)),
            lost_vote: self.lost_vote.map(|(term, vote)| (term, names(vote))),
            ..self.clone()
        }
    }

    /// Its entry in the ledger.
    pub(crate) fn entry(&self) -> Entry<Ticks> {
        let stored = Stored::on(self.disk.as_ref());
        Entry { id: self.id, stored, vote_lease: self.vote_lease }
    }

    /// Whether it may have voted for `leader` in `term`. A vote that was lost with the disk counts.
    pub(crate) fn may_have_voted(&self, leader: NodeId, term: Term) -> bool {
        let lost = |(term, vote)| Stored { term, vote: Some(vote), paused: false };
        let lost = self.lost_vote.map(|vote| Entry { stored: lost(vote), ..self.entry() });
        let mut entries = std::iter::once(self.entry()).chain(lost);
        entries.any(|entry| entry.may_have_voted(leader, term))
    }

    /// Notes how long its lease may last, if it has one.
    fn publish(&mut self) {
        let Some(state) = &self.state else { return };
        let timer = state.lease();
        if let Some(armed) = self.timers.iter().find(|armed| Some(armed.timer) == timer) {
            (self.published, self.publisher) = (armed.latest, timer);
            self.lease_term = state.view().term;
        }
    }

    /// Clients no longer act on its lease.
    fn end_lease(&mut self) {
        (self.published, self.publisher) = (0, None);
        self.lease_term = Term::default();
    }

    /// What keeps it from voting for a rival of a leader with a lease. A process that is down is bound if it observes a
    /// hold-down when it starts. A bond holds until its timer expires, and the checker explores every time at which that
    /// may be: so no bond ends at a known tick.
    pub(crate) fn bonds(&self, context: &Context<'_, P>) -> Bonds<Ticks> {
        if let Some(state) = &self.state {
            return state.bonds().map(|_| Ticks(u32::MAX));
        }
        let started = handle(context, self, Act::Start(Origin::Joining), 0).local;
        let bonds =
            started.state.map_or(Bonds::NONE, |state| state.bonds().map(|_| Ticks(u32::MAX)));
        Bonds { vote_lease: None, ..bonds }
    }

    /// Only the disk of the process is left.
    fn crash(&mut self) {
        self.delivered = LastDelivered(self.deliveries().cloned());
        self.settled = 0;
        self.state = None;
        self.publisher = None;
        self.timers.clear();
        self.reported = 0;
    }

    /// The disk is lost, but what the process has told others counts.
    fn lose_disk(&mut self) {
        self.disk_lost = true;
        let Some(disk) = self.disk.take() else { return };
        if let Some(vote) = disk.vote() {
            self.lost_vote = Some((disk.term(), vote));
        }
    }

    fn arm(&mut self, timer: P::Timer, after: Delay, clock: Option<Clock>) {
        let [earliest, latest] = clock.map_or([0, 0], |clock| clock.in_ticks(after));
        let armed = Armed { timer, earliest, latest };
        match self.timers.binary_search_by_key(&timer, |armed| armed.timer) {
            Ok(place) => self.timers[place] = armed,
            Err(place) => self.timers.insert(place, armed),
        }
    }

    fn disarm(&mut self, timer: P::Timer) {
        self.publisher.take_if(|publisher| *publisher == timer);
        if let Ok(place) = self.timers.binary_search_by_key(&timer, |armed| armed.timer) {
            self.timers.remove(place);
        }
    }

    fn wait(&mut self, context: &Context<'_, P>, ticks: u32) {
        let settled = u32::from(self.settled).saturating_add(ticks);
        self.settled = settled.min(context.detection().into()) as u8;
        self.published = self.published.saturating_sub(ticks);
        if self.published == 0 {
            self.lease_term = Term::default();
        }
        self.vote_lease = after(self.vote_lease, ticks);
        for armed in &mut self.timers {
            armed.earliest = armed.earliest.saturating_sub(ticks);
            if armed.latest != NEVER {
                armed.latest = armed.latest.saturating_sub(ticks);
            }
        }
    }

    /// Its state machine handles an event. The host of a retiring leader stops what runs there at once: a slower host
    /// would add no lease.
    fn give(
        &mut self,
        context: &Context<'_, P>,
        event: Event<P::Message, P::Timer>,
        out: &mut Effects<P>,
    ) {
        let Some(state) = &mut self.state else { return };
        state.handle(context.config, event, out);
        if state.view().role == Role::Retiring {
            state.handle(context.config, Event::Retired, out);
            self.end_lease();
        }
    }
}

/// What is left of a vote lease after so many ticks.
fn after(lease: Option<Tenure<Ticks>>, ticks: u32) -> Option<Tenure<Ticks>> {
    let Tenure { term, until: Ticks(left) } = lease?;
    let left = left.checked_sub(ticks).filter(|&left| left > 0)?;
    Some(Tenure { term, until: Ticks(left) })
}

/// A time, in ticks from now.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Ticks(pub(crate) u32);

impl fmt::Display for Ticks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("1 tick from now"),
            ticks => write!(f, "{ticks} ticks from now"),
        }
    }
}

/// What becomes of a process. If `crash_after` is not zero, it crashes after so many messages and writes.
pub(crate) fn handle<P: Explore>(
    context: &Context<'_, P>,
    local: &Local<P>,
    input: Input<P>,
    crash_after: u8,
) -> Handled<P> {
    let mut next = local.clone();
    let mut out = Effects::new();
    let mut requested = None;
    match input {
        Act::Start(origin) => {
            let origin = if local.disk_lost { Origin::Rejoining } else { origin };
            next.settled = 0;
            if origin == Origin::Rejoining {
                next.lose_disk();
            }
            next.boot(context, origin, &mut out);
        }
        Act::Replace { process } => {
            next = local.new_process(process);
            next.lose_disk();
            next.boot(context, Origin::Rejoining, &mut out);
        }
        Act::Clone { process } => {
            let Local { disk, incarnation, disk_lost, .. } = local.clone();
            next = Local { disk, incarnation, disk_lost, ..local.new_process(process) };
            let origin = if disk_lost { Origin::Rejoining } else { Origin::Joining };
            next.boot(context, origin, &mut out);
        }
        Act::Crash => next.crash(),
        Act::Release => {
            if let Some(state) = &next.state {
                out = last_messages(state, context.config);
            }
            next.crash();
            if context.guardians_confirm {
                next.end_lease();
            }
        }
        Act::Wait { ticks } => next.wait(context, ticks),
        Act::Lose { .. } => {}
        Act::Receive { message: (from, message), .. } => {
            // A sign of life: if the sender is down after all, the detector has to report it again.
            next.reported &= !context.bit(from);
            let says = message.commitments();
            requested = says.requested;
            next.vote_lease.take_if(|lease| Some(lease.term) == says.released);
            next.give(context, Event::Message { from, message }, &mut out);
        }
        Act::Expire { timer, .. } => {
            if next.publisher == Some(timer) {
                next.end_lease();
            }
            next.disarm(timer);
            let is_counted = context.clock.is_none() && next.expiries != ANY;
            next.expiries = next.expiries.saturating_sub(u8::from(is_counted));
            next.give(context, Event::Timer(timer), &mut out);
        }
        Act::Report { peer, up: true } => {
            next.reported &= !(1 << peer);
            next.give(context, Event::PeerUp(context.members.at(peer.into())), &mut out);
        }
        Act::Report { peer, up: false } | Act::Suspect { peer } => {
            if matches!(input, Act::Suspect { .. }) {
                next.settled = 0;
            }
            next.reported |= 1 << peer;
            next.give(context, Event::PeerDown(context.members.at(peer.into())), &mut out);
        }
        Act::Campaign => next.give(context, Event::Campaign, &mut out),
        Act::Request => {
            next.requests = Requests(next.requests.0.saturating_sub(1));
            next.give(context, Event::Request, &mut out);
        }
        Act::Exit => next.give(context, Event::Exit, &mut out),
        Act::Command(number) => {
            let (_, command) = context.commands[usize::from(number)];
            next.give(context, Event::Command(command), &mut out);
        }
    }
    apply_effects(context, next, out, requested, crash_after)
}

/// Applies the effects until all are applied or the process crashes. `requested`: the vote lease that it was asked for.
fn apply_effects<P: Explore>(
    context: &Context<'_, P>,
    local: Local<P>,
    mut out: Effects<P>,
    requested: Option<Span>,
    crash_after: u8,
) -> Handled<P> {
    let rules = out.rules().to_vec();
    let mut effects: Vec<EffectOf<P>> = out.drain().collect();
    let (outputs, last_write, contradictions) = (0, 0, Vec::new());
    let mut host =
        LocalHost { context, local, requested, crash_after, outputs, last_write, contradictions };
    let mut done = 0;
    let in_turn = effects.iter().inspect(|_| done += 1).cloned();
    if let Err(Crashed) = host::apply(in_turn, &mut host) {
        host.local.crash();
        effects.truncate(done);
    }
    let LocalHost { mut local, outputs, last_write, mut contradictions, .. } = host;
    local.publish();
    if let Some(state) = local.state.as_ref().filter(|state| state.lease().is_some()) {
        contradictions.extend(local.entry().lead(state.view().term));
    }
    Handled { local, effects, rules, outputs, last_write, contradictions }
}

/// The host of one process, for one event.
struct LocalHost<'t, 'c, P: Explore> {
    context: &'t Context<'c, P>,
    local: Local<P>,
    requested: Option<Span>,
    crash_after: u8,
    outputs: u32,
    last_write: u32,
    contradictions: Vec<Contradiction>,
}

/// The process has sent and stored as much as it may before it crashes.
struct Crashed;

impl<P: Explore> LocalHost<'_, '_, P> {
    fn crash_in_time(&self) -> Result<(), Crashed> {
        if u32::from(self.crash_after) == self.outputs { Err(Crashed) } else { Ok(()) }
    }

    /// Judges a message that binds the process, and notes the vote lease that it gives.
    fn judge(&mut self, to: NodeId, pledge: Pledge) {
        let Self { local, context, requested, contradictions, .. } = self;
        // A vote for itself that was lost with the candidate is counted by no other member.
        let is_known = |&(term, vote): &(Term, NodeId)| term == pledge.term() && vote != local.id;
        let voted = local.lost_vote.filter(is_known).map(|(_, vote)| vote);
        let mut entry = local.entry();
        contradictions.extend(entry.send(Ticks(0), to, pledge, voted));
        if let Some(clock) = context.clock.filter(|_| context.tracks_vote_leases)
            && let (Pledge::VoteLease { term }, Some(length)) = (pledge, *requested)
        {
            let [until, _] = clock.in_ticks(length.into());
            entry.bind(term, Ticks(until));
            local.vote_lease = after(entry.vote_lease, 0);
        }
    }
}

impl<P: Explore> Host<P> for LocalHost<'_, '_, P> {
    type Error = Crashed;

    fn persist(&mut self, durable: P::Durable) -> Result<(), Crashed> {
        self.outputs += 1;
        self.last_write = self.outputs;
        self.contradictions.extend(self.local.entry().store(Stored::on(Some(&durable))));
        self.local.disk_lost = false;
        self.local.disk = Some(durable);
        self.crash_in_time()
    }

    fn send(&mut self, to: NodeId, message: P::Message) -> Result<(), Crashed> {
        self.outputs += 1;
        if let Some(pledge) = message.commitments().pledge {
            self.judge(to, pledge);
        }
        self.crash_in_time()
    }

    fn arm(&mut self, timer: P::Timer, after: Delay) {
        self.local.arm(timer, after, self.context.clock);
    }

    fn cancel(&mut self, timer: P::Timer) {
        self.local.disarm(timer);
    }

    fn announce(&mut self, _: View) {}

    fn inform(&mut self, _: Notice) -> Result<(), Crashed> {
        Ok(())
    }
}
