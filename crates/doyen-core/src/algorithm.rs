//! The election algorithms of the seeds.

pub mod allegiance;
pub mod bully;

