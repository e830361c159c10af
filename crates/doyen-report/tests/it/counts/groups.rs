//! Groups, runs and what to ask them.

use std::collections::BTreeMap;
use std::str::FromStr;

use doyen_core::registry::Algorithm;
use doyen_core::time::Span;
use doyen_sim::metrics::Outcome;
use doyen_sim::run;
use doyen_sim::scenario::{Case, Initiator, Initiators, MemberList, RingOrder, Scenario};
use doyen_sim::trace::TraceEvent;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

/// Members `1..=n`, all alive; the lowest starts.
pub(crate) fn live(algorithm: Algorithm, n: u32) -> Scenario {
    Scenario {
        algorithm: Some(algorithm),
        members: Some(MemberList::Count(u64::from(n))),
        ..Scenario::default()
    }
}

/// Members `1..=N`; N is the crashed coordinator, as everybody knows.
pub(crate) fn configured(algorithm: Algorithm, n: u32) -> Scenario {
    Scenario { convention: text("configured"), ..live(algorithm, n) }
}

/// All these members are alive, and this is the ring they stand in.
pub(crate) fn in_ring(algorithm: Algorithm, ring: &[u32]) -> Scenario {
    Scenario {
        members: Some(MemberList::Listed(ring.to_vec())),
        ring: Some(RingOrder::Listed(ring.to_vec())),
        ..live(algorithm, 1)
    }
}

/// A value as it is written in a scenario.
pub(crate) fn text<T: FromStr>(text: &str) -> Option<T> {
    Some(text.parse().unwrap_or_else(|_| panic!("`{text}` makes no sense")))
}

/// These start at once.
pub(crate) fn start(ids: &[u32]) -> Option<Initiators> {
    Some(Initiators::Listed(ids.iter().copied().map(Initiator::AtOnce).collect()))
}

/// These start, each at its time in D.
pub(crate) fn start_at(times: impl IntoIterator<Item = (u32, f64)>) -> Option<Initiators> {
    let at = |(member, at)| Initiator::At { member, at: Span::from_nanos((at * 1e6) as u64) };
    Some(Initiators::Listed(times.into_iter().map(at).collect()))
}

pub(crate) fn all_start() -> Option<Initiators> {
    Some(Initiators::All)
}

pub(crate) fn resolve(scenario: &Scenario) -> Case {
    scenario.resolve().unwrap_or_else(|error| panic!("{error}: {scenario:?}"))
}

pub(crate) fn run(scenario: &Scenario) -> Outcome {
    run::run(&resolve(scenario), None)
}

/// A run and everything that happened in it.
pub(crate) fn watch(scenario: &Scenario) -> (Outcome, Vec<TraceEvent>) {
    let mut records = Vec::new();
    let outcome = run::run(&resolve(scenario), Some(&mut records));
    (outcome, records)
}

pub(crate) fn messages(scenario: &Scenario) -> u64 {
    run(scenario).messages.total
}

/// How many messages of this kind were sent.
pub(crate) fn of_kind(outcome: &Outcome, name: &str) -> u64 {
    outcome.messages.by_kind.iter().filter(|(kind, _)| *kind == name).map(|(_, count)| count).sum()
}

/// In units of D.
pub(crate) fn in_d(span: impl Into<Option<Span>>) -> f64 {
    span.into().map_or(f64::NAN, |span| span.as_nanos() as f64 / 1e6)
}

/// A size, and a rank in a group of that size.
pub(crate) fn size_and_rank(
    sizes: std::ops::RangeInclusive<u32>,
) -> impl Strategy<Value = (u32, u32)> {
    sizes.prop_flat_map(|n| (Just(n), 1..=n))
}

/// A size, and some members of a group of that size, in any order.
pub(crate) fn size_and_some(
    sizes: std::ops::RangeInclusive<u32>,
) -> impl Strategy<Value = (u32, Vec<u32>)> {
    sizes.prop_flat_map(|n| {
        let members: Vec<u32> = (1..=n).collect();
        let count = members.len();
        (Just(n), subsequence(members, 1..=count).prop_shuffle())
    })
}

