//! Whether this node leads, for code that acts as the leader.
//!
//! A leader acts under a lease, and a lease ends by the clock, not by a message: the process may have been paused, and
//! what the node announced last may no longer hold. So [`Leadership::permit`] compares the deadline with the clock *at
//! the call*. The holder of a [`Permit`] may act until its deadline, and should show its term as a fencing token to
//! whatever it acts on: the lease prevents most conflicts, and the term makes the rest harmless.
//!
//! A permit binds the leader: a transfer of leadership waits until the last permit has ended. The caller of `permit`
//! records the deadline first and then checks again that this node still leads; the node first announces that it is about
//! to transfer leadership and then reads the deadlines. So at least one of the two sees the other.
//!
//! The algorithms of the sources have no leases. Their members lead as long as they believe that they do, and in a
//! partition there are two leaders; no permit is ever given.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use doyen_core::members::{NodeId, Term};
use doyen_core::protocol::Role;
use tokio::sync::watch;

use crate::clock::Moment;

/// What a node last announced about its leader and its own role.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LeadershipState {
    /// The leader that this node follows; itself, if it leads.
    pub leader: Option<NodeId>,
    /// The current term.
    pub term: Term,
    /// Its own role; none before it has started.
    pub role: Option<Role>,
    /// The deadline of its own lease, if it leads under one.
    pub lease_deadline: Option<Moment>,
}

/// The right to act as the leader until a deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Permit {
    /// The fencing token: a later leader has a higher term.
    pub term: Term,
    /// The end of this permit. A later call may give a permit with a later deadline.
    pub deadline: Moment,
}

/// What a transfer of leadership waits for: the latest deadline of all permits that were given, and work that runs under
/// the lease until it is over.
#[derive(Clone, Debug, Default)]
pub struct Permits(Arc<Given>);

#[derive(Debug, Default)]
struct Given {
    last_deadline: AtomicU64,
    work: AtomicUsize,
}

impl Permits {
    fn extend(&self, deadline: Moment) {
        self.0.last_deadline.fetch_max(deadline.as_nanos(), Ordering::SeqCst);
    }

    pub(crate) fn last_deadline(&self) -> Moment {
        Moment::from_nanos(self.0.last_deadline.load(Ordering::SeqCst))
    }

    /// Whether work runs that a transfer waits for.
    pub(crate) fn has_work(&self) -> bool {
        self.0.work.load(Ordering::SeqCst) > 0
    }

    fn begin_work(&self) {
        self.0.work.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn end_work(&self) {
        self.0.work.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Says whether this node leads. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Leadership {
    state: watch::Receiver<LeadershipState>,
    permits: Permits,
}

impl Leadership {
    /// Reads what a node announces in `state`, and records in `permits` the permits that it gives.
    pub fn new(state: watch::Receiver<LeadershipState>, permits: Permits) -> Self {
        Self { state, permits }
    }

    /// What the node last announced.
    pub fn state(&self) -> LeadershipState {
        *self.state.borrow()
    }

    /// A permit, if this node holds a valid lease now. A leader that is about to transfer leadership gives none.
    pub fn permit(&self) -> Option<Permit> {
        let LeadershipState { term, role, lease_deadline, .. } = self.state();
        let is_valid = |&end: &Moment| role == Some(Role::Leader) && Moment::now() < end;
        let deadline = lease_deadline.filter(is_valid)?;
        self.permits.extend(deadline);
        let now = self.state();
        let leads =
            now.role == Some(Role::Leader) && now.term == term && now.lease_deadline.is_some();
        leads.then_some(Permit { term, deadline })
    }

    /// Work begins under the lease of this node, if it holds a valid one now and is not about to transfer leadership. A
    /// transfer waits until [`Permits::end_work`]: the same order of steps as for a permit.
    pub(crate) fn begin_work(&self) -> Option<(Term, Permits)> {
        self.permits.begin_work();
        let LeadershipState { term, role, lease_deadline, .. } = self.state();
        let is_valid = |end: Moment| role == Some(Role::Leader) && Moment::now() < end;
        if !lease_deadline.is_some_and(is_valid) {
            self.permits.end_work();
            return None;
        }
        Some((term, self.permits.clone()))
    }

    /// Whether this node holds a valid lease now, even if it is about to transfer leadership.
    pub fn holds_lease(&self) -> bool {
        self.state().lease_deadline.is_some_and(|deadline| Moment::now() < deadline)
    }

    /// Waits for the next announcement; `None` when the node has ended.
    pub async fn changed(&mut self) -> Option<LeadershipState> {
        self.state.changed().await.ok()?;
        Some(*self.state.borrow_and_update())
    }
}

#[cfg(test)]
mod tests {
    use doyen_core::time::Span;

    use super::*;

    fn state(role: Role, lease_ms: u64) -> LeadershipState {
        let deadline = Moment::now().after(Span::from_millis(lease_ms));
        LeadershipState {
            role: Some(role),
            lease_deadline: Some(deadline),
            ..LeadershipState::default()
        }
    }

    #[test]
    fn a_lease_ends_by_the_clock_and_not_by_an_announcement() {
        let state = state(Role::Leader, 100);
        let (sender, receiver) = watch::channel(state);
        let leadership = Leadership::new(receiver, Permits::default());
        assert!(leadership.permit().is_some() && leadership.holds_lease());
        std::thread::sleep(std::time::Duration::from_millis(110));
        assert!(leadership.permit().is_none() && !leadership.holds_lease());
        drop(sender);
        assert_eq!(leadership.state(), state, "nothing was announced in between");
    }

    #[test]
    fn a_leader_that_is_about_to_transfer_gives_no_permit() {
        let (_sender, receiver) = watch::channel(state(Role::Retiring, 60_000));
        let leadership = Leadership::new(receiver, Permits::default());
        assert!(leadership.permit().is_none() && leadership.holds_lease());
        assert_eq!(leadership.permits.last_deadline(), Moment::default(), "none was recorded");
    }

    #[test]
    fn a_permit_binds_until_its_deadline() {
        let [sooner, later] = [60_000, 90_000].map(|ms| state(Role::Leader, ms));
        let (sender, receiver) = watch::channel(later);
        let leadership = Leadership::new(receiver, Permits::default());
        let deadline = || leadership.permit().map(|permit| permit.deadline);
        assert_eq!(deadline(), later.lease_deadline);
        sender.send_replace(sooner);
        assert_eq!(deadline(), sooner.lease_deadline);
        assert_eq!(
            Some(leadership.permits.last_deadline()),
            later.lease_deadline,
            "the first permit still binds"
        );
    }
}
