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
