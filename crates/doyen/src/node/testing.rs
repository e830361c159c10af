//! A fake node for tests of code that uses a [`Handle`]: the test decides what the node publishes, and answers the
//! commands that it receives.

use std::io;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::compared::Current;
use super::counters::Counters;
use super::groups::GroupReader;
use super::keys::Keys;
use super::publish::{Channels, channels};
use super::relay::Relayed;
use super::status::{Entry, Status};
use super::waker::{self, CommandReceiver};
use super::{Command, Handle};
use crate::key::Keyring;
use crate::leadership::LeadershipState;

/// By how many thousandths the clocks of a fake node may be wrong.
const CLOCK_DRIFT: u32 = 100;

/// What the node publishes. Dropping it ends the node.
#[derive(Debug)]
pub struct FakeNode {
    /// The leader and this node's lease.
    pub leadership: watch::Sender<LeadershipState>,
    /// The latest snapshot.
    pub status: watch::Sender<Arc<Status>>,
    /// The latest changes of leadership, the oldest first.
    pub history: watch::Sender<Arc<Vec<Entry>>>,
    /// The counters since the start.
    pub counters: Arc<Counters>,
    /// Packets of other members.
    pub relayed: mpsc::Sender<Relayed>,
}

/// The commands that the node receives: the iterator blocks until the next one, and ends with the last handle.
#[derive(Debug)]
pub struct Commands(CommandReceiver);

impl FakeNode {
    /// A node that has just published `status`, its handle, and the commands that it will receive.
    pub fn new(status: Status) -> io::Result<(Self, Handle, Commands)> {
        let (sender, receiver) = waker::channel()?;
        let Status { leader, term, role, .. } = status;
        let (channels, subscription) = channels(status);
        let Channels { leadership, status, history, counters, relayed, .. } = channels;
        leadership.send_replace(LeadershipState {
            leader,
            term,
            role: Some(role),
            lease_deadline: None,
        });
        let keys = Keys::new(None, &Keyring::open_to_all());
        let (compared, groups) = (Current::default(), GroupReader::without_groups());
        let handle = Handle::new(subscription, sender, keys, compared, CLOCK_DRIFT, groups);
        let node = Self { leadership, status, history, counters, relayed };
        Ok((node, handle, Commands(receiver)))
    }
}

impl Iterator for Commands {
    type Item = Command;

    fn next(&mut self) -> Option<Command> {
        self.0.wait()
    }
}
