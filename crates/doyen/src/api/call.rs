//! A call that gives an order: let through, in the right term, read and understood.
//!
//! [`Call`] is the only way to what an order's handler needs, and there is no way to it past the checks: Host, Origin and
//! token, then the term, then the body. An order that is added later cannot forget one.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use doyen_core::members::Term;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::App;
use super::door::Line;
use super::problem::{Kind, Problem};

/// An order that may be given.
#[derive(Debug)]
pub(super) struct Call<T> {
    pub(super) app: App,
    /// From where it came, for the records.
    pub(super) line: Line,
    /// What it says.
    pub(super) body: T,
}

impl<T: DeserializeOwned> FromRequest<App> for Call<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        app.guard.check(&parts)?;
        check_term(&parts.headers, app.handle.status().term)?;
        let line = *parts.extensions.get::<Line>().ok_or_else(|| {
            Kind::Failed.because("the request came over no connection: a mistake in doyen")
        })?;
        let headers = parts.headers.clone();
        let reading = Bytes::from_request(Request::from_parts(parts, body), &());
        let bytes = match timeout(app.limits.body_within, reading).await {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(error)) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => {
                return Err(Kind::TooLarge.because("the body is longer than any order"));
            }
            Ok(Err(error)) => return Err(Kind::BadRequest.because(error.body_text())),
            Err(_) => return Err(Kind::TooSlow.because("the body did not come in time")),
        };
        Ok(Self { app: app.clone(), line, body: parse(&headers, &bytes)? })
    }
}

/// What the body says. No body says as much as an empty object.
fn parse<T: DeserializeOwned>(headers: &HeaderMap, body: &[u8]) -> Result<T, Problem> {
    let body = if body.is_empty() {
        b"{}"
    } else if is_json(headers) {
        body
    } else {
        return Err(Kind::NotJson.because("the body must be of the type application/json"));
    };
    serde_json::from_slice(body)
        .map_err(|error| Kind::BadRequest.because(format!("the body is wrong: {error}")))
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let essence = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

/// Whether the order is meant for this term: `If-Match: "7"`. One without it is meant for any.
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
        let detail = format!("If-Match: `{wrong}` is no tag; write for example \"{term}\"");
        return Err(Kind::BadRequest.because(detail));
    }
    if wanted.iter().any(|&tag| tag == "*" || tag == format!("\"{term}\"")) {
        return Ok(());
    }
    let wanted = wanted.join(", ");
    Err(Kind::OtherTerm.because(format!("the term is {term}, and the order is for {wanted}")))
}

fn is_tag(tag: &str) -> bool {
    // A weak tag is a tag, but If-Match compares strongly: it never matches.
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
    fn an_order_is_for_the_term_it_names_or_for_any() {
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
