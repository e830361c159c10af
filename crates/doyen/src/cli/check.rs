//! `doyen check`: every run of an election, within a budget of faults.

mod limits;
mod random;
mod report;

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Result, anyhow, bail};
use clap::{Args, ValueEnum, value_parser};
use doyen_core::algorithm::Algorithm;
use doyen_core::time::Span;
use doyen_sim::check::arrange::arrangements;
use doyen_sim::check::budget::{ANY, Budget, MOST};
use doyen_sim::check::counterexample::Counterexample;
use doyen_sim::check::property::Property;
use doyen_sim::check::search::{Plan, Progress};
use doyen_sim::check::shrink::{self, Least};
use doyen_sim::check::{self, MOST_MEMBERS, Rules, Timers};
use doyen_sim::scenario::{Case, RingOrder, Scenario};
use doyen_sim::sweep::Shard;
use doyen_sim::time::Time;

use super::Answer;
use super::election::{Election, as_flag};
use super::output::Output;
use super::progress::Meter;
use super::sim;
use report::Subject;

/// Explore every run of an election, with every fault a budget allows
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen check --algorithm chang-roberts --members 6 --initiators all --fifo
  doyen check --algorithm chang-roberts --members 4 --initiators all --fifo --crashes 1
  doyen check --algorithm bully --mode hardened --members 3 --leader 3 --crashes 1 --restarts 1
  doyen check --algorithm bully --mode 000-no-t2 --members 3 --crashes 2 --property A3
  doyen check --algorithm ring-list --members 4 --ring every --crashes 1

Bounded timers are the synchronous model: no message takes longer than D, and timers expire when they are due. Free
timers are the asynchronous model: they expire at any moment, each member's as often as --expiries says. Clocked
timers expire when they are due while messages take any time: what leases must be safe under.
Exit: 0 everything holds, 1 a property is violated, 2 wrong usage, 4 a limit was reached before everything was seen,
101 doyen itself failed.")]
pub(crate) struct Check {
    /// A scenario that says who takes part and how; what goes wrong in it is not repeated, unless --from
    #[arg(value_name = "FILE.toml")]
    file: Option<PathBuf>,

    #[command(flatten)]
    election: Election,

    #[command(flatten)]
    faults: Faults,

    /// Make random runs in the simulator instead: storms of faults, each followed by calm [default mode: hardened].
    /// What goes wrong and when is drawn, so no budget, no timer model and no limit of a search goes with it
    #[arg(
        long,
        conflicts_with_all = [
            "crashes", "restarts", "losses", "duplications", "suspicions", "campaigns",
            "timers", "expiries", "detection", "drift", "from",
            "max_states", "max_time", "max_memory", "max_depth", "depth_first", "no_reduction",
        ],
        help_heading = "Random runs"
    )]
    random: bool,

    /// How many random runs
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 100_000,
        value_parser = value_parser!(u64).range(1..),
        requires = "random",
        help_heading = "Random runs"
    )]
    runs: u64,

    /// What random runs are drawn from
    #[arg(
        long,
        value_name = "SEED",
        default_value_t = 1,
        requires = "random",
        help_heading = "Random runs"
    )]
    seed: u64,

    /// Make only this part of the random runs: 1/3 is the first of three
    #[arg(long, value_name = "I/N", requires = "random", help_heading = "Random runs")]
    shard: Option<Shard>,

    /// Make this random run alone
    #[arg(
        long,
        value_name = "NUMBER",
        value_parser = value_parser!(u64).range(1..),
        requires = "random",
        conflicts_with = "shard",
        help_heading = "Random runs"
    )]
    run: Option<u64>,

    /// When timers expire: bounded, clocked or free [default: free where members have none, else bounded]
    #[arg(long, value_name = "MODEL", help_heading = "Model")]
    timers: Option<TimerModel>,

    /// How often each member's timers expire at most, if timers are free
    #[arg(long, value_name = "COUNT", default_value = "2", help_heading = "Model")]
    expiries: Count,

    /// How long a failure detector takes at most, in multiples of D, if timers are bounded
    #[arg(long, value_name = "COUNT", default_value_t = check::DETECTION, help_heading = "Model")]
    detection: u8,

    /// By how much any clock may be wrong, such as 0.1, if timers are clocked
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "Model")]
    drift: f64,

    /// Run the scenario until this time, and explore everything from there
    #[arg(long, value_name = "TIME", requires = "file", help_heading = "Model")]
    from: Option<String>,

    /// Messages of one link may overtake each other [default: where the algorithm bears it, unless --fifo]
    #[arg(long, conflicts_with = "fifo", help_heading = "Model")]
    unordered: bool,

    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        help = property_help(),
        help_heading = "Model"
    )]
    property: Vec<String>,

    #[command(flatten)]
    limits: limits::Limits,

    /// One path at a time: less memory, longer counterexamples, no search for runs that never end
    #[arg(long, help_heading = "Search")]
    depth_first: bool,

    /// How many threads search, or make random runs [default: as many as there are cores]
    #[arg(long, value_name = "COUNT", help_heading = "Search")]
    threads: Option<usize>,

    /// Explore orders that make no difference too
    #[arg(long, help_heading = "Search")]
    no_reduction: bool,

    /// Where a counterexample is written, of several random runs that fail the first [default: counterexample.toml;
    /// of a random run counterexample-ALGORITHM-SEED-RUN.toml]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    out: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// What may go wrong, and how often: so many times, or `any` number of times.
