//! Files that are replaced as a whole, or not at all, also if the machine fails.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Replaces what is at `path`, or creates it with `mode`. A reader gets all of the old content or all of the new. One
/// process writes at a time.
pub(crate) fn replace(path: &Path, mode: u32, contents: &str) -> io::Result<()> {
    let draft = beside(path, ".draft");
    // A process that was interrupted may have left one.
    let _ = fs::remove_file(&draft);
    let replaced = write(&draft, mode, contents).and_then(|()| fs::rename(&draft, path));
    if replaced.is_err() {
        // A draft that cannot be removed stays.
        let _ = fs::remove_file(&draft);
    }
    replaced.and_then(|()| sync_folder_of(path))
}

/// Creates what is not at `path`, and fails with `AlreadyExists` if it is there. Several processes may do so at once, each
/// with a `draft` of its own: one of them succeeds. On a file system without hard links the last one does.
#[cfg(feature = "http")]
pub(crate) fn create(path: &Path, draft: &Path, mode: u32, contents: &str) -> io::Result<()> {
    let name = || match fs::hard_link(draft, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => fs::rename(draft, path),
        named => named,
    };
    let created = write(draft, mode, contents).and_then(|()| name());
    // A draft that cannot be removed stays.
    let _ = fs::remove_file(draft);
    created.and_then(|()| sync_folder_of(path))
}

/// Writes a new file.
fn write(path: &Path, mode: u32, contents: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(contents.as_bytes()).and_then(|()| file.sync_all())
}

/// A hint for the error that this user may not open a file.
pub(crate) fn hint_if_denied(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; make it and its folder belong to the user that doyen runs as (`chown`), or run doyen as their owner (`sudo -u`)"
        }
        _ => "",
    }
}

/// Makes sure that the name of this file survives a power failure.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    sync_folder(parent(path))
}

/// Makes sure that the names of the files in this folder survive a power failure.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The folder in which this is.
pub(crate) fn parent(path: &Path) -> &Path {
    let parent = path.parent().unwrap_or(Path::new("/"));
    if parent.as_os_str().is_empty() { Path::new(".") } else { parent }
}

/// A file in the same folder.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::os::unix::fs::PermissionsExt as _;

    use crate::scratch::Scratch;

    #[test]
    fn a_file_is_replaced_or_stays_and_no_draft_is_left() {
        let scratch = Scratch::new();
        let path = scratch.join("it");
        fs::write(beside(&path, ".draft"), "of one that was killed").unwrap();
        replace(&path, 0o600, "one").unwrap();
        replace(&path, 0o600, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let folder = scratch.join("folder");
        fs::create_dir(&folder).unwrap();
        replace(&folder, 0o600, "three").expect_err("a folder is no file");
        let mut left: Vec<_> =
            fs::read_dir(scratch.join(".")).unwrap().flatten().map(|it| it.file_name()).collect();
        left.sort();
        assert_eq!(left, ["folder", "it"]);
    }
}
