//! What goes wrong, from what is written to what is meant.

use doyen_core::algorithm::quorum::settings::Pace;
use doyen_core::members::{Members, NodeId};
use doyen_core::protocol::{Kind, Order};
use doyen_core::time::Span;

use super::parse::{Result, kind, member, parse_delay, position, required, share, span};
use super::{
    COPY, ChaosEntry, DiskEntry, FaultEntry, LOST_UNLESS_ANOTHER, LinkException, NEW, PaceEntry,
    ScenarioError, UNNAMED,
};
use crate::fault::{Action, Chaos, Disk, Fault, Place, Trigger};
use crate::network::LinkRule;
use crate::time::Time;

/// An attribute does not change more often than this.
const MOST_CHANGES: u64 = 100_000;
/// More faults of a kind than any run is about.
const MAX_RANDOM_FAULTS: u64 = 1_000_000;

impl LinkException {
    pub(super) fn resolve(
        &self,
        key: &dyn Fn(&str) -> String,
        members: &Members,
        kinds: &[Kind],
    ) -> Result<LinkRule> {
        let place = |id: Option<u32>, name: &str| {
            id.map(|id| position(members, &key(name), id)).transpose()
        };
        let kind = self.kind.as_ref().map(|name| kind(kinds, &key("kind"), name)).transpose()?;
        let delay = self.delay.as_ref().map(|text| parse_delay(&key("delay"), text)).transpose()?;
        let loss = self.loss.as_ref().map(|loss| share(Some(loss), &key("loss"))).transpose()?;
        let some = self.share.as_ref().map(|some| share(Some(some), &key("share"))).transpose()?;
        Ok(LinkRule {
            from: place(self.from, "from")?,
            to: place(self.to, "to")?,
            kind,
            delay,
            loss,
            share: some,
        })
    }
}

impl FaultEntry {
    pub(super) fn trigger(
        &self,
        key: &dyn Fn(&str) -> String,
        members: &Members,
        kinds: &[Kind],
    ) -> Result<Trigger> {
        match (&self.at, &self.when) {
            (Some(at), None) => Ok(Trigger::At(Time::ZERO + required(Some(at), &key("at"))?)),
            (None, Some(after)) => {
                let sent = match after.has.as_str() {
                    "sent" => true,
                    "received" => false,
                    other => {
                        let problem = format!("has = `{other}`; use sent or received");
                        return Err(ScenarioError::new(key("when"), problem));
                    }
                };
                if after.count == 0 {
                    return Err(ScenarioError::new(key("when"), "count must be at least 1"));
                }
                Ok(Trigger::Count {
                    member: position(members, &key("when"), after.member)?,
                    sent,
                    kind: kind(kinds, &key("when"), &after.kind)?,
                    count: after.count,
                })
            }
            _ => Err(ScenarioError::new(
                key("at"),
                "say when: either at = \"3ms\" or when = { member = 3, has = \"sent\", kind = \"OK\" }",
            )),
        }
    }

    /// `for` means nothing without `pause`, and so on.
    fn check_qualifiers(&self, key: &dyn Fn(&str) -> String) -> Result<()> {
        let lasts = self.pause.is_some() || self.order.is_some();
        let seconds = self.replace.is_some() || self.clone.is_some();
        let comes_up = self.restart.is_some() || seconds;
        let qualifiers = [
            ("forwards", self.forwards, "crash", self.crash.is_some()),
            ("disk", self.disk.is_some(), "restart or replace", comes_up && self.clone.is_none()),
            ("address", self.address.is_some(), "restart, replace or clone", comes_up),
            ("hung", self.hung.is_some(), "replace or clone", seconds),
            ("old", !self.old.is_empty(), "partition", self.partition.is_some()),
            ("pace", self.pace.is_some(), "restart", self.restart.is_some()),
            ("for", self.lasting.is_some(), "pause or order", lasts),
            ("member", self.member.is_some(), "order", self.order.is_some()),
            ("to", self.to.is_some(), "order", self.order.is_some()),
            ("value", self.value.is_some(), "order", self.order.is_some()),
            ("values", !self.values.is_empty(), "order", self.order.is_some()),
            ("every", self.every.is_some(), "values", !self.values.is_empty()),
            ("rate", self.rate.is_some(), "clock", self.clock.is_some()),
            ("skew", self.skew.is_some(), "clock", self.clock.is_some()),
        ];
        match qualifiers.into_iter().find(|&(_, given, _, verb_given)| given && !verb_given) {
            None => Ok(()),
            Some((name, _, verb, _)) => {
                let problem = format!("goes with {verb} only; this fault has no {verb}");
                Err(ScenarioError::new(key(name), problem))
            }
        }
    }

