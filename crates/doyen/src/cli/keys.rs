//! `doyen keys rotate`: a new key for the whole cluster, from one place.
//!
//! Three steps, each confirmed by all members before the next: **add** the new key everywhere, **promote** it everywhere,
//! **retire** the old ones everywhere. So a member that is down stops a rotation before it would be locked out: nothing is
//! promoted before all have added the key and use it, and nothing is retired before all seal with it. No step has a memory:
//! what is left to do follows from the keys that the members have, so `--to` continues a rotation from any member and any
//! state. A key leaves a member in sealed datagrams only.

use std::collections::BTreeSet;
use std::io::{self, Write as _};

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use doyen::api::{KeyOffer, KeyRef, MemberRef};
use doyen::node::keys::KeyReport;
use doyen_sim::words::listed;
use serde::Serialize;
use serde_json::json;

use super::awaited::ask_one;
use super::client::{AdminClient, CannotReach, CommandResult, OperatorFlags, path_to};
use super::doctor::examine;
use super::terminal::count;
use super::{Answer, system};

/// Change the keys of the whole cluster
#[derive(Args, Debug)]
pub(crate) struct Keys {
    #[command(subcommand)]
    command: KeysCommand,
}

#[derive(Subcommand, Debug)]
enum KeysCommand {
    /// Give all members a new key, and remove the old one, without downtime
    #[command(after_help = "\
Add, promote, retire: each step is confirmed by all members before the next. All members must be up. If it stops, every
member still opens what every other one seals; continue with --to, on any member that has the key. Of two rotations at
the same time, each stops when a member has a key of the other; continue one of them with --to.

Examples:
  doyen keys rotate
  doyen keys rotate --to 1f3a90c4      continue a rotation, or keep this key and remove all others

Exit: 0 all members have the new key alone, 1 it stopped, 2 wrong usage, 3 a member cannot be reached.")]
    Rotate(Rotate),
}

#[derive(Args, Debug)]
struct Rotate {
    /// The fingerprint of the key that is to remain [default: a new key]
    #[arg(long, value_name = "FINGERPRINT")]
    to: Option<String>,

    #[command(flatten)]
    operator: OperatorFlags,
}

impl Keys {
    pub(crate) fn run(self) -> Result<Answer> {
        let KeysCommand::Rotate(rotate) = self.command;
        rotate.run()
    }
}

/// The keys of all members.
struct Cluster {
    /// The member that is asked.
    own: String,
    members: Vec<(String, KeyReport)>,
    /// Those that do not carry out commands of others.
    rejecting: Vec<String>,
}

/// Why a rotation stops: a member rejects a step, or the keys are not as they should be.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Stopped(String);

impl Cluster {
    /// Asks all members. One that does not answer stops the rotation.
    fn ask(client: &AdminClient) -> Result<Self> {
        let (own, examined) = examine(client)?;
        let (mut members, mut rejecting) = (Vec::new(), Vec::new());
        for member in examined {
            match member.answer {
                Ok(answer) => {
                    if answer.forwarded_commands == Some(false) && member.name != own.status.name {
                        rejecting.push(member.name.clone());
                    }
                    members.push((member.name, answer.keys));
                }
                Err(why) => return Err(CannotReach::told(why).into()),
            }
        }
        Ok(Self { own: own.status.name, members, rejecting })
    }

    /// Whether every member uses these keys, and has them in its file, in any order but for the first.
    fn agree(&self) -> bool {
        let keys = |(_, report): &(String, KeyReport)| {
            (report.in_use.clone(), report.in_file.clone().unwrap_or_default())
        };
        let Some(first) = self.members.first().map(keys) else { return false };
        first.0 == first.1 && self.members.iter().all(|member| keys(member) == first)
    }

    /// The members of which this is not true, of the keys in use or of those in the file.
    fn lacking(&self, is_done: impl Fn(&[String]) -> bool) -> Vec<String> {
        let lacks = |report: &KeyReport| {
            !is_done(&report.in_use) || !report.in_file.as_deref().is_some_and(&is_done)
        };
        let lacking = self.members.iter().filter(|(_, report)| lacks(report));
        lacking.map(|(name, _)| name.clone()).collect()
    }

