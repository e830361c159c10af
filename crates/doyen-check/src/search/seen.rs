//! The states that a search has seen: their fingerprints, and the state from which each was reached first.
//!
//! One open table for all threads, and no lock. A fingerprint lies at the place that its upper bits name, its home, or at
//! the first place after it that was free when it came; a lookup goes from its home to the next empty place. A thread adds
//! one by exchanging the zero of an empty place for it: of two that bring the same state at the same time one succeeds, and
//! the other learns that the state is known.
//!
//! While threads are at work nothing moves. A thread adds states within a [`Quota`], so that the table is never full; when
//! a quota is refused the threads end, [`Seen::grow`] makes the table twice as large, and they start again.
//!
//! # Memory orderings
//!
//! All are relaxed. Threads at work read fingerprints, depths and numbers of each other. Each is a word that is written
//! once, and none of them says that another has been written: a depth or a number that is still zero is waited for.
//! Everything else is read when the threads have ended, and their end comes before whatever is done after it.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, AtomicUsize};

/// How many places there are in the beginning: a power of two.
const FIRST_CAPACITY: usize = 1024;
/// The states that a thread gets in one quota: smaller quotas would make all threads write to the same word.
const BATCH: usize = 256;

/// The table of states.
#[derive(Debug)]
pub(crate) struct Seen {
    /// Zero is no fingerprint, but an empty place; the table's length is a power of two.
    prints: Vec<AtomicU64>,
    /// The fingerprints of the states before.
    origins: Vec<AtomicU64>,
    /// One more than how far from the start, as far as sixteen bits go; empty if that is not kept.
    depths: Vec<AtomicU16>,
    /// One more than the number; empty if states are not numbered.
    numbers: Vec<AtomicU32>,
    /// The states that are in no quota yet. A quarter of all places stays empty, so that lookups are short.
    room: AtomicUsize,
    keeps: Keeps,
}

/// What is stored of a state besides its fingerprint and its origin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Keeps {
    pub(crate) numbers: bool,
    pub(crate) depths: bool,
}

/// The origin of a state, and its distance from the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Origin {
    /// The fingerprint of the state before; its own at the start.
    pub(crate) from: u64,
    /// In steps, as far as sixteen bits go.
    pub(crate) depth: u16,
}

/// The result of [`Seen::insert`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Inserted {
    New,
    /// It has been seen before.
    Known {
        /// Its number; zero if states are not numbered.
        number: u32,
        /// How far from the start it is; zero if that is not kept.
        depth: u16,
    },
}

/// The number of states that a thread may add.
#[derive(PartialEq, Eq, Debug, Default)]
pub(crate) struct Quota(usize);

/// The contents of one place.
struct Entry {
    print: u64,
    origin: u64,
    depth: u16,
    number: u32,
}

impl Seen {
    pub(crate) fn new(keeps: Keeps) -> Self {
        let mut seen = Self {
            prints: Vec::new(),
            origins: Vec::new(),
            depths: Vec::new(),
            numbers: Vec::new(),
            room: AtomicUsize::new(most_of(FIRST_CAPACITY)),
            keeps,
        };
        seen.lengthen(FIRST_CAPACITY);
        seen
    }

    /// Extends `quota` to at least `wanted` states; returns whether the table has room for them.
    #[inline]
    pub(crate) fn extend(&self, quota: &mut Quota, wanted: usize) -> bool {
        if quota.0 < wanted {
            let lacking = wanted - quota.0;
            let granted = |room: usize| room.min(lacking.max(BATCH));
            let rest = |room: usize| (room >= lacking).then(|| room - granted(room));
            let Ok(room) = self.room.fetch_update(Relaxed, Relaxed, rest) else { return false };
            quota.0 += granted(room);
        }
        true
    }

    /// Reads the home of a state that is to be inserted. To insert several states, read the homes of all before the first
    /// insertion: then the memory accesses do not wait for each other.
    #[inline]
    pub(crate) fn read_ahead(&self, print: u64) {
        std::hint::black_box(self.prints[self.home(nonzero(print))].load(Relaxed));
    }

