//! From what is written to what is meant: every value is looked up layer by layer, and checked against the others.
//!
//! Whatever is wrong is noted and the next value is looked at, so that all problems are reported at once. A value that
//! could not be read has its default meanwhile; the result is only returned if there were no problems.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use doyen_core::members::NodeId;
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;

use super::layers::Layers;
use super::members::{self, Listed};
use super::report::{DEFAULT, Report};
use super::schema::{self, DefaultValue};
use super::timing;
use super::value::Value;
use super::{Attribute, ConfigError, Configuration, Member, Settings, Source};

/// The shortest interval between two measurements: measuring is not free.
const SHORTEST_EVERY: Span = Span::from_millis(100);

/// Makes settings of all layers.
pub(super) fn resolve(layers: &Layers) -> Result<Configuration, ConfigError> {
    let mut resolver = Resolver {
        layers,
        problems: layers.problems.clone(),
        warnings: layers.warnings.clone(),
        report: Report::default(),
    };
    // What a file that cannot be read would have set is not missing.
    let settings = match &layers.file {
        _ if layers.is_incomplete => None,
        None => {
            resolver.problems.push(format!(
                "there is no configuration: none of {} exists; `doyen init` writes one, --config names another",
                layers.missing.join(", ")
            ));
            None
        }
        Some(_) => resolver.settings(),
    };
    let Resolver { problems, warnings, report, .. } = resolver;
    match settings {
        Some(settings) if problems.is_empty() => Ok(Configuration { settings, warnings, report }),
        _ => Err(ConfigError { problems, warnings: layers.warnings.clone() }),
    }
}

/// Looks values up, and collects what there is to say about them.
pub(super) struct Resolver<'a> {
    pub(super) layers: &'a Layers,
    pub(super) problems: Vec<String>,
    pub(super) warnings: Vec<String>,
    pub(super) report: Report,
}

