//! The way into the loop from other threads: a queue, and a bell that wakes the loop.
//!
//! The loop sleeps in `poll`, which wakes for descriptors alone, so a request rings by writing a byte to a socket pair.
//! The byte says nothing but "look"; if the pair is full the loop has been told already.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use super::{NotDone, Request};

/// How many requests may wait: more at once is no operator, but a mistake, and is refused.
const ROOM: usize = 256;

/// The end of those who want something.
#[derive(Clone, Debug)]
pub struct Requests {
    queue: SyncSender<Request>,
    bell: Arc<UnixStream>,
}

/// The loop's end.
#[derive(Debug)]
pub(super) struct Inbox {
    queue: Receiver<Request>,
    bell: UnixStream,
}

/// Both ends.
pub(super) fn pair() -> io::Result<(Requests, Inbox)> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    theirs.set_nonblocking(true)?;
    let (queue, queued) = sync_channel(ROOM);
    Ok((Requests { queue, bell: Arc::new(theirs) }, Inbox { queue: queued, bell: ours }))
}

impl Requests {
    /// Puts `request` into the queue and wakes the loop. Never waits.
    pub(super) fn send(&self, request: Request) -> Result<(), NotDone> {
        self.queue.try_send(request).map_err(|error| match error {
            TrySendError::Full(_) => NotDone::Busy,
            TrySendError::Disconnected(_) => NotDone::Stopped,
        })?;
        // A bell that is full has rung; one whose loop has just ended needs none.
        let _ = (&*self.bell).write(&[1]);
        Ok(())
    }
}

impl Inbox {
    /// What to sleep on.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Silences the bell. To be called before the queue is emptied: a request that comes later rings again.
    pub(super) fn silence(&mut self) {
        let mut bytes = [0; 64];
        while matches!(self.bell.read(&mut bytes), Ok(count) if count == bytes.len()) {}
    }

    /// The next request, once there is one; nothing when nobody is left who could ask.
    pub(super) fn wait(&self) -> Option<Request> {
        self.queue.recv().ok()
    }

    /// The next request, if one waits.
    pub(super) fn next(&self) -> Option<Request> {
        self.queue.try_recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    fn stop() -> Request {
        Request::Stop { grace: Duration::ZERO }
    }

    fn rings(inbox: &Inbox) -> bool {
        let fd = inbox.as_fd();
        let mut fds = [PollFd::new(&fd, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).expect("poll works") == 1
    }

    #[test]
    fn a_request_wakes_the_loop_and_a_full_queue_is_refused() {
        let (requests, mut inbox) = pair().expect("a socket pair");
        assert!(!rings(&inbox));
        for _ in 0..ROOM {
            requests.send(stop()).expect("there is room");
        }
        assert_eq!(requests.send(stop()), Err(NotDone::Busy));
        assert!(rings(&inbox));
        inbox.silence();
        assert!(!rings(&inbox));
        assert_eq!(std::iter::from_fn(|| inbox.next()).count(), ROOM);
        drop(inbox);
        assert_eq!(requests.send(stop()), Err(NotDone::Stopped));
    }
}
