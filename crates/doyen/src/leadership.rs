//! Whether this node leads, for code that acts as the leader.
//!
//! ```no_run
//! use std::path::Path;
//! use std::time::Duration;
//!
//! use doyen::config::{Configuration, Env};
//! use doyen::node::Builder;
//!
//! # async fn lead() -> Result<(), Box<dyn std::error::Error>> {
//! let configuration = Configuration::load(Some(Path::new("n1/doyen.toml")), &[], &Env::of_process())?;
//! let running = Builder::new(configuration).start()?;
//! let leadership = running.handle().leadership();
//! while leadership.wait().await.is_some() {
//!     if let Some(permit) = leadership.guard(Duration::from_millis(100)) {
//!         println!("may act until {:?}, as {}", permit.deadline, permit.token);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A leader acts under a lease, and a lease ends by the clock, not by a message: the process may have been paused, and
//! what the node announced last may no longer hold. So [`Leadership::is_leader`] and [`Leadership::guard`] compare the
//! deadline with the clock *at the call*.
//!
//! | question | answer |
//! |---|---|
//! | [`is_leader`](Leadership::is_leader) | what is true at this instant; it does not bind the leader, and the next instant may differ |
//! | [`guard`](Leadership::guard) | a [`Permit`]: the right to act until a deadline, for which a transfer of leadership waits |
//! | [`Handle::begin_work`](crate::node::Handle::begin_work) | work without a fixed end, for which a transfer waits |
//!
//! The holder of a permit shows its [`FencingToken`] to whatever it acts on: the lease prevents most conflicts, and the
//! token makes the rest harmless ([`crate::fence`]).
//!
//! A permit binds the leader. The caller of `guard` records the deadline first and then checks again that this node still
//! leads; the node first announces that it is about to transfer leadership and then reads the deadlines. So at least one of
//! the two sees the other.
//!
//! The algorithms of the sources have no leases. Their members lead as long as they believe that they do, and in a
//! partition there are two leaders; no permit is ever given.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use doyen_core::lock::grantor::MOST_GRANTS;
use doyen_core::members::{NodeId, Term};
use doyen_core::protocol::{Fence, Role};
use tokio::sync::watch;

use crate::clock::Moment;
use crate::guardian::Handover;
use crate::mutex::lock;

/// How many fencing tokens there are in a term.
const TOKENS_PER_TERM: u64 = 1 << 20;

/// How many fencing tokens of grants there are in a term.
const GRANTS_PER_TERM: u64 = MOST_GRANTS + 1;

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

impl LeadershipState {
    /// Whether the announced lease is valid now, even if the node is about to transfer leadership.
    pub fn holds_lease(&self) -> bool {
        self.lease_deadline.is_some_and(|deadline| Moment::now() < deadline)
    }

    /// Whether the announced lease is valid now, and the node is not about to transfer leadership.
    pub fn is_leader(&self) -> bool {
        self.role == Some(Role::Leader) && self.holds_lease()
    }
}

/// A number that rises with every start under a lease: the term times 2²⁰, plus the number of earlier starts in that term.
/// A resource refuses a token lower than the highest that it has seen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FencingToken(pub u64);

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The fence of a grant, of a lock or a group, as one number that rises: the term times 2³², plus the number of the grant in
/// that term.
pub fn token_of(fence: Fence) -> Option<FencingToken> {
    let first = fence.term.0.checked_mul(GRANTS_PER_TERM)?;
    (fence.number < GRANTS_PER_TERM).then_some(FencingToken(first + fence.number))
}

/// The fence that the token of a grant stands for.
pub fn fence_of(FencingToken(token): FencingToken) -> Fence {
    Fence { term: Term(token / GRANTS_PER_TERM), number: token % GRANTS_PER_TERM }
}

/// The right to act as the leader until a deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Permit {
    /// The term of the lease.
    pub term: Term,
    /// What to show to whatever is acted on.
    pub token: FencingToken,
    /// The end of this permit: of the time that was asked for or of the lease, whichever comes first.
    pub deadline: Moment,
}

/// What a transfer of leadership waits for: the latest deadline of all permits that were given, and work that runs under
/// the lease until it is over. And the last fencing token.
#[derive(Clone, Debug, Default)]
pub(crate) struct Permits(Arc<Given>);

#[derive(Debug, Default)]
struct Given {
    last_deadline: AtomicU64,
    work: AtomicUsize,
    /// When the work that runs began, in nanoseconds since the machine booted: for display.
    work_since: AtomicU64,
    last_token: AtomicU64,
    /// Where a guardian reads the latest deadline, if one watches this node.
    handover: OnceLock<Mutex<Handover>>,
}

impl Permits {
    /// From now on the latest deadline is also told to the guardian that shares this memory.
    pub(crate) fn share(&self, handover: Handover) {
        let _ = self.0.handover.set(Mutex::new(handover));
        // Of permits that were given before.
        self.extend(Moment::default());
    }

