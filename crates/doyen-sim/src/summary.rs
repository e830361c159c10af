//! One run as one object: what `--json` prints. The names are stable.

use std::collections::BTreeMap;

use doyen_core::members::NodeId;
use serde::Serialize;

use crate::account::{Ended, Outcome};
use crate::formula::Formula;
use crate::scenario::{Case, Convention};

/// A run in short. Times are virtual nanoseconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// The algorithm's name.
    pub algorithm: String,
    /// `textbook`, `hardened` or a literal variant.
    pub mode: String,
    /// Which members the counts are about.
    pub convention: Convention,
    /// How many members are configured.
    pub members: usize,
    /// How many of them are alive at the beginning.
    pub live: usize,
    /// Who noticed that the coordinator was gone.
    pub initiators: Vec<NodeId>,
    /// The unit of all times: virtual nanoseconds.
    pub time_unit: &'static str,
    /// The seed.
    pub seed: u64,
    /// The member that all live members follow, if it is the same; `agreed` says whether it is alive.
    pub leader: Option<NodeId>,
    /// Whether all live members follow the same live member.
    pub agreed: bool,
    /// What was sent.
    pub messages: MessageSummary,
    /// The longest chain of election messages.
    pub stages: u32,
    /// From the first election to the last receipt of an election message.
    pub turnaround: u64,
    /// The same in units of D, the bound on a message's delay.
    pub turnaround_d: f64,
    /// From the first election until the last member knew its leader; nothing, if they do not agree in the end.
    pub informed: Option<u64>,
    /// How many members sent an election message.
    pub involved: u32,
    /// Elections called.
    pub elections: u64,
    /// How often the leader changed.
    pub leader_changes: u32,
    /// How long nobody led.
    pub no_leader: u64,
    /// How long more than one led.
    pub two_leaders: u64,
    /// `quiet`, `time limit` or `message limit`.
    pub ended: &'static str,
    /// When it ended.
    pub end: u64,
    /// The closed form for this case, where there is one.
    pub formula: Option<FormulaSummary>,
    /// The fingerprint of the run: the same on every machine.
    pub digest: String,
}

/// What was sent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MessageSummary {
    /// Election messages, those to the dead included.
    pub total: u64,
    /// The same by the seeds' words.
    pub by_kind: BTreeMap<&'static str, u64>,
    /// Those that found their receiver dead.
    pub to_dead: u64,
    /// Those that the network lost.
    pub lost: u64,
    /// Acknowledgements and retransmissions, apart.
    pub link: u64,
    /// Heartbeats, apart.
    pub detector: u64,
    /// The bytes of all of them.
    pub bytes: u64,
}

/// A closed form beside the count.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FormulaSummary {
    /// What it is and where it comes from.
    pub name: String,
    /// What it gives.
    pub value: u64,
    /// Whether that is what was counted.
    pub matches: bool,
}

impl Summary {
    /// Sums up a run.
    pub fn new(case: &Case, outcome: &Outcome, formula: Option<&Formula>) -> Self {
        let d = case.config.timing.transmission.as_nanos();
        let turnaround = outcome.turnaround.as_nanos();
        let messages = &outcome.messages;
        Self {
            algorithm: case.algorithm.to_string(),
            mode: case.mode().to_string(),
            convention: case.convention,
            members: case.members().len(),
            live: case.members().len() - case.dead.len(),
            initiators: case.initiators.iter().map(|(id, _)| id).collect(),
            time_unit: "ns",
            seed: case.seed,
            leader: outcome.leader,
            agreed: outcome.agreed,
            messages: MessageSummary {
                total: messages.total,
                by_kind: messages.by_kind.iter().copied().collect(),
                to_dead: messages.to_dead,
                lost: messages.lost,
                link: messages.link,
                detector: messages.detector,
                bytes: messages.bytes,
            },
            stages: outcome.stages,
            turnaround,
            turnaround_d: if d == 0 { 0.0 } else { turnaround as f64 / d as f64 },
            informed: outcome.agreed.then(|| outcome.informed.as_nanos()),
            involved: outcome.involved,
            elections: outcome.elections,
            leader_changes: outcome.leader_changes,
            no_leader: outcome.no_leader.as_nanos(),
            two_leaders: outcome.two_leaders.as_nanos(),
            ended: ended(outcome.ended),
            end: outcome.end.0,
            formula: formula.map(|formula| FormulaSummary {
                name: formula.name.clone(),
                value: formula.value,
                matches: formula.value == messages.total,
            }),
            digest: format!("{:016x}", outcome.digest),
        }
    }
}

/// Why a run ended, in words.
pub fn ended(ended: Ended) -> &'static str {
    match ended {
        Ended::Quiet => "quiet",
        Ended::TimeLimit => "time limit",
        Ended::MessageLimit => "message limit",
    }
}
