//! The shape of `doyen.toml`: which keys there are, and what stands behind each.
//!
//! The reader of [`Written`] ends with the first thing that it does not know. So every key and every value is looked at
//! here first: what is wrong is noted and taken out, and the rest is read. A key that was taken out counts as *unread*,
//! so that nobody is told besides that it is missing.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue, Deserializer, ValueDeserializer};

use super::file::{Who, Written};
use super::near::nearest;

/// Every key, by its name with that of its table before it, and what stands behind it.
pub(super) const KEYS: [(&str, Kind); 33] = [
    ("cluster", Kind::Text),
    ("id", Kind::Who),
    ("listen", Kind::Text),
    ("http", Kind::Text),
    ("http_open", Kind::Truth),
    ("key_file", Kind::Text),
    ("state_dir", Kind::Text),
    ("algorithm", Kind::Text),
    ("grace", Kind::Text),
    ("trace", Kind::Text),
    ("timing.profile", Kind::Text),
    ("timing.transmission", Kind::Text),
    ("timing.processing", Kind::Text),
    ("timing.heartbeat", Kind::Text),
    ("timing.promise", Kind::Text),
    ("timing.drift", Kind::Fraction),
    ("timing.jitter", Kind::Text),
    ("timing.stagger", Kind::Text),
    ("timing.tenure", Kind::Text),
    ("timing.forgiveness", Kind::Text),
    ("timing.probe", Kind::Text),
    ("preemption.policy", Kind::Text),
    ("preemption.delay", Kind::Text),
    ("preemption.margin", Kind::Count),
    ("attribute.source", Kind::Text),
    ("attribute.command", Kind::Texts),
    ("attribute.every", Kind::Text),
    ("attribute.step", Kind::Count),
    ("member.id", Kind::Id),
    ("member.name", Kind::Text),
    ("member.address", Kind::Text),
    ("member.priority", Kind::Whole),
    ("member.witness", Kind::Truth),
];

/// The tables. The last stands there once for each member.
const TABLES: [&str; 4] = ["timing", "preemption", "attribute", MEMBER];
const MEMBER: &str = "member";

/// What a value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Text,
    Texts,
    Truth,
    Fraction,
    Count,
    Whole,
    Id,
    /// A member, by number or name.
    Who,
}

impl Kind {
    fn fits(self, value: &Spanned<DeValue<'_>>) -> bool {
        fn is<T: DeserializeOwned>(value: &Spanned<DeValue<'_>>) -> bool {
            T::deserialize(ValueDeserializer::from(value.clone())).is_ok()
        }
        match self {
            Self::Text => is::<String>(value),
            Self::Texts => is::<Vec<String>>(value),
            Self::Truth => is::<bool>(value),
            Self::Fraction => is::<f64>(value),
            Self::Count => is::<u64>(value),
            Self::Whole => is::<i64>(value),
            Self::Id => is::<u32>(value),
            Self::Who => is::<Who>(value),
        }
    }

    /// What must be written.
    fn must_be(self) -> &'static str {
        match self {
            Self::Text => "a text in quotes",
            Self::Texts => "a list of texts, such as [\"/usr/bin/score\", \"--brief\"]",
            Self::Truth => "true or false, without quotes",
            Self::Fraction => "a number without quotes",
            Self::Count => "a whole number from 0 on, without quotes",
            Self::Whole => "a whole number without quotes",
            Self::Id => "a whole number from 0 to 4294967295, without quotes",
            Self::Who => "a member's number from 0 to 4294967295, or its name in quotes",
        }
    }
}

/// A mistake, where it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Mistake {
    /// At which byte of the text.
    pub(super) position: usize,
    /// Which key, if it is about one.
    pub(super) key: Option<String>,
    /// What is wrong, and what to write instead.
    pub(super) problem: String,
}

/// What was read, and what was not.
#[derive(Clone, Debug)]
pub(super) struct Shaped {
    pub(super) written: Written,
    pub(super) mistakes: Vec<Mistake>,
    pub(super) unread: Unread,
}

/// The keys that stand there and could not be read.
#[derive(Clone, Debug, Default)]
pub(super) struct Unread(BTreeSet<String>);

impl Unread {
    /// Whether `key` is one of them, or in a table that is.
    pub(super) fn contains(&self, key: &str) -> bool {
        let table = key.split_once('.').map(|(table, _)| table);
        self.0.contains(key) || table.is_some_and(|table| self.0.contains(table))
    }

    /// Whether `key` of the member at this place is one of them.
    pub(super) fn contains_of_member(&self, place: usize, key: &str) -> bool {
        self.0.contains(&of_member(place, key))
    }