#[derive(Args, Debug)]
struct Faults {
    /// Members that crash, at any moment
    #[arg(long, value_name = "COUNT", default_value = "0", help_heading = "Faults")]
    crashes: Count,

    /// Members that come up again, or that were dead and come up
    #[arg(long, value_name = "COUNT", default_value = "0", help_heading = "Faults")]
    restarts: Count,

    /// Messages that are lost
    #[arg(long, value_name = "COUNT", default_value = "0", help_heading = "Faults")]
    losses: Count,

    /// Messages that arrive twice
    #[arg(long, value_name = "COUNT", default_value = "0", help_heading = "Faults")]
    duplications: Count,

    /// Live members that a failure detector takes for dead, until it hears them again
    #[arg(long, value_name = "COUNT", default_value = "0", help_heading = "Faults")]
    suspicions: Count,

    /// Members that call an election of themselves, at any moment
    #[arg(long, value_name = "COUNT", default_value = "0", help_heading = "Faults")]
    campaigns: Count,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum TimerModel {
    Bounded,
    Clocked,
    Free,
}

/// What must hold unless one says otherwise, from where it is decided.
fn property_help() -> String {
    let names = |properties: &[Property]| {
        let names: Vec<&str> = properties.iter().map(|property| property.name()).collect();
        names.join(",")
    };
    let usual = names(&Property::USUAL);
    let mut besides = Property::usual_of(Algorithm::Quorum);
    besides.retain(|property| !Property::USUAL.contains(property));
    format!(
        "What must hold, such as A1,A4; `all` for everything [default: {usual}; of quorum also {}]",
        names(&besides)
    )
}

/// How often something may happen: a number that can be counted, or `any`.
#[derive(Clone, Copy, Debug)]
struct Count(u8);

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "any" {
            return Ok(Self(ANY));
        }
        let count = text.parse::<u8>().map_err(|problem| problem.to_string())?;
        if count > MOST {
            return Err(format!(
                "{count} is more than the {MOST} that a check can count; use `any`"
            ));
        }
        Ok(Self(count))
    }
}

impl Faults {
    fn budget(&self) -> Budget {
        Budget {
            crashes: self.crashes.0,
            restarts: self.restarts.0,
            losses: self.losses.0,
            duplications: self.duplications.0,
            suspicions: self.suspicions.0,
            campaigns: self.campaigns.0,
        }
    }
}

