//! Makes a violation smaller: fewer members, fewer faults, fewer who begin.
//!
//! A breadth-first search finds a run with the fewest steps. What is left to shrink is the case itself: each part of it
//! is taken away in turn, and if the property is still broken without it, it stays away. So nothing that remains can be
//! left out. A search that takes too long counts as one that found nothing; whoever interrupts gets the least so far.

use std::time::{Duration, Instant};

use super::search::{Limits, Plan};
use super::{Report, Rules, Timers, Violation, check};
use doyen_sim::scenario::{Case, Initiator, Initiators, MemberList, RingOrder, Scenario};

/// How long shrinking may take at most, in all and at each attempt.
const PATIENCE: Duration = Duration::from_secs(20);
const ATTEMPT: Duration = Duration::from_secs(5);

/// A violation, and the least case in which it was found.
#[derive(Clone, PartialEq, Debug)]
pub struct Least {
    /// The case, as it would be written.
    pub scenario: Scenario,
    /// What may go wrong in it.
    pub rules: Rules,
    /// The violation.
    pub violation: Violation,
    /// How many smaller cases were searched.
    pub attempts: u32,
}

/// Shrinks a violation that was found in the case of `scenario` under `rules`.
pub fn shrink(scenario: &Scenario, rules: &Rules, violation: Violation, plan: &Plan) -> Least {
    let began = Instant::now();
    let rules = Rules { properties: vec![violation.property], ..rules.clone() };
    let mut least = Least { scenario: scenario.clone(), rules, violation, attempts: 0 };
    // Found depth first, a run may be needlessly long; found by many threads, it is one of many as short.
    if plan.depth_first || plan.threads > 1 {
        let (scenario, rules) = (least.scenario.clone(), least.rules.clone());
        least.attempt(scenario, rules, plan);
    }
    let goes_on = || began.elapsed() < PATIENCE && !plan.limits.is_interrupted();
    while goes_on() {
        let smaller = smaller(&least.scenario, &least.rules);
        let shrunk = smaller
            .into_iter()
            .any(|(scenario, rules)| goes_on() && least.attempt(scenario, rules, plan));
        if !shrunk {
            break;
        }
    }
    least
}

impl Least {
    /// Takes another case instead, if the property is broken there too.
    fn attempt(&mut self, scenario: Scenario, rules: Rules, plan: &Plan) -> bool {
        let Ok(case) = scenario.resolve() else { return false };
        self.attempts += 1;
        let limits = Limits { time: Some(ATTEMPT), ..plan.limits };
        // One thread finds the same run every time.
        let plan = Plan { depth_first: false, threads: 1, limits, ..plan.clone() };
        let Report { violation: Some(violation), .. } = check(&case, &rules, &plan, &|_| {}) else {
            return false;
        };
        (self.scenario, self.rules, self.violation) = (scenario, rules, violation);
        true
    }
}

/// Every case that lacks one thing.
fn smaller(scenario: &Scenario, rules: &Rules) -> Vec<(Scenario, Rules)> {
    let Ok(case) = scenario.resolve() else { return Vec::new() };
    let fewer_faults = with_less(rules).into_iter().map(|it| (scenario.clone(), it));
    if rules.from.is_some() {
        // What has happened before is given.
        return fewer_faults.collect();
    }
    let fewer_members = without_members(scenario, &case).into_iter();
    let fewer_starters = without_initiators(scenario, &case).into_iter();
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
        let counted = others.iter().copied().eq(1..=others.len() as u32);
        fewer.members = Some(match counted {
            true => MemberList::Count(others.len() as u64),
            false => MemberList::Listed(others),
        });
        fewer.dead.retain(|&id| id != gone);
        fewer.attr.remove(&gone.to_string());
        if let Some(RingOrder::Listed(ring)) = &mut fewer.ring {
            ring.retain(|&id| id != gone);
        }
        if let Some(Initiators::Listed(initiators)) = &mut fewer.initiators {
            initiators.retain(|initiator| id_of(initiator) != gone);
        }
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

fn id_of(initiator: &Initiator) -> u32 {
    match initiator {
        Initiator::AtOnce(member) | Initiator::At { member, .. } => *member,
    }
}

/// The rules with one fault less, or one expiry less.
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

    use super::*;
    use crate::budget::Budget;
    use crate::property::Property;

    /// F15 needs one crash, two who are left and one who asks: all else goes.
    #[test]
    fn nothing_that_remains_can_be_left_out() {
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
        let plan = Plan { depth_first: false, reduce: true, threads: 1, limits };
        let case = scenario.resolve().expect("a scenario that makes sense");
        let violation = check(&case, &rules, &plan, &|_| {}).violation.expect("a violation");
        let least = shrink(&scenario, &rules, violation, &plan);
        assert_eq!(least.rules.budget.total(), 1, "{least:?}");
        assert_eq!(least.rules.timers, Timers::Free { expiries: 0 });
        assert!(
            smaller(&least.scenario, &least.rules)
                .into_iter()
                .all(|(scenario, rules)| { !least.clone().attempt(scenario, rules, &plan) })
        );
    }
}
