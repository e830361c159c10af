//! Datagrams and state files keep their bytes: `bytes.txt` was recorded once, and what is read from it is written back
//! identically. Nodes of different versions talk to each other, and a state file outlives the program that wrote it.

use std::collections::BTreeSet;

use doyen_core::layers;
use doyen_core::protocol::name_of;
use doyen_core::registry::Algorithm;

fn unhex(digits: &str) -> Vec<u8> {
    let byte = |place| u8::from_str_radix(&digits[place..place + 2], 16).expect("two digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// The algorithm, the kind and the bytes of every line of a file.
fn lines_of(file: &'static str) -> impl Iterator<Item = (Algorithm, &'static str, Vec<u8>)> {
    let lines = file.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let [algorithm, kind, digits] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line} has not three parts")
        };
        (algorithm.parse().expect("an algorithm"), kind, unhex(digits))
    })
}

fn recorded() -> impl Iterator<Item = (Algorithm, &'static str, Vec<u8>)> {
    lines_of(include_str!("bytes.txt"))
}

#[test]
fn recorded_bytes_are_read_and_written_back_identically() {
    for (algorithm, kind, bytes) in recorded() {
        let mut from = postcard::Deserializer::from_bytes(&bytes);
        let written = match kind {
            "bare" => postcard::to_allocvec(&algorithm.read_durable(&mut from).unwrap()),
            "kept" => postcard::to_allocvec(&algorithm.read_kept(&mut from).unwrap()),
            _ => {
                let letter = algorithm.read_letter(&mut from).unwrap();
                assert_eq!(name_of(&letter), kind);
                postcard::to_allocvec(&letter)
            }
        };
        assert_eq!(written, Ok(bytes), "{algorithm} {kind}");
    }
}

#[test]
fn every_kind_of_every_algorithm_that_a_node_runs_is_recorded() {
    let recorded: BTreeSet<_> = recorded().map(|(algorithm, kind, _)| (algorithm, kind)).collect();
    for algorithm in Algorithm::ELECTIONS {
        let kinds = layers::kinds(algorithm);
        for name in kinds.iter().map(|kind| kind.name).chain(["kept", "bare"]) {
            assert!(recorded.contains(&(algorithm, name)), "{algorithm} {name}");
        }
    }
}

/// What the release before sent and stored is read as what this one writes in its place.
#[test]
fn what_the_release_before_wrote_is_read() {
    let earlier = lines_of(include_str!("bytes-earlier.txt"));
    let now = recorded().filter(|(algorithm, ..)| *algorithm == Algorithm::Quorum);
    for ((algorithm, kind, bytes), (_, same, expected)) in earlier.zip(now) {
        assert_eq!(kind, same);
        let mut from = postcard::Deserializer::from_bytes(&bytes);
        let read = match kind {
            "bare" => postcard::to_allocvec(&algorithm.read_earlier_durable(&mut from).unwrap()),
            "kept" => postcard::to_allocvec(&algorithm.read_earlier_kept(&mut from).unwrap()),
            "GREETING" | "ROSTER" => Ok(bytes.clone()),
            _ => {
                // A letter begins with sessions and a counter; the packet of an algorithm follows the tag 2.
                let (head, packet) = bytes.split_at(21);
                assert_eq!(head[20], 2, "{kind}");
                let mut from = postcard::Deserializer::from_bytes(packet);
                let packet = algorithm.read_earlier_packet(&mut from).unwrap();
                postcard::to_allocvec(&packet).map(|packet| [head, &packet].concat())
            }
        };
        assert_eq!(read, Ok(expected), "{kind}");
    }
}
