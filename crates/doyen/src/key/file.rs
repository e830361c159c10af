//! Key files: read, created, and rewritten for a rotation.
//!
//! A file that other users can read is rejected: its keys are not secret. On request, its group may read it. Files are
//! written completely or not at all. A new file has mode 0600 and never replaces another; a rewritten one keeps its mode,
//! its owner and its comments.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use zeroize::Zeroizing;

use super::{Key, KeyError, Keyring, without_comment};
use crate::files;

/// In bytes. A longer file is not a key file.
const LONGEST: u64 = 64 * 1024;

/// Begins the comment behind a key that says when it was added: for display, and to tell which of several keys is new.
const ADDED: &str = "# added ";

/// Who may read a key file besides root.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum KeyReaders {
    /// Its owner alone.
    #[default]
    Owner,
    /// Its group too, but it may not write.
    Group,
}

impl KeyReaders {
    /// The permission bits that no other user may have.
    fn forbidden(self) -> u32 {
        match self {
            Self::Owner => 0o077,
            Self::Group => 0o037,
        }
    }
}

/// A key file that a node reads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyFile {
    /// Where it is.
    pub path: PathBuf,
    /// Who may read it.
    pub readers: KeyReaders,
}

impl KeyFile {
    /// One that only its owner may read.
    pub fn private(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), readers: KeyReaders::Owner }
    }

    /// Reads its keys.
    pub fn read(&self) -> Result<Keyring, KeyFileError> {
        Ok(Draft::of(&self.path, self.readers)?.ring)
    }

    /// Adds a key at the end, with the time, if it does not have it.
    pub fn add(&self, key: &Key) -> Result<(), KeyFileError> {
        let mut draft = Draft::of(&self.path, self.readers)?;
        if draft.ring.keys().contains(key) {
            return Ok(());
        }
        draft.lines.push(added_now(key));
        draft.replace()
    }

    /// The fingerprint of the key that was added last; none if no line says when its key was added.
    pub fn newest(&self) -> Result<Option<String>, KeyFileError> {
        let draft = Draft::of(&self.path, self.readers)?;
        let (lines, fingerprints) = (draft.key_lines(), draft.ring.fingerprints());
        let added = lines.iter().zip(fingerprints).filter_map(|(&line, fingerprint)| {
            let (_, time) = draft.lines[line].split_once(ADDED)?;
            Some((humantime::parse_rfc3339(time.trim()).ok()?, fingerprint))
        });
        Ok(added.max().map(|(_, fingerprint)| fingerprint))
    }

    /// The fingerprints of its keys, of which a rotation needs two.
    pub fn several(&self) -> Result<Vec<String>, KeyFileError> {
        let fingerprints = self.read()?.fingerprints();
        match fingerprints.len() {
            1 => Err(KeyFileError::OnlyOne(self.path.clone())),
            _ => Ok(fingerprints),
        }
    }

    /// Moves the key with this fingerprint to the front, if it is not there. `among`: if given, the fingerprints of all keys
    /// that it must have, in any order.
    pub fn promote(&self, fingerprint: &str, among: Option<&[String]>) -> Result<(), KeyFileError> {
        let mut draft = Draft::of(&self.path, self.readers)?;
        draft.expect(among)?;
        match draft.place_of(fingerprint)? {
            0 => Ok(()),
            place => {
                let lines = draft.key_lines();
                draft.lines[lines[0]..=lines[place]].rotate_right(1);
                draft.replace()
            }
        }
    }

    /// Removes all keys but the one with this fingerprint, which must be the first. `among`: as for a promotion.
    pub fn retire(&self, fingerprint: &str, among: Option<&[String]>) -> Result<(), KeyFileError> {
        let mut draft = Draft::of(&self.path, self.readers)?;
        draft.expect(among)?;
        if draft.place_of(fingerprint)? > 0 {
            return Err(KeyFileError::NotFirst(self.path.clone(), fingerprint.to_owned()));
        }
        match draft.key_lines()[..] {
            [_, ref rest @ ..] if !rest.is_empty() => {
                for &line in rest.iter().rev() {
                    draft.lines.remove(line);
                }
                draft.replace()
            }
            _ => Ok(()),
        }
    }

    /// Whether it could be rewritten now: whether a file can be created in its folder.
    pub fn check_writable(&self) -> Result<(), KeyFileError> {
        let unwritable = |error| KeyFileError::Unwritable(self.path.clone(), error);
        let target = fs::canonicalize(&self.path).map_err(unwritable)?;
        let folder = target.parent().unwrap_or(Path::new("/"));
        let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
        rustix::fs::access(folder, access).map_err(|error| unwritable(error.into()))
    }
}

