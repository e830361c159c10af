//! What the commands need of the operating system: signals, memory, file descriptors, and where their errors go.

use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use doyen::guardian::stderr_is_journal;
use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// The exit code of an interrupted command, as shells report it for SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// How many file descriptors must be free when signals begin to be handled: that takes two, and what follows takes more.
const SIGNAL_FILES: usize = 8;

/// As many file descriptors as a node takes, if the system permits: connections to its HTTP server are most of them.
const COMFORTABLE_FILES: u64 = 1024;

static STOP: AtomicBool = AtomicBool::new(false);

/// Calls `handler` on every SIGINT, SIGTERM and SIGHUP, in a thread of its own. The signals no longer end the process.
pub(crate) fn on_signal(handler: impl FnMut() + Send + 'static) -> Result<()> {
    check_free_files(SIGNAL_FILES)?;
    on([SIGTERM, SIGINT, SIGHUP], handler)
}

/// Calls `handler` whenever something happens to a child: it ends, is stopped or continues.
pub(crate) fn on_child_change(handler: impl FnMut() + Send + 'static) -> Result<()> {
    on([SIGCHLD], handler)
}

fn on<const N: usize>(kinds: [i32; N], mut handler: impl FnMut() + Send + 'static) -> Result<()> {
    let mut signals = Signals::new(kinds)?;
    let handle = move || signals.forever().for_each(|_| handler());
    let thread = std::thread::Builder::new().name("doyen-signals".to_owned());
    thread.spawn(handle).context("cannot start a thread")?;
    Ok(())
}

/// For a long search: the first signal sets the flag, so that the search stops and reports; the second ends the process.
pub(crate) fn stop_flag() -> Result<&'static AtomicBool> {
    on_signal(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(INTERRUPTED));
        }
        // The terminal may have been closed.
        let text = "doyen: stopping; a second signal stops without a report";
        let _ = writeln!(io::stderr(), "{text}");
    })?;
    Ok(&STOP)
}

/// Checks that this many more files can be opened. Some libraries panic where they cannot open one.
pub(crate) fn check_free_files(count: usize) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    if let Some(current) = limit.current.filter(|&current| current < COMFORTABLE_FILES) {
        let raised = limit.maximum.map_or(COMFORTABLE_FILES, |most| most.min(COMFORTABLE_FILES));
        // If it cannot be raised, there may still be enough.
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit { current: Some(current.max(raised)), maximum: limit.maximum },
        );
    }
    let tried: Result<Vec<OwnedFd>, _> =
        (0..count).map(|_| eventfd(0, EventfdFlags::CLOEXEC)).collect();
    tried.map(drop).map_err(io::Error::from).with_context(|| {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        format!(
            "doyen needs {count} more file descriptors, and this process may have {limit}; raise the limit (`ulimit -n`, \
             or LimitNOFILE= of a systemd unit)"
        )
    })
}

/// A warning, if this process may have fewer than `count` file descriptors.
pub(crate) fn scarce_files(count: usize) -> Option<String> {
    let limit = getrlimit(Resource::Nofile).current.filter(|&limit| limit < count as u64)?;
    Some(format!(
        "this process may have {limit} file descriptors, and a busy HTTP server takes up to {count}: clients may be turned \
         away. Raise the limit (`ulimit -n`, or LimitNOFILE= of a systemd unit)"
    ))
}

/// Keeps the memory of this process, in which its keys are, out of core dumps and from other processes of its user. What
/// it executes is not concerned.
pub(crate) fn protect_memory() -> Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable).context("cannot forbid core dumps")
}

/// Says something beside the data, on stderr. `eprintln!` would panic if that is closed.
pub(crate) fn note(text: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "doyen: {text}");
}

/// Says why a command failed. If stderr is closed, the exit code still tells.
pub(crate) fn complain(error: &anyhow::Error) {
    let priority = if stderr_is_journal() { "<3>" } else { "" };
    let _ = writeln!(io::stderr(), "{priority}doyen: {error:#}");
}

/// The free memory in bytes; 4 GB where the system does not tell.
pub(crate) fn available_memory() -> u64 {
    proc_bytes("/proc/meminfo", "MemAvailable:").unwrap_or(4_000_000_000)
}

/// The memory of this process in bytes; 0 where the system does not tell.
pub(crate) fn resident_memory() -> u64 {
    proc_bytes("/proc/self/status", "VmRSS:").unwrap_or(0)
}

fn proc_bytes(file: &str, field: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(field))?;
    Some(value.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
}

/// The time since the first call, for code that has no clock of its own.
pub(crate) fn elapsed() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}
