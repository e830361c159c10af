//! `doyen init`: configuration, key and state for every member of a new cluster.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use doyen::config::ConfigError;
use doyen::init::{Founding, NewMember};
use doyen_core::config::quorum::{Preemption, Profile};
use doyen_core::registry::Algorithm;

use super::Answer;
use super::terminal::count;

/// Write configuration, key and state for a new cluster
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen init --cluster orders --member n1=10.0.0.1:7400 --member n2=10.0.0.2:7400 \\
             --member n3=10.0.0.3:7400 --priority n3=3 --priority n2=2 --witness n1
  doyen init --cluster trial --member n1=127.0.0.1:7401 --member n2=127.0.0.1:7402 \\
             --member n3=127.0.0.1:7403

Exit: 0 written; 2 not written, and nothing is left behind.")]
pub(crate) struct Init {
    /// Name of the cluster
    #[arg(long, value_name = "NAME")]
    cluster: String,

    /// A member and the address where the others reach it; once per member. Ids are given in this order, from 1
    #[arg(
        long = "member",
        value_name = "NAME=ADDRESS",
        required = true,
        value_parser = |text: &str| NewMember::parse(0, text)
    )]
    members: Vec<NewMember>,

    /// A member's priority: the highest leads, and the higher id decides between equal ones [default: 0]
    #[arg(long = "priority", value_name = "NAME=NUMBER", value_parser = priority)]
    priorities: Vec<(String, i64)>,

    /// A member that votes and never leads
    #[arg(long = "witness", value_name = "NAME")]
    witnesses: Vec<String>,

    /// Election algorithm
    #[arg(long, value_name = "NAME", default_value_t = Algorithm::Quorum, value_parser = Algorithm::for_node)]
    algorithm: Algorithm,

    /// How fast: fast, lan or wan
    #[arg(long, value_name = "NAME", default_value = "lan")]
    profile: Profile,

    /// When a member of higher rank takes over from a working leader: never, delayed or immediate [default: delayed]
    #[arg(long, value_name = "POLICY")]
    preemption: Option<Preemption>,

    /// Groups that each have a leader of their own, spread over the members; after `=` the members that should lead one
    #[arg(long = "group", value_name = "NAME[=MEMBER,…]")]
    groups: Vec<String>,

    /// Where to write the members' folders [default: the cluster's name]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Start above this term: for a cluster that replaces one whose terms were used as fencing tokens
    #[arg(long, value_name = "TERM", default_value_t = 0, hide_default_value = true)]
    term_floor: u64,
}

/// Reads `n1=3`.
fn priority(text: &str) -> Result<(String, i64), String> {
    let parsed =
        text.split_once('=').and_then(|(name, it)| Some((name.to_owned(), it.parse().ok()?)));
    parsed.ok_or_else(|| format!("`{text}` is not NAME=NUMBER; write for example n1=3"))
}

impl Init {
    pub(crate) fn run(&self) -> Result<Answer> {
        let (founding, mut problems) = self.founding();
        let warnings = founding.check().unwrap_or_else(|error| {
            problems.extend(error.problems);
            Vec::new()
        });
        if !problems.is_empty() {
            return Err(ConfigError { problems, warnings: Vec::new() }.into());
        }
        let folder = self.out.clone().unwrap_or_else(|| PathBuf::from(&self.cluster));
        founding.write(&folder)?;
        for warning in warnings {
            writeln!(io::stderr(), "doyen: warning: {warning}")?;
        }
        io::stdout().write_all(self.next_steps(&founding, &folder).as_bytes())?;
        Ok(Answer::Yes)
    }

    /// The cluster, and the mistakes in the flags.
    fn founding(&self) -> (Founding, Vec<String>) {
        let mut problems = Vec::new();
        let is_member = |name: &str| self.members.iter().any(|member| member.name == name);
        let mut priorities = BTreeMap::new();
        for (name, priority) in &self.priorities {
            if !is_member(name) {
                problems.push(format!("--priority: `{name}` is not a member"));
            } else if priorities.insert(name, *priority).is_some() {
                problems.push(format!("--priority: {name} has two priorities; leave one out"));
            }
        }
        for name in &self.witnesses {
            if !is_member(name) {
                problems.push(format!("--witness: `{name}` is not a member"));
            } else if priorities.contains_key(name) {
                problems.push(format!(
                    "--witness: {name} has a priority, and a witness never leads; leave one out"
                ));
            }
        }
        let members = (1..).zip(&self.members).map(|(id, member)| NewMember {
            id,
            priority: priorities.get(&member.name).copied().unwrap_or_default(),
            witness: self.witnesses.contains(&member.name)
                && !priorities.contains_key(&member.name),
            ..member.clone()
        });
        let founding = Founding {
            cluster: self.cluster.clone(),
            algorithm: self.algorithm,
            profile: self.profile,
            members: members.collect(),
            term_floor: self.term_floor,
            groups: self.groups.clone(),
            settings: self.preemption.map_or_else(String::new, |policy| {
                format!("\n[preemption]\npolicy = \"{policy}\"\n")
            }),
        };
        (founding, problems)
    }

    /// What to copy where, and how to start.
    fn next_steps(&self, founding: &Founding, folder: &Path) -> String {
        let Self { cluster, algorithm, .. } = self;
        let members = &founding.members;
        let at = |member: &NewMember| folder.join(&member.name).display().to_string();
        // The folder of an earlier cluster may be there still, by the name of the cluster.
        let group = folder.file_name().map_or(cluster.clone(), |it| it.display().to_string());
        let there = |member: &NewMember| format!("{group}-{}", member.name);
        let start = |folder: String| format!("  doyen node --config {folder}/doyen.toml");
        let written = count(members.len() as u64, "member");
        let mut lines = vec![format!("{written} of cluster {cluster}, elected by {algorithm}:")];
        lines.extend(members.iter().map(|member| format!("  {}/  {}", at(member), member.address)));
        let is_local = members.iter().all(|member| is_loopback(host(&member.address)));
        if is_local {
            lines.push("\nStart each in its own terminal:".to_owned());
            lines.extend(members.iter().map(|member| start(at(member))));
        } else {
            let heading = "\nCopy each folder, with the secret key in it, to its machine, and remove the originals:";
            lines.push(heading.to_owned());
            lines.extend(members.iter().map(|member| {
                format!("  scp -pr {} {}:{}", at(member), host(&member.address), there(member))
            }));
            // Not the folder around them: other files may be there.
            let originals: Vec<String> = members.iter().map(at).collect();
            lines.push(format!("  rm -r {}", originals.join(" ")));
            lines.push("\nThen check and start each on its machine:".to_owned());
            lines.extend(members.iter().flat_map(|member| {
                let start = start(there(member));
                [format!("{start} --check"), start]
            }));
        }
        if algorithm.has_leases() {
            let heading =
                "\nTo run a command on the leader alone, start this instead, on every member:";
            lines.push(heading.to_owned());
            lines.extend(members.first().map(|member| {
                let folder = if is_local { at(member) } else { there(member) };
                format!("  doyen run --config {folder}/doyen.toml -- COMMAND")
            }));
        }
        lines.join("\n") + "\n"
    }
}

fn host(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _)| host)
}

fn is_loopback(host: &str) -> bool {
    let ip: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    host == "localhost" || ip.is_some_and(|ip| ip.is_loopback())
}
