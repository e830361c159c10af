//! The lock service: named locks that the elected leader grants, with a fence for every grant.
//!
//! It is the centralised mutual exclusion of the sources (cs677: REQUEST, GRANT, RELEASE at a coordinator), hardened: the
//! coordinator is an elected leader with a term and a lease, a grant has a lease too, and the table of locks is rebuilt from
//! the clients after a failover. There is no replicated log.
//!
//! Two state machines without a clock or a network. The [`Grantor`](grantor::Grantor) runs beside every member and acts only
//! while its member leads; the [`Client`](client::Client) runs in whatever program wants a lock, which need not be a member.
//! That is why they are not one [`Protocol`](crate::protocol::Protocol): its messages go between members, and a client of this
//! service is none. They use the same contract in every other respect (events in, effects out; a timer is a tag; a
//! [`Section`](crate::protocol::Section) is announced), so the same code is explored (`lock.rs` among the tests of doyen-check),
//! simulated ([`lock_service`](crate::exclusion::lock_service), where every member is a client too) and run (`doyen lock`).
//!
//! | rule | what happens |
//! |---|---|
//! | G1 | A client that wants a lock arms `Hold(round)`, *then* sends ACQUIRE. Every call has a new round and a timer of its own. |
//! | G2 | The grantor gives each claim a ticket (term, number), queues claims in the order of their tickets and grants a free lock to the first. A grant has a fence (term, number); both numbers rise within a term. A claim that is known is answered again, never queued twice. |
//! | G3 | A client takes a grant that answers one of its rounds, if the timer of that round is still armed: its time runs from *before* it asked. An answer of an earlier term than one that it has seen counts for nothing. |
//! | G4 | Every third of a lease the client calls again, KEEP if it holds the lock, ACQUIRE if it waits. The grantor starts `Expire` of that claim again. |
//! | G5 | The timer of the round that the client relies on fires: it is outside. Its host has ended the work by then. |
//! | G6 | RELEASE, or `Expire`: the claim is gone, and the next one gets the lock. |
//! | G7 | A grantor whose member leads in a new term forgets its table, and grants nothing until `Settle` has fired. |
//! | G8 | A client that is answered in a new term refuses answers of earlier terms from then on. |
//! | G9 | While it settles, the grantor enters what clients show it: a holder its fence, a waiting client its ticket, which keeps its place. Later, a holder that it does not know is told that its lock is gone, and a waiting client gets a new ticket, at the end, and is told so. |
//! | G10 | Without a valid lease, by the clock at the call, a grantor answers nothing but that it does not lead. |
//! | G11 | The resource refuses a fence lower than the highest one that it has seen. |
//!
//! **Why it excludes.** `Expire` and `Settle` last one lock lease by any clock within the drift: `G·(1+ρ)/(1−ρ)`. A client's
//! time began before it sent the call, so it ends before the `Expire` that the call started. Every grant of an earlier
//! leader answers a call that was sent before that leader's lease ended, which is before the new leader's first lease: by
//! the end of `Settle` the clients whose claims the new leader has not been shown have stopped.
//!
//! **Departures from the specification** (section 5.1). Clients call, and are not called: a leader cannot send REGISTER to
//! programs that it does not know, so a client shows its claim with its next call, and the leader cannot know when all have.
//! It always waits for the whole of `Settle`. Waiting clients keep their places by tickets. A claim has a random identity of
//! its own instead of a member and a request number, so a call that arrives late cannot be taken for a later request.
//!
//! **What it cannot promise.** A client that is paused beyond its lease does not know it: only the fence at the resource keeps
//! it out. Tickets and fences are what clients show, and are believed. A waiting client that finds the new leader too late
//! loses its place. An ACQUIRE that arrives after its own RELEASE is queued, and expires.

pub mod client;
pub mod grantor;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::members::Term;
use crate::protocol::Fence;
use crate::time::Span;

/// How long a lock is held without being kept: the same everywhere, because a new leader must wait out what an earlier one
/// granted.
pub const LEASE: Span = Span::from_millis(10_000);

/// As many calls as a lease has keep intervals, and the one at its end.
const ROUNDS: usize = 4;

/// What grantors and clients agree on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// `G`: how long a client may rely on an answer, from the sending of the call.
    pub lease: Span,
    /// `ρ`: by how many thousandths any clock may be wrong.
    pub drift: u32,
    /// How many calls a client remembers whose answers are still worth something. The answer to one that is forgotten does
    /// not count.
    pub rounds: usize,
    /// What a grantor has room for.
    pub limits: Limits,
    /// The rule that a test of the checks takes away.
    pub without: Option<Rule>,
}

impl Config {
    /// The usual lease and limits, for clocks with a drift of `drift` thousandths.
    pub const fn new(drift: u32) -> Self {
        Self { lease: LEASE, drift, rounds: ROUNDS, limits: Limits::USUAL, without: None }
    }

    /// `G·(1+ρ)/(1−ρ)`: how long a grantor waits, so that one lease has passed by any other clock.
    pub fn expiry(&self) -> Span {
        let drift = u128::from(self.drift.min(999));
        let nanos = u128::from(self.lease.as_nanos()) * (1000 + drift) / (1000 - drift);
        Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How often a client calls.
    pub fn keep_interval(&self) -> Span {
        Span::from_nanos(self.lease.as_nanos() / 3)
    }

    fn heeds(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }
}

/// What a grantor has room for. A claim beyond a limit is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// How many locks may be held or waited for.
    pub locks: usize,
    /// How many claims may wait for one lock.
    pub waiters: usize,
    /// How many claims one client may have, over all locks.
    pub claims_per_client: usize,
}

