//! Tells the [ledger](doyen_core::ledger) what it needs to judge votes, vote leases and leases of a run: the votes of every
//! term, the published deadlines, and how wrong clocks may be. These are the invariants of the specification's section 5.5,
//! after every event.
//!
//! | invariant | as a property |
//! |---|---|
//! | I1 at most one leader a term | one-leader-per-term, by the oracle itself |
//! | I2 at most one vote a term of a voter, ever | one-vote-per-term |
//! | I3 stored terms never fall | terms-never-fall |
//! | I4 at most one runs a lease at any instant | A4 |
//! | I5, I6, I8, I9 who has a lease may lead and was elected in its stored term; the terms of leases rise | leases-rise |
//! | I7 a member votes for no rival of its leader until its vote lease is over | vote-leases-kept |
//! | I10 what a message depends on has been stored | stored-first |
//! | every lease is covered by a majority (7.9) | leases-covered, see `oracle/cover.rs` |
//!
//! I4 is taken in its strictest form. A deadline that has been published counts, whatever happens to the leader, because
//! clients may act on it, even if the leader's process has died: no other member may have a lease before the deadline has
//! passed, unless the leader's host has reported that everything is stopped.
//!
//! I2 outlives disks. But a member that votes for itself, reaches no other member and loses its disk has no vote in that
//! term any more: no other member has stored the term, so none can name it, and the candidate that would count the vote is
//! gone. If it campaigns in that term again, it votes as before; if it votes for another member, it does not campaign in
//! the term, and cannot win it. As soon as any other member has stored the term, the vote counts.

use std::collections::BTreeSet;

use doyen_core::config::quorum::Settings;
use doyen_core::ledger::{self, Contradiction, Entry, Fact, Invariant, Tenure};
use doyen_core::members::{Members, NodeId, Term};
use doyen_core::protocol::{Bonds, Pledge};
use doyen_core::time::Span;

use super::cover::{Cover, by_the_fastest};
use doyen_sim::hash::FastMap;
use doyen_sim::monitor::Counted;
use doyen_sim::time::Time;

/// The known votes and leases.
#[derive(Clone, Debug)]
pub(super) struct Audit {
    members: Members,
    /// The member of each second process; second processes come after the members.
    owners: Vec<u32>,
    settings: Settings,
    /// The candidate that each member voted for in each term.
    votes: FastMap<(u32, Term), NodeId>,
    /// The length of the vote lease that each member has been asked for last.
    asked: Vec<Span>,
    /// The last published deadline of each member.
    published: Vec<Option<Published>>,
    cover: Cover,
    /// The member whose lease began last, and its term.
    last: Option<(u32, Term)>,
    /// The leader at the beginning, which was not elected.
    founder: Option<NodeId>,
}

#[derive(Clone, Copy, Debug)]
struct Published {
    lease: Tenure<Time>,
    /// Its end by the slowest clock that is allowed.
    latest: Time,
    /// Whether it still runs.
    held: bool,
}

impl Audit {
    pub(super) fn new(members: &Members, settings: &Settings, founder: Option<NodeId>) -> Self {
        Self {
            members: members.clone(),
            owners: Vec::new(),
            settings: settings.clone(),
            votes: FastMap::default(),
            asked: vec![Span::ZERO; members.len()],
            published: vec![None; members.len()],
            cover: Cover::new(members, settings),
            last: None,
            founder,
        }
    }

    fn id(&self, position: u32) -> NodeId {
        self.members.at(self.owner(position) as usize)
    }

    /// The member of which this is a process.
    fn owner(&self, position: u32) -> u32 {
        match (position as usize).checked_sub(self.members.len()) {
            None => position,
            Some(extra) => self.owners[extra],
        }
    }

    /// A second process of the member whose process is at `position` takes the next position. The messages of the first one
    /// bind it too.
    pub(super) fn add_process(&mut self, position: u32) {
        let owner = self.owner(position);
        let process = self.asked.len() as u32;
        self.owners.push(owner);
        let first = |&(&(voter, term), &vote): &(&(u32, Term), &NodeId)| {
            (voter == position).then_some(((process, term), vote))
        };
        let votes: Vec<((u32, Term), NodeId)> =
            self.votes.iter().filter_map(|it| first(&it)).collect();
        self.votes.extend(votes);
        self.asked.push(self.asked[position as usize]);
        self.published.push(None);
        self.cover.add_process(owner);
    }

    /// A process, at `from`, has sent `to` a message that binds it.
    pub(super) fn pledge(
        &mut self,
        at: Time,
        (from, entry): (u32, &mut Entry<Time>),
        to: u32,
        pledge: Pledge,
    ) -> impl Iterator<Item = Contradiction> + use<> {
        let to = self.id(to);
        if let Pledge::VoteLease { term } = pledge {
            let wait = self.asked[from as usize].as_nanos();
            let drift = self.settings.pace_of(entry.id).drift;
            // No clock within the drift has counted the time before that.
            entry.bind(term, by_the_fastest(Counted { since: at, wait }, drift));
        }
        let vote = pledge.vote(entry.id, to);
        let voted = vote.map(|vote| *self.votes.entry((from, pledge.term())).or_insert(vote));
        entry.send(at, to, pledge, voted)
    }

