//! What a recorded run consists of: steps, messages, and members at the beginning.

use std::collections::BTreeMap;

use doyen_core::members::NodeId;
use doyen_core::protocol::Section;
use doyen_core::trace::Changed;
use doyen_sim::render::model::{Life, MemberState};
use serde::Serialize;
use serde_json::{Value, json};

use crate::limits;

/// The fate of most messages, which is left out of the JSON.
pub(super) const RECEIVED: &str = "received";
pub(super) const MISSED: &str = "receiver down";

/// One call of a handler, or one fault. Its number is its place in the list; fields that are empty or false are left out
/// of the JSON.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Step {
    pub(crate) at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) member: Option<NodeId>,
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timer: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) background: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) rules: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) causes: Vec<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) sends: Vec<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) change: Vec<(NodeId, BTreeMap<&'static str, [Value; 2]>)>,
    pub(crate) text: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) sentence: String,
    /// What the member did, in words.
    #[serde(skip)]
    pub(crate) deeds: Vec<String>,
}

/// A message and its fate. Its number is its place in the list.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Message {
    pub(crate) kind: usize,
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    /// The name of its kind and its fields; left out if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    pub(crate) sent: u64,
    /// The step that sent it.
    pub(crate) by: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) arrives: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) again: Option<u64>,
    /// The steps in which it arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) again_at: Option<usize>,
    #[serde(skip_serializing_if = "is_received")]
    pub(crate) fate: &'static str,
    #[serde(rename = "ref")]
    pub(crate) reference: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) changed: Option<Changed>,
}

fn is_received(fate: &&'static str) -> bool {
    *fate == RECEIVED
}

impl Message {
    /// Whether its receiver was down.
    pub(crate) fn is_missed(&self) -> bool {
        self.fate == MISSED
    }
}

/// A member at the beginning.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct State {
    pub(crate) id: NodeId,
    pub(crate) role: String,
    pub(crate) leader: Option<NodeId>,
    pub(crate) term: u64,
    pub(crate) up: bool,
    pub(crate) paused_until: Option<u64>,
    pub(crate) lease: Option<u64>,
    /// Where it is with respect to the critical section: `outside`, `waiting` or `inside`.
    pub(crate) section: &'static str,
}

impl State {
    pub(super) fn new(id: NodeId, state: MemberState) -> Self {
        Self {
            id,
            role: state.role.to_string(),
            leader: state.leader,
            term: state.term.0,
            up: state.life != Life::Down,
            paused_until: None,
            lease: state.lease.map(|at| at.0),
            section: section(state),
        }
    }
}

/// Where a member is with respect to the critical section, in a word.
fn section(state: MemberState) -> &'static str {
    match state.section {
        Section::Outside => "outside",
        Section::Waiting => "waiting",
        Section::Inside(_) => "inside",
    }
}

/// The length is limited, because some lists grow without end.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(limits::MESSAGE_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A field of a member's state, with the value before and after.
pub(super) type Difference = (&'static str, [Value; 2]);

/// The fields in which two states of a member differ, each with both values.
pub(super) fn differences(before: MemberState, after: MemberState) -> Vec<Difference> {
    let paused = |state: MemberState| match state.life {
        Life::Paused(until) => json!(until.0),
        _ => Value::Null,
    };
    let fields = |state: MemberState| {
        [
            ("role", json!(state.role.to_string())),
            ("leader", json!(state.leader)),
            ("term", json!(state.term.0)),
            ("up", json!(state.life != Life::Down)),
            ("paused_until", paused(state)),
            ("lease", json!(state.lease.map(|until| until.0))),
            ("section", json!(section(state))),
        ]
    };
    let pairs = fields(before).into_iter().zip(fields(after));
    let changed = pairs.filter(|((_, from), (_, to))| from != to);
    changed.map(|((name, from), (_, to))| (name, [from, to])).collect()
}
