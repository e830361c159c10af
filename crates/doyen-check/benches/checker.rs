//! How fast the checker is and how much memory it takes, next to the checkers `stateright` and Spin in the same run.
//!
//! All explore Chang–Roberts with twelve members: all have started, ids fall clockwise, links keep the order, one step a
//! delivery, at most one leader. That is 742,912 states; an engine that counts another number is in error.
//!
//! As in the benchmark `simulator`, every measurement is a process of its own, so that its peak memory belongs to one
//! work; engines take turns round by round, and medians are compared. Timed is the exploration. For Spin that is the run
//! of the compiled model ([`PROMELA`], without partial-order reduction), neither its translation nor its compilation. It
//! is measured where `spin` and `gcc` are installed.
//!
//! `DOYEN_BENCH_ROUNDS` sets the rounds. The figures are for reading: a target that is missed is no error.

#[path = "../../doyen-sim/benches/sample.rs"]
mod sample;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use doyen_check::budget::Budget;
use doyen_check::property::Property;
use doyen_check::search::{Limits, Plan};
use doyen_check::{Rules, Timers};
use doyen_core::registry::Algorithm;
use doyen_sim::scenario::{Initiators, MemberList, RingOrder, Scenario};
use sample::{MEASURE, Sample, rounds_asked_for, take_turns, verdict};
use stateright::{Checker, Model};

const DEFAULT_ROUNDS: u32 = 5;
const MEMBERS: usize = 12;
/// Found by three engines.
const STATES: u64 = 742_912;

/// The same ring for Spin. A channel leads to each member; a message is a key, and above `N` an announcement.
const PROMELA: &str = include_str!("checker/ring.pml");

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Engine {
    Breadth,
    BreadthOnTwo,
    Reduced,
    StaterightBreadth,
    StaterightDepth,
    StaterightBreadthOnTwo,
    StaterightDepthOnTwo,
    Spin,
}

impl Engine {
    const ALL: [Self; 8] = [
        Self::Breadth,
        Self::BreadthOnTwo,
        Self::Reduced,
        Self::StaterightBreadth,
        Self::StaterightDepth,
        Self::StaterightBreadthOnTwo,
        Self::StaterightDepthOnTwo,
        Self::Spin,
    ];
    const STATERIGHT_ON_ONE: [Self; 2] = [Self::StaterightBreadth, Self::StaterightDepth];

    fn name(self) -> &'static str {
        match self {
            Self::Breadth => "doyen, breadth first",
            Self::BreadthOnTwo => "doyen, two threads",
            Self::Reduced => "doyen, reduced",
            Self::StaterightBreadth => "stateright, breadth",
            Self::StaterightDepth => "stateright, depth",
            Self::StaterightBreadthOnTwo => "stateright, breadth, 2",
            Self::StaterightDepthOnTwo => "stateright, depth, 2",
            Self::Spin => "spin",
        }
    }

    fn threads(self) -> usize {
        match self {
            Self::BreadthOnTwo | Self::StaterightBreadthOnTwo | Self::StaterightDepthOnTwo => 2,
            _ => 1,
        }
    }
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [MEASURE, engine] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        return measure(engine);
    }
    // Cargo says so if it is to be a benchmark; `cargo test --all-targets` only wants to know that it starts.
    if arguments.iter().any(|argument| argument == "--bench") {
        compare();
    }
}

/// The measuring process.
fn measure(engine: &str) {
    let engine = Engine::ALL.into_iter().find(|it| it.name() == engine);
    let engine = engine.expect("the engine is one of the list");
    let (states, time) = match engine {
        Engine::Breadth | Engine::BreadthOnTwo | Engine::Reduced => on_doyen(engine),
        _ => on_stateright(engine),
    };
    Sample::print(states, time);
}

