//! How admin commands reach a real node: over its admin socket, and over HTTP only where that is switched on.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::process::{Command, Stdio};

use crate::support::{Plan, Trial, complaint, doyen, program};
use rustix::process::Signal;

fn single() -> Trial {
    Trial::found(&Plan { members: 1, ..Plan::default() })
}

#[test]
fn commands_come_over_the_socket_and_not_over_http() {
    let mut trial = single();
    trial.run(1);
    trial.follow(1, &[1]);
    let state = trial.folder_of(1).join("state");
    let socket = fs::metadata(state.join("admin.sock")).expect("a socket");
    assert!(socket.file_type().is_socket());
    assert_eq!(socket.permissions().mode() & 0o777, 0o600);
    assert!(!state.join("admin-secret").exists(), "nothing needs it");
    let done = trial.command(1, &["undrain"]);
    assert!(done.status.success(), "{}", complaint(&done));
    for _ in 0..3 {
        let (status, body) = trial.post(1, "/v1/drain", "{}").expect("an answer");
        assert_eq!(status, 403, "{body}");
        assert!(body.contains("urn:doyen:admin-off"), "{body}");
    }
    assert_eq!(trial.metric(1, "doyen_admin_calls_total", "admin-off"), Some(3));
    assert_eq!(trial.metric(1, "doyen_admin_calls_total", "accepted"), Some(1));
    assert_eq!(trial.stop(1), Some(0));
    let log = trial.log(1);
    assert!(log.contains("accepted command `undrain` from admin.sock (uid "), "{log}");
    let rejected = log.lines().filter(|line| line.contains("rejected command `drain` from 127."));
    assert_eq!(rejected.count(), 1, "once a minute: {log}");
    assert!(!log.contains("problem="), "the sentence says it: {log}");
    let gone = trial.command(1, &["undrain"]);
    assert_eq!(gone.status.code(), Some(3));
    assert!(complaint(&gone).contains("admin.sock: no node listens there"), "{}", complaint(&gone));
}

#[test]
fn what_an_earlier_process_left_is_replaced_and_a_running_node_keeps_its_socket() {
    let mut trial = single();
    trial.run(1);
    trial.follow(1, &[1]);
    trial.kill(1);
    trial.run(1);
    trial.follow(1, &[1]);
    // A second process with this state does not start, and takes nothing away.
    let second = Command::new(program())
        .args(["node", "--http", "off", "--config"])
        .arg(trial.folder_of(1).join("doyen.toml"))
        .output()
        .expect("it runs");
    assert_eq!(second.status.code(), Some(1), "{}", complaint(&second));
    let done = trial.command(1, &["undrain"]);
    assert!(done.status.success(), "{}", complaint(&done));
    let names = fs::read_dir(trial.folder_of(1).join("state")).expect("a folder").flatten();
    // Of what it would have been commanded with. The running node replaces its history by a draft at any time.
    let is_draft = |name: &str| name.starts_with("admin") && name.contains("draft");
    let drafts = names.filter(|it| is_draft(&it.file_name().to_string_lossy()));
    assert_eq!(drafts.count(), 0);
}

#[test]
fn a_node_without_http_is_commanded_over_its_socket() {
    let trial = single();
    let config = trial.folder_of(1).join("doyen.toml");
    let mut node = Command::new(program())
        .args(["node", "--while-stdin-is-open", "--http", "off", "--config"])
        .arg(&config)
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    trial.wait("it accepts a command", || {
        trial.command(1, &["undrain"]).status.success().then_some(())
    });
    let _ = node.kill();
    let _ = node.wait();
}

/// Posts with these headers besides those that are always needed; says the status.
fn post_raw(trial: &Trial, path: &str, host: &str, headers: &str, body: &str) -> u16 {
    let mut stream = TcpStream::connect(trial.url(1).trim_start_matches("http://")).expect("HTTP");
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         connection: close\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).expect("it is read");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
}

#[test]
fn each_kind_of_rejected_call_is_logged_once_a_minute_and_counted_every_time() {
    let mut trial = single();
    trial.begin_with(1, ["env", "DOYEN_HTTP_ADMIN=true"].map(str::to_owned).to_vec());
    trial.run(1);
    trial.follow(1, &[1]);
    let file = trial.folder_of(1).join("state").join("admin-secret");
    let secret = fs::read_to_string(file).expect("a secret");
    let shown = format!("authorization: Bearer {}\r\n", secret.trim());
    let foreign = format!("{shown}origin: http://evil.example\r\n");
    let host = trial.url(1).trim_start_matches("http://").to_owned();
    for (status, kind, path, host, headers, body) in [
        (401, "unauthorized", "/v1/drain", &*host, "", "{}"),
        (403, "wrong-origin", "/v1/drain", &host, &*foreign, "{}"),
        (421, "wrong-host", "/v1/drain", "evil.example", &shown, "{}"),
        (422, "unknown-member", "/v1/transfer", &host, &shown, r#"{"to": "n9"}"#),
        (400, "bad-request", "/v1/drain", &host, &shown, "{"),
    ] {
        for _ in 0..3 {
            assert_eq!(post_raw(&trial, path, host, headers, body), status, "{kind}");
        }
        let counted = trial.metric(1, "doyen_admin_calls_total", &format!("result=\"{kind}\""));
        assert_eq!(counted, Some(3), "{kind}");
    }
    assert_eq!(trial.stop(1), Some(0));
    let log = trial.log(1);
    let rejected: Vec<&str> = log.lines().filter(|it| it.contains("rejected command `")).collect();
    assert_eq!(rejected.len(), 5, "one line of each kind: {log}");
    assert!(
        rejected.iter().all(|line| line.contains("WARN") && line.contains("from 127.")),
        "{log}"
    );
}

#[test]
fn the_admin_secret_is_read_again_on_sighup() {
    let mut trial = single();
    trial.begin_with(1, ["env", "DOYEN_HTTP_ADMIN=true"].map(str::to_owned).to_vec());
    trial.run(1);
    trial.follow(1, &[1]);
    let file = trial.folder_of(1).join("state").join("admin-secret");
    let old = trial.folder.join("old");
    fs::copy(&file, &old).expect("a secret");
    let undrain = |secret: &std::path::Path| {
        let secret = secret.to_str().expect("a plain path");
        doyen(&["undrain", "--node", trial.url(1), "--secret-file", secret]).status.code()
    };
    assert_eq!(undrain(&old), Some(0));
    fs::write(&file, "ab".repeat(32)).expect("it is written");
    assert_eq!((undrain(&old), undrain(&file)), (Some(0), Some(2)), "it has not been read yet");
    trial.signal(1, Signal::HUP);
    trial.wait("the new secret counts", || (undrain(&file) == Some(0)).then_some(()));
    assert_eq!(undrain(&old), Some(2), "the old one does not");
}
