//! The bodies of the fuzz targets on random bytes, for as long as a test may take.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// What happens, as the tape writes it: more that keeps an election going than that disturbs it.
fn any_step() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => any::<u8>().prop_map(|which| vec![0, which]),
        4 => (any::<[u8; 2]>(), prop_oneof![0..4_u8, any::<u8>()])
            .prop_map(|([place, which], change)| vec![3, place, change, which]),
        2 => (any::<[u8; 2]>(), vec(any::<u8>(), 0..40)).prop_map(|([from, to], bytes)| {
            [&[4, from, to, bytes.len() as u8], &bytes[..]].concat()
        }),
        5 => any::<[u8; 2]>().prop_map(|[member, which]| vec![5, member, which]),
        1 => any::<[u8; 2]>().prop_map(|[member, what]| vec![7, member, what]),
        1 => any::<[u8; 3]>().prop_map(|[member, what, how]| vec![8, member, what, how]),
        1 => any::<[u8; 2]>().prop_map(|[member, how]| vec![9, member, how]),
    ]
}

/// A tape of steps. Their numbers, and with them the first byte, are those of [`World::step`].
fn any_tape() -> impl Strategy<Value = Vec<u8>> {
    (any::<u8>(), vec(any_step(), 0..STEPS))
        .prop_map(|(flags, steps)| [&[flags][..], &steps.concat()].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_message_stops_a_member(tape in any_tape()) {
        for algorithm in Algorithm::ALL {
            election(algorithm, &tape);
        }
    }

    #[test]
    fn no_bytes_stop_a_member(bytes in vec(any::<u8>(), 0..600)) {
        for algorithm in Algorithm::ALL {
            election(algorithm, &bytes);
        }
    }
}

proptest! {
    #[test]
    fn no_datagram_stops_a_node(bytes in vec(any::<u8>(), 0..300)) {
        datagram(&bytes);
    }

    /// A sender with the key, which makes well-formed datagrams with any content.
    #[test]
    fn no_member_stops_a_node(
        ids in (0..4_u32, 0..4_u32),
        numbers in (0..4_u64, 0..4_u64, prop_oneof![0..6_u64, any::<u64>()]),
        configuration in 0..2_u32,
        kind in 0..5_u8,
        content in vec(any::<u8>(), 0..60),
    ) {
        let (from, to) = ids;
        let mut text = [from, to].map(u32::to_le_bytes).concat();
        text.extend([numbers.0, numbers.1, numbers.2].map(u64::to_le_bytes).concat());
        text.extend(configuration.to_le_bytes());
        text.extend([0, 0, kind]);
        text.extend(content);
        datagram(&text);
    }
}

/// The world that is fuzzed is one in which elections take place: else nothing would be tested.
#[test]
fn members_left_alone_on_the_tape_elect_a_leader() {
    for algorithm in Algorithm::ELECTIONS {
        let mut world = World::new(algorithm, 0);
        let mut led = BTreeSet::new();
        for round in 0..2_000_u32 {
            // All messages, then one timer of each.
            while !world.in_flight.is_empty() {
                world.deliver(0, |_| {});
            }
            for member in 0..MEMBERS as usize {
                world.fire(member, (round % 13) as u8);
            }
            let views = world.members.iter().map(|member| member.node.view());
            led.extend(views.filter(|view| view.role.leads()).filter_map(|view| view.leader));
        }
        assert!(led.contains(&NodeId(MEMBERS)), "{algorithm}: the best has never led: {led:?}");
    }
}
