//! HTTP: health for load balancers, status and history, changes as they happen, admin commands, metrics.
//!
//! ```text
//!   GET  /leader /follower /livez /readyz      health: 200 or 503, for load balancers
//!   GET  /                                     {"name": LEADER} for programs, a page for browsers (its files: /web/…)
//!   GET  /v1/leader /v1/status /v1/members     what this node knows
//!   GET  /v1/history                           the latest changes of leadership, with reasons
//!   GET  /v1/clock                             what its wall clock shows
//!   GET  /v1/watch                             changes as they happen (server-sent events)
//!   POST /v1/permit                            the right to act as the leader for a time, which a transfer waits for
//!   GET  /v1/locks                             which locks are held, on the leader
//!   POST /v1/locks/NAME …/keep …/release       a lock in the whole cluster, with a fencing token
//!   GET  /v1/groups /v1/groups/NAME            which member leads which group; /groups/NAME/leader: 200 or 503
//!   POST /v1/resign /v1/transfer /v1/drain …   admin commands
//!   GET  /metrics /openapi.json                for programs
//! ```
//!
//! The server has a thread of its own and uses a node only through its [`Handle`], so it cannot block the loop. Every
//! client that can reach the address may read. Admin commands come over a Unix socket; over HTTP only where that is switched
//! on, with the admin secret. Everything has a limit: connections, watchers, the size of a request, and times.
//!
//! Errors are problem details as in RFC 9457, each with a type of its own.

mod accept;
mod audit;
mod auth;
mod call;
#[expect(unused_qualifications, reason = "utoipa qualifies what it repeats")]
mod commands;
mod connections;
mod forward;
mod groups;
mod health;
mod keys;
mod locks;
mod metrics;
mod observer;
mod permit;
mod problem;
#[expect(unused_qualifications, reason = "utoipa qualifies what it repeats")]
mod report;
mod requests;
mod server;
mod socket;
mod watch;
mod watchers;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, Request, State};
use axum::handler::Handler as _;
use axum::http::{HeaderValue, Method, Uri, header};
use axum::middleware::{Next, from_fn_with_state, map_response};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use tokio::net::UnixListener;
use tokio::sync::{oneshot, watch as channel};
use utoipa::openapi::{InfoBuilder, OpenApi, OpenApiBuilder};
use utoipa_axum::router::OpenApiRouter;

use crate::node::keys::NewKeys;
use crate::node::{CommandError, Handle};
use crate::page;
use audit::Audit;
use auth::Auth;
use connections::Connections;
use forward::Forwarder;
use locks::Locks;
use metrics::Metrics;
use observer::Observer;
use problem::Kind;
use requests::Requests;
use server::Listener;
use watchers::Watchers;

pub use auth::{Admin, BearerSecret, PreparedAdmin, SECRET_FILE, SecretError, only_value};
pub use commands::{Accepted, Drain, MemberRef, Pause, Prefer, Transfer};
pub use groups::{GroupList, GroupReport};
pub use keys::{Diagnosis, KeyOffer, KeyRef};
pub use permit::{PermitGiven, PermitRequest, TokenGiven};
pub use problem::Problem;
pub use report::{ClockReading, LeaderReport, Name};
pub use socket::{SOCKET_FILE, connect};

/// The longest body of a request, in bytes. No command needs a tenth of it.
const LONGEST_BODY: usize = 4096;

/// Limits of the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The number of open connections.
    pub connections: u32,
    /// How many of them one client may have: an address, or a network of IPv6; all of loopback is one client.
    pub connections_per_client: u32,
    /// How many connections there may be besides, for health paths, when none of the others is idle.
    pub health_connections: u32,
    /// How many connections may watch.
    pub watchers: u32,
    /// How many of them one client may have.
    pub watchers_per_client: u32,
    /// How many calls may wait for a lock; the others are answered at once.
    pub lock_waiters: u32,
    /// How many of them one client may have.
    pub lock_waiters_per_client: u32,
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
    /// How old a status may be for `/follower` and `/readyz` to say yes.
    pub snapshot_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            connections_per_client: 64,
            health_connections: 16,
            watchers: 64,
            watchers_per_client: 16,
            lock_waiters: 128,
            lock_waiters_per_client: 32,
            header_timeout: Duration::from_secs(15),
            body_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(20),
            command_timeout: Duration::from_secs(10),
            loop_timeout: Duration::from_secs(10),
            snapshot_timeout: Duration::from_secs(1),
        }
    }
}

