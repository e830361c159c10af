//! Which member leads which group, as far as this node knows: the leader of the quorum tells every member.

use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::problem::{Kind, Problem};
use super::report::Name;
use crate::clock::Moment;
use crate::leadership::{FencingToken, Leadership};
use crate::node::GroupState;
use crate::node::status::Status;

/// All groups.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct GroupList {
    /// In the order of their names.
    pub groups: Vec<GroupReport>,
}

/// A group and its leader.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct GroupReport {
    /// The name of the group.
    pub name: String,
    /// The member that leads it, as far as this node knows.
    pub leader: Option<Name>,
    /// Whether this node leads it: its lease is valid now.
    pub here: bool,
    /// The fencing token of that lead: higher than those of all earlier leads of this group.
    pub token: Option<u64>,
    /// How long ago this node learned of that.
    pub since_ms: u64,
    /// The member that leads it if all members are there.
    pub preferred: Option<Name>,
}

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_groups)).routes(routes!(show_group))
}

/// Which member leads which group.
#[utoipa::path(get, path = "/v1/groups", tag = "groups", responses(
    (status = 200, description = "All groups; none if none are configured.", body = GroupList),
))]
async fn list_groups(State(app): State<App>) -> Json<GroupList> {
    let status = app.handle.status();
    let states = app.handle.groups();
    Json(GroupList { groups: states.iter().map(|state| app.report(&status, state)).collect() })
}

/// Which member leads a group.
#[utoipa::path(get, path = "/v1/groups/{name}", tag = "groups",
    params(("name" = String, Path, description = "The group.")),
    responses(
        (status = 200, description = "The group.", body = GroupReport),
        (status = 404, description = "There is no such group.", body = Problem),
    ))]
async fn show_group(
    State(app): State<App>,
    Path(name): Path<String>,
) -> Result<Json<GroupReport>, Problem> {
    let (status, states) = (app.handle.status(), app.handle.groups());
    let state = states.iter().find(|state| state.name == name);
    let state = state.ok_or_else(|| no_such_group(&name))?;
    Ok(Json(app.report(&status, state)))
}

impl App {
    fn report(&self, status: &Status, state: &GroupState) -> GroupReport {
        let named = |id| Name::of(status, id);
        let leadership = self.handle.group(&state.name);
        GroupReport {
            name: state.name.clone(),
            leader: state.leader.and_then(named),
            here: leadership.is_some_and(Leadership::is_leader),
            token: state.token.map(|FencingToken(token)| token),
            since_ms: Moment::now().since(state.since).as_millis() as u64,
            preferred: state.preferred.and_then(named),
        }
    }
}

/// The answer about a group that is not configured.
pub(super) fn no_such_group(name: &str) -> Problem {
    // A name is at most this long.
    let name: String = name.chars().take(64).collect();
    Kind::NotFound
        .with_detail(format!("there is no group {name}; `groups` in doyen.toml lists them"))
}
