//! The cluster's keys.
//!
//! All members have the same keys, in a file that only the node may read:
//!
//! ```text
//! # Keys of a doyen cluster. The first seals, all of them open.
//! doyen-key-1:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08   # May
//! doyen-key-1:60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752   # June
//! ```
//!
//! One key per line: a prefix with a version, and 32 random bytes in hexadecimal. `#` begins a comment. **The first key
//! seals** what this node sends, **all of them open** what it receives. So keys are rotated without a lost datagram, in
//! three steps, each completed on all members before the next:
//!
//! 1. append the new key: every member can open what it seals;
//! 2. promote it to the front: some members seal with it, some with the old one, and all open both;
//! 3. retire the old one.
//!
//! **No key is used directly.** HKDF-SHA256 derives the key of the cipher and the four bytes by which a datagram names its
//! key. The cluster's name takes part, so that two clusters with the same file do not understand each other.
//!
//! **Without a file** a node uses [`Keyring::open_to_all`], whose key is public: the same code, and no protection. The
//! configuration permits that on loopback only.
//!
//! Secrets appear in no error and in no debug output, and are wiped from memory when they are dropped. Each is in one place
//! on the heap from the beginning, because a value that is moved leaves a copy behind.

mod file;

use std::fmt;

use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::{Zeroize as _, Zeroizing};

use crate::hex;

pub use file::{KeyFile, KeyFileError, KeyReaders};

/// The prefix of a key, with its version.
const PREFIX: &str = "doyen-key-1:";

/// Whether this looks like the text of a key file, whatever else is in it.
pub(crate) fn is_key_file(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with(PREFIX))
}

/// A rotation needs two keys, and an interrupted one a few more.
const MOST: usize = 16;

/// The length of a key, in bytes.
const LENGTH: usize = 32;

/// A secret that the members of a cluster share.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(Box<[u8; LENGTH]>);

impl Drop for Key {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl Key {
    /// Not secret.
    fn well_known() -> Self {
        Self(Box::default())
    }

    /// A new key, from the operating system's random numbers.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut key = Self(Box::default());
        getrandom::fill(&mut key.0[..])?;
        Ok(key)
    }

    /// Its line in a key file: this is the secret itself.
    pub fn to_line(&self) -> String {
        // It does not grow, which would leave a copy behind.
        let mut line = String::with_capacity(PREFIX.len() + 2 * LENGTH);
        line.push_str(PREFIX);
        for &byte in self.0.iter() {
            for digit in [byte >> 4, byte & 15] {
                line.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
            }
        }
        line
    }

    /// A few digits by which two keys can be compared. They do not reveal the key.
    pub fn fingerprint(&self) -> String {
        let print: [u8; 4] = self.derive("fingerprint", "");
        hex::encode(&print)
    }

    /// Reads what [`to_line`](Self::to_line) writes.
    fn parse(text: &str) -> Result<Self, LineError> {
        let digits = text.strip_prefix(PREFIX).ok_or(LineError::Prefix)?;
        if !digits.chars().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(LineError::Digit);
        }
        if digits.len() != 2 * LENGTH {
            return Err(LineError::Length(digits.len()));
        }
        let value = |digit: u8| char::from(digit).to_digit(16).unwrap_or_default() as u8;
        let mut key = Self(Box::default());
        for (byte, pair) in key.0.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
            *byte = value(pair[0]) << 4 | value(pair[1]);
        }
        if key == Self::well_known() { Err(LineError::WellKnown) } else { Ok(key) }
    }

    /// Bytes for one purpose in one cluster, which reveal nothing of the others.
    fn derive<const N: usize>(&self, purpose: &str, cluster: &str) -> [u8; N] {
        const { assert!(N <= 32, "one block of the hash is enough for every purpose") };
        let mut bytes = [0; N];
        // No purpose contains the zero byte that ends it, so no two pairs give the same text.
        let info = [b"doyen 1 ", purpose.as_bytes(), b"\0", cluster.as_bytes()];
        Hkdf::<Sha256>::new(None, &self.0[..])
            .expand_multi_info(&info, &mut bytes)
            .expect("no more than one block is asked for");
        bytes
    }

    /// The key of the cipher.
    pub(crate) fn cipher_key(&self, cluster: &str) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.derive("seal", cluster))
    }

    /// How datagrams name the key that they were sealed with.
    pub(crate) fn id(&self, cluster: &str) -> [u8; 4] {
        self.derive("key id", cluster)
    }
}

