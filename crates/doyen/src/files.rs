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
/// with a `draft` of its own: one of them succeeds.
#[cfg(feature = "http")]
pub(crate) fn create(path: &Path, draft: &Path, mode: u32, contents: &str) -> io::Result<()> {
    let name = || or_rename(fs::hard_link(draft, path), draft, path);
    let created = write(draft, mode, contents).and_then(|()| name());
    // A draft that cannot be removed stays.
    let _ = fs::remove_file(draft);
    created.and_then(|()| sync_folder_of(path))
}

/// Renames a draft that could not be linked because the file system has no hard links. What is at `path` stays.
#[cfg(feature = "http")]
fn or_rename(linked: io::Result<()>, draft: &Path, path: &Path) -> io::Result<()> {
    use io::ErrorKind::{PermissionDenied, Unsupported};
    use rustix::fs::{CWD, RenameFlags, renameat_with};

    match linked {
        Err(error) if matches!(error.kind(), PermissionDenied | Unsupported) => {
            Ok(renameat_with(CWD, draft, CWD, path, RenameFlags::NOREPLACE)?)
        }
        linked => linked,
    }
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

    #[cfg(feature = "http")]
    #[test]
    fn without_hard_links_a_file_is_not_replaced_either() {
        let scratch = Scratch::new();
        let [path, draft] = ["it", "draft"].map(|name| scratch.join(name));
        let name = |error| or_rename(Err(io::Error::from_raw_os_error(error)), &draft, &path);
        for error in [libc::EPERM, libc::ENOSYS, libc::EOPNOTSUPP] {
            let _ = fs::remove_file(&path);
            fs::write(&draft, "one").unwrap();
            name(error).expect("there is none yet");
            fs::write(&draft, "two").unwrap();
            let refused = name(error).expect_err("there is one");
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        }
        fs::remove_file(&path).unwrap();
        let failed = name(libc::EIO).expect_err("the disk is broken");
        assert_eq!((failed.raw_os_error(), path.exists()), (Some(libc::EIO), false));
    }
}
