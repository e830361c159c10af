//! Whether every lease is covered (specification 7.9): while it runs, a majority of the members, its holder included,
//! votes for no other before it is over. Judged is the cause, not the collision: a lease that is not covered breaks this
//! even if no second candidate is there to make use of it.
//!
//! A member covers a lease by a vote lease of the same term, by the hold-down that it observes after a restart, or because
//! it cannot vote at all: it is down (and is judged by its hold-down when it comes up), it rejoins and has not heard from
//! every other member, or it has halted. The holder covers its lease as long as it does not vote while that runs.
//!
//! A member that has been replaced covers a lease by its present process as soon as that can vote, or observes the hold-down
//! before: by then no other member counts what an old process says. Until then the process before it speaks for the member.
//!
//! A member whose disk was restored from a copy is not judged: the copy knows nothing of later vote leases, and of no longer
//! ones, so hold-down cannot cover them. That nothing comes of it, because others find the old disk before it counts, is
//! judged by votes and leases themselves.
//!
//! Times are reckoned by the worst clocks that are allowed, from the moment when each timer was armed: the lease by the
//! slowest, what covers it by the fastest.

use doyen_core::algorithm::quorum::settings::Settings;
use doyen_core::members::{Epoch, Members, NodeId};
use doyen_core::time::Span;

use crate::check::property::Fact;
use crate::time::Time;

/// A time that a member counts by its own clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Counted {
    pub(crate) since: Time,
    /// In nanoseconds of that clock.
    pub(crate) wait: u64,
}

impl Counted {
    /// When it is over at the latest, if a clock may be wrong by `drift` thousandths.
    pub(super) fn by_the_slowest(self, drift: u32) -> Time {
        self.over(1000 - u128::from(drift.min(999)))
    }

    /// When it is over at the earliest.
    pub(super) fn by_the_fastest(self, drift: u32) -> Time {
        self.over(1000 + u128::from(drift))
    }

    fn over(self, permille: u128) -> Time {
        let real = u128::from(self.wait) * 1000 / permille;
        self.since + Span::from_nanos(u64::try_from(real).unwrap_or(u64::MAX))
    }
}

/// What binds a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bound {
    /// Its vote lease, of which term.
    pub(crate) vote_lease: Option<(Epoch, Counted)>,
    pub(crate) hold_down: Option<Counted>,
    /// It votes for no other because its own lease runs.
    pub(crate) own_lease: bool,
    /// It cannot vote at all.
    pub(crate) silenced: bool,
}

impl Bound {
    const FREE: Self =
        Self { vote_lease: None, hold_down: None, own_lease: false, silenced: false };
    /// One that is down votes for no one; what it observes when it comes up is judged then.
    pub(crate) const DOWN: Self = Self { silenced: true, ..Self::FREE };

    /// Whether all that was covered `before` is covered still.
    fn covers_as_much_as(&self, before: &Self) -> bool {
        let end = |counted: Counted| counted.by_the_fastest(0);
        let vote_lease = before.vote_lease.is_none_or(|(term, until)| {
            self.vote_lease.is_some_and(|(now, then)| now == term && end(then) >= end(until))
        });
        let hold_down = before
            .hold_down
            .is_none_or(|until| self.hold_down.is_some_and(|then| end(then) >= end(until)));
        vote_lease
            && hold_down
            && self.own_lease >= before.own_lease
            && self.silenced >= before.silenced
    }
}

/// A lease that runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Covered {
    pub(super) holder: u32,
    pub(super) term: Epoch,
    /// When it is over at the latest.
    pub(super) end: Time,
}

/// What binds every member.
#[derive(Clone, Debug)]
pub(super) struct Cover {
    /// Of every member, and behind them of every second process.
    bounds: Vec<Bound>,
    drifts: Vec<u32>,
    /// Whose each process is.
    owners: Vec<u32>,
    /// The processes of each member that may speak for it, the present one first.
    processes: Vec<Vec<u32>>,
    /// Whose disk was restored from a copy.
    excused: Vec<u32>,
    /// Something has happened that may have left a lease uncovered.
    is_due: bool,
}

impl Cover {
    pub(super) fn new(members: &Members, settings: &Settings) -> Self {
        Self {
            bounds: vec![Bound::FREE; members.len()],
            drifts: members.iter().map(|id| settings.pace_of(id).drift).collect(),
            owners: (0..members.len() as u32).collect(),
            processes: (0..members.len() as u32).map(|position| vec![position]).collect(),
            excused: Vec::new(),
            is_due: false,
        }
    }

    /// The process at `position` runs on a disk that was restored from a copy.
    pub(super) fn excuse(&mut self, position: u32) {
        self.excused.push(position);
    }

    /// The next position is that of a second process of the member at `owner`.
    pub(super) fn add_process(&mut self, owner: u32) {
        self.processes[owner as usize].insert(0, self.bounds.len() as u32);
        self.bounds.push(Bound::DOWN);
        self.owners.push(owner);
        self.drifts.push(self.drifts[owner as usize]);
    }

    /// The process that speaks for the member at `position`.
    fn speaker(&self, position: u32) -> u32 {
        let all = &self.processes[position as usize];
        let may_vote = |process: &&u32| !self.bounds[**process as usize].silenced;
        all.iter().find(may_vote).copied().unwrap_or(all[0])
    }

