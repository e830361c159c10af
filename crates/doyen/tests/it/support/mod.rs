//! A cluster of real processes for tests: made by `doyen init`, run by `doyen node`, asked over HTTP.
//!
//! Every wait has a limit and says what it saw when the limit passed. Whatever happens to a test, its processes end: each
//! has the test's end of its standard input, and is killed by its process id when it goes out of scope.

#![allow(dead_code, unreachable_pub, reason = "every test program uses a part of it")]

pub mod earlier;
pub mod leases;
pub mod rounds;
pub mod servers;
pub mod skips;
pub mod wires;

use std::ffi::OsStr;
use std::fs::File;
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use doyen::node::status::{Entry, Status};
use rustix::process::{Pid, Signal, kill_process};
use ureq::Agent;

pub use skips::skip;

/// How long anything may take. Far longer than it should: machines that test are busy.
pub const LIMIT: Duration = Duration::from_secs(30);

/// The vote lease of a patient cluster, as [`Plan::patient`] has it. Its leases last for 1.2 s, those of the profile lan for
/// 0.2 s.
const PATIENCE: &str = "1500ms";

/// Parts of the rejections that pass by themselves: members are named n1, n2, and so on. A test in `api/admin.rs` compares
/// them with what nodes say.
pub const PASSING: [&str; 5] = [
    " does not reach n",
    " has just restarted or does not reach a majority",
    "no other member is eligible and reachable now",
    " is not the leader and knows no leader",
    // A follower has forwarded the command to a member that has just lost leadership.
    " is not the leader; n",
];

/// Whether a command was rejected for a reason that passes by itself.
pub fn is_passing(told: &str) -> bool {
    PASSING.iter().any(|why| told.contains(why))
}

/// The program that is tested.
pub fn program() -> &'static str {
    env!("CARGO_BIN_EXE_doyen")
}

/// Runs `doyen` to its end.
pub fn doyen(arguments: &[&str]) -> Output {
    Command::new(program())
        .args(arguments)
        .stdin(Stdio::null())
        .env_remove("DOYEN_NODE")
        .output()
        .expect("doyen can be run")
}

/// What it said on its error output.
pub fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// How a trial is set up.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The cluster's name, where a test depends on it. Otherwise one that no other cluster has.
    pub cluster: Option<&'static str>,
    /// How many members.
    pub members: usize,
    /// By which algorithm.
    pub algorithm: &'static str,
    /// How fast.
    pub profile: &'static str,
    /// Whether vote leases last for [`PATIENCE`], longer than a busy machine stalls, instead of as long as the profile has
    /// them: for what a lease that lapses would spoil.
    pub patient: bool,
    /// The preemption policy of a quorum. Immediate in tests: the member that happens to start last must not have to wait.
    pub preemption: &'static str,
    /// The address that all of them listen on, without a port.
    pub host: &'static str,
    /// Flags that every node gets besides.
    pub flags: Vec<String>,
    /// Flags that `doyen init` gets besides.
    pub init: Vec<String>,
    /// The program that founds the cluster and runs every member, unless [`Trial::replace_program`] changes that.
    pub program: PathBuf,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            cluster: None,
            members: 3,
            algorithm: "quorum",
            profile: "lan",
            patient: false,
            preemption: "immediate",
            host: "127.0.0.1",
            flags: Vec::new(),
            init: Vec::new(),
            program: program().into(),
        }
    }
}

/// A cluster. Members are counted from one, as their names are: `n1`, `n2`, …; the last has the highest priority.
#[derive(Debug)]
pub struct Trial {
    /// Of the cluster. Lease files carry it where they lie beside those of other clusters.
    pub name: String,
    /// Where everything lies.
    pub folder: PathBuf,
    nodes: Vec<Node>,
    flags: Vec<String>,
    /// Whether no other cluster has the name, so that its lease files in memory are removed with it.
    has_own_name: bool,
    variables: Vec<(&'static str, &'static str)>,
    http: Agent,
}

