//! The pending events of a run, in the order they happen.
//!
//! # What it is
//!
//! A timing wheel over a slab. Every pending event sits in one *slot* of the
//! slab and stays there until it is popped; nothing moves the item in between.
//! The near future is cut into a power of two of equally wide *buckets*, a
//! bucket is a linked list threaded through the slots, and a three-level
//! bitmap tells which buckets are not empty. Popping opens the next few
//! non-empty buckets at once, sorts each (there is about one event in it) into
//! the *batch* and hands out the batch one by one. The first bucket not opened
//! yet is the *frontier*. So an event pushed is in one of three places:
//!
//! * before the frontier: in the small heap `late`, merged with the batch as it
//!   is handed out. These are the zero-delay timers and very short delays;
//! * in the wheel, which reaches one revolution beyond the frontier. This is
//!   the common case;
//! * beyond the wheel: in the heap `far`, and moved into the wheel when the
//!   frontier has advanced enough.
//!
//! # Why not a heap
//!
//! A heap of n events compares and moves log n entries per operation, with
//! branches that cannot be predicted and, for a million events, a chain of
//! cache misses each waiting for the one before. Here a push writes the slot
//! freed last (still in the cache), one list head and one bit, and waits for
//! none of them; a pop reads the next entry of the batch. Opening several
//! buckets at once lets the processor fetch their slots in parallel, which is
//! the one miss per event that remains.
//!
//! # Order
//!
//! Strictly by time, then rank, then insertion. Slots carry no sequence number,
//! since their lists are in order of insertion (newest first) and the sort is
//! stable. That holds because an event from `far` enters its bucket at the very
//! moment the bucket comes into the wheel's reach, before any push can go there
//! directly, and because what is in the batch was always pushed before what is
//! in `late`. Only the two heaps, which are not stable, number their entries.
//!
//! # Hints
//!
//! The hints given to [`Queue::new`] size the wheel and the batches. The number
//! of buckets then follows the number of events really pending, by factors, so
//! that an election that begins with a million messages in flight and ends with
//! one is quick at both ends. Delays far beyond the hinted range work, at the
//! price of a heap.

mod bitmap;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::hint::black_box;
use std::mem;
use std::ops::RangeInclusive;

use bitmap::Bitmap;

/// The slot number that stands for "no slot". Slot 0 is never used, so that
/// list heads can start as zeroed memory, which costs nothing until touched.
const NONE: u32 = 0;

/// The smallest wheel: one word of the bitmap.
const MIN_BUCKETS: u64 = 64;

/// The largest wheel: its list heads take 8 MiB.
const MAX_BUCKETS: u64 = 1 << 21;

/// How many bytes of slots are reserved up front at most, however large the
/// hint; the slab grows beyond as needed.
const MAX_RESERVED: usize = 64 << 20;

/// How many events are batched at most, unless one bucket alone holds more.
/// Beyond the number of cache misses a core can have in flight it gains nothing.
const MAX_BATCH: usize = 32;

/// A slab of so few slots is in the cache anyhow.
const CACHED: usize = 1 << 12;

/// A place of the slab. The enum's tag shares its word with the rank and the
/// link, so that a slot is 16 bytes more than an item aligned to 8.
enum Slot<T> {
    /// Free; `next` is the next free slot.
    Vacant { next: u32 },
    /// Taken; `next` is the slot pushed before into the same bucket.
    Held { time: u64, next: u32, rank: u8, item: T },
}

/// An event of the batch.
#[derive(Clone, Copy)]
struct Due {
    time: u64,
    slot: u32,
    rank: u8,
}

impl Due {
    fn key(&self) -> (u64, u8) {
        (self.time, self.rank)
    }
}

/// An event of one of the heaps. Declared in order of comparison.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Parked {
    time: u64,
    /// The rank in the upper 8 bits, the number of the entry below.
    order: u64,
    slot: u32,
}

impl Parked {
    fn rank(&self) -> u8 {
        (self.order >> 56) as u8
    }
}

