//! The HTTP client of the commands: which node, how admin commands reach it, and what its answers mean.
//!
//! The node is given by `--node`, by the configuration that `--config` names, by `DOYEN_NODE`, or by the configuration that
//! `doyen node` would use here. Admin commands go to a configured node over its admin socket, to any other over HTTP, with
//! the admin secret in the file of `--secret-file` or `DOYEN_SECRET_FILE`. The secret in a state folder is shown to the
//! node of that folder only. What only reads uses the admin socket of a configured node too, where this user may open it,
//! and otherwise HTTP; what another member is to answer needs what admin commands need.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::slice;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use doyen::api::{self, Accepted, MemberRef, Problem};
use doyen::clock::parse_span;
use doyen::config::{Configuration, Env, Settings};
use doyen::http_client::Authorities;
use doyen::node::status::Status;
use doyen_core::members::NodeId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::Agent;
use ureq::http::{Response, StatusCode};

use super::admin_socket::LocalAdmin;

/// An admin command may wait for others.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// What another member is to say: a node waits 3 s for it, and passes it on in parts.
const FORWARDED_TIMEOUT: Duration = Duration::from_secs(6);

/// What a node knows, it says at once.
const READ_TIMEOUT: Duration = Duration::from_secs(3);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A watched node sends something at least every 15 s.
pub(crate) const STREAM_TIMEOUT: Duration = Duration::from_secs(45);

/// The error for a node that accepts a connection and does not answer.
pub(crate) const STOPPED: &str =
    "connected, but no answer in time; its process is stopped or overloaded";

const WHICH: &str = "which node? Give --node URL or DOYEN_NODE";

/// How many members are asked at once: fewer than the admin socket has connections.
const AT_ONCE: usize = 8;

/// The longest answer that is read, in bytes.
pub(crate) const LONGEST_ANSWER: u64 = 16 * 1024 * 1024;

/// An address or a member does not answer, or not as a node does.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct CannotReach(pub(crate) String);

impl CannotReach {
    /// The exit code.
    pub(crate) const EXIT: u8 = 3;

    pub(crate) fn new(place: &str, why: impl std::fmt::Display) -> Self {
        Self(format!("cannot reach {place}: {why}"))
    }

    /// The state of another member, as a node reported it.
    pub(crate) fn told(text: String) -> Self {
        Self(text)
    }
}

#[derive(Args, Clone, Debug)]
pub(crate) struct NodeFlags {
    /// The node, for example 127.0.0.1:7400 [default: `DOYEN_NODE`, or the configured node]
    #[arg(long, value_name = "URL", help_heading = "Node")]
    node: Option<String>,

    /// The node's configuration file [default: ./doyen.toml]
    #[arg(long, short, value_name = "FILE", help_heading = "Node")]
    config: Option<PathBuf>,

    #[command(flatten)]
    trust: TrustFlags,
}

/// The certificate authorities to trust for `https://`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TrustFlags {
    /// Certificates of the authorities to trust behind https, in PEM [default: `DOYEN_CA_FILE`, or those of this
    /// machine]
    #[arg(long, value_name = "FILE", help_heading = "Node")]
    ca_file: Option<PathBuf>,
}

impl TrustFlags {
    pub(crate) fn authorities(&self) -> Authorities {
        let file = self.ca_file.clone().or_else(|| from_env("DOYEN_CA_FILE").map(PathBuf::from));
        file.map_or(Authorities::System, Authorities::File)
    }
}

/// The nodes of a cluster, for what only its leader answers.
#[derive(Args, Clone, Debug)]
pub(crate) struct NodesFlags {
    /// The nodes that may lead, for example n1:7400,n2:7400 [default: `DOYEN_NODE`, or the configured node]
    #[arg(long, value_name = "URL", value_delimiter = ',', help_heading = "Node")]
    node: Vec<String>,

    /// The node's configuration file [default: ./doyen.toml]
    #[arg(long, short, value_name = "FILE", help_heading = "Node")]
    config: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) trust: TrustFlags,
}

impl NodesFlags {
    pub(crate) fn urls(&self) -> Result<Vec<String>> {
        if !self.node.is_empty() {
            return self.node.iter().map(|node| base("--node", node)).collect();
        }
        let (config, trust) = (self.config.clone(), self.trust.clone());
        let one = NodeFlags { node: None, config, trust };
        match one.unless_configured("DOYEN_NODE") {
            Some(nodes) => {
                nodes.to_string_lossy().split(',').map(|node| base("DOYEN_NODE", node)).collect()
            }
            None => Ok(vec![one.url()?]),
        }
    }
}

