//! The simulator counts bytes without encoding anything; this compares its arithmetic with the encoding itself.

use doyen_core::algorithm::leader_tracker::{Background, LeaderClaim};
use doyen_core::algorithm::ring::{Hop, HopNumber, Round};
use doyen_core::algorithm::{bully, chang_roberts, modified_bully, ring_active_list, ring_all_ids};
use doyen_core::link::Numbered;
use doyen_core::members::{Incarnation, Key, NodeId, Term};
use doyen_core::node::{Body, Packet};
use doyen_core::protocol::Message;
use proptest::prelude::*;
use serde::de::DeserializeOwned;

/// Numbers of every encoded length: a uniform one would nearly always take the longest.
fn number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64_u32).prop_map(|(number, shift)| number >> shift)
}

fn small() -> impl Strategy<Value = u32> {
    number().prop_map(|number| number as u32)
}

fn term() -> impl Strategy<Value = Term> {
    number().prop_map(Term)
}

fn key() -> impl Strategy<Value = Key> {
    (number(), any::<bool>(), small()).prop_map(|(attr, negative, id)| {
        let attr = if negative { !(attr as i64) } else { attr as i64 };
        Key { attr, id: NodeId(id) }
    })
}

fn node() -> impl Strategy<Value = NodeId> {
    small().prop_map(NodeId)
}

fn claim() -> impl Strategy<Value = LeaderClaim> {
    (term(), key()).prop_map(|(term, leader)| LeaderClaim { term, leader })
}

fn background() -> impl Strategy<Value = Background> {
    prop_oneof![
        claim().prop_map(|claim| Background::Alive { claim }),
        term().prop_map(|term| Background::Nack { term }),
    ]
}

fn bully_message() -> impl Strategy<Value = bully::Message> {
    prop_oneof![
        term().prop_map(|term| bully::Message::Election { term }),
        term().prop_map(|term| bully::Message::Ok { term }),
        term().prop_map(|term| bully::Message::Coordinator { term }),
        background().prop_map(bully::Message::Background),
    ]
}

fn modified_bully_message() -> impl Strategy<Value = modified_bully::Message> {
    use modified_bully::Message;
    let busy = proptest::option::of(small().prop_map(NodeId));
    prop_oneof![
        term().prop_map(|term| Message::Stop { term }),
        term().prop_map(|term| Message::Election { term }),
        (term(), key(), busy).prop_map(|(term, prio, busy)| Message::Ok { term, prio, busy }),
        term().prop_map(|term| Message::Grant { term }),
        term().prop_map(|term| Message::Coordinator { term }),
        background().prop_map(Message::Background),
    ]
}

fn round() -> impl Strategy<Value = Round> {
    (term(), node()).prop_map(|(term, initiator)| Round { term, initiator })
}

fn hop<T: std::fmt::Debug + 'static>(
    token: impl Strategy<Value = T> + 'static,
) -> impl Strategy<Value = Hop<T>> {
    let number = || small().prop_map(HopNumber);
    prop_oneof![
        (proptest::option::of(number()), token)
            .prop_map(|(number, token)| Hop::Pass { number, token }),
        number().prop_map(|number| Hop::Ack { number }),
    ]
}

fn chang_roberts_message() -> impl Strategy<Value = chang_roberts::Message> {
    use chang_roberts::{Message, Token};
    let token = prop_oneof![
        claim().prop_map(|bid| Token::Election { bid }),
        claim().prop_map(|claim| Token::Elected { claim }),
    ];
    prop_oneof![
        key().prop_map(|key| Message::Election { key }),
        key().prop_map(|key| Message::Elected { key }),
        hop(token).prop_map(Message::from),
        background().prop_map(Message::from),
    ]
}

fn ring_active_list_message() -> impl Strategy<Value = ring_active_list::Message> {
    use ring_active_list::{Message, Token};
    let token = (round(), node()).prop_map(|(round, member)| Token { round, member });
    prop_oneof![hop(token).prop_map(Message::from), background().prop_map(Message::from)]
}

fn ring_all_ids_message() -> impl Strategy<Value = ring_all_ids::Message> {
    use ring_all_ids::{Message, Token};
    let token = prop_oneof![
        (round(), node()).prop_map(|(round, member)| Token::ElectMe { round, member }),
        (round(), node()).prop_map(|(round, leader)| Token::NewCoordinator { round, leader }),
    ];
    prop_oneof![hop(token).prop_map(Message::from), background().prop_map(Message::from)]
}

fn packet<M: Message + 'static>(
    message: impl Strategy<Value = M> + 'static,
) -> impl Strategy<Value = Packet<M>> {
    let message = message.boxed();
    let numbered = (number(), number(), message.clone())
        .prop_map(|(number, base, message)| Numbered { number, base, message })
        .boxed();
    let body = prop_oneof![
        message.prop_map(Body::Plain),
        numbered.clone().prop_map(Body::First),
        numbered.prop_map(Body::Again),
        number().prop_map(|below| Body::Ack { below }),
        any::<bool>().prop_map(|reachable| Body::Heartbeat { reachable }),
    ];
    (small(), small(), body).prop_map(|(from, to, body)| Packet {
        from: Incarnation(from),
        to: Incarnation(to),
        body,
    })
}

fn check<M: Message + DeserializeOwned>(message: &M) -> Result<(), TestCaseError> {
    let bytes = postcard::to_allocvec(message).expect("messages can be encoded");
    prop_assert_eq!(message.encoded_len(), bytes.len(), "{}", message);
    let decoded: M = postcard::from_bytes(&bytes).expect("what was encoded can be decoded");
    prop_assert_eq!(&decoded, message);
    Ok(())
}

mod the_counted_size_is_the_encoded_size {
    use super::*;

    proptest! {
        #[test]
        fn of_bully(message in bully_message()) {
            check(&message)?;
        }

        #[test]
        fn of_modified_bully(message in modified_bully_message()) {
            check(&message)?;
        }

        #[test]
        fn of_chang_roberts(message in chang_roberts_message()) {
            check(&message)?;
        }

        #[test]
        fn of_ring_active_list(message in ring_active_list_message()) {
            check(&message)?;
        }

        #[test]
        fn of_ring_all_ids(message in ring_all_ids_message()) {
            check(&message)?;
        }

        #[test]
        fn of_packets(packet in packet(bully_message())) {
            check(&packet)?;
        }
    }
}
