//! Cases in a few words. D is 1ms throughout, so times here are in units of D.

use std::fmt::{self, Write as _};

use doyen_core::config::Variant;
use doyen_core::registry::Algorithm;

use crate::scenario::{
    After, Case, FaultEntry, Initiator, Initiators, LinkException, MemberList, RingOrder, Scenario,
};

/// A case in the making.
#[derive(Clone)]
pub(super) struct Setting(Scenario);

impl Setting {
    /// Members `1..=n`, all alive; the lowest starts. Convention `live`.
    pub(super) fn live(algorithm: Algorithm, n: u32) -> Self {
        Self(Scenario {
            algorithm: algorithm.name().to_owned(),
            members: Some(MemberList::Count(u64::from(n))),
            ..Scenario::default()
        })
    }

    /// Members `1..=N`, of which N is the crashed coordinator, as everybody knows. Convention `configured`.
    pub(super) fn configured(algorithm: Algorithm, n: u32) -> Self {
        let mut setting = Self::live(algorithm, n);
        setting.0.convention = Some("configured".to_owned());
        setting
    }

    /// These members, all alive, in the order of the ring.
    pub(super) fn ring(algorithm: Algorithm, clockwise: &[u32]) -> Self {
        let mut setting = Self::live(algorithm, 1);
        setting.0.members = Some(MemberList::Listed(clockwise.to_vec()));
        setting.0.ring = Some(RingOrder::Listed(clockwise.to_vec()));
        setting
    }

    /// Nobody knows who is dead: the dead are contacted in vain.
    pub(super) fn contacting(mut self) -> Self {
        self.0.contact_dead = true;
        self
    }

    pub(super) fn dead(mut self, ids: &[u32]) -> Self {
        self.0.dead = ids.to_vec();
        self
    }

    pub(super) fn read_as(mut self, variant: Variant) -> Self {
        self.0.mode = Some(variant.name().to_owned());
        self
    }

    pub(super) fn hardened(mut self) -> Self {
        self.0.mode = Some("hardened".to_owned());
        self
    }

    /// These start, all at once.
    pub(super) fn start(mut self, ids: &[u32]) -> Self {
        let listed = ids.iter().copied().map(Initiator::AtOnce).collect();
        self.0.initiators = Some(Initiators::Listed(listed));
        self
    }

    /// These start, each at its time.
    pub(super) fn start_at(mut self, times: &[(u32, f64)]) -> Self {
        let at = |&(member, at): &(u32, f64)| Initiator::At { member, at: millis(at) };
        self.0.initiators = Some(Initiators::Listed(times.iter().map(at).collect()));
        self
    }

    pub(super) fn all_start(mut self) -> Self {
        self.0.initiators = Some(Initiators::Named("all".to_owned()));
        self
    }

    /// The ring runs by descending ids.
    pub(super) fn falling(mut self) -> Self {
        self.0.ring = Some(RingOrder::Named("descending".to_owned()));
        self
    }

    /// The ring is drawn.
    pub(super) fn shuffled(mut self, seed: u64) -> Self {
        self.0.ring = Some(RingOrder::Named("random".to_owned()));
        self.0.seed = Some(seed);
        self
    }

    pub(super) fn window(mut self, window: f64) -> Self {
        self.0.window = Some(millis(window));
        self
    }

    /// Messages of this kind, to this member if one is named, take so long.
    pub(super) fn delay(mut self, kind: &str, to: Option<u32>, delay: f64) -> Self {
        let (kind, delay) = (Some(kind.to_owned()), Some(millis(delay)));
        self.0.link.push(LinkException { to, kind, delay, ..LinkException::default() });
        self
    }

    /// `member` crashes at this time.
    pub(super) fn crash_at(mut self, member: u32, at: f64) -> Self {
        let at = Some(millis(at));
        self.0.fault.push(FaultEntry { at, crash: Some(member), ..FaultEntry::default() });
        self
    }

