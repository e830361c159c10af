//! Explores the shipped state machines: every order of everything that can happen, within a budget of faults.
//!
//! A check is about a [`Case`], as a simulation is: the same members, the same mode, the same scene. Where a simulation
//! draws delays, a check tries them all. It says whether the [properties](Property) that were asked for hold
//! in every run; if one does not, it shows a run in which it does not.
//!
//! - `space`: what a search explores; `machine` makes a space of any protocol, `local` is one member in it;
//! - `search`: breadth first on all cores, or depth first; `level` is what it
//!   has yet to visit, `seen` what it remembers; `graph` finds runs that never end, `reduce` leaves out orders that make no difference;
//! - `property`: what is checked, in words; `budget`: what may go wrong; `part`: what is explored of the quorum;
//! - [`counterexample`]: a run that breaks a property, as a file; [`replay`]: that run again, and why.

pub mod arrange;
pub mod budget;
pub mod campaign;
pub mod counterexample;
mod depth;
pub mod fingerprint;
mod graph;
mod intern;
mod level;
mod local;
mod machine;
pub mod oracle;
pub mod part;
pub mod property;
mod reduce;
pub mod replay;
pub mod schedule;
pub mod search;
mod seen;
pub mod shard;
pub mod shrink;
pub mod space;

use std::borrow::Cow;
use std::fmt;

use doyen_core::algorithm::quorum::settings;
use doyen_core::algorithm::quorum::voter::Voter;
use doyen_core::members::{Members, NodeId};
use doyen_core::node::Node;
use doyen_core::registry::{Algorithm, AnyProtocol};
use doyen_core::session::Session;
use doyen_core::time::Span;

use budget::{ANY, Budget};
use doyen_sim::run;
use doyen_sim::scenario::Case;
use doyen_sim::time::Time;
use local::Pace;
use machine::{Machine, Step};
use part::{Part, Scope};
use property::Property;
use schedule::StepText;
use search::{Found, Limit, Plan, Progress, Watch};
use space::{Space, Successors};

pub use machine::{Explorable, MOST_MEMBERS};

/// What is explored, and what for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rules {
    /// What may go wrong.
    pub budget: Budget,
    /// When timers expire.
    pub timers: Timers,
    /// Whether links keep the order of messages.
    pub fifo: bool,
    /// What must hold.
    pub properties: Vec<Property>,
    /// From which moment of the simulated run everything is explored; from the scene of its beginning without it.
    pub from: Option<Time>,
    /// What is explored of the quorum; all members as the case has them without it.
    pub scope: Option<Scope>,
}

impl Rules {
    /// Whether whatever has been sent may arrive at any moment from then on, as often as it likes, or never. Nothing can
    /// be said then about how runs end.
    pub fn messages_last(&self) -> bool {
        let Budget { losses, duplications, .. } = self.budget;
        let timeless = !matches!(self.timers, Timers::Bounded { .. });
        losses == ANY && duplications == ANY && timeless && !self.fifo
    }
}

/// When timers expire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Timers {
    /// At any moment, in any order: the asynchronous model.
    Free {
        /// How often each member's may, lest a run go on for ever; [`ANY`] is any number of times.
        expiries: u8,
    },
    /// When they are due, and no message takes longer than a tick: the synchronous model, in which the sources make
    /// their claims.
    Bounded {
        /// The length of a tick: `D`.
        tick: Span,
        /// How many ticks a failure detector takes at most to notice a crash or a recovery.
        detection: u8,
    },
    /// When they are due, but messages may take any time: what leases must be safe under. Nothing is said about
    /// whether anything ever ends.
    Clocked {
        /// The length of a tick.
        tick: Span,
        /// By how much any clock may be wrong, in thousandths: each timer may be early or late by so much.
        drift: u32,
    },
}

impl Timers {
    /// How timers of `case` are explored unless one says otherwise: bounded, for that is the model in which elections
    /// make their promises; free, if members have no timers.
    pub fn usual(case: &Case) -> Self {
        let has_timers = case.is_layered()
            || !matches!(
                case.algorithm,
                Algorithm::ChangRoberts | Algorithm::RingAllIds | Algorithm::RingActiveList
            );
        match has_timers {
            true => Self::Bounded { tick: case.bare_bound, detection: DETECTION },
            false => Self::Free { expiries: 0 },
        }
    }