impl Resolver<'_> {
    /// The value of a setting, or its default.
    pub(super) fn get(&mut self, key: &'static str) -> Option<Value> {
        let (value, source) = match self.layers.find(key) {
            Some(found) => (found.value.clone(), found.origin.to_string()),
            None => (schema::named(key).default_value()?, DEFAULT.to_owned()),
        };
        self.report.set(key, &value, source);
        Some(value)
    }

    /// The value of a setting, or one that follows from `source`.
    pub(super) fn get_or(
        &mut self,
        key: &'static str,
        usual: Value,
        source: impl fmt::Display,
    ) -> Value {
        if self.layers.find(key).is_none() {
            self.report.set(key, &usual, source);
            return usual;
        }
        self.get(key).unwrap_or(usual)
    }

    /// The value of a setting that must be set.
    fn required(&mut self, key: &'static str) -> Option<Value> {
        let value = self.get(key);
        if let (None, DefaultValue::Required(remedy)) = (&value, schema::named(key).default) {
            self.missing(key, remedy);
        }
        value
    }

    /// One of several words, as what it means.
    pub(super) fn choice<T: FromStr<Err: fmt::Debug>>(&mut self, key: &'static str) -> T {
        let word = self.get(key).expect("a choice has a default");
        word.text().parse().expect("the schema has the same words")
    }

    /// Notes what is wrong with a value.
    pub(super) fn wrong(&mut self, key: &str, problem: &str) {
        let found = self.layers.find(key);
        let place = found.map_or_else(|| key.to_owned(), |found| found.origin.place(key));
        self.problems.push(format!("{place}: {problem}"));
    }

    /// Notes that a value is missing, unless it is set and could not be read.
    pub(super) fn missing(&mut self, key: &str, remedy: &str) {
        if !self.layers.is_unread(key) {
            let file = self.layers.file.as_deref().unwrap_or_default();
            self.problems.push(format!("{file}: {key}: is missing; {remedy}"));
        }
    }

    fn settings(&mut self) -> Option<Settings> {
        let cluster = self.required("cluster").map(|name| name.text().to_owned());
        let listed = members::list(self);
        let me = self.me(&listed);
        let own = listed.members.iter().find(|member| Some(member.id) == me);
        let listen = self.listen(own);
        self.check_reach(listen, me, &listed);
        let http = self.http(listen);
        let key_file = self.key_file(listen);
        let state_dir = self.required("state_dir").map(Value::path);
        let algorithm = self.choice("algorithm");
        let grace = self.get("grace")?.duration();
        let trace = self.get("trace").map(Value::path);
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

    fn me(&mut self, listed: &Listed) -> Option<NodeId> {
        let wanted = self.required("id")?;
        let is_me = |member: &&Member| match &wanted {
            Value::Integer(id) => i64::from(member.id.0) == *id,
            wanted => member.name == wanted.text(),
        };
        let Some(me) = listed.members.iter().find(is_me) else {
            // It may be one of those that are wrong.
            if listed.is_whole {
                let all =
                    listed.members.iter().map(|member| format!("{} ({})", member.name, member.id));
                let all = all.collect::<Vec<_>>().join(", ");
                let wanted = wanted.to_string();
                let wanted = wanted.trim_matches('"');
                self.wrong("id", &format!("`{wanted}` is not a member; there are {all}"));
            }
            return None;
        };
        let id = Value::Integer(me.id.0.into());
        if let Some(found) = self.layers.find("id") {
            self.report.set("id", &id, &found.origin);
        }
        Some(me.id)
    }

    fn listen(&mut self, own: Option<&Member>) -> Option<SocketAddr> {
        if let Some(listen) = self.get("listen") {
            return listen.address();
        }
        if self.layers.is_unread("listen") {
            return None;
        }
        // If it is not known which member this is, that has been reported.
        let own = own?;
        let Ok(listen) = own.address.parse::<SocketAddr>() else {
            let remedy = format!(
                "its own address `{}` is a host name; say on which address it listens, for example 0.0.0.0:7400",
                own.address
            );
            self.missing("listen", &remedy);
            return None;
        };
        self.report.set("listen", &Value::Address(listen), "its own address");
        Some(listen)
    }

    /// Whether the socket that listens can reach every member: it sends as well.
    fn check_reach(&mut self, listen: Option<SocketAddr>, me: Option<NodeId>, listed: &Listed) {
        let (Some(listen), Some(me)) = (listen, me) else { return };
        let found = self.layers.find("listen").map(|found| found.origin.place("listen"));
        let place =
            found.unwrap_or_else(|| format!("{}: listen", listed.place(me, "member.address")));
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
        let open = self.get("http_open")?.bool() || self.layers.is_unread("http_open");
        let usual = || Some(Value::Address(([127, 0, 0, 1], listen?.port()).into()));
        let http = match self.layers.find("http") {
            Some(_) => self.get("http")?,
            None => self.get_or("http", usual()?, "the port of listen"),
        };
        let address = http.address()?;
        if !address.ip().is_loopback() && !open {
            let problem = format!(
                "{address} can be reached from other machines, which could then see who leads and who is up; if they \
                 may, set http_open = true (admin commands need the token in any case)"
            );
            self.wrong("http", &problem);
        }
        Some(address)
    }

    fn key_file(&mut self, listen: Option<SocketAddr>) -> Option<PathBuf> {
        let file = self.get("key_file").map(Value::path);
        if let (None, Some(listen)) = (&file, listen) {
            if listen.ip().is_loopback() {
                let warning =
                    "key_file: without a key any process on this machine can pose as a member";
                self.warnings.push(warning.to_owned());
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

    fn check_algorithm(&mut self, algorithm: Algorithm, listed: &Listed) {
        let members = &listed.members;
        let candidates = members.iter().filter(|member| !member.witness).count();
        if algorithm == Algorithm::Quorum {
            let warning = match (members.len(), candidates) {
                (1, _) => "member: there is only one, so there is no failover",
                (2, _) => {
                    "member: a majority of two is two, so there is no failover; add a third, for example a witness"
                }
                (_, 1) => "member: only one may lead, so there is no failover",
                _ => return,
            };
            return self.warnings.push(warning.to_owned());
        }
        self.warnings.push(format!(
            "algorithm: {algorithm} elects a leader on each side of a partition and gives no leases; only quorum \
             tolerates partitions"
        ));
        for Member { id, name, .. } in members.iter().filter(|member| member.witness) {
            self.problems.push(format!(
                "{}: member: {name} is a witness, and {algorithm} has none; leave it out, or use quorum",
                listed.place(*id, "member.witness")
            ));
        }
    }

    fn attribute(&mut self, algorithm: Algorithm) -> Attribute {
        let name = self.get("attribute.source").expect("it has a default");
        let name = name.text();
        let command = self.command(name == "command");
        let every = self.get("attribute.every").expect("it has a default").duration();
        if every < SHORTEST_EVERY {
            let problem = format!("{every} is too short; use at least {SHORTEST_EVERY}");
            self.wrong("attribute.every", &problem);
        }
        let step = self.get("attribute.step").expect("it has a default").integer().unsigned_abs();
        let source = match name {
            "free-memory" => Source::FreeMemory,
            "load" => Source::Load,
            "command" => Source::Command(command),
            _ => return Attribute::Priority,
        };
        if !algorithm.has_leases() {
            let problem = format!(
                "with {algorithm} attributes cannot change while it runs; use `priority`, or quorum"
            );
            self.wrong("attribute.source", &problem);
        }
        Attribute::Measured { source, every: Duration::from_nanos(every.as_nanos()), step }
    }

    /// The command that measures, which is set if and only if one is wanted.
    fn command(&mut self, wanted: bool) -> Vec<String> {
        let key = "attribute.command";
        let Some(words) = self.get(key).map(Value::words) else {
            if wanted {
                let remedy = "name the program and its arguments, for example [\"/usr/bin/score\", \"--brief\"]";
                self.missing(key, remedy);
            }
            return Vec::new();
        };
        if self.layers.is_unread("attribute.source") {
            // It may be the one that is wanted.
        } else if !wanted {
            self.wrong(key, "needs source = \"command\"; without that it is not run");
        } else if words.is_empty() {
            self.wrong(key, "is empty; name the program and its arguments");
        }
        words
    }
}
