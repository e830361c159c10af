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
//! | M15 | any | COORDINATOR | from a higher member: follows; from a lower member: M1, unless its election continues |
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
//! The broken readings are the variants `kordafshari-figure4` (only a winner empties S, F19; and a member follows any
//! COORDINATOR, because the figure has no rule about it), `kordafshari-literal-timers` (D after a GRANT and 3D after an OK;
//! the repeated ELECTIONs that result are answered) and `eager` (a member that knows no higher member announces itself at
//! once).
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

pub mod rules;

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::elective::Elective;
use super::leader_tracker::{
    ALIVE, Action, Background, BackgroundTimer, LeaderClaim, LeaderTracker, NACK,
};
use crate::config::{Config, Timing, Variant};
use crate::members::{Key, NodeId, Term};
use crate::protocol::{self, AlgorithmMessage, Boot, Context, Family, Kind};
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

/// The messages of Modified Bully, with the number of the election that is to stop, is held, answered or won.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of the fields say what they are")]
pub enum Message {
    /// "I have answered you, and a member below you has asked since."
    Stop { term: Term },
    /// "The coordinator is gone. Who is alive above me?"
    Election { term: Term },
    /// "I am alive, and this high."
    Ok {
        term: Term,
        prio: Key,
        /// Hardened: it has answered this lower one before, so the asker should wait for that election.
        busy: Option<NodeId>,
    },
    /// "You are the highest that answered: lead."
    Grant { term: Term },
    /// "I lead."
    Coordinator { term: Term },
    /// A message of hardened mode outside elections.
    Background(Background),
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
    Background(BackgroundTimer),
}

impl Elective for ModifiedBully {
    type Message = Message;
    type Timer = Timer;

    fn new(tracker: LeaderTracker, _: &Config, _: &Boot<Term>) -> Self {
        Self { tracker, state: State::Idle, lowest_ever: None, announcing: false }
    }

    fn tracker(&self) -> &LeaderTracker {
        &self.tracker
    }

    fn tracker_mut(&mut self) -> &mut LeaderTracker {
        &mut self.tracker
    }

