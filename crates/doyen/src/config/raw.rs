//! One `doyen.toml`, parsed against the schema: every value that it sets, and every mistake in it.
//!
//! A key that stands there and could not be read counts as *unread*, so that no error besides says that it is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use toml::Spanned as TomlSpanned;
use toml::de::{DeArray, DeString, DeTable, DeValue};

use super::schema::{KEYS, Key, MEMBER, TABLES, keys_of, nearest};
use super::value::Value;

/// Where a value was set.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    Line {
        file: String,
        line: usize,
    },
    /// A flag or a variable.
    Named(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { file, line } => write!(f, "{file}:{line}"),
            Self::Named(name) => f.write_str(name),
        }
    }
}

impl Origin {
    /// What an error about `key` begins with. A flag and a variable say by their name what they set.
    pub(super) fn place(&self, key: &str) -> String {
        match self {
            Self::Line { .. } => format!("{self}: {key}"),
            Self::Named(name) => name.clone(),
        }
    }
}

/// A value, and where it was set.
#[derive(Clone, Debug)]
pub(super) struct Spanned {
    pub(super) value: Value,
    pub(super) origin: Origin,
}

/// What one file sets; flags and variables make one too.
#[derive(Clone, Debug, Default)]
pub(super) struct RawConfig {
    pub(super) values: BTreeMap<&'static str, Spanned>,
    pub(super) members: Vec<RawMember>,
    pub(super) unread: BTreeSet<&'static str>,
}

/// A `[[member]]`.
#[derive(Clone, Debug)]
pub(super) struct RawMember {
    pub(super) origin: Origin,
    /// What errors call it: `member 2 (n2)`.
    pub(super) title: String,
    pub(super) values: BTreeMap<&'static str, Spanned>,
    pub(super) unread: BTreeSet<&'static str>,
}

/// What errors call a member: its number, and its name if it has one.
pub(crate) fn member_title(number: usize, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("member {number} ({name})"),
        None => format!("member {number}"),
    }
}

/// Parses a file. The error is that it is not TOML, with every place where it is not.
pub(super) fn parse(
    file: &str,
    text: &str,
    base: &Path,
) -> Result<(RawConfig, Vec<String>), Vec<String>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut parser = Parser { file, text, base, mistakes: Vec::new() };
    if !errors.is_empty() {
        return Err(errors.iter().map(|error| parser.syntax_error(error)).collect());
    }
    let mut raw = RawConfig::default();
    for (key, value) in document.get_ref() {
        parser.entry(key, value, &mut raw);
    }
    // A table keeps its keys in the order of the alphabet.
    parser.mistakes.sort_by_key(|(position, _)| *position);
    Ok((raw, parser.mistakes.into_iter().map(|(_, mistake)| mistake).collect()))
}

/// A table that is being read: what is set in it, and what could not be read.
type Found<'a> = (&'a mut BTreeMap<&'static str, Spanned>, &'a mut BTreeSet<&'static str>);

struct Parser<'a> {
    file: &'a str,
    text: &'a str,
    base: &'a Path,
    /// With the byte of the text that each is about.
    mistakes: Vec<(usize, String)>,
}

