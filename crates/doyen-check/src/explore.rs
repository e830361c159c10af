//! Checks a case: builds its model, searches it, and describes a violation step by step.

use doyen_core::layers::{Stack, StackConfig};
use doyen_sim::run;
use doyen_sim::scenario::Case;

use crate::model::step::{Step, StepText};
use crate::model::{Explorable, Model};
use crate::part::{self, Part, Scope};
use crate::property::Property;
use crate::rules::Rules;
use crate::scene::Scene;
use crate::search::space::{Space, Successors};
use crate::search::{self, Found, Limit, Plan, Progress, Watch};

/// The result of a check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// How much was explored.
    pub progress: Progress,
    /// The limit that stopped the search before everything was explored.
    pub limit: Option<Limit>,
    /// The first violation that was found.
    pub violation: Option<Violation>,
    /// Whether endless runs were searched for: if a property is about the end of runs, when everything was explored without
    /// a violation.
    pub sought_endless: bool,
}

/// A run that violates a property.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The property.
    pub property: Property,
    /// The steps to the violation.
    pub path: Vec<StepText>,
    /// The steps that then repeat forever; none if nothing is left to do.
    pub cycle: Vec<StepText>,
}

/// Checks `case` under `rules`.
pub fn check(case: &Case, rules: &Rules, plan: &Plan, watch: Watch<'_>) -> Report {
    with_model(case, rules, |_, model| report_on(model, plan, watch))
}

/// Checks any protocol: members with `config`, starting from `scene`, under `rules`.
pub fn explore<P: Explorable>(
    config: &P::Config,
    scene: &Scene<'_>,
    rules: &Rules,
    plan: &Plan,
    watch: Watch<'_>,
) -> Report {
    report_on(Model::<P>::new(config, scene, rules.clone()), plan, watch)
}

/// Which layers the members of `case` have in a model under `rules`, and how they are configured.
fn stack_config(case: &Case, rules: &Rules) -> StackConfig {
    let takes_snapshots = rules.budget.snapshots > 0;
    let tells = rules.budget.tells > 0 || rules.properties.contains(&Property::CausalOrder);
    match rules.scope.map(|scope| scope.part) {
        Some(Part::Votes) => StackConfig::Voter(case.config.clone()),
        Some(Part::Sessions) => StackConfig::VoterProcess(part::session_config(case)),
        Some(Part::Locks) => StackConfig::Locks(case.config.clone()),
        Some(Part::Leases | Part::Whole) => StackConfig::Bare(run::any_config(case)),
        None => run::stack_config(case, takes_snapshots, tells),
    }
}

