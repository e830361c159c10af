//! Datagrams and state files keep their bytes: `bytes.txt` was recorded once, and whatever is read from it is written
//! back the same. Nodes of different versions talk to each other, and a state file outlives the program that wrote it.

use doyen_core::algorithm::{
    Algorithm, bully, chang_roberts, modified_bully, quorum, ring_active_list, ring_all_ids,
    ring_list, ring_resilient,
};
use doyen_core::node::Packet;
use doyen_core::protocol::{Protocol, name_of};
use doyen_core::session::{Kept, Letter};

fn unhex(digits: &str) -> Vec<u8> {
    let byte = |place| u8::from_str_radix(&digits[place..place + 2], 16).expect("two digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

#[test]
fn what_was_written_is_read_and_written_the_same() {
    let lines = include_str!("bytes.txt").lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        let [algorithm, kind, digits] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line} has not three parts")
        };
        let bytes = unhex(digits);
        let again = match algorithm.parse().expect("an algorithm") {
            Algorithm::Bully => again::<bully::Bully>(kind, &bytes),
            Algorithm::ModifiedBully => again::<modified_bully::ModifiedBully>(kind, &bytes),
            Algorithm::RingList => again::<ring_list::RingList>(kind, &bytes),
            Algorithm::RingActiveList => again::<ring_active_list::RingActiveList>(kind, &bytes),
            Algorithm::RingAllIds => again::<ring_all_ids::RingAllIds>(kind, &bytes),
            Algorithm::ChangRoberts => again::<chang_roberts::ChangRoberts>(kind, &bytes),
            Algorithm::RingResilient => again::<ring_resilient::RingResilient>(kind, &bytes),
            Algorithm::Quorum => again::<quorum::Quorum>(kind, &bytes),
        };
        assert_eq!(again, bytes, "{line}");
    }
}

/// What is written when `bytes` have been read.
fn again<P: Protocol>(kind: &str, bytes: &[u8]) -> Vec<u8> {
    let written = match kind {
        "bare" => postcard::to_allocvec(&postcard::from_bytes::<P::Durable>(bytes).unwrap()),
        "kept" => postcard::to_allocvec(&postcard::from_bytes::<Kept<P::Durable>>(bytes).unwrap()),
        _ => {
            let letter: Letter<Packet<P::Message>> = postcard::from_bytes(bytes).unwrap();
            assert_eq!(name_of(&letter), kind);
            postcard::to_allocvec(&letter)
        }
    };
    written.expect("it can be encoded")
}
