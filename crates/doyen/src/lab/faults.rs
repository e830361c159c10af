//! The faults and commands that the page may ask for, as they are written.

use serde::Deserialize;

/// One fault: exactly one field is set, and `both` beside a link.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
struct RawFault {
    kill: Option<String>,
    pause: Option<String>,
    r#continue: Option<String>,
    restart: Option<String>,
    cut: Option<[String; 2]>,
    mend: Option<[String; 2]>,
    both: Option<bool>,
    partition: Option<Vec<Vec<String>>>,
    heal: Option<bool>,
}

/// A fault or a repair. Members by their names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    Kill(String),
    Pause(String),
    Continue(String),
    Restart(String),
    Cut { link: [String; 2], both: bool },
    Mend { link: [String; 2], both: bool },
    Partition(Vec<Vec<String>>),
    Heal,
}

impl Fault {
    pub(crate) fn parse(json: &[u8]) -> Result<Self, String> {
        let raw: RawFault = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let both = raw.both.unwrap_or(true);
        let found = [
            raw.kill.map(Self::Kill),
            raw.pause.map(Self::Pause),
            raw.r#continue.map(Self::Continue),
            raw.restart.map(Self::Restart),
            raw.cut.map(|link| Self::Cut { link, both }),
            raw.mend.map(|link| Self::Mend { link, both }),
            raw.partition.map(Self::Partition),
            raw.heal.filter(|&heal| heal).map(|_| Self::Heal),
        ];
        only(found, "kill, pause, continue, restart, cut, mend, partition or heal")
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
struct RawCommand {
    transfer: Option<String>,
    drain: Option<String>,
    undrain: Option<String>,
    priority: Option<(String, i64)>,
}

/// A command of an operator. Members by their names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Command {
    Transfer(String),
    Drain(String),
    Undrain(String),
    Priority(String, i64),
}

impl Command {
    pub(crate) fn parse(json: &[u8]) -> Result<Self, String> {
        let raw: RawCommand = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let found = [
            raw.transfer.map(Self::Transfer),
            raw.drain.map(Self::Drain),
            raw.undrain.map(Self::Undrain),
            raw.priority.map(|(member, priority)| Self::Priority(member, priority)),
        ];
        only(found, "transfer, drain, undrain or priority")
    }
}

fn only<T, const N: usize>(found: [Option<T>; N], known: &str) -> Result<T, String> {
    let mut found = found.into_iter().flatten();
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only),
        _ => Err(format!("give exactly one of {known}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_one_thing() {
        let parse = |text: &str| Fault::parse(text.as_bytes());
        assert_eq!(parse(r#"{"kill":"n5"}"#), Ok(Fault::Kill("n5".to_owned())));
        assert_eq!(parse(r#"{"continue":"n5"}"#), Ok(Fault::Continue("n5".to_owned())));
        let link = || ["n1".to_owned(), "n3".to_owned()];
        let cut = Fault::Cut { link: link(), both: false };
        assert_eq!(parse(r#"{"cut":["n1","n3"],"both":false}"#), Ok(cut));
        let mend = Fault::Mend { link: link(), both: true };
        assert_eq!(parse(r#"{"mend":["n1","n3"]}"#), Ok(mend));
        assert_eq!(parse(r#"{"heal":true}"#), Ok(Fault::Heal));
        for wrong in ["", "{}", r#"{"heal":false}"#, r#"{"kill":"n1","pause":"n1"}"#, r#"{"x":1}"#]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_command_is_one_thing() {
        let parse = |text: &str| Command::parse(text.as_bytes());
        assert_eq!(parse(r#"{"priority":["n3",9]}"#), Ok(Command::Priority("n3".to_owned(), 9)));
        assert_eq!(parse(r#"{"drain":"n3"}"#), Ok(Command::Drain("n3".to_owned())));
        assert!(parse(r#"{"priority":["n3"]}"#).is_err());
        assert!(parse(r#"{"drain":"n3","undrain":"n3"}"#).is_err());
    }
}
