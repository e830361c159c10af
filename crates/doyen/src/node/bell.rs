//! The way into the loop from other threads: a queue, and a bell that wakes the loop.
//!
//! The loop sleeps in `poll`, which wakes for descriptors alone, so a request rings by writing a byte to a socket pair.
//! The byte says nothing but "look"; if the pair is full the loop has been told already.
//!
//! That the node is to stop has a place of its own beside the queue: it must be heard however much else is asked for.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use super::{NotDone, Request};

/// How many requests may wait: more at once is no operator, but a mistake, and is refused.
const ROOM: usize = 256;

/// Nobody wants the node to stop.
const GOES_ON: u64 = u64::MAX;

/// The end of those who want something.
#[derive(Clone, Debug)]
pub struct Requests {
    queue: SyncSender<Request>,
    /// Within how many nanoseconds the node is to stop.
    stop: Arc<AtomicU64>,
    bell: Arc<UnixStream>,
}

/// The loop's end.
#[derive(Debug)]
pub(super) struct Inbox {
    queue: Receiver<Request>,
    stop: Arc<AtomicU64>,
    bell: UnixStream,
}

/// Both ends.
pub(super) fn pair() -> io::Result<(Requests, Inbox)> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    theirs.set_nonblocking(true)?;
    let (queue, queued) = sync_channel(ROOM);
    let stop = Arc::new(AtomicU64::new(GOES_ON));
    let inbox = Inbox { queue: queued, stop: Arc::clone(&stop), bell: ours };
    Ok((Requests { queue, stop, bell: Arc::new(theirs) }, inbox))
}

impl Requests {
    /// Puts `request` into the queue and wakes the loop. Never waits.
    pub(super) fn send(&self, request: Request) -> Result<(), NotDone> {
        self.queue.try_send(request).map_err(|error| match error {
            TrySendError::Full(_) => NotDone::Busy,
            TrySendError::Disconnected(_) => NotDone::Stopped,
        })?;
        self.ring();
        Ok(())
    }

    /// Has the loop end within `grace`. Never waits, and is never refused: there is always room for it. If the loop has
    /// ended already, that is what was wanted.
    pub(super) fn stop(&self, grace: Duration) {
        let nanos = u64::try_from(grace.as_nanos()).unwrap_or(GOES_ON).min(GOES_ON - 1);
        self.stop.store(nanos, Ordering::Release);
        self.ring();
    }

    fn ring(&self) {
        // A bell that is full has rung; one whose loop has just ended needs none.
        let _ = (&*self.bell).write(&[1]);
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
    pub(super) fn wait(&mut self) -> Option<Request> {
        loop {
            match self.take() {
                Ok(request) => return Some(request),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => {}
            }
            // If it is interrupted, it looks once more.
            let _ = poll(&mut [PollFd::new(&self.bell, PollFlags::IN)], None);
            self.silence();
        }
    }

    /// The next request, if one waits.
    pub(super) fn next(&self) -> Option<Request> {
        self.take().ok()
    }

    fn take(&self) -> Result<Request, TryRecvError> {
        if let Some(stop) = self.take_stop() {
            return Ok(stop);
        }
        // The last that could ask may have asked for the end before it went.
        self.queue.try_recv().or_else(|none| match none {
            TryRecvError::Disconnected => self.take_stop().ok_or(none),
            TryRecvError::Empty => Err(none),
        })
    }

    fn take_stop(&self) -> Option<Request> {
        match self.stop.swap(GOES_ON, Ordering::Acquire) {
            GOES_ON => None,
            nanos => Some(Request::Stop { grace: Duration::from_nanos(nanos) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use doyen_core::members::NodeId;
    use rustix::event::Timespec;

    use super::*;

    fn request() -> Request {
        Request::Resolved { member: NodeId(1), address: None }
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
            requests.send(request()).expect("there is room");
        }
        assert_eq!(requests.send(request()), Err(NotDone::Busy));
        assert!(rings(&inbox));
        inbox.silence();
        assert!(!rings(&inbox));
        assert_eq!(std::iter::from_fn(|| inbox.next()).count(), ROOM);
        drop(inbox);
        assert_eq!(requests.send(request()), Err(NotDone::Stopped));
    }

    /// Whoever wants a node to stop must not be told that it is busy, nor wait behind those who keep it so.
    #[test]
    fn that_it_is_to_stop_is_heard_however_much_else_is_asked_for() {
        let (requests, mut inbox) = pair().expect("a socket pair");
        for _ in 0..ROOM {
            requests.send(request()).expect("there is room");
        }
        assert_eq!(requests.send(request()), Err(NotDone::Busy));
        inbox.silence();
        let grace = Duration::from_secs(3);
        requests.stop(grace);
        assert!(rings(&inbox));
        assert!(matches!(inbox.next(), Some(Request::Stop { grace: told }) if told == grace));
        assert_eq!(std::iter::from_fn(|| inbox.next()).count(), ROOM, "and it is told once");
        // Whoever waits is woken, and goes when nobody is left.
        let waiting = std::thread::spawn(move || (inbox.wait(), inbox.wait()));
        requests.stop(Duration::MAX);
        drop(requests);
        let (told, end) = waiting.join().expect("it ends");
        assert!(
            matches!(told, Some(Request::Stop { grace }) if grace > Duration::from_secs(1 << 30))
        );
        assert!(end.is_none());
    }
}
