//! The guardian: it ends a job before the lease is over under which the job runs, whatever happens to the node.
//!
//! `doyen run` keeps one copy of a command alive in a cluster: on the member that holds the lease. The process tree of
//! the command must be gone before another member can hold a lease, even if the node is killed, stopped or hangs. So the
//! node does not start the command itself. A second process does, the **guardian**: the same program, started again,
//! with one task.
//!
//! ```text
//!   node ──── control ────▶ guardian ──── gate ────▶ init ────▶ command ────▶ …
//!     │                        ▲                      (first process of a PID namespace, or in a cgroup)
//!     └──▶ lease file ─────────┘
//! ```
//!
//! - The node writes the deadline of its lease into the [lease file](lease_file). The guardian reads it when its timer
//!   fires: if the lease has been renewed, it sets the timer again; if not, it kills the tree, a **margin** before the
//!   deadline. The timer counts suspend.
//! - The guardian holds a pidfd of the node. When the node is dead the tree is ended at once.
//! - The command is contained ([`contain`]). In a PID namespace the kernel ends the whole tree with its first process,
//!   which dies with the guardian; in a cgroup `cgroup.kill` ends it. The end is **confirmed**: the first process of a
//!   namespace is not reaped before all others are gone, and a cgroup says whether it is populated.
//! - The guardian runs in a session of its own, locked in memory, with real-time priority where that is allowed, and
//!   reports how late it was.
//!
//! | what dies or is stopped | what ends the tree |
//! |---|---|
//! | the node dies | the guardian, which sees the pidfd; it runs the hooks and releases the lease (`survive.rs`) |
//! | the node is stopped, hangs, or loses its lease | the guardian, a margin before the deadline |
//! | the guardian is killed | the kernel: init dies with it (PID namespace); the node, which kills the cgroup |
//! | the guardian is stopped | the node, which gets no answer and kills the tree itself |
//! | both are killed at once | the kernel (PID namespace); nothing with a cgroup alone, and `run` says so when it starts |
//! | the machine | – |

pub mod contain;
pub mod control;
mod handle;
mod handover;
mod hook;
mod init;
mod job;
pub mod lease_file;
mod log;
mod process;
mod survive;
mod wait;

/// The exit code if doyen itself failed.
pub const FAILED: u8 = 125;
/// The exit code of a command that cannot be executed.
pub const CANNOT_EXECUTE: u8 = 126;
/// The exit code of a command that does not exist.
pub const NOT_FOUND: u8 = 127;

pub use handle::{Guardian, Plan, play_part};
pub use handover::{Datagram, Handover};
pub use hook::{Hook, Hooks};
pub use log::{LogFormat, stderr_is_journal};
