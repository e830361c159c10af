//! `doyen check`: every run of an election, of mutual exclusion or of a service, within a fault budget, or random runs.

mod random;
mod report;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use clap::{Args, ValueEnum, value_parser};
use doyen_check::budget::{ANY, Budget, MAX as MOST};
use doyen_check::counterexample::Counterexample;
use doyen_check::minimize::{Minimized, minimize};
use doyen_check::part::{Part, Scope};
use doyen_check::property::Property;
use doyen_check::search::{Limits, Plan, Progress as Explored};
use doyen_check::selection::{Selection, Wanted};
use doyen_check::{EXPIRIES, MAX_MEMBERS, Rules, Timers};
use doyen_core::config::Mode;
use doyen_core::config::rules::Rule;
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;
use doyen_sim::parallel;
use doyen_sim::scenario::{Case, MemberList, Scenario};
use doyen_sim::time::Time;

use super::election::{Election, as_flag};
use super::output::Output;
use super::progress::Progress;
use super::section::Section;
use super::{Answer, scenarios, system};

/// The share of the free memory that a check may take by default.
const SHARE_OF_MEMORY: f64 = 0.6;

/// How long the exploration of a part of the quorum takes at most by default.
const PART_TIME: Duration = Duration::from_secs(50);

/// A part of the quorum has settings of its own.
#[rustfmt::skip]
const NOT_WITH_PART: [&str; 33] = [
    "tells", "requests", "hold", "repeat", "think", "sets", "tree", "voters", "votes", "ask_all", "back_off", "file", "mode", "initiators", "dead", "leader", "attr", "ring", "convention", "contact_dead", "announce", "fifo",
    "reliable", "window", "heartbeat", "preempt", "detector", "suspicions", "timers", "detection", "from", "unordered",
    "snapshots",
];

/// Random runs draw their faults, and have neither a timer model nor limits but time.
#[rustfmt::skip]
const NOT_WITH_RANDOM: [&str; 12] = [
    "part", "terms", "mixed_timings", "timers", "expiries", "detection", "drift", "from", "max_states", "max_memory",
    "max_depth", "no_reduction",
];

/// Explore every run of an election, of mutual exclusion or of a service within a fault budget, or make random runs
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen check --algorithm chang-roberts --members 6 --initiators all --fifo
  doyen check --algorithm chang-roberts --members 4 --initiators all --fifo --crashes 1
  doyen check --algorithm bully --mode hardened --members 3 --leader 3 --crashes 1 --restarts 1
  doyen check --algorithm bully --members 3 --snapshots 1 --property consistent-cut
  doyen check --algorithm bully --mode cs677-no-t2 --members 3 --crashes 2 --property A3
  doyen check --algorithm maekawa --mode original --members 4 --sets grid --requests 2,3,4
  doyen check --algorithm ricart-agrawala --members 3 --requests 1,2 --repeat 2 --duplications 1
  doyen check --algorithm lock-service --crashes 1
  doyen check --algorithm sequencer --members 3 --requests 1,2 --crashes 1
  doyen check --algorithm bank --members 3 --requests all
  doyen check --algorithm quorum --part leases --crashes 1 --transfers 1 --max-time 10m
  doyen check --random --algorithm bully --runs 10000

Timers are bounded (the synchronous model: no message takes longer than D, and timers expire when due), free (the
asynchronous model: timers expire at any moment, each member's at most --expiries times) or clocked (timers expire when
due, and messages take any time: the model in which leases must be safe).
Ctrl-C stops a check and reports what it covered; a second Ctrl-C stops it at once.
Exit: 0 every property holds, 1 a property is violated, 2 wrong usage, 4 a limit was reached first, 101 internal error,
130 interrupted first.")]
pub(crate) struct Check {
    /// Scenario with the members and settings, a file or the name of one that is built in; its faults are ignored unless
    /// --from is given
    #[arg(value_name = "SCENARIO")]
    file: Option<PathBuf>,

    #[command(flatten)]
    election: Election,

    #[command(flatten)]
    section: Section,

    #[command(flatten)]
    parts: Parts,

    #[command(flatten)]
    faults: Faults,

    #[command(flatten)]
    random: Random,

    #[command(flatten)]
    model: Model,

