//! Connections: a bounded number, each with time-outs.
//!
//! A server without limits suffers from clients that do nothing: they connect and send no request, or send one and do not
//! read the response. Here every request must arrive within a time limit, and the client must read what it is sent. Which
//! connection goes when there are too many, [`super::connections`] decides. A connection that finds no place at all is
//! answered with an error at once: a load balancer that gets an error tries another node, one that waits does not.

use std::convert::Infallible;
use std::fmt;
use std::fs::File;
use std::future::{pending, poll_fn};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use axum::response::IntoResponse;
use hyper::body::{Bytes, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;

use super::connections::{Busy, Connections, Limit, Place, Slot, client_of};
use super::problem::Kind;
use super::socket::SOCKET_FILE;
use super::{Limits, health};
use crate::throttle::Throttle;

/// The size of a connection's read buffer.
const BUFFER: usize = 16 * 1024;

/// How long requests in progress may take when the server stops.
const SHUTDOWN_WITHIN: Duration = Duration::from_secs(2);

/// How long nothing is accepted after an error that may pass.
const PAUSE: Duration = Duration::from_millis(100);

/// How many rejected connections of a listener are kept until their clients close them, and for how long.
pub(super) const LINGERING: usize = 16;
const LINGER: Duration = Duration::from_secs(1);

/// The answer to a client that has no place.
const TOO_MANY: &str = "too many connections; retry later";

/// The ends of the connection that a request came over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum ConnInfo {
    Tcp {
        local: SocketAddr,
        peer: SocketAddr,
    },
    /// The admin socket, and the user who has connected to it.
    AdminSocket {
        uid: u32,
    },
    /// Another member, which has checked the caller.
    Forwarded {
        by: Arc<str>,
    },
}

impl ConnInfo {
    /// The client whose limit counts.
    pub(super) fn client(&self) -> IpAddr {
        match self {
            Self::Tcp { peer, .. } => client_of(peer.ip()),
            Self::AdminSocket { .. } => Ipv4Addr::LOCALHOST.into(),
            Self::Forwarded { .. } => Ipv4Addr::UNSPECIFIED.into(),
        }
    }
}

impl ConnInfo {
    /// The caller, and the member that took the call, for the histories of all members; `here` is this member.
    pub(super) fn caller(&self, here: &str) -> String {
        match self {
            Self::Tcp { .. } | Self::AdminSocket { .. } => format!("{self} on {here}"),
            Self::Forwarded { by } => by.to_string(),
        }
    }
}

impl fmt::Display for ConnInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { peer, .. } => peer.fmt(f),
            Self::AdminSocket { uid } => write!(f, "{SOCKET_FILE} (uid {uid})"),
            Self::Forwarded { by } => by.fmt(f),
        }
    }
}

/// Where connections come from.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener),
    Admin(UnixListener),
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {
    /// Writes as much as can be written without waiting.
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize>;
}

impl Stream for TcpStream {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.try_write(bytes)
    }
}

impl Stream for UnixStream {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.try_write(bytes)
    }
}

impl Listener {
    async fn accept(&self) -> io::Result<(Box<dyn Stream>, ConnInfo)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                let local = stream.local_addr()?;
                // Responses are short and should leave at once; without this they still arrive.
                let _ = stream.set_nodelay(true);
                Ok((Box::new(stream), ConnInfo::Tcp { local, peer }))
            }
            Self::Admin(listener) => {
                let (stream, _) = listener.accept().await?;
                let uid = stream.peer_cred()?.uid();
                Ok((Box::new(stream), ConnInfo::AdminSocket { uid }))
            }
        }
    }
}

/// Accepts connections until `stopping` is true.
pub(super) async fn listen(
    listener: Listener,
    router: Router,
    limits: Limits,
    connections: Connections,
    mut stopping: watch::Receiver<bool>,
) {
    // Every connection has a clone, so the channel ends with the last of them.
    let (alive, mut all_closed) = mpsc::channel::<Infallible>(1);
    let server = Server { router, limits, stopping: stopping.clone(), _alive: alive };
    let mut shortage = Shortage::new();
    let mut throttle = Throttle::new();
    let lingering = Arc::new(Semaphore::new(LINGERING));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopped(&mut stopping) => break,
        };
        let (stream, info) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                shortage.handle(&error, &listener, &connections).await;
                continue;
            }
        };
        let admission = connections.admit(info.client());
        let effect = Effect::of(admission.place.as_ref());
        if let Some(limit) = admission.limit.filter(|&limit| throttle.is_due((limit, effect))) {
            let (address, line) = describe_limit(&info, limit, effect, &limits, &connections);
            tracing::warn!(event = "connection-limit", address, "{line}");
        }
        match admission.place {
            Some(place) => drop(tokio::spawn(server.clone().serve(stream, info, place))),
            None => {
                reject(&*stream);
                if let Ok(permit) = Arc::clone(&lingering).try_acquire_owned() {
                    tokio::spawn(async move {
                        let _ = timeout(LINGER, drain(stream)).await;
                        drop(permit);
                    });
                }
            }
        }
    }
    drop((listener, server));
    // The runtime drops connections that are not done by then.
    let _ = timeout(SHUTDOWN_WITHIN, all_closed.recv()).await;
}

