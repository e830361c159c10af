//! Plays the steps of the machine once more and records them, as the simulator records a run.
//!
//! Every event is handed to the state machine again, which tells what it makes of it, and by which rules. Messages get
//! numbers, so that a receipt is paired with its sending.

use doyen_core::explore::Explore;
use std::convert::Infallible;

use doyen_core::host::{self, Host};
use doyen_core::ledger::Contradiction;
use doyen_core::members::{Epoch, NodeId};
use doyen_core::protocol::{
    Durable, Effect, Event, Message, Notice, Origin, Protocol, View, name_of,
};
use doyen_core::time::{Delay, Span};

use super::super::budget::ANY;
use super::super::local::{self, Handled, Local, Stimulus};
use super::super::machine::{Act, Explorable, Flight, Machine, Step, is_elected, leads_in_a_term};
use super::super::property::{Fact, Property};
use super::super::space::Space;
use super::super::{Scene, Timers};
use crate::hash::FastMap;
use crate::record::{self, Record, What};
use crate::time::Time;

/// Everybody, and what has been recorded of them.
pub(super) struct Stage<'m, 'c, P: Explore> {
    machine: &'m Machine<'c, P>,
    /// How long a message takes that nobody hears.
    transmission: Span,
    /// One in each slot.
    locals: Vec<Local<P>>,
    under_way: Vec<Letter<P::Message>>,
    restarts_left: u8,
    now: Time,
    records: Vec<Record>,
    /// The record of each message, by its number.
    sent: FastMap<u32, usize>,
    next_id: u32,
    /// Who led in which term.
    reigns: Vec<(Epoch, NodeId, u8)>,
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

impl<'m, 'c, P: Explorable> Stage<'m, 'c, P> {
    /// Sets the scene: everybody starts, the dead die, and whoever has noticed already calls an election.
    pub(super) fn new(machine: &'m Machine<'c, P>, scene: &Scene<'c>, transmission: Span) -> Self {
        let expiries = machine.rules.timers.expiries();
        let unborn = |id| Local::unborn(id, expiries);
        let mut stage = Self {
            machine,
            transmission,
            locals: scene.members.iter().map(unborn).collect(),
            under_way: Vec::new(),
            restarts_left: machine.rules.budget.restarts,
            now: Time::ZERO,
            records: Vec::new(),
            sent: FastMap::default(),
            next_id: 0,
            reigns: Vec::new(),
            missteps: Vec::new(),
        };
        stage.begin(scene);
        stage
    }

    /// Goes on from where the machine begins, in the middle of a simulation: `records` tell of what was before.
    pub(super) fn resume(
        machine: &'m Machine<'c, P>,
        records: Vec<Record>,
        now: Time,
        transmission: Span,
    ) -> Self {
        let (locals, flights) = machine.taken_apart(&machine.start());
        let mut open: Vec<(u32, usize)> = Vec::new();
        let mut next_id = 0;
        for (index, record) in records.iter().enumerate() {
            match record.what {
                What::Sent { id, .. } => {
                    open.push((id, index));
                    next_id = next_id.max(id + 1);
                }
                What::Received { id, .. } | What::Missed { id, .. } => {
                    open.retain(|&(sent, _)| sent != id);
                }
                _ => {}
            }
        }
        let restarts_left = machine.rules.budget.restarts;
        let (sent, reigns, missteps) = (FastMap::default(), Vec::new(), Vec::new());
        let under_way = Vec::new();
        let mut stage = Self {
            machine,
            transmission,
            locals,
            under_way,
            restarts_left,
            now,
            records,
            sent,
            next_id,
            reigns,
            missteps,
        };
        for flight in flights {
            stage.pick_up(flight, &mut open);
        }
        stage
    }

    /// Finds the sending of a message that is under way when the schedule begins, among those that are `open`.
    fn pick_up(&mut self, flight: Flight<P::Message>, open: &mut Vec<(u32, usize)>) {
        let ids = self.machine.terms.members;
        let [one, other] = [flight.from, flight.to].map(|position| ids.at(usize::from(position)));
        let words = flight.message.to_string();
        let is_it = |&(_, index): &(u32, usize)| match &self.records[index].what {
            What::Sent { from, to, text, .. } => (*from, *to) == (one, other) && *text == words,
            _ => false,
        };
        let Some(place) = open.iter().position(is_it) else {
            return self.send(usize::from(flight.from), other, flight.message);
        };
        let (id, index) = open.remove(place);
        if let What::Sent { arrives, again, .. } = &mut self.records[index].what {
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
                let crashed = What::Crashed { member: id, forwards: false };
                self.happen(member, Stimulus::Crash, None, |_| Some(crashed));
            } else {
                self.happen(member, founding.clone(), None, |_| None);
            }
        }
        let live: Vec<usize> =
            (0..self.locals.len()).filter(|&member| self.locals[member].is_up()).collect();
        for &dead in scene.dead.iter().filter(|_| scene.dead_known) {
            for &member in &live {
                let told = Stimulus::Event(Event::PeerDown(dead));
                self.happen(member, told, None, |_| None);
            }
        }
        for &id in &scene.initiators {
            if let Some(member) = scene.members.position(id) {
                let campaign = |rules| Some(What::Campaign { member: id, rules });
                self.happen(member, Stimulus::Event(Event::Campaign), None, campaign);
            }
        }
        // Detectors have had all the time they need.
        let calm = self.machine.terms.detection();
        self.locals.iter_mut().for_each(|local| local.calm = calm);
    }

