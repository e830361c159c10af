use doyen_core::protocol::Role;

use super::*;
use crate::budget::Budget;
use crate::campaign::{self, Campaign};
use crate::oracle::Breach;
use crate::search::{Limits, Plan};
use crate::timers::Timers;
use crate::{Violation, check};
use doyen_sim::render;
use doyen_sim::render::{mermaid, svg};
use doyen_sim::scenario::Scenario;

const BOUNDED: Timers = Timers::Bounded { tick: Span::from_millis(1), detection: 2 };

/// What a check of `scenario` for `property` finds, written to a file and read back.
fn found(scenario: &str, property: Property, budget: Budget, timers: Timers) -> Counterexample {
    let rules =
        Rules { budget, timers, fifo: true, properties: vec![property], from: None, scope: None };
    let scenario = Scenario::parse("test", scenario).unwrap();
    let case = scenario.resolve().unwrap();
    let limits = Limits { states: Some(500_000), ..Limits::default() };
    let plan = Plan { reduce: false, threads: 1, limits };
    let violation = check(&case, &rules, &plan, &|_| true).violation.expect("a violation");
    let text = Counterexample::new(scenario, &rules, violation).to_toml();
    Counterexample::parse("found.toml", &text).unwrap()
}

/// Two members answer and die; 1 waits forever.
fn unanswered() -> Counterexample {
    let budget = Budget { crashes: 2, ..Budget::default() };
    let scenario = "algorithm = \"bully\"\nmembers = 3\nmode = \"cs677-no-t2\"";
    found(scenario, Property::Termination, budget, BOUNDED)
}

/// 2 leads and answers requests, but does not announce itself; 1 asks again and again.
fn unheard() -> Counterexample {
    let scenario = "algorithm = \"bully\"\nmembers = 2\nleader = 2\ninitiators = [1]";
    found(scenario, Property::Termination, Budget::default(), BOUNDED)
}

/// Two members lead because an answer was lost.
fn two_leaders() -> Counterexample {
    let budget = Budget { losses: 3, ..Budget::default() };
    let scenario = "algorithm = \"bully\"\nmode = \"hardened\"\nmembers = 2\ninitiators = [1]";
    found(scenario, Property::OneLeader, budget, BOUNDED)
}

fn check_records(replay: &Replay) {
    let records = &replay.records;
    assert!(records.is_sorted_by_key(|record| record.at));
    for record in records {
        let (EventKind::Received { id, .. } | EventKind::Missed { id, .. }) = record.kind else {
            continue;
        };
        let is_sending = |other: &&TraceEvent| matches!(other.kind, EventKind::Sent { id: sent, .. } if sent == id);
        let sending = records.iter().find(is_sending).unwrap();
        let EventKind::Sent { arrives, again, .. } = sending.kind else { unreachable!() };
        assert!(sending.at <= record.at);
        // Later than it arrived if its receiver was paused.
        let has_arrived = |arrival: Time| arrival <= record.at;
        assert!([arrives, again].into_iter().flatten().any(has_arrived), "{sending:?} {record:?}");
    }
    let messages = records.iter().filter(|it| matches!(it.kind, EventKind::Sent { .. })).count();
    if messages > render::MAX_MESSAGES {
        return;
    }
    let info = render::RunInfo::of(&replay.case);
    let emphasis = Some(replay.past.clone());
    let options = svg::Options { emphasis, ..svg::Options::default() };
    svg::space_time(&info, records, &options).unwrap();
    mermaid::sequence(&info, records, replay.repeats_from()).unwrap();
}

#[test]
fn what_a_check_finds_is_found_again() {
    for file in [unanswered(), unheard(), two_leaders()] {
        let replay = file.replay().unwrap();
        assert!(replay.broken, "{}", file.to_toml());
        assert!(!replay.facts.is_empty());
        assert!(!replay.past.is_empty() && replay.past.len() <= replay.records.len());
        check_records(&replay);
    }
}

#[test]
fn a_member_that_waits_forever_is_named() {
    let replay = unanswered().replay().unwrap();
    assert_eq!(
        replay.why(),
        "A3 does not hold in this run.\n  \
         termination: every run comes to rest; no election is open and every live member knows a leader\n\
         But:\n  1 still takes part in an election\nand nothing is left to do that could change that.\n"
    );
    assert_eq!(replay.ending, Ending::Rest);
    let crashes = replay.records.iter().enumerate();
    let mut crashes =
        crashes.filter(|(_, record)| matches!(record.kind, EventKind::Crashed { .. }));
    assert!(crashes.all(|(index, _)| replay.past.contains(&index)));
    assert!(replay.steps.iter().any(|played| played.rules == ["R4"]), "{:?}", replay.steps);
}

