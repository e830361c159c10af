//! `doyen lab`: a cluster of real processes on this machine, with a page to watch it, break it and study elections.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;
use clap::{Args, value_parser};
use doyen_core::config::quorum::Profile;
use doyen_core::registry::Algorithm;

use super::Answer;
use crate::lab::{self, Options};

/// Run a cluster of real processes on this machine, with a page to watch it, break it and study elections
///
/// Open the address that is printed. Its last part is the key of this lab: anyone who has it can kill nodes. Ctrl-C ends the
/// lab and all its nodes.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen lab --open
  doyen lab --algorithm bully --members 7

The page also simulates, races and checks elections; that part needs no nodes. `doyen cluster` is the same in the terminal.")]
pub(super) struct Lab {
    /// Number of members, up to 50; the highest id has the highest priority
    #[arg(long, default_value_t = 5, value_name = "COUNT", value_parser = value_parser!(u32).range(1..=50))]
    members: u32,
    /// Election algorithm
    #[arg(long, default_value_t = Algorithm::Quorum, value_parser = Algorithm::for_node, value_name = "NAME")]
    algorithm: Algorithm,
    /// How fast: fast, lan or wan. A busy machine fails `fast`
    #[arg(long, default_value = "lan", value_name = "PROFILE")]
    profile: Profile,
    /// Serve the page at this port of 127.0.0.1 [default: 7480, or another one if that is taken]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    /// Keep the members' folders, with their logs, in this new folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

impl Lab {
    pub(super) fn run(self) -> Result<Answer> {
        let options = Options {
            members: self.members,
            algorithm: self.algorithm,
            profile: self.profile,
            port: self.port,
            keep: self.keep,
        };
        let opens = self.open;
        lab::run(&options, |url, folder| {
            if opens && let Err(error) = open(url, folder) {
                let _ = writeln!(std::io::stderr(), "doyen: cannot open the page: {error}");
            }
        })?;
        Ok(Answer::Yes)
    }
}

/// Opens an address in the user's browser: by a file that only the user can read, because all users can read the arguments
/// of a program and the address holds the key. If it fails, the address has been printed.
fn open(url: &str, folder: &Path) -> std::io::Result<()> {
    let file = folder.join("open.html");
    let mut page = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file)?;
    write!(page, "<!doctype html><meta http-equiv=\"refresh\" content=\"0; url={url}\">")?;
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(drop)
}