impl Check {
    pub(crate) fn run(self) -> Result<Answer> {
        let every_ring = self.election.wants_every_ring();
        let scenario = self.scenario(every_ring)?;
        if self.random {
            if every_ring {
                bail!(
                    "--ring: a random run has one ring, drawn if none is named; leave out `every`"
                );
            }
            return random::run(&scenario, &self.random_options()?);
        }
        let case = scenario.resolve().map_err(|error| anyhow!(as_flag(&error)))?;
        let rules = self.rules(&case)?;
        let plan = self.plan()?;
        check_sense(&case, &rules)?;
        // Whoever names a file learns at once if it cannot be written, not when there is something to write.
        let output = self.out.as_deref().map(Output::create).transpose()?;
        let meter = Meter::start("exploring");
        let watch = |progress: &Progress| meter.show(|| report::progress_line(progress));
        let rings = self.rings(&case, every_ring)?;
        let mut subject = Subject::new(&case, &rules, &plan, rings.len());
        let mut broken = None;
        for ring in rings {
            let scenario = Scenario { ring: ring.or(scenario.ring.clone()), ..scenario.clone() };
            let case = scenario.resolve().map_err(|error| anyhow!(as_flag(&error)))?;
            let found = check::check(&case, &rules, &subject.plan_for_the_rest(), &watch);
            broken = subject.add(&found).map(|violation| (scenario, violation));
            if broken.is_some() || found.limit.is_some() {
                break;
            }
        }
        let least = broken.map(|(scenario, violation)| {
            meter.say("shrinking");
            shrink::shrink(&scenario, &rules, violation, &plan)
        });
        drop(meter);
        if let Some(least) = &least {
            self.write(least, output)?;
        }
        self.show(&subject, least.as_ref())
    }

    /// Writes a counterexample to `output`, or else to the usual file.
    fn write(&self, least: &Least, output: Option<Output>) -> Result<()> {
        let Least { scenario, rules, violation, .. } = least.clone();
        let mut output = output.map_or_else(|| Output::create(self.out()), Ok)?;
        output.write_text(&Counterexample::new(scenario, &rules, violation).to_toml())?;
        output.finish()
    }

    fn out(&self) -> &Path {
        self.out.as_deref().unwrap_or(Path::new("counterexample.toml"))
    }

    fn random_options(&self) -> Result<random::Options> {
        Ok(random::Options {
            runs: self.runs,
            seed: self.seed,
            shard: self.shard.unwrap_or(Shard::ALL),
            only_run: self.run,
            properties: self.judgeable()?,
            threads: self.threads()?,
            json: self.json,
            out: self.out.clone(),
        })
    }

    fn scenario(&self, every_ring: bool) -> Result<Scenario> {
        let mut scenario = Scenario::default();
        if let Some(path) = &self.file {
            let (name, text) = sim::read(path)?;
            scenario = Scenario::parse(&name, &text).map_err(|error| anyhow!(error))?;
            scenario.resolve().map_err(|error| anyhow!(error.in_file(&name, &text)))?;
            // What has gone wrong before the moment to start from has gone wrong.
            let goes_wrong =
                !scenario.fault.is_empty() || scenario.chaos.is_some() || !scenario.link.is_empty();
            if goes_wrong && self.from.is_none() {
                eprintln!(
                    "doyen: what goes wrong in {name} is not repeated: the budget says what may"
                );
                (scenario.fault, scenario.link, scenario.chaos) = (Vec::new(), Vec::new(), None);
            }
            scenario.expect = None;
        }
        self.election.apply(&mut scenario)?;
        if every_ring {
            scenario.ring = None;
        }
        if self.unordered {
            scenario.fifo = Some(false);
        }
        Ok(scenario)
    }

