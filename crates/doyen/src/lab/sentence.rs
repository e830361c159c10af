//! The present state, its reason, and what would come next: three sentences, the largest text of the page.

use std::time::Duration;

use doyen::clock::Moment;
use doyen_core::change::{ElectionReason, TransferReason};
use doyen_sim::words::{capitalized, listed};
use serde::Serialize;

use super::leadership::{End, Failover, Interval};
use super::monitor::{Monitor, State};
use super::words::{length, number};
use crate::cli::absence::needs;

/// How many names a sentence lists.
const MOST_NAMES: usize = 4;

/// A cluster that has no leader after this long has a problem.
const STARTS: Duration = Duration::from_secs(3);

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Sentence {
    /// The present state.
    first: String,
    /// Its reason.
    second: String,
    /// What may happen next.
    third: String,
    /// Since when, where it is bad and a clock should run: no leader, or several.
    since_us: Option<u64>,
}

pub(crate) fn sentence(monitor: &Monitor, now: Moment) -> Sentence {
    let leaders: Vec<&Interval> = monitor.leadership.current().collect();
    let (first, second, since) = match leaders[..] {
        [] => nobody(monitor, now),
        [leader] => (leads(monitor, leader), elected(monitor, leader, now), None),
        _ => several(monitor, &leaders),
    };
    let third = next(monitor, leaders.first().copied());
    Sentence { first, second, third, since_us: since.map(|since| monitor.setup.micros(since)) }
}

fn name(monitor: &Monitor, member: usize) -> &str {
    &monitor.setup.names[member]
}

/// The names of these members, or how many there are.
fn names(monitor: &Monitor, members: &[usize]) -> String {
    match members.len() > MOST_NAMES {
        true => format!("{} members", number(members.len())),
        false => listed(&members.iter().map(|&member| name(monitor, member)).collect::<Vec<_>>()),
    }
}

fn up(monitor: &Monitor) -> Vec<usize> {
    let is_up = |&member: &usize| monitor.members[member].state == State::Up;
    (0..monitor.members.len()).filter(is_up).collect()
}

fn nobody(monitor: &Monitor, now: Moment) -> (String, String, Option<Moment>) {
    let Some(last) = monitor.leadership.last() else {
        let began = monitor.setup.began;
        if now.since(began) < STARTS {
            let nodes = match monitor.members.len() {
                1 => "one node".to_owned(),
                count => format!("{} nodes", number(count)),
            };
            return (format!("Starting {nodes}…"), String::new(), None);
        }
        return ("No leader yet".to_owned(), cannot_elect(monitor), Some(began));
    };
    let since = last.to.map(|(to, _)| to);
    let lost = match last.to.map(|(_, end)| end) {
        Some(End::Died) => format!("Leader {} died.", name(monitor, last.member)),
        Some(End::Lapsed) => {
            format!("The lease of {} ran out without a renewal.", name(monitor, last.member))
        }
        Some(End::GivenUp) | None => format!("{} gave up leadership.", name(monitor, last.member)),
    };
    ("No leader".to_owned(), format!("{lost} {}", cannot_elect(monitor)), since)
}

/// Why no leader can be elected now, or that an election is under way.
fn cannot_elect(monitor: &Monitor) -> String {
    let (up, all, needed) = (up(monitor), monitor.members.len(), monitor.setup.needed());
    if up.len() < needed {
        return format!("{} of {all} members are up, and {}.", up.len(), needs(needed));
    }
    let group = |&one: &usize| {
        let together = up.iter().filter(|&&other| !monitor.is_cut(one, other));
        together.copied().collect::<Vec<usize>>()
    };
    let largest = up.iter().map(group).max_by_key(Vec::len).unwrap_or_default();
    match largest.len() {
        most if most >= needed => "An election is in progress.".to_owned(),
        1 => format!("No member reaches another one, and {}.", needs(needed)),
        _ => format!("{} reach each other, {}.", names(monitor, &largest), needs(needed)),
    }
}

