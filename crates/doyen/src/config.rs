//! What a node is configured with, when all layers have been merged and checked.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use doyen_core::algorithm::Algorithm;
use doyen_core::members::NodeId;

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
