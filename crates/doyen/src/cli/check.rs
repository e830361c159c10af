//! `doyen check`: every run of an election, within a budget of faults.

mod asked;
mod limits;
mod part;
mod random;
mod report;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Result, anyhow, bail};
use clap::{Args, ValueEnum, value_parser};
use doyen_check::budget::{ANY, Budget, MAX as MOST};
use doyen_check::counterexample::Counterexample;
use doyen_check::minimize::{Minimized, minimize};
use doyen_check::part::{Part, Scope};
use doyen_check::property::Property;
use doyen_check::search::{Plan, Progress};
use doyen_check::{MAX_MEMBERS, Rules, Timers};
use doyen_core::algorithm::quorum::rules::Rule;
use doyen_core::config::Mode;
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;
use doyen_sim::scenario::{Case, Initiators, MemberList, RingOrder, Scenario};
use doyen_sim::time::Time;

use super::Answer;
use super::election::{Election, as_flag};
use super::output::Output;
use super::progress::Meter;
use super::{signals, sim};
use asked::{Asked, Unseen};
use report::Subject;

/// Explore every run of an election, with every fault a budget allows
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen check --algorithm chang-roberts --members 6 --initiators all --fifo
  doyen check --algorithm chang-roberts --members 4 --initiators all --fifo --crashes 1
  doyen check --algorithm bully --mode hardened --members 3 --leader 3 --crashes 1 --restarts 1
  doyen check --algorithm bully --mode cs677-no-t2 --members 3 --crashes 2 --property A3
  doyen check --algorithm quorum --part leases
  doyen check --algorithm quorum --part leases --crashes 1 --transfers 1 --max-time 10m

Bounded timers are the synchronous model: no message takes longer than D, and timers expire when they are due. Free
timers are the asynchronous model: they expire at any moment, each member's as often as --expiries says. Clocked
timers expire when they are due while messages take any time: what leases must be safe under.
Ctrl-C stops a check, which then says what it has covered; once more stops it at once.
Exit: 0 everything holds, 1 a property is violated, 2 wrong usage, 4 a limit was reached before everything was seen,
101 doyen itself failed, 130 it was interrupted (SIGINT or SIGTERM) before everything was seen.")]
pub(crate) struct Check {
    /// A scenario that says who takes part and how; what goes wrong in it is not repeated, unless --from
    #[arg(value_name = "FILE.toml")]
    file: Option<PathBuf>,

    #[command(flatten)]
    election: Election,

    #[command(flatten)]
    parts: part::Parts,

    #[command(flatten)]
    faults: Faults,

    /// Make random runs in the simulator instead: storms of faults, each followed by calm [default mode: hardened].
    /// What goes wrong and when is drawn, so no budget, no timer model and no limit but --max-time goes with it
    #[arg(
        long,
        conflicts_with_all = [
            "crashes", "restarts", "losses", "duplications", "suspicions", "campaigns",
            "transfers", "commands", "rejoins", "replacements", "clones", "part", "terms",
            "mixed_timings", "timers",
            "expiries", "detection", "drift", "from",
            "max_states", "max_memory", "max_depth", "no_reduction",
        ],
        help_heading = "Random runs"
    )]
    random: bool,

    /// Faults of random runs are never mended: members stay down and links stay cut, but a majority stays connected.
    /// Somebody must lead nevertheless, and stay [algorithm: quorum]
    #[arg(long, requires = "random", help_heading = "Random runs")]
    lasting: bool,

    /// How many random runs [default: 100000]
    #[arg(
        long,
        value_name = "COUNT",
        value_parser = value_parser!(u64).range(1..),
        requires = "random",
        help_heading = "Random runs"
    )]
    runs: Option<u64>,

    /// What random runs are drawn from
    #[arg(
        long,
        value_name = "SEED",
        default_value_t = 1,
        requires = "random",
        help_heading = "Random runs"
    )]
    seed: u64,

    /// Make this random run alone
    #[arg(
        long,
        value_name = "NUMBER",
        value_parser = value_parser!(u64).range(1..),
        requires = "random",
        help_heading = "Random runs"
    )]
    run: Option<u64>,

    /// When timers expire: bounded, clocked or free [default: free where members have none, else bounded]
    #[arg(long, value_name = "MODEL", help_heading = "Model")]
    timers: Option<TimerModel>,

    /// How often each member's timers expire at most, if timers are free [default: 2]
    #[arg(long, value_name = "COUNT", help_heading = "Model")]
    expiries: Option<Count>,

    /// How long a failure detector takes at most, in multiples of D, if timers are bounded [default: 2]
    #[arg(long, value_name = "COUNT", help_heading = "Model")]
    detection: Option<u8>,

    /// By how much any clock may be wrong, such as 0.1, if timers are clocked [default: 0]
    #[arg(long, value_name = "SHARE", help_heading = "Model")]
    drift: Option<f64>,

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

