//! The leader's half: the holder of each lock, and the queue of waiting clients.
//!
//! Every member has one. It acts only while its host says, at each event, in which term the member holds a valid lease; with
//! the first lease of a new term it begins again with an empty table, and settles.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{
    Answer, Call, ClaimId, Config, Full, LockName, Origin, Request, Round, Rule, Ticket, Verdict,
};
use crate::members::Term;
use crate::protocol::Fence;
use crate::time::Span;

/// How many grants there are in a term: a fencing token has room for no more. Then nothing is granted until the next term.
pub const MOST_GRANTS: u64 = u32::MAX as u64;

/// An input of a grantor.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// The lease of its member has changed.
    Lease,
    /// An armed timer fired.
    Timer(Timer),
    /// A client calls.
    Call {
        /// About this lock.
        lock: LockName,
        /// What it asks.
        call: Call,
        /// The client, for the limits and for people.
        by: Caller,
    },
}

/// Who calls.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Caller {
    /// The client that its claims count for.
    pub origin: Origin,
    /// What it calls itself, for people.
    pub owner: Arc<str>,
}

/// A timer of a grantor.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// What earlier leaders granted is over, or has been shown.
    Settle,
    /// A client has not called for a lease.
    Expire(LockName, ClaimId),
}

/// An output of a grantor.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Effect {
    /// Answer a call about this lock. The call may have been made a while ago.
    Answer {
        /// The lock.
        lock: LockName,
        /// The answer.
        answer: Answer,
    },
    /// Arm a timer.
    SetTimer {
        /// The timer.
        timer: Timer,
        /// How long it waits.
        after: Span,
    },
    /// Disarm a timer.
    CancelTimer(Timer),
}

/// The state of a grantor.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Grantor {
    term: Term,
    settles: bool,
    locks: BTreeMap<LockName, Lock>,
    /// How many claims of each client there are in `locks`.
    claims_of: BTreeMap<Origin, usize>,
    /// How many tickets and grants there were in this term.
    tickets: u64,
    grants: u64,
    /// Something may have become free while there was no lease.
    is_behind: bool,
}

/// A lock that is held or waited for.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Lock {
    holder: Option<(Fence, Claim)>,
    queue: BTreeMap<(Ticket, ClaimId), Claim>,
}

/// A claim to a lock.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Claim {
    /// Its identity.
    pub id: ClaimId,
    /// Who made it.
    pub by: Caller,
    /// The last call.
    round: Round,
}

impl Lock {
    /// The claim that holds it, and the fence of the grant.
    pub fn holder(&self) -> Option<(Fence, &Claim)> {
        self.holder.as_ref().map(|(fence, claim)| (*fence, claim))
    }

    /// The claims that wait, in order.
    pub fn waiters(&self) -> impl ExactSizeIterator<Item = (Ticket, &Claim)> {
        self.queue.iter().map(|(&(ticket, _), claim)| (ticket, claim))
    }

    fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.holder.iter().map(|(_, claim)| claim).chain(self.queue.values())
    }

    fn place_of(&self, id: ClaimId) -> Option<(Ticket, ClaimId)> {
        self.queue.keys().find(|(_, waiting)| *waiting == id).copied()
    }
}

/// The work of one event.
struct Context<'a> {
    config: &'a Config,
    out: &'a mut Vec<Effect>,
}

impl Context<'_> {
    fn expire(&mut self, lock: &LockName, claim: ClaimId) {
        let timer = Timer::Expire(lock.clone(), claim);
        self.out.push(Effect::SetTimer { timer, after: self.config.expiry() });
    }

    fn cancel(&mut self, lock: &LockName, claim: ClaimId) {
        self.out.push(Effect::CancelTimer(Timer::Expire(lock.clone(), claim)));
    }
}

impl Grantor {
    /// That of the first leader of a new cluster, which leads in this term: no earlier leader has granted anything, so it has
    /// nothing to wait for.
    pub fn founding(term: Term) -> Self {
        Self { term, ..Self::default() }
    }

    /// The locks that are held or waited for.
    pub fn locks(&self) -> &BTreeMap<LockName, Lock> {
        &self.locks
    }

    /// Whether it grants nothing yet, because an earlier leader's grants may last.
    pub fn settles(&self) -> bool {
        self.settles
    }

    /// The term in which its table was begun.
    pub fn term(&self) -> Term {
        self.term
    }

