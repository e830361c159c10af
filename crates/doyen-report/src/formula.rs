//! Theory beside measurement: the closed form that the literature gives for a case, if it gives one.
//!
//! The literature counts messages by formulas, and each formula holds for some cases only. [`of`] knows which, so that a
//! run can be compared with the theory that is really about it: `outcome.messages.total` must be the formula's value. If
//! no formula applies, it returns [`None`], rather than one that is about other cases.
//!
//! All forms are about **calm** runs: no member fails, no message is lost or duplicated, no member leads at the
//! beginning, no failure detector is on, and all initiators start at the same instant. Besides:
//!
//! - *n* counts the live members and *r* is a rank among them, the lowest being 1, whatever ids and attributes they
//!   have. *N* counts the dead as well. Dead members cost nothing if all members know that they are dead. If not, each
//!   message to them counts, and so does each unanswered probe on a ring;
//! - whatever waits for a time-out needs delays within D, the bound its time-outs are made from. With several
//!   initiators some forms also need equal delays, or links that keep the order of messages;
//! - a member that is alone sends nothing, not even on a ring, where it would literally send messages to itself.
//!
//! | algorithm | one initiator | several |
//! |---|---|---|
//! | bully | (n−r+1)(n−r)+n−1 | the same for the lowest of them |
//! | modified-bully | 2(n−r)+n, but n−1 for r = n | (n−r₁)+Σ(n−rⱼ)+n |
//! | ring-list, ring-resilient | 2n | 2mn |
//! | ring-active-list | n² | n² |
//! | ring-all-ids | n²+n | n²+mn |
//! | chang-roberts | d+2n | each to the first member higher than all it has met, and 2n |

/// Declares closed forms: for each its name, the form, and its place in the source.
macro_rules! forms {
    ($($name:ident: $label:literal, $expression:literal, $source:literal;)*) => {
        $(const $name: Form = Form { label: $label, expression: $expression, source: $source };)*
    };
}

mod exclusion;
mod why_not;

use doyen_core::config::{Announce, Mode, Variant};
use doyen_core::members::NodeId;
use doyen_core::registry::Algorithm;
use serde::Serialize;

use crate::expression::{Variables, evaluate};
use crate::typeset;
use doyen_sim::network::DelayModel;
use doyen_sim::scenario::{Case, Convention};

pub use why_not::{undisturbed, why_not};

/// What theory says about the messages of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Formula {
    /// The formula as its source prints it, after the name of the source.
    pub name: String,
    /// The formula alone, as a book prints it: `(N − r)² + N − 1`.
    pub printed: String,
    /// The same with the numbers of the case: `(8 − 5)² + 8 − 1`.
    pub filled: String,
    /// The number of messages by the formula, those to dead members included.
    pub value: u64,
    /// Its place in the source.
    pub source: &'static str,
}

/// The closed form for the messages of `case`; none if none applies.
pub fn of(case: &Case) -> Option<Formula> {
    if let Some(requests) = &case.requests {
        let is_calm = why_not::disturbance(case).is_none() && case.dead.is_empty();
        let formula = exclusion::of(case, requests).filter(|_| is_calm)?;
        return (formula.value < case.message_limit).then_some(formula);
    }
    let group = Group::of(case)?;
    let formula = match case.algorithm {
        Algorithm::Bully => bully(&group)?,
        Algorithm::ModifiedBully => modified_bully(&group)?,
        Algorithm::RingList | Algorithm::RingResilient => list_ring(&group)?,
        Algorithm::RingActiveList => active_list(&group)?,
        Algorithm::RingAllIds => all_ids(&group)?,
        Algorithm::ChangRoberts => chang_roberts(&group)?,
        Algorithm::Quorum
        | Algorithm::Centralised
        | Algorithm::Voting
        | Algorithm::Lamport
        | Algorithm::RicartAgrawala
        | Algorithm::TokenRing
        | Algorithm::Maekawa
        | Algorithm::Raymond
        | Algorithm::SuzukiKasami
        | Algorithm::TokenRecovery
        | Algorithm::LockService
        | Algorithm::Bank
        | Algorithm::Sequencer => return None,
    };
    // The formula is not about a run that is cut short.
    (formula.value < case.message_limit).then_some(formula)
}

