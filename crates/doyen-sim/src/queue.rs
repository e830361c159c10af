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
//! the *batch* and hands out the batch one by one, by slot: what sits there is
//! read in place. The first bucket not opened
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
//! A slot keeps of its time only what the bucket does not tell: its low 24 bits,
//! in one word with the rank. So a slot is eight bytes more than its item, the
//! events of a bucket are compared by that word, and a bucket is at most 2^24 ns
//! wide.
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

/// The largest wheel: its list heads take 2 MiB.
const MAX_BUCKETS: u64 = 1 << 19;

/// Log2 of the width of the widest bucket, and so the bits of its time that a
/// slot keeps.
const MAX_SHIFT: u32 = 24;

/// How many bytes of slots are reserved up front at most, however large the
/// hint; the slab grows beyond as needed.
const MAX_RESERVED: usize = 64 << 20;

/// How many events are batched at most, unless one bucket alone holds more.
/// Beyond the number of cache misses a core can have in flight it gains nothing.
const MAX_BATCH: usize = 32;

/// A slab with at most this many slots is in the cache anyway.
const CACHED: usize = 1 << 12;

/// The order of the events of one bucket: the low bits of the time, then the
/// rank.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Order(u32);

impl Order {
    #[inline]
    fn new(time: u64, rank: u8) -> Self {
        Self((time << 8) as u32 | u32::from(rank))
    }

    fn rank(self) -> u8 {
        self.0 as u8
    }

    /// The time of an event in the bucket that begins at `start`.
    #[inline]
    fn time(self, start: u64) -> u64 {
        (start >> MAX_SHIFT << MAX_SHIFT) | u64::from(self.0 >> 8)
    }
}

/// A place of the slab.
struct Slot<T> {
    /// Its place in the order of its bucket, if it is in one.
    order: Order,
    /// The slot pushed before into the same bucket; of a free slot, the next
    /// free one.
    next: u32,
    /// None if the slot is free.
    item: Option<T>,
}

/// The slots.
struct Slab<T> {
    slots: Vec<Slot<T>>,
    /// The free slot to use next; the one freed last.
    vacant: u32,
    /// How many slots are taken.
    len: usize,
}

impl<T> Slab<T> {
    /// Puts an event into a free slot. Always inlined, so that the item is
    /// written once, in place.
    #[inline(always)]
    fn hold(&mut self, order: Order, next: u32, item: T) -> u32 {
        self.len += 1;
        let number = self.vacant;
        if number == NONE {
            return self.grow(order, next, item);
        }
        let slot = &mut self.slots[number as usize];
        self.vacant = slot.next;
        slot.order = order;
        slot.next = next;
        slot.item = Some(item);
        number
    }

    #[inline(never)]
    fn grow(&mut self, order: Order, next: u32, item: T) -> u32 {
        let number = u32::try_from(self.slots.len()).expect("fewer than 2^32 events pending");
        self.slots.push(Slot { order, next, item: Some(item) });
        number
    }

    /// Takes an event out of its slot, which is free from then on.
    #[inline(always)]
    fn release(&mut self, number: u32) -> T {
        let slot = &mut self.slots[number as usize];
        let item = slot.item.take().expect("a pending event is in its slot");
        slot.next = mem::replace(&mut self.vacant, number);
        self.len -= 1;
        item
    }
}

/// An event of the batch.
#[derive(Clone, Copy)]
struct Due {
    time: u64,
    order: Order,
    slot: u32,
}

/// An event that is due, still in its slot.
#[derive(Debug)]
#[must_use = "it is pending until it is taken"]
pub struct Next {
    /// When it happens.
    pub at: u64,
    slot: u32,
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
    slab: Slab<T>,
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
    /// number, nor one more, overflows, and at most [`MAX_SHIFT`].
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
        slots.push(Slot { order: Order::new(0, 0), next: NONE, item: None });
        Self {
            slab: Slab { slots, vacant: NONE, len: 0 },
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
        let bucket = at >> self.shift;
        // One comparison for both ends: before the frontier this wraps.
        if bucket.wrapping_sub(self.frontier) > self.mask {
            self.push_outside(at, rank, item);
            return;
        }
        let place = (bucket & self.mask) as usize;
        let head = &mut self.heads[place];
        *head = self.slab.hold(Order::new(at, rank), *head, item);
        self.filled.set(place);
    }