    fn rules(&self, case: &Case) -> Result<Rules> {
        let budget = self.faults.budget();
        let bounded = Timers::Bounded { tick: case.bare_bound, detection: self.detection };
        let timers = match (self.timers, Timers::usual(case)) {
            (Some(TimerModel::Bounded), _) | (None, Timers::Bounded { .. }) => bounded,
            (Some(TimerModel::Free), _) => Timers::Free { expiries: self.expiries.0 },
            (Some(TimerModel::Clocked), _) => {
                Timers::Clocked { tick: case.bare_bound, drift: self.drift()? }
            }
            (None, usual) => usual,
        };
        let fifo = case.network.fifo;
        let mut rules = Rules { budget, timers, fifo, properties: Vec::new(), from: None };
        rules.properties = self.explorable(case.algorithm, &rules)?;
        let from = self.from.as_ref().map(|text| {
            let span = text.parse::<Span>().map_err(|problem| anyhow!("--from: {problem}"))?;
            Ok::<_, anyhow::Error>(Time(span.as_nanos()))
        });
        rules.from = from.transpose()?;
        Ok(rules)
    }

    /// By how much clocks may be wrong, in thousandths.
    fn drift(&self) -> Result<u32> {
        match (0.0..1.0).contains(&self.drift) {
            true => Ok((self.drift * 1000.0).round() as u32),
            false => bail!("--drift: {} is not at least 0 and below 1", self.drift),
        }
    }

    /// What must hold, as far as it is said.
    fn properties(&self) -> Result<Option<Vec<Property>>> {
        let wrong = |problem: String| anyhow!("--property: {problem}");
        match &self.property[..] {
            [] => Ok(None),
            [all] if all == "all" => Ok(Some(Property::ALL.to_vec())),
            names => names
                .iter()
                .map(|name| name.parse().map_err(wrong))
                .collect::<Result<_>>()
                .map(Some),
        }
    }

    /// What must hold and can be judged in random runs, as far as it is said.
    fn judgeable(&self) -> Result<Option<Vec<Property>>> {
        let Some(wanted) = self.properties()? else { return Ok(None) };
        let named = self.property != ["all"];
        let can = |property: &Property| property.is_judged_at_random();
        if let Some(property) = wanted.iter().find(|property| named && !can(property)) {
            bail!("--property: {} is explored only; leave out --random", property.name());
        }
        Ok(Some(wanted.into_iter().filter(can).collect()))
    }

    /// What must hold and can be explored.
    fn explorable(&self, algorithm: Algorithm, rules: &Rules) -> Result<Vec<Property>> {
        let ends_unseen = match rules.timers {
            Timers::Clocked { .. } => {
                Some("which nothing promises if messages take any time; use --timers bounded")
            }
            _ if rules.budget.is_endless() => {
                Some("which nothing promises if there is no end to what happens; say how much may")
            }
            _ if self.depth_first => {
                Some("at which depth first does not look; leave out --depth-first")
            }
            _ => None,
        };
        let can = |property: &Property| {
            property.is_explorable(rules.timers) && (ends_unseen.is_none() || property.is_safety())
        };
        let asked = self.properties()?;
        let named = asked.is_some() && self.property != ["all"];
        let wanted = asked.unwrap_or_else(|| Property::usual_of(algorithm));
        if let Some(property) = wanted.iter().find(|property| named && !can(property)) {
            let name = property.name();
            if !property.is_explorable(rules.timers) {
                bail!("--property: {name} is about time, which free timers do not keep");
            }
            bail!("--property: {name} is about how runs end, {}", ends_unseen.unwrap_or_default());
        }
        Ok(wanted.into_iter().filter(can).collect())
    }

    fn threads(&self) -> Result<usize> {
        if self.threads == Some(0) {
            bail!("--threads: nobody would search; use 1 or more");
        }
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        Ok(self.threads.unwrap_or_else(cores))
    }

