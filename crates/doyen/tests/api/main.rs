//! The HTTP interface over real connections, before a node whose loop is a stand-in.

mod fake;
mod http;

mod door;
mod health;
mod machines;
mod orders;
mod report;
mod watch;
