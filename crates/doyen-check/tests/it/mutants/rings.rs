//! Mutants of the five rings.

use doyen_check::budget::Budget;
use doyen_check::property::Property;
use doyen_core::algorithm::chang_roberts;
use doyen_core::algorithm::leader_tracker::LeaderClaim;
use doyen_core::algorithm::ring::Hop;
use doyen_core::algorithm::ring_all_ids;
use doyen_core::algorithm::ring_list::{Circuit, Message, Token};
use doyen_core::members::Term;
use doyen_core::registry::{Algorithm, AnyMessage};

use super::mutant::Mutation;
use super::{Trial, crashes, losses};

/// Changes the messages of the two list rings.
fn on_list_rings(message: AnyMessage, change: impl FnOnce(Message) -> Message) -> AnyMessage {
    match message {
        AnyMessage::RingList(own) => AnyMessage::RingList(change(own)),
        AnyMessage::RingResilient(own) => AnyMessage::RingResilient(change(own)),
        other => other,
    }
}

fn with_token(message: AnyMessage, change: impl FnOnce(&mut Token)) -> AnyMessage {
    on_list_rings(message, |message| match message {
        Message::Hop(Hop::Pass { number, mut token }) => {
            change(&mut token);
            Message::Hop(Hop::Pass { number, token })
        }
        other => other,
    })
}

/// L2 without the entry: the list stays the initiator's own.
fn list_of_one(message: AnyMessage) -> AnyMessage {
    with_token(message, |token| {
        if let Circuit::Election { list } = &mut token.circuit {
            list.truncate(1);
        }
    })
}

/// L8 without its limit: nobody counts hops.
fn uncounted(message: AnyMessage) -> AnyMessage {
    with_token(message, |token| token.hops = 0)
}

/// The hop's HOP-ACK is not asked for.
fn unacknowledged(message: AnyMessage) -> AnyMessage {
    on_list_rings(message, |message| match message {
        Message::Hop(Hop::Pass { token, .. }) => Message::Hop(Hop::Pass { number: None, token }),
        other => other,
    })
}

/// AI4: the initiator names itself instead of the best.
fn selfish(message: AnyMessage) -> AnyMessage {
    use ring_all_ids::{Message, Token};
    match message {
        AnyMessage::RingAllIds(Message::Hop(Hop::Pass {
            number,
            token: Token::NewCoordinator { round, .. },
        })) => {
            let token = Token::NewCoordinator { round, leader: round.initiator };
            AnyMessage::RingAllIds(Message::Hop(Hop::Pass { number, token }))
        }
        other => other,
    }
}

/// A term ignored: what goes round does not say in which election.
fn unnumbered(message: AnyMessage) -> AnyMessage {
    use chang_roberts::{Message, Token};
    let without = |claim: LeaderClaim| LeaderClaim { term: Term::default(), ..claim };
    match message {
        AnyMessage::ChangRoberts(Message::Hop(hop)) => {
            AnyMessage::ChangRoberts(Message::Hop(Box::new(match *hop {
                Hop::Pass { number, token: Token::Election { bid } } => {
                    Hop::Pass { number, token: Token::Election { bid: without(bid) } }
                }
                Hop::Pass { number, token: Token::Elected { claim } } => {
                    Hop::Pass { number, token: Token::Elected { claim: without(claim) } }
                }
                other => other,
            })))
        }
        other => other,
    }
}

/// L2; `T_hop` too short, HOP-ACK not sent and not asked for: the living are passed over.
#[test]
fn textbook_list_ring_with_a_crash() {
    Trial::textbook().with(crashes(1)).catches(
        Algorithm::RingList,
        [
            (Mutation::Says(list_of_one), Property::Validity),
            (Mutation::Halved("Hop"), Property::Agreement),
            (Mutation::NeverSaid("HOP-ACK"), Property::Validity),
            (Mutation::Says(unacknowledged), Property::Validity),
            (Mutation::NeverGivesUp, Property::Agreement),
        ],
    );
}

#[test]
fn textbook_list_ring_without_faults() {
    Trial::textbook().called_by(&[1, 2]).catches(
        Algorithm::RingList,
        [(Mutation::NeverSaid("COORDINATOR"), Property::Termination)],
    );
}