    fn electing(&self) -> bool {
        self.state != State::Idle
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Stop { term } => self.on_stop(term, cx),
            Message::Election { term } => {
                let asker = Asker { key: cx.config.members.key(from), term };
                self.on_election(asker, cx);
            }
            // The member that it names will be granted: no member answers for another.
            Message::Ok { prio, .. } if prio.id != from => cx.rule("M9'"),
            Message::Ok { term, prio, busy } => self.on_ok(term, prio, busy, cx),
            Message::Grant { term } => {
                let granter = Asker { key: cx.config.members.key(from), term };
                self.on_grant(granter, cx);
            }
            Message::Coordinator { term } => {
                let offered = LeaderClaim { term, leader: cx.config.members.key(from) };
                self.on_coordinator(offered, cx);
            }
            Message::Background(message) => self.on_background(from, message, cx),
        }
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        match (timer, std::mem::take(&mut self.state)) {
            (Timer::Window, State::Collecting(lowest)) => {
                cx.rule("M4");
                let key = self.lowest_ever.map_or(lowest.key, |id| cx.config.members.key(id));
                self.answer(Asker { key, ..lowest }, cx);
            }
            (Timer::Reply, State::Electing(poll)) => {
                cx.rule("M10");
                if !self.grant_highest(poll, cx) {
                    self.lead(cx);
                }
            }
            (Timer::Grant, State::Granted(poll)) => {
                cx.rule("M12");
                if !cx.config.hardened() || !self.grant_highest(poll, cx) {
                    self.tracker.election_failed();
                    self.call_election(cx);
                }
            }
            (Timer::Announcement, State::Answered(_) | State::Deferring) => {
                cx.rule("M13");
                self.tracker.election_failed();
                self.call_election(cx);
            }
            (timer, state) => {
                self.state = state;
                self.on_other_timer(timer, cx);
            }
        }
    }

    fn apply(&mut self, action: Action, cx: &mut Context<'_, Self>) {
        match (action, &self.state) {
            (Action::Nothing, _) => {}
            (Action::EndElection, _) => self.end_election(cx),
            // Its own election continues, or the one that it is about to answer.
            (
                Action::StartElection,
                State::Electing(_) | State::Granted(_) | State::Collecting(_),
            ) => {}
            (Action::StartElection, _) => self.call_election(cx),
            (Action::Defer(claim), State::Electing(_) | State::Granted(_)) => {
                if claim.leader > self.key(cx.config) {
                    self.tracker.defer_to(claim.leader.id);
                    self.await_end(cx);
                }
            }
            (Action::Defer(_), _) => {}
        }
    }

    /// M1: asks all higher members.
    fn call_election(&mut self, cx: &mut Context<'_, Self>) {
        cx.rule("M1");
        cx.election_started();
        self.end_election(cx);
        let term = self.tracker.open_term(cx);
        let mut asked = false;
        for peer in cx.config.members.higher(self.tracker.id()) {
            if !self.tracker.is_down(peer) {
                asked = true;
                cx.send(peer, Message::Election { term });
            }
        }
        if cx.config.reads(Variant::Eager) && !asked {
            return self.lead(cx);
        }
        self.state = State::Electing(Poll { term, answers: Vec::new() });
        cx.set_timer(Timer::Reply, cx.config.timing.reply() + cx.config.timing.window);
    }

    /// Ends all waits of its election.
    fn end_election(&mut self, cx: &mut Context<'_, Self>) {
        match std::mem::take(&mut self.state) {
            State::Idle => {}
            State::Collecting(_) => cx.cancel_timer(Timer::Window),
            State::Electing(_) => cx.cancel_timer(Timer::Reply),
            State::Granted(_) => cx.cancel_timer(Timer::Grant),
            State::Answered(_) | State::Deferring => cx.cancel_timer(Timer::Announcement),
        }
    }

    /// Gives its own election up for one that another member holds.
    fn await_end(&mut self, cx: &mut Context<'_, Self>) {
        self.end_election(cx);
        self.state = State::Deferring;
        self.await_coordinator(cx);
    }
}

impl ModifiedBully {
    /// A timer that does not end the state it is in.
    fn on_other_timer(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        match timer {
            Timer::Announced => self.announcing = false,
            Timer::Background(timer) => self.on_background_timer(timer, cx),
            // Disarmed when the state it belongs to was left.
            Timer::Window | Timer::Reply | Timer::Grant | Timer::Announcement => {}
        }
    }

    /// M2, M3, M5: a member asks.
    fn on_election(&mut self, asker: Asker, cx: &mut Context<'_, Self>) {
        if asker.key > self.key(cx.config) {
            return cx.rule("M2'");
        }
        if cx.config.hardened() && !self.electing() && self.point_to_leader(asker, cx) {
            return;
        }
        self.tracker.see_term(asker.term, cx);
        if cx.config.reads(Variant::Figure4) {
            let kept = self.lowest_ever.map_or(asker.key, |id| cx.config.members.key(id));
            self.lowest_ever = Some(kept.min(asker.key).id);
        }
        match &mut self.state {
            State::Answered(answered) => {
                let answered = *answered;
                return self.on_late_election(answered, asker, cx);
            }
            State::Collecting(lowest) => {
                cx.rule("M3");
                if asker.supersedes(*lowest) {
                    *lowest = asker;
                }
                return;
            }
            State::Electing(_) | State::Granted(_) => cx.rule("M5"),
            State::Idle | State::Deferring => {}
        }
        cx.rule("M2");
        self.end_election(cx);
        self.state = State::Collecting(asker);
        cx.set_timer(Timer::Window, cx.config.timing.window);
    }

