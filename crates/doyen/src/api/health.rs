//! Health, for load balancers and process supervisors: 200 is yes, 503 is no.
//!
//! Traffic depends on `/leader`. It compares the lease with the clock at the moment of the request: a process that was
//! paused answers no as soon as it runs again. A leader that is about to transfer leadership answers no as well, because
//! no new work should start there. With an algorithm without leases no node ever answers yes.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::problem::{Kind, Problem};
use super::report::Name;

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
        .routes(routes!(is_follower))
        .routes(routes!(is_alive))
        .routes(routes!(is_ready))
}

/// Whether this node leads: it holds a valid lease and is not about to transfer leadership.
#[utoipa::path(get, path = "/leader", tag = "health", responses(
    (status = 200, description = "This node leads.", body = HealthOk),
    (status = 503, description = "It does not.", body = Problem, content_type = "application/problem+json"),
))]
async fn is_leader(State(app): State<App>) -> Result<Json<HealthOk>, Problem> {
    let status = app.handle.status();
    // The clock is read last, so that everything else is older.
    match app.handle.leadership().permit() {
        Some(permit) => Ok(Json(HealthOk { name: status.name.clone(), term: permit.term.0 })),
        None => Err(Kind::NoLease
            .with_detail(format!("{} does not hold a valid lease", status.name))
            .with_leader(Name::of_leader(&status))),
    }
}

/// Whether this node follows a leader.
#[utoipa::path(get, path = "/follower", tag = "health", responses(
    (status = 200, description = "This node follows a leader.", body = HealthOk),
    (status = 503, description = "It does not.", body = Problem, content_type = "application/problem+json"),
))]
async fn is_follower(State(app): State<App>) -> Result<Json<HealthOk>, Problem> {
    let status = app.handle.status();
    let detail = match status.leader {
        Some(leader) if leader != status.id => return Ok(app.healthy()),
        Some(_) => format!("{} is the leader", status.name),
        None => format!("{} follows no leader", status.name),
    };
    Err(Kind::NotFollowing.with_detail(detail).with_leader(Name::of_leader(&status)))
}

/// Whether the event loop of this node is running. If not, only a restart helps.
#[utoipa::path(get, path = "/livez", tag = "health", responses(
    (status = 200, description = "The event loop is running.", body = HealthOk),
    (status = 503, description = "It is not.", body = Problem, content_type = "application/problem+json"),
))]
async fn is_alive(State(app): State<App>) -> Result<Json<HealthOk>, Problem> {
    let detail = match app.observer.silence() {
        None => "the event loop has ended".to_owned(),
        Some(silence) if silence > app.limits.loop_timeout => {
            format!("the event loop has not responded for {} s", silence.as_secs())
        }
        Some(_) => return Ok(app.healthy()),
    };
    Err(Kind::Stuck.with_detail(detail))
}

/// Whether this node knows the leader.
#[utoipa::path(get, path = "/readyz", tag = "health", responses(
    (status = 200, description = "This node knows the leader.", body = HealthOk),
    (status = 503, description = "It does not.", body = Problem, content_type = "application/problem+json"),
))]
async fn is_ready(State(app): State<App>) -> Result<Json<HealthOk>, Problem> {
    let status = app.handle.status();
    let detail = match (status.leader, status.rejoin()) {
        (Some(_), _) => return Ok(app.healthy()),
        (None, Some(rejoin)) => format!("{} {rejoin}", status.name),
        (None, None) => format!("{} knows no leader", status.name),
    };
    Err(Kind::NotReady.with_detail(detail))
}

impl App {
    fn healthy(&self) -> Json<HealthOk> {
        let status = self.handle.status();
        Json(HealthOk { name: status.name.clone(), term: status.term.0 })
    }
}