impl Parser<'_> {
    fn origin(&self, position: usize) -> Origin {
        let before = self.text.get(..position).unwrap_or(self.text);
        Origin::Line { file: self.file.to_owned(), line: before.matches('\n').count() + 1 }
    }

    fn syntax_error(&self, error: &toml::de::Error) -> String {
        let origin = self.origin(error.span().map_or(0, |span| span.start));
        let Origin::Line { line, .. } = &origin else { return error.to_string() };
        let line = self.text.lines().nth(line - 1).unwrap_or_default().trim();
        let message: Vec<&str> = error.message().split_whitespace().collect();
        format!("{origin}: {}, in `{line}`", message.join(" "))
    }

    /// Reads an entry at the top of the file.
    fn entry(
        &mut self,
        key: &TomlSpanned<DeString<'_>>,
        value: &TomlSpanned<DeValue<'_>>,
        raw: &mut RawConfig,
    ) {
        let name = key.get_ref().as_ref();
        let Some((table, _)) = TABLES.into_iter().find(|(table, _)| *table == name) else {
            let found = (&mut raw.values, &mut raw.unread);
            return self.setting(("", name), (key, value), found);
        };
        match value.get_ref() {
            DeValue::Array(members) if table == MEMBER && are_tables(members) => {
                for (index, member) in members.iter().enumerate() {
                    raw.members.extend(self.member(index, member));
                }
            }
            DeValue::Table(entries) if table != MEMBER => {
                for (key, value) in entries {
                    let shown = format!("{table}.{}", key.get_ref());
                    let found = (&mut raw.values, &mut raw.unread);
                    self.setting((table, &shown), (key, value), found);
                }
            }
            _ => {
                let written = self.text.get(value.span()).unwrap_or_default();
                let problem = match table {
                    MEMBER => format!("is `{written}`; write each member below a line [[member]]"),
                    _ => format!("is `{written}`; write its settings below a line [{table}]"),
                };
                self.note(key.span().start, table, &problem);
                raw.unread.extend(keys_of(table).map(|key| key.name));
            }
        }
    }

    fn member(&mut self, index: usize, member: &TomlSpanned<DeValue<'_>>) -> Option<RawMember> {
        let table = member.get_ref().as_table()?;
        let name = table.get("name").and_then(|name| name.get_ref().as_str());
        let title = member_title(index + 1, name);
        let (mut values, mut unread) = Default::default();
        for (key, value) in table {
            let shown = format!("{title}: {}", key.get_ref());
            self.setting((MEMBER, &shown), (key, value), (&mut values, &mut unread));
        }
        Some(RawMember { origin: self.origin(member.span().start), title, values, unread })
    }

    /// Reads an entry of `table`, which errors call `shown`.
    fn setting(
        &mut self,
        (table, shown): (&str, &str),
        (key, value): (&TomlSpanned<DeString<'_>>, &TomlSpanned<DeValue<'_>>),
        (values, unread): Found<'_>,
    ) {
        let name = key.get_ref().as_ref();
        let Some(known) = keys_of(table).find(|known| known.split().1 == name) else {
            self.note(key.span().start, shown, &no_such_key(table, name));
            // It is set, but elsewhere or under another name: no other error says that it is missing.
            let (home, meant) = (home_of(name), meant(table, name));
            let is_it = |key: &Key| match (home, key.split()) {
                (Some(home), _) => home.name == key.name,
                (None, (of, key)) => meant == Some(key) && of == table || meant == Some(of),
            };
            unread.extend(KEYS.iter().filter(|key| is_it(key)).map(|key| key.name));
            return;
        };
        let written = self.text.get(value.span()).unwrap_or_default();
        match known.kind.read(value.get_ref(), written, self.base) {
            Ok(value) => {
                let origin = self.origin(key.span().start);
                values.insert(known.name, Spanned { value, origin });
            }
            Err(problem) => {
                self.note(key.span().start, shown, &problem);
                unread.insert(known.name);
            }
        }
    }

    fn note(&mut self, position: usize, key: &str, problem: &str) {
        let mistake = format!("{}: {problem}", self.origin(position).place(key));
        self.mistakes.push((position, mistake));
    }
}

fn are_tables(members: &DeArray<'_>) -> bool {
    members.iter().all(|member| member.get_ref().is_table())
}

/// The key of a table that `name` is probably a misspelling of; above all tables also a table.
fn meant(table: &str, name: &str) -> Option<&'static str> {
    let tables = TABLES.into_iter().map(|(table, _)| table).filter(|_| table.is_empty());
    nearest(name, keys_of(table).map(|key| key.split().1).chain(tables))
}

/// The first setting of this name in any table.
fn home_of(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.split().1 == name)
}

fn no_such_key(table: &str, name: &str) -> String {
    match (home_of(name).map(Key::split), meant(table, name)) {
        (Some(("", _)), _) => "there is no such key here; it belongs above all tables".to_owned(),
        (Some((MEMBER, _)), _) => {
            "there is no such key here; it belongs below [[member]]".to_owned()
        }
        (Some((home, _)), _) => {
            format!("there is no such key here; it belongs below [{home}]")
        }
        (None, Some(meant)) => format!("there is no such key; did you mean `{meant}`?"),
        (None, None) => {
            let known: Vec<&str> = keys_of(table).map(|key| key.split().1).collect();
            format!("there is no such key; there are {}", known.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_syntax_error_is_reported() {
        let mistakes = parse("x", "cluster = \nid = 1\nlisten \"x\"\n", "".as_ref()).unwrap_err();
        assert!(mistakes.iter().any(|mistake| mistake.starts_with("x:1: ")), "{mistakes:?}");
        assert!(mistakes.iter().any(|mistake| mistake.starts_with("x:3: ")), "{mistakes:?}");
    }

    /// Every kind of value for every key is read or is a mistake about that key.
    #[test]
    fn every_value_of_a_wrong_kind_is_a_mistake() {
        let values = ["1", "-1", "1.5", "true", "\"x\"", "[\"x\"]", "[1]", "{ x = 1 }"];
        let values = values.into_iter().chain(["[{ x = 1 }]", "1979-05-27", "4294967296", "inf"]);
        for (key, value) in KEYS.iter().flat_map(|key| values.clone().map(move |it| (key, it))) {
            let text = match key.split() {
                (MEMBER, name) => format!("[[member]]\n{name} = {value}"),
                _ => format!("{} = {value}", key.name),
            };
            let (raw, mistakes) = parse("x", &text, "".as_ref()).unwrap();
            let member = raw.members.first();
            let values = member.map_or(&raw.values, |member| &member.values);
            let unread = member.map_or(&raw.unread, |member| &member.unread);
            assert_eq!(values.len() + unread.len(), 1, "{text}");
            assert_eq!(mistakes.len(), unread.len(), "{text}: {mistakes:?}");
        }
    }

    #[test]
    fn only_a_near_word_was_meant() {
        for (word, expected) in [
            ("statedir", Some("state_dir")),
            ("lisen", Some("listen")),
            ("clustre", Some("cluster")),
            ("ids", Some("id")),
            ("htp", Some("http")),
            ("log_level", None),
            ("x", None),
        ] {
            assert_eq!(meant("", word), expected, "{word}");
        }
    }
}