    /// Handles one event. `lease`: the term in which this member leads, if it holds a valid lease at this moment and is not
    /// about to give it up.
    pub fn handle(
        &mut self,
        config: &Config,
        lease: Option<Term>,
        event: Event,
        out: &mut Vec<Effect>,
    ) {
        let mut cx = Context { config, out };
        let leads = self.follow(lease, &mut cx);
        match event {
            Event::Lease => {}
            Event::Timer(Timer::Settle) => {
                self.settles = false;
                self.is_behind = true;
            }
            Event::Timer(Timer::Expire(lock, claim)) => self.remove(&lock, claim, leads, &mut cx),
            Event::Call { lock, call, by } if leads => self.on_call(&lock, call, by, &mut cx),
            Event::Call { lock, call, .. } => {
                self.answer(&lock, call.claim, call.round, Verdict::NotLeader, &mut cx);
            }
        }
        if leads && !self.settles && std::mem::take(&mut self.is_behind) {
            let locks: Vec<LockName> = self.locks.keys().cloned().collect();
            locks.iter().for_each(|lock| self.serve(lock, &mut cx));
        }
    }

    /// G7, G10: begins again in a new term. Returns whether it may grant.
    fn follow(&mut self, lease: Option<Term>, cx: &mut Context<'_>) -> bool {
        match lease {
            Some(term) if term > self.term => self.begin(term, cx),
            Some(term) => return term == self.term,
            None => return !cx.config.heeds(Rule::LeaseIsChecked) && self.term > Term(0),
        }
        true
    }

    fn begin(&mut self, term: Term, cx: &mut Context<'_>) {
        for (name, lock) in &self.locks {
            lock.claims().for_each(|claim| cx.cancel(name, claim.id));
        }
        *self = Self { term, settles: cx.config.heeds(Rule::Settle), ..Self::default() };
        if self.settles {
            let after = match cx.config.heeds(Rule::SettleForALease) {
                true => cx.config.expiry(),
                false => cx.config.keep_interval(),
            };
            cx.out.push(Effect::SetTimer { timer: Timer::Settle, after });
        }
    }

    fn answer(
        &self,
        lock: &LockName,
        claim: ClaimId,
        round: Round,
        verdict: Verdict,
        cx: &mut Context<'_>,
    ) {
        let answer = Answer { claim, round, term: self.term, verdict };
        cx.out.push(Effect::Answer { lock: lock.clone(), answer });
    }

    fn on_call(&mut self, lock: &LockName, call: Call, by: Caller, cx: &mut Context<'_>) {
        let Call { claim, round, request } = call;
        let new = Claim { id: claim, by, round };
        match request {
            Request::Acquire { ticket } => self.on_acquire(lock, new, ticket, cx),
            Request::Keep { fence } => self.on_keep(lock, new, fence, cx),
            Request::Release => {
                self.remove(lock, claim, true, cx);
                self.answer(lock, claim, round, Verdict::Released, cx);
            }
        }
        if self.settles && !cx.config.heeds(Rule::SettleToTheEnd) {
            self.settles = false;
            self.is_behind = true;
            cx.out.push(Effect::CancelTimer(Timer::Settle));
        }
    }

    /// G2, G9.
    fn on_acquire(
        &mut self,
        name: &LockName,
        claim: Claim,
        shown: Option<Ticket>,
        cx: &mut Context<'_>,
    ) {
        let (id, round) = (claim.id, claim.round);
        let known = self.locks.get_mut(name);
        let holder = known.and_then(|lock| lock.holder.as_mut()).filter(|(_, held)| held.id == id);
        if let Some((fence, held)) = holder {
            held.round = round;
            let fence = *fence;
            cx.expire(name, id);
            return self.answer(name, id, round, Verdict::Held(fence), cx);
        }
        let place = self.locks.get(name).and_then(|lock| lock.place_of(id));
        let is_new = place.is_none();
        if is_new && let Some(full) = self.full_for(name, &claim, true, cx) {
            return self.answer(name, id, round, Verdict::Full(full), cx);
        }
        let kept = shown.filter(|ticket| {
            self.settles && ticket.term < self.term && cx.config.heeds(Rule::PlacesAreKept)
        });
        let place = place.or(kept.map(|ticket| (ticket, id))).unwrap_or_else(|| {
            self.tickets += 1;
            (Ticket { term: self.term, number: self.tickets }, id)
        });
        self.count(&claim);
        let known = self.locks.entry(name.clone()).or_default().queue.insert(place, claim);
        self.discount(known.as_ref());
        cx.expire(name, id);
        self.serve(name, cx);
        let lock = &self.locks[name];
        if lock.queue.contains_key(&place) {
            let ahead = lock.queue.range(..place).count();
            // Told again if the first answer was lost: then the client still shows the place that it had.
            let requeued = shown.is_some_and(|shown| shown != place.0);
            let verdict = Verdict::Waiting { ticket: place.0, ahead, requeued };
            self.answer(name, id, round, verdict, cx);
        }
    }

