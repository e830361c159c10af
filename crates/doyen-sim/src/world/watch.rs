//! Telling those who watch: the observer, who is shown everything, and the monitor, who judges. Without either nothing here
//! is done.

use doyen_core::members::NodeId;
use doyen_core::protocol::{Class, Effects, Message, Notice, Protocol};

use super::process::is_final;
use super::{Delivery, World};
use crate::monitor::Sending;
use crate::network::Fate;
use crate::trace::{EventKind, TraceEvent};

impl<P: Protocol> World<'_, '_, P> {
    pub(super) fn inform(&mut self, position: u32, notice: Notice) {
        if self.observer.is_some()
            && let Some(event) = EventKind::of_notice(self.id(position), &notice)
        {
            self.record_of(position, event);
        }
        if P::has_sessions() && is_final(&notice) && self.members[position].is_alive() {
            self.crash(position, false);
        }
    }

    /// Tells those who watch that a live member has handled a message.
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

    pub(super) fn record_sending(&mut self, delivery: &Delivery<P::Message>, fate: Fate) {
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
        });
    }

    pub(super) fn judge_sending(&mut self, sender: u32, delivery: &Delivery<P::Message>) {
        let &Delivery { from, to, ref message, .. } = delivery;
        let kind = message.kind();
        let sending = Sending {
            from,
            to: self.id(to),
            kind: kind.name,
            of_election: kind.class == Class::Election,
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
