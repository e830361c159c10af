//! What the loop publishes: the leadership state, the status, the history.
//!
//! The loop writes, and every other thread reads through channels that keep only the latest value, so no reader can block
//! the loop.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use doyen_core::change::{ElectionReason, LeaderChange, TransferReason};
use doyen_core::members::{Incarnation, NodeId, Term};
use doyen_core::protocol::{Role, View};
use doyen_core::time::Span;
use tokio::sync::{mpsc, watch};

use super::counters::Counters;
use super::history;
use super::inbox::{self, Inbox};
use super::log::{LogLine, Logger};
use super::relay::{self, Relayed};
use super::status::{Entry, Job, Status};
use crate::clock::{Moment, unix_ms};
use crate::config::Settings;
use crate::guardian::lease_file::{Lease, LeaseFile};
use crate::guardian::{Datagram, Handover};
use crate::leadership::{LeadershipState, Permits};

/// How often a leader that is about to transfer leadership looks whether a program still holds a lock on the lease file.
const LOOK_AGAIN: Span = Span::from_millis(2);

/// The loop's side of the channels.
#[derive(Debug)]
pub(super) struct Channels {
    pub(super) leadership: watch::Sender<LeadershipState>,
    pub(super) permits: Permits,
    pub(super) status: watch::Sender<Arc<Status>>,
    pub(super) history: watch::Sender<Arc<Vec<Entry>>>,
    pub(super) counters: Arc<Counters>,
    pub(super) relayed: mpsc::Sender<Relayed>,
    /// What is shown of what runs under the lease.
    pub(super) job: watch::Receiver<Job>,
}

/// The readers' side of the channels.
#[derive(Clone, Debug)]
pub(super) struct Subscription {
    pub(super) leadership: watch::Receiver<LeadershipState>,
    pub(super) permits: Permits,
    pub(super) status: watch::Receiver<Arc<Status>>,
    pub(super) history: watch::Receiver<Arc<Vec<Entry>>>,
    pub(super) counters: Arc<Counters>,
    pub(super) relayed: Inbox<Relayed>,
    pub(super) job: watch::Sender<Job>,
}

/// Both sides, with `status` as the first snapshot.
pub(super) fn channels(status: Status) -> (Channels, Subscription) {
    let (leadership, leadership_reader) = watch::channel(LeadershipState::default());
    let (status, status_reader) = watch::channel(Arc::new(status));
    let (history, history_reader) = watch::channel(Arc::default());
    let (counters, permits) = (Arc::<Counters>::default(), Permits::default());
    let (relayed, inbox) = inbox::channel(relay::WAITING);
    let (job, job_reader) = watch::channel(Job::default());
    let subscription = Subscription {
        leadership: leadership_reader,
        permits: permits.clone(),
        status: status_reader,
        history: history_reader,
        counters: Arc::clone(&counters),
        relayed: inbox,
        job,
    };
    let channels =
        Channels { leadership, permits, status, history, counters, relayed, job: job_reader };
    (channels, subscription)
}

/// Publishes what the loop knows, and writes the log.
#[derive(Debug)]
pub(super) struct Publisher {
    channels: Channels,
    settings: Arc<Settings>,
    pub(super) log: Logger,
    /// Since when this member has been a candidate without a lease.
    candidate_since: Option<Moment>,
    /// Since when this member has been about to transfer leadership.
    retiring_since: Option<Moment>,
    /// Writes the history to disk.
    writer: Option<history::file::Writer>,
    /// The leader that was known last, its term, and when it was last known to lead.
    last_leader: Option<(NodeId, Term, Moment)>,
    /// Why the current leader leads.
    reason: Option<ElectionReason>,
    /// Where programs of this machine read the lease, and what was written there last.
    lease_file: Option<LeaseFile>,
    written_lease: Option<Lease>,
    /// The deadline that the lease file showed last, if it shows no lease because of a transfer.
    closed_lease: Option<Moment>,
    /// What the guardian does if this process dies.
    handover: Option<Handover>,
}

