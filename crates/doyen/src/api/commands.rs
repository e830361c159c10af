//! Admin commands: `POST`, over the admin socket, or over HTTP with the admin secret.
//!
//! 202 means that the member accepted the command, not that its effect is complete: a transfer of leadership takes a
//! while. 409 means that the member rejected it, and why; most commands are for the leader, which is named then.
//! `If-Match` with a term restricts a command to that term, compared when the request arrives.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use doyen_core::members::NodeId;
use doyen_core::protocol::{AdminCommand, Refusal};
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ContentBuilder, ObjectBuilder, OpenApi, Ref, RefOr, Required, ResponseBuilder, Type,
};
use utoipa::{PartialSchema, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::call::Call;
use super::forward;
use super::problem::{Kind, Problem};
use super::report::Name;
use super::{App, SecretReloader};
use crate::clock;
use crate::node::CommandError;
use crate::node::status::{MemberStatus, Paused, Status, seconds};

/// The name of the security scheme in the document.
const SCHEME: &str = "admin_secret";

/// An accepted command.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Accepted {
    /// The name of the member that accepted it.
    pub name: String,
    /// What the member does, as text.
    pub accepted: String,
    /// The term in which the command was accepted.
    pub term: u64,
    /// Why the command may not have the desired effect, if there is a reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl IntoResponse for Accepted {
    fn into_response(self) -> Response {
        (StatusCode::ACCEPTED, Json(self)).into_response()
    }
}

/// A member, by its name or its id.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected the name or the id of a member")]
pub enum MemberRef {
    /// By its id.
    Id(u32),
    /// By its name; or by its id, as text.
    Name(String),
}

impl MemberRef {
    /// The member; a name takes precedence over an id that looks the same.
    pub fn find(&self, status: &Status) -> Option<NodeId> {
        let name = match self {
            Self::Id(id) => return status.members.iter().map(|m| m.id).find(|m| m.0 == *id),
            Self::Name(name) => name,
        };
        let named = status.members.iter().find(|member| member.name == *name);
        let numbered = || name.parse().ok().and_then(|id| Self::Id(id).find(status));
        named.map(|member| member.id).or_else(numbered)
    }
}

impl std::fmt::Display for MemberRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

/// The empty body of a command without arguments.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// The arguments of `transfer`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// The successor.
    pub to: MemberRef,
}

/// The arguments of `drain`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Drain {
    /// For how long, for example `2h` or `1h 30m`; without it, until `undrain`.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    #[schema(examples("2h"))]
    pub lasting: Option<String>,
    /// Do not lead even if every other eligible member is drained; until `undrain`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never: bool,
}

/// The arguments of `prefer`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Prefer {
    /// The preferred member.
    pub member: MemberRef,
    /// For how long, for example `2h`; `0s` withdraws the preference.
    #[serde(rename = "for")]
    #[schema(examples("2h"))]
    pub lasting: String,
}

/// The arguments of `pause`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// For how long, for example `1h`.
    #[serde(rename = "for")]
    #[schema(examples("1h"))]
    pub lasting: String,
}

pub(super) fn routes() -> OpenApiRouter<App> {
    let mut router = OpenApiRouter::new()
        .routes(routes!(resign))
        .routes(routes!(transfer))
        .routes(routes!(campaign))
        .routes(routes!(drain))
        .routes(routes!(undrain))
        .routes(routes!(prefer))
        .routes(routes!(pause))
        .routes(routes!(resume))
        .routes(routes!(reload_keys))
        .routes(routes!(reload))
        .merge(super::keys::routes());
    describe(router.get_openapi_mut());
    router
}

/// Transfer leadership to the reachable member of the highest rank. For the leader.
#[utoipa::path(post, path = "/v1/resign", tag = "commands")]
async fn resign(call: Call<Nothing>) -> Result<Accepted, Problem> {
    let status = call.app.handle.status();
    let note =
        || format!("no other member can lead now, so {} may become leader again", status.name);
    let note = replaces_transfer(&status).or_else(|| status.next.is_none().then(note));
    let next = status.next.map(|next| format!("; next in line is {}", status.name_of(next)));
    let does = format!("resigns{}", next.unwrap_or_default());
    call.give(AdminCommand::Resign, Effect { does, note }).await
}

