//! Terminal output: styles, tables, numbers.
//!
//! Text carries its styles as escape codes; `anstream::stdout()` removes them unless stdout is a terminal that takes
//! colours and `NO_COLOR` is not set.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::time::{Duration, UNIX_EPOCH};

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use anyhow::Result;
pub(crate) use doyen::clock::with_unit as span;
use serde::Serialize;

pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
pub(crate) const FAINT: Style = Style::new().dimmed();

pub(crate) fn styled(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Prints a value: as one line of JSON, or as the text that `render` makes of it.
pub(crate) fn print<T: Serialize>(
    as_json: bool,
    value: &T,
    render: impl FnOnce(&T) -> String,
) -> Result<()> {
    let text = match as_json {
        true => serde_json::to_string(value)? + "\n",
        false => render(value),
    };
    Ok(anstream::stdout().lock().write_all(text.as_bytes())?)
}

/// Whether stdout takes colours.
pub(crate) fn has_colours() -> bool {
    AutoStream::choice(&io::stdout()) != ColorChoice::Never
}

/// How wide text may be: as the terminal is, within what reads well.
pub(crate) fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    size.map_or(100, |size| usize::from(size.ws_col).clamp(40, 100))
}

/// Breaks `text` into lines of at most `width` characters, longer words excepted.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Aligns columns, each on the `l`eft or on the `r`ight. The first row is the heading.
pub(crate) fn table(sides: &str, rows: &[Vec<String>]) -> String {
    let width = |cell: &str| strip_str(cell).to_string().chars().count();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let mut line = String::new();
        for (column, (cell, side)) in row.iter().zip(sides.chars()).enumerate() {
            let widest = rows.iter().map(|row| width(&row[column])).max().unwrap_or(0);
            let space = " ".repeat(widest - width(cell));
            let cell = if number == 0 { styled(FAINT, cell) } else { cell.clone() };
            line +=
                &if side == 'l' { format!("  {cell}{space}") } else { format!("  {space}{cell}") };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// `1 state`, `2 states`.
pub(crate) fn count(number: impl Into<u64>, noun: &str) -> String {
    let number = number.into();
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// `once`, `twice`, `3 times`.
pub(crate) fn times(number: impl Into<u64>) -> String {
    match number.into() {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        number => format!("{number} times"),
    }
}

pub(crate) fn leader_changes(number: impl Into<u64>) -> String {
    match number.into() {
        0 => "the leader never changed".to_owned(),
        number => format!("the leader changed {}", times(number)),
    }
}

/// A time of the wall clock.
pub(crate) fn timestamp(unix_ms: u64) -> String {
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(unix_ms)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_between_words() {
        assert_eq!(wrapped("a bc def äöü", 6), ["a bc", "def", "äöü"]);
        assert_eq!(wrapped("incomprehensibilities", 6), ["incomprehensibilities"]);
        assert_eq!(wrapped("", 6), [""; 0]);
    }

    #[test]
    fn columns_are_aligned_whatever_their_style() {
        let row = |name: &str, number: &str| vec![name.to_owned(), number.to_owned()];
        let rows = [row("name", "n"), row(&styled(GOOD, "a"), "10"), row("länger", "9")];
        let text = strip_str(&table("lr", &rows)).to_string();
        assert_eq!(text, "  name     n\n  a       10\n  länger   9\n");
    }
}
