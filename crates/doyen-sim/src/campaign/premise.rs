//! What must be given before anything can be asked of a run's end.
//!
//! The algorithms promise something about runs in which trouble ends: the network is whole again, clocks run right,
//! somebody is alive, and somebody has noticed that a leader is needed. A run without that proves nothing. So every
//! scenario that a campaign draws [holds] it, and none that has been shrunk may have lost it.

use std::collections::{BTreeMap, BTreeSet};

use doyen_core::members::NodeId;
use doyen_core::time::Span;

use crate::scenario::{Case, FaultEntry, Scenario};
use crate::time::Time;

/// Where things stand once every fault of a scenario has happened.
#[derive(Debug, Default)]
struct Standing {
    dead: BTreeSet<u32>,
    cuts: BTreeMap<[u32; 2], u32>,
    apart: bool,
    wrong_clocks: BTreeSet<u32>,
    /// Clocks have been more wrong than a quorum bears.
    beyond_drift: bool,
    /// Who has lost its disk.
    diskless: BTreeSet<u32>,
    /// Who is drained, until it is told otherwise.
    drained: BTreeSet<u32>,
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
        match fault.at.as_deref().map(str::parse::<Span>) {
            Some(Ok(at)) => timed.push((Time::ZERO + at, fault)),
            Some(Err(_)) => return false,
            None => {}
        }
    }
    timed.sort_by_key(|&(at, _)| at);
    for (at, fault) in timed {
        standing.happens(at, fault);
        standing.upsets(case, fault);
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
            if fault.disk == Some(false) {
                self.diskless.insert(member);
                self.drained.remove(&member);
            }
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
        self.apart |= fault.partition.is_some() || fault.weather.is_some();
        if fault.heal {
            self.apart = false;
            self.cuts.clear();
        }
    }

    /// What means something to a quorum only.
    fn upsets(&mut self, case: &Case, fault: &FaultEntry) {
        let drift = f64::from(case.config.quorum.pace.drift) / 1000.0;
        let within = |rate: f64| (rate - 1.0).abs() < drift + 1e-9;
        self.beyond_drift |= fault.skew.is_some() || fault.rate.is_some_and(|rate| !within(rate));
        let (Some(member), Some(order)) = (fault.member, &fault.order) else { return };
        if order == "drain" && fault.lasting.is_none() {
            self.drained.insert(member);
        }
        if order == "undrain" && !self.dead.contains(&member) {
            self.drained.remove(&member);
        }
    }

    /// Whether a majority is alive, with somebody among it that may lead; and everybody is, if somebody asks everybody.
    fn suits_quorum(&self, case: &Case) -> bool {
        let settings = &case.config.quorum;
        let may_lead = |id: NodeId| {
            !settings.witnesses.contains(id)
                && !settings.reluctant.contains(id)
                && !self.drained.contains(&id.0)
        };
        let alive = || case.members().iter().filter(|id| !self.dead.contains(&id.0));
        let answered =
            self.diskless.is_empty() || (self.diskless.len() == 1 && self.dead.is_empty());
        alive().count() > case.members().len() / 2
            && alive().any(may_lead)
            && answered
            && !self.beyond_drift
    }

    fn is_calm(&self, case: &Case) -> bool {
        let mended = !self.apart
            && self.cuts.is_empty()
            && self.wrong_clocks.is_empty()
            && !self.unmendable
            && case.chaos.is_none();
        if case.algorithm.has_leases() {
            // Its members watch over their leader themselves.
            return mended && self.suits_quorum(case);
        }
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
