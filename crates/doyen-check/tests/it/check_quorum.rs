//! The quorum, explored: the votes to the end; leases and vote leases, and the whole, as deep as a test has time for. See
//! `part.rs` for what that is. `make check-quorum` goes on for longer.
//!
//! A search that finds nothing proves little unless it finds something where something is wrong. So every rule is taken
//! away on which votes or leases rest, and every search must notice; and it must notice the same with every reduction
//! and without. (`model/tests.rs` tries each reduction alone, with every rule taken away.)

use doyen_check::budget::Budget;
use doyen_check::part::{Part, Scope};
use doyen_check::property::Property;
use doyen_check::search::{Limits, Plan};
use doyen_check::{Report, Rules, Timers};
use doyen_core::config::rules::Rule;
use doyen_core::time::Span;
use doyen_sim::scenario::Scenario;

/// `D` of the usual scenario.
const TICK: Span = Span::from_millis(1);

fn votes(terms: u64) -> Scope {
    Scope { terms, ..Scope::new(Part::Votes) }
}

fn leases() -> Scope {
    Scope::new(Part::Leases)
}

/// What is explored: so many members, and what may happen.
#[derive(Clone, Debug)]
struct Subject {
    members: u32,
    rules: Rules,
}

impl Subject {
    fn of(scope: Scope) -> Self {
        Self { members: 3, rules: Rules::of(scope, false) }
    }

    fn members(mut self, members: u32) -> Self {
        self.members = members;
        self
    }

    /// With so many crashes and restarts.
    fn faults(mut self, faults: u8) -> Self {
        (self.rules.budget.crashes, self.rules.budget.restarts) = (faults, faults);
        if let Timers::Free { expiries } = &mut self.rules.timers {
            *expiries = faults;
        }
        self
    }

    /// With one thing more that may happen.
    fn and(mut self, change: impl FnOnce(&mut Budget)) -> Self {
        change(&mut self.rules.budget);
        self
    }

    fn asked(mut self, property: Property) -> Self {
        self.rules.properties = vec![property];
        self
    }

    fn explore(&self, reduce: bool, states: Option<u64>) -> Report {
        let scope = self.rules.scope.expect("a part of the quorum");
        let case = scope.scenario(self.members).resolve().expect("a scene that makes sense");
        let limits = Limits { states, ..Limits::default() };
        let plan = Plan { reduce, threads: 2, limits };
        let report = doyen_check::check(&case, &self.rules, &plan, &|_| true);
        println!("{scope}, {}, {reduce}: {:?}", self.rules.budget, report.progress);
        report
    }
}

fn broken(report: &Report) -> Option<Property> {
    report.violation.as_ref().map(|violation| violation.property)
}

#[test]
fn the_voting_rules_are_explored_to_the_end() {
    let [two, three] = [2, 3].map(|terms| Subject::of(votes(terms)));
    for subject in [two.clone().faults(1), three, two.members(4)] {
        let report = subject.explore(true, None);
        assert_eq!((report.limit, broken(&report)), (None, None), "{subject:?}");
    }
}

#[test]
fn leases_wrong_clocks_and_the_whole_are_safe_as_far_as_a_test_goes() {
    let wrong_clocks = Subject { members: 3, rules: Rules::of(leases(), true) };
    let mixed = Subject::of(Scope { mixed: true, ..leases() });
    let whole = Subject::of(Scope::new(Part::Whole));
    let operated = |budget: &mut Budget| {
        (budget.transfers, budget.commands, budget.rejoins) = (1, 1, 1);
    };
    for subject in [
        Subject::of(leases()),
        Subject::of(leases()).and(|budget| budget.transfers = 2),
        Subject::of(leases()).faults(1).and(|budget| budget.rejoins = 1),
        wrong_clocks,
        mixed,
        whole.clone(),
        whole.faults(1).and(operated),
    ] {
        let report = subject.explore(true, Some(60_000));
        assert_eq!(broken(&report), None, "{subject:?}");
    }
}

