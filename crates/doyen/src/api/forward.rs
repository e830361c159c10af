//! A request to one member that another member answers.
//!
//! An operator gives a command to the node of the machine that is at hand. What only the leader can do, the node forwards to
//! the leader; and `?member=n2` forwards any request of [`READS`] or [`COMMANDS`] to n2. Both need what admin commands need:
//! the admin socket, or HTTP with the admin secret. The way to the other member is the sealed channel of the election, so no
//! other port has to be open. Any other request that names another member is rejected.
//!
//! ```text
//!   doyen transfer n2 ──▶ n1 (follower)                         n3 (leader)
//!     admin.sock          │  CALL 7: POST /v1/transfer, by …      │
//!                         │ ────────────────────────────────────▶ │  its own router, as if n3 had been asked
//!                         │                     PART 0 of 1, of 7 │
//!                         │ ◀──────────────────────────────────── │
//! ```
//!
//! A call fits into one datagram and is repeated until something is answered (`caller.rs`). It is carried out once at most
//! (`served.rs`). An answer is split into parts, of which a few are sent at a time (`packet.rs`). Nothing is forwarded twice:
//! a member that is not the leader any more says which one is.
//!
//! A member that has the key of the cluster can do more than give commands (SECURITY.md). Where commands must come from the
//! machine itself nevertheless, `forwarded_commands = false` rejects them; reading is permitted even then.

mod caller;
mod packet;
mod served;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use doyen_core::members::{NodeId, SessionId};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::App;
use super::call::read_body;
use super::commands::MemberRef;
use super::keys;
use super::problem::{Kind, Problem};
use super::report::Name;
use super::server::ConnInfo;
use crate::mutex::lock;
use crate::node::Handle;
use crate::node::relay::{RelayError, Relayed};
use crate::node::status::{Status, seconds};
use packet::{LONGEST_ANSWER, Packet};
use served::{Arrival, Served};

pub(super) use caller::{Forwarder, Unanswered};
pub(super) use packet::{Call, Reply};

/// What may be read from another member.
const READS: [&str; 4] = ["/v1/status", "/v1/history", "/v1/diagnosis", "/v1/clock"];

/// The commands that another member may be given.
const COMMANDS: [&str; 13] = [
    "/v1/resign",
    "/v1/transfer",
    "/v1/prefer",
    "/v1/campaign",
    "/v1/drain",
    "/v1/undrain",
    "/v1/pause",
    "/v1/resume",
    "/v1/reload-keys",
    "/v1/reload",
    keys::ADD,
    "/v1/keys/promote",
    "/v1/keys/retire",
];

/// The admin commands that no other member is given, and why.
const NOT_FORWARDED: [(&str, &str); 3] = [
    ("/v1/keys/create", "a key is made on the machine at hand"),
    ("/v1/keys/offer", "it makes a call to another member itself"),
    ("/v1/token", "a fencing token is for a command that this member runs"),
];

/// Those that are for the leader.
const FOR_LEADER: [&str; 3] = ["/v1/resign", "/v1/transfer", "/v1/prefer"];

/// How a query names the member that is to answer.
const MEMBER: &str = "member=";

/// How often old answers are forgotten.
const FORGET: Duration = Duration::from_secs(5);

/// Whether a request may be forwarded.
pub(super) fn is_forwarded(method: &Method, path: &str) -> bool {
    match *method {
        Method::GET => READS.contains(&path),
        Method::POST => COMMANDS.contains(&path),
        _ => false,
    }
}

/// Whether a request names the member that is to answer it: then it needs what an admin command needs.
pub(super) fn names_member(request: &Request) -> bool {
    let uri = request.uri();
    let is_named = |query: &str| query.split('&').any(|pair| pair.starts_with(MEMBER));
    is_forwarded(request.method(), uri.path()) && uri.query().is_some_and(is_named)
}

