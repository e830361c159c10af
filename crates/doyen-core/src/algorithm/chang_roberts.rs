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
//! lower one that arrives. Then m initiators cost up to m(3n−1) messages and the winner announces itself m times: the
//! variant `os-textbook-no-swallow`. cs425 replaces a message only if the member "has not forwarded an election message
//! earlier", which must include one that it has sent itself, and does not say what becomes of the others: they are
//! swallowed. In os-textbook "all other processes abandon their elections": this is the end of participation in CR6. Keys
//! contain the id, so that equal attributes do not make two winners. No member is polled: os-textbook lets "the control part
//! of a failed process" forward, so a message goes to the neighbour and skips only members that the failure detector reports
//! as down. A member that has no other member left wins without a message; read literally, os-textbook has it send both
//! messages to itself.
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
//!   passed on: the member continues to wait, or starts an election if it takes part in none, and members that receive
//!   from the winner make it defer (CR9);
//! - CR8: a member that has taken part and learns of no winner in time bids itself, with a higher term (F14, F15). The owner
//!   of the last bid comes first, then its successor, … Each failure doubles the wait;
//! - CR9: a member that leads, or follows a live leader, answers a lower bid with ALIVE instead, and the bidder defers (F8).
//!   It adopts the bid's term: when a leader has died and its followers notice one after the other, the last one bids after
//!   all others have passed on a bid;
//! - CR10: a bid of an older term than the member knows of is answered with NACK, and the bidder's next bid is higher.
//!
//! Without failures hardened mode sends the same messages, and a HOP-ACK for each.

pub mod rules;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::elective::Elective;
use super::leader_tracker::{ALIVE, Background, LeaderClaim, LeaderTracker, NACK};
use super::ring::{self, HOP_ACK, Hop, Hops, Round, Timer};
use crate::config::{Config, Timing, Variant};
use crate::members::{Key, NodeId, Term};
use crate::protocol::{AlgorithmMessage, Boot, Class, Context, Family, Kind};
use crate::wire;

/// A member that runs Chang–Roberts. Small, because there are simulations with millions of them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ChangRoberts(Form);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Form {
    /// The tracker also holds the participant flag, the only other state of a textbook member.
    Textbook(LeaderTracker),
    Hardened(Box<Hardened>),
}

/// A hardened member.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Hardened {
    tracker: LeaderTracker,
    hops: Hops<Token>,
    /// The largest bid it has made or passed on.
    bid: Option<LeaderClaim>,
    /// The largest ELECTED it has sent or passed on.
    told: Option<LeaderClaim>,
}

/// The messages of the ring.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of the fields say what they are")]
pub enum Message {
    /// "Elect this one", the highest member that the message has met; in textbook mode.
    Election { key: Key },
    /// "This one is elected", in textbook mode.
    Elected { key: Key },
    /// Hardened mode's messages round the ring.
    Hop(Box<Hop<Token>>),
    /// A message of hardened mode outside elections.
    Background(Box<Background>),
}

/// What goes round the ring in hardened mode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of the fields say what they are")]
pub enum Token {
    /// "Elect this one": `bid` is the claim that it will have if it wins.
    Election { bid: LeaderClaim },
    /// "This one is elected."
    Elected { claim: LeaderClaim },
}

impl Elective for ChangRoberts {
    type Message = Message;
    type Timer = Timer;

    fn new(tracker: LeaderTracker, config: &Config, _: &Boot<Term>) -> Self {
        if config.hardened() {
            let hardened = Hardened { tracker, hops: Hops::new(), bid: None, told: None };
            return Self(Form::Hardened(Box::new(hardened)));
        }
        Self(Form::Textbook(tracker))
    }

    #[inline(always)]
    fn tracker(&self) -> &LeaderTracker {
        match &self.0 {
            Form::Textbook(tracker) => tracker,
            Form::Hardened(hardened) => &hardened.tracker,
        }
    }

    #[inline(always)]
    fn tracker_mut(&mut self) -> &mut LeaderTracker {
        match &mut self.0 {
            Form::Textbook(tracker) => tracker,
            Form::Hardened(hardened) => &mut hardened.tracker,
        }
    }

    #[inline(always)]
    fn electing(&self) -> bool {
        self.tracker().participates()
    }

    /// CR2 of a textbook member that takes part already: nearly all messages of a large ring.
    #[inline(always)]
    fn passes_on(&self, config: &Config, message: &Message) -> Option<NodeId> {
        if let Form::Textbook(tracker) = &self.0
            && let &Message::Election { key } = message
            && let Some(me) = tracker.plain_participant()
            && key > config.members.key(me)
            && config.members.contains(key.id)
        {
            return Some(config.members.next_clockwise(me));
        }
        None
    }

