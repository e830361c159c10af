//! Simulates coordinator elections message by message: deterministic, exact, at any size, with any faults.
//!
//! A [`Scenario`](scenario::Scenario) says what is to happen, [`resolve`](scenario::Scenario::resolve) makes a
//! [`Case`](scenario::Case) of it that makes sense, and [`run`](run::run) runs the state machines of `doyen-core` in a
//! [`World`](world::World) and closes the books on it.
//!
//! ```
//! use doyen_sim::scenario::Scenario;
//!
//! // The example of Kordafshari: of a thousand members, the hundredth notices that the coordinator is gone.
//! let text = r#"
//!     algorithm = "modified-bully"
//!     members = 1000
//!     initiators = [100]
//! "#;
//! let case = Scenario::from_toml("example.toml", text)?;
//! let outcome = doyen_sim::run::run(&case, None);
//! assert_eq!(outcome.messages.total, 2800);
//! # Ok::<(), String>(())
//! ```
//!
//! Feature: `parallel` runs sweeps on all cores.

pub mod account;
pub mod availability;
pub mod campaign;
pub mod check;
pub mod claims;
pub mod expect;
pub mod expression;
pub mod fault;
pub mod formula;
pub mod hash;
pub mod initiators;
pub mod network;
pub mod oracle;
pub mod plan;
pub mod queue;
pub mod random;
pub mod render;
pub mod report;
pub mod row;
pub mod run;
pub mod scenario;
pub mod shard;
pub mod summary;
pub mod sweep;
pub mod text;
pub mod time;
pub mod trace;
pub mod world;
