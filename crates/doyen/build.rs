//! Writes a table of the files of the page (`web/` at the top of the repository), which the program embeds.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The types of files that a browser gets; nothing else is embedded.
const TYPES: [(&str, &str); 9] = [
    ("html", "text/html; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("woff2", "font/woff2"),
    ("wasm", "application/wasm"),
    ("txt", "text/plain; charset=utf-8"),
];

fn main() -> io::Result<()> {
    let folder = |name| PathBuf::from(env::var_os(name).expect("cargo sets it"));
    let web = folder("CARGO_MANIFEST_DIR").join("../../web");
    println!("cargo::rerun-if-changed={}", web.display());
    let mut files = Vec::new();
    if web.is_dir() {
        collect(&web.canonicalize()?, &mut files)?;
    }
    files.sort();
    let mut table = String::from("[\n");
    for file in files {
        let Some(kind) = content_type(&file) else { continue };
        let path = file.strip_prefix(web.canonicalize()?).expect("it is in the folder");
        let path = path.to_str().expect("names are plain");
        // Writing to a string does not fail.
        let _ = writeln!(
            table,
            "    File {{ path: {path:?}, content_type: {kind:?}, bytes: include_bytes!({file:?}) }},"
        );
    }
    table.push(']');
    fs::write(folder("OUT_DIR").join("page_files.rs"), table)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => collect(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}

fn content_type(file: &Path) -> Option<&'static str> {
    let name = file.file_name()?.to_str().filter(|name| !name.starts_with('.'))?;
    let (_, ending) = name.rsplit_once('.')?;
    TYPES.iter().find(|(known, _)| *known == ending).map(|(_, kind)| *kind)
}