/// The line of a key that is being added.
fn added_now(key: &Key) -> Zeroizing<String> {
    let (line, time) =
        (Zeroizing::new(key.to_line()), humantime::format_rfc3339_millis(SystemTime::now()));
    let time = format!(" {ADDED}{time}");
    // It does not grow, which would leave a copy behind.
    let mut text = Zeroizing::new(String::with_capacity(line.len() + time.len()));
    text.push_str(&line);
    text.push_str(&time);
    text
}

/// What to do about a mode that exposes the keys.
fn remedy(path: &Path, mode: u32) -> String {
    let or = match mode & KeyReaders::Group.forbidden() {
        0 => "; or set key_group_readable = true, if only the node is in its group",
        _ => "",
    };
    format!("run: chmod 600 {}{or}", path.display())
}

/// Why a key file cannot be used. It has not been changed.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It cannot be read.
    #[error("cannot read the keys in {path}: {1}{hint}", path = .0.display(), hint = files::hint_if_denied(.1))]
    Unreadable(PathBuf, io::Error),
    /// It is too long for a key file.
    #[error("{} is not a key file: it is longer than {LONGEST} bytes", .0.display())]
    TooLong(PathBuf),
    /// Other users can read it; with its mode.
    #[error("other users can read the keys in {path} (mode {1:04o}); {remedy}", path = .0.display(), remedy = remedy(.0, *.1))]
    Exposed(PathBuf, u32),
    /// Its text is wrong.
    #[error("{path}: {1}", path = .0.display())]
    Wrong(PathBuf, KeyError),
    /// It exists and is not overwritten.
    #[error("{} exists and is not overwritten; name another file", .0.display())]
    Exists(PathBuf),
    /// It cannot be written.
    #[error("cannot write the keys to {path}: {1}", path = .0.display())]
    Unwritable(PathBuf, io::Error),
    /// It does not have the key with this fingerprint.
    #[error("{path} has no key {1}", path = .0.display())]
    NoSuchKey(PathBuf, String),
    /// The key with this fingerprint does not seal.
    #[error("{path} does not seal with {1}; promote it first", path = .0.display())]
    NotFirst(PathBuf, String),
    /// It has other keys than a step of a rotation expects: those that it has, and those that are expected.
    #[error("{path} has the keys {}, and {} were expected: is another rotation under way?",
        .1.join(", "), .2.join(", "), path = .0.display())]
    OtherKeys(PathBuf, Vec<String>, Vec<String>),
    /// It has only one key.
    #[error("{path} has only one key; add another first: doyen keygen --append {path}", path = .0.display())]
    OnlyOne(PathBuf),
}

impl Keyring {
    /// The keys in a file; the well-known key, if no file is given.
    pub fn of(file: Option<&KeyFile>) -> Result<Self, KeyFileError> {
        file.map_or_else(|| Ok(Self::open_to_all()), KeyFile::read)
    }

    /// Reads a key file that only its owner may read.
    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        Ok(Draft::of(path, KeyReaders::Owner)?.ring)
    }

    /// Writes these keys into a new file that only its owner can read.
    pub fn create(&self, path: &Path) -> Result<(), KeyFileError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => KeyFileError::Exists(path.to_owned()),
            _ => KeyFileError::Unwritable(path.to_owned(), error),
        };
        let mut file = new_file(path).map_err(failed)?;
        fill(&mut file, path, &Zeroizing::new(self.to_text())).map_err(failed)
    }
}

/// A key file that has been read, and may be about to be rewritten.
struct Draft {
    /// As the user named it.
    path: PathBuf,
    ring: Keyring,
    lines: Vec<Zeroizing<String>>,
    mode: u32,
    owner: (u32, u32),
}

impl Draft {
    fn of(path: &Path, readers: KeyReaders) -> Result<Self, KeyFileError> {
        let unreadable = |error| KeyFileError::Unreadable(path.to_owned(), error);
        let file = File::open(path).map_err(unreadable)?;
        // Of the open file: what is checked is what is read.
        let meta = file.metadata().map_err(unreadable)?;
        let mode = meta.permissions().mode() & 0o7777;
        if mode & readers.forbidden() != 0 {
            return Err(KeyFileError::Exposed(path.to_owned(), mode));
        }
        // With room for all of it, because a text that grows leaves copies behind.
        let room = meta.len().min(LONGEST) as usize + 1;
        let mut text = Zeroizing::new(String::with_capacity(room));
        file.take(LONGEST + 1).read_to_string(&mut text).map_err(unreadable)?;
        if text.len() as u64 > LONGEST {
            return Err(KeyFileError::TooLong(path.to_owned()));
        }
        let wrong = |fault| KeyFileError::Wrong(path.to_owned(), fault);
        Ok(Self {
            path: path.to_owned(),
            ring: Keyring::parse(&text).map_err(wrong)?,
            lines: text.lines().map(|line| Zeroizing::new(line.to_owned())).collect(),
            mode,
            owner: (meta.uid(), meta.gid()),
        })
    }

