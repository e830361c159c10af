//! The properties that can be checked.
//!
//! Some properties are about the *views*, which are what each live member believes: at every instant, or at the end of a
//! run. The others are about what no single step may do to a disk, in a message or by leading; `model/judge.rs` judges them
//! in an exploration, the oracle in random runs.

use std::fmt;
use std::str::FromStr;

use doyen_core::config::Mode;
pub use doyen_core::ledger::Fact;
use doyen_core::ledger::Invariant;
use doyen_core::members::{Members, NodeId};
use doyen_core::protocol::{Deliveries, Role, Section, View};
use doyen_core::registry::{Algorithm, Purpose};
use doyen_sim::delivered::Delivered;

use crate::search::space::Claim;
use crate::timers::Timers;

/// Declares the properties by their table: the name on the command line, what is claimed, and the statement.
macro_rules! properties {
    ($($property:ident $name:literal $claim:ident $words:literal,)*) => {
        /// A property of elections, or of mutual exclusion.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Property {
            $(#[doc = $words] $property,)*
        }

        /// Its name, what is claimed, and its statement.
        const TABLE: &[(&str, Claim, &str)] = &[$(($name, Claim::$claim, $words)),*];

        impl Property {
            /// Every property.
            pub const ALL: [Self; TABLE.len()] = [$(Self::$property),*];
        }
    };
}

properties! {
    Agreement "A1" AtRest
        "agreement: at the end of a run, all live members follow the same live member",
    Validity "A2" AtRest
        "validity: at the end of a run, every leader that is followed is the best live member",
    Termination "A3" Rests
        "termination: every run comes to rest; no election is open and every live member knows a leader",
    OneLeader "A4" Always
        "one leader: no two live members act as leader at the same instant",
    OneLeaderPerTerm "one-leader-per-term" NoStep
        "one leader a term: no two members lead in the same term",
    TermsNeverFall "terms-never-fall" NoStep
        "durable terms: the stored term of a member never falls",
    // I2
    OneVotePerTerm "one-vote-per-term" NoStep
        "one vote a term: no member votes for two candidates in the same term",
    // I7
    VoteLeasesKept "vote-leases-kept" NoStep
        "vote leases kept: a member votes for no rival of its leader until its vote lease is over",
    PausesKept "pauses-kept" NoStep
        "pauses kept: while a member has stored that elections are paused, it campaigns only after a transfer",
    // I5, I6, I8
    LeasesRise "leases-rise" NoStep
        "leases rise: the holder of a lease was elected by a majority, in a later term than any leader before",
    // I10
    StoredFirst "stored-first" NoStep
        "stored first: a member stores what a message depends on before it sends the message",
    LeasesCovered "leases-covered" NoStep
        "leases covered: while a lease runs, a majority votes for no rival of its holder, by any clock",
    LeaderInTime "leader-in-time" NoStep
        "leader in time: with lasting faults that leave a majority connected, a lease begins within three times L1",
    SteadyLeader "steady-leader" NoStep
        "steady leader: once members have settled with such faults, the leader no longer changes",
    BoundedMessages "bounded-messages" NoStep
        "bounded messages: no message is longer than the data of all members needs",
    BoundedTerms "bounded-terms" NoStep
        "bounded terms: no term rises beyond what the faults of a run explain",
    // ME1
    OneInside "one-inside" NoStep
        "one inside: no two live members are in the critical section at the same instant",
    // ME2
    Served "served" Rests
        "served: every live member that asks to enter the critical section enters, if every stay there ends",
    // ME4
    FencesRise "fences-rise" NoStep
        "fences rise: of two entries into the critical section, the later has the larger fence",
    EnteredByRequest "entered-by-request" NoStep
        "entered by request: a member enters the critical section only while it waits to",
    // ME3
    CausalOrder "causal-order" NoStep
        "causal order: of two requests to enter the critical section, the one that happened before the other enters first",
    OneToken "one-token" NoStep
        "one token: at most one token of a generation is held or under way",
    BoundedBypass "bounded-bypass" NoStep
        "bounded overtaking: while a member waits, no other one enters more often than the algorithm allows",
    Cs425Safety "cs425-safety" AtRest
        "cs425's safety: at the end of a run, every member that follows a leader follows the best live member",
    Cs425Liveness "cs425-liveness" Rests
        "cs425's liveness: every member eventually follows a leader or has crashed",
    ConsistentCut "consistent-cut" NoStep
        "consistent cut: a snapshot has every message that was sent in it and not received, and no other, and loses nothing that is conserved",
    TotalOrder "total-order" Always
        "total order: live members that were not reset have delivered the same messages in the same order, some perhaps fewer",
    NoDuplicates "no-duplicates" Always
        "no duplicates: no member delivers a message twice",
    DeliveriesStay "deliveries-stay" AtRest
        "deliveries stay: what any member has delivered, a crashed one included, all others deliver in the same order, and none is reset",
}