    /// Takes the next event and its time.
    pub fn pop(&mut self) -> Option<(u64, T)> {
        let next = self.next_ahead(|_| {})?;
        Some((next.at, self.take(next)))
    }

    /// The next event, to be looked at and [taken](Self::take) before anything
    /// is pushed. Whenever a batch has been opened, `ahead` is called before its
    /// first event is taken: time to fetch what the events of the batch will
    /// need, all of it at once.
    #[inline(always)]
    pub fn next_ahead(&mut self, ahead: impl FnOnce(&Self)) -> Option<Next> {
        if !self.late.is_empty() {
            return Some(self.next_with_late());
        }
        let due = match self.batch.get(self.taken) {
            Some(due) => *due,
            None => self.refill(ahead)?,
        };
        self.taken += 1;
        self.now = due.time;
        Some(Next { at: due.time, slot: due.slot })
    }

    /// What is about to happen.
    ///
    /// # Panics
    ///
    /// If it was taken.
    #[inline(always)]
    pub fn peek(&self, next: &Next) -> &T {
        let item = self.slab.slots[next.slot as usize].item.as_ref();
        item.expect("it was not taken")
    }

    /// The same, to be changed.
    ///
    /// # Panics
    ///
    /// If it was taken.
    #[inline(always)]
    pub fn peek_mut(&mut self, next: &Next) -> &mut T {
        let item = self.slab.slots[next.slot as usize].item.as_mut();
        item.expect("it was not taken")
    }

    /// Takes what is about to happen.
    ///
    /// # Panics
    ///
    /// If it was taken.
    #[inline(always)]
    #[expect(clippy::needless_pass_by_value, reason = "an event is taken once")]
    pub fn take(&mut self, next: Next) -> T {
        self.slab.release(next.slot)
    }

    /// Postpones the next event: a [`take`](Self::take) and a [`push`](Self::push), but the event stays in its slot.
    ///
    /// # Panics
    ///
    /// As these do.
    #[inline(always)]
    pub fn postpone(&mut self, next: Next, at: u64, rank: u8) {
        debug_assert!(at >= self.now, "pushed at {at}, before {}", self.now);
        let bucket = at >> self.shift;
        if bucket.wrapping_sub(self.frontier) > self.mask {
            let item = self.take(next);
            self.push_outside(at, rank, item);
            return;
        }
        let place = (bucket & self.mask) as usize;
        let slot = &mut self.slab.slots[next.slot as usize];
        slot.order = Order::new(at, rank);
        slot.next = mem::replace(&mut self.heads[place], next.slot);
        self.filled.set(place);
    }

    /// The events of the batch, for [`next_ahead`](Self::next_ahead).
    pub fn opened(&self) -> impl Iterator<Item = &T> {
        let slots = self.batch[self.taken..].iter().map(|due| &self.slab.slots[due.slot as usize]);
        slots.filter_map(|slot| slot.item.as_ref())
    }

