//! Reads the values of a scenario whose meaning depends on its members. An error names its key.

use doyen_core::members::{Members, NodeId};
use doyen_core::protocol::Kind;

use super::ScenarioError;

pub(super) type Result<T> = std::result::Result<T, ScenarioError>;

/// More members than any machine has memory for.
const MAX_MEMBERS: u64 = 100_000_000;

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

/// Reads a member's number.
pub(super) fn id(text: &str) -> std::result::Result<u32, String> {
    text.trim().parse().map_err(|_| format!("`{text}` is not a member's number"))
}

/// Reads `17,24,33`.
pub(super) fn ids(text: &str) -> std::result::Result<Vec<u32>, String> {
    text.split(',').map(id).collect()
}

/// The member that a key names.
pub(super) fn named(members: &Members, key: &str, text: &str) -> Result<NodeId> {
    let id = id(text).map_err(|problem| ScenarioError::new(key, problem))?;
    member(members, key, id)
}

pub(super) fn member(members: &Members, key: &str, id: u32) -> Result<NodeId> {
    let unknown = || {
        let (first, last) = (members.at(0), members.at(members.len() - 1));
        let problem =
            format!("{id} is not a member; there are {} of them, {first} to {last}", members.len());
        ScenarioError::new(key, problem)
    };
    members.position(NodeId(id)).map(|_| NodeId(id)).ok_or_else(unknown)
}

pub(super) fn kind(kinds: &[Kind], key: &str, name: &str) -> Result<usize> {
    kinds.iter().position(|kind| kind.name == name).ok_or_else(|| {
        let mut names: Vec<&str> = Vec::new();
        for kind in kinds {
            // A layer may have a kind of the same name as the algorithm above it.
            if !names.contains(&kind.name) {
                names.push(kind.name);
            }
        }
        let problem =
            format!("there are no {name} messages; this algorithm has {}", names.join(", "));
        ScenarioError::new(key, problem)
    })
}
