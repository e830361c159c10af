//! The file system under a store: folders, permissions, the lock, and files that appear whole or not at all.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::slot::{FILE, Image, SLOT};
use super::{StoreError, refused};
use crate::files;

/// Adds the path and the operation to an error of the system.
pub(super) fn failed(path: &Path, doing: &'static str) -> impl Fn(io::Error) -> StoreError {
    move |error| StoreError::Io { path: path.to_owned(), doing, error }
}

/// The path of the state, if it exists and no other user can change it.
pub(super) fn check_present(folder: &Path) -> Result<PathBuf, StoreError> {
    let path = folder.join("state");
    let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    match fs::metadata(&path) {
        Err(error) if is_missing(&error) => return Err(StoreError::Missing(path)),
        Err(error) => return Err(failed(&path, "cannot be read")(error)),
        Ok(_) => check_folder(folder)?,
    }
    Ok(path)
}

/// Creates the folder if necessary, and checks it.
pub(super) fn make_folder(folder: &Path) -> Result<(), StoreError> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => {
            sync_folder(files::parent(folder))?;
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(failed(folder, "cannot be created")(error)),
    }
    check_folder(folder)
}

/// A user that can write here can take a vote back.
fn check_folder(folder: &Path) -> Result<(), StoreError> {
    let meta = fs::metadata(folder).map_err(failed(folder, "cannot be read"))?;
    if !meta.is_dir() {
        return Err(failed(folder, "cannot hold a state")(io::ErrorKind::NotADirectory.into()));
    }
    check_mode(folder, &meta)
}

fn check_mode(path: &Path, meta: &fs::Metadata) -> Result<(), StoreError> {
    let mode = meta.mode() & 0o777;
    if mode & 0o022 != 0 {
        return Err(StoreError::Exposed { path: path.to_owned(), mode });
    }
    Ok(())
}

/// Prevents another process from running with the state in `folder`.
pub(super) fn lock(folder: &Path) -> Result<File, StoreError> {
    let path = folder.join("lock");
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.open(&path).map_err(failed(&path, "cannot be opened"))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(locked(folder, &mut file)),
        Err(TryLockError::Error(error)) => return Err(failed(&path, "cannot be locked")(error)),
    }
    // For an error message only, so a full disk does not matter. The fixed width overwrites the id before.
    let _ = file.write_all_at(format!("{:10}\n", std::process::id()).as_bytes(), 0);
    Ok(file)
}

/// Whether a process has the lock. What else is wrong with it shows when it is taken.
pub(super) fn check_lock(folder: &Path) -> Result<(), StoreError> {
    let Ok(mut file) = File::open(folder.join("lock")) else { return Ok(()) };
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Err(locked(folder, &mut file)),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

/// The error that a process has the lock, with its id.
fn locked(folder: &Path, file: &mut File) -> StoreError {
    let mut text = String::new();
    let pid = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
    StoreError::Locked { path: folder.to_owned(), pid, rejoins: false }
}

/// Opens the file and reads both slots; missing bytes read as zeros.
pub(super) fn read(path: &Path, options: &OpenOptions) -> Result<(File, Image), StoreError> {
    let mut file = options.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => StoreError::Missing(path.to_owned()),
        _ => failed(path, "cannot be opened")(error),
    })?;
    let unreadable = failed(path, "cannot be read");
    check_mode(path, &file.metadata().map_err(&unreadable)?)?;
    let mut image = [0; FILE];
    let mut filled = 0;
    while filled < FILE {
        match file.read(&mut image[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(error)),
        }
    }
    Ok((file, image))
}

/// Replaces the state by a new file with this first slot. The old state is copied to `state.old`, not moved, so that it is
/// in place until the new file is.
pub(super) fn replace(folder: &Path, keep: bool, slot: &[u8; SLOT]) -> Result<File, StoreError> {
    let [path, old, new] = ["state", "state.old", "state.new"].map(|name| folder.join(name));
    // A process that was interrupted may have left one.
    if let Err(error) = fs::remove_file(&new)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(failed(&new, "cannot be removed")(error));
    }
    let file = write_new(&new, slot)?;
    if keep {
        let copied = fs::copy(&path, &old).and_then(|_| File::open(&old)?.sync_all());
        if let Err(error) = copied
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(failed(&path, "cannot be kept as state.old")(error));
        }
    }
    fs::rename(&new, &path).map_err(failed(&new, "cannot be moved to state"))?;
    sync_folder(folder)?;
    // Not before, not even in a crash: the refused state must not become usable.
    forget_refusal(folder)?;
    sync_folder(folder)?;
    Ok(file)
}

/// Creates a file with this first slot, whole and synced, or none.
pub(super) fn write_new(path: &Path, slot: &[u8; SLOT]) -> Result<File, StoreError> {
    let mut options = OpenOptions::new();
    let opened = options.read(true).write(true).create_new(true).mode(0o600).open(path);
    let file = opened.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => StoreError::Exists(path.to_owned()),
        _ => failed(path, "cannot be created")(error),
    })?;
    let mut image = [0; FILE];
    image[..SLOT].copy_from_slice(slot);
    if let Err(error) = file.write_all_at(&image, 0).and_then(|()| file.sync_all()) {
        // An incomplete state must not stay.
        let _ = fs::remove_file(path);
        return Err(failed(path, "cannot be written")(error));
    }
    Ok(file)
}

/// A new file survives a crash only after its folder is synced.
pub(super) fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    files::sync_folder(folder).map_err(failed(folder, "cannot be synced"))
}

/// Another state takes the place of a refused one.
pub(super) fn forget_refusal(folder: &Path) -> Result<(), StoreError> {
    refused::forget(folder).map_err(failed(&refused::path(folder), "cannot be removed"))
}
