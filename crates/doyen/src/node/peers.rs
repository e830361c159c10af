//! The sessions between this node and every other member: who is at the other end, in which of its lives, and where.
//!
//! Sealing proves that a datagram was made by a member. It does not prove when: a recording opens as well as the
//! original. So every process draws a random **session** number when it starts, and gets to know the session of every
//! other by asking.
//!
//! ```text
//!   n1, session a                                     n2, session b
//!     │  Hello  ask x                                   │
//!     │ ──────────────────────────────────────────────▶ │  a is somebody new: answer, and ask as well
//!     │                        Hello  answer x, ask y   │
//!     │ ◀────────────────────────────────────────────── │
//!  b is met                                             │
//!     │  Hello  answer y                                │
//!     │ ──────────────────────────────────────────────▶ │  a is met
//! ```
//!
//! - **S1** A peer's session is **met** when a Hello from it repeats the question that stands open and is for this
//!   session. No recording can do that: the question is random and was never asked before.
//! - **S2** A message of the election counts only from the met session, for this session, and with a counter that has
//!   not come. Any other is rejected and prompts a Hello (S6).
//! - **S3** A session is met only if its incarnation is above that of the peer's session met before. So nothing leads
//!   back to an earlier life.
//! - **S4** A Hello from the met session counts if its counter has not come, whichever life of this node it is for.
//!   Its question is answered.
//! - **S5** A question from any other session is answered too, for its process must learn whom it talks to (S9), and
//!   the answer asks in turn, unless S3 forbids that it be met.
//! - **S6** What S2 prompts and S5 answers: at most one in 20 ms for each member, for here a recording may be at
//!   work.
//! - **S7** A question is repeated until it is answered, after 100 ms, 200 ms and so on up to a second. Two seconds
//!   after an answer comes the next question: those are the pings, and they measure the round trip.
//! - **S8** Nothing but a Hello is sent to a peer that is not met. If somebody wants to send it something, the next
//!   Hello goes 100 ms after the last.
//! - **S9** A Hello tells its receiver the highest incarnation of the receiver's that the sender has met in *another*
//!   session. If that is not below its own, its state is a copy of an old one, or somebody runs a copy of it: it must
//!   stop.
//!
//! S9 is what finds a disk that was restored from a backup, and a machine that was cloned (amendment 4 of the
//! specification). A backup of an earlier life comes up with an incarnation that has been met, and stops. A clone of
//! the life that runs comes up one higher, since every start raises it; it is met, and the original stops. Of clones
//! with the same incarnation each is found by whoever has met another first, so perhaps all stop. What peers have met
//! they know since they started: nobody finds a copy after all others have restarted.
//!
//! A process that has lost its state uses the same to come back: it greets with incarnation zero, which is never met,
//! and [`Peers::highest_seen_of_me`] says which incarnation to go beyond when everybody has answered.
//!
//! **Addresses.** A peer is where its newest datagram of the met session came from (the highest counter so far, so
//! that no recording can lead elsewhere), or whence it was met. So members may change their address when they restart
//! and in mid-run. A peer that does not answer is greeted both there and where its configured name leads to, and
//! [`Peers::needs_resolving`] wants the name resolved again.
//!
//! **Hostile datagrams** cost no memory: there is one record for each member, none for anybody else. What does not
//! open is not answered. A recorded Hello can have one sent to a third party, which is as long; see S6.
//!
//! There is no clock and no socket here: times come in, datagrams go out by an [`Outbox`].

mod outbox;
mod peer;

use std::net::SocketAddr;
use std::time::Duration;

use doyen_core::members::{Incarnation, NodeId};

use super::clock::Moment;
use super::wire::{Challenge, Content, Envelope, Hello, Rejection, Sealer, Session, Unsealed};
use crate::key::Keyring;
use peer::{Acquaintance, Peer};

pub use outbox::Outbox;

