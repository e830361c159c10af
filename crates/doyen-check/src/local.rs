//! One member as the checker sees it: its state machine, its disk, its armed timers, and what its failure detector has
//! told it. Whatever happens to a member is a pure function of this and of what happens.

use std::fmt;

use doyen_core::explore::Explore;
use doyen_core::host::{self, Host};
use doyen_core::ledger::{Contradiction, Entry, Stored, Tenure};
use doyen_core::members::{Incarnation, Members, NodeId, Term};
use doyen_core::protocol::{
    Boot, Durable, EffectOf, Effects, Event, Message, Notice, Origin, Pledge, Role, View,
};
use doyen_core::session::{PLAUSIBLE_TIMES, SessionId};
use doyen_core::time::{Delay, Span};

use super::budget::ANY;
use doyen_sim::world::Frozen;

/// A member, alive or not.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Local<P: Explore> {
    pub(crate) id: NodeId,
    /// Nothing while it is down.
    pub(crate) state: Option<P>,
    pub(crate) disk: Option<P::Durable>,
    /// How often it has been started, if that makes a difference; where it finds out by itself after it has lost its disk,
    /// the incarnation that its host stored last.
    pub(crate) incarnation: Incarnation,
    /// Which of the member's processes it is, counted from zero. One that restarts is the same.
    pub(crate) process: u8,
    /// How often it has been started, where sessions are told apart.
    pub(crate) starts: u8,
    /// In order of their tags.
    pub(crate) timers: Vec<Armed<P::Timer>>,
    /// Whom its failure detector has reported down and not up since, a bit for each position.
    pub(crate) reported: u64,
    /// How many more of its timers may expire, where timers are free.
    pub(crate) expiries: u8,
    /// For how many ticks somebody may act on the lease that it had last, even if it is dead by then. Zero where there are
    /// no leases.
    pub(crate) published: u32,
    /// The term of that lease, while somebody may act on it.
    pub(crate) lease_term: Term,
    /// The timer that ends that lease, while it is armed: it counts by the same clock as those who act.
    pub(crate) publisher: Option<P::Timer>,
    /// The vote lease that it has given last, whatever it remembers of that itself; nothing when that is over, or not
    /// asked about.
    pub(crate) vote_lease: Option<Tenure<Ticks>>,
    /// The last vote that was lost with its disk, and in which term.
    pub(crate) forgotten: Option<(Term, NodeId)>,
    /// It has lost its disk and has stored nothing since: it can come up only as one that has.
    pub(crate) lost: bool,
    /// How many ticks ago it crashed, started or was last told a falsehood about a peer, as far as that matters: by
    /// then detectors have noticed.
    pub(crate) calm: u8,
}

/// An armed timer, and in how many ticks it is due: not before `earliest`, not after `latest`. Both are zero where
/// timers are free.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Armed<T> {
    pub(crate) timer: T,
    pub(crate) earliest: u32,
    pub(crate) latest: u32,
}

/// What happens to a member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Stimulus<M, T> {
    /// Something that its state machine handles.
    Event(Event<M, T>),
    /// It stops.
    Crash,
    /// It is started, with its disk.
    Start(Origin),
    /// Another process of the member is started, without a disk. This is the number of the process.
    Replace(u8),
    /// Another process of the member is started, with a copy of the disk.
    Clone(u8),
    /// Its failure detector takes a live peer for dead.
    Suspect(NodeId),
    /// So many ticks go by.
    Wait(u32),
}

/// What became of it.
#[derive(Debug)]
pub(crate) struct Handled<P: Explore> {
    pub(crate) local: Local<P>,
    /// What it wanted done and what was done, in order.
    pub(crate) effects: Vec<EffectOf<P>>,
    /// The rules that fired.
    pub(crate) rules: Vec<&'static str>,
    /// How many messages and writes there were: it may crash between any two.
    pub(crate) acts: u32,
    /// Which of them was the last write, counted from one; zero without one.
    pub(crate) last_write: u32,
    /// What it did that no member may do, whatever else is the case.
    pub(crate) missteps: Vec<Contradiction>,
}

