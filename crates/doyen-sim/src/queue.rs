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
//! The hints given to [`Queue::new`] size the wheel. Its number of buckets then
//! follows the number of events really pending, by factors, so that an election
//! that begins with a million messages in flight and ends with one is quick at
//! both ends. Delays far beyond the hinted spread work, at the price of a heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::hint::black_box;
use std::mem;

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
const MAX_BATCH: u64 = 32;

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
    /// The hint, kept for resizing the wheel.
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
    /// The least time in the wheel and `far`, if `next_time` has looked for it
    /// since the last refill. Without it, looking again after each push would
    /// walk a long bucket again and again.
    beyond: Option<u64>,
}

impl<T> Queue<T> {
    /// An empty queue at time 0.
    ///
    /// `spread` is the typical longest delay in ns, `population` the typical
    /// number of pending events. They are hints for speed only: any values
    /// work, and the cost of a call is in proportion to `population` only up to
    /// a cap.
    #[must_use]
    pub fn new(spread: u64, population: usize) -> Self {
        let (buckets, shift) = wheel_for(spread, population);
        let most = MAX_RESERVED / size_of::<Slot<T>>();
        let mut slots = Vec::with_capacity(population.min(most) + 1);
        slots.push(Slot::Vacant { next: NONE });
        Self {
            slots,
            vacant: NONE,
            len: 0,
            now: 0,
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
            beyond: None,
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
    #[inline]
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
        self.note_beyond(at);
    }

    /// Takes the next event and its time.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, T)> {
        let slot = if self.late.is_empty() {
            if self.taken == self.batch.len() && !self.refill() {
                return None;
            }
            let slot = self.batch[self.taken].slot;
            self.taken += 1;
            slot
        } else {
            self.take_with_late()
        };
        Some(self.release(slot))
    }

