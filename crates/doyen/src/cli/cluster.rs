//! `doyen cluster`: a cluster of real processes on this machine, in one command.
//!
//! Every member is a `doyen node` with its own key, state and ports, in a temporary folder. A typed command (`kill n5`,
//! `start n5`, `pause n2`) is executed, every change of leadership is one line, and `status` prints a table. Ctrl-C,
//! SIGTERM or `quit` stops everything and removes the folder. So does the end of input on a terminal; a script whose input
//! is empty or has ended keeps its cluster.

mod member;

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use clap::{Args, value_parser};
use doyen::node::status::Status;
use doyen_core::config::quorum::Profile;
use doyen_core::registry::Algorithm;
use rustix::process::Signal;
use serde_json::json;

use super::terminal::{count, timestamp};
use super::{Answer, system};
use crate::local::folder::Folder;
use crate::local::member::Member as LocalMember;
use crate::local::{self, ReservedPorts};
use member::{Member, STOPPING};

/// How often new changes are printed.
const REFRESH: Duration = Duration::from_millis(200);

const USAGE: &str = "commands: kill, stop, start, pause, resume, drain, undrain or transfer with a member; status; quit";

/// Run a cluster of real processes on this machine, to try things out
///
/// Type `kill n5`, `stop n5`, `start n5`, `pause n5`, `resume n5`, `drain n5`, `undrain n5`, `transfer n4`, `status` or
/// `quit`; `5` means n5. If stdin is not a terminal, end of input is ignored; stop with SIGTERM or Ctrl-C, or use --for.
#[derive(Args, Debug)]
pub(super) struct Cluster {
    /// Number of members, up to 50; the highest id has the highest priority
    #[arg(long, default_value_t = 5, value_name = "COUNT", value_parser = value_parser!(u32).range(1..=50))]
    members: u32,
    /// Election algorithm
    #[arg(long, default_value_t = Algorithm::Quorum, value_parser = Algorithm::for_node, value_name = "NAME")]
    algorithm: Algorithm,
    /// How fast: fast, lan or wan
    #[arg(long, default_value = "lan", value_name = "PROFILE")]
    profile: Profile,
    /// End after this time
    #[arg(long = "for", value_name = "TIME")]
    duration: Option<humantime::Duration>,
    /// Keep the members' folders, with their logs, in this new folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

enum Event {
    Typed(String),
    EndOfInput,
    Interrupted,
}

impl Cluster {
    pub(super) fn run(&self) -> Result<Answer> {
        let folder = Folder::create(self.keep.as_deref(), "cluster")?;
        let mut cluster = LocalCluster::create(self, &folder.path)?;
        let (sender, events) = mpsc::channel();
        let interrupts = sender.clone();
        // Once the command has ended, events do not matter.
        system::on_signal(move || drop(interrupts.send(Event::Interrupted)))?;
        read_input(sender)?;
        for member in &mut cluster.members {
            member.start()?;
        }
        let introduced = self.introduce(&cluster.members, &folder);
        let result =
            introduced.map_err(Into::into).and_then(|()| self.serve(&mut cluster, &events));
        cluster.members.iter_mut().for_each(Member::stop);
        let deadline = Instant::now() + Duration::from_secs(3);
        cluster.members.iter_mut().for_each(|member| member.wait(deadline));
        result.map(|()| Answer::Yes)
    }

    fn introduce(&self, members: &[Member], folder: &Folder) -> io::Result<()> {
        let Self { algorithm, .. } = self;
        let mut out = io::stdout();
        writeln!(
            out,
            "doyen cluster: {}, {algorithm}, profile {}",
            count(self.members, "member"),
            self.profile.name()
        )?;
        if !algorithm.has_leases() {
            let caveat = "elects a leader on each side of a partition; quorum does not";
            writeln!(out, "{algorithm} {caveat}")?;
        }
        for member in members {
            let pid = member.pid().map_or_else(|| "-".to_owned(), |pid| pid.to_string());
            writeln!(out, "{:<6}  pid {pid:<8}  {}/", member.name(), member.url())?;
        }
        writeln!(out, "folder  {}", folder.describe())?;
        if let Some(first) = members.first() {
            writeln!(out, "ask     doyen status --node {}", first.url())?;
        }
        writeln!(out, "{USAGE}")
    }

