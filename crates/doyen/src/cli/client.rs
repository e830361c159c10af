//! How the commands talk to a node: which one, with which token, and what its answers mean.
//!
//! The node is the one that `--node` names, or the one whose configuration `--config` names, else that of `DOYEN_NODE`,
//! else the one that `doyen node` would run here: its configuration says where it serves HTTP. So it is with the token:
//! the file that `--token-file` names, the one in the state folder of `--config`, that of `DOYEN_TOKEN_FILE`, the one in
//! the state folder of the node that belongs here.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use doyen::api::{Accepted, MemberRef, Problem, SECRET_FILE};
use doyen::config::{Configuration, Env, Settings};
use doyen::node::status::Status;
use doyen_core::members::NodeId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::Agent;
use ureq::http::{Response, StatusCode};

/// A node answers within this time or does not at all.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// It is connected to within this time.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);

/// A node that is watched says something at least every 15 s; after so long it is gone.
const SILENT_FOR: Duration = Duration::from_secs(45);

/// No answer is longer, in bytes.
const LONGEST_ANSWER: u64 = 16 * 1024 * 1024;

/// The node cannot be reached, or what is there is none.
#[derive(Debug, thiserror::Error)]
#[error("cannot reach {url}: {why}")]
pub(crate) struct CannotReach {
    url: String,
    why: String,
}

/// Which node.
#[derive(Args, Clone, Debug)]
pub(crate) struct NodeFlags {
    /// The node to ask, for example 127.0.0.1:7400; else `DOYEN_NODE`, else the one of the configuration
    #[arg(long, value_name = "URL", help_heading = "Node")]
    node: Option<String>,

    /// The node's configuration file [default: ./doyen.toml]
    #[arg(long, short, value_name = "FILE", help_heading = "Node")]
    config: Option<PathBuf>,
}

/// With which token.
#[derive(Args, Clone, Debug)]
pub(crate) struct TokenFlags {
    /// The file with the token; else `DOYEN_TOKEN_FILE`, else the one in the node's state folder
    #[arg(long, value_name = "FILE", help_heading = "Node")]
    token_file: Option<PathBuf>,
}

/// What became of an order.
#[derive(Debug)]
pub(crate) enum Obeyed {
    Yes(Accepted),
    /// The node said no, and why.
    No(Problem),
}

/// A node to talk to.
#[derive(Debug)]
pub(crate) struct Client {
    url: String,
    agent: Agent,
}