    /// M6, M7, M8: a member asks after the answer.
    fn on_late_election(&mut self, answered: Asker, asker: Asker, cx: &mut Context<'_, Self>) {
        match asker.key.cmp(&answered.key) {
            Ordering::Less => {
                cx.rule("M6");
                cx.send(answered.key.id, Message::Stop { term: answered.term });
                self.answer(asker, cx);
            }
            Ordering::Equal => {
                cx.rule("M7");
                if cx.config.hardened() || cx.config.reads(Variant::LiteralTimers) {
                    let latest = if asker.supersedes(answered) { asker } else { answered };
                    self.answer(latest, cx);
                }
            }
            Ordering::Greater => {
                cx.rule("M8");
                if cx.config.hardened() {
                    let (term, prio) = (asker.term, self.key(cx.config));
                    let busy = Some(answered.key.id);
                    cx.send(asker.key.id, Message::Ok { term, prio, busy });
                }
            }
        }
    }

    /// M2a, M2b: a member that asks while there is a leader is told of it. Returns whether there is one.
    fn point_to_leader(&mut self, asker: Asker, cx: &mut Context<'_, Self>) -> bool {
        if self.tracker.leads() {
            cx.rule("M2b");
            if asker.term > self.tracker.term() {
                // The announcement must not be older than the question.
                self.tracker.see_term(asker.term, cx);
                self.tracker.lead(cx);
            }
            let term = self.tracker.term();
            cx.send(asker.key.id, Message::Coordinator { term });
            return true;
        }
        let Some(claim) = self.tracker.live_claim().filter(|r| r.leader > asker.key) else {
            return false;
        };
        cx.rule("M2a");
        cx.send(asker.key.id, Background::Alive { claim });
        true
    }

    fn answer(&mut self, asker: Asker, cx: &mut Context<'_, Self>) {
        let (term, prio) = (asker.term, self.key(cx.config));
        cx.send(asker.key.id, Message::Ok { term, prio, busy: None });
        self.state = State::Answered(asker);
        self.await_coordinator(cx);
    }

    /// Arms `T_h`.
    fn await_coordinator(&self, cx: &mut Context<'_, Self>) {
        let timing = &cx.config.timing;
        if cx.config.reads(Variant::LiteralTimers) {
            return cx.set_timer(Timer::Announcement, timing.transmission * 3);
        }
        let wait = timing.announcement() + timing.window;
        let Delay { min, max } = Timing::back_off(wait, self.tracker.attempts());
        let above = cx.config.members.len() - 1 - cx.config.members.rank(self.tracker.id());
        let stagger = match cx.config.hardened() {
            true => timing.reply() * above as u64,
            false => Span::ZERO,
        };
        cx.set_timer(Timer::Announcement, Delay::between(min + stagger, max + stagger));
    }

    /// M9: a higher member is alive.
    fn on_ok(&mut self, term: Term, prio: Key, busy: Option<NodeId>, cx: &mut Context<'_, Self>) {
        let State::Electing(poll) = &mut self.state else {
            return cx.rule("M9'");
        };
        if poll.term != term {
            return cx.rule("M9'");
        }
        cx.rule("M9");
        if busy.is_some() {
            return self.await_end(cx);
        }
        if let Err(place) = poll.answers.binary_search(&prio) {
            poll.answers.insert(place, prio);
        }
    }

    /// M10, M12: grants the highest of those that have answered and have not been granted. Returns whether there is one.
    fn grant_highest(&mut self, mut poll: Poll, cx: &mut Context<'_, Self>) -> bool {
        let Some(highest) = poll.answers.pop() else {
            return false;
        };
        cx.send(highest.id, Message::Grant { term: poll.term });
        self.state = State::Granted(poll);
        let wait = match cx.config.reads(Variant::LiteralTimers) {
            true => cx.config.timing.transmission,
            false => cx.config.timing.reply(),
        };
        cx.set_timer(Timer::Grant, Timing::back_off(wait, self.tracker.attempts()));
        true
    }

