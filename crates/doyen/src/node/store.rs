//! What a node must not forget: one small file of two slots, written in turn.
//!
//! ```text
//!   state_dir/
//!     state        slot 0 at byte 0, slot 1 at byte 4096, each 2048 bytes: `store/slot.rs`
//!     lock         held while a node runs; holds its process id, for the error that a second one gets
//!     state.old    what was there before somebody rejoined
//!     refused      the life in which other members refused it as a copy, if they did: `store/refused.rs`
//! ```
//!
//! **What is in it.** Whose state it is, the incarnation, whether the member is still rejoining, and one piece of bytes
//! ([`Saved`]): what the core keeps, or what the algorithm alone began from. The bytes mean nothing here.
//!
//! **Versions.** A slot has two checksums: the first one ends its first 512 bytes, which are laid out as in version 1, so
//! that an older program says that a newer one has been here; the other one covers the whole slot. Both must fit. Slots
//! of version 1 are read, and never written: after an upgrade the file has one slot of each until both have been
//! written.
//!
//! **Writing.** Whatever is stored goes with the next sequence number into the slot of the older record, and is synced
//! before [`Store::save`] returns. The highest sequence that is whole counts, so a write that is torn leaves what was
//! stored before, and nobody has been told of what was not. The slots lie on different pages, so that one bad write
//! cannot harm both. All blocks are written when the file is made: a disk that fills up later does not stop a node whose
//! file system writes in place. Nothing is allocated on the way.
//!
//! **If a write fails**, nothing is known about the disk any more: the system may forget what it could not write and
//! say so only once. The process must end; a store that has failed refuses everything that follows. For the same
//! reason [`Store::open`] writes the record that it found once more before it touches the other slot: what it read may
//! have been in memory only, left there by a process whose last sync failed.
//!
//! **Where a state comes from.** `doyen init` makes it ([`Store::create`]), a node never does: a lost file must not look
//! like a first start, for this member may have voted. A member whose state is lost, damaged or an old copy comes back
//! by [`Store::rejoin`], which an operator must ask for. Nothing is replaced before the first record is saved, which
//! needs an incarnation that the other members must be asked about. Records say that the member is *rejoining* until
//! it has finished, however often the process restarts until then; see [`Origin::Rejoining`].
//!
//! **What cannot be told from here**: a file that was restored from a copy, or cloned, is as whole as any. So is the
//! older record of a file whose newer one has rotted: that looks like a torn write. Other members notice such a state
//! by its incarnation, or by its term. Nor can it be told whether a state that `doyen init` has made is the member's
//! first: it may have run elsewhere. So the first start observes hold-down as any other does.

pub(crate) mod refused;
mod slot;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use doyen_core::members::{Incarnation, NodeId};
use doyen_core::protocol::Origin;
use doyen_core::registry::Algorithm;

use crate::config::Settings;
use slot::{Durable, FILE, Flaw, Image, Record, SLOT};

pub use slot::{LONGEST_CLUSTER, LONGEST_DURABLE};

/// Whose state it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owner {
    /// The cluster's name, at most [`LONGEST_CLUSTER`] bytes.
    pub cluster: String,
    /// The member.
    pub member: NodeId,
    /// The algorithm whose records these are.
    pub algorithm: Algorithm,
}

impl Settings {
    /// Whose state it runs with.
    pub fn owner(&self) -> Owner {
        let Self { cluster, me, algorithm, .. } = self;
        Owner { cluster: cluster.clone(), member: *me, algorithm: *algorithm }
    }
}

/// The state of a running node, locked against any other.
pub struct Store {
    folder: PathBuf,
    path: PathBuf,
    medium: Medium,
    owner: Owner,
    incarnation: Incarnation,
    sequence: u64,
    /// Where records are put together.
    slot: [u8; SLOT],
    /// A write has failed.
    broken: bool,
    /// The lock goes when this is closed.
    _lock: File,
}

/// Where the next record goes.
enum Medium {
    /// Into the slot of the older record.
    File(File),
    /// Into a new file: the member rejoins and has saved nothing. `keep`: what lies there is kept as `state.old`.
    Unmade { keep: bool },
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, incarnation, sequence, broken, .. } = self;
        f.debug_struct("Store")
            .field("path", path)
            .field("incarnation", incarnation)
            .field("sequence", sequence)
            .field("broken", broken)
            .finish_non_exhaustive()
    }
}

