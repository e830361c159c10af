//! `doyen check --random`: a campaign of random faults.
//!
//! The report goes to the standard output, for people or as one JSON object. Every run that failed is named with the
//! command that repeats it alone; the first is made as small as it can be and written to a file.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use doyen_check::campaign::shrink::{self, Shrunk};
use doyen_check::campaign::waits::Wait;
use doyen_check::campaign::{self, Campaign, Failure, GenerateError, Report};
use doyen_check::counterexample::Counterexample;
use doyen_check::oracle::Breach;
use doyen_check::property::Property;
use doyen_core::algorithm::quorum::rules::Rule;
use doyen_core::config::Mode;
use doyen_core::registry::Algorithm;
use doyen_sim::scenario::Scenario;
use serde_json::{Value, json};

use super::asked::Asked;
use super::report::count;
use crate::cli::election::as_flag;
use crate::cli::output::Output;
use crate::cli::{Answer, progress};

/// At most so many runs are made to shrink a failure, and for so long.
const SHRINKING: u32 = 5_000;
const PATIENCE: Duration = Duration::from_secs(25);

/// What a campaign is asked for, besides what all of its runs have in common.
#[derive(Clone, Debug)]
pub(super) struct Options {
    /// How many runs there are.
    pub(super) runs: u64,
    /// What they are drawn from.
    pub(super) seed: u64,
    /// Which of them are made here.
    /// This run alone.
    pub(super) only_run: Option<u64>,
    /// Whether faults last.
    pub(super) lasting: bool,
    /// The rule that is taken away.
    pub(super) without: Option<Rule>,
    /// What must hold; what the algorithms promise, if that is not said.
    pub(super) asked: Option<Asked>,
    /// How many threads make them.
    pub(super) threads: usize,
    /// After how long no more are made.
    pub(super) most_time: Option<Duration>,
    /// Whether somebody has had enough.
    pub(super) interrupt: &'static AtomicBool,
    /// For programs.
    pub(super) json: bool,
    /// Where the first failure is written; a name that says which it is, if none is given.
    pub(super) out: Option<PathBuf>,
}

impl Options {
    /// How many runs are to be made here.
    fn total(&self) -> u64 {
        self.only_run.map_or_else(|| self.runs, |_| 1)
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }
}

/// Why not all runs were made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stop {
    /// So many had failed that it was enough.
    Failures,
    Time,
    Interrupt,
}

/// A campaign that was made.
struct Made {
    campaign: Campaign,
    options: Options,
    report: Report,
    /// What stopped it before all runs were made.
    stop: Option<Stop>,
    /// What was judged in it, and what was not.
    asked: Asked,
    took: Duration,
}

