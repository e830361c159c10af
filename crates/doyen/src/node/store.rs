//! The durable state of a node: one small file of two slots, written in turn.
//!
//! ```text
//!   state_dir/
//!     state        slot 0 at byte 0, slot 1 at byte 4096, each 2048 bytes: `store/slot.rs`
//!     lock         held while a node runs; contains its process id, for the error that a second process gets
//!     state.old    the state before a rejoin
//!     refused      the incarnation in which other members refused the state as a copy: `store/refused.rs`
//!     history      the latest changes of leadership, which no rule reads: `history/file.rs`
//! ```
//!
//! **Contents.** The owner with the list of members, the incarnation, whether the member is still rejoining, and opaque
//! bytes ([`Saved`]): what the core stores, or the initial record of the algorithm.
//!
//! **Versions.** A slot has two checksums: the first one ends its first 512 bytes, which have the layout of version 1, so
//! that an older program recognizes a newer format; the other one covers the whole slot. Both must match. Slots of earlier
//! versions are read and never written: after an upgrade the file has one slot of each until both have been written.
//!
//! **The list of members is fixed** once a member has started: two lists could elect two leaders, since a majority of one need
//! not meet a majority of the other. A state of another list is refused, whichever of the two is the wrong one; to change the
//! list, an operator creates the cluster again, with a floor for its terms (docs/operations.md). A state of an earlier version
//! adopts the list of its next start.
//!
//! **Writing.** A record goes with the next sequence number into the slot of the older record, and is synced before
//! [`Store::save`] returns. The highest complete sequence counts, so a torn write leaves the record before, and no member
//! has been told of the new one. The slots are on different pages, so that one bad write cannot damage both. All blocks are
//! written when the file is created: a disk that fills up later does not stop a node if the file system writes in place.
//! Saving allocates nothing.
//!
//! **If a write fails**, the state of the disk is unknown: the system may drop what it could not write and report that only
//! once. The process must end; a store that has failed rejects everything that follows. For the same reason
//! [`Store::open`] writes the record that it found once more before it touches the other slot: the record may have been in
//! the page cache only, left there by a process whose last sync failed.
//!
//! **Origin of a state.** `doyen init` creates it ([`Store::create`]), a node never does: a lost file must not look like a
//! first start, because the member may have voted. A member whose state is lost, damaged or an old copy comes back by
//! [`Store::rejoin`], which an operator must request (`doyen rejoin`). Nothing is replaced before the first record is saved,
//! which needs an incarnation that only the other members know. Records say that the member is *rejoining* until it has
//! finished, across any number of restarts; see [`Origin::Rejoining`].
//!
//! **What a store cannot detect**: a file that was restored from a copy or cloned is as valid as any. So is the older record
//! of a file whose newer one has decayed: it looks like a torn write. Other members detect such a state by its incarnation
//! or its term. Nor can a store detect whether a state that `doyen init` created is the member's first: the member may have
//! run elsewhere. So the first start observes the hold-down like any other.

mod files;
pub(crate) mod refused;
mod slot;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt as _};
use std::path::{Path, PathBuf};

use doyen_core::members::{Incarnation, NodeId};
use doyen_core::protocol::Origin;
use doyen_core::registry::Algorithm;

use crate::config::Settings;
use files::{
    check_lock, check_present, failed, forget_refusal, lock, make_folder, read, replace,
    sync_folder, write_new,
};
use slot::{Durable, Flaw, Image, Record, SLOT};

pub use slot::{LONGEST_CLUSTER, LONGEST_DURABLE};

/// The owner of a state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owner {
    /// The name of the cluster, at most [`LONGEST_CLUSTER`] bytes.
    pub cluster: String,
    /// The member.
    pub member: NodeId,
    /// The algorithm of the records.
    pub algorithm: Algorithm,
    /// All members, this one included, in the order of their ids.
    pub members: Vec<NodeId>,
}

impl Owner {
    /// The list as it is stored.
    fn ids(&self) -> Vec<u32> {
        self.members.iter().map(|member| member.0).collect()
    }
}

