//! Files that are written whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// A file under another name until it is complete. If anything fails on the way, what was there before stays.
#[derive(Debug)]
pub(crate) struct Output {
    target: PathBuf,
    /// Where it is written meanwhile; `None` for a target that cannot be replaced, such as a pipe.
    draft: Option<PathBuf>,
    writer: BufWriter<Box<dyn Sink>>,
}

trait Sink: Write + std::fmt::Debug {}

impl<T: Write + std::fmt::Debug> Sink for T {}

impl Output {
    /// Opens `target` for writing; `-` is the standard output.
    pub(crate) fn create(target: &Path) -> Result<Self> {
        if target == Path::new("-") {
            let writer = BufWriter::new(Box::new(io::stdout()) as Box<dyn Sink>);
            return Ok(Self { target: target.to_owned(), draft: None, writer });
        }
        let failed = || format!("cannot write {}", target.display());
        // A link stays a link: what it points to is replaced.
        let target = &fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        let special = fs::metadata(target).is_ok_and(|meta| !meta.is_file() && !meta.is_dir());
        let name = target.file_name().with_context(failed)?;
        let draft = if special {
            None
        } else {
            let mut draft = std::ffi::OsString::from(".");
            draft.push(name);
            draft.push(format!(".{}.draft", std::process::id()));
            Some(target.with_file_name(draft))
        };
        if target.is_dir() {
            bail!("cannot write {}: it is a folder", target.display());
        }
        let file = File::create(draft.as_deref().unwrap_or(target)).with_context(failed)?;
        let writer = BufWriter::new(Box::new(file) as Box<dyn Sink>);
        Ok(Self { target: target.to_owned(), draft, writer })
    }

    /// Writes a whole text.
    pub(crate) fn write_text(&mut self, text: &str) -> Result<()> {
        let failed = || format!("cannot write {}", self.target.display());
        self.writer.write_all(text.as_bytes()).with_context(failed)
    }

    /// Writes everything out and gives the file its name.
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
            // Nothing else can be done about a draft that cannot be removed.
            let _ = fs::remove_file(draft);
        }
    }
}

/// Refuses two outputs into one file, or two on the standard output.
pub(crate) fn check_distinct<'a>(targets: impl IntoIterator<Item = &'a Path>) -> Result<()> {
    let mut seen: Vec<&Path> = Vec::new();
    for target in targets {
        if seen.contains(&target) {
            let name =
                if target == Path::new("-") { "the standard output" } else { "the same file" };
            bail!("two outputs go to {name} ({}); give each its own", target.display());
        }
        seen.push(target);
    }
    Ok(())
}
