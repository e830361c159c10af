//! `doyen init`: configuration, key and state for every member of a new cluster.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use doyen::config::ConfigError;
use doyen::init::{Founding, NewMember};
use doyen::key::Keyring;
use doyen_core::algorithm::quorum::settings::Profile;
use doyen_core::registry::Algorithm;

use super::Answer;

/// Write configuration, key and state for a new cluster
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen init --cluster orders --member n1=10.0.0.1:7400 --member n2=10.0.0.2:7400 --member n3=10.0.0.3:7400 \\
             --priority n1=3 --priority n2=2 --witness n3
  doyen init --cluster trial --member n1=127.0.0.1:7401 --member n2=127.0.0.1:7402 --member n3=127.0.0.1:7403

On each machine for itself, with a key that all of them have (`doyen keygen --out key`), all members in the same order:
  doyen init --cluster orders --member n1=10.0.0.1:7400 … --only n2 --key-file key

Exit: 0 written, 2 not, and then nothing is left behind.")]
pub(crate) struct Init {
    /// The cluster's name
    #[arg(long, value_name = "NAME")]
    cluster: String,

    /// A member and where the others reach it; once for each. They are numbered in this order, from 1
    #[arg(long = "member", value_name = "NAME=ADDRESS", required = true)]
    members: Vec<String>,

    /// A member's priority: the highest leads, equal ones are decided by the higher number [default: 0]
    #[arg(long = "priority", value_name = "NAME=NUMBER")]
    priorities: Vec<String>,

    /// A member that votes and never leads
    #[arg(long = "witness", value_name = "NAME")]
    witnesses: Vec<String>,

    /// By which algorithm they elect
    #[arg(long, value_name = "NAME", default_value_t = Algorithm::Quorum)]
    algorithm: Algorithm,

    /// How fast: fast, lan or wan
    #[arg(long, value_name = "NAME", default_value = "lan")]
    profile: Profile,

    /// Where to write, a folder for each member [default: the cluster's name]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// All terms are above this one: for a cluster made anew, whose terms have been shown as tokens
    #[arg(long, value_name = "TERM", default_value_t = 0, hide_default_value = true)]
    term_floor: u64,

    /// Write the folder of this member only, with the keys of --key-file
    #[arg(long, value_name = "NAME", requires = "key_file")]
    only: Option<String>,

    /// The keys that the other members have already
    #[arg(long, value_name = "FILE", requires = "only")]
    key_file: Option<PathBuf>,
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
        match (&self.only, &self.key_file) {
            (Some(name), Some(file)) => {
                founding.write_one(&folder, name, &Keyring::read(file)?)?;
            }
            _ => founding.write(&folder)?,
        }
        for warning in warnings {
            writeln!(io::stderr(), "doyen: warning: {warning}")?;
        }
        io::stdout().write_all(self.next_steps(&founding, &folder).as_bytes())?;
        Ok(Answer::Yes)
    }

    /// What is to be founded, and what is wrong with the flags that say so.
    fn founding(&self) -> (Founding, Vec<String>) {
        let (mut members, mut problems) = (Vec::new(), Vec::new());
        for (id, text) in (1..).zip(&self.members) {
            match NewMember::parse(id, text) {
                Ok(member) => members.push(member),
                Err(problem) => problems.push(format!("--member: {problem}")),
            }
        }
        for (place, text) in self.priorities.iter().enumerate() {
            let name = before_equals(text);
            if self.priorities[..place].iter().any(|earlier| before_equals(earlier) == name) {
                problems.push(format!("--priority: {name} has one already; leave one out"));
            }
            let parsed = text.split_once('=').and_then(|(name, it)| Some((name, it.parse().ok()?)));
            match parsed {
                Some((name, priority)) => match self.member(&mut members, "--priority", name) {
                    Ok(member) => member.into_iter().for_each(|member| member.priority = priority),
                    Err(problem) => problems.push(problem),
                },
                None => {
                    let example = "write for example n1=3";
                    problems.push(format!("--priority: `{text}` is not NAME=NUMBER; {example}"));
                }
            }
        }
        let has_priority =
            |name: &str| self.priorities.iter().any(|text| before_equals(text) == name);
        for name in &self.witnesses {
            match self.member(&mut members, "--witness", name) {
                Ok(_) if has_priority(name) => problems.push(format!(
                    "--witness: {name} has a priority, and a witness never leads; leave one out"
                )),
                Ok(member) => member.into_iter().for_each(|member| member.witness = true),
                Err(problem) => problems.push(problem),
            }
        }
        if let Some(name) = &self.only {
            problems.extend(self.member(&mut members, "--only", name).err());
        }
        let Self { cluster, algorithm, profile, term_floor, .. } = self;
        let founding = Founding {
            cluster: cluster.clone(),
            algorithm: *algorithm,
            profile: *profile,
            members,
            term_floor: *term_floor,
        };
        (founding, problems)
    }

    /// The member called `name`; none, if what was said of it could not be read, which has been told.
    fn member<'a>(
        &self,
        members: &'a mut [NewMember],
        flag: &str,
        name: &str,
    ) -> Result<Option<&'a mut NewMember>, String> {
        let found = members.iter_mut().find(|member| member.name == name);
        if found.is_none() && !self.members.iter().any(|text| before_equals(text) == name) {
            return Err(format!("{flag}: `{name}` is none of the members"));
        }
        Ok(found)
    }

    /// What to copy where, and what to type then.
    fn next_steps(&self, founding: &Founding, folder: &Path) -> String {
        let Self { cluster, algorithm, only, .. } = self;
        let is_written = |name: &str| only.as_ref().is_none_or(|only| only == name);
        let written: Vec<&NewMember> =
            founding.members.iter().filter(|member| is_written(&member.name)).collect();
        let is_local = |member: &&NewMember| is_loopback(host(&member.address));
        let at = |member: &NewMember| folder.join(&member.name).display().to_string();
        let start =
            |member: &&NewMember| format!("  doyen node --config {}/doyen.toml", at(member));

        let count = count(written.len(), "member");
        let mut lines = vec![format!("{count} of cluster {cluster}, elected by {algorithm}:")];
        let folders = written.iter().map(|member| format!("  {}/  {}", at(member), member.address));
        lines.extend(folders);
        lines.push(String::new());
        if let Some(only) = only {
            lines.push(format!("Start {only}. If it has run before, add --rejoin, once:"));
            lines.extend(written.iter().map(start));
        } else if written.iter().all(is_local) {
            lines.push("Start each, in a terminal of its own:".to_owned());
            lines.extend(written.iter().map(start));
        } else {
            let heading = "Copy each folder to its machine, with the secret key in it, and keep no copy of the state:";
            lines.push(heading.to_owned());
            let there = |member: &NewMember| format!("{cluster}-{}", member.name);
            lines.extend(written.iter().map(|member| {
                format!("  scp -pr {} {}:{}", at(member), host(&member.address), there(member))
            }));
            lines
                .push("\nThen, on each machine, see whether all is well, and start it:".to_owned());
            lines.extend(written.iter().flat_map(|member| {
                let start = format!("  doyen node --config {}/doyen.toml", there(member));
                [format!("{start} --check"), start]
            }));
        }
        lines.join("\n") + "\n"
    }
}

fn count(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn before_equals(text: &str) -> &str {
    text.split_once('=').map_or(text, |(name, _)| name)
}

fn host(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _)| host)
}

fn is_loopback(host: &str) -> bool {
    let ip: Option<std::net::IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    host == "localhost" || ip.is_some_and(|ip| ip.is_loopback())
}
