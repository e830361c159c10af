//! A claim to a lock, in a thread of its own: the host of the core's [`Client`].
//!
//! The thread makes one call at a time and blocks meanwhile. That may make it late, which the rules allow: what it has
//! published says by itself when it ends.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use doyen_core::lock::client::{Client, Effect, Event, Timer};
use doyen_core::lock::{Answer, Call, ClaimId, Config, LockName, Request, Round, Ticket, Verdict};
use doyen_core::members::Term;
use doyen_core::protocol::{Fence, Section};
use doyen_core::time::Span;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tracing::{debug, info, warn};
use ureq::Agent;

use super::wire::{self, LockAnswer, Place, show_claim};
use crate::clock::Moment;
use crate::guardian::lease_file::{Lease, LeaseFile};
use crate::http_client::Authorities;
use crate::leadership::{FencingToken, fence_of, token_of};
use crate::throttle::Throttle;

/// How long a node may let a waiting client wait for an answer: short, so that a paused leader is noticed.
const POLL: Duration = Duration::from_secs(1);
/// How long any other answer may take, or that one be late.
const PATIENCE: Duration = Duration::from_secs(1);
/// The least time between two calls of a waiting client that is answered at once.
const PACE: Span = Span::from_millis(300);
/// How long to wait when no node answers as the leader.
const RETRY: Span = Span::from_millis(100);
/// How long no node answers as the leader before that is logged: as long as an ordinary failover takes, and some more.
const SILENCE: Duration = Duration::from_secs(1);
/// How long a lock that is not needed any more is tried to be released. Without an answer it expires.
const RELEASE: Duration = Duration::from_secs(2);
/// The longest answer, in bytes.
const LONGEST_ANSWER: u64 = 16 * 1024;

/// Why there is no lock.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LockError {
    /// The name of the lock or of a node cannot be used.
    #[error("{0}")]
    Invalid(String),
    /// The thread cannot be started, or there are no random numbers.
    #[error("cannot wait for a lock: {0}")]
    System(String),
    /// A node refuses the call.
    #[error("{0}")]
    Refused(String),
    /// The lock was lost, or released.
    #[error("the lock is not held any more")]
    Over,
}

/// A claim that has not been made.
#[derive(Debug)]
pub struct Builder {
    name: LockName,
    nodes: Vec<String>,
    owner: String,
    lease_file: Option<LeaseFile>,
    authorities: Authorities,
}

impl Builder {
    /// To the lock `name`, of the cluster that these nodes belong to: `http://HOST:PORT`, or `https://HOST:PORT` of a proxy.
    /// Name all that may lead.
    pub fn new(
        name: &str,
        nodes: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, LockError> {
        let nodes: Vec<String> = nodes.into_iter().map(Into::into).collect();
        if nodes.is_empty() {
            return Err(LockError::Invalid("which nodes? Name at least one".to_owned()));
        }
        let is_url = |node: &str| node.starts_with("http://") || node.starts_with("https://");
        if let Some(wrong) = nodes.iter().find(|node| !is_url(node)) {
            let remedy = "write for example http://10.0.0.1:7400";
            return Err(LockError::Invalid(format!("`{wrong}` is not a node; {remedy}")));
        }
        let name = name.parse().map_err(LockError::Invalid)?;
        let owner = format!("process {}", std::process::id());
        let authorities = Authorities::default();
        Ok(Self { name, nodes, owner, lease_file: None, authorities })
    }

    /// The certificate authorities that it trusts for `https://`.
    #[must_use]
    pub fn authorities(self, authorities: Authorities) -> Self {
        Self { authorities, ..self }
    }

    /// What the client calls itself, for people who list the locks.
    #[must_use]
    pub fn owner(self, owner: &str) -> Self {
        Self { owner: wire::to_owner(owner), ..self }
    }

    /// Where it publishes until when it holds the lock, for a guardian and for other programs of this machine.
    #[must_use]
    pub fn lease_file(self, lease_file: impl Into<Option<LeaseFile>>) -> Self {
        Self { lease_file: lease_file.into(), ..self }
    }

    /// Begins to wait for the lock.
    pub fn start(self) -> Result<Claim, LockError> {
        let system = |error: &dyn std::fmt::Display| LockError::System(error.to_string());
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| system(&error))?;
        let (publish, state) = watch::channel(ClaimState::default());
        let (stop, stopped) = mpsc::channel();
        let worker = Worker {
            // A client does not wait for others, so its clock's error is theirs to wait out.
            config: Config::new(0),
            client: Client::default(),
            timers: BTreeMap::new(),
            call: None,
            silence: Silence::default(),
            ending: Ending::Released,
            asks: Asker::new(self.name, self.nodes, self.owner, self.authorities)
                .map_err(LockError::Invalid)?,
            publish,
            lease_file: self.lease_file,
            stopped,
        };
        let claim = ClaimId(u128::from_le_bytes(random));
        thread::Builder::new()
            .name("doyen-lock".to_owned())
            .spawn(move || worker.run(claim))
            .map_err(|error| system(&error))?;
        Ok(Claim { state, _stop: stop })
    }
}