    /// Let messages of one link overtake each other [default: where the algorithm tolerates it, unless --fifo]
    #[arg(long, conflicts_with = "fifo", help_heading = "Model")]
    unordered: bool,

    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        help = property_help(),
        help_heading = "Model"
    )]
    property: Vec<Wanted>,

    #[command(flatten)]
    search: Search,

    /// Stop after this time, such as 60s or 5m; a counterexample is then shrunk for at most 25s
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "Search")]
    max_time: Option<Duration>,

    /// Number of threads [default: the number of cores]
    #[arg(long, value_name = "COUNT", value_parser = positive::<usize>, help_heading = "Search")]
    threads: Option<usize>,

    /// Write a counterexample to this file [default: counterexample.toml; of a random run
    /// counterexample-ALGORITHM-SEED-RUN.toml]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    out: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    json: bool,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Quorum")]
struct Parts {
    /// Explore this part of the quorum: votes, sessions, leases or whole. Defaults: 3 members; any number of crashes,
    /// restarts, losses and duplications; 50 s. For sessions: one replacement and no crashes
    #[arg(long, value_name = "PART", conflicts_with_all = NOT_WITH_PART)]
    part: Option<Part>,

    /// Last term that is opened [default: 2]
    #[arg(long, value_name = "COUNT", requires = "part", value_parser = value_parser!(u64).range(1..=100))]
    terms: Option<u64>,

    /// Let one member ask for longer vote leases than the others
    #[arg(long, requires = "part")]
    mixed_timings: bool,

    /// Remove this rule from all members
    #[arg(long, value_name = "RULE", conflicts_with_all = NOT_WITH_PART, hide = true)]
    without: Option<Rule>,
}

/// How often each fault may happen: a number, or `any`. None happens by default, except with `--part`.
#[derive(Args, Debug)]
#[command(next_help_heading = "Faults")]
struct Faults {
    /// Members that crash, at any moment
    #[arg(long, value_name = "COUNT", value_parser = fault_count)]
    crashes: Option<u8>,

    /// Members that restart, crashed or dead from the beginning
    #[arg(long, value_name = "COUNT", value_parser = fault_count)]
    restarts: Option<u8>,

    /// Messages that are lost
    #[arg(long, value_name = "COUNT", value_parser = fault_count)]
    losses: Option<u8>,

    /// Messages that arrive twice
    #[arg(long, value_name = "COUNT", value_parser = fault_count)]
    duplications: Option<u8>,

    /// Live members that a failure detector suspects, until it reaches them again
    #[arg(long, value_name = "COUNT", value_parser = fault_count)]
    suspicions: Option<u8>,

    /// Members that call an election without a reason, at any moment
    #[arg(long, value_name = "COUNT", value_parser = fault_count)]
    campaigns: Option<u8>,

    /// Commands to the leader of a quorum to transfer or to resign
    #[arg(long, value_name = "COUNT", value_parser = fault_count)]
    transfers: Option<u8>,

    /// Other admin commands to a quorum: drain, undrain, prefer, pause, resume
    #[arg(long, value_name = "COUNT", value_parser = fault_count)]
    commands: Option<u8>,

    /// Members of a quorum that lose their disk and rejoin
    #[arg(long, value_name = "COUNT", value_parser = fault_count)]
    rejoins: Option<u8>,

    /// With --part sessions: members that are replaced by a new process, which rejoins while the old one goes on
    #[arg(long, value_name = "COUNT", value_parser = fault_count, requires = "part")]
    replacements: Option<u8>,

    /// With --part sessions: second processes that start from a copy of a member's disk
    #[arg(long, value_name = "COUNT", value_parser = fault_count, requires = "part")]
    clones: Option<u8>,

    /// Leaders of a quorum that crash on a machine that lives, where a guardian releases the lease
    #[arg(long, value_name = "COUNT", value_parser = fault_count)]
    releases: Option<u8>,

    /// Members that start a snapshot of the group; links keep the order of messages then, unless --unordered is given
    /// [default: 1 of bank]
    #[arg(long, value_name = "COUNT", value_parser = fault_count)]
    snapshots: Option<u8>,

    /// Messages outside an algorithm of mutual exclusion by which a member tells another one something (causal-order)
    #[arg(long, value_name = "COUNT", value_parser = fault_count)]
    tells: Option<u8>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Random runs")]
struct Random {
    /// Make random runs in the simulator instead: random faults, each time followed by calm [default mode: hardened].
    /// No fault budget, timer model or limit but --max-time goes with it
    #[arg(long, conflicts_with_all = Budget::NAMES.into_iter().chain(NOT_WITH_RANDOM))]
    random: bool,