    /// Whether something of a member is, or all of them are.
    pub(super) fn has_members(&self) -> bool {
        self.0.iter().any(|key| key.starts_with(MEMBER))
    }
}

/// What a key of the member at this place is called among those that could not be read.
fn of_member(place: usize, key: &str) -> String {
    format!("{MEMBER} {place}.{key}")
}

/// How a member is called, counted from one: by its place and, if it has one, its name.
pub(super) fn member_title(place: usize, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("member {} ({name})", place + 1),
        None => format!("member {}", place + 1),
    }
}

/// Reads a text. The error is that it is no TOML, with every place where it is not.
pub(super) fn read(text: &str) -> Result<Shaped, Vec<Mistake>> {
    let (mut document, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(errors.iter().map(|error| mistake_of(error, text)).collect());
    }
    let mut reader = Reader { text, mistakes: Vec::new(), unread: BTreeSet::new() };
    sift(document.get_mut(), |key, value| reader.keeps(key, value));
    let Reader { mut mistakes, unread, .. } = reader;
    // A table keeps its keys in the order of the alphabet.
    mistakes.sort_by_key(|mistake| mistake.position);
    match Written::deserialize(Deserializer::from(document)) {
        Ok(written) => Ok(Shaped { written, mistakes, unread: Unread(unread) }),
        Err(error) => Err(vec![mistake_of(&error, text)]),
    }
}

fn mistake_of(error: &toml::de::Error, text: &str) -> Mistake {
    let position = error.span().map_or(0, |span| span.start);
    let start = text.get(..position).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
    let line = text[start..].lines().next().unwrap_or_default().trim();
    let message: Vec<&str> = error.message().split_whitespace().collect();
    let problem = format!("{}, in `{line}`", message.join(" "));
    Mistake { position, key: None, problem }
}

/// Looks at every key and value.
struct Reader<'a> {
    text: &'a str,
    mistakes: Vec<Mistake>,
    unread: BTreeSet<String>,
}

impl Reader<'_> {
    /// Whether an entry at the top, or what is left of it, can be read.
    fn keeps(&mut self, key: &Spanned<DeString<'_>>, value: &mut Spanned<DeValue<'_>>) -> bool {
        let (name, span) = (key.get_ref().as_ref(), value.span());
        if !TABLES.contains(&name) {
            return self.keeps_value("", name, (key.span().start, value), name, str::to_owned);
        }
        match value.get_mut() {
            DeValue::Array(members) if name == MEMBER && are_tables(members) => {
                for (place, member) in members.iter_mut().enumerate() {
                    self.look_at_member(place, member.get_mut());
                }
                true
            }
            DeValue::Table(table) if name != MEMBER => {
                sift(table, |key, value| {
                    let (position, key) = (key.span().start, key.get_ref());
                    let full = format!("{name}.{key}");
                    let called = |key: &str| format!("{name}.{key}");
                    self.keeps_value(name, key, (position, value), &full, called)
                });
                true
            }
            _ => {
                let written = self.text.get(span).unwrap_or_default();
                let problem = match name {
                    MEMBER => format!("is `{written}`; write each member below a line [[member]]"),
                    _ => format!("is `{written}`; write its settings below a line [{name}]"),
                };
                self.note(key.span().start, name, problem);
                self.unread.insert(name.to_owned());
                false
            }
        }
    }

    fn look_at_member(&mut self, place: usize, member: &mut DeValue<'_>) {
        let DeValue::Table(table) = member else { return };
        let title = member_title(place, table.get("name").and_then(|name| name.get_ref().as_str()));
        sift(table, |key, value| {
            let (position, key) = (key.span().start, key.get_ref());
            let full = format!("{title}: {key}");
            let called = |key: &str| of_member(place, key);
            self.keeps_value(MEMBER, key, (position, value), &full, called)
        });
    }

    /// Whether a value of `table` can be read. `shown` is what an error calls it, `called` what it is among the unread.
    fn keeps_value(
        &mut self,
        table: &str,
        key: &str,
        (position, value): (usize, &Spanned<DeValue<'_>>),
        shown: &str,
        called: impl Fn(&str) -> String,
    ) -> bool {
        let known = keys_of(table).find(|&(known, _)| known == key);
        let Some((_, kind)) = known else {
            let home = home_of(key);
            let words = keys_of(table).map(|(known, _)| known);
            let tables = TABLES.into_iter().filter(|_| table.is_empty());
            let meant = nearest(key, words.chain(tables)).filter(|_| home.is_none());
            self.note(position, shown, no_such_key(table, home, meant));
            // Whoever has written it elsewhere or under another name need not be told that it is missing.
            self.unread.extend(meant.map(called));
            self.unread.extend(home.map(|home| home.to_owned() + key));
            return false;
        };
        if kind.fits(value) {
            return true;
        }
        let written = self.text.get(value.span()).unwrap_or_default();
        self.note(position, shown, format!("is `{written}`, and must be {}", kind.must_be()));
        self.unread.insert(called(key));
        false
    }

    fn note(&mut self, position: usize, key: &str, problem: String) {
        self.mistakes.push(Mistake { position, key: Some(key.to_owned()), problem });
    }
}