impl NodeFlags {
    pub(crate) fn connect(&self) -> Result<Client> {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_connect(Some(CONNECT_WITHIN))
            .timeout_global(Some(ANSWER_WITHIN))
            .user_agent(concat!("doyen/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Client { url: self.url()?, agent: config.new_agent() })
    }

    fn url(&self) -> Result<String> {
        if let Some(node) = &self.node {
            return base("--node", node);
        }
        if let Some(node) = self.unless_configured("DOYEN_NODE") {
            return base("DOYEN_NODE", &node.to_string_lossy());
        }
        let settings = self.settings("which node? Give --node URL or DOYEN_NODE")?;
        let http = settings.http.context("http: the node of this configuration serves no HTTP")?;
        base("http", &http.to_string())
    }

    /// A variable; but `--config` goes before it.
    fn unless_configured(&self, variable: &str) -> Option<OsString> {
        from_env(variable).filter(|_| self.config.is_none())
    }

    /// What the node that belongs here is configured with. `wanted` is what is to be given instead of a configuration.
    fn settings(&self, wanted: &str) -> Result<Settings> {
        let env = Env::of_process();
        match Configuration::load(self.config.as_deref(), &[], &env) {
            Ok(configuration) => Ok(configuration.settings),
            Err(error) if self.config.is_some() || from_env("DOYEN_CONFIG").is_some() => {
                Err(error.into())
            }
            Err(error) if Path::new("doyen.toml").exists() => Err(error.into()),
            Err(_) => bail!("{wanted}, or --config FILE, or go to the folder of its doyen.toml"),
        }
    }
}

/// A length of time, as operators write it: `2h`, `90s`, `1h 30m`.
pub(crate) fn parse_time(text: &str) -> Result<Duration, &'static str> {
    humantime::parse_duration(text).map_err(|_| "write for example 90s, 5m or 2h")
}

impl TokenFlags {
    pub(crate) fn read(&self, node: &NodeFlags) -> Result<String> {
        let named = || node.unless_configured("DOYEN_TOKEN_FILE").map(PathBuf::from);
        let file = match self.token_file.clone().or_else(named) {
            Some(file) => file,
            None => {
                let settings =
                    node.settings("an order needs the node's token: give --token-file")?;
                settings.state_dir.join(SECRET_FILE)
            }
        };
        let text = fs::read_to_string(&file);
        let text = text.with_context(|| format!("the token {} cannot be read", file.display()))?;
        Ok(text.trim().to_owned())
    }
}

/// A variable that is set to something.
fn from_env(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// The beginning of every address at a node that is given as `http://host:port` or `host:port`.
fn base(source: &str, given: &str) -> Result<String> {
    let given = given.trim();
    if given.starts_with("https://") {
        bail!("{source}: nodes speak http, not https; use a tunnel where that is not enough");
    }
    let host = given.strip_prefix("http://").unwrap_or(given).trim_end_matches('/');
    let wrong = host.is_empty() || host.contains(['/', '?', '#', ' ', '@']);
    if wrong {
        bail!("{source}: `{given}` is no node; write for example http://127.0.0.1:7400");
    }
    // An address to listen on may be "everywhere", which is no place to go to.
    let host = match host.parse::<SocketAddr>() {
        Ok(mut address) if address.ip().is_unspecified() => {
            let loopback = match address {
                SocketAddr::V4(_) => [127, 0, 0, 1].into(),
                SocketAddr::V6(_) => [0, 0, 0, 0, 0, 0, 0, 1].into(),
            };
            address.set_ip(loopback);
            address.to_string()
        }
        _ => host.to_owned(),
    };
    Ok(format!("http://{host}"))
}

type Answered = Response<ureq::Body>;

/// Changes as they happen, line by line.
pub(crate) type Stream = BufReader<ureq::BodyReader<'static>>;

impl Client {
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn status(&self) -> Result<Status> {
        self.get("/v1/status")
    }

    /// The status, if it comes within this time.
    pub(crate) fn status_within(&self, limit: Duration) -> Result<Status> {
        self.get_within("/v1/status", limit.min(ANSWER_WITHIN))
    }

    /// Asks for something that every node has.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.get_within(path, ANSWER_WITHIN)
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
        // It has no end, but what it says comes bit by bit.
        let request = request.timeout_global(None).timeout_recv_response(Some(ANSWER_WITHIN));
        let mut request = request.timeout_per_read(Some(SILENT_FOR)).build();
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

    /// Gives an order, for this term only if one is given.
    pub(crate) fn order(
        &self,
        path: &str,
        body: &impl Serialize,
        token: &str,
        term: Option<u64>,
    ) -> Result<Obeyed> {
        let mut request = self
            .agent
            .post(format!("{}{path}", self.url))
            .header("authorization", format!("Bearer {token}"))
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
            _ => return self.problem(answer).map(Obeyed::No),
        }
        let text = self.text(answer)?;
        let accepted = serde_json::from_str(&text);
        accepted.map(Obeyed::Yes).map_err(|error| self.not_a_node(&error.to_string()))
    }

    fn problem(&self, answer: Answered) -> Result<Problem> {
        let status = answer.status();
        let text = self.text(answer)?;
        serde_json::from_str(&text)
            .map_err(|_| self.not_a_node(&format!("it answers {status} and does not say why")))
    }

    fn text(&self, mut answer: Answered) -> Result<String> {
        let body = answer.body_mut().with_config().limit(LONGEST_ANSWER);
        body.read_to_string().map_err(|error| self.unreachable(&error))
    }

    fn unreachable(&self, error: &ureq::Error) -> anyhow::Error {
        let why = match error {
            ureq::Error::Timeout(_) => "it does not answer in time".to_owned(),
            ureq::Error::HostNotFound => "there is no such host".to_owned(),
            ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                "nobody listens there; is the node running?".to_owned()
            }
            error => error.to_string(),
        };
        CannotReach { url: self.url.clone(), why }.into()
    }

    fn not_a_node(&self, why: &str) -> anyhow::Error {
        CannotReach { url: self.url.clone(), why: format!("that is no doyen node: {why}") }.into()
    }
}

/// Who they are that the user calls so, by name or by id; each once. All that are unknown are told at once.
pub(crate) fn members(status: &Status, flag: &str, called: &[String]) -> Result<Vec<NodeId>> {
    let (mut found, mut unknown) = (Vec::new(), Vec::new());
    for name in called.iter().map(|name| name.trim()) {
        match MemberRef::Name(name.to_owned()).find(status) {
            Some(id) if found.contains(&id) => {}
            Some(id) => found.push(id),
            None => unknown.push(format!("`{name}`")),
        }
    }
    let is_no_member = match unknown.as_slice() {
        [] => return Ok(found),
        [_] => "is not a member",
        _ => "are not members",
    };
    let names: Vec<&str> = status.members.iter().map(|member| &*member.name).collect();
    bail!("{flag}: {} {is_no_member}; there are {}", unknown.join(", "), names.join(", "))
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
