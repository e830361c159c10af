//! The form of a fault in a scenario file: one flat table, in which one key says what happens and others go with it.

use doyen_core::members::NodeId;
use doyen_core::protocol::AdminCommand;
use doyen_core::time::Span;
use serde::{Deserialize, Serialize};
use toml::Value;

use super::{Action, Disk, Fault, Guardian, LinkOverride, PaceOverride, Place, Trigger};
use crate::text;
use crate::time::Time;

const KINDS: &str = "crash, restart, replace, clone, copy, pause, clock, cut, mend, partition, link, heal, drop, \
                     campaign, snapshot, tell and command";

/// Every key of `[[fault]]`, in the order in which they are written.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Table {
    #[serde(with = "text")]
    at: Option<Span>,
    when: Option<After>,
    crash: Option<NodeId>,
    forwards: Option<bool>,
    #[serde(with = "text")]
    guardian: Option<Span>,
    #[serde(with = "text")]
    permit: Option<Span>,
    restart: Option<NodeId>,
    disk: Option<Disk>,
    #[serde(rename = "address")]
    place: Option<Place>,
    replace: Option<NodeId>,
    clone: Option<NodeId>,
    #[serde(with = "text")]
    hung: Option<Span>,
    pace: Option<PaceOverride>,
    copy: Option<NodeId>,
    pause: Option<NodeId>,
    #[serde(rename = "for", with = "text")]
    lasting: Option<Span>,
    clock: Option<NodeId>,
    rate: Option<f64>,
    #[serde(with = "text")]
    skew: Option<Span>,
    cut: Option<[NodeId; 2]>,
    mend: Option<[NodeId; 2]>,
    partition: Option<Vec<Vec<NodeId>>>,
    old: Option<Vec<Vec<NodeId>>>,
    link: Option<LinkOverride>,
    heal: Option<bool>,
    drop: Option<String>,
    campaign: Option<NodeId>,
    snapshot: Option<NodeId>,
    tell: Option<[NodeId; 2]>,
    command: Option<Command>,
    member: Option<NodeId>,
    to: Option<NodeId>,
    value: Option<i64>,
    values: Option<Vec<i64>>,
    #[serde(with = "text")]
    every: Option<Span>,
}

/// After a message: "when 3 has sent its second OK".
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct After {
    member: NodeId,
    has: Has,
    kind: String,
    #[serde(default = "one")]
    count: u32,
}

fn one() -> u32 {
    1
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Has {
    Sent,
    Received,
}

/// What an operator can command.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Command {
    Resign,
    ShutDown,
    GiveUp,
    Transfer,
    Drain,
    DrainNever,
    Undrain,
    Prefer,
    Attribute,
    Pause,
    Resume,
}

impl TryFrom<Table> for Fault {
    type Error = String;

    fn try_from(mut table: Table) -> Result<Self, String> {
        let (when, what) = (table.take_trigger()?, table.take_action()?);
        // The keys that are left belong to another kind of fault.
        let rest = toml::Table::try_from(&table).map_err(|error| error.to_string())?;
        match rest.keys().next() {
            None => Ok(Self { when, what }),
            Some(key) => {
                let kind = what.kind();
                Err(format!("`{key}` does not go with {kind}; a fault is exactly one of {KINDS}"))
            }
        }
    }
}

impl Table {
    fn take_trigger(&mut self) -> Result<Trigger, String> {
        match (self.at.take(), self.when.take()) {
            (Some(at), None) => Ok(Trigger::At(Time::ZERO + at)),
            (None, Some(After { count: 0, .. })) => {
                Err("when: count must be at least 1".to_owned())
            }
            (None, Some(After { member, has, kind, count })) => {
                Ok(Trigger::Message { member, sent: has == Has::Sent, kind, count })
            }
            _ => {
                Err("say when: either at = \"3ms\" or when = { member = 3, has = \"sent\", kind = \
                      \"OK\" }"
                    .to_owned())
            }
        }
    }

