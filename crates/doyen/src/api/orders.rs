//! An operator's orders: `POST`, with a token.
//!
//! 202 says that the member obeys, not that all is done: a hand-over takes its time. 409 says that it does not, and why;
//! most orders are for the leader, which is named then. `If-Match` with a term keeps an order from those for whom it was
//! not meant: the term is compared when the request comes in.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use doyen_core::members::NodeId;
use doyen_core::protocol::{AdminCommand, Refusal};
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ContentBuilder, ObjectBuilder, OpenApi, Ref, RefOr, Required, ResponseBuilder, Type,
};
use utoipa::{PartialSchema, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::call::Call;
use super::problem::{self, Kind, Problem};
use super::report::Name;
use crate::node::NotDone;
use crate::node::status::Status;

/// The name of the token among the document's security schemes.
const TOKEN: &str = "token";

/// An order that is obeyed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Accepted {
    /// Who obeys.
    pub name: String,
    /// What it does.
    pub accepted: String,
    /// The term in which it was ordered.
    pub term: u64,
    /// What keeps the order from having the effect that was wanted, if something does.
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
#[serde(untagged, expecting = "a member is given by its name or its id")]
pub enum MemberRef {
    /// By its id.
    Id(u32),
    /// By its name; or by its id, as text.
    Name(String),
}

impl MemberRef {
    /// Who that is. A name goes before an id that looks the same.
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

/// An order that needs no saying more.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// To whom to hand over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// The member that is to lead.
    pub to: MemberRef,
}

/// For how long not to lead.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Drain {
    /// For how long, for example `2h` or `1h 30m`; until it is undone if that is not said.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    #[schema(examples("2h"))]
    pub lasting: Option<String>,
    /// Not even if every member that could lead is drained; until it is undone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never: bool,
}

/// Whom to prefer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Prefer {
    /// The member that is to lead while it can.
    pub member: MemberRef,
    /// For how long, for example `2h`; `0s` takes the preference back.
    #[serde(rename = "for")]
    #[schema(examples("2h"))]
    pub lasting: String,
}

/// The routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    let mut router = OpenApiRouter::new()
        .routes(routes!(resign))
        .routes(routes!(transfer))
        .routes(routes!(campaign))
        .routes(routes!(drain))
        .routes(routes!(undrain))
        .routes(routes!(prefer))
        .routes(routes!(reload_keys));
    describe(router.get_openapi_mut());
    router
}

/// Lead no longer: the best that is heard takes over.
#[utoipa::path(post, path = "/v1/resign", tag = "orders")]
async fn resign(call: Call<Nothing>) -> Result<Accepted, Problem> {
    let note = call.app.handle.status().next.is_none().then(|| NOBODY_ELSE.to_owned());
    call.give(AdminCommand::Resign, Obeyed { does: "resigns".to_owned(), note }).await
}

const NOBODY_ELSE: &str = "but nobody else could lead now, so it may soon lead again";

/// Hand over to a certain member.
#[utoipa::path(post, path = "/v1/transfer", tag = "orders", request_body = Transfer)]
async fn transfer(call: Call<Transfer>) -> Result<Accepted, Problem> {
    let to = call.member(&call.body.to)?;
    call.give(AdminCommand::Transfer { to: to.id }, format!("hands over to {}", to.name)).await
}

/// Call an election.
#[utoipa::path(post, path = "/v1/campaign", tag = "orders")]
async fn campaign(call: Call<Nothing>) -> Result<Accepted, Problem> {
    let handle = call.app.handle.clone();
    let leader = handle.leadership().reign().leader;
    let obeyed = campaigns(&handle.status(), leader);
    let called = async move { handle.campaign().await.map(|()| obeyed.into()) };
    call.answer(called, "campaign".to_owned()).await
}

/// What becomes of an election that a member is to call. In a quorum it does not disturb a leader, and asks for nothing
/// if it would not lead itself; the sources' algorithms elect in any case.
fn campaigns(status: &Status, leader: Option<NodeId>) -> String {
    let would_lead = status.member(status.id).is_none_or(|own| own.eligible);
    let why_not = match leader {
        _ if status.algorithm != Algorithm::Quorum.name() => return "calls an election".to_owned(),
        Some(leader) if leader == status.id => "it leads".to_owned(),
        Some(leader) => format!("{} leads", status.name_of(leader)),
        None if !would_lead => "it does not stand".to_owned(),
        None => return "calls an election, unless a promise still binds it".to_owned(),
    };
    format!("calls no election: {why_not}, and nothing happens")
}

