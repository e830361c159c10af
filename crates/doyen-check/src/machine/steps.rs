//! Everything that can happen in a state.

use doyen_core::explore::Explore;
use doyen_core::ledger::{self, Tenure};

use super::hand::{Consequence, FlightFacts, Hand, Input, LocalFacts};
use super::{Act, HEAD, MOST_TICKS, Machine, Step};
use crate::budget::{Item, Purse};
use crate::local::Ticks;
use crate::property::Property;
use crate::schedule::Command;
use crate::space::Successors;

/// With more local states than this to come to, nobody tries out what a member may send.
const MOST_TRIED: usize = 64;

/// Where the parts of a state begin.
pub(crate) struct Parts<'s> {
    pub(crate) locals: &'s [u32],
    pub(super) purse: Purse,
    pub(super) history: u32,
    pub(crate) flights: &'s [u32],
    /// Who is up, a bit for each position.
    pub(super) up: u64,
}

/// What is under way to a member: what waits on its links, in order, and what may be sent to it besides.
#[derive(Clone, Copy)]
struct Letters<'a> {
    mail: &'a [u32],
    /// So many of them wait.
    waiting: usize,
}

/// How a state changes.
#[derive(Clone, Copy)]
struct Change<'a> {
    /// The local state in this slot becomes this one.
    member: usize,
    local: u32,
    /// And so does that in another slot.
    also: Option<(usize, u32)>,
    /// The flight at this place is gone.
    landed: Option<usize>,
    /// These are under way.
    sends: &'a [u32],
    purse: Purse,
    history: u32,
}

/// A state as a change makes it of another.
struct Now<'p, 'c> {
    parts: &'p Parts<'p>,
    change: Change<'c>,
}

impl Now<'_, '_> {
    /// The local state in a slot.
    #[inline]
    fn local(&self, slot: usize) -> u32 {
        match self.change.also {
            _ if slot == self.change.member => self.change.local,
            Some((also, local)) if also == slot => local,
            _ => self.parts.locals[slot],
        }
    }
}

/// Something that happens to one member.
#[derive(Clone, Copy)]
pub(super) struct Happening {
    pub(super) member: usize,
    pub(super) input: Input,
    pub(super) act: Act,
    pub(super) landed: Option<usize>,
    pub(super) purse: Purse,
    /// The slot of the process that begins by this.
    pub(super) begins: Option<usize>,
}

impl Happening {
    /// Whether the member may crash while it deals with it: it must be alive before.
    fn can_be_cut_short(&self) -> bool {
        self.input != Input::Crash && self.purse.left(Item::Crash) > 0
    }
}

