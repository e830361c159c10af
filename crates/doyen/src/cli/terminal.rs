//! How answers look in a terminal: colours where they are wanted, columns that stand under each other, lengths of time
//! that can be read.

use std::fmt::{self, Write};
use std::io::{self, IsTerminal};
use std::time::{Duration, UNIX_EPOCH};

/// Whether there are colours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Paint {
    colours: bool,
}

impl Paint {
    /// Colours for a terminal, unless `NO_COLOR` is set.
    pub(crate) fn for_stdout() -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { colours: io::stdout().is_terminal() && !unwanted }
    }

    /// Text that is good news.
    pub(crate) fn good(self, text: &str) -> String {
        self.paint("1;32", text)
    }

    /// Text that is bad news.
    pub(crate) fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }

    /// Text that is there if one looks for it.
    pub(crate) fn faint(self, text: &str) -> String {
        self.paint("2", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// On which side a column is ragged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table of text.
#[derive(Debug, Default)]
pub(crate) struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<Cell>>,
}

/// What stands in a table: text, and how it is painted.
pub(crate) type Cell = (String, fn(Paint, &str) -> String);

/// A cell without paint.
pub(crate) fn plain(text: impl Into<String>) -> Cell {
    (text.into(), |_, text| text.to_owned())
}

impl Table {
    pub(crate) fn new<'a>(columns: impl IntoIterator<Item = (&'a str, Align)>) -> Self {
        let columns = columns.into_iter().map(|(name, align)| (name.to_owned(), align)).collect();
        Self { columns, rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Writes it, two spaces in.
    pub(crate) fn write(&self, out: &mut impl Write, paint: Paint) -> fmt::Result {
        let heads =
            self.columns.iter().map(|(name, _)| (name.clone(), Paint::faint as _)).collect();
        let widths: Vec<usize> = (0..self.columns.len()).map(|column| self.width(column)).collect();
        for row in std::iter::once(&heads).chain(&self.rows) {
            let mut line = String::new();
            for (((text, painted), (_, align)), &width) in
                row.iter().zip(&self.columns).zip(&widths)
            {
                let space = " ".repeat(width - text.chars().count());
                let text = painted(paint, text);
                match align {
                    Align::Left => write!(line, "  {text}{space}")?,
                    Align::Right => write!(line, "  {space}{text}")?,
                }
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|(text, _)| text);
        let texts = cells.chain(self.columns.get(column).map(|(name, _)| name));
        texts.map(|text| text.chars().count()).max().unwrap_or(0)
    }
}

/// A length of time as a person says it.
pub(crate) fn span(span: Duration) -> String {
    let micros = span.as_micros();
    match micros {
        0..1000 => format!("{micros} us"),
        1000..10_000 => format!("{:.1} ms", micros as f64 / 1e3),
        10_000..1_000_000 => format!("{} ms", micros / 1000),
        1_000_000..60_000_000 => format!("{:.1} s", micros as f64 / 1e6),
        _ => humantime::format_duration(Duration::from_secs(span.as_secs())).to_string(),
    }
}

/// A moment by the wall clock.
pub(crate) fn moment(unix_ms: u64) -> String {
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(unix_ms)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_have_a_unit_that_suits_them() {
        for (micros, text) in [
            (0, "0 us"),
            (310, "310 us"),
            (1240, "1.2 ms"),
            (180_400, "180 ms"),
            (12_345_000, "12.3 s"),
            (7_199_000_000, "1h 59m 59s"),
        ] {
            assert_eq!(span(Duration::from_micros(micros)), text);
        }
    }

    #[test]
    fn columns_stand_under_each_other_whatever_the_paint() {
        let mut table = Table::new([("name", Align::Left), ("n", Align::Right)]);
        table.row([("a".to_owned(), Paint::good as _), plain("10")]);
        table.row([plain("länger"), plain("9")]);
        let (mut bare, mut painted) = (String::new(), String::new());
        table.write(&mut bare, Paint { colours: false }).expect("a string takes it");
        table.write(&mut painted, Paint { colours: true }).expect("a string takes it");
        assert_eq!(bare, "  name     n\n  a       10\n  länger   9\n");
        assert!(painted.contains("\x1b[1;32ma\x1b[0m       10"), "{painted:?}");
    }
}