    fn take_action(&mut self) -> Result<Action, String> {
        if let Some(member) = self.crash.take() {
            let forwards = self.forwards.take().unwrap_or_default();
            let guardian = self.guardian.take().map(|job| {
                let permit = self.permit.take().unwrap_or_default();
                Guardian { job, permit }
            });
            return Ok(Action::Crash { member, forwards, guardian });
        }
        if let Some(member) = self.restart.take() {
            let (disk, place) = (self.disk.take(), self.place.take());
            let (disk, place) = (disk.unwrap_or_default(), place.unwrap_or_default());
            return Ok(Action::Restart { member, disk, pace: self.pace.take(), place });
        }
        if let Some(member) = self.replace.take() {
            let disk = self.disk.take().unwrap_or(Disk::Lost);
            if !matches!(disk, Disk::Lost | Disk::LostUnlessAnother) {
                return Err("disk: a replacement has lost its disk: use false or \
                            lost-unless-another"
                    .to_owned());
            }
            return Ok(self.take_replacement(member, disk));
        }
        if let Some(member) = self.clone.take() {
            return Ok(self.take_replacement(member, Disk::Kept));
        }
        if let Some(member) = self.copy.take() {
            return Ok(Action::CopyDisk(member));
        }
        if let Some(member) = self.pause.take() {
            return Ok(Action::Pause { member, lasting: required(self.lasting.take(), "for")? });
        }
        if let Some(member) = self.clock.take() {
            let rate_ppm = rate_ppm(self.rate.take().unwrap_or(1.0))?;
            return Ok(Action::Clock {
                member,
                rate_ppm,
                jump: self.skew.take().unwrap_or_default(),
            });
        }
        if let Some([from, to]) = self.cut.take() {
            return Ok(Action::Cut { from, to });
        }
        if let Some([from, to]) = self.mend.take() {
            return Ok(Action::Mend { from, to });
        }
        if let Some(groups) = self.partition.take() {
            return Ok(Action::Partition { groups, old: self.old.take().unwrap_or_default() });
        }
        if let Some(link) = self.link.take() {
            return Ok(Action::LinkOverride(link));
        }
        if self.heal.take() == Some(true) {
            return Ok(Action::Heal);
        }
        if let Some(kind) = self.drop.take() {
            return Ok(Action::Drop { kind });
        }
        if let Some(member) = self.campaign.take() {
            return Ok(Action::Campaign(member));
        }
        if let Some(member) = self.snapshot.take() {
            return Ok(Action::Command { member, command: AdminCommand::Snapshot });
        }
        if let Some([member, to]) = self.tell.take() {
            return Ok(Action::Command { member, command: AdminCommand::Tell { to } });
        }
        match self.command.take() {
            Some(command) => self.take_command(command),
            None => Err(format!("a fault needs exactly one of {KINDS}")),
        }
    }

    fn take_replacement(&mut self, member: NodeId, disk: Disk) -> Action {
        let hung = self.hung.take().unwrap_or_default();
        Action::Replace { member, disk, hung, place: self.place.take().unwrap_or(Place::New) }
    }

    fn take_command(&mut self, command: Command) -> Result<Action, String> {
        let member =
            self.member.take().ok_or("member: is missing; say which member gets the command")?;
        let mut to = || self.to.take().ok_or("to: is missing; say which member");
        let command = match command {
            Command::Resign => AdminCommand::Resign,
            Command::ShutDown => AdminCommand::ShutDown,
            Command::GiveUp => AdminCommand::GiveUp,
            Command::Transfer => AdminCommand::Transfer { to: to()? },
            Command::Drain => AdminCommand::Drain { lasting: self.lasting.take(), never: false },
            Command::DrainNever => AdminCommand::Drain { lasting: None, never: true },
            Command::Undrain => AdminCommand::Undrain,
            Command::Pause => {
                AdminCommand::Pause { lasting: required(self.lasting.take(), "for")? }
            }
            Command::Resume => AdminCommand::Resume,
            Command::Prefer => AdminCommand::Prefer {
                member: to()?,
                lasting: required(self.lasting.take(), "for")?,
            },
            Command::Attribute => match (self.value.take(), self.values.take()) {
                (Some(value), None) => AdminCommand::Attribute(value),
                (None, Some(values)) if !values.is_empty() => {
                    let every = required(self.every.take(), "every")?;
                    let lasting = required(self.lasting.take(), "for")?;
                    return Ok(Action::Attributes { member, values, every, lasting });
                }
                _ => {
                    return Err(
                        "value: give the new attribute, or instead `values` that take turns"
                            .to_owned(),
                    );
                }
            },
        };
        Ok(Action::Command { member, command })
    }
}

fn required(span: Option<Span>, key: &str) -> Result<Span, String> {
    span.ok_or_else(|| format!("{key}: is missing; give a length of time such as 5ms"))
}

/// The rate of a clock in parts per million.
pub(super) fn rate_ppm(rate: f64) -> Result<u32, String> {
    match (0.001..=1000.0).contains(&rate) {
        true => Ok((rate * 1e6).round() as u32),
        false => Err(format!("rate: {rate} is not between 0.001 and 1000")),
    }
}

