//! A page about a plan's rows: plots, numbers, tables. One HTML file that needs nothing else, no script and no network.
//!
//! It follows the reader's light or dark theme, and prints on white paper. Whoever makes the page brings a plan, which
//! says what to draw, its rows, and any tables to stand below the plots: [`sections`] makes them of what the literature
//! claims.
//!
//! ```no_run
//! use doyen_sim::plan::{DEFAULT_PLAN, DEFAULT_PLAN_NAME, Limits, Plan};
//! use doyen_sim::report::Page;
//! use doyen_sim::sweep::{self, Shard};
//!
//! let limits = Limits::default();
//! let plan = Plan::from_toml(DEFAULT_PLAN_NAME, DEFAULT_PLAN, &limits)?;
//! let part = sweep::run(&plan, Shard::ALL, &limits, |done, total| eprintln!("{done} of {total}"))?;
//! println!("{}", Page::new(&plan, &part.rows).html());
//! # Ok::<(), String>(())
//! ```

mod literature;
mod plot;
mod series;
mod table;

use std::fmt::Write as _;

pub use literature::sections;
use series::{Picture, Spread};
pub use table::{Line, Mark, Section};
use table::{escape, paragraphs};

use crate::plan::{Kind, Plan, Report};
use crate::row::{CONVENTIONS, Row, Unit};

const STYLE: &str = include_str!("report/style.css");

/// How many points of a plot are listed below it.
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
    /// The plots that `plan` asks for, of its `rows`.
    pub fn new(plan: &'a Plan, rows: &'a [Row]) -> Self {
        Self { plan, rows, sections: Vec::new(), command: String::new() }
    }

    /// With tables below the plots.
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
        figures(&mut out, self.rows, self.plan.size().runs);
        out.push_str("</header>\n");
        self.contents(&mut out);
        out.push_str("<main>\n");
        for (index, report) in self.plan.reports.iter().enumerate() {
            let _ = writeln!(out, "<section id=\"plot-{}\">", index + 1);
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

    /// Links to what stands below, if that is more than two things.
    fn contents(&self, out: &mut String) {
        let plots = self.plan.reports.iter().map(|report| &report.title);
        let plots = plots.enumerate().map(|(index, title)| ("plot", index, title));
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
        let (version, plan) = (env!("CARGO_PKG_VERSION"), self.plan.fingerprint());
        let _ = writeln!(out, "<footer>\n<p>{}</p>", escape(CONVENTIONS));
        let _ = write!(out, "<p>Made by doyen {version} from plan <code>{plan}</code>.");
        if !self.command.is_empty() {
            let command = escape(&self.command);
            let _ = write!(out, " <code>{command}</code> makes it again, the same byte for byte.");
        }
        out.push_str("</p>\n</footer>\n");
    }
}

/// What all runs came to, in a few numbers.
fn figures(out: &mut String, rows: &[Row], planned: u64) {
    let messages: u64 = rows.iter().map(|row| row.messages).sum();
    let with_formula = rows.iter().filter(|row| row.formula_matches.is_some()).count();
    let matching = rows.iter().filter(|row| row.formula_matches == Some(true)).count();
    let agreed = rows.iter().filter(|row| row.agreed).count();
    let cut = rows.iter().filter(|row| row.ended == "message limit").count();
    let number = |count: usize| plot::number(count as f64);
    let of = |part: usize, whole: usize| format!("{} of {}", number(part), number(whole));
    out.push_str("<dl class=\"figures\">\n");
    let mut entry = |name: &str, value: String, class: &str| {
        let _ = writeln!(out, "<div class=\"{class}\"><dt>{name}</dt><dd>{value}</dd></div>");
    };
    match planned == rows.len() as u64 {
        true => entry("runs", number(rows.len()), ""),
        false => entry("runs: a part of the plan", of(rows.len(), planned as usize), "partly"),
    }
    entry("election messages, each one simulated", plot::number(messages as f64), "");
    entry("runs in which all live members agreed", of(agreed, rows.len()), "");
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
            0 => "No run passes the filters of this plot.".to_owned(),
            count => format!("None of the {count} runs has a number that these axes can show."),
        };
        let _ = writeln!(out, "<p class=\"empty\">{why}</p>");
        return;
    }
    let (svg, caption) = (plot::draw(report, &picture), caption(report, &picture));
    let _ = writeln!(out, "<figure>\n{svg}\n<figcaption>{caption}</figcaption>\n</figure>");
    out.push_str("<details>\n<summary>The numbers</summary>\n");
    table::table(out, &numbers(report, &picture));
    out.push_str("</details>\n");
}

