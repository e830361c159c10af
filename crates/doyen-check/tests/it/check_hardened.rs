//! Hardened mode keeps its promises in every run of three members, whatever one fault, or two, does to them and when:
//! agreement, validity and termination (A1 to A3), terms that never fall and rise no further than the faults account for,
//! messages that do not grow. Every order of everything is explored, for all seven algorithms; timers are bounded, for
//! that is the model of the promises.
//!
//! Losses: D includes retransmission on the link, so a message lost for good is beyond what hardened mode promises.
//! It survives one all the same, by repetition and by the leader's heartbeat.

use std::time::Duration;

use doyen_check::budget::Budget;
use doyen_check::property::Property;
use doyen_check::search::{Limits, Plan};
use doyen_check::{Rules, Timers};
use doyen_core::config::Mode;
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;
use doyen_sim::scenario::{Initiators, MemberList, Scenario};

const MEMBERS: u32 = 3;

/// The algorithms that send few messages: the others explore a few million states with two faults.
const FRUGAL: [Algorithm; 5] = [
    Algorithm::Bully,
    Algorithm::ModifiedBully,
    Algorithm::RingList,
    Algorithm::RingResilient,
    Algorithm::ChangRoberts,
];

const BULLIES: [Algorithm; 2] = [Algorithm::Bully, Algorithm::ModifiedBully];

/// Where a check begins.
#[derive(Clone, Copy, Debug)]
enum Beginning {
    /// The highest member leads.
    Led,
    /// Nobody leads, and all call an election.
    AllElect,
    /// Nobody leads, and the lowest calls an election.
    OneElects,
    /// The highest member is dead, which all know, and the next one leads.
    LedByTheNext,
    /// The highest member is dead, which all know, and the others call an election.
    OthersElect,
}

/// Explored with links that keep the order of messages; for the bullies also with links that do not.
fn assert_keeps_its_promises(algorithm: Algorithm, beginning: Beginning, budget: Budget) {
    explore(algorithm, beginning, budget, true);
    if BULLIES.contains(&algorithm) {
        explore(algorithm, beginning, budget, false);
    }
}

fn explore(algorithm: Algorithm, beginning: Beginning, budget: Budget, fifo: bool) {
    let all = Some(Initiators::All);
    let (leader, initiators, dead) = match beginning {
        Beginning::Led => (Some(MEMBERS), None, vec![]),
        Beginning::AllElect => (None, all, vec![]),
        Beginning::OneElects => (None, None, vec![]),
        Beginning::LedByTheNext => (Some(MEMBERS - 1), None, vec![MEMBERS]),
        Beginning::OthersElect => (None, all, vec![MEMBERS]),
    };
    let scenario = Scenario {
        algorithm: Some(algorithm),
        mode: Some(Mode::Hardened),
        members: Some(MemberList::Count(MEMBERS.into())),
        leader,
        initiators,
        dead,
        ..Scenario::default()
    };
    let case = scenario.resolve().unwrap_or_else(|error| panic!("{algorithm}: {error}"));
    let rules = Rules {
        budget,
        timers: Timers::Bounded { tick: Span::from_millis(1), detection: 2 },
        fifo,
        properties: vec![
            Property::Agreement,
            Property::Validity,
            Property::Termination,
            Property::TermsNeverFall,
            Property::BoundedMessages,
            Property::BoundedTerms,
        ],
        from: None,
        scope: None,
    };
    let limits = Limits { time: Some(Duration::from_secs(600)), ..Limits::default() };
    let plan = Plan { reduce: true, threads: 2, limits };
    let report = doyen_check::check(&case, &rules, &plan, &|_| true);
    if let Some(violation) = report.violation {
        let lines =
            |steps: &[_]| steps.iter().map(|step| format!("  {step}\n")).collect::<String>();
        let (path, cycle) = (lines(&violation.path), lines(&violation.cycle));
        let broken = violation.property;
        panic!("{algorithm}, {beginning:?}, {budget}: {broken} is broken\n{path}for ever\n{cycle}");
    }
    assert_eq!(report.limit, None, "{algorithm}, {beginning:?}, {budget}: {:?}", report.progress);
}

const NOTHING: Budget = Budget::NOTHING;
const CRASH: Budget = Budget { crashes: 1, ..NOTHING };
const LOSS: Budget = Budget { losses: 1, ..NOTHING };
const DUPLICATION: Budget = Budget { duplications: 1, ..NOTHING };
const SUSPICION: Budget = Budget { suspicions: 1, ..NOTHING };
const CAMPAIGN: Budget = Budget { campaigns: 1, ..NOTHING };

#[test]
fn one_thing_goes_wrong_under_a_leader() {
    for algorithm in Algorithm::OF_SOURCES {
        for budget in [CRASH, LOSS, DUPLICATION, SUSPICION, CAMPAIGN] {
            assert_keeps_its_promises(algorithm, Beginning::Led, budget);
        }
    }
}

#[test]
fn who_was_to_elect_dies_and_so_does_another() {
    for algorithm in FRUGAL {
        let budget = Budget { crashes: 2, ..NOTHING };
        assert_keeps_its_promises(algorithm, Beginning::OneElects, budget);
    }
}

#[test]
fn nobody_leads_and_all_elect() {
    for algorithm in Algorithm::OF_SOURCES {
        assert_keeps_its_promises(algorithm, Beginning::AllElect, NOTHING);
    }
}

#[test]
fn one_thing_goes_wrong_while_all_elect() {
    for algorithm in FRUGAL {
        for budget in [CRASH, LOSS, DUPLICATION, SUSPICION] {
            assert_keeps_its_promises(algorithm, Beginning::AllElect, budget);
        }
    }
}

/// The crash sets off an election, and something goes wrong in that.
#[test]
fn one_thing_goes_wrong_besides_a_crash() {
    for algorithm in FRUGAL {
        for budget in [
            Budget { losses: 1, ..CRASH },
            Budget { duplications: 1, ..CRASH },
            Budget { suspicions: 1, ..CRASH },
        ] {
            assert_keeps_its_promises(algorithm, Beginning::Led, budget);
        }
    }
    for algorithm in [Algorithm::RingActiveList, Algorithm::RingAllIds] {
        assert_keeps_its_promises(algorithm, Beginning::Led, Budget { losses: 1, ..CRASH });
    }
}

/// Under a leader, and in the middle of an election that knows nothing of it. `make check-hardened` asks the same of the
/// two roll calls.
#[test]
fn the_best_member_comes_back() {
    for algorithm in FRUGAL {
        for beginning in [Beginning::LedByTheNext, Beginning::OthersElect] {
            assert_keeps_its_promises(algorithm, beginning, Budget { restarts: 1, ..NOTHING });
        }
    }
}

#[test]
fn a_bully_crashes_and_comes_back() {
    for algorithm in BULLIES {
        assert_keeps_its_promises(algorithm, Beginning::Led, Budget { restarts: 1, ..CRASH });
    }
}