    fn expiries(self) -> u8 {
        match self {
            Self::Free { expiries } => expiries,
            Self::Bounded { .. } | Self::Clocked { .. } => 0,
        }
    }

    fn pace(self) -> Option<Pace> {
        match self {
            Self::Free { .. } => None,
            Self::Bounded { tick, detection } => {
                Some(Pace { tick, detection: Some(detection), drift: 0 })
            }
            Self::Clocked { tick, drift } => Some(Pace { tick, detection: None, drift }),
        }
    }

    /// Refuses leases and promises that are no whole ticks, where safety rests on clocks. Rounded, they would be others,
    /// and what is explored would not be what runs.
    pub fn suit(self, case: &Case) -> Result<(), String> {
        match self {
            Self::Clocked { tick, drift } if case.algorithm.has_leases() => {
                let clock = Pace { tick, detection: None, drift };
                let mut paces = case.members().iter().map(|id| case.config.quorum.pace_of(id));
                paces.try_for_each(|pace| {
                    check_ticks(pace, tick)?;
                    check_margin(pace, clock)
                })
            }
            _ => Ok(()),
        }
    }

    /// The length of a tick, where time goes by in ticks.
    pub(crate) fn tick(self) -> Option<Span> {
        self.pace().map(|pace| pace.tick)
    }
}

/// Whether the vote leases and leases of members at this pace are whole ticks; if not, which vote lease would do.
fn check_ticks(pace: settings::Pace, tick: Span) -> Result<(), String> {
    let tick_nanos = tick.as_nanos().max(1);
    let is_whole = |span: Span| span.as_nanos().is_multiple_of(tick_nanos);
    let lengths = [("vote lease", pace.vote_lease), ("lease", pace.lease())];
    let Some((name, length)) = lengths.into_iter().find(|&(_, length)| !is_whole(length)) else {
        return Ok(());
    };
    let with_vote_lease = |ticks| settings::Pace { vote_lease: tick * ticks, ..pace };
    let least = pace.vote_lease.as_nanos().div_ceil(tick_nanos);
    // Drift is in thousandths: what it makes of a vote lease is whole again before two thousand ticks more.
    let fits = (least..least + 2000).map(with_vote_lease).find(|pace| is_whole(pace.lease()));
    let remedy = match fits {
        Some(pace) => {
            format!("vote_lease = \"{}\" under [quorum] in a scenario would do", pace.vote_lease)
        }
        None => format!("no vote lease would do with timers as coarse as {}", pace.grain),
    };
    Err(format!(
        "a {name} of {length} is not a whole number of ticks of {tick}, in which clocked timers go; {remedy}"
    ))
}

/// Whether by clocks that are as wrong as they may be no lease outlasts its promises: it does not, but where either is
/// no whole number of ticks by such a clock, it may once both are rounded. Clocks that are worse than members reckon with
/// are for those who want to see what becomes of that.
fn check_margin(pace: settings::Pace, clock: Pace) -> Result<(), String> {
    let [_, lease] = clock.in_ticks(pace.lease().into());
    let [vote_lease, _] = clock.in_ticks(pace.vote_lease.into());
    if lease <= vote_lease || clock.drift > pace.drift {
        return Ok(());
    }
    Err(format!(
        "if clocks are wrong, a lease of {} takes up to {lease} whole ticks of {} and a vote lease of {} at least {vote_lease}: \
         it would outlast the vote lease by nothing but rounding; use other lengths",
        pace.lease(),
        clock.tick,
        pace.vote_lease
    ))
}

/// How many ticks a failure detector takes at most, unless one says otherwise.
pub const DETECTION: u8 = 2;

/// What a check came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// How much was explored.
    pub progress: Progress,
    /// What stopped it before everything was seen.
    pub limit: Option<Limit>,
    /// The property that does not hold, if one does not.
    pub violation: Option<Violation>,
    /// Whether runs that never end were looked for: where a property is about the end of runs, breadth first, and when
    /// everything had been seen and nothing was broken on the way.
    pub sought_endless: bool,
}

