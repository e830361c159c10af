//! Locks over HTTP: the host of the core's [`Grantor`], and the calls of its clients.
//!
//! They need no admin secret, like a permit: every client that can reach HTTP may take a lock, and the leader believes what
//! a client shows ([`doyen_core::lock`] describes the consequences). Only the leader answers; every other node names the
//! leader. A call that shows its place may wait for the lock, for a third of a lease at most; the number of calls that may
//! wait is limited, and the others are answered at once.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use doyen_core::lock::grantor::{Caller, Effect, Event, Grantor, Timer};
use doyen_core::lock::{Answer, Call, ClaimId, Config, LockName, Origin, Request, Round, Verdict};
use doyen_core::members::Term;
use tokio::sync::{Notify, oneshot};
use tokio::time::{sleep, timeout};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::call::OpenCall;
use super::permit::{not_leader, parse_time};
use super::problem::{Kind, Problem};
use super::report::TERM_HEADER;
use super::watchers::Watchers;
use crate::clock::Moment;
use crate::leadership::{FencingToken, Leadership};
use crate::lock::{
    Acquire, HolderReport, Keep, LONGEST_OWNER, LockAnswer, LockList, LockReport, Release,
    Released, WaiterReport, fence_of, is_owner, parse_claim, token_of,
};
use crate::mutex::lock;
use crate::node::Handle;
use crate::node::timers::Timers;

/// How long the grantor sleeps if nothing is to be done.
const LONG: Duration = Duration::from_secs(3600);

/// The grantor of this node. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Locks(Arc<Desk>);

#[derive(Debug)]
struct Desk {
    config: Config,
    leadership: Leadership,
    table: Mutex<Table>,
    /// A timer may be due earlier than before.
    changed: Notify,
    /// The calls that wait.
    waiting: Watchers,
}

#[derive(Debug)]
struct Table {
    grantor: Grantor,
    timers: Timers<Timer>,
    /// The calls that wait for their lock, by claim.
    calls: BTreeMap<ClaimId, (Round, oneshot::Sender<Answer>)>,
    /// Numbers the calls.
    round: u64,
}

/// A call that waits for its lock. Dropping it forgets the call: it is answered, or its client has gone.
struct Waiting<'a> {
    locks: &'a Locks,
    claim: ClaimId,
    round: Round,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut table = self.locks.table();
        // Another call of the same claim may have taken its place.
        if table.calls.get(&self.claim).is_some_and(|(round, _)| *round == self.round) {
            table.calls.remove(&self.claim);
        }
    }
}

impl Locks {
    pub(super) fn new(handle: &Handle, waiting: Watchers) -> Self {
        Self::of(handle.leadership().clone(), handle.clock_drift(), waiting)
    }

