//! `doyen fence FILE --token T -- COMMAND`: runs a command unless its fencing token is older than one that FILE remembers.
//!
//! This process becomes the command, which inherits the lock: it is held as long as the command or one of its children
//! runs, even if doyen is killed, and signals and exit code are the command's own.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, anyhow, bail};
use clap::Args;
use doyen::fence::{Fence as Resource, FenceError};
use doyen::guardian::{CANNOT_EXECUTE, FAILED, NOT_FOUND};
use doyen::leadership::FencingToken;
use rustix::io::{FdFlags, fcntl_setfd};

use super::Answer;
use super::run::cannot_execute;

const VARIABLE: &str = "DOYEN_TOKEN";

/// Run a command unless a newer leader has been here: refuse old fencing tokens
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen fence /srv/orders/fence --token 7340032 -- ./write
  doyen run -- doyen fence /srv/orders/fence -- ./job

FILE belongs to the resource: it remembers the highest fencing token, also after a crash. All who
use the resource need the same FILE. A token as high or higher is stored, and then the command
runs; others wait until it and its children have ended. An older token is refused.

Exit: the exit code of the command; 1 the token is old; 125 doyen failed, for example because FILE
is damaged; 126 or 127 the command cannot be executed, 2 wrong usage.")]
pub(crate) struct Fence {
    /// The file that remembers the highest token; the first command creates it
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The fencing token [default: `DOYEN_TOKEN`]
    #[arg(long, value_name = "TOKEN", value_parser = parse_token)]
    token: Option<FencingToken>,

    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Fence {
    pub(crate) fn run(&self) -> Result<Answer> {
        let token = self.token.map_or_else(token_of_environment, Ok)?;
        let program = &self.command[0];
        let failed = |code, why: &dyn std::fmt::Display| {
            let _ = writeln!(io::stderr(), "doyen: {why}");
            Ok(Answer::Code(code))
        };
        let cannot = format!("cannot execute {}", program.display());
        if let Some(code) = cannot_execute(program) {
            return failed(code, &cannot);
        }
        let entered = match Resource::at(&self.file).enter(token) {
            Ok(entered) => entered,
            Err(error @ FenceError::Older { .. }) => return failed(1, &error),
            Err(error) => return failed(FAILED, &error),
        };
        if let Err(error) = fcntl_setfd(entered.as_fd(), FdFlags::empty()) {
            return failed(FAILED, &format!("cannot pass the lock on: {error}"));
        }
        let mut command = Command::new(program);
        command.args(&self.command[1..]).env(VARIABLE, token.to_string());
        let error = command.exec();
        let code = match error.kind() {
            io::ErrorKind::NotFound => NOT_FOUND,
            _ => CANNOT_EXECUTE,
        };
        failed(code, &format!("{cannot}: {error}"))
    }
}

fn token_of_environment() -> Result<FencingToken> {
    let Some(text) = std::env::var_os(VARIABLE) else {
        bail!(
            "there is no fencing token: give --token, or use it under `doyen run`, which sets {VARIABLE}"
        );
    };
    parse_token(&text.to_string_lossy())
        .map_err(|remedy| anyhow!("{VARIABLE}: invalid value '{}': {remedy}", text.display()))
}

fn parse_token(text: &str) -> Result<FencingToken, &'static str> {
    text.parse().map(FencingToken).map_err(|_| "a fencing token is a number such as 7340032")
}
