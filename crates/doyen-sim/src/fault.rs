//! What goes wrong, and when. Members are named by their position.

use doyen_core::algorithm::quorum::settings::{Pace, Settings};
use doyen_core::members::Members;
use doyen_core::protocol::Order;
use doyen_core::time::Span;

use crate::network::{DelayModel, LinkRule};
use crate::time::Time;

/// Something that goes wrong, or right again.
#[derive(Clone, PartialEq, Debug)]
pub enum Fault {
    /// A member stops and forgets everything but its disk.
    Crash {
        /// Who.
        member: u32,
        /// Whether "the control part of a failed process continues to function and simply forwards each received
        /// message along its out-edge" (003).
        forwards: bool,
    },
    /// A member comes up again.
    Restart {
        /// Who.
        member: u32,
        /// What becomes of its disk.
        disk: Disk,
        /// With which pace it comes up, if with another than it is set to.
        pace: Option<Pace>,
        /// Where.
        place: Place,
    },
    /// A second process of a member starts elsewhere; the first one goes on beside it. If none runs, it is a restart.
    Replace {
        /// Who.
        member: u32,
        /// What the second process has of the disk: [`Disk::Kept`] for a copy of it as it is now.
        disk: Disk,
        /// For how many nanoseconds the first one hangs.
        hung: u64,
        /// Where the second one is; never at the same address.
        place: Place,
    },
    /// Somebody makes a copy of a member's disk, as it is now.
    CopyDisk {
        /// Whose.
        member: u32,
    },
    /// A member does nothing for a while; what arrives waits for it.
    Pause {
        /// Who.
        member: u32,
        /// For how many nanoseconds.
        span: u64,
    },
    /// A member's clock runs at another rate from now on, and jumps ahead.
    Clock {
        /// Whose.
        member: u32,
        /// Parts per million of the true rate: 1,000,000 is right, 900,000 is slow.
        rate_ppm: u32,
        /// By how many nanoseconds it jumps: armed timers are due that much sooner.
        jump: u64,
    },
    /// Nothing gets from one member to another any more.
    Cut {
        /// From whom.
        from: u32,
        /// To whom.
        to: u32,
    },
    /// One such cut is over; a link that was cut twice needs to be mended twice.
    Mend {
        /// From whom.
        from: u32,
        /// To whom.
        to: u32,
    },
    /// Only members with the same number hear each other.
    Partition {
        /// On which side each member is.
        sides: Vec<u32>,
        /// Members whose old processes are on another side than their present ones, and on which.
        old: Vec<(u32, u32)>,
    },
    /// Some messages take longer from now on, or are lost more often. The latest that fits a message decides.
    Weather(LinkRule),
    /// Every cut and partition is over, and so is bad weather.
    Heal,
}

/// What becomes of the disk of a member that restarts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Disk {
    /// It is there.
    #[default]
    Kept,
    /// It is lost.
    Lost,
    /// It is lost, unless another member has lost its disk and has not come back yet: two of them would wait for each
    /// other for ever. A member that rejoins is not replaced then either: of two processes that rejoin the last one
    /// stays, whichever it is.
    LostUnlessAnother,
    /// It is restored from the copy that was made last; it is there if none was made.
    Restored,
    /// It is empty, as if the member were founded a second time: nobody says that something was lost.
    New,
}

/// Where a process comes up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Place {
    /// Where the one before it was.
    #[default]
    Same,
    /// At another address, to which the configured name of the member leads from now on.
    New,
    /// At another address; the configured name leads to where it did before.
    Unnamed,
}

/// Something the script of a simulation does.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// A member notices that the coordinator is gone.
    Campaign(u32),
    /// A fault.
    Fault(Fault),
    /// An operator wants something of a member.
    Order {
        /// Of whom.
        member: u32,
        /// What.
        order: Order,
    },
    /// Everything has been stopped that ran under the lease of a retiring leader.
    Retired {
        /// Whose.
        member: u32,
    },
}

/// When the script does it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trigger {
    /// At this time, after the messages and before the timers of that instant.
    At(Time),
    /// As soon as a member has sent or received so many messages of a kind. A member that crashes in the middle of a
    /// broadcast does not send the rest of it.
    Count {
        /// Who.
        member: u32,
        /// Whether sent, or received.
        sent: bool,
        /// The kind's number.
        kind: usize,
        /// How many.
        count: u32,
    },
}

