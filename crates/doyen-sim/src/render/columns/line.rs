//! The lines of one instant, before they are written: events that say the same become one line.

use doyen_core::members::NodeId;
use doyen_core::trace::Changed;

use super::super::RunInfo;
use super::super::describe::{Phrase, bracketed, describe, describe_network};
use super::super::model::{MemberState, RunModel, Transition};
use crate::trace::{EventKind, TraceEvent};

/// The most lines that are held back.
const MOST_LINES: usize = 200;

/// The most members in the lines that are held back.
const MOST_MEMBERS: usize = 5_000;

/// The lines of one instant.
#[derive(Debug, Default)]
pub(super) struct Instant {
    lines: Vec<Line>,
    members: usize,
}

impl Instant {
    /// Adds a line, or joins it to one that says the same if no line in between is about its members.
    pub(super) fn add(&mut self, line: Line) {
        self.members += 1;
        for earlier in self.lines.iter_mut().rev() {
            if earlier.says_the_same(&line) {
                return earlier.join(line);
            }
            if earlier.comes_before(&line) {
                break;
            }
        }
        self.lines.push(line);
    }

    pub(super) fn is_full(&self) -> bool {
        self.lines.len() >= MOST_LINES || self.members >= MOST_MEMBERS
    }

    pub(super) fn take(&mut self) -> Vec<Line> {
        self.members = 0;
        std::mem::take(&mut self.lines)
    }
}

/// An event that concerns one member, several in the same way, or all of them.
#[derive(Debug)]
pub(super) struct Line {
    /// Nothing if only life lines change.
    phrase: Option<Phrase>,
    pub(super) sign: char,
    /// The sign of the peers.
    pub(super) peer_sign: Option<char>,
    pub(super) colour: Colour,
    /// The members that it concerns; empty if it concerns all.
    subjects: Vec<NodeId>,
    /// The other members that are named: receivers, senders, a leader, a suspect.
    pub(super) peers: Vec<NodeId>,
    /// Where the subjects stand, and their states after it.
    pub(super) states: Vec<(usize, MemberState)>,
    /// Whether the peers sent what the subjects receive.
    is_receipt: bool,
    /// The sign of each member in a line about the whole network.
    pub(super) sides: Vec<Option<char>>,
}

/// What a sign is coloured with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Colour {
    None,
    Faint,
    Leader,
    Good,
    Bad,
    Call,
}

impl Colour {
    /// The terminal's code for it.
    pub(super) fn code(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Faint => Some("2"),
            Self::Leader => Some("1;33"),
            Self::Good => Some("32"),
            Self::Bad => Some("1;31"),
            Self::Call => Some("1;36"),
        }
    }
}

impl Line {
    /// The line for `event`, unless it is not shown. `model` takes note of the event.
    pub(super) fn new(event: &TraceEvent, model: &mut RunModel) -> Option<Self> {
        let shown = model.apply(event)?;
        let (sign, colour) = sign(&event.kind, shown.transition);
        let mut line = Self {
            phrase: None,
            sign,
            peer_sign: None,
            colour,
            subjects: event.kind.member().into_iter().collect(),
            peers: Vec::new(),
            states: Vec::new(),
            is_receipt: false,
            sides: Vec::new(),
        };
        let Some((place, _)) = shown.member else {
            let one = describe_network(&event.kind).unwrap_or_default();
            line.phrase = Some(Phrase { one, ..Phrase::default() });
            line.sides = sides(&event.kind, &model.info);
            return Some(line);
        };
        line.states.push((place, model.member(place)));
        match &event.kind {
            EventKind::Sent { to, text, arrives, again, changed, .. } => {
                let (fate, sign) = match (arrives, again) {
                    (None, _) => (", lost", '×'),
                    (Some(_), None) if *changed == Some(Changed::Delayed) => (", late", '○'),
                    (Some(_), None) => ("", '○'),
                    (Some(_), Some(_)) => (", twice", '○'),
                };
                line.name(*to, Phrase::link("", "→", format!(" {text}{fate}")));
                line.peer_sign = Some(sign);
            }
            EventKind::Received { from, kind, rules, .. } => {
                line.name(*from, Phrase::link("", "←", format!(" {kind}{}", bracketed(rules))));
                line.is_receipt = true;
            }
            EventKind::Missed { from, kind, .. } => {
                line.name(*from, Phrase::link("", "←", format!(" {kind} (receiver is down)")));
                line.is_receipt = true;
            }
            EventKind::Cut { to, .. } => {
                line.name(*to, Phrase::link("cut ", "→", String::new()));
                line.peer_sign = Some(sign);
            }
            EventKind::Mended { to, .. } => {
                line.name(*to, Phrase::link("mended ", "→", String::new()));
                line.peer_sign = Some(sign);
            }
            _ => {
                if let Some((phrase, peers)) = describe(event, shown.transition) {
                    (line.phrase, line.peers) = (Some(phrase), peers);
                }
            }
        }
        Some(line)
    }

