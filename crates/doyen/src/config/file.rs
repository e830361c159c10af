//! `doyen.toml` as it is written: every value that may be set, where it stands, and nothing that follows from it.
//!
//! `examples/doyen.toml` explains each; a test sees to it that none is missing there.

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use toml::Spanned;

/// A value, if it is set, and where.
pub(super) type Given<T> = Option<Spanned<T>>;

/// A whole file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Written {
    pub(super) cluster: Given<String>,
    pub(super) id: Given<Who>,
    pub(super) listen: Given<String>,
    pub(super) http: Given<String>,
    pub(super) http_open: Given<bool>,
    pub(super) key_file: Given<String>,
    pub(super) state_dir: Given<String>,
    pub(super) algorithm: Given<String>,
    pub(super) grace: Given<String>,
    pub(super) trace: Given<String>,
    pub(super) timing: TimingTable,
    pub(super) preemption: PreemptionTable,
    pub(super) attribute: AttributeTable,
    pub(super) member: Vec<Spanned<MemberTable>>,
}

/// `[timing]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TimingTable {
    pub(super) profile: Given<String>,
    pub(super) transmission: Given<String>,
    pub(super) processing: Given<String>,
    pub(super) heartbeat: Given<String>,
    pub(super) promise: Given<String>,
    pub(super) drift: Given<f64>,
    pub(super) jitter: Given<String>,
    pub(super) stagger: Given<String>,
    pub(super) tenure: Given<String>,
    pub(super) forgiveness: Given<String>,
    pub(super) probe: Given<String>,
}

/// `[preemption]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PreemptionTable {
    pub(super) policy: Given<String>,
    pub(super) delay: Given<String>,
    pub(super) margin: Given<u64>,
}

/// `[attribute]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AttributeTable {
    pub(super) source: Given<String>,
    pub(super) command: Given<Vec<String>>,
    pub(super) every: Given<String>,
    pub(super) step: Given<u64>,
}

/// `[[member]]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct MemberTable {
    pub(super) id: Given<u32>,
    pub(super) name: Given<String>,
    pub(super) address: Given<String>,
    pub(super) priority: Given<i64>,
    pub(super) witness: Given<bool>,
}

/// A member, by its number or by its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Who {
    Number(u32),
    Name(String),
}

impl<'de> Deserialize<'de> for Who {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WhoVisitor)
    }
}

struct WhoVisitor;

impl Visitor<'_> for WhoVisitor {
    type Value = Who;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the number or the name of a member")
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Who, E> {
        let number = u32::try_from(number);
        number.map(Who::Number).map_err(|_| E::custom("a member's number is from 0 to 4294967295"))
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Who, E> {
        Ok(Who::Name(name.to_owned()))
    }
}
