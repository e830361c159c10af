//! From layers to settings: every value is looked up layer by layer, and checked against the others.
//!
//! A mistake is noted and the next value is looked at, so that all mistakes are reported at once. A value that could not be
//! read has its default meanwhile; settings are only returned if there were no mistakes.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use doyen_core::members::NodeId;
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;

use super::groups;
use super::layers::Layers;
use super::members::{self, Listed};
use super::print::{DEFAULT, Report};
use super::schema::{self, DefaultValue};
use super::timing;
use super::{Attribute, ConfigError, Configuration, Member, Settings, Source};
use crate::guardian::Hooks;
use crate::key::{KeyFile, KeyReaders};
use crate::node::trace::files::Limits;

/// The shortest interval between two measurements.
const SHORTEST_EVERY: Span = Span::from_millis(100);

/// The shortest margin that is chosen without being asked for: the operating system does not guarantee less.
const SHORTEST_MARGIN: Span = Span::from_millis(50);

pub(super) fn resolve(layers: &Layers) -> Result<Configuration, ConfigError> {
    let mut resolver = Resolver {
        layers,
        problems: layers.problems.clone(),
        warnings: layers.warnings.clone(),
        report: Report::default(),
    };
    // It is not known what a file that cannot be read would have set.
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
        Some(settings) if problems.is_empty() => {
            let exposed = layers.exposed.clone();
            Ok(Configuration { settings, warnings, exposed, report })
        }
        _ => Err(ConfigError { problems, warnings: layers.warnings.clone() }),
    }
}

/// Parses a text that the schema has checked.
pub(super) fn parse<T: FromStr<Err: fmt::Debug>>(text: &str) -> T {
    text.parse().expect("the schema has checked it")
}

/// Looks values up, and collects mistakes, warnings and the report.
pub(super) struct Resolver<'a> {
    pub(super) layers: &'a Layers,
    pub(super) problems: Vec<String>,
    pub(super) warnings: Vec<String>,
    pub(super) report: Report,
}

