//! The socket, and the sessions that run over it.
//!
//! A datagram that cannot be sent is one that got lost: the algorithms bear that, and a full buffer must not hold the
//! loop up.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use doyen_core::members::{Incarnation, NodeId, PeerSet};

use super::Failure;
use super::bell::Requests;
use super::clock::Moment;
use super::peers::{Contact, Identity, Outbox, Peers, Received};
use super::resolver::Resolver;
use super::status::Counters;
use super::wire::{LIMIT, Rejection, Sealer, Session};
use crate::config::Settings;
use crate::key::Keyring;

/// After so long without a word, two pings and their repetitions, a member counts as silent where the algorithm does
/// not watch over that itself.
const PATIENCE: Duration = Duration::from_secs(5);

/// The network.
pub(super) struct Network {
    socket: UdpSocket,
    peers: Peers,
    outbox: Outbox,
    resolver: Resolver,
    settings: Arc<Settings>,
    /// One byte more than any datagram of doyen's: what fills it is too long.
    buffer: Box<[u8; LIMIT + 1]>,
}

/// What the socket gave.
#[derive(Debug)]
pub(super) enum Arrival<'a> {
    /// Nothing waits.
    Nothing,
    /// Something that does not concern the election.
    Upkeep,
    /// Something that was dropped.
    Rejected(Dropped),
    /// A message of the election.
    Election {
        /// From whom.
        from: NodeId,
        /// As the core encodes it.
        bytes: &'a [u8],
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
    /// Opens the socket. The node does not know yet which of its lives this is.
    pub(super) fn open(settings: &Arc<Settings>, requests: Requests) -> Result<Self, Failure> {
        let address = settings.listen;
        let failed = |error| Failure::Listen { address, error };
        let socket = UdpSocket::bind(address).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let resolver = Resolver::start(settings.members.len(), address, requests)
            .map_err(|error| Failure::System { what: "start a thread for names", error })?;
        Ok(Self {
            socket,
            peers: greet_as(settings, Incarnation::default())?,
            outbox: Outbox::new(),
            resolver,
            settings: Arc::clone(settings),
            buffer: Box::new([0; LIMIT + 1]),
        })
    }

    /// Begins a life.
    pub(super) fn begin(&mut self, life: Incarnation) -> Result<(), Failure> {
        self.peers = greet_as(&self.settings, life)?;
        Ok(())
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
        let datagram = &mut self.buffer[..length];
        let received = self.peers.on_datagram(Moment::now(), source, datagram, &mut self.outbox);
        post(&self.socket, &mut self.outbox, counters);
        match received {
            Ok(Received::Election { from, bytes }) => Ok(Arrival::Election { from, bytes }),
            Ok(Received::Nothing | Received::Met(_)) => Ok(Arrival::Upkeep),
            Ok(Received::StateIsOld { seen, by }) => {
                Err(Failure::Cloned { seen, by: self.settings.name_of(by).to_owned() })
            }
            Err(reason) => {
                Counters::add(&counters.rejected[reason as usize], 1);
                let member = self.peers.member_at(source);
                Ok(Arrival::Rejected(Dropped { source, member, reason }))
            }
        }
    }

    /// Sends a message of the election.
    pub(super) fn send(&mut self, to: NodeId, message: &[u8], counters: &Counters) {
        match self.peers.send(Moment::now(), to, message, &mut self.outbox) {
            Ok(()) => post(&self.socket, &mut self.outbox, counters),
            Err(_) => Counters::add(&counters.unsent, 1),
        }
    }

    /// When [`keep_up`](Self::keep_up) is to be called next.
    pub(super) fn due(&self) -> Option<Moment> {
        self.peers.due()
    }

    /// Greets and pings who is due, and has names looked up.
    pub(super) fn keep_up(&mut self, counters: &Counters) {
        let now = Moment::now();
        self.peers.on_time(now, &mut self.outbox);
        post(&self.socket, &mut self.outbox, counters);
        for id in self.peers.needs_resolving(now) {
            if let Some(member) = self.settings.members.iter().find(|member| member.id == id) {
                self.resolver.ask(id, &member.address);
            }
        }
    }

    /// A name was looked up.
    pub(super) fn resolved(&mut self, member: NodeId, address: SocketAddr) {
        self.peers.resolved(Moment::now(), member, address);
    }

    /// Uses other keys from now on.
    pub(super) fn use_keys(&mut self, keys: &Keyring) {
        self.peers.rekey(keys);
    }

    /// Whom this node hears, itself included: the one answer for everything that is shown. `by_algorithm`: what the
    /// algorithm says of a member, if it watches over who falls silent.
    pub(super) fn heard(
        &self,
        now: Moment,
        by_algorithm: impl Fn(NodeId) -> Option<bool>,
    ) -> PeerSet {
        let heard = |contact: &Contact| is_heard(contact, now, by_algorithm(contact.id));
        let others = self.peers.contacts().filter(heard).map(|contact| contact.id);
        others.chain([self.settings.me]).collect()
    }

    /// What is known of the way to everybody else.
    pub(super) fn contacts(&self) -> impl Iterator<Item = Contact> + '_ {
        self.peers.contacts()
    }

    /// What is known of the way to a member; nothing of the way to itself.
    pub(super) fn contact(&self, member: NodeId) -> Option<Contact> {
        self.peers.contacts().find(|contact| contact.id == member)
    }

    /// Those of whom nothing has been heard in this life.
    pub(super) fn unheard(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.peers.contacts().filter(|contact| contact.seen_of_me.is_none()).map(|one| one.id)
    }

    /// The highest life of this member that anybody knows of, once everybody has answered.
    pub(super) fn latest_life(&self) -> Option<Incarnation> {
        self.peers.highest_seen_of_me()
    }
}