#[derive(Debug)]
struct Node {
    folder: PathBuf,
    address: String,
    url: String,
    child: Option<Child>,
    /// What its command begins with: `ip netns exec NAME`.
    prefix: Vec<String>,
    program: PathBuf,
}

impl Trial {
    /// Founds a cluster; nobody runs yet.
    pub fn found(plan: &Plan) -> Self {
        let place = |_| {
            let udp = format!("{}:{}", plan.host, free_port(plan.host));
            (udp, free_address(), Vec::new())
        };
        Self::found_at(plan, (0..plan.members).map(place).collect())
    }

    /// Founds a cluster with members at these addresses: for datagrams, for HTTP, and what their commands begin with.
    pub fn found_at(plan: &Plan, places: Vec<(String, String, Vec<String>)>) -> Self {
        let folder = new_folder();
        let cluster = folder.join("cluster");
        let mut init = Command::new(&plan.program);
        let name = folder.file_name().and_then(|name| name.to_str()).expect("a name in ASCII");
        let name = plan.cluster.unwrap_or(name).to_owned();
        init.args(["init", "--cluster", &name, "--algorithm", plan.algorithm]);
        init.args(["--profile", plan.profile, "--out"]).arg(&cluster).args(&plan.init);
        for (number, (address, ..)) in places.iter().enumerate() {
            let name = format!("n{}", number + 1);
            init.args(["--member", &format!("{name}={address}")]);
            init.args(["--priority", &format!("{name}={}", number + 1)]);
        }
        let output = init.output().expect("doyen can be run");
        assert!(output.status.success(), "init: {}", complaint(&output));
        let nodes = places.into_iter().enumerate().map(|(number, (address, http, prefix))| Node {
            folder: cluster.join(format!("n{}", number + 1)),
            address,
            url: format!("http://{http}"),
            child: None,
            prefix,
            program: plan.program.clone(),
        });
        let nodes = nodes.collect();
        let patience = Some(Duration::from_secs(2));
        let http = Agent::config_builder().timeout_global(patience).http_status_as_error(false);
        let http = http.build().into();
        let policy = ("DOYEN_PREEMPTION_POLICY", plan.preemption);
        // On a busy machine the best member may fail as leader at once; its penalty must decay while a test still waits.
        let penalty_decay = ("DOYEN_TIMING_PENALTY_DECAY", "10s");
        let mut variables = match (plan.algorithm, plan.preemption) {
            ("quorum", "immediate") => vec![policy, penalty_decay],
            ("quorum", _) => vec![policy],
            _ => Vec::new(),
        };
        if plan.patient {
            variables.push(("DOYEN_TIMING_VOTE_LEASE", PATIENCE));
        }
        let (flags, has_own_name) = (plan.flags.clone(), plan.cluster.is_none());
        Self { name, folder, nodes, flags, has_own_name, variables, http }
    }

    /// Founds a cluster and starts everybody.
    pub fn start(plan: &Plan) -> Self {
        let mut trial = Self::found(plan);
        for member in trial.everybody() {
            trial.run(member);
        }
        trial
    }

    /// A second process of `member`, on a machine of its own that has its configuration and not its state: says by which
    /// number it is run. It listens at `place`.
    pub fn replace_machine(
        &mut self,
        member: usize,
        (address, http, prefix): (String, String, Vec<String>),
    ) -> usize {
        let folder = self.folder.join(format!("second-n{member}"));
        std::fs::create_dir(&folder).expect("a folder for it");
        let config = self.folder_of(member).join("doyen.toml");
        let text = std::fs::read_to_string(config).expect("a configuration");
        let moved = |line: &str| match line.starts_with("listen =") {
            true => format!("listen = \"{address}\"\n"),
            false => format!("{line}\n"),
        };
        let mut text: String = text.lines().map(moved).collect();
        for entry in std::fs::read_dir(self.folder_of(member)).expect("its folder").flatten() {
            if entry.path().is_file() && entry.file_name() != "log" {
                std::fs::copy(entry.path(), folder.join(entry.file_name())).expect("a copy");
            }
        }
        if !text.contains("listen = ") {
            text = format!("listen = \"{address}\"\n{text}");
        }
        std::fs::write(folder.join("doyen.toml"), text).expect("a configuration");
        let program = self.nodes[member - 1].program.clone();
        let url = format!("http://{http}");
        self.nodes.push(Node { folder, address, url, child: None, prefix, program });
        self.nodes.len()
    }

