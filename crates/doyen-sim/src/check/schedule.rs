//! Steps in words: what a counterexample is written down as, and read back from.
//!
//! One line a step: `deliver ELECTION epoch=1 from 1 to 2`, `expire Reply at 2`, `crash 3`, `transfer 3 to 2`, `wait 2
//! ticks`. One that happens to a process beside the one in its
//! member's place ends with `, other process 1`. A step in the middle of which a member crashes ends with `, crash after 1`: after the first thing that it sends or stores.

use std::fmt;
use std::str::FromStr;

use doyen_core::members::NodeId;
use doyen_core::protocol::Order;
use doyen_core::time::Span;
use serde::{Deserialize, Serialize};

/// One step of a run.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Move {
    /// What happens.
    pub what: Happening,
    /// It happens to the process that was the first, the second and so on to be replaced, or started as a clone; to the
    /// process in its member's place without it.
    pub process: Option<u8>,
    /// The member to whom it happens crashes when it has sent and stored so many things because of it.
    pub crash_after: Option<u8>,
}

/// What happens.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Happening {
    /// A message arrives.
    Deliver(Mail),
    /// A message arrives, and stays under way.
    Double(Mail),
    /// A message is lost.
    Lose(Mail),
    /// A timer expires.
    Expire {
        /// Whose.
        member: NodeId,
        /// Which.
        timer: String,
    },
    /// A failure detector tells a member that a peer is down, or up again.
    Report {
        /// Whose detector.
        member: NodeId,
        /// About whom.
        peer: NodeId,
        /// What it says.
        up: bool,
    },
    /// A member calls an election of itself.
    Campaign(NodeId),
    /// A member crashes.
    Crash(NodeId),
    /// A member comes up again.
    Restart(NodeId),
    /// A member comes up again without its disk, and asks to rejoin.
    Rejoin(NodeId),
    /// An operator gives a member a command.
    Command {
        /// Whom.
        member: NodeId,
        /// What.
        command: Command,
    },
    /// So many ticks go by.
    Wait(u32),
}

/// What an operator wants of a member.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// Lead no longer.
    Resign,
    /// Hand over to this member.
    Transfer(NodeId),
    /// Do not lead.
    Drain,
    /// You may lead again.
    Undrain,
    /// This member is to lead while it can.
    Prefer(NodeId),
    /// Another process of it is started, without its disk; the one before runs on. No process is told of that.
    Replace,
    /// The same, from a copy of its disk.
    Clone,
}

impl Command {
    /// As the state machine is told, if it is. `lasting`: for how long a preference holds.
    pub(crate) fn order(self, lasting: Span) -> Option<Order> {
        Some(match self {
            Self::Resign => Order::Resign,
            Self::Transfer(to) => Order::Transfer { to },
            Self::Drain => Order::Drain { lasting: None, never: false },
            Self::Undrain => Order::Undrain,
            Self::Prefer(member) => Order::Prefer { member, lasting },
            Self::Replace | Self::Clone => return None,
        })
    }
}

/// A message, and between whom.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Mail {
    /// Its word and its fields.
    pub text: String,
    /// Who sent it.
    pub from: NodeId,
    /// To whom.
    pub to: NodeId,
}

impl fmt::Display for Mail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {} to {}", self.text, self.from, self.to)
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            Happening::Deliver(mail) => write!(f, "deliver {mail}")?,
            Happening::Double(mail) => write!(f, "double {mail}")?,
            Happening::Lose(mail) => write!(f, "lose {mail}")?,
            Happening::Expire { member, timer } => write!(f, "expire {timer} at {member}")?,
            Happening::Report { member, peer, up } => {
                write!(f, "report {peer} {} to {member}", if *up { "up" } else { "down" })?;
            }
            Happening::Campaign(member) => write!(f, "campaign {member}")?,
            Happening::Crash(member) => write!(f, "crash {member}")?,
            Happening::Restart(member) => write!(f, "restart {member}")?,
            Happening::Rejoin(member) => write!(f, "rejoin {member}")?,
            Happening::Command { member, command } => match command {
                Command::Resign => write!(f, "resign {member}")?,
                Command::Replace => write!(f, "replace {member}")?,
                Command::Clone => write!(f, "clone {member}")?,
                Command::Transfer(to) => write!(f, "transfer {member} to {to}")?,
                Command::Drain => write!(f, "drain {member}")?,
                Command::Undrain => write!(f, "undrain {member}")?,
                Command::Prefer(preferred) => write!(f, "prefer {preferred} at {member}")?,
            },
            Happening::Wait(1) => f.write_str("wait 1 tick")?,
            Happening::Wait(ticks) => write!(f, "wait {ticks} ticks")?,
        }
        if let Some(process) = self.process {
            write!(f, ", other process {process}")?;
        }
        match self.crash_after {
            Some(acts) => write!(f, ", crash after {acts}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Move {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (what, crash_after) = match text.rsplit_once(", crash after ") {
            None => (text, None),
            Some((what, acts)) => (what, Some(number(acts, text)?)),
        };
        let (what, process) = match what.rsplit_once(", other process ") {
            None => (what, None),
            Some((what, process)) => (what, Some(number(process, text)?)),
        };
        parse(what, text).map(|what| Self { what, process, crash_after })
    }
}