impl Settings {
    /// The owner of this node's state.
    pub fn owner(&self) -> Owner {
        let Self { cluster, me, algorithm, core, .. } = self;
        let members = core.members.iter().collect();
        Owner { cluster: cluster.clone(), member: *me, algorithm: *algorithm, members }
    }
}

/// The state of a running node, locked against other processes.
pub struct Store {
    folder: PathBuf,
    path: PathBuf,
    medium: Medium,
    owner: Owner,
    /// The ids of all members.
    members: Vec<u32>,
    incarnation: Incarnation,
    sequence: u64,
    /// The buffer for a record.
    slot: [u8; SLOT],
    /// A write has failed.
    broken: bool,
    /// Closing it releases the lock.
    _lock: File,
}

/// Where the next record goes.
enum Medium {
    /// To the slot of the older record.
    File(File),
    /// To a new file: the member rejoins and has saved nothing. `keep`: the present state is kept as `state.old`.
    New { keep: bool },
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

/// The record that was stored last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Saved {
    /// The record of the algorithm alone, of a version before 3.
    EarlierBare(Vec<u8>),
    /// The record of the algorithm, and what the core knows about the other members, of version 2.
    EarlierKept(Vec<u8>),
    /// The record of the algorithm alone: from `doyen init`.
    Bare(Vec<u8>),
    /// The record of the algorithm, and what the core knows about the other members.
    Kept(Vec<u8>),
}

/// An open store, and what a node starts from.
#[derive(Debug)]
pub struct Opened {
    /// The store.
    pub store: Store,
    /// The incarnation of this start. It is stored already.
    pub incarnation: Incarnation,
    /// The record that was stored last.
    pub durable: Option<Saved>,
    /// Whether the member lost its state and has not finished rejoining.
    pub rejoining: bool,
}

impl Opened {
    /// How the process starts.
    pub fn origin(&self) -> Origin {
        if self.rejoining { Origin::Rejoining } else { Origin::Joining }
    }
}

/// Why a state cannot be used. Each message says what to do.
#[expect(missing_docs, reason = "the messages say what the fields are")]
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no file.
    #[error(
        "{}: there is no state; if this cluster has never run, `doyen init` creates it; if this member has run \
         before, it may have voted: run `doyen rejoin` while all other members are up", .0.display()
    )]
    Missing(PathBuf),
    /// Neither slot is valid.
    #[error(
        "{}: both copies of the state are damaged; run `doyen rejoin` while all other members are up (the file is kept as \
         state.old)", .0.display()
    )]
    Damaged(PathBuf),
    /// It belongs to another member or cluster.
    #[error(
        "{}: this is the state of member {found} of cluster `{cluster}`, not of member {} of `{}`; give every member \
         its own state_dir; if this folder is right, move the file away and run `doyen rejoin` while \
         all other members are up", path.display(), expected.member, expected.cluster
    )]
    Foreign { path: PathBuf, cluster: String, found: NodeId, expected: Owner },
    /// Another algorithm stored it.
    #[error(
        "{}: was stored by `{found}`, but the configuration says `{expected}`; set `algorithm` back, or create a new \
         cluster with `doyen init --algorithm {expected} --term-floor N`, N above all earlier terms", path.display()
    )]
    OtherAlgorithm { path: PathBuf, found: String, expected: &'static str },
    /// The member has started with another list of members.
    #[error(
        "{}: this member has run in a cluster of the members {stored}, and the configuration lists {listed}; set the list \
         back: two lists can elect two leaders at once; to change the members of a cluster, stop all of them and create it again \
         (`doyen init --term-floor N`, docs/operations.md)", path.display()
    )]
    OtherMembers { path: PathBuf, stored: String, listed: String },
    /// A newer version of doyen wrote it.
    #[error(
        "{}: a newer doyen wrote this state (format {found}; this one reads up to {}); run that version again",
        path.display(), slot::VERSION
    )]
    Newer { path: PathBuf, found: u16 },
    /// Another process runs with it.
    #[error("{}: {}", path.display(), holder(*pid, *rejoins))]
    Locked { path: PathBuf, pid: Option<u32>, rejoins: bool },
    /// Other users can change it.
    #[error(
        "{path}: other users can write here (mode {mode:03o}) and could make this member vote twice; run \
         `chmod go-w {path}`", path = path.display()
    )]
    Exposed { path: PathBuf, mode: u32 },
    /// Other members know that it is not the latest.
    #[error(
        "{}: other members have refused this state: it is an old copy, or another process ran with a clone of it; make \
         sure that no other process runs as this member, then run `doyen rejoin` while all other members are up", .0.display()
    )]
    Refused(PathBuf),
    /// It is valid, but the algorithm cannot decode it.
    #[error("{}: this version cannot decode the state; run `doyen rejoin` while all other members are up", .0.display())]
    Unreadable(PathBuf),
    /// A member is to rejoin that has not lost its state.
    #[error(
        "{}: the state is valid, and is kept: there is nothing to rejoin for, start the node. If you have restored it from a \
         copy, move the file `state` away and run `doyen rejoin` again", .0.display()
    )]
    Sound(PathBuf),
    /// There is one already.
    #[error(
        "{}: there is a state already, and it is never overwritten; move it away to create a new one",
        .0.display()
    )]
    Exists(PathBuf),
    /// The incarnation cannot rise any more.
    #[error(
        "{}: the number of starts is at its limit; create a new cluster with `doyen init`",
        .0.display()
    )]
    WornOut(PathBuf),
    /// The system reports an error.
    #[error("{}: {doing}: {error}; {}", path.display(), remedy(error.kind()))]
    Io { path: PathBuf, doing: &'static str, error: io::Error },
}