#[test]
fn textbook_resilient_ring_with_a_crash() {
    Trial::textbook().with(crashes(1)).catches(
        Algorithm::RingResilient,
        [
            (Mutation::Says(list_of_one), Property::Validity),
            (Mutation::Halved("Hop"), Property::Agreement),
            (Mutation::NeverSaid("ELECTION"), Property::Validity),
        ],
    );
}

/// The initiator dies, and its token grows as it goes round for ever.
#[test]
fn textbook_resilient_ring_without_its_hop_limit() {
    Trial::textbook().called_by(&[1]).with(crashes(1)).catches(
        Algorithm::RingResilient,
        [(Mutation::Says(uncounted), Property::BoundedMessages)],
    );
}

/// L7 (`T_re`) never; H4 without end, and taken for H2.
#[test]
fn hardened_list_rings_with_a_loss() {
    let trial = Trial::hardened().called_by(&[1]).with(losses(1));
    trial.catches(
        Algorithm::RingList,
        [
            (Mutation::NeverArmed("Round"), Property::Termination),
            (Mutation::NeverArmed("Background(Preempt)"), Property::Validity),
            (Mutation::HumbleAbout("COORDINATOR"), Property::Validity),
        ],
    );
    trial.catches(
        Algorithm::RingResilient,
        [
            (Mutation::NeverArmed("Round"), Property::Termination),
            (Mutation::HumbleAbout("ALIVE"), Property::Validity),
        ],
    );
}

#[test]
fn textbook_active_list_without_faults() {
    Trial::textbook().called_by(&[1, 2]).catches(
        Algorithm::RingActiveList,
        [
            (Mutation::NeverHeardOf(1, 3), Property::Validity),
            (Mutation::NeverSaid("ELECT"), Property::Termination),
        ],
    );
}

#[test]
fn textbook_all_ids_without_faults() {
    Trial::textbook().called_by(&[1, 2]).catches(
        Algorithm::RingAllIds,
        [
            (Mutation::NeverSaid("NEW-COORDINATOR"), Property::Termination),
            (Mutation::Says(selfish), Property::Agreement),
            (Mutation::NeverHeardOf(1, 3), Property::Validity),
        ],
    );
}

/// AL5, AI8 (`T_re`) never.
#[test]
fn hardened_roll_calls_with_a_loss() {
    let trial = Trial::hardened().among(2).called_by(&[1]).with(losses(1));
    trial.catches(
        Algorithm::RingActiveList,
        [(Mutation::NeverArmed("Round"), Property::Termination)],
    );
    trial.catches(Algorithm::RingAllIds, [(Mutation::NeverArmed("Round"), Property::Termination)]);
}

#[test]
fn hardened_roll_calls_with_a_crash() {
    let trial = Trial::hardened().with(crashes(1));
    trial.catches(Algorithm::RingActiveList, [(Mutation::NeverGivesUp, Property::Agreement)]);
    trial.catches(Algorithm::RingAllIds, [(Mutation::NeverGivesUp, Property::Agreement)]);
}

#[test]
fn textbook_chang_roberts_without_faults() {
    Trial::textbook().called_by(&[1, 2]).catches(
        Algorithm::ChangRoberts,
        [
            (Mutation::NeverSaid("ELECTED"), Property::Termination),
            (Mutation::NeverSaid("ELECTION"), Property::Termination),
            (Mutation::NeverHeardOf(1, 3), Property::Termination),
        ],
    );
}

/// CR8 (`T_re`) never; H4 without end, and taken for H2.
#[test]
fn hardened_chang_roberts_with_a_loss() {
    Trial::hardened().called_by(&[1]).with(losses(1)).catches(
        Algorithm::ChangRoberts,
        [
            (Mutation::NeverArmed("Round"), Property::Termination),
            (Mutation::NeverArmed("Background(Preempt)"), Property::Validity),
            (Mutation::HumbleAbout("ALIVE"), Property::Validity),
        ],
    );
}

/// Who calls an election under a leader is refused, and calls the next one, in ever higher terms.
#[test]
fn hardened_chang_roberts_whose_elections_have_no_number() {
    Trial::hardened()
        .with(Budget { campaigns: 1, ..Budget::default() })
        .catches(Algorithm::ChangRoberts, [(Mutation::Says(unnumbered), Property::BoundedTerms)]);
}
