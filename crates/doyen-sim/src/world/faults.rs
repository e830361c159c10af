//! What happens to the members from outside: elections that are called, the fault schedule and random faults.

use super::pause::Waiting;
use super::roster::Status;
use super::watch::rules;
use super::{AT_ONCE, Armed, Ending, Item, SCRIPT_RANK, Watch, World};
use crate::fault::{Action, ChaosKind, Disk, Place, Trigger};
use crate::metrics::Sight;
use crate::time::Time;
use crate::trace::EventKind;
use doyen_core::members::{Incarnation, NodeId};
use doyen_core::protocol::{AdminCommand, Effect, Effects, Event, Notice, Protocol, Refusal, Role};
use doyen_core::time::Span;

impl<P: Protocol> World<'_, '_, P> {
    /// Puts the fault schedule and the first random faults into the queue. Initiators that start at once do so now: a
    /// million events need not be queued for that.
    pub(super) fn schedule(&mut self, out: &mut Effects<P>) {
        let faults = self.setup.faults;
        for (fault, entry) in faults.iter().enumerate() {
            if let Trigger::Message { member, sent, kind, count: left } = &entry.when {
                let (member, kind) = (self.position(*member), self.kind_number(kind));
                self.watches.push(Watch { fault, member, sent: *sent, kind, left: *left });
            }
        }
        self.watched |= !self.watches.is_empty();
        for (id, at) in self.setup.initiators.iter() {
            let position = self.position(id);
            if at > Time::ZERO {
                self.later(at, Item::Campaign(position));
            } else {
                self.campaign(position, out);
                self.catch_up(out);
            }
        }
        for (number, fault) in faults.iter().enumerate() {
            if let Some(at) = fault.time() {
                self.later(at, Item::Fault(number));
            }
        }
        self.schedule_requests(out);
        for kind in ChaosKind::ALL {
            self.schedule_chaos(kind);
        }
    }

    /// The position of a member that a scenario names: a scenario names only members.
    fn position(&self, id: NodeId) -> u32 {
        self.setup.members.position(id).map_or(0, |position| position as u32)
    }

    /// The number of a kind of messages that a scenario names: a scenario names only kinds that exist.
    fn kind_number(&self, name: &str) -> usize {
        self.metrics.kinds.iter().position(|kind| kind.name == name).unwrap_or_default()
    }

    /// The present process of a member that a fault names.
    fn process(&self, id: NodeId) -> u32 {
        self.present(self.position(id))
    }

    /// Draws when the next fault of this kind happens.
    fn schedule_chaos(&mut self, kind: ChaosKind) {
        let Some(chaos) = self.setup.chaos else { return };
        let Some((mean, _)) = chaos.rate(kind) else { return };
        let at = self.now + Span::from_nanos(self.random.exponential(mean.as_nanos()).max(1));
        if at <= Time::ZERO + chaos.until.unwrap_or_default() {
            self.later(at, Item::Chaos(kind));
        }
    }

    pub(super) fn later(&mut self, at: Time, item: Item<P::Message, P::Timer>) {
        self.work += 1;
        self.queue.push(at.0, SCRIPT_RANK, item);
    }

    /// A random fault happens, and its end and the next one are drawn.
    pub(super) fn inject(&mut self, kind: ChaosKind) {
        let Some((_, mean)) = self.setup.chaos.and_then(|chaos| chaos.rate(kind)) else { return };
        let mean = mean.as_nanos();
        let last = u64::from(self.members.len()) - 1;
        let position = self.random.between(0, last) as u32;
        let member = self.present(position);
        let alive = self.members[member].status == Status::Up;
        match kind {
            ChaosKind::Crash if alive => {
                let down_for = self.random.exponential(mean);
                self.crash(member, false);
                let ending = Ending::Crash { member, life: self.life(member) };
                self.later(self.now + Span::from_nanos(down_for), Item::Over(ending));
            }
            ChaosKind::Pause if alive => {
                let span = self.random.exponential(mean);
                self.pause(member, span);
            }
            ChaosKind::Cut if last > 0 => {
                let other =
                    (position + 1 + self.random.between(0, last - 1) as u32) % self.members.len();
                let cut_for = self.random.exponential(mean);
                self.cut(position, other);
                let ending = Ending::Cut { from: position, to: other, era: self.network.era() };
                self.later(self.now + Span::from_nanos(cut_for), Item::Over(ending));
            }
            _ => {}
        }
        self.schedule_chaos(kind);
    }

    /// A random fault is over. Something else may have ended it earlier, and another fault may have begun.
    pub(super) fn end(&mut self, ending: &Ending, out: &mut Effects<P>) {
        match *ending {
            Ending::Crash { member, life } if life == self.life(member) => {
                self.restart(member, (Disk::Kept, Place::Same), None, out);
            }
            Ending::Cut { from, to, era } if era == self.network.era() => {
                self.mend(from, to);
            }
            Ending::Crash { .. } | Ending::Cut { .. } => {}
        }
    }

