//! The state of every member at a moment of a run, as far as the events tell: the one reading that all views share.

use doyen_core::members::{NodeId, Term};
use doyen_core::protocol::{Class, Role, Section, View};

use super::RunInfo;
use crate::time::Time;
use crate::trace::{EventKind, TraceEvent};

/// The state of one member at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemberState {
    /// Whether it does anything.
    pub life: Life,
    /// Its role.
    pub role: Role,
    /// The leader that it follows, or itself if it leads.
    pub leader: Option<NodeId>,
    /// The term that it knows.
    pub term: Term,
    /// The deadline of its lease, where leaders have leases.
    pub lease: Option<Time>,
    /// Where it is with respect to the critical section.
    pub section: Section,
}

/// Whether a member does anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Life {
    /// It runs, and handles events.
    Up,
    /// It is paused until this time.
    Paused(Time),
    /// It has crashed, or has not been started.
    Down,
}

impl MemberState {
    /// A member that is down: it believes nothing.
    pub const DOWN: Self = Self { life: Life::Down, ..STARTED };
}

/// A member that has just come up.
const STARTED: MemberState = MemberState {
    life: Life::Up,
    role: Role::Follower,
    leader: None,
    term: Term(0),
    lease: None,
    section: Section::Outside,
};

/// What an event changes in the state of its member, as far as a reader cares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transition {
    /// Nothing worth mentioning.
    None,
    /// It leads now.
    Leads,
    /// It still leads, and is about to transfer leadership.
    Retires,
    /// It leads no longer, and may follow another member at once.
    StepsDown(Option<NodeId>),
    /// It follows this member now.
    Follows(NodeId),
    /// It no longer takes part in an election, or no longer follows, and knows no leader.
    LosesLeader,
    /// It takes part in an election now.
    Campaigns,
    /// It holds a lease now, in this term.
    GainsLease(Term),
    /// It held a lease until this deadline, and holds none any more.
    LosesLease(Time),
    /// It enters the critical section.
    Enters,
    /// It enters the critical section while this member is inside: what exclusion must prevent.
    EntersBeside(NodeId),
}

/// An event that is shown.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// The place of its member, and the member's state before; none if the event concerns all.
    pub member: Option<(usize, MemberState)>,
    /// The change of that state.
    pub transition: Transition,
}

/// Follows a run event by event.
#[derive(Clone, Debug)]
pub struct RunModel {
    /// The members of the run.
    pub info: RunInfo,
    /// The members in the order in which they are shown.
    members: Vec<MemberState>,
    filter: Filter,
}

impl RunModel {
    /// Every member at the beginning of a run. `background`: heartbeats, acknowledgements and their timers are shown too.
    pub fn new(info: RunInfo, background: bool) -> Self {
        let follower = MemberState { leader: info.leader, ..STARTED };
        let mut members = vec![follower; info.len()];
        if let Some(place) = info.leader.and_then(|leader| info.place(leader)) {
            members[place] = match info.leases {
                true => MemberState { role: Role::Candidate, ..STARTED },
                false => MemberState { role: Role::Leader, ..follower },
            };
        }
        Self { info, members, filter: Filter::new(background) }
    }

    /// The same with what the members really believe at the beginning, in the order of their ids.
    #[must_use]
    pub fn with_views(mut self, views: &[View]) -> Self {
        for (id, &View { leader, term, role, section }) in self.info.members.iter().zip(views) {
            if let Some(place) = self.info.place(id) {
                let state = &mut self.members[place];
                (state.leader, state.term, state.role) = (leader, term, role);
                state.section = section;
            }
        }
        self
    }

    /// The member shown at `place`.
    pub fn member(&self, place: usize) -> MemberState {
        self.members[place]
    }

    /// The members inside the critical section.
    pub fn inside(&self) -> impl Iterator<Item = NodeId> {
        let states = self.info.keys().into_iter().zip(&self.members);
        states.filter(|(_, state)| state.section.is_inside()).map(|(key, _)| key.id)
    }

