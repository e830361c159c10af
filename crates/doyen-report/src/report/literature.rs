//! The claims of the literature, as tables of a page.

use super::table::{Line, Mark, Section};
use crate::claims::{Claim, EntryRow, EntryTable, Evidence, Row, Table, Verdict};
use crate::row::grouped as number;
use doyen_sim::scenario::Convention;

/// The verdicts on what the literature prints, and what each algorithm costs.
pub fn sections(tables: &[Table], claims: &[Claim]) -> Vec<Section> {
    vec![verdicts(claims), costs(tables)]
}

/// The same about mutual exclusion.
pub fn entry_sections(tables: &[EntryTable], claims: &[Claim]) -> Vec<Section> {
    vec![verdicts(claims), entry_costs(tables)]
}

fn verdicts(claims: &[Claim]) -> Section {
    Section {
        title: "What the literature prints, and what comes out".to_owned(),
        about: "Each statement is put to the test in simulations made for it; the verdict follows from what they come \
                to."
        .to_owned(),
        headers: ["source", "statement", "verdict"].map(str::to_owned).into(),
        lines: claims.iter().map(verdict).collect(),
    }
}

fn verdict(claim: &Claim) -> Line {
    let mark = match claim.verdict {
        Verdict::Holds => Mark::Good,
        Verdict::HoldsOnlyIf(_) => Mark::Partly,
        Verdict::Wrong(_) => Mark::Bad,
    };
    let evidence = Section {
        title: match claim.evidence.len() {
            1 => "1 trial".to_owned(),
            count => format!("{count} trials"),
        },
        about: String::new(),
        headers: ["trial", "printed", "counted"].map(str::to_owned).into(),
        lines: claim.evidence.iter().map(trial).collect(),
    };
    let cells = vec![claim.source.clone(), claim.text.clone(), claim.verdict.to_string()];
    Line { mark, cells, evidence: Some(evidence) }
}

fn trial(evidence: &Evidence) -> Line {
    let mark = if evidence.agrees { Mark::Good } else { Mark::Bad };
    let cells = vec![evidence.case.clone(), evidence.printed.clone(), evidence.measured.clone()];
    Line { mark, cells, evidence: None }
}

/// One line a row.
fn entry_costs(tables: &[EntryTable]) -> Section {
    let headers = [
        "algorithm",
        "case",
        "N",
        "formula",
        "it gives",
        "per entry",
        "at exit",
        "delay",
        "handover",
        "entries per D",
    ];
    let rows = tables.iter().flat_map(|table| table.rows.iter().map(|row| entry_cost(table, row)));
    Section {
        title: "What an entry into the critical section costs".to_owned(),
        about: "Messages for each entry, by the formula and as counted; K is the size of a voting set. At exit: on average, \
                and the most. Delay: from a request to the entry of a member that finds no other one. Handover: from an exit \
                to the next entry, if that member waits. Times are in units of D."
            .to_owned(),
        headers: headers.map(str::to_owned).into(),
        lines: rows.collect(),
    }
}

fn entry_cost(table: &EntryTable, row: &EntryRow) -> Line {
    let time = |value: Option<f64>| value.map_or(String::new(), number);
    let cells = vec![
        table.algorithm.to_owned(),
        format!("{}: {}", row.case, row.about),
        row.n.to_string(),
        row.formula.clone(),
        number(row.expected),
        number(row.per_entry),
        format!("{}, {}", number(row.at_exit), row.at_exit_most),
        time(row.client_delay_d),
        time(row.sync_delay_d),
        number(row.entries_per_d),
    ];
    let mark = if row.matches { Mark::Good } else { Mark::Bad };
    Line { mark, cells, evidence: None }
}

/// One line a case, with the largest group it was tried in; the others follow below it.
fn costs(tables: &[Table]) -> Section {
    let headers =
        ["algorithm", "case", "members", "formula", "it gives", "counted", "stages", "time"];
    let lines = tables.iter().flat_map(|table| {
        let named = std::iter::once(table.algorithm).chain(std::iter::repeat(""));
        table
            .rows
            .chunk_by(Row::is_same_case)
            .zip(named)
            .map(|(rows, algorithm)| cost(rows, algorithm))
    });
    Section {
        title: "What an election costs".to_owned(),
        about: "Messages by the formula and as counted, one by one; means where the case is an average. Stages: the \
                longest chain of messages, each sent because of the one before. Time: from the first election to the \
                last receipt, in units of D."
            .to_owned(),
        headers: headers.map(str::to_owned).into(),
        lines: lines.collect(),
    }
}

