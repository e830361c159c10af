//! Judges a run while it happens.
//!
//! A world tells its oracle of every message, election, view, crash, restart and write at the moment when it happens. No
//! record is made and nothing is copied, so that millions of runs can be judged; a world without an oracle pays nothing. The
//! oracle judges the [properties](crate::property), all but bounded terms, which only an exploration can judge: those that
//! hold at every instant (A4, one leader a term, terms never fall, bounded messages, the rules of the critical section and, with
//! leases, those of the [ledger](doyen_core::ledger) through `oracle/audit.rs`), and those about the end of a run (A1, A2, A3,
//! cs425's two, and that every member is served).
//! The first breach counts, because later ones may be its consequences.
//!
//! # Old processes
//!
//! A member may have an old process beside its present one (see `world/process.rs`), which has a position of its own,
//! behind those of the members. What it counts as:
//!
//! | property | an old process |
//! |---|---|
//! | A1, A2, A3, A4 of members without leases | is not asked what it believes in the end, but must have stopped for a run to come to rest; if it leads, it is a leader like any other |
//! | A4, with leases | has a lease of its own: no other process may have one meanwhile, not even its member's present process |
//! | one-leader-per-term | is another leader than its member's present process |
//! | terms-never-fall, stored-first | has a disk of its own |
//! | one-vote-per-term, vote-leases-kept | is a voter of its own from its replacement on: what it sends may not be counted. What it had sent before binds its replacement too |
//! | leases-rise | is another holder than its member's present process; a vote of it and one of its replacement are one vote |
//! | leases-covered | speaks for its member until the replacement can vote: see `oracle/cover.rs` |
//! | leader-in-time, steady-leader | is another leader than its member's present process |

mod audit;
mod cover;
mod first_lease;
mod lasting;
mod ratings;

use doyen_core::ledger::sections::Sections;
use doyen_core::ledger::{Contradiction, Entry, Invariant, Stored};
use doyen_core::members::{Members, NodeId, Term};
use doyen_core::protocol::{AdminCommand, Bonds, Pledge, Role, Section, View};
use doyen_core::time::Span;

use crate::ending::Ending;
use crate::property::{Fact, Property, Seen, belief, longest_message};
use audit::Audit;
use doyen_sim::cut::State;
use doyen_sim::fault::Disk;
use doyen_sim::hash::FastMap;
use doyen_sim::metrics::{Ended, Outcome};
use doyen_sim::monitor::{Counted, Monitor, Sending};
use doyen_sim::run;
use doyen_sim::scenario::Case;
use doyen_sim::time::Time;
use doyen_sim::trace::Observer;
use doyen_sim::world::Watchers;
use first_lease::FirstLease;
use lasting::Lasting;
use ratings::Ratings;

/// For a run that does not come to rest, at most so many members without a leader are named.
const MAX_NAMED: usize = 4;

/// Judges the properties of one run.
#[derive(Clone, Debug)]
pub struct Oracle {
    properties: Vec<Property>,
    /// Every member, and behind them every second process.
    members: Vec<Watched>,
    /// The present process of each member.
    present: Vec<u32>,
    /// The first leader of each term, and since when it led.
    leaderships: FastMap<Term, (u32, Time)>,
    /// The longest message that is allowed, in bytes.
    longest: usize,
    /// The time of the last change of a view.
    last_change: Time,
    /// The time of the last crash or start.
    last_fault: Time,
    /// Where members are with respect to the critical section.
    sections: Sections,
    /// With leases: what is known of votes and leases.
    audit: Option<Box<Audit>>,
    /// The same: who should lead in the end, and the wait for the first lease.
    ratings: Ratings,
    first_lease: FirstLease,
    /// With lasting faults: the leaders.
    lasting: Option<Box<Lasting>>,
    /// The number of elections, and the caller and time of the last.
    elections: u64,
    last_election: Option<(NodeId, Time)>,
    last_message: Option<(Sending, Time)>,
    breach: Option<Breach>,
    undecided: bool,
}

/// What the oracle knows about a process.
#[derive(Clone, Copy, Debug)]
struct Watched {
    /// What it has stored, and the leader to which it has given a vote lease.
    entry: Entry<Time>,
    /// Its term, as it believes.
    term: Term,
    /// Since when it believes what it does.
    since: Time,
    /// Since when it leads, if it does.
    leads: Option<Time>,
}