    /// Records the deadline of a permit, before the permit is given. `false` if the guardian cannot be told of it.
    fn extend(&self, deadline: Moment) -> bool {
        self.0.last_deadline.fetch_max(deadline.as_nanos(), Ordering::SeqCst);
        let Some(handover) = self.0.handover.get() else { return true };
        // Under the lock, so that an earlier deadline never replaces a later one.
        let handover = lock(handover);
        handover.permit_ends(self.last_deadline()).is_ok()
    }

    pub(crate) fn last_deadline(&self) -> Moment {
        Moment::from_nanos(self.0.last_deadline.load(Ordering::SeqCst))
    }

    /// Whether work runs that a transfer waits for.
    pub(crate) fn has_work(&self) -> bool {
        self.0.work.load(Ordering::SeqCst) > 0
    }

    fn begin_work(&self) {
        if self.0.work.fetch_add(1, Ordering::SeqCst) == 0 {
            self.0.work_since.store(Moment::now().as_nanos(), Ordering::SeqCst);
        }
    }

    /// Since when work has run, if it does.
    pub(crate) fn work_since(&self) -> Option<Moment> {
        let since = Moment::from_nanos(self.0.work_since.load(Ordering::SeqCst));
        self.has_work().then_some(since)
    }

    pub(crate) fn end_work(&self) {
        self.0.work.fetch_sub(1, Ordering::SeqCst);
    }

    /// Permits have at least this token from now on.
    pub(crate) fn raise_token(&self, FencingToken(token): FencingToken) {
        self.0.last_token.fetch_max(token, Ordering::SeqCst);
    }

    /// The token of the latest start in a term, or the first one if nothing has been started.
    fn token(&self, term: Term) -> Option<FencingToken> {
        let first = term.0.checked_mul(TOKENS_PER_TERM)?;
        Some(FencingToken(first.max(self.0.last_token.load(Ordering::SeqCst))))
    }

    /// The token of a new start in a term; none if all of them are used.
    pub(crate) fn next_token(&self, term: Term) -> Option<FencingToken> {
        let first = term.0.checked_mul(TOKENS_PER_TERM)?;
        let next = |last: u64| match last.checked_sub(first) {
            None => Some(first),
            Some(starts) => (starts + 1 < TOKENS_PER_TERM).then(|| last + 1),
        };
        let last = self.0.last_token.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next);
        last.ok().and_then(next).map(FencingToken)
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
    pub(crate) fn new(state: watch::Receiver<LeadershipState>, permits: Permits) -> Self {
        Self { state, permits }
    }

    /// What the node last announced.
    pub fn state(&self) -> LeadershipState {
        *self.state.borrow()
    }

    /// Every announcement from now on, the latest first. A renewed lease is one, too.
    pub fn watch(&self) -> watch::Receiver<LeadershipState> {
        self.state.clone()
    }

    /// Whether this node holds a valid lease now and is not about to transfer leadership. It does not bind the leader:
    /// to act, use [`guard`](Self::guard).
    pub fn is_leader(&self) -> bool {
        self.state().is_leader()
    }

    /// Waits until this node leads, and returns the term; `None` when the node has ended.
    pub async fn wait(&self) -> Option<Term> {
        let mut state = self.state.clone();
        let leads = state.wait_for(LeadershipState::is_leader).await.ok()?;
        Some(leads.term)
    }

    /// A permit to act as the leader for this long, or until the end of the lease if that comes first. A transfer of
    /// leadership waits for the end of the permit, so ask for no longer than the work takes. `None` if this node does not
    /// lead now; a leader that is about to transfer leadership gives no permit.
    pub fn guard(&self, lasting: Duration) -> Option<Permit> {
        let state = self.state();
        let lease_deadline = state.lease_deadline.filter(|_| state.is_leader())?;
        let nanos = u64::try_from(lasting.as_nanos()).unwrap_or(u64::MAX);
        let deadline = Moment::now().after_nanos(nanos).min(lease_deadline);
        let (term, token) = (state.term, self.permits.token(state.term)?);
        let is_recorded = self.permits.extend(deadline);
        let now = self.state();
        let leads =
            now.role == Some(Role::Leader) && now.term == term && now.lease_deadline.is_some();
        (leads && is_recorded).then_some(Permit { term, token, deadline })
    }

    /// Work begins under the lease of this node, if it holds a valid one now and is not about to transfer leadership. A
    /// transfer waits until [`Permits::end_work`]: the same order of steps as for a permit.
    pub(crate) fn begin_work(&self) -> Option<(Term, Permits)> {
        self.permits.begin_work();
        let state = self.state();
        if !state.is_leader() {
            self.permits.end_work();
            return None;
        }
        Some((state.term, self.permits.clone()))
    }
}