    /// Inserts a state. If it is new, `number` gives it a number and `quota` shrinks by one.
    #[inline]
    pub(crate) fn insert(
        &self,
        print: u64,
        origin: Origin,
        quota: &mut Quota,
        number: impl FnOnce() -> u32,
    ) -> Inserted {
        assert!(quota.0 > 0, "a thread adds states within its quota");
        let print = nonzero(print);
        let mut place = self.home(print);
        loop {
            let there = match self.prints[place].load(Relaxed) {
                0 => match self.prints[place].compare_exchange(0, print, Relaxed, Relaxed) {
                    Ok(_) => break,
                    Err(quicker) => quicker,
                },
                there => there,
            };
            if there == print {
                return self.known(place);
            }
            place = self.after(place);
        }
        quota.0 -= 1;
        self.origins[place].store(origin.from, Relaxed);
        if self.keeps.depths {
            self.depths[place].store(origin.depth.saturating_add(1), Relaxed);
        }
        if self.keeps.numbers {
            self.numbers[place].store(number() + 1, Relaxed);
        }
        Inserted::New
    }

    /// What is known of the state at a place.
    fn known(&self, place: usize) -> Inserted {
        let number = |number: &AtomicU32| once_written(|| number.load(Relaxed)) - 1;
        let depth = |depth: &AtomicU16| once_written(|| depth.load(Relaxed)) - 1;
        Inserted::Known {
            number: self.numbers.get(place).map_or(0, number),
            depth: self.depths.get(place).map_or(0, depth),
        }
    }

    /// Where a fingerprint lies if nothing else lies there. In a table of twice the length it is about twice as far.
    #[inline]
    fn home(&self, print: u64) -> usize {
        (print >> (u64::BITS - self.prints.len().trailing_zeros())) as usize
    }

    #[inline]
    fn after(&self, place: usize) -> usize {
        (place + 1) & (self.prints.len() - 1)
    }

    /// Where `print` lies, or else the empty place where it would.
    fn place_of(&self, print: u64) -> usize {
        let mut place = self.home(print);
        while ![0, print].contains(&self.prints[place].load(Relaxed)) {
            place = self.after(place);
        }
        place
    }

    /// Where a state lies.
    fn find(&self, print: u64) -> Option<usize> {
        let place = self.place_of(nonzero(print));
        (self.prints[place].load(Relaxed) != 0).then_some(place)
    }

    /// From where a state was reached first; from itself, if it is the start.
    fn origin(&self, print: u64) -> Option<u64> {
        self.find(print).map(|place| nonzero(self.origins[place].load(Relaxed)))
    }

    /// The fingerprints from the start to a state.
    pub(crate) fn path_to(&self, print: u64) -> Vec<u64> {
        let mut path = vec![nonzero(print)];
        while let Some(origin) = self.origin(path[path.len() - 1]) {
            if origin == path[path.len() - 1] {
                break;
            }
            path.push(origin);
        }
        path.reverse();
        path
    }

    /// The fingerprints of the states with these numbers, in their order.
    pub(crate) fn prints_of(&self, numbers: &[u32]) -> Vec<u64> {
        let mut found = vec![0; numbers.len()];
        for (print, number) in self.prints.iter().zip(&self.numbers) {
            let Some(number) = number.load(Relaxed).checked_sub(1) else { continue };
            for (place, _) in numbers.iter().enumerate().filter(|&(_, &it)| it == number) {
                found[place] = print.load(Relaxed);
            }
        }
        found
    }

    /// The number of a state.
    pub(crate) fn number(&self, print: u64) -> Option<u32> {
        self.numbers.get(self.find(print)?)?.load(Relaxed).checked_sub(1)
    }

    /// How many bytes it takes.
    pub(crate) fn bytes(&self) -> u64 {
        let Keeps { numbers, depths } = self.keeps;
        let slot = 8 + 8 + if numbers { 4 } else { 0 } + if depths { 2 } else { 0 };
        (self.prints.len() * slot) as u64
    }

