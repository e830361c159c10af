//! HTTP of the lab, for this machine only.
//!
//! ```text
//!   GET  /  /web/…                 the page
//!   POST /lab/engine/METHOD        simulations and checks: same origin, no key
//!   GET  /lab/stream               what happens in the cluster    ┐
//!   POST /lab/fault                kill, pause, cut, partition …  ├ with the key of this lab
//!   POST /lab/admin                transfer, drain, priority …    ┘
//! ```
//!
//! Other web pages in the user's browser can send requests here too, and with DNS rebinding they can even read the answers.
//! So the names in `Host`, `Origin` and `Sec-Fetch-Site` must be those of this server, and whatever reads or changes the
//! cluster needs the key, which only the printed address contains.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Result;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn, from_fn_with_state, map_response};
use axum::response::Response;
use axum::routing::{get, post};
use doyen::api::{self, BearerSecret, Limits, only_value};
use doyen::blocking::in_thread;
use doyen::page::{self, Host};
use tokio::sync::{Semaphore, oneshot, watch};

use super::admin::{Admin, accepted};
use super::control::Event;
use super::engine::Engine;
use super::faults::{Command, Fault};
use super::problem::problem;
use super::shared::Shared;
use super::stream::Feed;
use crate::cli::system;

/// The longest request to the engine: a scenario, in bytes.
const LONGEST_REQUEST: usize = 256 * 1024;

/// The longest fault or command, in bytes.
const LONGEST_COMMAND: usize = 16 * 1024;

/// How many pages may follow the cluster at a time.
const STREAMS: usize = 16;

/// How long a fault may take.
const FAULT_TIMEOUT: Duration = Duration::from_secs(5);

/// How many file descriptors must be free when the server begins: its runtime panics without those for signals, and it needs
/// some for connections.
const SERVER_FILES: usize = 16;

/// The server, in a thread of its own.
#[derive(Debug)]
pub(crate) struct Server {
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

impl Server {
    pub(crate) fn start(
        listener: TcpListener,
        key: &str,
        shared: Arc<Shared>,
        events: SyncSender<Event>,
        admin: Arc<Admin>,
    ) -> Result<Self> {
        let (stop, stopping) = watch::channel(false);
        let app = App(Arc::new(AppState {
            key: BearerSecret::new(key),
            authorities: authorities(listener.local_addr()?),
            shared,
            events,
            admin,
            engine: Engine::new(),
            streams: Arc::new(Semaphore::new(STREAMS)),
            stopping: stopping.clone(),
        }));
        system::check_free_files(SERVER_FILES)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread =
            std::thread::Builder::new().name("doyen-lab-http".to_owned()).spawn(move || {
                // The listener is bound, so nothing is left that could fail.
                let _ = runtime.block_on(api::listen(listener, router(app), limits(), stopping));
                // A computation may still run.
                runtime.shutdown_background();
            })?;
        Ok(Self { stop, thread })
    }

    /// Sends the last event to all pages, and stops.
    pub(crate) fn stop(self) {
        self.stop.send_replace(true);
        // It has panicked at worst.
        let _ = self.thread.join();
    }
}

fn limits() -> Limits {
    Limits { connections: 64, health_connections: 0, ..Limits::default() }
}

#[derive(Clone, Debug)]
struct App(Arc<AppState>);

#[derive(Debug)]
struct AppState {
    key: BearerSecret,
    /// What `Host` may be.
    authorities: [String; 2],
    shared: Arc<Shared>,
    events: SyncSender<Event>,
    admin: Arc<Admin>,
    engine: Engine,
    streams: Arc<Semaphore>,
    stopping: watch::Receiver<bool>,
}

impl std::ops::Deref for App {
    type Target = AppState;

