//! The summary of a run as text.

use std::io::{self, Write};

use doyen_core::time::Span;
use doyen_report::summary::Summary;
use doyen_sim::metrics::{Ended, Outcome};
use doyen_sim::scenario::{Case, Convention};
use doyen_sim::time::Time;

use crate::cli::terminal::{count, leader_changes};

pub(super) fn write(out: &mut impl Write, case: &Case, summary: &Summary) -> io::Result<()> {
    let outcome = &summary.outcome;
    writeln!(
        out,
        "{} ({}), {} (`{}`: a coordinator that crashed before {}): {}",
        summary.algorithm,
        summary.mode,
        group(summary),
        summary.convention,
        match summary.convention {
            Convention::Live => "is not counted",
            Convention::Configured => "is counted",
        },
        verdict(case, outcome)
    )?;
    write_messages(out, summary)?;
    let informed = match outcome.informed {
        Some(span) => format!("all members agreed at {}", span.rounded()),
        None => "members never agreed".to_owned(),
    };
    writeln!(
        out,
        "  time        last message at {}, {informed}; {}",
        outcome.turnaround.rounded(),
        count(outcome.stages, "stage")
    )?;
    writeln!(
        out,
        "  elections   {} called, {} involved; {}",
        outcome.elections,
        count(outcome.involved, "member"),
        leader_changes(outcome.leader_changes)
    )?;
    writeln!(out, "  {}", leaders(outcome.downtime, outcome.overlap))?;
    write_stopped(out, outcome.ended, outcome.end.rounded())?;
    if outcome.elections == 0 {
        writeln!(
            out,
            "No member called an election: add for example --initiators 1@5ms, or --detector 5ms."
        )?;
    }
    Ok(())
}

fn group(summary: &Summary) -> String {
    let members = count(summary.members, "member");
    if summary.live == summary.members {
        members
    } else {
        format!("{members} of which {} live", summary.live)
    }
}

fn verdict(case: &Case, outcome: &Outcome) -> String {
    let live = outcome.views.iter().flatten().count();
    match (outcome.agreed, outcome.leader) {
        (true, Some(leader)) if live == 1 => format!("{leader} leads, the only live member"),
        (true, Some(leader)) => format!("all {live} live members follow {leader}"),
        (false, Some(leader)) => {
            let mut members = case.members().iter().zip(outcome.views.iter());
            let is_up = members.any(|(id, view)| id == leader && view.is_some());
            let why = if is_up { "has not become leader" } else { "is down" };
            format!("all live members follow {leader}, which {why}")
        }
        (_, None) => format!("no agreement: {}", disagreement(case, outcome)),
    }
}

fn write_messages(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    let messages = &summary.outcome.messages;
    writeln!(out, "{}", total(messages.total, messages.by_kind.clone()))?;
    let apart = [
        (messages.to_dead, "of them to dead members"),
        (messages.lost, "of them lost"),
        (messages.link, "acknowledgements and retransmissions in addition"),
        (messages.detector, "heartbeats in addition"),
    ];
    for (number, what) in apart.into_iter().filter(|&(number, _)| number > 0) {
        writeln!(out, "              {number} {what}")?;
    }
    if let (Some(formula), Some(value)) = (&summary.formula, summary.formula_value) {
        let matches = summary.formula_matches == Some(true);
        let verdict = if matches { "as counted" } else { "not what was counted" };
        writeln!(out, "  formula     {formula} = {value}, {verdict}")?;
    }
    Ok(())
}

/// How many messages were sent in all, and of each kind.
pub(super) fn total(total: u64, by_kind: impl IntoIterator<Item = (&'static str, u64)>) -> String {
    let kinds = by_kind.into_iter().map(|(kind, count)| format!("{count} {kind}"));
    let kinds: Vec<String> = kinds.collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(" = {}", kinds.join(" + ")) };
    format!("  messages    {total}{kinds}")
}

/// Why the run ended, if it was not because it was quiet.
pub(super) fn write_stopped(out: &mut impl Write, ended: Ended, end: Time) -> io::Result<()> {
    if ended == Ended::Quiet {
        return Ok(());
    }
    writeln!(
        out,
        "  stopped     at the {ended} ({end}), before it was quiet; see --until and --message-limit"
    )
}

/// How long there was no leader, and how long more than one.
fn leaders(downtime: Span, overlap: Span) -> String {
    match (downtime.rounded(), overlap.rounded()) {
        (Span::ZERO, Span::ZERO) => "leaders     always exactly one".to_owned(),
        (downtime, Span::ZERO) => format!("downtime    {downtime}"),
        (downtime, overlap) => {
            format!("downtime    {downtime}; two leaders at once for {overlap}")
        }
    }
}

/// Which members follow which leader, where they do not agree.
fn disagreement(case: &Case, outcome: &Outcome) -> String {
    let mut camps: Vec<(String, Vec<String>)> = Vec::new();
    for (position, view) in outcome.views.iter().enumerate() {
        let Some(view) = view else { continue };
        let leader =
            view.leader.map_or_else(|| "no leader".to_owned(), |leader| leader.to_string());
        let member = case.members().at(position).to_string();
        match camps.iter_mut().find(|(camp, _)| *camp == leader) {
            Some((_, members)) => members.push(member),
            None => camps.push((leader, vec![member])),
        }
    }
    let camp = |(leader, members): &(String, Vec<String>)| match members.len() {
        1 => format!("{} follows {leader}", members[0]),
        2..=8 => format!("{} follow {leader}", members.join(", ")),
        count => format!("{count} members follow {leader}"),
    };
    camps.iter().map(camp).collect::<Vec<_>>().join("; ")
}
