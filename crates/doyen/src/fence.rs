//! The resource's half of fencing: it remembers the highest fencing token that it has seen and refuses lower ones.
//!
//! A leader that was paused, or whose lease is over, may still act: no lease prevents what is already on its way. A
//! resource that compares tokens makes that harmless. A database does so in its own transactions (`examples/fenced_writer.rs`);
//! a [`Fence`] is for resources that cannot, and `doyen fence` is the same as a command.
//!
//! ```
//! use doyen::fence::Fence;
//! use doyen::leadership::FencingToken;
//!
//! # let folder = std::env::temp_dir().join(format!("doyen-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! let fence = Fence::at(folder.join("fence"));
//! let entered = fence.enter(FencingToken(7))?;
//! // … write to the resource; no other holder of a token does meanwhile …
//! drop(entered);
//! assert!(fence.enter(FencingToken(6)).is_err());
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **The file** is one line: `doyen-fence 1 TOKEN`. It is replaced as a whole, and file and folder are synced before the
//! caller may act: after a crash it holds the old line or the new one. Beside it, `FILE.lock` carries the lock and nothing
//! else. The lock is exclusive and held from the comparison until the holder is done, so an older holder cannot act after a
//! newer one has begun. Remove neither file: a resource without its memory accepts any token.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use crate::files;
use crate::leadership::FencingToken;

/// What the file begins with.
const PREFIX: &str = "doyen-fence 1 ";

/// Why a holder of a token may not act. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum FenceError {
    /// A newer holder has been here.
    #[error("fencing token {token} is older than {newest}, the newest one of {}", path.display())]
    Older {
        /// The token that was presented.
        token: FencingToken,
        /// The highest one so far.
        newest: FencingToken,
        /// The file.
        path: PathBuf,
    },
    /// The file is not one of ours, or is damaged.
    #[error(
        "{} does not hold a fencing token, so it is not known which tokens are old. Stop everything that uses it, then write \
         `{PREFIX}TOKEN` into it, with a token at least as high as any that was used", path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
    },
    /// The file, its lock or its folder cannot be used.
    #[error("cannot use {}: {error}. Its folder must exist, and all users of the resource must be able to write to it", path.display())]
    Io {
        /// What cannot be used.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// A file that remembers the highest fencing token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fence {
    path: PathBuf,
}

/// The right to act on the resource. While it lasts no other holder of a token gets it.
#[derive(Debug)]
pub struct Entered {
    lock: File,
}

impl AsFd for Entered {
    /// The lock. It is held until every copy of this descriptor is closed, those in other processes included.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.lock.as_fd()
    }
}

impl Fence {
    /// A fence with this file, which the first holder creates. All who use the resource need the same file.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        // Of a link, the target: the lock lies beside it, whatever the link is called.
        let target = path.is_symlink().then(|| fs::canonicalize(&path).ok()).flatten();
        Self { path: target.unwrap_or(path) }
    }

    /// The highest token so far, if there is one.
    pub fn newest(&self) -> Result<Option<FencingToken>, FenceError> {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&self.path)(error)),
        };
        let corrupt = || FenceError::Corrupt { path: self.path.clone() };
        let text = String::from_utf8(text).map_err(|_| corrupt())?;
        let number = text.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix('\n'));
        let token =
            number.and_then(|number| number.parse().ok()).map(FencingToken).ok_or_else(corrupt)?;
        // A number can be written in one way only.
        if text == line(token) { Ok(Some(token)) } else { Err(corrupt()) }
    }

    /// Shows `token`, and waits until no other holder acts. An older token than the newest is refused, at once if it is old
    /// already; otherwise it is the newest from now on, also after a crash.
    pub fn enter(&self, token: FencingToken) -> Result<Entered, FenceError> {
        self.check(token)?;
        let path = files::beside(&self.path, ".lock");
        let lock =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let lock = lock.map_err(failed(&path))?;
        lock.lock().map_err(failed(&path))?;
        if self.check(token)? != Some(token) {
            self.replace(token)?;
        }
        // Also if the token is there already: its holder may have been killed before it got here.
        files::sync_folder_of(&self.path).map_err(failed(&self.path))?;
        Ok(Entered { lock })
    }

    /// The newest token, if this one is not older.
    fn check(&self, token: FencingToken) -> Result<Option<FencingToken>, FenceError> {
        match self.newest()? {
            Some(newest) if token < newest => {
                Err(FenceError::Older { token, newest, path: self.path.clone() })
            }
            newest => Ok(newest),
        }
    }

    /// Replaces the file; the lock is held.
    fn replace(&self, token: FencingToken) -> Result<(), FenceError> {
        files::replace(&self.path, 0o666, &line(token)).map_err(failed(&self.path))
    }
}

