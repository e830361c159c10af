//! The transcript of a run: one line for an event, or for neighbouring events that differ only in the members that took
//! part.

use std::fmt;

use doyen_core::members::NodeId;
use doyen_core::protocol::{Role, Section, View};

use super::time::Time;

/// What happened at one instant.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) at: Time,
    pub(super) scene: Scene,
    pub(super) rules: Vec<&'static str>,
    pub(super) outcome: Vec<String>,
}

/// The event, and the members that took part.
#[derive(Clone, Debug)]
pub(super) enum Scene {
    /// A message arrived: senders, receivers, text. One of the two lists has one element.
    Message(Vec<NodeId>, Vec<NodeId>, String),
    /// Something happened to each of these.
    Happened(Vec<NodeId>, String),
}

impl Line {
    /// Merges `next` into this line, if it is about the same event; else returns it.
    fn merge(&mut self, next: Self) -> Option<Self> {
        let alike = self.at == next.at && self.rules == next.rules && self.outcome == next.outcome;
        if !alike {
            return Some(next);
        }
        match (&mut self.scene, &next.scene) {
            (Scene::Message(from, to, text), Scene::Message(next_from, next_to, next_text))
                if text == next_text =>
            {
                if from == next_from && !to.contains(&next_to[0]) {
                    to.extend(next_to);
                } else if to == next_to && !from.contains(&next_from[0]) {
                    from.extend(next_from);
                } else {
                    return Some(next);
                }
                None
            }
            (Scene::Happened(who, text), Scene::Happened(next_who, next_text))
                if text == next_text =>
            {
                who.extend(next_who);
                None
            }
            _ => Some(next),
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t={}  ", self.at)?;
        match &self.scene {
            Scene::Message(from, to, text) => write!(f, "{}→{} {text}", join(from), join(to))?,
            Scene::Happened(who, text) => write!(f, "{} {text}", join(who))?,
        }
        if !self.rules.is_empty() {
            write!(f, "  [{}]", self.rules.join(" "))?;
        }
        if !self.outcome.is_empty() {
            write!(f, "  {}", self.outcome.join("; "))?;
        }
        Ok(())
    }
}

/// The lines since the last call of `take`.
#[derive(Debug, Default)]
pub(super) struct Transcript(Vec<Line>);

impl Transcript {
    /// Adds one line.
    pub(super) fn tell(&mut self, line: Line) {
        let line = match self.0.last_mut() {
            Some(last) => last.merge(line),
            None => Some(line),
        };
        self.0.extend(line);
    }

    /// Drops lines without consequences.
    pub(super) fn drop_uneventful(&mut self) {
        self.0.retain(|line| !line.rules.is_empty() || !line.outcome.is_empty());
    }

    /// Takes the lines, as text.
    pub(super) fn take(&mut self) -> String {
        self.0.drain(..).map(|line| format!("{line}\n")).collect()
    }
}

/// The verb for a member that has just come to this view.
pub(super) fn verb(view: View) -> String {
    match (view.role, view.leader) {
        (Role::Leader, _) => format!("leads{}", term(view)),
        (Role::Retiring, _) => format!("retires{}", term(view)),
        (Role::Follower, Some(leader)) => format!("follows {leader}{}", term(view)),
        (Role::Follower, None) => "knows no leader".to_owned(),
        (Role::Candidate, Some(leader)) => format!("candidate, last leader {leader}"),
        (Role::Candidate, None) => "candidate".to_owned(),
    }
}

/// The verb for a member that has moved to this section.
pub(super) fn moves(section: Section) -> String {
    let verb = match section {
        Section::Outside => "leaves",
        Section::Waiting => "waits",
        Section::Inside(_) => "enters",
    };
    verb.to_owned()
}

/// The noun for a member with this view.
pub(super) fn noun(view: View) -> String {
    match (view.role, view.leader) {
        (Role::Leader, _) => format!("leader{}", term(view)),
        (Role::Retiring, _) => format!("retiring leader{}", term(view)),
        (Role::Follower, Some(leader)) => format!("follower of {leader}{}", term(view)),
        (role, Some(leader)) => format!("{role}, last leader {leader}{}", term(view)),
        (role, None) => format!("{role}, no leader"),
    }
}

fn term(view: View) -> String {
    match view.term.0 {
        0 => String::new(),
        term => format!(" term={term}"),
    }
}

/// `1,2,3`
fn join(ids: &[NodeId]) -> String {
    ids.iter().map(NodeId::to_string).collect::<Vec<_>>().join(",")
}
