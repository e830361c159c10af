//! Timers: armed, disarmed and fired, by the clock of the member that waits.

use doyen_core::protocol::{Effects, Event, Protocol};
use doyen_core::time::{Delay, Span};

use super::pause::Waiting;
use super::roster::Status;
use super::watch::rules;
use super::{AT_ONCE, Armed, Item, LEASE_RANK, TIMER_RANK, World, digest_of};
use crate::metrics::Sight;
use crate::time::Time;
use crate::trace::EventKind;

impl<P: Protocol> World<'_, '_, P> {
    pub(super) fn arm(&mut self, member: u32, timer: P::Timer, after: Delay, lag: Span) {
        self.disarm(member, timer);
        let wait = self.random.between(after.min.as_nanos(), after.max.as_nanos());
        let since = self.now + lag;
        let due = since + Span::from_nanos(self.by_clock(member, wait));
        self.arm_at(member, timer, due, (since, wait));
        if self.observer.is_some() {
            let (id, background) = (self.id(member), P::is_background(timer));
            let timer = format!("{timer:?}");
            self.record_of(member, EventKind::Armed { member: id, timer, background, due });
        }
    }

    pub(super) fn arm_at(
        &mut self,
        member: u32,
        timer: P::Timer,
        due: Time,
        (since, wait): (Time, u64),
    ) {
        self.armings = self.armings.wrapping_add(1);
        let arming = self.armings;
        self.armed.insert((member, timer), Armed { arming, due, since, wait });
        *self.ledger(timer) += 1;
        let rank = if P::is_lease(timer) { LEASE_RANK } else { TIMER_RANK };
        self.queue.push(due.0, rank, Item::Timer { member, arming, timer });
    }

    /// How long it really takes until a member's clock has counted `wait`.
    pub(super) fn by_clock(&self, member: u32, wait: u64) -> u64 {
        match self.clocks.get(&member) {
            None => wait,
            Some(&rate_ppm) => {
                let real = u128::from(wait) * 1_000_000 / u128::from(rate_ppm.max(1));
                u64::try_from(real).unwrap_or(u64::MAX)
            }
        }
    }

    /// Disarms a timer; returns whether it was armed.
    pub(super) fn disarm(&mut self, member: u32, timer: P::Timer) -> bool {
        let was_armed = self.armed.remove(&(member, timer)).is_some();
        if was_armed {
            *self.ledger(timer) -= 1;
        }
        was_armed
    }

    /// A member disarms its timer.
    pub(super) fn cancel(&mut self, member: u32, timer: P::Timer) {
        if self.disarm(member, timer) && self.observer.is_some() {
            let id = self.id(member);
            let timer = format!("{timer:?}");
            self.record_of(member, EventKind::Disarmed { member: id, timer });
        }
    }

    fn ledger(&mut self, timer: P::Timer) -> &mut u64 {
        if P::is_background(timer) { &mut self.background } else { &mut self.work }
    }

    pub(super) fn fire(
        &mut self,
        at: Time,
        member: u32,
        arming: u32,
        timer: P::Timer,
        out: &mut Effects<P>,
    ) {
        let current = self.armed.get(&(member, timer)).is_some_and(|armed| armed.arming == arming);
        if !current {
            return; // cancelled, armed again, or its member died
        }
        self.now = at;
        if self.members[member].status == Status::Paused {
            self.end_overdue_stay(member, timer);
            return self.wait(member, Waiting::Timer { arming, timer });
        }
        self.disarm(member, timer);
        self.metrics.witness(at, 0, member, Sight::Fired(digest_of(timer)));
        let state = &mut self.members[member].protocol;
        state.handle(self.configs.of(member), Event::Timer(timer), out);
        if self.observer.is_some() {
            let (id, background, rules) = (self.id(member), P::is_background(timer), rules(out));
            let timer = format!("{timer:?}");
            self.record_of(member, EventKind::Fired { member: id, timer, background, rules });
        }
        self.act(member, AT_ONCE, out);
    }
}
