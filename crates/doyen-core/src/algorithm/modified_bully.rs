//! Modified Bully (Kordafshari, Gholipour, Jahanshahi, Haghighat: sections 3 and 3.1, figure 4).
//!
//! A bully in which no member above the detector holds an election of its own. A member that misses the coordinator sends
//! ELECTION to every higher member. Each live one answers OK with its priority. The asker waits until the time for answers is
//! over, picks the highest and sends it a GRANT; that member leads and announces COORDINATOR to all. It takes four stages,
//! and a number of messages that grows with n instead of n².
//!
//! When several members ask at once, each receiver collects for a short window W and answers only the lowest of them; an
//! asker that is asked itself gives up. If an even lower one asks after the answer, it is answered too, and the one answered
//! before is told to STOP.
//!
//! | rule | state | event | action |
//! |---|---|---|---|
//! | M1 | idle | start | sends ELECTION to all higher members, waits `T_ok` for their OKs |
//! | M2 | idle, leading | ELECTION from a lower member | waits W for more of them |
//! | M3 | collecting | ELECTION | remembers it, if it is the lowest |
//! | M4 | collecting | W | answers the lowest with OK, waits `T_h` for a COORDINATOR |
//! | M5 | electing, granted | ELECTION from a lower member | stops its own election, then M2 |
//! | M6 | answered | ELECTION from a member below the answered | tells the answered to STOP, answers this one |
//! | M7 | answered | ELECTION from the same again | no answer; hardened: answers again |
//! | M8 | answered | ELECTION from a member above the answered | no answer; hardened: OK, busy with the lower one |
//! | M9 | electing | OK | remembers it; hardened, if it says busy: waits `T_h` as if it had answered |
//! | M10 | electing | `T_ok` | grants the highest that answered, waits `T_g`; leads if none did |
//! | M11 | any | GRANT | leads, announces COORDINATOR |
//! | M12 | granted | `T_g` | M1 again; hardened: grants the next highest, and M1 when none is left |
//! | M13 | answered | `T_h` | M1; hardened: waits longer, the more members are above it |
//! | M14 | electing | STOP | stops; hardened: and waits `T_h` |
//! | M15 | any | COORDINATOR | from a higher member: follows; from a lower member: M1, unless its election goes on |
//!
//! **Textbook mode** is the paper, with its gaps filled:
//!
//! - The paper calls D the *average* delay; a time-out on an average fires too early, so D is the bound here. The paper waits D
//!   after a GRANT, though the COORDINATOR needs 2D, and 3D after an OK, which is too short when the ELECTION was fast (F10).
//!   Here `T_g` = 2D + p, and `T_ok` = 2D + p + W, because W may delay every answer. `T_h` = 4D + 2p + W: a window that a
//!   higher asker opened may close, and the OK leave, at the moment when the lowest member asks; that one still waits `T_ok`,
//!   its GRANT takes D + p and the COORDINATOR D.
//! - A member that knows no higher member still waits `T_ok`: section 3.1 step 5 lets it lead only if no lower member asks.
//!   For the same reason an asker waits for all of `T_ok` even if all members have answered.
//! - Section 3.1 step 3 lost its primes in print. It is M6, with R < P < P'.
//! - Of the set S of askers only the lowest matters, so only that one is kept, and forgotten with the election.
//! - A leader that is asked answers like any other member, is granted, and announces itself again.
//! - A member that has granted stops its election when a lower one asks, like a member that still waits for answers. While it
//!   takes part in an election it starts no other (cs425).
//! - What the paper does not mention does not happen: M7 and M8 send no answer, and a stopped member waits for nothing. That is
//!   unsafe, because it makes live members look dead (F11a, F13).
//! - COORDINATOR goes to all members that are not down. No source says what a higher member does with one from a lower
//!   member; as in Bully, it starts an election (M15). An ELECTION from a higher member is ignored (M2'), as are OK and STOP
//!   outside their election (M9', M14').
//!
//! The broken readings are the variants `kordafshari-figure4` (only a winner empties S, F19; and a member follows any COORDINATOR,
//! because the figure has no rule about it), `kordafshari-literal-timers` (D after a GRANT and 3D after an OK; the repeated ELECTIONs
//! that result are answered) and `eager` (a member that knows no higher member announces itself at once).
//!
//! Cost without further failures, with n live members, the r-th lowest of which detects the failure: 2(n−r) + n messages,
//! formula (1), for r < n, and n−1 for r = n, where no member is granted. At most 3n−2: the paper's formula (2) prints 3n−1, a
//! slip. Detectors r₁ < r₂ < … whose ELECTIONs all fall into the receivers' windows: (n−r₁) + Σ(n−rⱼ) + n, formula (6); if all n
//! detect, (n²+3n−2)/2. If they detect in falling order and further apart, STOPs and superfluous answers are added. At most
//! 4D + 2p + W from the first ELECTION to the last COORDINATOR.
//!
//! **Hardened mode** adds the rules of [`leader_tracker`](super::leader_tracker), and these:
//!
//! - M2a: a member that follows a live leader answers ELECTION with ALIVE and does not adopt the asker's term, and the
//!   asker defers: a member that cannot reach the leader must not disturb members that can (F8);
//! - M2b: a leader that is asked announces itself again to the asker, instead of taking part in an election (F6);
//! - M7, M8: every asker is answered, so that no member takes silence for death (F11a, F13);
//! - M10, M11: COORDINATOR goes to all members, even to those that are down, which heals a false suspicion;
//! - M11': a GRANT that arrives after the election has ended is answered like an ELECTION, or not at all while the leader's
//!   announcement is in flight: with two askers, the second GRANT would double the broadcast;
//! - M12: falls back on members that have answered already, instead of asking all again for each one that died (F11b);
//! - M13: a member waits `T_g` longer for each member above it; otherwise all of them would ask at the same instant when one
//!   asker dies (F12). A GRANT may take that long to come down to it by M12;
//! - M12, M13: an election that is repeated backs off exponentially, with jitter;
//! - M14: otherwise a stopped member would have no reason to act when the other asker dies.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::leader_tracker::{Action, LeaderClaim, LeaderTracker, Upkeep, UpkeepTimer, key_len};
use crate::config::{Config, Timing, Variant};
use crate::explore::Explore;
use crate::members::{Key, NodeId, Term};
use crate::protocol::{self, Boot, Effects, Event, Kind, Protocol, View, varint_len};
use crate::time::{Delay, Span};

