//! How a handler collects its effects.

use super::{Effect, EffectOf, Notice, Protocol, View};
use crate::members::NodeId;
use crate::time::Delay;

/// Collects the effects of a handler, in order. A host keeps one and drains it after every event.
#[derive(Clone, Debug)]
pub struct Effects<P: Protocol> {
    list: Vec<EffectOf<P>>,
    rules: Vec<&'static str>,
    elections: u32,
    unexplained: bool,
}

impl<P: Protocol> Effects<P> {
    /// An empty collection.
    pub const fn new() -> Self {
        Self { list: Vec::new(), rules: Vec::new(), elections: 0, unexplained: false }
    }

    /// An empty collection for a protocol that this one wraps: it notes rules only if they are wanted here.
    pub(crate) fn for_wrapped<Q: Protocol>(&self) -> Effects<Q> {
        Effects { unexplained: self.unexplained, ..Effects::new() }
    }

    /// An empty collection for a host that asks for no explanations: it notes no rules.
    pub fn unexplained() -> Self {
        Self { unexplained: true, ..Self::new() }
    }

    /// Wants `message` sent to `to`.
    #[inline]
    pub fn send(&mut self, to: NodeId, message: P::Message) {
        self.list.push(Effect::Send { to, message });
    }

    /// Wants `timer` armed.
    pub fn set_timer(&mut self, timer: P::Timer, after: impl Into<Delay>) {
        self.list.push(Effect::SetTimer { timer, after: after.into() });
    }

    /// Wants `timer` disarmed.
    pub fn cancel_timer(&mut self, timer: P::Timer) {
        self.list.push(Effect::CancelTimer(timer));
    }

    /// Wants `durable` stored before anything that follows.
    pub fn persist(&mut self, durable: P::Durable) {
        self.list.push(Effect::Persist(durable));
    }

    /// Wants the host to know the new view.
    #[inline]
    pub fn announce(&mut self, view: View) {
        self.list.push(Effect::Announce(view));
    }

    /// Wants the host to know the new view before the effects from the `place`th on are carried out.
    pub(crate) fn announce_before(&mut self, place: usize, view: View) {
        self.list.insert(place, Effect::Announce(view));
    }

    /// Wants the host to record something.
    pub fn inform(&mut self, notice: Notice) {
        self.list.push(Effect::Inform(notice));
    }

    /// Notes which rule of the specification fired, for explanations.
    #[inline]
    pub fn rule(&mut self, rule: &'static str) {
        if !self.unexplained {
            self.rules.push(rule);
        }
    }

    /// Notes that this member began an election of its own.
    #[inline]
    pub fn election_started(&mut self) {
        self.elections += 1;
    }

    /// Takes over the notes, not the effects, of a protocol that this one wraps: its rules and its elections.
    pub(crate) fn take_notes<Q: Protocol>(&mut self, wrapped: &Effects<Q>) {
        self.rules.extend_from_slice(&wrapped.rules);
        self.elections += wrapped.elections;
    }

    /// Takes over everything that a protocol inside this one wants, each part as the functions make it one of this protocol.
    pub(crate) fn take_over<Q: Protocol>(
        &mut self,
        mut inside: Effects<Q>,
        message: impl Fn(Q::Message) -> P::Message,
        timer: impl Fn(Q::Timer) -> P::Timer,
        durable: impl Fn(Q::Durable) -> P::Durable,
    ) {
        self.take_notes(&inside);
        self.list.extend(inside.drain().map(|effect| match effect {
            Effect::Persist(stored) => Effect::Persist(durable(stored)),
            Effect::Send { to, message: sent } => Effect::Send { to, message: message(sent) },
            Effect::SetTimer { timer: armed, after } => {
                Effect::SetTimer { timer: timer(armed), after }
            }
            Effect::CancelTimer(armed) => Effect::CancelTimer(timer(armed)),
            Effect::Announce(view) => Effect::Announce(view),
            Effect::Inform(notice) => Effect::Inform(notice),
        }));
    }

    /// Takes the message, if one message is all that the handler wants done and it began no election. Nothing is left
    /// then, not even notes.
    #[inline(always)]
    pub fn take_lone_message(&mut self) -> Option<(NodeId, P::Message)> {
        if self.elections > 0 || !matches!(self.list[..], [Effect::Send { .. }]) {
            return None;
        }
        self.rules.clear();
        let Some(Effect::Send { to, message }) = self.list.pop() else {
            unreachable!("the only effect is a message")
        };
        Some((to, message))
    }

    /// Takes the effects, in order, and leaves the collection ready for the next event.
    pub fn drain(&mut self) -> std::vec::Drain<'_, EffectOf<P>> {
        self.list.drain(..)
    }

    /// Forgets all effects but the messages.
    pub(crate) fn keep_messages(&mut self) {
        self.list.retain(|effect| matches!(effect, Effect::Send { .. }));
    }

    /// The messages among the effects, and their receivers.
    pub fn into_messages(self) -> impl Iterator<Item = (NodeId, P::Message)> {
        self.list.into_iter().filter_map(|effect| match effect {
            Effect::Send { to, message } => Some((to, message)),
            _ => None,
        })
    }

    /// The effects, in order.
    pub fn list(&self) -> &[EffectOf<P>] {
        &self.list
    }

    /// Which rules fired, in order.
    pub fn rules(&self) -> &[&'static str] {
        &self.rules
    }

    /// How many elections this member began.
    #[inline]
    pub fn elections(&self) -> u32 {
        self.elections
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.list.clear();
        self.rules.clear();
        self.elections = 0;
    }
}

impl<P: Protocol> Default for Effects<P> {
    fn default() -> Self {
        Self::new()
    }
}

/// The work of one event: the configuration, and the effects so far.
#[derive(Debug)]
pub struct Context<'a, P: Protocol> {
    /// The configuration of the member that handles the event.
    pub config: &'a P::Config,
    /// The effects so far.
    pub out: &'a mut Effects<P>,
}

impl<P: Protocol> Context<'_, P> {
    /// The same for a function that is not inlined, so that this one can stay in registers where that matters.
    #[inline(always)]
    pub(crate) fn again(&mut self) -> Context<'_, P> {
        Context { config: self.config, out: self.out }
    }
}

/// What an algorithm wants done, as [`Effects`] collects it.
#[expect(missing_docs, reason = "the methods of `Effects` of the same names say it")]
impl<P: Protocol> Context<'_, P> {
    #[inline]
    pub fn send(&mut self, to: NodeId, message: impl Into<P::Message>) {
        self.out.send(to, message.into());
    }

    pub fn set_timer(&mut self, timer: impl Into<P::Timer>, after: impl Into<Delay>) {
        self.out.set_timer(timer.into(), after);
    }

    pub fn cancel_timer(&mut self, timer: impl Into<P::Timer>) {
        self.out.cancel_timer(timer.into());
    }

    pub fn persist(&mut self, durable: P::Durable) {
        self.out.persist(durable);
    }

    #[inline]
    pub fn announce(&mut self, view: View) {
        self.out.announce(view);
    }

    pub fn inform(&mut self, notice: Notice) {
        self.out.inform(notice);
    }

    #[inline]
    pub fn rule(&mut self, rule: &'static str) {
        self.out.rule(rule);
    }

    #[inline]
    pub fn election_started(&mut self) {
        self.out.election_started();
    }
}
