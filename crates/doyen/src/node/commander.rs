//! The source of a command that moves leadership: the leader tells the other members, so that the history of each of
//! them names it.
//!
//! The messages of the election carry why leadership moves, not who gave the command: nothing in an election depends on
//! it. So it travels beside them, in a [relayed packet](super::relay): when the leader accepts the command, and again
//! when it steps down. One that is lost both times is missing from one member's history, and nowhere else.

use doyen_core::change::{ElectionReason, LeaderChange, StepDownReason, TransferReason};
use doyen_core::members::{NodeId, Term};
use serde::{Deserialize, Serialize};

/// How such a packet begins. Those of the layer above begin with a small number.
const MARK: u8 = 0xc0;

/// The longest text that is shown.
const LONGEST: usize = 120;

/// A command that makes a leader transfer leadership, as it tells the others.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Commander {
    /// The term in which it leads.
    pub(super) term: Term,
    /// Who gave the command, and on which member.
    pub(super) by: String,
}

impl Commander {
    pub(super) fn encode(&self) -> Vec<u8> {
        // Encoding into a vector cannot fail.
        postcard::to_extend(self, vec![MARK]).unwrap_or_default()
    }

    /// Reads a packet; none if it is another one. A member that was broken into may send anything: the text is cut to a
    /// short line.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&[MARK])?;
        let Self { term, by } = postcard::from_bytes(rest).ok()?;
        Some(Self { term, by: by.chars().filter(|it| !it.is_control()).take(LONGEST).collect() })
    }
}

/// Whether a command made the leader leave. A preference may be older than its leadership: then the command is not known.
pub(super) fn is_commanded(reason: TransferReason) -> bool {
    use TransferReason::{Drained, Preferred, Requested, Resigned};
    matches!(reason, Resigned | Requested | Drained | Preferred)
}

/// The leader whose transfer by command makes this change, and the latest term in which it led.
pub(super) fn transferred_by(change: LeaderChange, me: NodeId) -> Option<(NodeId, Term)> {
    match change {
        LeaderChange::SteppedDown { term, reason: StepDownReason::Transferred { reason, .. } }
            if is_commanded(reason) =>
        {
            Some((me, term))
        }
        LeaderChange::BecameLeader { term, reason: ElectionReason::Transferred { by, reason } }
        | LeaderChange::Follows {
            term, reason: ElectionReason::Transferred { by, reason }, ..
        } if is_commanded(reason) => Some((by, Term(term.0.saturating_sub(1)))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Members of different releases talk to each other: this changes with the version of datagrams only.
    #[test]
    fn a_packet_is_encoded_as_ever_and_is_none_of_the_layer_above() {
        let commander = Commander { term: Term(300), by: "me".to_owned() };
        assert_eq!(crate::hex::encode(&commander.encode()), "c0ac02026d65");
        assert_eq!(Commander::decode(&commander.encode()), Some(commander));
        assert_eq!(Commander::decode(&[0, 0xac, 2]), None);
    }

    #[test]
    fn what_a_member_sends_is_shown_in_one_short_line() {
        let by = format!("root\n{}", "x".repeat(1000));
        let read = Commander::decode(&Commander { term: Term(1), by }.encode()).expect("a packet");
        assert_eq!(read.by, format!("root{}", "x".repeat(LONGEST - 4)));
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(mut bytes: Vec<u8>) {
            let _ = Commander::decode(&bytes);
            bytes.insert(0, MARK);
            let _ = Commander::decode(&bytes);
        }
    }
}
