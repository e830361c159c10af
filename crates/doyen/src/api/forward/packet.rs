//! What two members send each other about a call, and how an answer is split and put together again.

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::super::problem::{Kind, Problem};

/// The length of a part. With everything around it, it fits into the smallest frame of IPv6.
pub(super) const PART: usize = 1100;

/// The number of parts of the longest answer: 172 KiB, for a history of 256 changes.
pub(super) const MOST_PARTS: usize = 160;

/// The longest answer, in bytes.
pub(super) const LONGEST_ANSWER: usize = PART * MOST_PARTS;

/// How many parts are sent at once. The next ones are asked for, so that an answer fills no buffer.
pub(super) const WINDOW: usize = 8;

/// The longest call, in bytes.
pub(super) const LONGEST_CALL: usize = PART;

/// The longest text that says who makes a call.
const LONGEST_NAME: usize = 100;

/// A request, as another member made it or as it is to make it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(in super::super) struct Call {
    /// Whether it is a command (`POST`); otherwise it only reads (`GET`).
    pub(in super::super) is_command: bool,
    /// With the query.
    pub(in super::super) path: String,
    /// The header `If-Match`.
    pub(in super::super) if_match: Option<String>,
    /// The caller, as the member that forwards the call names it.
    pub(in super::super) by: String,
    /// JSON, or nothing. It may be a key.
    pub(in super::super) body: Zeroizing<String>,
}

impl Call {
    /// The caller, as text that is safe to show: a member that was broken into may send anything.
    pub(super) fn caller(&self) -> String {
        self.by.chars().filter(|it| !it.is_control()).take(LONGEST_NAME).collect()
    }
}

/// The answer to a call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(in super::super) struct Reply {
    /// The status of HTTP.
    pub(in super::super) status: u16,
    /// JSON.
    pub(in super::super) body: String,
}

impl Reply {
    /// The answer as it is sent. One that is too long is replaced by a problem.
    pub(super) fn encode(&self) -> Vec<u8> {
        let encoded = encoded(self);
        if encoded.len() <= LONGEST_ANSWER { encoded } else { Self::too_long().encode() }
    }

    /// What is sent in place of an answer that is too long.
    pub(super) fn too_long() -> Self {
        let detail = "the answer is too long to be forwarded; ask for less, with limit";
        Kind::TooLarge.with_detail(detail).into()
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }
}

impl From<Problem> for Reply {
    fn from(problem: Problem) -> Self {
        Self { status: problem.status, body: serde_json::to_string(&problem).unwrap_or_default() }
    }
}

/// A packet. Calls are numbered by the process that makes them; numbers rise.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Packet {
    /// Do this, once. It is repeated until something is answered.
    Call { id: u64, call: Call },
    /// It is being done.
    Working { id: u64 },
    /// A part of the answer.
    Part { id: u64, part: u16, parts: u16, bytes: Vec<u8> },
    /// Send the parts from this one on.
    Fetch { id: u64, from: u16 },
    /// There is no answer any more. Either the call has been carried out, or it will never be.
    Gone { id: u64 },
}

impl Packet {
    pub(super) fn encode(&self) -> Vec<u8> {
        encoded(self)
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }

    pub(super) fn id(&self) -> u64 {
        match *self {
            Self::Call { id, .. }
            | Self::Working { id }
            | Self::Part { id, .. }
            | Self::Fetch { id, .. }
            | Self::Gone { id } => id,
        }
    }
}

/// Encoding into a vector cannot fail.
fn encoded(value: &impl Serialize) -> Vec<u8> {
    postcard::to_extend(value, Vec::new()).unwrap_or_default()
}

/// The parts of an answer, from one on, as many as are sent at once.
pub(super) fn parts(id: u64, answer: &[u8], from: u16) -> Vec<Packet> {
    let parts = answer.len().div_ceil(PART) as u16;
    let numbered = (0..parts).zip(answer.chunks(PART)).skip(usize::from(from)).take(WINDOW);
    numbered.map(|(part, bytes)| Packet::Part { id, part, parts, bytes: bytes.to_vec() }).collect()
}

/// An answer that arrives in parts, in any order and perhaps repeatedly.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Assembly {
    parts: Vec<Option<Vec<u8>>>,
}