/// The quantities of the formulas.
struct Group<'a> {
    case: &'a Case,
    /// The live members.
    n: u64,
    /// The configured members.
    configured: u64,
    /// The ranks of the initiators among the live members, from 1, ascending.
    initiators: Vec<u64>,
    /// How many dead members are above each live one, by rank from 0.
    dead_above: Vec<u64>,
}

impl<'a> Group<'a> {
    /// The group of a calm case.
    fn of(case: &'a Case) -> Option<Self> {
        if why_not::disturbance(case).is_some() {
            return None;
        }
        let members = case.members();
        let starts = started_by_rank(case);
        let (mut initiators, mut dead_above) = (Vec::new(), Vec::new());
        let (mut live, mut dead) = (0, case.dead.len() as u64);
        for (rank, starts) in starts.iter().enumerate() {
            if is_dead(case, members.by_rank(rank)) {
                dead -= 1;
                continue;
            }
            live += 1;
            dead_above.push(dead);
            if *starts {
                initiators.push(live);
            }
        }
        Some(Self { case, n: live, configured: members.len() as u64, initiators, dead_above })
    }

    /// The rank of the lowest initiator.
    fn lowest(&self) -> u64 {
        self.initiators[0]
    }

    /// How many initiators there are.
    fn count(&self) -> u64 {
        self.initiators.len() as u64
    }

    /// Whether the highest live member is an initiator beside others.
    fn highest_among_several(&self) -> bool {
        self.count() > 1 && self.initiators.last() == Some(&self.n)
    }

    fn hardened(&self) -> bool {
        self.case.mode() == Mode::Hardened
    }

    /// Whether there are dead members that the others do not know to be dead.
    fn contacts_dead(&self) -> bool {
        self.case.contact_dead && self.n < self.configured
    }

    /// The dead members that are contacted.
    fn contacted(&self) -> u64 {
        if self.contacts_dead() { self.configured - self.n } else { 0 }
    }

    /// The messages of one circuit of the ring, unanswered probes included. No member sends to itself.
    fn circuit(&self) -> u64 {
        if self.n == 1 { self.contacted() } else { self.n + self.contacted() }
    }

    /// How many dead members have a higher key than the live member of this rank.
    fn dead_above(&self, rank: u64) -> u64 {
        self.dead_above[rank as usize - 1]
    }

    /// Whether no message takes longer than the time-outs allow for. A message that must not overtake an earlier one
    /// may have to wait until that one has been processed.
    fn in_time(&self) -> bool {
        let network = &self.case.network;
        let bounded = !matches!(network.delay, DelayModel::Exponential { .. });
        let bound = self.case.config.timing.transmission.as_nanos();
        let held_up = (network.fifo || self.case.reliable) && network.processing > 0;
        bounded && network.delay.bound() <= bound && !held_up
    }

    /// Whether all initiators start before any message arrives.
    fn starts_together(&self) -> bool {
        let shortest = match self.case.network.delay {
            DelayModel::Fixed(delay) => delay,
            DelayModel::Uniform { min, .. } => min,
            DelayModel::Exponential { .. } => 0,
        };
        self.count() == 1 || shortest > 0
    }

    /// By how much the delays of two messages may differ.
    fn spread(&self) -> u64 {
        match self.case.network.delay {
            DelayModel::Fixed(_) => self.case.network.processing,
            DelayModel::Uniform { min, max } => max - min + self.case.network.processing,
            DelayModel::Exponential { .. } => u64::MAX,
        }
    }

    /// Whether messages that arrive together are handled kind by kind, as by default between bullies.
    fn kind_by_kind(&self) -> bool {
        self.case.ranks.windows(2).all(|pair| pair[0] < pair[1])
    }

