//! The trace of a run: one event after another, in one form for all writers and readers.
//!
//! Simulator, checker and node write these events; replay and every view of a run read them. An algorithm records what
//! it does: one that elects no leader has no [`View`](EventKind::View) events, and nothing depends on there being any.

use serde::{Deserialize, Serialize};

use crate::config::rules::hyphenated;
use crate::members::{NodeId, Term};
use crate::protocol::{Class, Holding, Notice, Role, Section, View};
use crate::time::Time;

/// An event of a run, with its time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TraceEvent {
    /// The time since the run began, in nanoseconds where it is written.
    pub at: Time,
    /// The event itself.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// An event of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
#[expect(
    missing_docs,
    reason = "names such as `from`, `to`, `member` and `until` say what they are"
)]
pub enum EventKind {
    /// A message was sent. A simulator knows at once when it arrives.
    Sent {
        /// The message's number; its receipts carry the same.
        id: u32,
        from: NodeId,
        to: NodeId,
        /// The message's name.
        kind: String,
        /// The name and the fields.
        text: String,
        class: Class,
        /// When it arrives; empty if it is lost.
        arrives: Option<Time>,
        /// When its duplicate arrives, if the network made one.
        again: Option<Time>,
        /// What the scenario did to this single message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        changed: Option<Changed>,
    },
    /// A message was handled by a live member, or passed on by the control part of a crashed one.
    Received { id: u32, from: NodeId, to: NodeId, kind: String, rules: Vec<String> },
    /// A message reached a member that is down.
    Missed { id: u32, from: NodeId, to: NodeId, kind: String },
    /// A timer was armed. `background`: it belongs to work that never ends, such as a heartbeat.
    Armed { member: NodeId, timer: String, background: bool, due: Time },
    /// An armed timer was disarmed. Nothing tells so where it is armed again, or where its member crashes.
    Disarmed { member: NodeId, timer: String },
    /// A timer fired.
    Fired { member: NodeId, timer: String, background: bool, rules: Vec<String> },
    /// A member was asked to start an election.
    Campaign { member: NodeId, rules: Vec<String> },
    /// An operator gave a member a command.
    Commanded { member: NodeId, command: String, rules: Vec<String> },
    /// Everything that ran under the lease of a retiring leader has stopped.
    Retired { member: NodeId, rules: Vec<String> },
    /// A program on a member wants to enter the critical section.
    Request { member: NodeId, rules: Vec<String> },
    /// Everything that ran inside the critical section has stopped, and the member leaves it.
    Exit { member: NodeId, rules: Vec<String> },
    /// The guardian of a leader that has died has sent its last messages: the lease is over.
    Released { member: NodeId, rules: Vec<String> },
    /// A remark of a member: why the leadership changed, why it rejects a command.
    Noted { member: NodeId, note: String },
    /// The deadline of a member's lease changed; empty if it no longer holds a lease.
    Leased {
        member: NodeId,
        until: Option<Time>,
        /// It is the lease of an old process of the member, beside the present one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        old: bool,
    },
    /// A member's failure detector considers a peer down.
    Suspected { member: NodeId, peer: NodeId },
    /// A member's failure detector considers a peer up again.
    Trusted { member: NodeId, peer: NodeId },
    /// The view of a member changed.
    View {
        member: NodeId,
        leader: Option<NodeId>,
        term: Term,
        role: Role,
        /// Where it is with respect to the critical section; not written of a member outside.
        #[serde(default, skip_serializing_if = "Section::is_outside")]
        section: Section,
    },
    /// A member crashed. `forwards`: its control part still passes messages on.
    Crashed { member: NodeId, forwards: bool },
    /// A member restarted. `disk`: it still has what it stored.
    Restarted { member: NodeId, disk: bool, rules: Vec<String> },
    /// A member is paused until then.
    Paused { member: NodeId, until: Time },
    /// A member's clock runs at this rate, in parts per million of the true one, and has jumped ahead by this many
    /// nanoseconds.
    Clock { member: NodeId, rate_ppm: u32, jump: u64 },
    /// Messages from one member to another no longer arrive.
    Cut { from: NodeId, to: NodeId },
    /// A cut was repaired.
    Mended { from: NodeId, to: NodeId },
    /// The members are separated into groups.
    Partitioned { groups: Vec<Vec<NodeId>> },
    /// Some messages take longer from now on, or are lost more often.
    Network { text: String },
    /// Every cut, partition and change of the network is undone.
    Healed,
}

/// What a scenario did to a single message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Changed {
    /// It was lost.
    Dropped,
    /// It arrives later.
    Delayed,
    /// It arrives twice.
    Doubled,
}

/// The events that say which rules fired.
macro_rules! with_rules {
    ($rules:ident) => {
        EventKind::Received { $rules, .. }
            | EventKind::Fired { $rules, .. }
            | EventKind::Campaign { $rules, .. }
            | EventKind::Commanded { $rules, .. }
            | EventKind::Retired { $rules, .. }
            | EventKind::Request { $rules, .. }
            | EventKind::Exit { $rules, .. }
            | EventKind::Released { $rules, .. }
            | EventKind::Restarted { $rules, .. }
    };
}