/// Answers a request here, or has another member answer it.
pub(super) async fn route(State(app): State<App>, request: Request, next: Next) -> Response {
    if let Some(ConnInfo::Forwarded { .. }) = request.extensions().get() {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    app.route(parts, body, next).await.unwrap_or_else(IntoResponse::into_response)
}

impl App {
    async fn route(&self, mut parts: Parts, body: Body, next: Next) -> Result<Response, Problem> {
        let mut named = take_member(&mut parts.uri)?;
        let is_forwarded = is_forwarded(&parts.method, parts.uri.path());
        if let Some(name) = named.take_if(|_| !is_forwarded) {
            self.check_own(name, &parts)?;
        }
        let is_for_leader = FOR_LEADER.contains(&parts.uri.path());
        if named.is_none() && !is_for_leader {
            return Ok(next.run(Request::from_parts(parts, body)).await);
        }
        self.auth.check(&parts, &self.handle.status().name)?;
        // The limit of a body is an extension of the request.
        let body = read_body(Request::from_parts(parts.clone(), body), &self.limits).await?;
        let named = named.map(|name| self.member(&MemberRef::Name(name))).transpose()?;
        let own = self.handle.status().id;
        if let Some(member) = named.as_ref().filter(|member| member.id != own) {
            return self.forward(member, &parts, &body).await;
        }
        let request = Request::from_parts(parts.clone(), Body::from(body.clone()));
        let response = next.run(request).await;
        let leader = response.extensions().get::<Problem>().and_then(Problem::other_leader);
        // One that names this member is for no other.
        match leader.cloned().filter(|leader| named.is_none() && leader.id != own) {
            Some(leader) => self.forward(&leader, &parts, &body).await,
            None => Ok(response),
        }
    }

    /// A request that is not forwarded may name this member and no other, which would not be the one that answers.
    fn check_own(&self, name: String, parts: &Parts) -> Result<(), Problem> {
        let (status, path) = (self.handle.status(), parts.uri.path());
        let why = match NOT_FORWARDED.iter().find(|(command, _)| *command == path) {
            // An admin call is told nothing of the members before its host is checked.
            Some((_, why)) => self.auth.check(parts, &status.name).map(|()| format!(": {why}"))?,
            None => String::new(),
        };
        let Name { id, name } = self.member(&MemberRef::Name(name))?;
        if id == status.id {
            return Ok(());
        }
        let what = format!("{} {path}", parts.method);
        let detail =
            format!("member: {what} is not forwarded to another member{why}; ask {name} itself");
        Err(Kind::BadRequest.with_detail(detail))
    }

    /// Has another member answer a request that was authorized here.
    async fn forward(&self, to: &Name, parts: &Parts, body: &[u8]) -> Result<Response, Problem> {
        let connection = parts.extensions.get::<ConnInfo>().cloned();
        let by = connection.map_or_else(String::new, |connection| connection.to_string());
        let path = parts.uri.path_and_query().map_or("/", |it| it.as_str()).to_owned();
        let if_match = parts.headers.get(header::IF_MATCH);
        let call = Call {
            is_command: parts.method == Method::POST,
            if_match: if_match.and_then(|tag| tag.to_str().ok()).map(str::to_owned),
            body: String::from_utf8_lossy(body).into_owned().into(),
            path,
            by,
        };
        self.ask(to, call).await.map(IntoResponse::into_response)
    }

    /// Has another member answer a call, and logs it if it is a command.
    pub(super) async fn ask(&self, to: &Name, call: Call) -> Result<Reply, Problem> {
        if call.is_command {
            let (node, name, by) = (&self.handle.status().name, &to.name, &call.by);
            let command = call.path.trim_start_matches("/v1/");
            tracing::info!(
                node,
                event = "command-forwarded",
                command,
                member = name,
                address = by,
                "{node}: forwards command `{command}` from {by} to {name}"
            );
        }
        let is_command = call.is_command;
        let reply = self.forwarder.call(to.id, call).await;
        reply.map_err(|why| unanswered(&self.handle.status(), to, is_command, &why))
    }
}

/// Why a member did not answer, as far as this node knows.
fn unanswered(status: &Status, to: &Name, is_command: bool, why: &Unanswered) -> Problem {
    let (name, own) = (&to.name, &status.name);
    let leader = Name::of_leader(status);
    let unclear = match is_command {
        true => "; it may have carried out the command nevertheless",
        false => "",
    };
    let problem = match why {
        Unanswered::Unsent(RelayError::OlderVersion) => Kind::OlderVersion.with_detail(format!(
            "{name} runs an older version, to which nothing can be forwarded: upgrade it, or run this on its machine"
        )),
        Unanswered::Unsent(RelayError::Node(error)) => Kind::Busy.with_detail(error.to_string()),
        Unanswered::Unsent(error) => {
            let why = known_cause(status, to.id).unwrap_or_else(|| error.to_string());
            Kind::Unreachable.with_detail(format!("{name} does not answer {own}: {why}"))
        }
        Unanswered::Silent => Kind::Unreachable.with_detail(format!(
            "{name} does not answer {own}: {}{unclear}",
            silence(status, to.id)
        )),
        Unanswered::Gone => Kind::Unreachable
            .with_detail(format!("{name} no longer knows its answer to {own}{unclear}; try again")),
        Unanswered::Busy => Kind::Busy
            .with_detail(format!("{own} has forwarded too many requests that are not answered yet")),
        Unanswered::TooLong => {
            Kind::TooLarge.with_detail("the command is too long to be forwarded")
        }
    };
    problem.with_leader(leader)
}

/// Why a member does not answer, where that is known, and what to do.
fn known_cause(status: &Status, id: NodeId) -> Option<String> {
    let member = status.member(id)?;
    let rejection = member.rejection().map(|rejection| format!("it {rejection}"));
    rejection.or_else(|| {
        let detour = status.detour(member)?;
        Some(format!("it {}; {}", detour.problem, detour.advice()))
    })
}

/// Why nothing arrives from a member.
fn silence(status: &Status, id: NodeId) -> String {
    let Some(member) = status.member(id) else { return "it is not a member".to_owned() };
    match (known_cause(status, id), member.last_seen_ms) {
        (Some(cause), _) => cause,
        (None, Some(millis)) if member.reachable && millis < 5000 => {
            "it is reachable, but too slow, or its HTTP server has stopped".to_owned()
        }
        (None, Some(millis)) => {
            format!("last seen {} ago (is it running?)", seconds(millis / 1000))
        }
        (None, None) => "never seen since this node started (is it running?)".to_owned(),
    }
}

impl IntoResponse for Reply {
    /// As the other member answered.
    fn into_response(self) -> Response {
        if let Some(problem) = self.problem() {
            return problem.into_response();
        }
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::BAD_GATEWAY);
        let json = HeaderValue::from_static("application/json");
        (status, [(header::CONTENT_TYPE, json)], self.body).into_response()
    }
}

