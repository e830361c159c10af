//! Explores the quorum as far as time and memory go: `make check-quorum`.
//!
//! The voting rules alone to the end; leases and promises, and the whole, until everything has been seen or a limit is
//! reached, and then says how deep that was. See `tests/check_quorum/subject.rs` for what is explored, and docs/quorum.md
//! for what came of it.
//!
//! ```console
//! $ cargo bench -p doyen-sim --bench explore_quorum -- seconds=600 megabytes=8000 only=leases
//! ```

#[path = "../tests/check_quorum/subject.rs"]
mod subject;

use std::process::ExitCode;
use std::time::Duration;

use doyen_sim::check::Report;
use doyen_sim::check::search::{Limits, Progress};

use subject::Subject;

/// What is explored, in words, and whether it must come to an end.
fn subjects() -> Vec<(&'static str, Subject, bool)> {
    let once = |subject: Subject| Subject { faults: 1, ..subject };
    vec![
        ("votes, 3 members, 3 terms, 1 crash and restart", once(Subject::votes(3, 3)), true),
        ("votes, 4 members, 2 terms, 1 crash and restart", once(Subject::votes(4, 2)), true),
        ("votes, 3 members, 3 terms, any crashes", Subject::votes(3, 3), true),
        ("votes, 4 members, 2 terms, any crashes", Subject::votes(4, 2), true),
        ("leases, 3 members, 2 terms, any crashes", Subject::leases(3, 2), true),
        ("leases, 3 members, 3 terms, any crashes", Subject::leases(3, 3), true),
        ("leases, 4 members, 2 terms, any crashes", Subject::leases(4, 2), false),
        (
            "leases by clocks wrong by a fifth, 3 members, 2 terms, any crashes",
            Subject { drift: 200, ..Subject::leases(3, 2) },
            false,
        ),
        ("the whole, 3 members, 2 terms, any crashes", Subject::whole(3, 2), false),
    ]
}

fn main() -> ExitCode {
    let limits = Limits {
        time: Some(Duration::from_secs(number("seconds").unwrap_or(600))),
        memory: Some(number("megabytes").unwrap_or(8000) << 20),
        ..Limits::default()
    };
    let only = argument("only").unwrap_or_default();
    for (name, subject, must_end) in subjects().into_iter().filter(|it| it.0.starts_with(&only)) {
        let report = subject.explore(true, limits, &|_| {});
        println!("{name}\n    {}", outcome(&report));
        if report.violation.is_some() || must_end && report.limit.is_some() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
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
