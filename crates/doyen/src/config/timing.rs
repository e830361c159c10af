//! `[timing]` and `[preemption]`: a profile, what is set otherwise, and whether it holds together.
//!
//! What is safe is not decided here but by [`Settings::check`](doyen_core::algorithm::quorum::settings::Settings::check),
//! which names the inequality that is broken; `config/lease.rs` says it in the words of the file.

use std::fmt;
use std::str::FromStr;

use doyen_core::algorithm::Algorithm;
use doyen_core::algorithm::quorum::settings::{Preemption, Profile, Settings};
use doyen_core::config::{Config, Mode, Timing};
use doyen_core::members::Members;
use doyen_core::time::Span;

use super::cluster_number;
use super::file::{Given, Written};
use super::lease;
use super::members::Listed;
use super::report::DEFAULT;
use super::resolve::Resolver;

/// In mebibytes.
const FREE_MEMORY_MARGIN: u64 = 512;

/// In hundredths of a processor: a whole one.
const LOAD_MARGIN: u64 = 100;

/// What the algorithms read. `None` if there are no members, which has been said.
pub(super) fn core(
    resolver: &mut Resolver<'_>,
    cluster: Option<&str>,
    algorithm: Algorithm,
    listed: &Listed,
) -> Option<Config> {
    let members = &listed.members;
    let profile = profile(resolver);
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
        false => check_seed(resolver, &timing),
    }
    let mut config = Config::new(members, timing, Mode::Hardened);
    config.quorum = quorum;
    Some(config)
}

fn profile(resolver: &mut Resolver<'_>) -> Profile {
    resolver.report.table("[timing]", "");
    let Named(profile) = resolver.read(
        "timing.profile",
        |it| &it.timing.profile,
        |text| text.parse().map(Named),
        (Named(Profile::default()), DEFAULT),
    );
    profile
}

/// Where a value comes from that follows from the profile.
fn source(profile: Profile) -> String {
    format!("profile {}", profile.name())
}

fn timing_table(resolver: &mut Resolver<'_>, profile: Profile) -> (Timing, Settings) {
    let from = source(profile);
    let (mut timing, mut quorum) = (profile.timing(), profile.settings());
    let drift = drift(resolver, quorum.pace.drift, &from);
    quorum = profile.settings_for(drift);
    let mut set = |key, get: fn(&Written) -> &Given<String>, usual: &mut Span| {
        *usual = resolver.span(key, get, *usual, &from);
    };
    set("timing.transmission", |it| &it.timing.transmission, &mut timing.transmission);
    set("timing.processing", |it| &it.timing.processing, &mut timing.processing);
    set("timing.heartbeat", |it| &it.timing.heartbeat, &mut timing.heartbeat);
    set("timing.promise", |it| &it.timing.promise, &mut quorum.pace.vote_lease);
    set("timing.jitter", |it| &it.timing.jitter, &mut quorum.jitter);
    set("timing.stagger", |it| &it.timing.stagger, &mut quorum.stagger);
    set("timing.tenure", |it| &it.timing.tenure, &mut quorum.tenure);
    set("timing.forgiveness", |it| &it.timing.forgiveness, &mut quorum.penalty_decay);
    quorum.pace.heartbeat = timing.heartbeat;
    let Maybe(probe) = resolver.read(
        "timing.probe",
        |it| &it.timing.probe,
        |text| {
            if text == "off" { Ok(Maybe(None)) } else { text.parse::<Span>().map(Some).map(Maybe) }
        },
        (Maybe(quorum.probe), &from),
    );
    if let (Some(Span::ZERO), Some(found)) = (probe, resolver.find(|it| &it.timing.probe)) {
        let problem = "nobody can probe all the time; write for example 1s, or off";
        resolver.wrong::<_, ()>(&found, "timing.probe", problem);
    }
    quorum.probe = probe;
    (timing, quorum)
}

