//! Calls the engine once: `call METHOD < request.json` prints the answer, after one line for each report of progress.

use std::io::{Read, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let method = std::env::args().nth(1).unwrap_or_default();
    let mut request = String::new();
    if std::io::stdin().read_to_string(&mut request).is_err() {
        request.clear();
    }
    let mut progress = |report: &str| {
        let _ = writeln!(std::io::stdout(), "{{\"progress\":{report}}}");
        true
    };
    let (answer, code) = match doyen_lab::call(&method, &request, &mut progress) {
        Ok(answer) => (answer, ExitCode::SUCCESS),
        Err(problem) => (problem, ExitCode::FAILURE),
    };
    let _ = writeln!(std::io::stdout(), "{answer}");
    code
}
