//! Members that restart, and the state of their disks.

use std::rc::Rc;

use doyen_core::ledger::Stored;
use doyen_core::members::Incarnation;
use doyen_core::protocol::{Durable, Effects, Event, Protocol};

use super::roster::Status;
use super::watch::rules;
use super::{AT_ONCE, World};
use crate::fault::{Disk, PaceOverride, Place};
use crate::metrics::Sight;
use crate::trace::EventKind;

impl<P: Protocol> World<'_, '_, P> {
    /// Restarts a member that is down: with what is left of its disk, and with another timing if one is given.
    pub(super) fn restart(
        &mut self,
        position: u32,
        (disk, place): (Disk, Place),
        pace: Option<PaceOverride>,
        out: &mut Effects<P>,
    ) {
        if self.members[position].is_alive() {
            return;
        }
        let id = self.id(position);
        if let (Some(pace), Some(with_pace)) = (pace, self.setup.with_pace) {
            let config = with_pace(self.configs.of(position), id, pace);
            self.configs.others.insert(position, Rc::new(config));
        }
        let disk = self.mount(position, disk);
        self.relocate(position, place);
        let boot = self.boot(position, self.origin(position));
        let protocol = P::start(id, self.configs.of(position), boot, out);
        let view = protocol.view();
        let member = &mut self.members[position];
        member.protocol = protocol;
        member.status = Status::Up;
        if self.observer.is_some() {
            let rules = rules(out);
            self.record(EventKind::Restarted {
                member: id,
                disk: !matches!(disk, Disk::Lost | Disk::New),
                rules,
            });
        }
        self.metrics.fold(self.now, 0, position, Sight::Restarted);
        if let Some(monitor) = &mut self.monitor {
            let stored = Stored::on(self.disks.get(&position));
            monitor.restarted(self.now, position, disk, stored);
            if let (Disk::Restored, Some(disk)) = (disk, self.disks.get(&position)) {
                monitor.drain_stored(position, disk.is_drained());
            }
        }
        self.announce(position, view);
        self.act(position, AT_ONCE, out);
        if self.setup.dead_known && self.setup.dead.contains(&position) {
            // If all members were told that it was dead, they must be told that it is back.
            for peer in (0..self.members.len()).filter(|&peer| peer != position) {
                self.tell(self.present(peer), Event::PeerUp(id), out);
            }
        }
    }

    /// Changes the disk of a member as the fault says; returns the resulting state.
    fn mount(&mut self, position: u32, disk: Disk) -> Disk {
        let another = self.another_rejoins(position);
        match disk {
            Disk::Lost => {}
            Disk::LostUnlessAnother if !another => {}
            Disk::Restored => return self.restore(position),
            Disk::New => {
                self.disks.remove(&position);
                self.diskless.remove(&position);
                self.incarnations.insert(position, Incarnation(0));
                return Disk::New;
            }
            Disk::Kept | Disk::LostUnlessAnother => return Disk::Kept,
        }
        self.disks.remove(&position);
        self.diskless.insert(position);
        if P::has_sessions(self.setup.config) {
            // The number of the life is on the disk too.
            self.incarnations.insert(position, Incarnation(0));
        }
        Disk::Lost
    }

    /// Restores the disk from its last copy. The number of the life is on it too.
    fn restore(&mut self, position: u32) -> Disk {
        let owner = self.processes.owner(position);
        let Some((life, copy)) = self.copies.get(&owner).cloned() else { return Disk::Kept };
        self.incarnations.insert(position, life);
        match copy {
            Some(copy) => {
                match copy.is_rejoining() {
                    true => self.diskless.insert(position),
                    false => self.diskless.remove(&position),
                };
                self.disks.insert(position, copy);
                Disk::Restored
            }
            None => {
                self.disks.remove(&position);
                Disk::Restored
            }
        }
    }

    /// A copy of a member's disk is made.
    pub(super) fn copy_disk(&mut self, position: u32) {
        let life = self.life(position);
        let owner = self.processes.owner(position);
        self.copies.insert(owner, (life, self.disks.get(&position).cloned()));
        let note = "its disk is copied".to_owned();
        self.record(EventKind::Noted { member: self.id(position), note });
    }
}
