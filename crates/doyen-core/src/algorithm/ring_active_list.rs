//! The ring with an active list at every member (notes, "Algorithm"; Silberschatz).
//!
//! A member that misses the coordinator starts a list of the live members, its *active list*, and sends its own number round
//! the ring with ELECT. Each member that receives it does the same, and enters the numbers that pass into its own list. A
//! member whose own number returns knows all the others, and picks the highest. There is no announcement: each member decides
//! for itself, and all reach the same decision.
//!
//! | rule | notes | event | action |
//! |---|---|---|---|
//! | AL1 | | start, no list | starts a list with itself; sends ELECT with its own number |
//! | AL2 | (ii) | ELECT of another, no list | starts a list with both; sends its own number, *then* the other |
//! | AL3 | (i) | ELECT of another | enters it; passes it on |
//! | AL4 | (iii) | its own ELECT | its list is complete: follows the highest on it, removes the message from the ring |
//!
//! **Textbook mode.** The notes have lost the subscripts of their numbers; the rules above are restored from their three
//! cases. Their example is another algorithm, in which one list circulates: [`ring_list`](super::ring_list). The order in AL2
//! matters, and links must keep it: a member's own number follows all others, and returns last. The notes do not say when a
//! list is forgotten: it is when its owner has decided, so that the next election starts a new one. As in all rings of the
//! kind of os-textbook, a message skips only members that the failure detector reports as down. A member that has no other
//! member left elects itself without a message.
//!
//! Cost: n² messages, however many members start. The last member decides after at most 2n−1 hops.
//!
//! A number whose owner has died circulates forever, and the owner of a lost one waits forever.
//!
//! **Hardened mode** adds the rules of [`leader_tracker`](super::leader_tracker), [`ring`] and [`roll_call`]: HOP-ACK, a way
//! past members that are down, rounds, and every number once in a round. In addition:
//!
//! - AL4: each member decides for itself, as in the notes, but when a member dies during the election the lists differ, and so
//!   would the decisions. Therefore only one of them counts, the winner's. It sends ALIVE to all members at once, and the others
//!   follow it then, by the order of claims. Their own decision is only the reason why they wait;
//! - AL5: a member that learns of no winner in time starts a new round (the winner has died, or a number is lost). The
//!   initiator comes first, then its successor, … Each failure doubles the wait;
//! - AL6: a member that leads, or follows a live leader, answers the numbers of a lower initiator's round with ALIVE instead,
//!   and their owners defer (F8);
//! - AL7: a number in an older round than the member knows of is answered with NACK, and its owner's next round is higher.
//!
//! Without failures hardened mode sends the same messages, a HOP-ACK for each, and the winner's n−1 ALIVEs.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::leader_tracker::{Action, LeaderClaim, LeaderTracker, Upkeep, UpkeepTimer};
use super::ring::{self, Hop, HopNumber, Hops, Round};
use super::roll_call::{self, Entry, RollCall};
use crate::config::{Config, Timing};
use crate::explore::Explore;
use crate::members::{NodeId, Term};
use crate::protocol::{self, Boot, Effects, Event, Kind, Protocol, View, varint_len, write_term};

/// A member that runs the ring with active lists.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RingActiveList {
    tracker: LeaderTracker,
    /// The active list.
    list: RollCall,
    /// Hardened mode's hops.
    hops: Hops<Token>,
}

/// The messages of the ring.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// A number in transit round the ring, or its HOP-ACK.
    Hop(Hop<Token>),
    /// A message of hardened mode outside elections.
    Upkeep(Upkeep),
}

/// What goes round the ring: ELECT, "this one is alive".
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Token {
    /// In which election; textbook mode does not look at it.
    pub round: Round,
    /// The number.
    pub member: NodeId,
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

impl Protocol for RingActiveList {
    type Config = Config;
    type Message = Message;
    type Timer = Timer;
    type Durable = Term;

    fn start(id: NodeId, config: &Config, boot: Boot<Term>, out: &mut Effects<Self>) -> Self {
        let (tracker, action) = LeaderTracker::start(id, config, &boot, out);
        let mut member = Self { tracker, list: RollCall::new(id), hops: Hops::new() };
        member.apply(config, action, out);
        member
    }

    fn handle(&mut self, config: &Config, event: Event<Message, Timer>, out: &mut Effects<Self>) {
        let before = self.view();
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
        let after = self.view();
        if after != before {
            out.announce(after);
        }
    }

    fn view(&self) -> View {
        self.tracker.view(self.participates())
    }

    fn kinds(_: &Config) -> Cow<'static, [Kind]> {
        KINDS.into()
    }

    fn kind_index(_: &Config, message: &Message) -> usize {
        message.index()
    }

    fn is_upkeep(timer: Timer) -> bool {
        matches!(timer, Timer::Upkeep(timer) if timer.is_upkeep())
    }
}

impl Explore for RingActiveList {}

impl RingActiveList {
    fn participates(&self) -> bool {
        self.tracker.participates()
    }

    fn on_message(
        &mut self,
        config: &Config,
        from: NodeId,
        message: Message,
        out: &mut Effects<Self>,
    ) {
        self.tracker.mark_alive(from);
        match message {
            Message::Hop(hop) => {
                if let Some(token) = self.hops.receive(from, hop, out) {
                    self.on_elect(config, token, out);
                }
            }
            Message::Upkeep(upkeep) => {
                let electing = self.participates();
                let action = self.tracker.on_upkeep(config, from, upkeep, electing, out);
                self.apply(config, action, out);
            }
        }
    }

