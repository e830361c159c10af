//! `doyen keygen`: a new key, and the three steps of a key rotation.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use doyen::key::{Key, KeyFile, Keyring};

use super::Answer;

/// Make a key for a cluster, or rotate keys without downtime
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen keygen --out doyen.key            then copy doyen.key to every member

To rotate keys, take each step on one machine; then copy the file to every member and make each node read it
(`doyen reload-keys` or SIGHUP) before the next step:
  doyen keygen --append doyen.key         every member can open what the new key seals
  doyen keygen --promote doyen.key        every member seals with it
  doyen keygen --retire doyen.key         the old key is gone

Exit: 0 done, 2 the file is wrong or cannot be written.")]
#[group(multiple = false)]
pub(crate) struct Keygen {
    /// Write a new key file that only you can read; an existing file is not overwritten
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Append a new key to a key file: it opens, and does not seal yet
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
                say(&file, "has a new key; copy the file to every member")
            }
            Self { append: Some(file), .. } => {
                KeyFile::private(&file).add(&Key::generate().context(random)?)?;
                say(&file, "has a new key, which does not seal yet; copy the file to every member")
            }
            Self { promote: Some(file), .. } => {
                let keys = KeyFile::private(&file);
                keys.several()?.last().map_or(Ok(()), |newest| keys.promote(newest, None))?;
                say(&file, "now seals with its newest key; copy the file to every member")
            }
            Self { retire: Some(file), .. } => {
                let keys = KeyFile::private(&file);
                keys.several()?.first().map_or(Ok(()), |first| keys.retire(first, None))?;
                say(&file, "has only its first key left; copy the file to every member")
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
    writeln!(out, "a node that reads it {}", Keyring::read(file)?.told())?;
    Ok(Answer::Yes)
}