    /// Makes the table twice as large, where it lies: a second one beside it would take half as much memory again.
    /// Every quota is void after that.
    ///
    /// From the last place to the first, each fingerprint moves to about twice its place, where all that came before it
    /// has gone on already. A few near the beginning would land among those that have yet to move, and be lost when
    /// these leave a gap between them and their homes: they wait until all others have moved.
    pub(crate) fn grow<'l>(&mut self, quotas: impl Iterator<Item = &'l mut Quota>) {
        quotas.for_each(|quota| *quota = Quota::default());
        let before = self.prints.len();
        self.lengthen(2 * before);
        let mut waiting = Vec::new();
        let mut count = 0;
        for place in (0..before).rev() {
            let Some(entry) = self.take(place) else { continue };
            count += 1;
            let (home, target) = (self.home(entry.print), self.place_of(entry.print));
            if place <= home && home <= target {
                self.put(target, &entry);
            } else {
                waiting.push(entry);
            }
        }
        for entry in waiting {
            self.put(self.place_of(entry.print), &entry);
        }
        *self.room.get_mut() = most_of(2 * before) - count;
    }

    fn lengthen(&mut self, capacity: usize) {
        self.prints.resize_with(capacity, AtomicU64::default);
        self.origins.resize_with(capacity, AtomicU64::default);
        if self.keeps.depths {
            self.depths.resize_with(capacity, AtomicU16::default);
        }
        if self.keeps.numbers {
            self.numbers.resize_with(capacity, AtomicU32::default);
        }
    }

    /// Empties a place.
    fn take(&mut self, place: usize) -> Option<Entry> {
        let print = std::mem::take(self.prints[place].get_mut());
        (print != 0).then(|| Entry {
            print,
            origin: std::mem::take(self.origins[place].get_mut()),
            depth: self.depths.get_mut(place).map_or(0, |it| std::mem::take(it.get_mut())),
            number: self.numbers.get_mut(place).map_or(0, |it| std::mem::take(it.get_mut())),
        })
    }

    fn put(&mut self, place: usize, entry: &Entry) {
        *self.prints[place].get_mut() = entry.print;
        *self.origins[place].get_mut() = entry.origin;
        if let Some(depth) = self.depths.get_mut(place) {
            *depth.get_mut() = entry.depth;
        }
        if let Some(number) = self.numbers.get_mut(place) {
            *number.get_mut() = entry.number;
        }
    }
}

/// Zero marks an empty place.
fn nonzero(print: u64) -> u64 {
    print.max(1)
}

/// The number of states that fit into a capacity.
fn most_of(capacity: usize) -> usize {
    capacity / 4 * 3
}

