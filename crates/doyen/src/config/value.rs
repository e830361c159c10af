//! The kinds of settings: how a value is read from TOML, a flag or a variable, and printed. A value that was read is kept
//! as text in a canonical form, which later parsing cannot reject.

use std::net::SocketAddr;
use std::path::Path;

use doyen_core::registry::Algorithm;
use toml::de::DeValue;

use super::schema::nearest;
use crate::clock::parse_span;

/// The longest name of a cluster or a member, in bytes.
pub(crate) const LONGEST_NAME: usize = 64;

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Bool,
    Integer,
    /// A whole number of at least 0.
    Count,
    /// A whole number of at least 1.
    Positive,
    /// The id of a member.
    Id,
    /// At least 0 and below 1, in thousandths.
    Fraction,
    /// The name of a cluster or a member.
    Name,
    /// One of several words.
    Choice(fn() -> Vec<&'static str>),
    /// An algorithm that a node can run.
    Algorithm,
    Duration,
    DurationOrOff,
    /// Of this machine: an IP address and a port.
    Address,
    AddressOrOff,
    /// Of any machine: an IP address or a host name, and a port.
    Host,
    /// What is logged: levels, of all or of modules.
    Filter,
    /// Relative to the file that sets it.
    Path,
    StringList,
    /// A member, by id or name.
    Member,
}

impl Kind {
    /// Reads a value of a file; `written` is its spelling there.
    pub(super) fn read(
        self,
        value: &DeValue<'_>,
        written: &str,
        base: &Path,
    ) -> Result<String, String> {
        let text = match value {
            DeValue::String(text) if self.is_quoted() => Some(text.to_string()),
            DeValue::Integer(number) if !self.is_quoted() || matches!(self, Self::Member) => {
                let decimal = i64::from_str_radix(number.as_str(), number.radix());
                Some(decimal.map_or_else(|_| number.to_string(), |number| number.to_string()))
            }
            DeValue::Float(number) if !self.is_quoted() => Some(number.as_str().to_owned()),
            DeValue::Boolean(value) if !self.is_quoted() => Some(value.to_string()),
            DeValue::Array(items) if matches!(self, Self::StringList) => {
                let words = items.iter().map(|item| item.get_ref().as_str().map(str::to_owned));
                let words: Option<Vec<String>> = words.collect();
                return words
                    .map(|words| toml::Value::from(words).to_string())
                    .ok_or_else(|| self.mismatch(written, true));
            }
            _ => None,
        };
        self.parse(&text.ok_or_else(|| self.mismatch(written, true))?, base)
    }

    /// Reads the text of a flag, a variable or a string in a file.
    pub(super) fn parse(self, text: &str, base: &Path) -> Result<String, String> {
        let is_valid = match self {
            Self::Bool => text.parse::<bool>().is_ok(),
            Self::Integer => text.parse::<i64>().is_ok(),
            Self::Count => text.parse::<i64>().is_ok_and(|number| number >= 0),
            Self::Positive => text.parse::<u32>().is_ok_and(|number| number > 0),
            Self::Id => text.parse::<u32>().is_ok(),
            // A name may be anything but a number.
            Self::Member => text.parse::<u32>().is_ok() || text.parse::<i64>().is_err(),
            Self::DurationOrOff | Self::AddressOrOff if text == "off" => true,
            Self::Address | Self::AddressOrOff => {
                text.parse::<SocketAddr>().is_ok_and(|address| address.port() != 0)
            }
            Self::Fraction => {
                let share = text.parse().ok().filter(|share| (0.0..1.0).contains(share));
                // Rounded up: to trust a clock less is safe.
                let thousandths = share.map(|share: f64| (share * 1000.0).ceil() / 1000.0);
                let share = thousandths.map(|share| share.to_string());
                return share.ok_or_else(|| self.mismatch(text, false));
            }
            Self::Name => return check_name(text).map(|()| text.to_owned()),
            Self::Filter => return check_filter(text).map(|()| text.to_owned()),
            Self::Choice(words) => return choose(text, &words()),
            Self::Algorithm => {
                return match text.parse::<Algorithm>() {
                    Ok(known) => known.suits_node().map(|()| text.to_owned()),
                    Err(_) => choose(text, &Algorithm::ELECTIONS.map(Algorithm::name)),
                };
            }
            Self::Duration | Self::DurationOrOff => {
                return parse_span(text).map(|span| span.to_string());
            }
            Self::Host => {
                let address = text.to_lowercase();
                return check_address(&address).map(|()| address);
            }
            Self::Path if text.is_empty() => {
                return Err("is empty; write a path, or leave it out".to_owned());
            }
            Self::Path => return Ok(base.join(text).display().to_string()),
            Self::StringList => false,
        };
        if is_valid { Ok(text.to_owned()) } else { Err(self.mismatch(text, false)) }
    }

