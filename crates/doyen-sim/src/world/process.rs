//! Members that have more than one process, and where each is.
//!
//! A member is a name. An operator who replaces its machine, or clones its disk, starts a second process of the member,
//! at another address; the first may continue to run, or hang and resume later. From then on the second process is the
//! **present** one: faults, commands and views of this member refer to it. The first is an **old** one. It has a state,
//! timers, a disk and a clock of its own, and shares the links of its member; a partition may put it on another side.
//!
//! A message goes to an address: the one that it names, or the one to which the configured name of its receiver resolves.
//! If no process of the receiver is there, the message is lost. That is decided when it is sent.
//!
//! All of this is for protocols with [sessions](Protocol::has_sessions). Without them a member has one process.

use std::net::SocketAddr;

use doyen_core::ledger::Stored;
use doyen_core::members::{Incarnation, NodeId, SessionId};
use doyen_core::protocol::{Boot, Class, Durable, Effects, Message, Notice, Origin, Protocol};
use doyen_core::session::PLAUSIBLE_TIMES;
use doyen_core::time::Span;

use super::watch::rules;
use super::{AT_ONCE, Delivery, World};
use crate::fault::{Disk, Place};
use crate::metrics::Sight;
use crate::random::splitmix;
use crate::trace::EventKind;

/// The first port that members have.
const PORT: u16 = 7_400;
/// The time of day at which runs begin, in seconds after the earliest that is plausible.
const BEGIN: u32 = 1_000_000;
const NANOS_A_SECOND: u64 = 1_000_000_000;

/// The processes and their addresses.
pub(super) struct Processes {
    members: u32,
    /// The member of each process that comes after the members' first ones.
    owners: Vec<u32>,
    /// The present process of each member; empty where members have one process only.
    present: Vec<u32>,
    /// The address of each process.
    addresses: Vec<SocketAddr>,
    /// The address to which the configured name of each member resolves.
    names: Vec<SocketAddr>,
    /// For each process, the addresses to which the names resolved when it last looked them up. As on a real host, it looks
    /// a name up again only when no process is at the address any more.
    resolved: Vec<Vec<SocketAddr>>,
    /// How many addresses have been given besides the first ones.
    moves: u16,
    /// How many processes have been started besides the first ones.
    starts: u64,
}

impl Processes {
    /// Each member has one process. Addresses are recorded only with `sessions`.
    pub(super) fn new(members: u32, sessions: bool) -> Self {
        let listed = if sessions { members } else { 0 };
        let addresses: Vec<SocketAddr> = (0..listed).map(|member| address(member, 0)).collect();
        Self {
            members,
            owners: Vec::new(),
            present: (0..listed).collect(),
            names: addresses.clone(),
            resolved: vec![addresses.clone(); listed as usize],
            addresses,
            moves: 0,
            starts: 0,
        }
    }

    /// The member of which this is a process.
    pub(super) fn owner(&self, process: u32) -> u32 {
        match process.checked_sub(self.members) {
            None => process,
            Some(extra) => self.owners[extra as usize],
        }
    }

    /// The present process of a member.
    pub(super) fn present(&self, member: u32) -> u32 {
        self.present.get(member as usize).copied().unwrap_or(member)
    }

    pub(super) fn is_present(&self, process: u32) -> bool {
        self.present(self.owner(process)) == process
    }

    /// The processes that have been replaced.
    pub(super) fn old(&self) -> impl Iterator<Item = u32> {
        let all = 0..self.addresses.len() as u32;
        all.filter(|&process| !self.is_present(process))
    }

    /// The process of `member` at `address`.
    fn at(&self, member: u32, address: SocketAddr) -> Option<u32> {
        let is_there = |&process: &u32| self.addresses[process as usize] == address;
        let others = self.members..self.addresses.len() as u32;
        let of_member = others.filter(|&process| self.owner(process) == member);
        std::iter::once(member).chain(of_member).find(is_there)
    }

    /// The process of `member` that `from` reaches at `address`, or by name. If no running process is at the address of the
    /// name, the sender looks the name up again.
    fn reached(
        &mut self,
        from: u32,
        member: u32,
        address: Option<SocketAddr>,
        runs: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        if address.is_some() {
            return address.and_then(|address| self.at(member, address));
        }
        let named = self.resolved[from as usize][member as usize];
        if !self.at(member, named).is_some_and(runs) {
            self.resolved[from as usize][member as usize] = self.names[member as usize];
        }
        self.at(member, self.resolved[from as usize][member as usize])
    }

    /// The source address of messages from `from`, as `to` sees it: `None` if the sender's name resolves to it.
    fn source(&self, from: u32, to: u32) -> Option<SocketAddr> {
        let source = self.addresses[from as usize];
        let named = self.resolved[to as usize][self.owner(from) as usize];
        (source != named).then_some(source)
    }

    /// A process of `member` starts at another address.
    fn next_address(&mut self, member: u32, place: Place) -> SocketAddr {
        self.moves += 1;
        let address = address(member, self.moves);
        if place != Place::Unnamed {
            self.names[member as usize] = address;
        }
        address
    }

