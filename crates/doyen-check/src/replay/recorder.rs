//! Records the steps of a schedule as the simulator records a run.
//!
//! The state machine handles every event again, in the state that the model has reached, and tells its effects and rules.
//! Messages get numbers, so that a receipt is paired with its sending.

use std::convert::Infallible;

use doyen_core::explore::Explore;
use doyen_core::host::{self, Host};
use doyen_core::members::NodeId;
use doyen_core::protocol::{Message, Notice, Origin, View, name_of};
use doyen_core::time::{Delay, Span};
use doyen_sim::hash::FastMap;
use doyen_sim::time::Time;
use doyen_sim::trace::{EventKind, TraceEvent};

use crate::model::local::{self, Input, Local};
use crate::model::step::{Act, Step};
use crate::model::{Explorable, Flight, Model};
use crate::scene::Scene;
use crate::search::space::Space;
use crate::timers::Timers;

/// The rules that fired, in order.
pub(super) type Fired = Vec<String>;

/// Every process, and the records so far.
pub(super) struct Recorder<'m, 'c, P: Explore> {
    model: &'m Model<'c, P>,
    /// The delay of a message to a process that is down.
    transmission: Span,
    /// One in each slot.
    locals: Vec<Local<P>>,
    in_flight: Vec<InFlight<P::Message>>,
    /// Whether a process may still start.
    may_start: bool,
    now: Time,
    records: Vec<TraceEvent>,
    /// The record of each message, by its number.
    sent: FastMap<u32, usize>,
    next_id: u32,
}

/// A message in flight, with its number.
struct InFlight<M> {
    id: u32,
    sent: Time,
    flight: Flight<M>,
}

impl<'m, 'c, P: Explorable> Recorder<'m, 'c, P> {
    fn empty(
        model: &'m Model<'c, P>,
        locals: Vec<Local<P>>,
        now: Time,
        transmission: Span,
    ) -> Self {
        Self {
            model,
            transmission,
            locals,
            in_flight: Vec::new(),
            may_start: model.may_start(&model.start()),
            now,
            records: Vec::new(),
            sent: FastMap::default(),
            next_id: 0,
        }
    }

    /// Sets the scene.
    pub(super) fn new(model: &'m Model<'c, P>, scene: &Scene<'c>, transmission: Span) -> Self {
        let expiries = model.rules.timers.expiries();
        let locals = scene.members.iter().map(|id| Local::unborn(id, expiries)).collect();
        let mut recorder = Self::empty(model, locals, Time::ZERO, transmission);
        for (slot, input, counts) in model.opening(scene) {
            let member = recorder.locals[slot].id;
            let event = match input {
                Act::Crash => Some(EventKind::Crashed { member, forwards: false }),
                Act::Campaign => Some(EventKind::Campaign { member, rules: Fired::new() }),
                _ => None,
            };
            if counts {
                recorder.happen(slot, input, 0, event);
            } else {
                let before = &recorder.locals[slot];
                recorder.locals[slot] = local::handle(&model.context, before, input, 0).local;
            }
        }
        // Detectors have had all the time that they need.
        let settled = model.context.detection();
        recorder.locals.iter_mut().for_each(|local| local.settled = settled);
        recorder
    }

    /// Continues from the start of the model, in the middle of a simulation that has made `records` so far.
    pub(super) fn resume(
        model: &'m Model<'c, P>,
        records: Vec<TraceEvent>,
        now: Time,
        transmission: Span,
    ) -> Self {
        let (locals, flights) = model.take_apart(&model.start());
        let mut recorder = Self { records, ..Self::empty(model, locals, now, transmission) };
        let mut open: Vec<(u32, usize)> = Vec::new();
        for (index, record) in recorder.records.iter().enumerate() {
            match record.kind {
                EventKind::Sent { id, .. } => {
                    open.push((id, index));
                    recorder.next_id = recorder.next_id.max(id + 1);
                }
                EventKind::Received { id, .. } | EventKind::Missed { id, .. } => {
                    open.retain(|&(sent, _)| sent != id);
                }
                _ => {}
            }
        }
        for flight in flights {
            recorder.pick_up(flight, &mut open);
        }
        recorder
    }

    /// Finds the sending of a message that is in flight when the schedule begins, among those that are `open`.
    fn pick_up(&mut self, flight: Flight<P::Message>, open: &mut Vec<(u32, usize)>) {
        let [sender, receiver] = [flight.from, flight.to].map(|position| self.id(position));
        let words = flight.message.to_string();
        let is_it = |&(_, index): &(u32, usize)| match &self.records[index].kind {
            EventKind::Sent { from, to, text, .. } => {
                (*from, *to) == (sender, receiver) && *text == words
            }
            _ => false,
        };
        let Some(place) = open.iter().position(is_it) else {
            return self.send(usize::from(flight.from), receiver, flight.message);
        };
        let (id, index) = open.remove(place);
        if let EventKind::Sent { arrives, again, .. } = &mut self.records[index].kind {
            (*arrives, *again) = (None, None);
        }
        self.sent.insert(id, index);
        self.in_flight.push(InFlight { id, sent: self.records[index].at, flight });
    }

