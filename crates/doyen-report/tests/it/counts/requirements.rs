//! cs425's requirements, for every algorithm in both modes, in any group.
//!
//! "Safety: every process' elected is the non-failed process with the best attribute value, or nobody. Liveness: the
//! election terminates, and no non-faulty process' elected is nobody." Nobody fails during these runs; some are dead
//! from the beginning.

use doyen_core::protocol::Role;
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;
use doyen_sim::metrics::Ended;
use doyen_sim::network::DelayModel;
use doyen_sim::scenario::{Initiator, Initiators, Scenario};
use doyen_sim::trace::EventKind;
use proptest::prelude::*;
use proptest::sample::select;

use super::groups::{Group, group, run, start, text, watch};

/// An algorithm, whether it is hardened, and whether the dead are contacted because nobody knows that they are dead. A
/// textbook ring of os-textbook's kind does not get past one that it does not know to be dead.
fn reading() -> impl Strategy<Value = (Algorithm, bool, bool)> {
    (select(Algorithm::OF_SOURCES.to_vec()), any::<bool>(), any::<bool>()).prop_map(
        |(algorithm, hardened, contacts)| {
            let passes_over = !matches!(
                algorithm,
                Algorithm::ChangRoberts | Algorithm::RingActiveList | Algorithm::RingAllIds
            );
            (algorithm, hardened, contacts && (hardened || passes_over))
        },
    )
}

fn scenario(
    group: &Group,
    (algorithm, hardened, contact_dead): (Algorithm, bool, bool),
) -> Scenario {
    let mode = text(if hardened { "hardened" } else { "textbook" });
    Scenario { mode, contact_dead, ..group.scenario(algorithm) }
}

/// Delays of any length up to D, but for a textbook modified bully: for its answers to one initiator only, all must
/// be equal.
fn delay(algorithm: Algorithm, hardened: bool, random: bool) -> Option<DelayModel> {
    let equal = algorithm == Algorithm::ModifiedBully && !hardened;
    text(if random && !equal { "uniform:0.01ms..1ms" } else { "1ms" })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn safety_nobody_ever_follows_another_than_the_best_live_member(
        group in group(8),
        reading in reading(),
        random in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let delay = delay(reading.0, reading.1, random);
        let (_, records) = watch(&Scenario { delay, seed: Some(seed), ..scenario(&group, reading) });
        for record in records {
            if let EventKind::View { member, leader: Some(leader), .. } = record.kind {
                prop_assert_eq!(leader.0, group.best(), "{} at {}", member, record.at);
            }
        }
    }

    #[test]
    fn liveness_every_election_ends_and_every_live_member_knows_its_leader(
        group in group(8),
        reading in reading(),
        random in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let delay = delay(reading.0, reading.1, random);
        let outcome = run(&Scenario { delay, seed: Some(seed), ..scenario(&group, reading) });
        prop_assert_eq!(outcome.ended, Ended::Quiet);
        prop_assert!(outcome.agreed);
        let live = group.ids.len() - group.dead.len();
        prop_assert_eq!(outcome.views.iter().flatten().count(), live);
        for view in outcome.views.iter().flatten() {
            prop_assert_eq!(view.leader.map(|id| id.0), Some(group.best()));
            prop_assert_ne!(view.role, Role::Candidate);
        }
    }

    #[test]
    fn the_result_does_not_depend_on_who_calls(group in group(8), reading in reading()) {
        let live = group.ids.iter().copied().filter(|id| !group.dead.contains(id));
        for caller in live {
            let initiators = start(&[caller]);
            let outcome = run(&Scenario { initiators, ..scenario(&group, reading) });
            prop_assert_eq!(outcome.leader.map(|id| id.0), Some(group.best()), "{} calls", caller);
        }
    }

    /// Who is told twice to start calls one election all the same. One that is alone has won by then.
    #[test]
    fn a_process_calls_at_most_one_election_at_a_time(group in group(8), reading in reading()) {
        let live = group.ids.len() - group.dead.len();
        prop_assume!(live > 1);
        let once = scenario(&group, reading);
        let again = |&member: &u32| Initiator::At { member, at: Span::from_micros(500) };
        let first = group.starting.iter().copied().map(Initiator::AtOnce);
        let twice = first.chain(group.starting.iter().map(again)).collect();
        let twice = Scenario { initiators: Some(Initiators::Listed(twice)), ..once.clone() };
        let (once, twice) = (run(&once), run(&twice));
        prop_assert_eq!(once.elections, twice.elections);
        prop_assert_eq!(once.messages.by_kind, twice.messages.by_kind);
        prop_assert!(once.elections <= live as u64);
    }
}
