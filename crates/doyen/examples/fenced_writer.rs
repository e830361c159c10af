//! A writer on every member, of which only the leader writes, to a database that refuses old leaders.
//!
//! ```text
//! doyen init --cluster orders --member n1=127.0.0.1:7401 --member n2=127.0.0.1:7402 --member n3=127.0.0.1:7403
//! cargo run --example fenced_writer -- orders/n1/doyen.toml journal.db      and the same for n2 and n3
//! ```
//!
//! The permit prevents that two members write at once as long as every process runs. A writer that is stopped between the
//! permit and the write may write later, and only the database can refuse that: it remembers the highest fencing token, in the
//! transaction of the write, and aborts what comes with a lower one.
//!
//! It runs the `sqlite3` program, so that the example builds in a second and needs no library of C code.

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use doyen::config::{Configuration, Env};
use doyen::leadership::{FencingToken, Leadership};
use doyen::node::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

const PAUSE: Duration = Duration::from_millis(20);
const WRITE_WITHIN: Duration = Duration::from_millis(100);

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS journal (token INTEGER NOT NULL, author TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS fence (id INTEGER PRIMARY KEY CHECK (id = 1), token INTEGER NOT NULL);
    INSERT OR IGNORE INTO fence VALUES (1, 0);
    CREATE TRIGGER IF NOT EXISTS fenced BEFORE INSERT ON journal BEGIN
        SELECT RAISE(ABORT, 'the fencing token is old') WHERE NEW.token < (SELECT token FROM fence);
        UPDATE fence SET token = NEW.token;
    END;";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [config, database] = &arguments[..] else {
        return Err("usage: fenced_writer DOYEN.TOML DATABASE".into());
    };
    let configuration = Configuration::load(Some(Path::new(config)), &[], &Env::of_process())?;
    let (name, grace) = (configuration.settings.own().name.clone(), configuration.settings.grace);
    execute(database, SCHEMA)?;
    let running = Builder::new(configuration).start()?;
    let handle = running.handle().clone();
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        () = write_whenever_leading(handle.leadership(), database, &name) => {}
        _ = terminate.recv() => handle.stop(grace),
    }
    Ok(running.ended().await?)
}

/// Returns when the node has ended.
async fn write_whenever_leading(leadership: &Leadership, database: &str, author: &str) {
    while leadership.wait().await.is_some() {
        if let Some(permit) = leadership.guard(WRITE_WITHIN)
            && let Err(error) = write(database, permit.token, author)
        {
            eprintln!("{author}: not written: {error}");
        }
        sleep(PAUSE).await;
    }
}

/// The name of a member consists of letters, digits, dots, dashes and underscores.
fn write(database: &str, token: FencingToken, author: &str) -> Result<(), Box<dyn Error>> {
    execute(database, &format!("INSERT INTO journal VALUES ({token}, '{author}');"))
}

fn execute(database: &str, statements: &str) -> Result<(), Box<dyn Error>> {
    let output = Command::new("sqlite3")
        .args(["-bail", "-cmd", ".timeout 1000", database, statements])
        .output()
        .map_err(|error| format!("sqlite3: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().into()),
    }
}
