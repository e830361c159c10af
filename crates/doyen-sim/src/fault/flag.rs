//! The form of a fault on the command line: one flag for each kind, such as `--crash 5@3ms`.

use std::str::FromStr;

use doyen_core::members::NodeId;
use doyen_core::protocol::AdminCommand;
use doyen_core::time::Span;

use super::table::rate_ppm;
use super::{Action, Chaos, Disk, Fault, Place};
use crate::time::Time;

impl Fault {
    /// Reads the value of the flag that is called `kind`: `crash`, `restart`, `pause`, `clock`, `cut`, `partition`, `heal`,
    /// `drop`, `snapshot` or `tell`.
    pub fn from_flag(kind: &str, text: &str) -> Result<Self, String> {
        if kind == "heal" {
            return Ok(Self::at(Time::ZERO + text.parse::<Span>()?, Action::Heal));
        }
        let (what, time) = text.rsplit_once('@').ok_or_else(|| {
            format!("`{text}` does not say when; write for example @3ms at its end")
        })?;
        let example = |form: &str| format!("`{text}` is not {form}");
        let (at, what) = match kind {
            "crash" => {
                let (at, forwards) = strip(time, ",forwards")?;
                (at, Action::Crash { member: member(what)?, forwards, guardian: None })
            }
            "restart" => {
                let (at, fresh) = strip(time, ",fresh")?;
                let disk = if fresh { Disk::Lost } else { Disk::Kept };
                (
                    at,
                    Action::Restart { member: member(what)?, disk, pace: None, place: Place::Same },
                )
            }
            "pause" => {
                let (at, lasting) = time.split_once('+').ok_or_else(|| {
                    format!("`{text}` does not say for how long; write for example 3@2ms+10ms")
                })?;
                (at, Action::Pause { member: member(what)?, lasting: lasting.parse()? })
            }
            "clock" => {
                let (id, rate) = what
                    .split_once('=')
                    .ok_or_else(|| example("ID=RATE@TIME; write for example 3=0.9@0"))?;
                let rate =
                    rate.parse().map_err(|_| format!("`{rate}` is not a rate such as 0.9"))?;
                let (at, jump) = time.split_once('+').unwrap_or((time, "0"));
                let rate_ppm = rate_ppm(rate)?;
                (at, Action::Clock { member: member(id)?, rate_ppm, jump: jump.parse()? })
            }
            "cut" | "tell" => {
                let (from, to) = what
                    .split_once('>')
                    .ok_or_else(|| example("FROM>TO@TIME; write for example '1>3@2ms'"))?;
                let (from, to) = (member(from)?, member(to)?);
                let command = AdminCommand::Tell { to };
                let tells = kind == "tell";
                (
                    time,
                    if tells {
                        Action::Command { member: from, command }
                    } else {
                        Action::Cut { from, to }
                    },
                )
            }
            "partition" => {
                let group = |ids: &str| ids.split(',').map(member).collect::<Result<_, _>>();
                let groups = what.split('/').map(group).collect::<Result<_, String>>()?;
                (time, Action::Partition { groups, old: Vec::new() })
            }
            "drop" => match what.trim() {
                kind if kind.is_empty() || kind.contains(':') => {
                    return Err(example("KIND@TIME; write for example TOKEN@7ms"));
                }
                kind => (time, Action::Drop { kind: kind.to_owned() }),
            },
            "snapshot" => {
                let command = AdminCommand::Snapshot;
                (time, Action::Command { member: member(what)?, command })
            }
            _ => return Err(format!("there is no flag for faults of the kind `{kind}`")),
        };
        Ok(Self::at(Time::ZERO + at.parse::<Span>()?, what))
    }

    /// The flag that says the same, and its value; none if only a file can say it.
    pub fn to_flag(&self) -> Option<(&'static str, String)> {
        let at = self.time()?;
        let value = match &self.what {
            Action::Crash { member, forwards, guardian: None } => {
                format!("{member}@{at}{}", if *forwards { ",forwards" } else { "" })
            }
            Action::Restart { member, disk: Disk::Kept, pace: None, place: Place::Same } => {
                format!("{member}@{at}")
            }
            Action::Restart { member, disk: Disk::Lost, pace: None, place: Place::Same } => {
                format!("{member}@{at},fresh")
            }
            Action::Pause { member, lasting } => format!("{member}@{at}+{lasting}"),
            Action::Clock { member, rate_ppm, jump } => {
                let jump = if *jump == Span::ZERO { String::new() } else { format!("+{jump}") };
                format!("{member}={}@{at}{jump}", f64::from(*rate_ppm) / 1e6)
            }
            Action::Cut { from, to } => format!("{from}>{to}@{at}"),
            Action::Partition { groups, old } if old.is_empty() => {
                let group = |ids: &Vec<NodeId>| {
                    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
                };
                let groups: Vec<String> = groups.iter().map(group).collect();
                format!("{}@{at}", groups.join("/"))
            }
            Action::Heal => at.to_string(),
            Action::Drop { kind } => format!("{kind}@{at}"),
            Action::Command { member, command: AdminCommand::Snapshot } => format!("{member}@{at}"),
            Action::Command { member, command: AdminCommand::Tell { to } } => {
                format!("{member}>{to}@{at}")
            }
            _ => return None,
        };
        Some((self.what.kind(), value))
    }
}

fn member(text: &str) -> Result<NodeId, String> {
    text.trim().parse().map(NodeId).map_err(|_| format!("`{text}` is not a member's number"))
}

fn strip<'a>(time: &'a str, suffix: &str) -> Result<(&'a str, bool), String> {
    match time.strip_suffix(suffix) {
        Some(time) => Ok((time, true)),
        None if time.contains(',') => Err(format!("`{time}`: only `{suffix}` may follow the time")),
        None => Ok((time, false)),
    }
}

impl FromStr for Chaos {
    type Err = String;

    /// Reads `50ms,20ms,1s`: crashes every 50ms, for 20ms, until 1s.
    fn from_str(text: &str) -> Result<Self, String> {
        let [every, lasting, until] = text.split(',').collect::<Vec<_>>()[..] else {
            return Err(format!("`{text}` is not EVERY,FOR,UNTIL; write for example 50ms,20ms,1s"));
        };
        Ok(Self {
            crash_every: Some(every.parse()?),
            down_for: Some(lasting.parse()?),
            until: Some(until.parse()?),
            ..Self::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_flag_says_is_written_as_the_same_flag() {
        for (flag, value) in [
            ("crash", "5@3ms"),
            ("crash", "5@3ms,forwards"),
            ("restart", "5@9ms"),
            ("restart", "5@9ms,fresh"),
            ("pause", "3@2ms+10ms"),
            ("clock", "3=0.9@0"),
            ("clock", "3=1@5ms+2ms"),
            ("cut", "1>3@2ms"),
            ("partition", "1,2/3,4@2ms"),
            ("heal", "50ms"),
            ("drop", "TOKEN@7ms"),
            ("snapshot", "3@5ms"),
            ("tell", "3>1@2ms"),
        ] {
            let fault = Fault::from_flag(flag, value).unwrap();
            assert_eq!(fault.to_flag(), Some((flag, value.to_owned())));
        }
        for wrong in ["1:2:TOKEN@7ms", "@7ms", "TOKEN"] {
            assert!(Fault::from_flag("drop", wrong).is_err(), "{wrong}");
        }
        let copy = Fault::at(Time::ZERO, Action::CopyDisk(NodeId(1)));
        assert_eq!(copy.to_flag(), None);
    }
}
