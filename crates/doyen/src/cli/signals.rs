//! Ctrl-C and its like: SIGINT; SIGTERM, with which other programs ask for the same; and SIGHUP, when a terminal is closed.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use tokio::signal::unix::{SignalKind, signal};

/// The exit code of a command that was interrupted: what shells say of one that SIGINT ended.
pub(crate) const INTERRUPTED: u8 = 130;

/// Set when somebody wants a long search to end.
static ENOUGH: AtomicBool = AtomicBool::new(false);

/// Calls `happen` at every such signal, from a thread of its own. They no longer end the process by themselves.
pub(crate) fn watch(mut happen: impl FnMut() + Send + 'static) -> Result<()> {
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
                happen();
            }
        });
    });
    Ok(())
}

/// For a long search: the first signal sets what comes back, so that the search ends and what it has covered can be said;
/// the second ends the process.
pub(crate) fn first_asks() -> Result<&'static AtomicBool> {
    watch(|| {
        if ENOUGH.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(INTERRUPTED));
        }
        // The terminal may have gone.
        let text = "doyen: stopping, and saying what was covered; once more stops at once";
        let _ = writeln!(io::stderr(), "{text}");
    })?;
    Ok(&ENOUGH)
}