impl<P: Explore> Machine<'_, P> {
    pub(crate) fn parts<'s>(&self, hand: &Hand<P>, state: &'s [u32]) -> Parts<'s> {
        let (locals, rest) = state.split_at(self.slots);
        let is_up = |(position, &local): (usize, &u32)| {
            u64::from(hand.locals[local as usize].up) << position
        };
        let up = locals.iter().enumerate().map(is_up).fold(0, |up, bit| up | bit);
        let (purse, history) = (Purse::read(rest), rest[HEAD - 1]);
        Parts { locals, purse, history, flights: &rest[HEAD..], up }
    }

    /// Writes the state that a change makes of another.
    #[inline]
    fn write(&self, hand: &Hand<P>, parts: &Parts<'_>, change: Change<'_>, words: &mut Vec<u32>) {
        let start = words.len();
        words.extend_from_slice(parts.locals);
        words[start + change.member] = change.local;
        if let Some((slot, local)) = change.also {
            words[start + slot] = local;
        }
        words.extend(change.purse.words());
        words.push(change.history);
        let first = words.len();
        let now = Now { parts, change };
        let up = self.members_up(hand, &now);
        // Nobody will ever know what became of a message to a member that is down for good.
        let everybody = (1 << self.terms.members.len()) - 1;
        let may_start = [Item::Restart, Item::Rejoin, Item::Replacement, Item::Clone];
        let all_matter =
            up == everybody || may_start.into_iter().any(|item| change.purse.left(item) > 0);
        let may_forget = change.purse.left(Item::Rejoin) > 0 && !P::has_sessions();
        let changed = hand.locals[change.local as usize].member;
        let is_spent = |flight: u32, is_sent: bool| {
            if !self.frugal || may_forget {
                return false;
            }
            let to = hand.flights[flight as usize].to();
            (is_sent || Some(to) == changed) && self.is_spent_for_all(hand, &now, flight)
        };
        let matters = |flight: u32| all_matter || up >> hand.flights[flight as usize].to() & 1 == 1;
        for (place, &flight) in parts.flights.iter().enumerate() {
            if Some(place) != change.landed && matters(flight) && !is_spent(flight, false) {
                words.push(flight);
            }
        }
        for &flight in change.sends {
            if matters(flight) && !is_spent(flight, true) {
                let place = first + self.place_of(hand, flight, &words[first..]);
                let is_known = self.lasting && place > first && words[place - 1] == flight;
                if !is_known {
                    words.insert(place, flight);
                }
            }
        }
        if self.frugal {
            self.drop_repetitions(hand, words, start, first);
        }
    }

    /// The members of which a process is up.
    #[inline]
    fn members_up(&self, hand: &Hand<P>, now: &Now<'_, '_>) -> u64 {
        let Now { parts, change } = now;
        let bit = 1 << change.member;
        let up = match hand.locals[change.local as usize].up {
            true => parts.up | bit,
            false => parts.up & !bit,
        };
        if self.slots == self.terms.members.len() {
            return up;
        }
        let facts = (0..self.slots).map(|slot| &hand.locals[now.local(slot) as usize]);
        let up = facts.filter(|facts| facts.up).filter_map(|facts| facts.member);
        up.fold(0, |up, member| up | 1 << member)
    }

    /// Whether no process of its receiver has any use for a message any more.
    #[inline]
    fn is_spent_for_all(&self, hand: &Hand<P>, now: &Now<'_, '_>, flight: u32) -> bool {
        let to = hand.flights[flight as usize].to();
        if self.slots == self.terms.members.len() {
            return self.is_spent(hand, now.local(to), flight);
        }
        (0..self.slots).map(|slot| now.local(slot)).all(|local| {
            hand.locals[local as usize].member != Some(to) || self.is_spent(hand, local, flight)
        })
    }

    /// Of the messages that differ only in serial numbers which make no difference any more, one is enough. The state
    /// begins at `start`, its messages at `first`.
    pub(super) fn drop_repetitions(
        &self,
        hand: &Hand<P>,
        words: &mut Vec<u32>,
        start: usize,
        first: usize,
    ) {
        let (state, flights) = words.split_at_mut(first);
        let state = &state[start..];
        let facts = |flight: u32| &hand.flights[flight as usize];
        let is_past = |flight: u32| {
            facts(flight).serial.is_some() && self.serial_in_essence(hand, state, flight) == 0
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

    /// Where a new message belongs among those under way.
    #[inline]
    pub(super) fn place_of(&self, hand: &Hand<P>, flight: u32, flights: &[u32]) -> usize {
        let rank = |flight: u32| {
            let channel = hand.flights[flight as usize].channel;
            (channel, if self.rules.fifo { 0 } else { flight })
        };
        let own = rank(flight);
        let behind = flights.iter().rev().take_while(|&&other| rank(other) > own).count();
        flights.len() - behind
    }

    /// Adds the step in which `input` happens to `member`, and those in which it crashes on the way.
    #[inline]
    pub(super) fn happen(
        &self,
        hand: &mut Hand<P>,
        parts: &Parts<'_>,
        happening: Happening,
        out: &mut Successors<Step>,
    ) {
        let cuts = self.happen_once(hand, parts, happening, 0, out);
        if parts.purse.left(Item::Crash) > 0 && happening.can_be_cut_short() {
            for crash_after in 1..cuts {
                self.happen_once(hand, parts, happening, crash_after, out);
            }
        }
    }

    /// Adds one step; says before which of the things that it sends and stores a crash makes a difference at the latest.
    #[inline]
    fn happen_once(
        &self,
        hand: &mut Hand<P>,
        parts: &Parts<'_>,
        happening: Happening,
        crash_after: u8,
        out: &mut Successors<Step>,
    ) -> u8 {
        let Happening { member, input, act, landed, purse, begins } = happening;
        let purse = if crash_after > 0 { purse.spend(Item::Crash) } else { purse };
        let known = self.consequence(hand, parts.locals[member], input, crash_after);
        let &Consequence { local, leads, .. } = &hand.consequences[known];
        let (history, usurps) = match leads {
            Some(leads) if self.notes_reigns => {
                self.note(hand, parts.history, leads, parts.locals, (member, local))
            }
            _ => (parts.history, None),
        };
        let &Consequence { ref sends, cuts, breaks, .. } = &hand.consequences[known];
        let (local, also) = match (begins, act) {
            (Some(slot), Act::Clone(_)) => (parts.locals[member], Some((slot, local))),
            (Some(slot), _) => (local, Some((slot, parts.locals[member]))),
            (None, _) => (local, None),
        };
        let change = Change { member, local, also, landed, sends, purse, history };
        let breaks = breaks
            .or(usurps)
            .or_else(|| self.overlaps(hand, parts, member, local))
            .or_else(|| self.uncovers(hand, parts, member, local));
        let step = Step { act, crash_after };
        if !self.saturating {
            out.add(step, breaks, |words| self.write(hand, parts, change, words));
            return cuts;
        }
        let mut words = Vec::new();
        self.write(hand, parts, change, &mut words);
        self.saturate(hand, &mut words, hand.locals[local as usize].member);
        out.add(step, breaks, |all| all.extend(words));
        cuts
    }

    /// The claim that a member breaks by having a lease while somebody may act on that of another.
    fn overlaps(
        &self,
        hand: &Hand<P>,
        parts: &Parts<'_>,
        member: usize,
        local: u32,
    ) -> Option<usize> {
        if !P::has_leases(self.terms.config) || !hand.locals[local as usize].leased {
            return None;
        }
        let facts = |local: u32| &hand.locals[local as usize];
        let others = parts.locals.iter().enumerate().filter(|&(other, _)| other != member);
        let published = others.map(|(_, &other)| {
            let LocalFacts { local, published, lease_term: term, .. } = facts(other);
            (local.id, Tenure { term: *term, until: Ticks(*published) })
        });
        let holder = &facts(local).local;
        ledger::overlap(Ticks(0), holder.id, holder.lease_term, published)?;
        self.properties.iter().position(|&it| it == Property::OneLeader)
    }

    /// The claim that a step of `member` to `local` breaks if it leaves somebody's lease without a majority that is bound.
    fn uncovers(
        &self,
        hand: &Hand<P>,
        parts: &Parts<'_>,
        member: usize,
        local: u32,
    ) -> Option<usize> {
        let claim = self.properties.iter().position(|&it| it == Property::LeasesCovered)?;
        let number = |place: usize| if place == member { local } else { parts.locals[place] };
        let facts = |place: usize| &hand.locals[number(place) as usize];
        let places = || 0..parts.locals.len();
        let is_uncovered = |&holder: &usize| {
            let term = facts(holder).lease_term;
            let covers = |&place: &usize| match facts(place).up {
                true => facts(place).local.covers(&self.terms, term),
                false => facts(place).held_down,
            };
            places().filter(covers).count() < ledger::majority(parts.locals.len())
        };
        let mut leases = places().filter(|&place| facts(place).published > 0);
        leases.any(|holder| is_uncovered(&holder)).then_some(claim)
    }

    fn add_deliveries(&self, hand: &mut Hand<P>, parts: &Parts<'_>, out: &mut Successors<Step>) {
        let mut before = None;
        for (place, &flight) in parts.flights.iter().enumerate() {
            let facts = &hand.flights[flight as usize];
            // Only the first of a link arrives where links keep the order; else the same message twice is one.
            let same = if self.rules.fifo { u32::from(facts.channel) } else { flight };
            if before.replace(same) == Some(same) {
                continue;
            }
            let member = facts.to();
            let alive = parts.up >> member & 1 == 1;
            let (deliver, lose) = (Act::Deliver(flight), Act::Lose(flight));
            if self.lasting {
                for slot in self.processes_of(hand, parts.locals, member) {
                    if parts.up >> slot & 1 == 1 {
                        self.deliver_lasting(hand, parts, flight, slot, out);
                    }
                }
                continue;
            }
            if alive {
                let hear = Happening {
                    member,
                    input: Input::Hear(flight),
                    act: deliver,
                    landed: Some(place),
                    purse: parts.purse,
                    begins: None,
                };
                self.happen(hand, parts, hear, out);
                if parts.purse.left(Item::Duplication) > 0 {
                    let purse = parts.purse.spend(Item::Duplication);
                    let again = Happening { act: Act::Double(flight), landed: None, purse, ..hear };
                    self.happen(hand, parts, again, out);
                }
            } else {
                self.drop_flight(hand, parts, place, deliver, parts.purse, out);
            }
            if alive && parts.purse.left(Item::Loss) > 0 {
                let purse = parts.purse.spend(Item::Loss);
                self.drop_flight(hand, parts, place, lose, purse, out);
            }
        }
    }

    /// Adds the step in which a message arrives that will again, unless nothing comes of it.
    fn deliver_lasting(
        &self,
        hand: &mut Hand<P>,
        parts: &Parts<'_>,
        flight: u32,
        member: usize,
        out: &mut Successors<Step>,
    ) {
        let (input, act) = (Input::Hear(flight), self.act_of_hearing(flight, member));
        let (landed, purse, begins) = (None, parts.purse, None);
        let hear = Happening { member, input, act, landed, purse, begins };
        let known = self.consequence(hand, parts.locals[member], input, 0);
        let &Consequence { local, ref sends, breaks, cuts, .. } = &hand.consequences[known];
        let is_under_way = |sent: &u32| parts.flights.contains(sent);
        let is_news = local != parts.locals[member]
            || breaks.is_some()
            || cuts > 1 && parts.purse.left(Item::Crash) > 0
            || !sends.iter().all(is_under_way);
        if is_news {
            self.happen(hand, parts, hear, out);
        }
    }

    /// Adds the step in which a message goes nowhere.
    fn drop_flight(
        &self,
        hand: &Hand<P>,
        parts: &Parts<'_>,
        place: usize,
        act: Act,
        purse: Purse,
        out: &mut Successors<Step>,
    ) {
        let (local, history) = (parts.locals[0], parts.history);
        let (landed, also) = (Some(place), None);
        let change = Change { member: 0, local, also, landed, sends: &[], purse, history };
        out.add(Step { act, crash_after: 0 }, None, |words| self.write(hand, parts, change, words));
    }

    /// Adds what else can happen to a live member.
    fn add_own_steps(
        &self,
        hand: &mut Hand<P>,
        parts: &Parts<'_>,
        member: usize,
        out: &mut Successors<Step>,
    ) {
        let (landed, purse, begins) = (None, parts.purse, None);
        let plain = |input, act| Happening { member, input, act, landed, purse, begins };
        let name = member as u8;
        let facts = &hand.locals[parts.locals[member] as usize];
        let (reported, up) = (facts.reported, parts.up);
        if !facts.ready.is_empty() && !self.has_overdue_mail(hand, parts, member) {
            let ready = facts.ready.clone();
            for (timer, upkeep) in ready {
                let act = Act::Expire { member: name, timer, upkeep };
                self.happen(hand, parts, plain(Input::Expire(timer), act), out);
            }
        }
        let others = ((1 << parts.locals.len()) - 1) & !(1 << member);
        // Nearly always everybody has been told the truth.
        let mistaken =
            if P::heeds_detector(self.terms.config) { !(reported ^ up) & others } else { 0 };
        let suspects =
            P::heeds_detector(self.terms.config) && parts.purse.left(Item::Suspicion) > 0;
        let concerned = if suspects { others } else { mistaken };
        for peer in (0..parts.locals.len()).filter(|peer| concerned >> peer & 1 == 1) {
            let (held_for_dead, alive) = (reported >> peer & 1 == 1, up >> peer & 1 == 1);
            let peer = peer as u8;
            if held_for_dead == alive {
                let input = Input::Report { peer, up: alive };
                let act = Act::Report { member: name, peer, up: alive };
                self.happen(hand, parts, plain(input, act), out);
            } else if alive && parts.purse.left(Item::Suspicion) > 0 {
                let purse = parts.purse.spend(Item::Suspicion);
                let (input, act) = (Input::Suspect(peer), Act::Suspect { member: name, peer });
                self.happen(hand, parts, Happening { purse, ..plain(input, act) }, out);
            }
        }
        for (item, input, act) in [
            (Item::Campaign, Input::Campaign, Act::Campaign(name)),
            (Item::Crash, Input::Crash, Act::Crash(name)),
        ] {
            if parts.purse.left(item) > 0 {
                let purse = parts.purse.spend(item);
                self.happen(hand, parts, Happening { purse, ..plain(input, act) }, out);
            }
        }
    }

    /// Adds what an operator can tell a live member. What is rejected changes nothing, and is no step.
    fn add_commands(
        &self,
        hand: &mut Hand<P>,
        parts: &Parts<'_>,
        member: usize,
        out: &mut Successors<Step>,
    ) {
        let [transfers, commands] =
            [Item::Transfer, Item::Command].map(|item| parts.purse.left(item) > 0);
        if !P::has_leases(self.terms.config) || !transfers && !commands {
            return;
        }
        let ids = || self.terms.members.iter();
        let own = self.terms.members.at(member);
        let hand_overs = ids().filter(|&id| id != own).map(Command::Transfer);
        let hand_overs = hand_overs.chain([Command::Resign]).map(|it| (Item::Transfer, it));
        let others = ids().map(Command::Prefer).chain([Command::Drain, Command::Undrain]);
        let others = others.map(|it| (Item::Command, it));
        for (item, command) in hand_overs.chain(others) {
            if parts.purse.left(item) == 0 {
                continue;
            }
            let (purse, input) = (parts.purse.spend(item), Input::Command(command));
            let known = self.consequence(hand, parts.locals[member], input, 0);
            let Consequence { local, sends, .. } = &hand.consequences[known];
            if *local != parts.locals[member] || !sends.is_empty() {
                let act = Act::Command { member: member as u8, command };
                self.happen(
                    hand,
                    parts,
                    Happening { member, input, act, landed: None, purse, begins: None },
                    out,
                );
            }
        }
    }

    /// Whether a message for `member` has taken as long as it may: it comes before a timer.
    fn has_overdue_mail(&self, hand: &Hand<P>, parts: &Parts<'_>, member: usize) -> bool {
        let overdue = |&flight: &u32| {
            let facts = &hand.flights[flight as usize];
            facts.age >= MOST_TICKS && facts.to() == member
        };
        parts.flights.iter().any(overdue)
    }

    /// For whom time waits, a bit for each position: who has something to do that has taken as long as it may.
    pub(crate) fn late(&self, hand: &Hand<P>, parts: &Parts<'_>) -> u64 {
        let overdue = parts.flights.iter().map(|&flight| &hand.flights[flight as usize]);
        let mail = overdue.filter(|facts| facts.age >= MOST_TICKS).map(FlightFacts::to);
        let facts = |member: &usize| &hand.locals[parts.locals[*member] as usize];
        let timers = (0..parts.locals.len()).filter(|member| facts(member).latest == 0);
        let late = mail.chain(timers).fold(0, |late, member| late | 1 << member);
        late | self.unaware(hand, parts)
    }

    /// Whose detector has had all the time it needs to notice something and has not.
    fn unaware(&self, hand: &Hand<P>, parts: &Parts<'_>) -> u64 {
        if !self.terms.awaits_detectors() {
            return 0;
        }
        let detection = self.terms.detection();
        let facts = |member: usize| &hand.locals[parts.locals[member] as usize];
        let members = || 0..parts.locals.len();
        let is_calm = |&member: &usize| facts(member).calm >= detection;
        let calm = members().filter(is_calm).fold(0, |calm, member| calm | 1_u64 << member);
        let is_unaware = |&member: &usize| {
            let wrong = (facts(member).reported ^ !parts.up) & calm & !(1 << member);
            facts(member).up && calm >> member & 1 == 1 && wrong != 0
        };
        members().filter(is_unaware).fold(0, |unaware, member| unaware | 1 << member)
    }

    /// Adds the step in which time goes by, if nothing is due: to the next moment at which something can happen, if
    /// nothing can happen now.
    fn add_wait(&self, hand: &mut Hand<P>, parts: &Parts<'_>, out: &mut Successors<Step>) {
        let of_timers = |pick: fn(&LocalFacts<P>) -> u32| {
            let facts = parts.locals.iter().map(|&local| pick(&hand.locals[local as usize]));
            facts.min().unwrap_or(u32::MAX)
        };
        let nothing_awaited =
            of_timers(|facts| facts.latest) == u32::MAX && parts.flights.is_empty();
        if nothing_awaited || self.late(hand, parts) != 0 {
            return;
        }
        let earliest = of_timers(|facts| facts.earliest);
        let ticks = if out.list().is_empty() { earliest } else { 1 };
        let locals: Vec<u32> = (0..parts.locals.len())
            .map(|member| {
                let known = self.consequence(hand, parts.locals[member], Input::Wait(ticks), 0);
                hand.consequences[known].local
            })
            .collect();
        let mut flights: Vec<u32> =
            parts.flights.iter().map(|&flight| self.older(hand, flight)).collect();
        if !self.rules.fifo {
            flights.sort_unstable_by_key(|&flight| (hand.flights[flight as usize].channel, flight));
        }
        out.add(Step { act: Act::Wait(ticks), crash_after: 0 }, None, |words| {
            words.extend(locals);
            words.extend(parts.purse.words());
            words.push(parts.history);
            words.extend(flights);
        });
    }

    /// What `member` may send by what it has to do now, in whatever order it does it, if `more` may arrive besides;
    /// nothing if there are too many orders to try.
    pub(crate) fn prospects(
        &self,
        hand: &mut Hand<P>,
        parts: &Parts<'_>,
        member: usize,
        more: &[u32],
    ) -> Option<Vec<u32>> {
        let mut prospects = Vec::new();
        if parts.up >> member & 1 == 0 {
            return Some(prospects);
        }
        let is_its = |&flight: &u32| hand.flights[flight as usize].to() == member;
        let mut mail: Vec<u32> = parts.flights.iter().copied().filter(is_its).collect();
        let waiting = mail.len();
        mail.extend(more);
        if mail.len() > u32::BITS as usize {
            return None;
        }
        let letters = Letters { mail: &mail, waiting };
        // Local states it may come to, and which of its mail it has taken by then.
        let mut tried = vec![(parts.locals[member], 0_u32)];
        let mut next = 0;
        while let Some(&(local, taken)) = tried.get(next) {
            next += 1;
            for (input, taken) in self.inputs(hand, parts, member, (local, taken), letters) {
                let known = self.consequence(hand, local, input, 0);
                let Consequence { local, sends, .. } = &hand.consequences[known];
                for &sent in sends {
                    if !prospects.contains(&sent) {
                        prospects.push(sent);
                    }
                }
                if !tried.contains(&(*local, taken)) {
                    tried.push((*local, taken));
                }
            }
            if tried.len() > MOST_TRIED {
                return None;
            }
        }
        Some(prospects)
    }

    /// What a live member may have to do that has come to this local state and has taken so much of its mail, and what it
    /// has taken after that.
    fn inputs(
        &self,
        hand: &Hand<P>,
        parts: &Parts<'_>,
        member: usize,
        (local, taken): (u32, u32),
        letters: Letters<'_>,
    ) -> Vec<(Input, u32)> {
        let Letters { mail, waiting } = letters;
        let facts = &hand.locals[local as usize];
        let channel = |place: usize| hand.flights[mail[place] as usize].channel;
        let is_left = |place: &usize| taken >> place & 1 == 0;
        // What waits on a link comes before what is sent on it.
        let is_first = |&place: &usize| {
            let mut before = (0..place.min(waiting)).filter(is_left);
            !self.rules.fifo || !before.any(|before| channel(before) == channel(place))
        };
        let hear = (0..mail.len()).filter(is_left).filter(is_first).map(|place| {
            // What may be sent besides may be sent again, in the same words.
            let used_up = if place < waiting { 1 << place } else { 0 };
            (Input::Hear(mail[place]), taken | used_up)
        });
        let others = ((1 << parts.locals.len()) - 1) & !(1 << member);
        let mistaken = if P::heeds_detector(self.terms.config) {
            !(facts.reported ^ parts.up) & others
        } else {
            0
        };
        let reports = (0..parts.locals.len())
            .filter(|peer| mistaken >> peer & 1 == 1)
            .map(|peer| Input::Report { peer: peer as u8, up: parts.up >> peer & 1 == 1 });
        let expiries = facts.ready.iter().map(|&(timer, _)| Input::Expire(timer));
        hear.chain(reports.chain(expiries).map(|input| (input, taken))).collect()
    }

    /// Every step from `state`.
    pub(super) fn add_all(
        &self,
        hand: &mut Hand<P>,
        parts: &Parts<'_>,
        out: &mut Successors<Step>,
    ) {
        self.add_deliveries(hand, parts, out);
        self.add_processes(hand, parts, out);
        for member in 0..parts.locals.len() {
            if hand.locals[parts.locals[member] as usize].member.is_none() {
                continue;
            }
            if parts.up >> member & 1 == 1 {
                self.add_own_steps(hand, parts, member, out);
                self.add_commands(hand, parts, member, out);
                continue;
            }
            let name = member as u8;
            for (item, input, act) in [
                (Item::Restart, Input::Restart, Act::Restart(name)),
                (Item::Rejoin, Input::Rejoin, Act::Rejoin(name)),
            ] {
                let lacks_disk =
                    hand.locals[parts.locals[member] as usize].local.lost && !P::has_sessions();
                if parts.purse.left(item) > 0 && !(lacks_disk && item == Item::Restart) {
                    let purse = parts.purse.spend(item);
                    let start = Happening { member, input, act, landed: None, purse, begins: None };
                    self.happen(hand, parts, start, out);
                }
            }
        }
        if self.terms.pace.is_some() {
            self.add_wait(hand, parts, out);
        }
        let is_stranded = |&local: &u32| hand.locals[local as usize].stranded;
        out.set_stranded(parts.locals.iter().any(is_stranded));
    }
}
