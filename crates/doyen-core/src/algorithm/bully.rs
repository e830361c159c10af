//! Bully (Garcia-Molina 1982; sources cs677, notes, kordafshari section 2, os-textbook, cs425).
//!
//! The member with the highest key bullies all others into following it. A member that misses the coordinator sends ELECTION
//! to every higher member. Each live one answers OK, "I take over", and holds an election of its own. A member that gets no
//! answer is the highest live one: it wins and announces itself with COORDINATOR.
//!
//! | rule | state | event | action |
//! |---|---|---|---|
//! | R1 | not electing | start | sends ELECTION to all higher members, waits T1 for an OK |
//! | R2 | any | ELECTION from a lower member | answers OK; holds an election unless it holds one or leads |
//! | R3 | electing | T1 | no higher member is alive: leads, announces COORDINATOR |
//! | R4 | electing | OK | a higher member is alive: waits T2 for its COORDINATOR |
//! | R5 | any | COORDINATOR | from a higher member: follows; from a lower member: R1, the rule the name comes from |
//! | R6 | leading | ELECTION | hardened and `eager`: OK, and COORDINATOR again |
//! | R7 | waiting | T2 | the member that answered has died: R1 again |
//!
//! **Textbook mode** is the sources' algorithm, completed where they leave gaps. The guard in R2 is that of kordafshari and
//! cs425 ("unless it is already holding one"); without it, cs677 is exponential. T1 and T2 are two timers although the notes
//! have one interval T; otherwise a fast OK causes a needless restart. A member that knows no higher member still waits T1;
//! cs425 lets it announce at once, which breaks formula (5). An OK outside an election is ignored (R4'), as is an ELECTION
//! from a higher member (R2'). COORDINATOR goes to the lower members (cs677, notes, os-textbook, cs425) or to all
//! (kordafshari), by configuration. The broken readings are the variants `cs677-no-guard`, `cs677-no-t2`, `notes-one-timer`,
//! `eager`, `serial` and `naive-ok`.
//!
//! Cost without further failures, with n live members, the r-th lowest of which detects the failure: (n−r+1)(n−r) + n−1
//! messages, at most n²−1, and at most 4D + 2p from the first ELECTION to the last COORDINATOR.
//!
//! **Hardened mode** adds the rules of [`leader_tracker`](super::leader_tracker), and these:
//!
//! - R2a: a member that follows a live leader answers ELECTION with ALIVE and does not adopt the asker's term, and the
//!   asker defers: a member that cannot reach the leader must not disturb members that can (F8);
//! - R3: COORDINATOR goes to all members, even to those that are down, which heals a false suspicion;
//! - R6: a leader that is asked announces itself again; otherwise the asker would wait and ask forever (F6);
//! - R7: exponential back-off with jitter.

pub mod rules;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::elective::Elective;
use super::leader_tracker::{ALIVE, Background, BackgroundTimer, LeaderClaim, LeaderTracker, NACK};
use crate::config::{Announce, Config, Timing, Variant};
use crate::members::{NodeId, Term};
use crate::protocol::{self, AlgorithmMessage, Boot, Context, Family, Kind};
use crate::time::Span;

/// A member that runs Bully.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Bully {
    tracker: LeaderTracker,
    state: State,
    /// The number of the election it holds: an OK to an older one does not count.
    election: Term,
    /// With R6: its last COORDINATOR may still be in flight.
    announcing: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum State {
    /// Follows, leads, or knows no leader and does nothing about it.
    Normal,
    /// Serial variant: has answered OK and holds its own election one stage later.
    Called,
    /// Has asked, and received no OK yet.
    Electing,
    /// Has received an OK, and waits for a COORDINATOR.
    Waiting,
}

/// The messages of Bully, with the number of an election: of the one that is held, answered or won.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of the fields say what they are")]
pub enum Message {
    /// Starts an election: is any higher member alive?
    Election { term: Term },
    /// "I am alive and take over."
    Ok { term: Term },
    /// "I won."
    Coordinator { term: Term },
    /// A message of hardened mode outside elections.
    Background(Background),
}