/// What [`handle`] must know besides.
#[derive(Debug)]
pub(crate) struct Terms<'c, P: Explore> {
    pub(crate) config: &'c P::Config,
    pub(crate) members: &'c Members,
    /// Where timers are bounded, how long things take.
    pub(crate) pace: Option<Pace>,
    /// Whether [vote leases](Local::vote_lease) are asked about.
    pub(crate) notes_promises: bool,
}

/// How long things take where timers are bounded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pace {
    /// A message at most: `D`.
    pub(crate) tick: Span,
    /// Until everybody's detector has noticed a crash, at most, in ticks; nothing bounds it without.
    pub(crate) detection: Option<u8>,
    /// By how much any clock may be wrong, in thousandths.
    pub(crate) drift: u32,
}

impl<P: Explore> Terms<'_, P> {
    /// How many ticks detectors take at most; zero where nobody heeds them, or nothing bounds them.
    pub(crate) fn detection(&self) -> u8 {
        let heeded = self.pace.filter(|_| P::heeds_detector(self.config));
        heeded.and_then(|pace| pace.detection).unwrap_or(0)
    }

    /// Whether time waits for detectors.
    pub(crate) fn awaits_detectors(&self) -> bool {
        P::heeds_detector(self.config) && self.pace.is_some_and(|pace| pace.detection.is_some())
    }

    /// For how long an operator prefers a member: a few heartbeats.
    pub(crate) fn preference(&self) -> Span {
        self.pace.map_or(Span::ZERO, |pace| pace.tick * 4)
    }

    /// The bit that stands for a member.
    pub(crate) fn bit(&self, id: NodeId) -> u64 {
        self.members.position(id).map_or(0, |position| 1 << position)
    }
}

impl<P: Explore> Local<P> {
    pub(crate) fn is_up(&self) -> bool {
        self.state.is_some()
    }

    /// A member that has not been started.
    pub(crate) fn unborn(id: NodeId, expiries: u8) -> Self {
        let incarnation = Incarnation::default();
        let timers = Vec::new();
        Self {
            id,
            state: None,
            disk: None,
            incarnation,
            process: 0,
            starts: 0,
            timers,
            reported: 0,
            expiries,
            published: 0,
            lease_term: Term::default(),
            publisher: None,
            vote_lease: None,
            forgotten: None,
            lost: false,
            calm: u8::MAX,
        }
    }

    /// Another process of the same member.
    fn new_process(before: &Self, process: u8) -> Self {
        Self { process, ..Self::unborn(before.id, before.expiries) }
    }

    /// Its state machine starts.
    fn boot(&mut self, terms: &Terms<'_, P>, origin: Origin, out: &mut Effects<P>) {
        self.raise_incarnation(terms.config, origin);
        let rejoins = self.disk.as_ref().is_some_and(Durable::is_rejoining);
        let origin = if rejoins { Origin::Rejoining } else { origin };
        let mut boot = Boot::new(self.incarnation, self.disk.clone(), origin);
        if P::has_sessions() {
            (boot.session, boot.time_of_day) = (self.next_session(), PLAUSIBLE_TIMES.start);
        }
        self.state = Some(P::start(self.id, terms.config, boot, out));
    }

    /// No process of anybody.
    pub(crate) fn vacant() -> Self {
        Self::unborn(NodeId(u32::MAX), 0)
    }

    /// The session of its next start: a name that no other start of the member has.
    fn next_session(&mut self) -> SessionId {
        self.starts += 1;
        SessionId::from_random(self.start().into())
    }

    /// Its last start, among all of the member's processes; zero where sessions are not told apart.
    pub(crate) fn start(&self) -> u16 {
        u16::from(self.process) << 8 | u16::from(self.starts)
    }

    /// Which incarnation it takes when it starts, as far as its host knows.
    fn raise_incarnation(&mut self, config: &P::Config, origin: Origin) {
        let last = self.incarnation.0;
        self.incarnation = Incarnation(match (P::has_sessions(), &self.disk) {
            // The process finds out.
            (true, None) if origin == Origin::Rejoining => 1,
            (true, disk) => {
                let stored = disk.as_ref().and_then(Durable::incarnation).unwrap_or_default();
                last.max(stored.0) + 1
            }
            (false, _) if P::heeds_incarnation(config) || origin == Origin::Rejoining => last + 1,
            (false, _) => last.max(1),
        });
    }

