//! What only the algorithm knows of the group, for the status.

use std::collections::BTreeMap;
use std::time::Duration;

use doyen_core::algorithm::quorum::{Quorum, Rank, Timer};
use doyen_core::config::Config;
use doyen_core::members::{NodeId, PeerSet};
use doyen_core::registry::{AnyProtocol, AnyTimer};
use doyen_core::time::Span;

/// What a member's state machine can tell beyond its view. A source's algorithm can tell nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Insight {
    /// Who would lead next if the leader died now.
    pub(super) next: Option<NodeId>,
    /// Who would lead, the best first.
    pub(super) line: Vec<NodeId>,
    /// Whether this member is drained.
    pub(super) drained: bool,
    /// Whether it does not even lead if every member that could is drained.
    pub(super) never_leads: bool,
    /// For how much longer, if that ends by itself.
    pub(super) drained_for: Option<Duration>,
    /// Whom the operator prefers, and for how long when that was last told.
    pub(super) preference: Option<(NodeId, Span)>,
    /// What is known of the others, and of this member.
    pub(super) members: BTreeMap<NodeId, Known>,
}

/// What is known of a member.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Known {
    /// Its attribute, as last told.
    pub(super) attribute: i64,
    /// Whether it may lead.
    pub(super) eligible: bool,
    /// How often it has lost its office involuntarily, as far as that counts against it still.
    pub(super) losses: u8,
    /// Whom it says it does not hear; nothing where members do not say so.
    pub(super) misses: Option<Vec<NodeId>>,
}

/// What the host knows and the algorithm does not.
pub(super) struct Outside<'a> {
    /// Which member this is.
    pub(super) me: NodeId,
    /// Whom this node hears.
    pub(super) heard: &'a PeerSet,
    /// How much longer a timer runs, if it does.
    pub(super) left: &'a dyn Fn(AnyTimer) -> Option<Duration>,
}

/// Whether `me`, the member itself, hears `peer`: said only by an algorithm that watches over that. A peer of which
/// nothing has come yet is given the benefit of the doubt for a while.
pub(super) fn hears(
    member: &AnyProtocol,
    config: &Config,
    me: NodeId,
    peer: NodeId,
) -> Option<bool> {
    match member {
        AnyProtocol::Quorum(quorum) => watches(config).then(|| quorum.hears(me, peer)),
        _ => None,
    }
}

/// While it has lost its disk and asks around: who has not answered yet.
pub(super) fn awaited(member: &AnyProtocol) -> Option<PeerSet> {
    match member {
        AnyProtocol::Quorum(quorum) => quorum.awaited(),
        _ => None,
    }
}

/// What it can tell. The sources' algorithms can tell nothing.
pub(super) fn insight(member: &AnyProtocol, config: &Config, outside: &Outside<'_>) -> Insight {
    match member {
        AnyProtocol::Quorum(quorum) => of_quorum(quorum, config, outside),
        _ => Insight::default(),
    }
}

fn of_quorum(quorum: &Quorum, config: &Config, outside: &Outside<'_>) -> Insight {
    let &Outside { me, heard, left } = outside;
    let hears = |one: NodeId, other: NodeId| match one == me {
        true => heard.contains(other),
        false => quorum.hears(one, other),
    };
    let known = |id: NodeId| {
        let Rank { eligible, attr, .. } = quorum.rank_of(config, id);
        let misses = || config.members.others(id).filter(|&other| !hears(id, other)).collect();
        let losses = quorum.failures_of(config, id);
        let misses = watches(config).then(misses);
        (id, Known { attribute: attr, eligible, losses, misses })
    };
    Insight {
        next: quorum.next_leader(config, hears),
        line: quorum.succession(config),
        drained: quorum.is_drained(),
        never_leads: quorum.never_leads(),
        drained_for: left(AnyTimer::Quorum(Timer::Drain)).filter(|_| quorum.is_drained()),
        preference: quorum.preference().map(|preference| (preference.member, preference.left)),
        members: config.members.iter().map(known).collect(),
    }
}

/// Whether members notice who falls silent, and tell each other.
fn watches(config: &Config) -> bool {
    config.quorum.probe.is_some()
}