fn on_doyen(engine: Engine) -> (u64, Duration) {
    let scenario = Scenario {
        algorithm: Some(Algorithm::ChangRoberts),
        members: Some(MemberList::Count(MEMBERS as u64)),
        ring: Some(RingOrder::Descending),
        initiators: Some(Initiators::All),
        fifo: Some(true),
        ..Scenario::default()
    };
    let case = scenario.resolve().expect("the scenario makes sense");
    let rules = Rules {
        budget: Budget::default(),
        timers: Timers::Free { expiries: 0 },
        fifo: true,
        properties: vec![Property::OneLeader],
        from: None,
        scope: None,
    };
    let plan = Plan {
        reduce: engine == Engine::Reduced,
        threads: engine.threads(),
        limits: Limits::default(),
    };
    let start = Instant::now();
    let report = doyen_check::check(&case, &rules, &plan, &|_| true);
    assert_eq!((report.limit, report.violation), (None, None));
    (report.progress.states, start.elapsed())
}

/// The ring as a user of `stateright` would write it, as small as can be.
struct Ring;

/// Where members stand is what the ring is sorted by: the one at place `p` has the key `MEMBERS - p`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct RingState {
    /// Whom each follows, and whether it takes part.
    members: [(Option<u8>, bool); MEMBERS],
    /// What is under way to each: keys, and whether they are announced.
    links: [Vec<(u8, bool)>; MEMBERS],
}

impl Model for Ring {
    type State = RingState;
    type Action = usize;

    fn init_states(&self) -> Vec<RingState> {
        let mut links: [Vec<(u8, bool)>; MEMBERS] = Default::default();
        for place in 0..MEMBERS {
            links[(place + 1) % MEMBERS].push((key(place), false));
        }
        vec![RingState { members: [(None, true); MEMBERS], links }]
    }

    fn actions(&self, state: &RingState, actions: &mut Vec<usize>) {
        actions.extend((0..MEMBERS).filter(|&place| !state.links[place].is_empty()));
    }

    fn next_state(&self, state: &RingState, place: usize) -> Option<RingState> {
        let mut next = state.clone();
        let (said, elected) = next.links[place].remove(0);
        let own = key(place);
        let (leader, participates) = &mut next.members[place];
        let reply = if elected {
            (said != own).then(|| {
                (*leader, *participates) = (Some(said), false);
                (said, true)
            })
        } else if said > own {
            *participates = true;
            Some((said, false))
        } else if said == own {
            (*leader, *participates) = (Some(own), false);
            Some((own, true))
        } else if *participates {
            None
        } else {
            *participates = true;
            Some((own, false))
        };
        next.links[(place + 1) % MEMBERS].extend(reply);
        Some(next)
    }

    fn properties(&self) -> Vec<stateright::Property<Self>> {
        vec![stateright::Property::always("one leader", |_, state: &RingState| {
            let leads = |&place: &usize| state.members[place] == (Some(key(place)), false);
            (0..MEMBERS).filter(leads).count() <= 1
        })]
    }
}

fn key(place: usize) -> u8 {
    (MEMBERS - place) as u8
}

fn on_stateright(engine: Engine) -> (u64, Duration) {
    let start = Instant::now();
    let checker = Ring.checker().threads(engine.threads());
    let states = match engine {
        Engine::StaterightBreadth | Engine::StaterightBreadthOnTwo => {
            checker.spawn_bfs().join().unique_state_count()
        }
        _ => checker.spawn_dfs().join().unique_state_count(),
    };
    (states as u64, start.elapsed())
}

/// The comparing process: measures everything and prints what came out.
fn compare() {
    let rounds = rounds_asked_for().unwrap_or(DEFAULT_ROUNDS);
    let spin = prepare_spin();
    let engines: Vec<Engine> =
        Engine::ALL.into_iter().filter(|&it| it != Engine::Spin || spin.is_some()).collect();
    let samples = take_turns(engines.len(), rounds, |turn| match (engines[turn], &spin) {
        (Engine::Spin, Some(program)) => run_spin(program),
        (engine, _) => sample(engine),
    });
    let figures: Vec<(Engine, Sample)> =
        engines.into_iter().zip(samples.iter().map(|samples| Sample::middle(samples))).collect();
    print_table(&figures);
    println!("\nrounds: {rounds}; medians\n");
    print_targets(&figures);
}

