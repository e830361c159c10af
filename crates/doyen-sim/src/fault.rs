//! The fault schedule of a run: faults and repairs, commands of operators, and their times.
//!
//! A [`Fault`] is the same value everywhere. Scenario files hold it as a table (`fault/table.rs`), the command line as the
//! value of a [flag](Fault::from_flag), generators build it, and the world performs it. Members are named by their ids.

mod flag;
mod table;

use doyen_core::config::quorum::{Pace, Settings};
use doyen_core::members::NodeId;
use doyen_core::protocol::AdminCommand;
use doyen_core::time::Span;
use serde::{Deserialize, Serialize};

use crate::network::{DelayModel, LinkRule};
use crate::text::{self, Share};
use crate::time::Time;

/// One entry of the fault schedule.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "table::Table", into = "table::Table")]
pub struct Fault {
    /// When it happens.
    pub when: Trigger,
    /// What happens.
    pub what: Action,
}

/// When a fault happens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trigger {
    /// At this time, after the messages and before the timers of that instant.
    At(Time),
    /// As soon as a member has sent or received this many messages of a kind. A member that crashes in the middle of a
    /// broadcast does not send the rest of it.
    Message {
        /// The member that sends or receives.
        member: NodeId,
        /// Whether sent, or received.
        sent: bool,
        /// The name of the kind.
        kind: String,
        /// How many messages.
        count: u32,
    },
}

/// What happens.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// A member stops and forgets everything but its disk.
    Crash {
        /// The member.
        member: NodeId,
        /// Whether "the control part of a failed process continues to function and simply forwards each received
        /// message along its out-edge" (os-textbook).
        forwards: bool,
        /// Its machine lives, and so does its guardian there: if it led under a lease, the guardian releases that.
        guardian: Option<Guardian>,
    },
    /// A member comes up again.
    Restart {
        /// The member.
        member: NodeId,
        /// The state of its disk.
        disk: Disk,
        /// The member starts with another timing than configured.
        pace: Option<PaceOverride>,
        /// The address at which it starts.
        place: Place,
    },
    /// A second process of a member starts elsewhere; the first one keeps running. If no process of the member runs,
    /// this is a restart.
    Replace {
        /// The member.
        member: NodeId,
        /// What the second process has of the disk: [`Disk::Kept`] for a copy of it as it is now, which makes it a clone.
        disk: Disk,
        /// For how long the first one hangs.
        hung: Span,
        /// The address of the second one; never that of the first.
        place: Place,
    },
    /// A copy of a member's disk is made, as it is now.
    CopyDisk(NodeId),
    /// A member does nothing for a while; messages that arrive wait for it.
    Pause {
        /// The member.
        member: NodeId,
        /// For how long.
        lasting: Span,
    },
    /// A member's clock runs at another rate from now on, and jumps ahead.
    Clock {
        /// The member.
        member: NodeId,
        /// Parts per million of the true rate: 1,000,000 is right, 900,000 is slow.
        rate_ppm: u32,
        /// By how much it jumps: armed timers are due that much sooner.
        jump: Span,
    },
    /// No message from one member reaches another one any more.
    Cut {
        /// The sender.
        from: NodeId,
        /// The receiver.
        to: NodeId,
    },
    /// One such cut is over; a link that was cut twice needs to be mended twice.
    Mend {
        /// The sender.
        from: NodeId,
        /// The receiver.
        to: NodeId,
    },
    /// Only members of the same group reach each other; members not named are in a group of their own.
    Partition {
        /// The groups.
        groups: Vec<Vec<NodeId>>,
        /// The members whose old processes are in each group; other old processes are where their members are.
        old: Vec<Vec<NodeId>>,
    },
    /// Some messages take longer from now on, or are lost more often. The latest override that fits a message decides.
    LinkOverride(LinkOverride),
    /// Every cut, partition and link override is over.
    Heal,
    /// The next message of a kind that any member sends is lost.
    Drop {
        /// The name of the kind.
        kind: String,
    },
    /// A member detects that the coordinator has failed.
    Campaign(NodeId),
    /// An operator gives a member a command.
    Command {
        /// The member.
        member: NodeId,
        /// The command.
        command: AdminCommand,
    },
    /// The attribute of a member keeps changing: it takes the values in turn.
    Attributes {
        /// The member.
        member: NodeId,
        /// The values.
        values: Vec<i64>,
        /// How often it changes.
        every: Span,
        /// For how long.
        lasting: Span,
    },
}