    /// A process restarts, here or elsewhere.
    fn relocate(&mut self, process: u32, place: Place) {
        if place != Place::Same && !self.addresses.is_empty() {
            self.addresses[process as usize] = self.next_address(self.owner(process), place);
        }
        if let Some(resolved) = self.resolved.get_mut(process as usize) {
            resolved.clone_from(&self.names);
        }
    }

    /// A second process of `member` starts elsewhere, and is the present one from now on.
    fn add(&mut self, member: u32, place: Place) -> u32 {
        let process = self.addresses.len() as u32;
        let address = self.next_address(member, place);
        self.addresses.push(address);
        self.resolved.push(self.names.clone());
        self.owners.push(member);
        self.present[member as usize] = process;
        process
    }

    /// A session that no other start has.
    fn next_session(&mut self) -> SessionId {
        self.starts += 1;
        SessionId::from_random(splitmix((1 << 40) + self.starts))
    }
}

/// The address of a member after this many moves of all members.
fn address(member: u32, moves: u16) -> SocketAddr {
    let [_, high, middle, low] = member.to_be_bytes();
    SocketAddr::from(([127, high, middle, low], PORT.wrapping_add(moves)))
}

/// Whether a process that reports this stops.
pub(super) fn is_final(notice: &Notice) -> bool {
    matches!(
        notice,
        Notice::Replaced { .. }
            | Notice::WrongClock
            | Notice::StateIsOld { .. }
            | Notice::NoOtherMember
    )
}

impl<P: Protocol> World<'_, '_, P> {
    /// The present process of a member.
    #[inline]
    pub(super) fn present(&self, member: u32) -> u32 {
        if P::has_sessions(self.setup.config) { self.processes.present(member) } else { member }
    }

    /// Whether periodic greetings still have something to do: a member follows no leader, two that can reach each other
    /// have not met, or an old process has not been told to stop.
    pub(super) fn has_unmet(&self) -> bool {
        let is_alive = |process: u32| self.members[process].is_alive();
        let has_met = |process: u32, peer: u32| {
            self.members[process].protocol.has_met(self.id(peer))
                || self.network.is_cut(process, peer)
                || self.network.is_cut(peer, process)
        };
        let live: Vec<u32> = (0..self.members.len())
            .map(|member| self.processes.present(member))
            .filter(|&process| is_alive(process))
            .collect();
        let is_lost = |&process: &u32| {
            let follows = self.members[process].protocol.view().leader.is_some();
            !follows || live.iter().any(|&peer| peer != process && !has_met(process, peer))
        };
        live.iter().any(is_lost) || self.processes.old().any(is_alive)
    }

    /// How a process that is not the first of its member starts at `position`: with the contents of its disk.
    pub(super) fn boot(&mut self, position: u32, origin: Origin) -> Boot<P::Durable> {
        let incarnation = self.incarnations.entry(position).or_insert(Incarnation(1));
        incarnation.0 += 1;
        let boot = Boot::new(*incarnation, self.disks.get(&position).cloned(), origin);
        if !P::has_sessions(self.setup.config) {
            return boot;
        }
        let session = self.processes.next_session();
        // Runs are short, but clocks are right and no member starts more than once a second. Because of that, a member
        // that rejoins takes an incarnation that none of its processes has, though no other member may have met the last
        // of them.
        let passed = self.now.0 / NANOS_A_SECOND + self.processes.starts;
        let seconds = u32::try_from(passed).unwrap_or(u32::MAX / 4);
        let time_of_day = PLAUSIBLE_TIMES.start + BEGIN + seconds;
        Boot { session, time_of_day, ..boot }
    }

    /// A process is about to restart at `place`.
    pub(super) fn relocate(&mut self, position: u32, place: Place) {
        if P::has_sessions(self.setup.config) {
            self.processes.relocate(position, place);
        }
    }

    /// Whether a member other than that of `position` has lost its disk, and is not back yet.
    pub(super) fn another_rejoins(&self, position: u32) -> bool {
        let owner = |process| self.processes.owner(process);
        let mut rejoining =
            self.diskless.iter().filter(|&&process| self.processes.is_present(process));
        rejoining.any(|&process| owner(process) != owner(position))
    }

