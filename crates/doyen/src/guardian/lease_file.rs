//! The lease file: it tells every program on this machine until when this member may act.
//!
//! It lies on a file system in memory. The node rewrites it whenever its lease changes; readers map or read it. 80 bytes,
//! all numbers little-endian:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | `doyenLSE` |
//! | 8 | 4 | version: 1 |
//! | 12 | 4 | length: 80 |
//! | 16 | 8 | sequence: odd while the rest is being written |
//! | 24 | 8 | deadline: nanoseconds of the boot-time clock (`CLOCK_BOOTTIME`); 0 means that this member holds no lease |
//! | 32 | 8 | term of the lease |
//! | 40 | 8 | 0 |
//! | 48 | 16 | boot id, from `/proc/sys/kernel/random/boot_id` |
//! | 64 | 8 | time namespace: inode of `/proc/self/ns/time` |
//! | 72 | 8 | 0 |
//!
//! **To read it**: read the sequence, then the rest, then the sequence again; repeat unless both are the same even
//! number. The lease is valid if the boot id and the time namespace are the reader's own and the boot-time clock is
//! before the deadline. Anything else means: no lease. So a reader fails closed when the node dies (the deadline passes),
//! after a suspend (the clock counts it) and after a reboot (another boot id).
//!
//! **To act under it**: reading does not bind the leader. A program in the job's process tree is ended before the lease
//! is given up. Any other program takes a shared `flock`, reads the deadline, acts, and unlocks: before the node gives
//! its lease up it sets the deadline to zero and waits for the exclusive lock, until the old deadline at most.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use crate::clock::Moment;
use crate::{files, hex};

const MAGIC: &[u8; 8] = b"doyenLSE";
const VERSION: u32 = 1;
const LENGTH: usize = 80;
const SEQUENCE: u64 = 16;
const DEADLINE: u64 = 24;
/// How long to wait before it is asked again whether the file is locked.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// How often a reader tries to read what is being written.
const MOST_TRIES: usize = 200;

/// What the file says of a lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lease {
    /// When it ends.
    pub deadline: Moment,
    /// Its term.
    pub term: u64,
}

/// The clock by which a deadline counts: that of one boot, in one time namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ClockId {
    boot: [u8; 16],
    time_namespace: u64,
}

impl ClockId {
    fn own() -> io::Result<Self> {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
        let boot = hex::decode(&digits).and_then(|bytes| bytes.try_into().ok());
        let boot = boot.unwrap_or_default();
        // Before Linux 5.6 there was one time for all.
        let time_namespace = fs::metadata("/proc/self/ns/time").map_or(0, |it| it.ino());
        Ok(Self { boot, time_namespace })
    }
}

/// The file, for its writer. When this is dropped the file shows no lease; it stays, because programs may have it open.
#[derive(Debug)]
pub struct LeaseFile {
    file: File,
    path: PathBuf,
    sequence: u64,
    clock: ClockId,
    /// It shows the last lease even after this is dropped.
    is_left: bool,
    _lock: File,
}