#[test]
fn a_cycle_is_played_once_and_marked() {
    let replay = unheard().replay().unwrap();
    let Ending::Cycle(first) = replay.ending else { panic!("{:?}", replay.ending) };
    assert!(first > 0 && first < replay.records.len());
    let repeated = replay.steps.iter().filter(|played| played.repeated).count();
    assert!(repeated > 0 && repeated < replay.steps.len());
    let diagram =
        mermaid::sequence(&render::RunInfo::of(&replay.case), &replay.records, Some(first));
    let diagram = diagram.unwrap();
    assert!(diagram.contains("    loop forever\n") && diagram.ends_with("    end\n"), "{diagram}");
}

#[test]
fn the_past_of_two_leaders_leaves_out_what_came_of_nothing() {
    let replay = two_leaders().replay().unwrap();
    assert_eq!(replay.facts.len(), 2);
    assert_eq!(replay.ending, Ending::There);
    let leadership =
        |record: &TraceEvent| matches!(record.kind, EventKind::View { role: Role::Leader, .. });
    let leaderships: Vec<usize> =
        (0..replay.records.len()).filter(|&index| leadership(&replay.records[index])).collect();
    assert!(leaderships.iter().all(|index| replay.past.contains(index)));
}

#[test]
fn a_step_that_cannot_happen_is_named_with_its_line() {
    let text = unanswered().to_toml();
    let first = text.lines().find(|line| line.starts_with("    ")).unwrap().to_owned();
    let changed = text.replacen(&first, "    \"deliver ALARM from 1 to 2\",", 1);
    let file = Counterexample::parse("found.toml", &changed).unwrap();
    let problem = file.replay().unwrap_err();
    assert!(
        problem.starts_with(
            "found.toml:8: `deliver ALARM from 1 to 2` cannot happen here; possible: `"
        ),
        "{problem}"
    );
    assert!(!problem.contains('\n'));
}

/// Two messages in flight read the same, but one is older: only the fingerprint distinguishes them.
#[test]
fn words_that_fit_two_steps_are_refused_and_a_fingerprint_distinguishes_them() {
    let scenario = "algorithm = \"bully\"\nmembers = 2\nfifo = false";
    let scenario = Scenario::parse("test", scenario).unwrap();
    let rules = Rules {
        budget: Budget { crashes: 1, restarts: 1, ..Budget::default() },
        timers: BOUNDED,
        fifo: false,
        properties: vec![Property::Termination],
        from: None,
        scope: None,
    };
    let replay = |last: &str| {
        let steps = ["wait 1 tick", "crash 1", "restart 1", last];
        let path: Vec<StepText> = steps.into_iter().map(StepText::new).collect();
        let violation = Violation { property: Property::Termination, path, cycle: Vec::new() };
        Counterexample::new(scenario.clone(), &rules, violation).replay()
    };
    let words = "deliver ELECTION from 1 to 2";
    let problem = replay(words).unwrap_err();
    let refused =
        format!("step 4: `{words}` may mean several steps; add the fingerprint; possible:");
    assert!(problem.starts_with(&refused), "{problem}");
    let lines: Vec<&str> = problem.split('`').filter(|part| part.contains(" #")).collect();
    assert_eq!(lines.len(), 2, "{problem}");
    for line in lines {
        assert!(!replay(line).unwrap().broken);
    }
    assert!(replay(&format!("{words} #00000000")).unwrap_err().contains("cannot happen here"));
}

/// The same run, asked about something that holds in it.
#[test]
fn a_run_that_breaks_nothing_any_more_says_so() {
    let text = unheard().to_toml().replace("\"A3\"", "\"bounded-messages\"");
    let replay = Counterexample::parse("found.toml", &text).unwrap().replay().unwrap();
    assert!(!replay.broken && replay.facts.is_empty() && !replay.is_undecided());
    assert!(replay.why().starts_with("bounded-messages HOLDS in this run"), "{}", replay.why());
    assert_eq!(replay.verdict(), "bounded-messages holds");
    check_records(&replay);
}

