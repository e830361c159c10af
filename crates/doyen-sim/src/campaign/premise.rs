//! What must be given before anything can be asked of a run's end.
//!
//! The algorithms promise something about runs in which trouble ends: the network is whole again, clocks run right,
//! somebody is alive, and somebody has noticed that a leader is needed. A run without that proves nothing. So every
//! scenario that a campaign draws [holds] it, and none that has been shrunk may have lost it.

use std::collections::{BTreeMap, BTreeSet};

use doyen_core::members::NodeId;
use doyen_core::time::Span;

use crate::check::property::Property;
use crate::scenario::{
    COPY, Case, DiskEntry, FaultEntry, LOST_UNLESS_ANOTHER, NEW, Scenario, UNNAMED,
};
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
    /// Perhaps two have been without their disks at the same time: they wait for each other for ever.
    lost_together: bool,
    /// Whose configured names lead elsewhere: two of them may never find each other, nor one of them and a replacement.
    unnamed: BTreeSet<u32>,
    replaced: BTreeSet<u32>,
    /// Who is drained, until it is told otherwise.
    drained: BTreeSet<u32>,
    /// When somebody crashed last, and when a member that is alive in the end last noticed something.
    last_crash: Option<Time>,
    noticed: BTreeMap<u32, Time>,
    /// Something that is never mended happens at a time that nobody knows.
    unmendable: bool,
}

/// Whether `scenario`, which means `case`, gives what `property` needs.
pub fn suits(property: Property, scenario: &Scenario, case: &Case) -> bool {
    if Property::LASTING.contains(&property) {
        lasts(scenario, case)
    } else {
        holds(scenario, case)
    }
}

/// More members than this are never asked for: every set of them is looked at.
const MOST_MEMBERS: usize = 16;

/// Whether the faults of `scenario` last, and leave a majority connected both ways, with somebody among it that may lead.
pub fn lasts(scenario: &Scenario, case: &Case) -> bool {
    let members = case.members();
    let other = |fault: &&FaultEntry| {
        let rate_is_right = fault.rate.is_none_or(|rate| {
            (rate - 1.0).abs() < f64::from(case.config.quorum.pace.drift) / 1000.0 + 1e-9
        });
        let is_clock = fault.clock.is_some() && fault.skew.is_none() && rate_is_right;
        let is_attribute = fault.order.as_deref() == Some("attribute");
        let is_timed = fault.at.is_some();
        !(is_timed && (fault.cut.is_some() || fault.crash.is_some() || is_clock || is_attribute))
    };
    if members.len() > MOST_MEMBERS || scenario.fault.iter().any(|fault| other(&fault)) {
        return false;
    }
    let crashed = scenario.fault.iter().filter_map(|fault| fault.crash);
    let dead: BTreeSet<u32> = case.dead.iter().map(|id| id.0).chain(crashed).collect();
    let cuts: BTreeSet<[u32; 2]> = scenario.fault.iter().filter_map(|fault| fault.cut).collect();
    let settings = &case.config.quorum;
    let may_lead =
        |id: NodeId| !settings.witnesses.contains(id) && !settings.reluctant.contains(id);
    let ids: Vec<NodeId> = members.iter().filter(|id| !dead.contains(&id.0)).collect();
    let whole = |set: u32| {
        let chosen = || ids.iter().enumerate().filter(move |(at, _)| set >> at & 1 == 1);
        let linked = |from: NodeId| chosen().all(|(_, to)| !cuts.contains(&[from.0, to.0]));
        chosen().count() > members.len() / 2
            && chosen().any(|(_, &id)| may_lead(id))
            && chosen().all(|(_, &id)| linked(id))
    };
    (0..1_u32 << ids.len()).any(whole)
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
        // With two members no rule can tell whose old process one has found.
        standing.unmendable |= fault.replace.is_some() && case.members().len() < 3;
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
            if fault.disk == Some(DiskEntry::Named(COPY.to_owned())) {
                // It is found if everybody who knows better is reachable. Whether it was drained is what the copy says.
                let whole = self.dead.is_empty() && self.cuts.is_empty() && !self.apart;
                self.unmendable |= !whole;
            } else if fault.disk.as_ref().is_some_and(|disk| *disk != DiskEntry::Kept(true)) {
                let alone = self.diskless.iter().all(|&other| other == member);
                let waits = fault.disk == Some(DiskEntry::Named(LOST_UNLESS_ANOTHER.to_owned()));
                self.lost_together |= !alone && !waits;
                self.diskless.insert(member);
                self.drained.remove(&member);
            }
            // Who comes up looks for a leader.
            self.noticed.insert(member, at);
        }
        if let Some(member) = fault.replace {
            self.dead.remove(&member);
            let alone = self.diskless.iter().all(|&other| other == member);
            let waits = fault.disk == Some(DiskEntry::Named(LOST_UNLESS_ANOTHER.to_owned()));
            self.lost_together |= !alone && !waits;
            self.diskless.insert(member);
            self.replaced.insert(member);
            self.drained.remove(&member);
            self.noticed.insert(member, at);
        }
        if fault.address.as_deref() == Some(UNNAMED) {
            self.unnamed.extend(fault.restart.or(fault.replace));
        }
        // A copy or a clone is found if a member that knows better is reachable, and stops: nothing is promised then.
        let is_new = fault.disk == Some(DiskEntry::Named(NEW.to_owned()));
        self.unmendable |= fault.clone.is_some() || is_new;
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
        let answered = self.diskless.is_empty() || self.dead.is_empty() && !self.lost_together;
        alive().count() > case.members().len() / 2
            && alive().any(may_lead)
            && answered
            && (self.unnamed.is_empty() || self.unnamed.union(&self.replaced).count() < 2)
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
