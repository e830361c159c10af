//! A request with a body, after all checks.
//!
//! The handler of a command takes a [`Call`], and a `Call` can only be extracted past the checks: host, origin and admin
//! secret, then the term, then the body. A command that is added later cannot forget one. What needs no secret takes an
//! [`OpenCall`], whose term and body are checked alike.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use doyen_core::members::Term;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::audit::CommandText;
use super::problem::{Kind, Problem};
use super::server::ConnInfo;
use super::{App, Limits};

/// An authorized admin command.
#[derive(Debug)]
pub(super) struct Call<T> {
    pub(super) app: App,
    pub(super) connection: ConnInfo,
    pub(super) text: CommandText,
    pub(super) body: T,
}

impl<T: DeserializeOwned> FromRequest<App> for Call<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        app.auth.check(&parts, &app.handle.status().name)?;
        let text = parts.extensions.get::<CommandText>().cloned().unwrap_or_default();
        let OpenCall { app, connection, body } =
            OpenCall::from_request(Request::from_parts(parts, body), app).await?;
        Ok(Self { app, connection, text, body })
    }
}

/// A request that needs no admin secret.
#[derive(Debug)]
pub(super) struct OpenCall<T> {
    pub(super) app: App,
    pub(super) connection: ConnInfo,
    pub(super) body: T,
}

impl<T: DeserializeOwned> FromRequest<App> for OpenCall<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let connection = parts.extensions.get::<ConnInfo>().cloned().ok_or_else(|| {
            Kind::Failed.with_detail("the request has no connection; this is a bug in doyen")
        })?;
        check_term(&parts.headers, app.handle.status().term)?;
        let headers = parts.headers.clone();
        let bytes = read_body(Request::from_parts(parts, body), &app.limits).await?;
        Ok(Self { app: app.clone(), connection, body: parse(&headers, &bytes)? })
    }
}

/// Reads the whole body of a request, within the limits.
pub(super) async fn read_body(request: Request, limits: &Limits) -> Result<Bytes, Problem> {
    match timeout(limits.body_timeout, Bytes::from_request(request, &())).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            Err(Kind::TooLarge.with_detail("the body is too long for any command"))
        }
        Ok(Err(error)) => Err(Kind::BadRequest.with_detail(error.body_text())),
        Err(_) => Err(Kind::TooSlow.with_detail("the body did not arrive in time")),
    }
}

/// Parses the body. No body counts as an empty object.
fn parse<T: DeserializeOwned>(headers: &HeaderMap, body: &[u8]) -> Result<T, Problem> {
    let body = if body.is_empty() {
        b"{}"
    } else if is_json(headers) {
        body
    } else {
        return Err(
            Kind::NotJson.with_detail("the content type of the body must be application/json")
        );
    };
    serde_json::from_slice(body)
        .map_err(|error| Kind::BadRequest.with_detail(format!("invalid body: {error}")))
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let essence = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

/// Whether the command is meant for this term: `If-Match: "7"`. Without that header it is meant for any term.
fn check_term(headers: &HeaderMap, term: Term) -> Result<(), Problem> {
    let mut wanted = headers.get_all(header::IF_MATCH).iter().peekable();
    if wanted.peek().is_none() {
        return Ok(());
    }
    let wanted: Vec<&str> = wanted
        .map(|value| value.to_str().unwrap_or_default())
        .flat_map(|list| list.split(','))
        .map(str::trim)
        .collect();
    if let Some(wrong) = wanted.iter().find(|tag| !is_tag(tag)) {
        let detail =
            format!("If-Match: `{wrong}` is not an entity tag; write for example \"{term}\"");
        return Err(Kind::BadRequest.with_detail(detail));
    }
    if wanted.iter().any(|&tag| tag == "*" || tag == format!("\"{term}\"")) {
        return Ok(());
    }
    let wanted = wanted.join(", ");
    let detail = format!("the term is {term}, but the command is for term {wanted}");
    Err(Kind::TermMismatch.with_detail(detail))
}

fn is_tag(tag: &str) -> bool {
    // A weak tag is valid, but If-Match uses the strong comparison, so it never matches.
    let quoted = tag.strip_prefix("W/").unwrap_or(tag);
    tag == "*" || (quoted.len() >= 2 && quoted.starts_with('"') && quoted.ends_with('"'))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn status(tags: &[&'static str]) -> u16 {
        let mut headers = HeaderMap::new();
        for tag in tags {
            headers.append(header::IF_MATCH, HeaderValue::from_static(tag));
        }
        check_term(&headers, Term(7)).map_or_else(|problem| problem.status, |()| 200)
    }

    #[test]
    fn a_command_is_for_the_term_it_names_or_for_any() {
        for good in [&[][..], &["\"7\""], &["*"], &["\"6\", \"7\""], &["\"6\"", "\"7\""]] {
            assert_eq!(status(good), 200, "{good:?}");
        }
        for other in [&["\"6\""][..], &["W/\"7\""], &["\"77\""], &["\"\""]] {
            assert_eq!(status(other), 412, "{other:?}");
        }
        for wrong in [&["7"][..], &[""], &["\""], &["\"7\","]] {
            assert_eq!(status(wrong), 400, "{wrong:?}");
        }
    }
}