/// What a bully waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// T1: an OK.
    Reply,
    /// T2: a COORDINATOR.
    Announcement,
    /// Serial variant: the next stage.
    Stage,
    /// With R6: the time in which its last COORDINATOR may still be in flight.
    Announced,
    /// A timer of hardened mode outside elections.
    Background(BackgroundTimer),
}

impl Elective for Bully {
    type Message = Message;
    type Timer = Timer;

    fn new(tracker: LeaderTracker, _: &Config, _: &Boot<Term>) -> Self {
        Self { tracker, state: State::Normal, election: Term::default(), announcing: false }
    }

    fn tracker(&self) -> &LeaderTracker {
        &self.tracker
    }

    fn tracker_mut(&mut self) -> &mut LeaderTracker {
        &mut self.tracker
    }

    fn electing(&self) -> bool {
        self.state != State::Normal
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Election { term } => self.on_election(from, term, cx),
            Message::Ok { term } => self.on_ok(term, cx),
            Message::Coordinator { term } => {
                cx.rule("R5");
                self.on_claim(LeaderClaim { term, leader: cx.config.members.key(from) }, cx);
            }
            Message::Background(message) => self.on_background(from, message, cx),
        }
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        match timer {
            Timer::Reply => self.win(cx),
            Timer::Announcement => {
                cx.rule("R7");
                self.tracker.election_failed();
                self.call_election(cx);
            }
            Timer::Stage => self.hold_election(cx),
            Timer::Announced => self.announcing = false,
            Timer::Background(timer) => self.on_background_timer(timer, cx),
        }
    }

    /// R1 under a new number: this member starts it.
    fn call_election(&mut self, cx: &mut Context<'_, Self>) {
        self.tracker.open_term(cx);
        self.hold_election(cx);
    }

    /// Ends all waits of its election.
    fn end_election(&mut self, cx: &mut Context<'_, Self>) {
        match self.state {
            State::Normal => {}
            State::Called => cx.cancel_timer(Timer::Stage),
            State::Electing => cx.cancel_timer(Timer::Reply),
            State::Waiting => cx.cancel_timer(Timer::Announcement),
        }
        self.state = State::Normal;
    }

    /// Arms T2.
    fn await_end(&mut self, cx: &mut Context<'_, Self>) {
        self.end_election(cx);
        self.state = State::Waiting;
        if cx.config.reads(Variant::NoT2) || cx.config.reads(Variant::NoGuard) {
            return; // cs677 waits forever
        }
        let wait = match cx.config.reads(Variant::OneTimer) {
            true => cx.config.timing.reply(),
            false => cx.config.timing.announcement(),
        };
        cx.set_timer(Timer::Announcement, Timing::back_off(wait, self.tracker.attempts()));
    }
}

impl Bully {
    /// R1: asks all higher members.
    fn hold_election(&mut self, cx: &mut Context<'_, Self>) {
        cx.rule("R1");
        cx.election_started();
        self.end_election(cx);
        self.state = State::Electing;
        self.election = self.tracker.term();
        let mut asked = false;
        for peer in cx.config.members.higher(self.tracker.id()) {
            if !self.tracker.is_down(peer) {
                asked = true;
                cx.send(peer, Message::Election { term: self.election });
            }
        }
        let eager = cx.config.reads(Variant::Eager) || cx.config.reads(Variant::NoGuard);
        if eager && !asked {
            self.win(cx);
        } else {
            cx.set_timer(Timer::Reply, cx.config.timing.reply());
        }
    }

    /// R2: a lower member asks.
    fn on_election(&mut self, from: NodeId, term: Term, cx: &mut Context<'_, Self>) {
        let asker = cx.config.members.key(from);
        if asker > cx.config.members.key(self.tracker.id()) {
            return cx.rule("R2'");
        }
        if reassures(cx.config) && !self.electing() {
            if self.tracker.leads() {
                return self.reassure(from, term, cx);
            }
            if let Some(claim) = self.tracker.live_claim().filter(|r| r.leader > asker) {
                cx.rule("R2a");
                return cx.send(from, Background::Alive { claim });
            }
        }
        cx.rule("R2");
        self.tracker.see_term(term, cx);
        cx.send(from, Message::Ok { term });
        if (self.electing() || self.tracker.leads()) && !cx.config.reads(Variant::NoGuard) {
            return;
        }
        if cx.config.reads(Variant::Serial) {
            self.state = State::Called;
            return cx.set_timer(Timer::Stage, cx.config.timing.transmission);
        }
        self.hold_election(cx);
    }

