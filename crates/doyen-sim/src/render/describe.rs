//! Events in words: the same wherever a run is shown.

use std::fmt::Write;

use doyen_core::members::NodeId;
pub use doyen_core::trace::timer_name;
use doyen_core::trace::timer_words;

use super::model::Transition;
use super::trimmed;
use crate::time::Time;
use crate::trace::{EventKind, TraceEvent};
use crate::words::time;

/// What is said of one member, or of several to which the same happens.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Phrase {
    /// Stands before the members.
    pub(super) lead: &'static str,
    /// Stands between the members and their peers, of one member and of several.
    pub(super) one: String,
    pub(super) many: String,
    /// Stands at the end.
    pub(super) rest: String,
}

impl Phrase {
    fn verb(one: &str, many: &str, rest: &str) -> Self {
        let [one, many] = [one, many].map(|verb| format!(" {verb}"));
        Self { lead: "", one, many, rest: rest.to_owned() }
    }

    /// A remark about each of them, whose wording does not depend on their number.
    fn remark(text: &str) -> Self {
        let text = format!(": {text}");
        Self { lead: "", one: text.clone(), many: text, rest: String::new() }
    }

    /// Something that goes from one member to another.
    pub(super) fn link(lead: &'static str, arrow: &str, rest: String) -> Self {
        let arrow = format!(" {arrow}");
        Self { lead, one: arrow.clone(), many: arrow, rest }
    }

    /// `1,2 suspect 3`.
    pub(super) fn of(&self, members: &[NodeId], peers: &[NodeId]) -> String {
        let verb = if members.len() > 1 { &self.many } else { &self.one };
        let space = if peers.is_empty() { "" } else { " " };
        let (lead, rest) = (self.lead, &self.rest);
        format!("{lead}{}{verb}{space}{}{rest}", names(members), names(peers))
    }

    /// The same without the member's name: `suspects 3`.
    pub(super) fn predicate(&self, peers: &[NodeId]) -> String {
        self.of(&[], peers).trim_start_matches([':', ' ']).to_owned()
    }
}

/// An event in words, without the rules that fired: `5 receives OK from 6`. Nothing for a message that is sent, for a
/// timer that is armed, or for a view in which nothing worth mentioning changes.
pub fn in_words(event: &TraceEvent, transition: Transition) -> Option<String> {
    match &event.kind {
        EventKind::Received { from, to, kind, .. } => {
            Some(format!("{to} receives {kind} from {from}"))
        }
        EventKind::Missed { from, to, kind, .. } => {
            Some(format!("{from}'s {kind} reaches {to}, which is down"))
        }
        EventKind::Cut { from, to } => Some(format!("the link from {from} to {to} is cut")),
        EventKind::Mended { from, to } => Some(format!("the link from {from} to {to} is mended")),
        kind => describe_network(kind).or_else(|| {
            let event = TraceEvent { at: event.at, kind: event.kind.without_rules() };
            let (phrase, peers) = describe(&event, transition)?;
            Some(phrase.of(event.kind.member().as_slice(), &peers))
        }),
    }
}

/// What happened to a member, and which peers that concerns. Nothing for messages and links, which every view shows in
/// its own way; for leases, that they begin and end, but not that they are renewed.
pub(super) fn describe(
    event: &TraceEvent,
    transition: Transition,
) -> Option<(Phrase, Vec<NodeId>)> {
    let mut peers = Vec::new();
    let phrase = match &event.kind {
        EventKind::Fired { timer, rules, .. } => {
            Phrase::remark(&format!("{}{}", expiry(timer), bracketed(rules)))
        }
        EventKind::Campaign { rules, .. } => {
            Phrase::verb("calls an election", "call an election", &bracketed(rules))
        }
        EventKind::Commanded { command, rules, .. } => {
            Phrase::remark(&format!("receives the command {command}{}", bracketed(rules)))
        }
        EventKind::Retired { rules, .. } => {
            Phrase::remark(&format!("its work has stopped{}", bracketed(rules)))
        }
        EventKind::Request { rules, .. } => {
            Phrase::verb("asks to enter", "ask to enter", &bracketed(rules))
        }
        EventKind::Exit { rules, .. } => Phrase::verb("leaves", "leave", &bracketed(rules)),
        EventKind::Released { rules, .. } => {
            Phrase::remark(&format!("its guardian releases its lease{}", bracketed(rules)))
        }
        EventKind::Noted { note, .. } => Phrase::remark(note),
        EventKind::Suspected { peer, .. } => {
            peers.push(*peer);
            Phrase::verb("suspects", "suspect", "")
        }
        EventKind::Trusted { peer, .. } => {
            peers.push(*peer);
            Phrase::verb("trusts", "trust", " again")
        }
        EventKind::View { term, .. } => match transition {
            Transition::Leads if term.0 > 0 => {
                Phrase::verb("leads", "lead", &format!(" in term {term}"))
            }
            Transition::Leads => Phrase::verb("leads", "lead", ""),
            Transition::Retires => Phrase::remark("prepares to transfer leadership"),
            Transition::StepsDown(None) => Phrase::verb("no longer leads", "no longer lead", ""),
            Transition::StepsDown(Some(leader)) => {
                peers.push(leader);
                Phrase::verb("no longer leads, follows", "no longer lead, follow", "")
            }
            Transition::Follows(leader) => {
                peers.push(leader);
                Phrase::verb("follows", "follow", "")
            }
            Transition::LosesLeader => Phrase::verb("knows no leader", "know no leader", ""),
            Transition::Enters => Phrase::verb("enters", "enter", ""),
            Transition::EntersBeside(other) => {
                peers.push(other);
                Phrase::verb("enters beside", "enter beside", ": two members are inside")
            }
            Transition::None
            | Transition::Campaigns
            | Transition::GainsLease(_)
            | Transition::LosesLease(_) => return None,
        },
        EventKind::Leased { until, .. } => Phrase::remark(&match (transition, until) {
            (Transition::GainsLease(term), Some(until)) => {
                format!("lease of term {term} until {}, unless renewed", time(until.0))
            }
            (Transition::LosesLease(deadline), _) if deadline <= event.at => {
                "lease expires".to_owned()
            }
            (Transition::LosesLease(deadline), _) => {
                format!("gives up its lease before the deadline, {}", time(deadline.0))
            }
            _ => return None,
        }),
        EventKind::Crashed { forwards: true, .. } => Phrase::verb(
            "crashes; its control part still forwards",
            "crash; their control parts still forward",
            "",
        ),
        EventKind::Crashed { .. } if event.at == Time::ZERO => {
            Phrase::verb("is down", "are down", "")
        }
        EventKind::Crashed { .. } => Phrase::verb("crashes", "crash", ""),
        EventKind::Restarted { disk, rules, .. } => {
            let disk = if *disk { "" } else { " without a disk" };
            Phrase::verb("restarts", "restart", &format!("{disk}{}", bracketed(rules)))
        }
        EventKind::Paused { until, .. } => {
            Phrase::verb("pauses", "pause", &format!(" until {}", time(until.0)))
        }
        EventKind::Clock { rate_ppm, jump, .. } => {
            Phrase::remark(&format!("clock {}", clock_change(*rate_ppm, *jump)))
        }
        EventKind::Sent { .. }
        | EventKind::Received { .. }
        | EventKind::Missed { .. }
        | EventKind::Armed { .. }
        | EventKind::Disarmed { .. }
        | EventKind::Cut { .. }
        | EventKind::Mended { .. } => return None,
        // These concern no single member: `describe_network` has words for them.
        EventKind::Partitioned { .. } | EventKind::Network { .. } | EventKind::Healed => {
            return None;
        }
    };
    Some((phrase, peers))
}