fn holder(pid: Option<u32>, rejoins: bool) -> String {
    let process = pid.map_or("an unknown process".to_owned(), |pid| format!("process {pid}"));
    match rejoins {
        true => format!(
            "this member lost its state, and {process} is rejoining (`doyen rejoin`); start the node when that has ended"
        ),
        false => format!(
            "another doyen runs with this state, {process}; stop it first, or give this node its own state_dir"
        ),
    }
}

fn remedy(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::PermissionDenied => "make it belong to the user that doyen runs as",
        io::ErrorKind::ReadOnlyFilesystem => "a node must be able to write its state",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "free some space"
        }
        io::ErrorKind::NotFound => "create its parent folder",
        io::ErrorKind::NotADirectory => "state_dir must name a folder",
        io::ErrorKind::IsADirectory => "it must be a file",
        _ => "check the disk",
    }
}

impl Store {
    /// Creates the state of a member that has never started, with the initial record of its algorithm, if any, and the
    /// folder if necessary. If something fails, no file is left.
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
            members: owner.ids().into(),
        };
        let mut slot = [0; SLOT];
        record.encode(&mut slot).map_err(failed(&path, "cannot be written"))?;
        write_new(&path, &slot)?;
        forget_refusal(folder)?;
        sync_folder(folder)
    }

    /// Opens the state of `owner` for a start: locks it, raises the incarnation and stores that.
    pub fn open(folder: &Path, owner: &Owner) -> Result<Opened, StoreError> {
        check_present(folder)?;
        let lock = lock_state(folder)?;
        let Found { path, file, image, last } =
            find(folder, owner, OpenOptions::new().read(true).write(true))?;
        check_refusal(&path, folder, &last)?;

        // Byte for byte: a record of an earlier version stays one, and the bytes behind it do not change. The next record
        // has the present version, in the other slot.
        let failed = failed(&path, "cannot be written");
        let here = slot::offset(last.sequence);
        let as_found = &image[here as usize..][..SLOT];
        file.write_all_at(as_found, here).and_then(|()| file.sync_data()).map_err(&failed)?;

        let incarnation = next_incarnation(&path, last.incarnation)?;
        let medium = Medium::File(file);
        let mut store = Self::new(folder, medium, lock, owner, incarnation, last.sequence);
        store.write(last.rejoining, last.durable.clone()).map_err(&failed)?;
        let (durable, rejoining) = (saved(last.durable), last.rejoining);
        Ok(Opened { store, incarnation, durable, rejoining })
    }

    /// A store for a member that has lost its state, or whose state is damaged or an old copy, and the lowest incarnation
    /// that this start may take as far as the folder tells. Creates the folder if necessary.
    ///
    /// Nothing is written until the first [`Store::save`]. That creates a new file; the present state is kept as
    /// `state.old`, unless it was created by rejoining and never used. If it fails, the present state is still in place.
    pub fn rejoin(folder: &Path, owner: &Owner) -> Result<(Self, Incarnation), StoreError> {
        make_folder(folder)?;
        let lock = lock_state(folder)?;
        let path = folder.join("state");
        let image = match read(&path, OpenOptions::new().read(true)) {
            Err(StoreError::Missing(_)) => None,
            read => Some(read?.1),
        };
        let last = match image.as_ref().map(|image| newest(&path, image, owner)) {
            None | Some(Err(StoreError::Damaged(_))) => None,
            Some(found) => Some(found?),
        };
        let lowest = next_incarnation(&path, last.as_ref().map_or(0, |last| last.incarnation))?;
        let medium = Medium::New { keep: !last.is_some_and(|last| last.rejoining) };
        Ok((Self::new(folder, medium, lock, owner, lowest, 0), lowest))
    }

    /// Whether no process runs with the state in this folder, or rejoins to create one.
    pub fn check_free(folder: &Path) -> Result<(), StoreError> {
        check_lock(folder).map_err(|error| with_rejoining(folder, error))
    }

    /// Whether `owner` could start with this state. Changes nothing, and works while a node runs with it. `can_read` says
    /// whether a durable state can be decoded.
    pub fn check(
        folder: &Path,
        owner: &Owner,
        can_read: impl Fn(&Saved) -> bool,
    ) -> Result<(), StoreError> {
        let found = find(folder, owner, OpenOptions::new().read(true).write(true))?;
        check_refusal(&found.path, folder, &found.last)?;
        match saved(found.last.durable).is_some_and(|durable| !can_read(&durable)) {
            true => Err(StoreError::Unreadable(found.path)),
            false => Ok(()),
        }
    }

    /// Whether `owner` has lost its state and must rejoin: the state is missing, damaged, refused by others, unreadable, or
    /// has never been used. Changes nothing.
    pub fn is_lost(
        folder: &Path,
        owner: &Owner,
        can_read: impl Fn(&Saved) -> bool,
    ) -> Result<bool, StoreError> {
        let last = match find(folder, owner, OpenOptions::new().read(true)) {
            Ok(found) => found.last,
            Err(StoreError::Missing(_) | StoreError::Damaged(_)) => return Ok(true),
            Err(error) => return Err(error),
        };
        Ok(last.rejoining
            || last.incarnation == 0
            || is_refused(folder, &last)?
            || saved(last.durable).is_some_and(|durable| !can_read(&durable)))
    }

    /// Replaces the stored record. `incarnation` must not fall. `rejoining`: the member has not finished rejoining. When
    /// this returns, the record survives a crash. If it fails, the process must end.
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

    /// The incarnation of this start.
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
            members: owner.ids(),
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
                "an earlier write failed, so the state on the disk is unknown",
            ));
        }
        // Until the write succeeds.
        self.broken = true;
        let sequence = match self.medium {
            Medium::File(_) => self.sequence + 1,
            Medium::New { .. } => 0,
        };
        let record = Record {
            sequence,
            cluster: Cow::Borrowed(&self.owner.cluster),
            member: self.owner.member.0,
            incarnation: self.incarnation.0,
            rejoining,
            algorithm: Cow::Borrowed(self.owner.algorithm.name()),
            durable,
            members: Cow::Borrowed(&self.members),
        };
        record.encode(&mut self.slot)?;
        match &self.medium {
            Medium::File(file) => {
                check_in_place(&self.path, file)?;
                file.write_all_at(&self.slot, slot::offset(sequence))?;
                file.sync_data()?;
            }
            &Medium::New { keep } => {
                let file = replace(&self.folder, keep, &self.slot).map_err(as_io)?;
                self.medium = Medium::File(file);
            }
        }
        self.sequence = sequence;
        self.broken = false;
        Ok(())
    }
}

