//! The values of a swept key: one value, a list of them, or a range.

use serde::Deserialize;
use toml::Value;

/// More values than one key may run through.
const MAX_VALUES: usize = 10_000;

/// The values of a swept key, as they are written.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Axis {
    Many(Vec<Value>),
    One(Value),
}

/// A value as text, to show and to compare: without quotation marks.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl Axis {
    /// The values as written.
    pub(crate) fn values(&self) -> &[Value] {
        match self {
            Self::Many(values) => values,
            Self::One(value) => std::slice::from_ref(value),
        }
    }

    /// The values as text.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.values().iter().map(text).collect()
    }

    /// Each value once.
    pub(super) fn distinct(&self) -> Result<Vec<Value>, String> {
        let mut distinct: Vec<Value> = Vec::new();
        for value in self.values() {
            if !distinct.contains(value) {
                distinct.push(value.clone());
            }
        }
        check_count(distinct)
    }

    /// Each value once, of a key whose values are numbers: ranges are written out. A text that is one of `words`
    /// is a value itself.
    pub(crate) fn numbers(&self, words: &[&str]) -> Result<Vec<Value>, String> {
        let mut numbers: Vec<Value> = Vec::new();
        for value in self.values() {
            match value {
                Value::Integer(number) if *number < 0 => {
                    return Err(format!("{number} is below zero"));
                }
                Value::Integer(_) => numbers.push(value.clone()),
                Value::String(text) if words.contains(&text.as_str()) => {
                    numbers.push(value.clone());
                }
                Value::String(text) => {
                    numbers.extend(parse_range(text)?.into_iter().map(Value::Integer));
                }
                other => return Err(not_a_range(&other.to_string())),
            }
        }
        Self::Many(numbers).distinct()
    }
}

fn check_count(values: Vec<Value>) -> Result<Vec<Value>, String> {
    match values.len() {
        0 => Err("the list is empty; give at least one value".to_owned()),
        1..=MAX_VALUES => Ok(values),
        _ => Err(format!("more than {MAX_VALUES} values")),
    }
}

/// Reads `5`, `1..10` and `5..50 step 5`. Both ends are included; a step may skip the upper one.
fn parse_range(text: &str) -> Result<Vec<i64>, String> {
    let wrong = || not_a_range(text);
    let number = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
    let Some((first, rest)) = text.split_once("..") else {
        return Ok(vec![i64::from(number(text)?)]);
    };
    let (last, step) = rest.split_once("step").unwrap_or((rest, "1"));
    let (first, last, step) = (number(first)?, number(last)?, number(step)?);
    if first > last {
        return Err(format!("`{text}` runs backwards; write the smaller number first"));
    }
    if step == 0 {
        return Err(format!("`{text}`: the step must be at least 1"));
    }
    if (last - first) / step >= MAX_VALUES as u32 {
        return Err(format!("`{text}` has more than {MAX_VALUES} values; widen the step"));
    }
    Ok((first..=last).step_by(step as usize).map(i64::from).collect())
}

fn not_a_range(text: &str) -> String {
    format!("`{text}` is not a number or a range; write 100 or \"5..50 step 5\"")
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
    }

    #[test]
    fn what_is_not_a_range_is_refused_and_says_what_is() {
        for bad in
            ["", "x", "1..", "..5", "1..5 by 2", "1..5 step", "1..5 step 2 3", "-1..5", "1.5"]
        {
            assert!(parse_range(bad).unwrap_err().contains("5..50 step 5"), "{bad}");
        }
        for bad in ["9..1", "1..5 step 0", "1..100000"] {
            assert!(parse_range(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_number_named_twice_counts_once() {
        let text = |text: &str| Value::String(text.to_owned());
        let axis = Axis::Many(vec![Value::Integer(5), text("1..5 step 2")]);
        assert_eq!(axis.numbers(&[]), Ok([5, 1, 3].map(Value::Integer).to_vec()));
        let axis = Axis::One(text("all"));
        assert!(axis.numbers(&[]).is_err());
        assert_eq!(axis.numbers(&["all"]), Ok(vec![text("all")]));
    }
}
