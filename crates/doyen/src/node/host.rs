//! The loop: one event at a time, effects in order. The numbers are those of the list at the head of the core.
//!
//! On waking it looks, in this order (8), at the lease timers that are due, at the datagrams that wait, at the other
//! timers and at the requests of the rest of the program. Each is bounded, so that none can starve the others: of a
//! flood of datagrams it takes [`BATCH`], then it is the timers' turn. A lease timer goes before every single event.

use std::time::Duration;

use doyen_core::host::apply;
use doyen_core::members::{NodeId, PeerSet};
use doyen_core::node::{self, Node};
use doyen_core::protocol::{
    AdminCommand, Boot, Effects, Event, Notice, Protocol, Refusal, Role, View,
};
use doyen_core::registry::AnyProtocol;
use doyen_core::session::{self, Content, Session};
use doyen_core::time::Delay;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng as _;

use super::chronicle::Chronicle;
use super::clock::Moment;
use super::insight::{Outside, awaited, hears, insight};
use super::journal::Line;
use super::machine::Machine;
use super::network::Arrival;
use super::rejoin::Rejoin;
use super::status::Counters;
use super::store::refused;
use super::timers::Timers;
use super::{Failure, NotDone, Request, trace};

/// How many datagrams are handled before it is the timers' turn.
const BATCH: usize = 64;

/// How many requests are answered before it is the network's turn.
const REQUESTS: usize = 16;

/// What runs on a node: an algorithm, what it assumes of the network, and the sessions with all other members.
pub(super) type Process = Session<Node<AnyProtocol>>;

/// A member and the machine that it runs on.
pub(super) struct Host {
    id: NodeId,
    config: <Process as Protocol>::Config,
    member: Process,
    effects: Effects<Process>,
    timers: Timers<TimerOf>,
    /// What came in together.
    batch: Vec<Arrived>,
    /// It has lost its state, and waits for the others.
    rejoin: Option<Rejoin>,
    /// It is about to hand over, and does so when the last token that it gave has ended.
    retires_at: Option<Moment>,
    /// More requests wait than it takes in a turn.
    hurries: bool,
    machine: Machine,
    random: Pcg64Mcg,
    /// What the member said to the order that it is being given.
    refused: Option<Refusal>,
    /// It is to end: at this moment at the latest.
    ends_by: Option<Moment>,
    /// The snapshot no longer holds.
    changed: bool,
    /// What has become of the leadership, of an algorithm that does not say so itself.
    chronicle: Option<Chronicle>,
}

type TimerOf = <Process as Protocol>::Timer;
type LetterOf = <Process as Protocol>::Message;
type EventOf = Event<LetterOf, TimerOf>;

/// A letter that came in.
struct Arrived {
    from: NodeId,
    letter: LetterOf,
    /// The version of its datagram.
    version: u8,
}

impl Host {
    /// Starts the member.
    pub(super) fn start(
        id: NodeId,
        config: <Process as Protocol>::Config,
        boot: Boot<<Process as Protocol>::Durable>,
        mut machine: Machine,
        random: Pcg64Mcg,
    ) -> Result<Self, Failure> {
        let mut effects = Effects::new();
        let header = machine.trace_header(&boot);
        let member = Process::start(id, &config, boot, &mut effects);
        machine.begin_trace(header, trace::told::<Process>(effects.list()))?;
        let rejoin = member.inner().is_none().then(Rejoin::begin).map(|(rejoin, told)| {
            machine.board.journal.write(told);
            rejoin
        });
        let has_leases = Process::has_leases(&config);
        let mut host = Self {
            id,
            config,
            member,
            effects,
            timers: Timers::new(Process::is_lease),
            batch: Vec::with_capacity(BATCH),
            rejoin,
            retires_at: None,
            hurries: false,
            machine,
            random,
            refused: None,
            ends_by: None,
            changed: true,
            chronicle: (!has_leases).then(|| Chronicle::new(id)),
        };
        host.carry_out()?;
        Ok(host)
    }

    /// Runs until it is told to stop, or must.
    pub(super) fn run(mut self) -> Result<(), Failure> {
        let ended = self.run_on();
        if let Err(Failure::StateIsOld { .. } | Failure::Cloned { .. }) = &ended {
            self.note_refusal();
        }
        ended
    }