    /// Whether tokens stay in the order in which they entered a link.
    fn in_order(&self) -> bool {
        self.case.network.fifo || self.spread() == 0
    }
}

/// A closed form of the literature.
struct Form {
    label: &'static str,
    expression: &'static str,
    source: &'static str,
}

forms! {
    BULLY_LOWEST: "Kordafshari (4)", "n^2-1", "Kordafshari section 4.1, formula (4)";
    BULLY_ONE: "Kordafshari (3)", "(n-r+1)(n-r)+n-1", "Kordafshari section 4.1, formula (3)";
    BULLY_SEVERAL: "Kordafshari (5)", "(n-r1+1)(n-r1)+n-1", "Kordafshari section 4.2, formula (5)";
    BULLY_SECOND_HIGHEST: "cs425", "N-2", "cs425, performance of the bully algorithm";
    BULLY_CONTACTED: "cs425 count", "(N-r)^2+N-2", "Kordafshari formula (3), counted as in cs425";
    BULLY_CONTACTED_AND_TOLD: "cs425 count", "(N-r)^2+N-1", "Kordafshari formula (3), counted as in cs425";
    BULLY_NO_GUARD: "cs677 without guard", "2(2^(n-r)-1)+(n-1)*2^(n-r-1)", "derived from the rules of cs677";
    MODIFIED_ONE: "Kordafshari (1)", "2(n-r)+n", "Kordafshari section 4.1, formula (1)";
    MODIFIED_SEVERAL: "Kordafshari (6)", "(n-r1)+sum(n-rj)+n", "Kordafshari section 4.2, formula (6)";
    MODIFIED_HIGHEST: "r = n", "n-1", "derived from the rules of Kordafshari: no GRANT";
    MODIFIED_CONTACTED: "cs425 count", "2(N-r)+N-1", "Kordafshari formula (1), counted as in cs425";
    LIST_ONE: "cs677", "2n", "cs677, ring-based election";
    LIST_SEVERAL: "cs677", "2mn", "cs677, ring-based election";
    LIST_ONE_PROBED: "cs677, the dead probed", "2N", "cs677, ring-based election";
    LIST_SEVERAL_PROBED: "cs677, the dead probed", "2mN", "cs677, ring-based election";
    ACTIVE_LIST: "notes", "n^2", "notes, ring algorithm";
    ALL_IDS_ONE: "os-textbook", "n^2+n", "os-textbook, unidirectional ring topologies";
    ALL_IDS_SEVERAL: "os-textbook", "n^2+mn", "os-textbook, unidirectional ring topologies";
    ALL_IDS_ABSORBED: "os-textbook, absorbed", "n(n+1)/2+n", "os-textbook, unidirectional ring topologies";
    REFINED_ONE: "os-textbook, cs425", "d+2n", "os-textbook, refinement; cs425, ring election";
    REFINED_SEVERAL: "each to the first higher member, d hops in all", "d+2n", "os-textbook, refinement; cs425, ring election";
    REFINED_RISING: "all start, keys rising", "3n-1", "os-textbook, refinement; cs425, ring election";
    REFINED_FALLING: "all start, keys falling", "n(n+1)/2+n", "os-textbook, refinement; cs425, ring election";
    REFINED_NO_SWALLOW: "os-textbook without swallowing", "sum(dj+2n)", "os-textbook, refinement, by the letter";
}

impl Group<'_> {
    fn variables(&self) -> Variables {
        Variables {
            n: self.n as f64,
            configured: self.configured as f64,
            ranks: self.initiators.iter().map(|&rank| rank as f64).collect(),
            ..Variables::default()
        }
    }

    /// The value of `form` for this group, plus this many messages to dead members.
    fn apply(&self, form: &Form, to_dead: u64) -> Option<Formula> {
        form.with(&self.variables(), to_dead)
    }
}

