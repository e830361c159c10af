//! The queue does what a sorted vector does, whatever its hints.

use super::*;
use proptest::prelude::*;
use std::rc::Rc;

const HINTS: [(u64, usize); 6] =
    [(2_000_000, 1000), (0, 0), (1, 1_000_000), (u64::MAX, 3), (5_000, 50), (u64::MAX, usize::MAX)];

fn drained<T>(queue: &mut Queue<T>) -> Vec<(u64, T)> {
    std::iter::from_fn(|| queue.pop()).collect()
}

#[test]
fn pops_by_time_then_rank_then_insertion() {
    for (spread, population) in HINTS {
        let mut queue = Queue::new(0..=spread, population);
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
    let mut queue = Queue::new(0..=2_000_000, 10);
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
    let mut queue = Queue::new(0..=2_000_000, 10);
    queue.push(10, 200, "one timer");
    queue.push(10, 200, "another timer");
    assert_eq!(queue.pop(), Some((10, "one timer")));
    queue.push(10, 0, "message");
    queue.push(10, 200, "late timer");
    assert_eq!(queue.pop(), Some((10, "message")));
    assert_eq!(queue.pop(), Some((10, "another timer")));
    assert_eq!(queue.pop(), Some((10, "late timer")));
}

#[test]
fn the_whole_range_of_time_works() {
    for (spread, population) in HINTS {
        let mut queue = Queue::new(0..=spread, population);
        let times = [u64::MAX, 0, 1 << 40, u64::MAX - 1, 1, u64::MAX];
        for (index, at) in times.into_iter().enumerate() {
            queue.push(at, 5, index);
        }
        for expected in [(0, 1), (1, 4), (1 << 40, 2), (u64::MAX - 1, 3), (u64::MAX, 0)] {
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
    let mut queue = Queue::new(0..=1000, 10);
    queue.push(1_000_000, 0, "pushed from afar");
    queue.push(999_500, 0, "step");
    assert_eq!(queue.pop(), Some((999_500, "step")));
    queue.push(1_000_000, 0, "pushed from near");
    assert_eq!(queue.pop(), Some((1_000_000, "pushed from afar")));
    assert_eq!(queue.pop(), Some((1_000_000, "pushed from near")));
}

#[test]
fn len_counts_what_is_pending_wherever_it_is() {
    let mut queue = Queue::new(0..=1000, 10);
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
    let mut queue = Queue::new(0..=100_000, 4);
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
fn a_batch_reaches_as_far_as_the_shortest_delay() {
    let mut ahead = Vec::new();
    for nearest in [0, 500] {
        let mut queue = Queue::new(nearest..=1000, 10);
        for at in (0..1000).step_by(50) {
            queue.push(at, 0, at);
        }
        let first = queue.next_ahead(|queue| ahead.push(queue.opened().count())).unwrap();
        assert_eq!((first.at, *queue.peek(&first), queue.take(first)), (0, 0, 0));
    }
    assert_eq!(ahead[0], 1, "in a small wheel pushes without a delay would be late");
    assert!((9..=11).contains(&ahead[1]), "{ahead:?}");
}

#[test]
fn slots_are_reused() {
    let mut queue = Queue::new(0..=1000, 8);
    for at in (0..10_000_000).step_by(1000) {
        queue.push(at, 0, at);
        queue.push(at + 500, 0, at);
        queue.pop();
        queue.pop();
    }
    let slots = queue.slab.slots.len();
    assert!(slots <= 4, "{slots} slots for 2 events");
}

#[test]
fn a_slot_is_eight_bytes_more_than_its_item() {
    assert_eq!(size_of::<Slot<Box<u64>>>(), 16);
    assert_eq!(size_of::<Due>(), 16);
}

#[test]
fn hints_small_or_huge_give_sane_wheels() {
    for spread in [0, 1, 2, 127, 128, 2_000_000, u64::MAX / 2, u64::MAX] {
        for population in [0, 1, 5, 1000, 1_000_000, usize::MAX] {
            let (buckets, shift) = wheel_for(spread, population);
            assert!(buckets.is_power_of_two());
            assert!((MIN_BUCKETS..=MAX_BUCKETS).contains(&buckets));
            assert!((1..=MAX_SHIFT).contains(&shift));
            let largest = (buckets, shift) == (MAX_BUCKETS, MAX_SHIFT);
            assert!(largest || spread >> shift < buckets - 1, "the spread is in reach");
        }
    }
    assert_eq!(wheel_for(2_000_000, 5).0, 64);
    assert_eq!(wheel_for(2_000_000, 1_000_000), (1 << 19, 2));
    assert_eq!(wheel_for(3_600_000_000_000, 5), (1 << 18, 24), "an hour");
    assert!(Queue::<[u64; 3]>::new(0..=0, usize::MAX).slab.slots.capacity() <= (2 << 20) + 1);
}

#[test]
fn dropping_the_queue_drops_the_pending_items() {
    let item = Rc::new(());
    let mut queue = Queue::new(0..=1000, 8);
    for at in [0, 0, 5, 500, 1 << 50] {
        queue.push(at, 0, Rc::clone(&item));
    }
    assert_eq!(queue.pop().map(|(at, _)| at), Some(0));
    assert_eq!(Rc::strong_count(&item), 5);
    drop(queue);
    assert_eq!(Rc::strong_count(&item), 1);
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
    Postpone { delay: u64, rank: u8 },
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
    let rank = || prop_oneof![Just(0), Just(200), any::<u8>()];
    prop_oneof![
        8 => (delay(), rank()).prop_map(|(delay, rank)| Step::Push { delay, rank }),
        4 => (delay(), rank()).prop_map(|(delay, rank)| Step::Postpone { delay, rank }),
        1 => (any::<u8>(), delay(), 0..20_u64)
            .prop_map(|(count, delay, stride)| Step::Burst { count, delay, stride }),
        6 => (0..4_u8).prop_map(|count| Step::Pop { count }),
        1 => any::<u8>().prop_map(|count| Step::Pop { count }),
    ]
}

fn hints() -> impl Strategy<Value = (u64, u64, usize)> {
    let spread = || prop_oneof![0..10_u64, 0..10_000_u64, 0..1_000_000_u64, any::<u64>()];
    let nearest = prop_oneof![Just(0), spread()];
    let population = prop_oneof![0..10_usize, 0..2000_usize, 0..100_000_usize];
    (nearest, spread(), population)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pops_like_a_sorted_vector(
        (nearest, spread, population) in hints(),
        steps in prop::collection::vec(step(), 0..300),
    ) {
        let mut queue = Queue::new(nearest..=spread, population);
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
                Step::Postpone { delay, rank } => {
                    let next = queue.next_ahead(|_| {});
                    prop_assert_eq!(next.as_ref().map(|it| (it.at, *queue.peek(it))), model.pop());
                    if let Some(next) = next {
                        let at = model.now.saturating_add(delay);
                        *queue.peek_mut(&next) = item;
                        queue.postpone(next, at, rank);
                        model.push(at, rank, item);
                        item += 1;
                    }
                }
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
