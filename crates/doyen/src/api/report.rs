//! What this node believes and knows, for whoever asks.
//!
//! A snapshot is a moment old when it is read. What is left of a lease is reckoned anew for every answer, by the clock.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use doyen_core::members::{NodeId, Term};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::problem::{Kind, Problem};
use super::{App, page};
use crate::leadership::Reign;
use crate::node::clock::Moment;
use crate::node::status::{Entry, Lease, MemberStatus, Status};

/// A member, so that both people and programs know it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Name {
    /// Its id.
    #[schema(value_type = u32)]
    pub id: NodeId,
    /// Its name.
    pub name: String,
}

impl Name {
    /// The name of `id`, if it is a member.
    pub(super) fn of(status: &Status, id: NodeId) -> Option<Self> {
        status.member(id).map(|member| Self { id, name: member.name.clone() })
    }
}

/// Who leads.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LeaderReport {
    /// Who, as this node believes.
    pub leader: Option<Name>,
    /// In which term.
    pub term: u64,
    /// Whether that is this node.
    pub here: bool,
    /// Its lease, if it is this node and holds one now.
    pub lease: Option<Lease>,
    /// Why that one, in words.
    pub why: Option<String>,
}

/// Who leads, in the manner of the Kubernetes leader-elector sidecar.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
struct LeaderName {
    /// The leader's name; empty if nobody is known to lead.
    name: String,
}

/// Which changes are wanted.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Wanted {
    /// Only those after this number.
    after: Option<u64>,
    /// At most so many: the next ones after that number, the latest if there is none.
    limit: Option<usize>,
}

/// The routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(root))
        .routes(routes!(leader))
        .routes(routes!(status))
        .routes(routes!(members))
        .routes(routes!(history))
}

/// The leader's name, empty if nobody is known to lead; for a browser, a page.
#[utoipa::path(get, path = "/", tag = "status", responses(
    (status = 200, description = "`{\"name\": …}`, or a page for whoever would rather have HTML.", content(
        (LeaderName = "application/json"), (String = "text/html"),
    )),
))]
async fn root(State(app): State<App>, headers: HeaderMap) -> Response {
    let status = app.snapshot();
    let mut response = if page::is_wanted(&headers) {
        page::render(&status, &app.handle.history())
    } else {
        let leader = status.leader.and_then(|leader| Name::of(&status, leader));
        let name = leader.map_or_else(String::new, |leader| leader.name);
        Json(LeaderName { name }).into_response()
    };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    response
}

/// Who leads, in which term and why.
#[utoipa::path(get, path = "/v1/leader", tag = "status", responses(
    (status = 200, description = "As far as this node knows.", body = LeaderReport,
        headers(("ETag" = String, description = "The term."))),
))]
async fn leader(State(app): State<App>) -> Response {
    let status = app.snapshot();
    let report = LeaderReport {
        leader: status.leader.and_then(|leader| Name::of(&status, leader)),
        term: status.term.0,
        here: status.leader == Some(status.id),
        lease: status.lease,
        why: status.why,
    };
    tagged(status.term, Json(report))
}

/// Everything that this node believes and knows.
#[utoipa::path(get, path = "/v1/status", tag = "status", responses(
    (status = 200, description = "As far as this node knows.", body = Status,
        headers(("ETag" = String, description = "The term."))),
))]
async fn status(State(app): State<App>) -> Response {
    let status = app.snapshot();
    tagged(status.term, Json(status))
}

/// Everybody, in the order of their ids.
#[utoipa::path(get, path = "/v1/members", tag = "status", responses(
    (status = 200, description = "As far as this node knows.", body = Vec<MemberStatus>),
))]
async fn members(State(app): State<App>) -> Json<Vec<MemberStatus>> {
    Json(app.snapshot().members)
}

/// The latest changes of leadership that this node took part in or learnt of, the oldest first.
#[utoipa::path(get, path = "/v1/history", tag = "status", params(Wanted), responses(
    (status = 200, description = "What this node remembers.", body = Vec<Entry>),
    (status = 400, description = "The query is wrong.", body = Problem, content_type = "application/problem+json"),
))]
async fn history(
    State(app): State<App>,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<Json<Vec<Entry>>, Problem> {
    let Query(Wanted { after, limit }) =
        wanted.map_err(|error| Kind::BadRequest.because(error.body_text()))?;
    let history = app.handle.history();
    let later = history.iter().filter(|entry| after.is_none_or(|after| entry.number > after));
    let mut wanted: Vec<Entry> = later.cloned().collect();
    let limit = limit.unwrap_or(wanted.len());
    match after {
        Some(_) => wanted.truncate(limit),
        None => drop(wanted.drain(..wanted.len().saturating_sub(limit))),
    }
    Ok(Json(wanted))
}

impl App {
    /// The latest snapshot, with who leads, the term and the lease as they are now, all from the same announcement: that
    /// is made more often than snapshots are.
    fn snapshot(&self) -> Status {
        let mut status = Status::clone(&self.handle.status());
        let Reign { leader, term, role, until } = self.handle.leadership().reign();
        if status.term != term || status.leader != leader {
            status.why = None; // that is about another leader
        }
        (status.leader, status.term) = (leader, term);
        status.role = role.unwrap_or(status.role);
        status.lease = until.and_then(|until| {
            let left = until.since(Moment::now());
            let remaining_ms = left.as_millis() as u64;
            (!left.is_zero()).then_some(Lease { until: until.as_nanos(), remaining_ms })
        });
        status
    }
}

/// An answer that is tagged with the term, so that an order can be given for that term only.
fn tagged(term: Term, answer: impl IntoResponse) -> Response {
    ([(header::ETAG, format!("\"{term}\""))], answer).into_response()
}
