//! HTTP: health for load balancers, status and history, changes as they happen, admin commands, metrics.
//!
//! ```text
//!   GET  /leader /follower /livez /readyz      health: 200 or 503, for load balancers
//!   GET  /                                     {"name": LEADER} for programs, a page for browsers
//!   GET  /v1/leader /v1/status /v1/members     what this node knows
//!   GET  /v1/history                           the latest changes of leadership, with reasons
//!   GET  /v1/watch                             changes as they happen (server-sent events)
//!   POST /v1/permit                            the right to act as the leader for a time, which a transfer waits for
//!   POST /v1/resign /v1/transfer /v1/drain …   admin commands, with the admin secret
//!   GET  /metrics /openapi.json                for programs
//! ```
//!
//! The server has a thread of its own and uses a node only through its [`Handle`], so it cannot block the loop. Every
//! client that can reach the address may read; admin commands need the admin secret. Everything has a limit: connections,
//! watchers, the size of a request, and times.
//!
//! Errors are problem details as in RFC 9457, each with a type of its own.

mod auth;
mod call;
#[expect(unused_qualifications, reason = "utoipa qualifies what it repeats")]
mod commands;
mod health;
mod metrics;
mod observer;
mod page;
mod permit;
mod problem;
#[expect(unused_qualifications, reason = "utoipa qualifies what it repeats")]
mod report;
mod server;
mod watch;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderValue, Method, Uri, header};
use axum::middleware::map_response;
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use tokio::sync::{Semaphore, oneshot, watch as channel};
use utoipa::openapi::{InfoBuilder, OpenApi, OpenApiBuilder};
use utoipa_axum::router::OpenApiRouter;

use crate::node::Handle;
use auth::Auth;
use metrics::Metrics;
use observer::Observer;
use problem::Kind;

pub use auth::{Admin, SECRET_FILE, SecretError};
pub use commands::{Accepted, Drain, MemberRef, Prefer, Transfer};
pub use permit::{PermitGiven, PermitRequest, TokenGiven};
pub use problem::Problem;
pub use report::{LeaderReport, Name};

/// The longest body of a request, in bytes. No command needs a tenth of it.
const LONGEST_BODY: usize = 4096;

/// Limits of the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The number of open connections.
    pub connections: u32,
    /// How many of them may watch.
    pub watchers: u32,
    /// The time for all headers of a request, from the start of the connection or the end of the last response.
    pub header_timeout: Duration,
    /// The time for the body of a command.
    pub body_timeout: Duration,
    /// How long a client may read nothing of a response.
    pub write_timeout: Duration,
    /// How long the loop may take to answer a command.
    pub command_timeout: Duration,
    /// The loop publishes a status several times a second. If it has published none for this long, it is stuck.
    pub loop_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            watchers: 64,
            header_timeout: Duration::from_secs(15),
            body_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(20),
            command_timeout: Duration::from_secs(10),
            loop_timeout: Duration::from_secs(10),
        }
    }
}

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The admin secret cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The listener or the thread cannot be set up.
    #[error("cannot serve HTTP: {0}")]
    Io(#[from] io::Error),
}

/// A running server, in a thread of its own.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Server {
    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops it: it accepts no new connection, ends all watches, and lets requests in progress finish.
    pub fn stop(self) {
        // Both fail only if the thread has ended already.
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

/// Serves `handle` on `listener` in a thread of its own. All errors are reported before this returns.
pub fn start(
    handle: Handle,
    listener: TcpListener,
    admin: &Admin,
    limits: Limits,
) -> Result<Server, ServeError> {
    let address = listener.local_addr()?;
    let auth = Auth::new(admin)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = runtime.block_on(async { adopt(listener) })?;
    let (stop, stopped) = oneshot::channel();
    let thread = std::thread::Builder::new().name("doyen-http".to_owned()).spawn(move || {
        // Dropping the server stops it, too.
        let shutdown = async { drop(stopped.await) };
        runtime.block_on(run(handle, listener, auth, limits, shutdown));
    })?;
    Ok(Server { address, stop, thread })
}

/// Serves `handle` on `listener` until `shutdown`, on the caller's runtime.
pub async fn serve(
    handle: Handle,
    listener: TcpListener,
    admin: &Admin,
    limits: Limits,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let auth = Auth::new(admin)?;
    run(handle, adopt(listener)?, auth, limits, shutdown).await;
    Ok(())
}

/// The `OpenAPI` description of the interface.
pub fn openapi() -> OpenApi {
    routes().into_openapi()
}

/// The state that all handlers share.
#[derive(Clone, Debug)]
struct App(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    handle: Handle,
    auth: Auth,
    observer: Observer,
    metrics: Metrics,
    limits: Limits,
    watchers: Arc<Semaphore>,
    /// True when the server stops.
    stopping: channel::Receiver<bool>,
}

impl std::ops::Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

fn adopt(listener: TcpListener) -> io::Result<tokio::net::TcpListener> {
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener)
}

async fn run(
    handle: Handle,
    listener: tokio::net::TcpListener,
    auth: Auth,
    limits: Limits,
    shutdown: impl Future<Output = ()>,
) {
    let (stop, stopping) = channel::channel(false);
    let observer = Observer::new();
    let observing = tokio::spawn(observer.clone().observe(handle.clone()));
    let app = App(Arc::new(Shared {
        metrics: Metrics::new(&handle, &observer),
        handle,
        auth,
        observer,
        limits,
        watchers: Arc::new(Semaphore::new(limits.watchers as usize)),
        stopping: stopping.clone(),
    }));
    let serving = server::listen(&listener, router(app), limits, stopping);
    tokio::pin!(serving);
    tokio::select! {
        () = &mut serving => {}
        () = shutdown => {
            stop.send_replace(true);
            serving.await;
        }
    }
    observing.abort();
}

fn routes() -> OpenApiRouter<App> {
    let info = InfoBuilder::new()
        .title("doyen")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("One member of a cluster that elects a leader."))
        .build();
    OpenApiRouter::with_openapi(OpenApiBuilder::new().info(info).build())
        .merge(health::routes())
        .merge(report::routes())
        .merge(watch::routes())
        .merge(permit::routes())
        .merge(commands::routes())
        .merge(metrics::routes())
}

fn router(app: App) -> Router {
    let (router, document) = routes().split_for_parts();
    router
        .merge(health::options_routes())
        .route("/openapi.json", get(async || Json(document)))
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .layer(map_response(forbid_caching))
        .with_state(app)
}

async fn not_found(uri: Uri) -> Problem {
    let path = uri.path();
    Kind::NotFound.with_detail(format!("{path} does not exist; /openapi.json lists all paths"))
}

async fn not_allowed(method: Method, uri: Uri) -> Problem {
    Kind::MethodNotAllowed.with_detail(format!("{} does not accept {method}", uri.path()))
}

/// Every response may be out of date a moment later.
async fn forbid_caching(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
