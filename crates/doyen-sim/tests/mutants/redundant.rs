//! Mutants of the hardened bully to which no property objects, although everything was explored: within this budget they
//! do no harm that lasts. A1 to A3 are about how a run ends, and hardened rules overlap.
//!
//! - *Handled twice*: what a member is told twice it does once, or it says the same again.
//! - *Nothing stored*, so that a member comes back with epoch zero; *no NACK*, which would tell it of later ones. The
//!   leader's next ALIVE tells it as well.
//! - *No incarnation filter*: an answer from a former life makes a member wait in vain, but only until a timer expires.
//!
//! If a property is added that tells one of these from the algorithm as it is shipped, it belongs among the others.

use doyen_core::algorithm::bully::Bully;

use crate::mutant::Mutation;
use crate::{Trial, crash_and_restart};

#[test]
fn what_another_rule_mends_breaks_nothing() {
    let trial = Trial::hardened().with(crash_and_restart());
    trial.passes::<Bully>(Mutation::HeardTwice("ELECTION"));
    trial.passes::<Bully>(Mutation::HeardTwice("COORDINATOR"));
    trial.passes::<Bully>(Mutation::Forgetful);
    trial.passes::<Bully>(Mutation::NeverSaid("NACK"));
    Trial { filter: false, ..trial }.passes::<Bully>(Mutation::None);
}
