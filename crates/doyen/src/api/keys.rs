//! Key rotation on one member, and what `doyen doctor` asks every member.
//!
//! A rotation is driven from one place (`doyen keys rotate`), member by member. A key leaves a member in a sealed datagram
//! only: `offer` has this member send one of its keys to another, and `add` is accepted over the admin socket and from other
//! members, never over HTTP.

use axum::Json;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use zeroize::Zeroizing;

use super::App;
use super::call::Call;
use super::commands::{Accepted, Effect, MemberRef, Nothing};
use super::forward;
use super::problem::{Kind, Problem};
use super::server::ConnInfo;
use crate::clock::unix_ms;
use crate::key::{Key, Keyring};
use crate::node::compared::Compared;
use crate::node::keys::{Chosen, KeyReport, KeyStep};
use crate::node::status::Status;
use crate::node::wire;

/// What a member says of itself, for comparison with the others.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Diagnosis {
    /// Everything that it knows.
    pub status: Status,
    /// The highest version of datagrams that it speaks.
    pub datagrams: u8,
    /// Its keys, by their fingerprints.
    pub keys: KeyReport,
    /// Its wall clock, in milliseconds since 1970.
    pub unix_ms: u64,
    /// Whether it carries out commands that another member forwards; none of an older release.
    #[serde(default)]
    pub forwarded_commands: Option<bool>,
    /// Its settings that should be the same on all members; none of an older release.
    #[serde(default)]
    pub settings: Option<Compared>,
}

/// A key of this member, by its fingerprint.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyRef {
    /// Its fingerprint.
    #[schema(examples("1f3a90c4"))]
    pub fingerprint: String,
    /// The fingerprints of all keys that this member must have, in any order. If it has others, another rotation is under
    /// way, and nothing changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub among: Option<Vec<String>>,
}

impl From<KeyRef> for Chosen {
    fn from(KeyRef { fingerprint, among }: KeyRef) -> Self {
        Self { fingerprint, among }
    }
}

/// Which key to send to which member.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyOffer {
    /// The fingerprint of a key in this member's file.
    pub fingerprint: String,
    /// The member that is to add it.
    pub to: MemberRef,
}

/// A key: the secret itself.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewKey {
    /// Its line in a key file.
    key: String,
}

impl Drop for NewKey {
    fn drop(&mut self) {
        drop(Zeroizing::new(std::mem::take(&mut self.key)));
    }
}

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(diagnosis))
        .routes(routes!(create))
        .routes(routes!(offer))
        .routes(routes!(add))
        .routes(routes!(promote))
        .routes(routes!(retire))
}

/// Keys, clock, version, settings and status of this member, for `doyen doctor`.
#[utoipa::path(get, path = "/v1/diagnosis", tag = "status", security(("admin_secret" = [])),
    params(("member" = Option<String>, Query, description = "The member that is to answer, by name or id.")),
    responses((status = 200, description = "As far as this node knows.", body = Diagnosis)))]
async fn diagnosis(call: Call<Nothing>) -> Json<Diagnosis> {
    let handle = &call.app.handle;
    Json(Diagnosis {
        status: Status::clone(&handle.status()),
        datagrams: wire::VERSION,
        keys: handle.key_report().await,
        unix_ms: unix_ms(),
        forwarded_commands: Some(call.app.auth.takes_forwarded_commands()),
        settings: Some(handle.compared()),
    })
}

/// Add a new key to the key file of this member: it opens, and does not seal yet.
#[utoipa::path(post, path = "/v1/keys/create", tag = "keys")]
async fn create(call: Call<Nothing>) -> Result<Accepted, Problem> {
    let key = Key::generate().map_err(|error| {
        Kind::Failed.with_detail(format!("the operating system returns no random numbers: {error}"))
    })?;
    let text = format!("create key {}", key.fingerprint());
    call.take(KeyStep::Add(key), text).await
}

/// Have another member add a key of this one. It travels sealed.
#[utoipa::path(post, path = "/v1/keys/offer", tag = "keys", request_body = KeyOffer)]
async fn offer(call: Call<KeyOffer>) -> Result<Accepted, Problem> {
    let KeyOffer { fingerprint, to } = call.body.clone();
    let (app, by) = (call.app.clone(), call.connection.to_string());
    let member = app.member(&to)?;
    let key = app.handle.key(fingerprint).await.map_err(|error| app.explain(&error))?;
    let new = NewKey { key: key.to_line() };
    let call = forward::Call {
        is_command: true,
        path: ADD.to_owned(),
        if_match: None,
        by,
        body: serde_json::to_string(&new).unwrap_or_default().into(),
    };
    let reply = app.ask(&member, call).await?;
    if let Some(problem) = reply.problem() {
        return Err(problem);
    }
    serde_json::from_str(&reply.body).map_err(|error| {
        let detail = format!("the answer of {} cannot be read: {error}", member.name);
        Kind::Failed.with_detail(detail)
    })
}

/// Where a member gets a key from another one.
pub(super) const ADD: &str = "/v1/keys/add";

/// Add a key of another member. Not over HTTP, where it would be readable on the way.
#[utoipa::path(post, path = "/v1/keys/add", tag = "keys", request_body = NewKey)]
async fn add(call: Call<NewKey>) -> Result<Accepted, Problem> {
    if let ConnInfo::Tcp { .. } = call.connection {
        let detail = "a key is accepted over the admin socket and from other members only";
        return Err(Kind::AdminOff.with_detail(detail));
    }
    let ring = Keyring::parse(&call.body.key);
    let ring = ring.map_err(|error| Kind::BadRequest.with_detail(format!("key: {error}")))?;
    let [key] = ring.keys() else {
        return Err(Kind::BadRequest.with_detail("key: give one key"));
    };
    let (step, text) = (KeyStep::Add(key.clone()), format!("add key {}", key.fingerprint()));
    call.take(step, text).await
}

/// Seal with the key that has this fingerprint. All members must have it.
#[utoipa::path(post, path = "/v1/keys/promote", tag = "keys", request_body = KeyRef)]
async fn promote(call: Call<KeyRef>) -> Result<Accepted, Problem> {
    let text = format!("promote key {}", call.body.fingerprint);
    let step = KeyStep::Promote(call.body.clone().into());
    call.take(step, text).await
}

/// Remove all keys but the one with this fingerprint, which must be the one that seals. All members must seal with it.
#[utoipa::path(post, path = "/v1/keys/retire", tag = "keys", request_body = KeyRef)]
async fn retire(call: Call<KeyRef>) -> Result<Accepted, Problem> {
    let text = format!("retire all keys but {}", call.body.fingerprint);
    let step = KeyStep::Retire(call.body.clone().into());
    call.take(step, text).await
}

impl<T> Call<T> {
    async fn take(self, step: KeyStep, text: String) -> Result<Accepted, Problem> {
        let handle = self.app.handle.clone();
        let taken = async move { handle.change_keys(step).await.map(Effect::from) };
        self.answer(taken, text).await
    }
}
