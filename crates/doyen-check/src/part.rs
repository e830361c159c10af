//! Parts of the quorum, and the lock service above it, each explored as far as possible.
//!
//! | part | what it is | what it leaves out |
//! |---|---|---|
//! | votes | the voting rules as a protocol of their own, see `quorum/explore/voter.rs` | leases, time |
//! | sessions | the same voters on top of sessions, see `session.rs`: which process of a member counts | leases, time |
//! | leases | the quorum without pre-votes, see `quorum/explore/without_pre_vote.rs` | the questions before a campaign |
//! | whole | the quorum as it is shipped | penalties, probes, restored disks |
//! | locks | the lock service under two leaders, see `lock_service/succession.rs` | how they are elected |
//!
//! In each part messages may be lost, duplicated, reordered and delayed without bound; to locks, a budget limits what
//! arrives twice. Members crash and restart at any moment, even between two writes; in all parts but the whole, any member
//! campaigns at any moment at which the rules allow it. The [budget](Budget) limits transfers, commands and lost disks. The
//! properties are the safety of a quorum ([`Property::QUORUM`]), as far as they concern the part. Clocks run in ticks, and
//! the settings are the shortest with which a lease is renewed while it runs:
//!
//! ```text
//!     heartbeat 1 tick     vote lease 3 ticks     lease 2 ticks     answers 1 tick
//! ```
//!
//! With clocks that are wrong by a fifth, the heartbeat takes 2 ticks and the vote lease 6, by an exact clock; so the
//! lease takes 3. In real time a heartbeat then takes 1 to 3 ticks, the vote lease 5 to 8 and the lease 2 to 4. With
//! mixed timings, the highest member requests vote leases that are a tick longer (two ticks with wrong clocks).
//!
//! Whole ticks lose nothing: every timer is due after a whole number of ticks, or at any moment between two of them, and
//! events that happen in an order at fractions of a tick can happen in the same order at whole ticks (Henzinger, Manna and
//! Pnueli 1992, *What good are digital clocks?*).

use std::fmt;
use std::str::FromStr;

use doyen_core::config::exclusion::Settings;
use doyen_core::config::quorum::{Pace, Preemption};
use doyen_core::config::rules::{Rule, Rules as QuorumRules};
use doyen_core::config::{Config, Mode, Timing};
use doyen_core::handover::{Duty, Remains, Work};
use doyen_core::members::{Members, NodeId, Term};
use doyen_core::registry::Algorithm;
use doyen_core::session::SessionConfig;
use doyen_core::time::Span;

use super::budget::{ANY, Budget};
use super::property::Property;
use super::timers::Timers;
use doyen_sim::scenario::{Case, Initiator, Initiators, MemberList, Scenario};

/// The length of a tick. Nothing depends on it.
const TICK: Span = Span::from_millis(2);

/// The error of wrong clocks, in thousandths.
const WRONG: u32 = 200;

/// How often the client of a lock calls: for the lock, and when it learns of another leader.
const MOST_CALLS: u32 = 2;

/// The properties of votes: the others of [`Property::QUORUM`] are about leases.
const OF_VOTES: [Property; 4] = [
    Property::OneLeaderPerTerm,
    Property::OneVotePerTerm,
    Property::TermsNeverFall,
    Property::StoredFirst,
];

/// A part of the quorum.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// Elections and terms.
    Votes,
    /// Which process of a member counts.
    Sessions,
    /// Leases and vote leases.
    Leases,
    /// Everything.
    Whole,
    /// The lock service, under leaders that succeed each other.
    Locks,
}

/// The part of the quorum that is explored, and how.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Scope {
    /// The part.
    pub part: Part,
    /// The last term that is opened.
    pub terms: u64,
    /// One member asks for longer vote leases than the others.
    pub mixed: bool,
    /// The rule that is disabled.
    pub without: Option<Rule>,
}

impl Part {
    /// Every part.
    pub const ALL: [Self; 5] =
        [Self::Votes, Self::Sessions, Self::Leases, Self::Whole, Self::Locks];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Votes => "votes",
            Self::Sessions => "sessions",
            Self::Leases => "leases",
            Self::Whole => "whole",
            Self::Locks => "locks",
        }
    }
}

