//! The cut that a snapshot has recorded, put together from what each member has recorded, and what is wrong with it.
//!
//! A cut is consistent if it contains no received message whose sending it does not contain, and if every message that was
//! sent in it and not received is in the state of a channel. Where the algorithm conserves something, such as the money of a
//! bank, a consistent cut has all of it; that is judged as well, because it notices what members cannot: a message that was
//! lost or arrived twice.

use std::collections::BTreeMap;
use std::fmt;

use doyen_core::members::NodeId;
use doyen_core::protocol::{Holding, Recording, View};
use serde::{Serialize, Serializer};

/// A recorded state of the whole group.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Cut {
    /// The state of every member that has recorded it and is up.
    pub recorded: BTreeMap<NodeId, State>,
    /// The messages that were under way; channels that are not listed were empty.
    pub channels: Vec<UnderWay>,
    /// What members held and messages carried together, if the algorithm conserves something.
    pub total: Option<u64>,
    /// How many markers were sent.
    pub markers: u64,
    /// Whether every member has recorded its state and all of its channels.
    pub complete: bool,
    /// What is wrong with it; nothing, if it is consistent.
    pub flaws: Vec<Defect>,
}

/// Something that is wrong with a cut.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Defect {
    /// The member that noticed it; none, if only all of them together show it.
    pub member: Option<NodeId>,
    /// What it is, as the rest of a sentence about the member.
    pub text: String,
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.member {
            Some(member) => write!(f, "{member} {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

impl Serialize for Defect {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The recorded state of a member: what it held if the algorithm conserves something, else what it believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum State {
    /// The amount that it held.
    Held(u64),
    /// What it believed.
    View(View),
}

/// What was under way on one channel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct UnderWay {
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// The messages, in the order in which they came.
    pub messages: Vec<String>,
    /// How much they carry of what the algorithm conserves; zero if it conserves nothing.
    #[serde(skip_serializing_if = "is_zero")]
    pub amount: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(amount: &u64) -> bool {
    *amount == 0
}

impl Cut {
    /// The cut that `members` have recorded: each with what it started with and what it has recorded, if it is up.
    pub(crate) fn new(
        members: impl Iterator<Item = (NodeId, Option<Holding>, Option<Recording>)>,
        markers: u64,
    ) -> Self {
        let mut cut = Self { markers, complete: true, ..Self::default() };
        let (mut first, mut recorded) = (Some(0), Some(0));
        for (id, started_with, recording) in members {
            let sum = |sum: Option<u64>, holding: Option<Holding>| {
                let Holding { held, gone } = holding?;
                Some(sum? + held + gone)
            };
            first = sum(first, started_with);
            let Some(recording) = recording else {
                cut.complete = false;
                continue;
            };
            recorded = sum(recorded, recording.holding);
            cut.add(id, recording);
        }
        let under_way: u64 = cut.channels.iter().map(|channel| channel.amount).sum();
        let wrong = (recorded.map(|it| it + under_way), first);
        if let (true, (Some(is), Some(was))) = (cut.complete, wrong)
            && is != was
        {
            let text = format!("{is} are in the snapshot, and {was} were there at the start");
            cut.flaws.push(Defect { member: None, text });
        }
        cut
    }

    fn add(&mut self, to: NodeId, recording: Recording) {
        self.complete &= recording.is_done();
        let Recording { view, holding, channels, flaw } = recording;
        let state = holding.map_or(State::View(view), |holding| State::Held(holding.held));
        self.recorded.insert(to, state);
        let mut total = holding.map(|holding| holding.held);
        for channel in channels.into_iter().filter(|channel| !channel.messages.is_empty()) {
            let (from, amount) = (channel.from, channel.amount);
            total = total.map(|total| total + amount);
            self.channels.push(UnderWay { from, to, messages: channel.messages, amount });
        }
        self.total = total.map(|total| self.total.unwrap_or_default() + total);
        let defect = flaw.map(|flaw| Defect { member: Some(to), text: flaw.to_string() });
        self.flaws.extend(defect);
    }
}