/// Without one of its steps no file shows what it was written for, and none says that the property holds.
#[test]
fn a_file_that_lacks_a_step_judges_nothing() {
    let mut told = BTreeSet::new();
    for file in [unanswered(), unheard(), two_leaders()] {
        let Course::Schedule { path, cycle, .. } = &file.course else { panic!("a schedule") };
        let (steps, whole) = (path.len(), path.len() + cycle.len());
        for gone in 0..whole {
            let mut file = file.clone();
            let Course::Schedule { path, cycle, .. } = &mut file.course else { unreachable!() };
            if gone < steps {
                path.remove(gone)
            } else {
                cycle.remove(gone - steps)
            };
            // Most steps cannot happen without those before; some do not need what is gone.
            let Ok(replay) = file.replay() else { continue };
            assert!(
                replay.broken || replay.is_undecided(),
                "without step {gone}: {}",
                replay.why()
            );
            if !replay.broken {
                assert!(replay.why().contains("was NOT JUDGED"), "{}", replay.why());
                assert_eq!((replay.ending, replay.facts.len()), (Ending::Early, 0));
                assert!(replay.verdict().ends_with("was not judged"));
                check_records(&replay);
                told.extend(replay.gap.map(|gap| gap.split(':').next().unwrap().to_owned()));
            }
        }
    }
    assert!(told.contains("it ends before it is at rest"), "{told:?}");
}

#[test]
fn steps_that_repeat_must_come_round_and_put_nothing_off() {
    let changed = |change: fn(&mut Vec<StepText>, &mut Vec<StepText>)| {
        let mut file = unheard();
        let Course::Schedule { path, cycle, .. } = &mut file.course else { unreachable!() };
        change(path, cycle);
        file.replay().unwrap().gap.unwrap_or_default()
    };
    let open = changed(|_, cycle| drop(cycle.pop()));
    assert_eq!(open, "the steps that repeat forever do not lead back to where they begin");
    let none = changed(|_, cycle| cycle.clear());
    assert!(none.starts_with("it ends before it is at rest: `deliver ELECTION"), "{none}");
}

#[test]
fn a_message_to_a_member_that_stays_down_is_missed() {
    let scenario = "algorithm = \"bully\"\nmembers = 3\ndead = [3]\ncontact_dead = true";
    let scenario = Scenario::parse("test", scenario).unwrap();
    let rules = Rules {
        budget: Budget::default(),
        timers: BOUNDED,
        fifo: true,
        properties: vec![Property::Agreement],
        from: None,
        scope: None,
    };
    let path = vec![StepText::new("deliver ELECTION from 1 to 2")];
    let violation = Violation { property: Property::Agreement, path, cycle: Vec::new() };
    let replay = Counterexample::new(scenario, &rules, violation).replay().unwrap();
    let missed =
        |record: &&TraceEvent| matches!(record.kind, EventKind::Missed { to: NodeId(3), .. });
    assert_eq!(replay.records.iter().filter(missed).count(), 2);
    check_records(&replay);
}

#[test]
fn the_steps_of_a_tick_follow_each_other_closely() {
    let wait = Act::Wait { ticks: 2 };
    let acts = [Act::Crash, Act::Crash, wait, Act::Crash, Act::Crash];
    let steps = acts.map(|act| Step::new(1, act));
    let rules = Rules {
        budget: Budget::default(),
        timers: BOUNDED,
        fifo: true,
        properties: Vec::new(),
        from: None,
        scope: None,
    };
    let micros = |rules: &Rules| -> Vec<u64> {
        let times = times(&steps, rules, Span::from_millis(1));
        times.into_iter().map(|time| time.0 / 1_000).collect()
    };
    assert_eq!(micros(&rules), [50, 100, 2_000, 2_000, 2_050]);
    let free = Rules { timers: Timers::Free { expiries: 1 }, ..rules };
    assert_eq!(micros(&free), [1_000, 2_000, 3_000, 4_000, 5_000]);
}

