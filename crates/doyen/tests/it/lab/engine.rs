//! Simulations and checks that take long.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::harness::Lab;

/// Asks for something, and returns the connection without waiting for the answer.
fn ask(lab: &Lab, method: &str, body: &Value) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", lab.port)).expect("it listens");
    let (port, body) = (lab.port, body.to_string());
    let request = format!(
        "POST /lab/engine/{method} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).expect("it reads");
    stream
}

/// Two are computed at a time, and each of these takes many seconds.
#[test]
fn what_no_client_waits_for_is_not_computed() {
    let lab = Lab::start(&["--members", "1"]);
    let flags = [["algorithm", "ring-all-ids"], ["members", "1000"], ["initiators", "all"]];
    let scale = json!({ "source": { "flags": flags }, "members": 2000 });
    let source = json!({ "gallery": "quorum/f02-partition-heals" });
    let check = json!({ "source": source, "budget": { "crashes": 2 }, "max_states": 3_000_000 });
    for (method, body) in [("scale", &scale), ("check", &check)] {
        let asked = [0; 2].map(|_| ask(&lab, method, body));
        std::thread::sleep(Duration::from_millis(300));
        drop(asked);
        let begun = Instant::now();
        let response = lab.send("POST", "/lab/engine/catalogue", "", "{}");
        assert_eq!(response.status, 200, "{response:?}");
        let waited = begun.elapsed();
        assert!(waited < Duration::from_secs(3), "{method} goes on: {waited:?}");
    }
}