/// Makes the campaign in which everything that `base` leaves open is drawn.
pub(super) fn run(base: &Scenario, options: &Options) -> Result<Answer> {
    let mut campaign = Campaign {
        lasting: options.lasting,
        without: options.without,
        properties: options.asked.as_ref().map(|asked| asked.judged.clone()),
        ..Campaign::new(base.clone(), options.runs, options.seed)
    };
    if options.without.is_some() {
        campaign.patience = 1; // that it is noticed is all there is to know
    }
    check_base(&campaign, options)?;
    let made = match make(campaign, options)? {
        Ok(made) => made,
        Err(unmade) if unmade.panicked => return Ok(own_up(&unmade, options.seed)),
        Err(unmade) => return Err(anyhow!(unmade)),
    };
    // A file cannot say that a rule is missing, so there would be nothing to replay.
    let first = made.report.failures.first().filter(|_| options.without.is_none());
    let shrunk = first.map(|failure| (failure, shrink(failure, options)));
    let shown = match shrunk {
        None => None,
        Some((failure, Ok(shrunk))) => Some(Shown::new(failure, shrunk, options)?),
        Some((_, Err(unmade))) => return Ok(own_up(&unmade, options.seed)),
    };
    let text = match options.json {
        true => format!("{}\n", as_json(&made, shown.as_ref())),
        false => in_words(&made, shown.as_ref())?,
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(made.answer())
}

/// Refuses what makes no sense in the first run, by the flag that says it.
fn check_base(campaign: &Campaign, options: &Options) -> Result<()> {
    let first = options.only_run.or((options.runs > 0).then_some(1));
    let drawn = first.map(|first| campaign.scenario(first).and_then(|drawn| drawn.resolve()));
    drawn.transpose().map_err(|error| anyhow!(as_flag(&error)))?;
    Ok(())
}

fn make(campaign: Campaign, options: &Options) -> Result<Result<Made, GenerateError>> {
    let began = Instant::now();
    let has_time = || options.most_time.is_none_or(|most| began.elapsed() < most);
    let report = match options.only_run {
        Some(number) => {
            let _spinner = progress::Spinner::start("one run");
            campaign::run_one(&campaign, number)
        }
        None => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(options.threads).build();
            let pool = pool.with_context(|| format!("cannot start {} threads", options.threads))?;
            let tally = progress::Tally::start(options.total(), "random runs");
            let go_on = |made: u64| {
                tally.set(made);
                has_time() && !options.is_interrupted()
            };
            pool.install(|| campaign::run(&campaign, go_on))
        }
    };
    let took = began.elapsed();
    Ok(report.map(|report| {
        let stop = match report.runs < options.total() {
            false => None,
            true if report.failures.len() >= campaign.patience.max(1) => Some(Stop::Failures),
            true if options.is_interrupted() => Some(Stop::Interrupt),
            true => Some(Stop::Time),
        };
        let ran: Vec<Algorithm> = report.by_algorithm.keys().copied().collect();
        let asked = options.asked.clone().unwrap_or_else(|| match options.lasting {
            true => Asked::usual_while_faults_last(),
            false => Asked::usual_at_random(&ran),
        });
        Made { campaign, options: options.clone(), report, stop, asked, took }
    }))
}

impl Made {
    fn answer(&self) -> Answer {
        match (&self.report.failures[..], self.stop) {
            ([_, ..], _) => Answer::No,
            ([], Some(Stop::Interrupt)) => Answer::Interrupted,
            ([], Some(_)) => Answer::Limit,
            ([], None) if self.report.undecided > 0 => Answer::Limit,
            ([], None) => Answer::Yes,
        }
    }

    /// In which mode the members were.
    fn mode(&self) -> Mode {
        self.campaign.base.mode.unwrap_or(Mode::Hardened)
    }
}

/// Says in which run doyen itself failed, and how to see that again.
fn own_up(unmade: &GenerateError, seed: u64) -> Answer {
    let typed: Vec<String> = std::env::args().skip(1).collect();
    let again = repeating(&typed, None, seed, unmade.run);
    eprintln!("doyen: {unmade}; that is a mistake in doyen; again: {again}");
    Answer::Panicked
}

/// Makes a failure as small as it can be. What panics on the way panics because of it.
fn shrink(failure: &Failure, options: &Options) -> Result<Shrunk, GenerateError> {
    let Failure { run, breach, scenario, .. } = failure;
    let _spinner = progress::Spinner::start("shrinking");
    let began = Instant::now();
    let go_on = || began.elapsed() < PATIENCE && !options.is_interrupted();
    let shrunk = campaign::catch(|| shrink::shrink(scenario, breach.property, SHRINKING, &go_on));
    match shrunk {
        Ok(Some(shrunk)) => Ok(shrunk),
        Ok(None) => Ok(Shrunk { scenario: scenario.clone(), breach: breach.clone(), runs: 0 }),
        Err(problem) => {
            let problem = format!("{problem}, while it was shrunk");
            Err(GenerateError { run: *run, problem, panicked: true })
        }
    }
}

/// The first failure, shrunk, and where it was written.
struct Shown {
    shrunk: Shrunk,
    file: PathBuf,
}

