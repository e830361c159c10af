//! Every value, and where it came from: `--print-config`.
//!
//! What is printed is itself a configuration, of the same meaning; where a value came from is a comment behind it.

use std::fmt;

/// The values of a configuration, in the order of the format.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    lines: Vec<Line>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Line {
    /// A table begins: `[timing]`.
    Table { head: String, source: String },
    /// A value.
    Value { key: &'static str, value: String, source: String },
    /// A value that is not set, and what that means.
    Unset { key: &'static str, meaning: &'static str },
}

/// Where a value comes from that nobody set.
pub(super) const DEFAULT: &str = "default";

impl Report {
    pub(super) fn table(&mut self, head: &str, source: &str) {
        self.lines.push(Line::Table { head: head.to_owned(), source: source.to_owned() });
    }

    /// `value` is TOML.
    pub(super) fn value(&mut self, key: &'static str, value: impl fmt::Display, source: &str) {
        let (value, source) = (value.to_string(), source.to_owned());
        self.lines.push(Line::Value { key, value, source });
    }

    pub(super) fn text(&mut self, key: &'static str, value: impl fmt::Display, source: &str) {
        self.value(key, toml::Value::from(value.to_string()), source);
    }

    pub(super) fn unset(&mut self, key: &'static str, meaning: &'static str) {
        self.lines.push(Line::Unset { key, meaning });
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<(String, &str)> = self.lines.iter().map(Line::halves).collect();
        // A line that is very long does not push all comments to the right.
        let lengths = lines.iter().map(|(left, _)| left.trim_start().chars().count());
        let width = lengths.filter(|&length| length <= 48).max().unwrap_or_default();
        for (left, source) in lines {
            // A table's head has an empty line before it, which does not count.
            let (gap, left) =
                left.strip_prefix('\n').map_or(("", left.as_str()), |left| ("\n", left));
            let line = if source.is_empty() {
                left.to_owned()
            } else {
                format!("{left:width$}  # {source}")
            };
            writeln!(f, "{gap}{line}")?;
        }
        Ok(())
    }
}

impl Line {
    /// What stands before the comment, and the comment.
    fn halves(&self) -> (String, &str) {
        match self {
            Self::Table { head, source } => (format!("\n{head}"), source),
            Self::Value { key, value, source } => (format!("{key} = {value}"), source),
            Self::Unset { key, meaning } => (format!("# {key}"), meaning),
        }
    }
}
