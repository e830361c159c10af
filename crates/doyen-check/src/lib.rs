//! Checks elections: explores every run of a small group within a budget of faults, and judges random runs of larger ones.
//!
//! The state machines that are checked are those that run in production. Handlers are pure functions, so exploring needs
//! no copy of an algorithm in another language: the checker hands each process every event that could happen to it.
//!
//! **Exploration.** A check takes a [`Case`](doyen_sim::scenario::Case), as a simulation does. A simulation draws delays; a
//! check tries them all, and the faults that the [`budget`] allows. [`check()`] reports whether the
//! [properties](property) hold in every run. If one does not, it returns a run that violates it: [`minimize`] makes the case
//! smaller, [`counterexample`] writes the run to a file, [`replay`] executes the file and explains the violation.
//!
//! **Random runs.** A [`campaign`] generates fault schedules for the simulator; an [`oracle`] judges each run after every
//! event.
//!
//! In reading order:
//!
//! | module | contents |
//! |---|---|
//! | [`rules`], [`budget`], [`timers`], [`property`], [`selection`], [`part`] | what is explored, which faults are possible, what must hold |
//! | `model` | the state space of a protocol: local states, steps, canonical forms, partial-order reduction |
//! | [`search`] | breadth first on any number of threads, endless runs; knows states as numbers only |
//! | `explore` | from a case to a report |
//! | [`minimize`], [`counterexample`], [`replay`] | the smallest case, its file, the run again with the reason |
//! | [`oracle`], [`campaign`] | a judge for one simulated run; many random runs |
//!
//! The crate has no clock of its own: the caller passes one in the [`search::Plan`].

#![forbid(unsafe_code)]

pub mod budget;
pub mod campaign;
pub mod counterexample;
pub mod ending;
mod explore;
pub mod fingerprint;
pub mod minimize;
mod model;
pub mod oracle;
pub mod part;
pub mod property;
pub mod replay;
pub mod rules;
mod scene;
pub mod search;
pub mod selection;
pub mod timers;

pub use explore::{Report, Violation, check, explore};
pub use model::Explorable;
pub use model::step::StepText;
pub use rules::{MAX_MEMBERS, Rules};
pub use scene::Scene;
pub use timers::{DETECTION, EXPIRIES, Timers};
