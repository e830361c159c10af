//! The fingerprint of a state: of its canonical form, if canonical forms count.
//!
//! It is a sum of the fingerprints of the parts, each mixed with its place, so that it is cheap: each part has its own
//! from the beginning. See `model/symmetry.rs` for members that are interchangeable.

use doyen_core::explore::{Explore, Serial};

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
        let history = worker.histories[rest[HEAD - 1] as usize].print;
        let mut print = mix(history ^ BudgetLeft::read(rest).bits(), at_place(63));
        let unsettled = self.unsettled(worker, state);
        for (slot, &local) in locals.iter().enumerate() {
            let facts = &worker.locals[local as usize];
            let own = if unsettled >> slot & 1 == 1 { facts.print } else { facts.settled_print };
            let own = mix(own, at_place(facts.place));
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
        let locals = state[..self.context.members.len()].iter().enumerate();
        let print = |(slot, &local): (usize, &u32)| {
            mix(worker.locals[local as usize].view_print, at_place(slot))
        };
        locals.map(print).fold(0, u64::wrapping_add)
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
        let detection = self.context.detection();
        let (locals, rest) = state.split_at(self.slots);
        let facts = |&local: &u32| &worker.locals[local as usize];
        let are_settled = || locals.iter().all(|local| facts(local).settled >= detection);
        if !self.reductions.settled || are_settled() {
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
