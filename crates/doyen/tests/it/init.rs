//! `doyen init` where the disk does not play along.

use std::path::Path;
use std::process::{Command, Output};

const INIT: [&str; 7] = [
    "init",
    "--cluster",
    "orders",
    "--member",
    "n1=127.0.0.1:7401",
    "--member",
    "n2=127.0.0.1:7402",
];

/// Runs `doyen init` in `folder` where no file can grow longer than `blocks` of the shell's.
fn init_with_limit(folder: &Path, blocks: u32) -> Output {
    // The signal is ignored, so that a write that is too long fails as on a full disk.
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
    Command::new("sh")
        .args(["-c", &script, "sh", env!("CARGO_BIN_EXE_doyen")])
        .args(INIT)
        .current_dir(folder)
        .output()
        .expect("there is a shell")
}

#[test]
fn a_full_disk_leaves_nothing_half_written() {
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("init-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // A block is 512 or 1024 bytes: none, then enough for the key, then enough for the configuration, not for the state.
    for blocks in [0, 1, 4] {
        let output = init_with_limit(&folder, blocks);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{blocks} blocks: {error}");
        assert!(error.contains("File too large"), "{blocks} blocks: {error}");
        let left: Vec<_> = std::fs::read_dir(&folder).unwrap().collect();
        assert!(left.is_empty(), "{blocks} blocks: {left:?}");
    }
    let output = init_with_limit(&folder, 64);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Every folder that got an entry is synced: those of the members, the one around them, and the one around that.
#[test]
fn every_folder_that_got_an_entry_is_synced() {
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("synced-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let traced = Command::new("strace")
        .args(["-f", "-y", "-e", "trace=fsync,fdatasync,rename", "-o", "calls"])
        .arg(env!("CARGO_BIN_EXE_doyen"))
        .args(INIT)
        .current_dir(&folder)
        .output();
    let calls = std::fs::read_to_string(folder.join("calls")).unwrap_or_default();
    if !traced.is_ok_and(|output| output.status.success()) || calls.is_empty() {
        crate::support::skip("strace cannot be run here: what `init` syncs is not seen");
        return;
    }
    let is_synced = |path: &str| {
        calls.lines().any(|call| call.contains("fsync(") && call.contains(&format!("{path}>)")))
    };
    let top = folder.to_str().unwrap();
    for path in ["draft/n1", "draft/n2", "draft/n1/state", ".draft", top] {
        assert!(is_synced(path), "{path} is not synced:\n{calls}");
    }
    let at = |words: &str| calls.lines().position(|call| call.contains(words));
    let renamed = at("rename(").expect("it is moved to its place");
    assert!(at(".draft>)").unwrap() < renamed, "{calls}");
    assert!(at(&format!("{top}>)")).unwrap() > renamed, "{calls}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_policy_of_preemption_is_written_and_checked() {
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("preemption-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let doyen = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_doyen"));
        command.args(arguments).current_dir(&folder).output().expect("it runs")
    };
    let init = |more: &[&str]| doyen(&[&INIT[..], more].concat());
    let wrong = init(&["--preemption", "soon"]);
    let error = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert_eq!(wrong.status.code(), Some(2), "{error}");
    assert!(error.contains("use never, delayed or immediate"), "{error}");
    let bully = init(&["--preemption", "never", "--algorithm", "bully"]);
    let error = String::from_utf8_lossy(&bully.stderr).into_owned();
    assert_eq!(bully.status.code(), Some(2), "{error}");
    assert!(error.contains("bully supports `delayed` only"), "{error}");

    assert!(init(&["--preemption", "never"]).status.success());
    let printed = doyen(&["node", "--config", "orders/n1/doyen.toml", "--print-config"]);
    let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
    assert!(printed.contains("policy = \"never\""), "{printed}");
    std::fs::remove_dir_all(&folder).unwrap();
}