/// The state of a claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClaimState {
    /// It waits.
    Waiting {
        /// Its place, if the leader has given it one.
        ticket: Option<Ticket>,
        /// It came too late to a new leader to keep the place that it had, and queued at the end.
        requeued: bool,
        /// Why it could not ask the leader, when it last tried.
        obstacle: Option<String>,
    },
    /// It holds the lock until the deadline, unless it is kept.
    Held(Held),
    /// It neither holds the lock nor waits for it any more.
    Over(Ending),
}

impl Default for ClaimState {
    fn default() -> Self {
        Self::Waiting { ticket: None, requeued: false, obstacle: None }
    }
}

/// A lock that is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// The term and the number of the grant.
    pub fence: Fence,
    /// The same as one number, for whatever the lock protects.
    pub token: FencingToken,
    /// When the lock ends if it is not kept.
    pub deadline: Moment,
}

/// How a claim ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// It was released.
    Released,
    /// The lock was lost: it could not be kept in time, or a new leader did not hear of it in time.
    Lost,
    /// A node refuses the call, with this reason.
    Refused(String),
}

/// A claim to a lock. Dropping it gives the lock up, or the place in its queue.
#[derive(Debug)]
pub struct Claim {
    state: watch::Receiver<ClaimState>,
    /// The thread ends when this is dropped.
    _stop: mpsc::Sender<()>,
}

impl Claim {
    /// What has become of it. A lock that is held ends by the clock.
    pub fn state(&self) -> ClaimState {
        self.state.borrow().clone()
    }

    /// Every change from now on, the latest first; a lock that is kept is one, too.
    pub fn watch(&self) -> watch::Receiver<ClaimState> {
        self.state.clone()
    }

    /// Waits until it holds the lock.
    pub async fn acquired(self) -> Result<Guard, LockError> {
        let mut state = self.state.clone();
        let is_decided = |state: &ClaimState| !matches!(state, ClaimState::Waiting { .. });
        let decided = state.wait_for(is_decided).await.map(|state| state.clone());
        match decided {
            Ok(ClaimState::Held(held)) => Ok(Guard { claim: self, token: held.token }),
            Ok(ClaimState::Over(Ending::Refused(why))) => Err(LockError::Refused(why)),
            _ => Err(LockError::Over),
        }
    }

    /// Gives the lock up, and waits until a leader knows, for a short time at most.
    pub async fn release(self) {
        let mut state = self.state.clone();
        drop(self);
        let is_over = |state: &ClaimState| matches!(state, ClaimState::Over(_));
        let _ = tokio::time::timeout(RELEASE + POLL + PATIENCE * 2, state.wait_for(is_over)).await;
    }
}

/// A lock that was acquired. Dropping it releases the lock.
#[derive(Debug)]
pub struct Guard {
    claim: Claim,
    token: FencingToken,
}

impl Guard {
    /// The fencing token of this grant, for whatever the lock protects.
    pub fn token(&self) -> FencingToken {
        self.token
    }

    /// Whether the lock is held at this instant. The next one may differ.
    pub fn is_held(&self) -> bool {
        self.deadline().is_some_and(|deadline| Moment::now() < deadline)
    }