impl Reply {
    /// Why the other member did not do what it was asked.
    pub(super) fn problem(&self) -> Option<Problem> {
        if self.status < 400 { None } else { serde_json::from_str(&self.body).ok() }
    }
}

/// Removes the parameter `member` from the query.
fn take_member(uri: &mut Uri) -> Result<Option<String>, Problem> {
    let Some(query) = uri.query() else { return Ok(None) };
    let is_member = |pair: &&str| pair.starts_with(MEMBER);
    let (named, others): (Vec<&str>, Vec<&str>) = query.split('&').partition(is_member);
    let name = match named[..] {
        [] => return Ok(None),
        [name] => name[MEMBER.len()..].to_owned(),
        _ => return Err(Kind::BadRequest.with_detail("member: give it once")),
    };
    let separator = if others.is_empty() { "" } else { "?" };
    let rest = format!("{}{separator}{}", uri.path(), others.join("&"));
    *uri = rest.parse().map_err(|_| Kind::BadRequest.with_detail("the query is invalid"))?;
    Ok(Some(name))
}

/// Answers the calls of other members, and passes on their answers, until the node ends.
pub(super) async fn serve(
    handle: Handle,
    forwarder: Forwarder,
    router: Router,
    mut relayed: mpsc::Receiver<Relayed>,
) {
    let callee = Callee { handle, router, served: Arc::default() };
    let mut forget = interval(FORGET);
    forget.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let arrived = tokio::select! {
            arrived = relayed.recv() => arrived,
            now = forget.tick() => {
                lock(&callee.served).expire(now.into());
                continue;
            }
        };
        let Some(Relayed { from, session, bytes }) = arrived else { return };
        match Packet::decode(&bytes) {
            Some(Packet::Call { id, call }) => callee.arrive(from, session, id, call).await,
            Some(Packet::Fetch { id, from: part }) => callee.fetch(from, session, id, part).await,
            Some(packet) => forwarder.deliver(from, packet),
            // A later version may have other packets.
            None => {}
        }
    }
}

/// Carries out calls of other members.
#[derive(Clone)]
struct Callee {
    handle: Handle,
    router: Router,
    served: Arc<Mutex<Served>>,
}

