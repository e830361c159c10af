//! The loop: one event at a time, effects in order. Numbers in parentheses refer to the list at the head of the core.
//!
//! Each time it wakes it looks, in this order (8), at due lease timers, at waiting datagrams, at other timers and at
//! commands from the rest of the program. Each is bounded, so that none can starve the others: of a flood of datagrams it
//! takes [`BATCH`], then the timers have their turn. Due lease timers are handled before every single event.

mod commands;
mod groups;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use doyen_core::change::{LeaderChange, Loss};
use doyen_core::group::rider::Rider;
use doyen_core::handover::last_messages;
use doyen_core::host::apply;
use doyen_core::members::{NodeId, PeerSet};
use doyen_core::node::{self, Node};
use doyen_core::protocol::{
    Boot, Durable as _, Effects, Event, Notice, Protocol, Refusal, Role, View,
};
use doyen_core::registry::AnyProtocol;
use doyen_core::session::{self, Content, Session};
use doyen_core::time::Delay;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::Failure;
use super::commander::{Commander, is_commanded, transferred_by};
use super::counters::Counters;
use super::groups::GroupHost;
use super::history::{Circumstance, ViewHistory};
use super::inspect::{HostView, awaited, inspect, learns_within, reaches};
use super::log::LogLine;
use super::network::{Network, Received};
use super::publish::Publisher;
use super::reachability::Reachability;
use super::reload::NextTiming;
use super::status::{LastLeader, Status, seconds};
use super::store::{LONGEST_DURABLE, Store, refused};
use super::timers::Timers;
use super::trace::{self, Header, Tracer};
use super::waker::CommandReceiver;
use super::warnings::Warnings;
use super::wire::Rejection;
use crate::clock::Moment;
use crate::config::Settings;
use crate::guardian::Datagram;

/// How many datagrams are handled before the timers have their turn.
const BATCH: usize = 64;

/// How many commands are handled before the network has its turn.
const COMMANDS: usize = 16;

/// How old a snapshot may become.
const SNAPSHOT: Duration = Duration::from_millis(250);

/// What runs on a node: an algorithm, the layers below it, and the sessions with all other members.
pub(super) type Process = Session<Node<AnyProtocol>>;

type Timer = <Process as Protocol>::Timer;
type Letter = <Process as Protocol>::Message;
type ProcessEvent = Event<Letter, Timer>;

/// What a loop needs of the machine.
pub(super) struct Resources {
    pub(super) settings: Arc<Settings>,
    pub(super) network: Network,
    pub(super) store: Store,
    pub(super) publisher: Publisher,
    pub(super) commands: CommandReceiver,
    pub(super) groups: Option<GroupHost>,
    pub(super) random: Pcg64Mcg,
}

/// A member and its loop.
pub(super) struct Host {
    id: NodeId,
    settings: Arc<Settings>,
    config: <Process as Protocol>::Config,
    member: Process,
    effects: Effects<Process>,
    timers: Timers<Timer>,
    network: Network,
    store: Store,
    publisher: Publisher,
    commands: CommandReceiver,
    /// The groups with leaders of their own.
    groups: Option<GroupHost>,
    tracer: Option<Tracer>,
    warnings: Warnings,
    reachability: Reachability,
    random: Pcg64Mcg,
    /// Buffers that are used again and again.
    batch: Vec<Arrived>,
    encoded: Box<[u8; LONGEST_DURABLE]>,
    /// It lost its state and waits for the others.
    rejoining: bool,
    /// It is about to transfer leadership, and does so when the last permit has ended.
    retires_at: Option<Moment>,
    /// More commands wait than it takes in a turn.
    has_more_commands: bool,
    /// Why the member rejected the command that it is being given.
    refused: Option<Refusal>,
    /// What it knows about a change of leadership that happens now.
    circumstance: Circumstance,
    /// It is stopping, and ends at this time at the latest.
    ends_by: Option<Moment>,
    /// The published snapshot is out of date.
    changed: bool,
    last_snapshot: Moment,
    /// Until when the loop was awake in time. What it reads may have arrived at any time since. For display only.
    awake_until: Moment,
    /// It has not yet read everything that waited when it woke too late.
    is_behind: bool,
    /// More datagrams may wait than it reads in a turn.
    has_more_datagrams: bool,
    /// The last messages that the guardian has; none if they have to be sealed again.
    prepared: Option<Vec<(NodeId, Letter)>>,
    /// Timing to be adopted with the next term.
    next_timing: Option<NextTiming>,
    /// For algorithms that do not report changes of leadership.
    view_history: Option<ViewHistory>,
}

