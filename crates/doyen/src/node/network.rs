//! The socket: seals and opens datagrams, and knows the address and the protocol version of every member. Which process
//! of a member counts is decided by the [sessions](doyen_core::session) of the core.
//!
//! A datagram that cannot be sent is treated like one that is lost in transit: the algorithms tolerate that, and a full
//! buffer must not block the loop.
//!
//! **Versions.** A letter is sent in the highest version that its session has spoken to this node, an answer to a session
//! that has not been met in the version of its question. A question is sent in every version until the session is known to
//! read the current one.
//!
//! **Configurations.** Datagrams of a member that is configured otherwise are dropped, and so are recordings of a member
//! from before its configuration was changed. Only the answer to a challenge tells the two apart. So a challenge is
//! answered whatever the sender's configuration is, and a member counts as configured otherwise when such an answer says
//! so. A node that is not on this node's list is answered too: so it learns that the two lists differ.
//!
//! **Relayed packets** ([`relay`](super::relay)) and riders without a letter go to and come from the present session of a
//! member only, and have counters of their own: what is recorded and repeated is dropped here, and causes no answer.
//!
//! **Names** are looked up at the start, and again while a member is silent.

mod peer;

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use doyen_core::group::rider::Rider;
use doyen_core::members::{Incarnation, NodeId, PeerSet, SessionId};
use doyen_core::node::Packet;
use doyen_core::registry::{AnyMessage, EarlierMessage};
use doyen_core::session::window::Window;
use doyen_core::session::{self, Greeting, Letter};

use peer::may_answer;
pub(super) use peer::{OwnDatagrams, Peer};

use super::Failure;
use super::counters::Counters;
use super::filter;
use super::log::Logger;
use super::relay::{RelayError, Relayed};
use super::resolver::{self, Resolver};
use super::waker::CommandSender;
use super::wire::{
    Content, EARLIEST, Envelope, LIMIT, Opened, RELAYS, Rejection, Sealer, Unsealed, VERSION,
    read_rider,
};
use crate::clock::Moment;
use crate::config::{Member, Settings};
use crate::guardian::Datagram;
use crate::key::Keyring;

/// The longest datagram with a letter and a rider: it fits into one packet of every IPv6 network (1280 bytes), with its headers.
/// Where fragments are dropped, the election must not depend on a longer one.
const UNFRAGMENTED: usize = 1_200;

/// How long a node that is not on this node's list is shown after its last datagram: longer than it waits before it greets
/// again.
const STRANGER: Duration = Duration::from_secs(60);

/// What a process sends.
type Outgoing = Letter<Packet<AnyMessage>>;

/// The socket, and the paths to all other members.
pub(super) struct Network {
    socket: UdpSocket,
    sealer: Sealer,
    fingerprints: Vec<String>,
    session: SessionId,
    configuration: u32,
    peers: BTreeMap<NodeId, Peer>,
    /// When a node that is not on this node's list was last answered.
    stranger_answered: Option<Moment>,
    /// The last such node, where its datagram came from, and when.
    stranger: Option<(NodeId, SocketAddr, Moment)>,
    /// The datagram that is being handled.
    current: Option<Current>,
    resolver: Resolver,
    settings: Arc<Settings>,
    /// One byte longer than any datagram of doyen: a datagram that fills it is too long.
    buffer: Box<[u8; LIMIT + 1]>,
    /// Buffers for encoding and sealing, used again and again.
    encoded: Vec<u8>,
    sealed: Vec<u8>,
}

/// A datagram that is being handled: an answer to it uses the same version.
#[derive(Clone, Copy, Debug)]
struct Current {
    from: NodeId,
    session: SessionId,
    version: u8,
}

/// What a read from the socket gave.
#[derive(Debug)]
pub(super) enum Received<'a> {
    /// No datagram waits.
    Empty,
    /// The socket reported an error about an earlier datagram.
    Skipped,
    /// A datagram was dropped, and has been counted.
    Rejected(Dropped),
    /// A letter of a member, and where it came from, if not from the address of the member's configured name.
    Letter { at: Option<SocketAddr>, opened: Opened<'a> },
    /// A packet for the layers that relay.
    Relayed(Relayed),
    /// What the groups of a member's present process say without a letter.
    Rider { from: NodeId, session: SessionId, rider: Rider },
}

