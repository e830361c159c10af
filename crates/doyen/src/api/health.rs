//! Health, for load balancers and process supervisors: 200 is yes, 503 is no.
//!
//! Traffic depends on `/leader`. It compares the lease with the clock at the moment of the request: a process that was
//! paused answers no as soon as it runs again. A leader that is about to transfer leadership answers no as well, because
//! no new work should start there. With an algorithm without leases no node ever answers yes.
//!
//! An answer is true at the moment of the request and does not bind the leader: a transfer of leadership does not wait
//! for clients that asked. A client that needs this asks for a permit ([`super::permit`]).
//!
//! `/groups/NAME/leader` says the same about a group with a leader of its own.
//!
//! `/follower` and `/readyz` say what the loop last published. After a pause of the process, or if the loop hangs, that is
//! out of date, and the answer is no.
//!
//! `HEAD` and `OPTIONS` are answered as `GET` is: load balancers check with any of them.

use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::options;
use axum::{Json, Router};
use doyen_core::members::Term;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::groups::no_such_group;
use super::problem::{Kind, Problem};
use super::report::{Name, TERM_HEADER};
use crate::clock::{Moment, with_unit};
use crate::leadership::LeadershipState;
use crate::node::status::Status;

/// The paths for load balancers, which are answered even if there are too many connections.
const PATHS: [&str; 4] = ["/leader", "/follower", "/livez", "/readyz"];

/// Whether a path is one of them, or the same about a group.
pub(super) fn is_health(path: &str) -> bool {
    let of_group = path.strip_prefix("/groups/").and_then(|rest| rest.strip_suffix("/leader"));
    PATHS.contains(&path) || of_group.is_some()
}

/// A positive answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub(super) struct HealthOk {
    /// The name of this node.
    name: String,
    /// The current term.
    term: u64,
}

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(is_leader))
        .routes(routes!(is_group_leader))
        .routes(routes!(is_follower))
        .routes(routes!(is_alive))
        .routes(routes!(is_ready))
}

/// The same answers to `OPTIONS`, which the document does not repeat.
pub(super) fn options_routes() -> Router<App> {
    Router::new()
        .route("/leader", options(is_leader))
        .route("/groups/{name}/leader", options(is_group_leader))
        .route("/follower", options(is_follower))
        .route("/livez", options(is_alive))
        .route("/readyz", options(is_ready))
        .route_layer(map_response(allow))
}

async fn allow(mut response: Response) -> Response {
    let methods = HeaderValue::from_static("GET, HEAD, OPTIONS");
    response.headers_mut().insert(header::ALLOW, methods);
    response
}

/// An answer, and the term at that moment.
struct Health {
    term: Term,
    answer: Result<HealthOk, Problem>,
}

impl Health {
    /// Whether this node leads. The clock was read for `state` after everything else, which is older.
    fn of_lead(
        status: &Status,
        state: &LeadershipState,
        detail: String,
        leader: Option<Name>,
    ) -> Self {
        let answer = match state.is_leader() {
            true => Ok(HealthOk { name: status.name.clone(), term: state.term.0 }),
            false => Err(Kind::NoLease.with_detail(detail).with_leader(leader)),
        };
        Self { term: state.term, answer }
    }
}

impl IntoResponse for Health {
    fn into_response(self) -> Response {
        ([(TERM_HEADER, self.term.to_string())], self.answer.map(Json)).into_response()
    }
}

/// Whether this node leads: it holds a valid lease and is not about to transfer leadership.
#[utoipa::path(get, path = "/leader", tag = "health", responses(
    (status = 200, description = "This node leads.", body = HealthOk,
        headers(("Doyen-Term" = u64, description = "The term."))),
    (status = 503, description = "It does not.", body = Problem,
        headers(("Doyen-Term" = u64, description = "The term."))),
))]
async fn is_leader(State(app): State<App>) -> Health {
    let status = app.handle.status();
    let state = app.handle.leadership().state();
    let detail = format!("{} does not hold a valid lease", status.name);
    Health::of_lead(&status, &state, detail, Name::of_leader(&status))
}

