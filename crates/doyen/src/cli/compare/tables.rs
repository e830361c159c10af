//! Tables and verdicts on the literature, as text and as CSV.

use std::io::{self, Write};

use doyen_report::claims::{Claim, EntryRow, EntryTable, Evidence, Row, Table, Verdict};
use doyen_report::row;
use serde::Serialize;

use crate::cli::terminal::wrapped;

/// Writes the costs of every algorithm, one line per case.
pub(super) fn write(out: &mut impl Write, tables: &[Table]) -> io::Result<()> {
    writeln!(
        out,
        "The cost of an election: the formula, and the messages counted at several n.\n\
         n counts the live members (live), N also the crashed coordinator (configured; +dead: which is contacted).\n\
         Stages and time, in units of D, are those at the second n. ≈ mean of a sample; ✗ differs from the formula."
    )?;
    for table in tables {
        writeln!(out, "\n{}", table.algorithm)?;
        let mut last = ("", "");
        for rows in table.rows.chunk_by(Row::is_same_case) {
            let heading = (rows[0].case.as_str(), rows[0].about.as_str());
            if heading != last {
                writeln!(out, "  {}: {}", heading.0, heading.1)?;
            }
            last = heading;
            write_case(out, rows)?;
        }
    }
    writeln!(out)
}

fn write_case(out: &mut impl Write, rows: &[Row]) -> io::Result<()> {
    let row = &rows[0];
    let dead = if row.contact_dead { "+dead" } else { "" };
    let counts: Vec<String> = rows.iter().map(count).collect();
    let typical = rows.get(1).unwrap_or(row);
    writeln!(
        out,
        "    {:<9} {:<15} {:<14} {:<58} {:>6} {:<6} {:>6} D",
        row.mode,
        format!("{}{dead}", row.convention),
        row.formula,
        counts.join("  "),
        number(typical.stages),
        if typical.stages == 1.0 { "stage" } else { "stages" },
        number(typical.turnaround_d),
    )
}

fn count(row: &Row) -> String {
    let mark = match (row.matches, row.exhaustive) {
        (true, true) => "",
        (_, false) => "≈",
        (false, true) => "✗",
    };
    format!("{}:{mark}{}", row.n, number(row.messages))
}

fn number(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// Writes what an entry into the critical section costs with every algorithm, one line per case.
pub(super) fn write_entries(out: &mut impl Write, tables: &[EntryTable]) -> io::Result<()> {
    writeln!(
        out,
        "The cost of an entry into the critical section: the formula, and the messages counted for each entry at several N.\n\
         K is the size of a voting set. At exit: the messages of an exit on average, and the most. Delay: from a request to \
         the entry\nof a member that finds no other one. Handover: from an exit to the next entry, if that member waits. Both \
         in units of D, at the\nsecond N, as the entries for each D. ≈ the formula is about the middle of the run; ✗ differs \
         from the formula."
    )?;
    for table in tables.iter().filter(|table| !table.rows.is_empty()) {
        writeln!(out, "\n{}", table.algorithm)?;
        for rows in table.rows.chunk_by(EntryRow::is_same_case) {
            write_entry_case(out, rows)?;
        }
        writeln!(out, "  one crash: {}", table.one_crash)?;
    }
    writeln!(out)
}

/// As many sizes stand on one line.
const MOST_COUNTS: usize = 4;

fn write_entry_case(out: &mut impl Write, rows: &[EntryRow]) -> io::Result<()> {
    let row = rows.get(1).unwrap_or(&rows[0]);
    let mode = if row.mode == "textbook" { String::new() } else { format!(" ({})", row.mode) };
    writeln!(out, "  {}: {}{mode}", row.case, row.about)?;
    let counts: Vec<String> = rows.iter().map(count_of_entry).collect();
    // Many sizes have lines of their own.
    let (counts, more) = match counts.len() {
        0..=MOST_COUNTS => (counts.join("  "), Vec::new()),
        _ => (String::new(), wrapped(&counts.join(" "), 100)),
    };
    let time = |name: &str, value: Option<f64>| {
        value.map_or(String::new(), |value| format!("   {name} {}", number(value)))
    };
    writeln!(
        out,
        "    {:<10} {:<30} at exit {}, most {}{}{}{}",
        row.formula,
        counts,
        number(row.at_exit),
        row.at_exit_most,
        time("delay", row.client_delay_d),
        time("handover", row.sync_delay_d),
        time("entries/D", Some(row.entries_per_d).filter(|_| row.sync_delay_d.is_some())),
    )?;
    more.iter().try_for_each(|line| writeln!(out, "      {line}"))
}

fn count_of_entry(row: &EntryRow) -> String {
    let mark = match (row.matches, row.exact) {
        (false, _) => "✗",
        (true, true) => "",
        (true, false) => "≈",
    };
    format!("{}:{mark}{}", row.n, number(row.per_entry))
}

/// Writes the verdict on each statement of the literature.
pub(super) fn write_claims(
    out: &mut impl Write,
    claims: &[Claim],
    evidence: bool,
) -> io::Result<()> {
    writeln!(out, "Statements of the literature, and what was measured\n")?;
    for claim in claims {
        let sign = match claim.verdict {
            Verdict::Holds => '✓',
            Verdict::HoldsOnlyIf(_) => '~',
            Verdict::Wrong(_) => '✗',
        };
        writeln!(out, "{sign} {}: {}", claim.source, claim.text)?;
        writeln!(out, "    {}", claim.verdict)?;
        let telling = |item: &&Evidence| !item.agrees;
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

/// The rows of tables as CSV, each with its algorithm.
pub(super) fn csv<'a, R: Serialize + 'a>(
    tables: impl IntoIterator<Item = (&'a str, &'a Vec<R>)>,
) -> String {
    #[derive(Serialize)]
    struct Line<'a, R> {
        algorithm: &'a str,
        #[serde(flatten)]
        row: &'a R,
    }
    let lines = tables
        .into_iter()
        .flat_map(|(algorithm, rows)| rows.iter().map(move |row| Line { algorithm, row }));
    row::to_csv(&lines.collect::<Vec<_>>())
}