/// Measures doyen or stateright.
fn sample(engine: Engine) -> Sample {
    let sample = Sample::take(&[engine.name()]);
    let states = sample.count;
    assert!(engine == Engine::Reduced || states == STATES, "{}: {states}", engine.name());
    sample
}

/// Translates and compiles the model for Spin, where it is installed.
fn prepare_spin() -> Option<PathBuf> {
    let folder = env::temp_dir().join(format!("doyen-bench-{}", std::process::id()));
    fs::create_dir_all(&folder).ok()?;
    fs::write(folder.join("ring.pml"), PROMELA).ok()?;
    let ran = |program: &str, arguments: &[&str]| {
        let status = Command::new(program).args(arguments).current_dir(&folder).output();
        status.is_ok_and(|output| output.status.success())
    };
    let members = format!("-DN={MEMBERS}");
    let flags = ["-O2", "-DSAFETY", "-DNOREDUCE", "-DMEMLIM=4096", "-o", "pan", "pan.c"];
    if ran("spin", &["-a", &members, "ring.pml"]) && ran("gcc", &flags) {
        return Some(folder.join("pan"));
    }
    eprintln!("Spin is SKIPPED: `spin` or `gcc` is not installed, or does not take the model");
    None
}

/// Runs the compiled model; the verifier itself says what it took.
fn run_spin(program: &Path) -> Sample {
    let start = Instant::now();
    let output = Command::new(program).args(["-m1000000", "-w22"]).output();
    let time = start.elapsed();
    let text = String::from_utf8_lossy(&output.expect("the verifier runs").stdout).into_owned();
    let number = |before: &str| -> Option<f64> {
        let line = text.lines().find(|line| line.contains(before))?;
        line.split_whitespace().next()?.parse().ok()
    };
    // One more for it: the state in which no member has started.
    let states = number("states, stored").unwrap_or(0.0) as u64;
    assert_eq!(states, STATES + 1, "spin: {text}");
    let peak = number("total actual memory usage").map(|megabytes| (megabytes * 1e6) as u64);
    Sample { count: states, time, peak }
}

fn print_table(figures: &[(Engine, Sample)]) {
    println!(
        "{:24} {:>9} {:>9} {:>10} {:>8}",
        "engine", "states", "seconds", "states/s", "peak MB"
    );
    for (engine, sample) in figures {
        println!(
            "{:24} {:>9} {:>9.3} {:>10.0} {:>8}",
            engine.name(),
            sample.count,
            sample.seconds(),
            sample.rate(),
            sample.peak_column()
        );
    }
}

fn print_targets(figures: &[(Engine, Sample)]) {
    let of = |engine: Engine| {
        let found = figures.iter().find(|(it, _)| *it == engine);
        &found.expect("every engine but Spin is measured").1
    };
    let one = of(Engine::Breadth).rate();
    let theirs = Engine::STATERIGHT_ON_ONE.map(|engine| of(engine).rate());
    let speed = one / theirs[0].max(theirs[1]);
    println!("one thread: {speed:.2} times as fast as stateright's best");
    println!("   at least 2.5 times: {}", verdict(speed >= 2.5));
    println!("   goal, 4 times: {}", verdict(speed >= 4.0));
    let gain = of(Engine::BreadthOnTwo).rate() / of(Engine::Breadth).rate();
    println!("two threads: {gain:.2} times as fast as one");
    println!("   at least 1.5 times: {}", verdict(gain >= 1.5));
    println!("   goal, 1.7 times: {}", verdict(gain >= 1.7));
    for engine in [Engine::Breadth, Engine::BreadthOnTwo] {
        if let Some(peak) = of(engine).megabytes() {
            println!("{}: {peak:.1} MB", engine.name());
            println!("   at most 32 MB: {}", verdict(peak <= 32.0));
        }
    }
    let reduced = of(Engine::Reduced).count;
    println!("with reduction: {reduced} states");
    println!("   at most n²: {}", verdict(reduced <= (MEMBERS * MEMBERS) as u64));
}