    /// How many events are pending.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.slab.len
    }

    /// Whether no event is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slab.len == 0
    }

    /// Pushes what falls before or beyond the wheel.
    #[inline(never)]
    fn push_outside(&mut self, at: u64, rank: u8, item: T) {
        let at = at.max(self.now);
        let slot = self.slab.hold(Order::new(at, rank), NONE, item);
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

    /// The next event when `late` is not empty. At equal time and rank the batch
    /// comes first: it was pushed before its buckets were opened.
    #[inline(never)]
    fn next_with_late(&mut self) -> Next {
        let late = self.late.peek().expect("called with a late event").0;
        let (at, slot) = match self.batch.get(self.taken) {
            Some(due) if (due.time, due.order.rank()) <= (late.time, late.rank()) => {
                self.taken += 1;
                (due.time, due.slot)
            }
            _ => {
                self.late.pop();
                (late.time, late.slot)
            }
        };
        self.now = at;
        Next { at, slot }
    }

    /// Opens the next buckets; the batch is used up and nothing is late.
    /// Returns the first event of the batch, if there is one.
    #[inline(never)]
    fn refill(&mut self, ahead: impl FnOnce(&Self)) -> Option<Due> {
        self.batch.clear();
        self.taken = 0;
        self.fit_wheel();
        let first = self.first_filled().or_else(|| self.leap())?;
        let opened = self.open_from(first);
        self.frontier = first + opened;
        self.draw_in();
        ahead(self);
        self.batch.first().copied()
    }

    /// Opens the filled buckets from `first` to the end of its bitmap word, as
    /// far as a batch may reach, or until it is large enough. Returns how many
    /// buckets that were, empty ones included.
    fn open_from(&mut self, first: u64) -> u64 {
        let place = (first & self.mask) as usize;
        let within_reach = u64::MAX >> (64 - self.reach());
        let word = self.filled.word_from(place) & within_reach;
        if self.slab.slots.len() > CACHED {
            self.prefetch(place, word);
        }
        let mut rest = word;
        let mut last = 0;
        while rest != 0 && self.batch.len() < MAX_BATCH {
            last = rest.trailing_zeros();
            rest &= rest - 1;
            self.open(first + u64::from(last));
        }
        self.filled.clear(place, word ^ rest);
        u64::from(last) + 1
    }

    /// How many buckets a batch may span, from 1 to 64. Pushes that fall into
    /// it are late, so it spans no more than the shortest delay or, if that is
    /// next to nothing, a small part of the wheel.
    #[inline]
    fn reach(&self) -> u64 {
        ((self.mask + 1) / 64).max(self.nearest >> self.shift).min(64)
    }

    /// Reads the first two slots of the buckets to be opened. Walking the lists
    /// right away would wait for each slot to learn where its list ends; here no
    /// bucket waits for another, so the cache misses overlap.
    #[inline]
    fn prefetch(&self, place: usize, word: u64) {
        let mut rest = word;
        let mut seen = 0;
        for _ in 0..MAX_BATCH.min(word.count_ones() as usize) {
            let head = self.heads[place + rest.trailing_zeros() as usize];
            rest &= rest - 1;
            let second = self.slab.slots[head as usize].next;
            seen ^= self.slab.slots[second as usize].next;
        }
        // Keeps the reads from being optimised away.
        black_box(seen);
    }

    /// Moves a bucket to the end of the batch, sorted.
    #[inline]
    fn open(&mut self, bucket: u64) {
        let head = mem::replace(&mut self.heads[(bucket & self.mask) as usize], NONE);
        let start = bucket << self.shift;
        let Slot { order, next, .. } = self.slab.slots[head as usize];
        self.batch.push(Due { time: order.time(start), order, slot: head });
        if next != NONE {
            self.open_rest(next, start);
        }
    }

    /// Adds to the batch what follows the last event added in the list of a
    /// bucket, and sorts them all.
    #[inline(never)]
    fn open_rest(&mut self, next: u32, start: u64) {
        let from = self.batch.len() - 1;
        self.unlink(next, start);
        match &mut self.batch[from..] {
            // By far the most common case, and not worth a call.
            [newer, older] => {
                if older.order <= newer.order {
                    mem::swap(newer, older);
                }
            }
            opened => {
                opened.reverse();
                opened.sort_by_key(|due| due.order);
            }
        }
    }

    /// Adds a list of the bucket that begins at `start` to the batch as it is
    /// linked, newest first.
    #[inline]
    fn unlink(&mut self, head: u32, start: u64) {
        let mut slot = head;
        while slot != NONE {
            let Slot { order, next, .. } = self.slab.slots[slot as usize];
            self.batch.push(Due { time: order.time(start), order, slot });
            slot = next;
        }
    }

    /// The first filled bucket of the wheel, counted from time 0.
    fn first_filled(&self) -> Option<u64> {
        let start = (self.frontier & self.mask) as usize;
        let place = self.filled.next(start).or_else(|| self.filled.next(0))?;
        Some(bucket_at(place, self.frontier, self.mask))
    }

    /// Takes an empty wheel straight to the first far event.
    fn leap(&mut self) -> Option<u64> {
        self.frontier = self.far.peek()?.0.time >> self.shift;
        self.draw_in();
        Some(self.frontier)
    }

    /// Moves what the wheel now reaches from `far` into it.
    fn draw_in(&mut self) {
        while let Some(&Reverse(parked)) = self.far.peek() {
            if (parked.time >> self.shift) - self.frontier > self.mask {
                break;
            }
            self.far.pop();
            self.link(parked.time, parked.slot);
        }
    }

    /// Puts a held slot, in no list, into its bucket of the wheel.
    fn link(&mut self, time: u64, slot: u32) {
        let place = ((time >> self.shift) & self.mask) as usize;
        self.slab.slots[slot as usize].next = mem::replace(&mut self.heads[place], slot);
        self.filled.set(place);
    }

    /// Resizes the wheel if it is far from what the pending events want: too
    /// small it has long lists, too large its bitmap is sparse and each push
    /// misses the cache. The two thresholds lie far apart, so that a resize is
    /// paid for by the pushes or pops since the one before.
    #[inline]
    fn fit_wheel(&mut self) {
        let buckets = self.mask + 1;
        let near = self.len() - self.far.len();
        if near == 0 {
            // There is nothing to measure yet, as before the first push: keep to the hint.
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
        let (old_frontier, old_mask, old_shift) = (self.frontier, self.mask, self.shift);
        let heads = mem::replace(&mut self.heads, vec![NONE; buckets as usize]);
        self.filled = Bitmap::new(buckets as usize);
        self.shift = shift;
        self.mask = buckets - 1;
        self.frontier = self.now >> shift;
        for (place, head) in heads.into_iter().enumerate() {
            self.unlink(head, bucket_at(place, old_frontier, old_mask) << old_shift);
            // Oldest first; what is due at the same time was in one bucket.
            while let Some(Due { time, slot, order }) = self.batch.pop() {
                if (time >> shift) - self.frontier <= self.mask {
                    self.link(time, slot);
                } else {
                    // Beyond the new wheel, yet before what was beyond the old.
                    let parked = self.number(time, order.rank(), slot);
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
            .field("len", &self.len())
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

/// The bucket, counted from time 0, at `place` of a wheel.
#[inline]
fn bucket_at(place: usize, frontier: u64, mask: u64) -> u64 {
    frontier + ((place as u64).wrapping_sub(frontier) & mask)
}

/// The wheel for so many events with delays up to `spread`: the number of
/// buckets, about two to the event so that most lists are of one, and log2 of
/// their width such that a delay of `spread` is in reach, if the largest wheel
/// reaches that far.
#[inline]
fn wheel_for(spread: u64, population: usize) -> (u64, u32) {
    // More buckets than the narrowest width fills would never be used, and with
    // fewer than the widest needs the spread would be out of reach.
    let useful = spread / 2 + 2;
    let wanted = (population as u64).saturating_mul(2).min(useful).max((spread >> MAX_SHIFT) + 2);
    let buckets = wanted.clamp(MIN_BUCKETS, MAX_BUCKETS).next_power_of_two();
    // One bucket is set aside because the frontier may lie within the spread.
    let bits = u64::BITS - spread.leading_zeros();
    let mut shift = bits.saturating_sub(buckets.trailing_zeros()).max(1);
    if spread >> shift >= buckets - 1 {
        shift += 1;
    }
    (buckets, shift.min(MAX_SHIFT))
}

#[cfg(test)]
mod tests;
