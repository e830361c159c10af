//! Leases: until when programs may act for a leader.
//!
//! A member names the timer that ends its lease; here its deadline is looked up after every event, reported to the
//! observers, and counted in the metrics: with leases a member leads while its lease runs, whatever it believes. A
//! paused leader still believes that it leads when its lease has long been over.
//!
//! The monitor also learns what binds each member to a leader, and the earliest end of that: by the fastest clock that
//! is allowed, whatever the member's own clock does.

use doyen_core::protocol::{Bonds, Protocol};

use super::roster::Status;
use super::{Armed, World};
use crate::monitor::Counted;
use crate::time::Time;
use crate::trace::EventKind;

/// One member's lease.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lease {
    pub(super) until: Time,
    /// Whether the metrics count it as leading.
    counted: bool,
}

impl<P: Protocol> World<'_, '_, P> {
    /// Checks whether the lease of a member has changed; does nothing if there are no leases.
    #[inline]
    pub(super) fn publish_lease(&mut self, position: u32) {
        if !P::has_leases(self.setup.config) {
            return;
        }
        let member = &self.members[position];
        let alive = matches!(member.status, Status::Up | Status::Paused);
        let timer = if alive { member.protocol.lease() } else { None };
        let armed = timer.and_then(|timer| self.armed.get(&(position, timer))).copied();
        debug_assert_eq!(armed.is_some(), timer.is_some(), "a lease names an armed timer");
        if self.monitor.is_some() {
            let bonds = if alive { self.bonds(position) } else { Bonds::DOWN };
            if let Some(monitor) = &mut self.monitor {
                monitor.bonds_changed(position, bonds);
            }
        }
        let until = armed.map(|armed| armed.due);
        if self.leases.get(&position).map(|lease| lease.until) != until {
            self.change_lease(position, armed);
        }
        if let Some(monitor) = &mut self.monitor {
            monitor.event_ended(self.now);
        }
    }

    /// What binds a live member. A binding whose timer is not armed is over.
    fn bonds(&self, position: u32) -> Bonds<Counted> {
        let over = Counted { since: Time::ZERO, wait: 0 };
        let counted = |timer| self.armed.get(&(position, timer)).map_or(over, Armed::counted);
        self.members[position].protocol.bonds().map(counted)
    }

    fn change_lease(&mut self, position: u32, armed: Option<Armed>) {
        let until = armed.map(|armed| armed.due);
        self.count_overdue_leases();
        let counted = self.leases.remove(&position).is_some_and(|lease| lease.counted);
        match until {
            Some(until) => {
                self.leases.insert(position, Lease { until, counted: true });
                if !counted {
                    self.metrics.reign_begins(self.now, position);
                }
            }
            None if counted => self.metrics.reign_ends(self.now),
            None => {}
        }
        if let Some(monitor) = &mut self.monitor {
            let counted = armed.as_ref().map(Armed::counted);
            monitor.lease_changed(self.now, position, until.zip(counted));
        }
        self.record_of(
            position,
            EventKind::Leased { member: self.id(position), until, old: false },
        );
    }

    /// Handles leases that have run out by now, though their holders have not noticed.
    pub(super) fn count_overdue_leases(&mut self) {
        let now = self.now;
        let overdue = self.leases.values_mut().filter(|lease| lease.counted && lease.until <= now);
        let mut ends: Vec<Time> = overdue
            .map(|lease| {
                lease.counted = false;
                lease.until
            })
            .collect();
        ends.sort_unstable();
        for end in ends {
            self.metrics.reign_ends(end);
        }
    }
}

impl Armed {
    /// The time that it counts, for readers with other clocks.
    fn counted(&self) -> Counted {
        Counted { since: self.since, wait: self.wait }
    }
}
