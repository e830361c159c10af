//! What a real cluster costs: five processes on loopback, from the kill of the leader to the next, a planned hand-over,
//! and idling.
//!
//! **Failover.** The leader is killed by SIGKILL, [`KILLS`] times a profile. Measured is, by the members' own histories
//! and the clock of the machine, the time until another holds a lease, and the time until the last of the four that are
//! left follows it. Before each kill everybody has been following the same leader for a while.
//!
//! **Hand-over.** The leader is told to resign; its successor reports how long no member led.
//!
//! **Crash hand-over** and **moves** of a job, under `doyen run`: `crash.rs`, `moves.rs`.
//!
//! **Loss.** Datagrams are lost, and nothing else goes wrong: `loss.rs`.
//!
//! **Idling.** Nothing happens for [`IDLE`]. Counted are the datagrams that the leader sends, the processor time that
//! the system charges it with, and its resident memory.
//!
//! `DOYEN_BENCH_ROUNDS` sets the kills; `DOYEN_BASELINE` is the absolute path of another version of the program, built the
//! same way, to measure beside this one where datagrams are lost; `make bench` builds one from the history. Of the command
//! line, `part=` takes one of `failover`, `hand-over`, `crash`, `moves`, `loss` and `idle` alone, and `seconds=`, `runs=`
//! and `profile=` set how long, how often and with which profile datagrams are lost: `cargo bench -p doyen --bench cluster
//! -- part=loss seconds=2 runs=1` tries that out in less than a minute.
//!
//! The figures are for reading: a target that is missed is no error.

mod crash;
mod loss;
mod moves;
mod namespace;
#[path = "../../tests/it/support/mod.rs"]
mod support;

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use doyen::node::status::Entry;
use doyen_core::change::LeaderChange;
use support::{Plan, Trial, program};

const MEMBERS: usize = 5;
const KILLS: usize = 20;
const HAND_OVERS: usize = 10;
const CRASHES: usize = 50;
const IDLE: Duration = Duration::from_secs(20);

/// How long everybody must have been following the same leader.
const CALM: Duration = Duration::from_millis(1500);

/// Processor time is counted in hundredths of a second.
const TICKS: f64 = 100.0;

fn main() {
    // `cargo test --benches` only wants to know that it starts.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let parts = ["failover", "hand-over", "crash", "moves", "loss", "idle"];
    let is_known = argument("part").is_none_or(|part| parts.contains(&part.as_str()));
    assert!(is_known, "part= takes one of {parts:?}");
    let rounds = std::env::var("DOYEN_BENCH_ROUNDS").ok().and_then(|text| text.parse().ok());
    println!("A cluster of {MEMBERS} processes on loopback");
    if ["failover", "hand-over", "crash", "moves"].into_iter().any(takes) {
        println!("\n{:<34} {:>9} {:>9} {:>9}   aim", "milliseconds", "least", "median", "most");
    }
    if takes("failover") {
        for (profile, aim) in [("fast", "30 ms"), ("lan", "340 ms")] {
            failover(profile, aim, rounds.unwrap_or(KILLS));
        }
    }
    if takes("hand-over") {
        hand_over();
    }
    if takes("crash")
        && let Some((times, stalls)) = crash::measure(rounds.unwrap_or(CRASHES))
    {
        let mut sorted = times.clone();
        sorted.sort_by(f64::total_cmp);
        let p95 = sorted[(sorted.len() - 1) * 95 / 100];
        row("lan, run: SIGKILL to the next lease", times, "median 10 ms");
        println!("{:<34} {p95:>9.1}; {stalls} rounds in which the machine stalled", "  p95");
    }
    if takes("moves") {
        row("lan, run: a job is moved", moves::measure(HAND_OVERS), "");
    }
    if takes("loss") {
        loss::measure();
    }
    if takes("idle") {
        idle();
    }
}

/// Whether this part is measured: all are, unless the command line takes one.
fn takes(part: &str) -> bool {
    argument("part").is_none_or(|only| only == part)
}

/// `name=value` of the command line.
fn argument(name: &str) -> Option<String> {
    let value = |text: String| Some(text.strip_prefix(name)?.strip_prefix('=')?.to_owned());
    std::env::args().find_map(value)
}

fn number(name: &str) -> Option<u64> {
    argument(name).map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: no number")))
}

fn start(profile: &'static str) -> Trial {
    let mut trial = Trial::found(&plan(profile));
    run_all(&mut trial);
    trial
}

/// As an operator would have it: nothing but the profile is set.
fn plan(profile: &'static str) -> Plan {
    Plan { members: MEMBERS, profile, preemption: "delayed", ..Plan::default() }
}

fn run_all(trial: &mut Trial) {
    for member in trial.everybody() {
        trial.run(member);
    }
}