    /// Takes a step at a time; says which rules fired.
    pub(super) fn play(&mut self, step: Step, at: Time) -> Fired {
        self.let_go(at);
        self.now = at;
        self.missteps.clear();
        let crash_after = (step.crash_after > 0).then_some(u32::from(step.crash_after));
        let ids: Vec<NodeId> = self.locals.iter().map(|local| local.id).collect();
        let id = |slot: u8| ids[usize::from(slot)];
        match step.act {
            Act::Deliver(flight) => self.deliver(flight, None, false, crash_after),
            Act::Double(flight) => self.deliver(flight, None, true, crash_after),
            Act::DoubleAt { flight, slot } => self.deliver(flight, Some(slot), true, crash_after),
            Act::Lose(flight) => {
                self.take(flight);
                Fired::new()
            }
            Act::Expire { member, timer, upkeep } => {
                let timer = self.machine.timer(timer);
                let fired = |rules| What::Fired {
                    member: id(member),
                    timer: format!("{timer:?}"),
                    upkeep,
                    rules,
                };
                let event = Stimulus::Event(Event::Timer(timer));
                self.happen(member.into(), event, crash_after, |rules| Some(fired(rules)))
            }
            Act::Report { member, peer, up: true } => {
                let what = What::Trusted { member: id(member), peer: id(peer) };
                let event = Stimulus::Event(Event::PeerUp(id(peer)));
                self.happen(member.into(), event, crash_after, |_| Some(what))
            }
            Act::Report { member, peer, up: false } => {
                let what = What::Suspected { member: id(member), peer: id(peer) };
                let event = Stimulus::Event(Event::PeerDown(id(peer)));
                self.happen(member.into(), event, crash_after, |_| Some(what))
            }
            Act::Suspect { member, peer } => {
                let what = What::Suspected { member: id(member), peer: id(peer) };
                self.happen(member.into(), Stimulus::Suspect(id(peer)), crash_after, |_| Some(what))
            }
            Act::Campaign(member) => {
                let what = |rules| Some(What::Campaign { member: id(member), rules });
                self.happen(member.into(), Stimulus::Event(Event::Campaign), crash_after, what)
            }
            Act::Crash(member) => {
                let what = What::Crashed { member: id(member), forwards: false };
                self.happen(member.into(), Stimulus::Crash, None, |_| Some(what))
            }
            Act::Restart(member) => {
                if self.restarts_left != ANY {
                    self.restarts_left = self.restarts_left.saturating_sub(1);
                }
                let what = |rules| Some(What::Restarted { member: id(member), disk: true, rules });
                let origin = self.locals[usize::from(member)].origin();
                self.happen(member.into(), Stimulus::Start(origin), crash_after, what)
            }
            Act::Rejoin(member) => {
                let what = |rules| Some(What::Restarted { member: id(member), disk: false, rules });
                self.happen(member.into(), Stimulus::Start(Origin::Rejoining), crash_after, what)
            }
            Act::Replace(member) => {
                let (slot, process) = self.room_for_a_process(member.into());
                self.locals[slot] = self.locals[usize::from(member)].clone();
                let what = |rules| Some(What::Restarted { member: id(member), disk: false, rules });
                self.happen(member.into(), Stimulus::Replace(process), crash_after, what)
            }
            Act::Clone(member) => {
                let (slot, process) = self.room_for_a_process(member.into());
                self.locals[slot] = self.locals[usize::from(member)].clone();
                let what = |rules| Some(What::Restarted { member: id(member), disk: true, rules });
                self.happen(slot, Stimulus::Clone(process), crash_after, what)
            }
            Act::Command { member, command } => {
                let Some(order) = command.order(self.machine.terms.preference()) else {
                    return Fired::new();
                };
                let text = order.to_string();
                let what = |rules| Some(What::Ordered { member: id(member), order: text, rules });
                self.happen(member.into(), Stimulus::Event(Event::Order(order)), crash_after, what)
            }
            Act::Wait(ticks) => {
                for member in 0..self.locals.len() {
                    self.locals[member] = self.handle(member, Stimulus::Wait(ticks), None).local;
                }
                if let Timers::Bounded { .. } = self.machine.rules.timers {
                    self.under_way.iter_mut().for_each(|letter| letter.flight.age += 1);
                }
                Fired::new()
            }
        }
    }

