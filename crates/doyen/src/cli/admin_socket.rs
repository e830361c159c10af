//! Admin commands to a node of this machine, over the admin socket in its state folder.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use doyen::api;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::client::{CannotReach, CommandResult, Reply, STOPPED};

/// The longest answer, in bytes.
const LONGEST_ANSWER: u64 = 1024 * 1024;

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

    /// Asks for what the node knows, and waits no longer than this.
    pub(crate) fn get(&self, path: &str, limit: Duration) -> Result<Reply> {
        let (socket, timeout) = (self.socket.clone(), self.timeout.min(limit));
        Self { socket, timeout }.request(Method::Get, path, None)
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
        let place = self.socket.display().to_string();
        let answer = self.exchange(method, path, term).map_err(|error| {
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
            CannotReach::new(&place, why)
        })?;
        Reply::parse(place, &answer).context("the node's answer cannot be read")
    }

    /// One request in the older version of HTTP: the answer ends with the connection.
    fn exchange(&self, method: Method<'_>, path: &str, term: Option<u64>) -> io::Result<String> {
        let mut stream = api::connect(&self.socket)?;
        stream.set_read_timeout(Some(self.timeout))?;
        stream.set_write_timeout(Some(self.timeout))?;
        let if_match = term.map_or_else(String::new, |term| format!("if-match: \"{term}\"\r\n"));
        let (method, body) = match method {
            Method::Get => ("GET", ""),
            Method::Post(body) => ("POST", body),
        };
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.0\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{if_match}"
        );
        stream.write_all(format!("{head}\r\n{body}").as_bytes())?;
        let mut answer = String::new();
        stream.take(LONGEST_ANSWER).read_to_string(&mut answer)?;
        Ok(answer)
    }
}