    /// The time of the event [`pop`](Self::pop) would return.
    ///
    /// Looking does not open buckets: what is pushed between this and the next
    /// pop may well be earlier, and should go into the wheel.
    pub fn next_time(&mut self) -> Option<u64> {
        let due = self.batch.get(self.taken).map(|due| due.time);
        let late = self.late.peek().map(|parked| parked.0.time);
        match (due, late) {
            (Some(due), Some(late)) => Some(due.min(late)),
            (None, None) => {
                if self.beyond.is_none() {
                    self.beyond = self.find_beyond();
                }
                self.beyond
            }
            _ => due.or(late),
        }
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
    fn push_outside(&mut self, at: u64, rank: u8, item: T) {
        let slot = self.hold(at, rank, NONE, item);
        let parked = self.number(at, rank, slot);
        if at >> self.shift < self.frontier {
            self.late.push(Reverse(parked));
        } else {
            self.far.push(Reverse(parked));
            self.note_beyond(at);
        }
    }

    fn number(&mut self, time: u64, rank: u8, slot: u32) -> Parked {
        let order = u64::from(rank) << 56 | self.parked;
        self.parked += 1;
        Parked { time, order, slot }
    }

    #[inline]
    fn note_beyond(&mut self, at: u64) {
        if let Some(least) = self.beyond
            && at < least
        {
            self.beyond = Some(at);
        }
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
        let place = &mut self.slots[slot as usize];
        if let Slot::Vacant { next } = *place {
            self.vacant = next;
        }
        *place = Slot::Held { time, next, rank, item };
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
    fn refill(&mut self) -> bool {
        self.batch.clear();
        self.taken = 0;
        self.beyond = None;
        self.fit_wheel();
        let Some(first) = self.first_filled().or_else(|| self.leap()) else {
            return false;
        };
        let place = (first & self.mask) as usize;
        let last = self.open_from(place);
        self.frontier = first + (last - place) as u64 + 1;
        self.draw_in();
        true
    }

    /// Opens the filled buckets from `place` to the end of its bitmap word, or
    /// until the batch is large enough. Returns the last one opened.
    fn open_from(&mut self, place: usize) -> usize {
        // In a small wheel a large batch would span much of it, and most
        // pushes would then be late.
        let enough = ((self.mask + 1) / 64).min(MAX_BATCH) as usize;
        let base = place & !63;
        let word = self.filled.word_from(place);
        if enough > 1 {
            self.prefetch(base, word, enough);
        }
        let mut rest = word;
        let mut last = place;
        while rest != 0 && self.batch.len() < enough {
            last = base + rest.trailing_zeros() as usize;
            rest &= rest - 1;
            self.open(last);
        }
        last
    }

    /// Reads the first slot of up to `enough` buckets. Walking the lists right
    /// away would wait for each slot to learn where its list ends; here no read
    /// depends on another, so the cache misses overlap.
    #[inline]
    fn prefetch(&self, base: usize, word: u64, enough: usize) {
        let mut rest = word;
        let mut seen = 0;
        for _ in 0..enough.min(word.count_ones() as usize) {
            let head = self.heads[base + rest.trailing_zeros() as usize];
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
        self.filled.clear(place);
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

    /// The least time in the wheel and `far`. All of `far` is beyond the wheel.
    fn find_beyond(&self) -> Option<u64> {
        let Some(first) = self.first_filled() else {
            return self.far.peek().map(|parked| parked.0.time);
        };
        let mut slot = self.heads[(first & self.mask) as usize];
        let mut least = u64::MAX;
        while let Slot::Held { time, next, .. } = &self.slots[slot as usize] {
            least = least.min(*time);
            slot = *next;
        }
        Some(least)
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

/// A set of bucket numbers, with two levels above it telling which words are
/// not zero, so that finding the next member is quick in a sparse wheel too.
struct Bitmap {
    levels: [Vec<u64>; 3],
}

impl Bitmap {
    fn new(buckets: usize) -> Self {
        let words = buckets.div_ceil(64);
        Self {
            levels: [vec![0; words], vec![0; words.div_ceil(64)], vec![0; words.div_ceil(64 * 64)]],
        }
    }

    #[inline]
    fn set(&mut self, mut index: usize) {
        for level in &mut self.levels {
            let word = &mut level[index / 64];
            let before = *word;
            *word |= 1 << (index % 64);
            if before != 0 {
                break;
            }
            index /= 64;
        }
    }

    #[inline]
    fn clear(&mut self, mut index: usize) {
        for level in &mut self.levels {
            let word = &mut level[index / 64];
            *word &= !(1 << (index % 64));
            if *word != 0 {
                break;
            }
            index /= 64;
        }
    }

    /// The members from `index` to the end of its word.
    fn word_from(&self, index: usize) -> u64 {
        self.levels[0][index / 64] & (u64::MAX << (index % 64))
    }

    /// The least member not below `start`.
    fn next(&self, start: usize) -> Option<usize> {
        let mut index = start;
        for (height, level) in self.levels.iter().enumerate() {
            let word = level.get(index / 64)? & (u64::MAX << (index % 64));
            if word != 0 {
                let found = index / 64 * 64 + word.trailing_zeros() as usize;
                return Some(self.descend(height, found));
            }
            index = index / 64 + 1;
        }
        let top = self.levels[2].get(index..)?;
        let ahead = top.iter().position(|&word| word != 0)?;
        let found = (index + ahead) * 64 + top[ahead].trailing_zeros() as usize;
        Some(self.descend(2, found))
    }

    /// The least member under bit `index` of the level at `height`.
    fn descend(&self, height: usize, index: usize) -> usize {
        self.levels[..height]
            .iter()
            .rev()
            .fold(index, |index, level| index * 64 + level[index].trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::rc::Rc;

    const HINTS: [(u64, usize); 6] = [
        (2_000_000, 1000),
        (0, 0),
        (1, 1_000_000),
        (u64::MAX, 3),
        (5_000, 50),
        (u64::MAX, usize::MAX),
    ];

    fn drained<T>(queue: &mut Queue<T>) -> Vec<(u64, T)> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn pops_by_time_then_rank_then_insertion() {
        for (spread, population) in HINTS {
            let mut queue = Queue::new(spread, population);
            let pushes =
                [(7, 1, 'e'), (3, 200, 'c'), (7, 0, 'd'), (3, 0, 'a'), (3, 0, 'b'), (7, 1, 'f')];
            for (at, rank, item) in pushes {
                queue.push(at, rank, item);
            }
            let items: String = drained(&mut queue).into_iter().map(|(_, item)| item).collect();
            assert_eq!(items, "abcdef", "hints {spread} {population}");
        }
    }

    #[test]
    fn a_timer_of_now_waits_for_the_messages_of_now() {
        let mut queue = Queue::new(2_000_000, 10);
        for item in ["first", "second", "third"] {
            queue.push(10, 0, item);
        }
        assert_eq!(queue.pop(), Some((10, "first")));
        queue.push(10, 200, "timer");
        assert_eq!(queue.pop(), Some((10, "second")));
        assert_eq!(queue.pop(), Some((10, "third")));
        assert_eq!(queue.pop(), Some((10, "timer")));
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn a_message_of_now_overtakes_the_pending_timers_of_now() {
        let mut queue = Queue::new(2_000_000, 10);
        queue.push(10, 200, "one timer");
        queue.push(10, 200, "another timer");
        assert_eq!(queue.pop(), Some((10, "one timer")));
        queue.push(10, 0, "message");
        queue.push(10, 200, "late timer");
        assert_eq!(queue.next_time(), Some(10));
        assert_eq!(queue.pop(), Some((10, "message")));
        assert_eq!(queue.pop(), Some((10, "another timer")));
        assert_eq!(queue.pop(), Some((10, "late timer")));
    }

    #[test]
    fn the_whole_range_of_time_works() {
        for (spread, population) in HINTS {
            let mut queue = Queue::new(spread, population);
            let times = [u64::MAX, 0, 1 << 40, u64::MAX - 1, 1, u64::MAX];
            for (index, at) in times.into_iter().enumerate() {
                queue.push(at, 5, index);
            }
            for expected in [(0, 1), (1, 4), (1 << 40, 2), (u64::MAX - 1, 3), (u64::MAX, 0)] {
                assert_eq!(queue.next_time(), Some(expected.0));
                assert_eq!(queue.pop(), Some(expected));
            }
            queue.push(u64::MAX, 4, 6);
            queue.push(u64::MAX, 6, 7);
            let rest = drained(&mut queue);
            assert_eq!(rest, [(u64::MAX, 6), (u64::MAX, 5), (u64::MAX, 7)]);
        }
    }

    #[test]
    fn far_events_keep_their_place_before_near_pushes_of_the_same_time() {
        let mut queue = Queue::new(1000, 10);
        queue.push(1_000_000, 0, "pushed from afar");
        queue.push(999_500, 0, "step");
        assert_eq!(queue.pop(), Some((999_500, "step")));
        queue.push(1_000_000, 0, "pushed from near");
        assert_eq!(queue.pop(), Some((1_000_000, "pushed from afar")));
        assert_eq!(queue.pop(), Some((1_000_000, "pushed from near")));
    }

    #[test]
    fn looking_at_the_next_time_does_not_bar_earlier_pushes() {
        let mut queue = Queue::new(1000, 10);
        assert_eq!(queue.next_time(), None);
        queue.push(5_000_000, 0, 3);
        assert_eq!(queue.next_time(), Some(5_000_000));
        queue.push(700, 0, 2);
        assert_eq!(queue.next_time(), Some(700));
        queue.push(699, 9, 1);
        assert_eq!(queue.next_time(), Some(699));
        assert_eq!(drained(&mut queue), [(699, 1), (700, 2), (5_000_000, 3)]);
        assert_eq!(queue.next_time(), None);
    }

    #[test]
    fn len_counts_what_is_pending_wherever_it_is() {
        let mut queue = Queue::new(1000, 10);
        assert!(queue.is_empty());
        for at in [0, 0, 10, u64::MAX] {
            queue.push(at, 0, ());
        }
        queue.pop();
        queue.push(0, 0, ());
        assert_eq!(queue.len(), 4);
        while queue.pop().is_some() {}
        assert!(queue.is_empty());
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn growing_and_shrinking_the_wheel_keeps_the_order() {
        let mut queue = Queue::new(100_000, 4);
        let mut expected = Vec::new();
        for index in 0..20_000_u64 {
            let at = index.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 250_000 / 16;
            queue.push(at, (index % 2) as u8, index);
            expected.push((at, index % 2, index));
        }
        expected.sort_unstable();
        let expected: Vec<_> = expected.into_iter().map(|(at, _, index)| (at, index)).collect();
        let small = queue.mask;
        let first = queue.pop().unwrap();
        let large = queue.mask;
        assert!(large > small, "20,000 events outgrow the wheel for 4");
        let mut popped = vec![first];
        popped.extend(drained(&mut queue));
        assert_eq!(popped, expected);
        assert!(queue.mask < large, "the wheel shrinks as the events run out");
    }

    #[test]
    fn slots_are_reused() {
        let mut queue = Queue::new(1000, 8);
        for at in (0..10_000_000).step_by(1000) {
            queue.push(at, 0, at);
            queue.push(at + 500, 0, at);
            queue.pop();
            queue.pop();
        }
        assert!(queue.slots.len() <= 4, "{} slots for 2 events", queue.slots.len());
    }

    #[test]
    fn a_slot_is_sixteen_bytes_more_than_its_item() {
        assert_eq!(size_of::<Slot<[u64; 3]>>(), 40);
        assert_eq!(size_of::<Due>(), 16);
    }

    #[test]
    fn hints_small_or_huge_give_sane_wheels() {
        for spread in [0, 1, 2, 127, 128, 2_000_000, u64::MAX / 2, u64::MAX] {
            for population in [0, 1, 5, 1000, 1_000_000, usize::MAX] {
                let (buckets, shift) = wheel_for(spread, population);
                assert!(buckets.is_power_of_two());
                assert!((MIN_BUCKETS..=MAX_BUCKETS).contains(&buckets));
                assert!((1..64).contains(&shift));
                assert!(spread >> shift < buckets - 1, "a delay of the spread is in reach");
            }
        }
        assert_eq!(wheel_for(2_000_000, 5).0, 64);
        assert_eq!(wheel_for(2_000_000, 1_000_000), (1 << 20, 1));
        assert!(Queue::<[u64; 3]>::new(0, usize::MAX).slots.capacity() <= (2 << 20) + 1);
    }

    #[test]
    fn dropping_the_queue_drops_the_pending_items() {
        let item = Rc::new(());
        let mut queue = Queue::new(1000, 8);
        for at in [0, 0, 5, 500, 1 << 50] {
            queue.push(at, 0, Rc::clone(&item));
        }
        assert_eq!(queue.pop().map(|(at, _)| at), Some(0));
        assert_eq!(Rc::strong_count(&item), 5);
        drop(queue);
        assert_eq!(Rc::strong_count(&item), 1);
    }

    #[test]
    fn the_bitmap_finds_the_next_member_across_all_levels() {
        let mut bitmap = Bitmap::new(1 << 21);
        let members = [0, 63, 64, 4095, 4096, 262_143, 262_144, 1_500_000, (1 << 21) - 1];
        for member in members {
            bitmap.set(member);
        }
        let mut found = Vec::new();
        let mut start = 0;
        while let Some(member) = bitmap.next(start) {
            found.push(member);
            start = member + 1;
        }
        assert_eq!(found, members);
        for member in members {
            assert_eq!(bitmap.next(member), Some(member));
            bitmap.clear(member);
        }
        assert_eq!(bitmap.next(0), None);
        assert!(bitmap.levels.iter().flatten().all(|&word| word == 0));
    }

    /// What the queue should do, done naively: a vector kept sorted.
    #[derive(Default)]
    struct Model {
        pending: Vec<(u64, u8, u32)>,
        now: u64,
    }

    impl Model {
        fn push(&mut self, at: u64, rank: u8, item: u32) {
            let index = self.pending.partition_point(|&(a, r, _)| (a, r) <= (at, rank));
            self.pending.insert(index, (at, rank, item));
        }

        fn next_time(&self) -> Option<u64> {
            self.pending.first().map(|&(at, ..)| at)
        }

        fn pop(&mut self) -> Option<(u64, u32)> {
            if self.pending.is_empty() {
                return None;
            }
            let (at, _, item) = self.pending.remove(0);
            self.now = at;
            Some((at, item))
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push { delay: u64, rank: u8 },
        Burst { count: u8, delay: u64, stride: u64 },
        Pop { count: u8 },
        Look,
    }

    fn delay() -> impl Strategy<Value = u64> {
        prop_oneof![
            4 => Just(0),
            4 => 0..8_u64,
            8 => 0..3000_u64,
            2 => (0..4_u64).prop_map(|n| n * 1000),
            3 => 0..5_000_000_u64,
            1 => any::<u64>(),
        ]
    }

    fn step() -> impl Strategy<Value = Step> {
        let rank = prop_oneof![Just(0), Just(200), any::<u8>()];
        prop_oneof![
            8 => (delay(), rank).prop_map(|(delay, rank)| Step::Push { delay, rank }),
            1 => (any::<u8>(), delay(), 0..20_u64)
                .prop_map(|(count, delay, stride)| Step::Burst { count, delay, stride }),
            6 => (0..4_u8).prop_map(|count| Step::Pop { count }),
            1 => any::<u8>().prop_map(|count| Step::Pop { count }),
            3 => Just(Step::Look),
        ]
    }

    fn hints() -> impl Strategy<Value = (u64, usize)> {
        let spread = prop_oneof![0..10_u64, 0..10_000_u64, 0..1_000_000_u64, any::<u64>()];
        let population = prop_oneof![0..10_usize, 0..2000_usize, 0..100_000_usize];
        (spread, population)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn pops_like_a_sorted_vector(
            (spread, population) in hints(),
            steps in prop::collection::vec(step(), 0..300),
        ) {
            let mut queue = Queue::new(spread, population);
            let mut model = Model::default();
            let mut item = 0;
            for step in steps {
                match step {
                    Step::Push { delay, rank } => {
                        let at = model.now.saturating_add(delay);
                        queue.push(at, rank, item);
                        model.push(at, rank, item);
                        item += 1;
                    }
                    Step::Burst { count, delay, stride } => {
                        for index in 0..u64::from(count) {
                            let at = model.now.saturating_add(delay).saturating_add(index * stride);
                            queue.push(at, (index % 3) as u8, item);
                            model.push(at, (index % 3) as u8, item);
                            item += 1;
                        }
                    }
                    Step::Pop { count } => {
                        for _ in 0..count {
                            prop_assert_eq!(queue.pop(), model.pop());
                        }
                    }
                    Step::Look => prop_assert_eq!(queue.next_time(), model.next_time()),
                }
                prop_assert_eq!(queue.len(), model.pending.len());
            }
            while let Some(popped) = model.pop() {
                prop_assert_eq!(queue.pop(), Some(popped));
            }
            prop_assert_eq!(queue.pop(), None);
            prop_assert!(queue.is_empty());
        }
    }
}
