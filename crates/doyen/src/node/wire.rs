//! What goes over the network: one sealed datagram a message.
//!
//! ```text
//!   magic 2 │ version 1 │ cluster 8 │ key id 4 │ nonce 24 │ sealed: envelope 38, kind 1, content │ tag 16
//!   └────────────────── in the clear ─────────────────────┘
//! ```
//!
//! All numbers are little-endian and of fixed length, so every part has its place and there is one way to write a
//! thing. The envelope is who (4) to whom (4), the sender's session (8), the receiver's as the sender knows it (8,
//! zero if it does not), a counter (8), the number of the configuration (4) and that of a group (2, zero: there is
//! one group). Kind 1 is a [`Hello`] of 24 bytes, kind 2 is what the core sends, in its own encoding, which means
//! nothing here.
//!
//! **Sealed** is XChaCha20-Poly1305 with what is in the clear as associated data: nothing in a datagram can be
//! altered, and nothing of the sealed part be read, without the key. The nonce is random for each datagram. A counter
//! would have to be kept on disk and would repeat after a restored or cloned disk, and a nonce that repeats under one
//! key betrays both texts and lets anybody forge. 24 random bytes do not repeat. They come from the operating system
//! for each datagram, not from a store in this process: when a running machine is copied, the kernel is told and its
//! randomness changes, while a store would be copied with it. That is a system call of a third of a microsecond
//! (measured), where sealing and opening take two each and sending is a longer call anyway.
//!
//! **Opening** goes from cheap to dear, and every step has a [`Rejection`] of its own: size, magic, version, cluster,
//! key, and only then the cipher. It works in place and allocates nothing, whatever comes. Who reaches the port but
//! has no key can make the node compute a checksum over what it sends, and nothing else.
//!
//! **The limit** is 8 KiB. Nearly all datagrams are below 200 bytes and none in a group of some dozens exceeds what
//! an Ethernet frame carries. But rings send lists, up to 15 bytes a member, and a list cannot be cut in two: 8 KiB
//! are lists of five hundred. The network takes such a datagram apart and puts it together again, which is worse than
//! not having to and better than not being able to elect.
//!
//! **Versions.** The version stands in the clear and is part of what is authenticated. This is version 1, and reads no
//! other. A release with another version has to read this one too, to greet in both, and to talk to each peer in the
//! highest in which that one has answered: then members can be upgraded one after the other.

use std::num::NonZeroU64;

use chacha20poly1305::aead::array::Array;
use chacha20poly1305::{AeadInOut, KeyInit, XChaCha20Poly1305};
use doyen_core::members::{Incarnation, NodeId};

use crate::key::{Keyring, cluster_tag};

/// No datagram is longer. A buffer that is to notice a longer one is one byte longer.
pub const LIMIT: usize = 8 * 1024;

/// By how much a datagram is longer than the message of the core in it.
pub const OVERHEAD: usize = HEADER + ENVELOPE + TAG;

const MAGIC: [u8; 2] = [0xd0, 0x9e];
const VERSION: u8 = 1;
/// Magic, version, cluster, key id: the associated data.
const CLEAR: usize = 2 + 1 + 8 + 4;
const NONCE: usize = 24;
const HEADER: usize = CLEAR + NONCE;
/// The envelope and the kind.
const ENVELOPE: usize = 4 + 4 + 8 + 8 + 8 + 4 + 2 + 1;
const HELLO: usize = 8 + 8 + 4 + 4;
const TAG: usize = 16;

const KIND_HELLO: u8 = 1;
const KIND_ELECTION: u8 = 2;

/// Why a datagram was dropped. Each is counted by its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rejection {
    /// It is shorter than any datagram of doyen's, or longer.
    Size,
    /// It does not begin as a datagram of doyen's does.
    Foreign,
    /// It is of another version of the protocol.
    Version,
    /// It is for another cluster.
    Cluster,
    /// It is sealed with a key that this node does not have.
    Key,
    /// It does not open: it was altered, or forged.
    Forged,
    /// It opens, and cannot be read.
    Malformed,
    /// Its sender is no member, or this node itself.
    Stranger,
    /// It is for another member or another group.
    Misdirected,
    /// Its sender is configured otherwise: other members, or another algorithm.
    Configuration,
    /// It is from or for another life of the process.
    Session,
    /// It came before, or is so old that nobody can tell.
    Replayed,
    /// It greets from a life that is not known yet, sooner after another such than they are answered.
    Limited,
}

impl Rejection {
    /// Every reason.
    pub const ALL: [Self; 13] = [
        Self::Size,
        Self::Foreign,
        Self::Version,
        Self::Cluster,
        Self::Key,
        Self::Forged,
        Self::Malformed,
        Self::Stranger,
        Self::Misdirected,
        Self::Configuration,
        Self::Session,
        Self::Replayed,
        Self::Limited,
    ];

