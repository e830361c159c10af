//! Runs a [`Case`]: picks the state machine and gives it a world.

use doyen_core::config::{Config, Timing};
use doyen_core::dispatch;
use doyen_core::layers::Layers;
use doyen_core::members::NodeId;
use doyen_core::node::{Node, NodeConfig};
use doyen_core::protocol::Protocol;
use doyen_core::registry::{AnyConfig, AnyProtocol};
use doyen_core::session::{Session, SessionConfig};
use doyen_core::time::Span;

use crate::fault::{self, PaceOverride};
use crate::metrics::Outcome;
use crate::monitor::Monitor;
use crate::scenario::Case;
use crate::time::Time;
use crate::trace::Observer;
use crate::world::{Setup, Snapshot, World};

/// Runs `case` to its end. `observer` is shown everything that happens.
pub fn run(case: &Case, observer: Option<&mut dyn Observer>) -> Outcome {
    monitored(case, observer, None)
}

/// The same under the eyes of `monitor`, which judges the run while it happens.
///
/// Bare members are what the literature counts, by the million; a world is compiled for each algorithm. With layers
/// beneath them a call more makes no difference.
pub fn monitored<'o>(
    case: &Case,
    observer: Option<&'o mut dyn Observer>,
    monitor: Option<&'o mut (dyn Monitor + 'o)>,
) -> Outcome {
    if case.sessions {
        let config = session_config(case);
        let with_pace = |config: &SessionConfig<NodeConfig<AnyConfig>>, id, pace: PaceOverride| {
            let mut config = config.clone();
            let quorum = &mut config.inner.inner.inner.quorum;
            quorum.paces.insert(id, pace.over(quorum.pace));
            config
        };
        return observe_as::<Session<Node<AnyProtocol>>>(
            case, &config, with_pace, observer, monitor,
        );
    }
    if case.is_layered() {
        let config = node_config(case);
        let with_pace = |config: &NodeConfig<AnyConfig>, id, pace: PaceOverride| {
            let mut config = config.clone();
            let quorum = &mut config.inner.inner.quorum;
            quorum.paces.insert(id, pace.over(quorum.pace));
            config
        };
        return observe_as::<Node<AnyProtocol>>(case, &config, with_pace, observer, monitor);
    }
    dispatch!(case.algorithm, P => {
        observe_as::<P>(case, &case.config, with_pace, observer, monitor)
    })
}

fn observe_as<'o, P: Protocol>(
    case: &Case,
    config: &P::Config,
    with_pace: fn(&P::Config, NodeId, PaceOverride) -> P::Config,
    observer: Option<&'o mut dyn Observer>,
    monitor: Option<&'o mut (dyn Monitor + 'o)>,
) -> Outcome {
    let mut setup = setup::<P>(case, config);
    setup.with_pace = Some(with_pace);
    World::<P>::judged(&setup, observer, monitor).run()
}

/// The configuration of a member that comes up with another pace.
fn with_pace(config: &Config, id: NodeId, pace: PaceOverride) -> Config {
    let mut changed = config.clone();
    changed.quorum.paces.insert(id, pace.over(config.quorum.pace));
    changed
}

/// What `case` has come to at a moment, as members with `config`.
pub fn freeze<P: Protocol>(case: &Case, config: &P::Config, at: Time) -> Snapshot<P> {
    let setup = setup::<P>(case, config);
    World::<P>::new(&setup, None).freeze(at)
}

/// What runs, and how it is configured.
pub fn any_config(case: &Case) -> AnyConfig {
    AnyConfig { algorithm: case.algorithm, inner: case.config.clone() }
}

/// What lies beneath the algorithm. The link and the detector deal with the bare network, whose bound is shorter than
/// the one that the algorithm knows if messages are retransmitted.
fn layers(case: &Case) -> Layers {
    Layers {
        bare: Timing { transmission: case.bare_bound, ..case.config.timing },
        lossy: case.network.loss > 0.0,
        link: case.reliable,
        detector: case.detector,
    }
}

/// The configuration of a member with the layers beneath its algorithm.
pub fn node_config(case: &Case) -> NodeConfig<AnyConfig> {
    layers(case).node(any_config(case))
}

/// What lies beneath the algorithm where processes of a member are told apart. It differs from a node's in one thing: the
/// incarnation filter is left out. It does part of what sessions do, and would hide what they miss.
fn session_config(case: &Case) -> SessionConfig<NodeConfig<AnyConfig>> {
    let mut config = layers(case).process(any_config(case));
    config.inner.filter = false;
    config
}

fn setup<'c, P: Protocol>(case: &'c Case, config: &'c P::Config) -> Setup<'c, P::Config> {
    let members = case.members();
    let position = |id| members.position(id).map_or(0, |position| position as u32);
    // What the layers beneath the algorithm say comes last, unless everything keeps the order in which it was sent.
    let mut ranks: Vec<u8> = case.ranks.iter().map(|rank| rank + 1).collect();
    ranks.resize(P::kinds(config).len(), ranks.iter().copied().max().unwrap_or(1));
    Setup {
        members,
        config,
        with_pace: None,
        network: case.network.clone(),
        ranks,
        dead: case.dead.iter().map(|&id| position(id)).collect(),
        dead_known: !case.contact_dead,
        leader: case.leader,
        initiators: &case.initiators,
        faults: &case.faults,
        chaos: case.chaos.as_ref(),
        seed: case.seed,
        until: case.until,
        message_limit: case.message_limit,
        settle: settle(case),
        retire: case.retire,
        rules: case.config.quorum.rules,
    }
}

/// How long background work must go on alone before a run counts as quiet: until then it may set something going. Leaders are
/// missed, the detector judges twice, the link gives up what it still keeps and preferences run out, all by the slowest
/// clock; and what a link override has delayed arrives, be it the heartbeat of a leader that is dead.
fn settle(case: &Case) -> Span {
    let timing = &case.config.timing;
    let layers = node_config(case);
    let detector = layers.detector.map_or(Span::ZERO, |detector| detector.patience() * 2);
    let link = layers.link.map_or(Span::ZERO, |link| link.patience());
    let paces =
        case.members().iter().take(if case.algorithm.has_leases() { usize::MAX } else { 0 });
    let longest = fault::longest_paces(&case.config.quorum, &case.faults);
    let promises = paces.map(|id| longest.pace_of(id).vote_lease);
    let silence = promises.max().unwrap_or_default() * 2;
    let preference = fault::longest_preference(&case.faults);
    let settle = timing.heartbeat * 3 + timing.reply() * 2 + detector + link + silence + preference;
    let settle = fault::stretched(settle, fault::slowest_clock(&case.faults));
    settle + fault::longest_delay(&case.faults)
}