    /// Takes note of an event. None if it is not shown, or if its member is unknown, as in a trace that was edited by
    /// hand.
    pub fn apply(&mut self, event: &TraceEvent) -> Option<Shown> {
        if !self.filter.passes(&event.kind) {
            return None;
        }
        let Some(id) = event.kind.member() else {
            return Some(Shown { member: None, transition: Transition::None });
        };
        let place = self.info.place(id)?;
        let before = self.members[place];
        let (after, mut transition) = step(before, &event.kind);
        if transition == Transition::Enters
            && let Some(other) = self.inside().find(|&other| other != id)
        {
            transition = Transition::EntersBeside(other);
        }
        self.members[place] = after;
        Some(Shown { member: Some((place, before)), transition })
    }
}

/// The state of a member after an event, and what has changed.
fn step(before: MemberState, event: &EventKind) -> (MemberState, Transition) {
    match *event {
        EventKind::View { leader, role, term, section, .. } => {
            let after = MemberState { leader, role, term, section, ..before };
            let enters = section.is_inside() && !before.section.is_inside();
            (after, if enters { Transition::Enters } else { transition(before, after) })
        }
        EventKind::Leased { until, old: false, .. } => {
            let transition = match (before.lease, until) {
                (None, Some(_)) => Transition::GainsLease(before.term),
                (Some(deadline), None) => Transition::LosesLease(deadline),
                _ => Transition::None,
            };
            (MemberState { lease: until, ..before }, transition)
        }
        // The end of its lease is reported next.
        EventKind::Crashed { .. } => {
            (MemberState { lease: before.lease, ..MemberState::DOWN }, Transition::None)
        }
        EventKind::Restarted { .. } => (STARTED, Transition::None),
        EventKind::Paused { until, .. } => {
            (MemberState { life: Life::Paused(until), ..before }, Transition::None)
        }
        _ => (before, Transition::None),
    }
}

fn transition(before: MemberState, after: MemberState) -> Transition {
    match (before.role, after.role) {
        (Role::Leader, Role::Leader)
        | (Role::Retiring, Role::Retiring)
        | (Role::Candidate, Role::Candidate) => Transition::None,
        (_, Role::Leader) => Transition::Leads,
        (_, Role::Retiring) => Transition::Retires,
        (Role::Leader | Role::Retiring, Role::Follower) => Transition::StepsDown(after.leader),
        (Role::Leader | Role::Retiring, Role::Candidate) => Transition::StepsDown(None),
        (Role::Follower, Role::Candidate) => Transition::Campaigns,
        (Role::Follower, Role::Follower) if before.leader == after.leader => Transition::None,
        (_, Role::Follower) => after.leader.map_or(Transition::LosesLeader, Transition::Follows),
    }
}

/// Separates what is worth showing from background work: heartbeats, acknowledgements and their timers. A receipt does
/// not say the class of its message, so the filter remembers the class of each kind that was sent: there are few kinds.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    background: bool,
    hidden: Vec<String>,
}

impl Filter {
    pub(super) fn new(background: bool) -> Self {
        Self { background, hidden: Vec::new() }
    }

    /// Whether an event is shown. Arming and disarming a timer are never shown: it is enough to show that it fires.
    pub(super) fn passes(&mut self, event: &EventKind) -> bool {
        match event {
            EventKind::Armed { .. } | EventKind::Disarmed { .. } => false,
            _ if self.background => true,
            EventKind::Fired { background, .. } => !background,
            EventKind::Sent { class, kind, .. } => {
                // What a link retransmits is a message of the algorithm.
                let shown = match class {
                    Class::Algorithm | Class::Marker | Class::Client => true,
                    Class::Link => !kind.ends_with("ACK"),
                    Class::Detector => false,
                };
                if !shown && !self.hidden.contains(kind) {
                    self.hidden.push(kind.clone());
                }
                shown
            }
            EventKind::Received { kind, .. } | EventKind::Missed { kind, .. } => {
                !self.hidden.contains(kind)
            }
            _ => true,
        }
    }
}
