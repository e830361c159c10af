//! Follows a schedule through the machine, step by step, and judges where it leads.

use super::super::machine::{Explorable, Hand, Machine, Step};
use super::super::property::Property;
use super::super::schedule::StepText;
use super::super::space::{Claim, Space, Successors};

/// How many of the possible steps an error names.
const MOST_NAMED: usize = 4;

/// A way through the machine.
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) steps: Vec<Step>,
    /// The state before the first step, and after each.
    pub(super) states: Vec<Vec<u32>>,
    /// A step broke a claim about steps.
    misstep: bool,
}

impl Walk {
    /// The state at the end.
    pub(super) fn state(&self) -> &[u32] {
        self.states.last().expect("a walk begins somewhere")
    }
}

/// Takes the steps of a schedule. If one cannot be taken, names its place and the reason.
pub(super) fn follow<P: Explorable>(
    machine: &Machine<'_, P>,
    hand: &mut Hand<P>,
    schedule: &[StepText],
) -> Result<Walk, (usize, String)> {
    let mut walk = Walk { steps: Vec::new(), states: vec![machine.start()], misstep: false };
    let mut out = Successors::new();
    for (index, wanted) in schedule.iter().enumerate() {
        machine.steps(hand, walk.state(), false, &mut out);
        let described = |step| machine.describe(hand, walk.state(), step);
        let mut meant = out.list().iter().filter(|next| wanted.means(&described(next.step)));
        let Some(next) = meant.next() else {
            let whole = out.list().iter().filter(|next| next.step.crash_after == 0);
            let possible: Vec<StepText> = whole.map(|next| described(next.step)).collect();
            return Err((index, impossible(wanted, &possible)));
        };
        if meant.next().is_some() {
            let lines = out.list().iter().map(|next| described(next.step));
            let fitting: Vec<String> = lines
                .filter(|step| wanted.means(step))
                .map(|step| format!("`{}`", step.line()))
                .collect();
            let fitting = fitting.join(" or ");
            return Err((index, format!("`{wanted}` may mean several steps; write {fitting}")));
        }
        let reached = out.state(next).to_vec();
        walk.misstep |= next.breaks.is_some();
        walk.steps.push(next.step);
        walk.states.push(reached);
    }
    Ok(walk)
}

fn impossible(wanted: &StepText, possible: &[StepText]) -> String {
    let instead = named(possible).unwrap_or_else(|| "nothing".to_owned());
    format!(
        "`{wanted}` cannot happen here, but {instead} can: the file was edited, or belongs to another version of the \
         algorithm; check again"
    )
}

/// The first few of some steps, each once.
fn named(steps: &[StepText]) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    for step in steps {
        let name = format!("`{step}`");
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let more = if names.len() > MOST_NAMED { " and others" } else { "" };
    names.truncate(MOST_NAMED);
    (!names.is_empty()).then(|| names.join(", ") + more)
}

/// Why a walk is not a whole run, if it is not: it ends while something is left to do, or what it repeats from its state
/// `home` on cannot go on for ever.
pub(super) fn gap<P: Explorable>(
    machine: &Machine<'_, P>,
    hand: &mut Hand<P>,
    walk: &Walk,
    home: usize,
) -> Option<String> {
    let repeated = &walk.states[home..];
    if repeated.len() == 1 {
        return unrest(machine, hand, walk.state());
    }
    let (first, last) = (&repeated[0], walk.state());
    if machine.fingerprint(hand, first) != machine.fingerprint(hand, last) {
        return Some("what it repeats for ever does not lead back to where it begins".to_owned());
    }
    let owed = owed(machine, hand, repeated, &walk.steps[home..]);
    let mut out = Successors::new();
    machine.steps(hand, first, false, &mut out);
    let put_off = named(&due(machine, hand, (first, &out), |duty| owed.contains(&duty)))?;
    Some(format!("what it repeats for ever puts off {put_off}, which can happen all the time"))
}

/// What is left to do in a state, if anything is.
fn unrest<P: Explorable>(
    machine: &Machine<'_, P>,
    hand: &mut Hand<P>,
    state: &[u32],
) -> Option<String> {
    let mut out = Successors::new();
    machine.steps(hand, state, false, &mut out);
    if let Some(steps) = named(&due(machine, hand, (state, &out), |_| true)) {
        return Some(format!("it ends before it is at rest: {steps} can still happen"));
    }
    let stranded =
        "it ends before it is at rest: a timer is armed that has expired as often as it may";
    out.is_stranded().then(|| stranded.to_owned())
}

/// Those of the possible steps that must be taken at last and by their name are `meant`.
fn due<P: Explorable>(
    machine: &Machine<'_, P>,
    hand: &Hand<P>,
    (state, possible): (&[u32], &Successors<Step>),
    meant: impl Fn(Step) -> bool,
) -> Vec<StepText> {
    let steps = possible.list().iter().map(|next| next.step);
    let due = steps.filter(|&step| machine.duty(step).is_some_and(&meant));
    due.map(|step| machine.describe(hand, state, step)).collect()
}

/// Whether a walk breaks `property`, the only one of the machine; from its state `home` on it is repeated for ever, if
/// it goes on from there.
pub(super) fn breaks<P: Explorable>(
    machine: &Machine<'_, P>,
    hand: &mut Hand<P>,
    walk: &Walk,
    home: usize,
    property: Property,
) -> bool {
    let members = machine.terms.members;
    let mut holds = |state: &Vec<u32>| {
        machine.fingerprint(hand, state);
        property.holds(members, &machine.views(hand, state))
    };
    let ever = walk.states.iter().any(&mut holds);
    let always = walk.states.iter().all(&mut holds);
    let at_end = holds(&walk.states[home]);
    let repeated = &walk.states[home..];
    let rests = gap(machine, hand, walk, home).is_none();
    let views = |hand: &Hand<P>, state: &Vec<u32>| machine.views(hand, state);
    let moody = repeated.iter().any(|state| views(hand, state) != views(hand, &repeated[0]));
    match property.claim() {
        Claim::NoStep => walk.misstep,
        Claim::Always => !always || walk.misstep,
        Claim::AtRest => rests && !moody && !at_end,
        Claim::Rests => rests && (moody || !at_end),
        Claim::Eventually => rests && !ever,
    }
}

/// The steps that stay possible in `states`, must be taken at last and are not among `steps`.
fn owed<P: Explorable>(
    machine: &Machine<'_, P>,
    hand: &mut Hand<P>,
    states: &[Vec<u32>],
    steps: &[Step],
) -> Vec<Step> {
    let mut owed = duties(machine, hand, &states[0]);
    for state in states {
        let possible = duties(machine, hand, state);
        owed.retain(|duty| possible.contains(duty));
    }
    owed.retain(|&duty| !steps.iter().any(|&step| machine.duty(step) == Some(duty)));
    owed
}

/// The steps that must be taken at last, of those possible in a state.
fn duties<P: Explorable>(machine: &Machine<'_, P>, hand: &mut Hand<P>, state: &[u32]) -> Vec<Step> {
    let mut out = Successors::new();
    machine.steps(hand, state, false, &mut out);
    out.list().iter().filter_map(|next| machine.duty(next.step)).collect()
}
