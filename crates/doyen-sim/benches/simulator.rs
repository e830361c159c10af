//! How fast the simulator is and how much memory it takes, next to the simulator `simcore` in the same run.
//!
//! Every measurement is a process of its own, this program started again, so that its peak memory belongs to one work.
//! Engines take turns round by round, and medians are compared: a machine that is busy for a while slows down both.
//! Timed is the run and setting it up ([`run::run`]), not the start of the process nor the making of its input.
//!
//! `simcore` has two forms, see [`simcore_ring`]: one component per member, as most of its users would write it, and one
//! component for the whole ring, which is tuned for this work. The targets are ratios to the faster one; the ratio to the
//! form that most users would write is a note beside them.
//!
//! The works are at [`WORKS`]. `DOYEN_BENCH_ROUNDS` sets how often A and B are measured. The figures are for reading:
//! a target that is missed is no error. A count of messages that is wrong is one.

mod sample;
mod simcore_ring;

use std::env;
use std::time::{Duration, Instant};

use doyen_core::members::NodeId;
use doyen_core::registry::Algorithm;
use doyen_sim::metrics::Ended;
use doyen_sim::network::DelayModel;
use doyen_sim::random::splitmix;
use doyen_sim::run;
use doyen_sim::scenario::{Case, Initiators, MemberList, RingOrder, Scenario};
use sample::{MEASURE, Sample, rounds_asked_for, take_turns, verdict};

/// Rounds of the works that are measured on doyen alone.
const ROUNDS_ALONE: u32 = 5;

/// Something to simulate.
struct Work {
    name: &'static str,
    about: &'static str,
    group: Group,
    members: u32,
    /// How often it is run in one process, if it is too short to be timed; the mean counts.
    repeats: u32,
    rounds: u32,
    /// The messages, where there is a closed form.
    messages: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    /// Chang–Roberts, all start, links take 1–2 ms and keep the order; ids fall clockwise: n(n+1)/2 + n messages.
    FallingRing,
    /// The same with shuffled ids: about n·Hₙ + n messages.
    ShuffledRing,
    /// The lowest member notices: n² − 1 messages.
    Bully,
    /// The lowest member notices.
    ModifiedBully,
}

const A: Work = Work {
    name: "A",
    about: "ring, ids falling",
    group: Group::FallingRing,
    members: 1000,
    repeats: 1,
    rounds: 20,
    messages: Some(501_500),
};
const B: Work = Work {
    name: "B",
    about: "ring, ids shuffled",
    group: Group::ShuffledRing,
    members: 1_000_000,
    rounds: 5,
    messages: None,
    ..A
};
const BULLY: Work = Work {
    name: "C1",
    about: "bully",
    group: Group::Bully,
    members: 1000,
    rounds: ROUNDS_ALONE,
    messages: Some(999_999),
    ..A
};
const MODIFIED_BULLY: Work = Work {
    name: "C2",
    about: "modified bully",
    group: Group::ModifiedBully,
    members: 1_000_000,
    messages: None,
    ..BULLY
};
const RING_1E3: Work = Work { name: "C3", members: 1000, repeats: 1000, rounds: ROUNDS_ALONE, ..B };
const RING_1E4: Work = Work { name: "C4", members: 10_000, repeats: 100, ..RING_1E3 };
const RING_1E5: Work = Work { name: "C5", members: 100_000, repeats: 10, ..RING_1E3 };

/// All works: A and B on both engines, the others on doyen alone.
const WORKS: [&Work; 7] = [&A, &B, &BULLY, &MODIFIED_BULLY, &RING_1E3, &RING_1E4, &RING_1E5];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Engine {
    Doyen,
    /// `simcore` with one component per member.
    SimcoreByMember,
    /// `simcore` with one component for the whole ring.
    SimcoreWholeRing,
}

impl Engine {
    const ALL: [Self; 3] = [Self::Doyen, Self::SimcoreByMember, Self::SimcoreWholeRing];

    fn name(self) -> &'static str {
        match self {
            Self::Doyen => "doyen",
            Self::SimcoreByMember => "simcore",
            Self::SimcoreWholeRing => "simcore (1 part)",
        }
    }
}

