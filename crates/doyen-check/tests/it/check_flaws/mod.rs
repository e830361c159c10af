//! The checker finds the flaws of the sources' algorithms by itself. No schedule is given: only who takes part, what may
//! go wrong and which property breaks. Each is a small case in which that flaw comes first, and what was found must have
//! its shape. The same budget finds nothing in hardened mode, with bounded timers. `docs/flaws.md` has the table.

mod lens;

use std::time::Duration;

use doyen_check::StepText;
use doyen_check::budget::Budget;
use doyen_check::property::Property;
use doyen_check::search::{Limits, Plan};
use doyen_check::{Explorable, Report, Rules, Scene, Timers};
use doyen_core::algorithm::chang_roberts::ChangRoberts;
use doyen_core::algorithm::modified_bully::ModifiedBully;
use doyen_core::algorithm::ring_list::RingList;
use doyen_core::config::{Config, Mode};
use doyen_core::protocol::Protocol;
use doyen_core::time::Span;
use doyen_sim::scenario::{Case, Scenario};
use lens::{Lens, Seen, Through};

/// A message takes at most a tick, which is D, and a failure detector at most two.
const BOUNDED: Timers = Timers::Bounded { tick: Span::from_millis(1), detection: 2 };

/// What hardened mode promises.
const PROMISES: [Property; 6] = [
    Property::Agreement,
    Property::Validity,
    Property::Termination,
    Property::TermsNeverFall,
    Property::BoundedMessages,
    Property::BoundedTerms,
];

/// What was found: the steps to it in words, and those that then go on for ever.
struct Finding {
    path: Vec<String>,
    cycle: Vec<String>,
}

impl Finding {
    /// When this step was taken.
    fn when(&self, step: &str) -> usize {
        let place = self.path.iter().position(|taken| taken == step);
        place.unwrap_or_else(|| panic!("no `{step}` in {:#?}", self.path))
    }

    /// Whether a step that begins like this was taken.
    fn has(&self, beginning: &str) -> bool {
        self.path.iter().any(|step| step.starts_with(beginning))
    }

    /// How often this step was taken.
    fn count(&self, step: &str) -> usize {
        self.path.iter().filter(|taken| *taken == step).count()
    }

    fn last(&self) -> &str {
        self.path.last().expect("there are steps")
    }
}

/// A case in a few lines of TOML.
fn case(text: &str) -> Case {
    Scenario::from_toml("flaw", text).unwrap_or_else(|problem| panic!("{problem}"))
}

/// The same case in hardened mode.
fn hardened(text: &str) -> Case {
    let mut scenario = Scenario::parse("flaw", text).unwrap_or_else(|problem| panic!("{problem}"));
    scenario.mode = Some(Mode::Hardened);
    scenario.resolve().unwrap_or_else(|problem| panic!("{problem}"))
}

fn rules(budget: Budget, timers: Timers, properties: &[Property]) -> Rules {
    Rules { budget, timers, fifo: true, properties: properties.to_vec(), from: None, scope: None }
}

fn plan() -> Plan {
    let limits = Limits { time: Some(Duration::from_secs(120)), ..Limits::default() };
    Plan { reduce: false, threads: 2, limits }
}

/// What the report says is broken, which must be this.
fn finding(report: Report, property: Property) -> Finding {
    let found = report.violation.unwrap_or_else(|| panic!("nothing in {:?}", report.progress));
    assert_eq!(found.property, property);
    // What `docs/flaws.md` has in its table.
    let (states, steps, repeated) = (report.progress.states, found.path.len(), found.cycle.len());
    println!("{property}: {states} states, {steps} steps, then {repeated} for ever");
    let words = |steps: &[StepText]| steps.iter().map(StepText::to_string).collect();
    Finding { path: words(&found.path), cycle: words(&found.cycle) }
}

/// What breaks `property` in the case of `text`.
fn find(text: &str, budget: Budget, timers: Timers, property: Property) -> Finding {
    let report =
        doyen_check::check(&case(text), &rules(budget, timers, &[property]), &plan(), &|_| true);
    finding(report, property)
}

