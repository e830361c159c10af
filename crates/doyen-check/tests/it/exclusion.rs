//! Mutual exclusion, explored: the cases of the reference program `exclusion_explore.py`, in the order of its sections.
//!
//! Every schedule of a small group is tried: who asks when, who leaves when, and in which order messages arrive. What must hold
//! holds; what goes wrong in the specification's list of flaws is found; and whichever rule is taken away is missed.

use doyen_check::budget::Budget;
use doyen_check::property::Property;
use doyen_check::search::{Limits, Plan};
use doyen_check::selection::Selection;
use doyen_check::{Report, Rules, Timers, check};
use doyen_core::config::exclusion::Reliance;
use doyen_sim::scenario::{Case, Scenario};

const NOTHING: Budget = Budget::NOTHING;
const CRASH: Budget = Budget { crashes: 1, ..NOTHING };
const LOSS: Budget = Budget { losses: 1, ..NOTHING };
const DOUBLED: Budget = Budget { duplications: 1, ..NOTHING };

/// No case here needs more.
const MOST_STATES: u64 = 1_000_000;

/// `maekawa members=4 sets="grid"`: an algorithm and keys of a scenario.
fn case(line: &str) -> Case {
    let mut words = line.split(' ');
    let name = words.next().unwrap_or_default();
    let keys: Vec<&str> = words.collect();
    let text = format!("algorithm = \"{name}\"\n{}", keys.join("\n"));
    Scenario::from_toml("test", &text).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// Checks `case` for `properties`, or for the usual ones.
fn explore(case: &Case, budget: Budget, properties: &[Property], reduce: bool) -> Report {
    let timers = Timers::usual(case);
    let usual = || Selection::explorable(&[], case, budget, timers).unwrap().checked;
    let properties = if properties.is_empty() { usual() } else { properties.to_vec() };
    let (fifo, from, scope) = (case.network.fifo, None, None);
    let rules = Rules { budget, timers, fifo, properties, from, scope };
    rules.suit(case).unwrap_or_else(|error| panic!("{}: {error}", case.algorithm));
    let limits = Limits { states: Some(MOST_STATES), ..Limits::default() };
    check(case, &rules, &Plan { reduce, threads: 1, limits }, &|_| true)
}

fn broken(report: &Report) -> Option<Property> {
    report.violation.as_ref().map(|violation| violation.property)
}

/// Nothing is broken, with and without reduction, and everything was explored.
#[track_caller]
fn holds(line: &str, budget: Budget) {
    for reduce in [false, true] {
        let report = explore(&case(line), budget, &[], reduce);
        assert_eq!((&report.violation, report.limit), (&None, None), "{line}, {budget}");
        assert!(report.sought_endless, "{line}");
    }
}

/// `property` is broken, with and without reduction.
#[track_caller]
fn breaks(line: &str, budget: Budget, property: Property) {
    let case = case(line);
    for reduce in [false, true] {
        let report = explore(&case, budget, &[property], reduce);
        assert_eq!(broken(&report), Some(property), "{line}, {budget}: {:?}", report.progress);
    }
}

/// E1. Members have the same fields as in the reference program, where the numbers come from; so has the state, unless
/// overtaking is counted, which it is not here.
#[test]
fn there_are_as_many_states_as_in_the_reference_program() {
    for (line, states) in [
        ("centralised members=3 requests=\"all\" repeat=2 fifo=true", 727),
        ("centralised members=3 requests=\"all\" repeat=2", 869),
        ("ricart-agrawala members=3 requests=[1,1,2,2,3] fifo=true", 11_034),
        ("ricart-agrawala members=3 requests=[1,1,2,2,3]", 16_494),
        ("suzuki-kasami members=3 requests=[1,1,2,2,3] fifo=true", 4_431),
        ("suzuki-kasami members=3 requests=[1,1,2,2,3]", 9_479),
        ("token-ring members=3 requests=\"all\" repeat=2", 525),
        ("raymond members=4 requests=\"all\" repeat=2 fifo=true", 11_056),
        ("raymond members=4 requests=\"all\" repeat=2", 13_942),
        ("raymond tree=\"line\" members=4 requests=\"all\" repeat=2 fifo=true", 11_109),
        ("raymond tree=\"line\" members=4 requests=\"all\" repeat=2", 13_994),
        // The reference program has 3,633, 4,443 and 34,365: a member that is inside there forgets from whom it has heard.
        ("lamport members=2 requests=\"all\" repeat=3", 3_598),
        ("lamport members=3 requests=[1,2,2]", 4_260),
        ("lamport mode=\"saved-replies\" members=3 requests=\"all\"", 33_326),
        ("maekawa members=3 requests=\"all\" repeat=2", 9_521),
        ("maekawa members=4 sets=\"grid\" requests=[1,2,3]", 8_090),
    ] {
        let properties = [Property::OneInside, Property::Served];
        let report = explore(&case(line), NOTHING, &properties, false);
        assert_eq!((&report.violation, report.limit), (&None, None), "{line}");
        assert_eq!(report.progress.states, states, "{line}");
    }
}

/// All usual properties, overtaking and tokens among them.
#[test]
fn without_faults_every_algorithm_keeps_its_promises() {
    for line in [
        "centralised members=3 requests=\"all\" repeat=2",
        "centralised mode=\"deny\" members=3 requests=\"all\"",
        "centralised members=4 requests=\"all\"",
        "lamport members=2 requests=\"all\" repeat=3",
        "lamport members=3 requests=[1,2,2]",
        "ricart-agrawala members=3 requests=[1,1,2,2,3]",
        "ricart-agrawala members=3 requests=[1,1,2,2,3] fifo=true",
        "ricart-agrawala mode=\"hardened\" members=3 requests=[1,1,2,2]",
        "ricart-agrawala members=4 requests=[1,2,3]",
        "token-ring members=3 requests=\"all\" repeat=2",
        "token-ring members=4 requests=\"all\" repeat=2",
        "maekawa members=3 requests=\"all\" repeat=2",
        "maekawa members=4 sets=\"grid\" requests=[2,3,4]",
        "raymond members=4 requests=\"all\" repeat=2",
        "raymond tree=\"line\" members=4 requests=\"all\" repeat=2",
        "suzuki-kasami members=3 requests=[1,1,2,2,3]",
        "suzuki-kasami members=4 requests=[1,2,3]",
        "voting members=3 requests=[1,2]",
        "voting mode=\"serial\" members=3 requests=[1,2]",
        "token-recovery members=3 requests=\"all\" repeat=2",
    ] {
        holds(line, NOTHING);
    }
}

/// E4: who tolerates what of its links.
#[test]
fn what_the_links_must_do() {
    let hardened = "ricart-agrawala mode=\"hardened\" members=2 requests=\"all\" repeat=2";
    holds(hardened, DOUBLED);
    for (line, budget, property) in [
        ("centralised members=3 requests=[1,1,2]", LOSS, Property::Served),
        ("centralised members=3 requests=[1,1,2]", DOUBLED, Property::OneInside),
        ("lamport members=2 requests=[1,1,2] fifo=false", NOTHING, Property::OneInside),
        ("lamport members=2 requests=[1,1,2]", LOSS, Property::OneInside),
        ("ricart-agrawala members=2 requests=\"all\" repeat=2", LOSS, Property::Served),
        ("suzuki-kasami members=3 requests=[1,2,2,3]", LOSS, Property::Served),
        ("raymond members=3 requests=[1,2,2,3]", LOSS, Property::Served),
        ("raymond members=3 requests=[1,2,2,3]", DOUBLED, Property::OneInside),
        ("maekawa members=3 requests=\"all\"", LOSS, Property::Served),
        ("maekawa members=3 requests=\"all\"", DOUBLED, Property::Served),
    ] {
        breaks(line, budget, property);
    }
}

/// E5: the flaws M1, M3 to M5, M8 to M15, M17 to M20 and the first form of M2.
#[test]
fn the_flaws_of_the_specification_are_found() {
    let forgets = Budget { crashes: 1, restarts: 1, ..NOTHING };
    for (line, budget, property) in [
        ("centralised members=3 leader=1 requests=[2,3]", CRASH, Property::Served),
        ("centralised members=3 leader=3 requests=[1,2]", forgets, Property::OneInside),
        ("centralised members=3 leader=3 requests=[1,2]", CRASH, Property::Served),
        ("lamport members=2 requests=\"all\" fifo=false", NOTHING, Property::OneInside),
        ("ricart-agrawala members=3 requests=[1]", CRASH, Property::Served),
        ("ricart-agrawala members=2 requests=[1,1,2]", DOUBLED, Property::OneInside),
        ("token-ring members=3 requests=[1,2]", LOSS, Property::Served),
        ("token-ring members=3 requests=[1,2]", DOUBLED, Property::OneInside),
        ("token-ring members=3 requests=[1,2]", DOUBLED, Property::OneToken),
        ("token-ring members=3 requests=[1,2]", CRASH, Property::Served),
        ("maekawa mode=\"cs425-plain\" members=3 requests=\"all\"", NOTHING, Property::Served),
        (
            "maekawa mode=\"original\" members=4 sets=\"grid\" requests=[2,3,4]",
            NOTHING,
            Property::Served,
        ),
        (
            "maekawa members=4 sets=\"grid\" requests=[2,3,4] fifo=false",
            NOTHING,
            Property::OneInside,
        ),
        ("maekawa members=3 dead=[2] requests=[1]", NOTHING, Property::Served),
        ("voting members=3 ask_all=true requests=[1,2]", forgets, Property::OneInside),
        ("raymond tree=\"line\" members=3 requests=[1,3]", CRASH, Property::Served),
        ("suzuki-kasami members=3 requests=[2,2,3]", DOUBLED, Property::OneInside),
        ("suzuki-kasami members=3 requests=[2,3]", CRASH, Property::Served),
    ] {
        breaks(line, budget, property);
    }
}

/// M6: a report may be wrong.
#[test]
fn a_failure_report_that_counts_as_a_reply_lets_two_in() {
    let wrong = Budget { suspicions: 1, ..NOTHING };
    let line = "ricart-agrawala mode=\"down-replies\" members=2 requests=\"all\"";
    breaks(line, wrong, Property::OneInside);
    // Nor is a true one harmless, but to a member that crashed outside.
    holds(line, NOTHING);
}

/// What a crash does not harm, and what the recovery of a token mends.
#[test]
fn some_crashes_are_tolerated() {
    for line in [
        "token-recovery members=3 requests=[1,2]",
        "voting members=3 voters=3 ask_all=true votes=2 requests=[1]",
    ] {
        let report = explore(&case(line), CRASH, &[Property::OneInside], true);
        assert_eq!((&report.violation, report.limit), (&None, None), "{line}");
    }
    // A member that has not heard of the crash passes the new token to the crashed one: that must be noticed, too.
    breaks("token-recovery members=3 requests=[1,2]", CRASH, Property::Served);
    let lost = Budget { losses: 1, campaigns: 1, ..NOTHING };
    let safe = [Property::OneInside, Property::OneToken];
    let report = explore(&case("token-recovery members=3 requests=[1,2]"), lost, &safe, true);
    assert_eq!((&report.violation, report.limit), (&None, None), "{:?}", report.progress);
}

/// E6: each rule that the algorithms rely on is taken away, and missed.
#[test]
fn a_rule_that_is_taken_away_is_missed() {
    use Property::{OneInside, OneToken, Served};
    for (line, budget, rule, property) in [
        (
            "ricart-agrawala members=3 requests=[1,2]",
            NOTHING,
            Reliance::RequestsRaiseTheClock,
            OneInside,
        ),
        ("ricart-agrawala members=2 requests=[1,2]", NOTHING, Reliance::IdsBreakTies, OneInside),
        ("ricart-agrawala members=2 requests=[1,2]", NOTHING, Reliance::InsideDefers, OneInside),
        ("ricart-agrawala members=3 requests=[1,2]", NOTHING, Reliance::AllReply, OneInside),
        (
            "ricart-agrawala members=3 requests=[1,2]",
            NOTHING,
            Reliance::EarlierGoesFirst,
            OneInside,
        ),
        ("centralised members=3 requests=[1,1,2]", NOTHING, Reliance::HolderIsQueued, Served),
        ("suzuki-kasami members=3 requests=[1,2,2,3]", NOTHING, Reliance::NumbersRise, Served),
        (
            "raymond tree=\"line\" members=3 requests=[1,1,2,3,3]",
            NOTHING,
            Reliance::AsksAgain,
            Served,
        ),
        ("token-ring members=3 requests=[1,2]", NOTHING, Reliance::OneBegins, OneToken),
        ("token-ring members=3 requests=[1,2]", NOTHING, Reliance::OneBegins, OneInside),
        ("token-ring members=3 requests=[1,2]", NOTHING, Reliance::InsideKeepsTheToken, OneInside),
        ("token-ring members=3 requests=[1,2]", NOTHING, Reliance::LeavingPassesOn, Served),
        ("maekawa members=3 requests=[1,2]", NOTHING, Reliance::SetsMeet, OneInside),
        ("maekawa members=3 requests=\"all\"", NOTHING, Reliance::LosersYield, Served),
        ("lamport members=2 requests=\"all\"", NOTHING, Reliance::FirstEnters, OneInside),
        ("lamport members=2 requests=\"all\"", NOTHING, Reliance::AllAreHeard, OneInside),
        ("voting members=3 requests=[1,2]", NOTHING, Reliance::OneVote, OneInside),
        (
            "token-recovery members=3 requests=[1,2]",
            SEARCHES,
            Reliance::GenerationsDiffer,
            OneToken,
        ),
        ("token-recovery members=3 requests=[1,2]", SEARCHES, Reliance::AllAnswer, OneInside),
        ("token-recovery members=3 requests=[1,2]", SEARCHES, Reliance::HolderAnswers, OneInside),
        (
            "token-recovery members=3 requests=[1,2]",
            SEARCHES,
            Reliance::OldTokenIsDropped,
            OneInside,
        ),
    ] {
        let mut case = case(line);
        let report = explore(&case, budget, &[property], true);
        assert_eq!((broken(&report), report.limit), (None, None), "{line} as it is");
        case.config.exclusion.without = Some(rule);
        let report = explore(&case, budget, &[property], true);
        assert_eq!(
            broken(&report),
            Some(property),
            "{line} without {rule:?}: {:?}",
            report.progress
        );
    }
}

const SEARCHES: Budget = Budget { campaigns: 2, ..NOTHING };

/// M7: the schedules of the specification, which are the shortest. 1 hears of the request of 2 from 3, in a message that does
/// not carry the clock, and asks with the same time: its lower id goes first.
#[test]
fn an_application_message_without_the_clock_reverses_two_requests() {
    let tells = Budget { tells: 1, ..NOTHING };
    let schedule = |line: &str| -> String {
        let case = case(&format!("{line} mode=\"unstamped-tells\""));
        let report = explore(&case, tells, &[Property::CausalOrder], false);
        let path = report.violation.expect("the later request enters first").path;
        path.iter().map(|step| format!("{step}\n")).collect()
    };
    let told = "request 2\n\
                deliver REQUEST time=1 from 2 to 3\n\
                3 tells 1\n\
                deliver APP from 3 to 1\n\
                request 1\n";
    let ricart_agrawala = schedule("ricart-agrawala members=3 requests=[1,2] fifo=true");
    assert_eq!(ricart_agrawala.lines().count(), 10, "{ricart_agrawala}");
    let lamport = schedule("lamport members=3 requests=[1,2]");
    assert_eq!(lamport.lines().count(), 8, "{lamport}");
    for schedule in [ricart_agrawala, lamport] {
        assert!(schedule.starts_with(told), "{schedule}");
        assert!(schedule.contains("deliver REQUEST time=1 from 1 to 3"), "{schedule}");
    }
}

/// E2: of two requests the one that happened before the other enters first, if application messages carry the clock (M7).
#[test]
fn requests_that_depend_on_each_other_are_served_in_order() {
    let tells = Budget { tells: 1, ..NOTHING };
    let order = [Property::CausalOrder];
    for line in [
        "ricart-agrawala members=3 requests=[1,2] fifo=true",
        "ricart-agrawala members=2 requests=\"all\" repeat=3 fifo=true",
        "lamport members=3 requests=[1,2]",
        "lamport members=2 requests=\"all\" repeat=2",
    ] {
        let report = explore(&case(line), tells, &order, true);
        assert_eq!((&report.violation, report.limit), (&None, None), "{line}");
        if line.contains("members=3") {
            breaks(&format!("{line} mode=\"unstamped-tells\""), tells, Property::CausalOrder);
        }
    }
    for line in ["centralised", "token-ring", "raymond", "maekawa"] {
        let line = format!("{line} members=3 requests=\"all\"");
        let report = explore(&case(&line), NOTHING, &order, true);
        assert_eq!((&report.violation, report.limit), (&None, None), "{line}");
        breaks(&line, tells, Property::CausalOrder);
    }
    breaks("suzuki-kasami members=3 requests=\"all\"", NOTHING, Property::CausalOrder);
    // A REPLY carries no clock. One that overtakes the REQUEST that was sent before it hides that; and one of a third member,
    // which has heard of a REQUEST, lets its receiver ask again without that.
    breaks("ricart-agrawala members=3 requests=[1,1,2] fifo=true", NOTHING, Property::CausalOrder);
    let unordered = "ricart-agrawala members=2 requests=\"all\" repeat=2";
    breaks(unordered, tells, Property::CausalOrder);
}
