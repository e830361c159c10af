//! A status as a person reads it.

use std::fmt::{self, Write};
use std::time::Duration;

use doyen::node::status::{MemberStatus, Status};
use doyen_core::registry::Algorithm;

use crate::cli::terminal::{Align, Cell, Paint, Table, plain, span};

/// Stands beside the priority of a member that lost its office lately.
const MARK: &str = "*";

/// The status, in lines.
pub(super) fn render(status: &Status, paint: Paint) -> String {
    let mut text = String::new();
    // A string takes whatever is written into it.
    let _ = write(&mut text, status, paint);
    text
}

fn write(out: &mut String, status: &Status, paint: Paint) -> fmt::Result {
    write_head(out, status, paint)?;
    writeln!(out)?;
    write_members(out, status, paint)?;
    writeln!(
        out,
        "\nWho hears whom: a row hears (+) a column, does not (-), or does not say (?)\n"
    )?;
    write_matrix(out, status, paint)
}

fn write_head(out: &mut String, status: &Status, paint: Paint) -> fmt::Result {
    let Status { cluster, term, .. } = status;
    match status.leader {
        Some(leader) => {
            let leader = paint.good(&status.name_of(leader));
            let why = status.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
            writeln!(out, "{leader} leads {cluster} in term {term}{why}")?;
        }
        None if status.rejoining => {
            let rejoin = status.rejoin().unwrap_or_default();
            writeln!(out, "{} of {cluster} {rejoin}", paint.bad(&status.name))?;
        }
        None => writeln!(
            out,
            "{} is known to lead {cluster}, and the term is {term}",
            paint.bad("nobody")
        )?,
    }
    let leases = status.algorithm.parse::<Algorithm>().map(Algorithm::has_leases);
    match (status.leader, status.next.map(|next| status.name_of(next))) {
        (Some(_), Some(next)) => writeln!(out, "{next} would be next")?,
        (None, Some(next)) => writeln!(out, "{next} is the first in line")?,
        // The others do not say who is next.
        (Some(_), None) if leases == Ok(true) => {
            writeln!(out, "{} could lead if it died now", paint.bad("nobody"))?;
        }
        (_, None) => {}
    }
    if let Some(preferred) = status.preference {
        let left = span(Duration::from_millis(preferred.remaining_ms));
        writeln!(out, "{} is preferred for another {left}", status.name_of(preferred.member))?;
    }
    if let Some(drain) = status.drain() {
        writeln!(out, "{} {drain}", status.name)?;
    }
    let Status { name, algorithm, version, incarnation, .. } = status;
    let warning = match leases {
        Ok(false) => ", which does not survive a partition",
        _ => "",
    };
    let start = incarnation.0;
    let seen = format!("seen from {name} (start {start}), {algorithm}{warning}, doyen {version}");
    writeln!(out, "{}", paint.faint(&seen))
}

fn write_members(out: &mut String, status: &Status, paint: Paint) -> fmt::Result {
    let (left, right) = (Align::Left, Align::Right);
    let mut table = Table::new([
        ("id", right),
        ("name", left),
        ("role", left),
        ("term", right),
        ("lease", right),
        ("priority", right),
        ("heard", left),
        ("round trip", right),
        ("address", left),
    ]);
    for member in &status.members {
        let leads = status.leader == Some(member.id);
        let here = member.id == status.id;
        let name: Cell = match leads {
            true => (member.name.clone(), Paint::good),
            false => plain(&member.name),
        };
        let known = here || leads;
        let lease = status.lease.filter(|_| here);
        let lease = lease.map(|lease| span(Duration::from_millis(lease.remaining_ms)));
        let rtt = member.rtt_us.map(|rtt| span(Duration::from_micros(rtt)));
        table.row([
            plain(member.id.to_string()),
            name,
            plain(role(status, member)),
            plain(if known { status.term.to_string() } else { "-".to_owned() }),
            plain(lease.unwrap_or_else(|| "-".to_owned())),
            plain(format!(
                "{}{}",
                member.priority,
                if member.recent_failures > 0 { MARK } else { "" }
            )),
            heard(status, member),
            plain(rtt.unwrap_or_else(|| "-".to_owned())),
            plain(member.observed_address.as_ref().unwrap_or(&member.address)),
        ]);
    }
    table.write(out, paint)?;
    for member in &status.members {
        if let Some(penalty) = member.penalty() {
            let name = &member.name;
            writeln!(out, "  {MARK} {name} {penalty}")?;
        }
    }
    Ok(())
}

/// What is known of what a member does: of itself a node knows all, of the others who leads and who would not.
fn role(status: &Status, member: &MemberStatus) -> String {
    if member.id == status.id {
        return status.role.to_string();
    }
    let role = match member {
        _ if status.leader == Some(member.id) => "leader",
        MemberStatus { witness: true, .. } => "witness",
        MemberStatus { eligible: false, .. } => "stands back",
        _ => "-",
    };
    role.to_owned()
}

fn heard(status: &Status, member: &MemberStatus) -> Cell {
    let silent = member.last_seen_ms.map(|silent| span(Duration::from_millis(silent)));
    match silent {
        _ if member.id == status.id => plain("this node"),
        _ if member.config_mismatch => ("config mismatch, ignored".to_owned(), Paint::bad),
        Some(silent) if member.reachable => plain(format!("{silent} ago")),
        Some(silent) => (format!("silent for {silent}"), Paint::bad),
        None => ("never".to_owned(), Paint::bad),
    }
}

fn write_matrix(out: &mut String, status: &Status, paint: Paint) -> fmt::Result {
    let columns = status.members.iter().map(|member| (&*member.name, Align::Right));
    let mut table = Table::new([("", Align::Left)].into_iter().chain(columns));
    for row in &status.members {
        let cells = status.members.iter().map(|column| cell(status, row, column));
        table.row([plain(&row.name)].into_iter().chain(cells));
    }
    table.write(out, paint)
}

/// Whether one member hears another.
fn cell(status: &Status, listener: &MemberStatus, speaker: &MemberStatus) -> Cell {
    match status.reaches(listener, speaker) {
        _ if listener.id == speaker.id => plain("."),
        Some(true) => plain("+"),
        Some(false) => ("-".to_owned(), Paint::bad),
        None => ("?".to_owned(), Paint::faint),
    }
}
