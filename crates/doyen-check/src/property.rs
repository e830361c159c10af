//! What is checked, in words.
//!
//! Some properties are about the *views*, which are what each live member believes: at every instant, or where a run
//! ends. The others are about what no single step may do, be it to a disk, in a message or by leading; for the explorer
//! `check/local.rs` and `check/model/worker.rs` find them, for random runs the oracle does.

use std::fmt;
use std::str::FromStr;

pub use doyen_core::ledger::Fact;
use doyen_core::ledger::Invariant;
use doyen_core::members::{Members, NodeId};
use doyen_core::protocol::{Role, View};
use doyen_core::registry::Algorithm;

use crate::rules::Timers;
use crate::search::space::Claim;

/// Something that an election should have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Property {
    /// A1.
    Agreement,
    /// A2.
    Validity,
    /// A3.
    Termination,
    /// A4.
    OneLeader,
    /// At most one leader a term, ever.
    OneLeaderPerTerm,
    /// What a member has stored of terms never falls.
    TermsNeverFall,
    /// I2: a member votes once a term, ever.
    OneVotePerTerm,
    /// I7: who has promised to follow a leader votes for nobody else until the time is over.
    VoteLeasesKept,
    /// I5, I6, I8: who has a lease was elected, in a term later than any before.
    LeasesRise,
    /// I10: what a message depends on has been stored before it quotas.
    StoredFirst,
    /// Every lease is covered by a majority that votes for no other until it is over.
    LeasesCovered,
    /// While faults last that leave a majority connected, somebody has a lease in time.
    LeaderInTime,
    /// And then the leader changes no more.
    SteadyLeader,
    /// No message grows without bound.
    BoundedMessages,
    /// No term rises beyond what the faults of a run can account for.
    BoundedTerms,
    /// cs425's safety, as written.
    Safety004,
    /// cs425's liveness, as written.
    Liveness004,
}

impl From<Invariant> for Property {
    fn from(invariant: Invariant) -> Self {
        match invariant {
            Invariant::TermsNeverFall => Self::TermsNeverFall,
            Invariant::OneVotePerTerm => Self::OneVotePerTerm,
            Invariant::VoteLeasesKept => Self::VoteLeasesKept,
            Invariant::StoredFirst => Self::StoredFirst,
            Invariant::LeasesRise => Self::LeasesRise,
            Invariant::OneLease => Self::OneLeader,
            Invariant::LeasesCovered => Self::LeasesCovered,
        }
    }
}

impl Property {
    /// Every property.
    pub const ALL: [Self; 17] = [
        Self::Agreement,
        Self::Validity,
        Self::Termination,
        Self::OneLeader,
        Self::OneLeaderPerTerm,
        Self::TermsNeverFall,
        Self::OneVotePerTerm,
        Self::VoteLeasesKept,
        Self::LeasesRise,
        Self::StoredFirst,
        Self::LeasesCovered,
        Self::LeaderInTime,
        Self::SteadyLeader,
        Self::BoundedMessages,
        Self::BoundedTerms,
        Self::Safety004,
        Self::Liveness004,
    ];

    /// What every election should have in every run; the others are for those that promise more.
    pub const USUAL: [Self; 6] = [
        Self::Agreement,
        Self::Validity,
        Self::Termination,
        Self::TermsNeverFall,
        Self::BoundedMessages,
        Self::BoundedTerms,
    ];

    /// What a quorum has besides: its safety.
    pub const QUORUM: [Self; 8] = [
        Self::OneLeader,
        Self::OneLeaderPerTerm,
        Self::TermsNeverFall,
        Self::OneVotePerTerm,
        Self::VoteLeasesKept,
        Self::LeasesRise,
        Self::StoredFirst,
        Self::LeasesCovered,
    ];

    /// What a quorum has while faults last that leave a majority connected.
    pub const LASTING: [Self; 2] = [Self::LeaderInTime, Self::SteadyLeader];

    /// What an algorithm should have in every run.
    pub fn usual_of(algorithm: Algorithm) -> Vec<Self> {
        let mut usual = Self::USUAL.to_vec();
        if algorithm.has_leases() {
            usual.extend(
                Self::QUORUM.into_iter().filter(|property| !Self::USUAL.contains(property)),
            );
        }
        usual
    }

    /// Whether the explorer can tell: where timers are free, nobody knows how long a promise or a lease has lasted.
    pub fn is_explorable(self, timers: Timers) -> bool {
        match self {
            Self::LeaderInTime | Self::SteadyLeader => false,
            Self::VoteLeasesKept | Self::LeasesCovered => !matches!(timers, Timers::Free { .. }),
            _ => true,
        }
    }

