//! Why a member became leader, and why it stopped: every change of leadership carries a reason.
//!
//! A leader sends its reason with every heartbeat, so every follower knows it. A member reports each change that it took
//! part in to its host as a [`LeaderChange`]; the host keeps a short history of them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::members::{NodeId, Term};

/// Why a member became leader.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names of the fields say what they are")]
pub enum ElectionReason {
    /// The cluster started with this leader.
    Founded,
    /// It was elected after the last leader that it knew was lost, or when it knew none.
    Elected {
        after: Option<NodeId>,
        /// Why that leader was lost, as far as the elected member knows.
        #[serde(default)]
        cause: Option<Loss>,
    },
    /// The last leader transferred leadership to it.
    Transferred { by: NodeId, reason: TransferReason },
}

/// Why a member lost its leader.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Its heartbeats no longer arrived: it died, or messages from it got lost.
    Unreachable,
    /// It reported that no majority renewed its lease.
    NotRenewed,
    /// It reported that no majority ever confirmed it.
    NotConfirmed,
    /// It reported that it gave up its lease, for this reason.
    Transferred(TransferReason),
}

/// Why a leader transferred leadership.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransferReason {
    /// A member of higher rank asked to take over.
    Outranked,
    /// The operator prefers another member.
    Preferred,
    /// The operator told it to resign.
    Resigned,
    /// The operator named the successor.
    Requested,
    /// The operator drained it.
    Drained,
    /// Its process died, and its guardian released the lease.
    Crashed,
    /// What it runs as leader keeps failing.
    Failed,
    /// Its process is shutting down.
    ShuttingDown,
}

impl TransferReason {
    /// Whether the leader has failed: its rank is lower for a while.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Crashed | Self::Failed)
    }
}

/// Why a leader stepped down.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names of the fields say what they are")]
pub enum StepDownReason {
    /// No majority renewed its lease in time.
    NoMajority,
    /// It was elected, but no majority ever confirmed it.
    NeverConfirmed,
    /// It learned of a later term.
    LaterTerm { term: Term, from: NodeId },
    /// Its disk turned out to be an old copy.
    Halted,
    /// An election is in progress. Algorithms without leases know no more than that.
    Contested,
    /// It follows another leader. Algorithms without leases know no more than that.
    GaveWay { to: NodeId },
    /// It transferred leadership.
    Transferred {
        /// The successor; none if no member was eligible.
        to: Option<NodeId>,
        reason: TransferReason,
    },
}

/// A change of leadership, as reported by a member that took part in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names of the fields say what they are")]
pub enum LeaderChange {
    /// This member became leader.
    BecameLeader { term: Term, reason: ElectionReason },
    /// This member is no longer leader.
    SteppedDown { term: Term, reason: StepDownReason },
    /// This member follows a new leader.
    Follows { leader: NodeId, term: Term, reason: ElectionReason },
    /// This member's leader is unreachable.
    LostContact { leader: NodeId, term: Term },
    /// This member's leader reported that it no longer leads, and no successor campaigns.
    LeaderLeft { leader: NodeId, term: Term, reason: Loss },
    /// This member's own lease lapsed. It must not act, but tries for a while to renew the lease in the same term.
    LeaseLapsed { term: Term },
    /// The lapse was only a gap: this member has a lease again in the same term.
    LeaseResumed { leader: NodeId, term: Term },
    /// This member's leader is reachable again, in the same term. Whether its lease had lapsed is not known here.
    RegainedContact { leader: NodeId, term: Term },
    /// This member takes part in an election and has no leader. Algorithms without leases know no more than that.
    ElectionStarted { leader: NodeId, term: Term },
}

/// How a text names the members.
pub type Names<'a> = &'a dyn Fn(NodeId) -> String;

impl ElectionReason {
    /// The reason as text, with members called by their names.
    pub fn describe(self, name: Names<'_>) -> String {
        match self {
            Self::Founded => "leader from the start".to_owned(),
            Self::Elected { after: None, .. } => "elected; no previous leader known".to_owned(),
            Self::Elected { after: Some(id), cause } => {
                let lost = cause.map_or("lost leadership".to_owned(), |cause| cause.to_string());
                format!("elected after {} {lost}", name(id))
            }
            Self::Transferred { by, reason: TransferReason::Crashed } => {
                format!(
                    "elected after the process of {} died and its guardian released the lease",
                    name(by)
                )
            }
            Self::Transferred { by, reason } => {
                format!("{} transferred leadership ({reason})", name(by))
            }
        }
    }
}

impl StepDownReason {
    /// The reason as text, with members called by their names.
    pub fn describe(self, name: Names<'_>) -> String {
        match self {
            Self::NoMajority => "no majority renewed the lease in time".to_owned(),
            Self::NeverConfirmed => "no majority confirmed the election".to_owned(),
            Self::LaterTerm { term, from } => format!("learned of term {term} from {}", name(from)),
            Self::Halted => "the disk is an old copy".to_owned(),
            Self::Contested => "an election is in progress".to_owned(),
            Self::GaveWay { to } => format!("{} is the new leader", name(to)),
            Self::Transferred { to: Some(to), reason } => {
                format!("transferred leadership to {} ({reason})", name(to))
            }
            Self::Transferred { to: None, reason } => format!("{reason}; no eligible successor"),
        }
    }
}

impl LeaderChange {
    /// The change as text, with members called by their names.
    pub fn describe(self, name: Names<'_>) -> String {
        match self {
            Self::BecameLeader { term, reason } => {
                format!("became leader (term {term}): {}", reason.describe(name))
            }
            Self::SteppedDown { term, reason } => {
                format!("stepped down (term {term}): {}", reason.describe(name))
            }
            Self::Follows { leader, term, reason } => {
                format!("follows {} (term {term}): {}", name(leader), reason.describe(name))
            }
            Self::LostContact { leader, term } => {
                format!("lost contact with leader {} (term {term})", name(leader))
            }
            Self::LeaderLeft { leader, term, reason } => {
                format!("leader {} (term {term}) {}", name(leader), reason)
            }
            Self::LeaseLapsed { term } => {
                format!("lease lapsed (term {term}): no majority renewed it in time")
            }
            Self::LeaseResumed { leader, term } => {
                format!("{} resumed leadership after a gap (term {term})", name(leader))
            }
            Self::RegainedContact { leader, term } => {
                format!("regained contact with leader {} (term {term})", name(leader))
            }
            Self::ElectionStarted { leader, term } => {
                format!("election in progress; the last leader was {} (term {term})", name(leader))
            }
        }
    }
}

impl fmt::Display for ElectionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(&|id| id.to_string()))
    }
}

impl fmt::Display for Loss {
    /// The predicate of a sentence whose subject is the leader.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable => f.write_str("became unreachable"),
            Self::NotRenewed => f.write_str("stepped down: no majority renewed its lease in time"),
            Self::NotConfirmed => f.write_str("stepped down: no majority confirmed its election"),
            Self::Transferred(TransferReason::Crashed) => {
                f.write_str("died and its guardian released the lease")
            }
            Self::Transferred(reason) => write!(f, "gave up its lease ({reason})"),
        }
    }
}

impl fmt::Display for LeaderChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(&|id| id.to_string()))
    }
}

impl fmt::Display for TransferReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Outranked => "outranked",
            Self::Preferred => "preferred",
            Self::Resigned => "resigned",
            Self::Requested => "requested",
            Self::Drained => "drained",
            Self::Crashed => "crashed",
            Self::Failed => "what it runs keeps failing",
            Self::ShuttingDown => "shutting down",
        })
    }
}