    fn of(leadership: Leadership, clock_drift: u32, waiting: Watchers) -> Self {
        let table = Table {
            grantor: Grantor::default(),
            timers: Timers::new(|_| false),
            calls: BTreeMap::new(),
            round: 0,
        };
        Self(Arc::new(Desk {
            config: Config::new(clock_drift),
            leadership,
            table: Mutex::new(table),
            changed: Notify::new(),
            waiting,
        }))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.0.table)
    }

    /// The term in which this node leads, by the clock at this moment.
    fn lease(&self) -> Option<Term> {
        let state = self.0.leadership.state();
        state.is_leader().then_some(state.term)
    }

    /// Hands the grantor an event, and answers the calls that wait. Returns the answer to the call of this round.
    fn handle(&self, table: &mut Table, event: Event, round: Round) -> Option<Answer> {
        let mut out = Vec::new();
        table.grantor.handle(&self.0.config, self.lease(), event, &mut out);
        let mut own = None;
        for effect in out {
            match effect {
                Effect::Answer { answer, .. } if answer.round == round => own = Some(answer),
                Effect::Answer { answer, .. } => {
                    let waits = table.calls.get(&answer.claim);
                    if waits.is_some_and(|(round, _)| *round == answer.round)
                        && let Some((_, call)) = table.calls.remove(&answer.claim)
                    {
                        // Its client may have gone. If it calls again, it is told again.
                        let _ = call.send(answer);
                    }
                }
                Effect::SetTimer { timer, after } => {
                    table.timers.arm(timer, Moment::now().after(after));
                    self.0.changed.notify_one();
                }
                Effect::CancelTimer(timer) => table.timers.disarm(&timer),
            }
        }
        own
    }

    /// Fires timers and follows the lease, until the node ends.
    pub(super) async fn run(self) {
        let mut leadership = self.0.leadership.watch();
        let mut lease = None;
        loop {
            let next = {
                let mut table = self.table();
                if lease != self.lease() {
                    lease = self.lease();
                    self.handle(&mut table, Event::Lease, Round(0));
                    if lease.is_none() {
                        // Their clients look for the leader.
                        table.calls.clear();
                    }
                }
                self.fire_due(&mut table);
                table.timers.next_due()
            };
            let wait = next.map_or(LONG, |due| due.since(Moment::now()));
            tokio::select! {
                changed = leadership.changed() => if changed.is_err() { return },
                () = self.0.changed.notified() => {}
                () = sleep(wait) => {}
            }
        }
    }

    fn fire_due(&self, table: &mut Table) {
        let now = Moment::now();
        while let Some(timer) = table.timers.pop(now) {
            self.handle(table, Event::Timer(timer), Round(0));
        }
    }

    /// Answers a call: at once, or when the lock is there or the time has passed.
    async fn answer(
        &self,
        lock: &LockName,
        claim: ClaimId,
        request: Request,
        by: (IpAddr, String),
        wait: Duration,
    ) -> Answer {
        let (client, owner) = by;
        let wait = wait.min(Duration::from_nanos(self.0.config.keep_interval().as_nanos()));
        let place = (!wait.is_zero()).then(|| self.0.waiting.admit(client)).flatten();
        let (answer, arrival) = {
            let mut table = self.table();
            self.fire_due(&mut table);
            table.round += 1;
            let round = Round(table.round);
            let origin = Origin(match client {
                IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
                IpAddr::V6(address) => address.to_bits(),
            });
            let by = Caller { origin, owner: owner.into() };
            let shown = match request {
                Request::Acquire { ticket } => ticket,
                Request::Keep { .. } | Request::Release => None,
            };
            let call = Call { claim, round, request };
            let event = Event::Call { lock: lock.clone(), call, by };
            let answer = self.handle(&mut table, event, round).unwrap_or(Answer {
                claim,
                round,
                term: table.grantor.term(),
                verdict: Verdict::NotLeader,
            });
            // A client that does not know its place must learn it first, to show it to the next leader.
            let waits =
                matches!(answer.verdict, Verdict::Waiting { ticket, .. } if shown == Some(ticket));
            let arrival = (waits && place.is_some()).then(|| {
                let (tell, arrival) = oneshot::channel();
                table.calls.insert(claim, (round, tell));
                (arrival, Waiting { locks: self, claim, round })
            });
            (answer, arrival)
        };
        let Some((arrival, _waiting)) = arrival else { return answer };
        match timeout(wait, arrival).await {
            Ok(Ok(granted)) => granted,
            // It no longer leads, or another call of the same claim waits.
            Ok(Err(_)) => Answer { verdict: Verdict::NotLeader, ..answer },
            Err(_) => Answer { verdict: self.still_waiting(lock, &answer), ..answer },
        }
    }

    /// The answer to a call whose time has passed.
    fn still_waiting(&self, lock: &LockName, answer: &Answer) -> Verdict {
        let table = self.table();
        let lock = table.grantor.locks().get(lock);
        let place = lock.and_then(|lock| {
            let mut waiters = lock.waiters().enumerate();
            waiters.find(|(_, (_, claim))| claim.id == answer.claim)
        });
        match place {
            Some((ahead, (ticket, _))) if self.lease() == Some(answer.term) => {
                Verdict::Waiting { ticket, ahead, requeued: false }
            }
            _ => Verdict::NotLeader,
        }
    }

    /// The locks, if this node leads.
    fn list(&self) -> Option<LockList> {
        let table = self.table();
        let term = self.lease().filter(|&term| term == table.grantor.term())?;
        let locks = table.grantor.locks().iter().map(|(name, lock)| LockReport {
            name: name.to_string(),
            holder: lock.holder().and_then(|(fence, claim)| {
                let FencingToken(token) = token_of(fence)?;
                Some(HolderReport { owner: claim.by.owner.to_string(), token })
            }),
            waiters: lock
                .waiters()
                .map(|(ticket, claim)| WaiterReport {
                    owner: claim.by.owner.to_string(),
                    ticket: ticket.into(),
                })
                .collect(),
        });
        let locks = locks.collect();
        Some(LockList { term: term.0, settling: table.grantor.settles(), locks })
    }

    /// An answer as a response.
    fn respond(&self, app: &App, answer: &Answer) -> Result<Response, Problem> {
        let term = answer.term.0;
        match answer.verdict {
            Verdict::Held(fence) => {
                let out = || Kind::TooManyLocks.with_detail("there are no fencing tokens left");
                let FencingToken(token) = token_of(fence).ok_or_else(out)?;
                let lease_ms = self.0.config.lease.as_nanos() / 1_000_000;
                Ok(Json(LockAnswer::Held { term, token, lease_ms }).into_response())
            }
            Verdict::Waiting { ticket, ahead, requeued } => {
                let settling = self.table().grantor.settles();
                let ticket = ticket.into();
                let answer = LockAnswer::Waiting { term, ticket, ahead, requeued, settling };
                Ok((StatusCode::ACCEPTED, Json(answer)).into_response())
            }
            Verdict::Released => Ok(Json(Released { term }).into_response()),
            Verdict::Gone => {
                let detail = "this claim does not hold the lock any more: it was not kept in time";
                let mut response = Kind::LockLost.with_detail(detail).into_response();
                response.headers_mut().insert(TERM_HEADER, HeaderValue::from(term));
                Ok(response)
            }
            Verdict::Full(full) => {
                Err(Kind::TooManyLocks.with_detail(format!("{full}; try again later")))
            }
            Verdict::NotLeader => Err(not_leader(&app.handle.status())),
        }
    }
}

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(acquire))
        .routes(routes!(keep))
        .routes(routes!(release))
}