    fn on_timer(&mut self, config: &Config, timer: Timer, out: &mut Effects<Self>) {
        match timer {
            Timer::Hop(number) => {
                let back = self.hops.on_timer(config, &self.tracker, number, out);
                self.take_back(config, back, out);
            }
            Timer::Round => {
                out.rule("AL5");
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

    fn apply(&mut self, config: &Config, action: Action, out: &mut Effects<Self>) {
        match action {
            Action::Nothing => {}
            Action::EndElection => self.end_participation(config, out),
            Action::StartElection => self.call_election(config, out),
            Action::Defer(claim) => self.defer(config, claim, out),
        }
    }

    /// AL1: this member wants an election.
    fn call_election(&mut self, config: &Config, out: &mut Effects<Self>) {
        if self.participates() {
            return;
        }
        out.rule("AL1");
        out.election_started();
        let me = self.tracker.id();
        let term = self.tracker.open_term(out);
        self.list.open(Round { term, initiator: me }, me);
        self.participate(config, out);
    }

    /// Sends its own number, and waits for it to come back.
    fn participate(&mut self, config: &Config, out: &mut Effects<Self>) {
        self.tracker.set_participant(true);
        let round = self.list.round();
        self.tracker.see_term(round.term, out);
        self.await_end(config, out);
        self.pass(config, Token { round, member: self.tracker.id() }, out);
    }

    fn await_end(&self, config: &Config, out: &mut Effects<Self>) {
        if config.hardened() {
            let wait = ring::re_initiation(config, self.list.round(), self.tracker.id());
            out.set_timer(Timer::Round, Timing::back_off(wait, self.tracker.attempts()));
        }
    }

    /// A number has come round.
    fn on_elect(&mut self, config: &Config, token: Token, out: &mut Effects<Self>) {
        match self.list.enter(config, &self.tracker, token.round, token.member) {
            Entry::Own => {
                out.rule("AL4");
                self.decide(config, out);
            }
            Entry::First => {
                out.rule("AL2");
                self.participate(config, out);
                self.pass(config, token, out);
            }
            Entry::Further => {
                out.rule("AL3");
                self.pass(config, token, out);
            }
            Entry::Refused => {
                out.rule("AL6");
                self.tracker.vouch(config, token.member, token.round.term, out);
            }
            Entry::Late => {
                out.rule("AL7");
                let term = self.tracker.term();
                out.send(token.member, Upkeep::Nack { term }.into());
            }
            Entry::Known => {}
        }
    }

    /// AL4: the list is complete. In hardened mode the winner alone acts on it.
    fn decide(&mut self, config: &Config, out: &mut Effects<Self>) {
        let winner = self.list.highest(config, &self.tracker);
        if !config.hardened() {
            self.end_participation(config, out);
            let claim = LeaderClaim { term: Term::default(), leader: config.members.key(winner) };
            self.tracker.accept(config, claim, out);
        } else if winner == self.tracker.id() {
            self.lead(config, out);
        }
    }

    /// Hardened: leads, and the first ALIVE goes out at once.
    fn lead(&mut self, config: &Config, out: &mut Effects<Self>) {
        self.end_participation(config, out);
        self.tracker.lead(config, out);
        self.on_timer(config, Timer::Upkeep(UpkeepTimer::Heartbeat), out);
    }

    /// H6: another member follows a leader that this one does not receive. It defers, and starts again later, less and
    /// less often.
    fn defer(&mut self, config: &Config, claim: LeaderClaim, out: &mut Effects<Self>) {
        if self.participates() && claim.leader > config.members.key(self.tracker.id()) {
            self.tracker.defer_to(claim.leader.id);
            self.await_end(config, out);
        }
    }

    fn end_participation(&mut self, config: &Config, out: &mut Effects<Self>) {
        if self.participates() && config.hardened() {
            out.cancel_timer(Timer::Round);
        }
        self.tracker.set_participant(false);
        self.list.close(config);
    }

    fn pass(&mut self, config: &Config, token: Token, out: &mut Effects<Self>) {
        let back = roll_call::pass(&mut self.hops, config, &self.tracker, token, out);
        self.take_back(config, back, out);
    }

    /// A number has found no other live member. With its own it has won; those of others are lost like their owners.
    fn take_back(&mut self, config: &Config, token: Option<Token>, out: &mut Effects<Self>) {
        let own = Token { round: self.list.round(), member: self.tracker.id() };
        if token == Some(own) && self.participates() {
            out.rule("AL4");
            match config.hardened() {
                true => self.lead(config, out),
                false => self.decide(config, out),
            }
        }
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
    Kind::election("ELECT"),
    Kind::link("HOP-ACK"),
    Kind::detector("ALIVE"),
    Kind::election("NACK"),
];

impl Message {
    /// Which of [`KINDS`] it is.
    fn index(&self) -> usize {
        match self {
            Self::Hop(Hop::Pass { .. }) => 0,
            Self::Hop(Hop::Ack { .. }) => 1,
            Self::Upkeep(Upkeep::Alive { .. }) => 2,
            Self::Upkeep(Upkeep::Nack { .. }) => 3,
        }
    }
}

impl protocol::Message for Message {
    fn kind(&self) -> Kind {
        KINDS[self.index()]
    }

    fn encoded_len(&self) -> usize {
        1 + match self {
            Self::Hop(hop) => hop.encoded_len(|token| {
                token.round.encoded_len() + varint_len(u64::from(token.member.0))
            }),
            Self::Upkeep(upkeep) => upkeep.encoded_len(),
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hop(hop) => hop.fmt(f),
            Self::Upkeep(upkeep) => upkeep.fmt(f),
        }
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ELECT {}", self.member)?;
        write_term(f, self.round.term)
    }
}