/// A node, and the rights of an operator.
#[derive(Args, Clone, Debug)]
pub(crate) struct OperatorFlags {
    #[command(flatten)]
    node: NodeFlags,

    /// File with the admin secret, for a node that accepts admin commands over HTTP [default:
    /// `DOYEN_SECRET_FILE`, or none: the configured node is commanded over its admin socket]
    #[arg(long, value_name = "FILE", help_heading = "Node")]
    secret_file: Option<PathBuf>,
}

#[derive(Debug)]
pub(crate) enum CommandResult {
    Accepted(Accepted),
    Rejected(Problem),
}

/// What a node answered.
#[derive(Debug)]
pub(crate) struct Reply {
    /// Where it was asked.
    place: String,
    pub(crate) status: u16,
    pub(crate) text: String,
}

/// The way of admin commands to a node.
#[derive(Debug)]
pub(crate) enum AdminClient {
    Socket(LocalAdmin),
    Http {
        client: Client,
        secret: Option<String>,
    },
    /// The socket, which is free however busy HTTP is; HTTP where it cannot be opened. Only for reading.
    Either {
        socket: LocalAdmin,
        client: Client,
    },
}

#[derive(Debug)]
pub(crate) struct Client {
    url: String,
    agent: Agent,
    timeout: Duration,
    authorities: Authorities,
}

impl NodeFlags {
    fn client(&self, url: String, timeout: Duration) -> Result<Client> {
        Client::new(url, timeout, self.trust.authorities())
    }

    /// The way to what the node knows, and no more.
    pub(crate) fn connect_reader(&self) -> Result<AdminClient> {
        if let Some(url) = self.given_url()? {
            let client = self.client(url, READ_TIMEOUT)?;
            return Ok(AdminClient::Http { client, secret: None });
        }
        let Settings { http, state_dir, .. } = self.settings(WHICH)?;
        let socket = LocalAdmin::of(&state_dir, READ_TIMEOUT);
        Ok(match http {
            Some(http) => {
                AdminClient::Either { socket, client: self.client(url_of(http), READ_TIMEOUT)? }
            }
            None => AdminClient::Socket(socket),
        })
    }

    fn url(&self) -> Result<String> {
        if let Some(url) = self.given_url()? {
            return Ok(url);
        }
        let http = self.settings(WHICH)?.http;
        http.map(url_of).context("http: the configured node serves no HTTP")
    }