    fn deref(&self) -> &AppState {
        &self.0
    }
}

/// What a browser may write in `Host`: it leaves out the usual port.
fn authorities(address: SocketAddr) -> [String; 2] {
    let port = match address.port() {
        80 => String::new(),
        port => format!(":{port}"),
    };
    [address.ip().to_string(), "localhost".to_owned()].map(|name| name + &port)
}

fn router(app: App) -> Router {
    let cluster = Router::new()
        .route("/lab/stream", get(follow))
        .route("/lab/fault", post(fault))
        .route("/lab/admin", post(admin))
        .layer(DefaultBodyLimit::max(LONGEST_COMMAND))
        .layer(from_fn_with_state(app.clone(), require_key));
    let engine = Router::new()
        .route("/lab/engine/{method}", post(compute))
        .layer(DefaultBodyLimit::max(LONGEST_REQUEST));
    let index = async |headers: HeaderMap| page::index(Host::Lab, &headers);
    Router::new()
        .route("/", get(index))
        .merge(page::files())
        .merge(cluster)
        .merge(engine)
        .fallback(async |uri: Uri| {
            let detail = format!("{} does not exist", uri.path());
            problem(StatusCode::NOT_FOUND, "not-found", detail)
        })
        .layer(from_fn(read_in_time))
        .layer(from_fn_with_state(app.clone(), require_own_page))
        .layer(map_response(page::secure))
        .with_state(app)
}

/// Only the page of this server may ask: see the head of this file.
async fn require_own_page(State(app): State<App>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let host = only_value(headers, &header::HOST);
    let Some(host) = host.filter(|host| app.authorities.iter().any(|it| it == host)) else {
        let detail = format!("Host must be {} or {}", app.authorities[0], app.authorities[1]);
        return problem(StatusCode::MISDIRECTED_REQUEST, "wrong-host", detail);
    };
    let origin = headers.contains_key(header::ORIGIN).then(|| only_value(headers, &header::ORIGIN));
    let own = format!("http://{host}");
    let is_foreign = origin.is_some_and(|origin| origin != Some(&own));
    let says = |name: &str, value: &str| headers.get_all(name).iter().any(|it| it == value);
    // A link to the page from another site is allowed: the page itself reveals nothing and does nothing.
    let is_visit = request.uri().path() == "/"
        && request.method() == Method::GET
        && says("sec-fetch-mode", "navigate")
        && says("sec-fetch-dest", "document");
    if is_foreign || says("sec-fetch-site", "cross-site") && !is_visit {
        let detail = "only the page of this lab may ask";
        return problem(StatusCode::FORBIDDEN, "wrong-origin", detail);
    }
    next.run(request).await
}

/// A body that comes too slowly must not hold a connection for long.
async fn read_in_time(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let reading = axum::body::to_bytes(body, LONGEST_REQUEST);
    match tokio::time::timeout(Limits::default().body_timeout, reading).await {
        Ok(Ok(bytes)) => next.run(Request::from_parts(parts, bytes.into())).await,
        Ok(Err(_)) => problem(StatusCode::PAYLOAD_TOO_LARGE, "too-large", "the body is too long"),
        Err(_) => {
            let detail = "the body did not arrive in time";
            problem(StatusCode::REQUEST_TIMEOUT, "too-slow", detail)
        }
    }
}

async fn require_key(State(app): State<App>, request: Request, next: Next) -> Response {
    let detail = match app.key.is_shown(request.headers()) {
        Some(true) => return next.run(request).await,
        Some(false) => "this is not the key of this lab; use the address that `doyen lab` printed",
        None => "the key of this lab is missing; use the address that `doyen lab` printed",
    };
    problem(StatusCode::UNAUTHORIZED, "unauthorized", detail)
}

async fn follow(State(app): State<App>) -> Response {
    match app.streams.clone().try_acquire_owned() {
        Ok(slot) => Feed::new(app.shared.subscribe(), app.stopping.clone(), slot).into_response(),
        Err(_) => {
            let detail = "too many pages follow this lab; close one";
            problem(StatusCode::SERVICE_UNAVAILABLE, "too-many-watchers", detail)
        }
    }
}

async fn compute(State(app): State<App>, Path(method): Path<String>, body: Bytes) -> Response {
    app.engine.answer(method, body).await
}

async fn fault(State(app): State<App>, body: Bytes) -> Response {
    let fault = match Fault::parse(&body) {
        Ok(fault) => fault,
        Err(why) => return problem(StatusCode::BAD_REQUEST, "bad-request", why),
    };
    let (answer, answered) = oneshot::channel();
    match app.events.try_send(Event::Fault(fault, answer)) {
        Ok(()) => {}
        Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
            let detail = "too many faults at once; try again";
            return problem(StatusCode::SERVICE_UNAVAILABLE, "busy", detail);
        }
    }
    match tokio::time::timeout(FAULT_TIMEOUT, answered).await {
        Ok(Ok(Ok(done))) => accepted(&done),
        Ok(Ok(Err(why))) => problem(StatusCode::CONFLICT, "rejected", why),
        _ => problem(StatusCode::GATEWAY_TIMEOUT, "no-answer", "the lab did not answer in time"),
    }
}

async fn admin(State(app): State<App>, body: Bytes) -> Response {
    let command = match Command::parse(&body) {
        Ok(command) => command,
        Err(why) => return problem(StatusCode::BAD_REQUEST, "bad-request", why),
    };
    let work = move || app.admin.give(&command, &app.shared);
    let failed = |error| {
        let detail = format!("the command failed: {error}");
        problem(StatusCode::INTERNAL_SERVER_ERROR, "failed", detail)
    };
    in_thread(work).await.unwrap_or_else(failed)
}
