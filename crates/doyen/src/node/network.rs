//! The socket: seals and opens, knows where members are, and in which version to talk to them. Who counts is decided by
//! the [sessions](doyen_core::session) of the core.
//!
//! A datagram that cannot be sent is one that got lost: the algorithms tolerate that, and a full buffer must not hold the
//! loop up.
//!
//! **Versions.** A letter goes in the highest version in which its session has talked to this node, an answer in the version
//! of what it answers. A question goes in every version until it is known that the peer reads the present one.
//!
//! **Names** are looked up at the start, and again while a member is silent.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use doyen_core::members::{NodeId, PeerSet};
use doyen_core::session::{self, Challenge, Letter, SessionId};
use serde::Serialize;

use super::Failure;
use super::bell::Requests;
use super::clock::Moment;
use super::resolver::{self, Resolver};
use super::status::Counters;
use super::wire::{Content, EARLIEST, Envelope, LIMIT, Opened, Rejection, Sealer, VERSION};
use crate::config::Settings;
use crate::key::Keyring;

/// After so long without a word, two pings and their repetitions, a member counts as silent where the algorithm does
/// not watch over that itself.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long after the last word of a member its name is looked up again: a ping and its first repetitions got no answer.
const SILENCE: Duration = Duration::from_secs(3);

/// How long after the last time a name is looked up again.
const RESOLVE: Duration = Duration::from_secs(5);

/// The network.
pub(super) struct Network {
    socket: UdpSocket,
    sealer: Sealer,
    session: SessionId,
    configuration: u32,
    lines: BTreeMap<NodeId, Line>,
    /// Which datagram is being handled.
    answering: Option<Answering>,
    resolver: Resolver,
    settings: Arc<Settings>,
    /// One byte more than any datagram of doyen's: what fills it is too long.
    buffer: Box<[u8; LIMIT + 1]>,
    /// What is being encoded and sealed; its room is used again.
    encoded: Vec<u8>,
    sealed: Vec<u8>,
}

/// A datagram that is being handled.
#[derive(Clone, Copy, Debug)]
struct Answering {
    from: NodeId,
    session: SessionId,
    version: u8,
}

/// The way to a member.
#[derive(Debug, Default)]
struct Line {
    /// Where its configured name leads, as last looked up.
    configured: Option<SocketAddr>,
    /// Where its newest letter came from.
    address: Option<SocketAddr>,
    /// The session that has been met, and in which version it talks.
    met: Option<(SessionId, u8)>,
    /// How many of its letters have been accepted.
    accepted: u64,
    last_heard: Option<Moment>,
    round_trip: Option<Duration>,
    /// The question that it was asked last, when, and whether it was asked again: then nobody knows which time was
    /// answered, and how long that took.
    asked: Option<(Challenge, Moment, bool)>,
    /// When its name was last looked up.
    resolved: Option<Moment>,
    /// Whether it was last heard to be configured otherwise.
    configured_otherwise: bool,
}

/// What is known of the way to a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Contact {
    /// Who.
    pub(super) id: NodeId,
    /// Where its datagrams come from, once it has been met.
    pub(super) address: Option<SocketAddr>,
    /// When something was last accepted from it.
    pub(super) last_heard: Option<Moment>,
    /// The round-trip time, smoothed.
    pub(super) round_trip: Option<Duration>,
    /// Whether it was last heard to be configured otherwise.
    pub(super) configured_otherwise: bool,
    /// In which version the session talks that has been met.
    pub(super) version: Option<u8>,
}

/// What the socket gave.
#[derive(Debug)]
pub(super) enum Arrival<'a> {
    /// Nothing waits.
    Nothing,
    /// Something that concerns nobody.
    Upkeep,
    /// Something that was dropped.
    Rejected(Dropped),
    /// A letter of a member.
    Letter {
        /// From where it came.
        source: SocketAddr,
        /// What opened.
        opened: Opened<'a>,
    },
}

/// A datagram that was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Dropped {
    /// From where it came.
    pub(super) source: SocketAddr,
    /// Which member is there, as far as is known; the datagram itself proves nothing.
    pub(super) member: Option<NodeId>,
    /// Why.
    pub(super) reason: Rejection,
}