    /// Its name in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Foreign => "foreign",
            Self::Version => "version",
            Self::Cluster => "cluster",
            Self::Key => "key",
            Self::Forged => "forged",
            Self::Malformed => "malformed",
            Self::Stranger => "stranger",
            Self::Misdirected => "misdirected",
            Self::Configuration => "configuration",
            Self::Session => "session",
            Self::Replayed => "replayed",
            Self::Limited => "limited",
        }
    }
}

/// One life of a process, by a random number that it draws when it starts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Session(NonZeroU64);

impl Session {
    /// A new one.
    pub fn draw() -> Result<Self, getrandom::Error> {
        Ok(Self(draw()?))
    }

    /// The one with this number, for those who draw their own.
    pub const fn new(number: NonZeroU64) -> Self {
        Self(number)
    }
}

/// A random number that only who has received it can repeat.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Challenge(NonZeroU64);

impl Challenge {
    /// A new one.
    pub fn draw() -> Result<Self, getrandom::Error> {
        Ok(Self(draw()?))
    }

    /// The one with this number, for those who draw their own.
    pub const fn new(number: NonZeroU64) -> Self {
        Self(number)
    }
}

/// Random, and not zero, which means "none" on the wire.
fn draw() -> Result<NonZeroU64, getrandom::Error> {
    Ok(NonZeroU64::new(getrandom::u64()?).unwrap_or(NonZeroU64::MAX))
}

/// What stands with every content: who to whom, in which of their lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// Who sent it.
    pub from: NodeId,
    /// To whom.
    pub to: NodeId,
    /// The sender's session.
    pub session: Session,
    /// The receiver's session, if the sender knows it.
    pub known: Option<Session>,
    /// Rises with every datagram that the sender sends this receiver in this session; never zero.
    pub counter: u64,
    /// The number of the sender's configuration.
    pub configuration: u32,
    /// Which of many groups on the same members it is about.
    pub group: u16,
}

/// What a datagram says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content<'a> {
    /// A question, an answer, or both: how processes get to know each other.
    Hello(Hello),
    /// A packet of the core's, as the core encodes it.
    Election(&'a [u8]),
}

/// "Are you there, and who are you?" and "I am here, and this is me". Both are of the same length, so nobody can have
/// a node send more to a third party than was sent to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// To be repeated by the receiver.
    pub ask: Option<Challenge>,
    /// The receiver's question, repeated.
    pub answer: Option<Challenge>,
    /// The sender's incarnation; zero while it does not know it.
    pub incarnation: Incarnation,
    /// The highest incarnation of the receiver's that the sender has met in another session than the one that the
    /// envelope names; zero if there was none.
    pub seen: Incarnation,
}

/// Why something cannot be sealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unsealed {
    /// It is too long.
    #[error("a message of {0} bytes does not fit into a datagram of {LIMIT} with all around it")]
    TooLong(usize),
    /// There is no randomness for a nonce.
    #[error("the operating system gives no random numbers")]
    Random,
}

/// Seals and opens datagrams of one cluster.
#[derive(Debug)]
pub struct Sealer {
    cluster: String,
    /// What every datagram of this cluster begins with.
    start: [u8; CLEAR - 4],
    /// The first seals, all of them open. There is at least one, for a keyring is never empty.
    locks: Vec<Lock>,
}

/// A key, ready for use.
#[derive(Debug)]
struct Lock {
    id: [u8; 4],
    cipher: XChaCha20Poly1305,
}

impl Sealer {
    /// One for a cluster.
    pub fn new(keys: &Keyring, cluster: &str) -> Self {
        let mut start = [0; CLEAR - 4];
        start[..2].copy_from_slice(&MAGIC);
        start[2] = VERSION;
        start[3..].copy_from_slice(&cluster_tag(cluster));
        let mut sealer = Self { cluster: cluster.to_owned(), start, locks: Vec::new() };
        sealer.rekey(keys);
        sealer
    }

    /// Uses other keys from now on.
    pub fn rekey(&mut self, keys: &Keyring) {
        let lock = |key: &crate::key::Key| Lock {
            id: key.id(&self.cluster),
            cipher: XChaCha20Poly1305::new(&Array(key.cipher_key(&self.cluster))),
        };
        self.locks = keys.keys().iter().map(lock).collect();
    }