/// The rows of a case, smallest group first.
fn cost(rows: &[Row], algorithm: &str) -> Line {
    let Some(largest) = rows.last() else { return Line::default() };
    let mode = match largest.mode.as_str() {
        "textbook" => String::new(),
        mode => format!(" ({mode})"),
    };
    let case = format!("{}: {}{mode}", largest.case, largest.about);
    let mut cells = vec![algorithm.to_owned(), case];
    let [members, numbers @ ..] = measured(largest);
    cells.extend([members, largest.formula.clone()]);
    cells.extend(numbers);
    let headers = ["members", "it gives", "counted", "stages", "time"];
    let sizes = Section {
        title: format!("{} sizes", rows.len()),
        about: String::new(),
        headers: headers.map(str::to_owned).into(),
        lines: (rows.iter())
            .map(|row| Line { mark: mark(row), cells: measured(row).into(), evidence: None })
            .collect(),
    };
    let worst = rows.iter().map(mark).max().unwrap_or_default();
    Line { mark: worst, cells, evidence: (rows.len() > 1).then_some(sizes) }
}

/// A sample of the runs that a case stands for may be near the formula without hitting it.
fn mark(row: &Row) -> Mark {
    match (row.matches, row.exhaustive) {
        (true, _) => Mark::Good,
        (false, false) => Mark::Partly,
        (false, true) => Mark::Bad,
    }
}

/// Members, the formula's value, messages, stages and time.
fn measured(row: &Row) -> [String; 5] {
    let letter = match row.convention {
        Convention::Live => "n",
        Convention::Configured => "N",
    };
    let dead = if row.contact_dead { ", the dead contacted" } else { "" };
    let places = |value: f64| number((value * 100.0).round() / 100.0);
    [
        format!("{letter} = {}{dead}", number(f64::from(row.n))),
        places(row.expected),
        places(row.messages),
        places(row.stages),
        format!("{}D", places(row.turnaround_d)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(n: u32, matches: bool, exhaustive: bool) -> Row {
        Row {
            case: "worst".to_owned(),
            about: "the lowest detects".to_owned(),
            mode: "textbook".to_owned(),
            convention: Convention::Live,
            contact_dead: false,
            n,
            formula: "n²−1".to_owned(),
            expected: f64::from(n * n - 1),
            messages: f64::from(n * n - 1),
            matches,
            runs: 1,
            exhaustive,
            stages: 3.0,
            turnaround_d: 4.0,
            informed_d: 4.0,
        }
    }

    #[test]
    fn the_sizes_of_a_case_are_one_line_with_the_worst_of_their_marks() {
        let rows = vec![row(5, true, true), row(10, false, false), row(1000, true, true)];
        let section = costs(&[Table { algorithm: "bully", rows }]);
        assert_eq!(section.lines.len(), 1);
        let line = &section.lines[0];
        assert_eq!(line.mark, Mark::Partly);
        let shown = [
            "bully",
            "worst: the lowest detects",
            "n = 1,000",
            "n²−1",
            "999,999",
            "999,999",
            "3",
            "4D",
        ];
        assert_eq!(line.cells, shown);
        let sizes = line.evidence.as_ref().unwrap();
        assert_eq!((sizes.title.as_str(), sizes.lines.len()), ("3 sizes", 3));
    }

    #[test]
    fn a_wrong_claim_is_marked_so_and_shows_its_trials() {
        let evidence = Evidence {
            case: "n = 10".to_owned(),
            printed: "29".to_owned(),
            measured: "28".to_owned(),
            agrees: false,
            meets_condition: true,
        };
        let claim = Claim {
            id: "x".to_owned(),
            source: "Kordafshari (2)".to_owned(),
            text: "3n−1".to_owned(),
            verdict: Verdict::Wrong("it is 3n−2".to_owned()),
            evidence: vec![evidence],
        };
        let section = verdicts(&[claim]);
        let line = &section.lines[0];
        assert_eq!((line.mark, line.cells[2].as_str()), (Mark::Bad, "wrong: it is 3n−2"));
        let trials = line.evidence.as_ref().unwrap();
        assert_eq!((trials.title.as_str(), trials.lines[0].mark), ("1 trial", Mark::Bad));
    }
}