/// Whether a member is heard: something has come from it in this life of the node, it is not configured otherwise, and
/// it has not fallen silent.
fn is_heard(contact: &Contact, now: Moment, by_algorithm: Option<bool>) -> bool {
    let Some(last) = contact.last_heard else { return false };
    let speaks = by_algorithm.unwrap_or_else(|| now.since(last) <= PATIENCE);
    speaks && !contact.configured_otherwise
}

/// Sessions with everybody, for this life; none of them is met yet.
fn greet_as(settings: &Settings, incarnation: Incarnation) -> Result<Peers, Failure> {
    let keys = Keyring::of(settings.key_file.as_deref());
    let keys = keys.map_err(|error| Failure::Keys(error.to_string()))?;
    let session = Session::draw().map_err(|error| Failure::System {
        what: "draw random numbers",
        error: io::Error::other(error.to_string()),
    })?;
    let configuration = settings.configuration_id();
    let identity = Identity { me: settings.me, incarnation, session, configuration };
    let sealer = Sealer::new(&keys, &settings.cluster);
    let members = settings.members.iter().map(|member| member.id);
    Ok(Peers::new(identity, members, sealer, Moment::now()))
}

/// Sends what is to go out.
fn post(socket: &UdpSocket, outbox: &mut Outbox, counters: &Counters) {
    for (to, datagram) in outbox.iter() {
        match socket.send_to(datagram, to) {
            Ok(length) => {
                Counters::add(&counters.sent, 1);
                Counters::add(&counters.sent_bytes, length as u64);
            }
            Err(_) => Counters::add(&counters.unsent, 1),
        }
    }
    Counters::add(&counters.unsent, outbox.failed());
    outbox.clear();
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

    #[test]
    fn who_is_heard_is_the_algorithms_to_say_of_those_that_have_spoken() {
        let second = |seconds: u64| Moment::from_nanos(seconds * 1_000_000_000);
        let (heard, now) = (second(10), second(20));
        let contact = Contact {
            id: NodeId(2),
            address: None,
            incarnation: None,
            last_heard: Some(heard),
            round_trip: None,
            seen_of_me: None,
            configured_otherwise: false,
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