/// Transfer leadership to a named member. For the leader.
#[utoipa::path(post, path = "/v1/transfer", tag = "commands", request_body = Transfer)]
async fn transfer(call: Call<Transfer>) -> Result<Accepted, Problem> {
    let to = call.app.member(&call.body.to)?;
    let status = call.app.handle.status();
    let does = format!("transfers leadership to {}", to.name);
    let again = preferred_over(&status, to.id).or_else(|| takes_over_again(&status, to.id).map(|higher| {
        format!(
            "{higher} has a higher priority and takes over again after a while, unless preemption.policy is never; \
             `doyen prefer {} --for 2h` keeps it from that",
            to.name
        )
    }));
    let note = replaces_transfer(&status).or(again);
    call.give(AdminCommand::Transfer { to: to.id }, Effect { does, note }).await
}

/// Says that a transfer is in progress already: the leader waits for what runs under its lease.
fn replaces_transfer(status: &Status) -> Option<String> {
    let retiring = Duration::from_millis(status.retiring_ms?);
    Some(format!(
        "this replaces the transfer that {} began {} ago and has not completed",
        status.name,
        seconds(retiring.as_secs())
    ))
}

/// Says that another member is preferred: it takes over again at once, unless a penalty outweighs that.
fn preferred_over(status: &Status, leader: NodeId) -> Option<String> {
    let preferred = status.preference.filter(|it| it.member != leader)?;
    let failures = status.member(leader).map_or(0, |it| it.recent_failures);
    let could = |it: &&MemberStatus| it.eligible && it.reachable && it.recent_failures <= failures;
    let name = &status.member(preferred.member).filter(could)?.name;
    let left = seconds(preferred.remaining_ms.div_ceil(1000));
    Some(format!(
        "{name} is preferred for another {left} and takes over again at once; `doyen prefer {name} --for 0s` ends that"
    ))
}

/// The member that outranks a new leader, if one is up.
fn takes_over_again(status: &Status, leader: NodeId) -> Option<String> {
    let new = status.member(leader)?;
    let outranks = |it: &&MemberStatus| {
        it.eligible && it.reachable && it.recent_failures == 0 && it.priority > new.priority
    };
    let higher = status.members.iter().filter(outranks).max_by_key(|it| it.priority)?;
    (status.preference.is_none() && status.algorithm == Algorithm::Quorum.name())
        .then(|| higher.name.clone())
}

/// Start an election.
#[utoipa::path(post, path = "/v1/campaign", tag = "commands")]
async fn campaign(call: Call<Nothing>) -> Result<Accepted, Problem> {
    let handle = call.app.handle.clone();
    let leader = handle.leadership().state().leader;
    let does = campaign_effect(&handle.status(), leader);
    let accepted = async move { handle.campaign().await.map(|()| does.into()) };
    call.answer(accepted, "campaign".to_owned()).await
}

/// What a member does when it is told to campaign. In a quorum it starts no election while there is a leader, or if it
/// is not eligible itself; the algorithms of the sources always elect.
fn campaign_effect(status: &Status, leader: Option<NodeId>) -> String {
    let eligible = status.member(status.id).is_none_or(|own| own.eligible);
    let why_not = match leader {
        _ if status.algorithm != Algorithm::Quorum.name() => {
            return "starts an election".to_owned();
        }
        Some(leader) => format!("{} is the leader", status.name_of(leader)),
        None if !eligible => format!("{} is not eligible", status.name),
        None if status.pause.is_some() => "elections are paused".to_owned(),
        None => return "starts an election, unless its vote lease still runs".to_owned(),
    };
    format!("starts no election: {why_not}")
}

/// Lead only if no other member can; a leader transfers leadership. For the member itself.
#[utoipa::path(post, path = "/v1/drain", tag = "commands", request_body = Drain)]
async fn drain(call: Call<Drain>) -> Result<Accepted, Problem> {
    let lasting = call.body.lasting.as_deref().map(parse_span).transpose()?;
    if lasting == Some(Span::ZERO) {
        let detail = "for: a drain must last longer than 0s; `undrain` ends one";
        return Err(Kind::BadRequest.with_detail(detail));
    }
    let never = call.body.never;
    let status = call.app.handle.status();
    let when = match status.member(status.id) {
        Some(own) if own.witness => "it is a witness and never leads anyway",
        _ => "it leads only if no other member can",
    };
    let does = match &call.body.lasting {
        Some(_) if never => {
            let detail = "never: cannot be combined with `for`; such a drain lasts until `undrain`";
            return Err(Kind::BadRequest.with_detail(detail));
        }
        None if never => "is drained until `undrain`: it never leads".to_owned(),
        Some(lasting) => format!("is drained for {lasting}: {when}"),
        None => format!("is drained until `undrain`: {when}"),
    };
    call.give(AdminCommand::Drain { lasting, never }, does).await
}

