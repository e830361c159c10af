//! Why a timing is rejected, in the words of `doyen.toml`: which line to change, what it violates, and a value that is safe.
//!
//! The core decides, with the symbols of its specification ([`Unsafe`]). Here the same is explained with the names of the
//! settings, where their values come from, and a number that satisfies the inequality.

use doyen_core::algorithm::quorum::settings::{MAX_VOTE_LEASE, Pace, Profile, Settings, Unsafe};
use doyen_core::config::Timing;
use doyen_core::time::Span;

use super::members::Listed;
use super::resolve::Resolver;
use super::timing::source;

/// The keys that decide how long a lease is.
const KEYS: [&str; 5] = ["heartbeat", "vote_lease", "drift", "transmission", "processing"];

/// Explains what is wrong. Nothing, if a value that it depends on could not be read.
pub(super) fn explain(
    resolver: &Resolver<'_>,
    (timing, quorum, profile): (&Timing, &Settings, Profile),
    listed: &Listed,
    refusal: &Unsafe,
) -> Option<String> {
    let Pace { heartbeat, vote_lease, drift, .. } = quorum.pace;
    let origins = KEYS.map(|key| Origin::of(resolver, key, profile));
    let at = |key: &str| origins.iter().find(|origin| origin.key == key);
    let place = |key: &str| at(key).map_or("timing", |origin| origin.place.as_str());
    let said = if resolver.layers.is_unread("timing.profile")
        || origins.iter().any(|it| it.is_unread)
    {
        return None;
    } else if drift >= 1000 {
        format!("{}: drift < 1 does not hold; write for example 0.1", place("drift"))
    } else if vote_lease > MAX_VOTE_LEASE && !at("vote_lease").is_some_and(|origin| origin.is_set) {
        // It follows from the drift.
        format!(
            "{}: vote_lease ≤ {MAX_VOTE_LEASE} does not hold: with this drift leases need a vote lease of {vote_lease}; lower drift",
            place("drift")
        )
    } else if vote_lease > MAX_VOTE_LEASE {
        format!(
            "{}: vote_lease ≤ {MAX_VOTE_LEASE} does not hold: vote_lease is {vote_lease}; shorten it: no other member can be \
             elected until it ends",
            place("vote_lease")
        )
    } else if heartbeat == Span::ZERO {
        let usual = profile.timing().heartbeat;
        format!("{}: heartbeat > 0 does not hold; write for example {usual}", place("heartbeat"))
    } else if !holds(timing, &quorum.pace) {
        too_short(timing, &quorum.pace, &origins, profile)
    } else if listed.is_whole {
        let place = listed.begins_at();
        format!(
            "{place}: member: every member is a witness, and a witness never leads; make one of them a candidate"
        )
    } else {
        return None; // one that is wrong may be the one that leads
    };
    Some(format!("{said} [{}]", refusal.inequality))
}

/// Where a value comes from.
struct Origin {
    key: &'static str,
    /// What an error about it begins with.
    place: String,
    /// Where its value comes from.
    source: String,
    is_set: bool,
    is_unread: bool,
}

impl Origin {
    fn of(resolver: &Resolver<'_>, key: &'static str, profile: Profile) -> Self {
        let full = format!("timing.{key}");
        let (found, is_unread) = (resolver.layers.find(&full), resolver.layers.is_unread(&full));
        let is_set = found.is_some();
        let (place, source) = match found {
            Some(found) => (found.origin.place(&full), found.origin.to_string()),
            None => (full, source(profile)),
        };
        Self { key, place, source, is_set, is_unread }
    }
}

/// Whether a lease outlasts three heartbeats and the answer to the last.
fn holds(timing: &Timing, pace: &Pace) -> bool {
    pace.heartbeat * 3 + timing.reply() <= pace.lease()
}

fn too_short(timing: &Timing, pace: &Pace, origins: &[Origin], profile: Profile) -> String {
    let Pace { heartbeat, vote_lease, grain, .. } = *pace;
    let drift = f64::from(pace.drift) / 1000.0;
    let Timing { transmission, processing, .. } = *timing;
    let (needed, lease) = (heartbeat * 3 + timing.reply(), pace.lease());
    let values = [
        heartbeat.to_string(),
        vote_lease.to_string(),
        drift.to_string(),
        transmission.to_string(),
        processing.to_string(),
    ];
    let values = origins.iter().zip(values);
    let values =
        values.map(|(origin, value)| format!("{} = {value} ({})", origin.key, origin.source));
    let values = values.collect::<Vec<_>>().join(", ");
    format!(
        "{}: 3 × heartbeat + 2 × transmission + processing ≤ lease does not hold: {needed} is longer than {lease}, where \
         lease = vote_lease × (1 − drift) / (1 + drift) − {grain}, {values}; {}",
        culprit(timing, pace, origins, profile),
        remedy(timing, pace),
    )
}

/// The place of the value that violates it: with the profile's value instead, the inequality would hold.
fn culprit(timing: &Timing, pace: &Pace, origins: &[Origin], profile: Profile) -> String {
    let (usual, usual_pace) = (profile.timing(), profile.settings().pace);
    let would_do = |key: &str| {
        let (mut timing, mut pace) = (*timing, *pace);
        match key {
            "heartbeat" => pace.heartbeat = usual.heartbeat,
            "vote_lease" => pace.vote_lease = usual_pace.vote_lease,
            "drift" => pace.drift = usual_pace.drift,
            "transmission" => timing.transmission = usual.transmission,
            _ => timing.processing = usual.processing,
        }
        holds(&timing, &pace)
    };
    let mut set = origins.iter().filter(|origin| origin.is_set);
    let first = set.clone().next();
    let found = set.find(|origin| would_do(origin.key)).or(first);
    found.map_or_else(|| "timing".to_owned(), |origin| origin.place.clone())
}

/// Values that satisfy the inequality, in numbers that can be written.
fn remedy(timing: &Timing, pace: &Pace) -> String {
    let reply = timing.reply().as_nanos();
    let heartbeat = pace.lease().as_nanos().saturating_sub(reply) / 3;
    let heartbeat = Span::from_nanos(heartbeat - heartbeat % step(heartbeat));
    let drift = u64::from(pace.drift);
    let lease = (pace.heartbeat * 3).as_nanos().saturating_add(reply);
    let lease = lease.saturating_add(pace.grain.as_nanos());
    let vote_lease = u128::from(lease) * u128::from(1000 + drift);
    let vote_lease =
        u64::try_from(vote_lease.div_ceil(u128::from(1000 - drift))).unwrap_or(u64::MAX);
    let vote_lease = vote_lease.checked_next_multiple_of(step(vote_lease)).map(Span::from_nanos);
    let vote_lease = vote_lease.filter(|&vote_lease| vote_lease <= MAX_VOTE_LEASE);
    match (heartbeat, vote_lease) {
        (Span::ZERO, None) => "lower drift, transmission or processing".to_owned(),
        (Span::ZERO, Some(vote_lease)) => format!("set vote_lease to at least {vote_lease}"),
        (heartbeat, None) => format!("set heartbeat to at most {heartbeat}"),
        (heartbeat, Some(vote_lease)) => {
            format!("set heartbeat to at most {heartbeat}, or vote_lease to at least {vote_lease}")
        }
    }
}

/// To what a length of time is rounded for a person to write.
fn step(nanos: u64) -> u64 {
    if nanos >= 10_000_000 { 1_000_000 } else { 10_000 }
}