fn line(token: FencingToken) -> String {
    format!("{PREFIX}{token}\n")
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> FenceError {
    let path = path.to_owned();
    move |error| FenceError::Io { path, error }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn an_older_token_is_refused_and_an_equal_or_newer_one_is_not() {
        let folder = Scratch::new();
        let fence = Fence::at(folder.join("fence"));
        assert_eq!(fence.newest().unwrap(), None);
        for (token, newest, is_refused) in
            [(5, 5, false), (5, 5, false), (4, 5, true), (9, 9, false)]
        {
            assert_eq!(fence.enter(FencingToken(token)).is_err(), is_refused, "{token}");
            assert_eq!(fence.newest().unwrap(), Some(FencingToken(newest)));
        }
        let error = fence.enter(FencingToken(8)).unwrap_err().to_string();
        assert!(
            error.starts_with("fencing token 8 is older than 9, the newest one of "),
            "{error}"
        );
        assert_eq!(fs::read_to_string(folder.join("fence")).unwrap(), "doyen-fence 1 9\n");
    }

    #[test]
    fn a_damaged_file_is_refused_and_left_as_it_is() {
        let folder = Scratch::new();
        let path = folder.join("fence");
        let fence = Fence::at(&path);
        let wrong = ["", "9", "9\n", "doyen-fence 1 9", "doyen-fence 2 9\n", "doyen-fence 1 +9\n"];
        for text in wrong.map(str::as_bytes).into_iter().chain([&b"\xff\n"[..]]) {
            fs::write(&path, text).unwrap();
            let error = fence.enter(FencingToken(u64::MAX)).unwrap_err();
            assert!(matches!(error, FenceError::Corrupt { .. }), "{error}");
            assert!(error.to_string().contains("write `doyen-fence 1 TOKEN` into it"), "{error}");
            assert_eq!(fs::read(&path).unwrap(), text);
        }
        fs::write(&path, "doyen-fence 1 9\n").unwrap();
        assert!(fence.enter(FencingToken(9)).is_ok(), "the remedy helps");
    }

    #[test]
    fn what_a_crash_leaves_behind_does_no_harm() {
        let folder = Scratch::new();
        let fence = Fence::at(folder.join("fence"));
        drop(fence.enter(FencingToken(5)).unwrap());
        fs::write(folder.join("fence.draft"), "doyen-fence 1 99\n").unwrap();
        assert_eq!(fence.newest().unwrap(), Some(FencingToken(5)));
        assert!(fence.enter(FencingToken(4)).is_err());
        drop(fence.enter(FencingToken(6)).unwrap());
        assert_eq!(fence.newest().unwrap(), Some(FencingToken(6)));
    }

    #[test]
    fn a_link_leads_to_the_same_fence() {
        let folder = Scratch::new();
        let fence = Fence::at(folder.join("fence"));
        drop(fence.enter(FencingToken(5)).unwrap());
        std::os::unix::fs::symlink(folder.join("fence"), folder.join("link")).unwrap();
        let link = Fence::at(folder.join("link"));
        drop(link.enter(FencingToken(6)).unwrap());
        assert!(fence.enter(FencingToken(5)).is_err() && !folder.join("link.lock").exists());
    }

    #[test]
    fn of_many_at_once_none_acts_after_a_newer_one_and_no_two_act_together() {
        let folder = Scratch::new();
        let fence = Fence::at(folder.join("fence"));
        let (inside, last) = (AtomicU64::new(0), AtomicU64::new(0));
        let entered: u64 = thread::scope(|scope| {
            let act = |token: u64| {
                let Ok(_entered) = fence.enter(FencingToken(token)) else { return 0 };
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "alone");
                assert!(last.swap(token, Ordering::SeqCst) <= token, "in the order of the tokens");
                thread::yield_now();
                inside.fetch_sub(1, Ordering::SeqCst);
                1
            };
            let threads: Vec<_> = (0..8)
                .map(|first| {
                    scope.spawn(move || (0..25).map(|round| act(first + round * 3)).sum::<u64>())
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert!(entered > 25, "{entered} entered");
        assert_eq!(fence.newest().unwrap(), Some(FencingToken(7 + 24 * 3)));
    }
}