    /// Whether random runs can tell. In them everything goes wrong, and nobody reckons how far a term may rise for it.
    pub fn is_judged_at_random(self) -> bool {
        self != Self::BoundedTerms && !Self::LASTING.contains(&self)
    }

    /// What a quorum should have in every random run whose faults last.
    pub fn usual_while_faults_last() -> Vec<Self> {
        Self::QUORUM.into_iter().chain(Self::LASTING).chain([Self::BoundedMessages]).collect()
    }

    /// What an algorithm should have in every random run.
    pub fn usual_at_random(algorithm: Algorithm) -> Vec<Self> {
        let usual = Self::usual_of(algorithm).into_iter();
        usual.filter(|property| property.is_judged_at_random()).collect()
    }

    /// Whether it is about what must never happen, not about what must come at last.
    pub fn is_safety(self) -> bool {
        matches!(self.claim(), Claim::Always | Claim::NoStep)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agreement => "A1",
            Self::Validity => "A2",
            Self::Termination => "A3",
            Self::OneLeader => "A4",
            Self::OneLeaderPerTerm => "one-leader-per-term",
            Self::TermsNeverFall => "terms-never-fall",
            Self::OneVotePerTerm => "one-vote-per-term",
            Self::VoteLeasesKept => "vote-leases-kept",
            Self::LeasesRise => "leases-rise",
            Self::StoredFirst => "stored-first",
            Self::LeasesCovered => "leases-covered",
            Self::LeaderInTime => "leader-in-time",
            Self::SteadyLeader => "steady-leader",
            Self::BoundedMessages => "bounded-messages",
            Self::BoundedTerms => "bounded-terms",
            Self::Safety004 => "cs425-safety",
            Self::Liveness004 => "cs425-liveness",
        }
    }

    /// What it says.
    pub fn words(self) -> &'static str {
        match self {
            Self::Agreement => {
                "agreement: when nothing changes any more, all live members follow the same live member"
            }
            Self::Validity => {
                "validity: when nothing changes any more, whoever is followed is the best live member"
            }
            Self::Termination => {
                "termination: every run comes to rest, with nobody still electing and everybody knowing a leader"
            }
            Self::OneLeader => "one leader: at no instant do two live members both act as leader",
            Self::OneLeaderPerTerm => {
                "one leader a term: no two members ever lead in the same term"
            }
            Self::TermsNeverFall => "durable terms: the term that a member has stored never falls",
            Self::OneVotePerTerm => {
                "one vote a term: no member ever votes for two in the same term"
            }
            Self::VoteLeasesKept => {
                "promises kept: who has promised to follow a leader votes for nobody else until the time is over"
            }
            Self::LeasesRise => {
                "leases rise: who acts under a lease was elected by a majority, in a later term than any before"
            }
            Self::StoredFirst => {
                "stored first: what a message depends on has been stored before the message quotas"
            }
            Self::LeasesCovered => {
                "leases covered: while a lease runs, a majority is bound to its holder until it is over, by any clocks"
            }
            Self::LeaderInTime => {
                "leader in time: while faults last that leave a majority connected, a lease begins within three times L1"
            }
            Self::SteadyLeader => {
                "steady leader: once members have settled in spite of such faults, the leader changes no more"
            }
            Self::BoundedMessages => {
                "bounded messages: no message grows beyond what all members together can fill"
            }
            Self::BoundedTerms => {
                "bounded terms: no term rises beyond what the faults of a run can account for"
            }
            Self::Safety004 => {
                "cs425's safety: whoever has elected somebody at the end has elected the best live member"
            }
            Self::Liveness004 => {
                "cs425's liveness: every member eventually has elected somebody, or has crashed"
            }
        }
    }

    pub(crate) fn claim(self) -> Claim {
        match self {
            Self::Agreement | Self::Validity | Self::Safety004 => Claim::AtRest,
            Self::Termination | Self::Liveness004 => Claim::Rests,
            Self::OneLeader => Claim::Always,
            Self::OneLeaderPerTerm
            | Self::TermsNeverFall
            | Self::OneVotePerTerm
            | Self::VoteLeasesKept
            | Self::LeasesRise
            | Self::StoredFirst
            | Self::LeasesCovered
            | Self::LeaderInTime
            | Self::SteadyLeader
            | Self::BoundedMessages
            | Self::BoundedTerms => Claim::NoStep,
        }
    }

    /// Whether it says something about the views at the end of a run.
    pub(crate) fn is_about_the_end(self) -> bool {
        matches!(self.claim(), Claim::AtRest | Claim::Rests)
    }

    /// Whether a run that never comes to rest breaks it.
    pub(crate) fn asks_for_rest(self) -> bool {
        self.claim() == Claim::Rests
    }

    /// Whether it holds where the members believe this; what is not about views always does.
    pub(crate) fn holds(self, members: &Members, views: &[Option<View>]) -> bool {
        match self {
            Self::Agreement => disagreement(members, views).is_none(),
            Self::Validity => {
                let best = best_live(members, views);
                followed(views).all(|(_, leader)| Some(leader) == best)
            }
            Self::Safety004 => {
                let best = best_live(members, views);
                followed(views).all(|(_, leader)| Some(leader) == best)
            }
            Self::Termination => {
                let done = |view: &View| view.leader.is_some() && view.role != Role::Candidate;
                views.iter().flatten().all(done)
            }
            Self::Liveness004 => views.iter().flatten().all(|view| view.leader.is_some()),
            Self::OneLeader => leaders(views).count() <= 1,
            _ => true,
        }
    }

    /// The facts that contradict it.
    pub(crate) fn evidence(self, members: &Members, views: &[Option<View>]) -> Vec<Fact> {
        let id = |position: usize| members.at(position);
        let best = || {
            let best = best_live(members, views);
            best.map(|best| Fact::new(best, "is the best member alive"))
        };
        match self {
            Self::Agreement => disagreement(members, views).unwrap_or_default(),
            Self::Validity | Self::Safety004 => {
                let wrong =
                    followed(views).find(|&(_, leader)| Some(leader) != best_live(members, views));
                let wrong = wrong.map(|(position, leader)| follows(id(position), Some(leader)));
                wrong.into_iter().chain(best()).collect()
            }
            Self::Termination | Self::Liveness004 => {
                let waits = |(position, view): (usize, &Option<View>)| {
                    let view = (*view)?;
                    let member = id(position);
                    match view.role {
                        Role::Candidate if self == Self::Termination => {
                            Some(Fact::new(member, "still takes part in an election"))
                        }
                        _ if view.leader.is_none() => Some(follows(member, None)),
                        _ => None,
                    }
                };
                views.iter().enumerate().filter_map(waits).collect()
            }
            Self::OneLeader => {
                leaders(views).map(|position| Fact::new(id(position), "leads")).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// How many bytes a message of this group may have: two circuits of everybody's key, as a varint each of the longest
/// kind, and the rest.
pub(crate) fn longest_message(members: &Members) -> usize {
    64 + 2 * members.len() * 15
}

/// What a member believes, in words.
pub(crate) fn belief(view: View) -> String {
    match (view.role, view.leader) {
        (Role::Candidate, _) => "takes part in an election".to_owned(),
        (Role::Leader, _) => "leads".to_owned(),
        (Role::Retiring, _) => "leads, and is about to hand over".to_owned(),
        (Role::Follower, Some(leader)) => format!("follows {leader}"),
        (Role::Follower, None) => "knows no leader".to_owned(),
    }
}

fn follows(member: NodeId, leader: Option<NodeId>) -> Fact {
    match leader {
        Some(leader) if leader == member => Fact::new(member, "leads"),
        Some(leader) => Fact::new(member, format!("follows {leader}")),
        None => Fact::new(member, "knows no leader"),
    }
}

/// Who follows whom, the leaders themselves included.
fn followed(views: &[Option<View>]) -> impl Iterator<Item = (usize, NodeId)> + '_ {
    let leader = |(position, view): (usize, &Option<View>)| Some((position, (*view)?.leader?));
    views.iter().enumerate().filter_map(leader)
}

/// Where the live members stand that act as leader.
fn leaders(views: &[Option<View>]) -> impl Iterator<Item = usize> + '_ {
    let leads = |view: &Option<View>| view.is_some_and(|view| view.role.leads());
    views.iter().enumerate().filter(move |(_, view)| leads(view)).map(|(position, _)| position)
}

fn best_live(members: &Members, views: &[Option<View>]) -> Option<NodeId> {
    let alive = (0..views.len()).filter(|&position| views[position].is_some());
    alive.map(|position| members.key(members.at(position))).max().map(|key| key.id)
}

/// Two facts that no agreement allows.
fn disagreement(members: &Members, views: &[Option<View>]) -> Option<Vec<Fact>> {
    let mut all = followed(views);
    let (first, leader) = all.next()?;
    let one = follows(members.at(first), Some(leader));
    if let Some((other, another)) = all.find(|&(_, another)| another != leader) {
        return Some(vec![one, follows(members.at(other), Some(another))]);
    }
    let alive = members.position(leader).is_some_and(|position| views[position].is_some());
    (!alive).then(|| vec![one, Fact::new(leader, "is dead")])
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Property {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_meant = |property: &Self| property.name().eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(is_meant).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("unknown property `{text}`; there are {names}")
        })
    }
}