fn failover(profile: &'static str, aim: &str, kills: usize) {
    let mut trial = start(profile);
    let (mut until_lease, mut until_known) = (Vec::new(), Vec::new());
    for kill in 0..kills {
        let leader = calm_down(&trial);
        // Not always at the same moment of a heartbeat.
        sleep(Duration::from_millis(7 * kill as u64));
        let term = trial.status(leader).expect("it runs").term.0;
        let killed = unix_ms();
        trial.kill(leader);
        let left: Vec<usize> = trial.everybody().into_iter().filter(|&it| it != leader).collect();
        trial.agree(&left);
        let histories = left.iter().map(|&member| trial.history(member));
        let firsts: Vec<(bool, u64)> =
            histories.filter_map(|history| first_leader_after(&history, term)).collect();
        let lease = firsts.iter().filter(|(took, _)| *took).map(|&(_, at)| at).min();
        let known = firsts.iter().map(|&(_, at)| at).max();
        until_lease.push((lease.expect("somebody leads") - killed) as f64);
        until_known.push((known.expect("everybody knows") - killed) as f64);
        trial.run(leader);
    }
    row(&format!("{profile}: SIGKILL to the next lease"), until_lease, aim);
    row(&format!("{profile}: SIGKILL to the last knowing"), until_known, "");
}

/// When a member came to have a leader again, and whether that is itself.
fn first_leader_after(history: &[Entry], term: u64) -> Option<(bool, u64)> {
    history.iter().find_map(|entry| match entry.change {
        LeaderChange::BecameLeader { term: next, .. } if next.0 > term => {
            Some((true, entry.at_unix_ms))
        }
        LeaderChange::Follows { term: next, .. } if next.0 > term => {
            Some((false, entry.at_unix_ms))
        }
        _ => None,
    })
}

fn hand_over() {
    let trial = start("lan");
    let mut downtime = Vec::new();
    for _ in 0..HAND_OVERS {
        let leader = calm_down(&trial);
        let term = trial.status(leader).expect("it runs").term;
        assert!(trial.command(leader, &["resign"]).status.success(), "n{leader} resigns");
        let micros = trial.wait("somebody takes over", || {
            let mut histories = trial.everybody().into_iter().map(|member| trial.history(member));
            histories.find_map(|history| {
                history.iter().find_map(|entry| match entry.change {
                    LeaderChange::BecameLeader { term: next, .. } if next > term => {
                        entry.downtime_us
                    }
                    _ => None,
                })
            })
        });
        downtime.push(micros as f64 / 1000.0);
    }
    row("lan: downtime of a transfer", downtime, "");
}

fn idle() {
    let trial = start("lan");
    let leader = calm_down(&trial);
    let pid = trial.pid(leader);
    let before = (datagrams(&trial, leader), processor_time(pid), Instant::now());
    sleep(IDLE);
    let seconds = before.2.elapsed().as_secs_f64();
    let packets = (datagrams(&trial, leader) - before.0) / seconds;
    let share = (processor_time(pid) - before.1) / seconds * 100.0;
    let resident = resident(pid) / 1e6;
    println!("\n{:<34} {packets:>9.1} /s   aim: at most 100", "lan, idle: the leader sends");
    println!("{:<34} {share:>9.2} %    aim: at most 1 of a core", "lan, idle: processor");
    println!("{:<34} {resident:>9.1} MB   aim: at most 12", "lan, idle: resident memory");
    let bytes = fs::metadata(program()).expect("the program has a size").len();
    println!("{:<34} {:>9.1} MB   aim: at most 20", "size of the program", bytes as f64 / 1e6);
}

/// Waits until all have been following the same leader for a while.
fn calm_down(trial: &Trial) -> usize {
    let mut since: Option<(usize, Instant)> = None;
    trial.wait("everybody follows the same leader for a while", || {
        let leader = trial.agree(&trial.everybody());
        let held = since.filter(|(last, _)| *last == leader);
        let (_, begun) = *since.insert(held.unwrap_or((leader, Instant::now())));
        (begun.elapsed() >= CALM).then_some(leader)
    })
}

fn row(what: &str, mut samples: Vec<f64>, aim: &str) {
    samples.sort_by(f64::total_cmp);
    let (least, most) = (samples[0], samples[samples.len() - 1]);
    let median = samples[samples.len() / 2];
    println!("{what:<34} {least:>9.1} {median:>9.1} {most:>9.1}   {aim}");
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock that is set");
    since.as_millis() as u64
}

/// How many datagrams a member has sent.
fn datagrams(trial: &Trial, member: usize) -> f64 {
    const NAME: &str = "doyen_datagrams_sent_total";
    let metrics = trial.get(member, "/metrics").expect("it answers");
    let line = metrics.lines().find(|line| line.starts_with(NAME)).expect(NAME);
    line.rsplit(' ').next().and_then(|count| count.parse().ok()).expect(NAME)
}

/// What a process has used of the processor, in seconds.
fn processor_time(pid: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    // After the name, which is in brackets: the 12th and 13th field.
    let (_, fields) = text.rsplit_once(')').expect("a name");
    let ticks =
        fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS
}

/// The memory of a process, in bytes.
fn resident(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
    let kibibytes = line.trim().trim_end_matches("kB").trim().parse::<f64>().expect("a number");
    kibibytes * 1024.0
}
