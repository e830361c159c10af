//! The safety rules of elections with terms, votes and leases, and of [mutual exclusion](sections): one ledger for the
//! oracle, the checker and the replay.
//!
//! The oracle of a simulation, the checker and the replay of a recorded node all use these rules. They differ in what
//! they know, and pass that in:
//!
//! | rule | oracle | checker | replay of one node |
//! |---|---|---|---|
//! | stored terms never fall ([`Entry::store`]) | yes | yes | yes |
//! | one vote per term ([`Entry::store`], [`Entry::send`]) | every vote that was ever sent | the disk, and the last vote that was lost with one | the disk |
//! | a message leaves only in the stored term, and a vote only as stored ([`Entry::send`]) | yes | yes | yes |
//! | no candidate while elections are paused ([`Entry::send`]) | yes | yes | yes |
//! | vote leases are kept ([`Entry::send`]) | by the fastest clock | in ticks, where timers are bounded | by the node's own clock |
//! | a lease is in the stored term ([`Entry::lead`]), and terms of leases rise ([`rises`]) | yes | yes | its own leases |
//! | a leader was elected ([`elected`]) | all votes | what the disks show of votes | no: it does not know the votes of others |
//! | leases never overlap ([`overlap`]) | yes | yes | between traces of one machine |
//! | a majority covers every lease ([`Bonds::covers`], [`uncovered`]) | by the worst clocks | at every tick | no |
//!
//! Times are opaque: virtual time, remaining ticks, or time since boot. A caller whose clocks may be off passes the end
//! of a lease by the slowest clock, and the end of a vote lease or of a hold-down by the fastest.
//!
//! The callers check themselves that no two members lead in the same term: the history that this needs is part of the
//! checker's states, and the oracle also checks it for algorithms that have no votes.

pub mod sections;

use std::fmt::{self, Display};

use crate::members::{NodeId, Term};
use crate::protocol::{Bonds, Durable, Pledge};

/// A rule that must hold at every moment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Invariant {
    /// The term that a member has stored never falls.
    TermsNeverFall,
    /// A member votes once per term, ever.
    OneVotePerTerm,
    /// A member votes for no rival of a leader until its vote lease is over.
    VoteLeasesKept,
    /// A member that has stored a pause campaigns only as the successor of a leader that transferred leadership.
    PausesKept,
    /// What a message depends on has been stored before it leaves.
    StoredFirst,
    /// A leader was elected, in a later term than any leader before.
    LeasesRise,
    /// At most one lease runs at any moment.
    OneLease,
    /// While a lease runs, a majority votes for no rival.
    LeasesCovered,
    /// At most one member is in the critical section at any moment.
    OneInside,
    /// Of two entries the later has the larger fence.
    FencesRise,
    /// A member enters only while it waits.
    EnteredByRequest,
    /// At most one token of a generation is held or under way.
    OneToken,
    /// Of two requests the one that happened before the other enters first.
    CausalOrder,
    /// No member enters more often than its algorithm allows while another one waits.
    BoundedBypass,
}

/// A fact about a member, as evidence of a violation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fact {
    /// The member.
    pub member: NodeId,
    /// The predicate of a sentence whose subject is the member.
    pub what: String,
}

impl Fact {
    /// The fact that `member` does or has `what`.
    pub fn new(member: NodeId, what: impl Into<String>) -> Self {
        Self { member, what: what.into() }
    }
}

impl Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.member, self.what)
    }
}

/// A violated invariant, and the facts that together contradict it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contradiction {
    /// The violated invariant.
    pub invariant: Invariant,
    /// The contradicting facts.
    pub facts: Vec<Fact>,
}

impl Contradiction {
    fn new<const N: usize>(invariant: Invariant, facts: [(NodeId, String); N]) -> Self {
        let facts = facts.into_iter().map(|(member, what)| Fact::new(member, what)).collect();
        Self { invariant, facts }
    }
}

/// What a disk shows of votes: the term, and the vote in that term; and whether elections are paused.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stored {
    /// The highest term that was stored; zero if none was.
    pub term: Term,
    /// The vote in that term.
    pub vote: Option<NodeId>,
    /// Whether elections are paused.
    pub paused: bool,
}