impl Shown {
    fn new(failure: &Failure, shrunk: Shrunk, options: &Options) -> Result<Self> {
        let property = failure.breach.property;
        let file = options.out.clone().unwrap_or_else(|| {
            let (algorithm, seed, run) = (failure.algorithm, options.seed, failure.run);
            PathBuf::from(format!("counterexample-{algorithm}-{seed}-{run}.toml"))
        });
        let text = Counterexample::timed(shrunk.scenario.clone(), property).to_toml();
        let mut output = Output::create(&file)?;
        output.write_text(&text)?;
        output.finish()?;
        Ok(Self { shrunk, file })
    }
}

/// The campaign for people.
fn in_words(made: &Made, shown: Option<&Shown>) -> Result<String> {
    let Made { campaign, report, .. } = made;
    let mut text = String::new();
    write_what(&mut text, made)?;
    writeln!(text)?;
    if report.failures.is_empty() {
        write_verdict(&mut text, made)?;
    }
    for failure in &report.failures {
        write_failure(&mut text, failure, campaign.seed)?;
    }
    let (runs, total) = (report.runs, made.options.total());
    match made.stop {
        None => {}
        Some(Stop::Failures) => writeln!(
            text,
            "\nStopped there: so many failures are enough. The other runs were not made."
        )?,
        Some(Stop::Time) => {
            writeln!(text, "Stopped at the limit of time: {runs} of {total} runs were made.")?;
        }
        Some(Stop::Interrupt) => {
            writeln!(text, "Interrupted: {runs} of {total} runs were made.")?;
        }
    }
    if let Some(shown) = shown {
        write_shown(&mut text, shown)?;
    }
    Ok(text)
}

/// What was run, and how much.
fn write_what(text: &mut String, made: &Made) -> Result<()> {
    let Made { campaign, report, took, .. } = made;
    let Report { runs, events, messages, elections, leader_changes, digest, .. } = *report;
    let seconds = took.as_secs_f64();
    let rate = runs as f64 / seconds.max(1e-9);
    writeln!(text, "{} of seed {}", count(runs, "random run"), campaign.seed)?;
    writeln!(text, "  took        {seconds:.1} s, {rate:.0} runs/s")?;
    writeln!(text, "  mode        {}", made.mode())?;
    if let Some(rule) = campaign.without {
        writeln!(text, "  without     {rule}")?;
    }
    writeln!(text, "  algorithms  {}", list(&report.by_algorithm))?;
    writeln!(text, "  faults      {}", list(&report.faults))?;
    if !report.drawn.is_empty() {
        writeln!(text, "  drawn       {}", list(&report.drawn))?;
    }
    writeln!(text, "  events      {events}, each judged; {}", count(messages, "election message"))?;
    let changes = count(leader_changes, "time");
    writeln!(text, "  elections   {elections} called; the leader changed {changes}")?;
    if let Some((recovery, run)) = report.slowest_recovery {
        let millis = recovery.as_nanos() as f64 / 1e6;
        writeln!(text, "  recovery    at most {millis:.1} ms after the last fault, in run {run}")?;
    }
    if let Some(worst) = report.first_leases.worst() {
        let (enough, share, run) = (report.first_leases.enough_for(999), worst.share(), worst.run);
        writeln!(
            text,
            "  first lease 99.9 % of the runs within {enough} % of L1, all within {share} % (run {run})"
        )?;
    }
    writeln!(text, "  fingerprint {digest:016x}")?;
    Ok(())
}

/// What held, if nothing failed, and what was not judged.
fn write_verdict(text: &mut String, made: &Made) -> Result<()> {
    let Made { campaign, report, asked, .. } = made;
    match (report.undecided, made.stop) {
        (0, None) => writeln!(text, "Held in every run:")?,
        (0, Some(_)) => writeln!(text, "Held in every run that was made:")?,
        (undecided, _) => writeln!(
            text,
            "Not violated, but {} had not come to rest, and what must hold at rest was not judged in them; A3 is about \
             that:",
            count(undecided, "run")
        )?,
    }
    for property in &asked.judged {
        let whose = in_whose_runs(campaign, report, *property);
        writeln!(text, "  {:20} {}{whose}", property.name(), property.words())?;
    }
    text.push_str(&asked.left_out_in_words());
    Ok(())
}

