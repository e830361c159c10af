//! Runs a [`Case`]: picks the state machine and gives it a world.

#[cfg(not(target_arch = "wasm32"))]
use doyen_core::algorithm::{
    bully::Bully, chang_roberts::ChangRoberts, modified_bully::ModifiedBully,
};
use doyen_core::config::{Config, Timing};
use doyen_core::layers::{self, Layers, Stack, StackConfig};
use doyen_core::members::{Incarnation, NodeId};
use doyen_core::node::NodeConfig;
use doyen_core::protocol::{Boot, Effects, Origin, Protocol, View};
#[cfg(not(target_arch = "wasm32"))]
use doyen_core::registry::Algorithm;
use doyen_core::registry::{AnyConfig, AnyProtocol, Purpose};
use doyen_core::session::SessionConfig;
use doyen_core::time::Span;

use crate::fault::{self, PaceOverride};
use crate::metrics::Outcome;
use crate::scenario::Case;
use crate::time::Time;
use crate::trace::Observer;
use crate::world::{self, Setup, Watchers, World};

/// Runs `case` to its end. `observer` is shown everything that happens.
pub fn run(case: &Case, observer: Option<&mut dyn Observer>) -> Outcome {
    watched(case, Watchers { observer, ..Watchers::default() })
}

/// The same with a monitor, which checks the run while it happens, and a watcher, which may stop it.
///
/// There is one world for all algorithms and layers. The elections whose cost the literature counts by the million have worlds of
/// their own, without layers, where a call less for each message is worth it; in a browser size counts for more than speed.
pub fn watched(case: &Case, watchers: Watchers<'_>) -> Outcome {
    #[cfg(not(target_arch = "wasm32"))]
    if is_bare(case) {
        let (config, pace): (_, WithPace<Config>) = (&case.config, with_pace);
        match case.algorithm {
            Algorithm::Bully => return observe_as::<Bully>(case, config, pace, watchers),
            Algorithm::ModifiedBully => {
                return observe_as::<ModifiedBully>(case, config, pace, watchers);
            }
            Algorithm::ChangRoberts => {
                return observe_as::<ChangRoberts>(case, config, pace, watchers);
            }
            _ => {}
        }
    }
    in_one_world(case, watchers)
}

/// Runs members in the one world for all algorithms and layers.
fn in_one_world(case: &Case, watchers: Watchers<'_>) -> Outcome {
    let at_pace = |config: &StackConfig, id, pace| {
        let mut config = config.clone();
        let changed = with_pace(config.algorithm_mut(), id, pace);
        *config.algorithm_mut() = changed;
        config
    };
    let config = match case.sessions {
        true => StackConfig::Process(session_config(case)),
        false => stack_config(case, case.snapshot, case.tells),
    };
    observe_as::<Stack>(case, &config, at_pace, watchers)
}

fn is_bare(case: &Case) -> bool {
    !case.sessions && !case.snapshot && !case.is_layered()
}

/// The layers of a member without sessions, and their configuration. The layer that takes snapshots is the highest: the link
/// is below it. Where members tell each other something, the layer that hardened mode puts below an algorithm, a filter for
/// messages to an earlier process of a member, is left out.
pub fn stack_config(case: &Case, takes_snapshots: bool, tells: bool) -> StackConfig {
    let config = any_config(case);
    match (takes_snapshots, case.is_layered()) {
        (true, true) => {
            StackConfig::RecordableNode(layers(case).node(config).map(layers::recordable))
        }
        (true, false) => StackConfig::Recordable(layers::recordable(config)),
        (false, _) if tells => StackConfig::Telling(layers::telling(config)),
        (false, true) => StackConfig::Node(layers(case).node(config)),
        (false, false) => StackConfig::Bare(config),
    }
}

/// Makes the configuration of a member that starts with another timing.
type WithPace<C> = fn(&C, NodeId, PaceOverride) -> C;

fn observe_as<P: Protocol>(
    case: &Case,
    config: &P::Config,
    with_pace: WithPace<P::Config>,
    watchers: Watchers<'_>,
) -> Outcome {
    let mut setup = setup::<P>(case, config);
    setup.with_pace = Some(with_pace);
    let outcome = World::<P>::new(&setup, watchers).run();
    match case.algorithm.purpose() {
        Purpose::Elects | Purpose::Excludes => outcome,
        // The world plays clients that make requests, but there is no section.
        Purpose::Records | Purpose::Serves => Outcome { exclusion: None, ..outcome },
    }
}

fn with_pace(config: &Config, id: NodeId, pace: PaceOverride) -> Config {
    let mut changed = config.clone();
    changed.quorum.paces.insert(id, pace.over(config.quorum.pace));
    changed
}

/// The view of each member when all start together, by position.
pub fn first_views(case: &Case) -> Vec<View> {
    let (config, origin) = (any_config(case), Origin::Founding { leader: case.leader });
    let start = |id| {
        let boot = Boot::new(Incarnation(1), None, origin);
        AnyProtocol::start(id, &config, boot, &mut Effects::unexplained()).view()
    };
    case.members().iter().map(start).collect()
}