    /// When the lock ends if it is not kept; none if it has been lost.
    pub fn deadline(&self) -> Option<Moment> {
        match self.claim.state() {
            ClaimState::Held(held) => Some(held.deadline),
            ClaimState::Waiting { .. } | ClaimState::Over(_) => None,
        }
    }

    /// Waits until the lock is lost.
    pub async fn lost(&self) {
        let mut state = self.claim.watch();
        let _ = state.wait_for(|state| matches!(state, ClaimState::Over(_))).await;
    }

    /// Releases the lock, and waits until a leader knows, for a short time at most.
    pub async fn release(self) {
        self.claim.release().await;
    }
}

struct Worker {
    config: Config,
    client: Client,
    timers: BTreeMap<Timer, Moment>,
    /// What is to be sent next.
    call: Option<Call>,
    silence: Silence,
    /// How it ends, if it ends now.
    ending: Ending,
    asks: Asker,
    publish: watch::Sender<ClaimState>,
    lease_file: Option<LeaseFile>,
    stopped: mpsc::Receiver<()>,
}

impl Worker {
    fn run(mut self, claim: ClaimId) {
        self.handle(Event::Request(claim));
        self.ending = Ending::Lost;
        while !self.client.section().is_outside() {
            if let Some(call) = self.call.take() {
                let sent = Moment::now();
                let answered = self.asks.ask(&call);
                // What is due by now comes first.
                self.fire_due();
                self.take(answered, sent);
            }
            self.wait();
        }
        self.release();
        let ending = self.ending.clone();
        self.publish.send_replace(ClaimState::Over(ending));
    }

    /// Tells a leader that the lock is not needed any more, if that is what is to be sent: a KEEP that was due when the lock
    /// turned out to be gone would be a call of a client that has ended.
    fn release(&mut self) {
        let release = self.call.take().filter(|call| call.request == Request::Release);
        let Some(call) = release else { return };
        let begun = Moment::now();
        while matches!(self.asks.ask(&call), Reply::None(_)) && Moment::now().since(begun) < RELEASE
        {
            thread::sleep(Duration::from_nanos(RETRY.as_nanos()));
        }
    }

    fn take(&mut self, reply: Reply, sent: Moment) {
        if !matches!(reply, Reply::None(_)) {
            self.silence = Silence::default();
        }
        match reply {
            Reply::Answer(answer) => self.take_answer(answer, sent),
            Reply::Full(why) => {
                warn!(event = "lock-waits", reason = %why, "lock {}: {why}; trying again", self.asks.name);
                self.call_again_at(sent.after(Span::from_millis(1_000)));
            }
            Reply::None(why) => {
                if self.silence.is_to_be_logged(sent) {
                    warn!(event = "lock-waits", reason = %why, "lock {}: {why}", self.asks.name);
                }
                self.publish.send_if_modified(|state| match state {
                    ClaimState::Waiting { obstacle, .. } => {
                        obstacle.replace(why.clone()).is_none_or(|last| last != why)
                    }
                    ClaimState::Held(_) | ClaimState::Over(_) => false,
                });
                self.call_again_at(Moment::now().after(RETRY));
            }
            Reply::Refused(why) => {
                self.ending = Ending::Refused(why);
                self.handle(Event::Exit);
                // There is nothing to release where it was refused.
                self.call = None;
            }
        }
    }

