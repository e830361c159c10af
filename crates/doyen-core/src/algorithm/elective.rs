//! What makes a state machine of the sources a [`Protocol`]: every algorithm but the quorum is [`Elective`].
//!
//! An elective algorithm has its own messages, timers and states. It leaves to its
//! [`LeaderTracker`](super::leader_tracker) which leader it follows, and does as the tracker says: starts an election,
//! ends it, or defers. What remains of the contract is the same for all of them, and is here.

use std::borrow::Cow;
use std::fmt::Debug;
use std::hash::Hash;

use super::leader_tracker::{Action, Background, BackgroundTimer, LeaderClaim, LeaderTracker};
use crate::config::Config;
use crate::explore::Explore;
use crate::members::{NodeId, Term};
use crate::protocol::{AlgorithmMessage, Boot, Context, Effects, Event, Kind, Protocol, View};

/// An algorithm whose members track their leader.
pub trait Elective: Clone + Eq + Hash + Debug {
    /// Its messages, and those of hardened mode outside elections.
    type Message: AlgorithmMessage + From<Background>;
    /// Its timers, and those of hardened mode outside elections.
    type Timer: Copy + Eq + Ord + Hash + Debug + From<BackgroundTimer>;

    /// A member that takes part in no election.
    fn new(tracker: LeaderTracker, config: &Config, boot: &Boot<Term>) -> Self;

    /// Which leader it follows.
    fn tracker(&self) -> &LeaderTracker;

    /// The same, to be changed.
    fn tracker_mut(&mut self) -> &mut LeaderTracker;

    /// Whether it takes part in an election whose end it does not know.
    fn electing(&self) -> bool;

    /// Handles a message.
    fn on_message(&mut self, from: NodeId, message: Self::Message, cx: &mut Context<'_, Self>);

    /// To which member it passes `message` on, if it does nothing else; see [`Protocol::relay`].
    #[inline(always)]
    fn passes_on(&self, _: &Config, _: &Self::Message) -> Option<NodeId> {
        None
    }

    /// Handles a timer.
    fn on_timer(&mut self, timer: Self::Timer, cx: &mut Context<'_, Self>);

    /// Starts an election, whatever it is doing.
    fn call_election(&mut self, cx: &mut Context<'_, Self>);

    /// The election is over for it: it follows a leader, or leads.
    fn end_election(&mut self, cx: &mut Context<'_, Self>);

    /// Waits for the end of an election that other members hold, or have held without it (H6). It asks again later, less
    /// and less often.
    fn await_end(&mut self, cx: &mut Context<'_, Self>);

    /// Starts an election, unless it takes part in one.
    fn start_election(&mut self, cx: &mut Context<'_, Self>) {
        if !self.electing() {
            self.call_election(cx);
        }
    }

    /// Does what its tracker has decided.
    #[inline(never)]
    fn apply(&mut self, action: Action, cx: &mut Context<'_, Self>) {
        match action {
            Action::Nothing => {}
            Action::EndElection => self.end_election(cx),
            Action::StartElection => self.start_election(cx),
            Action::Defer(LeaderClaim { leader, .. }) => {
                if self.electing() && leader > cx.config.members.key(self.tracker().id()) {
                    self.tracker_mut().defer_to(leader.id);
                    self.await_end(cx);
                }
            }
        }
    }

    /// Handles an event that is no message.
    #[inline(never)]
    fn on_other(&mut self, event: Event<Self::Message, Self::Timer>, cx: &mut Context<'_, Self>) {
        match event {
            Event::Timer(timer) => self.on_timer(timer, cx),
            Event::Campaign => self.start_election(cx),
            Event::PeerDown(peer) => {
                let electing = self.electing();
                let action = self.tracker_mut().on_peer_down(peer, electing, cx);
                self.apply(action, cx);
            }
            Event::PeerUp(peer) => self.tracker_mut().on_peer_up(peer, cx),
            // It is no message, and elections have neither commands nor a critical section.
            Event::Message { .. }
            | Event::Command(_)
            | Event::Retired
            | Event::Request
            | Event::Exit
            | Event::Crashed => {}
        }
    }

    /// A member claims to lead, or another member says so.
    fn on_claim(&mut self, claim: LeaderClaim, cx: &mut Context<'_, Self>) {
        let electing = self.electing();
        let action = self.tracker_mut().on_claim(claim, electing, cx);
        self.apply(action, cx);
    }

    /// Handles a message of hardened mode outside elections.
    fn on_background(&mut self, from: NodeId, message: Background, cx: &mut Context<'_, Self>) {
        let electing = self.electing();
        let action = self.tracker_mut().on_background(from, message, electing, cx);
        self.apply(action, cx);
    }

    /// Handles a timer of hardened mode outside elections.
    fn on_background_timer(&mut self, timer: BackgroundTimer, cx: &mut Context<'_, Self>) {
        let electing = self.electing();
        let action = self.tracker_mut().on_timer(timer, electing, cx);
        self.apply(action, cx);
    }
}

impl<A: Elective> Protocol for A {
    type Config = Config;
    type Message = <A as Elective>::Message;
    type Timer = <A as Elective>::Timer;
    type Durable = Term;

    fn start(id: NodeId, config: &Config, boot: Boot<Term>, out: &mut Effects<Self>) -> Self {
        let cx = &mut Context { config, out };
        let (tracker, action) = LeaderTracker::start(id, &boot, cx);
        let mut member = A::new(tracker, config, &boot);
        member.apply(action, cx);
        member
    }

    #[inline(always)]
    fn handle(
        &mut self,
        config: &Config,
        event: Event<<A as Elective>::Message, <A as Elective>::Timer>,
        out: &mut Effects<Self>,
    ) {
        let before = self.tracker().view_key(self.electing());
        let mut cx = Context { config, out };
        if let Event::Message { from, message } = event {
            self.tracker_mut().mark_alive(from);
            self.on_message(from, message, &mut cx);
        } else {
            self.on_other(event, &mut cx.again());
        }
        if self.tracker().view_key(self.electing()) != before {
            cx.announce(self.view());
        }
    }

    #[inline(always)]
    fn relay(&self, config: &Config, message: &<A as Elective>::Message) -> Option<NodeId> {
        self.passes_on(config, message)
    }

    fn view(&self) -> View {
        self.tracker().view(self.electing())
    }

    fn kinds(_: &Config) -> Cow<'static, [Kind]> {
        <A as Elective>::Message::KINDS.into()
    }

    #[inline]
    fn kind_index(_: &Config, message: &<A as Elective>::Message) -> usize {
        message.index()
    }

    fn is_background(timer: <A as Elective>::Timer) -> bool {
        timer == BackgroundTimer::Heartbeat.into()
    }
}

impl<A: Elective> Explore for A {}
