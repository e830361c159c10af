//! Which counters of a peer's session have been received, so that no letter counts twice.
//!
//! The network may duplicate and reorder letters, and an attacker may record a letter and send it again. Counters rise
//! by one with every letter that a sender sends, so a receiver remembers the highest that it has received and which of
//! those just below it. Lower ones are rejected, because the receiver no longer knows whether they arrived.
//!
//! It remembers 1,024 counters, in 128 bytes. A leader with the fastest timing sends a peer about two hundred letters
//! per second, so a letter that takes another route may be seconds late and still count.

/// How many counters at and below the highest are remembered.
const WIDTH: u64 = 1024;

const WORDS: usize = WIDTH as usize / 64;

/// The received counters.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Window {
    /// The highest received counter; zero before the first, because no letter has that counter.
    highest: u64,
    /// Which of the counters up to `highest` have been received: the counter `c` at bit `c % WIDTH`.
    came: [u64; WORDS],
    /// How many have been accepted.
    accepted: u64,
}

impl Window {
    /// Records a received counter. `false` if it was received before, or if it is too old to tell.
    pub fn accept(&mut self, counter: u64) -> bool {
        if counter == 0 || self.highest.saturating_sub(counter) >= WIDTH {
            return false;
        }
        if counter > self.highest {
            self.advance(counter);
        }
        let (word, bit) = place(counter);
        let fresh = self.came[word] & bit == 0;
        self.came[word] |= bit;
        self.accepted += u64::from(fresh);
        fresh
    }

    pub(super) fn accepted(&self) -> u64 {
        self.accepted
    }

    /// Whether this counter is higher than all received ones.
    pub(super) fn is_newest(&self, counter: u64) -> bool {
        counter > self.highest
    }

    /// Moves the window up to `counter`: the counters in between have not been received, and take over the bits of
    /// those that leave the window.
    fn advance(&mut self, counter: u64) {
        if counter - self.highest >= WIDTH {
            self.came = [0; WORDS];
        } else {
            for passed in self.highest + 1..=counter {
                let (word, bit) = place(passed);
                self.came[word] &= !bit;
            }
        }
        self.highest = counter;
    }
}

/// The word, and the bit in it, of a counter.
fn place(counter: u64) -> (usize, u64) {
    let position = counter % WIDTH;
    ((position / 64) as usize, 1 << (position % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::collections::BTreeSet;

    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn each_counts_once_in_whatever_order() {
        let mut window = Window::default();
        for counter in [1, 3, 2, 700, 699, 4] {
            assert!(window.accept(counter), "{counter}");
        }
        for counter in [1, 3, 2, 700, 699, 4] {
            assert!(!window.accept(counter), "{counter} again");
        }
    }

    #[test]
    fn what_has_fallen_out_below_is_refused_though_it_never_came() {
        let mut window = Window::default();
        assert!(window.accept(WIDTH + 10));
        assert!(!window.accept(10));
        assert!(window.accept(11));
    }

    #[test]
    fn no_counter_is_zero_and_the_last_one_is_no_exception() {
        let mut window = Window::default();
        assert!(!window.accept(0));
        assert!(window.accept(u64::MAX - 1) && window.accept(u64::MAX));
        assert!(!window.accept(u64::MAX) && !window.accept(1));
        assert!(window.accept(u64::MAX - WIDTH + 1) && !window.accept(u64::MAX - WIDTH));
    }

    #[test]
    fn only_the_highest_is_the_newest() {
        let mut window = Window::default();
        assert!(window.is_newest(5) && window.accept(5));
        assert!(!window.is_newest(5) && !window.is_newest(4) && window.is_newest(6));
    }

    proptest! {
        /// Equivalent to remembering every counter, except for those that are too old.
        #[test]
        fn it_remembers_like_a_set(jumps in vec((0..3_u8, 0..WIDTH * 2), 1..400)) {
            let (mut window, mut all, mut highest) = (Window::default(), BTreeSet::new(), 0_u64);
            for (kind, size) in jumps {
                let counter = match kind {
                    0 => highest + 1,
                    1 => highest.saturating_sub(size),
                    _ => highest + size,
                };
                let expected = counter > 0 && counter + WIDTH > highest && !all.contains(&counter);
                prop_assert_eq!(window.accept(counter), expected, "{} below {}", counter, highest);
                all.insert(counter);
                highest = highest.max(counter);
            }
        }
    }
}
