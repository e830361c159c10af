//! One member of a trial cluster: a process, and what it last said of itself.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use doyen::api::Problem;
use doyen::node::status::{Entry, Status};
use rustix::process::{Pid, Signal, kill_process};
use ureq::Agent;

/// How often a member is asked.
const ASK: Duration = Duration::from_millis(150);

/// How long it may take to answer: it may be paused.
const PATIENCE: Duration = Duration::from_millis(500);

/// A member.
#[derive(Debug)]
pub(super) struct Member {
    id: u32,
    name: String,
    folder: PathBuf,
    pub(super) url: String,
    process: Option<Process>,
    /// What was done to it, if it does not run: for the table.
    pub(super) fate: &'static str,
    heard: Arc<Mutex<Heard>>,
    http: Agent,
}

#[derive(Debug)]
struct Process {
    child: Child,
    /// The child ends when this does.
    _stdin: Option<ChildStdin>,
}

/// What it last said.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    pub(super) status: Option<Status>,
    pub(super) history: Vec<Entry>,
}

impl Member {
    /// A member whose files lie in `folder`; it does not run yet.
    pub(super) fn new(folder: &Path, id: u32, url: String) -> Result<Self> {
        let heard = Arc::new(Mutex::new(Heard::default()));
        let http = Agent::config_builder().timeout_global(Some(PATIENCE));
        let http: Agent = http.http_status_as_error(false).build().into();
        ask_for_ever(url.clone(), http.clone(), Arc::clone(&heard))?;
        let folder = folder.to_owned();
        let name = format!("n{id}");
        Ok(Self { id, name, folder, url, process: None, fate: "not started", heard, http })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn id(&self) -> u32 {
        self.id
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(|process| process.child.id())
    }

    /// What it last said; nothing, if it does not run.
    pub(super) fn heard(&self) -> Heard {
        match self.process {
            Some(_) => self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            None => Heard::default(),
        }
    }

    /// Whether it holds a lease, by its own word.
    pub(super) fn leads(&self) -> bool {
        self.heard().status.is_some_and(|status| status.role.leads())
    }

    /// Starts its process.
    pub(super) fn start(&mut self) -> Result<String> {
        if self.process.is_some() {
            return Ok(format!("{} runs already", self.name));
        }
        let program = std::env::current_exe().context("cannot find the program itself")?;
        let log = self.folder.join("log");
        let log = File::options().create(true).append(true).open(&log);
        let mut child = Command::new(program)
            .arg("node")
            .arg("--config")
            .arg(self.folder.join("doyen.toml"))
            .arg("--while-stdin-is-open")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log.context("cannot open its log")?)
            .spawn()
            .with_context(|| format!("cannot start {}", self.name))?;
        let stdin = child.stdin.take();
        self.process = Some(Process { child, _stdin: stdin });
        self.fate = "";
        Ok(format!("{} started", self.name))
    }

    /// Notices if its process has ended.
    pub(super) fn look(&mut self) {
        let Some(process) = &mut self.process else { return };
        if matches!(process.child.try_wait(), Ok(None)) {
            return;
        }
        self.process = None;
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Heard::default();
        if self.fate.is_empty() {
            self.fate = "ended by itself: see its log";
        }
    }

    /// Sends it a signal.
    pub(super) fn signal(&mut self, signal: Signal, fate: &'static str) -> Result<String, String> {
        let name = &self.name;
        let pid = self.pid().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        let pid = pid.ok_or_else(|| format!("{name} does not run"))?;
        kill_process(pid, signal).map_err(|error| format!("{name}: {error}"))?;
        self.fate = if signal == Signal::CONT { "" } else { fate };
        Ok(format!("{name} {fate}"))
    }

    /// Gives it an order.
    pub(super) fn post(&self, order: &str, body: &str) -> Result<String, String> {
        let token = self.folder.join("state").join("admin-secret");
        let token = std::fs::read_to_string(&token).map_err(|error| error.to_string())?;
        let answer = self
            .http
            .post(format!("{}/v1/{order}", self.url))
            .header("Authorization", format!("Bearer {}", token.trim()))
            .content_type("application/json")
            .send(body);
        let name = &self.name;
        let mut answer = answer.map_err(|_| format!("{name} does not answer"))?;
        if answer.status().is_success() {
            return Ok(format!("{name}: {order} accepted"));
        }
        let problem = answer.body_mut().read_to_string().ok();
        let problem = problem.and_then(|text| serde_json::from_str::<Problem>(&text).ok());
        let why = problem.map_or_else(|| answer.status().to_string(), |problem| problem.detail);
        Err(format!("{name}: {order} refused: {why}"))
    }

    /// Asks it to stop.
    pub(super) fn stop(&mut self) {
        // One that does not run has stopped. One that is paused cannot hear before it is resumed.
        let _ = self.signal(Signal::TERM, "told to stop");
        let _ = self.signal(Signal::CONT, "");
    }

    /// Waits for its end, and brings it about if it takes too long.
    pub(super) fn wait(&mut self, patience: Duration) {
        let begun = Instant::now();
        while self.process.is_some() {
            self.look();
            if begun.elapsed() > patience {
                let _ = self.signal(Signal::KILL, "killed");
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Keeps asking what there is to know, for as long as anybody wants to.
fn ask_for_ever(url: String, http: Agent, heard: Arc<Mutex<Heard>>) -> Result<()> {
    let get = move |path: &str| {
        http.get(format!("{url}{path}")).call().ok()?.body_mut().read_to_string().ok()
    };
    thread::Builder::new().name("doyen-ask".to_owned()).spawn(move || {
        while Arc::strong_count(&heard) > 1 {
            let status = get("/v1/status").and_then(|text| serde_json::from_str(&text).ok());
            let history = get("/v1/history").and_then(|text| serde_json::from_str(&text).ok());
            let said = Heard { status, history: history.unwrap_or_default() };
            *heard.lock().unwrap_or_else(PoisonError::into_inner) = said;
            thread::sleep(ASK);
        }
    })?;
    Ok(())
}
