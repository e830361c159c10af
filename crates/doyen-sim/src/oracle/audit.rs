//! Keeps the books on votes, promises and leases: the invariants of the specification's section 5.5, after every event.
//!
//! | invariant | as a property |
//! |---|---|
//! | I1 at most one leader a term | one-leader-per-term, by the oracle itself |
//! | I2 at most one vote a term of a voter, ever | one-vote-a-term |
//! | I3 stored terms never fall | terms-never-fall, by the oracle itself |
//! | I4 at most one runs a lease at any instant | A4 |
//! | I5, I6, I8, I9 who has a lease may lead and was elected in its stored term; the terms of leases rise | leases-rise |
//! | I7 who has promised votes for nobody else until the time is over | promises-kept |
//! | I10 what a message depends on has been stored | stored-first |
//! | every lease is covered by a majority (7.9) | leases-covered, see `oracle/cover.rs` |
//!
//! I4 is taken in its strictest form. A deadline that has been published stands, whatever becomes of the leader, for
//! somebody may act on it, even if its process has died: nobody else may have a lease before it has passed, unless the
//! leader's host has said that everything is stopped.
//!
//! I2 outlives disks. But a member that votes for itself, reaches nobody and loses its disk has no vote in that term any
//! more: nobody else has stored the term, so nobody can tell it which, and the candidate that would count the vote is
//! gone. Should it stand in that term again, it votes as it did; should it vote for another, it does not stand in it, and
//! cannot win it. As soon as any other member has stored the term, the vote stands.

use std::collections::BTreeSet;

use doyen_core::algorithm::quorum::settings::Settings;
use doyen_core::members::{Epoch, Members, NodeId};
use doyen_core::protocol::Pledge;
use doyen_core::time::Span;

use super::cover::{Bound, Counted, Cover, Covered};
use crate::check::property::{Fact, Property};
use crate::hash::FastMap;
use crate::time::Time;

/// A breach: the property, and the facts that contradict each other.
pub(super) type Found = (Property, Vec<Fact>);

/// The books.
#[derive(Clone, Debug)]
pub(super) struct Audit {
    members: Members,
    /// Whose each second process is; they come behind the members.
    owners: Vec<u32>,
    settings: Settings,
    /// For whom each member voted in each term.
    votes: FastMap<(u32, Epoch), NodeId>,
    /// The length of the vote lease that each member has been asked for last.
    asked: Vec<Span>,
    /// What each member has promised last.
    promises: Vec<Option<Promised>>,
    /// The terms whose leaders have released their followers.
    released: Vec<Epoch>,
    /// Until when each member may act, as it was published last.
    published: Vec<Option<Published>>,
    cover: Cover,
    /// Whose lease was the last to begin, and in which term.
    last: Option<(u32, Epoch)>,
    /// Who led from the beginning: nobody voted for it.
    founder: Option<NodeId>,
}

#[derive(Clone, Copy, Debug)]
struct Promised {
    term: Epoch,
    /// No clock that keeps within the drift has counted the promised time before this.
    until: Time,
}

