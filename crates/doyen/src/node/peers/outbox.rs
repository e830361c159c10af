//! Datagrams that are to go out, in one buffer that is used again and again.

use std::net::SocketAddr;
use std::ops::Range;

/// Datagrams and where they go.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    datagrams: Vec<(SocketAddr, Range<usize>)>,
    failed: u64,
}

impl Outbox {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// The datagrams, in the order in which they are to go.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (SocketAddr, &[u8])> {
        self.datagrams.iter().map(|(to, range)| (*to, &self.bytes[range.clone()]))
    }

    /// How many Hellos could not be made, for want of random numbers.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// Empties it. What it has allocated stays for the next use.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.datagrams.clear();
        self.failed = 0;
    }

    /// Adds what `write` appends, unless it fails; then it must have appended nothing.
    pub(super) fn push<E>(
        &mut self,
        to: SocketAddr,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let begin = self.bytes.len();
        write(&mut self.bytes)?;
        self.datagrams.push((to, begin..self.bytes.len()));
        Ok(())
    }

    pub(super) fn fail(&mut self) {
        self.failed += 1;
    }
}
