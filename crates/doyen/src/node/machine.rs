//! What the loop has of the machine it runs on: the network, the disk, the board, the trace. Nothing here depends on
//! the algorithm.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use doyen_core::change::LeaderChange;
use doyen_core::members::{Incarnation, NodeId, PeerSet};
use doyen_core::protocol::{Boot, Dropped, Durable, View};
use doyen_core::session::Letter;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::Failure;
use super::bell::Inbox;
use super::board::Board;
use super::clock::Moment;
use super::insight::{Insight, Known};
use super::journal::Line;
use super::network::{self, Arrival, Network};
use super::rejoin;
use super::status::{Counters, Lease, MemberStatus, Preferred, Status};
use super::store::{LONGEST_DURABLE, Store};
use super::trace::{self, Header, Tracer};
use super::wire::Rejection;
use super::worries::{self, Worries, Worry};
use crate::config::{Member, Settings};
use crate::key::Keyring;
use serde::Serialize;

/// How old a snapshot may get.
const SNAPSHOT: Duration = Duration::from_millis(250);

/// The machine.
pub(super) struct Machine {
    pub(super) settings: Arc<Settings>,
    /// The configuration as a file would say it.
    config_text: String,
    pub(super) network: Network,
    store: Store,
    pub(super) board: Board,
    pub(super) inbox: Inbox,
    pub(super) tracer: Option<Tracer>,
    /// When the last snapshot was taken.
    snapshot: Moment,
    worries: Worries,
    /// What is being stored; its room is used again.
    encoded: Box<[u8; LONGEST_DURABLE]>,
}

impl Machine {
    pub(super) fn new(
        (settings, config_text): (Arc<Settings>, String),
        network: Network,
        store: Store,
        board: Board,
        inbox: Inbox,
    ) -> Self {
        Self {
            settings,
            config_text,
            network,
            store,
            board,
            inbox,
            tracer: None,
            snapshot: Moment::default(),
            worries: Worries::none(),
            encoded: Box::new([0; LONGEST_DURABLE]),
        }
    }

    /// What a trace begins with, if one is wanted.
    pub(super) fn trace_header<D: Durable>(&self, boot: &Boot<D>) -> Option<Header> {
        self.settings.trace.as_ref()?;
        let encoded = boot.durable.as_ref().and_then(|stored| postcard::to_allocvec(stored).ok());
        Some(Header {
            doyen: trace::MAGIC.to_owned(),
            version: trace::VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            config: self.config_text.clone(),
            member: self.settings.me,
            incarnation: boot.incarnation,
            session: boot.session,
            time_of_day: boot.time_of_day,
            origin: boot.origin.into(),
            durable: encoded.map(|bytes| trace::hex(&bytes)),
            did: Vec::new(),
        })
    }