/// Converts the invariants of the ledger, and lists what they become.
macro_rules! of_ledger {
    ($($invariant:ident => $property:ident,)*) => {
        impl From<Invariant> for Property {
            fn from(invariant: Invariant) -> Self {
                match invariant {
                    $(Invariant::$invariant => Self::$property,)*
                }
            }
        }

        #[cfg(test)]
        const OF_LEDGER: &[Property] = &[$(Property::$property),*];
    };
}

of_ledger! {
    TermsNeverFall => TermsNeverFall,
    OneVotePerTerm => OneVotePerTerm,
    VoteLeasesKept => VoteLeasesKept,
    PausesKept => PausesKept,
    StoredFirst => StoredFirst,
    LeasesRise => LeasesRise,
    OneLease => OneLeader,
    LeasesCovered => LeasesCovered,
    OneInside => OneInside,
    FencesRise => FencesRise,
    EnteredByRequest => EnteredByRequest,
    CausalOrder => CausalOrder,
    OneToken => OneToken,
    BoundedBypass => BoundedBypass,
}

impl Property {
    /// The properties of every election; the others are for algorithms that promise more.
    pub const USUAL: [Self; 6] = [
        Self::Agreement,
        Self::Validity,
        Self::Termination,
        Self::TermsNeverFall,
        Self::BoundedMessages,
        Self::BoundedTerms,
    ];

    /// The safety of a quorum.
    pub const QUORUM: [Self; 9] = [
        Self::OneLeader,
        Self::OneLeaderPerTerm,
        Self::TermsNeverFall,
        Self::OneVotePerTerm,
        Self::VoteLeasesKept,
        Self::PausesKept,
        Self::LeasesRise,
        Self::StoredFirst,
        Self::LeasesCovered,
    ];

    /// The properties of a quorum with lasting faults that leave a majority connected.
    pub const LASTING: [Self; 2] = [Self::LeaderInTime, Self::SteadyLeader];

    /// The properties of mutual exclusion. Not every algorithm has a token, a bound on overtaking or fences.
    pub const EXCLUSION: [Self; 7] = [
        Self::OneInside,
        Self::Served,
        Self::FencesRise,
        Self::EnteredByRequest,
        Self::CausalOrder,
        Self::OneToken,
        Self::BoundedBypass,
    ];

    /// The properties of a totally ordered multicast, eager or stable. That deliveries stay is promised by a stable one alone.
    /// Logs grow, so no bound on messages is among them.
    pub const MULTICAST: [Self; 2] = [Self::TotalOrder, Self::NoDuplicates];

    /// The properties that are about what the members of a multicast have delivered.
    pub(crate) const DELIVERED: [Self; 3] =
        [Self::TotalOrder, Self::NoDuplicates, Self::DeliveriesStay];

    /// The properties that are checked of an algorithm in this mode by default.
    pub fn usual_of(algorithm: Algorithm, mode: Mode) -> Vec<Self> {
        match algorithm.purpose() {
            Purpose::Elects => {}
            Purpose::Excludes => {
                let own = Self::EXCLUSION.into_iter();
                let own =
                    own.filter(|property| property.means_nothing_to(algorithm, true).is_none());
                // What is about application messages is checked where there are any.
                let own = own.filter(|&property| property != Self::CausalOrder);
                return own.chain([Self::BoundedMessages]).collect();
            }
            Purpose::Records => return vec![Self::ConsistentCut, Self::BoundedMessages],
            Purpose::Serves if mode == Mode::Hardened => return Self::DELIVERED.to_vec(),
            Purpose::Serves => return Self::MULTICAST.to_vec(),
        }
        let mut usual = Self::USUAL.to_vec();
        if algorithm.has_leases() {
            usual.extend(
                Self::QUORUM.into_iter().filter(|property| !Self::USUAL.contains(property)),
            );
        }
        usual
    }

