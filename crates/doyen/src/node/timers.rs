//! The one table of timers.
//!
//! A tag is armed at most once: arming it again replaces it. A timer that was cancelled or replaced never fires, even if it
//! was due. Lease timers have a queue of their own, because they fire first (rule 8 at the head of the core).

use std::collections::{BTreeMap, BTreeSet};

use crate::clock::Moment;

/// The armed timers.
#[derive(Debug)]
pub(crate) struct Timers<T> {
    due_of: BTreeMap<T, Moment>,
    leases: BTreeSet<(Moment, T)>,
    others: BTreeSet<(Moment, T)>,
    is_lease: fn(&T) -> bool,
}

impl<T: Clone + Ord> Timers<T> {
    /// No timers; `is_lease` says which of them fire first.
    pub(crate) fn new(is_lease: fn(&T) -> bool) -> Self {
        Self { due_of: BTreeMap::new(), leases: BTreeSet::new(), others: BTreeSet::new(), is_lease }
    }

    pub(crate) fn arm(&mut self, timer: T, due: Moment) {
        self.disarm(&timer);
        self.due_of.insert(timer.clone(), due);
        self.queue_of(&timer).insert((due, timer));
    }

    pub(crate) fn disarm(&mut self, timer: &T) {
        if let Some((timer, due)) = self.due_of.remove_entry(timer) {
            self.queue_of(&timer).remove(&(due, timer));
        }
    }

    /// When `timer` is due, if it is armed.
    pub(crate) fn due_of(&self, timer: &T) -> Option<Moment> {
        self.due_of.get(timer).copied()
    }

    /// When the next timer is due.
    pub(crate) fn next_due(&self) -> Option<Moment> {
        let first = |queue: &BTreeSet<(Moment, T)>| queue.first().map(|(due, _)| *due);
        first(&self.leases).into_iter().chain(first(&self.others)).min()
    }

    /// Removes and returns the lease timer that has been due for the longest time.
    pub(crate) fn pop_lease(&mut self, now: Moment) -> Option<T> {
        let timer = due_by(&self.leases, now)?;
        self.disarm(&timer);
        Some(timer)
    }

    /// Removes and returns a due timer: lease timers first, then the one that has been due for the longest time.
    pub(crate) fn pop(&mut self, now: Moment) -> Option<T> {
        let timer = self.pop_lease(now).or_else(|| due_by(&self.others, now))?;
        self.disarm(&timer);
        Some(timer)
    }

    fn queue_of(&mut self, timer: &T) -> &mut BTreeSet<(Moment, T)> {
        match (self.is_lease)(timer) {
            true => &mut self.leases,
            false => &mut self.others,
        }
    }
}

fn due_by<T: Clone + Ord>(queue: &BTreeSet<(Moment, T)>, now: Moment) -> Option<T> {
    queue.first().filter(|(due, _)| *due <= now).map(|(_, timer)| timer.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Moment {
        Moment::from_nanos(nanos)
    }

    #[test]
    fn leases_fire_first_and_no_timer_fires_early_or_twice() {
        let mut timers = Timers::new(|&timer: &u32| timer >= 100);
        timers.arm(1, at(10));
        timers.arm(2, at(5));
        timers.arm(100, at(20));
        assert_eq!((timers.next_due(), timers.pop(at(4))), (Some(at(5)), None));
        assert_eq!(timers.pop_lease(at(19)), None);
        assert_eq!(
            [timers.pop(at(20)), timers.pop(at(20)), timers.pop(at(20)), timers.pop(at(20))],
            [Some(100), Some(2), Some(1), None]
        );
        assert_eq!(timers.next_due(), None);
    }

    #[test]
    fn a_replaced_or_cancelled_timer_does_not_fire() {
        let mut timers = Timers::new(|_: &u32| false);
        timers.arm(1, at(10));
        timers.arm(1, at(30));
        timers.arm(2, at(10));
        timers.disarm(&2);
        assert_eq!((timers.pop(at(29)), timers.due_of(&1)), (None, Some(at(30))));
        assert_eq!((timers.pop(at(30)), timers.due_of(&1)), (Some(1), None));
    }
}