impl Network {
    /// Opens the socket for a process that has drawn this session number.
    pub(super) fn open(
        settings: &Arc<Settings>,
        session: SessionId,
        requests: Requests,
    ) -> Result<Self, Failure> {
        let address = settings.listen;
        let failed = |error| Failure::Listen { address, error };
        let socket = UdpSocket::bind(address).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let resolver = Resolver::start(settings.members.len(), address, requests)
            .map_err(|error| Failure::System { what: "start a thread for names", error })?;
        let keys = Keyring::of(settings.key_file.as_deref());
        let keys = keys.map_err(|error| Failure::Keys(error.to_string()))?;
        let others = settings.members.iter().filter(|member| member.id != settings.me);
        let line = |member: &crate::config::Member| {
            // What is no name need not be looked up by anybody else, and is greeted at once.
            let configured = resolver::read(&member.address, address);
            (member.id, Line { configured, ..Line::default() })
        };
        Ok(Self {
            socket,
            sealer: Sealer::new(&keys, &settings.cluster),
            session,
            configuration: settings.configuration_id(),
            lines: others.map(line).collect(),
            answering: None,
            resolver,
            settings: Arc::clone(settings),
            buffer: Box::new([0; LIMIT + 1]),
            encoded: Vec::new(),
            sealed: Vec::new(),
        })
    }

    /// What to sleep on.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The next datagram, if one waits. Whatever is wrong with it is counted.
    pub(super) fn receive(&mut self, counters: &Counters) -> Result<Arrival<'_>, Failure> {
        let (length, source) = match self.socket.recv_from(&mut self.buffer[..]) {
            Ok(received) => received,
            Err(error) if is_passing(&error) => return Ok(Arrival::Upkeep),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Arrival::Nothing),
            Err(error) => return Err(Failure::System { what: "read from the network", error }),
        };
        Counters::add(&counters.received, 1);
        Counters::add(&counters.received_bytes, length as u64);
        let opened = self.sealer.open(&mut self.buffer[..length]);
        let (me, configuration) = (self.settings.me, self.configuration);
        let admitted = opened.and_then(|opened| {
            let line = self.lines.get_mut(&opened.envelope.from).ok_or(Rejection::Stranger)?;
            line.admit(me, configuration, self.session, &opened)?;
            Ok(opened)
        });
        match admitted {
            Ok(opened) => Ok(Arrival::Letter { source, opened }),
            Err(reason) => {
                Counters::add(&counters.rejected[reason as usize], 1);
                let is_there =
                    |line: &Line| [line.address, line.configured].contains(&Some(source));
                let member = self.lines.iter().find(|(_, line)| is_there(line)).map(|(id, _)| *id);
                Ok(Arrival::Rejected(Dropped { source, member, reason }))
            }
        }
    }

    /// A letter of this session, in a datagram of this version, is handled from now on.
    pub(super) fn answers(&mut self, from: NodeId, session: SessionId, version: u8) {
        self.answering = Some(Answering { from, session, version });
    }

    /// It has been handled: this is what the sessions know of its sender.
    pub(super) fn answered(&mut self, contact: Option<session::Contact>) {
        let (Some(Answering { from, session, version }), Some(contact)) =
            (self.answering.take(), contact)
        else {
            return;
        };
        let Some(line) = self.lines.get_mut(&from) else { return };
        let same = line.met.filter(|(met, _)| *met == contact.met.session);
        if same.is_none() || contact.accepted > line.accepted {
            line.last_heard = Some(Moment::now());
            line.configured_otherwise = false;
        }
        let known = same.map_or(EARLIEST, |(_, version)| version);
        let talks = if session == contact.met.session { version.max(known) } else { known };
        line.met = Some((contact.met.session, talks));
        (line.accepted, line.address) = (contact.accepted, contact.address);
    }

    /// Sends a letter.
    pub(super) fn send<M: Serialize>(
        &mut self,
        to: NodeId,
        letter: &Letter<M>,
        counters: &Counters,
    ) {
        let Some(line) = self.lines.get_mut(&to) else { return };
        let Some(address) = letter.at.or(line.configured) else {
            return Counters::add(&counters.unsent, 1);
        };
        let asks = matches!(&letter.content, session::Content::Greeting(it) if it.ask.is_some());
        let versions = line.versions(to, letter.known, asks, self.answering);
        self.encoded.clear();
        let content = match &letter.content {
            session::Content::Greeting(greeting) => {
                line.ask(greeting.ask);
                Content::Greeting(*greeting)
            }
            session::Content::Roster(roster) => Content::Roster(roster.clone()),
            session::Content::Inner(message) => {
                let room = std::mem::take(&mut self.encoded);
                // Encoding into a vector cannot fail.
                self.encoded = postcard::to_extend(message, room).unwrap_or_default();
                Content::Election(&self.encoded)
            }
        };
        let Letter { session, known, counter, .. } = *letter;
        let (from, configuration) = (self.settings.me, self.configuration);
        let envelope = Envelope { from, to, session, known, counter, configuration, group: 0 };
        for &version in versions {
            self.sealed.clear();
            let sealed = self.sealer.seal(version, &envelope, &content, &mut self.sealed);
            match sealed
                .map_err(io::Error::other)
                .and_then(|()| self.socket.send_to(&self.sealed, address))
            {
                Ok(length) => {
                    Counters::add(&counters.sent, 1);
                    Counters::add(&counters.sent_bytes, length as u64);
                }
                Err(_) => Counters::add(&counters.unsent, 1),
            }
        }
    }

    /// Has the names of silent members looked up.
    pub(super) fn keep_up(&mut self) {
        let now = Moment::now();
        for (&id, line) in &mut self.lines {
            if line.wants_resolving(now)
                && let Some(member) = self.settings.members.iter().find(|member| member.id == id)
            {
                self.resolver.ask(id, &member.address);
            }
        }
    }

    /// A name was looked up.
    pub(super) fn resolved(&mut self, member: NodeId, address: SocketAddr) {
        if let Some(line) = self.lines.get_mut(&member) {
            line.configured = Some(address);
        }
    }

    /// Uses other keys from now on.
    pub(super) fn use_keys(&mut self, keys: &Keyring) {
        self.sealer.rekey(keys);
    }

    /// Whom this node hears, itself included: the one answer for everything that is shown. `by_algorithm`: what the
    /// algorithm says of a member, if it watches over who falls silent.
    pub(super) fn heard(
        &self,
        now: Moment,
        by_algorithm: impl Fn(NodeId) -> Option<bool>,
    ) -> PeerSet {
        let heard = |contact: &Contact| is_heard(contact, now, by_algorithm(contact.id));
        let others = self.contacts().filter(heard).map(|contact| contact.id);
        others.chain([self.settings.me]).collect()
    }

    /// What is known of the way to everybody else.
    pub(super) fn contacts(&self) -> impl Iterator<Item = Contact> + '_ {
        self.lines.iter().map(|(&id, line)| line.contact(id))
    }

    /// What is known of the way to a member; nothing of the way to itself.
    pub(super) fn contact(&self, member: NodeId) -> Option<Contact> {
        self.lines.get(&member).map(|line| line.contact(member))
    }
}

