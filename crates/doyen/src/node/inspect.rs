//! What only the algorithm knows about the cluster, for the status.

use std::collections::BTreeMap;
use std::time::Duration;

use doyen_core::algorithm::quorum::{MISSED_PROBES, Pause, Quorum, Rank, Timer};
use doyen_core::change::{Loss, TransferReason};
use doyen_core::config::Config;
use doyen_core::members::{NodeId, PeerSet, Term};
use doyen_core::registry::{AnyProtocol, AnyTimer};
use doyen_core::time::Span;

use super::status::PreemptionRules;

/// What a member's state machine knows beyond its view. The algorithms of the sources know nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Diagnostics {
    /// The next leader, if the leader died now.
    pub(super) next: Option<NodeId>,
    /// The transfer of leadership that this leader has begun: why, and to whom if that was named.
    pub(super) pending_transfer: Option<(TransferReason, Option<NodeId>)>,
    /// The eligible members by rank, the highest first.
    pub(super) succession: Vec<NodeId>,
    /// The leader that was lost, and how, until the next one is known.
    pub(super) lost_leader: Option<(NodeId, Loss)>,
    pub(super) drained: bool,
    pub(super) never_leads: bool,
    /// How much longer the drain lasts, if it ends by itself.
    pub(super) drain_remaining: Option<Duration>,
    /// The preferred member, and how long the preference lasts.
    pub(super) preference: Option<(NodeId, Span)>,
    /// The pause of elections, if they are paused, and how much longer it lasts.
    pub(super) pause: Option<Pause>,
    pub(super) pause_remaining: Option<Duration>,
    /// When a member that ranks above the leader takes over.
    pub(super) preemption: Option<PreemptionRules>,
    /// How long it takes until members have told each other that one is unreachable.
    pub(super) learns_within: Duration,
    pub(super) members: BTreeMap<NodeId, PeerInfo>,
}

/// What the algorithm knows about one member.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct PeerInfo {
    pub(super) attribute: i64,
    pub(super) eligible: bool,
    pub(super) recent_failures: u8,
    /// How long ago the last failure was, where that is known, and how much longer it counts.
    pub(super) penalty: Option<(Option<Duration>, Duration)>,
    /// The members that it reports as unreachable; none if members do not report that.
    pub(super) unreachable: Option<Vec<NodeId>>,
}

/// What the host knows and the algorithm does not.
pub(super) struct HostView<'a> {
    pub(super) me: NodeId,
    /// The members that this node reaches.
    pub(super) reachable: &'a PeerSet,
    /// Whether a member's process has started so recently that it cannot know yet which members it does not reach.
    pub(super) is_new: &'a dyn Fn(NodeId) -> bool,
    /// How much longer a timer runs, if it is armed.
    pub(super) remaining: &'a dyn Fn(AnyTimer) -> Option<Duration>,
}

/// Whether `peer` is reachable from `me`, the member itself, and answers; none if the algorithm does not watch that. A peer
/// that has not sent anything yet counts as reachable for a while.
pub(super) fn reaches(
    member: &AnyProtocol,
    config: &Config,
    me: NodeId,
    peer: NodeId,
) -> Option<bool> {
    match member {
        AnyProtocol::Quorum(quorum) => {
            probes(config).then(|| quorum.receives(me, peer) && !quorum.is_silent(peer))
        }
        _ => None,
    }
}

/// Whether the operator has drained the member.
pub(super) fn is_drained(member: &AnyProtocol) -> bool {
    matches!(member, AnyProtocol::Quorum(quorum) if quorum.is_drained())
}

/// While the member rejoins: the members that have not answered yet.
pub(super) fn awaited(member: &AnyProtocol) -> Option<PeerSet> {
    match member {
        AnyProtocol::Quorum(quorum) => quorum.awaited(),
        _ => None,
    }
}

pub(super) fn inspect(member: &AnyProtocol, config: &Config, host: &HostView<'_>) -> Diagnostics {
    match member {
        AnyProtocol::Quorum(quorum) => inspect_quorum(quorum, config, host),
        _ => Diagnostics::default(),
    }
}

fn inspect_quorum(quorum: &Quorum, config: &Config, host: &HostView<'_>) -> Diagnostics {
    let &HostView { me, reachable, is_new, remaining } = host;
    let reaches = |one: NodeId, other: NodeId| match one == me {
        true => reachable.contains(other),
        false => quorum.receives(one, other) && (reachable.contains(other) || !is_new(one)),
    };
    // The core counts a penalty down with heartbeats, which end with the leader. Its timer runs on.
    let penalty = |id: NodeId| {
        let penalty = Some(quorum.penalty_of(id)).filter(|penalty| penalty.failures > 0)?;
        let duration = |span: Span| Duration::from_nanos(span.as_nanos());
        let counted = duration(penalty.left);
        let left = remaining(AnyTimer::Quorum(Timer::Penalty(id))).unwrap_or(counted);
        let ago = duration(penalty.ago).saturating_add(counted.saturating_sub(left));
        // After a restart a member knows that it has failed, and not when.
        Some(((penalty.failed_in > Term::default()).then_some(ago), left))
    };
    let info = |id: NodeId| {
        let Rank { eligible, attr, .. } = quorum.rank_of(config, id);
        let unreachable = || config.members.others(id).filter(|&it| !reaches(id, it)).collect();
        let info = PeerInfo {
            attribute: attr,
            eligible,
            recent_failures: quorum.failures_of(id),
            penalty: penalty(id),
            unreachable: probes(config).then(unreachable),
        };
        (id, info)
    };
    // The timer counts one step of the pause.
    let pause = quorum.pause_in_force();
    let later = pause.map_or(Duration::ZERO, |pause| {
        Duration::from_nanos(pause.left.as_nanos() - pause.step().as_nanos())
    });
    Diagnostics {
        next: quorum.next_leader(config, reaches),
        pending_transfer: quorum.pending_transfer(),
        succession: quorum.succession(config),
        lost_leader: quorum.lost_leader(),
        drained: quorum.is_drained(),
        never_leads: quorum.never_leads(),
        drain_remaining: remaining(AnyTimer::Quorum(Timer::Drain)).filter(|_| quorum.is_drained()),
        pause,
        pause_remaining: pause
            .and(remaining(AnyTimer::Quorum(Timer::Pause)))
            .map(|step| step + later),
        preemption: Some(PreemptionRules::of(config)),
        learns_within: learns_within(config),
        preference: quorum.preference().map(|preference| (preference.member, preference.left)),
        members: config.members.iter().map(info).collect(),
    }
}

/// How long after its start a member knows which members it does not reach, and how long after a member was lost all others
/// have said so: one probe later than they can.
pub(super) fn learns_within(config: &Config) -> Duration {
    let probe = config.quorum.probe.map_or(Span::ZERO, |probe| probe * (MISSED_PROBES + 1));
    Duration::from_nanos(probe.as_nanos())
}

/// Whether members watch which members they reach, and report it.
fn probes(config: &Config) -> bool {
    config.quorum.probe.is_some()
}
