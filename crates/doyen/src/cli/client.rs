//! The HTTP client of the commands: which node, which admin secret, and what its answers mean.
//!
//! The node is given by `--node`, by the configuration that `--config` names, by `DOYEN_NODE`, or by the configuration that
//! `doyen node` would use here. The admin secret is the file of `--secret-file`, the one in the state folder of
//! `--config`, the file of `DOYEN_SECRET_FILE`, or the one in the state folder of the node configured here.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use doyen::api::{self, Accepted, MemberRef, Problem};
use doyen::config::{Configuration, Env, Settings};
use doyen::node::status::Status;
use doyen_core::members::NodeId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::Agent;
use ureq::http::{Response, StatusCode};

const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// A watched node sends something at least every 15 s.
const STREAM_TIMEOUT: Duration = Duration::from_secs(45);

/// In bytes.
const LONGEST_ANSWER: u64 = 16 * 1024 * 1024;

/// The address does not answer, or not as a node does.
#[derive(Debug, thiserror::Error)]
#[error("cannot reach {url}: {why}")]
pub(crate) struct CannotReach {
    url: String,
    why: String,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct NodeFlags {
    /// The node, for example 127.0.0.1:7400 [default: `DOYEN_NODE`, or the configured node]
    #[arg(long, value_name = "URL", help_heading = "Node")]
    node: Option<String>,

    /// The node's configuration file [default: ./doyen.toml]
    #[arg(long, short, value_name = "FILE", help_heading = "Node")]
    config: Option<PathBuf>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct SecretFlags {
    /// File with the admin secret [default: `DOYEN_SECRET_FILE`, or the one in the node's state folder]
    #[arg(long, value_name = "FILE", help_heading = "Node")]
    secret_file: Option<PathBuf>,
}

#[derive(Debug)]
pub(crate) enum CommandResult {
    Accepted(Accepted),
    Rejected(Problem),
}

#[derive(Debug)]
pub(crate) struct Client {
    url: String,
    agent: Agent,
    timeout: Duration,
}

impl NodeFlags {
    pub(crate) fn connect(&self) -> Result<Client> {
        Ok(Client::new(self.url()?, ANSWER_TIMEOUT))
    }

    fn url(&self) -> Result<String> {
        if let Some(node) = &self.node {
            return base("--node", node);
        }
        if let Some(node) = self.unless_configured("DOYEN_NODE") {
            return base("DOYEN_NODE", &node.to_string_lossy());
        }
        let settings = self.settings("which node? Give --node URL or DOYEN_NODE")?;
        let http = settings.http.context("http: the configured node serves no HTTP")?;
        base("http", &http.to_string())
    }

    /// `--config` takes precedence over variables.
    fn unless_configured(&self, variable: &str) -> Option<OsString> {
        from_env(variable).filter(|_| self.config.is_none())
    }

    /// The settings of the configured node. `wanted` says what to give where there is no configuration.
    fn settings(&self, wanted: &str) -> Result<Settings> {
        let env = Env::of_process();
        match Configuration::load(self.config.as_deref(), &[], &env) {
            Ok(configuration) => Ok(configuration.settings),
            Err(error) if self.config.is_some() || from_env("DOYEN_CONFIG").is_some() => {
                Err(error.into())
            }
            Err(error) if Path::new("doyen.toml").exists() => Err(error.into()),
            Err(_) => {
                bail!("{wanted}, or --config FILE, or change to the folder of its doyen.toml")
            }
        }
    }
}

/// Reads `2h`, `90s`, `1h 30m`.
pub(crate) fn parse_time(text: &str) -> Result<Duration, &'static str> {
    humantime::parse_duration(text).map_err(|_| "write for example 90s, 5m or 2h")
}

impl SecretFlags {
    pub(crate) fn read(&self, node: &NodeFlags) -> Result<String> {
        let named = || node.unless_configured("DOYEN_SECRET_FILE").map(PathBuf::from);
        let file = match self.secret_file.clone().or_else(named) {
            Some(file) => file,
            None => {
                let settings =
                    node.settings("an admin command needs the admin secret: give --secret-file")?;
                settings.state_dir.join(api::SECRET_FILE)
            }
        };
        let text = fs::read_to_string(&file)
            .with_context(|| format!("cannot read the admin secret {}", file.display()))?;
        Ok(text.trim().to_owned())
    }
}

/// A variable that is set and not empty.
fn from_env(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// The base URL of a node that is given as `http://host:port` or `host:port`.
fn base(source: &str, given: &str) -> Result<String> {
    let given = given.trim();
    if given.starts_with("https://") {
        bail!("{source}: nodes speak http, not https; use a tunnel where encryption is needed");
    }
    let host = given.strip_prefix("http://").unwrap_or(given).trim_end_matches('/');
    if host.is_empty() || host.contains(['/', '?', '#', ' ', '@']) {
        bail!("{source}: `{given}` is not a node; write for example http://127.0.0.1:7400");
    }
    // A node that listens on all addresses is reached on loopback.
    Ok(match host.parse::<SocketAddr>() {
        Ok(SocketAddr::V4(it)) if it.ip().is_unspecified() => {
            format!("http://127.0.0.1:{}", it.port())
        }
        Ok(SocketAddr::V6(it)) if it.ip().is_unspecified() => format!("http://[::1]:{}", it.port()),
        _ => format!("http://{host}"),
    })
}

type Answered = Response<ureq::Body>;

/// Server-sent events.
pub(crate) type Stream = BufReader<ureq::BodyReader<'static>>;

impl Client {
    pub(crate) fn new(url: String, timeout: Duration) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_connect(Some(CONNECT_TIMEOUT.min(timeout)))
            .timeout_global(Some(timeout))
            .user_agent(concat!("doyen/", env!("CARGO_PKG_VERSION")))
            .build();
        Self { url, agent: config.new_agent(), timeout }
    }

    /// Of a node that serves HTTP at this address.
    pub(crate) fn of(http: SocketAddr) -> Self {
        let url = base("http", &http.to_string()).unwrap_or_else(|_| format!("http://{http}"));
        Self::new(url, CONNECT_TIMEOUT)
    }

    /// Makes an admin call without arguments, and reads the answer.
    pub(crate) fn call<T: DeserializeOwned>(&self, path: &str, secret: &str) -> Result<T> {
        let request = self
            .agent
            .post(format!("{}{path}", self.url))
            .header("authorization", format!("Bearer {secret}"))
            .header("content-type", "application/json");
        let answer = request.send("{}").map_err(|error| self.unreachable(&error))?;
        if !answer.status().is_success() {
            bail!("{}", self.problem(answer)?.detail);
        }
        let text = self.text(answer)?;
        serde_json::from_str(&text).map_err(|error| {
            self.not_a_node(&format!("its answer to {path} cannot be read ({error})"))
        })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn status(&self) -> Result<Status> {
        self.get("/v1/status")
    }

    pub(crate) fn status_within(&self, limit: Duration) -> Result<Status> {
        self.get_within("/v1/status", limit.min(self.timeout))
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.get_within(path, self.timeout)
    }

    fn get_within<T: DeserializeOwned>(&self, path: &str, limit: Duration) -> Result<T> {
        let request = self.agent.get(format!("{}{path}", self.url));
        let request = request.config().timeout_global(Some(limit)).build();
        let answer = request.call().map_err(|error| self.unreachable(&error))?;
        let status = answer.status();
        let text = self.text(answer)?;
        if status != StatusCode::OK {
            return Err(self.not_a_node(&format!("it answers {path} with {status}")));
        }
        serde_json::from_str(&text).map_err(|error| {
            self.not_a_node(&format!("its answer to {path} cannot be read ({error})"))
        })
    }

    /// Opens the stream of changes, after the event with this id.
    pub(crate) fn watch(&self, last: Option<&str>) -> Result<Stream> {
        let request = self.agent.get(format!("{}/v1/watch", self.url)).config();
        // The stream has no end, but each part of it arrives in time.
        let request = request.timeout_global(None).timeout_recv_response(Some(ANSWER_TIMEOUT));
        let mut request = request.timeout_per_read(Some(STREAM_TIMEOUT)).build();
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let answer = request.call().map_err(|error| self.unreachable(&error))?;
        match answer.status() {
            StatusCode::OK => Ok(BufReader::new(answer.into_body().into_reader())),
            status => {
                let problem = self.problem(answer)?;
                let why = format!("it answers {status}: {}", problem.detail);
                Err(CannotReach { url: self.url.clone(), why }.into())
            }
        }
    }

    /// Sends an admin command, for this term only if one is given.
    pub(crate) fn command(
        &self,
        path: &str,
        body: &impl Serialize,
        secret: &str,
        term: Option<u64>,
    ) -> Result<CommandResult> {
        let mut request = self
            .agent
            .post(format!("{}{path}", self.url))
            .header("authorization", format!("Bearer {secret}"))
            .header("content-type", "application/json");
        if let Some(term) = term {
            request = request.header("if-match", format!("\"{term}\""));
        }
        let body = serde_json::to_string(body)?;
        let answer = request.send(body).map_err(|error| self.unreachable(&error))?;
        match answer.status() {
            StatusCode::ACCEPTED => {}
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
                let why = self.problem(answer)?.detail;
                return Err(CannotReach { url: self.url.clone(), why }.into());
            }
            _ => return self.problem(answer).map(CommandResult::Rejected),
        }
        let text = self.text(answer)?;
        let accepted = serde_json::from_str(&text);
        accepted.map(CommandResult::Accepted).map_err(|error| self.not_a_node(&error.to_string()))
    }

    fn problem(&self, answer: Answered) -> Result<Problem> {
        let status = answer.status();
        let text = self.text(answer)?;
        serde_json::from_str(&text)
            .map_err(|_| self.not_a_node(&format!("it answers {status} without a reason")))
    }

    fn text(&self, mut answer: Answered) -> Result<String> {
        let body = answer.body_mut().with_config().limit(LONGEST_ANSWER);
        body.read_to_string().map_err(|error| self.unreachable(&error))
    }

    fn unreachable(&self, error: &ureq::Error) -> anyhow::Error {
        let why = match error {
            ureq::Error::Timeout(_) => "no answer in time".to_owned(),
            ureq::Error::HostNotFound => "unknown host".to_owned(),
            ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                "connection refused; is the node running?".to_owned()
            }
            error => error.to_string(),
        };
        CannotReach { url: self.url.clone(), why }.into()
    }