/// What was stored last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Saved {
    /// The record of the algorithm alone: of version 1, or made by `doyen init`.
    Bare(Vec<u8>),
    /// What the core keeps: the record of the algorithm, and what it knows of the other members.
    Kept(Vec<u8>),
}

/// A store, and what a node starts from.
#[derive(Debug)]
pub struct Opened {
    /// Where it stores from now on.
    pub store: Store,
    /// Which life of the member this is. Stored already.
    pub incarnation: Incarnation,
    /// What was stored last.
    pub durable: Option<Saved>,
    /// Whether it has lost its state and not finished rejoining.
    pub rejoining: bool,
}

impl Opened {
    /// Into what the process comes.
    pub fn origin(&self) -> Origin {
        if self.rejoining { Origin::Rejoining } else { Origin::Joining }
    }
}

/// Why there is no state to run with. Each says the way out.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no file.
    #[error(
        "{}: there is no state; if this cluster has never run, `doyen init` makes it; if this member has run \
         before, it may have voted: start it once with `doyen node --rejoin`, while all others are up", .0.display()
    )]
    Missing(PathBuf),
    /// Neither slot is whole.
    #[error(
        "{}: both copies of the state are damaged; start this member once with `doyen node --rejoin`, while all \
         others are up (the file is kept as state.old)", .0.display()
    )]
    Damaged(PathBuf),
    /// It is somebody else's.
    #[error(
        "{}: this is the state of member {found} of cluster `{cluster}`, not of member {} of `{}`; give every member \
         a state_dir of its own; if this one is meant, move the file away and start the member once with \
         `doyen node --rejoin`, while all others are up", path.display(), expected.member, expected.cluster
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Whose cluster it is of.
        cluster: String,
        /// Whose it is.
        found: NodeId,
        /// Whose it should be.
        expected: Owner,
    },
    /// It holds what another algorithm stored.
    #[error(
        "{}: holds what `{found}` stored, and the configuration says `{expected}`; set `algorithm` back, or make the \
         cluster anew for all members with `doyen init --algorithm {expected} --term-floor N`, N above any term \
         that was ever shown", path.display()
    )]
    OtherAlgorithm {
        /// The file.
        path: PathBuf,
        /// Who stored it.
        found: String,
        /// Who should have.
        expected: &'static str,
    },
    /// A later version of doyen wrote it.
    #[error(
        "{}: a newer doyen wrote this state (format {found}; this one reads up to {}); run that version again",
        path.display(), slot::VERSION
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u16,
    },
    /// Another process runs with it.
    #[error(
        "{}: another doyen runs with this state, {}; stop it first, or give this node a state_dir of its own",
        path.display(), holder(*pid)
    )]
    Locked {
        /// The folder.
        path: PathBuf,
        /// The process, if it can be told.
        pid: Option<u32>,
    },
    /// Anybody could change it.
    #[error(
        "{path}: others than its owner can write here (mode {mode:03o}), and could make this member vote twice; run \
         `chmod go-w {path}`", path = path.display()
    )]
    Exposed {
        /// The file or folder.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Other members know that it is not the latest.
    #[error(
        "{}: other members have refused this state: it is an old copy, or another process ran with a clone of it; make \
         sure that no other process runs as this member, then start it once with `doyen node --rejoin`, while all others \
         are up", .0.display()
    )]
    Refused(PathBuf),
    /// It is whole, and holds nothing that the algorithm can read.
    #[error("{}: holds nothing that this version can read; start once with --rejoin", .0.display())]
    Unreadable(PathBuf),
    /// Somebody asks to rejoin who has lost nothing.
    #[error(
        "{}: the state is sound, and is kept; start without --rejoin. If you have restored it from a copy, move the file \
         `state` away and start once with --rejoin, while all others are up", .0.display()
    )]
    Sound(PathBuf),
    /// There is one already.
    #[error(
        "{}: there is a state already, and it is never overwritten; move it away if this member is to start anew",
        .0.display()
    )]
    Exists(PathBuf),
    /// It has started more often than can be counted.
    #[error(
        "{}: its starts cannot be counted any further; make the cluster anew with `doyen init`",
        .0.display()
    )]
    WornOut(PathBuf),
    /// The system refuses.
    #[error("{}: {doing}: {error}; {}", path.display(), remedy(error.kind()))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What could not be done.
        doing: &'static str,
        /// Why.
        error: io::Error,
    },
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or("in a process that has not said which".to_owned(), |pid| format!("pid {pid}"))
}

