//! The elements of a diagram: life lines, arrows and marks, from the events of a run.

use doyen_core::layers;
use doyen_core::members::{Key, NodeId, Term};
use doyen_core::protocol::{Family, Role, Section};
use doyen_core::registry::Purpose;
use doyen_core::time::Span;

use super::super::describe::{bracketed, describe, sides, timer_name};
use super::super::model::{Life, MemberState, RunModel, Transition};
use super::super::{MAX_MEMBERS, MAX_MESSAGES, RunInfo, TooLarge, Unit};
use crate::hash::FastMap;
use crate::time::Time;
use crate::trace::{EventKind, TraceEvent};

/// Everything there is to draw.
#[derive(Debug)]
pub(super) struct Plot {
    pub(super) lanes: Vec<Lane>,
    pub(super) arrows: Vec<Arrow>,
    pub(super) marks: Vec<Mark>,
    pub(super) splits: Vec<Split>,
    pub(super) cuts: Vec<Cut>,
    /// The intervals in which more than one member was inside the critical section.
    pub(super) overlaps: Vec<(Time, Time)>,
    /// The kinds of messages, in the order in which they were first sent.
    pub(super) kinds: Vec<MessageKind>,
    /// The time of the last event that is worth showing.
    pub(super) end: Time,
    /// How long a message takes, typically, in nanoseconds.
    pub(super) flight: u64,
}

/// A kind of messages.
#[derive(Debug)]
pub(super) struct MessageKind {
    pub(super) name: String,
    pub(super) family: Family,
}

/// A member's life line.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) key: Key,
    pub(super) stretches: Vec<Stretch>,
    pub(super) leases: Vec<Lease>,
    /// The terms that it opened or led in, and when it did first.
    pub(super) terms: Vec<(Time, Term)>,
    /// The state of the member at the end.
    pub(super) ending: String,
}

/// A time in which a member was in a state that is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub(super) state: State,
    pub(super) from: Time,
    pub(super) to: Time,
}

/// A lease, from its first publication on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lease {
    pub(super) term: Term,
    pub(super) from: Time,
    /// Its deadline, as it was published last.
    pub(super) until: Time,
    /// When its holder no longer had it; later than the deadline if the holder was paused and did not notice.
    pub(super) ended: Option<Time>,
    /// Its holder had stopped everything that depended on it.
    pub(super) given_up: bool,
    pub(super) renewals: u32,
}

impl Lease {
    /// The end of its holder's possession.
    pub(super) fn held_to(&self) -> Time {
        self.ended.map_or(self.until, |ended| ended.min(self.until))
    }

    /// Until when a program may act on the published deadline, though the holder no longer has the lease.
    pub(super) fn stands_to(&self) -> Option<Time> {
        (self.held_to() < self.until && !self.given_up).then_some(self.until)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Campaigns,
    Leads,
    Waits,
    Inside,
    /// Inside beside another member.
    Together,
    Paused,
    Down,
}

/// A message on its way.
#[derive(Clone, Debug)]
pub(super) struct Arrow {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) sent: Time,
    /// When it arrives; for a lost message, when it would have arrived.
    pub(super) ends: Time,
    pub(super) fate: Fate,
    pub(super) kind: usize,
    /// What it says besides its kind.
    pub(super) fields: String,
    pub(super) title: String,
    /// The events that it is drawn from.
    pub(super) events: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// Still under way when the run ends.
    UnderWay,
    Received,
    /// Received once more: the network doubled it.
    Doubled,
    Lost,
    /// Its receiver is down.
    Missed,
}

/// Something that happened to one member.
#[derive(Debug)]
pub(super) struct Mark {
    pub(super) lane: usize,
    pub(super) at: Time,
    pub(super) sign: Sign,
    pub(super) title: String,
    pub(super) event: usize,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Sign {
    Campaign,
    Request,
    Timer(String),
    Crash,
    Restart,
    Clock,
    Suspects,
    Trusts,
    Leads,
    /// Enters the critical section beside another member.
    EntersBeside,
}

/// A partition of the network, from its beginning to its end.
#[derive(Debug)]
pub(super) struct Split {
    pub(super) from: Time,
    /// `None` if it lasts to the end.
    pub(super) to: Option<Time>,
    pub(super) label: String,
}

/// A link that was cut or mended.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) at: Time,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) mended: bool,
    pub(super) title: String,
}

