//! Simulates coordinator elections message by message.

pub mod account;
pub mod claims;
pub mod expect;
pub mod fault;
pub mod formula;
pub mod hash;
pub mod network;
pub mod plan;
pub mod queue;
pub mod random;
pub mod record;
pub mod render;
pub mod row;
pub mod run;
pub mod scenario;
pub mod selfcheck;
pub mod summary;
pub mod sweep;
pub mod time;
pub mod trace;
pub mod world;
