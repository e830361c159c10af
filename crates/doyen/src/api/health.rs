//! Health, for load balancers and whoever restarts processes: 200 is yes, 503 is no.
//!
//! `/leader` is the one that traffic depends on. It answers by the clock at the moment of asking, not by what the node
//! last said: a process that was paused answers no as soon as it runs again. A leader that is about to hand over answers
//! no as well, for nothing new is to begin there. Algorithms without leases have nobody who may say yes.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::problem::{Kind, Problem};
use super::report::Name;

/// A yes, with what it rests on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub(super) struct Yes {
    /// The name of this node.
    name: String,
    /// The term.
    term: u64,
}

/// The routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(is_leader))
        .routes(routes!(is_follower))
        .routes(routes!(is_alive))
        .routes(routes!(is_ready))
}

/// Whether this node leads: it holds a lease that runs now, and is not about to hand over.
#[utoipa::path(get, path = "/leader", tag = "health", responses(
    (status = 200, description = "It leads.", body = Yes),
    (status = 503, description = "It does not.", body = Problem, content_type = "application/problem+json"),
))]
async fn is_leader(State(app): State<App>) -> Result<Json<Yes>, Problem> {
    let status = app.handle.status();
    // The clock last: what was read before can only be older.
    match app.handle.leadership().token() {
        Some(token) => Ok(Json(Yes { name: status.name.clone(), term: token.term.0 })),
        None => Err(Kind::NoLease
            .because(format!("{} holds no lease under which anything may begin", status.name))
            .naming(status.leader.and_then(|leader| Name::of(&status, leader)))),
    }
}

/// Whether this node follows a leader.
#[utoipa::path(get, path = "/follower", tag = "health", responses(
    (status = 200, description = "It follows.", body = Yes),
    (status = 503, description = "It does not.", body = Problem, content_type = "application/problem+json"),
))]
async fn is_follower(State(app): State<App>) -> Result<Json<Yes>, Problem> {
    let status = app.handle.status();
    match status.leader {
        Some(leader) if leader != status.id => Ok(app.yes()),
        leader => Err(Kind::NotFollowing
            .because(format!("{} follows nobody", status.name))
            .naming(leader.and_then(|leader| Name::of(&status, leader)))),
    }
}

/// Whether this node is alive: its loop goes on. If not, nothing but a restart helps.
#[utoipa::path(get, path = "/livez", tag = "health", responses(
    (status = 200, description = "It is.", body = Yes),
    (status = 503, description = "It is not.", body = Problem, content_type = "application/problem+json"),
))]
async fn is_alive(State(app): State<App>) -> Result<Json<Yes>, Problem> {
    match app.observer.silence() {
        None => Err(Kind::Stuck.because("the loop has ended")),
        Some(silence) if silence > app.limits.stuck_after => {
            let detail = format!("the loop has said nothing for {} s", silence.as_secs());
            Err(Kind::Stuck.because(detail))
        }
        Some(_) => Ok(app.yes()),
    }
}

/// Whether this node is ready: it knows who leads.
#[utoipa::path(get, path = "/readyz", tag = "health", responses(
    (status = 200, description = "It is.", body = Yes),
    (status = 503, description = "It is not.", body = Problem, content_type = "application/problem+json"),
))]
async fn is_ready(State(app): State<App>) -> Result<Json<Yes>, Problem> {
    let status = app.handle.status();
    match (status.leader, status.rejoin()) {
        (Some(_), _) => Ok(app.yes()),
        (None, Some(rejoin)) => Err(Kind::NotReady.because(format!("{} {rejoin}", status.name))),
        (None, None) => Err(Kind::NotReady.because("nobody is known to lead")),
    }
}

impl App {
    fn yes(&self) -> Json<Yes> {
        let status = self.handle.status();
        Json(Yes { name: status.name.clone(), term: status.term.0 })
    }
}