    /// The present life of a member, or its last one.
    pub(super) fn life(&self, member: u32) -> Incarnation {
        self.incarnations.get(&member).copied().unwrap_or(Incarnation(1))
    }

    /// Counts a message for the faults that wait for it. A member may be in the middle of its effects, so only a crash
    /// happens at once, because it cuts a broadcast short; every other fault happens when the effects are done.
    pub(super) fn count(&mut self, who: u32, was_sent: bool, which: usize) {
        let mut reached = Vec::new();
        let processes = &self.processes;
        self.watches.retain_mut(|watch| {
            if (processes.present(watch.member), watch.sent, watch.kind) != (who, was_sent, which) {
                return true;
            }
            watch.left -= 1;
            if watch.left == 0 {
                reached.push(watch.fault);
            }
            watch.left > 0
        });
        for fault in reached {
            match self.setup.faults[fault].what {
                Action::Crash { member, forwards, .. }
                    if self.members[self.process(member)].is_alive() =>
                {
                    self.crash(self.process(member), forwards);
                }
                _ => self.due.push_back(fault),
            }
        }
    }

    /// Executes the faults that became due in the middle of an event, now that the effects of the event are done.
    pub(super) fn catch_up(&mut self, out: &mut Effects<P>) {
        while let Some(fault) = self.due.pop_front() {
            self.perform(&self.setup.faults[fault].what, out);
        }
    }

    pub(super) fn perform(&mut self, action: &Action, out: &mut Effects<P>) {
        match *action {
            Action::Crash { member, forwards, guardian } => {
                let process = self.process(member);
                let left = guardian.and_then(|guardian| self.remains(process, guardian));
                self.crash(process, forwards);
                if let Some(left) = left {
                    self.guard(left);
                }
            }
            Action::Restart { member, disk, pace, place } => {
                self.restart(self.process(member), (disk, place), pace, out);
            }
            Action::Replace { member, disk, hung, place } => {
                self.replace(self.position(member), (disk, place), hung.as_nanos(), out);
            }
            Action::CopyDisk(member) => self.copy_disk(self.process(member)),
            Action::Pause { member, lasting } => {
                self.pause(self.process(member), lasting.as_nanos());
            }
            Action::Clock { member, rate_ppm, jump } => {
                self.set_clock(self.process(member), rate_ppm, jump.as_nanos());
            }
            Action::Cut { from, to } => self.cut(self.position(from), self.position(to)),
            Action::Mend { from, to } => self.mend(self.position(from), self.position(to)),
            Action::Partition { ref groups, ref old } => self.partition(groups, old),
            Action::LinkOverride(ref link) => {
                let rule = link.rule(|id| self.position(id), |name| self.kind_number(name));
                let text = rule
                    .in_words(|position| self.id(position), |kind| self.metrics.kinds[kind].name);
                self.network.disturb(rule);
                self.record(EventKind::Network { text });
            }
            Action::Heal => {
                self.network.heal();
                self.record(EventKind::Healed);
            }
            Action::Drop { ref kind } => {
                self.losses.push((self.now, self.kind_number(kind)));
                self.record(EventKind::Network { text: format!("the next {kind} is lost") });
            }
            Action::Campaign(member) => self.campaign(self.process(member), out),
            Action::Command { member, command } => self.command(self.process(member), command, out),
            // Every single change is scheduled as a command.
            Action::Attributes { .. } => {}
        }
    }

    fn cut(&mut self, from: u32, to: u32) {
        if self.network.cut(from, to) {
            self.record(EventKind::Cut { from: self.id(from), to: self.id(to) });
        }
    }

    fn mend(&mut self, from: u32, to: u32) {
        if self.network.mend(from, to) {
            self.record(EventKind::Mended { from: self.id(from), to: self.id(to) });
        }
    }

    /// Members that are not named are on a side of their own.
    fn partition(&mut self, groups: &[Vec<NodeId>], old: &[Vec<NodeId>]) {
        let numbered = |groups: &[Vec<NodeId>]| -> Vec<(u32, u32)> {
            let sides = groups.iter().zip(1..);
            let placed = |(ids, side): (&Vec<NodeId>, u32)| {
                ids.iter().map(|&id| (self.position(id), side)).collect::<Vec<_>>()
            };
            sides.flat_map(placed).collect()
        };
        let mut sides = vec![0; self.setup.members.len()];
        for (position, side) in numbered(groups) {
            sides[position as usize] = side;
        }
        let all = self.sides(&sides, &numbered(old));
        self.network.partition(all);
        let mut named = vec![Vec::new(); groups.len() + 1];
        for (position, &side) in (0..).zip(&sides) {
            named[side as usize].push(self.id(position));
        }
        named.retain(|group| !group.is_empty());
        named.sort();
        self.record(EventKind::Partitioned { groups: named });
    }

    fn command(&mut self, member: u32, command: AdminCommand, out: &mut Effects<P>) {
        let id = self.id(member);
        let told =
            |rules| EventKind::Commanded { member: id, command: format!("{command}"), rules };
        self.instruct(member, Event::Command(command), told, out);
    }

