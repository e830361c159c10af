//! Counts requests, by path and status. A path is that of a route, so that no client can make up more of them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;

use super::App;

/// The path of what has no route.
const OTHER: &str = "other";

/// How many requests were answered, by path and status.
#[derive(Debug, Default)]
pub(super) struct Requests(Mutex<BTreeMap<(String, u16), u64>>);

impl Requests {
    fn table(&self) -> MutexGuard<'_, BTreeMap<(String, u16), u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn counts(&self) -> BTreeMap<(String, u16), u64> {
        self.table().clone()
    }
}

/// Wraps every request.
pub(super) async fn count(State(app): State<App>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>();
    let path = path.map_or(OTHER, MatchedPath::as_str).to_owned();
    let response = next.run(request).await;
    *app.requests.table().entry((path, response.status().as_u16())).or_default() += 1;
    response
}