impl Plot {
    /// The plot of `events`, unless it is too large.
    pub(super) fn new(
        info: &RunInfo,
        events: &[TraceEvent],
        background: bool,
        unit: Unit,
    ) -> Result<Self, TooLarge> {
        if info.len() > MAX_MEMBERS {
            return Err(TooLarge::Members(info.len()));
        }
        let mut plotter = Plotter::new(RunModel::new(info.clone(), background), unit);
        for (index, event) in events.iter().enumerate() {
            plotter.take(index, event);
            if plotter.plot.arrows.len() > MAX_MESSAGES {
                return Err(TooLarge::Messages);
            }
        }
        Ok(plotter.finish())
    }
}

/// Makes a plot from one event after the other.
struct Plotter {
    model: RunModel,
    unit: Unit,
    plot: Plot,
    /// Since when each member is dead, since when it has its role, and since when it waits or is inside.
    dead: Vec<Option<Time>>,
    since: Vec<Time>,
    section_since: Vec<Time>,
    /// The arrow of each message.
    sent: FastMap<u32, usize>,
}

impl Plotter {
    fn new(model: RunModel, unit: Unit) -> Self {
        let lane = |key| Lane {
            key,
            stretches: Vec::new(),
            leases: Vec::new(),
            terms: Vec::new(),
            ending: String::new(),
        };
        let plot = Plot {
            lanes: model.info.keys().into_iter().map(lane).collect(),
            arrows: Vec::new(),
            marks: Vec::new(),
            splits: Vec::new(),
            cuts: Vec::new(),
            overlaps: Vec::new(),
            kinds: Vec::new(),
            end: Time::ZERO,
            flight: 0,
        };
        let count = model.info.len();
        let (dead, since) = (vec![None; count], vec![Time::ZERO; count]);
        let section_since = since.clone();
        Self { model, unit, plot, dead, since, section_since, sent: FastMap::default() }
    }

    fn take(&mut self, index: usize, event: &TraceEvent) {
        let Some(shown) = self.model.apply(event) else { return };
        self.plot.end = self.plot.end.max(event.at);
        let Some((lane, before)) = shown.member else { return self.take_split(event) };
        match &event.kind {
            EventKind::Sent { .. } => self.take_send(index, lane, event),
            EventKind::Received { id, rules, .. } => {
                self.land(index, *id, event.at, Fate::Received, &bracketed(rules));
            }
            EventKind::Missed { id, to, .. } => {
                self.land(index, *id, event.at, Fate::Missed, &format!(": {to} is down"));
            }
            EventKind::Cut { from, to } => self.take_cut(event.at, lane, *from, *to, false),
            EventKind::Mended { from, to } => self.take_cut(event.at, lane, *from, *to, true),
            _ => self.take_event(index, event, (lane, before), shown.transition),
        }
    }

    fn take_send(&mut self, index: usize, from: usize, event: &TraceEvent) {
        let EventKind::Sent { id, to, kind, text, arrives, .. } = &event.kind else { return };
        let Some(to) = self.model.info.place(*to) else { return };
        let fields = text.strip_prefix(kind.as_str()).unwrap_or(text).trim().to_owned();
        let kinds = &mut self.plot.kinds;
        let kind = kinds.iter().position(|known| known.name == *kind).unwrap_or_else(|| {
            let family = layers::family_of(kind).unwrap_or(Family::Upkeep);
            kinds.push(MessageKind { name: kind.clone(), family });
            kinds.len() - 1
        });
        let fate = if arrives.is_some() { Fate::UnderWay } else { Fate::Lost };
        let (lanes, when) = (&self.plot.lanes, self.unit.short(event.at.0));
        let ids = (lanes[from].key.id, lanes[to].key.id);
        let mut title = format!("{} → {} {text}, sent at {when}", ids.0, ids.1);
        if fate == Fate::Lost {
            title.push_str(", lost");
        }
        self.sent.insert(*id, self.plot.arrows.len());
        self.plot.arrows.push(Arrow {
            from,
            to,
            sent: event.at,
            ends: arrives.unwrap_or(event.at),
            fate,
            kind,
            fields,
            title,
            events: vec![index],
        });
    }

    /// A message arrives: for the second time if its arrow already has an end.
    fn land(&mut self, index: usize, id: u32, at: Time, fate: Fate, note: &str) {
        let Some(&sent) = self.sent.get(&id) else { return };
        let again = self.plot.arrows[sent].fate != Fate::UnderWay;
        let arrow = if again {
            let double = Arrow { fate: Fate::Doubled, ..self.plot.arrows[sent].clone() };
            self.plot.arrows.push(double);
            self.plot.arrows.len() - 1
        } else {
            self.plot.arrows[sent].fate = fate;
            sent
        };
        let arrow = &mut self.plot.arrows[arrow];
        arrow.ends = at;
        arrow.events.push(index);
        let (when, again) = (self.unit.short(at.0), if again { " again" } else { "" });
        arrow.title.push_str(&format!(", arrives{again} at {when}{note}"));
    }