    /// Why it says nothing about this algorithm, and what to do instead, if it does not. `fifo`: links keep the order of
    /// messages.
    pub fn means_nothing_to(
        self,
        algorithm: Algorithm,
        fifo: bool,
    ) -> Option<(&'static str, &'static str)> {
        let excludes = algorithm.purpose() == Purpose::Excludes;
        match self {
            Self::BoundedMessages | Self::ConsistentCut => None,
            _ if Self::DELIVERED.contains(&self) => (algorithm.purpose() != Purpose::Serves)
                .then_some(("about a multicast", "leave it out, or use sequencer")),
            Self::OneLeaderPerTerm | Self::TermsNeverFall
                if algorithm.purpose() == Purpose::Serves =>
            {
                None
            }
            _ if matches!(algorithm.purpose(), Purpose::Records | Purpose::Serves) => {
                Some(("about elections or a critical section", "leave it out"))
            }
            Self::FencesRise if excludes && !algorithm.has_leases() => Some((
                "about fences, which this algorithm does not have",
                "leave it out, or use lock-service",
            )),
            Self::CausalOrder if excludes && algorithm.has_leases() => Some((
                "about messages outside the algorithm, of which there are none above a quorum",
                "leave it out, or use another algorithm that excludes",
            )),
            Self::OneToken if excludes && !algorithm.has_token() => Some((
                "about tokens, which this algorithm does not have",
                "leave it out, or use token-ring, token-recovery, raymond or suzuki-kasami",
            )),
            Self::BoundedBypass if excludes && algorithm.most_overtaking(true).is_none() => Some((
                "about a bound on overtaking, which this algorithm does not have",
                "leave it out, or use lamport, ricart-agrawala or token-ring",
            )),
            Self::BoundedBypass if excludes && algorithm.most_overtaking(fifo).is_none() => Some((
                "about a bound on overtaking, which exists only if links keep the order of messages",
                "add --fifo",
            )),
            _ if Self::EXCLUSION.contains(&self) == excludes => None,
            _ if excludes => Some(("about elections", "leave it out, or use an election")),
            _ => Some((
                "about a critical section",
                "leave it out, or use an algorithm that excludes, for example ricart-agrawala",
            )),
        }
    }

    /// Whether an exploration can judge it: with free timers the age of a lease is unknown.
    pub fn is_explorable(self, timers: Timers) -> bool {
        match self {
            Self::LeaderInTime | Self::SteadyLeader => false,
            Self::VoteLeasesKept | Self::LeasesCovered => !matches!(timers, Timers::Free { .. }),
            _ => true,
        }
    }

    /// Whether random runs can judge it: they have no bound on terms, and do not see every token.
    pub fn is_judged_at_random(self) -> bool {
        !matches!(self, Self::BoundedTerms | Self::OneToken) && !Self::LASTING.contains(&self)
    }

    /// The properties that are checked of a quorum in random runs with lasting faults.
    pub fn usual_while_faults_last() -> Vec<Self> {
        Self::QUORUM.into_iter().chain(Self::LASTING).chain([Self::BoundedMessages]).collect()
    }

    /// The properties that are checked of an algorithm in this mode in random runs.
    pub fn usual_at_random(algorithm: Algorithm, mode: Mode) -> Vec<Self> {
        let order = algorithm.orders_requests(true).then_some(Self::CausalOrder);
        let usual = Self::usual_of(algorithm, mode).into_iter().chain(order);
        usual.filter(|property| property.is_judged_at_random()).collect()
    }

    /// Whether it is a safety property: about what must never happen.
    pub fn is_safety(self) -> bool {
        matches!(self.claim(), Claim::Always | Claim::NoStep)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        TABLE[self as usize].0
    }

    pub(crate) fn claim(self) -> Claim {
        TABLE[self as usize].1
    }

