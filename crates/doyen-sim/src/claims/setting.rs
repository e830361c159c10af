//! Cases in a few words. D is 1ms throughout, so times here are in units of D.

use std::fmt::{self, Write as _};

use doyen_core::algorithm::Algorithm;
use doyen_core::config::{Mode, Variant};
use doyen_core::members::NodeId;
use doyen_core::time::Span;

use crate::fault::{Action, Fault, LinkOverride, Trigger};
use crate::network::DelayModel;
use crate::scenario::{Case, Convention, Initiator, Initiators, MemberList, RingOrder, Scenario};
use crate::time::Time;

/// A case in the making.
#[derive(Clone)]
pub(super) struct Setting(Scenario);

impl Setting {
    /// Members `1..=n`, all alive; the lowest starts. Convention `live`.
    pub(super) fn live(algorithm: Algorithm, n: u32) -> Self {
        Self(Scenario {
            algorithm: Some(algorithm),
            members: Some(MemberList::Count(u64::from(n))),
            ..Scenario::default()
        })
    }

    /// Members `1..=N`, of which N is the crashed coordinator, as everybody knows. Convention `configured`.
    pub(super) fn configured(algorithm: Algorithm, n: u32) -> Self {
        let mut setting = Self::live(algorithm, n);
        setting.0.convention = Some(Convention::Configured);
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
        self.0.mode = Some(Mode::Literal(variant));
        self
    }

    pub(super) fn hardened(mut self) -> Self {
        self.0.mode = Some(Mode::Hardened);
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
        self.0.initiators = Some(Initiators::All);
        self
    }

    /// The ring runs by descending ids.
    pub(super) fn falling(mut self) -> Self {
        self.0.ring = Some(RingOrder::Descending);
        self
    }

    /// The ring is drawn.
    pub(super) fn shuffled(mut self, seed: u64) -> Self {
        self.0.ring = Some(RingOrder::Random);
        self.0.seed = Some(seed);
        self
    }

    pub(super) fn window(mut self, window: f64) -> Self {
        self.0.window = Some(millis(window));
        self
    }

    /// Messages of this kind, to this member if one is named, take so long.
    pub(super) fn delay(mut self, kind: &str, to: Option<u32>, delay: f64) -> Self {
        let delay = Some(DelayModel::Fixed(millis(delay).as_nanos()));
        let (to, kind) = (to.map(NodeId), Some(kind.to_owned()));
        self.0.link.push(LinkOverride { to, kind, delay, ..LinkOverride::default() });
        self
    }

    /// `member` crashes at this time.
    pub(super) fn crash_at(mut self, member: u32, at: f64) -> Self {
        let crash = Action::Crash { member: NodeId(member), forwards: false };
        self.0.fault.push(Fault::at(Time::ZERO + millis(at), crash));
        self
    }

    /// `member` crashes as soon as it has sent its first message of this kind.
    pub(super) fn crash_after_sending(mut self, member: u32, kind: &str) -> Self {
        let (member, kind) = (NodeId(member), kind.to_owned());
        let when = Trigger::Message { member, sent: true, kind, count: 1 };
        self.0.fault.push(Fault { when, what: Action::Crash { member, forwards: false } });
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

fn millis(time: f64) -> Span {
    Span::from_nanos((time * 1e6).round() as u64)
}

impl fmt::Display for Setting {
    /// `bully eager, n=6, 1 and 6 start`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scenario { algorithm, mode, convention, contact_dead, window, .. } = &self.0;
        f.write_str(algorithm.map_or("", |algorithm| algorithm.name()))?;
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
            Some(RingOrder::Listed(_)) | None => {}
            Some(order) => write!(f, ", {} ring", order.name())?,
        }
        if !self.0.dead.is_empty() {
            write!(f, ", {} dead", listed(&self.0.dead, " and "))?;
        }
        if *contact_dead {
            f.write_str(", the dead contacted")?;
        }
        f.write_str(&starters(self.0.initiators.as_ref()))?;
        if let Some(window) = window {
            write!(f, ", W={}", in_units(*window))?;
        }
        for link in &self.0.link {
            let kind = link.kind.as_deref().unwrap_or("everything");
            let to = link.to.map_or(String::new(), |id| format!(" to {id}"));
            let delay = link.delay.map_or(0, DelayModel::bound);
            let delay = in_units(Span::from_nanos(delay));
            write!(f, ", {kind}{to} takes {delay}")?;
        }
        for fault in &self.0.fault {
            if let Action::Crash { member, .. } = fault.what {
                write!(f, ", {member} crashes")?;
            }
            match &fault.when {
                Trigger::At(at) => write!(f, " at {}", in_units(*at - Time::ZERO))?,
                Trigger::Message { kind, .. } => write!(f, " after its first {kind}")?,
            }
        }
        if let Some(until) = &self.0.until {
            write!(f, ", in the first {}", in_units(*until))?;
        }
        Ok(())
    }
}

fn starters(initiators: Option<&Initiators>) -> String {
    let listed = match initiators {
        None => return ", 1 starts".to_owned(),
        Some(Initiators::All) => return ", all start".to_owned(),
        Some(Initiators::None) => return ", none start".to_owned(),
        Some(Initiators::Listed(listed)) => listed,
    };
    let mut text = ", ".to_owned();
    for (place, initiator) in listed.iter().enumerate() {
        let comma = if place > 0 { " and " } else { "" };
        let _ = match initiator {
            Initiator::AtOnce(id) => write!(text, "{comma}{id}"),
            Initiator::At { member, at } => write!(text, "{comma}{member} at {}", in_units(*at)),
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
fn in_units(time: Span) -> String {
    match time.as_nanos() as f64 / 1e6 {
        0.0 => "0".to_owned(),
        number => format!("{number}D"),
    }
}