/// What the measurements of a work on an engine come to: the median time, the highest peak.
struct Figure {
    work: &'static Work,
    engine: Engine,
    sample: Sample,
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [MEASURE, work, engine] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        return measure(work, engine);
    }
    // Cargo says so if it is to be a benchmark; `cargo test --all-targets` only wants to know that it starts.
    if arguments.iter().any(|argument| argument == "--bench") {
        compare();
    }
}

/// The measuring process: one work on one engine.
fn measure(work: &str, engine: &str) {
    let work = WORKS.into_iter().find(|it| it.name == work).expect("the work is one of the list");
    let engine = Engine::ALL.into_iter().find(|it| it.name() == engine);
    let (messages, time) = match engine.expect("the engine is one of the list") {
        Engine::Doyen => on_doyen(work),
        Engine::SimcoreByMember => on_simcore(work, simcore_ring::by_member),
        Engine::SimcoreWholeRing => on_simcore(work, simcore_ring::whole_ring),
    };
    Sample::print(messages, time);
}

fn on_doyen(work: &Work) -> (u64, Duration) {
    let case = case(work);
    let mut messages = 0;
    let start = Instant::now();
    for _ in 0..work.repeats {
        let outcome = run::run(&case, None);
        assert_eq!(outcome.ended, Ended::Quiet);
        assert_eq!(outcome.leader, Some(case.members().highest()));
        messages = outcome.messages.total;
    }
    (messages, start.elapsed() / work.repeats)
}

fn on_simcore(work: &Work, run: fn(&[u32]) -> simcore_ring::Outcome) -> (u64, Duration) {
    let outcome = run(&ids(work));
    assert_eq!(outcome.leader, Some(work.members));
    (outcome.messages, outcome.time)
}

fn case(work: &Work) -> Case {
    let algorithm = match work.group {
        Group::FallingRing | Group::ShuffledRing => Algorithm::ChangRoberts,
        Group::Bully => Algorithm::Bully,
        Group::ModifiedBully => Algorithm::ModifiedBully,
    };
    let mut scenario = Scenario {
        algorithm: Some(algorithm),
        members: Some(MemberList::Count(u64::from(work.members))),
        ..Scenario::default()
    };
    if matches!(work.group, Group::FallingRing | Group::ShuffledRing) {
        scenario.initiators = Some(Initiators::All);
        scenario.delay = Some(DelayModel::Uniform { min: 1_000_000, max: 2_000_000 });
        scenario.fifo = Some(true);
    }
    if work.group == Group::FallingRing {
        scenario.ring = Some(RingOrder::Descending);
    }
    let mut case = scenario.resolve().expect("the scenario makes sense");
    if work.group == Group::ShuffledRing {
        // A million attributes are no text for a scenario.
        let attrs = (1..).map(NodeId).zip(ids(work).into_iter().map(i64::from));
        let members = case.members().clone().with_attrs(attrs);
        case.config.members = members.expect("every attribute is a member's");
    }
    case
}

/// What the members of a ring are elected by, clockwise.
fn ids(work: &Work) -> Vec<u32> {
    let mut ids: Vec<u32> = (1..=work.members).collect();
    if work.group == Group::FallingRing {
        ids.reverse();
        return ids;
    }
    // Fisher and Yates, from the splitmix64 stream of seed 42, which any other simulator has as well.
    let mut state: u64 = 42;
    for last in (1..ids.len()).rev() {
        let bits = splitmix(state);
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let other = (u128::from(bits) * (last as u128 + 1)) >> 64;
        ids.swap(last, other as usize);
    }
    ids
}

/// The comparing process: measures everything and prints what came out.
fn compare() {
    let rounds = rounds_asked_for();
    let mut figures = Vec::new();
    for work in [&A, &B] {
        figures.extend(measure_all(work, &Engine::ALL, rounds.unwrap_or(work.rounds)));
    }
    for work in WORKS.into_iter().skip(2) {
        figures.extend(measure_all(work, &[Engine::Doyen], work.rounds));
    }
    print_table(&figures);
    println!();
    let rounds = |work: &Work| rounds.unwrap_or(work.rounds);
    println!("rounds: A {}, B {}, others {ROUNDS_ALONE}; medians", rounds(&A), rounds(&B));
    println!();
    print_targets(&figures);
}

