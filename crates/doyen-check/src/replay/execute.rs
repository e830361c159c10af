//! Executes a schedule on the model, step by step, and judges the run.

use crate::model::step::{Step, StepText};
use crate::model::{Explorable, Model, Worker};
use crate::property::{Fact, Property};
use crate::search::space::{Claim, Space, Successor, Successors};

/// An error names at most this many of the possible steps.
const MAX_NAMED: usize = 4;

/// A run of the model.
#[derive(Debug)]
pub(super) struct Execution {
    pub(super) steps: Vec<Step>,
    /// The state before the first step, and after each.
    pub(super) states: Vec<Vec<u32>>,
    /// The facts by which the last step that breaks a claim about steps does so.
    pub(super) breach: Option<Vec<Fact>>,
}

impl Execution {
    /// The last state.
    pub(super) fn state(&self) -> &[u32] {
        self.states.last().expect("a run has a first state")
    }
}

/// Takes the steps of a schedule. If one is impossible, returns its index and the reason.
pub(super) fn execute<P: Explorable>(
    model: &Model<'_, P>,
    worker: &mut Worker<P>,
    schedule: &[StepText],
) -> Result<Execution, (usize, String)> {
    let mut run = Execution { steps: Vec::new(), states: vec![model.start()], breach: None };
    let mut out = Successors::new();
    for (index, line) in schedule.iter().enumerate() {
        let state = run.state().to_vec();
        model.steps(worker, &state, false, &mut out);
        let described = |step| model.describe(worker, &state, step);
        let fits = |next: &&Successor<Step>| line.fits(&described(next.step));
        let mut fitting = out.list().iter().filter(fits);
        let (Some(next), None) = (fitting.next(), fitting.next()) else {
            let whole = out.list().iter().filter(|next| next.step.crash_after == 0);
            let possible = named(whole.map(|next| format!("`{}`", described(next.step).line())));
            let possible = possible.as_deref().unwrap_or("nothing");
            let problem = match out.list().iter().find(fits) {
                Some(_) => "may mean several steps; add the fingerprint",
                None => "cannot happen here",
            };
            return Err((
                index,
                format!(
                    "`{}` {problem}; possible: {possible}. If the file was not edited, it belongs to another version of the \
                     algorithm: run the check again to make a new file",
                    line.line(),
                ),
            ));
        };
        if next.breaks.is_some() {
            run.breach = model.breach(worker, &state, next.step).map(|(_, facts)| facts);
        }
        run.steps.push(next.step);
        run.states.push(out.state(next).to_vec());
    }
    Ok(run)
}

/// The first few of some names, each once.
fn named(all: impl Iterator<Item = String>) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    for name in all {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let more = if names.len() > MAX_NAMED { " and others" } else { "" };
    names.truncate(MAX_NAMED);
    (!names.is_empty()).then(|| names.join(", ") + more)
}

/// Why a run is incomplete, if it is: it ends while something is left to do, or the steps from state `home` on cannot
/// repeat forever.
pub(super) fn gap<P: Explorable>(
    model: &Model<'_, P>,
    worker: &mut Worker<P>,
    run: &Execution,
    home: usize,
) -> Option<String> {
    let repeated = &run.states[home..];
    let mut out = Successors::new();
    let mut named_among = |worker: &mut Worker<P>, state: &[u32], is: &dyn Fn(Step) -> bool| {
        model.steps(worker, state, false, &mut out);
        let steps = out.list().iter().map(|next| next.step);
        let due = steps.filter(|&step| model.fairness(step).is_some_and(is));
        let names = named(due.map(|step| format!("`{}`", model.describe(worker, state, step))));
        (names, out.is_stranded())
    };
    if repeated.len() == 1 {
        return match named_among(worker, run.state(), &|_| true) {
            (Some(steps), _) => {
                Some(format!("it ends before it is at rest: {steps} can still happen"))
            }
            (None, true) => Some(
                "it ends before it is at rest: a timer is armed that may not expire any more"
                    .to_owned(),
            ),
            (None, false) => None,
        };
    }
    let (first, last) = (&repeated[0], run.state());
    if model.fingerprint(worker, first) != model.fingerprint(worker, last) {
        return Some(
            "the steps that repeat forever do not lead back to where they begin".to_owned(),
        );
    }
    let owed = owed(model, worker, repeated, &run.steps[home..]);
    let (put_off, _) = named_among(worker, first, &|step| owed.contains(&step));
    let put_off = put_off?;
    Some(format!("the steps that repeat forever never take {put_off}, which stays possible"))
}

/// The steps that stay possible in `states`, must be taken eventually and are not among `steps`.
fn owed<P: Explorable>(
    model: &Model<'_, P>,
    worker: &mut Worker<P>,
    states: &[Vec<u32>],
    steps: &[Step],
) -> Vec<Step> {
    let mut out = Successors::new();
    let mut owed: Option<Vec<Step>> = None;
    for state in states {
        model.steps(worker, state, false, &mut out);
        let fair = out.list().iter().filter_map(|next| model.fairness(next.step));
        let possible: Vec<Step> = fair.collect();
        match &mut owed {
            None => owed = Some(possible),
            Some(owed) => owed.retain(|step| possible.contains(step)),
        }
    }
    let mut owed = owed.unwrap_or_default();
    owed.retain(|&fair| !steps.iter().any(|&step| model.fairness(step) == Some(fair)));
    owed
}

/// Whether a run breaks `property`, the only one of the model. From its state `home` on it repeats forever, if it
/// continues from there.
pub(super) fn breaks<P: Explorable>(
    model: &Model<'_, P>,
    worker: &mut Worker<P>,
    run: &Execution,
    home: usize,
    property: Property,
) -> bool {
    let is_complete = gap(model, worker, run, home).is_none();
    let seen = |state: &Vec<u32>| model.seen(worker, state);
    let holds = |state: &Vec<u32>| property.holds(model.context.members, &seen(state));
    let repeated = &run.states[home..];
    let at_end = holds(&repeated[0]);
    let is_restless = repeated.iter().any(|state| seen(state) != seen(&repeated[0]));
    match property.claim() {
        Claim::NoStep => run.breach.is_some(),
        Claim::Always => run.breach.is_some() || !run.states.iter().all(holds),
        Claim::AtRest => is_complete && !is_restless && !at_end,
        Claim::Rests => is_complete && (is_restless || !at_end),
    }
}