    fn plan(&self) -> Result<Plan> {
        Ok(Plan {
            depth_first: self.depth_first,
            reduce: !self.no_reduction,
            threads: self.threads()?,
            limits: self.limits.resolve()?,
        })
    }

    /// The rings to check: what the scenario says, or every one.
    fn rings(&self, case: &Case, every: bool) -> Result<Vec<Option<RingOrder>>> {
        if !every {
            return Ok(vec![None]);
        }
        if !case.algorithm.is_ring() {
            bail!("--ring: {} has no ring; leave out `every`", case.algorithm);
        }
        let ids: Vec<u32> = case.members().iter().map(|id| id.0).collect();
        if ids.len() > 8 {
            bail!(
                "--ring: {} members have too many rings to check every one; use at most 8",
                ids.len()
            );
        }
        let rings = arrangements(&ids, !self.no_reduction);
        Ok(rings.into_iter().map(|ring| Some(RingOrder::Listed(ring))).collect())
    }

    fn show(&self, subject: &Subject, least: Option<&Least>) -> Result<Answer> {
        if self.json {
            subject.print_json(least, self.out())?;
        } else {
            subject.print(least, self.out())?;
        }
        Ok(match (least, subject.limit) {
            (Some(_), _) => Answer::No,
            (None, Some(_)) => Answer::Limit,
            (None, None) => Answer::Yes,
        })
    }
}

/// Refuses what no check can say anything about.
fn check_sense(case: &Case, rules: &Rules) -> Result<()> {
    let count = case.members().len();
    if count > MOST_MEMBERS {
        bail!("--members: {count} are too many to explore; a check takes at most {MOST_MEMBERS}");
    }
    rules.timers.suit(case).map_err(|problem| anyhow!("--timers: {problem}"))?;
    let is_called = case.leader.is_some() || !case.initiators.is_empty();
    // The members of a quorum call elections of themselves.
    if !is_called && rules.budget.campaigns == 0 && !case.algorithm.has_leases() {
        bail!(
            "--initiators: nobody leads and nobody calls an election, so nothing happens; name somebody"
        );
    }
    if rules.budget.restarts > 0 && rules.budget.crashes == 0 && case.dead.is_empty() {
        bail!("--restarts: nobody is dead and nobody crashes; add --crashes 1 or --dead");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;
    use clap::{Arg, ArgAction, Command};

    use super::*;

    /// What shapes a random run, says which are made or what becomes of the result.
    const GO_WITH_RANDOM: &str = "file algorithm mode members initiators dead leader attr ring convention contact_dead \
         announce fifo reliable window heartbeat preempt detector random runs seed shard run unordered property threads \
         out json";

    fn command() -> Command {
        Check::augment_args(Command::new("check"))
    }

    /// `arg` as somebody might type it.
    fn typed(arg: &Arg) -> Vec<String> {
        let value = match arg.get_id().as_str() {
            "shard" => "1/2",
            "timers" => "free",
            _ => "1",
        };
        let Some(name) = arg.get_long() else { return vec![value.to_owned()] };
        let takes_value = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
        let flag = format!("--{name}");
        if takes_value { vec![flag, value.to_owned()] } else { vec![flag] }
    }

    #[test]
    fn every_flag_either_counts_in_random_runs_or_is_refused_with_them() {
        let goes_with: Vec<&str> = GO_WITH_RANDOM.split_whitespace().collect();
        let mut refused = 0;
        for arg in command().get_arguments() {
            let id = arg.get_id().as_str();
            let random = if id == "random" { vec![] } else { vec!["--random".to_owned()] };
            let words = [vec!["check".to_owned()], random, typed(arg)].concat();
            let found = command().try_get_matches_from(&words).err().map(|error| error.kind());
            let expected = (!goes_with.contains(&id)).then_some(ErrorKind::ArgumentConflict);
            assert_eq!(found, expected, "{words:?}");
            refused += usize::from(expected.is_some());
        }
        assert_eq!(refused, 17);
    }
}