/// Events pending at virtual times, popped in the order of time, rank and
/// insertion. See the module's head for how.
pub struct Queue<T> {
    slots: Vec<Slot<T>>,
    /// The free slot to use next; the one freed last.
    vacant: u32,
    len: usize,
    /// Time of the last pop.
    now: u64,
    /// The hints, kept for resizing the wheel and for the size of batches.
    nearest: u64,
    spread: u64,
    /// The newest slot of each bucket.
    heads: Vec<u32>,
    /// Which buckets are not empty.
    filled: Bitmap,
    /// Log2 of the width of a bucket in ns; at least 1, so that no bucket
    /// number, nor one more, overflows.
    shift: u32,
    /// The number of buckets less one.
    mask: u64,
    /// The first bucket not opened yet, counted from time 0. The wheel holds
    /// the buckets `frontier..=frontier + mask`.
    frontier: u64,
    /// What was opened, sorted; the first `taken` are popped already.
    batch: Vec<Due>,
    taken: usize,
    /// Pushed before the frontier.
    late: BinaryHeap<Reverse<Parked>>,
    /// Pushed beyond the wheel.
    far: BinaryHeap<Reverse<Parked>>,
    /// How many entries the heaps were ever given.
    parked: u64,
}

impl<T> Queue<T> {
    /// An empty queue at time 0.
    ///
    /// `delays` are the typical shortest and longest delay in ns, `population`
    /// is the typical number of pending events. They are hints for speed only: any values
    /// work, and the cost of a call is in proportion to `population` only up to
    /// a cap.
    #[must_use]
    pub fn new(delays: RangeInclusive<u64>, population: usize) -> Self {
        let (nearest, spread) = delays.into_inner();
        let (buckets, shift) = wheel_for(spread, population);
        let most = MAX_RESERVED / size_of::<Slot<T>>();
        let mut slots = Vec::with_capacity(population.min(most) + 1);
        slots.push(Slot::Vacant { next: NONE });
        Self {
            slots,
            vacant: NONE,
            len: 0,
            now: 0,
            nearest,
            spread,
            heads: vec![NONE; buckets as usize],
            filled: Bitmap::new(buckets as usize),
            shift,
            mask: buckets - 1,
            frontier: 0,
            batch: Vec::new(),
            taken: 0,
            late: BinaryHeap::new(),
            far: BinaryHeap::new(),
            parked: 0,
        }
    }

    /// Adds an event at the absolute virtual time `at` in ns, which must not be
    /// before the time of the last pop.
    ///
    /// Among events of the same time those of lower `rank` come first, among
    /// those of the same rank the one pushed first. This holds for pushes at
    /// the time of the last pop too.
    ///
    /// # Panics
    ///
    /// If 2^32 - 1 events are pending; with debug assertions, if `at` is in the
    /// past. Without them such an event happens at the time of the last pop.
    #[inline(always)]
    pub fn push(&mut self, at: u64, rank: u8, item: T) {
        debug_assert!(at >= self.now, "pushed at {at}, before {}", self.now);
        let at = at.max(self.now);
        self.len += 1;
        let bucket = at >> self.shift;
        // One comparison for both ends: before the frontier this wraps.
        if bucket.wrapping_sub(self.frontier) > self.mask {
            self.push_outside(at, rank, item);
            return;
        }
        let place = (bucket & self.mask) as usize;
        let slot = self.hold(at, rank, self.heads[place], item);
        self.heads[place] = slot;
        self.filled.set(place);
    }

    /// Takes the next event and its time.
    pub fn pop(&mut self) -> Option<(u64, T)> {
        self.pop_ahead(|_| {})
    }

    /// Takes the next event and its time. Whenever a batch has been opened,
    /// `ahead` is called before its first event is taken: time to fetch what
    /// the events of the batch will need, all of it at once.
    #[inline(always)]
    pub fn pop_ahead(&mut self, ahead: impl FnOnce(&Self)) -> Option<(u64, T)> {
        let slot = if self.late.is_empty() {
            if self.taken == self.batch.len() && !self.refill(ahead) {
                return None;
            }
            let due = self.batch.get(self.taken)?;
            self.taken += 1;
            due.slot
        } else {
            self.take_with_late()
        };
        Some(self.release(slot))
    }

    /// The events of the batch, for [`pop_ahead`](Self::pop_ahead).
    pub fn opened(&self) -> impl Iterator<Item = &T> {
        let slots = self.batch[self.taken..].iter().map(|due| &self.slots[due.slot as usize]);
        slots.filter_map(|slot| match slot {
            Slot::Held { item, .. } => Some(item),
            Slot::Vacant { .. } => None,
        })
    }

    /// How many events are pending.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no event is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Pushes what falls before or beyond the wheel.
    #[inline(never)]
    fn push_outside(&mut self, at: u64, rank: u8, item: T) {
        let slot = self.hold(at, rank, NONE, item);
        let parked = self.number(at, rank, slot);
        if at >> self.shift < self.frontier {
            self.late.push(Reverse(parked));
        } else {
            self.far.push(Reverse(parked));
        }
    }

