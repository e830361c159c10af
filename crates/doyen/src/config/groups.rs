//! `groups` and `group_lease`: the groups that have leaders of their own.

use std::collections::BTreeSet;

use doyen_core::config::Config;
use doyen_core::config::quorum::{MAX_VOTE_LEASE, Profile};
use doyen_core::group::{self, Group, MOST_GROUPS};
use doyen_core::lock::LockName;
use doyen_core::members::NodeId;
use doyen_core::registry::Algorithm;

use super::members::Listed;
use super::resolve::{Resolver, words};

/// The groups; none if there are none, or there is a mistake, which has been noted. `core`: none if that has one.
pub(super) fn groups(
    resolver: &mut Resolver<'_>,
    algorithm: Algorithm,
    listed: &Listed,
    core: Option<&Config>,
) -> Option<group::Config> {
    let entries = resolver.get("groups").map(|text| words(&text)).unwrap_or_default();
    let profile: Profile = resolver.value("timing.profile");
    let from = format!("profile {}", profile.name());
    let lease = resolver.value_or("group_lease", profile.group_lease(), from);
    if entries.is_empty() {
        return None;
    }
    if !algorithm.has_leases() {
        let problem = format!("{algorithm} has no leases; leave the groups out, or use quorum");
        resolver.wrong("groups", &problem);
    }
    let (mut groups, mut problems) = (Vec::new(), Vec::new());
    for entry in &entries {
        match group(entry, listed) {
            Ok(group) => groups.push(group),
            Err(problem) => problems.push(problem),
        }
    }
    problems.extend(check(&groups));
    if !problems.is_empty() {
        problems.iter().for_each(|problem| resolver.wrong("groups", problem));
        return None;
    }
    let core = core?;
    let least = core.timing.heartbeat * 3 + core.timing.reply();
    if lease < least || lease > MAX_VOTE_LEASE {
        let problem = format!(
            "{lease} does not suit: three heartbeats and a round trip ({least}) must fit into it, and it must be at most \
             {MAX_VOTE_LEASE}; {} is usual for profile {}",
            profile.group_lease(),
            profile.name()
        );
        resolver.wrong("group_lease", &problem);
        return None;
    }
    let leads = listed.members.iter().filter(|member| !member.witness).map(|member| member.id);
    let leads: Vec<NodeId> = leads.collect();
    let mut config = group::Config::new(groups, &leads, lease, &core.quorum.pace);
    (config.preemption, config.delay) = (core.quorum.preemption, core.timing.preempt);
    Some(config)
}

/// Reads `orders` or `billing=n2,n1`.
fn group(entry: &str, listed: &Listed) -> Result<Group, String> {
    let (name, preferred) = entry.split_once('=').unwrap_or((entry, ""));
    let name: LockName = name.parse().map_err(|_| {
        format!("`{name}` is not the name of a group: 1 to 64 letters, digits, `-`, `_` or `.`")
    })?;
    let member = |text: &str| {
        let found = listed.members.iter().find(|member| member.name == text);
        match found {
            Some(member) if member.witness => {
                Err(format!("{name}: {text} is a witness, which leads no group; leave it out"))
            }
            Some(member) => Ok(member.id),
            // It may be one of the invalid members.
            None => Err(format!("{name}: `{text}` is not the name of a member")),
        }
    };
    let names = preferred.split(',').filter(|text| !text.is_empty());
    Ok(Group { preferred: names.map(member).collect::<Result<_, _>>()?, name })
}

/// What is wrong with all of them together.
fn check(groups: &[Group]) -> Vec<String> {
    let mut problems = Vec::new();
    if groups.len() > MOST_GROUPS {
        let listed = groups.len();
        problems.push(format!("{listed} groups are too many; use at most {MOST_GROUPS}"));
    }
    let mut seen = BTreeSet::new();
    let again = groups.iter().map(|group| &group.name).filter(|name| !seen.insert(*name));
    problems.extend(again.map(|name| format!("{name} is listed twice; leave one out")));
    problems
}
