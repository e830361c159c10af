//! Too many connections to a real node: what it says, and that it goes on answering.

use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread::{sleep, spawn};
use std::time::Duration;

use crate::support::rounds::{Tally, rounds};
use crate::support::{LIMIT, Plan, Trial, complaint, doyen, program};

/// A cluster of one that is ready, after the shell did something.
fn start_after(script: &str) -> Trial {
    let mut trial = Trial::found(&Plan { members: 1, patient: true, ..Plan::default() });
    let words = ["sh", "-c", &format!("{script}; exec \"$@\""), "sh"];
    trial.begin_with(1, words.map(str::to_owned).to_vec());
    trial.run(1);
    trial.follow(1, &[1]);
    trial.wait("a lease", || trial.get(1, "/leader"));
    trial
}

fn connect(trial: &Trial) -> TcpStream {
    let stream =
        TcpStream::connect(trial.url(1).trim_start_matches("http://")).expect("it listens");
    stream.set_read_timeout(Some(LIMIT)).expect("a time-out");
    stream
}

/// The first line of the answer to a check of a load balancer.
fn check(trial: &Trial) -> String {
    let mut stream = connect(trial);
    stream.write_all(b"GET /leader HTTP/1.0\r\n\r\n").expect("it is taken");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text.lines().next().unwrap_or_default().to_owned()
}

/// Checks 25 times a second beside as many idle connections, for two seconds in each round. A round in which the whole machine
/// stalled is repeated: the leader may have lost its lease, and says so.
fn check_often(trial: &Trial, idle: usize, kind: &'static str) {
    const ATTEMPTS: usize = 3;
    let mut tally = Tally::new(kind);
    for _ in 0..rounds() {
        for attempt in 1..=ATTEMPTS {
            let mut others = Vec::new();
            let has_stalled = tally.round(|| {
                let _held: Vec<TcpStream> = (0..idle).map(|_| connect(trial)).collect();
                for _ in 0..50 {
                    others.extend(Some(check(trial)).filter(|it| it != "HTTP/1.0 200 OK"));
                    sleep(Duration::from_millis(40));
                }
            });
            if others.is_empty() {
                break;
            }
            assert!(has_stalled && attempt < ATTEMPTS, "{others:?}: {}", trial.log(1));
        }
    }
}

/// Once a minute, and a round takes two seconds.
fn assert_is_rare(lines: usize, trial: &Trial) {
    assert!((1..=1 + rounds() / 20).contains(&lines), "{lines} lines: {}", trial.log(1));
}

fn count(trial: &Trial, words: &str) -> usize {
    trial.log(1).lines().filter(|line| line.contains(words)).count()
}

#[test]
fn a_client_at_its_limit_is_logged_once_and_the_leader_is_still_found() {
    let trial = start_after(":");
    check_often(&trial, 256, "50 checks in 2 s beside 256 idle connections");
    let words = "127.0.0.1 has 64 HTTP connections, its limit: the longest idle ones are closed";
    assert_is_rare(count(&trial, words), &trial);
}

#[test]
fn without_free_file_descriptors_the_leader_is_still_found() {
    let trial = start_after("ulimit -n 64");
    assert_eq!(count(&trial, "this process may have 64 file descriptors"), 1, "{}", trial.log(1));
    check_often(&trial, 60, "50 checks in 2 s without free file descriptors");
    let words = "cannot accept an HTTP connection: Too many open files";
    assert_is_rare(count(&trial, words), &trial);
}

/// None of the connections is idle, so none can be closed for the next. A client that finds a descriptor which the node
/// has just given back is served like the others: then all of it is repeated.
#[test]
fn without_free_file_descriptors_a_client_is_turned_away_and_not_kept_waiting() {
    let trial = start_after("ulimit -n 64");
    let begin_request = || {
        let mut stream = connect(&trial);
        // Those that find no descriptor are closed at once.
        let _ = stream.write_all(b"POST /v1/permit HTTP/1.0\r\ncontent-length: 9\r\n\r\n{");
        stream
    };
    trial.wait("ten clients in a row to be turned away", || {
        let _held: Vec<TcpStream> = (0..60).map(|_| begin_request()).collect();
        let mut newcomers = (0..10).map(|_| {
            let mut stream = begin_request();
            // Before the first of the others is given up.
            stream.set_read_timeout(Some(Duration::from_secs(1))).expect("a time-out");
            stream.read(&mut [0]).map_err(|error| error.kind())
        });
        newcomers.all(|read| matches!(read, Ok(0) | Err(ErrorKind::ConnectionReset))).then_some(())
    });
    trial.wait("it answers again", || trial.get(1, "/leader"));
}

