//! Lines of the guardian and of what it starts, in the format of the node's log. They are rare and written directly: the
//! node that has a thread for that may be dead.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::time::SystemTime;

use serde_json::json;

/// The format of a log; that of a line of the guardian as text is `doyen: ` and a sentence.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum LogFormat {
    /// One line per entry
    #[default]
    Text,
    /// One JSON object per entry
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
        let line = self.line(event, text, stderr_is_journal());
        // If the line cannot be written, the error cannot be reported either.
        let _ = io::stderr().write_all(line.as_bytes());
    }

    /// A line that warns, with the priority that the journal reads.
    pub fn line(self, event: &str, text: &str, in_journal: bool) -> String {
        let priority = if in_journal { "<4>" } else { "" };
        match self {
            Self::Text => format!("{priority}doyen: {text}\n"),
            Self::Json => {
                let at = humantime::format_rfc3339_micros(SystemTime::now()).to_string();
                let line = json!({
                    "timestamp": at, "level": "WARN", "message": text, "event": event
                });
                format!("{priority}{line}\n")
            }
        }
    }
}

/// Whether what is written to the standard error goes to the journal of systemd, which reads a priority at the beginning
/// of each line: `<4>` for a warning.
pub fn stderr_is_journal() -> bool {
    let Some(stream) = std::env::var_os("JOURNAL_STREAM") else { return false };
    // Set for all processes of a service, whatever they have made of their standard error.
    rustix::fs::fstat(io::stderr())
        .is_ok_and(|stat| stream.to_str() == Some(&format!("{}:{}", stat.st_dev, stat.st_ino)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_gets_a_priority() {
        let line = |format: LogFormat, in_journal| format.line("lease", "it is late", in_journal);
        assert_eq!(line(LogFormat::Text, false), "doyen: it is late\n");
        assert_eq!(line(LogFormat::Text, true), "<4>doyen: it is late\n");
        assert!(line(LogFormat::Json, false).starts_with("{\"timestamp\":"));
        assert!(line(LogFormat::Json, true).starts_with("<4>{\"timestamp\":"));
    }
}