impl Form {
    /// Its value for this many entries, if it is about one.
    fn times(&self, variables: &Variables, entries: u64) -> Option<Formula> {
        let each = evaluate(self.expression, variables).ok()?;
        let formula = self.with(variables, 0)?;
        let filled = format!("{} · {entries}", formula.filled);
        Some(Formula { filled, value: (each * entries as f64).round() as u64, ..formula })
    }

    fn with(&self, variables: &Variables, to_dead: u64) -> Option<Formula> {
        let value = evaluate(self.expression, variables).ok()?;
        let dead = if to_dead > 0 { ", and those to the dead" } else { "" };
        let name = format!("{}: {}{dead}", self.label, self.expression);
        let [mut printed, mut filled] =
            [None, Some(variables)].map(|it| typeset::typeset(self.expression, it));
        if to_dead > 0 {
            printed.push_str(" + those to members that are down");
            filled.push_str(&format!(" + {to_dead}"));
        }
        let value = value as u64 + to_dead;
        Some(Formula { name, printed, filled, value, source: self.source })
    }
}

/// Every live member from the lowest initiator up asks all above it; the live ones answer; the highest announces.
fn bully(group: &Group<'_>) -> Option<Formula> {
    let steady = group.spread() == 0 && group.kind_by_kind();
    let applies = match group.case.mode() {
        Mode::Textbook | Mode::Hardened | Mode::Literal(Variant::NoT2) => true,
        Mode::Literal(Variant::Eager) => {
            let waits = group.contacts_dead() && group.dead_above(group.n) > 0;
            steady && (waits || !group.highest_among_several())
        }
        Mode::Literal(Variant::NoGuard) => return bully_without_guard(group),
        Mode::Literal(Variant::OneTimer | Variant::Serial | Variant::NaiveOk) => steady,
        Mode::Literal(_) => false,
    };
    if !applies || !group.in_time() || !group.starts_together() {
        return None;
    }
    let (n, r) = (group.n, group.lowest());
    let asked: u64 = match group.contacts_dead() {
        true => (r..=n).map(|rank| group.dead_above(rank)).sum(),
        false => 0,
    };
    let told = dead_told_by_bully(group);
    let highest_is_dead = group.configured == n + 1
        && group.case.dead.first() == Some(&group.case.members().highest());
    let quoted = group.case.convention == Convention::Configured && highest_is_dead;
    match (group.count(), r) {
        _ if quoted && group.contacts_dead() && told == 0 => group.apply(&BULLY_CONTACTED, 0),
        _ if quoted && group.contacts_dead() => group.apply(&BULLY_CONTACTED_AND_TOLD, 0),
        _ if quoted && r == n && asked + told == 0 => group.apply(&BULLY_SECOND_HIGHEST, 0),
        (1, 1) if n > 1 => group.apply(&BULLY_LOWEST, asked + told),
        (1, _) => group.apply(&BULLY_ONE, asked + told),
        _ => group.apply(&BULLY_SEVERAL, asked + told),
    }
}

/// How many COORDINATORs go to dead members.
fn dead_told_by_bully(group: &Group<'_>) -> u64 {
    let dead = group.configured - group.n;
    let above = group.dead_above(group.n);
    match (group.hardened(), group.contacts_dead(), group.case.config.announce) {
        (true, _, _) | (false, true, Announce::All) => dead,
        (false, true, Announce::Lower) => dead - above,
        (false, false, _) => 0,
    }
}

/// cs677, literally: each ELECTION received starts an election, so their number doubles from member to member.
fn bully_without_guard(group: &Group<'_>) -> Option<Formula> {
    let steady = group.spread() == 0 && group.kind_by_kind() && group.in_time();
    let above = group.n - group.lowest();
    // The highest member announces itself 2^(n-r-1) times at once, more often than a link keeps messages for a peer.
    let is_too_much_for_a_link = group.case.reliable && above > 6;
    if !steady || group.count() > 1 || group.contacts_dead() || above > 40 || is_too_much_for_a_link
    {
        return None;
    }
    group.apply(if above == 0 { &BULLY_ONE } else { &BULLY_NO_GUARD }, 0)
}

