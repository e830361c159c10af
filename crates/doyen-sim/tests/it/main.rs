//! Tests of the simulator.

mod hardened;
mod lock_service;
mod render;
mod world;