/// Leaves those entries in a table that are kept.
fn sift<'i>(
    table: &mut DeTable<'i>,
    mut keeps: impl FnMut(&Spanned<DeString<'i>>, &mut Spanned<DeValue<'i>>) -> bool,
) {
    let entries = std::mem::take(table).into_iter();
    *table = entries
        .filter_map(|(key, mut value)| keeps(&key, &mut value).then_some((key, value)))
        .collect();
}

fn are_tables(members: &DeArray<'_>) -> bool {
    members.iter().all(|member| member.get_ref().is_table())
}

/// The keys of a table, or those of none.
fn keys_of(table: &str) -> impl Iterator<Item = (&'static str, Kind)> {
    KEYS.into_iter().filter_map(move |(key, kind)| {
        let (of, name) = key.split_once('.').unwrap_or(("", key));
        (of == table).then_some((name, kind))
    })
}

/// What stands before a key of this name: the first table that has one, or nothing if it belongs to none.
fn home_of(key: &str) -> Option<&'static str> {
    KEYS.into_iter().find_map(|(known, _)| {
        let home = known.strip_suffix(key)?;
        (home.is_empty() || home.ends_with('.')).then_some(home)
    })
}

fn no_such_key(table: &str, home: Option<&str>, meant: Option<&str>) -> String {
    let there_are = || keys_of(table).map(|(known, _)| known).collect::<Vec<_>>().join(", ");
    match (home, meant) {
        (Some(""), _) => "there is no such key here; it belongs above all tables".to_owned(),
        (Some("member."), _) => "there is no such key here; it belongs below [[member]]".to_owned(),
        (Some(home), _) => {
            format!("there is no such key here; it belongs below [{}]", home.trim_end_matches('.'))
        }
        (None, Some(meant)) => format!("there is no such key; did you mean `{meant}`?"),
        (None, None) => format!("there is no such key; there are {}", there_are()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a table of the format may contain, by what the reader says when it meets something else.
    fn known_to_the_reader(table: &str) -> BTreeSet<String> {
        let error = toml::from_str::<Written>(&format!("{table}nothing = 1")).unwrap_err();
        let expected = error.message().split_once("expected").unwrap().1;
        expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn the_keys_are_those_of_the_reader() {
        let mut top: BTreeSet<String> = keys_of("").map(|(key, _)| key.to_owned()).collect();
        top.extend(TABLES.map(str::to_owned));
        assert_eq!(top, known_to_the_reader(""));
        for table in TABLES {
            let keys: BTreeSet<String> = keys_of(table).map(|(key, _)| key.to_owned()).collect();
            let head = if table == MEMBER { "[[member]]\n" } else { &format!("[{table}]\n") };
            assert_eq!(keys, known_to_the_reader(head), "{table}");
        }
    }

    /// A value of every other kind is taken out, so the reader never meets one that it cannot read.
    #[test]
    fn whatever_is_left_can_be_read() {
        let values =
            ["1", "-1", "1.5", "true", "\"x\"", "[\"x\"]", "[1]", "{ x = 1 }", "[{ x = 1 }]"];
        let values = values.into_iter().chain(["1979-05-27", "4294967296", "inf"]);
        let names = KEYS.iter().map(|(key, _)| *key).chain(TABLES);
        for (name, value) in names.flat_map(|name| values.clone().map(move |value| (name, value))) {
            let text = match name.strip_prefix("member.") {
                Some(key) => format!("[[member]]\n{key} = {value}"),
                None => format!("{name} = {value}"),
            };
            assert!(read(&text).is_ok(), "{text}");
        }
    }

    #[test]
    fn every_syntax_error_is_told() {
        let mistakes = read("cluster = \nid = 1\nlisten \"x\"\n").unwrap_err();
        let lines: BTreeSet<usize> =
            mistakes.iter().map(|mistake| if mistake.position < 11 { 1 } else { 3 }).collect();
        assert_eq!(lines, [1, 3].into(), "{mistakes:?}");
    }
}
