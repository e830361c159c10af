//! Steps as text: what a counterexample is written down as, and played again from.
//!
//! One line a step: `deliver ELECTION term=1 from 1 to 2 #5c02b1f9`, `expire Reply at 2`, `crash 3`, `transfer 3 to 2`,
//! `wait 2 ticks`. A step of a process other than the one in its member's place ends with `, other process 1`. A step in
//! the middle of which a member crashes ends with `, crash after 1`: after the first thing that it sends or stores.
//!
//! The number behind `#` is the step's identity. Messages may read the same and yet differ in their age, or in what
//! they do not print; their fingerprints differ. So a file is executed step by step, and nothing in it can mean two
//! things. A person who writes a step may leave the number out where the words fit one step alone.

use std::fmt;

use doyen_core::members::NodeId;
use doyen_core::protocol::AdminCommand;
use doyen_core::time::Span;

/// A step in words, with its identity. It is shown without, and written to a file with it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct StepText {
    /// What happens.
    pub words: String,
    /// The fingerprint of the message that it is about, if it is about one.
    pub identity: Option<u32>,
}

impl StepText {
    /// Reads a line of a file.
    pub fn new(line: &str) -> Self {
        let identity = |(words, digits): (&str, &str)| {
            let identity = u32::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 8)?;
            Some(Self { words: words.to_owned(), identity: Some(identity) })
        };
        let words_alone = || Self { words: line.to_owned(), identity: None };
        line.rsplit_once(" #").and_then(identity).unwrap_or_else(words_alone)
    }

    /// The line of a file.
    pub fn line(&self) -> String {
        match self.identity {
            Some(identity) => format!("{} #{identity:08x}", self.words),
            None => self.words.clone(),
        }
    }

    /// Whether this line means `step`.
    pub(super) fn means(&self, step: &Self) -> bool {
        self.words == step.words && (self.identity.is_none() || self.identity == step.identity)
    }
}

impl fmt::Display for StepText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

/// A command that an operator gives a member.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Command {
    Resign,
    /// Hand over to this member.
    Transfer(NodeId),
    Drain,
    Undrain,
    /// This member is to lead while it can.
    Prefer(NodeId),
}

impl Command {
    /// As the state machine is told. `lasting`: for how long a preference holds.
    pub(crate) fn order(self, lasting: Span) -> AdminCommand {
        match self {
            Self::Resign => AdminCommand::Resign,
            Self::Transfer(to) => AdminCommand::Transfer { to },
            Self::Drain => AdminCommand::Drain { lasting: None, never: false },
            Self::Undrain => AdminCommand::Undrain,
            Self::Prefer(member) => AdminCommand::Prefer { member, lasting },
        }
    }

    /// In words, given to `member`.
    pub(super) fn words(self, member: NodeId) -> String {
        match self {
            Self::Resign => format!("resign {member}"),
            Self::Transfer(to) => format!("transfer {member} to {to}"),
            Self::Drain => format!("drain {member}"),
            Self::Undrain => format!("undrain {member}"),
            Self::Prefer(preferred) => format!("prefer {preferred} at {member}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_words_and_an_identity() {
        for (line, words, identity) in [
            ("deliver OK from 3 to 1 #00c0ffee", "deliver OK from 3 to 1", Some(0x00c0_ffee)),
            ("deliver OK from 3 to 1", "deliver OK from 3 to 1", None),
            ("deliver OK #1 from 3 to 1", "deliver OK #1 from 3 to 1", None),
            ("wait 2 ticks", "wait 2 ticks", None),
        ] {
            let step = StepText::new(line);
            assert_eq!(
                (step.words.as_str(), step.identity, step.line()),
                (words, identity, line.into())
            );
        }
    }

    #[test]
    fn words_without_an_identity_mean_every_step_that_reads_so() {
        let [one, other, words] =
            ["crash 1 #00000001", "crash 1 #00000002", "crash 1"].map(StepText::new);
        assert!(one.means(&one) && !one.means(&other));
        assert!(words.means(&one) && words.means(&other));
        assert!(!words.means(&StepText::new("crash 2")));
    }
}
