//! `doyen check --random`: random runs with random faults.
//!
//! Every run that fails is named with the command that repeats it; the first is shrunk and written to a file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use doyen_check::campaign::shrink::{self, Shrunk};
use doyen_check::campaign::{self, Campaign, Failure, GenerateError, Report};
use doyen_check::counterexample::Counterexample;
use doyen_check::oracle::Breach;
use doyen_check::property::Property;
use doyen_check::selection::Selection;
use doyen_core::config::Mode;
use doyen_core::registry::Algorithm;
use doyen_sim::scenario::{Initiators, RingOrder, Scenario};
use serde_json::{Value, json};

use super::Check;
use super::report::{skipped_json, written_to};
use crate::cli::election::as_flag;
use crate::cli::output::Output;
use crate::cli::progress::Progress;
use crate::cli::terminal::{self, count};
use crate::cli::{Answer, system};

/// How many runs, and how long, shrinking takes at most.
const SHRINK_RUNS: u32 = 5_000;
const SHRINK_TIME: Duration = Duration::from_secs(25);

/// Why not all runs were made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stop {
    Failures,
    Time,
    Interrupt,
}

/// A finished campaign.
struct Finished {
    campaign: Campaign,
    report: Report,
    selection: Selection,
    wanted_runs: u64,
    stop: Option<Stop>,
    took: Duration,
    /// The first failure, shrunk, and its file.
    shrunk: Option<(Shrunk, PathBuf)>,
}

