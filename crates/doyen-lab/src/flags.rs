//! The flags of `doyen sim` by name and value, as the address of a page holds them.
//!
//! A flag that sets a plain value replaces the scenario's; faults and changes of messages are added. An empty value unsets.

use std::str::FromStr;

use doyen_sim::fault::Fault;
use doyen_sim::scenario::{Scenario, ScenarioError};

/// The name of every flag.
#[rustfmt::skip]
pub const NAMES: [&str; 47] = [
    "algorithm", "mode", "members", "dead", "initiators", "leader", "attr", "ring", "convention", "announce", "contact-dead",
    "delay", "bound", "loss", "duplicate", "seed", "until", "fifo", "reliable", "detector", "heartbeat", "window", "preempt",
    "processing", "crash", "restart", "pause", "clock", "cut", "partition", "heal", "drop", "late", "twice",
    "requests", "hold", "repeat", "think", "sets", "tree", "grant", "voters", "votes", "ask-all", "back-off",
    "snapshot", "tell",
];

/// The flags that need no value on the command line.
pub(crate) const SWITCHES: [&str; 4] = ["contact-dead", "fifo", "reliable", "ask-all"];

/// The flags that add a fault.
const FAULTS: [&str; 9] =
    ["crash", "restart", "pause", "clock", "cut", "partition", "heal", "snapshot", "tell"];

/// The flags that change single messages.
const OF_MESSAGES: [&str; 3] = ["drop", "late", "twice"];

/// The flags that change what happens in a run, and not its members or settings.
pub fn changes() -> impl Iterator<Item = &'static str> {
    FAULTS.into_iter().chain(OF_MESSAGES)
}

/// Sets in `scenario` what a flag says.
pub(crate) fn apply(scenario: &mut Scenario, name: &str, value: &str) -> Result<(), ScenarioError> {
    // The next message of a kind is a fault, and one that is named is a change.
    let is_loss = name == "drop" && (value.is_empty() || value.contains('@'));
    if FAULTS.contains(&name) || is_loss {
        add_fault(scenario, name, value)?;
        if !value.is_empty() || !is_loss {
            return Ok(());
        }
    }
    let set = match name {
        "algorithm" => set(&mut scenario.algorithm, value),
        "mode" => set(&mut scenario.mode, value),
        "members" => set(&mut scenario.members, value),
        "initiators" => set(&mut scenario.initiators, value),
        "leader" => set_number(&mut scenario.leader, value),
        "ring" => set(&mut scenario.ring, value),
        "convention" => set(&mut scenario.convention, value),
        "announce" => {
            scenario.announce = (!value.is_empty()).then(|| value.to_owned());
            Ok(())
        }
        "requests" => set(&mut scenario.requests, value),
        "hold" => set(&mut scenario.hold, value),
        "repeat" => set_number(&mut scenario.repeat, value),
        "think" => set(&mut scenario.think, value),
        "sets" => set(&mut scenario.sets, value),
        "tree" => set(&mut scenario.tree, value),
        "grant" => set(&mut scenario.grant, value),
        "voters" => set_number(&mut scenario.voters, value),
        "votes" => set_number(&mut scenario.votes, value),
        "ask-all" => switch(value).map(|on| scenario.ask_all = on.unwrap_or_default()),
        "back-off" => set(&mut scenario.back_off, value),
        "delay" => set(&mut scenario.delay, value),
        "bound" => set(&mut scenario.bound, value),
        "loss" => set(&mut scenario.loss, value),
        "duplicate" => set(&mut scenario.duplicate, value),
        "seed" => set_number(&mut scenario.seed, value),
        "until" => set(&mut scenario.until, value),
        "detector" => set(&mut scenario.detector, value),
        "heartbeat" => set(&mut scenario.heartbeat, value),
        "window" => set(&mut scenario.window, value),
        "preempt" => set(&mut scenario.preempt, value),
        "processing" => set(&mut scenario.processing, value),
        "fifo" => switch(value).map(|on| scenario.fifo = on),
        "reliable" => switch(value).map(|on| scenario.reliable = on.unwrap_or_default()),
        "contact-dead" => switch(value).map(|on| scenario.contact_dead = on.unwrap_or_default()),
        "dead" => list(value, number).map(|ids| set_dead(scenario, ids)),
        "drop" => add(&mut scenario.drop, value),
        "late" => add(&mut scenario.late, value),
        "twice" => add(&mut scenario.twice, value),
        "attr" => list(value, attribute).map(|attr| scenario.attr = attr.into_iter().collect()),
        _ => Err(format!("there is no flag `{name}`; `doyen sim --help` lists them")),
    };
    set.map_err(|problem| ScenarioError::new(name, problem))
}

