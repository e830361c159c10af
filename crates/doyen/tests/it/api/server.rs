//! Connections: how many, and for how long.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use doyen::api::Limits;
use doyen_core::time::Span;

use super::fake::{Fake, comes_true, follower_of_n3, patient};
use super::http::{connect, exchange};

#[test]
fn a_connection_serves_one_request_after_another() {
    let fake = Fake::follower();
    let mut stream = connect(fake.address());
    let head = format!("GET /livez HTTP/1.1\r\nhost: {}\r\n", fake.address());
    write!(stream, "{head}\r\n{head}connection: close\r\n\r\n").expect("it is taken");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("two answers");
    assert_eq!(text.matches("HTTP/1.1 200").count(), 2, "{text}");
}

#[test]
fn a_connection_without_a_request_is_closed() {
    let limits = Limits { header_timeout: Duration::from_millis(300), ..Limits::default() };
    let fake = Fake::serving(follower_of_n3(), limits);
    for beginning in ["", "GET /leader HTTP/1.1\r\nhost: x"] {
        let mut stream = connect(fake.address());
        stream.write_all(beginning.as_bytes()).expect("it is taken");
        let began = Instant::now();
        let mut rest = Vec::new();
        let ended = stream.read_to_end(&mut rest).map_err(|error| error.kind());
        assert!(matches!(ended, Ok(_) | Err(ErrorKind::ConnectionReset)), "{ended:?}");
        assert!(began.elapsed() >= Duration::from_millis(250), "{beginning}: not at once");
    }
    // One that has asked and asks no more.
    let mut stream = connect(fake.address());
    write!(stream, "GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("it is taken");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer, then the end");
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
}

/// The connections of one client that does not let go, while a load balancer of the same machine asks 25 times a second.
fn probe_beside(fake: &Fake, seconds: u32, held: &mut dyn FnMut()) {
    for _ in 0..25 * seconds {
        held();
        assert_eq!(fake.get("/leader").status, 200);
        sleep(Duration::from_millis(40));
    }
}

#[test]
fn idle_connections_do_not_keep_a_load_balancer_from_its_answer() {
    let fake = Fake::leader();
    let idle: Vec<TcpStream> = (0..256).map(|_| connect(fake.address())).collect();
    probe_beside(&fake, 2, &mut || {});
    let most = f64::from(Limits::default().connections_per_client);
    assert!(fake.metric("doyen_http_connections") <= most);
    assert!(fake.metric("doyen_http_connections_evicted_total") >= 256.0 - most);
    assert_eq!(fake.metric("doyen_http_connections_rejected_total"), 0.0);
    drop(idle);
}

/// Slowloris: whoever is disconnected comes back at once, with the beginning of a request.
#[test]
fn connections_that_come_back_do_not_keep_a_load_balancer_from_its_answer() {
    let fake = Fake::leader();
    let address = fake.address();
    let begin = || {
        let mut stream = connect(address);
        stream.set_nonblocking(true).expect("a mode");
        // It may be evicted at once.
        let _ = stream.write_all(b"GET /leader HTTP/1.1\r\nhost: local");
        stream
    };
    let mut held: Vec<TcpStream> = (0..300).map(|_| begin()).collect();
    probe_beside(&fake, 2, &mut || {
        for stream in &mut held {
            let is_open = stream.read(&mut [0]).is_err_and(|it| it.kind() == ErrorKind::WouldBlock);
            if !is_open {
                *stream = begin();
            }
        }
    });
}

