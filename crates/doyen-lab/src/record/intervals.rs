//! Intervals: which member led, held a lease, waited for the critical section, was inside it or was down; when no member
//! led or several did; which links were cut.
//!
//! Leadership is counted as the simulator's metrics count it: where leaders have leases, a member leads while its lease
//! runs, whatever it believes.

use doyen_core::members::{NodeId, Term};
use doyen_core::protocol::Section;
use doyen_core::registry::Purpose;
use doyen_sim::render::model::{Life, MemberState};
use doyen_sim::time::Time;
use doyen_sim::trace::{EventKind, TraceEvent};
use serde::Serialize;

use super::State;

/// Everything that lasts. `to` is empty where it lasts until the end.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub(crate) struct Intervals {
    leader: Vec<Interval>,
    lease: Vec<Interval>,
    waiting: Vec<Interval>,
    inside: Vec<Interval>,
    down: Vec<Interval>,
    paused: Vec<Interval>,
    downtime: Vec<(u64, Option<u64>)>,
    /// When several members led, or were inside.
    overlap: Vec<Overlap>,
    partition: Vec<Partition>,
    cuts: Vec<Cut>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct Interval {
    member: NodeId,
    #[serde(skip_serializing_if = "Option::is_none")]
    term: Option<u64>,
    from: u64,
    to: Option<u64>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct Overlap {
    from: u64,
    to: Option<u64>,
    members: Vec<NodeId>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct Partition {
    from: u64,
    to: Option<u64>,
    groups: Vec<Vec<NodeId>>,
}

/// Messages from `a` to `b` do not arrive.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Cut {
    from: u64,
    to: Option<u64>,
    a: NodeId,
    b: NodeId,
}

/// Records intervals.
pub(super) struct Tracker {
    purpose: Purpose,
    leases: bool,
    members: Vec<Member>,
    done: Intervals,
}

/// The beginnings of the open intervals of one member.
struct Member {
    id: NodeId,
    leads: Option<Leading>,
    /// An old process of the member may hold a lease beside the present one.
    old: Option<Leading>,
    down: Option<Time>,
    paused: Option<(Time, Time)>,
    /// Where it is with respect to the critical section, and since when.
    section: (Section, Time),
}

/// A leadership that lasts.
#[derive(Clone, Copy)]
struct Leading {
    from: Time,
    term: Term,
    /// Its latest end, if there are leases.
    deadline: Option<Time>,
}

impl Leading {
    fn interval(self, id: NodeId, at: Option<Time>) -> Interval {
        let to = match (self.deadline, at) {
            (Some(deadline), Some(at)) => Some(deadline.min(at)),
            (_, at) => at,
        };
        Interval { term: Some(self.term.0), ..interval(id, self.from, to) }
    }
}

impl Tracker {
    pub(super) fn new(initial: &[State], purpose: Purpose, leases: bool) -> Self {
        let member = |state: &State| {
            let leads = state.role == "leader" && state.up && !leases;
            let first = Leading { from: Time::ZERO, term: Term(state.term), deadline: None };
            Member {
                id: state.id,
                leads: leads.then_some(first),
                old: None,
                down: (!state.up).then_some(Time::ZERO),
                paused: None,
                section: (Section::Outside, Time::ZERO),
            }
        };
        let members = initial.iter().map(member).collect();
        Self { purpose, leases, members, done: Intervals::default() }
    }

    /// The state of a member has changed.
    pub(super) fn change(
        &mut self,
        at: Time,
        place: usize,
        before: MemberState,
        after: MemberState,
    ) {
        if before == after {
            return;
        }
        let is_down = after.life == Life::Down;
        let leads = match self.leases {
            true => after.lease.is_some(),
            false => after.role.leads() && !is_down,
        };
        self.lead(at, place, leads.then_some((after.term, after.lease)));
        let member = &mut self.members[place];
        match (is_down, member.down) {
            (true, None) => member.down = Some(at),
            (false, Some(from)) => {
                member.down = None;
                self.done.down.push(interval(member.id, from, Some(at)));
            }
            _ => {}
        }
        self.pause(at, place, before.life, after.life);
        if before.section != after.section {
            self.close_section(place, Some(at));
            self.members[place].section = (after.section, at);
        }
    }

    /// A member no longer waits or is inside; without a time, the interval lasts until the end.
    fn close_section(&mut self, place: usize, at: Option<Time>) {
        let member = &self.members[place];
        let (section, since) = member.section;
        let over = interval(member.id, since, at);
        match section {
            Section::Outside => {}
            Section::Waiting => self.done.waiting.push(over),
            Section::Inside(_) => self.done.inside.push(over),
        }
    }

    /// A member leads in a term, at the latest until a deadline; or it does not lead.
    fn lead(&mut self, at: Time, place: usize, now: Option<(Term, Option<Time>)>) {
        let member = &mut self.members[place];
        // A lease that ran out unnoticed has ended at its deadline.
        let lapsed = |it: &Leading| it.deadline.is_some_and(|deadline| deadline <= at);
        if let Some(over) = member.leads.take_if(|it| now.is_none() || lapsed(it)) {
            self.done.leader.push(over.interval(member.id, Some(at)));
        }
        if let Some((term, deadline)) = now {
            let new = Leading { from: at, term, deadline };
            member.leads.get_or_insert(new).deadline = deadline.filter(|_| self.leases);
        }
    }

    fn pause(&mut self, at: Time, place: usize, before: Life, after: Life) {
        let member = &mut self.members[place];
        match after {
            Life::Paused(until) if before != after => {
                let goes_on = member.paused.filter(|&(_, over)| over >= at);
                if let (None, Some((from, over))) = (goes_on, member.paused) {
                    self.done.paused.push(interval(member.id, from, Some(over)));
                }
                member.paused = Some((goes_on.map_or(at, |it| it.0), until));
            }
            Life::Down => {
                if let Some((from, until)) = member.paused.take() {
                    self.done.paused.push(interval(member.id, from, Some(until.min(at))));
                }
            }
            _ => {}
        }
    }

    /// Takes note of what no member's state shows: changes of the network, and old processes. `before` is the place of the
    /// event's member, and its state before.
    pub(super) fn note(&mut self, event: &TraceEvent, before: Option<(usize, MemberState)>) {
        match (&event.kind, before) {
            // A second process starts beside the first, which may hold a lease.
            (EventKind::Restarted { .. }, Some((place, before))) if before.life != Life::Down => {
                let member = &mut self.members[place];
                if self.leases {
                    member.old = member.leads.take().or(member.old);
                }
            }
            (EventKind::Leased { until, old: true, .. }, Some((place, _))) => {
                self.lead_as_old(event.at, place, *until);
            }
            _ => self.network(event),
        }
    }

    /// The lease of a member's old process has changed.
    fn lead_as_old(&mut self, at: Time, place: usize, until: Option<Time>) {
        let member = &mut self.members[place];
        match (&mut member.old, until) {
            (Some(old), Some(until)) => old.deadline = Some(until),
            (Some(old), None) => {
                self.done.leader.push(old.interval(member.id, Some(at)));
                member.old = None;
            }
            (None, Some(until)) => {
                let deadline = Some(until);
                member.old = Some(Leading { from: at, term: Term(0), deadline });
            }
            (None, None) => {}
        }
    }

    /// The network has changed.
    fn network(&mut self, event: &TraceEvent) {
        let at = event.at.0;
        let heal = |done: &mut Intervals| {
            for partition in done.partition.iter_mut().filter(|it| it.to.is_none()) {
                partition.to = Some(at);
            }
        };
        match &event.kind {
            EventKind::Partitioned { groups } => {
                heal(&mut self.done);
                self.done.partition.push(Partition { from: at, to: None, groups: groups.clone() });
            }
            EventKind::Healed => {
                heal(&mut self.done);
                self.done.cuts.iter_mut().for_each(|cut| _ = cut.to.get_or_insert(at));
            }
            &EventKind::Cut { from: a, to: b } => {
                self.done.cuts.push(Cut { from: at, to: None, a, b });
            }
            EventKind::Mended { from, to } => {
                let is_it = |cut: &&mut Cut| (&cut.a, &cut.b) == (from, to) && cut.to.is_none();
                if let Some(cut) = self.done.cuts.iter_mut().find(is_it) {
                    cut.to = Some(at);
                }
            }
            _ => {}
        }
    }

    /// Everything that lasted, in a run that ends at `end`.
    pub(super) fn finish(&mut self, end: Time) -> Intervals {
        for place in 0..self.members.len() {
            self.close_section(place, None);
            let member = &mut self.members[place];
            if let Some((from, until)) = member.paused.take() {
                self.done.paused.push(interval(member.id, from, Some(until)));
            }
            if let Some(from) = member.down.take() {
                self.done.down.push(interval(member.id, from, None));
            }
            for leading in [member.leads.take(), member.old.take()].into_iter().flatten() {
                let is_over = leading.deadline.is_some_and(|deadline| deadline < end);
                self.done.leader.push(leading.interval(member.id, is_over.then_some(end)));
            }
        }
        let mut done = std::mem::take(&mut self.done);
        let lists = [&mut done.leader, &mut done.waiting, &mut done.inside];
        for list in lists.into_iter().chain([&mut done.down, &mut done.paused]) {
            list.retain(|it| it.to != Some(it.from));
            list.sort_by_key(|it| (it.from, it.member));
        }
        if self.leases {
            done.lease =
                done.leader.iter().map(|it| Interval { term: None, ..it.clone() }).collect();
        }
        match self.purpose {
            Purpose::Elects => (done.downtime, done.overlap) = sweep(&done.leader, end.0),
            Purpose::Excludes => (_, done.overlap) = sweep(&done.inside, end.0),
            Purpose::Records | Purpose::Serves => {}
        }
        done
    }
}

fn interval(member: NodeId, from: Time, to: Option<Time>) -> Interval {
    Interval { member, term: None, from: from.0, to: to.map(|to| to.0) }
}

/// When no member led or was inside, and when several did or were.
fn sweep(leader: &[Interval], end: u64) -> (Vec<(u64, Option<u64>)>, Vec<Overlap>) {
    let mut times: Vec<u64> =
        leader.iter().flat_map(|it| [it.from, it.to.unwrap_or(end)]).chain([0, end]).collect();
    times.sort_unstable();
    times.dedup();
    let (mut downtime, mut overlap): (Vec<(u64, Option<u64>)>, Vec<Overlap>) = Default::default();
    for pair in times.windows(2) {
        let [from, to] = [pair[0], pair[1]];
        let leads = |it: &&Interval| it.from <= from && it.to.unwrap_or(end) > from;
        let mut members: Vec<NodeId> = leader.iter().filter(leads).map(|it| it.member).collect();
        members.sort_unstable();
        let to = (to < end).then_some(to);
        match members.len() {
            0 => match downtime.last_mut().filter(|last| last.1 == Some(from)) {
                Some(last) => last.1 = to,
                None => downtime.push((from, to)),
            },
            1 => {}
            _ => match overlap.last_mut().filter(|it| it.to == Some(from) && it.members == members)
            {
                Some(last) => last.to = to,
                None => overlap.push(Overlap { from, to, members }),
            },
        }
    }
    (downtime, overlap)
}

impl Intervals {
    /// How long no member led, and how long several led or were inside, in a run that ends at `end`.
    pub(crate) fn totals(&self, end: u64) -> (u64, u64) {
        let length = |from: u64, to: Option<u64>| to.unwrap_or(end).saturating_sub(from);
        let downtime = self.downtime.iter().map(|&(from, to)| length(from, to)).sum();
        (downtime, self.overlap.iter().map(|it| length(it.from, it.to)).sum())
    }
}