    /// Never repair faults: members stay down and links stay cut, but a majority stays connected and must keep a leader
    /// [algorithm: quorum]
    #[arg(long, requires = "random")]
    lasting: bool,

    /// Number of random runs
    #[arg(long, value_name = "COUNT", requires = "random", default_value = "100000", value_parser = positive::<u64>)]
    runs: u64,

    /// Random seed
    #[arg(long, value_name = "SEED", default_value_t = 1, requires = "random")]
    seed: u64,

    /// Make only this random run
    #[arg(long, value_name = "NUMBER", value_parser = positive::<u64>, requires = "random")]
    run: Option<u64>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Model")]
struct Model {
    /// When timers expire: bounded, clocked or free [default: bounded, or free where members have none]
    #[arg(long, value_name = "MODEL")]
    timers: Option<TimerModel>,

    /// How often each member's free timers expire at most [default: 2]
    #[arg(long, value_name = "COUNT", value_parser = fault_count)]
    expiries: Option<u8>,

    /// How long a failure detector takes at most, in multiples of D, with bounded timers [default: 2]
    #[arg(long, value_name = "COUNT")]
    detection: Option<u8>,

    /// By how much any clock may be wrong, such as 0.1, with clocked timers [default: 0]
    #[arg(long, value_name = "SHARE", value_parser = parse_drift)]
    drift: Option<u32>,

    /// Simulate the scenario until this time, and explore from there
    #[arg(long, value_name = "TIME", requires = "file")]
    from: Option<Span>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Search")]
struct Search {
    /// Stop after this many states
    #[arg(long, value_name = "COUNT", value_parser = positive::<u64>)]
    max_states: Option<u64>,

    /// Stop when this much memory is used, such as 2GB [default: 60 % of what is free]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_memory: Option<u64>,

    /// Go at most this many steps from the start
    #[arg(long, value_name = "COUNT", value_parser = positive::<u32>)]
    max_depth: Option<u32>,

    /// Also explore equivalent orders of steps
    #[arg(long)]
    no_reduction: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum TimerModel {
    Bounded,
    Clocked,
    Free,
}

fn property_help() -> String {
    let names = |is: &dyn Fn(&Property) -> bool| {
        let names = Property::ALL.iter().filter(|it| is(it)).map(|property| property.name());
        names.collect::<Vec<_>>().join(",")
    };
    let is_usual = |property: &Property| Property::USUAL.contains(property);
    let of_quorum = Property::usual_of(Algorithm::Quorum, Mode::Hardened);
    format!(
        "Properties to check, such as A1,A4, or `all` [default: {}; for quorum also {}; for mutual exclusion those of {} that \
         the algorithm has; random runs do not check {}]",
        names(&is_usual),
        names(&|property| of_quorum.contains(property) && !is_usual(property)),
        names(&|property| Property::EXCLUSION.contains(property)),
        names(&|property| !property.is_judged_at_random()),
    )
}

fn fault_count(text: &str) -> Result<u8, String> {
    let count = text.parse().ok().filter(|&count: &u8| count <= MOST);
    let count = count.or_else(|| (text == "any").then_some(ANY));
    count.ok_or_else(|| format!("use a whole number of at most {MOST}, or `any`"))
}

fn positive<T: TryFrom<u64>>(text: &str) -> Result<T, &'static str> {
    let number = text.parse::<u64>().map_err(|_| "use a whole number of at least 1")?;
    let number = if number > 0 { Ok(number) } else { Err("must be at least 1") };
    T::try_from(number?).map_err(|_| "too large")
}

/// Reads `60s`, `1.5s`, `5m`, `1h 30m`.
fn parse_time(text: &str) -> Result<Duration, &'static str> {
    let time = super::client::parse_time(text).ok();
    time.filter(|time| !time.is_zero()).ok_or("write for example 60s, 5m or 2h")
}

/// Reads `512MB`, `2GB`, `1.5 GB`.
fn parse_size(text: &str) -> Result<u64, &'static str> {
    let upper = text.trim().to_uppercase();
    let units = [("KB", 1e3), ("MB", 1e6), ("GB", 1e9)];
    let size = units.into_iter().find_map(|(name, unit)| {
        let number: f64 = upper.strip_suffix(name)?.trim().parse().ok()?;
        (number.is_finite() && number > 0.0).then_some((number * unit) as u64)
    });
    size.ok_or("write for example 512MB or 2GB")
}

/// Reads a share, and returns it in thousandths.
fn parse_drift(text: &str) -> Result<u32, &'static str> {
    let drift = text.parse().ok().filter(|drift| (0.0..1.0).contains(drift));
    drift.map(|drift: f64| (drift * 1000.0).round() as u32).ok_or("use a number from 0 to below 1")
}