    /// `member` crashes as soon as it has sent its first message of this kind.
    pub(super) fn crash_after_sending(mut self, member: u32, kind: &str) -> Self {
        let (has, kind) = ("sent".to_owned(), kind.to_owned());
        let when = Some(After { member, has, kind, count: 1 });
        self.0.fault.push(FaultEntry { when, crash: Some(member), ..FaultEntry::default() });
        self
    }

    /// The run ends at this time at the latest.
    pub(super) fn until(mut self, until: f64) -> Self {
        self.0.until = Some(millis(until));
        self
    }

    pub(super) fn case(&self) -> Case {
        let case = self.0.resolve();
        case.unwrap_or_else(|error| panic!("{self} is a setting of this module's own: {error}"))
    }
}

fn millis(time: f64) -> String {
    format!("{time}ms")
}

impl fmt::Display for Setting {
    /// `bully eager, n=6, 1 and 6 start`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scenario { algorithm, mode, convention, contact_dead, window, .. } = &self.0;
        f.write_str(algorithm)?;
        if let Some(mode) = mode {
            write!(f, " {mode}")?;
        }
        f.write_str(&match (&self.0.members, &self.0.ring, convention) {
            (Some(MemberList::Count(n)), _, Some(_)) => format!(", N={n}"),
            (Some(MemberList::Count(n)), _, None) => format!(", n={n}"),
            (_, Some(RingOrder::Listed(ids)), _) => format!(", ring {}", listed(ids, "-")),
            _ => String::new(),
        })?;
        match &self.0.ring {
            Some(RingOrder::Named(order)) => write!(f, ", {order} ring")?,
            Some(RingOrder::Listed(_)) | None => {}
        }
        if !self.0.dead.is_empty() {
            write!(f, ", {} dead", listed(&self.0.dead, " and "))?;
        }
        if *contact_dead {
            f.write_str(", the dead contacted")?;
        }
        f.write_str(&starters(self.0.initiators.as_ref()))?;
        if let Some(window) = window {
            write!(f, ", W={}", in_units(window))?;
        }
        for link in &self.0.link {
            let kind = link.kind.as_deref().unwrap_or("everything");
            let to = link.to.map_or(String::new(), |id| format!(" to {id}"));
            let delay = link.delay.as_deref().map_or(String::new(), in_units);
            write!(f, ", {kind}{to} takes {delay}")?;
        }
        for fault in &self.0.fault {
            if let Some(id) = fault.crash {
                write!(f, ", {id} crashes")?;
            }
            if let Some(at) = &fault.at {
                write!(f, " at {}", in_units(at))?;
            }
            if let Some(after) = &fault.when {
                write!(f, " after its first {}", after.kind)?;
            }
        }
        if let Some(until) = &self.0.until {
            write!(f, ", in the first {}", in_units(until))?;
        }
        Ok(())
    }
}

fn starters(initiators: Option<&Initiators>) -> String {
    let listed = match initiators {
        None => return ", 1 starts".to_owned(),
        Some(Initiators::Named(name)) => return format!(", {name} start"),
        Some(Initiators::Listed(listed)) => listed,
    };
    let mut text = ", ".to_owned();
    for (place, initiator) in listed.iter().enumerate() {
        let comma = if place > 0 { " and " } else { "" };
        let _ = match initiator {
            Initiator::AtOnce(id) => write!(text, "{comma}{id}"),
            Initiator::At { member, at } => write!(text, "{comma}{member} at {}", in_units(at)),
        };
    }
    text.push_str(if listed.len() == 1 { " starts" } else { " start" });
    text
}

fn listed(ids: &[u32], between: &str) -> String {
    let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
    ids.join(between)
}

/// A time of this module's making in units of D.
fn in_units(time: &str) -> String {
    match time.trim_end_matches("ms") {
        "0" => "0".to_owned(),
        number => format!("{number}D"),
    }
}
