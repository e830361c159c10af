//! Connections: a bounded number, each with time-outs.
//!
//! A server without limits suffers from clients that do nothing: they connect and send no request, or send one and do not
//! read the response. Here every request must arrive within a time limit, and the client must read what it is sent. If
//! there are too many connections, a new one is answered with an error and closed at once: a load balancer that gets an
//! error tries another node, one that waits does not.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;

use super::Limits;

/// The size of a connection's read buffer.
const BUFFER: usize = 16 * 1024;

/// How long requests in progress may take when the server stops.
const SHUTDOWN_WITHIN: Duration = Duration::from_secs(2);

/// The response to a connection that exceeds the limit.
const TOO_MANY_CONNECTIONS: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
    connection: close\r\n\r\n\
    {\"type\":\"urn:doyen:too-many-connections\",\"title\":\"Too many connections\",\"status\":503,\
    \"detail\":\"too many connections; retry later\"}";

/// The two ends of the connection that a request came over.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnInfo {
    pub(super) local: SocketAddr,
    pub(super) peer: SocketAddr,
}

/// Accepts connections until `stopping` is true.
pub(super) async fn listen(
    listener: &TcpListener,
    router: Router,
    limits: Limits,
    mut stopping: watch::Receiver<bool>,
) {
    let slots = Arc::new(Semaphore::new(limits.connections as usize));
    let connections = Connections { router, limits, stopping: stopping.clone() };
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopped(&mut stopping) => break,
        };
        match accepted {
            Ok((stream, peer)) => connections.accept(stream, peer, &slots),
            Err(error) => {
                // Most likely there are no free file descriptors; wait until some are closed.
                tracing::warn!(event = "connection-not-accepted", reason = %error,
                    "cannot accept an HTTP connection: {error}");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
    // The runtime drops connections that are not done by then.
    let _ = timeout(SHUTDOWN_WITHIN, slots.acquire_many(limits.connections)).await;
}

/// Waits until the server stops.
pub(super) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    if stopping.wait_for(|&stopping| stopping).await.is_err() {
        // The sender is gone, so the server cannot be stopped any more.
        pending::<()>().await;
    }
}

#[derive(Clone)]
struct Connections {
    router: Router,
    limits: Limits,
    stopping: watch::Receiver<bool>,
}

impl Connections {
    fn accept(&self, stream: TcpStream, peer: SocketAddr, slots: &Arc<Semaphore>) {
        let Ok(slot) = slots.clone().try_acquire_owned() else {
            // Only as much as can be written without waiting.
            let _ = stream.try_write(TOO_MANY_CONNECTIONS);
            return;
        };
        let Ok(local) = stream.local_addr() else { return };
        // Responses are short and should leave at once; without this they still arrive.
        let _ = stream.set_nodelay(true);
        tokio::spawn(self.clone().serve(stream, ConnInfo { local, peer }, slot));
    }

    async fn serve(mut self, stream: TcpStream, info: ConnInfo, _slot: OwnedSemaphorePermit) {
        let inner = TowerToHyperService::new(self.router);
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(info);
            inner.call(request)
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
        }
    }
}
