//! The steps from a state, and the states that they lead to.

use doyen_core::explore::Explore;
use doyen_core::protocol::{AdminCommand, Origin};

use super::step::{Act, Step};
use super::worker::{Consequence, FlightFacts, LocalFacts};
use super::{HEAD, Leadership, MAX_TICKS, Model, Past, Worker};
use crate::budget::{BudgetLeft, Item};
use crate::search::space::Successors;

/// A state, taken apart.
pub(crate) struct Parts<'s> {
    pub(crate) locals: &'s [u32],
    pub(super) budget_left: BudgetLeft,
    pub(super) history: u32,
    pub(crate) flights: &'s [u32],
    /// The slots whose processes are up, a bit each.
    pub(crate) up: u64,
}

impl Parts<'_> {
    #[inline]
    pub(super) fn left(&self, item: Item) -> u32 {
        self.budget_left.left(item)
    }

    #[inline]
    pub(crate) fn is_up(&self, slot: usize) -> bool {
        self.up >> slot & 1 == 1
    }

    /// All slots but this one, a bit each.
    #[inline]
    fn others(&self, slot: usize) -> u64 {
        ((1 << self.locals.len()) - 1) & !(1 << slot)
    }
}

/// How a state changes.
#[derive(Clone, Copy)]
pub(super) struct Change {
    /// The local state in this slot becomes this one.
    pub(super) slot: usize,
    pub(super) local: u32,
    /// And so does that in another slot.
    also: Option<(usize, u32)>,
    /// The message at this place is no longer in flight.
    pub(super) landed: Option<usize>,
    /// The messages of this consequence are sent.
    pub(super) cause: Option<u32>,
    pub(super) budget_left: BudgetLeft,
    pub(super) history: u32,
    /// The members to which messages matter after it, a bit each.
    receivers: u64,
}

impl Change {
    /// Whether a message matters after it.
    #[inline]
    pub(super) fn matters<M>(&self, flight: &FlightFacts<M>) -> bool {
        self.receivers >> flight.to() & 1 == 1
    }
}

/// Local states as a change makes them of others.
#[derive(Clone, Copy)]
struct Changed<'p> {
    locals: &'p [u32],
    slot: usize,
    local: u32,
    also: Option<(usize, u32)>,
}

impl Changed<'_> {
    #[inline]
    fn local(&self, slot: usize) -> u32 {
        match self.also {
            _ if slot == self.slot => self.local,
            Some((also, local)) if also == slot => local,
            _ => self.locals[slot],
        }
    }
}