/// A broken property, the time, and the facts that contradict each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Breach {
    /// What was broken.
    pub property: Property,
    /// The time; for a property about the end of a run, that end.
    pub at: Time,
    /// The facts that no run with this property shows.
    pub evidence: Vec<Fact>,
    /// How the run ends that shows them.
    pub ending: Ending,
}

/// Runs `case` to its end and lets `oracle` judge it. `observer` sees every event.
pub fn judge(case: &Case, observer: Option<&mut dyn Observer>, oracle: &mut Oracle) -> Outcome {
    // The oracle is wanted back before the observer's time is over.
    let observer = observer.map(|observer| observer as &mut dyn Observer);
    let watchers = Watchers { observer, monitor: Some(&mut *oracle), progress: None };
    let outcome = run::watched(case, watchers);
    oracle.close(case.members(), &outcome);
    outcome
}

impl Oracle {
    /// An oracle for `properties`.
    pub fn new(members: &Members, properties: &[Property]) -> Self {
        let term = Term::default();
        let watched = |id| Watched { entry: Entry::new(id), term, since: Time::ZERO, leads: None };
        Self {
            properties: properties.to_vec(),
            members: members.iter().map(watched).collect(),
            present: (0..members.len() as u32).collect(),
            leaderships: FastMap::default(),
            longest: longest_message(members),
            last_change: Time::ZERO,
            last_fault: Time::ZERO,
            sections: Sections::default(),
            audit: None,
            ratings: Ratings::default(),
            first_lease: FirstLease::after(Time::ZERO),
            lasting: None,
            elections: 0,
            last_election: None,
            last_message: None,
            breach: None,
            undecided: false,
        }
    }

    /// An oracle for `properties` of a run of `case`.
    pub fn of(case: &Case, properties: &[Property]) -> Self {
        let mut oracle = Self::new(case.members(), properties);
        oracle.sections = Sections::new(case.algorithm.most_overtaking(case.network.fifo));
        if case.sessions {
            // An envelope, and what was met of every member.
            oracle.longest += 32 + 18 * case.members().len();
        }
        if case.algorithm.has_leases() {
            let settings = &case.config.quorum;
            oracle.audit = Some(Box::new(Audit::new(case.members(), settings, case.leader)));
            oracle.ratings = Ratings::new(settings);
            oracle.first_lease = FirstLease::after(case.calm());
            let is_lasting = properties.iter().any(|it| Property::LASTING.contains(it));
            oracle.lasting = is_lasting.then(|| Box::new(Lasting::new(case)));
        }
        oracle
    }

    fn id(&self, position: u32) -> NodeId {
        self.members[position as usize].entry.id
    }

    fn judge(&mut self, at: Time, found: impl IntoIterator<Item = Contradiction>) {
        for Contradiction { invariant, facts } in found {
            self.found(invariant.into(), at, facts);
        }
    }

    fn disturbed(&mut self, at: Time) {
        self.last_fault = at;
        self.first_lease.disturbed(at);
        if let Some(lasting) = &mut self.lasting {
            lasting.disturbed(at);
        }
    }

    /// The run is over. What must hold at rest is judged only if it came to rest: a run that does not breaks A3.
    fn close(&mut self, members: &Members, outcome: &Outcome) {
        self.close_lasting(outcome);
        self.close_snapshot(outcome);
        self.close_multicast(outcome);
        self.close_order(outcome);
        let views = outcome.views.to_vec();
        let rated = self.ratings.apply(members, &views);
        let members = rated.as_ref().unwrap_or(members);
        let seen = Seen::views(&views);
        let about_the_end: Vec<Property> = self
            .properties
            .iter()
            .copied()
            .filter(|property| property.is_about_the_end())
            .collect();
        let (broken, ending) = match outcome.ended {
            Ended::Quiet => {
                let breaks = |property: &&Property| !property.holds(members, &seen);
                (about_the_end.iter().find(breaks), Ending::Rest)
            }
            Ended::TimeLimit | Ended::MessageLimit | Ended::EventLimit | Ended::Interrupt => {
                let asks_for_rest = |property: &&Property| property.asks_for_rest();
                (about_the_end.iter().find(asks_for_rest), Ending::Limit)
            }
        };
        if let Some(&property) = broken {
            let evidence = match ending {
                Ending::Limit => self.unrest(&views),
                _ => property.evidence(members, &seen),
            };
            let breach = Breach { property, at: outcome.end, evidence, ending };
            self.breach.get_or_insert(breach);
        }
        let at_rest = outcome.ended == Ended::Quiet;
        self.undecided = !at_rest && self.breach.is_none() && !about_the_end.is_empty();
    }

