//! Mutants of the two bullies.

use doyen_check::property::Property;
use doyen_core::algorithm::bully::Message;
use doyen_core::algorithm::leader_tracker::{Background, LeaderClaim};
use doyen_core::algorithm::modified_bully;
use doyen_core::members::Term;
use doyen_core::registry::{Algorithm, AnyMessage};

use super::mutant::Mutation;
use super::{Trial, crash_and_restart, crashes, losses};

/// A term ignored: nobody says in which election it asks, so no answer is one to it.
fn asks_in_no_election(message: AnyMessage) -> AnyMessage {
    let term = Term::default();
    match message {
        AnyMessage::Bully(Message::Election { .. }) => {
            AnyMessage::Bully(Message::Election { term })
        }
        AnyMessage::ModifiedBully(modified_bully::Message::Election { .. }) => {
            AnyMessage::ModifiedBully(modified_bully::Message::Election { term })
        }
        other => other,
    }
}

/// A term ignored: whoever leads claims to have won the first election.
fn claims_the_first_election(message: AnyMessage) -> AnyMessage {
    let term = Term(1);
    match message {
        AnyMessage::Bully(Message::Coordinator { .. }) => {
            AnyMessage::Bully(Message::Coordinator { term })
        }
        AnyMessage::Bully(Message::Background(Background::Alive { claim })) => {
            let claim = LeaderClaim { term, ..claim };
            AnyMessage::Bully(Message::Background(Background::Alive { claim }))
        }
        other => other,
    }
}

/// R3 not announced; T1 never, too short; T2 too short; nobody above asked, nobody answered.
#[test]
fn textbook_bully_without_faults() {
    Trial::textbook().called_by(&[1, 2]).catches(
        Algorithm::Bully,
        [
            (Mutation::NeverSaid("COORDINATOR"), Property::Termination),
            (Mutation::NeverArmed("Reply"), Property::Termination),
            (Mutation::Halved("Reply"), Property::OneLeader),
            (Mutation::Halved("Announcement"), Property::Termination),
            // A leader that is not the best is as near.
            (Mutation::NeverSaid("ELECTION"), Property::OneLeader),
            (Mutation::NeverSaid("OK"), Property::OneLeader),
        ],
    );
}

#[test]
fn textbook_bully_with_a_crash() {
    Trial::textbook().with(crashes(1)).catches(
        Algorithm::Bully,
        [
            (Mutation::NeverGivesUp, Property::Agreement),
            (Mutation::NeverArmed("Reply"), Property::Agreement),
        ],
    );
}

/// T1; H1 without its timer, and H1 not done at all; H4 without end, and H4 taken for H2; the detector not heard.
#[test]
fn hardened_bully_with_a_crash_and_a_restart() {
    Trial::hardened().with(crash_and_restart()).catches(
        Algorithm::Bully,
        [
            (Mutation::NeverArmed("Reply"), Property::Termination),
            (Mutation::NeverArmed("Background(Listen)"), Property::Termination),
            (Mutation::Founder, Property::Termination),
            (Mutation::NeverArmed("Background(Preempt)"), Property::Validity),
            (Mutation::HumbleAbout("COORDINATOR"), Property::Validity),
            (Mutation::NeverGivesUp, Property::Agreement),
        ],
    );
}

/// M4 without its window; `T_ok` never, too short; `T_g` too short; a member list that lacks one.
#[test]
fn textbook_modified_bully_without_faults() {
    Trial::textbook().called_by(&[1, 2]).catches(
        Algorithm::ModifiedBully,
        [
            (Mutation::NeverArmed("Window"), Property::Validity),
            (Mutation::NeverArmed("Reply"), Property::Termination),
            (Mutation::Halved("Reply"), Property::OneLeader),
            (Mutation::Halved("Grant"), Property::OneLeader),
            (Mutation::NeverHeardOf(1, 3), Property::OneLeader),
        ],
    );
}

/// M10 and M11 not done; M13 never.
#[test]
fn textbook_modified_bully_with_a_crash() {
    Trial::textbook().with(crashes(1)).catches(
        Algorithm::ModifiedBully,
        [
            (Mutation::NeverSaid("GRANT"), Property::Termination),
            (Mutation::NeverSaid("COORDINATOR"), Property::Termination),
            (Mutation::NeverArmed("Announcement"), Property::Termination),
        ],
    );
}

/// H5 without its timer and without its word; M13 never; H4 without end, and taken for H2.
#[test]
fn hardened_modified_bully_with_a_loss() {
    Trial::hardened().called_by(&[1]).with(losses(1)).catches(
        Algorithm::ModifiedBully,
        [
            (Mutation::NeverArmed("Background(Heartbeat)"), Property::Agreement),
            (Mutation::NeverSaid("ALIVE"), Property::Agreement),
            (Mutation::NeverArmed("Announcement"), Property::Validity),
            (Mutation::NeverArmed("Background(Preempt)"), Property::Validity),
            (Mutation::HumbleAbout("ALIVE"), Property::Validity),
        ],
    );
}

#[test]
fn hardened_bullies_that_ask_without_a_number() {
    let trial = Trial::hardened().called_by(&[1]);
    for algorithm in [Algorithm::Bully, Algorithm::ModifiedBully] {
        trial.catches(algorithm, [(Mutation::Says(asks_in_no_election), Property::OneLeader)]);
    }
}

/// Its followers know of a later election, say so, and it runs again in a higher term: for ever.
#[test]
fn hardened_bully_that_claims_without_a_number() {
    Trial::hardened().called_by(&[1]).with(crashes(1)).catches(
        Algorithm::Bully,
        [(Mutation::Says(claims_the_first_election), Property::BoundedTerms)],
    );
}
