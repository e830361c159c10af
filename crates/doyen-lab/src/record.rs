//! A run, recorded step by step: what every view of a page is made from.
//!
//! A **step** is one call of a member's handler, or one fault, with its immediate effects. The trace has the call first and
//! its effects after it, so a [`Recorder`] opens a step with each event that happens *to* a member and adds to it what the
//! member then does.

mod digest;
mod intervals;
mod parts;
mod timers;

use std::collections::BTreeMap;

use doyen_core::members::{Members, NodeId};
use doyen_core::protocol::{Class, Kind};
use doyen_sim::hash::FastMap;
use doyen_sim::message::MessageName;
use doyen_sim::render::describe;
use doyen_sim::render::model::{MemberState, RunModel, Transition};
use doyen_sim::run::first_views;
use doyen_sim::scenario::Case;
use doyen_sim::time::Time;
use doyen_sim::trace::{EventKind, Observer, RunInfo, TraceEvent};
use serde_json::Value;

pub(crate) use intervals::Intervals;
pub(crate) use parts::{Message, State, Step};
pub(crate) use timers::Timer;

use crate::limits;
use digest::Digest;
use intervals::Tracker;
use parts::{MISSED, RECEIVED, differences, shortened};
use timers::Timers;

/// Records a run while it happens, up to the limit.
pub(crate) struct Recorder {
    model: RunModel,
    limit: usize,
    /// Whether the limit was reached: nothing more is recorded.
    is_cut: bool,
    /// The members that are down from the beginning and that the trace has not reported as down yet.
    dead: Vec<NodeId>,
    pub(crate) initial: Vec<State>,
    pub(crate) steps: Vec<Step>,
    pub(crate) messages: Vec<Message>,
    /// The kinds of messages that were sent, in the order of their first message.
    pub(crate) kinds: Vec<String>,
    classes: Vec<Class>,
    timers: Timers,
    tracker: Tracker,
    digest: Digest,
    /// The latest step of each member.
    latest: FastMap<NodeId, usize>,
    /// The latest crash or restart of each member.
    turns: FastMap<NodeId, usize>,
    /// The messages by the numbers of the trace.
    numbers: FastMap<u32, usize>,
    /// How many messages of a kind have gone from one member to another.
    counts: FastMap<(NodeId, NodeId, usize), u32>,
}

impl Recorder {
    pub(crate) fn new(case: &Case, limit: usize) -> Self {
        let model = RunModel::new(RunInfo::of(case), true);
        Self::with_model(case, model.with_views(&first_views(case)), limit)
    }

    /// Records nothing, of a run whose members are too many to show.
    pub(crate) fn empty(case: &Case) -> Self {
        let mut nobody = RunInfo::of(case);
        nobody.members = Members::range(0, 1).expect("one member is possible");
        nobody.leader = None;
        let mut recorder = Self::with_model(case, RunModel::new(nobody, true), 0);
        recorder.initial.clear();
        recorder
    }

    fn with_model(case: &Case, model: RunModel, limit: usize) -> Self {
        let keys = model.info.keys();
        let state = |(place, id): (usize, NodeId)| match case.dead.contains(&id) {
            true => State::new(id, MemberState::DOWN),
            false => State::new(id, model.member(place)),
        };
        let initial: Vec<State> = keys.iter().map(|key| key.id).enumerate().map(state).collect();
        Self {
            limit: limit.min(limits::STEPS),
            is_cut: false,
            tracker: Tracker::new(&initial, model.info.purpose, model.info.leases),
            dead: case.dead.clone(),
            initial,
            steps: Vec::new(),
            messages: Vec::new(),
            kinds: Vec::new(),
            classes: Vec::new(),
            timers: Timers::default(),
            digest: Digest::default(),
            latest: FastMap::default(),
            turns: FastMap::default(),
            numbers: FastMap::default(),
            counts: FastMap::default(),
            model,
        }
    }

