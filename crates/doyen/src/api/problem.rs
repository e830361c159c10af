//! Errors, as RFC 9457 writes them: what kind, what exactly, and what may help.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::report::Name;

/// The content type of a problem.
pub(super) const CONTENT_TYPE: &str = "application/problem+json";

/// Why a request was not fulfilled.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// The kind of the problem: `urn:doyen:` and its name. Programs go by this.
    #[serde(rename = "type")]
    #[schema(examples("urn:doyen:not-leader"))]
    pub kind: String,
    /// The kind in words.
    pub title: String,
    /// The status of the answer.
    pub status: u16,
    /// What exactly is wrong, and what to do about it.
    pub detail: String,
    /// Who leads, where that helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<Name>,
}

/// The kinds of problems.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    NoLease,
    NotFollowing,
    Stuck,
    NotReady,
    NotFound,
    MethodNotAllowed,
    BadRequest,
    NotJson,
    TooLarge,
    TooSlow,
    UnknownMember,
    WrongHost,
    WrongOrigin,
    NoToken,
    OtherTerm,
    NotLeader,
    Unfit,
    NobodyElse,
    Rejoining,
    NoOrders,
    KeysUnreadable,
    Busy,
    Stopped,
    NoAnswer,
    TooManyWatchers,
    Failed,
}

impl Kind {
    /// Its name, its status and its title.
    fn describe(self) -> (&'static str, StatusCode, &'static str) {
        match self {
            Self::NoLease => ("no-lease", StatusCode::SERVICE_UNAVAILABLE, "No lease"),
            Self::NotFollowing => {
                ("not-following", StatusCode::SERVICE_UNAVAILABLE, "Not following")
            }
            Self::Stuck => ("stuck", StatusCode::SERVICE_UNAVAILABLE, "Not alive"),
            Self::NotReady => ("not-ready", StatusCode::SERVICE_UNAVAILABLE, "Not ready"),
            Self::NotFound => ("not-found", StatusCode::NOT_FOUND, "Not found"),
            Self::MethodNotAllowed => {
                ("method-not-allowed", StatusCode::METHOD_NOT_ALLOWED, "Method not allowed")
            }
            Self::BadRequest => ("bad-request", StatusCode::BAD_REQUEST, "Bad request"),
            Self::NotJson => ("not-json", StatusCode::UNSUPPORTED_MEDIA_TYPE, "Not JSON"),
            Self::TooLarge => ("too-large", StatusCode::PAYLOAD_TOO_LARGE, "Request too large"),
            Self::TooSlow => ("too-slow", StatusCode::REQUEST_TIMEOUT, "Request too slow"),
            Self::UnknownMember => {
                ("unknown-member", StatusCode::UNPROCESSABLE_ENTITY, "Unknown member")
            }
            Self::WrongHost => ("wrong-host", StatusCode::MISDIRECTED_REQUEST, "Wrong host"),
            Self::WrongOrigin => ("wrong-origin", StatusCode::FORBIDDEN, "Wrong origin"),
            Self::NoToken => ("no-token", StatusCode::UNAUTHORIZED, "No token"),
            Self::OtherTerm => ("other-term", StatusCode::PRECONDITION_FAILED, "Another term"),
            Self::NotLeader => ("not-leader", StatusCode::CONFLICT, "Not the leader"),
            Self::Unfit => ("unfit", StatusCode::CONFLICT, "That member cannot lead"),
            Self::NobodyElse => ("nobody-else", StatusCode::CONFLICT, "Nobody else could lead"),
            Self::Rejoining => ("rejoining", StatusCode::CONFLICT, "Still rejoining"),
            Self::NoOrders => ("no-orders", StatusCode::CONFLICT, "Orders are not heeded"),
            Self::KeysUnreadable => {
                ("keys-unreadable", StatusCode::INTERNAL_SERVER_ERROR, "Keys cannot be read")
            }
            Self::Busy => ("busy", StatusCode::SERVICE_UNAVAILABLE, "Too busy"),
            Self::Stopped => ("stopped", StatusCode::SERVICE_UNAVAILABLE, "The node has stopped"),
            Self::NoAnswer => ("no-answer", StatusCode::GATEWAY_TIMEOUT, "No answer in time"),
            Self::TooManyWatchers => {
                ("too-many-watchers", StatusCode::SERVICE_UNAVAILABLE, "Too many watchers")
            }
            Self::Failed => ("failed", StatusCode::INTERNAL_SERVER_ERROR, "Failed"),
        }
    }

    /// A problem of this kind.
    pub(super) fn because(self, detail: impl Into<String>) -> Problem {
        let (name, status, title) = self.describe();
        Problem {
            kind: format!("urn:doyen:{name}"),
            title: title.to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            leader: None,
        }
    }
}

impl Problem {
    /// The same, naming the leader.
    #[must_use]
    pub(super) fn naming(self, leader: Option<Name>) -> Self {
        Self { leader, ..self }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        // It was made of one.
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(self)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