/// How datagrams name their cluster. It is derived from no secret, because it is compared before any key is chosen.
pub(crate) fn cluster_tag(cluster: &str) -> [u8; 8] {
    Key::well_known().derive("cluster", cluster)
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(secret)")
    }
}

/// The keys of a node: at least one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Keyring {
    keys: Vec<Key>,
}

impl Keyring {
    /// A ring with one new key.
    pub fn generate() -> Result<Self, getrandom::Error> {
        Ok(Self { keys: vec![Key::generate()?] })
    }

    /// The ring of a node without a key: any process that reaches the node can talk to it.
    pub fn open_to_all() -> Self {
        Self { keys: vec![Key::well_known()] }
    }

    /// Reads the text of a key file.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let mut keys: Vec<(usize, Key)> = Vec::new();
        for (line, content) in (1..).zip(text.lines()) {
            let content = without_comment(content);
            if content.is_empty() {
                continue;
            }
            let at = |fault| KeyError::Line(line, fault);
            let key = Key::parse(content).map_err(at)?;
            if let Some((earlier, _)) = keys.iter().find(|(_, known)| *known == key) {
                return Err(at(LineError::Repeated(*earlier)));
            }
            if keys.len() == MOST {
                return Err(at(LineError::TooMany));
            }
            keys.push((line, key));
        }
        if keys.is_empty() {
            return Err(KeyError::Empty);
        }
        Ok(Self { keys: keys.into_iter().map(|(_, key)| key).collect() })
    }

    /// The text of a key file with these keys.
    pub fn to_text(&self) -> String {
        let heading =
            "# Keys of a doyen cluster. The first seals, all of them open; keep them secret.";
        let line = PREFIX.len() + 2 * LENGTH + 1;
        let mut text = String::with_capacity(heading.len() + 1 + self.keys.len() * line);
        text.push_str(heading);
        text.push('\n');
        for key in &self.keys {
            text.push_str(&Zeroizing::new(key.to_line()));
            text.push('\n');
        }
        text
    }

    /// The keys: the first one seals, all of them open.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// The fingerprints of the keys; the first one seals.
    pub fn fingerprints(&self) -> Vec<String> {
        self.keys.iter().map(Key::fingerprint).collect()
    }

    /// The fingerprints of the keys, and which of them seals.
    pub fn told(&self) -> String {
        match &self.fingerprints()[..] {
            [only] => format!("seals and opens with {only}"),
            [first, others @ ..] => {
                format!("seals with {first}, opens also with {}", others.join(", "))
            }
            [] => "has no key".to_owned(),
        }
    }
}

/// A line without its comment.
fn without_comment(line: &str) -> &str {
    line.split_once('#').map_or(line, |(content, _)| content).trim()
}

/// What is wrong with the text of a key file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KeyError {
    /// It has no keys.
    #[error("contains no key; `doyen keygen` makes one")]
    Empty,
    /// A line is wrong: its number, counted from one, and the mistake.
    #[error("line {0}: {1}")]
    Line(usize, LineError),
}