#[test]
fn a_timed_run_is_simulated_and_judged() {
    let timed = |scenario: &str, property| {
        let scenario = Scenario::parse("test", scenario).unwrap();
        Counterexample::timed(scenario, property).replay().unwrap()
    };
    let split = "algorithm = \"bully\"\nmembers = 3\ninitiators = \"all\"\n\
                 fault = [{ at = \"0s\", partition = [[1, 2], [3]] }]";
    for (property, ending) in [
        (Property::Agreement, Ending::Rest),
        (Property::Validity, Ending::Rest),
        (Property::OneLeader, Ending::There),
    ] {
        let replay = timed(split, property);
        assert!(replay.broken, "{property}");
        assert_eq!((replay.facts.len(), replay.ending), (2, ending), "{property}");
        check_records(&replay);
    }
    // A textbook bully knows no terms in which two could lead.
    assert!(!timed(split, Property::OneLeaderPerTerm).broken);
    let waiting = timed(
        "algorithm = \"bully\"\nmembers = 3\nmode = \"cs677-no-t2\"\n\
         fault = [{ at = \"1ms\", crash = 2 }, { at = \"1ms\", crash = 3 }]",
        Property::Termination,
    );
    assert!(waiting.broken, "{:?}", waiting.records);
    let sound = timed("algorithm = \"bully\"\nmembers = 3", Property::Agreement);
    assert!(!sound.broken && sound.past.is_empty());
    assert!(sound.why().starts_with("A1 HOLDS in this run"), "{}", sound.why());
    // A member that asks a leader that does not announce itself asks forever.
    let restless = timed(
        "algorithm = \"bully\"\nmembers = 3\nleader = 3\ninitiators = [1]\nuntil = \"50ms\"",
        Property::Agreement,
    );
    assert!(restless.is_undecided());
    assert!(restless.why().starts_with("A1 was not judged"), "{}", restless.why());
}

/// What a campaign found is what a replay of its file says, whatever it is.
#[test]
fn a_timed_file_says_again_what_the_campaign_found() {
    let base = |mode: &str| Scenario { mode: Some(mode.parse().unwrap()), ..Scenario::default() };
    let mut found = BTreeSet::new();
    for (mode, property) in [
        ("textbook", Property::Agreement),
        ("textbook", Property::Termination),
        ("textbook", Property::Cs425Liveness),
        ("hardened", Property::OneLeader),
        ("hardened", Property::OneLeaderPerTerm),
    ] {
        let campaign = Campaign {
            properties: Some(vec![property]),
            patience: 2,
            ..Campaign::new(base(mode), 700, 1)
        };
        for failure in campaign::run(&campaign, |_| true).unwrap().failures {
            let text = Counterexample::timed(failure.scenario, property).to_toml();
            let replay = Counterexample::parse("found.toml", &text).unwrap().replay().unwrap();
            let Breach { at, evidence, ending, .. } = failure.breach;
            assert!(replay.broken, "run {}", failure.run);
            assert_eq!((&replay.facts, replay.ending), (&evidence, ending), "run {}", failure.run);
            assert!(replay.past.iter().all(|&index| replay.records[index].at <= at));
            check_records(&replay);
            found.insert(property);
        }
    }
    assert_eq!(found.len(), 5, "{found:?}");
}

/// The list of a dead initiator goes round and grows. No algorithm here lets a stored term fall: of that the oracle's own
/// tests tell.
#[test]
fn a_timed_file_may_be_about_a_message_that_grows() {
    let growing = "algorithm = \"ring-list\"\nmembers = 3\ninitiators = [1]\nuntil = \"1s\"\n\
                   fault = [{ at = \"1.5ms\", crash = 1 }]";
    let scenario = Scenario::parse("test", growing).unwrap();
    let file = |property| Counterexample::timed(scenario.clone(), property).replay().unwrap();
    let replay = file(Property::BoundedMessages);
    assert!(replay.broken, "{}", replay.why());
    assert_eq!((replay.facts.len(), replay.ending), (2, Ending::There));
    assert!(replay.facts[0].to_string().contains(" sent ELECTION to "), "{:?}", replay.facts);
    assert!(!file(Property::TermsNeverFall).broken);
}

#[test]
fn a_schedule_may_go_on_from_the_middle_of_a_simulation() {
    let scenario = "algorithm = \"bully\"\nmembers = 3\nmode = \"cs677-no-t2\"";
    let scenario = Scenario::parse("test", scenario).unwrap();
    let rules = Rules {
        budget: Budget { crashes: 2, ..Budget::default() },
        timers: BOUNDED,
        fifo: true,
        properties: vec![Property::Termination],
        from: Some(Time(1_500_000)),
        scope: None,
    };
    let plan = Plan { reduce: false, threads: 1, limits: Limits::default() };
    let found = check(&scenario.resolve().unwrap(), &rules, &plan, &|_| true).violation.unwrap();
    let file = Counterexample::new(scenario, &rules, found);
    let replay = Counterexample::parse("found.toml", &file.to_toml()).unwrap().replay().unwrap();
    assert!(replay.broken, "{}", file.to_toml());
    assert!(matches!(replay.records[0].kind, EventKind::Campaign { .. }));
    assert!(replay.steps[0].at > Time(1_500_000));
    check_records(&replay);
}
