//! Simulates coordinator elections message by message: deterministic, exact, at any size, with any faults.
//!
//! A [`Scenario`](scenario::Scenario) says what is to happen, [`resolve`](scenario::Scenario::resolve) makes a
//! [`Case`](scenario::Case) of it that makes sense, and [`run`](run::run) runs the state machines of `doyen-core` in a
//! [`World`](world::World) and returns its metrics.
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

#![forbid(unsafe_code)]

pub mod cut;
pub mod delivered;
pub mod document;
pub mod fault;
pub mod hash;
pub mod initiators;
pub mod message;
pub mod metrics;
pub mod monitor;
pub mod network;
pub mod parallel;
pub mod queue;
pub mod random;
pub mod render;
pub mod run;
pub mod scenario;
pub mod text;
pub mod time;
pub mod trace;
pub mod words;
pub mod world;
