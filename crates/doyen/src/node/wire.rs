//! The wire format: one sealed datagram per message.
//!
//! ```text
//!   magic 2 │ version 1 │ cluster 8 │ key id 4 │ nonce 24 │ sealed: envelope 38, kind 1, content │ tag 16
//!   └────────────────── in the clear ─────────────────────┘
//! ```
//!
//! All numbers are little-endian and of fixed length, so there is one way to encode a datagram. The envelope is the sender
//! (4), the receiver (4), the sender's session (8), the receiver's session (8, zero if the sender does not know it), a
//! counter (8), the number of the configuration (4) and that of a group (2, zero: there is one group). Kind 1 is a
//! [`Greeting`], kind 2 a message of the layers above in the encoding of the core, where there are groups with a [`Rider`]
//! after it, and kind 3 a [`Roster`]: for each entry the member (4), its incarnation (4) and session (8). Kind 4, from
//! version 4 on, is a packet that the loop passes on ([`relay`](super::relay)), and kind 5 a rider without a message. A
//! greeting is a challenge (8) and an answer (8), zero if there is none, the sender's incarnation (4), the incarnation of
//! the receiver that it has seen (4) and whether it asks for a roster (1).
//!
//! **Sealing** is XChaCha20-Poly1305 with the clear part as associated data: without the key nothing in a datagram can be
//! altered, and nothing of the sealed part can be read. The nonce is random for each datagram. A counter would have to be
//! stored and would repeat after a disk was restored or cloned, and a repeated nonce reveals both plaintexts and allows
//! forgeries. 24 random bytes do not repeat. They come from the operating system for each datagram, not from a generator
//! in this process: when a running machine is copied, the kernel is notified and reseeds, but a generator would be copied.
//! This costs a system call of a third of a microsecond (measured); sealing and opening take two each, and sending takes
//! longer.
//!
//! **Opening** checks the cheapest things first, and every check has its own [`Rejection`]: size, magic, version, cluster,
//! key, and only then the cipher. It works in place and never allocates. An attacker without the key can only make the
//! node compute one authentication tag per datagram.
//!
//! **The limit** is 8 KiB. Nearly all datagrams are below 200 bytes, and in a cluster of some dozens none exceeds an
//! Ethernet frame. But rings send lists of up to 15 bytes per member that cannot be split: 8 KiB hold five hundred
//! entries. The network fragments such a datagram, which is better than no election.
//!
//! **Riders** change no version: what follows a message was always ignored, and members with groups have another number
//! of the configuration, so that programs that know no groups drop their datagrams before they read them.
//!
//! **Versions.** The version is in the clear part and authenticated. This program writes version 4 and also reads and writes
//! version 3, which has no packets of kind 4, and whose messages of a quorum know no pauses, no reason of a RELEASE and no
//! penalties in heartbeats (`algorithm/quorum/message/earlier.rs` in doyen-core). It greets a member that
//! it has not met in both versions, answers in the version of the question, and otherwise uses the highest version that the
//! member's session has spoken (`network.rs`). So members can be upgraded one after the other.

use std::net::SocketAddr;
use std::num::NonZeroU64;

use chacha20poly1305::aead::array::Array;
use chacha20poly1305::{AeadInOut, KeyInit, XChaCha20Poly1305};
use doyen_core::group::rider::Rider;
use doyen_core::members::{Incarnation, NodeId, SessionId};
use doyen_core::node::Packet;
use doyen_core::protocol::Dropped;
use doyen_core::registry::{Algorithm, AnyMessage};
use doyen_core::session::{self, Challenge, Greeting, Letter, Met, Roster};

use crate::key::{Keyring, cluster_tag};

/// The longest datagram.
pub const LIMIT: usize = 8 * 1024;

/// The length of a datagram without its content.
pub const OVERHEAD: usize = HEADER + ENVELOPE + TAG;

/// How every datagram begins.
pub(super) const MAGIC: [u8; 2] = [0xd0, 0x9e];
/// The version that this program writes.
pub const VERSION: u8 = 4;
/// The earliest version that it reads, and writes to members that know no later one.
pub const EARLIEST: u8 = 3;
/// The first version with relayed packets.
pub(super) const RELAYS: u8 = 4;
const VERSION_AT: usize = 2;
/// Magic, version, cluster, key id: the associated data.
const CLEAR: usize = 2 + 1 + 8 + 4;
const NONCE: usize = 24;
const HEADER: usize = CLEAR + NONCE;
/// The envelope and the kind.
const ENVELOPE: usize = 4 + 4 + 8 + 8 + 8 + 4 + 2 + 1;
pub(super) const GREETING: usize = 8 + 8 + 4 + 4 + 1;
/// An entry of a roster.
const ENTRY: usize = 4 + 4 + 8;
const TAG: usize = 16;