/// That one member leads, and which ones do not know it.
fn leads(monitor: &Monitor, leader: &Interval) -> String {
    let Interval { member, term, .. } = *leader;
    let follows = |other: usize| {
        let status = monitor.members[other].status.as_ref();
        status.is_none_or(|it| it.leader.and_then(|id| monitor.place_of(id)) == Some(member))
    };
    let unaware = up(monitor).into_iter().filter(|&other| other != member && !follows(other));
    let (cut, late): (Vec<usize>, Vec<usize>) =
        unaware.partition(|&other| monitor.is_cut(member, other));
    let leader = name(monitor, member);
    let verb = |members: &[usize], one: &str, many: &str| match members.len() {
        1 => one.to_owned(),
        _ => many.to_owned(),
    };
    match (late.is_empty(), cut.is_empty()) {
        (false, _) => format!(
            "{leader} leads; {} {} not know it yet",
            names(monitor, &late),
            verb(&late, "does", "do")
        ),
        (true, false) => format!(
            "{leader} leads in term {term}; {} {} cut off",
            names(monitor, &cut),
            verb(&cut, "is", "are")
        ),
        (true, true) => format!("{leader} leads in term {term}"),
    }
}

/// Since when and why a member leads.
fn elected(monitor: &Monitor, leader: &Interval, now: Moment) -> String {
    let ago = length(super::leadership::micros(leader.from, now));
    let Some(failover) = monitor.leadership.failover_to(leader) else {
        return format!("Elected {ago} ago.");
    };
    let story = how(monitor, &failover, &ago);
    let overlap = match failover.overlap_us {
        0 => "no overlap".to_owned(),
        overlap => format!("overlap {}", length(overlap)),
    };
    format!("{story} Downtime {}, {overlap}.", length(failover.downtime_us))
}

fn how(monitor: &Monitor, failover: &Failover<'_>, ago: &str) -> String {
    let old = name(monitor, failover.before.member);
    let new = name(monitor, failover.after.member);
    if failover.is_gap() {
        return format!("Its lease lapsed and came back {ago} ago, in the same term.");
    }
    let reason = failover.after.campaign.as_ref().and_then(|campaign| campaign.reason);
    if let Some(ElectionReason::Transferred { by, reason }) = reason {
        let by = monitor.place_of(by).map_or(old, |by| name(monitor, by));
        let why = match reason {
            TransferReason::Outranked => format!("{new} ranks higher"),
            TransferReason::Preferred => format!("{new} is preferred"),
            TransferReason::Resigned => format!("{by} was told to resign"),
            TransferReason::ShuttingDown => format!("{by} shut down"),
            TransferReason::Requested => "on request".to_owned(),
            TransferReason::Drained => format!("{by} is drained"),
            TransferReason::Crashed => format!("{by} crashed"),
            TransferReason::Failed => format!("what {by} runs keeps failing"),
        };
        return format!("{by} transferred leadership to {new} {ago} ago ({why}).");
    }
    let why = match failover.before.to {
        Some((to, _)) if to > failover.after.from => {
            return format!("Elected {ago} ago while {old} still led.");
        }
        Some((_, End::Died)) => format!("leader {old} died"),
        Some((_, End::Lapsed)) => format!("leader {old} became unreachable"),
        Some((_, End::GivenUp)) => format!("leader {old} stepped down"),
        None => return format!("Elected {ago} ago, although {old} still claims to lead."),
    };
    format!("Elected {ago} ago after {why}.")
}

fn several(monitor: &Monitor, leaders: &[&Interval]) -> (String, String, Option<Moment>) {
    let mut members: Vec<usize> = leaders.iter().map(|leader| leader.member).collect();
    members.sort_unstable();
    let both = if members.len() == 2 { "both" } else { "all" };
    let first = format!("{} {both} claim to lead", names(monitor, &members));
    let since = leaders.iter().map(|leader| leader.from).max();
    let algorithm = monitor.setup.algorithm;
    (first, format!("{algorithm} has no leases, so nothing tells the old leader in time."), since)
}

