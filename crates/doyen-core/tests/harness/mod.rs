//! Runs golden scripts: finds them, parses their commands, hosts the members, writes the transcript.

mod command;
mod group;
mod time;
mod transcript;

use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};

use doyen_core::algorithm::quorum::Stored;
use doyen_core::protocol::Durable as _;
use doyen_core::registry::{Algorithm, AnyDurable};
use doyen_core::time::Span;

/// How a transcript shows what a member stores.
fn stored(durable: &AnyDurable) -> String {
    let &AnyDurable::Quorum(Stored { term, voted, longest, drained, pause }) = durable else {
        return format!("term={}", durable.term());
    };
    let voted = voted.map_or(String::new(), |voted| format!(" voted={voted}"));
    let drained = drained.map_or("", |_| " drained");
    let pause = pause.map_or(String::new(), |pause| match pause.left {
        Span::ZERO => " resumed".to_owned(),
        left => format!(" paused={}", time::Time(left)),
    });
    format!("term={term}{voted} longest={}{drained}{pause}", time::Time(longest))
}

/// The folder with the scripts of an algorithm.
pub(crate) fn folder(algorithm: Algorithm) -> PathBuf {
    scripts().join(algorithm.name())
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")
}

/// Runs every script of an algorithm, those in the folder with its name, and fails with the names of those whose transcript
/// differs.
pub(crate) fn play(algorithm: Algorithm) {
    let folder = folder(algorithm);
    let scripts = entries(&folder);
    assert!(!scripts.is_empty(), "no scripts in {}", folder.display());
    let failures = scripts.iter().filter_map(|path| play_script(algorithm, path).err());
    let failed: Vec<String> = failures.collect();
    assert!(failed.is_empty(), "{} of {}:\n{}", failed.len(), scripts.len(), failed.join("\n"));
}

/// Runs one script. A transcript that differs panics with the difference; the caller continues with the others.
fn play_script(algorithm: Algorithm, path: &Path) -> Result<(), String> {
    let mut runner = command::Runner::new(algorithm);
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
