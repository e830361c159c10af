//! Files that people write in TOML, scenarios and plans: all mistakes at once, in the order of the file.
//!
//! A deserializer stops at the first mistake, and so does the code that resolves a scenario. So the wrong part is removed
//! and the rest is read again, until nothing is wrong with it.

use std::mem;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue, Deserializer, Error};

use crate::scenario::ScenarioError;

/// At most this many mistakes are reported at once.
const MOST: usize = 20;

/// What is wrong with a document, as far as one reading tells.
enum Wrong {
    /// A key or a type.
    Form(Error),
    /// The value of a key makes no sense. Other mistakes show when the key is removed.
    Meaning(ScenarioError),
    /// The same of all keys.
    Meanings(Vec<ScenarioError>),
}

/// Reads a document called `name`. The error has a line for each mistake.
pub fn read<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, String> {
    read_by(name, text, |table| T::deserialize(Deserializer::from(table)).map_err(Wrong::Form))
}

/// The same, for a document that `check` rejects if it makes no sense.
pub fn read_checked<T: DeserializeOwned, C>(
    name: &str,
    text: &str,
    check: impl Fn(T) -> Result<C, ScenarioError>,
) -> Result<C, String> {
    read_by(name, text, |table| {
        let written = T::deserialize(Deserializer::from(table)).map_err(Wrong::Form)?;
        check(written).map_err(Wrong::Meaning)
    })
}

