//! How long a group is without a lease after the last fault: the subject of the specification's L1.
//!
//! The time of the last fault is known beforehand, unless the last crash or restart comes later. A lease that runs then
//! counts; otherwise the next one that begins.

use doyen_core::time::Span;

use doyen_sim::time::Time;

/// Waits for the first lease after the last fault.
#[derive(Clone, Debug)]
pub(super) struct FirstLease {
    calm: Time,
    /// The member whose lease was published last, and its deadline.
    running: Option<(u32, Time)>,
    first: Option<Time>,
}

impl FirstLease {
    /// The last fault that is known beforehand happens at `calm`.
    pub(super) fn after(calm: Time) -> Self {
        Self { calm, running: None, first: None }
    }

    /// A member has crashed or started.
    pub(super) fn disturbed(&mut self, at: Time) {
        if at >= self.calm {
            (self.calm, self.first) = (at, None);
        }
    }

    /// The lease of the member at `position` runs until another time than before.
    pub(super) fn lease(&mut self, at: Time, position: u32, until: Option<Time>) {
        self.look_back(at);
        match until {
            Some(until) => self.running = Some((position, until)),
            None if self.running.is_some_and(|(holder, _)| holder == position) => {
                self.running = None;
            }
            None => {}
        }
        if until.is_some() && at >= self.calm {
            self.first.get_or_insert(at);
        }
    }

    /// The wait, if there was a lease by `end`.
    pub(super) fn wait(&mut self, end: Time) -> Option<Span> {
        self.look_back(end);
        self.first.map(|first| first - self.calm)
    }

    /// If a lease was running at the last fault, and no lease was reported between that and `now`, it counts; one that
    /// ended with the fault, in the crash of its holder, does not.
    fn look_back(&mut self, now: Time) {
        let spans = self.running.is_some_and(|(_, until)| until > self.calm);
        if now > self.calm && spans {
            self.first.get_or_insert(self.calm);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn a_lease_that_runs_at_the_last_fault_needs_no_waiting() {
        let mut wait = FirstLease::after(millis(10));
        wait.lease(millis(5), 0, Some(millis(20)));
        assert_eq!(wait.clone().wait(millis(30)), Some(Span::ZERO));
        // Unless it is given up earlier.
        wait.lease(millis(9), 0, None);
        assert_eq!(wait.clone().wait(millis(30)), None);
        wait.lease(millis(13), 1, Some(millis(40)));
        assert_eq!(wait.wait(millis(30)), Some(Span::from_millis(3)));
    }

    #[test]
    fn the_last_crash_is_a_fault_too() {
        let mut wait = FirstLease::after(millis(10));
        wait.lease(millis(12), 0, Some(millis(20)));
        wait.disturbed(millis(15));
        wait.lease(millis(15), 0, None);
        wait.lease(millis(40), 1, Some(millis(60)));
        assert_eq!(wait.wait(millis(99)), Some(Span::from_millis(25)));
    }
}
