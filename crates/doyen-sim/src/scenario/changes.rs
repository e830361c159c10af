//! Checks the changes of single messages in a scenario.

use doyen_core::members::Members;
use doyen_core::protocol::Kind;

use super::parse::{Result, kind, member};
use super::{Scenario, ScenarioError};
use crate::message::{Change, MessageChange, MessageName};

impl Scenario {
    /// The changes of single messages, each of which is named once.
    pub(super) fn resolve_changes(
        &self,
        members: &Members,
        kinds: &[Kind],
    ) -> Result<Vec<MessageChange>> {
        let drop = self.drop.iter().map(|message| ("drop", message, Change::Drop));
        let late = self.late.iter().map(|it| ("late", &it.message, Change::Delay(it.by)));
        let twice = self.twice.iter().map(|it| ("twice", &it.message, Change::Double(it.after)));
        let mut changes: Vec<MessageChange> = Vec::new();
        for (key, message, change) in drop.chain(late).chain(twice) {
            check_name(members, kinds, key, message)?;
            if changes.iter().any(|other| other.message == *message) {
                let problem =
                    format!("{message} has two changes; drop, late and twice may name it once");
                return Err(ScenarioError::new(key, problem));
            }
            changes.push(MessageChange { message: message.clone(), change });
        }
        Ok(changes)
    }
}

fn check_name(members: &Members, kinds: &[Kind], key: &str, message: &MessageName) -> Result<()> {
    member(members, key, message.from.0)?;
    member(members, key, message.to.0)?;
    if message.from == message.to {
        let problem = format!("{message}: {} sends itself nothing; name two members", message.to);
        return Err(ScenarioError::new(key, problem));
    }
    kind(kinds, key, &message.kind).map(drop)
}
