//! A member on a real network: the loop that runs a state machine of the core, and what it needs of the machine.
//!
//! ```text
//!   HTTP, signals, library        one thread: the loop
//!   ┌────────────────┐ commands   ┌─────────────────────────────────────────────┐
//!   │ Handle         ├──────────▶ │ poll(socket, commands, next timer)          │
//!   │  status, leader│ ◀──────────┤ event ─▶ core ─▶ effects, in order          │ ◀─▶ UDP
//!   └────────────────┘  watch     │ persist (sync) · announce · send · timers   │ ◀─▶ state file
//!                                 └─────────────────────────────────────────────┘
//! ```
//!
//! The loop has a thread of its own and shares nothing that could block it: heartbeats continue while HTTP is flooded, a
//! log is stuck or a name server does not answer. Other threads send commands and receive an answer, and read what was
//! published last.

mod attribute;
mod commander;
pub mod compared;
pub mod counters;
mod filter;
mod groups;
mod history;
mod host;
mod inbox;
mod inspect;
pub mod keys;
mod log;
mod network;
mod publish;
mod reachability;
pub mod relay;
pub mod reload;
pub mod replay;
mod resolver;
mod start;
pub mod status;
pub mod store;
pub mod testing;
pub(crate) mod timers;
pub mod trace;
mod waker;
mod warnings;
pub mod wire;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use doyen_core::members::{Incarnation, NodeId, SessionId, Term};
use doyen_core::protocol::{AdminCommand, Refusal};
use tokio::sync::{mpsc, oneshot, watch};

use crate::guardian::Handover;
use crate::guardian::lease_file::LeaseFile;
use crate::key::Keyring;
use crate::leadership::{FencingToken, Leadership, Permits};
use compared::Compared;
use counters::Counters;
use groups::GroupReader;
use inbox::Inbox;
use keys::Keys;
use publish::Subscription;
use relay::{RelayError, Relayed};
use reload::Reloads;
use status::{Entry, Job, Status};
use waker::CommandSender;

pub use groups::GroupState;
pub use start::{Builder, Running};

/// Where the loop sends the result of a command.
pub type CommandAnswer = oneshot::Sender<Result<(), CommandError>>;

/// A command to the loop.
#[derive(Debug)]
pub enum Command {
    /// A command of an operator, for the member.
    Admin {
        /// The command.
        command: AdminCommand,
        /// Who gave it, for the history; none if it did not come from outside.
        by: Option<String>,
        /// Where the result goes.
        answer: CommandAnswer,
    },
    /// Start an election.
    Campaign(CommandAnswer),
    /// Use these keys from now on.
    UseKeys(Keyring, CommandAnswer),
    /// Use this timing from the next term on.
    Retime(Box<doyen_core::config::Config>, CommandAnswer),
    /// From now on a guardian watches this node.
    Guard {
        /// Where it publishes its lease; none if it does so already.
        lease_file: Option<LeaseFile>,
        /// Where it keeps ready what ends its lease if it dies.
        handover: Handover,
        /// Where the result goes.
        answer: CommandAnswer,
    },
    /// Send a packet to the present process of a member.
    Relay {
        /// The member.
        to: NodeId,
        /// The process that it is for, if it is for no other.
        session: Option<SessionId>,
        /// The packet.
        bytes: Vec<u8>,
        /// Where the result goes: the process that it was sent to.
        answer: oneshot::Sender<Result<SessionId, RelayError>>,
    },
    /// The name of a member has been looked up.
    AddressResolved {
        /// The member.
        member: NodeId,
        /// Its address; none if it was not found.
        address: Option<SocketAddr>,
    },
    /// Transfer leadership if this member leads, then end.
    Stop {
        /// How long the transfer may take.
        grace: Duration,
    },
}

