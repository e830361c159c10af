//! Judges a run while it goes on: is what must never happen not happening, and did it end as it must?
//!
//! A world tells its oracle of every view that changes, every crash, every restart and everything that is stored, at the
//! moment when it happens: no record is made and nothing is copied, so that millions of runs can be judged. A world
//! without one does not notice the difference. What must hold is named by the checker's own
//! [properties](crate::check::property); of them an oracle knows three that hold at every instant (A4, one leader a
//! term, terms never fall) and those that are about the end of a run (A1, A2, A3 and 004's two). The first breach
//! counts: whatever follows may be its consequence.

use doyen_core::members::{Epoch, Members, NodeId};
use doyen_core::protocol::{Role, View};
use doyen_core::time::Span;

use crate::account::{Ended, Outcome};
use crate::check::property::Property;
use crate::hash::FastMap;
use crate::time::Time;

/// Watches over the properties of one run.
#[derive(Clone, Debug)]
pub struct Oracle {
    properties: Vec<Property>,
    members: Vec<Watched>,
    /// Who led in which term first.
    reigns: FastMap<Epoch, NodeId>,
    /// When somebody's view changed last.
    last_change: Time,
    /// When somebody crashed or came up last.
    last_fault: Time,
    breach: Option<Breach>,
}

/// What an oracle knows about a member.
#[derive(Clone, Copy, Debug)]
struct Watched {
    id: NodeId,
    leads: bool,
    /// The term on its disk.
    stored: Epoch,
}

/// A property that was broken, when, and the facts that contradict each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Breach {
    /// What was broken.
    pub property: Property,
    /// When; the end of the run for what is about its end.
    pub at: Time,
    /// The facts that no run with this property shows, in words.
    pub evidence: Vec<String>,
}

impl Oracle {
    /// One that watches over `properties`.
    pub fn new(members: &Members, properties: &[Property]) -> Self {
        let watched = |id| Watched { id, leads: false, stored: Epoch::default() };
        Self {
            properties: properties.to_vec(),
            members: members.iter().map(watched).collect(),
            reigns: FastMap::default(),
            last_change: Time::ZERO,
            last_fault: Time::ZERO,
            breach: None,
        }
    }

    /// The member at `position` believes something else now.
    pub(crate) fn saw_view(&mut self, at: Time, position: u32, view: View) {
        self.last_change = at;
        let leads = view.role == Role::Leader;
        let began = leads && !self.members[position as usize].leads;
        self.members[position as usize].leads = leads;
        if !leads {
            return;
        }
        let id = self.members[position as usize].id;
        if began && self.watches(Property::OneLeader) {
            let other = self.members.iter().find(|member| member.leads && member.id != id);
            if let Some(other) = other {
                let evidence = vec![format!("{} leads", other.id), format!("{id} leads")];
                self.found(Property::OneLeader, at, evidence);
            }
        }
        // Epoch zero means that the algorithm knows no terms.
        if view.epoch > Epoch::default() && self.watches(Property::OneLeaderPerTerm) {
            let first = *self.reigns.entry(view.epoch).or_insert(id);
            if first != id {
                let term = view.epoch;
                let evidence = vec![
                    format!("{first} led in term {term}"),
                    format!("{id} leads in term {term}"),
                ];
                self.found(Property::OneLeaderPerTerm, at, evidence);
            }
        }
    }

    /// The member at `position` has stored `term`.
    pub(crate) fn saw_stored(&mut self, at: Time, position: u32, term: Epoch) {
        let member = &mut self.members[position as usize];
        let (id, before) = (member.id, std::mem::replace(&mut member.stored, term));
        if term < before && self.watches(Property::TermsNeverFall) {
            let evidence = vec![
                format!("{id} had stored term {before}"),
                format!("{id} has stored term {term} over it"),
            ];
            self.found(Property::TermsNeverFall, at, evidence);
        }
    }

    /// The member at `position` has crashed.
    pub(crate) fn saw_crash(&mut self, at: Time, position: u32) {
        self.last_fault = at;
        self.members[position as usize].leads = false;
    }

    /// The member at `position` is up again; without its disk it has no term that could fall.
    pub(crate) fn saw_restart(&mut self, at: Time, position: u32, disk: bool) {
        self.last_fault = at;
        if !disk {
            self.members[position as usize].stored = Epoch::default();
        }
    }

