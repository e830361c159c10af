//! Finds the steps of the machine that a schedule tells of, and judges where they lead.
//!
//! A schedule is in words, and words may fit several steps: two messages under way may read the same and yet differ
//! in their age, or in what they do not print. So every way that fits is followed, side by side; ways that meet
//! become one, unless what is judged tells them apart. If there are more than can be followed, nothing is said that
//! those left out could contradict.

use super::super::machine::{Explorable, Hand, Machine, Step};
use super::super::property::Property;
use super::super::schedule::Move;
use super::super::space::{Claim, Space, Successors};

/// The most ways that are followed at once.
pub(super) const MOST_WAYS: usize = 256;

/// How many of the possible steps an error names.
const MOST_NAMED: usize = 4;

/// A way through the machine.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    pub(super) steps: Vec<Step>,
    /// The state before the first step, and after each.
    pub(super) states: Vec<Vec<u32>>,
    /// A step broke a claim about steps.
    misstep: bool,
}

impl Walk {
    fn state(&self) -> &[u32] {
        self.states.last().expect("a walk begins somewhere")
    }

    /// The same, with one step more.
    fn and(&self, step: Step, reached: &[u32], breaks: bool) -> Self {
        let mut longer = self.clone();
        longer.steps.push(step);
        longer.states.push(reached.to_vec());
        longer.misstep |= breaks;
        longer
    }

    /// Whether `other`, which is as long, can be left out: it has come to the same state, has no more missteps, and goes
    /// the same round for ever if it returns to its state number `home`.
    fn stands_for(&self, other: &Self, home: usize) -> bool {
        self.state() == other.state()
            && self.misstep >= other.misstep
            && self.states.get(home) == other.states.get(home)
    }
}

/// The ways that a schedule tells of.
#[derive(Debug)]
pub(super) struct Ways {
    /// At least one.
    pub(super) walks: Vec<Walk>,
    /// The place in the schedule of the first step that led on in more ways than were followed, if there is one.
    pub(super) cut_at: Option<usize>,
}

/// A step that is not possible where the schedule has it.
#[derive(Debug)]
pub(super) struct Stuck {
    /// Its place in the schedule.
    pub(super) index: usize,
    pub(super) problem: String,
}

/// The ways that `moves` tell of, of which at most `most` are followed. Whatever comes after the first `home` of them is
/// repeated for ever.
pub(super) fn walks<P: Explorable>(
    machine: &Machine<'_, P>,
    hand: &mut Hand<P>,
    moves: &[Move],
    home: usize,
    most: usize,
) -> Result<Ways, Stuck> {
    let start = Walk { steps: Vec::new(), states: vec![machine.start()], misstep: false };
    let mut ways = vec![start];
    let mut cut_at = None;
    let mut out = Successors::new();
    for (index, wanted) in moves.iter().enumerate() {
        let mut next: Vec<Walk> = Vec::new();
        let mut possible: Vec<Move> = Vec::new();
        for way in &ways {
            machine.steps(hand, way.state(), false, &mut out);
            for successor in out.list() {
                let step = machine.describe(hand, way.state(), successor.step);
                if step != *wanted {
                    possible.push(step);
                    continue;
                }
                let way = way.and(successor.step, out.state(successor), successor.breaks.is_some());
                if next.iter().any(|other| other.stands_for(&way, home)) {
                    continue;
                }
                if next.len() >= most {
                    cut_at.get_or_insert(index);
                    continue;
                }
                next.push(way);
            }
        }
        if next.is_empty() {
            return Err(match cut_at {
                None => Stuck { index, problem: impossible(wanted, &possible) },
                Some(cut_at) => Stuck { index: cut_at, problem: too_many(most) },
            });
        }
        ways = next;
    }
    Ok(Ways { walks: ways, cut_at })
}

/// What is wrong with a schedule that could not be followed in every way it may mean.
pub(super) fn too_many(most: usize) -> String {
    format!(
        "what the file says up to here fits more than the {most} ways that can be followed, and none of those followed \
         leads where it should: nothing can be said; check again with fewer members or faults"
    )
}

fn impossible(wanted: &Move, possible: &[Move]) -> String {
    let instead = named(possible).unwrap_or_else(|| "nothing".to_owned());
    format!(
        "`{wanted}` cannot happen here, but {instead} can: the file was edited, or belongs to another version of the \
         algorithm; check again"
    )
}

/// The first few of some steps, each once; those apart in the middle of which somebody crashes.
fn named(steps: &[Move]) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    for step in steps.iter().filter(|step| step.crash_after.is_none()) {
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

/// Those of the possible steps in words that must be taken at last and by their name are `meant`.
fn due<P: Explorable>(
    machine: &Machine<'_, P>,
    hand: &Hand<P>,
    (state, possible): (&[u32], &Successors<Step>),
    meant: impl Fn(Step) -> bool,
) -> Vec<Move> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(states: &[u32], misstep: bool) -> Walk {
        let states = states.iter().map(|&state| vec![state]).collect();
        Walk { steps: Vec::new(), states, misstep }
    }

    #[test]
    fn ways_that_meet_are_one_unless_what_is_judged_tells_them_apart() {
        let (sound, other) = (walk(&[0, 1, 3], false), walk(&[0, 2, 3], false));
        assert!(sound.stands_for(&other, 0) && other.stands_for(&sound, 0));
        assert!(!sound.stands_for(&walk(&[0, 1, 4], false), 0), "they have not met");
        let broken = walk(&[0, 2, 3], true);
        assert!(!sound.stands_for(&broken, 0), "a step of it broke a claim");
        assert!(broken.stands_for(&sound, 0));
        assert!(!sound.stands_for(&other, 1), "what is repeated begins elsewhere");
    }
}
