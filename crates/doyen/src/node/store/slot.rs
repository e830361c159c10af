//! A slot: one record as it lies on the disk.
//!
//! ```text
//!   magic 8 │ format version 2 │ record (postcard), then zeros │ checksum 16
//!   └───────────────────── what the checksum covers ──────────┘
//! ```
//!
//! Magic, version and checksum stand where they stand in every version to come, so that a state which a newer doyen
//! wrote is told from one that is damaged. The checksum is the beginning of a SHA-256: against accidents, not against
//! people, who could compute it as well.

use std::io;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The length of a slot: one sector, the least that a disk writes at once.
pub(super) const SLOT: usize = 512;
/// How far apart the slots begin: a page, the most that a bad write harms.
const STRIDE: usize = 4096;
/// The length of the file.
pub(super) const FILE: usize = 2 * STRIDE;
/// The whole file.
pub(super) type Image = [u8; FILE];

/// The version of the format.
pub(super) const VERSION: u16 = 1;
const MAGIC: [u8; 8] = *b"doyen\0st";
const HEAD: usize = MAGIC.len() + size_of::<u16>();
const CHECKSUM: usize = 16;
const BODY: std::ops::Range<usize> = HEAD..SLOT - CHECKSUM;

/// The longest name of a cluster.
pub const LONGEST_CLUSTER: usize = 64;
/// The longest record of an algorithm.
pub const LONGEST_DURABLE: usize = 320;

/// What is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Record<'a> {
    /// The highest counts. It also says in which slot the record stands.
    pub(super) sequence: u64,
    /// The name of the cluster.
    pub(super) cluster: &'a str,
    /// Whose state it is.
    pub(super) member: u32,
    /// How often it has started.
    pub(super) incarnation: u32,
    /// Whether it has lost its state and has not stored anything since.
    pub(super) rejoining: bool,
    /// The name of the algorithm.
    pub(super) algorithm: &'a str,
    /// What the algorithm stored last.
    pub(super) durable: Option<&'a [u8]>,
}

/// Why no record can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flaw {
    /// It is not whole.
    Damaged,
    /// It is whole, and of this later version.
    Newer(u16),
}

/// Where the record with this number stands in the file.
pub(super) fn offset(sequence: u64) -> u64 {
    sequence % 2 * STRIDE as u64
}

impl<'a> Record<'a> {
    /// Writes the record into `slot`.
    pub(super) fn encode(&self, slot: &mut [u8; SLOT]) -> io::Result<()> {
        let too_long = |what| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        if self.cluster.len() > LONGEST_CLUSTER {
            return too_long("the cluster's name is too long to be stored");
        }
        if self.durable.is_some_and(|durable| durable.len() > LONGEST_DURABLE) {
            return too_long("the algorithm's record is too long to be stored");
        }
        slot.fill(0);
        slot[..MAGIC.len()].copy_from_slice(&MAGIC);
        slot[MAGIC.len()..HEAD].copy_from_slice(&VERSION.to_le_bytes());
        postcard::to_slice(self, &mut slot[BODY]).map_err(io::Error::other)?;
        let sum = checksum(slot);
        slot[BODY.end..].copy_from_slice(&sum);
        Ok(())
    }

    /// The record in `image` that counts.
    pub(super) fn newest(image: &'a Image) -> Result<Self, Flaw> {
        let slots = [0, 1].map(|place| {
            let record = Self::decode(&image[place * STRIDE..][..SLOT])?;
            // Whatever stands in the other one's place was not written by a doyen.
            if offset(record.sequence) == (place * STRIDE) as u64 {
                Ok(record)
            } else {
                Err(Flaw::Damaged)
            }
        });
        match slots {
            // A newer doyen has run since the other record was written.
            [Err(Flaw::Newer(version)), _] | [_, Err(Flaw::Newer(version))] => {
                Err(Flaw::Newer(version))
            }
            [Ok(first), Ok(second)] if first.sequence < second.sequence => Ok(second),
            [Ok(record), _] | [_, Ok(record)] => Ok(record),
            [Err(flaw), Err(_)] => Err(flaw),
        }
    }

    fn decode(slot: &'a [u8]) -> Result<Self, Flaw> {
        if slot[..MAGIC.len()] != MAGIC || slot[BODY.end..] != checksum(slot) {
            return Err(Flaw::Damaged);
        }
        match u16::from_le_bytes([slot[MAGIC.len()], slot[MAGIC.len() + 1]]) {
            VERSION => postcard::from_bytes(&slot[BODY]).map_err(|_| Flaw::Damaged),
            newer if newer > VERSION => Err(Flaw::Newer(newer)),
            _ => Err(Flaw::Damaged),
        }
    }
}

