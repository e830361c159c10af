//! The door: connections in, at a bounded number, each with time-outs.
//!
//! A web server that is left alone has a soft spot for clients that do nothing: they connect and never ask, ask and
//! never listen. Here a connection must have sent a whole head within a while, also the next one, and must take what it
//! is sent. If too many are in at once, whoever comes next is told so and shut out at once: a load balancer that is
//! refused looks elsewhere, one that waits does not.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Sleep, sleep, timeout};

use super::Limits;

/// So much is read ahead of what has been understood.
const BUFFER: usize = 16 * 1024;

/// So long requests under way may take when the server ends.
const LAST_CALL: Duration = Duration::from_secs(2);

/// What those are told for whom there is no room.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
    connection: close\r\n\r\n\
    {\"type\":\"urn:doyen:full\",\"title\":\"Too many connections\",\"status\":503,\
    \"detail\":\"too many connections are open; come again\"}";

/// The two ends of the connection that a request came over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// This end.
    pub(super) local: SocketAddr,
    /// The other.
    pub(super) peer: SocketAddr,
}

/// Serves whoever comes until `ending` turns true.
pub(super) async fn listen(
    listener: &TcpListener,
    router: Router,
    limits: Limits,
    mut ending: watch::Receiver<bool>,
) {
    let room = Arc::new(Semaphore::new(limits.connections as usize));
    let hall = Hall { router, limits, ending: ending.clone() };
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = end(&mut ending) => break,
        };
        match accepted {
            Ok((stream, peer)) => hall.admit(stream, peer, &room),
            Err(error) => {
                // Out of file handles, most likely: some will be free again.
                tracing::warn!(%error, "a connection cannot be accepted");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
    // Whoever is not done by then is not waited for: the runtime drops it.
    let _ = timeout(LAST_CALL, room.acquire_many(limits.connections)).await;
}

/// Waits until the server is to end.
pub(super) async fn end(ending: &mut watch::Receiver<bool>) {
    if ending.wait_for(|&ending| ending).await.is_err() {
        // Nobody is there any more who could say so.
        pending::<()>().await;
    }
}

/// What every connection needs.
#[derive(Clone)]
struct Hall {
    router: Router,
    limits: Limits,
    ending: watch::Receiver<bool>,
}

impl Hall {
    fn admit(&self, stream: TcpStream, peer: SocketAddr, room: &Arc<Semaphore>) {
        let Ok(place) = room.clone().try_acquire_owned() else {
            // As much of it as can be said at once: this one is not waited for.
            let _ = stream.try_write(FULL);
            return;
        };
        let Ok(local) = stream.local_addr() else { return };
        // Answers are short, and somebody waits for them. It is no matter if that cannot be had.
        let _ = stream.set_nodelay(true);
        tokio::spawn(self.clone().serve(stream, Line { local, peer }, place));
    }

    async fn serve(mut self, stream: TcpStream, line: Line, _place: OwnedSemaphorePermit) {
        let inner = TowerToHyperService::new(self.router);
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(line);
            inner.call(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.head_within)
            .max_buf_size(BUFFER)
            .serve_connection(Attentive::new(stream, self.limits.stalled_after), service);
        tokio::pin!(connection);
        // How a connection ends is the client's business: it may break it off at any time.
        tokio::select! {
            _ = &mut connection => {}
            () = end(&mut self.ending) => {
                connection.as_mut().graceful_shutdown();
                let _ = connection.await;
            }
        }
    }
}

/// A connection that fails when its other end takes nothing for too long.
struct Attentive {
    stream: TokioIo<TcpStream>,
    stalled_after: Duration,
    /// Runs while the other end is being waited for.
    patience: Option<Pin<Box<Sleep>>>,
}

impl Attentive {
    fn new(stream: TcpStream, stalled_after: Duration) -> Self {
        Self { stream: TokioIo::new(stream), stalled_after, patience: None }
    }

    /// What became of an attempt to write.
    fn judge(
        &mut self,
        attempt: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if attempt.is_ready() {
            self.patience = None;
            return attempt;
        }
        let patience = self.patience.get_or_insert_with(|| Box::pin(sleep(self.stalled_after)));
        ready!(patience.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Read for Attentive {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for Attentive {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let attempt = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(attempt, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let attempt = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.judge(attempt, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
