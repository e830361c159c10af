//! Runs golden scripts: finds them, parses their commands, hosts the members, writes the transcript.

mod command;
mod group;
mod time;
mod transcript;

use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};

use doyen_core::algorithm::quorum::Stored;
use doyen_core::algorithm::sequencer::Kept;
use doyen_core::config::Config;
use doyen_core::members::Term;
use doyen_core::protocol::{Durable as _, Protocol};
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;

/// An algorithm whose members a script can host.
pub(crate) trait Playable: Protocol<Config = Config, Durable: Storable> {}

impl<P: Protocol<Config = Config, Durable: Storable>> Playable for P {}

/// A value that a member stores, and how a transcript shows it.
pub(crate) trait Storable: Clone + std::fmt::Debug {
    fn told(&self) -> String;
}

impl Storable for Term {
    fn told(&self) -> String {
        format!("term={self}")
    }
}

impl Storable for Stored {
    fn told(&self) -> String {
        let Self { term, voted, longest, drained, pause } = *self;
        let voted = voted.map_or(String::new(), |voted| format!(" voted={voted}"));
        let drained = drained.map_or("", |_| " drained");
        let pause = pause.map_or(String::new(), |pause| match pause.left {
            Span::ZERO => " resumed".to_owned(),
            left => format!(" paused={}", time::Time(left)),
        });
        format!("term={term}{voted} longest={}{drained}{pause}", time::Time(longest))
    }
}

impl Storable for Kept {
    fn told(&self) -> String {
        format!("term={}", self.term())
    }
}

/// The folder with the scripts of an algorithm.
pub(crate) fn folder(algorithm: Algorithm) -> PathBuf {
    scripts().join(algorithm.name())
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")
}

/// Runs every script of `folder`, and fails with the names of those whose transcript differs.
pub(crate) fn play_folder<P: Playable>(folder: &Path) {
    let scripts = entries(folder);
    assert!(!scripts.is_empty(), "no scripts in {}", folder.display());
    let failed: Vec<String> = scripts.iter().filter_map(|path| play::<P>(path).err()).collect();
    assert!(failed.is_empty(), "{} of {}:\n{}", failed.len(), scripts.len(), failed.join("\n"));
}

/// Runs one script. A transcript that differs panics with the difference; the caller continues with the others.
fn play<P: Playable>(path: &Path) -> Result<(), String> {
    let mut runner = command::Runner::<P>::default();
    match panic::catch_unwind(AssertUnwindSafe(|| goldenscript::run(&mut runner, path))) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(format!("{}: {error}", path.display())),
        Err(_) => Err(format!("{}: see above", path.display())),
    }
}

/// Fails if there is a folder of scripts that is not among those `played`.
pub(crate) fn check_folders(played: &[PathBuf]) {
    for folder in entries(&scripts()) {
        assert!(played.contains(&folder), "nobody plays the scripts in {}", folder.display());
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let listing = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> =
        listing.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.sort();
    paths
}
