//! The example file, generated from the schema: `doyen node --example`.

use std::fmt::Write as _;

use super::schema::{DefaultValue, Example, Key, MEMBER, TABLES, keys_of};

const HEAD: &str = "\
# The configuration of one member of a doyen cluster, with every setting: `doyen node --example` prints it, and
# `doyen init` writes a shorter one.
#
#   doyen node --config doyen.toml --check           is it sound?
#   doyen node --config doyen.toml --print-config    every value, and where it came from
#
# Precedence, value by value: flags, DOYEN_* variables (DOYEN_LISTEN, DOYEN_TIMING_PROFILE), this file,
# $XDG_CONFIG_HOME/doyen/doyen.toml, /etc/doyen/doyen.toml. Paths are relative to the file that they stand in. Durations
# are written 20us, 1.5ms, 3s, 5m or 1h. What is commented out shows the default.
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

/// How long a line of comment may be.
const WIDTH: usize = 118;

/// A configuration with every setting, its default and what it is for.
pub fn example() -> String {
    let mut text = HEAD.to_owned();
    for key in keys_of("") {
        text.push('\n');
        comment(&mut text, &format!("{}. {}", key.help, key.details));
        match key.default {
            DefaultValue::Derived(from) => line(&mut text, key, &format!("default: {from}")),
            _ => line(&mut text, key, ""),
        }
    }
    for (table, about) in TABLES {
        text.push('\n');
        comment(&mut text, about);
        text.push_str(&if table == MEMBER {
            format!("[[{table}]]\n")
        } else {
            format!("[{table}]\n")
        });
        for key in keys_of(table) {
            let default = match key.default {
                DefaultValue::Derived(from) => format!("; default: {from}"),
                _ => String::new(),
            };
            line(&mut text, key, &format!("{}{default}", key.help));
        }
    }
    text + OTHER_MEMBERS
}

/// Adds a setting, with a comment behind it.
fn line(text: &mut String, key: &Key, comment: &str) {
    let (mark, value) = match (key.example, key.default) {
        (Example::Set(value), _) => ("", value),
        (Example::CommentedOut(value), _) | (Example::Default, DefaultValue::Is(value)) => {
            ("# ", value)
        }
        (Example::Default, _) => unreachable!("{} has neither example nor default", key.name),
    };
    let setting = format!("{mark}{} = {value}", key.split().1);
    // Writing to a string does not fail.
    let _ = match comment {
        "" => writeln!(text, "{setting}"),
        comment => writeln!(text, "{setting:40}  # {comment}"),
    };
}

/// Adds lines of comment.
fn comment(text: &mut String, words: &str) {
    let mut line = "#".to_owned();
    for word in words.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            text.push_str(&line);
            line = "\n#".to_owned();
        }
        line = format!("{line} {word}");
    }
    text.push_str(&line);
    text.push('\n');
}