/// How many more members may fail, and who would follow. While there is no leader, only whether there are enough members.
fn next(monitor: &Monitor, leader: Option<&Interval>) -> String {
    let (up, all, needed) = (up(monitor), monitor.members.len(), monitor.setup.needed());
    let algorithm = monitor.setup.algorithm;
    if !algorithm.has_leases() {
        let up = up.len();
        return format!(
            "{up} of {all} members are up. {algorithm} needs no majority: each side of a partition elects a leader."
        );
    }
    // Those that are up and not cut off from the leader.
    let is_connected =
        |other: usize| leader.is_none_or(|leader| !monitor.is_cut(leader.member, other));
    let connected = up.iter().filter(|&&other| is_connected(other)).count();
    let are = if connected == up.len() { "are up" } else { "are up and connected" };
    let status = leader.and_then(|leader| monitor.members[leader.member].status.as_ref());
    let following = status.and_then(|status| status.next).and_then(|id| monitor.place_of(id));
    let following = following.filter(|&next| is_connected(next));
    let following = following.map(|next| format!(" Next in line: {}.", name(monitor, next)));
    match connected.checked_sub(needed) {
        None => format!("{connected} of {all} {are}, and {}.", needs(needed)),
        Some(_) if leader.is_none() => String::new(),
        Some(0) => format!(
            "No failover possible: losing one more would leave {} of {all} members, and {}.",
            connected.saturating_sub(1),
            needs(needed)
        ),
        Some(spare) => format!(
            "{} more {} may fail: {connected} of {all} {are} and {}.{}",
            capitalized(&number(spare)),
            if spare == 1 { "member" } else { "members" },
            needs(needed),
            following.unwrap_or_default()
        ),
    }
}

#[cfg(test)]
mod tests {
    use doyen_core::registry::Algorithm;

    use super::super::leadership::Campaign;
    use super::super::monitor::Setup;
    use super::*;

