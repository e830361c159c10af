//! Changes of single messages by a scenario.

use doyen_core::protocol::{Message, Protocol};

use super::{Delivery, World};
use crate::message::Change;

impl<P: Protocol> World<'_, '_, P> {
    /// Counts a message that is being sent, and says what is done to it.
    pub(super) fn change_of(&mut self, delivery: &Delivery<P::Message>) -> Option<Change> {
        let setup = self.setup;
        if setup.changes.is_empty() && self.losses.is_empty() {
            return None;
        }
        let number = P::kind_index(setup.config, &delivery.message);
        let (to, kind) = (self.id(delivery.to), delivery.message.kind().name);
        let mut found = None;
        for (left, entry) in self.changes_left.iter_mut().zip(setup.changes) {
            let name = &entry.message;
            if *left > 0 && name.from == delivery.from && name.to == to && name.kind == kind {
                *left -= 1;
                found = found.or((*left == 0).then_some(entry.change));
            }
        }
        // A change of this very message comes first, and uses up no other change.
        found.or_else(|| {
            let loss = self.losses.iter().position(|&(_, kind)| kind == number)?;
            self.losses.remove(loss);
            Some(Change::Drop)
        })
    }

    /// The messages that are to be changed and that no member has sent: `6:1:OK`, or `OK@7ms` for the next one of a
    /// kind.
    pub(super) fn never_sent(&self) -> Vec<String> {
        let changes = self.changes_left.iter().zip(self.setup.changes);
        let single = changes.filter(|(left, _)| **left > 0).map(|(_, it)| it.message.to_string());
        let kinds = &self.metrics.kinds;
        let next = self.losses.iter().map(|&(at, kind)| format!("{}@{at}", kinds[kind].name));
        single.chain(next).collect()
    }
}
