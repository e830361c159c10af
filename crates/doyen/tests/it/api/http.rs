//! A minimal HTTP client that sends exactly the bytes it is given.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use super::fake::Fake;

/// Nothing takes so long, unless something hangs.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let named =
            |line: &&str| line.split(':').next().is_some_and(|it| it.eq_ignore_ascii_case(name));
        let line = self.head.lines().skip(1).find(named)?;
        line.split_once(':').map(|(_, value)| value.trim())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// That it is a problem of this kind; its detail.
    pub(crate) fn problem(&self, status: u16, kind: &str) -> String {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["type"], format!("urn:doyen:{kind}"), "{self:?}");
        assert_eq!(problem["status"], status, "{self:?}");
        assert!(problem["title"].as_str().is_some_and(|title| !title.is_empty()), "{self:?}");
        problem["detail"].as_str().expect("a detail").to_owned()
    }
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    stream
}

/// Sends this and reads until the other end closes the connection.
pub(crate) fn exchange(address: SocketAddr, request: &str) -> Answer {
    let mut stream = connect(address);
    stream.write_all(request.as_bytes()).expect("it is taken");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("a head in {text:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.unwrap_or_else(|| panic!("a status in {head}"));
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

impl Fake {
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "")
    }

    /// `headers` end with a line break each.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &str) -> Answer {
        let address = self.address();
        let head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
        exchange(address, &format!("{head}{headers}\r\n"))
    }

    /// An authorized command.
    pub(crate) fn command(&self, path: &str, body: &str) -> Answer {
        self.command_with(path, body, "")
    }

    /// `headers` end with a line break each.
    pub(crate) fn command_with(&self, path: &str, body: &str, headers: &str) -> Answer {
        let authorization = format!("authorization: Bearer {}\r\n", self.secret());
        self.post(
            path,
            body,
            &format!("{authorization}content-type: application/json\r\n{headers}"),
        )
    }

    /// `headers` end with a line break each.
    pub(crate) fn post(&self, path: &str, body: &str, headers: &str) -> Answer {
        let (address, length) = (self.address(), body.len());
        let host =
            if headers.contains("host:") { String::new() } else { format!("host: {address}\r\n") };
        let head = format!(
            "POST {path} HTTP/1.1\r\n{host}connection: close\r\ncontent-length: {length}\r\n"
        );
        exchange(address, &format!("{head}{headers}\r\n{body}"))
    }

    /// The status of an answer that has no end.
    pub(crate) fn status_of(&self, path: &str) -> u16 {
        let mut stream = connect(self.address());
        let head = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n", self.address());
        stream.write_all(head.as_bytes()).expect("it is taken");
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).expect("a line");
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        status.unwrap_or_else(|| panic!("a status in {line}"))
    }

    /// The value of a metric that has one sample.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let metrics = self.get("/metrics").body;
        let line = metrics.lines().find(|line| line.starts_with(&format!("{name}{{")));
        let value = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
        value.unwrap_or_else(|| panic!("{name} in {metrics}"))
    }

    pub(crate) fn watch(&self, last_event_id: Option<&str>) -> Events {
        Events::open(self.address(), last_event_id)
    }
}

/// A stream of events.
pub(crate) struct Events(BufReader<TcpStream>);

#[derive(Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) data: Value,
}

impl Events {
    fn open(address: SocketAddr, last_event_id: Option<&str>) -> Self {
        let mut stream = connect(address);
        let last = last_event_id.map_or_else(String::new, |id| format!("last-event-id: {id}\r\n"));
        // The older version, so that what comes is not in chunks.
        write!(stream, "GET /v1/watch HTTP/1.0\r\nhost: {address}\r\n{last}\r\n")
            .expect("it is taken");
        let mut events = Self(BufReader::new(stream));
        let head = events.block();
        assert!(head[0].contains(" 200 "), "{head:?}");
        assert!(head.iter().any(|line| line == "content-type: text/event-stream"), "{head:?}");
        assert_eq!(events.block(), ["retry: 1000"]);
        events
    }

    /// The lines up to an empty one; none at the end of the stream.
    fn block(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).expect("a line");
            match line.trim_end() {
                "" => return lines,
                line => lines.push(line.to_owned()),
            }
        }
    }

    /// The next event; none at the end of the stream.
    pub(crate) fn next(&mut self) -> Option<Event> {
        let lines = self.block();
        let field = |name: &str| {
            let prefix = format!("{name}: ");
            lines.iter().find_map(|line| line.strip_prefix(&prefix)).map(str::to_owned)
        };
        let data = serde_json::from_str(&field("data")?).expect("JSON");
        Some(Event { name: field("event")?, id: field("id")?, data })
    }

    /// The next event's name, and the number in its id.
    pub(crate) fn brief(&mut self) -> (String, u64) {
        let event = self.next().expect("an event");
        let number = event.id.rsplit('.').next().and_then(|number| number.parse().ok());
        (event.name, number.expect("a number"))
    }
}