    /// The run is over. What must hold at rest is judged only if it came to rest: a run that does not breaks A3.
    pub fn close(&mut self, members: &Members, outcome: &Outcome) {
        let at = outcome.end;
        if outcome.ended != Ended::Quiet {
            let evidence = vec![
                "all trouble was over".to_owned(),
                format!("the run had not come to rest by {at}"),
            ];
            for property in [Property::Termination, Property::Liveness004] {
                if self.watches(property) {
                    self.found(property, at, evidence.clone());
                }
            }
            return;
        }
        let at_the_end = |property: &&Property| property.is_about_the_end();
        let broken = |property: &&Property| !property.holds(members, &outcome.views);
        let broken = self.properties.iter().filter(at_the_end).find(broken).copied();
        if let Some(property) = broken {
            let facts = property.evidence(members, &outcome.views);
            self.found(property, at, facts.iter().map(ToString::to_string).collect());
        }
    }

    /// The first breach, if there was one.
    pub fn breach(&self) -> Option<&Breach> {
        self.breach.as_ref()
    }

    /// How long views went on changing after `calm`, the end of all trouble that was known beforehand, or after the
    /// last crash or restart if that came later.
    pub fn recovery(&self, calm: Time) -> Span {
        self.last_change - calm.max(self.last_fault)
    }

    fn watches(&self, property: Property) -> bool {
        self.properties.contains(&property)
    }

    fn found(&mut self, property: Property, at: Time, evidence: Vec<String>) {
        self.breach.get_or_insert(Breach { property, at, evidence });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALWAYS: [Property; 3] =
        [Property::OneLeader, Property::OneLeaderPerTerm, Property::TermsNeverFall];

    fn oracle(properties: &[Property]) -> Oracle {
        Oracle::new(&Members::range(1, 3).unwrap(), properties)
    }

    fn leading(id: u32, epoch: u64) -> View {
        View { leader: Some(NodeId(id)), epoch: Epoch(epoch), role: Role::Leader }
    }

    fn broken(oracle: &Oracle) -> Option<(Property, Time)> {
        oracle.breach().map(|breach| (breach.property, breach.at))
    }

    #[test]
    fn two_who_lead_at_once_are_found_at_that_instant() {
        let mut oracle = oracle(&ALWAYS);
        oracle.saw_view(Time(1), 2, leading(3, 1));
        oracle.saw_view(Time(5), 0, leading(1, 2));
        assert_eq!(broken(&oracle), Some((Property::OneLeader, Time(5))));
        assert_eq!(oracle.breach().unwrap().evidence, ["3 leads", "1 leads"]);
    }

    #[test]
    fn who_leads_after_a_crash_leads_alone_but_not_in_the_same_term() {
        let mut oracle = oracle(&ALWAYS);
        oracle.saw_view(Time(1), 2, leading(3, 1));
        oracle.saw_crash(Time(2), 2);
        oracle.saw_view(Time(3), 1, leading(2, 2));
        assert_eq!(broken(&oracle), None);
        oracle.saw_crash(Time(4), 1);
        oracle.saw_view(Time(5), 0, leading(1, 2));
        assert_eq!(broken(&oracle), Some((Property::OneLeaderPerTerm, Time(5))));
    }

    #[test]
    fn a_stored_term_may_fall_only_with_the_disk() {
        let mut oracle = oracle(&ALWAYS);
        oracle.saw_stored(Time(1), 0, Epoch(4));
        oracle.saw_crash(Time(2), 0);
        oracle.saw_restart(Time(3), 0, false);
        oracle.saw_stored(Time(4), 0, Epoch(1));
        assert_eq!(broken(&oracle), None);
        oracle.saw_restart(Time(5), 0, true);
        oracle.saw_stored(Time(6), 0, Epoch(0));
        assert_eq!(broken(&oracle), Some((Property::TermsNeverFall, Time(6))));
    }

    #[test]
    fn what_is_not_asked_for_is_not_found() {
        let mut oracle = oracle(&[Property::TermsNeverFall]);
        oracle.saw_view(Time(1), 2, leading(3, 1));
        oracle.saw_view(Time(5), 0, leading(1, 1));
        assert_eq!(broken(&oracle), None);
    }
}