    /// Begins the trace, if one is wanted.
    pub(super) fn begin_trace(
        &mut self,
        header: Option<Header>,
        did: Vec<String>,
    ) -> Result<(), Failure> {
        let (Some(path), Some(header)) = (&self.settings.trace, header) else { return Ok(()) };
        let header = Header { did, ..header };
        let begin = |path: &Path| Tracer::begin(path, &header, self.board.journal.clone());
        // Nothing is overwritten. Where the trace is part of the configuration every later life gets a file of its own.
        let mut path = path.clone();
        let begun = begin(&path).or_else(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                path.as_mut_os_string().push(format!(".{}", header.incarnation.0));
                begin(&path)
            }
            _ => Err(error),
        });
        let tracer = begun.map_err(|error| Failure::Trace { path: path.clone(), error })?;
        let told = format!("records every event in {}", path.display());
        self.board.journal.write(Line::Info(told));
        self.tracer = Some(tracer);
        Ok(())
    }

    /// Sleeps until a datagram or a request comes, or `until`, or there is upkeep to do. The log says if it woke too late.
    pub(super) fn sleep(&mut self, until: Option<Moment>) -> Result<(), Failure> {
        let snapshot = Moment::from_nanos(self.snapshot.as_nanos() + SNAPSHOT.as_nanos() as u64);
        let wake = until.map_or(snapshot, |until| until.min(snapshot));
        let wait = wake.since(Moment::now());
        let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
        let (socket, bell) = (self.network.as_fd(), self.inbox.as_fd());
        let mut fds = [PollFd::new(&socket, PollFlags::IN), PollFd::new(&bell, PollFlags::IN)];
        match poll(&mut fds, Some(&wait)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => {
                return Err(Failure::System { what: "wait for the network", error: error.into() });
            }
        }
        let heartbeat = self.settings.core.timing.heartbeat;
        let late = Moment::now().since(wake);
        if let Some(warning) = self.worries.of_lateness(late, heartbeat) {
            self.board.journal.write(warning);
        }
        Ok(())
    }

    /// The next datagram, if one waits. The log says of those that were dropped what an operator should know.
    pub(super) fn receive(&mut self) -> Result<Arrival<'_>, Failure> {
        let arrival = self.network.receive(&self.board.counters)?;
        if let Arrival::Rejected(dropped) = arrival
            && let Some(warning) = self.worries.of_dropped(&self.settings, dropped)
        {
            self.board.journal.write(warning);
        }
        Ok(arrival)
    }

    /// Counts a datagram that opened, and held something that is no message of this algorithm.
    pub(super) fn reject_malformed(&self) {
        network::reject_malformed(&self.board.counters);
    }

    /// Sends a letter.
    pub(super) fn send<M: Serialize>(&mut self, to: NodeId, letter: &Letter<M>) {
        self.network.send(to, letter, &self.board.counters);
    }

    /// Stores what must survive. If that fails the process must stop (4).
    pub(super) fn store(&mut self, durable: &impl Durable) -> Result<(), Failure> {
        let begun = Instant::now();
        let path = &self.settings.state_dir;
        let failed = |error| Failure::Store { path: path.clone(), error };
        let encoded = postcard::to_slice(durable, &mut self.encoded[..])
            .map_err(|error| io::Error::other(error.to_string()))
            .map_err(&failed)?;
        let incarnation = durable.incarnation().unwrap_or(self.store.incarnation());
        self.store.save(incarnation, durable.is_rejoining(), encoded).map_err(failed)?;
        let counters = &self.board.counters;
        Counters::add(&counters.stored, 1);
        Counters::add(&counters.stored_us, begun.elapsed().as_micros() as u64);
        Ok(())
    }

    /// Which life of the member the disk knows of.
    pub(super) fn stored_incarnation(&self) -> Incarnation {
        self.store.incarnation()
    }

    /// What has to be done now and then: names that are to be looked up again.
    pub(super) fn keep_up(&mut self) {
        self.network.keep_up();
    }

    /// Counts a letter that the sessions dropped.
    pub(super) fn count_dropped(&self, why: Dropped) {
        let reason = match why {
            Dropped::Session => Rejection::Session,
            Dropped::Replayed => Rejection::Replayed,
            Dropped::Limited => Rejection::Limited,
        };
        Counters::add(&self.board.counters.rejected[reason as usize], 1);
    }

    /// Counts a message to a member that has not been met.
    pub(super) fn count_unsent(&self) {
        Counters::add(&self.board.counters.unsent, 1);
    }

    /// A name was resolved, or could not be.
    pub(super) fn resolved(&mut self, member: NodeId, address: Option<SocketAddr>) {
        match address {
            Some(address) => self.network.resolved(member, address),
            None => self.warn_of_address(member),
        }
    }

    /// Uses other keys from now on.
    pub(super) fn use_keys(&mut self, keys: &Keyring) {
        self.network.use_keys(keys);
        self.board.journal.write(Line::Info(format!("has read its keys again: {}", keys.told())));
    }

    /// Enters a change of leadership into the history.
    pub(super) fn record(&mut self, change: LeaderChange) {
        let network = &self.network;
        let half = |peer| network.contact(peer)?.round_trip.map(|trip| trip.as_micros() as u64 / 2);
        self.board.record(change, half);
    }

    /// Logs something about a member.
    pub(super) fn note(&self, line: fn(String) -> Line, member: NodeId, what: &str) {
        self.board.journal.write(line(format!("{} {what}", self.settings.name_of(member))));
    }

    /// Logs that a member is configured otherwise, but not with every datagram of its.
    pub(super) fn warn_of_configuration(&mut self, member: NodeId) {
        if self.worries.is_due(Worry::Configuration(member)) {
            let what =
                "is configured otherwise and is ignored: compare the members and the algorithm";
            self.note(Line::Warning, member, what);
        }
    }

    /// Logs that a member's address cannot be found, but not with every attempt.
    fn warn_of_address(&mut self, member: NodeId) {
        if self.worries.is_due(Worry::Address(member)) {
            let what = "cannot be found: its address is no name that is known, or none that can be reached from `listen`";
            self.note(Line::Warning, member, what);
        }
    }

    /// Looks for what an operator should know: that nobody is heard, and members that are configured otherwise.
    fn look_around(&mut self, heard: &PeerSet) {
        let is_alone = self.settings.members.len() == 1;
        if self.worries.is_lonely(is_alone || heard.iter().any(|id| id != self.settings.me)) {
            let told =
                "hears nobody: see whether the others run, and the network, addresses and keys";
            self.board.journal.write(Line::Warning(told.to_owned()));
        }
        let otherwise = self.network.contacts().filter(|contact| contact.configured_otherwise);
        for member in otherwise.map(|contact| contact.id).collect::<Vec<_>>() {
            self.warn_of_configuration(member);
        }
    }

    /// Whether it is time for a new snapshot.
    pub(super) fn snapshot_is_old(&self) -> bool {
        Moment::now().since(self.snapshot) >= SNAPSHOT
    }

    /// Publishes that the node rejoins, and for whom it waits.
    pub(super) fn publish_rejoining(&mut self, awaited: &PeerSet) {
        self.snapshot = Moment::now();
        self.board.publish(rejoin::status(&self.settings, awaited));
    }

    /// Publishes a snapshot.
    pub(super) fn publish(
        &mut self,
        view: View,
        until: Option<Moment>,
        heard: &PeerSet,
        insight: Insight,
    ) {
        self.look_around(heard);
        let now = Moment::now();
        self.snapshot = now;
        let settings = &self.settings;
        let lease = until.map(|until| Lease {
            until: until.as_nanos(),
            remaining_ms: until.since(now).as_millis() as u64,
        });
        let preference = insight.preference.map(|(member, lasting)| Preferred {
            member,
            remaining_ms: lasting.as_nanos() / 1_000_000,
        });
        let members: Vec<MemberStatus> = settings
            .members
            .iter()
            .map(|member| self.member_status(member, now, heard, &insight))
            .collect();
        self.board.publish(Status {
            cluster: settings.cluster.clone(),
            algorithm: settings.algorithm.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            id: settings.me,
            name: settings.own().name.clone(),
            incarnation: self.store.incarnation(),
            role: view.role,
            leader: view.leader,
            term: view.term,
            lease,
            why: self.board.why(),
            rejoining: false,
            drained: insight.drained,
            never_leads: insight.never_leads,
            drained_remaining_ms: insight.drained_for.map(|left| left.as_millis() as u64),
            preference,
            next: insight.next,
            line: insight.line,
            members,
        });
    }

    fn member_status(
        &self,
        member: &Member,
        now: Moment,
        heard: &PeerSet,
        insight: &Insight,
    ) -> MemberStatus {
        let known = insight.members.get(&member.id);
        let contact = self.network.contact(member.id);
        let silence = contact.and_then(|contact| contact.last_heard).map(|at| now.since(at));
        MemberStatus {
            id: member.id,
            name: member.name.clone(),
            address: member.address.clone(),
            seen_at: contact.and_then(|contact| contact.address).map(worries::plain),
            priority: known.map_or(member.priority, |known| known.attribute),
            witness: member.witness,
            heard: heard.contains(member.id),
            configured_otherwise: contact.is_some_and(|contact| contact.configured_otherwise),
            silent_ms: silence.map(|silence| silence.as_millis() as u64),
            rtt_us: contact
                .and_then(|contact| contact.round_trip)
                .map(|trip| trip.as_micros() as u64),
            misses: self.misses(member.id, heard, known),
            eligible: known.map_or(!member.witness, |known| known.eligible),
            losses: known.map_or(0, |known| known.losses),
        }
    }

    /// Whom a member does not hear: of itself the node knows it, of the others what they say while they are heard.
    fn misses(&self, id: NodeId, heard: &PeerSet, known: Option<&Known>) -> Option<Vec<NodeId>> {
        if id == self.settings.me {
            let members = self.settings.members.iter().map(|member| member.id);
            return Some(members.filter(|&other| !heard.contains(other)).collect());
        }
        known.filter(|_| heard.contains(id))?.misses.clone()
    }
}
