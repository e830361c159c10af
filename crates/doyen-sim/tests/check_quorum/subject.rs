//! What is explored of the quorum, by the tests beside this file and by `make check-quorum`.
//!
//! | part | what it is | what it leaves out |
//! |---|---|---|
//! | votes | `quorum/ballot.rs` as a protocol of its own, see `quorum/voter.rs` | leases, time |
//! | leases | the quorum without courtesy, see `quorum/bold.rs` | who asks whom before it stands; what the whole leaves out |
//! | whole | the quorum as it is shipped | hand-overs, orders, penalties, probes, lost and restored disks |
//!
//! In each part messages may be lost, doubled, overtaken and as late as they like. Members crash and come up at any
//! moment, also between two writes; in the first two any of them stands at any moment at which the rules let it. What is
//! asked for in every state are the invariants I1 to I10, as far as they are about the part ([`Property::QUORUM`]). Clocks
//! go in ticks, and the settings are the shortest that have a lease renewed while it runs:
//!
//! ```text
//!     heartbeat 1 tick     promise 3 ticks     lease 2 ticks     answers 1 tick
//! ```
//!
//! Where clocks are wrong by a fifth, the heartbeat takes 2 ticks and the promise 6, by a clock that is right; hence the
//! lease 3. By real time a heartbeat then takes 1 to 3 ticks, the promise 5 to 8 and the lease 2 to 4.
//!
//! Whole ticks lose nothing: every timer is due after a whole number of ticks, or at any moment between two of them, and
//! what happens in an order at fractions of a tick can happen in the same order at whole ones (Henzinger, Manna and
//! Pnueli 1992, *What good are digital clocks?*).

use doyen_core::algorithm::quorum::Quorum;
use doyen_core::algorithm::quorum::rules::{Rule, Rules as QuorumRules};
use doyen_core::algorithm::quorum::settings::{Pace, Preemption};
use doyen_core::algorithm::quorum::voter::Voter;
use doyen_core::config::{Config, Mode, Timing};
use doyen_core::members::{Epoch, Members, NodeId};
use doyen_core::time::Span;
use doyen_sim::check::budget::{ANY, Budget};
use doyen_sim::check::property::Property;
use doyen_sim::check::search::{Limits, Plan, Watch};
use doyen_sim::check::{self, Report, Rules, Scene, Timers};

const TICK: Span = Span::from_millis(2);

/// What holds of every vote: the others of [`Property::QUORUM`] are about leases.
const OF_VOTES: [Property; 4] = [
    Property::OneLeaderPerTerm,
    Property::OneVoteATerm,
    Property::TermsNeverFall,
    Property::StoredFirst,
];

/// What is explored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    Votes,
    Leases,
    Whole,
}

/// An exploration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject {
    pub(crate) part: Part,
    pub(crate) members: u32,
    /// The last term that anybody opens.
    pub(crate) terms: u64,
    /// The highest member leads in the first term when it begins.
    pub(crate) founded: bool,
    /// How many crashes there are, and how many restarts.
    pub(crate) faults: u8,
    /// Any number of messages are lost and doubled; none otherwise.
    pub(crate) lossy: bool,
    /// By how much clocks may be wrong, in thousandths: not at all, or by a fifth.
    pub(crate) drift: u32,
    /// The rule that does not stand.
    pub(crate) without: Option<Rule>,
    /// The only property that is asked for; without it, all that hold.
    pub(crate) asked: Option<Property>,
}

impl Subject {
    pub(crate) fn votes(members: u32, terms: u64) -> Self {
        Self {
            part: Part::Votes,
            members,
            terms,
            founded: false,
            faults: ANY,
            lossy: true,
            drift: 0,
            without: None,
            asked: None,
        }
    }

    pub(crate) fn leases(members: u32, terms: u64) -> Self {
        Self { part: Part::Leases, founded: true, ..Self::votes(members, terms) }
    }

    pub(crate) fn whole(members: u32, terms: u64) -> Self {
        Self { part: Part::Whole, ..Self::leases(members, terms) }
    }

    /// Explores it.
    pub(crate) fn explore(&self, reduce: bool, limits: Limits, watch: Watch<'_>) -> Report {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let plan = Plan { depth_first: false, reduce, threads, limits };
        let config = self.config();
        let rules = self.rules();
        let mut scene = Scene::new(&config.members);
        scene.leader = self.founded.then(|| config.members.highest());
        match self.part {
            Part::Votes => check::explore::<Voter>(&config, &scene, &rules, &plan, watch),
            Part::Leases | Part::Whole => {
                check::explore::<Quorum>(&config, &scene, &rules, &plan, watch)
            }
        }
    }

    fn rules(&self) -> Rules {
        let messages = if self.lossy { ANY } else { 0 };
        Rules {
            budget: Budget {
                crashes: self.faults,
                restarts: self.faults,
                losses: messages,
                duplications: messages,
                campaigns: if self.part == Part::Whole { 0 } else { ANY },
                ..Budget::default()
            },
            timers: match self.part {
                Part::Votes => Timers::Free { expiries: self.faults },
                Part::Leases | Part::Whole => Timers::Clocked { tick: TICK, drift: self.drift },
            },
            fifo: false,
            properties: match (self.asked, self.part) {
                (Some(asked), _) => vec![asked],
                (None, Part::Votes) => OF_VOTES.to_vec(),
                (None, Part::Leases | Part::Whole) => Property::QUORUM.to_vec(),
            },
            from: None,
        }
    }

    fn config(&self) -> Config {
        // Answers are waited for twice as long as a message takes.
        let timing = Timing::for_transmission(Span::from_nanos(TICK.as_nanos() / 2));
        let mut members = Members::range(1, self.members).expect("a few members");
        if self.part != Part::Whole {
            // Nobody is better than another, and nothing that is explored asks who is.
            let alike: Vec<(NodeId, i64)> = members.iter().map(|id| (id, 0)).collect();
            members = members.with_attrs(alike).expect("members have attributes");
        }
        let mut config = Config::new(members, timing, Mode::Hardened);
        let quorum = &mut config.quorum;
        let (heartbeat, promise) = match self.drift {
            0 => (TICK, TICK * 3),
            _ => (TICK * 2, TICK * 6),
        };
        quorum.pace = Pace { heartbeat, promise, drift: self.drift, grain: TICK };
        // What makes no difference to safety takes no time, and nothing is remembered for it.
        (quorum.jitter, quorum.stagger, quorum.probe) = (Span::ZERO, Span::ZERO, None);
        (quorum.forgiveness, quorum.deferrals) = (Span::ZERO, 0);
        (quorum.preemption, quorum.remembers) = (Preemption::Never, false);
        let bold = (self.part == Part::Leases).then_some(Rule::Courtesy);
        let missing = [self.without, bold].into_iter().flatten();
        let rules = QuorumRules::default().until(Epoch(self.terms));
        quorum.rules = missing.fold(rules, QuorumRules::without);
        config
    }
}
