//! How other threads reach the loop: a queue of commands, and a socket pair that wakes the loop.
//!
//! The loop sleeps in `poll`, which wakes for file descriptors only, so a sender writes one byte to a socket pair. The
//! byte carries no information; if the pair is full, the loop has been woken already.
//!
//! The request to stop has a place of its own beside the queue: it must arrive however full the queue is.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use super::{Command, CommandError};

/// How many commands may wait. No operator has more; a program that does has a bug, and is told that the node is busy.
const CAPACITY: usize = 256;

/// In place of a grace period: no stop was requested.
const NO_STOP: u64 = u64::MAX;

/// Sends commands to the loop. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct CommandSender {
    queue: SyncSender<Command>,
    /// The grace period of a requested stop, in nanoseconds.
    stop: Arc<AtomicU64>,
    /// Whether a stop was ever requested.
    is_stopping: Arc<AtomicBool>,
    waker: Arc<UnixStream>,
}

/// The loop's end.
#[derive(Debug)]
pub(super) struct CommandReceiver {
    queue: Receiver<Command>,
    stop: Arc<AtomicU64>,
    waker: UnixStream,
}

pub(super) fn channel() -> io::Result<(CommandSender, CommandReceiver)> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    theirs.set_nonblocking(true)?;
    let (queue, queued) = sync_channel(CAPACITY);
    let stop = Arc::new(AtomicU64::new(NO_STOP));
    let receiver = CommandReceiver { queue: queued, stop: Arc::clone(&stop), waker: ours };
    let (is_stopping, waker) = (Arc::default(), Arc::new(theirs));
    Ok((CommandSender { queue, stop, is_stopping, waker }, receiver))
}

impl CommandSender {
    /// Queues `command` and wakes the loop. Never blocks.
    pub(super) fn send(&self, command: Command) -> Result<(), CommandError> {
        self.queue.try_send(command).map_err(|error| match error {
            TrySendError::Full(_) => CommandError::Busy,
            TrySendError::Disconnected(_) => CommandError::Stopped,
        })?;
        self.wake();
        Ok(())
    }

    /// Requests that the loop end within `grace`. Never blocks and never fails.
    pub(super) fn stop(&self, grace: Duration) {
        let nanos = u64::try_from(grace.as_nanos()).unwrap_or(NO_STOP).min(NO_STOP - 1);
        self.is_stopping.store(true, Ordering::Release);
        self.stop.store(nanos, Ordering::Release);
        self.wake();
    }

    /// Whether [`stop`](Self::stop) was called.
    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Makes the loop look again at what it waits for.
    pub(super) fn wake(&self) {
        // If the socket is full, the loop has been woken; if it is closed, the loop has ended.
        let _ = (&*self.waker).write(&[1]);
    }
}

impl CommandReceiver {
    /// The file descriptor that becomes readable when a command arrives.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }

    /// Clears the wake-up. Call this before emptying the queue: a command that arrives later wakes the loop again.
    pub(super) fn clear_wake(&mut self) {
        let mut bytes = [0; 64];
        while matches!(self.waker.read(&mut bytes), Ok(count) if count == bytes.len()) {}
    }

    /// Waits for the next command; `None` when the last sender is gone.
    pub(super) fn wait(&mut self) -> Option<Command> {
        loop {
            match self.take() {
                Ok(command) => return Some(command),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => {}
            }
            // If `poll` is interrupted, the loop just looks once more.
            let _ = poll(&mut [PollFd::new(&self.waker, PollFlags::IN)], None);
            self.clear_wake();
        }
    }

    /// The next command, if one waits.
    pub(super) fn next(&self) -> Option<Command> {
        self.take().ok()
    }

    /// Whether the next command is to stop.
    pub(super) fn has_stop(&self) -> bool {
        self.stop.load(Ordering::Acquire) != NO_STOP
    }

    fn take(&self) -> Result<Command, TryRecvError> {
        if let Some(stop) = self.take_stop() {
            return Ok(stop);
        }
        // The last sender may have requested a stop before it was dropped.
        self.queue.try_recv().or_else(|none| match none {
            TryRecvError::Disconnected => self.take_stop().ok_or(none),
            TryRecvError::Empty => Err(none),
        })
    }

    fn take_stop(&self) -> Option<Command> {
        match self.stop.swap(NO_STOP, Ordering::Acquire) {
            NO_STOP => None,
            nanos => Some(Command::Stop { grace: Duration::from_nanos(nanos) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use doyen_core::members::NodeId;
    use rustix::event::Timespec;

    use super::*;

    fn command() -> Command {
        Command::AddressResolved { member: NodeId(1), address: None }
    }

    fn is_woken(receiver: &CommandReceiver) -> bool {
        let fd = receiver.as_fd();
        let mut fds = [PollFd::new(&fd, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).expect("poll works") == 1
    }

    #[test]
    fn a_command_wakes_the_loop_and_a_full_queue_is_busy() {
        let (sender, mut receiver) = channel().expect("a socket pair");
        assert!(!is_woken(&receiver));
        for _ in 0..CAPACITY {
            sender.send(command()).expect("there is room");
        }
        assert_eq!(sender.send(command()), Err(CommandError::Busy));
        assert!(is_woken(&receiver));
        receiver.clear_wake();
        assert!(!is_woken(&receiver));
        assert_eq!(std::iter::from_fn(|| receiver.next()).count(), CAPACITY);
        drop(receiver);
        assert_eq!(sender.send(command()), Err(CommandError::Stopped));
    }

    #[test]
    fn a_stop_arrives_first_even_if_the_queue_is_full() {
        let (sender, mut receiver) = channel().expect("a socket pair");
        for _ in 0..CAPACITY {
            sender.send(command()).expect("there is room");
        }
        assert_eq!(sender.send(command()), Err(CommandError::Busy));
        receiver.clear_wake();
        let grace = Duration::from_secs(3);
        sender.stop(grace);
        assert!(is_woken(&receiver));
        assert!(matches!(receiver.next(), Some(Command::Stop { grace: got }) if got == grace));
        assert_eq!(std::iter::from_fn(|| receiver.next()).count(), CAPACITY, "one stop only");
        // A blocked receiver is woken, and returns when the last sender is gone.
        let waiting = std::thread::spawn(move || (receiver.wait(), receiver.wait()));
        sender.stop(Duration::MAX);
        drop(sender);
        let (stop, end) = waiting.join().expect("it ends");
        assert!(
            matches!(stop, Some(Command::Stop { grace }) if grace > Duration::from_secs(1 << 30))
        );
        assert!(end.is_none());
    }
}
