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

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::leader_tracker::{Action, LeaderClaim, LeaderTracker, Upkeep, UpkeepTimer};
use crate::config::{Announce, Config, Timing, Variant};
use crate::explore::Explore;
use crate::members::{NodeId, Term};
use crate::protocol::{self, Boot, Effects, Event, Kind, Protocol, View, varint_len};
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

/// The messages of Bully.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Starts an election: is any higher member alive?
    Election {
        /// The election's number.
        term: Term,
    },
    /// "I am alive and take over."
    Ok {
        /// The number of the election it answers.
        term: Term,
    },
    /// "I won."
    Coordinator {
        /// The number of the election it won.
        term: Term,
    },
    /// A message of hardened mode outside elections.
    Upkeep(Upkeep),
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
    Upkeep(UpkeepTimer),
}

impl Protocol for Bully {
    type Config = Config;
    type Message = Message;
    type Timer = Timer;
    type Durable = Term;

    fn start(id: NodeId, config: &Config, boot: Boot<Term>, out: &mut Effects<Self>) -> Self {
        let (tracker, action) = LeaderTracker::start(id, config, &boot, out);
        let mut bully =
            Self { tracker, state: State::Normal, election: Term::default(), announcing: false };
        bully.apply(config, action, out);
        bully
    }

    fn handle(&mut self, config: &Config, event: Event<Message, Timer>, out: &mut Effects<Self>) {
        let before = self.view();
        match event {
            Event::Campaign => self.apply(config, Action::StartElection, out),
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

impl Explore for Bully {}

impl Bully {
    fn electing(&self) -> bool {
        self.state != State::Normal
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
            Message::Election { term } => self.on_election(config, from, term, out),
            Message::Ok { term } => self.on_ok(config, term, out),
            Message::Coordinator { term } => {
                out.rule("R5");
                let offered = LeaderClaim { term, leader: config.members.key(from) };
                let action = self.tracker.on_claim(config, offered, self.electing(), out);
                self.apply(config, action, out);
            }
            Message::Upkeep(upkeep) => {
                let electing = self.electing();
                let action = self.tracker.on_upkeep(config, from, upkeep, electing, out);
                self.apply(config, action, out);
            }
        }
    }

    fn on_timer(&mut self, config: &Config, timer: Timer, out: &mut Effects<Self>) {
        match timer {
            Timer::Reply => self.win(config, out),
            Timer::Announcement => {
                out.rule("R7");
                self.tracker.election_failed();
                self.call_election(config, out);
            }
            Timer::Stage => self.hold_election(config, out),
            Timer::Announced => self.announcing = false,
            Timer::Upkeep(timer) => {
                let action = self.tracker.on_timer(config, timer, self.electing(), out);
                self.apply(config, action, out);
            }
        }
    }

    fn apply(&mut self, config: &Config, action: Action, out: &mut Effects<Self>) {
        match action {
            Action::Nothing => {}
            Action::EndElection => self.end_election(out),
            Action::StartElection if self.electing() => {}
            Action::StartElection => self.call_election(config, out),
            Action::Defer(claim) => self.defer(config, claim, out),
        }
    }

    /// R1 under a new number: this member starts it.
    fn call_election(&mut self, config: &Config, out: &mut Effects<Self>) {
        self.tracker.open_term(out);
        self.hold_election(config, out);
    }

    /// R1: asks all higher members.
    fn hold_election(&mut self, config: &Config, out: &mut Effects<Self>) {
        out.rule("R1");
        out.election_started();
        self.end_election(out);
        self.state = State::Electing;
        self.election = self.tracker.term();
        let mut asked = false;
        for peer in config.members.higher(self.tracker.id()) {
            if !self.tracker.is_down(peer) {
                asked = true;
                out.send(peer, Message::Election { term: self.election });
            }
        }
        let eager = config.reads(Variant::Eager) || config.reads(Variant::NoGuard);
        if eager && !asked {
            self.win(config, out);
        } else {
            out.set_timer(Timer::Reply, config.timing.reply());
        }
    }

    /// R2: a lower member asks.
    fn on_election(&mut self, config: &Config, from: NodeId, term: Term, out: &mut Effects<Self>) {
        let asker = config.members.key(from);
        if asker > config.members.key(self.tracker.id()) {
            return out.rule("R2'");
        }
        if reassures(config) && !self.electing() {
            if self.tracker.leads() {
                return self.reassure(config, from, term, out);
            }
            if let Some(claim) = self.tracker.live_claim().filter(|r| r.leader > asker) {
                out.rule("R2a");
                return out.send(from, Upkeep::Alive { claim }.into());
            }
        }
        out.rule("R2");
        self.tracker.see_term(term, out);
        out.send(from, Message::Ok { term });
        if (self.electing() || self.tracker.leads()) && !config.reads(Variant::NoGuard) {
            return;
        }
        if config.reads(Variant::Serial) {
            self.state = State::Called;
            return out.set_timer(Timer::Stage, config.timing.transmission);
        }
        self.hold_election(config, out);
    }

    /// R6: the leader answers, and announces itself again unless its announcement may still be in flight. It takes
    /// over the asker's term, so that the announcement is not older than the question.
    fn reassure(&mut self, config: &Config, from: NodeId, term: Term, out: &mut Effects<Self>) {
        out.rule("R6");
        out.send(from, Message::Ok { term });
        let news = term > self.tracker.term();
        self.tracker.see_term(term, out);
        self.tracker.lead(config, out);
        if news || !self.announcing {
            out.send(from, Message::Coordinator { term: self.tracker.term() });
        }
    }

    /// R4: a higher member is alive.
    fn on_ok(&mut self, config: &Config, term: Term, out: &mut Effects<Self>) {
        if self.state == State::Waiting {
            return; // one OK is enough
        }
        let expected = self.state == State::Electing && term == self.election;
        let naive = config.reads(Variant::NaiveOk) && self.state == State::Normal;
        if !expected && !naive {
            return out.rule("R4'");
        }
        out.rule("R4");
        self.await_announcement(config, out);
    }

    fn await_announcement(&mut self, config: &Config, out: &mut Effects<Self>) {
        self.end_election(out);
        self.state = State::Waiting;
        if config.reads(Variant::NoT2) || config.reads(Variant::NoGuard) {
            return; // cs677 waits forever
        }
        let wait = match config.reads(Variant::OneTimer) {
            true => config.timing.reply(),
            false => config.timing.announcement(),
        };
        out.set_timer(Timer::Announcement, Timing::back_off(wait, self.tracker.attempts()));
    }

    /// H6: another member follows a leader that this one does not receive. It defers, and asks again later, less and less
    /// often.
    fn defer(&mut self, config: &Config, claim: LeaderClaim, out: &mut Effects<Self>) {
        if self.electing() && claim.leader > config.members.key(self.tracker.id()) {
            self.tracker.defer_to(claim.leader.id);
            self.await_announcement(config, out);
        }
    }

    /// R3: no higher member is alive.
    fn win(&mut self, config: &Config, out: &mut Effects<Self>) {
        out.rule("R3");
        self.end_election(out);
        self.tracker.lead(config, out);
        let me = self.tracker.id();
        let term = self.tracker.term();
        let to_all = config.hardened() || config.announce == Announce::All;
        let above = config.members.higher(me).filter(|_| to_all);
        for peer in config.members.lower(me).chain(above) {
            if config.hardened() || !self.tracker.is_down(peer) {
                out.send(peer, Message::Coordinator { term });
            }
        }
        if reassures(config) {
            self.announcing = true;
            out.set_timer(Timer::Announced, crossing(config));
        }
    }

    /// Ends all waits of its election.
    fn end_election(&mut self, out: &mut Effects<Self>) {
        match self.state {
            State::Normal => {}
            State::Called => out.cancel_timer(Timer::Stage),
            State::Electing => out.cancel_timer(Timer::Reply),
            State::Waiting => out.cancel_timer(Timer::Announcement),
        }
        self.state = State::Normal;
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
    Upkeep => Message::Upkeep,
    UpkeepTimer => Timer::Upkeep,
}

/// The kinds, in the order in which those that arrive at the same instant are handled.
pub const KINDS: &[Kind] = &[
    Kind::election("ELECTION"),
    Kind::election("OK"),
    Kind::election("COORDINATOR"),
    Kind::detector("ALIVE"),
    Kind::election("NACK"),
];

impl Message {
    /// Which of [`KINDS`] it is.
    fn index(&self) -> usize {
        match self {
            Self::Election { .. } => 0,
            Self::Ok { .. } => 1,
            Self::Coordinator { .. } => 2,
            Self::Upkeep(Upkeep::Alive { .. }) => 3,
            Self::Upkeep(Upkeep::Nack { .. }) => 4,
        }
    }
}

impl protocol::Message for Message {
    fn kind(&self) -> Kind {
        KINDS[self.index()]
    }

    fn encoded_len(&self) -> usize {
        1 + match self {
            Self::Election { term } | Self::Ok { term } | Self::Coordinator { term } => {
                varint_len(term.0)
            }
            Self::Upkeep(upkeep) => upkeep.encoded_len(),
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Election { term } | Self::Ok { term } | Self::Coordinator { term } => {
                f.write_str(protocol::name_of(self))?;
                protocol::write_term(f, *term)
            }
            Self::Upkeep(upkeep) => upkeep.fmt(f),
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

    /// No script can show this: members that agree on the keys never ask downwards.
    #[test]
    fn an_election_from_above_is_ignored() {
        let timing = Timing::for_transmission(Span::from_millis(1));
        for mode in [Mode::Textbook, Mode::Hardened] {
            let config = Config::new(Members::range(1, 3).unwrap(), timing, mode);
            let origin = Origin::Founding { leader: Some(NodeId(3)) };
            let boot = Boot::new(Incarnation(1), None, origin);
            let mut out = Effects::new();
            let mut bully = Bully::start(NodeId(2), &config, boot, &mut out);
            let before = bully.clone();
            out.clear();
            let message = Message::Election { term: Term::default() };
            bully.handle(&config, Event::Message { from: NodeId(3), message }, &mut out);
            assert_eq!(bully, before);
            assert_eq!(out.rules(), ["R2'"]);
            assert!(out.list().is_empty());
        }
    }
}