    fn take_answer(&mut self, answer: Answer, sent: Moment) {
        let place = match answer.verdict {
            Verdict::Waiting { ticket, ahead, requeued } => Some((ticket, ahead, requeued)),
            _ => None,
        };
        self.handle(Event::Answer(answer));
        let Some((ticket, ahead, is_late)) =
            place.filter(|_| self.client.section() == Section::Waiting)
        else {
            return;
        };
        let (known, requeued) = match *self.publish.borrow() {
            ClaimState::Waiting { ticket, requeued, .. } => (ticket, requeued),
            ClaimState::Held(_) | ClaimState::Over(_) => (None, false),
        };
        let lock = &self.asks.name;
        if is_late {
            warn!(
                event = "lock-requeued", lock = %lock, ticket = %ticket,
                "lock {lock}: came too late to the new leader to keep its place; queued at the end, {ahead} ahead (ticket {ticket})"
            );
        } else if known != Some(ticket) {
            info!(event = "lock-queued", lock = %lock, ticket = %ticket, "lock {lock}: waiting, {ahead} ahead (ticket {ticket})");
        }
        // What it did not know it shows at once: only then the next answer waits for the lock.
        let next = if known == Some(ticket) { sent.after(PACE) } else { sent };
        self.call_again_at(next);
        let requeued = requeued || is_late;
        let (ticket, obstacle) = (Some(ticket), None);
        self.publish.send_replace(ClaimState::Waiting { ticket, requeued, obstacle });
    }

    /// Calls before it is time. A call more does no harm.
    fn call_again_at(&mut self, at: Moment) {
        let at = at.max(Moment::now());
        self.timers.entry(Timer::Keep).and_modify(|due| *due = at.min(*due));
    }

    /// Waits for the next timer, unless there is a call to make, or until the claim is given up.
    fn wait(&mut self) {
        let next = self.timers.values().min().copied().filter(|_| self.call.is_none());
        let wait = next.map_or(Duration::ZERO, |due| due.since(Moment::now()));
        match self.stopped.recv_timeout(wait) {
            Err(RecvTimeoutError::Timeout) => self.fire_due(),
            Ok(()) | Err(RecvTimeoutError::Disconnected) => {
                self.ending = Ending::Released;
                self.handle(Event::Exit);
            }
        }
    }

    /// Fires what is due, leases first.
    fn fire_due(&mut self) {
        let now = Moment::now();
        let due: Vec<Timer> =
            self.timers.iter().filter(|(_, at)| **at <= now).map(|(timer, _)| *timer).collect();
        for timer in due {
            if self.timers.remove(&timer).is_some() {
                self.handle(Event::Timer(timer));
            }
        }
    }

    fn handle(&mut self, event: Event) {
        let mut out = Vec::new();
        self.client.handle(&self.config, event, &mut out);
        for effect in out {
            match effect {
                Effect::Call(call) => self.call = Some(call),
                Effect::SetTimer { timer, after } => {
                    self.timers.insert(timer, Moment::now().after(after));
                }
                Effect::CancelTimer(timer) => {
                    self.timers.remove(&timer);
                }
                // Below, when its timer is known; calls are made later.
                Effect::Announce(_) => {}
            }
        }
        self.announce();
    }

    /// Publishes until when the lock is held: first for other programs, which may be many.
    fn announce(&mut self) {
        let section = self.client.section();
        let deadline =
            self.client.hold().and_then(|round| self.timers.get(&Timer::Hold(round)).copied());
        let fence = section.fence();
        let held = fence.zip(deadline).and_then(|(fence, deadline)| {
            token_of(fence).map(|token| Held { fence, token, deadline })
        });
        if let Some(file) = &mut self.lease_file {
            let lease = held.map(|held| Lease { deadline: held.deadline, term: held.fence.term.0 });
            if let Err(error) = file.publish(lease) {
                warn!(event = "lease-file-not-written", reason = %error, "cannot write the lease file {}: {error}", file.path().display());
            }
        }
        if let Some(held) = held {
            let state = ClaimState::Held(held);
            self.publish.send_if_modified(|last| {
                let is_new = *last != state;
                *last = state.clone();
                is_new
            });
        }
    }
}

/// The result of a call.
enum Reply {
    Answer(Answer),
    /// The leader has no room.
    Full(String),
    /// No node answers as the leader, for this reason.
    None(String),
    /// A node refuses it.
    Refused(String),
}

/// Since when no node has answered as the leader.
#[derive(Default)]
struct Silence {
    since: Option<Moment>,
    is_logged: bool,
}

impl Silence {
    /// A call that was sent then has failed. Whether that is to be logged: once, when it has lasted.
    fn is_to_be_logged(&mut self, sent: Moment) -> bool {
        let since = *self.since.get_or_insert(sent);
        let is_due = !self.is_logged && Moment::now().since(since) >= SILENCE;
        self.is_logged |= is_due;
        is_due
    }
}

