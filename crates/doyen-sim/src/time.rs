//! Virtual time.

pub use doyen_core::time::Time;