/// What `read` finds when it is no longer zero: the thread that has taken the place is about to write it.
#[inline]
fn once_written<T: PartialEq + Default>(read: impl Fn() -> T) -> T {
    loop {
        let value = read();
        if value != T::default() {
            return value;
        }
        std::thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::mix;

    const ALL: Keeps = Keeps { numbers: true, depths: true };

    /// Adds a state as a search does on one thread; it gets this number if it is new.
    fn add(
        seen: &mut Seen,
        quota: &mut Quota,
        print: u64,
        origin: Origin,
        number: u32,
    ) -> Inserted {
        while !seen.extend(quota, 1) {
            seen.grow(std::iter::once(&mut *quota));
        }
        seen.insert(print, origin, quota, || number)
    }

    #[test]
    fn a_state_is_new_once_and_keeps_the_first_way_to_it() {
        let (mut seen, mut quota) = (Seen::new(ALL), Quota::default());
        let prints = || (0..10_000_u32).map(|number| (number, mix(u64::from(number), 77)));
        for (number, print) in prints() {
            let (first, later) = (Origin { from: 9, depth: 4 }, Origin { from: 3, depth: 5 });
            assert_eq!(add(&mut seen, &mut quota, print, first, number), Inserted::New);
            let known = Inserted::Known { number, depth: 4 };
            assert_eq!(add(&mut seen, &mut quota, print, later, 0), known);
        }
        for (number, print) in prints() {
            assert_eq!((seen.origin(print), seen.number(print)), (Some(9), Some(number)));
        }
        assert_eq!(seen.prints_of(&[77, 9_999, 0]), [77, 9_999, 0].map(|number| mix(number, 77)));
        assert_eq!(seen.origin(12), None);
        assert!(seen.bytes() >= 10_000 * 22);
    }

    #[test]
    fn a_table_that_grows_loses_nothing_wherever_it_is_crowded() {
        // At the first home, where many must wait; at the last, from where they go on at the beginning; and anywhere.
        for crowd in [0, u64::MAX << 32, 1 << 63] {
            let (mut seen, mut quota) = (Seen::new(ALL), Quota::default());
            let print = |number: u32| match number % 8 {
                0 => mix(u64::from(number), 99),
                _ => crowd + u64::from(number),
            };
            for number in 1..3000 {
                let origin = Origin { from: u64::from(number), depth: number as u16 };
                assert_eq!(
                    add(&mut seen, &mut quota, print(number), origin, number),
                    Inserted::New
                );
            }
            for number in 1..3000 {
                let known = Inserted::Known { number, depth: number as u16 };
                let origin = Origin { from: 0, depth: 0 };
                assert_eq!(add(&mut seen, &mut quota, print(number), origin, 0), known);
                assert_eq!(seen.origin(print(number)), Some(u64::from(number)));
            }
        }
    }

    #[test]
    fn quotas_fill_no_more_than_three_quarters_of_the_table() {
        let (mut seen, mut quotas) = (Seen::new(Keeps::default()), [Quota(0), Quota(0)]);
        assert!(seen.extend(&mut quotas[0], 500) && seen.extend(&mut quotas[1], 12));
        assert_eq!(quotas, [Quota(500), Quota(256)]);
        assert!(!seen.extend(&mut quotas[0], 513), "768 places, of which 756 are promised");
        assert!(seen.extend(&mut quotas[0], 512));
        seen.insert(5, Origin { from: 5, depth: 0 }, &mut quotas[0], || 0);
        seen.grow(quotas.iter_mut());
        assert_eq!(quotas, [Quota(0), Quota(0)]);
        assert!(seen.extend(&mut quotas[0], 1535) && !seen.extend(&mut quotas[1], 1));
    }

    #[test]
    fn threads_agree_on_who_was_first() {
        let seen = Seen::new(ALL);
        let numbered = AtomicU32::new(0);
        let add_all = |from: u64| {
            let mut quota = Quota::default();
            let origin = Origin { from, depth: 7 };
            let insert = |print: u64| {
                assert!(seen.extend(&mut quota, 1));
                seen.insert(mix(print, 5), origin, &mut quota, || numbered.fetch_add(1, Relaxed))
            };
            (1..=250).map(insert).collect::<Vec<Inserted>>()
        };
        let (one, other) = std::thread::scope(|scope| {
            let other = scope.spawn(|| add_all(2));
            (add_all(1), other.join().expect("it ends well"))
        });
        for (print, pair) in (1..=250).zip(one.iter().zip(&other)) {
            let (first, number) = match pair {
                (Inserted::New, &Inserted::Known { number, depth: 7 }) => (1, number),
                (&Inserted::Known { number, depth: 7 }, Inserted::New) => (2, number),
                neither => panic!("one was first: {neither:?}"),
            };
            let print = mix(print, 5);
            assert_eq!((seen.origin(print), seen.number(print)), (Some(first), Some(number)));
        }
        assert_eq!(numbered.into_inner(), 250);
    }

    #[test]
    fn a_path_leads_back_to_the_start() {
        let (mut seen, mut quota) = (Seen::new(Keeps::default()), Quota::default());
        for depth in 0..5_u16 {
            let from = u64::from(depth.max(1)) * 100;
            add(&mut seen, &mut quota, u64::from(depth + 1) * 100, Origin { from, depth }, 0);
        }
        assert_eq!(seen.path_to(500), [100, 200, 300, 400, 500]);
    }
}
