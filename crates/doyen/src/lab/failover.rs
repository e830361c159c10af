//! The parts of a failover: how the time without a leader was spent, and which setting governs the largest part.
//!
//! The parts come from times that the new leader publishes. A time that is not known is not invented: its part is then
//! contained in the part beside it.

use doyen::clock::Moment;
use doyen_core::config::quorum::Profile;
use doyen_core::registry::Algorithm;
use doyen_sim::words::time;
use serde::Serialize;

use super::leadership::{End, Failover, micros};

/// The part that a lease which was not renewed leaves to wait for.
const VOTE_LEASE: &str = "vote lease";

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Part {
    name: String,
    kind: Kind,
    us: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// Until the successor noticed that the leader was gone.
    Detect,
    /// Until it was its turn to campaign.
    Wait,
    /// Until enough members had voted for it and its first lease began: a node does not publish these apart.
    Vote,
    /// Until a lease that had lapsed came back.
    Lease,
}

/// The parts of the downtime, in order; they add up to it. `old` and `new`: the leaders' names.
pub(crate) fn parts(failover: &Failover<'_>, old: &str, new: &str) -> Vec<Part> {
    let begin = failover.before.to.map_or(failover.after.from, |(to, _)| to);
    let (end, total) = (failover.after.from, failover.downtime_us);
    if total == 0 {
        return Vec::new();
    }
    if failover.is_gap() {
        return vec![Part { name: format!("{new} had no lease"), kind: Kind::Lease, us: total }];
    }
    let campaign = failover.after.campaign.clone().unwrap_or_default();
    // Backwards from the end; a part that does not fit into what is left takes all of it.
    let vote = campaign.campaign_us.unwrap_or(0).min(total);
    let before = total - vote;
    let lost = campaign.lost_contact.filter(|&lost| begin <= lost && lost <= end);
    let detect = lost.map_or(0, |lost| micros(begin, lost)).min(before);
    let noticed = match failover.before.to {
        Some((_, End::Lapsed)) => (format!("{VOTE_LEASE} for {old}"), Kind::Wait),
        _ => (format!("{old} unreachable"), Kind::Detect),
    };
    let turn = match (lost.is_some(), vote > 0) {
        (true, true) => (format!("wait of {new}"), Kind::Wait),
        // A transfer: the message that lets the successor campaign. Or nothing is known but that there was an election.
        _ => ("election".to_owned(), Kind::Vote),
    };
    let mut parts: Vec<Part> = Vec::new();
    for ((name, kind), us) in
        [(noticed, detect), (turn, before - detect), (("election".to_owned(), Kind::Vote), vote)]
    {
        match parts.last_mut() {
            _ if us == 0 => {}
            Some(last) if last.kind == kind && last.name == name => last.us += us,
            _ => parts.push(Part { name, kind, us }),
        }
    }
    parts
}

/// No member waits this many turns to campaign.
const LONGEST_TURN: u64 = 64;

/// What would make the largest part shorter.
pub(crate) fn advice(parts: &[Part], algorithm: Algorithm, profile: Profile) -> Option<String> {
    let total: u64 = parts.iter().map(|part| part.us).sum();
    let largest = parts.iter().max_by_key(|part| part.us).filter(|_| total > 0)?;
    let share = (largest.us * 100).div_ceil(total).min(100);
    let settings = profile.settings();
    let [heartbeat, vote_lease, stagger] =
        [profile.timing().heartbeat, settings.pace.vote_lease, settings.stagger]
            .map(|span| time(span.as_nanos()));
    Some(match largest.kind {
        Kind::Detect if algorithm.has_leases() => format!(
            "Detection takes {share} %. A shorter vote lease (now {vote_lease}, with a heartbeat every {heartbeat}) shortens it."
        ),
        Kind::Detect => format!(
            "Detection takes {share} %. A shorter heartbeat interval (now {heartbeat}) shortens it."
        ),
        Kind::Wait if largest.name.starts_with(VOTE_LEASE) => format!(
            "The rest of the vote lease takes {share} %: it outlasts the lease by as much as clocks may differ. A shorter \
             vote lease (now {vote_lease}) shortens it."
        ),
        // Longer than all turns together can take: no member could win.
        Kind::Wait if largest.us > LONGEST_TURN * settings.stagger.as_nanos() / 1000 => {
            "No candidate could win in the meantime: a majority must reach each other.".to_owned()
        }
        Kind::Wait => format!(
            "Waiting for its turn takes {share} %. A shorter stagger (now {stagger}) shortens it."
        ),
        Kind::Vote => {
            format!("The election takes {share} %: round trips, and writing votes to disk.")
        }
        Kind::Lease => return None,
    })
}

/// When the leader before was gone.
pub(crate) fn began(failover: &Failover<'_>) -> Moment {
    failover.before.to.map_or(failover.after.from, |(to, _)| to)
}

#[cfg(test)]
mod tests {
    use super::super::leadership::{Campaign, Leadership};
    use super::*;

    fn ms(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    /// The parts of a failover of 243 ms, in milliseconds.
    fn taken_apart(end: End, campaign: Campaign) -> (Vec<(String, u64)>, Option<String>) {
        let mut leadership = Leadership::default();
        leadership.lead(4, 1, ms(0), None);
        leadership.end(4, ms(1000), end);
        leadership.lead(3, 2, ms(1243), None);
        leadership.explain(3, 2, campaign);
        let parts = parts(&leadership.failovers()[0], "n5", "n4");
        let advice = advice(&parts, Algorithm::Quorum, Profile::Lan);
        (parts.into_iter().map(|part| (part.name, part.us / 1000)).collect(), advice)
    }

    #[test]
    fn a_crash_is_detected_waited_for_and_voted_on() {
        let campaign = Campaign {
            lost_contact: Some(ms(1230)),
            campaign_us: Some(4000),
            ..Campaign::default()
        };
        let (parts, advice) = taken_apart(End::Died, campaign.clone());
        let part = |name: &str, ms: u64| (name.to_owned(), ms);
        let rest = [part("wait of n4", 9), part("election", 4)];
        assert_eq!(parts[0], part("n5 unreachable", 230));
        assert_eq!(parts[1..], rest);
        let expected = "Detection takes 95 %. A shorter vote lease (now 280 ms, with a heartbeat every 50 ms) shortens it.";
        assert_eq!(advice.as_deref(), Some(expected));
        let (parts, advice) = taken_apart(End::Lapsed, campaign);
        assert_eq!(parts[0], part("vote lease for n5", 230));
        assert_eq!(parts[1..], rest);
        assert!(advice.is_some_and(|advice| advice.starts_with("The rest of the vote lease")));
    }

    #[test]
    fn what_is_not_known_is_not_invented() {
        let (parts, _) = taken_apart(End::GivenUp, Campaign::default());
        assert_eq!(parts, [("election".to_owned(), 243)]);
        // A time that does not fit takes what there is.
        let campaign = Campaign { campaign_us: Some(9_000_000), ..Campaign::default() };
        assert_eq!(taken_apart(End::Died, campaign).0, [("election".to_owned(), 243)]);
        let early = Campaign { lost_contact: Some(ms(900)), ..Campaign::default() };
        assert_eq!(taken_apart(End::Died, early).0, [("election".to_owned(), 243)]);
    }
}