    /// M11: it is the highest that answered. Hardened: one that takes part in no election knows its result.
    fn on_grant(&mut self, granter: Asker, cx: &mut Context<'_, Self>) {
        if !cx.config.hardened() || self.electing() {
            cx.rule("M11");
            self.tracker.see_term(granter.term, cx);
            return self.lead(cx);
        }
        cx.rule("M11'");
        let known = granter.term <= self.tracker.term();
        if !(known && self.announcing && self.tracker.leads()) {
            self.point_to_leader(granter, cx);
        }
    }

    /// M14: another member holds the election.
    fn on_stop(&mut self, term: Term, cx: &mut Context<'_, Self>) {
        match &self.state {
            State::Electing(poll) if poll.term == term => {}
            _ => return cx.rule("M14'"),
        }
        cx.rule("M14");
        if cx.config.hardened() {
            self.await_end(cx);
        } else {
            self.end_election(cx);
        }
    }

    /// M15: a member leads.
    fn on_coordinator(&mut self, offered: LeaderClaim, cx: &mut Context<'_, Self>) {
        cx.rule("M15");
        if cx.config.reads(Variant::Figure4) {
            self.tracker.accept(offered, cx);
            return self.end_election(cx);
        }
        self.on_claim(offered, cx);
    }

    /// M10, M11: leads, and tells all members.
    fn lead(&mut self, cx: &mut Context<'_, Self>) {
        self.end_election(cx);
        self.lowest_ever = None;
        self.tracker.lead(cx);
        let term = self.tracker.term();
        for peer in cx.config.members.others(self.tracker.id()) {
            if cx.config.hardened() || !self.tracker.is_down(peer) {
                cx.send(peer, Message::Coordinator { term });
            }
        }
        if cx.config.hardened() {
            self.announcing = true;
            cx.set_timer(Timer::Announced, cx.config.timing.transmission * 2);
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
    Background => Message::Background,
    BackgroundTimer => Timer::Background,
}

impl AlgorithmMessage for Message {
    kinds! {
        Self::Stop { .. } => Kind::own("STOP", Family::Refuse, "tells an asker to stop, because a lower member asks"),
        Self::Election { .. } => Kind::own("ELECTION", Family::Ask, "asks a higher member whether it is up"),
        Self::Ok { .. } => Kind::own("OK", Family::Answer, "answers the lowest asker with the priority of the sender"),
        Self::Grant { .. } => Kind::own("GRANT", Family::HandOver, "tells the highest member that answered to lead"),
        Self::Coordinator { .. } => Kind::own("COORDINATOR", Family::Announce, "announces that the sender leads"),
        Self::Background(Background::Alive { .. }) => ALIVE,
        Self::Background(Background::Nack { .. }) => NACK,
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let term = match self {
            Self::Background(message) => return message.fmt(f),
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
    use crate::algorithm::testing::{config, started, told};
    use crate::config::Mode;
    use crate::protocol::{Effects, Event, Protocol};

    /// Member 2 of three, which holds an election, ignores `message` from 3.
    fn is_ignored(mode: Mode, message: Message) {
        let config = config(3, mode);
        let mut bully: ModifiedBully = started(2, &config);
        bully.handle(&config, Event::Campaign, &mut Effects::new());
        let before = bully.clone();
        told(&mut bully, &config, 3, message);
        assert_eq!(bully, before);
    }

    /// No script can show this: members that agree on the keys never ask downwards.
    #[test]
    fn an_election_from_above_is_ignored() {
        for mode in [Mode::Textbook, Mode::Hardened] {
            is_ignored(mode, Message::Election { term: Term(7) });
        }
    }

    /// Nor this: no member would be there to lead.
    #[test]
    fn no_member_answers_for_another() {
        for mode in [Mode::Textbook, Mode::Hardened] {
            let prio = Key { attr: 9, id: NodeId(9) };
            let term = Term(u64::from(mode == Mode::Hardened));
            is_ignored(mode, Message::Ok { term, prio, busy: None });
        }
    }
}
