//! The keys of a running node: those that it uses, those in its file, and the steps of a rotation.
//!
//! A step changes the file first, atomically, and then the keys in use. A step that has been taken already changes
//! nothing, so a rotation that was interrupted is continued by repeating it. The loop does not read files, because a disk
//! may not answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::{Command, CommandError, Handle};
use crate::key::{Key, KeyFile, KeyFileError, Keyring};

/// A step of a rotation, on one member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyStep {
    /// Add this key: it opens, and does not seal yet.
    Add(Key),
    /// Seal with the key that has this fingerprint.
    Promote(String),
    /// Remove all keys but the one with this fingerprint, which must be the one that seals.
    Retire(String),
}

/// The fingerprints of a node's keys.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
pub struct KeyReport {
    /// The keys in use; the first one seals.
    pub in_use: Vec<String>,
    /// The keys in the file; none if the node has no key file, or if it cannot be read.
    pub in_file: Option<Vec<String>>,
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

    fn in_use(&self) -> MutexGuard<'_, Vec<String>> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn invalid(error: impl std::fmt::Display) -> CommandError {
    CommandError::InvalidKeys(error.to_string())
}

impl Handle {
    /// Reads the key file again and returns the keys as text; if that fails, the old keys stay.
    pub async fn reload_keys(&self) -> Result<String, CommandError> {
        let _changing = self.keys.changing.lock().await;
        self.use_key_file().await
    }

    /// Takes a step of a rotation, and returns the keys as text. If it fails, nothing has changed.
    pub async fn change_keys(&self, step: KeyStep) -> Result<String, CommandError> {
        let _changing = self.keys.changing.lock().await;
        let Some(file) = self.keys.file.clone() else {
            return Err(invalid("no key_file is configured"));
        };
        blocking(move || match step {
            KeyStep::Add(key) => file.add(&key),
            KeyStep::Promote(fingerprint) => file.promote(&fingerprint),
            KeyStep::Retire(fingerprint) => file.retire(&fingerprint),
        })
        .await?;
        self.use_key_file().await
    }

    /// The key with this fingerprint, from the file.
    pub async fn key(&self, fingerprint: String) -> Result<Key, CommandError> {
        let file = self.keys.file.clone();
        let keys = blocking(move || Keyring::of(file.as_ref())).await?;
        let mut keys = keys.keys().iter();
        let key = keys.find(|key| key.fingerprint() == fingerprint).cloned();
        key.ok_or_else(|| invalid(format!("there is no key {fingerprint} here")))
    }

    /// The fingerprints of the keys.
    pub async fn key_report(&self) -> KeyReport {
        let in_use = self.keys.in_use().clone();
        let Some(file) = self.keys.file.clone() else {
            let problem = Some("no key_file is configured".to_owned());
            return KeyReport { in_use, in_file: None, problem };
        };
        let read = blocking(move || {
            let fingerprints = file.read()?.fingerprints();
            Ok((fingerprints, file.check_writable().err().map(|error| error.to_string())))
        });
        match read.await {
            Ok((fingerprints, problem)) => {
                KeyReport { in_use, in_file: Some(fingerprints), problem }
            }
            Err(CommandError::InvalidKeys(problem)) => {
                KeyReport { in_use, in_file: None, problem: Some(problem) }
            }
            Err(error) => KeyReport { in_use, in_file: None, problem: Some(error.to_string()) },
        }
    }

    async fn use_key_file(&self) -> Result<String, CommandError> {
        let file = self.keys.file.clone();
        let keys = blocking(move || Keyring::of(file.as_ref())).await?;
        let (text, fingerprints) = (keys.told(), keys.fingerprints());
        self.send(|answer| Command::UseKeys(keys, answer)).await?;
        *self.keys.in_use() = fingerprints;
        Ok(text)
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, KeyFileError> + Send + 'static,
) -> Result<T, CommandError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| CommandError::Stopped)?.map_err(invalid)
}