    /// G4, G9.
    fn on_keep(&mut self, name: &LockName, claim: Claim, fence: Fence, cx: &mut Context<'_>) {
        let (id, round) = (claim.id, claim.round);
        let held = self.locks.get(name).and_then(Lock::holder).map(|(held, by)| (held, by.id));
        let is_shown = self.settles
            && fence.term < self.term
            && held.is_none_or(|(held, by)| held < fence && by != id);
        let verdict = match held {
            Some(held) if held == (fence, id) => Verdict::Held(fence),
            _ if !is_shown => Verdict::Gone,
            _ => match self.full_for(name, &claim, false, cx) {
                Some(full) => Verdict::Full(full),
                None => Verdict::Held(fence),
            },
        };
        if verdict == Verdict::Held(fence) && (!is_shown || cx.config.heeds(Rule::ClaimsAreEntered))
        {
            self.count(&claim);
            let lock = self.locks.entry(name.clone()).or_default();
            // One that it did not know to be over: its holder was granted the lock before.
            if let Some((_, by)) = held.filter(|(_, by)| *by != id) {
                cx.cancel(name, by);
            }
            let waited = lock.place_of(id).and_then(|place| lock.queue.remove(&place));
            let held = lock.holder.replace((fence, claim)).map(|(_, claim)| claim);
            self.discount(waited.as_ref());
            self.discount(held.as_ref());
            cx.expire(name, id);
        }
        self.answer(name, id, round, verdict, cx);
    }

    /// The limit that a new claim meets, if it does.
    fn full_for(
        &self,
        name: &LockName,
        claim: &Claim,
        waits: bool,
        cx: &Context<'_>,
    ) -> Option<Full> {
        let (limits, lock) = (cx.config.limits, self.locks.get(name));
        // A holder whose ACQUIRE came late is in the queue already, and leaves it.
        let is_own = |it: &Claim| it.id == claim.id && it.by.origin == claim.by.origin;
        let is_queued = lock.is_some_and(|lock| lock.queue.values().any(is_own));
        let own = self.claims_of.get(&claim.by.origin).copied().unwrap_or_default();
        let own = own.saturating_sub(usize::from(is_queued));
        if lock.is_none() && self.locks.len() >= limits.locks {
            Some(Full::Locks)
        } else if waits && lock.is_some_and(|lock| lock.queue.len() >= limits.waiters) {
            Some(Full::Waiters)
        } else {
            (own >= limits.claims_per_client).then_some(Full::Client)
        }
    }

    /// A claim is entered.
    fn count(&mut self, claim: &Claim) {
        *self.claims_of.entry(claim.by.origin).or_default() += 1;
    }

