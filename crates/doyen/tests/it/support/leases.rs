//! The leases in the traces of real nodes (`--trace`), whatever version of doyen wrote them.
//!
//! A node records every lease with its exact deadline, in nanoseconds since the machine booted: the clock by which it acts,
//! and one that all processes of a machine share. So traces say to the microsecond when some node held a lease and when none
//! did. Only two lines of a trace are read, and as text: that a lease is another than before (`leased`), and that its holder
//! began to lead in a new term (`BecameLeader`; `Took` in earlier versions). [`doyen::node::replay`] reads the rest, but of
//! its own version only.

use std::ops::Range;

use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

/// A lease, renewed or not, by its holder's own record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// The holder.
    pub member: u64,
    /// When it began.
    pub from: u64,
    /// When it ended: at its deadline, or when its holder gave it up before.
    pub until: u64,
    /// Whether it is the first of a term. Otherwise it ends a gap: it lapsed and came back in the same term.
    pub is_first: bool,
}

/// The leases in a trace, one after the other. A line that was cut short by a crash ends it.
pub fn read(trace: &str) -> Vec<Held> {
    let mut held: Vec<Held> = Vec::new();
    let (mut runs, mut is_first) = (false, false);
    for line in trace.lines().skip(1) {
        let Ok(record) = serde_json::from_str::<Value>(line) else { break };
        is_first |= record["did"].as_array().is_some_and(|did| did.iter().any(begins_a_term));
        if record["event"] != "leased" {
            continue;
        }
        let number = |field: &str| record[field].as_u64().expect("a number");
        let (member, at, until) = (number("member"), number("at"), record["until"].as_u64());
        match (until, held.last_mut().filter(|_| runs)) {
            (Some(until), Some(last)) if at <= last.until => last.until = until,
            (Some(until), _) => {
                held.push(Held { member, from: at, until, is_first });
                is_first = false;
            }
            (None, Some(last)) => last.until = last.until.min(at),
            (None, None) => {}
        }
        runs = until.is_some();
    }
    held
}

fn begins_a_term(effect: &Value) -> bool {
    let begins = ["BecameLeader {", "Took {"];
    effect.as_str().is_some_and(|text| begins.iter().any(|begin| text.contains(begin)))
}

/// The pairs of leases of different members that ran at the same instant.
pub fn overlaps(leases: &[Held]) -> Vec<(Held, Held)> {
    let mut all = leases.to_vec();
    all.sort_by_key(|lease| lease.from);
    let mut found = Vec::new();
    for (place, &one) in all.iter().enumerate() {
        let later = all[place + 1..].iter().take_while(|other| other.from < one.until);
        found.extend(later.filter(|other| other.member != one.member).map(|&other| (one, other)));
    }
    found
}

/// The times within `window` at which no lease ran, in order.
pub fn downtimes(leases: &[Held], window: Range<u64>) -> Vec<Range<u64>> {
    let mut all = leases.to_vec();
    all.sort_by_key(|lease| lease.from);
    let mut covered = window.start;
    let mut found = Vec::new();
    for lease in all.iter().filter(|lease| lease.from < window.end) {
        if lease.from > covered {
            found.push(covered..lease.from);
        }
        covered = covered.max(lease.until);
    }
    if covered < window.end {
        found.push(covered..window.end);
    }
    found
}

/// Now, by the clock of the traces.
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
