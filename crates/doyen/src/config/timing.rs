//! `[timing]` and `[preemption]`: a profile, the values that differ from it, and whether they are safe together.
//!
//! The core decides what is safe (`Settings::check`), with the symbols of its specification. Here a rejection is explained
//! with the names of the settings, the origins of their values, and values that satisfy the inequality.

use doyen_core::config::quorum::{MAX_VOTE_LEASE, Pace, Preemption, Profile, Settings, Unsafe};
use doyen_core::config::{Config, Mode, Timing};
use doyen_core::members::Members;
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;

use super::cluster_number;
use super::members::Listed;
use super::print::DEFAULT;
use super::resolve::Resolver;

/// In mebibytes.
const FREE_MEMORY_MARGIN: u64 = 512;

/// In hundredths of a processor: a whole one.
const LOAD_MARGIN: u64 = 100;

/// The configuration of the core. `None` if there are no members, which has been reported.
pub(super) fn core(
    resolver: &mut Resolver<'_>,
    cluster: Option<&str>,
    algorithm: Algorithm,
    listed: &Listed,
) -> Option<Config> {
    let members = &listed.members;
    let profile = resolver.value("timing.profile");
    let (mut timing, mut quorum) = timing_table(resolver, profile);
    preemption_table(resolver, algorithm, profile, (&mut timing, &mut quorum));
    quorum.cluster = cluster_number(cluster?);
    quorum.witnesses =
        members.iter().filter(|member| member.witness).map(|member| member.id).collect();
    let ids = Members::listed(members.iter().map(|member| member.id).collect());
    let attrs = members.iter().map(|member| (member.id, member.priority));
    let members = ids.and_then(|ids| ids.with_attrs(attrs)).ok()?;
    if !algorithm.has_leases() {
        check_positive(resolver, &timing);
    } else if let Err(refusal) = quorum.check(&timing, &members) {
        let problem = explain(resolver, (&timing, &quorum, profile), listed, &refusal);
        resolver.problems.extend(problem);
    }
    let mut config = Config::new(members, timing, Mode::Hardened);
    config.quorum = quorum;
    Some(config)
}

/// The origin of a value of the profile.
fn source(profile: Profile) -> String {
    format!("profile {}", profile.name())
}

fn timing_table(resolver: &mut Resolver<'_>, profile: Profile) -> (Timing, Settings) {
    let from = source(profile);
    let mut timing = profile.timing();
    let usual = f64::from(profile.settings().pace.drift) / 1000.0;
    let drift = (resolver.value_or("timing.drift", usual, &from) * 1000.0).round() as u32;
    if let (0, Some((_, origin))) = (drift, resolver.layers.find("timing.drift")) {
        resolver.warnings.push(format!(
            "{}: 0 trusts every clock to keep perfect time; a lease then ends just when another may begin. Clock \
             discipline alone may slew a clock by 8 %: 0.1 is usual",
            origin.place("timing.drift")
        ));
    }
    let mut quorum = profile.settings_for(drift);
    for (key, span) in [
        ("timing.transmission", &mut timing.transmission),
        ("timing.processing", &mut timing.processing),
        ("timing.heartbeat", &mut timing.heartbeat),
        ("timing.vote_lease", &mut quorum.pace.vote_lease),
        ("timing.jitter", &mut quorum.jitter),
        ("timing.stagger", &mut quorum.stagger),
        ("timing.tenure", &mut quorum.tenure),
        ("timing.penalty_decay", &mut quorum.penalty_decay),
    ] {
        *span = resolver.value_or(key, *span, &from);
    }
    quorum.pace.heartbeat = timing.heartbeat;
    let usual = quorum.probe.map_or_else(|| "off".to_owned(), |probe| probe.to_string());
    quorum.probe = resolver.value_or("timing.probe", usual, &from).parse().ok(); // or off
    if quorum.probe == Some(Span::ZERO) {
        resolver.wrong("timing.probe", "must be longer than 0; write for example 1s, or off");
    }
    (timing, quorum)
}

