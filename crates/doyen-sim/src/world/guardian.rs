//! Guardians: a leader has crashed, its machine lives, and its guardian there releases its lease.
//!
//! [`Remains`] decides when that may be, as on a real machine. The monitor is told when nothing relies on the lease any
//! more, whatever the guardian does.

use doyen_core::handover::{Duty, Remains, Work, last_messages};
use doyen_core::members::{NodeId, Term};
use doyen_core::protocol::Protocol;

use super::{AT_ONCE, Item, World};
use crate::fault::Guardian;
use crate::time::Time;
use crate::trace::EventKind;

/// A leader that has crashed, and whose guardian lives.
pub(super) struct Survived<M> {
    position: u32,
    term: Term,
    remains: Remains<Time>,
    /// When the job has ended, and the hooks have run.
    job_ends: Time,
    /// What is sent in its name; nothing once it has been sent.
    last_messages: Vec<(NodeId, M)>,
    rules: Vec<String>,
}

impl<P: Protocol> World<'_, '_, P> {
    /// What a leader with a lease leaves behind if it crashes now.
    pub(super) fn remains(
        &self,
        position: u32,
        guardian: Guardian,
    ) -> Option<Survived<P::Message>> {
        let member = &self.members[position];
        let lease = self.leases.get(&position).filter(|_| member.is_alive())?.until;
        if lease <= self.now {
            return None; // a paused leader may not have noticed
        }
        let out = last_messages(&member.protocol, self.configs.of(position));
        let rules = super::watch::rules(&out);
        let permit = lease.min(self.now + guardian.permit);
        Some(Survived {
            position,
            term: member.protocol.view().term,
            remains: Remains { lease, permit, job: Work::Due, hooks: Work::Due },
            job_ends: self.now + guardian.job,
            last_messages: out.into_messages().collect(),
            rules,
        })
    }

    /// The leader is dead. Its guardian checks at once, and whenever something has ended.
    pub(super) fn guard(&mut self, survived: Survived<P::Message>) {
        let number = self.survived.len();
        for at in [self.now, survived.job_ends, survived.remains.permit] {
            self.later(at, Item::Guardian(number));
        }
        self.survived.push(survived);
    }

    pub(super) fn look_after(&mut self, number: usize) {
        let (now, rules) = (self.now, self.setup.rules);
        let Survived { position, term, remains, job_ends, last_messages, .. } =
            &mut self.survived[number];
        let (position, term) = (*position, *term);
        if now >= *job_ends {
            (remains.job, remains.hooks) = (Work::Over, Work::Over);
        }
        let is_over = remains.job == Work::Over && now >= remains.permit;
        let releases = remains.duty(now, rules) == Duty::Release && !last_messages.is_empty();
        let last_messages = if releases { std::mem::take(last_messages) } else { Vec::new() };
        if let Some(monitor) = self.monitor.as_mut().filter(|_| is_over) {
            monitor.retired(position, term);
        }
        if !releases {
            return;
        }
        let (member, rules) = (self.id(position), std::mem::take(&mut self.survived[number].rules));
        self.record(EventKind::Released { member, rules });
        // The monitor is not told of messages that the member itself does not send: the member may run again by now, in a
        // later term or without its disk, and these messages do not bind it.
        let monitor = self.monitor.take();
        let seat = self.members.seat(position);
        for (to, message) in last_messages {
            self.send(position, seat, to, message, AT_ONCE);
        }
        self.monitor = monitor;
    }
}
