//! What makes a state machine of mutual exclusion a [`Protocol`]: every one of them is [`Exclusive`], and [`Member`] runs
//! it.
//!
//! A member is outside, waits or is inside. It knows that itself: a request of a member that is not outside, and an exit of
//! one that is not inside, change nothing, whatever the algorithm. Every change is announced before the messages that follow
//! from it leave: the programs on a machine stop before another member can enter.
//!
//! What a member would send to itself it handles at once: such messages cost nothing, and the literature does not count
//! them.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt::Debug;
use std::hash::Hash;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::explore::Explore;
use crate::members::{NodeId, Term};
use crate::protocol::{
    AlgorithmMessage, Boot, Effects, Event, Kind, Origin, Protocol, Section, View,
};
use crate::time::Delay;

/// An algorithm that lets one member at a time into the critical section.
pub trait Exclusive: Clone + Eq + Hash + Debug {
    /// Its messages.
    type Message: AlgorithmMessage;
    /// Its timers; [`NoTimer`](crate::protocol::NoTimer) for most.
    type Timer: Copy + Eq + Ord + Hash + Debug;

    /// The state of member `id`. `founding`: all members start together; otherwise it comes back to a group that may be
    /// running, and has no token.
    fn new(id: NodeId, founding: bool, config: &Config) -> Self;