    /// Whether the snapshot, if one was taken, is consistent. What a member records late belongs to it, so that is judged at
    /// the end.
    fn close_snapshot(&mut self, outcome: &Outcome) {
        let Some(cut) = outcome.snapshot.as_ref().filter(|cut| !cut.flaws.is_empty()) else {
            return;
        };
        let held = cut.recorded.iter().filter_map(|(&id, state)| match state {
            State::Held(held) => Some(Fact::new(id, format!("recorded {held}"))),
            State::View(_) => None,
        });
        let carried = cut.channels.iter().map(|it| {
            Fact::new(
                it.to,
                format!("recorded under way from {}: {}", it.from, it.messages.join(", ")),
            )
        });
        let noticed = cut.flaws.iter().filter_map(|it| Some(Fact::new(it.member?, &*it.text)));
        self.found(
            Property::ConsistentCut,
            outcome.end,
            held.chain(carried).chain(noticed).collect(),
        );
    }

    /// Whether requests entered in the order in which they happened, where members tell each other something.
    fn close_order(&mut self, outcome: &Outcome) {
        let of_order = |it: &&Contradiction| it.invariant == Invariant::CausalOrder;
        let broken = outcome.exclusion.iter().flat_map(|run| &run.broken).find(of_order);
        self.judge(outcome.end, broken.cloned());
    }

    /// Whether what the members of a multicast have delivered fits together. What was delivered stays delivered, so that is
    /// judged at the end.
    fn close_multicast(&mut self, outcome: &Outcome) {
        let Some(multicast) = &outcome.multicast else { return };
        for property in [Property::NoDuplicates, Property::TotalOrder, Property::DeliveriesStay] {
            if let Some(facts) = property.contradicted_by(multicast) {
                self.found(property, outcome.end, facts);
            }
        }
    }

    /// What a run with lasting faults has not shown by its end.
    fn close_lasting(&mut self, outcome: &Outcome) {
        let missed = self.lasting.as_mut().and_then(|lasting| lasting.missed(outcome.end));
        if let Some((property, fact)) = missed
            && self.watches(property)
        {
            let unrest = || self.unrest(&outcome.views.to_vec());
            let evidence = fact.map_or_else(unrest, |fact| vec![fact]);
            let (at, ending) = (outcome.end, Ending::Limit);
            self.breach.get_or_insert(Breach { property, at, evidence, ending });
        }
    }

    /// The members that are not at rest, and the last activity.
    fn unrest(&self, views: &[Option<View>]) -> Vec<Fact> {
        let present = || self.present.iter().map(|&position| self.members[position as usize]);
        let seen = || present().zip(views).filter_map(|(who, &view)| Some((who, view?)));
        let believes = |(who, view): (Watched, View)| {
            Fact::new(who.entry.id, format!("{} (since {})", belief(view), who.since))
        };
        let mut unserved = seen().filter(|(_, view)| view.section == Section::Waiting).peekable();
        if unserved.peek().is_some() {
            return unserved.take(MAX_NAMED).map(believes).collect();
        }
        let is_waiting =
            |(_, view): &(Watched, View)| view.leader.is_none() || view.role == Role::Candidate;
        let mut facts: Vec<Fact> =
            seen().filter(is_waiting).take(MAX_NAMED).map(believes).collect();
        if facts.is_empty() {
            facts.extend(seen().max_by_key(|&(who, _)| who.since).map(believes));
        }
        if let Some((caller, at)) = self.last_election {
            let last = format!("called the last of {} elections at {at}", self.elections);
            facts.push(Fact::new(caller, last));
        }
        if let Some((Sending { from, to, kind, .. }, at)) = self.last_message {
            let last = format!("sent the last election message, {kind} to {to}, at {at}");
            facts.push(Fact::new(from, last));
        }
        facts
    }

    /// The first breach, if there was one.
    pub fn breach(&self) -> Option<&Breach> {
        self.breach.as_ref()
    }