    fn take_cut(&mut self, at: Time, from: usize, out: NodeId, into: NodeId, mended: bool) {
        let Some(to) = self.model.info.place(into) else { return };
        let what = if mended { "mended" } else { "cut" };
        let title = format!("{what} {out} → {into} at {}", self.unit.short(at.0));
        self.plot.cuts.push(Cut { at, from, to, mended, title });
    }

    fn take_split(&mut self, event: &TraceEvent) {
        if matches!(event.kind, EventKind::Network { .. }) {
            return; // the network is as whole as before
        }
        if let Some(last) = self.plot.splits.last_mut().filter(|last| last.to.is_none()) {
            last.to = Some(event.at);
        }
        if let EventKind::Partitioned { groups } = &event.kind {
            let split = Split { from: event.at, to: None, label: sides(groups) };
            self.plot.splits.push(split);
        }
    }

    /// Everything that changes a life line or is a mark on it.
    fn take_event(
        &mut self,
        index: usize,
        event: &TraceEvent,
        (lane, before): (usize, MemberState),
        transition: Transition,
    ) {
        let at = event.at;
        let sign = match &event.kind {
            EventKind::Fired { timer, .. } => Some(Sign::Timer(timer_name(timer).to_owned())),
            EventKind::Campaign { .. } => Some(Sign::Campaign),
            EventKind::Request { .. } => Some(Sign::Request),
            EventKind::Suspected { .. } => Some(Sign::Suspects),
            EventKind::Trusted { .. } => Some(Sign::Trusts),
            EventKind::Clock { .. } => Some(Sign::Clock),
            EventKind::View { role, term, section, .. } => {
                self.close_role(lane, before.role, at);
                if *section != before.section {
                    self.close_section(lane, before.section, at);
                }
                // Where leaders have leases, a member that campaigns or leads in another term shows that term.
                if self.model.info.leases && *role != Role::Follower && *term != before.term {
                    self.plot.lanes[lane].terms.push((at, *term));
                }
                match transition {
                    Transition::Leads => Some(Sign::Leads),
                    Transition::EntersBeside(_) => Some(Sign::EntersBeside),
                    _ => None,
                }
            }
            EventKind::Leased { until, old: false, .. } => {
                self.take_lease(lane, before.term, at, *until);
                None
            }
            EventKind::Retired { .. } | EventKind::Released { .. } => {
                if let Some(lease) = self.running_lease(lane) {
                    lease.given_up = true;
                }
                None
            }
            EventKind::Crashed { forwards, .. } => {
                self.close_role(lane, before.role, at);
                self.close_section(lane, before.section, at);
                self.cut_pauses_short(lane, at);
                self.dead[lane].get_or_insert(at);
                // For a member that is dead from the beginning the life line is enough.
                (at > Time::ZERO || *forwards).then_some(Sign::Crash)
            }
            EventKind::Restarted { .. } => {
                self.close_death(lane, at);
                self.since[lane] = at;
                Some(Sign::Restart)
            }
            EventKind::Paused { until, .. } => {
                let pause = Stretch { state: State::Paused, from: at, to: *until };
                self.plot.lanes[lane].stretches.push(pause);
                None
            }
            _ => None,
        };
        let described = describe(event, transition);
        if let (Some(sign), Some((phrase, peers))) = (sign, described) {
            let (id, when) = (self.plot.lanes[lane].key.id, self.unit.short(at.0));
            let title = format!("{id}: {}, at {when}", phrase.predicate(&peers));
            self.plot.marks.push(Mark { lane, at, sign, title, event: index });
        }
    }

    /// The lease that a member has, as far as events have reported it.
    fn running_lease(&mut self, lane: usize) -> Option<&mut Lease> {
        self.plot.lanes[lane].leases.last_mut().filter(|last| last.ended.is_none())
    }

    /// The lease of a member has another deadline than before.
    fn take_lease(&mut self, lane: usize, term: Term, at: Time, until: Option<Time>) {
        match (self.running_lease(lane), until) {
            (Some(lease), Some(until)) => {
                lease.until = until;
                lease.renewals += 1;
            }
            (Some(lease), None) => lease.ended = Some(at),
            (None, Some(until)) => {
                let lease =
                    Lease { term, from: at, until, ended: None, given_up: false, renewals: 0 };
                self.plot.lanes[lane].leases.push(lease);
            }
            (None, None) => {}
        }
    }

