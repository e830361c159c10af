//! What a setting can be, and how it is read from TOML, a flag or a variable.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use doyen_core::time::Span;
use toml::de::DeValue;

use super::schema::nearest;

/// The longest name of a cluster or a member, in bytes.
pub(crate) const LONGEST_NAME: usize = 64;

/// What a value is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Bool,
    Integer,
    /// A whole number of at least 0.
    Count,
    /// The id of a member.
    Id,
    /// At least 0 and below 1.
    Fraction,
    /// The name of a cluster or a member.
    Name,
    /// One of several words.
    Choice(fn() -> Vec<&'static str>),
    Duration,
    DurationOrOff,
    /// Of this machine: an IP address and a port.
    Address,
    AddressOrOff,
    /// Of any machine: an IP address or a host name, and a port.
    Host,
    /// Relative to the file that it stands in.
    Path,
    StringList,
    /// A member, by id or name.
    Member,
}

/// A value that was read.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Value {
    Bool(bool),
    Integer(i64),
    Thousandths(u32),
    Text(String),
    Duration(Span),
    Address(SocketAddr),
    Off,
    Path(PathBuf),
    StringList(Vec<String>),
}

impl Kind {
    /// Reads what a file says. `written` is how it is spelt there.
    pub(super) fn read(
        self,
        value: &DeValue<'_>,
        written: &str,
        base: &Path,
    ) -> Result<Value, String> {
        match value {
            DeValue::String(text) if self.is_quoted() => self.parse(text, base),
            DeValue::Integer(_) if matches!(self, Self::Member) => {
                self.parse(&literal(value), base)
            }
            DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) if !self.is_quoted() => {
                self.parse(&literal(value), base)
            }
            DeValue::Array(items) if matches!(self, Self::StringList) => {
                let words = items.iter().map(|item| item.get_ref().as_str().map(str::to_owned));
                let words: Option<Vec<String>> = words.collect();
                words.map(Value::StringList).ok_or_else(|| self.mismatch(written))
            }
            _ => Err(self.mismatch(written)),
        }
    }

    fn mismatch(self, written: &str) -> String {
        format!("expected {}, found `{written}`", self.expected(true))
    }

    /// Reads the text of a flag, a variable or a string in a file.
    pub(super) fn parse(self, text: &str, base: &Path) -> Result<Value, String> {
        let mismatch = || format!("expected {}, found `{text}`", self.expected(false));
        match self {
            Self::Bool => text.parse().map(Value::Bool).map_err(|_| mismatch()),
            Self::Integer => text.parse().map(Value::Integer).map_err(|_| mismatch()),
            Self::Count => {
                let number = text.parse().ok().filter(|number| *number >= 0);
                number.map(Value::Integer).ok_or_else(mismatch)
            }
            Self::Id => {
                let number = text.parse::<u32>().map_err(|_| mismatch())?;
                Ok(Value::Integer(number.into()))
            }
            Self::Fraction => {
                let share = text.parse().ok().filter(|share| (0.0..1.0).contains(share));
                // Upwards: a clock that is trusted less is safe.
                let thousandths = share.map(|share: f64| (share * 1000.0).ceil() as u32);
                thousandths.map(Value::Thousandths).ok_or_else(mismatch)
            }
            Self::Name => check_name(text).map(|()| Value::Text(text.to_owned())),
            Self::Choice(words) => choose(text, &words()),
            Self::DurationOrOff | Self::AddressOrOff if text == "off" => Ok(Value::Off),
            Self::Duration | Self::DurationOrOff => parse_duration(text).map(Value::Duration),
            Self::Address | Self::AddressOrOff => match text.parse::<SocketAddr>() {
                Ok(address) if address.port() != 0 => Ok(Value::Address(address)),
                _ => Err(mismatch()),
            },
            Self::Host => {
                let address = text.to_lowercase();
                check_address(&address).map(|()| Value::Text(address))
            }
            Self::Path if text.is_empty() => {
                Err("is empty; write a path, or leave it out".to_owned())
            }
            Self::Path => Ok(Value::Path(base.join(text))),
            Self::StringList => Err(mismatch()),
            Self::Member => match text.parse::<u32>() {
                Ok(id) => Ok(Value::Integer(id.into())),
                Err(_) if text.parse::<i64>().is_ok() => Err(mismatch()),
                Err(_) => Ok(Value::Text(text.to_owned())),
            },
        }
    }

    /// Whether a file has it in quotes.
    fn is_quoted(self) -> bool {
        !matches!(
            self,
            Self::Bool | Self::Integer | Self::Count | Self::Id | Self::Fraction | Self::StringList
        )
    }

    /// What must be written, in a file with its quotes.
    fn expected(self, in_file: bool) -> String {
        let what = match self {
            Self::Bool => "true or false",
            Self::Integer => "a whole number",
            Self::Count => "a whole number of at least 0",
            Self::Id => "a whole number from 0 to 4294967295",
            Self::Fraction => "a number of at least 0 and below 1, such as 0.1",
            Self::Address if !in_file => {
                "an IP address with a port, such as 0.0.0.0:7400 or [::]:7400"
            }
            Self::AddressOrOff if !in_file => {
                "an IP address with a port, such as 127.0.0.1:7400, or off"
            }
            Self::StringList => "a list of strings, such as [\"/usr/bin/score\", \"--brief\"]",
            Self::Member => "a member's id from 0 to 4294967295, or its name",
            _ => "a string",
        };
        match self {
            _ if !in_file => what.to_owned(),
            Self::StringList => what.to_owned(),
            _ if self.is_quoted() => format!("{what} in quotes"),
            _ => format!("{what}, without quotes"),
        }
    }
}