/// End a drain. For the member itself.
#[utoipa::path(post, path = "/v1/undrain", tag = "commands")]
async fn undrain(call: Call<Nothing>) -> Result<Accepted, Problem> {
    let was_drained = call.app.handle.status().drained;
    let does = if was_drained { "is no longer drained" } else { "was not drained" };
    call.give(AdminCommand::Undrain, does).await
}

/// Prefer a member as leader for a while. For the leader.
#[utoipa::path(post, path = "/v1/prefer", tag = "commands", request_body = Prefer)]
async fn prefer(call: Call<Prefer>) -> Result<Accepted, Problem> {
    let member = call.app.member(&call.body.member)?;
    let lasting = parse_span(&call.body.lasting)?;
    let effect = match lasting {
        Span::ZERO => Effect::from("withdraws the preference"),
        _ => {
            let does = format!("prefers {} for {}", member.name, call.body.lasting);
            Effect { does, note: outweighed(&call.app.handle.status(), member.id) }
        }
    };
    call.give(AdminCommand::Prefer { member: member.id, lasting }, effect).await
}

/// Pause elections for a while: no member campaigns, except by a transfer. Leases end as usual. For any member, which
/// tells the others.
#[utoipa::path(post, path = "/v1/pause", tag = "commands", request_body = Pause)]
async fn pause(call: Call<Pause>) -> Result<Accepted, Problem> {
    let lasting = parse_span(&call.body.lasting)?;
    if lasting == Span::ZERO {
        let detail = "for: a pause must last longer than 0s; `resume` ends one";
        return Err(Kind::BadRequest.with_detail(detail));
    }
    let does = format!("pauses elections for {}", call.body.lasting);
    let status = call.app.handle.status();
    let note = replaces_pause(&status).or_else(|| unaware(&status));
    call.give(AdminCommand::Pause { lasting }, Effect { does, note }).await
}

/// End a pause of elections. For any member, which tells the others.
#[utoipa::path(post, path = "/v1/resume", tag = "commands")]
async fn resume(call: Call<Nothing>) -> Result<Accepted, Problem> {
    let note = unaware(&call.app.handle.status());
    call.give(AdminCommand::Resume, Effect { does: "resumes elections".to_owned(), note }).await
}

/// Says that elections were paused already, by a command that this one replaces.
fn replaces_pause(status: &Status) -> Option<String> {
    let Paused { by, remaining_ms, .. } = status.pause?;
    let left = seconds(remaining_ms.div_ceil(1000));
    Some(format!(
        "this replaces the pause for another {left} that {} was told to begin",
        status.name_of(by)
    ))
}

/// Which members do not learn at once of a pause, or of its end.
fn unaware(status: &Status) -> Option<String> {
    let unreachable = status.members.iter().filter(|member| !member.reachable);
    let names: Vec<&str> = unreachable.map(|member| &*member.name).collect();
    (!names.is_empty())
        .then(|| format!("{} cannot be reached now, and will be told later", names.join(", ")))
}

/// Why a preference for `id` has no effect yet, if an eligible member has a smaller penalty.
fn outweighed(status: &Status, id: NodeId) -> Option<String> {
    let member = status.member(id)?;
    let eligible = status.members.iter().filter(|other| other.eligible);
    let fewest = eligible.map(|other| other.recent_failures).min();
    let penalty = member.penalty().filter(|_| fewest < Some(member.recent_failures))?;
    let name = &member.name;
    Some(format!(
        "{name} {penalty}. A penalty outweighs a preference; `doyen transfer {name}` makes it leader now"
    ))
}

/// Read the key file and the admin secret again, after they have changed.
#[utoipa::path(post, path = "/v1/reload-keys", tag = "commands")]
async fn reload_keys(call: Call<Nothing>) -> Result<Accepted, Problem> {
    let secrets = SecretReloader(Arc::clone(&call.app.auth));
    let handle = call.app.handle.clone();
    let reloaded = async move {
        let keys = secrets.read(&handle).await?.adopt().await?;
        Ok(Effect::from(format!("reloaded its keys: {keys}")))
    };
    call.answer(reloaded, "reload-keys".to_owned()).await
}

