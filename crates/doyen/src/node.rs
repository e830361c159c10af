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

pub mod clock;
pub mod status;
pub mod wire;

use std::fmt;
use std::sync::{Arc, mpsc};

use doyen_core::protocol::{Order, Refusal};
use tokio::sync::{oneshot, watch};

use crate::leadership::Leadership;
use status::{Counters, Entry, Status};

/// What the loop can be asked for.
#[derive(Debug)]
pub enum Request {
    /// An order of the operator's, and whom to answer.
    Order(Order, oneshot::Sender<Result<(), Refusal>>),
    /// Somebody wants an election.
    Campaign(oneshot::Sender<Result<(), Refusal>>),
    /// Read the keys again.
    ReloadKeys(oneshot::Sender<Result<(), String>>),
    /// Hand over if it leads, then end.
    Stop,
}

/// Why an order was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotDone {
    /// The member refuses.
    #[error("{0}")]
    Refused(Refusal),
    /// The node has ended.
    #[error("the node has stopped")]
    Stopped,
    /// The keys cannot be read; the old ones stay.
    #[error("{0}")]
    Keys(String),
}

/// How the rest of the program talks to a running node. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    leadership: Leadership,
    status: watch::Receiver<Arc<Status>>,
    history: watch::Receiver<Arc<Vec<Entry>>>,
    counters: Arc<Counters>,
    requests: Requests,
}

/// The way into the loop: a queue and a bell.
#[derive(Clone)]
pub struct Requests {
    queue: mpsc::Sender<Request>,
    bell: Arc<dyn Fn() + Send + Sync>,
}

impl Requests {
    /// Whatever is put into `queue` is followed by a stroke of `bell`, which wakes whoever reads the queue.
    pub fn new(queue: mpsc::Sender<Request>, bell: impl Fn() + Send + Sync + 'static) -> Self {
        Self { queue, bell: Arc::new(bell) }
    }

    fn send(&self, request: Request) -> Result<(), NotDone> {
        self.queue.send(request).map_err(|_| NotDone::Stopped)?;
        (self.bell)();
        Ok(())
    }
}

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Requests").finish_non_exhaustive()
    }
}

impl Handle {
    /// A handle to whoever is at the other ends: the loop of a node, or a stand-in for one in a test.
    pub fn new(
        leadership: Leadership,
        status: watch::Receiver<Arc<Status>>,
        history: watch::Receiver<Arc<Vec<Entry>>>,
        counters: Arc<Counters>,
        requests: Requests,
    ) -> Self {
        Self { leadership, status, history, counters, requests }
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
    pub async fn order(&self, order: Order) -> Result<(), NotDone> {
        self.ask(|answer| Request::Order(order, answer)).await?.map_err(NotDone::Refused)
    }

    /// Has the member call an election.
    pub async fn campaign(&self) -> Result<(), NotDone> {
        self.ask(Request::Campaign).await?.map_err(NotDone::Refused)
    }

    /// Has the keys read again.
    pub async fn reload_keys(&self) -> Result<(), NotDone> {
        self.ask(Request::ReloadKeys).await?.map_err(NotDone::Keys)
    }

    /// Has the node hand over and end. Whoever holds its thread can wait for that.
    pub fn stop(&self) {
        // If it has ended already, that is what was wanted.
        let _ = self.requests.send(Request::Stop);
    }

    async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<T>) -> Request,
    ) -> Result<T, NotDone> {
        let (answer, answered) = oneshot::channel();
        self.requests.send(request(answer))?;
        answered.await.map_err(|_| NotDone::Stopped)
    }
}
