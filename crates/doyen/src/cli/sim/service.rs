//! The summary of a run of a bank or of a service as text, and of a snapshot of any run.

use std::io::{self, Write};

use doyen_core::members::NodeId;
use doyen_core::protocol::View;
use doyen_report::service::Summary;
use doyen_sim::cut::{Cut, State, UnderWay};
use doyen_sim::delivered::Delivered;

use super::summary::{total, write_stopped};
use crate::cli::terminal::count;

pub(super) fn write(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    let Summary { algorithm, mode, messages, .. } = summary;
    let members = count(summary.members, "member");
    writeln!(out, "{algorithm} ({mode}), {members}")?;
    let total = total(messages.total, messages.by_kind.clone());
    writeln!(out, "{total}; {}", count(summary.stages, "stage"))?;
    if let Some(delivered) = &summary.multicast {
        write_delivered(out, delivered)?;
    }
    write_stopped(out, summary.ended, summary.end)
}

/// What members have delivered, and what was lost.
fn write_delivered(out: &mut impl Write, multicast: &Delivered) -> io::Result<()> {
    let mut head = "delivered";
    for (id, sequence) in &multicast.delivered {
        let sequence = if sequence.is_empty() { "nothing".to_owned() } else { sequence.join(", ") };
        writeln!(out, "  {head:<11} {id}: {sequence}")?;
        head = "";
    }
    if !multicast.lost.is_empty() {
        let lost = multicast.lost.join(", ");
        writeln!(
            out,
            "  lost        {lost}: delivered by a member that crashed, and by no live one"
        )?;
    }
    if let Some((down, live)) = multicast.contradiction {
        writeln!(
            out,
            "  order       {down}, which crashed, has delivered in another order than {live}"
        )?;
    }
    if let Some((one, other)) = multicast.disorder {
        writeln!(out, "  order       {one} AND {other} HAVE DELIVERED IN DIFFERENT ORDERS")?;
    }
    if multicast.resets > 0 {
        writeln!(out, "  resets      {}", multicast.resets)?;
    }
    Ok(())
}

/// What a snapshot has recorded, and whether it is consistent.
pub(super) fn write_snapshot(out: &mut impl Write, cut: &Cut) -> io::Result<()> {
    let state = |(id, state): (&NodeId, &State)| match state {
        State::Held(held) => format!("{id} holds {held}"),
        State::View(View { role, leader: Some(leader), .. }) if leader != id => {
            format!("{id} {role} of {leader}")
        }
        State::View(View { role, .. }) => format!("{id} {role}"),
    };
    let states: Vec<String> = cut.recorded.iter().map(state).collect();
    writeln!(out, "  snapshot    {}", states.join(", "))?;
    for UnderWay { from, to, messages, .. } in &cut.channels {
        writeln!(out, "              under way from {from} to {to}: {}", messages.join(", "))?;
    }
    let total = cut.total.map_or(String::new(), |total| format!("{total} in all, "));
    let verdict = match (cut.complete, cut.flaws.is_empty()) {
        (false, _) => "incomplete: a marker is missing",
        (true, true) => "consistent",
        (true, false) => "not consistent",
    };
    writeln!(out, "              {total}{}; {verdict}", count(cut.markers, "marker"))?;
    for flaw in &cut.flaws {
        writeln!(out, "              {flaw}")?;
    }
    Ok(())
}
