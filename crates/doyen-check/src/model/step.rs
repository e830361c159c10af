//! One step of an exploration: what a search branches on, and the line that a counterexample stores of it.
//!
//! One line a step: `deliver ELECTION term=1 from 1 to 2 #5c02b1f9`, `expire Reply at 2`, `crash 3`, `transfer 3 to 2`,
//! `request 2`, `exit 2`, `wait 2 ticks`. A step of a process other than the one in its member's slot ends with `, other
//! process 1`. A step in the middle of which a process crashes ends with `, crash after 1`: after the first message or
//! write.
//!
//! The number behind `#` is the fingerprint of the message. Messages may read the same and yet differ in their age, or in
//! fields that they do not print, so a line without the number may mean several steps. With it, a line means one step; a
//! user may omit it where the words fit only one step.

use std::fmt;

use doyen_core::explore::Explore;
use doyen_core::members::NodeId;
use doyen_core::protocol::{AdminCommand, Origin};
use doyen_core::trace::timer_label;

use super::{Model, Worker};
use crate::budget::Item;
use crate::fingerprint::fingerprint;

/// A step: `act` happens to the process in `slot`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Step {
    /// Zero where the step concerns every process, as time does.
    pub(crate) slot: u8,
    pub(crate) act: Act,
    /// The process crashes after so many messages and writes; zero if it does not.
    pub(crate) crash_after: u8,
}

impl Step {
    pub(crate) fn new(slot: usize, act: Act) -> Self {
        Self { slot: slot as u8, act, crash_after: 0 }
    }
}

/// What happens to a process. A search names messages and timers by number; the state machine gets the things themselves
/// (see [`Act::resolve`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Act<M = u32, T = u32> {
    /// A message arrives; with `again` it stays in flight. At a process that is down it is lost.
    Receive {
        message: M,
        again: bool,
    },
    /// A message is lost.
    Lose {
        message: M,
    },
    /// An armed timer expires.
    Expire {
        timer: T,
        background: bool,
    },
    /// The failure detector reports the true state of a peer.
    Report {
        peer: u8,
        up: bool,
    },
    /// The failure detector reports a live peer as down.
    Suspect {
        peer: u8,
    },
    /// The process starts an election.
    Campaign,
    /// The client of the process asks to enter the critical section.
    Request,
    /// The client has left the critical section.
    Exit,
    /// An operator gives a command, by its number in the model's list.
    Command(u8),
    Crash,
    /// The process crashes as leader, and its guardian sends its last messages.
    Release,
    /// The process starts: joining with its disk, or rejoining without it.
    Start(Origin),
    /// Another process of the member starts without a disk; the old one runs on. `process` numbers the new one.
    Replace {
        process: u8,
    },
    /// Another process of the member starts from a copy of the disk.
    Clone {
        process: u8,
    },
    /// Time passes for every process.
    Wait {
        ticks: u32,
    },
}

impl Act {
    /// The message that arrives.
    pub(crate) fn received(self) -> Option<u32> {
        match self {
            Self::Receive { message, .. } => Some(message),
            _ => None,
        }
    }

    /// The message that the step is about.
    pub(super) fn message(self) -> Option<u32> {
        match self {
            Self::Lose { message } => Some(message),
            _ => self.received(),
        }
    }

    /// What the step takes from the budget, if it is a fault. Commands have costs of their own, and the requests of a client
    /// are counted by its process.
    pub(super) fn cost(self) -> Option<Item> {
        match self {
            Self::Receive { again: true, .. } => Some(Item::Duplication),
            Self::Lose { .. } => Some(Item::Loss),
            Self::Suspect { .. } => Some(Item::Suspicion),
            Self::Campaign => Some(Item::Campaign),
            Self::Crash => Some(Item::Crash),
            Self::Release => Some(Item::Release),
            Self::Start(Origin::Rejoining) => Some(Item::Rejoin),
            Self::Start(_) => Some(Item::Restart),
            Self::Replace { .. } => Some(Item::Replacement),
            Self::Clone { .. } => Some(Item::Clone),
            Self::Receive { .. }
            | Self::Expire { .. }
            | Self::Report { .. }
            | Self::Request
            | Self::Exit
            | Self::Command(_)
            | Self::Wait { .. } => None,
        }
    }

    /// The same act with the message and the timer themselves.
    pub(crate) fn resolve<M, T>(
        self,
        find_message: impl FnOnce(u32) -> M,
        find_timer: impl FnOnce(u32) -> T,
    ) -> Act<M, T> {
        match self {
            Self::Receive { message, again } => {
                Act::Receive { message: find_message(message), again }
            }
            Self::Lose { message } => Act::Lose { message: find_message(message) },
            Self::Expire { timer, background } => {
                Act::Expire { timer: find_timer(timer), background }
            }
            Self::Report { peer, up } => Act::Report { peer, up },
            Self::Suspect { peer } => Act::Suspect { peer },
            Self::Campaign => Act::Campaign,
            Self::Request => Act::Request,
            Self::Exit => Act::Exit,
            Self::Command(command) => Act::Command(command),
            Self::Crash => Act::Crash,
            Self::Release => Act::Release,
            Self::Start(origin) => Act::Start(origin),
            Self::Replace { process } => Act::Replace { process },
            Self::Clone { process } => Act::Clone { process },
            Self::Wait { ticks } => Act::Wait { ticks },
        }
    }
}

