//! The simulator counts bytes without encoding anything; this compares its arithmetic with the encoding itself.

use doyen_core::algorithm::allegiance::{Reign, Upkeep};
use doyen_core::algorithm::{bully, modified_bully};
use doyen_core::link::Numbered;
use doyen_core::members::{Epoch, Incarnation, Key, NodeId};
use doyen_core::node::{Body, Packet};
use doyen_core::protocol::Message;
use proptest::prelude::*;

/// Numbers of every encoded length: a uniform one would nearly always take the longest.
fn number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64_u32).prop_map(|(number, shift)| number >> shift)
}

fn small() -> impl Strategy<Value = u32> {
    number().prop_map(|number| number as u32)
}

fn epoch() -> impl Strategy<Value = Epoch> {
    number().prop_map(Epoch)
}

fn key() -> impl Strategy<Value = Key> {
    (number(), any::<bool>(), small()).prop_map(|(attr, negative, id)| {
        let attr = if negative { !(attr as i64) } else { attr as i64 };
        Key { attr, id: NodeId(id) }
    })
}

fn upkeep() -> impl Strategy<Value = Upkeep> {
    let reign = (epoch(), key()).prop_map(|(epoch, leader)| Reign { epoch, leader });
    prop_oneof![
        reign.prop_map(|reign| Upkeep::Alive { reign }),
        epoch().prop_map(|epoch| Upkeep::Nack { epoch }),
    ]
}

fn bully_message() -> impl Strategy<Value = bully::Message> {
    prop_oneof![
        epoch().prop_map(|epoch| bully::Message::Election { epoch }),
        epoch().prop_map(|epoch| bully::Message::Ok { epoch }),
        epoch().prop_map(|epoch| bully::Message::Coordinator { epoch }),
        upkeep().prop_map(bully::Message::Upkeep),
    ]
}

fn modified_bully_message() -> impl Strategy<Value = modified_bully::Message> {
    use modified_bully::Message;
    let busy = proptest::option::of(small().prop_map(NodeId));
    prop_oneof![
        epoch().prop_map(|epoch| Message::Stop { epoch }),
        epoch().prop_map(|epoch| Message::Election { epoch }),
        (epoch(), key(), busy).prop_map(|(epoch, prio, busy)| Message::Ok { epoch, prio, busy }),
        epoch().prop_map(|epoch| Message::Grant { epoch }),
        epoch().prop_map(|epoch| Message::Coordinator { epoch }),
        upkeep().prop_map(Message::Upkeep),
    ]
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
        any::<bool>().prop_map(|hears| Body::Heartbeat { hears }),
    ];
    (small(), small(), body).prop_map(|(from, to, body)| Packet {
        from: Incarnation(from),
        to: Incarnation(to),
        body,
    })
}

fn check(message: &impl Message) -> Result<(), TestCaseError> {
    let bytes = postcard::to_allocvec(message).expect("messages can be encoded");
    prop_assert_eq!(message.encoded_len(), bytes.len(), "{}", message);
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
        fn of_packets(packet in packet(bully_message())) {
            check(&packet)?;
        }
    }
}