/// Why a command was not carried out. Nothing has changed then.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CommandError {
    /// The member rejected it.
    #[error("{0}")]
    Rejected(Refusal),
    /// The algorithm has no leases, so there are no admin commands.
    #[error("this algorithm has no leases and accepts no admin commands; only quorum does")]
    NoLeases,
    /// The new keys cannot be used.
    #[error("the new keys cannot be used, and the node keeps its old ones: {0}")]
    InvalidKeys(String),
    /// The new admin secret cannot be used.
    #[error("the new admin secret cannot be used, and the node keeps its old one: {0}")]
    InvalidSecret(String),
    /// The configuration cannot be used, or a change needs a restart.
    #[error("{0}")]
    NotReloaded(String),
    /// The member has lost its state and has not rejoined yet.
    #[error("the node has lost its state and is rejoining; retry when it has rejoined")]
    Rejoining,
    /// Too many commands wait.
    #[error("the node is busy with other commands; retry later")]
    Busy,
    /// The node has ended.
    #[error("the node has stopped")]
    Stopped,
}

/// Why a node cannot start, or had to stop.
#[expect(missing_docs, reason = "the messages say what the fields are")]
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The state file cannot be used.
    #[error(transparent)]
    State(#[from] store::StoreError),
    /// The state cannot be written. A member that continues and forgets a vote would be worse than one that stops.
    #[error("{}: cannot be written: {error}; the node stops, because it must not forget its votes", path.display())]
    Store { path: PathBuf, error: io::Error },
    /// Another process has this address, or the machine does not have it.
    #[error("cannot listen on {address}: {error}{}", hint_if_taken(error))]
    Listen { address: SocketAddr, error: io::Error },
    /// The keys cannot be read.
    #[error("{0}")]
    Keys(String),
    /// Other users can write the configuration, which may name commands to run.
    #[error("{0}")]
    Exposed(String),
    /// The trace cannot be written.
    #[error("cannot create the trace {}: {error}", path.display())]
    Trace { path: PathBuf, error: io::Error },
    /// A system call failed that should not.
    #[error("cannot {what}: {error}")]
    System { what: &'static str, error: io::Error },
    /// Another member has seen this one in a later term than its disk has.
    #[error(
        "the state is an old copy: {by} has seen this member in term {seen}; do not restore anything, run \
         `doyen rejoin`"
    )]
    StateIsOld { seen: Term, by: String },
    /// Another member has seen this one in the same start or a later one.
    #[error(
        "the state is a copy: {by} has seen this member in start {}, and this start is not later; another process may run \
         with a clone of the state. Stop one of them, then run `doyen rejoin`; if this machine was replaced, leave the node off",
        seen.0
    )]
    Cloned { seen: Incarnation, by: String },
    /// The only member of its cluster has lost its state: no other member knows the last term.
    #[error(
        "the only member has lost its state, and no other member knows the last term; create a new cluster with \
         `doyen init --term-floor` and a term above all earlier ones"
    )]
    OnlyMember,
    /// It has lost its state, and the clock is obviously wrong.
    #[error(
        "the clock of this machine is obviously wrong, and a member that rejoins needs the time of day; set the clock, then \
         run `doyen rejoin` again"
    )]
    WrongClock,
    /// The loop panicked.
    #[error("the event loop panicked; this is a bug in doyen")]
    Panicked,
    /// There is no higher term.
    #[error("the current term is the highest possible one, so no leader can be elected any more")]
    OutOfTerms,
}

impl Failure {
    /// Whether it may pass by itself, so that a supervisor should start the node again: an address that is not there yet, a
    /// port or a state that a process has which is about to end, a full disk, too few file descriptors. An operator must
    /// fix all other errors.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::State(store::StoreError::Locked { .. }) => true,
            Self::State(store::StoreError::Io { error, .. })
            | Self::Store { error, .. }
            | Self::Listen { error, .. }
            | Self::Trace { error, .. }
            | Self::System { error, .. } => may_pass(error),
            _ => false,
        }
    }
}

/// Whether an error of the system may pass by itself.
pub fn may_pass(error: &io::Error) -> bool {
    use io::ErrorKind::{
        AddrInUse, AddrNotAvailable, NetworkDown, OutOfMemory, QuotaExceeded, ResourceBusy,
        StorageFull, WouldBlock,
    };
    // `WouldBlock` is also what the system says when there are too many threads.
    let kinds = [
        AddrInUse,
        AddrNotAvailable,
        NetworkDown,
        OutOfMemory,
        QuotaExceeded,
        ResourceBusy,
        StorageFull,
        WouldBlock,
    ];
    // `ENODEV`: a network interface that is not there yet.
    let numbers = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENODEV];
    kinds.contains(&error.kind()) || error.raw_os_error().is_some_and(|it| numbers.contains(&it))
}

