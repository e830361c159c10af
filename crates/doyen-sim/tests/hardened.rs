//! Goal: hardened mode, with the failure detector beneath it, ends with everybody following the best live member,
//! whatever happened before. Method: crashes, pauses and one-way cuts at random, then calm. And without a detector it
//! survives at least a restart.

use doyen_core::registry::Algorithm;
use doyen_sim::account::Ended;
use doyen_sim::run;
use doyen_sim::scenario::{ChaosEntry, FaultEntry, Initiators, MemberList, Scenario, Share};

const SEEDS: u64 = 100;

fn chaos(algorithm: Algorithm, seed: u64) -> Scenario {
    let members = 2 + (seed % 5);
    Scenario {
        algorithm: algorithm.to_string(),
        mode: Some("hardened".to_owned()),
        members: Some(MemberList::Count(members)),
        leader: Some(members as u32),
        seed: Some(seed),
        delay: Some("uniform:0.2ms..1ms".to_owned()),
        detector: Some("5ms".to_owned()),
        chaos: Some(ChaosEntry {
            crash_every: Some("30ms".to_owned()),
            down_for: Some("40ms".to_owned()),
            pause_every: Some("50ms".to_owned()),
            pause_for: Some("15ms".to_owned()),
            cut_every: Some("40ms".to_owned()),
            cut_for: Some("30ms".to_owned()),
            until: Some("400ms".to_owned()),
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
    for algorithm in Algorithm::SEEDS {
        for seed in 1..=SEEDS {
            settles(&chaos(algorithm, seed)).unwrap();
        }
    }
}

/// The reliable link makes up for what the network loses.
#[test]
fn after_chaos_with_loss_everybody_follows_the_best_member() {
    for algorithm in Algorithm::SEEDS {
        for seed in 1..=SEEDS {
            let lossy = Scenario {
                loss: Some(Share::Fraction(0.1)),
                reliable: true,
                ..chaos(algorithm, seed)
            };
            settles(&lossy).unwrap();
        }
    }
}

/// Nobody has told the others, so they go on talking to what it was before.
#[test]
fn a_restarted_member_finds_its_leader_without_a_detector() {
    let fault = |at: &str| FaultEntry { at: Some(at.to_owned()), ..FaultEntry::default() };
    for algorithm in Algorithm::SEEDS {
        for member in [1, 2] {
            for reliable in [false, true] {
                let restart = Scenario {
                    algorithm: algorithm.to_string(),
                    mode: Some("hardened".to_owned()),
                    members: Some(MemberList::Count(4)),
                    initiators: Some(Initiators::Named("all".to_owned())),
                    reliable,
                    until: Some("30s".to_owned()),
                    fault: vec![
                        FaultEntry { crash: Some(member), ..fault("50ms") },
                        FaultEntry { restart: Some(member), ..fault("60ms") },
                    ],
                    ..Scenario::default()
                };
                settles(&restart).unwrap();
            }
        }
    }
}
