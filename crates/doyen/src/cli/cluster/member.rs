//! A member of a local cluster: its process, and its last status.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use doyen::api;
use doyen::node::status::{Entry, Status};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::cli::client::{Client, CommandResult};

const POLL: Duration = Duration::from_millis(150);

/// A paused member does not answer.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) struct Member {
    pub(super) id: u32,
    pub(super) name: String,
    folder: PathBuf,
    client: Arc<Client>,
    /// The child ends when its stdin is closed.
    process: Option<(Child, Option<ChildStdin>)>,
    /// What the user did to it; empty while it runs normally.
    pub(super) fate: &'static str,
    answers: Arc<Mutex<Answers>>,
}

/// The last answers of the member.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    pub(super) status: Option<Status>,
    pub(super) history: Vec<Entry>,
}

impl Member {
    /// A member whose files are in `folder`. It does not run yet.
    pub(super) fn new(folder: &Path, id: u32, url: String) -> Result<Self> {
        let client = Arc::new(Client::new(url, ANSWER_TIMEOUT));
        let answers = Arc::new(Mutex::new(Answers::default()));
        poll(Arc::clone(&client), Arc::clone(&answers))?;
        let (folder, name) = (folder.to_owned(), format!("n{id}"));
        Ok(Self { id, name, folder, client, process: None, fate: "not started", answers })
    }

    pub(super) fn url(&self) -> &str {
        self.client.url()
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(|(child, _)| child.id())
    }

    /// Empty if it does not run.
    pub(super) fn answers(&self) -> Answers {
        match self.process {
            Some(_) => self.answers.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            None => Answers::default(),
        }
    }

    pub(super) fn leads(&self) -> bool {
        self.answers().status.is_some_and(|status| status.role.leads())
    }

    pub(super) fn start(&mut self) -> Result<String> {
        if self.process.is_some() {
            return Ok(format!("{} is running already", self.name));
        }
        let program = std::env::current_exe().context("cannot find the program itself")?;
        let log = File::options().create(true).append(true).open(self.folder.join("log"));
        let mut child = Command::new(program)
            .args(["node", "--while-stdin-is-open", "--config"])
            .arg(self.folder.join("doyen.toml"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log.context("cannot open its log")?)
            .spawn()
            .with_context(|| format!("cannot start {}", self.name))?;
        let stdin = child.stdin.take();
        self.process = Some((child, stdin));
        self.fate = "";
        Ok(format!("{} started", self.name))
    }

    /// Notices if its process has ended.
    pub(super) fn reap(&mut self) {
        let Some((child, _)) = &mut self.process else { return };
        if matches!(child.try_wait(), Ok(None)) {
            return;
        }
        self.process = None;
        *self.answers.lock().unwrap_or_else(PoisonError::into_inner) = Answers::default();
        if self.fate.is_empty() {
            self.fate = "ended unexpectedly: see its log";
        }
    }

    pub(super) fn signal(&mut self, signal: Signal, fate: &'static str) -> Result<String> {
        let name = &self.name;
        let pid = self.pid().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        let pid = pid.ok_or_else(|| anyhow!("{name} is not running"))?;
        kill_process(pid, signal).with_context(|| name.clone())?;
        self.fate = if signal == Signal::CONT { "" } else { fate };
        Ok(format!("{name} {fate}"))
    }

    pub(super) fn command(&self, command: &str, body: &Value) -> Result<String> {
        let name = &self.name;
        let secret = fs::read_to_string(self.folder.join("state").join(api::SECRET_FILE))?;
        match self.client.command(&format!("/v1/{command}"), body, secret.trim(), None)? {
            CommandResult::Accepted(_) => Ok(format!("{name}: {command} accepted")),
            CommandResult::Rejected(why) => bail!("{name}: {command} rejected: {}", why.detail),
        }
    }

    /// Asks it to stop, paused or not.
    pub(super) fn stop(&mut self) {
        // A member that is not running has stopped already.
        let _ = self.signal(Signal::TERM, "stopping");
        let _ = self.signal(Signal::CONT, "");
    }

    /// Waits for its end, and kills it after `limit`.
    pub(super) fn wait(&mut self, limit: Duration) {
        let begun = Instant::now();
        while self.process.is_some() {
            self.reap();
            if begun.elapsed() > limit {
                let _ = self.signal(Signal::KILL, "killed");
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Fetches the answers again and again until the member is dropped.
fn poll(client: Arc<Client>, answers: Arc<Mutex<Answers>>) -> Result<()> {
    thread::Builder::new().name("doyen-poll".to_owned()).spawn(move || {
        while Arc::strong_count(&answers) > 1 {
            let history = client.get("/v1/history").unwrap_or_default();
            let latest = Answers { status: client.status().ok(), history };
            *answers.lock().unwrap_or_else(PoisonError::into_inner) = latest;
            thread::sleep(POLL);
        }
    })?;
    Ok(())
}
