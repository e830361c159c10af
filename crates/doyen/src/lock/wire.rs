//! What calls and answers about locks carry over HTTP.

use doyen_core::lock::{ClaimId, Ticket};
use doyen_core::members::Term;
use serde::{Deserialize, Serialize};

/// A claim as it is written: 32 hexadecimal digits.
pub fn show_claim(ClaimId(claim): ClaimId) -> String {
    format!("{claim:032x}")
}

/// Reads what [`show_claim`] writes.
pub fn parse_claim(text: &str) -> Option<ClaimId> {
    let is_plain = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_plain.then(|| u128::from_str_radix(text, 16).ok().map(ClaimId)).flatten()
}

/// The longest name of an owner, in bytes.
pub const LONGEST_OWNER: usize = 64;

/// Whether a leader accepts this name of an owner.
pub fn is_owner(name: &str) -> bool {
    name.len() <= LONGEST_OWNER && !name.chars().any(char::is_control)
}

/// A name that a leader accepts: without control characters, and cut off where it is too long.
pub fn to_owner(name: &str) -> String {
    let mut owner = String::new();
    for letter in name.chars().filter(|letter| !letter.is_control()) {
        if owner.len() + letter.len_utf8() > LONGEST_OWNER {
            break;
        }
        owner.push(letter);
    }
    owner
}

/// A place in the queue of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The term of the leader that gave it.
    pub term: u64,
    /// Its number in that term.
    pub number: u64,
}

impl From<Ticket> for Place {
    fn from(Ticket { term, number }: Ticket) -> Self {
        Self { term: term.0, number }
    }
}

impl From<Place> for Ticket {
    fn from(Place { term, number }: Place) -> Self {
        Self { term: Term(term), number }
    }
}

/// Asks for a lock, or for a place in its queue. Repeated by a client that waits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Acquire {
    /// The identity of this claim: 32 random hexadecimal digits, the same in every call about it. It can release the lock.
    #[cfg_attr(feature = "http", schema(examples("5f0c2d6e9b3a48d7a1e4c86f02b95d13")))]
    pub claim: String,
    /// How long the answer may take if the lock is not free; at most a third of a lease. Without it, and without the right
    /// ticket, the answer comes at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "http", schema(examples("1s")))]
    pub wait: Option<String>,
    /// The place that an earlier answer gave. A new leader needs it to keep the place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<Place>,
    /// What the client calls itself, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "http", schema(examples("backup on db1")))]
    pub owner: Option<String>,
}

/// Keeps a lock for another lease.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Keep {
    /// The claim that holds it.
    pub claim: String,
    /// The fencing token under which it holds it.
    pub token: u64,
    /// What the client calls itself, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// Gives a lock up, or a place in its queue.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// The claim.
    pub claim: String,
}

/// The state of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum LockAnswer {
    /// It holds the lock.
    Held {
        /// The term of the leader that answers.
        term: u64,
        /// The fencing token: higher than those of all earlier grants.
        token: u64,
        /// For how long it holds the lock, in milliseconds from the *sending* of the request. Keep it before that.
        lease_ms: u64,
    },
    /// It waits.
    Waiting {
        /// The term of the leader that answers.
        term: u64,
        /// Its place, to be shown in the next call.
        ticket: Place,
        /// How many wait before it.
        ahead: usize,
        /// It came too late to keep the place that it showed, and is at the end now.
        requeued: bool,
        /// The leader is new, and grants nothing yet.
        settling: bool,
    },
}

/// The claim is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
pub struct Released {
    /// The term of the leader that answers.
    pub term: u64,
}

/// The locks that are held or waited for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
pub struct LockList {
    /// The term of the leader that answers.
    pub term: u64,
    /// The leader is new, and grants nothing yet: clients may not have shown all their claims.
    pub settling: bool,
    /// The locks, by name.
    pub locks: Vec<LockReport>,
}

/// A lock that is held or waited for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
pub struct LockReport {
    /// Its name.
    pub name: String,
    /// The holder, if there is one.
    pub holder: Option<HolderReport>,
    /// The waiting clients, in order.
    pub waiters: Vec<WaiterReport>,
}

/// The holder of a lock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
pub struct HolderReport {
    /// What it calls itself.
    pub owner: String,
    /// Its fencing token.
    pub token: u64,
}

/// A client that waits for a lock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
pub struct WaiterReport {
    /// What it calls itself.
    pub owner: String,
    /// Its place.
    pub ticket: Place,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_short_plain_text() {
        for name in ["job", "", &"ü".repeat(40), "two\nlines", &"x".repeat(65)] {
            let owner = to_owner(name);
            assert!(is_owner(&owner), "{owner}");
            assert_eq!(is_owner(name), owner == name, "{name}");
        }
        assert_eq!(to_owner(&"ü".repeat(40)).len(), LONGEST_OWNER);
    }

    #[test]
    fn a_claim_has_32_digits() {
        let claim = ClaimId(0xab);
        assert_eq!(parse_claim(&show_claim(claim)), Some(claim));
        for wrong in ["", "ab", &"0".repeat(33), &format!("+{}", "0".repeat(31))] {
            assert_eq!(parse_claim(wrong), None, "{wrong}");
        }
    }
}
