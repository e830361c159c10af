//! A member on a real network: the loop that runs a state machine of the core, and what it needs of the machine.
//!
//! ```text
//!   HTTP, signals, library        one thread: the loop
//!   ┌────────────────┐  orders    ┌─────────────────────────────────────────────┐
//!   │ Handle         ├──────────▶ │ poll(socket, orders, next timer)            │
//!   │  status, reign │ ◀──────────┤ event ─▶ core ─▶ effects, in order          │ ◀─▶ UDP
//!   └────────────────┘  watch     │ persist (sync) · announce · send · timers   │ ◀─▶ state file
//!                                 └─────────────────────────────────────────────┘
//! ```
//!
//! The loop has a thread of its own and shares nothing that others could hold it up with: HTTP may be flooded and a
//! disk full, and heartbeats go on. Whoever wants something sends a request and is answered; whoever wants to know
//! reads what was published last.

mod attribute;
mod bell;
mod board;
mod chronicle;
pub mod clock;
mod host;
mod insight;
mod journal;
mod machine;
mod network;
mod rejoin;
pub mod replay;
mod resolver;
pub mod stand_in;
mod start;
pub mod status;
pub mod store;
mod timers;
pub mod trace;
pub mod wire;
mod worries;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use doyen_core::members::{Incarnation, NodeId, Term};
use doyen_core::protocol::{AdminCommand, Refusal};
use tokio::sync::{oneshot, watch};

use crate::key::Keyring;
use crate::leadership::Leadership;
use status::{Counters, Entry, Status};

pub use bell::Requests;
pub use start::{Running, start};

/// What the loop can be asked for.
#[derive(Debug)]
pub enum Request {
    /// An order of the operator's, and whom to answer.
    Command(AdminCommand, oneshot::Sender<Result<(), NotDone>>),
    /// Somebody wants an election.
    Campaign(oneshot::Sender<Result<(), NotDone>>),
    /// Use these keys from now on.
    Keys(Keyring, oneshot::Sender<Result<(), NotDone>>),
    /// A member's name has been looked up; it has no address, if it was in vain.
    Resolved {
        /// Whose.
        member: NodeId,
        /// Where it is.
        address: Option<SocketAddr>,
    },
    /// Hand over if it leads, then end; at the latest after this long.
    Stop {
        /// How long handing over may take.
        grace: Duration,
    },
}

/// Why something was not done.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotDone {
    /// The member refuses.
    #[error("{0}")]
    Refused(Refusal),
    /// The algorithm has no leases, so nothing can be handed over.
    #[error("this algorithm has no leases and takes no orders; only quorum does")]
    NoLeases,
    /// The keys cannot be read; the old ones stay.
    #[error("the keys stay as they are, for the new ones were refused: {0}")]
    Keys(String),
    /// It has lost its state, and asks the others what they know of it.
    #[error("the node has lost its state and asks the others; try again when it has rejoined")]
    Rejoining,
    /// Too much has been asked for at once.
    #[error("the node is busy with other requests; try again")]
    Busy,
    /// The node has ended.
    #[error("the node has stopped")]
    Stopped,
}