/// Read the configuration, the key file and the admin secret again. Nothing changes if one of them is refused, or needs a
/// restart.
#[utoipa::path(post, path = "/v1/reload", tag = "commands")]
async fn reload(call: Call<Nothing>) -> Result<Accepted, Problem> {
    let handle = call.app.handle.clone();
    let reloaded =
        async move { handle.reload().await.map(Effect::from).map_err(CommandError::NotReloaded) };
    call.answer(reloaded, "reload".to_owned()).await
}

/// What a member does when it accepts a command, and why that may not have the desired effect.
pub(super) struct Effect {
    does: String,
    note: Option<String>,
}

impl<T: Into<String>> From<T> for Effect {
    fn from(does: T) -> Self {
        Self { does: does.into(), note: None }
    }
}

impl App {
    /// The member with this name or id.
    pub(super) fn member(&self, member: &MemberRef) -> Result<Name, Problem> {
        let status = self.handle.status();
        let found = member.find(&status).and_then(|id| Name::of(&status, id));
        found.ok_or_else(|| {
            let names: Vec<&str> = status.members.iter().map(|member| &*member.name).collect();
            let detail = format!("{member} is not a member; the members are {}", names.join(", "));
            Kind::UnknownMember.with_detail(detail)
        })
    }

    /// Why a command was not carried out.
    pub(super) fn explain(&self, error: &CommandError) -> Problem {
        explain(&self.handle.status(), error)
    }
}

impl<T> Call<T> {
    async fn give(
        self,
        command: AdminCommand,
        effect: impl Into<Effect>,
    ) -> Result<Accepted, Problem> {
        let handle = self.app.handle.clone();
        let (text, effect) = (self.describe(command), effect.into());
        let by = self.connection.caller(&handle.status().name);
        let given = async move { handle.command_by(by, command).await.map(|()| effect) };
        self.answer(given, text).await
    }

    /// A command as text, with the names of members.
    fn describe(&self, command: AdminCommand) -> String {
        let name = |id| self.app.handle.status().name_of(id);
        match command {
            AdminCommand::Transfer { to } => format!("transfer to {}", name(to)),
            AdminCommand::Prefer { member, lasting } => {
                format!("prefer {} for {lasting:#}", name(member))
            }
            AdminCommand::Resign
            | AdminCommand::ShutDown
            | AdminCommand::GiveUp
            | AdminCommand::Pause { .. }
            | AdminCommand::Resume
            | AdminCommand::Drain { .. }
            | AdminCommand::Undrain
            | AdminCommand::Attribute(_)
            | AdminCommand::Snapshot
            | AdminCommand::Tell { .. } => command.to_string(),
        }
    }

    /// Waits for the member's answer, and logs it if it is yes; `audit.rs` logs rejections.
    pub(super) async fn answer(
        self,
        result: impl Future<Output = Result<Effect, CommandError>>,
        command: String,
    ) -> Result<Accepted, Problem> {
        let (node, term) = {
            let status = self.app.handle.status();
            (status.name.clone(), status.term.0)
        };
        let address = self.connection.clone();
        self.text.set(&command);
        match timeout(self.app.limits.command_timeout, result).await {
            Ok(Ok(Effect { does, note })) => {
                tracing::info!(
                    node, event = "command-accepted", command, term, %address,
                    "{node}: accepted command `{command}` from {address}: {node} {does}"
                );
                Ok(Accepted { name: node, accepted: does, term, note })
            }
            Ok(Err(error)) => Err(self.app.explain(&error)),
            Err(_) => Err(Kind::NoAnswer.with_detail("the node did not answer; it may be stuck")),
        }
    }
}

/// Why a member cannot become leader, as far as this node knows.
fn why_not_eligible(status: &Status, id: NodeId) -> String {
    let name = status.name_of(id);
    match status.member(id) {
        _ if status.leader == Some(id) => format!("{name} is the leader already"),
        Some(member) if member.witness => format!("{name} is a witness and never leads"),
        Some(member) if !member.eligible => {
            format!("{name} is drained; `doyen undrain {name}` lets it lead")
        }
        Some(member) if !member.reachable => format!("{} does not reach {name}", status.name),
        _ => format!("{name} has just restarted or does not reach a majority"),
    }
}

