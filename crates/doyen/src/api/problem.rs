//! Errors as problem details (RFC 9457): the kind, what is wrong, and what to do.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::report::Name;

/// The content type of a problem.
pub(super) const CONTENT_TYPE: &str = "application/problem+json";

/// Why a request failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// The kind of the problem for programs: `urn:doyen:` and a name.
    #[serde(rename = "type")]
    #[schema(examples("urn:doyen:not-leader"))]
    pub kind: String,
    /// The kind of the problem as text.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What exactly is wrong, and what to do about it.
    pub detail: String,
    /// The current leader, where that helps.
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
    BadTime,
    WrongHost,
    WrongOrigin,
    Unauthorized,
    TermMismatch,
    NotLeader,
    NotEligible,
    NoSuccessor,
    NotPaused,
    Rejoining,
    NoCommands,
    KeysUnreadable,
    Busy,
    Stopped,
    NoAnswer,
    TooManyWatchers,
    TooManyConnections,
    AdminOff,
    Stale,
    ForwardingOff,
    NotReloaded,
    OlderVersion,
    Unreachable,
    BadLock,
    LockLost,
    TooManyLocks,
    Failed,
}

impl Kind {
    /// Its name, HTTP status and title.
    fn describe(self) -> (&'static str, u16, &'static str) {
        match self {
            Self::NoLease => ("no-lease", 503, "No lease"),
            Self::NotFollowing => ("not-following", 503, "Not following a leader"),
            Self::Stuck => ("stuck", 503, "Not alive"),
            Self::NotReady => ("not-ready", 503, "Not ready"),
            Self::NotFound => ("not-found", 404, "Not found"),
            Self::MethodNotAllowed => ("method-not-allowed", 405, "Method not allowed"),
            Self::BadRequest => ("bad-request", 400, "Bad request"),
            Self::NotJson => ("not-json", 415, "Not JSON"),
            Self::TooLarge => ("too-large", 413, "Request too large"),
            Self::TooSlow => ("too-slow", 408, "Request too slow"),
            Self::UnknownMember => ("unknown-member", 422, "Unknown member"),
            Self::BadTime => ("bad-time", 422, "Not a usable time"),
            Self::WrongHost => ("wrong-host", 421, "Wrong host"),
            Self::WrongOrigin => ("wrong-origin", 403, "Wrong origin"),
            Self::Unauthorized => ("unauthorized", 401, "Admin secret required"),
            Self::TermMismatch => ("term-mismatch", 412, "Another term"),
            Self::NotLeader => ("not-leader", 409, "Not the leader"),
            Self::NotEligible => ("not-eligible", 409, "The member cannot lead"),
            Self::NoSuccessor => ("no-successor", 409, "No other member can lead"),
            Self::NotPaused => ("not-paused", 409, "Elections are not paused"),
            Self::Rejoining => ("rejoining", 409, "Still rejoining"),
            Self::NoCommands => ("no-commands", 409, "Admin commands not supported"),
            Self::KeysUnreadable => ("keys-unreadable", 500, "Keys cannot be read"),
            Self::Busy => ("busy", 503, "Too busy"),
            Self::Stopped => ("stopped", 503, "The node has stopped"),
            Self::NoAnswer => ("no-answer", 504, "No answer in time"),
            Self::TooManyWatchers => ("too-many-watchers", 503, "Too many watchers"),
            Self::TooManyConnections => ("too-many-connections", 503, "Too many connections"),
            Self::AdminOff => ("admin-off", 403, "No admin commands over HTTP"),
            Self::Stale => ("stale", 503, "Status out of date"),
            Self::ForwardingOff => ("forwarding-off", 403, "No forwarded commands"),
            Self::NotReloaded => ("not-reloaded", 409, "Configuration not reloaded"),
            Self::OlderVersion => ("older-version", 409, "The member runs an older version"),
            Self::Unreachable => ("unreachable", 504, "The member does not answer"),
            Self::BadLock => ("bad-lock", 422, "Not a usable claim to a lock"),
            Self::LockLost => ("lock-lost", 410, "The lock is lost"),
            Self::TooManyLocks => ("too-many-locks", 429, "Too many claims to locks"),
            Self::Failed => ("failed", 500, "Internal error"),
        }
    }

    /// A problem of this kind.
    pub(super) fn with_detail(self, detail: impl Into<String>) -> Problem {
        let (name, status, title) = self.describe();
        Problem {
            kind: format!("urn:doyen:{name}"),
            title: title.to_owned(),
            status,
            detail: detail.into(),
            leader: None,
        }
    }
}

impl Problem {
    /// The leader, if the request was rejected because this member is not.
    pub(super) fn other_leader(&self) -> Option<&Name> {
        self.leader.as_ref().filter(|_| self.kind == "urn:doyen:not-leader")
    }

    /// The same problem, with the current leader.
    #[must_use]
    pub(super) fn with_leader(self, leader: Option<Name>) -> Self {
        Self { leader, ..self }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(&self)).into_response();
        // For the log: see `audit.rs`.
        response.extensions_mut().insert(self);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
