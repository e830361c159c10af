//! From what is written to what is meant: every value is looked for layer by layer, read and checked.
//!
//! Whatever is wrong is noted and the next value is looked at, so that all problems are reported at once. A value that
//! could not be read has its default meanwhile; nobody sees the result unless there were no problems.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use doyen_core::members::NodeId;
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;

use super::file::{Given, Who, Written};
use super::layer::{Layer, Stack};
use super::members::{self, Listed};
use super::report::{DEFAULT, Report};
use super::timing;
use super::{Attribute, ConfigError, Configuration, Member, Settings, Source};
use crate::node::store::LONGEST_CLUSTER;

/// No name of a member is longer.
pub(super) const LONGEST_NAME: usize = 64;

/// How often something is measured, if nothing else is said.
const EVERY: Span = Span::from_millis(5_000);
/// No more often than this: measuring is not free.
const SHORTEST_EVERY: Span = Span::from_millis(100);
/// How long a clean stop may take, if nothing else is said.
const GRACE: Span = Span::from_millis(10_000);

/// Makes settings of all layers.
pub(super) fn resolve(stack: &Stack) -> Result<Configuration, ConfigError> {
    let mut resolver = Resolver {
        stack,
        problems: stack.problems.clone(),
        warnings: stack.warnings.clone(),
        report: Report::default(),
    };
    if stack.is_cut {
        // What a file that cannot be read would have said is not missing.
        return Err(ConfigError { problems: resolver.problems });
    }
    if stack.layers.iter().all(|layer| layer.file().is_none()) {
        resolver.no_file();
        return Err(ConfigError { problems: resolver.problems });
    }
    let settings = resolver.settings();
    let Resolver { problems, warnings, report, .. } = resolver;
    match settings {
        Some(settings) if problems.is_empty() => Ok(Configuration { settings, warnings, report }),
        _ => Err(ConfigError { problems }),
    }
}

/// Looks values up and keeps the books.
pub(super) struct Resolver<'a> {
    stack: &'a Stack,
    pub(super) problems: Vec<String>,
    pub(super) warnings: Vec<String>,
    pub(super) report: Report,
}

/// A value that somebody set.
pub(super) struct Found<'a, T> {
    pub(super) value: &'a T,
    layer: &'a Layer,
    position: usize,
}

impl<T> Found<'_, T> {
    /// Where it came from.
    pub(super) fn source(&self) -> String {
        self.layer.name_at(self.position)
    }

    /// What an error about it begins with.
    pub(super) fn place(&self, key: &str) -> String {
        self.layer.place(self.position, key)
    }
}

impl<'a> Resolver<'a> {
    fn no_file(&mut self) {
        let tried = self.stack.missing.join(", ");
        self.problems.push(format!(
            "there is no configuration: none of {tried} exists; `doyen init` writes one, --config names another"
        ));
    }

    /// Whether `key` stands somewhere and could not be read, which has been said.
    pub(super) fn is_unread(&self, key: &str) -> bool {
        self.stack.layers.iter().any(|layer| layer.unread.contains(key))
    }

    fn settings(&mut self) -> Option<Settings> {
        let cluster = self.cluster();
        let listed = members::list(self);
        let me = self.me(&listed);
        let own = listed.members.iter().find(|member| Some(member.id) == me);
        let listen = self.listen(own);
        self.check_reach(listen, me, &listed);
        let http = self.http(listen);
        let key_file = self.key_file(listen);
        let state_dir = self.state_dir();
        let algorithm = self.parsed("algorithm", |it| &it.algorithm, Algorithm::Quorum);
        let grace = self.span("grace", |it| &it.grace, GRACE, DEFAULT);
        let trace = self.path("trace", |it| &it.trace, "nothing is recorded");
        self.check_algorithm(algorithm, &listed);
        let core = timing::core(self, cluster.as_deref(), algorithm, &listed);
        let attribute = self.attribute(algorithm);
        listed.report(&mut self.report);
        Some(Settings {
            cluster: cluster?,
            me: me?,
            listen: listen?,
            http,
            key_file,
            state_dir: state_dir?,
            algorithm,
            members: listed.members,
            attribute,
            core: core?,
            trace,
            grace: Duration::from_nanos(grace.as_nanos()),
        })
    }

    fn cluster(&mut self) -> Option<String> {
        let Some(found) = self.find(|it| &it.cluster) else {
            self.missing("cluster", "give the cluster a name, the same at every member");
            return None;
        };
        self.report.text("cluster", found.value, &found.source());
        match check_name(found.value, LONGEST_CLUSTER) {
            Ok(()) => Some(found.value.clone()),
            Err(problem) => self.wrong(&found, "cluster", &problem),
        }
    }