    pub(super) fn action(
        &self,
        key: &dyn Fn(&str) -> String,
        members: &Members,
        kinds: &[Kind],
        pace_of: &dyn Fn(NodeId, &PaceEntry) -> Result<Pace>,
    ) -> Result<Action> {
        self.check_qualifiers(key)?;
        let mut actions = Vec::new();
        let mut fault = |fault: Fault| actions.push(Action::Fault(fault));
        let at = |name: &str, id: u32| position(members, &key(name), id);
        if let Some(id) = self.crash {
            fault(Fault::Crash { member: at("crash", id)?, forwards: self.forwards });
        }
        if let Some(id) = self.restart {
            let pace = self.pace.as_ref().map(|pace| pace_of(NodeId(id), pace)).transpose()?;
            let disk = self.disk.as_ref().map_or(Ok(Disk::Kept), |disk| disk.resolve(key))?;
            let place = self.place(key)?.unwrap_or_default();
            fault(Fault::Restart { member: at("restart", id)?, disk, pace, place });
        }
        let hung = span(self.hung.as_ref(), &key("hung"))?.unwrap_or_default().as_nanos();
        if let Some(id) = self.replace {
            let disk = match &self.disk {
                None | Some(DiskEntry::Kept(false)) => Disk::Lost,
                Some(DiskEntry::Named(name)) if name == LOST_UNLESS_ANOTHER => {
                    Disk::LostUnlessAnother
                }
                Some(_) => {
                    let problem =
                        "a replacement has lost its disk: use false or lost-unless-another";
                    return Err(ScenarioError::new(key("disk"), problem));
                }
            };
            let place = self.place(key)?.unwrap_or(Place::New);
            fault(Fault::Replace { member: at("replace", id)?, disk, hung, place });
        }
        if let Some(id) = self.clone {
            let place = self.place(key)?.unwrap_or(Place::New);
            fault(Fault::Replace { member: at("clone", id)?, disk: Disk::Kept, hung, place });
        }
        if let Some(id) = self.copy {
            fault(Fault::CopyDisk { member: at("copy", id)? });
        }
        if let Some(id) = self.pause {
            let span = required(self.lasting.as_ref(), &key("for"))?.as_nanos();
            fault(Fault::Pause { member: at("pause", id)?, span });
        }
        if let Some(id) = self.clock {
            let rate = self.rate.unwrap_or(1.0);
            if !(0.001..=1000.0).contains(&rate) {
                return Err(ScenarioError::new(
                    key("rate"),
                    format!("{rate} is not between 0.001 and 1000"),
                ));
            }
            let rate_ppm = (rate * 1e6).round() as u32;
            let jump = span(self.skew.as_ref(), &key("skew"))?.unwrap_or_default().as_nanos();
            fault(Fault::Clock { member: at("clock", id)?, rate_ppm, jump });
        }
        if let Some([from, to]) = self.cut {
            if from == to {
                let problem = format!("{from} cannot be cut off from itself; name two members");
                return Err(ScenarioError::new(key("cut"), problem));
            }
            fault(Fault::Cut { from: at("cut", from)?, to: at("cut", to)? });
        }
        if let Some([from, to]) = self.mend {
            fault(Fault::Mend { from: at("mend", from)?, to: at("mend", to)? });
        }
        if let Some(groups) = &self.partition {
            let sides = sides(members, &key("partition"), groups)?;
            let old = old_sides(members, &key("old"), &self.old)?;
            fault(Fault::Partition { sides, old });
        }
        if let Some(weather) = &self.weather {
            let key = |name: &str| key(&format!("weather.{name}"));
            fault(Fault::Weather(weather.resolve(&key, members, kinds)?));
        }
        if self.heal {
            fault(Fault::Heal);
        }
        if let Some(id) = self.campaign {
            actions.push(Action::Campaign(at("campaign", id)?));
        }
        if let Some(order) = &self.order {
            let id = self.member.ok_or_else(|| {
                ScenarioError::new(key("member"), "is missing; say to whom the order is given")
            })?;
            let order = self.resolve_order(order, key, members)?;
            actions.push(Action::Order { member: at("member", id)?, order });
        }
        match actions.len() {
            1 => Ok(actions.remove(0)),
            count => Err(ScenarioError::new(
                key("at"),
                format!(
                    "a fault needs exactly one of crash, restart, replace, clone, copy, pause, clock, cut, mend, partition, \
                     weather, heal, campaign and order; this one has {count}"
                ),
            )),
        }
    }
}