/// In whose runs a property was judged, if not in all: not every algorithm promises every one.
fn in_whose_runs(campaign: &Campaign, report: &Report, property: Property) -> String {
    if campaign.lasting {
        return String::new();
    }
    let owes = |run: &&Algorithm| Property::usual_at_random(**run).contains(&property);
    let owing: Vec<&Algorithm> = report.by_algorithm.keys().filter(owes).collect();
    if campaign.properties.is_some() || owing.len() == report.by_algorithm.len() {
        return String::new();
    }
    let names: Vec<String> = owing.iter().map(ToString::to_string).collect();
    format!(" (judged in the runs of {})", names.join(", "))
}

fn write_failure(text: &mut String, failure: &Failure, seed: u64) -> Result<()> {
    let Failure { run, algorithm, breach, .. } = failure;
    let property = breach.property;
    writeln!(
        text,
        "Violated in run {run} of seed {seed}, {algorithm}, at {}: {property}",
        breach.at
    )?;
    writeln!(text, "  {}", property.words())?;
    write_evidence(text, breach, "but ")?;
    writeln!(text, "  again: {}", command(failure, seed))?;
    writeln!(text)?;
    Ok(())
}

fn write_shown(text: &mut String, shown: &Shown) -> Result<()> {
    let Shrunk { scenario, breach, runs } = &shown.shrunk;
    let (at, file) = (breach.at, shown.file.display());
    let faults = count(scenario.fault.len() as u64, "fault");
    let runs = count(u64::from(*runs), "run");
    writeln!(text, "The first of them, shrunk by {runs} to {faults}, broken at {at}:")?;
    write_evidence(text, breach, "")?;
    writeln!(text, "Written to {file}; `doyen replay {file}` shows it and says why.")?;
    Ok(())
}

fn write_evidence(text: &mut String, breach: &Breach, each: &str) -> Result<()> {
    for fact in &breach.evidence {
        writeln!(text, "  {each}{fact}")?;
    }
    if let Some(words) = breach.ending.words() {
        writeln!(text, "  {words}")?;
    }
    Ok(())
}

/// `bully 3, ring-list 4`.
fn list<K: ToString>(counts: &std::collections::BTreeMap<K, u64>) -> String {
    let each = |(name, count): (&K, &u64)| format!("{} {count}", name.to_string());
    counts.iter().map(each).collect::<Vec<_>>().join(", ")
}

/// The campaign for programs.
fn as_json(made: &Made, shown: Option<&Shown>) -> Value {
    let Made { campaign, options, report, asked, took, .. } = made;
    let judged: Vec<&str> = asked.judged.iter().map(|property| property.name()).collect();
    let by_algorithm: serde_json::Map<String, Value> =
        report.by_algorithm.iter().map(|(name, &runs)| (name.to_string(), runs.into())).collect();
    let slowest = report.slowest_recovery;
    let first_lease = |worst: Wait| {
        let enough = report.first_leases.enough_for(999);
        json!({ "percent_of_l1_p999": enough, "percent_of_l1_max": worst.share(), "run": worst.run })
    };
    json!({
        "verdict": match made.answer() {
            Answer::No => "violated",
            Answer::Yes => "holds",
            _ => "limit",
        },
        "property": report.failures.first().map(|failure| failure.breach.property.name()),
        "properties": judged,
        "not_judged": asked.left_out_as_json(),
        "mode": made.mode().to_string(),
        "seed": campaign.seed,
        "runs": report.runs,
        "runs_asked_for": options.total(),
        "limit": made.stop.map(|stop| match stop {
            Stop::Failures => "failures",
            Stop::Time => "time",
            Stop::Interrupt => "interrupt",
        }),
        "by_algorithm": by_algorithm,
        "events": report.events,
        "messages": report.messages,
        "faults": report.faults,
        "drawn": report.drawn,
        "lasting": campaign.lasting,
        "without": campaign.without.map(|rule| rule.to_string()),
        "elections": report.elections,
        "leader_changes": report.leader_changes,
        "undecided": report.undecided,
        "slowest_recovery": slowest.map(|(span, run)| json!({ "nanos": span.as_nanos(), "run": run })),
        "first_lease": report.first_leases.worst().map(first_lease),
        "seconds": took.as_secs_f64(),
        "digest": format!("{:016x}", report.digest),
        "failures": report.failures.iter().map(|f| failure_json(f, campaign.seed)).collect::<Vec<_>>(),
        "counterexample": shown.map(|shown| counterexample_json(&shown.shrunk, &shown.file)),
    })
}

