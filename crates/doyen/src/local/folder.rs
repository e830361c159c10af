//! The folder of the members' folders.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// Removed when this is dropped, unless the user has named it.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    temporary: bool,
}

impl Folder {
    /// `keep`: the new folder that the user wants to keep. `command`: what a temporary one is named after.
    pub(crate) fn create(keep: Option<&Path>, command: &str) -> Result<Self> {
        let path = match keep {
            Some(path) => path.to_owned(),
            None => {
                // One that was killed leaves its folder behind, and its pid is used again.
                let (pid, random) =
                    (std::process::id(), getrandom::u32().map_err(io::Error::other)?);
                std::env::temp_dir().join(format!("doyen-{command}-{pid}-{random:08x}"))
            }
        };
        let failed = || format!("cannot create the folder {}", path.display());
        std::fs::create_dir(&path).with_context(failed)?;
        // Children may have another working folder in mind than the one that a relative path was written for.
        let path = path.canonicalize().with_context(failed)?;
        Ok(Self { path, temporary: keep.is_none() })
    }

    /// For people: where it is, and what becomes of it.
    pub(crate) fn describe(&self) -> String {
        let fate = if self.temporary { "removed" } else { "kept" };
        format!("{} (configuration, keys, states and logs; {fate} at the end)", self.path.display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.temporary {
            // What cannot be removed is left in the folder for temporary files.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_folder_is_new_even_if_the_pid_is_not() {
        let folders = [0; 2].map(|_| Folder::create(None, "test").expect("a folder"));
        assert_ne!(folders[0].path, folders[1].path);
        let paths = folders.each_ref().map(|folder| folder.path.clone());
        drop(folders);
        assert!(paths.iter().all(|path| !path.exists()), "both are removed");
    }
}