    /// The text of a value in TOML.
    pub(super) fn to_toml(self, text: &str) -> String {
        let is_id = matches!(self, Self::Member) && text.parse::<u32>().is_ok();
        match self.is_quoted() && !is_id {
            true => toml::Value::from(text).to_string(),
            false => text.to_owned(),
        }
    }

    fn is_quoted(self) -> bool {
        !matches!(
            self,
            Self::Bool
                | Self::Integer
                | Self::Count
                | Self::Positive
                | Self::Id
                | Self::Fraction
                | Self::StringList
        )
    }

    fn mismatch(self, found: &str, in_file: bool) -> String {
        if matches!(self, Self::Duration | Self::DurationOrOff) && in_file {
            let seconds = if found.parse::<u64>().is_ok() { found } else { "10" };
            return format!(
                "expected a length of time in quotes, such as \"{seconds}s\", found `{found}`"
            );
        }
        let expected = match self {
            Self::Bool => "true or false",
            Self::Integer => "a whole number",
            Self::Count => "a whole number of at least 0",
            Self::Positive => "a whole number from 1 to 4294967295",
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
        let quotes = match self {
            _ if !in_file => "",
            Self::StringList => "",
            _ if self.is_quoted() => " in quotes",
            _ => ", without quotes",
        };
        format!("expected {expected}{quotes}, found `{found}`")
    }
}

fn choose(word: &str, words: &[&'static str]) -> Result<String, String> {
    if words.contains(&word) {
        return Ok(word.to_owned());
    }
    Err(match nearest(word, words.iter().copied()) {
        Some(meant) => format!("`{word}` is unknown; did you mean `{meant}`?"),
        None => format!("`{word}` is unknown; use one of {}", words.join(", ")),
    })
}

/// Whether what is logged can be selected by this text. A word that is not a level would be taken for the name of a module,
/// and silence all others.
pub fn check_filter(text: &str) -> Result<(), String> {
    let levels = ["off", "error", "warn", "info", "debug", "trace"];
    let is_plain = |part: &&str| !part.contains(['[', ']', '{', '}']);
    // Of a module, or of all.
    let level_of = |part| str::rsplit(part, '=').next().unwrap_or_default().trim();
    let is_level = |level: &&str| levels.contains(&level.to_ascii_lowercase().as_str());
    match text.split(',').filter(is_plain).map(level_of).find(|level| !is_level(level)) {
        None => Ok(()),
        Some(wrong) => Err(format!(
            "`{wrong}` is not a level; write {}, or a module and its level: doyen::node=debug",
            levels.join(", ")
        )),
    }
}

/// Names of clusters and members appear in paths, logs and metrics.
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
        return Err(format!("`{name}` must begin with a letter or a digit"));
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
    // Digits and dots alone are a wrong IP address.
    let is_number = host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let is_host = host.len() <= 253 && host.split('.').all(is_label) && !is_number;
    let is_port = port.parse::<u16>().is_ok_and(|port| port != 0);
    if is_host && is_port { Ok(()) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_cannot_be_read_is_an_error() {
        for text in ["info", "WARN", "off", "doyen=debug", "warn,doyen::node=trace"] {
            assert_eq!(check_filter(text), Ok(()), "{text}");
        }
        for text in ["", "verbose", "warning", "info,doyen", "doyen=loud", "==", "info,"] {
            let error = check_filter(text).expect_err(text);
            assert!(error.contains("is not a level; write off, error, warn,"), "{error}");
        }
    }
}