/// The initiators ask all above them; the live ones answer the lowest; it grants the highest, which tells all members.
fn modified_bully(group: &Group<'_>) -> Option<Formula> {
    let together = group.count() == 1
        || group.spread() <= group.case.config.timing.window.as_nanos() && group.starts_together();
    let applies = match group.case.mode() {
        Mode::Textbook | Mode::Hardened | Mode::Literal(Variant::Figure4) => true,
        Mode::Literal(Variant::Eager) => {
            let waits = group.contacts_dead() && group.dead_above(group.n) > 0;
            waits || !group.highest_among_several()
        }
        Mode::Literal(_) => false,
    };
    if !applies || !together || !group.in_time() {
        return None;
    }
    let told = if group.hardened() { group.configured - group.n } else { group.contacted() };
    let asked: u64 = match group.contacts_dead() {
        true => group.initiators.iter().map(|&rank| group.dead_above(rank)).sum(),
        false => 0,
    };
    let to_dead = asked + told;
    let quoted = group.case.convention == Convention::Configured
        && group.configured == group.n + 1
        && to_dead == 2;
    match group.count() {
        _ if group.lowest() == group.n => group.apply(&MODIFIED_HIGHEST, to_dead),
        _ if quoted => group.apply(&MODIFIED_CONTACTED, 0),
        1 => group.apply(&MODIFIED_ONE, to_dead),
        _ => group.apply(&MODIFIED_SEVERAL, to_dead),
    }
}

/// Every initiator's list circulates twice; every dead member that is not known to be dead is probed in each circuit.
fn list_ring(group: &Group<'_>) -> Option<Formula> {
    let applies = match group.case.mode() {
        Mode::Textbook => true,
        Mode::Hardened => group.count() == 1,
        Mode::Literal(_) => false,
    };
    if !applies || !group.in_time() || !group.starts_together() {
        return None;
    }
    match (group.n, group.contacts_dead(), group.count()) {
        (1, ..) => Some(alone(2 * group.circuit(), LIST_ONE.source)),
        (_, true, 1) => group.apply(&LIST_ONE_PROBED, 0),
        (_, true, _) => group.apply(&LIST_SEVERAL_PROBED, 0),
        (_, false, 1) => group.apply(&LIST_ONE, 0),
        (_, false, _) => group.apply(&LIST_SEVERAL, 0),
    }
}

/// Every member's number circulates once, however many members started.
fn active_list(group: &Group<'_>) -> Option<Formula> {
    if !calls_the_roll(group) {
        return None;
    }
    let circuit = group.circuit();
    match group.n {
        1 => Some(alone(circuit, ACTIVE_LIST.source)),
        n => group.apply(&ACTIVE_LIST, n * (circuit - n)),
    }
}

/// Every member's "elect me" circulates once, and every initiator's "new coordinator".
fn all_ids(group: &Group<'_>) -> Option<Formula> {
    if !calls_the_roll(group) {
        return None;
    }
    let (n, circuit) = (group.n, group.circuit());
    let absorbs = group.case.mode() == Mode::Literal(Variant::Absorb);
    match (n, group.count()) {
        (1, _) => Some(alone(2 * circuit, ALL_IDS_ONE.source)),
        (_, 1) if absorbs => group.apply(&ALL_IDS_ABSORBED, 0),
        _ if absorbs => None,
        (_, 1) => group.apply(&ALL_IDS_ONE, (n + 1) * (circuit - n)),
        _ => group.apply(&ALL_IDS_SEVERAL, 0),
    }
}

/// Whether every member's number circulates exactly once.
fn calls_the_roll(group: &Group<'_>) -> bool {
    let in_order = group.in_order() && group.starts_together();
    match group.hardened() {
        false => in_order && !group.contacts_dead(),
        true => in_order && group.count() == 1 && group.in_time(),
    }
}