/// A datagram that was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Dropped {
    pub(super) source: SocketAddr,
    /// The member with this address, if one is known; the datagram itself proves nothing.
    pub(super) member: Option<(NodeId, OwnDatagrams)>,
    /// Whether the configured address of every other member is known: a name may not have been looked up yet.
    pub(super) all_known: bool,
    pub(super) reason: Rejection,
    /// Which member it says that it is from, if it is authentic and there is no such other member.
    pub(super) stranger: Option<NodeId>,
}

impl Network {
    /// Opens the socket of a process with this session.
    pub(super) fn open(
        settings: &Arc<Settings>,
        session: SessionId,
        keys: &Keyring,
        commands: CommandSender,
        log: &Logger,
    ) -> Result<Self, Failure> {
        let address = settings.listen;
        let failed = |error| Failure::Listen { address, error };
        let socket = UdpSocket::bind(address).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        filter::prepare(&socket, log);
        let resolver = Resolver::start(settings.members.len(), address, commands)
            .map_err(|error| Failure::System { what: "start a thread for names", error })?;
        let others = settings.members.iter().filter(|member| member.id != settings.me);
        let peer = |member: &Member| {
            // An address that is not a name needs no look-up.
            let configured = resolver::parse(&member.address, address);
            (member.id, Peer { configured, ..Peer::default() })
        };
        Ok(Self {
            socket,
            sealer: Sealer::new(keys, &settings.cluster),
            fingerprints: keys.fingerprints(),
            session,
            configuration: settings.configuration_id(),
            peers: others.map(peer).collect(),
            stranger_answered: None,
            stranger: None,
            current: None,
            resolver,
            settings: Arc::clone(settings),
            buffer: Box::new([0; LIMIT + 1]),
            encoded: Vec::new(),
            sealed: Vec::new(),
        })
    }