    /// Other members have refused the state: it must not be started again as it is.
    fn note_refusal(&self) {
        let folder = &self.machine.settings.state_dir;
        if let Err(error) = refused::note(folder, self.machine.stored_incarnation()) {
            let told =
                format!("cannot note that the state in {} was refused: {error}", folder.display());
            self.machine.board.journal.write(Line::Warning(told));
        }
    }

    fn run_on(&mut self) -> Result<(), Failure> {
        while !self.is_over() {
            self.publish();
            if !self.hurries {
                let due = [self.timers.next_due(), self.ends_by, self.retires_at];
                self.machine.sleep(due.into_iter().flatten().min())?;
            }
            self.turn()?;
        }
        self.publish();
        if let Some(tracer) = &mut self.machine.tracer {
            tracer.end();
        }
        Ok(())
    }

    fn turn(&mut self) -> Result<(), Failure> {
        self.expire_leases()?;
        self.retire()?;
        self.read_datagrams()?;
        self.fire_timers()?;
        self.machine.inbox.silence();
        let mut taken = 0;
        while taken < REQUESTS {
            let Some(request) = self.machine.inbox.next() else { break };
            self.answer(request)?;
            taken += 1;
        }
        self.hurries = taken == REQUESTS;
        self.machine.keep_up();
        Ok(())
    }

    /// Whether it was told to stop and leads no longer, or has been waiting for that long enough.
    fn is_over(&self) -> bool {
        let leads = Process::has_leases(&self.config) && self.member.view().role.leads();
        self.ends_by.is_some_and(|latest| !leads || Moment::now() >= latest)
    }

    fn expire_leases(&mut self) -> Result<(), Failure> {
        while let Some(timer) = self.timers.pop_lease(Moment::now()) {
            self.handle_now(Event::Timer(timer))?;
        }
        Ok(())
    }

    /// Hands over, if nobody may act any more on what this node has said.
    fn retire(&mut self) -> Result<(), Failure> {
        if self.retires_at.is_some_and(|at| Moment::now() >= at) {
            self.retires_at = None;
            self.handle_now(Event::Retired)?;
        }
        Ok(())
    }

    /// Reads what waits, up to a number. What is about sessions is handled at once, messages of the election by kind,
    /// then in the order in which they came (8).
    fn read_datagrams(&mut self) -> Result<(), Failure> {
        let mut batch = std::mem::take(&mut self.batch);
        let algorithm = self.config.inner.inner.algorithm;
        for _ in 0..BATCH {
            match self.machine.receive()? {
                Arrival::Nothing => break,
                Arrival::Upkeep | Arrival::Rejected(_) => {}
                Arrival::Letter { source, opened } => {
                    let (from, version) = (opened.envelope.from, opened.version);
                    let Some(letter) = opened.into_letter(algorithm, source) else {
                        self.machine.reject_malformed();
                        continue;
                    };
                    let of_election = matches!(letter.content, Content::Inner(_));
                    let arrived = Arrived { from, letter, version };
                    match of_election {
                        true => batch.push(arrived),
                        false => self.hear(arrived)?,
                    }
                }
            }
        }
        batch.sort_by_key(|arrived| Process::kind_index(&self.config, &arrived.letter));
        for arrived in batch.drain(..) {
            self.hear(arrived)?;
        }
        self.batch = batch; // its room is used again
        Ok(())
    }

    /// Handles a letter. The network learns what the sessions make of its sender.
    fn hear(&mut self, arrived: Arrived) -> Result<(), Failure> {
        let Arrived { from, letter: message, version } = arrived;
        self.machine.network.answers(from, message.session, version);
        self.handle(Event::Message { from, message })?;
        self.machine.network.answered(self.member.contact(from));
        Ok(())
    }

    /// Fires what is due now; what becomes due meanwhile waits for the next turn.
    fn fire_timers(&mut self) -> Result<(), Failure> {
        let now = Moment::now();
        while let Some(timer) = self.timers.pop(now) {
            self.handle(Event::Timer(timer))?;
        }
        Ok(())
    }