    /// The message that a member handles now requests a vote lease of this length.
    pub(super) fn asked(&mut self, position: u32, length: Span) {
        self.asked[position as usize] = length;
    }

    /// The lease of a process, which leads in `term`, has another deadline than before.
    pub(super) fn lease(
        &mut self,
        at: Time,
        (position, entry): (u32, &Entry<Time>),
        term: Term,
        lease: Option<(Time, Counted)>,
    ) -> Vec<Contradiction> {
        let place = position as usize;
        let Some((until, counted)) = lease else {
            if let Some(published) = &mut self.published[place] {
                published.held = false;
            }
            return Vec::new();
        };
        let others = (0..).zip(&self.published).filter(|&(other, _)| other != position);
        let others = others.filter_map(|(other, it)| Some((self.id(other), (*it)?.lease)));
        let overlap = ledger::overlap(at, entry.id, term, others);
        let begins = !self.published[place].is_some_and(|published| published.held);
        let latest = self.cover.end(position, counted);
        let lease = Tenure { term, until };
        self.published[place] = Some(Published { lease, latest, held: true });
        self.cover.lease_changed();
        let begun = if begins { self.begin(position, entry, term) } else { None };
        overlap.into_iter().chain(begun).collect()
    }

    /// I5, I6, I8: a lease begins. A witness never has one.
    fn begin(&mut self, position: u32, entry: &Entry<Time>, term: Term) -> Option<Contradiction> {
        let id = entry.id;
        let before = self.last.replace((position, term));
        let before = before.filter(|&before| before != (position, term));
        let before = before.map(|(other, earlier)| (self.id(other), earlier));
        let found = entry.lead(term).or_else(|| ledger::rises(id, term, before));
        if found.is_some() {
            return found;
        }
        if self.settings.witnesses.contains(id) {
            let facts = ["is a witness".to_owned(), format!("has a lease in term {term}")];
            let facts = facts.map(|what| Fact::new(id, what)).to_vec();
            return Some(Contradiction { invariant: Invariant::LeasesRise, facts });
        }
        if self.founder == Some(id) && term == Term(1) {
            return None;
        }
        let votes =
            self.votes.iter().filter(|&(&(_, voted), &for_whom)| voted == term && for_whom == id);
        // A member has one vote, however many processes.
        let voters: BTreeSet<u32> = votes.map(|(&(voter, _), _)| self.owner(voter)).collect();
        // A single member sends no vote request, so its own vote is not sent.
        let alone = usize::from(self.members.len() == 1);
        ledger::elected(id, term, voters.len() + alone, self.members.len())
    }

    /// What binds a member may have changed.
    pub(super) fn bonds(&mut self, position: u32, bonds: Bonds<Counted>) {
        self.cover.change(position, bonds);
    }

    /// A lease that runs and is not covered. One that has been published counts until its end, whatever becomes of its
    /// holder, unless that has given it up.
    pub(super) fn uncovered(&mut self, at: Time) -> Option<Contradiction> {
        if !self.cover.is_due() {
            return None;
        }
        let published = (0..).zip(&self.published);
        let mut running = published.filter_map(|(holder, published)| {
            let Published { lease, latest, .. } = (*published)?;
            (at < lease.until).then_some((holder, Tenure { until: latest, ..lease }))
        });
        running.find_map(|(holder, lease)| self.cover.gap(&self.members, holder, lease))
    }

    /// A member has lost its disk; `known` is the latest term that any other has stored. Its votes for itself in later
    /// terms are lost with the disk.
    pub(super) fn disk_lost(&mut self, position: u32, known: Term) {
        let me = self.id(position);
        self.votes.retain(|&(voter, term), vote| voter != position || *vote != me || term <= known);
    }

    /// The clock of a member has changed, and with it the time of its deadline.
    pub(super) fn clock_changed(&mut self, at: Time, position: u32, moved: &dyn Fn(Time) -> Time) {
        if let Some(published) = &mut self.published[position as usize]
            && at < published.lease.until
        {
            published.lease.until = moved(published.lease.until);
        }
    }

    /// A member comes up with a copy of its disk, which knows nothing of later vote leases.
    pub(super) fn disk_restored(&mut self, position: u32) {
        self.cover.excuse(position);
    }

    /// Everything is over that ran under the lease that a member had in `term`.
    pub(super) fn retired(&mut self, position: u32, term: Term) {
        self.published[position as usize].take_if(|published| published.lease.term == term);
    }
}
