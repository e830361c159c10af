//! Why somebody leads, and why somebody ceased to: a reason goes with every change of leadership.
//!
//! The leader says with every heartbeat why it leads, so every follower knows. What a member took part in itself it
//! tells its host as a [`Change`], which keeps a short history of them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::members::{Epoch, NodeId};
use crate::protocol::varint_len;

/// Why somebody leads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// It led from the beginning.
    Founded,
    /// It was elected when `after` led no longer, or when nobody was known to have led.
    Elected {
        /// Who led before.
        after: Option<NodeId>,
    },
    /// `by` handed over to it.
    HandedOver {
        /// Who led before.
        by: NodeId,
        /// What for.
        cause: Cause,
    },
}

/// Why a leader handed over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A better member asked for it.
    Outranked,
    /// The operator prefers another.
    Preferred,
    /// The operator told it to resign, or its process stops.
    Resigned,
    /// The operator named the successor.
    Transferred,
    /// The operator drained it.
    Drained,
}

/// How a leader ceased to be one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// No majority has renewed its lease in time.
    NoMajority,
    /// It was elected, and no majority ever confirmed it.
    NeverConfirmed,
    /// It heard of a later term.
    LaterTerm {
        /// Which.
        term: Epoch,
        /// From whom.
        from: NodeId,
    },
    /// Its disk turned out to be an old copy.
    Halted,
    /// An election goes on. Algorithms without leases can say no more.
    Contested,
    /// It holds another for the leader now. Algorithms without leases can say no more.
    GaveWay {
        /// Whom.
        to: NodeId,
    },
    /// It handed over.
    HandedOver {
        /// To whom; nobody fit was there if it is empty.
        to: Option<NodeId>,
        /// What for.
        cause: Cause,
    },
}

/// A change of leadership that a member took part in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// It leads now.
    Took {
        /// In which term.
        term: Epoch,
        /// Why it.
        why: Why,
    },
    /// It leads no longer.
    Lost {
        /// In which term it had led.
        term: Epoch,
        /// Why not.
        loss: Loss,
    },
    /// It follows another leader now.
    Follows {
        /// Whom.
        leader: NodeId,
        /// In which term.
        term: Epoch,
        /// Why that one.
        why: Why,
    },
    /// Its leader has fallen silent.
    Silent {
        /// Who.
        leader: NodeId,
        /// In which term.
        term: Epoch,
    },
    /// Its own lease has lapsed. It acts no more, but asks on in the same term for a while.
    Lapsed {
        /// In which term.
        term: Epoch,
    },
    /// A lapse was only a gap: `leader`, perhaps the member itself, goes on in the same term.
    Resumed {
        /// Who leads.
        leader: NodeId,
        /// In which term.
        term: Epoch,
    },
    /// It holds nobody for the leader any more: an election goes on. Algorithms without leases can say no more.
    Unsettled {
        /// Who led.
        leader: NodeId,
        /// In which term.
        term: Epoch,
    },
}

impl Why {
    /// Its size on the wire.
    pub(crate) fn encoded_len(self) -> usize {
        let id_len = |id: NodeId| varint_len(u64::from(id.0));
        1 + match self {
            Self::Founded => 0,
            Self::Elected { after } => 1 + after.map_or(0, id_len),
            Self::HandedOver { by, .. } => id_len(by) + 1,
        }
    }
}

/// How a teller calls the members.
pub type Names<'a> = &'a dyn Fn(NodeId) -> String;

impl Why {
    /// In words, with members called by their names.
    pub fn told(self, name: Names<'_>) -> String {
        match self {
            Self::Founded => "it led from the beginning".to_owned(),
            Self::Elected { after: None } => "elected, for nobody led".to_owned(),
            Self::Elected { after: Some(id) } => format!("elected, for {} led no longer", name(id)),
            Self::HandedOver { by, cause } => format!("{} handed over: {cause}", name(by)),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told(&|id| id.to_string()))
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Outranked => "outranked",
            Self::Preferred => "preferred",
            Self::Resigned => "resigned",
            Self::Transferred => "transferred",
            Self::Drained => "drained",
        })
    }
}

impl Loss {
    /// In words, with members called by their names.
    pub fn told(self, name: Names<'_>) -> String {
        match self {
            Self::NoMajority => "no majority renewed its lease in time".to_owned(),
            Self::NeverConfirmed => "no majority ever confirmed it".to_owned(),
            Self::LaterTerm { term, from } => {
                format!("{} knew of the later term {term}", name(from))
            }
            Self::Halted => "its disk is an old copy".to_owned(),
            Self::Contested => "an election goes on".to_owned(),
            Self::GaveWay { to } => format!("gave way to {}", name(to)),
            Self::HandedOver { to: Some(to), cause } => {
                format!("handed over to {}: {cause}", name(to))
            }
            Self::HandedOver { to: None, cause } => {
                format!("stepped down, and nobody fit was there: {cause}")
            }
        }
    }
}

impl Change {
    /// In words, with members called by their names.
    pub fn told(self, name: Names<'_>) -> String {
        match self {
            Self::Took { term, why } => format!("leads in term {term}: {}", why.told(name)),
            Self::Lost { term, loss } => {
                format!("no longer leads in term {term}: {}", loss.told(name))
            }
            Self::Follows { leader, term, why } => {
                format!("follows {} in term {term}: {}", name(leader), why.told(name))
            }
            Self::Silent { leader, term } => {
                format!("hears no more of {}, term {term}", name(leader))
            }
            Self::Lapsed { term } => {
                format!("its lease of term {term} lapsed: no majority renewed it in time")
            }
            Self::Resumed { leader, term } => {
                format!("{} leads on in term {term} after a gap", name(leader))
            }
            Self::Unsettled { leader, term } => {
                format!("takes part in an election; {} led in term {term}", name(leader))
            }
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told(&|id| id.to_string()))
    }
}