impl Publisher {
    pub(super) fn new(
        settings: Arc<Settings>,
        log: Logger,
        lease_file: Option<LeaseFile>,
        handover: Option<Handover>,
    ) -> io::Result<(Self, Subscription)> {
        let (channels, subscription) = channels(Status::initial(&settings));
        if let Some(handover) = &handover {
            channels.permits.share(handover.try_clone()?);
        }
        let publisher = Self {
            channels,
            settings,
            log,
            candidate_since: None,
            retiring_since: None,
            writer: None,
            last_leader: None,
            reason: None,
            lease_file,
            written_lease: None,
            closed_lease: None,
            handover,
        };
        Ok((publisher, subscription))
    }

    /// Passes a packet on. One that finds no place is like one that is lost.
    pub(super) fn relay(&self, relayed: Relayed) {
        let _ = self.channels.relayed.try_send(relayed);
    }

    /// Continues the history of earlier starts, and writes it to `folder` from now on.
    pub(super) fn keep_history(&mut self, folder: PathBuf) -> io::Result<history::file::Written> {
        let earlier = history::file::load(&folder, &self.log);
        self.channels.history.send_replace(Arc::new(earlier));
        let entries = self.channels.history.subscribe();
        let (writer, written) = history::file::Writer::start(folder, entries, self.log.clone())?;
        self.writer = Some(writer);
        Ok(written)
    }

    /// As text: why the history cannot be written. None if it can.
    pub(super) fn history_problem(&self) -> Option<String> {
        self.writer.as_ref().and_then(history::file::Writer::problem)
    }

    /// Whether a guardian watches this node.
    pub(super) fn is_guarded(&self) -> bool {
        self.handover.is_some()
    }

    /// From now on a guardian watches this node, which has this lease.
    pub(super) fn guard(
        &mut self,
        lease_file: Option<LeaseFile>,
        handover: Handover,
        lease: Option<Lease>,
    ) -> io::Result<()> {
        self.channels.permits.share(handover.try_clone()?);
        self.handover = Some(handover);
        if let Some(file) = lease_file {
            (self.lease_file, self.written_lease) = (Some(file), None);
            self.write_lease(lease);
        }
        Ok(())
    }

    /// Gives the guardian what it sends if this process dies. If that fails, it must send nothing older.
    /// Returns whether it has.
    pub(super) fn prepare_handover(&mut self, datagrams: &[Datagram]) -> bool {
        let Some(handover) = &self.handover else { return true };
        let prepared = handover.prepare(datagrams);
        if let Err(error) = &prepared {
            let text =
                format!("a crash would cost a lease: cannot write for the guardian: {error}");
            self.log.write(LogLine::warning("handover", text));
        }
        prepared.is_ok()
    }

    /// The node fails: its lease stays as it is published, for the guardian to release.
    pub(super) fn leave_lease_to_guardian(&mut self) {
        if let Some(file) = self.lease_file.as_mut().filter(|_| self.handover.is_some()) {
            file.leave();
        }
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.channels.counters
    }

    /// The latest deadline of the permits that were given.
    pub(super) fn last_permit(&self) -> Moment {
        self.channels.permits.last_deadline()
    }

    /// Whether work runs that a transfer waits for.
    pub(super) fn has_work(&self) -> bool {
        self.channels.permits.has_work()
    }

    /// Since when such work has run, if it does.
    pub(super) fn work_since(&self) -> Option<Moment> {
        self.channels.permits.work_since()
    }

    /// Since when this member has been about to transfer leadership, if it is.
    pub(super) fn retiring_since(&self) -> Option<Moment> {
        self.retiring_since
    }

    /// What is shown of what runs under the lease.
    pub(super) fn job(&self) -> Job {
        self.channels.job.borrow().clone()
    }

