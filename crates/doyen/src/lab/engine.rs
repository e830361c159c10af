//! The engine of the page's other half: simulations and checks. They are pure and bounded and touch no node. A long
//! computation ends when its client has gone; all but checks, which report their progress, also end after a time.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use doyen::blocking::in_thread;
use futures_util::stream;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::problem::problem;

/// How many requests are computed at a time.
const AT_A_TIME: usize = 2;

/// How long a computation may take.
const LIMIT: Duration = Duration::from_secs(20);

/// The shortest time between two lines of progress: people read no faster.
const PAUSE: Duration = Duration::from_millis(50);

/// How many lines of progress may wait for a client that reads slowly.
const WAITING: usize = 16;

/// There is no thread for the engine, or it has a bug.
fn failed(error: &io::Error) -> String {
    format!("the engine failed: {error}")
}

/// The method that reports its progress.
const CHECK: &str = "check";

#[derive(Clone, Debug)]
pub(crate) struct Engine {
    slots: Arc<Semaphore>,
    limit: Duration,
}

impl Engine {
    pub(crate) fn new() -> Self {
        Self { slots: Arc::new(Semaphore::new(AT_A_TIME)), limit: LIMIT }
    }

    pub(crate) async fn answer(&self, method: String, body: Bytes) -> Response {
        let Ok(request) = String::from_utf8(body.into()) else {
            return problem(StatusCode::BAD_REQUEST, "bad-request", "the request is not text");
        };
        let Ok(slot) = self.slots.clone().acquire_owned().await else {
            return problem(StatusCode::SERVICE_UNAVAILABLE, "stopped", "the lab is stopping");
        };
        match method.as_str() {
            CHECK => check(request, slot),
            _ => compute(method, request, slot, self.limit).await,
        }
    }
}

/// The server drops this future when the client goes away.
async fn compute(
    method: String,
    request: String,
    slot: OwnedSemaphorePermit,
    limit: Duration,
) -> Response {
    let client = Arc::new(());
    let waiting = Arc::downgrade(&client);
    let computed = in_thread(move || {
        let _slot = slot;
        let (begun, mut is_late) = (Instant::now(), false);
        let answer = doyen_lab::call(&method, &request, &mut |_| {
            is_late = begun.elapsed() >= limit;
            !is_late && waiting.strong_count() > 0
        });
        answer.map_err(|problem| if is_late { too_long(limit) } else { problem })
    });
    let computed = computed.await;
    drop(client);
    let json = [(header::CONTENT_TYPE, "application/json")];
    match computed {
        Ok(Ok(answer)) => (json, answer).into_response(),
        Ok(Err(problem)) => (StatusCode::UNPROCESSABLE_ENTITY, json, problem).into_response(),
        Err(error) => problem(StatusCode::INTERNAL_SERVER_ERROR, "failed", failed(&error)),
    }
}

/// A problem like those of the engine.
fn too_long(limit: Duration) -> String {
    let detail = format!(
        "this takes longer than {} s, so it was stopped; use fewer members, or end the run earlier with `until`",
        limit.as_secs()
    );
    json!({ "title": "This takes too long", "detail": detail, "key": "members" }).to_string()
}

/// One line of JSON for each report of progress, then one with the result. It stops when the client goes away.
fn check(request: String, slot: OwnedSemaphorePermit) -> Response {
    let (lines, waiting) = mpsc::channel::<String>(WAITING);
    let progress = lines.clone();
    let checked = in_thread(move || {
        let _slot = slot;
        let mut next = Instant::now();
        let mut report = |text: &str| {
            if Instant::now() < next {
                return !progress.is_closed();
            }
            next = Instant::now() + PAUSE;
            progress.blocking_send(format!("{{\"progress\":{text}}}\n")).is_ok()
        };
        doyen_lab::call(CHECK, &request, &mut report)
    });
    tokio::spawn(async move {
        let last = match checked.await {
            Ok(Ok(answer)) => format!("{answer}\n"),
            Ok(Err(problem)) => format!("{{\"problem\":{problem}}}\n"),
            Err(error) => {
                let problem = json!({ "title": "Failed", "detail": failed(&error), "key": null });
                format!("{}\n", json!({ "problem": problem }))
            }
        };
        // The client may have gone.
        let _ = lines.send(last).await;
    });
    let lines = stream::unfold(waiting, |mut waiting| async {
        waiting.recv().await.map(|line| (Ok::<_, Infallible>(line), waiting))
    });
    ([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eight million messages with long lists, which take many seconds.
    fn long() -> Bytes {
        let flags = [["algorithm", "ring-all-ids"], ["members", "1000"], ["initiators", "all"]];
        json!({ "source": { "flags": flags }, "members": 2000 }).to_string().into()
    }

    fn block_on<T>(test: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(test)
    }

    #[test]
    fn what_takes_too_long_is_stopped_and_says_what_to_do() {
        let engine = Engine { limit: Duration::from_millis(100), ..Engine::new() };
        let (status, body) = block_on(async {
            let response = engine.answer("scale".to_owned(), long()).await;
            let status = response.status();
            (status, axum::body::to_bytes(response.into_body(), 10_000).await.expect("a problem"))
        });
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        let body = String::from_utf8_lossy(&body);
        assert!(
            body.contains("This takes too long") && body.contains("use fewer members"),
            "{body}"
        );
    }

    #[test]
    fn a_computation_ends_when_the_client_has_gone() {
        let engine = Engine { limit: Duration::from_secs(3600), ..Engine::new() };
        block_on(async {
            let asked = engine.answer("scale".to_owned(), long());
            let left = tokio::time::timeout(Duration::from_millis(100), asked).await;
            assert!(left.is_err(), "it takes longer than that");
            assert_eq!(engine.slots.available_permits(), AT_A_TIME - 1, "it is being computed");
            let free = engine.slots.acquire_many(AT_A_TIME as u32);
            let free = tokio::time::timeout(Duration::from_secs(2), free).await;
            assert!(free.is_ok(), "it goes on although the client has gone");
        });
    }
}