/// A letter that arrived in a datagram of this version.
struct Arrived {
    from: NodeId,
    letter: Letter,
    version: u8,
    /// What the groups say with it.
    rider: Option<Rider>,
}

impl Host {
    /// Starts the member. `header`: what its trace begins with, if there is one.
    pub(super) fn start(
        config: <Process as Protocol>::Config,
        boot: Boot<<Process as Protocol>::Durable>,
        resources: Resources,
        header: Option<Header>,
    ) -> Result<Self, Failure> {
        let Resources { settings, network, store, publisher, commands, groups, random } = resources;
        let (id, mut effects) = (settings.me, Effects::new());
        let member = Process::start(id, &config, boot, &mut effects);
        let did = trace::told::<Process>(effects.list());
        let header = header.map(|header| Header { did, ..header });
        let tracer = {
            let limits = settings.trace_limits;
            Tracer::begin(settings.trace.as_deref(), header, limits, &publisher.log)?
        };
        let mut warnings = Warnings::new();
        let rejoining = member.inner().is_none();
        if rejoining {
            publisher.log.write(warnings.rejoin_started());
        }
        let mut host = Self {
            id,
            member,
            effects,
            timers: Timers::new(|&timer| Process::is_lease(timer)),
            network,
            store,
            publisher,
            commands,
            groups,
            tracer,
            warnings,
            reachability: Reachability::default(),
            random,
            batch: Vec::with_capacity(BATCH),
            encoded: Box::new([0; LONGEST_DURABLE]),
            rejoining,
            retires_at: None,
            has_more_commands: false,
            refused: None,
            circumstance: Circumstance::default(),
            ends_by: None,
            changed: true,
            awake_until: Moment::now(),
            is_behind: false,
            has_more_datagrams: false,
            last_snapshot: Moment::default(),
            prepared: None,
            next_timing: None,
            view_history: (!Process::has_leases(&config)).then(|| ViewHistory::new(id)),
            settings,
            config,
        };
        host.carry_out()?;
        host.follow_with_groups();
        Ok(host)
    }

    /// Runs until it is stopped, or must stop.
    pub(super) fn run(mut self) -> Result<(), Failure> {
        let result = self.run_loop();
        if result.is_err() {
            self.publisher.leave_lease_to_guardian();
        }
        if let Err(Failure::StateIsOld { .. } | Failure::Cloned { .. }) = &result {
            self.mark_state_refused();
        }
        result
    }

    /// Other members refused the state: the node must not start with it again.
    fn mark_state_refused(&self) {
        let folder = &self.settings.state_dir;
        if let Err(error) = refused::note(folder, self.store.incarnation()) {
            let folder = folder.display();
            let text = format!("cannot mark the state in {folder} as refused: {error}");
            let line = LogLine::warning("state-not-marked", text);
            self.log(LogLine { reason: Some(error.to_string()), ..line });
        }
    }

    fn run_loop(&mut self) -> Result<(), Failure> {
        while !self.is_over() {
            self.publish_status();
            if !self.has_more_commands {
                self.sleep()?;
            }
            self.turn()?;
        }
        self.publish_status();
        if let Some(tracer) = &mut self.tracer {
            tracer.end();
        }
        Ok(())
    }