impl FaultEntry {
    /// Where the process comes up, if that is said.
    fn place(&self, key: &dyn Fn(&str) -> String) -> Result<Option<Place>> {
        match self.address.as_deref() {
            None => Ok(None),
            Some(NEW) => Ok(Some(Place::New)),
            Some(UNNAMED) => Ok(Some(Place::Unnamed)),
            Some(other) => {
                let problem = format!("`{other}`; use new or unnamed");
                Err(ScenarioError::new(key("address"), problem))
            }
        }
    }

    /// Whether only members with sessions bear it.
    pub(super) fn needs_sessions(&self) -> bool {
        self.replace.is_some()
            || self.clone.is_some()
            || self.address.is_some()
            || self.disk == Some(DiskEntry::Named(NEW.to_owned()))
    }
}

impl DiskEntry {
    fn resolve(&self, key: &dyn Fn(&str) -> String) -> Result<Disk> {
        match self {
            Self::Kept(true) => Ok(Disk::Kept),
            Self::Kept(false) => Ok(Disk::Lost),
            Self::Named(name) if name == COPY => Ok(Disk::Restored),
            Self::Named(name) if name == NEW => Ok(Disk::New),
            Self::Named(name) if name == LOST_UNLESS_ANOTHER => Ok(Disk::LostUnlessAnother),
            Self::Named(name) => {
                let problem =
                    format!("`{name}`; use true, false, copy, new or lost-unless-another");
                Err(ScenarioError::new(key("disk"), problem))
            }
        }
    }
}

impl FaultEntry {
    /// Every time at which it happens, and what happens then: once, unless it is an attribute that goes on changing.
    pub(super) fn occurrences(
        &self,
        key: &dyn Fn(&str) -> String,
        trigger: Trigger,
        action: Action,
    ) -> Result<Vec<(Trigger, Action)>> {
        let (Action::Order { member, .. }, false) = (&action, self.values.is_empty()) else {
            return Ok(vec![(trigger, action)]);
        };
        let Trigger::At(first) = trigger else {
            return Err(ScenarioError::new(key("values"), "take turns from a time on: give `at`"));
        };
        let every = required(self.every.as_ref(), &key("every"))?;
        let lasting = required(self.lasting.as_ref(), &key("for"))?;
        let times = lasting.as_nanos() / every.as_nanos().max(1) + 1;
        if times > MOST_CHANGES {
            let problem = format!("{times} changes are too many; {MOST_CHANGES} are possible");
            return Err(ScenarioError::new(key("every"), problem));
        }
        let order = |value: i64| Action::Order { member: *member, order: Order::Attribute(value) };
        let change =
            |(time, &value): (u64, &i64)| (Trigger::At(first + every * time), order(value));
        Ok((0..times).zip(self.values.iter().cycle()).map(change).collect())
    }