    #[inline(never)]
    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Election { key } if self.accepts_key(cx.config, key) => {
                self.on_election(key, cx);
            }
            Message::Elected { key } if self.accepts_key(cx.config, key) => {
                self.on_elected(key, cx);
            }
            Message::Election { .. } | Message::Elected { .. } => {}
            Message::Hop(hop) => self.on_hop(from, *hop, cx),
            Message::Background(message) => self.on_background(from, *message, cx),
        }
    }

    #[inline(never)]
    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        match timer {
            Timer::Hop(number) => {
                let Some(Hardened { tracker, hops, .. }) = self.hardened_mut() else { return };
                let back = hops.on_timer(tracker, number, cx);
                self.take_back(back, cx);
            }
            Timer::Round => {
                cx.rule("CR8");
                self.tracker_mut().election_failed();
                self.call_election(cx);
            }
            Timer::Background(timer) => self.on_background_timer(timer, cx),
        }
    }

    /// CR1: this member starts an election.
    #[inline(never)]
    fn call_election(&mut self, cx: &mut Context<'_, Self>) {
        cx.rule("CR1");
        cx.election_started();
        let own = cx.config.members.key(self.tracker().id());
        if self.hardened().is_some() {
            let term = self.tracker_mut().open_term(cx);
            self.bid(LeaderClaim { term, leader: own }, cx);
        } else {
            self.stand(own, cx);
        }
    }

    fn end_election(&mut self, cx: &mut Context<'_, Self>) {
        if self.electing() && self.hardened().is_some() {
            cx.cancel_timer(Timer::Round);
        }
        self.tracker_mut().set_participant(false);
    }

    fn await_end(&mut self, cx: &mut Context<'_, Self>) {
        if let Some(bid) = self.last_bid() {
            self.await_end_of(bid, cx);
        }
    }
}

impl ChangRoberts {
    fn hardened(&self) -> Option<&Hardened> {
        match &self.0 {
            Form::Textbook(_) => None,
            Form::Hardened(hardened) => Some(hardened),
        }
    }

    fn hardened_mut(&mut self) -> Option<&mut Hardened> {
        match &mut self.0 {
            Form::Textbook(_) => None,
            Form::Hardened(hardened) => Some(hardened),
        }
    }
}

/// The textbook's rules.
impl ChangRoberts {
    /// A textbook's message cannot come from a member with the same configuration if this one is hardened. An unknown key is
    /// neither passed on, because no member would remove it from the ring, nor followed.
    fn accepts_key(&self, config: &Config, key: Key) -> bool {
        matches!(self.0, Form::Textbook(_)) && config.members.contains(key.id)
    }

    /// CR1, CR3: asks to be elected, unless no other member is left.
    fn stand(&mut self, own: Key, cx: &mut Context<'_, Self>) {
        self.tracker_mut().set_participant(true);
        if !self.send(Message::Election { key: own }, cx) {
            self.win(own, cx);
        }
    }

    fn on_election(&mut self, key: Key, cx: &mut Context<'_, Self>) {
        let own = cx.config.members.key(self.tracker().id());
        if key > own {
            cx.rule("CR2");
            self.tracker_mut().set_participant(true);
            self.send(Message::Election { key }, cx);
        } else if key == own {
            cx.rule("CR5");
            self.win(own, cx);
        } else if !self.electing() || cx.config.reads(Variant::NoSwallow) {
            cx.rule("CR3");
            self.stand(own, cx);
        } else {
            cx.rule("CR4");
        }
    }

    fn win(&mut self, own: Key, cx: &mut Context<'_, Self>) {
        self.on_end(own, cx);
        self.send(Message::Elected { key: own }, cx);
    }

    fn on_elected(&mut self, key: Key, cx: &mut Context<'_, Self>) {
        if key.id == self.tracker().id() {
            return cx.rule("CR7");
        }
        cx.rule("CR6");
        self.on_end(key, cx);
        self.send(Message::Elected { key }, cx);
    }

    /// The election is over, and this is its winner.
    fn on_end(&mut self, winner: Key, cx: &mut Context<'_, Self>) {
        self.tracker_mut().set_participant(false);
        self.tracker_mut().accept(LeaderClaim { term: Term::default(), leader: winner }, cx);
    }

    /// Sends to the neighbour; returns whether there is one.
    fn send(&self, message: Message, cx: &mut Context<'_, Self>) -> bool {
        let me = self.tracker().id();
        let neighbour = ring::successor(cx.config, self.tracker(), me);
        if neighbour != me {
            cx.send(neighbour, message);
        }
        neighbour != me
    }
}