/// The same, with members seen through a lens.
fn find_through<P>(
    lens: Lens,
    text: &str,
    budget: Budget,
    timers: Timers,
    property: Property,
) -> Finding
where
    P: Explorable + Protocol<Config = Config>,
{
    let case = case(text);
    let through = Through { config: case.config.clone(), lens };
    let rules = rules(budget, timers, &[property]);
    let scene = Scene::of(&case);
    finding(doyen_check::explore::<Seen<P>>(&through, &scene, &rules, &plan(), &|_| true), property)
}

/// Hardened mode keeps all its promises under the same budget.
fn assert_hardened_mode_has_no_flaw(text: &str, budget: Budget) {
    let rules = rules(budget, BOUNDED, &PROMISES);
    let report = doyen_check::check(&hardened(text), &rules, &plan(), &|_| true);
    assert_eq!((report.violation, report.limit), (None, None), "{text}");
}

/// F3: 1 hears of the election that 2 called before 3 came up after it has heard 3, and follows 2.
#[test]
fn f3_an_old_announcement_is_taken_for_a_new_one() {
    let text = r#"
        algorithm = "bully"
        members = 3
        dead = [3]
        contact_dead = true
        initiators = [2]
    "#;
    let budget = Budget { restarts: 1, ..Budget::default() };
    let timers = Timers::Free { expiries: 1 };
    let found = find(text, budget, timers, Property::Agreement);
    let newer = found.when("deliver COORDINATOR from 3 to 1");
    let older = found.when("deliver COORDINATOR from 2 to 1");
    assert!(found.when("restart 3") < newer && newer < older);
    assert!(found.has("deliver COORDINATOR from 3 to 2"), "2 itself follows 3");
    assert!(found.cycle.is_empty(), "for ever");
    assert_hardened_mode_has_no_flaw(text, budget);
}

/// F4: without T2, 1 waits for ever for one that answered and died.
#[test]
fn f4_an_announcement_is_awaited_for_ever() {
    let text = r#"
        algorithm = "bully"
        mode = "cs677-no-t2"
        members = 2
        initiators = [1]
    "#;
    let budget = Budget { crashes: 1, ..Budget::default() };
    let found = find(text, budget, BOUNDED, Property::Termination);
    assert!(found.when("deliver OK from 2 to 1") < found.when("crash 2"));
    assert!(!found.has("deliver COORDINATOR") && found.cycle.is_empty());
    assert_hardened_mode_has_no_flaw(text, budget);
}

/// F6: the live leader answers OK, 1 waits for a COORDINATOR and asks again, for ever.
#[test]
fn f6_a_leader_that_only_says_ok_is_asked_for_ever() {
    let text = r#"
        algorithm = "bully"
        members = 2
        leader = 2
    "#;
    let budget = Budget { campaigns: 1, ..Budget::default() };
    let found = find(text, budget, BOUNDED, Property::Termination);
    for step in
        ["deliver ELECTION from 1 to 2", "deliver OK from 2 to 1", "expire Announcement at 1"]
    {
        assert!(found.cycle.iter().any(|taken| taken == step), "{step} in {:#?}", found.cycle);
    }
    assert_hardened_mode_has_no_flaw(text, budget);
}

/// F11a: 3 answers, is granted and dies. 1 asks again, 2 is silent, and 1 leads although 2 lives. Seen while 1 lives: its
/// own crash makes members silent as well, and sooner (F19).
#[test]
fn f11a_silence_to_a_second_question_makes_the_lowest_lead() {
    let text = r#"
        algorithm = "modified-bully"
        mode = "kordafshari-figure4"
        members = 3
        initiators = [1]
    "#;
    let budget = Budget { crashes: 1, ..Budget::default() };
    let found = find_through::<ModifiedBully>(
        Lens::WhileOneLives,
        text,
        budget,
        BOUNDED,
        Property::Validity,
    );
    assert_eq!(found.count("deliver ELECTION from 1 to 2"), 2, "1 asks twice");
    assert_eq!(found.count("deliver OK prio=2 from 2 to 1"), 1, "2 answers once");
    assert!(found.has("deliver GRANT from 1 to 3, crash") || found.has("crash 3"));
    assert_eq!(found.last(), "deliver COORDINATOR from 1 to 2");
    assert_hardened_mode_has_no_flaw(text, budget);
}

