//! What only explorers ask of a protocol: which states are one, which messages cannot matter any more, and which
//! members can be exchanged for each other.
//!
//! An explorer visits every state that can be reached. The fewer of them are told apart, the more it can cover. None of
//! this changes what a member does, and every answer has a default that is always right: each state stands for itself.
//! So a new algorithm needs nothing but `impl Explore for It {}`.

use crate::members::{NodeId, Term};
use crate::protocol::Protocol;

/// A protocol of which states can be compared by what makes a difference.
pub trait Explore: Protocol {
    /// Whether it makes a difference to a member that has its disk in which of its lives it is. Where it makes none,
    /// explorers, which take no disk away, start every life with the same number.
    fn heeds_incarnation(_config: &Self::Config) -> bool {
        true
    }

    /// Whether states have a canonical form, which the next four give, if members have this configuration.
    fn has_canonical_form(_config: &Self::Config) -> bool {
        false
    }

    /// The same state without what makes no difference any more to what this member will do. States with the same
    /// canonical form are explored once.
    #[must_use]
    fn canonical(&self, _config: &Self::Config) -> Self {
        self.clone()
    }

    /// One of this member's timers, as it is called in its [canonical form](Self::canonical).
    fn canonical_timer(&self, _config: &Self::Config, timer: Self::Timer) -> Self::Timer {
        timer
    }

    /// Of the [serial numbers](Self::serial) that this member gives, the first that still makes a difference to it: all
    /// before it and all of other series are alike, and the others count from it in its
    /// [canonical form](Self::canonical).
    fn first_live_serial(&self, _config: &Self::Config) -> Option<Serial> {
        None
    }

    /// The number that a member has given a message, to tell answers apart, and who that member is.
    fn serial(_message: &Self::Message) -> Option<(Serial, Giver)> {
        None
    }

    /// The same message without that number.
    #[must_use]
    fn without_serial(message: &Self::Message) -> Self::Message {
        message.clone()
    }

    /// Whether `message` of `from` seems to have no effect on this member, now and whatever happens to it from now on, as
    /// long as it keeps its disk. Explorers verify that before they leave the message out.
    fn is_obsolete(&self, _config: &Self::Config, _from: NodeId, _message: &Self::Message) -> bool {
        false
    }

    /// Whether members are alike but for their names, if they have this configuration: what can happen to some can happen
    /// to any others in their place.
    fn is_symmetric(_config: &Self::Config) -> bool {
        false
    }

    /// The same [canonical form](Self::canonical), if members had other names. Explorers ask for it where members are
    /// alike.
    #[must_use]
    fn renamed(&self, _names: &dyn Fn(NodeId) -> NodeId) -> Self {
        self.clone()
    }

    /// What is stored, if members had other names.
    #[must_use]
    fn renamed_durable(
        durable: &Self::Durable,
        _names: &dyn Fn(NodeId) -> NodeId,
    ) -> Self::Durable {
        durable.clone()
    }
}

/// A number that a member gives to what it says, so that it knows the answers by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Serial {
    /// Numbers are counted anew in each series. A member does not come back to a series that it has left.
    pub series: Term,
    /// The number.
    pub number: u64,
}

/// Who has given a message its number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Giver {
    /// Its sender.
    Sender,
    /// Its receiver, to whom this is the answer.
    Receiver,
}
