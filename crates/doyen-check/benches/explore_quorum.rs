//! Explores the quorum as far as time and memory go: `make check-quorum`.
//!
//! The voting rules alone to the end, and sessions with one replacement; leases and vote leases, and the whole, until
//! everything has been seen or a limit is reached, and then says how deep that was. Whatever comes of one, the others are
//! explored too; it fails at the end if something is violated, or if what must end did not. See `part.rs` for what is
//! explored, and docs/quorum.md for what came of it.
//!
//! ```console
//! $ cargo bench -p doyen-check --bench explore_quorum -- seconds=600 megabytes=8000 only=leases
//! ```

use std::process::ExitCode;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use doyen_check::budget::Budget;
use doyen_check::part::{Part, Scope};
use doyen_check::search::{Limits, Plan, Progress};
use doyen_check::{Report, Rules, Timers};
use doyen_sim::parallel;

/// An exploration: what it is in words, how many members there are, what may happen, and whether it must come to an end.
struct Subject {
    name: &'static str,
    members: u32,
    rules: Rules,
    must_end: bool,
}

fn subjects() -> Vec<Subject> {
    let of = |part, terms| Scope { terms, ..Scope::new(part) };
    let rules = |part, terms| Rules::of(of(part, terms), false);
    let leases = |terms| rules(Part::Leases, terms);
    let sessions = |terms| rules(Part::Sessions, terms);
    let mixed = Rules::of(Scope { mixed: true, ..of(Part::Leases, 2) }, false);
    let whole = rules(Part::Whole, 2);
    let subject = |name, members, rules, must_end| Subject { name, members, rules, must_end };
    let with = |rules: &Rules, change: fn(&mut Budget)| {
        let mut rules = rules.clone();
        change(&mut rules.budget);
        rules
    };
    let operated: fn(&mut Budget) = |budget| {
        (budget.transfers, budget.commands, budget.rejoins) = (1, 1, 1);
    };
    let paused: fn(&mut Budget) = |budget| {
        (budget.crashes, budget.restarts, budget.commands) = (0, 0, 1);
    };
    vec![
        subject("votes, 3 members, 3 terms, 1 crash", 3, once(rules(Part::Votes, 3)), true),
        subject("votes, 4 members, 2 terms, 1 crash", 4, once(rules(Part::Votes, 2)), true),
        subject("votes, 3 members, 3 terms", 3, rules(Part::Votes, 3), true),
        subject("votes, 4 members, 2 terms", 4, rules(Part::Votes, 2), true),
        subject("sessions, 3 members, 1 term, 1 replacement", 3, sessions(1), true),
        subject("sessions, 3 members, 2 terms, 1 replacement", 3, sessions(2), false),
        subject(
            "sessions, 3 members, 1 term, 2 replacements",
            3,
            with(&sessions(1), |it| it.replacements = 2),
            false,
        ),
        subject("leases, 3 members, 2 terms", 3, leases(2), false),
        subject("leases, 3 members, 3 terms", 3, leases(3), false),
        subject(
            "leases, 3 members, 2 terms, 1 transfer",
            3,
            with(&leases(2), |it| it.transfers = 1),
            false,
        ),
        subject(
            "leases, 3 members, 3 terms, 2 transfers",
            3,
            with(&leases(3), |it| it.transfers = 2),
            false,
        ),
        subject(
            "leases, 3 members, 2 terms, 1 rejoin",
            3,
            with(&leases(2), |it| it.rejoins = 1),
            false,
        ),
        subject("leases, mixed timings, 3 members, 2 terms", 3, mixed, false),
        subject("leases, 4 members, 2 terms", 4, leases(2), false),
        subject(
            "leases, wrong clocks, 3 members, 2 terms",
            3,
            Rules::of(of(Part::Leases, 2), true),
            false,
        ),
        subject("whole, 3 members, 2 terms", 3, whole.clone(), false),
        subject("whole, 3 members, 2 terms, 1 pause", 3, with(&whole, paused), false),
        subject("whole, 3 members, 2 terms, operated", 3, with(&whole, operated), false),
    ]
}

/// The same with one crash and one restart.
fn once(mut rules: Rules) -> Rules {
    (rules.budget.crashes, rules.budget.restarts) = (1, 1);
    if let Timers::Free { expiries } = &mut rules.timers {
        *expiries = 1;
    }
    rules
}

impl Subject {
    fn explore(&self, limits: Limits) -> Report {
        let scope = self.rules.scope.expect("a part of the quorum");
        let case = scope.scenario(self.members).resolve().expect("a scene that makes sense");
        let threads = parallel::processors();
        let plan = Plan { reduce: true, threads, limits };
        doyen_check::check(&case, &self.rules, &plan, &|_| true)
    }
}

fn main() -> ExitCode {
    let limits = Limits {
        time: Some(Duration::from_secs(number("seconds").unwrap_or(600))),
        memory: Some(number("megabytes").unwrap_or(8000) << 20),
        clock: Some(elapsed),
        ..Limits::default()
    };
    let only = argument("only").unwrap_or_default();
    let mut failed = false;
    for subject in subjects().into_iter().filter(|it| it.name.starts_with(&only)) {
        let report = subject.explore(limits);
        println!("{}\n    {}", subject.name, outcome(&report));
        failed |= report.violation.is_some() || subject.must_end && report.limit.is_some();
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The time since the first call.
fn elapsed() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}

/// `name=value` of the command line.
fn argument(name: &str) -> Option<String> {
    let value = |text: String| Some(text.strip_prefix(name)?.strip_prefix('=')?.to_owned());
    std::env::args().find_map(value)
}

fn number(name: &str) -> Option<u64> {
    argument(name).map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: no number")))
}

fn outcome(report: &Report) -> String {
    let Progress { states, generated, depth, frontier, memory, elapsed, .. } = report.progress;
    let verdict = match (&report.violation, report.limit) {
        (Some(violation), _) => {
            let path: Vec<String> = violation.path.iter().map(ToString::to_string).collect();
            format!("VIOLATED: {}\n        {}", violation.property, path.join("\n        "))
        }
        (None, Some(limit)) => {
            format!("holds up to the limit of {limit:?}: {frontier} states were not tried further")
        }
        (None, None) => "holds; everything was seen".to_owned(),
    };
    let (seconds, megabytes) = (elapsed.as_secs_f64(), memory >> 20);
    format!(
        "{states} states by {generated} steps, {depth} deep, {seconds:.0} s, {megabytes} MB; {verdict}"
    )
}