impl Faults {
    /// The fault budget of the flags; what they leave open is as in `usual`.
    fn budget(&self, usual: Budget) -> Budget {
        // If the crashes of a part are limited, so are its restarts.
        let restarts = self.restarts.or(self.crashes.filter(|_| usual != Budget::default()));
        Budget {
            crashes: self.crashes.unwrap_or(usual.crashes),
            restarts: restarts.unwrap_or(usual.restarts),
            losses: self.losses.unwrap_or(usual.losses),
            duplications: self.duplications.unwrap_or(usual.duplications),
            suspicions: self.suspicions.unwrap_or(usual.suspicions),
            campaigns: self.campaigns.unwrap_or(usual.campaigns),
            transfers: self.transfers.unwrap_or(usual.transfers),
            commands: self.commands.unwrap_or(usual.commands),
            rejoins: self.rejoins.unwrap_or(usual.rejoins),
            replacements: self.replacements.unwrap_or(usual.replacements),
            clones: self.clones.unwrap_or(usual.clones),
            releases: self.releases.unwrap_or(usual.releases),
            snapshots: self.snapshots.unwrap_or(usual.snapshots),
            tells: self.tells.unwrap_or(usual.tells),
        }
    }
}

impl Parts {
    /// What is explored of the quorum, if a part of it is.
    fn scope(&self) -> Result<Option<Scope>> {
        let scope = match (self.part, self.without) {
            (None, None) => return Ok(None),
            (Some(Part::Locks), _) => bail!("--part: use --algorithm lock-service instead"),
            (Some(part), without) => Scope { without, ..Scope::new(part) },
            (None, Some(rule)) => Scope::that_misses(rule).ok_or_else(|| {
                anyhow!("--without: no exploration detects that {rule} is missing; add --random")
            })?,
        };
        let terms = self.terms.unwrap_or(scope.terms);
        Ok(Some(Scope { terms, mixed: scope.mixed || self.mixed_timings, ..scope }))
    }
}

impl Check {
    pub(crate) fn run(self) -> Result<Answer> {
        if self.random.random {
            return random::run(&self);
        }
        let scope = self.parts.scope()?;
        let scenario = match scope {
            Some(scope) => self.scenario_of_part(scope)?,
            None => with_lock_defaults(self.scenario()?),
        };
        let case = scenario.resolve().map_err(as_flag)?;
        let (rules, selection) = match scope {
            Some(scope) => self.rules_of_part(scope)?,
            None => self.rules(&case)?,
        };
        rules.suit(&case).map_err(as_flag)?;
        let plan = self.plan(rules.scope)?;
        // A file that cannot be written is an error before the search, not after it.
        let output = self.out.as_deref().map(Output::create).transpose()?;
        let progress = Progress::spinner("exploring");
        let watch = |explored: &Explored| {
            progress.set_message(report::progress_line(explored));
            true
        };
        let found = doyen_check::check(&case, &rules, &plan, &watch);
        drop(progress);
        let least = found.violation.clone().map(|violation| {
            let _spinner = Progress::spinner("shrinking");
            minimize(&scenario, &rules, violation, &plan, &|_| true)
        });
        let file = self.out.as_deref().unwrap_or(Path::new("counterexample.toml"));
        if let Some(Minimized { scenario, rules, violation, .. }) = least.clone() {
            let mut output = output.map_or_else(|| Output::create(file), Ok)?;
            output.write_text(&Counterexample::new(scenario, &rules, violation).to_toml())?;
            output.finish()?;
        }
        let least = least.as_ref().map(|least| (least, file));
        report::Report { case, rules, selection, plan, found, least }.print(self.json)
    }

