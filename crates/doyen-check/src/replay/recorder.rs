//! Records the steps of a schedule as the simulator records a run.
//!
//! Every event is handed to the state machine again, in the state to which the machine of the check has come, and tells
//! what it does and by which rules. Messages get numbers, so that a receipt is paired with its sending.

use doyen_core::explore::Explore;
use std::convert::Infallible;

use doyen_core::host::{self, Host};
use doyen_core::ledger::Contradiction;
use doyen_core::members::{NodeId, Term};
use doyen_core::protocol::{
    Durable, Effect, Event, Message, Notice, Origin, Protocol, View, name_of,
};
use doyen_core::time::{Delay, Span};

use super::super::local::{self, Handled, Local, Stimulus};
use super::super::machine::{Act, Explorable, Flight, Machine, Step, is_elected, leads_in_a_term};
use super::super::property::{Fact, Property};
use super::super::space::Space;
use super::super::{Scene, Timers};
use doyen_sim::hash::FastMap;
use doyen_sim::time::Time;
use doyen_sim::trace::{EventKind, TraceEvent};

/// Every process, and what has been recorded of them.
pub(super) struct Recorder<'m, 'c, P: Explore> {
    machine: &'m Machine<'c, P>,
    /// How long a message takes that nobody hears.
    transmission: Span,
    /// One in each slot.
    locals: Vec<Local<P>>,
    under_way: Vec<Letter<P::Message>>,
    /// Whether a process may still start.
    may_start: bool,
    now: Time,
    records: Vec<TraceEvent>,
    /// The record of each message, by its number.
    sent: FastMap<u32, usize>,
    next_id: u32,
    /// Who led in which term.
    reigns: Vec<(Term, NodeId, u8)>,
    /// What the last step did that is against a property about single steps, if it is too much.
    missteps: Vec<(Property, Fact)>,
}

/// A message under way, with its number.
struct Letter<M> {
    id: u32,
    sent: Time,
    flight: Flight<M>,
}

/// A rule that fired, in order.
pub(super) type Fired = Vec<String>;

impl<'m, 'c, P: Explorable> Recorder<'m, 'c, P> {
    /// Sets the scene: everybody starts, the dead die, and whoever has noticed already calls an election.
    pub(super) fn new(machine: &'m Machine<'c, P>, scene: &Scene<'c>, transmission: Span) -> Self {
        let expiries = machine.rules.timers.expiries();
        let unborn = |id| Local::unborn(id, expiries);
        let mut recorder = Self {
            machine,
            transmission,
            locals: scene.members.iter().map(unborn).collect(),
            under_way: Vec::new(),
            may_start: machine.may_start(&machine.start()),
            now: Time::ZERO,
            records: Vec::new(),
            sent: FastMap::default(),
            next_id: 0,
            reigns: Vec::new(),
            missteps: Vec::new(),
        };
        recorder.begin(scene);
        recorder
    }

    /// Goes on from where the machine begins, in the middle of a simulation: `records` tell of what was before.
    pub(super) fn resume(
        machine: &'m Machine<'c, P>,
        records: Vec<TraceEvent>,
        now: Time,
        transmission: Span,
    ) -> Self {
        let (locals, flights) = machine.taken_apart(&machine.start());
        let mut open: Vec<(u32, usize)> = Vec::new();
        let mut next_id = 0;
        for (index, record) in records.iter().enumerate() {
            match record.kind {
                EventKind::Sent { id, .. } => {
                    open.push((id, index));
                    next_id = next_id.max(id + 1);
                }
                EventKind::Received { id, .. } | EventKind::Missed { id, .. } => {
                    open.retain(|&(sent, _)| sent != id);
                }
                _ => {}
            }
        }
        let may_start = machine.may_start(&machine.start());
        let (sent, reigns, missteps) = (FastMap::default(), Vec::new(), Vec::new());
        let under_way = Vec::new();
        let mut recorder = Self {
            machine,
            transmission,
            locals,
            under_way,
            may_start,
            now,
            records,
            sent,
            next_id,
            reigns,
            missteps,
        };
        for flight in flights {
            recorder.pick_up(flight, &mut open);
        }
        recorder
    }