    fn id(&self, position: u8) -> NodeId {
        self.model.context.members.at(usize::from(position))
    }

    /// Takes a step from the state `before`; returns the rules that fired.
    pub(super) fn play(&mut self, before: &[u32], step: Step, at: Time) -> Fired {
        self.stand_at(before);
        self.miss(at);
        self.now = at;
        let Step { act, crash_after, .. } = step;
        let mut slot = usize::from(step.slot);
        let member = self.locals[slot].id;
        let rules = Fired::new();
        let event = match act {
            Act::Receive { message, again } => {
                return self.receive(slot, message, again, crash_after);
            }
            Act::Lose { message } => {
                self.take(message);
                return rules;
            }
            Act::Wait { .. } => {
                if let Timers::Bounded { .. } = self.model.rules.timers {
                    self.in_flight.iter_mut().for_each(|message| message.flight.age += 1);
                }
                return rules;
            }
            Act::Expire { timer, background } => {
                let timer = format!("{:?}", self.model.timer(timer));
                EventKind::Fired { member, timer, background, rules }
            }
            Act::Report { peer, up: true } => EventKind::Trusted { member, peer: self.id(peer) },
            Act::Report { peer, .. } | Act::Suspect { peer } => {
                EventKind::Suspected { member, peer: self.id(peer) }
            }
            Act::Campaign => EventKind::Campaign { member, rules },
            Act::Request => EventKind::Request { member, rules },
            Act::Exit => EventKind::Exit { member, rules },
            Act::Crash => EventKind::Crashed { member, forwards: false },
            Act::Release => {
                self.record(EventKind::Crashed { member, forwards: false });
                EventKind::Released { member, rules }
            }
            Act::Start(origin) => {
                EventKind::Restarted { member, disk: origin != Origin::Rejoining, rules }
            }
            Act::Replace { .. } => {
                self.copy_process(slot);
                EventKind::Restarted { member, disk: false, rules }
            }
            Act::Clone { .. } => {
                slot = self.copy_process(slot);
                EventKind::Restarted { member, disk: true, rules }
            }
            Act::Command(number) => {
                let (_, command) = self.model.context.commands[usize::from(number)];
                EventKind::Commanded { member, command: command.to_string(), rules }
            }
        };
        self.happen(slot, self.model.input(act), crash_after, Some(event))
    }

    fn stand_at(&mut self, state: &[u32]) {
        self.locals = self.model.take_apart(state).0;
        self.may_start = self.model.may_start(state);
    }

    /// All records. Messages still in flight arrive after the end.
    pub(super) fn finish(mut self, state: &[u32]) -> Vec<TraceEvent> {
        self.stand_at(state);
        let end = self.now + self.transmission;
        self.miss(end);
        for message in &self.in_flight {
            if let EventKind::Sent { arrives, .. } = &mut self.records[self.sent[&message.id]].kind
            {
                arrives.get_or_insert(end);
            }
        }
        self.records
    }

    /// The number of records.
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    fn record(&mut self, kind: EventKind) {
        self.records.push(TraceEvent { at: self.now, kind });
    }

    /// Copies a process to a vacant slot; returns the slot.
    fn copy_process(&mut self, slot: usize) -> usize {
        let (vacant, copy) = (Local::vacant(), self.locals[slot].clone());
        let free = self.locals.iter().position(|local| *local == vacant);
        let free = free.expect("a process that starts has a slot");
        self.locals[free] = copy;
        free
    }

    fn receive(&mut self, slot: usize, message: u32, again: bool, crash_after: u8) -> Fired {
        let received = self.take(message);
        let (id, Flight { from, to, message, .. }) = (received.id, received.flight.clone());
        self.arrive(id, self.now);
        if again {
            self.in_flight.push(received);
        }
        let (from, to) = (self.id(from), self.id(to));
        let kind = name_of(&message).to_owned();
        if !self.locals[slot].is_up() {
            self.record(EventKind::Missed { id, from, to, kind });
            return Fired::new();
        }
        let event = EventKind::Received { id, from, to, kind, rules: Fired::new() };
        let input = Act::Receive { message: (from, message), again };
        self.happen(slot, input, crash_after, Some(event))
    }

