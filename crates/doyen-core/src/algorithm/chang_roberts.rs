//! Chang–Roberts (1979): the refined ring of os-textbook, the "Ring Election" of cs425.
//!
//! The members form a ring and send only to their clockwise neighbour. A member that misses the coordinator sends ELECTION
//! with its own key. A higher member replaces the key by its own; a member that has already sent a higher key swallows the
//! message. So only the highest member sees its own message return. It has won, and sends ELECTED once round the ring.
//!
//! | rule | event | action |
//! |---|---|---|
//! | CR1 | start, not participating | participates; sends ELECTION with its own key |
//! | CR2 | ELECTION, higher key | participates; passes it on |
//! | CR3 | ELECTION, lower key, not participating | participates; sends its own key instead |
//! | CR4 | ELECTION, lower key, participating | swallows it |
//! | CR5 | ELECTION, its own key | leads, no longer participates; sends ELECTED |
//! | CR6 | ELECTED, another's key | follows it, no longer participates; passes it on |
//! | CR7 | ELECTED, its own key | removes it from the ring |
//!
//! **Textbook mode.** os-textbook has no CR4: a higher process sends its own message "to start a new election" for every
//! lower one that arrives. Then m initiators cost up to m(3n−1) messages and the winner announces itself m times: the variant
//! `os-textbook-no-swallow`. cs425 replaces a message only if the member "has not forwarded an election message earlier", which must
//! include one that it has sent itself, and does not say what becomes of the others: they are swallowed. In os-textbook "all
//! other processes abandon their elections": this is the end of participation in CR6. Keys contain the id, so that equal
//! attributes do not make two winners. No member is polled: os-textbook lets "the control part of a failed process" forward,
//! so a message goes to the neighbour and skips only members that the failure detector reports as down. A member that has
//! no other member left wins without a message; read literally, os-textbook has it send both messages to itself.
//!
//! Cost: with one initiator, d hops from the highest member, d + 2n messages one after the other, at most 3n−1. os-textbook
//! calls that the maximum, but if several start at once it is n(n+1)/2 + n (all start, keys falling clockwise), and on average
//! over all rings n·Hₙ + n.
//!
//! A lost message stops the textbook ring: the participants swallow every new attempt (F14). A member that dies before its
//! winning message returns leaves a message that no member removes (F15).
//!
//! **Hardened mode** adds the rules of [`leader_tracker`](super::leader_tracker) and [`ring`], such as HOP-ACK and a way past
//! members that are down. ELECTION is a *bid*: the claim that its owner will make if it wins, so it identifies the election by
//! its term. In addition:
//!
//! - CR2, CR3, CR4: a member passes on a bid only if it is larger than any before, by term and then by key. So a member that
//!   took part in one election takes part in the next like any other (F14), and a bid that arrives a second time, as an orphan
//!   or a copy, is swallowed (F15). That is stricter than a hop limit: nothing goes round twice. ELECTED is treated alike
//!   (CR7);
//! - CR6: by the order of claims. A winner that the failure detector reports as down is not followed, although ELECTED is
//!   passed on: the member goes on waiting, or starts an election if it takes part in none, and members that receive
//!   from the winner make it defer (CR9);
//! - CR8: a member that has taken part and learns of no winner in time bids itself, with a higher term (F14, F15). The owner
//!   of the last bid comes first, then its successor, … Each failure doubles the wait;
//! - CR9: a member that leads, or follows a live leader, answers a lower bid with ALIVE instead, and the bidder defers (F8).
//!   It adopts the bid's term: when a leader has died and its followers notice one after the other, the last one bids after
//!   all others have passed on a bid;
//! - CR10: a bid of an older term than the member knows of is answered with NACK, and the bidder's next bid is higher.
//!
//! Without failures hardened mode sends the same messages, and a HOP-ACK for each.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::leader_tracker::{Action, LeaderClaim, LeaderTracker, Upkeep, UpkeepTimer, key_len};
use super::ring::{self, Hop, HopNumber, Hops, Round};
use crate::config::{Config, Timing, Variant};
use crate::explore::Explore;
use crate::members::{Key, NodeId, Term};
use crate::protocol::{self, Boot, Effects, Event, Kind, Protocol, View, varint_len};

/// A member that runs Chang–Roberts. Small, because there are simulations with millions of them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ChangRoberts {
    /// It also holds the participant flag, the only other state of a textbook member.
    tracker: LeaderTracker,
    hardened: Option<Box<Hardened>>,
}