    /// Sleeps until a datagram, a command, a timer or the next snapshot. Warns if it wakes too late.
    fn sleep(&mut self) -> Result<(), Failure> {
        let snapshot = self.last_snapshot.after_nanos(SNAPSHOT.as_nanos() as u64);
        // The end of work wakes the loop. The last permit may have ended long ago: that is no delay.
        let retires_at = self.retires_at.filter(|_| !self.publisher.has_work());
        let retires_at = retires_at.map(|at| at.max(Moment::now()));
        let groups = self.groups.as_ref().and_then(GroupHost::next_due);
        let due = [self.timers.next_due(), self.ends_by, retires_at, groups];
        let wake = due.into_iter().flatten().min().map_or(snapshot, |due| due.min(snapshot));
        let asleep_since = Moment::now();
        let wait = wake.since(asleep_since);
        let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
        let (socket, waker) = (self.network.as_fd(), self.commands.as_fd());
        let mut fds = [PollFd::new(&socket, PollFlags::IN), PollFd::new(&waker, PollFlags::IN)];
        match poll(&mut fds, Some(&wait)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => {
                return Err(Failure::System { what: "wait for the network", error: error.into() });
            }
        }
        let heartbeat = Duration::from_nanos(self.settings.core.timing.heartbeat.as_nanos());
        let now = Moment::now();
        let delay = now.since(wake);
        if !(self.is_behind && self.has_more_datagrams) {
            self.is_behind = delay >= heartbeat;
            self.awake_until = if self.is_behind { asleep_since } else { wake.min(now) };
        }
        let warning = self.warnings.loop_delay(delay, heartbeat);
        self.log(warning);
        Ok(())
    }

    fn turn(&mut self) -> Result<(), Failure> {
        self.expire_leases()?;
        self.retire()?;
        self.read_datagrams()?;
        self.fire_timers()?;
        self.commands.clear_wake();
        let mut taken = 0;
        while taken < COMMANDS {
            let Some(command) = self.commands.next() else { break };
            self.execute(command)?;
            taken += 1;
        }
        self.has_more_commands = taken == COMMANDS;
        self.send_riders();
        self.network.run_periodic();
        Ok(())
    }

    /// Whether it is stopping and no longer leads, or has waited for that long enough.
    fn is_over(&self) -> bool {
        let leads = Process::has_leases(&self.config) && self.member.view().role.leads();
        let is_needed = leads || self.hands_over_groups();
        self.ends_by.is_some_and(|latest| !is_needed || Moment::now() >= latest)
    }

    fn expire_leases(&mut self) -> Result<(), Failure> {
        let lease = self.leased_term();
        if let Some(groups) = &mut self.groups {
            groups.expire(lease);
        }
        let mut deadline = self.lease_deadline();
        while let Some(timer) = self.timers.pop_lease(Moment::now()) {
            self.circumstance.lease_ended = deadline.filter(|&deadline| deadline <= Moment::now());
            self.handle_now(Event::Timer(timer))?;
            deadline = self.lease_deadline();
        }
        self.circumstance.lease_ended = None;
        Ok(())
    }

    /// Transfers leadership, if the last permit has ended, no work runs, and no program has locked the lease file.
    fn retire(&mut self) -> Result<(), Failure> {
        if self.retires_at.is_some_and(|at| Moment::now() >= at) && !self.publisher.has_work() {
            self.retires_at = self.publisher.close_lease_file();
            if self.retires_at.is_none() {
                self.handle_now(Event::Retired)?;
            }
        }
        Ok(())
    }

    /// Reads the waiting datagrams, up to a limit. Letters about sessions are handled at once, messages of the election
    /// sorted by kind, then in the order of arrival (8).
    fn read_datagrams(&mut self) -> Result<(), Failure> {
        let mut batch = std::mem::take(&mut self.batch);
        let algorithm = self.config.inner.inner.algorithm;
        self.has_more_datagrams = true;
        for _ in 0..BATCH {
            match self.network.receive(self.publisher.counters())? {
                Received::Empty => {
                    self.has_more_datagrams = false;
                    break;
                }
                Received::Skipped => {}
                Received::Rejected(dropped) => {
                    let warning = self.warnings.dropped(&self.settings, dropped);
                    self.log(warning);
                }
                Received::Relayed(relayed) => match Commander::decode(&relayed.bytes) {
                    Some(commander) => {
                        self.circumstance.hear_of(commander, relayed.from, self.id);
                    }
                    None => self.publisher.relay(relayed),
                },
                Received::Rider { from, session, rider } => self.handle_rider(from, session, rider),
                Received::Letter { at, opened } => {
                    let (from, version) = (opened.envelope.from, opened.version);
                    let Some((letter, rider)) = opened.into_letter_and_rider(algorithm, at) else {
                        self.publisher.counters().reject(Rejection::Malformed);
                        continue;
                    };
                    let rider = rider.unwrap_or_else(|reason| {
                        self.publisher.counters().reject(reason);
                        None
                    });
                    let is_inner = matches!(letter.content, Content::Inner(_));
                    let arrived = Arrived { from, letter, version, rider };
                    match is_inner {
                        true => batch.push(arrived),
                        false => self.handle_letter(arrived)?,
                    }
                }
            }
        }
        batch.sort_by_key(|arrived| Process::kind_index(&self.config, &arrived.letter));
        for arrived in batch.drain(..) {
            self.handle_letter(arrived)?;
        }
        self.batch = batch;
        Ok(())
    }

