//! A slot: the layout of one record on the disk.
//!
//! ```text
//!   byte 0     8           10           496            512          2032            2048
//!        magic │ version 4 │ record ... │ checksum 16  │ ... record │ checksum 16   │
//!        └── what the first covers ─────┘              │            │
//!        └── what the last covers, the first checksum included ─────┘
//! ```
//!
//! The record is encoded by postcard, then zeros; it continues after the first checksum. A slot of version 1 ends at byte
//! 512. The first 512 bytes keep that layout in every later version, so that a state of a newer doyen is distinguished from
//! a damaged one: a program that knows only version 1 finds a correct checksum and an unknown version. Before version 4 a
//! record had no list of members: where the list would be are zeros, which is the empty list. The checksums are the first
//! bytes of a SHA-256: they protect against accidents, not against attackers, who could compute them too.

use std::borrow::Cow;
use std::io;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The length of a slot: four sectors. A crash may leave any of them unwritten, which the last checksum detects.
pub(super) const SLOT: usize = 2048;
/// The distance of the slots: a page, the most that a bad write damages.
const STRIDE: usize = 4096;
pub(super) const FILE: usize = 2 * STRIDE;
pub(super) type Image = [u8; FILE];

/// The version of the format that this program writes.
pub(super) const VERSION: u16 = 4;
const MAGIC: [u8; 8] = *b"doyen\0st";
const HEAD: usize = MAGIC.len() + size_of::<u16>();
const CHECKSUM: usize = 16;
/// The checksum that every version has. Both checksums cover everything before them.
const FIRST_SUM: Range<usize> = 496..512;
/// The checksum at the end of the slot, since version 2.
const LAST_SUM: Range<usize> = SLOT - CHECKSUM..SLOT;
/// The length of the part of a record before the first checksum.
const BEFORE: usize = FIRST_SUM.start - HEAD;
/// The longest encoded record.
const BODY: usize = BEFORE + LAST_SUM.start - FIRST_SUM.end;

/// The longest name of a cluster.
pub const LONGEST_CLUSTER: usize = 64;
const _: () = assert!(crate::config::LONGEST_NAME <= LONGEST_CLUSTER, "every name fits");
/// The longest durable state of a node.
pub const LONGEST_DURABLE: usize = 1500;
/// What a list of members takes at most: its length, and five bytes for each id.
const LONGEST_LIST: usize = 1 + 5 * crate::config::members::MOST_MEMBERS;
/// What the rest of a record takes at most: numbers, and the name of the algorithm.
const LONGEST_REST: usize = 64;
const _: () = assert!(
    LONGEST_REST + LONGEST_CLUSTER + LONGEST_DURABLE + LONGEST_LIST <= BODY,
    "every record fits"
);

/// A record.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Record<'a> {
    /// The record with the highest sequence counts. The sequence also determines the slot.
    pub(super) sequence: u64,
    pub(super) cluster: Cow<'a, str>,
    pub(super) member: u32,
    pub(super) incarnation: u32,
    /// The member lost its state and has not finished rejoining.
    pub(super) rejoining: bool,
    pub(super) algorithm: Cow<'a, str>,
    pub(super) durable: Durable<'a>,
    /// The ids of all members, in rising order. Empty: of an earlier version, which did not store them.
    pub(super) members: Cow<'a, [u32]>,
}

/// The durable state. Version 1 had an `Option` here, which has the encoding of the first two variants; version 2 had the
/// first three, when a quorum stored no pause. A record of theirs keeps its variant when it is written again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Durable<'a> {
    Nothing,
    EarlierBare(Cow<'a, [u8]>),
    EarlierKept(Cow<'a, [u8]>),
    /// The state of the algorithm alone.
    Bare(Cow<'a, [u8]>),
    /// The state of the algorithm, and what the core knows about the other members.
    Kept(Cow<'a, [u8]>),
}

impl Durable<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::EarlierBare(bytes)
            | Self::EarlierKept(bytes)
            | Self::Bare(bytes)
            | Self::Kept(bytes) => bytes.len(),
        }
    }
}

/// Why no record can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flaw {
    Damaged,
    /// It is valid, and has this later version.
    Newer(u16),
}

/// The place of the record with this sequence in the file.
pub(super) fn offset(sequence: u64) -> u64 {
    sequence % 2 * STRIDE as u64
}