impl Scope {
    /// The whole of a part, with two terms.
    pub fn new(part: Part) -> Self {
        Self { part, terms: 2, mixed: false, without: None }
    }

    /// How `case` is explored if not as it is simulated: the quorum below a lock service alone has too many states.
    pub fn of(case: &Case) -> Option<Self> {
        (case.algorithm == Algorithm::LockService).then(|| Self::new(Part::Locks))
    }

    /// The smallest exploration that notices that `rule` is missing, if one does.
    pub fn that_misses(rule: Rule) -> Option<Self> {
        let part = match rule {
            Rule::VoteIsStored
            | Rule::OneVotePerTerm
            | Rule::VoteCountsInItsTerm
            | Rule::VoteOutlivesRole => Part::Votes,
            Rule::MetSessionOnly
            | Rule::IncarnationsRise
            | Rule::SessionIsStored
            | Rule::RejoinTakesOver
            | Rule::RejoinIsConfirmed => Part::Sessions,
            Rule::Majority
            | Rule::TermIsStored
            | Rule::VoteLease
            | Rule::HoldDown
            | Rule::LeaseFromSending
            | Rule::DriftMargin
            | Rule::VoteIsNoLease
            | Rule::AckCountsInItsTerm
            | Rule::LeaseEndsBeforeTransfer
            | Rule::ReleaseIsForItsTerm
            | Rule::LeaseBindsItsHolder
            | Rule::RetiredFirst
            | Rule::JobEndsBeforeRelease
            | Rule::PermitEndsBeforeRelease
            | Rule::RejoinVotesLater
            | Rule::RejoinAsksAll
            | Rule::HoldDownIsLongest
            | Rule::VoteLeaseAsRequested
            | Rule::LapsedRoundIsOver
            | Rule::VoteLeaseNeverShrinks
            | Rule::LongestFallsLate
            | Rule::RejoinWaitsTheLongest => Part::Leases,
            Rule::PauseHolds => Part::Whole,
            // Without `SameSessionOnly` only a copy of a disk does harm, which does so with it too.
            Rule::NoStaleHeartbeat
            | Rule::WitnessNeverLeads
            | Rule::LaterPauseWins
            | Rule::AnswerIsForItsIncarnation
            | Rule::OldDiskByItsStart
            | Rule::ProvenSession
            | Rule::SameSessionOnly
            | Rule::AnswersAreLimited
            | Rule::PromptersApart
            | Rule::AddressIsProven
            | Rule::AnswerIsForItsSession
            | Rule::LapsedLeaderRetries
            | Rule::SuccessorReachesMajority
            | Rule::UnconfirmedLeaderYields
            | Rule::FailedSuccessorIsPenalized
            | Rule::PenaltiesGrow
            | Rule::RefusedBacksOff
            | Rule::TakeoverBacksOff
            | Rule::PreVote => return None,
        };
        let mixed = matches!(
            rule,
            Rule::HoldDownIsLongest
                | Rule::VoteLeaseAsRequested
                | Rule::VoteLeaseNeverShrinks
                | Rule::LongestFallsLate
                | Rule::RejoinWaitsTheLongest
        );
        let terms = match (rule, part) {
            (Rule::ReleaseIsForItsTerm, _) => 3,
            (_, Part::Sessions) => 1,
            _ => 2,
        };
        Some(Self { part, terms, mixed, without: Some(rule) })
    }

    /// The default number of members: three, or as many as it takes to notice within a minute that a rule is missing.
    pub fn members(self) -> u32 {
        let is_of_two = self.part == Part::Sessions && self.without == Some(Rule::SessionIsStored);
        if is_of_two { 2 } else { 3 }
    }

    /// Whether only a depth-first search notices within a minute that a rule is missing.
    pub fn is_deep(self) -> bool {
        let is_deep = matches!(self.without, Some(Rule::RejoinTakesOver | Rule::RejoinIsConfirmed));
        self.part == Part::Sessions && is_deep
    }