/// Why a node did not answer as the leader.
struct Failure {
    why: String,
    /// It has said which member leads.
    knows_leader: bool,
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self { why, knows_leader: false }
    }
}

/// The way to the leader.
struct Asker {
    name: LockName,
    owner: String,
    nodes: Vec<String>,
    /// The node that answered as the leader last, or is asked next.
    current: usize,
    agent: Agent,
    authorities: Authorities,
    /// Nodes whose certificate is wrong.
    distrusted: Throttle<usize>,
}

impl Asker {
    fn new(
        name: LockName,
        nodes: Vec<String>,
        owner: String,
        authorities: Authorities,
    ) -> Result<Self, String> {
        let config = authorities.client(&nodes)?.timeout_connect(Some(PATIENCE)).build();
        let (agent, distrusted) = (config.new_agent(), Throttle::new());
        Ok(Self { name, owner, nodes, current: 0, agent, authorities, distrusted })
    }

    /// Asks every node once, until one of them answers as the leader.
    fn ask(&mut self, call: &Call) -> Reply {
        let mut failures = BTreeMap::new();
        for _ in 0..self.nodes.len() {
            match self.ask_one(call) {
                Ok(reply) => return reply,
                Err(failure) => {
                    let (node, why) = (&self.nodes[self.current], &failure.why);
                    debug!(event = "node-unreachable", reason = %why, "{node}: {why}");
                    failures.insert(self.current, failure);
                }
            }
            self.current = (self.current + 1) % self.nodes.len();
        }
        Reply::None(self.describe(&failures))
    }

    /// What is wrong if these nodes, which are all, do not answer as the leader.
    fn describe(&self, failures: &BTreeMap<usize, Failure>) -> String {
        let each = failures
            .iter()
            .map(|(&node, Failure { why, .. })| format!("{}: {why}", self.nodes[node]));
        let each = each.collect::<Vec<_>>().join("; ");
        match failures.values().all(|failure| failure.knows_leader) {
            true => format!(
                "none of the nodes that were given leads ({each}). Give the HTTP addresses of all members that may lead, as in \
                 --node {},http://HOST:PORT",
                self.nodes.join(",")
            ),
            false => format!(
                "no node answers as the leader ({each}). Are the nodes running, and do they serve HTTP to this machine (`http`, \
                 `http_open`)?"
            ),
        }
    }

    fn ask_one(&mut self, call: &Call) -> Result<Reply, Failure> {
        let &Call { claim, round, ref request } = call;
        let (id, owner) = (show_claim(claim), Some(self.owner.clone()));
        match *request {
            Request::Acquire { ticket } => {
                let (wait, ticket) =
                    (Some(format!("{}ms", POLL.as_millis())), ticket.map(Place::from));
                let body = wire::Acquire { claim: id, wait, ticket, owner };
                self.post("", &body, POLL + PATIENCE, |answer| of_lock(claim, round, answer), call)
            }
            Request::Keep { fence } => {
                let token = token_of(fence).map_or(0, |FencingToken(token)| token);
                let body = wire::Keep { claim: id, token, owner };
                self.post("/keep", &body, PATIENCE, |answer| of_lock(claim, round, answer), call)
            }
            Request::Release => {
                let body = wire::Release { claim: id };
                let released = |wire::Released { term }| Answer {
                    claim,
                    round,
                    term: Term(term),
                    verdict: Verdict::Released,
                };
                self.post("/release", &body, PATIENCE, released, call)
            }
        }
    }