const KIND_GREETING: u8 = 1;
const KIND_ELECTION: u8 = 2;
const KIND_ROSTER: u8 = 3;
const KIND_RELAY: u8 = 4;
const KIND_RIDER: u8 = 5;

macro_rules! rejections {
    ($($(#[$doc:meta])* $reason:ident = $name:literal,)*) => {
        /// Why a datagram was dropped.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Rejection {
            $($(#[$doc])* $reason,)*
        }

        impl Rejection {
            /// Every reason, in the order of their numbers.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$reason),*];

            /// Its name in metrics and logs.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$reason => $name,)*
                }
            }
        }
    };
}

rejections! {
    /// It is shorter or longer than any datagram of doyen.
    Size = "size",
    /// It does not begin like a datagram of doyen.
    Foreign = "foreign",
    /// It has another version of the protocol.
    Version = "version",
    /// It belongs to another cluster.
    Cluster = "cluster",
    /// It is sealed with a key that this node does not have.
    Key = "key",
    /// Its authentication failed: it was altered or forged.
    Forged = "forged",
    /// It was authenticated, but cannot be decoded.
    Malformed = "malformed",
    /// Its sender is not another member.
    Stranger = "stranger",
    /// It is for another member or another group.
    Misdirected = "misdirected",
    /// Its sender has another configuration: another member list, algorithm or lease of groups.
    Configuration = "configuration",
    /// It is from or for another session.
    Session = "session",
    /// It was received before, or is too old to tell.
    Replayed = "replayed",
    /// It is a greeting from an unknown session, too soon after another one.
    Limited = "limited",
}

impl From<Dropped> for Rejection {
    fn from(why: Dropped) -> Self {
        match why {
            Dropped::Session => Self::Session,
            Dropped::Replayed => Self::Replayed,
            Dropped::Limited => Self::Limited,
        }
    }
}

/// Sender and receiver of a datagram, with their sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// The sender's session.
    pub session: SessionId,
    /// The receiver's session, if the sender knows it.
    pub known: Option<SessionId>,
    /// Rises with every datagram from this session to this receiver; never zero.
    pub counter: u64,
    /// The number of the sender's configuration.
    pub configuration: u32,
    /// The group, always zero.
    pub group: u16,
}

/// The content of a datagram.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content<'a> {
    /// A challenge, an answer, or both: how two processes meet.
    Greeting(Greeting),
    /// An encoded packet of the core.
    Election(&'a [u8]),
    /// The sessions that a member has stored.
    Roster(Roster),
    /// What the loop passes on and does not read.
    Relay(&'a [u8]),
    /// What the groups say without a message: an encoded [`Rider`].
    Rider(&'a [u8]),
}

/// An authenticated datagram.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opened<'a> {
    /// Its version.
    pub version: u8,
    /// Sender and receiver.
    pub envelope: Envelope,
    /// Its content.
    pub content: Content<'a>,
}

impl Opened<'_> {
    /// The letter for the core, and what the groups say with it, or an error if that cannot be read; none if its content is
    /// not a letter, or not a message of `algorithm`. `at`: where it came from, if not from the address of its sender's
    /// configured name.
    pub fn into_letter_and_rider(
        self,
        algorithm: Algorithm,
        at: Option<SocketAddr>,
    ) -> Option<(Letter<Packet<AnyMessage>>, ReadRider)> {
        let mut rider = Ok(None);
        let content = match self.content {
            Content::Greeting(greeting) => session::Content::Greeting(greeting),
            Content::Roster(roster) => session::Content::Roster(roster),
            Content::Election(bytes) => {
                let mut encoded = postcard::Deserializer::from_bytes(bytes);
                let packet = match self.version {
                    VERSION => algorithm.read_packet(&mut encoded),
                    _ => algorithm.read_earlier_packet(&mut encoded),
                };
                let packet = packet.ok()?;
                let rest = encoded.finalize().unwrap_or_default();
                if self.version == VERSION && !rest.is_empty() {
                    rider = read_rider(rest).map(Some).ok_or(Rejection::Malformed);
                }
                session::Content::Inner(packet)
            }
            Content::Relay(_) | Content::Rider(_) => return None,
        };
        let Envelope { session, known, counter, .. } = self.envelope;
        Some((Letter { at, session, known, counter, content }, rider))
    }
}

