//! The states that a search has seen: their fingerprints, and from where each was reached first.
//!
//! Divided into parts with a lock each, so that threads seldom wait for each other, and a part that grows does not stop
//! the others. In a part, fingerprints lie in an open table: the place of one follows from itself.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many parts: a power of two.
const PARTS: usize = 64;
const FIRST_CAPACITY: usize = 64;

/// What has been seen.
#[derive(Debug)]
pub(crate) struct Seen {
    parts: Vec<Mutex<Part>>,
    keeps: Keeps,
}

/// What is kept of a state besides its fingerprint and where it was reached from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Keeps {
    pub(crate) numbers: bool,
    pub(crate) depths: bool,
}

/// Where a state was reached from, and how far from the start it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Origin {
    /// The fingerprint of the state before; its own at the start.
    pub(crate) from: u64,
    /// In steps, as far as sixteen bits go.
    pub(crate) depth: u16,
}

/// What became of a state that was shown to [`Seen::insert`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sighting {
    New,
    /// It has been seen before.
    Known {
        /// Its number.
        number: u32,
        /// How far from the start it is; zero if that is not kept.
        depth: u16,
    },
}

#[derive(Debug, Default)]
struct Part {
    /// Zero is no fingerprint; the table's length is a power of two.
    prints: Vec<u64>,
    /// The fingerprints of the states before.
    origins: Vec<u64>,
    /// How far from the start, as far as sixteen bits go; empty if that is not kept.
    depths: Vec<u16>,
    /// Empty if states are not numbered.
    numbers: Vec<u32>,
    len: usize,
}

impl Seen {
    pub(crate) fn new(keeps: Keeps) -> Self {
        let parts = (0..PARTS).map(|_| Mutex::new(Part::default())).collect();
        Self { parts, keeps }
    }

    fn part(&self, print: u64) -> MutexGuard<'_, Part> {
        // The upper bits, for the lower ones say where in the part it lies.
        let part = (print >> 58) as usize % PARTS;
        self.parts[part].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a state. If it is new, `number` gives it a number.
    pub(crate) fn insert(
        &self,
        print: u64,
        origin: Origin,
        number: impl FnOnce() -> u32,
    ) -> Sighting {
        let print = nonzero(print);
        let mut part = self.part(print);
        if part.len * 8 >= part.prints.len() * 7 {
            part.grow(self.keeps);
        }
        let place = part.place_of(print);
        if part.prints[place] == print {
            let number = part.numbers.get(place).copied().unwrap_or(0);
            return Sighting::Known { number, depth: part.depths.get(place).copied().unwrap_or(0) };
        }
        part.prints[place] = print;
        part.origins[place] = origin.from;
        if self.keeps.depths {
            part.depths[place] = origin.depth;
        }
        if self.keeps.numbers {
            part.numbers[place] = number();
        }
        part.len += 1;
        Sighting::New
    }

    /// From where a state was reached first; from itself, if it is the start.
    fn origin(&self, print: u64) -> Option<u64> {
        let part = self.part(print);
        if part.prints.is_empty() {
            return None;
        }
        let place = part.place_of(print);
        (part.prints[place] == print).then(|| nonzero(part.origins[place]))
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
        for part in &self.parts {
            let part = part.lock().unwrap_or_else(PoisonError::into_inner);
            for (&print, number) in part.prints.iter().zip(&part.numbers) {
                for (place, _) in
                    numbers.iter().enumerate().filter(|&(_, it)| it == number && print != 0)
                {
                    found[place] = print;
                }
            }
        }
        found
    }

    /// The number of a state.
    pub(crate) fn number(&self, print: u64) -> Option<u32> {
        let print = nonzero(print);
        let part = self.part(print);
        if part.prints.is_empty() {
            return None;
        }
        let place = part.place_of(print);
        (part.prints[place] == print).then(|| part.numbers.get(place).copied())?
    }

    /// How many states it has.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.parts.iter().map(|part| part.lock().unwrap_or_else(PoisonError::into_inner).len).sum()
    }

    /// How many bytes it takes.
    pub(crate) fn bytes(&self) -> u64 {
        let Keeps { numbers, depths } = self.keeps;
        let slot = 8 + 8 + if numbers { 4 } else { 0 } + if depths { 2 } else { 0 };
        let slots =
            |part: &Mutex<Part>| part.lock().unwrap_or_else(PoisonError::into_inner).prints.len();
        self.parts.iter().map(|part| (slots(part) * slot) as u64).sum()
    }
}

/// Zero marks an empty place.
fn nonzero(print: u64) -> u64 {
    print.max(1)
}

impl Part {
    /// Where `print` lies or belongs.
    #[inline]
    fn place_of(&self, print: u64) -> usize {
        let mask = self.prints.len() - 1;
        let mut place = print as usize & mask;
        while self.prints[place] != 0 && self.prints[place] != print {
            place = (place + 1) & mask;
        }
        place
    }

    fn grow(&mut self, keeps: Keeps) {
        let capacity = (self.prints.len() * 2).max(FIRST_CAPACITY);
        let mut larger = Self {
            prints: vec![0; capacity],
            origins: vec![0; capacity],
            depths: vec![0; if keeps.depths { capacity } else { 0 }],
            numbers: vec![0; if keeps.numbers { capacity } else { 0 }],
            len: self.len,
        };
        for (place, &print) in self.prints.iter().enumerate().filter(|&(_, &print)| print != 0) {
            let target = larger.place_of(print);
            larger.prints[target] = print;
            larger.origins[target] = self.origins[place];
            if keeps.depths {
                larger.depths[target] = self.depths[place];
            }
            if keeps.numbers {
                larger.numbers[target] = self.numbers[place];
            }
        }
        *self = larger;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_new_once_and_keeps_the_first_way_to_it() {
        let seen = Seen::new(Keeps { numbers: true, depths: true });
        let from = |from, depth| Origin { from, depth };
        for print in 0..10_000 {
            let print = super::super::fingerprint::mix(print, 77);
            assert_eq!(seen.insert(print, from(9, 4), || print as u32), Sighting::New);
            let known = Sighting::Known { number: print as u32, depth: 4 };
            assert_eq!(seen.insert(print, from(3, 5), || 0), known);
            assert_eq!(seen.origin(print), Some(9));
        }
        assert_eq!((seen.origin(12), seen.len()), (None, 10_000));
        assert!(seen.bytes() >= 10_000 * 22);
    }

    #[test]
    fn a_path_leads_back_to_the_start() {
        let seen = Seen::new(Keeps::default());
        for depth in 0..5_u16 {
            let from = u64::from(depth.max(1)) * 100;
            seen.insert(u64::from(depth + 1) * 100, Origin { from, depth }, || 0);
        }
        assert_eq!(seen.path_to(500), [100, 200, 300, 400, 500]);
    }
}