    fn not_a_node(&self, why: &str) -> anyhow::Error {
        CannotReach { url: self.url.clone(), why: format!("not a doyen node: {why}") }.into()
    }
}

/// The members with these names or ids, each once. All unknown ones are reported at once.
pub(crate) fn members(status: &Status, flag: &str, names: &[String]) -> Result<Vec<NodeId>> {
    let (mut found, mut unknown) = (Vec::new(), Vec::new());
    for name in names.iter().map(|name| name.trim()) {
        match MemberRef::Name(name.to_owned()).find(status) {
            Some(id) if found.contains(&id) => {}
            Some(id) => found.push(id),
            None => unknown.push(format!("`{name}`")),
        }
    }
    let verb = match unknown.as_slice() {
        [] => return Ok(found),
        [_] => "is not a member",
        _ => "are not members",
    };
    let names: Vec<&str> = status.members.iter().map(|member| &*member.name).collect();
    bail!("{flag}: {} {verb}; there are {}", unknown.join(", "), names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_named_by_an_address_or_a_url() {
        for (given, url) in [
            ("http://127.0.0.1:7400/", "http://127.0.0.1:7400"),
            ("n1.example:7400", "http://n1.example:7400"),
            ("0.0.0.0:7400", "http://127.0.0.1:7400"),
            ("[::]:7400", "http://[::1]:7400"),
            (" [::1]:7400 ", "http://[::1]:7400"),
        ] {
            assert_eq!(base("--node", given).expect(given), url);
        }
        for wrong in ["", "https://n1:7400", "http://", "ftp://n1", "n1/v1", "a b"] {
            let error = base("--node", wrong).expect_err(wrong).to_string();
            assert!(error.starts_with("--node: "), "{error}");
        }
    }
}