    /// Its statement.
    pub fn words(self) -> &'static str {
        TABLE[self as usize].2
    }

    /// Whether it says something about the views at the end of a run.
    pub(crate) fn is_about_the_end(self) -> bool {
        matches!(self.claim(), Claim::AtRest | Claim::Rests)
    }

    /// Whether a run that never comes to rest breaks it.
    pub(crate) fn asks_for_rest(self) -> bool {
        self.claim() == Claim::Rests
    }

    /// Whether it holds where this is seen of the members; what is not about that always does.
    pub(crate) fn holds(self, members: &Members, seen: &Seen) -> bool {
        let views = &seen.views[..];
        match self {
            Self::Agreement => disagreement(members, views).is_none(),
            Self::Validity | Self::Cs425Safety => {
                let best = best_live(members, views);
                followed(views).all(|(_, leader)| Some(leader) == best)
            }
            Self::Termination => {
                let done = |view: &View| view.leader.is_some() && view.role != Role::Candidate;
                views.iter().flatten().all(done)
            }
            Self::Cs425Liveness => views.iter().flatten().all(|view| view.leader.is_some()),
            Self::OneLeader => leaders(views).count() <= 1,
            Self::Served => waiting(views).next().is_none(),
            _ => seen.delivered().is_none_or(|it| self.contradicted_by(&it).is_none()),
        }
    }

    /// The facts that contradict it.
    pub(crate) fn evidence(self, members: &Members, seen: &Seen) -> Vec<Fact> {
        let views = &seen.views[..];
        let id = |position: usize| members.at(position);
        let best = || {
            let best = best_live(members, views);
            best.map(|best| Fact::new(best, "is the best member alive"))
        };
        match self {
            Self::Agreement => disagreement(members, views).unwrap_or_default(),
            Self::Validity | Self::Cs425Safety => {
                let wrong =
                    followed(views).find(|&(_, leader)| Some(leader) != best_live(members, views));
                let wrong = wrong.map(|(position, leader)| follows(id(position), Some(leader)));
                wrong.into_iter().chain(best()).collect()
            }
            Self::Termination | Self::Cs425Liveness => {
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
            Self::Served => {
                let fact = |position| Fact::new(id(position), "waits to enter");
                waiting(views).map(fact).collect()
            }
            Self::OneLeader => {
                leaders(views).map(|position| Fact::new(id(position), "leads")).collect()
            }
            _ => seen.delivered().and_then(|it| self.contradicted_by(&it)).unwrap_or_default(),
        }
    }

    /// The facts about what members have delivered that contradict it, if it is about that.
    pub(crate) fn contradicted_by(self, multicast: &Delivered) -> Option<Vec<Fact>> {
        let fact = |id: NodeId| {
            let sequence = multicast.delivered.get(&id).map_or(String::new(), |it| it.join(", "));
            Fact::new(id, format!("has delivered {sequence}"))
        };
        let both = |(one, other): (NodeId, NodeId)| vec![fact(one), fact(other)];
        match self {
            Self::NoDuplicates => {
                let (id, message) = multicast.duplicate?;
                Some(vec![Fact::new(id, format!("has delivered {message} twice"))])
            }
            Self::TotalOrder => multicast.disorder.map(both),
            Self::DeliveriesStay => {
                let is_lost = multicast.resets > 0 || !multicast.lost.is_empty();
                let all = || multicast.delivered.keys().map(|&id| fact(id)).collect();
                let pair = multicast.contradiction.or(multicast.disorder);
                pair.map(both).or_else(|| is_lost.then(all))
            }
            _ => None,
        }
    }
}

/// What claims see of the members.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Seen {
    /// The view of each live member, by position.
    pub(crate) views: Vec<Option<View>>,
    /// What each member of a multicast has delivered, and whether it is up; empty if no claim is about that.
    pub(crate) delivered: Vec<(NodeId, bool, Deliveries)>,
}

impl Seen {
    /// The views alone.
    pub(crate) fn views(views: &[Option<View>]) -> Self {
        Self { views: views.to_vec(), delivered: Vec::new() }
    }

    fn delivered(&self) -> Option<Delivered> {
        Delivered::new(&self.delivered)
    }
}

/// The longest message of this group in bytes: two circuits of the keys of all members, as varints of the longest kind,
/// and the rest.
pub(crate) fn longest_message(members: &Members) -> usize {
    64 + 2 * members.len() * 15
}

/// A view in words.
pub(crate) fn belief(view: View) -> String {
    match view.section {
        Section::Outside => {}
        Section::Waiting => return "waits to enter".to_owned(),
        Section::Inside(_) => return "is in the critical section".to_owned(),
    }
    match (view.role, view.leader) {
        (Role::Candidate, _) => "takes part in an election".to_owned(),
        (Role::Leader, _) => "leads".to_owned(),
        (Role::Retiring, _) => "leads, and is about to transfer leadership".to_owned(),
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

/// The members that follow a leader, including leaders, and their leaders.
fn followed(views: &[Option<View>]) -> impl Iterator<Item = (usize, NodeId)> + '_ {
    let leader = |(position, view): (usize, &Option<View>)| Some((position, (*view)?.leader?));
    views.iter().enumerate().filter_map(leader)
}

/// The positions of the live members that act as leader.
fn leaders(views: &[Option<View>]) -> impl Iterator<Item = usize> + '_ {
    let leads = |view: &Option<View>| view.is_some_and(|view| view.role.leads());
    views.iter().enumerate().filter(move |(_, view)| leads(view)).map(|(position, _)| position)
}

/// The positions of the live members that wait to enter the critical section.
fn waiting(views: &[Option<View>]) -> impl Iterator<Item = usize> + '_ {
    let waits = |view: &Option<View>| view.is_some_and(|view| view.section == Section::Waiting);
    views.iter().enumerate().filter(move |(_, view)| waits(view)).map(|(position, _)| position)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise it would be checked of no algorithm unless it is asked for.
    #[test]
    fn every_invariant_of_the_ledger_is_of_a_quorum_or_of_exclusion() {
        for property in OF_LEDGER {
            let is_listed =
                Property::QUORUM.contains(property) || Property::EXCLUSION.contains(property);
            assert!(is_listed, "{property:?}");
        }
    }
}
