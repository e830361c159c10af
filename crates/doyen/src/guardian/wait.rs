//! Waiting for the end of a process.

use std::io;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::clock::Moment;

/// Waits until a pidfd says that its process has ended, at most until `deadline`; returns whether it has. A signal does not end
/// the wait: a supervisor that stops the whole service sends SIGTERM to the guardian too.
pub(super) fn ends_by(process: impl AsFd, deadline: Moment) -> io::Result<bool> {
    loop {
        let wait = deadline.since(Moment::now());
        let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&wait)) {
            Err(Errno::INTR) => {}
            ended => return Ok(ended? > 0),
        }
    }
}
