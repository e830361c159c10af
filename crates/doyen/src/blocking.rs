//! Work that may wait for a disk or take long, beside an async runtime. Where no thread can be started, `spawn_blocking` of
//! tokio panics; this is an error.

use std::io;
use std::thread;

use tokio::sync::oneshot;

/// Does this in a thread of its own. It is an error if there can be none, or if the work panics.
pub async fn in_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (done, result) = oneshot::channel();
    let explain =
        |error: io::Error| io::Error::new(error.kind(), format!("cannot start a thread: {error}"));
    // The caller may have gone when the work is done.
    let worker = thread::Builder::new().name("doyen-blocking".to_owned());
    worker.spawn(move || drop(done.send(work()))).map_err(explain)?;
    result.await.map_err(|_| io::Error::other("it panicked; this is a bug"))
}