    fn name(&mut self, peer: NodeId, phrase: Phrase) {
        (self.phrase, self.peers) = (Some(phrase), vec![peer]);
    }

    /// The event in words, if there is anything to say.
    pub(super) fn text(&self) -> Option<String> {
        self.phrase.as_ref().map(|phrase| phrase.of(&self.subjects, &self.peers))
    }

    /// Whether `later` says the same of another member, or the same of this member and another peer.
    fn says_the_same(&self, later: &Self) -> bool {
        self.phrase == later.phrase
            && (self.sign, self.peer_sign) == (later.sign, later.peer_sign)
            && !self.subjects.is_empty()
            && (self.peers == later.peers || self.subjects == later.subjects)
    }

    /// Adds a line that says the same.
    fn join(&mut self, later: Self) {
        if self.subjects == later.subjects {
            self.peers.extend(later.peers);
            self.states = later.states;
        } else {
            self.subjects.extend(later.subjects);
            self.states.extend(later.states);
        }
    }

    /// Whether this line may be a cause of `later`, or concerns the same member: then the two keep their order.
    fn comes_before(&self, later: &Self) -> bool {
        let senders = if later.is_receipt { &later.peers[..] } else { &[] };
        let concerned = |id: &NodeId| later.subjects.contains(id) || senders.contains(id);
        self.subjects.is_empty() || later.subjects.is_empty() || self.subjects.iter().any(concerned)
    }
}

/// The sign of the member to which something happens.
fn sign(event: &EventKind, transition: Transition) -> (char, Colour) {
    match event {
        EventKind::Sent { arrives: None, .. } => ('●', Colour::Bad),
        EventKind::Sent { .. } => ('●', Colour::None),
        EventKind::Received { .. } => ('▼', Colour::None),
        EventKind::Missed { .. } => ('×', Colour::Bad),
        EventKind::Fired { .. } => ('T', Colour::None),
        EventKind::Campaign { .. } | EventKind::Request { .. } => ('!', Colour::Call),
        EventKind::Exit { .. } => ('◇', Colour::Leader),
        EventKind::Suspected { .. } => ('?', Colour::Bad),
        EventKind::Trusted { .. } => ('+', Colour::Good),
        EventKind::View { .. } => match transition {
            Transition::Leads => ('★', Colour::Leader),
            Transition::StepsDown(_) => ('☆', Colour::Leader),
            Transition::LosesLeader => ('☆', Colour::None),
            Transition::Follows(_) => ('✓', Colour::Good),
            Transition::Enters => ('◆', Colour::Leader),
            Transition::EntersBeside(_) => ('‼', Colour::Bad),
            _ => ('·', Colour::None),
        },
        EventKind::Crashed { .. } => ('✖', Colour::Bad),
        EventKind::Restarted { .. } => ('↺', Colour::Good),
        EventKind::Paused { .. } => ('z', Colour::None),
        EventKind::Clock { .. } => ('@', Colour::None),
        EventKind::Cut { .. } => ('#', Colour::Bad),
        EventKind::Mended { .. } => ('=', Colour::Good),
        EventKind::Partitioned { .. } | EventKind::Network { .. } => (' ', Colour::Bad),
        EventKind::Healed => (' ', Colour::Good),
        _ => ('·', Colour::None),
    }
}

