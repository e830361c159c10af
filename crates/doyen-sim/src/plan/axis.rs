//! What a key of a sweep runs through: one value, a list of them, or a range.

use std::fmt;

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// More values than one key may run through.
const MAX_VALUES: usize = 10_000;

/// The values of a swept key, as they are written.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Axis(Vec<Setting>);

/// One value of a swept key.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Setting {
    /// `true`.
    Flag(bool),
    /// `100`.
    Number(u64),
    /// `0.05`.
    Fraction(f64),
    /// `"exp:1ms"`.
    Text(String),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Fraction(fraction) => write!(f, "{fraction}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl Axis {
    /// The values as they stand.
    pub fn settings(&self) -> &[Setting] {
        &self.0
    }

    /// The values of a key whose values are numbers: ranges are written out, doubles are left out. A text that is one
    /// of `words` stands for itself.
    pub fn numbers(&self, words: &[&str]) -> Result<Vec<Setting>, String> {
        let mut numbers: Vec<Setting> = Vec::new();
        let mut add = |setting: Setting| {
            if numbers.contains(&setting) {
                return Ok(());
            }
            numbers.push(setting);
            match numbers.len() {
                0..=MAX_VALUES => Ok(()),
                _ => Err(format!("more than {MAX_VALUES} values; widen the step")),
            }
        };
        for setting in &self.0 {
            match setting {
                Setting::Number(_) => add(setting.clone())?,
                Setting::Text(text) if words.contains(&text.as_str()) => add(setting.clone())?,
                Setting::Text(text) => {
                    for number in parse_range(text)? {
                        add(Setting::Number(number))?;
                    }
                }
                Setting::Flag(_) | Setting::Fraction(_) => {
                    return Err(not_a_range(&setting.to_string()));
                }
            }
        }
        Ok(numbers)
    }
}

/// Reads `5`, `1..10`, `5..50 step 5` and `10..1000 log 8`. Both ends count; a step may leave out the upper one.
fn parse_range(text: &str) -> Result<Vec<u64>, String> {
    let wrong = || not_a_range(text);
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
    let Some((first, rest)) = text.split_once("..") else {
        return Ok(vec![number(text)?]);
    };
    let mut words = rest.split_whitespace();
    let (first, last) = (number(first)?, number(words.next().ok_or_else(wrong)?)?);
    if first > last {
        return Err(format!("`{text}` runs backwards; write the smaller number first"));
    }
    match (words.next(), words.next(), words.next()) {
        (None, ..) => stepped(text, first, last, 1),
        (Some("step"), Some(step), None) => stepped(text, first, last, number(step)?),
        (Some("log"), Some(count), None) => geometric(text, first, last, number(count)?),
        _ => Err(wrong()),
    }
}

fn stepped(text: &str, first: u64, last: u64, step: u64) -> Result<Vec<u64>, String> {
    if step == 0 {
        return Err(format!("`{text}` stands still; the step must be at least 1"));
    }
    if (last - first) / step >= MAX_VALUES as u64 {
        return Err(format!("`{text}` has more than {MAX_VALUES} values; widen the step"));
    }
    Ok((0..=(last - first) / step).map(|index| first + index * step).collect())
}

/// `count` numbers from `first` to `last`, each the same factor above the one before, as far as whole numbers can be.
fn geometric(text: &str, first: u64, last: u64, count: u64) -> Result<Vec<u64>, String> {
    if first == 0 {
        return Err(format!("`{text}`: a range with log cannot begin at 0; begin at 1"));
    }
    if !(2..=MAX_VALUES as u64).contains(&count) {
        return Err(format!("`{text}`: write how many values after log, from 2 to {MAX_VALUES}"));
    }
    let growth = libm::log(last as f64 / first as f64) / (count - 1) as f64;
    let inner = (1..count - 1).map(|index| {
        let value = first as f64 * libm::exp(growth * index as f64);
        (value.round() as u64).clamp(first, last)
    });
    Ok(std::iter::once(first).chain(inner).chain([last]).collect())
}

fn not_a_range(text: &str) -> String {
    format!(
        "`{text}` is not a number or a range; write 100, \"5..50 step 5\" or \"10..1000 log 8\""
    )
}

impl<'de> Deserialize<'de> for Axis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AxisVisitor)
    }
}

impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SettingVisitor)
    }
}

struct AxisVisitor;

impl<'de> Visitor<'de> for AxisVisitor {
    type Value = Axis;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, a range such as \"10..1000 log 8\" or a list of them")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Axis, A::Error> {
        let mut settings = Vec::new();
        while let Some(setting) = list.next_element()? {
            if settings.len() == MAX_VALUES {
                return Err(de::Error::custom(format!("more than {MAX_VALUES} values")));
            }
            settings.push(setting);
        }
        if settings.is_empty() {
            return Err(de::Error::custom("the list is empty; give at least one value"));
        }
        Ok(Axis(settings))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Axis, E> {
        SettingVisitor.visit_bool(value).map(one)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Axis, E> {
        SettingVisitor.visit_i64(value).map(one)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Axis, E> {
        SettingVisitor.visit_f64(value).map(one)
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Axis, E> {
        SettingVisitor.visit_str(value).map(one)
    }
}

fn one(setting: Setting) -> Axis {
    Axis(vec![setting])
}

struct SettingVisitor;

impl Visitor<'_> for SettingVisitor {
    type Value = Setting;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or a range such as \"10..1000 log 8\"")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Setting, E> {
        Ok(Setting::Flag(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Setting, E> {
        let number = u64::try_from(value);
        number.map(Setting::Number).map_err(|_| de::Error::custom(format!("{value} is below zero")))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Setting, E> {
        Ok(Setting::Number(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Setting, E> {
        Ok(Setting::Fraction(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Setting, E> {
        Ok(Setting::Text(value.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_count_both_ends() {
        assert_eq!(parse_range("7"), Ok(vec![7]));
        assert_eq!(parse_range("3..6"), Ok(vec![3, 4, 5, 6]));
        assert_eq!(parse_range("5..50 step 15"), Ok(vec![5, 20, 35, 50]));
        assert_eq!(parse_range("1..10 step 4"), Ok(vec![1, 5, 9]));
        assert_eq!(parse_range("10..1000 log 5"), Ok(vec![10, 32, 100, 316, 1000]));
        assert_eq!(parse_range("4..4 log 2"), Ok(vec![4, 4]));
    }

    #[test]
    fn what_is_not_a_range_is_refused_and_says_what_is() {
        for bad in
            ["", "x", "1..", "..5", "1..5 by 2", "1..5 step", "1..5 step 2 3", "-1..5", "1.5"]
        {
            assert!(parse_range(bad).unwrap_err().contains("10..1000 log 8"), "{bad}");
        }
        for bad in
            ["9..1", "1..5 step 0", "0..5 log 3", "1..5 log 1", "1..100000", "1..9 log 99999"]
        {
            assert!(parse_range(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_number_named_twice_counts_once() {
        let axis = Axis(vec![Setting::Number(5), Setting::Text("1..5 step 2".to_owned())]);
        let numbers = [5, 1, 3].map(Setting::Number).to_vec();
        assert_eq!(axis.numbers(&[]), Ok(numbers));
        let axis = Axis(vec![Setting::Text("all".to_owned())]);
        assert!(axis.numbers(&[]).is_err());
        assert_eq!(axis.numbers(&["all"]), Ok(vec![Setting::Text("all".to_owned())]));
    }
}
