//! What real nodes record, and what `doyen replay` makes of it when something is missing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::leases::{Held, downtimes, overlaps, read};
use crate::support::{Plan, Trial, complaint, doyen};
use doyen::config::{Configuration, Env};
use doyen::node::trace::files::{Limits, files_of};
use doyen::node::{Builder, Running};
use doyen_core::change::LeaderChange;
use doyen_core::members::NodeId;
use rustix::process::Signal;

/// Three members that have recorded an election and a hand-over.
fn recorded() -> (Trial, Vec<PathBuf>) {
    let mut trial = Trial::found(&Plan { members: 3, ..Plan::default() });
    let files: Vec<PathBuf> =
        (1..=3).map(|member| trial.folder.join(format!("n{member}.trace"))).collect();
    for (member, file) in (1..).zip(&files) {
        trial.run_with(member, &["--trace", file.to_str().unwrap()]);
    }
    trial.follow(3, &[1, 2, 3]);
    trial.stop(3);
    trial.follow(2, &[1, 2]);
    trial.stop(2);
    trial.stop(1);
    (trial, files)
}

fn replay(files: &[&Path]) -> (Option<i32>, String, String) {
    let mut words = vec!["replay"];
    words.extend(files.iter().map(|file| file.to_str().unwrap()));
    let output = doyen(&words);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), said, complaint(&output))
}

/// The file without the line of this number, written beside it.
fn without_line(file: &Path, line: usize, change: impl Fn(&str) -> String) -> PathBuf {
    let text = fs::read_to_string(file).unwrap();
    let lines = text.lines().enumerate().filter(|(place, _)| place + 1 != line);
    let text: String = lines.map(|(_, line)| change(line) + "\n").collect();
    let cut = file.with_extension("cut");
    fs::write(&cut, text).unwrap();
    cut
}

/// A line as it was written before lines had numbers.
fn without_number(line: &str) -> String {
    match line.strip_prefix("{\"line\":") {
        Some(rest) => format!("{{{}", rest.split_once(',').unwrap().1),
        None => line.to_owned(),
    }
}

#[test]
fn a_replay_says_what_it_covered_and_stops_where_something_is_missing() {
    let (_trial, files) = recorded();
    let all: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let (code, said, error) = replay(&all);
    assert_eq!(code, Some(0), "{said}{error}");
    let totals = said.lines().rev().nth(1).unwrap();
    assert!(totals.starts_with("3 traces of 3 members: "), "{said}");
    assert!(
        totals.contains(" effects compared, ") && totals.contains("the leader changed"),
        "{said}"
    );

    let file = files[0].as_path();
    let text = fs::read_to_string(file).unwrap();
    let (middle, lines) = (text.lines().count() / 2, text.lines().count());
    assert!(lines > 6, "there is a middle:\n{text}");
    let cut = without_line(file, middle, str::to_owned);
    let (code, said, error) = replay(&[&cut]);
    assert_eq!(code, Some(2), "{said}{error}");
    let next = middle + 1;
    let expected = format!(
        "doyen: {}: line {middle}: was written as line {next}, so a line is missing before it; copy the whole file again\n",
        cut.display()
    );
    assert_eq!(error, expected);

    // In a trace without numbers the difference shows where the member does something else than it did: whoever has not
    // heard of a leader announces it later.
    let is_telling = |line: &str| line.contains("received") && line.contains("Announce(");
    let telling = text.lines().position(is_telling);
    let cut = without_line(file, telling.unwrap() + 1, without_number);
    let (code, said, error) = replay(&[&cut]);
    assert_eq!(code, Some(1), "{said}{error}");
    assert!(said.lines().count() < 80, "{said}");
    let place = format!("{}: line ", cut.display());
    let finding =
        said.lines().find(|line| line.starts_with(&place)).unwrap_or_else(|| panic!("{said}"));
    assert!(finding.contains("a line above is missing or was altered"), "{finding}");
    assert!(
        said.contains("stopped there; ") && said.ends_with("VIOLATED: 1 problem, see above\n"),
        "{said}"
    );
}

