//! What the commands need of the operating system: signals and memory.

use std::fs;
use std::io::{self, Write as _};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::signal::unix::{SignalKind, signal};

/// The exit code of an interrupted command, as shells report it for SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

static STOP: AtomicBool = AtomicBool::new(false);

/// Calls `handler` on every SIGINT, SIGTERM and SIGHUP, in a thread of its own. The signals no longer end the process.
pub(crate) fn on_signal(mut handler: impl FnMut() + Send + 'static) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let entered = runtime.enter();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    drop(entered);
    std::thread::spawn(move || {
        runtime.block_on(async {
            loop {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                    _ = hang_up.recv() => {}
                }
                handler();
            }
        });
    });
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
