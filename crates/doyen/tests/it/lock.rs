//! Locks of a real cluster: `doyen lock`, HTTP and the library, through failovers with pauses and partitions.
//!
//! What the lock protects is a register behind a fence: every holder writes its fencing token, and a lower one after a higher
//! one would be seen. A round of the failover test kills the leader, stops it or cuts it off, while one program holds the lock
//! and others wait, one of them stopped until the new leader has settled. `make chaos` does many rounds with the same code.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::rounds::{Tally, rounds};
use crate::support::wires::{self, Wires};
use crate::support::{Plan, Trial, complaint, program, skip};
use doyen::guardian::contain::Containment;
use doyen::lock::{Builder, LockAnswer, LockList};
use rustix::process::{Pid, Signal, kill_process};

/// Writes its token behind the fence until there is a file `$2/end-$3`, and says that it has started. `$1` is doyen.
const HOLDER: &str = r#"
    echo "$3 $DOYEN_TOKEN" >> "$2/starts"
    while ! test -e "$2/end-$3"; do
        "$1" fence "$2/fence" -- sh -c 'echo "$DOYEN_TOKEN" >> "$0/accepted"' "$2" 2>> "$2/refused"
        sleep 0.02
    done
"#;

/// Ignores SIGTERM, and holds a lock on `$1/alive` while it lives; says so if another copy holds that lock.
const STUBBORN: &str = r#"
    trap '' TERM INT
    exec 9> "$1/alive"
    flock -n 9 || echo "$DOYEN_TOKEN" >> "$1/overlaps"
    echo "job $DOYEN_TOKEN" >> "$1/starts"
    while :; do sleep 0.1; done
"#;

#[test]
fn nothing_is_left_in_memory_of_a_lock_that_was_not_granted() {
    let name = format!("left-{}", std::process::id());
    let output = Command::new(program())
        .args(["lock", &name, "--node", "http://127.0.0.1:1", "--wait", "200ms"])
        .args(["--uncontained", "--", "true"])
        .output()
        .unwrap();
    assert!(!output.status.success(), "{output:?}");
    let own = std::env::var("XDG_RUNTIME_DIR").map_or_else(|_| "-".to_owned(), |it| it + "/doyen");
    let shared = format!("/dev/shm/doyen-{}", rustix::process::getuid().as_raw());
    for folder in ["/run/doyen", &own, &shared] {
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        let left: Vec<_> = files.map(|file| file.file_name()).collect();
        let is_of_it = |file: &std::ffi::OsString| file.to_string_lossy().contains(&name);
        assert!(!left.iter().any(is_of_it), "{folder}: {left:?}");
    }
}

#[test]
fn a_log_filter_that_cannot_be_read_is_an_error() {
    for (filter, shown) in [(&b"verbose"[..], "verbose"), (&b"\xff"[..], "\u{fffd}")] {
        let output = Command::new(program())
            .args(["lock", "it", "--node", "http://127.0.0.1:1", "--wait", "200ms"])
            .args(["--uncontained", "--", "true"])
            .env("DOYEN_LOG", OsStr::from_bytes(filter))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = complaint(&output);
        assert!(said.contains(&format!("DOYEN_LOG: `{shown}` is not a level")), "{said}");
    }
}

/// A cluster, and a place from which its locks are used.
struct Site {
    trial: Trial,
    /// A network that can be cut, where that is possible.
    wires: Option<Wires>,
    /// What a command that reaches the nodes begins with.
    prefix: Vec<String>,
    folder: PathBuf,
}

/// A `doyen lock` that runs. It is killed when it goes out of scope.
struct Client {
    child: Child,
    name: String,
    log: PathBuf,
}

