//! Changes as they happen: server-sent events.
//!
//! | event | data | when |
//! |---|---|---|
//! | `snapshot` | a status | first; and whenever something else has changed than time and round trips |
//! | `change` | an entry of the history | at every change of leadership |
//!
//! Every event has an id: which member, which of its lives, and the number of the latest change. Whoever comes back with
//! it (`Last-Event-ID`, browsers do so by themselves) is told the changes that it missed, then a snapshot. If they are
//! forgotten already, or the id is of another member or life, it is told as much as a newcomer: a snapshot comes first.
//!
//! Whoever reads slowly misses no change that the node remembers, and of snapshots the latest only.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, watch};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::problem::{Kind, Problem};
use super::{App, door};
use crate::node::status::{Entry, Status};

/// How often a word is said when there is nothing to say, so that both ends know of each other.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// After how long a browser is to come back.
const RETRY: Duration = Duration::from_secs(1);

/// The routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(watch))
}

/// Changes as they happen.
#[utoipa::path(get, path = "/v1/watch", tag = "status",
    params(("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was seen.")),
    responses(
        (status = 200, content_type = "text/event-stream", body = String,
            description = "Events `snapshot` (a status) and `change` (an entry of the history)."),
        (status = 503, description = "Too many watch already.", body = Problem,
            content_type = "application/problem+json"),
    ))]
async fn watch(State(app): State<App>, headers: HeaderMap) -> Result<Response, Problem> {
    let place = app.watchers.clone().try_acquire_owned();
    let place =
        place.map_err(|_| Kind::TooManyWatchers.because("too many watch already; come again"))?;
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let feed = Feed::new(&app, last.unwrap_or_default(), place);
    let events = stream::unfold(feed, |mut feed| async {
        feed.next().await.map(|event| (Ok::<_, Infallible>(event), feed))
    });
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Ok(Sse::new(events).keep_alive(keep_alive).into_response())
}

/// What one watcher is told.
struct Feed {
    status: watch::Receiver<Arc<Status>>,
    history: watch::Receiver<Arc<Vec<Entry>>>,
    ending: watch::Receiver<bool>,
    /// The number of the latest change that it knows of; none if it is to begin anew.
    told: Option<u64>,
    /// What the latest snapshot said.
    shown: Option<Status>,
    /// What it is to be told next.
    due: VecDeque<Event>,
    _place: OwnedSemaphorePermit,
}

impl Feed {
    fn new(app: &App, last: &str, place: OwnedSemaphorePermit) -> Self {
        let mut feed = Self {
            status: app.handle.watch(),
            history: app.handle.watch_history(),
            ending: app.ending.clone(),
            told: None,
            shown: None,
            due: VecDeque::from([Event::default().retry(RETRY)]),
            _place: place,
        };
        feed.told = feed.resume(last);
        feed.gather();
        feed
    }

    /// The number of the latest change that a watcher with this id knows of, if the id is of this life.
    fn resume(&self, id: &str) -> Option<u64> {
        let (life, number) = id.rsplit_once('.')?;
        let number = number.parse().ok()?;
        (life == life_of(&self.status.borrow())).then_some(number)
    }

    /// The next event; none when the node or the server ends.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.due.pop_front() {
                return Some(event);
            }
            tokio::select! {
                changed = self.status.changed() => changed.ok()?,
                changed = self.history.changed() => changed.ok()?,
                () = door::end(&mut self.ending) => return None,
            }
            self.gather();
        }
    }

    /// Collects what is new: changes first, then what has come of them.
    fn gather(&mut self) {
        // The history before the status: what the status knows already may then come again, and nothing is left out.
        let history = self.history.borrow_and_update().clone();
        let status = self.status.borrow_and_update().clone();
        let (life, latest) = (life_of(&status), latest(&history));
        match self.told.filter(|&told| covers(&history, told)) {
            Some(told) => {
                for entry in history.iter().filter(|entry| entry.number > told) {
                    self.due.push_back(event("change", &life, entry.number, entry));
                }
            }
            // It is new here, or some are forgotten that it has not been told of.
            None => self.shown = None,
        }
        self.told = Some(latest);
        let timeless = timeless(&status);
        if self.shown.as_ref() != Some(&timeless) {
            self.shown = Some(timeless);
            self.due.push_back(event("snapshot", &life, latest, &*status));
        }
    }
}

/// Whether the history holds everything that came after `number`.
fn covers(history: &[Entry], number: u64) -> bool {
    let oldest = history.first().map_or(1, |entry| entry.number);
    (oldest.saturating_sub(1)..=latest(history)).contains(&number)
}

fn latest(history: &[Entry]) -> u64 {
    history.last().map_or(0, |entry| entry.number)
}

/// Numbers begin anew in every life of a member.
fn life_of(status: &Status) -> String {
    format!("{}.{}", status.id, status.incarnation.0)
}

/// What a status says that does not change all the time.
fn timeless(status: &Status) -> Status {
    let mut status = status.clone();
    if let Some(lease) = &mut status.lease {
        (lease.until, lease.remaining_ms) = (0, 0);
    }
    if let Some(preferred) = &mut status.preference {
        preferred.remaining_ms = 0;
    }
    status.drained_remaining_ms = status.drained_remaining_ms.map(|_| 0);
    for member in &mut status.members {
        (member.silent_ms, member.rtt_us) = (None, None);
    }
    status
}

fn event(name: &str, life: &str, number: u64, data: &impl Serialize) -> Event {
    let event = Event::default().event(name).id(format!("{life}.{number}"));
    // It can always be written as JSON: it is made of numbers, text and lists.
    event.json_data(data).unwrap_or_default()
}
