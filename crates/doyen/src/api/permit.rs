//! A permit over HTTP: the right to act as the leader until a deadline, for which a transfer of leadership waits.
//!
//! It needs no admin secret, because it can delay a transfer by one lease at most: a permit ends with the lease, and a
//! leader that is about to transfer leadership gives none. A fencing token for a new start needs the secret: there are a
//! million in a term, and one is used up.

use std::time::Duration;

use axum::Json;
use axum::extract::Path;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::call::{Call, OpenCall};
use super::commands::Nothing;
use super::groups::no_such_group;
use super::problem::{Kind, Problem};
use super::report::Name;
use crate::clock::{Moment, parse_span};
use crate::leadership::Permit;
use crate::node::Work;
use crate::node::status::Status;

/// For how long a permit is asked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PermitRequest {
    /// For how long, for example `200ms`. The end of the lease may come first.
    #[serde(rename = "for")]
    #[schema(examples("200ms"))]
    pub lasting: String,
}

/// A permit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PermitGiven {
    /// The name of this node.
    pub name: String,
    /// The term of the lease.
    pub term: u64,
    /// The fencing token, for whatever is acted on.
    pub token: u64,
    /// When the permit ends, in nanoseconds of this machine's boot-time clock.
    pub until: u64,
    /// How long it lasts from now, in milliseconds, rounded down. The way of the response counts.
    pub remaining_ms: u64,
}

/// The fencing token of a new start.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct TokenGiven {
    /// The term of the lease.
    pub term: u64,
    /// The fencing token: higher than those of all earlier starts in the cluster.
    pub token: u64,
}

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(permit)).routes(routes!(group_permit))
}

/// What needs the admin secret.
pub(super) fn admin_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(token))
}

/// A fencing token for something that starts now under the lease of this node.
#[utoipa::path(post, path = "/v1/token", tag = "permits", security(("admin_secret" = [])),
    params(("If-Match" = Option<String>, Header, description = "The term that the token is for, as in an ETag.")),
    responses(
        (status = 200, description = "This node leads.", body = TokenGiven),
        (status = 401, description = "The admin secret is missing or wrong.", body = Problem),
        (status = 409, description = "This node does not lead, or is about to transfer leadership.", body = Problem),
        (status = 412, description = "The term is another one.", body = Problem),
    ))]
async fn token(call: Call<Nothing>) -> Result<Json<TokenGiven>, Problem> {
    let work = call.app.handle.begin_work();
    let token = work.as_ref().and_then(Work::next_token);
    match (work, token) {
        (Some(work), Some(token)) => Ok(Json(TokenGiven { term: work.term().0, token: token.0 })),
        _ => Err(not_leader(&call.app.handle.status())),
    }
}

/// The right to act as the leader until a deadline. A transfer of leadership waits for it, at most until the end of the
/// lease.
#[utoipa::path(post, path = "/v1/permit", tag = "permits", request_body = PermitRequest,
    params(("If-Match" = Option<String>, Header, description = "The term that the permit is for, as in an ETag.")),
    responses(
        (status = 200, description = "This node leads, and is bound until then.", body = PermitGiven),
        (status = 409, description = "This node does not lead, or is about to transfer leadership.", body = Problem),
        (status = 412, description = "The term is another one.", body = Problem),
        (status = 422, description = "The time is not a duration, or is zero.", body = Problem),
    ))]
async fn permit(call: OpenCall<PermitRequest>) -> Result<Json<PermitGiven>, Problem> {
    let lasting = parse_time("for", &call.body.lasting)?;
    let status = call.app.handle.status();
    let permit = call.app.handle.leadership().guard(lasting);
    permit.map(|permit| given(&status, permit)).ok_or_else(|| not_leader(&status))
}

/// The right to act as the leader of a group until a deadline. A group that is to move waits for it, at most until the end of
/// its lease.
#[utoipa::path(post, path = "/v1/groups/{name}/permit", tag = "permits", request_body = PermitRequest,
    params(("name" = String, Path, description = "The group.")),
    responses(
        (status = 200, description = "This node leads the group, and is bound until then.", body = PermitGiven),
        (status = 404, description = "There is no such group.", body = Problem),
        (status = 409, description = "This node does not lead the group, or is about to give it up.", body = Problem),
        (status = 422, description = "The time is not a duration, or is zero.", body = Problem),
    ))]
async fn group_permit(
    Path(group): Path<String>,
    call: OpenCall<PermitRequest>,
) -> Result<Json<PermitGiven>, Problem> {
    let lasting = parse_time("for", &call.body.lasting)?;
    let (handle, status) = (&call.app.handle, call.app.handle.status());
    let leadership = handle.group(&group).ok_or_else(|| no_such_group(&group))?;
    let permit = leadership.guard(lasting);
    permit.map(|permit| given(&status, permit)).ok_or_else(|| {
        let leader = leadership.state().leader.and_then(|leader| Name::of(&status, leader));
        let detail = format!("{} does not lead group {group}", status.name);
        Kind::NotLeader.with_detail(detail).with_leader(leader)
    })
}

fn given(status: &Status, permit: Permit) -> Json<PermitGiven> {
    let remaining = permit.deadline.since(Moment::now());
    Json(PermitGiven {
        name: status.name.clone(),
        term: permit.term.0,
        token: permit.token.0,
        until: permit.deadline.as_nanos(),
        remaining_ms: u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX),
    })
}

pub(super) fn not_leader(status: &Status) -> Problem {
    let (name, leader) = (&status.name, Name::of_leader(status));
    let detail = match &leader {
        Some(leader) if leader.id != status.id => {
            format!("{name} is not the leader; {} is", leader.name)
        }
        Some(_) => format!("{name} holds no valid lease, or is about to transfer leadership"),
        None => format!("{name} is not the leader and knows no leader"),
    };
    Kind::NotLeader.with_detail(detail).with_leader(leader)
}

/// The time in the field `field` of a request.
pub(super) fn parse_time(field: &str, text: &str) -> Result<Duration, Problem> {
    let wrong = |problem| Kind::BadTime.with_detail(format!("{field}: {problem}"));
    match parse_span(text).map_err(wrong)?.as_nanos() {
        0 => Err(wrong("must be longer than 0s".to_owned())),
        nanos => Ok(Duration::from_nanos(nanos)),
    }
}