fn failure_json(failure: &Failure, seed: u64) -> Value {
    json!({
        "run": failure.run,
        "algorithm": failure.algorithm.name(),
        "property": failure.breach.property.name(),
        "at": failure.breach.at.0,
        "evidence": evidence(&failure.breach),
        "command": command(failure, seed),
    })
}

fn counterexample_json(shrunk: &Shrunk, file: &Path) -> Value {
    json!({
        "file": file.display().to_string(),
        "members": shrunk.scenario.members,
        "faults": shrunk.scenario.fault.len(),
        "at": shrunk.breach.at.0,
        "evidence": evidence(&shrunk.breach),
    })
}

fn evidence(breach: &Breach) -> Vec<String> {
    breach.evidence.iter().map(ToString::to_string).collect()
}

/// The command that repeats one run: what was typed, with this run alone instead of all of them.
fn command(failure: &Failure, seed: u64) -> String {
    let typed: Vec<String> = std::env::args().skip(1).collect();
    repeating(&typed, Some(failure.algorithm.name()), seed, failure.run)
}

/// Flags that say which runs are made and what becomes of the result: none of them changes a run.
const DROPPED: [(&str, bool); 7] = [
    ("--runs", true),
    ("--run", true),
    ("--seed", true),
    ("--out", true),
    ("--threads", true),
    ("--max-time", true),
    ("--json", false),
];

fn repeating(typed: &[String], algorithm: Option<&str>, seed: u64, run: u64) -> String {
    let mut words = vec!["doyen".to_owned()];
    let mut rest = typed.iter();
    while let Some(word) = rest.next() {
        let (name, joined) =
            word.split_once('=').map_or((&word[..], false), |(name, _)| (name, true));
        match DROPPED.iter().find(|&&(dropped, _)| dropped == name) {
            Some(&(_, has_value)) if has_value && !joined => drop(rest.next()),
            Some(_) => {}
            None => words.push(quoted(word)),
        }
    }
    let is_algorithm = |word: &String| word.starts_with("--algorithm") || word.starts_with("-a");
    // Without one it is the turn of the same as before.
    if let Some(algorithm) = algorithm
        && !words.iter().any(is_algorithm)
    {
        words.push(format!("--algorithm {algorithm}"));
    }
    words.push(format!("--seed {seed} --run {run}"));
    words.join(" ")
}

/// A word as a shell takes it for one.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_repeats_one_run_with_everything_that_shaped_it() {
        let typed = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let plain = typed("check --random --runs 100000 --seed 4");
        assert_eq!(
            repeating(&plain, Some("ring-list"), 4, 17),
            "doyen check --random --algorithm ring-list --seed 4 --run 17"
        );
        assert_eq!(repeating(&plain, None, 4, 17), "doyen check --random --seed 4 --run 17");
        let full = typed("check --random --json -a bully --mode textbook --out x.toml");
        assert_eq!(
            repeating(&full, Some("bully"), 1, 3),
            "doyen check --random -a bully --mode textbook --seed 1 --run 3"
        );
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