/// By how much a clock may be wrong, in thousandths.
fn drift(resolver: &mut Resolver<'_>, usual: u32, from: &str) -> u32 {
    let Some(found) = resolver.find(|it| &it.timing.drift) else {
        resolver.report.value("drift", f64::from(usual) / 1000.0, from);
        return usual;
    };
    let drift = *found.value;
    if !(0.0..1.0).contains(&drift) {
        let problem = format!("{drift} is not at least 0 and below 1; 0.1 is usual");
        resolver.wrong::<_, ()>(&found, "timing.drift", &problem);
        return usual;
    }
    if drift == 0.0 {
        let place = found.place("timing.drift");
        resolver.warnings.push(format!(
            "{place}: 0 trusts every clock to keep perfect time; a lease then ends just when another may begin. Clock \
             discipline alone may slew a clock by 8 %: 0.1 is usual"
        ));
    }
    // Upwards: a clock that is trusted less is safe.
    let thousandths = (drift * 1000.0).ceil() as u32;
    resolver.report.value("drift", f64::from(thousandths) / 1000.0, &found.source());
    thousandths
}

fn preemption_table(
    resolver: &mut Resolver<'_>,
    algorithm: Algorithm,
    profile: Profile,
    (timing, quorum): (&mut Timing, &mut Settings),
) {
    resolver.report.table("[preemption]", "");
    let Policy(policy) =
        resolver.parsed("preemption.policy", |it| &it.preemption.policy, Policy(quorum.preemption));
    quorum.preemption = policy;
    timing.preempt = resolver.span(
        "preemption.delay",
        |it| &it.preemption.delay,
        timing.preempt,
        &source(profile),
    );
    quorum.margin = margin(resolver);
    let found = resolver.find(|it| &it.preemption.policy);
    if let (Some(found), false) = (found, algorithm.has_leases() || policy == Preemption::Delayed) {
        let problem = format!("only quorum can do otherwise than `delayed`, not {algorithm}");
        resolver.wrong::<_, ()>(&found, "preemption.policy", &problem);
    }
    if policy != Preemption::Delayed && resolver.find(|it| &it.preemption.delay).is_some() {
        let policy = Policy(policy);
        let warning = format!("preemption.delay: has no meaning while the policy is `{policy}`");
        resolver.warnings.push(warning);
    }
}

/// By how much an attribute must be better to move the lead. Priorities decide as they are; what is measured changes all the
/// time, and falls because a member leads.
fn margin(resolver: &mut Resolver<'_>) -> u64 {
    let source = resolver.find(|it| &it.attribute.source).map(|found| found.value.as_str());
    let (usual, why) = match source {
        Some("free-memory") => (FREE_MEMORY_MARGIN, "default for free-memory"),
        Some("load") => (LOAD_MARGIN, "default for load"),
        _ => (0, DEFAULT),
    };
    let found = resolver.find(|it| &it.preemption.margin);
    let (margin, from) =
        found.map_or((usual, why.to_owned()), |found| (*found.value, found.source()));
    resolver.report.value("margin", margin, &from);
    margin
}

/// The seeds' algorithms make all their time-outs of two lengths.
fn check_seed(resolver: &mut Resolver<'_>, timing: &Timing) {
    let mut check = |key, span, get: fn(&Written) -> &Given<String>| {
        if let (Span::ZERO, Some(found)) = (span, resolver.find(get)) {
            resolver.wrong::<_, ()>(&found, key, "nothing takes no time; write for example 10ms");
        }
    };
    check("timing.transmission", timing.transmission, |it| &it.timing.transmission);
    check("timing.heartbeat", timing.heartbeat, |it| &it.timing.heartbeat);
}

/// A profile, shown by its name.
struct Named(Profile);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

/// A length of time, or `off`.
struct Maybe(Option<Span>);

impl fmt::Display for Maybe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(span) => span.fmt(f),
            None => f.write_str("off"),
        }
    }
}

/// A policy as it is written.
struct Policy(Preemption);

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Preemption::Never => "never",
            Preemption::Delayed => "delayed",
            Preemption::Immediate => "immediate",
        })
    }
}
