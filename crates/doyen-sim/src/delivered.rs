//! What the members of a totally ordered multicast have delivered by the end of a run, and what is wrong with it.
//!
//! Members that are down count as well: a program on them has acted on what was delivered to it. A rule that all others
//! deliver the same is stronger than an order among the live members.

use std::collections::BTreeMap;

use doyen_core::members::NodeId;
use doyen_core::protocol::{Deliveries, Multicast};
use serde::Serialize;

/// What was delivered.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Delivered {
    /// What each member has delivered since it started or was reset, in order, those that are down included.
    pub delivered: BTreeMap<NodeId, Vec<String>>,
    /// What a member that is down has delivered, and no live member has.
    pub lost: Vec<String>,
    /// How often the program of a member had to take over the state of the others.
    pub resets: u32,
    /// Two live members that have delivered in different orders.
    #[serde(skip)]
    pub disorder: Option<(NodeId, NodeId)>,
    /// A member that is down and a live one that have delivered in different orders.
    #[serde(skip)]
    pub contradiction: Option<(NodeId, NodeId)>,
    /// A member that has delivered a message twice, and the message.
    #[serde(skip)]
    pub duplicate: Option<(NodeId, Multicast)>,
}

impl Delivered {
    /// What `members` have delivered: each with whether it is up. None if the algorithm delivers nothing.
    pub fn new(members: &[(NodeId, bool, Deliveries)]) -> Option<Self> {
        if members.is_empty() {
            return None;
        }
        let live = || members.iter().filter(|(_, up, _)| *up);
        let down = || members.iter().filter(|(_, up, _)| !up);
        let live_has = |name| live().any(|(_, _, it)| it.sequence.contains(name));
        let differs = |one: &(NodeId, bool, Deliveries)| {
            let other = live().find(|other| !one.2.agrees_with(&other.2));
            other.map(|other| (one.0, other.0))
        };
        let mut lost: Vec<Multicast> = down()
            .flat_map(|(_, _, it)| &it.sequence)
            .filter(|name| !live_has(name))
            .copied()
            .collect();
        lost.sort_unstable();
        lost.dedup();
        let texts = |names: &[Multicast]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        Some(Self {
            delivered: members.iter().map(|(id, _, it)| (*id, texts(&it.sequence))).collect(),
            lost: texts(&lost),
            resets: members.iter().map(|(_, _, it)| it.resets).sum(),
            disorder: live().find_map(differs),
            contradiction: down().find_map(differs),
            duplicate: members.iter().find_map(|(id, _, it)| Some((*id, it.duplicate()?))),
        })
    }
}
