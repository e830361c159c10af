//! The election algorithms of the seeds.

pub mod allegiance;
pub mod bully;
mod catalogue;
pub mod modified_bully;
pub mod ring;

pub use catalogue::{Algorithm, PROMISES, Promise};
