//! The admin socket: a Unix socket in the state folder, for admin commands without a secret.
//!
//! Its mode is 0600, so the kernel lets only the node's user and root connect, who could stop the node as well. Should another
//! user be let in by a later change of the mode, the user is checked once more ([`super::auth`]). A web page cannot reach it.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with, sockopt,
};

/// The admin socket in the state folder.
pub const SOCKET_FILE: &str = "admin.sock";

/// How many connections may wait to be accepted.
const BACKLOG: i32 = 16;

/// The longest path in the address of a Unix socket, in bytes.
const LONGEST_PATH: usize = 107;

/// How long a client waits for a place among those that wait to be accepted. A node that is stopped gives none away.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The shortest time-out that the system knows.
const SHORTEST_TIMEOUT: Duration = Duration::from_micros(1);

/// Connects to the admin socket at `path`, within `limit` and two seconds.
pub fn connect(path: &Path, limit: Duration) -> io::Result<UnixStream> {
    let short = ShortPath::of(path)?;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let limit = limit.clamp(SHORTEST_TIMEOUT, CONNECT_TIMEOUT);
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(limit))?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(&short.path)?)?;
    Ok(UnixStream::from(socket))
}

/// A socket that accepts connections and has not its name yet: another node may run with this state and have it. It gets
/// the name when this node runs, and then no other does.
#[derive(Debug)]
pub(super) struct Draft {
    listener: UnixListener,
    draft: PathBuf,
    path: PathBuf,
}

impl Draft {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let draft = path.with_extension(format!("draft-{}", std::process::id()));
        // An earlier process with the same id may have left one.
        let _ = fs::remove_file(&draft);
        let short = ShortPath::of(&draft)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        bind(&socket, &SocketAddrUnix::new(&short.path)?)?;
        let draft = Self { listener: UnixListener::from(socket), draft, path: path.to_owned() };
        // Before it listens, so that no other user ever connects.
        fs::set_permissions(&draft.draft, Permissions::from_mode(0o600))?;
        listen(&draft.listener, BACKLOG)?;
        Ok(draft)
    }

    /// Gives it its name, in place of one that an earlier process left. It keeps the name when the node ends: by then
    /// another node may have taken it over.
    pub(super) fn publish(self) -> io::Result<UnixListener> {
        fs::rename(&self.draft, &self.path)?;
        self.listener.try_clone()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Once it is published, this name does not exist any more.
        let _ = fs::remove_file(&self.draft);
    }
}

/// A path that fits into an address: through a descriptor of the folder, if it is too long.
struct ShortPath {
    path: PathBuf,
    _folder: Option<File>,
}

impl ShortPath {
    fn of(path: &Path) -> io::Result<Self> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(Self { path: path.to_owned(), _folder: None });
        };
        if path.as_os_str().len() <= LONGEST_PATH {
            return Ok(Self { path: path.to_owned(), _folder: None });
        }
        let folder = File::open(folder)?;
        let path = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name);
        Ok(Self { path, _folder: Some(folder) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use std::time::Instant;

    const LIMIT: Duration = Duration::from_millis(500);

    #[test]
    fn a_node_that_accepts_nothing_keeps_no_client_waiting() {
        let scratch = Scratch::new();
        let path = scratch.join(SOCKET_FILE);
        let _listener = Draft::create(&path).expect("a socket").publish().expect("its name");
        let connections: Vec<_> = (0..=BACKLOG).map_while(|_| connect(&path, LIMIT).ok()).collect();
        assert_eq!(connections.len() as i32, BACKLOG + 1);
        let begun = Instant::now();
        let error = connect(&path, LIMIT).expect_err("there is no place");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(begun.elapsed() < CONNECT_TIMEOUT, "{:?}", begun.elapsed());
    }

    #[test]
    fn a_path_of_any_length_will_do() {
        let scratch = Scratch::new();
        let folder = scratch.join("n".repeat(120));
        fs::create_dir(&folder).expect("a folder");
        let path = folder.join(SOCKET_FILE);
        let draft = Draft::create(&path).expect("a socket");
        assert!(connect(&path, LIMIT).is_err(), "it has not its name yet");
        let _listener = draft.publish().expect("its name");
        connect(&path, LIMIT).expect("a connection");
        let left = fs::read_dir(&folder).expect("a folder").count();
        assert_eq!(left, 1, "no draft is left");
    }
}