/// Why a node cannot start, or had to stop.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The state file is missing, damaged, somebody else's, in use.
    #[error(transparent)]
    State(#[from] store::StoreError),
    /// Something could not be stored. A member that goes on and has forgotten would be worse than one that stops.
    #[error("{}: cannot be written: {error}; the node stops, for it must not forget", path.display())]
    Store {
        /// The state file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// Another process has this address, or the machine does not have it.
    #[error("cannot listen on {address}: {error}{}", hint_if_taken(error))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// The keys cannot be read.
    #[error("{0}")]
    Keys(String),
    /// The trace cannot be written.
    #[error("the trace {} cannot be begun: {error}", path.display())]
    Trace {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The machine refuses something that it should not.
    #[error("cannot {what}: {error}")]
    System {
        /// What.
        what: &'static str,
        /// Why not.
        error: io::Error,
    },
    /// A member has heard this one in a later term than the disk knows of.
    #[error(
        "the state is an old copy: {by} has heard this member in term {seen}; restore nothing, start with --rejoin"
    )]
    StateIsOld {
        /// In which term it was heard.
        seen: Term,
        /// The name of who heard it.
        by: String,
    },
    /// A member has heard this one in a start that is not before this one.
    #[error(
        "the state is a copy: {by} has heard this member in start {}, and this start is no later one; another \
         process may run with a clone of the state. Stop one of them, then start with --rejoin",
        seen.0
    )]
    Cloned {
        /// In which start it was heard.
        seen: Incarnation,
        /// The name of who heard it.
        by: String,
    },
    /// The only member of its cluster has lost its state: nobody knows which terms there have been.
    #[error(
        "the only member has lost its state, and nobody can say which terms there have been; found the cluster \
         anew with `doyen init --term-floor` and a term above all that were ever shown"
    )]
    NobodyToAsk,
    /// It has lost its state, and the clock is plainly wrong.
    #[error(
        "the clock of this machine is plainly wrong, and a member that rejoins needs the time of day; set the clock, then \
         start with --rejoin again"
    )]
    WrongClock,
    /// The loop has panicked, which it never should.
    #[error("the loop has panicked; this is a bug")]
    Panicked,
    /// There is no higher term.
    #[error("there is no higher term than the present one, so nobody can be elected any more")]
    OutOfTerms,
}

/// What to think of if an address is taken.
pub fn hint_if_taken(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; does this node run already?",
        _ => "",
    }
}

/// How the rest of the program talks to a running node. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    leadership: Leadership,
    status: watch::Receiver<Arc<Status>>,
    history: watch::Receiver<Arc<Vec<Entry>>>,
    counters: Arc<Counters>,
    requests: Requests,
    key_file: Option<PathBuf>,
}

impl Handle {
    /// A handle to whoever is at the other ends: the loop of a node, or a stand-in for one in a test.
    fn new(readers: board::Readers, requests: Requests, key_file: Option<PathBuf>) -> Self {
        let board::Readers { reign, promise, status, history, counters } = readers;
        let leadership = Leadership::new(reign, promise);
        Self { leadership, status, history, counters, requests, key_file }
    }

    /// Who leads, asked at the moment of acting.
    pub fn leadership(&self) -> &Leadership {
        &self.leadership
    }

    /// The latest snapshot.
    pub fn status(&self) -> Arc<Status> {
        self.status.borrow().clone()
    }

    /// Snapshots as they come.
    pub fn watch(&self) -> watch::Receiver<Arc<Status>> {
        self.status.clone()
    }

    /// The latest changes of leadership, the oldest first.
    pub fn history(&self) -> Arc<Vec<Entry>> {
        self.history.borrow().clone()
    }

    /// The history as it grows.
    pub fn watch_history(&self) -> watch::Receiver<Arc<Vec<Entry>>> {
        self.history.clone()
    }

    /// What has been counted since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Gives an order and waits until it is obeyed or refused. A hand-over has begun then, it need not be over.
    pub async fn order(&self, command: AdminCommand) -> Result<(), NotDone> {
        self.ask(|answer| Request::Command(command, answer)).await
    }

    /// Has the member call an election.
    pub async fn campaign(&self) -> Result<(), NotDone> {
        self.ask(Request::Campaign).await
    }

    /// Reads the keys again; the old ones stay if that fails. The file is read here and not by the loop: a disk may not
    /// answer.
    pub async fn reload_keys(&self) -> Result<String, NotDone> {
        let file = self.key_file.clone();
        let read = tokio::task::spawn_blocking(move || Keyring::of(file.as_deref())).await;
        let keys = match read {
            Ok(keys) => keys.map_err(|error| NotDone::Keys(error.to_string()))?,
            Err(_) => return Err(NotDone::Stopped),
        };
        let told = keys.told();
        self.ask(|answer| Request::Keys(keys, answer)).await?;
        Ok(told)
    }

    /// Has the node hand over and end, within `grace`. It is heard however busy the node is. Whoever holds the node can
    /// wait for its end.
    pub fn stop(&self, grace: Duration) {
        self.requests.stop(grace);
    }

    async fn ask(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<(), NotDone>>) -> Request,
    ) -> Result<(), NotDone> {
        let (answer, answered) = oneshot::channel();
        self.requests.send(request(answer))?;
        answered.await.map_err(|_| NotDone::Stopped)?
    }
}