impl Resolver<'_> {
    /// The text of a setting, or of its default.
    pub(super) fn get(&mut self, key: &'static str) -> Option<String> {
        let (text, source) = match self.layers.find(key) {
            Some((text, origin)) => (text.to_owned(), origin.to_string()),
            None => (schema::named(key).default_text()?.to_owned(), DEFAULT.to_owned()),
        };
        self.report.set(key, &text, source);
        Some(text)
    }

    /// A setting that has a default.
    pub(super) fn value<T: FromStr<Err: fmt::Debug>>(&mut self, key: &'static str) -> T {
        parse(&self.get(key).expect("it has a default"))
    }

    /// A setting whose default is `usual`, which follows from `source`.
    pub(super) fn value_or<T: FromStr<Err: fmt::Debug> + fmt::Display>(
        &mut self,
        key: &'static str,
        usual: T,
        source: impl fmt::Display,
    ) -> T {
        if self.layers.find(key).is_some() {
            return self.value(key);
        }
        self.report.set(key, &usual.to_string(), source);
        usual
    }

    /// A setting that must be set.
    fn required(&mut self, key: &'static str) -> Option<String> {
        let text = self.get(key);
        if let (None, DefaultValue::Required(remedy)) = (&text, schema::named(key).default) {
            self.missing(key, remedy);
        }
        text
    }

    /// Notes a mistake in a value.
    pub(super) fn wrong(&mut self, key: &str, problem: &str) {
        let found = self.layers.find(key);
        let place = found.map_or_else(|| key.to_owned(), |(_, origin)| origin.place(key));
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
        let cluster = self.required("cluster");
        let listed = members::list(self);
        let me = self.me(&listed);
        let own = listed.members.iter().find(|member| Some(member.id) == me);
        let listen = self.listen(own);
        self.check_reach(listen, me, &listed);
        let http = self.http(listen);
        let http_admin = self.value("http_admin");
        if http_admin && http.is_some_and(|http| !http.ip().is_loopback()) {
            let warning = "http_admin: other machines reach HTTP (http_open), so the admin secret crosses the network in the clear; \
                           listen on loopback behind a proxy with TLS, or run admin commands on the machine and leave http_admin out";
            self.warnings.push(warning.to_owned());
        }
        let forwarded_commands = self.value("forwarded_commands");
        let key_file = self.key_file(listen, &listed);
        let state_dir = self.required("state_dir").map(PathBuf::from);
        let algorithm = self.value("algorithm");
        let log = self.value("log");
        let grace: Span = self.value("grace");
        let trace = self.get("trace").map(PathBuf::from);
        let trace_limits = Limits::of_files(self.value("trace_files"));
        self.check_algorithm(algorithm, &listed);
        let core = timing::core(self, cluster.as_deref(), algorithm, &listed);
        let groups = groups::groups(self, algorithm, &listed, core.as_ref());
        let attribute = self.attribute(algorithm);
        let lease = core.as_ref().map_or(Span::ZERO, |core| core.quorum.pace.lease());
        // In whole milliseconds, for people.
        let fifth = Span::from_millis(lease.as_nanos() / 5_000_000).max(SHORTEST_MARGIN);
        let margin: Span = self.value_or("margin", fifth, "a fifth of the lease");
        let (hooks, change_hook) = self.hooks(algorithm, own.map(|own| own.name.as_str()));
        listed.report(&mut self.report);
        Some(Settings {
            cluster: cluster?,
            me: me?,
            listen: listen?,
            http,
            http_admin,
            forwarded_commands,
            key_file,
            state_dir: state_dir?,
            algorithm,
            members: listed.members,
            attribute,
            core: core?,
            groups,
            trace,
            trace_limits,
            log,
            grace: Duration::from_nanos(grace.as_nanos()),
            margin: Duration::from_nanos(margin.as_nanos()),
            hooks,
            change_hook,
        })
    }

    fn me(&mut self, listed: &Listed) -> Option<NodeId> {
        let wanted = self.required("id")?;
        let is_me = |member: &&Member| match wanted.parse::<u32>() {
            Ok(id) => member.id.0 == id,
            Err(_) => member.name == wanted,
        };
        let Some(me) = listed.members.iter().find(is_me) else {
            // It may be one of the invalid members.
            if listed.has_none(&wanted) {
                let all =
                    listed.members.iter().map(|member| format!("{} ({})", member.name, member.id));
                let all = all.collect::<Vec<_>>().join(", ");
                let others =
                    if all.is_empty() { String::new() } else { format!("; there are {all}") };
                self.wrong("id", &format!("`{wanted}` is not a member{others}"));
            }
            return None;
        };
        if let Some((_, origin)) = self.layers.find("id") {
            self.report.set("id", &me.id.to_string(), origin);
        }
        Some(me.id)
    }

    fn listen(&mut self, own: Option<&Member>) -> Option<SocketAddr> {
        if let Some(listen) = self.get("listen") {
            return Some(parse(&listen));
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
        self.report.set("listen", &listen.to_string(), "its own address");
        Some(listen)
    }

    /// Whether the socket that listens can reach every member: it sends as well.
    fn check_reach(&mut self, listen: Option<SocketAddr>, me: Option<NodeId>, listed: &Listed) {
        let (Some(listen), Some(me)) = (listen, me) else { return };
        let found = self.layers.find("listen").map(|(_, origin)| origin.place("listen"));
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
        let is_open = self.value("http_open") || self.layers.is_unread("http_open");
        let usual = listen.map(|listen| SocketAddr::from(([127, 0, 0, 1], listen.port())));
        let http = match self.layers.find("http") {
            Some(_) => self.get("http")?,
            None => self.value_or("http", usual?.to_string(), "the port of listen"),
        };
        let address: SocketAddr = http.parse().ok()?; // or off
        if !address.ip().is_loopback() && !is_open {
            let problem = format!(
                "{address} can be reached from other machines, which could then see the leader and which members are up; \
                 to permit that, set http_open = true"
            );
            self.wrong("http", &problem);
        }
        Some(address)
    }

    fn key_file(&mut self, listen: Option<SocketAddr>, listed: &Listed) -> Option<KeyFile> {
        let readers = match self.value("key_group_readable") {
            true => KeyReaders::Group,
            false => KeyReaders::Owner,
        };
        let file = self.get("key_file").map(|path| KeyFile { path: path.into(), readers });
        // Where it listens is unknown if it is unknown which member this is. Others of a cluster are no nearer.
        let addresses = listed.members.iter().filter_map(|member| member.address.parse().ok());
        let listen =
            listen.or_else(|| addresses.max_by_key(|it: &SocketAddr| !it.ip().is_loopback()));
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
        let name: String = self.value("attribute.source");
        let command = self.command(name == "command");
        let file = self.attribute_file(name == "file");
        let every: Span = self.value("attribute.every");
        if every < SHORTEST_EVERY {
            let problem = format!("{every} is too short; use at least {SHORTEST_EVERY}");
            self.wrong("attribute.every", &problem);
        }
        let step = self.value("attribute.step");
        let source = match name.as_str() {
            "free-memory" => Source::FreeMemory,
            "load" => Source::Load,
            "command" => Source::Command(command),
            "file" => Source::File(file),
            _ => return Attribute::Priority,
        };
        if !algorithm.has_leases() {
            let problem = format!(
                "{algorithm} does not support attributes that change; use `priority`, or quorum"
            );
            self.wrong("attribute.source", &problem);
        }
        Attribute::Measured { source, every: Duration::from_nanos(every.as_nanos()), step }
    }

    /// What is run when this member leads and when it does not, and when the leader has changed.
    fn hooks(&mut self, algorithm: Algorithm, me: Option<&str>) -> (Hooks, Vec<String>) {
        let [leader, not_leader, change] = ["hooks.leader", "hooks.not_leader", "hooks.change"]
            .map(|key| {
                let command = self.get(key).map(|text| words(&text));
                if command.as_ref().is_some_and(Vec::is_empty) {
                    self.wrong(key, "is empty; name the program and its arguments");
                }
                if command.is_some() && key != "hooks.change" && !algorithm.has_leases() {
                    let problem = format!("{algorithm} has no leases; use hooks.change, or quorum");
                    self.wrong(key, &problem);
                }
                command.unwrap_or_default()
            });
        let timeout: Span = self.value("hooks.timeout");
        let (timeout, member) = (Duration::from_nanos(timeout.as_nanos()), me.unwrap_or_default());
        (Hooks { leader, not_leader, timeout, member: member.to_owned() }, change)
    }

    /// The command that measures, which is set if and only if one is wanted.
    fn command(&mut self, wanted: bool) -> Vec<String> {
        let key = "attribute.command";
        let Some(words) = self.get(key).map(|text| words(&text)) else {
            if wanted {
                let remedy = "name the program and its arguments, for example [\"/usr/bin/score\", \"--brief\"]";
                self.missing(key, remedy);
            }
            return Vec::new();
        };
        if self.layers.is_unread("attribute.source") {
            // It may be `command`.
        } else if !wanted {
            self.wrong(key, "needs source = \"command\"; without that it is not run");
        } else if words.is_empty() {
            self.wrong(key, "is empty; name the program and its arguments");
        }
        words
    }

    /// The file that is read, which is set if and only if one is wanted.
    fn attribute_file(&mut self, wanted: bool) -> PathBuf {
        let key = "attribute.file";
        let file = self.get(key);
        let may_be_wanted = wanted || self.layers.is_unread("attribute.source");
        match &file {
            None if wanted => self.missing(key, "name the file, for example \"score\""),
            Some(_) if !may_be_wanted => {
                self.wrong(key, "needs source = \"file\"; without that it is not read");
            }
            _ => {}
        }
        file.unwrap_or_default().into()
    }
}

/// A list of strings in TOML.
pub(super) fn words(text: &str) -> Vec<String> {
    let table: BTreeMap<String, Vec<String>> =
        toml::from_str(&format!("words = {text}")).expect("the schema has checked it");
    table.into_values().next().unwrap_or_default()
}