    /// The members' numbers.
    pub fn everybody(&self) -> Vec<usize> {
        (1..=self.nodes.len()).collect()
    }

    /// The folder of a member: `doyen.toml`, `state`.
    pub fn folder_of(&self, member: usize) -> &Path {
        &self.nodes[member - 1].folder
    }

    /// Where a member serves HTTP.
    pub fn url(&self, member: usize) -> &str {
        &self.nodes[member - 1].url
    }

    /// Where a member listens for the others.
    pub fn address(&self, member: usize) -> &str {
        &self.nodes[member - 1].address
    }

    /// The process id of a member that runs.
    pub fn pid(&self, member: usize) -> u32 {
        self.nodes[member - 1].child.as_ref().expect("it runs").id()
    }

    /// Has the command of a member begin with these words.
    pub fn begin_with(&mut self, member: usize, words: Vec<String>) {
        self.nodes[member - 1].prefix = words;
    }

    /// Has a member run this program from its next start.
    pub fn replace_program(&mut self, member: usize, program: &Path) {
        self.nodes[member - 1].program = program.to_owned();
    }

    /// Starts a member.
    pub fn run(&mut self, member: usize) {
        self.run_with(member, &[]);
    }

    /// Starts a member with more flags.
    pub fn run_with(&mut self, member: usize, flags: &[&str]) {
        let mut all = vec!["--while-stdin-is-open"];
        all.extend(flags);
        self.start_as(member, "node", &all);
    }

    /// Starts a member that runs a command while it leads.
    pub fn run_job(&mut self, member: usize, flags: &[&str], job: &[&str]) {
        let mut all = flags.to_vec();
        all.push("--");
        all.extend(job);
        self.start_as(member, "run", &all);
    }

    /// Begins `doyen rejoin` in place of the node.
    pub fn begin_rejoin(&mut self, member: usize, flags: &[&str]) {
        self.start_as(member, "rejoin", flags);
    }

    /// Has a member that lost its state rejoin, and starts it.
    pub fn rejoin(&mut self, member: usize) {
        self.rejoin_and_run_with(member, &[]);
    }

    /// The same; the node gets more flags.
    pub fn rejoin_and_run_with(&mut self, member: usize, flags: &[&str]) {
        let rejoined = self.command_of(member, "rejoin").output().expect("doyen can be run");
        let said = String::from_utf8_lossy(&rejoined.stdout).into_owned();
        assert!(rejoined.status.success(), "n{member}: {said}{}", complaint(&rejoined));
        assert!(said.contains("Start the node now:"), "{said}");
        self.run_with(member, flags);
    }

