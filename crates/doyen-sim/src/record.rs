//! What a simulation tells those who watch it: one record an event.
//!
//! A world without an observer makes no records. With one, each record is handed over and forgotten, so that a trace
//! of any length needs no memory.

use doyen_core::members::{Epoch, NodeId};
use doyen_core::protocol::{Class, Notice, Role};
use serde::{Deserialize, Serialize};

use crate::time::Time;

/// Is shown every record in order.
pub trait Observer {
    /// Takes note of `record`.
    fn observe(&mut self, record: &Record);
}

impl Observer for Vec<Record> {
    fn observe(&mut self, record: &Record) {
        self.push(record.clone());
    }
}

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// When.
    pub at: Time,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum What {
    /// A message was sent. What became of it is known at once: the network has drawn it.
    Sent {
        /// The message's number; its receipts carry the same.
        id: u32,
        /// Who sent it.
        from: NodeId,
        /// To whom.
        to: NodeId,
        /// The seeds' word for it.
        kind: String,
        /// The word and the fields.
        text: String,
        /// On whose account it goes.
        class: Class,
        /// When it arrives; never, if it is lost.
        arrives: Option<Time>,
        /// When its double arrives, if the network doubled it.
        again: Option<Time>,
    },
    /// A message was handled by a live member, or passed on by the control part of a dead one.
    Received {
        /// The message's number.
        id: u32,
        /// Who sent it.
        from: NodeId,
        /// Who handled it.
        to: NodeId,
        /// The seeds' word for it.
        kind: String,
        /// The rules that fired.
        rules: Vec<String>,
    },
    /// A message found its receiver dead.
    Missed {
        /// The message's number.
        id: u32,
        /// Who sent it.
        from: NodeId,
        /// Who is dead.
        to: NodeId,
        /// The seeds' word for it.
        kind: String,
    },
    /// A timer was armed.
    Armed {
        /// Whose.
        member: NodeId,
        /// Which.
        timer: String,
        /// Whether it belongs to upkeep that goes on for ever, such as a heartbeat.
        upkeep: bool,
        /// When it is due.
        due: Time,
    },
    /// A timer fired.
    Fired {
        /// Whose.
        member: NodeId,
        /// Which.
        timer: String,
        /// Whether it belongs to upkeep that goes on for ever, such as a heartbeat.
        upkeep: bool,
        /// The rules that fired with it.
        rules: Vec<String>,
    },
    /// A member was told to call an election: it noticed that the coordinator is gone.
    Campaign {
        /// Who.
        member: NodeId,
        /// The rules that fired.
        rules: Vec<String>,
    },
    /// An operator wanted something of a member.
    Ordered {
        /// Of whom.
        member: NodeId,
        /// What.
        order: String,
        /// The rules that fired.
        rules: Vec<String>,
    },
    /// Everything has been stopped that ran under the lease of a retiring leader.
    Retired {
        /// Whose.
        member: NodeId,
        /// The rules that fired.
        rules: Vec<String>,
    },
    /// A member has something to say for the records: why the leadership changed, why it refuses an order.
    Noted {
        /// Who.
        member: NodeId,
        /// What it says.
        note: String,
    },
    /// A member's lease runs until another time than before.
    Leased {
        /// Whose.
        member: NodeId,
        /// Until when; no lease runs any more, if it is empty.
        until: Option<Time>,
    },
    /// A member's failure detector gave another member up.
    Suspected {
        /// Whose detector.
        member: NodeId,
        /// Who is held for dead.
        peer: NodeId,
    },
    /// A member's failure detector hears another member again.
    Trusted {
        /// Whose detector.
        member: NodeId,
        /// Who is alive.
        peer: NodeId,
    },
    /// What a member believes has changed.
    View {
        /// Who believes it.
        member: NodeId,
        /// Whom it follows.
        leader: Option<NodeId>,
        /// Since which election.
        epoch: Epoch,
        /// What it is doing.
        role: Role,
    },
    /// A member crashed.
    Crashed {
        /// Who.
        member: NodeId,
        /// Whether its control part still forwards (003).
        forwards: bool,
    },
    /// A member came up again.
    Restarted {
        /// Who.
        member: NodeId,
        /// Whether it still has what it stored.
        disk: bool,
        /// The rules that fired.
        rules: Vec<String>,
    },
    /// A member stopped doing anything for a while.
    Paused {
        /// Who.
        member: NodeId,
        /// Until when.
        until: Time,
    },
    /// A member's clock now runs at this rate and has jumped ahead.
    Clock {
        /// Whose.
        member: NodeId,
        /// Parts per million of the true rate.
        rate_ppm: u32,
        /// By how many nanoseconds it jumped.
        jump: u64,
    },
    /// Nothing gets from one member to another any more.
    Cut {
        /// From whom.
        from: NodeId,
        /// To whom.
        to: NodeId,
    },
    /// That cut is mended.
    Mended {
        /// From whom.
        from: NodeId,
        /// To whom.
        to: NodeId,
    },
    /// The members are separated into groups.
    Partitioned {
        /// The groups.
        groups: Vec<Vec<NodeId>>,
    },
    /// Some messages take longer from now on, or are lost more often.
    Weather {
        /// Which, and how.
        text: String,
    },
    /// Every cut and partition is undone, and the weather is as it was.
    Healed,
}

/// What a member tells its host, in words; nothing of what has a record of its own.
pub(crate) fn note(notice: &Notice) -> Option<String> {
    Some(match notice {
        Notice::Down(_) | Notice::Up(_) | Notice::Dropped { .. } | Notice::Unsent(_) => {
            return None;
        }
        Notice::Changed(change) => change.to_string(),
        Notice::Refused(refusal) => format!("refuses: {refusal}"),
        Notice::ForeignConfiguration(peer) => {
            format!("ignores {peer}, which is configured otherwise")
        }
        Notice::StateIsOld { seen, by } => {
            format!("halts: its disk is an old copy, for {by} has heard it in term {seen}")
        }
        Notice::NobodyToAsk => {
            "halts: its disk is lost, and nobody can tell it which terms there have been".to_owned()
        }
        Notice::OutOfTerms => "cannot stand: there is no higher term".to_owned(),
        Notice::Replaced { seen, by } => {
            format!("halts: {by} has met incarnation {} of it in another session", seen.0)
        }
        Notice::WrongClock => "halts: its clock is plainly wrong".to_owned(),
    })
}