    /// Whether nothing was broken, but something could not be judged: it is about rest, to which the run did not come.
    pub fn is_undecided(&self) -> bool {
        self.undecided
    }

    /// How long views kept changing after `calm`, the last fault that was known beforehand, or after the last crash or
    /// restart if that came later.
    pub fn recovery(&self, calm: Time) -> Span {
        self.last_change - calm.max(self.last_fault)
    }

    /// The wait for a lease after the last fault, if there was one by `end`.
    pub fn first_lease(&mut self, end: Time) -> Option<Span> {
        self.first_lease.wait(end)
    }

    fn watches(&self, property: Property) -> bool {
        self.properties.contains(&property)
    }

    /// Something happened that must never happen; it counts if the property is watched over.
    fn found(&mut self, property: Property, at: Time, evidence: Vec<Fact>) {
        if self.watches(property) {
            let ending = Ending::There;
            self.breach.get_or_insert(Breach { property, at, evidence, ending });
        }
    }
}

impl Monitor for Oracle {
    fn view_changed(&mut self, at: Time, position: u32, view: View) {
        self.last_change = at;
        let found = self.sections.announce(self.id(position), view.section);
        self.judge(at, found);
        let member = &mut self.members[position as usize];
        member.since = at;
        member.term = view.term;
        if !view.role.leads() {
            member.leads = None;
            return;
        }
        let (id, began) = (member.entry.id, member.leads.is_none());
        member.leads.get_or_insert(at);
        // With leases the lease counts: a paused member may believe anything.
        if began && self.audit.is_none() && self.watches(Property::OneLeader) {
            let mut others = self.members.iter().enumerate();
            let other = others
                .find(|(place, other)| other.leads.is_some() && *place != position as usize)
                .map(|(_, other)| other);
            if let Some(&Watched { entry, leads: Some(since), .. }) = other {
                let evidence = vec![
                    Fact::new(entry.id, format!("leads (since {since})")),
                    Fact::new(id, format!("leads (since {at})")),
                ];
                self.found(Property::OneLeader, at, evidence);
            }
        }
        // Term zero means that the algorithm knows no terms.
        if view.term > Term::default() && self.watches(Property::OneLeaderPerTerm) {
            let term = view.term;
            let (first, since) = *self.leaderships.entry(term).or_insert((position, at));
            if first != position {
                let first = self.id(first);
                let evidence = vec![
                    Fact::new(first, format!("led in term {term}, from {since} on")),
                    Fact::new(id, format!("leads in term {term}, from {at} on")),
                ];
                self.found(Property::OneLeaderPerTerm, at, evidence);
            }
        }
    }

    fn stored(&mut self, at: Time, position: u32, stored: Stored) {
        let found = self.members[position as usize].entry.store(stored);
        self.judge(at, found);
    }

    fn drain_stored(&mut self, position: u32, drained: bool) {
        if !self.present.contains(&position) {
            return;
        }
        self.ratings.drain(self.id(position), drained);
    }

    fn pledged(&mut self, at: Time, from: u32, to: u32, pledge: Pledge) {
        if let Some(audit) = &mut self.audit {
            let entry = &mut self.members[from as usize].entry;
            let found = audit.pledge(at, (from, entry), to, pledge);
            self.judge(at, found);
        }
    }

    fn received(&mut self, position: u32, asked: Option<Span>, released: Option<Term>) {
        if let (Some(audit), Some(length)) = (&mut self.audit, asked) {
            audit.asked(position, length);
        }
        if let Some(term) = released {
            self.members[position as usize].entry.release(term);
        }
    }

    fn lease_changed(&mut self, at: Time, position: u32, lease: Option<(Time, Counted)>) {
        let Watched { entry, term, .. } = self.members[position as usize];
        let until = lease.map(|(until, _)| until);
        self.first_lease.lease(at, position, until);
        if let Some(audit) = &mut self.audit {
            let found = audit.lease(at, (position, &entry), term, lease);
            self.judge(at, found);
        }
        if let Some(lasting) = &mut self.lasting
            && let Some(evidence) = lasting.lease(at, position, term, until)
        {
            self.found(Property::SteadyLeader, at, evidence);
        }
    }