impl EventKind {
    /// The member that the event is about, or the first one; `None` if it concerns all.
    pub fn member(&self) -> Option<NodeId> {
        match *self {
            Self::Sent { from: member, .. }
            | Self::Received { to: member, .. }
            | Self::Missed { to: member, .. }
            | Self::Armed { member, .. }
            | Self::Disarmed { member, .. }
            | Self::Fired { member, .. }
            | Self::Campaign { member, .. }
            | Self::Commanded { member, .. }
            | Self::Retired { member, .. }
            | Self::Request { member, .. }
            | Self::Exit { member, .. }
            | Self::Released { member, .. }
            | Self::Noted { member, .. }
            | Self::Leased { member, .. }
            | Self::Suspected { member, .. }
            | Self::Trusted { member, .. }
            | Self::View { member, .. }
            | Self::Crashed { member, .. }
            | Self::Restarted { member, .. }
            | Self::Paused { member, .. }
            | Self::Clock { member, .. }
            | Self::Cut { from: member, .. }
            | Self::Mended { from: member, .. } => Some(member),
            Self::Partitioned { .. } | Self::Network { .. } | Self::Healed => None,
        }
    }

    /// The event for a view that a member announces.
    pub fn of_view(member: NodeId, view: View) -> Self {
        let View { leader, term, role, section } = view;
        Self::View { member, leader, term, role, section }
    }

    /// The rules that fired.
    pub fn rules(&self) -> &[String] {
        match self {
            with_rules!(rules) => rules,
            _ => &[],
        }
    }

    /// The same, to be changed; `None` if the event does not say which rules fired.
    pub fn rules_mut(&mut self) -> Option<&mut Vec<String>> {
        match self {
            with_rules!(rules) => Some(rules),
            _ => None,
        }
    }

    /// The same as if no rule had fired, or as if none had been recorded.
    #[must_use]
    pub fn without_rules(&self) -> Self {
        let mut plain = self.clone();
        if let Some(rules) = plain.rules_mut() {
            rules.clear();
        }
        plain
    }

    /// The event for a notice of a member, if the notice is recorded.
    pub fn of_notice(member: NodeId, notice: &Notice) -> Option<Self> {
        let note = match *notice {
            Notice::Down(peer) => return Some(Self::Suspected { member, peer }),
            Notice::Up(peer) => return Some(Self::Trusted { member, peer }),
            Notice::Dropped { .. } | Notice::Unsent(_) => return None,
            Notice::Changed(ref change) => change.to_string(),
            Notice::Refused(ref refusal) => format!("refuses: {refusal}"),
            Notice::ForeignConfiguration(peer) => {
                format!("ignores {peer}, which is configured otherwise")
            }
            Notice::StateIsOld { seen, by } => {
                format!("halts: its disk is an old copy, {by} has seen it in term {seen}")
            }
            Notice::NoOtherMember => {
                "halts: its disk is lost, and no other member knows which terms there have been"
                    .to_owned()
            }
            Notice::Paused { by, left } => {
                format!("elections are paused for {left} (command at {by})")
            }
            Notice::Resumed { by: Some(by) } => format!("elections are resumed (command at {by})"),
            Notice::Resumed { by: None } => "elections are resumed: the pause is over".to_owned(),
            Notice::OutOfTerms => "cannot campaign: there is no higher term".to_owned(),
            Notice::Replaced { seen, by } => {
                format!("halts: {by} has met incarnation {} of it in another session", seen.0)
            }
            Notice::Recorded { holding: Some(Holding { held, .. }), .. } => {
                format!("records its state: it holds {held}")
            }
            Notice::Recorded { view, holding: None } => {
                let leader =
                    view.leader.map_or("no leader".to_owned(), |it| format!("leader {it}"));
                format!("records its state: {}, {leader}", view.role)
            }
            Notice::ChannelRecorded { from, messages: 0, .. } => {
                format!("records that nothing was under way from {from}")
            }
            Notice::ChannelRecorded { from, messages, amount: 0 } => {
                let messages = if messages == 1 {
                    "1 message".to_owned()
                } else {
                    format!("{messages} messages")
                };
                format!("records {messages} under way from {from}")
            }
            Notice::ChannelRecorded { from, amount, .. } => {
                format!("records {amount} under way from {from}")
            }
            Notice::WrongClock => "halts: its clock is plainly wrong".to_owned(),
        };
        Some(Self::Noted { member, note })
    }
}

/// A timer's name without the layers around it and without its number: `Inner(Background(Preempt))` is `Preempt`,
/// `Hop(HopNumber(3))` is `Hop`.
pub fn timer_name(timer: &str) -> &str {
    const LAYERS: [&str; 4] = ["Inner", "Background", "Detector", "Quorum"];
    let mut words = timer.split(|c: char| !c.is_alphanumeric());
    words.find(|word| !LAYERS.contains(word)).unwrap_or(timer)
}

/// The same for people: `Inner(Quorum(VoteLease))` is the `vote-lease` timer.
pub fn timer_words(timer: &str) -> String {
    hyphenated(timer_name(timer))
}

/// The name of a timer with its number, if it has one: `Inner(Resend(NodeId(3)))` is `Resend 3`.
pub fn timer_label(timer: &str) -> String {
    let is_number = |word: &&str| !word.is_empty() && word.bytes().all(|it| it.is_ascii_digit());
    let number = timer.split(|c: char| !c.is_alphanumeric()).find(is_number);
    let name = timer_name(timer);
    number.map_or_else(|| name.to_owned(), |number| format!("{name} {number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_is_called_by_its_own_name() {
        assert_eq!(timer_label("Inner(Reply)"), "Reply");
        assert_eq!(timer_label("Inner(Resend(NodeId(3)))"), "Resend 3");
        assert_eq!(timer_name("Reply"), "Reply");
        assert_eq!(timer_name("Inner(Background(Preempt))"), "Preempt");
        assert_eq!(timer_name("Hop(HopNumber(3))"), "Hop");
        assert_eq!(timer_name("Inner(Quorum(VoteLease))"), "VoteLease");
        assert_eq!(timer_words("Inner(Quorum(VoteLease))"), "vote-lease");
        assert_eq!(timer_words("Inner(Inner(Quorum(HoldDown)))"), "hold-down");
    }
}
