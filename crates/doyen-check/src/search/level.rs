//! The states of one level of a breadth-first search, whose steps are to be tried.
//!
//! Each thread lays the new states that it finds on a buffer of its own; the buffers of all threads are the next level, as
//! they are. A thread takes states from one buffer until nothing is left there, then from the next: it begins with its own.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many states a thread takes at once.
const BATCH: usize = 64;

/// The states of a level.
pub(super) struct Level {
    buffers: Vec<StateBuffer>,
}

/// States in the order in which they were found.
#[derive(Default)]
pub(super) struct StateBuffer {
    /// Their words, one state after the other.
    words: Vec<u32>,
    states: Vec<Entry>,
    /// The number of states that have been taken; beyond the last, if a thread found none left.
    taken: AtomicUsize,
}

struct Entry {
    /// Where its words end.
    end: usize,
    number: u32,
    print: u64,
}

/// A state that waits.
#[derive(Clone, Copy)]
pub(super) struct Waiting<'l> {
    pub(super) words: &'l [u32],
    pub(super) number: u32,
    pub(super) print: u64,
}

/// States that a thread has taken and whose steps it has not tried yet.
#[derive(Default)]
pub(super) struct Batch {
    buffer: usize,
    places: Range<usize>,
}

impl Level {
    /// A level without states, with a buffer for each thread.
    pub(super) fn new(threads: usize) -> Self {
        Self { buffers: (0..threads).map(|_| StateBuffer::default()).collect() }
    }

    /// Makes `found` the buffer of `thread`. What lay there is forgotten; its memory is for what will be found.
    pub(super) fn replace(&mut self, thread: usize, found: &mut StateBuffer) {
        std::mem::swap(&mut self.buffers[thread], found);
        found.clear();
    }

    /// States for `thread` that have not been taken.
    pub(super) fn take(&self, thread: usize) -> Option<Batch> {
        let count = self.buffers.len();
        (thread..thread + count).map(|buffer| buffer % count).find_map(|buffer| {
            let places = self.buffers[buffer].take()?;
            Some(Batch { buffer, places })
        })
    }

    /// The next state of a batch.
    #[inline]
    pub(super) fn next_of(&self, batch: &Batch) -> Option<Waiting<'_>> {
        (!batch.is_empty()).then(|| self.buffers[batch.buffer].state(batch.places.start))
    }

    /// How many states it has.
    pub(super) fn len(&self) -> usize {
        self.buffers.iter().map(StateBuffer::len).sum()
    }

    /// The number of states that have not been taken.
    pub(super) fn left(&self) -> usize {
        self.buffers.iter().map(|buffer| buffer.len() - buffer.taken()).sum()
    }

    /// How many bytes it takes.
    pub(super) fn bytes(&self) -> u64 {
        self.buffers.iter().map(StateBuffer::bytes).sum()
    }
}

impl StateBuffer {
    /// Adds the state that `write` appends.
    #[inline]
    pub(super) fn add(&mut self, number: u32, print: u64, write: impl FnOnce(&mut Vec<u32>)) {
        write(&mut self.words);
        self.states.push(Entry { end: self.words.len(), number, print });
    }

    pub(super) fn len(&self) -> usize {
        self.states.len()
    }

    /// The words of the state that was added last.
    pub(super) fn last(&self) -> &[u32] {
        self.state(self.len() - 1).words
    }

    fn clear(&mut self) {
        self.words.clear();
        self.states.clear();
        *self.taken.get_mut() = 0;
    }

    fn take(&self) -> Option<Range<usize>> {
        let first = self.taken.fetch_add(BATCH, Ordering::Relaxed);
        (first < self.len()).then(|| first..self.len().min(first + BATCH))
    }

    fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed).min(self.len())
    }

    #[inline]
    fn state(&self, place: usize) -> Waiting<'_> {
        let start = place.checked_sub(1).map_or(0, |before| self.states[before].end);
        let Entry { end, number, print } = self.states[place];
        Waiting { words: &self.words[start..end], number, print }
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.words.capacity() * 4 + self.states.capacity() * size_of::<Entry>()) as u64
    }
}

impl Batch {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Every step from its first state has been tried.
    #[inline]
    pub(super) fn advance(&mut self) {
        self.places.start += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_taken_once_from_the_own_pile_first() {
        let mut level = Level::new(2);
        for thread in 0..2_u32 {
            let mut buffer = StateBuffer::default();
            (0..100)
                .for_each(|number| buffer.add(number, 7, |words| words.extend([thread, number])));
            level.replace(thread as usize, &mut buffer);
        }
        let mut taken = Vec::new();
        while let Some(mut batch) = level.take(1) {
            while let Some(state) = level.next_of(&batch) {
                assert_eq!((state.words[1], state.print), (state.number, 7));
                taken.push(state.words.to_vec());
                batch.advance();
            }
            assert_eq!(level.left(), level.len() - taken.len());
        }
        let expected =
            [1, 0].into_iter().flat_map(|buffer| (0..100).map(move |it| vec![buffer, it]));
        assert_eq!(taken, expected.collect::<Vec<_>>());
    }
}