    /// Publishes the view and the deadline of the lease. Every later read returns these. `known_at`: when what led to this view
    /// may have been known at the earliest.
    pub(super) fn announce(
        &mut self,
        view: View,
        lease_deadline: Option<Moment>,
        known_at: Moment,
    ) {
        let View { leader, term, role, .. } = view;
        match role {
            Role::Candidate => {
                self.candidate_since.get_or_insert_with(Moment::now);
            }
            Role::Follower => self.candidate_since = None,
            Role::Leader | Role::Retiring => {}
        }
        match role {
            Role::Retiring => {
                self.retiring_since.get_or_insert_with(Moment::now);
            }
            Role::Leader | Role::Follower | Role::Candidate => {
                (self.closed_lease, self.retiring_since) = (None, None);
            }
        }
        if let Some(leader) = leader {
            self.last_leader = Some((leader, term, known_at));
        }
        let state = LeadershipState { leader, term, role: Some(role), lease_deadline };
        self.write_lease(lease_deadline.map(|deadline| Lease { deadline, term: term.0 }));
        self.channels.leadership.send_if_modified(|last| std::mem::replace(last, state) != state);
    }

    /// The leader that was known last, its term, and when it was last known to lead.
    pub(super) fn last_leader(&self) -> Option<(NodeId, Term, Moment)> {
        self.last_leader
    }

    /// Publishes that there is no lease. Every later read returns this, whatever else is announced.
    pub(super) fn withdraw_lease(&mut self) {
        self.write_lease(None);
        self.channels.leadership.send_if_modified(|state| state.lease_deadline.take().is_some());
    }

    /// Shows no lease in the lease file until the transfer is over or given up, and looks whether a program holds a lock on
    /// the file: it acts under the lease that the file showed. Returns when to look again; none if no program does, or that
    /// lease is over.
    pub(super) fn close_lease_file(&mut self) -> Option<Moment> {
        let shown = self.written_lease.map_or_else(Moment::default, |lease| lease.deadline);
        let deadline = *self.closed_lease.get_or_insert(shown);
        self.write_lease(None);
        // If it could not be written, a program may still begin to act.
        let is_in_use = self.written_lease.is_some()
            || self.lease_file.as_ref().is_some_and(LeaseFile::is_in_use);
        let now = Moment::now();
        (is_in_use && now < deadline).then(|| now.after(LOOK_AGAIN).min(deadline))
    }

    /// Publishes the lease in the lease file. If that fails, readers see the last lease, which ends: they fail closed.
    fn write_lease(&mut self, lease: Option<Lease>) {
        let lease = lease.filter(|_| self.closed_lease.is_none());
        let Some(file) = self.lease_file.as_mut().filter(|_| self.written_lease != lease) else {
            return;
        };
        match file.publish(lease) {
            Ok(()) => self.written_lease = lease,
            Err(error) => {
                let text =
                    format!("cannot write the lease file {}: {error}", file.path().display());
                self.log.write(LogLine::warning("lease-file", text));
            }
        }
    }

    pub(super) fn publish(&self, status: Status) {
        let status = Status { taken_at: Moment::now(), ..status };
        self.channels.status.send_replace(Arc::new(status));
    }

    /// Why the current leader leads, as text.
    pub(super) fn reason(&self) -> Option<String> {
        let reason = self.reason.filter(|_| self.channels.leadership.borrow().leader.is_some())?;
        Some(reason.describe(&|id| self.settings.name_of(id).to_owned()))
    }

