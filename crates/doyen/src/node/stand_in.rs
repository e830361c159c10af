//! A stand-in for a node: whoever holds it says what the node would say, and answers what the node would be asked.
//!
//! For tests of what talks to a node through its [`Handle`], here and in programs that embed one.

use std::io;
use std::sync::Arc;

use tokio::sync::watch;

use super::bell::{self, Inbox};
use super::board::Readers;
use super::status::{Counters, Entry, Status};
use super::{Handle, Request};
use crate::leadership::{Promise, Reign};

/// What a node publishes. When it is dropped, the node has ended.
#[derive(Debug)]
pub struct StandIn {
    /// Who leads, until when.
    pub reign: watch::Sender<Reign>,
    /// The latest snapshot.
    pub status: watch::Sender<Arc<Status>>,
    /// The latest changes, the oldest first.
    pub history: watch::Sender<Arc<Vec<Entry>>>,
    /// What is counted.
    pub counters: Arc<Counters>,
}

/// What a node is asked for, as it comes: the iterator waits for the next request, and ends with the last handle.
#[derive(Debug)]
pub struct Questions(Inbox);

impl StandIn {
    /// A node that has just published `status`, the handle to it, and what it will be asked for.
    pub fn new(status: Status) -> io::Result<(Self, Handle, Questions)> {
        let (requests, inbox) = bell::pair()?;
        let Status { leader, term, role, .. } = status;
        let (reign, reigns) = watch::channel(Reign { leader, term, role: Some(role), until: None });
        let (status, statuses) = watch::channel(Arc::new(status));
        let (history, histories) = watch::channel(Arc::default());
        let counters = Arc::<Counters>::default();
        let readers = Readers {
            reign: reigns,
            promise: Promise::default(),
            status: statuses,
            history: histories,
            counters: Arc::clone(&counters),
        };
        let handle = Handle::new(readers, requests, None);
        Ok((Self { reign, status, history, counters }, handle, Questions(inbox)))
    }
}

impl Iterator for Questions {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        self.0.wait()
    }
}
