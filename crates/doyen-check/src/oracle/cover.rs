//! Whether every lease is covered (specification 7.9): while it runs, a majority of the members, its holder included,
//! votes for no other before it is over. This judges the cause, not the collision: a lease that is not covered is a
//! violation even if there is no second candidate to make use of it.
//!
//! A member covers a lease by a vote lease of the same term, by the hold-down that it observes after a restart, or because
//! it cannot vote at all: it is down (and is judged by its hold-down when it comes up), it rejoins and has not heard from
//! every other member, or it has halted. The holder covers its lease as long as it does not vote while that runs.
//!
//! A member that has been replaced covers a lease by its present process as soon as that can vote, or observes the hold-down
//! before: by then no other member counts what an old process says. Until then the earlier process counts for the member.
//!
//! A member whose disk was restored from a copy is not judged: the copy knows nothing of later vote leases, and of no longer
//! ones, so hold-down cannot cover them. Others detect the old disk before it counts; the checks of votes and leases
//! themselves judge that.
//!
//! Times are computed with the worst clocks that are allowed, from the moment when each timer was armed: the lease by
//! the slowest, what covers it by the fastest.

use doyen_core::config::quorum::Settings;
use doyen_core::ledger::{self, Contradiction, Tenure};
use doyen_core::members::{Members, NodeId};
use doyen_core::protocol::Bonds;
use doyen_core::time::Span;

use doyen_sim::monitor::Counted;
use doyen_sim::time::Time;

/// When `counted` is over at the latest, if a clock may be wrong by `drift` thousandths.
pub(super) fn by_the_slowest(counted: Counted, drift: u32) -> Time {
    over(counted, 1000 - u128::from(drift.min(999)))
}

/// When `counted` is over at the earliest.
pub(super) fn by_the_fastest(counted: Counted, drift: u32) -> Time {
    over(counted, 1000 + u128::from(drift))
}

fn over(Counted { since, wait }: Counted, permille: u128) -> Time {
    let real = u128::from(wait) * 1000 / permille;
    since + Span::from_nanos(u64::try_from(real).unwrap_or(u64::MAX))
}

/// What binds every member.
#[derive(Clone, Debug)]
pub(super) struct Cover {
    /// The bindings of every member, and after them of every second process; each lasts at least until this time.
    bonds: Vec<Bonds<Time>>,
    drifts: Vec<u32>,
    /// The member of each process.
    owners: Vec<u32>,
    /// The processes of each member that may count for it, the present one first.
    processes: Vec<Vec<u32>>,
    /// The members whose disks were restored from copies.
    excused: Vec<u32>,
    /// Something has happened that may have left a lease uncovered.
    is_due: bool,
}

impl Cover {
    pub(super) fn new(members: &Members, settings: &Settings) -> Self {
        Self {
            bonds: vec![Bonds::NONE; members.len()],
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
        self.processes[owner as usize].insert(0, self.bonds.len() as u32);
        self.bonds.push(Bonds::DOWN);
        self.owners.push(owner);
        self.drifts.push(self.drifts[owner as usize]);
    }

    /// The process that counts for the member at `position`.
    fn speaker(&self, position: u32) -> u32 {
        let all = &self.processes[position as usize];
        let may_vote = |process: &&u32| !self.bonds[**process as usize].silenced;
        all.iter().find(may_vote).copied().unwrap_or(all[0])
    }

    pub(super) fn change(&mut self, position: u32, bonds: Bonds<Counted>) {
        let drift = self.drifts[position as usize];
        let bonds = bonds.map(|counted| by_the_fastest(counted, drift));
        let before = std::mem::replace(&mut self.bonds[position as usize], bonds);
        let all = &mut self.processes[self.owners[position as usize] as usize];
        if all.len() > 1
            && !bonds.silenced
            && let Some(place) = all.iter().position(|&process| process == position)
        {
            // Earlier processes no longer count, even if it goes down.
            self.is_due |= place + 1 < all.len();
            all.truncate(place + 1);
        }
        self.is_due |= !bonds.covers_as_much_as(&before);
    }

    /// A lease has begun or runs until another time.
    pub(super) fn lease_changed(&mut self) {
        self.is_due = true;
    }

    /// When a lease of this member that counts `counted` is over at the latest.
    pub(super) fn end(&self, position: u32, counted: Counted) -> Time {
        by_the_slowest(counted, self.drifts[position as usize])
    }

    /// Whether leases have to be judged now.
    pub(super) fn is_due(&mut self) -> bool {
        std::mem::take(&mut self.is_due)
    }

    /// The evidence that the lease of the process at `holder` is not covered; none if it is.
    pub(super) fn gap(
        &self,
        members: &Members,
        holder: u32,
        lease: Tenure<Time>,
    ) -> Option<Contradiction> {
        let bonds = |(position, id): (u32, NodeId)| {
            let speaker = self.speaker(position);
            let mut bonds = self.bonds[speaker as usize];
            bonds.silenced |= self.excused.contains(&speaker);
            bonds.own_lease = bonds.own_lease.filter(|_| speaker == holder);
            (id, bonds)
        };
        let all: Vec<(NodeId, Bonds<Time>)> = (0..).zip(members.iter()).map(bonds).collect();
        let holder = members.at(self.owners[holder as usize] as usize);
        ledger::uncovered(holder, lease, &all)
    }
}

#[cfg(test)]
mod tests {
    use doyen_core::members::Term;

    use super::*;

    fn bonds(term: u64, wait: u64) -> Bonds<Counted> {
        let vote_lease = Some((Term(term), Counted { since: Time(400), wait }));
        Bonds { vote_lease, ..Bonds::NONE }
    }

    #[test]
    fn what_covers_a_lease_is_counted_by_the_fastest_clock() {
        let members = Members::range(1, 3).unwrap();
        let mut cover = Cover::new(&members, &Settings::default());
        let own_lease = Some(Counted { since: Time(400), wait: 450 });
        cover.change(0, Bonds { own_lease, ..Bonds::NONE });
        let mut gap = |wait| {
            cover.change(1, bonds(4, wait));
            cover.gap(&members, 0, Tenure { term: Term(4), until: Time(900) })
        };
        assert_eq!(gap(550), None);
        let facts = gap(549).unwrap().facts;
        let may_vote = "2 may vote for another from 899ns on, when its vote lease is over";
        assert_eq!(facts[1].to_string(), may_vote);
    }

    #[test]
    fn leases_are_judged_again_only_when_a_member_is_bound_less_than_before() {
        let members = Members::range(1, 3).unwrap();
        let mut cover = Cover::new(&members, &Settings::default());
        cover.change(1, bonds(4, 100));
        cover.change(1, bonds(4, 200));
        assert!(!cover.is_due());
        cover.change(1, bonds(4, 190));
        assert!(cover.is_due() && !cover.is_due());
        cover.change(1, bonds(5, 300));
        assert!(cover.is_due());
    }
}