impl LeaseFile {
    /// Creates the file, without a lease. One that is there already is taken over, unless its node is alive: that one holds
    /// a lock on a file beside it.
    pub fn create(path: &Path) -> io::Result<Self> {
        let lock = File::create(lock_of(path))?;
        // A program that asks whether a node writes the file has the lock for an instant.
        let is_free = |tried: usize| {
            if tried > 0 {
                std::thread::sleep(LOOK_AGAIN);
            }
            flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
        };
        if !(0..3).any(is_free) {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "another node writes it"));
        }
        let mut options = OpenOptions::new();
        let file =
            options.read(true).write(true).create(true).truncate(false).mode(0o644).open(path)?;
        let mut lease_file = Self {
            file,
            path: path.to_owned(),
            sequence: 0,
            clock: ClockId::own()?,
            is_left: false,
            _lock: lock,
        };
        // A reader of the earlier content must see that it is over before it sees anything else.
        lease_file.file.write_all_at(&0_u64.to_le_bytes(), DEADLINE)?;
        lease_file.publish(None)?;
        lease_file.file.set_len(LENGTH as u64)?;
        Ok(lease_file)
    }

    /// Removes a file that no other process writes, now or later, and its lock.
    pub fn remove(path: &Path) -> io::Result<()> {
        let removed = fs::remove_file(path);
        fs::remove_file(lock_of(path)).and(removed)
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// From now on the file stays as it is, for a guardian that ends the lease.
    pub(crate) fn leave(&mut self) {
        self.is_left = true;
    }

    /// Whether a program has locked the file, to act under the lease that it read.
    pub(crate) fn is_in_use(&self) -> bool {
        is_locked(&self.file)
    }

    /// Publishes a lease, or that there is none.
    pub fn publish(&mut self, lease: Option<Lease>) -> io::Result<()> {
        let Lease { deadline, term } = lease.unwrap_or_default();
        let mut record = [0; LENGTH];
        let mut put = |at: usize, bytes: &[u8]| record[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(12, &(LENGTH as u32).to_le_bytes());
        put(16, &(self.sequence + 1).to_le_bytes());
        put(24, &deadline.as_nanos().to_le_bytes());
        put(32, &term.to_le_bytes());
        put(48, &self.clock.boot);
        put(64, &self.clock.time_namespace.to_le_bytes());
        self.file.write_all_at(&(self.sequence + 1).to_le_bytes(), SEQUENCE)?;
        self.file.write_all_at(&record, 0)?;
        self.sequence += 2;
        self.file.write_all_at(&self.sequence.to_le_bytes(), SEQUENCE)
    }
}

impl Drop for LeaseFile {
    fn drop(&mut self) {
        // A node that panics leaves its lease as it is: its guardian releases that.
        if !self.is_left && !std::thread::panicking() {
            let _ = self.publish(None);
        }
    }
}

/// Whether a program has locked the file. One that locks it from now on reads what has been written by now.
fn is_locked(file: &File) -> bool {
    file.try_lock().is_err() || file.unlock().is_err()
}

/// The file whose lock the writer holds. That of a node stays: a lock on a removed file would exclude no other process.
fn lock_of(path: &Path) -> PathBuf {
    files::beside(path, ".lock")
}

/// The file, for readers.
#[derive(Debug)]
pub struct LeaseReader {
    file: File,
    clock: ClockId,
}

impl LeaseReader {
    /// Opens the file.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?, clock: ClockId::own()? })
    }

    /// Whether a process that is alive writes the file `path`, and not only one that is gone.
    pub fn is_written(path: &Path) -> bool {
        let lock = File::open(lock_of(path));
        lock.is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockShared).is_err())
    }

    /// The lease, if there is one; it may be over. An error if the file is no lease file, or is never whole.
    pub fn read(&self) -> io::Result<Option<Lease>> {
        let wrong = |what| io::Error::new(io::ErrorKind::InvalidData, what);
        for _ in 0..MOST_TRIES {
            let mut record = [0; LENGTH];
            self.file.read_exact_at(&mut record, 0)?;
            let number = |at: usize| {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(&record[at..at + 8]);
                u64::from_le_bytes(bytes)
            };
            let mut again = [0; 8];
            self.file.read_exact_at(&mut again, SEQUENCE)?;
            let sequence = number(16);
            if !sequence.is_multiple_of(2) || u64::from_le_bytes(again) != sequence {
                // Not only a yield: a reader with real-time priority would keep the writer from continuing.
                std::thread::sleep(Duration::from_micros(50));
                continue;
            }
            if &record[..8] != MAGIC || record[8..12] != VERSION.to_le_bytes() {
                return Err(wrong("not a lease file of version 1"));
            }
            let clock = ClockId {
                boot: record[48..64].try_into().map_err(|_| wrong("no boot id"))?,
                time_namespace: number(64),
            };
            let lease = Lease { deadline: Moment::from_nanos(number(24)), term: number(32) };
            return Ok((clock == self.clock && lease.deadline > Moment::default()).then_some(lease));
        }
        Err(wrong("the lease file is never whole: its node died or hangs while it wrote"))
    }

    /// Shows from now on that there is no lease: the writer is dead. If it died while it wrote, readers see none anyway.
    pub(super) fn close(&self, path: &Path) -> io::Result<()> {
        OpenOptions::new().write(true).open(path)?.write_all_at(&0_u64.to_le_bytes(), DEADLINE)
    }

    /// Waits until no program has locked the file, at most until `deadline`. Returns `deadline` if one still has.
    pub(super) fn wait_until_unused(&self, deadline: Moment) -> Moment {
        loop {
            let now = Moment::now();
            match is_locked(&self.file) {
                false => return now.min(deadline),
                true if now >= deadline => return deadline,
                true => std::thread::sleep(LOOK_AGAIN.min(deadline.since(now))),
            }
        }
    }

    /// Whether the lease is valid now. What cannot be read is no lease.
    pub fn is_valid(&self) -> bool {
        matches!(self.read(), Ok(Some(lease)) if Moment::now() < lease.deadline)
    }
}

