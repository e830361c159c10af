//! The summary of a run of mutual exclusion as text.

use std::io::{self, Write};

use doyen_core::time::Span;
use doyen_report::exclusion::Summary;
use doyen_sim::metrics::sections::{Exclusion, Spread};

use super::summary::{total, write_stopped};
use crate::cli::terminal::count;

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
            format!("; at most {} where no other member waited or was inside", delay.rounded())
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
    let fencing = summary.fencing.unwrap_or_default();
    if fencing.lost_grants > 0 {
        let stays = count(fencing.lost_grants, "stay");
        writeln!(out, "  lost        {stays} ended because the grant was over")?;
    }
    if fencing.refused_writes > 0 {
        let writes = count(fencing.refused_writes, "write");
        writeln!(
            out,
            "  fenced      the resource refused {writes} with the fence of an earlier entry"
        )?;
    }
    write_stopped(out, summary.ended, summary.end)
}

/// Whether the properties hold, in words.
fn verdict(summary: &Summary) -> String {
    let together = match summary.properties.one_inside {
        true => "never two members inside".to_owned(),
        false => format!("TWO MEMBERS INSIDE for {}", summary.overlap),
    };
    let together = match summary.properties.causal_order {
        Some(false) => format!("{together}; A LATER REQUEST ENTERED FIRST"),
        _ => together,
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
            Some(exit) => format!("to {}", exit.rounded()),
            None => "on, and does not leave".to_owned(),
        };
        writeln!(
            out,
            "  {name:<10}  {} from {} {until}; it had asked at {}",
            entry.member,
            entry.entered.rounded(),
            entry.asked.rounded()
        )?;
    }
    Ok(())
}

fn write_messages(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    let messages = &summary.messages;
    writeln!(out, "{}", total(messages.total, messages.by_kind.clone()))?;
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
    let [min, median, max] = [min, median, max].map(Span::rounded);
    match min == max {
        true => min.to_string(),
        false => format!("{min} to {max}, median {median}"),
    }
}
