//! Which counters of a peer's session have come: so that no letter counts twice.
//!
//! The network may double and reorder, and somebody may record a letter and send it again. Counters rise by one
//! with every letter that a sender sends, so a receiver has to remember the highest that came and which of those
//! just below it have. What is further below is refused: nobody can tell any more whether it came.
//!
//! 1,024 counters are remembered, in 128 bytes. A leader with the fastest timing sends a peer some two hundred
//! letters a second, so one that takes another way may be seconds late and still count.

/// How many counters at and below the highest are remembered.
const WIDTH: u64 = 1024;

const WORDS: usize = WIDTH as usize / 64;

/// The counters that have come.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Window {
    /// The highest that has come; zero before any has, for no letter has that counter.
    highest: u64,
    /// Whether those that end at `highest` have come: the counter `c` at bit `c % WIDTH`.
    came: [u64; WORDS],
    /// How many have been accepted.
    accepted: u64,
}

impl Window {
    /// Takes note of a counter that has come. `false` if it came before, or if nobody can tell.
    pub(super) fn accept(&mut self, counter: u64) -> bool {
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

    /// How many counters have been accepted.
    pub(super) fn accepted(&self) -> u64 {
        self.accepted
    }

    /// Whether this counter is higher than all that have come.
    pub(super) fn is_newest(&self, counter: u64) -> bool {
        counter > self.highest
    }

    /// Moves the window up to `counter`: those between have not come, and take the bits of those that fall out below.
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

/// In which word, and which bit of it, a counter stands.
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
        /// The same as remembering everything, but for what is too old.
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
