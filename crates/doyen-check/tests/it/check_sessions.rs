//! Sessions, explored: members restart, lose their disks, and are replaced while the old process runs on. See
//! `part.rs` for what that is, and `model/processes.rs` for what an old process counts as.
//!
//! Every rule on which sessions rest is taken away, and a search must notice; what it finds is played again from a file.
//! `model/tests.rs` has one more, of two processes with the same incarnation.

use doyen_check::budget::Budget;
use doyen_check::counterexample::Counterexample;
use doyen_check::part::{Part, Scope};
use doyen_check::property::Property;
use doyen_check::search::{Limits, Plan};
use doyen_check::{Report, Rules};
use doyen_core::config::rules::Rule;

#[derive(Clone, Debug)]
struct Subject {
    members: u32,
    rules: Rules,
    plan: Plan,
}

impl Subject {
    fn new(members: u32, without: Option<Rule>) -> Self {
        let scope = Scope { terms: 1, without, ..Scope::new(Part::Sessions) };
        let limits = Limits { states: Some(400_000), ..Limits::default() };
        let plan = Plan { reduce: true, threads: 2, limits };
        Self { members, rules: Rules::of(scope, false), plan }
    }

    /// What `doyen check --without RULE` explores.
    fn that_misses(rule: Rule) -> Self {
        let scope = Scope::that_misses(rule).expect("an exploration that misses it");
        let subject = Self::new(scope.members(), Some(rule));
        assert_eq!(subject.rules.scope, Some(scope));
        subject
    }

    /// With another budget.
    fn with(mut self, change: impl FnOnce(&mut Budget)) -> Self {
        change(&mut self.rules.budget);
        self
    }

    fn unreduced(mut self) -> Self {
        self.plan.reduce = false;
        self
    }

    fn explore(&self) -> Report {
        let scope = self.rules.scope.expect("a part of the quorum");
        let case = scope.scenario(self.members).resolve().expect("a scene that makes sense");
        let report = doyen_check::check(&case, &self.rules, &self.plan, &|_| true);
        println!("{} members, {scope}, {}: {:?}", self.members, self.rules.budget, report.progress);
        report
    }

    /// Everything is explored, and nothing is broken.
    fn holds(&self) {
        let report = self.explore();
        let broken = report.violation.map(|violation| violation.property);
        assert_eq!((report.limit, broken), (None, None), "{self:?}");
    }

    /// Two processes lead in one term, or a member has voted twice in it, on which that rests; and again when what was found
    /// is read from a file.
    fn has_two_leaders(&self) {
        let scope = self.rules.scope.expect("a part of the quorum");
        let violation = self.explore().violation.expect("two leaders or two votes of one term");
        let scenario = scope.scenario(self.members);
        let text = Counterexample::new(scenario, &self.rules, violation).to_toml();
        let replay = Counterexample::parse("found.toml", &text).unwrap().replay().unwrap();
        let expected = [Property::OneLeaderPerTerm, Property::OneVotePerTerm];
        assert!(replay.broken && expected.contains(&replay.property), "{text}");
        assert_eq!(replay.facts.len(), 2, "{text}");
    }
}

#[test]
fn a_member_is_replaced_or_rejoins_and_one_leads_in_each_term() {
    Subject::new(3, None).holds();
    let rejoins = |budget: &mut Budget| {
        (budget.replacements, budget.rejoins) = (0, 1);
        (budget.crashes, budget.restarts) = (1, 1);
    };
    Subject::new(3, None).with(rejoins).holds();
    Subject::new(2, None).with(|budget| (budget.crashes, budget.restarts) = (1, 1)).holds();
}

#[test]
fn two_terms_are_safe_as_far_as_a_test_goes() {
    let mut subject = Subject::new(3, None);
    subject.rules.scope = Some(Scope::new(Part::Sessions));
    subject.plan.limits.states = Some(60_000);
    assert!(subject.explore().violation.is_none());
}

#[test]
fn a_rule_of_sessions_less_makes_two_leaders_of_one_term() {
    for rule in [Rule::MetSessionOnly, Rule::IncarnationsRise, Rule::SessionIsStored] {
        Subject::that_misses(rule).has_two_leaders();
    }
}

#[test]
fn a_rule_of_rejoining_less_makes_two_leaders_where_two_members_are_replaced() {
    Subject::that_misses(Rule::RejoinTakesOver).has_two_leaders();
    Subject::that_misses(Rule::RejoinIsConfirmed).has_two_leaders();
}

/// Who writes to a session knows it, and so was alive since it began: an answer proves nothing more. The rule is there so
/// that no recording leads a process to another address, which is not explored.
#[test]
fn no_election_depends_on_the_questions_that_a_session_asks() {
    Subject::new(3, Some(Rule::ProvenSession)).holds();
    let restarts = |budget: &mut Budget| (budget.crashes, budget.restarts) = (1, 1);
    Subject::new(2, Some(Rule::ProvenSession)).with(restarts).holds();
}

/// What no rule prevents, and an operator must.
#[test]
fn two_members_cannot_tell_an_old_process_nor_anybody_a_clone() {
    let replaced = |budget: &mut Budget| budget.replacements = 2;
    Subject::new(2, None).with(replaced).has_two_leaders();
    let lost = |budget: &mut Budget| (budget.crashes, budget.rejoins) = (1, 1);
    Subject::new(2, None).with(lost).has_two_leaders();
    let cloned = |budget: &mut Budget| (budget.replacements, budget.clones) = (0, 1);
    Subject::new(3, None).with(cloned).has_two_leaders();
}

/// With two members there is an end to both ways.
#[test]
fn with_any_rule_less_reductions_find_what_none_finds() {
    let rules = [
        Rule::ProvenSession,
        Rule::MetSessionOnly,
        Rule::IncarnationsRise,
        Rule::SameSessionOnly,
        Rule::SessionIsStored,
        Rule::RejoinTakesOver,
        Rule::RejoinIsConfirmed,
        Rule::RejoinVotesLater,
        Rule::OneVotePerTerm,
        Rule::VoteIsStored,
    ];
    let rejoins = |budget: &mut Budget| {
        (budget.replacements, budget.rejoins) = (0, 1);
        (budget.crashes, budget.restarts) = (1, 1);
    };
    let replaced = |budget: &mut Budget| {
        (budget.replacements, budget.rejoins) = (1, 0);
        (budget.crashes, budget.restarts) = (0, 0);
    };
    let mut found = 0;
    for without in rules.into_iter().map(Some).chain([None]) {
        for subject in
            [Subject::new(2, without).with(rejoins), Subject::new(2, without).with(replaced)]
        {
            let [fewer, all] =
                [subject.clone(), subject.clone().unreduced()].map(|subject| subject.explore());
            let [one, other] = [&fewer, &all].map(|report| report.violation.is_some());
            assert_eq!((fewer.limit, all.limit), (None, None), "{subject:?}");
            assert_eq!(one, other, "{subject:?}");
            found += usize::from(one);
        }
    }
    assert!(found >= 4, "only {found} were found: this shows little");
}
