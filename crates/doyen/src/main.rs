//! The `doyen` command.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    match doyen::guardian::play_part(std::env::args_os().skip(1)) {
        Some(code) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
        None => cli::main(),
    }
}
