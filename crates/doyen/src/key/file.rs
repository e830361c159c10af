//! Key files: read, made, and rewritten for a rotation.
//!
//! A file that others can read is refused, not warned about: its keys are no secret any more. What is written appears
//! whole or not at all. A new file has mode 0600 and never replaces anything; one that is rewritten keeps its mode,
//! its owner and its comments.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use super::{Key, KeyError, Keyring, without_comment};

/// No key file is longer. What is longer is something else.
const LONGEST: u64 = 64 * 1024;

/// Permission bits of everybody but the owner.
const OTHERS: u32 = 0o077;

/// Why a key file cannot be used. Nothing has been changed then.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It cannot be read.
    #[error("cannot read the keys in {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is too long for a key file.
    #[error("{} is no key file: it is longer than {LONGEST} bytes", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// Others can read it.
    #[error(
        "others can read the keys in {} (its mode is {mode:04o}); type: chmod 600 {}",
        path.display(), path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Its text is wrong.
    #[error("{}: {fault}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        fault: KeyError,
    },
    /// It is there already, and would have to be replaced.
    #[error("{} is there already; it is not overwritten, so name another file", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be written.
    #[error("cannot write the keys to {}: {error}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// There is one key only.
    #[error(
        "{} has one key only; add another first: doyen keygen --append {}",
        path.display(), path.display()
    )]
    OnlyOne {
        /// The file.
        path: PathBuf,
    },
}

impl Keyring {
    /// The keys in a file; those of everybody, if there is none.
    pub fn of(file: Option<&Path>) -> Result<Self, KeyFileError> {
        file.map_or_else(|| Ok(Self::open_to_all()), Self::read)
    }

    /// Reads a key file.
    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        Ok(Draft::of(path)?.ring)
    }

    /// Writes these keys into a new file that only its owner can read.
    pub fn create(&self, path: &Path) -> Result<(), KeyFileError> {
        let mut file = new_file(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => KeyFileError::Exists { path: path.to_owned() },
            _ => KeyFileError::Unwritable { path: path.to_owned(), error },
        })?;
        fill(&mut file, path, &self.to_text())
            .map_err(|error| KeyFileError::Unwritable { path: path.to_owned(), error })
    }

    /// Adds `key` at the end of a key file: the first step of a rotation.
    pub fn append(path: &Path, key: &Key) -> Result<(), KeyFileError> {
        let mut draft = Draft::of(path)?;
        draft.lines.push(key.to_line());
        draft.replace()
    }

    /// Moves the last key of a file to the front, so that it seals: the second step of a rotation.
    pub fn promote(path: &Path) -> Result<(), KeyFileError> {
        let mut draft = Draft::of(path)?;
        let (first, rest) = draft.first_and_rest()?;
        let last = rest.last().copied().unwrap_or(first);
        draft.lines[first..=last].rotate_right(1);
        draft.replace()
    }

    /// Removes all keys of a file but the first: the last step of a rotation.
    pub fn retire(path: &Path) -> Result<(), KeyFileError> {
        let mut draft = Draft::of(path)?;
        let (_, rest) = draft.first_and_rest()?;
        for line in rest.into_iter().rev() {
            draft.lines.remove(line);
        }
        draft.replace()
    }
}

/// A key file that has been read, and may be about to be rewritten.
struct Draft {
    /// As the user named it.
    path: PathBuf,
    ring: Keyring,
    lines: Vec<String>,
    mode: u32,
    owner: (u32, u32),
}