/// A member that runs Modified Bully.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ModifiedBully {
    tracker: LeaderTracker,
    state: State,
    /// Figure 4: the lowest member that has asked since this one last won.
    lowest_ever: Option<NodeId>,
    /// Hardened: its last COORDINATOR may still be in flight.
    announcing: bool,
}

/// What a member is doing. In all states but the first it waits for one timer.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
enum State {
    /// Follows, leads, or knows no leader and does nothing about it.
    #[default]
    Idle,
    /// Has been asked by this one and perhaps by others above it, and lets the window run out.
    Collecting(Asker),
    /// Has answered this one, and waits for a COORDINATOR.
    Answered(Asker),
    /// Has asked, and collects answers.
    Electing(Poll),
    /// Has granted the highest of those that answered, and waits for its COORDINATOR.
    Granted(Poll),
    /// Hardened: has given up its own election in favour of another one, and waits for a COORDINATOR.
    Deferring,
}

/// A member that asks for an election.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Asker {
    key: Key,
    /// The number of its election.
    term: Term,
}

/// An election of a member's own.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Poll {
    /// Its number: an OK or STOP to an older one does not count.
    term: Term,
    /// Who has answered and has not been granted, lowest first.
    answers: Vec<Key>,
}

/// The messages of Modified Bully.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// "I have answered you, and a member below you has asked since."
    Stop {
        /// The number of the election to stop.
        term: Term,
    },
    /// "The coordinator is gone. Who is alive above me?"
    Election {
        /// The election's number.
        term: Term,
    },
    /// "I am alive, and this high."
    Ok {
        /// The number of the election it answers.
        term: Term,
        /// The election key of the one that answers.
        prio: Key,
        /// Hardened: it has answered this lower one before, so the asker should wait for that election.
        busy: Option<NodeId>,
    },
    /// "You are the highest that answered: lead."
    Grant {
        /// The number of the election it won.
        term: Term,
    },
    /// "I lead."
    Coordinator {
        /// The number of the election it won.
        term: Term,
    },
    /// A message of hardened mode outside elections.
    Upkeep(Upkeep),
}