    /// Removes the first message in flight that has this number in the model.
    fn take(&mut self, number: u32) -> InFlight<P::Message> {
        let wanted = self.model.flight(number);
        let place = self.in_flight.iter().position(|message| message.flight == *wanted);
        self.in_flight.remove(place.expect("a message that arrives was in flight"))
    }

    /// Notes when a message arrives, or arrives again.
    fn arrive(&mut self, id: u32, at: Time) {
        let record = self.sent[&id];
        if let EventKind::Sent { arrives, again, .. } = &mut self.records[record].kind {
            let arrival = if arrives.is_some() { again } else { arrives };
            *arrival = Some(at);
        }
    }

    /// Lets messages to processes that stay down, which the model has dropped, arrive there.
    fn miss(&mut self, until: Time) {
        // With sessions the model keeps what another process of the member may receive.
        if P::has_sessions(self.model.context.config) || self.may_start || until == self.now {
            return;
        }
        let (mut missed, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.in_flight)
            .into_iter()
            .partition(|message| !self.locals[usize::from(message.flight.to)].is_up());
        self.in_flight = kept;
        missed.sort_by_key(|message| message.sent);
        for InFlight { id, sent, flight } in missed {
            self.now = (sent + self.transmission).max(self.now).min(until);
            self.arrive(id, self.now);
            let (from, to) = (self.id(flight.from), self.id(flight.to));
            let kind = name_of(&flight.message).to_owned();
            self.record(EventKind::Missed { id, from, to, kind });
        }
    }

    /// A process handles an event, which is recorded as `event` with the rules that fired.
    fn happen(
        &mut self,
        slot: usize,
        input: Input<P>,
        crash_after: u8,
        event: Option<EventKind>,
    ) -> Fired {
        let handled = local::handle(&self.model.context, &self.locals[slot], input, crash_after);
        let rules: Fired = handled.rules.iter().map(|&rule| rule.to_owned()).collect();
        if let Some(mut event) = event {
            if let Some(fired) = event.rules_mut() {
                fired.clone_from(&rules);
            }
            self.record(event);
        }
        self.locals[slot] = handled.local;
        let Ok(()) = host::apply(handled.effects, &mut EffectRecorder { recorder: self, slot });
        if crash_after > 0 && !self.locals[slot].is_up() {
            let member = self.locals[slot].id;
            self.record(EventKind::Crashed { member, forwards: false });
        }
        rules
    }

    fn send(&mut self, slot: usize, to: NodeId, message: P::Message) {
        let kind = message.kind();
        let members = self.model.context.members;
        let (sender, start) = (self.locals[slot].id, self.locals[slot].start());
        let from = members.position(sender).unwrap_or(slot) as u8;
        let id = self.next_id;
        self.next_id += 1;
        self.sent.insert(id, self.records.len());
        self.record(EventKind::Sent {
            id,
            from: sender,
            to,
            kind: kind.name.to_owned(),
            text: message.to_string(),
            class: kind.class,
            arrives: None,
            again: None,
            changed: None,
        });
        if let Some(to) = members.position(to) {
            let flight = Flight { from, to: to as u8, age: 0, start, message };
            self.in_flight.push(InFlight { id, sent: self.now, flight });
        }
    }
}

/// Records the effects of a process. They are applied already: the process is in the state that it has reached.
struct EffectRecorder<'s, 'm, 'c, P: Explore> {
    recorder: &'s mut Recorder<'m, 'c, P>,
    slot: usize,
}

impl<P: Explorable> EffectRecorder<'_, '_, '_, P> {
    fn member(&self) -> NodeId {
        self.recorder.locals[self.slot].id
    }
}

impl<P: Explorable> Host<P> for EffectRecorder<'_, '_, '_, P> {
    type Error = Infallible;

    fn persist(&mut self, _: P::Durable) -> Result<(), Infallible> {
        Ok(())
    }

    fn send(&mut self, to: NodeId, message: P::Message) -> Result<(), Infallible> {
        self.recorder.send(self.slot, to, message);
        Ok(())
    }

    fn arm(&mut self, timer: P::Timer, after: Delay) {
        let (background, due) = (P::is_background(timer), self.recorder.now + after.min);
        let (member, timer) = (self.member(), format!("{timer:?}"));
        self.recorder.record(EventKind::Armed { member, timer, background, due });
    }

    fn cancel(&mut self, timer: P::Timer) {
        let (member, timer) = (self.member(), format!("{timer:?}"));
        self.recorder.record(EventKind::Disarmed { member, timer });
    }

    fn announce(&mut self, view: View) {
        self.recorder.record(EventKind::of_view(self.member(), view));
    }

    fn inform(&mut self, notice: Notice) -> Result<(), Infallible> {
        if let Some(event) = EventKind::of_notice(self.member(), &notice) {
            self.recorder.record(event);
        }
        Ok(())
    }
}
