//! `doyen keygen`: keys, and the three steps of changing them.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use doyen::key::{Key, Keyring};

use super::Answer;

/// Make a key for a cluster, or change keys without a lost datagram
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen keygen --out doyen.key            then copy doyen.key to every member

Changing the key: each step on one machine; then copy the file to every member and have each read it again (SIGHUP),
before the next. Taken on two machines, a step is taken twice.
  doyen keygen --append doyen.key         everybody can open what the new key seals
  doyen keygen --promote doyen.key        everybody seals with it
  doyen keygen --retire doyen.key         nobody opens the old one any more

Exit: 0 done, 2 the file is wrong or cannot be written.")]
#[group(multiple = false)]
pub(crate) struct Keygen {
    /// Write a new key file that only you can read; an existing file is never overwritten
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Add a new key at the end of a key file: it opens, and does not seal yet
    #[arg(long, value_name = "FILE")]
    append: Option<PathBuf>,

    /// Move the last key of a key file to the front: it seals from now on
    #[arg(long, value_name = "FILE")]
    promote: Option<PathBuf>,

    /// Remove all keys of a key file but the first
    #[arg(long, value_name = "FILE")]
    retire: Option<PathBuf>,
}

impl Keygen {
    pub(crate) fn run(self) -> Result<Answer> {
        let random = "the operating system gives no random numbers";
        match self {
            Self { out: Some(file), .. } => {
                Keyring::generate().context(random)?.create(&file)?;
                say(&file, "has a new key; copy it to every member")
            }
            Self { append: Some(file), .. } => {
                Keyring::append(&file, &Key::generate().context(random)?)?;
                say(&file, "has one key more, which does not seal yet; copy it to every member")
            }
            Self { promote: Some(file), .. } => {
                Keyring::promote(&file)?;
                say(&file, "has its last key in front, which seals now; copy it to every member")
            }
            Self { retire: Some(file), .. } => {
                Keyring::retire(&file)?;
                say(&file, "has its first key only; copy it to every member")
            }
            _ => {
                writeln!(io::stdout(), "{}", Key::generate().context(random)?.to_line())?;
                Ok(Answer::Yes)
            }
        }
    }
}

fn say(file: &Path, what: &str) -> Result<Answer> {
    let mut out = io::stderr();
    writeln!(out, "{} {what}", file.display())?;
    writeln!(out, "a node that has read it {}", Keyring::read(file)?.told())?;
    Ok(Answer::Yes)
}