/// Does something with the model of `case` under `rules`, and with the case as the scope of the rules has it.
pub(crate) fn with_model<T>(
    case: &Case,
    rules: &Rules,
    act: impl FnOnce(&Case, Model<'_, Stack>) -> T,
) -> T {
    let scoped = rules.scope.map(|scope| scope.apply(case, rules.timers));
    let case = scoped.as_ref().unwrap_or(case);
    let config = stack_config(case, rules);
    let model = match rules.from {
        None => Model::new(&config, &Scene::of(case), rules.clone()),
        Some(at) => {
            let snapshot = run::freeze(case, &config, at);
            Model::resume(&config, &Scene::at(case, at), snapshot, rules.clone())
        }
    };
    act(case, model)
}

fn report_on<P: Explorable>(mut model: Model<'_, P>, plan: &Plan, watch: Watch<'_>) -> Report {
    if plan.reduce {
        model.reduce_states();
    }
    let Found { progress, limit, violation, sought_endless, .. } = explore_all(&model, plan, watch);
    let violation = violation.map(|violation| describe(&mut model, &violation));
    Report { progress, limit, violation, sought_endless }
}

/// Searches, and searches again if the search found a link that the reduction did not assume, or dropped a message that
/// may matter.
pub(crate) fn explore_all<P: Explorable>(
    model: &Model<'_, P>,
    plan: &Plan,
    watch: Watch<'_>,
) -> Found<Step> {
    let mut spent = Progress::default();
    loop {
        let links = model.links_known();
        let plan = Plan { limits: plan.limits.left_after(&spent), ..plan.clone() };
        let mut found = match model.rules.scope.is_some_and(Scope::is_deep) {
            true => search::search_deep(model, &plan, watch),
            false => search::search(model, &plan, watch),
        };
        spent.elapsed += found.progress.elapsed;
        found.progress.elapsed = spent.elapsed;
        let misjudged = plan.reduce && model.links_known() > links && found.limit.is_none();
        if found.violation.is_some() || !misjudged && !found.void {
            return found;
        }
    }
}

/// A step of a violation.
struct Described {
    text: StepText,
    received: Option<u32>,
    /// The messages that it sent, if it was taken at once and not by the search.
    at_once: Option<Vec<u32>>,
}

/// A violation with its steps as text. It is walked through again with a worker that then knows every number in it, one
/// step at a time.
fn describe<P: Explorable>(
    model: &mut Model<'_, P>,
    violation: &search::Violation<Step>,
) -> Violation {
    let saturated = model.stop_saturating();
    let mut worker = model.worker();
    let mut state = model.start();
    let mut out = Successors::new();
    let mut described: Vec<Described> = Vec::new();
    for &step in violation.path.iter().chain(&violation.cycle) {
        if saturated {
            let mut taken = Vec::new();
            model.saturate_all(&mut worker, &mut state, Some(&mut taken));
            described.extend(taken.into_iter().map(|(step, sends)| {
                let (text, received) = (model.describe(&worker, &state, step), step.act.received());
                Described { text, received, at_once: Some(sends) }
            }));
        }
        model.steps(&mut worker, &state, false, &mut out);
        let next = out.list().iter().find(|next| next.step == step);
        let next = out.state(next.expect("the step is possible here")).to_vec();
        let (text, received) = (model.describe(&worker, &state, step), step.act.received());
        described.push(Described { text, received, at_once: None });
        state = next;
    }
    // Of the steps that were taken at once, those count that sent a message which was received.
    let mut received: Vec<u32> = Vec::new();
    let mut path: Vec<StepText> = Vec::new();
    for step in described.into_iter().rev() {
        let counts =
            step.at_once.is_none_or(|sends| sends.iter().any(|sent| received.contains(sent)));
        if counts {
            received.extend(step.received);
            path.push(step.text);
        }
    }
    path.reverse();
    let cycle = path.split_off(path.len() - violation.cycle.len());
    Violation { property: model.rules.properties[violation.claim], path, cycle }
}

#[cfg(test)]
mod tests {
    use doyen_sim::scenario::Scenario;

    use super::*;
    use crate::budget::Budget;
    use crate::search::Limits;
    use crate::timers::Timers;

    /// Searches breadth first without reduction, then depth first.
    fn both(text: &str, expiries: u8, property: Property, plan: &Plan) -> [Found<Step>; 2] {
        let case = Scenario::from_toml("test", text).expect("the scenario makes sense");
        let (budget, timers) = (Budget::default(), Timers::Free { expiries });
        let properties = vec![property];
        let rules = Rules { budget, timers, fifo: true, properties, from: None, scope: None };
        with_model(&case, &rules, |_, model| {
            let unreduced = Plan { reduce: false, ..plan.clone() };
            let broad = search::search(&model, &unreduced, &|_| true);
            [broad, search::search_deep(&model, plan, &|_| true)]
        })
    }

    fn plan(reduce: bool, limits: Limits) -> Plan {
        Plan { reduce, threads: 1, limits }
    }

    const RING: &str = "algorithm = \"chang-roberts\"\nmembers = 8\nring = \"descending\"\n\
                        initiators = \"all\"\nfifo = true";

    #[test]
    fn depth_first_counts_the_same_and_decides_the_same() {
        for reduce in [false, true] {
            let plan = plan(reduce, Limits::default());
            let [broad, deep] = both(RING, 0, Property::OneLeader, &plan);
            assert_eq!((broad.progress.states, broad.violation), (4_870, None));
            assert_eq!((deep.limit, deep.violation), (None, None));
            match reduce {
                true => assert!(deep.progress.states <= 64, "{:?}", deep.progress),
                false => assert_eq!(
                    (deep.progress.states, deep.progress.generated),
                    (broad.progress.states, broad.progress.generated)
                ),
            }
            for (initiators, is_broken) in [("[1]", true), ("[1, 2]", true), ("[3]", false)] {
                let bully =
                    format!("algorithm = \"bully\"\nmembers = 3\ninitiators = {initiators}");
                let [broad, deep] = both(&bully, 1, Property::OneLeader, &plan);
                assert_eq!(broad.violation.is_some(), is_broken, "{initiators}");
                assert_eq!(deep.violation.is_some(), is_broken, "{initiators}");
            }
        }
    }

    #[test]
    fn depth_first_stops_at_its_limits() {
        let ring = RING.replace('8', "6");
        let explore = |limits| both(&ring, 0, Property::OneLeader, &plan(false, limits));
        let [_, deep] = explore(Limits { depth: Some(27), ..Limits::default() });
        let progress = deep.progress;
        assert_eq!((deep.limit, progress.states, progress.depth), (None, 435, 27));
        let [_, deep] = explore(Limits { depth: Some(26), ..Limits::default() });
        let progress = deep.progress;
        assert_eq!((deep.limit, progress.states), (Some(Limit::Depth), 434));
        assert_eq!(progress.frontier, 1);
        let [_, deep] = explore(Limits { states: Some(100), ..Limits::default() });
        assert_eq!((deep.limit, deep.progress.states), (Some(Limit::States), 100));
        let [_, deep] = explore(Limits { memory: Some(3_000), ..Limits::default() });
        assert_eq!(deep.limit, Some(Limit::Memory));
    }
}
