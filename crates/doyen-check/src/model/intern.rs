//! Gives equal things the same number.

use std::hash::Hash;
use std::sync::Arc;

use doyen_sim::hash::FastMap;

/// Things by number, and numbers by thing.
#[derive(Debug)]
pub(crate) struct Interner<T> {
    numbers: FastMap<Arc<T>, u32>,
    things: Vec<Arc<T>>,
}

impl<T: Eq + Hash> Interner<T> {
    pub(crate) fn new() -> Self {
        Self { numbers: FastMap::default(), things: Vec::new() }
    }

    /// The number of `thing`: a new one, if it is new.
    pub(crate) fn number(&mut self, thing: T) -> u32 {
        if let Some(&number) = self.numbers.get(&thing) {
            return number;
        }
        let number = u32::try_from(self.things.len()).expect("fewer than 2^32 different things");
        let thing = Arc::new(thing);
        self.numbers.insert(Arc::clone(&thing), number);
        self.things.push(thing);
        number
    }

    /// All things from number `first` on.
    pub(crate) fn since(&self, first: usize) -> &[Arc<T>] {
        &self.things[first..]
    }
}