    fn scenario(&self) -> Result<Scenario> {
        let mut scenario = Scenario::default();
        if let Some(path) = &self.file {
            let (name, text) = scenarios::read(path)?;
            (scenario, _) = Scenario::read(&name, &text).map_err(|error| anyhow!(error))?;
            if self.model.from.is_none() && scenario.drop_faults() {
                system::note(format_args!(
                    "the faults of {name} are ignored; the fault budget replaces them"
                ));
            }
            scenario.expect = None;
        }
        self.election.apply(&mut scenario)?;
        self.section.apply(&mut scenario);
        if self.unordered {
            scenario.fifo = Some(false);
        } else if self.snapshots(scenario.algorithm) > 0 {
            scenario.fifo.get_or_insert(true);
        }
        if let (Some(Mode::Literal(variant)), None) = (scenario.mode, scenario.algorithm) {
            let has_it = |algorithm: &&Algorithm| algorithm.variants().contains(&variant);
            let names: Vec<&str> =
                Algorithm::ALL.iter().filter(has_it).map(|it| it.name()).collect();
            let (name, all) = (variant.name(), names.join(" and "));
            bail!("--mode: {name} is a variant of {all}; add --algorithm {}", names[0]);
        }
        Ok(scenario)
    }

    /// How many members start a snapshot: without it, there is nothing to check of a bank.
    fn snapshots(&self, algorithm: Option<Algorithm>) -> u8 {
        let usual = u8::from(algorithm == Some(Algorithm::Bank));
        self.faults.snapshots.unwrap_or(usual)
    }

    fn scenario_of_part(&self, scope: Scope) -> Result<Scenario> {
        let mut given = Scenario::default();
        self.election.apply(&mut given)?;
        if given.algorithm.is_some_and(|algorithm| algorithm != Algorithm::Quorum) {
            bail!("--part: only the quorum has parts; use --algorithm quorum");
        }
        match given.members {
            None => Ok(scope.scenario(scope.members())),
            Some(MemberList::Count(count)) if count <= MAX_MEMBERS as u64 => {
                Ok(scope.scenario(count as u32))
            }
            Some(_) => bail!("--members: give a number of at most {MAX_MEMBERS} with --part"),
        }
    }

    fn rules(&self, case: &Case) -> Result<(Rules, Selection)> {
        if let Some(flag) = self.section.timed() {
            bail!(
                "--{flag}: an exploration tries every length of time; leave it out, or add --random"
            );
        }
        let snapshots = self.snapshots(Some(case.algorithm));
        let budget = Budget { snapshots, ..self.faults.budget(Budget::default()) };
        let timers = self.timers(case)?;
        let selection =
            Selection::explorable(&self.property, case, budget, timers).map_err(as_flag)?;
        let properties = selection.checked.clone();
        let from = self.model.from.map(|span| Time(span.as_nanos()));
        let fifo = case.network.fifo;
        let scope = Scope::of(case);
        Ok((Rules { budget, timers, fifo, properties, from, scope }, selection))
    }

    fn rules_of_part(&self, scope: Scope) -> Result<(Rules, Selection)> {
        let wrong_clocks = self.wrong_clocks()?;
        let usual = Rules::of(scope, wrong_clocks);
        let mut timers = usual.timers;
        match (&mut timers, self.model.expiries) {
            (_, None) => {}
            (Timers::Free { expiries }, Some(count)) => *expiries = count,
            (_, Some(_)) => bail!("--expiries: only --part votes counts them"),
        }
        let budget = self.faults.budget(usual.budget);
        if scope.part == Part::Votes && (wrong_clocks || budget.transfers > 0) {
            bail!(
                "--drift, --transfers: votes depend on neither clocks nor leases; use --part leases"
            );
        }
        if budget.commands > 0 && scope.part != Part::Whole {
            bail!(
                "--commands: without pre-votes they amount to transfers; use --transfers, or --part whole"
            );
        }
        let selection = Selection::new(&self.property, usual.properties.clone(), |property| {
            let is_of_part = usual.properties.contains(&property);
            (!is_of_part).then_some(("not about this part of the quorum", "leave it out"))
        })
        .map_err(as_flag)?;
        Ok((Rules { budget, timers, properties: selection.checked.clone(), ..usual }, selection))
    }

    /// Whether clocks are wrong, where timers have settings of their own.
    fn wrong_clocks(&self) -> Result<bool> {
        match self.model.drift {
            None | Some(0) => Ok(false),
            Some(200) => Ok(true),
            Some(_) => bail!("--drift: with --part, and of lock-service, use 0 or 0.2"),
        }
    }