/// The additional state of a hardened member.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Hardened {
    hops: Hops<Token>,
    /// The largest bid it has made or passed on.
    bid: Option<LeaderClaim>,
    /// The largest ELECTED it has sent or passed on.
    told: Option<LeaderClaim>,
}

/// The messages of the ring.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// "Elect this one", in textbook mode.
    Election {
        /// The highest member that the message has met.
        key: Key,
    },
    /// "This one is elected", in textbook mode.
    Elected {
        /// The winner.
        key: Key,
    },
    /// Hardened mode's messages round the ring.
    Hop(Box<Hop<Token>>),
    /// A message of hardened mode outside elections.
    Upkeep(Box<Upkeep>),
}

/// What goes round the ring in hardened mode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Token {
    /// "Elect this one."
    Election {
        /// The claim it will have if it wins.
        bid: LeaderClaim,
    },
    /// "This one is elected."
    Elected {
        /// The winner's claim.
        claim: LeaderClaim,
    },
}

/// What a member of the ring waits for, in hardened mode only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// `T_hop`: a HOP-ACK.
    Hop(HopNumber),
    /// `T_re`: the end of the round it takes part in.
    Round,
    /// A timer of hardened mode outside elections.
    Upkeep(UpkeepTimer),
}

impl Protocol for ChangRoberts {
    type Config = Config;
    type Message = Message;
    type Timer = Timer;
    type Durable = Term;

    fn start(id: NodeId, config: &Config, boot: Boot<Term>, out: &mut Effects<Self>) -> Self {
        let (tracker, action) = LeaderTracker::start(id, config, &boot, out);
        let hardened = config
            .hardened()
            .then(|| Box::new(Hardened { hops: Hops::new(), bid: None, told: None }));
        let mut member = Self { tracker, hardened };
        member.apply(config, action, out);
        member
    }

    #[inline(always)]
    fn handle(&mut self, config: &Config, event: Event<Message, Timer>, out: &mut Effects<Self>) {
        let before = self.tracker.view_key();
        match event {
            Event::Message { from, message } => self.on_message(config, from, message, out),
            Event::Campaign => self.call_election(config, out),
            Event::Command(_) | Event::Retired | Event::Crashed => {}
            Event::Timer(timer) => self.on_timer(config, timer, out),
            Event::PeerDown(peer) => {
                let electing = self.participates();
                let action = self.tracker.on_peer_down(config, peer, electing, out);
                self.apply(config, action, out);
            }
            Event::PeerUp(peer) => self.tracker.on_peer_up(peer, out),
        }
        if self.tracker.view_key() != before {
            out.announce(self.view());
        }
    }

    fn view(&self) -> View {
        self.tracker.view(self.participates())
    }

    fn kinds(_: &Config) -> Cow<'static, [Kind]> {
        KINDS.into()
    }

    #[inline]
    fn kind_index(_: &Config, message: &Message) -> usize {
        message.index()
    }

    fn is_upkeep(timer: Timer) -> bool {
        matches!(timer, Timer::Upkeep(timer) if timer.is_upkeep())
    }
}

impl Explore for ChangRoberts {}

impl ChangRoberts {
    fn participates(&self) -> bool {
        self.tracker.participates()
    }

    #[inline(always)]
    fn on_message(
        &mut self,
        config: &Config,
        from: NodeId,
        message: Message,
        out: &mut Effects<Self>,
    ) {
        self.tracker.mark_alive(from);
        match message {
            Message::Election { key } if self.accepts_key(config, key) => {
                self.on_election(config, key, out);
            }
            Message::Elected { key } if self.accepts_key(config, key) => {
                self.on_elected(config, key, out);
            }
            Message::Election { .. } | Message::Elected { .. } => {}
            Message::Hop(hop) => self.on_hop(config, from, *hop, out),
            Message::Upkeep(upkeep) => {
                let electing = self.participates();
                let action = self.tracker.on_upkeep(config, from, *upkeep, electing, out);
                self.apply(config, action, out);
            }
        }
    }

    /// A textbook's message cannot come from a member with the same configuration if this one is hardened. An unknown key is
    /// neither passed on, because no member would remove it from the ring, nor followed.
    #[inline(always)]
    fn accepts_key(&self, config: &Config, key: Key) -> bool {
        self.hardened.is_none() && config.members.contains(key.id)
    }