impl<P: Explore> Model<'_, P> {
    pub(crate) fn parts<'s>(&self, worker: &Worker<P>, state: &'s [u32]) -> Parts<'s> {
        let (locals, rest) = state.split_at(self.slots);
        let bit =
            |(slot, &local): (usize, &u32)| u64::from(worker.locals[local as usize].up) << slot;
        let up = locals.iter().enumerate().map(bit).fold(0, |up, bit| up | bit);
        let (budget_left, history) = (BudgetLeft::read(rest), rest[HEAD - 1]);
        Parts { locals, budget_left, history, flights: &rest[HEAD..], up }
    }

    /// Every step from a state.
    pub(super) fn add_all(
        &self,
        worker: &mut Worker<P>,
        parts: &Parts<'_>,
        out: &mut Successors<Step>,
    ) {
        if self.add_urgent(worker, parts, out) {
            return;
        }
        self.add_deliveries(worker, parts, out);
        self.add_processes(worker, parts, out);
        let faults_may_happen = !parts.budget_left.is_empty();
        let mut stranded = false;
        for slot in 0..parts.locals.len() {
            let facts = &worker.locals[parts.locals[slot] as usize];
            stranded |= facts.stranded;
            let may_act =
                faults_may_happen || facts.acts || self.wrongly_reported(parts, slot, facts) != 0;
            if facts.member.is_none() || !may_act {
                continue;
            }
            if facts.up {
                self.add_own_steps(worker, parts, slot, out);
                self.add_commands(worker, parts, slot, out);
                continue;
            }
            let cannot_restart = facts.local.disk_lost && !P::has_sessions(self.context.config);
            if parts.left(Item::Restart) > 0 && !cannot_restart {
                self.add(worker, parts, Step::new(slot, Act::Start(Origin::Joining)), None, out);
            }
            if parts.left(Item::Rejoin) > 0 {
                self.add(worker, parts, Step::new(slot, Act::Start(Origin::Rejoining)), None, out);
            }
        }
        if self.context.clock.is_some() {
            self.add_wait(worker, parts, out);
        }
        out.set_stranded(stranded);
    }

    /// Adds the timers that come before everything else at this instant; returns whether there are any.
    fn add_urgent(
        &self,
        worker: &mut Worker<P>,
        parts: &Parts<'_>,
        out: &mut Successors<Step>,
    ) -> bool {
        let urgent = |slot: usize| &worker.locals[parts.locals[slot] as usize].urgent;
        let Some(slot) = (0..parts.locals.len()).find(|&slot| !urgent(slot).is_empty()) else {
            return false;
        };
        for (timer, background) in urgent(slot).clone() {
            let expire = Step::new(slot, Act::Expire { timer, background });
            self.add(worker, parts, expire, None, out);
        }
        out.set_stranded(false);
        true
    }

    /// Adds a step, and those in which the process crashes on the way. `landed`: the place of the message that is then no
    /// longer in flight.
    #[inline]
    pub(super) fn add(
        &self,
        worker: &mut Worker<P>,
        parts: &Parts<'_>,
        step: Step,
        landed: Option<usize>,
        out: &mut Successors<Step>,
    ) {
        let crash_points = self.add_one(worker, parts, step, landed, out);
        if parts.left(Item::Crash) > 0 && !matches!(step.act, Act::Crash | Act::Release) {
            for crash_after in 1..crash_points {
                self.add_one(worker, parts, Step { crash_after, ..step }, landed, out);
            }
        }
    }

    /// Adds one step; returns the last of its outputs before which a crash makes a difference.
    #[inline]
    fn add_one(
        &self,
        worker: &mut Worker<P>,
        parts: &Parts<'_>,
        step: Step,
        landed: Option<usize>,
        out: &mut Successors<Step>,
    ) -> u8 {
        let Step { act, crash_after, .. } = step;
        let slot = usize::from(step.slot);
        let known = self.consequence(worker, parts.locals[slot], act, crash_after);
        let Consequence { local, leads, breaks, crash_points, .. } = worker.consequences[known];
        let (history, by_past) = match leads {
            Some(leads) if self.tracks_leaderships => {
                self.note_leadership(worker, parts, leads, (slot, local))
            }
            _ if !worker.consequences[known].moves.is_empty() => {
                self.note_moves(worker, parts.history, known)
            }
            _ => (parts.history, None),
        };
        let breaks = breaks.or(by_past).or_else(|| {
            let (property, _) = self.breach_by_lease(worker, parts, (slot, local))?;
            self.claim_of(property)
        });
        let (local, also) = match act {
            Act::Replace { .. } => (
                local,
                self.vacant_slot(worker, parts).map(|slot_of| (slot_of, parts.locals[slot])),
            ),
            Act::Clone { .. } => (
                parts.locals[slot],
                self.vacant_slot(worker, parts).map(|slot_of| (slot_of, local)),
            ),
            _ => (local, None),
        };
        let budget_left = self.budget_after(parts, step);
        let cause = Some(known as u32);
        let receivers = self.receivers_after(
            worker,
            parts,
            Changed { locals: parts.locals, slot, local, also },
            budget_left,
        );
        let change = Change { slot, local, also, landed, cause, budget_left, history, receivers };
        let breaks = breaks.or_else(|| {
            let (property, _) = self
                .breach_by_order(worker, parts, known, slot)
                .or_else(|| self.breach_by_token(worker, parts, known, slot, landed))?;
            self.claim_of(property)
        });
        if !self.reductions.saturate {
            self.add_changed(worker, parts, step, breaks, change, out);
            return crash_points;
        }
        let mut words = Vec::new();
        self.write_changed(worker, (parts.locals, parts.flights), &change, &mut words);
        self.saturate(worker, &mut words, worker.locals[local as usize].member);
        out.add(step, breaks, |all| all.extend(words));
        crash_points
    }

    /// Adds a step that changes a state like this. The next state is not written if its fingerprint follows from that of
    /// this one.
    #[inline(always)]
    fn add_changed(
        &self,
        worker: &mut Worker<P>,
        parts: &Parts<'_>,
        step: Step,
        breaks: Option<usize>,
        change: Change,
        out: &mut Successors<Step>,
    ) {
        if let Some(origin) = out.origin()
            && self.has_fixed_shares()
            && receivers_among(parts.up, parts.budget_left) & !change.receivers == 0
        {
            let print = self.fingerprint_after(worker, parts, &change, origin);
            out.add_unwritten(step, breaks, print, worker.changes.len() as u32);
            worker.changes.push(change);
            return;
        }
        let before = (parts.locals, parts.flights);
        out.add(step, breaks, |words| self.write_changed(worker, before, &change, words));
    }

    /// What a step leaves of the budget.
    #[inline]
    fn budget_after(&self, parts: &Parts<'_>, step: Step) -> BudgetLeft {
        let cost = match step.act {
            Act::Command(number) => Some(self.context.commands[usize::from(number)].0),
            act => act.cost(),
        };
        let left = cost.map_or(parts.budget_left, |item| parts.budget_left.spend(item));
        if step.crash_after > 0 { left.spend(Item::Crash) } else { left }
    }

    /// The history if a process leads, and the claim that it breaks.
    fn note_leadership(
        &self,
        worker: &mut Worker<P>,
        parts: &Parts<'_>,
        leadership: Leadership,
        reached: (usize, u32),
    ) -> (u32, Option<usize>) {
        let past = &worker.histories[parts.history as usize].past;
        let led = &past.led;
        let Err(place) = led.binary_search(&leadership) else { return (parts.history, None) };
        let breach = self.breach_by_leading(worker, parts, leadership, reached);
        let mut past = Past::clone(past);
        past.led.insert(place, leadership);
        let mut store = self.lock();
        let history = store.histories.number(past);
        self.copy(worker, &mut store);
        (history, breach.and_then(|(property, _)| self.claim_of(property)))
    }

    /// The history after the moves of a consequence, and the claim that they break.
    fn note_moves(
        &self,
        worker: &mut Worker<P>,
        history: u32,
        known: usize,
    ) -> (u32, Option<usize>) {
        let key = (history, known as u32);
        if let Some(&noted) = worker.entered.get(&key) {
            return noted;
        }
        let (past, breach) = self.enter(worker, history, known);
        let mut store = self.lock();
        let number = store.histories.number(past);
        self.copy(worker, &mut store);
        drop(store);
        let noted = (number, breach.and_then(|(property, _)| self.claim_of(property)));
        worker.entered.insert(key, noted);
        noted
    }

    /// Writes the state that a change makes of one with these local states and messages.
    pub(super) fn write_changed(
        &self,
        worker: &Worker<P>,
        (locals, flights): (&[u32], &[u32]),
        change: &Change,
        words: &mut Vec<u32>,
    ) {
        let start = words.len();
        words.extend_from_slice(locals);
        words[start + change.slot] = change.local;
        if let Some((slot, local)) = change.also {
            words[start + slot] = local;
        }
        words.extend(change.budget_left.words());
        words.push(change.history);
        let first = words.len();
        let &Change { slot, local, also, .. } = change;
        let changed = Changed { locals, slot, local, also };
        let may_forget =
            change.budget_left.left(Item::Rejoin) > 0 && !P::has_sessions(self.context.config);
        let receiver = worker.locals[change.local as usize].member;
        let is_obsolete = |flight: u32, is_sent: bool| {
            if !self.reductions.obsolete || may_forget {
                return false;
            }
            let to = worker.flights[flight as usize].to();
            (is_sent || Some(to) == receiver) && self.is_obsolete_for_all(worker, &changed, flight)
        };
        let matters = |flight: u32| change.matters(&worker.flights[flight as usize]);
        let members = (1 << self.context.members.len()) - 1;
        let all_stay = !self.reductions.obsolete && change.receivers & members == members;
        let landed = change.landed.unwrap_or(flights.len());
        for others in [&flights[..landed], flights.get(landed + 1..).unwrap_or_default()] {
            match all_stay {
                true => words.extend_from_slice(others),
                false => words
                    .extend(others.iter().filter(|&&it| matters(it) && !is_obsolete(it, false))),
            }
        }
        for &flight in worker.sends_of(change) {
            if matters(flight) && !is_obsolete(flight, true) {
                let place = first + self.place_of(worker, flight, &words[first..]);
                let is_known = self.lasting && place > first && words[place - 1] == flight;
                if !is_known {
                    words.insert(place, flight);
                }
            }
        }
        if self.reductions.obsolete {
            self.drop_repetitions(worker, words, start, first);
        }
    }

    /// The members to which messages matter after a change that leaves this of the budget.
    #[inline(always)]
    fn receivers_after(
        &self,
        worker: &Worker<P>,
        parts: &Parts<'_>,
        changed: Changed<'_>,
        budget_left: BudgetLeft,
    ) -> u64 {
        let is_up = |local: u32| u64::from(worker.locals[local as usize].up);
        let up = match self.slots == self.context.members.len() {
            true => parts.up & !(1 << changed.slot) | is_up(changed.local) << changed.slot,
            false => self.members_up(worker, changed),
        };
        receivers_among(up, budget_left)
    }

    /// The members of which a process is up.
    fn members_up(&self, worker: &Worker<P>, changed: Changed<'_>) -> u64 {
        let facts = (0..self.slots).map(|slot| &worker.locals[changed.local(slot) as usize]);
        let up = facts.filter(|facts| facts.up).filter_map(|facts| facts.member);
        up.fold(0, |up, member| up | 1 << member)
    }

    /// Whether a message is obsolete for every process of its receiver.
    #[inline]
    fn is_obsolete_for_all(&self, worker: &Worker<P>, changed: &Changed<'_>, flight: u32) -> bool {
        let to = worker.flights[flight as usize].to();
        if self.slots == self.context.members.len() {
            return self.is_obsolete(worker, changed.local(to), flight);
        }
        (0..self.slots).map(|slot| changed.local(slot)).all(|local| {
            let is_receiver = worker.locals[local as usize].member == Some(to);
            !is_receiver || self.is_obsolete(worker, local, flight)
        })
    }

    /// Keeps one of the messages that differ only in serial numbers that make no difference any more. The state begins at
    /// `start`, its messages at `first`.
    pub(super) fn drop_repetitions(
        &self,
        worker: &Worker<P>,
        words: &mut Vec<u32>,
        start: usize,
        first: usize,
    ) {
        let (state, flights) = words.split_at_mut(first);
        let state = &state[start..];
        let facts = |flight: u32| &worker.flights[flight as usize];
        let is_past = |flight: u32| {
            facts(flight).serial.is_some() && self.canonical_serial(worker, state, flight) == 0
        };
        let mut kept = 0;
        for place in 0..flights.len() {
            let flight = flights[place];
            let of_its_link = flights[..kept]
                .iter()
                .rev()
                .take_while(|&&other| facts(other).channel == facts(flight).channel);
            let mut alike = of_its_link.filter(|&&other| facts(other).print == facts(flight).print);
            if !is_past(flight) || !alike.any(|&other| is_past(other)) {
                flights[kept] = flight;
                kept += 1;
            }
        }
        words.truncate(first + kept);
    }

    /// The place of a new message among those in flight.
    #[inline]
    pub(super) fn place_of(&self, worker: &Worker<P>, flight: u32, flights: &[u32]) -> usize {
        let rank = |flight: u32| {
            let channel = worker.flights[flight as usize].channel;
            (channel, if self.rules.fifo { 0 } else { flight })
        };
        let own = rank(flight);
        let behind = flights.iter().rev().take_while(|&&other| rank(other) > own).count();
        flights.len() - behind
    }

    fn add_deliveries(
        &self,
        worker: &mut Worker<P>,
        parts: &Parts<'_>,
        out: &mut Successors<Step>,
    ) {
        let mut before = None;
        for (place, &message) in parts.flights.iter().enumerate() {
            let facts = &worker.flights[message as usize];
            // With FIFO links only the first of a link arrives; else equal messages are one.
            let same = if self.rules.fifo { u32::from(facts.channel) } else { message };
            if before.replace(same) == Some(same) {
                continue;
            }
            let to = facts.to();
            if self.lasting {
                for slot in self.processes_of(worker, parts.locals, to) {
                    if parts.is_up(slot) {
                        self.add_lasting_delivery(worker, parts, message, slot, out);
                    }
                }
                continue;
            }
            let receive = |again| Step::new(to, Act::Receive { message, again });
            if !parts.is_up(to) {
                self.add_loss(worker, parts, receive(false), place, out);
                continue;
            }
            self.add(worker, parts, receive(false), Some(place), out);
            if parts.left(Item::Duplication) > 0 {
                self.add(worker, parts, receive(true), None, out);
            }
            if parts.left(Item::Loss) > 0 {
                let lose = Step::new(to, Act::Lose { message });
                self.add_loss(worker, parts, lose, place, out);
            }
        }
    }

    /// Adds the step in which a lasting message arrives, unless it changes nothing.
    fn add_lasting_delivery(
        &self,
        worker: &mut Worker<P>,
        parts: &Parts<'_>,
        message: u32,
        slot: usize,
        out: &mut Successors<Step>,
    ) {
        let step = Step::new(slot, Act::Receive { message, again: true });
        let known = self.consequence(worker, parts.locals[slot], step.act, 0);
        let Consequence { local, sends, breaks, crash_points, .. } = &worker.consequences[known];
        let is_in_flight = |sent: &u32| parts.flights.contains(sent);
        let has_effect = *local != parts.locals[slot]
            || breaks.is_some()
            || *crash_points > 1 && parts.left(Item::Crash) > 0
            || !sends.iter().all(is_in_flight);
        if has_effect {
            self.add(worker, parts, step, None, out);
        }
    }

    /// Adds the step in which the message at `place` is lost.
    fn add_loss(
        &self,
        worker: &mut Worker<P>,
        parts: &Parts<'_>,
        step: Step,
        place: usize,
        out: &mut Successors<Step>,
    ) {
        let (slot, local, also) = (0, parts.locals[0], None);
        let budget_left = self.budget_after(parts, step);
        let changed = Changed { locals: parts.locals, slot, local, also };
        let receivers = self.receivers_after(worker, parts, changed, budget_left);
        let (landed, cause, history) = (Some(place), None, parts.history);
        let change = Change { slot, local, also, landed, cause, budget_left, history, receivers };
        self.add_changed(worker, parts, step, None, change, out);
    }

    /// Adds what else can happen to a process that is up.
    fn add_own_steps(
        &self,
        worker: &mut Worker<P>,
        parts: &Parts<'_>,
        slot: usize,
        out: &mut Successors<Step>,
    ) {
        let facts = &worker.locals[parts.locals[slot] as usize];
        let is_leased = facts.leased;
        let wrong = self.wrongly_reported(parts, slot, facts);
        let suspected = match self.uses.detector && parts.left(Item::Suspicion) > 0 {
            true => parts.up & !facts.reported & parts.others(slot),
            false => 0,
        };
        if !facts.ready.is_empty() && !self.has_overdue_message(worker, parts, slot) {
            for (timer, background) in facts.ready.clone() {
                let expire = Step::new(slot, Act::Expire { timer, background });
                self.add(worker, parts, expire, None, out);
            }
        }
        let mut peers = wrong | suspected;
        while peers != 0 {
            let peer = peers.trailing_zeros() as u8;
            peers &= peers - 1;
            let act = match wrong >> peer & 1 == 1 {
                true => Act::Report { peer, up: parts.is_up(usize::from(peer)) },
                false => Act::Suspect { peer },
            };
            self.add(worker, parts, Step::new(slot, act), None, out);
        }
        let LocalFacts { may_ask, section, .. } = worker.locals[parts.locals[slot] as usize];
        for (may_happen, act) in [(may_ask, Act::Request), (section.is_inside(), Act::Exit)] {
            if may_happen {
                self.add(worker, parts, Step::new(slot, act), None, out);
            }
        }
        for (item, act) in [(Item::Campaign, Act::Campaign), (Item::Crash, Act::Crash)] {
            if parts.left(item) > 0 {
                self.add(worker, parts, Step::new(slot, act), None, out);
            }
        }
        if parts.left(Item::Release) > 0 && is_leased {
            self.add(worker, parts, Step::new(slot, Act::Release), None, out);
        }
    }

    /// The slots about which the detector of the process in `slot` is wrong, a bit each.
    #[inline]
    fn wrongly_reported(&self, parts: &Parts<'_>, slot: usize, facts: &LocalFacts<P>) -> u64 {
        let wrong = !(facts.reported ^ parts.up) & parts.others(slot);
        if self.uses.detector { wrong } else { 0 }
    }

    /// Adds the commands of an operator to a process that is up. A command that is rejected changes nothing, and is not a
    /// step.
    fn add_commands(
        &self,
        worker: &mut Worker<P>,
        parts: &Parts<'_>,
        slot: usize,
        out: &mut Successors<Step>,
    ) {
        let of_leaders = match self.uses.leases {
            true => parts.left(Item::Transfer) + parts.left(Item::Command),
            false => 0,
        };
        if of_leaders + parts.left(Item::Snapshot) + parts.left(Item::Tell) == 0 {
            return;
        }
        let to = worker.locals[parts.locals[slot] as usize].local.id;
        for (number, &(item, command)) in self.context.commands.iter().enumerate() {
            let is_for_it = matches!(item, Item::Snapshot | Item::Tell) || of_leaders > 0;
            let to_itself = [AdminCommand::Transfer { to }, AdminCommand::Tell { to }];
            if parts.left(item) == 0 || !is_for_it || to_itself.contains(&command) {
                continue;
            }
            let step = Step::new(slot, Act::Command(number as u8));
            let known = self.consequence(worker, parts.locals[slot], step.act, 0);
            let Consequence { local, sends, .. } = &worker.consequences[known];
            if *local != parts.locals[slot] || !sends.is_empty() {
                self.add(worker, parts, step, None, out);
            }
        }
    }

    /// Whether a message to the process in `slot` has taken as long as it may: it is handled before a timer.
    fn has_overdue_message(&self, worker: &Worker<P>, parts: &Parts<'_>, slot: usize) -> bool {
        parts.flights.iter().any(|&flight| {
            let facts = &worker.flights[flight as usize];
            facts.age >= MAX_TICKS && facts.to() == slot
        })
    }

    /// The slots for which time waits, a bit each: a message, a timer or a report has taken as long as it may.
    pub(crate) fn late(&self, worker: &Worker<P>, parts: &Parts<'_>) -> u64 {
        let flights = parts.flights.iter().map(|&flight| &worker.flights[flight as usize]);
        let receivers = flights.filter(|facts| facts.age >= MAX_TICKS).map(FlightFacts::to);
        let facts = |slot: &usize| &worker.locals[parts.locals[*slot] as usize];
        let timers = (0..parts.locals.len()).filter(|slot| facts(slot).latest == 0);
        let late = receivers.chain(timers).fold(0, |late, slot| late | 1 << slot);
        late | self.misinformed(worker, parts)
    }

    /// The slots whose detectors have had all the time that they need to notice something and have not, a bit each.
    fn misinformed(&self, worker: &Worker<P>, parts: &Parts<'_>) -> u64 {
        if !self.context.awaits_detectors() {
            return 0;
        }
        let detection = self.context.detection();
        let facts = |slot: usize| &worker.locals[parts.locals[slot] as usize];
        let bits = |is: &dyn Fn(usize) -> bool| {
            (0..parts.locals.len())
                .filter(|&slot| is(slot))
                .fold(0_u64, |all, slot| all | 1 << slot)
        };
        let settled = bits(&|slot| facts(slot).settled >= detection);
        bits(&|slot| {
            let wrong = (facts(slot).reported ^ !parts.up) & settled & !(1 << slot);
            facts(slot).up && settled >> slot & 1 == 1 && wrong != 0
        })
    }

    /// Adds the step in which time passes, if nothing is due: one tick, or if nothing else can happen, the ticks until
    /// something can.
    fn add_wait(&self, worker: &mut Worker<P>, parts: &Parts<'_>, out: &mut Successors<Step>) {
        let of_timers = |pick: fn(&LocalFacts<P>) -> u32| {
            let facts = parts.locals.iter().map(|&local| pick(&worker.locals[local as usize]));
            facts.min().unwrap_or(u32::MAX)
        };
        let earliest = of_timers(|facts| facts.earliest);
        let nothing_awaited = of_timers(|facts| facts.latest.min(facts.earliest)) == u32::MAX
            && parts.flights.is_empty();
        if nothing_awaited || self.late(worker, parts) != 0 {
            return;
        }
        let act = Act::Wait { ticks: if out.list().is_empty() { earliest } else { 1 } };
        let locals: Vec<u32> = parts
            .locals
            .iter()
            .map(|&local| {
                let known = self.consequence(worker, local, act, 0);
                worker.consequences[known].local
            })
            .collect();
        let mut flights: Vec<u32> =
            parts.flights.iter().map(|&flight| self.older(worker, flight)).collect();
        if !self.rules.fifo {
            let channel = |flight: u32| worker.flights[flight as usize].channel;
            flights.sort_unstable_by_key(|&flight| (channel(flight), flight));
        }
        out.add(Step::new(0, act), None, |words| {
            words.extend(locals);
            words.extend(parts.budget_left.words());
            words.push(parts.history);
            words.extend(flights);
        });
    }
}

/// The members to which messages matter if these are up: a message to a member that stays down makes no difference.
#[inline]
fn receivers_among(up: u64, budget_left: BudgetLeft) -> u64 {
    if budget_left.allows_starts() { u64::MAX } else { up }
}