    fn start_as(&mut self, member: usize, command: &str, flags: &[&str]) {
        let mut command = self.command_of(member, command);
        let node = &mut self.nodes[member - 1];
        assert!(node.child.is_none(), "n{member} runs already");
        let log = File::options().create(true).append(true).open(node.folder.join("log"));
        let child = command
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log.expect("its log can be opened"))
            .spawn();
        node.child = Some(child.expect("a node can be started"));
    }

    /// A command that acts as a member, with its configuration.
    fn command_of(&self, member: usize, command: &str) -> Command {
        let node = &self.nodes[member - 1];
        let words = node.prefix.iter().map(OsStr::new).chain([node.program.as_os_str()]);
        let words: Vec<&OsStr> = words.collect();
        let mut whole = Command::new(words[0]);
        whole.args(&words[1..]).arg(command).arg("--config").arg(node.folder.join("doyen.toml"));
        whole.args(["--http", node.url.trim_start_matches("http://")]).args(&self.flags);
        whole.envs(self.variables.iter().copied());
        whole
    }

    /// Kills a member, as a power cut would.
    pub fn kill(&mut self, member: usize) {
        self.signal(member, Signal::KILL);
        self.wait_for_end(member);
    }

    /// Tells a member to stop, and waits for its end; says how it ended.
    pub fn stop(&mut self, member: usize) -> Option<i32> {
        self.signal(member, Signal::TERM);
        self.wait_for_end(member)
    }

    /// Whether a member has been started and not been waited for.
    pub fn is_running(&self, member: usize) -> bool {
        self.nodes[member - 1].child.is_some()
    }

    /// Kills the guardian of a member.
    pub fn kill_guardian(&self, member: usize) {
        let children = Command::new("pgrep").args(["-P", &self.pid(member).to_string()]).output();
        let children = String::from_utf8(children.expect("pgrep").stdout).expect("numbers");
        let pid = children.lines().next().and_then(|line| Pid::from_raw(line.parse().ok()?));
        kill_process(pid.expect("a guardian"), Signal::KILL).expect("it runs");
    }

    /// Sends a member a signal.
    pub fn signal(&self, member: usize, signal: Signal) {
        let pid = i32::try_from(self.pid(member)).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process id"), signal).expect("it runs");
    }

    /// Waits for a member's end; says its exit code. Ends it if that takes too long.
    pub fn wait_for_end(&mut self, member: usize) -> Option<i32> {
        let node = &mut self.nodes[member - 1];
        let mut child = node.child.take().expect("it runs");
        let begun = Instant::now();
        while begun.elapsed() < LIMIT && matches!(child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let late = matches!(child.try_wait(), Ok(None));
        // One that has ended already cannot be killed, and need not be.
        let _ = child.kill();
        let status = child.wait().expect("it can be waited for");
        assert!(!late, "n{member} does not end; its log:\n{}", self.log(member));
        status.code()
    }

    /// What a member has logged.
    pub fn log(&self, member: usize) -> String {
        std::fs::read_to_string(self.folder_of(member).join("log")).unwrap_or_default()
    }

    /// What a member says of itself, if it answers.
    pub fn status(&self, member: usize) -> Option<Status> {
        let node = &self.nodes[member - 1];
        // The loopback of a namespace is reached from inside only.
        let Some((first, words)) = node.prefix.split_first().filter(|(first, _)| *first == "ip")
        else {
            return serde_json::from_str(&self.get(member, "/v1/status")?).ok();
        };
        let mut inside = Command::new(first);
        inside.args(words).args([program(), "status", "--json", "--node", &node.url]);
        serde_json::from_slice(&inside.output().ok()?.stdout).ok()
    }

    /// What a member remembers.
    pub fn history(&self, member: usize) -> Vec<Entry> {
        let text = self.get(member, "/v1/history").expect("it answers");
        serde_json::from_str(&text).expect("a history")
    }

    /// The status and the body of a member's response; none if there is no response.
    pub fn response(&self, member: usize, path: &str) -> Option<(u16, String)> {
        let mut response = self.http.get(format!("{}{path}", self.url(member))).call().ok()?;
        Some((response.status().as_u16(), response.body_mut().read_to_string().ok()?))
    }

    /// The status and the body of a member's response to a `POST` with this JSON; none if there is no response.
    pub fn post(&self, member: usize, path: &str, json: &str) -> Option<(u16, String)> {
        let request = self.http.post(format!("{}{path}", self.url(member)));
        let mut response = request.content_type("application/json").send(json).ok()?;
        Some((response.status().as_u16(), response.body_mut().read_to_string().ok()?))
    }

    /// The body of a member's response, if its status is 200.
    pub fn get(&self, member: usize, path: &str) -> Option<String> {
        self.response(member, path).filter(|(status, _)| *status == 200).map(|(_, body)| body)
    }

    /// The value of a metric of a member: the first sample whose name begins like this and that has this label, if any.
    pub fn metric(&self, member: usize, name: &str, label: &str) -> Option<u64> {
        let metrics = self.get(member, "/metrics")?;
        let mut lines = metrics.lines();
        let line = lines.find(|line| line.starts_with(name) && line.contains(label))?;
        line.rsplit(' ').next()?.parse::<f64>().ok().map(|value| value as u64)
    }

    /// Waits until a metric of a member has risen by `amount`.
    pub fn wait_for_rise(&self, member: usize, name: &str, label: &str, amount: u64) {
        let value = || self.metric(member, name, label);
        let before = self.wait(&format!("n{member} shows {name}"), value);
        self.wait(&format!("{name} of n{member} to rise by {amount}"), || {
            value().filter(|&value| value >= before + amount).map(drop)
        });
    }

    /// Gives a member an admin command on the command line, as a user of its machine does.
    pub fn command(&self, member: usize, words: &[&str]) -> Output {
        Command::new(program())
            .args(words)
            .arg("--config")
            .arg(self.folder_of(member).join("doyen.toml"))
            .env("DOYEN_HTTP", self.url(member).trim_start_matches("http://"))
            .stdin(Stdio::null())
            .output()
            .expect("doyen can be run")
    }

    /// Has leadership transferred to `to` by a command to `asked`. Where the machine is busy another member may be elected
    /// before the successor has asked for votes: then once more.
    pub fn transfer(&self, asked: usize, to: usize) {
        self.wait(&format!("n{to} to lead"), || {
            let term = self.wait_for_status(asked).term;
            let given = self.succession(|| self.command(asked, &["transfer", &format!("n{to}")]));
            let leads = complaint(&given).contains("is the leader already");
            assert!(given.status.success() || leads, "transfer to n{to}: {}", complaint(&given));
            let leader = self.wait("a leader of a later term", || {
                self.status(asked).filter(|it| leads || it.term > term)?.leader
            });
            (leader.0 as usize == to).then_some(())
        });
    }

    /// Has the leader resign by a command to `asked`.
    pub fn resign(&self, asked: usize) {
        let given = self.succession(|| self.command(asked, &["resign"]));
        assert!(given.status.success(), "resign: {}", complaint(&given));
    }

    /// Has a member drained that may lead.
    pub fn drain(&self, member: usize) {
        let given = self.succession(|| self.command(member, &["drain"]));
        assert!(given.status.success(), "drain n{member}: {}", complaint(&given));
    }

    /// Gives a command that needs a successor, until it is not rejected for want of one: on a busy machine a member may have
    /// acknowledged none of the last three heartbeats though it follows. Returns the other answer, whatever it is.
    pub fn succession(&self, give: impl Fn() -> Output) -> Output {
        self.wait("a successor", || Some(give()).filter(|it| !is_passing(&complaint(it))))
    }

    /// What has been logged in whole lines, for what reads every line: another process may be writing one.
    pub fn lines(&self, member: usize) -> String {
        let mut log = self.log(member);
        log.truncate(log.rfind('\n').map_or(0, |end| end + 1));
        log
    }

    /// Waits for a text in the log of a member, which it writes in a thread of its own.
    pub fn wait_for_log(&self, member: usize, text: &str) {
        self.wait(&format!("n{member} to log `{text}`"), || {
            self.log(member).contains(text).then_some(())
        });
    }

    /// The status of a member that may have just started, once it answers.
    pub fn wait_for_status(&self, member: usize) -> Status {
        self.wait(&format!("n{member} answers"), || self.status(member))
    }

    /// Waits until all of `members` follow the same one of them; says whom.
    pub fn agree(&self, members: &[usize]) -> usize {
        let mut seen = Vec::new();
        self.wait(&format!("{members:?} agree"), || {
            seen = members.iter().map(|&member| self.status(member)?.leader).collect();
            let first = (*seen.first()?)?.0 as usize;
            let agreed = seen.iter().all(|leader| leader.map(|id| id.0 as usize) == Some(first));
            (agreed && members.contains(&first)).then_some(first)
        })
    }

    /// Has `member` lead, in a cluster whose leader stays whatever its rank.
    pub fn lead(&self, member: usize) {
        let all = self.everybody();
        let leader = self.agree(&all);
        if leader != member {
            self.transfer(leader, member);
        }
        self.follow(member, &all);
    }

    /// Waits until `leader` leads all of `members`.
    pub fn follow(&self, leader: usize, members: &[usize]) {
        self.wait(&format!("{members:?} follow n{leader}"), || {
            let follows = |&member: &usize| {
                self.status(member).and_then(|status| status.leader).map(|id| id.0 as usize)
                    == Some(leader)
            };
            members.iter().all(follows).then_some(())
        });
    }

    /// Waits for something, and says what everybody thinks if it does not come.
    pub fn wait<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let begun = Instant::now();
        while begun.elapsed() < LIMIT {
            if let Some(found) = look() {
                return found;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut report = format!("timed out waiting for: {what}\n");
        for member in self.everybody() {
            let status = self.status(member);
            let brief = status.map(|status| (status.role, status.leader, status.term));
            report += &format!("n{member}: {brief:?}\n{}\n", self.log(member));
        }
        panic!("{report}");
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            if let Some(child) = &mut node.child {
                // One that has ended already cannot be killed, and need not be.
                let _ = child.kill();
                let _ = child.wait();
            }
        }
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.folder);
            if self.has_own_name {
                remove_leases_in_memory(&format!("{}-n", self.name));
            }
        }
    }
}

