//! The shipped configurations of `HAProxy` and nginx, in front of real nodes: traffic goes to the leader, and a connection to
//! an old leader is closed.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::support::rounds::{SetOnDrop, Tally, rounds};
use crate::support::servers::{Process, free_address, is_installed, replace, shipped, start_nginx};
use crate::support::{LIMIT, Plan, Trial};
use doyen::api::PermitGiven;
use doyen::fence::Fence;
use doyen::leadership::FencingToken;

fn port_of(url: &str) -> &str {
    url.rsplit(':').next().expect("a port")
}

/// Serves `name` to every request; connections stay open.
fn serve(name: String) -> SocketAddr {
    serve_by(move || name.clone())
}

/// Serves what `text` returns to every request; connections stay open.
fn serve_by(text: impl Fn() -> String + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let text = Arc::new(text);
    let answer =
        move |stream: TcpStream, text: &(dyn Fn() -> String + Send + Sync)| -> io::Result<()> {
            let (mut writer, mut reader) = (stream.try_clone()?, BufReader::new(stream));
            let mut line = String::new();
            while reader.read_line(&mut line)? > 0 {
                if line.trim().is_empty() {
                    let text = text();
                    let length = text.len();
                    write!(writer, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{text}")?;
                }
                line.clear();
            }
            Ok(())
        };
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let text = Arc::clone(&text);
            thread::spawn(move || answer(stream, &*text));
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
        self.trial.transfer(from, to);
        to
    }
}

fn start() -> (Trial, usize) {
    let trial = Trial::start(&Plan { preemption: "never", patient: true, ..Plan::default() });
    let leader = trial.agree(&[1, 2, 3]);
    (trial, leader)
}

/// Runs `HAProxy`, as it is shipped, in front of the services of all members.
fn start_haproxy(trial: Trial, services: &[SocketAddr]) -> Balanced {
    start_haproxy_with(trial, services, &shipped("haproxy.cfg"))
}

fn start_haproxy_with(trial: Trial, services: &[SocketAddr], shipped: &str) -> Balanced {
    let front = free_address();
    let mut text = replace(shipped, "bind :8000", &format!("bind {front}"));
    for (member, service) in trial.everybody().into_iter().zip(services) {
        let host = format!("10.0.0.{member}");
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
    Balanced { trial, front, _processes: vec![process] }
}

#[test]
fn haproxy_sends_to_the_leader_and_closes_connections_to_an_old_one() {
    if !is_installed("haproxy") {
        return;
    }
    let (trial, leader) = start();
    let services: Vec<SocketAddr> = (1..=3).map(|member| serve(format!("n{member}"))).collect();
    let balanced = start_haproxy(trial, &services);
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

/// The short forms, which many examples have. Without a method `HAProxy` sends `OPTIONS`; all are in the older version of
/// HTTP, without a host.
#[test]
fn haproxy_may_check_with_and_without_a_method() {
    if !is_installed("haproxy") {
        return;
    }
    let (mut trial, mut leader) = start();
    let services: Vec<SocketAddr> = (1..=3).map(|member| serve(format!("n{member}"))).collect();
    let send =
        "http-check send meth GET uri /leader ver HTTP/1.1 hdr Host localhost hdr Connection close";
    let shipped = replace(&shipped("haproxy.cfg"), send, "");
    for form in ["/leader", "GET /leader", "HEAD /leader", "OPTIONS /leader"] {
        let text = replace(&shipped, "option httpchk\n", &format!("option httpchk {form}\n"));
        let balanced = start_haproxy_with(trial, &services, &text);
        balanced.reaches(leader);
        leader = balanced.transfer(leader);
        balanced.reaches(leader);
        trial = balanced.trial;
    }
}

/// A register that every member writes for whoever asks it through the balancer, with the fencing token of its permit. The
/// service does not ask whether it leads: between two checks the balancer sends to an old leader.
#[test]
fn a_fenced_register_behind_haproxy_accepts_no_older_token() {
    if !is_installed("haproxy") {
        return;
    }
    let (trial, mut leader) = start();
    let accepted = trial.folder.join("accepted");
    let fence = trial.folder.join("fence");
    let services: Vec<SocketAddr> = trial
        .everybody()
        .into_iter()
        .map(|member| {
            let (node, accepted, fence) =
                (trial.url(member).to_owned(), accepted.clone(), fence.clone());
            let last = Mutex::new(None);
            serve_by(move || match write(&node, &last, &fence, &accepted) {
                Ok(()) => format!("n{member}"),
                Err(why) => why,
            })
        })
        .collect();
    let balanced = start_haproxy(trial, &services);
    let done = AtomicBool::new(false);
    let mut tally = Tally::new("transfers, with a fenced register behind HAProxy");
    thread::scope(|scope| {
        let _over = SetOnDrop(&done);
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                // On one connection for as long as it lasts.
                let mut stream = connect(balanced.front);
                while let Some(stream) = stream.as_mut().filter(|_| !done.load(Ordering::Relaxed)) {
                    if ask(stream).is_none() {
                        break;
                    }
                }
            }
        });
        for _ in 0..rounds() {
            balanced.reaches(leader);
            tally.round(|| {
                leader = balanced.transfer(leader);
                balanced.reaches(leader);
            });
        }
    });
    let text = fs::read_to_string(&accepted).expect("writes");
    let tokens: Vec<u64> = text.lines().map(|line| line.parse().expect("a token")).collect();
    assert!(tokens.is_sorted(), "an older token was accepted: {tokens:?}");
    assert!(tokens.first() < tokens.last(), "both leaders have written: {tokens:?}");
}

/// Writes as the leader, or with the token that this member had when it last was: a service that has not noticed.
fn write(
    node: &str,
    last: &Mutex<Option<u64>>,
    fence: &Path,
    accepted: &Path,
) -> Result<(), String> {
    let asked = ureq::post(format!("{node}/v1/permit")).content_type("application/json");
    let body = asked.send(r#"{"for": "20ms"}"#).and_then(|mut it| it.body_mut().read_to_string());
    let mut last = last.lock().map_err(|error| error.to_string())?;
    if let Some(permit) = body.ok().and_then(|body| serde_json::from_str::<PermitGiven>(&body).ok())
    {
        *last = Some(permit.token);
    }
    let token = last.ok_or("never led")?;
    let _entered =
        Fence::at(fence).enter(FencingToken(token)).map_err(|error| error.to_string())?;
    let mut file = fs::File::options()
        .create(true)
        .append(true)
        .open(accepted)
        .map_err(|error| error.to_string())?;
    writeln!(file, "{token}").map_err(|error| error.to_string())
}

#[test]
fn nginx_asks_the_node_for_every_request_so_that_an_old_connection_reaches_the_new_leader() {
    if !is_installed("nginx") {
        return;
    }
    let (trial, leader) = start();
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
