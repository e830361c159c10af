//! `[timing]` and `[preemption]`: a profile, what is set otherwise, and whether the values are safe together.
//!
//! What is safe is not decided here but by [`Settings::check`](doyen_core::algorithm::quorum::settings::Settings::check),
//! which names the inequality that is violated; `config/lease.rs` explains it with the names of the settings.

use doyen_core::algorithm::quorum::settings::{Preemption, Profile, Settings};
use doyen_core::config::{Config, Mode, Timing};
use doyen_core::members::Members;
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;

use super::cluster_number;
use super::lease;
use super::members::Listed;
use super::report::DEFAULT;
use super::resolve::Resolver;
use super::value::Value;

/// In mebibytes.
const FREE_MEMORY_MARGIN: i64 = 512;

/// In hundredths of a processor: a whole one.
const LOAD_MARGIN: i64 = 100;

/// What the algorithms read. `None` if there are no members, which has been reported.
pub(super) fn core(
    resolver: &mut Resolver<'_>,
    cluster: Option<&str>,
    algorithm: Algorithm,
    listed: &Listed,
) -> Option<Config> {
    let members = &listed.members;
    let profile = resolver.choice("timing.profile");
    let (mut timing, mut quorum) = timing_table(resolver, profile);
    preemption_table(resolver, algorithm, profile, (&mut timing, &mut quorum));
    quorum.cluster = cluster_number(cluster?);
    quorum.witnesses =
        members.iter().filter(|member| member.witness).map(|member| member.id).collect();
    let ids = Members::listed(members.iter().map(|member| member.id).collect());
    let attrs = members.iter().map(|member| (member.id, member.priority));
    let members = ids.and_then(|ids| ids.with_attrs(attrs)).ok()?;
    match algorithm.has_leases() {
        true => {
            if let Err(refusal) = quorum.check(&timing, &members) {
                let settings = (&timing, &quorum, profile);
                let problem = lease::explain(resolver, settings, listed, &refusal);
                resolver.problems.extend(problem);
            }
        }
        false => check_positive(resolver, &timing),
    }
    let mut config = Config::new(members, timing, Mode::Hardened);
    config.quorum = quorum;
    Some(config)
}

/// Where a value comes from that follows from the profile.
pub(super) fn source(profile: Profile) -> String {
    format!("profile {}", profile.name())
}

fn timing_table(resolver: &mut Resolver<'_>, profile: Profile) -> (Timing, Settings) {
    let from = source(profile);
    let mut timing = profile.timing();
    let usual = Value::Thousandths(profile.settings().pace.drift);
    let drift = resolver.get_or("timing.drift", usual, &from).thousandths();
    if drift == 0 {
        let found = resolver.layers.find("timing.drift");
        let place = found.map_or_else(String::new, |found| found.origin.place("timing.drift"));
        resolver.warnings.push(format!(
            "{place}: 0 trusts every clock to keep perfect time; a lease then ends just when another may begin. Clock \
             discipline alone may slew a clock by 8 %: 0.1 is usual"
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
        *span = resolver.get_or(key, Value::Duration(*span), &from).duration();
    }
    quorum.pace.heartbeat = timing.heartbeat;
    let usual = quorum.probe.map_or(Value::Off, Value::Duration);
    quorum.probe = match resolver.get_or("timing.probe", usual, &from) {
        Value::Off => None,
        probe => Some(probe.duration()),
    };
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
    let policy = resolver.choice("preemption.policy");
    quorum.preemption = policy;
    let usual = Value::Duration(timing.preempt);
    timing.preempt = resolver.get_or("preemption.delay", usual, source(profile)).duration();
    quorum.margin = margin(resolver);
    if policy == Preemption::Delayed {
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

/// By how much an attribute must be better to move leadership. Priorities decide as they are; what is measured changes all
/// the time, and falls because a member leads.
fn margin(resolver: &mut Resolver<'_>) -> u64 {
    let source = resolver.layers.find("attribute.source").map(|found| found.value.text());
    let (usual, why) = match source {
        Some("free-memory") => (FREE_MEMORY_MARGIN, "default for free-memory"),
        Some("load") => (LOAD_MARGIN, "default for load"),
        _ => (0, DEFAULT),
    };
    resolver.get_or("preemption.margin", Value::Integer(usual), why).integer().unsigned_abs()
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
