//! The words of a scenario: times, shares, delays, members, kinds. An error names the key it belongs to.

use std::str::FromStr;

use doyen_core::members::{Members, NodeId};
use doyen_core::protocol::Kind;
use doyen_core::time::Span;

use super::{ScenarioError, Share};
use crate::network::DelayModel;

pub(super) type Result<T> = std::result::Result<T, ScenarioError>;

/// More members than anybody has memory for.
const MAX_MEMBERS: u64 = 100_000_000;

pub(super) fn parse<T: FromStr<Err = String>>(
    text: &Option<String>,
    key: &str,
) -> Result<Option<T>> {
    let parsed = text.as_ref().map(|text| text.parse()).transpose();
    parsed.map_err(|problem| ScenarioError::new(key, problem))
}

pub(super) fn span(text: Option<&String>, key: &str) -> Result<Option<Span>> {
    let parsed = text.map(|text| text.parse::<Span>()).transpose();
    parsed.map_err(|problem| ScenarioError::new(key, problem))
}

pub(super) fn required(text: Option<&String>, key: &str) -> Result<Span> {
    span(text, key)?
        .ok_or_else(|| ScenarioError::new(key, "is missing; give a length of time such as 5ms"))
}

pub(super) fn bounded(count: u64) -> Result<u32> {
    if count > MAX_MEMBERS {
        let problem =
            format!("{count} members are more than can be simulated; at most {MAX_MEMBERS}");
        return Err(ScenarioError::new("members", problem));
    }
    Ok(count as u32)
}

/// Reads `0..7`: both ends count.
pub(super) fn parse_range(text: &str) -> Result<(u32, u32)> {
    let wrong = || {
        let problem =
            format!("`{text}` is not a number of members, a range such as 0..7 or a list of ids");
        ScenarioError::new("members", problem)
    };
    let (first, last) = text.split_once("..").ok_or_else(wrong)?;
    let first: u32 = first.trim().parse().map_err(|_| wrong())?;
    let last: u32 = last.trim_start_matches('=').trim().parse().map_err(|_| wrong())?;
    if first > last { Err(wrong()) } else { Ok((first, last)) }
}

pub(super) fn parse_id(key: &str, text: &str) -> Result<u32> {
    text.parse().map_err(|_| ScenarioError::new(key, format!("`{text}` is not a member's number")))
}

pub(super) fn member(members: &Members, key: &str, id: u32) -> Result<NodeId> {
    position(members, key, id).map(|_| NodeId(id))
}

pub(super) fn position(members: &Members, key: &str, id: u32) -> Result<u32> {
    let unknown = || {
        let (first, last) = (members.at(0), members.at(members.len() - 1));
        let problem =
            format!("{id} is not a member; there are {} of them, {first} to {last}", members.len());
        ScenarioError::new(key, problem)
    };
    members.position(NodeId(id)).map(|position| position as u32).ok_or_else(unknown)
}

pub(super) fn kind(kinds: &[Kind], key: &str, name: &str) -> Result<usize> {
    kinds.iter().position(|kind| kind.name == name).ok_or_else(|| {
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name).collect();
        let problem =
            format!("there are no {name} messages; this algorithm has {}", names.join(", "));
        ScenarioError::new(key, problem)
    })
}

pub(super) fn share(share: Option<&Share>, key: &str) -> Result<f64> {
    let (text, fraction) = match share {
        None => return Ok(0.0),
        Some(Share::Fraction(fraction)) => (fraction.to_string(), Some(*fraction)),
        Some(Share::Text(text)) => {
            let (number, scale) = match text.trim().strip_suffix('%') {
                Some(number) => (number, 0.01),
                None => (text.as_str(), 1.0),
            };
            (text.clone(), number.trim().parse::<f64>().ok().map(|number| number * scale))
        }
    };
    fraction.filter(|fraction| (0.0..=1.0).contains(fraction)).ok_or_else(|| {
        let problem = format!("`{text}` is not a share from 0% to 100%; write 5% or 0.05");
        ScenarioError::new(key, problem)
    })
}

/// Reads `1ms`, `uniform:1ms..2ms`, `exp:1ms`.
pub(crate) fn parse_delay(key: &str, text: &str) -> Result<DelayModel> {
    let wrong = |problem: String| ScenarioError::new(key, problem);
    let nanos = |text: &str| text.parse::<Span>().map(Span::as_nanos).map_err(wrong);
    if let Some(range) = text.strip_prefix("uniform:") {
        let (min, max) = range.split_once("..").ok_or_else(|| {
            wrong(format!("`{text}` is not a range; write for example uniform:1ms..2ms"))
        })?;
        let (min, max) = (nanos(min)?, nanos(max)?);
        if min > max {
            return Err(wrong(format!("`{text}` runs backwards; write the shorter delay first")));
        }
        return Ok(DelayModel::Uniform { min, max });
    }
    if let Some(mean) = text.strip_prefix("exp:") {
        return Ok(DelayModel::Exponential { mean: nanos(mean)? });
    }
    Ok(DelayModel::Fixed(nanos(text)?))
}