    fn me(&mut self, listed: &Listed) -> Option<NodeId> {
        let Some(found) = self.find(|it| &it.id) else {
            self.missing(
                "id",
                "say which member this is, for example id = 1, --id 1 or DOYEN_ID=1",
            );
            return None;
        };
        let is_me = |member: &&Member| match found.value {
            Who::Number(id) => member.id.0 == *id,
            Who::Name(name) => member.name == *name,
        };
        let Some(me) = listed.members.iter().find(is_me) else {
            if !listed.is_whole {
                return None; // it may be one of those that are wrong
            }
            let name = match found.value {
                Who::Number(id) => id.to_string(),
                Who::Name(name) => name.clone(),
            };
            let all =
                listed.members.iter().map(|member| format!("{} ({})", member.name, member.id));
            let all = all.collect::<Vec<_>>().join(", ");
            return self.wrong(&found, "id", &format!("`{name}` is no member; there are {all}"));
        };
        self.report.value("id", me.id, &found.source());
        Some(me.id)
    }

    fn listen(&mut self, own: Option<&Member>) -> Option<SocketAddr> {
        let found = self.find(|it| &it.listen);
        if let Some(found) = found {
            let listen = match found.value.parse::<SocketAddr>() {
                Ok(address) if address.port() != 0 => address,
                _ => {
                    let problem = not_an_address(found.value, "0.0.0.0:7400 or [::]:7400");
                    return self.wrong(&found, "listen", &problem);
                }
            };
            self.report.text("listen", listen, &found.source());
            return Some(listen);
        }
        if self.is_unread("listen") {
            return None;
        }
        // Somebody who does not know which member it is has been told so.
        let own = own?;
        let Ok(listen) = own.address.parse::<SocketAddr>() else {
            let remedy = format!(
                "its own address `{}` is a name; say on which address it listens, for example 0.0.0.0:7400",
                own.address
            );
            self.missing("listen", &remedy);
            return None;
        };
        self.report.text("listen", listen, "its own address");
        Some(listen)
    }

    /// Whether the socket that listens can reach everybody: it sends as well.
    fn check_reach(&mut self, listen: Option<SocketAddr>, me: Option<NodeId>, listed: &Listed) {
        let (Some(listen), Some(me)) = (listen, me) else { return };
        let found = self.find(|it| &it.listen).map(|found| found.place("listen"));
        let place = found.unwrap_or_else(|| format!("{}: listen", listed.address_at(me)));
        for member in &listed.members {
            let Ok(address) = member.address.parse::<SocketAddr>() else { continue };
            let ip = address.ip();
            let problem = if listen.ip().is_loopback() && !ip.is_loopback() {
                "listens on this machine only"
            } else if !ip.is_ipv4() && listen.is_ipv4() {
                "listens on an IPv4 address"
            } else if ip.is_ipv4() && listen.is_ipv6() && !listen.ip().is_unspecified() {
                "listens on an IPv6 address"
            } else {
                continue;
            };
            let name = &member.name;
            self.problems.push(format!(
                "{place}: {listen} cannot reach {name} at {address}: it {problem}; use addresses of one kind"
            ));
        }
    }

    fn http(&mut self, listen: Option<SocketAddr>) -> Option<SocketAddr> {
        let open = self.find(|it| &it.http_open);
        let allowed =
            open.as_ref().is_some_and(|found| *found.value) || self.is_unread("http_open");
        let http = match self.find(|it| &it.http) {
            Some(found) if found.value == "off" => {
                self.report.text("http", "off", &found.source());
                None
            }
            Some(found) => match found.value.parse::<SocketAddr>() {
                Ok(address) if address.port() != 0 => {
                    if !address.ip().is_loopback() && !allowed {
                        let problem = format!(
                            "{address} can be reached from other machines, which could then see who leads and who \
                             is up; if they may, set http_open = true (orders need the token in any case)"
                        );
                        return self.wrong(&found, "http", &problem);
                    }
                    self.report.text("http", address, &found.source());
                    Some(address)
                }
                _ => {
                    let problem = not_an_address(found.value, "127.0.0.1:7400, or off");
                    return self.wrong(&found, "http", &problem);
                }
            },
            None => {
                let address = SocketAddr::from(([127, 0, 0, 1], listen?.port()));
                self.report.text("http", address, "the port of listen");
                Some(address)
            }
        };
        let source = open.map_or_else(|| DEFAULT.to_owned(), |found| found.source());
        self.report.value("http_open", allowed, &source);
        http
    }