/// What the groups say with a letter, if they do; an error if that cannot be read.
pub type ReadRider = Result<Option<Rider>, Rejection>;

/// Why a datagram cannot be sealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unsealed {
    /// It is too long.
    #[error("a message of {0} bytes is too long for a datagram of {LIMIT} bytes")]
    TooLong(usize),
    /// There are no random numbers for a nonce.
    #[error("the operating system returns no random numbers")]
    Random,
}

/// Seals and opens datagrams of one cluster.
#[derive(Debug)]
pub struct Sealer {
    cluster: String,
    /// The first bytes of every datagram of this cluster, in the version that this program writes.
    start: [u8; CLEAR - 4],
    /// The first one seals, all of them open. A keyring is never empty.
    locks: Vec<Lock>,
}

#[derive(Debug)]
struct Lock {
    id: [u8; 4],
    cipher: XChaCha20Poly1305,
}

impl Sealer {
    /// What seals the datagrams of a cluster.
    pub fn new(keys: &Keyring, cluster: &str) -> Self {
        let mut start = [0; CLEAR - 4];
        start[..2].copy_from_slice(&MAGIC);
        start[VERSION_AT] = VERSION;
        start[3..].copy_from_slice(&cluster_tag(cluster));
        let mut sealer = Self { cluster: cluster.to_owned(), start, locks: Vec::new() };
        sealer.rekey(keys);
        sealer
    }

    /// Replaces the keys.
    pub fn rekey(&mut self, keys: &Keyring) {
        let lock = |key: &crate::key::Key| Lock {
            id: key.id(&self.cluster),
            cipher: XChaCha20Poly1305::new((&*key.cipher_key(&self.cluster)).into()),
        };
        self.locks = keys.keys().iter().map(lock).collect();
    }

    /// Appends a sealed datagram to `out`; on an error `out` is unchanged.
    pub fn seal(
        &self,
        version: u8,
        envelope: &Envelope,
        content: &Content<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Unsealed> {
        let length = content.len();
        if OVERHEAD + length > LIMIT {
            return Err(Unsealed::TooLong(length));
        }
        out.reserve(OVERHEAD + length);
        self.enclose(version, out, |out| {
            envelope.write(out);
            content.write(out);
        })
    }

    /// Appends a datagram that contains, sealed, what `write` appends.
    pub(crate) fn enclose(
        &self,
        version: u8,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Unsealed> {
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).map_err(|_| Unsealed::Random)?;
        let lock = &self.locks[0];
        let begin = out.len();
        out.extend_from_slice(&self.start);
        out[begin + VERSION_AT] = version;
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

    /// Opens a datagram in place. One that is rejected is unchanged.
    pub fn open<'a>(&self, datagram: &'a mut [u8]) -> Result<Opened<'a>, Rejection> {
        if !(OVERHEAD..=LIMIT).contains(&datagram.len()) {
            return Err(Rejection::Size);
        }
        let (header, rest) = datagram.split_at_mut(HEADER);
        let (sealed, tag) = rest.split_at_mut(rest.len() - TAG);
        let (clear, nonce) = header.split_at(CLEAR);
        let (start, id) = clear.split_at(self.start.len());
        let version = self.version_of(start)?;
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
                return read(version, sealed).ok_or(Rejection::Malformed);
            }
            reason = Rejection::Forged;
        }
        Err(reason)
    }

    /// The version of a datagram that begins like this.
    fn version_of(&self, start: &[u8]) -> Result<u8, Rejection> {
        let (before, rest) = start.split_at(VERSION_AT);
        let (version, cluster) = (rest[0], &rest[1..]);
        match version {
            _ if before != MAGIC => Err(Rejection::Foreign),
            EARLIEST..=VERSION if cluster == &self.start[VERSION_AT + 1..] => Ok(version),
            EARLIEST..=VERSION => Err(Rejection::Cluster),
            _ => Err(Rejection::Version),
        }
    }
}