/// Removes the lease files that begin like this, wherever a node creates them by itself.
fn remove_leases_in_memory(beginning: &str) {
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(|folder| Path::new(&folder).join("doyen"));
    let shared = format!("/dev/shm/doyen-{}", rustix::process::getuid().as_raw());
    let folders = [Some("/run/doyen".into()), own, Some(shared.into())];
    let entries = folders.into_iter().flatten().filter_map(|folder| std::fs::read_dir(folder).ok());
    for entry in entries.flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(beginning) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// A process that has ended and was not waited for.
pub fn has_ended(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'))
}

/// A folder that no other test uses. An earlier process with the same id may have left some, as tests that fail do.
pub fn new_folder() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    for _ in 0..10_000 {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("doyen-test-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        match std::fs::create_dir(&folder) {
            Ok(()) => return folder,
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => panic!("{}: {error}", folder.display()),
        }
    }
    panic!("the folder for temporary files is full of those of earlier tests");
}

/// An address on loopback that nobody uses, for datagrams or TCP.
pub fn free_address() -> String {
    format!("127.0.0.1:{}", free_port("127.0.0.1"))
}

/// A port that nobody uses, neither for datagrams at `host` nor for TCP on loopback, and that no other test of this process
/// gets: not while a member is down either. It is none of those that the system gives away by itself, to parallel tests
/// among others.
pub fn free_port(host: &str) -> u16 {
    const FIRST: u32 = 10_000;
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let end = range.ok().and_then(|text| text.split_whitespace().next()?.parse().ok());
    let count = end.unwrap_or(32_768_u32).saturating_sub(FIRST).max(1_000);
    // Two processes of tests at the same time begin in different places.
    let start = std::process::id().wrapping_mul(2_654_435_761) % count;
    for _ in 0..count {
        let number = COUNT.fetch_add(1, Ordering::Relaxed) % count;
        let port = (FIRST + (start + number) % count) as u16;
        let is_free = UdpSocket::bind(format!("{host}:{port}")).is_ok()
            && TcpListener::bind(("127.0.0.1", port)).is_ok();
        if is_free {
            return port;
        }
    }
    panic!("there is no free port from {FIRST} to {}", FIRST + count);
}