impl Site {
    fn start(with_wires: bool) -> Option<Self> {
        if Containment::available().expect("a thread").is_none() {
            skip("locks: no PID namespaces and no cgroup v2 that may be written to");
            return None;
        }
        // The network is cut to see a failover; nothing else is about one.
        let plan = Plan { patient: !with_wires, preemption: "never", ..Plan::default() };
        // The fourth place is that of the clients.
        let wires = with_wires.then(|| Wires::lay(4)).flatten();
        let (mut trial, prefix) = match &wires {
            Some(net) => {
                let place = |member| {
                    let (address, _, prefix) = net.place(member);
                    (address, format!("{}:7401", wires::address(member)), prefix)
                };
                let trial = Trial::found_at(&plan, (1..=3).map(place).collect());
                (trial, net.place(4).2)
            }
            None => (Trial::found(&plan), Vec::new()),
        };
        let folder = trial.folder.join("locks");
        fs::create_dir(&folder).unwrap();
        for member in trial.everybody() {
            let file = trial.folder_of(member).join("doyen.toml");
            let text = fs::read_to_string(&file).unwrap();
            fs::write(&file, format!("http_open = true\n{text}")).unwrap();
            trial.run(member);
        }
        Some(Self { trial, wires, prefix, folder })
    }

    fn nodes(&self) -> String {
        let urls = self.trial.everybody().into_iter().map(|member| self.trial.url(member));
        urls.collect::<Vec<_>>().join(",")
    }

    /// `doyen lock` with these words, where the nodes can be reached.
    fn command(&self, words: &[&str]) -> Command {
        let mut all = self.prefix.clone();
        all.push(program().to_owned());
        let mut command = Command::new(&all[0]);
        command.args(&all[1..]).args(["lock", "--node", &self.nodes()]).args(words);
        command
    }

    /// A program that waits for the lock `a`, and writes while it holds it.
    fn client(&self, name: &str) -> Client {
        let place = self.folder.to_str().unwrap();
        self.client_with(name, "1s", &[HOLDER, "job", program(), place, name])
    }

    /// A program that waits for the lock `a`, runs a script while it holds it, and gives it this long to stop.
    fn client_with(&self, name: &str, grace: &str, script: &[&str]) -> Client {
        let log = self.folder.join(format!("log-{name}"));
        let mut command = self.command(&["a", "--owner", name, "--grace", grace, "--"]);
        command.args(["sh", "-c"]).args(script);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
        Client { child, name: name.to_owned(), log }
    }

    /// What the leader says of its locks, if it is asked.
    fn list(&self) -> Option<LockList> {
        let output = self.command(&["--list", "--json"]).output().ok()?;
        serde_json::from_slice(&output.stdout).ok()
    }

    /// Waits until the lock `a` is held and waited for by these, in this order; says the token of the holder.
    fn wait_for_queue(&self, wanted: &[&str]) -> u64 {
        let mut seen = None;
        let found = self.wait(&format!("the queue {wanted:?}"), || {
            seen = self.list();
            let list = seen.as_ref().filter(|list| !list.settling)?;
            let lock = list.locks.iter().find(|lock| lock.name == "a")?;
            let holder = lock.holder.as_ref()?;
            let waiters = lock.waiters.iter().map(|waiter| waiter.owner.as_str());
            let all: Vec<&str> = [holder.owner.as_str()].into_iter().chain(waiters).collect();
            (all == wanted).then_some(holder.token)
        });
        found.unwrap_or_else(|problem| panic!("{problem}; {seen:?}"))
    }