    /// A member as it was in the middle of a simulation.
    pub(crate) fn thaw(id: NodeId, frozen: Frozen<P>, expiries: u8, terms: &Terms<'_, P>) -> Self {
        let pace = terms.pace;
        let Frozen { state, disk, incarnation, timers } = frozen;
        // Of those who are alive there is nothing to notice.
        let heeded = pace.filter(|_| P::heeds_detector(terms.config) && state.is_some());
        let calm = heeded.and_then(|pace| pace.detection).unwrap_or(0);
        let mut local = Self { state, disk, incarnation, calm, ..Self::unborn(id, expiries) };
        for (timer, left) in timers {
            local.arm(timer, Delay::exactly(left), pace);
        }
        local
    }

    /// The same without what makes no difference any more to what it will do.
    pub(crate) fn essence(&self, config: &P::Config) -> Self {
        let mut essence = self.clone();
        if let Some(state) = &self.state {
            essence.state = Some(state.canonical(config));
            let timers = essence.timers.iter_mut().map(|armed| &mut armed.timer);
            for timer in timers.chain(&mut essence.publisher) {
                *timer = state.canonical_timer(config, *timer);
            }
            essence.timers.sort_unstable_by_key(|armed| armed.timer);
        }
        essence
    }

    /// The same if members had other names. Who is reported down makes no difference to who pays no heed to detectors.
    pub(crate) fn renamed(&self, names: &dyn Fn(NodeId) -> NodeId) -> Self {
        Self {
            id: names(self.id),
            state: self.state.as_ref().map(|state| state.renamed(names)),
            disk: self.disk.as_ref().map(|disk| P::renamed_durable(disk, names)),
            forgotten: self.forgotten.map(|(term, vote)| (term, names(vote))),
            ..self.clone()
        }
    }

    /// What the ledger is to know of it.
    pub(crate) fn entry(&self) -> Entry<Ticks> {
        let stored = Stored::on(self.disk.as_ref());
        Entry { id: self.id, stored, vote_lease: self.vote_lease }
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

    /// Nobody acts on its lease any more.
    fn end_lease(&mut self) {
        (self.published, self.publisher) = (0, None);
        self.lease_term = Term::default();
    }

    /// Whether it votes for no rival of whoever has a lease in `term`. One that is down does not if it observes hold-down
    /// when it comes up.
    pub(crate) fn covers(&self, terms: &Terms<'_, P>, term: Term) -> bool {
        let Some(state) = &self.state else {
            let started = handle(terms, self, Stimulus::Start(self.origin()), None).local;
            return started.is_up() && started.covers(terms, term);
        };
        // Whatever is armed lasts until it expires: the checker explores every time at which it may.
        state.bonds().map(|_| ()).covers(Tenure { term, until: () })
    }

    /// Nothing of a process is left but what it stored.
    fn crash(&mut self) {
        self.calm = 0;
        self.state = None;
        self.publisher = None;
        self.timers.clear();
        self.reported = 0;
    }

    /// As what it comes up, if it loses nothing now.
    pub(crate) fn origin(&self) -> Origin {
        if self.lost { Origin::Rejoining } else { Origin::Joining }
    }

    /// Nothing of what it stored is left, but what it has told others counts.
    fn lose_disk(&mut self) {
        self.lost = true;
        let Some(disk) = self.disk.take() else { return };
        if let Some(vote) = disk.vote() {
            self.forgotten = Some((disk.term(), vote));
        }
    }

    fn arm(&mut self, timer: P::Timer, after: Delay, pace: Option<Pace>) {
        let [earliest, latest] = match pace {
            None => [0, 0],
            Some(pace) => pace.in_ticks(after),
        };
        let armed = Armed { timer, earliest, latest };
        match self.timers.binary_search_by_key(&timer, |armed| armed.timer) {
            Ok(place) => self.timers[place] = armed,
            Err(place) => self.timers.insert(place, armed),
        }
    }

    /// Disarms a timer; says whether it was armed.
    fn disarm(&mut self, timer: P::Timer) -> bool {
        self.publisher.take_if(|publisher| *publisher == timer);
        let place = self.timers.binary_search_by_key(&timer, |armed| armed.timer);
        place.is_ok_and(|place| {
            self.timers.remove(place);
            true
        })
    }
}

/// What is left of a vote lease so many ticks later.
fn after(lease: Option<Tenure<Ticks>>, ticks: u32) -> Option<Tenure<Ticks>> {
    let Tenure { term, until: Ticks(left) } = lease?;
    let left = left.checked_sub(ticks).filter(|&left| left > 0)?;
    Some(Tenure { term, until: Ticks(left) })
}

/// A time, as so many ticks from now.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Ticks(pub(crate) u32);

impl fmt::Display for Ticks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ticks from now", self.0)
    }
}