/// Who this node is, in this life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Which member.
    pub me: NodeId,
    /// Which incarnation of it; zero if its state is lost and it asks the others.
    pub incarnation: Incarnation,
    /// Which session, drawn anew at every start.
    pub session: Session,
    /// The number of its configuration: members with another are not heard.
    pub configuration: u32,
}

/// What came with a datagram that was not rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received<'a> {
    /// Nothing that concerns anybody else.
    Nothing,
    /// A message of the election.
    Election {
        /// From whom.
        from: NodeId,
        /// As the core encodes it.
        bytes: &'a [u8],
    },
    /// A life of this peer was met for the first time.
    Met(NodeId),
    /// This node must stop: its state is an old copy, or somebody runs a copy of it.
    StateIsOld {
        /// Which of its incarnations has been met before, in another session.
        seen: Incarnation,
        /// By whom.
        by: NodeId,
    },
}

/// Why a message of the election was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotSent {
    /// The receiver is not among the others.
    #[error("{0} is no other member")]
    Stranger(NodeId),
    /// The receiver has not been met. It is being greeted.
    #[error("{0} has not answered yet")]
    NotMet(NodeId),
    /// The message cannot be sealed.
    #[error(transparent)]
    Unsealed(#[from] Unsealed),
}

/// What is known of the way to a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contact {
    /// Who.
    pub id: NodeId,
    /// Where its datagrams come from, once it has been met.
    pub address: Option<SocketAddr>,
    /// Which of its incarnations has been met.
    pub incarnation: Option<Incarnation>,
    /// When something was last accepted from it.
    pub last_heard: Option<Moment>,
    /// The round-trip time, smoothed.
    pub round_trip: Option<Duration>,
    /// The highest incarnation of this node's that the peer has met in other sessions, once it has said so.
    pub seen_of_me: Option<Incarnation>,
    /// Whether it was last heard to be configured otherwise.
    pub configured_otherwise: bool,
}

/// The sessions with all other members.
#[derive(Debug)]
pub struct Peers {
    identity: Identity,
    sealer: Sealer,
    /// In ascending order of their ids.
    peers: Vec<Peer>,
}

/// A datagram that opened, from a peer.
#[derive(Clone, Copy)]
struct Arrival {
    now: Moment,
    source: SocketAddr,
    /// Which of the peers sent it.
    position: usize,
    envelope: Envelope,
}

impl Peers {
    /// Knows nobody yet; everybody is to be greeted at once.
    pub fn new(
        identity: Identity,
        members: impl IntoIterator<Item = NodeId>,
        sealer: Sealer,
        now: Moment,
    ) -> Self {
        let others = members.into_iter().filter(|&id| id != identity.me);
        let mut peers: Vec<Peer> = others.map(|id| Peer::new(id, now)).collect();
        peers.sort_unstable_by_key(|peer| peer.id);
        peers.dedup_by_key(|peer| peer.id);
        Self { identity, sealer, peers }
    }

    /// Uses other keys from now on. Sessions go on.
    pub fn rekey(&mut self, keys: &Keyring) {
        self.sealer.rekey(keys);
    }