/// What a limit costs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Effect {
    /// An idle connection.
    Eviction,
    /// What is not for health.
    HealthOnly,
    /// The new connection.
    Rejection,
}

impl Effect {
    fn of(place: Option<&Place>) -> Self {
        match place {
            Some(place) if !place.slot.is_reserved => Self::Eviction,
            Some(_) => Self::HealthOnly,
            None => Self::Rejection,
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Eviction => "the longest idle ones are closed",
            Self::HealthOnly => "all of them are busy, so new ones get health only",
            Self::Rejection => "all of them are busy, so new ones are rejected",
        })
    }
}

/// The client that a limit is about, if there is one, and the line for the log.
fn describe_limit(
    info: &ConnInfo,
    limit: Limit,
    effect: Effect,
    limits: &Limits,
    connections: &Connections,
) -> (Option<String>, String) {
    let Limits { connections: most, connections_per_client, .. } = limits;
    match (info, limit) {
        (ConnInfo::AdminSocket { .. }, _) => {
            let line = format!("{SOCKET_FILE} has {most} connections, its limit: {effect}");
            (Some(SOCKET_FILE.to_owned()), line)
        }
        (_, Limit::Client(client)) => {
            let line = format!(
                "{client} has {connections_per_client} HTTP connections, its limit: {effect}"
            );
            (Some(client.to_string()), line)
        }
        (_, Limit::Server) => {
            let greediest = connections.greediest();
            let named = greediest.map_or_else(String::new, |(client, count)| {
                format!("; {client} has the most ({count})")
            });
            let line = format!("HTTP has {most} connections, its limit: {effect}{named}");
            (greediest.map(|(client, _)| client.to_string()), line)
        }
    }
}

/// Says that there are too many connections.
fn reject(stream: &dyn Stream) {
    let problem = Kind::TooManyConnections.with_detail(TOO_MANY);
    let body = serde_json::to_string(&problem).unwrap_or_default();
    let head = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\nconnection: close";
    // The client may have gone already.
    let _ = stream.try_write(format!("{head}\r\n\r\n{body}").as_bytes());
}

/// Ends a rejected connection in order: reads what the client sends, up to a limit, until the client closes it. If the
/// request were unread at the close, the client would get an error beside or in place of the answer.
async fn drain(mut stream: Box<dyn Stream>) -> io::Result<()> {
    poll_fn(|context| Pin::new(&mut stream).poll_shutdown(context)).await?;
    let mut bytes = vec![0; BUFFER];
    let mut buffer = ReadBuf::new(&mut bytes);
    loop {
        let before = buffer.remaining();
        poll_fn(|context| Pin::new(&mut stream).poll_read(context, &mut buffer)).await?;
        // The client has closed it, or there is no room.
        if buffer.remaining() == before {
            return Ok(());
        }
    }
}

/// Accepting fails, most likely because this process has no free file descriptors.
struct Shortage {
    /// A file descriptor to give up: a connection that cannot be accepted would wait, and its client with it.
    spare: Option<File>,
    throttle: Throttle<()>,
}

impl Shortage {
    fn new() -> Self {
        Self { spare: Self::spare(), throttle: Throttle::new() }
    }

    fn spare() -> Option<File> {
        File::open("/dev/null").ok()
    }

    /// Makes room, by closing an idle connection, or else the one that cannot be accepted.
    async fn handle(&mut self, error: &io::Error, listener: &Listener, connections: &Connections) {
        if self.throttle.is_due(()) {
            tracing::warn!(event = "connection-not-accepted", reason = %error,
                "cannot accept an HTTP connection: {error}");
        }
        if !matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) {
            return sleep(PAUSE).await;
        }
        if connections.evict_idle() {
            // Its task closes it.
            return sleep(Duration::from_millis(1)).await;
        }
        drop(self.spare.take());
        let _ = timeout(Duration::ZERO, listener.accept()).await;
        self.spare = Self::spare();
        if self.spare.is_none() {
            sleep(PAUSE).await;
        }
    }
}