impl Record<'_> {
    pub(super) fn encode(&self, slot: &mut [u8; SLOT]) -> io::Result<()> {
        let too_long = |what| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        if self.cluster.len() > LONGEST_CLUSTER {
            return too_long("the cluster's name is too long to be stored");
        }
        if self.durable.len() > LONGEST_DURABLE {
            return too_long("the node's record is too long to be stored");
        }
        slot.fill(0);
        slot[..MAGIC.len()].copy_from_slice(&MAGIC);
        slot[MAGIC.len()..HEAD].copy_from_slice(&VERSION.to_le_bytes());
        postcard::to_slice(self, &mut slot[HEAD..][..BODY]).map_err(io::Error::other)?;
        // Make room for the first checksum.
        slot.copy_within(FIRST_SUM.start..HEAD + BODY, FIRST_SUM.end);
        for sum in [FIRST_SUM, LAST_SUM] {
            let covered = checksum(&slot[..sum.start]);
            slot[sum].copy_from_slice(&covered);
        }
        Ok(())
    }

    /// The valid record with the highest sequence.
    pub(super) fn newest(image: &Image) -> Result<Self, Flaw> {
        let slots = [0, 1].map(|place| {
            let record = Self::decode(&image[place * STRIDE..][..SLOT])?;
            // doyen writes no record to the wrong slot.
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

    fn decode(slot: &[u8]) -> Result<Self, Flaw> {
        let fits = |sum: Range<usize>| slot[sum.clone()] == checksum(&slot[..sum.start]);
        if slot[..MAGIC.len()] != MAGIC || !fits(FIRST_SUM) {
            return Err(Flaw::Damaged);
        }
        let (before, after) = (&slot[HEAD..FIRST_SUM.start], &slot[FIRST_SUM.end..LAST_SUM.start]);
        let mut body = [0; BODY];
        body[..BEFORE].copy_from_slice(before);
        match u16::from_le_bytes([slot[MAGIC.len()], slot[MAGIC.len() + 1]]) {
            // The bytes after 512 do not belong to it.
            1 => {}
            2 | 3 | VERSION if fits(LAST_SUM) => body[BEFORE..].copy_from_slice(after),
            newer if newer > VERSION => return Err(Flaw::Newer(newer)),
            _ => return Err(Flaw::Damaged),
        }
        postcard::from_bytes(&body).map_err(|_| Flaw::Damaged)
    }
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    let sum = Sha256::digest(bytes);
    std::array::from_fn(|place| sum[place])
}

#[cfg(test)]
mod tests {
    use doyen_core::registry::Algorithm;

    use super::*;
    use crate::config::members::MOST_MEMBERS;

    const OLD: Record<'_> = Record {
        sequence: 6,
        cluster: Cow::Borrowed("orders"),
        member: 3,
        incarnation: 9,
        rejoining: false,
        algorithm: Cow::Borrowed("quorum"),
        durable: Durable::EarlierBare(Cow::Borrowed(b"the older record")),
        members: Cow::Borrowed(&[]),
    };
    /// It is long enough to go around the first checksum.
    const NEW: Record<'_> = Record {
        sequence: 7,
        durable: Durable::Kept(Cow::Borrowed(&[0xd7; 600])),
        members: Cow::Borrowed(&[1, 2, 300]),
        ..OLD
    };

    /// `OLD` as the program wrote it that had version 1 only: what is not zero of it, and its checksum.
    const FIRST_VERSION: (&str, &str) = (
        "646f79656e007374010006066f72646572730309000671756f72756d0110746865206f6c646572207265636f7264",
        "c4bd3ccce9954fe4d21ed12f8d2570e4",
    );

    fn bytes(hex: &str) -> Vec<u8> {
        let digits = (0..hex.len()).step_by(2).map(|place| &hex[place..place + 2]);
        digits.map(|digits| u8::from_str_radix(digits, 16).unwrap()).collect()
    }

    /// Slot 0 with `OLD` in it, slot 1 with the record before.
    fn before() -> Image {
        let mut image = [0; FILE];
        put(&OLD, &mut image);
        put(&Record { sequence: 5, durable: Durable::Nothing, ..OLD }, &mut image);
        image
    }

    /// The same, both of version 1.
    fn before_of_version_1() -> Image {
        let mut image = [0; FILE];
        put_version_1(&OLD, &mut image);
        put_version_1(&Record { sequence: 5, durable: Durable::Nothing, ..OLD }, &mut image);
        image
    }

    fn put(record: &Record<'_>, image: &mut Image) {
        let start = offset(record.sequence) as usize;
        record.encode((&mut image[start..][..SLOT]).try_into().unwrap()).unwrap();
    }

    fn put_version_1(record: &Record<'_>, image: &mut Image) {
        let slot = &mut image[offset(record.sequence) as usize..][..512];
        slot.fill(0);
        slot[..8].copy_from_slice(b"doyen\0st");
        slot[8] = 1;
        let (mut body, before) =
            ([0; 487], Record { members: Cow::Borrowed(&[]), ..record.clone() });
        postcard::to_slice(&before, &mut body).unwrap();
        // It had no list: the last byte of the body is one that does not fit.
        slot[10..496].copy_from_slice(&body[..486]);
        let sum = Sha256::digest(&slot[..496]);
        slot[496..].copy_from_slice(&sum[..16]);
    }

    #[test]
    fn a_slot_of_version_1_is_read_as_it_was_written() {
        let mut image = [0; FILE];
        let (written, sum) = (bytes(FIRST_VERSION.0), bytes(FIRST_VERSION.1));
        image[..written.len()].copy_from_slice(&written);
        image[496..512].copy_from_slice(&sum);
        assert_eq!(Record::newest(&image), Ok(OLD));
        let mut same = [0; FILE];
        put_version_1(&OLD, &mut same);
        assert_eq!(same, image, "the tests write version 1 as it was");
        image[512..].fill(0xee);
        assert_eq!(Record::newest(&image), Ok(OLD), "what lies behind does not matter");
        image[495] ^= 1;
        assert_eq!(Record::newest(&image), Err(Flaw::Damaged));

        let filling = [0xd7; 486 - 21];
        let longest = Record { durable: Durable::EarlierBare(Cow::Borrowed(&filling)), ..OLD };
        put_version_1(&longest, &mut image);
        assert_eq!(image[495], 0xd7, "it fills its slot");
        assert_eq!(Record::newest(&image), Ok(longest));
    }

    /// The bytes were computed by another program (Python), from the description at the head of this file.
    #[test]
    fn a_slot_of_this_version_is_written_exactly_so_and_those_of_versions_2_and_3_are_read() {
        let slot = |head: &str, list: &str, sums: [&str; 2]| {
            let mut slot = bytes(head);
            slot.resize(496, 0xd7);
            slot.extend(bytes(sums[0]));
            slot.resize(512 + 600 - 464, 0xd7);
            slot.extend(bytes(list));
            slot.resize(2032, 0);
            slot.extend(bytes(sums[1]));
            slot
        };
        let read = |slot: &[u8]| {
            let mut image = [0; FILE];
            image[..SLOT].copy_from_slice(slot);
            Record::newest(&image)
        };
        let record = Record { sequence: 300, rejoining: true, ..NEW };
        let written = slot(
            "646f79656e0073740400ac02066f72646572730309010671756f72756d04d804",
            "030102ac02",
            ["c874447f0003b31e09e2fc56f860a939", "618243fe0b84c3a32721b5cae9e9fdd9"],
        );
        let mut image = [0; FILE];
        put(&record, &mut image);
        assert_eq!(&image[..SLOT], written);
        assert_eq!(read(&written), Ok(record.clone()));
        let version_3 = slot(
            "646f79656e0073740300ac02066f72646572730309010671756f72756d04d804",
            "",
            ["d1af406465a8ab03b2111e6ec5e893e8", "d5c45e96ddc2f0bf0ee079ec4dd8a8cc"],
        );
        let unlisted = Record { members: Cow::Borrowed(&[]), ..record };
        assert_eq!(read(&version_3), Ok(unlisted.clone()));
        let version_2 = slot(
            "646f79656e0073740200ac02066f72646572730309010671756f72756d02d804",
            "",
            ["65aa9f6d3538232522d957a37f704fd5", "9ca2a42340a7f5a748b36a55aa3832c9"],
        );
        let durable = Durable::EarlierKept(Cow::Borrowed(&[0xd7; 600]));
        assert_eq!(read(&version_2), Ok(Record { durable, ..unlisted }));
    }

    #[test]
    fn of_a_slot_of_each_version_the_highest_sequence_counts() {
        let mut image = before_of_version_1();
        assert_eq!(Record::newest(&image), Ok(OLD));
        put(&NEW, &mut image);
        assert_eq!(Record::newest(&image), Ok(NEW));
        put_version_1(&Record { sequence: 8, ..OLD }, &mut image);
        assert_eq!(Record::newest(&image), Ok(Record { sequence: 8, ..OLD }));
    }

    #[test]
    fn a_write_torn_at_any_byte_leaves_the_record_before() {
        for before in [before(), before_of_version_1()] {
            let mut after = before;
            put(&NEW, &mut after);
            let slot = offset(NEW.sequence) as usize;
            for cut in 0..=SLOT {
                // The first bytes have been written, and the last bytes have been written.
                for written in [slot..slot + cut, slot + cut..slot + SLOT] {
                    let mut torn = before;
                    torn[written.clone()].copy_from_slice(&after[written.clone()]);
                    let expected = if torn == after { NEW } else { OLD };
                    assert_eq!(Record::newest(&torn), Ok(expected), "{written:?} written");
                }
            }
        }
    }

    /// A crash may leave any of the sectors of a slot as they were.
    #[test]
    fn a_write_of_some_sectors_leaves_the_record_before() {
        const SECTOR: usize = 512;
        for before in [before(), before_of_version_1()] {
            let mut after = before;
            put(&NEW, &mut after);
            let slot = offset(NEW.sequence) as usize;
            for written in 0..1 << (SLOT / SECTOR) {
                let mut torn = before;
                for sector in (0..SLOT / SECTOR).filter(|sector| written >> sector & 1 == 1) {
                    let place = slot + sector * SECTOR..slot + (sector + 1) * SECTOR;
                    torn[place.clone()].copy_from_slice(&after[place]);
                }
                let expected = if torn == after { NEW } else { OLD };
                assert_eq!(Record::newest(&torn), Ok(expected), "sectors {written:#06b} written");
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

    const LATER: u16 = VERSION + 1;

    /// A later version is known by its first 512 bytes, whatever follows them.
    #[test]
    fn a_later_version_is_told_from_damage() {
        let mut image = before();
        let slot = offset(NEW.sequence) as usize;
        put(&NEW, &mut image);
        image[slot + MAGIC.len()] = LATER as u8;
        assert_eq!(Record::newest(&image), Ok(OLD), "its checksum does not fit");
        let sum = checksum(&image[slot..][..FIRST_SUM.start]);
        image[slot..][FIRST_SUM].copy_from_slice(&sum);
        assert_eq!(Record::newest(&image), Err(Flaw::Newer(LATER)));
    }

    /// What the program that had version 1 only looks at.
    #[test]
    fn version_1_sees_that_this_version_is_newer() {
        let mut image = [0; FILE];
        put(&OLD, &mut image);
        assert_eq!(image[..10], *b"doyen\0st\x04\0");
        assert_eq!(image[496..512], Sha256::digest(&image[..496])[..16]);
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
        let names = Algorithm::ALL.map(Algorithm::name);
        let longest = Record {
            sequence: u64::MAX,
            cluster: cluster.into(),
            member: u32::MAX,
            incarnation: u32::MAX,
            rejoining: true,
            algorithm: names.into_iter().max_by_key(|name| name.len()).unwrap().into(),
            durable: Durable::Kept(Cow::Borrowed(&durable)),
            members: vec![u32::MAX; MOST_MEMBERS].into(),
        };
        let mut image = [0; FILE];
        put(&longest, &mut image);
        assert_eq!(Record::newest(&image), Ok(longest));
        let mut slot = [0; SLOT];
        let long = [0; LONGEST_DURABLE + 1];
        for durable in [Durable::Bare, Durable::Kept].map(|kind| kind(Cow::Borrowed(&long))) {
            assert!(Record { durable, ..OLD }.encode(&mut slot).is_err());
        }
        let cluster = "c".repeat(LONGEST_CLUSTER + 1).into();
        assert!(Record { cluster, ..OLD }.encode(&mut slot).is_err());
    }
}
