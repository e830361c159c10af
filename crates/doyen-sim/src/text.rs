//! Values that people write as text, such as `5ms`: read once, with the position of a mistake, and written the same way.

use std::fmt::Display;
use std::str::FromStr;

use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize, Serializer};
use toml::Value;

/// For `#[serde(with = "text")]`.
pub(crate) fn serialize<T: Display, S: Serializer>(
    value: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}

/// For `#[serde(with = "text")]`.
pub(crate) fn deserialize<'de, T: FromStr<Err = String>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    required::deserialize(deserializer).map(Some)
}

/// For `#[serde(with = "text::required")]`: the same for a key that is never left out.
pub(crate) mod required {
    use super::*;

    pub(crate) fn serialize<T: Display, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(crate) fn deserialize<'de, T: FromStr<Err = String>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// For `#[serde(with = "text::list")]`: the same for a list.
pub(crate) mod list {
    use super::*;

    pub(crate) fn serialize<T: Display, S: Serializer>(
        values: &[T],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(T::to_string))
    }

    pub(crate) fn deserialize<'de, T: FromStr<Err = String>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<T>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
    }
}

/// A share of something, from 0 to 1: `5%` or `0.05`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "f64")]
pub struct Share(f64);

impl Share {
    /// This fraction, which is from 0 to 1.
    pub fn new(fraction: f64) -> Result<Self, String> {
        if (0.0..=1.0).contains(&fraction) {
            Ok(Self(fraction))
        } else {
            Err(not_a_share(fraction))
        }
    }
}

fn not_a_share(text: impl Display) -> String {
    format!("`{text}` is not a share from 0% to 100%; write 5% or 0.05")
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, scale) = match text.trim().strip_suffix('%') {
            Some(number) => (number, 0.01),
            None => (text, 1.0),
        };
        let fraction = number.trim().parse::<f64>().map(|number| number * scale);
        fraction.ok().and_then(|it| Self::new(it).ok()).ok_or_else(|| not_a_share(text))
    }
}

impl From<Share> for f64 {
    fn from(share: Share) -> Self {
        share.0
    }
}

impl TryFrom<Value> for Share {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        match value {
            Value::Float(fraction) => Self::new(fraction),
            Value::Integer(number) => Self::new(number as f64),
            Value::String(text) => text.parse(),
            other => Err(not_a_share(other)),
        }
    }
}