/// The guardian of a member that crashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Guardian {
    /// How long it takes to end the job that ran under the lease.
    pub job: Span,
    /// How long the last permit under the lease lasts, from the crash on; never longer than the lease.
    pub permit: Span,
}

/// The disk of a member that comes up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "toml::Value", into = "toml::Value")]
pub enum Disk {
    /// It is there.
    #[default]
    Kept,
    /// It is lost.
    Lost,
    /// It is lost, unless another member has lost its disk and has not come back yet: two of them would wait for each
    /// other forever. A member that rejoins is not replaced then either: of two processes that rejoin, the one that
    /// does so last counts.
    LostUnlessAnother,
    /// It is restored from the copy that was made last; it is there if none was made.
    Restored,
    /// It is empty, as if the member were founded a second time: the loss is not reported.
    New,
}

/// Where a process comes up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// Where the one before it was.
    #[default]
    Same,
    /// At another address, to which the configured name of the member resolves from now on.
    New,
    /// At another address; the configured name still resolves to the earlier one.
    Unnamed,
}

/// An override for some links or kinds of messages. A field that is left out matches everything, or changes nothing.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkOverride {
    /// Only messages from this member.
    pub from: Option<NodeId>,
    /// Only messages to this member.
    pub to: Option<NodeId>,
    /// Only messages of this kind.
    pub kind: Option<String>,
    /// How long they take.
    #[serde(with = "text")]
    pub delay: Option<DelayModel>,
    /// How many are lost.
    pub loss: Option<Share>,
    /// Only this share of these messages, at random; all of them if there is no share.
    pub share: Option<Share>,
}

impl LinkOverride {
    /// The same for a network, which knows members by position and kinds by number.
    pub(crate) fn rule(
        &self,
        position: impl Fn(NodeId) -> u32,
        number: impl Fn(&str) -> usize,
    ) -> LinkRule {
        LinkRule {
            from: self.from.map(&position),
            to: self.to.map(&position),
            kind: self.kind.as_deref().map(number),
            delay: self.delay,
            loss: self.loss.map(f64::from),
            share: self.share.map(f64::from),
        }
    }
}

/// Another timing for one member of a quorum; a field that is left out has the value of all members.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PaceOverride {
    /// `h`, the heartbeat interval.
    #[serde(with = "text")]
    pub heartbeat: Option<Span>,
    /// `Λ_F`, the length of a vote lease.
    #[serde(with = "text")]
    pub vote_lease: Option<Span>,
}

impl PaceOverride {
    /// The timing of the member if the others have the `usual` one.
    pub fn over(self, usual: Pace) -> Pace {
        Pace {
            heartbeat: self.heartbeat.unwrap_or(usual.heartbeat),
            vote_lease: self.vote_lease.unwrap_or(usual.vote_lease),
            ..usual
        }
    }
}

impl Action {
    /// A crash of a member whose machine stops with it.
    pub fn crash(member: NodeId) -> Self {
        Self::Crash { member, forwards: false, guardian: None }
    }

    /// The key under which a file says that it happens.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Crash { .. } => "crash",
            Self::Restart { .. } => "restart",
            Self::Replace { disk: Disk::Kept, .. } => "clone",
            Self::Replace { .. } => "replace",
            Self::CopyDisk(_) => "copy",
            Self::Pause { .. } => "pause",
            Self::Clock { .. } => "clock",
            Self::Cut { .. } => "cut",
            Self::Mend { .. } => "mend",
            Self::Partition { .. } => "partition",
            Self::LinkOverride(_) => "link",
            Self::Heal => "heal",
            Self::Drop { .. } => "drop",
            Self::Campaign(_) => "campaign",
            Self::Command { command: AdminCommand::Snapshot, .. } => "snapshot",
            Self::Command { command: AdminCommand::Tell { .. }, .. } => "tell",
            Self::Command { .. } | Self::Attributes { .. } => "command",
        }
    }
}

impl Fault {
    /// `what` happens at `at`.
    pub fn at(at: Time, what: Action) -> Self {
        Self { when: Trigger::At(at), what }
    }

    /// The time at which it happens, if that is known beforehand.
    pub fn time(&self) -> Option<Time> {
        match self.when {
            Trigger::At(at) => Some(at),
            Trigger::Message { .. } => None,
        }
    }