    /// Two waits one after the other: a new leader settles for 12 s.
    fn wait<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T, String> {
        let begun = std::time::Instant::now();
        while begun.elapsed() < crate::support::LIMIT * 2 {
            if let Some(found) = look() {
                return Ok(found);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let logs = fs::read_dir(&self.folder).unwrap().flatten().map(|entry| entry.path());
        let logs = logs.filter(|path| path.to_string_lossy().contains("log-"));
        let logs: String = logs.map(|path| format!("{path:?}: {}", read(&path))).collect();
        Err(format!("timed out waiting for {what}\n{logs}\n{}", self.trial.log(1)))
    }

    /// Lets a holder end, and waits until its program has.
    fn end(&self, client: &mut Client) -> Option<i32> {
        fs::write(self.folder.join(format!("end-{}", client.name)), "").unwrap();
        self.end_of(client)
    }

    fn end_of(&self, client: &mut Client) -> Option<i32> {
        let ended = self.wait(&format!("the end of {}", client.name), || {
            client.child.try_wait().ok().flatten()
        });
        ended.unwrap_or_else(|problem| panic!("{problem}")).code()
    }

    /// The programs that have held the lock, in order, with their tokens.
    fn starts(&self) -> Vec<(String, u64)> {
        let parse = |line: &str| {
            let (name, token) = line.split_once(' ')?;
            Some((name.to_owned(), token.parse().ok()?))
        };
        read(&self.folder.join("starts")).lines().filter_map(parse).collect()
    }

    fn accepted(&self) -> Vec<u64> {
        let text = read(&self.folder.join("accepted"));
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Waits until something has been written under this token.
    fn wait_for_write(&self, token: u64) {
        let before = self.accepted().len();
        let written = self.wait(&format!("a write with {token}"), || {
            self.accepted()[before..].contains(&token).then_some(())
        });
        written.unwrap_or_else(|problem| panic!("{problem}"));
    }

    fn wait_for_log(&self, client: &Client, text: &str) {
        let what = format!("{} to say `{text}`", client.name);
        let said = self.wait(&what, || read(&client.log).contains(text).then_some(()));
        said.unwrap_or_else(|problem| panic!("{problem}"));
    }

    fn check_register(&self) {
        let (accepted, starts) = (self.accepted(), self.starts());
        assert!(accepted.is_sorted(), "an earlier holder wrote after a later one: {accepted:?}");
        assert!(starts.is_sorted_by_key(|(_, token)| *token), "{starts:?}");
    }
}

impl Client {
    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id() as i32).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Its process, its guardian, init and the shell of the command.
    fn chain(&self) -> Vec<i32> {
        let child_of = |pid: &i32| {
            let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
            let files =
                threads.filter_map(|it| fs::read_to_string(it.path().join("children")).ok());
            files.collect::<String>().split_whitespace().next()?.parse().ok()
        };
        std::iter::successors(Some(self.child.id() as i32), child_of).take(4).collect()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // One that has ended already cannot be killed, and need not be.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn send(pids: &[i32], signal: Signal) {
    for pid in pids.iter().filter_map(|&pid| Pid::from_raw(pid)) {
        // Some may have ended meanwhile.
        let _ = kill_process(pid, signal);
    }
}

#[test]
fn a_lock_outlasts_failovers_and_waiters_keep_their_places() {
    let Some(mut site) = Site::start(true) else { return };
    let mut tally = Tally::new("failover of the leader while a lock is held and waited for");
    for round in 0..rounds() {
        tally.round(|| fail_over(&mut site, round));
    }
    site.check_register();
}

/// One failover: the holder keeps its lock and its token, two waiting programs keep their places, a new one comes after them,
/// and one that is stopped meanwhile is told that it is at the end.
fn fail_over(site: &mut Site, round: usize) {
    let leader = site.trial.agree(&[1, 2, 3]);
    let name = |what: &str| format!("{what}{round}");
    let mut holder = site.client(&name("holder"));
    site.wait_for_queue(&[&holder.name]);
    let mut waiters = Vec::new();
    let mut queue = vec![holder.name.clone()];
    for what in ["first", "second", "late"] {
        waiters.push(site.client(&name(what)));
        queue.push(name(what));
        site.wait_for_queue(&queue.iter().map(String::as_str).collect::<Vec<_>>());
        site.wait_for_log(waiters.last().expect("one"), "ahead (ticket ");
    }
    let token = site.wait_for_queue(&queue.iter().map(String::as_str).collect::<Vec<_>>());
    let late = waiters.pop().expect("three");
    late.signal(Signal::STOP);
    let others: Vec<usize> = (1..=3).filter(|&member| member != leader).collect();
    match (round % 3, &site.wires) {
        (0, Some(wires)) => wires.separate(&[leader], &[others[0], others[1], 4]),
        (0 | 1, _) => site.trial.kill(leader),
        _ => site.trial.signal(leader, Signal::STOP),
    }
    site.trial.agree(&others);
    let newcomer = site.client(&name("new"));
    let queue = [holder.name.as_str(), &waiters[0].name, &waiters[1].name, &newcomer.name];
    assert_eq!(site.wait_for_queue(&queue), token, "the holder keeps its grant");
    late.signal(Signal::CONT);
    let queue = [queue[0], queue[1], queue[2], queue[3], &late.name];
    site.wait_for_queue(&queue);
    site.wait_for_write(token);
    let told = |client: &Client| read(&client.log).contains("queued at the end");
    site.wait_for_log(&late, "queued at the end");
    assert!(!waiters.iter().any(told) && !told(&newcomer), "only the late one is told");
    match (round % 3, &site.wires) {
        (0, Some(wires)) => wires.heal(),
        (0 | 1, _) => site.trial.run(leader),
        _ => site.trial.signal(leader, Signal::CONT),
    }
    let before = site.starts().len();
    assert_eq!(site.end(&mut holder), Some(0));
    let mut order: Vec<Client> = waiters.into_iter().chain([newcomer, late]).collect();
    let wanted: Vec<String> = order.iter().map(|client| client.name.clone()).collect();
    for client in &mut order {
        assert_eq!(site.end(client), Some(0), "{}", read(&client.log));
    }
    let served: Vec<String> = site.starts().drain(before..).map(|(name, _)| name).collect();
    assert_eq!(served, wanted);
    site.trial.agree(&[1, 2, 3]);
}

#[test]
fn a_holder_that_is_paused_is_fenced_off_and_told() {
    let Some(site) = Site::start(false) else { return };
    site.trial.agree(&[1, 2, 3]);
    let mut tally = Tally::new("everything of the holder of a lock is paused");
    for round in 0..rounds() {
        tally.round(|| {
            let mut paused = site.client(&format!("paused{round}"));
            let token = site.wait_for_queue(&[&paused.name]);
            site.wait_for_write(token);
            let mut next = site.client(&format!("next{round}"));
            site.wait_for_queue(&[&paused.name, &next.name]);
            let pids = paused.chain();
            assert_eq!(pids.len(), 4, "doyen, guardian, init and job: {pids:?}");
            send(&pids, Signal::STOP);
            let later = site.wait_for_queue(&[&next.name]);
            assert!(later > token);
            site.wait_for_write(later);
            // The job goes on first, before its guardian can end it: it tries to write, and is refused.
            let refusals = read(&site.folder.join("refused")).len();
            send(&pids[2..], Signal::CONT);
            let refused = site.wait("a refusal", || {
                (read(&site.folder.join("refused")).len() > refusals).then_some(())
            });
            refused.unwrap_or_else(|problem| panic!("{problem}"));
            send(&pids[..2], Signal::CONT);
            assert_eq!(site.end_of(&mut paused), Some(125), "{}", read(&paused.log));
            assert_eq!(site.end(&mut next), Some(0));
        });
    }
    site.check_register();
}

#[test]
fn a_second_signal_leaves_the_lock_to_expire() {
    let Some(site) = Site::start(false) else { return };
    site.trial.agree(&[1, 2, 3]);
    let place = site.folder.to_str().unwrap();
    let client = |name: &str| site.client_with(name, "60s", &[STUBBORN, "job", place]);
    let mut holder = client("holder");
    let token = site.wait_for_queue(&["holder"]);
    let started = |count| {
        let started = site.wait("a start", || (site.starts().len() == count).then_some(()));
        started.unwrap_or_else(|problem| panic!("{problem}"));
    };
    started(1);
    let _next = client("next");
    site.wait_for_queue(&["holder", "next"]);
    holder.signal(Signal::INT);
    site.wait_for_log(&holder, "stopping the command");
    holder.signal(Signal::INT);
    assert_eq!(site.end_of(&mut holder), Some(125), "{}", read(&holder.log));
    // Its guardian may not have ended the command yet.
    let list = site.wait("an answer of the leader", || site.list());
    let list = list.unwrap_or_else(|problem| panic!("{problem}"));
    let held = list.locks[0].holder.as_ref().expect("a holder");
    assert_eq!((held.owner.as_str(), held.token), ("holder", token), "it was released");
    assert!(site.wait_for_queue(&["next"]) > token);
    started(2);
    assert_eq!(read(&site.folder.join("overlaps")), "");
}

#[test]
fn a_lock_runs_a_command_and_gives_its_exit_code() {
    let Some(site) = Site::start(false) else { return };
    let leader = site.trial.agree(&[1, 2, 3]);
    let script = "test -s $DOYEN_LEASE_FILE && echo $DOYEN_TERM $DOYEN_TOKEN; exit 7";
    let output = site.command(&["a", "--", "sh", "-c", script]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let (term, token) = said.trim().split_once(' ').expect("two numbers");
    let [term, token] = [term, token].map(|text| text.parse::<u64>().unwrap());
    assert_eq!((output.status.code(), token >> 32), (Some(7), term), "{said}");

    let mut holder = site.client("holder");
    site.wait_for_queue(&["holder"]);
    let output = site.command(&["a", "--wait", "300ms", "--", "true"]).output().unwrap();
    let told = complaint(&output);
    assert_eq!(
        (output.status.code(), told.contains("--wait: the lock is not free")),
        (Some(4), true),
        "{told}"
    );
    assert_eq!(site.wait_for_queue(&["holder"]) >> 32, term, "the place in the queue is given up");
    let output = site.command(&["b", "--", "/nowhere"]).output().unwrap();
    assert_eq!(output.status.code(), Some(127));
    let output = site.command(&["b/c", "--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", complaint(&output));

    // If the program is killed, its guardian ends the command, and the lock expires.
    let mut next = site.client("next");
    site.wait_for_queue(&["holder", "next"]);
    holder.child.kill().unwrap();
    holder.child.wait().unwrap();
    let later = site.wait_for_queue(&["next"]);
    site.wait_for_write(later);
    assert_eq!(site.end(&mut next), Some(0));
    site.check_register();

    check_http(&site.trial, leader);
    check_library(&site.trial);
}

#[test]
fn a_follower_alone_grants_nothing_and_that_is_said() {
    let Some(site) = Site::start(false) else { return };
    let leader = site.trial.agree(&[1, 2, 3]);
    let follower = if leader == 1 { 2 } else { 1 };
    let config = site.trial.folder_of(follower).join("doyen.toml");
    let url = site.trial.url(follower);
    let lock = |wait| {
        let mut command = Command::new(program());
        command.args(["lock", "a", "--wait", wait, "--config"]).arg(&config).args(["--", "true"]);
        let http = url.trim_start_matches("http://");
        let output = command.env_remove("DOYEN_NODE").env("DOYEN_HTTP", http).output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{}", complaint(&output));
        complaint(&output)
    };
    let why = format!(
        "none of the nodes that were given leads ({url}: n{follower} is not the leader; n{leader} is). Give the HTTP addresses \
         of all members that may lead, as in --node {url},http://HOST:PORT"
    );
    let told = lock("3s");
    assert_eq!(told.matches(&format!("lock a: {why}")).count(), 1, "logged once: {told}");
    assert!(told.contains(&format!("--wait: {why}")), "{told}");
    let told = lock("500ms");
    assert!(!told.contains("lock a: ") && told.contains(&why), "too early for the log: {told}");
}

/// What a client without doyen sees.
fn check_http(trial: &Trial, leader: usize) {
    let claim = |digit: &str| digit.repeat(32);
    let post = |member, path: &str, body: &str| {
        trial.post(member, &format!("/v1/locks/{path}"), body).expect("an answer")
    };
    let follower = if leader == 1 { 2 } else { 1 };
    let body = format!(r#"{{"claim": "{}", "owner": "curl"}}"#, claim("a"));
    let (status, answer) = post(follower, "http", &body);
    assert_eq!(status, 409, "{answer}");
    assert!(answer.contains(&format!("n{leader} is")), "{answer}");
    let (status, answer) = post(leader, "http", &body);
    let LockAnswer::Held { token, lease_ms: 10_000, .. } = serde_json::from_str(&answer).unwrap()
    else {
        panic!("{status} {answer}")
    };
    let other = format!(r#"{{"claim": "{}", "wait": "1s"}}"#, claim("b"));
    let (status, answer) = post(leader, "http", &other);
    assert_eq!(status, 202, "{answer}");
    let answer: LockAnswer = serde_json::from_str(&answer).unwrap();
    assert!(matches!(answer, LockAnswer::Waiting { ahead: 0, requeued: false, .. }), "{answer:?}");
    let keep = |digit: &str| format!(r#"{{"claim": "{}", "token": {token}}}"#, claim(digit));
    assert_eq!(post(leader, "http/keep", &keep("a")).0, 200);
    let (status, answer) = post(leader, "http/keep", &keep("b"));
    assert_eq!(status, 410, "{answer}");
    let list: LockList = serde_json::from_str(&trial.get(leader, "/v1/locks").unwrap()).unwrap();
    assert!(!format!("{list:?}").contains(&claim("a")), "who knows a claim can release it");
    assert_eq!(post(leader, "http/release", &format!(r#"{{"claim": "{}"}}"#, claim("a"))).0, 200);
    let (status, answer) = post(leader, "http", &other);
    assert_eq!(status, 200, "the next in the queue: {answer}");
    for (path, body, wanted) in [
        ("http", r#"{"claim": "x"}"#.to_owned(), 422),
        ("http", "{}".to_owned(), 400),
        (&*"x".repeat(65), body.clone(), 422),
        ("http", format!(r#"{{"claim": "{}", "wait": "1"}}"#, claim("c")), 422),
        ("http", format!(r#"{{"claim": "{}", "owner": "{}"}}"#, claim("c"), "o".repeat(65)), 422),
    ] {
        let (status, answer) = post(leader, path, &body);
        assert_eq!(status, wanted, "{path} {body}: {answer}");
    }
    assert_eq!(post(leader, "http/release", &format!(r#"{{"claim": "{}"}}"#, claim("b"))).0, 200);
    let mut refused = 0;
    for number in 0..300_u32 {
        let body = format!(r#"{{"claim": "{number:032}"}}"#);
        let (status, _) = post(leader, &format!("many{number}"), &body);
        refused += u32::from(status == 429);
    }
    assert!(refused >= 300 - 256, "{refused} of 300 claims of one client were refused");
    for number in 0..300_u32 {
        let body = format!(r#"{{"claim": "{number:032}"}}"#);
        post(leader, &format!("many{number}/release"), &body);
    }
}

/// What a program that links doyen sees.
fn check_library(trial: &Trial) {
    let nodes: Vec<&str> = trial.everybody().into_iter().map(|member| trial.url(member)).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let claim = || Builder::new("library", nodes.clone()).unwrap().start().unwrap();
        let first = claim().acquired().await.unwrap();
        assert!(first.is_held());
        let second = claim();
        let token = first.token();
        let waits = tokio::time::timeout(Duration::from_millis(500), first.lost()).await;
        assert!(waits.is_err(), "it is kept");
        first.release().await;
        let second = second.acquired().await.unwrap();
        assert!(second.token() > token && second.is_held());
        second.release().await;
        assert!(Builder::new("a b", nodes.clone()).is_err());
        assert!(Builder::new("a", ["ftp://n1"]).is_err());
    });
}
