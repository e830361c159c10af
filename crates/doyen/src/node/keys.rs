//! The keys of a running node: those that it uses, those in its file, and the steps of a rotation.
//!
//! A step changes the file first, atomically, and then the keys in use. A step that has been taken already changes
//! nothing, so a rotation that was interrupted is continued by repeating it. The loop does not read files, because a disk
//! may not answer.

use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use tokio::sync::OwnedMutexGuard;

use super::{Command, CommandError, Handle};
use crate::blocking::in_thread;
use crate::key::{Key, KeyFile, KeyFileError, Keyring};
use crate::mutex::lock;

/// A step of a rotation, on one member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyStep {
    /// Add this key: it opens, and does not seal yet.
    Add(Key),
    /// Seal with this key.
    Promote(Chosen),
    /// Remove all keys but this one, which must be the one that seals.
    Retire(Chosen),
}

/// A key that is chosen among those that a member has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chosen {
    /// Its fingerprint.
    pub fingerprint: String,
    /// If given: the fingerprints of all keys that the member must have, in any order. If it has others, another rotation
    /// is under way, and nothing changes.
    pub among: Option<Vec<String>>,
}

/// The fingerprints of a node's keys.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
pub struct KeyReport {
    /// The keys in use; the first one seals.
    pub in_use: Vec<String>,
    /// The keys in the file; none if the node has no key file, or if it cannot be read.
    pub in_file: Option<Vec<String>>,
    /// The key in the file that was added last, if the file says so: the one that a rotation is about to leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<String>,
    /// Why a rotation cannot change the file, if that is so.
    pub problem: Option<String>,
}

/// What a handle knows of the keys.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    file: Option<KeyFile>,
    in_use: Arc<Mutex<Vec<String>>>,
    /// Held while the file is changed.
    changing: Arc<tokio::sync::Mutex<()>>,
}

impl Keys {
    /// The file, and the keys that were read from it.
    pub(super) fn new(file: Option<KeyFile>, keys: &Keyring) -> Self {
        let in_use = Arc::new(Mutex::new(keys.fingerprints()));
        Self { file, in_use, changing: Arc::default() }
    }
}

/// Keys that were read and are not used yet. Until they are, no step of a rotation is taken.
#[derive(Debug)]
pub struct NewKeys {
    handle: Handle,
    keys: Keyring,
    _changing: OwnedMutexGuard<()>,
}

impl NewKeys {
    /// Uses them, and returns them as text. If that fails, the old ones stay.
    pub async fn adopt(self) -> Result<String, CommandError> {
        self.handle.use_keys(self.keys).await
    }
}

fn invalid(error: impl std::fmt::Display) -> CommandError {
    CommandError::InvalidKeys(error.to_string())
}

impl Handle {
    /// Reads the key file again. Nothing changes before the keys are adopted.
    pub async fn read_keys(&self) -> Result<NewKeys, CommandError> {
        let changing = Arc::clone(&self.keys.changing).lock_owned().await;
        let keys = self.keys_in_file().await?;
        Ok(NewKeys { handle: self.clone(), keys, _changing: changing })
    }

    /// Takes a step of a rotation, and returns the keys as text. If it fails, the node uses the keys of before; its
    /// file may hold the new ones.
    pub async fn change_keys(&self, step: KeyStep) -> Result<String, CommandError> {
        let _changing = self.keys.changing.lock().await;
        let Some(file) = self.keys.file.clone() else {
            return Err(invalid("no key_file is configured"));
        };
        blocking(move || match step {
            KeyStep::Add(key) => file.add(&key),
            KeyStep::Promote(key) => file.promote(&key.fingerprint, key.among.as_deref()),
            KeyStep::Retire(key) => file.retire(&key.fingerprint, key.among.as_deref()),
        })
        .await?;
        self.use_keys(self.keys_in_file().await?).await
    }

    /// The key with this fingerprint, from the file.
    pub async fn key(&self, fingerprint: String) -> Result<Key, CommandError> {
        let keys = self.keys_in_file().await?;
        let mut keys = keys.keys().iter();
        let key = keys.find(|key| key.fingerprint() == fingerprint).cloned();
        key.ok_or_else(|| invalid(format!("there is no key {fingerprint} here")))
    }

    /// The fingerprints of the keys.
    pub async fn key_report(&self) -> KeyReport {
        let report = |in_file, newest, problem| {
            let in_use = lock(&self.keys.in_use).clone();
            KeyReport { in_use, in_file, newest, problem }
        };
        let Some(file) = self.keys.file.clone() else {
            return report(None, None, Some("no key_file is configured".to_owned()));
        };
        let read = blocking(move || {
            let problem = file.check_writable().err().map(|error| error.to_string());
            Ok((file.read()?.fingerprints(), file.newest()?, problem))
        });
        match read.await {
            Ok((in_file, newest, problem)) => report(Some(in_file), newest, problem),
            Err(CommandError::InvalidKeys(problem)) => report(None, None, Some(problem)),
            Err(error) => report(None, None, Some(error.to_string())),
        }
    }

    async fn keys_in_file(&self) -> Result<Keyring, CommandError> {
        let file = self.keys.file.clone();
        blocking(move || Keyring::of(file.as_ref())).await
    }

    async fn use_keys(&self, keys: Keyring) -> Result<String, CommandError> {
        let (text, fingerprints) = (keys.told(), keys.fingerprints());
        self.send(|answer| Command::UseKeys(keys, answer)).await?;
        *lock(&self.keys.in_use) = fingerprints;
        Ok(text)
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, KeyFileError> + Send + 'static,
) -> Result<T, CommandError> {
    in_thread(work).await.map_err(invalid)?.map_err(invalid)
}
