//! The fingerprint of a state: of its canonical form, if canonical forms count.
//!
//! It is a sum of the fingerprints of the parts, each mixed with its place, so that it is cheap: each part has its own
//! from the beginning, and after a step the sum changes by the shares of the parts that the step changes. See
//! `model/symmetry.rs` for members that are interchangeable.

use doyen_core::explore::{Explore, Serial};

use super::successors::{Change, Parts};
use super::worker::FlightFacts;
use super::{HEAD, Model, Worker};
use crate::budget::{BudgetLeft, Item};
use crate::fingerprint::mix;

/// Distinguishes a serial number that is over from one that is counted from the first live one.
const PAST: u64 = 1 << 62;

/// Makes the place of a part count.
#[inline]
pub(super) fn at_place(place: usize) -> u64 {
    (place as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Distinguishes a process in a further slot from one in its member's. Further slots are interchangeable.
#[inline]
fn further(own: u64) -> u64 {
    mix(own, at_place(62))
}

/// The share of a message in the fingerprint of a state.
#[inline]
fn print_of_flight(own: u64, serial: Option<u64>, place: u64) -> u64 {
    mix(serial.map_or(own, |serial| mix(own, 2 * serial)), place)
}

impl<P: Explore> Model<'_, P> {
    #[inline]
    pub(super) fn canonical_fingerprint(&self, worker: &mut Worker<P>, state: &[u32]) -> u64 {
        let (locals, rest) = state.split_at(self.slots);
        let mut print = self.share_of_head(worker, BudgetLeft::read(rest), rest[HEAD - 1]);
        let unsettled = self.unsettled(worker, state);
        for (slot, &local) in locals.iter().enumerate() {
            let facts = &worker.locals[local as usize];
            let own = if unsettled >> slot & 1 == 1 { facts.share } else { facts.settled_share };
            print = print.wrapping_add(if self.is_further(slot) { further(own) } else { own });
        }
        self.each_flight(worker, state, |facts, serial, place| {
            print = print.wrapping_add(print_of_flight(facts.print, serial, place));
        });
        match self.symmetry.renamings().is_empty() {
            true => print,
            false => mix(print, at_place(0)).wrapping_add(self.print_renamed(worker, state)),
        }
    }

    /// The share of what is left of the budget and of the past in the fingerprint of a state.
    #[inline]
    fn share_of_head(&self, worker: &Worker<P>, budget_left: BudgetLeft, history: u32) -> u64 {
        mix(worker.histories[history as usize].print ^ budget_left.bits(), at_place(63))
    }

    /// Whether the share of a part in fingerprints is the same whatever the other parts are, so that a step changes the
    /// shares of the parts that it changes and no others. In a canonical form a share depends on other parts; a lasting
    /// message that is sent again has none; and with further processes a step may change two slots.
    #[inline]
    pub(super) fn has_fixed_shares(&self) -> bool {
        !self.reductions.settled && !self.lasting && self.slots == self.context.members.len()
    }

    /// The fingerprint of the state that a change makes of one with fingerprint `print`. Shares are fixed, and no message
    /// vanishes but the one that has landed.
    #[inline]
    pub(super) fn fingerprint_after(
        &self,
        worker: &Worker<P>,
        parts: &Parts<'_>,
        change: &Change,
        mut print: u64,
    ) -> u64 {
        let mut replace = |old: u64, new: u64| print = print.wrapping_sub(old).wrapping_add(new);
        let share = |local: u32| worker.locals[local as usize].share;
        replace(share(parts.locals[change.slot]), share(change.local));
        if (change.budget_left, change.history) != (parts.budget_left, parts.history) {
            replace(
                self.share_of_head(worker, parts.budget_left, parts.history),
                self.share_of_head(worker, change.budget_left, change.history),
            );
        }
        let facts = |flight: u32| &worker.flights[flight as usize];
        let share = |flight: u32, ahead: usize| {
            print_of_flight(facts(flight).print, None, at_place(64 + ahead))
        };
        let channel_of = |flight: u32| facts(flight).channel;
        let fifo = self.rules.fifo;
        let landed_on = change.landed.map(|landed| channel_of(parts.flights[landed]));
        if let (Some(landed), Some(channel)) = (change.landed, landed_on) {
            replace(share(parts.flights[landed], 0), 0);
            // With FIFO links it was the first of its link, and those behind it move up.
            let behind = parts.flights[landed + 1..].iter();
            let behind = behind.take_while(|&&flight| fifo && channel_of(flight) == channel);
            for (ahead, &flight) in behind.enumerate() {
                replace(share(flight, ahead + 1), share(flight, ahead));
            }
        }
        let sends = worker.sends_of(change);
        for (place, &flight) in
            sends.iter().enumerate().filter(|&(_, &it)| change.matters(facts(it)))
        {
            let channel = channel_of(flight);
            let waiting = || {
                let end = parts.flights.partition_point(|&other| channel_of(other) <= channel);
                let from_last = parts.flights[..end].iter().rev();
                from_last.take_while(|&&other| channel_of(other) == channel).count()
            };
            let sent =
                || sends[..place].iter().filter(|&&other| channel_of(other) == channel).count();
            let ahead = match fifo {
                true => waiting() + sent() - usize::from(landed_on == Some(channel)),
                false => 0,
            };
            replace(0, share(flight, ahead));
        }
        print
    }

    /// One fingerprint of all renamings of a state but the identity.
    fn print_renamed(&self, worker: &mut Worker<P>, state: &[u32]) -> u64 {
        let (locals, rest) = state.split_at(self.slots);
        let mut sums = std::mem::take(&mut worker.sums);
        sums.clear();
        let histories = worker.histories[rest[HEAD - 1] as usize].renamed.iter();
        let budget_left = BudgetLeft::read(rest).bits();
        sums.extend(histories.map(|&own| mix(own ^ budget_left, at_place(63))));
        for (slot, &local) in locals.iter().enumerate() {
            let is_further = self.is_further(slot);
            for (sum, &own) in sums.iter_mut().zip(&worker.locals[local as usize].renamed) {
                *sum = sum.wrapping_add(if is_further { further(own) } else { own });
            }
        }
        self.each_flight(worker, state, |facts, serial, place| {
            for (sum, &own) in sums.iter_mut().zip(&facts.renamed) {
                *sum = sum.wrapping_add(print_of_flight(own, serial, place));
            }
        });
        let print = sums.iter().map(|&sum| mix(sum, at_place(0))).fold(0, u64::wrapping_add);
        worker.sums = sums;
        print
    }

    /// The fingerprint of the views of all members.
    #[inline]
    pub(super) fn fingerprint_of_views(&self, worker: &Worker<P>, state: &[u32]) -> u64 {
        let locals = state[..self.context.members.len()].iter();
        locals.map(|&local| worker.locals[local as usize].view_share).fold(0, u64::wrapping_add)
    }

    /// Calls `then` for each message in flight, with its canonical serial number, if it has one, and its place.
    #[inline]
    fn each_flight(
        &self,
        worker: &Worker<P>,
        state: &[u32],
        mut then: impl FnMut(&FlightFacts<P::Message>, Option<u64>, u64),
    ) {
        let (mut before, mut place) = (u16::MAX, 0);
        for &flight in &state[self.slots + HEAD..] {
            let facts = &worker.flights[flight as usize];
            place = if self.rules.fifo && before == facts.channel { place + 1 } else { 0 };
            before = facts.channel;
            // Without canonical forms no message has a serial number.
            let serial = match self.reductions.canonical {
                true => facts.serial.map(|_| self.canonical_serial(worker, state, flight)),
                false => None,
            };
            then(facts, serial, at_place(64 + place));
        }
    }

    /// The serial number of a message, counted from the first that its giver distinguishes; zero if it makes no
    /// difference. A message back to the giver makes none if it is [obsolete](Self::is_obsolete).
    pub(super) fn canonical_serial(&self, worker: &Worker<P>, state: &[u32], flight: u32) -> u64 {
        let (locals, rest) = state.split_at(self.slots);
        let facts = &worker.flights[flight as usize];
        let Some((serial, giver)) = facts.serial else { return 0 };
        let first = worker.locals[locals[giver] as usize].first_serial;
        let is_live =
            |first: &Serial| first.series == serial.series && first.number <= serial.number;
        let matters = || {
            let returns = giver == facts.to();
            self.trust.lacks_serials()
                || BudgetLeft::read(rest).left(Item::Rejoin) > 0
                || returns && !self.is_obsolete(worker, locals[giver], flight)
        };
        match first.filter(is_live) {
            Some(first) => serial.number - first.number + 1,
            None if matters() => PAST | serial.number,
            None => 0,
        }
    }

    /// The slots of which it matters how long ago they crashed, started or received a false report, a bit each: those of
    /// which a detector has a wrong report, those that have one, and those to which a message from a dead member may give
    /// one.
    fn unsettled(&self, worker: &Worker<P>, state: &[u32]) -> u64 {
        if !self.reductions.settled {
            return u64::MAX;
        }
        let detection = self.context.detection();
        let (locals, rest) = state.split_at(self.slots);
        let facts = |&local: &u32| &worker.locals[local as usize];
        if locals.iter().all(|local| facts(local).settled >= detection) {
            return u64::MAX;
        }
        let up = locals.iter().enumerate();
        let up = up.fold(0, |up, (slot, local)| up | u64::from(facts(local).up) << slot);
        let mut unsettled = 0;
        for (slot, facts) in locals.iter().map(facts).enumerate().filter(|(_, facts)| facts.up) {
            let others = ((1 << locals.len()) - 1) & !(1 << slot);
            let wrong = !(facts.reported ^ up) & others;
            unsettled |= wrong | u64::from(wrong != 0) << slot;
        }
        for facts in rest[HEAD..].iter().map(|&flight| &worker.flights[flight as usize]) {
            if up >> facts.from() & 1 == 0 {
                unsettled |= 1 << facts.from() | 1 << facts.to();
            }
        }
        unsettled
    }
}