/// Do not lead as long as another member can: hand over if it does.
#[utoipa::path(post, path = "/v1/drain", tag = "orders", request_body = Drain)]
async fn drain(call: Call<Drain>) -> Result<Accepted, Problem> {
    let lasting = call.body.lasting.as_deref().map(parse_span).transpose()?;
    if lasting == Some(Span::ZERO) {
        let detail = "for: a drain must last; `undrain` lets a drained member lead again";
        return Err(Kind::BadRequest.because(detail));
    }
    let never = call.body.never;
    let accepted = match &call.body.lasting {
        Some(_) if never => {
            let detail = "never: goes without `for`; a member that must not lead at all is drained until `undrain`";
            return Err(Kind::BadRequest.because(detail));
        }
        None if never => "never leads until told otherwise".to_owned(),
        Some(lasting) => format!("does not lead for {lasting}, unless no other member can"),
        None => "does not lead until told otherwise, unless no other member can".to_owned(),
    };
    call.give(AdminCommand::Drain { lasting, never }, accepted).await
}

/// It may lead again.
#[utoipa::path(post, path = "/v1/undrain", tag = "orders")]
async fn undrain(call: Call<Nothing>) -> Result<Accepted, Problem> {
    call.give(AdminCommand::Undrain, "may lead again").await
}

/// Have a member lead while it can, for a while. For the leader.
#[utoipa::path(post, path = "/v1/prefer", tag = "orders", request_body = Prefer)]
async fn prefer(call: Call<Prefer>) -> Result<Accepted, Problem> {
    let member = call.member(&call.body.member)?;
    let lasting = parse_span(&call.body.lasting)?;
    let obeyed = match lasting {
        Span::ZERO => Obeyed::from("prefers nobody"),
        _ => {
            let does = format!("prefers {} for {}", member.name, call.body.lasting);
            Obeyed { does, note: outweighed(&call.app.handle.status(), member.id) }
        }
    };
    call.give(AdminCommand::Prefer { member: member.id, lasting }, obeyed).await
}

/// Why a preference for `id` has no effect yet, if somebody who would lead has lost its office less often.
fn outweighed(status: &Status, id: NodeId) -> Option<String> {
    let member = status.member(id)?;
    let fewest = status.members.iter().filter(|other| other.eligible).map(|other| other.losses);
    let penalty = member.penalty().filter(|_| fewest.min() < Some(member.losses))?;
    let name = &member.name;
    Some(format!(
        "but {name} {penalty}, which weighs more than a preference: it ranks behind others until that is forgiven; \
         `doyen transfer {name}` has it lead all the same"
    ))
}

/// Read the keys again, after a file has changed.
#[utoipa::path(post, path = "/v1/reload-keys", tag = "orders")]
async fn reload_keys(call: Call<Nothing>) -> Result<Accepted, Problem> {
    let handle = call.app.handle.clone();
    let read = async move {
        let keys = handle.reload_keys().await?;
        Ok(Obeyed::from(format!("has read its keys, and {keys}")))
    };
    call.answer(read, "reload-keys".to_owned()).await
}

/// What a member that obeys does.
struct Obeyed {
    /// In words.
    does: String,
    /// What keeps that from having the effect that was wanted.
    note: Option<String>,
}

impl<T: Into<String>> From<T> for Obeyed {
    fn from(does: T) -> Self {
        Self { does: does.into(), note: None }
    }
}

impl<T> Call<T> {
    fn member(&self, member: &MemberRef) -> Result<Name, Problem> {
        let status = self.app.handle.status();
        let found = member.find(&status).and_then(|id| Name::of(&status, id));
        found.ok_or_else(|| {
            let names: Vec<&str> = status.members.iter().map(|member| &*member.name).collect();
            let names = names.join(", ");
            Kind::UnknownMember.because(format!("{member} is not a member; there are {names}"))
        })
    }

    /// Gives an command to the member.
    async fn give(
        self,
        command: AdminCommand,
        obeyed: impl Into<Obeyed>,
    ) -> Result<Accepted, Problem> {
        let handle = self.app.handle.clone();
        let named = self.named(command);
        let obeyed = obeyed.into();
        self.answer(async move { handle.order(command).await.map(|()| obeyed) }, named).await
    }

    /// An command in words, with names.
    fn named(&self, command: AdminCommand) -> String {
        let name = |id| self.app.handle.status().name_of(id);
        match command {
            AdminCommand::Transfer { to } => format!("transfer to {}", name(to)),
            AdminCommand::Prefer { member, lasting } => {
                format!("prefer {} for {lasting}", name(member))
            }
            AdminCommand::Resign
            | AdminCommand::Drain { .. }
            | AdminCommand::Undrain
            | AdminCommand::Attribute(_) => command.to_string(),
        }
    }