#[cfg(test)]
mod tests {
    use doyen_core::time::Span;

    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_reader_sees_what_was_published_and_nothing_once_the_writer_is_gone() {
        let folder = Scratch::new();
        let path = folder.join("lease");
        let mut writer = LeaseFile::create(&path).unwrap();
        let reader = LeaseReader::open(&path).unwrap();
        assert!(reader.read().unwrap().is_none() && !reader.is_valid());
        assert!(
            LeaseFile::create(&path).is_err(),
            "a second node leaves the file of the first alone"
        );
        let deadline = Moment::now().after(Span::from_millis(60_000));
        let lease = Lease { deadline, term: 7 };
        writer.publish(Some(lease)).unwrap();
        assert_eq!(reader.read().unwrap(), Some(lease));
        assert!(reader.is_valid());
        assert!(LeaseReader::is_written(&path));
        drop(writer);
        assert!(!reader.is_valid() && path.exists());
        assert!(!LeaseReader::is_written(&path));
    }

    #[test]
    fn a_lease_that_is_over_of_another_boot_or_half_written_is_not_valid() {
        let folder = Scratch::new();
        let path = folder.join("lease");
        let mut writer = LeaseFile::create(&path).unwrap();
        let reader = LeaseReader::open(&path).unwrap();
        let lease = |deadline| Some(Lease { deadline, term: 1 });
        writer.publish(lease(Moment::from_nanos(1))).unwrap();
        assert!(!reader.is_valid());
        let later = Moment::now().after(Span::from_millis(60_000));
        writer.publish(lease(later)).unwrap();
        assert!(reader.is_valid());
        writer.file.write_all_at(&[!writer.clock.boot[15]], 63).unwrap();
        assert!(!reader.is_valid(), "another boot");
        writer.publish(lease(later)).unwrap();
        writer.file.write_all_at(&99_u64.to_le_bytes(), SEQUENCE).unwrap();
        assert!(!reader.is_valid(), "half written");
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let folder = Scratch::new();
        let path = folder.join("lease");
        let mut writer = LeaseFile::create(&path).unwrap();
        let deadline = Moment::from_nanos(0x0102_0304);
        writer.publish(Some(Lease { deadline, term: 5 })).unwrap();
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes.len(), LENGTH);
        assert_eq!(&bytes[..16], b"doyenLSE\x01\0\0\0\x50\0\0\0");
        assert_eq!(&bytes[24..32], &[4, 3, 2, 1, 0, 0, 0, 0]);
        assert_eq!((bytes[32], bytes[40]), (5, 0));
        assert_eq!(&bytes[48..64], &writer.clock.boot);
    }
}
