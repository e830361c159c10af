//! Admin calls that are rejected are logged and counted, whatever rejects them: the checks of `Host`, `Origin` and secret,
//! the body, or the member.
//!
//! A call that reached the member is logged every time, because its sender has the secret. Any client can send other
//! calls, so they are logged once a minute for each client and kind of problem.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock};

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;

use super::App;
use super::forward;
use super::problem::Problem;
use super::server::ConnInfo;
use crate::mutex::lock;
use crate::throttle::Throttle;

/// How calls that were accepted are counted.
const ACCEPTED: &str = "accepted";

/// How calls without the right admin secret are counted.
const UNAUTHORIZED: &str = "unauthorized";
const WRONG_USER: &str = "wrong-user";

/// The result for a member that another one does not reach.
const OUT_OF_REACH: [&str; 2] = ["unreachable", "older-version"];

/// A command as text, once it is known.
#[derive(Clone, Debug, Default)]
pub(super) struct CommandText(Arc<OnceLock<String>>);

impl CommandText {
    /// The command is sent to the member now.
    pub(super) fn set(&self, command: &str) {
        self.0.get_or_init(|| command.to_owned());
    }
}

/// The results of admin calls.
#[derive(Debug)]
pub(super) struct Audit(Mutex<Calls>);

#[derive(Debug)]
struct Calls {
    counts: BTreeMap<String, u64>,
    throttle: Throttle<(IpAddr, String)>,
}

impl Audit {
    pub(super) fn new() -> Self {
        // So that the first one is a change of a number, which an alert sees.
        let counts =
            [ACCEPTED, UNAUTHORIZED, WRONG_USER].map(|result| (result.to_owned(), 0)).into();
        Self(Mutex::new(Calls { counts, throttle: Throttle::new() }))
    }

    /// The number of calls by result: `accepted`, or the name of a problem.
    pub(super) fn counts(&self) -> BTreeMap<String, u64> {
        lock(&self.0).counts.clone()
    }

    /// Counts a call.
    fn count(&self, result: &str) {
        *lock(&self.0).counts.entry(result.to_owned()).or_default() += 1;
    }

    fn is_due(&self, client: IpAddr, kind: &str) -> bool {
        lock(&self.0).throttle.is_due((client, kind.to_owned()))
    }
}

/// Wraps what every client may read: a request that names a member is an admin call.
pub(super) async fn audit_if_named(
    state: State<App>,
    connection: Extension<ConnInfo>,
    request: Request,
    next: Next,
) -> Response {
    match forward::names_member(&request) {
        true => audit(state, connection, request, next).await,
        false => next.run(request).await,
    }
}

/// Wraps every admin call.
pub(super) async fn audit(
    State(app): State<App>,
    Extension(connection): Extension<ConnInfo>,
    mut request: Request,
    next: Next,
) -> Response {
    let text = CommandText::default();
    let only_reads = request.method() == Method::GET;
    let name = request.uri().path().trim_start_matches("/v1/").to_owned();
    request.extensions_mut().insert(text.clone());
    let response = next.run(request).await;
    let Some(problem) = response.extensions().get::<Problem>() else {
        app.audit.count(ACCEPTED);
        return response;
    };
    let kind = problem.kind.trim_start_matches("urn:doyen:");
    app.audit.count(kind);
    // Nothing was rejected: the member that was to answer is unreachable, and the client is told so.
    if only_reads && OUT_OF_REACH.contains(&kind) {
        return response;
    }
    let command = text.0.get();
    if command.is_some() || app.audit.is_due(connection.client(), kind) {
        let status = app.handle.status();
        let (node, term, reason) = (&status.name, status.term.0, &problem.detail);
        let command = command.unwrap_or(&name);
        tracing::warn!(
            node, event = "command-rejected", command, term, reason, problem = kind, address = %connection,
            "{node}: rejected command `{command}` from {connection}: {reason}"
        );
    }
    response
}