impl Line {
    fn contact(&self, id: NodeId) -> Contact {
        let Self { address, last_heard, round_trip, configured_otherwise, .. } = *self;
        let version = self.met.map(|(_, version)| version);
        Contact { id, address, last_heard, round_trip, configured_otherwise, version }
    }

    /// Whether a datagram is for this member and of the same configuration. An answer to a question of `session` says how
    /// long the way takes.
    fn admit(
        &mut self,
        me: NodeId,
        configuration: u32,
        session: SessionId,
        opened: &Opened<'_>,
    ) -> Result<(), Rejection> {
        let Envelope { to, group, known, .. } = opened.envelope;
        if to != me || group != 0 {
            return Err(Rejection::Misdirected);
        }
        if opened.envelope.configuration != configuration {
            self.configured_otherwise = true;
            return Err(Rejection::Configuration);
        }
        if let Content::Greeting(greeting) = &opened.content
            && known == Some(session)
            && let Some((asked, at, repeated)) = self.asked
            && greeting.answer == Some(asked)
        {
            self.asked = None;
            if !repeated {
                self.round_trip = Some(smoothed(self.round_trip, Moment::now().since(at)));
            }
        }
        Ok(())
    }

    /// Notes a question that is being asked.
    fn ask(&mut self, challenge: Option<Challenge>) {
        let Some(challenge) = challenge else { return };
        self.asked = match self.asked {
            Some((asked, at, _)) if asked == challenge => Some((asked, at, true)),
            _ => Some((challenge, Moment::now(), false)),
        };
    }

