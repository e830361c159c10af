//! The known flaws of the sources' algorithms, one schedule each: `scenarios/flaws/`. Each file shows its flaw in the mode
//! or literal reading in which it lives and says in `expect` what goes wrong. The same schedule is then run in hardened
//! mode, where A1 to A3 must hold at the end: everything becomes quiet (A3), and all live members follow the same live
//! member (A1), the best one (A2). `docs/flaws.md` has the table.

use std::fs;
use std::path::{Path, PathBuf};

use doyen_core::config::Mode;
use doyen_core::members::NodeId;
use doyen_core::time::Span;
use doyen_report::{expectation, formula};
use doyen_sim::fault::{Action, Fault};
use doyen_sim::metrics::{Ended, Outcome};
use doyen_sim::run;
use doyen_sim::scenario::{Case, Scenario};
use doyen_sim::time::Time;

/// Every flaw by its file, and whether hardened mode needs a failure detector there: where a follower cannot know that
/// its leader is dead or out of reach, no rule of an election helps.
const FLAWS: [(&str, bool); 20] = [
    ("f01-slow-leader", false),
    ("f02-partition-heals", true),
    ("f03-stale-coordinator", false),
    ("f04-no-announcement-timer", false),
    ("f05-one-timer", false),
    ("f06-leader-only-says-ok", false),
    ("f07-late-ok", false),
    ("f08-no-way-to-the-leader", false),
    ("f09-flapping", true),
    ("f10-literal-timers", false),
    ("f11a-lowest-wins", false),
    ("f11b-grants-to-the-dead", false),
    ("f12-all-members-take-over", false),
    ("f13-booting-member-ignored", false),
    ("f14-participants-forever", false),
    ("f15-orphan", false),
    ("f16-list-without-end", false),
    ("f17-two-elections-cross", false),
    ("f18-winner-dies-after-the-list", true),
    ("f19-old-initiators-kept", true),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn schedule(name: &str) -> Scenario {
    let file = format!("scenarios/flaws/{name}.toml");
    Scenario::parse(&file, &read(&file)).unwrap_or_else(|problem| panic!("{problem}"))
}

fn resolve(scenario: &Scenario) -> Case {
    scenario.resolve().unwrap_or_else(|error| panic!("{}: {error}", scenario.about))
}

/// The same schedule in hardened mode, to its own end.
fn hardened(name: &str) -> Scenario {
    let &(_, detector) = FLAWS.iter().find(|(flaw, _)| *flaw == name).expect("a flaw's name");
    Scenario {
        mode: Some(Mode::Hardened),
        detector: detector.then_some(Span::from_millis(5)),
        until: None,
        message_limit: None,
        expect: None,
        ..schedule(name)
    }
}

fn run_hardened(name: &str) -> Outcome {
    run::run(&resolve(&hardened(name)), None)
}

/// What is missing of A1, A2 and A3 at the end.
fn breaches(case: &Case, outcome: &Outcome) -> Vec<String> {
    let alive = case.members().iter().zip(outcome.views.iter()).filter(|(_, view)| view.is_some());
    let best = alive.map(|(id, _)| case.members().key(id)).max().map(|key| key.id);
    let mut found = Vec::new();
    if !outcome.agreed {
        found.push(format!("A1: {:?}", outcome.views));
    }
    if outcome.leader != best {
        found.push(format!("A2: they follow {:?}, the best is {best:?}", outcome.leader));
    }
    if outcome.ended != Ended::Quiet {
        found.push(format!("A3: {:?}", outcome.ended));
    }
    found
}

#[test]
fn every_flaw_shows_in_its_schedule() {
    for (name, _) in FLAWS {
        let case = resolve(&schedule(name));
        let outcome = run::run(&case, None);
        let differences = expectation::differences(&case, &outcome, formula::of(&case).as_ref());
        assert!(differences.is_empty(), "{name}: {differences:#?}");
        assert!(case.expect.is_some(), "{name} says what goes wrong");
    }
}

/// All but F8, whose schedule never lets 1 and 3 hear each other.
#[test]
fn in_hardened_mode_every_schedule_ends_well() {
    for (name, _) in FLAWS.iter().filter(|(name, _)| !name.starts_with("f08")) {
        let case = resolve(&hardened(name));
        let breaches = breaches(&case, &run::run(&case, None));
        assert!(breaches.is_empty(), "{name}: {breaches:#?}");
    }
}

#[test]
fn the_folder_and_the_table_have_every_flaw() {
    let entries = fs::read_dir(root().join("scenarios/flaws")).expect("there is such a folder");
    let mut files: Vec<String> = entries
        .map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned())
        .collect();
    files.sort_unstable();
    assert_eq!(files, FLAWS.map(|(name, _)| format!("{name}.toml")));
    let table = read("docs/flaws.md");
    for file in files {
        let command = format!("`doyen sim scenarios/flaws/{file}`");
        assert!(table.contains(&command), "docs/flaws.md lacks {command}");
    }
}

/// F1, F2: A1 to A3 come back, but for a while there were two leaders. Only a majority can prevent that.
#[test]
fn hardened_mode_does_not_prevent_two_leaders() {
    for name in ["f01-slow-leader", "f02-partition-heals"] {
        assert!(run_hardened(name).overlap > Span::ZERO, "{name}");
    }
}

/// F5, F6, F7, F10: as many elections and messages as a run without failures needs.
#[test]
fn hardened_mode_does_not_repeat_elections_in_vain() {
    for (name, elections, messages) in [
        ("f05-one-timer", 3, 12),
        ("f06-leader-only-says-ok", 1, 4),
        ("f07-late-ok", 5, 24),
        ("f10-literal-timers", 1, 15),
    ] {
        let outcome = run_hardened(name);
        assert_eq!((outcome.elections, outcome.messages.total), (elections, messages), "{name}");
    }
}

/// F8: 2 vouches for the leader, 1 follows it unheard and asks ever more rarely, and nobody else is disturbed. Once the
/// cut is mended everything becomes quiet.
#[test]
fn a_member_that_cannot_hear_the_leader_does_no_harm() {
    let cut = hardened("f08-no-way-to-the-leader");
    let long = Scenario { until: Some(Span::from_millis(300)), ..cut.clone() };
    let outcome = run::run(&resolve(&long), None);
    assert!(outcome.agreed && outcome.leader_changes == 0 && outcome.elections <= 6);

    let mend = |from, to| {
        let mend = Action::Mend { from: NodeId(from), to: NodeId(to) };
        Fault::at(Time::ZERO + Span::from_millis(300), mend)
    };
    let mut mended = cut;
    mended.fault.extend([mend(1, 3), mend(3, 1)]);
    let case = resolve(&mended);
    assert_eq!(breaches(&case, &run::run(&case, None)), Vec::<String>::new());
}

/// F9: the preempt delay outlasts every one of 5's lives but the first, when nobody leads yet.
#[test]
fn a_flapping_member_moves_the_leadership_once() {
    assert_eq!(run_hardened("f09-flapping").leader_changes, 2);
}

/// F11b: the next highest of those that have answered is granted. The reference program needs 22 messages and 10D too.
#[test]
fn grants_to_the_dead_fall_back_on_the_next() {
    let outcome = run_hardened("f11b-grants-to-the-dead");
    assert_eq!((outcome.elections, outcome.messages.total), (1, 22));
    assert_eq!(outcome.turnaround, Span::from_millis(10));
}

/// F12: the highest loses patience first. About 3n messages instead of 897.
#[test]
fn a_dead_initiator_is_replaced_by_one() {
    assert_eq!(run_hardened("f12-all-members-take-over").messages.total, 119);
}
