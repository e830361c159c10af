//! A web server on every member: all of them serve reads, and the leader alone accepts writes.
//!
//! ```text
//! doyen init --cluster orders --member n1=127.0.0.1:7401 --member n2=127.0.0.1:7402 --member n3=127.0.0.1:7403
//! cargo run --example web -- orders/n1/doyen.toml 127.0.0.1:8001 /srv/orders/value     and the same for n2 and n3
//! curl -d hello http://127.0.0.1:8001/
//! ```
//!
//! A write needs a permit, so a transfer of leadership waits for it. What the members share, here a file, is behind a fence:
//! a writer that was stopped for longer than its permit is refused once a newer leader has written.

use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use doyen::clock::Moment;
use doyen::config::{Configuration, Env};
use doyen::fence::Fence;
use doyen::leadership::Permit;
use doyen::node::{Builder, Handle};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::spawn_blocking;

const WRITE_WITHIN: Duration = Duration::from_millis(200);

type Answer = (StatusCode, String);

struct Site {
    handle: Handle,
    file: PathBuf,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [config, address, file] = &arguments[..] else {
        return Err("usage: web DOYEN.TOML ADDRESS FILE".into());
    };
    let configuration = Configuration::load(Some(Path::new(config)), &[], &Env::of_process())?;
    let grace = configuration.settings.grace;
    let listener = TcpListener::bind(address).await?;
    let running = Builder::new(configuration).start()?;
    let handle = running.handle().clone();
    let site = Arc::new(Site { handle: handle.clone(), file: file.into() });
    let router = Router::new().route("/", get(read).post(write)).with_state(site);
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        served = axum::serve(listener, router) => served?,
        _ = terminate.recv() => handle.stop(grace),
    }
    Ok(running.ended().await?)
}

async fn read(State(site): State<Arc<Site>>) -> Answer {
    match fs::read_to_string(&site.file) {
        Ok(value) => (StatusCode::OK, value),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            (StatusCode::NOT_FOUND, "nothing has been written yet\n".to_owned())
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

async fn write(State(site): State<Arc<Site>>, value: String) -> Answer {
    let Some(permit) = site.handle.leadership().guard(WRITE_WITHIN) else {
        let status = site.handle.status();
        let leader = status.leader.map_or_else(|| "not known".to_owned(), |id| status.name_of(id));
        let text = format!("{} does not lead; the leader is {leader}\n", status.name);
        return (StatusCode::SERVICE_UNAVAILABLE, text);
    };
    let stored = spawn_blocking(move || store(&site.file, &value, permit)).await;
    match stored.map_err(Into::into).flatten() {
        Ok(()) => (StatusCode::OK, format!("written in term {}\n", permit.term)),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("not written: {error}\n")),
    }
}

/// Writes the value, unless a newer leader has written, or this one has waited for too long.
fn store(file: &Path, value: &str, permit: Permit) -> Result<(), Box<dyn Error + Send + Sync>> {
    let _entered = Fence::at(file.with_extension("fence")).enter(permit.token)?;
    if Moment::now() >= permit.deadline {
        return Err("the permit has ended".into());
    }
    let draft = file.with_extension("draft");
    fs::write(&draft, value)?;
    Ok(fs::rename(draft, file)?)
}