/// A hint for the error that an address is in use.
pub fn hint_if_taken(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; is this node running already?",
        io::ErrorKind::AddrNotAvailable => "; no network interface of this machine has the address",
        _ => "",
    }
}

/// The way to a running node for the rest of the program. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    leadership: Leadership,
    status: watch::Receiver<Arc<Status>>,
    history: watch::Receiver<Arc<Vec<Entry>>>,
    counters: Arc<Counters>,
    commands: CommandSender,
    keys: Keys,
    relayed: Inbox<Relayed>,
    job: watch::Sender<Job>,
    reloads: Reloads,
    compared: compared::Current,
    /// By how many thousandths any clock may be wrong.
    clock_drift: u32,
    groups: GroupReader,
}

/// Work that runs under a lease. A transfer of leadership waits until it is dropped.
#[derive(Debug)]
pub struct Work {
    term: Term,
    permits: Permits,
    commands: CommandSender,
}

impl Work {
    /// The term of the lease.
    pub fn term(&self) -> Term {
        self.term
    }

    /// The fencing token of something that starts now: higher than those of all earlier starts in the cluster. None if the
    /// term has no more of them: there are a million.
    pub fn next_token(&self) -> Option<FencingToken> {
        self.permits.next_token(self.term)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.permits.end_work();
        self.commands.wake();
    }
}

impl Handle {
    fn new(
        subscription: Subscription,
        commands: CommandSender,
        keys: Keys,
        compared: compared::Current,
        clock_drift: u32,
        groups: GroupReader,
    ) -> Self {
        let Subscription { leadership, permits, status, history, counters, relayed, job } =
            subscription;
        let leadership = Leadership::new(leadership, permits);
        Self {
            leadership,
            status,
            history,
            counters,
            commands,
            keys,
            relayed,
            job,
            reloads: Reloads::default(),
            compared,
            clock_drift,
            groups,
        }
    }

    /// The settings that should be the same on all members.
    pub fn compared(&self) -> Compared {
        self.compared.get()
    }

    /// The program that runs the node has changed its settings.
    pub fn set_compared(&self, compared: Compared) {
        self.compared.set(compared);
    }

    /// Shows this in the status: what the program runs under the lease.
    pub fn show_job(&self, job: Job) {
        self.job.send_replace(job);
    }

    /// Whether this node leads, checked at the moment of acting.
    pub fn leadership(&self) -> &Leadership {
        &self.leadership
    }

    /// By how many thousandths any clock of the cluster may be wrong: the setting `timing.drift`.
    pub fn clock_drift(&self) -> u32 {
        self.clock_drift
    }

    /// Whether this node leads a group, checked at the moment of acting; none if there is no such group. Its terms are those
    /// in which the group was granted, and its permits have the fencing tokens of the grants. A group that is to move to
    /// another member waits for the last permit.
    pub fn group(&self, name: &str) -> Option<&Leadership> {
        self.groups.leadership(name)
    }

    /// All groups, in the order of their names, and which member leads each, as far as this node knows.
    pub fn groups(&self) -> Arc<Vec<GroupState>> {
        self.groups.states()
    }

    /// How many groups this node leads now.
    pub fn groups_led(&self) -> usize {
        self.groups.led()
    }

    /// How often this node began or ceased to lead a group, since its start.
    pub fn group_changes(&self) -> u64 {
        self.groups.changes()
    }

    /// Begins work under this node's lease, if it holds a valid one: a transfer of leadership waits until the work is
    /// dropped. What happens to work whose lease lapses is the caller's concern, or a guardian's.
    pub fn begin_work(&self) -> Option<Work> {
        let (term, permits) = self.leadership.begin_work()?;
        Some(Work { term, permits, commands: self.commands.clone() })
    }