fn checksum(slot: &[u8]) -> [u8; CHECKSUM] {
    let sum = Sha256::digest(&slot[..BODY.end]);
    std::array::from_fn(|place| sum[place])
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Record<'_> = Record {
        sequence: 6,
        cluster: "orders",
        member: 3,
        incarnation: 9,
        rejoining: false,
        algorithm: "quorum",
        durable: Some(b"the older record"),
    };
    const NEW: Record<'_> = Record { sequence: 7, durable: Some(b"the newer one"), ..OLD };

    /// Slot 0 with `OLD` in it, slot 1 with the record before.
    fn before() -> Image {
        let mut image = [0; FILE];
        put(&OLD, &mut image);
        put(&Record { sequence: 5, durable: None, ..OLD }, &mut image);
        image
    }

    fn put(record: &Record<'_>, image: &mut Image) {
        let start = offset(record.sequence) as usize;
        record.encode((&mut image[start..][..SLOT]).try_into().unwrap()).unwrap();
    }

    #[test]
    fn a_write_torn_at_any_byte_leaves_the_record_before() {
        let (before, mut after) = (before(), before());
        put(&NEW, &mut after);
        let slot = offset(NEW.sequence) as usize;
        for cut in 0..=SLOT {
            // The first bytes have been written, and the last bytes have been written.
            for written in [slot..slot + cut, slot + cut..slot + SLOT] {
                let mut torn = before;
                torn[written.clone()].copy_from_slice(&after[written.clone()]);
                let expected = if torn == after { NEW } else { OLD };
                let found = Record::newest(&torn);
                let whole_before = torn == before;
                assert_eq!(found, Ok(expected), "{written:?} written; untouched: {whole_before}");
            }
        }
    }

    #[test]
    fn a_flipped_bit_is_never_read() {
        let mut image = before();
        put(&NEW, &mut image);
        let [older, newer] = [OLD, NEW].map(|record| offset(record.sequence) as usize);
        for bit in 0..SLOT * 8 {
            let flip = |image: &mut Image, slot: usize| image[slot + bit / 8] ^= 1 << (bit % 8);
            let mut flipped = image;
            flip(&mut flipped, older);
            assert_eq!(Record::newest(&flipped), Ok(NEW), "bit {bit} of the older");
            flip(&mut flipped, newer);
            assert_eq!(Record::newest(&flipped), Err(Flaw::Damaged), "bit {bit} of both");
            flip(&mut flipped, older);
            assert_eq!(Record::newest(&flipped), Ok(OLD), "bit {bit} of the newer");
        }
    }

    #[test]
    fn a_later_version_is_told_from_damage() {
        let mut image = before();
        let slot = offset(NEW.sequence) as usize;
        put(&NEW, &mut image);
        image[slot + MAGIC.len()] = 2;
        assert_eq!(Record::newest(&image), Ok(OLD), "its checksum does not fit");
        let sum = checksum(&image[slot..][..SLOT]);
        image[slot + BODY.end..][..CHECKSUM].copy_from_slice(&sum);
        assert_eq!(Record::newest(&image), Err(Flaw::Newer(2)));
    }

    #[test]
    fn a_record_in_the_other_ones_place_is_not_read() {
        let mut image = [0; FILE];
        put(&OLD, &mut image);
        let moved: [u8; SLOT] = image[..SLOT].try_into().unwrap();
        let mut swapped = [0; FILE];
        swapped[STRIDE..][..SLOT].copy_from_slice(&moved);
        assert_eq!(Record::newest(&swapped), Err(Flaw::Damaged));
        assert_eq!(Record::newest(&[0; FILE]), Err(Flaw::Damaged));
    }

    #[test]
    fn the_longest_record_fits_and_a_longer_one_is_refused() {
        let (cluster, durable) = ("c".repeat(LONGEST_CLUSTER), [0xff; LONGEST_DURABLE]);
        let longest = Record {
            sequence: u64::MAX,
            cluster: &cluster,
            member: u32::MAX,
            incarnation: u32::MAX,
            rejoining: true,
            algorithm: "ring-active-list",
            durable: Some(&durable),
        };
        let mut image = [0; FILE];
        put(&longest, &mut image);
        assert_eq!(Record::newest(&image), Ok(longest));
        let mut slot = [0; SLOT];
        let long = [0; LONGEST_DURABLE + 1];
        assert!(Record { durable: Some(&long), ..OLD }.encode(&mut slot).is_err());
        let long = "c".repeat(LONGEST_CLUSTER + 1);
        assert!(Record { cluster: &long, ..OLD }.encode(&mut slot).is_err());
    }
}