    /// The keys that a member had, and this one.
    fn keys_with(&self, member: &str, key: &str) -> Vec<String> {
        let found = self.members.iter().find(|(name, _)| name == member);
        let had = found.and_then(|(_, report)| report.in_file.clone()).unwrap_or_default();
        let others = had.into_iter().filter(|it| it != key);
        others.chain([key.to_owned()]).collect()
    }

    /// The keys in the file of the member that is asked.
    fn own_file(&self) -> Option<&[String]> {
        let own = self.members.iter().find(|(name, _)| *name == self.own);
        own.and_then(|(_, report)| report.in_file.as_deref())
    }

    /// Each member with its keys, as text.
    fn describe(&self) -> String {
        let each = self
            .members
            .iter()
            .map(|(name, report)| format!("{name} has {}", report.in_use.join(", ")));
        each.collect::<Vec<_>>().join("; ")
    }
}

impl Rotate {
    fn run(self) -> Result<Answer> {
        let client = self.operator.connect_admin()?;
        let cluster = Cluster::ask(&client)
            .map_err(|error| told(error, |why| format!("{why}; nothing has changed")))?;
        if let Some((name, problem)) = unchangeable(&cluster) {
            bail!("{name} cannot change its keys: {problem}; nothing has changed");
        }
        if !cluster.rejecting.is_empty() {
            bail!(
                "forwarded_commands = false on {}: a rotation gives every member commands. Set it to true there, or change the \
                 keys by hand (`doyen keygen --help`); nothing has changed",
                listed(&cluster.rejecting)
            );
        }
        let target = match self.to {
            Some(target) => target,
            None if !cluster.agree() || cluster.members[0].1.in_use.len() > 1 => {
                system::note(format_args!(
                    "a rotation is not complete: {} (the first one seals); {}",
                    cluster.describe(),
                    ways_on(cluster.members.iter().map(|(_, report)| report))
                ));
                return Ok(Answer::No);
            }
            None => match create(&client, &cluster) {
                Err(error) if error.is::<Stopped>() => {
                    system::note(format_args!("stopped: {error}"));
                    return Ok(Answer::No);
                }
                created => created?,
            },
        };
        match rotate(&client, &target, &cluster) {
            Ok(()) => Ok(Answer::Yes),
            Err(error) => {
                let again = format!("correct that, then continue: doyen keys rotate --to {target}");
                if error.is::<Stopped>() {
                    system::note(format_args!("stopped: {error}; {again}"));
                    return Ok(Answer::No);
                }
                Err(told(error, |why| format!("stopped: {why}; {again}")))
            }
        }
    }
}

/// How a rotation that is not complete is continued or reverted, by what the members say of their keys. Which keys they
/// have does not tell: an old key that is being retired looks like a new one that is being added.
pub(super) fn ways_on<'a>(reports: impl Iterator<Item = &'a KeyReport>) -> String {
    let (mut keys, mut newest) = (BTreeSet::new(), BTreeSet::new());
    for report in reports {
        keys.extend(&report.in_use);
        // Of a single key nothing follows.
        newest.extend(report.newest.as_ref().filter(|_| report.in_use.len() > 1));
    }
    let rotate = |key: &&String| format!("`doyen keys rotate --to {key}`");
    match newest.first() {
        Some(new) if newest.len() == 1 => {
            let others: Vec<String> = keys.iter().filter(|key| *key != new).map(rotate).collect();
            format!("continue with {}, or revert it with {}", rotate(new), others.join(" or "))
        }
        _ => {
            let all: Vec<String> = keys.iter().map(rotate).collect();
            format!("give the key that is to remain: {}", all.join(" or "))
        }
    }
}

/// A member whose keys cannot be changed from here, and why.
fn unchangeable(cluster: &Cluster) -> Option<(&String, &String)> {
    let mut members = cluster.members.iter();
    members.find_map(|(name, report)| report.problem.as_ref().map(|problem| (name, problem)))
}

