//! Admin commands to a node of this machine, over the admin socket in its state folder.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use doyen::api;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::client::{
    CannotReach, CommandResult, LONGEST_ANSWER, Reply, STOPPED, STREAM_TIMEOUT, Stream,
};

/// The shortest time-out that a stream takes.
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(1);

/// What a request does.
#[derive(Clone, Copy)]
enum Method<'a> {
    Get,
    /// With this body, which is JSON.
    Post(&'a str),
}

/// The way to a node by its admin socket.
#[derive(Debug)]
pub(crate) struct LocalAdmin {
    socket: PathBuf,
    timeout: Duration,
}

impl LocalAdmin {
    /// The socket of the node with this state folder, which answers within `timeout`.
    pub(crate) fn of(state_dir: &Path, timeout: Duration) -> Self {
        Self { socket: state_dir.join(api::SOCKET_FILE), timeout }
    }

    /// Makes an admin call without arguments, and reads the answer.
    pub(crate) fn call<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let reply = self.connect(self.timeout).request(Method::Post("{}"), path, None)?;
        if reply.status / 100 != 2 {
            bail!("{}", reply.problem()?.detail);
        }
        Ok(serde_json::from_str(&reply.text)?)
    }

    /// Connects to the node, and lets it answer within `limit`.
    pub(crate) fn connect(&self, limit: Duration) -> Connection<'_> {
        let deadline = Instant::now() + limit.min(self.timeout);
        let connect = || {
            let stream = api::connect(&self.socket, deadline.duration_since(Instant::now()))?;
            let left = deadline.duration_since(Instant::now()).max(SHORTEST_TIMEOUT);
            stream.set_read_timeout(Some(left))?;
            stream.set_write_timeout(Some(left))?;
            Ok(stream)
        };
        Connection { admin: self, stream: connect() }
    }

    /// Sends an admin command, for this term only if one is given.
    pub(crate) fn command(
        &self,
        path: &str,
        body: &impl Serialize,
        term: Option<u64>,
    ) -> Result<CommandResult> {
        let body = serde_json::to_string(body)?;
        let connection = self.connect(self.timeout);
        connection.request(Method::Post(&body), path, term)?.into_result()
    }

    fn reply(&self, answer: &str) -> Result<Reply> {
        Reply::parse(self.place(), answer).context("the node's answer cannot be read")
    }

    fn place(&self) -> String {
        self.socket.display().to_string()
    }

    fn unreachable(&self, error: &io::Error) -> anyhow::Error {
        let why = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                "no node listens there (is it running?)".to_owned()
            }
            io::ErrorKind::WouldBlock => STOPPED.to_owned(),
            io::ErrorKind::PermissionDenied => {
                format!("{error}; only the node's user and root may give commands")
            }
            _ => error.to_string(),
        };
        CannotReach::new(&self.place(), why).into()
    }
}

/// A connection to a node, or why there is none: for one request.
pub(crate) struct Connection<'a> {
    admin: &'a LocalAdmin,
    stream: io::Result<UnixStream>,
}

impl Connection<'_> {
    /// Whether a node listens there, and this user may ask it.
    pub(crate) fn is_open(&self) -> bool {
        use io::ErrorKind::{ConnectionRefused, NotFound, PermissionDenied};
        let error = self.stream.as_ref().err().map(io::Error::kind);
        !matches!(error, Some(ConnectionRefused | NotFound | PermissionDenied))
    }

    /// Asks for what the node knows.
    pub(crate) fn get(self, path: &str) -> Result<Reply> {
        self.request(Method::Get, path, None)
    }

    /// Opens the stream of changes, after the event with this id.
    pub(crate) fn watch(self, last: Option<&str>) -> Result<Stream> {
        let Self { admin, stream } = self;
        let open = || -> io::Result<(String, BufReader<UnixStream>)> {
            let last = last.map_or_else(String::new, |last| format!("last-event-id: {last}\r\n"));
            let stream = send(stream?, Method::Get, "/v1/watch", &last)?;
            let (mut head, mut reader) = (String::new(), BufReader::new(stream));
            while !head.ends_with("\r\n\r\n") {
                if reader.by_ref().take(LONGEST_ANSWER).read_line(&mut head)? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Ok((head, reader))
        };
        let (mut answer, reader) = open().map_err(|error| admin.unreachable(&error))?;
        let head = admin.reply(&answer)?;
        if head.status == 200 {
            // The stream has no end, but each part of it arrives in time.
            reader.get_ref().set_read_timeout(Some(STREAM_TIMEOUT))?;
            return Ok(Stream { place: admin.place(), events: Box::new(reader) });
        }
        let read = reader.take(LONGEST_ANSWER).read_to_string(&mut answer);
        read.map_err(|error| admin.unreachable(&error))?;
        Err(CannotReach::new(&admin.place(), admin.reply(&answer)?.problem()?.detail).into())
    }

    fn request(self, method: Method<'_>, path: &str, term: Option<u64>) -> Result<Reply> {
        let Self { admin, stream } = self;
        let if_match = term.map_or_else(String::new, |term| format!("if-match: \"{term}\"\r\n"));
        let mut answer = String::new();
        stream
            .and_then(|stream| send(stream, method, path, &if_match))
            .and_then(|stream| stream.take(LONGEST_ANSWER).read_to_string(&mut answer))
            .map_err(|error| admin.unreachable(&error))?;
        admin.reply(&answer)
    }
}

/// Sends one request in the older version of HTTP: the answer ends with the connection.
fn send(
    mut stream: UnixStream,
    method: Method<'_>,
    path: &str,
    header: &str,
) -> io::Result<UnixStream> {
    let (method, body) = match method {
        Method::Get => ("GET", ""),
        Method::Post(body) => ("POST", body),
    };
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.0\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{header}"
    );
    stream.write_all(format!("{head}\r\n{body}").as_bytes())?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// A stopped node accepts nothing, and has as many connections waiting as it may.
    #[test]
    fn a_stopped_node_is_waited_for_as_long_as_there_is_time() {
        let folder = std::env::temp_dir().join(format!("doyen-stopped-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let listener = UnixListener::bind(folder.join(api::SOCKET_FILE)).expect("a socket");
        rustix::net::listen(&listener, 0).expect("it listens");
        let node = LocalAdmin::of(&folder, Duration::from_secs(30));
        let waiting = node.connect(Duration::from_secs(1));
        assert!(waiting.stream.is_ok());
        let begun = Instant::now();
        let connection = node.connect(Duration::from_millis(300));
        assert!(connection.is_open(), "something listens there");
        let error = connection.get("/v1/status").expect_err("it is stopped").to_string();
        assert!(error.ends_with(STOPPED), "{error}");
        assert!(begun.elapsed() < Duration::from_millis(1500), "{:?}", begun.elapsed());
        drop(listener);
        assert!(!node.connect(Duration::from_secs(1)).is_open());
        std::fs::remove_dir_all(folder).expect("it is there");
    }
}