    /// The node that is named, and not configured.
    fn given_url(&self) -> Result<Option<String>> {
        if let Some(node) = &self.node {
            return base("--node", node).map(Some);
        }
        let node = self.unless_configured("DOYEN_NODE");
        node.map(|node| base("DOYEN_NODE", &node.to_string_lossy())).transpose()
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

impl OperatorFlags {
    /// The way to what the node knows, or, with the rights of an operator, to what another member does.
    pub(crate) fn connect_to(&self, member: Option<&String>) -> Result<AdminClient> {
        if member.is_some() { self.connect_admin() } else { self.node.connect_reader() }
    }

    /// The way of admin commands.
    pub(crate) fn connect_admin(&self) -> Result<AdminClient> {
        let Self { node, secret_file } = self;
        let http = |url, file: &Path| {
            let client = node.client(url, ANSWER_TIMEOUT)?;
            Ok(AdminClient::Http { client, secret: Some(read_secret(file)?) })
        };
        let named = || node.unless_configured("DOYEN_SECRET_FILE").map(PathBuf::from);
        if let Some(file) = secret_file.clone().or_else(named) {
            return http(node.url()?, &file);
        }
        let given = node.given_url()?;
        let settings = match given {
            Some(_) => node.settings("an admin command needs the admin secret: give --secret-file"),
            None => node.settings(WHICH),
        }?;
        let own = settings.http.map(url_of);
        if let Some(given) = given.filter(|given| Some(given) != own.as_ref()) {
            bail!(
                "{given} is not the node that is configured here, and is not shown its admin secret: give --secret-file"
            );
        }
        // An earlier release had no socket.
        let (state_dir, secret) = (&settings.state_dir, settings.state_dir.join(api::SECRET_FILE));
        match own.filter(|_| !state_dir.join(api::SOCKET_FILE).exists() && secret.exists()) {
            Some(url) => http(url, &secret),
            None => Ok(AdminClient::Socket(LocalAdmin::of(state_dir, ANSWER_TIMEOUT))),
        }
    }
}

/// Reads `2h`, `90s`, `1h 30m`.
pub(crate) fn parse_time(text: &str) -> Result<Duration, &'static str> {
    let span = parse_span(text).map_err(|_| "write for example 90s, 5m or 2h")?;
    Ok(Duration::from_nanos(span.as_nanos()))
}

fn read_secret(file: &Path) -> Result<String> {
    let text = fs::read_to_string(file)
        .with_context(|| format!("cannot read the admin secret {}", file.display()))?;
    Ok(text.trim().to_owned())
}

/// A variable that is set and not empty.
fn from_env(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// The base URL of a node that is given as `http://host:port`, `https://host:port` or `host:port`.
fn base(source: &str, given: &str) -> Result<String> {
    let given = given.trim();
    let (is_encrypted, host) = match given.strip_prefix("https://") {
        Some(host) => (true, host),
        None => (false, given.strip_prefix("http://").unwrap_or(given)),
    };
    let host = host.trim_end_matches('/');
    if host.is_empty() || host.contains(['/', '?', '#', ' ', '@']) {
        bail!("{source}: `{given}` is not a node; write for example http://127.0.0.1:7400");
    }
    Ok(match is_encrypted {
        true => format!("https://{host}"),
        false => host.parse().map_or_else(|_| format!("http://{host}"), url_of),
    })
}

/// The base URL of a node that serves HTTP at this address. One that listens on all addresses is reached on loopback.
fn url_of(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(it) if it.ip().is_unspecified() => format!("http://127.0.0.1:{}", it.port()),
        SocketAddr::V6(it) if it.ip().is_unspecified() => format!("http://[::1]:{}", it.port()),
        it => format!("http://{it}"),
    }
}

impl Reply {
    /// Reads an answer with its head.
    pub(crate) fn parse(place: String, answer: &str) -> Result<Self> {
        let (head, text) = answer.split_once("\r\n\r\n").context("it has no head")?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Ok(Self { place, status: status.context("it has no status")?, text: text.to_owned() })
    }

    /// Why the node does not do what it was asked.
    pub(crate) fn problem(&self) -> Result<Problem> {
        serde_json::from_str(&self.text)
            .map_err(|_| self.not_a_node(&format!("it answers {} without a reason", self.status)))
    }

    /// As the answer to an admin command.
    pub(crate) fn into_result(self) -> Result<CommandResult> {
        match self.status {
            202 => {
                let accepted = serde_json::from_str(&self.text);
                let accepted = accepted.map_err(|error| self.not_a_node(&error.to_string()));
                accepted.map(CommandResult::Accepted)
            }
            503 | 504 => Err(self.cannot_reach()),
            _ => match self.problem()? {
                problem if is_out_of_reach(&problem) => Err(CannotReach(problem.detail).into()),
                problem => Ok(CommandResult::Rejected(problem)),
            },
        }
    }

    /// As the answer to a question.
    fn into_value<T: DeserializeOwned>(self, path: &str) -> Result<T> {
        match self.status {
            200 => serde_json::from_str(&self.text).map_err(|error| {
                self.not_a_node(&format!("its answer to {path} cannot be read ({error})"))
            }),
            // It says what the operator has to correct.
            400..=499 => match self.problem()? {
                problem if is_out_of_reach(&problem) => Err(CannotReach(problem.detail).into()),
                problem => bail!("{}", problem.detail),
            },
            _ => Err(self.cannot_reach()),
        }
    }

    /// A node that cannot answer says why.
    fn cannot_reach(&self) -> anyhow::Error {
        match self.problem() {
            Ok(problem) if is_out_of_reach(&problem) => CannotReach(problem.detail).into(),
            Ok(problem) => CannotReach::new(&self.place, problem.detail).into(),
            Err(error) => error,
        }
    }

    fn not_a_node(&self, why: &str) -> anyhow::Error {
        CannotReach::new(&self.place, format!("not a doyen node: {why}")).into()
    }
}

impl AdminClient {
    /// Sends an admin command, for this term only if one is given.
    pub(crate) fn command(
        &self,
        path: &str,
        body: &impl Serialize,
        term: Option<u64>,
    ) -> Result<CommandResult> {
        match self {
            Self::Socket(socket) | Self::Either { socket, .. } => socket.command(path, body, term),
            Self::Http { client, secret } => client.command(path, body, secret.as_deref(), term),
        }
    }