/// Why a command was not carried out, with the names of this cluster.
fn explain(status: &Status, error: &CommandError) -> Problem {
    let text = error.to_string();
    let refusal = match error {
        CommandError::Rejected(refusal) => refusal,
        CommandError::NoLeases => {
            let problem = Kind::NoCommands.with_detail(format!("{}: {text}", status.algorithm));
            return problem.with_leader(Name::of_leader(status));
        }
        CommandError::Rejoining => {
            return Kind::Rejoining.with_detail(text).with_leader(Name::of_leader(status));
        }
        CommandError::Busy => return Kind::Busy.with_detail(text),
        CommandError::Stopped => return Kind::Stopped.with_detail(text),
        CommandError::InvalidKeys(_) | CommandError::InvalidSecret(_) => {
            return Kind::KeysUnreadable.with_detail(text);
        }
        CommandError::NotReloaded(_) => return Kind::NotReloaded.with_detail(text),
    };
    let (leader, name) = (Name::of_leader(status), &status.name);
    let problem = match refusal {
        Refusal::NotLeading => Kind::NotLeader.with_detail(match &leader {
            Some(leader) if leader.id != status.id => {
                format!("{name} is not the leader; {} is", leader.name)
            }
            _ => {
                let elsewhere = status.leader_is_elsewhere();
                let hint = elsewhere.map(|(why, detour)| format!(": {why}; {}", detour.advice()));
                let paused = || status.paused().map(|paused| format!(": {paused}"));
                let hint = hint.or_else(paused).unwrap_or_default();
                format!("{name} is not the leader and knows no leader{hint}")
            }
        }),
        Refusal::Unfit(id) => Kind::NotEligible.with_detail(why_not_eligible(status, *id)),
        Refusal::NoOtherCandidate => Kind::NoSuccessor.with_detail(
            "no other member is eligible and reachable now: start or undrain one first",
        ),
        Refusal::NotPaused => {
            Kind::NotPaused.with_detail(format!("elections are not paused, as far as {name} knows"))
        }
        Refusal::Rejoining => Kind::Rejoining.with_detail(CommandError::Rejoining.to_string()),
    };
    problem.with_leader(leader)
}

fn parse_span(text: &str) -> Result<Span, Problem> {
    clock::parse_span(text).map_err(|problem| Kind::BadRequest.with_detail(problem))
}

/// Adds what all commands have in common to the document: the admin secret, the term, the responses.
fn describe(document: &mut OpenApi) {
    let scheme = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(
            "Over HTTP, if `http_admin` is set: the file `admin-secret` in the node's state folder. The admin socket in \
             that folder needs no secret.",
        ));
    let components = document.components.get_or_insert_default();
    components.add_security_scheme(SCHEME, SecurityScheme::Http(scheme.build()));
    for schema in [(Problem::name(), Problem::schema()), (Accepted::name(), Accepted::schema())] {
        components.schemas.insert(schema.0.into_owned(), schema.1);
    }
    for (path, item) in &mut document.paths.paths {
        if let Some(operation) = &mut item.post {
            complete(operation, forward::is_forwarded(&Method::POST, path));
        }
    }
}

/// The member that is to execute it.
fn member_parameter() -> Parameter {
    ParameterBuilder::new()
        .name("member")
        .parameter_in(ParameterIn::Query)
        .required(Required::False)
        .description(Some(
            "The member that is to carry it out, by name or id. Without it, this one, or the leader if it is for the leader.",
        ))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String).examples(["n2"])))
        .build()
}

fn complete(operation: &mut Operation, is_forwarded: bool) {
    let term = ParameterBuilder::new()
        .name("If-Match")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some("The term that the command is meant for, as in an ETag."))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String).examples(["\"7\""])))
        .build();
    let parameters = operation.parameters.get_or_insert_default();
    parameters.push(RefOr::T(term));
    parameters.extend(is_forwarded.then(|| RefOr::T(member_parameter())));
    operation.security = Some(vec![SecurityRequirement::new(SCHEME, [] as [&str; 0])]);
    let responses = [
        ("202", "The member accepted the command."),
        ("401", "The admin secret is missing or wrong."),
        ("403", "Admin commands over HTTP are off, or a page of another origin sent this one."),
        (
            "409",
            "The member rejected the command: it is not the leader, or no other member can lead.",
        ),
        ("412", "The term is another one."),
        ("default", "Any other problem."),
    ];
    for (status, description) in responses {
        let schema = if status == "202" { Accepted::name() } else { Problem::name() };
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(schema))).build();
        let response = ResponseBuilder::new().description(description);
        let response = response.content("application/json", content);
        operation.responses.responses.insert(status.to_owned(), RefOr::T(response.build()));
    }
}