    /// The latest snapshot.
    pub fn status(&self) -> Arc<Status> {
        self.status.borrow().clone()
    }

    /// Every new snapshot.
    pub fn watch(&self) -> watch::Receiver<Arc<Status>> {
        self.status.clone()
    }

    /// The latest changes of leadership, the oldest first.
    pub fn history(&self) -> Arc<Vec<Entry>> {
        self.history.borrow().clone()
    }

    /// The history whenever it grows.
    pub fn watch_history(&self) -> watch::Receiver<Arc<Vec<Entry>>> {
        self.history.clone()
    }

    /// Counters since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Gives an admin command and waits until it is accepted or rejected. A transfer of leadership has then begun, but need
    /// not be complete.
    pub async fn command(&self, command: AdminCommand) -> Result<(), CommandError> {
        self.send(|answer| Command::Admin { command, by: None, answer }).await
    }

    /// The same, and the history says who gave the command.
    pub async fn command_by(
        &self,
        by: impl fmt::Display,
        command: AdminCommand,
    ) -> Result<(), CommandError> {
        let by = Some(by.to_string());
        self.send(|answer| Command::Admin { command, by, answer }).await
    }

    /// Makes the member start an election.
    pub async fn campaign(&self) -> Result<(), CommandError> {
        self.send(Command::Campaign).await
    }

    /// From now on a guardian watches this node, as if it had been [started](start::Builder::handover) with one. `lease_file`:
    /// where it publishes its lease, if it does not do so already.
    pub async fn guard(
        &self,
        lease_file: Option<LeaseFile>,
        handover: Handover,
    ) -> Result<(), CommandError> {
        self.send(|answer| Command::Guard { lease_file, handover, answer }).await
    }

    /// Sends a packet to the present process of another member, sealed, and returns that process's session. It may be lost
    /// on the way, like every datagram. If `session` is given, it is sent to no other process than that one.
    pub async fn relay(
        &self,
        to: NodeId,
        session: Option<SessionId>,
        bytes: Vec<u8>,
    ) -> Result<SessionId, RelayError> {
        let (answer, answered) = oneshot::channel();
        let sent = self.commands.send(Command::Relay { to, session, bytes, answer });
        sent.map_err(RelayError::Node)?;
        answered.await.unwrap_or(Err(RelayError::Node(CommandError::Stopped)))
    }

    /// The packets that present processes of other members send to this one; none if they have been asked for before.
    pub fn relayed(&self) -> Option<mpsc::Receiver<Relayed>> {
        self.relayed.take()
    }

    /// Makes the node transfer leadership and end, within `grace`, however busy it is. [`Running::ended`] waits for the
    /// end.
    pub fn stop(&self, grace: Duration) {
        self.commands.stop(grace);
    }

    /// Whether the node was told to [stop](Self::stop).
    pub fn is_stopping(&self) -> bool {
        self.commands.is_stopping()
    }

    async fn send(
        &self,
        command: impl FnOnce(CommandAnswer) -> Command,
    ) -> Result<(), CommandError> {
        let (answer, answered) = oneshot::channel();
        self.commands.send(command(answer))?;
        answered.await.map_err(|_| CommandError::Stopped)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_restart_may_mend_and_what_a_person_must() {
        let passes = |number| may_pass(&io::Error::from_raw_os_error(number));
        let address = [libc::EADDRINUSE, libc::EADDRNOTAVAIL, libc::ENETDOWN, libc::ENODEV];
        let room = [libc::ENOSPC, libc::EDQUOT, libc::ENOMEM, libc::ENOBUFS];
        let busy = [libc::EMFILE, libc::ENFILE, libc::EAGAIN, libc::EBUSY];
        for number in [address, room, busy].concat() {
            assert!(passes(number), "{}", io::Error::from_raw_os_error(number));
        }
        for number in
            [libc::EACCES, libc::EPERM, libc::ENOENT, libc::EROFS, libc::EINVAL, libc::EIO]
        {
            assert!(!passes(number), "{}", io::Error::from_raw_os_error(number));
        }
    }
}