/// Measures a work on these engines in turn.
fn measure_all(work: &'static Work, engines: &[Engine], rounds: u32) -> Vec<Figure> {
    eprintln!("{} ({})", work.name, work.about);
    let take = |engine: usize| Sample::take(&[work.name, engines[engine].name()]);
    let samples = take_turns(engines.len(), rounds, take);
    let messages = work.messages.unwrap_or(samples[0][0].count);
    for sample in samples.iter().flatten() {
        assert_eq!(sample.count, messages, "work {}", work.name);
    }
    let figure = |(&engine, samples): (&Engine, &Vec<Sample>)| Figure {
        work,
        engine,
        sample: Sample::middle(samples),
    };
    engines.iter().zip(&samples).map(figure).collect()
}

fn nanos_per_message(sample: &Sample) -> f64 {
    sample.time.as_nanos() as f64 / sample.count as f64
}

fn print_table(figures: &[Figure]) {
    println!(
        "{:4} {:19} {:>9} {:16} {:>12} {:>10} {:>12} {:>11} {:>8}",
        "work",
        "",
        "members",
        "engine",
        "messages",
        "median ms",
        "messages/s",
        "ns/message",
        "peak MB"
    );
    for figure in figures {
        let Figure { work, engine, sample } = figure;
        println!(
            "{:4} {:19} {:>9} {:16} {:>12} {:>10.2} {:>12.0} {:>11.1} {:>8}",
            work.name,
            work.about,
            work.members,
            engine.name(),
            sample.count,
            sample.seconds() * 1e3,
            sample.rate(),
            nanos_per_message(sample),
            sample.peak_column(),
        );
    }
}

fn print_targets(figures: &[Figure]) {
    let on = |work: &Work, engine: Engine| -> &Sample {
        let is_it = |figure: &&Figure| figure.work.name == work.name && figure.engine == engine;
        let figure = figures.iter().find(is_it);
        &figure.expect("every work is measured on the engines compared").sample
    };
    let doyen = |work: &Work| on(work, Engine::Doyen);
    let faster_than = |work: &Work, engine| on(work, engine).seconds() / doyen(work).seconds();
    // Notes how it compares with simcore as most would write it; returns the ratio to the faster form.
    let compared = |work: &Work| {
        let by_member = faster_than(work, Engine::SimcoreByMember);
        println!(
            "{}: {by_member:.2} times as fast as simcore with one component per member",
            work.name
        );
        by_member.min(faster_than(work, Engine::SimcoreWholeRing))
    };

    let speed = compared(&A);
    println!("A: {speed:.2} times as fast as simcore in its faster form");
    println!("   at least 2 times: {}", verdict(speed >= 2.0));
    println!("   goal, 3 times: {}", verdict(speed >= 3.0));

    let speed = compared(&B);
    match doyen(&B).megabytes() {
        Some(peak) => {
            println!(
                "B: {speed:.2} times as fast as simcore in its faster form, within {peak:.1} MB"
            );
            let least = verdict(speed >= 2.0 && peak <= 150.0);
            println!("   at least 2 times within 150 MB: {least}");
            println!("   goal, 3 times within 100 MB: {}", verdict(speed >= 3.0 && peak <= 100.0));
        }
        None => {
            println!("B: {speed:.2} times as fast as simcore in its faster form; no peak is known");
            println!("   at least 2 times: {}", verdict(speed >= 2.0));
            println!("   goal, 3 times: {}", verdict(speed >= 3.0));
        }
    }

    for (work, limit) in [(&BULLY, 0.3), (&MODIFIED_BULLY, 5.0)] {
        let (name, about, members) = (work.name, work.about, work.members);
        let seconds = doyen(work).seconds();
        println!("{name}: {about} with {members} members in {seconds:.3} s");
        println!("   at most {limit} s: {}", verdict(seconds <= limit));
    }

    println!(
        "A message in a ring with shuffled ids (C3 to C5 warm, the mean of many runs; then B)"
    );
    for work in [&RING_1E3, &RING_1E4, &RING_1E5, &B] {
        println!("   {:>7} members: {:6.1} ns", work.members, nanos_per_message(doyen(work)));
    }
}