/// Waits until the server stops.
pub(super) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    if stopping.wait_for(|&stopping| stopping).await.is_err() {
        // The sender is gone, so the server cannot be stopped any more.
        pending::<()>().await;
    }
}

#[derive(Clone)]
struct Server {
    router: Router,
    limits: Limits,
    stopping: watch::Receiver<bool>,
    _alive: mpsc::Sender<Infallible>,
}

impl Server {
    async fn serve(mut self, stream: Box<dyn Stream>, info: ConnInfo, place: Place) {
        let Place { slot, mut evicted } = place;
        let inner = TowerToHyperService::new(self.router);
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            let (busy, inner, slot) = (slot.begin(), inner.clone(), Arc::clone(&slot));
            let info = info.clone();
            async move {
                if let Some(rejection) = reserved_for_health(&slot, request.uri().path()) {
                    return Ok(rejection.map(|body| Answer { body, _busy: busy }));
                }
                request.extensions_mut().insert(info);
                let mut response = inner.call(request).await?;
                if slot.is_reserved {
                    close(&mut response);
                }
                Ok::<_, Infallible>(response.map(|body| Answer { body, _busy: busy }))
            }
        });
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(self.limits.write_timeout));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.header_timeout)
            .max_buf_size(BUFFER)
            .serve_connection(TokioIo::new(Box::pin(stream)), service);
        tokio::pin!(connection);
        // A client may break the connection at any time, so errors do not matter.
        tokio::select! {
            _ = &mut connection => {}
            () = stopped(&mut self.stopping) => {
                connection.as_mut().graceful_shutdown();
                let _ = connection.await;
            }
            _ = &mut evicted => {
                // A request that has arrived meanwhile is answered, if that takes no waiting.
                connection.as_mut().graceful_shutdown();
                let _ = timeout(Duration::ZERO, connection).await;
            }
        }
    }
}

/// The answer to a request for `path` on a connection that is only for health; none if it may be answered.
fn reserved_for_health(slot: &Slot, path: &str) -> Option<Response<Body>> {
    if !slot.is_reserved || health::is_health(path) {
        return None;
    }
    slot.count_rejected();
    let mut response = Kind::TooManyConnections.with_detail(TOO_MANY).into_response();
    close(&mut response);
    Some(response)
}

fn close(response: &mut Response<Body>) {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
}

/// The body of a response. Until all of it has been passed on, the connection is busy.
struct Answer {
    body: Body,
    _busy: Busy,
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_about_a_limit_names_who_is_at_it() {
        let limits = Limits { connections: 3, connections_per_client: 2, ..Limits::default() };
        let connections = Connections::new(limits);
        let client = |number| IpAddr::from([192, 0, 2, number]);
        let admitted = [1, 1, 2].map(|number| connections.admit(client(number)).place);
        assert!(admitted.iter().all(Option::is_some));
        let end = SocketAddr::from(([192, 0, 2, 1], 80));
        let tcp = ConnInfo::Tcp { local: end, peer: end };
        let line = |info, limit, effect| describe_limit(info, limit, effect, &limits, &connections);
        let (address, text) = line(&tcp, Limit::Server, Effect::HealthOnly);
        assert_eq!(address.as_deref(), Some("192.0.2.1"));
        assert_eq!(
            text,
            "HTTP has 3 connections, its limit: all of them are busy, so new ones get health only; \
             192.0.2.1 has the most (2)"
        );
        let (address, text) = line(&tcp, Limit::Client(client(1)), Effect::Eviction);
        assert_eq!(address.as_deref(), Some("192.0.2.1"));
        assert_eq!(
            text,
            "192.0.2.1 has 2 HTTP connections, its limit: the longest idle ones are closed"
        );
        let socket = ConnInfo::AdminSocket { uid: 0 };
        for limit in [Limit::Server, Limit::Client(socket.client())] {
            let (address, text) = line(&socket, limit, Effect::Rejection);
            assert_eq!(address.as_deref(), Some("admin.sock"));
            assert_eq!(
                text,
                "admin.sock has 3 connections, its limit: all of them are busy, so new ones are rejected"
            );
        }
    }
}
