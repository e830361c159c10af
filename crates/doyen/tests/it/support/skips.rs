//! What could not be tested on this machine.

use std::fs::File;
use std::io::Write as _;

/// Names the file to which skipped tests are appended. `make test` and `make chaos` print it at their end, where nothing that
/// is printed later hides it.
const FILE: &str = "SKIPPED_TESTS";

/// Says, loudly, that something could not be tested here. Written past the capture of tests that pass.
pub fn skip(what: &str) {
    let _ = writeln!(std::io::stderr(), "\nSKIPPED: {what}\n");
    let Some(file) = std::env::var_os(FILE) else { return };
    let mut file = File::options().create(true).append(true).open(file).expect("a file of skips");
    // In one piece: other tests write to the file at the same time.
    let line = format!("SKIPPED: {}\n", what.replace('\n', " "));
    file.write_all(line.as_bytes()).expect("a line of skips");
}
