//! The messages between a node and its guardian, over a pair of connected sockets that preserve message boundaries.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::hook::{Hook, Hooks};

/// The longest message: an error in words is the longest part.
const LONGEST: usize = 4096;

/// A request of a node to its guardian.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Request {
    /// Start the command, under the lease of this term, with this fencing token.
    Start {
        /// The term.
        term: u64,
        /// The fencing token.
        token: u64,
    },
    /// Pass this signal on to the command.
    Signal(i32),
    /// Have the command end: SIGTERM, and SIGKILL to all of its tree after this many nanoseconds.
    Stop {
        /// How long the command has, in nanoseconds.
        grace: u64,
    },
    /// Run these hooks from now on.
    Hooks(Hooks),
    /// Say that you are there.
    Ping,
    /// End the command, and yourself: the node ends as planned.
    Finish,
}

/// What a guardian tells its node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Report {
    /// The hook for a member that does not lead has succeeded for the first time: something may be started.
    Ready,
    /// The hook for a leader has succeeded, and the command runs.
    Started {
        /// The number of the first process of its tree; none if there are only hooks.
        pid: Option<i32>,
    },
    /// Nothing has been started, and nothing is left of the attempt.
    NotStarted {
        /// Why not.
        why: String,
        /// Whether it was tried and failed; otherwise it was not the time.
        failed: bool,
    },
    /// The command has ended, its tree is gone as far as something contains it, and the hook for a member that does not lead
    /// has succeeded.
    Ended {
        /// The exit code of the command, 128 + n if signal n ended it.
        code: i32,
        /// Why, if the guardian ended it.
        killed: Option<Killed>,
        /// When the command ended, before that hook, in nanoseconds since this machine booted.
        at: u64,
    },
    /// A hook has failed. The one for a member that does not lead is run again.
    HookFailed {
        /// The hook.
        hook: Hook,
        /// What went wrong.
        why: String,
    },
    /// The guardian is there.
    Pong,
}

/// Why a guardian killed a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Killed {
    /// The lease was about to end, and was not renewed.
    Lease {
        /// How late the guardian woke up, in nanoseconds.
        late: u64,
        /// How long it took until the tree was gone, in nanoseconds.
        took: u64,
    },
    /// It did not end in time after SIGTERM.
    Grace,
}

/// One end.
#[derive(Debug)]
pub struct Channel(OwnedFd);

impl Channel {
    /// Two ends. A message arrives whole or not at all.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Self(one), Self(other)))
    }

    pub(super) fn new(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Sends a message. If the other end does not read, this fails rather than wait.
    pub fn send(&self, message: &impl Serialize) -> io::Result<()> {
        let bytes = postcard::to_allocvec(message).map_err(io::Error::other)?;
        send(&self.0, &bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
        Ok(())
    }

    /// Waits for a message; none once the other end is closed.
    pub fn receive<M: DeserializeOwned>(&self) -> io::Result<Option<M>> {
        let mut buffer = [0; LONGEST];
        let (length, _) = match recv(&self.0, &mut buffer, RecvFlags::empty()) {
            // The other end has died and left something unread.
            Err(Errno::CONNRESET) => return Ok(None),
            received => received?,
        };
        match length {
            0 => Ok(None),
            length => postcard::from_bytes(&buffer[..length]).map(Some).map_err(io::Error::other),
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_stay_apart_and_a_closed_end_is_an_end() {
        let (node, guardian) = Channel::pair().unwrap();
        node.send(&Request::Start { term: 3, token: 3 << 20 }).unwrap();
        node.send(&Request::Stop { grace: 5 }).unwrap();
        assert_eq!(guardian.receive().unwrap(), Some(Request::Start { term: 3, token: 3 << 20 }));
        assert_eq!(guardian.receive().unwrap(), Some(Request::Stop { grace: 5 }));
        drop(node);
        assert_eq!(guardian.receive::<Request>().unwrap(), None);
    }
}