impl Limits {
    /// The limits of the admin socket. A client there could stop the node as well, so these only keep mistakes small.
    /// Watchers leave room for commands.
    fn of_admin_socket(self) -> Self {
        Self {
            connections: 24,
            connections_per_client: 24,
            health_connections: 0,
            watchers: 8,
            watchers_per_client: 8,
            ..self
        }
    }

    /// How many file descriptors the connections may take, those included that are rejected.
    pub fn files(&self) -> u32 {
        let served =
            self.connections + self.health_connections + self.of_admin_socket().connections;
        served + 2 * server::LINGERING as u32
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
    address: Option<SocketAddr>,
    auth: Arc<Auth>,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Server {
    /// The address that it listens on; none if it serves the admin socket only.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Lets the admin secret be read again.
    pub fn secret(&self) -> SecretReloader {
        SecretReloader(Arc::clone(&self.auth))
    }

    /// Stops it: it accepts no new connection, ends all watches, and lets requests in progress finish.
    pub fn stop(self) {
        // Both fail only if the thread has ended already.
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

/// Reads the admin secret and the keys of a running node again. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SecretReloader(Arc<Auth>);

impl SecretReloader {
    /// Reads both files again. Nothing changes before what they contain is adopted.
    pub async fn read(&self, handle: &Handle) -> Result<NewSecrets, CommandError> {
        let secret = self.0.read_secret();
        let secret = secret.map_err(|error| CommandError::InvalidSecret(error.to_string()))?;
        Ok(NewSecrets { auth: Arc::clone(&self.0), secret, keys: handle.read_keys().await? })
    }
}

/// An admin secret and keys that were read and are not used yet.
#[derive(Debug)]
pub struct NewSecrets {
    auth: Arc<Auth>,
    secret: Option<BearerSecret>,
    keys: NewKeys,
}

impl NewSecrets {
    /// Uses both, and returns the keys as text. If that fails, nothing has changed.
    pub async fn adopt(self) -> Result<String, CommandError> {
        let keys = self.keys.adopt().await?;
        self.auth.adopt_secret(self.secret);
        Ok(keys)
    }
}

/// Serves `handle` on `listener`, if there is one, and on the admin socket, in a thread of its own. All errors are reported
/// before this returns.
pub fn start(
    handle: Handle,
    listener: Option<TcpListener>,
    admin: PreparedAdmin,
    limits: Limits,
) -> Result<Server, ServeError> {
    let address = listener.as_ref().map(TcpListener::local_addr).transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (auth, listeners) = runtime.block_on(async { open(listener, admin) })?;
    let (stop, stopped) = oneshot::channel();
    let served = Arc::clone(&auth);
    let thread = std::thread::Builder::new().name("doyen-http".to_owned()).spawn(move || {
        // Dropping the server stops it, too.
        let shutdown = async { drop(stopped.await) };
        runtime.block_on(run(handle, listeners, served, limits, shutdown));
    })?;
    Ok(Server { address, auth, stop, thread })
}

/// Where a node is served.
struct Listeners {
    http: Option<tokio::net::TcpListener>,
    admin: UnixListener,
}

/// The admin socket gets its name here: the node runs, so no other does with this state.
fn open(listener: Option<TcpListener>, admin: PreparedAdmin) -> io::Result<(Arc<Auth>, Listeners)> {
    let PreparedAdmin { socket, auth } = admin;
    let http = listener.map(adopt).transpose()?;
    let admin = UnixListener::from_std(socket.publish()?)?;
    Ok((Arc::new(auth), Listeners { http, admin }))
}

/// The `OpenAPI` description of the interface.
pub fn openapi() -> OpenApi {
    let mut document = routes().into_openapi();
    problem::describe(&mut document);
    document
}

/// The state that all handlers share.
#[derive(Clone, Debug)]
struct App(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    handle: Handle,
    auth: Arc<Auth>,
    audit: Arc<Audit>,
    forwarder: Forwarder,
    observer: Observer,
    metrics: Metrics,
    requests: Arc<Requests>,
    limits: Limits,
    watchers: Watchers,
    /// Those at the admin socket, which need not wait for a place among the others.
    local_watchers: Watchers,
    locks: Locks,
    /// True when the server stops.
    stopping: channel::Receiver<bool>,
}

impl std::ops::Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

/// Serves any router on `listener` with these limits, until `stopping` is true; requests in progress may finish.
pub async fn listen(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    stopping: channel::Receiver<bool>,
) -> io::Result<()> {
    let listener = Listener::Tcp(adopt(listener)?);
    server::listen(listener, router, limits, Connections::new(limits), stopping).await;
    Ok(())
}

fn adopt(listener: TcpListener) -> io::Result<tokio::net::TcpListener> {
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener)
}

async fn run(
    handle: Handle,
    listeners: Listeners,
    auth: Arc<Auth>,
    limits: Limits,
    shutdown: impl Future<Output = ()>,
) {
    let (stop, stopping) = channel::channel(false);
    let observer = Observer::new();
    let observing = tokio::spawn(observer.clone().observe(handle.clone()));
    let of_socket = limits.of_admin_socket();
    let (connections, watchers) = (Connections::new(limits), Watchers::new(limits));
    let local_connections = Connections::new(of_socket);
    let (audit, requests) = (Arc::new(Audit::new()), Arc::new(Requests::default()));
    let forwarder = Forwarder::new(handle.clone());
    let locks = Locks::new(&handle, Watchers::of_locks(limits));
    let granting = tokio::spawn(locks.clone().run());
    let app = App(Arc::new(Shared {
        metrics: Metrics::new(metrics::Source {
            handle: handle.clone(),
            connections: [connections.clone(), local_connections.clone()],
            watchers: watchers.clone(),
            audit: Arc::clone(&audit),
            requests: Arc::clone(&requests),
        }),
        forwarder: forwarder.clone(),
        handle: handle.clone(),
        auth,
        audit,
        requests,
        observer,
        limits,
        watchers,
        local_watchers: Watchers::new(of_socket),
        locks,
        stopping: stopping.clone(),
    }));
    let router = router(app);
    let relayed = handle.relayed();
    let answering = relayed
        .map(|relayed| tokio::spawn(forward::serve(handle, forwarder, router.clone(), relayed)));
    let admin = server::listen(
        Listener::Admin(listeners.admin),
        router.clone(),
        of_socket,
        local_connections,
        stopping.clone(),
    );
    let http = async {
        if let Some(listener) = listeners.http {
            server::listen(Listener::Tcp(listener), router, limits, connections, stopping).await;
        }
    };
    let stopped = async {
        shutdown.await;
        stop.send_replace(true);
    };
    tokio::join!(admin, http, stopped);
    observing.abort();
    if let Some(answering) = answering {
        answering.abort();
    }
    granting.abort();
}

fn routes() -> OpenApiRouter<App> {
    let info = InfoBuilder::new()
        .title("doyen")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("One member of a cluster that elects a leader."))
        .build();
    OpenApiRouter::with_openapi(OpenApiBuilder::new().info(info).build())
        .merge(open_routes())
        .merge(admin_routes())
}

/// What every client may ask.
fn open_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(health::routes())
        .merge(report::routes())
        .merge(watch::routes())
        .merge(permit::routes())
        .merge(locks::routes())
        .merge(groups::routes())
        .merge(metrics::routes())
}

fn admin_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().merge(commands::routes()).merge(permit::admin_routes())
}