/// A run that breaks a property.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The property.
    pub property: Property,
    /// The steps to where it is broken.
    pub path: Vec<StepText>,
    /// The steps that are then repeated for ever; none if nothing is left to do.
    pub cycle: Vec<StepText>,
}

/// Checks `case` under `rules`.
pub fn check(case: &Case, rules: &Rules, plan: &Plan, watch: Watch<'_>) -> Report {
    let case = &scoped(case, rules);
    match part_of(rules) {
        Some(Part::Votes) => explore::<Voter>(&case.config, &Scene::of(case), rules, plan, watch),
        Some(Part::Sessions) => {
            let config = part::session_config(case);
            explore::<Session<Voter>>(&config, &Scene::of(case), rules, plan, watch)
        }
        None if case.is_layered() => report_on(
            machine::<Node<AnyProtocol>>(case, &run::node_config(case), rules),
            plan,
            watch,
        ),
        Some(Part::Leases | Part::Whole) | None => {
            report_on(machine::<AnyProtocol>(case, &run::any_config(case), rules), plan, watch)
        }
    }
}

/// The part of the quorum that is explored; nothing if all members are as the case has them.
fn part_of(rules: &Rules) -> Option<Part> {
    rules.scope.map(|scope| scope.part)
}

/// The case as the scope of `rules` has it.
fn scoped<'c>(case: &'c Case, rules: &Rules) -> Cow<'c, Case> {
    match rules.scope {
        Some(scope) => Cow::Owned(scope.apply(case, rules.timers)),
        None => Cow::Borrowed(case),
    }
}

/// The space of `case`, from the moment that `rules` name.
fn machine<'c, P: Explorable>(
    case: &'c Case,
    config: &'c P::Config,
    rules: &Rules,
) -> Machine<'c, P> {
    match rules.from {
        None => Machine::new(config, &Scene::of(case), rules.clone()),
        Some(at) => {
            let snapshot = run::freeze(case, config, at);
            Machine::resume(config, case.members(), snapshot, rules.clone())
        }
    }
}

/// Checks any protocol: members with `config`, in `scene`, under `rules`.
pub fn explore<P: Explorable>(
    config: &P::Config,
    scene: &Scene<'_>,
    rules: &Rules,
    plan: &Plan,
    watch: Watch<'_>,
) -> Report {
    report_on(Machine::<P>::new(config, scene, rules.clone()), plan, watch)
}

fn report_on<P: Explorable>(mut machine: Machine<'_, P>, plan: &Plan, watch: Watch<'_>) -> Report {
    if plan.reduce {
        machine.reduce_states();
    }
    let found = explore_all(&machine, plan, watch);
    let Found { progress, limit, violation, sought_endless, .. } = found;
    let violation = violation.map(|violation| in_words(&mut machine, &violation));
    Report { progress, limit, violation, sought_endless }
}

/// Searches; and again, if the search met a link that the reduction did not reckon with, or has left something out that
/// may matter.
fn explore_all<P: Explorable>(
    machine: &Machine<'_, P>,
    plan: &Plan,
    watch: Watch<'_>,
) -> Found<Step> {
    let mut spent = Progress::default();
    loop {
        let links = machine.links_known();
        let plan = Plan { limits: plan.limits.left_after(&spent), ..plan.clone() };
        let mut found = search::search(machine, &plan, watch);
        spent.elapsed += found.progress.elapsed;
        found.progress.elapsed = spent.elapsed;
        let misjudged = plan.reduce && machine.links_known() > links && found.limit.is_none();
        if found.violation.is_some() || !misjudged && !found.void {
            return found;
        }
    }
}

/// A step of a violation in words, with what it needs and sends.
struct Told {
    step: StepText,
    hears: Option<u32>,
    sends: Vec<u32>,
    /// It was taken at once, and not by the search.
    at_once: bool,
}

