//! Makes the case of a violation smaller: fewer members, fewer faults, fewer initiators.
//!
//! A breadth-first search finds a run with the fewest steps, so what remains to shrink is the case. Each part of it is
//! removed in turn, and if the property is still broken without it, it stays removed. In the end no single part can be
//! removed. An attempt that takes too long counts as one that found nothing. An interrupt, or `watch`, stops everything:
//! the result is then the smallest case so far.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::campaign::shrink::remove_member;
use crate::explore::{Report, Violation, check};
use crate::rules::Rules;
use crate::search::{Limits, Plan, Progress, Watch};
use crate::timers::Timers;
use doyen_sim::scenario::{Case, Initiator, Initiators, Scenario};

/// The time for all attempts together, and for each.
const MAX_TIME: Duration = Duration::from_secs(20);
const MAX_TIME_OF_ATTEMPT: Duration = Duration::from_secs(5);

/// How many attempts may reach the limit of states: all attempts together explore no more than these.
const MAX_FULL_ATTEMPTS: u64 = 10;

/// A violation, and the smallest case in which it was found.
#[derive(Clone, PartialEq, Debug)]
pub struct Minimized {
    /// The case, as a scenario.
    pub scenario: Scenario,
    /// The rules of the exploration.
    pub rules: Rules,
    /// The violation.
    pub violation: Violation,
    /// The number of searches.
    pub attempts: u32,
    /// The number of states that they explored together.
    pub states: u64,
}

/// Minimizes a violation that was found in the case of `scenario` under `rules`. The limits of `plan` hold for each attempt;
/// `watch` is told of the progress of each.
pub fn minimize(
    scenario: &Scenario,
    rules: &Rules,
    violation: Violation,
    plan: &Plan,
    watch: Watch<'_>,
) -> Minimized {
    let began = plan.limits.now();
    let rules = Rules { properties: vec![violation.property], ..rules.clone() };
    let scenario = scenario.clone();
    let mut smallest = Minimized { scenario, rules, violation, attempts: 0, states: 0 };
    let is_stopped = AtomicBool::new(false);
    let watch = |progress: &Progress| {
        let goes_on = watch(progress);
        is_stopped.fetch_or(!goes_on, Ordering::Relaxed);
        goes_on
    };
    // With many threads it is random which of several equally short runs is found.
    if plan.threads > 1 {
        let (scenario, rules) = (smallest.scenario.clone(), smallest.rules.clone());
        smallest.attempt(scenario, rules, plan, &watch);
    }
    let has_time = || plan.limits.now().saturating_sub(began) < MAX_TIME;
    let goes_on =
        || has_time() && !plan.limits.is_interrupted() && !is_stopped.load(Ordering::Relaxed);
    while goes_on() {
        let smaller = smaller(&smallest.scenario, &smallest.rules);
        let shrunk = smaller
            .into_iter()
            .any(|(scenario, rules)| goes_on() && smallest.attempt(scenario, rules, plan, &watch));
        if !shrunk {
            break;
        }
    }
    smallest
}

impl Minimized {
    /// Takes another case instead, if the property is broken there too.
    fn attempt(&mut self, scenario: Scenario, rules: Rules, plan: &Plan, watch: Watch<'_>) -> bool {
        let Ok(case) = scenario.resolve() else { return false };
        let is_spent = |most: u64| self.states >= most.saturating_mul(MAX_FULL_ATTEMPTS);
        if plan.limits.states.is_some_and(is_spent) {
            return false;
        }
        self.attempts += 1;
        let limits = Limits { time: Some(MAX_TIME_OF_ATTEMPT), ..plan.limits };
        // One thread finds the same run every time.
        let plan = Plan { threads: 1, limits, ..plan.clone() };
        let Report { violation, progress, .. } = check(&case, &rules, &plan, watch);
        self.states += progress.states;
        let Some(violation) = violation else { return false };
        (self.scenario, self.rules, self.violation) = (scenario, rules, violation);
        true
    }
}

/// Every case with one part less.
fn smaller(scenario: &Scenario, rules: &Rules) -> Vec<(Scenario, Rules)> {
    let Ok(case) = scenario.resolve() else { return Vec::new() };
    let fewer_faults = with_less(rules).into_iter().map(|it| (scenario.clone(), it));
    if rules.from.is_some() {
        // The simulation up to that moment is given.
        return fewer_faults.collect();
    }
    let fewer_members = without_members(scenario, &case).into_iter();
    let fewer_starters = without_initiators(scenario, &case).into_iter();
    let fewer_starters = fewer_starters.chain(without_requests(scenario, &case));
    let with_rules = |scenario: Scenario| (scenario, rules.clone());
    let fewer = fewer_members.map(with_rules).chain(fewer_faults);
    fewer.chain(fewer_starters.map(with_rules)).collect()
}

fn without_members(scenario: &Scenario, case: &Case) -> Vec<Scenario> {
    let ids: Vec<u32> = case.members().iter().map(|id| id.0).collect();
    let droppable =
        ids.iter().filter(|&&id| ids.len() > 1 && case.leader.is_none_or(|it| it.0 != id));
    let without = |&gone: &u32| {
        let mut fewer = scenario.clone();
        let others: Vec<u32> = ids.iter().copied().filter(|&id| id != gone).collect();
        remove_member(&mut fewer, gone, &others);
        fewer
    };
    droppable.map(without).collect()
}