    #[inline(never)]
    fn on_timer(&mut self, config: &Config, timer: Timer, out: &mut Effects<Self>) {
        match timer {
            Timer::Hop(number) => {
                let Some(hardened) = &mut self.hardened else { return };
                let back = hardened.hops.on_timer(config, &self.tracker, number, out);
                self.take_back(config, back, out);
            }
            Timer::Round => {
                out.rule("CR8");
                self.tracker.set_participant(false);
                self.tracker.election_failed();
                self.call_election(config, out);
            }
            Timer::Upkeep(timer) => {
                let action = self.tracker.on_timer(config, timer, self.participates(), out);
                self.apply(config, action, out);
            }
        }
    }

    #[inline(never)]
    fn apply(&mut self, config: &Config, action: Action, out: &mut Effects<Self>) {
        match action {
            Action::Nothing => {}
            Action::EndElection => self.end_participation(out),
            Action::StartElection => self.call_election(config, out),
            Action::Defer(claim) => self.defer(config, claim, out),
        }
    }

    /// CR1: this member starts an election.
    #[inline(never)]
    fn call_election(&mut self, config: &Config, out: &mut Effects<Self>) {
        if self.participates() {
            return;
        }
        out.rule("CR1");
        out.election_started();
        let own = config.members.key(self.tracker.id());
        if self.hardened.is_some() {
            let term = self.tracker.open_term(out);
            self.bid(config, LeaderClaim { term, leader: own }, out);
        } else {
            self.stand(config, own, out);
        }
    }

    fn end_participation(&mut self, out: &mut Effects<Self>) {
        if self.participates() && self.hardened.is_some() {
            out.cancel_timer(Timer::Round);
        }
        self.tracker.set_participant(false);
    }
}

/// The textbook's rules.
impl ChangRoberts {
    /// CR1, CR3: asks to be elected, unless no other member is left.
    #[inline(never)]
    fn stand(&mut self, config: &Config, own: Key, out: &mut Effects<Self>) {
        self.tracker.set_participant(true);
        if !self.send(config, Message::Election { key: own }, out) {
            self.win(config, own, out);
        }
    }

    #[inline(always)]
    fn on_election(&mut self, config: &Config, key: Key, out: &mut Effects<Self>) {
        let own = config.members.key(self.tracker.id());
        if key > own {
            out.rule("CR2");
            self.tracker.set_participant(true);
            self.send(config, Message::Election { key }, out);
        } else if key == own {
            out.rule("CR5");
            self.win(config, own, out);
        } else if !self.participates() || config.reads(Variant::NoSwallow) {
            out.rule("CR3");
            self.stand(config, own, out);
        } else {
            out.rule("CR4");
        }
    }

    #[inline(never)]
    fn win(&mut self, config: &Config, own: Key, out: &mut Effects<Self>) {
        self.on_end(config, own, out);
        self.send(config, Message::Elected { key: own }, out);
    }

    #[inline(never)]
    fn on_elected(&mut self, config: &Config, key: Key, out: &mut Effects<Self>) {
        if key.id == self.tracker.id() {
            return out.rule("CR7");
        }
        out.rule("CR6");
        self.on_end(config, key, out);
        self.send(config, Message::Elected { key }, out);
    }

    /// The election is over, and this is its winner.
    fn on_end(&mut self, config: &Config, winner: Key, out: &mut Effects<Self>) {
        self.tracker.set_participant(false);
        self.tracker.accept(config, LeaderClaim { term: Term::default(), leader: winner }, out);
    }

    /// Sends to the neighbour; returns whether there is one.
    #[inline(always)]
    fn send(&self, config: &Config, message: Message, out: &mut Effects<Self>) -> bool {
        let me = self.tracker.id();
        let neighbour = ring::successor(config, &self.tracker, me);
        if neighbour != me {
            out.send(neighbour, message);
        }
        neighbour != me
    }
}

/// Hardened mode's rules.
impl ChangRoberts {
    #[inline(never)]
    fn on_hop(&mut self, config: &Config, from: NodeId, hop: Hop<Token>, out: &mut Effects<Self>) {
        let Some(hardened) = &mut self.hardened else { return };
        match hardened.hops.receive(from, hop, out) {
            Some(Token::Election { bid }) if config.members.contains(bid.leader.id) => {
                self.on_bid(config, bid, out);
            }
            Some(Token::Elected { claim }) if config.members.contains(claim.leader.id) => {
                self.on_elected_claim(config, claim, out);
            }
            _ => {}
        }
    }

    /// CR1 to CR3: sends or passes on a bid, the largest so far, and waits for the end of its round.
    fn bid(&mut self, config: &Config, bid: LeaderClaim, out: &mut Effects<Self>) {
        let Some(hardened) = &mut self.hardened else { return };
        hardened.bid = Some(bid);
        self.tracker.see_term(bid.term, out);
        self.tracker.set_participant(true);
        self.await_end(config, bid, out);
        self.pass(config, Token::Election { bid }, out);
    }

