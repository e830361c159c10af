//! HTTP: health for load balancers, status and history, changes as they happen, an operator's orders, metrics.
//!
//! ```text
//!   GET  /leader /follower /livez /readyz      health: 200 or 503, for load balancers
//!   GET  /                                     {"name": the leader's} for programs, a page for browsers
//!   GET  /v1/leader /v1/status /v1/members     what this node believes and knows
//!   GET  /v1/history                           the latest changes, and why
//!   GET  /v1/watch                             changes as they happen (server-sent events)
//!   POST /v1/resign /v1/transfer /v1/drain …   orders, with a token
//!   GET  /metrics /openapi.json                for machines
//! ```
//!
//! It has a thread of its own and knows a node by its [`Handle`] alone, so whatever happens here, the loop goes on.
//! Everybody who can reach the address may read, and whoever gives orders shows a token. Everything has a limit:
//! connections, watchers, the size of a request, the time that anything may take.
//!
//! Errors are problems as in RFC 9457, each of a kind of its own.

mod call;
mod door;
mod guard;
mod health;
mod metrics;
mod observer;
#[expect(unused_qualifications, reason = "utoipa qualifies what it repeats")]
mod orders;
mod page;
mod problem;
#[expect(unused_qualifications, reason = "utoipa qualifies what it repeats")]
mod report;
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
use tokio::sync::{Semaphore, oneshot, watch as tell};
use utoipa::openapi::{InfoBuilder, OpenApi, OpenApiBuilder};
use utoipa_axum::router::OpenApiRouter;

use crate::node::Handle;
use guard::Guard;
use metrics::Metrics;
use observer::Observer;
use problem::Kind;

pub use guard::{Admin, TOKEN_FILE, TokenError};
pub use orders::{Accepted, Drain, MemberRef, Prefer, Transfer};
pub use problem::Problem;
pub use report::{LeaderReport, Name};

/// The longest body of a request, in bytes. The longest that makes sense has a tenth of that.
const LONGEST_BODY: usize = 4096;

/// How much is put up with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// So many connections may be open at once.
    pub connections: u32,
    /// So many of them may watch.
    pub watchers: u32,
    /// Within this time a whole head must have come, from the beginning of the connection or the end of the last answer.
    pub head_within: Duration,
    /// Within this time the whole body of an order must have come.
    pub body_within: Duration,
    /// So long a connection may take nothing of what it is sent.
    pub stalled_after: Duration,
    /// Within this time the loop answers to an order, unless something is very wrong there.
    pub answer_within: Duration,
    /// The loop says something several times a second. If it has said nothing for so long, it is stuck.
    pub stuck_after: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            watchers: 64,
            head_within: Duration::from_secs(15),
            body_within: Duration::from_secs(10),
            stalled_after: Duration::from_secs(20),
            answer_within: Duration::from_secs(10),
            stuck_after: Duration::from_secs(10),
        }
    }
}

/// Why HTTP is not served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The token cannot be had.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The address cannot be listened on, or there is no thread to be had.
    #[error("HTTP cannot be served: {0}")]
    Io(#[from] io::Error),
}

/// A running server: it has a thread of its own.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Server {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it: nobody new is let in, whoever watches is let go, and requests under way may end.
    pub fn stop(self) {
        // Neither fails but where the thread has ended already.
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

/// Serves `handle` on `listener` from a thread of its own. Whatever can fail has failed when this returns, or will not.
pub fn start(
    handle: Handle,
    listener: TcpListener,
    admin: &Admin,
    limits: Limits,
) -> Result<Server, ServeError> {
    let address = listener.local_addr()?;
    let guard = Guard::new(admin)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = runtime.block_on(async { adopt(listener) })?;
    let (stop, stopped) = oneshot::channel();
    let thread = std::thread::Builder::new().name("doyen-http".to_owned()).spawn(move || {
        // Whoever drops the server wants it stopped, too.
        let shutdown = async { drop(stopped.await) };
        runtime.block_on(run(handle, listener, guard, limits, shutdown));
    })?;
    Ok(Server { address, stop, thread })
}

/// Serves `handle` on `listener` until `shutdown`, on the runtime that this is called on.
pub async fn serve(
    handle: Handle,
    listener: TcpListener,
    admin: &Admin,
    limits: Limits,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let guard = Guard::new(admin)?;
    run(handle, adopt(listener)?, guard, limits, shutdown).await;
    Ok(())
}

/// What the interface says of itself, as `OpenAPI`.
pub fn openapi() -> OpenApi {
    routes().into_openapi()
}

/// What every handler can use.
#[derive(Clone, Debug)]
struct App(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    handle: Handle,
    guard: Guard,
    observer: Observer,
    metrics: Metrics,
    limits: Limits,
    watchers: Arc<Semaphore>,
    /// Turns true when the server is to end.
    ending: tell::Receiver<bool>,
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
    guard: Guard,
    limits: Limits,
    shutdown: impl Future<Output = ()>,
) {
    let (end, ending) = tell::channel(false);
    let observer = Observer::new();
    let observing = tokio::spawn(observer.clone().observe(handle.clone()));
    let app = App(Arc::new(Shared {
        metrics: Metrics::new(&handle, &observer),
        handle,
        guard,
        observer,
        limits,
        watchers: Arc::new(Semaphore::new(limits.watchers as usize)),
        ending: ending.clone(),
    }));
    let serving = door::listen(&listener, router(app), limits, ending);
    tokio::pin!(serving);
    tokio::select! {
        () = &mut serving => {}
        () = shutdown => {
            end.send_replace(true);
            serving.await;
        }
    }
    observing.abort();
}

fn routes() -> OpenApiRouter<App> {
    let info = InfoBuilder::new()
        .title("doyen")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("One member of a cluster that elects its leader."))
        .build();
    OpenApiRouter::with_openapi(OpenApiBuilder::new().info(info).build())
        .merge(health::routes())
        .merge(report::routes())
        .merge(watch::routes())
        .merge(orders::routes())
        .merge(metrics::routes())
}

fn router(app: App) -> Router {
    let (router, document) = routes().split_for_parts();
    router
        .route("/openapi.json", get(async || Json(document)))
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .layer(map_response(forbid_storing))
        .with_state(app)
}

async fn not_found(uri: Uri) -> Problem {
    Kind::NotFound.because(format!("there is no {}; /openapi.json lists what there is", uri.path()))
}

async fn not_allowed(method: Method, uri: Uri) -> Problem {
    Kind::MethodNotAllowed.because(format!("{} is not for {method}", uri.path()))
}

/// Whatever is answered is true for a moment only.
async fn forbid_storing(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
