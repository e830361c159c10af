//! The election algorithms of the seeds.

pub mod bully;
mod catalogue;
pub mod chang_roberts;
pub mod leader_tracker;
pub mod modified_bully;
pub mod quorum;
pub mod ring;
pub mod ring_active_list;
pub mod ring_all_ids;
pub mod ring_list;
pub mod ring_resilient;
pub mod roll_call;

pub use catalogue::{Algorithm, PROMISES, Promise};
