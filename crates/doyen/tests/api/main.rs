//! The HTTP interface over real connections, before a node whose loop is a stand-in; and the commands that use it.

mod fake;
mod http;

mod commands;
mod door;
mod health;
mod machines;
mod orders;
mod report;
mod watch;