    /// Every member that it names, with the key under which a file does.
    pub fn members_mut(&mut self) -> Vec<(&'static str, &mut NodeId)> {
        let kind = self.what.kind();
        let mut named = match &mut self.what {
            Action::Crash { member, .. }
            | Action::Restart { member, .. }
            | Action::Replace { member, .. }
            | Action::CopyDisk(member)
            | Action::Pause { member, .. }
            | Action::Clock { member, .. }
            | Action::Campaign(member)
            | Action::Command { member, command: AdminCommand::Snapshot } => vec![(kind, member)],
            Action::Cut { from, to }
            | Action::Mend { from, to }
            | Action::Command { member: from, command: AdminCommand::Tell { to } } => {
                vec![(kind, from), (kind, to)]
            }
            Action::Partition { groups, old } => {
                let groups = groups.iter_mut().flatten().map(|id| (kind, id));
                groups.chain(old.iter_mut().flatten().map(|id| ("old", id))).collect()
            }
            Action::LinkOverride(LinkOverride { from, to, .. }) => {
                from.iter_mut().chain(to).map(|id| (kind, id)).collect()
            }
            Action::Heal | Action::Drop { .. } => Vec::new(),
            Action::Command { member, command } => match command {
                AdminCommand::Transfer { to } | AdminCommand::Prefer { member: to, .. } => {
                    vec![("member", member), ("to", to)]
                }
                _ => vec![("member", member)],
            },
            Action::Attributes { member, .. } => vec![("member", member)],
        };
        if let Trigger::Message { member, .. } = &mut self.when {
            named.push(("when", member));
        }
        named
    }

    /// Whether it names `id`.
    pub fn names(&self, id: NodeId) -> bool {
        self.clone().members_mut().iter().any(|(_, member)| **member == id)
    }

    /// Whether only members with sessions tolerate it.
    pub(crate) fn needs_sessions(&self) -> bool {
        match self.what {
            Action::Replace { .. } => true,
            Action::Restart { disk, place, .. } => disk == Disk::New || place != Place::Same,
            _ => false,
        }
    }

    /// Whether it starts a snapshot.
    pub(crate) fn is_snapshot(&self) -> bool {
        matches!(self.what, Action::Command { command: AdminCommand::Snapshot, .. })
    }

    /// Whether a member tells another one something.
    pub(crate) fn is_tell(&self) -> bool {
        matches!(self.what, Action::Command { command: AdminCommand::Tell { .. }, .. })
    }

    /// Whether something breaks or is repaired: commands of operators and elections are no faults.
    fn is_breakage(&self) -> bool {
        let asked = |it: &Action| {
            matches!(it, Action::Command { .. } | Action::Attributes { .. } | Action::Campaign(_))
        };
        !asked(&self.what)
    }

    /// How long its effect lasts.
    pub(crate) fn lasting(&self) -> Span {
        match self.what {
            Action::Pause { lasting, .. } | Action::Replace { hung: lasting, .. } => lasting,
            // Effects that another fault ends, or that end at once.
            Action::Crash { .. }
            | Action::Restart { .. }
            | Action::CopyDisk(_)
            | Action::Clock { .. }
            | Action::Cut { .. }
            | Action::Mend { .. }
            | Action::Partition { .. }
            | Action::LinkOverride(_)
            | Action::Heal
            | Action::Drop { .. }
            | Action::Campaign(_)
            | Action::Command { .. }
            | Action::Attributes { .. } => Span::ZERO,
        }
    }

    /// How often it happens.
    pub(crate) fn times(&self) -> u64 {
        match self.what {
            Action::Attributes { every, lasting, .. } => {
                lasting.as_nanos() / every.as_nanos().max(1) + 1
            }
            _ => 1,
        }
    }

    /// Expands an attribute that keeps changing into its single changes; leaves all other faults as they are.
    pub(crate) fn occurrences(&self) -> Vec<Self> {
        let (Trigger::At(first), Action::Attributes { member, values, every, .. }) =
            (&self.when, &self.what)
        else {
            return vec![self.clone()];
        };
        let change = |(time, &value): (u64, &i64)| {
            let command = AdminCommand::Attribute(value);
            Self::at(*first + *every * time, Action::Command { member: *member, command })
        };
        (0..self.times()).zip(values.iter().cycle()).map(change).collect()
    }
}

/// How fast the slowest clock ever runs, in parts per million of the true rate.
pub(crate) fn slowest_clock(faults: &[Fault]) -> u32 {
    let rate = |fault: &Fault| match fault.what {
        Action::Clock { rate_ppm, .. } => Some(rate_ppm),
        _ => None,
    };
    faults.iter().filter_map(rate).fold(1_000_000, u32::min).max(1)
}