fn remedy(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::PermissionDenied => "give it to the user that doyen runs as",
        io::ErrorKind::ReadOnlyFilesystem => "a node must be able to write its state",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "make room there"
        }
        io::ErrorKind::NotFound => "make the folder that it is to lie in",
        io::ErrorKind::NotADirectory => "state_dir must name a folder",
        io::ErrorKind::IsADirectory => "there must be a file",
        _ => "see whether the disk is sound",
    }
}

impl Store {
    /// Makes the state of a member that has never started, with what its algorithm is to begin from, if anything. The
    /// folder is made if need be. If something fails, no file is left.
    pub fn create(folder: &Path, owner: &Owner, durable: Option<&[u8]>) -> Result<(), StoreError> {
        make_folder(folder)?;
        let path = folder.join("state");
        let record = Record {
            sequence: 0,
            cluster: Cow::Borrowed(&owner.cluster),
            member: owner.member.0,
            incarnation: 0,
            rejoining: false,
            algorithm: Cow::Borrowed(owner.algorithm.name()),
            durable: durable.map_or(Durable::Nothing, |bytes| Durable::Bare(Cow::Borrowed(bytes))),
        };
        let mut slot = [0; SLOT];
        record.encode(&mut slot).map_err(failed(&path, "cannot be written"))?;
        write_new(&path, &slot)?;
        forget_refusal(folder)?;
        sync_folder(folder)
    }

    /// Takes the state of `owner` for a start: locks it, raises the incarnation and stores that.
    pub fn open(folder: &Path, owner: &Owner) -> Result<Opened, StoreError> {
        let path = check_present(folder)?;
        let lock = lock(folder)?;
        let (file, image) = read(&path, OpenOptions::new().read(true).write(true))?;
        let last = newest(&path, &image, owner)?;
        check_refusal(&path, folder, &last)?;

        // Byte for byte: a record of version 1 stays one, and the bytes behind it stay what they were. The next record
        // is of version 2, in the other slot.
        let damaged = failed(&path, "cannot be written");
        let here = slot::offset(last.sequence);
        let as_found = &image[here as usize..][..SLOT];
        file.write_all_at(as_found, here).and_then(|()| file.sync_data()).map_err(&damaged)?;

        let incarnation = next_life(&path, last.incarnation)?;
        let medium = Medium::File(file);
        let mut store = Self::new(folder, medium, lock, owner, incarnation, last.sequence);
        store.write(last.rejoining, last.durable.clone()).map_err(&damaged)?;
        let (durable, rejoining) = (saved(last.durable), last.rejoining);
        Ok(Opened { store, incarnation, durable, rejoining })
    }

    /// A store for a member that has lost its state, or whose state is damaged or an old copy, and the lowest
    /// incarnation that this start may take by what lies there. The folder is made if need be.
    ///
    /// Nothing is written until the first [`Store::save`]. That makes a new file; the state that was there is kept as
    /// `state.old`, unless it was made by rejoining and never used. If it fails, that state is still in its place.
    pub fn rejoin(folder: &Path, owner: &Owner) -> Result<(Self, Incarnation), StoreError> {
        make_folder(folder)?;
        let lock = lock(folder)?;
        let path = folder.join("state");
        let image = match read(&path, OpenOptions::new().read(true)) {
            Err(StoreError::Missing(_)) => None,
            read => Some(read?.1),
        };
        let last = match image.as_ref().map(|image| newest(&path, image, owner)) {
            None | Some(Err(StoreError::Damaged(_))) => None,
            Some(found) => Some(found?),
        };
        let lowest = next_life(&path, last.as_ref().map_or(0, |last| last.incarnation))?;
        let medium = Medium::Unmade { keep: !last.is_some_and(|last| last.rejoining) };
        Ok((Self::new(folder, medium, lock, owner, lowest, 0), lowest))
    }

    /// Whether `owner` could start with what is there. Changes nothing, and does not mind that a node runs with it.
    /// `can_read` says whether what was stored can be read.
    pub fn check(
        folder: &Path,
        owner: &Owner,
        can_read: impl Fn(&Saved) -> bool,
    ) -> Result<(), StoreError> {
        let path = check_present(folder)?;
        let (_, image) = read(&path, OpenOptions::new().read(true).write(true))?;
        let last = newest(&path, &image, owner)?;
        check_refusal(&path, folder, &last)?;
        match saved(last.durable).is_some_and(|durable| !can_read(&durable)) {
            true => Err(StoreError::Unreadable(path)),
            false => Ok(()),
        }
    }