fn router(app: App) -> Router {
    let document = openapi();
    let (open, _) = open_routes().split_for_parts();
    let forwards = || from_fn_with_state(app.clone(), forward::route);
    let require_name = || from_fn_with_state(app.clone(), require_own_name);
    let open = open
        .route_layer(forwards())
        .route_layer(from_fn_with_state(app.clone(), audit::audit_if_named))
        .merge(health::options_routes())
        .merge(page::files().layer(map_response(page::secure)))
        .route("/openapi.json", get(async || Json(document)))
        .fallback(not_found)
        .layer(require_name());
    // An admin call checks the host itself, so that what is rejected is logged.
    let (admin, _) = admin_routes().split_for_parts();
    let admin = admin.route_layer(forwards());
    open.merge(admin.route_layer(from_fn_with_state(app.clone(), audit::audit)))
        .method_not_allowed_fallback(not_allowed.layer(require_name()))
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .layer(map_response(forbid_caching_and_guessing))
        .layer(from_fn_with_state(app.clone(), requests::count))
        .with_state(app)
}

/// On loopback a page of another site must not read, though its name points here.
async fn require_own_name(State(app): State<App>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    match app.auth.check_name(&parts) {
        Ok(()) => next.run(Request::from_parts(parts, body)).await,
        Err(problem) => problem.into_response(),
    }
}

async fn not_found(uri: Uri) -> Problem {
    let path = uri.path();
    Kind::NotFound.with_detail(format!("{path} does not exist; /openapi.json lists all paths"))
}

async fn not_allowed(method: Method, uri: Uri) -> Problem {
    Kind::MethodNotAllowed.with_detail(format!("{} does not accept {method}", uri.path()))
}

/// Every response may be out of date a moment later, but for the files of the page; none is what its type does not say.
async fn forbid_caching_and_guessing(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