    fn number(&mut self, time: u64, rank: u8, slot: u32) -> Parked {
        let order = u64::from(rank) << 56 | self.parked;
        self.parked += 1;
        Parked { time, order, slot }
    }

    /// Puts an event into a free slot. Always inlined, and given the parts
    /// rather than a slot, so that the item is written once, in place.
    #[inline(always)]
    fn hold(&mut self, time: u64, rank: u8, next: u32, item: T) -> u32 {
        let slot = self.vacant;
        if slot == NONE {
            let slot = u32::try_from(self.slots.len()).expect("fewer than 2^32 events pending");
            self.slots.push(Slot::Held { time, next, rank, item });
            return slot;
        }
        let held = Slot::Held { time, next, rank, item };
        let Slot::Vacant { next } = mem::replace(&mut self.slots[slot as usize], held) else {
            unreachable!("a free slot is vacant")
        };
        self.vacant = next;
        slot
    }

    /// Frees the slot of the event popped.
    #[inline]
    fn release(&mut self, slot: u32) -> (u64, T) {
        let vacant = Slot::Vacant { next: self.vacant };
        let Slot::Held { time, item, .. } = mem::replace(&mut self.slots[slot as usize], vacant)
        else {
            unreachable!("a pending event is in a held slot")
        };
        self.vacant = slot;
        self.len -= 1;
        self.now = time;
        (time, item)
    }

    /// The next slot when `late` is not empty. At equal time and rank the batch
    /// comes first: it was pushed before its buckets were opened.
    fn take_with_late(&mut self) -> u32 {
        let late = self.late.peek().expect("called with a late event").0;
        if let Some(due) = self.batch.get(self.taken)
            && due.key() <= (late.time, late.rank())
        {
            self.taken += 1;
            return due.slot;
        }
        self.late.pop();
        late.slot
    }

    /// Opens the next buckets; the batch is used up and nothing is late.
    /// Returns whether there was anything.
    #[inline(never)]
    fn refill(&mut self, ahead: impl FnOnce(&Self)) -> bool {
        self.batch.clear();
        self.taken = 0;
        self.fit_wheel();
        let Some(first) = self.first_filled().or_else(|| self.leap()) else {
            return false;
        };
        let place = (first & self.mask) as usize;
        let last = self.open_from(place);
        self.frontier = first + (last - place) as u64 + 1;
        self.draw_in();
        ahead(self);
        true
    }

    /// Opens the filled buckets from `place` to the end of its bitmap word, as
    /// far as a batch may reach, or until it is large enough. Returns the last
    /// one opened.
    fn open_from(&mut self, place: usize) -> usize {
        let within_reach = u64::MAX >> (64 - self.reach());
        let word = self.filled.word_from(place) & within_reach;
        if self.slots.len() > CACHED {
            self.prefetch(place, word);
        }
        let mut rest = word;
        let mut last = place;
        while rest != 0 && self.batch.len() < MAX_BATCH {
            last = place + rest.trailing_zeros() as usize;
            rest &= rest - 1;
            self.open(last);
        }
        self.filled.clear(place, word ^ rest);
        last
    }

    /// How many buckets a batch may span, from 1 to 64. Pushes that fall into
    /// it are late, so it spans no more than the shortest delay or, if that is
    /// next to nothing, a small part of the wheel.
    #[inline]
    fn reach(&self) -> u64 {
        ((self.mask + 1) / 64).max(self.nearest >> self.shift).min(64)
    }

    /// Reads the first slot of the buckets to be opened. Walking the lists right
    /// away would wait for each slot to learn where its list ends; here no read
    /// depends on another, so the cache misses overlap.
    #[inline]
    fn prefetch(&self, place: usize, word: u64) {
        let mut rest = word;
        let mut seen = 0;
        for _ in 0..MAX_BATCH.min(word.count_ones() as usize) {
            let head = self.heads[place + rest.trailing_zeros() as usize];
            rest &= rest - 1;
            if let Slot::Held { time, .. } = &self.slots[head as usize] {
                seen ^= time;
            }
        }
        // Keeps the reads from being optimised away.
        black_box(seen);
    }