impl Draft {
    fn of(path: &Path) -> Result<Self, KeyFileError> {
        let unreadable = |error| KeyFileError::Unreadable { path: path.to_owned(), error };
        let file = File::open(path).map_err(unreadable)?;
        // Of the open file, not of the name: what is judged is what is read.
        let meta = file.metadata().map_err(unreadable)?;
        let mode = meta.permissions().mode() & 0o7777;
        if mode & OTHERS != 0 {
            return Err(KeyFileError::Exposed { path: path.to_owned(), mode });
        }
        let mut text = String::new();
        file.take(LONGEST + 1).read_to_string(&mut text).map_err(unreadable)?;
        if text.len() as u64 > LONGEST {
            return Err(KeyFileError::TooLong { path: path.to_owned() });
        }
        let wrong = |fault| KeyFileError::Wrong { path: path.to_owned(), fault };
        Ok(Self {
            path: path.to_owned(),
            ring: Keyring::parse(&text).map_err(wrong)?,
            lines: text.lines().map(str::to_owned).collect(),
            mode,
            owner: (meta.uid(), meta.gid()),
        })
    }

    /// In which line the first key stands, and in which the others.
    fn first_and_rest(&self) -> Result<(usize, Vec<usize>), KeyFileError> {
        let is_key = |&line: &usize| !without_comment(&self.lines[line]).is_empty();
        let mut keys = (0..self.lines.len()).filter(is_key);
        match (keys.next(), keys.collect::<Vec<usize>>()) {
            (Some(first), rest) if !rest.is_empty() => Ok((first, rest)),
            _ => Err(KeyFileError::OnlyOne { path: self.path.clone() }),
        }
    }

    /// Puts the new text in the place of the old one, in one step.
    fn replace(self) -> Result<(), KeyFileError> {
        let text: String = self.lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        let wrong = |fault| KeyFileError::Wrong { path: self.path.clone(), fault };
        Keyring::parse(&text).map_err(wrong)?;
        self.swap(&text)
            .map_err(|error| KeyFileError::Unwritable { path: self.path.clone(), error })
    }

    fn swap(&self, text: &str) -> io::Result<()> {
        // A link stays a link: what it points to is replaced.
        let target = fs::canonicalize(&self.path)?;
        let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.draft", std::process::id()));
        let draft = target.with_file_name(hidden);
        let mut file = new_file(&draft)?;
        let made = fchown_if_needed(&file, self.owner)
            .and_then(|()| fill(&mut file, &draft, text))
            .and_then(|()| file.set_permissions(fs::Permissions::from_mode(self.mode)))
            .and_then(|()| fs::rename(&draft, &target));
        if made.is_err() {
            // Nothing else can be done about a draft that cannot be removed.
            let _ = fs::remove_file(&draft);
        }
        made
    }
}

/// A file that was not there before, for its owner alone.
fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Writes all of `text`, or removes the file.
fn fill(file: &mut File, path: &Path, text: &str) -> io::Result<()> {
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        // Nothing else can be done about a file that cannot be removed.
        let _ = fs::remove_file(path);
    }
    written
}