    /// In which versions a letter for the session `known` goes. A question goes in both until it is known that the peer
    /// reads the present one: the earlier one may be all that has come through so far, and it asks for no roster.
    fn versions(
        &self,
        to: NodeId,
        known: Option<SessionId>,
        asks: bool,
        answering: Option<Answering>,
    ) -> &'static [u8] {
        let met =
            self.met.filter(|(session, _)| Some(*session) == known).map(|(_, version)| version);
        let asked = answering
            .filter(|asked| asked.from == to && Some(asked.session) == known)
            .map(|asked| asked.version);
        match met.max(asked) {
            Some(EARLIEST) if !asks => &[EARLIEST],
            Some(VERSION) => &[VERSION],
            _ => &[VERSION, EARLIEST],
        }
    }

    /// Whether its name is to be looked up. If so, not again for a while.
    fn wants_resolving(&mut self, now: Moment) -> bool {
        let is_silent = self.last_heard.is_none_or(|heard| now.since(heard) >= SILENCE);
        let wants = is_silent && self.resolved.is_none_or(|last| now.since(last) >= RESOLVE);
        if wants {
            self.resolved = Some(now);
        }
        wants
    }
}

/// The mean of all measurements, the latest counting an eighth, as TCP does it.
fn smoothed(before: Option<Duration>, measured: Duration) -> Duration {
    before.map_or(measured, |before| (before * 7 + measured) / 8)
}

/// Whether a member is heard: something has come from it in this life of the node, it is not configured otherwise, and
/// it has not fallen silent.
fn is_heard(contact: &Contact, now: Moment, by_algorithm: Option<bool>) -> bool {
    let Some(last) = contact.last_heard else { return false };
    let speaks = by_algorithm.unwrap_or_else(|| now.since(last) <= PATIENCE);
    speaks && !contact.configured_otherwise
}

/// Errors that say something of an earlier datagram, not of the socket: nobody listens there.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, Interrupted, NetworkUnreachable};
    matches!(error.kind(), ConnectionRefused | HostUnreachable | Interrupted | NetworkUnreachable)
}

/// Counts a datagram that opened, and held nothing that this algorithm can read.
pub(super) fn reject_malformed(counters: &Counters) {
    Counters::add(&counters.rejected[Rejection::Malformed as usize], 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One lost datagram must not have two nodes of the present version talk in the earlier one for ever.
    #[test]
    fn a_question_goes_in_both_versions_until_the_present_one_is_known_to_be_read() {
        let (peer, session) = (NodeId(2), SessionId::from_random(7));
        let versions = |met: Option<u8>, asked: Option<u8>, asks| {
            let line = Line { met: met.map(|version| (session, version)), ..Line::default() };
            let answering = |version| Answering { from: peer, session, version };
            line.versions(peer, Some(session), asks, asked.map(answering)).to_vec()
        };
        assert_eq!(versions(None, None, true), [VERSION, EARLIEST]);
        assert_eq!(versions(Some(EARLIEST), None, true), [VERSION, EARLIEST]);
        assert_eq!(versions(None, Some(EARLIEST), true), [VERSION, EARLIEST]);
        assert_eq!(versions(Some(EARLIEST), None, false), [EARLIEST]);
        assert_eq!(versions(Some(VERSION), Some(EARLIEST), true), [VERSION]);
    }

    #[test]
    fn who_is_heard_is_the_algorithms_to_say_of_those_that_have_spoken() {
        let second = |seconds: u64| Moment::from_nanos(seconds * 1_000_000_000);
        let (heard, now) = (second(10), second(20));
        let contact = Contact {
            id: NodeId(2),
            address: None,
            last_heard: Some(heard),
            round_trip: None,
            configured_otherwise: false,
            version: Some(VERSION),
        };
        assert!(is_heard(&contact, now, Some(true)), "it may have more patience than the host");
        assert!(!is_heard(&contact, heard, Some(false)), "or less");
        assert!(is_heard(&contact, second(15), None));
        assert!(!is_heard(&contact, second(16), None));
        let never = Contact { last_heard: None, ..contact };
        assert!(!is_heard(&never, now, Some(true)), "no benefit of the doubt");
        let otherwise = Contact { configured_otherwise: true, ..contact };
        assert!(!is_heard(&otherwise, heard, Some(true)));
    }
}