/// What a modified bully waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// W: more ELECTIONs.
    Window,
    /// `T_ok`: OKs.
    Reply,
    /// `T_g`: the COORDINATOR of the one it has granted.
    Grant,
    /// `T_h`: the COORDINATOR of an election that another member holds.
    Announcement,
    /// Hardened: the time in which its last COORDINATOR may still be in flight.
    Announced,
    /// A timer of hardened mode outside elections.
    Upkeep(UpkeepTimer),
}

impl Protocol for ModifiedBully {
    type Config = Config;
    type Message = Message;
    type Timer = Timer;
    type Durable = Term;

    fn start(id: NodeId, config: &Config, boot: Boot<Term>, out: &mut Effects<Self>) -> Self {
        let (tracker, action) = LeaderTracker::start(id, config, &boot, out);
        let mut bully = Self { tracker, state: State::Idle, lowest_ever: None, announcing: false };
        bully.apply(config, action, out);
        bully
    }

    fn handle(&mut self, config: &Config, event: Event<Message, Timer>, out: &mut Effects<Self>) {
        let before = self.view();
        match event {
            Event::Campaign if self.electing() => {}
            Event::Campaign => self.call_election(config, out),
            Event::Command(_) | Event::Retired | Event::Crashed => {}
            Event::PeerDown(peer) => {
                let electing = self.electing();
                let action = self.tracker.on_peer_down(config, peer, electing, out);
                self.apply(config, action, out);
            }
            Event::PeerUp(peer) => self.tracker.on_peer_up(peer, out),
            Event::Timer(timer) => self.on_timer(config, timer, out),
            Event::Message { from, message } => self.on_message(config, from, message, out),
        }
        let after = self.view();
        if after != before {
            out.announce(after);
        }
    }