/// Root may rewrite the file of a user who runs the node, and that user must be able to read it afterwards.
fn fchown_if_needed(file: &File, owner: (u32, u32)) -> io::Result<()> {
    let meta = file.metadata()?;
    if (meta.uid(), meta.gid()) == owner {
        return Ok(());
    }
    fchown(file, Some(owner.0), Some(owner.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::scratch::{Scratch, set_mode};

    fn keys_in(folder: &Path) -> PathBuf {
        folder.join("keys")
    }

    fn entries(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_new_file_is_for_its_owner_alone_and_is_never_overwritten() {
        let folder = Scratch::new();
        let ring = Keyring::generate().unwrap();
        ring.create(&keys_in(&folder)).unwrap();
        assert_eq!(mode(&keys_in(&folder)), 0o600);
        assert_eq!(Keyring::read(&keys_in(&folder)).unwrap(), ring);
        let again = Keyring::generate().unwrap().create(&keys_in(&folder));
        assert!(matches!(again, Err(KeyFileError::Exists { .. })), "{again:?}");
        assert_eq!(Keyring::read(&keys_in(&folder)).unwrap(), ring);
    }

    #[test]
    fn a_file_that_others_can_read_is_refused_with_what_to_type() {
        let folder = Scratch::new();
        Keyring::generate().unwrap().create(&keys_in(&folder)).unwrap();
        for mode in [0o640, 0o604, 0o610, 0o602] {
            set_mode(&keys_in(&folder), mode);
            let refusal = Keyring::read(&keys_in(&folder)).unwrap_err().to_string();
            let advice = format!("type: chmod 600 {}", keys_in(&folder).display());
            assert!(
                refusal.contains(&advice) && refusal.contains(&format!("{mode:04o}")),
                "{refusal}"
            );
        }
        set_mode(&keys_in(&folder), 0o400);
        Keyring::read(&keys_in(&folder)).unwrap();
    }

    #[test]
    fn a_mistake_is_named_with_its_file_and_line() {
        let folder = Scratch::new();
        let error = Keyring::read(&keys_in(&folder)).unwrap_err().to_string();
        assert!(error.contains(&keys_in(&folder).display().to_string()), "{error}");
        let mut file = new_file(&keys_in(&folder)).unwrap();
        writeln!(file, "# keys\nsesame").unwrap();
        let error = Keyring::read(&keys_in(&folder)).unwrap_err().to_string();
        assert!(error.contains("keys: line 2: this is no key"), "{error}");
        file.write_all(&[b'#'; LONGEST as usize]).unwrap();
        let error = Keyring::read(&keys_in(&folder)).unwrap_err().to_string();
        assert!(error.contains("longer"), "{error}");
    }

    #[test]
    fn a_rotation_adds_promotes_and_retires_and_keeps_comments_and_mode() {
        let folder = Scratch::new();
        let [old, new] = [(); 2].map(|()| Key::generate().unwrap());
        let mut file = new_file(&keys_in(&folder)).unwrap();
        writeln!(file, "# ours\n{} # old\n# the end", old.to_line()).unwrap();
        set_mode(&keys_in(&folder), 0o400);
        let text = || fs::read_to_string(keys_in(&folder)).unwrap();
        let keys = || Keyring::read(&keys_in(&folder)).unwrap().keys;
        let (old_line, new_line) = (old.to_line(), new.to_line());

        Keyring::append(&keys_in(&folder), &new).unwrap();
        assert_eq!(text(), format!("# ours\n{old_line} # old\n# the end\n{new_line}\n"));
        assert_eq!(keys(), [old.clone(), new.clone()]);
        Keyring::promote(&keys_in(&folder)).unwrap();
        assert_eq!(text(), format!("# ours\n{new_line}\n{old_line} # old\n# the end\n"));
        assert_eq!(keys(), [new.clone(), old]);
        Keyring::retire(&keys_in(&folder)).unwrap();
        assert_eq!(text(), format!("# ours\n{new_line}\n# the end\n"));
        assert_eq!((keys(), mode(&keys_in(&folder)), entries(&folder)), (vec![new], 0o400, 1));
    }

    #[test]
    fn a_step_that_makes_no_sense_leaves_the_file_as_it_was() {
        let folder = Scratch::new();
        let ring = Keyring::generate().unwrap();
        ring.create(&keys_in(&folder)).unwrap();
        for step in [Keyring::promote, Keyring::retire] {
            let refusal = step(&keys_in(&folder)).unwrap_err().to_string();
            assert!(refusal.contains("doyen keygen --append"), "{refusal}");
        }
        let repeated = Keyring::append(&keys_in(&folder), &ring.keys()[0]);
        assert!(matches!(repeated, Err(KeyFileError::Wrong { .. })), "{repeated:?}");
        assert_eq!(fs::read_to_string(keys_in(&folder)).unwrap(), ring.to_text());
        assert_eq!(entries(&folder), 1);
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = Scratch::new();
        Keyring::generate().unwrap().create(&keys_in(&folder)).unwrap();
        let link = folder.join("link");
        std::os::unix::fs::symlink("keys", &link).unwrap();
        Keyring::append(&link, &Key::generate().unwrap()).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(Keyring::read(&keys_in(&folder)).unwrap().keys().len(), 2);
    }
}