/// What is written to a file that has another place now, or none, is not there at the next start.
fn check_in_place(path: &Path, file: &File) -> io::Result<()> {
    let identity = |metadata: &Metadata| (metadata.dev(), metadata.ino());
    match fs::metadata(path) {
        Ok(found) if identity(&file.metadata()?) == identity(&found) => Ok(()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Err(io::Error::new(
            io::ErrorKind::NotFound,
            "the file was removed or replaced while the node ran",
        )),
    }
}

fn lock_state(folder: &Path) -> Result<File, StoreError> {
    lock(folder).map_err(|error| with_rejoining(folder, error))
}

/// Adds to the error that the state is locked whether that process rejoins: no node runs without a valid state.
fn with_rejoining(folder: &Path, error: StoreError) -> StoreError {
    match error {
        StoreError::Locked { path, pid, .. } => {
            let rejoins = match read(&folder.join("state"), OpenOptions::new().read(true)) {
                Ok((_, image)) => Record::newest(&image).map_or(true, |last| last.rejoining),
                Err(error) => matches!(error, StoreError::Missing(_)),
            };
            StoreError::Locked { path, pid, rejoins }
        }
        error => error,
    }
}

fn saved(durable: Durable<'_>) -> Option<Saved> {
    match durable {
        Durable::Nothing => None,
        Durable::EarlierBare(bytes) => Some(Saved::EarlierBare(bytes.into_owned())),
        Durable::EarlierKept(bytes) => Some(Saved::EarlierKept(bytes.into_owned())),
        Durable::Bare(bytes) => Some(Saved::Bare(bytes.into_owned())),
        Durable::Kept(bytes) => Some(Saved::Kept(bytes.into_owned())),
    }
}

fn next_incarnation(path: &Path, earlier: u32) -> Result<Incarnation, StoreError> {
    let next = earlier.checked_add(1).map(Incarnation);
    next.ok_or_else(|| StoreError::WornOut(path.to_owned()))
}

/// The error of [`Store::save`], with its kind and message.
fn as_io(error: StoreError) -> io::Error {
    let kind = match &error {
        StoreError::Io { error, .. } => error.kind(),
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

/// A state file and its newest record.
struct Found {
    path: PathBuf,
    file: File,
    image: Image,
    last: Record<'static>,
}

fn find(folder: &Path, owner: &Owner, options: &OpenOptions) -> Result<Found, StoreError> {
    let path = check_present(folder)?;
    let (file, image) = read(&path, options)?;
    let last = newest(&path, &image, owner)?;
    Ok(Found { path, file, image, last })
}

/// The newest record, if `owner` can continue from it.
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
    let (has_started, listed) = (last.incarnation > 0, owner.ids());
    if has_started && !last.members.is_empty() && *last.members != *listed {
        let told = |ids: &[u32]| ids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let (stored, listed) = (told(&last.members), told(&listed));
        return Err(StoreError::OtherMembers { path: path(), stored, listed });
    }
    Ok(last)
}

fn check_refusal(path: &Path, folder: &Path, last: &Record<'_>) -> Result<(), StoreError> {
    match is_refused(folder, last)? {
        true => Err(StoreError::Refused(path.to_owned())),
        false => Ok(()),
    }
}

fn is_refused(folder: &Path, last: &Record<'_>) -> Result<bool, StoreError> {
    refused::is_noted(folder, last.incarnation)
        .map_err(failed(&refused::path(folder), "cannot be read"))
}