    /// Everything that was recorded, and what no step may do. Messages still under way arrive after the end.
    pub(super) fn finish(mut self) -> (Vec<Record>, Vec<(Property, Fact)>) {
        let end = self.now + self.transmission;
        self.let_go(end);
        for letter in &self.under_way {
            if let What::Sent { arrives, .. } = &mut self.records[self.sent[&letter.id]].what {
                arrives.get_or_insert(end);
            }
        }
        (self.records, self.missteps)
    }

    /// What each live member believes.
    pub(super) fn views(&self) -> Vec<Option<View>> {
        let members = self.locals.iter().take(self.machine.terms.members.len());
        members.map(|local| local.state.as_ref().map(Protocol::view)).collect()
    }

    /// How much has been recorded.
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    fn record(&mut self, what: What) {
        self.records.push(Record { at: self.now, what });
    }

    /// The slot of a further process of a member, and which of its processes that is.
    fn room_for_a_process(&self, member: usize) -> (usize, u8) {
        let id = self.locals[member].id;
        let processes = self.locals.iter().filter(|local| local.id == id).count() as u8;
        let vacant = Local::vacant();
        let slot = self.locals.iter().position(|local| *local == vacant);
        (slot.expect("a process that begins has a slot"), processes)
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
            self.record(What::Missed { id, from, to, kind });
            return Fired::new();
        }
        let received = |rules| Some(What::Received { id, from, to, kind, rules });
        let event = Stimulus::Event(Event::Message { from, message });
        self.happen(member, event, crash_after, received)
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
        if let What::Sent { arrives, again, .. } = &mut self.records[record].what {
            let arrival = if arrives.is_some() { again } else { arrives };
            *arrival = Some(at);
        }
    }

    /// Lets messages to members that are down for good, of which the machine knows no more, arrive there in vain.
    fn let_go(&mut self, until: Time) {
        // Where processes are told apart, the machine keeps what another process of the member may hear.
        if P::has_sessions() || self.restarts_left > 0 || until == self.now {
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
            self.record(What::Missed { id, from, to, kind: name_of(&flight.message).to_owned() });
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

    /// Lets something happen to a member; `told` makes the record of it from the rules that fired.
    fn happen(
        &mut self,
        member: usize,
        stimulus: Stimulus<P::Message, P::Timer>,
        crash_after: Option<u32>,
        told: impl FnOnce(Fired) -> Option<What>,
    ) -> Fired {
        let handled = self.handle(member, stimulus, crash_after);
        let rules: Fired = handled.rules.iter().map(|&rule| rule.to_owned()).collect();
        if let Some(what) = told(rules.clone()) {
            self.record(what);
        }
        self.note_missteps(member, &handled);
        self.locals[member] = handled.local;
        let Ok(()) = host::apply(handled.effects, &mut Recorder { stage: self, member });
        let Local { id, .. } = self.locals[member];
        if crash_after.is_some() && !self.locals[member].is_up() {
            self.record(What::Crashed { member: id, forwards: false });
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
        self.record(What::Sent {
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
        if let Some(View { epoch, .. }) = view.filter(leads_in_a_term) {
            self.note_reign(member, epoch, handled);
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
    fn note_reign(&mut self, member: usize, term: Epoch, handled: &Handled<P>) {
        let id = handled.local.id;
        let process = handled.local.process;
        let usurps = |&&(other_term, other, its): &&(Epoch, NodeId, u8)| {
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
struct Recorder<'s, 'm, 'c, P: Protocol> {
    stage: &'s mut Stage<'m, 'c, P>,
    member: usize,
}

impl<P: Explorable> Recorder<'_, '_, '_, P> {
    fn record(&mut self, what: impl FnOnce(NodeId) -> What) {
        self.stage.record(what(self.stage.locals[self.member].id));
    }
}

impl<P: Explorable> Host<P> for Recorder<'_, '_, '_, P> {
    type Error = Infallible;

    fn persist(&mut self, _: P::Durable) -> Result<(), Infallible> {
        Ok(())
    }

    fn send(&mut self, to: NodeId, message: P::Message) -> Result<(), Infallible> {
        self.stage.send(self.member, to, message);
        Ok(())
    }

    fn arm(&mut self, timer: P::Timer, after: Delay) {
        let (upkeep, due) = (P::is_upkeep(timer), self.stage.now + after.min);
        self.record(|member| What::Armed { member, timer: format!("{timer:?}"), upkeep, due });
    }

    fn cancel(&mut self, _: P::Timer) {}

    fn announce(&mut self, View { leader, epoch, role }: View) {
        self.record(|member| What::View { member, leader, epoch, role });
    }

    fn inform(&mut self, notice: Notice) -> Result<(), Infallible> {
        match notice {
            Notice::Down(peer) => self.record(|member| What::Suspected { member, peer }),
            Notice::Up(peer) => self.record(|member| What::Trusted { member, peer }),
            _ => {
                if let Some(note) = record::note(&notice) {
                    self.record(|member| What::Noted { member, note });
                }
            }
        }
        Ok(())
    }
}