impl Pace {
    /// After how many ticks a timer expires at the earliest, by the fastest clock there may be, and at the latest, by the
    /// slowest. By a clock that is right no timer expires early: what is left of a tick counts as one.
    pub(crate) fn in_ticks(self, after: Delay) -> [u32; 2] {
        let drift = u128::from(self.drift.min(999));
        let tick = u128::from(self.tick.as_nanos().max(1));
        let [min, max] = [after.min, after.max].map(|span| u128::from(span.as_nanos()) * 1000);
        let earliest = match drift {
            0 => min.div_ceil(tick * 1000),
            _ => min / (tick * (1000 + drift)),
        };
        let latest = max.div_ceil(tick * (1000 - drift));
        [earliest, latest].map(|ticks| u32::try_from(ticks).unwrap_or(u32::MAX))
    }
}

/// What becomes of a member. `crash_after`: it crashes when it has sent and stored so many things.
pub(crate) fn handle<P: Explore>(
    terms: &Terms<'_, P>,
    local: &Local<P>,
    stimulus: Stimulus<P::Message, P::Timer>,
    crash_after: Option<u32>,
) -> Handled<P> {
    let mut next = local.clone();
    let mut out = Effects::new();
    let mut asked = None;
    match stimulus {
        Stimulus::Start(origin) => {
            next.calm = 0;
            if origin == Origin::Rejoining {
                next.lose_disk();
            }
            next.boot(terms, origin, &mut out);
        }
        Stimulus::Replace(process) => {
            next = Local::new_process(local, process);
            next.lose_disk();
            next.boot(terms, Origin::Rejoining, &mut out);
        }
        Stimulus::Clone(process) => {
            let (disk, incarnation) = (local.disk.clone(), local.incarnation);
            let lost = local.lost;
            next = Local { disk, incarnation, lost, ..Local::new_process(local, process) };
            next.boot(terms, next.origin(), &mut out);
        }
        Stimulus::Crash => next.crash(),
        Stimulus::Suspect(peer) => {
            next.calm = 0;
            next.reported |= terms.bit(peer);
            if let Some(state) = &mut next.state {
                state.handle(terms.config, Event::PeerDown(peer), &mut out);
            }
        }
        Stimulus::Wait(ticks) => {
            let calm = u32::from(next.calm).saturating_add(ticks);
            next.calm = calm.min(terms.detection().into()) as u8;
            next.published = next.published.saturating_sub(ticks);
            if next.published == 0 {
                next.lease_term = Term::default();
            }
            next.vote_lease = after(next.vote_lease, ticks);
            for armed in &mut next.timers {
                armed.earliest = armed.earliest.saturating_sub(ticks);
                armed.latest = armed.latest.saturating_sub(ticks);
            }
        }
        Stimulus::Event(event) => {
            match event {
                Event::Timer(timer) => {
                    if next.publisher == Some(timer) {
                        next.end_lease();
                    }
                    next.disarm(timer);
                    let counts = terms.pace.is_none() && next.expiries != ANY;
                    next.expiries = next.expiries.saturating_sub(u8::from(counts));
                }
                Event::PeerDown(peer) => next.reported |= terms.bit(peer),
                Event::PeerUp(peer) => next.reported &= !terms.bit(peer),
                Event::Message { from, ref message } => {
                    // A sign of life: if the sender is dead after all, that is news again.
                    next.reported &= !terms.bit(from);
                    asked = message.promise_asked();
                    let released = message.promise_released();
                    next.vote_lease.take_if(|lease| Some(lease.term) == released);
                }
                Event::Campaign | Event::Command(_) | Event::Retired => {}
            }
            if let Some(state) = &mut next.state {
                state.handle(terms.config, event, &mut out);
                // The host of a retiring leader stops what runs there at once: to take longer adds no lease.
                if state.view().role == Role::Retiring {
                    state.handle(terms.config, Event::Retired, &mut out);
                    next.end_lease();
                }
            }
        }
    }
    carry_out(terms, next, out, asked, crash_after)
}