    /// Adds a change of leadership to the history and the log. `one_way_us`: how long a message from a member takes.
    pub(super) fn record(
        &mut self,
        change: LeaderChange,
        incarnation: Incarnation,
        circumstance: &history::Circumstance,
        one_way_us: impl Fn(NodeId) -> Option<u64>,
    ) {
        let now = Moment::now();
        if let (LeaderChange::LeaseLapsed { .. }, Some(ended)) = (change, circumstance.lease_ended)
        {
            // This process may have been stopped then.
            self.candidate_since = Some(ended);
        }
        match change {
            LeaderChange::BecameLeader { reason, .. } | LeaderChange::Follows { reason, .. } => {
                self.reason = Some(reason);
            }
            LeaderChange::SteppedDown { .. }
            | LeaderChange::LeaderLeft { .. }
            | LeaderChange::ElectionStarted { .. } => {
                self.reason = None;
            }
            // If this is only a gap, the same leader continues for the same reason.
            LeaderChange::LostContact { .. }
            | LeaderChange::LeaseLapsed { .. }
            | LeaderChange::LeaseResumed { .. }
            | LeaderChange::RegainedContact { .. } => {}
        }
        let downtime_us = self.downtime_us(change, now, one_way_us);
        self.count(change, downtime_us, circumstance.predecessor_heard, now);
        let campaigned = |since| now.since(since).as_micros() as u64;
        let campaign_us = match change {
            LeaderChange::BecameLeader { .. } => self.candidate_since.map(campaigned),
            _ => None,
        };
        if let LeaderChange::BecameLeader { .. } | LeaderChange::LeaseResumed { .. } = change {
            self.candidate_since = None;
        }
        let name = |id| self.settings.name_of(id).to_owned();
        let mut text = change.describe(&name);
        text += &circumstance.describe(change, self.settings.me, now);
        text += &downtime_us.map(history::downtime).unwrap_or_default();
        let fields = history::log_line(change, self.settings.me, &name);
        self.log.write(LogLine { text: text.clone(), downtime_us, ..fields });
        self.channels.history.send_modify(|history| {
            let history = Arc::make_mut(history);
            if history.len() >= history::KEPT {
                history.remove(0);
            }
            let number = history.last().map_or(1, |last| last.number + 1);
            let (at_unix_ms, at_boot_us) = (unix_ms(), now.as_nanos() / 1000);
            history.push(Entry {
                number,
                at_unix_ms,
                at_boot_us,
                change,
                text,
                incarnation,
                downtime_us,
                campaign_us,
            });
        });
        if let Some(writer) = &self.writer {
            writer.wake();
        }
    }

    /// Counts a change of leadership for the metrics, and how long no lease was valid before one of this member began. Where
    /// that is not known, it is no longer than the time since the predecessor was last heard.
    fn count(
        &self,
        change: LeaderChange,
        downtime_us: Option<u64>,
        predecessor_heard: Option<Moment>,
        now: Moment,
    ) {
        let counters = self.counters();
        if let LeaderChange::BecameLeader { .. } | LeaderChange::Follows { .. } = change {
            Counters::add(&counters.leader_changes, 1);
        }
        let at_most = match change {
            LeaderChange::BecameLeader { .. } => predecessor_heard.map(|heard| now.since(heard)),
            _ => None,
        };
        if let Some(downtime) = downtime_us.map(Duration::from_micros).or(at_most) {
            counters.downtime.observe(downtime);
        }
    }

    /// How long no lease was valid, where this member knows it. After a transfer to this member: from the message that
    /// lets it campaign, which the predecessor sent when it had given up its lease, until the new lease, plus the time
    /// that the message took, if that has been measured. After a gap of its own lease: from the lapse to the return.
    fn downtime_us(
        &self,
        change: LeaderChange,
        now: Moment,
        one_way_us: impl Fn(NodeId) -> Option<u64>,
    ) -> Option<u64> {
        let in_transit = match change {
            // The crash itself was earlier than anything that this member knows.
            LeaderChange::BecameLeader {
                reason: ElectionReason::Transferred { reason: TransferReason::Crashed, .. },
                ..
            } => return None,
            LeaderChange::BecameLeader {
                reason: ElectionReason::Transferred { by, .. }, ..
            } => one_way_us(by),
            LeaderChange::LeaseResumed { .. } => None,
            _ => return None,
        };
        let waited = now.since(self.candidate_since?).as_micros() as u64;
        Some(waited + in_transit.unwrap_or_default())
    }
}
