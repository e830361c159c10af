//! More than one process of a member.
//!
//! Where processes are told apart, a member may have several: one in its own slot, which its operator takes for the member,
//! and others in further slots. A **replacement** moves the process that was there to a vacant slot, where it runs on with
//! its disk and its timers, and starts one without a disk in its place. A **clone** is a process that is started from a copy
//! of the disk, in a vacant slot.
//!
//! # As what a process counts
//!
//! Each process is a member of its own to what is claimed about disks and steps: its term never falls, it votes once a
//! term, and it has stored what it says. A member's processes together may well vote twice in a term, because an old process
//! that nobody hears any more cannot be kept from voting. What counts is who is elected: two processes that lead in the
//! same term are two leaders, whether they are processes of two members or of one. With three members that says as much as
//! that a member's votes count once, since a candidate that has counted the vote of one other member leads.
//!
//! A process that restarts with its disk is the same process. One that has lost its disk and rejoins in its own slot is
//! the same as well: its second vote of a term breaks what is claimed, if it was for another.

use doyen_core::explore::Explore;

use super::hand::{Hand, Input};
use super::steps::{Happening, Parts};
use super::{Act, Machine, Step};
use crate::budget::Item;
use crate::space::Successors;

impl<P: Explore> Machine<'_, P> {
    /// The slots of a member's processes: its own first.
    pub(super) fn processes_of(
        &self,
        hand: &Hand<P>,
        locals: &[u32],
        member: usize,
    ) -> impl Iterator<Item = usize> + use<P> {
        let further = self.terms.members.len()..self.slots;
        let is_its = |slot: &usize| hand.locals[locals[*slot] as usize].member == Some(member);
        let its: Vec<usize> = further.filter(is_its).collect();
        std::iter::once(member).chain(its)
    }

    /// What happens when a message that lasts arrives at a process.
    pub(super) fn act_of_hearing(&self, flight: u32, slot: usize) -> Act {
        match self.is_further(slot) {
            true => Act::DoubleAt { flight, slot: slot as u8 },
            false => Act::Double(flight),
        }
    }

    /// Adds the steps by which another process of a member begins.
    pub(super) fn add_processes(
        &self,
        hand: &mut Hand<P>,
        parts: &Parts<'_>,
        out: &mut Successors<Step>,
    ) {
        let members = self.terms.members.len();
        let is_vacant = |&slot: &usize| hand.locals[parts.locals[slot] as usize].member.is_none();
        let Some(vacant) = (members..self.slots).find(is_vacant) else { return };
        for member in 0..members {
            let process = self.processes_of(hand, parts.locals, member).count() as u8;
            let name = member as u8;
            for (item, input, act) in [
                (Item::Replacement, Input::Replace(process), Act::Replace(name)),
                (Item::Clone, Input::Clone(process), Act::Clone(name)),
            ] {
                if parts.purse.left(item) > 0 {
                    let (landed, purse) = (None, parts.purse.spend(item));
                    let begins = Some(vacant);
                    let begin = Happening { member, input, act, landed, purse, begins };
                    self.happen(hand, parts, begin, out);
                }
            }
        }
    }
}
