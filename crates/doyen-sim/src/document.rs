//! Files that people write in TOML, scenarios and plans: all mistakes at once, in the order of the file.
//!
//! A deserializer stops at the first mistake. So what is wrong is left out, and the rest is read again, until nothing more is
//! wrong with it.

use std::mem;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue, Deserializer, Error};

/// More mistakes than this at once help nobody.
const MOST: usize = 20;

/// Reads a document called `name`. The error has a line for each mistake.
pub fn read<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, String> {
    read_by(name, text, |table| T::deserialize(Deserializer::from(table)))
}

/// Reads a document of which `part` reads what is at `key`, if that is there. So the part that several kinds of documents
/// share, a scenario, is read by one function, which is compiled once.
pub fn read_beside<T: DeserializeOwned, P>(
    name: &str,
    text: &str,
    key: &str,
    part: fn(Spanned<DeValue<'_>>) -> Result<P, Error>,
) -> Result<(T, Option<P>), String> {
    read_by(name, text, |mut table| {
        let part = table.get_mut().remove(key).map(part).transpose()?;
        Ok((T::deserialize(Deserializer::from(table))?, part))
    })
}

/// Reads a document by `read` until nothing is wrong with what is left of it.
fn read_by<T>(
    name: &str,
    text: &str,
    read: impl Fn(Spanned<DeTable<'_>>) -> Result<T, Error>,
) -> Result<T, String> {
    // What is no TOML at all cannot be read on.
    let mut rest = DeTable::parse(text).map_err(|error| mistake(name, text, &error))?;
    let mut mistakes: Vec<(usize, String)> = Vec::new();
    loop {
        let error = match read(rest.clone()) {
            Ok(value) if mistakes.is_empty() => return Ok(value),
            Ok(_) => break,
            Err(error) => error,
        };
        let start = error.span().map_or(0, |span| span.start);
        mistakes.push((start, mistake(name, text, &error)));
        if !leave_out(rest.get_mut(), start) || mistakes.len() == MOST {
            break;
        }
    }
    mistakes.sort();
    let lines: Vec<String> = mistakes.into_iter().map(|(_, mistake)| mistake).collect();
    Err(match lines.as_slice() {
        [line] => line.clone(),
        lines => format!("{} mistakes:\n  {}", lines.len(), lines.join("\n  ")),
    })
}

/// Removes what is at this place of the text: the entry whose key is there, else the innermost one whose value is. Of a list of
/// tables a whole item goes: the rest of it may make no sense by itself.
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
                let is_wrong = match item.get_mut() {
                    DeValue::Table(inner) => leave_out(inner, place),
                    _ => false,
                };
                (!is_wrong).then_some(item)
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
    let before = error.span().map_or("", |span| &text[..span.start.min(text.len())]);
    let line = before.matches('\n').count() + 1;
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

/// What to do about a word that is none of these: which one was probably meant, or all of them.
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
    fn one_mistake_is_one_line() {
        assert_eq!(
            mistakes("members = 5\nlos = 0.1"),
            ["s.toml:2: los: there is no such key; did you mean `loss`?"]
        );
        let [syntax] = &mistakes("members = 5\nloss 0.1\nlos = 1")[..] else { panic!("one line") };
        assert!(syntax.starts_with("s.toml:2: "), "{syntax}");
    }
}