    /// Arms `T_re`. A third circuit is added to the two for which it is made: one in search of the highest member.
    fn await_end(&self, config: &Config, bid: LeaderClaim, out: &mut Effects<Self>) {
        let round = Round { term: bid.term, initiator: bid.leader.id };
        let wait = ring::re_initiation(config, round, self.tracker.id())
            + config.timing.reply() * config.members.len() as u64;
        out.set_timer(Timer::Round, Timing::back_off(wait, self.tracker.attempts()));
    }

    fn on_bid(&mut self, config: &Config, bid: LeaderClaim, out: &mut Effects<Self>) {
        let own = config.members.key(self.tracker.id());
        let last = self.hardened.as_ref().and_then(|hardened| hardened.bid);
        if bid.leader == own {
            if self.participates() && Some(bid) == last {
                out.rule("CR5");
                self.announce(config, out);
            }
            return;
        }
        if self.tracker.current_claim().is_some_and(|claim| claim.leader > bid.leader) {
            out.rule("CR9");
            return self.tracker.vouch(config, bid.leader.id, bid.term, out);
        }
        let best = LeaderClaim { leader: bid.leader.max(own), ..bid };
        if bid.term < self.tracker.term() || Some(best) <= self.tracker.claim() {
            out.rule("CR10");
            let term = self.tracker.term();
            return out.send(bid.leader.id, Upkeep::Nack { term }.into());
        }
        if Some(bid) <= last {
            return out.rule("CR4");
        }
        out.rule(if best == bid { "CR2" } else { "CR3" });
        self.bid(config, best, out);
    }

    /// CR5: its own bid has come back, or there is no other member.
    fn announce(&mut self, config: &Config, out: &mut Effects<Self>) {
        self.end_participation(out);
        self.tracker.lead(config, out);
        if let Some(claim) = self.tracker.claim() {
            self.tell(config, claim, out);
        }
    }

    /// CR6, CR7.
    fn on_elected_claim(&mut self, config: &Config, claim: LeaderClaim, out: &mut Effects<Self>) {
        let told = self.hardened.as_ref().and_then(|hardened| hardened.told);
        if claim.leader.id == self.tracker.id() || Some(claim) <= told {
            return out.rule("CR7");
        }
        out.rule("CR6");
        if self.tracker.is_down(claim.leader.id) {
            self.tell(config, claim, out);
            return self.call_election(config, out);
        }
        let action = self.tracker.on_claim(config, claim, self.participates(), out);
        self.apply(config, action, out);
        if self.tracker.leader() == Some(claim.leader.id) {
            self.tell(config, claim, out);
        }
    }

    fn tell(&mut self, config: &Config, claim: LeaderClaim, out: &mut Effects<Self>) {
        let Some(hardened) = &mut self.hardened else { return };
        hardened.told = Some(claim);
        self.pass(config, Token::Elected { claim }, out);
    }

    /// H6: another member follows a leader that this one does not receive. It defers, and bids again later, less and less
    /// often.
    fn defer(&mut self, config: &Config, claim: LeaderClaim, out: &mut Effects<Self>) {
        let own = config.members.key(self.tracker.id());
        let bid = self.hardened.as_ref().and_then(|hardened| hardened.bid);
        if let Some(bid) = bid
            && self.participates()
            && claim.leader > own
        {
            self.tracker.defer_to(claim.leader.id);
            self.await_end(config, bid, out);
        }
    }

    fn pass(&mut self, config: &Config, token: Token, out: &mut Effects<Self>) {
        let Some(hardened) = &mut self.hardened else { return };
        let back = hardened.hops.pass(config, &self.tracker, token, out);
        self.take_back(config, back, out);
    }

    /// A bid that found no other live member is won, whichever member made it.
    fn take_back(&mut self, config: &Config, token: Option<Token>, out: &mut Effects<Self>) {
        let Some(Token::Election { bid }) = token else { return };
        let last = self.hardened.as_ref().and_then(|hardened| hardened.bid);
        if !self.participates() || Some(bid) != last {
            return;
        }
        out.rule("CR5");
        if bid.leader.id != self.tracker.id() {
            self.tracker.open_term(out); // in its own term a lower winner might come too late
        }
        self.announce(config, out);
    }
}

