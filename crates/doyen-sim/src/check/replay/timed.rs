//! A timed run: the simulator runs it before the eyes of the oracle that judges random runs, so that a file says again
//! exactly what was found.

use super::super::property::Property;
use super::{Ending, Replay, past_of};
use crate::account::Ended;
use crate::oracle::{Breach, Oracle};
use crate::record::Record;
use crate::run;
use crate::scenario::Case;

/// Runs `case`, and judges whether it breaks `property`.
pub(super) fn replay(case: Case, property: Property) -> Replay {
    let mut records: Vec<Record> = Vec::new();
    let mut oracle = Oracle::of(&case, &[property]);
    let outcome = run::judge(&case, Some(&mut records), &mut oracle);
    let (from, steps) = (None, Vec::new());
    let Some(Breach { at, evidence: facts, ending, .. }) = oracle.breach().cloned() else {
        let ending = if outcome.ended == Ended::Quiet { Ending::Rest } else { Ending::Limit };
        let (facts, past) = Default::default();
        return Replay { case, property, broken: false, facts, ending, from, steps, records, past };
    };
    // The run goes on after something has happened that must not, but nothing of that led to it.
    let before = records.partition_point(|record| record.at <= at);
    let past = past_of(property, &records[..before], &facts);
    Replay { case, property, broken: true, facts, ending, from, steps, records, past }
}