/// Has the member that is asked make a key, and returns its fingerprint.
fn create(client: &AdminClient, before: &Cluster) -> Result<String> {
    let given = give(client, &before.own, "/v1/keys/create", &json!({}));
    given.map_err(|error| match error.downcast() {
        // A step may fail after the key is in the file.
        Ok(Stopped(why)) => match Cluster::ask(client) {
            Ok(after) if after.own_file() == before.own_file() => {
                Stopped(format!("{why}; nothing has changed")).into()
            }
            _ => Stopped(format!("{why}; `doyen doctor` says whether a key was created")).into(),
        },
        Err(error) => error,
    })?;
    let after = Cluster::ask(client).map_err(|error| {
        let own = &before.own;
        told(error, |why| {
            format!("stopped: {why}; {own} has created a key: `doyen doctor` says how to continue")
        })
    })?;
    let own = |cluster: &Cluster| {
        let found = cluster.members.iter().find(|(name, _)| *name == cluster.own);
        found.map(|(_, report)| report.in_use.clone()).unwrap_or_default()
    };
    let known = own(before);
    let new = own(&after).into_iter().find(|key| !known.contains(key));
    new.ok_or_else(|| {
        let own = &before.own;
        let why = format!("{own} has created a key and does not use it; `doyen doctor` says more");
        Stopped(why).into()
    })
}

/// Takes all steps that are left. `before`: the keys of all members when it began. A member that has got others meanwhile
/// refuses: they are another rotation's, whose members may seal with them.
fn rotate(client: &AdminClient, target: &String, before: &Cluster) -> Result<()> {
    let fingerprint = target.clone();
    let choose = |member: &str| KeyRef {
        fingerprint: target.clone(),
        among: Some(before.keys_with(member, target)),
    };
    let cluster = Cluster::ask(client)?;
    let has = |keys: &[String]| keys.contains(target);
    let seals = |keys: &[String]| keys.first() == Some(target);
    let is_alone = |keys: &[String]| keys == [target.clone()];

    let lacking = cluster.lacking(has);
    if lacking.len() == cluster.members.len() {
        bail!("--to: no member has a key {target}: {}", cluster.describe());
    }
    if lacking.contains(&cluster.own) {
        let able: Vec<&str> = cluster.members.iter().map(|(name, _)| name.as_str()).collect();
        let able: Vec<&str> =
            able.into_iter().filter(|name| !lacking.iter().any(|it| it == name)).collect();
        bail!("--to: {} does not have the key; run this on {}", cluster.own, able.join(" or "));
    }
    say(&format!("{} has {target}", cluster.own))?;
    for to in lacking {
        let offer = KeyOffer { fingerprint: fingerprint.clone(), to: MemberRef::Name(to.clone()) };
        give(client, &to, "/v1/keys/offer", &offer)?;
        say(&format!("{to} has added {target}"))?;
    }
    let cluster = confirm(client, has, "has not added the key")?;
    for member in cluster.lacking(seals) {
        give(client, &member, &path_to("/v1/keys/promote", Some(&member))?, &choose(&member))?;
        say(&format!("{member} seals with {target}"))?;
    }
    let cluster = confirm(client, seals, "does not seal with the key")?;
    for member in cluster.lacking(is_alone) {
        give(client, &member, &path_to("/v1/keys/retire", Some(&member))?, &choose(&member))?;
        say(&format!("{member} has retired its other keys"))?;
    }
    let cluster = confirm(client, is_alone, "has other keys besides")?;
    let members = count(cluster.members.len() as u64, "member");
    say(&format!("{members} seal and open with {target} alone"))
}

/// Asks all members whether a step is done everywhere, which the next one needs.
fn confirm(
    client: &AdminClient,
    is_done: impl Fn(&[String]) -> bool,
    lacks: &str,
) -> Result<Cluster> {
    let cluster = Cluster::ask(client)?;
    match &cluster.lacking(is_done)[..] {
        [] => Ok(cluster),
        members => Err(Stopped(format!("{} {lacks}", members.join(", "))).into()),
    }
}

/// Has `member` take a step.
fn give(client: &AdminClient, member: &str, path: &str, body: &impl Serialize) -> Result<()> {
    match ask_one(Some(member), || client.command(path, body, None))? {
        CommandResult::Accepted(_) => Ok(()),
        CommandResult::Rejected(problem) => {
            Err(Stopped(format!("{member}: {}", problem.detail)).into())
        }
    }
}

/// Says more of a member that cannot be reached.
fn told(error: anyhow::Error, more: impl FnOnce(CannotReach) -> String) -> anyhow::Error {
    match error.downcast() {
        Ok(why) => CannotReach::told(more(why)).into(),
        Err(error) => error,
    }
}

fn say(text: &str) -> Result<()> {
    Ok(writeln!(io::stdout(), "{text}")?)
}