/// An initiator's message goes to the first member higher than all it has met; that of the highest one circulates
/// twice.
fn chang_roberts(group: &Group<'_>) -> Option<Formula> {
    let several = group.in_order() && group.starts_together();
    let in_time = !group.hardened() || group.in_time();
    let reaches_all = group.hardened() || !group.contacts_dead();
    if !in_time || !reaches_all || (group.count() > 1 && !several) {
        return None;
    }
    if group.n == 1 {
        return Some(alone(2 * group.circuit(), REFINED_ONE.source));
    }
    let ring = LiveRing::of(group);
    let variables = Variables {
        d: ring.until_higher() as f64,
        distances: ring.distances(),
        ..group.variables()
    };
    if group.case.mode() == Mode::Literal(Variant::NoSwallow) {
        return REFINED_NO_SWALLOW.with(&variables, 0);
    }
    let to_dead = 2 * (ring.length - group.n);
    let found = match group.count() {
        1 => return REFINED_ONE.with(&variables, to_dead),
        _ => REFINED_SEVERAL.with(&variables, to_dead)?,
    };
    let all_start =
        [&REFINED_FALLING, &REFINED_RISING].into_iter().filter(|_| group.count() == group.n);
    let named = all_start.filter_map(|form| form.with(&variables, to_dead));
    Some(named.into_iter().find(|named| named.value == found.value).unwrap_or(found))
}

/// The live members clockwise, and the distance from one to the next.
struct LiveRing {
    /// Ranks by place.
    ranks: Vec<usize>,
    /// Hops from the first member to each, unanswered probes included.
    hops: Vec<u64>,
    /// Whether each is an initiator.
    starts: Vec<bool>,
    /// Hops of one circuit.
    length: u64,
}

impl LiveRing {
    /// The ring from its highest live member on.
    fn of(group: &Group<'_>) -> Self {
        let case = group.case;
        let members = case.members();
        let starts = started_by_rank(case);
        let by_rank = (0..members.len()).rev().map(|rank| members.by_rank(rank));
        let highest =
            by_rank.into_iter().find(|&id| !is_dead(case, id)).unwrap_or(members.highest());
        let mut ring = Self { ranks: Vec::new(), hops: Vec::new(), starts: Vec::new(), length: 0 };
        let others = members.clockwise(highest).take(members.len() - 1);
        for id in std::iter::once(highest).chain(others) {
            let dead = is_dead(case, id);
            if !dead {
                ring.ranks.push(members.rank(id));
                ring.hops.push(ring.length);
                ring.starts.push(starts[members.rank(id)]);
            }
            ring.length += u64::from(!dead || group.contacts_dead());
        }
        ring
    }

    /// The hops of all first messages but the highest member's own.
    ///
    /// An initiator's message carries the highest key of all that it has met, up to the next initiator. From there on
    /// all members have sent already, and the first member higher than that key swallows it. The ring starts with the
    /// highest member, where every message ends at the latest.
    fn until_higher(&self) -> u64 {
        let next_higher = self.next_higher();
        let mut total = 0;
        let mut highest_before_next_start = None;
        for place in (1..self.ranks.len()).rev() {
            let higher = |best: &usize| self.ranks[*best] > self.ranks[place];
            let best = highest_before_next_start.filter(higher).unwrap_or(place);
            highest_before_next_start = Some(best);
            if self.starts[place] {
                total += next_higher[best] - self.hops[place];
                highest_before_next_start = None;
            }
        }
        total
    }

    /// For each place the hops from the first member to the next higher one; a whole circuit leads to the highest.
    fn next_higher(&self) -> Vec<u64> {
        let mut next = vec![self.length; self.ranks.len()];
        let mut waiting: Vec<usize> = Vec::new();
        for (place, &rank) in self.ranks.iter().enumerate() {
            while let Some(&lower) = waiting.last()
                && self.ranks[lower] < rank
            {
                next[lower] = self.hops[place];
                waiting.pop();
            }
            waiting.push(place);
        }
        next
    }