/// F13: 3 has answered 1 and is silent when 2 comes up and asks. 2 and 3 both announce themselves.
#[test]
fn f13_a_member_that_comes_up_is_ignored() {
    let text = r#"
        algorithm = "modified-bully"
        mode = "kordafshari-figure4"
        members = 3
        dead = [2]
        contact_dead = true
        initiators = [1]
    "#;
    let budget = Budget { restarts: 1, ..Budget::default() };
    let found = find(text, budget, BOUNDED, Property::Agreement);
    let asked = found.when("deliver ELECTION from 2 to 3");
    let answered = found.when("deliver ELECTION from 1 to 3");
    assert!(found.when("restart 2") < asked && answered < asked);
    assert!(!found.has("deliver OK prio=3 from 3 to 2"), "2 is not answered");
    assert!(found.has("deliver COORDINATOR from 2 to 3"));
    assert!(found.has("deliver COORDINATOR from 3 to 2"));
    assert_hardened_mode_has_no_flaw(text, budget);
}

/// F14: one message is lost, and those that take part swallow every other one.
#[test]
fn f14_participants_swallow_what_is_left() {
    let text = r#"
        algorithm = "chang-roberts"
        members = 3
        initiators = [1, 2]
    "#;
    let budget = Budget { losses: 1, ..Budget::default() };
    let found = find(text, budget, BOUNDED, Property::Termination);
    assert_eq!(found.path.len(), 2, "in either order");
    assert!(
        found.has("lose ELECTION 2 from 2 to 3") && found.has("deliver ELECTION 1 from 1 to 2")
    );
    assert!(found.cycle.is_empty(), "nothing is left to do");
    assert_hardened_mode_has_no_flaw(text, budget);
}

/// F15: the number of a dead member goes round for ever. Seen through a lens that overlooks messages lost in a crash.
#[test]
fn f15_nobody_takes_the_message_of_the_dead_off_the_ring() {
    let text = r#"
        algorithm = "chang-roberts"
        members = 3
        initiators = [1]
    "#;
    let budget = Budget { crashes: 1, ..Budget::default() };
    let found =
        find_through::<ChangRoberts>(Lens::Content, text, budget, BOUNDED, Property::Termination);
    found.when("crash 3");
    let deliveries: Vec<&String> =
        found.cycle.iter().filter(|step| !step.starts_with("wait")).collect();
    assert!(!deliveries.is_empty());
    assert!(deliveries.iter().all(|step| step.starts_with("deliver ELECTION 3 ")));
    assert_hardened_mode_has_no_flaw(text, budget);
}

/// F16: the list of a dead initiator grows without bound.
#[test]
fn f16_the_list_of_a_dead_initiator_grows() {
    let text = r#"
        algorithm = "ring-list"
        members = 3
        initiators = [1]
    "#;
    let budget = Budget { crashes: 1, ..Budget::default() };
    let found = find(text, budget, BOUNDED, Property::BoundedMessages);
    found.when("crash 1");
    assert!(found.last().starts_with("deliver ELECTION init=1 list=1,2,3,2,3,2,3,"));
    assert_hardened_mode_has_no_flaw(text, budget);
}

/// F17: one list has the dead member, the other has not, and the two COORDINATORs cross. Seen through a lens that
/// overlooks a dead leader whom all follow, which takes only one election (F18).
#[test]
fn f17_two_elections_and_a_crash_in_between_do_harm() {
    let text = r#"
        algorithm = "ring-list"
        members = 3
        initiators = [1, 2]
    "#;
    let budget = Budget { crashes: 1, ..Budget::default() };
    let no_timers = Timers::Free { expiries: 0 };
    let found =
        find_through::<RingList>(Lens::Mourning, text, budget, no_timers, Property::Agreement);
    assert!(
        found.has("crash 3") || found.has("deliver ELECTION init=1 list=1,2 from 2 to 3, crash")
    );
    assert!(found.has("deliver COORDINATOR init=1 leader=2"), "{:#?}", found.path);
    assert!(found.has("deliver COORDINATOR init=2 leader=3"), "{:#?}", found.path);
    assert_hardened_mode_has_no_flaw(text, budget);
}
