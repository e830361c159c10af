//! One run of a bank or of a service as one object: what `doyen sim --json` prints of it. The names are stable.

use doyen_sim::cut::Cut;
use doyen_sim::delivered::Delivered;
use doyen_sim::metrics::{Ended, Messages, Outcome};
use doyen_sim::scenario::Case;
use doyen_sim::time::Time;
use serde::Serialize;

/// A run. Times are virtual nanoseconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// What the algorithm does: `records` or `serves`.
    pub kind: &'static str,
    /// The algorithm's name.
    pub algorithm: &'static str,
    /// `textbook`, `hardened` or a literal variant.
    pub mode: String,
    /// How many members are configured.
    pub members: u64,
    /// How many of them are alive at the beginning.
    pub live: u64,
    /// The random seed.
    pub seed: u64,
    /// What was sent.
    #[serde(flatten)]
    pub messages: Messages,
    /// What the members have recorded, if a snapshot was started.
    #[serde(flatten)]
    pub snapshot: Option<Cut>,
    /// What the members have delivered, if the service is a multicast.
    #[serde(flatten)]
    pub multicast: Option<Delivered>,
    /// The longest chain of messages.
    pub stages: u32,
    /// Why the run ended.
    pub ended: Ended,
    /// When it ended.
    pub end: Time,
    /// A fingerprint of what happened.
    pub digest: String,
    /// The unit of all times.
    pub time_unit: &'static str,
}

impl Summary {
    /// Sums up a run.
    pub fn new(case: &Case, outcome: Outcome) -> Self {
        Self {
            kind: case.algorithm.purpose().name(),
            algorithm: case.algorithm.name(),
            mode: case.mode().to_string(),
            members: case.members().len() as u64,
            live: (case.members().len() - case.dead.len()) as u64,
            seed: case.seed,
            messages: outcome.messages,
            snapshot: outcome.snapshot,
            multicast: outcome.multicast,
            stages: outcome.stages,
            ended: outcome.ended,
            end: outcome.end,
            digest: format!("{:016x}", outcome.digest),
            time_unit: "ns",
        }
    }
}