/// A violation with its steps in words. It is walked through again for that, by one who then knows every number in it, and
/// takes one step at a time.
fn in_words<P: Explorable>(
    machine: &mut Machine<'_, P>,
    violation: &search::Violation<Step>,
) -> Violation {
    let saturates = machine.stop_saturating();
    let mut hand = machine.hand();
    let mut state = machine.start();
    let mut out = Successors::new();
    let mut told: Vec<Told> = Vec::new();
    for &step in violation.path.iter().chain(&violation.cycle) {
        if saturates {
            let mut taken = Vec::new();
            machine.saturate_all(&mut hand, &mut state, Some(&mut taken));
            for (step, sends) in taken {
                let hears = step.act.hears();
                let step = machine.describe(&hand, &state, step);
                told.push(Told { step, hears, sends, at_once: true });
            }
        }
        machine.steps(&mut hand, &state, false, &mut out);
        let next = out.list().iter().find(|next| next.step == step);
        let next = out.state(next.expect("the step is possible here")).to_vec();
        let hears = step.act.hears();
        let step = machine.describe(&hand, &state, step);
        told.push(Told { step, hears, sends: Vec::new(), at_once: false });
        state = next;
    }
    // Of what was taken at once, that counts by which something was sent that was heard.
    let mut heard: Vec<u32> = Vec::new();
    let mut steps: Vec<StepText> = Vec::new();
    for Told { step, hears, sends, at_once } in told.into_iter().rev() {
        if !at_once || sends.iter().any(|sent| heard.contains(sent)) {
            heard.extend(hears);
            steps.push(step);
        }
    }
    steps.reverse();
    let cycle = steps.split_off(steps.len() - violation.cycle.len());
    Violation { property: machine.rules.properties[violation.claim], path: steps, cycle }
}

/// Where everything begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scene<'c> {
    /// Who takes part.
    pub members: &'c Members,
    /// Who leads.
    pub leader: Option<NodeId>,
    /// Who is dead.
    pub dead: Vec<NodeId>,
    /// Whether everybody knows who is dead.
    pub dead_known: bool,
    /// Who has noticed that the coordinator is gone, and has called an election.
    pub initiators: Vec<NodeId>,
}

impl<'c> Scene<'c> {
    /// All `members` are alive and nobody has done anything.
    pub fn new(members: &'c Members) -> Self {
        Self { members, leader: None, dead: Vec::new(), dead_known: true, initiators: Vec::new() }
    }

    /// The scene of `case`. Whoever notices at any time there has noticed here.
    pub fn of(case: &'c Case) -> Self {
        Self {
            members: case.members(),
            leader: case.leader,
            dead: case.dead.clone(),
            dead_known: !case.contact_dead,
            initiators: case.initiators.iter().map(|(id, _)| id).collect(),
        }
    }
}

impl fmt::Display for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Free { expiries: ANY } => f.write_str("free, any number of expiries"),
            Self::Free { expiries: 1 } => f.write_str("free, 1 expiry a member"),
            Self::Free { expiries } => write!(f, "free, {expiries} expiries a member"),
            Self::Bounded { tick, detection } => {
                write!(
                    f,
                    "bounded, a message takes at most {tick}, detection {detection} times that"
                )
            }
            Self::Clocked { tick, drift } => {
                write!(f, "clocked, in ticks of {tick}; a message takes any time")?;
                match drift {
                    0 => Ok(()),
                    _ => write!(f, "; clocks are wrong by up to {}", f64::from(*drift) / 1000.0),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With clocks that are wrong by a fifth a lease is two thirds of its vote_lease. By such clocks a vote lease of three ticks
    /// lasts two at least and its lease three at most; one of six, five and five.
    #[test]
    fn a_lease_that_only_rounding_makes_too_long_is_refused() {
        let millis = Span::from_millis;
        let check = |vote_lease, drift| {
            let [vote_lease, heartbeat] = [vote_lease, 1].map(millis);
            let pace = settings::Pace { heartbeat, vote_lease, drift: 200, grain: Span::ZERO };
            check_margin(pace, Pace { tick: millis(1), drift, detection: None })
        };
        let refused = check(3, 200).unwrap_err();
        assert!(refused.contains("a lease of 2ms takes up to 3 whole ticks"), "{refused}");
        assert!(refused.contains("a vote lease of 3ms at least 2"), "{refused}");
        assert_eq!(check(6, 200), Ok(()));
        assert_eq!(check(3, 201), Ok(()), "worse clocks than members reckon with");
    }
}