fn without_initiators(scenario: &Scenario, case: &Case) -> Vec<Scenario> {
    let ids: Vec<u32> = case.initiators.iter().map(|(id, _)| id.0).collect();
    if ids.len() < 2 {
        return Vec::new();
    }
    let without = |gone: &u32| {
        let others = ids.iter().filter(|id| *id != gone).map(|&id| Initiator::AtOnce(id));
        let initiators = Some(Initiators::Listed(others.collect()));
        Scenario { initiators, ..scenario.clone() }
    };
    ids.iter().map(without).collect()
}

/// Fewer requests to enter the critical section: of one member less, or one less of each.
fn without_requests(scenario: &Scenario, case: &Case) -> Vec<Scenario> {
    let Some(requests) = &case.requests else { return Vec::new() };
    let ids: Vec<u32> = requests.who.iter().map(|(id, _)| id.0).collect();
    let of = |listed: &mut dyn Iterator<Item = u32>, repeat: u32| Scenario {
        requests: Some(Initiators::Listed(listed.map(Initiator::AtOnce).collect())),
        repeat: (repeat > 1).then_some(repeat),
        ..scenario.clone()
    };
    let without = |gone: usize| {
        let others = ids.iter().enumerate().filter(move |&(place, _)| place != gone);
        of(&mut others.map(|(_, &id)| id), requests.repeat)
    };
    let mut fewer: Vec<Scenario> = match ids.len() {
        0 | 1 => Vec::new(),
        count => (0..count).map(without).collect(),
    };
    if requests.repeat > 1 {
        fewer.push(of(&mut ids.iter().copied(), requests.repeat - 1));
        // All ask less often, or some of them: each request is one of its own then.
        let each = ids.iter().flat_map(|&id| (0..requests.repeat).map(move |_| id));
        fewer.push(of(&mut each.skip(1), 1));
    }
    fewer
}

/// The rules with one fault or one expiry less.
fn with_less(rules: &Rules) -> Vec<Rules> {
    let fewer_faults = rules.budget.each_less().map(|budget| Rules { budget, ..rules.clone() });
    let fewer_expiries = match rules.timers {
        Timers::Free { expiries: expiries @ 1.. } => Some(Timers::Free { expiries: expiries - 1 }),
        _ => None,
    };
    fewer_faults.chain(fewer_expiries.map(|timers| Rules { timers, ..rules.clone() })).collect()
}

#[cfg(test)]
mod tests {
    use doyen_core::registry::Algorithm;
    use doyen_sim::scenario::MemberList;

    use super::*;
    use crate::budget::Budget;
    use crate::property::Property;

    /// F15 in a ring of five, with more faults and initiators than it takes.
    fn found() -> (Scenario, Rules, Plan, Report) {
        let scenario = Scenario {
            algorithm: Some(Algorithm::ChangRoberts),
            members: Some(MemberList::Count(5)),
            initiators: Some(Initiators::All),
            fifo: Some(true),
            ..Scenario::default()
        };
        let budget = Budget { crashes: 2, losses: 1, ..Budget::default() };
        let properties = vec![Property::Termination];
        let timers = Timers::Free { expiries: 1 };
        let rules = Rules { budget, timers, fifo: true, properties, from: None, scope: None };
        let limits = Limits::default();
        let plan = Plan { reduce: true, threads: 1, limits };
        let case = scenario.resolve().expect("a scenario that makes sense");
        let report = check(&case, &rules, &plan, &|_| true);
        (scenario, rules, plan, report)
    }

    /// F15 needs one crash, two members that are left and one initiator.
    #[test]
    fn nothing_that_remains_can_be_left_out() {
        let (scenario, rules, plan, report) = found();
        let violation = report.violation.expect("a violation");
        let smallest = minimize(&scenario, &rules, violation, &plan, &|_| true);
        assert_eq!(smallest.rules.budget.total(), 1, "{smallest:?}");
        assert_eq!(smallest.rules.timers, Timers::Free { expiries: 0 });
        let shrinks =
            |(scenario, rules)| smallest.clone().attempt(scenario, rules, &plan, &|_| true);
        assert!(!smaller(&smallest.scenario, &smallest.rules).into_iter().any(shrinks));
    }

    #[test]
    fn whoever_watches_ends_it_and_gets_the_smallest_so_far() {
        let (scenario, rules, plan, report) = found();
        let violation = report.violation.expect("a violation");
        let stopped = minimize(&scenario, &rules, violation.clone(), &plan, &|_| false);
        assert_eq!((stopped.attempts, &stopped.violation), (1, &violation), "no second attempt");
        let asked = AtomicBool::new(false);
        let once = |_: &Progress| !asked.fetch_or(true, Ordering::Relaxed);
        let stopped = minimize(&scenario, &rules, violation, &plan, &once);
        assert!(stopped.attempts <= 2, "{stopped:?}");
    }

    #[test]
    fn attempts_that_reach_the_limit_of_states_are_few() {
        let (scenario, rules, plan, report) = found();
        let violation = report.violation.expect("a violation");
        let limits = Limits { states: Some(1), ..plan.limits };
        let plan = Plan { limits, ..plan };
        let cut = minimize(&scenario, &rules, violation, &plan, &|_| true);
        assert!(u64::from(cut.attempts) <= MAX_FULL_ATTEMPTS, "{cut:?}");
    }
}