    /// A second process of `member` starts elsewhere, without a disk or with a copy of it; the first one continues to
    /// run, or hangs for a while. If no process of the member runs, the member restarts elsewhere instead.
    pub(super) fn replace(
        &mut self,
        member: u32,
        (disk, place): (Disk, Place),
        hung: u64,
        out: &mut Effects<P>,
    ) {
        let old = self.present(member);
        if !self.members[old].is_alive() {
            return self.restart(old, (disk, place), None, out);
        }
        let rejoins = || self.diskless.contains(&old) || self.another_rejoins(old);
        if !P::has_sessions(self.setup.config) || disk == Disk::LostUnlessAnother && rejoins() {
            return;
        }
        let id = self.id(old);
        let note = "a second process of it starts elsewhere; this one is the old one now";
        self.record_of(old, EventKind::Noted { member: id, note: note.to_owned() });
        let process = self.processes.add(member, place);
        self.network.add_process(self.members.len(), member);
        if let Some(config) = self.configs.others.get(&old).cloned() {
            self.configs.others.insert(process, config);
        }
        let is_clone = disk == Disk::Kept;
        let origin = match is_clone {
            true => {
                self.incarnations.insert(process, self.life(old));
                if let Some(disk) = self.disks.get(&old).cloned() {
                    self.disks.insert(process, disk);
                }
                if self.diskless.contains(&old) {
                    self.diskless.insert(process);
                }
                self.origin(process)
            }
            false => {
                self.incarnations.insert(process, Incarnation(0));
                self.diskless.insert(process);
                Origin::Rejoining
            }
        };
        if let Some(monitor) = &mut self.monitor {
            monitor.second_process_started(self.now, old, is_clone);
        }
        let boot = self.boot(process, origin);
        let protocol = P::start(id, self.configs.of(process), boot, out);
        let view = protocol.view();
        self.members.push(id, protocol);
        if self.observer.is_some() {
            let rules = rules(out);
            self.record(EventKind::Restarted { member: id, disk: is_clone, rules });
        }
        self.metrics.fold(self.now, 0, process, Sight::Restarted);
        self.announce(process, view);
        self.act(process, AT_ONCE, out);
        if hung > 0 {
            self.pause(old, hung);
        }
    }

    /// How a process restarts: it rejoins if its disk is lost. The disk is still lost if the process crashed before it
    /// stored anything again.
    pub(super) fn origin(&self, position: u32) -> Origin {
        match self.diskless.contains(&position) {
            true => Origin::Rejoining,
            false => Origin::Joining,
        }
    }

    /// A process stores something.
    pub(super) fn store(&mut self, position: u32, durable: P::Durable) {
        if let Some(monitor) = &mut self.monitor {
            monitor.stored(self.now, position, Stored::on(Some(&durable)));
            monitor.drain_stored(position, durable.is_drained());
        }
        if let Some(incarnation) = durable.incarnation() {
            self.incarnations.insert(position, incarnation);
        }
        if !durable.is_rejoining() {
            self.diskless.remove(&position);
        }
        self.disks.insert(position, durable);
    }

    /// Sends a message of the process `from` to `to`, at the address where `to` is, or is believed to be.
    #[inline(never)]
    pub(super) fn post(&mut self, from: u32, to: u32, message: P::Message, lag: Span) {
        let runs = |process: u32| self.members[process].is_alive();
        let receiver = self.processes.reached(from, to, message.destination(), runs);
        let to = receiver.unwrap_or(self.processes.present(to));
        let message = message.posted_from(self.processes.source(from, to));
        let kind = P::kind_index(self.setup.config, &message);
        self.metrics.sent(kind, message.encoded_len());
        self.messages_sent += 1;
        let id = self.messages_sent as u32;
        let member = &mut self.members[from];
        let (sender, mut depth) = (member.id, member.depth);
        if message.kind().class == Class::Algorithm {
            member.sent += 1;
            depth += 1;
        }
        let delivery = Delivery { from: sender, to, id, depth, message };
        self.send_with_care(from, self.now + lag, delivery, receiver.is_some());
    }

    /// The processes on each side of a partition, by position; `old` names the sides of the old processes of some
    /// members.
    pub(super) fn sides(&self, sides: &[u32], old: &[(u32, u32)]) -> Vec<u32> {
        let mut all = sides.to_vec();
        let extra = self.processes.owners.iter();
        all.extend(extra.map(|&owner| sides[owner as usize]));
        for process in self.processes.old() {
            let owner = self.processes.owner(process);
            if let Some(&(_, side)) = old.iter().find(|&&(member, _)| member == owner) {
                all[process as usize] = side;
            }
        }
        all
    }

    /// Tells the observers what a process does. The views, timers and end of an old process are not those of its
    /// member.
    pub(super) fn record_of(&mut self, position: u32, what: EventKind) {
        if self.observer.is_none() {
            return;
        }
        if !P::has_sessions(self.setup.config) || self.processes.is_present(position) {
            return self.record(what);
        }
        let member: NodeId = self.id(position);
        if let EventKind::Leased { until, .. } = what {
            self.record(EventKind::Leased { member, until, old: true });
        }
        if let Some(note) = of_old_process(&what) {
            self.record(EventKind::Noted { member, note: format!("old process: {note}") });
        }
    }
}

/// What observers are told about an old process.
fn of_old_process(what: &EventKind) -> Option<String> {
    Some(match what {
        EventKind::Noted { note, .. } => note.clone(),
        EventKind::View { leader: Some(leader), term, role, .. } => {
            format!("{role}, leader {leader}, term {term}")
        }
        EventKind::View { leader: None, role, .. } => format!("{role}, knows no leader"),
        EventKind::Leased { until: None, .. } => "has no lease any more".to_owned(),
        EventKind::Crashed { .. } => "stops".to_owned(),
        EventKind::Paused { until, .. } => format!("hangs until {until}"),
        _ => return None,
    })
}
