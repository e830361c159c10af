//! The configuration of a node: `doyen.toml`, flags and environment, merged and checked.
//!
//! **Precedence**, value by value:
//!
//! 1. flags (`--listen`),
//! 2. the environment (`DOYEN_LISTEN`, `DOYEN_TIMING_PROFILE`),
//! 3. the file that `--config` or `DOYEN_CONFIG` names, else `./doyen.toml`,
//! 4. the user's file, `$XDG_CONFIG_HOME/doyen/doyen.toml`,
//! 5. the system's, `/etc/doyen/doyen.toml`,
//! 6. the timing profile and the defaults.
//!
//! The members are one value: no file adds a member to those of another. Paths in a file are relative to the file, others
//! to the working folder.
//!
//! | file | what it does |
//! |---|---|
//! | `config/schema.rs` | every setting: name, kind, default, help, example, flag |
//! | `config/value.rs` | the kinds of values: how they are read and printed |
//! | `config/layers.rs` | flags, variables and files, in the order of precedence |
//! | `config/resolve.rs`, `members.rs`, `timing.rs`, `groups.rs` | settings, checked against each other |
//! | `config/print.rs` | `--print-config` and `--example` |
//!
//! **Errors** name the place of a wrong value, the mistake and the remedy; all of them are reported at once. What is legal
//! and probably not meant is a warning.
//!
//! **Decisions.**
//! - A node that other machines can reach needs a key: without one it listens on loopback only.
//! - HTTP is served on loopback, at the port of `listen`, by default. It shows the leader and which members are up to any
//!   client, so another address needs `http_open = true`.
//! - Admin commands come over a Unix socket in the state folder; over HTTP only with `http_admin = true`.
//! - No secret is a value: settings name files.
//! - The default priority is 0; the higher id decides between equal priorities.

mod groups;
mod layers;
pub(crate) mod members;
mod print;
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

use crate::guardian::Hooks;
use crate::key::KeyFile;
use crate::node::trace::files::Limits;

pub(crate) use layers::member_title;
pub use layers::{Env, Override};
pub use print::{Report, example};
pub use value::check_filter;
pub(crate) use value::{LONGEST_NAME, check_address, check_name};

/// A flag of `doyen node` that sets a setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flag {
    /// The setting, for an [`Override`].
    pub key: &'static str,
    /// Without dashes.
    pub name: &'static str,
    /// The name of the value in the help.
    pub value_name: &'static str,
    /// One line of help.
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
    /// Members of different clusters ignore each other, even if they share a key.
    pub cluster: String,
    /// Which member this is.
    pub me: NodeId,
    /// Where it listens for the other members.
    pub listen: SocketAddr,
    /// Where it serves HTTP, if it does.
    pub http: Option<SocketAddr>,
    /// Whether admin commands are accepted over HTTP too.
    pub http_admin: bool,
    /// Whether it accepts admin commands that were given to another member.
    pub forwarded_commands: bool,
    /// The key file; without one it listens on loopback only.
    pub key_file: Option<KeyFile>,
    /// The folder of its state.
    pub state_dir: PathBuf,
    /// The election algorithm.
    pub algorithm: Algorithm,
    /// All members, this one included, in the order of their ids.
    pub members: Vec<Member>,
    /// What decides elections.
    pub attribute: Attribute,
    /// The configuration of the algorithms.
    pub core: doyen_core::config::Config,
    /// The groups that have leaders of their own, if there are any.
    pub groups: Option<doyen_core::group::Config>,
    /// The file in which every event is recorded.
    pub trace: Option<PathBuf>,
    /// How much of that is kept.
    pub trace_limits: Limits,
    /// What is logged: a level, or modules with their levels.
    pub log: String,
    /// How long a stop may take to transfer leadership.
    pub grace: Duration,
    /// How long before the end of a lease that is not renewed a job and hooks are ended.
    pub margin: Duration,
    /// The commands that are run when this member leads, and when it does not.
    pub hooks: Hooks,
    /// The command that is run when the leader has changed; empty if there is none.
    pub change_hook: Vec<String>,
}

/// A member as configured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    /// Its id.
    pub id: NodeId,
    /// Its name, for people.
    pub name: String,
    /// `host:port`, resolved when needed.
    pub address: String,
    /// The highest leads.
    pub priority: i64,
    /// Whether it votes and never leads.
    pub witness: bool,
}

/// What decides elections.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Attribute {
    /// The configured priority.
    #[default]
    Priority,
    /// A measured value.
    Measured {
        /// What is measured.
        source: Source,
        /// The interval.
        every: Duration,
        /// A smaller change is not sent to the other members.
        step: u64,
    },
}

/// What is measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// Free memory, in mebibytes.
    FreeMemory,
    /// Idle processors, in hundredths: a lower load is better.
    Load,
    /// The integer that a command prints.
    Command(Vec<String>),
    /// The integer that a file contains.
    File(PathBuf),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FreeMemory => f.write_str("the free memory"),
            Self::Load => f.write_str("the load"),
            Self::Command(words) => write!(f, "what `{}` prints", words.join(" ")),
            Self::File(path) => write!(f, "what {} contains", path.display()),
        }
    }
}

/// Settings, with warnings and the origins of all values.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// The settings.
    pub settings: Settings,
    /// What is legal, and probably not meant.
    pub warnings: Vec<String>,
    /// Why no node may run with it: another user can write one of its files, which may name commands.
    pub exposed: Option<String>,
    /// Every value, and where it comes from.
    pub report: Report,
}

/// All mistakes in a configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// Each with its place and its remedy.
    pub problems: Vec<String>,
    /// Variables that no setting reads: one may be the cause of a mistake.
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
    /// Reads and merges all layers. `file` replaces `./doyen.toml`.
    pub fn load(file: Option<&Path>, flags: &[Override], env: &Env) -> Result<Self, ConfigError> {
        resolve::resolve(&layers::Layers::collect(file, flags, env))
    }

    /// Reads only this text, as a file called `name`.
    pub fn parse(name: &str, text: &str) -> Result<Self, ConfigError> {
        let mut layers = layers::Layers::default();
        layers.add_text(Path::new(name), text, Path::new(""));
        resolve::resolve(&layers)
    }
}

impl Settings {
    /// This member's own entry.
    pub fn own(&self) -> &Member {
        let own = self.members.iter().find(|member| member.id == self.me);
        own.expect("a configuration without this member is rejected")
    }

    /// The name of a member.
    pub fn name_of(&self, id: NodeId) -> &str {
        let found = self.members.iter().find(|member| member.id == id);
        found.map_or("a stranger", |member| &member.name)
    }

    /// The number of this configuration in every datagram. It depends on the cluster, the voters, their kinds, the
    /// algorithm, the version of the protocol and, where there are groups, their lease: a new leader waits out what an
    /// earlier one granted, so the lease must be the same everywhere. It does not depend on addresses, priorities, timings
    /// and the names of groups.
    pub fn configuration_id(&self) -> u32 {
        let voters = self.core.quorum.config_id(&self.core.members);
        // FNV-1a, like the number of the voters.
        let lease = self.groups.as_ref().map(|groups| groups.lock.lease.as_nanos().to_le_bytes());
        let bytes = self.algorithm.name().bytes().chain(lease.into_iter().flatten());
        bytes.fold(voters, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    }
}

/// The number of a cluster, the same on every machine and in every version.
fn cluster_number(name: &str) -> u64 {
    let hash = Sha256::digest(name.as_bytes());
    u64::from_le_bytes(std::array::from_fn(|place| hash[place]))
}