    fn handle_letter(&mut self, arrived: Arrived) -> Result<(), Failure> {
        let Arrived { from, letter: message, version, rider } = arrived;
        let session = message.session;
        self.network.begin_letter(from, session, version);
        self.handle(Event::Message { from, message })?;
        let counts = self.network.end_letter(self.member.contact(from), self.awake_until);
        if let Some(rider) = rider.filter(|_| counts) {
            self.handle_rider(from, session, rider);
        }
        Ok(())
    }

    /// Fires the timers that are due now; those that become due meanwhile wait for the next turn.
    fn fire_timers(&mut self) -> Result<(), Failure> {
        let now = Moment::now();
        while let Some(timer) = self.timers.pop(now) {
            self.handle(Event::Timer(timer))?;
        }
        let lease = self.leased_term();
        if let Some(groups) = &mut self.groups {
            groups.fire(lease);
        }
        Ok(())
    }

    /// Handles one event, after the leases that have expired meanwhile.
    fn handle(&mut self, event: ProcessEvent) -> Result<(), Failure> {
        self.expire_leases()?;
        self.handle_now(event)?;
        self.retire()
    }

    fn handle_now(&mut self, event: ProcessEvent) -> Result<(), Failure> {
        Counters::add(&self.publisher.counters().events, 1);
        let tracer = self.tracer.as_ref();
        let named = tracer.map(|tracer| (Moment::now(), tracer.name::<Process>(&event)));
        self.member.handle(&self.config, event, &mut self.effects);
        if let (Some(tracer), Some((at, what))) = (&mut self.tracer, named) {
            tracer.event(at, what, trace::told::<Process>(self.effects.list()));
        }
        self.carry_out()?;
        self.adopt_timing();
        self.follow_with_groups();
        Ok(())
    }

    /// Adopts new timing, if a term has begun since it was set.
    fn adopt_timing(&mut self) {
        let term = self.member.view().term;
        if let Some(next) = self.next_timing.take_if(|next| next.set_in < term) {
            let config = &mut self.config.inner.inner.inner;
            next.adopt(config);
            if let Some(groups) = &mut self.groups {
                groups.set_preemption(config.quorum.preemption, config.timing.preempt);
            }
            let text = format!("uses its new timing from term {term} on");
            self.log(LogLine::info("timing-adopted", text));
        }
    }

    /// Carries out the effects of an event in order (3). `Persist` and `Announce` are barriers (4, 5): both are complete
    /// before the next effect.
    fn carry_out(&mut self) -> Result<(), Failure> {
        let elections = self.effects.elections();
        Counters::add(&self.publisher.counters().elections, u64::from(elections));
        let mut effects = std::mem::take(&mut self.effects);
        if self.member.lease().is_none() {
            // No reader may see a lease that other members may already know to be over (5).
            self.publisher.withdraw_lease();
            self.trace_lease(None);
        }
        apply(effects.drain(), self)?;
        effects.clear();
        self.effects = effects;
        // No effect announces a renewed lease: its deadline is that of the timer (13).
        let deadline = self.lease_deadline();
        self.publisher.announce(self.member.view(), deadline, self.awake_until);
        self.trace_lease(deadline);
        self.prepare_handover();
        Ok(())
    }

