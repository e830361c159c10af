//! More than one process of a member.
//!
//! Protocols with sessions distinguish the processes of a member: one is in the member's own slot, which operators take for
//! the member, the others are in further slots. A **replacement** moves the process to a vacant slot, where it runs on with
//! its disk and its timers, and starts one without a disk in its place. A **clone** is a process that starts from a copy of
//! the disk, in a vacant slot.
//!
//! # What a process counts as
//!
//! For claims about disks and steps each process is a member of its own: its term never falls, it votes once a term, and
//! it stores before it sends. The processes of a member may together vote twice in a term, because an old process that is
//! no longer met cannot be kept from voting. What counts is who is elected: two processes that lead in the same term are
//! two leaders, of one member or of two. With three members that is as strong as counting a member's votes once, since a
//! candidate that has counted the vote of one other member leads.
//!
//! A process that restarts with its disk is the same process. So is one that has lost its disk and rejoins in its own slot:
//! a second vote for another candidate in a term is then a violation.

use doyen_core::explore::Explore;

use super::step::{Act, Step};
use super::successors::Parts;
use super::{Model, Worker};
use crate::budget::Item;
use crate::search::space::Successors;

impl<P: Explore> Model<'_, P> {
    /// The slots of a member's processes, its own first.
    pub(super) fn processes_of(
        &self,
        worker: &Worker<P>,
        locals: &[u32],
        member: usize,
    ) -> impl Iterator<Item = usize> + use<P> {
        let further = self.context.members.len()..self.slots;
        let is_its = |slot: &usize| worker.locals[locals[*slot] as usize].member == Some(member);
        let its: Vec<usize> = further.filter(is_its).collect();
        std::iter::once(member).chain(its)
    }

    /// The first slot without a process.
    pub(super) fn vacant_slot(&self, worker: &Worker<P>, parts: &Parts<'_>) -> Option<usize> {
        let is_vacant = |&slot: &usize| worker.locals[parts.locals[slot] as usize].member.is_none();
        (self.context.members.len()..self.slots).find(is_vacant)
    }

    /// Adds the steps in which another process of a member starts.
    pub(super) fn add_processes(
        &self,
        worker: &mut Worker<P>,
        parts: &Parts<'_>,
        out: &mut Successors<Step>,
    ) {
        if self.vacant_slot(worker, parts).is_none() {
            return;
        }
        for member in 0..self.context.members.len() {
            let process = self.processes_of(worker, parts.locals, member).count() as u8;
            for (item, act) in [
                (Item::Replacement, Act::Replace { process }),
                (Item::Clone, Act::Clone { process }),
            ] {
                if parts.left(item) > 0 {
                    self.add(worker, parts, Step::new(member, act), None, out);
                }
            }
        }
    }
}