impl Stored {
    /// Reads this disk.
    pub fn on<D: Durable>(disk: Option<&D>) -> Self {
        disk.map_or_else(Self::default, |disk| Self {
            term: disk.term(),
            vote: disk.vote(),
            paused: disk.is_paused(),
        })
    }
}

impl Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "term {}, ", self.term)?;
        match self.vote {
            Some(vote) => write!(f, "and its vote for {vote}"),
            None => write!(f, "and no vote"),
        }?;
        if self.paused { f.write_str(", and that elections are paused") } else { Ok(()) }
    }
}

/// A lease or a vote lease: its term, and its end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tenure<T> {
    /// The term of the leader.
    pub term: Term,
    /// The end.
    pub until: T,
}

/// What the ledger records of one process: what it has stored, and what binds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<T> {
    /// The member whose process it is.
    pub id: NodeId,
    /// What its disk holds.
    pub stored: Stored,
    /// The vote lease that it gave last, whether the process itself remembers it or not.
    pub vote_lease: Option<Tenure<T>>,
}

impl<T: Copy + Ord + Display> Entry<T> {
    /// A member that has stored nothing and has given no vote lease.
    pub fn new(id: NodeId) -> Self {
        Self { id, stored: Stored::default(), vote_lease: None }
    }

    /// The process stores `next`: a term never falls, and the vote in a term never changes.
    pub fn store(&mut self, next: Stored) -> Option<Contradiction> {
        let before = std::mem::replace(&mut self.stored, next);
        let invariant = match () {
            () if next.term < before.term => Invariant::TermsNeverFall,
            () if next.term > before.term || before.vote.is_none() || next.vote == before.vote => {
                return None;
            }
            () => Invariant::OneVotePerTerm,
        };
        let facts = [format!("had stored {before}"), format!("stores {next} over it")];
        Some(Contradiction::new(invariant, facts.map(|fact| (self.id, fact))))
    }

    /// The process sends `to` a message that commits it. The message must agree with what is stored at that moment: the
    /// term, and the vote. `voted` is the vote in the same term that it is known to have sent before.
    pub fn send(
        &self,
        now: T,
        to: NodeId,
        pledge: Pledge,
        voted: Option<NodeId>,
    ) -> impl Iterator<Item = Contradiction> + use<T> {
        let Self { id, stored, vote_lease } = *self;
        let (term, vote) = (pledge.term(), pledge.vote(id, to));
        let contradiction = move |invariant, fact: String| {
            let says = match vote {
                Some(vote) => format!("tells {to} that it votes for {vote} in term {term}"),
                None => format!("speaks to {to} in term {term}"),
            };
            Contradiction::new(invariant, [(id, fact), (id, says)])
        };
        let second = voted.filter(|&first| vote.is_some_and(|vote| vote != first)).map(|first| {
            contradiction(
                Invariant::OneVotePerTerm,
                format!("has voted for {first} in term {term}"),
            )
        });
        let binds = |lease: &Tenure<T>| vote.is_some() && lease.term < term && now < lease.until;
        let unfaithful = vote_lease.filter(binds).map(|Tenure { term, until }| {
            let lease = format!("has given the leader of term {term} a vote lease until {until}");
            contradiction(Invariant::VoteLeasesKept, lease)
        });
        let campaigns = matches!(pledge, Pledge::Candidacy { succeeds: false, .. });
        let impatient = (stored.paused && campaigns)
            .then(|| contradiction(Invariant::PausesKept, format!("has stored {stored}")));
        let is_stored = stored.term == term && (vote.is_none() || stored.vote == vote);
        let unstored = (!is_stored)
            .then(|| contradiction(Invariant::StoredFirst, format!("has stored {stored}")));
        [second, unfaithful, impatient, unstored].into_iter().flatten()
    }

    /// The process gives the leader of `term` a vote lease. A shorter one does not shorten a longer one of the same
    /// leader.
    pub fn bind(&mut self, term: Term, until: T) {
        let before = self.vote_lease.filter(|lease| lease.term == term).map(|lease| lease.until);
        let until = before.map_or(until, |before| before.max(until));
        self.vote_lease = Some(Tenure { term, until });
    }

    /// The process learns that the leader of `term` has released all vote leases.
    pub fn release(&mut self, term: Term) {
        self.vote_lease.take_if(|lease| lease.term == term);
    }

