//! The functions of a protocol that only explorers use: which states are equivalent, which messages can no longer
//! matter, and which members are interchangeable.
//!
//! An explorer visits every reachable state. The fewer states it distinguishes, the more it can cover. None of this
//! changes what a member does, and every function has a default that is always correct: each state stands for itself.
//! So a new algorithm needs only `impl Explore for It {}`.

use crate::members::{NodeId, Term};
use crate::protocol::Protocol;

/// A protocol whose states can be compared by what makes a difference.
pub trait Explore: Protocol {
    /// Whether its incarnation makes a difference to a member that has its disk. If not, explorers, which remove no
    /// disks, start every process with the same number.
    fn heeds_incarnation(_config: &Self::Config) -> bool {
        true
    }

    /// Whether states have a canonical form, which the next four functions give, under this configuration.
    fn has_canonical_form(_config: &Self::Config) -> bool {
        false
    }

    /// The same state without what no longer makes a difference to what this member will do. States with the same
    /// canonical form are explored once.
    #[must_use]
    fn canonical(&self, _config: &Self::Config) -> Self {
        self.clone()
    }

    /// One of this member's timers, as it is named in its [canonical form](Self::canonical).
    fn canonical_timer(&self, _config: &Self::Config, timer: Self::Timer) -> Self::Timer {
        timer
    }

    /// Of the [serial numbers](Self::serial) that this member assigns, the first that still makes a difference to it:
    /// all before it and all of other series are equivalent, and the others count from it in its [canonical
    /// form](Self::canonical).
    fn first_live_serial(&self, _config: &Self::Config) -> Option<Serial> {
        None
    }

    /// The number that a member has assigned to a message, to match answers, and which member assigned it.
    fn serial(_message: &Self::Message) -> Option<(Serial, Giver)> {
        None
    }

    /// The same message without that number.
    #[must_use]
    fn without_serial(message: &Self::Message) -> Self::Message {
        message.clone()
    }

    /// Whether `message` from `from` seems to have no effect on this member, now and whatever happens to it from now
    /// on, as long as it keeps its disk. Explorers verify that before they drop the message.
    fn is_obsolete(&self, _config: &Self::Config, _from: NodeId, _message: &Self::Message) -> bool {
        false
    }

    /// Whether hosts handle the end of this timer before everything else that happens at the same instant, by any clock.
    fn ends_first(_timer: Self::Timer) -> bool {
        false
    }

    /// The generation of the token that this member holds, if it holds one that lets it enter a critical section.
    fn token(&self) -> Option<Term> {
        None
    }

    /// The generation of the token that `message` carries, if it carries one.
    fn token_in(_message: &Self::Message) -> Option<Term> {
        None
    }

    /// The time by its logical clock, if it has one.
    fn time(&self) -> Option<u64> {
        None
    }

    /// Something that is no message of the algorithm has this time.
    fn observe_time(&mut self, _time: u64) {}

    /// Whether members differ only in their names, under this configuration: what can happen to some can happen to any
    /// others in their place.
    fn is_symmetric(_config: &Self::Config) -> bool {
        false
    }

    /// The same [canonical form](Self::canonical) with renamed members. Explorers use it where members are symmetric.
    #[must_use]
    fn renamed(&self, _names: &dyn Fn(NodeId) -> NodeId) -> Self {
        self.clone()
    }

    /// The stored state with renamed members.
    #[must_use]
    fn renamed_durable(
        durable: &Self::Durable,
        _names: &dyn Fn(NodeId) -> NodeId,
    ) -> Self::Durable {
        durable.clone()
    }
}

/// A number that a member assigns to a message, by which it recognizes the answers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Serial {
    /// Each series counts from the beginning. A member does not return to a series that it has left.
    pub series: Term,
    /// The number.
    pub number: u64,
}

/// The member that assigned a message its number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Giver {
    /// Its sender.
    Sender,
    /// Its receiver, because the message is an answer.
    Receiver,
}