    /// What an operator wants.
    fn resolve_order(
        &self,
        order: &str,
        key: &dyn Fn(&str) -> String,
        members: &Members,
    ) -> Result<Order> {
        let to = || {
            let missing = || ScenarioError::new(key("to"), format!("is missing; {order} whom?"));
            self.to.ok_or_else(missing).and_then(|id| member(members, &key("to"), id))
        };
        let lasting = span(self.lasting.as_ref(), &key("for"))?;
        match order {
            "resign" => Ok(Order::Resign),
            "transfer" => Ok(Order::Transfer { to: to()? }),
            "drain" => Ok(Order::Drain { lasting, never: false }),
            "drain-never" => Ok(Order::Drain { lasting: None, never: true }),
            "undrain" => Ok(Order::Undrain),
            "prefer" => {
                let lasting = required(self.lasting.as_ref(), &key("for"))?;
                Ok(Order::Prefer { member: to()?, lasting })
            }
            "attribute" => {
                let first = self.value.or(self.values.first().copied());
                let missing = "is missing; give the new attribute, or `values` that take turns";
                first.map(Order::Attribute).ok_or_else(|| ScenarioError::new(key("value"), missing))
            }
            _ => {
                let problem = format!(
                    "`{order}`; use resign, transfer, drain, drain-never, undrain, prefer or attribute"
                );
                Err(ScenarioError::new(key("order"), problem))
            }
        }
    }
}

impl ChaosEntry {
    pub(super) fn resolve(&self) -> Result<Chaos> {
        let mean = |text: &Option<String>, key: &str| -> Result<Option<u64>> {
            let mean = span(text.as_ref(), &format!("chaos.{key}"))?;
            if mean == Some(Span::ZERO) {
                return Err(ScenarioError::new(format!("chaos.{key}"), "must be above zero"));
            }
            Ok(mean.map(Span::as_nanos))
        };
        let lasting = |every: Option<u64>, text: &Option<String>, key: &str| match every {
            None => Ok(0),
            Some(_) => required(text.as_ref(), &format!("chaos.{key}")).map(Span::as_nanos),
        };
        let crash_every = mean(&self.crash_every, "crash_every")?;
        let pause_every = mean(&self.pause_every, "pause_every")?;
        let cut_every = mean(&self.cut_every, "cut_every")?;
        let until = required(self.until.as_ref(), "chaos.until")?;
        for (every, key) in
            [(crash_every, "crash_every"), (pause_every, "pause_every"), (cut_every, "cut_every")]
        {
            let faults = every.map_or(0, |every| until.as_nanos() / every);
            if faults > MAX_RANDOM_FAULTS {
                let problem =
                    format!("about {faults} faults until {until} are too many; use a longer time");
                return Err(ScenarioError::new(format!("chaos.{key}"), problem));
            }
        }
        Ok(Chaos {
            crash_every,
            down_for: lasting(crash_every, &self.down_for, "down_for")?,
            pause_every,
            pause_for: lasting(pause_every, &self.pause_for, "pause_for")?,
            cut_every,
            cut_for: lasting(cut_every, &self.cut_for, "cut_for")?,
            until: Time::ZERO + until,
        })
    }
}

/// On which sides the old processes of some members are.
fn old_sides(members: &Members, key: &str, groups: &[Vec<u32>]) -> Result<Vec<(u32, u32)>> {
    let side = |(group, ids): (usize, &Vec<u32>)| {
        let place = |&id: &u32| Ok((position(members, key, id)?, group as u32 + 1));
        ids.iter().map(place).collect::<Result<Vec<_>>>()
    };
    let sides = groups.iter().enumerate().map(side).collect::<Result<Vec<_>>>()?;
    Ok(sides.into_iter().flatten().collect())
}

/// On which side everybody is; who is not named is on a side of its own with the others not named.
fn sides(members: &Members, key: &str, groups: &[Vec<u32>]) -> Result<Vec<u32>> {
    let mut sides = vec![0; members.len()];
    for (group, ids) in groups.iter().enumerate() {
        for &id in ids {
            let place = position(members, key, id)? as usize;
            if sides[place] != 0 {
                return Err(ScenarioError::new(key, format!("member {id} is in two groups")));
            }
            sides[place] = group as u32 + 1;
        }
    }
    Ok(sides)
}
