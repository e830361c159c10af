//! What happens in the cluster, as server-sent events.
//!
//! | event | data | when |
//! |---|---|---|
//! | `cluster` | the cluster as it is now | first; at once on a change, else ten times a second at most |
//! | `log` | new lines of the log | first with all that are kept |
//! | `timeline` | the leaders of the last ten minutes | first; on a change |
//! | `bye` | nothing | the lab ends |
//!
//! `cluster` and `timeline` are complete each time. A page that reads slowly gets the latest of each, and no line twice.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::shared::Published;

/// How often a comment is sent when there is nothing else to send, so that a broken connection is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The events of one page.
pub(crate) struct Feed {
    published: watch::Receiver<Published>,
    stopping: watch::Receiver<bool>,
    sent: Sent,
    pending: VecDeque<Event>,
    ended: bool,
    _slot: OwnedSemaphorePermit,
}

/// What the page has.
#[derive(Default)]
struct Sent {
    cluster: Option<u64>,
    timeline: Option<u64>,
    /// The number of the last line of the log; none before the first event.
    line: Option<u64>,
}

impl Feed {
    pub(crate) fn new(
        published: watch::Receiver<Published>,
        stopping: watch::Receiver<bool>,
        slot: OwnedSemaphorePermit,
    ) -> Self {
        let (sent, pending) = (Sent::default(), VecDeque::new());
        let mut feed = Self { published, stopping, sent, pending, ended: false, _slot: slot };
        feed.collect();
        feed
    }

    pub(crate) fn into_response(self) -> Response {
        let events = stream::unfold(self, |mut feed| async {
            feed.next().await.map(|event| (Ok::<_, Infallible>(event), feed))
        });
        Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            if self.ended {
                return None;
            }
            tokio::select! {
                changed = self.published.changed() => changed.ok()?,
                _ = self.stopping.wait_for(|&stopping| stopping) => {
                    self.ended = true;
                    self.pending.push_back(Event::default().event("bye").data("{}"));
                    continue;
                }
            }
            self.collect();
        }
    }

    /// Collects what the page does not have yet.
    fn collect(&mut self) {
        let published = self.published.borrow_and_update().clone();
        if self.sent.cluster.replace(published.cluster_version) != Some(published.cluster_version) {
            self.pending.push_back(event("cluster").data(published.cluster()));
        }
        let last = self.sent.line;
        let new: Vec<_> =
            published.lines.iter().filter(|line| last.is_none_or(|last| line.n > last)).collect();
        if last.is_none() || !new.is_empty() {
            self.sent.line = Some(new.last().map_or(0, |line| line.n));
            // Texts and numbers can always be written as JSON.
            let lines = event("log").json_data(json!({ "lines": new }));
            self.pending.extend(lines);
        }
        let version = published.timeline_version;
        if self.sent.timeline.replace(version) != Some(version) {
            self.pending.push_back(event("timeline").data(&*published.timeline));
        }
    }
}

fn event(name: &str) -> Event {
    Event::default().event(name)
}