/// What happened to the network as a whole; nothing for other events.
pub(super) fn describe_network(event: &EventKind) -> Option<String> {
    Some(match event {
        EventKind::Partitioned { groups } => format!("partition {}", sides(groups)),
        EventKind::Network { text } => format!("network: {text}"),
        EventKind::Healed => "healed".to_owned(),
        _ => return None,
    })
}

/// `1,3,5..8`: ascending, runs of three and more as the ranges a scenario is written with.
pub fn names(ids: &[NodeId]) -> String {
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
pub fn sides(groups: &[Vec<NodeId>]) -> String {
    let sides: Vec<String> = groups.iter().map(|group| names(group)).collect();
    sides.join(" | ")
}

/// ` [R2 R1]`, and nothing where no rule fired.
pub(super) fn bracketed(rules: &[String]) -> String {
    if rules.is_empty() { String::new() } else { format!(" [{}]", rules.join(" ")) }
}

/// What it means that a timer fires.
fn expiry(timer: &str) -> String {
    let meaning = match timer_name(timer) {
        "Reply" => "no answer in time",
        "Announcement" | "Announced" => "no announcement in time",
        "Grant" => "the granted member has not announced itself in time",
        "Confirmation" => "no confirmation in time",
        "Hop" => "the next member has not answered in time",
        "Round" => "the election has not come back in time",
        "Window" => "has collected ELECTION long enough",
        "Election" => "election timeout",
        "PreVote" => "the time for pre-votes is over",
        "Vote" => "no majority of votes in time",
        "VoteLease" => "its vote lease expires",
        "HoldDown" => "hold-down ends",
        "Takeover" => "has outranked the leader long enough",
        "Tenure" => "has led long enough to clear its penalties",
        "Penalty" => "a penalty has decayed",
        "Pause" => "a step of the pause is over",
        "Heartbeat" | "Beat" => "a heartbeat is due",
        "Suspect" => "no heartbeat in time",
        "Listen" => "no message from a leader in time",
        "Preempt" => "has tolerated a lower leader long enough",
        "Lease" => "the time of a lease is over",
        "LongestVoteLease" => "its longest vote lease is over",
        "Cooldown" => "has let others campaign first",
        "Unreachable" => "nothing from a member in time",
        "Resend" => "no acknowledgement in time",
        _ => return format!("the {} timer fires", timer_words(timer)),
    };
    meaning.to_owned()
}

/// What a clock fault did: `at 0.9 of the true rate, jumps 5 ms ahead`.
fn clock_change(rate_ppm: u32, jump: u64) -> String {
    let rate = format!("{}.{:06}", rate_ppm / 1_000_000, rate_ppm % 1_000_000);
    let mut text = format!("at {} of the true rate", trimmed(&rate));
    if jump > 0 {
        let _ = write!(text, ", jumps {} ahead", time(jump));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_are_not_called_by_the_names_of_the_source() {
        assert_eq!(expiry("Inner(Background(Heartbeat))"), "a heartbeat is due");
        assert_eq!(expiry("Inner(Quorum(LongestVoteLease))"), "its longest vote lease is over");
        assert_eq!(expiry("Inner(SomeOther(3))"), "the some-other timer fires");
    }

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
}