    /// The scene in which it begins: the highest member leads in the first term, unless it is about votes.
    pub fn scenario(self, members: u32) -> Scenario {
        let is_led = matches!(self.part, Part::Leases | Part::Whole);
        if self.part == Part::Locks {
            let ask = (1..members).map(Initiator::AtOnce).take(2).collect();
            return Scenario {
                algorithm: Some(Algorithm::LockService),
                requests: Some(Initiators::Listed(ask)),
                initiators: None,
                ..Self::new(Part::Whole).scenario(members)
            };
        }
        Scenario {
            algorithm: Some(Algorithm::Quorum),
            mode: Some(Mode::Hardened),
            members: Some(MemberList::Count(members.into())),
            leader: is_led.then_some(members),
            initiators: Some(Initiators::None),
            fifo: Some(false),
            ..Scenario::default()
        }
    }

    /// The default budget: any number of the faults that need no operator, and of the others what it takes to notice that a
    /// rule is missing.
    pub fn budget(self) -> Budget {
        match self.part {
            Part::Sessions => return self.budget_of_sessions(),
            // A call that arrives again after a release is granted again: any number of them has no end.
            Part::Locks => return Budget::default(),
            Part::Votes | Part::Leases | Part::Whole => {}
        }
        let faults = match self.without {
            // A member that rejoins has crashed once. With more crashes there is too much to explore in a minute.
            Some(rule) if is_of_rejoining(rule) => 1,
            // A pause takes a command and no crash.
            Some(Rule::PauseHolds) => 0,
            _ => ANY,
        };
        Budget {
            crashes: faults,
            restarts: faults,
            losses: ANY,
            duplications: ANY,
            campaigns: if self.part == Part::Whole { 0 } else { ANY },
            transfers: u8::from(self.without.is_some_and(is_of_transfers)) * 2,
            rejoins: u8::from(self.without.is_some_and(is_of_rejoining)),
            releases: u8::from(self.without.is_some_and(is_of_releases)),
            commands: u8::from(self.without == Some(Rule::PauseHolds)),
            ..Budget::default()
        }
    }

    /// Every start takes a new session, so there is no end to what happens with any number of them.
    fn budget_of_sessions(self) -> Budget {
        let (replacements, faults) = match self.without {
            Some(Rule::SessionIsStored) => (1, 1),
            Some(Rule::SameSessionOnly | Rule::RejoinTakesOver | Rule::RejoinIsConfirmed) => (2, 0),
            _ => (1, 0),
        };
        Budget {
            crashes: faults,
            restarts: faults,
            losses: ANY,
            duplications: ANY,
            campaigns: ANY,
            replacements,
            ..Budget::default()
        }
    }

    /// Whether guardians release a lease only after everything that relied on it is over: neither while the job runs, nor
    /// before the last permit has ended.
    pub(crate) fn guardians_confirm(self) -> bool {
        let rules = self
            .without
            .map_or_else(QuorumRules::default, |rule| QuorumRules::default().without(rule));
        let over = Remains { lease: 2, permit: 0, job: Work::Over, hooks: Work::Over };
        let unfinished = [Remains { job: Work::Due, ..over }, Remains { permit: 1, ..over }];
        unfinished.into_iter().all(|remains| remains.duty(0, rules) != Duty::Release)
    }

    /// When timers expire. `wrong_clocks`: whether clocks may be wrong.
    pub fn timers(self, wrong_clocks: bool) -> Timers {
        match self.part {
            Part::Votes => Timers::Free { expiries: ANY },
            // A candidate that gives up in its term can do less than before.
            Part::Sessions => Timers::Free { expiries: 0 },
            Part::Leases | Part::Whole | Part::Locks => {
                Timers::Clocked { tick: TICK, drift: if wrong_clocks { WRONG } else { 0 } }
            }
        }
    }