    /// The hops from each initiator to the highest member, clockwise from that one.
    fn distances(&self) -> Vec<f64> {
        let starts = self.starts.iter().zip(&self.hops).filter(|(starts, _)| **starts);
        starts.map(|(_, &hops)| ((self.length - hops) % self.length) as f64).collect()
    }
}

fn is_dead(case: &Case, id: NodeId) -> bool {
    case.dead.binary_search(&id).is_ok()
}

/// Whether each member starts an election, by rank.
fn started_by_rank(case: &Case) -> Vec<bool> {
    let mut starts = vec![false; case.members().len()];
    for (id, _) in case.initiators.iter() {
        starts[case.members().rank(id)] = true;
    }
    starts
}

/// A member that is alone sends nothing but probes, which no member answers.
fn alone(probes: u64, source: &'static str) -> Formula {
    let name = if probes == 0 { "alone: no messages" } else { "alone: probes of the dead" };
    let [name, printed, filled] = [name.to_owned(), name.to_owned(), probes.to_string()];
    Formula { name, printed, filled, value: probes, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doyen_sim::scenario::Scenario;

    fn formula(text: &str) -> Option<(String, u64)> {
        let case = Scenario::from_toml("test", text).unwrap_or_else(|error| panic!("{error}"));
        of(&case).map(|formula| (formula.name, formula.value))
    }

    fn named(name: &str, value: u64) -> Option<(String, u64)> {
        Some((name.to_owned(), value))
    }

    #[test]
    fn the_example_of_kordafshari_is_found() {
        let rest = "members = 1000\ninitiators = [100]";
        assert_eq!(
            formula(&format!("algorithm = 'bully'\n{rest}")),
            named("Kordafshari (3): (n-r+1)(n-r)+n-1", 811_899)
        );
        assert_eq!(
            formula(&format!("algorithm = 'modified-bully'\n{rest}")),
            named("Kordafshari (1): 2(n-r)+n", 2800)
        );
        let configured = format!("algorithm = 'bully'\n{rest}\nconvention = 'configured'");
        assert_eq!(
            formula(&format!("{configured}\ncontact_dead = true")),
            named("cs425 count: (N-r)^2+N-2", 810_998)
        );
    }

    #[test]
    fn the_rank_counts_and_not_the_id() {
        let group = "algorithm = 'modified-bully'\nmembers = [3, 17, 24, 33]\nattr = { 3 = 99 }";
        let expected = |value| named("Kordafshari (1): 2(n-r)+n", value);
        assert_eq!(formula(&format!("{group}\ninitiators = [17]")), expected(10));
        assert_eq!(formula(&format!("{group}\ninitiators = [33]\ndead = [17]")), expected(5));
        assert_eq!(formula(&format!("{group}\ninitiators = [3]")), named("r = n: n-1", 3));
    }

    #[test]
    fn a_run_that_is_not_calm_has_no_formula() {
        let calm = "algorithm = 'bully'\nmembers = 5";
        assert_eq!(formula(calm), named("Kordafshari (4): n^2-1", 24));
        for storm in [
            "loss = '1%'",
            "duplicate = '1%'",
            "delay = 'exp:1ms'",
            "delay = '2ms'\nbound = '1ms'",
            "initiators = 'none'",
            "initiators = [1, { member = 2, at = '1ms' }]",
            "leader = 5\ninitiators = [1]",
            "detector = '5ms'\ninitiators = [1]",
            "message_limit = 24",
            "[[fault]]\nat = '1ms'\ncrash = 5",
            "[[link]]\nfrom = 1\ndelay = '2ms'",
            "mode = 'eager'\ninitiators = [1, 5]",
        ] {
            assert_eq!(formula(&format!("{calm}\n{storm}")), None, "{storm}");
        }
    }
}
