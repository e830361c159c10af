//! A recorded run, as a page reads it. Times are nanoseconds since the beginning.

use std::collections::BTreeMap;

use doyen_core::layers;
use doyen_core::members::NodeId;
use doyen_core::protocol::{Class, Kind, RuleText};
use doyen_sim::scenario::Case;
use doyen_sim::time::Time;
use doyen_sim::trace::RunInfo;
use serde::Serialize;

use crate::metrics::Metrics;
use crate::record::{Intervals, Message, Recorder, State, Step, Timer};
use crate::source::Source;
use crate::words;

/// The version of the format; it rises when an older page could not read it.
const VERSION: u32 = 1;

/// A recorded run.
#[derive(Debug, Serialize)]
pub(crate) struct Run {
    doyen: &'static str,
    version: u32,
    hash: String,
    title: String,
    about: String,
    command: String,
    toml: String,
    source: Source,
    algorithm: &'static str,
    /// `elects` or `excludes`: whether members follow a leader, or enter a critical section.
    purpose: &'static str,
    mode: String,
    hardened: bool,
    d_ns: u64,
    topology: &'static str,
    order: Vec<NodeId>,
    pub(crate) end_ns: u64,
    ended: &'static str,
    pub(crate) truncated: Option<String>,
    #[serde(rename = "loop")]
    repeats: Option<Loop>,
    /// The expectations of the scenario that are not met.
    warnings: Vec<String>,
    leases: bool,
    members: Vec<Member>,
    kinds: Vec<MessageKind>,
    rules: BTreeMap<&'static str, Rule>,
    pub(crate) steps: Vec<Step>,
    pub(crate) messages: Vec<Message>,
    pub(crate) initial: Vec<State>,
    timers: Vec<Timer>,
    pub(crate) intervals: Intervals,
    pub(crate) metrics: Metrics,
}

/// The steps that repeat forever.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Loop {
    pub(crate) from: usize,
    pub(crate) to: usize,
}

#[derive(Debug, Serialize)]
struct Member {
    id: NodeId,
    name: String,
    priority: i64,
    /// At the beginning.
    up: bool,
    witness: bool,
}

/// A kind of messages.
#[derive(Debug, Serialize)]
pub(crate) struct MessageKind {
    name: &'static str,
    family: &'static str,
    title: &'static str,
    background: bool,
}

impl MessageKind {
    pub(crate) fn new(kind: &Kind) -> Self {
        Self {
            name: kind.name,
            family: kind.family.name(),
            title: kind.meaning,
            background: kind.class != Class::Algorithm,
        }
    }
}

/// A rule in words, in which `{m}` stands for the member to which it applies.
#[derive(Debug, Serialize)]
struct Rule {
    title: &'static str,
    text: &'static str,
}

impl Rule {
    fn new(rule: &RuleText) -> Self {
        Self { title: rule.title, text: rule.text }
    }
}

/// What is known of a run besides its record.
#[derive(Debug)]
pub(crate) struct Outline<'c> {
    pub(crate) case: &'c Case,
    pub(crate) source: Source,
    pub(crate) command: String,
    pub(crate) toml: String,
    pub(crate) end: Time,
    pub(crate) ended: &'static str,
    pub(crate) truncated: Option<String>,
    pub(crate) repeats: Option<Loop>,
    pub(crate) warnings: Vec<String>,
    /// The kinds of messages that were sent besides the recorded ones.
    pub(crate) counted: Vec<&'static str>,
    /// A fingerprint of what happened after the last recorded step.
    pub(crate) rest: u64,
}

impl Run {
    /// A recorded run. `measure` counts, and is given the names of the kinds of messages.
    pub(crate) fn new(
        outline: Outline<'_>,
        mut recorder: Recorder,
        measure: impl FnOnce(&Recorder, &Intervals, &[&str]) -> Metrics,
    ) -> Self {
        let case = outline.case;
        let kinds = sent_kinds(case, &recorder, &outline.counted);
        recorder.number_kinds(&kinds);
        let (timers, intervals) = recorder.finish(outline.end);
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name).collect();
        let metrics = measure(&recorder, &intervals, &names);
        let hash = recorder.hash(outline.rest);
        let Recorder { initial, mut steps, messages, .. } = recorder;
        let known: Vec<&RuleText> = case.algorithm.rules().collect();
        for step in steps.iter_mut().filter(|step| !step.background && !step.change.is_empty()) {
            step.sentence = words::sentence(step, &known);
        }
        let fired =
            |rule: &RuleText| steps.iter().any(|step| step.rules.iter().any(|id| id == rule.id));
        let rules = known.iter().filter(|rule| fired(rule));
        let info = RunInfo::of(case);
        Self {
            doyen: "run",
            version: VERSION,
            hash,
            title: info.title,
            about: case.about.clone(),
            command: outline.command,
            toml: outline.toml,
            source: outline.source,
            algorithm: case.algorithm.name(),
            purpose: case.algorithm.purpose().name(),
            mode: case.mode().to_string(),
            hardened: case.config.hardened(),
            d_ns: case.config.timing.transmission.as_nanos(),
            topology: if info.clockwise { "ring" } else { "mesh" },
            order: initial.iter().map(|state| state.id).collect(),
            end_ns: outline.end.0,
            ended: outline.ended,
            truncated: outline.truncated,
            repeats: outline.repeats,
            warnings: outline.warnings,
            leases: info.leases,
            members: initial.iter().map(|state| Member::new(case, state)).collect(),
            kinds: kinds.iter().map(MessageKind::new).collect(),
            rules: rules.map(|rule| (rule.id, Rule::new(rule))).collect(),
            steps,
            messages,
            initial,
            timers,
            intervals,
            metrics,
        }
    }
}

impl Member {
    fn new(case: &Case, state: &State) -> Self {
        let id = state.id;
        Self {
            id,
            name: id.to_string(),
            priority: case.members().key(id).attr,
            up: state.up,
            witness: case.config.quorum.witnesses.contains(id),
        }
    }
}

/// The kinds of messages that were sent, in the order of the algorithm's table.
fn sent_kinds(case: &Case, recorder: &Recorder, counted: &[&str]) -> Vec<Kind> {
    let is_sent = |kind: &Kind| {
        recorder.kinds.iter().any(|name| name == kind.name) || counted.contains(&kind.name)
    };
    let mut kinds = layers::kinds(case.algorithm);
    // Markers, and what members tell each other outside the algorithm.
    let above = case.kinds().iter().filter(|it| !kinds.contains(it)).copied().collect::<Vec<_>>();
    kinds.extend(above);
    kinds.into_iter().filter(is_sent).collect()
}