    /// Finds the sending of a message that is under way when the schedule begins, among those that are `open`.
    fn pick_up(&mut self, flight: Flight<P::Message>, open: &mut Vec<(u32, usize)>) {
        let ids = self.machine.terms.members;
        let [one, other] = [flight.from, flight.to].map(|position| ids.at(usize::from(position)));
        let words = flight.message.to_string();
        let is_it = |&(_, index): &(u32, usize)| match &self.records[index].kind {
            EventKind::Sent { from, to, text, .. } => {
                (*from, *to) == (one, other) && *text == words
            }
            _ => false,
        };
        let Some(place) = open.iter().position(is_it) else {
            return self.send(usize::from(flight.from), other, flight.message);
        };
        let (id, index) = open.remove(place);
        if let EventKind::Sent { arrives, again, .. } = &mut self.records[index].kind {
            (*arrives, *again) = (None, None);
        }
        self.sent.insert(id, index);
        self.under_way.push(Letter { id, sent: self.records[index].at, flight });
    }

    fn begin(&mut self, scene: &Scene<'c>) {
        let founding = Stimulus::Start(Origin::Founding { leader: scene.leader });
        let is_dead = |id: NodeId| scene.dead.contains(&id);
        for (member, id) in scene.members.iter().enumerate() {
            if is_dead(id) {
                // Whatever it did is forgotten but for what it stored.
                let start = self.handle(member, founding.clone(), None);
                self.locals[member] = start.local;
                let crashed = EventKind::Crashed { member: id, forwards: false };
                self.happen(member, Stimulus::Crash, None, Some(crashed));
            } else {
                self.happen(member, founding.clone(), None, None);
            }
        }
        let live: Vec<usize> =
            (0..self.locals.len()).filter(|&member| self.locals[member].is_up()).collect();
        for &dead in scene.dead.iter().filter(|_| scene.dead_known) {
            for &member in &live {
                let told = Stimulus::Event(Event::PeerDown(dead));
                self.happen(member, told, None, None);
            }
        }
        for &id in &scene.initiators {
            if let Some(member) = scene.members.position(id) {
                let campaign = EventKind::Campaign { member: id, rules: Fired::new() };
                self.happen(member, Stimulus::Event(Event::Campaign), None, Some(campaign));
            }
        }
        // Detectors have had all the time they need.
        let calm = self.machine.terms.detection();
        self.locals.iter_mut().for_each(|local| local.calm = calm);
    }

    /// Takes a step at a time from the state `before`; says which rules fired.
    pub(super) fn play(&mut self, before: &[u32], step: Step, at: Time) -> Fired {
        self.stand_at(before);
        self.let_go(at);
        self.now = at;
        self.missteps.clear();
        let crash_after = (step.crash_after > 0).then_some(u32::from(step.crash_after));
        let id = |slot: u8| self.locals[usize::from(slot)].id;
        let event = Stimulus::Event;
        let rules = Fired::new();
        let (slot, stimulus, event) = match step.act {
            Act::Deliver(flight) => return self.deliver(flight, None, false, crash_after),
            Act::Double(flight) => return self.deliver(flight, None, true, crash_after),
            Act::DoubleAt { flight, slot } => {
                return self.deliver(flight, Some(slot), true, crash_after);
            }
            Act::Lose(flight) => {
                self.take(flight);
                return rules;
            }
            Act::Wait(_) => {
                if let Timers::Bounded { .. } = self.machine.rules.timers {
                    self.under_way.iter_mut().for_each(|letter| letter.flight.age += 1);
                }
                return rules;
            }
            Act::Expire { member: slot, timer, upkeep: background } => {
                let timer = self.machine.timer(timer);
                let name = format!("{timer:?}");
                let fired = EventKind::Fired { member: id(slot), timer: name, background, rules };
                (slot, event(Event::Timer(timer)), fired)
            }
            Act::Report { member: slot, peer, up: true } => {
                let (member, peer) = (id(slot), id(peer));
                (slot, event(Event::PeerUp(peer)), EventKind::Trusted { member, peer })
            }
            Act::Report { member: slot, peer, up: false } => {
                let (member, peer) = (id(slot), id(peer));
                (slot, event(Event::PeerDown(peer)), EventKind::Suspected { member, peer })
            }
            Act::Suspect { member: slot, peer } => {
                let (member, peer) = (id(slot), id(peer));
                (slot, Stimulus::Suspect(peer), EventKind::Suspected { member, peer })
            }
            Act::Campaign(slot) => {
                (slot, event(Event::Campaign), EventKind::Campaign { member: id(slot), rules })
            }
            Act::Crash(slot) => {
                (slot, Stimulus::Crash, EventKind::Crashed { member: id(slot), forwards: false })
            }
            Act::Restart(slot) => {
                let origin = self.locals[usize::from(slot)].origin();
                let restarted = EventKind::Restarted { member: id(slot), disk: true, rules };
                (slot, Stimulus::Start(origin), restarted)
            }
            Act::Rejoin(slot) => {
                let restarted = EventKind::Restarted { member: id(slot), disk: false, rules };
                (slot, Stimulus::Start(Origin::Rejoining), restarted)
            }
            Act::Replace(slot) => {
                let restarted = EventKind::Restarted { member: id(slot), disk: false, rules };
                let (_, process) = self.copy_process(slot);
                (slot, Stimulus::Replace(process), restarted)
            }
            Act::Clone(slot) => {
                let restarted = EventKind::Restarted { member: id(slot), disk: true, rules };
                let (copy, process) = self.copy_process(slot);
                (copy, Stimulus::Clone(process), restarted)
            }
            Act::Command { member: slot, command } => {
                let order = command.order(self.machine.terms.preference());
                let command = order.to_string();
                let commanded = EventKind::Commanded { member: id(slot), command, rules };
                (slot, event(Event::Command(order)), commanded)
            }
        };
        self.happen(slot.into(), stimulus, crash_after, Some(event))
    }