#[cfg(test)]
mod tests {
    use doyen_core::time::Span;

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    fn state(role: Role, lease_ms: u64) -> LeadershipState {
        let deadline = Moment::now().after(Span::from_millis(lease_ms));
        LeadershipState {
            role: Some(role),
            term: Term(3),
            lease_deadline: Some(deadline),
            ..LeadershipState::default()
        }
    }

    #[test]
    fn a_lease_ends_by_the_clock_and_not_by_an_announcement() {
        let state = state(Role::Leader, 100);
        let (sender, receiver) = watch::channel(state);
        let leadership = Leadership::new(receiver, Permits::default());
        assert!(leadership.guard(LONG).is_some() && leadership.is_leader());
        std::thread::sleep(Duration::from_millis(110));
        assert!(leadership.guard(LONG).is_none() && !leadership.is_leader());
        drop(sender);
        assert_eq!(leadership.state(), state, "nothing was announced in between");
    }

    #[test]
    fn a_leader_that_is_about_to_transfer_gives_no_permit() {
        let (_sender, receiver) = watch::channel(state(Role::Retiring, 60_000));
        let leadership = Leadership::new(receiver, Permits::default());
        assert!(leadership.guard(LONG).is_none() && !leadership.is_leader());
        assert!(leadership.state().holds_lease());
        assert_eq!(leadership.permits.last_deadline(), Moment::default(), "none was recorded");
    }

    #[test]
    fn asking_who_leads_binds_no_one() {
        let (_sender, receiver) = watch::channel(state(Role::Leader, 60_000));
        let leadership = Leadership::new(receiver, Permits::default());
        assert!(leadership.is_leader() && leadership.state().is_leader());
        assert_eq!(leadership.permits.last_deadline(), Moment::default());
    }

    #[test]
    fn a_permit_binds_until_its_deadline() {
        let [sooner, later] = [60_000, 90_000].map(|ms| state(Role::Leader, ms));
        let (sender, receiver) = watch::channel(later);
        let leadership = Leadership::new(receiver, Permits::default());
        let deadline = |lasting| leadership.guard(lasting).map(|permit| permit.deadline);
        assert_eq!(deadline(LONG), later.lease_deadline, "the lease ends first");
        sender.send_replace(sooner);
        assert_eq!(deadline(LONG), sooner.lease_deadline);
        let short = deadline(Duration::from_secs(1)).expect("a permit");
        assert!(short <= Moment::now().after(Span::from_millis(1_000)), "the time ends first");
        assert_eq!(
            Some(leadership.permits.last_deadline()),
            later.lease_deadline,
            "the first permit still binds"
        );
    }

    #[test]
    fn tokens_rise_with_every_start_and_with_the_term() {
        let (sender, receiver) = watch::channel(state(Role::Leader, 60_000));
        let leadership = Leadership::new(receiver, Permits::default());
        let permitted = || leadership.guard(LONG).map(|permit| permit.token.0);
        let first = 3 << 20;
        assert_eq!(permitted(), Some(first));
        let permits = &leadership.permits;
        let started = [(); 3].map(|()| permits.next_token(Term(3)).map(|token| token.0));
        assert_eq!(started, [Some(first), Some(first + 1), Some(first + 2)]);
        assert_eq!(permitted(), Some(first + 2), "as high as the latest start");
        permits.0.last_token.store((4 << 20) - 1, Ordering::SeqCst);
        assert_eq!(permits.next_token(Term(3)), None, "they are used up");
        assert_eq!(permits.next_token(Term(4)), Some(FencingToken(4 << 20)));
        assert_eq!(permits.next_token(Term(1 << 44)), None, "there are none in this term");
        sender.send_modify(|state| state.term = Term(4));
        assert_eq!(permitted(), Some(4 << 20));
    }

    #[test]
    fn tokens_rise_as_fences_do_and_stand_for_them() {
        let fence = |term, number| Fence { term: Term(term), number };
        let fences = [fence(1, 1), fence(1, MOST_GRANTS), fence(2, 1), fence(1 << 31, 7)];
        let tokens = fences.map(|fence| token_of(fence).expect("a token"));
        assert!(tokens.is_sorted());
        assert_eq!(tokens.map(fence_of), fences);
        assert_eq!(token_of(fence(1 << 32, 1)), None);
        assert_eq!(token_of(fence(1, MOST_GRANTS + 1)), None);
    }

    #[tokio::test]
    async fn waiting_ends_when_this_node_leads_or_has_ended() {
        let (sender, receiver) = watch::channel(state(Role::Follower, 60_000));
        let leadership = Leadership::new(receiver, Permits::default());
        let waits = leadership.clone();
        let waiting = tokio::spawn(async move { waits.wait().await });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        sender.send_modify(|state| state.role = Some(Role::Leader));
        assert_eq!(waiting.await.expect("no panic"), Some(Term(3)));
        sender.send_modify(|state| state.role = Some(Role::Follower));
        drop(sender);
        assert_eq!(leadership.wait().await, None);
    }
}