/// What may go wrong, and how often: so many times, or `any` number of times; never without a flag, unless --part.
#[derive(Args, Debug)]
struct Faults {
    /// Members that crash, at any moment
    #[arg(long, value_name = "COUNT", help_heading = "Faults")]
    crashes: Option<Count>,

    /// Members that come up again, or that were dead and come up
    #[arg(long, value_name = "COUNT", help_heading = "Faults")]
    restarts: Option<Count>,

    /// Messages that are lost
    #[arg(long, value_name = "COUNT", help_heading = "Faults")]
    losses: Option<Count>,

    /// Messages that arrive twice
    #[arg(long, value_name = "COUNT", help_heading = "Faults")]
    duplications: Option<Count>,

    /// Live members that a failure detector takes for dead, until it hears them again
    #[arg(long, value_name = "COUNT", help_heading = "Faults")]
    suspicions: Option<Count>,

    /// Members that call an election of themselves, at any moment
    #[arg(long, value_name = "COUNT", help_heading = "Faults")]
    campaigns: Option<Count>,

    /// Leaders of a quorum that an operator tells to transfer or to resign
    #[arg(long, value_name = "COUNT", help_heading = "Faults")]
    transfers: Option<Count>,

    /// Other commands of an operator to a quorum: drain, undrain, prefer
    #[arg(long, value_name = "COUNT", help_heading = "Faults")]
    commands: Option<Count>,

    /// Members of a quorum that come up without their disk, and rejoin
    #[arg(long, value_name = "COUNT", help_heading = "Faults")]
    rejoins: Option<Count>,

    /// With --part sessions: members whose machine is replaced while the old process runs on; the new one rejoins
    #[arg(long, value_name = "COUNT", requires = "part", help_heading = "Faults")]
    replacements: Option<Count>,

    /// With --part sessions: second processes that are started from a copy of a member's disk
    #[arg(long, value_name = "COUNT", requires = "part", help_heading = "Faults")]
    clones: Option<Count>,
}

/// How many random runs are made unless one says otherwise.
const RUNS: u64 = 100_000;

/// How often each member's free timers expire unless one says otherwise.
const EXPIRIES: u8 = 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum TimerModel {
    Bounded,
    Clocked,
    Free,
}

/// What must hold unless one says otherwise, from where it is decided.
fn property_help() -> String {
    let names = |is: &dyn Fn(&Property) -> bool| {
        let names: Vec<&str> =
            Property::ALL.iter().filter(|it| is(it)).map(|property| property.name()).collect();
        names.join(",")
    };
    let is_usual = |property: &Property| Property::USUAL.contains(property);
    let of_quorum = Property::usual_of(Algorithm::Quorum);
    format!(
        "What must hold, such as A1,A4; `all` for everything that can be judged [default: {}; of quorum also {}; random \
         runs do not judge {}]",
        names(&is_usual),
        names(&|property| of_quorum.contains(property) && !is_usual(property)),
        names(&|property| !property.is_judged_at_random()),
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
        match text.parse::<u64>() {
            Ok(count) if count <= u64::from(MOST) => Ok(Self(count as u8)),
            Ok(count) => {
                Err(format!("{count} is more than the {MOST} that a check can count; use `any`"))
            }
            Err(_) => Err(format!("use a whole number of at most {MOST}, or `any`")),
        }
    }
}