    /// Keeps ready what ends the lease if this process dies (14), and seals it again only if it has changed. What is
    /// outdated is harmless: it ends a lease of an earlier term, or names another successor.
    fn prepare_handover(&mut self) {
        if !self.publisher.is_guarded() {
            return;
        }
        let last: Vec<(NodeId, Letter)> = match self.member.view().role.leads() {
            true => last_messages(&self.member, &self.config).into_messages().collect(),
            false => Vec::new(),
        };
        if self.prepared.as_ref() == Some(&last) {
            return;
        }
        let network = &mut self.network;
        let sealed = last.iter().filter_map(|(to, letter)| network.sealed(*to, letter));
        let datagrams: Vec<Datagram> = sealed.collect();
        self.prepared = self.publisher.prepare_handover(&datagrams).then_some(last);
    }

    fn trace_lease(&mut self, deadline: Option<Moment>) {
        if let Some(tracer) = &mut self.tracer {
            tracer.lease(deadline);
        }
    }

    /// The deadline of the lease under which this member leads.
    fn lease_deadline(&self) -> Option<Moment> {
        self.member.lease().and_then(|timer| self.timers.due_of(&timer))
    }

    /// A uniformly distributed delay from `min..=max`, in nanoseconds.
    fn draw(&mut self, Delay { min, max }: Delay) -> u64 {
        let (min, max) = (min.as_nanos(), max.as_nanos());
        match (max - min).checked_add(1) {
            // The high half of a product: the bias is at most one in 2^64 of the range.
            Some(range) => {
                min + ((u128::from(self.random.next_u64()) * u128::from(range)) >> 64) as u64
            }
            None => self.random.next_u64(),
        }
    }

    /// Publishes a new snapshot, if something has changed or the last one is old.
    fn publish_status(&mut self) {
        let now = Moment::now();
        if !self.changed && now.since(self.last_snapshot) < SNAPSHOT {
            return;
        }
        self.changed = false;
        let of_algorithm = |node: &Node<AnyProtocol>| awaited(node.inner());
        let awaited = self.member.awaited().or_else(|| self.member.inner().and_then(of_algorithm));
        if let Some(awaited) = awaited {
            return self.publish_rejoining(&awaited);
        }
        if std::mem::take(&mut self.rejoining) {
            let text = "rejoined: every other member has stored this start";
            self.log(LogLine::info("rejoined", text));
        }
        let Some(node) = self.member.inner() else { return };
        let (member, config) = (node.inner(), &self.config.inner.inner.inner);
        let by_algorithm = |peer| reaches(member, config, self.id, peer);
        let reachable = self.network.reachable(now, by_algorithm);
        let tag = |timer| session::Timer::Inner(node::Timer::Inner(timer));
        let remaining = |timer| self.timers.due_of(&tag(timer)).map(|due| due.since(now));
        let is_new = |member| {
            let met = self.network.peer(member).and_then(|peer| peer.met_at);
            met.is_some_and(|met| now.since(met) < learns_within(config))
        };
        let view =
            HostView { me: self.id, reachable: &reachable, is_new: &is_new, remaining: &remaining };
        let diagnostics = inspect(member, config, &view);
        let (lost, transfer) = (diagnostics.lost_leader, diagnostics.pending_transfer);

        let mut status = Status::initial(&self.settings);
        status.why = self.publisher.reason();
        status.set_view(self.member.view(), self.lease_deadline());
        status.set_diagnostics(diagnostics, &reachable);
        status.set_network(&self.network, &reachable);
        status.set_unreachable_since(&self.network, |id| self.reachability.lost_at(id));
        let lasting = |since| now.since(since).as_millis() as u64;
        status.work_ms = self.publisher.work_since().map(lasting);
        status.retiring_ms = self.publisher.retiring_since().map(lasting);
        status.last_leader = self.last_leader(now, lost).filter(|_| status.leader.is_none());
        let moved = self.circumstance.commanded.as_ref();
        let moved = moved.filter(|(of, it)| (Some(*of), it.term) == (status.leader, status.term));
        // What moves leadership away from here may be something else than the last command.
        let is_pending = transfer.is_some_and(|(reason, _)| is_commanded(reason));
        let moved = moved.filter(|(of, _)| *of != self.id || is_pending);
        status.moved_by = moved.map(|(_, it)| it.by.clone());
        self.publish(status);
        self.warn_about_peers(&reachable);
    }