    pub(crate) fn status(&self) -> Result<Status> {
        self.get("/v1/status")
    }

    pub(crate) fn status_within(&self, limit: Duration) -> Result<Status> {
        self.get_within("/v1/status", limit)
    }

    /// Asks for what the node knows, or another member if the path names one.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.get_within(path, FORWARDED_TIMEOUT)
    }

    /// The same, and waits no longer than this.
    fn get_within<T: DeserializeOwned>(&self, path: &str, limit: Duration) -> Result<T> {
        match self {
            Self::Socket(socket) => socket.get(path, limit)?.into_value(path),
            Self::Either { socket, .. } if socket.is_open() => {
                socket.get(path, limit)?.into_value(path)
            }
            Self::Either { client, .. } => client.get_within(path, limit.min(client.timeout), None),
            Self::Http { client, secret } => {
                client.get_within(path, limit.min(client.timeout), secret.as_deref())
            }
        }
    }

    /// Opens the stream of changes, after the event with this id.
    pub(crate) fn watch(&self, last: Option<&str>) -> Result<Stream> {
        match self {
            Self::Socket(socket) => socket.watch(last),
            Self::Either { socket, .. } if socket.is_open() => socket.watch(last),
            Self::Either { client, .. } | Self::Http { client, .. } => client.watch(last),
        }
    }
}

/// Asks every member something, several of them at once. Answers are in the order of the members.
pub(crate) fn in_parallel<T: Send>(
    members: &[String],
    ask: impl Fn(&String) -> T + Sync,
) -> Vec<T> {
    let ask_some = |some: &[String]| -> Vec<T> {
        thread::scope(|scope| {
            let ask = &ask;
            let asked = some.iter().map(|member| {
                let asking = thread::Builder::new().spawn_scoped(scope, move || ask(member));
                // Without a thread one after the other.
                asking.map_err(|_| ask(member))
            });
            let asked: Vec<_> = asked.collect();
            let answer = |asked: Result<ScopedJoinHandle<'_, T>, T>| match asked {
                Ok(asking) => asking.join().expect("a question does not panic"),
                Err(answer) => answer,
            };
            asked.into_iter().map(answer).collect()
        })
    };
    members.chunks(AT_ONCE).flat_map(ask_some).collect()
}

/// Whether the node answers, and the member that was to be asked does not.
fn is_out_of_reach(problem: &Problem) -> bool {
    [":unreachable", ":older-version"].iter().any(|kind| problem.kind.ends_with(kind))
}

/// The path of a question or command to another member, if one is given.
pub(crate) fn path_to(path: &str, member: Option<&String>) -> Result<String> {
    let Some(member) = member else { return Ok(path.to_owned()) };
    if member.is_empty() || !member.chars().all(|it| it.is_alphanumeric() || "-_.".contains(it)) {
        bail!("`{member}` is not a member; give a name or an id");
    }
    let separator = if path.contains('?') { '&' } else { '?' };
    Ok(format!("{path}{separator}member={member}"))
}

type Answered = Response<ureq::Body>;

/// Server-sent events, and where they come from.
pub(crate) struct Stream {
    pub(crate) place: String,
    pub(crate) events: Box<dyn BufRead>,
}