    fn stand_at(&mut self, state: &[u32]) {
        self.locals = self.machine.taken_apart(state).0;
        self.may_start = self.machine.may_start(state);
    }

    /// Everything that was recorded, and what no step may do. Messages still under way arrive after the end.
    pub(super) fn finish(mut self, state: &[u32]) -> (Vec<TraceEvent>, Vec<(Property, Fact)>) {
        self.stand_at(state);
        let end = self.now + self.transmission;
        self.let_go(end);
        for letter in &self.under_way {
            if let EventKind::Sent { arrives, .. } = &mut self.records[self.sent[&letter.id]].kind {
                arrives.get_or_insert(end);
            }
        }
        (self.records, self.missteps)
    }

    /// How much has been recorded.
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    fn record(&mut self, what: EventKind) {
        self.records.push(TraceEvent { at: self.now, kind: what });
    }

    /// Copies a process to a slot of its own; names the slot, and the number of the process that begins by it.
    fn copy_process(&mut self, member: u8) -> (u8, u8) {
        let process = &self.locals[usize::from(member)];
        let number = self.locals.iter().filter(|local| local.id == process.id).count() as u8;
        let (vacant, copy) = (Local::vacant(), process.clone());
        let slot = self.locals.iter().position(|local| *local == vacant);
        let slot = slot.expect("a process that begins has a slot");
        self.locals[slot] = copy;
        (slot as u8, number)
    }

    /// `at`: the slot of the process at which it arrives, if it is not that of its member.
    fn deliver(
        &mut self,
        flight: u32,
        at: Option<u8>,
        stays: bool,
        crash_after: Option<u32>,
    ) -> Fired {
        let letter = self.take(flight);
        let (id, Flight { from, to, message, .. }) = (letter.id, letter.flight.clone());
        self.arrive(id, self.now);
        if stays {
            self.under_way.push(letter);
        }
        let member = usize::from(at.unwrap_or(to));
        let ids = self.machine.terms.members;
        let (from, to) = (ids.at(usize::from(from)), ids.at(usize::from(to)));
        let kind = name_of(&message).to_owned();
        if !self.locals[member].is_up() {
            self.record(EventKind::Missed { id, from, to, kind });
            return Fired::new();
        }
        let received = EventKind::Received { id, from, to, kind, rules: Fired::new() };
        let event = Stimulus::Event(Event::Message { from, message });
        self.happen(member, event, crash_after, Some(received))
    }

    /// The first message that is the one with this number in the machine, under way no more.
    fn take(&mut self, flight: u32) -> Letter<P::Message> {
        let wanted = self.machine.flight(flight);
        let place = self.under_way.iter().position(|letter| letter.flight == *wanted);
        self.under_way.remove(place.expect("what arrives was under way"))
    }

    /// Notes when a message arrives, or arrives again.
    fn arrive(&mut self, id: u32, at: Time) {
        let record = self.sent[&id];
        if let EventKind::Sent { arrives, again, .. } = &mut self.records[record].kind {
            let arrival = if arrives.is_some() { again } else { arrives };
            *arrival = Some(at);
        }
    }