    /// The leader that this member knew last, when it last received something from it as the leader, and how it was lost.
    fn last_leader(&self, now: Moment, lost: Option<(NodeId, Loss)>) -> Option<LastLeader> {
        let (member, term, known) = self.publisher.last_leader()?;
        let last_heard_ms = now.since(self.last_heard(member, known)).as_millis() as u64;
        let lost = lost.filter(|(id, why)| *id == member && *why != Loss::Unreachable);
        let lost = lost.map(|(_, why)| why.to_string());
        Some(LastLeader { member, term, last_heard_ms, lost })
    }

    /// When something last arrived from a leader that was `known` to lead until then, or earlier.
    fn last_heard(&self, leader: NodeId, known: Moment) -> Moment {
        let received = self.network.peer(leader).and_then(|peer| peer.arrived_after);
        received.map_or(known, |received| received.min(known))
    }

    /// While this member rejoins, it reaches the members that have answered.
    fn publish_rejoining(&mut self, awaited: &PeerSet) {
        if !self.rejoining {
            return;
        }
        let answered = self.settings.core.members.iter().filter(|&id| !awaited.contains(id));
        let mut status = Status { rejoining: true, ..Status::initial(&self.settings) };
        status.set_network(&self.network, &answered.collect());
        let warning = self.warnings.rejoining(&status);
        self.log(warning);
        self.publish(status);
        self.warn_of_config_mismatches();
    }

    fn publish(&mut self, status: Status) {
        self.last_snapshot = Moment::now();
        let keys = self.network.fingerprints().to_vec();
        let (incarnation, job) = (self.store.incarnation(), Some(self.publisher.job()));
        let history_problem = self.publisher.history_problem();
        let mut status = Status { keys, incarnation, job, history_problem, ..status };
        status.derive();
        self.publisher.publish(status);
    }

    fn warn_about_peers(&mut self, reachable: &PeerSet) {
        let is_alone = self.settings.members.len() == 1;
        let reaches_others = is_alone || reachable.iter().any(|id| id != self.id);
        let limited = &self.publisher.counters().rejected[Rejection::Limited as usize];
        let limited = Counters::read(limited);
        let warning = self.warnings.isolation(reaches_others, limited);
        self.log(warning);
        let met_at = |id| self.network.peer(id).and_then(|peer| peer.met_at);
        let settings = &self.settings;
        let lines = self.reachability.observe(Moment::now(), settings, reachable, met_at);
        lines.into_iter().for_each(|line| self.log(line));
        self.warn_of_config_mismatches();
    }

    fn warn_of_config_mismatches(&mut self) {
        for member in self.network.config_mismatches(Moment::now()) {
            self.warn_of_config_mismatch(member);
        }
    }

    fn warn_of_config_mismatch(&mut self, member: NodeId) {
        let warning = self.warnings.config_mismatch(member, self.settings.name_of(member));
        self.log(warning);
    }

    fn log(&self, line: impl Into<Option<LogLine>>) {
        if let Some(line) = line.into() {
            self.publisher.log.write(line);
        }
    }

    /// Adds a change of leadership to the history.
    fn record(&mut self, change: LeaderChange) {
        let network = &self.network;
        let one_way_us = |peer| Some(network.peer(peer)?.round_trip?.as_micros() as u64 / 2);
        let now = Moment::now();
        self.circumstance.rejected = match change {
            LeaderChange::LostContact { leader, .. } => {
                network.peer(leader).and_then(|peer| peer.rejected(now))
            }
            _ => None,
        };
        self.publisher.record(change, self.store.incarnation(), &self.circumstance, one_way_us);
        match change {
            // Earlier commands are over.
            LeaderChange::BecameLeader { .. } | LeaderChange::Follows { .. } => {
                self.circumstance.commanded = None;
            }
            LeaderChange::SteppedDown { .. } if transferred_by(change, self.id).is_some() => {
                self.tell_commander();
            }
            _ => {}
        }
    }
}

