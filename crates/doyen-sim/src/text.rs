//! Values that people write as text, such as `5ms`: read once, with the position of a mistake, and written the same way.

use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

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
pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: FromStr<Err = String>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_str(Text(PhantomData)).map(Some)
}

/// For `#[serde(with = "text::required")]`: the same for what is never left out.
pub(crate) mod required {
    use super::*;

    pub(crate) fn serialize<T: Display, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: FromStr<Err = String>,
        D: Deserializer<'de>,
    {
        deserializer.deserialize_str(Text(PhantomData))
    }
}

struct Text<T>(PhantomData<T>);

impl<T: FromStr<Err = String>> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text in quotation marks")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

/// A share of something, from 0 to 1: `5%` or `0.05`.
#[derive(Clone, Copy, PartialEq, Debug)]
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

    /// The fraction.
    pub fn fraction(self) -> f64 {
        self.0
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

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;

        impl Visitor<'_> for Written {
            type Value = Share;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a share such as \"5%\" or 0.05")
            }

            fn visit_f64<E: de::Error>(self, fraction: f64) -> Result<Share, E> {
                Share::new(fraction).map_err(E::custom)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Share, E> {
                self.visit_f64(number as f64)
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Share, E> {
                self.visit_f64(number as f64)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Share, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_any(Written)
    }
}
