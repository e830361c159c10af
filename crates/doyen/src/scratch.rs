//! For tests: folders that are gone afterwards, and a user who may not do everything.

use std::ops::Deref;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder of this test's own.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("doyen-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
        Self(path)
    }
}

impl Deref for Scratch {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A test that failed is not to be hidden by a folder that cannot be removed.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Does `work` as a user who is subject to permissions, unlike root.
pub(crate) fn as_nobody(work: impl FnOnce() + Send) {
    let nobody = rustix::process::Uid::from_raw(65_534);
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if rustix::process::geteuid().is_root() {
                // Of this thread alone.
                rustix::thread::set_thread_uid(nobody).unwrap();
            }
            work();
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}
