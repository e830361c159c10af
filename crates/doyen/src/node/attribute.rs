//! The election's attribute where it is measured: free memory, idle processors, what a command prints.
//!
//! A thread of its own measures, for a command may take its time. The member is told only when the value has moved by
//! the configured step, so that a leader is not changed for a megabyte. A measurement that fails changes nothing: the
//! last value stands, and the log says why.

use std::io;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use doyen_core::protocol::AdminCommand;
use tokio::sync::oneshot;

use super::bell::Requests;
use super::journal::{Journal, Line};
use super::{NotDone, Request};
use crate::config::{Attribute, Source};

/// How long a command may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(10);

/// How much of what a command prints is kept.
const LONGEST: usize = 256;

/// How often its pipe is read before it is looked at again.
const ROUNDS: usize = 64;

/// How often it is looked whether a command has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Begins to measure, if there is something to measure. Ends with the loop.
pub(super) fn start(attribute: &Attribute, requests: Requests, journal: Journal) -> io::Result<()> {
    let Attribute::Measured { source, every, step } = attribute.clone() else { return Ok(()) };
    thread::Builder::new().name("doyen-attribute".to_owned()).spawn(move || {
        let mut told: Option<i64> = None;
        let mut failing = false;
        loop {
            match measure(&source) {
                Ok(value) => {
                    failing = false;
                    if told.is_none_or(|told| told.abs_diff(value) >= step.max(1)) {
                        match tell(&requests, value) {
                            Ok(()) => told = Some(value),
                            Err(NotDone::Stopped) => return,
                            Err(_) => {} // the next measurement tries again
                        }
                    }
                }
                Err(error) if !failing => {
                    failing = true;
                    journal.write(Line::Warning(format!("cannot measure {source}: {error}")));
                }
                Err(_) => {}
            }
            thread::sleep(every);
        }
    })?;
    Ok(())
}

fn tell(requests: &Requests, value: i64) -> Result<(), NotDone> {
    let (answer, answered) = oneshot::channel();
    requests.send(Request::Command(AdminCommand::Attribute(value), answer))?;
    answered.blocking_recv().unwrap_or(Err(NotDone::Stopped))
}

/// Measures once.
fn measure(source: &Source) -> io::Result<i64> {
    match source {
        Source::FreeMemory => free_memory(&std::fs::read_to_string("/proc/meminfo")?),
        Source::Load => {
            let processors = thread::available_parallelism()?.get();
            idle(&std::fs::read_to_string("/proc/loadavg")?, processors)
        }
        Source::Command(words) => printed_by(words),
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

/// Idle processors in hundredths, from the text of `/proc/loadavg`.
fn idle(loadavg: &str, processors: usize) -> io::Result<i64> {
    let load: f64 = loadavg
        .split_whitespace()
        .next()
        .and_then(|first| first.parse().ok())
        .ok_or_else(|| invalid("the load average is missing"))?;
    Ok(((processors as f64 - load) * 100.0).round() as i64)
}

/// The integer that a command prints on its first line.
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
        // What it has started may go on and keep the pipe open, so its end is not waited for.
        read_what_waits(&mut stdout, &mut printed)?;
        if let Some(status) = ended {
            break status;
        }
        if begun.elapsed() > COMMAND_LIMIT {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the command took too long"));
        }
        thread::sleep(LOOK);
    };
    if !status.success() {
        return Err(io::Error::other(format!("the command failed: {status}")));
    }
    let printed = String::from_utf8_lossy(&printed);
    let first = printed.lines().next().unwrap_or_default().trim();
    first.parse().map_err(|_| invalid("the command did not print an integer on its first line"))
}

/// Reads what a pipe holds, and keeps the beginning of it.
fn read_what_waits(pipe: &mut impl io::Read, kept: &mut Vec<u8>) -> io::Result<()> {
    let mut bytes = [0; 4096];
    for _ in 0..ROUNDS {
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

    fn command(words: &[&str]) -> Source {
        Source::Command(words.iter().map(|&word| word.to_owned()).collect())
    }

    #[test]
    fn what_the_machine_says_is_read() {
        let meminfo = "MemTotal:  100 kB\nMemAvailable:   4194304 kB\n";
        assert_eq!(free_memory(meminfo).unwrap(), 4096);
        assert!(free_memory("MemTotal: 1 kB").is_err());
        assert_eq!(idle("0.25 0.10 0.05 1/100 42", 4).unwrap(), 375);
        assert_eq!(idle("6.50 0 0 1/1 1", 4).unwrap(), -250, "overloaded is worse than idle");
        assert!(idle("", 4).is_err());
    }

    #[test]
    fn a_command_prints_an_integer_or_is_told_off() {
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
    fn what_a_command_has_started_is_not_waited_for() {
        let begun = Instant::now();
        assert_eq!(measure(&command(&["sh", "-c", "sleep 5 & echo 5"])).unwrap(), 5);
        assert!(begun.elapsed() < Duration::from_secs(4));
    }
}