    /// The lines of the keys, in the order of the keys.
    fn key_lines(&self) -> Vec<usize> {
        let is_key = |&line: &usize| !without_comment(&self.lines[line]).is_empty();
        (0..self.lines.len()).filter(is_key).collect()
    }

    /// The place of the key with this fingerprint.
    fn place_of(&self, fingerprint: &str) -> Result<usize, KeyFileError> {
        let place = self.ring.fingerprints().iter().position(|it| it == fingerprint);
        place.ok_or_else(|| KeyFileError::NoSuchKey(self.path.clone(), fingerprint.to_owned()))
    }

    /// Whether it has these keys and no others, if that is asked.
    fn expect(&self, among: Option<&[String]>) -> Result<(), KeyFileError> {
        let has = self.ring.fingerprints();
        match among {
            Some(expected)
                if !(has.iter().all(|key| expected.contains(key))
                    && expected.iter().all(|key| has.contains(key))) =>
            {
                Err(KeyFileError::OtherKeys(self.path.clone(), has, expected.to_vec()))
            }
            _ => Ok(()),
        }
    }

    /// Replaces the file atomically.
    fn replace(self) -> Result<(), KeyFileError> {
        let length = self.lines.iter().map(|line| line.len() + 1).sum();
        let mut text = Zeroizing::new(String::with_capacity(length));
        for line in &self.lines {
            text.push_str(line);
            text.push('\n');
        }
        let wrong = |fault| KeyFileError::Wrong(self.path.clone(), fault);
        Keyring::parse(&text).map_err(wrong)?;
        self.swap(&text).map_err(|error| KeyFileError::Unwritable(self.path.clone(), error))
    }

    fn swap(&self, text: &str) -> io::Result<()> {
        // Of a link, the target is replaced.
        let target = fs::canonicalize(&self.path)?;
        let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.draft", std::process::id()));
        let draft = target.with_file_name(hidden);
        // An earlier process with the same id may have left one.
        let _ = fs::remove_file(&draft);
        let mut file = new_file(&draft)?;
        let made = fchown_if_needed(&file, self.owner)
            .and_then(|()| fill(&mut file, &draft, text))
            .and_then(|()| file.set_permissions(fs::Permissions::from_mode(self.mode)))
            .and_then(|()| fs::rename(&draft, &target));
        if made.is_err() {
            // A draft that cannot be removed stays.
            let _ = fs::remove_file(&draft);
        }
        // The next step of a rotation relies on this one, also after a power failure.
        made.and_then(|()| files::sync_folder_of(&target))
    }
}

/// A new file that only its owner can read.
fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Writes all of `text`, or removes the file.
fn fill(file: &mut File, path: &Path, text: &str) -> io::Result<()> {
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        // A file that cannot be removed stays.
        let _ = fs::remove_file(path);
    }
    written
}

