//! Datagrams of an attacker on the network: floods, forgeries, recordings of earlier times. The attacker has no key; what
//! the tests seal stands for what was recorded.

use std::fs;
use std::net::UdpSocket;
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::support::rounds::{Tally, rounds};
use crate::support::{Plan, Trial, skip};
use doyen::config::{Configuration, Env, Settings};
use doyen::key::Keyring;
use doyen::node::status::Status;
use doyen::node::wire::{Content, Envelope, LIMIT, Sealer, VERSION};
use doyen_core::members::{Incarnation, NodeId, SessionId};
use doyen_core::session::{Challenge, Greeting};

/// How many hostile datagrams a round sends: 50 rounds, as `make chaos` has them, are ten million.
const IN_A_ROUND: usize = 200_000;

/// By how much the memory of a node may grow, in KiB: an allocator keeps more or less. Twenty bytes for each datagram would
/// be as much in one round.
const MOST_GROWTH: u64 = 4_096;

/// How many replayed greetings a second are sent to the member that restarts, and as many to the others: 20,000 where the
/// program is optimised, as in `make chaos`; without that, a fifth takes as much of a processor.
const REPLAYED: u64 = if cfg!(debug_assertions) { 4_000 } else { 20_000 };

/// The share of this rate that the sender must reach during a restart: a restart under less shows less.
const LEAST_SHARE: f64 = if cfg!(debug_assertions) { 0.5 } else { 0.9 };

/// How long a restart may take while they are sent, on a machine that does nothing else.
const LONGEST_RESTART: Duration = Duration::from_secs(1);

/// How often a restart is repeated that took longer, or under less, because the machine may have been busy with other tests.
/// What keeps a member out does so each time.
const RESTARTS: usize = 5;

/// What was recorded on the network of a cluster.
struct Recorder {
    settings: Settings,
    sealer: Sealer,
}

impl Recorder {
    fn of(trial: &Trial) -> Self {
        let file = trial.folder_of(1).join("doyen.toml");
        let env = Env { variables: Default::default(), ..Env::of_process() };
        let settings = Configuration::load(Some(&file), &[], &env).expect("it is sound").settings;
        let keys = Keyring::of(settings.key_file.as_ref()).expect("the keys of the cluster");
        let sealer = Sealer::new(&keys, &settings.cluster);
        Self { settings, sealer }
    }

    /// The first greeting of an earlier process of `from`, whose configuration had this number.
    fn greeting(&self, from: usize, to: usize, configuration: u32) -> Vec<u8> {
        let [from, to] = [from, to].map(|member| NodeId(member as u32));
        let session = SessionId::from_random(u64::from(from.0) + 1);
        let (known, counter, group) = (None, 1, 0);
        let envelope = Envelope { from, to, session, known, counter, configuration, group };
        let greeting = Greeting {
            ask: Some(Challenge(NonZeroU64::MIN)),
            answer: None,
            incarnation: Incarnation(1),
            seen: Incarnation(0),
            wants_roster: false,
        };
        let mut sealed = Vec::new();
        let content = Content::Greeting(greeting);
        self.sealer.seal(VERSION, &envelope, &content, &mut sealed).expect("it can be sealed");
        sealed
    }
}

