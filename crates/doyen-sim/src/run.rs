//! Runs a [`Case`]: picks the state machine and gives it a world.

use doyen_core::algorithm::Algorithm;
use doyen_core::config::{Config, Timing};
use doyen_core::detector::DetectorConfig;
use doyen_core::link::LinkConfig;
use doyen_core::members::NodeId;
use doyen_core::node::{Node, NodeConfig, Packet};
use doyen_core::protocol::{Kind, Message, Protocol};
use doyen_core::session::{Letter, Session, SessionConfig};
use doyen_core::time::Span;

use crate::account::Outcome;
use crate::fault::{self, PaceOverride};
use crate::oracle::Oracle;
use crate::record::Observer;
use crate::scenario::Case;
use crate::time::Time;
use crate::world::{Setup, Snapshot, World};

/// How many heartbeats in a row a detector forgives on a network that loses messages.
const LOST_HEARTBEATS: u32 = 3;

/// Calls a function that is generic over the protocol with the one that `algorithm` names.
macro_rules! dispatch {
    ($algorithm:expr, $function:ident ( $($argument:expr),* )) => {
        {
            use doyen_core::algorithm::{self, Algorithm};
            match $algorithm {
                Algorithm::Bully => $function::<algorithm::bully::Bully>($($argument),*),
                Algorithm::ModifiedBully => $function::<algorithm::modified_bully::ModifiedBully>($($argument),*),
                Algorithm::RingList => $function::<algorithm::ring_list::RingList>($($argument),*),
                Algorithm::RingResilient => $function::<algorithm::ring_resilient::RingResilient>($($argument),*),
                Algorithm::RingActiveList => $function::<algorithm::ring_active_list::RingActiveList>($($argument),*),
                Algorithm::RingAllIds => $function::<algorithm::ring_all_ids::RingAllIds>($($argument),*),
                Algorithm::ChangRoberts => $function::<algorithm::chang_roberts::ChangRoberts>($($argument),*),
                Algorithm::Quorum => $function::<algorithm::quorum::Quorum>($($argument),*),
            }
        }
    };
}

pub(crate) use dispatch;

/// Runs `case` to its end. `observer` is shown everything that happens.
pub fn run(case: &Case, observer: Option<&mut dyn Observer>) -> Outcome {
    dispatch!(case.algorithm, run_as(case, observer, None))
}

/// Runs `case` to its end before the eyes of `oracle`, which then knows whether the run was as it must be. `observer` is
/// shown everything that happens.
pub fn judge(case: &Case, observer: Option<&mut dyn Observer>, oracle: &mut Oracle) -> Outcome {
    dispatch!(case.algorithm, judge_as(case, observer, oracle))
}

/// The same with members that run `P`, whatever algorithm the case names: for trying variants of it.
pub fn judge_as<P: Protocol<Config = Config>>(
    case: &Case,
    observer: Option<&mut dyn Observer>,
    oracle: &mut Oracle,
) -> Outcome {
    // The oracle is wanted back before the observer's time is over.
    let observer = observer.map(|observer| observer as &mut dyn Observer);
    let outcome = run_as::<P>(case, observer, Some(&mut *oracle));
    oracle.close(case.members(), &outcome);
    outcome
}

/// The kinds of messages of an algorithm.
pub fn kinds(algorithm: Algorithm) -> &'static [Kind] {
    dispatch!(algorithm, kinds_of())
}

fn kinds_of<P: Protocol>() -> &'static [Kind] {
    P::Message::KINDS
}

/// The kinds of messages that nodes send which run an algorithm: with `sessions` those of all layers, else those of the
/// algorithm alone.
pub fn kinds_of_nodes(algorithm: Algorithm, sessions: bool) -> &'static [Kind] {
    if sessions { dispatch!(algorithm, kinds_with_sessions()) } else { kinds(algorithm) }
}

fn kinds_with_sessions<P: Protocol>() -> &'static [Kind] {
    Letter::<Packet<P::Message>>::KINDS
}

