//! What a service manager such as systemd is told: that the node is ready, that it is alive, and that it is stopping.
//!
//! Without `NOTIFY_SOCKET` in the environment, nothing is. The watchdog is fed only when the event loop has published a new
//! snapshot, which it does several times a second: a loop that hangs is noticed, however well other threads are.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use doyen::node::Handle;
use sd_notify::{NotifyState, notify, watchdog_enabled};
use tracing::warn;

/// How often it looks whether the node is alive or stopping; the loop publishes a snapshot as often.
const LOOK: Duration = Duration::from_millis(250);

/// Says that the node is ready, and begins to watch it.
pub(super) fn notify_of(handle: Handle) -> io::Result<()> {
    if std::env::var_os("NOTIFY_SOCKET").is_none() {
        return Ok(());
    }
    notify(&[NotifyState::Ready])?;
    let pause = watchdog_enabled().map_or(LOOK, |timeout| LOOK.min(timeout / 4));
    let mut watch = Watch { snapshot: handle.status(), is_stopping: false };
    let mut has_failed = false;
    let body = move || {
        loop {
            thread::sleep(pause);
            let states = watch.look(handle.status(), handle.is_stopping());
            let told = if states.is_empty() { Ok(()) } else { notify(&states) };
            if let (Err(error), false) = (&told, has_failed) {
                warn!(event = "service-not-notified", reason = %error, "cannot notify the service manager: {error}");
            }
            has_failed |= told.is_err();
        }
    };
    thread::Builder::new().name("service".to_owned()).spawn(body).map(drop)
}

/// What was last seen of a node.
struct Watch<T> {
    snapshot: Arc<T>,
    is_stopping: bool,
}

impl<T> Watch<T> {
    /// What there is to tell of what is seen now. systemd ignores `Watchdog` if the unit has none.
    fn look(&mut self, snapshot: Arc<T>, is_stopping: bool) -> Vec<NotifyState<'static>> {
        let stops = is_stopping && !self.is_stopping;
        let is_alive = !Arc::ptr_eq(&snapshot, &self.snapshot);
        *self = Self { snapshot, is_stopping };
        let states = [(stops, NotifyState::Stopping), (is_alive, NotifyState::Watchdog)];
        states.into_iter().filter_map(|(is_so, state)| is_so.then_some(state)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_new_snapshot_of_the_loop_feeds_the_watchdog() {
        let [first, second] = [Arc::new(1), Arc::new(1)];
        let mut watch = Watch { snapshot: Arc::clone(&first), is_stopping: false };
        let mut told = |snapshot: &Arc<i32>, is_stopping| -> Vec<String> {
            let states = watch.look(Arc::clone(snapshot), is_stopping);
            states.iter().map(ToString::to_string).collect()
        };
        assert_eq!(told(&first, false), [""; 0]);
        assert_eq!(told(&second, false), ["WATCHDOG=1"]);
        assert_eq!(told(&second, false), [""; 0], "the loop hangs");
        assert_eq!(told(&second, true), ["STOPPING=1"]);
        assert_eq!(told(&second, true), [""; 0], "once is enough");
    }
}