impl Faults {
    /// What may go wrong: what the flags say, else as often as in `usual`.
    fn budget(&self, usual: Budget) -> Budget {
        let given = |flag: Option<Count>, usual| flag.map_or(usual, |count| count.0);
        let is_part = usual != Budget::default();
        // Of a part whose crashes are counted, restarts are counted as well.
        let restarts = self.crashes.filter(|_| is_part).map_or(usual.restarts, |count| count.0);
        Budget {
            crashes: given(self.crashes, usual.crashes),
            restarts: given(self.restarts, restarts),
            losses: given(self.losses, usual.losses),
            duplications: given(self.duplications, usual.duplications),
            suspicions: given(self.suspicions, usual.suspicions),
            campaigns: given(self.campaigns, usual.campaigns),
            transfers: given(self.transfers, usual.transfers),
            commands: given(self.commands, usual.commands),
            rejoins: given(self.rejoins, usual.rejoins),
            replacements: given(self.replacements, usual.replacements),
            clones: given(self.clones, usual.clones),
        }
    }
}

impl Check {
    pub(crate) fn run(self) -> Result<Answer> {
        if self.parts.lists_rules() {
            return list_rules();
        }
        if self.election.wants_every_ring() {
            bail!("--ring: name one ring, such as ascending; `every` is not supported");
        }
        let scenario = self.scenario()?;
        if self.random {
            check_names(&scenario)?;
            if self.parts.without()?.is_some() && scenario.algorithm != Some(Algorithm::Quorum) {
                bail!("--without: only the quorum has such rules; add --algorithm quorum");
            }
            return random::run(&scenario, &self.random_options()?);
        }
        let case = scenario.resolve().map_err(|error| anyhow!(as_flag(&error)))?;
        let (rules, asked) = self.rules(&case)?;
        check_sense(&case, &rules)?;
        let plan = self.plan()?;
        // Whoever names a file learns at once if it cannot be written, not when there is something to write.
        let output = self.out.as_deref().map(Output::create).transpose()?;
        let meter = Meter::start("exploring");
        let watch = |progress: &Progress| meter.show(|| report::progress_line(progress));
        let mut subject = Subject::new(&case, &rules, asked, &plan);
        let found = doyen_check::check(&case, &rules, &plan, &watch);
        let least = subject.add(&found).map(|violation| {
            meter.say("shrinking");
            minimize(&scenario, &rules, violation, &plan)
        });
        drop(meter);
        if let Some(least) = &least {
            self.write(least, output)?;
        }
        self.show(&subject, least.as_ref())
    }

    /// Writes a counterexample to `output`, or else to the usual file.
    fn write(&self, least: &Minimized, output: Option<Output>) -> Result<()> {
        let Minimized { scenario, rules, violation, .. } = least.clone();
        let mut output = output.map_or_else(|| Output::create(self.out()), Ok)?;
        output.write_text(&Counterexample::new(scenario, &rules, violation).to_toml())?;
        output.finish()
    }

    fn out(&self) -> &Path {
        self.out.as_deref().unwrap_or(Path::new("counterexample.toml"))
    }

    fn random_options(&self) -> Result<random::Options> {
        if let (Some(run), Some(runs)) = (self.run, self.runs.filter(|&runs| self.run > Some(runs)))
        {
            bail!("--run: {run} is beyond the {runs} of --runs; leave one of them out");
        }
        Ok(random::Options {
            runs: self.runs.unwrap_or(RUNS),
            seed: self.seed,
            only_run: self.run,
            lasting: self.lasting,
            without: self.parts.without()?,
            asked: Asked::of_random_runs(&self.property, self.lasting)?,
            threads: self.threads()?,
            most_time: self.limits.time()?,
            interrupt: signals::first_asks()?,
            json: self.json,
            out: self.out.clone(),
        })
    }

    fn scenario(&self) -> Result<Scenario> {
        if !self.random
            && let Some(scope) = self.parts.scope()?
        {
            return self.scenario_of(scope);
        }
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
        if self.unordered {
            scenario.fifo = Some(false);
        }
        check_reading(&scenario)?;
        Ok(scenario)
    }

    /// The scene of a part of the quorum.
    fn scenario_of(&self, scope: Scope) -> Result<Scenario> {
        let mut given = Scenario::default();
        self.election.apply(&mut given)?;
        if given.algorithm.is_some_and(|algorithm| algorithm != Algorithm::Quorum) {
            bail!("--part: only the quorum has parts; add --algorithm quorum");
        }
        match given.members {
            None => Ok(scope.scenario(scope.members())),
            Some(MemberList::Count(count)) if count <= MAX_MEMBERS as u64 => {
                Ok(scope.scenario(count as u32))
            }
            Some(_) => {
                bail!("--members: of a part, say how many, such as 3; at most {MAX_MEMBERS}")
            }
        }
    }

