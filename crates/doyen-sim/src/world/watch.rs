//! Reports to the observer, which receives every event, to the monitor, which checks properties, and to the watcher that
//! may stop the run. Without them nothing here is executed.

use std::fmt;

use doyen_core::members::NodeId;
use doyen_core::protocol::{Class, Effects, Message, Notice, Protocol};

use super::process::is_final;
use super::{Delivery, World};
use crate::message::Change;
use crate::monitor::{Monitor, Sending};
use crate::network::Fate;
use crate::trace::{EventKind, Observer, TraceEvent};

/// The events between two reports of progress: a few milliseconds.
pub(super) const REPORT_EVERY: u64 = 1 << 14;

/// Is told from time to time how many events there have been; returns whether to continue.
pub type Progress<'o> = &'o mut (dyn FnMut(u64) -> bool + 'o);

/// The observers of a run. Nothing is computed for one that is absent.
#[derive(Default)]
pub struct Watchers<'o> {
    /// Receives every event.
    pub observer: Option<&'o mut dyn Observer>,
    /// Is told, from the very beginning, what the properties are about.
    pub monitor: Option<&'o mut (dyn Monitor + 'o)>,
    /// Receives progress, and may stop the run.
    pub progress: Option<Progress<'o>>,
}

impl fmt::Debug for Watchers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchers")
            .field("observer", &self.observer.is_some())
            .field("monitor", &self.monitor.is_some())
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

impl<P: Protocol> World<'_, '_, P> {
    /// Reports how many events there have been; returns whether to continue.
    #[cold]
    pub(super) fn report_progress(&mut self) -> bool {
        let events = self.metrics.events;
        self.next_check = (events + REPORT_EVERY).min(self.setup.event_limit);
        self.progress.as_mut().is_none_or(|progress| progress(events))
    }

    pub(super) fn inform(&mut self, position: u32, notice: Notice) {
        if self.observer.is_some()
            && let Some(event) = EventKind::of_notice(self.id(position), &notice)
        {
            self.record_of(position, event);
        }
        if P::has_sessions(self.setup.config)
            && is_final(&notice)
            && self.members[position].is_alive()
        {
            self.crash(position, false);
        }
    }

    /// Tells the observers that a live member has handled a message.
    #[cold]
    pub(super) fn watch_receipt(
        &mut self,
        id: u32,
        from: NodeId,
        to: u32,
        kind: usize,
        out: &Effects<P>,
    ) {
        if self.observer.is_some() {
            let name = self.metrics.kinds[kind].name.to_owned();
            let (to, rules) = (self.id(to), rules(out));
            self.record(EventKind::Received { id, from, to, kind: name, rules });
        }
        self.count(to, false, kind);
    }

    pub(super) fn record_sending(
        &mut self,
        delivery: &Delivery<P::Message>,
        fate: Fate,
        change: Option<Change>,
    ) {
        let &Delivery { from, to, id, ref message, .. } = delivery;
        let kind = message.kind();
        let (arrives, again) = match fate {
            Fate::Lost => (None, None),
            Fate::Arrives { at, again } => (Some(at), again),
        };
        self.record(EventKind::Sent {
            id,
            from,
            to: self.id(to),
            kind: kind.name.to_owned(),
            text: message.to_string(),
            class: kind.class,
            arrives,
            again,
            changed: change.map(Change::traced),
        });
    }

    pub(super) fn judge_sending(&mut self, sender: u32, delivery: &Delivery<P::Message>) {
        let &Delivery { from, to, ref message, .. } = delivery;
        let kind = message.kind();
        let sending = Sending {
            from,
            to: self.id(to),
            kind: kind.name,
            of_election: kind.class == Class::Algorithm,
            bytes: message.encoded_len(),
        };
        let pledge = message.commitments().pledge;
        if let Some(monitor) = &mut self.monitor {
            monitor.sent(self.now, sending);
            if let Some(pledge) = pledge {
                monitor.pledged(self.now, sender, to, pledge);
            }
        }
    }

    /// Shows an event to the observer, and forgets an observer that has seen enough.
    pub(super) fn record(&mut self, kind: EventKind) {
        if let Some(observer) = &mut self.observer {
            observer.observe(&TraceEvent { at: self.now, kind });
            if !observer.wants_more() {
                self.observer = None;
            }
        }
    }
}

/// The rules that fired.
pub(super) fn rules<P: Protocol>(out: &Effects<P>) -> Vec<String> {
    out.rules().iter().map(|&rule| rule.to_owned()).collect()
}