    fn bonds_changed(&mut self, position: u32, bonds: Bonds<Counted>) {
        if let Some(audit) = &mut self.audit {
            audit.bonds(position, bonds);
        }
    }

    fn event_ended(&mut self, at: Time) {
        if let Some(audit) = &mut self.audit {
            let found = audit.uncovered(at);
            self.judge(at, found);
        }
    }

    fn clock_changed(&mut self, at: Time, position: u32, moved: &dyn Fn(Time) -> Time) {
        if let Some(audit) = &mut self.audit {
            audit.clock_changed(at, position, moved);
        }
    }

    fn retired(&mut self, position: u32, term: Term) {
        if let Some(audit) = &mut self.audit {
            audit.retired(position, term);
        }
    }

    fn commanded(&mut self, position: u32, command: AdminCommand) {
        if let AdminCommand::Attribute(attr) = command
            && self.present.contains(&position)
        {
            self.ratings.change(self.id(position), attr);
        }
    }

    fn sent(&mut self, at: Time, sending: Sending) {
        if sending.of_election {
            self.last_message = Some((sending, at));
        }
        if sending.bytes > self.longest && self.watches(Property::BoundedMessages) {
            let Sending { from, to, kind, bytes, .. } = sending;
            let sent = format!("sent {kind} to {to} at {at}, {bytes} bytes long");
            let enough = format!("knows of no more than fits into {}", self.longest);
            let evidence = vec![Fact::new(from, sent), Fact::new(from, enough)];
            self.found(Property::BoundedMessages, at, evidence);
        }
    }

    fn elections_called(&mut self, at: Time, position: u32, count: u32) {
        self.elections += u64::from(count);
        self.last_election = Some((self.id(position), at));
    }

    fn crashed(&mut self, at: Time, position: u32) {
        self.disturbed(at);
        self.sections.crash(self.id(position));
        self.members[position as usize].leads = None;
    }

    fn restarted(&mut self, at: Time, position: u32, disk: Disk, stored: Stored) {
        self.disturbed(at);
        let member = &mut self.members[position as usize];
        member.since = at;
        self.ratings.forget(member.entry.id);
        if disk == Disk::Kept {
            return;
        }
        member.entry.stored = stored;
        if disk == Disk::Lost {
            self.ratings.drain(member.entry.id, false);
            // Its own has just been forgotten.
            let terms = self.members.iter().map(|other| other.entry.stored.term);
            let known = terms.max().unwrap_or_default();
            if let Some(audit) = &mut self.audit {
                audit.disk_lost(position, known);
            }
        }
        if disk == Disk::Restored
            && let Some(audit) = &mut self.audit
        {
            audit.disk_restored(position);
        }
    }

