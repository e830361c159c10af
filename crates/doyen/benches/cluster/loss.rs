//! Nothing is killed, but datagrams are lost: how often does the leader change, and for how long does no lease run?
//!
//! The cluster is in a network namespace, and a rule of the packet filter drops none, one in twenty or one in five of
//! all datagrams: that needs root, `ip` and `nft`, and is left out without them. Another version of the program, its
//! path in `DOYEN_BASELINE`, takes turns with this one, run by run, so that what the machine does meanwhile meets both.
//!
//! Changes, gaps and downtime come from the members' own traces ([`leases`]), which record every deadline by a clock
//! that all of them share, in this version and in earlier ones. A *change* is a lease in a new term, be it of the same
//! member; a *gap* is a lease that lapsed and came back in its term. Both leave downtime, and only for a change does
//! anything have to be started again.
//!
//! A machine that stops a process for longer than a lease ends that lease too. A bystander counts how often it had to
//! wait for more than ten milliseconds; beside that stands how many members logged that they woke too late, which each
//! says once a minute at most.

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::namespace::Namespace;
use super::support::leases::{self, Held};
use super::support::{Trial, program};
use super::{CALM, MEMBERS, argument, number, plan};

/// How long datagrams are lost, unless `seconds=` says otherwise.
const SECONDS: u64 = 60;

/// How often that is repeated beside a baseline, unless `runs=` says otherwise. Alone, once.
const RUNS: u64 = 5;

/// A program that is measured.
struct Contender {
    name: &'static str,
    program: PathBuf,
}

/// What came of one run.
struct Outcome {
    changes: usize,
    gaps: usize,
    downtime: Duration,
    stalls: usize,
    late: usize,
}

pub(super) fn measure() {
    let this = Contender { name: "this", program: program().into() };
    let baseline =
        std::env::var_os("DOYEN_BASELINE").filter(|path| !path.is_empty()).map(PathBuf::from);
    let baseline = baseline.map(|program| Contender { name: "baseline", program });
    let usual = if baseline.is_some() { RUNS } else { 1 };
    let contenders: Vec<Contender> = baseline.into_iter().chain([this]).collect();
    let time = Duration::from_secs(number("seconds").unwrap_or(SECONDS));
    let runs = number("runs").unwrap_or(usual).max(1);
    if Namespace::make().is_none() {
        return println!("\nDatagrams lost: left out, it needs root, `ip` and `nft`");
    }
    println!(
        "\nDatagrams lost for {} s, nothing killed; median (least to most) of {runs}",
        time.as_secs()
    );
    println!(
        "{:<26} {:>12} {:>12} {:>22} {:>14} {:>12}",
        "", "changes", "gaps", "downtime, ms", "stalls", "woke late"
    );
    let only = argument("profile");
    for profile in ["fast", "lan"] {
        if only.as_deref().is_some_and(|only| only != profile) {
            continue;
        }
        for percent in [0, 5, 20] {
            let mut outcomes: Vec<Vec<Outcome>> = contenders.iter().map(|_| Vec::new()).collect();
            for _ in 0..runs {
                for (contender, outcomes) in contenders.iter().zip(&mut outcomes) {
                    outcomes.push(run(&contender.program, profile, percent, time));
                }
            }
            for (contender, outcomes) in contenders.iter().zip(&outcomes) {
                row(&format!("{profile}, {percent} % lost, {}", contender.name), outcomes);
            }
        }
    }
}

fn run(program: &Path, profile: &'static str, percent: u32, time: Duration) -> Outcome {
    let space = Namespace::make().expect("a network namespace, as before");
    let places = (1..=MEMBERS).map(|member| {
        let address = |port: usize| format!("127.0.0.1:{}", port + member);
        (address(7400), address(7500), space.prefix())
    });
    let mut plan = plan(profile);
    plan.program = program.to_owned();
    let mut trial = Trial::found_at(&plan, places.collect());
    let folder = memory_folder(&trial);
    let trace_of = |member| folder.join(format!("trace-{member}"));
    // The best first, so that it leads: any other leader would transfer leadership to it while datagrams are lost.
    for member in trial.everybody().into_iter().rev() {
        trial.run_with(member, &["--trace", trace_of(member).to_str().expect("a plain path")]);
    }
    let best = MEMBERS as u64;
    trial.wait("the best leads", || {
        space.leader(program, trial.url(1)).filter(|leader| *leader == best)
    });
    sleep(CALM);
    space.lose(percent);
    let begun = leases::now();
    let stalls = stalls(time);
    let ended = leases::now();
    for member in trial.everybody() {
        trial.stop(member);
    }
    let traces = trial
        .everybody()
        .into_iter()
        .map(|member| leases::read(&std::fs::read_to_string(trace_of(member)).expect("a trace")));
    let held: Vec<Held> = traces.flatten().collect();
    std::fs::remove_dir_all(&folder).expect("a folder of this run");
    assert!(held.iter().any(|lease| lease.is_first), "the traces say who began to lead");
    assert_eq!(leases::overlaps(&held), [], "two leases at once");
    let begins: Vec<&Held> =
        held.iter().filter(|lease| (begun..ended).contains(&lease.from)).collect();
    let downtimes = leases::downtimes(&held, begun..ended);
    let nanos = downtimes.iter().map(|downtime| downtime.end - downtime.start).sum();
    let changes = begins.iter().filter(|lease| lease.is_first).count();
    let woke_late = |&member: &usize| trial.log(member).contains(" ms late");
    Outcome {
        changes,
        gaps: begins.len() - changes,
        downtime: Duration::from_nanos(nanos),
        stalls,
        late: trial.everybody().iter().filter(|&member| woke_late(member)).count(),
    }
}

/// A folder for traces. In memory, if there is one: to write them must not keep the members' disk busy.
fn memory_folder(trial: &Trial) -> PathBuf {
    let shared = Path::new("/dev/shm");
    let folder = match (shared.is_dir(), trial.folder.file_name()) {
        (true, Some(name)) => shared.join(name),
        _ => trial.folder.join("traces"),
    };
    std::fs::create_dir_all(&folder).expect("a folder for traces");
    folder
}

/// Waits for `time`, a millisecond at a time. Says how often the machine kept it waiting for more than ten.
fn stalls(time: Duration) -> usize {
    let begun = Instant::now();
    let mut stalls = 0;
    while begun.elapsed() < time {
        let asleep = Instant::now();
        sleep(Duration::from_millis(1));
        stalls += usize::from(asleep.elapsed() > Duration::from_millis(10));
    }
    stalls
}

fn row(what: &str, outcomes: &[Outcome]) {
    let spread = |digits: usize, get: fn(&Outcome) -> f64| {
        let mut values: Vec<f64> = outcomes.iter().map(get).collect();
        values.sort_by(f64::total_cmp);
        let (least, median, most) = (values[0], values[values.len() / 2], values[values.len() - 1]);
        format!("{median:.digits$} ({least:.digits$} to {most:.digits$})")
    };
    println!(
        "{what:<26} {:>12} {:>12} {:>22} {:>14} {:>12}",
        spread(0, |it| it.changes as f64),
        spread(0, |it| it.gaps as f64),
        spread(1, |it| it.downtime.as_secs_f64() * 1e3),
        spread(0, |it| it.stalls as f64),
        spread(0, |it| it.late as f64),
    );
}