impl Callee {
    async fn arrive(&self, from: NodeId, session: SessionId, id: u64, call: Call) {
        let arrival = lock(&self.served).arrive(from, session, id, Instant::now().into());
        match arrival {
            Arrival::New => {
                let callee = self.clone();
                tokio::spawn(async move {
                    let reply = callee.execute(from, call).await;
                    let bytes: Arc<[u8]> = reply.encode().into();
                    let now = Instant::now().into();
                    lock(&callee.served).finish(from, session, id, Arc::clone(&bytes), now);
                    callee.send(from, session, packet::parts(id, &bytes, 0)).await;
                });
            }
            Arrival::Running => self.send(from, session, vec![Packet::Working { id }]).await,
            Arrival::Answered(bytes) => {
                self.send(from, session, packet::parts(id, &bytes, 0)).await;
            }
            Arrival::Forgotten => self.send(from, session, vec![Packet::Gone { id }]).await,
            Arrival::NoRoom => {}
        }
    }

    async fn fetch(&self, from: NodeId, session: SessionId, id: u64, part: u16) {
        let answer = lock(&self.served).answer(from, session, id);
        let packets = match answer {
            Some(bytes) => packet::parts(id, &bytes, part),
            None => vec![Packet::Gone { id }],
        };
        self.send(from, session, packets).await;
    }

    /// What cannot be sent is like what is lost: it is asked for again.
    async fn send(&self, to: NodeId, session: SessionId, packets: Vec<Packet>) {
        for packet in packets {
            let _ = self.handle.relay(to, Some(session), packet.encode()).await;
        }
    }

    /// Has this node's own router answer.
    async fn execute(&self, from: NodeId, call: Call) -> Reply {
        let by = format!("{} on {}", call.caller(), self.handle.status().name_of(from));
        let method = if call.is_command { Method::POST } else { Method::GET };
        let mut request = Request::builder()
            .method(method)
            .uri(&call.path)
            .extension(ConnInfo::Forwarded { by: by.into() });
        if !call.body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        if let Some(tag) = &call.if_match {
            request = request.header(header::IF_MATCH, tag);
        }
        let request = request.body(Body::from(Bytes::from_owner(call.body))).ok();
        let request = request.filter(|it| is_forwarded(it.method(), it.uri().path()));
        let Some(request) = request else {
            let detail = "this member does not answer that for another one";
            return Kind::NotFound.with_detail(detail).into();
        };
        let Ok(response) = TowerToHyperService::new(self.router.clone()).call(request).await;
        let status = response.status().as_u16();
        match to_bytes(response.into_body(), LONGEST_ANSWER).await {
            Ok(body) => Reply { status, body: String::from_utf8_lossy(&body).into_owned() },
            Err(_) => Reply::too_long(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use utoipa::openapi::PathItem;

    use super::*;

    #[test]
    fn a_member_is_named_in_the_query_once() {
        let take = |uri: &'static str| {
            let mut uri = Uri::from_static(uri);
            take_member(&mut uri).map(|name| (name, uri.to_string()))
        };
        let taken = |name: Option<&str>, uri: &str| (name.map(str::to_owned), uri.to_owned());
        assert_eq!(take("/v1/status").unwrap(), taken(None, "/v1/status"));
        assert_eq!(take("/v1/status?member=n2").unwrap(), taken(Some("n2"), "/v1/status"));
        let both = take("/v1/history?limit=3&member=n2&after=1").unwrap();
        assert_eq!(both, taken(Some("n2"), "/v1/history?limit=3&after=1"));
        assert_eq!(take("/x?member=a&member=b").unwrap_err().status, 400);
    }

    #[test]
    fn nothing_is_forwarded_but_what_is_listed() {
        for path in COMMANDS {
            assert!(is_forwarded(&Method::POST, path) && !is_forwarded(&Method::GET, path));
        }
        for path in ["/v1/token", "/v1/permit", "/v1/watch", "/metrics", "/", "/v1/status/"] {
            assert!(!is_forwarded(&Method::POST, path) && !is_forwarded(&Method::GET, path));
        }
        assert!(FOR_LEADER.iter().all(|path| COMMANDS.contains(path)));
    }

    #[test]
    fn every_admin_command_is_forwarded_or_says_why_not() {
        let document = crate::api::openapi();
        let is_admin = |item: &PathItem| item.post.as_ref().is_some_and(|it| it.security.is_some());
        let admin = document.paths.paths.iter().filter(|(_, item)| is_admin(item));
        let admin: BTreeSet<&str> = admin.map(|(path, _)| path.as_str()).collect();
        let kept = NOT_FORWARDED.iter().map(|(path, _)| *path);
        assert!(kept.clone().all(|path| !COMMANDS.contains(&path)));
        assert_eq!(admin, COMMANDS.into_iter().chain(kept).collect());
    }
}