    /// Appends a sealed datagram to `out`, or leaves it as it was.
    pub fn seal(
        &self,
        envelope: &Envelope,
        content: Content<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Unsealed> {
        if OVERHEAD + content.len() > LIMIT {
            return Err(Unsealed::TooLong(content.len()));
        }
        out.reserve(OVERHEAD + content.len());
        self.enclose(out, |out| {
            envelope.write(out);
            content.write(out);
        })
    }

    /// Appends a datagram with the text that `write` appends sealed in it.
    pub(crate) fn enclose(
        &self,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Unsealed> {
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).map_err(|_| Unsealed::Random)?;
        let lock = &self.locks[0];
        let begin = out.len();
        out.extend_from_slice(&self.start);
        out.extend_from_slice(&lock.id);
        out.extend_from_slice(&nonce);
        write(out);
        let (header, text) = out[begin..].split_at_mut(HEADER);
        let tag = lock
            .cipher
            .encrypt_inout_detached(&Array(nonce), &header[..CLEAR], text.into())
            .expect("the cipher takes texts of up to 256 GiB");
        out.extend_from_slice(&tag);
        Ok(())
    }

    /// Opens a datagram in place. What does not open is left as it was.
    pub fn open<'a>(&self, datagram: &'a mut [u8]) -> Result<(Envelope, Content<'a>), Rejection> {
        if !(OVERHEAD..=LIMIT).contains(&datagram.len()) {
            return Err(Rejection::Size);
        }
        let (header, rest) = datagram.split_at_mut(HEADER);
        let (sealed, tag) = rest.split_at_mut(rest.len() - TAG);
        let (clear, nonce) = header.split_at(CLEAR);
        let (start, id) = clear.split_at(self.start.len());
        if start != self.start {
            return Err(self.refuse(start));
        }
        let (nonce, tag) = (array::<NONCE>(nonce), array::<TAG>(tag));
        let mut reason = Rejection::Key;
        for lock in self.locks.iter().filter(|lock| lock.id == id) {
            let opened = lock.cipher.decrypt_inout_detached(
                &Array(nonce),
                clear,
                (&mut *sealed).into(),
                &Array(tag),
            );
            if opened.is_ok() {
                return read(sealed).ok_or(Rejection::Malformed);
            }
            reason = Rejection::Forged;
        }
        Err(reason)
    }

    /// What is wrong with the beginning of a datagram that differs from ours.
    fn refuse(&self, start: &[u8]) -> Rejection {
        match start {
            [a, b, ..] if [*a, *b] != MAGIC => Rejection::Foreign,
            [_, _, version, ..] if *version != VERSION => Rejection::Version,
            _ => Rejection::Cluster,
        }
    }
}

impl Envelope {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.from.0.to_le_bytes());
        out.extend_from_slice(&self.to.0.to_le_bytes());
        out.extend_from_slice(&self.session.0.get().to_le_bytes());
        out.extend_from_slice(&or_zero(self.known.map(|session| session.0)).to_le_bytes());
        out.extend_from_slice(&self.counter.to_le_bytes());
        out.extend_from_slice(&self.configuration.to_le_bytes());
        out.extend_from_slice(&self.group.to_le_bytes());
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let envelope = Self {
            from: NodeId(u32::from_le_bytes(take(from)?)),
            to: NodeId(u32::from_le_bytes(take(from)?)),
            session: Session(NonZeroU64::new(u64::from_le_bytes(take(from)?))?),
            known: NonZeroU64::new(u64::from_le_bytes(take(from)?)).map(Session),
            counter: u64::from_le_bytes(take(from)?),
            configuration: u32::from_le_bytes(take(from)?),
            group: u16::from_le_bytes(take(from)?),
        };
        (envelope.counter > 0).then_some(envelope)
    }
}

impl Content<'_> {
    /// Its length without its kind.
    fn len(&self) -> usize {
        match self {
            Self::Hello(_) => HELLO,
            Self::Election(bytes) => bytes.len(),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hello(hello) => {
                out.push(KIND_HELLO);
                let [ask, answer] =
                    [hello.ask, hello.answer].map(|one| or_zero(one.map(|one| one.0)));
                out.extend_from_slice(&ask.to_le_bytes());
                out.extend_from_slice(&answer.to_le_bytes());
                out.extend_from_slice(&hello.incarnation.0.to_le_bytes());
                out.extend_from_slice(&hello.seen.0.to_le_bytes());
            }
            Self::Election(bytes) => {
                out.push(KIND_ELECTION);
                out.extend_from_slice(bytes);
            }
        }
    }
}

impl Hello {
    fn read(mut from: &[u8]) -> Option<Self> {
        let from = &mut from;
        let hello = Self {
            ask: NonZeroU64::new(u64::from_le_bytes(take(from)?)).map(Challenge),
            answer: NonZeroU64::new(u64::from_le_bytes(take(from)?)).map(Challenge),
            incarnation: Incarnation(u32::from_le_bytes(take(from)?)),
            seen: Incarnation(u32::from_le_bytes(take(from)?)),
        };
        (from.is_empty() && (hello.ask.is_some() || hello.answer.is_some())).then_some(hello)
    }
}

/// Reads what was sealed.
fn read(mut opened: &[u8]) -> Option<(Envelope, Content<'_>)> {
    let envelope = Envelope::read(&mut opened)?;
    let [kind] = take(&mut opened)?;
    let content = match kind {
        KIND_HELLO => Content::Hello(Hello::read(opened)?),
        KIND_ELECTION => Content::Election(opened),
        _ => return None,
    };
    Some((envelope, content))
}

/// Takes the next bytes.
fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(*taken)
}

/// A copy of bytes whose number is known.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("the datagram was split at these lengths")
}

fn or_zero(number: Option<NonZeroU64>) -> u64 {
    number.map_or(0, NonZeroU64::get)
}

#[cfg(test)]
mod tests;
