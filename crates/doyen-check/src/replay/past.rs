//! What happened before: the causal past of something, in Lamport's sense.
//!
//! One event happened before another if both concern the same member, in that order; if the first is the sending of a
//! message and the second its receipt; or by transitivity. A crash that a failure detector truly reports happened
//! before its report. A change of the whole network, such as a partition, may be a cause of any later event.

use std::collections::BTreeSet;

use doyen_core::members::NodeId;

use doyen_sim::hash::FastMap;
use doyen_sim::trace::{EventKind, TraceEvent};

/// Which records happened before those at `ends`, these included.
pub(super) fn causal_past(records: &[TraceEvent], ends: &[usize]) -> BTreeSet<usize> {
    let causes = causes(records);
    let mut past = BTreeSet::new();
    let mut open = ends.to_vec();
    while let Some(index) = open.pop() {
        if past.insert(index) {
            open.extend_from_slice(&causes[index]);
        }
    }
    let last = ends.iter().copied().max().unwrap_or(0);
    past.extend((0..last).filter(|&index| records[index].kind.member().is_none()));
    past
}

/// The records that directly precede each record.
fn causes(records: &[TraceEvent]) -> Vec<Vec<usize>> {
    let mut latest: FastMap<NodeId, usize> = FastMap::default();
    let mut turns: FastMap<NodeId, usize> = FastMap::default();
    let mut sent: FastMap<u32, usize> = FastMap::default();
    let mut causes = Vec::with_capacity(records.len());
    for (index, record) in records.iter().enumerate() {
        let mut direct = Vec::new();
        match record.kind {
            EventKind::Sent { id, .. } => drop(sent.insert(id, index)),
            EventKind::Received { id, .. } | EventKind::Missed { id, .. } => {
                direct.extend(sent.get(&id));
            }
            EventKind::Suspected { peer, .. } | EventKind::Trusted { peer, .. } => {
                direct.extend(turns.get(&peer));
            }
            EventKind::Crashed { member, .. } | EventKind::Restarted { member, .. } => {
                turns.insert(member, index);
            }
            _ => {}
        }
        // A message that a dead member misses is not a cause of its later actions.
        let is_missed = matches!(record.kind, EventKind::Missed { .. });
        if let Some(member) = record.kind.member().filter(|_| !is_missed) {
            direct.extend(latest.insert(member, index));
        }
        causes.push(direct);
    }
    causes
}
