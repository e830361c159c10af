//! What the loop does for the groups of this member ([`GroupHost`](super::super::groups::GroupHost)).

use std::time::Duration;

use doyen_core::group;
use doyen_core::group::rider::{Body, Rider};
use doyen_core::members::{NodeId, SessionId};
use doyen_core::protocol::{Protocol as _, View};
use doyen_core::time::Span;

use super::super::groups::{GroupHost, LeaseAt};
use super::super::inspect::is_drained;
use super::Host;
use crate::clock::Moment;

impl Host {
    /// Whether groups that it led have not been taken over yet.
    pub(super) fn hands_over_groups(&self) -> bool {
        let has_leader = self.member.view().leader.is_some();
        self.groups.as_ref().is_some_and(|groups| !groups.is_over(has_leader))
    }

    /// How long a member that does not lead waits for its groups to be taken over: until a new leader grants, and a lease.
    pub(super) fn longest_handover(&self) -> Duration {
        let lease = self.settings.groups.as_ref().map_or(Span::ZERO, |groups| groups.lock.expiry());
        Duration::from_nanos((lease * 2).as_nanos())
    }

    /// The term in which this member leads, if its lease is valid at this moment.
    pub(super) fn leased_term(&self) -> LeaseAt {
        let at = Moment::now();
        let is_valid = self.lease_deadline().is_some_and(|deadline| at < deadline);
        LeaseAt { at, term: is_valid.then(|| self.member.view().term) }
    }

    /// Tells the groups what has changed. A member that leads keeps its groups until its successor can grant them.
    pub(super) fn follow_with_groups(&mut self) {
        if self.groups.is_none() {
            return;
        }
        let lease = self.leased_term();
        let is_drained = || self.member.inner().is_some_and(|node| is_drained(node.inner()));
        let willing = self.member.view().role.leads()
            || !(self.settings.own().witness || self.ends_by.is_some() || is_drained());
        if let Some(groups) = &mut self.groups {
            groups.follow(lease, willing);
        }
    }

    /// Hands the groups what those of another member say. Only the leader that this member follows answers.
    pub(super) fn handle_rider(&mut self, from: NodeId, session: SessionId, rider: Rider) {
        let View { leader, term, .. } = self.member.view();
        if matches!(rider.body, Body::Answers(_)) && (leader, term) != (Some(from), rider.term) {
            return;
        }
        let lease = self.leased_term();
        if let Some(groups) = &mut self.groups {
            groups.handle(lease, group::Event::Rider { from, session, rider });
        }
    }

    /// Sends what does not wait for a heartbeat.
    pub(super) fn send_riders(&mut self) {
        let riders = self.groups.as_mut().map(GroupHost::take_riders).unwrap_or_default();
        for (to, rider) in riders {
            self.network.ride(to, &rider, self.publisher.counters());
        }
    }
}
