//! Changes as they happen: server-sent events.
//!
//! | event | data | when |
//! |---|---|---|
//! | `snapshot` | a status | first; and whenever something has changed other than times |
//! | `change` | an entry of the history | at every change of leadership |
//!
//! Every event has an id: the member, its incarnation, and the number of the latest change. A client that reconnects with
//! it (`Last-Event-ID`, which browsers send by themselves) gets the changes that it missed, then a snapshot. If these are no
//! longer kept, or the id belongs to another member or incarnation, it gets a snapshot first, like a new client.
//!
//! A client that reads slowly misses no change that the node has kept, and gets only the latest snapshot.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Serialize;
use tokio::sync::watch;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::problem::{Kind, Problem};
use super::server::ConnInfo;
use super::watchers::Watcher;
use super::{App, server};
use crate::clock::Moment;
use crate::node::status::{Entry, MemberStatus, Status};

/// How often a comment is sent when there is nothing else to send, so that a broken connection is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// After what time a browser should reconnect.
const RETRY: Duration = Duration::from_secs(1);

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(watch))
}

/// Changes as they happen.
#[utoipa::path(get, path = "/v1/watch", tag = "status",
    params(("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was received.")),
    responses(
        (status = 200, content_type = "text/event-stream", body = String,
            description = "Events `snapshot` (a status) and `change` (an entry of the history)."),
        (status = 503, description = "Too many watchers.", body = Problem),
    ))]
async fn watch(
    State(app): State<App>,
    Extension(connection): Extension<ConnInfo>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let watchers = match connection {
        ConnInfo::AdminSocket { .. } => &app.local_watchers,
        ConnInfo::Tcp { .. } | ConnInfo::Forwarded { .. } => &app.watchers,
    };
    let watcher = watchers
        .admit(connection.client())
        .ok_or_else(|| Kind::TooManyWatchers.with_detail("too many watchers; retry later"))?;
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let feed = Feed::new(&app, last.unwrap_or_default(), watcher);
    let events = stream::unfold(feed, |mut feed| async {
        feed.next().await.map(|event| (Ok::<_, Infallible>(event), feed))
    });
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Ok(Sse::new(events).keep_alive(keep_alive).into_response())
}

/// The events of one watcher.
struct Feed {
    status: watch::Receiver<Arc<Status>>,
    history: watch::Receiver<Arc<Vec<Entry>>>,
    stopping: watch::Receiver<bool>,
    /// The number of the latest change that it has; none for a new watcher.
    last_change: Option<u64>,
    /// The latest snapshot that it has, without times.
    last_snapshot: Option<Status>,
    /// The events that it gets next.
    pending: VecDeque<Event>,
    _watcher: Watcher,
}

impl Feed {
    fn new(app: &App, last: &str, watcher: Watcher) -> Self {
        let mut feed = Self {
            status: app.handle.watch(),
            history: app.handle.watch_history(),
            stopping: app.stopping.clone(),
            last_change: None,
            last_snapshot: None,
            pending: VecDeque::from([Event::default().retry(RETRY)]),
            _watcher: watcher,
        };
        feed.last_change = feed.resume(last);
        feed.collect();
        feed
    }

    /// The number of the latest change that a watcher with this id has, if the id belongs to this incarnation.
    fn resume(&self, id: &str) -> Option<u64> {
        let (source, number) = id.rsplit_once('.')?;
        let number = number.parse().ok()?;
        (source == source_of(&self.status.borrow())).then_some(number)
    }

    /// The next event; none when the node or the server stops.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            tokio::select! {
                changed = self.status.changed() => changed.ok()?,
                changed = self.history.changed() => changed.ok()?,
                () = server::stopped(&mut self.stopping) => return None,
            }
            self.collect();
        }
    }

    /// Collects new events: changes first, then the resulting snapshot.
    fn collect(&mut self) {
        // The history is read first: a change may then be in the snapshot before it is sent, but none is left out.
        let history = self.history.borrow_and_update().clone();
        let status = self.status.borrow_and_update().clone();
        let (source, latest) = (source_of(&status), latest(&history));
        match self.last_change.filter(|&last| covers(&history, last)) {
            Some(last) => {
                for entry in history.iter().filter(|entry| entry.number > last) {
                    self.pending.push_back(event("change", &source, entry.number, entry));
                }
            }
            // A new watcher, or one that missed changes that are no longer kept.
            None => self.last_snapshot = None,
        }
        self.last_change = Some(latest);
        let snapshot = without_times(&status);
        if self.last_snapshot.as_ref() != Some(&snapshot) {
            self.last_snapshot = Some(snapshot);
            self.pending.push_back(event("snapshot", &source, latest, &*status));
        }
    }
}

/// Whether the history contains every change after `number`.
fn covers(history: &[Entry], number: u64) -> bool {
    let oldest = history.first().map_or(1, |entry| entry.number);
    (oldest.saturating_sub(1)..=latest(history)).contains(&number)
}

fn latest(history: &[Entry]) -> u64 {
    history.last().map_or(0, |entry| entry.number)
}

/// The member and its incarnation: the numbers of changes start again with every incarnation.
fn source_of(status: &Status) -> String {
    format!("{}.{}", status.id, status.incarnation.0)
}

/// The parts of a status that do not change all the time.
fn without_times(status: &Status) -> Status {
    let mut status = status.clone();
    // Every field is named, so that a new one must be considered.
    #[rustfmt::skip]
    let Status {
        cluster: _, algorithm: _, version: _, configuration: _, keys: _, id: _, name: _, incarnation: _, role: _, leader: _,
        term: _, job: _, history_problem: _, why: _, named_successor: _, moved_by: _, rejoining: _, drained: _, never_leads: _, preemption: _, stranger: _, next: _,
        succession: _, learns_within_ms: _,
        last_leader, lease, work_ms, retiring_ms, drained_remaining_ms, preference, pause, members, taken_at,
    } = &mut status;
    *taken_at = Moment::default();
    if let Some(lease) = lease {
        (lease.until, lease.remaining_ms) = (0, 0);
    }
    if let Some(preferred) = preference {
        preferred.remaining_ms = 0;
    }
    if let Some(last) = last_leader {
        last.last_heard_ms = 0;
    }
    if let Some(pause) = pause {
        pause.remaining_ms = 0;
    }
    for time in [work_ms, retiring_ms, drained_remaining_ms] {
        *time = time.map(|_| 0);
    }
    for member in members {
        #[rustfmt::skip]
        let MemberStatus {
            id: _, name: _, address: _, observed_address: _, role: _, priority: _, witness: _, reachable: _,
            config_mismatch: _, rejected: _, unreachable: _, eligible: _, recent_failures: _, unreachable_ms, arrives,
            last_seen_ms, rtt_us, penalty_remaining_ms, failed_ms_ago, notices,
        } = member;
        // They say what other fields say, with times.
        notices.clear();
        (*last_seen_ms, *rtt_us, *arrives) = (None, None, false);
        for time in [unreachable_ms, penalty_remaining_ms, failed_ms_ago] {
            *time = time.map(|_| 0);
        }
    }
    status
}

fn event(name: &str, source: &str, number: u64, data: &impl Serialize) -> Event {
    let event = Event::default().event(name).id(format!("{source}.{number}"));
    // Numbers, texts and lists can always be written as JSON.
    event.json_data(data).unwrap_or_default()
}