/// Sends the same datagrams again and again, until it is dropped.
struct Flood {
    ends: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Flood {
    /// `datagrams`: each with its destination; `rate`: of all of them together, in a second.
    fn start(datagrams: Vec<(Vec<u8>, String)>, rate: u64) -> Self {
        let (ends, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (is_over, count) = (Arc::clone(&ends), Arc::clone(&sent));
        let thread = thread::spawn(move || {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
            let begun = Instant::now();
            let mut next = datagrams.iter().cycle();
            while !is_over.load(Ordering::Relaxed) {
                let due = begun.elapsed().as_micros() as u64 * rate / 1_000_000;
                while count.load(Ordering::Relaxed) < due {
                    let (datagram, to) = next.next().expect("there are some");
                    // A full buffer only means that the flood is fast enough.
                    let _ = socket.send_to(datagram, to);
                    count.fetch_add(1, Ordering::Relaxed);
                }
                thread::sleep(Duration::from_millis(1));
            }
        });
        Self { ends, sent, thread: Some(thread) }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// How long n3 takes to be ready after it was killed.
fn restart(trial: &mut Trial) -> Duration {
    trial.kill(3);
    let begun = Instant::now();
    trial.run(3);
    trial.wait("n3 is ready", || trial.get(3, "/readyz"));
    begun.elapsed()
}

#[test]
fn replayed_greetings_do_not_delay_a_restart() {
    let mut trial = Trial::start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    // What is replayed are the greetings of the process before.
    restart(&mut trial);
    trial.agree(&[1, 2, 3]);
    let recorder = Recorder::of(&trial);
    let configuration = recorder.settings.configuration_id();
    let directions = [[(3, 1), (3, 2)], [(1, 3), (2, 3)]].map(|ways| {
        ways.map(|(from, to)| {
            (recorder.greeting(from, to, configuration), trial.address(to).to_owned())
        })
    });
    let mut tally = Tally::new("a restart under replayed greetings each way");
    let mut reached = Vec::new();
    for _ in 0..rounds() {
        let mut seen = Vec::new();
        while seen.len() < RESTARTS && !seen.iter().any(Restart::is_fast_under_all) {
            let quiet = restart(&mut trial);
            trial.agree(&[1, 2, 3]);
            let floods =
                directions.each_ref().map(|recorded| Flood::start(recorded.to_vec(), REPLAYED));
            [1, 2].iter().for_each(|&member| wait_until_flooded(&trial, member));
            let sent = || floods.each_ref().map(|flood| flood.sent.load(Ordering::Relaxed));
            let (begun, before) = (Instant::now(), sent());
            let mut took = Duration::ZERO;
            tally.round(|| took = restart(&mut trial));
            let rates = [0, 1]
                .map(|way| (sent()[way] - before[way]) as f64 / begun.elapsed().as_secs_f64());
            [1, 2, 3].iter().for_each(|&member| wait_until_flooded(&trial, member));
            let restart = Restart { took, quiet, rates };
            println!("{restart:.0?}");
            seen.push(restart);
        }
        assert!(seen.iter().any(Restart::is_fast), "each restart takes too long: {seen:.0?}");
        if !seen.iter().any(Restart::is_fast_under_all) {
            reached.extend(seen);
        }
        trial.agree(&[1, 2, 3]);
    }
    if !reached.is_empty() {
        skip(&format!(
            "a restart under {REPLAYED} replayed greetings a second each way: this machine was too busy, and sent as many as \
             the restarts say, all of which were judged: {reached:.0?}"
        ));
    }
}

/// A restart under replayed greetings.
#[derive(Debug)]
struct Restart {
    took: Duration,
    /// How long one without them took, just before.
    quiet: Duration,
    /// How many were sent in a second, to the member that restarts and to the others.
    rates: [f64; 2],
}

impl Restart {
    /// On a busy machine one without replayed greetings takes longer too. A program that is not optimised needs much of a
    /// processor for the greetings alone.
    fn is_fast(&self) -> bool {
        let longest = match cfg!(debug_assertions) {
            true => LONGEST_RESTART + 4 * self.quiet,
            false => LONGEST_RESTART.max(4 * self.quiet),
        };
        self.took < longest
    }

    fn is_fast_under_all(&self) -> bool {
        self.is_fast() && self.rates.iter().all(|rate| *rate >= LEAST_SHARE * REPLAYED as f64)
    }
}

/// Waits until greetings come far faster to a member than it answers them, from now on.
fn wait_until_flooded(trial: &Trial, member: usize) {
    let (name, label) = ("doyen_datagrams_rejected_total", "reason=\"limited\"");
    trial.wait_for_rise(member, name, label, REPLAYED / 20);
}

#[test]
fn a_recording_of_an_earlier_member_list_makes_no_member_look_misconfigured() {
    let trial = Trial::start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    let recorder = Recorder::of(&trial);
    let earlier = recorder.settings.configuration_id() ^ 1;
    let recorded =
        [2, 3].map(|from| (recorder.greeting(from, 1, earlier), trial.address(1).to_owned()));
    let flood = Flood::start(recorded.to_vec(), 1_000);
    trial.wait_for_rise(1, "doyen_datagrams_rejected_total", "reason=\"configuration\"", 1_000);
    let status = trial.wait_for_status(1);
    drop(flood);
    assert!(status.members.iter().all(|member| !member.config_mismatch), "{status:?}");
    let log = trial.log(1);
    assert!(!log.contains("ignoring n"), "{log}");
}

/// The kernel drops 15 of 16, so that a flood of them costs a node little.
#[test]
fn most_foreign_datagrams_do_not_reach_the_program() {
    let trial = Trial::start(&Plan { members: 1, ..Plan::default() });
    trial.follow(1, &[1]);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let send = |datagram: &[u8]| {
        socket.send_to(datagram, trial.address(1)).expect("it is sent");
    };
    let count = |reason| {
        let label = format!("reason=\"{reason}\"");
        trial.metric(1, "doyen_datagrams_rejected_total", &label)
    };
    for _ in 0..16 {
        // No more at once than find room in any buffer.
        (0..100).for_each(|_| send(&[7; 200]));
        thread::sleep(Duration::from_millis(100));
    }
    // It arrives after all others, whatever becomes of them.
    let recorded = Recorder::of(&trial).greeting(1, 1, 0);
    trial.wait("the last datagram to be rejected", || {
        send(&[&recorded[..15], &[0; 200]].concat());
        count("forged").filter(|&forged| forged > 0)
    });
    let foreign = count("foreign").expect("a metric");
    assert!((1..400).contains(&foreign), "{foreign} of 1,600");
}

/// What an attacker without the key can send; `number` makes each a different one.
fn hostile(recorded: &[u8], number: usize, out: &mut Vec<u8>) {
    out.clear();
    let filled = |out: &mut Vec<u8>, length| out.resize(length, number as u8);
    match number % 8 {
        // Nothing of ours, which the kernel drops.
        0 => filled(out, 64),
        1 => filled(out, 200),
        2 => filled(out, LIMIT + 100),
        // It begins as ours: what follows has to be authenticated, and is not.
        3 | 4 => {
            out.extend_from_slice(&recorded[..15]);
            filled(out, if number % 80 == 3 { LIMIT } else { 200 });
        }
        // A bit is flipped.
        5 | 6 => {
            out.extend_from_slice(recorded);
            let bit = number / 8 % (recorded.len() * 8);
            out[bit / 8] ^= 1 << (bit % 8);
        }
        _ => out.extend_from_slice(recorded),
    }
}

/// In KiB.
fn memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).expect("a size")
}

/// A sender at full speed on the same machine. Where the program is not optimised, that fills receive buffers for longer than
/// a lease of `lan` lasts, and machines that run all tests are busy: there with `wan`. Such a node may even lose so many
/// acknowledgements that its lease has a gap: it leads on in its term.
#[test]
fn hostile_datagrams_change_no_leader_and_cost_no_memory() {
    let profile = if cfg!(debug_assertions) { "wan" } else { "lan" };
    let trial = Trial::start(&Plan { profile, ..Plan::default() });
    trial.follow(3, &[1, 2, 3]);
    let term = trial.wait_for_status(3).term;
    let recorder = Recorder::of(&trial);
    let configuration = recorder.settings.configuration_id();
    // The leader, and a follower.
    let targets =
        [(1, 3), (3, 1)].map(|(from, to)| (to, recorder.greeting(from, to, configuration)));
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let send = |numbers: Range<usize>| {
        let mut datagram = Vec::new();
        for number in numbers {
            let (to, recorded) = &targets[number / 8 % 2];
            hostile(recorded, number, &mut datagram);
            let _ = socket.send_to(&datagram, trial.address(*to));
        }
    };
    // These bring all code and all buffers into memory.
    send(0..IN_A_ROUND / 4);
    trial.wait("the leader answers", || trial.status(3));
    let before = targets.each_ref().map(|(member, _)| memory(trial.pid(*member)));
    let mut tally = Tally::new("200,000 hostile datagrams to the leader and a follower");
    for round in 0..rounds() {
        tally.round(|| send(round * IN_A_ROUND..(round + 1) * IN_A_ROUND));
        let leads = |status: &Status| status.leader.is_some();
        let status = trial.wait("there is a leader", || trial.status(3).filter(leads));
        assert_eq!((status.leader, status.term), (Some(NodeId(3)), term), "round {round}");
        let now = targets.each_ref().map(|(member, _)| memory(trial.pid(*member)));
        println!("{before:?} KiB, then {now:?} KiB");
        let has_grown = before.iter().zip(now).any(|(&before, now)| now >= before + MOST_GROWTH);
        assert!(!has_grown, "round {round}: {before:?} KiB, then {now:?} KiB");
    }
    for (member, _) in &targets {
        let rejected = ["foreign", "size", "forged", "limited"].map(|reason| {
            let label = format!("reason=\"{reason}\"");
            trial.metric(*member, "doyen_datagrams_rejected_total", &label).expect("a metric")
        });
        println!("n{member}: foreign, size, forged, limited: {rejected:?}");
        assert!(rejected.iter().all(|&count| count > 0), "n{member}: {rejected:?}");
    }
}
