//! Tables as HTML.

use std::fmt::Write as _;

use doyen_sim::render::svg::canvas::escaped as escape;

/// A table under a heading.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Section {
    /// Its heading.
    pub title: String,
    /// The text below it.
    pub about: String,
    /// The heads of its columns.
    pub headers: Vec<String>,
    /// Its lines.
    pub lines: Vec<Line>,
}

/// A line of a table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Line {
    /// Its mark.
    pub mark: Mark,
    /// A text for each column. A column of numbers is set to the right.
    pub cells: Vec<String>,
    /// Its evidence, shown on demand; its title is the text to click on.
    pub evidence: Option<Section>,
}

/// The mark of a line, the worst last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Mark {
    /// Nothing in particular.
    #[default]
    Plain,
    /// It holds.
    Good,
    /// It holds under a condition.
    Partly,
    /// It does not hold.
    Bad,
}

impl Mark {
    /// The class of its line, its sign and its name: colour alone is not accessible to all readers.
    fn shown(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Plain => ("plain", "", ""),
            Self::Good => ("good", "✓", "right"),
            Self::Partly => ("partly", "◐", "right under a condition"),
            Self::Bad => ("bad", "✗", "wrong"),
        }
    }
}

/// How many lines have each mark; nothing, if none has any.
pub(super) fn tally(section: &Section) -> String {
    let shown = [Mark::Good, Mark::Partly, Mark::Bad].into_iter().filter_map(|mark| {
        let count = section.lines.iter().filter(|line| line.mark == mark).count();
        let (class, sign, meaning) = mark.shown();
        (count > 0).then(|| format!("<span class=\"{class}\">{sign} {count}</span> {meaning}"))
    });
    let shown: Vec<String> = shown.collect();
    match shown.as_slice() {
        [] => String::new(),
        shown => format!("<p class=\"tally\">{}</p>\n", shown.join(" · ")),
    }
}

/// The table itself, and the text above it.
pub(super) fn table(out: &mut String, table: &Section) {
    let marked = table.lines.iter().any(|line| line.mark != Mark::Plain);
    let numeric: Vec<bool> =
        (0..table.headers.len()).map(|column| is_numeric(table, column)).collect();
    let class = |column: usize| match numeric.get(column) {
        Some(true) => " class=\"number\"",
        _ => "",
    };
    out.push_str(&paragraphs(&table.about));
    out.push_str("<div class=\"scroll\">\n<table>\n<thead><tr>");
    out.push_str(if marked { "<th class=\"mark\"></th>" } else { "" });
    for (column, header) in table.headers.iter().enumerate() {
        let _ = write!(out, "<th scope=\"col\"{}>{}</th>", class(column), escape(header));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for line in &table.lines {
        let (name, sign, meaning) = line.mark.shown();
        let _ = write!(out, "<tr class=\"{name}\">");
        if marked {
            let _ = write!(out, "<td class=\"mark\"><span title=\"{meaning}\">{sign}</span></td>");
        }
        for (column, cell) in line.cells.iter().enumerate() {
            let _ = write!(out, "<td{}>{}</td>", class(column), escape(cell));
        }
        out.push_str("</tr>\n");
        if let Some(evidence) = &line.evidence {
            let columns = table.headers.len();
            out.push_str("<tr class=\"evidence\">");
            out.push_str(if marked { "<td></td>" } else { "" });
            let title = escape(&evidence.title);
            let _ = writeln!(out, "<td colspan=\"{columns}\"><details><summary>{title}</summary>");
            self::table(out, evidence);
            out.push_str("</details></td></tr>\n");
        }
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
}

/// Whether a column has nothing but numbers, which are set to the right.
fn is_numeric(table: &Section, column: usize) -> bool {
    let unit = |c: char| matches!(c, ',' | '.' | '%' | 'D' | 'n' | 'u' | 'm' | 's' | '–' | ' ');
    let numeric = |text: &str| {
        text == "–"
            || text.starts_with(|c: char| c.is_ascii_digit() || c == '−')
                && text.chars().skip(1).all(|c| c.is_ascii_digit() || unit(c))
    };
    table.lines.iter().all(|line| line.cells.get(column).is_some_and(|cell| numeric(cell)))
}

/// Text as paragraphs: a blank line parts them.
pub(super) fn paragraphs(text: &str) -> String {
    let parts = text.split("\n\n").map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| format!("<p>{}</p>\n", escape(part))).collect()
}