    /// Waits for the member's answer, and logs what became of the order.
    async fn answer(
        self,
        asked: impl Future<Output = Result<Obeyed, NotDone>>,
        order: String,
    ) -> Result<Accepted, Problem> {
        let (name, term) = {
            let status = self.app.handle.status();
            (status.name.clone(), status.term.0)
        };
        let answer = match timeout(self.app.limits.answer_within, asked).await {
            Ok(Ok(Obeyed { does, note })) => Ok(Accepted { name, accepted: does, term, note }),
            Ok(Err(why)) => Err(explain(&self.app.handle.status(), &why)),
            Err(_) => Err(Kind::NoAnswer.because("the node did not answer; it may be stuck")),
        };
        let from = self.line.peer;
        match &answer {
            Ok(obeyed) => tracing::info!(%from, order, term, "obeys an order: {}", obeyed.accepted),
            Err(why) => {
                tracing::warn!(%from, order, term, "does not obey an order: {}", why.detail);
            }
        }
        answer
    }
}

/// Why a member cannot be handed the office, as far as this node can tell.
fn unfit(status: &Status, id: NodeId) -> String {
    let name = status.name_of(id);
    match status.member(id) {
        _ if status.leader == Some(id) => format!("{name} leads already"),
        Some(member) if member.witness => format!("{name} is a witness, which never leads"),
        Some(member) if !member.eligible => {
            format!("{name} cannot lead now: it is drained, or stands back")
        }
        Some(member) if !member.heard => format!("{name} cannot lead now: it is not heard"),
        _ => format!("{name} cannot lead now: it has just restarted, or reaches no majority"),
    }
}

/// Why an order was not obeyed, in this cluster's names.
fn explain(status: &Status, why: &NotDone) -> Problem {
    let leader = status.leader.and_then(|leader| Name::of(status, leader));
    let refusal = match why {
        NotDone::Refused(refusal) => refusal,
        NotDone::NoLeases => {
            let detail = format!("{}: {why}", status.algorithm);
            return Kind::NoOrders.because(detail).naming(leader);
        }
        NotDone::Rejoining => return Kind::Rejoining.because(why.to_string()).naming(leader),
        NotDone::Busy => return Kind::Busy.because(why.to_string()),
        NotDone::Stopped => return Kind::Stopped.because(why.to_string()),
        NotDone::Keys(_) => return Kind::KeysUnreadable.because(why.to_string()),
    };
    match refusal {
        Refusal::NotLeading => {
            let detail = match &leader {
                Some(leader) if leader.id != status.id => {
                    format!("{} does not lead; {} does", status.name, leader.name)
                }
                _ => format!("{} does not lead, and knows of nobody who does", status.name),
            };
            Kind::NotLeader.because(detail).naming(leader)
        }
        Refusal::Unfit(id) => Kind::Unfit.because(unfit(status, *id)).naming(leader),
        Refusal::NobodyElse => Kind::NobodyElse.because(refusal.to_string()).naming(leader),
        Refusal::Rejoining => Kind::Rejoining.because(refusal.to_string()).naming(leader),
    }
}

fn parse_span(text: &str) -> Result<Span, Problem> {
    let wrong = |problem: &dyn std::fmt::Display| {
        let detail = format!("`{text}` is not a length of time ({problem}); write for example 2h");
        Kind::BadRequest.because(detail)
    };
    let span = humantime::parse_duration(text).map_err(|error| wrong(&error))?;
    let nanos = u64::try_from(span.as_nanos()).map_err(|_| wrong(&"it is too long"))?;
    Ok(Span::from_nanos(nanos))
}

/// What all orders have in common: the token, the term, the answers.
fn describe(document: &mut OpenApi) {
    let scheme = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("The token in `admin-token`, in the node's state folder."));
    let components = document.components.get_or_insert_default();
    components.add_security_scheme(TOKEN, SecurityScheme::Http(scheme.build()));
    for schema in [(Problem::name(), Problem::schema()), (Accepted::name(), Accepted::schema())] {
        components.schemas.insert(schema.0.into_owned(), schema.1);
    }
    for item in document.paths.paths.values_mut() {
        if let Some(operation) = &mut item.post {
            complete(operation);
        }
    }
}

fn complete(operation: &mut Operation) {
    let term = ParameterBuilder::new()
        .name("If-Match")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some("The term for which the order is meant, as in an ETag."))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String).examples(["\"7\""])))
        .build();
    operation.parameters.get_or_insert_default().push(RefOr::T(term));
    operation.security = Some(vec![SecurityRequirement::new(TOKEN, [] as [&str; 0])]);
    let answers = [
        ("202", "It obeys."),
        ("401", "There is no token, or the wrong one."),
        ("409", "It does not obey: it does not lead, or nobody else could."),
        ("412", "The term is another."),
        ("default", "Anything else is wrong."),
    ];
    for (status, description) in answers {
        let (kind, schema) = match status {
            "202" => ("application/json", Accepted::name()),
            _ => (problem::CONTENT_TYPE, Problem::name()),
        };
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(schema))).build();
        let response = ResponseBuilder::new().description(description).content(kind, content);
        operation.responses.responses.insert(status.to_owned(), RefOr::T(response.build()));
    }
}