    /// What is explored of a part of the quorum.
    fn rules_of(&self, scope: Scope) -> Result<(Rules, Asked)> {
        let wrong_clocks = match self.drift {
            None | Some(0.0) => false,
            Some(0.2) => true,
            Some(_) => bail!("--drift: the clocks of a part are right, or wrong by 0.2"),
        };
        let usual = scope.rules(wrong_clocks);
        let mut timers = usual.timers;
        match (&mut timers, self.expiries) {
            (_, None) => {}
            (Timers::Free { expiries }, Some(count)) => *expiries = count.0,
            (_, Some(_)) => bail!("--expiries: only those of --part votes are counted"),
        }
        if wrong_clocks && scope.part == Part::Votes {
            bail!("--drift: votes know no clock; use --part leases");
        }
        let budget = self.faults.budget(usual.budget);
        if budget.commands > 0 && scope.part != Part::Whole {
            bail!(
                "--commands: without courtesy they come to transfers; use --transfers, or --part whole"
            );
        }
        if budget.transfers > 0 && scope.part == Part::Votes {
            bail!("--transfers: votes know no leases; use --part leases");
        }
        let asked = Asked::of_part(&self.property, &usual.properties)?;
        Ok((Rules { budget, timers, properties: asked.judged.clone(), ..usual }, asked))
    }

    fn rules(&self, case: &Case) -> Result<(Rules, Asked)> {
        if let Some(scope) = self.parts.scope()? {
            return self.rules_of(scope);
        }
        let budget = self.faults.budget(Budget::default());
        let timers = self.timers(case)?;
        let ends_unseen = self.ends_unseen(timers, budget);
        let asked = Asked::of_exploration(&self.property, case.algorithm, timers, ends_unseen)?;
        let properties = asked.judged.clone();
        let from = self.from.as_ref().map(|text| {
            let span = text.parse::<Span>().map_err(|problem| anyhow!("--from: {problem}"))?;
            Ok::<_, anyhow::Error>(Time(span.as_nanos()))
        });
        let from = from.transpose()?;
        let fifo = case.network.fifo;
        Ok((Rules { budget, timers, fifo, properties, from, scope: None }, asked))
    }

    /// When timers expire. What can mean nothing to them is refused.
    fn timers(&self, case: &Case) -> Result<Timers> {
        let tick = case.bare_bound;
        let detection = self.detection.unwrap_or(doyen_check::DETECTION);
        let timers = match (self.timers, Timers::usual(case)) {
            (Some(TimerModel::Bounded), _) | (None, Timers::Bounded { .. }) => {
                Timers::Bounded { tick, detection }
            }
            (Some(TimerModel::Free), _) => {
                Timers::Free { expiries: self.expiries.map_or(EXPIRIES, |count| count.0) }
            }
            (Some(TimerModel::Clocked), _) => Timers::Clocked { tick, drift: self.drift()? },
            (None, usual) => usual,
        };
        if self.expiries.is_some() && self.timers != Some(TimerModel::Free) {
            bail!("--expiries: timers are not counted unless they are free; add --timers free");
        }
        if self.detection.is_some() && !matches!(timers, Timers::Bounded { .. }) {
            bail!(
                "--detection: unless timers are bounded, detectors take any time; add --timers bounded"
            );
        }
        if self.drift.is_some() && !matches!(timers, Timers::Clocked { .. }) {
            bail!("--drift: clocks are right unless timers are clocked; add --timers clocked");
        }
        Ok(timers)
    }

    /// By how much clocks may be wrong, in thousandths.
    fn drift(&self) -> Result<u32> {
        let drift = self.drift.unwrap_or_default();
        match (0.0..1.0).contains(&drift) {
            true => Ok((drift * 1000.0).round() as u32),
            false => bail!("--drift: {drift} is not at least 0 and below 1"),
        }
    }