/// A ring of `1..=n` in any order.
pub(crate) fn any_ring(sizes: std::ops::RangeInclusive<u32>) -> impl Strategy<Value = Vec<u32>> {
    sizes.prop_flat_map(|n| Just((1..=n).collect::<Vec<u32>>()).prop_shuffle())
}

/// A ring and some of its members.
pub(crate) fn ring_and_some(
    sizes: std::ops::RangeInclusive<u32>,
) -> impl Strategy<Value = (Vec<u32>, Vec<u32>)> {
    any_ring(sizes).prop_flat_map(|ring| {
        let count = ring.len();
        (Just(ring.clone()), subsequence(ring, 1..=count).prop_shuffle())
    })
}

/// How many hops it is clockwise from one member to another.
pub(crate) fn distance(ring: &[u32], from: u32, to: u32) -> u64 {
    let place = |id| ring.iter().position(|&member| member == id).expect("a member of the ring");
    ((place(to) + ring.len() - place(from)) % ring.len()) as u64
}

/// Any ids, any attributes, any ring, some of them dead, some of the living told to start.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) ids: Vec<u32>,
    pub(crate) attr: BTreeMap<String, i64>,
    pub(crate) ring: Vec<u32>,
    pub(crate) dead: Vec<u32>,
    pub(crate) starting: Vec<u32>,
}

impl Group {
    fn key(&self, id: u32) -> (i64, u32) {
        (self.attr.get(&id.to_string()).copied().unwrap_or(i64::from(id)), id)
    }

    /// The best of all members, dead or alive.
    pub(crate) fn highest(&self) -> u32 {
        self.ids.iter().copied().max_by_key(|&id| self.key(id)).expect("a group is not empty")
    }

    /// The best of the living.
    pub(crate) fn best(&self) -> u32 {
        let live = self.ids.iter().copied().filter(|id| !self.dead.contains(id));
        live.max_by_key(|&id| self.key(id)).expect("somebody is alive")
    }

    pub(crate) fn scenario(&self, algorithm: Algorithm) -> Scenario {
        Scenario {
            algorithm: Some(algorithm),
            members: Some(MemberList::Listed(self.ids.clone())),
            attr: self.attr.clone(),
            ring: Some(RingOrder::Listed(self.ring.clone())),
            dead: self.dead.clone(),
            initiators: start(&self.starting),
            ..Scenario::default()
        }
    }
}

/// A group of at most `size` members.
pub(crate) fn group(size: usize) -> impl Strategy<Value = Group> {
    let ids = prop::collection::btree_set(0_u32..60, 1..=size);
    let members = ids.prop_flat_map(|ids| {
        let ids: Vec<u32> = ids.into_iter().collect();
        let count = ids.len();
        // Few values, so that many are equal.
        let attrs = prop::collection::vec(prop::option::of(-3_i64..4), count);
        let attr = prop_oneof![Just(Vec::new()), attrs];
        let dead = prop_oneof![Just(Vec::new()), subsequence(ids.clone(), 0..count)];
        (Just(ids.clone()), attr, Just(ids).prop_shuffle(), dead)
    });
    members.prop_flat_map(|(ids, attr, ring, dead)| {
        let attr: BTreeMap<String, i64> =
            ids.iter().zip(attr).filter_map(|(id, attr)| Some((id.to_string(), attr?))).collect();
        let live: Vec<u32> = ids.iter().copied().filter(|id| !dead.contains(id)).collect();
        let count = live.len();
        let one = select(live.clone()).prop_map(|id| vec![id]);
        let starting = prop_oneof![one, subsequence(live.clone(), 1..=count), Just(live)];
        starting.prop_map(move |starting| Group {
            ids: ids.clone(),
            attr: attr.clone(),
            ring: ring.clone(),
            dead: dead.clone(),
            starting,
        })
    })
}
