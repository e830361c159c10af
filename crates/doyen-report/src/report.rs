//! A page about a plan's rows: charts, numbers, tables. It is one HTML file without scripts and without other resources.
//!
//! It follows the reader's light or dark theme, and prints on white paper. The caller gives a plan, which names the
//! charts, its rows, and any tables to show below the charts: [`sections`] makes those of the claims of the literature.
//!
//! ```no_run
//! use doyen_report::plan::{DEFAULT_PLAN, DEFAULT_PLAN_NAME, Limits, Plan};
//! use doyen_report::report::Page;
//! use doyen_report::sweep;
//!
//! let limits = Limits::default();
//! let plan = Plan::from_toml(DEFAULT_PLAN_NAME, DEFAULT_PLAN, &limits)?;
//! let rows = sweep::run(&plan, &limits, |done| eprintln!("{done} runs"))?;
//! println!("{}", Page::new(&plan, &rows).html());
//! # Ok::<(), String>(())
//! ```

mod chart;
mod literature;
mod series;
mod table;

use std::fmt::Write as _;

pub use literature::{entry_sections, sections};
use series::{Picture, Spread};
use table::paragraphs;
pub use table::{Line, Mark, Section};

use crate::plan::{Plan, Report};
use crate::row::{CONVENTIONS, Row, Unit, grouped};
use doyen_sim::metrics::Ended;
use doyen_sim::render::svg::canvas::escaped as escape;

const STYLE: &str = include_str!("report/style.css");

/// How many points of a chart are listed below it.
const MAX_LISTED: usize = 400;

/// A page about the rows of a plan.
#[derive(Clone, Debug)]
pub struct Page<'a> {
    plan: &'a Plan,
    rows: &'a [Row],
    sections: Vec<Section>,
    command: String,
}

impl<'a> Page<'a> {
    /// The charts that `plan` asks for, of its `rows`.
    pub fn new(plan: &'a Plan, rows: &'a [Row]) -> Self {
        Self { plan, rows, sections: Vec::new(), command: String::new() }
    }

    /// With tables below the charts.
    #[must_use]
    pub fn with_tables(mut self, sections: Vec<Section>) -> Self {
        self.sections = sections;
        self
    }

    /// With the command that makes the same page again.
    #[must_use]
    pub fn with_command(mut self, command: impl Into<String>) -> Self {
        self.command = command.into();
        self
    }

