//! Single messages of a run: how a scenario names one and changes it.
//!
//! A message is named by sender, receiver, kind and number: `6:1:COORDINATOR` is the first COORDINATOR from 6 to 1,
//! `6:1:COORDINATOR:2` the second. All messages of a run are counted, background kinds included, so a name means the same
//! message in every run that is equal up to it.

use std::fmt;
use std::str::FromStr;

use doyen_core::members::NodeId;
use doyen_core::time::Span;
use doyen_core::trace::Changed;

/// The name of one message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MessageName {
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// The name of its kind.
    pub kind: String,
    /// Its number among the messages of this kind on this link, from 1.
    pub number: u32,
}

/// A message that arrives later: `6:2:COORDINATOR+2ms`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Late {
    /// The message.
    pub message: MessageName,
    /// By how much.
    pub by: Span,
}

/// A message that arrives twice: `6:3:COORDINATOR`, or `6:3:COORDINATOR+2ms`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Twice {
    /// The message.
    pub message: MessageName,
    /// How long after the first arrival the copy arrives; if none, as long as the first one took.
    pub after: Option<Span>,
}

/// What a scenario does to one message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MessageChange {
    /// The message.
    pub message: MessageName,
    /// What is done to it.
    pub change: Change,
}

/// What is done to a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// It is lost.
    Drop,
    /// It arrives later by this much.
    Delay(Span),
    /// A copy of it arrives this much later; if no time is given, as much later as the message itself took.
    Double(Option<Span>),
}

impl Change {
    /// What a trace says about it.
    pub fn traced(self) -> Changed {
        match self {
            Self::Drop => Changed::Dropped,
            Self::Delay(_) => Changed::Delayed,
            Self::Double(_) => Changed::Doubled,
        }
    }

    /// How much later than without the change something arrives.
    pub(crate) fn delay(self) -> Span {
        match self {
            Self::Drop => Span::ZERO,
            Self::Delay(by) => by,
            Self::Double(after) => after.unwrap_or_default(),
        }
    }
}

impl fmt::Display for MessageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, kind, number } = self;
        write!(f, "{from}:{to}:{kind}")?;
        if *number == 1 { Ok(()) } else { write!(f, ":{number}") }
    }
}

impl FromStr for MessageName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` names no message; write FROM:TO:KIND, for example 6:1:COORDINATOR, or \
                 6:1:COORDINATOR:2 for the second one"
            )
        };
        if text.contains('+') {
            return Err(format!("`{text}` has a time; only late and twice take one"));
        }
        let (from, to, kind, number) = match text.split(':').collect::<Vec<_>>()[..] {
            [from, to, kind] => (from, to, kind, "1"),
            [from, to, kind, number] => (from, to, kind, number),
            _ => return Err(wrong()),
        };
        let member = |text: &str| text.trim().parse().map(NodeId).map_err(|_| wrong());
        let number = number.trim().parse().ok().filter(|&number| number > 0);
        let kind = kind.trim();
        if kind.is_empty() {
            return Err(wrong());
        }
        let number = number.ok_or_else(wrong)?;
        Ok(Self { from: member(from)?, to: member(to)?, kind: kind.to_owned(), number })
    }
}

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.message, self.by)
    }
}

impl FromStr for Late {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (message, by) = text.rsplit_once('+').ok_or_else(|| {
            format!("`{text}` does not say how late; write for example {text}+2ms")
        })?;
        Ok(Self { message: message.parse()?, by: by.parse()? })
    }
}

impl fmt::Display for Twice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.message.fmt(f)?;
        self.after.map_or(Ok(()), |after| write!(f, "+{after}"))
    }
}

impl FromStr for Twice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (message, after) = match text.rsplit_once('+') {
            Some((message, after)) => (message, Some(after.parse()?)),
            None => (text, None),
        };
        Ok(Self { message: message.parse()?, after })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for text in ["6:1:COORDINATOR", "6:1:TIMEOUT-NOW:12"] {
            assert_eq!(text.parse::<MessageName>().unwrap().to_string(), text);
            assert_eq!(text.parse::<Twice>().unwrap().to_string(), text);
            let late = format!("{text}+2.5ms");
            assert_eq!(late.parse::<Late>().unwrap().to_string(), late);
            assert_eq!(late.parse::<Twice>().unwrap().to_string(), late);
        }
        assert_eq!("6:1:OK:1".parse::<MessageName>().unwrap().to_string(), "6:1:OK");
    }

    #[test]
    fn what_names_no_message_is_refused_with_a_way_out() {
        for text in
            ["", "6", "6:1", "6>1:OK", "6:1:", "6:1:OK:0", "6:1:OK:x", "6:1:OK:1:1", "a:1:OK"]
        {
            let error = text.parse::<MessageName>().unwrap_err();
            assert!(error.contains("write FROM:TO:KIND"), "{error}");
        }
        assert!("6:1:OK+2ms".parse::<MessageName>().unwrap_err().contains("only late and twice"));
        assert!("6:1:OK".parse::<Late>().unwrap_err().ends_with("write for example 6:1:OK+2ms"));
        assert!("6:1:OK+2".parse::<Late>().unwrap_err().contains("unit"));
    }
}
