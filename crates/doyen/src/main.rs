//! The `doyen` command.

// They panic if the reader has gone: see `is_broken_pipe`.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod cli;
mod lab;
mod local;

use std::process::ExitCode;

fn main() -> ExitCode {
    match doyen::guardian::play_part(std::env::args_os().skip(1)) {
        Some(code) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
        None => cli::main(),
    }
}