    /// Lets messages to members that are down for good, of which the machine knows no more, arrive there in vain.
    fn let_go(&mut self, until: Time) {
        // Where processes are told apart, the machine keeps what another process of the member may hear.
        if P::has_sessions() || self.may_start || until == self.now {
            return;
        }
        let (mut vain, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.under_way)
            .into_iter()
            .partition(|letter| !self.locals[usize::from(letter.flight.to)].is_up());
        self.under_way = kept;
        vain.sort_by_key(|letter| letter.sent);
        let ids = self.machine.terms.members;
        for Letter { id, sent, flight } in vain {
            self.now = (sent + self.transmission).max(self.now).min(until);
            self.arrive(id, self.now);
            let (from, to) = (ids.at(usize::from(flight.from)), ids.at(usize::from(flight.to)));
            self.record(EventKind::Missed {
                id,
                from,
                to,
                kind: name_of(&flight.message).to_owned(),
            });
        }
    }

    fn handle(
        &self,
        member: usize,
        stimulus: Stimulus<P::Message, P::Timer>,
        crash_after: Option<u32>,
    ) -> Handled<P> {
        local::handle(&self.machine.terms, &self.locals[member], stimulus, crash_after)
    }

    /// Lets something happen to a process, and records it as `event`, with the rules that fired.
    fn happen(
        &mut self,
        member: usize,
        stimulus: Stimulus<P::Message, P::Timer>,
        crash_after: Option<u32>,
        event: Option<EventKind>,
    ) -> Fired {
        let handled = self.handle(member, stimulus, crash_after);
        let rules: Fired = handled.rules.iter().map(|&rule| rule.to_owned()).collect();
        if let Some(mut event) = event {
            if let EventKind::Received { rules: fired, .. }
            | EventKind::Fired { rules: fired, .. }
            | EventKind::Campaign { rules: fired, .. }
            | EventKind::Commanded { rules: fired, .. }
            | EventKind::Restarted { rules: fired, .. } = &mut event
            {
                fired.clone_from(&rules);
            }
            self.record(event);
        }
        self.note_missteps(member, &handled);
        self.locals[member] = handled.local;
        let Ok(()) = host::apply(handled.effects, &mut EffectRecorder { recorder: self, member });
        let Local { id, .. } = self.locals[member];
        if crash_after.is_some() && !self.locals[member].is_up() {
            self.record(EventKind::Crashed { member: id, forwards: false });
        }
        rules
    }

