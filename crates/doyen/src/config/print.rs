//! `--print-config`: every value and its origin; and `--example`: the example file. Both are valid configurations.

use std::collections::BTreeMap;
use std::fmt;

use super::schema::{self, DefaultValue, Example, KEYS, Key, MEMBER, TABLES, keys_of};

/// The values of a configuration, and where each comes from.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    values: Values,
    /// With the place of each `[[member]]`.
    members: Vec<(String, Values)>,
}

/// In TOML, with the origin.
type Values = BTreeMap<&'static str, (String, String)>;

/// The origin of a value that no layer sets.
pub(super) const DEFAULT: &str = "default";

impl Report {
    /// A value; of the last member, if the key is one of a member.
    pub(super) fn set(&mut self, key: &'static str, text: &str, source: impl fmt::Display) {
        let key = schema::named(key);
        let values = match (key.split().0, self.members.last_mut()) {
            (MEMBER, Some((_, values))) => values,
            _ => &mut self.values,
        };
        values.insert(key.name, (key.kind.to_toml(text), source.to_string()));
    }

    pub(super) fn begin_member(&mut self, source: impl fmt::Display) {
        self.members.push((source.to_string(), Values::new()));
    }

    /// The names of the settings whose values differ, wherever they come from; those of members once.
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        let differs = |one: &Values, another: &Values, name: &&'static str| {
            let value = |values: &Values| values.get(name).map(|(value, _)| value.clone());
            value(one) != value(another)
        };
        let differ = |name: &&'static str| {
            let mut pairs = self.members.iter().zip(&other.members);
            differs(&self.values, &other.values, name)
                || pairs.any(|((_, one), (_, another))| differs(one, another, name))
        };
        let mut names: Vec<_> = KEYS.iter().map(|key| key.name).filter(differ).collect();
        if self.members.len() != other.members.len() {
            names.push(MEMBER);
        }
        names
    }

    /// Settings and comments; both empty for an empty line.
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
            lines.extend(keys_of(MEMBER).map(|key| line(key, values)));
        }
        lines
    }
}

fn line(key: &Key, values: &Values) -> (String, String) {
    let name = key.split().1;
    match (values.get(key.name), key.default) {
        (Some((value, source)), _) => (format!("{name} = {value}"), source.clone()),
        (None, DefaultValue::Unset(meaning)) => (format!("# {name}"), meaning.to_owned()),
        // Only a witness has no priority.
        (None, _) => (format!("# {name}"), "a witness never leads".to_owned()),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.lines();
        // A very long line does not move all comments to the right.
        let lengths = lines.iter().map(|(setting, _)| setting.chars().count());
        let width = lengths.filter(|&length| length <= 48).max().unwrap_or_default();
        for (setting, source) in lines {
            match source.is_empty() {
                true => writeln!(f, "{setting}")?,
                false => writeln!(f, "{setting:width$}  # {source}")?,
            }
        }
        Ok(())
    }
}

const HEAD: &str = "\
# The configuration of one member of a doyen cluster, with every setting: `doyen node --example` prints it, and
# `doyen init` writes a shorter one.
#
#   doyen node --config doyen.toml --check           check it
#   doyen node --config doyen.toml --print-config    every value, and where it comes from
#
# Precedence, value by value: flags, DOYEN_* variables (DOYEN_LISTEN, DOYEN_TIMING_PROFILE), this file,
# $XDG_CONFIG_HOME/doyen/doyen.toml, /etc/doyen/doyen.toml. Paths are relative to the file that sets them. Durations are
# written 20us, 1.5ms, 3s, 5m or 1h. What is commented out shows the default.
";

const OTHER_MEMBERS: &str = "
[[member]]
id = 2
name = \"n2\"
address = \"10.0.0.2:7400\"
priority = 2

[[member]]
id = 3
name = \"n3\"
address = \"n3.example:7400\"
witness = true
";

/// The longest line of comment.
const WIDTH: usize = 118;

/// A configuration with every setting, its default and its explanation.
pub fn example() -> String {
    let mut text = HEAD.to_owned();
    for key in keys_of("") {
        text += &format!("\n{}", comment(&format!("{}. {}", key.help, key.details)));
        text += &match key.default {
            DefaultValue::Derived(from) => example_line(key, &format!("default: {from}")),
            _ => example_line(key, ""),
        };
    }
    for (table, about) in TABLES {
        let title = if table == MEMBER { format!("[[{table}]]") } else { format!("[{table}]") };
        text += &format!("\n{}{title}\n", comment(about));
        for key in keys_of(table) {
            let default = match key.default {
                DefaultValue::Derived(from) => format!("; default: {from}"),
                _ => String::new(),
            };
            text += &example_line(key, &format!("{}{default}", key.help));
        }
    }
    text + OTHER_MEMBERS
}

fn example_line(key: &Key, comment: &str) -> String {
    let (mark, value) = match (key.example, key.default) {
        (Example::Set(value), _) => ("", value),
        (Example::CommentedOut(value), _) | (Example::Default, DefaultValue::Is(value)) => {
            ("# ", value)
        }
        (Example::Default, _) => unreachable!("{} has neither example nor default", key.name),
    };
    let setting = format!("{mark}{} = {value}", key.split().1);
    if comment.is_empty() { setting + "\n" } else { format!("{setting:40}  # {comment}\n") }
}

/// Wraps lines of comment.
fn comment(words: &str) -> String {
    let mut lines = vec!["#".to_owned()];
    for word in words.split_whitespace() {
        let last = lines.last_mut().expect("there is a line");
        match last.chars().count() + 1 + word.chars().count() > WIDTH {
            true => lines.push(format!("# {word}")),
            false => *last += &format!(" {word}"),
        }
    }
    lines.join("\n") + "\n"
}
