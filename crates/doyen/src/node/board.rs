//! What the loop lets others know: the reign, the status, the history, the log.
//!
//! Everything here is written by the loop and read by everybody else, through channels that keep the latest value
//! alone: no reader can hold the loop up.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use doyen_core::change::{ElectionReason, LeaderChange};
use doyen_core::members::NodeId;
use doyen_core::protocol::{Role, View};
use tokio::sync::watch;

use super::clock::Moment;
use super::journal::{Journal, Line};
use super::status::{Counters, Entry, Status};
use crate::leadership::{Promise, Reign};

/// How many changes are kept.
const HISTORY: usize = 256;

/// The loop's side of what is published.
#[derive(Debug)]
pub(super) struct Board {
    reign: watch::Sender<Reign>,
    /// What those who act under the lease have been told.
    pub(super) promise: Promise,
    status: watch::Sender<Arc<Status>>,
    history: watch::Sender<Arc<Vec<Entry>>>,
    pub(super) counters: Arc<Counters>,
    pub(super) journal: Journal,
    /// The names of the members, for texts.
    names: Vec<(NodeId, String)>,
    /// Since when this member has been trying to become the leader.
    seeking_since: Option<Moment>,
    /// Why the present leader leads.
    why: Option<ElectionReason>,
}

/// Everybody else's side.
#[derive(Clone, Debug)]
pub(super) struct Readers {
    pub(super) reign: watch::Receiver<Reign>,
    pub(super) promise: Promise,
    pub(super) status: watch::Receiver<Arc<Status>>,
    pub(super) history: watch::Receiver<Arc<Vec<Entry>>>,
    pub(super) counters: Arc<Counters>,
}

impl Board {
    /// Both sides; `status` is what is known before anything has happened.
    pub(super) fn new(status: Status, journal: Journal) -> (Self, Readers) {
        let names = status.members.iter().map(|member| (member.id, member.name.clone())).collect();
        let (reign, reigns) = watch::channel(Reign::default());
        let (status, statuses) = watch::channel(Arc::new(status));
        let (history, histories) = watch::channel(Arc::new(Vec::new()));
        let counters = Arc::new(Counters::default());
        let promise = Promise::default();
        let readers = Readers {
            reign: reigns,
            promise: promise.clone(),
            status: statuses,
            history: histories,
            counters: Arc::clone(&counters),
        };
        let board = Self {
            reign,
            promise,
            status,
            history,
            counters,
            journal,
            names,
            seeking_since: None,
            why: None,
        };
        (board, readers)
    }

    /// The view, and the lease's end if there is one. Everybody who asks from now on is told this.
    pub(super) fn announce(&mut self, view: View, until: Option<Moment>) {
        let View { leader, term, role } = view;
        match role {
            Role::Candidate => {
                self.seeking_since.get_or_insert_with(Moment::now);
            }
            Role::Follower => self.seeking_since = None,
            Role::Leader | Role::Retiring => {}
        }
        let reign = Reign { leader, term, role: Some(role), until };
        self.reign.send_if_modified(|last| std::mem::replace(last, reign) != reign);
    }

    /// There is no lease any more. Everybody who asks from now on is told so, whatever else they are told later.
    pub(super) fn withdraw_lease(&self) {
        self.reign.send_if_modified(|reign| reign.until.take().is_some());
    }

    /// Replaces the snapshot.
    pub(super) fn publish(&self, status: Status) {
        self.status.send_replace(Arc::new(status));
    }

    /// Why the present leader leads, in words.
    pub(super) fn why(&self) -> Option<String> {
        let known = self.why.filter(|_| self.reign.borrow().leader.is_some());
        known.map(|why| why.describe(&|id| self.name_of(id)))
    }

    /// Enters a change into the history and the log. `half_trip`: how long a word from `peer` takes.
    pub(super) fn record(
        &mut self,
        change: LeaderChange,
        half_trip: impl Fn(NodeId) -> Option<u64>,
    ) {
        match change {
            LeaderChange::BecameLeader { reason, .. } | LeaderChange::Follows { reason, .. } => {
                self.why = Some(reason);
            }
            LeaderChange::SteppedDown { .. } | LeaderChange::ElectionStarted { .. } => {
                self.why = None;
            }
            // If that was only a gap, the same leader leads for the same reason.
            LeaderChange::LostContact { .. }
            | LeaderChange::LeaseLapsed { .. }
            | LeaderChange::LeaseResumed { .. } => {}
        }
        let dead_air_us = self.dead_air(change, half_trip);
        match change {
            LeaderChange::BecameLeader { .. } => {
                Counters::add(&self.counters.took_office, 1);
                self.seeking_since = None;
            }
            LeaderChange::LeaseResumed { .. } => self.seeking_since = None,
            _ => {}
        }
        let mut text = change.describe(&|id| self.name_of(id));
        if let Some(micros) = dead_air_us {
            text += &format!("; nobody led for {:.1} ms", micros as f64 / 1000.0);
        }
        self.journal.write(Line::Info(text.clone()));
        self.history.send_modify(|history| {
            let history = Arc::make_mut(history);
            if history.len() == HISTORY {
                history.remove(0);
            }
            let number = history.last().map_or(1, |last| last.number + 1);
            history.push(Entry { number, at_unix_ms: unix_ms(), change, text, dead_air_us });
        });
    }

    /// For how long nobody led, where this member can tell. When a leader handed over to it: from the word that it may
    /// stand, which the predecessor sent when it had given up its lease, to the lease; and the word's own way, if that has
    /// been measured. When its own lease lapsed and came back: from the one to the other.
    fn dead_air(
        &self,
        change: LeaderChange,
        half_trip: impl Fn(NodeId) -> Option<u64>,
    ) -> Option<u64> {
        let on_the_way = match change {
            LeaderChange::BecameLeader {
                reason: ElectionReason::Transferred { by, .. }, ..
            } => half_trip(by),
            LeaderChange::LeaseResumed { leader, .. } if leader == self.status.borrow().id => None,
            _ => return None,
        };
        let waited = Moment::now().since(self.seeking_since?).as_micros() as u64;
        Some(waited + on_the_way.unwrap_or_default())
    }

    /// What people call a member.
    fn name_of(&self, id: NodeId) -> String {
        let found = self.names.iter().find(|(member, _)| *member == id);
        found.map_or_else(|| id.to_string(), |(_, name)| name.clone())
    }
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