impl Limits {
    /// Enough for what a leader without a log should be asked to do.
    pub const USUAL: Self = Self { locks: 1024, waiters: 256, claims_per_client: 256 };
}

/// A rule that a test can take away, to see that the checks notice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// G3: a grant counts from the sending of the call that it answers.
    HoldFromSending,
    /// G7: a new leader settles before it grants.
    Settle,
    /// G7: it settles for one lease, not only until some clients have shown their claims.
    SettleToTheEnd,
    /// G7: it settles for a lease by any clock.
    SettleForALease,
    /// G8: answers of earlier terms are refused.
    EarlierTermsRefused,
    /// G9: a holder whose lock is kept over a failover is entered into the table.
    ClaimsAreEntered,
    /// G9: waiting clients keep their places.
    PlacesAreKept,
    /// G10: a grantor without a lease grants nothing.
    LeaseIsChecked,
}

impl Rule {
    /// Every rule.
    pub const ALL: [Self; 8] = [
        Self::HoldFromSending,
        Self::Settle,
        Self::SettleToTheEnd,
        Self::SettleForALease,
        Self::EarlierTermsRefused,
        Self::ClaimsAreEntered,
        Self::PlacesAreKept,
        Self::LeaseIsChecked,
    ];
}

/// The name of a lock.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LockName(Arc<str>);

/// The longest name of a lock, in bytes.
pub const LONGEST_NAME: usize = 64;

impl LockName {
    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for LockName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        match text.len() {
            1..=LONGEST_NAME if text.bytes().all(is_plain) => Ok(Self(text.into())),
            _ => Err(format!(
                "`{}` is not the name of a lock: 1 to {LONGEST_NAME} letters, digits, `-`, `_` or `.`",
                text.chars().take(LONGEST_NAME + 1).collect::<String>()
            )),
        }
    }
}

impl TryFrom<String> for LockName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<LockName> for String {
    fn from(name: LockName) -> Self {
        name.0.as_ref().to_owned()
    }
}

impl fmt::Display for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The identity of one claim to one lock: a random number that no other claim has. A program that knows it can release the
/// lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ClaimId(pub u128);

/// The client that a claim counts for, by a number that the host gives it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Origin(pub u128);

/// A place in the queue of a lock: lower ones come first.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct Ticket {
    /// The term of the leader that gave it.
    pub term: Term,
    /// Its number in that term.
    pub number: u64,
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.term, self.number)
    }
}

/// The number of a call of a client. Rounds rise.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Round(pub u64);

/// What a client asks of the grantor.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Call {
    /// The claim.
    pub claim: ClaimId,
    /// The call, to which the answer belongs.
    pub round: Round,
    /// What is asked.
    pub request: Request,
}

/// A request.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Request {
    /// ACQUIRE: the lock, or a place in its queue.
    Acquire {
        /// The place that an earlier call got, if any.
        ticket: Option<Ticket>,
    },
    /// KEEP: the lock that it holds, for another lease.
    Keep {
        /// Under this fence.
        fence: Fence,
    },
    /// RELEASE: it neither holds nor wants the lock any more.
    Release,
}

/// The answer of a grantor to a call.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// The claim.
    pub claim: ClaimId,
    /// The call that it answers.
    pub round: Round,
    /// The term of the leader that answers.
    pub term: Term,
    /// What it says.
    pub verdict: Verdict,
}

/// What an answer says.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Verdict {
    /// The client holds the lock, for one lease from the sending of the call.
    Held(Fence),
    /// It waits.
    Waiting {
        /// Its place.
        ticket: Ticket,
        /// How many wait before it.
        ahead: usize,
        /// It came too late to keep the place that it showed, and is at the end now.
        requeued: bool,
    },
    /// It does not hold the lock any more.
    Gone,
    /// It has been released, or was not there.
    Released,
    /// There is no room for another claim.
    Full(Full),
    /// This member does not lead, or holds no valid lease.
    NotLeader,
}

/// The limit that a claim met.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Full {
    /// Too many locks are held or waited for.
    Locks,
    /// Too many claims wait for this lock.
    Waiters,
    /// This client has too many claims.
    Client,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Locks => "too many locks are held or waited for",
            Self::Waiters => "too many claims wait for this lock",
            Self::Client => "this client has too many claims",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        for good in ["a", "orders.nightly-1_x", &"x".repeat(64)] {
            assert_eq!(good.parse::<LockName>().map(|name| name.to_string()), Ok(good.to_owned()));
        }
        for bad in ["", "a/b", "a b", "ä", "..%2f", &"x".repeat(65)] {
            assert!(bad.parse::<LockName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_grantor_waits_for_a_lease_by_any_clock() {
        let config = Config { lease: Span::from_millis(900), ..Config::new(100) };
        assert_eq!(config.expiry(), Span::from_millis(1_100));
        assert!(Config { drift: 5_000, ..config }.expiry() > config.expiry());
    }
}