    /// Whether `owner` has lost what it must not forget, so that it must rejoin: the state is missing, damaged or refused
    /// by others, or has never been used. `can_read` says whether what was stored can be read. Changes nothing.
    pub fn is_lost(
        folder: &Path,
        owner: &Owner,
        can_read: impl Fn(&Saved) -> bool,
    ) -> Result<bool, StoreError> {
        let image = check_present(folder).and_then(|path| {
            let (_, image) = read(&path, OpenOptions::new().read(true))?;
            Ok((path, image))
        });
        let last = match &image {
            Ok((path, image)) => newest(path, image, owner),
            Err(StoreError::Missing(_)) => return Ok(true),
            Err(_) => return image.map(|_| true),
        };
        match last {
            Ok(last) => Ok(last.rejoining
                || last.incarnation == 0
                || is_refused(folder, &last)?
                || saved(last.durable).is_some_and(|durable| !can_read(&durable))),
            Err(StoreError::Damaged(_)) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Stores what the core must not forget, instead of what was stored before, and that this is the life of
    /// `incarnation`, which must not fall. `rejoining`: the member has not finished rejoining. When this returns, all of
    /// it would survive a crash. If it fails, the process must end.
    pub fn save(
        &mut self,
        incarnation: Incarnation,
        rejoining: bool,
        durable: &[u8],
    ) -> io::Result<()> {
        if incarnation < self.incarnation {
            let Incarnation(least) = self.incarnation;
            let problem = format!("incarnation {} is below {least}", incarnation.0);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        self.incarnation = incarnation;
        self.write(rejoining, Durable::Kept(Cow::Borrowed(durable)))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Which life of the member this is.
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    fn new(
        folder: &Path,
        medium: Medium,
        lock: File,
        owner: &Owner,
        incarnation: Incarnation,
        sequence: u64,
    ) -> Self {
        Self {
            folder: folder.to_owned(),
            path: folder.join("state"),
            medium,
            owner: owner.clone(),
            incarnation,
            sequence,
            slot: [0; SLOT],
            broken: false,
            _lock: lock,
        }
    }

    fn write(&mut self, rejoining: bool, durable: Durable<'_>) -> io::Result<()> {
        if self.broken {
            return Err(io::Error::other(
                "an earlier write has failed, and this state is given up",
            ));
        }
        // Until it has gone well.
        self.broken = true;
        let sequence = match self.medium {
            Medium::File(_) => self.sequence + 1,
            Medium::Unmade { .. } => 0,
        };
        let record = Record {
            sequence,
            cluster: Cow::Borrowed(&self.owner.cluster),
            member: self.owner.member.0,
            incarnation: self.incarnation.0,
            rejoining,
            algorithm: Cow::Borrowed(self.owner.algorithm.name()),
            durable,
        };
        record.encode(&mut self.slot)?;
        match &self.medium {
            Medium::File(file) => {
                file.write_all_at(&self.slot, slot::offset(sequence))?;
                file.sync_data()?;
            }
            &Medium::Unmade { keep } => {
                let file = replace(&self.folder, keep, &self.slot).map_err(as_io)?;
                self.medium = Medium::File(file);
            }
        }
        self.sequence = sequence;
        self.broken = false;
        Ok(())
    }
}

/// What a record holds, for those who read it.
fn saved(durable: Durable<'_>) -> Option<Saved> {
    match durable {
        Durable::Nothing => None,
        Durable::Bare(bytes) => Some(Saved::Bare(bytes.into_owned())),
        Durable::Kept(bytes) => Some(Saved::Kept(bytes.into_owned())),
    }
}

/// The incarnation after `earlier`.
fn next_life(path: &Path, earlier: u32) -> Result<Incarnation, StoreError> {
    let next = earlier.checked_add(1).map(Incarnation);
    next.ok_or_else(|| StoreError::WornOut(path.to_owned()))
}

/// What [`Store::save`] says of an error: its kind, and all that was known.
fn as_io(error: StoreError) -> io::Error {
    let kind = match &error {
        StoreError::Io { error, .. } => error.kind(),
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

/// Turns what the system said about `path` into an error that says what was wanted of it.
fn failed(path: &Path, doing: &'static str) -> impl Fn(io::Error) -> StoreError {
    move |error| StoreError::Io { path: path.to_owned(), doing, error }
}

/// Where the state is, if the folder is there and nobody else can change what is in it.
fn check_present(folder: &Path) -> Result<PathBuf, StoreError> {
    let path = folder.join("state");
    let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    match fs::metadata(&path) {
        Err(error) if is_gone(&error) => return Err(StoreError::Missing(path)),
        Err(error) => return Err(failed(&path, "cannot be read")(error)),
        Ok(_) => check_folder(folder)?,
    }
    Ok(path)
}

/// Makes the folder, if it is not there, and checks it.
fn make_folder(folder: &Path) -> Result<(), StoreError> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => {
            let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
            sync_folder(parent.unwrap_or(Path::new(".")))?;
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(failed(folder, "cannot be made")(error)),
    }
    check_folder(folder)
}

/// Whoever can write here can take a vote back.
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

/// Makes sure that no other process runs with the state in `folder`.
fn lock(folder: &Path) -> Result<File, StoreError> {
    let path = folder.join("lock");
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.open(&path).map_err(failed(&path, "cannot be opened"))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let pid = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
            return Err(StoreError::Locked { path: folder.to_owned(), pid });
        }
        Err(TryLockError::Error(error)) => return Err(failed(&path, "cannot be locked")(error)),
    }
    // Only an error message depends on it, so a disk that is full does not matter. The width is that of the longest,
    // so that nothing is left of the one before.
    let _ = file.write_all_at(format!("{:10}\n", std::process::id()).as_bytes(), 0);
    Ok(file)
}

/// Opens the file and reads both slots; what is not there reads as zeros.
fn read(path: &Path, options: &OpenOptions) -> Result<(File, Image), StoreError> {
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

/// The record that counts, if it is one that `owner` can go on from.
fn newest(path: &Path, image: &Image, owner: &Owner) -> Result<Record<'static>, StoreError> {
    let path = || path.to_owned();
    let last = Record::newest(image).map_err(|flaw| match flaw {
        Flaw::Damaged => StoreError::Damaged(path()),
        Flaw::Newer(found) => StoreError::Newer { path: path(), found },
    })?;
    if (&*last.cluster, last.member) != (owner.cluster.as_str(), owner.member.0) {
        let (cluster, found) = (last.cluster.into_owned(), NodeId(last.member));
        return Err(StoreError::Foreign { path: path(), cluster, found, expected: owner.clone() });
    }
    let expected = owner.algorithm.name();
    if last.durable != Durable::Nothing && last.algorithm != expected {
        let found = last.algorithm.into_owned();
        return Err(StoreError::OtherAlgorithm { path: path(), found, expected });
    }
    Ok(last)
}

fn check_refusal(path: &Path, folder: &Path, last: &Record<'_>) -> Result<(), StoreError> {
    match is_refused(folder, last)? {
        true => Err(StoreError::Refused(path.to_owned())),
        false => Ok(()),
    }
}

/// What was refused lies there no more.
fn forget_refusal(folder: &Path) -> Result<(), StoreError> {
    refused::forget(folder).map_err(failed(&refused::path(folder), "cannot be removed"))
}

fn is_refused(folder: &Path, last: &Record<'_>) -> Result<bool, StoreError> {
    refused::is_noted(folder, last.incarnation)
        .map_err(failed(&refused::path(folder), "cannot be read"))
}

/// Puts a new file with this first slot in the place of what lies there. That is in its place until the new file is:
/// it is copied to `state.old`, not moved.
fn replace(folder: &Path, keep: bool, slot: &[u8; SLOT]) -> Result<File, StoreError> {
    let [path, old, new] = ["state", "state.old", "state.new"].map(|name| folder.join(name));
    // Left by a process that ended in the middle.
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
    // Not before, and not even in a crash: the refused state must not become usable.
    forget_refusal(folder)?;
    sync_folder(folder)?;
    Ok(file)
}

/// A file with this first slot, whole and synced, or none.
fn write_new(path: &Path, slot: &[u8; SLOT]) -> Result<File, StoreError> {
    let mut options = OpenOptions::new();
    let opened = options.read(true).write(true).create_new(true).mode(0o600).open(path);
    let file = opened.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => StoreError::Exists(path.to_owned()),
        _ => failed(path, "cannot be made")(error),
    })?;
    let mut image = [0; FILE];
    image[..SLOT].copy_from_slice(slot);
    if let Err(error) = file.write_all_at(&image, 0).and_then(|()| file.sync_all()) {
        // It is not whole, and a name without a whole state behind it only gets in the way.
        let _ = fs::remove_file(path);
        return Err(failed(path, "cannot be written")(error));
    }
    Ok(file)
}

/// A new name survives a crash only when its folder is synced.
fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(failed(folder, "cannot be synced"))
}