fn run_as<'o, P: Protocol<Config = Config>>(
    case: &Case,
    observer: Option<&'o mut dyn Observer>,
    oracle: Option<&'o mut Oracle>,
) -> Outcome {
    if case.sessions {
        let config = session_config(case);
        let mut setup = setup(case, &config, Letter::<Packet<P::Message>>::KINDS.len());
        setup.with_pace = Some(|config, id, pace| {
            let inner = with_pace(&config.inner.inner, id, pace);
            let inner = NodeConfig { inner, ..config.inner.clone() };
            SessionConfig { inner, ..config.clone() }
        });
        return World::<Session<Node<P>>>::judged(&setup, observer, oracle).run();
    }
    if case.is_layered() {
        let config = node_config(case);
        let mut setup = setup(case, &config, Packet::<P::Message>::KINDS.len());
        setup.with_pace = Some(|config, id, pace| {
            let inner = with_pace(&config.inner, id, pace);
            NodeConfig { inner, ..config.clone() }
        });
        return World::<Node<P>>::judged(&setup, observer, oracle).run();
    }
    let mut setup = setup(case, &case.config, P::Message::KINDS.len());
    setup.with_pace = Some(with_pace);
    World::<P>::judged(&setup, observer, oracle).run()
}

/// The configuration of a member that comes up with another pace.
fn with_pace(config: &Config, id: NodeId, pace: PaceOverride) -> Config {
    let mut changed = config.clone();
    changed.quorum.paces.insert(id, pace.over(config.quorum.pace));
    changed
}

/// What `case` has come to at a moment, as members with `config`.
pub(crate) fn freeze<P: Protocol>(case: &Case, config: &P::Config, at: Time) -> Snapshot<P> {
    let setup = setup(case, config, P::Message::KINDS.len());
    World::<P>::new(&setup, None).freeze(at)
}

/// What lies beneath the algorithm. The link and the detector deal with the bare network, whose bound is shorter than
/// the one that the algorithm knows if messages are retransmitted.
pub(crate) fn node_config(case: &Case) -> NodeConfig<Config> {
    let bare = Timing { transmission: case.bare_bound, ..case.config.timing };
    NodeConfig {
        inner: case.config.clone(),
        members: case.members().clone(),
        filter: case.config.hardened(),
        link: case.reliable.then(|| LinkConfig::for_round_trip(bare.reply())),
        detector: case.detector.map(|heartbeat| DetectorConfig {
            heartbeat,
            losses: if case.network.loss > 0.0 { LOST_HEARTBEATS } else { 0 },
            ..DetectorConfig::for_timing(&bare)
        }),
    }
}

/// What lies beneath the algorithm where processes of a member are told apart. Sessions do what the incarnation filter
/// does, and have to do it alone: the filter would hide what they miss.
fn session_config(case: &Case) -> SessionConfig<NodeConfig<Config>> {
    SessionConfig {
        inner: NodeConfig { filter: false, ..node_config(case) },
        members: case.members().clone(),
        upkeep: true,
        rules: case.config.quorum.rules,
    }
}

fn setup<'c, C>(case: &'c Case, config: &'c C, kinds: usize) -> Setup<'c, C> {
    let members = case.members();
    let position = |id| members.position(id).map_or(0, |position| position as u32);
    // What the layers beneath the algorithm say comes last, unless everything keeps the order in which it was sent.
    let mut ranks: Vec<u8> = case.ranks.iter().map(|rank| rank + 1).collect();
    ranks.resize(kinds, ranks.iter().copied().max().unwrap_or(1));
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
    }
}

/// How long upkeep must go on alone before a run counts as quiet: until then it may set something going. Leaders are
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
    let promises = paces.map(|id| longest.pace_of(id).promise);
    let silence = promises.max().unwrap_or_default() * 2;
    let preference = fault::longest_preference(&case.faults);
    let settle = timing.heartbeat * 3 + timing.reply() * 2 + detector + link + silence + preference;
    let settle = fault::stretched(settle, fault::slowest_clock(&case.faults));
    settle + fault::longest_delay(&case.faults)
}
