//! What this node knows: leader, status, members, history, and what its wall clock shows.
//!
//! A snapshot is a moment old when it is read. The remaining time of a lease is computed for every response.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use doyen_core::members::{NodeId, Term};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::accept::prefers_html;
use super::problem::{Kind, Problem};
use crate::clock::{Moment, unix_us};
use crate::leadership::LeadershipState;
use crate::node::status::{Entry, Lease, MemberStatus, Status};
use crate::page;

/// The header with the term, for clients that do not read the body.
pub(super) const TERM_HEADER: HeaderName = HeaderName::from_static("doyen-term");

/// A member, by id and name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Name {
    /// Its id.
    #[schema(value_type = u32)]
    pub id: NodeId,
    /// Its name.
    pub name: String,
}

impl Name {
    pub(super) fn of(status: &Status, id: NodeId) -> Option<Self> {
        status.member(id).map(|member| Self { id, name: member.name.clone() })
    }

    /// The current leader, if it is known.
    pub(super) fn of_leader(status: &Status) -> Option<Self> {
        status.leader.and_then(|leader| Self::of(status, leader))
    }
}

/// The current leader.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LeaderReport {
    /// The leader, as far as this node knows.
    pub leader: Option<Name>,
    /// The current term.
    pub term: u64,
    /// Whether this node is the leader.
    pub here: bool,
    /// This node's lease, if it is the leader and the lease is valid now.
    pub lease: Option<Lease>,
    /// Why that member leads, as text.
    pub why: Option<String>,
}

/// The current leader, in the format of the Kubernetes leader-elector sidecar.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
struct LeaderName {
    /// The leader's name; empty if no leader is known.
    name: String,
}

/// What a wall clock shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ClockReading {
    /// In microseconds since 1970.
    pub unix_us: u64,
}

/// Which entries of the history to return.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct HistoryQuery {
    /// Only entries after this number.
    after: Option<u64>,
    /// The largest number of entries: the first ones after `after`, or the latest without `after`.
    limit: Option<usize>,
}

/// Which member answers; `forward.rs` reads it.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "it describes a parameter")]
struct MemberQuery {
    /// The member that is to answer, by name or id; another one than this needs what an admin command needs.
    member: Option<String>,
}

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(root))
        .routes(routes!(leader))
        .routes(routes!(status))
        .routes(routes!(members))
        .routes(routes!(history))
        .routes(routes!(clock))
}

/// The leader's name, empty if no leader is known; for a browser, a page.
#[utoipa::path(get, path = "/", tag = "status", responses(
    (status = 200, description = "`{\"name\": …}`, or a page if the client prefers HTML.", content(
        (LeaderName = "application/json"), (String = "text/html"),
    )),
))]
async fn root(State(app): State<App>, headers: HeaderMap) -> Response {
    let mut response = if prefers_html(&headers) {
        page::secure(page::index(page::Host::Node, &headers)).await
    } else {
        let status = app.snapshot();
        let name = Name::of_leader(&status).map_or_else(String::new, |leader| leader.name);
        Json(LeaderName { name }).into_response()
    };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    response
}

/// The current leader, its term, and why it leads.
#[utoipa::path(get, path = "/v1/leader", tag = "status", responses(
    (status = 200, description = "As far as this node knows.", body = LeaderReport,
        headers(
            ("ETag" = String, description = "The term."),
            ("Doyen-Term" = u64, description = "The term."),
        )),
))]
async fn leader(State(app): State<App>) -> Response {
    let status = app.snapshot();
    let report = LeaderReport {
        leader: Name::of_leader(&status),
        term: status.term.0,
        here: status.leader == Some(status.id),
        lease: status.lease,
        why: status.why,
    };
    tagged(status.term, Json(report))
}

/// Everything that this node knows.
#[utoipa::path(get, path = "/v1/status", tag = "status", params(MemberQuery), responses(
    (status = 200, description = "As far as this node knows.", body = Status,
        headers(
            ("ETag" = String, description = "The term."),
            ("Doyen-Term" = u64, description = "The term."),
        )),
))]
async fn status(State(app): State<App>) -> Response {
    let status = app.snapshot();
    tagged(status.term, Json(status))
}

/// All members, by id.
#[utoipa::path(get, path = "/v1/members", tag = "status", responses(
    (status = 200, description = "As far as this node knows.", body = Vec<MemberStatus>),
))]
async fn members(State(app): State<App>) -> Json<Vec<MemberStatus>> {
    Json(app.snapshot().members)
}

/// The latest changes of leadership that this node took part in or learned of, the oldest first.
#[utoipa::path(get, path = "/v1/history", tag = "status", params(HistoryQuery, MemberQuery), responses(
    (status = 200, description = "The entries that this node has kept.", body = Vec<Entry>),
    (status = 400, description = "The query is invalid.", body = Problem),
))]
async fn history(
    State(app): State<App>,
    query: Result<Query<HistoryQuery>, QueryRejection>,
) -> Result<Json<Vec<Entry>>, Problem> {
    let Query(HistoryQuery { after, limit }) =
        query.map_err(|error| Kind::BadRequest.with_detail(error.body_text()))?;
    let history = app.handle.history();
    let later = history.iter().filter(|entry| after.is_none_or(|after| entry.number > after));
    let mut entries: Vec<Entry> = later.cloned().collect();
    let limit = limit.unwrap_or(entries.len());
    match after {
        Some(_) => entries.truncate(limit),
        None => drop(entries.drain(..entries.len().saturating_sub(limit))),
    }
    Ok(Json(entries))
}

/// The wall clock of this member, read for this answer; for `doyen clocks`, which compares those of all members.
#[utoipa::path(get, path = "/v1/clock", tag = "status", params(MemberQuery), responses(
    (status = 200, description = "What it shows now.", body = ClockReading),
))]
async fn clock() -> Json<ClockReading> {
    Json(ClockReading { unix_us: unix_us() })
}

impl App {
    /// The latest snapshot, with leader, term and lease from the latest announcement, which is newer.
    fn snapshot(&self) -> Status {
        let mut status = Status::clone(&self.handle.status());
        let LeadershipState { leader, term, role, lease_deadline } =
            self.handle.leadership().state();
        if status.term != term || status.leader != leader {
            status.why = None; // it is about another leader
        }
        (status.leader, status.term) = (leader, term);
        status.role = role.unwrap_or(status.role);
        if leader.is_some() {
            status.last_leader = None;
        }
        status.derive();
        let now = Moment::now();
        let valid = lease_deadline.filter(|&deadline| now < deadline);
        status.lease = valid.map(|deadline| Lease::new(deadline, now));
        status
    }
}

/// A response with the term as its tag, so that a command can be restricted to that term.
fn tagged(term: Term, answer: impl IntoResponse) -> Response {
    ([(header::ETAG, format!("\"{term}\"")), (TERM_HEADER, term.to_string())], answer)
        .into_response()
}
