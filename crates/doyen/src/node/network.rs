//! The socket: seals and opens datagrams, and knows the address and the protocol version of every member. Which process
//! of a member counts is decided by the [sessions](doyen_core::session) of the core.
//!
//! A datagram that cannot be sent is treated like one that is lost in transit: the algorithms tolerate that, and a full
//! buffer must not block the loop.
//!
//! **Versions.** A letter is sent in the highest version that its session has spoken to this node, an answer in the version
//! of the question. A question is sent in every version until the peer is known to read the current one.
//!
//! **Names** are looked up at the start, and again while a member is silent.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use doyen_core::members::{NodeId, PeerSet, SessionId};
use doyen_core::node::Packet;
use doyen_core::registry::AnyMessage;
use doyen_core::session::{self, Challenge, Letter};

use super::Failure;
use super::resolver::{self, Resolver};
use super::status::Counters;
use super::waker::CommandSender;
use super::wire::{
    Content, EARLIEST, Envelope, LIMIT, Opened, Rejection, Sealer, Unsealed, VERSION,
};
use crate::clock::Moment;
use crate::config::{Member, Settings};
use crate::guardian::Datagram;
use crate::key::Keyring;

/// After this long without a letter (two pings and their repetitions) a member is unreachable, if the algorithm does not
/// watch that itself.
const UNREACHABLE: Duration = Duration::from_secs(5);

/// After this long without a letter the name of a member is looked up again: a ping and its first repetitions were not
/// answered.
const SILENT: Duration = Duration::from_secs(3);

/// The least time between two look-ups of the same name.
const RESOLVE: Duration = Duration::from_secs(5);

/// What a process sends.
type Outgoing = Letter<Packet<AnyMessage>>;