/// Whether this node leads a group: it holds a valid lease of the group and is not about to give it up.
#[utoipa::path(get, path = "/groups/{name}/leader", tag = "health",
    params(("name" = String, Path, description = "The group.")),
    responses(
        (status = 200, description = "This node leads the group.", body = HealthOk,
            headers(("Doyen-Term" = u64, description = "The term of the grant."))),
        (status = 404, description = "There is no such group.", body = Problem),
        (status = 503, description = "It does not.", body = Problem,
            headers(("Doyen-Term" = u64, description = "The term of the grant."))),
    ))]
async fn is_group_leader(State(app): State<App>, Path(group): Path<String>) -> Health {
    let status = app.handle.status();
    let Some(leadership) = app.handle.group(&group) else {
        return app.unhealthy(no_such_group(&group));
    };
    let state = leadership.state();
    let detail = format!("{} does not lead group {group}", status.name);
    let leader = state.leader.and_then(|leader| Name::of(&status, leader));
    Health::of_lead(&status, &state, detail, leader)
}

/// Whether this node follows a leader.
#[utoipa::path(get, path = "/follower", tag = "health", responses(
    (status = 200, description = "This node follows a leader.", body = HealthOk,
        headers(("Doyen-Term" = u64, description = "The term."))),
    (status = 503, description = "It does not.", body = Problem,
        headers(("Doyen-Term" = u64, description = "The term."))),
))]
async fn is_follower(State(app): State<App>) -> Health {
    let status = app.handle.status();
    if let Some(stale) = app.stale(&status) {
        return stale;
    }
    let detail = match status.leader {
        Some(leader) if leader != status.id => return app.healthy(),
        Some(_) => format!("{} is the leader", status.name),
        None => format!("{} follows no leader", status.name),
    };
    app.unhealthy(Kind::NotFollowing.with_detail(detail).with_leader(Name::of_leader(&status)))
}

/// Whether the event loop of this node is running. If not, only a restart helps.
#[utoipa::path(get, path = "/livez", tag = "health", responses(
    (status = 200, description = "The event loop is running.", body = HealthOk,
        headers(("Doyen-Term" = u64, description = "The term."))),
    (status = 503, description = "It is not.", body = Problem,
        headers(("Doyen-Term" = u64, description = "The term."))),
))]
async fn is_alive(State(app): State<App>) -> Health {
    let detail = match app.observer.silence() {
        None => "the event loop has ended".to_owned(),
        Some(silence) if silence > app.limits.loop_timeout => {
            format!("the event loop has not responded for {}", with_unit(silence))
        }
        Some(_) => return app.healthy(),
    };
    app.unhealthy(Kind::Stuck.with_detail(detail))
}

/// Whether this node knows the leader.
#[utoipa::path(get, path = "/readyz", tag = "health", responses(
    (status = 200, description = "This node knows the leader.", body = HealthOk,
        headers(("Doyen-Term" = u64, description = "The term."))),
    (status = 503, description = "It does not.", body = Problem,
        headers(("Doyen-Term" = u64, description = "The term."))),
))]
async fn is_ready(State(app): State<App>) -> Health {
    let status = app.handle.status();
    if let Some(stale) = app.stale(&status) {
        return stale;
    }
    let detail = match (status.leader, status.rejoin()) {
        (Some(_), _) => return app.healthy(),
        (None, Some(rejoin)) => format!("{} {rejoin}", status.name),
        (None, None) => format!("{} knows no leader", status.name),
    };
    app.unhealthy(Kind::NotReady.with_detail(detail))
}

impl App {
    /// The answer if a status is out of date: the loop hangs, or this process was paused and has not caught up yet.
    fn stale(&self, status: &Status) -> Option<Health> {
        let age = Moment::now().since(status.taken_at);
        (age > self.limits.snapshot_timeout).then(|| {
            let detail = format!("the event loop has published nothing for {}", with_unit(age));
            self.unhealthy(Kind::Stale.with_detail(detail))
        })
    }

    fn healthy(&self) -> Health {
        let status = self.handle.status();
        let answer = Ok(HealthOk { name: status.name.clone(), term: status.term.0 });
        Health { term: status.term, answer }
    }

    fn unhealthy(&self, problem: Problem) -> Health {
        Health { term: self.handle.status().term, answer: Err(problem) }
    }
}
