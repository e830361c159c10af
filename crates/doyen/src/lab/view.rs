//! What the page is told, as JSON.

use std::collections::BTreeMap;

use doyen::clock::Moment;
use doyen::node::status::{MemberStatus, Status};
use doyen_core::protocol::Role;
use serde::Serialize;

use super::failover::{self, Part};
use super::leadership::Interval;
use super::monitor::{MarkKind, Monitor, State};
use super::sentence::{Sentence, sentence};

/// Everything about the cluster as it is now.
#[derive(PartialEq, Debug, Serialize)]
pub(crate) struct Cluster<'a> {
    algorithm: &'a str,
    profile: &'a str,
    heartbeat_us: u64,
    /// The length of a lease; none without leases.
    lease_us: Option<u64>,
    needed: usize,
    members: Vec<Member<'a>>,
    cuts: Vec<[&'a str; 2]>,
    partition: Option<Vec<Vec<&'a str>>>,
    sentence: Sentence,
}

#[derive(PartialEq, Debug, Serialize)]
struct Member<'a> {
    name: &'a str,
    id: usize,
    priority: i64,
    pid: Option<i32>,
    address: &'a str,
    http: &'a str,
    state: State,
    since_us: u64,
    role: String,
    term: u64,
    leader: Option<&'a str>,
    lease: Option<Lease>,
    drained: bool,
    eligible: bool,
    /// Next in line.
    next: bool,
    /// Whether it reaches each other member; null if it does not tell.
    reach: BTreeMap<&'a str, Option<bool>>,
    rtt_us: BTreeMap<&'a str, u64>,
    incarnation: u32,
    penalty: Option<Penalty>,
    warnings: Vec<String>,
    log_tail: Option<&'a str>,
}

#[derive(PartialEq, Debug, Serialize)]
struct Lease {
    until_us: u64,
    length_us: u64,
}

/// It failed as leader, and ranks behind other members for a time.
#[derive(PartialEq, Debug, Serialize)]
struct Penalty {
    failures: u8,
    /// When the latest failure no longer counts, where the leader knows it.
    until_us: Option<u64>,
}

pub(crate) fn cluster(monitor: &Monitor, now: Moment) -> Cluster<'_> {
    let setup = &monitor.setup;
    let name = |member: usize| &*setup.names[member];
    let (timing, pace) = (setup.profile.timing(), setup.profile.settings().pace);
    let lease_us = setup.algorithm.has_leases().then(|| pace.lease().as_nanos() / 1000);
    let leader = monitor.leadership.current().next();
    let leader = leader.and_then(|leader| monitor.members[leader.member].status.as_ref());
    let groups = |groups: &Vec<Vec<usize>>| {
        groups.iter().map(|group| group.iter().map(|&member| name(member)).collect()).collect()
    };
    let members = (0..monitor.members.len()).map(|place| member(monitor, place, leader, lease_us));
    Cluster {
        algorithm: setup.algorithm.name(),
        profile: setup.profile.name(),
        heartbeat_us: timing.heartbeat.as_nanos() / 1000,
        lease_us,
        needed: setup.needed(),
        members: members.collect(),
        cuts: monitor.cuts.iter().map(|&(from, to)| [name(from), name(to)]).collect(),
        partition: monitor.partition.as_ref().map(groups),
        sentence: sentence(monitor, now),
    }
}

/// One member. `leader`: what the leader knows, which is the best that is known of the others.
fn member<'a>(
    monitor: &'a Monitor,
    place: usize,
    leader: Option<&Status>,
    lease_us: Option<u64>,
) -> Member<'a> {
    let (setup, it) = (&monitor.setup, &monitor.members[place]);
    let status = it.status.as_ref().filter(|_| it.state.has_process());
    let own = status.and_then(|status| status.member(status.id));
    let seen = leader.and_then(|leader| leader.members.get(place));
    let known = own.or(seen);
    let others = |status: &'a Status| status.members.iter().filter(|other| other.id != status.id);
    let answers = status.filter(|_| it.state == State::Up);
    let name =
        |other: &MemberStatus| monitor.place_of(other.id).map_or("", |place| &*setup.names[place]);
    let reach = |other: usize| {
        let told = answers.and_then(|status| status.members.get(other));
        (&*setup.names[other], told.map(|other| other.reachable))
    };
    let rtt = |other: &'a MemberStatus| Some((name(other), other.rtt_us?));
    let next = leader.and_then(|leader| leader.next).and_then(|id| monitor.place_of(id));
    let follows = answers.and_then(|status| monitor.place_of(status.leader?));
    let lease = it.lease.filter(|_| monitor.leadership.leads(place).is_some());
    Member {
        name: &setup.names[place],
        id: place + 1,
        priority: known.map_or(place as i64 + 1, |known| known.priority),
        pid: it.pid,
        address: &setup.addresses[place],
        http: &setup.urls[place],
        state: it.state,
        since_us: setup.micros(it.since),
        role: role(monitor, place, status),
        term: status.map_or(0, |status| status.term.0),
        leader: follows.map(|leader| &*setup.names[leader]),
        lease: lease.map(|lease| Lease {
            until_us: setup.micros(lease.deadline),
            length_us: lease_us.unwrap_or_default(),
        }),
        drained: status.is_some_and(|status| status.drained),
        eligible: seen.or(own).is_none_or(|known| known.eligible),
        next: next == Some(place),
        reach: (0..monitor.members.len()).filter(|&other| other != place).map(reach).collect(),
        rtt_us: answers.map(|status| others(status).filter_map(rtt).collect()).unwrap_or_default(),
        incarnation: status.map_or(0, |status| status.incarnation.0),
        penalty: leader.zip(seen).and_then(|(leader, seen)| penalty(monitor, leader, seen)),
        warnings: warnings(status, seen),
        log_tail: it.log_tail.as_deref(),
    }
}