fn parse_name(name: &str) -> Result<LockName, Problem> {
    name.parse().map_err(|problem: String| Kind::BadLock.with_detail(problem))
}

fn claim_of(text: &str) -> Result<ClaimId, Problem> {
    let detail = "claim: must be 32 hexadecimal digits, drawn at random for each claim";
    parse_claim(text).ok_or_else(|| Kind::BadLock.with_detail(detail))
}

fn owner_of(owner: Option<&str>) -> Result<String, Problem> {
    let owner = owner.unwrap_or_default();
    let detail = || format!("owner: must be at most {LONGEST_OWNER} bytes of plain text");
    is_owner(owner).then(|| owner.to_owned()).ok_or_else(|| Kind::BadLock.with_detail(detail()))
}

impl<T> OpenCall<T> {
    /// Makes a request to the grantor, as the fields of the call say.
    async fn ask(
        &self,
        request: Request,
        [lock, claim]: [&str; 2],
        owner: Option<&str>,
        wait: Option<&str>,
    ) -> Result<Response, Problem> {
        let (lock, claim) = (parse_name(lock)?, claim_of(claim)?);
        let wait = wait.map_or(Ok(Duration::ZERO), |wait| parse_time("wait", wait))?;
        let by = (self.connection.client(), owner_of(owner)?);
        let answer = self.app.locks.answer(&lock, claim, request, by, wait).await;
        self.app.locks.respond(&self.app, &answer)
    }
}

/// The locks that are held or waited for.
#[utoipa::path(get, path = "/v1/locks", tag = "locks", responses(
    (status = 200, description = "This node leads.", body = LockList),
    (status = 409, description = "This node does not lead; the answer says which one does.", body = Problem),
))]
async fn list(State(app): State<App>) -> Result<Json<LockList>, Problem> {
    app.locks.list().map(Json).ok_or_else(|| not_leader(&app.handle.status()))
}