    /// A datagram came. Opens it in place; at most one goes out in answer.
    pub fn on_datagram<'a>(
        &mut self,
        now: Moment,
        source: SocketAddr,
        datagram: &'a mut [u8],
        out: &mut Outbox,
    ) -> Result<Received<'a>, Rejection> {
        let (envelope, content) = self.sealer.open(datagram)?;
        let position = self.sender_of(&envelope)?;
        let arrival = Arrival { now, source, position, envelope };
        match content {
            Content::Hello(hello) => self.on_hello(&arrival, hello, out),
            Content::Election(bytes) => {
                self.on_election(&arrival, out)?;
                Ok(Received::Election { from: envelope.from, bytes })
            }
        }
    }

    /// Sends a message of the election, if the receiver has been met.
    pub fn send(
        &mut self,
        now: Moment,
        to: NodeId,
        message: &[u8],
        out: &mut Outbox,
    ) -> Result<(), NotSent> {
        let position = self.position(to).ok_or(NotSent::Stranger(to))?;
        let peer = &mut self.peers[position];
        let Some(Acquaintance { session, address, .. }) = peer.met else {
            peer.hurry(now);
            return Err(NotSent::NotMet(to));
        };
        self.post(position, Some(session), Content::Election(message), address, out)?;
        Ok(())
    }

    /// When [`on_time`](Self::on_time) is to be called next; never, if there is nobody else.
    pub fn due(&self) -> Option<Moment> {
        self.peers.iter().map(Peer::hello_due).min()
    }

    /// Greets those who are due (S7).
    pub fn on_time(&mut self, now: Moment, out: &mut Outbox) {
        for position in 0..self.peers.len() {
            let peer = &mut self.peers[position];
            if peer.hello_due() > now {
                continue;
            }
            let targets = peer.targets();
            peer.on_hello_sent(now);
            let Ok(challenge) = peer.ask(now) else {
                out.fail();
                continue;
            };
            let known = peer.met.as_ref().map(|met| met.session);
            for target in targets.into_iter().flatten() {
                self.greet(position, known, Some(challenge), None, target, out);
            }
        }
    }

    /// The peers whose names are to be resolved now, at the start and while they are silent. Names them again only
    /// after some seconds. To be asked after every [`on_time`](Self::on_time).
    pub fn needs_resolving(&mut self, now: Moment) -> impl Iterator<Item = NodeId> + '_ {
        self.peers.iter_mut().filter_map(move |peer| peer.wants_resolving(now).then_some(peer.id))
    }

    /// This is where the configured name of `peer` leads to.
    pub fn resolved(&mut self, now: Moment, peer: NodeId, address: SocketAddr) {
        if let Some(position) = self.position(peer) {
            self.peers[position].on_resolved(now, address);
        }
    }

    /// What is known of every other member, in ascending order of their ids.
    pub fn contacts(&self) -> impl ExactSizeIterator<Item = Contact> + '_ {
        self.peers.iter().map(Peer::contact)
    }

    /// Which other member is at this address: where it was met, or where its name leads to.
    pub fn member_at(&self, address: SocketAddr) -> Option<NodeId> {
        self.peers.iter().find(|peer| peer.is_at(address)).map(|peer| peer.id)
    }

    /// The highest incarnation of this node's that anybody has met in another session, once everybody has answered.
    pub fn highest_seen_of_me(&self) -> Option<Incarnation> {
        let highest = |highest: Incarnation, peer: &Peer| Some(highest.max(peer.seen_of_me?));
        self.peers.iter().try_fold(Incarnation::default(), highest)
    }

    fn position(&self, id: NodeId) -> Option<usize> {
        self.peers.binary_search_by_key(&id, |peer| peer.id).ok()
    }

    /// Which peer sent this, if it is one of ours and it is for this node.
    fn sender_of(&mut self, envelope: &Envelope) -> Result<usize, Rejection> {
        let position = self.position(envelope.from).ok_or(Rejection::Stranger)?;
        if envelope.to != self.identity.me || envelope.group != 0 {
            return Err(Rejection::Misdirected);
        }
        if envelope.configuration != self.identity.configuration {
            self.peers[position].configured_otherwise = true;
            return Err(Rejection::Configuration);
        }
        Ok(position)
    }

    /// S2.
    fn on_election(&mut self, arrival: &Arrival, out: &mut Outbox) -> Result<(), Rejection> {
        let peer = &mut self.peers[arrival.position];
        let for_me = arrival.envelope.known == Some(self.identity.session);
        if for_me && peer.has_met(arrival.envelope.session) {
            return peer.on_accepted(arrival.now, arrival.source, arrival.envelope.counter);
        }
        if peer.may_be_prompted(arrival.now) {
            self.ask_and_answer(arrival, None, out);
        }
        Err(Rejection::Session)
    }

    fn on_hello<'a>(
        &mut self,
        arrival: &Arrival,
        hello: Hello,
        out: &mut Outbox,
    ) -> Result<Received<'a>, Rejection> {
        let Arrival { now, source, position, envelope } = *arrival;
        let peer = &mut self.peers[position];
        let for_me = envelope.known == Some(self.identity.session);
        if for_me {
            peer.seen_of_me = peer.seen_of_me.max(Some(hello.seen));
            // S9. It was said in this life of the process, so it holds whenever it arrives.
            let mine = self.identity.incarnation;
            if mine != Incarnation::default() && hello.seen >= mine {
                return Ok(Received::StateIsOld { seen: hello.seen, by: peer.id });
            }
        }
        let answers = for_me && hello.answer.is_some_and(|answer| peer.has_asked(answer));
        let is_met = peer.has_met(envelope.session);
        if !is_met {
            if !answers || !peer.may_meet(hello.incarnation) {
                return self.on_unknown(arrival, hello, out);
            }
            peer.meet(envelope.session, hello.incarnation, source);
        }
        peer.on_accepted(now, source, envelope.counter)?;
        if answers {
            peer.on_answer(now);
        }
        if hello.ask.is_some() {
            self.greet(position, Some(envelope.session), None, hello.ask, source, out);
        }
        Ok(if is_met { Received::Nothing } else { Received::Met(envelope.from) })
    }

    /// S5, S6: a Hello from a life that has not been met, and is not met by this.
    fn on_unknown<'a>(
        &mut self,
        arrival: &Arrival,
        hello: Hello,
        out: &mut Outbox,
    ) -> Result<Received<'a>, Rejection> {
        let Arrival { now, source, position, envelope } = *arrival;
        let peer = &mut self.peers[position];
        if hello.ask.is_none() {
            return Err(Rejection::Session);
        }
        if !peer.may_be_prompted(now) {
            return Err(Rejection::Limited);
        }
        if peer.may_meet(hello.incarnation) {
            self.ask_and_answer(arrival, hello.ask, out);
            return Ok(Received::Nothing);
        }
        self.greet(position, Some(envelope.session), None, hello.ask, source, out);
        match hello.incarnation == Incarnation::default() {
            // It has lost its state, and asks what became of it.
            true => Ok(Received::Nothing),
            // An earlier life, or a copy.
            false => Err(Rejection::Session),
        }
    }

    /// Asks whoever sent this, and answers, if there was a question.
    fn ask_and_answer(&mut self, arrival: &Arrival, answer: Option<Challenge>, out: &mut Outbox) {
        let Arrival { now, source, position, envelope } = *arrival;
        match self.peers[position].ask(now) {
            Ok(ask) => {
                self.greet(position, Some(envelope.session), Some(ask), answer, source, out);
            }
            Err(_) => out.fail(),
        }
    }

    /// Sends a Hello.
    fn greet(
        &mut self,
        position: usize,
        known: Option<Session>,
        ask: Option<Challenge>,
        answer: Option<Challenge>,
        to: SocketAddr,
        out: &mut Outbox,
    ) {
        let seen = self.peers[position].met_apart_from(known);
        let hello = Hello { ask, answer, incarnation: self.identity.incarnation, seen };
        if self.post(position, known, Content::Hello(hello), to, out).is_err() {
            out.fail();
        }
    }

    fn post(
        &mut self,
        position: usize,
        known: Option<Session>,
        content: Content<'_>,
        to: SocketAddr,
        out: &mut Outbox,
    ) -> Result<(), Unsealed> {
        let peer = &mut self.peers[position];
        let Identity { me, session, configuration, .. } = self.identity;
        let counter = peer.next_counter();
        let envelope =
            Envelope { from: me, to: peer.id, session, known, counter, configuration, group: 0 };
        out.push(to, |bytes| self.sealer.seal(&envelope, content, bytes))
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