    fn send(&mut self, member: usize, to: NodeId, message: P::Message) {
        let kind = message.kind();
        let sender = self.locals[member].id;
        let from = self.machine.terms.members.position(sender).unwrap_or(member) as u8;
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
        });
        if let Some(to) = self.machine.terms.members.position(to) {
            let flight =
                Flight { from, to: to as u8, age: 0, start: self.locals[member].start(), message };
            self.under_way.push(Letter { id, sent: self.now, flight });
        }
    }

    /// Notes what may be against a property that is about single steps.
    fn note_missteps(&mut self, member: usize, handled: &Handled<P>) {
        let id = self.locals[member].id;
        let mut note = |property, member, what| {
            self.missteps.push((property, Fact::new(member, what)));
        };
        let stored = handled.local.disk.as_ref().map_or(0, |disk| disk.term().0);
        let most = self.machine.highest_term();
        if stored > most {
            note(Property::BoundedTerms, id, format!("stores term {stored}"));
            note(Property::BoundedTerms, id, format!("needs no higher term than {most}"));
        }
        for Contradiction { invariant, facts } in &handled.missteps {
            for fact in facts {
                note((*invariant).into(), fact.member, fact.what.clone());
            }
        }
        let sent = handled.effects.iter().filter_map(|effect| match effect {
            Effect::Send { to, message } => Some((to, message)),
            _ => None,
        });
        if let Some((to, longest)) = sent.max_by_key(|(_, message)| message.encoded_len()) {
            let (bytes, kind) = (longest.encoded_len(), name_of(longest));
            let what = format!("sends {to} the message {kind} of {bytes} bytes");
            note(Property::BoundedMessages, id, what);
        }
        self.note_lease(member, handled);
        self.note_cover(member, handled);
        let view = handled.local.state.as_ref().map(Protocol::view);
        if let Some(View { term, .. }) = view.filter(leads_in_a_term) {
            self.note_reign(member, term, handled);
        }
    }

    fn note(&mut self, property: Property, facts: [(NodeId, String); 2]) {
        let facts = facts.map(|(member, what)| (property, Fact::new(member, what)));
        self.missteps.extend(facts);
    }

    /// A member may have a lease while somebody may act on that of another.
    fn note_lease(&mut self, member: usize, handled: &Handled<P>) {
        if handled.local.state.as_ref().is_none_or(|state| state.lease().is_none()) {
            return;
        }
        let others = self.locals.iter().enumerate().filter(|&(other, _)| other != member);
        let mut published = others.filter(|(_, other)| other.published > 0);
        if let Some((_, other)) = published.next() {
            let had = "had a lease that has not run out: somebody may act on it".to_owned();
            let facts = [(other.id, had), (handled.local.id, "has a lease".to_owned())];
            self.note(Property::OneLeader, facts);
        }
    }

    /// Somebody's lease may be without a majority that is bound.
    fn note_cover(&mut self, member: usize, handled: &Handled<P>) {
        let replaced =
            |place: usize| if place == member { &handled.local } else { &self.locals[place] };
        let locals: Vec<&Local<P>> = (0..self.locals.len()).map(replaced).collect();
        for holder in locals.iter().filter(|local| local.published > 0) {
            let term = holder.lease_term;
            let covering = locals.iter().filter(|local| local.covers(&self.machine.terms, term));
            let bound: Vec<String> = covering.map(|local| local.id.to_string()).collect();
            if bound.len() < locals.len() / 2 + 1 {
                let lease = format!("has a lease of term {term} on which others may act");
                let cover = format!(
                    "is covered by no majority: of {} members {} bound",
                    locals.len(),
                    match bound.len() {
                        0 => "none is".to_owned(),
                        1 => format!("only {} is", bound[0]),
                        _ => format!("only {} are", bound.join(" and ")),
                    }
                );
                let facts = [lease, cover]
                    .map(|what| (Property::LeasesCovered, Fact::new(holder.id, what)));
                self.missteps.extend(facts);
            }
        }
    }

    /// A member leads in `term`. Another may have led in it, or in a later one; or no majority has voted for it.
    fn note_reign(&mut self, member: usize, term: Term, handled: &Handled<P>) {
        let id = handled.local.id;
        let process = handled.local.process;
        let usurps = |&&(other_term, other, its): &&(Term, NodeId, u8)| {
            other_term == term && (other, its) != (id, process)
        };
        if let Some(&(_, other, _)) = self.reigns.iter().find(usurps) {
            let leads = match other == id {
                true => format!("leads in term {term} too, by another of its processes"),
                false => format!("leads in term {term} too"),
            };
            let facts = [(other, format!("has led in term {term}")), (id, leads)];
            self.note(Property::OneLeaderPerTerm, facts);
        }
        let lease = || (id, format!("has a lease in term {term}"));
        let later = self.reigns.iter().find(|&&(other_term, ..)| other_term > term);
        if let Some(&(later, other, _)) = later.filter(|_| P::has_leases(self.machine.terms.config))
        {
            let facts = [(other, format!("had a lease in term {later} before")), lease()];
            self.note(Property::LeasesRise, facts);
        }
        let voters = self.locals.iter().enumerate().map(|(place, local)| match place == member {
            true => &handled.local,
            false => local,
        });
        if P::has_leases(self.machine.terms.config) && !is_elected(id, term, voters) {
            let facts = [(id, "was elected by no majority".to_owned()), lease()];
            self.note(Property::LeasesRise, facts);
        }
        self.reigns.push((term, id, process));
    }
}

/// Records what a member wants done. It has been done already: the member is in the state that it came to.
struct EffectRecorder<'s, 'm, 'c, P: Explore> {
    recorder: &'s mut Recorder<'m, 'c, P>,
    member: usize,
}

impl<P: Explorable> EffectRecorder<'_, '_, '_, P> {
    fn record(&mut self, what: impl FnOnce(NodeId) -> EventKind) {
        self.recorder.record(what(self.recorder.locals[self.member].id));
    }
}

impl<P: Explorable> Host<P> for EffectRecorder<'_, '_, '_, P> {
    type Error = Infallible;

    fn persist(&mut self, _: P::Durable) -> Result<(), Infallible> {
        Ok(())
    }

    fn send(&mut self, to: NodeId, message: P::Message) -> Result<(), Infallible> {
        self.recorder.send(self.member, to, message);
        Ok(())
    }

    fn arm(&mut self, timer: P::Timer, after: Delay) {
        let (background, due) = (P::is_upkeep(timer), self.recorder.now + after.min);
        let timer = format!("{timer:?}");
        self.record(|member| EventKind::Armed { member, timer, background, due });
    }

    fn cancel(&mut self, _: P::Timer) {}

    fn announce(&mut self, View { leader, term, role }: View) {
        self.record(|member| EventKind::View { member, leader, term, role });
    }

    fn inform(&mut self, notice: Notice) -> Result<(), Infallible> {
        let member = self.recorder.locals[self.member].id;
        if let Some(event) = EventKind::of_notice(member, &notice) {
            self.recorder.record(event);
        }
        Ok(())
    }
}
