//! Judges a run while it goes on: is what must never happen not happening, and did it end as it must?
//!
//! A world tells its oracle of every view that changes, every crash, every restart and everything that is stored, at the
//! moment when it happens: no record is made and nothing is copied, so that millions of runs can be judged. A world
//! without one does not notice the difference. What must hold is named by the checker's own
//! [properties](crate::check::property); of them an oracle knows three that hold at every instant (A4, one leader a
//! term, terms never fall) and those that are about the end of a run (A1, A2, A3 and 004's two). The first breach
//! counts: whatever follows may be its consequence.

mod audit;

use doyen_core::members::{Epoch, Members, NodeId};
use doyen_core::protocol::{Order, Pledge, View};
use doyen_core::time::Span;

use crate::account::{Ended, Outcome};
use crate::check::property::Property;
use crate::hash::FastMap;
use crate::scenario::Case;
use crate::time::Time;
use audit::Audit;

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
    /// Where leaders have leases: the books on votes, promises and leases.
    audit: Option<Box<Audit>>,
    /// How good members are that are not as good as they were set up to be: attributes change, and some never lead.
    ratings: FastMap<NodeId, i64>,
    breach: Option<Breach>,
}

/// What an oracle knows about a member.
#[derive(Clone, Copy, Debug)]
struct Watched {
    id: NodeId,
    leads: bool,
    /// Its term, as it believes.
    term: Epoch,
    /// The term on its disk.
    stored: Epoch,
    /// The vote in that term on its disk.
    vote: Option<NodeId>,
}

/// The rating of a member that never leads: nobody else's is so low.
const NEVER: i64 = i64::MIN;

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
        let (term, stored) = (Epoch::default(), Epoch::default());
        let watched = |id| Watched { id, leads: false, term, stored, vote: None };
        Self {
            properties: properties.to_vec(),
            members: members.iter().map(watched).collect(),
            reigns: FastMap::default(),
            last_change: Time::ZERO,
            last_fault: Time::ZERO,
            audit: None,
            ratings: FastMap::default(),
            breach: None,
        }
    }

    /// One that watches over `properties` of a run of `case`.
    pub fn of(case: &Case, properties: &[Property]) -> Self {
        let mut oracle = Self::new(case.members(), properties);
        if case.algorithm.has_leases() {
            let settings = &case.config.quorum;
            oracle.audit = Some(Box::new(Audit::new(case.members(), settings, case.leader)));
            let never = settings.witnesses.iter().chain(settings.reluctant.iter());
            oracle.ratings = never.map(|id| (id, NEVER)).collect();
        }
        oracle
    }

    /// The member at `position` believes something else now.
    pub(crate) fn saw_view(&mut self, at: Time, position: u32, view: View) {
        self.last_change = at;
        let leads = view.role.leads();
        let began = leads && !self.members[position as usize].leads;
        self.members[position as usize].leads = leads;
        self.members[position as usize].term = view.epoch;
        if !leads {
            return;
        }
        let id = self.members[position as usize].id;
        // With leases it is the lease that counts: who is paused may believe anything.
        if began && self.audit.is_none() && self.watches(Property::OneLeader) {
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

    /// The member at `position` has stored `term`, and for whom it voted in it.
    pub(crate) fn saw_stored(
        &mut self,
        at: Time,
        position: u32,
        term: Epoch,
        vote: Option<NodeId>,
    ) {
        let member = &mut self.members[position as usize];
        member.vote = vote;
        let (id, before) = (member.id, std::mem::replace(&mut member.stored, term));
        if term < before && self.watches(Property::TermsNeverFall) {
            let evidence = vec![
                format!("{id} had stored term {before}"),
                format!("{id} has stored term {term} over it"),
            ];
            self.found(Property::TermsNeverFall, at, evidence);
        }
    }

    /// One member has sent another a message that binds it.
    pub(crate) fn saw_pledge(&mut self, at: Time, from: u32, to: u32, pledge: Pledge) {
        let Watched { stored, vote, .. } = self.members[from as usize];
        if let Some(audit) = &mut self.audit {
            let found = audit.pledge(at, from, to, pledge, (stored, vote));
            self.found_by_audit(at, found);
        }
    }

    /// The lease of the member at `position` runs until another time than before.
    pub(crate) fn saw_lease(&mut self, at: Time, position: u32, until: Option<Time>) {
        let Watched { term, stored, .. } = self.members[position as usize];
        if let Some(audit) = &mut self.audit {
            let found = audit.lease(at, position, until, term, stored);
            self.found_by_audit(at, found);
        }
    }

    /// Everything has been stopped that ran under the lease of the member at `position`.
    pub(crate) fn saw_retired(&mut self, position: u32) {
        if let Some(audit) = &mut self.audit {
            audit.retired(position);
        }
    }

    /// The operator wants something of the member at `position`.
    pub(crate) fn saw_order(&mut self, position: u32, order: Order) {
        let id = self.members[position as usize].id;
        match order {
            Order::Attribute(attr) => {
                self.ratings
                    .entry(id)
                    .and_modify(|rating| {
                        if *rating != NEVER {
                            *rating = attr;
                        }
                    })
                    .or_insert(attr);
            }
            Order::Resign | Order::Transfer { .. } | Order::Prefer { .. } => {}
            Order::Drain { .. } | Order::Undrain => {}
        }
    }

    fn found_by_audit(&mut self, at: Time, found: Option<audit::Found>) {
        if let Some((property, evidence)) = found
            && self.watches(property)
        {
            self.found(property, at, evidence);
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
            let member = &mut self.members[position as usize];
            (member.stored, member.vote) = (Epoch::default(), None);
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
        let rated = self.rated(members);
        let members = rated.as_ref().unwrap_or(members);
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

    /// The members as good as they are now, if that is not what they were set up to be.
    fn rated(&self, members: &Members) -> Option<Members> {
        if self.ratings.is_empty() {
            return None;
        }
        let attr = |id| self.ratings.get(&id).copied().unwrap_or(members.key(id).attr);
        members.clone().with_attrs(members.iter().map(|id| (id, attr(id)))).ok()
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
    use doyen_core::protocol::Role;

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
        oracle.saw_stored(Time(1), 0, Epoch(4), None);
        oracle.saw_crash(Time(2), 0);
        oracle.saw_restart(Time(3), 0, false);
        oracle.saw_stored(Time(4), 0, Epoch(1), None);
        assert_eq!(broken(&oracle), None);
        oracle.saw_restart(Time(5), 0, true);
        oracle.saw_stored(Time(6), 0, Epoch(0), None);
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