impl From<Fault> for Table {
    fn from(fault: Fault) -> Self {
        let mut table = Self::default();
        match fault.when {
            Trigger::At(at) => table.at = Some(at - Time::ZERO),
            Trigger::Message { member, sent, kind, count } => {
                let has = if sent { Has::Sent } else { Has::Received };
                table.when = Some(After { member, has, kind, count });
            }
        }
        match fault.what {
            Action::Crash { member, forwards, guardian } => {
                (table.crash, table.forwards) = (Some(member), forwards.then_some(true));
                table.guardian = guardian.map(|guardian| guardian.job);
                let permit = guardian.map(|guardian| guardian.permit);
                table.permit = permit.filter(|&permit| permit > Span::ZERO);
            }
            Action::Restart { member, disk, pace, place } => {
                (table.restart, table.pace) = (Some(member), pace);
                table.disk = (disk != Disk::Kept).then_some(disk);
                table.place = (place != Place::Same).then_some(place);
            }
            Action::Replace { member, disk, hung, place } => {
                match disk {
                    Disk::Kept => table.clone = Some(member),
                    _ => table.replace = Some(member),
                }
                table.disk = (!matches!(disk, Disk::Kept | Disk::Lost)).then_some(disk);
                table.hung = (hung > Span::ZERO).then_some(hung);
                table.place = (place != Place::New).then_some(place);
            }
            Action::CopyDisk(member) => table.copy = Some(member),
            Action::Pause { member, lasting } => {
                (table.pause, table.lasting) = (Some(member), Some(lasting));
            }
            Action::Clock { member, rate_ppm, jump } => {
                (table.clock, table.rate) = (Some(member), Some(f64::from(rate_ppm) / 1e6));
                table.skew = (jump > Span::ZERO).then_some(jump);
            }
            Action::Cut { from, to } => table.cut = Some([from, to]),
            Action::Mend { from, to } => table.mend = Some([from, to]),
            Action::Partition { groups, old } => {
                (table.partition, table.old) = (Some(groups), (!old.is_empty()).then_some(old));
            }
            Action::LinkOverride(link) => table.link = Some(link),
            Action::Heal => table.heal = Some(true),
            Action::Drop { kind } => table.drop = Some(kind),
            Action::Campaign(member) => table.campaign = Some(member),
            Action::Command { member, command } => table.put_command(member, command),
            Action::Attributes { member, values, every, lasting } => {
                (table.command, table.member) = (Some(Command::Attribute), Some(member));
                table.values = Some(values);
                (table.every, table.lasting) = (Some(every), Some(lasting));
            }
        }
        table
    }
}

impl Table {
    fn put_command(&mut self, member: NodeId, command: AdminCommand) {
        let command = match command {
            AdminCommand::Snapshot => {
                self.snapshot = Some(member);
                return;
            }
            AdminCommand::Tell { to } => {
                self.tell = Some([member, to]);
                return;
            }
            AdminCommand::Resign => Command::Resign,
            AdminCommand::ShutDown => Command::ShutDown,
            AdminCommand::GiveUp => Command::GiveUp,
            AdminCommand::Transfer { to } => {
                self.to = Some(to);
                Command::Transfer
            }
            AdminCommand::Drain { never: true, .. } => Command::DrainNever,
            AdminCommand::Drain { lasting, never: false } => {
                self.lasting = lasting;
                Command::Drain
            }
            AdminCommand::Undrain => Command::Undrain,
            AdminCommand::Prefer { member, lasting } => {
                (self.to, self.lasting) = (Some(member), Some(lasting));
                Command::Prefer
            }
            AdminCommand::Attribute(value) => {
                self.value = Some(value);
                Command::Attribute
            }
            AdminCommand::Pause { lasting } => {
                self.lasting = Some(lasting);
                Command::Pause
            }
            AdminCommand::Resume => Command::Resume,
        };
        (self.member, self.command) = (Some(member), Some(command));
    }
}

impl From<Disk> for Value {
    fn from(disk: Disk) -> Self {
        match disk {
            Disk::Kept => true.into(),
            Disk::Lost => false.into(),
            Disk::LostUnlessAnother => "lost-unless-another".into(),
            Disk::Restored => "copy".into(),
            Disk::New => "new".into(),
        }
    }
}

impl TryFrom<Value> for Disk {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let all = [Self::Kept, Self::Lost, Self::LostUnlessAnother, Self::Restored, Self::New];
        all.into_iter().find(|&disk| Value::from(disk) == value).ok_or_else(|| {
            format!("{value} is no disk; use true, false, copy, new or lost-unless-another")
        })
    }
}
