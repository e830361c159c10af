//! The engine of the lab: one function, JSON in and JSON out. [`call`] simulates a scenario and records it step by step,
//! explores it, draws it, and describes what there is to choose from.
//!
//! Everything here is pure: no clock, no file, no thread. Equal requests get equal answers, byte for byte, in a server and
//! in a browser. The size of a request is limited (`limits.rs`), so that strangers may send requests; a caller with a clock
//! can stop a call that takes too long.
//!
//! | module | contents |
//! |---|---|
//! | [`gallery`] | the scenarios that are built in |
//! | `source`, `flags` | from a request to a scenario, and back to the command that repeats it |
//! | `run`, `record`, `recorded`, `metrics` | a run, recorded |
//! | `check`, `schedule` | every run within a fault budget, and one that breaks a property, recorded |
//! | `scale` | the same scenario with up to a million members |
//! | `render` | a run as a picture, a text or a file |
//! | `catalogue`, `explain` | what there is, and a scenario as a sentence |
//! | `limits` | the limits of a request |
//!
//! ```
//! let request = r#"{ "source": { "gallery": "kordafshari/figure-1" } }"#;
//! let answer = doyen_lab::call("run", request, &mut |_| true)?;
//! assert!(answer.contains(r#""messages":16"#));
//! # Ok::<(), String>(())
//! ```

#![forbid(unsafe_code)]

mod catalogue;
mod check;
mod explain;
mod flags;
pub mod gallery;
mod limits;
mod metrics;
mod problem;
mod record;
mod recorded;
mod render;
mod run;
mod scale;
mod schedule;
mod source;
mod words;

pub use flags::{NAMES as FLAGS, changes};
pub use source::OF_SIM_ALONE as FLAGS_OF_SIM_ALONE;

use problem::Problem;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Is told what a long call has done so far, as a JSON object; returns whether to continue. A call that is stopped ends with
/// a problem, or, where that makes sense, with what it has found.
pub type Progress<'p> = &'p mut (dyn FnMut(&str) -> bool + Send);

/// Answers `request`, a JSON object, with a JSON object. An error is a JSON object too: `title`, `detail` (a sentence for
/// people) and `key` (the flag or the key of the scenario at fault).
pub fn call(method: &str, request: &str, progress: Progress<'_>) -> Result<String, String> {
    let answer = match method {
        "catalogue" => written(&catalogue::catalogue()),
        "run" => answer(request, |request| run::run(request, progress)),
        "scale" => answer(request, |request| scale::scale(request, progress)),
        "check" => answer(request, |request| check::check(request, progress)),
        "render" => answer(request, |request| render::render(request, progress)),
        "explain" => answer(request, explain::explain),
        _ => Err(Problem::new("No such method", format!("there is no method `{method}`"))),
    };
    answer.map_err(|problem| problem.to_json())
}

/// Reads a request, calls the method and writes the answer.
fn answer<R: DeserializeOwned, A: Serialize>(
    request: &str,
    method: impl FnOnce(&R) -> Result<A, Problem>,
) -> Result<String, Problem> {
    method(&read(request)?).and_then(|answer| written(&answer))
}

fn read<T: DeserializeOwned>(request: &str) -> Result<T, Problem> {
    serde_json::from_str(request)
        .map_err(|error| Problem::new("The request is not valid", error.to_string()))
}

fn written(answer: &impl Serialize) -> Result<String, Problem> {
    serde_json::to_string(answer)
        .map_err(|error| Problem::new("The answer cannot be written", error.to_string()))
}
