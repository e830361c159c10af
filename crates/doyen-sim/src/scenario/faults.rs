//! Checks the faults of a scenario against its members.

use doyen_core::config::Timing;
use doyen_core::config::quorum::Settings;
use doyen_core::members::{Members, NodeId};
use doyen_core::protocol::Kind;
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;

use super::parse::{Result, kind, member};
use super::{Scenario, ScenarioError};
use crate::fault::{Action, ChaosKind, Fault, LinkOverride, Trigger};
use crate::network::LinkRule;

/// The shortest time between two changes of an attribute.
const MOST_CHANGES: u64 = 100_000;
/// The most random faults of a kind: more than any run needs.
const MAX_RANDOM_FAULTS: u64 = 1_000_000;

impl Scenario {
    /// The link overrides.
    pub(super) fn resolve_links(&self, members: &Members, kinds: &[Kind]) -> Result<Vec<LinkRule>> {
        let resolve = |(index, link): (usize, &LinkOverride)| {
            let ids = [("from", link.from), ("to", link.to)];
            for (name, id) in ids.into_iter().filter_map(|(name, id)| Some((name, id?))) {
                member(members, &format!("link[{index}].{name}"), id.0)?;
            }
            check_kind(kinds, &format!("link[{index}].kind"), link)?;
            let position = |id| members.position(id).map_or(0, |position| position as u32);
            let number = |name: &str| kind(kinds, "kind", name).unwrap_or_default();
            Ok(link.rule(position, number))
        };
        self.link.iter().enumerate().map(resolve).collect()
    }

    /// The fault schedule, with every single change of an attribute.
    pub(super) fn resolve_faults(
        &self,
        algorithm: Algorithm,
        members: &Members,
        kinds: &[Kind],
        quorum: &Settings,
        timing: &Timing,
    ) -> Result<Vec<Fault>> {
        for (index, fault) in self.fault.iter().enumerate() {
            let key = |name: &str| format!("fault[{index}].{name}");
            for (name, id) in fault.clone().members_mut() {
                member(members, &key(name), id.0)?;
            }
            if let Trigger::Message { kind: name, .. } = &fault.when {
                kind(kinds, &key("when"), name)?;
            }
            let wrong = |name: &str, problem: String| Err(ScenarioError::new(key(name), problem));
            match &fault.what {
                Action::Crash { forwards: true, .. } if !algorithm.is_ring() => {
                    let problem =
                        format!("{algorithm} has no ring along which a dead member could forward");
                    return wrong("forwards", problem);
                }
                Action::Restart { member, pace: Some(pace), .. } => {
                    let mut changed = quorum.clone();
                    changed.paces.insert(*member, pace.over(quorum.pace));
                    if let Err(refusal) = changed.check(timing, members) {
                        return wrong("pace", refusal.to_string());
                    }
                }
                Action::Cut { from, to } if from == to => {
                    let problem = format!("{from} cannot be cut off from itself; name two members");
                    return wrong("cut", problem);
                }
                Action::Partition { groups, .. } => {
                    if let Some(id) = repeated(groups) {
                        return wrong("partition", format!("member {id} is in two groups"));
                    }
                }
                Action::LinkOverride(link) => check_kind(kinds, &key("link"), link)?,
                Action::Drop { kind: name } => drop(kind(kinds, &key("drop"), name)?),
                Action::Attributes { .. } if fault.time().is_none() => {
                    return wrong("values", "take turns from a time on: give `at`".to_owned());
                }
                Action::Attributes { .. } if fault.times() > MOST_CHANGES => {
                    let times = fault.times();
                    let problem =
                        format!("{times} changes are too many; {MOST_CHANGES} are possible");
                    return wrong("every", problem);
                }
                _ => {}
            }
        }
        Ok(self.fault.iter().flat_map(Fault::occurrences).collect())
    }

    pub(super) fn check_chaos(&self) -> Result<()> {
        let Some(chaos) = &self.chaos else { return Ok(()) };
        let wrong =
            |key: &str, problem: String| Err(ScenarioError::new(format!("chaos.{key}"), problem));
        let missing = || "is missing; give a length of time such as 5ms".to_owned();
        let Some(until) = chaos.until else { return wrong("until", missing()) };
        for kind in ChaosKind::ALL {
            let (every, lasting) = match kind {
                ChaosKind::Crash => ("crash_every", ("down_for", chaos.down_for)),
                ChaosKind::Pause => ("pause_every", ("pause_for", chaos.pause_for)),
                ChaosKind::Cut => ("cut_every", ("cut_for", chaos.cut_for)),
            };
            let Some((mean, _)) = chaos.rate(kind) else { continue };
            if mean == Span::ZERO {
                return wrong(every, "must be above zero".to_owned());
            }
            let faults = until.as_nanos() / mean.as_nanos();
            if faults > MAX_RANDOM_FAULTS {
                let problem =
                    format!("about {faults} faults until {until} are too many; use a longer time");
                return wrong(every, problem);
            }
            if let (name, None) = lasting {
                return wrong(name, missing());
            }
        }
        Ok(())
    }
}

fn check_kind(kinds: &[Kind], key: &str, link: &LinkOverride) -> Result<()> {
    link.kind.as_deref().map_or(Ok(()), |name| kind(kinds, key, name).map(drop))
}

/// A member that is named twice.
fn repeated(groups: &[Vec<NodeId>]) -> Option<NodeId> {
    let mut ids: Vec<NodeId> = groups.iter().flatten().copied().collect();
    ids.sort_unstable();
    ids.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}
