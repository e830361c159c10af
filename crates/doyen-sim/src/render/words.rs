//! What is said in the same words wherever a run is shown.

use std::fmt::Write;

use doyen_core::members::NodeId;

use super::cast::Turn;
use super::{Scene, trimmed};
use crate::record::{Record, What};
use crate::time::Time;

/// What a member did or suffered, without its name: `crashes`, `timer Reply fires [R3]`. Nothing of messages, nor of
/// beliefs other than to lead: arrows and life lines show them. Of leases that they begin and end, not that they are
/// renewed.
pub(super) fn deed(record: &Record, turn: Turn, scene: &Scene) -> Option<String> {
    Some(match &record.what {
        What::Fired { timer, rules, .. } => {
            format!("timer {} fires{}", timer_name(timer), bracketed(rules))
        }
        What::Campaign { rules, .. } => format!("calls an election{}", bracketed(rules)),
        What::Ordered { order, rules, .. } => format!("is told: {order}{}", bracketed(rules)),
        What::Retired { rules, .. } => format!("has retired{}", bracketed(rules)),
        What::Noted { note, .. } => note.clone(),
        What::Suspected { peer, .. } => format!("suspects {peer}"),
        What::Trusted { peer, .. } => format!("trusts {peer} again"),
        What::View { epoch, .. } => match turn {
            Turn::Leads if epoch.0 > 0 => format!("leads in {} {epoch}", scene.epoch()),
            Turn::Leads => "leads".to_owned(),
            Turn::Retires => "is about to hand over".to_owned(),
            Turn::StepsDown(_) => "no longer leads".to_owned(),
            _ => return None,
        },
        What::Leased { until, .. } => match (turn, until) {
            (Turn::Leased(term), Some(until)) => {
                format!("lease of {} {term} until {until}, unless renewed", scene.epoch())
            }
            (Turn::Unleased(deadline), _) if deadline <= record.at => "lease runs out".to_owned(),
            (Turn::Unleased(deadline), _) => {
                format!("acts no more, though its lease runs until {deadline}")
            }
            _ => return None,
        },
        What::Crashed { forwards: true, .. } => "crashes, but still forwards".to_owned(),
        What::Crashed { .. } if record.at == Time::ZERO => "is dead".to_owned(),
        What::Crashed { .. } => "crashes".to_owned(),
        What::Restarted { disk, rules, .. } => {
            let disk = if *disk { "" } else { " without a disk" };
            format!("restarts{disk}{}", bracketed(rules))
        }
        What::Paused { until, .. } => format!("pauses until {until}"),
        What::Clock { rate_ppm, jump, .. } => format!("clock {}", clock_change(*rate_ppm, *jump)),
        What::Sent { .. }
        | What::Received { .. }
        | What::Missed { .. }
        | What::Armed { .. }
        | What::Cut { .. }
        | What::Mended { .. }
        | What::Partitioned { .. }
        | What::Weather { .. }
        | What::Healed => return None,
    })
}

/// `1,3,5..8`: ascending, runs of three and more as the ranges a scenario is written with.
pub(super) fn names(ids: &[NodeId]) -> String {
    let mut ids: Vec<u32> = ids.iter().map(|id| id.0).collect();
    ids.sort_unstable();
    let mut text = String::new();
    for run in ids.chunk_by(|&one, &next| one.checked_add(1) == Some(next)) {
        let shown: &[u32] = if run.len() > 2 { &[run[0], run[run.len() - 1]] } else { run };
        let (comma, dots) =
            (if text.is_empty() { "" } else { "," }, if run.len() > 2 { ".." } else { "," });
        let parts: Vec<String> = shown.iter().map(u32::to_string).collect();
        let _ = write!(text, "{comma}{}", parts.join(dots));
    }
    text
}

/// `1,2 | 3..5`: the sides of a partition.
pub(super) fn sides(groups: &[Vec<NodeId>]) -> String {
    let sides: Vec<String> = groups.iter().map(|group| names(group)).collect();
    sides.join(" | ")
}

/// ` [R2 R1]`, and nothing where no rule fired.
pub(super) fn bracketed(rules: &[String]) -> String {
    if rules.is_empty() { String::new() } else { format!(" [{}]", rules.join(" ")) }
}

/// A timer's name without the layers around it and without its number: `Inner(Upkeep(Preempt))` is `Preempt`,
/// `Hop(HopNumber(3))` is `Hop`.
pub(super) fn timer_name(timer: &str) -> &str {
    const LAYERS: [&str; 3] = ["Inner", "Upkeep", "Detector"];
    let mut words = timer.split(|c: char| !c.is_alphanumeric());
    words.find(|word| !LAYERS.contains(word)).unwrap_or(timer)
}

/// What a clock fault did: `at 0.9 of the true rate, 5 ms ahead`.
pub(super) fn clock_change(rate_ppm: u32, jump: u64) -> String {
    let rate = format!("{}.{:06}", rate_ppm / 1_000_000, rate_ppm % 1_000_000);
    let mut text = format!("at {} of the true rate", trimmed(&rate));
    if jump > 0 {
        let _ = write!(text, ", jumps {} ahead", Time(jump));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_ids_are_written_as_ranges() {
        for (list, text) in [
            (&[][..], ""),
            (&[4], "4"),
            (&[6, 5], "5,6"),
            (&[7, 5, 6], "5..7"),
            (&[9, 1, 2, 3, 5], "1..3,5,9"),
            (&[5, 5, 6], "5,5,6"),
            (&[u32::MAX, 0], "0,4294967295"),
        ] {
            assert_eq!(names(&list.iter().copied().map(NodeId).collect::<Vec<_>>()), text);
        }
    }

    #[test]
    fn a_timer_is_called_by_its_own_name() {
        assert_eq!(timer_name("Reply"), "Reply");
        assert_eq!(timer_name("Inner(Upkeep(Preempt))"), "Preempt");
        assert_eq!(timer_name("Hop(HopNumber(3))"), "Hop");
    }
}
