//! A protocol that is not quite itself: a shipped algorithm of which one thing is changed, from the outside.
//!
//! The wrapped state machine is the shipped code, untouched. What goes in and what comes out passes through a
//! [`Mutation`]: a timer is never armed, a message never sent, a term forgotten. A [`Mutant`] is itself a [`Protocol`],
//! so the checker explores it like any other, bare or within a [`Node`](doyen_core::node::Node).

use std::borrow::Cow;

use doyen_core::config::Config;
use doyen_core::explore::Explore;
use doyen_core::members::{Members, NodeId};
use doyen_core::protocol::{
    Boot, Effect, EffectOf, Effects, Event, Kind, Message, Origin, Protocol, View, name_of,
};
use doyen_core::registry::{AnyConfig, AnyDurable, AnyMessage, AnyProtocol, AnyTimer};
use doyen_core::time::{Delay, Span};

/// A member that runs an algorithm, changed as its configuration says.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Mutant {
    id: NodeId,
    inner: AnyProtocol,
}

/// The configuration of a mutant: that of its algorithm, and what is changed.
#[derive(Debug)]
pub(crate) struct MutantConfig {
    pub(crate) inner: AnyConfig,
    pub(crate) mutation: Mutation,
}

/// What is changed. Kinds of messages go by their names, timers by the beginnings of theirs.
#[derive(Debug)]
pub(crate) enum Mutation {
    /// Nothing.
    None,
    /// Messages of this kind are never sent.
    NeverSaid(&'static str),
    /// Messages of this kind are handled twice.
    HeardTwice(&'static str),
    /// Messages are changed before they are sent.
    Says(fn(AnyMessage) -> AnyMessage),
    /// A message of this kind is judged as a member would that stands below everybody else.
    HumbleAbout(&'static str),
    /// This timer is never armed.
    NeverArmed(&'static str),
    /// This timer fires in half the time.
    Halved(&'static str),
    /// Nothing is ever stored.
    Forgetful,
    /// What the failure detector says of crashes is not listened to.
    NeverGivesUp,
    /// A member that comes up again behaves as if everybody did.
    Founder,
    /// The member with this id does not know that this other one exists.
    NeverHeardOf(u32, u32),
    /// Two things at once.
    Both(Box<Self>, Box<Self>),
}

impl Mutation {
    /// This and another change.
    pub(crate) fn and(self, other: Self) -> Self {
        Self::Both(Box::new(self), Box::new(other))
    }

    /// Whether a member that comes up again behaves as if everybody did.
    fn founds(&self) -> bool {
        match self {
            Self::Founder => true,
            Self::Both(one, other) => one.founds() || other.founds(),
            _ => false,
        }
    }

    /// How often the algorithm is told of `event`.
    fn times(&self, event: &Event<AnyMessage, AnyTimer>) -> usize {
        match (self, event) {
            (Self::Both(one, other), _) => one.times(event) * other.times(event),
            (Self::HeardTwice(kind), Event::Message { message, .. }) if is(message, kind) => 2,
            (Self::NeverGivesUp, Event::PeerDown(_)) => 0,
            _ => 1,
        }
    }

    /// What member `me` believes when it handles `event`, or starts, if not what it should.
    fn belief(
        &self,
        me: NodeId,
        config: &AnyConfig,
        event: Option<&Event<AnyMessage, AnyTimer>>,
    ) -> Option<AnyConfig> {
        let members = match (self, event) {
            (Self::Both(one, other), _) => {
                return one.belief(me, config, event).or_else(|| other.belief(me, config, event));
            }
            (Self::HumbleAbout(kind), Some(Event::Message { message, .. }))
                if is(message, kind) =>
            {
                let humble = config.inner.members.clone().with_attrs([(me, i64::MIN)]);
                humble.expect("this member is one of them")
            }
            (&Self::NeverHeardOf(id, other), _) if me.0 == id => {
                let known = config.inner.members.iter().filter(|peer| peer.0 != other).collect();
                Members::listed(known).expect("this member itself is left")
            }
            _ => return None,
        };
        let inner = Config { members, ..config.inner.clone() };
        Some(AnyConfig { inner, ..*config })
    }

    /// What is done instead of what the algorithm wants done, if anything.
    fn done(&self, effect: EffectOf<AnyProtocol>) -> Option<EffectOf<AnyProtocol>> {
        match (self, effect) {
            (Self::Both(one, other), effect) => other.done(one.done(effect)?),
            (Self::NeverSaid(kind), Effect::Send { message, .. }) if is(&message, kind) => None,
            (Self::Says(change), Effect::Send { to, message }) => {
                Some(Effect::Send { to, message: change(message) })
            }
            (Self::NeverArmed(name), Effect::SetTimer { timer, .. }) if bears(timer, name) => None,
            (Self::Halved(name), Effect::SetTimer { timer, after }) if bears(timer, name) => {
                let half = |span: Span| Span::from_nanos(span.as_nanos() / 2);
                let after = Delay::between(half(after.min), half(after.max));
                Some(Effect::SetTimer { timer, after })
            }
            (Self::Forgetful, Effect::Persist(_)) => None,
            (_, effect) => Some(effect),
        }
    }
}

fn is(message: &impl Message, kind: &str) -> bool {
    name_of(message) == kind
}

fn bears(timer: impl std::fmt::Debug, name: &str) -> bool {
    format!("{timer:?}").starts_with(name)
}

impl Protocol for Mutant {
    type Config = MutantConfig;
    type Message = AnyMessage;
    type Timer = AnyTimer;
    type Durable = AnyDurable;

    fn start(
        id: NodeId,
        config: &Self::Config,
        mut boot: Boot<AnyDurable>,
        out: &mut Effects<Self>,
    ) -> Self {
        if config.mutation.founds() && boot.origin == Origin::Joining {
            boot.origin = Origin::Founding { leader: None };
        }
        let belief = config.mutation.belief(id, &config.inner, None);
        let mut wanted = Effects::new();
        let inner =
            AnyProtocol::start(id, belief.as_ref().unwrap_or(&config.inner), boot, &mut wanted);
        carry_out(config, wanted, out);
        Self { id, inner }
    }

    fn handle(
        &mut self,
        config: &Self::Config,
        event: Event<AnyMessage, AnyTimer>,
        out: &mut Effects<Self>,
    ) {
        let belief = config.mutation.belief(self.id, &config.inner, Some(&event));
        for _ in 0..config.mutation.times(&event) {
            let mut wanted = Effects::new();
            let believed = belief.as_ref().unwrap_or(&config.inner);
            self.inner.handle(believed, event.clone(), &mut wanted);
            carry_out(config, wanted, out);
        }
    }

    fn view(&self) -> View {
        self.inner.view()
    }

    fn kinds(config: &Self::Config) -> Cow<'static, [Kind]> {
        AnyProtocol::kinds(&config.inner)
    }

    fn kind_index(config: &Self::Config, message: &AnyMessage) -> usize {
        AnyProtocol::kind_index(&config.inner, message)
    }

    fn is_background(timer: AnyTimer) -> bool {
        AnyProtocol::is_background(timer)
    }
}

impl Explore for Mutant {}

/// Passes on what the algorithm wants done, changed as the mutation says.
fn carry_out(config: &MutantConfig, mut wanted: Effects<AnyProtocol>, out: &mut Effects<Mutant>) {
    wanted.rules().iter().for_each(|rule| out.rule(rule));
    for effect in wanted.drain() {
        match config.mutation.done(effect) {
            Some(Effect::Persist(durable)) => out.persist(durable),
            Some(Effect::Send { to, message }) => out.send(to, message),
            Some(Effect::SetTimer { timer, after }) => out.set_timer(timer, after),
            Some(Effect::CancelTimer(timer)) => out.cancel_timer(timer),
            Some(Effect::Announce(view)) => out.announce(view),
            Some(Effect::Inform(notice)) => out.inform(notice),
            None => {}
        }
    }
}