    fn view(&self) -> View {
        self.tracker.view(self.electing())
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

impl Explore for ModifiedBully {}

impl ModifiedBully {
    fn electing(&self) -> bool {
        self.state != State::Idle
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
            Message::Stop { term } => self.on_stop(config, term, out),
            Message::Election { term } => {
                let asker = Asker { key: config.members.key(from), term };
                self.on_election(config, asker, out);
            }
            // The member that it names will be granted: no member answers for another.
            Message::Ok { prio, .. } if prio.id != from => out.rule("M9'"),
            Message::Ok { term, prio, busy } => self.on_ok(config, term, prio, busy, out),
            Message::Grant { term } => {
                let granter = Asker { key: config.members.key(from), term };
                self.on_grant(config, granter, out);
            }
            Message::Coordinator { term } => {
                let offered = LeaderClaim { term, leader: config.members.key(from) };
                self.on_coordinator(config, offered, out);
            }
            Message::Upkeep(upkeep) => {
                let electing = self.electing();
                let action = self.tracker.on_upkeep(config, from, upkeep, electing, out);
                self.apply(config, action, out);
            }
        }
    }

    fn on_timer(&mut self, config: &Config, timer: Timer, out: &mut Effects<Self>) {
        match (timer, std::mem::take(&mut self.state)) {
            (Timer::Window, State::Collecting(lowest)) => {
                out.rule("M4");
                let key = self.lowest_ever.map_or(lowest.key, |id| config.members.key(id));
                self.answer(config, Asker { key, ..lowest }, out);
            }
            (Timer::Reply, State::Electing(poll)) => {
                out.rule("M10");
                if !self.grant_highest(config, poll, out) {
                    self.lead(config, out);
                }
            }
            (Timer::Grant, State::Granted(poll)) => {
                out.rule("M12");
                if !config.hardened() || !self.grant_highest(config, poll, out) {
                    self.tracker.election_failed();
                    self.call_election(config, out);
                }
            }
            (Timer::Announcement, State::Answered(_) | State::Deferring) => {
                out.rule("M13");
                self.tracker.election_failed();
                self.call_election(config, out);
            }
            (timer, state) => {
                self.state = state;
                self.on_other_timer(config, timer, out);
            }
        }
    }

    /// A timer that does not end the state it is in.
    fn on_other_timer(&mut self, config: &Config, timer: Timer, out: &mut Effects<Self>) {
        match timer {
            Timer::Announced => self.announcing = false,
            Timer::Upkeep(timer) => {
                let action = self.tracker.on_timer(config, timer, self.electing(), out);
                self.apply(config, action, out);
            }
            // Disarmed when the state it belongs to was left.
            Timer::Window | Timer::Reply | Timer::Grant | Timer::Announcement => {}
        }
    }

    fn apply(&mut self, config: &Config, action: Action, out: &mut Effects<Self>) {
        match (action, &self.state) {
            (Action::Nothing, _) => {}
            (Action::EndElection, _) => self.end_election(out),
            // Its own election goes on, or the one it is about to answer.
            (
                Action::StartElection,
                State::Electing(_) | State::Granted(_) | State::Collecting(_),
            ) => {}
            (Action::StartElection, _) => self.call_election(config, out),
            (Action::Defer(claim), State::Electing(_) | State::Granted(_)) => {
                if claim.leader > self.key(config) {
                    self.tracker.defer_to(claim.leader.id);
                    self.defer(config, out);
                }
            }
            (Action::Defer(_), _) => {}
        }
    }

    /// M1: asks all higher members.
    fn call_election(&mut self, config: &Config, out: &mut Effects<Self>) {
        out.rule("M1");
        out.election_started();
        self.end_election(out);
        let term = self.tracker.open_term(out);
        let mut asked = false;
        for peer in config.members.higher(self.tracker.id()) {
            if !self.tracker.is_down(peer) {
                asked = true;
                out.send(peer, Message::Election { term });
            }
        }
        if config.reads(Variant::Eager) && !asked {
            return self.lead(config, out);
        }
        self.state = State::Electing(Poll { term, answers: Vec::new() });
        out.set_timer(Timer::Reply, config.timing.reply() + config.timing.window);
    }

    /// M2, M3, M5: a member asks.
    fn on_election(&mut self, config: &Config, asker: Asker, out: &mut Effects<Self>) {
        if asker.key > self.key(config) {
            return out.rule("M2'");
        }
        if config.hardened() && !self.electing() && self.point_to_leader(config, asker, out) {
            return;
        }
        self.tracker.see_term(asker.term, out);
        if config.reads(Variant::Figure4) {
            let kept = self.lowest_ever.map_or(asker.key, |id| config.members.key(id));
            self.lowest_ever = Some(kept.min(asker.key).id);
        }
        match &mut self.state {
            State::Answered(answered) => {
                let answered = *answered;
                return self.on_late_election(config, answered, asker, out);
            }
            State::Collecting(lowest) => {
                out.rule("M3");
                if asker.supersedes(*lowest) {
                    *lowest = asker;
                }
                return;
            }
            State::Electing(_) | State::Granted(_) => out.rule("M5"),
            State::Idle | State::Deferring => {}
        }
        out.rule("M2");
        self.end_election(out);
        self.state = State::Collecting(asker);
        out.set_timer(Timer::Window, config.timing.window);
    }

    /// M6, M7, M8: a member asks after the answer.
    fn on_late_election(
        &mut self,
        config: &Config,
        answered: Asker,
        asker: Asker,
        out: &mut Effects<Self>,
    ) {
        match asker.key.cmp(&answered.key) {
            Ordering::Less => {
                out.rule("M6");
                out.send(answered.key.id, Message::Stop { term: answered.term });
                self.answer(config, asker, out);
            }
            Ordering::Equal => {
                out.rule("M7");
                if config.hardened() || config.reads(Variant::LiteralTimers) {
                    let latest = if asker.supersedes(answered) { asker } else { answered };
                    self.answer(config, latest, out);
                }
            }
            Ordering::Greater => {
                out.rule("M8");
                if config.hardened() {
                    let (term, prio) = (asker.term, self.key(config));
                    let busy = Some(answered.key.id);
                    out.send(asker.key.id, Message::Ok { term, prio, busy });
                }
            }
        }
    }

    /// M2a, M2b: a member that asks while there is a leader is told of it. Returns whether there is one.
    fn point_to_leader(&mut self, config: &Config, asker: Asker, out: &mut Effects<Self>) -> bool {
        if self.tracker.leads() {
            out.rule("M2b");
            if asker.term > self.tracker.term() {
                // The announcement must not be older than the question.
                self.tracker.see_term(asker.term, out);
                self.tracker.lead(config, out);
            }
            let term = self.tracker.term();
            out.send(asker.key.id, Message::Coordinator { term });
            return true;
        }
        let Some(claim) = self.tracker.live_claim().filter(|r| r.leader > asker.key) else {
            return false;
        };
        out.rule("M2a");
        out.send(asker.key.id, Upkeep::Alive { claim }.into());
        true
    }

    fn answer(&mut self, config: &Config, asker: Asker, out: &mut Effects<Self>) {
        let (term, prio) = (asker.term, self.key(config));
        out.send(asker.key.id, Message::Ok { term, prio, busy: None });
        self.state = State::Answered(asker);
        self.await_coordinator(config, out);
    }

    /// Gives its own election up for one that another member holds.
    fn defer(&mut self, config: &Config, out: &mut Effects<Self>) {
        self.end_election(out);
        self.state = State::Deferring;
        self.await_coordinator(config, out);
    }

    /// Arms `T_h`.
    fn await_coordinator(&self, config: &Config, out: &mut Effects<Self>) {
        let timing = &config.timing;
        if config.reads(Variant::LiteralTimers) {
            return out.set_timer(Timer::Announcement, timing.transmission * 3);
        }
        let wait = timing.announcement() + timing.window;
        let Delay { min, max } = Timing::back_off(wait, self.tracker.attempts());
        let above = config.members.len() - 1 - config.members.rank(self.tracker.id());
        let stagger = match config.hardened() {
            true => timing.reply() * above as u64,
            false => Span::ZERO,
        };
        out.set_timer(Timer::Announcement, Delay::between(min + stagger, max + stagger));
    }

    /// M9: a higher member is alive.
    fn on_ok(
        &mut self,
        config: &Config,
        term: Term,
        prio: Key,
        busy: Option<NodeId>,
        out: &mut Effects<Self>,
    ) {
        let State::Electing(poll) = &mut self.state else {
            return out.rule("M9'");
        };
        if poll.term != term {
            return out.rule("M9'");
        }
        out.rule("M9");
        if busy.is_some() {
            return self.defer(config, out);
        }
        if let Err(place) = poll.answers.binary_search(&prio) {
            poll.answers.insert(place, prio);
        }
    }

    /// M10, M12: grants the highest of those that have answered and have not been granted. Returns whether there is one.
    fn grant_highest(&mut self, config: &Config, mut poll: Poll, out: &mut Effects<Self>) -> bool {
        let Some(highest) = poll.answers.pop() else {
            return false;
        };
        out.send(highest.id, Message::Grant { term: poll.term });
        self.state = State::Granted(poll);
        let wait = match config.reads(Variant::LiteralTimers) {
            true => config.timing.transmission,
            false => config.timing.reply(),
        };
        out.set_timer(Timer::Grant, Timing::back_off(wait, self.tracker.attempts()));
        true
    }

    /// M11: it is the highest that answered. Hardened: one that takes part in no election knows its result.
    fn on_grant(&mut self, config: &Config, granter: Asker, out: &mut Effects<Self>) {
        if !config.hardened() || self.electing() {
            out.rule("M11");
            self.tracker.see_term(granter.term, out);
            return self.lead(config, out);
        }
        out.rule("M11'");
        let known = granter.term <= self.tracker.term();
        if !(known && self.announcing && self.tracker.leads()) {
            self.point_to_leader(config, granter, out);
        }
    }

    /// M14: another member holds the election.
    fn on_stop(&mut self, config: &Config, term: Term, out: &mut Effects<Self>) {
        match &self.state {
            State::Electing(poll) if poll.term == term => {}
            _ => return out.rule("M14'"),
        }
        out.rule("M14");
        if config.hardened() {
            self.defer(config, out);
        } else {
            self.end_election(out);
        }
    }

    /// M15: a member leads.
    fn on_coordinator(&mut self, config: &Config, offered: LeaderClaim, out: &mut Effects<Self>) {
        out.rule("M15");
        if config.reads(Variant::Figure4) {
            self.tracker.accept(config, offered, out);
            return self.end_election(out);
        }
        let action = self.tracker.on_claim(config, offered, self.electing(), out);
        self.apply(config, action, out);
    }

    /// M10, M11: leads, and tells all members.
    fn lead(&mut self, config: &Config, out: &mut Effects<Self>) {
        self.end_election(out);
        self.lowest_ever = None;
        self.tracker.lead(config, out);
        let term = self.tracker.term();
        for peer in config.members.others(self.tracker.id()) {
            if config.hardened() || !self.tracker.is_down(peer) {
                out.send(peer, Message::Coordinator { term });
            }
        }
        if config.hardened() {
            self.announcing = true;
            out.set_timer(Timer::Announced, config.timing.transmission * 2);
        }
    }

    /// Ends all waits of its election.
    fn end_election(&mut self, out: &mut Effects<Self>) {
        match std::mem::take(&mut self.state) {
            State::Idle => {}
            State::Collecting(_) => out.cancel_timer(Timer::Window),
            State::Electing(_) => out.cancel_timer(Timer::Reply),
            State::Granted(_) => out.cancel_timer(Timer::Grant),
            State::Answered(_) | State::Deferring => out.cancel_timer(Timer::Announcement),
        }
    }

    fn key(&self, config: &Config) -> Key {
        config.members.key(self.tracker.id())
    }
}

impl Asker {
    /// Whether it is to be answered rather than `other`: it is lower, or the same with a later election.
    fn supersedes(self, other: Self) -> bool {
        self.key < other.key || (self.key == other.key && self.term > other.term)
    }
}

conversions! {
    Upkeep => Message::Upkeep,
    UpkeepTimer => Timer::Upkeep,
}

/// The kinds, in the order in which those that arrive at the same instant are handled.
pub const KINDS: &[Kind] = &[
    Kind::election("STOP"),
    Kind::election("ELECTION"),
    Kind::election("OK"),
    Kind::election("GRANT"),
    Kind::election("COORDINATOR"),
    Kind::detector("ALIVE"),
    Kind::election("NACK"),
];

impl Message {
    /// Which of [`KINDS`] it is.
    fn index(&self) -> usize {
        match self {
            Self::Stop { .. } => 0,
            Self::Election { .. } => 1,
            Self::Ok { .. } => 2,
            Self::Grant { .. } => 3,
            Self::Coordinator { .. } => 4,
            Self::Upkeep(Upkeep::Alive { .. }) => 5,
            Self::Upkeep(Upkeep::Nack { .. }) => 6,
        }
    }
}

impl protocol::Message for Message {
    fn kind(&self) -> Kind {
        KINDS[self.index()]
    }