/// These settings with the longest vote lease and heartbeat that each member ever has.
pub(crate) fn longest_paces(settings: &Settings, faults: &[Fault]) -> Settings {
    let mut longest = settings.clone();
    for fault in faults {
        if let Action::Restart { member, pace: Some(pace), .. } = fault.what {
            let pace = pace.over(settings.pace);
            let before = longest.pace_of(member);
            let vote_lease = before.vote_lease.max(pace.vote_lease);
            let heartbeat = before.heartbeat.max(pace.heartbeat);
            longest.paces.insert(member, Pace { vote_lease, heartbeat, ..before });
        }
    }
    longest
}

/// The longest time for which a member is preferred: for this long a lower-ranked member may lead without a takeover.
pub(crate) fn longest_preference(faults: &[Fault]) -> Span {
    longest_command(faults, |command| match command {
        AdminCommand::Prefer { lasting, .. } => Some(lasting),
        _ => None,
    })
}

/// The longest time for which elections are paused: after a restart the interrupted step of the pause begins again.
pub(crate) fn longest_pause(faults: &[Fault]) -> Span {
    longest_command(faults, |command| match command {
        AdminCommand::Pause { lasting } => Some(lasting),
        _ => None,
    })
}

fn longest_command(faults: &[Fault], lasting: fn(AdminCommand) -> Option<Span>) -> Span {
    let of_fault = |fault: &Fault| match fault.what {
        Action::Command { command, .. } => lasting(command),
        _ => None,
    };
    faults.iter().filter_map(of_fault).max().unwrap_or_default()
}

/// When the last fault whose time is known beforehand is over, and what it delayed has arrived.
pub(crate) fn calm_begins(faults: &[Fault]) -> Time {
    let over = faults.iter().filter_map(|fault| Some(fault.time()? + fault.lasting()));
    over.max().unwrap_or_default() + longest_delay(faults)
}

/// The same without commands of operators, which are no faults.
pub(crate) fn breakage_ends(faults: &[Fault]) -> Time {
    let breakages: Vec<Fault> =
        faults.iter().filter(|fault| fault.is_breakage()).cloned().collect();
    calm_begins(&breakages)
}

/// How long a link override delays a message at most.
pub(crate) fn longest_delay(faults: &[Fault]) -> Span {
    let delay = |fault: &Fault| match &fault.what {
        Action::LinkOverride(link) => link.delay.map_or(0, DelayModel::bound),
        _ => 0,
    };
    Span::from_nanos(faults.iter().map(delay).max().unwrap_or_default())
}

/// The longest time that a clock of this rate takes to count `span`.
pub(crate) fn stretched(span: Span, rate_ppm: u32) -> Span {
    let real = u128::from(span.as_nanos()) * 1_000_000 / u128::from(rate_ppm.max(1));
    Span::from_nanos(u64::try_from(real).unwrap_or(u64::MAX))
}

/// Faults drawn at random while the world runs. Times are means, exponentially distributed.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Chaos {
    /// Between two crashes, over all members.
    #[serde(with = "text")]
    pub crash_every: Option<Span>,
    /// From a crash to the restart.
    #[serde(with = "text")]
    pub down_for: Option<Span>,
    /// Between two pauses, over all members.
    #[serde(with = "text")]
    pub pause_every: Option<Span>,
    /// The length of a pause.
    #[serde(with = "text")]
    pub pause_for: Option<Span>,
    /// Between two one-way cuts, over all links.
    #[serde(with = "text")]
    pub cut_every: Option<Span>,
    /// From a cut to its repair.
    #[serde(with = "text")]
    pub cut_for: Option<Span>,
    /// When no new fault begins any more.
    #[serde(with = "text")]
    pub until: Option<Span>,
}

impl Chaos {
    /// How often, on average, faults of `kind` happen, and how long they last; `None` if never.
    pub fn rate(&self, kind: ChaosKind) -> Option<(Span, Span)> {
        let (every, lasting) = match kind {
            ChaosKind::Crash => (self.crash_every, self.down_for),
            ChaosKind::Pause => (self.pause_every, self.pause_for),
            ChaosKind::Cut => (self.cut_every, self.cut_for),
        };
        every.map(|every| (every, lasting.unwrap_or_default()))
    }
}

/// The kinds of faults drawn at random.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChaosKind {
    /// A crash, and a restart later.
    Crash,
    /// A pause.
    Pause,
    /// A one-way cut, and its repair later.
    Cut,
}

impl ChaosKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Crash, Self::Pause, Self::Cut];
}