    /// The process leads in `term`, under a lease: that is the term which it has stored.
    pub fn lead(&self, term: Term) -> Option<Contradiction> {
        let Self { id, stored, .. } = *self;
        (stored.term != term).then(|| {
            let facts = [(id, format!("has stored {stored}")), has_lease(id, term)];
            Contradiction::new(Invariant::LeasesRise, facts)
        })
    }

    /// Whether the process may have voted for `leader` in `term`, as far as its disk shows: if it has stored a later
    /// term, its vote in this one is unknown.
    pub fn may_have_voted(&self, leader: NodeId, term: Term) -> bool {
        let Stored { term: latest, vote, .. } = self.stored;
        latest > term || (latest, vote) == (term, Some(leader))
    }
}

impl Pledge {
    /// The term of the commitment.
    pub fn term(self) -> Term {
        match self {
            Self::Candidacy { term, .. }
            | Self::Vote { term }
            | Self::VoteLease { term }
            | Self::Release { term } => term,
        }
    }

    /// The member for which the sender states its vote in that term. A candidate votes for itself.
    pub fn vote(self, from: NodeId, to: NodeId) -> Option<NodeId> {
        match self {
            Self::Candidacy { .. } => Some(from),
            Self::Vote { .. } => Some(to),
            Self::VoteLease { .. } | Self::Release { .. } => None,
        }
    }
}

/// How many of `members` are a majority.
pub const fn majority(members: usize) -> usize {
    members / 2 + 1
}

/// `leader` leads in `term`, after another process, `before`, has led: the terms of leaders rise.
pub fn rises(leader: NodeId, term: Term, before: Option<(NodeId, Term)>) -> Option<Contradiction> {
    let (other, earlier) = before.filter(|&(_, earlier)| term <= earlier)?;
    let facts = [(other, format!("had a lease in term {earlier} before")), has_lease(leader, term)];
    Some(Contradiction::new(Invariant::LeasesRise, facts))
}

/// `leader` leads in `term`, for which this many of all members have voted, or may have voted as far as is known.
pub fn elected(leader: NodeId, term: Term, votes: usize, members: usize) -> Option<Contradiction> {
    (votes < majority(members)).then(|| {
        let facts = [(leader, format!("has {votes} votes of {members}")), has_lease(leader, term)];
        Contradiction::new(Invariant::LeasesRise, facts)
    })
}

/// `holder` has a lease in `term`. A published deadline remains valid, whatever happens to its leader: a program may
/// act on it, unless the leader's host has reported that everything is stopped. So no lease of `others` may still run.
pub fn overlap<T: Copy + Ord + Display>(
    now: T,
    holder: NodeId,
    term: Term,
    others: impl IntoIterator<Item = (NodeId, Tenure<T>)>,
) -> Option<Contradiction> {
    let (other, lease) = others.into_iter().find(|(_, lease)| now < lease.until)?;
    let runs = format!("has a lease in term {} until {}", lease.term, lease.until);
    Some(Contradiction::new(Invariant::OneLease, [(other, runs), has_lease(holder, term)]))
}

fn has_lease(holder: NodeId, term: Term) -> (NodeId, String) {
    (holder, format!("has a lease in term {term}"))
}

impl<T: Copy + Ord> Bonds<T> {
    /// Whether it keeps a member from voting for a rival as long as this lease runs. A member's own lease counts only
    /// for the holder of the lease: leave it out for others.
    pub fn covers(&self, lease: Tenure<T>) -> bool {
        self.silenced
            || self.own_lease.is_some()
            || self.vote_lease.is_some_and(|(term, end)| term == lease.term && end >= lease.until)
            || self.hold_down.is_some_and(|end| end >= lease.until)
    }

    /// Whether it covers every lease that `before` covers.
    pub fn covers_as_much_as(&self, before: &Self) -> bool {
        let vote_lease = before.vote_lease.is_none_or(|(term, until)| {
            self.vote_lease.is_some_and(|(now, then)| now == term && then >= until)
        });
        vote_lease
            && self.hold_down >= before.hold_down
            && self.own_lease.is_some() >= before.own_lease.is_some()
            && self.silenced >= before.silenced
    }
}

