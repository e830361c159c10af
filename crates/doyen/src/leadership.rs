//! Who leads, for those who act on it.
//!
//! A leader acts under a lease, and a lease ends by the clock, not by a message: the process may have been paused, and
//! what the loop last said may be long over. So [`Leadership::token`] compares the deadline with the clock *at the
//! call*. Whoever is given a token may act until it ends, and should show its term to whatever it acts on: the lease is
//! for efficiency, the term is for safety.
//!
//! A token is a [`Promise`]: a leader that is to hand over waits until the last one that it gave has ended. The giver
//! notes the promise first and looks again whether this node still leads; the loop says first that it is about to hand
//! over and looks then what has been promised. One of the two sees the other.
//!
//! The sources' algorithms have no leases. Their leaders are leaders for as long as they believe so, and in a partition
//! there are two; no token is ever given.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use doyen_core::members::{NodeId, Term};
use doyen_core::protocol::Role;
use tokio::sync::watch;

use crate::node::clock::Moment;

/// What a node believes, and until when it may act on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reign {
    /// Whom it follows; itself, if it leads.
    pub leader: Option<NodeId>,
    /// In which term.
    pub term: Term,
    /// What it does; nothing before it has started.
    pub role: Option<Role>,
    /// The end of its lease, if it leads under one.
    pub until: Option<Moment>,
}

/// A permission to act as the leader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    /// The term: later leaders have higher ones.
    pub term: Term,
    /// Until when it holds. It may be renewed meanwhile.
    pub until: Moment,
}

/// Until when somebody may act under a lease of this node's, as far as it was told so.
#[derive(Clone, Debug, Default)]
pub struct Promise(Arc<AtomicU64>);

impl Promise {
    fn extend(&self, until: Moment) {
        self.0.fetch_max(until.as_nanos(), Ordering::SeqCst);
    }

    /// The end of the last token.
    pub(crate) fn end(&self) -> Moment {
        Moment::from_nanos(self.0.load(Ordering::SeqCst))
    }
}

/// Answers whether this node leads.
#[derive(Clone, Debug)]
pub struct Leadership {
    reign: watch::Receiver<Reign>,
    promise: Promise,
}

impl Leadership {
    /// One that is told by the other end of `reign`, and notes what it promises.
    pub fn new(reign: watch::Receiver<Reign>, promise: Promise) -> Self {
        Self { reign, promise }
    }

    /// What the node last announced.
    pub fn reign(&self) -> Reign {
        *self.reign.borrow()
    }

    /// The permission to act, if this node holds a lease now. One that is about to hand over begins nothing new, and
    /// gives none.
    pub fn token(&self) -> Option<Token> {
        let Reign { term, role, until, .. } = self.reign();
        let until = until.filter(|&until| role == Some(Role::Leader) && Moment::now() < until)?;
        self.promise.extend(until);
        let now = self.reign();
        let leads = now.role == Some(Role::Leader) && now.term == term && now.until.is_some();
        leads.then_some(Token { term, until })
    }

    /// Whether this node holds a valid lease now, be it about to hand over or not.
    pub fn holds_lease(&self) -> bool {
        self.reign().until.is_some_and(|until| Moment::now() < until)
    }

    /// Waits until something else is announced; `None` when the node has ended.
    pub async fn changed(&mut self) -> Option<Reign> {
        self.reign.changed().await.ok()?;
        Some(*self.reign.borrow_and_update())
    }
}

#[cfg(test)]
mod tests {
    use doyen_core::time::Span;

    use super::*;

    #[test]
    fn a_lease_ends_by_the_clock_and_not_by_a_word() {
        let soon = Moment::now().after(Span::from_millis(100));
        let reign = Reign { role: Some(Role::Leader), until: Some(soon), ..Reign::default() };
        let (tell, told) = watch::channel(reign);
        let leadership = Leadership::new(told, Promise::default());
        assert!(leadership.token().is_some() && leadership.holds_lease());
        std::thread::sleep(std::time::Duration::from_millis(110));
        assert!(leadership.token().is_none() && !leadership.holds_lease());
        drop(tell);
        assert_eq!(leadership.reign(), reign, "nobody has said anything since");
    }

    #[test]
    fn who_is_about_to_hand_over_begins_nothing_new() {
        let later = Moment::now().after(Span::from_millis(60_000));
        let reign = Reign { role: Some(Role::Retiring), until: Some(later), ..Reign::default() };
        let (_tell, told) = watch::channel(reign);
        let leadership = Leadership::new(told, Promise::default());
        assert!(leadership.token().is_none() && leadership.holds_lease());
        assert_eq!(leadership.promise.end(), Moment::default(), "and nothing has been promised");
    }

    #[test]
    fn a_token_is_a_promise_until_its_end() {
        let [soon, later] = [60_000, 90_000].map(|ms| Moment::now().after(Span::from_millis(ms)));
        let reign =
            |until| Reign { role: Some(Role::Leader), until: Some(until), ..Reign::default() };
        let (tell, told) = watch::channel(reign(later));
        let leadership = Leadership::new(told, Promise::default());
        assert_eq!(leadership.token().map(|token| token.until), Some(later));
        tell.send_replace(reign(soon));
        assert_eq!(leadership.token().map(|token| token.until), Some(soon));
        assert_eq!(leadership.promise.end(), later, "what was promised stands");
    }
}
