//! Admin commands to a node of this machine, over the admin socket in its state folder.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use doyen::api;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::client::{
    CannotReach, CommandResult, LONGEST_ANSWER, Reply, STOPPED, STREAM_TIMEOUT, Stream,
};

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
        let reply = self.request(Method::Post("{}"), path, None)?;
        if reply.status / 100 != 2 {
            bail!("{}", reply.problem()?.detail);
        }
        Ok(serde_json::from_str(&reply.text)?)
    }

    /// Whether a node listens there, and this user may ask it.
    pub(crate) fn is_open(&self) -> bool {
        use io::ErrorKind::{ConnectionRefused, NotFound, PermissionDenied};
        let error = api::connect(&self.socket).err().map(|error| error.kind());
        !matches!(error, Some(ConnectionRefused | NotFound | PermissionDenied))
    }

    /// Asks for what the node knows, and waits no longer than this.
    pub(crate) fn get(&self, path: &str, limit: Duration) -> Result<Reply> {
        let (socket, timeout) = (self.socket.clone(), self.timeout.min(limit));
        Self { socket, timeout }.request(Method::Get, path, None)
    }

    /// Opens the stream of changes, after the event with this id.
    pub(crate) fn watch(&self, last: Option<&str>) -> Result<Stream> {
        let open = || -> io::Result<(String, BufReader<UnixStream>)> {
            let last = last.map_or_else(String::new, |last| format!("last-event-id: {last}\r\n"));
            let stream = self.send(Method::Get, "/v1/watch", &last)?;
            let (mut head, mut reader) = (String::new(), BufReader::new(stream));
            while !head.ends_with("\r\n\r\n") {
                if reader.by_ref().take(LONGEST_ANSWER).read_line(&mut head)? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Ok((head, reader))
        };
        let (mut answer, reader) = open().map_err(|error| self.unreachable(&error))?;
        let head = self.reply(&answer)?;
        if head.status == 200 {
            // The stream has no end, but each part of it arrives in time.
            reader.get_ref().set_read_timeout(Some(STREAM_TIMEOUT))?;
            return Ok(Stream { place: self.place(), events: Box::new(reader) });
        }
        let read = reader.take(LONGEST_ANSWER).read_to_string(&mut answer);
        read.map_err(|error| self.unreachable(&error))?;
        Err(CannotReach::new(&self.place(), self.reply(&answer)?.problem()?.detail).into())
    }

    /// Sends an admin command, for this term only if one is given.
    pub(crate) fn command(
        &self,
        path: &str,
        body: &impl Serialize,
        term: Option<u64>,
    ) -> Result<CommandResult> {
        let body = serde_json::to_string(body)?;
        self.request(Method::Post(&body), path, term)?.into_result()
    }

    fn request(&self, method: Method<'_>, path: &str, term: Option<u64>) -> Result<Reply> {
        let if_match = term.map_or_else(String::new, |term| format!("if-match: \"{term}\"\r\n"));
        let mut answer = String::new();
        let stream = self.send(method, path, &if_match);
        stream
            .and_then(|stream| stream.take(LONGEST_ANSWER).read_to_string(&mut answer))
            .map_err(|error| self.unreachable(&error))?;
        self.reply(&answer)
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

    /// Sends one request in the older version of HTTP: the answer ends with the connection.
    fn send(&self, method: Method<'_>, path: &str, header: &str) -> io::Result<UnixStream> {
        let mut stream = api::connect(&self.socket)?;
        stream.set_read_timeout(Some(self.timeout))?;
        stream.set_write_timeout(Some(self.timeout))?;
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
}