    /// Moves one bucket to the end of the batch, sorted.
    #[inline]
    fn open(&mut self, place: usize) {
        let from = self.batch.len();
        let head = mem::replace(&mut self.heads[place], NONE);
        self.unlink(head);
        match &mut self.batch[from..] {
            [_] => {}
            // By far the most common of the rest, and not worth a call.
            [newer, older] => {
                if older.key() <= newer.key() {
                    mem::swap(newer, older);
                }
            }
            opened => {
                opened.reverse();
                opened.sort_by_key(Due::key);
            }
        }
    }

    /// Adds a list to the batch as it is linked, newest first.
    #[inline]
    fn unlink(&mut self, head: u32) {
        let mut slot = head;
        while slot != NONE {
            let Slot::Held { time, next, rank, .. } = self.slots[slot as usize] else {
                unreachable!("a list links held slots")
            };
            self.batch.push(Due { time, slot, rank });
            slot = next;
        }
    }

    /// The first filled bucket of the wheel, counted from time 0.
    fn first_filled(&self) -> Option<u64> {
        let start = (self.frontier & self.mask) as usize;
        let place = self.filled.next(start).or_else(|| self.filled.next(0))? as u64;
        Some(self.frontier + (place.wrapping_sub(self.frontier) & self.mask))
    }

    /// Takes an empty wheel straight to the first far event.
    fn leap(&mut self) -> Option<u64> {
        self.frontier = self.far.peek()?.0.time >> self.shift;
        self.draw_in();
        Some(self.frontier)
    }

    /// Moves what the wheel now reaches from `far` into it.
    fn draw_in(&mut self) {
        while let Some(&Reverse(Parked { time, slot, .. })) = self.far.peek() {
            if (time >> self.shift) - self.frontier > self.mask {
                break;
            }
            self.far.pop();
            self.link(time, slot);
        }
    }

    /// Puts a held slot, in no list, into its bucket of the wheel.
    fn link(&mut self, time: u64, slot: u32) {
        let place = ((time >> self.shift) & self.mask) as usize;
        let head = mem::replace(&mut self.heads[place], slot);
        if let Slot::Held { next, .. } = &mut self.slots[slot as usize] {
            *next = head;
        }
        self.filled.set(place);
    }

    /// Resizes the wheel if it is far from what the pending events want: too
    /// small it has long lists, too large its bitmap is sparse and each push
    /// misses the cache. The two thresholds lie far apart, so that a resize is
    /// paid for by the pushes or pops since the one before.
    #[inline]
    fn fit_wheel(&mut self) {
        let buckets = self.mask + 1;
        let near = self.len - self.far.len();
        if near == 0 {
            // Nothing to go by, as before the first push: keep to the hint.
            return;
        }
        let (wanted, shift) = wheel_for(self.spread, near);
        if wanted >= buckets * 4 || wanted * 16 <= buckets {
            self.resize(wanted, shift);
        }
    }

    /// Rebuilds the wheel. Only when the batch is used up and nothing is late,
    /// so that the frontier may go back to the present.
    #[cold]
    fn resize(&mut self, buckets: u64, shift: u32) {
        let heads = mem::replace(&mut self.heads, vec![NONE; buckets as usize]);
        self.filled = Bitmap::new(buckets as usize);
        self.shift = shift;
        self.mask = buckets - 1;
        self.frontier = self.now >> shift;
        for head in heads {
            self.unlink(head);
            // Oldest first; what is due at the same time was in one bucket.
            while let Some(Due { time, slot, rank }) = self.batch.pop() {
                if (time >> shift) - self.frontier <= self.mask {
                    self.link(time, slot);
                } else {
                    // Beyond the new wheel, yet before what was beyond the old.
                    let parked = self.number(time, rank, slot);
                    self.far.push(Reverse(parked));
                }
            }
        }
        self.draw_in();
    }
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("len", &self.len)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

/// The wheel for so many events with delays up to `spread`: the number of
/// buckets, about two to the event so that most lists are of one, and log2 of
/// their width such that a delay of `spread` is in reach.
#[inline]
fn wheel_for(spread: u64, population: usize) -> (u64, u32) {
    // More buckets than the narrowest width fills would never be used.
    let useful = spread / 2 + 2;
    let wanted = (population as u64).saturating_mul(2).min(useful);
    let buckets = wanted.clamp(MIN_BUCKETS, MAX_BUCKETS).next_power_of_two();
    // One bucket is set aside because the frontier may lie within the spread.
    let bits = u64::BITS - spread.leading_zeros();
    let mut shift = bits.saturating_sub(buckets.trailing_zeros()).max(1);
    if spread >> shift >= buckets - 1 {
        shift += 1;
    }
    (buckets, shift)
}

#[cfg(test)]
mod tests;
