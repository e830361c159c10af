//! Files that are written whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

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
            anyhow::bail!("cannot write {}: it is a folder", target.display());
        }
        let file = File::create(draft.as_deref().unwrap_or(target)).with_context(failed)?;
        let writer = BufWriter::new(Box::new(file) as Box<dyn Sink>);
        Ok(Self { target: target.to_owned(), draft, writer })
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

/// Writes a whole file at once.
pub(crate) fn write(target: &Path, content: &str) -> Result<()> {
    let mut output = Output::create(target)?;
    output
        .write_all(content.as_bytes())
        .with_context(|| format!("cannot write {}", target.display()))?;
    output.finish()
}
