//! Faults that last and leave a majority connected must not keep the group from having a leader, nor make it change
//! leaders again and again.
//!
//! Two things are judged from the last fault on: a lease begins within three times L1; and once members have had time
//! to settle, no new lease begins any more, and one runs at the end.

use doyen_core::members::{Members, Term};
use doyen_core::time::Span;

use super::first_lease::FirstLease;
use crate::property::{Fact, Property};
use doyen_sim::scenario::Case;
use doyen_sim::time::Time;

/// Of a thousand runs 999 are to keep L1, and all of them three times as much.
const PATIENCE: u64 = 3;

/// What must be seen while faults last.
#[derive(Clone, Debug)]
pub(super) struct Lasting {
    members: Members,
    first: FirstLease,
    /// How long the first lease may take.
    bound: Span,
    /// The time from which on the leader must stay the same.
    settled: Time,
    /// The member whose lease began last, the term, and the time.
    last: Option<(u32, Term, Time)>,
    /// The deadline of the last lease, if it has not been given up.
    until: Option<Time>,
}

impl Lasting {
    pub(super) fn new(case: &Case) -> Self {
        let from = case.last_fault();
        Self {
            members: case.members().clone(),
            first: FirstLease::after(from),
            bound: case.recovery() * PATIENCE,
            settled: from + case.settling(),
            last: None,
            until: None,
        }
    }

    /// A member has crashed or started.
    pub(super) fn disturbed(&mut self, at: Time) {
        self.first.disturbed(at);
    }

    /// The lease of the member at `position`, which leads in `term`, runs until another time than before. Returns the
    /// evidence that the leader has changed too late.
    pub(super) fn lease(
        &mut self,
        at: Time,
        position: u32,
        term: Term,
        until: Option<Time>,
    ) -> Option<Vec<Fact>> {
        self.first.lease(at, position, until);
        let Some(until) = until else {
            if self.last.is_some_and(|(holder, ..)| holder == position) {
                self.until = None;
            }
            return None;
        };
        self.until = Some(until);
        let is_same = self.last.is_some_and(|(holder, last, _)| (holder, last) == (position, term));
        if is_same {
            return None;
        }
        let (before, since, earlier) = self
            .last
            .replace((position, term, at))
            .map_or((position, Time::ZERO, Term::default()), |(before, earlier, since)| {
                (before, since, earlier)
            });
        (at > self.settled).then(|| {
            let id = |position: u32| self.members.at(position as usize);
            let led = format!("led in term {earlier} from {since} on");
            let leads = format!("leads in term {term} from {at} on, when members had settled");
            vec![Fact::new(id(before), led), Fact::new(id(position), leads)]
        })
    }

    /// What the run has not shown by its `end`; the property alone where there is no lease to speak of.
    pub(super) fn missed(&mut self, end: Time) -> Option<(Property, Option<Fact>)> {
        let wait = self.first.wait(end);
        let late = wait.filter(|&wait| wait > self.bound);
        match (wait, late, self.last) {
            (None, ..) => Some((Property::LeaderInTime, None)),
            (_, Some(wait), Some((holder, term, _))) => {
                let id = self.members.at(holder as usize);
                let bound = self.bound;
                let what = format!(
                    "leads in term {term}; the first lease began {wait} after the last fault, not within {bound}"
                );
                Some((Property::LeaderInTime, Some(Fact::new(id, what))))
            }
            _ if self.until.is_none_or(|until| until <= end) => {
                Some((Property::SteadyLeader, None))
            }
            _ => None,
        }
    }
}