    /// Everything has been stopped that ran under the member's lease.
    pub(super) fn retire(&mut self, member: u32, out: &mut Effects<P>) {
        let id = self.id(member);
        self.instruct(
            member,
            Event::Retired,
            |rules| EventKind::Retired { member: id, rules },
            out,
        );
    }

    /// Handles an event of a member, and reports it to the observers.
    pub(super) fn instruct(
        &mut self,
        member: u32,
        event: Event<P::Message, P::Timer>,
        what: impl FnOnce(Vec<String>) -> EventKind,
        out: &mut Effects<P>,
    ) {
        match self.members[member].status {
            Status::Up => {}
            Status::Paused => return self.wait(member, Waiting::News(event)),
            Status::Dead | Status::Forwarding => return,
        }
        self.hand(member, event, out);
        if self.observer.is_some() {
            let rules = rules(out);
            self.record_of(member, what(rules));
        }
        self.act(member, AT_ONCE, out);
    }

    /// Hands an event to a member that is up, and reports a command to the monitor. For a leader that is not about to
    /// transfer leadership, the end of its work means nothing: its host may have meant an earlier leadership.
    pub(super) fn hand(
        &mut self,
        position: u32,
        event: Event<P::Message, P::Timer>,
        out: &mut Effects<P>,
    ) {
        let state = &mut self.members[position].protocol;
        let order = match event {
            Event::Command(command) => Some(command),
            _ => None,
        };
        if let Some(monitor) = &mut self.monitor {
            match event {
                Event::Retired if state.view().role == Role::Retiring => {
                    monitor.retired(position, state.view().term);
                }
                _ => {}
            }
        }
        state.handle(self.configs.of(position), event, out);
        // A member that rejoins has no algorithm above its session yet that could obey a command.
        let refused = Effect::Inform(Notice::Refused(Refusal::Rejoining));
        if let (Some(monitor), Some(order)) = (&mut self.monitor, order)
            && !(P::has_sessions(self.setup.config) && out.list().contains(&refused))
        {
            monitor.commanded(position, order);
        }
    }

    pub(super) fn campaign(&mut self, member: u32, out: &mut Effects<P>) {
        if self.members[member].status == Status::Paused {
            return self.wait(member, Waiting::Campaign);
        }
        let id = self.id(member);
        let told = |rules| EventKind::Campaign { member: id, rules };
        self.instruct(member, Event::Campaign, told, out);
    }

    pub(super) fn crash(&mut self, position: u32, forwards: bool) {
        let member = &mut self.members[position];
        member.status = if forwards { Status::Forwarding } else { Status::Dead };
        if std::mem::take(&mut member.leads) && !P::has_leases(self.setup.config) {
            self.metrics.reign_ends(self.now);
        }
        self.end_client(position, self.id(position));
        let (mut work, mut background) = (0, 0);
        self.armed.retain(|&(owner, timer), _| {
            let keep = owner != position;
            if !keep {
                *(if P::is_background(timer) { &mut background } else { &mut work }) += 1;
            }
            keep
        });
        self.work -= work;
        self.background -= background;
        self.metrics.fold(self.now, 0, position, Sight::Crashed);
        if let Some(monitor) = &mut self.monitor {
            monitor.crashed(self.now, position);
        }
        self.record_of(position, EventKind::Crashed { member: self.id(position), forwards });
        self.drop_backlog(position);
        self.publish_lease(position);
    }

    /// From now on the member's clock runs at `rate_ppm`, and it jumps ahead: armed timers are due sooner. The
    /// remaining wait of a timer runs at the new rate too; a timer that a pause holds up has been due since its time.
    fn set_clock(&mut self, position: u32, rate_ppm: u32, jump: u64) {
        let old = self.clocks.insert(position, rate_ppm).unwrap_or(1_000_000);
        let mut timers: Vec<(P::Timer, Armed)> = (self.armed.iter())
            .filter(|((owner, _), armed)| *owner == position && armed.due >= self.now)
            .map(|((_, timer), armed)| (*timer, *armed))
            .collect();
        timers.sort_unstable_by_key(|&(timer, armed)| (armed.due, timer));
        let (now, rate) = (self.now, u128::from(rate_ppm.max(1)));
        let moved = |due: Time| {
            let left = u128::from((due - now).as_nanos()) * u128::from(old) / 1_000_000;
            let left = u64::try_from(left).unwrap_or(u64::MAX).saturating_sub(jump);
            let real = u128::from(left) * 1_000_000 / rate;
            now + Span::from_nanos(u64::try_from(real).unwrap_or(u64::MAX))
        };
        for (timer, armed) in timers {
            self.disarm(position, timer);
            self.arm_at(position, timer, moved(armed.due), (armed.since, armed.wait));
        }
        // Programs that act under a lease use the same clock, even if its holder has stepped down.
        if let Some(monitor) = &mut self.monitor {
            monitor.clock_changed(now, position, &moved);
        }
        self.record_of(position, EventKind::Clock { member: self.id(position), rate_ppm, jump });
        self.publish_lease(position);
    }
}
