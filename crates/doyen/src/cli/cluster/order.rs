//! What is typed, and what is done about it.

use rustix::process::Signal;

use super::member::Member;

/// Something to do to a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// To the member at this place.
    To(usize, Deed),
    /// Who should lead now.
    Transfer(usize),
    /// Who does what.
    Status,
    /// End it all.
    Quit,
}

/// What can be done to a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Deed {
    Kill,
    Stop,
    Start,
    Pause,
    Resume,
    Drain,
    Undrain,
}

/// What can be typed.
pub(super) const USAGE: &str = "type kill, stop, start, pause, resume, drain, undrain or transfer and a member, or status, or quit";

/// Reads a line.
pub(super) fn read(line: &str, members: &[Member]) -> Result<Order, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let find = |name: &str| {
        let is_it = |member: &Member| member.name() == name || member.id().to_string() == name;
        let names = || members.iter().map(Member::name).collect::<Vec<_>>().join(", ");
        let found = members.iter().position(is_it);
        found.ok_or_else(|| format!("there is no member `{name}`; there are {}", names()))
    };
    let deed = |deed, name| Ok(Order::To(find(name)?, deed));
    match words[..] {
        ["quit" | "exit" | "q"] => Ok(Order::Quit),
        ["status"] => Ok(Order::Status),
        ["kill", name] => deed(Deed::Kill, name),
        ["stop", name] => deed(Deed::Stop, name),
        ["start", name] => deed(Deed::Start, name),
        ["pause", name] => deed(Deed::Pause, name),
        ["resume", name] => deed(Deed::Resume, name),
        ["drain", name] => deed(Deed::Drain, name),
        ["undrain", name] => deed(Deed::Undrain, name),
        ["transfer", name] => Ok(Order::Transfer(find(name)?)),
        _ => Err(USAGE.to_owned()),
    }
}

impl Order {
    /// Does it, and says what was done.
    pub(super) fn carry_out(self, members: &mut [Member]) -> String {
        let done = match self {
            // Neither is done to a member.
            Self::Quit | Self::Status => return String::new(),
            Self::To(place, deed) => members[place].suffer(deed),
            Self::Transfer(place) => {
                let to = members[place].name().to_owned();
                match members.iter().find(|member| member.leads()) {
                    Some(leader) => leader.post("transfer", &format!(r#"{{"to":"{to}"}}"#)),
                    None => Err("nobody leads".to_owned()),
                }
            }
        };
        done.unwrap_or_else(|error| error)
    }
}

impl Member {
    fn suffer(&mut self, deed: Deed) -> Result<String, String> {
        match deed {
            Deed::Kill => self.signal(Signal::KILL, "killed"),
            Deed::Stop => self.signal(Signal::TERM, "told to stop"),
            Deed::Pause => self.signal(Signal::STOP, "paused"),
            Deed::Resume => self.signal(Signal::CONT, "resumed"),
            Deed::Start => self.start().map_err(|error| format!("{error:#}")),
            Deed::Drain => self.post("drain", "{}"),
            Deed::Undrain => self.post("undrain", "{}"),
        }
    }
}
