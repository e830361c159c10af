//! The shipped configurations of `HAProxy` and nginx, in front of real nodes: traffic goes to the leader, and a connection to
//! an old leader is closed.

mod support;

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use support::{LIMIT, Plan, Trial, skip};

fn shipped(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name);
    fs::read_to_string(path).expect("a configuration")
}

/// Replaces every occurrence, of which there must be one.
fn replace(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from} in {text}");
    text.replace(from, to)
}

fn port_of(url: &str) -> &str {
    url.rsplit(':').next().expect("a port")
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a free port")
}

/// A process that ends with the test.
struct Process(Child);

impl Process {
    fn start(command: &mut Command, log: &Path) -> Self {
        let log = fs::File::create(log).expect("a log");
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Self(command.spawn().expect("it starts"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGTERM, which both programs pass on to their workers.
        let pid = i32::try_from(self.0.id()).ok().and_then(rustix::process::Pid::from_raw);
        let _ = rustix::process::kill_process(pid.expect("a pid"), rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

/// Serves `name` to every request; connections stay open.
fn serve(name: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let answer = move |stream: TcpStream, name: &str| -> io::Result<()> {
        let (mut writer, mut reader) = (stream.try_clone()?, BufReader::new(stream));
        let mut line = String::new();
        while reader.read_line(&mut line)? > 0 {
            if line.trim().is_empty() {
                let length = name.len();
                write!(writer, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{name}")?;
            }
            line.clear();
        }
        Ok(())
    };
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let name = name.clone();
            thread::spawn(move || answer(stream, &name));
        }
    });
    address
}

/// Asks through the balancer, on this connection: who answered, if the status is 200.
fn ask(stream: &mut TcpStream) -> Option<String> {
    write!(stream, "GET / HTTP/1.1\r\nhost: orders\r\n\r\n").ok()?;
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|&count| count > 0)?;
        if line.trim().is_empty() {
            break;
        }
        lines.push(line);
    }
    let length =
        |line: &String| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok();
    let mut body = vec![0; lines.iter().find_map(length)?];
    reader.read_exact(&mut body).ok()?;
    let is_ok = lines.first().is_some_and(|line| line.contains(" 200 "));
    is_ok.then(|| String::from_utf8_lossy(&body).into_owned())
}

fn connect(address: SocketAddr) -> Option<TcpStream> {
    let stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(LIMIT)).expect("a time-out");
    Some(stream)
}

struct Balanced {
    trial: Trial,
    front: SocketAddr,
    _processes: Vec<Process>,
}

impl Balanced {
    /// Waits until the balancer's answer comes from `member`; returns the connection, which is open.
    fn reaches(&self, member: usize) -> TcpStream {
        self.trial.wait(&format!("n{member} to answer through the balancer"), || {
            let mut stream = connect(self.front)?;
            (ask(&mut stream)? == format!("n{member}")).then_some(stream)
        })
    }

    fn transfer(&self, from: usize) -> usize {
        let to = if from == 1 { 2 } else { 1 };
        self.trial.wait("the transfer to be accepted", || {
            let given = self.trial.command(from, &["transfer", &format!("n{to}")]);
            given.status.success().then_some(())
        });
        to
    }
}

fn is_installed(program: &str) -> bool {
    let found = Command::new(program).arg("-v").output().is_ok();
    if !found {
        skip(&format!("the configuration of {program}: {program} is not installed (`make tools`)"));
    }
    found
}

fn start(cluster: &'static str) -> (Trial, usize) {
    let trial = Trial::start(&Plan { cluster, preemption: "never", ..Plan::default() });
    let leader = trial.agree(&[1, 2, 3]);
    (trial, leader)
}

#[test]
fn haproxy_sends_to_the_leader_and_closes_connections_to_an_old_one() {
    if !is_installed("haproxy") {
        return;
    }
    let (trial, leader) = start("haproxy");
    let front = free_address();
    let mut text = replace(&shipped("haproxy.cfg"), "bind :8000", &format!("bind {front}"));
    for member in trial.everybody() {
        let host = format!("10.0.0.{member}");
        let service = serve(format!("n{member}"));
        text = replace(&text, &format!("{host}:8080"), &service.to_string());
        let check = format!("addr 127.0.0.1 port {}", port_of(trial.url(member)));
        text = replace(&text, &format!("addr {host} port 7400"), &check);
    }
    let file = trial.folder.join("haproxy.cfg");
    fs::write(&file, text).unwrap();
    let checked = Command::new("haproxy").arg("-c").arg("-f").arg(&file).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    assert_eq!(String::from_utf8_lossy(&checked.stderr), "", "no warnings");
    let mut haproxy = Command::new("haproxy");
    let process = Process::start(haproxy.arg("-db").arg("-f").arg(&file), &trial.folder.join("h"));
    let balanced = Balanced { trial, front, _processes: vec![process] };

    let mut old = balanced.reaches(leader);
    let successor = balanced.transfer(leader);
    let read = old.read(&mut [0; 16]);
    let is_closed = match &read {
        Ok(count) => *count == 0,
        Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
    };
    assert!(is_closed, "the connection to the old leader stays open: {read:?}");
    balanced.reaches(successor);
}

/// A configuration for nginx of its own, around what is shipped.
fn start_nginx(folder: &Path, name: &str, shipped: &str) -> Process {
    let folder = folder.join(name);
    fs::create_dir(&folder).unwrap();
    let place = |file: &str| folder.join(file).display().to_string();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {};\n", place(kind)))
        .concat();
    let (pid, file) = (place("pid"), place("nginx.conf"));
    let text = format!(
        "daemon off;\nworker_processes 1;\npid {pid};\nevents {{}}\nhttp {{\naccess_log off;\n{temporary}{shipped}}}\n"
    );
    fs::write(&file, text).unwrap();
    let flags = ["-c", &file, "-e", &place("error.log")];
    let checked = Command::new("nginx").arg("-t").args(flags).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    Process::start(Command::new("nginx").args(flags), &PathBuf::from(place("stderr")))
}

#[test]
fn nginx_asks_the_node_for_every_request_so_that_an_old_connection_reaches_the_new_leader() {
    if !is_installed("nginx") {
        return;
    }
    let (trial, leader) = start("nginx");
    let front = free_address();
    let mut text =
        replace(&shipped("nginx-balancer.conf"), "listen 8000", &format!("listen {front}"));
    let mut processes = Vec::new();
    for member in trial.everybody() {
        let address = free_address();
        let service = serve(format!("n{member}"));
        let own =
            replace(&shipped("nginx-member.conf"), "listen 8080", &format!("listen {address}"));
        let own = replace(&own, "http://127.0.0.1:8081", &format!("http://{service}"));
        let own = replace(&own, "http://127.0.0.1:7400", trial.url(member));
        processes.push(start_nginx(&trial.folder, &format!("nginx-n{member}"), &own));
        text = replace(&text, &format!("10.0.0.{member}:8080"), &address.to_string());
    }
    processes.push(start_nginx(&trial.folder, "nginx-balancer", &text));
    let balanced = Balanced { trial, front, _processes: processes };

    let mut old = balanced.reaches(leader);
    let successor = balanced.transfer(leader);
    balanced.reaches(successor);
    balanced.trial.wait("an answer of the new leader on the old connection", || {
        ask(&mut old).filter(|name| *name == format!("n{successor}"))
    });
}