    /// Whether the limit was reached before the end of the run.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Whether an event belongs to a step that would be one too many. The steps before it are complete.
    fn is_too_much(&self, event: &TraceEvent) -> bool {
        let is_full = self.steps.len() >= self.limit
            || self.messages.len() >= self.limit * limits::MESSAGES_A_STEP;
        let is_effect = matches!(
            event.kind,
            EventKind::Sent { .. }
                | EventKind::Armed { .. }
                | EventKind::Disarmed { .. }
                | EventKind::View { .. }
                | EventKind::Leased { .. }
                | EventKind::Noted { .. }
        );
        let latest = event.kind.member().and_then(|member| self.latest_of(member, event.at));
        is_full && !(is_effect && latest.is_some())
    }

    /// The latest step of a member, if it happened at this instant.
    fn latest_of(&self, member: NodeId, at: Time) -> Option<usize> {
        self.latest.get(&member).copied().filter(|&step| self.steps[step].at == at.0)
    }

    /// The timers and the intervals, up to `end`.
    pub(crate) fn finish(&mut self, end: Time) -> (Vec<Timer>, Intervals) {
        let timers = std::mem::take(&mut self.timers).finish();
        (timers, self.tracker.finish(end))
    }

    /// The fingerprint of what was recorded, and of the `rest` that was not.
    pub(crate) fn hash(&self, rest: u64) -> String {
        self.digest.finish(rest)
    }

    /// The states of the members after all recorded steps, in the order of the lanes.
    pub(crate) fn states(&self) -> impl Iterator<Item = (NodeId, MemberState)> + Clone {
        self.initial.iter().enumerate().map(|(place, state)| (state.id, self.model.member(place)))
    }

    /// Numbers the kinds of messages as `kinds` has them, which may have more.
    pub(crate) fn number_kinds(&mut self, kinds: &[Kind]) {
        let place = |name: &String| kinds.iter().position(|it| it.name == name).unwrap_or_default();
        let places: Vec<usize> = self.kinds.iter().map(place).collect();
        for message in &mut self.messages {
            message.kind = places[message.kind];
        }
        self.kinds = kinds.iter().map(|kind| kind.name.to_owned()).collect();
        self.classes = kinds.iter().map(|kind| kind.class).collect();
    }

    /// The class in which a message is counted.
    pub(crate) fn class_of(&self, message: &Message) -> Class {
        self.classes[message.kind]
    }

    /// A member that is down from the beginning has done nothing worth showing before the trace says that it is.
    fn is_before_the_beginning(&mut self, event: &TraceEvent) -> bool {
        let Some(place) =
            event.kind.member().and_then(|id| self.dead.iter().position(|&it| it == id))
        else {
            return false;
        };
        match event.kind {
            EventKind::Crashed { .. } => {
                let id = self.dead.swap_remove(place);
                self.timers.crash(id, event.at);
                self.model.apply(event);
                true
            }
            EventKind::Sent { .. } => false,
            _ => true,
        }
    }

    /// Opens a step.
    fn open(&mut self, event: &TraceEvent, kind: &'static str, text: String) -> usize {
        let (i, member) = (self.steps.len(), event.kind.member());
        let mut causes = self.causes(&event.kind);
        if let Some(member) = member {
            // Messages that a dead member misses are not a cause of what it does later.
            let previous = match event.kind {
                EventKind::Missed { .. } => None,
                _ => self.latest.insert(member, i),
            };
            causes.extend(previous);
        }
        causes.sort_unstable();
        causes.dedup();
        self.steps.push(Step {
            at: event.at.0,
            member,
            kind,
            message: None,
            timer: None,
            background: false,
            rules: event.kind.rules().to_vec(),
            causes,
            sends: Vec::new(),
            change: Vec::new(),
            text,
            sentence: String::new(),
            deeds: Vec::new(),
        });
        i
    }

    /// The steps that caused an event, besides its member's previous one.
    fn causes(&self, event: &EventKind) -> Vec<usize> {
        let cause = match event {
            EventKind::Received { id, .. } | EventKind::Missed { id, .. } => {
                self.numbers.get(id).map(|&message| self.messages[message].by)
            }
            EventKind::Fired { member, timer, .. } => self.timers.armed_by(*member, timer),
            EventKind::Suspected { peer, .. } | EventKind::Trusted { peer, .. } => {
                self.turns.get(peer).copied()
            }
            _ => None,
        };
        cause.into_iter().collect()
    }

