//! The files of a trace: `n1.trace`, then `n1.trace.part2` and so on. A file that is full is followed by the next one; if
//! there are too many, the oldest is removed. Only their owner can read them.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Between the name of a trace and the number of one of its files.
const PART: &str = ".part";

/// How much of a trace is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// A file that has this many bytes is full.
    pub file_bytes: u64,
    /// How many files there may be.
    pub files: u32,
}

impl Limits {
    /// As many files of the usual size.
    pub fn of_files(files: u32) -> Self {
        Self { file_bytes: 64_000_000, files }
    }
}

/// The trace that a file belongs to, by the name of its first file.
pub fn trace_of(file: &Path) -> PathBuf {
    split(file).map_or_else(|| file.to_owned(), |(trace, _)| trace)
}

/// The files of the trace that `file` belongs to, in order. The first ones may have been removed.
pub fn files_of(file: &Path) -> io::Result<Vec<PathBuf>> {
    let trace = trace_of(file);
    let folder = trace.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder.unwrap_or(Path::new(".")))? {
        let path = trace.with_file_name(entry?.file_name());
        match split(&path) {
            Some((of, part)) if of == trace => found.push((part, path)),
            None if path == trace => found.push((1, path)),
            _ => {}
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// The trace and the number of a file that is not the first.
fn split(file: &Path) -> Option<(PathBuf, u32)> {
    let (name, part) = file.file_name()?.to_str()?.rsplit_once(PART)?;
    let part = part.parse().ok().filter(|&number: &u32| number > 1 && part == number.to_string());
    Some((file.with_file_name(name), part?))
}

fn path_of(trace: &Path, part: u32) -> PathBuf {
    let mut path = trace.to_owned();
    if part > 1 {
        path.as_mut_os_string().push(format!("{PART}{part}"));
    }
    path
}

/// Creates a file of a trace, which must not exist.
pub(super) fn create(trace: &Path, part: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path_of(trace, part))
}

/// Removes a file of a trace, if it exists.
pub(super) fn remove(trace: &Path, part: u32) -> io::Result<()> {
    match fs::remove_file(path_of(trace, part)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::scratch::Scratch;

    #[test]
    fn the_files_of_a_trace_are_found_in_their_order() {
        let folder = Scratch::new();
        let own = ["n1.trace", "n1.trace.part2", "n1.trace.part10"];
        let others =
            ["n1.trace.7", "n1.trace.7.part2", "n1.trace.part02", "n1.trace.partly", "n11.trace"];
        for name in own.iter().rev().chain(&others) {
            fs::write(folder.join(name), "").unwrap();
        }
        let found = |name: &str| files_of(&folder.join(name)).unwrap();
        let expected = own.map(|name| folder.join(name));
        for name in own {
            assert_eq!(found(name), expected, "{name}");
        }
        remove(&folder.join("n1.trace"), 1).unwrap();
        remove(&folder.join("n1.trace"), 1).unwrap();
        assert_eq!(found("n1.trace"), expected[1..]);
        assert_eq!(
            found("n1.trace.7"),
            ["n1.trace.7", "n1.trace.7.part2"].map(|it| folder.join(it))
        );
        assert_eq!(found("nothing"), [] as [PathBuf; 0]);
    }
}
