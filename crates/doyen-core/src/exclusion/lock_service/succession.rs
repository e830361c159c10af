//! What the election below guarantees to the lock service, as a separate election, for explorers: leases of leaders with
//! rising terms, of which one ends before the next begins. A quorum below the same clients has more states than can be
//! explored; `doyen check --algorithm quorum` shows that it keeps the promise.
//!
//! | event | action |
//! |---|---|
//! | all members start together | the founding leader has a lease, which may end at any moment until a lease is over |
//! | the longest such lease is over, by any clock | the member before the founding leader leads in the next term, for good |
//! | from then on, at any moment | each other member learns of it |
//!
//! There are two leaders, and no messages. A member that restarts follows none until it learns of the second one; the second
//! one itself may come late.

use std::borrow::Cow;

use super::Election;
use crate::algorithm::quorum::{self, Round, Timer};
use crate::config::Config;
use crate::explore::Explore;
use crate::members::{NodeId, Term};
use crate::protocol::{AlgorithmMessage, Boot, Effects, Event, Kind, Origin, Protocol, Role, View};
use crate::time::{Delay, Span};

/// A member that leads, or learns who does.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Succession {
    id: NodeId,
    /// The leader that it follows, and the term; itself while it has a lease.
    leader: Option<NodeId>,
    term: Term,
    /// Whether its lease has an end.
    ends: bool,
}

const FIRST: Term = Term(1);
const SECOND: Term = Term(2);

impl Succession {
    fn leads(&self) -> bool {
        self.leader == Some(self.id)
    }

    /// The member that leads in the second term. The founding leader is the highest member.
    fn second(config: &Config) -> NodeId {
        let members = &config.members;
        members.at(members.len().saturating_sub(2))
    }

    /// It will lead in the second term, or learn who does.
    fn await_second(&self, is_founding: bool, config: &Config, out: &mut Effects<Self>) {
        let earliest = config.quorum.pace.vote_lease;
        let is_second = is_founding && self.id == Self::second(config);
        let latest = if is_second { earliest } else { Span::FOREVER };
        out.set_timer(Timer::Takeover, Delay::between(earliest, latest));
    }
}

impl Protocol for Succession {
    type Config = Config;
    type Message = quorum::Message;
    type Timer = Timer;
    type Durable = quorum::Stored;

    fn start(
        id: NodeId,
        config: &Config,
        boot: Boot<quorum::Stored>,
        out: &mut Effects<Self>,
    ) -> Self {
        let is_founding = matches!(boot.origin, Origin::Founding { .. });
        let leader = is_founding.then(|| config.members.highest());
        let term = if is_founding { FIRST } else { Term(0) };
        let member = Self { id, leader, term, ends: true };
        if member.leads() {
            let lease = Delay::between(Span::ZERO, config.quorum.pace.lease());
            out.set_timer(Timer::Lease(Round::FIRST), lease);
        }
        member.await_second(is_founding, config, out);
        member
    }

    fn handle(
        &mut self,
        config: &Config,
        event: Event<quorum::Message, Timer>,
        out: &mut Effects<Self>,
    ) {
        match event {
            Event::Timer(Timer::Lease(_)) if self.leads() && self.ends => self.leader = None,
            Event::Timer(Timer::Takeover) => {
                let leader = Some(Self::second(config));
                *self = Self { id: self.id, leader, term: SECOND, ends: false };
            }
            _ => return,
        }
        out.announce(self.view());
    }

    fn view(&self) -> View {
        let role = if self.leads() { Role::Leader } else { Role::Follower };
        View::new(self.leader, self.term, role)
    }

    fn kinds(_: &Config) -> Cow<'static, [Kind]> {
        <quorum::Message as AlgorithmMessage>::KINDS.into()
    }

    fn kind_index(_: &Config, message: &quorum::Message) -> usize {
        message.index()
    }

    fn is_background(_: Timer) -> bool {
        true
    }

    fn heeds_detector(_: &Config) -> bool {
        false
    }

    fn lease(&self) -> Option<Timer> {
        self.leads().then_some(Timer::Lease(Round::FIRST))
    }

    fn is_lease(timer: Timer) -> bool {
        matches!(timer, Timer::Lease(_))
    }
}

impl Explore for Succession {}

impl Election for Succession {}