    /// The member starts.
    fn start(&mut self, _turn: &mut Turn<'_, Self>) {}

    /// The member wants to enter: it waits from now on.
    fn request(&mut self, turn: &mut Turn<'_, Self>);

    /// The member has left.
    fn exit(&mut self, turn: &mut Turn<'_, Self>);

    /// A message arrives; `from` is the member itself, if it has sent it to itself.
    fn receive(&mut self, from: NodeId, message: Self::Message, turn: &mut Turn<'_, Self>);

    /// A timer fires.
    fn expire(&mut self, _timer: Self::Timer, _turn: &mut Turn<'_, Self>) {}

    // Most algorithms ignore failure reports: a member that is reported down may be inside.

    /// Whether it heeds failure reports. Then they must be true.
    fn heeds_detector(_config: &Config) -> bool {
        false
    }

    /// A member is reported down.
    fn peer_down(&mut self, _peer: NodeId, _turn: &mut Turn<'_, Self>) {}

    /// A member is reported up again.
    fn peer_up(&mut self, _peer: NodeId, _turn: &mut Turn<'_, Self>) {}

    /// Its logical clock, if it has one.
    fn clock(&self) -> Option<&Clock> {
        None
    }

    /// The same, to be raised.
    fn clock_mut(&mut self) -> Option<&mut Clock> {
        None
    }

    /// The generation of the token that member `id` holds, if it holds one.
    fn token(&self, _id: NodeId, _section: Section) -> Option<Term> {
        None
    }

    /// The generation of the token that `message` carries, if it carries one.
    fn token_in(_message: &Self::Message) -> Option<Term> {
        None
    }

    /// The member is told of a fault that a coordinator repairs.
    fn campaign(&mut self, _turn: &mut Turn<'_, Self>) {}
}

/// A member of an algorithm of mutual exclusion.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Member<A> {
    id: NodeId,
    section: Section,
    algorithm: A,
}

/// The work of one event: the member that handles it, and the effects so far.
#[derive(Debug)]
pub struct Turn<'a, A: Exclusive> {
    /// The member that handles the event.
    pub id: NodeId,
    /// Its configuration.
    pub config: &'a Config,
    section: &'a mut Section,
    out: &'a mut Effects<Member<A>>,
    to_itself: VecDeque<A::Message>,
}

impl<A: Exclusive> Turn<'_, A> {
    /// Whether the member waits to enter.
    pub fn is_waiting(&self) -> bool {
        *self.section == Section::Waiting
    }

    /// Whether the member is inside.
    pub fn is_inside(&self) -> bool {
        self.section.is_inside()
    }

    /// The member enters.
    pub fn enter(&mut self) {
        debug_assert!(self.is_waiting(), "{} enters, but it is {}", self.id, self.section);
        self.move_to(Section::INSIDE);
    }

    /// Sends `message` to `to`. A message to itself is handled at the end of this turn.
    pub fn send(&mut self, to: NodeId, message: A::Message) {
        if to == self.id {
            self.to_itself.push_back(message);
        } else {
            self.out.send(to, message);
        }
    }

    /// Sends `message` to all other members.
    pub fn send_to_others(&mut self, message: &A::Message) {
        for to in self.config.members.others(self.id) {
            self.out.send(to, message.clone());
        }
    }

    /// Notes which rule fired.
    pub fn rule(&mut self, rule: &'static str) {
        self.out.rule(rule);
    }

    /// Arms `timer`.
    pub fn set_timer(&mut self, timer: A::Timer, after: impl Into<Delay>) {
        self.out.set_timer(timer, after);
    }

    /// Disarms `timer`.
    pub fn cancel_timer(&mut self, timer: A::Timer) {
        self.out.cancel_timer(timer);
    }

    fn move_to(&mut self, section: Section) {
        *self.section = section;
        self.out.announce(View::of_section(section));
    }
}

impl<A: Exclusive> Member<A> {
    /// What the algorithm knows.
    #[cfg(test)]
    pub(crate) fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// Lets the algorithm do something, and handle what it sends to itself.
    fn act(
        &mut self,
        config: &Config,
        out: &mut Effects<Self>,
        what: impl FnOnce(&mut A, &mut Turn<'_, A>),
    ) {
        let Self { id, section, algorithm } = self;
        let mut turn = Turn { id: *id, config, section, out, to_itself: VecDeque::new() };
        what(algorithm, &mut turn);
        while let Some(message) = turn.to_itself.pop_front() {
            algorithm.receive(turn.id, message, &mut turn);
        }
    }
}

impl<A: Exclusive> Protocol for Member<A> {
    type Config = Config;
    type Message = A::Message;
    type Timer = A::Timer;
    type Durable = Term;

    fn start(id: NodeId, config: &Config, boot: Boot<Term>, out: &mut Effects<Self>) -> Self {
        let founding = matches!(boot.origin, Origin::Founding { .. });
        let algorithm = A::new(id, founding, config);
        let mut member = Self { id, section: Section::Outside, algorithm };
        member.act(config, out, A::start);
        member
    }

    fn handle(
        &mut self,
        config: &Config,
        event: Event<A::Message, A::Timer>,
        out: &mut Effects<Self>,
    ) {
        match event {
            Event::Message { from, message } => {
                self.act(config, out, |algorithm, turn| algorithm.receive(from, message, turn));
            }
            Event::Timer(timer) => {
                self.act(config, out, |algorithm, turn| algorithm.expire(timer, turn));
            }
            Event::Request if self.section.is_outside() => {
                self.act(config, out, |algorithm, turn| {
                    turn.move_to(Section::Waiting);
                    algorithm.request(turn);
                });
            }
            Event::Exit if self.section.is_inside() => {
                self.act(config, out, |algorithm, turn| {
                    turn.move_to(Section::Outside);
                    algorithm.exit(turn);
                });
            }
            Event::PeerDown(peer) => {
                self.act(config, out, |algorithm, turn| algorithm.peer_down(peer, turn));
            }
            Event::PeerUp(peer) => {
                self.act(config, out, |algorithm, turn| algorithm.peer_up(peer, turn));
            }
            Event::Campaign => self.act(config, out, A::campaign),
            Event::Request | Event::Exit | Event::Command(_) | Event::Retired | Event::Crashed => {}
        }
    }

    fn view(&self) -> View {
        View::of_section(self.section)
    }

    fn kinds(_: &Config) -> Cow<'static, [Kind]> {
        A::Message::KINDS.into()
    }

    fn kind_index(_: &Config, message: &A::Message) -> usize {
        message.index()
    }

    fn is_background(_: A::Timer) -> bool {
        false
    }

    fn heeds_detector(config: &Config) -> bool {
        A::heeds_detector(config)
    }
}

impl<A: Exclusive> Explore for Member<A> {
    fn heeds_incarnation(_: &Config) -> bool {
        false
    }

    fn time(&self) -> Option<u64> {
        self.algorithm.clock().map(|clock| clock.0)
    }

    fn observe_time(&mut self, time: u64) {
        if let Some(clock) = self.algorithm.clock_mut() {
            clock.observe(time);
        }
    }

    fn token(&self) -> Option<Term> {
        self.algorithm.token(self.id, self.section)
    }

    fn token_in(message: &A::Message) -> Option<Term> {
        A::token_in(message)
    }
}

/// A request with its place in the order of all requests: by Lamport's clock, then by id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Stamp {
    /// The clock of the member when it asked.
    pub time: u64,
    /// The member.
    pub member: NodeId,
}

/// Lamport's clock: it counts events, and never runs behind a message that has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Clock(u64);

impl Clock {
    /// Counts an event, and returns its time.
    pub fn tick(&mut self) -> u64 {
        self.0 = self.0.saturating_add(1);
        self.0
    }

    /// A message with this time has arrived.
    pub fn observe(&mut self, time: u64) {
        self.0 = self.0.max(time);
    }
}
