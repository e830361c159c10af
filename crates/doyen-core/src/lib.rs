//! Coordinator elections as pure state machines.

pub mod algorithm;
pub mod config;
pub mod members;
pub mod protocol;
pub mod time;
