//! Counts requests, by path and status. A path is that of a route, so that no client can make up more of them.

use std::collections::BTreeMap;
use std::sync::Mutex;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;

use super::App;
use crate::mutex::lock;

/// The path of what has no route.
const OTHER: &str = "other";

/// How many requests were answered, by path and status.
#[derive(Debug, Default)]
pub(super) struct Requests(Mutex<BTreeMap<(String, u16), u64>>);

impl Requests {
    pub(super) fn counts(&self) -> BTreeMap<(String, u16), u64> {
        lock(&self.0).clone()
    }
}

/// Wraps every request.
pub(super) async fn count(State(app): State<App>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>();
    let path = path.map_or(OTHER, MatchedPath::as_str).to_owned();
    let response = next.run(request).await;
    *lock(&app.requests.0).entry((path, response.status().as_u16())).or_default() += 1;
    response
}