/// How fast the slowest clock ever runs, in parts per million of the true rate.
pub(crate) fn slowest_clock(script: &[(Trigger, Action)]) -> u32 {
    let rate = |(_, action): &(Trigger, Action)| match action {
        Action::Fault(Fault::Clock { rate_ppm, .. }) => Some(*rate_ppm),
        _ => None,
    };
    script.iter().filter_map(rate).fold(1_000_000, u32::min).max(1)
}

/// These settings with the longest vote lease and heartbeat that each member ever has.
pub(crate) fn longest_paces(
    settings: &Settings,
    members: &Members,
    script: &[(Trigger, Action)],
) -> Settings {
    let mut longest = settings.clone();
    for (_, action) in script {
        if let Action::Fault(Fault::Restart { member, pace: Some(pace), .. }) = action {
            let id = members.at(*member as usize);
            let before = longest.pace_of(id);
            let promise = before.vote_lease.max(pace.vote_lease);
            let heartbeat = before.heartbeat.max(pace.heartbeat);
            longest.paces.insert(id, Pace { vote_lease: promise, heartbeat, ..before });
        }
    }
    longest
}

/// For how long anybody is preferred, at most: so long a lower member may lead in peace.
pub(crate) fn longest_preference(script: &[(Trigger, Action)]) -> Span {
    let lasting = |(_, action): &(Trigger, Action)| match action {
        Action::Order { order: Order::Prefer { lasting, .. }, .. } => Some(*lasting),
        _ => None,
    };
    script.iter().filter_map(lasting).max().unwrap_or_default()
}

/// When the last thing goes wrong whose time is known beforehand, and what it delayed has arrived.
pub(crate) fn calm_begins(script: &[(Trigger, Action)]) -> Time {
    let over = |(trigger, action): &(Trigger, Action)| {
        let Trigger::At(at) = *trigger else { return Time::ZERO };
        match *action {
            Action::Fault(Fault::Pause { span, .. } | Fault::Replace { hung: span, .. }) => {
                at + Span::from_nanos(span)
            }
            _ => at,
        }
    };
    script.iter().map(over).max().unwrap_or_default() + longest_delay(script)
}

/// How long bad weather keeps a message at most.
pub(crate) fn longest_delay(script: &[(Trigger, Action)]) -> Span {
    let delay = |(_, action): &(Trigger, Action)| match action {
        Action::Fault(Fault::Weather(rule)) => rule.delay.map_or(0, DelayModel::bound),
        _ => 0,
    };
    Span::from_nanos(script.iter().map(delay).max().unwrap_or_default())
}

/// How long it takes at most until a clock of this rate has counted `span`.
pub(crate) fn stretched(span: Span, rate_ppm: u32) -> Span {
    let real = u128::from(span.as_nanos()) * 1_000_000 / u128::from(rate_ppm.max(1));
    Span::from_nanos(u64::try_from(real).unwrap_or(u64::MAX))
}

/// Faults drawn at random, until it ends. Times are means, exponentially distributed, in nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Chaos {
    /// Between two crashes, over all members.
    pub crash_every: Option<u64>,
    /// From a crash to the restart.
    pub down_for: u64,
    /// Between two pauses, over all members.
    pub pause_every: Option<u64>,
    /// The length of a pause.
    pub pause_for: u64,
    /// Between two one-way cuts, over all links.
    pub cut_every: Option<u64>,
    /// From a cut to its mending.
    pub cut_for: u64,
    /// When nothing new goes wrong any more.
    pub until: Time,
}

impl Chaos {
    /// How often, on average, faults of `kind` happen; `None` if never.
    pub fn every(&self, kind: ChaosKind) -> Option<u64> {
        match kind {
            ChaosKind::Crash => self.crash_every,
            ChaosKind::Pause => self.pause_every,
            ChaosKind::Cut => self.cut_every,
        }
    }
}

/// The kinds of faults drawn at random.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChaosKind {
    /// A crash, and a restart later.
    Crash,
    /// A pause.
    Pause,
    /// A one-way cut, and its mending later.
    Cut,
}

impl ChaosKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Crash, Self::Pause, Self::Cut];
}
