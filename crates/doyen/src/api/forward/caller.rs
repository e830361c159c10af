//! Calls to other members: each is repeated until it is answered, and is given up after a while.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use doyen_core::members::NodeId;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::packet::{Assembly, Call, LONGEST_CALL, Packet, Reply, WINDOW};
use crate::mutex::lock;
use crate::node::relay::RelayError;
use crate::node::{CommandError, Handle};

/// How many calls may be open at once.
const MOST_OPEN: usize = 64;

/// How many packets about a call may wait: two windows.
const WAITING: usize = 2 * WINDOW;

/// The wait before a packet is repeated for the first time; it doubles each time.
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// A member that has sent nothing for this long does not answer.
const SILENT: Duration = Duration::from_secs(3);

/// A member that cannot be sent anything may be met in a moment, or turn out to read this version.
const NOT_SENT: Duration = Duration::from_secs(1);

/// How long a call may take. A member carries out a command within 10 s, or says that it cannot.
const LONGEST: Duration = Duration::from_secs(13);

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in super::super) enum Unanswered {
    /// Nothing could be sent, so nothing has happened.
    Unsent(RelayError),
    /// Nothing arrived, or not everything. The call may have been carried out.
    Silent,
    /// The member no longer knows. The call may have been carried out.
    Gone,
    /// Too many calls are open here.
    Busy,
    /// The call does not fit into a datagram.
    TooLong,
}

/// Makes calls to other members. Cheap to clone.
#[derive(Clone, Debug)]
pub(in super::super) struct Forwarder(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    handle: Handle,
    last_id: AtomicU64,
    open: Mutex<BTreeMap<u64, (NodeId, mpsc::Sender<Packet>)>>,
}

/// An open call; dropping it closes it.
struct Open<'a> {
    id: u64,
    inner: &'a Inner,
    packets: mpsc::Receiver<Packet>,
    /// When something about it arrived last, or when it was opened.
    last_heard: Instant,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        lock(&self.inner.open).remove(&self.id);
    }
}

/// The result of waiting.
enum Heard {
    Whole(Vec<u8>),
    /// The last of the parts that were asked for has arrived. What is missing was lost, or comes late.
    Window,
    Gone,
}

impl Forwarder {
    pub(in super::super) fn new(handle: Handle) -> Self {
        let (last_id, open) = (AtomicU64::new(0), Mutex::default());
        Self(Arc::new(Inner { handle, last_id, open }))
    }

    /// A packet about a call of this node has arrived. One that is about no open call of that member is ignored.
    pub(super) fn deliver(&self, from: NodeId, packet: Packet) {
        if let Some((to, sender)) = lock(&self.0.open).get(&packet.id())
            && *to == from
        {
            // A packet that finds no place counts as lost.
            let _ = sender.try_send(packet);
        }
    }

    /// Has another member do this, and waits for its answer.
    pub(in super::super) async fn call(&self, to: NodeId, call: Call) -> Result<Reply, Unanswered> {
        let mut open = self.open(to)?;
        let id = open.id;
        let call = Packet::Call { id, call }.encode();
        if call.len() > LONGEST_CALL {
            return Err(Unanswered::TooLong);
        }
        let begun = Instant::now();
        let (mut answer, mut wait) = (Assembly::default(), FIRST_WAIT);
        // A call is for one process: one that was started later does not know whether it has been carried out.
        let mut session = None;
        loop {
            let packet = match answer.first_missing() {
                Some(from) => Packet::Fetch { id, from }.encode(),
                None => call.clone(),
            };
            let stuck = Err(RelayError::Node(CommandError::Busy));
            let sent = timeout(LONGEST_WAIT, self.0.handle.relay(to, session, packet)).await;
            let sent = sent.unwrap_or(stuck);
            match sent {
                Ok(to) => session = Some(to),
                Err(RelayError::Restarted) => return Err(Unanswered::Gone),
                Err(_) => {}
            }
            let before = answer.first_missing();
            match timeout(wait, open.hear(&mut answer)).await {
                Ok(Heard::Whole(bytes)) => {
                    return Reply::decode(&bytes).ok_or(Unanswered::Gone);
                }
                Ok(Heard::Gone) => return Err(Unanswered::Gone),
                Ok(Heard::Window) => wait = FIRST_WAIT,
                Err(_) if answer.first_missing() > before => wait = FIRST_WAIT,
                Err(_) => wait = (2 * wait).min(LONGEST_WAIT),
            }
            match sent {
                Err(error) if session.is_none() && begun.elapsed() >= NOT_SENT => {
                    return Err(Unanswered::Unsent(error));
                }
                _ if open.last_heard.elapsed() >= SILENT || begun.elapsed() >= LONGEST => {
                    return Err(Unanswered::Silent);
                }
                _ => {}
            }
        }
    }

    fn open(&self, to: NodeId) -> Result<Open<'_>, Unanswered> {
        let inner = &*self.0;
        let (sender, packets) = mpsc::channel(WAITING);
        let mut open = lock(&inner.open);
        if open.len() >= MOST_OPEN {
            return Err(Unanswered::Busy);
        }
        // Numbers rise in the order in which calls are opened.
        let id = inner.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        open.insert(id, (to, sender));
        Ok(Open { id, inner, packets, last_heard: Instant::now() })
    }
}

impl Open<'_> {
    /// Waits until there is something to do. Parts that arrived before a time-out stay in `answer`.
    async fn hear(&mut self, answer: &mut Assembly) -> Heard {
        let last_asked = answer.first_missing().unwrap_or(0) + WINDOW as u16 - 1;
        while let Some(packet) = self.packets.recv().await {
            self.last_heard = Instant::now();
            let is_last = match packet {
                // One that is repeated says nothing about what is under way.
                Packet::Part { part, parts, bytes, .. } => {
                    let is_new = answer.add(part, parts, bytes);
                    is_new && part >= last_asked.min(parts.saturating_sub(1))
                }
                Packet::Gone { .. } => return Heard::Gone,
                Packet::Working { .. } | Packet::Call { .. } | Packet::Fetch { .. } => false,
            };
            if let Some(whole) = answer.whole() {
                return Heard::Whole(whole);
            }
            if is_last {
                return Heard::Window;
            }
        }
        // The sender is in the table for as long as this is.
        Heard::Gone
    }
}
