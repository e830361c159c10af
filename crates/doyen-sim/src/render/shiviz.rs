//! A run as a log for [ShiViz](https://bestchai.bitbucket.io/shiviz/), which draws and compares distributed runs.
//!
//! Two lines an event: the member and its vector clock, then what happened. `ShiViz` reads it with this expression,
//! which is the one it offers:
//!
//! ```text
//! (?<host>\S*) (?<clock>{.*})\n(?<event>.*)
//! ```
//!
//! A member's own entry counts its events; a receipt takes over what the sender knew. What happens to nobody, such as a
//! message that finds its receiver dead, has no clock and is left out.

use std::collections::BTreeMap;
use std::fmt::Write;

use doyen_core::members::NodeId;

use super::cast::{Cast, Turn, subject};
use super::words::{bracketed, deed};
use super::{Filter, Scene};
use crate::hash::FastMap;
use crate::record::{Record, What};

/// How many events of each member are known to have happened, by the member's name.
type VectorClock = BTreeMap<String, u64>;

/// Writes the run that `records` tell of as a log with vector clocks.
pub fn log(scene: &Scene, records: &[Record]) -> String {
    let mut out = String::new();
    let mut cast = Cast::new(scene);
    let mut filter = Filter::new(false);
    let mut clocks: FastMap<NodeId, VectorClock> = FastMap::default();
    let mut sent: FastMap<u32, (VectorClock, String)> = FastMap::default();
    for record in records.iter().filter(|record| filter.passes(&record.what)) {
        let Some(member) = subject(&record.what) else { continue };
        let Some(place) = scene.place(member) else { continue };
        let turn = cast.note(place, &record.what);
        let Some(event) = words(record, turn, scene, &sent) else { continue };
        let clock = clocks.entry(member).or_default();
        if let What::Received { id, .. } = record.what
            && let Some((known, _)) = sent.get(&id)
        {
            for (name, &count) in known {
                let own = clock.entry(name.clone()).or_default();
                *own = count.max(*own);
            }
        }
        *clock.entry(name(member)).or_default() += 1;
        if let What::Sent { id, text, .. } = &record.what {
            sent.insert(*id, (clock.clone(), text.clone()));
        }
        let known: Vec<String> =
            clock.iter().map(|(name, count)| format!("\"{name}\":{count}")).collect();
        let _ = writeln!(out, "{} {{{}}}\n{event}", name(member), known.join(","));
    }
    out
}

fn name(member: NodeId) -> String {
    format!("p{member}")
}

/// What happened, on one line; nothing if it is not an event of the member's.
fn words(
    record: &Record,
    turn: Turn,
    scene: &Scene,
    sent: &FastMap<u32, (VectorClock, String)>,
) -> Option<String> {
    let text = match &record.what {
        What::Sent { to, text, arrives, .. } => {
            let lost = if arrives.is_none() { ", lost" } else { "" };
            format!("sends {text} to {to}{lost}")
        }
        What::Received { id, from, kind, rules, .. } => {
            let text = sent.get(id).map_or(kind, |(_, text)| text);
            format!("receives {text} from {from}{}", bracketed(rules))
        }
        What::View { .. } => match turn {
            Turn::Follows(leader) | Turn::StepsDown(Some(leader)) => format!("follows {leader}"),
            Turn::Alone => "knows no leader".to_owned(),
            Turn::Stands => "takes part in an election".to_owned(),
            _ => deed(record, turn, scene)?,
        },
        What::Cut { to, .. } => format!("is cut off from {to}"),
        What::Mended { to, .. } => format!("reaches {to} again"),
        _ => deed(record, turn, scene)?,
    };
    Some(text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run;
    use crate::scenario::Scenario;

    fn logged(scenario: &str) -> String {
        let case = Scenario::from_toml("test", scenario).unwrap();
        let mut records = Vec::new();
        run::run(&case, Some(&mut records));
        log(&Scene::of(&case), &records)
    }

    #[test]
    fn a_receipt_knows_what_the_sender_knew() {
        let text = logged("algorithm = \"bully\"\nmembers = 3\ndead = [3]\ncontact_dead = true");
        let expected = "\
p3 {\"p3\":1}
is dead
p1 {\"p1\":1}
calls an election [R1]
p1 {\"p1\":2}
sends ELECTION to 2
p1 {\"p1\":3}
sends ELECTION to 3
p1 {\"p1\":4}
takes part in an election
p2 {\"p1\":2,\"p2\":1}
receives ELECTION from 1 [R2 R1]
";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.ends_with("follows 2\n"), "{text}");
    }

    #[test]
    fn every_clock_is_json_and_counts_each_member_s_events_without_a_gap() {
        let text = logged(
            "algorithm = \"ring-list\"\nmembers = 5\ninitiators = \"all\"\nloss = \"10%\"\n\
             fault = [{ at = \"1ms\", partition = [[1, 2], [3]] }, { at = \"2ms\", cut = [1, 2] }, \
             { at = \"3ms\", crash = 5 }, { at = \"9ms\", restart = 5 }]",
        );
        let lines: Vec<&str> = text.lines().collect();
        let mut counts: FastMap<&str, u64> = FastMap::default();
        assert!(lines.len() > 20);
        for pair in lines.chunks(2) {
            let (host, clock) = pair[0].split_once(' ').unwrap();
            let clock: VectorClock = serde_json::from_str(clock).unwrap();
            let count = counts.entry(host).or_default();
            *count += 1;
            assert_eq!(clock[host], *count, "{pair:?}");
            assert!(!pair[1].is_empty());
        }
    }
}