    /// The page.
    pub fn html(&self) -> String {
        let mut out = String::with_capacity(1 << 16);
        let title = escape(&self.plan.title);
        out.push_str("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
        out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
        out.push_str("<meta name=\"color-scheme\" content=\"light dark\">\n");
        let _ = write!(out, "<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n");
        let _ = write!(out, "<header>\n<h1>{title}</h1>\n{}", paragraphs(&self.plan.about));
        figures(&mut out, self.rows);
        out.push_str("</header>\n");
        self.contents(&mut out);
        out.push_str("<main>\n");
        for (index, report) in self.plan.reports.iter().enumerate() {
            let _ = writeln!(out, "<section id=\"chart-{}\">", index + 1);
            figure(&mut out, report, self.rows);
            out.push_str("</section>\n");
        }
        for (index, section) in self.sections.iter().enumerate() {
            let _ = writeln!(out, "<section id=\"table-{}\">", index + 1);
            let _ = writeln!(out, "<h2>{}</h2>", escape(&section.title));
            out.push_str(&table::tally(section));
            table::table(&mut out, section);
            out.push_str("</section>\n");
        }
        out.push_str("</main>\n");
        self.footer(&mut out);
        out.push_str("</body>\n</html>\n");
        out
    }

    /// Links to the parts below, if there are more than two.
    fn contents(&self, out: &mut String) {
        let plots = self.plan.reports.iter().map(|report| &report.title);
        let plots = plots.enumerate().map(|(index, title)| ("chart", index, title));
        let tables = self.sections.iter().map(|section| &section.title);
        let tables = tables.enumerate().map(|(index, title)| ("table", index, title));
        let entries: Vec<_> = plots.chain(tables).collect();
        if entries.len() < 3 {
            return;
        }
        out.push_str("<nav aria-label=\"Contents\">\n<ol>\n");
        for (kind, index, title) in entries {
            let title = escape(title);
            let _ = writeln!(out, "<li><a href=\"#{kind}-{}\">{title}</a></li>", index + 1);
        }
        out.push_str("</ol>\n</nav>\n");
    }

    fn footer(&self, out: &mut String) {
        let version = env!("CARGO_PKG_VERSION");
        let _ = writeln!(out, "<footer>\n<p>{}</p>", escape(CONVENTIONS));
        let _ = write!(out, "<p>Made by doyen {version}.");
        if !self.command.is_empty() {
            let command = escape(&self.command);
            let _ = write!(out, " <code>{command}</code> makes it again, the same byte for byte.");
        }
        out.push_str("</p>\n</footer>\n");
    }
}

/// The results of all runs, in a few numbers.
fn figures(out: &mut String, rows: &[Row]) {
    let count = |test: &dyn Fn(&Row) -> bool| rows.iter().filter(|row| test(row)).count();
    let messages: u64 = rows.iter().map(|row| row.summary.outcome.messages.total).sum();
    let with_formula = count(&|row| row.summary.formula_matches.is_some());
    let matching = count(&|row| row.summary.formula_matches == Some(true));
    let agreed = count(&|row| row.summary.outcome.agreed);
    let exclusions = count(&|row| row.section.entries.is_some());
    let elections = rows.len() - exclusions;
    let served = count(&|row| row.section.served == Some(true));
    let violated = count(&|row| row.section.two_inside == Some(true));
    let cut = count(&|row| row.summary.outcome.ended == Ended::MessageLimit);
    let number = |count: usize| grouped(count as f64);
    let of = |part: usize, whole: usize| format!("{} of {}", number(part), number(whole));
    out.push_str("<dl class=\"figures\">\n");
    let mut entry = |name: &str, value: String, class: &str| {
        let _ = writeln!(out, "<div class=\"{class}\"><dt>{name}</dt><dd>{value}</dd></div>");
    };
    entry("runs", number(rows.len()), "");
    entry("messages, each one simulated", grouped(messages as f64), "");
    if elections > 0 {
        entry("runs in which all live members agreed", of(agreed, elections), "");
    }
    if exclusions > 0 {
        entry("runs in which every member that asked entered", of(served, exclusions), "");
        let class = if violated == 0 { "good" } else { "bad" };
        entry("runs with two members inside at once", of(violated, exclusions), class);
    }
    if with_formula > 0 {
        let class = if matching == with_formula { "good" } else { "bad" };
        entry("runs that match their closed form", of(matching, with_formula), class);
    }
    if cut > 0 {
        entry("runs cut short at the message limit", number(cut), "bad");
    }
    out.push_str("</dl>\n");
}

fn figure(out: &mut String, report: &Report, rows: &[Row]) {
    let picture = Picture::of(report, rows);
    let _ = writeln!(out, "<h2>{}</h2>\n{}", escape(&report.title), paragraphs(&report.about));
    if picture.is_empty() {
        let why = match picture.left_out {
            0 => "No run has the values that this chart is limited to.".to_owned(),
            count => format!("None of the {count} runs has a number that these axes can show."),
        };
        let _ = writeln!(out, "<p class=\"empty\">{why}</p>");
        return;
    }
    let (svg, caption) = (chart::draw(report, &picture), caption(report, &picture));
    let _ = writeln!(out, "<figure>\n{svg}\n<figcaption>{caption}</figcaption>\n</figure>");
    out.push_str("<details>\n<summary>The numbers</summary>\n");
    table::table(out, &numbers(report, &picture));
    out.push_str("</details>\n");
}

fn caption(report: &Report, picture: &Picture) -> String {
    let plural = if picture.count() == 1 { "" } else { "s" };
    let runs = format!("{} run{plural}", grouped(picture.count() as f64));
    let points: usize =
        picture.series.iter().map(|series| series.points(report.y.unit).len()).sum();
    let mut text = match report.y.unit {
        _ if report.formula => format!(
            "Dots: {runs}, simulated message by message. Thin lines join what the closed forms give for the \
             same runs."
        ),
        Unit::Flag => format!("Shares of {runs}."),
        _ if picture.count() > points => {
            format!("Medians of {runs}; the bands reach from the 5th to the 95th percentile.")
        }
        _ => format!("{runs}."),
    };
    if picture.left_out > 0 {
        let count = grouped(picture.left_out as f64);
        let _ = write!(
            text,
            " {count} more have no number here, or none that a logarithmic axis can show."
        );
    }
    if picture.crowded_out > 0 {
        let count = grouped(picture.crowded_out as f64);
        let _ = write!(text, " {count} more belong to further series, too many to draw.");
    }
    text
}

/// What a chart shows, as a table.
fn numbers(report: &Report, picture: &Picture) -> Section {
    let unit = report.y.unit;
    let named = picture.series.iter().any(|series| !series.name.is_empty());
    let mut headers: Vec<&str> = if named { vec!["series"] } else { Vec::new() };
    headers.extend([report.x.title, "runs", "5 %", "25 %", "median", "75 %", "95 %"]);
    headers.extend(report.formula.then_some("closed form"));
    let mut lines = Vec::new();
    for series in &picture.series {
        for point in series.points(unit) {
            let Spread { count, p5, q1, median, q3, p95 } = point.spread;
            let mut cells: Vec<String> = named.then(|| series.name.clone()).into_iter().collect();
            cells.extend([report.x.unit.show(point.x), grouped(count as f64)]);
            cells.extend([p5, q1, median, q3, p95].map(|number| unit.show(number)));
            let mut mark = Mark::Plain;
            if report.formula {
                let value = point.formula;
                cells.push(value.map_or_else(|| "–".to_owned(), |value| unit.show(value)));
                let exact = value.map(|value| value == median);
                mark = exact.map_or(mark, |exact| if exact { Mark::Good } else { Mark::Bad });
            }
            lines.push(Line { mark, cells, evidence: None });
        }
    }
    let about = match lines.len() {
        0..=MAX_LISTED => String::new(),
        many => {
            format!("The first {MAX_LISTED} of {many} lines; the rows themselves have them all.")
        }
    };
    lines.truncate(MAX_LISTED);
    let headers = headers.into_iter().map(str::to_owned).collect();
    Section { title: String::new(), about, headers, lines }
}

#[cfg(test)]
mod tests;