    fn key_file(&mut self, listen: Option<SocketAddr>) -> Option<PathBuf> {
        let file = self.path("key_file", |it| &it.key_file, "this machine only");
        if let (None, Some(listen)) = (&file, listen) {
            if listen.ip().is_loopback() {
                self.warnings.push(
                    "key_file: without a key anybody on this machine can pose as a member"
                        .to_owned(),
                );
            } else {
                let remedy = format!(
                    "{listen} can be reached from other machines; `doyen keygen` makes a key; without one use a \
                     loopback address such as 127.0.0.1:{}",
                    listen.port()
                );
                self.missing("key_file", &remedy);
            }
        }
        file
    }

    fn state_dir(&mut self) -> Option<PathBuf> {
        let found = self.path("state_dir", |it| &it.state_dir, "required");
        if found.is_none() {
            self.missing(
                "state_dir",
                "say where this member keeps its state, for example \"state\"",
            );
        }
        found
    }

    fn check_algorithm(&mut self, algorithm: Algorithm, listed: &Listed) {
        let members = &listed.members;
        let candidates = members.iter().filter(|member| !member.witness).count();
        if algorithm == Algorithm::Quorum {
            let warning = match (members.len(), candidates) {
                (1, _) => "member: there is only one; nobody takes over from it",
                (2, _) => {
                    "member: a majority of two is two, so there is no failover; add a third, be it a witness"
                }
                (_, 1) => "member: only one may lead; nobody takes over from it",
                _ => return,
            };
            return self.warnings.push(warning.to_owned());
        }
        self.warnings.push(format!(
            "algorithm: {algorithm} elects a leader on each side of a partition and gives no leases; only quorum \
             survives one"
        ));
        for Member { id, name, .. } in members.iter().filter(|member| member.witness) {
            self.problems.push(format!(
                "{}: member: {name} is a witness, and {algorithm} has none; leave it out, or use quorum",
                listed.witness_at(*id)
            ));
        }
    }

    fn attribute(&mut self, algorithm: Algorithm) -> Attribute {
        self.report.table("[attribute]", "");
        let found = self.find(|it| &it.attribute.source);
        let name = found.as_ref().map_or("priority", |found| found.value.as_str());
        let from = found.as_ref().map_or_else(|| DEFAULT.to_owned(), Found::source);
        self.report.text("source", name, &from);
        let command = self.command(name == "command");
        let every = self.span("attribute.every", |it| &it.attribute.every, EVERY, DEFAULT);
        if every < SHORTEST_EVERY
            && let Some(found) = self.find(|it| &it.attribute.every)
        {
            let problem =
                format!("{every} is too often; measure every {SHORTEST_EVERY} or less often");
            self.wrong::<_, ()>(&found, "attribute.every", &problem);
        }
        let step = self.find(|it| &it.attribute.step);
        let (step, from) = step.map_or((1, DEFAULT.to_owned()), |it| (*it.value, it.source()));
        self.report.value("step", step, &from);
        let source = match name {
            "priority" => return Attribute::Priority,
            "free-memory" => Source::FreeMemory,
            "load" => Source::Load,
            "command" => Source::Command(command),
            _ => {
                let problem =
                    format!("unknown source `{name}`; use priority, free-memory, load or command");
                if let Some(found) = found {
                    self.wrong::<_, ()>(&found, "attribute.source", &problem);
                }
                return Attribute::Priority;
            }
        };
        if let (false, Some(found)) = (algorithm.has_leases(), found) {
            let problem = format!(
                "with {algorithm} attributes cannot change while it runs; use `priority`, or quorum"
            );
            self.wrong::<_, ()>(&found, "attribute.source", &problem);
        }
        Attribute::Measured { source, every: Duration::from_nanos(every.as_nanos()), step }
    }

    /// The command that measures, which stands there if and only if one is wanted.
    fn command(&mut self, wanted: bool) -> Vec<String> {
        let Some(found) = self.find(|it| &it.attribute.command) else {
            self.report.unset("command", "no command is run");
            if wanted {
                let remedy = "name the program and its arguments, for example [\"/usr/bin/score\", \"--brief\"]";
                self.missing("attribute.command", remedy);
            }
            return Vec::new();
        };
        let shown = toml::Value::from(found.value.clone());
        self.report.value("command", shown, &found.source());
        if self.is_unread("attribute.source") {
            // It may be the one that is wanted.
        } else if !wanted {
            let problem = "stands beside another source; set source = \"command\" to have it run";
            self.wrong::<_, ()>(&found, "attribute.command", problem);
        } else if found.value.is_empty() {
            let problem = "is empty; name the program and its arguments";
            self.wrong::<_, ()>(&found, "attribute.command", problem);
        }
        found.value.clone()
    }