    /// The step to which an effect of `member` belongs: its latest one, if that happened at this instant.
    fn step_of(&mut self, member: NodeId, event: &TraceEvent) -> usize {
        if let Some(step) = self.latest_of(member, event.at) {
            return step;
        }
        // The trace does not contain the start of a member, or what the member is told about others.
        let returned = self.steps.iter().rev().take_while(|it| it.at == event.at.0);
        let returned = returned.filter(|it| it.kind == "fault").find_map(|it| it.member);
        let text = match (event.at, returned, &event.kind) {
            (_, _, EventKind::Noted { note, .. }) => format!("{member}: {note}"),
            (Time::ZERO, ..) => format!("{member} starts"),
            (_, Some(peer), _) => format!("{member} learns that {peer} is up again"),
            (_, None, _) => format!("{member} acts"),
        };
        let step = self.open(event, "note", text);
        self.steps[step].background = true;
        step
    }

    fn receive(&mut self, event: &TraceEvent, id: u32) {
        let missed = matches!(event.kind, EventKind::Missed { .. });
        let text = describe::in_words(event, Transition::None).unwrap_or_default();
        let step = self.open(event, "message", text);
        let Some(&number) = self.numbers.get(&id) else { return };
        let message = &mut self.messages[number];
        match message.at {
            None => message.at = Some(step),
            Some(_) => message.again_at = Some(step),
        }
        if !missed || message.fate != RECEIVED {
            message.fate = if missed { MISSED } else { RECEIVED };
        }
        let background = is_background(self.classes[message.kind]);
        self.steps[step].message = Some(number);
        self.steps[step].background = background;
    }

    fn send(&mut self, event: &TraceEvent) {
        let EventKind::Sent { id, from, to, kind, text, class, arrives, again, changed } =
            &event.kind
        else {
            return;
        };
        let by = self.step_of(*from, event);
        let number = self.messages.len();
        let kind = self.kind(kind, *class);
        let count = self.counts.entry((*from, *to, kind)).or_default();
        *count += 1;
        let name = self.kinds[kind].clone();
        let reference = MessageName { from: *from, to: *to, kind: name.clone(), number: *count };
        self.numbers.insert(*id, number);
        self.messages.push(Message {
            kind,
            from: *from,
            to: *to,
            text: (*text != name).then(|| shortened(text)),
            sent: event.at.0,
            by,
            arrives: arrives.map(|at| at.0),
            again: again.map(|at| at.0),
            at: None,
            again_at: None,
            fate: if arrives.is_some() { "in flight" } else { "lost" },
            reference: reference.to_string(),
            changed: *changed,
        });
        self.steps[by].sends.push(number);
        if !is_background(*class) {
            self.steps[by].background = false;
        }
    }

    fn kind(&mut self, name: &str, class: Class) -> usize {
        let known = self.kinds.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.kinds.push(name.to_owned());
            self.classes.push(class);
            self.kinds.len() - 1
        })
    }

    /// Adds what an event changes in the state of its member.
    fn change(&mut self, step: usize, at: Time, place: usize, before: MemberState) {
        let after = self.model.member(place);
        self.tracker.change(at, place, before, after);
        let id = self.initial[place].id;
        let fields = differences(before, after);
        if fields.is_empty() {
            return;
        }
        let step = &mut self.steps[step];
        let is_renewal = fields
            .iter()
            .all(|(name, [from, to])| *name == "lease" && !from.is_null() && !to.is_null());
        step.background &= is_renewal;
        let known = step.change.iter().position(|(member, _)| *member == id);
        let known = known.unwrap_or_else(|| {
            step.change.push((id, BTreeMap::new()));
            step.change.len() - 1
        });
        for (name, [from, to]) in fields {
            let field = step.change[known].1.entry(name).or_insert([from, Value::Null]);
            field[1] = to;
        }
        // A field that changes back within a step has not changed.
        step.change[known].1.retain(|_, [from, to]| from != to);
        step.change.retain(|(_, fields)| !fields.is_empty());
    }
}

