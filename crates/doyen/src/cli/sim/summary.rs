//! The summary of a run, for people.

use std::io::{self, Write};

use doyen_sim::account::Outcome;
use doyen_sim::scenario::Case;
use doyen_sim::summary::Summary;

/// Writes what a run came to.
pub(super) fn write(
    out: &mut impl Write,
    case: &Case,
    outcome: &Outcome,
    summary: &Summary,
) -> io::Result<()> {
    writeln!(
        out,
        "{} ({}), {}, counted by the `{}` convention: {}",
        summary.algorithm,
        summary.mode,
        group(summary),
        summary.convention,
        verdict(case, outcome)
    )?;
    write_messages(out, outcome, summary)?;
    let informed = match outcome.agreed {
        true => format!("{} until everybody knew", outcome.informed),
        false => "never did everybody know".to_owned(),
    };
    writeln!(
        out,
        "  time        {} until the last message, {informed}; {}",
        outcome.turnaround,
        counted(u64::from(summary.stages), "stage")
    )?;
    writeln!(
        out,
        "  elections   {} called, {} involved; the leader changed {}",
        summary.elections,
        counted(u64::from(summary.involved), "member"),
        times(summary.leader_changes)
    )?;
    writeln!(out, "  leaderless  {}; two leaders for {}", outcome.no_leader, outcome.two_leaders)?;
    if summary.ended != "quiet" {
        writeln!(
            out,
            "  stopped     at the {} ({}), never quiet: --until and --message-limit change that",
            summary.ended, outcome.end
        )?;
    }
    if outcome.elections == 0 {
        writeln!(
            out,
            "Nobody called an election: add for example --initiators 1@5ms, or --detector 5ms."
        )?;
    }
    Ok(())
}

fn group(summary: &Summary) -> String {
    let members = counted(summary.members as u64, "member");
    if summary.live == summary.members {
        members
    } else {
        format!("{members} of which {} live", summary.live)
    }
}

fn verdict(case: &Case, outcome: &Outcome) -> String {
    let live = outcome.views.iter().flatten().count();
    match (outcome.agreed, outcome.leader) {
        (true, Some(leader)) if live == 1 => format!("{leader} leads, the only one alive"),
        (true, Some(leader)) => format!("all {live} live members follow {leader}"),
        (false, Some(leader)) => format!("all live members follow {leader}, which does not lead"),
        (_, None) => format!("no agreement: {}", disagreement(case, outcome)),
    }
}

fn write_messages(out: &mut impl Write, outcome: &Outcome, summary: &Summary) -> io::Result<()> {
    let by_kind = outcome.messages.by_kind.iter();
    let kinds: Vec<String> = by_kind.map(|(kind, count)| format!("{count} {kind}")).collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(" = {}", kinds.join(" + ")) };
    writeln!(out, "  messages    {}{kinds}", summary.messages.total)?;
    let apart = [
        (summary.messages.to_dead, "of them to dead members"),
        (summary.messages.lost, "of them lost"),
        (summary.messages.link, "acknowledgements and retransmissions apart"),
        (summary.messages.detector, "heartbeats apart"),
    ];
    for (count, what) in apart.into_iter().filter(|&(count, _)| count > 0) {
        writeln!(out, "              {count} {what}")?;
    }
    if let Some(formula) = &summary.formula {
        let verdict = if formula.matches { "as counted" } else { "not what was counted" };
        writeln!(out, "  formula     {} = {}, {verdict}", formula.name, formula.value)?;
    }
    Ok(())
}

fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn times(count: u32) -> String {
    match count {
        0 => "never".to_owned(),
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{count} times"),
    }
}

/// Who follows whom, for those who do not agree.
fn disagreement(case: &Case, outcome: &Outcome) -> String {
    let mut camps: Vec<(String, Vec<String>)> = Vec::new();
    for (position, view) in outcome.views.iter().enumerate() {
        let Some(view) = view else { continue };
        let leader = view.leader.map_or("nobody".to_owned(), |leader| leader.to_string());
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