fn preemption_table(
    resolver: &mut Resolver<'_>,
    algorithm: Algorithm,
    profile: Profile,
    (timing, quorum): (&mut Timing, &mut Settings),
) {
    quorum.preemption = resolver.value("preemption.policy");
    timing.preempt = resolver.value_or("preemption.delay", timing.preempt, source(profile));
    // Priorities decide as they are; measured attributes change all the time, and fall because a member leads.
    let (usual, why) = match resolver.layers.find("attribute.source") {
        Some(("free-memory", _)) => (FREE_MEMORY_MARGIN, "default for free-memory"),
        Some(("load", _)) => (LOAD_MARGIN, "default for load"),
        _ => (0, DEFAULT),
    };
    quorum.margin = resolver.value_or("preemption.margin", usual, why);
    if quorum.preemption == Preemption::Delayed {
        return;
    }
    if !algorithm.has_leases() {
        let problem = format!("{algorithm} supports `delayed` only; use that, or quorum");
        resolver.wrong("preemption.policy", &problem);
    }
    if resolver.layers.find("preemption.delay").is_some() {
        let warning = "preemption.delay: has no effect unless the policy is `delayed`";
        resolver.warnings.push(warning.to_owned());
    }
}

/// The textbook algorithms derive all their timeouts from two durations.
fn check_positive(resolver: &mut Resolver<'_>, timing: &Timing) {
    for (key, span) in
        [("timing.transmission", timing.transmission), ("timing.heartbeat", timing.heartbeat)]
    {
        if span == Span::ZERO {
            resolver.wrong(key, "must be longer than 0; write for example 10ms");
        }
    }
}

/// Explains why a timing is unsafe. `None` if a value that it depends on could not be read.
fn explain(
    resolver: &Resolver<'_>,
    (timing, quorum, profile): (&Timing, &Settings, Profile),
    listed: &Listed,
    refusal: &Unsafe,
) -> Option<String> {
    let layers = resolver.layers;
    let Pace { heartbeat, vote_lease, drift, .. } = quorum.pace;
    let keys = ["heartbeat", "vote_lease", "drift", "transmission", "processing", "profile"];
    if keys.iter().any(|key| layers.is_unread(&format!("timing.{key}"))) {
        return None;
    }
    let set = |key: &str| layers.find(&format!("timing.{key}"));
    let place = |key: &str| {
        let key = format!("timing.{key}");
        layers.find(&key).map_or_else(|| key.clone(), |(_, origin)| origin.place(&key))
    };
    let problem = if drift >= 1000 {
        format!("{}: drift < 1 does not hold; write for example 0.1", place("drift"))
    } else if vote_lease > MAX_VOTE_LEASE && set("vote_lease").is_none() {
        format!(
            "{}: vote_lease ≤ {MAX_VOTE_LEASE} does not hold: this drift needs a vote lease of {vote_lease}; lower drift",
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
    } else if heartbeat * 3 + timing.reply() > quorum.pace.lease() {
        let is_set = |key: &&&str| set(key).is_some();
        let first =
            keys[..5].iter().find(is_set).map_or_else(|| "timing".to_owned(), |key| place(key));
        let origin =
            |key: &str| set(key).map_or_else(|| source(profile), |(_, origin)| origin.to_string());
        format!("{first}: {}", too_short(timing, &quorum.pace, &origin))
    } else if listed.is_whole {
        let place = listed.begins_at();
        format!(
            "{place}: member: every member is a witness, and a witness never leads; make one of them a candidate"
        )
    } else {
        return None; // an invalid member may be the one that can lead
    };
    Some(format!("{problem} [{}]", refusal.inequality))
}

/// A lease does not outlast three heartbeats and the answer to the last.
fn too_short(timing: &Timing, pace: &Pace, origin: &dyn Fn(&str) -> String) -> String {
    let (needed, lease) = (pace.heartbeat * 3 + timing.reply(), pace.lease().rounded());
    let values = [
        ("heartbeat", pace.heartbeat.to_string()),
        ("vote_lease", pace.vote_lease.to_string()),
        ("drift", (f64::from(pace.drift) / 1000.0).to_string()),
        ("transmission", timing.transmission.to_string()),
        ("processing", timing.processing.to_string()),
    ];
    let values = values.map(|(key, value)| format!("{key} = {value} ({})", origin(key))).join(", ");
    format!(
        "3 × heartbeat + 2 × transmission + processing ≤ lease does not hold: {needed} is longer than {lease}, where \
         lease = vote_lease × (1 − drift) / (1 + drift) − {}, {values}; {}",
        pace.grain,
        remedy(timing, pace),
    )
}

/// Values that satisfy the inequality, rounded for people.
fn remedy(timing: &Timing, pace: &Pace) -> String {
    let step = |nanos: u64| if nanos >= 10_000_000 { 1_000_000 } else { 10_000 };
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
