//! Errors as problem details (RFC 9457), like those of a node.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use doyen::api::Problem;

/// A problem; `detail` is shown to people as it is.
pub(crate) fn problem(status: StatusCode, kind: &str, detail: impl Into<String>) -> Response {
    let title = status.canonical_reason().unwrap_or("Problem").to_owned();
    let kind = format!("urn:doyen:{kind}");
    Problem { kind, title, status: status.as_u16(), detail: detail.into(), leader: None }
        .into_response()
}
