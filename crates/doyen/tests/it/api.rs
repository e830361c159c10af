//! The HTTP interface over real connections, in front of a fake node; and the commands that use it.

mod fake;
mod http;

mod admin;
mod commands;
mod forward;
mod health;
mod machines;
mod permit;
mod report;
mod server;
mod watch;