/// Runs a member in this process, with a trace in small files.
fn run_here(trial: &Trial, member: usize, files: u32) -> (Running, PathBuf) {
    let file = trial.folder_of(member).join("doyen.toml");
    let mut configuration = Configuration::load(Some(&file), &[], &Env::of_process()).unwrap();
    let trace = trial.folder.join(format!("n{member}.trace"));
    configuration.settings.trace = Some(trace.clone());
    configuration.settings.trace_limits = Limits { file_bytes: 30_000, files };
    (Builder::new(configuration).start().unwrap(), trace)
}

#[test]
fn a_trace_in_several_files_is_replayed_as_a_whole() {
    let mut trial = Trial::found(&Plan::default());
    let kept = [1000, 3, 1000];
    let nodes = [1, 2, 3].map(|member| run_here(&trial, member, kept[member - 1]));
    let [all, last, other] = nodes.each_ref().map(|(_, trace)| trace.clone());
    let number_of = |trace: &Path| files_of(trace).unwrap().len();
    trial.wait("both traces have many files", || {
        let is_removed = !last.exists() && number_of(&last) > 0;
        (is_removed && number_of(&all) > 4).then_some(())
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for (node, _) in nodes {
        node.handle().stop(Duration::from_secs(5));
        runtime.block_on(node.ended()).unwrap();
    }
    let files = files_of(&all).unwrap();
    for file in &files {
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
    }

    let (code, said, error) = replay(&[&all]);
    assert_eq!(code, Some(0), "{said}{error}");
    let lines = |file: &PathBuf| fs::read_to_string(file).unwrap().matches("\"did\"").count();
    let heads = files.len() - 1;
    let events = files.iter().map(lines).sum::<usize>() - heads;
    assert!(said.contains(&format!("n1, start 1, {events} events\n")), "{events} in {said}");
    assert!(!said.contains("NodeId(") && !said.contains("Inner("), "in words: {said}");
    // Whichever of them is given, and if all are.
    assert_eq!(replay(&[&files[2]]).1, said);
    assert_eq!(replay(&files.iter().map(PathBuf::as_path).collect::<Vec<_>>()).1, said);

    assert_eq!(number_of(&last), 3);
    let (code, said, error) = replay(&[&last]);
    assert_eq!(code, Some(4), "{said}{error}");
    let is_late = format!("{} BEGINS LATE: with line ", last.display());
    assert!(said.contains(&is_late) && said.contains("Holds as far as"), "{said}");
    let (code, said, error) = replay(&[&all, &last, &other]);
    assert_eq!(code, Some(4), "{said}{error}");
    assert!(said.contains("3 traces of 3 members: "), "{said}");

    // The name is that of an earlier trace, though its first file is gone.
    trial.run_with(2, &["--trace", last.to_str().unwrap()]);
    let next = last.with_extension("trace.2");
    trial.wait("another trace", || next.exists().then_some(()));
    trial.stop(2);
    assert!(!last.exists());

    fs::remove_file(&files[2]).unwrap();
    let (code, said, error) = replay(&[&all]);
    assert_eq!(code, Some(2), "{said}{error}");
    let place = format!("doyen: {}: line 1: was written as line ", files[3].display());
    assert!(error.starts_with(&place) && error.contains("copy all files again"), "{error}");
}

#[test]
fn a_trace_that_is_given_twice_is_refused() {
    let (_trial, files) = recorded();
    let file = files[0].as_path();
    let (code, _, error) = replay(&[file, &files[1], file]);
    assert_eq!(code, Some(2));
    assert_eq!(error, format!("doyen: {} is given twice; give each trace once\n", file.display()));
    let copy = file.with_extension("copy");
    fs::copy(file, &copy).unwrap();
    let (code, _, error) = replay(&[file, &copy]);
    assert_eq!(code, Some(2));
    assert!(error.contains("are both of member 1, start 1; give one of them"), "{error}");
}

/// A lease of 0.88 s rests on vote leases of 5 s: so the clocks are trusted with nothing, and followers wait far longer
/// than a leader's lease lasts.
const PATIENT: &str = "profile = \"lan\"\nheartbeat = \"250ms\"\nvote_lease = \"5s\"\ndrift = 0.7";

/// Longer than a lease, and far shorter than a vote lease.
const STOPPED: Duration = Duration::from_millis(1800);

#[test]
fn a_lease_that_lapses_and_comes_back_is_told_as_a_gap_in_its_term() {
    let mut trial = Trial::found(&Plan::default());
    let trace = trial.folder.join("n3.trace");
    for member in trial.everybody() {
        let file = trial.folder_of(member).join("doyen.toml");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("profile = \"lan\""), "{text}");
        fs::write(file, text.replace("profile = \"lan\"", PATIENT)).unwrap();
    }
    trial.run_with(3, &["--trace", trace.to_str().unwrap()]);
    trial.run(2);
    trial.run(1);
    trial.follow(3, &[1, 2, 3]);
    let term = trial.wait_for_status(3).term;

    trial.signal(3, Signal::STOP);
    std::thread::sleep(STOPPED);
    trial.signal(3, Signal::CONT);
    let resumed = LeaderChange::LeaseResumed { leader: NodeId(3), term };
    let history = trial.wait("n3 leads on after the gap", || {
        let history = trial.history(3);
        history.iter().any(|entry| entry.change == resumed).then_some(history)
    });
    trial.follow(3, &[1, 2, 3]);
    for member in trial.everybody() {
        assert_eq!(trial.wait_for_status(member).term, term, "n{member}");
    }
    let [.., took, lapsed, last] = &history[..] else { panic!("{history:?}") };
    assert!(
        matches!(took.change, LeaderChange::BecameLeader { term: first, .. } if first == term),
        "{took:?}"
    );
    assert_eq!((lapsed.change, last.change), (LeaderChange::LeaseLapsed { term }, resumed));
    assert!(lapsed.text.ends_with(" ago, and this process did not run meanwhile"), "{lapsed:?}");
    let downtime = Duration::from_micros(last.downtime_us.expect("a downtime"));
    assert!(downtime > Duration::from_millis(500), "from the end of the lease: {downtime:?}");
    let told = doyen(&["history", "--node", trial.url(3)]);
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let told = told.lines().last().unwrap();
    assert!(told.contains("after a gap") && told.contains("; downtime "), "{told}");

    trial.stop(3);
    let leases = read(&fs::read_to_string(&trace).unwrap());
    let [first, second] = leases[..] else { panic!("{leases:?}") };
    assert!(first.is_first && !second.is_first, "{leases:?}");
    let gap = Duration::from_nanos(second.from - first.until);
    assert!(gap > Duration::from_millis(500), "no lease while it was stopped: {gap:?}");
}

#[test]
fn leases_are_read_from_a_trace_with_their_gaps() {
    let trace = "{\"doyen\":\"node-trace\"}\n\
        {\"at\":10,\"event\":\"received\",\"did\":[\"Inform(Changed(BecameLeader { term: Term(1) }))\"]}\n\
        {\"at\":11,\"event\":\"leased\",\"member\":2,\"until\":20}\n\
        {\"at\":15,\"event\":\"leased\",\"member\":2,\"until\":25}\n\
        {\"at\":26,\"event\":\"leased\",\"member\":2,\"until\":null}\n\
        {\"at\":28,\"event\":\"leased\",\"member\":2,\"until\":40}\n\
        {\"at\":33,\"event\":\"leased\",\"member\":2,\"until\":null}\n\
        {\"at\":34,\"ev";
    let held = |member, from, until, is_first| Held { member, from, until, is_first };
    let leases = read(trace);
    assert_eq!(leases, [held(2, 11, 25, true), held(2, 28, 33, false)]);
    assert_eq!(downtimes(&leases, 0..50), [0..11, 25..28, 33..50]);
    assert_eq!(downtimes(&leases, 12..45), [25..28, 33..45]);
    let other = held(3, 32, 60, true);
    assert_eq!(overlaps(&[other, leases[0], leases[1]]), [(leases[1], other)]);
    assert_eq!(downtimes(&[other, leases[1]], 30..50), []);
}
