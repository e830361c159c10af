//! Marks a state that other members have refused: it is an old copy, or a clone.
//!
//! Every start raises the incarnation. If a supervisor simply restarted a node whose state was refused, after a few starts
//! it would look like a new incarnation of its member, with a state that has forgotten votes. So the file `refused` beside
//! the state contains the incarnation that was refused. It counts as long as that is the last incarnation of the state.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use doyen_core::members::Incarnation;

use crate::files;

/// Marks the state in `folder` as refused in this incarnation.
pub(crate) fn note(folder: &Path, incarnation: Incarnation) -> io::Result<()> {
    files::replace(&path(folder), 0o600, &format!("{}\n", incarnation.0))
}

/// Whether the state in `folder`, whose last incarnation this is, was refused.
pub(super) fn is_noted(folder: &Path, incarnation: u32) -> io::Result<bool> {
    match fs::read_to_string(path(folder)) {
        Ok(text) => Ok(text.trim().parse() == Ok(incarnation)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

pub(super) fn forget(folder: &Path) -> io::Result<()> {
    match fs::remove_file(path(folder)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

pub(super) fn path(folder: &Path) -> PathBuf {
    folder.join("refused")
}
