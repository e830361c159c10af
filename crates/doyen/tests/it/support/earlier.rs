//! The program as it was at an earlier revision, built from the history of the repository.
//!
//! Its source is unpacked under the target folder and built there once: a second run finds the program. What it shares
//! with the present program, which is nearly every dependency, is taken from the same target folder. Its own crates are
//! not optimised: it runs for seconds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::program;

/// The revision that members are upgraded from: one that writes version 3 of datagrams and version 2 of the state file.
pub const REVISION: &str = "786fcc62e1ba5adea85196600725b43aa1c1ab1f";

/// The program of [`REVISION`]; why there is none, if the history is not here.
pub fn earlier_program() -> Result<PathBuf, String> {
    let target = Path::new(program()).ancestors().nth(2).expect("a target folder");
    let folder = target.join("upgrade").join(REVISION);
    let ready = folder.join("doyen");
    if ready.exists() {
        return Ok(ready);
    }
    let source = folder.join("source");
    fs::create_dir_all(&source).map_err(|error| format!("{}: {error}", source.display()))?;
    unpack(&source)?;
    let built = build(&source, target, &folder)?;
    // It gets its name when it is whole, so that another test process never finds half of it.
    fs::rename(&built, &ready).map_err(|error| format!("{}: {error}", built.display()))?;
    fs::remove_dir_all(&source).map_err(|error| format!("{}: {error}", source.display()))?;
    Ok(ready)
}

fn unpack(source: &Path) -> Result<(), String> {
    let archive = Command::new("git")
        .args(["archive", "--format=tar", REVISION])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .map_err(|error| format!("git: {error}"))?;
    if !archive.status.success() {
        let why = String::from_utf8_lossy(&archive.stderr);
        return Err(format!("the history does not hold revision {REVISION}: {}", why.trim()));
    }
    let packed = source.with_extension("tar");
    fs::write(&packed, archive.stdout).map_err(|error| format!("{}: {error}", packed.display()))?;
    let status = Command::new("tar").arg("-xf").arg(&packed).arg("-C").arg(source).status();
    let status = status.map_err(|error| format!("tar: {error}"))?;
    let _ = fs::remove_file(&packed);
    status.success().then_some(()).ok_or_else(|| format!("tar: {status}"))
}

/// How the dependencies of the present program are built: built otherwise, they could not be shared.
fn settings_of_dependencies() -> impl Iterator<Item = &'static str> {
    let manifest = include_str!("../../../../../Cargo.toml");
    let (_, packages) =
        manifest.split_once("[profile.dev.package]\n").expect("a table of packages");
    let settings = packages.lines().take_while(|line| !line.starts_with('['));
    settings.filter(|line| line.contains('=') && !line.starts_with("doyen"))
}

/// Builds it. It must build: a failure here is no reason to skip a test.
fn build(source: &Path, target: &Path, folder: &Path) -> Result<PathBuf, String> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--locked", "--package", "doyen", "--bin", "doyen"]);
    for package in ["doyen", "doyen-core", "doyen-sim", "doyen-check", "doyen-report", "doyen-lab"]
    {
        cargo.args(["--config", &format!("profile.dev.package.{package}.opt-level=0")]);
        cargo.args(["--config", &format!("profile.dev.package.{package}.debug=false")]);
    }
    for setting in settings_of_dependencies() {
        cargo.args(["--config", &format!("profile.dev.package.{setting}")]);
    }
    let built = cargo
        .current_dir(source)
        // What is built on the way lies with that of the present program; the program itself does not.
        .env("CARGO_BUILD_BUILD_DIR", target)
        .env("CARGO_TARGET_DIR", folder)
        .env("CARGO_INCREMENTAL", "0")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    assert!(
        built.status.success(),
        "revision {REVISION} does not build:\n{}",
        String::from_utf8_lossy(&built.stderr)
    );
    Ok(folder.join("debug").join("doyen"))
}
