//! doyen as a library: a node that runs an election between real machines.
//!
//! The algorithms are those of [`doyen_core`], unchanged: what the simulator counts and the checker explores is what
//! runs here. This crate is their host on a real network. It keeps the list at the head of the core: a boot-time clock,
//! a disk that is synced before anything depends on it, sealed datagrams.
//!
//! | module | what it holds |
//! |---|---|
//! | [`config`] | `doyen.toml`, flags and environment, merged and checked |
//! | [`init`] | a new cluster: the folder of every member |
//! | [`key`] | the cluster's keys: files, rotation |
//! | [`node`] | the loop, its timers, disk and network |
//! | [`guardian`] | runs a command under the lease, and ends it before the lease is over |
//! | [`leadership`] | whether this node leads, checked at the moment of acting |
//! | [`clock`] | time that counts while the machine is suspended |
//! | [`api`] | HTTP: health, status, history, admin commands, metrics |

pub mod api;
pub mod clock;
pub mod config;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
pub mod guardian;
pub mod init;
pub mod key;
pub mod leadership;
pub mod node;

#[cfg(test)]
mod scratch;