/// Hardened mode's rules.
impl ChangRoberts {
    fn on_hop(&mut self, from: NodeId, hop: Hop<Token>, cx: &mut Context<'_, Self>) {
        let Some(hardened) = self.hardened_mut() else { return };
        match hardened.hops.receive(from, hop, cx) {
            Some(Token::Election { bid }) if cx.config.members.contains(bid.leader.id) => {
                self.on_bid(bid, cx);
            }
            Some(Token::Elected { claim }) if cx.config.members.contains(claim.leader.id) => {
                self.on_elected_claim(claim, cx);
            }
            _ => {}
        }
    }

    /// CR1 to CR3: sends or passes on a bid, the largest so far, and waits for the end of its round.
    fn bid(&mut self, bid: LeaderClaim, cx: &mut Context<'_, Self>) {
        let Some(hardened) = self.hardened_mut() else { return };
        hardened.bid = Some(bid);
        self.tracker_mut().see_term(bid.term, cx);
        self.tracker_mut().set_participant(true);
        self.await_end_of(bid, cx);
        self.pass(Token::Election { bid }, cx);
    }

    /// Arms `T_re`. A third circuit is added to the two for which it is made: one in search of the highest member.
    fn await_end_of(&self, bid: LeaderClaim, cx: &mut Context<'_, Self>) {
        let round = Round { term: bid.term, initiator: bid.leader.id };
        let wait = ring::re_initiation(cx.config, round, self.tracker().id())
            + cx.config.timing.reply() * cx.config.members.len() as u64;
        cx.set_timer(Timer::Round, Timing::back_off(wait, self.tracker().attempts()));
    }

    fn on_bid(&mut self, bid: LeaderClaim, cx: &mut Context<'_, Self>) {
        let own = cx.config.members.key(self.tracker().id());
        let last = self.last_bid();
        if bid.leader == own {
            if self.electing() && Some(bid) == last {
                cx.rule("CR5");
                self.announce(cx);
            }
            return;
        }
        if self.tracker().current_claim().is_some_and(|claim| claim.leader > bid.leader) {
            cx.rule("CR9");
            return self.tracker_mut().vouch(bid.leader.id, bid.term, cx);
        }
        let best = LeaderClaim { leader: bid.leader.max(own), ..bid };
        if bid.term < self.tracker().term() || Some(best) <= self.tracker().claim() {
            cx.rule("CR10");
            let term = self.tracker().term();
            return cx.send(bid.leader.id, Background::Nack { term });
        }
        if Some(bid) <= last {
            return cx.rule("CR4");
        }
        cx.rule(if best == bid { "CR2" } else { "CR3" });
        self.bid(best, cx);
    }

    /// CR5: its own bid has come back, or there is no other member.
    fn announce(&mut self, cx: &mut Context<'_, Self>) {
        self.end_election(cx);
        self.tracker_mut().lead(cx);
        if let Some(claim) = self.tracker().claim() {
            self.tell(claim, cx);
        }
    }

    /// CR6, CR7.
    fn on_elected_claim(&mut self, claim: LeaderClaim, cx: &mut Context<'_, Self>) {
        let told = self.hardened().and_then(|hardened| hardened.told);
        if claim.leader.id == self.tracker().id() || Some(claim) <= told {
            return cx.rule("CR7");
        }
        cx.rule("CR6");
        if self.tracker().is_down(claim.leader.id) {
            self.tell(claim, cx);
            return self.start_election(cx);
        }
        self.on_claim(claim, cx);
        if self.tracker().leader() == Some(claim.leader.id) {
            self.tell(claim, cx);
        }
    }

    fn tell(&mut self, claim: LeaderClaim, cx: &mut Context<'_, Self>) {
        let Some(hardened) = self.hardened_mut() else { return };
        hardened.told = Some(claim);
        self.pass(Token::Elected { claim }, cx);
    }

    fn last_bid(&self) -> Option<LeaderClaim> {
        self.hardened().and_then(|hardened| hardened.bid)
    }

    fn pass(&mut self, token: Token, cx: &mut Context<'_, Self>) {
        let Some(Hardened { tracker, hops, .. }) = self.hardened_mut() else { return };
        let back = hops.pass(tracker, token, cx);
        self.take_back(back, cx);
    }

    /// A bid that found no other live member is won, whichever member made it.
    fn take_back(&mut self, token: Option<Token>, cx: &mut Context<'_, Self>) {
        let Some(Token::Election { bid }) = token else { return };
        let last = self.last_bid();
        if !self.electing() || Some(bid) != last {
            return;
        }
        cx.rule("CR5");
        if bid.leader.id != self.tracker().id() {
            self.tracker_mut().open_term(cx); // in its own term a lower winner might come too late
        }
        self.announce(cx);
    }
}

