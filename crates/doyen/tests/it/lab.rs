//! `doyen lab`, without a browser: the real program, its nodes, and requests as a page or a stranger would send them.

mod cluster;
mod engine;
mod harness;
mod process;
mod security;