#[derive(Clone, Copy, Debug)]
struct Published {
    until: Time,
    /// The same by the slowest clock that is allowed.
    latest: Time,
    term: Epoch,
    /// It runs still.
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
            promises: vec![None; members.len()],
            released: Vec::new(),
            published: vec![None; members.len()],
            cover: Cover::new(members, settings),
            last: None,
            founder,
        }
    }

    fn id(&self, position: u32) -> NodeId {
        self.members.at(self.owner(position) as usize)
    }

    /// Whose process this is.
    fn owner(&self, position: u32) -> u32 {
        match (position as usize).checked_sub(self.members.len()) {
            None => position,
            Some(extra) => self.owners[extra],
        }
    }

    /// A second process of the member whose process is at `position` takes the next position. What the first has said binds
    /// it too.
    pub(super) fn add_process(&mut self, position: u32) {
        let owner = self.owner(position);
        let process = self.promises.len() as u32;
        self.owners.push(owner);
        let first = |&(&(voter, term), &vote): &(&(u32, Epoch), &NodeId)| {
            (voter == position).then_some(((process, term), vote))
        };
        let votes: Vec<((u32, Epoch), NodeId)> =
            self.votes.iter().filter_map(|it| first(&it)).collect();
        self.votes.extend(votes);
        self.asked.push(self.asked[position as usize]);
        self.promises.push(self.promises[position as usize]);
        self.published.push(None);
        self.cover.add_process(owner);
    }

    /// `from` has sent `to` a message that binds it; `stored` is what its disk holds.
    pub(super) fn pledge(
        &mut self,
        at: Time,
        from: u32,
        to: u32,
        pledge: Pledge,
        (term_stored, vote_stored): (Epoch, Option<NodeId>),
    ) -> Option<Found> {
        let (me, receiver) = (self.id(from), self.id(to));
        let (term, vote) = match pledge {
            Pledge::Candidacy { term } => (term, Some(me)),
            Pledge::Vote { term } => (term, Some(receiver)),
            Pledge::Promise { term } => {
                self.promise(at, from, term);
                (term, None)
            }
            Pledge::Release { term } => {
                self.released.push(term);
                (term, None)
            }
        };
        if let Some(found) = vote.and_then(|vote| self.vote(at, from, term, vote)) {
            return Some(found);
        }
        let stored = term_stored == term && (vote.is_none() || vote == vote_stored);
        (!stored).then(|| {
            let said = match vote {
                Some(vote) => format!("says that it has voted for {vote} in term {term}"),
                None => format!("speaks in term {term}"),
            };
            let vote = vote_stored.map_or("nobody".to_owned(), |id| id.to_string());
            let stored = format!("has stored term {term_stored}, with its vote for {vote}");
            (Property::StoredFirst, vec![Fact::new(me, stored), Fact::new(me, said)])
        })
    }

    /// A member is asked for a vote lease of this length, by a message that it handles now.
    pub(super) fn asked(&mut self, position: u32, length: Span) {
        self.asked[position as usize] = length;
    }

    fn promise(&mut self, at: Time, from: u32, term: Epoch) {
        let wait = self.asked[from as usize].as_nanos();
        let drift = self.settings.pace_of(self.id(from)).drift;
        let until = Counted { since: at, wait }.by_the_fastest(drift);
        let promise = &mut self.promises[from as usize];
        let before = promise.filter(|promise| promise.term == term);
        let until = before.map_or(until, |promise| promise.until.max(until));
        *promise = Some(Promised { term, until });
    }

    fn vote(&mut self, at: Time, from: u32, term: Epoch, vote: NodeId) -> Option<Found> {
        let me = self.id(from);
        let first = *self.votes.entry((from, term)).or_insert(vote);
        if first != vote {
            let facts = vec![
                Fact::new(me, format!("has voted for {first} in term {term}")),
                Fact::new(me, format!("votes for {vote} in term {term}")),
            ];
            return Some((Property::OneVoteATerm, facts));
        }
        let promised = self.promises[from as usize]?;
        let bound =
            promised.term < term && at < promised.until && !self.released.contains(&promised.term);
        bound.then(|| {
            let Promised { term: followed, until } = promised;
            let facts = vec![
                Fact::new(
                    me,
                    format!("follows the leader of term {followed}, as promised until {until}"),
                ),
                Fact::new(me, format!("votes for {vote} in term {term}")),
            ];
            (Property::PromisesKept, facts)
        })
    }

    /// The lease of a member, which leads in `term`, runs until another time than before.
    pub(super) fn lease(
        &mut self,
        at: Time,
        position: u32,
        lease: Option<(Time, Counted)>,
        term: Epoch,
        stored: Epoch,
    ) -> Option<Found> {
        let place = position as usize;
        let Some((until, counted)) = lease else {
            if let Some(published) = &mut self.published[place] {
                published.held = false;
            }
            return None;
        };
        let begins = !self.published[place].is_some_and(|published| published.held);
        let found = self.overlap(at, position, term);
        let latest = self.cover.end(position, counted);
        self.published[place] = Some(Published { until, latest, term, held: true });
        self.cover.lease_changed();
        let elected = if begins { self.begin(position, term, stored) } else { None };
        found.or(elected)
    }

    /// I4.
    fn overlap(&self, at: Time, position: u32, term: Epoch) -> Option<Found> {
        let id = self.id(position);
        let others = self.published.iter().enumerate();
        let mut running = others.filter_map(|(place, published)| {
            let published = (*published)?;
            (place != position as usize && at < published.until).then_some((place, published))
        });
        let (other, published) = running.next()?;
        let Published { until, term: theirs, held, .. } = published;
        let other = self.id(other as u32);
        let verb = if held { "leads" } else { "led" };
        let facts = vec![
            Fact::new(other, format!("{verb} in term {theirs}, under a lease until {until}")),
            Fact::new(id, format!("acts under a lease in term {term}")),
        ];
        Some((Property::OneLeader, facts))
    }

    /// I5, I6, I8: a lease begins. A witness never has one.
    fn begin(&mut self, position: u32, term: Epoch, stored: Epoch) -> Option<Found> {
        let id = self.id(position);
        let lease = Fact::new(id, format!("has a lease in term {term}"));
        let before = self.last.replace((position, term));
        let wrong = |member, what: String| {
            Some((Property::LeasesRise, vec![Fact::new(member, what), lease.clone()]))
        };
        if stored != term {
            return wrong(id, format!("has stored term {stored}"));
        }
        if let Some((other, earlier)) = before
            && (term, position) != (earlier, other)
            && term <= earlier
        {
            return wrong(self.id(other), format!("had a lease in term {earlier} before"));
        }
        if self.settings.witnesses.contains(id) {
            return wrong(id, "is a witness".to_owned());
        }
        let votes =
            self.votes.iter().filter(|&(&(_, voted), &for_whom)| voted == term && for_whom == id);
        // A member has one vote, however many processes.
        let voters: BTreeSet<u32> = votes.map(|(&(voter, _), _)| self.owner(voter)).collect();
        // One that is alone asks nobody, so nobody hears of its own vote.
        let alone = usize::from(self.members.len() == 1);
        let (votes, majority) = (voters.len() + alone, self.members.len() / 2 + 1);
        if votes < majority && !(self.founder == Some(id) && term == Epoch(1)) {
            return wrong(id, format!("has {votes} votes of {}", self.members.len()));
        }
        None
    }

    /// What binds a member may be something else than before.
    pub(super) fn bound(&mut self, position: u32, bound: Bound) {
        self.cover.change(position, bound);
    }

    /// A lease that runs and is not covered. One that has been published counts until its end, whatever becomes of its
    /// holder, unless that has given it up.
    pub(super) fn uncovered(&mut self, at: Time) -> Option<Found> {
        if !self.cover.is_due() {
            return None;
        }
        let published = (0..).zip(&self.published);
        let mut running = published.filter_map(|(holder, &published)| {
            let Published { until, latest, term, .. } = published?;
            (at < until).then_some(Covered { holder, term, end: latest })
        });
        let gap = running.find_map(|lease| self.cover.gap(&self.members, lease))?;
        Some((Property::LeasesCovered, gap))
    }

    /// A member has lost its disk; `known` is the latest term that any other has stored. What it voted for itself in
    /// later terms went with it.
    pub(super) fn disk_lost(&mut self, position: u32, known: Epoch) {
        let me = self.id(position);
        self.votes.retain(|&(voter, term), vote| voter != position || *vote != me || term <= known);
    }

    /// The clock of a member has changed, by which its deadline counts.
    pub(super) fn clock_changed(&mut self, at: Time, position: u32, moved: &dyn Fn(Time) -> Time) {
        if let Some(published) = &mut self.published[position as usize]
            && at < published.until
        {
            published.until = moved(published.until);
        }
    }

    /// A member comes up with a copy of its disk, which knows nothing of later vote leases.
    pub(super) fn disk_restored(&mut self, position: u32) {
        self.cover.excuse(position);
    }

    /// Everything has been stopped that ran under the lease of a member.
    pub(super) fn retired(&mut self, position: u32) {
        self.published[position as usize] = None;
    }
}
