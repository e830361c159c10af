//! Which properties a check judges, and which it skips, each with the reason.

use std::str::FromStr;

use doyen_sim::scenario::{Case, ScenarioError};

use crate::budget::Budget;
use crate::property::Property;
use crate::timers::Timers;

/// A property that is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// Every property.
    All,
    /// This one.
    One(Property),
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("all") { Ok(Self::All) } else { text.parse().map(Self::One) }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
/// The properties that a check judges.
pub struct Selection {
    /// Those that are judged.
    pub checked: Vec<Property>,
    /// Those that are not, with the reason, which continues "A3 is …".
    pub skipped: Vec<(Property, &'static str)>,
}

impl Selection {
    /// Selects the wanted properties, or the usual ones. `skip` gives the reason to skip one, and the remedy. A property
    /// that was named and cannot be checked is an error.
    pub fn new(
        wanted: &[Wanted],
        usual: Vec<Property>,
        skip: impl Fn(Property) -> Option<(&'static str, &'static str)>,
    ) -> Result<Self, ScenarioError> {
        let is_wanted = |property: &Property| wanted.contains(&Wanted::One(*property));
        let (is_named, properties) = match wanted {
            [] => (false, usual),
            wanted if wanted.contains(&Wanted::All) => (false, Property::ALL.to_vec()),
            _ => (true, Property::ALL.into_iter().filter(is_wanted).collect()),
        };
        let mut selection = Self::default();
        for property in properties {
            match skip(property) {
                None => selection.checked.push(property),
                Some((why, remedy)) if is_named => {
                    let problem = format!("{property} is {why}; {remedy}");
                    return Err(ScenarioError::new("property", problem));
                }
                Some((why, _)) => selection.skipped.push((property, why)),
            }
        }
        selection.skipped.sort_by_key(|&(_, why)| why);
        Ok(selection)
    }

    /// One line for each reason.
    pub fn describe_skipped(&self) -> String {
        let lines = self.skipped.chunk_by(|(_, one), (_, other)| one == other).map(|group| {
            let names: Vec<&str> = group.iter().map(|(property, _)| property.name()).collect();
            format!("Not checked: {} ({}).\n", names.join(", "), group[0].1)
        });
        lines.collect()
    }

    /// The same for an exploration of `case` within `budget`.
    pub fn explorable(
        wanted: &[Wanted],
        case: &Case,
        budget: Budget,
        timers: Timers,
    ) -> Result<Self, ScenarioError> {
        let no_end = match timers {
            Timers::Clocked { .. } => Some((
                "about how runs end, which is open if messages take any time",
                "use --timers bounded",
            )),
            _ if budget.is_endless() => Some((
                "about how runs end, and with an unlimited fault budget they need not",
                "limit the faults",
            )),
            _ => None,
        };
        let mut usual = Property::usual_of(case.algorithm, case.mode());
        if budget.snapshots > 0 && !usual.contains(&Property::ConsistentCut) {
            usual.push(Property::ConsistentCut);
        }
        if budget.tells > 0 && case.algorithm.orders_requests(case.network.fifo) {
            usual.push(Property::CausalOrder);
        }
        Self::new(wanted, usual, |property| {
            let is_layered = case.reliable || case.detector.is_some();
            if property == Property::CausalOrder && is_layered {
                return Some((
                    "explored without layers beneath the algorithm",
                    "leave out --reliable and --detector",
                ));
            }
            if let Some(reason) = property.means_nothing_to(case.algorithm, case.network.fifo) {
                return Some(reason);
            }
            if property == Property::ConsistentCut && budget.snapshots == 0 {
                return Some(("about snapshots, of which there are none", "add --snapshots 1"));
            }
            match property.is_explorable(timers) {
                true => no_end.filter(|_| !property.is_safety()),
                false if Property::LASTING.contains(&property) => {
                    Some(("about lasting faults", "use --random --lasting"))
                }
                false => {
                    Some(("about time, which free timers do not keep", "use --timers clocked"))
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip(property: Property) -> Option<(&'static str, &'static str)> {
        (!property.is_safety()).then_some(("about ends", "look"))
    }

    #[test]
    fn every_wanted_property_is_checked_or_skipped_with_a_reason() {
        for (wanted, count) in [(&[Wanted::All][..], Property::ALL.len()), (&[], 6)] {
            let selection = Selection::new(wanted, Property::USUAL.to_vec(), skip).unwrap();
            assert_eq!(selection.checked.len() + selection.skipped.len(), count);
            assert!(selection.describe_skipped().contains("A1, A2, A3"));
        }
    }

    #[test]
    fn a_named_property_that_cannot_be_checked_is_an_error_whatever_its_case() {
        let select = |text: &str| {
            let wanted: Vec<Wanted> = text.split(' ').map(|name| name.parse().unwrap()).collect();
            Selection::new(&wanted, Vec::new(), skip).map_err(|error| error.problem)
        };
        assert_eq!(select("A4 a3").unwrap_err(), "A3 is about ends; look");
        assert_eq!(select("a4 A4").unwrap().checked, [Property::OneLeader]);
    }
}
