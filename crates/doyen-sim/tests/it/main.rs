//! Tests of the simulator.

mod hardened;
mod render;
mod world;