impl TryFrom<String> for Move {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Move> for String {
    fn from(step: Move) -> Self {
        step.to_string()
    }
}

fn parse(what: &str, whole: &str) -> Result<Happening, String> {
    let unknown = || {
        format!(
            "`{whole}` is no step; write for example `deliver ELECTION from 1 to 2`, `expire Reply at 2`, \
             `report 3 down to 1`, `crash 3` or `wait 1 tick`"
        )
    };
    let (verb, rest) = what.split_once(' ').ok_or_else(unknown)?;
    let id = |text: &str| number(text, whole).map(NodeId);
    let mail = || {
        let (rest, to) = rest.rsplit_once(" to ").ok_or_else(unknown)?;
        let (text, from) = rest.rsplit_once(" from ").ok_or_else(unknown)?;
        Ok::<_, String>(Mail { text: text.to_owned(), from: id(from)?, to: id(to)? })
    };
    Ok(match verb {
        "deliver" => Happening::Deliver(mail()?),
        "double" => Happening::Double(mail()?),
        "lose" => Happening::Lose(mail()?),
        "expire" => {
            let (timer, member) = rest.rsplit_once(" at ").ok_or_else(unknown)?;
            Happening::Expire { member: id(member)?, timer: timer.to_owned() }
        }
        "report" => {
            let (about, member) = rest.rsplit_once(" to ").ok_or_else(unknown)?;
            let (peer, state) = about.split_once(' ').ok_or_else(unknown)?;
            let up = match state {
                "up" => true,
                "down" => false,
                _ => return Err(unknown()),
            };
            Happening::Report { member: id(member)?, peer: id(peer)?, up }
        }
        "campaign" => Happening::Campaign(id(rest)?),
        "crash" => Happening::Crash(id(rest)?),
        "restart" => Happening::Restart(id(rest)?),
        "rejoin" => Happening::Rejoin(id(rest)?),
        "replace" => Happening::Command { member: id(rest)?, command: Command::Replace },
        "clone" => Happening::Command { member: id(rest)?, command: Command::Clone },
        "resign" => Happening::Command { member: id(rest)?, command: Command::Resign },
        "drain" => Happening::Command { member: id(rest)?, command: Command::Drain },
        "undrain" => Happening::Command { member: id(rest)?, command: Command::Undrain },
        "transfer" => {
            let (member, to) = rest.split_once(" to ").ok_or_else(unknown)?;
            Happening::Command { member: id(member)?, command: Command::Transfer(id(to)?) }
        }
        "prefer" => {
            let (preferred, member) = rest.split_once(" at ").ok_or_else(unknown)?;
            Happening::Command { member: id(member)?, command: Command::Prefer(id(preferred)?) }
        }
        "wait" => {
            let ticks = rest.strip_suffix(" ticks").or(rest.strip_suffix(" tick"));
            Happening::Wait(number(ticks.ok_or_else(unknown)?, whole)?)
        }
        _ => return Err(unknown()),
    })
}

fn number<T: FromStr>(text: &str, whole: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| format!("`{text}` in `{whole}` is not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_read_back_as_it_was_written() {
        for text in [
            "deliver ELECTION epoch=1 from 1 to 2",
            "double OK from 3 to 1",
            "lose COORDINATOR from 3 to 1",
            "expire Inner(Reply) at 2",
            "report 3 down to 1",
            "report 3 up to 1",
            "campaign 1",
            "crash 2",
            "restart 2",
            "rejoin 2",
            "replace 2",
            "clone 2, crash after 1",
            "crash 2, other process 1",
            "double VOTE term=1 from 1 to 2, other process 2, crash after 1",
            "resign 3",
            "transfer 3 to 2",
            "drain 3, crash after 1",
            "undrain 3",
            "prefer 1 at 3",
            "wait 1 tick",
            "wait 5 ticks",
            "deliver ELECTION from 1 to 2, crash after 2",
        ] {
            let step: Move = text.parse().expect(text);
            assert_eq!(step.to_string(), text);
        }
        for text in ["", "crash", "crash x", "deliver OK to 1", "report 1 sideways to 2", "dance 3"]
        {
            assert!(text.parse::<Move>().is_err(), "{text}");
        }
    }
}