/// As many states as it takes to notice that pauses do not hold.
#[test]
fn a_pause_holds_as_far_as_a_test_goes() {
    let paused = Subject::of(Scope::new(Part::Whole))
        .and(|budget| (budget.crashes, budget.restarts, budget.commands) = (0, 0, 1));
    let missed = Scope { without: Some(Rule::PauseHolds), ..Scope::new(Part::Whole) };
    let missed = Subject::of(missed).explore(true, None);
    assert_eq!(broken(&missed), Some(Property::PausesKept));
    let report = paused.explore(true, Some(missed.progress.states));
    assert_eq!(broken(&report), None);
    assert!(report.progress.depth >= missed.progress.depth, "{:?}", report.progress);
}

/// With one term there is an end to both ways.
#[test]
fn with_and_without_reductions_everything_is_seen_and_holds() {
    for subject in [Subject::of(votes(1)), Subject::of(votes(2)).members(2)] {
        let [all, fewer] = [false, true].map(|reduce| subject.explore(reduce, None));
        for report in [&all, &fewer] {
            assert_eq!((report.limit, broken(report)), (None, None), "{subject:?}");
        }
        let (all, fewer) = (all.progress.states, fewer.progress.states);
        assert!(fewer * 3 < all * 2, "{subject:?}: {fewer} of {all} states");
    }
}

fn without(rule: Rule, scope: Scope) -> Scope {
    Scope { without: Some(rule), ..scope }
}

/// Says in how many steps `property` is broken.
fn is_missed(property: Property, subject: Subject, reduce: bool) -> usize {
    let subject = subject.asked(property);
    let violation = subject.explore(reduce, None).violation;
    let found = violation.as_ref().map(|violation| violation.property);
    assert_eq!(found, Some(property), "{subject:?}");
    violation.map_or(0, |violation| violation.path.len())
}

/// That is so in the same number of steps whether messages last, or arrive once and are counted; and whether everything
/// is explored or what makes no difference is left out.
fn is_missed_in_any_way(property: Property, subject: &Subject) {
    let counted = subject.clone().and(|budget| (budget.losses, budget.duplications) = (0, 0));
    let steps = [(counted, false), (subject.clone(), false), (subject.clone(), true)]
        .map(|(subject, reduce)| is_missed(property, subject, reduce));
    assert_eq!(steps, [steps[0]; 3], "{subject:?}");
}

#[test]
fn a_voting_rule_less_makes_two_leaders_of_one_term() {
    for rule in [
        Rule::Majority,
        Rule::TermIsStored,
        Rule::VoteIsStored,
        Rule::OneVotePerTerm,
        Rule::VoteCountsInItsTerm,
        Rule::VoteOutlivesRole,
    ] {
        let subject = Subject::of(without(rule, votes(2))).faults(1);
        is_missed_in_any_way(Property::OneLeaderPerTerm, &subject);
    }
}

#[test]
fn a_rule_of_leases_less_makes_two_leaders_at_an_instant() {
    for rule in [
        Rule::Majority,
        Rule::VoteLease,
        Rule::HoldDown,
        Rule::LeaseFromSending,
        Rule::DriftMargin,
        Rule::LeaseBindsItsHolder,
    ] {
        is_missed(Property::OneLeader, Subject::of(without(rule, leases())).faults(1), true);
    }
    let no_majority = Subject::of(without(Rule::Majority, leases())).faults(1);
    is_missed_in_any_way(Property::OneLeader, &no_majority);
}