    /// What must hold.
    pub fn properties(self) -> Vec<Property> {
        match self.part {
            Part::Votes | Part::Sessions => OF_VOTES.to_vec(),
            Part::Leases | Part::Whole => Property::QUORUM.to_vec(),
            Part::Locks => {
                vec![Property::OneInside, Property::FencesRise, Property::EnteredByRequest]
            }
        }
    }

    /// The same case, of this part of the quorum: it has the same members and leader, and everything else is as short as
    /// possible.
    pub(super) fn apply(self, case: &Case, timers: Timers) -> Case {
        let mut case = case.clone();
        let config = self.config(case.members().clone(), timers);
        let given = std::mem::replace(&mut case.config, config);
        if self.part == Part::Locks {
            let grant = Some(case.config.quorum.pace.vote_lease);
            case.config.exclusion = Settings { grant, calls: Some(MOST_CALLS), ..given.exclusion };
            case.config.mode = given.mode;
        }
        (case.reliable, case.detector) = (false, None);
        case
    }

    fn config(self, mut members: Members, timers: Timers) -> Config {
        // Answers are waited for twice as long as a message takes.
        let timing = Timing::for_transmission(Span::from_nanos(TICK.as_nanos() / 2));
        let highest = members.highest();
        if self.part != Part::Whole {
            // No member is better than another, and no rule that is explored compares members.
            let alike: Vec<(NodeId, i64)> = members.iter().map(|id| (id, 0)).collect();
            members = members.with_attrs(alike).expect("members have attributes");
        }
        let mut config = Config::new(members, timing, Mode::Hardened);
        let quorum = &mut config.quorum;
        let drift = match timers {
            Timers::Clocked { drift, .. } => drift,
            Timers::Free { .. } | Timers::Bounded { .. } => 0,
        };
        let scale = if drift == 0 { 1 } else { 2 };
        let heartbeat = TICK * scale;
        let pace = Pace { heartbeat, vote_lease: heartbeat * 3, drift, grain: TICK };
        quorum.pace = pace;
        if self.mixed {
            let vote_lease = pace.vote_lease + TICK * scale;
            quorum.paces.insert(highest, Pace { vote_lease, ..pace });
        }
        // Settings that make no difference to safety take no time and no memory.
        (quorum.jitter, quorum.stagger, quorum.probe) = (Span::ZERO, Span::ZERO, None);
        (quorum.penalty_decay, quorum.deferrals) = (Span::ZERO, 0);
        (quorum.preemption, quorum.remembers) = (Preemption::Never, false);
        let bold = (self.part == Part::Leases).then_some(Rule::PreVote);
        let missing = [self.without, bold].into_iter().flatten();
        let rules = QuorumRules::default().until(Term(self.terms));
        quorum.rules = missing.fold(rules, QuorumRules::without);
        config
    }
}

fn is_of_transfers(rule: Rule) -> bool {
    matches!(rule, Rule::LeaseEndsBeforeTransfer | Rule::ReleaseIsForItsTerm | Rule::RetiredFirst)
}

fn is_of_releases(rule: Rule) -> bool {
    matches!(rule, Rule::JobEndsBeforeRelease | Rule::PermitEndsBeforeRelease)
}

fn is_of_rejoining(rule: Rule) -> bool {
    matches!(rule, Rule::RejoinVotesLater | Rule::RejoinAsksAll | Rule::RejoinWaitsTheLongest)
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|part| part.name() == text).ok_or_else(|| {
            format!("unknown part `{text}`; there are {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}

impl fmt::Display for Scope {
    /// `leases, 2 terms, mixed timings, without ack-counts-in-its-term`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, terms, mixed, without } = self;
        write!(f, "{part}, {terms} term{}", if *terms == 1 { "" } else { "s" })?;
        if *mixed {
            f.write_str(", mixed timings")?;
        }
        without.map_or(Ok(()), |rule| write!(f, ", without {rule}"))
    }
}

/// The configuration of processes with sessions.
pub(super) fn session_config(case: &Case) -> SessionConfig<Config> {
    SessionConfig {
        inner: case.config.clone(),
        members: case.members().clone(),
        round_trip: case.config.timing.reply(),
        background: false,
        rules: case.config.quorum.rules,
    }
}