/// Its role. A leader whose lease is over while it is paused leads no longer, whatever it said last.
fn role(monitor: &Monitor, place: usize, status: Option<&Status>) -> String {
    let (Some(status), leads) = (status, monitor.leadership.leads(place).is_some()) else {
        return "unknown".to_owned();
    };
    let is_paused = monitor.members[place].state == State::Paused;
    match status.role {
        Role::Leader | Role::Retiring if is_paused && !leads => "unknown".to_owned(),
        role => role.to_string(),
    }
}

/// The penalty of a member, by what the leader knows about it.
fn penalty(monitor: &Monitor, leader: &Status, seen: &MemberStatus) -> Option<Penalty> {
    let taken_us = monitor.setup.micros(leader.taken_at);
    let until_us = seen.penalty_remaining_ms.map(|left| taken_us + left * 1000);
    (seen.recent_failures > 0).then_some(Penalty { failures: seen.recent_failures, until_us })
}

/// What an operator should know. `seen`: what the leader knows about this member.
fn warnings(status: Option<&Status>, seen: Option<&MemberStatus>) -> Vec<String> {
    let own = status.and_then(|status| status.member(status.id));
    let own = own.into_iter().flat_map(|own| own.notices.clone());
    own.chain(seen.and_then(MemberStatus::rejection).map(str::to_owned)).collect()
}

/// The leaders over time, and what happened to processes.
#[derive(Debug, Serialize)]
pub(crate) struct Timeline<'a> {
    leader: Vec<Led<'a>>,
    downtime: Vec<Time>,
    overlap: Vec<Overlap<'a>>,
    marks: Vec<Mark<'a>>,
    failovers: Vec<FailoverView<'a>>,
}

#[derive(Debug, Serialize)]
struct Led<'a> {
    member: &'a str,
    term: u64,
    from_us: u64,
    to_us: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Time {
    from_us: u64,
    to_us: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Overlap<'a> {
    from_us: u64,
    to_us: Option<u64>,
    members: Vec<&'a str>,
}

#[derive(Debug, Serialize)]
struct Mark<'a> {
    member: &'a str,
    at_us: u64,
    kind: MarkKind,
}

#[derive(Debug, Serialize)]
struct FailoverView<'a> {
    /// When the next leader led.
    at_us: u64,
    /// When the last one led no longer.
    from_us: u64,
    from: Option<&'a str>,
    to: &'a str,
    term: u64,
    why: String,
    downtime_us: u64,
    overlap_us: u64,
    parts: Vec<Part>,
    advice: Option<String>,
}

pub(crate) fn timeline(monitor: &Monitor) -> Timeline<'_> {
    let setup = &monitor.setup;
    let name = |member: usize| &*setup.names[member];
    let us = |at: Moment| setup.micros(at);
    let leadership = &monitor.leadership;
    let led = leadership.intervals().map(|interval: &Interval| Led {
        member: name(interval.member),
        term: interval.term,
        from_us: us(interval.from),
        to_us: interval.to.map(|(to, _)| us(to)),
    });
    let downtime = leadership.downtime();
    let downtime = downtime.iter().map(|it| Time { from_us: us(it.from), to_us: it.to.map(us) });
    let overlap = leadership.overlap();
    let overlap = overlap.iter().map(|span| Overlap {
        from_us: us(span.from),
        to_us: span.to.map(us),
        members: span.members.iter().map(|&member| name(member)).collect(),
    });
    let marks = monitor.marks.iter().map(|mark| Mark {
        member: name(mark.member),
        at_us: us(mark.at),
        kind: mark.kind,
    });
    let failovers = leadership.failovers();
    let failovers = failovers.iter().map(|failover| {
        let (old, new) = (name(failover.before.member), name(failover.after.member));
        let parts = failover::parts(failover, old, new);
        let campaign = failover.after.campaign.as_ref();
        FailoverView {
            at_us: us(failover.after.from),
            from_us: us(failover::began(failover)),
            from: Some(old),
            to: new,
            term: failover.after.term,
            why: match failover.is_gap() {
                true => "its lease lapsed and came back".to_owned(),
                false => campaign.map_or_else(String::new, |campaign| campaign.why.clone()),
            },
            downtime_us: failover.downtime_us,
            overlap_us: failover.overlap_us,
            advice: failover::advice(&parts, setup.algorithm, setup.profile),
            parts,
        }
    });
    Timeline {
        leader: led.collect(),
        downtime: downtime.collect(),
        overlap: overlap.collect(),
        marks: marks.collect(),
        failovers: failovers.collect(),
    }
}