    fn post<T: DeserializeOwned>(
        &mut self,
        path: &str,
        body: &impl Serialize,
        timeout: Duration,
        read: impl FnOnce(T) -> Answer,
        call: &Call,
    ) -> Result<Reply, Failure> {
        let url = format!("{}/v1/locks/{}{path}", self.nodes[self.current], self.name);
        let body = serde_json::to_string(body).map_err(|error| error.to_string())?;
        let request = self.agent.post(url).header("content-type", "application/json");
        let request = request.config().timeout_global(Some(timeout)).build();
        let mut response = request.send(body).map_err(|error| self.failed(&error))?;
        let status = response.status().as_u16();
        let term =
            response.headers().get("doyen-term").and_then(|it| it.to_str().ok()?.parse().ok());
        let text = response.body_mut().with_config().limit(LONGEST_ANSWER).read_to_string();
        let text = text.map_err(|error| error.to_string())?;
        let problem: Option<Problem> = serde_json::from_str(&text).ok();
        let knows_leader = problem.as_ref().is_some_and(|problem| problem.leader.is_some());
        let detail = problem.map_or_else(|| format!("status {status}"), |problem| problem.detail);
        Ok(match (status, term) {
            (200 | 202, _) => {
                Reply::Answer(read(serde_json::from_str(&text).map_err(|error| error.to_string())?))
            }
            (410, Some(term)) => {
                let (claim, round) = (call.claim, call.round);
                Reply::Answer(Answer { claim, round, term: Term(term), verdict: Verdict::Gone })
            }
            (429, _) => Reply::Full(detail),
            // Wrong for every node, however often it is asked.
            (400 | 403 | 404 | 405 | 413 | 415 | 421 | 422, _) => {
                Reply::Refused(format!("{}: {detail}", self.nodes[self.current]))
            }
            _ => return Err(Failure { why: detail, knows_leader }),
        })
    }
}

impl Asker {
    /// Another node may answer, but a wrong certificate stays wrong.
    fn failed(&mut self, error: &ureq::Error) -> String {
        let Some(why) = self.authorities.describe(error) else {
            return match error {
                ureq::Error::Io(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    "connection refused".to_owned()
                }
                error => error.to_string(),
            };
        };
        if self.distrusted.is_due(self.current) {
            warn!(event = "node-unreachable", reason = %why, "lock {}: cannot reach {}: {why}", self.name, self.nodes[self.current]);
        }
        why
    }
}

#[derive(serde::Deserialize)]
struct Problem {
    detail: String,
    leader: Option<serde::de::IgnoredAny>,
}

fn of_lock(claim: ClaimId, round: Round, answer: LockAnswer) -> Answer {
    let (term, verdict) = match answer {
        LockAnswer::Held { term, token, .. } => {
            (term, Verdict::Held(fence_of(FencingToken(token))))
        }
        LockAnswer::Waiting { term, ticket, ahead, requeued, .. } => {
            (term, Verdict::Waiting { ticket: ticket.into(), ahead, requeued })
        }
    };
    Answer { claim, round, term: Term(term), verdict }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_claim_that_is_over_is_not_kept() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a setting");
        let node = format!("http://{}", listener.local_addr().expect("an address"));
        let name: LockName = "a".parse().expect("a name");
        let (publish, _state) = watch::channel(ClaimState::default());
        let (_stop, stopped) = mpsc::channel();
        let mut worker = Worker {
            config: Config::new(0),
            client: Client::default(),
            timers: BTreeMap::new(),
            call: None,
            silence: Silence::default(),
            ending: Ending::Lost,
            asks: Asker::new(name, vec![node], "test".to_owned(), Authorities::default())
                .expect("plain HTTP needs no authority"),
            publish,
            lease_file: None,
            stopped,
        };
        let claim = ClaimId(7);
        worker.handle(Event::Request(claim));
        let fence = Fence { term: Term(1), number: 1 };
        let answer = |verdict| Answer { claim, round: Round(1), term: Term(1), verdict };
        worker.take_answer(answer(Verdict::Held(fence)), Moment::now());
        // It is time to keep it, and then a late answer says that it is gone.
        worker.timers.insert(Timer::Keep, Moment::default());
        worker.fire_due();
        assert!(worker.call.is_some());
        worker.take_answer(answer(Verdict::Gone), Moment::now());
        assert!(worker.client.section().is_outside());
        worker.release();
        let asked = listener.accept().map(drop).map_err(|error| error.kind());
        assert_eq!(asked, Err(ErrorKind::WouldBlock), "the leader was asked to keep it");
    }
}