/// What is wrong with a line of a key file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LineError {
    /// It does not begin as a key.
    #[error("not a key; a key begins with `{PREFIX}`, and `doyen keygen` makes one")]
    Prefix,
    /// It contains something else than hexadecimal digits.
    #[error("this key contains something else than hexadecimal digits; copy the whole line again")]
    Digit,
    /// It is too long or too short.
    #[error("this key has {0} hexadecimal digits and needs 64; copy the whole line again")]
    Length(usize),
    /// It is the well-known key.
    #[error("this key is all zeros, which is not secret; `doyen keygen` makes another")]
    WellKnown,
    /// It is in an earlier line too.
    #[error("this key is also in line {0}; remove one of them")]
    Repeated(usize),
    /// There are more keys than any rotation needs.
    #[error("there are more than {MOST} keys; remove those that are no longer used")]
    TooMany,
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    const MAY: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    const JUNE: &str = "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752";

    #[test]
    fn fingerprints_tell_keys_apart_and_which_of_them_seals() {
        let ring = |keys: &[&str]| {
            let lines: Vec<String> = keys.iter().map(|key| format!("{PREFIX}{key}\n")).collect();
            Keyring::parse(&lines.concat()).unwrap()
        };
        let [may, june] = [MAY, JUNE].map(|key| ring(&[key]).keys()[0].fingerprint());
        assert!(may != june && !MAY.contains(&may), "{may} {june}");
        assert_eq!(ring(&[MAY]).told(), format!("seals and opens with {may}"));
        let both = format!("seals with {june}, opens also with {may}");
        assert_eq!(ring(&[JUNE, MAY]).told(), both);
    }

    fn fault(text: &str) -> (usize, LineError) {
        match Keyring::parse(text) {
            Err(KeyError::Line(line, fault)) => (line, fault),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_generated_can_be_read_back_and_is_never_the_same() {
        let ring = Keyring::generate().unwrap();
        assert_eq!(Keyring::parse(&ring.to_text()), Ok(ring.clone()));
        assert_ne!(ring, Keyring::generate().unwrap());
        assert_ne!(ring, Keyring::open_to_all());
    }

    #[test]
    fn comments_and_empty_lines_are_passed_over_and_the_order_is_kept() {
        let text = format!("# keys\n\n  {PREFIX}{MAY}  # May\r\n{PREFIX}{JUNE}#June");
        let ring = Keyring::parse(&text).unwrap();
        let lines: Vec<String> = ring.keys().iter().map(Key::to_line).collect();
        assert_eq!(lines, [format!("{PREFIX}{MAY}"), format!("{PREFIX}{JUNE}")]);
    }

    #[test]
    fn every_mistake_is_named_with_its_line() {
        assert_eq!(Keyring::parse("# nothing\n\n"), Err(KeyError::Empty));
        assert_eq!(fault(&format!("#\n{MAY}")), (2, LineError::Prefix));
        assert_eq!(fault(&format!("doyen-key-2:{MAY}")), (1, LineError::Prefix));
        assert_eq!(fault(&format!("{PREFIX}{}", &MAY[1..])), (1, LineError::Length(63)));
        assert_eq!(fault(&format!("{PREFIX}{MAY}{MAY}")), (1, LineError::Length(128)));
        assert_eq!(fault(&format!("{PREFIX}{}ä", &MAY[1..])), (1, LineError::Digit));
        assert_eq!(fault(&format!("{PREFIX}{MAY} {MAY}")), (1, LineError::Digit));
        assert_eq!(fault(&format!("{PREFIX}{}", "0".repeat(64))), (1, LineError::WellKnown));
        assert_eq!(fault(&format!("{PREFIX}{MAY}\n{PREFIX}{MAY}")), (2, LineError::Repeated(1)));
        let many: String = (1..=MOST + 1).map(|i| format!("{PREFIX}{i:064x}\n")).collect();
        assert_eq!(fault(&many), (MOST + 1, LineError::TooMany));
    }

    #[test]
    fn no_error_and_no_debug_output_shows_a_secret() {
        let ring = Keyring::parse(&format!("{PREFIX}{MAY}")).unwrap();
        let wrong = Keyring::parse(&format!("{PREFIX}{MAY}\n{PREFIX}{MAY}")).unwrap_err();
        let shown = format!("{ring:?} {wrong} {wrong:?}");
        assert!(!shown.contains(&MAY[..6]) && !shown.contains("159, 134"), "{shown}");
    }

    #[test]
    fn derived_bytes_differ_by_key_by_cluster_and_by_purpose() {
        let ring = Keyring::parse(&format!("{PREFIX}{MAY}\n{PREFIX}{JUNE}")).unwrap();
        let [may, june] = ring.keys() else { panic!("there are two") };
        assert_eq!(may.cipher_key("blue"), may.cipher_key("blue"));
        assert_ne!(may.cipher_key("blue"), june.cipher_key("blue"));
        assert_ne!(may.cipher_key("blue"), may.cipher_key("red"));
        assert_ne!(may.id("blue"), june.id("blue"));
        assert_ne!(may.id("blue"), may.cipher_key("blue")[..4]);
        assert_ne!(cluster_tag("blue"), cluster_tag("red"));
    }

    /// Computed with another program:
    /// `HKDF(b"", secret, b"doyen 1 seal\0blue", 32)`, and so on.
    #[test]
    fn derived_bytes_never_change() {
        let ring = Keyring::parse(&format!("{PREFIX}{MAY}")).unwrap();
        let key = &ring.keys()[0];
        assert_eq!(key.id("blue"), [132, 186, 128, 63]);
        assert_eq!(key.cipher_key("blue")[..8], [208, 85, 31, 137, 108, 88, 26, 65]);
        assert_eq!(cluster_tag("blue"), [125, 112, 1, 186, 211, 181, 204, 146]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(doyen-key-1:[0-9a-f]{0,66}[ #\n]{0,2}|\\PC|\n){0,6}") {
            if let Ok(ring) = Keyring::parse(&text) {
                prop_assert_eq!(Keyring::parse(&ring.to_text()), Ok(ring));
            }
        }
    }
}
