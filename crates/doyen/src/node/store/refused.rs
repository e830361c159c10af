//! That other members have refused a state: it was an old copy, or a clone.
//!
//! Every start raises the incarnation. A node whose state was refused and that is simply started again, as a supervisor
//! does, would after a few starts look like a new life of its member, with a state that has forgotten votes. So the
//! refusal is written down beside the state, with the life that was refused: `refused`. It counts for as long as that is
//! the last life of the state that lies there.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use doyen_core::members::Incarnation;

/// Notes that the state in `folder` was refused in this life.
pub(crate) fn note(folder: &Path, life: Incarnation) -> io::Result<()> {
    let mut file = File::create(path(folder))?;
    writeln!(file, "{}", life.0)?;
    file.sync_all()?;
    File::open(folder)?.sync_all()
}

/// Whether the state in `folder`, whose last life this is, was refused.
pub(super) fn is_noted(folder: &Path, life: u32) -> io::Result<bool> {
    match fs::read_to_string(path(folder)) {
        Ok(text) => Ok(text.trim().parse() == Ok(life)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Another state lies there now.
pub(super) fn forget(folder: &Path) -> io::Result<()> {
    match fs::remove_file(path(folder)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

pub(super) fn path(folder: &Path) -> PathBuf {
    folder.join("refused")
}
