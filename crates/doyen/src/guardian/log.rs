//! Lines of the guardian and of what it starts, in the format of the node's log. They are rare and written directly: the
//! node that has a thread for that may be dead.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::time::SystemTime;

use serde_json::json;

/// The format of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LogFormat {
    /// `doyen: ` and a sentence.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

impl LogFormat {
    /// As an argument of the program.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }

    pub(super) fn of_name(name: &OsStr) -> Self {
        if name == Self::Json.name() { Self::Json } else { Self::Text }
    }

    /// Writes a line to the standard error. `event`: a stable name for programs.
    pub(super) fn warn(self, event: &str, text: &str) {
        let line = match self {
            Self::Text => format!("doyen: {text}\n"),
            Self::Json => {
                let at = humantime::format_rfc3339_micros(SystemTime::now()).to_string();
                let line = json!({
                    "timestamp": at, "level": "WARN", "message": text, "event": event
                });
                format!("{line}\n")
            }
        };
        // If nobody can read it, nobody can be told.
        let _ = io::stderr().write_all(line.as_bytes());
    }
}