    fn timers(&self, case: &Case) -> Result<Timers> {
        let Model { timers, expiries, detection, drift, .. } = &self.model;
        if let Some(scope) = Scope::of(case) {
            if timers.is_some() || expiries.is_some() || detection.is_some() {
                bail!("--timers, --expiries, --detection: the timers of lock-service are clocked");
            }
            return Ok(scope.timers(self.wrong_clocks()?));
        }
        let tick = case.bare_bound;
        let bounded =
            Timers::Bounded { tick, detection: detection.unwrap_or(doyen_check::DETECTION) };
        let usual_is_counted = Timers::usual(case) == Timers::Free { expiries: EXPIRIES };
        let timers = match (timers, Timers::usual(case)) {
            (Some(TimerModel::Bounded), _) | (None, Timers::Bounded { .. }) => bounded,
            (Some(TimerModel::Free), _) => Timers::Free { expiries: expiries.unwrap_or(EXPIRIES) },
            (Some(TimerModel::Clocked), _) => {
                Timers::Clocked { tick, drift: drift.unwrap_or_default() }
            }
            (None, _) if usual_is_counted => {
                Timers::Free { expiries: expiries.unwrap_or(EXPIRIES) }
            }
            (None, usual) => usual,
        };
        let is_counted = self.model.timers == Some(TimerModel::Free)
            || self.model.timers.is_none() && usual_is_counted;
        if expiries.is_some() && !is_counted {
            bail!("--expiries: only free timers are counted; add --timers free");
        }
        if detection.is_some() && !matches!(timers, Timers::Bounded { .. }) {
            bail!("--detection: only bounded timers limit detection; add --timers bounded");
        }
        if drift.is_some() && !matches!(timers, Timers::Clocked { .. }) {
            bail!("--drift: only clocked timers drift; add --timers clocked");
        }
        Ok(timers)
    }

    fn threads(&self) -> usize {
        self.threads.unwrap_or_else(parallel::processors)
    }

    fn plan(&self, scope: Option<Scope>) -> Result<Plan> {
        let Search { max_states, max_memory, max_depth, no_reduction } = self.search;
        let usual_memory = || (system::available_memory() as f64 * SHARE_OF_MEMORY) as u64;
        let limits = Limits {
            states: max_states,
            time: self.max_time.or(scope.map(|_| PART_TIME)),
            memory: Some(max_memory.unwrap_or_else(usual_memory)),
            resident: Some(system::resident_memory),
            depth: max_depth,
            interrupt: Some(system::stop_flag()?),
            clock: Some(system::elapsed),
        };
        Ok(Plan { reduce: !no_reduction, threads: self.threads(), limits })
    }
}

/// What is explored of a lock service unless the flags say otherwise.
fn with_lock_defaults(mut scenario: Scenario) -> Scenario {
    if scenario.algorithm != Some(Algorithm::LockService) {
        return scenario;
    }
    let scope = Scope::new(Part::Locks);
    let count = match scenario.members {
        Some(MemberList::Count(count)) => u32::try_from(count).unwrap_or(u32::MAX),
        _ => scope.members(),
    };
    let usual = scope.scenario(count);
    if !matches!(scenario.members, Some(MemberList::Listed(_))) {
        scenario.leader = scenario.leader.or(usual.leader);
        scenario.members = scenario.members.or(usual.members);
    }
    scenario.requests = scenario.requests.or(usual.requests);
    scenario
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_times_and_counts_are_read() {
        assert_eq!(parse_size("512MB"), Ok(512_000_000));
        assert_eq!(parse_size("1.5 gb"), Ok(1_500_000_000));
        for wrong in ["", "GB", "-1GB", "12", "nanGB"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
        for (text, millis) in [("60s", 60_000), ("1.5s", 1_500), ("5m", 300_000), ("2h", 7_200_000)]
        {
            assert_eq!(parse_time(text), Ok(Duration::from_millis(millis)));
        }
        for wrong in ["", "0", "0s", "5", "-1s", "soon"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
        assert_eq!(positive::<u64>("1"), Ok(1));
        for wrong in ["0", "-1", "1.5", "many", "4294967296"] {
            assert!(positive::<u32>(wrong).is_err(), "{wrong}");
        }
    }
}
