//! Mutants of the hardened bully to which no property objects, although everything was explored: within this budget they
//! do no harm that lasts. A1 to A3 are about how a run ends, and hardened rules overlap.
//!
//! - *Handled twice*: what a member is told twice it does once, or it says the same again.
//! - *Nothing stored*, so that a member comes back with term zero; *no NACK*, which would tell it of later ones. The
//!   leader's next ALIVE tells it as well.
//! - *No incarnation filter*: an answer from a former life makes a member wait in vain, but only until a timer expires.
//!
//! Two rules that mend the same thing carry it together: if both are taken away it breaks. Each of the pairs below shows
//! that of two mutations which are harmless alone. Storing, NACK and the term of an OK each have such a partner.
//!
//! If a property is added that tells one of these from the algorithm as it is shipped, it belongs among the others.

use doyen_check::budget::Budget;
use doyen_check::property::Property;
use doyen_core::algorithm::bully::Message;
use doyen_core::members::Term;
use doyen_core::registry::{Algorithm, AnyMessage};

use super::mutant::Mutation;
use super::{Trial, crash_and_restart};

/// A term ignored: nobody can tell which election is answered.
fn ok_to_no_election(message: AnyMessage) -> AnyMessage {
    match message {
        AnyMessage::Bully(Message::Ok { .. }) => {
            AnyMessage::Bully(Message::Ok { term: Term::default() })
        }
        other => other,
    }
}

/// Each of the two breaks nothing, both together do.
fn assert_carry_together(trial: &Trial, pair: [fn() -> Mutation; 2], property: Property) {
    let [one, other] = pair;
    trial.passes(Algorithm::Bully, one());
    trial.passes(Algorithm::Bully, other());
    trial.catches(Algorithm::Bully, [(one().and(other()), property)]);
}

#[test]
fn what_another_rule_mends_breaks_nothing() {
    let trial = Trial::hardened().with(crash_and_restart());
    trial.passes(Algorithm::Bully, Mutation::HeardTwice("ELECTION"));
    trial.passes(Algorithm::Bully, Mutation::HeardTwice("COORDINATOR"));
    trial.passes(Algorithm::Bully, Mutation::Forgetful);
    trial.passes(Algorithm::Bully, Mutation::NeverSaid("NACK"));
    Trial { filter: false, ..trial }.passes(Algorithm::Bully, Mutation::None);
}

/// A member that comes back with an old term learns of later ones from its disk, from a leader's ALIVE or from NACK.
#[test]
fn what_tells_of_later_terms_is_carried_by_pairs() {
    let trial = Trial::hardened().with(crash_and_restart());
    let silent = || Mutation::NeverSaid("ALIVE");
    for other in [|| Mutation::Forgetful, || Mutation::NeverSaid("NACK")] {
        assert_carry_together(&trial, [silent, other], Property::Agreement);
    }
}

/// Whoever wins in vain is heard at the next heartbeat, and only then.
#[test]
fn what_ends_an_election_is_carried_by_pairs() {
    let no_heartbeat = || Mutation::NeverArmed("Background(Heartbeat)");
    let trial = Trial::hardened().with(crash_and_restart());
    let unannounced = || Mutation::NeverSaid("COORDINATOR");
    assert_carry_together(&trial, [no_heartbeat, unannounced], Property::Agreement);
    let trial = Trial::hardened().with(Budget { crashes: 1, losses: 1, ..Budget::default() });
    let ignored = || Mutation::Says(ok_to_no_election);
    assert_carry_together(&trial, [no_heartbeat, ignored], Property::Agreement);
}