/// What stands in each column when the network as a whole changes: a letter for each side of a partition.
fn sides(event: &EventKind, info: &RunInfo) -> Vec<Option<char>> {
    let mut sides = vec![None; info.len()];
    match event {
        EventKind::Healed => sides.fill(Some('=')),
        EventKind::Partitioned { groups } => {
            for (group, letter) in groups.iter().zip(('a'..='z').cycle()) {
                for place in group.iter().filter_map(|&id| info.place(id)) {
                    sides[place] = Some(letter);
                }
            }
        }
        _ => {}
    }
    sides
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Time;
    use doyen_core::members::Members;
    use doyen_core::protocol::Class;
    use doyen_core::registry::Purpose;
    use doyen_core::time::Span;

    fn texts(events: &[EventKind]) -> Vec<String> {
        let info = RunInfo {
            title: String::new(),
            subtitle: None,
            members: Members::range(1, 5).unwrap(),
            clockwise: false,
            purpose: Purpose::Elects,
            leader: None,
            leases: false,
            transmission: Span::ZERO,
        };
        let mut model = RunModel::new(info, false);
        let mut instant = Instant::default();
        for kind in events {
            let event = TraceEvent { at: Time(7), kind: kind.clone() };
            instant.add(Line::new(&event, &mut model).unwrap());
        }
        instant.take().iter().filter_map(Line::text).collect()
    }

    fn sent(from: u32, to: u32, text: &str) -> EventKind {
        EventKind::Sent {
            id: 0,
            from: NodeId(from),
            to: NodeId(to),
            kind: text.to_owned(),
            text: text.to_owned(),
            class: Class::Algorithm,
            arrives: Some(Time(7)),
            again: None,
            changed: None,
        }
    }

    fn received(to: u32, from: u32, kind: &str) -> EventKind {
        let (to, from, kind) = (NodeId(to), NodeId(from), kind.to_owned());
        EventKind::Received { id: 0, from, to, kind, rules: Vec::new() }
    }

    #[test]
    fn a_broadcast_is_one_line_and_so_are_its_receipts() {
        let events = [
            sent(5, 1, "X"),
            sent(5, 2, "X"),
            sent(5, 3, "X"),
            received(1, 5, "X"),
            sent(1, 4, "Y"),
            received(2, 5, "X"),
            sent(2, 4, "Y"),
        ];
        assert_eq!(texts(&events), ["5 → 1..3 X", "1,2 ← 5 X", "1,2 → 4 Y"]);
    }

    #[test]
    fn nothing_moves_above_its_cause() {
        // 1 answers each question separately: the second answer must not stand above the second question.
        let answers =
            [received(1, 2, "ASK"), sent(1, 2, "OK"), received(1, 3, "ASK"), sent(1, 3, "OK")];
        assert_eq!(texts(&answers), ["1 ← 2 ASK", "1 → 2 OK", "1 ← 3 ASK", "1 → 3 OK"]);
        // A message that takes no time is received below the line in which it is sent.
        let instant = [received(1, 2, "X"), sent(2, 3, "X"), received(3, 2, "X")];
        assert_eq!(texts(&instant), ["1 ← 2 X", "2 → 3 X", "3 ← 2 X"]);
        // A partition concerns all members.
        let groups = vec![vec![NodeId(1)], vec![NodeId(2), NodeId(3), NodeId(4), NodeId(5)]];
        let partition = [sent(1, 2, "X"), EventKind::Partitioned { groups }, sent(1, 3, "X")];
        assert_eq!(texts(&partition), ["1 → 2 X", "partition 1 | 2..5", "1 → 3 X"]);
    }
}
