//! System calls for which there is no safe form: the only `unsafe` code of this crate.

#![allow(unsafe_code, reason = "each call says why it is sound")]

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, IntoRawFd as _, OwnedFd, RawFd};

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Takes over a file descriptor that the process was started with, and which no later child shall inherit.
pub(crate) fn take_inherited(number: RawFd) -> io::Result<OwnedFd> {
    if number <= 2 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "standard streams are not taken"));
    }
    // SAFETY: the number comes from the command line that the parent wrote for this descriptor, and is taken once, before
    // the process opens anything. If it is not open, the next call fails, and the value is leaked without being closed.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    let is_open = fcntl_getfd(&fd).and_then(|_| fcntl_setfd(&fd, FdFlags::CLOEXEC));
    if let Err(error) = is_open {
        let _ = fd.into_raw_fd();
        return Err(error.into());
    }
    Ok(fd)
}

/// The next child of this thread is the first process of a new PID namespace.
pub(crate) fn new_pid_namespace() -> io::Result<()> {
    // SAFETY: unsharing is unsound only for the table of file descriptors, which stays shared.
    Ok(unsafe { unshare_unsafe(UnshareFlags::NEWPID) }?)
}

/// Gives this process real-time priority, and none of its children.
pub(crate) fn prefer_in_scheduling() -> io::Result<()> {
    let policy = libc::SCHED_RR | libc::SCHED_RESET_ON_FORK;
    // All that the kernel knows of `sched_param`. The call of the C library is none in musl, which refuses it.
    let priority: libc::c_int = 1;
    // SAFETY: the pointer is to a number that lives until the call returns; 0 is this thread.
    match unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Has the kernel drop what arrives at a socket and does not pass this program of a classic BPF.
pub(crate) fn attach_filter(socket: impl AsFd, filter: &[libc::sock_filter]) -> io::Result<()> {
    let len = libc::c_ushort::try_from(filter.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len, filter: filter.as_ptr().cast_mut() };
    let size = size_of_val(&program) as libc::socklen_t;
    // SAFETY: both pointers are to what lives until the call returns. The kernel copies and checks the program, and
    // writes to neither.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