pub(super) fn run(check: &Check) -> Result<Answer> {
    let mut finished = match make(check)? {
        Ok(finished) => finished,
        Err(unmade) if unmade.panicked => return Ok(internal_error(check, &unmade)),
        Err(unmade) => return Err(anyhow!(unmade)),
    };
    // A file cannot say that a rule is missing, so there would be nothing to replay.
    if let (Some(failure), None) = (finished.report.failures.first(), check.parts.without) {
        let stop = system::stop_flag()?;
        match shrink(failure, stop) {
            Ok(shrunk) => finished.shrunk = Some((shrunk.clone(), write(check, failure, shrunk)?)),
            Err(unmade) => return Ok(internal_error(check, &unmade)),
        }
    }
    let text = match check.json {
        true => format!("{}\n", finished.as_json(check)),
        false => finished.as_text(check)?,
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(finished.answer())
}

fn make(check: &Check) -> Result<Result<Finished, GenerateError>> {
    let (flags, base) = (&check.random, check.scenario()?);
    check_names(&base)?;
    if check.parts.without.is_some() && base.algorithm != Some(Algorithm::Quorum) {
        bail!("--without: only the quorum has such rules; add --algorithm quorum");
    }
    let mut campaign = Campaign {
        lasting: flags.lasting,
        threads: check.threads(),
        without: check.parts.without,
        ..Campaign::new(base, flags.runs, flags.seed)
    };
    let named = selection(check, &campaign, campaign.base.algorithm.as_slice())?.checked;
    campaign.properties = (!check.property.is_empty()).then_some(named);
    if campaign.without.is_some() {
        campaign.patience = 1; // one failure shows that the rule is needed
    }
    // A wrong flag is reported as such before any run.
    let first = campaign.scenario(flags.run.unwrap_or(1)).and_then(|scenario| scenario.resolve());
    first.map_err(as_flag)?;
    let (began, stop) = (Instant::now(), system::stop_flag()?);
    let made = match flags.run {
        Some(number) => {
            let _spinner = Progress::spinner("one run");
            campaign::run_one(&campaign, number)
        }
        None => {
            let progress = Progress::bar(flags.runs, "random runs");
            let go_on = |made: u64| {
                progress.set_position(made);
                let has_time = check.max_time.is_none_or(|most| began.elapsed() < most);
                has_time && !stop.load(Ordering::Relaxed)
            };
            campaign::run(&campaign, go_on)
        }
    };
    let report = match made {
        Ok(report) => report,
        Err(unmade) => return Ok(Err(unmade)),
    };
    let wanted_runs = flags.run.map_or(flags.runs, |_| 1);
    let stop = match report.runs < wanted_runs {
        false => None,
        true if report.failures.len() >= campaign.patience.max(1) => Some(Stop::Failures),
        true if stop.load(Ordering::Relaxed) => Some(Stop::Interrupt),
        true => Some(Stop::Time),
    };
    let algorithms: Vec<Algorithm> = report.by_algorithm.keys().copied().collect();
    let selection = selection(check, &campaign, &algorithms)?;
    let took = began.elapsed();
    Ok(Ok(Finished { campaign, report, selection, wanted_runs, stop, took, shrunk: None }))
}

/// Rejects names of members where the number of members is drawn.
fn check_names(scenario: &Scenario) -> Result<()> {
    let named = [
        ("leader", scenario.leader.is_some()),
        ("dead", !scenario.dead.is_empty()),
        ("initiators", matches!(scenario.initiators, Some(Initiators::Listed(_)))),
        ("requests", matches!(scenario.requests, Some(Initiators::Listed(_)))),
        ("attr", !scenario.attr.is_empty()),
        ("ring", matches!(scenario.ring, Some(RingOrder::Listed(_)))),
    ];
    match named.into_iter().find(|&(_, is_named)| is_named) {
        Some((flag, _)) if scenario.members.is_none() => {
            bail!("--{flag}: the number of members is random; fix it with --members")
        }
        _ => Ok(()),
    }
}

/// The properties that are checked in runs of these algorithms.
fn selection(check: &Check, campaign: &Campaign, algorithms: &[Algorithm]) -> Result<Selection> {
    let lasting = check.random.lasting;
    let usual = |&algorithm: &Algorithm| {
        let mode = campaign.mode_of(algorithm);
        [Property::usual_of(algorithm, mode), Property::usual_at_random(algorithm, mode)].concat()
    };
    let usual: Vec<Property> = match lasting {
        true => Property::usual_while_faults_last(),
        false => algorithms.iter().flat_map(usual).collect(),
    };
    let usual = Property::ALL.into_iter().filter(|property| usual.contains(property)).collect();
    Selection::new(&check.property, usual, |property| {
        let reason = |algorithm: &Algorithm| property.means_nothing_to(*algorithm, true);
        if let Some(reasons) = algorithms.iter().map(reason).collect::<Option<Vec<_>>>()
            && let Some(&reason) = reasons.first()
        {
            return Some(reason);
        }
        match (Property::LASTING.contains(&property), lasting) {
            (true, true) => None,
            (true, false) => Some(("about lasting faults", "add --lasting")),
            (false, true) if !property.is_safety() => {
                Some(("about faults that end", "leave out --lasting"))
            }
            (false, _) if property.is_judged_at_random() => None,
            (false, _) => Some(("checked by exploration only", "leave out --random")),
        }
    })
    .map_err(as_flag)
}

/// Reports a panic in a run and the command that repeats it.
fn internal_error(check: &Check, unmade: &GenerateError) -> Answer {
    let again = repeating(std::env::args().skip(1), check.random.run, unmade.run);
    system::note(format_args!("internal error: {unmade}; repeat it with: {again}"));
    Answer::Panicked
}

/// A panic while shrinking is a panic because of this failure.
fn shrink(failure: &Failure, stop: &AtomicBool) -> Result<Shrunk, GenerateError> {
    let Failure { run, breach, scenario, .. } = failure;
    let _spinner = Progress::spinner("shrinking");
    let began = Instant::now();
    let go_on = || began.elapsed() < SHRINK_TIME && !stop.load(Ordering::Relaxed);
    match campaign::catch(|| shrink::shrink(scenario, breach.property, SHRINK_RUNS, &go_on)) {
        Ok(Some(shrunk)) => Ok(shrunk),
        Ok(None) => Ok(Shrunk { scenario: scenario.clone(), breach: breach.clone(), runs: 0 }),
        Err(problem) => {
            let problem = format!("{problem}, while shrinking");
            Err(GenerateError { run: *run, problem, panicked: true })
        }
    }
}

fn write(check: &Check, failure: &Failure, shrunk: Shrunk) -> Result<PathBuf> {
    let (algorithm, seed, run) = (failure.algorithm, check.random.seed, failure.run);
    let usual = || PathBuf::from(format!("counterexample-{algorithm}-{seed}-{run}.toml"));
    let file = check.out.clone().unwrap_or_else(usual);
    let mut output = Output::create(&file)?;
    let text = Counterexample::timed(shrunk.scenario, failure.breach.property).to_toml();
    output.write_text(&text)?;
    output.finish()?;
    Ok(file)
}

impl Finished {
    fn answer(&self) -> Answer {
        match (&self.report.failures[..], self.stop) {
            ([_, ..], _) => Answer::No,
            ([], Some(Stop::Interrupt)) => Answer::Interrupted,
            ([], Some(_)) => Answer::Limit,
            ([], None) if self.report.undecided > 0 => Answer::Limit,
            ([], None) => Answer::Yes,
        }
    }

    /// The mode of the runs; hardened, if they have several because not every algorithm has a hardened mode.
    fn mode(&self) -> Mode {
        let mut algorithms = self.report.by_algorithm.keys();
        let is_hardened = algorithms.any(|algorithm| algorithm.reads(Mode::Hardened));
        let usual = if is_hardened { Mode::Hardened } else { Mode::Textbook };
        self.campaign.base.mode.unwrap_or(usual)
    }

    /// Whether some of the runs had another mode than [`Self::mode`].
    fn has_other_modes(&self) -> bool {
        let mode = self.mode();
        self.report.by_algorithm.keys().any(|algorithm| !algorithm.reads(mode))
    }

    fn as_text(&self, check: &Check) -> Result<String> {
        let (runs, wanted) = (self.report.runs, self.wanted_runs);
        let mut text = self.summary()?;
        writeln!(text)?;
        if self.report.failures.is_empty() {
            self.write_verdict(&mut text)?;
        }
        for Failure { run, algorithm, breach, .. } in &self.report.failures {
            let Breach { property, at, .. } = breach;
            let seed = self.campaign.seed;
            writeln!(
                text,
                "Violated in run {run} of seed {seed}, {algorithm}, at {at}: {property}"
            )?;
            writeln!(text, "  {}", property.words())?;
            write_evidence(&mut text, breach, "but ")?;
            let again = repeating(std::env::args().skip(1), check.random.run, *run);
            writeln!(text, "  repeat it with: {again}\n")?;
        }
        match self.stop {
            None => {}
            Some(Stop::Failures) => writeln!(text, "Stopped after {runs} of {wanted} runs.")?,
            Some(Stop::Time) => {
                writeln!(text, "Stopped at the time limit: {runs} of {wanted} runs.")?;
            }
            Some(Stop::Interrupt) => writeln!(text, "Interrupted: {runs} of {wanted} runs.")?,
        }
        if let Some((Shrunk { scenario, breach, runs }, file)) = &self.shrunk {
            let faults = count(scenario.fault.len() as u64, "fault");
            let runs = count(*runs, "run");
            writeln!(text, "The first, shrunk in {runs} to {faults}, violated at {}:", breach.at)?;
            write_evidence(&mut text, breach, "")?;
            writeln!(text, "{}", written_to(file))?;
        }
        Ok(text)
    }

    fn summary(&self) -> Result<String> {
        let Self { campaign, report, took, .. } = self;
        let Report { runs, events, messages, elections, leader_changes, entries, digest, .. } =
            *report;
        let seconds = took.as_secs_f64();
        let rate = runs as f64 / seconds.max(1e-9);
        let mut text = String::new();
        writeln!(text, "{}, seed {}", count(runs, "random run"), campaign.seed)?;
        writeln!(text, "  took        {seconds:.1} s, {rate:.0} runs/s")?;
        let but = if self.has_other_modes() { "; textbook where there is none" } else { "" };
        writeln!(text, "  mode        {}{but}", self.mode())?;
        if let Some(rule) = campaign.without {
            writeln!(text, "  without     {rule}")?;
        }
        writeln!(text, "  algorithms  {}", list(&report.by_algorithm))?;
        writeln!(text, "  faults      {}", list(&report.faults))?;
        if !report.drawn.is_empty() {
            writeln!(text, "  drawn       {}", list(&report.drawn))?;
        }
        writeln!(
            text,
            "  events      {events}, each checked; {} of the algorithms",
            count(messages, "message")
        )?;
        if report.by_algorithm.keys().any(|algorithm| algorithm.elects()) {
            let changed = terminal::leader_changes(leader_changes);
            writeln!(text, "  elections   {elections} called; {changed}")?;
        }
        if entries > 0 {
            writeln!(text, "  entries     {entries} into a critical section")?;
        }
        if let Some((recovery, run)) = report.slowest_recovery {
            let millis = recovery.as_nanos() as f64 / 1e6;
            writeln!(
                text,
                "  recovery    at most {millis:.1} ms after the last fault (run {run})"
            )?;
        }
        if let Some(worst) = report.first_leases.worst() {
            let (most, all, run) = (report.first_leases.enough_for(999), worst.share(), worst.run);
            writeln!(
                text,
                "  first lease in 99.9 % of the runs within {most} % of L1, in all within {all} % (run {run})"
            )?;
        }
        writeln!(text, "  fingerprint {digest:016x}")?;
        Ok(text)
    }

    fn write_verdict(&self, text: &mut String) -> Result<()> {
        let Self { campaign, report, selection, .. } = self;
        match (report.undecided, self.stop) {
            (0, None) => writeln!(text, "Held in every run:")?,
            (0, Some(_)) => writeln!(text, "Held in every completed run:")?,
            (undecided, _) => writeln!(
                text,
                "Not violated; but {} did not come to rest, which A3 and served are about, and the properties at rest were not checked there:",
                count(undecided, "run")
            )?,
        }
        // Not every algorithm promises every usual property.
        let algorithms = report.by_algorithm.keys();
        for property in &selection.checked {
            let promises = |run: &&Algorithm| {
                Property::usual_at_random(**run, campaign.mode_of(**run)).contains(property)
            };
            let names: Vec<&str> =
                algorithms.clone().filter(promises).map(|it| it.name()).collect();
            let is_everywhere = campaign.lasting || campaign.properties.is_some();
            let whose = match is_everywhere || names.len() == report.by_algorithm.len() {
                true => String::new(),
                false => format!(" (checked in the runs of {})", names.join(", ")),
            };
            writeln!(text, "  {:20} {}{whose}", property.name(), property.words())?;
        }
        text.push_str(&selection.describe_skipped());
        Ok(())
    }

    fn as_json(&self, check: &Check) -> Value {
        let Self { campaign, report, selection, took, .. } = self;
        let first_lease = report.first_leases.worst().map(|worst| {
            let most = report.first_leases.enough_for(999);
            json!({ "percent_of_l1_p999": most, "percent_of_l1_max": worst.share(), "run": worst.run })
        });
        let by_algorithm: serde_json::Map<String, Value> = report
            .by_algorithm
            .iter()
            .map(|(name, &runs)| (name.to_string(), runs.into()))
            .collect();
        let failure = |Failure { run, algorithm, breach, .. }: &Failure| {
            json!({
                "run": run,
                "algorithm": algorithm.name(),
                "property": breach.property.name(),
                "at": breach.at.0,
                "evidence": evidence(breach),
                "command": repeating(std::env::args().skip(1), check.random.run, *run),
            })
        };
        let counterexample = |(Shrunk { scenario, breach, .. }, file): &(Shrunk, PathBuf)| {
            json!({
                "file": file.display().to_string(),
                "members": scenario.members,
                "faults": scenario.fault.len(),
                "at": breach.at.0,
                "evidence": evidence(breach),
            })
        };
        json!({
            "verdict": match self.answer() {
                Answer::No => "violated",
                Answer::Yes => "holds",
                _ => "limit",
            },
            "property": report.failures.first().map(|failure| failure.breach.property.name()),
            "properties": selection.checked.iter().map(|it| it.name()).collect::<Vec<_>>(),
            "not_judged": selection.skipped.iter().map(skipped_json).collect::<Vec<_>>(),
            "mode": self.mode().to_string(),
            "seed": campaign.seed,
            "runs": report.runs,
            "runs_asked_for": self.wanted_runs,
            "limit": self.stop.map(|stop| match stop {
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
            "entries": report.entries,
            "undecided": report.undecided,
            "slowest_recovery": report.slowest_recovery.map(|(span, run)| json!({ "nanos": span.as_nanos(), "run": run })),
            "first_lease": first_lease,
            "seconds": took.as_secs_f64(),
            "digest": format!("{:016x}", report.digest),
            "failures": report.failures.iter().map(failure).collect::<Vec<_>>(),
            "counterexample": self.shrunk.as_ref().map(counterexample),
        })
    }
}

fn write_evidence(text: &mut String, breach: &Breach, prefix: &str) -> Result<()> {
    for fact in &breach.evidence {
        writeln!(text, "  {prefix}{fact}")?;
    }
    if let Some(words) = breach.ending.words() {
        writeln!(text, "  {words}")?;
    }
    Ok(())
}

fn evidence(breach: &Breach) -> Vec<String> {
    breach.evidence.iter().map(ToString::to_string).collect()
}

/// `bully 3, ring-list 4`.
fn list<K: ToString>(counts: &BTreeMap<K, u64>) -> String {
    let each = |(name, count): (&K, &u64)| format!("{} {count}", name.to_string());
    counts.iter().map(each).collect::<Vec<_>>().join(", ")
}

/// The command that repeats one run: the one that was typed, with `--run`.
fn repeating(typed: impl Iterator<Item = String>, given: Option<u64>, run: u64) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@%+".contains(c);
    let quote = |word: String| match !word.is_empty() && word.chars().all(is_plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    let words: Vec<String> = ["doyen".to_owned()].into_iter().chain(typed.map(quote)).collect();
    let run = if given.is_some() { String::new() } else { format!(" --run {run}") };
    words.join(" ") + &run
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_repeats_one_run() {
        let typed = || ["check", "--random", "it's"].map(str::to_owned).into_iter();
        assert_eq!(repeating(typed(), None, 17), r"doyen check --random 'it'\''s' --run 17");
        assert_eq!(repeating(typed(), Some(17), 17), r"doyen check --random 'it'\''s'");
    }
}
