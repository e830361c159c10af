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
//! | [`leadership`] | whether this node leads, checked at the moment of acting; permits; fencing tokens |
//! | `lock` | named locks that the leader grants, with fencing tokens |
//! | [`fence`] | the resource's half: refuses a fencing token that is older than the newest one |
//! | [`guardian`] | runs a command under the lease, and ends it before the lease is over |
//! | [`blocking`] | work that may wait for a disk, beside an async runtime |
//! | [`clock`] | time that counts while the machine is suspended |
//! | `http_client` | what HTTP clients of nodes have in common, and the certificate authorities that they trust |
//! | `api` | HTTP: health, status, history, permits, admin commands, metrics |
//! | `page` | the files of the page, for the lab and for a node's dashboard |
//!
//! Start with [`node::Builder`] and [`leadership::Leadership`]. The examples of this crate are a singleton cron, a writer
//! whose database refuses old leaders, and a web server that accepts writes only where it leads.
//!
//! | feature | what it adds |
//! |---|---|
//! | `http` | `api` |
//! | `lock` | the client of `lock` |
//! | `https` | `https://` in that client; includes `lock` |
//! | `cli` (default) | the program `doyen`, with simulator and checker; includes `http` and `https` |
//!
//! A program that embeds a node needs none of them: `default-features = false`.

#[cfg(feature = "http")]
pub mod api;
pub mod blocking;
pub mod clock;
pub mod config;
pub mod fence;
mod files;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
pub mod guardian;
mod hex;
#[cfg(feature = "lock")]
pub mod http_client;
pub mod init;
pub mod key;
pub mod leadership;
#[cfg(any(feature = "http", feature = "lock"))]
pub mod lock;
mod mutex;
pub mod node;
#[cfg(feature = "http")]
pub mod page;

#[cfg(test)]
mod scratch;
mod sys;
mod throttle;