/// A number or a truth value as Rust writes it.
fn literal(value: &DeValue<'_>) -> String {
    match value {
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| number.to_string(), |number| number.to_string()),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(value) => value.to_string(),
        _ => String::new(),
    }
}

fn choose(word: &str, words: &[&'static str]) -> Result<Value, String> {
    if words.contains(&word) {
        return Ok(Value::Text(word.to_owned()));
    }
    Err(match nearest(word, words.iter().copied()) {
        Some(meant) => format!("`{word}` is unknown; did you mean `{meant}`?"),
        None => format!("`{word}` is unknown; use one of {}", words.join(", ")),
    })
}

/// Reads `1.5ms`, `20us` and `3s`, and what is longer as commands read it: `5m`, `1h 30m`.
fn parse_duration(text: &str) -> Result<Span, String> {
    text.parse::<Span>().or_else(|problem| {
        let long = humantime::parse_duration(text).map_err(|_| problem)?;
        let nanos = u64::try_from(long.as_nanos()).ok().filter(|&nanos| nanos <= u64::MAX / 4);
        nanos.map(Span::from_nanos).ok_or_else(|| format!("`{text}` is too long"))
    })
}

/// Whether `name` will do for a cluster or a member: it appears in paths, logs and metrics.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() {
        return Err("is empty; write a name such as orders".to_owned());
    }
    if name.len() > LONGEST_NAME {
        return Err(format!("`{name}` is too long; use at most {LONGEST_NAME} letters"));
    }
    if let Some(odd) = name.chars().find(|&c| !is_fine(c)) {
        return Err(format!("`{name}` contains `{odd}`; use letters, digits, `-`, `_` and `.`"));
    }
    if name.starts_with(['.', '-']) {
        return Err(format!("`{name}` begins with a sign; begin with a letter or a digit"));
    }
    Ok(())
}

/// Whether datagrams can be sent there: an IP address or a host name, and a port.
pub(crate) fn check_address(text: &str) -> Result<(), String> {
    let wrong = || {
        format!(
            "`{text}` is not an address; write for example 10.0.0.1:7400, [fd00::1]:7400 or n1.example:7400"
        )
    };
    if let Ok(address) = text.parse::<SocketAddr>() {
        if address.ip().is_unspecified() {
            return Err(format!("cannot send to {text}; write the address where others reach it"));
        }
        return if address.port() == 0 { Err(wrong()) } else { Ok(()) };
    }
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let is_label = |label: &str| {
        let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        !label.is_empty() && label.len() <= 63 && label.bytes().all(is_fine)
    };
    // Four numbers that are no IP address were meant to be one.
    let is_number = host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let is_host = host.len() <= 253 && host.split('.').all(is_label) && !is_number;
    let is_port = port.parse::<u16>().is_ok_and(|port| port != 0);
    if is_host && is_port { Ok(()) } else { Err(wrong()) }
}

/// In TOML.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |text: String| toml::Value::from(text);
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Integer(number) => number.fmt(f),
            Self::Thousandths(number) => (f64::from(*number) / 1000.0).fmt(f),
            Self::Text(text) => quoted(text.clone()).fmt(f),
            Self::Duration(span) => quoted(span.to_string()).fmt(f),
            Self::Address(address) => quoted(address.to_string()).fmt(f),
            Self::Off => f.write_str("\"off\""),
            Self::Path(path) => quoted(path.display().to_string()).fmt(f),
            Self::StringList(words) => toml::Value::from(words.clone()).fmt(f),
        }
    }
}

/// Each of these is called for a key whose kind yields that variant.
impl Value {
    pub(super) fn bool(&self) -> bool {
        let Self::Bool(value) = self else { panic!("{self} is not a truth value") };
        *value
    }

    pub(super) fn integer(&self) -> i64 {
        let Self::Integer(number) = self else { panic!("{self} is not a whole number") };
        *number
    }

    pub(super) fn thousandths(&self) -> u32 {
        let Self::Thousandths(number) = self else { panic!("{self} is not a fraction") };
        *number
    }

    pub(super) fn text(&self) -> &str {
        let Self::Text(text) = self else { panic!("{self} is not a text") };
        text
    }

    pub(super) fn duration(&self) -> Span {
        let Self::Duration(span) = self else { panic!("{self} is not a length of time") };
        *span
    }

    /// `None` if it is off.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        let Self::Address(address) = self else { return None };
        Some(*address)
    }

    pub(super) fn path(self) -> PathBuf {
        let Self::Path(path) = self else { panic!("{self} is not a path") };
        path
    }

    pub(super) fn words(self) -> Vec<String> {
        let Self::StringList(words) = self else { panic!("{self} is not a list") };
        words
    }
}