conversions! {
    Hop<Token> => Message::Hop,
    Upkeep => Message::Upkeep,
    HopNumber => Timer::Hop,
    UpkeepTimer => Timer::Upkeep,
}

/// The kinds, in the order in which those that arrive at the same instant are handled.
pub const KINDS: &[Kind] = &[
    Kind::election("ELECTION"),
    Kind::election("ELECTED"),
    Kind::link("HOP-ACK"),
    Kind::detector("ALIVE"),
    Kind::election("NACK"),
];

impl Message {
    /// Which of [`KINDS`] it is.
    #[inline]
    fn index(&self) -> usize {
        match self {
            Self::Election { .. } => 0,
            Self::Elected { .. } => 1,
            Self::Hop(hop) => hop_kind(hop),
            Self::Upkeep(upkeep) => upkeep_kind(upkeep),
        }
    }
}

impl protocol::Message for Message {
    #[inline]
    fn kind(&self) -> Kind {
        KINDS[self.index()]
    }

    #[inline]
    fn encoded_len(&self) -> usize {
        1 + match self {
            Self::Election { key } | Self::Elected { key } => key_len(*key),
            Self::Hop(hop) => hop_len(hop),
            Self::Upkeep(upkeep) => upkeep.encoded_len(),
        }
    }
}

/// Hardened mode's messages, apart from the textbook's: a simulation asks every message, and there are millions of them.
#[cold]
fn hop_kind(hop: &Hop<Token>) -> usize {
    match hop {
        Hop::Pass { token: Token::Election { .. }, .. } => 0,
        Hop::Pass { token: Token::Elected { .. }, .. } => 1,
        Hop::Ack { .. } => 2,
    }
}

#[cold]
fn upkeep_kind(upkeep: &Upkeep) -> usize {
    match upkeep {
        Upkeep::Alive { .. } => 3,
        Upkeep::Nack { .. } => 4,
    }
}

#[cold]
fn hop_len(hop: &Hop<Token>) -> usize {
    hop.encoded_len(|token| {
        let (Token::Election { bid: claim } | Token::Elected { claim }) = token;
        1 + varint_len(claim.term.0) + key_len(claim.leader)
    })
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Election { key } => write!(f, "ELECTION {key}"),
            Self::Elected { key } => write!(f, "ELECTED {key}"),
            Self::Hop(hop) => hop.fmt(f),
            Self::Upkeep(upkeep) => upkeep.fmt(f),
        }
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Election { bid } => write!(f, "ELECTION {} term={}", bid.leader, bid.term),
            Self::Elected { claim } => write!(f, "ELECTED {} term={}", claim.leader, claim.term),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Mode;
    use crate::members::{Incarnation, Members};
    use crate::protocol::Origin;
    use crate::time::Span;

    #[test]
    fn a_million_members_stay_small() {
        assert!(size_of::<ChangRoberts>() <= 40);
        assert!(size_of::<Message>() <= 24);
    }

    /// No member with the same configuration sends such a message.
    #[test]
    fn nonsense_is_ignored() {
        let stranger = LeaderClaim { term: Term(9), leader: Key { attr: 9, id: NodeId(9) } };
        let nonsense = |token| Message::from(Hop::Pass { number: None, token });
        let key = Key { attr: 2, id: NodeId(2) };
        let cases = [
            (Mode::Hardened, Message::Election { key }),
            (Mode::Hardened, Message::Elected { key }),
            (Mode::Hardened, nonsense(Token::Election { bid: stranger })),
            (Mode::Hardened, nonsense(Token::Elected { claim: stranger })),
            (Mode::Hardened, Message::from(Upkeep::Alive { claim: stranger })),
            (Mode::Textbook, nonsense(Token::Election { bid: stranger })),
            (Mode::Textbook, Message::Election { key: stranger.leader }),
            (Mode::Textbook, Message::Elected { key: stranger.leader }),
        ];
        for (mode, message) in cases {
            let timing = Timing::for_transmission(Span::from_millis(1));
            let config = Config::new(Members::range(1, 3).unwrap(), timing, mode);
            let origin = Origin::Founding { leader: None };
            let boot = Boot::new(Incarnation(1), None, origin);
            let mut out = Effects::new();
            let mut member = ChangRoberts::start(NodeId(2), &config, boot, &mut out);
            member.handle(&config, Event::Campaign, &mut out);
            let before = member.clone();
            out.clear();
            member.handle(&config, Event::Message { from: NodeId(1), message }, &mut out);
            assert_eq!(member, before);
            assert!(out.list().is_empty());
        }
    }
}