/// `holder` has a `lease`, and these are the bonds of all members: a majority must cover it.
pub fn uncovered<T: Copy + Ord + Display>(
    holder: NodeId,
    lease: Tenure<T>,
    members: &[(NodeId, Bonds<T>)],
) -> Option<Contradiction> {
    let is_free = |(_, bonds): &&(NodeId, Bonds<T>)| !bonds.covers(lease);
    if members.len() - members.iter().filter(is_free).count() >= majority(members.len()) {
        return None;
    }
    let leads = format!("has a lease in term {}, which may last until {}", lease.term, lease.until);
    let free = members.iter().filter(is_free).map(|(member, bonds)| {
        let what = match (bonds.vote_lease, bonds.hold_down) {
            (Some((term, end)), _) if term == lease.term => {
                format!("may vote for another from {end} on, when its vote lease is over")
            }
            (_, Some(end)) => {
                format!("may vote for another from {end} on, when its hold-down is over")
            }
            (Some((term, _)), None) => format!("has a vote lease of term {term}, not of this one"),
            (None, None) => "may vote for another now".to_owned(),
        };
        Fact::new(*member, what)
    });
    let facts = std::iter::once(Fact::new(holder, leads)).chain(free).collect();
    Some(Contradiction { invariant: Invariant::LeasesCovered, facts })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: NodeId = NodeId(1);
    const OTHER: NodeId = NodeId(2);

    fn stored(term: u64, vote: Option<NodeId>) -> Stored {
        Stored { term: Term(term), vote, paused: false }
    }

    fn entry(term: u64, vote: Option<NodeId>) -> Entry<u64> {
        Entry { stored: stored(term, vote), ..Entry::new(ME) }
    }

    fn broken(contradictions: impl IntoIterator<Item = Contradiction>) -> Vec<Invariant> {
        contradictions.into_iter().map(|it| it.invariant).collect()
    }

    fn sent(entry: &Entry<u64>, pledge: Pledge, voted: Option<NodeId>) -> Vec<Invariant> {
        broken(entry.send(10, OTHER, pledge, voted))
    }

    #[test]
    fn terms_rise_and_votes_stay() {
        let mut entry = entry(3, Some(OTHER));
        assert_eq!(entry.store(stored(3, Some(OTHER))), None);
        assert_eq!(broken(entry.store(stored(3, Some(ME)))), [Invariant::OneVotePerTerm]);
        assert_eq!(broken(entry.store(stored(3, None))), [Invariant::OneVotePerTerm]);
        assert_eq!(entry.store(stored(3, Some(OTHER))), None);
        assert_eq!(entry.store(stored(5, None)), None);
        assert_eq!(broken(entry.store(stored(4, Some(ME)))), [Invariant::TermsNeverFall]);
    }

    #[test]
    fn a_vote_leaves_only_as_it_is_stored_at_that_moment() {
        let vote = |term| Pledge::Vote { term: Term(term) };
        let stored_first = [Invariant::StoredFirst];
        assert_eq!(sent(&entry(4, Some(OTHER)), vote(4), None), []);
        assert_eq!(sent(&entry(4, Some(ME)), vote(4), None), stored_first);
        assert_eq!(sent(&entry(3, Some(OTHER)), vote(4), None), stored_first);
        assert_eq!(sent(&entry(5, Some(OTHER)), vote(4), None), stored_first, "an older term");
        assert_eq!(sent(&entry(4, Some(OTHER)), vote(4), Some(ME)), [Invariant::OneVotePerTerm]);
        let candidacy = Pledge::Candidacy { term: Term(4), succeeds: false };
        assert_eq!(sent(&entry(4, Some(ME)), candidacy, None), []);
        assert_eq!(sent(&entry(4, Some(OTHER)), candidacy, None), stored_first);
        for pledge in [Pledge::VoteLease { term: Term(4) }, Pledge::Release { term: Term(4) }] {
            assert_eq!(sent(&entry(4, None), pledge, None), []);
            assert_eq!(sent(&entry(5, None), pledge, None), stored_first);
        }
    }

    #[test]
    fn while_elections_are_paused_members_campaign_only_after_a_transfer() {
        let mut entry = entry(4, Some(ME));
        entry.stored.paused = true;
        let candidacy = |succeeds| Pledge::Candidacy { term: Term(4), succeeds };
        assert_eq!(sent(&entry, candidacy(false), None), [Invariant::PausesKept]);
        assert_eq!(sent(&entry, candidacy(true), None), []);
        assert_eq!(sent(&entry, Pledge::VoteLease { term: Term(4) }, None), []);
        entry.stored.paused = false;
        assert_eq!(sent(&entry, candidacy(false), None), []);
    }

    #[test]
    fn a_vote_lease_is_kept_until_it_is_over_or_released() {
        let vote = Pledge::Vote { term: Term(4) };
        let mut entry = entry(4, Some(OTHER));
        entry.bind(Term(3), 11);
        entry.bind(Term(3), 9);
        assert_eq!(sent(&entry, vote, None), [Invariant::VoteLeasesKept]);
        entry.release(Term(2));
        assert_eq!(sent(&entry, vote, None), [Invariant::VoteLeasesKept]);
        entry.release(Term(3));
        assert_eq!(sent(&entry, vote, None), []);
        entry.bind(Term(3), 10);
        assert_eq!(sent(&entry, vote, None), [], "it is over");
        entry.bind(Term(4), 99);
        assert_eq!(sent(&entry, vote, None), [], "the leader of the same term is no rival");
    }

    #[test]
    fn leases_are_in_the_stored_term_rise_are_elected_and_do_not_overlap() {
        assert_eq!(entry(4, None).lead(Term(4)), None);
        assert_eq!(broken(entry(5, None).lead(Term(4))), [Invariant::LeasesRise]);
        assert_eq!(rises(ME, Term(4), Some((OTHER, Term(3)))), None);
        assert_eq!(broken(rises(ME, Term(4), Some((OTHER, Term(4))))), [Invariant::LeasesRise]);
        assert_eq!(elected(ME, Term(4), 2, 3), None);
        assert_eq!(broken(elected(ME, Term(4), 2, 4)), [Invariant::LeasesRise]);
        let other = |until| [(OTHER, Tenure { term: Term(3), until })];
        assert_eq!(overlap(10, ME, Term(4), other(10)), None);
        assert_eq!(broken(overlap(10, ME, Term(4), other(11))), [Invariant::OneLease]);
    }

    #[test]
    fn votes_before_a_later_term_are_unknown() {
        assert!(entry(4, Some(OTHER)).may_have_voted(OTHER, Term(4)));
        assert!(!entry(4, Some(ME)).may_have_voted(OTHER, Term(4)));
        assert!(!entry(3, Some(OTHER)).may_have_voted(OTHER, Term(4)));
        assert!(entry(5, None).may_have_voted(OTHER, Term(4)));
    }

    /// Three members, of which the first holds a lease of term 4 that may last until 900.
    fn gap(second: Bonds<u64>) -> Option<Vec<String>> {
        let holder = Bonds { own_lease: Some(0), ..Bonds::NONE };
        let members = [(ME, holder), (OTHER, second), (NodeId(3), Bonds::NONE)];
        let gap = uncovered(ME, Tenure { term: Term(4), until: 900 }, &members)?;
        Some(gap.facts.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_vote_lease_of_the_term_covers_if_it_lasts_long_enough() {
        let vote_lease =
            |term, until| Bonds { vote_lease: Some((Term(term), until)), ..Bonds::NONE };
        assert_eq!(gap(vote_lease(4, 900)), None);
        assert_eq!(
            gap(vote_lease(4, 899)).unwrap(),
            [
                "1 has a lease in term 4, which may last until 900",
                "2 may vote for another from 899 on, when its vote lease is over",
                "3 may vote for another now",
            ]
        );
        assert_eq!(
            gap(vote_lease(5, 9000)).unwrap()[1],
            "2 has a vote lease of term 5, not of this one"
        );
    }

    #[test]
    fn hold_down_covers_and_so_does_one_that_cannot_vote() {
        let hold_down = |until| Bonds { hold_down: Some(until), ..Bonds::NONE };
        assert_eq!(gap(hold_down(900)), None);
        assert_eq!(gap(Bonds { silenced: true, ..Bonds::NONE }), None);
        assert!(gap(hold_down(899)).is_some() && gap(Bonds::NONE).is_some());
        assert!(hold_down(3).covers_as_much_as(&hold_down(3)));
        assert!(!hold_down(2).covers_as_much_as(&hold_down(3)));
        assert!(!Bonds::NONE.covers_as_much_as(&hold_down(0)));
    }
}