    /// Handles one event, after the leases that have run out meanwhile.
    fn handle(&mut self, event: EventOf) -> Result<(), Failure> {
        self.expire_leases()?;
        self.handle_now(event)?;
        self.retire()
    }

    fn handle_now(&mut self, event: EventOf) -> Result<(), Failure> {
        Counters::add(&self.machine.board.counters.events, 1);
        let tracer = self.machine.tracer.as_ref();
        let named = tracer.map(|tracer| (Moment::now(), tracer.name::<Process>(&event)));
        self.member.handle(&self.config, event, &mut self.effects);
        if let (Some(tracer), Some((at, what))) = (&mut self.machine.tracer, named) {
            tracer.event(at, what, trace::told::<Process>(self.effects.list()));
        }
        self.carry_out()
    }

    /// Carries out what the member wants done, in order (3). `Persist` and `Announce` are barriers (4, 5): both are
    /// over when the next effect is looked at.
    fn carry_out(&mut self) -> Result<(), Failure> {
        let elections = self.effects.elections();
        Counters::add(&self.machine.board.counters.elections, u64::from(elections));
        let mut effects = std::mem::take(&mut self.effects);
        if self.member.lease().is_none() {
            // Whoever asks must not be told of a lease that others may already know to be over (5).
            self.machine.board.withdraw_lease();
            if let Some(tracer) = &mut self.machine.tracer {
                tracer.lease(None);
            }
        }
        apply(effects.drain(), self)?;
        effects.clear();
        self.effects = effects;
        // A renewed lease is announced by nobody: its end is read off the timer (13).
        let until = self.lease_end();
        self.machine.board.announce(self.member.view(), until);
        if let Some(tracer) = &mut self.machine.tracer {
            tracer.lease(until);
        }
        Ok(())
    }

    /// When the lease ends under which this member leads.
    fn lease_end(&self) -> Option<Moment> {
        self.member.lease().and_then(|timer| self.timers.due_of(timer))
    }

    /// A length of time from `min..=max`, every one as likely, in nanoseconds.
    fn draw(&mut self, Delay { min, max }: Delay) -> u64 {
        let (min, max) = (min.as_nanos(), max.as_nanos());
        match (max - min).checked_add(1) {
            // The high half of a product: the bias is one in 2^64 of the range, which is nothing.
            Some(range) => {
                min + ((u128::from(self.random.next_u64()) * u128::from(range)) >> 64) as u64
            }
            None => self.random.next_u64(),
        }
    }

    fn answer(&mut self, request: Request) -> Result<(), Failure> {
        // Whoever asked may have gone: nothing is lost then, so what `send` says does not matter.
        match request {
            Request::Command(_, answer) | Request::Campaign(answer) if self.rejoin.is_some() => {
                let _ = answer.send(Err(NotDone::Rejoining));
            }
            Request::Command(command, answer) => {
                let obeyed = self.obey(Event::Command(command))?;
                // Whoever is told that it obeys, and looks, sees that it does.
                self.changed = true;
                self.publish();
                let _ = answer.send(obeyed);
            }
            Request::Campaign(answer) => {
                self.handle(Event::Campaign)?;
                let _ = answer.send(Ok(()));
            }
            Request::Keys(keys, answer) => {
                self.machine.use_keys(&keys);
                let _ = answer.send(Ok(()));
            }
            Request::Resolved { member, address } => self.machine.resolved(member, address),
            Request::Stop { grace } => {
                if self.ends_by.is_none() {
                    // If nobody else could lead it goes all the same: its lease will run out.
                    let grace = match self.obey(Event::Command(AdminCommand::Resign))? {
                        Ok(()) => grace,
                        Err(_) => Duration::ZERO,
                    };
                    self.ends_by = Some(Moment::now().after_nanos(grace.as_nanos() as u64));
                }
            }
        }
        Ok(())
    }

    fn obey(&mut self, order: EventOf) -> Result<Result<(), NotDone>, Failure> {
        if !Process::has_leases(&self.config) {
            return Ok(Err(NotDone::NoLeases));
        }
        self.refused = None;
        self.handle(order)?;
        Ok(self.refused.take().map_or(Ok(()), |refusal| Err(NotDone::Refused(refusal))))
    }