/// The socket, and the paths to all other members.
pub(super) struct Network {
    socket: UdpSocket,
    sealer: Sealer,
    session: SessionId,
    configuration: u32,
    peers: BTreeMap<NodeId, Peer>,
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

/// The path to a member.
#[derive(Debug, Default)]
pub(super) struct Peer {
    /// What its configured name resolved to last.
    configured: Option<SocketAddr>,
    /// Where its newest letter came from.
    pub(super) address: Option<SocketAddr>,
    /// Its current session, and the version that this session speaks.
    met: Option<(SessionId, u8)>,
    /// How many of its letters have been accepted.
    accepted: u64,
    /// When its last letter was accepted.
    pub(super) last_seen: Option<Moment>,
    /// The smoothed round-trip time.
    pub(super) round_trip: Option<Duration>,
    /// The last challenge that was sent, when, and whether it was repeated: an answer to a repeated challenge says
    /// nothing about the round-trip time.
    asked: Option<(Challenge, Moment, bool)>,
    /// When its name was last looked up.
    resolved: Option<Moment>,
    /// Whether its last datagram came from another configuration.
    pub(super) config_mismatch: bool,
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
    /// A letter of a member.
    Letter { source: SocketAddr, opened: Opened<'a> },
}

/// A datagram that was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Dropped {
    pub(super) source: SocketAddr,
    /// The member with this address, if one is known; the datagram itself proves nothing.
    pub(super) member: Option<NodeId>,
    pub(super) reason: Rejection,
}

impl Network {
    /// Opens the socket of a process with this session.
    pub(super) fn open(
        settings: &Arc<Settings>,
        session: SessionId,
        commands: CommandSender,
    ) -> Result<Self, Failure> {
        let address = settings.listen;
        let failed = |error| Failure::Listen { address, error };
        let socket = UdpSocket::bind(address).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let resolver = Resolver::start(settings.members.len(), address, commands)
            .map_err(|error| Failure::System { what: "start a thread for names", error })?;
        let keys = Keyring::of(settings.key_file.as_ref());
        let keys = keys.map_err(|error| Failure::Keys(error.to_string()))?;
        let others = settings.members.iter().filter(|member| member.id != settings.me);
        let peer = |member: &Member| {
            // An address that is not a name needs no look-up.
            let configured = resolver::parse(&member.address, address);
            (member.id, Peer { configured, ..Peer::default() })
        };
        Ok(Self {
            socket,
            sealer: Sealer::new(&keys, &settings.cluster),
            session,
            configuration: settings.configuration_id(),
            peers: others.map(peer).collect(),
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
        let admitted = opened.and_then(|opened| {
            let peer = self.peers.get_mut(&opened.envelope.from).ok_or(Rejection::Stranger)?;
            peer.admit(me, configuration, self.session, &opened)?;
            Ok(opened)
        });
        match admitted {
            Ok(opened) => Ok(Received::Letter { source, opened }),
            Err(reason) => {
                counters.reject(reason);
                let is_there =
                    |peer: &Peer| [peer.address, peer.configured].contains(&Some(source));
                let member = self.peers.iter().find(|(_, peer)| is_there(peer)).map(|(id, _)| *id);
                Ok(Received::Rejected(Dropped { source, member, reason }))
            }
        }
    }

    /// A letter of this session, in a datagram of this version, is about to be handled.
    pub(super) fn begin_letter(&mut self, from: NodeId, session: SessionId, version: u8) {
        self.current = Some(Current { from, session, version });
    }

    /// The letter has been handled; `contact` is what the sessions know about its sender.
    pub(super) fn end_letter(&mut self, contact: Option<session::Contact>) {
        let (Some(Current { from, session, version }), Some(contact)) =
            (self.current.take(), contact)
        else {
            return;
        };
        let Some(peer) = self.peers.get_mut(&from) else { return };
        let same = peer.met.filter(|(met, _)| *met == contact.met.session);
        if same.is_none() || contact.accepted > peer.accepted {
            peer.last_seen = Some(Moment::now());
            peer.config_mismatch = false;
        }
        let known = same.map_or(EARLIEST, |(_, version)| version);
        let speaks = if session == contact.met.session { version.max(known) } else { known };
        peer.met = Some((contact.met.session, speaks));
        (peer.accepted, peer.address) = (contact.accepted, contact.address);
    }

    pub(super) fn send(&mut self, to: NodeId, letter: &Outgoing, counters: &Counters) {
        let Some(peer) = self.peers.get_mut(&to) else { return };
        let Some(address) = letter.at.or(peer.configured) else {
            return Counters::add(&counters.unsent, 1);
        };
        let asks = matches!(&letter.content, session::Content::Greeting(it) if it.ask.is_some());
        let versions = peer.versions(to, letter.known, asks, self.current);
        if let session::Content::Greeting(greeting) = &letter.content {
            peer.ask(greeting.ask);
        }
        for &version in versions {
            let sealed = self.seal(version, to, letter).map_err(io::Error::other);
            match sealed.and_then(|()| self.socket.send_to(&self.sealed, address)) {
                Ok(length) => {
                    Counters::add(&counters.sent, 1);
                    Counters::add(&counters.sent_bytes, length as u64);
                }
                Err(_) => Counters::add(&counters.unsent, 1),
            }
        }
    }

    /// A letter to the member's present session as a datagram, for a process that sends it later, and where to.
    pub(super) fn sealed(&mut self, to: NodeId, letter: &Outgoing) -> Option<Datagram> {
        let peer = self.peers.get(&to)?;
        let address = letter.at.or(peer.configured)?;
        let &version = peer.versions(to, letter.known, false, None).first()?;
        self.seal(version, to, letter).ok()?;
        Some(Datagram { address, bytes: self.sealed.clone() })
    }

    /// Seals a letter into the buffer for that.
    fn seal(&mut self, version: u8, to: NodeId, letter: &Outgoing) -> Result<(), Unsealed> {
        let content = match &letter.content {
            session::Content::Greeting(greeting) => Content::Greeting(*greeting),
            session::Content::Roster(roster) => Content::Roster(roster.clone()),
            session::Content::Inner(packet) => {
                let mut room = std::mem::take(&mut self.encoded);
                room.clear();
                let earlier = (version < VERSION)
                    .then(|| packet.clone().map(AnyMessage::for_earlier_version));
                // Encoding into a vector cannot fail.
                self.encoded = postcard::to_extend(earlier.as_ref().unwrap_or(packet), room)
                    .unwrap_or_default();
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

    /// The members whose last datagram came from another configuration.
    pub(super) fn config_mismatches(&self) -> Vec<NodeId> {
        let mismatched = self.peers.iter().filter(|(_, peer)| peer.config_mismatch);
        mismatched.map(|(id, _)| *id).collect()
    }

    /// The path to a member; none to this member itself.
    pub(super) fn peer(&self, member: NodeId) -> Option<&Peer> {
        self.peers.get(&member)
    }
}

impl Peer {
    /// Whether something has arrived from it since this node started, its configuration matches, and it is not silent.
    fn is_reachable(&self, now: Moment, by_algorithm: Option<bool>) -> bool {
        let Some(last) = self.last_seen else { return false };
        by_algorithm.unwrap_or_else(|| now.since(last) <= UNREACHABLE) && !self.config_mismatch
    }

    /// Whether a datagram is for this member and from the same configuration. An answer to a challenge of `session` also
    /// measures the round-trip time.
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
            self.config_mismatch = true;
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

    /// Records a challenge that is being sent.
    fn ask(&mut self, challenge: Option<Challenge>) {
        let Some(challenge) = challenge else { return };
        self.asked = match self.asked {
            Some((asked, at, _)) if asked == challenge => Some((asked, at, true)),
            _ => Some((challenge, Moment::now(), false)),
        };
    }

    /// The versions in which a letter to the session `known` is sent. A question is sent in both until the peer is known
    /// to read the current one: perhaps only the earlier one has arrived so far, and that cannot ask for a roster.
    fn versions(
        &self,
        to: NodeId,
        known: Option<SessionId>,
        asks: bool,
        current: Option<Current>,
    ) -> &'static [u8] {
        let met =
            self.met.filter(|(session, _)| Some(*session) == known).map(|(_, version)| version);
        let asked = current.filter(|it| it.from == to && Some(it.session) == known);
        match met.max(asked.map(|it| it.version)) {
            Some(EARLIEST) if !asks => &[EARLIEST],
            Some(VERSION) => &[VERSION],
            _ => &[VERSION, EARLIEST],
        }
    }

    /// Whether its name should be looked up now. If so, it counts as looked up.
    fn wants_resolving(&mut self, now: Moment) -> bool {
        let is_silent = self.last_seen.is_none_or(|seen| now.since(seen) >= SILENT);
        let wants = is_silent && self.resolved.is_none_or(|last| now.since(last) >= RESOLVE);
        if wants {
            self.resolved = Some(now);
        }
        wants
    }
}

/// A moving average in which the latest measurement counts an eighth, as in TCP.
fn smoothed(before: Option<Duration>, measured: Duration) -> Duration {
    before.map_or(measured, |before| (before * 7 + measured) / 8)
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
mod tests {
    use super::*;

    /// Otherwise one lost datagram could make two nodes speak the earlier version for good.
    #[test]
    fn a_question_is_sent_in_both_versions_until_the_current_one_is_known_to_be_read() {
        let (id, session) = (NodeId(2), SessionId::from_random(7));
        let versions = |met: Option<u8>, asked: Option<u8>, asks| {
            let peer = Peer { met: met.map(|version| (session, version)), ..Peer::default() };
            let current = |version| Current { from: id, session, version };
            peer.versions(id, Some(session), asks, asked.map(current)).to_vec()
        };
        assert_eq!(versions(None, None, true), [VERSION, EARLIEST]);
        assert_eq!(versions(Some(EARLIEST), None, true), [VERSION, EARLIEST]);
        assert_eq!(versions(None, Some(EARLIEST), true), [VERSION, EARLIEST]);
        assert_eq!(versions(Some(EARLIEST), None, false), [EARLIEST]);
        assert_eq!(versions(Some(VERSION), Some(EARLIEST), true), [VERSION]);
    }

    #[test]
    fn the_algorithm_decides_which_members_are_reachable_once_they_were_seen() {
        let second = |seconds: u64| Moment::from_nanos(seconds * 1_000_000_000);
        let (seen, now) = (second(10), second(20));
        let peer = |last_seen| Peer { last_seen, ..Peer::default() };
        let known = peer(Some(seen));
        assert!(known.is_reachable(now, Some(true)), "it may wait longer than the host");
        assert!(!known.is_reachable(seen, Some(false)), "or less long");
        assert!(known.is_reachable(second(15), None));
        assert!(!known.is_reachable(second(16), None));
        assert!(!peer(None).is_reachable(now, Some(true)), "it was never seen");
        let mismatch = Peer { config_mismatch: true, ..peer(Some(seen)) };
        assert!(!mismatch.is_reachable(seen, Some(true)));
    }
}
