//! Threads that watch the nodes: what each publishes over HTTP, and the lease files.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use doyen::clock::Moment;
use doyen::node::status::{Entry, Status};

use super::shared::Shared;
use crate::cli::client::{Client, Stream};
use crate::cli::server_sent::read_event;

/// How long to wait before a node is asked again that did not answer.
const AGAIN: Duration = Duration::from_millis(20);

/// How often round-trip times are read.
const REFRESH: Duration = Duration::from_secs(1);

/// Follows what the nodes publish, each in a thread of its own. These end with the process.
pub(crate) fn follow(shared: &Arc<Shared>, clients: &[Arc<Client>]) -> io::Result<()> {
    for (place, client) in clients.iter().enumerate() {
        let (shared, client) = (Arc::clone(shared), Arc::clone(client));
        let body = move || loop {
            // A node that does not run is not asked: see `local::PORTS`.
            let (runs, start) = shared.with(|monitor| {
                let member = &monitor.members[place];
                (member.state.has_process(), member.start)
            });
            if runs && let Ok(stream) = client.watch(None) {
                // However a stream breaks, it is opened again if the node runs.
                let _ = read(&shared, place, start, &client, stream);
            }
            thread::sleep(AGAIN);
        };
        thread::Builder::new().name(format!("doyen-follow-{place}")).spawn(body)?;
    }
    let (shared, clients) = (Arc::clone(shared), clients.to_vec());
    thread::Builder::new()
        .name("doyen-refresh".to_owned())
        .spawn(move || refresh(&shared, &clients))?;
    Ok(())
}

/// Reads a stream to its end, or until another process has been started than the one with this start number: the stream may be
/// that one's.
fn read(
    shared: &Shared,
    place: usize,
    start: u64,
    client: &Client,
    mut stream: Stream,
) -> Result<()> {
    let mut incarnation = None;
    while let Some(event) = read_event(&mut stream.events)? {
        match event.name.as_str() {
            "snapshot" => {
                let status: Status = serde_json::from_str(&event.data)?;
                let own = status.incarnation.0;
                // The stream tells what changes from now on, the history what was before.
                let earlier: Vec<Entry> = match incarnation == Some(own) {
                    true => Vec::new(),
                    false => client.get("/v1/history").unwrap_or_default(),
                };
                incarnation = Some(own);
                let at = Moment::now();
                let status = Status { taken_at: at, ..status };
                if !shared.with(|it| it.snapshot(place, start, at, status, &earlier)) {
                    return Ok(());
                }
            }
            "change" => {
                let entry: Entry = serde_json::from_str(&event.data)?;
                let own = incarnation.unwrap_or_default();
                shared.with(|monitor| monitor.report(place, start, own, &[entry]));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Reads what changes all the time and is no event: round-trip times, and how long a penalty still lasts.
fn refresh(shared: &Shared, clients: &[Arc<Client>]) {
    loop {
        thread::sleep(REFRESH);
        for (place, client) in clients.iter().enumerate() {
            let asked = shared.with(|monitor| monitor.before_refresh(place));
            if let Some(asked) = asked
                && let Ok(status) = client.status()
            {
                let status = Status { taken_at: Moment::now(), ..status };
                shared.with(|monitor| monitor.refresh(place, asked, status));
            }
        }
    }
}