    /// Why the check does not look at how runs end, if it does not.
    fn ends_unseen(&self, timers: Timers, budget: Budget) -> Option<Unseen> {
        let unseen = |why, remedy| Some(Unseen { why, remedy });
        match timers {
            Timers::Clocked { .. } => unseen(
                "about how runs end, which nothing promises if messages take any time",
                "use --timers bounded",
            ),
            _ if budget.is_endless() => unseen(
                "about how runs end, which nothing promises if there is no end to what happens",
                "say how much may",
            ),
            _ => None,
        }
    }

    fn threads(&self) -> Result<usize> {
        if self.threads == Some(0) {
            bail!("--threads: nobody would search; use 1 or more");
        }
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        Ok(self.threads.unwrap_or_else(cores))
    }

    fn plan(&self) -> Result<Plan> {
        let mut limits = self.limits.resolve(signals::first_asks()?)?;
        let scope = self.parts.scope()?;
        if scope.is_some() {
            limits.time = limits.time.or(Some(part::MOST_TIME));
        }
        Ok(Plan { reduce: !self.no_reduction, threads: self.threads()?, limits })
    }

    fn show(&self, subject: &Subject, least: Option<&Minimized>) -> Result<Answer> {
        if self.json {
            subject.print_json(least, self.out())?;
        } else {
            subject.print(least, self.out())?;
        }
        Ok(subject.answer(least.is_some()))
    }
}

/// Prints the name of every rule that can be taken away.
fn list_rules() -> Result<Answer> {
    let names: Vec<String> = Rule::ALL.iter().map(Rule::to_string).collect();
    writeln!(io::stdout(), "{}", names.join("\n"))?;
    Ok(Answer::Yes)
}

/// Refuses a reading of a source without the algorithm that it is a reading of.
fn check_reading(scenario: &Scenario) -> Result<()> {
    let Some(Mode::Literal(variant)) = scenario.mode else {
        return Ok(());
    };
    if scenario.algorithm.is_some() {
        return Ok(());
    }
    let reads = |algorithm: &&Algorithm| algorithm.variants().contains(&variant);
    let names: Vec<&str> = Algorithm::ALL.iter().filter(reads).map(|it| it.name()).collect();
    let (name, algorithms) = (variant.name(), names.join(" or "));
    bail!("--mode: {name} is a reading of {algorithms} alone; add --algorithm {}", names[0]);
}

/// Refuses to name members where it is drawn how many there are.
fn check_names(scenario: &Scenario) -> Result<()> {
    let named = [
        ("leader", scenario.leader.is_some()),
        ("dead", !scenario.dead.is_empty()),
        ("initiators", matches!(scenario.initiators, Some(Initiators::Listed(_)))),
        ("attr", !scenario.attr.is_empty()),
        ("ring", matches!(scenario.ring, Some(RingOrder::Listed(_)))),
    ];
    match named.into_iter().find(|&(_, is_named)| is_named) {
        Some((flag, _)) if scenario.members.is_none() => bail!(
            "--{flag}: how many members a random run has is drawn unless one says it; add --members"
        ),
        _ => Ok(()),
    }
}

/// Refuses what no check can say anything about.
fn check_sense(case: &Case, rules: &Rules) -> Result<()> {
    let count = case.members().len();
    if count > MAX_MEMBERS {
        bail!("--members: {count} are too many to explore; a check takes at most {MAX_MEMBERS}");
    }
    if rules.scope.is_some() {
        return Ok(());
    }
    let Budget { transfers, commands, rejoins, .. } = rules.budget;
    if transfers + commands + rejoins > 0 && !case.algorithm.has_leases() {
        bail!(
            "--transfers, --commands, --rejoins: only a quorum has an operator; add --algorithm quorum"
        );
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
         announce fifo reliable window heartbeat preempt detector random lasting without runs seed run unordered property max_time \
         threads out json";

    fn command() -> Command {
        Check::augment_args(Command::new("check"))
    }

    /// `arg` as somebody might type it.
    fn typed(arg: &Arg) -> Vec<String> {
        let value = match arg.get_id().as_str() {
            "algorithm" => "bully",
            "attr" => "1=1",
            "convention" => "live",
            "detector" | "heartbeat" | "preempt" | "window" => "1ms",
            "initiators" => "all",
            "mode" => "textbook",
            "part" => "votes",
            "ring" => "ascending",
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
        assert_eq!(refused, 24);
    }
}