impl doyen_core::host::Host<Process> for Host {
    type Error = Failure;

    /// If this fails, the process must stop (4).
    fn persist(&mut self, durable: <Process as Protocol>::Durable) -> Result<(), Failure> {
        let begun = Instant::now();
        let failed = |error| Failure::Store { path: self.settings.state_dir.clone(), error };
        let encoded = postcard::to_slice(&durable, &mut self.encoded[..])
            .map_err(|error| failed(io::Error::other(error.to_string())))?;
        let incarnation = durable.incarnation().unwrap_or(self.store.incarnation());
        self.store.save(incarnation, durable.is_rejoining(), encoded).map_err(failed)?;
        self.publisher.counters().store_time.observe(begun.elapsed());
        Ok(())
    }

    fn send(&mut self, to: NodeId, message: Letter) -> Result<(), Failure> {
        let lease = self.leased_term();
        let rider = self.groups.as_mut().and_then(|groups| groups.rider(lease, to, &message));
        self.network.send(to, &message, rider.as_ref(), self.publisher.counters());
        Ok(())
    }

    fn arm(&mut self, timer: Timer, after: Delay) {
        let wait = self.draw(after);
        self.timers.arm(timer, Moment::now().after_nanos(wait)); // 7
    }

    fn cancel(&mut self, timer: Timer) {
        self.timers.disarm(&timer);
    }

    fn announce(&mut self, view: View) {
        self.changed = true;
        let last = self.publisher.last_leader().filter(|(last, ..)| view.leader != Some(*last));
        if let Some((last, _, known)) = last {
            self.circumstance.predecessor_heard = Some(self.last_heard(last, known));
        }
        self.publisher.announce(view, self.lease_deadline(), self.awake_until);
        let changes = self.view_history.as_mut().map(|history| history.changes(view));
        changes.into_iter().flatten().for_each(|change| self.record(change));
        // No permit is given from now on (13).
        let retires = view.role == Role::Retiring;
        self.retires_at = retires.then(|| self.publisher.last_permit());
    }

    fn inform(&mut self, notice: Notice) -> Result<(), Failure> {
        self.changed |= !matches!(notice, Notice::Dropped { .. } | Notice::Unsent(_));
        let name = |id| self.settings.name_of(id).to_owned();
        match notice {
            Notice::Changed(change) => self.record(change),
            Notice::Refused(refusal) => self.refused = Some(refusal),
            Notice::Paused { by, left } => {
                let (by, left) = (name(by), Duration::from_nanos(left.as_nanos()));
                let left = seconds(left.as_secs().max(1));
                let text = format!(
                    "elections are paused for {left} (command at {by}): if the leader is lost, there is none until then or until `doyen resume`"
                );
                let member = Some(by);
                self.log(LogLine { member, ..LogLine::warning("elections-paused", text) });
            }
            Notice::Resumed { by } => {
                let member = by.map(name);
                let why = match &member {
                    Some(by) => format!("command at {by}"),
                    None => "the time of the pause is over".to_owned(),
                };
                let text = format!("elections are no longer paused: {why}");
                self.log(LogLine { member, ..LogLine::info("elections-resumed", text) });
            }
            // A new session is one as well. The log says what the status shows as reachable.
            Notice::Down(_) | Notice::Up(_) => {}
            Notice::ForeignConfiguration(peer) => self.warn_of_config_mismatch(peer),
            Notice::Dropped { why, .. } => self.publisher.counters().reject(why.into()),
            Notice::Unsent(_) => Counters::add(&self.publisher.counters().unsent, 1),
            Notice::StateIsOld { seen, by } => {
                return Err(Failure::StateIsOld { seen, by: name(by) });
            }
            Notice::Replaced { seen, by } => return Err(Failure::Cloned { seen, by: name(by) }),
            Notice::WrongClock => return Err(Failure::WrongClock),
            Notice::NoOtherMember => return Err(Failure::OnlyMember),
            Notice::OutOfTerms => return Err(Failure::OutOfTerms),
            // Of the layer that takes snapshots, which only the simulator puts around a member.
            Notice::Recorded { .. } | Notice::ChannelRecorded { .. } => {}
        }
        Ok(())
    }
}