    /// Draws the role a member has had until now.
    fn close_role(&mut self, lane: usize, role: Role, at: Time) {
        let from = std::mem::replace(&mut self.since[lane], at);
        let state = match role {
            Role::Follower => return,
            Role::Candidate => State::Campaigns,
            Role::Leader | Role::Retiring => State::Leads,
        };
        let stretches = &mut self.plot.lanes[lane].stretches;
        match stretches.iter_mut().rev().find(|last| last.state == state && last.to == from) {
            Some(last) => last.to = at, // a new term under the same leader
            None => stretches.push(Stretch { state, from, to: at }),
        }
    }

    /// Draws that a member has waited or been inside until now.
    fn close_section(&mut self, lane: usize, section: Section, at: Time) {
        let from = std::mem::replace(&mut self.section_since[lane], at);
        let state = match section {
            Section::Outside => return,
            Section::Waiting => State::Waits,
            Section::Inside(_) => State::Inside,
        };
        self.plot.lanes[lane].stretches.push(Stretch { state, from, to: at });
    }

    /// Where members are inside together, their bars and the whole picture show it.
    fn find_overlaps(&mut self) {
        let is_inside = |stretch: &&Stretch| stretch.state == State::Inside;
        let stays: Vec<(usize, Stretch)> = (self.plot.lanes.iter().enumerate())
            .flat_map(|(lane, it)| it.stretches.iter().filter(is_inside).map(move |it| (lane, *it)))
            .collect();
        let mut overlaps: Vec<(Time, Time)> = Vec::new();
        for (number, (lane, one)) in stays.iter().enumerate() {
            for (other_lane, other) in &stays[number + 1..] {
                let (from, to) = (one.from.max(other.from), one.to.min(other.to));
                if from < to && lane != other_lane {
                    let together = Stretch { state: State::Together, from, to };
                    self.plot.lanes[*lane].stretches.push(together);
                    self.plot.lanes[*other_lane].stretches.push(together);
                    overlaps.push((from, to));
                }
            }
        }
        overlaps.sort_unstable();
        for (from, to) in overlaps {
            match self.plot.overlaps.last_mut().filter(|last| from <= last.1) {
                Some(last) => last.1 = last.1.max(to),
                None => self.plot.overlaps.push((from, to)),
            }
        }
    }

    fn close_death(&mut self, lane: usize, at: Time) {
        if let Some(from) = self.dead[lane].take() {
            self.plot.lanes[lane].stretches.push(Stretch { state: State::Down, from, to: at });
        }
    }

    fn cut_pauses_short(&mut self, lane: usize, at: Time) {
        let pauses = self.plot.lanes[lane].stretches.iter_mut();
        for pause in pauses.filter(|stretch| stretch.state == State::Paused) {
            pause.to = pause.to.min(at);
        }
    }

    fn finish(mut self) -> Plot {
        self.plot.flight = self.typical_flight();
        let lost = self.plot.arrows.iter_mut().filter(|arrow| arrow.fate == Fate::Lost);
        for arrow in lost {
            arrow.ends = arrow.sent + Span::from_nanos(self.plot.flight);
        }
        let end = Time(u64::MAX); // the drawing ends before it
        for lane in 0..self.plot.lanes.len() {
            let state = self.model.member(lane);
            self.close_role(lane, state.role, end);
            self.close_section(lane, state.section, end);
            self.close_death(lane, end);
            let ending = match (state.life, state.role, state.leader) {
                (Life::Down, ..) => "down".to_owned(),
                _ if self.model.info.purpose == Purpose::Excludes => {
                    section_at_the_end(state.section).to_owned()
                }
                (_, Role::Leader | Role::Retiring, _) => "leads".to_owned(),
                (_, Role::Candidate, _) => "electing".to_owned(),
                (_, Role::Follower, None) => "no leader".to_owned(),
                (_, Role::Follower, Some(leader)) => format!("follows {leader}"),
            };
            self.plot.lanes[lane].ending = ending;
        }
        self.find_overlaps();
        self.plot
    }

    /// The median; D if nothing has arrived. D itself may be far longer, if it allows for retransmissions.
    fn typical_flight(&self) -> u64 {
        let arrived = self.plot.arrows.iter().filter(|arrow| arrow.fate == Fate::Received);
        let flight = |arrow: &Arrow| (arrow.ends - arrow.sent).as_nanos();
        let mut flights: Vec<u64> = arrived.map(flight).collect();
        flights.sort_unstable();
        let median = flights.get(flights.len() / 2).copied().filter(|&nanos| nanos > 0);
        median.unwrap_or(self.model.info.transmission.as_nanos()).max(1)
    }
}

/// Where a member is with respect to the critical section when the run ends.
fn section_at_the_end(section: Section) -> &'static str {
    match section {
        Section::Outside => "outside",
        Section::Waiting => "waits",
        Section::Inside(_) => "inside",
    }
}