impl Envelope {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.from.0.to_le_bytes());
        out.extend_from_slice(&self.to.0.to_le_bytes());
        out.extend_from_slice(&self.session.get().to_le_bytes());
        out.extend_from_slice(&self.known.map_or(0, SessionId::get).to_le_bytes());
        out.extend_from_slice(&self.counter.to_le_bytes());
        out.extend_from_slice(&self.configuration.to_le_bytes());
        out.extend_from_slice(&self.group.to_le_bytes());
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let envelope = Self {
            from: NodeId(u32::from_le_bytes(take(from)?)),
            to: NodeId(u32::from_le_bytes(take(from)?)),
            session: SessionId::new(number(from)??),
            known: number(from)?.map(SessionId::new),
            counter: u64::from_le_bytes(take(from)?),
            configuration: u32::from_le_bytes(take(from)?),
            group: u16::from_le_bytes(take(from)?),
        };
        (envelope.counter > 0).then_some(envelope)
    }
}

impl Content<'_> {
    /// Its length without the kind.
    fn len(&self) -> usize {
        match self {
            Self::Greeting(_) => GREETING,
            Self::Election(bytes) | Self::Relay(bytes) | Self::Rider(bytes) => bytes.len(),
            Self::Roster(roster) => roster.iter().len() * ENTRY,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Greeting(greeting) => {
                out.push(KIND_GREETING);
                for challenge in [greeting.ask, greeting.answer] {
                    let number = challenge.map_or(0, |Challenge(number)| number.get());
                    out.extend_from_slice(&number.to_le_bytes());
                }
                out.extend_from_slice(&greeting.incarnation.0.to_le_bytes());
                out.extend_from_slice(&greeting.seen.0.to_le_bytes());
                out.push(u8::from(greeting.wants_roster));
            }
            Self::Election(bytes) => {
                out.push(KIND_ELECTION);
                out.extend_from_slice(bytes);
            }
            Self::Roster(roster) => {
                out.push(KIND_ROSTER);
                for (id, met) in roster.iter() {
                    out.extend_from_slice(&id.0.to_le_bytes());
                    out.extend_from_slice(&met.incarnation.0.to_le_bytes());
                    out.extend_from_slice(&met.session.get().to_le_bytes());
                }
            }
            Self::Relay(bytes) => {
                out.push(KIND_RELAY);
                out.extend_from_slice(bytes);
            }
            Self::Rider(bytes) => {
                out.push(KIND_RIDER);
                out.extend_from_slice(bytes);
            }
        }
    }
}

fn read_greeting(mut from: &[u8]) -> Option<Greeting> {
    let from = &mut from;
    let [ask, answer] = [number(from)?, number(from)?].map(|number| number.map(Challenge));
    let incarnation = Incarnation(u32::from_le_bytes(take(from)?));
    let seen = Incarnation(u32::from_le_bytes(take(from)?));
    let wants_roster = match take(from)? {
        [0] => false,
        [1] => true,
        _ => return None,
    };
    let whole = from.is_empty() && (ask.is_some() || answer.is_some());
    whole.then_some(Greeting { ask, answer, incarnation, seen, wants_roster })
}

fn read_roster(from: &[u8]) -> Option<Roster> {
    let entry = |mut bytes: &[u8]| {
        let bytes = &mut bytes;
        let id = NodeId(u32::from_le_bytes(take(bytes)?));
        let incarnation = Incarnation(u32::from_le_bytes(take(bytes)?));
        Some((id, Met { incarnation, session: SessionId::new(number(bytes)??) }))
    };
    let entries = from.chunks_exact(ENTRY);
    entries.remainder().is_empty().then_some(())?;
    entries.map(entry).collect()
}

/// What the groups of another member say.
pub(super) fn read_rider(bytes: &[u8]) -> Option<Rider> {
    match postcard::take_from_bytes(bytes) {
        Ok((rider, [])) => Some(rider),
        _ => None,
    }
}

/// Decodes the plaintext.
fn read(version: u8, mut opened: &[u8]) -> Option<Opened<'_>> {
    let envelope = Envelope::read(&mut opened)?;
    let [kind] = take(&mut opened)?;
    let content = match kind {
        KIND_GREETING => Content::Greeting(read_greeting(opened)?),
        KIND_ELECTION => Content::Election(opened),
        KIND_ROSTER => Content::Roster(read_roster(opened)?),
        KIND_RELAY if version >= RELAYS => Content::Relay(opened),
        KIND_RIDER if version >= RELAYS => Content::Rider(opened),
        _ => return None,
    };
    Some(Opened { version, envelope, content })
}

/// The next number; zero means none.
fn number(from: &mut &[u8]) -> Option<Option<NonZeroU64>> {
    Some(NonZeroU64::new(u64::from_le_bytes(take(from)?)))
}

fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(*taken)
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("the datagram was split at these lengths")
}

#[cfg(test)]
mod tests;
