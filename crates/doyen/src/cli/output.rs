//! Output files: complete or not at all.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::system;

/// A file under another name until it is complete. On failure the old file stays.
#[derive(Debug)]
pub(crate) struct Output {
    target: PathBuf,
    /// `None` for a target that cannot be replaced, such as a pipe.
    draft: Option<PathBuf>,
    writer: BufWriter<Box<dyn Sink>>,
}

trait Sink: Write + std::fmt::Debug {}

impl<T: Write + std::fmt::Debug> Sink for T {}

impl Output {
    /// Opens `target` for writing; `-` is stdout.
    pub(crate) fn create(target: &Path) -> Result<Self> {
        if target == Path::new("-") {
            let writer = BufWriter::new(Box::new(io::stdout()) as Box<dyn Sink>);
            return Ok(Self { target: target.to_owned(), draft: None, writer });
        }
        let failed = || format!("cannot write {}", target.display());
        // Of a link, the target is replaced.
        let target = &fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        let special = fs::metadata(target).is_ok_and(|meta| !meta.is_file() && !meta.is_dir());
        let name = target.file_name().with_context(failed)?;
        let draft = format!(".{}.{}.draft", name.to_string_lossy(), std::process::id());
        let draft = (!special).then(|| target.with_file_name(draft));
        if target.is_dir() {
            bail!("cannot write {}: it is a folder", target.display());
        }
        let file = File::create(draft.as_deref().unwrap_or(target)).with_context(failed)?;
        let writer = BufWriter::new(Box::new(file) as Box<dyn Sink>);
        Ok(Self { target: target.to_owned(), draft, writer })
    }

    pub(crate) fn write_text(&mut self, text: &str) -> Result<()> {
        let failed = || format!("cannot write {}", self.target.display());
        self.writer.write_all(text.as_bytes()).with_context(failed)
    }

    /// Flushes, and moves the file into place.
    pub(crate) fn finish(mut self) -> Result<()> {
        let failed = || format!("cannot write {}", self.target.display());
        self.writer.flush().with_context(failed)?;
        if let Some(draft) = &self.draft {
            fs::rename(draft, &self.target).with_context(failed)?;
        }
        self.draft = None;
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(draft) = self.draft.take() {
            // A draft that cannot be removed stays.
            let _ = fs::remove_file(draft);
        }
    }
}

/// Opens the files that are given, so that one that cannot be written is an error before the run, not after it. No two
/// outputs may go to one file, or to stdout.
pub(crate) fn create_all<const N: usize>(
    targets: [&Option<PathBuf>; N],
    takes_stdout: bool,
) -> Result<[Option<Output>; N]> {
    let mut seen = BTreeSet::new();
    let stdout = takes_stdout.then_some(Path::new("-"));
    let given = targets.into_iter().flatten().map(PathBuf::as_path).chain(stdout);
    match given.into_iter().find(|target| !seen.insert(*target)) {
        Some(target) if target == Path::new("-") => {
            bail!("two outputs go to stdout (-); give each its own")
        }
        Some(target) => bail!("two outputs go to {}; give each its own", target.display()),
        None => {}
    }
    let mut outputs = [const { None }; N];
    for (output, target) in outputs.iter_mut().zip(targets) {
        *output = target.as_deref().map(Output::create).transpose()?;
    }
    Ok(outputs)
}

pub(crate) fn finish_all(outputs: impl IntoIterator<Item = Option<Output>>) -> Result<()> {
    outputs.into_iter().flatten().try_for_each(Output::finish)
}

/// Says which files have been written.
pub(crate) fn note_written<const N: usize>(targets: [&Option<PathBuf>; N]) {
    let files = targets.into_iter().flatten().filter(|target| *target != Path::new("-"));
    let files: Vec<String> = files.map(|path| path.display().to_string()).collect();
    if !files.is_empty() {
        system::note(format_args!("written to {}", files.join(", ")));
    }
}

/// Whether one of the files is stdout.
pub(crate) fn is_stdout<const N: usize>(targets: [&Option<PathBuf>; N]) -> bool {
    targets.into_iter().flatten().any(|target| target == Path::new("-"))
}
