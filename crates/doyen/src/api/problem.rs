//! Errors as problem details (RFC 9457): the kind, what is wrong, and what to do.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::{OpenApi, RefOr};

use super::report::Name;

/// The content type of a problem.
const CONTENT_TYPE: &str = "application/problem+json";

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

/// The kinds of problems, from one table: each with its name, HTTP status and title.
macro_rules! kinds {
    ($($kind:ident = $name:literal, $status:literal, $title:literal;)*) => {
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(super) enum Kind {
            $($kind,)*
        }

        impl Kind {
            /// Its name, HTTP status and title.
            fn describe(self) -> (&'static str, u16, &'static str) {
                match self {
                    $(Self::$kind => ($name, $status, $title),)*
                }
            }
        }
    };
}

kinds! {
    NoLease = "no-lease", 503, "No lease";
    NotFollowing = "not-following", 503, "Not following a leader";
    Stuck = "stuck", 503, "Not alive";
    NotReady = "not-ready", 503, "Not ready";
    NotFound = "not-found", 404, "Not found";
    MethodNotAllowed = "method-not-allowed", 405, "Method not allowed";
    BadRequest = "bad-request", 400, "Bad request";
    NotJson = "not-json", 415, "Not JSON";
    TooLarge = "too-large", 413, "Request too large";
    TooSlow = "too-slow", 408, "Request too slow";
    UnknownMember = "unknown-member", 422, "Unknown member";
    BadTime = "bad-time", 422, "Not a usable time";
    WrongHost = "wrong-host", 421, "Wrong host";
    WrongOrigin = "wrong-origin", 403, "Wrong origin";
    WrongUser = "wrong-user", 403, "Wrong user";
    Unauthorized = "unauthorized", 401, "Admin secret required";
    TermMismatch = "term-mismatch", 412, "Another term";
    NotLeader = "not-leader", 409, "Not the leader";
    NotEligible = "not-eligible", 409, "The member cannot lead";
    NoSuccessor = "no-successor", 409, "No other member can lead";
    NotPaused = "not-paused", 409, "Elections are not paused";
    Rejoining = "rejoining", 409, "Still rejoining";
    NoCommands = "no-commands", 409, "Admin commands not supported";
    KeysUnreadable = "keys-unreadable", 500, "Keys cannot be read";
    Busy = "busy", 503, "Too busy";
    Stopped = "stopped", 503, "The node has stopped";
    NoAnswer = "no-answer", 504, "No answer in time";
    TooManyWatchers = "too-many-watchers", 503, "Too many watchers";
    TooManyConnections = "too-many-connections", 503, "Too many connections";
    AdminOff = "admin-off", 403, "No admin commands over HTTP";
    Stale = "stale", 503, "Status out of date";
    ForwardingOff = "forwarding-off", 403, "No forwarded commands";
    NotReloaded = "not-reloaded", 409, "Configuration not reloaded";
    OlderVersion = "older-version", 409, "The member runs an older version";
    Unreachable = "unreachable", 504, "The member does not answer";
    BadLock = "bad-lock", 422, "Not a usable claim to a lock";
    LockLost = "lock-lost", 410, "The lock is lost";
    TooManyLocks = "too-many-locks", 429, "Too many claims to locks";
    Failed = "failed", 500, "Internal error";
}

impl Kind {
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

/// Gives the problems in a document their content type: every response that is not a success is one.
pub(super) fn describe(document: &mut OpenApi) {
    let items = document.paths.paths.values_mut();
    for operation in items.flat_map(|item| [&mut item.get, &mut item.post]).flatten() {
        let responses = operation.responses.responses.iter_mut();
        for (_, response) in responses.filter(|(status, _)| !status.starts_with('2')) {
            if let RefOr::T(response) = response
                && let Some(content) = response.content.swap_remove("application/json")
            {
                response.content.insert(CONTENT_TYPE.to_owned(), content);
            }
        }
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
