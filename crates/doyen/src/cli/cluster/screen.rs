//! Shows a trial cluster: a live table on a terminal, one line a change elsewhere.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use doyen::node::status::{Entry, Status};

use super::member::Member;
use super::order::USAGE;

/// How many changes the table shows.
const CHANGES: usize = 10;

/// Where things are shown.
#[derive(Debug)]
pub(super) struct Screen {
    live: bool,
    heading: String,
    /// What was said to the last thing that was typed.
    answer: String,
    /// What has been shown of each member's history: its name, the life it was in, and the last number.
    shown: Vec<(String, u32, u64)>,
    /// The changes that the table shows.
    changes: Vec<String>,
    /// Whether it has been said who leads first.
    told_who_leads: bool,
    /// How many lines the table took when it was last drawn; where one types is below.
    drawn: usize,
}

impl Screen {
    /// On a terminal the table is live.
    pub(super) fn new(live: bool, heading: &str) -> Self {
        match live {
            true => print!("\x1b[2J\x1b[H"),
            false => println!("doyen cluster: {heading}"),
        }
        Self {
            live,
            heading: heading.to_owned(),
            answer: USAGE.to_owned(),
            shown: Vec::new(),
            changes: Vec::new(),
            told_who_leads: false,
            drawn: 0,
        }
    }

    /// Says where everything is and how to ask, to whoever sees no table.
    pub(super) fn introduce(&self, members: &[Member], folder: &str) {
        if self.live {
            return;
        }
        for member in members {
            let pid = member.pid().map_or_else(|| "-".to_owned(), |pid| pid.to_string());
            println!("{:<6}  pid {pid:<8}  {}/", member.name(), member.url);
        }
        println!("folder  {folder}");
        if let Some(first) = members.first() {
            println!("ask     doyen status --node {}", first.url);
        }
        println!("{USAGE}");
    }

    /// Shows the table once, to whoever does not see it anyway.
    pub(super) fn status(&mut self, members: &[Member]) {
        match self.live {
            true => self.answer("the table above is the status"),
            false => print!("{}", table(members)),
        }
    }

    /// Says what became of something that was typed.
    pub(super) fn answer(&mut self, text: &str) {
        self.answer = text.to_owned();
        self.drawn = 0; // what was typed has moved the cursor
        if !self.live {
            println!("{text}");
        }
    }

    /// Shows what is new.
    pub(super) fn show(&mut self, members: &[Member]) -> io::Result<()> {
        for line in self.news(members) {
            if !self.live {
                println!("{line}");
            }
            self.changes.push(line);
        }
        if let (false, Some(line)) = (self.told_who_leads, who_leads(members)) {
            self.told_who_leads = true;
            self.answer(&line);
        }
        let old = self.changes.len().saturating_sub(CHANGES);
        self.changes.drain(..old);
        match self.live {
            true => self.draw(members),
            false => io::stdout().flush(),
        }
    }

    /// Leaves the terminal in order.
    pub(super) fn end(&self) {
        if self.live {
            println!();
        }
    }

    fn draw(&mut self, members: &[Member]) -> io::Result<()> {
        let mut text = format!("doyen cluster: {}\n\n", self.heading);
        text += &table(members);
        text.push('\n');
        for change in &self.changes {
            text += change;
            text.push('\n');
        }
        let _ = writeln!(text, "\n{}", self.answer);
        let lines = text.lines().count();
        let text = text.replace('\n', "\x1b[K\n");
        let mut out = io::stdout().lock();
        if self.drawn == lines {
            // Only the table: whoever types is not disturbed.
            write!(out, "\x1b7\x1b[H{text}\x1b8")?;
        } else {
            write!(out, "\x1b[H{text}\x1b[J> ")?;
            self.drawn = lines;
        }
        out.flush()
    }

    /// What has happened since the last look, in the order of the wall clock.
    fn news(&mut self, members: &[Member]) -> Vec<String> {
        let mut news: Vec<(u64, String)> = Vec::new();
        for member in members {
            let heard = member.heard();
            let Some(status) = heard.status else { continue };
            let life = status.incarnation.0;
            let last = self.last_shown(member.name(), life);
            let seen = *last;
            let new = heard.history.iter().filter(|entry| entry.number > seen);
            for entry in new {
                *last = entry.number;
                news.push((entry.at_unix_ms, line(member.name(), entry)));
            }
        }
        news.sort();
        news.into_iter().map(|(_, line)| line).collect()
    }

    fn last_shown(&mut self, name: &str, life: u32) -> &mut u64 {
        let known = self.shown.iter().position(|(shown, ..)| shown == name);
        let place = known.unwrap_or_else(|| {
            self.shown.push((name.to_owned(), life, 0));
            self.shown.len() - 1
        });
        let (_, lived, last) = &mut self.shown[place];
        if *lived != life {
            (*lived, *last) = (life, 0);
        }
        last
    }
}

/// Who leads, once everybody who runs says the same: the best one, or not yet.
fn who_leads(members: &[Member]) -> Option<String> {
    let heard: Vec<Status> =
        members.iter().map(|member| member.heard().status).collect::<Option<_>>()?;
    let Status { leader, term, .. } = heard.first()?;
    let leader = (*leader)?;
    if heard.iter().any(|status| status.leader != Some(leader)) {
        return None;
    }
    let known = &heard.iter().find(|status| status.id == leader)?.members;
    let best = known.iter().max_by_key(|member| (member.priority, member.id))?;
    let name = &known.iter().find(|member| member.id == leader)?.name;
    Some(match best.id == leader {
        true => format!("{name} leads in term {term}: it has the highest priority"),
        false => format!(
            "{name} leads in term {term}, for it was there first; {best} has a higher priority and takes over later, or now \
             by `transfer {best}`",
            best = best.name
        ),
    })
}

/// Everybody.
fn table(members: &[Member]) -> String {
    let head =
        "member  process   role        term  lease     priority  status, health and metrics\n";
    let rows = members.iter().map(|member| row(member) + "\n");
    head.to_owned() + &rows.collect::<String>()
}

/// One change.
fn line(name: &str, entry: &Entry) -> String {
    let (seconds, millis) = (entry.at_unix_ms / 1000 % 86_400, entry.at_unix_ms % 1000);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{hours:02}:{minutes:02}:{seconds:02}.{millis:03}  {name}  {}", entry.text)
}

/// One member.
fn row(member: &Member) -> String {
    let (name, url) = (member.name(), &member.url);
    let Some(pid) = member.pid() else { return format!("{name:<6}  {}", member.fate) };
    // What it said before something was done to it is not how it is.
    let heard = member.heard().status.filter(|_| member.fate.is_empty());
    let Some(status) = heard else {
        let silent = if member.fate.is_empty() { "silent" } else { member.fate };
        return format!("{name:<6}  {pid:<8}  {silent}");
    };
    let lease = status.lease.map_or_else(String::new, |lease| format!("{} ms", lease.remaining_ms));
    let me = status.members.iter().find(|other| other.id == status.id);
    let priority = me.map_or(0, |me| me.priority);
    let drained = if status.drained { " drained" } else { "" };
    let role = format!("{}{drained}", status.role);
    format!(
        "{name:<6}  {pid:<8}  {role:<10}  {:<4}  {lease:<8}  {priority:<8}  {url}/",
        status.term
    )
}