    /// R6: the leader answers, and announces itself again unless its announcement may still be in flight. It takes
    /// over the asker's term, so that the announcement is not older than the question.
    fn reassure(&mut self, from: NodeId, term: Term, cx: &mut Context<'_, Self>) {
        cx.rule("R6");
        cx.send(from, Message::Ok { term });
        let news = term > self.tracker.term();
        self.tracker.see_term(term, cx);
        self.tracker.lead(cx);
        if news || !self.announcing {
            cx.send(from, Message::Coordinator { term: self.tracker.term() });
        }
    }

    /// R4: a higher member is alive.
    fn on_ok(&mut self, term: Term, cx: &mut Context<'_, Self>) {
        if self.state == State::Waiting {
            return; // one OK is enough
        }
        let expected = self.state == State::Electing && term == self.election;
        let naive = cx.config.reads(Variant::NaiveOk) && self.state == State::Normal;
        if !expected && !naive {
            return cx.rule("R4'");
        }
        cx.rule("R4");
        self.await_end(cx);
    }

    /// R3: no higher member is alive.
    fn win(&mut self, cx: &mut Context<'_, Self>) {
        cx.rule("R3");
        self.end_election(cx);
        self.tracker.lead(cx);
        let me = self.tracker.id();
        let term = self.tracker.term();
        let to_all = cx.config.hardened() || cx.config.announce == Announce::All;
        let above = cx.config.members.higher(me).filter(|_| to_all);
        for peer in cx.config.members.lower(me).chain(above) {
            if cx.config.hardened() || !self.tracker.is_down(peer) {
                cx.send(peer, Message::Coordinator { term });
            }
        }
        if reassures(cx.config) {
            self.announcing = true;
            cx.set_timer(Timer::Announced, crossing(cx.config));
        }
    }
}

/// Whether a leader that is asked announces itself again (R6). An eager winner must: its COORDINATOR may overtake the
/// ELECTIONs of others, who then ask once more.
fn reassures(config: &Config) -> bool {
    config.hardened() || config.reads(Variant::Eager)
}

/// For how long an announcement, and a question that crossed it, may be on their way: 2D. What arrives at a bound is in
/// time, but an eager winner answers the question that arrives after 2D sharp: so the reference counts have it.
fn crossing(config: &Config) -> Span {
    let bound = config.timing.transmission * 2;
    if config.hardened() { bound } else { Span::from_nanos(bound.as_nanos().saturating_sub(1)) }
}

conversions! {
    Background => Message::Background,
    BackgroundTimer => Timer::Background,
}

impl AlgorithmMessage for Message {
    kinds! {
        Self::Election { .. } => Kind::own("ELECTION", Family::Ask, "asks a higher member whether it is up"),
        Self::Ok { .. } => Kind::own("OK", Family::Answer, "answers a lower member: the sender is up and takes over"),
        Self::Coordinator { .. } => Kind::own("COORDINATOR", Family::Announce, "announces that the sender leads"),
        Self::Background(Background::Alive { .. }) => ALIVE,
        Self::Background(Background::Nack { .. }) => NACK,
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Election { term } | Self::Ok { term } | Self::Coordinator { term } => {
                f.write_str(protocol::name_of(self))?;
                protocol::write_term(f, *term)
            }
            Self::Background(message) => message.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::testing::{config, started, told};
    use crate::config::Mode;

    /// No script can show this: members that agree on the keys never ask downwards.
    #[test]
    fn an_election_from_above_is_ignored() {
        for mode in [Mode::Textbook, Mode::Hardened] {
            let config = config(3, mode);
            let mut bully: Bully = started(2, &config);
            let before = bully.clone();
            let out = told(&mut bully, &config, 3, Message::Election { term: Term::default() });
            assert_eq!(bully, before);
            assert_eq!((out.rules(), out.list()), (&["R2'"][..], &[][..]));
        }
    }
}
