//! Runs a [`Case`]: picks the state machine and gives it a world.

use doyen_core::algorithm::Algorithm;
use doyen_core::algorithm::bully::Bully;
use doyen_core::algorithm::modified_bully::ModifiedBully;
use doyen_core::config::Config;
use doyen_core::protocol::{Kind, Message, Protocol};
use doyen_core::time::Span;

use crate::account::Outcome;
use crate::record::Observer;
use crate::scenario::Case;
use crate::world::{Setup, World};

/// Calls a function that is generic over the protocol with the one that `algorithm` names.
macro_rules! dispatch {
    ($algorithm:expr, $function:ident ( $($argument:expr),* )) => {
        match $algorithm {
            Algorithm::Bully => $function::<Bully>($($argument),*),
            Algorithm::ModifiedBully => $function::<ModifiedBully>($($argument),*),
            other => unreachable!("{other} has no state machine here"),
        }
    };
}

/// Runs `case` to its end. `observer` is shown everything that happens.
pub fn run(case: &Case, observer: Option<&mut dyn Observer>) -> Outcome {
    dispatch!(case.algorithm, run_as(case, observer))
}

/// The kinds of messages of an algorithm.
pub fn kinds(algorithm: Algorithm) -> &'static [Kind] {
    dispatch!(algorithm, kinds_of())
}

fn kinds_of<P: Protocol>() -> &'static [Kind] {
    P::Message::KINDS
}

fn run_as<P: Protocol<Config = Config>>(
    case: &Case,
    observer: Option<&mut dyn Observer>,
) -> Outcome {
    let setup = setup(case, &case.config);
    World::<P>::new(&setup, observer).run()
}

fn setup<'c, C>(case: &'c Case, config: &'c C) -> Setup<'c, C> {
    let members = case.members();
    let position = |id| members.position(id).map_or(0, |position| position as u32);
    let timing = &case.config.timing;
    Setup {
        members,
        config,
        network: case.network.clone(),
        ranks: case.ranks.clone(),
        dead: case.dead.iter().map(|&id| position(id)).collect(),
        dead_known: !case.contact_dead,
        leader: case.leader,
        initiators: &case.initiators,
        script: case.faults.clone(),
        chaos: case.chaos.clone(),
        seed: case.seed,
        until: case.until,
        message_limit: case.message_limit,
        settle: timing.heartbeat * 3 + timing.reply() * 2 + case.detector.unwrap_or(Span::ZERO) * 3,
    }
}