/// However busy HTTP is, the operator of the machine may look: the admin socket is free.
#[test]
fn busy_http_blinds_no_local_operator() {
    let trial = start_after(":");
    // First the limit costs only idle connections.
    drop((0..80).map(|_| connect(&trial)).collect::<Vec<TcpStream>>());
    let is_busy = || {
        let output = doyen(&["status", "--node", trial.url(1)]);
        complaint(&output).contains("too many connections; retry later")
    };
    trial.wait("HTTP to be busy all the while", || {
        let hold = |_| {
            let mut stream = connect(&trial);
            stream.write_all(b"POST /v1/permit HTTP/1.0\r\ncontent-length: 9\r\n\r\n{").ok()?;
            Some(stream)
        };
        let _held: Vec<Option<TcpStream>> = (0..80).map(hold).collect();
        let was_busy = is_busy();
        for words in [&["status"][..], &["history"], &["explain"], &["wait"]] {
            if !trial.command(1, words).status.success() {
                return None;
            }
        }
        (was_busy && is_busy()).then_some(())
    });
    for effect in
        ["the longest idle ones are closed", "all of them are busy, so new ones get health only"]
    {
        let words = format!("127.0.0.1 has 64 HTTP connections, its limit: {effect}");
        assert_is_rare(count(&trial, &words), &trial);
    }
    // Where the socket cannot be used, HTTP is.
    fs::remove_file(trial.folder_of(1).join("state/admin.sock")).expect("it is there");
    trial.wait("an answer over HTTP", || {
        trial.command(1, &["status"]).status.success().then_some(())
    });
}

#[test]
fn a_busy_admin_socket_says_so_to_the_operator_in_the_log_and_in_the_metrics() {
    const TOO_MANY: &str = "too many connections; retry later";
    let trial = start_after(":");
    let socket = trial.folder_of(1).join("state/admin.sock");
    let request = |request: &[u8]| {
        let mut stream = UnixStream::connect(&socket).expect("it listens");
        stream.set_read_timeout(Some(LIMIT)).expect("a time-out");
        stream.write_all(request).expect("it is taken");
        stream
    };
    trial.wait("the admin socket to be busy all the while", || {
        let hold = |_| {
            let mut stream = request(
                b"POST /v1/permit HTTP/1.1\r\nhost: n1\r\ncontent-type: application/json\r\n\
                  content-length: 9\r\nexpect: 100-continue\r\n\r\n",
            );
            // It is busy when the server asks for the body.
            let mut asked = [0; 12];
            stream.read_exact(&mut asked).expect("an answer");
            (&asked == b"HTTP/1.1 100").then_some(stream)
        };
        let _held: Vec<Option<UnixStream>> = (0..24).map(hold).collect();
        let answers = (0..20).map(|_| {
            let (mut stream, mut text) = (request(b"GET /livez HTTP/1.0\r\n\r\n"), String::new());
            stream.read_to_string(&mut text).expect("an answer, then the end");
            text
        });
        let were_rejected = answers.filter(|text| text.contains(TOO_MANY)).count() == 20;
        let why = complaint(&trial.command(1, &["undrain"]));
        assert!(!why.contains("reset") && !why.contains("pipe"), "{why}");
        (were_rejected && why.contains(TOO_MANY)).then_some(())
    });
    let words =
        "admin.sock has 24 connections, its limit: all of them are busy, so new ones are rejected";
    assert_is_rare(count(&trial, words), &trial);
    assert_eq!(count(&trial, "127.0.0.1 has"), 0, "{}", trial.log(1));
    let rejected = trial.metric(1, "doyen_http_connections_rejected_total", "");
    assert!(rejected >= Some(21), "{rejected:?}");
}

#[test]
fn watchers_over_http_keep_no_local_one_out() {
    let trial = start_after(":");
    let watch = |_| {
        let mut stream = connect(&trial);
        stream
            .write_all(b"GET /v1/watch HTTP/1.1\r\nhost: localhost\r\n\r\n")
            .expect("it is taken");
        let mut head = [0; 12];
        stream.read_exact(&mut head).expect("an answer");
        assert_eq!(&head, b"HTTP/1.1 200");
        stream
    };
    let _held: Vec<TcpStream> = (0..16).map(watch).collect();
    let output = doyen(&["watch", "--node", trial.url(1)]);
    assert!(
        complaint(&output).contains("too many watchers; retry later"),
        "{}",
        complaint(&output)
    );
    let mut watching = Command::new(program())
        .args(["watch", "--config"])
        .arg(trial.folder_of(1).join("doyen.toml"))
        .env("DOYEN_HTTP", trial.url(1).trim_start_matches("http://"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("doyen can be run");
    let mut lines = BufReader::new(watching.stdout.take().expect("a pipe"));
    let (tell, told) = channel();
    spawn(move || {
        let mut line = String::new();
        let _ = lines.read_line(&mut line);
        let _ = tell.send(line);
    });
    let line = told.recv_timeout(LIMIT);
    // One that has ended already cannot be killed, and need not be.
    let _ = watching.kill();
    let _ = watching.wait();
    let line = line.expect("a line in time");
    assert!(line.contains("n1 leads in term "), "{line}");
}
