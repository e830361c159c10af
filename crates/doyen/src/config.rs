//! What a node is configured with: `doyen.toml`, flags and environment, merged and checked.
//!
//! **Layers**, the first one that sets a value counts, value by value:
//!
//! 1. flags (`--listen`),
//! 2. the environment (`DOYEN_LISTEN`, `DOYEN_TIMING_PROFILE`),
//! 3. the file that `--config` or `DOYEN_CONFIG` names, else `./doyen.toml`,
//! 4. the user's file, `$XDG_CONFIG_HOME/doyen/doyen.toml`,
//! 5. the system's, `/etc/doyen/doyen.toml`,
//! 6. what follows from the timing's profile, and the defaults.
//!
//! The members are one value: no file adds a member to those of another. Paths in a file are relative to the file,
//! others to the working folder.
//!
//! | file | what it does |
//! |---|---|
//! | `config/schema.rs` | every setting: name, kind, default, help, example, flag |
//! | `config/value.rs` | the kinds: how a value is read and printed |
//! | `config/raw.rs` | one file, parsed against the schema |
//! | `config/layers.rs` | flags, variables and files, in their order |
//! | `config/resolve.rs`, `members.rs`, `timing.rs`, `lease.rs` | checks of values against each other |
//! | `config/report.rs`, `example.rs` | `--print-config` and `--example` |
//!
//! **Errors** say where the wrong value came from, what is wrong with it and what to write instead; all of them at once.
//! What is legal and probably not meant is a warning.
//!
//! **Decisions.**
//! - A node that can be reached from other machines needs a key: without one only loopback addresses are listened on.
//! - HTTP is served on loopback, at the port of `listen`, unless told otherwise. It shows who leads and who is up to any
//!   client that can connect, so another address needs `http_open = true`; admin commands need the token in any case.
//! - No secret is a value: files are named, not their contents.
//! - Members without a priority have 0; the higher id decides between equal priorities.

mod example;
mod layers;
mod lease;
pub(crate) mod members;
mod raw;
mod report;
mod resolve;
mod schema;
#[cfg(test)]
mod tests;
mod timing;
mod value;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use doyen_core::members::NodeId;
use doyen_core::registry::Algorithm;
use sha2::{Digest, Sha256};

pub use example::example;
pub use layers::{Env, Override};
pub(crate) use raw::member_title;
pub use report::Report;
pub(crate) use value::{LONGEST_NAME, check_address, check_name};

/// A flag of `doyen node` that sets a setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flag {
    /// The setting, for an [`Override`].
    pub key: &'static str,
    /// Its name, without dashes.
    pub name: &'static str,
    /// What its help calls the value.
    pub value_name: &'static str,
    /// What it is for.
    pub help: &'static str,
}

/// Every flag that sets a setting.
pub fn flags() -> impl Iterator<Item = Flag> {
    schema::KEYS.iter().filter_map(|key| {
        let (name, value_name) = key.flag?;
        Some(Flag { key: key.name, name, value_name, help: key.help })
    })
}

/// The whole configuration of a node.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// The cluster's name: members of another do not hear each other, be their key the same.
    pub cluster: String,
    /// Which member this is.
    pub me: NodeId,
    /// Where it listens for the others.
    pub listen: SocketAddr,
    /// Where it serves HTTP, if it does.
    pub http: Option<SocketAddr>,
    /// Where the keys are; without them it speaks to this machine only.
    pub key_file: Option<PathBuf>,
    /// Where it keeps its state.
    pub state_dir: PathBuf,
    /// By which algorithm the leader is elected.
    pub algorithm: Algorithm,
    /// Everybody, this member included, in the order of their ids.
    pub members: Vec<Member>,
    /// What its attribute is, if it is not its configured priority.
    pub attribute: Attribute,
    /// Timings, preemption and the rest, as the algorithms read them.
    pub core: doyen_core::config::Config,
    /// Where every event is recorded, if it is.
    pub trace: Option<PathBuf>,
    /// How long a clean stop may take to hand over.
    pub grace: Duration,
}

/// A member as configured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    /// Its id.
    pub id: NodeId,
    /// Its name, for people.
    pub name: String,
    /// Where it listens: `host:port`, resolved when needed.
    pub address: String,
    /// The highest leads.
    pub priority: i64,
    /// Whether it votes and never leads.
    pub witness: bool,
}

/// What the election looks at.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Attribute {
    /// The configured priority.
    #[default]
    Priority,
    /// Something that is measured again and again.
    Measured {
        /// What.
        source: Source,
        /// How often.
        every: Duration,
        /// By how much it must differ from what was last told for the others to be told.
        step: u64,
    },
}

/// What can be measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// Free memory, in mebibytes.
    FreeMemory,
    /// Idle processors, in hundredths: a lower load is better.
    Load,
    /// The integer that a command prints.
    Command(Vec<String>),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FreeMemory => f.write_str("the free memory"),
            Self::Load => f.write_str("the load"),
            Self::Command(words) => write!(f, "what `{}` prints", words.join(" ")),
        }
    }
}

/// Settings, and what there is to say about them.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// What to run with.
    pub settings: Settings,
    /// What is legal, and probably not meant.
    pub warnings: Vec<String>,
    /// Every value, and where it came from.
    pub report: Report,
}

/// Everything that is wrong with a configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// What is wrong: where, what, and what to do about it.
    pub problems: Vec<String>,
    /// Variables that no setting reads: one may be a mistake's cause.
    pub warnings: Vec<String>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.as_slice() {
            [problem] => f.write_str(problem)?,
            problems => write!(f, "{} mistakes:\n  {}", problems.len(), problems.join("\n  "))?,
        }
        self.warnings.iter().try_for_each(|warning| write!(f, "\n  warning: {warning}"))
    }
}

impl std::error::Error for ConfigError {}

impl Configuration {
    /// Reads all layers, `flags` before all others, and merges them. `file` takes the place of `./doyen.toml`.
    pub fn load(file: Option<&Path>, flags: &[Override], env: &Env) -> Result<Self, ConfigError> {
        resolve::resolve(&layers::Layers::collect(file, flags, env))
    }

    /// Reads one text alone, as a file called `name` would be read.
    pub fn parse(name: &str, text: &str) -> Result<Self, ConfigError> {
        resolve::resolve(&layers::Layers::of_text(name, text))
    }
}

impl Settings {
    /// This member's own entry.
    pub fn own(&self) -> &Member {
        let own = self.members.iter().find(|member| member.id == self.me);
        own.expect("a configuration in which this member does not occur is refused")
    }

    /// What people call a member.
    pub fn name_of(&self, id: NodeId) -> &str {
        let found = self.members.iter().find(|member| member.id == id);
        found.map_or("a stranger", |member| &member.name)
    }

    /// The number of this configuration, which every datagram bears: equal where the cluster, the voters, their kinds,
    /// the algorithm and the version of the protocol are. Addresses, priorities and timings may differ.
    pub fn configuration_id(&self) -> u32 {
        let voters = self.core.quorum.config_id(&self.core.members);
        // FNV-1a, as the number of the voters itself.
        let algorithm = self.algorithm.name().bytes();
        algorithm.fold(voters, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    }
}

/// The number of a cluster: part of what members compare. It is the same on every machine and in every version.
fn cluster_number(name: &str) -> u64 {
    let hash = Sha256::digest(name.as_bytes());
    u64::from_le_bytes(std::array::from_fn(|place| hash[place]))
}
