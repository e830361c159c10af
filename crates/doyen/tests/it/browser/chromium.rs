//! A real Chromium without a window, driven over the `DevTools` protocol.
//!
//! The protocol goes through two named pipes, which need no port and no library: Chromium reads requests from descriptor 3
//! and writes answers and events to descriptor 4, each ended by a zero byte. When the test ends, however it ends, the pipes
//! close and Chromium ends too.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

/// How long anything may take. Far longer than it should: machines that test are busy.
pub(crate) const LIMIT: Duration = Duration::from_secs(180);

const FLAGS: [&str; 14] = [
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--no-default-browser-check",
    "--no-first-run",
    "--hide-scrollbars",
];

/// How often Chromium is started, if it ends at once.
const STARTS: usize = 3;

/// Chromium has ended.
#[derive(Debug)]
struct Ended;

/// A running Chromium.
pub(crate) struct Browser {
    process: Child,
    folder: PathBuf,
    requests: File,
    answers: File,
    /// What was read and is not a whole message yet.
    begun: Vec<u8>,
    next: u64,
    /// Events that nobody has taken yet, with the session they belong to.
    events: Vec<(String, Value)>,
}

impl Browser {
    /// Starts Chromium. None where there is none: `make test` installs it where it may.
    pub(crate) fn start() -> Option<Self> {
        let program =
            ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
                let mut asked = Command::new(name);
                asked.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
                asked.status().is_ok_and(|status| status.success())
            })?;
        // Where several are started at once, one now and then ends before it has answered anything.
        let mut started = (0..STARTS).map(|_| Self::launch(program));
        Some(started.find_map(Self::answering).expect("Chromium ends whenever it is started"))
    }

    fn launch(program: &str) -> Self {
        let folder = scratch();
        let [to, from] = ["requests", "answers"].map(|name| folder.join(name));
        for pipe in [&to, &from] {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            rustix::fs::mknodat(rustix::fs::CWD, pipe, rustix::fs::FileType::Fifo, mode, 0)
                .expect("a named pipe can be made");
        }
        // The shell opens the pipes as the descriptors that Chromium expects, then becomes Chromium.
        let process = Command::new("sh")
            .args(["-c", "exec 3<requests 4>answers; exec \"$@\"", "sh", program])
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", folder.join("profile").display()))
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("Chromium can be started");
        let requests = OpenOptions::new().write(true).open(to).expect("the pipe of requests");
        let answers = File::open(from).expect("the pipe of answers");
        let (begun, events) = (Vec::new(), Vec::new());
        Self { process, folder, requests, answers, begun, next: 0, events }
    }

    /// The browser, unless it has ended.
    fn answering(mut self) -> Option<Self> {
        self.requests.write_all(b"{\"id\":0,\"method\":\"Browser.getVersion\"}\0").ok()?;
        self.next_message(Instant::now() + LIMIT).ok()??;
        Some(self)
    }

    /// Calls a method of the protocol and waits for its result.
    pub(crate) fn call(&mut self, session: Option<&str>, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        let mut request = json!({ "id": id, "method": method });
        request["params"] = params;
        if let Some(session) = session {
            request["sessionId"] = json!(session);
        }
        let mut bytes = serde_json::to_vec(&request).expect("JSON");
        bytes.push(0);
        self.requests.write_all(&bytes).expect("Chromium takes requests");
        let deadline = Instant::now() + LIMIT;
        loop {
            let message = self
                .message(deadline)
                .unwrap_or_else(|| panic!("Chromium has not answered {method} within {LIMIT:?}"));
            if message["id"] != json!(id) {
                self.keep(message);
                continue;
            }
            assert!(message["error"].is_null(), "{method}: {}", message["error"]);
            return message["result"].clone();
        }
    }

    /// Reads the events that have arrived in the meantime.
    pub(crate) fn gather(&mut self) {
        while let Some(message) = self.message(Instant::now()) {
            self.keep(message);
        }
    }

    /// Takes the events of `session` out.
    pub(crate) fn take_events(&mut self, session: &str) -> Vec<Value> {
        let all = std::mem::take(&mut self.events);
        let (wanted, others) = all.into_iter().partition(|(owner, _)| owner == session);
        self.events = others;
        let wanted: Vec<(String, Value)> = wanted;
        wanted.into_iter().map(|(_, event)| event).collect()
    }

    fn keep(&mut self, message: Value) {
        let session = message["sessionId"].as_str().unwrap_or_default().to_owned();
        if message["method"].is_string() {
            self.events.push((session, message));
        }
    }

    /// The next message, if one arrives in time.
    fn message(&mut self, deadline: Instant) -> Option<Value> {
        self.next_message(deadline).expect("Chromium runs")
    }

    fn next_message(&mut self, deadline: Instant) -> Result<Option<Value>, Ended> {
        loop {
            if let Some(end) = self.begun.iter().position(|&byte| byte == 0) {
                let rest = self.begun.split_off(end + 1);
                let message = std::mem::replace(&mut self.begun, rest);
                let message = serde_json::from_slice(&message[..end]);
                return Ok(Some(message.expect("Chromium speaks JSON")));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).expect("a minute fits");
            let mut fds = [PollFd::new(&self.answers, PollFlags::IN)];
            if poll(&mut fds, Some(&left)).is_ok_and(|ready| ready == 0) {
                return Ok(None);
            }
            let mut buffer = [0; 65536];
            let read = self.answers.read(&mut buffer).expect("the pipe of answers can be read");
            if read == 0 {
                return Err(Ended);
            }
            self.begun.extend_from_slice(&buffer[..read]);
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        // Its helpers may still write while they end.
        for _ in 0..50 {
            if fs::remove_dir_all(&self.folder).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn scratch() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder =
        std::env::temp_dir().join(format!("doyen-browser-{}-{number}", std::process::id()));
    fs::create_dir_all(&folder).expect("a scratch folder");
    folder
}