#[test]
fn a_rule_less_breaks_a_vote_lease_or_leaves_a_lease_uncovered() {
    for (rule, property) in [
        (Rule::VoteLease, Property::VoteLeasesKept),
        (Rule::HoldDown, Property::VoteLeasesKept),
        (Rule::Majority, Property::LeasesRise),
        (Rule::TermIsStored, Property::LeasesRise),
        (Rule::VoteLease, Property::LeasesCovered),
        (Rule::HoldDown, Property::LeasesCovered),
        (Rule::LeaseFromSending, Property::LeasesCovered),
        (Rule::VoteIsNoLease, Property::LeasesCovered),
        (Rule::AckCountsInItsTerm, Property::LeasesCovered),
    ] {
        is_missed(property, Subject::of(without(rule, leases())).faults(1), true);
    }
    let rules = Rules::of(without(Rule::DriftMargin, leases()), true);
    let wrong_clocks = Subject { members: 3, rules }.faults(0);
    is_missed(Property::LeasesCovered, wrong_clocks, true);
}

#[test]
fn a_rule_of_transfers_less_leaves_a_lease_uncovered() {
    for rule in [Rule::LeaseEndsBeforeTransfer, Rule::RetiredFirst, Rule::ReleaseIsForItsTerm] {
        let terms = if rule == Rule::ReleaseIsForItsTerm { 3 } else { 2 };
        let scope = Scope { terms, ..without(rule, leases()) };
        let subject = Subject::of(scope).faults(0).and(|budget| budget.transfers = 2);
        is_missed(Property::LeasesCovered, subject, true);
    }
}

/// A million states each. In every test run the scenarios of `quorum_mutants.rs` miss these rules.
#[test]
#[ignore = "takes minutes; make campaign runs it"]
fn a_rule_of_rejoining_less_gives_a_second_vote_or_leaves_a_lease_uncovered() {
    for (rule, property, scope) in [
        (Rule::RejoinVotesLater, Property::OneVotePerTerm, leases()),
        (Rule::RejoinAsksAll, Property::OneVotePerTerm, leases()),
        (Rule::RejoinWaitsTheLongest, Property::LeasesCovered, Scope { mixed: true, ..leases() }),
    ] {
        let subject = Subject::of(without(rule, scope)).faults(1);
        is_missed(property, subject.and(|budget| budget.rejoins = 1), true);
    }
}

/// Nobody has called an election, and nobody who lives wants to lead: that is no calm in which nothing is owed.
#[test]
fn a_quorum_owes_a_leader_without_being_called() {
    let text = "algorithm = \"quorum\"\nmembers = 3\ndead = [3]\ninitiators = \"none\"\n\
                quorum = { reluctant = [1, 2] }";
    let case = Scenario::from_toml("test", text).unwrap();
    let rules = Rules {
        budget: Budget::default(),
        timers: Timers::Bounded { tick: TICK, detection: 2 },
        fifo: false,
        properties: vec![Property::Termination],
        from: None,
        scope: None,
    };
    let plan = Plan { reduce: false, threads: 1, limits: Limits::default() };
    let report = doyen_check::check(&case, &rules, &plan, &|_| true);
    let broken = report.violation.map(|violation| violation.property);
    assert_eq!(broken, Some(Property::Termination));
}

/// Rounded up to a tick, a vote lease would be longer than it is, and a lease as well.
#[test]
fn clocked_timers_take_no_lease_that_is_not_whole_ticks() {
    let refusal = |promise: &str, timers: Timers| {
        let text = format!(
            "algorithm = \"quorum\"\nmembers = 3\nleader = 3\nquorum = {{ vote_lease = \"{promise}\" }}"
        );
        timers.suit(&Scenario::from_toml("test", &text).unwrap()).err()
    };
    let clocked = Timers::Clocked { tick: TICK, drift: 0 };
    assert_eq!(refusal("22ms", clocked), None);
    assert_eq!(
        refusal("21ms", clocked).unwrap(),
        "a lease of 17.182ms is not a whole number of ticks of 1ms, as clocked timers need; set vote_lease = \"22ms\" under [quorum] in a scenario"
    );
    assert_eq!(
        refusal("24.5ms", clocked).unwrap(),
        "a vote lease of 24.5ms is not a whole number of ticks of 1ms, as clocked timers need; set vote_lease = \"33ms\" under [quorum] in a scenario"
    );
    assert_eq!(refusal("21ms", Timers::Bounded { tick: TICK, detection: 2 }), None);
}