    /// The first layer's that sets it.
    pub(super) fn find<T>(
        &self,
        get: impl Fn(&'a Written) -> &'a Given<T>,
    ) -> Option<Found<'a, T>> {
        self.stack.layers.iter().find_map(|layer| {
            let given = get(&layer.written).as_ref()?;
            Some(Found { value: given.get_ref(), layer, position: given.span().start })
        })
    }

    /// The first layer that lists members.
    pub(super) fn layer_with_members(&self) -> Option<&'a Layer> {
        self.stack.layers.iter().find(|layer| !layer.written.member.is_empty())
    }

    /// Notes what is wrong with a value.
    pub(super) fn wrong<T, R>(
        &mut self,
        found: &Found<'_, T>,
        key: &str,
        problem: &str,
    ) -> Option<R> {
        self.problems.push(format!("{}: {problem}", found.place(key)));
        None
    }

    /// Notes that nobody set a value that must be set. One that stands there and cannot be read is not missing.
    pub(super) fn missing(&mut self, key: &str, remedy: &str) {
        if self.is_unread(key) {
            return;
        }
        let file = self.stack.layers.iter().find_map(Layer::file);
        let file = file.map_or(String::new(), |file| format!("{file}: "));
        self.problems.push(format!("{file}{key}: is missing; {remedy}"));
    }

    /// A length of time; in the report under the last part of its key.
    pub(super) fn span(
        &mut self,
        key: &'static str,
        get: impl Fn(&'a Written) -> &'a Given<String>,
        usual: Span,
        usual_source: &str,
    ) -> Span {
        self.read(key, get, str::parse::<Span>, (usual, usual_source))
    }

    /// A word that names one of several things.
    pub(super) fn parsed<T>(
        &mut self,
        key: &'static str,
        get: impl Fn(&'a Written) -> &'a Given<String>,
        usual: T,
    ) -> T
    where
        T: FromStr<Err = String> + fmt::Display,
    {
        self.read(key, get, str::parse, (usual, DEFAULT))
    }

    /// A text that means something, or what it means if it is not given.
    pub(super) fn read<T: fmt::Display>(
        &mut self,
        key: &'static str,
        get: impl Fn(&'a Written) -> &'a Given<String>,
        parse: impl Fn(&str) -> Result<T, String>,
        (usual, usual_source): (T, &str),
    ) -> T {
        let name = key.rsplit_once('.').map_or(key, |(_, name)| name);
        let Some(found) = self.find(get) else {
            self.report.text(name, &usual, usual_source);
            return usual;
        };
        match parse(found.value) {
            Ok(value) => {
                self.report.text(name, &value, &found.source());
                value
            }
            Err(problem) => {
                self.wrong::<_, ()>(&found, key, &problem);
                usual
            }
        }
    }

    /// A path, relative to where it is written.
    fn path(
        &mut self,
        key: &'static str,
        get: impl Fn(&'a Written) -> &'a Given<String>,
        if_unset: &'static str,
    ) -> Option<PathBuf> {
        let Some(found) = self.find(get) else {
            self.report.unset(key, if_unset);
            return None;
        };
        if found.value.is_empty() {
            return self.wrong(&found, key, "is empty; write a path, or leave it out");
        }
        let path = found.layer.base.join(found.value);
        self.report.text(key, path.display(), &found.source());
        Some(path)
    }
}

fn not_an_address(text: &str, example: &str) -> String {
    format!("`{text}` is not an IP address with a port; write for example {example}")
}

/// Whether `name` will do for a cluster or a member: it appears in paths, logs and metrics.
pub(super) fn check_name(name: &str, longest: usize) -> Result<(), String> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() {
        return Err("is empty; write a name such as orders".to_owned());
    }
    if name.len() > longest {
        return Err(format!("`{name}` is too long; use at most {longest} letters"));
    }
    if let Some(odd) = name.chars().find(|&c| !is_fine(c)) {
        return Err(format!("`{name}` contains `{odd}`; use letters, digits, `-`, `_` and `.`"));
    }
    if name.starts_with(['.', '-']) {
        return Err(format!("`{name}` begins with a sign; begin with a letter or a digit"));
    }
    Ok(())
}
