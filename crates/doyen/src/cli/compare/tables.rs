//! The literature's tables and verdicts as text and as CSV.

use std::io::{self, Write};

use anyhow::Result;
use doyen_sim::claims::{Claim, Row, Table, Verdict};

/// Writes every algorithm's costs.
pub(super) fn write(out: &mut impl Write, tables: &[Table]) -> io::Result<()> {
    writeln!(out, "What an election costs: messages by the formula and as counted, one by one.")?;
    writeln!(
        out,
        "n are the live members (live), or all with the crashed coordinator (configured). Times are in units of D.\n"
    )?;
    for table in tables {
        writeln!(out, "{}", table.algorithm)?;
        writeln!(
            out,
            "  {:<38} {:<9} {:<11} {:>7}  {:<28} {:>12} {:>12} {:>8} {:>8}",
            "case", "mode", "convention", "n", "formula", "expected", "counted", "stages", "time"
        )?;
        for row in &table.rows {
            write_row(out, row)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn write_row(out: &mut impl Write, row: &Row) -> io::Result<()> {
    let case = format!("{}: {}", row.case, row.about);
    let contact = if row.contact_dead { "+dead" } else { "" };
    let mark = match (row.matches, row.exhaustive) {
        (true, _) => "",
        (false, false) => "  ≈",
        (false, true) => "  ✗",
    };
    writeln!(
        out,
        "  {:<38} {:<9} {:<11} {:>7}  {:<28} {:>12} {:>12} {:>8} {:>8}{mark}",
        shorten(&case, 38),
        shorten(&row.mode, 9),
        format!("{}{contact}", short_convention(row)),
        row.n,
        row.formula,
        number(row.expected),
        number(row.messages),
        number(row.stages),
        number(row.turnaround),
    )
}

fn short_convention(row: &Row) -> String {
    let name = row.convention.to_string();
    if row.contact_dead { name.chars().take(6).collect() } else { name }
}

fn shorten(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

/// A count as it is, a mean with two places.
fn number(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// Writes what is to be said about each statement of the literature.
pub(super) fn write_claims(
    out: &mut impl Write,
    claims: &[Claim],
    evidence: bool,
) -> io::Result<()> {
    writeln!(out, "What the literature prints, and what comes out of it\n")?;
    for claim in claims {
        let sign = match claim.verdict {
            Verdict::Holds => '✓',
            Verdict::HoldsOnlyIf(_) => '~',
            Verdict::Wrong(_) => '✗',
        };
        writeln!(out, "{sign} {}: {}", claim.source, claim.statement)?;
        writeln!(out, "    {}", claim.verdict)?;
        let telling = |item: &&doyen_sim::claims::Evidence| !item.agrees;
        let shown: Vec<_> = match evidence {
            true => claim.evidence.iter().collect(),
            false => claim.evidence.iter().filter(telling).take(1).collect(),
        };
        for item in shown {
            writeln!(
                out,
                "    {}: printed {}, counted {}",
                item.case, item.printed, item.measured
            )?;
        }
    }
    let count = |wanted: fn(&Verdict) -> bool| claims.iter().filter(|c| wanted(&c.verdict)).count();
    let holds = count(|verdict| *verdict == Verdict::Holds);
    let wrong = count(|verdict| matches!(verdict, Verdict::Wrong(_)));
    let only_if = claims.len() - holds - wrong;
    writeln!(out, "\n{holds} hold, {only_if} hold only under a condition, {wrong} are wrong.")
}

/// The tables as CSV, one line a row.
pub(super) fn csv(tables: &[Table]) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "algorithm",
        "case",
        "about",
        "mode",
        "convention",
        "contact_dead",
        "n",
        "formula",
        "expected",
        "messages",
        "matches",
        "runs",
        "exhaustive",
        "stages",
        "turnaround_d",
    ])?;
    for table in tables {
        for row in &table.rows {
            writer.write_record([
                table.algorithm,
                row.case,
                row.about,
                &row.mode,
                &row.convention.to_string(),
                &row.contact_dead.to_string(),
                &row.n.to_string(),
                row.formula,
                &row.expected.to_string(),
                &row.messages.to_string(),
                &row.matches.to_string(),
                &row.runs.to_string(),
                &row.exhaustive.to_string(),
                &row.stages.to_string(),
                &row.turnaround.to_string(),
            ])?;
        }
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}