/// Reads a document. `part` reads what is at `key`, if the key is present, and `check` rejects the document with a list of
/// all that makes no sense in it. So one function, which is compiled once, reads the part that several kinds of documents
/// share: a scenario.
pub fn read_beside<T: DeserializeOwned, P, C>(
    name: &str,
    text: &str,
    key: &str,
    part: fn(Spanned<DeValue<'_>>) -> Result<P, Error>,
    check: impl Fn(T, Option<P>) -> Result<C, Vec<ScenarioError>>,
) -> Result<C, String> {
    read_by(name, text, |mut table| {
        let part = table.get_mut().remove(key).map(part).transpose().map_err(Wrong::Form)?;
        let rest = T::deserialize(Deserializer::from(table)).map_err(Wrong::Form)?;
        check(rest, part).map_err(Wrong::Meanings)
    })
}

/// Reads a document with `read`, removing what is wrong, until nothing is wrong with the rest.
fn read_by<C>(
    name: &str,
    text: &str,
    read: impl Fn(Spanned<DeTable<'_>>) -> Result<C, Wrong>,
) -> Result<C, String> {
    // A text that is not TOML cannot be read any further.
    let whole = DeTable::parse(text).map_err(|error| mistake(name, text, &error))?;
    let mut rest = whole.clone();
    let mut mistakes: Vec<(usize, String)> = Vec::new();
    while mistakes.len() < MOST {
        let wrong = match read(rest.clone()) {
            Ok(value) if mistakes.is_empty() => return Ok(value),
            Ok(_) => break,
            Err(wrong) => wrong,
        };
        let is_first = mistakes.is_empty();
        let mut add = |error: ScenarioError| {
            let (key, place) = find(whole.get_ref(), rest.get_ref(), &error.key);
            // What is missing may be what was removed.
            if is_first || !error.is_missing() {
                let error = ScenarioError { key, ..error };
                mistakes.push((place.unwrap_or_default(), at_place(name, text, place, &error)));
            }
            place
        };
        let place = match wrong {
            Wrong::Form(error) => {
                let start = error.span().map_or(0, |span| span.start);
                mistakes.push((start, mistake(name, text, &error)));
                Some(start)
            }
            Wrong::Meaning(error) => add(error),
            Wrong::Meanings(errors) => {
                for error in errors {
                    add(error);
                }
                None
            }
        };
        if !place.is_some_and(|place| leave_out(rest.get_mut(), place)) {
            break;
        }
    }
    mistakes.sort();
    mistakes.truncate(MOST);
    let lines: Vec<String> = mistakes.into_iter().map(|(_, mistake)| mistake).collect();
    Err(match lines.as_slice() {
        [line] => line.clone(),
        lines => format!("{} mistakes:\n  {}", lines.len(), lines.join("\n  ")),
    })
}

/// `file:line: message`, with the line if the key is in the text.
pub(crate) fn located(name: &str, text: &str, error: &ScenarioError) -> String {
    let table = DeTable::parse(text).ok();
    let place = table.and_then(|table| find(table.get_ref(), table.get_ref(), &error.key).1);
    at_place(name, text, place, error)
}

fn at_place(name: &str, text: &str, place: Option<usize>, error: &ScenarioError) -> String {
    match place {
        Some(place) => format!("{name}:{}: {error}", line(text, place)),
        None => format!("{name}: {error}"),
    }
}

/// The line of this place of the text, from 1.
pub fn line(text: &str, place: usize) -> usize {
    text.as_bytes()[..place.min(text.len())].iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// Where in `rest` a key such as `fault[1].crash` is set, or else the table in which it could be; and its name in the
/// `whole` document, from which some items may have been removed.
fn find(whole: &DeTable<'_>, rest: &DeTable<'_>, key: &str) -> (String, Option<usize>) {
    let (part, tail) = key.split_once('.').map_or((key, None), |(part, tail)| (part, Some(tail)));
    let (name, index) = match part.split_once('[') {
        Some((name, index)) => (name, index.trim_end_matches(']').parse::<usize>().ok()),
        None => (part, None),
    };
    let (Some((start, value)), Some(original)) = (rest.get_key_value(name), whole.get(name)) else {
        return (key.to_owned(), None);
    };
    let (mut part, mut place) = (part.to_owned(), start.span().start);
    let mut inner = (original.get_ref(), value.get_ref());
    if let (Some(index), DeValue::Array(originals), DeValue::Array(items)) =
        (index, inner.0, inner.1)
        && let Some(item) = items.get(index)
        && let Some(number) = originals.iter().position(|it| it.span() == item.span())
    {
        part = format!("{name}[{number}]");
        place = item.span().start;
        inner = (originals[number].get_ref(), item.get_ref());
    }
    match (tail, inner) {
        (Some(tail), (DeValue::Table(whole), DeValue::Table(rest))) => {
            let (tail, found) = find(whole, rest, tail);
            (format!("{part}.{tail}"), found.or(Some(place)))
        }
        (Some(tail), _) => (format!("{part}.{tail}"), Some(place)),
        (None, _) => (part, Some(place)),
    }
}

/// Removes what is at this place of the text: the entry whose key is there, else the innermost one whose value is. In a list
/// of tables the whole item is removed, because the rest of it may make no sense by itself.
fn leave_out<'i>(table: &mut DeTable<'i>, place: usize) -> bool {
    let named = table.keys().find(|key| key.span().contains(&place)).cloned();
    if let Some(key) = named {
        return table.remove(&key).is_some();
    }
    let is_inside = table.iter_mut().any(|(_, value)| match value.get_mut() {
        DeValue::Table(inner) => leave_out(inner, place),
        DeValue::Array(list) => {
            let before = list.len();
            let keep = |mut item: Spanned<DeValue<'i>>| {
                let is_inside = match item.get_mut() {
                    DeValue::Table(inner) => leave_out(inner, place),
                    _ => false,
                };
                (!is_inside && !item.span().contains(&place)).then_some(item)
            };
            *list = mem::replace(list, DeArray::new()).into_iter().filter_map(keep).collect();
            list.len() < before
        }
        _ => false,
    });
    let around = table.iter().find(|(_, value)| value.span().contains(&place));
    match around.map(|(key, _)| key.clone()).filter(|_| !is_inside) {
        Some(key) => table.remove(&key).is_some(),
        None => is_inside,
    }
}

/// `file:line: message`, on one line.
pub fn mistake(name: &str, text: &str, error: &Error) -> String {
    let line = line(text, error.span().map_or(0, |span| span.start));
    if let Some(message) = unknown_key(error.message()) {
        return format!("{name}:{line}: {message}");
    }
    let message = error.message().replace('\n', " ");
    match text.lines().nth(line - 1).map(str::trim).filter(|source| !source.is_empty()) {
        Some(source) if error.span().is_some() => {
            format!("{name}:{line}: {message}, in `{source}`")
        }
        _ => format!("{name}:{line}: {message}"),
    }
}

/// serde's "unknown field `los`, expected one of `loss`, …" in the words of the other messages.
fn unknown_key(message: &str) -> Option<String> {
    let mut quoted = message.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2);
    let key = quoted.next()?;
    let known: Vec<&str> = quoted.collect();
    Some(format!("{key}: there is no such key; {}", suggestion(key, &known)))
}

/// What to do about a word that is none of these: the one that was probably meant, or all of them.
pub fn suggestion(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("use one of {}", known.join(", ")),
    }
}

