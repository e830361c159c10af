//! A timed run: the simulator runs it, and the oracle that judges random runs judges it, so that a file reproduces exactly
//! what was found.

use std::collections::BTreeSet;

use super::{Replay, past_of};
use crate::ending::Ending;
use crate::oracle::{self, Breach, Oracle};
use crate::property::Property;
use doyen_sim::metrics::Ended;
use doyen_sim::scenario::Case;
use doyen_sim::trace::TraceEvent;

/// Runs `case`, and judges whether it breaks `property`.
pub(super) fn replay(case: Case, property: Property) -> Replay {
    let mut records: Vec<TraceEvent> = Vec::new();
    let mut oracle = Oracle::of(&case, &[property]);
    let outcome = oracle::judge(&case, Some(&mut records), &mut oracle);
    let breach = oracle.breach().cloned();
    let broken = breach.is_some();
    let (facts, ending, past) = match breach {
        Some(Breach { at, evidence, ending, .. }) => {
            // The run continues after the violation, but later events did not lead to it.
            let before = records.partition_point(|record| record.at <= at);
            let past = past_of(property, &records[..before], &evidence);
            (evidence, ending, past)
        }
        None if outcome.ended == Ended::Quiet => (Vec::new(), Ending::Rest, BTreeSet::new()),
        None => (Vec::new(), Ending::Limit, BTreeSet::new()),
    };
    let (gap, from, is_timed, steps) = (None, None, true, Vec::new());
    Replay { case, property, broken, facts, ending, gap, from, is_timed, steps, records, past }
}