/// The state of `case` at a moment, as members with `config`.
pub fn freeze(case: &Case, config: &StackConfig, at: Time) -> world::Snapshot<Stack> {
    World::new(&setup::<Stack>(case, config), Watchers::default()).freeze(at)
}

/// What runs, and how it is configured.
pub fn any_config(case: &Case) -> AnyConfig {
    AnyConfig { algorithm: case.algorithm, inner: case.config.clone() }
}

/// The layers below the algorithm. The link and the detector use the bare network, whose bound is shorter than the one
/// that the algorithm knows if messages are retransmitted.
fn layers(case: &Case) -> Layers {
    Layers {
        bare: Timing { transmission: case.bare_bound, ..case.config.timing },
        lossy: case.network.loss > 0.0,
        link: case.reliable,
        detector: case.detector,
    }
}

/// The layers below the algorithm where sessions distinguish the processes of a member. They differ from a node's in one
/// thing: the incarnation filter is left out. It does part of what sessions do, and would hide their errors.
fn session_config(case: &Case) -> SessionConfig<NodeConfig<AnyConfig>> {
    let mut config = layers(case).process(any_config(case));
    config.inner.filter = false;
    config
}

fn setup<'c, P: Protocol>(case: &'c Case, config: &'c P::Config) -> Setup<'c, P::Config> {
    let members = case.members();
    let position = |id| members.position(id).map_or(0, |position| position as u32);
    // Messages of the layers below the algorithm come last, unless all messages keep the order in which they were sent.
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
        requests: case.requests.as_ref(),
        faults: &case.faults,
        changes: &case.changes,
        chaos: case.chaos.as_ref(),
        seed: case.seed,
        until: case.until,
        message_limit: case.message_limit,
        event_limit: case.event_limit,
        settle: settle(case),
        retire: case.retire,
        rules: case.config.quorum.rules,
    }
}

/// How long background work must continue alone before a run counts as quiet: until then it may start something. In this
/// time members detect the loss of a leader, the detector reports twice, the link gives up what it still keeps and
/// preferences run out, all by the slowest clock; and messages that a link override or a change has delayed arrive, for
/// example a heartbeat of a dead leader.
fn settle(case: &Case) -> Span {
    // Once no member waits or is inside, a token that goes round lets none in.
    if case.algorithm.purpose() == Purpose::Excludes {
        return Span::ZERO;
    }
    let timing = &case.config.timing;
    let layers = layers(case);
    let detector = layers.detector_config().map_or(Span::ZERO, |it| it.patience() * 2);
    let link = layers.link_config().map_or(Span::ZERO, |link| link.patience());
    let paces =
        case.members().iter().take(if case.algorithm.has_leases() { usize::MAX } else { 0 });
    let longest = fault::longest_paces(&case.config.quorum, &case.faults);
    let promises = paces.map(|id| longest.pace_of(id).vote_lease);
    let silence = promises.max().unwrap_or_default() * 2;
    let preference = fault::longest_preference(&case.faults);
    let settle = timing.heartbeat * 3 + timing.reply() * 2 + detector + link + silence + preference;
    let settle = fault::stretched(settle, fault::slowest_clock(&case.faults));
    settle + fault::longest_delay(&case.faults) + case.longest_change()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Ended;
    use crate::scenario::Scenario;
    use crate::trace::TraceEvent;
    use doyen_core::registry::Algorithm;

    #[test]
    fn one_world_for_all_algorithms_gives_the_same_runs() {
        for algorithm in [Algorithm::Bully, Algorithm::ModifiedBully, Algorithm::ChangRoberts] {
            for rest in ["", "loss = 0.1\nduplicate = 0.1", "[[fault]]\nat = \"3ms\"\ncrash = 5"] {
                let text = format!(
                    "algorithm = \"{algorithm}\"\nmembers = 5\nuntil = \"100ms\"\n\
                     delay = \"uniform:0.5ms..1ms\"\n{rest}"
                );
                let case = Scenario::from_toml("test", &text).unwrap();
                if case.is_layered() {
                    continue; // everywhere in one world
                }
                let [mut ours, mut theirs]: [Vec<TraceEvent>; 2] = Default::default();
                let one = in_one_world(
                    &case,
                    Watchers { observer: Some(&mut ours), ..Default::default() },
                );
                let other = run(&case, Some(&mut theirs));
                assert!(ours == theirs, "{text}");
                assert_eq!(one, other, "{text}");
            }
        }
    }

    #[test]
    fn whoever_watches_stops_a_run_that_goes_on_for_long() {
        let text = "algorithm = \"bully\"\nmembers = 600\ninitiators = \"all\"";
        let case = Scenario::from_toml("test", text).unwrap();
        let mut reports = Vec::new();
        let mut progress = |events| {
            reports.push(events);
            reports.len() < 3
        };
        let watchers = Watchers { progress: Some(&mut progress), ..Watchers::default() };
        let outcome = watched(&case, watchers);
        assert_eq!(outcome.ended, Ended::Interrupt);
        assert_eq!(reports.len(), 3, "nothing is asked after the stop");
        assert_eq!(reports.last(), Some(&outcome.events));
    }
}