/// The word nearest to `word`, if it is near enough to be meant.
fn nearest<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A third of the letters may be wrong, and one in a short word.
    let bound = (word.chars().count() / 3).max(1);
    let distances = words.into_iter().map(|known| (strsim::osa_distance(word, known), known));
    distances.filter(|&(distance, _)| distance <= bound).min().map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    fn mistakes(text: &str) -> Vec<String> {
        let told = read::<Scenario>("s.toml", text).expect_err("it is wrong");
        told.lines().map(|line| line.trim().to_owned()).collect()
    }

    #[test]
    fn all_mistakes_are_told_in_the_order_of_the_file() {
        let text = "algoritm = \"bully\"\nmembers = 5\ndelay = \"soon\"\nloss = 0.1\nvelocity = 3\n\
                    [[fault]]\nat = \"5ms\"\ncrash = 5\n[[fault]]\nat = \"9ms\"\nrestrat = 5\n\
                    [expect]\nmesages = 4\n";
        assert_eq!(
            mistakes(text).iter().map(|line| line.split(", ").next().unwrap()).collect::<Vec<_>>(),
            [
                "5 mistakes:",
                "s.toml:1: algoritm: there is no such key; did you mean `algorithm`?",
                "s.toml:3: `soon` is not a length of time; write for example 1ms",
                "s.toml:5: velocity: there is no such key; use one of title",
                "s.toml:11: restrat: there is no such key; did you mean `restart`?",
                "s.toml:13: mesages: there is no such key; did you mean `messages`?",
            ]
        );
    }

    #[test]
    fn mistakes_of_meaning_are_told_beside_those_of_form() {
        let text = "algorithm = \"bully\"\nmembers = 5\ninitiators = [9, 1,\n  { member = 8, at = \"1ms\" }]\n\
                    dely = \"2ms\"\norder = [\"OKAY\"]\n\
                    [[fault]]\nat = \"1ms\"\ncrahs = 5\n[[fault]]\nat = \"2ms\"\ncrash = 12\n\
                    [[fault]]\nat = \"3ms\"\nrestart = 13\n[chaos]\nutil = \"1s\"\n\
                    [expect]\nleader = 77\nby_kind = { OKAY = 3 }\nleaderless = [1, 6, 7]\n";
        let told = Scenario::read("s.toml", text).expect_err("it is wrong");
        let told: Vec<&str> =
            told.lines().map(|line| line.split(';').next().unwrap().trim()).collect();
        assert_eq!(
            told,
            [
                "12 mistakes:",
                "s.toml:3: initiators: 9 is not a member",
                "s.toml:4: initiators: 8 is not a member",
                "s.toml:5: dely: there is no such key",
                "s.toml:6: order: there are no OKAY messages",
                "s.toml:9: crahs: there is no such key",
                "s.toml:12: fault 2, crash: 12 is not a member",
                "s.toml:15: fault 3, restart: 13 is not a member",
                "s.toml:17: util: there is no such key",
                "s.toml:19: expect.leader: 77 is not a member",
                "s.toml:20: expect.by_kind.OKAY: there are no OKAY messages",
                "s.toml:21: expect.leaderless: 6 is not a member",
                "s.toml:21: expect.leaderless: 7 is not a member",
            ]
        );
    }

    #[test]
    fn what_is_missing_is_told_if_it_cannot_have_been_left_out() {
        let told = |text: &str| Scenario::read("s.toml", text).unwrap_err();
        assert!(told("algorithm = \"bully\"").starts_with("s.toml: members: is missing"));
        let misspelt = told("algorithm = \"bully\"\nmembrs = 5");
        assert_eq!(misspelt, "s.toml:2: membrs: there is no such key; did you mean `members`?");
        let fault = "algorithm = \"bully\"\nmembers = 3\n[chaos]\ncrash_every = \"1ms\"";
        assert!(told(fault).starts_with("s.toml:3: chaos.until: is missing"), "{}", told(fault));
    }

    #[test]
    fn one_mistake_is_one_line() {
        assert_eq!(
            mistakes("members = 5\nlos = 0.1"),
            ["s.toml:2: los: there is no such key; did you mean `loss`?"]
        );
        let [syntax] = &mistakes("members = 5\nloss 0.1\nlos = 1")[..] else { panic!("one line") };
        assert!(syntax.starts_with("s.toml:2: "), "{syntax}");
    }
}