fn caption(report: &Report, picture: &Picture) -> String {
    let runs = plot::number(picture.count() as f64);
    let points: usize = picture.series.iter().map(|series| series.points(false).len()).sum();
    let mut text = match report.kind {
        Kind::Line if report.formula => {
            format!(
                "Dots: {runs} runs, simulated message by message. Thin lines join what the closed forms give for the same runs."
            )
        }
        Kind::Line if report.y.is_some_and(|y| y.unit == Unit::Flag) => {
            format!("Shares of {runs} runs.")
        }
        Kind::Line if picture.count() > points => {
            format!("Medians of {runs} runs; the bands reach from the 5th to the 95th percentile.")
        }
        Kind::Scatter if picture.thinning() > 1 => {
            format!("{runs} runs, a dot for one of {}.", picture.thinning())
        }
        Kind::Scatter => format!("{runs} runs, a dot each."),
        Kind::Line | Kind::Histogram => format!("{runs} runs."),
        Kind::Box => format!(
            "{runs} runs. A box reaches from the first to the third quartile, with the median in it; the whiskers \
             reach to the last run within one and a half times that length, and what lies beyond is a dot."
        ),
    };
    if picture.left_out > 0 {
        let count = plot::number(picture.left_out as f64);
        let _ = write!(
            text,
            " {count} more have no number here, or none that a logarithmic axis can show."
        );
    }
    if picture.crowded_out > 0 {
        let count = plot::number(picture.crowded_out as f64);
        let _ = write!(text, " {count} more are of further series, too many to draw: filter them.");
    }
    text
}

/// What a plot shows, as a table.
fn numbers(report: &Report, picture: &Picture) -> Section {
    let measure = report.y.unwrap_or(report.x);
    let show = |number: f64| show(measure.unit, number);
    let mut headers: Vec<String> = Vec::new();
    let named = picture.series.iter().any(|series| !series.name.is_empty());
    if named {
        headers.push("series".to_owned());
    }
    if report.kind != Kind::Histogram {
        headers.push(report.x.title.to_owned());
    }
    headers.extend(["runs", "5 %", "25 %", "median", "75 %", "95 %"].map(str::to_owned));
    if report.formula {
        headers.push("closed form".to_owned());
    }
    let mut lines = Vec::new();
    let mut line = |name: &str, x: Option<String>, spread: Spread, formula: Option<Option<f64>>| {
        let mut cells: Vec<String> = named.then(|| name.to_owned()).into_iter().chain(x).collect();
        cells.push(plot::number(spread.count as f64));
        cells.extend([spread.p5, spread.q1, spread.median, spread.q3, spread.p95].map(show));
        cells.extend(formula.map(|value| value.map_or_else(|| "–".to_owned(), show)));
        let exact = formula.flatten().map(|value| value == spread.median);
        let mark = match exact {
            None => Mark::Plain,
            Some(true) => Mark::Good,
            Some(false) => Mark::Bad,
        };
        lines.push(Line { mark, cells, evidence: None });
    };
    for series in &picture.series {
        if report.kind == Kind::Histogram {
            let spread = Spread::of(series.samples.iter().map(|sample| sample.x).collect());
            spread.into_iter().for_each(|spread| line(&series.name, None, spread, None));
            continue;
        }
        for point in series.points(measure.unit == Unit::Flag) {
            let x = match report.kind {
                Kind::Box => picture.categories[point.x as usize].0.clone(),
                _ => self::show(report.x.unit, point.x),
            };
            line(&series.name, Some(x), point.spread, report.formula.then_some(point.formula));
        }
    }
    let about = match lines.len() {
        0..=MAX_LISTED => String::new(),
        many => {
            format!("The first {MAX_LISTED} of {many} lines; the rows themselves have them all.")
        }
    };
    lines.truncate(MAX_LISTED);
    Section { title: String::new(), about, headers, lines }
}

/// A number for a reader: four digits of a length of time, all of a count.
fn show(unit: Unit, number: f64) -> String {
    match unit {
        Unit::Time => {
            let digits = libm::log10(number.max(1.0)) as i32;
            let grain = 10_f64.powi((digits - 3).max(0));
            unit.show((number / grain).round() * grain)
        }
        Unit::D => format!("{}D", plot::number((number * 1e3).round() / 1e3)),
        Unit::Flag => Unit::Share.show((number * 1e3).round() / 1e3),
        Unit::Count => plot::number(number),
        Unit::Words | Unit::Share => unit.show(number),
    }
}

#[cfg(test)]
mod tests;
