//! Every setting of `doyen.toml`: its name, kind, default, help, example and flag.
//!
//! Parsing, `--print-config`, the flags of `doyen node`, the example file and the table in `docs/node.md` all derive from
//! [`KEYS`]. A setting is added here and read in `config/resolve.rs`.

use doyen_core::config::quorum::Profile;

use super::value::Kind;

#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    /// With its table: `timing.profile`.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) default: DefaultValue,
    pub(super) example: Example,
    /// One line, without a full stop.
    pub(super) help: &'static str,
    /// More sentences, or nothing.
    pub(super) details: &'static str,
    /// The flag that sets it, without dashes, and what its help calls the value.
    pub(super) flag: Option<(&'static str, &'static str)>,
}

/// The value if no layer sets one.
#[derive(Clone, Copy, Debug)]
pub(super) enum DefaultValue {
    /// None: it must be set, and this says how.
    Required(&'static str),
    /// In TOML.
    Is(&'static str),
    /// The timing profile's value.
    Profile,
    /// Derived from other settings, in words.
    Derived(&'static str),
    /// None, which means this.
    Unset(&'static str),
}

/// What the example file shows, in TOML.
#[derive(Clone, Copy, Debug)]
pub(super) enum Example {
    Set(&'static str),
    CommentedOut(&'static str),
    /// The default, commented out.
    Default,
}

use DefaultValue::{Derived, Is, Profile as ByProfile, Required, Unset};

/// The tables, in the order of the file, with what the example says about each. The last one occurs once per member.
pub(super) const TABLES: [(&str, &str); 5] = [
    (
        "timing",
        "How fast. Members may differ; a leader's own values count while it leads. An unsafe combination is rejected, \
         with the inequality that it violates: docs/quorum.md explains them.",
    ),
    ("preemption", "When a member of higher rank takes over from a working leader."),
    (
        "attribute",
        "What decides elections instead of this member's priority: something that it measures, and sends to the others \
         when it changes.",
    ),
    (
        "hooks",
        "Programs that are run when leadership changes. The lease is held until `not_leader` has succeeded; after a lapse \
         it must be over within the margin. In their environment: DOYEN_ROLE, DOYEN_MEMBER, DOYEN_LEADER, DOYEN_TERM, \
         DOYEN_TOKEN and DOYEN_REASON.",
    ),
    (
        MEMBER,
        "All members, this one included; the same for every member, but addresses and priorities may differ for a while.",
    ),
];

/// The table that occurs once per member.
pub(super) const MEMBER: &str = "member";

pub(super) const KEYS: [Key; 46] = [
    key("cluster", Kind::Name, Required("give the cluster a name, the same for every member"))
        .set("\"orders\"")
        .help("Name of the cluster")
        .details("Members of different clusters ignore each other, even if they share a key."),
    key("id", Kind::Member, Required("say which member this is: id = 1, --id 1 or DOYEN_ID=1"))
        .set("1")
        .flag("id", "MEMBER")
        .help("Which member this is: its id or its name")
        .details("One file serves all members if `DOYEN_ID` or `--id` sets this on each machine."),
    key("listen", Kind::Address, Derived("its own address"))
        .set("\"10.0.0.1:7400\"")
        .flag("listen", "ADDRESS")
        .help("Where it listens for the other members (UDP), for example 0.0.0.0:7400")
        .details(
            "Required if its own address is a host name. It also sends from here, so all members need addresses of one \
             kind, IPv4 or IPv6; `[::]` reaches both.",
        ),
    key("http", Kind::AddressOrOff, Derived("127.0.0.1 with the port of `listen`"))
        .set("\"127.0.0.1:7400\"")
        .flag("http", "ADDRESS")
        .help("Where it serves HTTP, or off")
        .details("HTTP shows the leader, health for load balancers and metrics."),
    key("http_open", Kind::Bool, Is("false"))
        .help("Whether other machines may reach HTTP")
        .details("They can then see the leader and which members are up."),
    key("http_admin", Kind::Bool, Is("false"))
        .help("Whether admin commands are accepted over HTTP too")
        .details(
            "They need the admin secret, which the node makes in `state_dir`. Without it they come over the Unix socket \
             `admin.sock` there, which only the node's user and root can use.",
        ),
    key("forwarded_commands", Kind::Bool, Is("true"))
        .help("Whether it accepts admin commands that were given to another member")
        .details("They arrive over the sealed channel. What only reads is answered in any case."),
    key("key_file", Kind::Path, Unset("this machine only"))
        .set("\"key\"")
        .flag("key-file", "FILE")
        .help("File with the cluster's keys")
        .details(
            "`doyen keygen --out FILE` makes it, and only its owner may read it. Required unless `listen` is a loopback address.",
        ),
    key("key_group_readable", Kind::Bool, Is("false"))
        .help("Whether the group of the key file may read it too (mode 0640)")
        .details("For Kubernetes, where `fsGroup` makes a secret readable by a group of the pod's own."),
    key("state_dir", Kind::Path, Required("say where this member keeps its state, for example \"state\""))
        .set("\"state\"")
        .flag("state-dir", "DIR")
        .help("Folder where it keeps its state")
        .details(
            "`doyen init` makes it, a node never does. Each member needs its own, on a disk that keeps what it has \
             synced; never restore it from a copy.",
        ),
    key("algorithm", Kind::Algorithm, Is("\"quorum\""))
        .flag("algorithm", "NAME")
        .help("Election algorithm")
        .details(
            "Only quorum tolerates partitions and gives leases. The others (`doyen algorithms`) run hardened, for study: \
             in a partition each side elects a leader.",
        ),
    key("groups", Kind::StringList, Unset("one leader, that of the cluster"))
        .hint("[\"orders\", \"billing=n2,n1\"]")
        .help("Groups that each have a leader of their own, spread over the members")
        .details(
            "The same for every member. A name, and after `=` the members that should lead it rather than any other, the \
             first one first. Needs quorum; docs/groups.md explains it.",
        ),
    key("group_lease", Kind::Duration, ByProfile)
        .hint("\"550ms\"")
        .help("How long a member leads a group without hearing from the leader of the cluster")
        .details("The same for every member: members with another value, or without groups, ignore each other."),
    key("log", Kind::Filter, Is("\"info\""))
        .help("What is logged: off, error, warn, info, debug or trace")
        .details("Or modules with their levels: `info,doyen::node=debug`."),
    key("grace", Kind::Duration, Is("\"10s\""))
        .help("How long a stop (SIGTERM) may take to transfer leadership"),
    key("margin", Kind::Duration, Derived("a fifth of the lease, at least 50ms"))
        .hint("\"50ms\"")
        .help("How long before the end of a lease jobs and hooks begin to be ended")
        .details("For `doyen run` and for hooks; after a lapse a new leader waits for as long before it starts anything."),
    key("trace", Kind::Path, Unset("nothing is recorded"))
        .hint("\"n1.ndjson\"")
        .flag("trace", "FILE")
        .help("Record every event in this file, for `doyen replay`")
        .details(
            "Its last line says that the member stopped. If the file exists, the number of this start is added to its name. \
             After 64 MB the trace continues in another file, with .part2 after its name, and so on.",
        ),
    key("trace_files", Kind::Positive, Is("16"))
        .help("How many of these files are kept")
        .details("The oldest is removed; a trace without its beginning cannot be replayed, only its leases are checked."),
    key("timing.profile", Kind::Choice(profiles), Is("\"lan\""))
        .flag("profile", "NAME")
        .help("How fast: fast (one rack), lan (one site) or wan; sets all timings"),
    timing("timing.transmission", "\"10ms\"", "D, the longest that a datagram takes"),
    timing("timing.processing", "\"5ms\"", "p, the longest until it is answered"),
    timing("timing.heartbeat", "\"50ms\"", "h, how often a leader asks for its lease to be renewed"),
    timing("timing.vote_lease", "\"280ms\"", "vote lease: how long followers vote for no other member"),
    key("timing.drift", Kind::Fraction, ByProfile)
        .hint("0.1")
        .help("by what share any clock may be wrong"),
    timing("timing.jitter", "\"10ms\"", "random part of the wait before an election"),
    timing("timing.stagger", "\"15ms\"", "how much longer a member waits for each one of higher rank"),
    timing("timing.tenure", "\"30s\"", "how long a leader is safe from preemption"),
    timing("timing.penalty_decay", "\"60s\"", "how long a failure as leader counts against a member"),
    key("timing.probe", Kind::DurationOrOff, ByProfile)
        .hint("\"1s\"")
        .help("how often followers report which members they cannot reach; \"off\" for never"),
    key("preemption.policy", Kind::Choice(policies), Is("\"delayed\""))
        .help("never, delayed or immediate"),
    timing("preemption.delay", "\"10s\"", "how long a member of higher rank waits before it takes over"),
    key("preemption.margin", Kind::Count, Derived("0, with free-memory 512, with load 100"))
        .hint("0")
        .help("by how much an attribute must be better to move leadership"),
    key("attribute.source", Kind::Choice(sources), Is("\"priority\""))
        .help("priority, free-memory (MiB), load (idle processors, hundredths), command or file"),
    key("attribute.command", Kind::StringList, Unset("no command is run"))
        .hint("[\"/usr/local/bin/score\"]")
        .help("with source = \"command\": prints a whole number, higher is better"),
    key("attribute.file", Kind::Path, Unset("no file is read"))
        .hint("\"score\"")
        .help("with source = \"file\": contains a whole number, higher is better; replace it as a whole"),
    key("attribute.every", Kind::Duration, Is("\"5s\"")).help("how often it is measured"),
    key("attribute.step", Kind::Count, Is("1")).help("a smaller change is not sent"),
    key("hooks.leader", Kind::StringList, Unset("nothing is run"))
        .hint("[\"/etc/doyen/address\", \"10.0.0.100/24\", \"eth0\"]")
        .help("run when this member leads"),
    key("hooks.not_leader", Kind::StringList, Unset("nothing is run"))
        .hint("[\"/etc/doyen/address\", \"10.0.0.100/24\", \"eth0\"]")
        .help("run at the start, and whenever it no longer leads; repeated until it succeeds"),
    key("hooks.change", Kind::StringList, Unset("nothing is run"))
        .hint("[\"/etc/doyen/notify\"]")
        .help("run when the leader has changed; nothing waits for it"),
    key("hooks.timeout", Kind::Duration, Is("\"10s\"")).help("how long a hook may take"),
    key("member.id", Kind::Id, Required("give it a number of its own"))
        .set("1")
        .help("never reused for another machine while the cluster lives"),
    key("member.name", Kind::Name, Derived("n and the id")).set("\"n1\"").help("for people"),
    key("member.address", Kind::Host, Required("say where it listens, for example 10.0.0.1:7400"))
        .set("\"10.0.0.1:7400\"")
        .help("where the others reach it: an IP address or host name, and a port"),
    key("member.priority", Kind::Integer, Is("0"))
        .set("3")
        .help("the highest leads; the higher id decides between equal ones"),
    key("member.witness", Kind::Bool, Is("false"))
        .help("votes and never leads: a third machine for two that do"),
];

const fn key(name: &'static str, kind: Kind, default: DefaultValue) -> Key {
    Key { name, kind, default, example: Example::Default, help: "", details: "", flag: None }
}

/// A duration of the profile; `lan` is its value in the profile lan.
const fn timing(name: &'static str, lan: &'static str, help: &'static str) -> Key {
    key(name, Kind::Duration, ByProfile).hint(lan).help(help)
}

impl Key {
    const fn set(self, toml: &'static str) -> Self {
        Self { example: Example::Set(toml), ..self }
    }

    const fn hint(self, toml: &'static str) -> Self {
        Self { example: Example::CommentedOut(toml), ..self }
    }

    const fn help(self, help: &'static str) -> Self {
        Self { help, ..self }
    }

    const fn details(self, details: &'static str) -> Self {
        Self { details, ..self }
    }

    const fn flag(self, name: &'static str, value: &'static str) -> Self {
        Self { flag: Some((name, value)), ..self }
    }

    /// Its table, or nothing, and its name there: `timing` and `profile`.
    pub(super) fn split(&self) -> (&'static str, &'static str) {
        self.name.split_once('.').unwrap_or(("", self.name))
    }

    /// The variable that sets it. Lists and members can only be set by a file.
    pub(super) fn variable(&self) -> Option<String> {
        let is_list = matches!(self.kind, Kind::StringList) || self.split().0 == MEMBER;
        (!is_list).then(|| format!("DOYEN_{}", self.name.replace('.', "_").to_uppercase()))
    }

    /// The text of its default, if that depends on nothing else.
    pub(super) fn default_text(&self) -> Option<&'static str> {
        let Is(toml) = self.default else { return None };
        Some(toml.trim_matches('"'))
    }
}

/// Panics if there is no such setting.
pub(super) fn named(name: &str) -> &'static Key {
    let found = KEYS.iter().find(|key| key.name == name);
    found.unwrap_or_else(|| panic!("the schema has no `{name}`"))
}

/// The settings of a table; those above all tables, if it is empty.
pub(super) fn keys_of(table: &str) -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(move |key| key.split().0 == table)
}

/// The word nearest to `word`, if it is near enough to be meant.
pub(super) fn nearest<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A third of the letters may be wrong, and one in a short word.
    let bound = (word.chars().count() / 3).max(1);
    let distances = words.into_iter().map(|known| (strsim::osa_distance(word, known), known));
    distances.filter(|&(distance, _)| distance <= bound).min().map(|(_, known)| known)
}

fn profiles() -> Vec<&'static str> {
    Profile::ALL.map(Profile::name).to_vec()
}

fn policies() -> Vec<&'static str> {
    vec!["never", "delayed", "immediate"]
}

fn sources() -> Vec<&'static str> {
    vec!["priority", "free-memory", "load", "command", "file"]
}
