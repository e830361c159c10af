//! Goal: hardened mode, with the failure detector beneath it, ends with everybody following the best live member,
//! whatever happened before. Method: crashes, pauses and one-way cuts at random, then calm. And without a detector it
//! survives at least a restart.

use doyen_core::config::Mode;
use doyen_core::members::NodeId;
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;
use doyen_sim::fault::{Action, Chaos, Disk, Fault, Place};
use doyen_sim::metrics::Ended;
use doyen_sim::run;
use doyen_sim::scenario::{Initiators, MemberList, Scenario};
use doyen_sim::text::Share;
use doyen_sim::time::Time;

const SEEDS: u64 = 100;

fn chaos(algorithm: Algorithm, seed: u64) -> Scenario {
    let members = 2 + (seed % 5);
    Scenario {
        algorithm: Some(algorithm),
        mode: Some(Mode::Hardened),
        members: Some(MemberList::Count(members)),
        leader: Some(members as u32),
        seed: Some(seed),
        delay: "uniform:0.2ms..1ms".parse().ok(),
        detector: Some(Span::from_millis(5)),
        chaos: Some(Chaos {
            crash_every: Some(Span::from_millis(30)),
            down_for: Some(Span::from_millis(40)),
            pause_every: Some(Span::from_millis(50)),
            pause_for: Some(Span::from_millis(15)),
            cut_every: Some(Span::from_millis(40)),
            cut_for: Some(Span::from_millis(30)),
            until: Some(Span::from_millis(400)),
        }),
        ..Scenario::default()
    }
}

fn settles(scenario: &Scenario) -> Result<(), String> {
    let case = scenario.resolve().map_err(|error| error.to_string())?;
    let outcome = run::run(&case, None);
    let best = case.members().highest();
    if outcome.ended == Ended::Quiet && outcome.agreed && outcome.leader == Some(best) {
        return Ok(());
    }
    Err(format!(
        "{} with seed {}: ended {:?} at {}, leader {:?}, agreed {}: {:?}",
        case.algorithm,
        case.seed,
        outcome.ended,
        outcome.end,
        outcome.leader,
        outcome.agreed,
        outcome.views
    ))
}

/// Everybody restarts in the end, so the best live member is the best member.
#[test]
fn after_chaos_everybody_follows_the_best_member() {
    for algorithm in Algorithm::OF_SOURCES {
        for seed in 1..=SEEDS {
            settles(&chaos(algorithm, seed)).unwrap();
        }
    }
}

/// The reliable link makes up for what the network loses.
#[test]
fn after_chaos_with_loss_everybody_follows_the_best_member() {
    for algorithm in Algorithm::OF_SOURCES {
        for seed in 1..=SEEDS {
            let lossy =
                Scenario { loss: Share::new(0.1).ok(), reliable: true, ..chaos(algorithm, seed) };
            settles(&lossy).unwrap();
        }
    }
}

/// Nobody has told the others, so they go on talking to what it was before.
#[test]
fn a_restarted_member_finds_its_leader_without_a_detector() {
    let at = |millis| Time::ZERO + Span::from_millis(millis);
    for algorithm in Algorithm::OF_SOURCES {
        for member in [1, 2].map(NodeId) {
            for reliable in [false, true] {
                let restart = Scenario {
                    algorithm: Some(algorithm),
                    mode: Some(Mode::Hardened),
                    members: Some(MemberList::Count(4)),
                    initiators: Some(Initiators::All),
                    reliable,
                    until: Some(Span::from_millis(30_000)),
                    fault: vec![
                        Fault::at(at(50), Action::crash(member)),
                        Fault::at(
                            at(60),
                            Action::Restart {
                                member,
                                disk: Disk::Kept,
                                pace: None,
                                place: Place::Same,
                            },
                        ),
                    ],
                    ..Scenario::default()
                };
                settles(&restart).unwrap();
            }
        }
    }
}