    fn ms(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    /// A cluster of five that are up.
    fn monitor(algorithm: Algorithm) -> Monitor {
        let setup = Setup::of_test(algorithm, 5);
        let mut monitor = Monitor::new(setup, (0..5).map(|_| None).collect());
        monitor.members.iter_mut().for_each(|member| member.state = State::Up);
        monitor
    }

    fn texts(monitor: &Monitor, now: Moment) -> [String; 3] {
        let Sentence { first, second, third, .. } = sentence(monitor, now);
        [first, second, third]
    }

    #[test]
    fn a_cluster_starts_elects_fails_over_and_says_so() {
        let mut monitor = monitor(Algorithm::Quorum);
        assert_eq!(texts(&monitor, ms(100))[0], "Starting five nodes…");
        monitor.leadership.lead(4, 1, ms(300), Some(ms(9000)));
        assert_eq!(
            texts(&monitor, ms(800)),
            [
                "n5 leads in term 1",
                "Elected 500 ms ago.",
                "Two more members may fail: 5 of 5 are up and 3 are needed.",
            ]
        );
        monitor.members[4].state = State::Down;
        monitor.leadership.end(4, ms(1000), End::Died);
        let [first, second, third] = texts(&monitor, ms(1100));
        assert_eq!(first, "No leader");
        assert_eq!(second, "Leader n5 died. An election is in progress.");
        assert_eq!(third, "", "an election comes first");
        assert_eq!(sentence(&monitor, ms(1100)).since_us, Some(1_000_000));
        monitor.leadership.lead(3, 2, ms(1243), Some(ms(9000)));
        let [first, second, _] = texts(&monitor, ms(4443));
        assert_eq!(first, "n4 leads in term 2");
        assert_eq!(second, "Elected 3.2 s ago after leader n5 died. Downtime 243 ms, no overlap.");
    }

    #[test]
    fn the_leader_before_is_named_even_if_two_led() {
        let mut monitor = monitor(Algorithm::Bully);
        monitor.leadership.lead(4, 1, ms(0), None);
        monitor.leadership.lead(3, 2, ms(500), None);
        monitor.leadership.end(3, ms(600), End::GivenUp);
        monitor.leadership.end(4, ms(1000), End::Died);
        let [_, second, _] = texts(&monitor, ms(1100));
        assert_eq!(second, "Leader n5 died. An election is in progress.");
        assert_eq!(sentence(&monitor, ms(1100)).since_us, Some(1_000_000));
        monitor.leadership.lead(2, 3, ms(1200), None);
        let [_, second, _] = texts(&monitor, ms(3200));
        assert_eq!(second, "Elected 2.0 s ago after leader n5 died. Downtime 200 ms, no overlap.");
    }

    #[test]
    fn one_that_was_elected_while_another_led_says_so() {
        let mut monitor = monitor(Algorithm::Bully);
        monitor.leadership.lead(4, 1, ms(0), None);
        monitor.leadership.lead(3, 2, ms(500), None);
        monitor.leadership.end(4, ms(512), End::GivenUp);
        let [_, second, _] = texts(&monitor, ms(2500));
        assert_eq!(second, "Elected 2.0 s ago while n5 still led. Downtime 0.0 ms, overlap 12 ms.");
        // A short leadership in between does not hide how the present leader came to lead.
        monitor.leadership.lead(2, 3, ms(2600), None);
        monitor.leadership.end(2, ms(2700), End::GivenUp);
        let [_, second, _] = texts(&monitor, ms(3500));
        assert!(second.starts_with("Elected 3.0 s ago while n5 still led."), "{second}");
    }

    #[test]
    fn a_transfer_names_its_reason() {
        let mut monitor = monitor(Algorithm::Quorum);
        monitor.leadership.lead(2, 1, ms(0), Some(ms(9000)));
        monitor.leadership.end(2, ms(100), End::GivenUp);
        monitor.leadership.lead(3, 2, ms(101), Some(ms(9000)));
        let reason = TransferReason::Drained;
        let reason = ElectionReason::Transferred { by: doyen_core::members::NodeId(3), reason };
        let campaign = Campaign { reason: Some(reason), ..Campaign::default() };
        monitor.leadership.explain(3, 2, campaign);
        assert_eq!(
            texts(&monitor, ms(2101))[1],
            "n3 transferred leadership to n4 2.0 s ago (n3 is drained). Downtime 1.0 ms, no overlap."
        );
    }

    #[test]
    fn a_cluster_without_a_majority_says_who_is_left() {
        let mut monitor = monitor(Algorithm::Quorum);
        monitor.leadership.lead(4, 1, ms(0), Some(ms(100)));
        monitor.leadership.end(4, ms(200), End::Lapsed);
        for one in 0..5 {
            for other in (0..5).filter(|&other| (one < 2) != (other < 2) || one == 4 || other == 4)
            {
                monitor.cuts.extend((one != other).then_some((one, other)));
            }
        }
        let second = &texts(&monitor, ms(300))[1];
        let reason = "n3 and n4 reach each other, 3 are needed.";
        assert!(
            second == &format!("The lease of n5 ran out without a renewal. {reason}"),
            "{second}"
        );
        monitor.members[..3].iter_mut().for_each(|member| member.state = State::Paused);
        let [_, second, third] = texts(&monitor, ms(300));
        assert!(second.ends_with("2 of 5 members are up, and 3 are needed."), "{second}");
        assert_eq!(third, "2 of 5 are up, and 3 are needed.");
    }

    #[test]
    fn those_who_are_cut_off_do_not_count() {
        let mut monitor = monitor(Algorithm::Quorum);
        monitor.leadership.lead(4, 1, ms(0), Some(ms(9000)));
        for other in [0, 1] {
            monitor.cuts.extend((2..5).flat_map(|one| [(one, other), (other, one)]));
        }
        let third = &texts(&monitor, ms(300))[2];
        let expected =
            "No failover possible: losing one more would leave 2 of 5 members, and 3 are needed.";
        assert_eq!(third, expected);
    }

    #[test]
    fn without_leases_two_may_claim_to_lead() {
        let mut monitor = monitor(Algorithm::Bully);
        monitor.leadership.lead(4, 1, ms(0), None);
        monitor.leadership.lead(1, 1, ms(500), None);
        let [first, _, third] = texts(&monitor, ms(900));
        assert_eq!(first, "n2 and n5 both claim to lead");
        assert!(third.contains("each side of a partition elects a leader"), "{third}");
        assert_eq!(sentence(&monitor, ms(900)).since_us, Some(500_000));
    }
}
