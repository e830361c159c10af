//! What must be given before anything can be asked of a run's end.
//!
//! The algorithms promise something about runs in which trouble ends: the network is whole again, clocks run right,
//! somebody is alive, and somebody has noticed that a leader is needed. A run without that proves nothing. So every
//! scenario that a campaign draws [holds] it, and none that has been shrunk may have lost it.

use std::collections::{BTreeMap, BTreeSet};

use doyen_core::members::NodeId;
use doyen_core::time::Span;

use crate::scenario::{Case, FaultEntry, Scenario};
use crate::time::{Time, parse_span};

/// Where things stand once every fault of a scenario has happened.
#[derive(Debug, Default)]
struct Standing {
    dead: BTreeSet<u32>,
    cuts: BTreeMap<[u32; 2], u32>,
    apart: bool,
    wrong_clocks: BTreeSet<u32>,
    /// When somebody crashed last, and when a member that is alive in the end last noticed something.
    last_crash: Option<Time>,
    noticed: BTreeMap<u32, Time>,
    /// Something that is never mended happens at a time that nobody knows.
    unmendable: bool,
}

/// Whether `scenario`, which means `case`, gives what the promises need.
pub fn holds(scenario: &Scenario, case: &Case) -> bool {
    let mut standing = Standing::default();
    standing.dead.extend(case.dead.iter().map(|id| id.0));
    if !standing.dead.is_empty() {
        standing.last_crash = Some(Time::ZERO);
    }
    standing.noticed.extend(case.initiators.iter().map(|(id, at)| (id.0, at)));
    let mut timed: Vec<(Time, &FaultEntry)> = Vec::new();
    for fault in &scenario.fault {
        match fault.at.as_deref().map(parse_span) {
            Some(Ok(at)) => timed.push((Time::ZERO + at, fault)),
            Some(Err(_)) => return false,
            None => {}
        }
    }
    timed.sort_by_key(|&(at, _)| at);
    for (at, fault) in timed {
        standing.happens(at, fault);
    }
    // What waits for a message may come before everything else or after it, or never.
    for fault in scenario.fault.iter().filter(|fault| fault.at.is_none()) {
        match fault.crash {
            Some(member) => {
                standing.dead.insert(member);
            }
            None => standing.unmendable |= fault.restart.is_none() && fault.pause.is_none(),
        }
    }
    standing.is_calm(case)
}

impl Standing {
    fn happens(&mut self, at: Time, fault: &FaultEntry) {
        if let Some(member) = fault.crash {
            self.dead.insert(member);
            self.last_crash = Some(at);
        }
        if let Some(member) = fault.restart
            && self.dead.remove(&member)
        {
            // Who comes up looks for a leader.
            self.noticed.insert(member, at);
        }
        if let Some(member) = fault.campaign
            && !self.dead.contains(&member)
        {
            self.noticed.insert(member, at);
        }
        if let Some(member) = fault.clock {
            match fault.rate.is_none_or(|rate| rate == 1.0) {
                true => self.wrong_clocks.remove(&member),
                false => self.wrong_clocks.insert(member),
            };
        }
        if let Some(link) = fault.cut {
            *self.cuts.entry(link).or_default() += 1;
        }
        if let Some(link) = fault.mend
            && let Some(cuts) = self.cuts.get_mut(&link)
        {
            *cuts -= 1;
            if *cuts == 0 {
                self.cuts.remove(&link);
            }
        }
        self.apart |= fault.partition.is_some();
        if fault.heal {
            self.apart = false;
            self.cuts.clear();
        }
    }

    fn is_calm(&self, case: &Case) -> bool {
        let mended = !self.apart
            && self.cuts.is_empty()
            && self.wrong_clocks.is_empty()
            && !self.unmendable
            && case.chaos.is_none();
        let alive = |id: &NodeId| !self.dead.contains(&id.0);
        mended && case.members().iter().any(|id| alive(&id)) && self.is_noticed(case)
    }

    /// Whether somebody who is alive in the end knows that a leader is needed, if one is: because there was none at the
    /// beginning, or because one may have died and no detector tells.
    fn is_noticed(&self, case: &Case) -> bool {
        let noticed = || self.noticed.iter().filter(|(id, _)| !self.dead.contains(id));
        let by_whom = case.leader.is_some() || noticed().next().is_some();
        let in_time = match (case.detector, self.last_crash) {
            (None, Some(crash)) => noticed().any(|(_, &at)| at >= crash + Span::from_nanos(1)),
            _ => true,
        };
        by_whom && in_time
    }
}