    /// A claim has gone.
    fn discount(&mut self, claim: Option<&Claim>) {
        let Some(Claim { by: Caller { origin, .. }, .. }) = claim else { return };
        match self.claims_of.get_mut(origin) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                self.claims_of.remove(origin);
            }
        }
    }

    /// G6: the claim is gone; the next one gets the lock, if the member leads.
    fn remove(&mut self, name: &LockName, claim: ClaimId, leads: bool, cx: &mut Context<'_>) {
        let Some(lock) = self.locks.get_mut(name) else { return };
        let removed = match lock.place_of(claim) {
            Some(place) => lock.queue.remove(&place),
            None => lock.holder.take_if(|(_, held)| held.id == claim).map(|(_, held)| held),
        };
        if removed.is_none() {
            return;
        }
        self.discount(removed.as_ref());
        cx.cancel(name, claim);
        match leads {
            true => self.serve(name, cx),
            false => self.is_behind = true,
        }
    }

    /// G2: grants a lock that is free to the first in its queue; forgets one that is neither held nor waited for.
    fn serve(&mut self, name: &LockName, cx: &mut Context<'_>) {
        let Some(lock) = self.locks.get_mut(name) else { return };
        if lock.holder.is_none() && lock.queue.is_empty() {
            self.locks.remove(name);
            return;
        }
        if self.settles || lock.holder.is_some() || self.grants >= MOST_GRANTS {
            return;
        }
        let Some((_, claim)) = lock.queue.pop_first() else { return };
        self.grants += 1;
        let fence = Fence { term: self.term, number: self.grants };
        let (id, round) = (claim.id, claim.round);
        lock.holder = Some((fence, claim));
        cx.expire(name, id);
        self.answer(name, id, round, Verdict::Held(fence), cx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::Limits;

    struct Desk {
        grantor: Grantor,
        config: Config,
        lease: Option<Term>,
    }

    impl Desk {
        /// Of a leader of this term, which has settled.
        fn settled(term: u64) -> Self {
            let mut desk = Self::settling(term);
            desk.handle(Event::Timer(Timer::Settle));
            desk
        }

        fn settling(term: u64) -> Self {
            let (grantor, lease) = (Grantor::default(), Some(Term(term)));
            let mut desk = Self { grantor, config: Config::new(100), lease };
            let out = desk.handle(Event::Lease);
            let after = desk.config.expiry();
            assert_eq!(out, [Effect::SetTimer { timer: Timer::Settle, after }]);
            desk
        }

        fn handle(&mut self, event: Event) -> Vec<Effect> {
            let mut out = Vec::new();
            self.grantor.handle(&self.config, self.lease, event, &mut out);
            let mut counted = BTreeMap::new();
            for claim in self.grantor.locks.values().flat_map(Lock::claims) {
                *counted.entry(claim.by.origin).or_default() += 1;
            }
            assert_eq!(self.grantor.claims_of, counted);
            out
        }

        /// All answers to a call, with the claims that they are for.
        fn call(&mut self, name: &str, claim: u128, request: Request) -> Vec<(u128, Verdict)> {
            let by = Caller { origin: Origin(claim % 2), owner: "test".into() };
            let call = Call { claim: ClaimId(claim), round: Round(1), request };
            let out = self.handle(Event::Call { lock: name.parse().unwrap(), call, by });
            answers(out)
        }

        fn acquire(&mut self, claim: u128) -> Vec<(u128, Verdict)> {
            self.call("a", claim, Request::Acquire { ticket: None })
        }

        fn show(&mut self, claim: u128, term: u64, number: u64) -> Vec<(u128, Verdict)> {
            let ticket = Some(Ticket { term: Term(term), number });
            self.call("a", claim, Request::Acquire { ticket })
        }

        fn keep(&mut self, claim: u128, fence: Fence) -> Verdict {
            self.call("a", claim, Request::Keep { fence }).remove(0).1
        }
    }

    fn answers(out: Vec<Effect>) -> Vec<(u128, Verdict)> {
        let answer = |effect| match effect {
            Effect::Answer { answer, .. } => Some((answer.claim.0, answer.verdict)),
            _ => None,
        };
        out.into_iter().filter_map(answer).collect()
    }

    fn fence(term: u64, number: u64) -> Fence {
        Fence { term: Term(term), number }
    }

    fn waits(term: u64, number: u64, ahead: usize, requeued: bool) -> Verdict {
        let ticket = Ticket { term: Term(term), number };
        Verdict::Waiting { ticket, ahead, requeued }
    }

    #[test]
    fn claims_are_served_in_order_with_rising_fences() {
        let mut desk = Desk::settled(3);
        assert_eq!(desk.acquire(1), [(1, Verdict::Held(fence(3, 1)))]);
        assert_eq!(desk.acquire(2), [(2, waits(3, 2, 0, false))]);
        assert_eq!(desk.acquire(3), [(3, waits(3, 3, 1, false))]);
        assert_eq!(desk.acquire(2), [(2, waits(3, 2, 0, false))], "it is not queued twice");
        assert_eq!(desk.acquire(1), [(1, Verdict::Held(fence(3, 1)))], "it is answered again");
        let freed = desk.call("a", 1, Request::Release);
        assert_eq!(freed, [(2, Verdict::Held(fence(3, 2))), (1, Verdict::Released)]);
        assert_eq!(desk.keep(1, fence(3, 1)), Verdict::Gone);
        let expired = desk.handle(Event::Timer(Timer::Expire("a".parse().unwrap(), ClaimId(2))));
        assert_eq!(answers(expired), [(3, Verdict::Held(fence(3, 3)))]);
        desk.call("a", 3, Request::Release);
        assert!(desk.grantor.locks().is_empty(), "a lock that is not used takes no room");
    }

    #[test]
    fn while_it_settles_holders_and_places_are_shown_and_nothing_is_granted() {
        let mut desk = Desk::settling(4);
        assert_eq!(desk.acquire(9), [(9, waits(4, 1, 0, false))]);
        assert_eq!(desk.show(7, 3, 8), [(7, waits(3, 8, 0, false))]);
        assert_eq!(desk.show(6, 2, 9), [(6, waits(2, 9, 0, false))]);
        assert_eq!(desk.keep(5, fence(3, 2)), Verdict::Held(fence(3, 2)));
        let out = desk.handle(Event::Timer(Timer::Settle));
        assert_eq!(answers(out), [], "it is held");
        assert_eq!(desk.show(8, 3, 1), [(8, waits(4, 2, 3, true))], "it comes too late");
        assert_eq!(desk.keep(4, fence(3, 9)), Verdict::Gone, "so does this one");
        let mut order = Vec::new();
        for _ in 0..5 {
            let lock = &desk.grantor.locks()[&"a".parse().unwrap()];
            let holder = lock.holder().unwrap().1.id;
            order.push(holder.0);
            desk.call("a", holder.0, Request::Release);
        }
        assert_eq!(order, [5, 6, 7, 9, 8]);
    }

    #[test]
    fn of_two_that_claim_to_hold_a_lock_the_later_grant_counts() {
        let mut desk = Desk::settling(4);
        let (earlier, later) = (fence(3, 1), fence(3, 2));
        assert_eq!(desk.keep(1, earlier), Verdict::Held(earlier));
        assert_eq!(desk.keep(2, later), Verdict::Held(later));
        assert_eq!(desk.keep(1, earlier), Verdict::Gone);
        assert_eq!(desk.keep(3, fence(4, 1)), Verdict::Gone, "this leader has granted nothing");
    }

    #[test]
    fn without_a_lease_nothing_is_granted_and_a_new_term_begins_again() {
        let mut desk = Desk::settled(3);
        desk.acquire(1);
        desk.acquire(2);
        desk.lease = None;
        let expired = desk.handle(Event::Timer(Timer::Expire("a".parse().unwrap(), ClaimId(1))));
        assert_eq!(answers(expired), []);
        assert_eq!(desk.acquire(3), [(3, Verdict::NotLeader)]);
        desk.lease = Some(Term(3));
        assert_eq!(answers(desk.handle(Event::Lease)), [(2, Verdict::Held(fence(3, 2)))]);
        desk.lease = Some(Term(5));
        let out = desk.handle(Event::Lease);
        let timer = Timer::Expire("a".parse().unwrap(), ClaimId(2));
        assert!(out.contains(&Effect::CancelTimer(timer)) && desk.grantor.settles());
        assert_eq!(desk.acquire(2), [(2, waits(5, 1, 0, false))]);
    }

    #[test]
    fn a_holder_whose_earlier_request_is_queued_does_not_count_twice() {
        let mut desk = Desk::settling(3);
        desk.config.limits.claims_per_client = 1;
        assert_eq!(desk.acquire(1), [(1, waits(3, 1, 0, false))]);
        assert_eq!(desk.keep(1, fence(2, 5)), Verdict::Held(fence(2, 5)));
    }

    #[test]
    fn nothing_grows_without_bound() {
        let mut desk = Desk::settled(1);
        desk.config.limits = Limits { locks: 2, waiters: 2, claims_per_client: 3 };
        let acquire = Request::Acquire { ticket: None };
        let mut full = |name: &str, claim| {
            let mut verdicts = desk.call(name, claim, acquire.clone());
            match verdicts.remove(0).1 {
                Verdict::Full(full) => Some(full),
                _ => None,
            }
        };
        assert_eq!([full("a", 1), full("b", 3), full("c", 5)], [None, None, Some(Full::Locks)]);
        assert_eq!([full("a", 5), full("a", 7)], [None, Some(Full::Client)]);
        assert_eq!([full("a", 2), full("a", 4)], [None, Some(Full::Waiters)]);
        assert_eq!(full("a", 2), None, "one that is known is answered");
    }
}