/// Requests whose bodies do not come: none of these connections is idle.
#[test]
fn busy_connections_leave_room_for_health_and_others_are_told() {
    let limits = Limits { connections_per_client: 3, ..patient() };
    let fake = Fake::serving(follower_of_n3(), limits);
    fake.lead(Span::from_millis(60_000));
    let address = fake.address();
    let head = format!("POST /v1/permit HTTP/1.1\r\nhost: {address}\r\ncontent-length: 9\r\n");
    let busy: Vec<TcpStream> = (0..3)
        .map(|_| {
            let mut stream = connect(address);
            write!(stream, "{head}content-type: application/json\r\nexpect: 100-continue\r\n\r\n")
                .expect("it is taken");
            // It is busy when the server asks for the body; an idle one would make room for the next.
            let mut asked = [0; 12];
            stream.read_exact(&mut asked).expect("an answer");
            assert_eq!(&asked, b"HTTP/1.1 100");
            write!(stream, "{{").expect("it is taken");
            stream
        })
        .collect();
    assert!(comes_true(|| fake.get("/v1/leader").status == 503), "all of them are busy");
    probe_beside(&fake, 1, &mut || {});
    let answer = fake.get("/v1/status");
    let detail = answer.problem(503, "too-many-connections");
    assert_eq!(detail, "too many connections; retry later");
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(fake.get("/metrics").status, 503);
    drop(busy);
    assert!(comes_true(|| fake.get("/v1/status").status == 200), "their places are free again");
    assert!(fake.metric("doyen_http_connections_rejected_total") >= 3.0);
}

#[test]
fn a_connection_without_any_place_is_rejected_at_once() {
    let limits = Limits { connections: 0, health_connections: 0, ..Limits::default() };
    let fake = Fake::serving(follower_of_n3(), limits);
    // Clients that send nothing and stay, which are more than the server waits for.
    let mut held = Vec::new();
    for _ in 0..40 {
        let mut stream = connect(fake.address());
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        assert!(
            text.starts_with("HTTP/1.1 503") && text.contains("urn:doyen:too-many-connections"),
            "{text}"
        );
        held.push(stream);
    }
}

/// Its request is unread when the server closes the connection, which must not break it.
#[test]
fn a_request_that_finds_no_place_is_answered_and_the_connection_ends_in_order() {
    let limits = Limits { connections: 0, health_connections: 0, ..Limits::default() };
    let fake = Fake::serving(follower_of_n3(), limits);
    for _ in 0..50 {
        fake.get("/v1/status").problem(503, "too-many-connections");
    }
    // A client that goes on sending is not read for long, be it little or much.
    for length in [1, 4096] {
        let mut stream = connect(fake.address());
        let chunk = vec![b'x'; length];
        assert!(comes_true(|| stream.write_all(&chunk).is_err()), "{length}");
    }
}

#[test]
fn a_client_that_does_not_read_is_disconnected() {
    let limits =
        Limits { write_timeout: Duration::from_millis(300), watchers: 1, ..Limits::default() };
    let fake = Fake::serving(follower_of_n3(), limits);
    let asleep = fake.watch(None);
    // Enough to fill what lies between the two ends.
    let filled = (0..2000).any(|turn| {
        fake.publish(|status| status.why = Some(format!("{turn}{}", "why ".repeat(50_000))));
        sleep(Duration::from_millis(5));
        fake.status_of("/v1/watch") == 200
    });
    assert!(filled, "its place is free again");
    drop(asleep);
}

#[test]
fn nonsense_is_answered_with_an_error_and_does_no_harm() {
    let fake = Fake::follower();
    assert_eq!(exchange(fake.address(), "nonsense\r\n\r\n").status, 400);
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(20_000));
    let status = exchange(fake.address(), &long).status;
    assert!((400..500).contains(&status), "{status}");
    assert_eq!(fake.get("/livez").status, 200);
}

#[test]
fn a_stopped_server_does_not_listen() {
    let mut fake = Fake::follower();
    let address = fake.address();
    let _idle = connect(address);
    let began = Instant::now();
    fake.stop();
    // It would wait for two seconds.
    assert!(began.elapsed() < Duration::from_secs(2), "nobody had to be waited for");
    assert!(comes_true(|| TcpStream::connect(address).is_err()), "nobody listens there");
}
