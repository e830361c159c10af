//! The flags of `doyen sim` for a critical section, and the summary of such a run as text.

use std::io::{self, Write};

use clap::Args;
use doyen_core::config::exclusion::{Sets, Tree};
use doyen_report::exclusion::Summary;
use doyen_sim::metrics::Ended;
use doyen_sim::metrics::sections::{Exclusion, Spread};
use doyen_sim::network::DelayModel;
use doyen_sim::scenario::{Initiators, Scenario};

use crate::cli::election::set;
use crate::cli::terminal::count;

#[derive(Args, Debug)]
pub(super) struct Flags {
    /// The members that ask to enter: 1,3 or 3@2ms or all or none [default: the lowest live member]
    #[arg(long, value_name = "IDS", help_heading = "Critical section")]
    requests: Option<Initiators>,

    /// How long a member stays inside: 5ms, uniform:1ms..2ms or exp:1ms [default: D]
    #[arg(long, value_name = "TIME", help_heading = "Critical section")]
    hold: Option<DelayModel>,

    /// How often each of them asks [default: 1]
    #[arg(long, value_name = "COUNT", help_heading = "Critical section")]
    repeat: Option<u32>,

    /// How long a member waits before it asks again, as --hold [default: 0]
    #[arg(long, value_name = "TIME", help_heading = "Critical section")]
    think: Option<DelayModel>,

    /// The voting sets of maekawa: cyclic, grid, plane or majority [default: cyclic]
    #[arg(long, value_name = "NAME", help_heading = "Critical section")]
    sets: Option<Sets>,

    /// The tree of raymond: star, line or binary [default: star]
    #[arg(long, value_name = "NAME", help_heading = "Critical section")]
    tree: Option<Tree>,

    /// How many members are voters of voting, the highest ones [default: all]
    #[arg(long, value_name = "COUNT", help_heading = "Critical section")]
    voters: Option<u32>,

    /// How many votes let a member in [default: a majority of the voters]
    #[arg(long, value_name = "COUNT", help_heading = "Critical section")]
    votes: Option<u32>,

    /// Ask all voters, not only as many as are needed
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = "Critical section")]
    ask_all: Option<bool>,

    /// How long a member waits after too few votes, as --hold [default: from D/2 to 4 D]
    #[arg(long, value_name = "TIME", help_heading = "Critical section")]
    back_off: Option<DelayModel>,
}

impl Flags {
    /// Sets in `scenario` what the flags say.
    pub(super) fn apply(&self, scenario: &mut Scenario) {
        set(&mut scenario.requests, &self.requests);
        set(&mut scenario.hold, &self.hold);
        set(&mut scenario.repeat, &self.repeat);
        set(&mut scenario.think, &self.think);
        set(&mut scenario.sets, &self.sets);
        set(&mut scenario.tree, &self.tree);
        set(&mut scenario.voters, &self.voters);
        set(&mut scenario.votes, &self.votes);
        set(&mut scenario.back_off, &self.back_off);
        scenario.ask_all = self.ask_all.unwrap_or(scenario.ask_all);
    }
}

/// Writes what came of the critical section.
pub(super) fn write(out: &mut impl Write, summary: &Summary, run: &Exclusion) -> io::Result<()> {
    let Summary { algorithm, mode, members, .. } = summary;
    let entries = summary.entries.len() as u64;
    let members = count(*members, "member");
    let entered = match entries {
        0 => "no member entered".to_owned(),
        1 => "1 entry".to_owned(),
        _ => format!("{entries} entries"),
    };
    writeln!(out, "{algorithm} ({mode}), {members}: {entered}, {}", verdict(summary))?;
    for contradiction in &run.broken {
        let facts: Vec<String> = contradiction.facts.iter().map(ToString::to_string).collect();
        writeln!(out, "  violated    {}", facts.join("; "))?;
    }
    write_stays(out, summary)?;
    write_messages(out, summary)?;
    if let Some(wait) = summary.wait {
        let idle = summary.client_delay.map_or(String::new(), |delay| {
            format!("; at most {delay} where no other member waited or was inside")
        });
        writeln!(out, "  wait        {}{idle}", spread(wait))?;
    }
    if let Some(delay) = summary.sync_delay {
        writeln!(out, "  handover    {} from an exit to the next entry", spread(delay))?;
    }
    if let Some(rate) = summary.entries_per_d.filter(|_| entries > 1) {
        writeln!(out, "  throughput  {rate} entries for each D until the last exit")?;
    }
    let most = summary.entries.iter().map(|entry| entry.bypassed).max().unwrap_or_default();
    if most > 0 {
        let times = if most == 1 { "once".to_owned() } else { format!("{most} times") };
        writeln!(out, "  overtaking  one member entered {times} while another one waited")?;
    }
    if summary.ended != Ended::Quiet {
        writeln!(
            out,
            "  stopped     at the {} ({}), before it was quiet; see --until and --message-limit",
            summary.ended, summary.end
        )?;
    }
    Ok(())
}

/// Whether the properties hold, in words.
fn verdict(summary: &Summary) -> String {
    let together = match summary.properties.one_inside {
        true => "never two members inside".to_owned(),
        false => format!("TWO MEMBERS INSIDE for {}", summary.overlap),
    };
    let waiting: Vec<String> = summary.waiting.iter().map(ToString::to_string).collect();
    match waiting.len() {
        0 => together,
        1 => format!("{together}; {} still waits", waiting[0]),
        2..=8 => format!("{together}; {} still wait", waiting.join(", ")),
        count => format!("{together}; {count} members still wait"),
    }
}

/// Of how many entries a summary says who was inside when.
const MOST_STAYS: usize = 8;

fn write_stays(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    if summary.entries.len() > MOST_STAYS {
        return Ok(());
    }
    for (place, entry) in summary.entries.iter().enumerate() {
        let name = if place == 0 { "inside" } else { "" };
        let until = match entry.exited {
            Some(exit) => format!("to {exit}"),
            None => "on, and does not leave".to_owned(),
        };
        writeln!(
            out,
            "  {name:<10}  {} from {} {until}; it had asked at {}",
            entry.member, entry.entered, entry.asked
        )?;
    }
    Ok(())
}

fn write_messages(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    let messages = &summary.messages;
    let kinds = messages.by_kind.iter();
    let kinds: Vec<String> = kinds.map(|(kind, count)| format!("{count} {kind}")).collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(" = {}", kinds.join(" + ")) };
    writeln!(out, "  messages    {}{kinds}", messages.total)?;
    if let (Some(each), Some(exit)) = (messages.per_entry, messages.at_exit) {
        writeln!(
            out,
            "              {each} for each entry; at exit {} on average, {} at most",
            exit.mean, exit.max
        )?;
    }
    if let Some(formula) = &summary.formula {
        let verdict = if formula.matches { "as counted" } else { "not what was counted" };
        writeln!(out, "  formula     {} = {}, {verdict}", formula.name, formula.value)?;
    }
    Ok(())
}

fn spread(Spread { min, median, max }: Spread) -> String {
    match min == max {
        true => min.to_string(),
        false => format!("{min} to {max}, median {median}"),
    }
}