impl<P: Explore> Model<'_, P> {
    /// A step as a line.
    pub(crate) fn describe(&self, worker: &Worker<P>, state: &[u32], step: Step) -> StepText {
        let id_in = |slot: u8| worker.locals[state[usize::from(slot)] as usize].local.id;
        let id = id_in(step.slot);
        let message = |verb: &str, message: u32| {
            let flight = &worker.flights[message as usize].flight;
            let start = match flight.start {
                0 => String::new(),
                start => format!("[{start:x}] "),
            };
            let (from, to) = (id_in(flight.from), id_in(flight.to));
            format!("{verb} {start}{} from {from} to {to}", flight.message)
        };
        let mut line = match step.act {
            Act::Receive { message: number, again: false } => message("deliver", number),
            Act::Receive { message: number, again: true } => message("double", number),
            Act::Lose { message: number } => message("lose", number),
            Act::Expire { timer, .. } => {
                format!("expire {} at {id}", timer_label(&format!("{:?}", self.timer(timer))))
            }
            Act::Report { peer, up: true } => format!("{id} learns that {} is up", id_in(peer)),
            Act::Report { peer, .. } | Act::Suspect { peer } => {
                format!("{id} learns that {} is down", id_in(peer))
            }
            Act::Campaign => format!("campaign {id}"),
            Act::Request => format!("request {id}"),
            Act::Exit => format!("exit {id}"),
            Act::Crash => format!("crash {id}"),
            Act::Release => format!("crash {id}, its guardian releases the lease"),
            Act::Start(Origin::Rejoining) => format!("rejoin {id}"),
            Act::Start(_) => format!("restart {id}"),
            Act::Replace { .. } => format!("replace {id}"),
            Act::Clone { .. } => format!("clone {id}"),
            Act::Command(number) => command_text(self.context.commands[usize::from(number)].1, id),
            Act::Wait { ticks: 1 } => "wait 1 tick".to_owned(),
            Act::Wait { ticks } => format!("wait {ticks} ticks"),
        };
        if let Some(process) = usize::from(step.slot).checked_sub(self.context.members.len()) {
            line.push_str(&format!(", other process {}", process + 1));
        }
        if step.crash_after > 0 {
            line.push_str(&format!(", crash after {}", step.crash_after));
        }
        if let Some(message) = step.act.message() {
            let print = fingerprint(&*worker.flights[message as usize].flight) as u32;
            line.push_str(&format!(" #{print:08x}"));
        }
        StepText::new(line)
    }
}

/// A command to `member` as a line has it.
fn command_text(command: AdminCommand, member: NodeId) -> String {
    match command {
        AdminCommand::Resign => format!("resign {member}"),
        AdminCommand::ShutDown => format!("shut down {member}"),
        AdminCommand::GiveUp => format!("give up {member}"),
        AdminCommand::Transfer { to } => format!("transfer {member} to {to}"),
        AdminCommand::Drain { .. } => format!("drain {member}"),
        AdminCommand::Undrain => format!("undrain {member}"),
        AdminCommand::Prefer { member: preferred, .. } => format!("prefer {preferred} at {member}"),
        AdminCommand::Pause { .. } => format!("pause elections at {member}"),
        AdminCommand::Resume => format!("resume elections at {member}"),
        AdminCommand::Attribute(attr) => format!("set the attribute of {member} to {attr}"),
        AdminCommand::Snapshot => format!("snapshot {member}"),
        AdminCommand::Tell { to } => format!("{member} tells {to}"),
    }
}

/// A step as a line of text. Displayed, it lacks the fingerprint.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct StepText(String);

impl StepText {
    /// The step of this line. Files of earlier releases name timers with the layers around them: `Inner(Reply)`.
    pub fn new(line: impl Into<String>) -> Self {
        let line = line.into();
        let timer = line.strip_prefix("expire ").and_then(|rest| rest.split_once(" at "));
        Self(match timer {
            Some((timer, at)) if timer.ends_with(')') => {
                format!("expire {} at {at}", timer_label(timer))
            }
            _ => line,
        })
    }

    /// Whether this line means `step`. A line without a fingerprint means every step that reads the same.
    pub(crate) fn fits(&self, step: &Self) -> bool {
        self == step || self.0 == step.to_string()
    }

    /// The line as a file stores it.
    pub fn line(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StepText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_fingerprint =
            |digits: &str| digits.len() == 8 && u32::from_str_radix(digits, 16).is_ok();
        match self.0.rsplit_once(" #") {
            Some((words, digits)) if is_fingerprint(digits) => f.write_str(words),
            _ => f.write_str(&self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_is_named_without_its_layers_also_in_older_files() {
        for (line, read) in [
            ("expire Inner(Reply) at 2", "expire Reply at 2"),
            ("expire Hop(HopNumber(3)) at 2, crash after 1", "expire Hop 3 at 2, crash after 1"),
            ("expire Reply at 2", "expire Reply at 2"),
        ] {
            assert_eq!(StepText::new(line).line(), read);
        }
    }

    #[test]
    fn a_step_is_shown_without_its_fingerprint() {
        for (line, shown) in [
            ("deliver OK from 3 to 1 #00c0ffee", "deliver OK from 3 to 1"),
            ("deliver OK #1 from 3 to 1", "deliver OK #1 from 3 to 1"),
            ("deliver OK #seventh!", "deliver OK #seventh!"),
            ("wait 2 ticks", "wait 2 ticks"),
        ] {
            let step = StepText::new(line);
            assert_eq!((step.to_string().as_str(), step.line()), (shown, line));
        }
    }
}
