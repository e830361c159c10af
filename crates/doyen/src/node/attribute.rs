//! Measures the attribute that ranks this member: free memory, idle processors, the output of a command, or a file.
//!
//! A thread of its own measures, because a command may take a while. The member is told only when the value has changed by
//! the configured step, so that leadership does not move for a megabyte. A measurement that fails changes nothing: the
//! last value stays, and the log says why.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use doyen_core::protocol::AdminCommand;
use tokio::sync::oneshot;

use super::log::{LogLine, Logger};
use super::waker::CommandSender;
use super::{Command as NodeCommand, CommandError};
use crate::config::{Attribute, Source};

/// The time limit of a command.
const COMMAND_LIMIT: Duration = Duration::from_secs(10);

/// How many bytes of a command's output are kept.
const LONGEST: usize = 256;

/// How many times the pipe is read before the process is polled again.
const READS: usize = 64;

/// How often a running command is polled.
const POLL: Duration = Duration::from_millis(20);

/// Starts the thread, if there is something to measure. It ends with the loop.
pub(super) fn start(attribute: &Attribute, commands: CommandSender, log: Logger) -> io::Result<()> {
    let Attribute::Measured { source, every, step } = attribute.clone() else { return Ok(()) };
    thread::Builder::new().name("doyen-attribute".to_owned()).spawn(move || {
        let mut reported: Option<i64> = None;
        let mut failing = false;
        loop {
            match measure(&source) {
                Ok(value) => {
                    failing = false;
                    if reported.is_none_or(|last| last.abs_diff(value) >= step.max(1)) {
                        match report(&commands, value) {
                            Ok(()) => reported = Some(value),
                            Err(CommandError::Stopped) => return,
                            Err(_) => {} // the next measurement tries again
                        }
                    }
                }
                Err(error) if !failing => {
                    failing = true;
                    let text = format!("cannot measure {source}: {error}");
                    let line = LogLine::warning("attribute-not-measured", text);
                    log.write(LogLine { reason: Some(error.to_string()), ..line });
                }
                Err(_) => {}
            }
            thread::sleep(every);
        }
    })?;
    Ok(())
}

fn report(commands: &CommandSender, value: i64) -> Result<(), CommandError> {
    let (answer, answered) = oneshot::channel();
    commands.send(NodeCommand::Admin {
        command: AdminCommand::Attribute(value),
        by: None,
        answer,
    })?;
    answered.blocking_recv().unwrap_or(Err(CommandError::Stopped))
}

fn measure(source: &Source) -> io::Result<i64> {
    match source {
        Source::FreeMemory => free_memory(&std::fs::read_to_string("/proc/meminfo")?),
        Source::Load => {
            let processors = thread::available_parallelism()?.get();
            idle(&std::fs::read_to_string("/proc/loadavg")?, processors)
        }
        Source::Command(words) => printed_by(words),
        Source::File(path) => contained_in(path),
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// In mebibytes, from the text of `/proc/meminfo`.
fn free_memory(meminfo: &str) -> io::Result<i64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kibibytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<i64>().ok());
    kibibytes.map(|kib| kib / 1024).ok_or_else(|| invalid("MemAvailable is missing"))
}

/// Hundredths of idle processors, from the text of `/proc/loadavg`.
fn idle(loadavg: &str, processors: usize) -> io::Result<i64> {
    let load: f64 = loadavg
        .split_whitespace()
        .next()
        .and_then(|first| first.parse().ok())
        .ok_or_else(|| invalid("the load average is missing"))?;
    Ok(((processors as f64 - load) * 100.0).round() as i64)
}

/// The integer on the first line of a command's output.
fn printed_by(words: &[String]) -> io::Result<i64> {
    let (program, arguments) = words.split_first().ok_or_else(|| invalid("no command is given"))?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut stdout = child.stdout.take().ok_or_else(|| invalid("the command has no output"))?;
    rustix::io::ioctl_fionbio(&stdout, true)?;
    let (begun, mut printed) = (Instant::now(), Vec::new());
    let status = loop {
        let ended = child.try_wait()?;
        // A process that the command started may keep the pipe open, so do not wait for the end of the pipe.
        read_available(&mut stdout, &mut printed)?;
        if let Some(status) = ended {
            break status;
        }
        if begun.elapsed() > COMMAND_LIMIT {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the command took too long"));
        }
        thread::sleep(POLL);
    };
    if !status.success() {
        return Err(io::Error::other(format!("the command failed: {status}")));
    }
    let printed = String::from_utf8_lossy(&printed);
    first_line(&printed)
        .ok_or_else(|| invalid("the command did not print an integer on its first line"))
}

/// The integer on the first line of a file.
fn contained_in(path: &Path) -> io::Result<i64> {
    let mut text = String::new();
    File::open(path)?.take(LONGEST as u64).read_to_string(&mut text)?;
    first_line(&text).ok_or_else(|| invalid("its first line is not an integer"))
}

fn first_line(text: &str) -> Option<i64> {
    text.lines().next()?.trim().parse().ok()
}

/// Reads what is in the pipe, and keeps its beginning.
fn read_available(pipe: &mut impl io::Read, kept: &mut Vec<u8>) -> io::Result<()> {
    let mut bytes = [0; 4096];
    for _ in 0..READS {
        match pipe.read(&mut bytes) {
            Ok(0) => break,
            Ok(count) => {
                let room = LONGEST.saturating_sub(kept.len());
                kept.extend_from_slice(&bytes[..count.min(room)]);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn command(words: &[&str]) -> Source {
        Source::Command(words.iter().map(|&word| word.to_owned()).collect())
    }

    #[test]
    fn measurements_are_parsed() {
        let meminfo = "MemTotal:  100 kB\nMemAvailable:   4194304 kB\n";
        assert_eq!(free_memory(meminfo).unwrap(), 4096);
        assert!(free_memory("MemTotal: 1 kB").is_err());
        assert_eq!(idle("0.25 0.10 0.05 1/100 42", 4).unwrap(), 375);
        assert_eq!(idle("6.50 0 0 1/1 1", 4).unwrap(), -250, "overloaded is worse than idle");
        assert!(idle("", 4).is_err());
    }

    #[test]
    fn a_command_must_print_an_integer() {
        assert_eq!(measure(&command(&["echo", "42"])).unwrap(), 42);
        assert_eq!(measure(&command(&["printf", "%s\\nrest", "-7"])).unwrap(), -7);
        let error = |words: &[&str]| measure(&command(words)).unwrap_err().to_string();
        assert_eq!(measure(&command(&["sh", "-c", "echo 6; seq 100000"])).unwrap(), 6);
        assert!(error(&["echo", "many"]).contains("integer"));
        assert!(error(&["false"]).contains("failed"));
        assert!(measure(&command(&["no-such-command-anywhere"])).is_err());
        assert!(measure(&command(&[])).is_err());
    }

    #[test]
    fn a_file_must_contain_an_integer() {
        let folder = Scratch::new();
        let path = folder.join("score");
        let source = Source::File(path.clone());
        assert!(measure(&source).is_err(), "there is no file");
        for (text, score) in
            [("7\n", Some(7)), (" -3 \nrest", Some(-3)), ("", None), ("x\n7", None)]
        {
            std::fs::write(&path, text).unwrap();
            assert_eq!(measure(&source).ok(), score, "{text:?}");
        }
    }

    #[test]
    fn a_background_process_of_a_command_is_not_waited_for() {
        let begun = Instant::now();
        assert_eq!(measure(&command(&["sh", "-c", "sleep 5 & echo 5"])).unwrap(), 5);
        assert!(begun.elapsed() < Duration::from_secs(4));
    }
}
