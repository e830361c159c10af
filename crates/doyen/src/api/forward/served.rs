//! The calls of other members that this one has taken on: each is carried out once at most.
//!
//! A call is known by the member that makes it, its session and its number. While it is carried out, and for a while after,
//! it is remembered, so that a repetition is answered and not carried out again. When it is forgotten, it and all earlier
//! numbers of that session are never carried out any more. A new session starts from nothing: the loop drops what earlier
//! ones have sent. So neither a repeated nor a replayed datagram has an effect, and there are [`MOST_CALLS`] answers for
//! each member at most.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use doyen_core::members::{NodeId, SessionId};

/// How many calls of one member are remembered.
const MOST_CALLS: usize = 4;

/// How long an answer is kept. A member gives up before.
const KEPT: Duration = Duration::from_secs(20);

/// What to do about a call that arrives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    /// Carry it out, then say so by [`Served::finish`].
    New,
    Running,
    Answered(Arc<[u8]>),
    /// It is never carried out.
    Forgotten,
    /// There are too many. Nothing is remembered, and it may be repeated.
    NoRoom,
}

#[derive(Debug, Default)]
pub(super) struct Served(BTreeMap<NodeId, Caller>);

/// A process of another member.
#[derive(Debug)]
struct Caller {
    session: SessionId,
    /// Calls up to this number that are not in `calls` are never carried out.
    forgotten: u64,
    calls: BTreeMap<u64, Option<Answer>>,
}

#[derive(Debug)]
struct Answer {
    bytes: Arc<[u8]>,
    at: Instant,
}

impl Served {
    pub(super) fn arrive(
        &mut self,
        from: NodeId,
        session: SessionId,
        id: u64,
        now: Instant,
    ) -> Arrival {
        let caller = self.caller(from, session);
        match caller.calls.get(&id) {
            Some(Some(answer)) => return Arrival::Answered(Arc::clone(&answer.bytes)),
            Some(None) => return Arrival::Running,
            None if id <= caller.forgotten => return Arrival::Forgotten,
            None => {}
        }
        if caller.calls.len() == MOST_CALLS && !caller.forget_oldest() {
            return Arrival::NoRoom;
        }
        // One that is above a remembered number may be forgotten with it.
        if id <= caller.forgotten {
            return Arrival::Forgotten;
        }
        caller.calls.insert(id, None);
        self.expire(now);
        Arrival::New
    }

    /// A call has been carried out. If its caller has restarted meanwhile, no process waits for the answer.
    pub(super) fn finish(
        &mut self,
        from: NodeId,
        session: SessionId,
        id: u64,
        bytes: Arc<[u8]>,
        at: Instant,
    ) {
        let caller = self.0.get_mut(&from).filter(|caller| caller.session == session);
        if let Some(call) = caller.and_then(|caller| caller.calls.get_mut(&id)) {
            *call = Some(Answer { bytes, at });
        }
    }

    /// The answer to a call, if it has been carried out and is remembered.
    pub(super) fn answer(&self, from: NodeId, session: SessionId, id: u64) -> Option<Arc<[u8]>> {
        let caller = self.0.get(&from).filter(|caller| caller.session == session)?;
        caller.calls.get(&id)?.as_ref().map(|answer| Arc::clone(&answer.bytes))
    }

    /// Forgets old answers.
    pub(super) fn expire(&mut self, now: Instant) {
        for caller in self.0.values_mut() {
            let is_old = |call: &Option<Answer>| {
                call.as_ref().is_some_and(|it| now.saturating_duration_since(it.at) > KEPT)
            };
            let old = caller.calls.iter().filter(|(_, call)| is_old(call)).map(|(&id, _)| id);
            for id in old.collect::<Vec<u64>>() {
                caller.forget(id);
            }
        }
    }

    fn caller(&mut self, from: NodeId, session: SessionId) -> &mut Caller {
        let new = || Caller { session, forgotten: 0, calls: BTreeMap::new() };
        let caller = self.0.entry(from).or_insert_with(new);
        if caller.session != session {
            *caller = new();
        }
        caller
    }
}

impl Caller {
    fn forget(&mut self, id: u64) {
        self.calls.remove(&id);
        self.forgotten = self.forgotten.max(id);
    }

    /// Makes room, if a call has been answered.
    fn forget_oldest(&mut self) -> bool {
        let answered = self.calls.iter().find(|(_, call)| call.is_some()).map(|(&id, _)| id);
        answered.is_some_and(|id| {
            self.forget(id);
            true
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: NodeId = NodeId(2);

    fn session(number: u64) -> SessionId {
        SessionId::from_random(number)
    }

    fn answer() -> Arc<[u8]> {
        Arc::from(&b"done"[..])
    }

    #[test]
    fn a_call_is_carried_out_once_however_often_it_arrives() {
        let (mut served, now) = (Served::default(), Instant::now());
        assert_eq!(served.arrive(FROM, session(1), 5, now), Arrival::New);
        assert_eq!(served.arrive(FROM, session(1), 5, now), Arrival::Running);
        served.finish(FROM, session(1), 5, answer(), now);
        assert_eq!(served.arrive(FROM, session(1), 5, now), Arrival::Answered(answer()));
        let later = now + KEPT + Duration::from_secs(1);
        served.expire(later);
        for id in 1..=5 {
            assert_eq!(served.arrive(FROM, session(1), id, later), Arrival::Forgotten);
        }
        assert_eq!(served.arrive(FROM, session(1), 6, later), Arrival::New);
    }

    #[test]
    fn a_new_process_and_another_member_count_for_themselves() {
        let (mut served, now) = (Served::default(), Instant::now());
        for (from, number) in [(FROM, 1), (NodeId(3), 1), (FROM, 2)] {
            assert_eq!(served.arrive(from, session(number), 1, now), Arrival::New);
        }
        // What the earlier process wanted is of no use.
        served.finish(FROM, session(1), 1, answer(), now);
        assert_eq!(served.arrive(FROM, session(2), 1, now), Arrival::Running);
    }

    #[test]
    fn memory_is_bounded_and_a_running_call_is_never_forgotten() {
        let (mut served, now) = (Served::default(), Instant::now());
        for id in 1..=MOST_CALLS as u64 {
            assert_eq!(served.arrive(FROM, session(1), id, now), Arrival::New);
        }
        assert_eq!(served.arrive(FROM, session(1), 9, now), Arrival::NoRoom);
        served.finish(FROM, session(1), 2, answer(), now);
        assert_eq!(served.arrive(FROM, session(1), 9, now), Arrival::New);
        assert_eq!(served.arrive(FROM, session(1), 2, now), Arrival::Forgotten);
        assert_eq!(served.arrive(FROM, session(1), 1, now), Arrival::Running);
        assert_eq!(served.0[&FROM].calls.len(), MOST_CALLS);
    }

    #[test]
    fn a_late_number_is_not_carried_out_in_the_place_of_what_it_displaces() {
        let (mut served, now) = (Served::default(), Instant::now());
        for id in 11..=14 {
            assert_eq!(served.arrive(FROM, session(1), id, now), Arrival::New);
            served.finish(FROM, session(1), id, answer(), now);
        }
        assert_eq!(served.arrive(FROM, session(1), 10, now), Arrival::Forgotten);
    }
}