/// Sets the members that are down. If there are none, the highest is not down either, as the convention `configured`
/// would imply.
fn set_dead(scenario: &mut Scenario, ids: Vec<u32>) {
    if ids.is_empty() {
        scenario.convention = None;
    }
    scenario.dead = ids;
}

/// Adds a fault, or removes all faults that this flag can express.
fn add_fault(scenario: &mut Scenario, name: &str, value: &str) -> Result<(), ScenarioError> {
    if value.is_empty() {
        scenario.fault.retain(|fault| fault.to_flag().is_none_or(|(flag, _)| flag != name));
        return Ok(());
    }
    let fault = Fault::from_flag(name, value).map_err(|it| ScenarioError::new(name, it))?;
    scenario.fault.push(fault);
    Ok(())
}

fn add<T: FromStr<Err = String>>(list: &mut Vec<T>, value: &str) -> Result<(), String> {
    match value {
        "" => list.clear(),
        value => list.push(value.parse()?),
    }
    Ok(())
}

fn set<T: FromStr<Err = String>>(field: &mut Option<T>, value: &str) -> Result<(), String> {
    *field = if value.is_empty() { None } else { Some(value.parse()?) };
    Ok(())
}

fn set_number<T: FromStr>(field: &mut Option<T>, value: &str) -> Result<(), String> {
    *field = if value.is_empty() { None } else { Some(number(value)?) };
    Ok(())
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| format!("`{text}` is not a whole number"))
}

fn switch(value: &str) -> Result<Option<bool>, String> {
    match value {
        "" => Ok(None),
        "true" => Ok(Some(true)),
        "false" => Ok(Some(false)),
        _ => Err(format!("`{value}` is neither true nor false")),
    }
}

fn list<T>(value: &str, item: fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    value.split(',').filter(|text| !text.trim().is_empty()).map(item).collect()
}

/// Reads `3=90`.
fn attribute(text: &str) -> Result<(String, i64), String> {
    let (id, value) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` is not ID=VALUE; write for example 3=90"))?;
    Ok((number::<u32>(id)?.to_string(), number(value)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value of every flag, in the order of the names.
    #[rustfmt::skip]
    const VALUES: [&str; NAMES.len()] = [
        "bully", "hardened", "1..5", "4,5", "1,2@1ms", "3", "3=90,1=7", "random", "configured", "all", "true",
        "uniform:1ms..2ms", "2ms", "5%", "1%", "7", "1s", "false", "true", "5ms", "4ms", "1ms", "9ms", "1ms", "5@3ms,forwards",
        "5@9ms,fresh", "3@2ms+10ms", "3=0.9@0", "1>3@2ms", "1,2/3,4@2ms", "50ms", "5:1:OK", "5:1:OK:2+2ms", "5:1:OK:3",
        "1,3@2ms", "5ms", "20", "exp:1ms", "grid", "line", "9ms", "3", "2", "true", "uniform:1ms..4ms",
        "3@5ms", "3>1@2ms",
    ];

    #[test]
    fn every_flag_sets_something_and_an_empty_value_unsets_it() {
        for (name, value) in NAMES.into_iter().zip(VALUES) {
            let mut scenario = Scenario::default();
            apply(&mut scenario, name, value).unwrap_or_else(|error| panic!("{error}"));
            assert_ne!(scenario, Scenario::default(), "{name}");
            let Scenario { fault, drop, late, twice, .. } = &scenario;
            let of_messages = drop.len() + late.len() + twice.len();
            let is_change = fault.len() + of_messages > 0;
            assert_eq!(is_change, changes().any(|it| it == name), "{name}");
            apply(&mut scenario, name, "").unwrap();
            assert_eq!(scenario, Scenario::default(), "{name}");
            // For these flags every text is a value; whether it makes sense is checked later.
            if !["members", "announce"].contains(&name) {
                assert_eq!(apply(&mut scenario, name, "?").unwrap_err().key, name);
            }
        }
        assert!(apply(&mut Scenario::default(), "speed", "3").is_err());
        let mut scenario = Scenario::default();
        for value in ["TOKEN@7ms", "1:2:TOKEN", ""] {
            apply(&mut scenario, "drop", value).unwrap();
        }
        assert_eq!(scenario, Scenario::default());
    }
}