/// If root rewrites the file, the user that runs the node must still be able to read it.
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
        assert!(matches!(again, Err(KeyFileError::Exists(_))), "{again:?}");
        assert_eq!(Keyring::read(&keys_in(&folder)).unwrap(), ring);
    }

    #[test]
    fn a_file_that_others_can_read_is_refused_with_what_to_type() {
        let folder = Scratch::new();
        Keyring::generate().unwrap().create(&keys_in(&folder)).unwrap();
        for mode in [0o640, 0o604, 0o610, 0o602] {
            set_mode(&keys_in(&folder), mode);
            let refusal = Keyring::read(&keys_in(&folder)).unwrap_err().to_string();
            let advice = format!("run: chmod 600 {}", keys_in(&folder).display());
            assert!(
                refusal.contains(&advice) && refusal.contains(&format!("{mode:04o}")),
                "{refusal}"
            );
        }
        set_mode(&keys_in(&folder), 0o400);
        Keyring::read(&keys_in(&folder)).unwrap();
    }

    #[test]
    fn the_group_may_read_the_file_on_request_and_no_more_than_that() {
        let folder = Scratch::new();
        Keyring::generate().unwrap().create(&keys_in(&folder)).unwrap();
        let read = |readers| KeyFile { path: keys_in(&folder), readers }.read();
        for mode in [0o640, 0o440] {
            set_mode(&keys_in(&folder), mode);
            read(KeyReaders::Group).unwrap();
            let refusal = read(KeyReaders::Owner).unwrap_err().to_string();
            assert!(refusal.contains("key_group_readable"), "{refusal}");
        }
        for mode in [0o660, 0o650, 0o644, 0o604] {
            set_mode(&keys_in(&folder), mode);
            let refusal = read(KeyReaders::Group).unwrap_err().to_string();
            assert!(!refusal.contains("key_group_readable"), "{refusal}");
        }
    }

    #[test]
    fn a_mistake_is_named_with_its_file_and_line() {
        let folder = Scratch::new();
        let error = Keyring::read(&keys_in(&folder)).unwrap_err().to_string();
        assert!(error.contains(&keys_in(&folder).display().to_string()), "{error}");
        let mut file = new_file(&keys_in(&folder)).unwrap();
        writeln!(file, "# keys\nsesame").unwrap();
        let error = Keyring::read(&keys_in(&folder)).unwrap_err().to_string();
        assert!(error.contains("keys: line 2: not a key"), "{error}");
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
        let rotated = KeyFile::private(keys_in(&folder));
        assert_eq!(rotated.newest().unwrap(), None);
        rotated.add(&new).unwrap();
        let (old_line, new_line) = (old.to_line(), text().lines().last().unwrap().to_owned());
        assert!(new_line.starts_with(&format!("{} {ADDED}", new.to_line())), "{new_line}");
        assert_eq!(rotated.newest().unwrap(), Some(new.fingerprint()));
        assert_eq!(text(), format!("# ours\n{old_line} # old\n# the end\n{new_line}\n"));
        assert_eq!(keys(), [old.clone(), new.clone()]);
        // An interrupted step of a process with the same id, as in a container, has left its draft.
        new_file(&folder.join(format!(".keys.{}.draft", std::process::id()))).unwrap();
        rotated.promote(&new.fingerprint(), None).unwrap();
        assert_eq!(text(), format!("# ours\n{new_line}\n{old_line} # old\n# the end\n"));
        assert_eq!(keys(), [new.clone(), old]);
        assert_eq!(rotated.newest().unwrap(), Some(new.fingerprint()), "also when it seals");
        rotated.retire(&new.fingerprint(), None).unwrap();
        assert_eq!(text(), format!("# ours\n{new_line}\n# the end\n"));
        assert_eq!((keys(), mode(&keys_in(&folder)), entries(&folder)), (vec![new], 0o400, 1));
    }

    #[test]
    fn a_step_that_makes_no_sense_leaves_the_file_as_it_was() {
        let folder = Scratch::new();
        let ring = Keyring::generate().unwrap();
        ring.create(&keys_in(&folder)).unwrap();
        let file = KeyFile::private(keys_in(&folder));
        let refusal = file.several().unwrap_err().to_string();
        assert!(refusal.contains("doyen keygen --append"), "{refusal}");
        file.add(&ring.keys()[0]).unwrap();
        assert_eq!(fs::read_to_string(keys_in(&folder)).unwrap(), ring.to_text());
        assert_eq!(entries(&folder), 1);
    }

    #[test]
    fn of_two_rotations_at_once_none_takes_a_key_of_the_other_away() {
        let folder = Scratch::new();
        let [old, ours, theirs] = [(); 3].map(|()| Key::generate().unwrap());
        Keyring { keys: vec![old.clone()] }.create(&keys_in(&folder)).unwrap();
        let file = KeyFile::private(keys_in(&folder));
        let [old, new] = [&old, &ours].map(Key::fingerprint);
        file.add(&ours).unwrap();
        let among = [new.clone(), old];
        file.promote(&new, Some(&among)).unwrap();
        file.add(&theirs).unwrap();
        let refusal = file.retire(&new, Some(&among)).unwrap_err().to_string();
        assert!(refusal.contains("is another rotation under way?"), "{refusal}");
        assert!(file.promote(&theirs.fingerprint(), Some(&among)).is_err());
        assert_eq!(file.several().unwrap().len(), 3);
        file.retire(&new, None).unwrap();
        assert!(file.retire(&new, Some(&among)).is_err(), "one is missing");
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = Scratch::new();
        Keyring::generate().unwrap().create(&keys_in(&folder)).unwrap();
        let link = folder.join("link");
        std::os::unix::fs::symlink("keys", &link).unwrap();
        KeyFile::private(&link).add(&Key::generate().unwrap()).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(Keyring::read(&keys_in(&folder)).unwrap().keys().len(), 2);
    }
}
