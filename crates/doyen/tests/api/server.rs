//! Connections: how many, and for how long.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use doyen::api::Limits;

use crate::fake::{Fake, comes_true, follower_of_n3};
use crate::http::{connect, exchange};

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
    write!(stream, "GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").expect("it is taken");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer, then the end");
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
}

#[test]
fn a_connection_over_the_limit_is_rejected_at_once() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let fake = Fake::serving(follower_of_n3(), limits);
    let inside = [connect(fake.address()), connect(fake.address())];
    sleep(Duration::from_millis(200));
    let mut stream = connect(fake.address());
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    assert!(
        text.starts_with("HTTP/1.1 503") && text.contains("urn:doyen:too-many-connections"),
        "{text}"
    );
    drop(inside);
    assert!(comes_true(|| fake.status_of("/livez") == 200), "their places are free again");
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
    assert!(began.elapsed() < Duration::from_secs(1), "nobody had to be waited for");
    assert!(comes_true(|| TcpStream::connect(address).is_err()), "nobody listens there");
}
