//! Every value, and where it came from: `--print-config`.
//!
//! What is printed is itself a configuration, of the same meaning; where a value came from is a comment behind it.

use std::collections::BTreeMap;
use std::fmt;

use super::schema::{self, DefaultValue, KEYS, Key, MEMBER};
use super::value::Value;

/// The values of a configuration.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    values: Values,
    members: Vec<(String, Values)>,
}

/// In TOML, and where each came from.
type Values = BTreeMap<&'static str, (String, String)>;

/// Where a value comes from that no layer sets.
pub(super) const DEFAULT: &str = "default";

impl Report {
    pub(super) fn set(&mut self, key: &'static str, value: &Value, source: impl fmt::Display) {
        self.values.insert(key, (value.to_string(), source.to_string()));
    }

    /// Begins a member, with where it was listed.
    pub(super) fn begin_member(&mut self, source: impl fmt::Display) {
        self.members.push((source.to_string(), Values::new()));
    }

    /// A value of the last member.
    pub(super) fn set_of_member(
        &mut self,
        key: &'static str,
        value: &Value,
        source: impl fmt::Display,
    ) {
        if let Some((_, values)) = self.members.last_mut() {
            values.insert(key, (value.to_string(), source.to_string()));
        }
    }

    /// What stands before the comment, and the comment; an empty line is nothing.
    fn lines(&self) -> Vec<(String, String)> {
        let mut lines = Vec::new();
        let mut last = "";
        for key in KEYS.iter().filter(|key| key.split().0 != MEMBER) {
            let (table, _) = key.split();
            if table != last {
                lines.extend([Default::default(), (format!("[{table}]"), String::new())]);
                last = table;
            }
            lines.push(line(key, &self.values));
        }
        for (source, values) in &self.members {
            lines.extend([Default::default(), (format!("[[{MEMBER}]]"), source.clone())]);
            lines.extend(schema::keys_of(MEMBER).map(|key| line(key, values)));
        }
        lines
    }
}

fn line(key: &Key, values: &Values) -> (String, String) {
    let name = key.split().1;
    match (values.get(key.name), key.default) {
        (Some((value, source)), _) => (format!("{name} = {value}"), source.clone()),
        (None, DefaultValue::Unset(meaning)) => (format!("# {name}"), meaning.to_owned()),
        // The only other one that may be left out.
        (None, _) => (format!("# {name}"), "a witness never leads".to_owned()),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.lines();
        // A line that is very long does not push all comments to the right.
        let lengths = lines.iter().map(|(left, _)| left.chars().count());
        let width = lengths.filter(|&length| length <= 48).max().unwrap_or_default();
        for (left, source) in lines {
            match source.is_empty() {
                true => writeln!(f, "{left}")?,
                false => writeln!(f, "{left:width$}  # {source}")?,
            }
        }
        Ok(())
    }
}