    fn serve(&self, cluster: &mut LocalCluster, events: &Receiver<Event>) -> Result<()> {
        let begun = Instant::now();
        let mut out = io::stdout();
        loop {
            if self.duration.is_some_and(|duration| begun.elapsed() >= *duration) {
                return Ok(());
            }
            cluster.members.iter_mut().for_each(Member::look);
            for line in cluster.news() {
                writeln!(out, "{line}")?;
            }
            out.flush()?;
            match events.recv_timeout(REFRESH) {
                Ok(Event::Interrupted) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Ok(Event::EndOfInput) if io::stdin().is_terminal() => return Ok(()),
                Ok(Event::EndOfInput) => writeln!(out, "{}", self.end_of_input())?,
                Ok(Event::Typed(line)) => match line.split_whitespace().collect::<Vec<_>>()[..] {
                    ["quit" | "exit" | "q"] => return Ok(()),
                    ["status"] => write!(out, "{}", cluster.table())?,
                    ref words => {
                        let said = cluster.execute(words);
                        writeln!(out, "{}", said.unwrap_or_else(|error| format!("{error:#}")))?;
                    }
                },
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn end_of_input(&self) -> String {
        let pid = std::process::id();
        let time = self.duration.map_or_else(String::new, |time| format!("for {time}, or "));
        format!("end of input: the cluster runs {time}until SIGTERM or SIGINT (kill {pid})")
    }
}

struct LocalCluster {
    members: Vec<Member>,
    /// The start of each member and the last number of its history that was printed.
    printed: BTreeMap<u32, (u32, u64)>,
    /// Whether the first leader has been printed.
    has_led: bool,
}

impl LocalCluster {
    /// Writes configuration, key and state of every member.
    fn create(flags: &Cluster, folder: &Path) -> Result<Self> {
        let ports = ReservedPorts::new(flags.members)?.list();
        local::founding(&ports, flags.algorithm, flags.profile).write(folder)?;
        let members = (1..=flags.members).zip(&ports).map(|(id, &port)| {
            let folder = folder.join(format!("n{id}"));
            Member::new(LocalMember::new(&folder, id, port, Vec::new())?)
        });
        Ok(Self {
            members: members.collect::<Result<_>>()?,
            printed: BTreeMap::new(),
            has_led: false,
        })
    }

    fn execute(&mut self, words: &[&str]) -> Result<String> {
        let &[command, name] = words else { bail!(USAGE) };
        let is_it = |member: &Member| member.name() == name || member.id().to_string() == name;
        let names = || self.members.iter().map(Member::name).collect::<Vec<_>>().join(", ");
        let place = self.members.iter().position(is_it);
        let place =
            place.ok_or_else(|| anyhow!("there is no member `{name}`; there are {}", names()))?;
        let member = &mut self.members[place];
        match command {
            "kill" => member.signal(Signal::KILL, "killed"),
            "stop" => member.signal(Signal::TERM, STOPPING),
            "pause" => member.signal(Signal::STOP, "paused"),
            "resume" => member.signal(Signal::CONT, "resumed"),
            "start" => member.start(),
            "drain" | "undrain" => member.command(command, &json!({})),
            "transfer" => {
                let to = json!({ "to": member.name() });
                let leader = self.members.iter().find(|member| member.leads());
                leader.context("there is no leader")?.command(command, &to)
            }
            _ => bail!(USAGE),
        }
    }

    /// What has happened since the last call, by the wall clock.
    fn news(&mut self) -> Vec<String> {
        let mut news: Vec<(u64, String)> = Vec::new();
        for member in &self.members {
            let answers = member.answers();
            let Some(status) = answers.status else { continue };
            let start = status.incarnation.0;
            let printed = self.printed.entry(member.id()).or_default();
            if printed.0 != start {
                *printed = (start, 0);
            }
            for entry in answers.history.iter().filter(|entry| entry.number > printed.1) {
                // Of 2026-01-01T08:05:27.815Z the time of day.
                let at = &timestamp(entry.at_unix_ms)[11..23];
                news.push((entry.at_unix_ms, format!("{at}  {}  {}", member.name(), entry.text)));
            }
            printed.1 = answers.history.last().map_or(printed.1, |last| last.number.max(printed.1));
        }
        news.sort();
        let mut lines: Vec<String> = news.into_iter().map(|(_, line)| line).collect();
        if let (false, Some(line)) = (self.has_led, self.first_leader()) {
            self.has_led = true;
            lines.push(line);
        }
        lines
    }

    /// The leader, once all members agree on one, and whether it is the best member.
    fn first_leader(&self) -> Option<String> {
        let statuses: Vec<Status> =
            self.members.iter().map(|member| member.answers().status).collect::<Option<_>>()?;
        let Status { leader, term, members, .. } = statuses.first()?;
        let leader = (*leader)?;
        if statuses.iter().any(|status| status.leader != Some(leader)) {
            return None;
        }
        let best = members.iter().max_by_key(|member| (member.priority, member.id))?;
        let name = &members.iter().find(|member| member.id == leader)?.name;
        Some(match best.id == leader {
            true => format!("{name} leads in term {term}: it has the highest priority"),
            false => format!(
                "{name} leads in term {term}; {best} has a higher priority and takes over later, or now with `transfer {best}`",
                best = best.name
            ),
        })
    }

    fn table(&self) -> String {
        let head =
            "member  process   role        term  lease     priority  status, health and metrics\n";
        self.members.iter().fold(head.to_owned(), |table, member| table + &row(member) + "\n")
    }
}

fn row(member: &Member) -> String {
    let (name, fate) = (member.name(), member.fate);
    let Some(pid) = member.pid() else { return format!("{name:<6}  {fate}") };
    // An answer from before the user's command is out of date.
    let Some(status) = member.answers().status.filter(|_| fate.is_empty()) else {
        let fate = if fate.is_empty() { "no answer" } else { fate };
        return format!("{name:<6}  {pid:<8}  {fate}");
    };
    let lease = status.lease.map_or_else(String::new, |lease| format!("{} ms", lease.remaining_ms));
    let priority = status.member(status.id).map_or(0, |me| me.priority);
    let role = format!("{}{}", status.role, if status.drained { " drained" } else { "" });
    let (term, url) = (status.term, member.url());
    format!("{name:<6}  {pid:<8}  {role:<10}  {term:<4}  {lease:<8}  {priority:<8}  {url}/")
}

fn read_input(events: Sender<Event>) -> io::Result<()> {
    let read = move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if events.send(Event::Typed(line)).is_err() {
                return;
            }
        }
        // Once the command has ended, events do not matter.
        let _ = events.send(Event::EndOfInput);
    };
    thread::Builder::new().name("doyen-input".to_owned()).spawn(read).map(drop)
}