conversions! {
    Hop<Token> => Message::Hop,
    Background => Message::Background,
}

impl AlgorithmMessage for Message {
    const KINDS: &'static [Kind] = &[
        Kind::own("ELECTION", Family::Ask, "carries the highest number so far round the ring"),
        Kind::own("ELECTED", Family::Announce, "tells every member on the ring who has won"),
        HOP_ACK,
        ALIVE,
        NACK,
    ];

    /// The textbook's messages first: a simulation asks every message, and there are millions of them.
    #[inline(always)]
    fn index(&self) -> usize {
        match self {
            Self::Election { .. } | Self::Elected { .. } => {
                usize::from(matches!(self, Self::Elected { .. }))
            }
            Self::Hop(hop) => hop_index(hop),
            Self::Background(message) => 3 + message.index(),
        }
    }

    #[inline(always)]
    fn class(&self) -> Class {
        match self {
            Self::Election { .. } | Self::Elected { .. } => Class::Algorithm,
            Self::Hop(_) | Self::Background(_) => Self::KINDS[self.index()].class,
        }
    }

    #[inline(always)]
    fn encoded_len(&self) -> usize {
        let variant = 1;
        match self {
            Self::Election { key } | Self::Elected { key } => variant + wire::encoded_len(key),
            Self::Hop(hop) => variant + hardened_len(&**hop),
            Self::Background(message) => variant + hardened_len(&**message),
        }
    }
}

#[cold]
fn hop_index(hop: &Hop<Token>) -> usize {
    match hop {
        Hop::Pass { token: Token::Election { .. }, .. } => 0,
        Hop::Pass { token: Token::Elected { .. }, .. } => 1,
        Hop::Ack { .. } => 2,
    }
}

#[cold]
fn hardened_len(content: &impl Serialize) -> usize {
    wire::encoded_len(content)
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Election { key } => write!(f, "ELECTION {key}"),
            Self::Elected { key } => write!(f, "ELECTED {key}"),
            Self::Hop(hop) => hop.fmt(f),
            Self::Background(message) => message.fmt(f),
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
    use crate::algorithm::testing::{config, started, told};
    use crate::config::Mode;
    use crate::protocol::{Effect, Effects, Event, Protocol};

    #[test]
    fn a_million_members_stay_small() {
        assert_eq!(size_of::<ChangRoberts>(), 16);
        assert_eq!(size_of::<Message>(), 16);
    }

    /// A host may ask for this instead of calling the handler.
    #[test]
    fn what_a_member_passes_on_is_all_that_it_does() {
        let mut passed_on = 0;
        for mode in [Mode::Textbook, Mode::Hardened] {
            let config = config(4, mode);
            let mut members: Vec<ChangRoberts> = vec![started(2, &config)];
            for event in [Event::Campaign, Event::PeerDown(NodeId(3)), Event::PeerUp(NodeId(3))] {
                let mut member = members[members.len() - 1].clone();
                member.handle(&config, event, &mut Effects::new());
                members.push(member);
            }
            let keys = (0..6).map(|id| Key { attr: id.into(), id: NodeId(id) });
            let messages =
                keys.flat_map(|key| [Message::Election { key }, Message::Elected { key }]);
            for (mut member, message) in messages
                .flat_map(|message| members.iter().cloned().map(move |it| (it, message.clone())))
            {
                let Some(to) = member.relay(&config, &message) else { continue };
                passed_on += 1;
                let before = member.clone();
                let out = told(&mut member, &config, 1, message.clone());
                assert_eq!((&member, out.elections()), (&before, 0));
                assert_eq!(out.list(), [Effect::Send { to, message }]);
            }
        }
        assert_eq!(
            passed_on, 4,
            "two higher keys, by a member that takes part and by one that has heard of a return"
        );
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
            (Mode::Hardened, Message::from(Background::Alive { claim: stranger })),
            (Mode::Textbook, nonsense(Token::Election { bid: stranger })),
            (Mode::Textbook, Message::Election { key: stranger.leader }),
            (Mode::Textbook, Message::Elected { key: stranger.leader }),
        ];
        for (mode, message) in cases {
            let config = config(3, mode);
            let mut member: ChangRoberts = started(2, &config);
            member.handle(&config, Event::Campaign, &mut Effects::new());
            let before = member.clone();
            let out = told(&mut member, &config, 1, message);
            assert_eq!(member, before);
            assert!(out.list().is_empty());
        }
    }
}
