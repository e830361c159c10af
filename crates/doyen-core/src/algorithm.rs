//! The election algorithms of the seeds.

pub mod allegiance;
pub mod bully;
mod catalogue;
pub mod modified_bully;
pub mod ring;
pub mod ring_list;
pub mod ring_resilient;

pub use catalogue::{Algorithm, PROMISES, Promise};