    fn encoded_len(&self) -> usize {
        1 + match self {
            Self::Stop { term }
            | Self::Election { term }
            | Self::Grant { term }
            | Self::Coordinator { term } => varint_len(term.0),
            Self::Ok { term, prio, busy } => {
                let busy_len = busy.map_or(0, |id| varint_len(u64::from(id.0)));
                varint_len(term.0) + key_len(*prio) + 1 + busy_len
            }
            Self::Upkeep(upkeep) => upkeep.encoded_len(),
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let term = match self {
            Self::Upkeep(upkeep) => return upkeep.fmt(f),
            Self::Stop { term }
            | Self::Election { term }
            | Self::Ok { term, .. }
            | Self::Grant { term }
            | Self::Coordinator { term } => *term,
        };
        f.write_str(protocol::name_of(self))?;
        if let Self::Ok { prio, busy, .. } = self {
            write!(f, " prio={prio}")?;
            if let Some(lower) = busy {
                write!(f, " busy={lower}")?;
            }
        }
        protocol::write_term(f, term)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Mode;
    use crate::members::{Incarnation, Members};
    use crate::protocol::Origin;

    /// Member 2 of three without a leader, before and after `from` tells it `message`.
    fn told(mode: Mode, from: u32, message: Message) -> [ModifiedBully; 2] {
        let timing = Timing::for_transmission(Span::from_millis(1));
        let config = Config::new(Members::range(1, 3).unwrap(), timing, mode);
        let origin = Origin::Founding { leader: None };
        let boot = Boot::new(Incarnation(1), None, origin);
        let mut out = Effects::new();
        let mut bully = ModifiedBully::start(NodeId(2), &config, boot, &mut out);
        bully.handle(&config, Event::Campaign, &mut out);
        let before = bully.clone();
        bully.handle(&config, Event::Message { from: NodeId(from), message }, &mut out);
        [before, bully]
    }

    /// No script can show this: members that agree on the keys never ask downwards.
    #[test]
    fn an_election_from_above_is_ignored() {
        for mode in [Mode::Textbook, Mode::Hardened] {
            let [before, after] = told(mode, 3, Message::Election { term: Term(7) });
            assert_eq!(before, after);
        }
    }

    /// Nor this: no member would be there to lead.
    #[test]
    fn no_member_answers_for_another() {
        for mode in [Mode::Textbook, Mode::Hardened] {
            let prio = Key { attr: 9, id: NodeId(9) };
            let term = Term(u64::from(mode == Mode::Hardened));
            let [before, after] = told(mode, 3, Message::Ok { term, prio, busy: None });
            assert_eq!(before, after);
        }
    }
}
