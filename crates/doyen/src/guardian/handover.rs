//! The memory that a node shares with its guardian: what is left to do and to send if the node dies.
//!
//! After each event that changes it, the node seals the messages that end its lease (rule Q16 of the quorum) and puts them
//! here, with their addresses. So the guardian holds no key and encodes nothing. The end of the last permit is put here too,
//! before the permit leaves the node.
//!
//! A file in memory without a name, which the guardian inherits:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | when the last permit ends: nanoseconds of the boot-time clock |
//! | 8 | 8 | sequence: odd while the rest is being written |
//! | 16 | 4 | length of the rest |
//! | 20 | – | the datagrams |
//!
//! A node that dies while it writes leaves an odd sequence, and then nothing is sent.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;

use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize};

use crate::clock::Moment;

const SEQUENCE: u64 = 8;
const DATAGRAMS: u64 = 20;
/// More than the datagrams of any cluster.
const LONGEST: usize = 1 << 20;

/// A sealed datagram, and where it goes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Datagram {
    /// The address of its receiver.
    pub address: SocketAddr,
    /// The datagram.
    pub bytes: Vec<u8>,
}

/// The memory. Node and guardian hold the same one.
#[derive(Debug)]
pub struct Handover(File);

impl Handover {
    /// Creates it, empty.
    pub fn create() -> io::Result<Self> {
        let memory = Self(memfd_create("doyen-handover", MemfdFlags::CLOEXEC)?.into());
        memory.0.write_all_at(&[0; DATAGRAMS as usize], 0)?;
        Ok(memory)
    }

    pub(super) fn inherited(fd: OwnedFd) -> Self {
        Self(fd.into())
    }

    /// The same memory, for another thread.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self(self.0.try_clone()?))
    }

    /// The last permit ends at this time. Callers write later and later times.
    pub fn permit_ends(&self, at: Moment) -> io::Result<()> {
        self.0.write_all_at(&at.as_nanos().to_le_bytes(), 0)
    }

    /// Replaces the datagrams. Only one thread does so.
    pub fn prepare(&self, datagrams: &[Datagram]) -> io::Result<()> {
        let encoded = postcard::to_allocvec(datagrams).map_err(io::Error::other)?;
        // Odd even if an earlier write failed halfway.
        let writing = self.number(SEQUENCE)? | 1;
        let mut record = (encoded.len() as u32).to_le_bytes().to_vec();
        record.extend_from_slice(&encoded);
        self.0.write_all_at(&writing.to_le_bytes(), SEQUENCE)?;
        self.0.write_all_at(&record, SEQUENCE + 8)?;
        self.0.write_all_at(&(writing + 1).to_le_bytes(), SEQUENCE)
    }

    /// When the last permit ends.
    pub(super) fn permit(&self) -> io::Result<Moment> {
        self.number(0).map(Moment::from_nanos)
    }

    /// The datagrams, once the node is dead; none if it died while it wrote.
    pub(super) fn datagrams(&self) -> io::Result<Vec<Datagram>> {
        let mut length = [0; 4];
        self.0.read_exact_at(&mut length, SEQUENCE + 8)?;
        let length = u32::from_le_bytes(length) as usize;
        if self.number(SEQUENCE)? % 2 == 1 || length == 0 || length > LONGEST {
            return Ok(Vec::new());
        }
        let mut encoded = vec![0; length];
        self.0.read_exact_at(&mut encoded, DATAGRAMS)?;
        postcard::from_bytes(&encoded).map_err(io::Error::other)
    }

    fn number(&self, at: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, at)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

impl AsFd for Handover {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_prepared_is_read_whole_or_not_at_all() {
        let memory = Handover::create().unwrap();
        assert_eq!(memory.datagrams().unwrap(), []);
        let datagram = |byte, length| Datagram {
            address: SocketAddr::from(([127, 0, 0, 1], 7400)),
            bytes: vec![byte; length],
        };
        for datagrams in [vec![datagram(1, 300), datagram(2, 9)], vec![datagram(3, 5)], vec![]] {
            memory.prepare(&datagrams).unwrap();
            assert_eq!(memory.datagrams().unwrap(), datagrams);
        }
        memory.prepare(&[datagram(4, 4)]).unwrap();
        memory.0.write_all_at(&99_u64.to_le_bytes(), SEQUENCE).unwrap();
        assert_eq!(memory.datagrams().unwrap(), [], "its writer died");
    }

    #[test]
    fn the_end_of_the_last_permit_is_shared_by_all_copies() {
        let memory = Handover::create().unwrap();
        assert_eq!(memory.permit().unwrap(), Moment::default());
        memory.try_clone().unwrap().permit_ends(Moment::from_nanos(77)).unwrap();
        assert_eq!(memory.permit().unwrap(), Moment::from_nanos(77));
    }
}