    /// Replaces the snapshot, if something has changed or it is old.
    fn publish(&mut self) {
        if !self.changed && !self.machine.snapshot_is_old() {
            return;
        }
        self.changed = false;
        let of_algorithm = |node: &Node<AnyProtocol>| awaited(node.inner());
        let awaited = self.member.awaited().or_else(|| self.member.inner().and_then(of_algorithm));
        if let Some(awaited) = awaited {
            return self.publish_rejoining(&awaited);
        }
        if self.rejoin.take().is_some() {
            self.machine.board.journal.write(Rejoin::end());
        }
        let Some(node) = self.member.inner() else { return };
        let (member, config, now) = (node.inner(), &self.config.inner.inner.inner, Moment::now());
        let heard = self.machine.network.heard(now, |peer| hears(member, config, self.id, peer));
        let name = |timer| session::Timer::Inner(node::Timer::Inner(timer));
        let left = |timer| self.timers.due_of(name(timer)).map(|due| due.since(now));
        let outside = Outside { me: self.id, heard: &heard, left: &left };
        let insight = insight(member, config, &outside);
        let (view, until) = (self.member.view(), self.lease_end());
        self.machine.publish(view, until, &heard, insight);
    }

    fn publish_rejoining(&mut self, awaited: &PeerSet) {
        let Some(rejoin) = &mut self.rejoin else { return };
        let machine = &mut self.machine;
        let told = rejoin.report(&machine.settings, awaited, &machine.network);
        told.into_iter().for_each(|line| machine.board.journal.write(line));
        machine.publish_rejoining(awaited);
    }
}

impl doyen_core::host::Host<Process> for Host {
    type Error = Failure;

    fn persist(&mut self, durable: <Process as Protocol>::Durable) -> Result<(), Failure> {
        self.machine.store(&durable)
    }

    fn send(&mut self, to: NodeId, message: LetterOf) -> Result<(), Failure> {
        self.machine.send(to, &message);
        Ok(())
    }

    fn arm(&mut self, timer: TimerOf, after: Delay) {
        let wait = self.draw(after);
        self.timers.arm(timer, Moment::now().after_nanos(wait)); // 7
    }

    fn cancel(&mut self, timer: TimerOf) {
        self.timers.disarm(timer);
    }

    fn announce(&mut self, view: View) {
        self.changed = true;
        self.machine.board.announce(view, self.lease_end());
        if let Some(chronicle) = &mut self.chronicle {
            chronicle.changes(view).for_each(|change| self.machine.record(change));
        }
        // Nobody is given a token from now on (13).
        let retires = view.role == Role::Retiring;
        self.retires_at = retires.then(|| self.machine.board.promise.end());
    }

    fn inform(&mut self, notice: Notice) -> Result<(), Failure> {
        self.changed |= !matches!(notice, Notice::Dropped { .. } | Notice::Unsent(_));
        match notice {
            Notice::Changed(change) => self.machine.record(change),
            Notice::Refused(refusal) => self.refused = Some(refusal),
            Notice::Down(peer) => {
                self.machine.note(Line::Info, peer, "has gone, or has started anew");
            }
            Notice::Up(peer) => self.machine.note(Line::Info, peer, "is back"),
            Notice::ForeignConfiguration(peer) => self.machine.warn_of_configuration(peer),
            Notice::StateIsOld { seen, by } => {
                let by = self.machine.settings.name_of(by).to_owned();
                return Err(Failure::StateIsOld { seen, by });
            }
            Notice::Replaced { seen, by } => {
                let by = self.machine.settings.name_of(by).to_owned();
                return Err(Failure::Cloned { seen, by });
            }
            Notice::WrongClock => return Err(Failure::WrongClock),
            Notice::Dropped { why, .. } => self.machine.count_dropped(why),
            Notice::Unsent(_) => self.machine.count_unsent(),
            Notice::NobodyToAsk => return Err(Failure::NobodyToAsk),
            Notice::OutOfTerms => return Err(Failure::OutOfTerms),
        }
        Ok(())
    }
}
