//! Members that come up again, and what has become of their disks meanwhile.

use doyen_core::algorithm::quorum::settings::Pace;
use doyen_core::members::Incarnation;
use doyen_core::protocol::{Boot, Durable, Effects, Event, Origin, Protocol};

use super::roster::Status;
use super::watch::rules;
use super::{AT_ONCE, World};
use crate::account::Sight;
use crate::fault::Disk;
use crate::record::What;

impl<P: Protocol> World<'_, '_, P> {
    /// Comes up again, if it is down: with what is left of its disk, and with another pace if one is given.
    pub(super) fn restart(
        &mut self,
        position: u32,
        disk: Disk,
        pace: Option<Pace>,
        out: &mut Effects<P>,
    ) {
        if self.members[position].is_alive() {
            return;
        }
        let id = self.id(position);
        if let (Some(pace), Some(with_pace)) = (pace, self.setup.with_pace) {
            let config = with_pace(self.configs.of(position), id, pace);
            self.configs.others.insert(position, config);
        }
        let disk = self.mount(position, disk);
        let incarnation = self.incarnations.entry(position).or_insert(Incarnation(1));
        incarnation.0 += 1;
        // One that crashes before it has stored anything again has lost its disk still.
        let origin = match self.diskless.contains(&position) {
            true => Origin::Rejoining,
            false => Origin::Joining,
        };
        let boot = Boot::new(*incarnation, self.disks.get(&position).cloned(), origin);
        let protocol = P::start(id, self.configs.of(position), boot, out);
        let view = protocol.view();
        let member = &mut self.members[position];
        member.protocol = protocol;
        member.status = Status::Up;
        if self.observer.is_some() {
            let rules = rules(out);
            self.record(What::Restarted { member: id, disk: disk != Disk::Lost, rules });
        }
        self.books.fold(self.now, 0, position, Sight::Restarted);
        if let Some(oracle) = &mut self.oracle {
            let stored = self.disks.get(&position).map(|disk| (disk.term(), disk.vote()));
            oracle.saw_restart(self.now, position, disk, stored);
        }
        self.announce(position, view);
        self.act(position, AT_ONCE, out);
        if self.setup.dead_known && self.setup.dead.contains(&position) {
            // Who told everybody that it was dead must tell them that it is back.
            for peer in (0..self.members.len()).filter(|&peer| peer != position) {
                self.tell(peer, Event::PeerUp(id), out);
            }
        }
    }

    /// Makes the disk of a member what it is after this; says what that comes to.
    fn mount(&mut self, position: u32, disk: Disk) -> Disk {
        let another = self.diskless.iter().any(|&other| other != position);
        match disk {
            Disk::Lost => {}
            Disk::LostUnlessAnother if !another => {}
            Disk::Restored => return self.restore(position),
            Disk::Kept | Disk::LostUnlessAnother => return Disk::Kept,
        }
        self.disks.remove(&position);
        self.diskless.insert(position);
        Disk::Lost
    }

    /// The disk is what it was when the last copy of it was made. The number of the life is on it too.
    fn restore(&mut self, position: u32) -> Disk {
        let Some((life, copy)) = self.copies.get(&position).cloned() else { return Disk::Kept };
        self.incarnations.insert(position, life);
        match copy {
            Some(copy) => {
                self.disks.insert(position, copy);
                self.diskless.remove(&position);
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
        self.copies.insert(position, (life, self.disks.get(&position).cloned()));
        let note = "its disk is copied".to_owned();
        self.record(What::Noted { member: self.id(position), note });
    }
}