impl Assembly {
    /// Adds a part, and returns whether it is new. One that cannot belong to this answer is ignored.
    pub(super) fn add(&mut self, part: u16, parts: u16, bytes: Vec<u8>) -> bool {
        let (part, parts) = (usize::from(part), usize::from(parts));
        if self.parts.is_empty() && (1..=MOST_PARTS).contains(&parts) {
            self.parts = vec![None; parts];
        }
        let fits = self.parts.len() == parts && bytes.len() <= PART;
        match self.parts.get_mut(part).filter(|place| fits && place.is_none()) {
            Some(place) => place.replace(bytes).is_none(),
            None => false,
        }
    }

    /// The first part that is missing, if any part has arrived. The number of parts, if all have.
    pub(super) fn first_missing(&self) -> Option<u16> {
        let missing = self.parts.iter().position(Option::is_none).unwrap_or(self.parts.len());
        (!self.parts.is_empty()).then_some(missing as u16)
    }

    /// The answer, if all parts have arrived.
    pub(super) fn whole(&self) -> Option<Vec<u8>> {
        let parts: Option<Vec<&[u8]>> = self.parts.iter().map(Option::as_deref).collect();
        parts.filter(|parts| !parts.is_empty()).map(|parts| parts.concat())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::node::wire;

    #[test]
    fn a_part_fits_into_the_smallest_frame_of_ipv6() {
        let last = Packet::Part { id: u64::MAX, part: 9, parts: 160, bytes: vec![0; PART] };
        assert!(wire::OVERHEAD + last.encode().len() <= 1280 - 48);
    }

    /// Members of different releases talk to each other: this changes with the version of datagrams only.
    #[test]
    fn packets_are_encoded_as_ever() {
        let call = Call {
            is_command: true,
            path: "/v1/x".to_owned(),
            if_match: Some("\"7\"".to_owned()),
            by: "me".to_owned(),
            body: "{}".to_owned().into(),
        };
        let packets = [
            (Packet::Call { id: 300, call }, "00ac0201052f76312f7801032237220 26d65027b7d"),
            (Packet::Working { id: 1 }, "0101"),
            (Packet::Part { id: 1, part: 2, parts: 3, bytes: vec![7, 255] }, "0201020302 07ff"),
            (Packet::Fetch { id: 1, from: 200 }, "0301c801"),
            (Packet::Gone { id: 1 }, "0401"),
        ];
        for (packet, digits) in packets {
            let encoded = packet.encode();
            assert_eq!(crate::hex::encode(&encoded), digits.replace(' ', ""), "{packet:?}");
            assert_eq!(Packet::decode(&encoded), Some(packet));
        }
    }

    #[test]
    fn an_answer_that_is_too_long_is_replaced_by_a_problem() {
        let long = Reply { status: 200, body: "x".repeat(LONGEST_ANSWER) };
        let reply = Reply::decode(&long.encode()).expect("an answer");
        assert!(reply.status == 413 && reply.body.contains("limit"), "{reply:?}");
    }

    #[test]
    fn who_makes_a_call_is_shown_in_one_short_line() {
        let by = format!("root\n{}", "x".repeat(1000));
        let call = Call {
            is_command: false,
            path: String::new(),
            if_match: None,
            by,
            body: Zeroizing::default(),
        };
        assert_eq!(call.caller(), format!("root{}", "x".repeat(LONGEST_NAME - 4)));
    }

    proptest! {
        #[test]
        fn an_answer_is_put_together_whatever_is_lost_repeated_or_overtaken(
            length in 1..3 * WINDOW * PART,
            order in any::<u64>(),
        ) {
            let answer: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let (mut assembly, mut random) = (Assembly::default(), order);
            let mut rounds = 0;
            while assembly.whole().is_none() {
                let mut sent = parts(1, &answer, assembly.first_missing().unwrap_or(0));
                let turned = random as usize % sent.len().max(1);
                sent.rotate_left(turned);
                sent.extend_from_within(..1);
                for packet in sent {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    // A quarter is lost.
                    if let Packet::Part { part, parts, bytes, .. } = packet && random >> 62 != 0 {
                        assembly.add(part, parts, bytes);
                    }
                }
                rounds += 1;
                prop_assert!(rounds < 1000);
            }
            prop_assert_eq!(assembly.whole(), Some(answer));
        }

        #[test]
        fn no_bytes_are_too_strange(bytes: Vec<u8>, part: u16, parts: u16) {
            let _ = (Packet::decode(&bytes), Reply::decode(&bytes));
            let mut assembly = Assembly::default();
            assembly.add(part, parts, bytes.clone());
            assembly.add(parts, part, bytes);
            prop_assert!(assembly.parts.len() <= MOST_PARTS);
        }
    }
}
