//! What a scenario does to single messages.

use doyen_core::protocol::{Message, Protocol};

use super::{Delivery, World};
use crate::message::{Change, MessageName};

impl<P: Protocol> World<'_, '_, P> {
    /// Counts a message that is being sent, and says what is done to it.
    pub(super) fn change_of(&mut self, delivery: &Delivery<P::Message>) -> Option<Change> {
        let setup = self.setup;
        if setup.changes.is_empty() {
            return None;
        }
        let (to, kind) = (self.id(delivery.to), delivery.message.kind().name);
        let mut found = None;
        for (left, entry) in self.changes_left.iter_mut().zip(setup.changes) {
            let name = &entry.message;
            if *left > 0 && name.from == delivery.from && name.to == to && name.kind == kind {
                *left -= 1;
                found = found.or((*left == 0).then_some(entry.change));
            }
        }
        found
    }

    /// The messages that are to be changed and that nobody has sent.
    pub(super) fn never_sent(&self) -> Vec<MessageName> {
        let changes = self.changes_left.iter().zip(self.setup.changes);
        changes.filter(|(left, _)| **left > 0).map(|(_, entry)| entry.message.clone()).collect()
    }
}