/// Does what a member wants done, until it is done or the member crashes. `asked`: the vote lease that it has been asked
/// for.
fn carry_out<P: Explore>(
    terms: &Terms<'_, P>,
    local: Local<P>,
    mut out: Effects<P>,
    asked: Option<Span>,
    crash_after: Option<u32>,
) -> Handled<P> {
    let rules = out.rules().to_vec();
    let mut effects: Vec<EffectOf<P>> = out.drain().collect();
    let (acts, last_write, missteps) = (0, 0, Vec::new());
    let mut host = LocalHost { terms, local, asked, crash_after, acts, last_write, missteps };
    let mut done = 0;
    let in_turn = effects.iter().inspect(|_| done += 1).cloned();
    if let Err(Crashed) = host::apply(in_turn, &mut host) {
        host.local.crash();
        effects.truncate(done);
    }
    let LocalHost { mut local, acts, last_write, mut missteps, .. } = host;
    local.publish();
    if let Some(state) = local.state.as_ref().filter(|state| state.lease().is_some()) {
        missteps.extend(local.entry().lead(state.view().term));
    }
    Handled { local, effects, rules, acts, last_write, missteps }
}

/// The host of one member, for one event.
struct LocalHost<'t, 'c, P: Explore> {
    terms: &'t Terms<'c, P>,
    local: Local<P>,
    asked: Option<Span>,
    crash_after: Option<u32>,
    acts: u32,
    last_write: u32,
    missteps: Vec<Contradiction>,
}

/// The member crashes when it has sent and stored so many things.
struct Crashed;

impl<P: Explore> LocalHost<'_, '_, P> {
    fn crash_in_time(&self) -> Result<(), Crashed> {
        if self.crash_after == Some(self.acts) { Err(Crashed) } else { Ok(()) }
    }

    /// Judges a message that binds the member, and notes the vote lease that it gives.
    fn judge(&mut self, to: NodeId, pledge: Pledge) {
        let Self { local, terms, asked, missteps, .. } = self;
        // A vote for itself that was lost with the candidate is counted by no other member.
        let known = |&(term, vote): &(Term, NodeId)| term == pledge.term() && vote != local.id;
        let voted = local.forgotten.filter(known).map(|(_, vote)| vote);
        let mut entry = local.entry();
        missteps.extend(entry.send(Ticks(0), to, pledge, voted));
        if let Some(pace) = terms.pace.filter(|_| terms.notes_promises)
            && let (Pledge::Promise { term }, Some(length)) = (pledge, *asked)
        {
            let [until, _] = pace.in_ticks(length.into());
            entry.bind(term, Ticks(until));
            local.vote_lease = after(entry.vote_lease, 0);
        }
    }
}

impl<P: Explore> Host<P> for LocalHost<'_, '_, P> {
    type Error = Crashed;

    fn persist(&mut self, durable: P::Durable) -> Result<(), Crashed> {
        self.acts += 1;
        self.last_write = self.acts;
        self.missteps.extend(self.local.entry().store(Stored::on(Some(&durable))));
        self.local.lost = false;
        self.local.disk = Some(durable);
        self.crash_in_time()
    }

    fn send(&mut self, to: NodeId, message: P::Message) -> Result<(), Crashed> {
        self.acts += 1;
        if let Some(pledge) = message.pledge() {
            self.judge(to, pledge);
        }
        self.crash_in_time()
    }

    fn arm(&mut self, timer: P::Timer, after: Delay) {
        self.local.arm(timer, after, self.terms.pace);
    }

    fn cancel(&mut self, timer: P::Timer) {
        self.local.disarm(timer);
    }

    fn announce(&mut self, _: View) {}

    fn inform(&mut self, _: Notice) -> Result<(), Crashed> {
        Ok(())
    }
}