impl Client {
    pub(crate) fn new(url: String, timeout: Duration, authorities: Authorities) -> Result<Self> {
        let config = authorities.client(slice::from_ref(&url)).map_err(anyhow::Error::msg)?;
        let config = config
            .timeout_connect(Some(CONNECT_TIMEOUT.min(timeout)))
            .timeout_global(Some(timeout))
            .build();
        Ok(Self { url, agent: config.new_agent(), timeout, authorities })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn status(&self) -> Result<Status> {
        self.get("/v1/status")
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.get_within(path, self.timeout, None)
    }

    fn get_within<T: DeserializeOwned>(
        &self,
        path: &str,
        limit: Duration,
        secret: Option<&str>,
    ) -> Result<T> {
        let mut request = self.agent.get(format!("{}{path}", self.url));
        if let Some(secret) = secret {
            request = request.header("authorization", format!("Bearer {secret}"));
        }
        let request = request.config().timeout_global(Some(limit)).build();
        let answer = request.call().map_err(|error| self.unreachable(&error))?;
        self.reply(answer)?.into_value(path)
    }

    pub(crate) fn watch(&self, last: Option<&str>) -> Result<Stream> {
        let request = self.agent.get(format!("{}/v1/watch", self.url)).config();
        // The stream has no end, but each part of it arrives in time.
        let request = request.timeout_global(None).timeout_recv_response(Some(READ_TIMEOUT));
        let mut request = request.timeout_per_read(Some(STREAM_TIMEOUT)).build();
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let answer = request.call().map_err(|error| self.unreachable(&error))?;
        match answer.status() {
            StatusCode::OK => {
                let events = Box::new(BufReader::new(answer.into_body().into_reader()));
                Ok(Stream { place: self.url.clone(), events })
            }
            _ => {
                let why = self.reply(answer)?.problem()?.detail;
                Err(CannotReach::new(&self.url, why).into())
            }
        }
    }

    /// Sends an admin command, for this term only if one is given.
    fn command(
        &self,
        path: &str,
        body: &impl Serialize,
        secret: Option<&str>,
        term: Option<u64>,
    ) -> Result<CommandResult> {
        let mut request = self
            .agent
            .post(format!("{}{path}", self.url))
            .header("content-type", "application/json");
        if let Some(secret) = secret {
            request = request.header("authorization", format!("Bearer {secret}"));
        }
        if let Some(term) = term {
            request = request.header("if-match", format!("\"{term}\""));
        }
        let body = serde_json::to_string(body)?;
        let answer = request.send(body).map_err(|error| self.unreachable(&error))?;
        self.reply(answer)?.into_result()
    }

    fn reply(&self, mut answer: Answered) -> Result<Reply> {
        let body = answer.body_mut().with_config().limit(LONGEST_ANSWER);
        let text = body.read_to_string().map_err(|error| self.unreachable(&error))?;
        Ok(Reply { place: self.url.clone(), status: answer.status().as_u16(), text })
    }

    fn unreachable(&self, error: &ureq::Error) -> anyhow::Error {
        let why = match error {
            ureq::Error::Timeout(ureq::Timeout::Connect) => {
                "no connection in time; is the machine up, and does a firewall permit it?"
                    .to_owned()
            }
            ureq::Error::Timeout(_) => STOPPED.to_owned(),
            ureq::Error::HostNotFound => "unknown host".to_owned(),
            ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                refused(&self.url).to_owned()
            }
            error => self.authorities.describe(error).unwrap_or_else(|| error.to_string()),
        };
        CannotReach::new(&self.url, why).into()
    }
}

/// What is wrong at an address where nothing listens.
fn refused(url: &str) -> &'static str {
    let host = url
        .strip_prefix("http://")
        .map(|rest| rest.rsplit_once(':').map_or(rest, |(host, _)| host));
    let is_local = |host: &str| {
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    };
    match host {
        Some(host) if !is_local(host) => {
            "connection refused; is the node running, or does it serve HTTP on loopback only (`http`, `http_open`)?"
        }
        _ => "connection refused; is the node running?",
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
    fn a_node_that_another_machine_cannot_reach_may_serve_http_on_loopback_only() {
        let plain = "connection refused; is the node running?";
        for local in
            ["http://127.0.0.1:7400", "http://localhost", "http://[::1]:7400", "https://n1"]
        {
            assert_eq!(refused(local), plain, "{local}");
        }
        for other in ["http://10.0.0.1:7400", "http://n1.example", "http://[2001:db8::1]:7400"] {
            assert!(refused(other).contains("on loopback only"), "{other}");
        }
    }

    #[test]
    fn a_node_is_named_by_an_address_or_a_url() {
        for (given, url) in [
            ("http://127.0.0.1:7400/", "http://127.0.0.1:7400"),
            ("n1.example:7400", "http://n1.example:7400"),
            ("0.0.0.0:7400", "http://127.0.0.1:7400"),
            ("[::]:7400", "http://[::1]:7400"),
            (" [::1]:7400 ", "http://[::1]:7400"),
            ("https://n1.example/", "https://n1.example"),
            ("https://127.0.0.1:7443", "https://127.0.0.1:7443"),
        ] {
            assert_eq!(base("--node", given).expect(given), url);
        }
        for wrong in ["", "https://", "https://n1/v1", "http://", "ftp://n1", "n1/v1", "a b"] {
            let error = base("--node", wrong).expect_err(wrong).to_string();
            assert!(error.starts_with("--node: "), "{error}");
        }
    }
}