    fn second_process_started(&mut self, at: Time, position: u32, is_clone: bool) {
        self.disturbed(at);
        let process = self.members.len() as u32;
        for present in self.present.iter_mut().filter(|present| **present == position) {
            *present = process;
        }
        let first = self.members[position as usize];
        let mut second = Watched { term: Term::default(), since: at, leads: None, ..first };
        let id = first.entry.id;
        self.ratings.forget(id);
        if !is_clone {
            second.entry.stored = Stored::default();
            self.ratings.drain(id, false);
        }
        self.members.push(second);
        let others = self.members.iter().map(|other| other.entry);
        let terms = others.filter(|other| other.id != id).map(|other| other.stored.term);
        let known = terms.max().unwrap_or_default();
        if let Some(audit) = &mut self.audit {
            audit.add_process(position);
            if !is_clone {
                audit.disk_lost(process, known);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use doyen_core::protocol::Role;

    use super::*;
    use doyen_sim::scenario::Scenario;

    const ALWAYS: [Property; 3] =
        [Property::OneLeader, Property::OneLeaderPerTerm, Property::TermsNeverFall];

    fn oracle(properties: &[Property]) -> Oracle {
        Oracle::new(&Members::range(1, 3).unwrap(), properties)
    }

    fn leading(id: u32, term: u64) -> View {
        View::new(Some(NodeId(id)), Term(term), Role::Leader)
    }

    fn facts(oracle: &Oracle) -> Vec<String> {
        oracle.breach().unwrap().evidence.iter().map(ToString::to_string).collect()
    }

    fn broken(oracle: &Oracle) -> Option<(Property, Time)> {
        oracle.breach().map(|breach| (breach.property, breach.at))
    }

    #[test]
    fn two_who_lead_at_once_are_found_at_that_instant() {
        let mut oracle = oracle(&ALWAYS);
        oracle.view_changed(Time(1), 2, leading(3, 1));
        oracle.view_changed(Time(5), 0, leading(1, 2));
        assert_eq!(broken(&oracle), Some((Property::OneLeader, Time(5))));
        assert_eq!(facts(&oracle), ["3 leads (since 1ns)", "1 leads (since 5ns)"]);
    }

    #[test]
    fn who_leads_after_a_crash_leads_alone_but_not_in_the_same_term() {
        let mut oracle = oracle(&ALWAYS);
        oracle.view_changed(Time(1), 2, leading(3, 1));
        oracle.crashed(Time(2), 2);
        oracle.view_changed(Time(3), 1, leading(2, 2));
        assert_eq!(broken(&oracle), None);
        oracle.crashed(Time(4), 1);
        oracle.view_changed(Time(5), 0, leading(1, 2));
        assert_eq!(broken(&oracle), Some((Property::OneLeaderPerTerm, Time(5))));
    }

    #[test]
    fn a_stored_term_may_fall_only_with_the_disk() {
        let mut oracle = oracle(&ALWAYS);
        let stored = |term| Stored { term: Term(term), ..Stored::default() };
        oracle.stored(Time(1), 0, stored(4));
        oracle.crashed(Time(2), 0);
        oracle.restarted(Time(3), 0, Disk::Lost, Stored::default());
        oracle.stored(Time(4), 0, stored(1));
        assert_eq!(broken(&oracle), None);
        oracle.restarted(Time(5), 0, Disk::Kept, stored(1));
        oracle.stored(Time(6), 0, stored(0));
        assert_eq!(broken(&oracle), Some((Property::TermsNeverFall, Time(6))));
    }

    #[test]
    fn what_is_not_asked_for_is_not_found() {
        let mut oracle = oracle(&[Property::TermsNeverFall]);
        oracle.view_changed(Time(1), 2, leading(3, 1));
        oracle.view_changed(Time(5), 0, leading(1, 1));
        assert_eq!(broken(&oracle), None);
    }

    #[test]
    fn a_message_that_no_group_can_fill_is_found() {
        let mut oracle = oracle(&[Property::BoundedMessages]);
        let (from, to, kind, of_election) = (NodeId(1), NodeId(2), "ELECTION", true);
        let sending = Sending { from, to, kind, of_election, bytes: oracle.longest };
        oracle.sent(Time(4), sending);
        assert_eq!(broken(&oracle), None);
        oracle.sent(Time(7), Sending { bytes: oracle.longest + 1, ..sending });
        assert_eq!(broken(&oracle), Some((Property::BoundedMessages, Time(7))));
    }

    /// A member that asks a leader that does not announce itself asks forever.
    const RESTLESS: &str =
        "algorithm = \"bully\"\nmembers = 3\nleader = 3\ninitiators = [1]\nuntil = \"50ms\"";

    fn judged(scenario: &str, properties: &[Property]) -> Oracle {
        let case = Scenario::parse("test", scenario).unwrap().resolve().unwrap();
        let mut oracle = Oracle::new(case.members(), properties);
        judge(&case, None, &mut oracle);
        oracle
    }

    #[test]
    fn a_run_without_rest_says_who_waits_since_when_and_what_went_on_last() {
        let oracle = judged(RESTLESS, &[Property::Termination]);
        assert_eq!(broken(&oracle), Some((Property::Termination, Time(50_000_000))));
        assert_eq!(oracle.breach().unwrap().ending, Ending::Limit);
        assert_eq!(
            facts(&oracle),
            [
                "1 takes part in an election (since 6ms)",
                "2 takes part in an election (since 7ms)",
                "2 called the last of 18 elections at 49ms",
                "3 sent the last election message, OK to 2, at 50ms",
            ]
        );
    }

    #[test]
    fn what_is_about_rest_is_undecided_without_it() {
        let oracle = judged(RESTLESS, &[Property::Agreement]);
        assert_eq!((broken(&oracle), oracle.is_undecided()), (None, true));
        let oracle = judged(RESTLESS, &[Property::OneLeader]);
        assert_eq!((broken(&oracle), oracle.is_undecided()), (None, false));
    }
}