    /// The file descriptor that becomes readable when a datagram arrives.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The next datagram, if one waits. One that is rejected is counted.
    pub(super) fn receive(&mut self, counters: &Counters) -> Result<Received<'_>, Failure> {
        let (length, source) = match self.socket.recv_from(&mut self.buffer[..]) {
            Ok(received) => received,
            Err(error) if is_transient(&error) => return Ok(Received::Skipped),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Received::Empty),
            Err(error) => return Err(Failure::System { what: "read from the network", error }),
        };
        Counters::add(&counters.received, 1);
        Counters::add(&counters.received_bytes, length as u64);
        let opened = self.sealer.open(&mut self.buffer[..length]);
        let (me, configuration) = (self.settings.me, self.configuration);
        let (mut answer, mut stranger) = (None, None);
        let admitted = opened.and_then(|opened| {
            let from = opened.envelope.from;
            let Some(peer) = self.peers.get_mut(&from) else {
                stranger = Some(from);
                // What this node has sent itself may be sent back to it.
                let is_asked = opened.envelope.to == me && from != me;
                if is_asked {
                    self.stranger = Some((from, source, Moment::now()));
                }
                if is_asked && may_answer(&mut self.stranger_answered) {
                    answer = answer_to(&opened);
                }
                return Err(Rejection::Stranger);
            };
            let admitted = peer.admit(me, configuration, self.session, &opened, counters);
            if admitted == Err(Rejection::Configuration) && peer.may_answer_mismatch(source) {
                answer = answer_to(&opened);
            }
            admitted.map(|()| ((peer.configured != Some(source)).then_some(source), opened))
        });
        let reason = match admitted {
            Ok((_, Opened { content: Content::Rider(bytes), envelope, .. })) => {
                let Envelope { from, session, .. } = envelope;
                match read_rider(bytes) {
                    Some(rider) => return Ok(Received::Rider { from, session, rider }),
                    None => Rejection::Malformed,
                }
            }
            Ok((_, Opened { content: Content::Relay(bytes), envelope, .. })) => {
                let Envelope { from, session, .. } = envelope;
                return Ok(Received::Relayed(Relayed { from, session, bytes: bytes.to_vec() }));
            }
            Ok((at, opened)) => return Ok(Received::Letter { at, opened }),
            Err(reason) => reason,
        };
        if let Some((version, to, known, greeting)) = answer {
            let (session, group) = (self.session, 0);
            // It is never compared with the counters of letters: the receiver drops it for its configuration.
            let counter = 1;
            let known = Some(known);
            let envelope = Envelope { from: me, to, session, known, counter, configuration, group };
            self.sealed.clear();
            let sealed = self.sealer.seal(version, &envelope, &greeting, &mut self.sealed);
            // One that is not sent is like one that is lost.
            let _ = sealed.map(|()| self.socket.send_to(&self.sealed, source));
        }
        counters.reject(reason);
        let is_there = |peer: &Peer| [peer.address, peer.configured].contains(&Some(source));
        let mut member = None;
        if let Some((id, peer)) = self.peers.iter_mut().find(|(_, peer)| is_there(peer)) {
            member = Some((*id, peer.reject(reason, Moment::now())));
        }
        let all_known = self.peers.values().all(|peer| peer.configured.is_some());
        Ok(Received::Rejected(Dropped { source, member, all_known, reason, stranger }))
    }

    /// A letter of this session, in a datagram of this version, is about to be handled.
    pub(super) fn begin_letter(&mut self, from: NodeId, session: SessionId, version: u8) {
        self.current = Some(Current { from, session, version });
    }

    /// The letter has been handled; `contact` is what the sessions know about its sender, and it arrived after `arrived_after`.
    /// Returns whether it counted: it came from the present process of its sender, for the first time.
    pub(super) fn end_letter(
        &mut self,
        contact: Option<session::Contact>,
        arrived_after: Moment,
    ) -> bool {
        let (Some(Current { from, session, version }), Some(contact)) =
            (self.current.take(), contact)
        else {
            return false;
        };
        let Some(peer) = self.peers.get_mut(&from) else { return false };
        let same = peer.met.filter(|(met, _)| *met == contact.met.session);
        let counted = same.is_some() && contact.accepted > peer.accepted;
        if same.is_none() {
            peer.relays = Window::default();
            peer.met_at = Some(Moment::now());
        }
        if same.is_none() || contact.accepted > peer.accepted {
            (peer.last_seen, peer.arrived_after) = (Some(Moment::now()), Some(arrived_after));
            (peer.config_mismatch, peer.rejected) = (false, None);
        }
        let known = same.map_or(EARLIEST, |(_, version)| version);
        let speaks = if session == contact.met.session { version.max(known) } else { known };
        peer.met = Some((contact.met.session, speaks));
        (peer.accepted, peer.address) = (contact.accepted, contact.address);
        counted
    }

    /// Sends a letter, with what the groups say to its receiver: in one datagram, or in two if one would be long.
    pub(super) fn send(
        &mut self,
        to: NodeId,
        letter: &Outgoing,
        rider: Option<&Rider>,
        counters: &Counters,
    ) {
        let Some(peer) = self.peers.get_mut(&to) else { return };
        let Some(address) = letter.at.or(peer.configured) else {
            return Counters::add(&counters.unsent, 1);
        };
        let asks = matches!(&letter.content, session::Content::Greeting(it) if it.ask.is_some());
        let versions = peer.versions(to, letter.known, asks, self.current);
        // What is asked elsewhere, replayed datagrams may have caused. It must not displace what was asked here.
        let is_expected = letter.at.is_none() || letter.at == peer.address;
        if let session::Content::Greeting(Greeting { ask: Some(challenge), .. }) = letter.content
            && is_expected
        {
            peer.ask(challenge, Moment::now());
        }
        let mut apart = None;
        for &version in versions {
            let mut sealed = self.seal(version, to, letter, rider);
            let is_long = match sealed {
                Ok(()) => self.sealed.len() > UNFRAGMENTED,
                Err(error) => matches!(error, Unsealed::TooLong(_)),
            };
            if is_long && rider.is_some() {
                // The election goes first.
                apart = rider;
                sealed = self.seal(version, to, letter, None);
            }
            match sealed {
                Ok(()) => self.transmit(address, counters),
                Err(_) => Counters::add(&counters.unsent, 1),
            }
        }
        if let Some(rider) = apart {
            self.ride(to, rider, counters);
        }
    }

    /// Sends a packet to the member's present session, which it returns. If one is given, it must be that.
    pub(super) fn relay(
        &mut self,
        to: NodeId,
        expected: Option<SessionId>,
        bytes: &[u8],
        counters: &Counters,
    ) -> Result<SessionId, RelayError> {
        self.send_to_present(to, expected, &Content::Relay(bytes), counters)
    }

    /// Sends what the groups say to the member's present session. It may be lost: the next heartbeat repeats it.
    pub(super) fn ride(&mut self, to: NodeId, rider: &Rider, counters: &Counters) {
        let Ok(encoded) = postcard::to_allocvec(rider) else { return };
        if self.send_to_present(to, None, &Content::Rider(&encoded), counters).is_err() {
            Counters::add(&counters.unsent, 1);
        }
    }

    fn send_to_present(
        &mut self,
        to: NodeId,
        expected: Option<SessionId>,
        content: &Content<'_>,
        counters: &Counters,
    ) -> Result<SessionId, RelayError> {
        let peer = self.peers.get_mut(&to).ok_or(RelayError::Unmet)?;
        let (met, version) = peer.met.ok_or(RelayError::Unmet)?;
        if expected.is_some_and(|expected| expected != met) {
            return Err(RelayError::Restarted);
        }
        let address = peer.address.or(peer.configured).ok_or(RelayError::Unmet)?;
        if version < RELAYS {
            return Err(RelayError::OlderVersion);
        }
        let (from, session, configuration) = (self.settings.me, self.session, self.configuration);
        peer.relayed += 1;
        let (known, counter, group) = (Some(met), peer.relayed, 0);
        let envelope = Envelope { from, to, session, known, counter, configuration, group };
        self.sealed.clear();
        let sealed = self.sealer.seal(version, &envelope, content, &mut self.sealed);
        sealed.map_err(|_| RelayError::TooLong)?;
        self.transmit(address, counters);
        Ok(met)
    }

    /// Sends what was sealed last. A datagram that cannot be sent is like one that is lost.
    fn transmit(&self, address: SocketAddr, counters: &Counters) {
        match self.socket.send_to(&self.sealed, address) {
            Ok(length) => {
                Counters::add(&counters.sent, 1);
                Counters::add(&counters.sent_bytes, length as u64);
            }
            Err(_) => Counters::add(&counters.unsent, 1),
        }
    }

    /// A letter to the member's present session as a datagram, for a process that sends it later, and where to.
    pub(super) fn sealed(&mut self, to: NodeId, letter: &Outgoing) -> Option<Datagram> {
        let peer = self.peers.get(&to)?;
        let address = letter.at.or(peer.configured)?;
        let &version = peer.versions(to, letter.known, false, None).first()?;
        self.seal(version, to, letter, None).ok()?;
        Some(Datagram { address, bytes: self.sealed.clone() })
    }

    /// Seals a letter into the buffer for that.
    fn seal(
        &mut self,
        version: u8,
        to: NodeId,
        letter: &Outgoing,
        rider: Option<&Rider>,
    ) -> Result<(), Unsealed> {
        let content = match &letter.content {
            session::Content::Greeting(greeting) => Content::Greeting(*greeting),
            session::Content::Roster(roster) => Content::Roster(roster.clone()),
            session::Content::Inner(packet) => {
                let mut room = std::mem::take(&mut self.encoded);
                room.clear();
                let encoded = match version {
                    VERSION => postcard::to_extend(packet, room),
                    _ => postcard::to_extend(&packet.clone().map(EarlierMessage), room),
                };
                // Encoding into a vector cannot fail.
                let mut encoded = encoded.unwrap_or_default();
                if let Some(rider) = rider.filter(|_| version == VERSION) {
                    encoded = postcard::to_extend(rider, encoded).unwrap_or_default();
                }
                self.encoded = encoded;
                Content::Election(&self.encoded)
            }
        };
        let Letter { session, known, counter, .. } = *letter;
        let (from, configuration) = (self.settings.me, self.configuration);
        let envelope = Envelope { from, to, session, known, counter, configuration, group: 0 };
        self.sealed.clear();
        self.sealer.seal(version, &envelope, &content, &mut self.sealed)
    }

    /// Looks up the names of silent members again.
    pub(super) fn run_periodic(&mut self) {
        let now = Moment::now();
        for (&id, peer) in &mut self.peers {
            if peer.wants_resolving(now)
                && let Some(member) = self.settings.members.iter().find(|member| member.id == id)
            {
                self.resolver.request(id, &member.address);
            }
        }
    }

    pub(super) fn resolved(&mut self, member: NodeId, address: SocketAddr) {
        if let Some(peer) = self.peers.get_mut(&member) {
            peer.configured = Some(address);
        }
    }

    pub(super) fn use_keys(&mut self, keys: &Keyring) {
        self.sealer.rekey(keys);
        self.fingerprints = keys.fingerprints();
    }

    /// The fingerprints of the keys: the first one seals, all of them open.
    pub(super) fn fingerprints(&self) -> &[String] {
        &self.fingerprints
    }

    /// The members that this node reaches, itself included. Status, page and metrics all use this answer. `by_algorithm`:
    /// what the algorithm says about a member, if it watches that.
    pub(super) fn reachable(
        &self,
        now: Moment,
        by_algorithm: impl Fn(NodeId) -> Option<bool>,
    ) -> PeerSet {
        let peers = self.peers.iter();
        let others = peers.filter(|(id, peer)| peer.is_reachable(now, by_algorithm(**id)));
        others.map(|(id, _)| *id).chain([self.settings.me]).collect()
    }

    /// The members that have answered from another configuration lately.
    pub(super) fn config_mismatches(&self, now: Moment) -> Vec<NodeId> {
        let is_mismatched = |peer: &Peer| peer.rejected(now) == Some(Rejection::Configuration);
        let mismatched = self.peers.iter().filter(|(_, peer)| is_mismatched(peer));
        mismatched.map(|(id, _)| *id).collect()
    }

    /// The node that is not on this node's list and sent something lately, and from where.
    pub(super) fn stranger(&self, now: Moment) -> Option<(NodeId, SocketAddr)> {
        let recent = self.stranger.filter(|(.., at)| now.since(*at) < STRANGER);
        recent.map(|(id, address, _)| (id, address))
    }

    /// The path to a member; none to this member itself.
    pub(super) fn peer(&self, member: NodeId) -> Option<&Peer> {
        self.peers.get(&member)
    }
}

/// The answer to the challenge in a datagram, if there is one: its version, receiver and session. It states nothing else.
fn answer_to(opened: &Opened<'_>) -> Option<(u8, NodeId, SessionId, Content<'static>)> {
    let Content::Greeting(Greeting { ask: Some(challenge), .. }) = opened.content else {
        return None;
    };
    let (incarnation, seen) = (Incarnation::default(), Incarnation::default());
    let answer = Some(challenge);
    let greeting = Greeting { ask: None, answer, incarnation, seen, wants_roster: false };
    let Envelope { from, session, .. } = opened.envelope;
    Some((opened.version, from, session, Content::Greeting(greeting)))
}

/// Errors about an earlier datagram, for example that no process listens at its destination.
fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, Interrupted, NetworkUnreachable};
    matches!(error.kind(), ConnectionRefused | HostUnreachable | Interrupted | NetworkUnreachable)
}

/// An address as people write it: an IPv4 address may have been received in its IPv6 form.
pub(super) fn canonical(address: SocketAddr) -> String {
    SocketAddr::new(address.ip().to_canonical(), address.port()).to_string()
}

#[cfg(test)]
mod tests;
