//! A lab that runs, and what its stream says.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{LIMIT, free_port, program};

/// The latest of every event of the stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) cluster: Value,
    pub(crate) timeline: Value,
    pub(crate) lines: Vec<Value>,
    pub(crate) said_bye: bool,
}

pub(crate) struct Lab {
    pub(crate) child: Child,
    pub(crate) key: String,
    pub(crate) port: u16,
    pub(crate) folder: PathBuf,
    seen: Arc<Mutex<Seen>>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

impl Lab {
    /// Starts a lab at a free port, and follows it.
    pub(crate) fn start(flags: &[&str]) -> Self {
        let port = free_port("127.0.0.1");
        let mut child = Command::new(program())
            .args(["lab", "--port", &port.to_string()])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("doyen can be run");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut line = |begins: &str| {
            let found = lines.by_ref().map_while(Result::ok).find(|line| line.starts_with(begins));
            found.unwrap_or_else(|| panic!("no line begins with {begins}"))
        };
        let folder = line("folder ").split_whitespace().nth(1).expect("a path").into();
        let url = line("open ");
        let (_, key) = url.split_once("/#k=").expect("a key");
        assert!(url.contains(&format!("http://127.0.0.1:{port}/#k=")), "{url}");
        assert_eq!(key.len(), 32, "128 bits");
        let key = key.to_owned();
        let lab = Self { child, key, port, folder, seen: Arc::default() };
        lab.follow();
        lab
    }

    fn follow(&self) {
        let (seen, key, port) = (Arc::clone(&self.seen), self.key.clone(), self.port);
        std::thread::spawn(move || {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
            let request = format!(
                "GET /lab/stream HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {key}\r\n\r\n"
            );
            stream.write_all(request.as_bytes()).expect("it reads");
            let mut name = String::new();
            // Chunks end between events, so their lengths are lines of their own.
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                if let Some(event) = line.strip_prefix("event: ") {
                    event.clone_into(&mut name);
                } else if let Some(data) = line.strip_prefix("data: ") {
                    let data: Value = serde_json::from_str(data).expect("JSON");
                    let mut seen = seen.lock().expect("no panic");
                    match name.as_str() {
                        "cluster" => seen.cluster = data,
                        "timeline" => seen.timeline = data,
                        "log" => {
                            seen.lines.extend(data["lines"].as_array().expect("lines").clone());
                        }
                        "bye" => seen.said_bye = true,
                        other => panic!("an event `{other}`"),
                    }
                }
            }
        });
    }

    pub(crate) fn seen(&self) -> Seen {
        self.seen.lock().expect("no panic").clone()
    }

    /// Waits for something in the stream.
    pub(crate) fn wait<T>(&self, what: &str, look: impl Fn(&Seen) -> Option<T>) -> T {
        let begun = Instant::now();
        while begun.elapsed() < LIMIT {
            if let Some(found) = look(&self.seen()) {
                return found;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("timed out waiting for {what}:\n{:#?}", self.seen());
    }

    /// Waits until one member leads and all that are up follow it; its name.
    pub(crate) fn leader(&self) -> String {
        self.wait("a leader that all follow", |seen| {
            let members = seen.cluster["members"].as_array()?;
            let leader =
                members.iter().find(|it| it["role"] == "leader" && !it["lease"].is_null())?;
            let up = members.iter().filter(|it| it["state"] == "up");
            let follow = up.clone().all(|it| it["leader"] == leader["name"]);
            (follow && up.count() > 0).then(|| text(&leader["name"]))
        })
    }

    pub(crate) fn member(&self, name: &str) -> Value {
        member(&self.seen(), name)
    }

    /// Waits until something is true of a member.
    pub(crate) fn wait_for(&self, name: &str, what: &str, is_true: impl Fn(&Value) -> bool) {
        self.wait(&format!("{name} {what}"), |seen| is_true(&member(seen, name)).then_some(()));
    }

    pub(crate) fn pid(&self, name: &str) -> i32 {
        self.member(name)["pid"].as_i64().expect("it runs") as i32
    }

    /// Sends a request with the key, and these headers besides.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Response {
        let headers = format!(
            "host: 127.0.0.1:{}\r\nauthorization: Bearer {}\r\n{headers}",
            self.port, self.key
        );
        self.raw(method, path, &headers, body)
    }

    /// Sends a request with exactly these headers.
    pub(crate) fn raw(&self, method: &str, path: &str, headers: &str, body: &str) -> Response {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.set_read_timeout(Some(LIMIT)).expect("a limit");
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        // A server that refuses the body may close before it has read all of it.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status in {head}"));
        Response { status, head: head.to_owned(), body: body.to_owned() }
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Response {
        self.send("POST", path, "content-type: application/json\r\n", &body.to_string())
    }

    /// Makes a fault, which is accepted.
    pub(crate) fn fault(&self, fault: &Value) -> String {
        self.accepted("/lab/fault", fault)
    }

    /// Gives a command, which is accepted.
    pub(crate) fn admin(&self, command: &Value) -> String {
        self.accepted("/lab/admin", command)
    }

    fn accepted(&self, path: &str, body: &Value) -> String {
        let response = self.post(path, body);
        assert_eq!(response.status, 202, "{body}: {response:?}");
        text(&response.json()["accepted"])
    }

    /// All pids of nodes.
    pub(crate) fn pids(&self) -> Vec<i32> {
        let members = self.seen().cluster["members"].as_array().cloned().unwrap_or_default();
        members.iter().filter_map(|it| it["pid"].as_i64()).map(|pid| pid as i32).collect()
    }

    /// Ends it by a signal and returns its exit code.
    pub(crate) fn end(&mut self, signal: Signal) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
        self.child.wait().expect("it can be waited for").code()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // One that has ended already cannot be killed, and need not be. Its nodes end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub(crate) fn member(seen: &Seen, name: &str) -> Value {
    let members = seen.cluster["members"].as_array().cloned().unwrap_or_default();
    members.into_iter().find(|it| it["name"] == name).unwrap_or(json!({}))
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

/// Whether a process runs: it exists and is more than an entry in the table.
pub(crate) fn runs(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim().starts_with('Z'))
}

/// Waits until none of these processes runs.
pub(crate) fn wait_until_gone(pids: &[i32]) {
    let begun = Instant::now();
    while pids.iter().any(|&pid| runs(pid)) {
        assert!(begun.elapsed() < LIMIT, "some of {pids:?} still run");
        std::thread::sleep(Duration::from_millis(20));
    }
}