    pub(super) fn change(&mut self, position: u32, bound: Bound) {
        let before = std::mem::replace(&mut self.bounds[position as usize], bound);
        let all = &mut self.processes[self.owners[position as usize] as usize];
        if all.len() > 1
            && !bound.silenced
            && let Some(place) = all.iter().position(|&process| process == position)
        {
            // Nobody counts those before it any more, even if it goes down.
            self.is_due |= place + 1 < all.len();
            all.truncate(place + 1);
        }
        self.is_due |= !bound.covers_as_much_as(&before);
    }

    /// A lease has begun or runs until another time.
    pub(super) fn lease_changed(&mut self) {
        self.is_due = true;
    }

    /// When a lease of this member that counts `counted` is over at the latest.
    pub(super) fn end(&self, position: u32, counted: Counted) -> Time {
        counted.by_the_slowest(self.drifts[position as usize])
    }

    /// Whether leases have to be judged now.
    pub(super) fn is_due(&mut self) -> bool {
        std::mem::take(&mut self.is_due)
    }

    /// The facts that show that this lease is not covered, unless it is.
    pub(super) fn gap(&self, members: &Members, lease: Covered) -> Option<Vec<Fact>> {
        let covers = |&position: &u32| self.covers(self.speaker(position), lease);
        let everybody = 0..members.len() as u32;
        let majority = members.len() / 2 + 1;
        if everybody.clone().filter(covers).count() >= majority {
            return None;
        }
        let Covered { holder, term, end } = lease;
        let id = |process: u32| members.at(self.owners[process as usize] as usize);
        let leads = format!("has a lease in term {term}, which may last until {end}");
        let free = everybody.filter(|position| !covers(position));
        let free = free.map(|position| self.why_not(self.speaker(position), id(position), lease));
        Some(std::iter::once(Fact::new(id(holder), leads)).chain(free).collect())
    }

    fn covers(&self, position: u32, lease: Covered) -> bool {
        let bound = &self.bounds[position as usize];
        let until =
            |counted: Counted| counted.by_the_fastest(self.drifts[position as usize]) >= lease.end;
        bound.silenced
            || self.excused.contains(&position)
            || position == lease.holder && bound.own_lease
            || bound.vote_lease.is_some_and(|(term, end)| term == lease.term && until(end))
            || bound.hold_down.is_some_and(until)
    }

    fn why_not(&self, position: u32, id: NodeId, lease: Covered) -> Fact {
        let Bound { vote_lease, hold_down, .. } = self.bounds[position as usize];
        let until = |counted: Counted| counted.by_the_fastest(self.drifts[position as usize]);
        let what = match (vote_lease, hold_down) {
            (Some((term, end)), _) if term == lease.term => {
                format!("may vote for another from {} on, when its vote lease is over", until(end))
            }
            (_, Some(end)) => {
                format!("may vote for another from {} on, when its hold-down is over", until(end))
            }
            (Some((term, _)), None) => format!("has a vote lease of term {term}, not of this one"),
            (None, None) => "may vote for another now".to_owned(),
        };
        Fact::new(id, what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERM: Epoch = Epoch(4);

    fn counted(since: u64, wait: u64) -> Counted {
        Counted { since: Time(since), wait }
    }

    /// Three members, of which the first holds a lease that may last until 900.
    fn cover(second: Bound) -> Option<Vec<String>> {
        let members = Members::range(1, 3).unwrap();
        let mut cover = Cover::new(&members, &Settings::default());
        cover.change(0, Bound { own_lease: true, ..Bound::FREE });
        cover.change(1, second);
        let lease = Covered { holder: 0, term: TERM, end: Time(900) };
        let gap = cover.gap(&members, lease)?;
        Some(gap.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_vote_lease_of_the_term_covers_if_the_fastest_clock_counts_it_long_enough() {
        let vote_lease =
            |term, wait| Bound { vote_lease: Some((term, counted(400, wait))), ..Bound::FREE };
        assert_eq!(cover(vote_lease(TERM, 550)), None);
        assert_eq!(
            cover(vote_lease(TERM, 549)).unwrap(),
            [
                "1 has a lease in term 4, which may last until 900ns",
                "2 may vote for another from 899ns on, when its vote lease is over",
                "3 may vote for another now",
            ]
        );
        let later = cover(vote_lease(Epoch(5), 10_000)).unwrap();
        assert_eq!(later[1], "2 has a vote lease of term 5, not of this one");
    }

    #[test]
    fn hold_down_covers_and_so_does_one_that_cannot_vote() {
        let hold_down = |wait| Bound { hold_down: Some(counted(400, wait)), ..Bound::FREE };
        assert_eq!((cover(hold_down(550)), cover(Bound::DOWN)), (None, None));
        assert!(cover(hold_down(549)).is_some() && cover(Bound::FREE).is_some());
    }

    #[test]
    fn leases_are_judged_again_only_when_a_member_is_bound_less_than_before() {
        let members = Members::range(1, 3).unwrap();
        let mut cover = Cover::new(&members, &Settings::default());
        let bound =
            |term, wait| Bound { vote_lease: Some((term, counted(0, wait))), ..Bound::FREE };
        cover.change(1, bound(TERM, 10));
        cover.change(1, bound(TERM, 20));
        assert!(!cover.is_due());
        cover.change(1, bound(TERM, 19));
        assert!(cover.is_due() && !cover.is_due());
        cover.change(1, bound(Epoch(5), 30));
        assert!(cover.is_due());
    }
}