impl Observer for Recorder {
    fn observe(&mut self, event: &TraceEvent) {
        if self.is_cut || self.is_too_much(event) {
            self.is_cut = true;
            return;
        }
        self.digest.add(event);
        if self.is_before_the_beginning(event) {
            return;
        }
        let place = event.kind.member().and_then(|id| self.model.info.place(id));
        let before = place.map(|place| (place, self.model.member(place)));
        let transition = self.model.apply(event).map_or(Transition::None, |it| it.transition);
        let step = match &event.kind {
            EventKind::Sent { .. } => return self.send(event),
            EventKind::Received { id, .. } | EventKind::Missed { id, .. } => {
                return self.receive(event, *id);
            }
            EventKind::Armed { member, timer, background, due } => {
                let step = self.step_of(*member, event);
                let times = [event.at, *due];
                return self.timers.arm((*member, timer), *background, times, step);
            }
            EventKind::Disarmed { member, timer } => {
                return self.timers.close(*member, timer, event.at);
            }
            EventKind::View { member, .. }
            | EventKind::Leased { member, .. }
            | EventKind::Noted { member, .. } => {
                let step = self.step_of(*member, event);
                self.steps[step].deeds.extend(describe::in_words(event, transition));
                self.steps[step].background &= !matches!(event.kind, EventKind::Noted { .. });
                step
            }
            EventKind::Fired { .. } => self.begin(event, transition, "timer"),
            EventKind::Campaign { .. } => self.begin(event, transition, "campaign"),
            EventKind::Commanded { .. } => self.begin(event, transition, "command"),
            EventKind::Request { .. } | EventKind::Exit { .. } => {
                self.begin(event, transition, "section")
            }
            EventKind::Retired { .. } | EventKind::Released { .. } => {
                self.begin(event, transition, "lease")
            }
            EventKind::Suspected { .. } => self.begin(event, transition, "suspect"),
            EventKind::Trusted { .. } => self.begin(event, transition, "trust"),
            EventKind::Crashed { .. }
            | EventKind::Restarted { .. }
            | EventKind::Paused { .. }
            | EventKind::Clock { .. }
            | EventKind::Cut { .. }
            | EventKind::Mended { .. }
            | EventKind::Partitioned { .. }
            | EventKind::Network { .. }
            | EventKind::Healed => self.begin(event, transition, "fault"),
        };
        self.tracker.note(event, before);
        if let Some((place, before)) = before {
            self.change(step, event.at, place, before);
        }
    }

    fn wants_more(&self) -> bool {
        !self.is_cut
    }
}

impl Recorder {
    /// Opens the step that an event begins.
    fn begin(&mut self, event: &TraceEvent, transition: Transition, kind: &'static str) -> usize {
        let text = describe::in_words(event, transition).unwrap_or_default();
        let step = self.open(event, kind, text);
        self.note_head(event, step);
        step
    }

    /// What the first event of a step says besides its words.
    fn note_head(&mut self, event: &TraceEvent, step: usize) {
        match &event.kind {
            EventKind::Fired { member, timer, background, .. } => {
                self.timers.close(*member, timer, event.at);
                self.steps[step].timer = Some(describe::timer_name(timer).to_owned());
                self.steps[step].background = *background;
            }
            EventKind::Crashed { member, .. } => {
                self.timers.crash(*member, event.at);
                self.turns.insert(*member, step);
            }
            EventKind::Restarted { member, .. } => drop(self.turns.insert(*member, step)),
            // A failure detector reports in the middle of the effects of its timer or of a heartbeat.
            EventKind::Suspected { member, .. } | EventKind::Trusted { member, .. } => {
                let mut heads =
                    self.steps[..step].iter_mut().rev().take_while(|it| it.at == event.at.0);
                if let Some(head) = heads.find(|it| it.member == Some(*member)) {
                    self.steps[step].rules = std::mem::take(&mut head.rules);
                }
            }
            _ => {}
        }
    }
}

/// Whether messages of this class are hidden by default.
fn is_background(class: Class) -> bool {
    class != Class::Algorithm
}
