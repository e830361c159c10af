//! The intervals in which timers were armed.

use doyen_core::members::NodeId;
use doyen_sim::hash::FastMap;
use doyen_sim::render::describe::timer_name;
use doyen_sim::time::Time;
use serde::Serialize;

/// A timer from when it was armed until it fired or was disarmed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Timer {
    member: NodeId,
    name: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    background: bool,
    from: u64,
    due: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<u64>,
    /// The step that armed it.
    #[serde(skip)]
    by: usize,
}

/// The timers of a run.
#[derive(Debug, Default)]
pub(super) struct Timers {
    list: Vec<Timer>,
    armed: FastMap<(NodeId, String), usize>,
}

impl Timers {
    pub(super) fn arm(
        &mut self,
        (member, name): (NodeId, &str),
        background: bool,
        [from, due]: [Time; 2],
        by: usize,
    ) {
        self.close(member, name, from);
        self.armed.insert((member, name.to_owned()), self.list.len());
        let (name, from, due) = (timer_name(name).to_owned(), from.0, due.0);
        self.list.push(Timer { member, name, background, from, due, to: None, by });
    }

    /// The step that armed a timer.
    pub(super) fn armed_by(&self, member: NodeId, name: &str) -> Option<usize> {
        self.armed.get(&(member, name.to_owned())).map(|&timer| self.list[timer].by)
    }

    pub(super) fn close(&mut self, member: NodeId, name: &str, at: Time) {
        if let Some(timer) = self.armed.remove(&(member, name.to_owned())) {
            self.list[timer].to = Some(at.0);
        }
    }

    /// All timers of a member end when it crashes.
    pub(super) fn crash(&mut self, member: NodeId, at: Time) {
        let list = &mut self.list;
        self.armed.retain(|(owner, _), timer| {
            if *owner == member {
                list[*timer].to = Some(at.0);
            }
            *owner != member
        });
    }

    pub(super) fn finish(self) -> Vec<Timer> {
        self.list
    }
}