/// A lock, or a place in its queue. Repeat the call while it waits, with the ticket of the last answer: a claim that is not
/// heard of for a lease is forgotten.
#[utoipa::path(post, path = "/v1/locks/{name}", tag = "locks", request_body = Acquire,
    params(("name" = String, Path, description = "The lock: 1 to 64 letters, digits, `-`, `_` or `.`")),
    responses(
        (status = 200, description = "The claim holds the lock.", body = LockAnswer),
        (status = 202, description = "It waits.", body = LockAnswer),
        (status = 409, description = "This node does not lead; the answer says which one does.", body = Problem),
        (status = 422, description = "The name, the claim, the owner or the time is wrong.", body = Problem),
        (status = 429, description = "There are too many locks, waiting claims, or claims of this client.", body = Problem),
    ))]
async fn acquire(Path(name): Path<String>, call: OpenCall<Acquire>) -> Result<Response, Problem> {
    let Acquire { claim, wait, ticket, owner } = &call.body;
    let request = Request::Acquire { ticket: ticket.map(Into::into) };
    call.ask(request, [&name, claim], owner.as_deref(), wait.as_deref()).await
}

/// Keeps a lock for another lease, from the sending of the request. A new leader learns of it by this call.
#[utoipa::path(post, path = "/v1/locks/{name}/keep", tag = "locks", request_body = Keep,
    params(("name" = String, Path, description = "The lock.")),
    responses(
        (status = 200, description = "The claim holds the lock.", body = LockAnswer),
        (status = 409, description = "This node does not lead; the answer says which one does.", body = Problem),
        (status = 410, description = "The claim does not hold the lock any more.", body = Problem),
        (status = 422, description = "The name, the claim or the owner is wrong.", body = Problem),
    ))]
async fn keep(Path(name): Path<String>, call: OpenCall<Keep>) -> Result<Response, Problem> {
    let Keep { claim, token, owner } = &call.body;
    let request = Request::Keep { fence: fence_of(FencingToken(*token)) };
    call.ask(request, [&name, claim], owner.as_deref(), None).await
}

/// Gives a lock up, or a place in its queue.
#[utoipa::path(post, path = "/v1/locks/{name}/release", tag = "locks", request_body = Release,
    params(("name" = String, Path, description = "The lock.")),
    responses(
        (status = 200, description = "The claim is gone, or was not there.", body = Released),
        (status = 409, description = "This node does not lead; the answer says which one does.", body = Problem),
        (status = 422, description = "The name or the claim is wrong.", body = Problem),
    ))]
async fn release(Path(name): Path<String>, call: OpenCall<Release>) -> Result<Response, Problem> {
    call.ask(Request::Release, [&name, &call.body.claim], None, None).await
}

#[cfg(test)]
mod tests {
    use doyen_core::protocol::Role;
    use doyen_core::time::Span;
    use tokio::sync::watch;

    use super::*;
    use crate::api::Limits;
    use crate::leadership::{LeadershipState, Permits};

    /// The grantor of a leader that grants nothing yet.
    fn settling() -> (watch::Sender<LeadershipState>, Locks) {
        let (announce, state) = watch::channel(LeadershipState {
            role: Some(Role::Leader),
            term: Term(3),
            lease_deadline: Some(Moment::now().after(Span::from_millis(600_000))),
            ..LeadershipState::default()
        });
        let leadership = Leadership::new(state, Permits::default());
        (announce, Locks::of(leadership, 100, Watchers::of_locks(Limits::default())))
    }

    #[tokio::test]
    async fn a_client_that_goes_away_while_it_waits_leaves_nothing_behind() {
        let (_announce, locks) = settling();
        let name: LockName = "a".parse().expect("a name");
        for claim in 1..=100 {
            let claim = ClaimId(claim);
            let call = |ticket, wait| {
                let by = (IpAddr::from([127, 0, 0, 1]), "test".to_owned());
                locks.answer(&name, claim, Request::Acquire { ticket }, by, wait)
            };
            let Verdict::Waiting { ticket, .. } = call(None, Duration::ZERO).await.verdict else {
                panic!("it settles")
            };
            // A connection that ends drops what would answer it.
            let long = Duration::from_secs(3600);
            let waits = timeout(Duration::ZERO, call(Some(ticket), long)).await;
            assert!(waits.is_err(), "it waits");
        }
        assert_eq!(locks.table().calls.len(), 0);
        assert_eq!(locks.0.waiting.count(), 0);
    }
}
